#!/usr/bin/env bash
# Records a build of fixtures/demo and analyzes it. Usage: demo.sh DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/.."
tr=${CARGO_TARGET_DIR:-target}/release/tr
dir=$1
mkdir -p "$dir"
rm -rf "$dir/build"
trace=$dir/trace.bin
status=0
echo "+ tr record -o $trace -- make -s -j2 -C fixtures/demo BUILD=$dir/build"
"$tr" record -o "$trace" -- make -s -j2 -C fixtures/demo "BUILD=$dir/build" || status=$?
if [ "$status" -eq 125 ]; then
	echo "This machine does not let us trace (the reason stands above): showing a recorded build instead."
	trace=fixtures/traces/demo.bin
elif [ "$status" -ne 0 ]; then
	exit "$status"
fi
echo "+ tr analyze $trace --top 20"
"$tr" analyze "$trace" --top 20
