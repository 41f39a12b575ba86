#!/usr/bin/env bash
# Makes target/python, a virtual environment with the Python packages of tests/requirements.txt, by which
# tests read our exports. Does nothing if it is up to date.
set -euo pipefail
cd "$(dirname "$0")/.."
to=$(realpath -m "${CARGO_TARGET_DIR:-target}")/python
wanted=tests/requirements.txt
if cmp -s "$wanted" "$to/requirements.txt"; then exit; fi
rm -rf "$to"
mkdir -p "$(dirname "$to")"
python3 -m venv "$to"
"$to/bin/pip" install --quiet --disable-pip-version-check -r "$wanted"
cp "$wanted" "$to/requirements.txt"
