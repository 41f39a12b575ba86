#!/usr/bin/env bash
# Installs tr, by this name and by its second, tr-trace, with manual pages, shell completions and the integrations
# below $DESTDIR$PREFIX.
#
#   install.sh TR         TR is the built program; SETCAP=1 gives it the capabilities to trace; GROUP=name
#                         restricts execution to that group, which is made if need be. Without SETCAP, a
#                         program that is replaced hands its owner, mode and capabilities on.
#                         NAMES are the installed names (tr tr-trace)
#   install.sh --remove   removes all of it
set -euo pipefail
umask 022
PATH=$PATH:/usr/sbin:/sbin # setcap is there
# tr gives its files to the user who called sudo; these are root's.
unset SUDO_UID SUDO_GID
sources=$(dirname "$0")/../integrations
prefix=${PREFIX:-/usr/local}
to=${DESTDIR-}$prefix
read -ra names <<<"${NAMES:-tr tr-trace}"
program=$to/bin/${names[0]}
man=$to/share/man/man1
data=$to/share/tr-trace
work=$(mktemp -d)
trap 'rm -rf "$work" "$program.new"' EXIT
fail() {
	echo "install: $*" >&2
	exit 1
}
# completions NAME: the shells and the files of their completions.
completions() {
	echo "bash $to/share/bash-completion/completions/$1"
	echo "zsh $to/share/zsh/site-functions/_$1"
	echo "fish $to/share/fish/vendor_completions.d/$1.fish"
}
installed=()
for name in "${names[@]}"; do
	[ -e "$to/bin/$name" ] || continue
	[ -x "$to/bin/$name" ] || fail "$to/bin/$name is not yours to execute: call make by sudo"
	# The system's tr prints another line.
	"$to/bin/$name" --version 2>/dev/null | grep -q "^$name [0-9]" ||
		fail "$to/bin/$name is another program: choose another PREFIX"
	installed+=("$name")
done
writable() { # writable TARGET
	[ -w "$to/bin" ] || fail "$to/bin is not yours to write: sudo make $1, or make $1 PREFIX=\$HOME/.local"
}

if [ "${1-}" = --remove ]; then
	if [ ${#installed[@]} -eq 0 ]; then
		echo "uninstall: nothing to remove: there is no $program"
		exit 0
	fi
	writable uninstall
	for name in "${installed[@]}"; do
		"$to/bin/$name" man "$work"
		while read -r _ file; do rm -fv "$file"; done < <(completions "$name")
	done
	for page in "$work"/*; do rm -fv "$man/${page##*/}"; done
	rm -rfv "$data/integrations"
	rmdir "$data" 2>/dev/null || :
	rm -fv "${installed[@]/#/$to/bin/}"
	exit 0
fi

[ -x "${1-}" ] || fail "${1-nothing} is not built: run make build first, as yourself"
mkdir -p "$to/bin" 2>/dev/null || true
writable install

# What the new file gets: an owner, a mode, and whether it gets the capabilities.
owner='' mode=755 capable='' kept=''
if [ "${SETCAP-}" = 1 ]; then
	capable=1
	if [ -n "${GROUP-}" ]; then
		owner=root:$GROUP mode=750
		getent group "$GROUP" >/dev/null || groupadd --system "$GROUP"
	fi
elif [ ${#installed[@]} -gt 0 ]; then
	old=$to/bin/${installed[0]}
	mode=$(stat -c %a "$old")
	[ "$(stat -c %u:%g "$old")" = "$(id -u):$(id -g)" ] || owner=$(stat -c %U:%G "$old")
	[ -z "$(getcap "$old" 2>/dev/null)" ] || capable=1
	[ -z "$capable$owner" ] && [ "$mode" = 755 ] || kept="${owner:+owner $owner, }mode $mode${capable:+, capabilities}"
fi
[ -z "$capable" ] || command -v setcap >/dev/null || fail "setcap is missing: apt-get install libcap2-bin"
install -s -m 755 "$1" "$program.new"
# In this order: a new owner takes the capabilities away. They are permitted, not effective: the kernel refuses
# to execute a file with effective ones where the bounding set lacks them, and every script's tr would fail.
[ -z "$owner" ] || chown "$owner" "$program.new"
chmod "$mode" "$program.new"
[ -z "$capable" ] || setcap cap_bpf,cap_perfmon+p "$program.new"
# Renamed over the old file: a running tr keeps its own.
for name in "${names[@]:1}"; do
	ln -f "$program.new" "$to/bin/$name.new"
	mv -f "$to/bin/$name.new" "$to/bin/$name"
done
mv -f "$program.new" "$program"

for name in "${names[@]}"; do
	"$to/bin/$name" man "$man"
	while read -r shell file; do
		mkdir -p "${file%/*}"
		"$to/bin/$name" completions "$shell" >"$file"
	done < <(completions "$name")
done
while read -r file; do
	install -D -m 644 "$sources/$file" "$data/integrations/$file"
done < <(cd "$sources" && find . -type f ! -name '*.pyc')
echo "installed: ${names[*]} in $to/bin, manual pages (man tr-trace), completions for bash, zsh and fish; test runners' plugins in $data/integrations"
echo "a shell that has run the system's tr finds this one after: hash -r"
[ -z "$kept" ] || echo "kept of the replaced file: $kept"
if [ -n "$capable" ] && [[ $mode = 750 ]]; then
	group=$(stat -c %G "$program")
	echo "the members of the group ${GROUP:-$group} may trace every process of this machine; to add one:"
	echo "    sudo usermod -aG ${GROUP:-$group} USER"
elif [ -n "$capable" ]; then
	echo "whoever may execute $program may trace every process of this machine (SECURITY.md)"
else
	echo "To let the members of a group trace every process of this machine:"
	echo "    sudo make install SETCAP=1 GROUP=tr-trace"
	echo "or everybody who may execute it:"
	echo "    sudo setcap cap_bpf,cap_perfmon+p $program"
fi
