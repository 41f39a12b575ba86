#!/usr/bin/env bash
# The overhead of recording: ratios to a bare run, in alternating pairs, medians.
# As root on a quiet machine, after `make build`.
#
#   benches/overhead.sh [build|storm|start|kernel|memory]...     default: all
#
# PAIRS (default 20) and BUILDS (default 15) are the numbers of pairs, TR the
# binary to measure.
set -euo pipefail
# shellcheck source=benches/common.sh
. "$(dirname "$0")/common.sh"
pairs=${PAIRS:-20}
builds=${BUILDS:-15}
stats=/proc/sys/kernel/bpf_stats_enabled
before=$(cat "$stats")
trap 'echo "$before" >"$stats"; rm -rf "$dir"' EXIT

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

# `tr record -- true`: wall time in ms, the recorder's CPU time in ns (as in a trace: from
# COMMAND's release on). Measured once.
started() {
	[ -e "$dir/started" ] && return
	paired "$pairs" seconds true
	added >"$dir/started"
	for ((i = 0; i < pairs; i++)); do
		recorded true
		"$tr" info --format json "$dir/trace.bin" | python3 -c 'import json, sys; print(json.load(sys.stdin)["cost"]["recorder_ns"])'
	done | median >"$dir/started_ns"
}

# A small build, many times: the wall times of a long one scatter by more than the overhead.
# The decisive figure is the recorder's share of the CPU time, from the kernel's figures in
# each trace. KERNELS='0 1 2 3 4 5' makes the build longer.
build() {
	clean_build() {
		rm -rf "$dir/build"
		make -s -j"$(nproc)" -C fixtures/demo KERNELS="${KERNELS:-0}" BUILD="$dir/build" "$dir/build/tally"
		times >"$dir/used"
	}
	export -f clean_build
	export dir
	started
	paired "$builds" seconds bash -c clean_build
	printf 'real build        %.4f x of %.1f s, %d pairs; %.4f x without the start of %.1f ms   (target 1.005)\n' \
		"$(ratio)" "$(bare)" "$builds" \
		"$(awk -v s="$(cat "$dir/started")" '{ print ($2 - s / 1000) / $1 }' "$dir/pairs" | median)" "$(cat "$dir/started")"
	echo 1 >"$stats"
	for ((i = 0; i < builds; i++)); do
		recorded bash -c clean_build
		"$tr" info --format json "$dir/trace.bin" >"$dir/info"
		python3 -c '
import json, re, sys
cost = json.load(open(sys.argv[1]))["cost"]
times = re.findall(r"(\d+)m([\d.]+)s", open(sys.argv[2]).read())
job = sum(int(m) * 60 + float(s) for m, s in times) * 1e9
start = min(float(open(sys.argv[3]).read()), cost["recorder_ns"])
print(*(ns / job * 100 for ns in (start, cost["recorder_ns"] - start, cost["bpf_ns"])), job / 1e9)
' "$dir/info" "$dir/used" "$dir/started_ns"
	done >"$dir/shares"
	echo 0 >"$stats"
	share() { awk "{ print $1 }" "$dir/shares" | median; }
	printf '  of its CPU time %.3f %% recorder and %.3f %% BPF programs, counting included: %.3f %%   (target 0.1 %% in all)\n' \
		"$(share '$2')" "$(share '$3')" "$(share '$2 + $3')"
	printf '                  besides %.3f %% (%.1f ms of %.1f s) that any recording takes, that of true too\n' \
		"$(share '$1')" "$(awk '{ print $1 / 1e6 }' "$dir/started_ns")" "$(share '$4')"
}
storm() {
	paired "$pairs" says "$dir/storm" pipe 50000
	printf 'pinned pipe       %.3f x of %.2f s, %d pairs   (target 1.15)\n' "$(ratio)" "$(bare)" "$pairs"
}
start() {
	started
	printf 'record -- true    %.1f ms more than true   (target 100)\n' "$(cat "$dir/started")"
	for ((i = 0; i < pairs; i++)); do
		ended=$(recorded date +%s%N)
		echo $((($(date +%s%N) - ended) / 1000))
	done >"$dir/ends"
	printf 'end of recording  %.1f ms after COMMAND ended, starting date included   (target 50)\n' \
		"$(median <"$dir/ends" | awk '{ print $1 / 1000 }')"
}
kernel() { cargo bench --locked -q -p tr-bpf --bench kernel; }
memory() {
	local most
	most=$(python3 benches/measure.py "$tr" record -q -o "$dir/trace.bin" -- "$dir/storm" pipe 600000 | awk '{ print $3 }')
	printf 'memory            %.1f MiB besides the rings   (target 48)\n' "$(awk -v k="$most" 'BEGIN { print k / 1024 }')"
}

if (($# == 0)); then set -- start storm kernel memory build; fi
for part; do "$part"; done
