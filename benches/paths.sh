#!/bin/bash
# Records ten builds of different kinds and prints how much of each critical path is known,
# inferred and unknown, and its largest shares. Workloads whose tools are missing are left
# out.
#
# usage: benches/paths.sh [TR]    (default: target/release/tr)
set -euo pipefail
cd "$(dirname "$0")/.."
tr=$(realpath "${1:-target/release/tr}")
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A C project with a sub-make for each of three directories: clients of one job server.
c_project() {
    for part in a b c; do
        mkdir -p "$1/$part"
        for unit in 1 2 3 4; do
            printf '#include <stdio.h>\n#include <string.h>\nint %s%s(int n) { return n * %s; }\n' \
                "$part" "$unit" "$unit" > "$1/$part/u$unit.c"
        done
        printf 'all: u1.o u2.o u3.o u4.o\n%%.o: %%.c\n\tcc -O2 -c -o $@ $<\n' > "$1/$part/Makefile"
    done
    printf 'all: a b c\na b c:\n\t$(MAKE) -C $@\n.PHONY: a b c\n' > "$1/Makefile"
}

# name, directory, command
run() {
    local name=$1 directory=$2
    shift 2
    if ! command -v "$1" > /dev/null; then
        printf '%-22s left out: no %s\n' "$name" "$1"
        return
    fi
    (cd "$directory" && "$tr" record -q -o "$work/$name.bin" -- "$@") > "$work/$name.log" 2>&1 ||
        true
    "$tr" analyze "$work/$name.bin" --report critical-path --format json > "$work/$name.json"
    python3 - "$name" "$work/$name.json" <<'PY'
import json, sys
name, file = sys.argv[1:]
path = json.load(open(file))["critical_path"]["path"]
wall = path["wall_ns"]
unknown = sum(step["unknown_ns"] for step in path["steps"])
inferred = path["inferred_ns"]
def percent(ns): return f"{100 * ns / wall:5.1f} %"
largest = ", ".join(
    f"{share['program'] or share['what']} {100 * share['time_ns'] / wall:.0f} %"
    + (f" ({share['what']})" if share["what"] == "sleep" else "")
    for share in path["shares"][:4]
)
print(f"{name:22} {wall / 1e9:7.2f} s  known {percent(wall - unknown - inferred)}"
      f"  inferred {percent(inferred)}  unknown {percent(unknown)}  {largest}")
PY
}

c_project "$work/c"
run make-submakes "$work/c" make -j2
run make-demo "$root" make -C fixtures/demo BUILD="$work/demo" -j2
run shell "$work" sh -c 'for i in $(seq 40); do sort /etc/services | uniq -c | tail -1; done'

mkdir -p "$work/rust/src"
printf '[package]\nname = "small"\nversion = "0.1.0"\nedition = "2021"\n[workspace]\n' \
    > "$work/rust/Cargo.toml"
printf '#[test]\nfn adds() { assert_eq!(1 + 1, 2); }\nfn main() { println!("{:?}", std::env::args()); }\n' \
    > "$work/rust/src/main.rs"
run cargo-test "$work/rust" cargo test --offline

mkdir -p "$work/java"
for n in $(seq 30); do
    printf 'class C%s { java.util.Map<String, Integer> m = new java.util.HashMap<>(); int f() { return m.size() + %s; } }\n' \
        "$n" "$n" > "$work/java/C$n.java"
done
run javac "$work/java" sh -c 'javac -d out *.java'

mkdir -p "$work/py"
for n in $(seq 6); do
    printf 'import time, unittest\nclass T(unittest.TestCase):\n    def test_%s(self):\n        time.sleep(0.05)\n        self.assertEqual(sum(range(200000)), 19999900000)\n' \
        "$n" > "$work/py/test_$n.py"
done
run python-unittest "$work/py" python3 -m unittest discover
run python-venv "$work" python3 -m venv "$work/venv"

mkdir -p "$work/js"
for n in $(seq 4); do
    printf 'const test = require("node:test");\ntest("t%s", async () => { await new Promise(r => setTimeout(r, 40)); let x = 0; for (let i = 0; i < 3e7; i++) x += i; });\n' \
        "$n" > "$work/js/t$n.test.js"
done
run node-test "$work/js" node --test

printf 'int main(void) { return 0; }\n' > "$work/main.c"
run lto "$work" sh -c 'for u in c/*/*.c; do gcc -flto -O2 -c $u -o $(echo $u | tr / _).o; done; gcc -flto=2 -O2 main.c *.o -o lto'
run git-and-tar "$work" sh -c 'git -c init.defaultBranch=x init -q r && cp -r c r/ && cd r && git add . && git -c user.name=a -c user.email=a@b commit -qm x && git archive x | xz -9 > ../r.tar.xz'
