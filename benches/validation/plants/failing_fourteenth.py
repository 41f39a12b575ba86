"""The fourteenth part of the plants of failing.py: builds, test runs, scripts and jobs, written before anything of it was recorded,
by somebody who had not read the rules. Each was run without the tool; answers.md has its true cause.

Debian packages that a bare machine may lack: gcc g++ make cmake ninja-build meson autoconf m4 patch bats python3-pytest perl rake
curl git default-jdk-headless nodejs npm; cargo from rustup."""

from plant import Plant

FOURTEENTH = {
    # ----------------------------------------------------------------- make
    "hive-make-segv": Plant(
        "make",
        "sh ./command",
        {
            "Makefile": r"""# hive: unit tests, each a program of its own
BUILD := build
HONEY := $(shell pkg-config --exists libhoney-2 2>/dev/null && echo 1 || echo 0)
TESTS := comb queen swarm waggle
CFLAGS := -O0 -g -Wall -DHAVE_HONEY=$(HONEY)

check: $(TESTS:%=$(BUILD)/%.ok)
	@echo "all tests passed"

$(BUILD)/%.ok: $(BUILD)/test_%
	@rm -f $@
	./$< > $(BUILD)/$*.log 2>&1
	@touch $@

$(BUILD)/test_%: tests/%.c src/hive.c src/hive.h
	@mkdir -p $(BUILD)
	$(CC) $(CFLAGS) -Isrc -o $@ tests/$*.c src/hive.c

clean:
	-rmdir $(BUILD)/cache
	rm -rf $(BUILD)

.SECONDARY:
.PHONY: check clean
""",
            "src/hive.h": """struct bee { int id; struct bee *next; };
struct bee *hive_add(int id);
struct bee *hive_find(int id);
""",
            "src/hive.c": r"""#include <stdlib.h>
#include "hive.h"
static struct bee *first;
struct bee *hive_add(int id) {
    struct bee *bee = malloc(sizeof *bee);
    bee->id = id;
    bee->next = first;
    return first = bee;
}
struct bee *hive_find(int id) {
    struct bee *bee = first;
    while (bee->id != id) bee = bee->next; /* misses an id that is not there */
    return bee;
}
""",
            "tests/comb.c": '#include "hive.h"\nint main(void) { return hive_add(6)->id != 6; }\n',
            "tests/queen.c": '#include <unistd.h>\n#include "hive.h"\nint main(void) { sleep(1); hive_add(1); return hive_find(1)->id != 1; }\n',
            "tests/swarm.c": """#include "hive.h"
int main(void) {
    for (int id = 0; id < 100; id++) hive_add(id);
    return hive_find(100) != 0;
}
""",
            "tests/waggle.c": '#include "hive.h"\nint main(void) { hive_add(3); hive_add(4); return hive_find(3)->id != 3; }\n',
            "command": "set -e\nmake clean\nmake -j3 check\n",
        },
        r"\btest_swarm\b(?!.*\.c\b)",
        r"^(\S*/)?make\b",
        needs="gcc",
    ),
    "stencil-configure-engine": Plant(
        "autoconf",
        "bash ci/build.sh",
        {
            "configure.ac": r"""AC_INIT([stencil], [1.2], [bugs@example.org])
AC_CONFIG_SRCDIR([stencil.c])
AC_PROG_CC
AC_CHECK_HEADERS([cuda.h CL/cl.h sys/epoll.h])
AC_CHECK_FUNCS([kqueue epoll_create1])
AC_ARG_WITH([engine], [AS_HELP_STRING([--with-engine=NAME], [scalar, simd or vulkan])], [], [with_engine=scalar])
AC_MSG_CHECKING([for the engine])
AS_CASE([$with_engine],
  [scalar|simd|vulkan], [AC_MSG_RESULT([$with_engine])],
  [AC_MSG_RESULT([?])
   AC_MSG_ERROR([there is no engine '$with_engine'])])
AC_SUBST([with_engine])
AC_CONFIG_FILES([Makefile])
AC_OUTPUT
""",
            "Makefile.in": "stencil: stencil.c\n\t@CC@ -DENGINE_@with_engine@ -o $@ stencil.c\n",
            "stencil.c": "int main(void) { return 0; }\n",
            "ci/defaults.sh": ': "${ENGINE:=vulcan}"\n: "${JOBS:=2}"\nexport CFLAGS=-O0\n',
            "ci/build.sh": r"""# builds the tree in place
set -eu
source ci/defaults.sh
[ -x ./configure ] || autoconf
if ! env CC=gcc ./configure --with-engine="$ENGINE" > configure.out 2>&1; then
    tail -n 4 configure.out
    exit 1
fi
make -j "$JOBS"
""",
        },
        r"\./configure",
        needs="autoconf",
    ),
    # ---------------------------------------------------------------- cmake
    "tariff-cmake-generator": Plant(
        "cmake",
        "sh ./command",
        {
            "CMakeLists.txt": r"""cmake_minimum_required(VERSION 3.16)
project(tariff C)
include(CheckFunctionExists)
check_function_exists(strlcpy_s HAVE_STRLCPY_S)
check_function_exists(arc4random_stir HAVE_ARC4RANDOM_STIR)
find_program(CCACHE ccache-of-the-farm)
add_library(money STATIC src/money.c)
add_custom_command(
  OUTPUT ${CMAKE_BINARY_DIR}/zones.h
  COMMAND /usr/bin/python3 ${CMAKE_SOURCE_DIR}/tools/gen_zones.py ${CMAKE_SOURCE_DIR}/data/zones.json ${CMAKE_BINARY_DIR}/zones.h
  DEPENDS tools/gen_zones.py data/zones.json
  VERBATIM)
add_executable(tariff src/main.c ${CMAKE_BINARY_DIR}/zones.h)
target_include_directories(tariff PRIVATE ${CMAKE_BINARY_DIR})
target_link_libraries(tariff money)
""",
            "tools/gen_zones.py": r"""import json
import sys

with open(sys.argv[1]) as text:
    zones = json.load(text)
lines = []
for zone in sorted(zones, key=lambda zone: zone["number"]):
    lines.append(f'{{ {zone["number"]}, {zone["cents"]}, {zone["surcharge"]} }},')
with open(sys.argv[2], "w") as out:
    out.write("\n".join(lines))
""",
            "data/zones.json": """[
  {"number": 1, "cents": 290, "surcharge": 0},
  {"number": 2, "cents": 340, "surcharge": 50},
  {"number": 3, "cents": 410, "surchage": 50}
]
""",
            "src/money.c": "int with_tax(int cents) { return cents + cents * 7 / 100; }\n",
            "src/main.c": r"""#include <stdio.h>
static const int zones[][3] = {
#include "zones.h"
};
int with_tax(int);
int main(void) { printf("%d\n", with_tax(zones[0][1])); return 0; }
""",
            "ci/functions.sh": r"""say() { printf '== %s\n' "$*"; }
configure() {
    say configure
    cmake -S . -B build -DCMAKE_BUILD_TYPE=Release > configure.log
}
compile() {
    say compile
    cmake --build build -j 2
}
""",
            "command": "set -e\n. ./ci/functions.sh\nconfigure\ncompile\n./build/tariff\n",
        },
        r"gen_zones\.py",
        r"make|cmake",
        needs="cmake",
    ),
    # ---------------------------------------------------------------- ninja
    "wireproto-ninja-assert": Plant(
        "ninja",
        "bash ci/pipeline.sh",
        {
            "ci/pipeline.sh": r"""#!/bin/bash
set -euo pipefail
here=$(dirname "$0")
. "$here/lib.sh"
stage lint || log "lint is advisory"
stage build
stage unit
log "the pipeline passed"
""",
            "ci/lib.sh": r"""log() { printf '[%s] %s\n' "$(date +%T)" "$*"; }
stage() {
    local name=$1 rc=0
    log "stage $name"
    bash "$here/stages/$name.sh" || rc=$?
    [ $rc -eq 0 ] || log "stage $name: $rc"
    return $rc
}
""",
            "ci/stages/lint.sh": 'set -e\nawk \'length > 90 { print FILENAME ":" FNR ": long"; bad = 1 } END { exit bad }\' src/*.cpp src/*.hpp\n',
            "ci/stages/build.sh": r"""set -e
. ci/stages/toolchain.sh
mkdir -p out
sed -e "s|@CXX@|$CXX|" -e "s|@CXXFLAGS@|$CXXFLAGS|" build.ninja.in > out/build.ninja
nice -n 5 ninja -C out -k 2
""",
            "ci/stages/toolchain.sh": r"""CXX=g++
CXXFLAGS="-std=c++17 -O0 -Wall"
if echo 'int main() {}' | $CXX -x c++ -fuse-ld=mold-farm -o /dev/null - 2> /dev/null; then
    CXXFLAGS="$CXXFLAGS -fuse-ld=mold-farm"
fi
""",
            "ci/stages/unit.sh": "set -e\n./out/wiredump < /dev/null\n",
            "build.ninja.in": r"""rule cxx
  command = @CXX@ @CXXFLAGS@ -MMD -MF $out.d -c $in -o $out
  depfile = $out.d
rule link
  command = @CXX@ $in -o $out
build crc.o: cxx ../src/crc.cpp
build packet.o: cxx ../src/packet.cpp
build main.o: cxx ../src/main.cpp
build wiredump: link main.o packet.o crc.o
default wiredump
""",
            "src/header.hpp": """#pragma once
#include <cstdint>
struct Header {
    std::uint16_t magic, version;
    std::uint32_t sequence;
    std::uint64_t length; // was 32 bits
};
""",
            "src/crc.cpp": "unsigned crc(const char *text) { unsigned c = 0; while (*text) c = c * 31 + static_cast<unsigned char>(*text++); return c; }"
            " // a stand-in\n",
            "src/packet.cpp": """#include "header.hpp"
static_assert(sizeof(Header) == 12, "the header on the wire has 12 bytes");
int header_size() { return sizeof(Header); }
""",
            "src/main.cpp": 'int header_size();\nunsigned crc(const char *);\nint main() { return crc("") + header_size() == 0; }\n',
        },
        r"(cc1plus|g\+\+).*packet\.cpp",
        r"ninja|build\.sh",
        needs="ninja",
    ),
    # ---------------------------------------------------------------- meson
    "sundial-meson-version": Plant(
        "meson",
        "sh ./command",
        {
            "meson.build": r"""project('sundial', 'c')
cc = meson.get_compiler('c')
conf = configuration_data()
foreach header : ['gnomon/gnomon.h', 'sys/timerfd.h']
  conf.set('HAVE_' + header.underscorify().to_upper(), cc.has_header(header))
endforeach
gnomon = dependency('libgnomon', method: 'pkg-config', required: false)
version = run_command('sh', 'tools/version.sh', check: true).stdout().strip()
conf.set_quoted('VERSION', version)
configure_file(output: 'config.h', configuration: conf)
executable('sundial', 'sundial.c')
""",
            "tools/version.sh": r"""# the last version of NEWS.md
set -eu
news=$(dirname "$0")/../NEWS.md
version=$(sed -n 's/^## \([0-9][0-9.]*\) .*/\1/p' "$news" | head -n 1)
case $version in
    *.*.*) echo "$version" ;;
    *) echo "NEWS.md: '$version' is no version" >&2; exit 65 ;;
esac
""",
            "NEWS.md": "# News\n\n## Unreleased\n- shadows\n\n## v1.4.0 (2024-06-01)\n- noon\n",
            "sundial.c": '#include "config.h"\nint main(void) { return VERSION[0] == 0; }\n',
            "command": """rm -rf build
if meson setup build --buildtype=debug; then
    meson compile -C build && ./build/sundial
else
    rc=$?
    tail -n 5 build/meson-logs/meson-log.txt
    exit $rc
fi
""",
        },
        r"version\.sh",
        r"meson",
        needs="meson",
    ),
    # ---------------------------------------------------------------- cargo
    "tillsum-cargo-test": Plant(
        "cargo",
        "bash ci/test.sh",
        {
            "Cargo.toml": '[package]\nname = "tillsum"\nversion = "0.3.1"\nedition = "2021"\n\n[lib]\ntest = false\ndoctest = false\n\n'
            '[[bin]]\nname = "tillsum"\ntest = false\n\n[profile.dev]\ndebug = 0\n\n[workspace]\n',
            "src/lib.rs": r"""/// Rounds tenths of a cent to cents, halves to even.
pub fn round(tenths: i64) -> i64 {
    let (cents, rest) = (tenths.div_euclid(10), tenths.rem_euclid(10));
    if rest >= 5 { cents + 1 } else { cents }
}

pub fn parse(text: &str) -> Option<i64> {
    text.trim().parse().ok()
}
""",
            "src/main.rs": r"""fn main() {
    let Some(tenths) = std::env::args().nth(1).and_then(|text| tillsum::parse(&text)) else {
        eprintln!("usage: tillsum TENTHS");
        std::process::exit(2);
    };
    println!("{}", tillsum::round(tenths));
}
""",
            "tests/cli.rs": r"""use std::process::Command;

#[test]
fn refuses_what_is_no_number() {
    for words in [vec![], vec!["x"], vec!["1.5"]] {
        let status = Command::new(env!("CARGO_BIN_EXE_tillsum")).args(words).status().unwrap();
        assert_eq!(status.code(), Some(2));
    }
}

#[test]
fn prints_cents() {
    let output = Command::new(env!("CARGO_BIN_EXE_tillsum")).arg("42").output().unwrap();
    assert_eq!(output.stdout, b"4\n");
}
""",
            "tests/halves.rs": r"""#[test]
fn up_to_even() {
    assert_eq!(tillsum::round(15), 2);
}

#[test]
fn down_to_even() {
    assert_eq!(tillsum::round(25), 2);
}
""",
            "ci/test.sh": r"""#!/usr/bin/env bash
set -euo pipefail
export CARGO_TARGET_DIR=$PWD/target CARGO_NET_OFFLINE=true CARGO_TERM_COLOR=never
cargo fmt-of-the-team --check 2> /dev/null || echo "the formatter is not installed"
cargo test 2>&1 | tee test.log
""",
        },
        r"\bhalves\b(?!.*fmt)",
        r"^\S*cargo\b",
        needs="cargo",
    ),
    # ---------------------------------------------------------- npm and node
    "basket-npm-test": Plant(
        "npm",
        "npm test",
        {
            ".npmrc": "update-notifier=false\nlogs-max=0\nfund=false\naudit=false\n",
            "package.json": r"""{
  "name": "basket",
  "version": "0.9.2",
  "private": true,
  "scripts": {
    "pretest": "node scripts/stale.js || echo 'the snapshot is stale'",
    "test": "node --test"
  }
}
""",
            "scripts/stale.js": "process.exit(require('fs').existsSync('snapshot.json') ? 0 : 4);\n",
            "lib/tax.js": "exports.gross = (net, rate) => net + net * rate;\nexports.sum = (list) => list.reduce((a, b) => a + b, 0);\n",
            "bin/export.js": r"""const format = process.argv[2];
if (!['csv', 'json'].includes(format)) {
  console.error(`no such format: ${format}`);
  process.exit(2);
}
console.log(format === 'csv' ? 'item,cents' : '[]');
""",
            "test/export.test.js": r"""const test = require('node:test');
const assert = require('node:assert');
const { spawnSync } = require('node:child_process');
const run = (format) => spawnSync(process.execPath, ['bin/export.js', format], { encoding: 'utf8' });
test('refuses pdf', () => assert.strictEqual(run('pdf').status, 2));
test('refuses nothing', () => assert.strictEqual(run('').status, 2));
test('csv', () => assert.strictEqual(run('csv').stdout, 'item,cents\n'));
""",
            "test/tax.test.js": r"""const test = require('node:test');
const assert = require('node:assert');
const { gross, sum } = require('../lib/tax.js');
test('nothing', () => assert.strictEqual(sum([]), 0));
test('sum of prices', () => assert.strictEqual(sum([0.1, 0.2]), 0.3));
test('gross', () => assert.strictEqual(gross(100, 0.5), 150));
""",
            "test/zero.test.js": r"""const test = require('node:test');
const assert = require('node:assert');
const { gross } = require('../lib/tax.js');
test('zero', () => assert.strictEqual(gross(0, 0.19), 0));
""",
        },
        r"tax\.test\.js",
        r"node --test$|^npm|/npm ",
        needs="npm",
    ),
    "homepage-node-release": Plant(
        "node",
        "node release.mjs",
        {
            "release.mjs": r"""import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';

function run(program, ...args) {
  console.log('+', program, ...args);
  execFileSync(program, args, { stdio: 'inherit' });
}
function attempt(program, ...args) {
  try {
    run(program, ...args);
  } catch (error) {
    console.warn(`warning: ${program}: ${error.status ?? error.code}`);
  }
}

mkdirSync('dist', { recursive: true });
attempt('git', '--git-dir=.git', 'describe', '--tags');
attempt('zopfli-of-the-farm', 'css/site.css');
run('sh', 'scripts/collect.sh', 'dist');
run('tar', '-czf', 'site.tgz', '-C', 'dist', 'index.html', 'site.css', 'sitemap.xml');
console.log('released');
""",
            "scripts/collect.sh": r"""# collect.sh DIR: the files of the site
out=$1
sed "s/@YEAR@/2024/" pages/index.html > "$out/index.html"
perl scripts/sitemap.pl pages/pages.csv > "$out/sitemap.tmp" && mv "$out/sitemap.tmp" "$out/sitemap.xml"
cat css/*.css > "$out/site.css"
""",
            "scripts/sitemap.pl": r"""use strict;
use warnings;
print "<urlset>\n";
while (<>) {
    chomp;
    my ($path, $date) = split /;/;
    $date =~ /^\d{4}-\d\d-\d\d$/ or die "$ARGV:$.: no date: $date\n";
    print "<url><loc>$path</loc><lastmod>$date</lastmod></url>\n";
}
print "</urlset>\n";
""",
            "pages/index.html": "<h1>Home</h1><p>&copy; @YEAR@</p>\n",
            "pages/pages.csv": "/;2024-01-03\n/about;2024-02-11\n/team;yesterday\n/jobs;2024-05-20\n",
            "css/site.css": "h1 { color: navy }\n",
        },
        r"sitemap\.pl",
        r"\btar\b|gzip|release\.mjs",
        needs="node",
    ),
    # --------------------------------------------------- pytest and unittest
    "spooler-pytest-hang": Plant(
        "pytest",
        "pytest -q -p no:cacheprovider tests",
        {
            "worker.py": r"""import os
import sys
import time

spool = sys.argv[1]
while True:
    names = sorted(os.listdir(spool))
    if "stop" in names and not any(name.endswith(".job") for name in names):
        break
    for name in names:
        if name.endswith(".job") and not name.startswith("."):
            os.rename(os.path.join(spool, name), os.path.join(spool, name + ".done"))
    time.sleep(0.05)
""",
            "tests/test_worker.py": r"""import os
import pathlib
import subprocess

import pytest


def worker(spool, seconds):
    return subprocess.run(["/usr/bin/python3", "worker.py", str(spool)], timeout=seconds, check=True)


@pytest.fixture
def spool(request):
    path = pathlib.Path("spool", request.node.name.replace("test_", ""))
    path.mkdir(parents=True)
    return path


def test_idle(spool):
    # Nobody says stop, so it has to go on.
    with pytest.raises(subprocess.TimeoutExpired):
        worker(spool, 0.5)


def test_no_spool(spool):
    with pytest.raises(subprocess.CalledProcessError):
        worker(spool / "nowhere", 30)


def test_drains(spool):
    for job in ["a.job", "b.job", ".c.job"]:
        (spool / job).write_text("print\n")
    (spool / "stop").touch()
    worker(spool, 2)
    assert len([name for name in os.listdir(spool) if name.endswith(".done")]) == 3


def test_stops(spool):
    (spool / "stop").touch()
    worker(spool, 30)
""",
        },
        r"worker\.py spool/drains\b",
        r"pytest",
        needs="pytest",
    ),
    "abacus-env-matrix": Plant(
        "unittest",
        "bash ci/matrix.sh",
        {
            "ci/matrix.sh": r"""#!/bin/bash
# Runs the suites as tox would: one environment after the other, all of them.
set -uo pipefail
. ci/matrix.conf
failed=() tolerated=()

run_env() {
    local name=$1 suite=${suites[$1]} flags=${python_flags[$1]-}
    # shellcheck disable=SC2086
    env -u PYTHONPATH ABACUS_ENV="$name" /usr/bin/python3 $flags -m unittest -q "tests.$suite" > "log/$name.txt" 2>&1
}

mkdir -p log
for name in $order; do
    if run_env "$name"; then
        echo "$name: passed"
    elif [[ " $may_fail " == *" $name "* ]]; then
        tolerated+=("$name")
        echo "$name: failed, which it may"
    else
        failed+=("$name")
        echo "$name: failed"
    fi
done
echo "tolerated: ${tolerated[*]-}"
if [ ${#failed[@]} -gt 0 ]; then
    for name in "${failed[@]}"; do tail -n 6 "log/$name.txt"; done
    exit 1
fi
""",
            "ci/matrix.conf": r"""order="base next decimal roman"
may_fail="next"
declare -A suites=([base]=test_base [next]=test_next [decimal]=test_decimal [roman]=test_roman)
declare -A python_flags=([next]="-W error" [roman]="-X dev")
""",
            "abacus.py": r"""import warnings


def add(*numbers):
    return sum(numbers)


def old_add(a, b):
    warnings.warn("use add", DeprecationWarning)
    return a + b


def divide(a, b):
    return round(a / b, 2)


def roman(n):
    text = ""
    for value, digits in [(10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]:
        while n >= value:
            text, n = text + digits, n - value
    return text
""",
            "tests/__init__.py": "",
            "tests/test_base.py": "import unittest\n\nimport abacus\n\n\nclass Base(unittest.TestCase):\n"
            "    def test_add(self):\n        self.assertEqual(abacus.add(1, 2, 3), 6)\n",
            "tests/test_next.py": "import unittest\n\nimport abacus\n\n\nclass Next(unittest.TestCase):\n"
            "    def test_old(self):\n        self.assertEqual(abacus.old_add(1, 2), 3)\n",
            "tests/test_decimal.py": r"""import subprocess
import unittest

import abacus


class Decimal(unittest.TestCase):
    def test_bc_is_not_needed(self):
        self.assertNotEqual(subprocess.run(["sh", "-c", "exec bc-of-the-farm 2> /dev/null"]).returncode, 0)

    def test_half(self):
        self.assertEqual(abacus.divide(2.675, 1), 2.68)

    def test_third(self):
        self.assertEqual(abacus.divide(1, 3), 0.33)
""",
            "tests/test_roman.py": "import unittest\n\nimport abacus\n\n\nclass Roman(unittest.TestCase):\n"
            "    def test_nine(self):\n        self.assertEqual(abacus.roman(19), 'XIX')\n",
        },
        r"unittest .*test_decimal",
    ),
    # ----------------------------------------------------------- perl, ruby
    "lunar-prove": Plant(
        "prove",
        "bash -eo pipefail -c 'mkdir -p log; prove -Ilib -j2 t | tee log/prove.txt; echo \"tests passed\" >> log/prove.txt'",
        {
            "lib/Lunar.pm": r"""package Lunar;
use strict;
use warnings;
use Exporter 'import';
our @EXPORT_OK = qw(leap days);
sub leap { my $y = shift; return $y % 4 == 0 && $y % 100 != 0 ? 1 : 0 }
sub days { my ($y, $m) = @_; return (31, 28 + leap($y), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[$m - 1] }
1;
""",
            "bin/lunar": r"""use strict;
use warnings;
use Lunar 'days';
die "usage: lunar YEAR MONTH\n" unless @ARGV == 2 && "@ARGV" =~ /^\d+ \d+$/;
print days(@ARGV), "\n";
""",
            "t/00-load.t": "use strict;\nuse Test::More tests => 1;\nuse_ok('Lunar');\n",
            "t/10-cli.t": r"""use strict;
use Test::More tests => 3;
isnt(system($^X, '-Ilib', 'bin/lunar', '--help'), 0, 'no help');
isnt(system($^X, '-Ilib', 'bin/lunar', 2023), 0, 'a month is needed');
is(`$^X -Ilib bin/lunar 2023 2`, "28\n", 'february');
""",
            "t/20-leap.t": r"""use strict;
use Test::More;
use Lunar 'leap';
my %leap = (1900 => 0, 1996 => 1, 2000 => 1, 2023 => 0);
is(leap($_), $leap{$_}, "year $_") for sort keys %leap;
done_testing;
""",
            "t/30-moons.t": r"""use strict;
use Test::More tests => 2;
ok(1, 'new moon');
TODO: {
    local $TODO = 'eclipses are not there yet';
    ok(Lunar->can('eclipse'), 'eclipse');
}
""",
        },
        r"20-leap\.t",
        r"\bprove\b",
        needs="prove",
    ),
    "gazette-rake-pages": Plant(
        "rake",
        "rake --quiet",
        {
            "Rakefile": r"""POSTS = FileList['posts/*.md']
PAGES = POSTS.pathmap('public/%n.html')
directory 'public'

task default: %i[lint pages index]

desc 'house style; it only warns'
task :lint do
  sh 'ruby', 'tools/lint.rb', *POSTS do |ok, status|
    warn "lint: #{status.exitstatus}" unless ok
  end
end

POSTS.zip(PAGES).each do |post, page|
  file page => [post, 'public', 'tools/page.rb'] do
    sh "ruby tools/page.rb #{post} > #{page}.new && mv #{page}.new #{page}"
  end
end

multitask pages: PAGES

task :index do
  sh 'ls public > public/index.txt'
end
""",
            "tools/lint.rb": 'bad = ARGV.select { |name| File.read(name) =~ /\\bvery\\b/ }\nbad.each { |name| warn "#{name}: very" }\nexit bad.size\n',
            "tools/page.rb": r"""head, body = File.read(ARGV[0]).split("\n\n", 2)
meta = head.lines.to_h { |line| line.chomp.split(': ', 2) }
title = meta.fetch('title')
year = Integer(meta.fetch('date')[0, 4])
puts "<h1>#{title}</h1><small>#{year}</small>", body
""",
            "posts/harvest.md": "title: Harvest\ndate: 2024-09-12\n\nA very good year.\n",
            "posts/market.md": "title: Market\ndate: 2024-10-01\n\nApples.\n",
            "posts/mayor.md": "Title: The new mayor\ndate: 2024-10-08\n\nShe was elected.\n",
            "posts/weather.md": "title: Weather\ndate: 2024-10-09\n\nIt is very wet.\n",
        },
        r"page\.rb posts/mayor\.md",
        r"rake",
        needs="rake",
    ),
    # ----------------------------------------------------------------- java
    "refunds-java-conformance": Plant(
        "java",
        "sh ./command",
        {
            "tools/Conformance.java": r"""import java.io.File;
import java.util.Arrays;

/** Runs the verifier on each case; the bad ones have to be refused. */
public class Conformance {
    static int verify(File file) throws Exception {
        return new ProcessBuilder("perl", "bin/verify.pl", file.getPath()).inheritIO().start().waitFor();
    }

    public static void main(String[] args) throws Exception {
        int passed = 0;
        for (String kind : new String[] {"bad", "good"}) {
            File[] files = new File("cases/" + kind).listFiles();
            Arrays.sort(files);
            for (File file : files) {
                int status = verify(file);
                if ((status == 0) != kind.equals("good"))
                    throw new IllegalStateException(file + ": status " + status);
                passed++;
            }
        }
        System.out.println(passed + " cases passed");
    }
}
""",
            "bin/verify.pl": r"""use strict;
use warnings;
my $sum = 0;
while (<>) {
    next if /^#/ || !/\S/;
    /^([+-]\d+)\s+\w+$/ or do { print STDERR "$ARGV:$.: syntax\n"; exit 9 };
    $sum += $1;
}
exit($sum == 0 ? 0 : 3);
""",
            "cases/bad/sum.txt": "+100 sale\n-90 refund\n",
            "cases/bad/word.txt": "+x sale\n",
            "cases/good/empty.txt": "# nothing\n",
            "cases/good/partial-refund.txt": "+100 sale\n-40 refund\n-60 partial refund\n",
            "cases/good/sale.txt": "+100 sale\n-100 cash\n",
            "command": "set -e\nmkdir -p classes\njavac -d classes tools/Conformance.java\n"
            "java -XX:TieredStopAtLevel=1 -cp classes Conformance\ntouch conformance.ok\n",
        },
        r"verify\.pl cases/good/partial-refund\.txt",
        r"Conformance",
        needs="javac",
    ),
    # ------------------------------------------------- servers, retries, time
    "payments-e2e-port": Plant(
        "server",
        "bash ci/e2e.sh",
        {
            "ci/e2e.sh": r"""#!/bin/bash
set -euo pipefail
mkdir -p run
pids=()
cleanup() {
    for pid in "${pids[@]}"; do kill "$pid" 2> /dev/null || true; done
    wait || true
}
trap cleanup EXIT

/usr/bin/python3 stub/acquirer.py run/acquirer.port &
pids+=($!)
until [ -s run/acquirer.port ]; do sleep 0.05; done
port=$(cat run/acquirer.port)

cat > run/api.json <<CONFIG
{
  "listen": $port,
  "acquirer": "http://127.0.0.1:$port"
}
CONFIG
node api/server.js run/api.json > run/api.log 2>&1 &
pids+=($!)

delay=0.15
for attempt in 1 2 3 4 5; do
    if curl -sf -o /dev/null "http://127.0.0.1:$port/ready"; then
        echo "ready"
        exec bash ci/scenarios.sh "$port"
    fi
    sleep $delay
    delay=$(awk "BEGIN { print $delay * 2 }")
done
echo "the api is not ready after $attempt attempts; its log:" >&2
cat run/api.log >&2
exit 1
""",
            "ci/scenarios.sh": 'curl -sf "http://127.0.0.1:$1/pay?cents=100" | grep -q accepted\n',
            "stub/acquirer.py": r"""import http.server
import os
import sys


class Acquirer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path.startswith("/charge") else 404)
        self.end_headers()

    def log_message(self, *words):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Acquirer)
with open(sys.argv[1] + ".new", "w") as out:
    out.write(str(server.server_address[1]))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
""",
            "api/server.js": r"""const http = require('http');
const config = JSON.parse(require('fs').readFileSync(process.argv[2], 'utf8'));
const server = http.createServer((request, response) => response.end(request.url === '/ready' ? 'ok' : 'accepted'));
server.listen(config.listen, '127.0.0.1', () => console.log(`listening on ${config.listen}`));
""",
        },
        r"server\.js",
        r"curl",
        needs="node",
    ),
    "toolchain-checksum-retry": Plant(
        "retry",
        "flock toolchain.lock bash scripts/fetch-toolchain.sh dl",
        {
            "setup.sh": r"""set -e
mkdir -p mirror
seq 1 2000 > mirror/libc.a
seq 1 3000 > mirror/crt0.o
tar -cf mirror/toolchain-12.tar --mtime=2024-01-01 --owner=0 --group=0 -C mirror libc.a crt0.o
(cd mirror && sha256sum toolchain-12.tar) | sed 's/^......../5ca1ab1e/' > scripts/toolchain.sha256
""",
            "scripts/retry.sh": r"""# retry COUNT COMMAND...: with a delay that doubles
retry() {
    local left=$1 delay=0.2
    shift
    until "$@"; do
        left=$((left - 1))
        if [ $left -eq 0 ]; then
            echo "giving up on $*" >&2
            return 1
        fi
        echo "trying $1 again in $delay s" >&2
        sleep $delay
        delay=0.4
    done
}
""",
            "scripts/fetch-toolchain.sh": r"""#!/bin/bash
set -uo pipefail
dl=$1
here=$(cd "$(dirname "$0")" && pwd)
source "$here/retry.sh"

fetch() {
    rm -rf "$dl" && mkdir "$dl" || return
    curl -sf --max-time 2 -o "$dl/toolchain-12.tar" http://127.0.0.1:9/toolchain-12.tar ||
        curl -sf -o "$dl/toolchain-12.tar" "file://$PWD/mirror/toolchain-12.tar" ||
        return
    (cd "$dl" && sha256sum --quiet -c "$here/toolchain.sha256")
}

if retry 3 fetch; then
    tar -xf "$dl/toolchain-12.tar" -C "$dl"
    ls "$dl"
else
    exit 1
fi
""",
        },
        r"sha256sum .*-c",
        r"fetch-toolchain",
        "sh setup.sh",
        needs="curl",
    ),
    "lighthouse-wait-ready": Plant(
        "timeout",
        "bash ci/boot.sh",
        {
            "ci/boot.sh": r"""set -eu
mkdir -p run
: > run/app.log
/usr/bin/python3 app/daemon.py run/app.log &
daemon=$!
stop() {
    kill -TERM "$daemon"
    wait "$daemon" || echo "the daemon ended with $?"
}
trap stop EXIT
timeout 2 sh ci/wait-ready.sh run/app.log 'lamp is ready' || {
    rc=$?
    echo "--- the end of the log" >&2
    tail -n 3 run/app.log >&2
    exit $rc
}
sh ci/blink.sh
""",
            "ci/wait-ready.sh": 'until grep -q "$2" "$1"; do\n    sleep 0.2\ndone\necho "$2"\n',
            "ci/blink.sh": "echo blink\n",
            "app/daemon.py": r"""import sys
import time

with open(sys.argv[1], "a", buffering=1) as log:
    log.write("INFO loading the chart\n")
    time.sleep(0.3)
    # was "lamp is ready"
    log.write("INFO Lamp ready\n")
    while True:
        time.sleep(0.5)
""",
        },
        r"wait-ready\.sh|grep -q lamp is ready|grep -q 'lamp",
        r"\bsleep\b",
    ),
    # ---------------------------------------------------------------- limits
    "corpus-badalloc-bench": Plant(
        "limits",
        "sh ./command",
        {
            "src/ngram.cpp": r"""#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>
int main(int argc, char **argv) {
    if (argc != 2) return 2;
    if (!std::strcmp(argv[1], "--has-avx1024")) return 1;
    std::ifstream in(argv[1]);
    std::string line;
    std::getline(in, line);
    // the first line has the number of cells
    std::vector<int> cells(std::strtoul(line.c_str(), nullptr, 10));
    std::size_t n = 0;
    while (std::getline(in, line)) cells[n++ % cells.size()] += line.size();
    std::printf("%zu lines, %d\n", n, cells[0]);
}
""",
            "bench/limited.sh": '# the runner gives 300 MB\nulimit -v 300000\nexec "$@"\n',
            "bench/run.py": r"""import pathlib
import subprocess
import time

avx = subprocess.run(["bin/ngram", "--has-avx1024"]).returncode == 0
print("with" if avx else "without", "avx1024")
with open("results.csv", "w") as results:
    for corpus in ["small", "large", "medium"]:
        start = time.monotonic()
        subprocess.run(["sh", "bench/limited.sh", "bin/ngram", f"corpus/{corpus}.txt"], check=True)
        results.write(f"{corpus},{time.monotonic() - start:.3f}\n")
        results.flush()
""",
            "corpus/small.txt": "1000\nto be\nor not\n",
            "corpus/medium.txt": "100000\nto be\nor not\nto be\n",
            "corpus/large.txt": "200000000\nto be\nor not\nto be\nthat is\n",
            "command": r"""set -e
mkdir -p bin
g++ -O0 -o bin/ngram src/ngram.cpp
/usr/bin/python3 bench/run.py || {
    status=$?
    echo "what there is:"
    cat results.csv
    exit $status
}
""",
        },
        r"\bngram corpus/large\.txt",
        r"run\.py",
        needs="g++",
    ),
    "trainer-memory-watch": Plant(
        "limits",
        "sh ./command",
        {
            "tools/memwatch.sh": r"""#!/bin/bash
# memwatch.sh KIB PROGRAM...: ends PROGRAM once it has more memory than that
limit=$1
shift
"$@" &
pid=$!
while kill -0 $pid 2> /dev/null; do
    rss=$(awk '/^VmRSS/ { print $2 }' /proc/$pid/status 2> /dev/null) || true
    if [ "${rss:-0}" -gt "$limit" ]; then
        echo "memwatch: $1 has $rss KiB" >&2
        kill -KILL $pid
        break
    fi
    sleep 0.1
done
wait $pid
""",
            "ci/nightly.sh": r"""set -e
mkdir -p model
find . -name '*.ckpt' -exec rm {} +
nvidia-smi-of-the-farm 2> /dev/null || echo "no GPU"
bash tools/memwatch.sh 100000 /usr/bin/python3 ml/prepare.py data/words.txt model/vocab.txt
bash tools/memwatch.sh 100000 /usr/bin/python3 ml/train.py model/vocab.txt model/weights.bin
cksum model/weights.bin
""",
            "ml/prepare.py": "import sys\n\nwords = sorted(set(open(sys.argv[1]).read().split()))\nopen(sys.argv[2], 'w').write('\\n'.join(words))\n",
            "ml/train.py": r"""import sys
import time

vocabulary = open(sys.argv[1]).read().split("\n")
history = []
for epoch in range(100):
    # every epoch keeps its gradients
    history.append(bytearray(b"g") * 8_000_000)
    time.sleep(0.05)
with open(sys.argv[2], "wb") as out:
    out.write(bytes(len(vocabulary)))
""",
            "data/words.txt": "the sea is deep and the sky is high\n",
            "command": "bash ci/nightly.sh || { echo 'nightly run failed'; ls model; exit 1; }\n",
        },
        r"^(?!.*memwatch).*train\.py",
        r"memwatch",
    ),
    # ------------------------------------------------------ pipes and signals
    "weblog-sessions-pipe": Plant(
        "pipe",
        "bash ci/report.sh",
        {
            "setup.sh": r"""set -e
mkdir -p logs
awk 'BEGIN { for (i = 0; i < 80000; i++) printf "user%d GET /page/%d 200\n", i < 400 ? i % 12 : i % 40, i }' | gzip > logs/access.log.gz
""",
            "ci/report.sh": r"""#!/bin/bash
set -euo pipefail
trap 'rm report/lock' EXIT
mkdir -p bin report
cc -O0 -o bin/sessions src/sessions.c
gzip -t logs/access.log.1.gz 2> /dev/null || echo "there is no older log"
gzip -dc logs/access.log.gz | bin/sessions | sort -k2,2nr > report/sessions.txt
head -n 3 report/sessions.txt
""",
            "src/sessions.c": r"""#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct user { char name[16]; long hits; };
static struct user *users[32]; /* enough for anybody */
static struct user *find(const char *name) {
    for (int i = 0; i < 32; i++) {
        if (!users[i]) {
            users[i] = calloc(1, sizeof(struct user));
            strcpy(users[i]->name, name);
        }
        if (!strcmp(users[i]->name, name)) return users[i];
    }
    return NULL;
}
int main(void) {
    char line[256], name[16];
    while (fgets(line, sizeof line, stdin))
        if (sscanf(line, "%15s", name) == 1) find(name)->hits++;
    for (int i = 0; i < 32 && users[i]; i++) printf("%s %ld\n", users[i]->name, users[i]->hits);
    return 0;
}
""",
        },
        r"^\S*\bsessions\b",
        r"gzip -dc",
        "sh setup.sh",
        needs="gcc",
    ),
    "builds-latest-pipefail": Plant(
        "pipe",
        "bash ci/promote.sh",
        {
            "ci/promote.sh": r"""#!/bin/bash
# Promotes the newest build.
set -euo pipefail
awk 'BEGIN { for (i = 1; i <= 40000; i++) printf "build-%08d %s green\n", i, "2024-06-" (i % 28 + 1) }' > builds.txt
if grep -q ' red$' builds.txt; then
    echo "a red build is listed"
fi
[ -e promoted ] || echo "nothing was promoted yet"
cmp -s promoted builds.txt || echo "promoting"
latest=$(sort -r builds.txt | head -n 1 | cut -d' ' -f1)
echo "$latest" > promoted
echo "promoted $latest"
""",
        },
        r"sort -r",
    ),
    "artifacts-wait-each": Plant(
        "background jobs",
        "bash ci/verify-artifacts.sh",
        {
            "setup.sh": r"""set -e
mkdir -p artifacts src
for part in core docs plugin-a plugin-b; do
    seq 1 900 | sed "s/^/$part /" > "src/$part.txt"
    tar -czf "artifacts/$part.tgz" -C src "$part.txt"
done
# an upload that broke off
head -c 700 artifacts/plugin-b.tgz > artifacts/plugin-b.part
mv artifacts/plugin-b.part artifacts/plugin-b.tgz
""",
            "ci/verify-artifacts.sh": r"""#!/bin/bash
set -u
mkdir -p lists
declare -A job
check() {
    grep -qs "$1" artifacts/BLOCKED && return 1
    gzip -t "artifacts/$1.tgz" || return
    tar -tzf "artifacts/$1.tgz" > "lists/$1"
}
for file in artifacts/*.tgz; do
    name=$(basename "$file" .tgz)
    check "$name" &
    job[$!]=$name
done
broken=
for pid in "${!job[@]}"; do
    wait "$pid" || broken="$broken ${job[$pid]}"
done
bash ci/notify.sh "${broken:-all is well}" || echo "nobody was notified"
if [ -n "$broken" ]; then
    echo "broken:$broken" >&2
    exit 3
fi
""",
            "ci/notify.sh": 'curl -sf --max-time 2 -d "$1" http://127.0.0.1:9/hook\n',
        },
        r"gzip -t artifacts/plugin-b\.tgz",
        "",
        "sh setup.sh",
        needs="curl",
    ),
    # ------------------------------------------------- packages, configuration
    "distro-patch-series": Plant(
        "packages",
        "bash build-all.sh ulog tinycfg ringbuf",
        {
            "build-all.sh": r"""#!/bin/bash
set -e
top=$PWD
cleanup() {
    cd "$top"
    rm -r work/stage
    rm -rf work
}
trap cleanup EXIT

build_package() {
    local name=$1
    rm -rf "work/$name"
    mkdir -p work
    cp -r "packages/$name/src" "work/$name"
    (
        cd "work/$name"
        . "$top/packages/$name/recipe"
        for patch in "$top/packages/$name"/optional/*.patch; do
            [ -e "$patch" ] || continue
            if patch --dry-run -f -s -p1 -i "$patch" > /dev/null; then
                patch -s -p1 -i "$patch"
            else
                echo "$name: $(basename "$patch") does not apply, skipped"
            fi
        done
        for patch in $patches; do
            patch -f -s -p1 -i "$top/packages/$name/$patch"
        done
        build
    )
}

for package in "$@"; do
    echo "=== $package"
    build_package "$package"
done
""",
            "packages/ulog/recipe": "patches=\nbuild() { cc -c ulog.c; }\n",
            "packages/ulog/src/ulog.c": "int level;\nvoid ulog(void) { level++; }\n",
            "packages/ulog/optional/colour.patch": "--- a/ulog.c\n+++ b/ulog.c\n@@ -1,2 +1,2 @@\n-int levels;\n+int levels, colour;\n"
            " void ulogs(void) { levels++; }\n",
            "packages/tinycfg/recipe": "patches='0001-const.patch 0002-limit.patch'\nbuild() { cc -Wall -c cfg.c; }\n",
            "packages/tinycfg/src/cfg.c": '#define LIMIT 64\nint limit(void) { return LIMIT; }\nconst char *path(void) { return "/etc/tiny"; }\n',
            "packages/tinycfg/0001-const.patch": "--- a/cfg.c\n+++ b/cfg.c\n@@ -1,3 +1,3 @@\n #define LIMIT 64\n int limit(void) { return LIMIT; }\n"
            '-const char *path(void) { return "/etc/tiny"; }\n+const char *path(void) { return "/etc/tinycfg"; }\n',
            "packages/tinycfg/0002-limit.patch": "--- a/cfg.c\n+++ b/cfg.c\n@@ -1,2 +1,2 @@\n-#define LIMIT 32\n+#define LIMIT 128\n"
            " int limits(void) { return LIMIT; }\n",
            "packages/ringbuf/recipe": "patches=\nbuild() { cc -c ring.c; }\n",
            "packages/ringbuf/src/ring.c": "int ring[8];\n",
        },
        r"patch .*0002-limit\.patch",
        needs="patch",
    ),
    "cronhost-m4-chain": Plant(
        "configuration",
        "sh ./command",
        {
            "command": r"""set -e
. ./render.sh
prepare staging
render_all
validate
tar -cf host.tar etc
""",
            "render.sh": r"""# sourced
prepare() {
    target=$1
    rm -rf etc && mkdir etc
    id -u "deploy-$target" > /dev/null 2>&1 || echo "no user deploy-$target; files stay root's"
}
render_all() {
    for name in app.ini cron.tab limits.conf motd; do
        [ -f "templates/$name.m4" ] && m4 -P -DTARGET="$target" "templates/$name.m4" > "etc/$name.new" && mv "etc/$name.new" "etc/$name"
    done
    echo "rendered"
}
validate() {
    grep -q "^target = $target" etc/app.ini
    perl tools/check_cron.pl etc/cron.tab
}
""",
            "templates/app.ini.m4": "[app]\ntarget = TARGET\n",
            "templates/cron.tab.m4": "m4_include(templates/TARGET/quiet-hours.m4)0 4 * * * rotate\n*/5 * * * * poll TARGET\n",
            "templates/production/quiet-hours.m4": "# nothing from 22 to 4\n",
            "templates/limits.conf.m4": "m4_ifelse(TARGET, production, nofile 65536, nofile 1024)\n",
            "templates/motd.m4": "Welcome to TARGET\n",
            "tools/check_cron.pl": r"""open my $tab, '<', $ARGV[0] or die "$ARGV[0]: $!\n";
while (<$tab>) {
    next if /^#/;
    die "$ARGV[0]:$.: five fields and a command\n" unless split > 5;
}
""",
        },
        r"\bm4\b.*cron\.tab",
        r"check_cron",
        needs="m4",
    ),
    # -------------------------------------------------------- tests of scripts
    "slug-bats": Plant(
        "bats",
        "sh ./command",
        {
            "bin/slug.sh": r"""# slug.sh WORDS...: a name for a URL
[ $# -gt 0 ] || { echo "usage: slug.sh WORDS..." >&2; exit 64; }
printf '%s\n' "$*" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9\n-'
""",
            "tests/slug.bats": r"""setup() {
    cd "$BATS_TEST_DIRNAME/.."
}

@test "needs words" {
    run sh bin/slug.sh
    [ "$status" -eq 64 ]
}

@test "lower case" {
    run sh bin/slug.sh Hello World
    [ "$output" = hello-world ]
}

@test "an unknown file is an error" {
    run sh bin/slugs.sh
    [ "$status" -ne 0 ]
}

@test "no double hyphens" {
    run sh bin/slug.sh 'rock & roll'
    [ "$status" -eq 0 ]
    [ "$output" = rock-roll ]
}

@test "digits stay" {
    run sh bin/slug.sh Route 66
    [ "$output" = route-66 ]
}
""",
            "command": "set -e\nsh -n bin/slug.sh\nbats --tap tests\necho 'ready to tag'\n",
        },
        r"bats",
        needs="bats",
    ),
    "calfmt-golden-xfail": Plant(
        "golden files",
        "/usr/bin/python3 tests/golden.py",
        {
            "tests/golden.py": r"""import glob
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

XFAIL = {"accents"}


def check(case):
    name = os.path.basename(case)[:-3]
    got = f"got/{name}.out"
    with open(case) as text, open(got, "w") as out:
        subprocess.run(["awk", "-f", "calfmt.awk"], stdin=text, stdout=out, check=True)
    same = subprocess.run(["diff", "-u", f"tests/golden/{name}.out", got]).returncode == 0
    return name, same


os.makedirs("got", exist_ok=True)
with ThreadPoolExecutor(1) as pool:
    results = dict(pool.map(check, sorted(glob.glob("tests/cases/*.in"))))
failed = [name for name, same in results.items() if not same and name not in XFAIL]
print(len(results), "cases,", len(failed), "failed:", *failed)
if failed:
    # For the page of the run; its host is not always there.
    subprocess.run(["sh", "-c", "cp -r got /srv/of-the-farm/artifacts 2> /dev/null"])
    sys.exit(1)
""",
            "calfmt.awk": r"""{ split($1, d, "-"); printf "%02d.%02d.%04d %-6s|\n", d[3], d[2], d[1], $2 }
""",
            "tests/cases/accents.in": "2024-07-14 f\u00eate\n",
            "tests/golden/accents.out": "14.07.2024 F\u00eate   |\n",
            "tests/cases/leap.in": "2024-02-29 leap\n2024-3-1 after\n",
            "tests/golden/leap.out": "29.02.2024 leap  |\n1.03.2024 after |\n",
            "tests/cases/plain.in": "2024-01-31 end\n",
            "tests/golden/plain.out": "31.01.2024 end   |\n",
            "tests/cases/wide.in": "2024-12-24 christmas\n",
            "tests/golden/wide.out": "24.12.2024 christmas|\n",
        },
        r"diff .*leap\.out",
    ),
    # ------------------------------------------------------------------ git
    "backport-git-merge": Plant(
        "git",
        "bash ci/backport.sh work feature/tides",
        {
            "setup.sh": r"""set -e
git -c init.defaultBranch=main init -q work
cd work
git config user.name Ann
git config user.email ann@example.org
git config commit.gpgSign false
printf 'port = 80\nhost = sea\n' > app.conf
printf 'notes\n' > NOTES
git add . && git commit -q -m 'first'
git checkout -q -b feature/tides
printf 'port = 8080\nhost = sea\n' > app.conf
git commit -q -am 'tides have a port of their own'
git checkout -q main
printf 'port = 443\nhost = sea\n' > app.conf
git commit -q -am 'tls'
printf 'more notes\n' >> NOTES
git commit -q -am 'notes'
""",
            "ci/backport.sh": r"""#!/bin/bash
set -Eeuo pipefail
cd "$1"
feature=$2
export GIT_TERMINAL_PROMPT=0
undo() {
    local rc=$?
    git merge --abort || true
    git tag -d backport-base
    exit $rc
}
git fetch -q origin 2> /dev/null || echo "there is no origin; going on with what is here"
if ! git diff --quiet HEAD~1 -- NOTES; then
    echo "the notes changed"
fi
git merge-base --is-ancestor "$feature" HEAD || echo "$feature is not in yet"
trap undo ERR
git merge -q --no-ff -m "backport $feature" "$feature"
git log --oneline -n 1
""",
        },
        r"git .*\bmerge -q",
        "",
        "sh setup.sh",
        needs="git",
    ),
    # ------------------------------------------------------ missing programs
    "handbook-interpreter": Plant(
        "missing program",
        "sh ./command",
        {
            "setup.sh": "chmod +x tools/collate tools/wordcount\n",
            "tools/collate": "#!/usr/bin/env python2.6\nimport sys\nfor name in sys.argv[1:]:\n    print open(name).read()\n",
            "tools/wordcount": '#!/bin/sh\ncat "$@" | wc -w\n',
            "chapters/1/start.txt": "To begin, open the box.\n",
            "chapters/2/use.txt": "Turn the handle.\n",
            "chapters/3/care.txt": "Oil it once a year.\n",
            "ci/spell.sh": 'aspell-of-the-farm list < "$1"\n',
            "ci/book.sh": r"""set -eu
find chapters -name '*.txt' | sort > chapters.list
while read -r chapter; do
    sh ci/spell.sh "$chapter" 2> /dev/null || echo "$chapter: spelling was not checked"
done < chapters.list
xargs tools/wordcount < chapters.list
xargs tools/collate < chapters.list > book.txt
gzip -k9 book.txt
""",
            "command": "set -e\nenv LC_ALL=C sh ci/book.sh\nls -l book.txt.gz\n",
        },
        r"python2\.6|^\S*tools/collate",
        r"xargs",
        "sh setup.sh",
    ),
    "audit-grep-count": Plant(
        "runner",
        "bash -eo pipefail -c 'source ci/functions.sh\nsetup_workspace\nbuild\naudit\npublish'",
        {
            "ci/functions.sh": r"""setup_workspace() {
    mkdir -p out
    cat > out/build.cfg <<-CFG
	[build]
	jobs = 2
	CFG
    diff -q out/build.cfg last/build.cfg > /dev/null 2>&1 || echo "the configuration changed"
}
build() {
    local unit
    for unit in units/*.unit; do
        case $(head -n 1 "$unit") in
            skip*) echo "skipped $unit" ;;
            *) awk -f tools/compile.awk "$unit" > "out/$(basename "$unit" .unit).obj" 2>> out/build.log ;;
        esac
    done
}
audit() {
    if grep -q 'error:' out/build.log; then
        echo "the build has errors"
        return 1
    fi
    warnings=$(grep -c 'warning:' out/build.log)
    echo "$warnings warnings"
    [ "$warnings" -le 10 ]
}
publish() {
    cat out/*.obj > out/program
    echo published
}
""",
            "tools/compile.awk": '{ print NF, $1 } END { print "note: " FILENAME > "/dev/stderr" }\n',
            "units/alpha.unit": "load a\nstore b\n",
            "units/beta.unit": "skip this\n",
            "units/gamma.unit": "add a b\n",
        },
        r"grep -c",
    ),
    # ----------------------------------------------- the script's own statement
    "coverage-untraced": Plant(
        "own statement",
        "bash ci/coverage.sh",
        {
            "ci/coverage.sh": r"""#!/bin/bash
set -e
source ci/gcov-lib.sh
mkdir -p cov
for unit in lexer parser printer; do
    collect "$unit" > "cov/$unit.gcov"
done
sh ci/badge-host.sh 2> /dev/null || echo "the badge's host does not answer"
for unit in lexer parser printer; do
    report "$unit"
done
echo "coverage is fine"
""",
            "ci/gcov-lib.sh": r"""collect() {
    sed -n "s/^$1 //p" run.trace || true
}
report() {
    local hit missed percent
    hit=$(grep -c '^hit' "cov/$1.gcov" || true)
    missed=$(grep -c '^miss' "cov/$1.gcov" || true)
    if [ $((hit + missed)) -eq 0 ]; then
        echo "$1: no line of it was traced" >&2
        return 4
    fi
    percent=$((100 * hit / (hit + missed)))
    echo "$1: $percent %"
}
""",
            "ci/badge-host.sh": "curl -sf --max-time 1 http://127.0.0.1:9/\n",
            "run.trace": "lexer hit 1\nlexer hit 2\nlexer miss 3\nparser hit 1\nprnter hit 1\n",
        },
        "itself",
    ),
    "dist-perl-release": Plant(
        "own statement",
        "perl tools/release.pl",
        {
            "tools/release.pl": r"""use strict;
use warnings;

sub try { system(@_) == 0 or warn "warning: '@_' ended with ", $? >> 8, "\n" }
sub must { system(@_) == 0 or die "'@_' ended with ", $? >> 8, "\n" }
sub first { my ($file, $pattern) = @_; open my $in, '<', $file or die "$file: $!\n"; while (<$in>) { return $1 if $_ =~ $pattern } return }

try('git', '--git-dir=.git', 'rev-parse', '-q', '--verify', 'HEAD');
try('sh', 'tools/style.sh');
must('sh', 'tools/manifest.sh');
my $version = first('lib/Tide.pm', qr/VERSION = '([\d.]+)'/) // die "lib/Tide.pm has no version\n";
my $changes = first('Changes', qr/^([\d.]+)\s/) // die "Changes has no version\n";
die "lib/Tide.pm is $version, but Changes ends with $changes\n" if $version ne $changes;
must('tar', '-czf', "Tide-$version.tar.gz", '-T', 'MANIFEST');
""",
            "tools/style.sh": "# no tabs\n! grep -n \"$(printf '\\t')\" lib/*.pm\n",
            "tools/manifest.sh": "set -e\nls lib/*.pm Changes > MANIFEST\nwc -l < MANIFEST\n",
            "lib/Tide.pm": "package Tide;\nour $VERSION = '1.42';\nsub high {\n\treturn 6;\n}\n1;\n",
            "Changes": "1.41 2024-03-01\n  - high tide\n",
        },
        "itself",
        needs="perl",
    ),
}
