#!/usr/bin/env bash
# Records a build of fixtures/demo and analyzes it. Where the caller may not load BPF programs and sudo asks for no
# password, sudo loads them. If the machine allows no recording, it shows a recorded build. Usage: demo.sh DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/.."
tr=$(realpath "${CARGO_TARGET_DIR:-target}/demo/tr")
dir=$1
# The report is printed as it is.
export TR_PAGER=
mkdir -p "$dir"
# Another user's directory with the same name in /tmp.
[ -O "$dir" ] || dir=$(mktemp -d)
trace=$dir/trace.bin
build=(make -s -j2 -C "$PWD/fixtures/demo" "BUILD=$dir/build")

# record OPTION...: records the build; `status` is tr's exit status, 125 when it could not record.
record() {
	rm -rf "$dir/build"
	status=0
	set -- "$tr" record "$@" -o "$trace" -- "${build[@]}"
	echo "demo: step 2 of 3, recording a build of eight seconds on two free CPUs"
	echo "+ $*"
	scripts/heartbeat.sh "demo: recording" "$@" || status=$?
}
echo "The demo project's tests sleep on purpose, and one fails, which make ignores:"
options=()
if [ "$(id -u)" -eq 0 ] && [ "${SUDO_UID:-0}" -ne 0 ]; then
	chown -R "$SUDO_UID" "$dir"
	options=(--user "$SUDO_USER")
fi
doctor=$("$tr" doctor --format json 2>/dev/null || true)
# found KEY: the text that `tr doctor` gives for this key.
found() { sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p" <<<"$doctor" | head -n 1; }
method=$(found method)
if [ "$method" != bpf ] && [ "$(id -u)" -ne 0 ] && sudo -n true 2>/dev/null; then
	options=(--sudo)
fi
record ${options[@]+"${options[@]}"}
if [ "$status" -eq 125 ] && [ "${options[*]-}" = --sudo ]; then
	options=()
	record
fi
if [ "$status" -eq 125 ]; then
	echo "This machine does not let us trace (the reason stands above): this is a recorded build."
	trace=fixtures/traces/demo.bin
elif [ "$status" -ne 0 ]; then
	exit "$status"
fi
echo "demo: step 3 of 3, analyzing it"
echo "+ tr analyze $trace --top 20"
"$tr" analyze "$trace" --top 20
page=$dir/report.html
echo "+ tr report $trace -o $page"
"$tr" report "$trace" -o "$page"
echo "Next: open $page in a browser, or record a build of yours: $tr record${options[*]:+ ${options[*]}} -- make"
if [ "$method" != bpf ] && [ "${options[*]-}" != --sudo ] && [ -n "$(found command)" ]; then
	echo "$(found purpose): $(found command)"
fi
