"""The twentieth part of the failing builds: two or three of each ordinary kind of build."""

from plant import Plant

TWENTIETH = {
    # ---------------------------------------------------------------- make
    "make-object-left-out-of-link": Plant(
        "make",
        "make all",
        {
            "Makefile": r"""CC ?= cc
CFLAGS += -O1 -Wall
HAVE_WATCHDOG := $(shell pkg-config --exists libwatchdog-client && echo 1)
ifeq ($(HAVE_WATCHDOG),1)
CFLAGS += -DHAVE_WATCHDOG
endif

OBJS = main.o config.o

all: agent

agent: $(OBJS)
	$(CC) $(LDFLAGS) -o $@ $(OBJS)

%.o: %.c agent.h
	$(CC) $(CFLAGS) -c -o $@ $<

clean:
	rm -f agent *.o
""",
            "agent.h": r"""int config_interval(void);
void log_line(const char *text);
""",
            "main.c": r"""#include "agent.h"
int main(void)
{
    if (config_interval() > 0)
        log_line("agent started");
    return 0;
}
""",
            "config.c": r"""#include "agent.h"
int config_interval(void) { return 30; }
""",
            "log.c": r"""#include <stdio.h>
#include "agent.h"
void log_line(const char *text) { puts(text); }
""",
        },
        r"\bld\b|collect2|\bcc\b|gcc",
        needs="cc",
    ),
    "make-check-test-segfaults": Plant(
        "make",
        "make check",
        {
            "Makefile": r"""CFLAGS = -O0 -g -Wall -Isrc
TESTS = tests/test_escape tests/test_ipv6 tests/test_parse

all: $(TESTS)

tests/%: tests/%.c src/kv.c src/kv.h
	$(CC) $(CFLAGS) -o $@ $< src/kv.c

check: all
	sh run-tests.sh

.PHONY: all check
""",
            "run-tests.sh": r"""#!/bin/sh
# runs every test binary; 77 means skipped
fail=0
for t in tests/test_*; do
    case $t in *.c|*.log) continue ;; esac
    "./$t" >"$t.log" 2>&1
    rc=$?
    case $rc in
        0)  echo "PASS: $t" ;;
        77) echo "SKIP: $t ($(head -n 1 "$t.log"))" ;;
        *)  echo "FAIL: $t (status $rc)"; cat "$t.log"; fail=1 ;;
    esac
done
exit $fail
""",
            "src/kv.h": r"""#include <stddef.h>
const char *kv_value(const char *line);
size_t kv_length(const char *line);
""",
            "src/kv.c": r"""#include <string.h>
#include "kv.h"

const char *kv_value(const char *line)
{
    const char *eq = strchr(line, '=');
    return eq ? eq + 1 : NULL;
}

size_t kv_length(const char *line)
{
    const char *value = kv_value(line);
    size_t n = 0;
    while (value[n] != '\0')
        n++;
    return n;
}
""",
            "tests/test_escape.c": r"""#include <assert.h>
#include <string.h>
#include "kv.h"
int main(void)
{
    assert(strcmp(kv_value("a=b\\n"), "b\\n") == 0);
    return 0;
}
""",
            "tests/test_ipv6.c": r"""#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    if (!getenv("TEST_IPV6")) {
        puts("no IPv6 in this environment");
        return 77;
    }
    return 0;
}
""",
            "tests/test_parse.c": r"""#include <stdio.h>
#include "kv.h"
int main(void)
{
    const char *lines[] = { "host=localhost", "verbose" };
    for (int i = 0; i < 2; i++)
        printf("%zu\n", kv_length(lines[i]));
    return 0;
}
""",
        },
        r"test_parse",
        also=r"run-tests\.sh",
        needs="cc",
    ),
    # --------------------------------------------------------------- cmake
    "cmake-configure-package-not-found": Plant(
        "cmake",
        "cmake -S . -B build",
        {
            "CMakeLists.txt": r"""cmake_minimum_required(VERSION 3.18)
project(telemetry VERSION 1.4.2 LANGUAGES C)

include(CheckIncludeFile)
include(CheckSymbolExists)
check_include_file(sys/epoll.h HAVE_SYS_EPOLL_H)
check_include_file(sys/event.h HAVE_SYS_EVENT_H)
check_symbol_exists(arc4random_stir "stdlib.h" HAVE_ARC4RANDOM_STIR)

find_package(Argtable3 3.2 REQUIRED CONFIG)

add_executable(telemetry src/main.c)
target_link_libraries(telemetry PRIVATE argtable3::argtable3)
""",
            "src/main.c": r"""#include <argtable3.h>
int main(void) { return 0; }
""",
        },
        r"itself|cmake -S",
        needs="cmake",
    ),
    "cmake-build-warning-is-error": Plant(
        "cmake",
        "sh ci.sh",
        {
            "ci.sh": r"""#!/bin/sh
set -e
cmake -G Ninja -S . -B build -DCMAKE_BUILD_TYPE=Release
cmake --build build
./build/ledger
""",
            "CMakeLists.txt": r"""cmake_minimum_required(VERSION 3.18)
project(ledger LANGUAGES C)
include(CheckIncludeFile)
check_include_file(bsd/string.h HAVE_BSD_STRING_H)
check_include_file(machine/endian.h HAVE_MACHINE_ENDIAN_H)
add_executable(ledger src/main.c src/report.c src/sum.c)
target_compile_options(ledger PRIVATE -Wall -Wextra -Werror)
""",
            "src/ledger.h": r"""long sum(const long *v, int n);
int report(const long *v, int n);
""",
            "src/main.c": r"""#include "ledger.h"
int main(void)
{
    long v[] = { 10, 20, 12 };
    return report(v, 3);
}
""",
            "src/sum.c": r"""#include "ledger.h"
long sum(const long *v, int n)
{
    long s = 0;
    for (int i = 0; i < n; i++)
        s += v[i];
    return s;
}
""",
            "src/report.c": r"""#include <stdio.h>
#include "ledger.h"
int report(const long *v, int n)
{
    unsigned width = 12;
    long total = sum(v, n);
    printf("%12ld\n", total);
    return 0;
}
""",
        },
        r"report\.c|-Werror",
        also=r"ninja(?! cmTC)|cmake --build",
        needs="cmake",
    ),
    "ctest-golden-file-differs": Plant(
        "cmake",
        "sh ci.sh",
        {
            "ci.sh": r"""#!/bin/sh
set -eu
cmake -S . -B build >configure.log
cmake --build build
ctest --test-dir build --output-on-failure
""",
            "CMakeLists.txt": r"""cmake_minimum_required(VERSION 3.20)
project(slugify LANGUAGES C)
enable_testing()
add_executable(slugify slugify.c)

add_test(NAME usage COMMAND slugify)
set_tests_properties(usage PROPERTIES WILL_FAIL TRUE)
add_test(NAME one_word COMMAND slugify Hello)
add_test(NAME golden
         COMMAND sh ${CMAKE_SOURCE_DIR}/tests/golden.sh $<TARGET_FILE:slugify>
         WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/tests)
""",
            "slugify.c": r"""#include <ctype.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: slugify TEXT\n");
        return 2;
    }
    for (const char *p = argv[1]; *p; p++)
        putchar(isalnum((unsigned char)*p) ? tolower((unsigned char)*p) : '-');
    putchar('\n');
    return 0;
}
""",
            "tests/golden.sh": r"""#!/bin/sh
set -e
out=$(mktemp)
trap 'rm -f "$out"' EXIT
while IFS= read -r title; do
    "$1" "$title"
done <titles.txt >"$out"
diff -u titles.expected "$out"
""",
            "tests/titles.txt": "Release Notes\nWhat's New\nPart 2\n",
            "tests/titles.expected": "release-notes\nwhats-new\npart-2\n",
        },
        r"\bdiff\b|golden\.sh",
        also=r"ctest --test-dir",
        needs="cmake",
    ),
    # --------------------------------------------------------------- meson
    "meson-setup-git-describe-no-tags": Plant(
        "meson",
        "meson setup build",
        {
            "meson.build": r"""project('courier', 'c', meson_version: '>= 0.60')

cc = meson.get_compiler('c')
conf = configuration_data()
conf.set('HAVE_SYS_INOTIFY_H', cc.has_header('sys/inotify.h'))
conf.set('HAVE_SYS_EVENT_H', cc.has_header('sys/event.h'))

dbus = dependency('courier-dbus-1', required: false, method: 'pkg-config')

version = run_command('sh', 'tools/git-version.sh', check: true).stdout().strip()
conf.set_quoted('VERSION', version)
configure_file(output: 'config.h', configuration: conf)

executable('courier', 'main.c')
""",
            "tools/git-version.sh": r"""#!/bin/sh
# prints the version of the working tree, for config.h
set -e
cd "$(dirname "$0")/.."
git describe --tags --match 'v*' --dirty
""",
            "main.c": r"""#include "config.h"
#include <stdio.h>
int main(void) { puts(VERSION); return 0; }
""",
        },
        r"git describe|git-version",
        also=r"itself|meson setup",
        before="git init -q .",
        needs="meson",
    ),
    "meson-test-times-out": Plant(
        "meson",
        "sh ci.sh",
        {
            "ci.sh": r"""#!/bin/sh
set -e
meson setup build
meson compile -C build
meson test -C build --print-errorlogs
""",
            "meson.build": r"""project('workq', 'c')
threads = dependency('threads')
exe = executable('workq', 'workq.c')
test('runs', exe, args: ['--check'])
test('bad-option', exe, args: ['--frobnicate'], should_fail: true)
tq = executable('test_queue', 'test_queue.c', dependencies: threads)
test('queue', tq, timeout: 2)
""",
            "workq.c": r"""#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--check") == 0)
        return 0;
    fprintf(stderr, "workq: unknown option\n");
    return 2;
}
""",
            "test_queue.c": r"""#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static int items;

static void *producer(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&lock);
    items = 1;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t t;
    pthread_mutex_lock(&lock);
    pthread_create(&t, NULL, producer, NULL);
    while (items < 2)
        pthread_cond_wait(&ready, &lock);
    pthread_mutex_unlock(&lock);
    pthread_join(t, NULL);
    puts("ok");
    return 0;
}
""",
        },
        r"test_queue",
        also=r"meson test",
        needs="meson",
    ),
    # --------------------------------------------------------------- ninja
    "ninja-multiple-definition": Plant(
        "ninja",
        "ninja -k 0",
        {
            "build.ninja": r"""cflags = -O1 -Wall

rule cc
  command = cc $cflags -MMD -MF $out.d -c -o $out $in
  depfile = $out.d
  description = CC $out

rule link
  command = cc -o $out $in
  description = LINK $out

rule man
  command = help2man --no-info -n 'tick clock' sh ./$in > $out || cp $in $out
  description = MAN $out

build out/main.o: cc src/main.c
build out/clock.o: cc src/clock.c
build out/timer.o: cc src/timer.c
build out/tick: link out/main.o out/clock.o out/timer.o
build out/tick.1: man src/usage.txt
""",
            "src/clock.h": r"""#ifndef CLOCK_H
#define CLOCK_H
int tick_count;
void tick(void);
int elapsed(void);
#endif
""",
            "src/clock.c": r"""#include "clock.h"
void tick(void) { tick_count++; }
""",
            "src/timer.c": r"""#include "clock.h"
int elapsed(void) { return tick_count; }
""",
            "src/main.c": r"""void tick(void);
int elapsed(void);
int main(void) { tick(); return elapsed() == 1 ? 0 : 1; }
""",
            "src/usage.txt": "tick: counts ticks\n",
        },
        r"\bld\b|collect2|\bcc\b|gcc",
        needs="ninja",
    ),
    # --------------------------------------------------------------- cargo
    "cargo-test-assertion-fails": Plant(
        "cargo",
        "cargo test --offline",
        {
            "Cargo.toml": r"""[package]
name = "basket"
version = "0.3.0"
edition = "2021"
""",
            "src/lib.rs": r"""/// The price in cents with the discount taken off.
pub fn discounted(cents: u64, percent: u64) -> u64 {
    cents - cents * percent / 100
}

#[cfg(test)]
mod tests {
    #[test]
    fn nothing_off() {
        assert_eq!(super::discounted(500, 0), 500);
    }

    #[test]
    #[should_panic]
    fn more_than_everything() {
        super::discounted(500, 101);
    }
}
""",
            "src/main.rs": r"""use std::process::exit;

fn main() {
    let args: Vec<u64> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    if args.len() != 2 {
        eprintln!("usage: basket CENTS PERCENT");
        exit(2);
    }
    println!("{}", basket::discounted(args[0], args[1]));
}
""",
            "tests/cli.rs": r"""use std::process::Command;

#[test]
fn a_wrong_argument_is_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_basket")).arg("ten").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}
""",
            "tests/totals.rs": r"""#[test]
fn a_discount_is_rounded_to_the_customer() {
    assert_eq!(basket::discounted(999, 15), 849);
}
""",
        },
        r"totals-|test totals",
        also=r"itself|cargo test",
        needs="cargo",
    ),
    "cargo-build-script-generator-fails": Plant(
        "cargo",
        "cargo build --offline",
        {
            "Cargo.toml": r"""[package]
name = "units"
version = "0.1.0"
edition = "2021"
build = "build.rs"
""",
            "build.rs": r"""use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=data/units.csv");
    let system = Command::new("pkg-config").args(["--exists", "units-db"]).status();
    if matches!(system, Ok(status) if status.success()) {
        println!("cargo:rustc-cfg=system_units");
    }
    let out = std::env::var("OUT_DIR").unwrap();
    let status = Command::new("python3")
        .args(["gen/tables.py", "data/units.csv"])
        .arg(format!("{out}/tables.rs"))
        .status()
        .expect("python3 is needed");
    if !status.success() {
        panic!("gen/tables.py failed: {status}");
    }
}
""",
            "gen/tables.py": r"""import csv
import sys

source, target = sys.argv[1:]
with open(source, newline="") as rows, open(target, "w") as out:
    out.write("pub const UNITS: &[(&str, f64)] = &[\n")
    for row in csv.DictReader(rows):
        out.write('    ("%s", %r),\n' % (row["name"], float(row["factor"])))
    out.write("];\n")
""",
            "data/units.csv": 'name,factor\nmetre,1.0\ninch,0.0254\nmile,"1609,344"\n',
            "src/main.rs": r"""include!(concat!(env!("OUT_DIR"), "/tables.rs"));

fn main() {
    for (name, factor) in UNITS {
        println!("{name} {factor}");
    }
}
""",
        },
        r"tables\.py",
        also=r"build-script-build|itself|cargo build",
        needs="cargo",
    ),
    # ------------------------------------------------------------------ go
    "go-build-unused-import": Plant(
        "go",
        "sh build.sh",
        {
            "build.sh": r"""#!/bin/sh
set -e
version=$(git describe --tags 2>/dev/null || echo dev)
mkdir -p bin
go build -ldflags "-X main.version=$version" -o bin/ ./...
""",
            "go.mod": "module example.org/mailer\n\ngo 1.19\n",
            "main.go": r"""package main

import (
	"fmt"

	"example.org/mailer/queue"
)

var version = "dev"

func main() {
	fmt.Println("mailer", version, queue.Size())
}
""",
            "queue/queue.go": r"""package queue

import (
	"strings"
	"time"
)

// Size is the number of waiting messages.
func Size() int {
	return len(strings.Fields("a b c"))
}
""",
        },
        r"\bcompile\b|go build",
        needs="go",
    ),
    "go-vet-wrong-format": Plant(
        "go",
        "sh lint.sh",
        {
            "lint.sh": r"""#!/bin/sh
set -e
unformatted=$(gofmt -l .)
if [ -n "$unformatted" ]; then
    echo "not formatted: $unformatted"
    exit 1
fi
golangci-lint run || echo "golangci-lint is not installed, only go vet is run"
go vet ./...
echo "lint ok"
""",
            "go.mod": "module example.org/quota\n\ngo 1.19\n",
            "quota.go": r"""package quota

import "fmt"

// Limit describes what a user may store.
type Limit struct {
	User  string
	Bytes int64
}

// Message is shown to the user.
func (l Limit) Message() string {
	return fmt.Sprintf("%s may store %s bytes", l.User, l.Bytes)
}
""",
        },
        r"(^|/|go )vet\b",
        needs="go",
    ),
    "go-test-nil-map": Plant(
        "go",
        "go test ./...",
        {
            "go.mod": "module example.org/depot\n\ngo 1.19\n",
            "run/run.go": r"""package run

import "os/exec"

// Status is the exit status of a shell line.
func Status(line string) int {
	cmd := exec.Command("sh", "-c", line)
	if err := cmd.Run(); err != nil {
		if exit, ok := err.(*exec.ExitError); ok {
			return exit.ExitCode()
		}
		return -1
	}
	return 0
}
""",
            "run/run_test.go": r"""package run

import "testing"

func TestStatus(t *testing.T) {
	if got := Status("exit 3"); got != 3 {
		t.Fatalf("got %d", got)
	}
}
""",
            "store/store.go": r"""package store

// Store counts what lies on each shelf.
type Store struct {
	shelves map[string]int
}

// New is an empty store.
func New() *Store {
	return &Store{}
}

// Put adds one to the shelf.
func (s *Store) Put(shelf string) {
	s.shelves[shelf]++
}

// Count is the number on the shelf.
func (s *Store) Count(shelf string) int {
	return s.shelves[shelf]
}
""",
            "store/store_test.go": r"""package store

import "testing"

func TestEmpty(t *testing.T) {
	if New().Count("a") != 0 {
		t.Fatal("not empty")
	}
}

func TestPut(t *testing.T) {
	s := New()
	s.Put("a")
	if s.Count("a") != 1 {
		t.Fatal("not counted")
	}
}
""",
        },
        r"store\.test|test store",
        also=r"itself|go test",
        needs="go",
    ),
    # ---------------------------------------------------------- npm / node
    "npm-test-one-file-fails": Plant(
        "npm",
        "npm test",
        {
            "package.json": r"""{
  "name": "shop",
  "version": "2.1.0",
  "private": true,
  "scripts": {
    "test": "node --test test/"
  }
}
""",
            "bin/shop.js": r"""#!/usr/bin/env node
const [option] = process.argv.slice(2);
if (option !== '--version') {
  console.error(`shop: unknown option ${option}`);
  process.exit(2);
}
console.log(require('../package.json').version);
""",
            "lib/cart.js": r"""exports.total = (items) =>
  items.reduce((sum, item) => sum + item.price * item.count, 0);
""",
            "test/cli.test.js": r"""const test = require('node:test');
const assert = require('node:assert');
const path = require('node:path');
const { spawnSync } = require('node:child_process');

test('an unknown option is refused', () => {
  const run = spawnSync('node', [path.join(__dirname, '../bin/shop.js'), '--frob']);
  assert.strictEqual(run.status, 2);
});
""",
            "test/cart.test.js": r"""const test = require('node:test');
const assert = require('node:assert');
const { total } = require('../lib/cart');

test('an empty cart costs nothing', () => {
  assert.strictEqual(total([]), 0);
});

test('prices are summed', () => {
  assert.strictEqual(total([{ price: 0.1, count: 1 }, { price: 0.2, count: 1 }]), 0.3);
});
""",
        },
        r"cart\.test\.js",
        also=r"node --test|itself|npm test",
        needs="npm",
    ),
    "npm-build-tsc-not-installed": Plant(
        "npm",
        "npm run build",
        {
            "package.json": r"""{
  "name": "dashboard",
  "version": "0.9.0",
  "private": true,
  "scripts": {
    "prebuild": "git rev-parse --short HEAD > build-info.txt 2>/dev/null || echo unknown > build-info.txt",
    "build": "tsc -p tsconfig.json && node scripts/bundle.js"
  },
  "devDependencies": {
    "typescript": "^5.4.0"
  }
}
""",
            "tsconfig.json": '{ "compilerOptions": { "outDir": "dist", "strict": true } }\n',
            "src/index.ts": "export const title: string = 'dashboard';\n",
            "scripts/bundle.js": r"""const fs = require('node:fs');
const info = fs.readFileSync('build-info.txt', 'utf8').trim();
fs.mkdirSync('dist', { recursive: true });
fs.writeFileSync('dist/bundle.js', `// build ${info}\n`);
""",
        },
        r"\btsc\b",
        also=r"itself|npm run",
        needs="npm",
    ),
    # -------------------------------------------------------------- pytest
    "pytest-one-assertion-fails": Plant(
        "pytest",
        "pytest-3 -q -p no:cacheprovider",
        {
            "invoice.py": r"""import sys


def vat(net, rate=0.19):
    return round(net * rate, 2)


def main(argv):
    if len(argv) != 2:
        print("usage: invoice.py NET", file=sys.stderr)
        return 2
    print(vat(float(argv[1])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
""",
            "tests/conftest.py": r"""import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)


def pytest_report_header(config):
    done = subprocess.run(["git", "describe", "--tags"], cwd=ROOT, capture_output=True, text=True)
    return "version under test: " + (done.stdout.strip() or "unknown")
""",
            "tests/test_cli.py": r"""import os
import subprocess
import sys

SCRIPT = os.path.join(os.path.dirname(__file__), "..", "invoice.py")


def test_usage():
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True)
    assert done.returncode == 2


def test_prints_vat():
    done = subprocess.run([sys.executable, SCRIPT, "100"], capture_output=True, text=True)
    assert done.stdout == "19.0\n"
""",
            "tests/test_vat.py": r"""import pytest

from invoice import vat


@pytest.mark.parametrize("net, expected", [(100, 19.0), (0, 0), (2.5, 0.48)])
def test_vat(net, expected):
    assert vat(net) == expected
""",
        },
        r"itself|pytest-3|pytest -q",
        needs="pytest-3",
    ),
    "pytest-fixture-script-crashes": Plant(
        "pytest",
        "pytest-3 -q -p no:cacheprovider tests",
        {
            "tools/make_fixture.py": r"""import sqlite3
import sys

db = sqlite3.connect(sys.argv[1])
with open("schema.sql") as schema:
    db.executescript(schema.read())
db.executemany(
    "INSERT INTO users (name, email) VALUES (?, ?)",
    [("ada", "ada@example.org"), ("bob", "bob@example.org")],
)
db.commit()
""",
            "schema.sql": "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL, mail TEXT);\n",
            "app.py": r"""import os
import sqlite3
import sys

path = sys.argv[1]
if not os.path.exists(path):
    sys.exit("app: no database at " + path)
for (name,) in sqlite3.connect(path).execute("SELECT name FROM users ORDER BY name"):
    print(name)
""",
            "tests/test_app.py": r"""import subprocess
import sys

import pytest


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "test.db"
    subprocess.run([sys.executable, "tools/make_fixture.py", str(path)], check=True)
    return path


def test_no_database(tmp_path):
    done = subprocess.run([sys.executable, "app.py", str(tmp_path / "none.db")])
    assert done.returncode == 1


def test_lists_users(database):
    done = subprocess.run([sys.executable, "app.py", str(database)], capture_output=True, text=True)
    assert done.stdout.split() == ["ada", "bob"]
""",
        },
        r"make_fixture",
        also=r"itself|pytest-3|pytest -q",
        needs="pytest-3",
    ),
    # ------------------------------------------------------------- ansible
    "ansible-migration-command-fails": Plant(
        "ansible",
        "ansible-playbook -i localhost, -c local site.yml",
        {
            "ansible.cfg": "[connection]\npipelining = True\n",
            "site.yml": r"""- hosts: all
  gather_facts: false
  vars:
    ansible_python_interpreter: /usr/bin/python3
  tasks:
    - name: is there a database of an earlier release
      command: test -f app.db
      args:
        chdir: "{{ playbook_dir }}"
      register: old
      failed_when: false
      changed_when: false

    - name: migrate the database
      command: python3 migrate.py app.db
      args:
        chdir: "{{ playbook_dir }}"

    - name: mark the release
      copy:
        content: "released\n"
        dest: "{{ playbook_dir }}/RELEASED"
""",
            "migrate.py": r"""import glob
import sqlite3
import sys

db = sqlite3.connect(sys.argv[1])
for path in sorted(glob.glob("migrations/*.sql")):
    print("applying", path)
    with open(path) as script:
        db.executescript(script.read())
db.commit()
""",
            "migrations/001_orders.sql": "CREATE TABLE orders (id INTEGER PRIMARY KEY, total INTEGER);\n",
            "migrations/002_index.sql": "CREATE INDEX orders_customer ON orders (customer);\n",
        },
        r"migrate\.py",
        also=r"itself|ansible-playbook",
        needs="ansible-playbook",
    ),
    "ansible-template-undefined-variable": Plant(
        "ansible",
        "ansible-playbook -i localhost, -c local deploy.yml",
        {
            "ansible.cfg": "[connection]\npipelining = True\n",
            "deploy.yml": r"""- hosts: all
  gather_facts: false
  vars:
    ansible_python_interpreter: /usr/bin/python3
    app_name: gateway
    app_workers: 4
  tasks:
    - name: ask whether the old release can be read
      command: cat "{{ playbook_dir }}/current/RELEASE"
      register: release
      ignore_errors: true
      changed_when: false

    - name: write the configuration
      template:
        src: app.conf.j2
        dest: "{{ playbook_dir }}/app.conf"
        mode: "0644"
""",
            "app.conf.j2": r"""# {{ app_name }}
workers = {{ app_workers }}
listen = 0.0.0.0:{{ app_port }}
""",
        },
        r"itself|ansible-playbook",
        needs="ansible-playbook",
    ),
    # ------------------------------------------------- shell with `set -e`
    "set-e-migration-duplicate-column": Plant(
        "shell",
        "sh migrate.sh",
        {
            "migrate.sh": r"""#!/bin/sh
# applies every migration that the database has not seen
set -eu
db=app.db
current=$(sqlite3 "$db" 'SELECT max(version) FROM schema_version' 2>/dev/null || echo 0)
for file in migrations/*.sql; do
    number=$(basename "$file" | cut -d_ -f1)
    if [ "$number" -gt "$current" ]; then
        echo "== $file"
        sqlite3 -bail "$db" <"$file"
    fi
done
echo "database is up to date"
""",
            "migrations/001_init.sql": r"""CREATE TABLE schema_version (version INTEGER);
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO schema_version VALUES (1);
""",
            "migrations/002_phone.sql": r"""ALTER TABLE customer ADD COLUMN phone TEXT;
INSERT INTO schema_version VALUES (2);
""",
            "migrations/003_contact.sql": r"""ALTER TABLE customer ADD COLUMN phone TEXT;
ALTER TABLE customer ADD COLUMN fax TEXT;
INSERT INTO schema_version VALUES (3);
""",
        },
        r"sqlite3 -bail|migrations/003|003_contact",
        needs="sqlite3",
    ),
    "set-u-variable-not-given": Plant(
        "shell",
        "bash deploy.sh",
        {
            "deploy.sh": r"""#!/bin/bash
set -euo pipefail

revision=$(git rev-parse --short HEAD 2>/dev/null || date +%Y%m%d)
if ! grep -q "^## $revision" CHANGELOG.md; then
    echo "warning: no entry for $revision in CHANGELOG.md"
fi

mkdir -p out
tar -czf "out/site-$revision.tar.gz" site
echo "deploying $revision to $DEPLOY_STAGE"
mkdir -p "srv/$DEPLOY_STAGE"
tar -xzf "out/site-$revision.tar.gz" -C "srv/$DEPLOY_STAGE"
""",
            "CHANGELOG.md": "# Changes\n\n## 1.0\n\nfirst release\n",
            "site/index.html": "<h1>Hello</h1>\n",
        },
        r"itself|deploy\.sh",
    ),
    # --------------------------------------------------------------- pipes
    "pipe-exporter-raises": Plant(
        "shell",
        "bash backup.sh",
        {
            "backup.sh": r"""#!/bin/bash
set -euo pipefail
archived=$(grep -c '"archived": true' customers.json || true)
echo "$archived archived customers are left out"
python3 export.py customers.json | sort | gzip -9 >customers.csv.gz
echo "wrote $(zcat customers.csv.gz | wc -l) lines"
""",
            "export.py": r"""import json
import sys

with open(sys.argv[1]) as source:
    customers = json.load(source)
for customer in customers:
    if not customer.get("archived"):
        print("%s;%s;%s" % (customer["id"], customer["name"], customer["address"]["city"]))
""",
            "customers.json": r"""[
  {"id": 1, "name": "Ada", "address": {"city": "London"}},
  {"id": 2, "name": "Bob", "address": null},
  {"id": 3, "name": "Cyd", "address": {"city": "Oslo"}}
]
""",
        },
        r"export\.py",
    ),
    "pipe-grep-finds-no-release-tag": Plant(
        "shell",
        "bash next-version.sh",
        {
            "next-version.sh": r"""#!/bin/bash
set -euo pipefail
author=$(git config --local --get release.author || echo "release bot")
last=$(git tag --list 'v*' | sort -V | grep -v -e '-rc' | tail -n 1)
next="v$(( ${last#v} + 1 ))"
echo "$author releases $next after $last"
echo "$next" >NEXT_VERSION
""",
        },
        r"\bgrep\b",
        before="git init -q .",
        needs="git",
    ),
    # ---------------------------------------------------- pools of workers
    "pool-parallel-one-bad-file": Plant(
        "shell",
        "bash convert-all.sh",
        {
            "convert-all.sh": r"""#!/bin/bash
set -e
mkdir -p out
parallel --will-cite -j 2 bash convert-one.sh ::: data/*.json
cat out/*.csv >all.csv
""",
            "convert-one.sh": r"""#!/bin/bash
set -e
# drafts are not published
if jq -e '.draft' "$1" >/dev/null; then
    exit 0
fi
jq -r '.items[] | [.sku, .price] | @csv' "$1" >"out/$(basename "$1" .json).csv"
""",
            "data/east.json": '{"draft": false, "items": [{"sku": "a1", "price": 3}]}\n',
            "data/north.json": '{"items": [{"sku": "b7", "price": 12}]}\n',
            "data/south.json": '{"draft": true, "items": []}\n',
            "data/west.json": '{"draft": false, "items": null}\n',
        },
        r"jq -r|convert-one\.sh data/west",
        also=r"parallel --will-cite",
        needs="parallel",
    ),
    "pool-shards-stopped-at-first-failure": Plant(
        "python",
        "python3 run_shards.py",
        {
            "run_shards.py": r"""import subprocess
import sys
import time

SHARDS = ["tests.test_api", "tests.test_billing", "tests.test_search"]

running = {
    shard: subprocess.Popen([sys.executable, "-m", "unittest", shard])
    for shard in SHARDS
}
failed = []
while running and not failed:
    time.sleep(0.1)
    for shard, process in list(running.items()):
        if process.poll() is not None:
            del running[shard]
            if process.returncode != 0:
                failed.append(shard)
for process in running.values():
    process.terminate()
for process in running.values():
    process.wait()
if failed:
    print("failed shards:", ", ".join(failed))
    sys.exit(1)
print("all shards passed")
""",
            "tests/__init__.py": "",
            "tests/test_api.py": r"""import time
import unittest


class Api(unittest.TestCase):
    def test_rate_limit_window(self):
        time.sleep(7)
""",
            "tests/test_billing.py": r"""import unittest


def monthly(yearly):
    return yearly // 12


class Billing(unittest.TestCase):
    def test_no_cent_is_lost(self):
        self.assertEqual(monthly(1000) * 12, 1000)
""",
            "tests/test_search.py": r"""import time
import unittest


class Search(unittest.TestCase):
    def test_index_is_refreshed(self):
        time.sleep(8)
""",
        },
        r"test_billing",
        also=r"itself|run_shards",
    ),
    # -------------------------------------------------- servers under test
    "server-does-not-start": Plant(
        "shell",
        "bash smoke.sh",
        {
            "smoke.sh": r"""#!/bin/bash
node server.js >server.log 2>&1 &
pid=$!
trap 'kill $pid 2>/dev/null' EXIT
ready=no
for i in $(seq 15); do
    if curl -s -o /dev/null http://127.0.0.1:28437/healthz; then
        ready=yes
        break
    fi
    sleep 0.4
done
if [ $ready = no ]; then
    echo "the server did not become ready"
    cat server.log
    exit 1
fi
curl -fsS http://127.0.0.1:28437/version || exit 1
""",
            "server.js": r"""const http = require('node:http');
const settings = require('./config/default.json');

http
  .createServer((request, response) => {
    response.end(request.url === '/version' ? `${settings.version}\n` : 'ok\n');
  })
  .listen(settings.port, '127.0.0.1');
""",
            "config/default.json": '{\n  "port": 28437,\n  "version": "1.2.0",\n}\n',
        },
        r"server\.js",
        also=r"curl",
        needs="curl",
    ),
    "server-endpoint-answers-500": Plant(
        "shell",
        "bash smoke.sh",
        {
            "smoke.sh": r"""#!/bin/bash
set -e
python3 server.py 2>access.log &
server=$!
trap 'kill $server; wait $server 2>/dev/null || true' EXIT

for i in $(seq 40); do
    curl -s -o /dev/null http://127.0.0.1:28439/healthz && break
    sleep 0.2
done

curl -fsS http://127.0.0.1:28439/api/items
curl -fsS http://127.0.0.1:28439/api/orders
echo "smoke test passed"
""",
            "server.py": r"""import json
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ITEMS = {"a1": 3, "b7": 12}
ORDERS = [{"sku": "a1", "count": 2}, {"sku": "c3", "count": 1}]


def answer(path):
    if path == "/api/items":
        return ITEMS
    if path == "/api/orders":
        return [{"sku": o["sku"], "total": ITEMS[o["sku"]] * o["count"]} for o in ORDERS]
    return "ok"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        try:
            body, status = json.dumps(answer(self.path)), 200
        except Exception:
            traceback.print_exc()
            body, status = "internal error", 500
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode() + b"\n")


ThreadingHTTPServer(("127.0.0.1", 28439), Handler).serve_forever()
""",
        },
        r"curl -f|api/orders",
        needs="curl",
    ),
    # ----------------------------------------------------------- time-outs
    "timeout-integration-test-hangs": Plant(
        "shell",
        "bash ci.sh",
        {
            "ci.sh": r"""#!/bin/bash
set -e
curl -fs -o /dev/null http://127.0.0.1:9/metrics/job/ci || echo "no metrics gateway, going on"
python3 -m unittest -q tests.test_state
timeout 4 python3 tests/integration.py
echo "all tests passed"
""",
            "state.py": r"""import json


def write(path, status):
    with open(path, "w") as out:
        json.dump({"status": status}, out)


def read(path):
    with open(path) as source:
        return json.load(source)["status"]
""",
            "worker.py": r"""import sys

import state

state.write(sys.argv[1], "finished")
""",
            "tests/__init__.py": "",
            "tests/test_state.py": r"""import os
import tempfile
import unittest

import state


class State(unittest.TestCase):
    def test_round_trip(self):
        path = os.path.join(tempfile.mkdtemp(), "state.json")
        state.write(path, "queued")
        self.assertEqual(state.read(path), "queued")
""",
            "tests/integration.py": r"""import os
import subprocess
import sys
import time

sys.path.insert(0, os.getcwd())
import state

state.write("job.json", "queued")
subprocess.run([sys.executable, "worker.py", "job.json"], check=True)
while state.read("job.json") != "done":
    time.sleep(0.2)
print("the job is done")
""",
        },
        r"integration\.py|timeout 4",
        needs="timeout",
    ),
    # -------------------------------------------------- packaging / deploy
    "dpkg-deb-postinst-not-executable": Plant(
        "shell",
        "sh build-deb.sh",
        {
            "build-deb.sh": r"""#!/bin/sh
set -e
root=build/notifyd
mkdir -p $root/DEBIAN $root/usr/bin $root/etc
chmod 755 $root $root/DEBIAN
install -m 644 debian/control debian/postinst $root/DEBIAN/
install -m 755 notifyd.sh $root/usr/bin/notifyd
install -m 644 notifyd.conf $root/etc/notifyd.conf
strip --strip-unneeded $root/usr/bin/* || true
dpkg-deb --root-owner-group --build $root notifyd_1.0_all.deb
dpkg-deb --info notifyd_1.0_all.deb
""",
            "debian/control": r"""Package: notifyd
Version: 1.0
Architecture: all
Maintainer: Release Team <release@example.org>
Description: sends notifications
""",
            "debian/postinst": "#!/bin/sh\nset -e\nmkdir -p /var/lib/notifyd\n",
            "notifyd.sh": '#!/bin/sh\necho "notify: $*"\n',
            "notifyd.conf": "interval=60\n",
        },
        r"dpkg-deb",
        needs="dpkg-deb",
    ),
    "deploy-rsync-source-missing": Plant(
        "shell",
        "bash deploy.sh",
        {
            "deploy.sh": r"""#!/bin/bash
set -e
target=srv/www
release=$target/releases/2024-06-01
mkdir -p "$release"

previous=$(readlink "$target/current" || true)
if [ -n "$previous" ]; then
    rsync -a "$previous/" "$release/"
fi

python3 build.py
rsync -a --delete dist/ "$release/"
ln -sfn "releases/2024-06-01" "$target/current"
test -s "$target/current/index.html"
echo "deployed $release"
""",
            "build.py": r"""import os

os.makedirs("public", exist_ok=True)
with open("pages/index.md") as source, open("public/index.html", "w") as out:
    out.write("<p>%s</p>\n" % source.read().strip())
""",
            "pages/index.md": "Welcome\n",
        },
        r"\brsync\b",
        needs="rsync",
    ),
}
