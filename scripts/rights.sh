# Sourced: runs a command with the right to trace.
#
# as_root PURPOSE: sets the array `root` to the prefix that runs a command as root: empty for
# root, else sudo, which may ask for a password on a terminal. Fails with a reason if there is
# no sudo.
# shellcheck shell=bash disable=SC2034
as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		root=()
	elif ! command -v sudo >/dev/null; then
		echo "not root, and sudo is not installed" >&2
		return 1
	elif sudo -n true 2>/dev/null; then
		root=(sudo -n)
	elif [ -t 0 ]; then
		echo "sudo asks for your password, $1" >&2
		sudo -v && root=(sudo)
	else
		echo "not root, and sudo would ask for a password" >&2
		return 1
	fi
}
