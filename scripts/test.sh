#!/usr/bin/env bash
# Runs every test and ends with their counts in one line.
set -euo pipefail
cd "$(dirname "$0")/.."
log=$(mktemp)
tail=
trap 'rm -f "$log"; [ -z "$tail" ] || kill "$tail" 2>/dev/null || true' EXIT
# Into a file, not a pipe: a process that a test left behind would hold the pipe,
# and `tee` would wait for it.
status=0
tail -f -n +1 "$log" &
tail=$!
cargo test --workspace --no-fail-fast >"$log" 2>&1 </dev/null || status=$?
sleep 1.1 # tail looks once a second where it is not told of changes
kill "$tail"
tail=
count() { sed -n "s/^test result: .* \\([0-9]*\\) $1;.*/\\1/p" "$log" | awk '{ n += $1 } END { print n + 0 }'; }
echo "$(count passed) passed, $(count failed) failed, $(count ignored) skipped"
exit "$status"
