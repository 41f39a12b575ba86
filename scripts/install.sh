#!/usr/bin/env bash
# Installs tr, its manual pages and shell completions below $DESTDIR$PREFIX.
#
#   install.sh TR         TR is the built program; SETCAP=1 gives it the capabilities to
#                         trace; GROUP=name restricts execution to that group, which is
#                         made if need be
#   install.sh --remove   removes all of it
set -euo pipefail
prefix=${PREFIX:-/usr/local}
to=${DESTDIR-}$prefix
tr=$to/bin/tr
man=$to/share/man/man1
completions=(
	"bash $to/share/bash-completion/completions/tr"
	"zsh $to/share/zsh/site-functions/_tr"
	"fish $to/share/fish/vendor_completions.d/tr.fish"
)
# The system's tr prints another line.
ours() { "$tr" --version 2>/dev/null | grep -q '^tr [0-9]'; }
if [ -e "$tr" ] && ! ours; then
	echo "install: $tr is another tr: choose another PREFIX" >&2
	exit 1
fi
if [ "${1-}" = --remove ]; then
	if [ ! -e "$tr" ]; then
		echo "install: there is no $tr"
		exit 0
	fi
	pages=$(mktemp -d)
	"$tr" man "$pages"
	(cd "$pages" && for page in *; do rm -fv "$man/$page"; done)
	rm -r "$pages"
	rm -fv "${completions[@]#* }" "$tr"
	exit 0
fi
if [ ! -x "${1-}" ]; then
	echo "install: ${1-nothing} is not built: run make build first, as yourself" >&2
	exit 1
fi
if ! mkdir -p "$to/bin" 2>/dev/null || [ ! -w "$to/bin" ]; then
	echo "install: $to/bin is not yours to write: sudo make install, or make install PREFIX=\$HOME/.local" >&2
	exit 1
fi
# Rename a new file over the old one: a running tr keeps its file.
install -s -m 755 "$1" "$tr.new"
mv -f "$tr.new" "$tr"
"$tr" man "$man"
for line in "${completions[@]}"; do
	file=${line#* }
	mkdir -p "${file%/*}"
	"$tr" completions "${line%% *}" >"$file"
done
echo "installed: $tr, manual pages (man tr-record), completions for bash, zsh and fish"
capable="setcap cap_bpf,cap_perfmon+ep $tr"
if [ "${SETCAP-}" = 1 ] && [ -n "${GROUP-}" ]; then
	getent group "$GROUP" >/dev/null || groupadd --system "$GROUP"
	# In this order: a new owner takes the capabilities away.
	chown "root:$GROUP" "$tr"
	chmod 750 "$tr"
	$capable
	echo "the members of the group $GROUP may trace every process of this machine; to add one:"
	echo "    sudo usermod -aG $GROUP USER"
elif [ "${SETCAP-}" = 1 ]; then
	$capable
	echo "whoever may execute $tr may trace every process of this machine (SECURITY.md)"
else
	echo "To let the members of a group trace every process of this machine:"
	echo "    sudo make install SETCAP=1 GROUP=tr-trace"
	echo "or everybody who may execute it:"
	echo "    sudo $capable"
fi
