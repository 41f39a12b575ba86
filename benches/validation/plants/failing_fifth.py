"""The fifth part of the failing builds and test runs: ordinary CI jobs with the noise that is around a failure.

Noise is a program that fails, or is killed, without making the job fail: a probe, a command whose failure is ignored, an attempt
that is repeated, a helper that the cleanup kills. The author of this part did not look at the rules, and wrote down each cause
from the log of a run without the recorder.
"""

from plant import Plant

# Prints a free port of the local host.
PORT = "import socket\ns = socket.socket()\ns.bind(('127.0.0.1', 0))\nprint(s.getsockname()[1])\n"

FIFTH = {
    # make: a generator of source code fails; `-k` builds what does not need it, and a recipe line is ignored.
    "make-k-generator": Plant(
        "make",
        "make -k -j2",
        {
            "Makefile": """\
CC = gcc
OBJS = main.o parse.o emit.o
.DELETE_ON_ERROR:
-include local.mk
all: app todo.txt
app: $(OBJS)
\t$(CC) -o $@ $^
%.o: %.c
\t$(CC) -O1 -c -o $@ $<
parse.c: grammar.txt tablegen.py
\tpython3 tablegen.py grammar.txt > $@
todo.txt: main.c emit.c
\t-grep -n TODO $^ > $@
\t@test -s $@ || echo "nothing to do" > $@
""",
            "main.c": "int parse(void); int emit(int);\nint main(void) { return emit(parse()); }\n",
            "emit.c": "int emit(int x) { return x + 1; }\n",
            "grammar.txt": "expr: term\nterm: number\nexpr: sum\n",
            "tablegen.py": """\
import sys
rules = {}
for number, line in enumerate(open(sys.argv[1]), 1):
    name = line.split(":")[0]
    if name in rules:
        sys.exit(f"{sys.argv[1]}:{number}: rule '{name}' is already defined at line {rules[name]}")
    rules[name] = number
print("int parse(void) { return 0; }")
""",
        },
        r"tablegen\.py",
        r"make|sh",
    ),
    # make: a header in a list of dependencies is gone.
    "make-no-rule": Plant(
        "make",
        "make",
        {
            "Makefile": """\
VERSION := $(shell git describe --tags 2>/dev/null || echo unknown)
HAVE_Z := $(shell pkg-config --exists no-such-library && echo 1)
OBJS = lexer.o parser.o
app: clean-cores $(OBJS)
\tgcc -o $@ $(OBJS)
clean-cores:
\t-@rm core
%.o: %.c
\tgcc -DVERSION='"$(VERSION)"' -c -o $@ $<
parser.o: parser.c tokens.h
.PHONY: clean-cores
""",
            "lexer.c": "const char *version(void) { return VERSION; }\n",
            "parser.c": '#include "tokens.h"\nint main(void) { return TOKENS; }\n',
        },
        "itself",
    ),
    # make: a loop over test scripts; one of them fails, others test that a command fails.
    "make-check-loop": Plant(
        "make",
        "make check",
        {
            "Makefile": """\
check: calc
\t@failed=0; for t in tests/*.sh; do \\
\t  if sh $$t > $$t.log 2>&1; then echo "PASS $$t"; else echo "FAIL $$t"; cat $$t.log; failed=1; fi; \\
\tdone; exit $$failed
calc: calc.c
\tgcc -o $@ $<
""",
            "calc.c": """\
#include <stdio.h>
#include <stdlib.h>
int main(int n, char **v) {
  if (n != 3) { fprintf(stderr, "usage: calc A B\\n"); return 2; }
  printf("sum: %d\\n", atoi(v[1]) + atoi(v[2]));
}
""",
            "tests/add.sh": 'test "$(./calc 1 2)" = "sum: 3"\n',
            "tests/badargs.sh": "if ./calc; then exit 1; fi\nif ./calc 1; then exit 1; fi\n",
            "tests/golden.sh": "set -e\n./calc 20 22 > tests/golden.out\ndiff -u tests/golden.txt tests/golden.out\n",
            "tests/golden.txt": "sum = 42\n",
            "tests/zero.sh": "! ./calc 0 0 | grep -q error\n",
        },
        r"golden\.sh|diff",
        r"make|sh",
    ),
    # make: one of three directories cannot install a file; a line that is ignored fails in another one.
    "make-recursive-install": Plant(
        "make",
        "make -j2 DESTDIR=stage install",
        {
            "Makefile": """\
SUBDIRS = lib app doc
install: $(SUBDIRS)
$(SUBDIRS):
\t$(MAKE) -C $@ install DESTDIR=$(CURDIR)/$(DESTDIR)
app: lib
.PHONY: install $(SUBDIRS)
""",
            "lib/Makefile": """\
install: libz.a
\tmkdir -p $(DESTDIR)/lib
\tinstall -m 644 libz.a $(DESTDIR)/lib
\t-strip --strip-debug $(DESTDIR)/lib/*.so
libz.a: z.o
\tar rcs $@ $^
""",
            "lib/z.c": "int z(void) { return 0; }\n",
            "app/Makefile": """\
install: app
\tmkdir -p $(DESTDIR)/bin
\tinstall -m 755 app $(DESTDIR)/bin
app: app.c
\tgcc -o $@ $< -L../lib -lz
""",
            "app/app.c": "int z(void); int main(void) { return z(); }\n",
            "doc/Makefile": """\
install:
\tmkdir -p $(DESTDIR)/man
\tinstall -m 644 app.1 $(DESTDIR)/man
\tinstall -m 644 libz.3 $(DESTDIR)/man
""",
            "doc/app.1": ".TH app 1\n",
        },
        r"^install",
        r"make",
    ),
    # cmake: a test program crashes; another one has to fail, a third is skipped, and the checks of the configuration fail.
    "ctest-crash": Plant(
        "cmake",
        "bash ci.sh",
        {
            "ci.sh": """\
set -euo pipefail
cmake -S . -B b -G Ninja -DCMAKE_BUILD_TYPE=Debug
cmake --build b
ctest --test-dir b -j2 --output-on-failure
""",
            "CMakeLists.txt": """\
cmake_minimum_required(VERSION 3.16)
project(p C)
include(CheckIncludeFile)
include(CheckFunctionExists)
check_include_file(no/such.h HAVE_NO_SUCH)
check_function_exists(strlcpy HAVE_STRLCPY)
enable_testing()
foreach(name emit rejects parse skip)
  add_executable(t_${name} ${name}.c)
  add_test(NAME ${name} COMMAND t_${name})
endforeach()
set_tests_properties(rejects PROPERTIES WILL_FAIL TRUE)
set_tests_properties(skip PROPERTIES SKIP_RETURN_CODE 77)
""",
            "emit.c": "int main(void) { return 0; }\n",
            "rejects.c": "int main(void) { return 1; }\n",
            "parse.c": "#include <string.h>\nint main(int n, char **v) { return strlen(v[n]); }\n",
            "skip.c": "int main(void) { return 77; }\n",
        },
        r"t_parse",
        r"ctest",
        needs="cmake",
    ),
    # meson: a script that the configuration runs fails, after checks that found nothing.
    "meson-version-script": Plant(
        "meson",
        "meson setup b",
        {
            "meson.build": """\
project('p', 'c')
cc = meson.get_compiler('c')
cc.has_header('sys/no-such.h')
cc.has_function('no_such_function')
dependency('no-such-library', required: false)
find_program('no-such-tool', required: false)
tag = run_command('git', 'describe', '--tags', check: false)
version = run_command('python3', 'tools/version.py', check: true).stdout().strip()
executable('app', 'main.c', c_args: '-DVERSION="' + version + '"')
""",
            "main.c": "int main(void) { return sizeof VERSION == 0; }\n",
            "VERSION": "1.4.x-next\n",
            "tools/version.py": "major, minor, patch = map(int, open('VERSION').read().split('.'))\nprint(f'{major}.{minor}.{patch}')\n",
        },
        r"version\.py",
        needs="meson",
    ),
    # ninja: one of two programs does not link; `-k 0` builds the rest, and a lint that finds nothing is ignored.
    "ninja-link-keep-going": Plant(
        "ninja",
        "ninja -k 0",
        {
            "build.ninja": """\
rule cc
  command = gcc -c -o $out $in
  description = CC $out
rule link
  command = gcc -o $out $in
  description = LINK $out
rule lint
  command = grep -n FIXME $in > $out || true
rule run
  command = ./$in > $out
build app.o: cc app.c
build tool.o: cc tool.c
build store.o: cc store.c
build app: link app.o store.o
build tool: link tool.o store.o
build lint.txt: lint app.c tool.c store.c
build table.txt: run tool
""",
            "app.c": "int store_open(void), store_close(void);\nint main(void) { return store_open() + store_close(); }\n",
            "tool.c": "int store_open(void);\nint main(void) { return store_open(); }\n",
            "store.c": "int store_open(void) { return 0; }\n",
        },
        r"^ld|collect2|gcc",
        r"sh",
        needs="ninja",
    ),
    # meson: a test waits for ever and is killed; another one has to fail.
    "meson-test-timeout": Plant(
        "meson",
        "meson test -C b",
        {
            "prep.sh": "set -e\nmeson setup b\nmeson compile -C b\n",
            "meson.build": """\
project('p', 'c')
test('emit', executable('t_emit', 'emit.c'))
test('rejects', executable('t_rejects', 'rejects.c'), should_fail: true)
test('wait', executable('t_wait', 'wait.c'), timeout: 1)
test('skip', executable('t_skip', 'skip.c'))
""",
            "emit.c": "int main(void) { return 0; }\n",
            "rejects.c": "int main(void) { return 1; }\n",
            "wait.c": "#include <unistd.h>\nint main(void) { return pause(); }\n",
            "skip.c": "int main(void) { return 77; }\n",
        },
        r"t_wait",
        before="bash prep.sh",
        needs="meson",
    ),
    # cargo: a unit test of one crate of a workspace fails; a build script probes, and a test runs a command that has to fail.
    "cargo-test-workspace": Plant(
        "cargo",
        "cargo test --offline --no-fail-fast",
        {
            "Cargo.toml": '[workspace]\nresolver = "2"\nmembers = ["ledger", "money"]\n',
            "money/Cargo.toml": '[package]\nname = "money"\nversion = "0.1.0"\nedition = "2021"\n',
            "money/build.rs": """\
fn main() {
    let found = std::process::Command::new("pkg-config").args(["--exists", "no-such-library"]).status();
    if found.is_ok_and(|status| status.success()) {
        println!("cargo:rustc-link-lib=no-such-library");
    }
}
""",
            "money/src/lib.rs": "pub fn cents(units: i64) -> i64 {\n    units * 100\n}\n",
            "money/tests/cli.rs": """\
#[test]
fn a_missing_file_is_an_error() {
    let done = std::process::Command::new("cat").arg("/no/such/file").output().unwrap();
    assert_eq!(done.status.code(), Some(1));
}
""",
            "ledger/Cargo.toml": '[package]\nname = "ledger"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\n'
            'money = { path = "../money" }\n',
            "ledger/src/lib.rs": """\
pub fn balance(entries: &[i64]) -> i64 {
    entries.iter().map(|units| money::cents(*units)).sum()
}

#[test]
fn closes_balanced() {
    assert_eq!(balance(&[3, -2]), 0);
}

#[test]
#[should_panic]
fn rejects_overflow() {
    balance(&[i64::MAX]);
}
""",
        },
        r"ledger",
        r"cargo",
    ),
    # cargo: the build script compiles C code. A probe is allowed to fail, the code itself is not.
    "cargo-native-code": Plant(
        "cargo",
        "cargo build --offline",
        {
            "Cargo.toml": '[package]\nname = "ring"\nversion = "0.1.0"\nedition = "2021"\n',
            "build.rs": """\
use std::process::Command;

fn compile(source: &str) -> bool {
    let out = std::env::var("OUT_DIR").unwrap();
    let object = format!("{out}/{}.o", source.replace('/', "_"));
    Command::new("cc").args(["-O1", "-c", "-o", &object, source]).status().unwrap().success()
}

fn main() {
    if compile("native/probe.c") {
        println!("cargo:rustc-cfg=has_fast_ring");
    }
    for source in ["native/buffer.c", "native/ring.c"] {
        assert!(compile(source), "{source} does not compile");
    }
}
""",
            "src/lib.rs": "pub fn ring() {}\n",
            "native/probe.c": "#include <no/such/fast_ring.h>\n",
            "native/buffer.c": "int buffer(void) { return 0; }\n",
            "native/ring.c": "#include <stddef.h>\nsize_t ring(void) { return sizeof(struct ring_header); }\n",
        },
        r"(cc1|cc|gcc).*ring\.c",
        r"build-script-build|cargo",
    ),
    # go: the test of one package fails; another package tests that a command fails.
    "go-test-package": Plant(
        "go",
        "go test ./...",
        {
            "go.mod": "module example.org/shop\n\ngo 1.19\n",
            "cart/cart.go": "package cart\n\nfunc Total(prices []int) int {\n\tsum := 0\n\tfor _, p := range prices {\n\t\tsum += p\n\t}\n\treturn sum\n}\n",
            "cart/cart_test.go": 'package cart\n\nimport "testing"\n\nfunc TestTotal(t *testing.T) {\n\tif Total([]int{1, 2}) != 3 {\n\t\tt.Fatal("total")\n\t}\n}\n',
            "cli/cli.go": "package cli\n",
            "cli/cli_test.go": """\
package cli

import (
\t"os/exec"
\t"testing"
)

func TestMissingFile(t *testing.T) {
\tif exec.Command("ls", "/no/such/file").Run() == nil {
\t\tt.Fatal("no error")
\t}
}
""",
            "store/store.go": "package store\n\nfunc Key(id int) string {\n\treturn string(rune('a' + id))\n}\n",
            "store/store_test.go": """\
package store

import "testing"

func TestKey(t *testing.T) {
\tif got := Key(2); got != "k2" {
\t\tt.Errorf("Key(2) = %q, want %q", got, "k2")
\t}
}
""",
        },
        r"store",
        r"go",
    ),
    # go: a generator that `go generate` starts through a shell fails; the one of another package works.
    "go-generate-enum": Plant(
        "go",
        "bash ci.sh",
        {
            "ci.sh": """\
set -e
command -v golangci-lint || echo 'no linter'
test -z "$(gofmt -l .)" || echo 'some files are not formatted'
go generate ./...
go build ./...
""",
            "go.mod": "module example.org/gen\n\ngo 1.19\n",
            "color/color.go": "package color\n\n//go:generate sh ../tools/gen.sh colors.txt color\n",
            "color/colors.txt": "Red\nGreen\n",
            "shape/shape.go": "package shape\n\n//go:generate sh ../tools/gen.sh shapes.txt shape\n",
            "shape/shapes.txt": "Round\nSquare\nRound\n",
            "tools/gen.sh": """\
set -e
grep -v '^#' "$1" | grep -n ' ' && echo "warning: names with blanks"
python3 ../tools/enumgen.py "$1" "$2" > names.go
gofmt -w names.go
""",
            "tools/enumgen.py": """\
import sys
names = open(sys.argv[1]).read().split()
for name in names:
    if names.count(name) > 1:
        sys.exit(f"enumgen: {sys.argv[1]}: '{name}' is given twice")
print(f"package {sys.argv[2]}")
print("const (")
for number, name in enumerate(names):
    print(f"{name} = {number}")
print(")")
""",
        },
        r"enumgen\.py",
        r"gen\.sh|sh|go",
        needs="go",
    ),
    # npm: one of three test files fails; another one tests that a child process fails.
    "npm-node-test": Plant(
        "npm",
        "npm test",
        {
            "package.json": '{"name": "shop", "version": "1.0.0", "scripts": {"pretest": "node scripts/clean.js", "test": "node --test"}}\n',
            "scripts/clean.js": "require('child_process').spawnSync('rm', ['coverage.json']);\n",
            "test/cart.test.js": """\
const test = require('node:test');
const assert = require('node:assert');
test('total', () => assert.strictEqual([1, 2].reduce((a, b) => a + b, 0), 3));
test('discount', () => assert.strictEqual(Math.round(100 * 0.855), 85));
""",
            "test/cli.test.js": """\
const test = require('node:test');
const assert = require('node:assert');
const { spawnSync } = require('child_process');
test('unknown option', () => {
  const done = spawnSync(process.execPath, ['-e', 'process.exit(64)']);
  assert.strictEqual(done.status, 64);
});
""",
            "test/price.test.js": """\
const test = require('node:test');
const assert = require('node:assert');
test('price', () => assert.ok(1));
""",
        },
        r"cart\.test\.js",
        r"node|npm|sh",
    ),
    # npm: the lock file does not fit package.json.
    "npm-ci-lock": Plant(
        "npm",
        "bash ci.sh",
        {
            "ci.sh": """\
set -euo pipefail
if [ -f .nvmrc ]; then echo "node $(cat .nvmrc)"; fi
node scripts/engines.js || echo 'warning: another version of node is recommended'
cmp -s package.json .cache/package.json || echo 'the cache is stale'
npm ci --offline --no-audit --no-fund
npm run build
""",
            "scripts/engines.js": "process.exit(process.version.startsWith('v1.') ? 0 : 1);\n",
            "package.json": '{"name": "shop", "version": "1.0.0", "scripts": {"build": "node build.js"}, "dependencies": '
            '{"left": "file:vendor/left", "right": "file:vendor/right"}}\n',
            "package-lock.json": '{"name": "shop", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": '
            '{"": {"name": "shop", "version": "1.0.0", "dependencies": {"left": "file:vendor/left"}}, '
            '"node_modules/left": {"resolved": "vendor/left", "link": true}, "vendor/left": {"version": "1.0.0"}}}\n',
            "vendor/left/package.json": '{"name": "left", "version": "1.0.0"}\n',
            "vendor/right/package.json": '{"name": "right", "version": "1.0.0"}\n',
            "build.js": "console.log('built');\n",
        },
        r"npm",
        needs="npm",
    ),
    # pytest: an assertion fails. A fixture stops its server, a test runs a command that has to fail, a trap cleans up.
    "pytest-fixture-server": Plant(
        "pytest",
        "bash ci.sh",
        {
            "ci.sh": """\
set -euo pipefail
sleep 60 & keepalive=$!
cleanup() { kill "$keepalive" 2>/dev/null || true; rm -r build/cache 2>/dev/null || true; }
trap cleanup EXIT
python3 -c 'import no_such_module' 2>/dev/null || echo 'optional: not installed'
python3 -m pytest -q -p no:cacheprovider
""",
            "conftest.py": """\
import subprocess
import sys

import pytest


@pytest.fixture(scope="session")
def server():
    child = subprocess.Popen([sys.executable, "-u", "server.py"], stdout=subprocess.PIPE, text=True)
    yield int(child.stdout.readline())
    child.terminate()
    child.wait()
""",
            "server.py": """\
import http.server
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
print(server.server_port)
server.serve_forever()
""",
            "test_shop.py": """\
import subprocess
import urllib.request


def test_page(server):
    with urllib.request.urlopen(f"http://127.0.0.1:{server}/server.py") as page:
        assert page.status == 200


def test_missing_file():
    assert subprocess.run(["cat", "no-such-file"], capture_output=True).returncode == 1


def test_total():
    assert sum([0.1, 0.2]) == 0.3
""",
        },
        r"pytest",
    ),
    # pytest: a script that a test starts fails; another script has to fail.
    "pytest-script": Plant(
        "pytest",
        "pytest -q -p no:cacheprovider",
        {
            "check_order.py": "import sys\nsys.exit(0 if open(sys.argv[1]).read().startswith('order') else 2)\n",
            "export.py": "import json, sys\nprint(json.load(open(sys.argv[1]))['totals']['net'])\n",
            "good.txt": "order 7\n",
            "bad.txt": "7\n",
            "orders.json": '{"total": {"net": 3}}\n',
            "test_scripts.py": """\
import subprocess
import sys


def test_good_order():
    subprocess.run([sys.executable, "check_order.py", "good.txt"], check=True)


def test_bad_order():
    assert subprocess.run([sys.executable, "check_order.py", "bad.txt"]).returncode == 2


def test_export():
    assert subprocess.run([sys.executable, "export.py", "orders.json"], check=True, capture_output=True).stdout == b"3"


def test_missing_order():
    assert subprocess.run([sys.executable, "check_order.py", "none.txt"], capture_output=True).returncode == 1
""",
        },
        r"export\.py",
        needs="pytest",
    ),
    # pytest-xdist: a worker crashes in a test; its replacement does the rest.
    "pytest-xdist-crash": Plant(
        "pytest",
        "pytest -q -n 2 -p no:cacheprovider",
        {
            "test_codec.py": """\
import ctypes
import subprocess

import pytest


@pytest.mark.parametrize("number", range(6))
def test_round_trip(number):
    assert subprocess.run(["cmp", "-s", "/dev/null", "test_codec.py"]).returncode == 1


def test_native_decoder():
    ctypes.string_at(16)


def test_empty():
    assert bytes() == b""
""",
        },
        r"pytest worker|python",
        needs="pytest",
    ),
    # ansible: the last command fails, after failures that are ignored, rescued and tried again.
    "ansible-deploy-script": Plant(
        "ansible",
        "ansible-playbook -i inventory site.yml",
        {
            "inventory": "localhost ansible_connection=local ansible_python_interpreter=python3\n",
            "site.yml": """\
- hosts: all
  gather_facts: false
  tasks:
    - name: the release that is deployed
      command: cat /no/such/release
      register: release
      ignore_errors: true
    - name: is it in maintenance
      command: grep -q maintenance state.txt
      register: maintenance
      failed_when: maintenance.rc > 1
      changed_when: false
    - name: wait for the store
      command: sh store.sh
      register: store
      until: store.rc == 0
      retries: 3
      delay: 0
    - block:
        - command: rmdir old-release
      rescue:
        - debug: msg="there is no old release"
    - name: deploy
      command: sh deploy.sh
    - name: announce
      command: echo deployed
""",
            "state.txt": "running\n",
            "store.sh": "if [ -e store.up ]; then exit 0; fi\ntouch store.up\nexit 1\n",
            "deploy.sh": "set -e\nmkdir -p release\ntar -xzf release.tar.gz -C release\n",
            "release.tar.gz": "<html>502 Bad Gateway</html>\n",
        },
        r"tar|gzip|deploy\.sh",
        r"python|ansible|sh",
        needs="ansible-playbook",
    ),
    # ansible: a template has a variable that nobody defines.
    "ansible-undefined-variable": Plant(
        "ansible",
        "ansible-playbook -i inventory site.yml",
        {
            "inventory": "localhost ansible_connection=local ansible_python_interpreter=python3\n",
            "site.yml": """\
- hosts: all
  gather_facts: false
  tasks:
    - name: look for the old configuration
      command: test -e old.conf
      register: old
      failed_when: false
    - name: which init system
      shell: pidof no-such-init || echo none
    - name: stop the old service
      command: "false"
      ignore_errors: true
    - name: write the configuration
      template:
        src: app.conf.j2
        dest: "{{ playbook_dir }}/app.conf"
""",
            "app.conf.j2": "listen {{ listen_port }}\nworkers {{ ansible_forks }}\n",
        },
        "itself",
        needs="ansible-playbook",
    ),
    # The shell: generated code that is committed is not up to date.
    "shell-stale-code": Plant(
        "shell",
        "bash ci.sh",
        {
            "prep.sh": """\
set -e
git init -q .
git add gen.py ci.sh colors.py
git -c user.name=ci -c user.email=ci@example.org commit -q -m start
""",
            "ci.sh": """\
set -e
version=$(cat VERSION 2>/dev/null || echo 0)
echo "version $version"
if grep -q experimental gen.py; then echo 'experimental'; fi
python3 gen.py > colors.py
python3 -m py_compile colors.py
git diff --exit-code -- colors.py
echo 'the generated code is up to date'
""",
            "gen.py": "for number, name in enumerate(['RED', 'GREEN', 'BLUE']):\n    print(name, '=', number)\n",
            "colors.py": "RED = 0\nGREEN = 1\n",
        },
        r"git diff",
        before="bash prep.sh",
    ),
    # The shell: a variable is not set. Before that things fail that may fail.
    "shell-missing-token": Plant(
        "shell",
        "bash deploy.sh",
        {
            "deploy.sh": """\
set -eu
sleep 60 & tunnel=$!
trap 'kill $tunnel' EXIT
remote=$(git config --get remote.origin.url || echo none)
curl -sf file:///no/such/notes.txt -o notes.txt || true
if ! cmp -s app.conf app.conf.old; then echo "the configuration has changed ($remote)"; fi
tar -czf app.tar.gz app.conf
: "${DEPLOY_TOKEN:?is not set}"
curl -sf -H "Authorization: $DEPLOY_TOKEN" -T app.tar.gz https://deploy.invalid/
""",
            "app.conf": "listen 80\n",
        },
        "itself",
    ),
    # The shell: a download works at the third attempt, and its checksum is wrong.
    "shell-checksum": Plant(
        "shell",
        "bash ci.sh",
        {
            "ci.sh": """\
set -euo pipefail
( while :; do sleep 0.3; echo 'still running'; done ) & heartbeat=$!
trap 'kill $heartbeat 2>/dev/null || true' EXIT
for attempt in 1 2 3 4; do
  if sh fetch.sh; then break; fi
  echo "attempt $attempt failed"
  sleep 0.2
done
sha256sum -c tool.sha256
chmod +x tool
./tool
""",
            "fetch.sh": """\
echo x >> attempts
if [ "$(wc -l < attempts)" -lt 3 ]; then curl -sf file:///no/such/tool -o tool || exit; fi
echo 'echo tool 1.1' > tool
""",
            "tool.sha256": "0f4d5c4f7b5d7ab0fd3bdcf4ba1e28cbf52a5d5f4e0a8a4a06fc7b9ac0e7c31e  tool\n",
        },
        r"sha256sum",
    ),
    # Pipes: the tests fail, and their output goes through two filters.
    "pipe-tests-to-log": Plant(
        "pipe",
        "bash ci.sh",
        {
            "ci.sh": """\
set -o pipefail
mkdir -p logs
ls logs/*.old 2>/dev/null && rm -f logs/*.old
python3 run_tests.py 2>&1 | tee logs/test.log | sed 's/^/test: /'
status=${PIPESTATUS[0]}
grep -c WARNING logs/test.log
exit "$status"
""",
            "run_tests.py": """\
import sys, time
for number in range(20):
    print(f"case {number}: {'FAILED' if number == 13 else 'ok'}", flush=True)
    time.sleep(0.02)
sys.exit(1)
""",
        },
        r"run_tests\.py",
    ),
    # Pipes: the middle of a pipe fails, so that its producer is killed by SIGPIPE.
    "pipe-middle": Plant(
        "pipe",
        "bash nightly.sh",
        {
            "nightly.sh": """\
set -euo pipefail
cmp -s rates.csv rates.old || echo 'rates have changed'
seq 1 400000 | sed 's/$/;1.5/' | python3 convert.py rates.csv | gzip -9 > out.gz
echo done
""",
            "rates.csv": "1.5;EUR\n",
            "convert.py": """\
import sys
rates = dict(line.split(";") for line in open(sys.argv[1]))
for number, line in enumerate(sys.stdin, 1):
    amount, rate = line.split(";")
    if int(amount) > 5000:
        raise ValueError(f"line {number}: the amount {amount} is too large")
    print(amount, rates[rate.strip()].strip())
""",
        },
        r"convert\.py",
    ),
    # Pipes: a filter that finds nothing ends the script.
    "pipe-grep-nothing": Plant(
        "pipe",
        "bash report.sh",
        {
            "report.sh": """\
set -euo pipefail
ls core.* 2>/dev/null || true
python3 build.py > build.log 2>&1 || { cat build.log; exit 1; }
warnings=$(cat build.log | grep -i 'warning:' | sort -u | wc -l)
echo "$warnings warnings"
""",
            "build.py": "import subprocess\nprint('optional:', subprocess.run(['test', '-e', 'extra.txt']).returncode)\nprint('built')\n",
        },
        r"grep",
    ),
    # A pool of workers: one file of many is wrong.
    "pool-xargs": Plant(
        "pool",
        "bash lint.sh",
        {
            "lint.sh": """\
set -euo pipefail
find data -name '*.bak' -delete
git ls-files data 2>/dev/null | grep generated || true
find data -name '*.json' | sort | xargs -P2 -n1 python3 check_json.py
echo 'all files are fine'
""",
            "check_json.py": """\
import json, sys, time
time.sleep(0.05)
try:
    json.load(open(sys.argv[1]))
except ValueError as error:
    sys.exit(f"{sys.argv[1]}: {error}")
""",
            **{f"data/{n}.json": '{"a": 1}\n' for n in range(8)},
            "data/4.json": '{"a": 1,}\n',
        },
        r"check_json\.py",
        r"xargs",
    ),
    # A pool of workers: the first one that fails ends the others, one of which ends in an orderly way.
    "pool-wait-n": Plant(
        "pool",
        "bash shards.sh",
        {
            "shards.sh": """\
for shard in web api db; do python3 shards/$shard.py & done
failed=0
for shard in 1 2 3; do
  if ! wait -n; then
    failed=1
    echo 'a shard failed: the others are cancelled'
    kill $(jobs -p) 2>/dev/null
    wait
    break
  fi
done
exit $failed
""",
            "shards/web.py": "import time\ntime.sleep(30)\n",
            "shards/db.py": "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(1))\ntime.sleep(30)\n",
            "shards/api.py": """\
import subprocess, time
subprocess.run(["cat", "/no/such/cache"], stderr=subprocess.DEVNULL)
time.sleep(0.6)
assert "v2" in "v1", "api: version 2 is not there"
""",
        },
        r"api\.py",
    ),
    # A pool of workers: one process is killed as if memory were short, and the pool ends the rest.
    "pool-processes": Plant(
        "pool",
        "bash ci.sh",
        {
            "ci.sh": "set -e\nrm -rf out\nmkdir out\npython3 render_all.py\nls out | wc -l\n",
            "render_all.py": """\
import concurrent.futures, os, signal, subprocess, time


def render(page):
    subprocess.run(["cmp", "-s", f"out/{page}", f"cache/{page}"])
    time.sleep(0.1)
    if page == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    with open(f"out/{page}", "w") as out:
        out.write("page")


if __name__ == "__main__":
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        list(pool.map(render, range(12)))
""",
        },
        r"render_all\.py",
    ),
    # Servers: the server ends at its start, because its configuration lacks a key.
    "server-configuration": Plant(
        "server",
        "bash integration.sh",
        {
            "integration.sh": """\
port=$(python3 port.py)
python3 server.py --port "$port" --config server.json & server=$!
for attempt in 1 2 3 4 5 6; do
  if curl -sf "http://127.0.0.1:$port/health"; then ready=1; break; fi
  sleep 0.25
done
if [ -z "$ready" ]; then
  echo 'the server did not get ready' >&2
  kill "$server" 2>/dev/null || true
  exit 1
fi
python3 client.py "$port"
""",
            "port.py": PORT,
            "server.py": """\
import http.server, json, sys
config = json.load(open(sys.argv[4]))
root = config["document_root"]
http.server.HTTPServer(("127.0.0.1", int(sys.argv[2])), http.server.SimpleHTTPRequestHandler).serve_forever()
""",
            "server.json": '{"root": "."}\n',
            "client.py": "",
        },
        r"server\.py",
        r"curl",
    ),
    # Servers: the client does not wait until the port is open.
    "server-not-ready": Plant(
        "server",
        "bash integration.sh",
        {
            "integration.sh": """\
set -e
port=$(python3 port.py)
python3 server.py "$port" & server=$!
trap 'kill $server; wait $server || true' EXIT
test -e fixtures.sql || echo 'no fixtures'
curl -sSf "http://127.0.0.1:$port/integration.sh" -o page
cmp page integration.sh
""",
            "port.py": PORT,
            "server.py": """\
import http.server, sys, time
time.sleep(3)  # migrations
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), http.server.SimpleHTTPRequestHandler).serve_forever()
""",
        },
        r"curl",
    ),
    # Servers: a request makes the server crash, so that the client that made it fails.
    "server-crash-request": Plant(
        "server",
        "bash e2e.sh",
        {
            "e2e.sh": """\
set -e
node server.js & server=$!
trap 'kill $server 2>/dev/null || true; rm port' EXIT
until [ -s port ]; do sleep 0.1; done
for page in / /items /report /items; do
  python3 client.py "$(cat port)" "$page"
done
""",
            "server.js": """\
const http = require('http');
const fs = require('fs');
const items = [{ name: 'a', price: { net: 1 } }, { name: 'b' }];
const server = http.createServer((request, response) => {
  if (request.url === '/report') {
    setTimeout(() => response.end(String(items.map((item) => item.price.net))), 50);
    return;
  }
  response.end(JSON.stringify(items));
});
server.listen(0, '127.0.0.1', () => fs.writeFileSync('port', String(server.address().port)));
""",
            "client.py": """\
import sys, urllib.request
with urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}{sys.argv[2]}", timeout=5) as page:
    print(sys.argv[2], len(page.read()))
""",
        },
        r"server\.js",
        r"client\.py",
    ),
    # Servers: the port is taken, so that a server that is left over answers.
    "server-port-taken": Plant(
        "server",
        "bash e2e.sh",
        {
            "e2e.sh": """\
python3 mock.py & mock=$!
until [ -s port ]; do sleep 0.1; done
python3 api.py "$(cat port)" & api=$!
cleanup() { kill $api 2>/dev/null; kill $mock; wait; }
trap cleanup EXIT
sleep 0.8
curl -sf "http://127.0.0.1:$(cat port)/" -o health.txt --retry 3 || exit 1
python3 smoke.py "$(cat port)"
""",
            "mock.py": """\
import http.server, os
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
with open("port.new", "w") as out:
    out.write(str(server.server_port))
os.rename("port.new", "port")
server.serve_forever()
""",
            "api.py": """\
import http.server, sys


class Api(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"version": 2}')


class Server(http.server.HTTPServer):
    allow_reuse_address = False


Server(("127.0.0.1", int(sys.argv[1])), Api).serve_forever()
""",
            "smoke.py": """\
import json, sys, urllib.request
with urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/") as page:
    assert json.load(page)["version"] == 2
""",
        },
        r"api\.py",
        r"smoke\.py",
    ),
    # Time-outs: one of several tests waits for ever.
    "timeout-hung-test": Plant(
        "timeout",
        "bash ci.sh",
        {
            "ci.sh": """\
failed=
for test in tests/*.py; do
  timeout -k 1 2 python3 "$test"
  case $? in
    0) echo "PASS $test" ;;
    124) echo "TIMEOUT $test"; failed="$failed $test" ;;
    *) echo "FAIL $test"; failed="$failed $test" ;;
  esac
done
[ -z "$failed" ] || { echo "failed:$failed"; exit 1; }
""",
            "tests/list.py": "import subprocess\nassert subprocess.run(['ls', '/no/such'], stderr=subprocess.DEVNULL).returncode == 2\n",
            "tests/order.py": "assert sorted([2, 1]) == [1, 2]\n",
            "tests/stream.py": "import os\nread, write = os.pipe()\nprint('waits for an event', flush=True)\nos.read(read, 1)\n",
            "tests/table.py": "print('table')\n",
        },
        r"timeout|stream\.py",
    ),
    # Time-outs: a server accepts connections, and never answers.
    "timeout-silent-server": Plant(
        "timeout",
        "bash smoke.sh",
        {
            "smoke.sh": """\
set -euo pipefail
python3 server.py & server=$!
cleanup() { kill -9 $server 2>/dev/null || true; rm -f port; rmdir scratch 2>/dev/null || true; }
trap cleanup EXIT INT TERM
until [ -s port ]; do sleep 0.1; done
curl -sS --max-time 1 --retry 1 --retry-delay 0 "http://127.0.0.1:$(cat port)/health" | tee health.txt
grep -q ok health.txt
""",
            "server.py": """\
import os, socket, time
server = socket.create_server(("127.0.0.1", 0))
with open("port.new", "w") as out:
    out.write(str(server.getsockname()[1]))
os.rename("port.new", "port")
connections = []
while True:
    connections.append(server.accept())
""",
        },
        r"curl",
        r"server\.py",
    ),
}
