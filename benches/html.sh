#!/usr/bin/env bash
# The page of a large recording: its size, the time to render it, and in a browser the time
# to the first view and the frame rate of zooming and panning.
# Usage: html.sh [PAGE.html]; without a page a large one is made.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
page=${1:-}
if [ -z "$page" ]; then
	page=${CARGO_TARGET_DIR:-target}/large.html
	cargo bench --locked -p tr-report --bench html -- "$PWD/$page"
fi
CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser)} \
	node crates/report/web/test/speed.mjs "$(realpath "$page")"
