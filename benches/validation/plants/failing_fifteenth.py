"""The fifteenth part of the plants of failing.py: builds, test runs, scripts and jobs, written before anything of it was recorded,
by somebody who had not read the rules. Each was run without the tool; answers.md has its true cause.

Debian packages that a bare machine may lack: gcc make cmake ninja-build meson golang-go python3-pytest perl lua5.4 sqlite3 jq
shellcheck parallel openssl curl git nodejs npm; cargo from rustup."""

from plant import Plant

FIFTEENTH = {
    # ----------------------------------------------------------------- make
    "ferry-make-undefined": Plant(
        "make",
        "sh ./command",
        {
            "Makefile": r"""SUBDIRS := libtide libport cli
GIT := $(shell git --git-dir=.git describe --always 2>/dev/null)
export CFLAGS := -O0 -Wall -DREVISION='"$(or $(GIT),unknown)"'
all: $(SUBDIRS)
cli: libtide libport
$(SUBDIRS):
	$(MAKE) --no-print-directory -C $@
clean:
	-rm ferry.map
	for dir in $(SUBDIRS); do rm -f $$dir/*.o $$dir/*.a; done
.PHONY: all clean $(SUBDIRS)
""",
            "libtide/Makefile": "OBJS := level.o table.o\nlibtide.a: $(OBJS)\n\t$(AR) rcs $@ $(OBJS)\n",
            "libtide/level.c": "int table(int);\nint level(int hour) { return table(hour % 12); }\n",
            "libtide/table.c": "int table(int i) { return i * i % 7; }\n",
            # Not in OBJS.
            "libtide/height.c": "int level(int);\nint tide_height(int hour) { return 3 + level(hour); }\n",
            "libport/Makefile": "libport.a: berth.o\n\t$(AR) rcs $@ berth.o\n",
            "libport/berth.c": "int berths(void) { return 4; }\n",
            "cli/Makefile": r"""LIBS := ../libport/libport.a ../libtide/libtide.a
all: ferry
ferry: main.o show.o $(LIBS)
	$(CC) -o $@ main.o show.o $(LIBS)
	-strip --strip-all $@
""",
            "cli/main.c": "int show(void);\nint main(void) { return show() < 0; }\n",
            "cli/show.c": "int tide_height(int);\nint berths(void);\nint show(void) { return tide_height(5) + berths(); }\n",
            "command": "set -e\nmake clean\nmake -j2 all || { rc=$?; echo 'see the log above'; exit $rc; }\n",
        },
        r"^(\S*-)?ld\b|collect2|\b(g?cc)\b.*-o ferry",
        r"\bmake\b",
        needs="gcc",
    ),
    "rates-make-ignored": Plant(
        "make",
        "make --no-print-directory nightly",
        {
            "Makefile": r"""# The currencies are refreshed if possible; the old header does otherwise.
all: invoice

nightly:
	$(MAKE) refresh
	$(MAKE) all
	sh tools/smoke.sh ./invoice

refresh: | gen
	-awk -f tools/rates.awk data/rates.tsv > gen/rates.tmp && mv gen/rates.tmp gen/rates.h

gen:
	mkdir gen

invoice: src/invoice.c src/format.c
	$(CC) -O0 -Igen -c -o invoice.o src/invoice.c
	$(CC) -O0 -c -o format.o src/format.c
	$(CC) -o $@ invoice.o format.o

.PHONY: all nightly refresh
""",
            "tools/rates.awk": r"""/^#/ { next }
NF != 2 || $2 !~ /^[0-9]+(\.[0-9]+)?$/ { printf "%s:%d: no rate: %s\n", FILENAME, FNR, $0 > "/dev/stderr"; exit 4 }
{ printf "#define RATE_%s %s\n", $1, $2 }
""",
            "tools/smoke.sh": '"$1" > smoke.out\n',
            "data/rates.tsv": "# against the euro\nUSD\t1.08\nGBP\t0.85\nCHF\tn/a\nSEK\t11.2\n",
            "src/format.c": "int digits(double x) { return x < 10 ? 1 : 2; }\n",
            "src/invoice.c": '#include "rates.h"\nint digits(double);\nint main(void) { return digits(RATE_USD) != 1; }\n',
        },
        r"\bawk\b.*rates",
        r"\b(cc|gcc|cc1|make)\b",
        needs="gcc",
    ),
    # ---------------------------------------------------------------- cmake
    "orchard-ctest": Plant(
        "cmake",
        "bash ci/run.sh build unit",
        {
            "CMakeLists.txt": r"""cmake_minimum_required(VERSION 3.16)
project(orchard C)
enable_testing()
add_library(orchard STATIC src/orchard.c)
foreach(name graft prune water sun)
  add_executable(test_${name} tests/${name}.c)
  target_link_libraries(test_${name} orchard)
  add_test(NAME ${name} COMMAND test_${name} ${CMAKE_SOURCE_DIR}/data)
endforeach()
set_tests_properties(prune PROPERTIES WILL_FAIL TRUE)
set_tests_properties(sun PROPERTIES SKIP_RETURN_CODE 77)
""",
            "src/orchard.c": "int litres(int trees, int dry) { return trees * (dry ? 30 : 12); }\nint cut(int branches) { return branches / 2; }\n",
            "tests/graft.c": "int cut(int);\nint main(void) { return cut(8) != 4; }\n",
            "tests/prune.c": "int cut(int);\n/* known: the odd branch is forgotten */\nint main(void) { return cut(7) != 4; }\n",
            "tests/sun.c": '#include <stdio.h>\nint main(void) { puts("no sensor"); return 77; }\n',
            "tests/water.c": r"""#include <stdio.h>
int litres(int, int);
int main(void) {
    int bad = 0;
    if (litres(2, 0) != 24) bad = 1;
    if (litres(2, 1) != 50) { fprintf(stderr, "two dry trees: %d, not 50\n", litres(2, 1)); bad = 1; }
    return bad;
}
""",
            "ci/run.sh": r"""#!/bin/bash
# run.sh STEP...
set -euo pipefail
source "$(dirname "$0")/steps.sh"
trap 'rm -r "$scratch"' EXIT
scratch=$(mktemp -d)
for step in "$@"; do
    "step_$step" > "$scratch/$step.log" 2>&1 || {
        rc=$?
        echo "### $step failed ($rc)"
        cat "$scratch/$step.log"
        cp "$scratch/$step.log" /srv/of-the-farm/logs 2> /dev/null || true
        exit $rc
    }
done
""",
            "ci/steps.sh": r"""step_build() {
    cmake -S . -B out -DCMAKE_BUILD_TYPE=Debug && cmake --build out -j 2
}
step_unit() {
    (cd out && ctest -j2 --output-on-failure)
}
""",
        },
        r"\btest_water\b",
        r"\bctest\b",
        needs="cmake",
    ),
    # ---------------------------------------------------------------- meson
    "clockwork-meson-test": Plant(
        "meson",
        "bash ./verify.sh",
        {
            "meson.build": r"""project('clockwork', 'c')
gear = static_library('gear', 'gear.c')
foreach name, wanted : {'cog': false, 'ratio': true, 'gears': false}
  exe = executable('test-' + name, 'tests' / name + '.c', link_with: gear)
  test(name, exe, should_fail: wanted, suite: 'unit')
endforeach
test('docs', find_program('tests/docs.sh'), suite: 'doc')
""",
            "gear.c": "int ratio(int a, int b) { return a / b; }\nint teeth(int n) { return n * 8; }\n",
            "tests/cog.c": "int teeth(int);\nint main(void) { return teeth(2) != 16; }\n",
            "tests/ratio.c": "int ratio(int, int);\n/* fractions are not there yet */\nint main(void) { return ratio(3, 2) * 2 != 3; }\n",
            "tests/gears.c": r"""int ratio(int, int);
static int pairs[][2] = { {40, 8}, {24, 0}, {12, 6} };
int main(void) {
    int sum = 0;
    for (int i = 0; i < 3; i++) sum += ratio(pairs[i][0], pairs[i][1]);
    return sum != 7;
}
""",
            "tests/docs.sh": "#!/bin/sh\ncommand -v hotdoc-of-the-team > /dev/null || exit 77\n",
            "verify.sh": r"""set -eu
chmod +x tests/docs.sh
meson setup build > setup.log
ninja -C build -v > compile.log
if ! meson test -C build --no-rebuild --print-errorlogs; then
    echo "tests failed" >&2
    exit 1
fi
""",
        },
        r"\btest-gears\b",
        r"\bmeson\b",
        needs="meson",
    ),
    # ---------------------------------------------------------------- ninja
    "parcel-ninja-idl": Plant(
        "ninja",
        'bash -eo pipefail -c \'. tools/env.sh; generate; ninja -C "$OUT" -j2 -k 0 2>&1 | tee ninja.log; ls "$OUT"/*.h\'',
        {
            "tools/env.sh": r"""OUT=${OUT:-out}
generate() {
    mkdir -p "$OUT"
    {
        echo 'rule idl'
        echo '  command = sh ../tools/idl.sh $in $out'
        for idl in idl/*.idl; do
            echo "build $(basename "$idl" .idl).h: idl ../$idl"
        done
    } > "$OUT/build.ninja"
    cmp -s "$OUT/build.ninja" "$OUT/build.ninja.last" || echo "the build file changed"
}
""",
            "tools/idl.sh": r"""# idl.sh IDL HEADER
set -e
grep -q '^include' "$1" && echo "$1: includes are ignored" >&2
sed -e 's,//.*,,' -e '/^[[:space:]]*$/d' "$1" > "$2.in"
awk -f ../tools/idl.awk "$2.in" > "$2.tmp"
mv "$2.tmp" "$2"
rm "$2.in"
""",
            "tools/idl.awk": r"""$1 == "message" { print "struct " $2 " {"; delete seen; next }
$1 == "end" { print "};"; next }
seen[$3]++ { print FILENAME ": the number " $3 " is used twice" > "/dev/stderr"; exit 3 }
{ print "    " $1 " " $2 ";" }
""",
            "idl/address.idl": "message address\nint zip 1\nint street 2\nend\n",
            "idl/orders.idl": "// parcels\nmessage order\nint id 1\nint weight 2\nint size 2\nend\n",
            "idl/tracking.idl": "include address\nmessage track\nint id 1\nint place 2\nend\n",
        },
        r"\bidl\.awk.*orders|\bidl\.sh.*orders",
        r"\bninja\b",
        needs="ninja",
    ),
    # ---------------------------------------------------------------- cargo
    "units-cargo-build-script": Plant(
        "cargo",
        "sh ./command",
        {
            "Cargo.toml": '[package]\nname = "units"\nversion = "0.2.0"\nedition = "2021"\nbuild = "build.rs"\n\n[workspace]\n',
            "build.rs": r"""use std::{collections::HashSet, env, fs, process::Command};

fn revision() -> String {
    Command::new("git")
        .args(["--git-dir=.git", "rev-parse", "HEAD"])
        .output()
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .unwrap_or_else(|| "unknown".into())
}

fn main() {
    println!("cargo:rerun-if-changed=units.txt");
    println!("cargo:rustc-env=REVISION={}", revision().trim());
    let simd = Command::new("sh").args(["-c", "grep -qw avx1024 /proc/cpuinfo"]).status().map_or(false, |status| status.success());
    if simd {
        println!("cargo:rustc-cfg=simd");
    }
    let (mut seen, mut table) = (HashSet::new(), String::from("pub const UNITS: &[(&str, f64)] = &[\n"));
    for (number, line) in fs::read_to_string("units.txt").unwrap().lines().enumerate() {
        let (name, metres) = line.split_once(' ').unwrap();
        assert!(seen.insert(name.to_string()), "units.txt:{}: {name} is defined twice", number + 1);
        table += &format!("({name:?}, {:?}),\n", metres.parse::<f64>().unwrap());
    }
    fs::write(format!("{}/units.rs", env::var("OUT_DIR").unwrap()), table + "];\n").unwrap();
}
""",
            "src/main.rs": 'include!(concat!(env!("OUT_DIR"), "/units.rs"));\nfn main() {\n    println!("{} units, {}", UNITS.len(), env!("REVISION"));\n}\n',
            "units.txt": "inch 0.0254\nfoot 0.3048\nfurlong 201.168\nmile 1609.344\nfurlong 201.17\n",
            "command": "set -eu\nexport CARGO_TARGET_DIR=$PWD/target CARGO_NET_OFFLINE=true CARGO_TERM_COLOR=never\n"
            "rm target/debug/units 2> /dev/null || :\ncargo build && ./target/debug/units\n",
        },
        r"build-script",
        r"\bcargo\b",
        needs="cargo",
    ),
    "braces-cargo-overflow": Plant(
        "cargo",
        "bash scripts/check.sh",
        {
            "Cargo.toml": '[package]\nname = "braces"\nversion = "1.0.0"\nedition = "2021"\n\n[lib]\ntest = false\ndoctest = false\n\n'
            "[profile.dev]\ndebug = 0\n\n[workspace]\n",
            "src/lib.rs": r"""/// How deep the braces of a text are.
pub fn depth(text: &[u8]) -> usize {
    match text.first() {
        None => 0,
        Some(b'{') => 1 + depth(&text[1..]),
        Some(_) => depth(&text[1..]),
    }
}
""",
            "tests/flat.rs": '#[test]\nfn nothing() {\n    assert_eq!(braces::depth(b""), 0);\n}\n\n'
            '#[test]\n#[should_panic]\nfn not_five() {\n    assert_eq!(braces::depth(b"{}"), 5);\n}\n',
            "tests/nesting.rs": '#[test]\nfn two() {\n    assert_eq!(braces::depth(b"{{}}"), 2);\n}\n\n'
            "#[test]\nfn long() {\n    assert_eq!(braces::depth(&[b'{'; 3_000_000]), 3_000_000);\n}\n",
            "scripts/check.sh": r"""#!/bin/bash
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/cargo-env.sh
on_error() {
    echo "check.sh: line $1"
    ls target/coverage/*.profraw
}
trap 'on_error $LINENO' ERR
step() {
    echo "--- $*"
    "$@"
}
step cargo --version
step cargo test --no-fail-fast -- --test-threads=1
step cargo build --release
""",
            "scripts/cargo-env.sh": "export CARGO_TARGET_DIR=$PWD/target CARGO_NET_OFFLINE=true CARGO_TERM_COLOR=never\nulimit -c 0\n",
        },
        r"\bnesting\b",
        r"\bcargo\b",
        needs="cargo",
    ),
    # ------------------------------------------------------------------- go
    "ledger-go-test": Plant(
        "go",
        "sh ci/go.sh",
        {
            "go.mod": "module example.org/ledger\n\ngo 1.18\n",
            "ci/go.sh": r"""set -eu
export GOFLAGS=-mod=mod GOPROXY=off GO111MODULE=on CGO_ENABLED=0
staticcheck-of-the-team ./... 2> /dev/null || echo "staticcheck is not installed, skipped"
go test -vet=off -count=1 ./...
echo "all packages passed"
""",
            "book/book.go": "package book\n\nfunc Sum(entries ...int) (sum int) {\n\tfor _, e := range entries {\n\t\tsum += e\n\t}\n\treturn\n}\n",
            "book/book_test.go": r"""package book

import (
	"os/exec"
	"testing"
)

func TestSum(t *testing.T) {
	if Sum(1, 2, 3) != 6 {
		t.Fatal("sum")
	}
}

func TestHookFails(t *testing.T) {
	if exec.Command("sh", "-c", "exit 3").Run() == nil {
		t.Fatal("the hook should have failed")
	}
}
""",
            "tax/tax.go": "package tax\n\nfunc Vat(cents int) int { return cents * 19 / 100 }\n",
            "tax/tax_test.go": r"""package tax

import "testing"

func TestVat(t *testing.T) {
	for cents, want := range map[int]int{100: 19, 0: 0, 150: 29} {
		if got := Vat(cents); got != want {
			t.Errorf("Vat(%d) = %d, want %d", cents, got, want)
		}
	}
}
""",
        },
        r"\btest tax\b|\btax\.test\b",
        r"\bgo test\b",
        needs="go",
    ),
    "elevator-go-generate": Plant(
        "go",
        "make -s all",
        {
            "Makefile": r"""export GOFLAGS := -mod=mod
export GOPROXY := off
all: lint generate binary
lint:
	@awk '/\t +/ { bad = 1 } END { exit bad }' state/*.go || echo "lint: spaces after tabs"
generate:
	go generate ./...
binary:
	go build -o elevator ./cmd
.PHONY: all lint generate binary
""",
            "go.mod": "module example.org/elevator\n\ngo 1.18\n",
            "state/state.go": r"""package state

//go:generate perl ../tools/names.pl State state.go state_names.go

type State int

const (
	Idle State = iota // State
	Up                // State
	Down              // State
	 Down2            // State
)
""",
            "door/door.go": r"""package door

//go:generate perl ../tools/names.pl Door door.go door_names.go

type Door int

const (
	Open   Door = iota // Door
	Closed             // Door
	Open               // Door
)
""",
            "cmd/main.go": "package main\n\nfunc main() {}\n",
            "tools/names.pl": r"""use strict;
use warnings;
my ($type, $source, $target) = @ARGV;
open my $in, '<', $source or die "$source: $!\n";
my (%seen, @names);
while (<$in>) {
    next unless m{^\s+(\w+).*// \Q$type\E$};
    die "$source:$.: $1 is there twice\n" if $seen{$1}++;
    push @names, $1;
}
open my $out, '>', $target or die "$target: $!\n";
printf $out "package %s\n\nvar names%s = []string{%s}\n", lc $type, $type, join(', ', map { "\"$_\"" } @names);
""",
        },
        r"names\.pl Door",
        r"\bgo generate\b|\bmake\b",
        needs="go",
    ),
    # ---------------------------------------------------------- npm and node
    "storefront-npm-budget": Plant(
        "npm",
        "npm run ci",
        {
            ".npmrc": "update-notifier=false\nlogs-max=0\nfund=false\naudit=false\n",
            "package.json": r"""{
  "name": "storefront",
  "version": "2.4.0",
  "private": true,
  "scripts": {
    "clean": "rm dist/*.js || true",
    "preci": "node tools/engines.js || echo 'an old node, going on'",
    "ci": "npm run -s clean && node tools/bundle.js src/main.js dist && node tools/deploy.js dist"
  },
  "engines": { "node": ">=99" }
}
""",
            "tools/engines.js": r"""const want = Number(require('../package.json').engines.node.slice(2));
process.exit(Number(process.versions.node.split('.')[0]) >= want ? 0 : 1);
""",
            "tools/bundle.js": r"""const { spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const [entry, out] = process.argv.slice(2);
const git = spawnSync('git', ['--git-dir=.git', 'rev-parse', 'HEAD'], { encoding: 'utf8' });
const banner = `/* ${git.status === 0 ? git.stdout.trim() : 'no revision'} */\n`;
const seen = new Set();
function pull(file) {
  if (seen.has(file)) return '';
  seen.add(file);
  return fs.readFileSync(file, 'utf8').replace(/^import '(.*)';$/gm, (_, name) => pull(path.join(path.dirname(file), name)));
}
fs.mkdirSync(out, { recursive: true });
const bundle = path.join(out, 'main.js');
fs.writeFileSync(bundle, banner + pull(entry));
const size = spawnSync('gzip', ['-c', bundle]).stdout.length;
const { limit } = JSON.parse(fs.readFileSync('budget.json', 'utf8'));
console.log(`${bundle}: ${size} bytes of ${limit}`);
if (size > limit) {
  console.error('the bundle is over its budget');
  process.exitCode = 1;
}
""",
            "tools/deploy.js": "console.log('deployed', process.argv[2]);\n",
            "budget.json": '{ "limit": 120 }\n',
            "src/main.js": "import './cart.js';\nimport './colours.js';\nconsole.log(cart, colours);\n",
            "src/cart.js": "const cart = [];\n",
            "src/colours.js": "const colours = ['a3f1c9', '77be02', '19d4e8', 'c05a3b', 'f2e871', '5c90d6', 'e41b77', '0ad9f4', '8831ce'];\n",
        },
        r"bundle\.js",
        r"^npm\b",
        needs="npm",
    ),
    "search-node-shards": Plant(
        "node",
        "sh -c 'node tools/shards.mjs 3 || { echo shards failed; exit 1; }'",
        {
            "tools/shards.mjs": r"""// Runs the shards at once; the first that fails ends the others.
import { spawn } from 'node:child_process';
const count = Number(process.argv[2]);
const children = [];
function shard(number) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['test/shard.mjs', String(number)], { stdio: 'inherit' });
    children.push(child);
    child.on('exit', (code, signal) => {
      if (code === 0) resolve();
      else reject(new Error(`shard ${number}: ${code ?? signal}`));
    });
  });
}
const shards = Array.from({ length: count }, (_, i) => shard(i + 1));
try {
  await Promise.all(shards);
} catch (error) {
  console.error(error.message);
  for (const child of children) child.kill('SIGTERM');
  await Promise.allSettled(shards);
  process.exit(1);
}
""",
            "test/shard.mjs": r"""import assert from 'node:assert';
import { execFileSync } from 'node:child_process';
import { setTimeout } from 'node:timers/promises';
import { find } from '../lib/find.mjs';
const shard = process.argv[2];
const cases = {
  1: async () => {
    await setTimeout(15000); // the slow ones
  },
  2: async () => {
    assert.throws(() => execFileSync('sh', ['bin/query.sh'], { stdio: 'ignore' }));
    assert.deepStrictEqual(find('sea', ['sea', 'Sea', 'see']), ['sea', 'Sea']);
  },
  3: async () => {
    assert.deepStrictEqual(find('x', []), []);
    await setTimeout(20000);
  },
};
await cases[shard]();
console.log(`shard ${shard} passed`);
""",
            "lib/find.mjs": "export const find = (word, list) => list.filter((entry) => entry === word);\n",
            "bin/query.sh": 'echo "usage: query.sh WORD" >&2\nexit 64\n',
        },
        r"shard\.mjs 2\b",
        r"shards\.mjs",
        needs="node",
    ),
    # --------------------------------------------------------------- pytest
    "meter-pytest-assert": Plant(
        "pytest",
        "bash ci/unit.sh",
        {
            "ci/unit.sh": r"""#!/bin/bash
set -eu
source .venv/bin/activate 2> /dev/null || echo "no virtual environment, taking the system's"
export PYTHONDONTWRITEBYTECODE=1
for suite in cli totals; do
    echo "== $suite"
    pytest -q -p no:cacheprovider "tests/test_$suite.py"
done
sh ci/upload.sh
""",
            "ci/upload.sh": "echo uploaded\n",
            "tests/conftest.py": "import os\nimport sys\n\nsys.path.insert(0, os.getcwd())\n",
            "tests/test_cli.py": r"""import signal
import subprocess

import pytest


def meter(*words):
    return subprocess.run(["/usr/bin/python3", "meter.py", *words], capture_output=True, text=True)


@pytest.mark.parametrize("words", [(), ("x",), ("1", "y")])
def test_usage(words):
    assert meter(*words).returncode == 2


def test_sum():
    assert meter("1", "2").stdout == "3\n"
""",
            "tests/test_totals.py": r"""import signal
import subprocess

import pytest

import meter


def test_killed_reader():
    reader = subprocess.Popen(["sleep", "60"])
    reader.kill()
    assert reader.wait() == -signal.SIGKILL


def test_month():
    assert meter.month([1.5, 2.5]) == 4


def test_year():
    assert meter.year([[1, 2], [3], []]) == 6


@pytest.mark.xfail(strict=True)
def test_leap():
    assert meter.month([None]) == 0


def test_reset():
    # The meter goes back to 0 after 99999.
    assert meter.used(99990, 10) == 20
""",
            "meter.py": r"""import sys


def month(readings):
    return sum(readings)


def year(months):
    return sum(month(readings) for readings in months)


def used(before, after):
    return after - before


if __name__ == "__main__":
    try:
        readings = [int(word) for word in sys.argv[1:]]
        if not readings:
            raise ValueError
    except ValueError:
        sys.exit(2)
    print(month(readings))
""",
        },
        r"\bpytest\b.*test_totals",
        needs="pytest",
    ),
    "library-pytest-seed": Plant(
        "pytest",
        "make -s test",
        {
            "Makefile": "test: style\n\tsh ci/tests.sh\nstyle:\n\t-@grep -nE 'print\\(' tests/*.py\n.PHONY: test style\n",
            "ci/tests.sh": r"""set -e
export PYTHONDONTWRITEBYTECODE=1
# the results of the last run, if there was one
sqlite3 -readonly last-run.db 'select count(*) from results' 2> /dev/null || echo "no last run"
pytest -q -p no:cacheprovider --tb=short tests
""",
            "tests/conftest.py": r"""import os
import sqlite3
import subprocess

import pytest


@pytest.fixture(scope="session")
def database():
    for script in ["db/schema.sql", "db/seed.sql"]:
        subprocess.run(["sqlite3", "-bail", "library.db", f".read {script}"], check=True)
    connection = sqlite3.connect("library.db")
    yield connection
    connection.close()
    os.remove("library.db")
""",
            "tests/test_books.py": "def test_count(database):\n    assert database.execute('select count(*) from book').fetchone() == (3,)\n\n\n"
            "def test_lent(database):\n    assert database.execute('select count(*) from loan').fetchone() == (1,)\n",
            "tests/test_names.py": "def test_sort():\n    assert sorted(['b', 'a']) == ['a', 'b']\n",
            "db/schema.sql": "pragma foreign_keys = on;\ncreate table book (id integer primary key, title text not null);\n"
            "create table loan (book integer not null references book (id), day text not null);\n",
            "db/seed.sql": "insert into book values (1, 'Dune');\ninsert into book values (2, 'Emma');\ninsert into book values (3, null);\n"
            "insert into loan values (2, '2024-05-01');\n",
        },
        r"sqlite3 .*(library\.db|seed\.sql)",
        r"\bpytest\b",
        needs="sqlite3",
    ),
    # --------------------------------------------------------- ansible-like
    "gateway-play": Plant(
        "configuration",
        "/usr/bin/python3 play.py site.json",
        {
            "play.py": r"""import json
import subprocess
import sys

play = json.load(open(sys.argv[1]))
facts, recap = {}, {"ok": 0, "ignored": 0, "skipped": 0, "failed": 0}


def run(task):
    print(f"TASK [{task['name']}]", flush=True)
    if "when" in task and not facts.get(task["when"]):
        recap["skipped"] += 1
        return True
    done = subprocess.run(task["command"], stdout=subprocess.PIPE, text=True)
    if "register" in task:
        facts[task["register"]] = done.returncode == 0
    if done.returncode == 0 or "register" in task:
        recap["ok"] += 1
        return True
    print(f"fatal: rc={done.returncode}" + (" ...ignoring" if task.get("ignore_errors") else ""), flush=True)
    recap["ignored" if task.get("ignore_errors") else "failed"] += 1
    return bool(task.get("ignore_errors"))


try:
    for task in play["tasks"]:
        if not run(task):
            sys.exit(2)
finally:
    for task in play["always"]:
        run(task)
    print("PLAY RECAP", *(f"{key}={value}" for key, value in recap.items()))
""",
            "site.json": r"""{
  "tasks": [
    {"name": "stage", "command": ["mkdir", "-p", "stage", "host/etc/gateway.d"]},
    {"name": "is it there already?", "command": ["test", "-e", "host/etc/gateway.d/main.conf"], "register": "installed"},
    {"name": "save the old one", "command": ["cp", "host/etc/gateway.d/main.conf", "stage"], "when": "installed"},
    {"name": "stop the service", "command": ["sh", "files/service.sh", "stop"], "ignore_errors": true},
    {"name": "render", "command": ["sed", "-e", "s/@PORT@/8443/", "-e", "wstage/main.conf", "files/main.conf.in"]},
    {"name": "main.conf", "command": ["install", "-m", "0644", "stage/main.conf", "host/etc/gateway.d/main.conf"]},
    {"name": "limits.conf", "command": ["install", "-m", "0644", "files/limits.conf", "host/etc/gateway.d/limits.conf"]},
    {"name": "start the service", "command": ["sh", "files/service.sh", "start"]}
  ],
  "always": [
    {"name": "drop the stage", "command": ["rmdir", "stage"], "ignore_errors": true}
  ]
}
""",
            "files/service.sh": 'case $1 in\n    stop) [ -e run/gateway.pid ] || { echo "gateway is not running" >&2; exit 5; } ;;\n    start) mkdir -p run ;;\nesac\n',
            "files/main.conf.in": "port = @PORT@\n",
            "files/limit.conf": "clients = 200\n",
        },
        r"\binstall\b.*limits\.conf",
        r"play\.py",
    ),
    # ---------------------------------------------------------------- shell
    "mailhub-openssl-verify": Plant(
        "shell",
        "bash deploy/rollout.sh staging",
        {
            "setup.sh": r"""set -e
mkdir -p pki/hosts
make_key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1"; }
make_key pki/ca.key
openssl req -x509 -new -key pki/ca.key -subj /CN=farm-ca -days 3650 -out pki/ca.pem
for host in imap smtp web; do
    make_key pki/hosts/$host.key
    if [ $host = smtp ]; then
        # signed by itself in a hurry
        openssl req -x509 -new -key pki/hosts/$host.key -subj /CN=$host -days 3650 -out pki/hosts/$host.pem
    else
        openssl req -new -key pki/hosts/$host.key -subj /CN=$host -out $host.csr
        openssl x509 -req -in $host.csr -CA pki/ca.pem -CAkey pki/ca.key -set_serial 7 -days 3650 -out pki/hosts/$host.pem
    fi
done
""",
            "deploy/rollout.sh": r"""#!/bin/bash
set -Eeuo pipefail
cd "$(dirname "$0")/.."
for lib in deploy/lib/*.sh; do . "$lib"; done
stage=$1
trap 'on_exit $?' EXIT
preflight
for host in imap smtp web; do
    check_host "$host"
    copy_host "$host" "$stage"
done
info "rolled out to $stage"
""",
            "deploy/lib/10-log.sh": r"""info() { printf '%s: %s\n' "${0##*/}" "$*"; }
on_exit() {
    [ "$1" -eq 0 ] && return
    info "failed with $1; undoing"
    rm "target/$stage/complete" || info "nothing to undo"
}
""",
            "deploy/lib/20-pki.sh": r"""preflight() {
    local line
    if line=$(openssl s_client -connect 127.0.0.1:9 -brief < /dev/null 2>&1); then
        info "the old hub answers"
    else
        info "the old hub is down: ${line##*$'\n'}"
    fi
    openssl x509 -in pki/ca.pem -noout -checkend 86400 > /dev/null
}
check_host() {
    local pem=pki/hosts/$1.pem
    openssl pkey -in "pki/hosts/$1.key" -noout &&
        openssl verify -CAfile pki/ca.pem "$pem" > verify.out && rm verify.out
}
copy_host() {
    mkdir -p "target/$2" && cp "pki/hosts/$1.pem" "pki/hosts/$1.key" "target/$2"
}
""",
        },
        r"openssl verify",
        "",
        "sh setup.sh",
        needs="openssl",
    ),
    "regions-xargs-jq": Plant(
        "xargs",
        "bash -eo pipefail -c 'source ci/checks.sh && check_syntax && check_replicas && render'",
        {
            "ci/checks.sh": r"""list() { find regions -name '*.json' -print0 | sort -z; }
check_syntax() {
    list | xargs -0 -n 2 jq empty
    if jq -e .frozen settings.json > /dev/null; then
        echo "frozen: nothing is rendered"
        exit 0
    fi
}
check_replicas() {
    list | xargs -0 -n 1 -P 2 jq -e '[.services[].replicas > 0] | all' > verdicts.txt || {
        echo "replicas: $(grep -c false verdicts.txt) of the regions are wrong" >&2
        return 1
    }
}
render() {
    list | xargs -0 cat > rendered.json
}
""",
            "settings.json": '{"frozen": false}\n',
            "regions/ap-south/app.json": '{"services": [{"name": "api", "replicas": 2}]}\n',
            "regions/eu-north/app.json": '{"services": [{"name": "api", "replicas": 3}, {"name": "mail", "replicas": 1}]}\n',
            "regions/eu-west/app.json": '{"services": [{"name": "api", "replicas": 3}, {"name": "mail", "replicas": 0}]}\n',
            "regions/us-east/app.json": '{"services": []}\n',
        },
        r"\bjq\b.*eu-west",
        r"xargs",
        needs="jq",
    ),
    "toolbox-find-shellcheck": Plant(
        "find",
        "sh ci/all.sh",
        {
            "ci/all.sh": r"""set -e
for check in ci/checks.d/*.sh; do
    echo "-- $check"
    sh "$check"
done
echo "all checks passed"
""",
            "ci/checks.d/10-todo.sh": "# only for information\nfind scripts -type f -exec grep -l FIXME {} \\;\n[ -e TODO.md ] || echo 'no TODO.md'\n",
            "ci/checks.d/20-modes.sh": "find scripts -type l -exec test -e {} \\; -print > links.txt\nwc -l < links.txt\n",
            "ci/checks.d/30-syntax.sh": "find scripts -name '*.sh' -exec shellcheck -S error -s sh {} +\n",
            "ci/checks.d/40-size.sh": "find scripts -size +64k | grep . && exit 1\ntrue\n",
            "scripts/backup.sh": 'tar -cf backup.tar "$1"\n',
            "scripts/db/dump.sh": 'if [ -z "$1" ]; then\n    echo "usage: dump.sh NAME"\nfi\nsqlite3 "$1" .dump\n',
            "scripts/db/restore.sh": 'if [ -n "$1"]; then\n    sqlite3 "$1" < dump.sql\nfi\n',
        },
        r"shellcheck",
        r"30-syntax",
        needs="shellcheck",
    ),
    # -------------------------------------------------------------- servers
    "pier-server-render": Plant(
        "server",
        "bash ci/smoke.sh",
        {
            "ci/smoke.sh": r"""#!/bin/bash
set -euo pipefail
. ci/server.sh
start_server
trap stop_server EXIT
get /metrics > /dev/null || echo "no metrics in this build"
failed=0
for page in index harbour tides; do
    if get "/page/$page" > "out.$page"; then
        echo "ok   $page"
    else
        echo "FAIL $page"
        failed=$((failed + 1))
    fi
done
if (( failed )); then
    echo "--- server.log"
    cat server.log
    exit 1
fi
""",
            "ci/server.sh": r"""start_server() {
    /usr/bin/python3 app/server.py port > server.log 2>&1 &
    server=$!
    for _ in $(seq 100); do
        [ -s port ] && break
        kill -0 $server || return
        sleep 0.1
    done
}
stop_server() {
    kill $server
    wait $server || true
}
get() { curl -sf --max-time 5 "http://127.0.0.1:$(cat port)$1"; }
""",
            "app/server.py": r"""import http.server
import os
import subprocess
import sys


class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        page = f"content/{os.path.basename(self.path)}.txt"
        status, body = 404, b""
        if self.path.startswith("/page/") and os.path.exists(page):
            done = subprocess.run(["perl", "app/render.pl", page], stdout=subprocess.PIPE)
            status, body = (200, done.stdout) if done.returncode == 0 else (500, b"")
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = http.server.HTTPServer(("127.0.0.1", 0), Pages)
with open(sys.argv[1] + ".new", "w") as out:
    out.write(str(server.server_address[1]))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
""",
            "app/render.pl": r"""use strict;
use warnings;
my $title = <>;
$title =~ s/^# // or die "$ARGV: the first line is no title\n";
chomp $title;
print "<h1>$title</h1>\n";
while (<>) { print "<p>$_</p>" if /\S/ }
""",
            "content/index.txt": "# The pier\nWelcome.\n",
            "content/harbour.txt": "# The harbour\nShips.\n",
            "content/tides.txt": "High water is at noon.\n# Tides\n",
        },
        r"render\.pl content/tides|render\.pl",
        r"curl",
        needs="curl",
    ),
    "inventory-migration-behind": Plant(
        "server",
        "sh ./command",
        {
            "command": r"""set -u
mkdir -p run
rm -f run/*
sh db/migrate.sh > run/migrate.log 2>&1 &
/usr/bin/python3 app/api.py run > run/api.log 2>&1 &
api=$!
trap 'kill $api; wait' EXIT
if sh ci/wait-healthy.sh run; then
    echo "healthy"
    curl -sf "http://127.0.0.1:$(cat run/port)/items"
else
    for log in run/*.log; do
        echo "--- $log"
        tail -n 4 "$log"
    done
    exit 1
fi
""",
            "db/migrate.sh": r"""set -e
# the api waits for run/migrated
for step in db/steps/*.sql; do
    echo "applying $step"
    sqlite3 -bail run/inventory.db ".read $step"
done
touch run/migrated
""",
            "db/steps/001_items.sql": "create table item (id integer primary key, name text);\n",
            "db/steps/002_stock.sql": "alter table item add column stock integer default 0;\n",
            "db/steps/003_shelf.sql": "alter table item add column shelf text;\nalter table item add column stock integer;\n",
            "app/api.py": r"""import http.server
import os
import sys

run = sys.argv[1]


class Api(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if os.path.exists(f"{run}/migrated") else 503)
        self.end_headers()


server = http.server.HTTPServer(("127.0.0.1", 0), Api)
with open(f"{run}/port.new", "w") as out:
    out.write(str(server.server_address[1]))
os.rename(f"{run}/port.new", f"{run}/port")
server.serve_forever()
""",
            "ci/wait-healthy.sh": r"""# up to 3 s once the port is known
until [ -s "$1/port" ]; do sleep 0.1; done
for attempt in 1 2 3 4 5 6; do
    curl -sf -o /dev/null "http://127.0.0.1:$(cat "$1/port")/health" && exit 0
    sleep 0.5
done
echo "not healthy after $attempt attempts" >&2
exit 1
""",
        },
        r"sqlite3|migrate\.sh",
        r"curl|wait-healthy",
        needs="sqlite3",
    ),
    # ------------------------------------------------------------- time-out
    "conveyor-timeout-lock": Plant(
        "timeout",
        "bash ci/stress.sh",
        {
            "ci/stress.sh": r"""#!/bin/bash
set -uo pipefail
mkdir -p bin
timeout 0.4 bash ci/wait-for.sh run/broker.sock || echo "no broker; its tests are left out"
status=0
for test in fill pause drain; do
    cc -O0 -Isrc -pthread -o "bin/belt_$test" "tests/$test.c" src/belt.c || exit
    timeout -k 1 2 "bin/belt_$test"
    rc=$?
    case $rc in
        0) echo "$test: passed" ;;
        77) echo "$test: skipped" ;;
        124 | 137) echo "$test: no end after 2 s"; status=1 ;;
        *) echo "$test: $rc"; status=1 ;;
    esac
done
exit $status
""",
            "ci/wait-for.sh": 'until [ -S "$1" ]; do sleep 0.1; done\n',
            "src/belt.h": "int belt_put(int item);\nint belt_take(void);\nint belt_drain(void);\n",
            "src/belt.c": r"""#include <pthread.h>
#include "belt.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int items[16], count;
int belt_put(int item) {
    pthread_mutex_lock(&lock);
    int ok = count < 16;
    if (ok) items[count++] = item;
    pthread_mutex_unlock(&lock);
    return ok;
}
int belt_take(void) {
    pthread_mutex_lock(&lock);
    int item = count ? items[--count] : -1;
    pthread_mutex_unlock(&lock);
    return item;
}
int belt_drain(void) {
    int sum = 0;
    pthread_mutex_lock(&lock);
    while (count) sum += belt_take(); /* takes the lock again */
    pthread_mutex_unlock(&lock);
    return sum;
}
""",
            "tests/fill.c": '#include "belt.h"\nint main(void) { for (int i = 0; i < 16; i++) if (!belt_put(i)) return 1; return belt_put(16); }\n',
            "tests/pause.c": '#include "belt.h"\nint main(void) { return belt_take() == -1 ? 77 : 1; }\n',
            "tests/drain.c": '#include "belt.h"\nint main(void) { belt_put(2); belt_put(3); return belt_drain() != 5; }\n',
        },
        r"belt_drain",
        needs="gcc",
    ),
    # ----------------------------------------------------------------- pool
    "atlas-pool-segv": Plant(
        "pool",
        "sh ./command",
        {
            "tiler.c": r"""#include <stdio.h>
#include <stdlib.h>
struct layer { int width; struct layer *next; };
int main(int argc, char **argv) {
    if (argc != 2) return 2;
    FILE *in = fopen(argv[1], "r");
    if (!in) return 4;
    int layers, width, sum = 0;
    if (fscanf(in, "%d", &layers) != 1) return 3; /* an empty tile */
    struct layer *first = NULL;
    for (int i = 0; i < layers && fscanf(in, "%d", &width) == 1; i++) {
        struct layer *layer = malloc(sizeof *layer);
        layer->width = width;
        layer->next = first;
        first = layer;
    }
    for (struct layer *layer = first; layers--; layer = layer->next) sum += layer->width;
    printf("%d\n", sum);
    return 0;
}
""",
            "render.py": r"""import glob
import multiprocessing
import subprocess

EMPTY = 3


def tile(path):
    done = subprocess.run(["./tiler", path], stdout=subprocess.PIPE, text=True)
    if done.returncode == EMPTY:
        print(path, "is empty", flush=True)
        return 0
    done.check_returncode()
    return int(done.stdout)


if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        print(sum(pool.map(tile, sorted(glob.glob("tiles/*.txt")), chunksize=1)))
""",
            "tiles/a1.txt": "2 3 4\n",
            "tiles/a2.txt": "\n",
            "tiles/b1.txt": "1 9\n",
            "tiles/b2.txt": "3 5 6\n",
            "tiles/c1.txt": "",
            "command": r"""set -e
cc -O0 -o tiler tiler.c
ulimit -c 0
/usr/bin/python3 render.py > sum.txt || {
    rc=$?
    echo "atlas: no sum"
    rm atlas.lock 2> /dev/null || true
    exit $rc
}
cat sum.txt
""",
        },
        r"\btiler tiles/b2|\btiler\b.*b2\.txt",
        r"render\.py",
        needs="gcc",
    ),
    # --------------------------------------------------- drivers of children
    "fonts-perl-missing": Plant(
        "missing program",
        "perl build/site.pl build/steps.txt",
        {
            "build/site.pl": r"""use strict;
use warnings;

open my $steps, '<', $ARGV[0] or die "$ARGV[0]: $!\n";
mkdir 'public';
while (my $line = <$steps>) {
    next if $line =~ /^(#|$)/;
    chomp $line;
    my $optional = $line =~ s/^\?\s*//;
    my @words = split ' ', $line;
    my $rc = system { $words[0] } @words;
    next if $rc == 0;
    my $why = $rc == -1 ? "cannot run it ($!)" : $rc & 127 ? 'signal ' . ($rc & 127) : 'status ' . ($rc >> 8);
    die "line $.: $words[0]: $why\n" unless $optional;
    warn "line $.: $words[0]: $why; it is optional\n";
}
print "built\n";
""",
            "build/steps.txt": r"""# ? is for optional steps
cp index.html public/index.html
? pngcrush-of-the-farm -q logo.png public/logo.png
? sh build/links.sh public/index.html
sh build/subset.sh fonts/serif.ttf public/serif.ttf
woff2-pack-9 public/serif.ttf
gzip -k public/index.html
""",
            "build/links.sh": r"""# every link has to lead somewhere
set -e
grep -o 'href="[^"]*"' "$1" | sed 's/href="\(.*\)"/\1/' | while read -r link; do
    [ -e "public/$link" ] || { echo "$1: $link leads nowhere" >&2; exit 1; }
done
""",
            "build/subset.sh": 'set -e\n[ -s "$1" ]\nhead -c 10 "$1" > "$2"\n',
            "index.html": '<a href="about.html">About</a>\n',
            "fonts/serif.ttf": "OTTO this is a stand-in\n",
        },
        r"woff2-pack-9",
    ),
    "licences-diff-process": Plant(
        "runner",
        "bash -eo pipefail -c 'source ./audit.sh\ncollect\nif ! unchanged; then\n  echo \"dependencies changed since the last audit\"\nfi\ncompare\necho audited'",
        {
            "audit.sh": r"""collect() {
    local package
    mkdir -p found
    for package in vendor/*/; do
        package=$(basename "$package")
        case $package in
            *-stub) continue ;;
        esac
        if grep -qs '^SPDX' "vendor/$package/LICENSE"; then
            sed -n 's/^SPDX: //p' "vendor/$package/LICENSE"
        else
            awk '/GPL/ { print "GPL-2.0"; hit = 1; exit } END { exit !hit }' "vendor/$package/LICENSE" || echo unknown
        fi
    done > found/licences.txt
}
unchanged() {
    diff -q found/licences.txt last/licences.txt > /dev/null 2>&1
}
compare() {
    diff -u <(sort -u allowed.txt) <(sort -u found/licences.txt allowed.txt)
}
""",
            "allowed.txt": "MIT\nApache-2.0\nBSD-2-Clause\n",
            "vendor/args/LICENSE": "SPDX: MIT\n",
            "vendor/http/LICENSE": "SPDX: Apache-2.0\n",
            "vendor/old-stub/LICENSE": "all rights reserved\n",
            "vendor/readline/LICENSE": "This library is free; see the GPL.\n",
        },
        r"diff -u",
    ),
    # ------------------------------------------------------------------ git
    "almanac-git-hook": Plant(
        "git",
        "bash ci/release.sh work 3.1",
        {
            "setup.sh": r"""set -e
git -c init.defaultBranch=main init -q work
cd work
git config user.name Ann
git config user.email ann@example.org
git config commit.gpgSign false
git config core.hooksPath ../hooks
chmod +x ../hooks/pre-commit
printf '# Copyright Ann\nmoon = 1\n' > moon.py
printf '3.0\n' > VERSION
git add . && git commit -q --no-verify -m 'first'
""",
            "hooks/pre-commit": r"""#!/bin/bash
# Runs the checks on what is to be committed.
checks=$(dirname "$0")/checks.d
bad=0
mapfile -t files < <(git diff --cached --name-only --diff-filter=AM)
for check in "$checks"/*; do
    case $check in
        *.advice.sh) sh "$check" "${files[@]}" || echo "(advice only)" ;;
        *.sh) sh "$check" "${files[@]}" || bad=1 ;;
        *.pl) perl "$check" "${files[@]}" || bad=1 ;;
    esac
done
exit $bad
""",
            "hooks/checks.d/10-length.advice.sh": 'awk \'length > 60 { print FILENAME ": a long line"; bad = 1 } END { exit bad }\' "$@"\n',
            "hooks/checks.d/20-conflicts.sh": "if grep -l '^<<<<<<<' \"$@\"; then exit 1; fi\n",
            "hooks/checks.d/30-copyright.pl": r"""use strict;
my $bad = 0;
for my $file (grep { /\.py$/ } @ARGV) {
    open my $in, '<', $file or die "$file: $!\n";
    next if <$in> =~ /^# Copyright/;
    warn "$file: its first line is no copyright\n";
    $bad++;
}
exit($bad ? 1 : 0);
""",
            "ci/release.sh": r"""#!/bin/bash
set -euo pipefail
cd "$1"
version=$2
git rev-parse -q --verify "refs/tags/v$version" || echo "v$version is new"
sed "s/^moon/sun/" moon.py | tail -n 1 > sun.py
printf 'Sun and moon in one almanac, for the first time; thanks to everybody who helped.\n' > NEWS
echo "$version" > VERSION
git add NEWS VERSION sun.py
git commit -q -m "release $version"
git tag "v$version"
""",
        },
        r"30-copyright\.pl",
        r"\bgit\b|pre-commit",
        "sh setup.sh",
        needs="git",
    ),
    # --------------------------------------------------------------- limits
    "shipments-filesize": Plant(
        "limits",
        "bash ci/export.sh",
        {
            "ci/export.sh": r"""#!/bin/bash
set -euo pipefail
. ci/limits.sh
mkdir -p out
gzip -t out/yesterday.sql.gz 2> /dev/null || echo "no export of yesterday to compare with"
for table in customers shipments places; do
    # the size of an export is limited, since the disk is shared
    (limit_files 256; exec perl tools/dump.pl "$table" data/counts.txt) > "out/$table.sql"
    echo "$table: $(wc -l < "out/$table.sql") rows"
done
cat out/*.sql | gzip > out/today.sql.gz
""",
            "ci/limits.sh": 'limit_files() { ulimit -f "$1"; ulimit -c 0; }\n',
            "tools/dump.pl": r"""use strict;
use warnings;
my ($table, $counts) = @ARGV;
open my $in, '<', $counts or die "$counts: $!\n";
my %rows = map { split } <$in>;
my $rows = $rows{$table} // die "no count of $table\n";
printf "insert into %s values (%d, 'row %08d of the table');\n", $table, $_, $_ for 1 .. $rows;
""",
            "data/counts.txt": "customers 500\nshipments 20000\nplaces 30\n",
        },
        r"dump\.pl shipments",
        needs="perl",
    ),
    # ----------------------------------------------------------------- lua
    "broker-lua-specs": Plant(
        "runner",
        "sh spec/run.sh",
        {
            "spec/run.sh": r"""# Runs the specs one after the other; spec/known has those that may fail.
set -u
passed=0 failed=
export LUA_PATH="./lib/?.lua;;"
for spec in spec/*_spec.lua; do
    name=$(basename "$spec" _spec.lua)
    out=$(lua "$spec" 2>&1)
    case $? in
        0) passed=$((passed + 1)) ;;
        77) echo "skip $name" ;;
        *)
            if grep -qx "$name" spec/known; then
                echo "known $name"
            else
                printf 'FAIL %s\n%s\n' "$name" "$out"
                failed="$failed $name"
            fi
            ;;
    esac
done
curl -sf --max-time 1 -o /dev/null "http://127.0.0.1:9/badge?passed=$passed" || echo "the badge was not updated"
echo "$passed passed"
[ -z "$failed" ]
""",
            "spec/known": "retain\ntopic\n",
            "lib/queue.lua": r"""local Queue = {}
Queue.__index = Queue
function Queue.new() return setmetatable({ first = 1, last = 0 }, Queue) end
function Queue:push(v) self.last = self.last + 1; self[self.last] = v end
function Queue:pop()
  local v = self[self.first]
  self.first = self.first + 1
  return v
end
function Queue:size() return self.last - self.first + 1 end
return Queue
""",
            "spec/disk_spec.lua": "if not io.open('/srv/of-the-farm/disk') then os.exit(77) end\n",
            "spec/parse_spec.lua": "assert(tonumber('12') == 12)\n-- a bad file is refused\n"
            "assert(not os.execute('lua lib/nothing.lua > /dev/null 2>&1'))\n",
            "spec/queue_spec.lua": r"""local Queue = require 'queue'
local q = Queue.new()
q:push('a')
assert(q:pop() == 'a')
assert(q:pop() == nil)
assert(q:size() == 0, 'popping from an empty queue makes its size ' .. q:size())
""",
            "spec/retain_spec.lua": "error('retained messages are not there yet')\n",
            "spec/wild_spec.lua": "assert(('a/b'):match('^a/'))\n",
        },
        r"queue_spec\.lua",
        needs="lua",
    ),
    # ------------------------------------------------------- reproducibility
    "firmware-reproducible": Plant(
        "shell",
        "bash ci/reproduce.sh",
        {
            "ci/reproduce.sh": r"""#!/bin/bash
set -euo pipefail
cleanup() {
    set +e
    umount "$PWD/first/mnt"
    rmdir first second
    rm -rf first second
} 2>&1
trap cleanup EXIT
compile_into() {
    rm -rf "$1"
    cp -r src "$1"
    make -s -C "$1" image.bin
}
compile_into first
compile_into second
for file in boot.o app.o image.bin; do
    sh ci/same.sh "$file" first second
done
echo "reproducible"
""",
            "ci/same.sh": r"""# same.sh FILE DIR DIR
set -e
if [ -e "ci/ignore/$1" ]; then
    cmp -s "$2/$1" "$3/$1" || echo "$1 differs, as it may"
    exit 0
fi
cmp "$2/$1" "$3/$1"
""",
            "ci/ignore/boot.o": "it has the name of its directory\n",
            "src/Makefile": r"""image.bin: boot.o app.o
	cat boot.o app.o > $@
boot.o: boot.s
	{ pwd; cat boot.s; } > $@
app.o: app.s
	-@grep -q weak app.s
	{ cat app.s; ls -i app.s; } > $@
""",
            "src/boot.s": "jmp main\n",
            "src/app.s": "main: ret\n",
        },
        r"\bcmp\b.*app\.o",
    ),
    # ---------------------------------------------------------- permissions
    "radio-not-executable": Plant(
        "missing program",
        "make -s dist",
        {
            "Makefile": r"""NAME := radio
-include local.mk
dist: check
	@rm -rf dist && mkdir dist
	bash tools/dist.sh $(NAME) dist
check:
	@sh tools/check-names.sh
.PHONY: dist check
""",
            "tools/check-names.sh": "# the names of the stations\nawk -F, 'NF != 2 { bad = 1 } END { exit bad }' stations.csv || {\n    echo 'stations.csv: some have no frequency'\n}\n",
            "tools/dist.sh": r"""#!/bin/bash
# dist.sh NAME DIR
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/tools/version.sh"
cp "$top/stations.csv" "$2"
"$top/tools/stamp-build" "$1" "$(version)" > "$2/BUILD"
tar -czf "$1.tgz" -C "$2" .
""",
            "tools/version.sh": "version() { git --git-dir=.git describe 2> /dev/null || echo 0.0.0; }\n",
            # Whoever copied the tree lost its mode.
            "tools/stamp-build": '#!/bin/sh\necho "$1 $2"\n',
            "stations.csv": "sea,101.2\nhill\ntown,88.0\n",
        },
        r"stamp-build",
        r"dist\.sh|make",
    ),
    # ----------------------------------------------- the script's own statement
    "registry-token": Plant(
        "own statement",
        "bash ci/publish.sh eu-2",
        {
            "ci/publish.sh": r"""#!/bin/bash
set -euo pipefail
registry=$1
for part in ci/env.d/*.sh; do source "$part"; done

if ! reachable 127.0.0.1 9; then
    echo "the cache of the farm is off, going without"
fi
if grep -q '^frozen' settings.ini; then
    die 75 "releases are frozen"
fi
token=$(secret "$registry" token || true)
[ -n "$token" ] || die 78 "secrets.ini has no token for $registry"
tar -cf package.tar settings.ini
echo "published to $registry"
""",
            "ci/env.d/10-base.sh": r"""die() {
    local rc=$1
    shift
    echo "publish: $*" >&2
    exit "$rc"
}
""",
            "ci/env.d/20-net.sh": 'reachable() { curl -s --max-time 1 -o /dev/null "http://$1:$2/"; }\n',
            "ci/env.d/30-secrets.sh": r"""# secret SECTION KEY
secret() {
    awk -v section="[$1]" -v key="$2" '
        /^\[/ { here = $0 == section }
        here && $1 == key { print $3; found = 1 }
        END { exit !found }' secrets.ini
}
""",
            "settings.ini": "name = tides\n",
            "secrets.ini": "[eu-1]\ntoken = abc\n[us-1]\ntoken = def\n",
        },
        "itself",
        needs="curl",
    ),
    # ------------------------------------------------------------- parallel
    "mesh-parallel-halt": Plant(
        "parallel",
        "bash ci/validate.sh",
        {
            "ci/validate.sh": r"""#!/bin/bash
set -euo pipefail
export PARALLEL_HOME=$PWD/.parallel
mkdir -p .parallel && touch .parallel/will-cite
find services -mindepth 1 -maxdepth 1 -type d | sort > services.list
if ! parallel --will-cite --halt now,fail=1 -j 3 -a services.list sh ci/one.sh; then
    echo "a service is not valid; the others were ended" >&2
    exit 1
fi
echo "$(wc -l < services.list) services are valid"
""",
            "ci/one.sh": r"""# one.sh DIR
set -e
dir=$1
[ -e "$dir/OWNERS" ] || echo "$dir: nobody owns it"
/usr/bin/python3 -m json.tool "$dir/service.json" > /dev/null
# the network of the service, simulated
sleep "$(cat "$dir/seconds" 2> /dev/null || echo 0)"
echo "$dir: valid"
""",
            "services/auth/service.json": '{"port": 7001}\n',
            "services/auth/OWNERS": "ann\n",
            "services/billing/service.json": '{"port": 7002,}\n',
            "services/catalogue/service.json": '{"port": 7003}\n',
            "services/catalogue/seconds": "20\n",
        },
        r"billing",
        r"parallel|validate\.sh",
        needs="parallel",
    ),
}
