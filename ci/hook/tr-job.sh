# Records every job of a machine or an image; no workflow is changed. Once, by whoever runs the machines:
#
#     BASH_ENV=/opt/tr/tr-job.sh                           any CI whose steps are bash: the first one, to its end
#     ACTIONS_RUNNER_HOOK_JOB_STARTED=/opt/tr/tr-job.sh    GitHub's runner (its file .env): the whole job
#
# Needs bash, the right to use BPF (or TR_SUDO=true and a sudo that asks for no password), and tr-trace on PATH or its path
# in TR_PROGRAM. Recordings go to TR_RECORDINGS (/var/tmp/tr-recordings-UID); the newest TR_KEEP (50) stay. A job does not
# fail by it, and its log has no word of it: the reason why there is no recording is in the file .log beside.
# shellcheck shell=bash
#
# bash -x traces this file, too, unless its errors go nowhere. [[ leaves $_ as it is.
if [[ -z ${TR_JOB-} ]]; then
	tr_job() {
		(
			set +euf
			# A program of ours that is a script of bash has the hook as well.
			export TR_JOB=1
			# A lock or a pipe of the job is not the recorder's: who waits for its end would wait for the recorder.
			for fd in "/proc/$BASHPID/fd/"*; do
				if [ "${fd##*/}" -gt 2 ]; then eval "exec ${fd##*/}>&-"; fi
			done
			pid=$$
			if [ "$1" = "$0" ]; then
				# Executed, by the runner's worker or a process below it.
				pid=$PPID
				while [ "$pid" -gt 1 ] && [ "$(cat "/proc/$pid/comm")" != Runner.Worker ]; do
					pid=$(sed 's/.*) . \([0-9]*\) .*/\1/' "/proc/$pid/stat")
				done
				[ "$pid" -gt 1 ] || exit 0
			fi
			# As in ci/tr-run.sh.
			tr_version() {
				tr_answer=$("$1" --version 2>/dev/null </dev/null) || return 1
				case $tr_answer in
				'tr '[0-9]* | 'tr-trace '[0-9]*) echo "${tr_answer#* }" ;;
				*) return 1 ;;
				esac
			}
			tr=$(command -v "${TR_PROGRAM:-tr-trace}")
			dir=${TR_RECORDINGS:-/var/tmp/tr-recordings-$UID}
			# shellcheck disable=SC2174 # The parents are /var/tmp, or the administrator's.
			[ -n "$tr" ] && mkdir -p -m 700 "$dir" && [ ! -L "$dir" ] && [ -O "$dir" ] || exit 0
			# The oldest ones, also those that have a log alone.
			# shellcheck disable=SC2010 # By age, and their names are ours.
			ls -1t "$dir" | grep '\.log$' | tail -n "+${TR_KEEP:-50}" | while read -r old; do
				rm -f "$dir/$old" "$dir/${old%.log}.bin"
			done
			file=$dir/$(date +%Y%m%d-%H%M%S)-$pid
			# The runner ends what has its mark when the job is over; the recorder ends with the job itself.
			unset RUNNER_TRACKING_ID
			sudo=
			if [ "${TR_SUDO-}" = true ]; then sudo=--sudo; fi
			if ! tr_version "$tr"; then
				echo "$tr is not tr or cannot run here" >"$file.log"
				exit 0
			fi
			setsid "$tr" record --quiet --output "$file.bin" $sudo --pid "$pid" >"$file.log" 2>&1 &
			recorder=$!
			# A wait without a program: the recording would have its sleep as one of the job.
			exec {silent}<> <(:)
			for _ in {1..200}; do
				if [ -e "$file.bin" ] || ! kill -0 "$recorder"; then break; fi
				read -rt 0.01 -u "$silent" || :
			done
		) </dev/null >/dev/null || :
		export TR_JOB=1
		unset -f tr_job
		: "$2"
	}
	tr_job "${BASH_SOURCE[0]}" "$_"
fi 2>/dev/null
