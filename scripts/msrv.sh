#!/usr/bin/env bash
# Checks rust-version in Cargo.toml: no package in Cargo.lock, tests included, needs a newer
# Rust, and the workspace builds with it if rustup has it. Our use of the standard library is
# checked by the lint incompatible_msrv.
set -euo pipefail
cd "$(dirname "$0")/.."
msrv=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
newest=$(scripts/cargo.sh metadata --locked --format-version 1 | grep -o '"rust_version":"[^"]*"' | cut -d'"' -f4 | sort -V | tail -1)
if [ "$(printf '%s\n' "$msrv" "$newest" | sort -V | tail -1)" != "$msrv" ]; then
	echo "msrv: a package in Cargo.lock needs Rust $newest, Cargo.toml says $msrv" >&2
	exit 1
fi
echo "msrv: no package in Cargo.lock needs more than Rust $newest"
if rustup toolchain list 2>/dev/null | grep -q "^${msrv}[.-]"; then
	cargo "+$msrv" check --locked --workspace --all-targets
else
	echo "msrv: building with Rust $msrv is skipped: rustup does not have it"
fi
