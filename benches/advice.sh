#!/bin/bash
# Makes the change that `--report advice` proposes for builds of fixtures/advice, and measures
# the gain in alternating pairs beside the bound that a recording of the build gives.
#
# usage: benches/advice.sh [TR [PAIRS]]    (default: target/release/tr, 5)
set -euo pipefail
cd "$(dirname "$0")/.."
tr=$(realpath "${1:-target/release/tr}")
pairs=${2:-5}
builds=$PWD/fixtures/advice/builds.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Makes the change in the working directory; prints the new command if it is another.
change() {
    case $1 in
        link) sed -i 's/-no-pie/-no-pie -fuse-ld=gold/' Makefile ;;
        big-last) sed -i 's/^app: \(.*\) zbig.o/app: zbig.o \1/' Makefile ;;
        configure) ./configure ;;
        make-j1) echo make -s -j2 ;;
        tests-prove) echo prove -Q -j2 t ;;
        sleep) sed -i 's/^sleep 1//' test.sh ;;
        repeated-compiler) sed -i '/^release:$/,$ { /\$(CC)/d }' Makefile ;;
        short) printf 'seq 900 | tail -1 >/dev/null\n' >count.sh ;;
        lock) sed -i 's/flock db.lock //' Makefile ;;
    esac
}

seconds() { # a run of a copy of directory $1, with the command $2...
    local copy=$work/run
    rm -rf "$copy"
    cp -a "$work/$1" "$copy"
    shift
    (cd "$copy" && /usr/bin/python3 - "$@" <<'PY'
import subprocess, sys, time
start = time.monotonic()
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(time.monotonic() - start)
PY
    )
}

printf '%-18s %9s %9s %9s %9s\n' build before after gain 'at most'
for name in link big-last configure make-j1 tests-prove sleep repeated-compiler short lock; do
    mkdir "$work/before"
    (cd "$work/before" && "$builds" prepare "$name" >/dev/null 2>&1)
    cp -a "$work/before" "$work/after"
    read -r -a changed < <(cd "$work/after" && change "$name" 2>/dev/null) || true
    [ ${#changed[@]} -gt 0 ] || changed=("$builds" run "$name")
    cp -a "$work/before" "$work/traced"
    (cd "$work/traced" && "$tr" record -q -o "$work/trace.bin" -- "$builds" run "$name" >/dev/null 2>&1)
    bound=$("$tr" analyze "$work/trace.bin" --report advice --format json |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["advice"]["advice"][0]["gain_at_most_ns"] / 1e9)')
    for _ in $(seq "$pairs"); do
        echo "$(seconds before "$builds" run "$name") $(seconds after "${changed[@]}")"
    done >"$work/times"
    python3 - "$name" "$bound" "$work/times" <<'PY'
import statistics, sys
name, bound, file = sys.argv[1], float(sys.argv[2]), sys.argv[3]
pairs = [tuple(map(float, line.split())) for line in open(file)]
before, after = (statistics.median(times) for times in zip(*pairs))
gain = statistics.median(b - a for b, a in pairs)
print(f"{name:18} {before:7.2f} s {after:7.2f} s {gain:7.2f} s {bound:7.2f} s")
PY
    rm -rf "$work/before" "$work/after" "$work/traced"
done
