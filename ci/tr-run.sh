#!/bin/sh
# The part that all kits have in common: whether tr records a command. A kit that is a single file has copies of
# these functions, which a test compares. COMMAND runs exactly once, also where a step before it fails.
#
#     sh tr-run.sh tr_run FILE PROGRAM OPTIONS COMMAND [ARG]...

# Prints the version of a program if it is tr and runs on this machine.
tr_version() {
	tr_answer=$("$1" --version 2>/dev/null </dev/null) || return 1
	case $tr_answer in
	'tr '[0-9]* | 'tr-trace '[0-9]*) echo "${tr_answer#* }" ;;
	*) return 1 ;;
	esac
}

# The shell becomes the recorder: tr_start FILE [ARG]...
tr_start() {
	tr_file=$1
	shift
	# The options have a line each.
	IFS='
'
	set -f
	# shellcheck disable=SC2086 # words
	exec "$tr_program" record -o "$tr_file" $tr_options "$@"
}

# Whether a command is recorded beside FILE with these options; prints the reason if not.
tr_try() {
	tr_version "$tr_program" >/dev/null || { echo "$tr_program is missing, is not tr or cannot run here"; return 1; }
	mkdir -p "${tr_file%/*}" && tr_trial=$(mktemp -d "${tr_file%/*}/trial.XXXXXX") || return 1
	tr_answer=$(tr_start "$tr_trial/trace.bin" --best-effort -- echo ran) || tr_answer="tr-trace record ended with status $?"
	rm -rf "$tr_trial" "$tr_file" || return 1
	[ "$tr_answer" = ran ] || { echo "$tr_answer"; return 1; }
}

# The shell becomes COMMAND, recorded into FILE if that is possible: tr_run FILE PROGRAM OPTIONS COMMAND [ARG]...
tr_run() {
	tr_file=$1 tr_program=${2:-tr-trace} tr_options=$3
	shift 3
	# A function of the shell cannot be recorded.
	case $(command -v "$1") in */*) ;; *) "$@"; return ;; esac
	if tr_reason=$(tr_try 2>&1 </dev/null); then tr_start "$tr_file" --best-effort -- "$@"; fi
	echo "tr: the command is not recorded: $tr_reason" >&2 || :
	exec "$@"
}

"$@"
