#!/usr/bin/env bash
# Builds the tests, runs their executables, and prints the reasons for skipped tests and a line
# of counts. Those that measure run one after the other, others beside them.
#
#   test.sh                   as the calling user; tests that record run as root, through
#                             sudo if available
#   test.sh --without-record  the same for a tr without tr record
#   test.sh --unprivileged    as nobody, without capabilities and without a way to gain any: those
#                             that record, write or ask the kernel; no right changes the others
#
# LIMIT (s, default 1800) is an executable's time. TR_LONG: all rounds and cases.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
home=$PWD
. scripts/rights.sh
# make's own: a make that a test starts would say which directory it enters, and keep going.
unset MAKEFLAGS MAKELEVEL MFLAGS
limit=${LIMIT:-1800}
# So many run at once: they wait for much of their time.
slots=3
mode=${1-}
mkdir -p "${CARGO_TARGET_DIR:-target}/tmp"
target=$(realpath "${CARGO_TARGET_DIR:-target}")
# Executables that need the right to trace.
records='/(ci|record|recorder|loss|waits)-[0-9a-f]+$'
# Those that measure, or load the machine; of the first the tests `alone`. TR_TESTS says which run.
measures=(recorder record loss waits)
# Those that record nothing in the kernel run beside these; then the longest; then the rest.
first=(html fleet export simulated hostile lies reports recorder ci)
examples='the examples of the documentation'
# Those that record, write or ask the kernel: nobody's tests.
starts='/(ci|command_line|imports|loss|marks|outputs|passthrough|record|recorder|tr|tr_bpf|tr_output|tr_record|tr_symbols|untraced|waits)-[0-9a-f]+$'
as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs)

packages=(--workspace)
if [ "$mode" = --without-record ]; then
	echo "test: without tr record; its tests are left out: the packages above are missing"
	packages=(--no-default-features -p tr -p tr-trace-format -p tr-analyze -p tr-report -p tr-import -p tr-sim)
fi

# The working directory of each executable, and its path.
build() {
	scripts/cargo.sh test --locked "${packages[@]}" --no-run --message-format=json-render-diagnostics |
		sed -n 's|.*"manifest_path":"\([^"]*\)/Cargo.toml".*"test":true},"features".*"executable":"\([^"]*\)".*|\1\t\2|p'
}

# open DIRECTORY...: makes these accessible to all users in this mount namespace. An ancestor
# closed to others keeps no other entry.
open() {
	local place path part held=()
	for place; do
		held+=("$(mktemp -d)")
		mount --bind "$place" "${held[-1]}"
	done
	for place; do
		path=
		while read -r part; do
			path=$path/$part
			"${as_nobody[@]}" test -x "$path" || mount -t tmpfs -o mode=755 none "$path"
			mkdir -p "$path"
		done < <(tr / '\n' <<<"${place#/}")
		mount --move "${held[0]}" "$place"
		held=("${held[@]:1}")
	done
}

case $mode in
--unprivileged)
	if [ "$(id -u)" -ne 0 ]; then
		echo "test: only root can become nobody" >&2
		exit 1
	fi
	tests=$(mktemp)
	build >"$tests"
	exec unshare --mount "$PWD/scripts/test.sh" --as-nobody "$tests"
	;;
--as-nobody)
	tests=$2
	grep -E "$starts" "$tests" >"$tests.own"
	mv "$tests.own" "$tests"
	open "$PWD" "$target"
	cd "$home"
	mount -t tmpfs -o mode=1777 none "$target/tmp"
	user=("${as_nobody[@]}")
	root=("${as_nobody[@]}")
	export HOME=/nonexistent
	;;
*)
	tests=$(mktemp)
	build >"$tests"
	user=()
	root=()
	if [ "$(id -u)" -ne 0 ]; then
		as_root "to run the tests that record: they need CAP_BPF and CAP_PERFMON" || root=()
		[ ${#root[@]} -eq 0 ] || root+=(env "PATH=$PATH:/usr/sbin:/sbin" ${TR_LONG+"TR_LONG=$TR_LONG"}) # setcap is there
	elif [ "${SUDO_UID:-0}" -ne 0 ] && [ "$(stat -c %u .)" = "$SUDO_UID" ]; then
		user=(sudo -u "#$SUDO_UID" -H env "PATH=$PATH" ${TR_LONG+"TR_LONG=$TR_LONG"})
	fi
	[ ${#root[@]} -eq 0 ] && [ "$(id -u)" -ne 0 ] || root+=(env -u SUDO_UID -u SUDO_GID -u SUDO_USER -u SUDO_COMMAND)
	;;
esac

log=$(mktemp)
parts=$(mktemp -d)
# Not a pipe: a leftover process of a test would hold it open, and `tee` would block.
tail -f -n +1 "$log" &
tail=$!
disown
# Gives the files of root's tests back to the user.
give_back() {
	if [ "$mode" = --as-nobody ]; then
		return
	elif [ ${#user[@]} -gt 0 ]; then
		chown -R "$SUDO_UID:$SUDO_GID" "$target/tmp"
	elif [ ${#root[@]} -gt 0 ] && [ "$(id -u)" -ne 0 ]; then
		"${root[@]}" chown -R "$(id -u):$(id -g)" "$target/tmp"
	fi
}
trap 'rm -rf "$log" "$parts" "$tests"; kill "$tail" 2>/dev/null || true; give_back' EXIT
status=0
broken=0
again=0
# prepare DIRECTORY EXECUTABLE [PART]: sets `name` and `command`, and goes there.
prepare() {
	name=${2##*/}${3:+.$3}
	command=("${user[@]}" "$2")
	if [ "$2" = "$examples" ]; then
		command=(scripts/cargo.sh test --locked "${packages[@]}" --doc)
	elif [[ $2 =~ $records ]]; then
		command=("${root[@]}" ${3:+env "TR_TESTS=$3"} "$2")
	fi
	cd "$1"
}
mkfifo "$parts/ended"
exec 3<>"$parts/ended"
# start FREED: runs the command; its log and its exit status go into $parts. Its end frees so many slots.
start() {
	local code=0 begun=$SECONDS
	timeout --foreground -k 10 "$limit" "${command[@]}" >"$parts/$name" 2>&1 </dev/null 3>&- || code=$?
	echo "$code" >"$parts/$name.code"
	printf '%s\t%s\t%s\n' "$1" "$((SECONDS - begun))" "$name" >&3
}
# measure: runs those that measure, in one slot.
measure() {
	local name command dir executable part
	while IFS=$'\t' read -r dir executable part; do
		prepare "$dir" "$executable" "$part"
		start 0
	done <"$parts/measure"
	printf '1\t0\t\n' >&3
}
# reap: waits for the end of one, and shows its log.
reap() {
	local freed time name
	IFS=$'\t' read -r freed time name <&3
	running=$((running - freed))
	if [ -z "$name" ]; then return; fi
	printf '\n     Running %s: %d s\n' "$name" "$time" >>"$log"
	cat "$parts/$name" >>"$log"
}
# A fault of tr fails again; a test that the machine's other load has disturbed passes three
# times alone. At most five of an executable: more have a cause.
# alone: runs the failed tests of the command.
alone() {
	local test
	if [ "$(wc -l <"$parts/$name.failed")" -gt 5 ]; then return 1; fi
	while read -r test; do
		for _ in 1 2 3; do
			timeout --foreground -k 10 "$limit" "${command[@]}" --exact "$test" >"$parts/alone" 2>&1 </dev/null || return 1
		done
		again=$((again + 1))
		{
			echo "$test: failed once, passed three times alone. The failure's output:"
			awk -v test="---- $test" '/^---- / { on = $0 == test " ----" || $0 == test " stdout ----" }
				/^failures:$|^test result: / { on = 0 } on' "$parts/$name"
		} >>"$parts/again"
	done <"$parts/$name.failed"
}
# judge: an executable that ends without a result has failed.
judge() {
	local code
	read -r code <"$parts/$name.code"
	if [ "$code" -eq 0 ]; then return; fi
	sed -n 's/^test \(.*[^ ]\) *\.\.\. FAILED$/\1/p' "$parts/$name" >"$parts/$name.failed"
	if grep -q '^test result: ' "$parts/$name"; then
		if [ -s "$parts/$name.failed" ] && alone; then return; fi
	else
		broken=$((broken + 1))
		echo "$name: FAILED: no result, exit status $code (124: not done in $limit s)" >>"$log"
	fi
	status=1
}
# run: runs all executables, and judges them.
run() {
	local name command dir executable part running=1
	measure &
	while IFS=$'\t' read -r dir executable part; do
		while [ "$running" -ge "$slots" ]; do reap; done
		prepare "$dir" "$executable" "$part"
		start 1 &
		running=$((running + 1))
	done <"$parts/others"
	while [ "$running" -gt 0 ]; do reap; done
	while IFS=$'\t' read -r dir executable part; do
		prepare "$dir" "$executable" "$part"
		judge
	done < <(cat "$parts/measure" "$parts/others")
	cd "$home"
}
# list NAME...: these executables, in this order.
list() {
	local name
	for name; do grep -E "/$name-[0-9a-f]+\$" "$tests" || true; done
}
# The tests that sudo starts first, while it remembers the password.
list "${measures[@]}" | sed '/\/recorder-/s/$/\talone/' >"$parts/measure"
list "${first[@]}" | sed '/\/recorder-/s/$/\tbeside/' >"$parts/others"
list "${measures[@]}" "${first[@]}" | { grep -vxFf - "$tests" || true; } >>"$parts/others"
if [ "$mode" != --as-nobody ]; then printf '%s\t%s\n' "$home" "$examples" >>"$parts/others"; fi
run
sleep 1.1 # tail looks once a second where inotify is missing
kill "$tail"
reasons=$(grep -o '(skipped: .*)' "$log" | sort | uniq -c || true)
[ -z "$reasons" ] || printf '\n%s\n' "$reasons"
count() { sed -n "s/^test result: .* \\([0-9]*\\) $1;.*/\\1/p" "$log" | awk '{ n += $1 } END { print n + 0 }'; }
if [ -e "$parts/again" ]; then cat "$parts/again"; fi
echo "$(($(count passed) + again)) passed, $(($(count failed) + broken - again)) failed, $(count ignored) skipped"
exit "$status"
