#!/usr/bin/env bash
# How long `tr analyze` takes for 100 ms of a long recording: simulated builds on 64 CPUs of
# 10^6 to 10^8 events; nine parts of each, three times. Beside it `tr info`, and the
# analysis of the whole.
#
#   benches/window.sh
#
# WINDOW_MAX (default 100000000) is the largest number of events, TR the binary to measure.
# After `cargo build --release`.
set -euo pipefail
cd "$(dirname "$0")/.."
tr=$(realpath "${TR:-target/release/tr}")
most=${WINDOW_MAX:-100000000}
cargo build -q --release -p tr-sim --example trace
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

walls() { # walls COMMAND...: its wall time in ms, three times
	local _ wall
	for _ in 1 2 3; do
		read -r _ wall _ < <(python3 benches/measure.py "$@")
		awk -v wall="$wall" 'BEGIN { printf "%.1f\n", wall * 1000 }'
	done
}
median() { sort -g | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }

printf '%12s %9s %8s | %12s %9s | %8s %12s\n' events MB seconds '100 ms, ms' longest 'info, ms' 'whole, ms'
for ((events = 1000000; events <= most; events *= 10)); do
	target/release/examples/trace build 64 "$events" "$dir/trace.bin" >/dev/null
	length=$("$tr" info --format json "$dir/trace.bin" |
		python3 -c 'import json, sys; print(json.load(sys.stdin)["duration_ns"] // 1000000)')
	for ((part = 1; part <= 9; part++)); do
		from=$((length * part / 10))
		walls "$tr" analyze "$dir/trace.bin" --from "${from}ms" --to "$((from + 100))ms"
	done >"$dir/parts"
	printf '%12d %9.1f %8d | %12.1f %9.1f | %8.1f %12.1f\n' "$events" "$(($(stat -c %s "$dir/trace.bin") / 100000))e-1" \
		"$((length / 1000))" "$(median <"$dir/parts")" "$(sort -g "$dir/parts" | tail -1)" \
		"$(walls "$tr" info "$dir/trace.bin" | median)" "$(walls "$tr" analyze "$dir/trace.bin" | median)"
done
