#!/usr/bin/env bash
# rust-version in Cargo.toml is true: no package in Cargo.lock needs a newer Rust, those
# of the tests included, and everything builds with it where rustup has it. The lint
# incompatible_msrv holds our own use of the standard library to it.
set -euo pipefail
cd "$(dirname "$0")/.."
msrv=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
newest=$(scripts/cargo.sh metadata --locked --format-version 1 | grep -o '"rust_version":"[^"]*"' | cut -d'"' -f4 | sort -V | tail -1)
if [ "$(printf '%s\n' "$msrv" "$newest" | sort -V | tail -1)" != "$msrv" ]; then
	echo "msrv: a package in Cargo.lock needs Rust $newest, Cargo.toml says $msrv" >&2
	exit 1
fi
echo "msrv: no package in Cargo.lock needs more than Rust $newest"
if rustup toolchain list 2>/dev/null | grep -q "^$msrv[.-]"; then
	cargo "+$msrv" check --locked --workspace --all-targets
else
	echo "msrv: building with Rust $msrv is skipped: rustup does not have it"
fi
