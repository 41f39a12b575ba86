#!/usr/bin/env bash
# Reading a recording back, beside perf: each tool reads its own recording of the
# same load, a pipe ping-pong on one CPU. CPU time and wall time an event, medians.
# As root on a quiet machine, after `make build`.
#
# Beside it, the floor: `cat` of the trace; and `zstd -t` of the same scheduling events as
# records of 24 bytes, compressed by zstd at level 3: the size without columns.
#
#   benches/compare.sh [TRACE...]     more traces for tr alone
#
# ROUNDS (default 400000) is the number of round trips of the ping-pong, RUNS (default 5) the
# number of runs of each measurement, TR the binary to measure.
set -euo pipefail
# shellcheck source=benches/common.sh
. "$(dirname "$0")/common.sh"
rounds=${ROUNDS:-400000}
runs=${RUNS:-5}
trap 'rm -rf "$dir"' EXIT

header() { printf '%-34s %10s %9s %12s %12s %10s\n' '' events MB 'ns CPU/event' 'M events/s' 'MB memory'; }
# reads NAME EVENTS FILE COMMAND...: CPU time, wall time and memory of reading it.
reads() {
	local name=$1 events=$2 file=$3 i
	shift 3
	for ((i = 0; i < runs; i++)); do
		python3 benches/measure.py "$@"
	done >"$dir/times"
	column() { awk -v n="$1" '{ print $n }' "$dir/times" | median; }
	awk -v name="$name" -v n="$events" -v bytes="$(stat -c %s "$file")" -v cpu="$(column 1)" -v wall="$(column 2)" -v kb="$(column 3)" 'BEGIN {
		printf "%-34s %10d %9.1f %12.1f %12.2f %10.0f\n", name, n, bytes / 1e6, cpu / n * 1e9, n / wall / 1e6, kb / 1024 }'
}
events() { "$tr" info --format json "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)["events"])'; }

# floor EVENTS TRACE: the cost of reading the same events without an analysis.
floor() {
	local events=$1 trace=$2
	reads "cat of the trace" "$events" "$trace" cat "$trace"
	command -v zstd >/dev/null || return 0
	cargo run --locked -q --release -p tr-analyze --example raw -- "$trace" >"$dir/raw"
	zstd -q -3 -f "$dir/raw" -o "$dir/raw.zst"
	rm "$dir/raw"
	reads "zstd -t of 24-byte records" "$events" "$dir/raw.zst" zstd -q -t "$dir/raw.zst"
	rm "$dir/raw.zst"
}

header
"$tr" record -q -o "$dir/trace.bin" -- "$dir/storm" pipe "$rounds" >/dev/null
count=$(events "$dir/trace.bin")
for threads in 1 2; do
	reads "tr analyze --threads $threads" "$count" "$dir/trace.bin" "$tr" analyze --report tree --threads "$threads" "$dir/trace.bin"
done
floor "$count" "$dir/trace.bin"
if command -v perf >/dev/null; then
	[ -d /sys/kernel/tracing/events ] || mount -t tracefs nodev /sys/kernel/tracing
	perf sched record -q -m 8192 -o "$dir/perf.data" -- "$dir/storm" pipe "$rounds" >/dev/null 2>&1
	count=$(perf script -i "$dir/perf.data" -F event 2>/dev/null | wc -l)
	reads "perf sched timehist -s" "$count" "$dir/perf.data" perf sched timehist -s -i "$dir/perf.data"
fi
for trace; do
	count=$(events "$trace")
	for threads in 1 2; do
		reads "$(basename "$trace"), $threads threads" "$count" "$trace" "$tr" analyze --report tree --threads "$threads" "$trace"
	done
	floor "$count" "$trace"
done
