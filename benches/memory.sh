#!/usr/bin/env bash
# Memory of `tr analyze` for growing numbers of events with a constant number of tasks
# (simulated hackbench on 8 CPUs, 415 tasks), and for growing numbers of tasks (builds on 64
# CPUs, a task for every 540 events); then of every command that reads, on the largest recording.
# measure.py defines the figure.
#
#   benches/memory.sh
#
# MEMORY_MAX (default 100000000) is the largest number of events; 1000000000 needs 8 GB of disk
# in TMPDIR. THREADS (default 2), TR the binary to measure. After `make build`.
set -euo pipefail
cd "$(dirname "$0")/.."
tr=$(realpath "${TR:-target/release/tr}")
most=${MEMORY_MAX:-100000000}
threads=${THREADS:-2}
if [ -z "${TRACE:-}" ]; then
	cargo build --locked -q --release -p tr-sim --example trace
	TRACE=target/release/examples/trace
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

printf '%-20s %12s %9s %9s %9s %9s %10s %12s\n' '' events tasks frames MB 's' 'heap MiB' 'M events/s'
for world in 'hackbench 8' 'build 64'; do
	for ((events = 1000000; events <= most; events *= 10)); do
		# shellcheck disable=SC2086 # two words
		"$TRACE" $world "$events" "$dir/trace.bin" >"$dir/made"
		tasks=$(sed -n 's/.*, \([0-9]*\) tasks$/\1/p' "$dir/made")
		frames=$(sed -n 's/.* frames: \([0-9]*\),.*/\1/p' "$dir/made")
		read -r _ wall kib < <(python3 benches/measure.py "$tr" analyze --report tree --threads "$threads" "$dir/trace.bin")
		awk -v world="${world% *}, ${world#* } CPUs" -v n="$events" -v tasks="$tasks" -v frames="$frames" \
			-v bytes="$(stat -c %s "$dir/trace.bin")" -v wall="$wall" -v kib="$kib" 'BEGIN {
			printf "%-20s %12d %9d %9d %9.1f %9.2f %10.1f %12.1f\n", world, n, tasks, frames, bytes / 1e6, wall, kib / 1024, n / wall / 1e6 }'
	done
done

# Every command that reads, on the largest of these: heap in MiB, and the size of its output.
commands=('analyze --report all' 'summary' 'summary --format json' "report -o $dir/out.html" "export --format perfetto -o $dir/out.pftrace"
	"export --format perfetto --detail 0s -o $dir/out.pftrace" "export --format otlp -o $dir/out.otlp"
	"export --format folded -o $dir/out.folded" 'info --full' 'verify' 'dump')
for command in "${commands[@]}"; do
	read -r first rest <<<"$command"
	# shellcheck disable=SC2086 # words
	read -r _ _ kib < <(python3 benches/measure.py "$tr" "$first" "$dir/trace.bin" $rest)
	printf '%-60s %9.1f %12s\n' "${command//$dir\//}" "$(awk "BEGIN { print $kib / 1024 }")" "$(cat "$dir"/out.* 2>/dev/null | wc -c)"
	rm -f "$dir"/out.*
done
