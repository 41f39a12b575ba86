"""The seventeenth part of the plants of failing.py: everyday CI jobs, nearly all of them with tempting decoys, written before anything
of it was recorded, by somebody who had not read the rules. Each was run without the tool; answers.md has its true cause.

Debian packages that a bare machine may lack: gcc make cmake ninja-build meson golang-go python3-pytest jq curl git nodejs npm
shellcheck zip; cargo from rustup."""

from plant import Plant

SEVENTEENTH = {
    # ----------------------------------------------------------------- make
    "seedbank-make-two-errors": Plant(
        "make",
        "bash ci/build.sh",
        {
            "ci/build.sh": r"""#!/bin/bash
# everything that can be built is built; the status is kept
set -u
rc=0
make -j2 -k all || rc=$?
make check || echo "the checks failed"
exit $rc
""",
            "Makefile": r"""CFLAGS := -O0 -Igen
all: seedbank extra.o
seedbank: main.o species.o
	$(CC) -o $@ $^
species.o: src/species.c gen/species.h gen/latin.h
	$(CC) $(CFLAGS) -c -o $@ $<
main.o: src/main.c
	$(CC) $(CFLAGS) -c -o $@ $<
# not yet for this compiler
extra.o: src/extra.c
	-$(CC) $(CFLAGS) -c -o $@ $<
gen/%.h: tables/%.csv tools/gen_table.py
	@mkdir -p gen
	/usr/bin/python3 tools/gen_table.py $< $@
check:
	./seedbank --selftest
.PHONY: all check
""",
            "tools/gen_table.py": r"""import configparser, csv, sys

source, target = sys.argv[1:]
config = configparser.ConfigParser()
config.read("tables/gen.ini")
prefix = config["names"]["prefix"]
with open(source) as rows, open(target, "w") as out:
    for row in csv.reader(rows):
        out.write(f"#define {prefix}_{row[0].upper()} {row[1]}\n")
""",
            "tables/gen.ini": "[name]\nprefix = SEED\n",
            "tables/species.csv": "rye,1\noat,2\n",
            "tables/latin.csv": "secale,1\navena,2\n",
            "src/main.c": "int kinds(void);\nint main(void) { return kinds() != 2; }\n",
            "src/species.c": '#include "species.h"\n#include "latin.h"\nint kinds(void) { return SEED_OAT; }\n',
            "src/extra.c": "int extra(void) { return __builtin_of_the_next_gcc_version(; }\n",
        },
        r"gen_table\.py",
        r"\bmake\b",
        needs="gcc",
    ),
    "lexicon-make-doctest": Plant(
        "docs",
        "make -C docs check",
        {
            "docs/Makefile": "PAGES := $(sort $(wildcard *.md))\ncheck:\n\t-@test -f CNAME\n\t@for page in $(PAGES); do \\\n\t\tgrep -q '^# ' $$page || echo \"$$page has no title\"; \\\n\t\t/usr/bin/python3 -m doctest $$page || exit 1; \\\n\tdone\n\t@echo all examples hold\n.PHONY: check\n",
            "docs/cases.md": "# Cases\n\n>>> 'der Hund'.upper()\n'DER HUND'\n",
            "docs/errors.md": "The tool ends with 3 for an unknown word:\n\n>>> import subprocess, sys\n>>> subprocess.run([sys.executable, '-c', 'raise SystemExit(3)']).returncode\n3\n",
            "docs/plurals.md": "# Plurals\n\n>>> plural = lambda word: word + 's'\n>>> plural('dog')\n'dogs'\n>>> plural('box')\n'boxes'\n",
            "docs/verbs.md": "# Verbs\n\n>>> 'go' + 'ing'\n'going'\n",
        },
        r"doctest.*plurals",
        r"\bmake\b",
    ),
    # ---------------------------------------------------------------- ninja
    "rail-ninja-no-output": Plant(
        "ninja",
        "ninja -j2 -v",
        {
            "build.ninja": r"""cc = cc
rule gen
  command = /usr/bin/python3 tools/gen_routes.py $in gen
  description = GEN $out
rule compile
  command = $cc -O0 -c $in -o $out
rule link
  command = $cc -o $out $in
build gen/routes_gen.c: gen lines.txt | tools/gen_routes.py
build main.o: compile main.c
build fares.o: compile fares.c
build routes_gen.o: compile gen/routes_gen.c
build rail: link main.o fares.o routes_gen.o
default rail
""",
            "tools/gen_routes.py": "import sys\n\nsource, folder = sys.argv[1:]\nwith open(f'{folder}/routes.c', 'w') as out:\n    out.write('int routes = %d;\\n' % len(open(source).readlines()))\n",
            "lines.txt": "S1 north\nS2 south\n",
            "main.c": "extern int routes;\nint fare(int);\nint main(void) { return !fare(routes); }\n",
            "fares.c": "int fare(int zones) { return 2 + zones; }\n",
        },
        r"gen_routes\.py|\bg?cc1?\b.*routes_gen",
        r"\bninja\b",
        needs="ninja",
    ),
    # ---------------------------------------------------------------- cmake
    "abacus-ctest": Plant(
        "cmake",
        "bash -e ci/test.sh",
        {
            "ci/test.sh": r"""cmake -S . -B build -G Ninja > configure.log
cmake --build build -j 2
cd build
ctest --output-on-failure || { echo "failed:"; cat Testing/Temporary/LastTestsFailed.log; exit 1; }
""",
            "CMakeLists.txt": r"""cmake_minimum_required(VERSION 3.16)
project(abacus C)
enable_testing()
add_library(abacus STATIC abacus.c)
foreach(t add div mul sqrt)
  add_executable(test_${t} tests/test_${t}.c)
  target_link_libraries(test_${t} abacus)
  add_test(NAME ${t} COMMAND test_${t})
endforeach()
set_tests_properties(div PROPERTIES WILL_FAIL TRUE)
set_tests_properties(sqrt PROPERTIES SKIP_RETURN_CODE 77)
""",
            "abacus.c": "int add(int a, int b) { return a + b; }\nint mul(int a, int b) { int n = 0; while (b-- > 0) n = add(n, a); return n; }\n",
            "tests/test_add.c": "int add(int, int);\nint main(void) { return add(2, 3) != 5; }\n",
            "tests/test_div.c": "/* a division by 0 is refused */\nint main(void) { return 1; }\n",
            "tests/test_mul.c": "#include <assert.h>\nint mul(int, int);\nint main(void) {\n    assert(mul(3, 4) == 12);\n    assert(mul(3, -4) == -12);\n    return 0;\n}\n",
            "tests/test_sqrt.c": "/* no libm here */\nint main(void) { return 77; }\n",
        },
        r"\btest_mul\b",
        r"\bctest\b",
        needs="ninja",
    ),
    # ---------------------------------------------------------------- meson
    "metro-meson-timeout": Plant(
        "meson",
        "bash -c 'set -e; meson setup build > setup.log; meson test -C build --print-errorlogs; echo passed'",
        {
            "meson.build": r"""project('metro', version: '1.0')
py = find_program('/usr/bin/python3')
find_program('signalbox-of-the-farm', required: false)
test('depot', py, args: files('tests/depot_test.py'))
test('refuses', py, args: files('tests/refuses_test.py'), should_fail: true)
test('signal', py, args: files('tests/signal_test.py'), timeout: 1)
test('night', py, args: files('tests/night_test.py'))
""",
            "tests/depot_test.py": "import subprocess\nassert subprocess.call(['sh', '-c', 'exit 4']) == 4\n",
            "tests/refuses_test.py": "raise SystemExit('a train without a driver is refused')\n",
            "tests/signal_test.py": "import socket\n\na, b = socket.socketpair()\nb.sendall(b'green')\nassert a.recv(5) == b'green'\n# the answer never comes\na.recv(5)\n",
            "tests/night_test.py": "raise SystemExit(77)\n",
        },
        r"signal_test\.py",
        r"\bmeson\b",
        needs="meson",
    ),
    # ---------------------------------------------------------------- cargo
    "quarry-cargo-build-script": Plant(
        "cargo",
        "make -s lib",
        {
            "Makefile": "export CARGO_TARGET_DIR := $(CURDIR)/target\nexport CARGO_NET_OFFLINE := true\nexport CARGO_TERM_COLOR := never\nlib:\n\t-@cargo audit-of-the-team 2> /dev/null\n\tcargo build --lib\n.PHONY: lib\n",
            "Cargo.toml": '[package]\nname = "quarry"\nversion = "0.2.0"\nedition = "2021"\n\n[profile.dev]\ndebug = 0\n\n[workspace]\n',
            "build.rs": r"""use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=schema/layers.txt");
    let system = Command::new("pkg-config").args(["--exists", "libquarry-of-the-farm"]).status();
    if !system.map_or(false, |s| s.success()) {
        println!("cargo:warning=using the bundled schema");
    }
    let mut out = String::new();
    for line in std::fs::read_to_string("schema/layers.txt").unwrap().lines() {
        let (name, depth) = line.split_once('=').expect("name=depth");
        let depth: u32 = depth.trim().parse().expect("a depth in metres");
        out += &format!("pub const {}: u32 = {};\n", name.trim().to_uppercase(), depth);
    }
    std::fs::write(std::env::var("OUT_DIR").unwrap() + "/layers.rs", out).unwrap();
}
""",
            "schema/layers.txt": "chalk = 12\nclay = 3O\nslate = 45\n",
            "src/lib.rs": 'include!(concat!(env!("OUT_DIR"), "/layers.rs"));\n',
        },
        r"build-script|build script|build\.rs",
        r"\bcargo build\b|\bmake\b",
        needs="cargo",
    ),
    # ------------------------------------------------------------------- go
    "tugboat-gofmt": Plant(
        "format",
        "bash ci/style.sh",
        {
            "ci/style.sh": r"""#!/bin/bash
set -euo pipefail
check_go() {
    local out
    out=$(gofmt -l "$@")
    if [ -n "$out" ]; then
        printf 'not formatted:\n%s\n' "$out"
        return 1
    fi
}
check_end() { local f; for f in "$@"; do grep -q 'Copyright' "$f" || echo "$f: no copyright (a hint)"; done; }
check_end pkg/*.go
check_go cmd pkg
echo "style ok"
""",
            "cmd/main.go": 'package main\n\nfunc main() {\n\tprintln("toot")\n}\n',
            "pkg/rope.go": "package pkg\n\n// Rope is in metres.\ntype Rope struct {\n  Length int\n\tWet    bool\n}\n",
            "pkg/tow.go": "package pkg\n\nfunc Tow(r Rope) int { return r.Length }\n",
        },
        r"return 1|check_go|gofmt|-n \"\$out\"",
        needs="gofmt",
    ),
    "orchid-go-generate": Plant(
        "go",
        "sh ci/generate.sh",
        {
            "ci/generate.sh": "set -eu\nexport GOFLAGS=-mod=mod GOPROXY=off CGO_ENABLED=0\ngo generate ./...\ngit diff --exit-code\n",
            "go.mod": "module example.org/orchid\n\ngo 1.18\n",
            "petal/petal.go": "package petal\n\n//go:generate sh ../tools/names.sh names.txt names_gen.go\n\ntype Petal int\n",
            "petal/names.txt": "white\nblue\n",
            "petal/names_gen.go": "package petal\n",
            "soil/soil.go": "package soil\n\n//go:generate sh ../tools/limits.sh limits.tsv limits_gen.go\n\ntype Soil int\n",
            "soil/limits.tsv": "ph\t5.5\t6.5\nmoist\t40\n",
            "tools/names.sh": r"""set -eu
command -v stringer-of-the-team > /dev/null || echo "no stringer, the simple way"
sed 's/.*/const Name_& = "&"/; 1i package petal' "$1" > "$2.new"
cmp -s "$2.new" "$2" || mv "$2.new" "$2"
rm -f "$2.new"
""",
            "tools/limits.sh": r"""set -eu
grep -q '^#' "$1" || echo "$1 has no header"
awk -F '\t' 'BEGIN { print "package soil" }
NF != 3 { print FILENAME ":" FNR ": three fields are needed" > "/dev/stderr"; exit 3 }
{ printf "const %s_min, %s_max = %s, %s\n", $1, $1, $2, $3 }' "$1" > "$2.new"
mv "$2.new" "$2"
""",
        },
        r"\bm?awk\b",
        r"\bgo generate\b|limits\.sh",
        needs="go",
    ),
    # ------------------------------------------------------------------ npm
    "harbour-npm-workspaces": Plant(
        "npm",
        "npm run build --workspaces --if-present",
        {
            "package.json": '{"name": "harbour", "version": "1.0.0", "private": true, "workspaces": ["packages/core", "packages/theme", "packages/app"]}\n',
            ".npmrc": "update-notifier=false\nfund=false\naudit=false\n",
            "packages/core/package.json": '{"name": "@harbour/core", "version": "1.0.0", "scripts": {"build": "node ../../tools/compile.js src/core.js dist"}}\n',
            "packages/core/src/core.js": "exports.berths = 4;\n",
            "packages/theme/package.json": '{"name": "@harbour/theme", "version": "1.0.0", "scripts": {"build": "node ../../tools/theme.js theme.json dist"}}\n',
            "packages/theme/theme.json": '{"colours": {"sea": "#036"}, "rules": {"body": "sea", "button": "buoy"}}\n',
            "packages/app/package.json": '{"name": "@harbour/app", "version": "1.0.0", "scripts": {"build": "node ../../tools/pack.js ../core/dist/core.js ../theme/dist/theme.css"}}\n',
            "tools/compile.js": "const fs = require('fs');\nconst path = require('path');\nconst [src, dist] = process.argv.slice(2);\nfs.mkdirSync(dist, { recursive: true });\nfs.copyFileSync(src, path.join(dist, path.basename(src)));\n",
            "tools/theme.js": r"""const fs = require('fs');
const [source, dist] = process.argv.slice(2);
const theme = JSON.parse(fs.readFileSync(source, 'utf8'));
let css = '';
for (const [rule, colour] of Object.entries(theme.rules)) {
  if (!theme.colours[colour]) {
    console.error(`${source}: ${rule}: no such colour: ${colour}`);
    process.exit(1);
  }
  css += `${rule} { color: ${theme.colours[colour]} }\n`;
}
fs.mkdirSync(dist, { recursive: true });
fs.writeFileSync(`${dist}/theme.css`, css);
""",
            "tools/pack.js": "const fs = require('fs');\nlet size = 0;\nfor (const f of process.argv.slice(2)) size += fs.statSync(f).size;\nconsole.log(`${size} bytes`);\n",
        },
        r"\btheme\.js\b",
        r"^npm\b|pack\.js",
        needs="npm",
    ),
    # ---------------------------------------------------------- worker pool
    "loom-node-pool": Plant(
        "worker pool",
        "node tools/weave.js cotton linen satin wool",
        {
            "tools/weave.js": r"""// weaves every cloth, two at a time; a worker that ends with 75 is tried again
const { fork } = require('child_process');
const path = require('path');
const waiting = process.argv.slice(2).map((cloth) => ({ cloth, attempt: 1 }));
const running = new Set();
let failed = null;
function next() {
  while (!failed && running.size < 2 && waiting.length) {
    const job = waiting.shift();
    const child = fork(path.join(__dirname, 'worker.js'), [job.cloth, String(job.attempt)]);
    running.add(child);
    child.on('exit', (code, signal) => {
      running.delete(child);
      if (code === 75 && job.attempt < 3) waiting.unshift({ ...job, attempt: job.attempt + 1 });
      else if ((code || signal) && !failed) {
        failed = job.cloth;
        for (const other of running) other.kill();
      }
      next();
    });
  }
  if (!running.size) {
    if (failed) console.error(`weave: ${failed} failed, the rest was stopped`);
    process.exit(failed ? 1 : 0);
  }
}
next();
""",
            "tools/worker.js": r"""const fs = require('fs');
const [cloth, attempt] = process.argv.slice(2);
const pattern = JSON.parse(fs.readFileSync(`patterns/${cloth}.json`, 'utf8'));
if (pattern.warm && attempt === '1') process.exit(75);
const rows = pattern.threads.map((t) => t.colour.padEnd(8)).join('|');
setTimeout(() => console.log(cloth, rows), pattern.ms);
""",
            "patterns/cotton.json": '{"threads": [{"colour": "red"}], "ms": 8000}\n',
            "patterns/linen.json": '{"threads": [{"colour": "grey"}], "ms": 20, "warm": true}\n',
            "patterns/satin.json": '{"threads": [{"colour": "gold"}, {"color": "blue"}], "ms": 20}\n',
            "patterns/wool.json": '{"threads": [{"colour": "white"}], "ms": 20}\n',
        },
        r"worker\.js.*satin",
        r"weave\.js",
        needs="node",
    ),
    "hive-python-pool": Plant(
        "worker pool",
        "make test",
        {
            "Makefile": "test:\n\t-@rm results.xml 2> /dev/null\n\t/usr/bin/python3 -m runner hive 2\n.PHONY: test\n",
            "runner.py": r"""import concurrent.futures, importlib, sys


def run(name):
    getattr(importlib.import_module("tests_" + sys.argv[1]), name)()
    return name


def main():
    tests = [n for n in dir(importlib.import_module("tests_" + sys.argv[1])) if n.startswith("test_")]
    status = 0
    with concurrent.futures.ProcessPoolExecutor(int(sys.argv[2])) as pool:
        for name, future in [(n, pool.submit(run, n)) for n in tests]:
            try:
                print("ok", future.result())
            except Exception as error:
                print("FAIL", name, repr(error))
                status = 1
    sys.exit(status)


if __name__ == "__main__":
    main()
""",
            "tests_hive.py": r"""import ctypes, subprocess, time


def test_a_swarm_is_ended():
    bees = subprocess.Popen(["sleep", "30"])
    bees.kill()
    assert bees.wait() == -9


def test_b_empty_comb():
    time.sleep(0.3)
    # as the extension does with a comb that was freed
    assert ctypes.string_at(1, 4) == b"comb"


def test_c_winter():
    time.sleep(5)


def test_d_honey():
    assert sum([1, 2]) == 3
""",
        },
        r"SEGV|[Ss]egmentation|signal 11",
        r"\brunner\b|\bmake\b",
    ),
    # --------------------------------------------------------------- pytest
    "ferry-pytest-server": Plant(
        "server",
        "/usr/bin/python3 -m pytest -q -p no:cacheprovider tests",
        {
            "services/bus.py": "import socket\n\ns = socket.socket()\ns.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\ns.bind(('127.0.0.1', 18611))\ns.listen()\nwhile True:\n    s.accept()[0].close()\n",
            "services/api.py": r"""import http.server, json, sys

config = json.load(open(sys.argv[1]))
routes = {r["from"]: r["to"] for r in config["routes"]}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path[1:] in routes else 404)
        self.end_headers()


http.server.HTTPServer(("127.0.0.1", config["port"]), Handler).serve_forever()
""",
            "services/api.json": '{"port": 18612, "routes": [{"from": "pier", "to": "island"}, {"form": "island", "to": "pier"}]}\n',
            "tests/conftest.py": r"""import socket, subprocess, time

import pytest

PYTHON = "/usr/bin/python3"


def up(port):
    end = time.time() + 1.5
    while time.time() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 0.5).close()
            return True
        except OSError:
            time.sleep(0.05)
    return False


@pytest.fixture(scope="session")
def services():
    bus = subprocess.Popen([PYTHON, "services/bus.py"])
    api = subprocess.Popen([PYTHON, "services/api.py", "services/api.json"], stderr=subprocess.DEVNULL)
    assert up(18611)
    up(18612)
    yield "http://127.0.0.1:18612"
    api.terminate()
    bus.terminate()
    bus.wait()
    api.wait()
""",
            "tests/test_routes.py": "import subprocess, urllib.request\n\n\ndef test_usage():\n    assert subprocess.call(['sh', '-c', 'exit 2']) == 2\n\n\ndef test_pier(services):\n    assert urllib.request.urlopen(services + '/pier').status == 200\n",
        },
        r"\bapi\.py\b",
        r"\bpytest\b",
        needs="pytest",
    ),
    "granary-pytest-teardown": Plant(
        "pytest",
        "bash ci/job.sh",
        {
            "ci/job.sh": r"""#!/bin/bash
set -euo pipefail
source ci/database.sh
trap drop_database EXIT
create_database
/usr/bin/python3 -m pytest -q -p no:cacheprovider test_grain.py
echo "all passed"
""",
            "ci/database.sh": r"""create_database() {
    /usr/bin/python3 tools/db.py drop granary 2> /dev/null || true
    /usr/bin/python3 tools/db.py create granary
}
drop_database() {
    /usr/bin/python3 tools/db.py drop granary
}
""",
            "tools/db.py": r"""import os, sys

verb, name = sys.argv[1:]
if verb == "create":
    os.mkdir(name)
    open(os.path.join(name, "lock"), "w").close()
elif not os.path.isdir(name):
    sys.exit(f"db: {name} does not exist")
elif os.path.exists(os.path.join(name, "lock")):
    print(f"db: {name} is being accessed by other users", file=sys.stderr)
    sys.exit(5)
""",
            "test_grain.py": r"""import os


def bushels(kg):
    return round(kg / 27.2155, 1)


def test_database():
    assert os.path.isdir("granary")


def test_wheat():
    assert bushels(272.155) == 10


def test_oats():
    assert bushels(14.515) == 1
""",
        },
        r"\bpytest\b",
        needs="pytest",
    ),
    # ------------------------------------------------------------- unittest
    "compass-unittest": Plant(
        "unittest",
        "sh -e ci/unit.sh",
        {
            "ci/unit.sh": "rm .coverage 2> /dev/null || :\n/usr/bin/python3 -m unittest discover -s tests -b\n/usr/bin/python3 tools/bearing.py 90 45\n",
            "tools/bearing.py": "import sys\n\na, b = map(float, sys.argv[1:3])\nstep = float(sys.argv[3]) if len(sys.argv) > 3 else 1\nprint(round((b - a) % 360 / step) * step)\n",
            "tests/test_bearing.py": r"""import subprocess
import unittest


def bearing(*args):
    return subprocess.run(["/usr/bin/python3", "tools/bearing.py", *args], capture_output=True, text=True)


class Bearing(unittest.TestCase):
    def test_east(self):
        self.assertEqual(bearing("0", "90").stdout, "90\n")

    def test_nonsense(self):
        self.assertEqual(bearing("north", "east").returncode, 1)

    @unittest.expectedFailure
    def test_no_arguments(self):
        self.assertEqual(bearing().returncode, 2)

    def test_west(self):
        self.assertEqual(bearing("0", "-90").stdout, "270\n")

    def test_no_step(self):
        done = bearing("0", "90", "0")
        self.assertEqual(done.returncode, 0, done.stderr)
""",
        },
        r"bearing\.py 0 90 0|bearing\.py.*\b0$|\bunittest\b",
    ),
    # ---------------------------------------------------------------- shell
    "sail-version-header": Plant(
        "shell",
        "make all",
        {
            "Makefile": "all: version.h\n\t@echo done\nversion.h: VERSION\n\tsh scripts/version.sh > $@.tmp\n\tmv $@.tmp $@\n.PHONY: all\n",
            "scripts/version.sh": r"""set -e
version=$(cat VERSION)
tag=$(git --git-dir=.git describe --tags 2> /dev/null || echo "v$version")
commit=$(head -c 7 < build-info/commit.txt)
stamp=$(date -u +%Y-%m-%d)
printf '#define VERSION "%s"\n#define TAG "%s"\n#define COMMIT "%s"\n#define STAMP "%s"\n' "$version" "$tag" "$commit" "$stamp"
""",
            "VERSION": "2.4\n",
        },
        r"commit\.txt",
        r"\bmake\b",
        needs="git",
    ),
    "porter-require-variables": Plant(
        "shell",
        "bash deploy/deploy.sh staging",
        {
            "deploy/deploy.sh": r"""#!/bin/bash
set -euo pipefail
cd "$(dirname "$0")"
. lib/env.sh
. lib/net.sh
load "env/$1.env"
reachable 127.0.0.1:9 || echo "the proxy is down, going without it"
if ! grep -q '^KEEP=' "env/$1.env"; then KEEP=3; fi
require DEPLOY_HOST
require DEPLOY_TOKEN
require KEEP
echo "deploying to $DEPLOY_HOST"
""",
            "deploy/lib/env.sh": r"""load() { set -a; . "$1"; set +a; }
require() {
    if [[ -z ${!1:-} ]]; then
        echo "deploy: $1 is not set" >&2
        exit 64
    fi
}
""",
            "deploy/lib/net.sh": 'reachable() { curl -s -o /dev/null --max-time 1 "http://$1/"; }\n',
            "deploy/env/staging.env": "DEPLOY_HOST=staging.example.org\nDEPLOY_TOKENS=abc\n",
        },
        r"DEPLOY_TOKEN|exit 64|\$\{!1",
        needs="curl",
    ),
    "choir-background-jobs": Plant(
        "background jobs",
        "bash build.sh",
        {
            "build.sh": r"""#!/bin/bash
# the parts are prepared side by side
set -u
mkdir -p out
: > progress.log
tail -f progress.log &
tailer=$!
trap 'kill $tailer' EXIT
pids=() names=() failed=()
for job in score voices leaflet; do
    ./jobs/$job.sh >> progress.log 2>&1 &
    pids+=($!)
    names+=($job)
done
for i in "${!pids[@]}"; do
    wait "${pids[$i]}" || failed+=("${names[$i]}")
done
[ ${#failed[@]} -eq 0 ] || { sleep 0.2; echo "failed: ${failed[*]}"; exit 1; }
cat out/* > programme.txt
""",
            "jobs/score.sh": "#!/bin/sh\nset -e\nls out/score.pdf 2> /dev/null || echo 'no score yet'\nsleep 0.5\necho score > out/score\n",
            "jobs/voices.sh": "#!/bin/sh\r\nset -e\r\necho voices > out/voices\r\n",
            "jobs/leaflet.sh": "#!/bin/sh\nset -e\nif diff -q leaflet.txt out/leaflet 2> /dev/null; then exit 0; fi\necho leaflet > out/leaflet\n",
        },
        r"voices|\./jobs/\$job\.sh",
        "",
        "chmod +x jobs/score.sh jobs/voices.sh jobs/leaflet.sh",
    ),
    "heron-retries": Plant(
        "retries",
        "bash ci/publish.sh",
        {
            "ci/publish.sh": r"""#!/bin/bash
set -euo pipefail
source ci/retry.sh
retry 3 sh steps/warm.sh
retry 3 sh steps/push.sh
echo "published"
""",
            "ci/retry.sh": r"""retry() {
    local most=$1 n=1
    shift
    until "$@"; do
        if [ "$n" -ge "$most" ]; then
            echo "giving up on '$*' after $n attempts" >&2
            return 1
        fi
        n=$((n + 1))
        sleep 0.1
    done
}
""",
            "steps/warm.sh": "# the first request only wakes the cache\nset -e\nif [ ! -e warm ]; then touch warm; exit 7; fi\n",
            "steps/push.sh": "set -e\nmkdir push.lock\n/usr/bin/python3 tools/push.py index.json store\nrmdir push.lock\n",
            "tools/push.py": r"""import hashlib, json, os, sys

index, store = sys.argv[1:]
os.makedirs(store, exist_ok=True)
for entry in json.load(open(index)):
    data = open(entry["file"], "rb").read()
    if len(data) != entry["size"]:
        sys.exit(f"push: {entry['file']}: {len(data)} bytes, the index says {entry['size']}")
    open(os.path.join(store, hashlib.sha256(data).hexdigest()), "wb").write(data)
""",
            "index.json": '[{"file": "wing.txt", "size": 5}, {"file": "beak.txt", "size": 6}]\n',
            "wing.txt": "wing\n",
            "beak.txt": "beak\n",
        },
        r"push\.py",
        r"push\.sh|mkdir",
    ),
    "osprey-timeout-fifo": Plant(
        "timeout",
        "sh ci/integration.sh",
        {
            "ci/integration.sh": "set -e\nrm events.fifo 2> /dev/null || true\nmkfifo events.fifo\ntimeout 2 bash tests/events.sh\necho 'integration ok'\n",
            "tests/events.sh": r"""set -euo pipefail
/usr/bin/python3 tools/emit.py events.list events.fifo &
cat events.fifo > got.txt
wait
cmp got.txt expected.txt
""",
            "tools/emit.py": "import sys\n\nevents = [line for line in open(sys.argv[1]) if not line.startswith('#')]\nif events:\n    with open(sys.argv[2], 'w') as out:\n        out.writelines(events)\n",
            "events.list": "# landed\n# left\n",
            "expected.txt": "landed\nleft\n",
        },
        r"\bcat\b",
        r"\btimeout 2\b|events\.sh",
    ),
    "kelp-env-wrappers": Plant(
        "wrappers",
        "env -i PATH=/usr/bin:/bin LC_ALL=C sh ci/report.sh",
        {
            "ci/report.sh": r"""set -e
timeout 0.3 tail -f /dev/null || echo "nothing came within 0.3 s"
nice -n 3 env -u LC_ALL TZ=UTC stdbuf -oL setsid -w timeout 5 /usr/bin/python3 tools/report.py data.csv
echo reported
""",
            "tools/report.py": "import csv, os, sys\n\nrows = list(csv.reader(open(sys.argv[1])))\ntarget = os.path.join(os.environ['HOME'], '.cache', 'kelp.txt')\nprint(len(rows), 'rows for', target)\n",
            "data.csv": "a,1\nb,2\n",
        },
        r"report\.py",
        r"^(nice|env|setsid|timeout 5|stdbuf)\b",
        needs="setsid",
    ),
    # ---------------------------------------------------------------- pipes
    "pelican-sigpipe": Plant(
        "pipes",
        "bash tools/oldest.sh",
        {
            "tools/oldest.sh": r"""#!/bin/bash
set -euo pipefail
mkdir -p work
ls work/*.bak 2> /dev/null || echo "no backups"
seq 300000 -1 1 > work/ids.txt
count=$(wc -l < work/ids.txt)
oldest=$(sort -n work/ids.txt | head -n 1)
echo "the oldest of $count is $oldest"
""",
        },
        r"\bsort\b",
        r"\bhead\b",
    ),
    "tide-pipeline-jq": Plant(
        "pipes",
        "bash -eo pipefail ci/feeds.sh",
        {
            "ci/feeds.sh": r"""mkdir -p out
if seq 200000 | grep -q 777; then echo "the numbers are there"; fi
for feed in north south; do
    cat feeds/$feed.ndjson | jq -c 'select(.level > 1)' | /usr/bin/python3 tools/aggregate.py 2 > out/$feed.json
done
cp out/*.json .
""",
            "feeds/north.ndjson": '{"station": "a", "level": 3}\n{"station": "b", "level": 2}\n{"station": "c", "level": 0}\n',
            "feeds/south.ndjson": '{"station": "d", "level": 4}\n{"station": "e", "level": 2,}\n{"station": "f", "level": 5}\n',
            "tools/aggregate.py": "import json, sys\n\nrows = [json.loads(line) for line in sys.stdin]\nif len(rows) < int(sys.argv[1]):\n    sys.exit(f'aggregate: only {len(rows)} stations')\njson.dump({r['station']: r['level'] for r in rows}, sys.stdout)\n",
        },
        r"\bjq\b",
        r"aggregate\.py",
        needs="jq",
    ),
    # --------------------------------------------------------- find & xargs
    "mosaic-find-exec": Plant(
        "find",
        "sh ci/tiles.sh",
        {
            "ci/tiles.sh": r"""set -e
find tiles -mindepth 1 -type d -exec rmdir {} \; 2> /dev/null
find tiles -name '*.svg' -exec sh tools/check_tile.sh {} +
echo "the tiles are fine"
""",
            "tools/check_tile.sh": r"""bad=0
for f; do
    grep -q '<title>' "$f" || echo "$f: no title (a hint)"
    if ! grep -q 'viewBox=' "$f"; then
        echo "$f: no viewBox"
        bad=1
    fi
done
exit $bad
""",
            "tiles/edge.svg": '<svg viewBox="0 0 4 4"><title>edge</title></svg>\n',
            "tiles/inner/corner.svg": '<svg width="4"><title>corner</title></svg>\n',
            "tiles/inner/middle.svg": '<svg viewBox="0 0 4 4"></svg>\n',
        },
        r"^(?!find\b).*check_tile|grep.*viewBox|exit \$bad",
        r"\bfind\b.*svg",
    ),
    "album-xargs-zip": Plant(
        "packaging",
        "sh release.sh",
        {
            "release.sh": r"""set -e
zip -qT album.zip > /dev/null 2>&1 || echo "no earlier album"
mkdir -p thumbs
find photos -name '*.ppm' | sort | xargs -n 1 -P 2 /usr/bin/python3 tools/thumb.py thumbs
zip -qr album.zip thumbs
unzip -tq album.zip
""",
            "tools/thumb.py": r"""import os, sys

folder, source = sys.argv[1:]
magic, width, height, most, *values = open(source).read().split()
need = int(width) * int(height) * 3
if len(values) != need:
    sys.exit(f"thumb: {source}: {len(values)} of {need} values")
with open(os.path.join(folder, os.path.basename(source)), "w") as out:
    out.write(f"P3 1 1 {most} {' '.join(values[:3])}\n")
""",
            "photos/attic.ppm": "P3 1 1 255\n1 2 3\n",
            "photos/beach.ppm": "P3 2 1 255\n9 9 9 8 8\n",
            "photos/cellar.ppm": "P3 1 2 255\n1 2 3 4 5 6\n",
            "photos/dune.ppm": "P3 1 1 255\n7 7 7\n",
        },
        r"thumb\.py.*beach",
        r"\bxargs\b",
        needs="zip",
    ),
    # ------------------------------------------------------------ packaging
    "almanac-tar-manifest": Plant(
        "packaging",
        "sh -e packaging/dist.sh 2027",
        {
            "packaging/dist.sh": r"""year=$1
mkdir -p dist
test -f dist/old.tgz || echo "the first one"
tar -cf - -T packaging/MANIFEST | gzip -n > dist/almanac-$year.tgz
tar -tzf dist/almanac-$year.tgz > dist/contents
for f in $(cat packaging/MANIFEST); do
    grep -qxF "$f" dist/contents
done
echo "dist/almanac-$year.tgz is complete"
""",
            "packaging/MANIFEST": "README\nLICENCE\nmoon/phases.txt\n",
            "README": "The almanac.\n",
            "LICENSE": "Free.\n",
            "moon/phases.txt": "new\nfull\n",
        },
        r"\btar -c|\btar\b.*MANIFEST",
        r"\bgrep\b",
    ),
    # --------------------------------------------------------------- linker
    "viola-configure-link": Plant(
        "linker",
        "bash -c 'set -e; sh ./configure > configure.log; make -s; echo built'",
        {
            "configure": r"""# a small configure
: ${CC:=cc}
: > config.h
has() {
    printf 'checking for %s... ' "$1"
    printf 'char %s();\nint main(void) { return %s(); }\n' "$1" "$1" > conftest.c
    if $CC -w -o conftest conftest.c $2 2> conftest.err; then
        echo yes
        echo "#define HAVE_$1 1" >> config.h
    else
        echo no
    fi
    rm -f conftest conftest.c conftest.err
}
has getpid
has strlcpy_of_bsd
has rosin_init -lrosin-of-the-farm
sed "s/@CC@/$CC/" Makefile.in > Makefile
""",
            "Makefile.in": "CC = @CC@\nOBJS = bow.o strings.o main.o\nviola: $(OBJS)\n\t$(CC) -o $@ $(OBJS)\n%.o: src/%.c config.h\n\t$(CC) -O0 -I. -c -o $@ $<\n",
            "src/bow.h": "int bow_speed = 3;\nint bow(void);\n",
            "src/bow.c": '#include "config.h"\n#include "bow.h"\nint bow(void) { return bow_speed; }\n',
            "src/strings.c": '#include "bow.h"\nint strings(void) { return 4 * bow_speed; }\n',
            "src/main.c": "int bow(void);\nint strings(void);\nint main(void) { return bow() + strings() - 15; }\n",
        },
        r"^(\S*-)?ld\b(?!.*conftest)|\bcollect2\b(?!.*conftest)|\bg?cc\b.*-o viola",
        r"\bmake\b",
        needs="gcc",
    ),
    # --------------------------------------------------------------- server
    "gauge-server-crash": Plant(
        "server",
        "bash ci/smoke.sh",
        {
            "ci/smoke.sh": r"""#!/bin/bash
set -euo pipefail
url=http://127.0.0.1:18617
/usr/bin/python3 app/gauge.py 18617 2> gauge.log &
pid=$!
stop() { kill $pid 2> /dev/null || true; }
trap stop EXIT
until curl -s -o /dev/null $url/; do sleep 0.1; done
for page in health levels metrics levels; do
    curl -sf -o $page.out "$url/$page"
    echo "ok $page"
done
""",
            "app/gauge.py": r"""import faulthandler, http.server, os, sys


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/metrics" and len(os.environ.get("GAUGE_LABELS", "")) < 1:
            print("gauge: labels != NULL: an assertion failed", file=sys.stderr, flush=True)
            os.abort()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"ok\n")

    def log_message(self, *args):
        pass


http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
""",
        },
        r"gauge\.py",
        r"\bcurl\b.*metrics",
        needs="curl",
    ),
    # ----------------------------------------------------------------- lint
    "mint-shellcheck": Plant(
        "lint",
        "bash ci/lint.sh",
        {
            "ci/lint.sh": r"""#!/bin/bash
rc=0
for f in legacy/*.sh; do shellcheck -S warning "$f" > "$f.report" || true; done
for f in scripts/*.sh; do
    if shellcheck -S warning -f gcc "$f"; then echo "ok $f"; else rc=1; fi
done
exit $rc
""",
            "legacy/coin.sh": "#!/bin/sh\ncd $1\nfor f in `ls`; do rm $f; done\n",
            "scripts/build.sh": "#!/bin/sh\nset -eu\necho building\n",
            "scripts/deploy.sh": '#!/bin/sh\nset -eu\ncd "$1"\nif [ "$2" == live ]; then\n    echo live\nfi\n',
            "scripts/notify.sh": "#!/bin/sh\nset -eu\nprintf '%s\\n' \"$1\"\n",
        },
        r"shellcheck.*\bdeploy\.sh",
        needs="shellcheck",
    ),
    # ------------------------------------------------------------- database
    "depot-migrations": Plant(
        "database",
        "bash db/upgrade.sh depot.db",
        {
            "db/upgrade.sh": r"""#!/bin/bash
set -uo pipefail
db=$1
migrate() { /usr/bin/python3 db/migrate.py "$db" "$@"; }
migrate status 2> /dev/null || migrate init || exit 2
cp "$db" "$db.backup"
if ! migrate up; then
    echo "the upgrade failed, going back"
    migrate down || mv "$db.backup" "$db"
    exit 1
fi
migrate status
""",
            "db/migrate.py": r"""import glob, os, sqlite3, sys

path, verb = sys.argv[1:]
db = sqlite3.connect(path)
if verb == "init":
    db.execute("create table applied (id text primary key)")
elif verb == "status":
    for (name,) in db.execute("select id from applied"):
        print("applied", name)
elif verb == "up":
    done = {row[0] for row in db.execute("select id from applied")}
    for file in sorted(glob.glob("db/up/*.sql")):
        name = os.path.basename(file)
        if name not in done:
            print("up", name, flush=True)
            db.executescript(open(file).read())
            db.execute("insert into applied values (?)", (name,))
            db.commit()
elif verb == "down":
    for (name,) in list(db.execute("select id from applied order by id desc")):
        print("down", name, flush=True)
        db.executescript(open("db/down/" + name).read())
        db.execute("delete from applied where id = ?", (name,))
db.commit()
""",
            "db/up/01_shelves.sql": "create table shelves (id integer primary key, row int);\n",
            "db/up/02_boxes.sql": "create table boxes (id integer primary key, shelf int);\ninsert into boxes values (1, null);\n",
            "db/up/03_strict.sql": "create table boxes2 (id integer primary key, shelf int not null);\ninsert into boxes2 select * from boxes;\n",
            "db/down/01_shelves.sql": "drop table shelves;\n",
        },
        r"migrate\.py\b.*\bup\b|migrate up",
    ),
    # ------------------------------------------------------------- CI steps
    "relay-runner-steps": Plant(
        "ci",
        "/usr/bin/python3 ci/run_job.py ci/job.json",
        {
            "ci/run_job.py": r"""import json, subprocess, sys

failed = None
for step in json.load(open(sys.argv[1]))["steps"]:
    if failed and not step.get("always"):
        print("-- skipped:", step["name"], flush=True)
        continue
    print("--", step["name"], flush=True)
    rc = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", step["run"]]).returncode
    if rc and not step.get("continue-on-error"):
        failed = failed or step["name"]
if failed:
    sys.exit(f"the job failed in step: {failed}")
""",
            "ci/job.json": r"""{"steps": [
  {"name": "lint", "run": "grep -rn 'TODO' src > todo.txt\ntest ! -s todo.txt\necho clean", "continue-on-error": true},
  {"name": "build", "run": "mkdir -p build/lib\ncc -shared -fPIC -o build/lib/libwave.so src/wave.c\ncc -o build/wave-test src/test.c -Lbuild/lib -lwave"},
  {"name": "test", "run": "cd build\n./wave-test > wave.out\ntail -n 3 wave.out"},
  {"name": "package", "run": "tar -cf wave.tar build"},
  {"name": "upload report", "always": true, "run": "test -d reports\ncp reports/*.xml ."},
  {"name": "clean", "always": true, "continue-on-error": true, "run": "rm build/wave.lock\nrm -r build"}
]}
""",
            "src/wave.c": "/* TODO: the phase */\nint wave(int t) { return t % 2 ? -1 : 1; }\n",
            "src/test.c": "int wave(int);\nint main(void) { return wave(2) != 1; }\n",
        },
        r"wave-test\b(?!.*-lwave)",
        needs="gcc",
    ),
}
