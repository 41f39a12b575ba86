#!/usr/bin/env bash
# Checks that tr compiles without warnings without its features, and with each of them alone.
set -euo pipefail
cd "$(dirname "$0")/.."
bad=0
for feature in '' record report import compare predict export mcp; do
	out=$(scripts/cargo.sh check --locked --quiet --no-default-features --features "$feature" --bin tr 2>&1) || bad=1
	if [ -n "$out" ]; then
		printf 'features: only %s:\n%s\n' "${feature:-none}" "$out" >&2
		bad=1
	fi
done
[ "$bad" -eq 0 ] && echo "features: each compiles alone"
exit "$bad"
