#!/usr/bin/env bash
# The page of `tr report`: its sources are crates/report/web/src, its bundle,
# crates/report/web/dist, is checked in so that building tr needs no Node.
# Usage: web.sh build|check|screenshots
#   build        bundles anew
#   check        checks the types, and that the bundle is up to date
#   screenshots  makes pictures of the page of the fixture demo.bin
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
web=$root/crates/report/web
if ! command -v node >/dev/null || [ ! -d "$web/node_modules/esbuild" ]; then
	echo "web: skipped: no Node, or no packages for it (scripts/setup.sh installs them)" >&2
	[ "$1" = check ] && exit 0
	exit 1
fi
types() { node node_modules/typescript/bin/tsc --noEmit; }
case $1 in
build)
	(cd "$web" && types && node build.mjs dist)
	;;
check)
	fresh=$(mktemp -d)
	trap 'rm -rf "$fresh"' EXIT
	(cd "$web" && types && node build.mjs "$fresh")
	if ! diff -rq "$fresh" "$web/dist"; then
		echo "web: dist is out of date: run make web" >&2
		exit 1
	fi
	echo "web: the bundle is up to date"
	;;
screenshots)
	tr=${CARGO_TARGET_DIR:-target}/release/tr
	page=$(mktemp -d)
	trap 'rm -rf "$page"' EXIT
	"$tr" report fixtures/traces/demo.bin -o "$page/demo.html"
	CHROMIUM=${CHROMIUM:-$(command -v chromium-headless-shell || command -v chromium || command -v chromium-browser)} \
		node "$web/test/screenshots.mjs" "$page/demo.html" "$root/docs"
	;;
*)
	echo "usage: web.sh build|check|screenshots" >&2
	exit 2
	;;
esac
