#!/usr/bin/env bash
# Builds the tests, runs their executables one after the other, and prints the reasons for
# skipped tests and a line of counts.
#
#   test.sh                   as the calling user; tests that record run as root, through
#                             sudo if available
#   test.sh --without-record  the same for a tr without tr record
#   test.sh --unprivileged    as nobody, without capabilities and without a way to gain any; without
#                             the page's tests in a browser, which no right changes
#
# LIMIT (s, default 1800) is an executable's time.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
home=$PWD
. scripts/rights.sh
limit=${LIMIT:-1800}
mode=${1-}
mkdir -p "${CARGO_TARGET_DIR:-target}/tmp"
target=$(realpath "${CARGO_TARGET_DIR:-target}")
# Executables that need the right to trace.
records='/(ci|record|recorder|loss|waits)-[0-9a-f]+$'
as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs)

packages=(--workspace)
if [ "$mode" = --without-record ]; then
	echo "test: without tr record; its tests are left out: the packages above are missing"
	packages=(--no-default-features -p tr -p tr-format -p tr-analyze -p tr-report -p tr-import -p tr-sim)
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
	# Three minutes, which make test has as well.
	sed -i '\|/html-[0-9a-f]*$|d' "$tests"
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
		[ ${#root[@]} -eq 0 ] || root+=(env "PATH=$PATH:/usr/sbin:/sbin") # setcap is there
	elif [ "${SUDO_UID:-0}" -ne 0 ] && [ "$(stat -c %u .)" = "$SUDO_UID" ]; then
		user=(sudo -u "#$SUDO_UID" -H env "PATH=$PATH")
	fi
	[ ${#root[@]} -eq 0 ] && [ "$(id -u)" -ne 0 ] || root+=(env -u SUDO_UID -u SUDO_GID -u SUDO_USER -u SUDO_COMMAND)
	;;
esac

log=$(mktemp)
# Not a pipe: a leftover process of a test would hold it open, and `tee` would block.
tail -f -n +1 "$log" &
tail=$!
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
trap 'rm -f "$log" "$log.alone" "$log.failed" "$tests"; kill "$tail" 2>/dev/null || true; give_back' EXIT
status=0
broken=0
again=0
# A fault of tr fails again; a test that the machine's other load has disturbed passes three
# times alone. At most five of an executable: more have a cause.
# alone FILE EXECUTABLE...: runs the failed tests that FILE names.
alone() {
	local names=$1 test
	shift
	if [ "$(wc -l <"$names")" -gt 5 ]; then return 1; fi
	while read -r test; do
		for _ in 1 2 3; do
			timeout --foreground -k 10 "$limit" "$@" --exact "$test" </dev/null || return 1
		done >>"$log.alone" 2>&1
		echo "$test: failed once, passed three times alone" >>"$log"
		again=$((again + 1))
	done <"$names"
}
# run NAME COMMAND...: one executable; one that ends without a result has failed.
run() {
	local name=$1 code=0 before after from
	shift
	before=$(grep -c '^test result: ' "$log" || true)
	from=$(($(wc -l <"$log") + 1))
	printf '\n     Running %s\n' "$name" >>"$log"
	timeout --foreground -k 10 "$limit" "$@" >>"$log" 2>&1 </dev/null || code=$?
	after=$(grep -c '^test result: ' "$log" || true)
	if [ "$code" -eq 0 ]; then return; fi
	tail -n "+$from" "$log" | sed -n 's/^test \(.*[^ ]\) *\.\.\. FAILED$/\1/p' >"$log.failed"
	if [ "$after" -gt "$before" ] && [ -s "$log.failed" ] && alone "$log.failed" "$@"; then return; fi
	status=1
	if [ "$after" -eq "$before" ]; then
		broken=$((broken + 1))
		echo "$name: FAILED: no result, exit status $code (124: not done in $limit s)" >>"$log"
	fi
}
# The recording tests first, while sudo remembers the password.
while IFS=$'\t' read -r dir executable; do
	as=("${user[@]}")
	if [[ $executable =~ $records ]]; then as=("${root[@]}"); fi
	cd "$dir"
	run "${executable##*/}" "${as[@]}" "$executable"
done < <(grep -E "$records" "$tests" || true; grep -vE "$records" "$tests")
cd "$home"
if [ "$mode" != --as-nobody ]; then
	run "the examples of the documentation" scripts/cargo.sh test --locked "${packages[@]}" --doc
fi
sleep 1.1 # tail looks once a second where inotify is missing
kill "$tail"
reasons=$(grep -o '(skipped: .*)' "$log" | sort | uniq -c || true)
[ -z "$reasons" ] || printf '\n%s\n' "$reasons"
count() { sed -n "s/^test result: .* \\([0-9]*\\) $1;.*/\\1/p" "$log" | awk '{ n += $1 } END { print n + 0 }'; }
grep ': failed once, passed three times alone$' "$log" || true
echo "$(($(count passed) + again)) passed, $(($(count failed) + broken - again)) failed, $(count ignored) skipped"
exit "$status"
