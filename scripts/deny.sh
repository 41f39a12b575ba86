#!/usr/bin/env bash
# Checks the packages in Cargo.lock by deny.toml: licences, duplicates, sources; with --advisories also known
# vulnerabilities, whose database it downloads. Skipped where cargo-deny is not installed.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! scripts/cargo.sh deny --version >/dev/null 2>&1; then
	echo "deny: skipped: cargo-deny is not installed (cargo install --locked cargo-deny)"
elif [ "${1-}" = --advisories ]; then
	scripts/cargo.sh deny --locked check advisories licenses bans sources
else
	scripts/cargo.sh deny --locked --offline check licenses bans sources
fi
