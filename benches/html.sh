#!/usr/bin/env bash
# The page of a large recording: its size, the time to render it, and in a browser the time
# to the first view and the frame rate of zooming and panning.
#
#   html.sh             a page of a simulated hour
#   html.sh --many N    a page of a recorded build with about N short processes, with TR (target/release/tr)
#   html.sh PAGE.html
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh test
target=${CARGO_TARGET_DIR:-target}
page=${1:-}
case $page in
'')
	page=$target/large.html
	cargo bench --locked -p tr-report --bench html -- "$PWD/$page"
	;;
--many)
	tr=$(realpath "${TR:-$target/release/tr}")
	dir=$(mktemp -d)
	trap 'rm -rf "$dir"' EXIT
	# Four processes a target beside its shell's: pipes, and a program of its own.
	{
		echo "all: $(seq -s ' ' -f unit_%g "$((${2:-25000} / 5))")"
		# shellcheck disable=SC2016 # for make
		echo 'unit_%: ; @echo $@.c | sed s/unit/object/ | /usr/bin/tr a-z A-Z >/dev/null; /bin/true $@.o'
	} >"$dir/Makefile"
	"$tr" record -o "$dir/trace.bin" -- make -s -j2 -C "$dir"
	page=$target/many.html
	"$tr" report "$dir/trace.bin" -o "$page"
	;;
esac
CHROMIUM=${CHROMIUM:-$(command -v chromium-headless-shell || command -v chromium || command -v chromium-browser)} \
	node crates/report/web/test/speed.mjs "$(realpath "$page")"
