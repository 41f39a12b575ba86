#!/usr/bin/env bash
# Records one build with `perf sched record` and `tr` at once and compares them task
# by task: run time, wait for a CPU, switches. Differences of more than 1 % are explained from
# the events of the two recordings. As root, after `make build`.
#
#   benches/perf.sh [COMMAND...]     default: make -j of fixtures/demo
#
# TR is the binary to use, DIR (default: a temporary one) where the recordings go.
set -euo pipefail
cd "$(dirname "$0")/.."
tr=$(realpath "${TR:-target/release/tr}")
dir=${DIR:-$(mktemp -d)}
mkdir -p "$dir"
[ -n "${DIR-}" ] || trap 'rm -rf "$dir"' EXIT
command -v perf >/dev/null || { echo "perf is missing (Debian: linux-perf)" >&2; exit 1; }
[ -d /sys/kernel/tracing/events ] || mount -t tracefs nodev /sys/kernel/tracing
if (($# == 0)); then
	rm -rf "$dir/build"
	set -- make -s -j"$(nproc)" -C fixtures/demo BUILD="$dir/build"
fi
perf sched record -q -k CLOCK_MONOTONIC -o "$dir/perf.data" -- \
	"$tr" record -q -o "$dir/trace.bin" -- "$@" >"$dir/out" 2>"$dir/err" || { cat "$dir/err" >&2; exit 1; }
perf script -i "$dir/perf.data" --ns -F tid,cpu,time,event,trace --show-lost-events >"$dir/perf.events" 2>/dev/null
perf sched timehist -i "$dir/perf.data" --state >"$dir/perf.slices" 2>/dev/null
"$tr" dump "$dir/trace.bin" --format ndjson >"$dir/tr.events"
"$tr" analyze "$dir/trace.bin" --by thread --format csv >"$dir/tr.threads"
"$tr" analyze "$dir/trace.bin" --format json >"$dir/tr.json"
"$tr" analyze "$dir/trace.bin" --report audit
python3 benches/beside_perf.py "$dir"
