#!/usr/bin/env bash
# Runs each fuzz target, or those named, for SECONDS (default 60), on the seeds of fuzz/corpus
# and on the inputs that earlier runs have found. Works with a stable toolchain: the flags are
# those of cargo-fuzz without a sanitizer, which code without unsafe does not need.
# FUZZ_SEED=N draws the same inputs in each run.
# Usage: fuzz.sh SECONDS [TARGET...]
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
seconds=${1:-60}
shift || true
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
	for file in fuzz_targets/*.rs; do
		targets+=("$(basename "$file" .rs)")
	done
fi
flags="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
flags+=" -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
# Finds magic numbers. The targets `analysis` and `commands` make their traces of any bytes, and take twice as
# long with it.
compares=" -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
host=$(rustc -vV | sed -n 's/^host: //p')
status=0
for target in "${targets[@]}"; do
	built=target
	more=$compares
	if [ "$target" = analysis ] || [ "$target" = commands ]; then
		built=target/analysis
		more=
	fi
	# With --target the flags are not for build scripts.
	CARGO_TARGET_DIR=$built RUSTFLAGS=$flags$more \
		cargo build --locked --release --target "$host" --bin "$target"
	mkdir -p "target/found/$target" "target/artifacts/$target"
	# These two have a limit of CPU time of their own (fuzz/src/limit.rs): -timeout is the time of the day.
	# Without -entropic=0, weighing 80,000 features takes longer than the reports.
	echo "+ $target, $seconds s"
	"$built/$host/release/$target" "target/found/$target" "corpus/$target" \
		-max_total_time="$seconds" -entropic=0 -rss_limit_mb=2048 -timeout=100 -max_len=100000 -print_final_stats=1 \
		${FUZZ_SEED:+-seed=$FUZZ_SEED} -artifact_prefix="target/artifacts/$target/" >"target/$target.log" 2>&1 || status=1
	grep -E "stat::number_of_executed_units|stat::peak_rss_mb|SUMMARY|panicked|^(Test unit|artifact)" "target/$target.log" || tail -5 "target/$target.log"
done
exit "$status"
