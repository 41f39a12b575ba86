#!/usr/bin/env bash
# Makes target/python, a virtual environment with the packages of tests/requirements.txt: DuckDB and Spark,
# with which the tests ask datasets, and OpenTelemetry's classes, by which they read exports. Does nothing if it
# is up to date.
set -euo pipefail
cd "$(dirname "$0")/.."
to=$(realpath -m "${CARGO_TARGET_DIR:-target}")/python
wanted=$(cat tests/requirements.txt fleet/requirements.txt)
if [ "$wanted" = "$(cat "$to/wanted" 2>/dev/null)" ]; then exit; fi
# The first python3 on PATH may lack venv.
for python in python3 /usr/bin/python3; do
	"$python" -c 'import ensurepip, venv' 2>/dev/null && break
done
rm -rf "$to"
mkdir -p "$(dirname "$to")"
"$python" -m venv "$to"
"$to/bin/pip" install --quiet --disable-pip-version-check -r tests/requirements.txt
printf '%s\n' "$wanted" >"$to/wanted"
