#!/usr/bin/env bash
# Checks the lower bounds in the Cargo.toml files: the workspace compiles with the oldest version of each direct
# dependency that they allow. Works on a copy of the committed and changed files, and needs the package registry.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$work"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/minimal-versions
cd "$work"
# The option is unstable in cargo; the compiler stays the stable one.
RUSTC_BOOTSTRAP=1 cargo update -Z direct-minimal-versions
cargo check --locked --workspace --all-targets
echo "minimal-versions: the workspace compiles with the oldest direct dependencies"
