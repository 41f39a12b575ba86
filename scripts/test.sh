#!/usr/bin/env bash
# Runs every test. Ends with the
# count in one line.
set -euo pipefail
cd "$(dirname "$0")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
cargo test --workspace --no-fail-fast 2>&1 | tee "$log" || status=$?
passed=$(sed -n 's/^test result: .* \([0-9]*\) passed;.*/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
failed=$(sed -n 's/^test result: .* \([0-9]*\) failed;.*/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
ignored=$(sed -n 's/^test result: .* \([0-9]*\) ignored;.*/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
echo "${passed:-0} passed, ${failed:-0} failed, ${ignored:-0} skipped"
exit "$status"
