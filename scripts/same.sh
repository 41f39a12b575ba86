#!/usr/bin/env bash
# Compares what two builds of tr write about the fixtures: every report in every format, every export, the page,
# forecasts, summaries, and comparisons of neighbouring recordings. It prints the command of each difference in
# standard output, standard error, exit status or written file, and fails if there is one.
#
#   same.sh OLD_TR NEW_TR [FIXTURE...]    KEEP=DIR keeps both outputs of each command that differs
set -euo pipefail
cd "$(dirname "$0")/.."
old=$(realpath "$1")
new=$(realpath "$2")
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export old new work KEEP="${KEEP-}"
fixtures=("$@")
if [ ${#fixtures[@]} -eq 0 ]; then mapfile -t fixtures < <(git ls-files 'fixtures/**/*.bin'); fi
mapfile -t reports < <("$new" analyze --help | sed -n '/--report/,/--top/s/^ *- \([a-z-]*\):.*/\1/p')
mapfile -t exports < <("$new" export --help | sed -n '/--format/,/--output/s/^ *- \([a-z-]*\):.*/\1/p' | grep -vx 'parquet\|junit')

# The commands, a line each, without the name of the program. OUT stands for a file that the command writes.
commands() {
	local fixture previous='' name
	for fixture; do
		for name in "${reports[@]}"; do
			for format in text json csv markdown; do
				# CSV is a format of one report.
				[ "$name $format" = 'all csv' ] || echo "analyze $fixture --report $name --format $format --width 100"
			done
		done
		for name in thread program cgroup depth step; do echo "analyze $fixture --by $name --width 60"; done
		echo "analyze $fixture --from 0.1 --to 0.5 --width 80"
		for name in "${exports[@]}"; do echo "export $fixture --format $name -o OUT"; done
		echo "export $fixture --format parquet -o OUT"
		echo "report $fixture -o OUT"
		echo "predict $fixture --cpus 4 --jobs 4 --table"
		echo "predict $fixture --cpus 4 --jobs 4 --format json"
		for name in text json; do echo "summary $fixture --format $name"; done
		echo "info $fixture --format json"
		echo "verify $fixture"
		echo "dump $fixture --format ndjson"
		if [ "${fixture%/*}" = "${previous%/*}" ]; then
			for name in text json; do echo "diff $previous $fixture --format $name"; done
			echo "diff $previous $fixture --format html -o OUT"
		fi
		previous=$fixture
	done
}

# compare LINE: runs the line's command with both programs.
compare() {
	local side program line=$1 dir
	dir=$(mktemp -d -p "$work")
	for side in old new; do
		program=${!side}
		mkdir -p "$dir/$side"
		# The same directory for both: a path may be written.
		rm -rf "$dir/OUT"
		status=0
		# shellcheck disable=SC2086 # the words of the line are the arguments
		timeout 120 "$program" ${line//OUT/$dir/OUT} >"$dir/$side/stdout" 2>"$dir/$side/stderr" </dev/null || status=$?
		echo "$status" >"$dir/$side/status"
		if [ -e "$dir/OUT" ]; then mv "$dir/OUT" "$dir/$side/file"; fi
	done
	if diff -rq "$dir/old" "$dir/new" >"$dir/differs"; then
		rm -rf "$dir"
		return
	fi
	echo "differs: tr $line ($(sed -n 's|^Files .*/new/\(.*\) differ$|\1|p' "$dir/differs" | paste -sd ' '))" | tee -a "$work/differences"
	if [ -n "$KEEP" ]; then
		mkdir -p "$KEEP"
		echo "$line" >"$dir/line"
		mv "$dir" "$KEEP"
	fi
}
export -f compare
commands "${fixtures[@]}" >"$work/commands"
xargs -d '\n' -P "$(nproc)" -I LINE bash -c 'compare "$1"' compare LINE <"$work/commands"
count=$(wc -l <"$work/commands")
if [ -e "$work/differences" ]; then
	echo "same: $(wc -l <"$work/differences") of $count commands differ"
	exit 1
fi
echo "same: $count commands, equal bytes"
