#!/usr/bin/env bash
# Checks the layout and the common mistakes of what is not Rust: Python by ruff, JavaScript and TypeScript by prettier, C by
# clang-format, shell scripts by shellcheck. scripts/setup.sh installs the four; one that is missing is skipped and named.
#
#   lint.sh          prints what differs, and fails then
#   lint.sh --fix    lays the files out anew
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$(realpath -m "${CARGO_TARGET_DIR:-target}")/python/bin
prettier=crates/report/web/node_modules/prettier/bin/prettier.cjs
ruff_check=() ruff_format=(--check) clang_format=(--dry-run --Werror) prettier_option=--check
case ${1-} in
--fix) ruff_check=(--fix) ruff_format=() clang_format=(-i) prettier_option=--write ;;
"") ;;
*)
	sed -n 's/^#   //p' "$0" >&2
	exit 2
	;;
esac
status=0
failed() {
	echo "lint: $1" >&2
	status=1
}
skipped() { echo "lint: skipped: no $1 (scripts/setup.sh installs it)" >&2; }
# The files of the repository whose path matches $1. Those below `dist` are generated, and the demo project is recorded as it
# is.
files() { git ls-files | grep -E "$1" | grep -Ev '/dist/|^fixtures/demo/' || true; }

if [ -x "$tools/ruff" ]; then
	"$tools/ruff" check --quiet "${ruff_check[@]}" . || failed "ruff found mistakes"
	"$tools/ruff" format --quiet "${ruff_format[@]}" . || failed "Python: make fmt lays these files out"
else
	skipped ruff
fi
if command -v node >/dev/null && [ -e $prettier ]; then
	files '\.(ts|mjs|js)$' | xargs node $prettier --log-level warn $prettier_option || failed "JavaScript: make fmt lays these files out"
else
	skipped prettier
fi
if [ -x "$tools/clang-format" ]; then
	files '\.[ch]$' | xargs -r "$tools/clang-format" "${clang_format[@]}" || failed "C: make fmt lays these files out"
else
	skipped clang-format
fi
if command -v shellcheck >/dev/null; then
	scripts=$(files '\.sh$'; git grep -lE '^#!.*(bash|/sh)$' -- ':!*.sh' ':!*.rs' ':!*.py' ':!*.md' ':!*.txt' ':!fixtures/demo')
	xargs shellcheck --external-sources --severity=warning <<<"$scripts" || failed "shellcheck found mistakes"
else
	skipped shellcheck
fi
exit $status
