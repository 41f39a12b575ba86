# Shell functions: marks of a recording by `tr-trace record`, from any POSIX shell.
#
#     . integrations/tr-marks.sh
#     tr_step 'unit tests' make check
#     tr_begin deploy; ./push.sh; tr_end deploy
#
# They write to the file of the recorder that runs, and do nothing without one. `tr-trace mark` does the
# same by an exec; these also work where the tr on PATH is the system's. date(1) must know %N.
# shellcheck shell=sh

tr_step() {
    tr_name=$1
    shift
    tr_begin "$tr_name"
    "$@"
    set -- "$?"
    tr_end "$tr_name"
    return "$1"
}

tr_begin() {
    [ -z "${TR_MARKS-}" ] || tr_mark begin "$1"
}

tr_end() {
    [ -z "${TR_MARKS-}" ] || tr_mark end "$1"
}

# A line of JSON. Backslashes, quotes and controls of the name are replaced: they would need escapes.
tr_mark() {
    tr_safe=$(printf %s "$2" | LC_ALL=C sed 's/["\\[:cntrl:]]/_/g' | LC_ALL=C paste -sd _ -)
    printf '{"real":%s,"name":"%s","ev":"%s","pid":%s}\n' "$(date +%s%N)" "$tr_safe" "$1" "$$" \
        >>"$TR_MARKS" 2>/dev/null || :
}
