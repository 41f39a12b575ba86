#!/usr/bin/env bash
# Records a build of fixtures/demo and analyzes it: as the calling user, else through sudo;
# if neither may trace, it shows a recorded build. Usage: demo.sh DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/rights.sh
tr=$(realpath "${CARGO_TARGET_DIR:-target}/release/tr")
dir=$1
mkdir -p "$dir"
# Another user's directory with the same name in /tmp.
[ -O "$dir" ] || dir=$(mktemp -d)
trace=$dir/trace.bin
build=(make -s -j2 -C "$PWD/fixtures/demo" "BUILD=$dir/build")

# record PREFIX...: records the build by `PREFIX tr`; `status` is its exit status, 125
# when tr could not trace.
record() {
	rm -rf "$dir/build"
	status=0
	set -- "$@" "$tr" record ${user[@]+"${user[@]}"} -o "$trace" -- "${build[@]}"
	echo "+ $*"
	"$@" || status=$?
}
echo "The demo project's tests sleep on purpose, and one fails, which make ignores:"
user=()
if [ "$(id -u)" -eq 0 ] && [ "${SUDO_UID:-0}" -ne 0 ]; then
	chown -R "$SUDO_UID" "$dir"
	user=(--user "$SUDO_USER")
fi
record
if [ "$status" -eq 125 ] && [ "$(id -u)" -ne 0 ] && as_root "to record with $tr"; then
	# The build is the user's all the same, and so is the trace.
	user=(--user "$(id -un)")
	record "${root[@]}"
fi
if [ "$status" -eq 125 ]; then
	echo "This machine does not let us trace (the reason stands above): this is a recorded build."
	trace=fixtures/traces/demo.bin
elif [ "$status" -ne 0 ]; then
	exit "$status"
fi
echo "+ tr analyze $trace --top 20"
"$tr" analyze "$trace" --top 20
page=$dir/report.html
echo "+ tr report $trace -o $page"
"$tr" report "$trace" -o "$page"
echo "Next: open $page in a browser, or record a build of yours: $tr record -- make"
