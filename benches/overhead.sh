#!/usr/bin/env bash
# What recording costs: ratios against a bare run, in alternating pairs, medians.
# As root on a quiet machine, after `cargo build --release`.
#
#   benches/overhead.sh [build|storm|start|kernel|memory]...     default: all
#
# PAIRS (default 20) and BUILDS (default 15) are the numbers of pairs, TR the
# binary to measure.
set -euo pipefail
cd "$(dirname "$0")/.."
tr=$(realpath "${TR:-target/release/tr}")
pairs=${PAIRS:-20}
builds=${BUILDS:-15}
dir=$(mktemp -d)
stats=/proc/sys/kernel/bpf_stats_enabled
before=$(cat "$stats")
trap 'echo "$before" >"$stats"; rm -rf "$dir"' EXIT
gcc -O1 -pthread -o "$dir/storm" fixtures/programs/storm.c

median() { sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
seconds() { # seconds COMMAND...: how long it takes
	local start=$EPOCHREALTIME
	"$@" >"$dir/out" 2>"$dir/err" || { cat "$dir/err" >&2; return 1; }
	awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.6f\n", b - a }'
}
recorded() { "$tr" record -q -o "$dir/trace.bin" -- "$@"; }
says() { "$@"; } # as seconds, for a COMMAND that says itself how long it took
# Pairs of bare and recorded times, in both orders by turns.
paired() { # paired N CLOCK COMMAND...
	local count=$1 clock=$2 i bare with
	shift 2
	for ((i = 0; i < count; i++)); do
		if ((i % 2)); then
			bare=$("$clock" "$@")
			with=$("$clock" recorded "$@")
		else
			with=$("$clock" recorded "$@")
			bare=$("$clock" "$@")
		fi
		echo "$bare $with"
	done >"$dir/pairs"
}
ratio() { awk '{ print $2 / $1 }' "$dir/pairs" | median; }
bare() { awk '{ print $1 }' "$dir/pairs" | median; }
added() { awk '{ print ($2 - $1) * 1000 }' "$dir/pairs" | median; }

# A small build many times over: the wall times of a long one scatter by more
# than a recording costs. The recorder's share of the CPU time is what counts; it
# comes from the kernel's own figures, in a trace each.
build() {
	clean_build() { rm -rf "$dir/build" && make -s -j"$(nproc)" -C fixtures/demo KERNELS=0 BUILD="$dir/build" "$dir/build/tally"; }
	export -f clean_build
	export dir
	paired "$builds" seconds bash -c clean_build
	printf 'real build        %.4f x of %.1f s, %d pairs   (target 1.005)\n' "$(ratio)" "$(bare)" "$builds"
	echo 1 >"$stats"
	for ((i = 0; i < builds; i++)); do
		TIMEFORMAT='%U %S'
		{ time "$tr" record -q -o "$dir/trace.bin" -- bash -c clean_build >/dev/null 2>&1; } 2>"$dir/used"
		"$tr" info --format json "$dir/trace.bin" >"$dir/info"
		python3 -c '
import json, sys
cost = json.load(open(sys.argv[1]))["cost"]
job = sum(map(float, open(sys.argv[2]).read().split())) * 1e9 - cost["recorder_ns"]
print(cost["recorder_ns"] / job * 100, cost["bpf_ns"] / job * 100)' "$dir/info" "$dir/used"
	done >"$dir/shares"
	echo 0 >"$stats"
	printf '  of its CPU time %.3f %% recorder, %.3f %% BPF programs, counting included   (target 0.1 %% in all)\n' \
		"$(awk '{ print $1 }' "$dir/shares" | median)" "$(awk '{ print $2 }' "$dir/shares" | median)"
}
storm() {
	paired "$pairs" says "$dir/storm" pipe 50000
	printf 'pinned pipe       %.3f x of %.2f s, %d pairs   (target 1.15)\n' "$(ratio)" "$(bare)" "$pairs"
}
start() {
	paired "$pairs" seconds true
	printf 'record -- true    %.1f ms more than true   (target 100)\n' "$(added)"
	for ((i = 0; i < pairs; i++)); do
		ended=$(recorded date +%s%N)
		echo $((($(date +%s%N) - ended) / 1000))
	done >"$dir/ends"
	printf 'end of recording  %.1f ms after COMMAND ended, starting date included   (target 50)\n' \
		"$(median <"$dir/ends" | awk '{ print $1 / 1000 }')"
}
kernel() { cargo bench -q -p tr-bpf --features prototypes --bench kernel; }
memory() {
	recorded "$dir/storm" pipe 600000 >/dev/null &
	local pid=$! most=0 now recorder
	while kill -0 "$pid" 2>/dev/null; do
		for recorder in "$pid" $(cat "/proc/$pid/task/$pid/children" 2>/dev/null); do
			[ "$(cat "/proc/$recorder/comm" 2>/dev/null)" = tr ] || continue
			now=$(awk '/^RssAnon/ { print $2 }' "/proc/$recorder/status" 2>/dev/null || true)
			if ((${now:-0} > most)); then most=$now; fi
		done
		sleep 0.02
	done
	wait
	printf 'memory            %.1f MiB besides the rings   (target 48)\n' "$(awk -v k="$most" 'BEGIN { print k / 1024 }')"
}

if (($# == 0)); then set -- start storm kernel memory build; fi
for part; do "$part"; done
