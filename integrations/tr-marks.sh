# Shell functions: marks of a recording by `tr-trace record`, from any POSIX shell.
#
#     . integrations/tr-marks.sh
#     tr_step 'unit tests' make check
#     tr_begin deploy; ./push.sh; tr_end deploy
#
# They write to the file of the recorder that runs, and do nothing without one. `tr-trace mark` does the
# same by an exec; these also work where the tr on PATH is the system's. date(1) must know %N.
# shellcheck shell=sh

# The arguments keep the name, because a function that is the command may call tr_step, too.
tr_step() {
    tr_begin "$1"
    tr_command "$@"
    set -- "$1" "$?"
    if [ "$2" -eq 0 ]; then
        tr_end "$1" passed
    else
        tr_end "$1" failed
    fi
    return "$2"
}

tr_command() {
    shift
    "$@"
}

tr_begin() {
    [ -z "${TR_MARKS-}" ] || tr_mark begin "$1"
}

# The result (passed, failed, skipped) may be left out.
tr_end() {
    [ -z "${TR_MARKS-}" ] || tr_mark end "$1" "${2-}"
}

# A line of JSON. Backslashes, quotes and controls of the name are replaced: they would need escapes.
tr_mark() {
    tr_safe=$(printf %s "$2" | LC_ALL=C sed 's/["\\[:cntrl:]]/_/g' | LC_ALL=C paste -sd _ -)
    printf '{"real":%s,"name":"%s","ev":"%s","pid":%s%s}\n' "$(date +%s%N)" "$tr_safe" "$1" "$$" \
        "${3:+,\"result\":\"$3\"}" >>"$TR_MARKS" 2>/dev/null || :
}
