#!/usr/bin/env bash
# Makes target/python, a virtual environment with the packages of tests/requirements.txt: DuckDB, with which the
# tests query datasets, OpenTelemetry's classes, by which they read exports, and the programs that lay out Python and C.
# Does nothing if it is up to date.
#
#   python.sh [long]    long: also those of tests/requirements-long.txt: Spark
set -euo pipefail
cd "$(dirname "$0")/.."
to=$(realpath -m "${CARGO_TARGET_DIR:-target}")/python
few=$(cat fleet/requirements.txt tests/requirements.txt)
all=$few$'\n'$(cat tests/requirements-long.txt)
case ${1-} in
long) file=tests/requirements-long.txt wanted=$all ;;
*) file=tests/requirements.txt wanted=$few ;;
esac
have=$(cat "$to/wanted" 2>/dev/null || true)
if [ "$have" = "$wanted" ] || [ "$have" = "$all" ]; then exit; fi
# The first python3 on PATH may lack venv.
for python in python3 /usr/bin/python3; do
	"$python" -c 'import ensurepip, venv' 2>/dev/null && break
done
if [ "$have" != "$few" ]; then
	rm -rf "$to"
	mkdir -p "$(dirname "$to")"
	"$python" -m venv "$to"
fi
"$to/bin/pip" install --quiet --disable-pip-version-check -r "$file"
printf '%s\n' "$wanted" >"$to/wanted"
