#!/usr/bin/env bash
# Makes target/fleet-venv, a Python environment with DuckDB and Spark, with which the tests ask
# datasets of runs. Does nothing if it is there.
set -euo pipefail
cd "$(dirname "$0")/.."
to=$(realpath -m "${CARGO_TARGET_DIR:-target}")/fleet-venv
if cmp -s fleet/requirements.txt "$to/requirements.txt"; then exit; fi
# The first python3 on PATH may lack venv.
for python in python3 /usr/bin/python3; do
	"$python" -c 'import ensurepip, venv' 2>/dev/null && break
done
rm -rf "$to"
"$python" -m venv "$to"
"$to/bin/pip" install --quiet --disable-pip-version-check -r fleet/requirements.txt
cp fleet/requirements.txt "$to/requirements.txt"
