"""The sixteenth part of the plants of failing.py: everyday CI jobs, written before anything of it was recorded, by somebody who had
not read the rules. Each was run without the tool; answers.md has its true cause.

Debian packages that a bare machine may lack: gcc make cmake ninja-build meson golang-go python3-pytest perl sqlite3 jq curl git
nodejs npm php-cli bats gettext openjdk-17-jdk-headless openssh-client; cargo with clippy and rustfmt from rustup."""

from plant import Plant

SIXTEENTH = {
    # ----------------------------------------------------------------- make
    "kettle-make-keep-going": Plant(
        "make",
        "make -j2 -k all",
        {
            "Makefile": r"""CFLAGS := -O0 -Wall -Iinclude
OBJS := boil.o heater.o lid.o sensor.o
HAVE_NUMA := $(shell echo 'int main(void){return 0;}' | $(CC) -x c - -lnuma-of-the-farm -o /dev/null 2>/dev/null && echo 1)
all: kettle README.txt
kettle: $(OBJS)
	$(CC) -o $@ $(OBJS)
%.o: src/%.c include/kettle.h
	$(CC) $(CFLAGS) -c -o $@ $<
README.txt: README.md
	-@grep -q '^## Licence' $<
	sed 's/^#* *//' $< > $@
.PHONY: all
""",
            "include/kettle.h": "struct kettle { int litres; int watts; };\nint boil(struct kettle *);\nint heat(struct kettle *);\nint closed(void);\n",
            "src/boil.c": '#include "kettle.h"\nint boil(struct kettle *k) { return closed() && heat(k); }\nint main(void) { struct kettle k = {1, 2000}; return !boil(&k); }\n',
            "src/heater.c": '#include "kettle.h"\nint heat(struct kettle *k) { return k->power / k->litres; }\n',
            "src/lid.c": "int closed(void) { int unused; return 1; }\n",
            "src/sensor.c": "int degrees(void) { return 20; }\n",
            "README.md": "# Kettle\nIt boils.\n",
        },
        r"\bcc1\b|\bg?cc\b.*heater",
        r"\bmake\b",
        needs="gcc",
    ),
    "parser-make-thrift": Plant(
        "missing program",
        "sh ci.sh",
        {
            "ci.sh": "set -e\nmake clean || true\nmake gen\nmake lib\n",
            "Makefile": r"""IDL := $(wildcard idl/*.thrift)
gen: gen/.stamp
gen/.stamp: $(IDL)
	mkdir -p gen
	-test -e gen/old && rm -r gen/old
	for f in $(IDL); do echo "idl $$f"; thrift-0.19 --gen c_glib -out gen $$f || exit 1; done
	touch $@
lib:
	$(CC) -c gen/*.c
clean:
	rmdir gen
.PHONY: gen lib clean
""",
            "idl/user.thrift": "struct User { 1: i32 id }\n",
            "idl/post.thrift": "struct Post { 1: i32 id }\n",
        },
        r"thrift-0\.19",
        r"\bmake\b|rmdir",
    ),
    # ---------------------------------------------------------------- cmake
    "lamp-cmake-link": Plant(
        "cmake",
        "bash -c 'set -e; cmake -S . -B build -G Ninja >configure.log; cmake --build build -j 2; (cd build && ctest)'",
        {
            "CMakeLists.txt": r"""cmake_minimum_required(VERSION 3.16)
project(lamp C)
include(CheckFunctionExists)
check_function_exists(strlcpy_of_bsd HAVE_STRLCPY)
add_library(bulb STATIC bulb.c)
add_library(socket STATIC socket.c)
add_executable(lampd main.c)
target_link_libraries(lampd socket)
add_executable(lampctl ctl.c)
target_link_libraries(lampctl bulb socket)
enable_testing()
add_test(NAME ctl COMMAND lampctl)
""",
            "bulb.c": "int bulb_on(int w) { return w > 0; }\n",
            "socket.c": "int socket_volts(void) { return 230; }\n",
            "main.c": "int bulb_on(int);\nint socket_volts(void);\nint main(void) { return !bulb_on(socket_volts()); }\n",
            "ctl.c": "int bulb_on(int);\nint main(void) { return !bulb_on(5); }\n",
        },
        r"^(\S*-)?ld\b(?!.*cmTC)|\bcollect2\b(?!.*cmTC)|\b(g?cc)\b.*-o lampd",
        r"\b(cmake|ninja)\b",
        needs="ninja",
    ),
    "glacier-cmake-package": Plant(
        "cmake",
        "bash scripts/ci.sh",
        {
            "scripts/ci.sh": r"""#!/bin/bash
set -eo pipefail
. scripts/common.sh
section configure
cmake -S . -B out -DCMAKE_BUILD_TYPE=Release 2>&1 | tee configure.log
section build
cmake --build out -j2
section test
(cd out && ctest)
""",
            "scripts/common.sh": 'section() { echo "=== $1"; df --output=avail /nonexistent-cache 2>/dev/null || true; }\n',
            "CMakeLists.txt": r"""cmake_minimum_required(VERSION 3.16)
project(glacier C)
find_package(GlacierDocs QUIET)
find_program(DOXY doxygen-of-the-farm)
execute_process(COMMAND git --git-dir=${CMAKE_SOURCE_DIR}/.git rev-parse HEAD RESULT_VARIABLE rc OUTPUT_QUIET ERROR_QUIET)
find_package(IceCore 2.1 REQUIRED CONFIG)
add_executable(glacier main.c)
target_link_libraries(glacier IceCore::core)
""",
            "main.c": "int main(void) { return 0; }\n",
        },
        r"\bcmake\b",
        r"\bgit\b|\btee\b",
        needs="cmake",
    ),
    # ---------------------------------------------------------------- meson
    "dialect-meson-generator": Plant(
        "meson",
        "sh build.sh",
        {
            "build.sh": "set -e\nmeson setup build --buildtype=debug > setup.log || { cat setup.log; exit 1; }\nmeson compile -C build || { echo 'build failed, see above' >&2; exit 1; }\nmeson test -C build\n",
            "meson.build": r"""project('dialect', 'c')
py = find_program('/usr/bin/python3')
dep = dependency('hyphen-of-the-farm', required: false)
tables = []
foreach lang : ['de', 'fr', 'sv']
  tables += custom_target(lang, input: 'words' / lang + '.json', output: lang + '.c',
    command: [py, files('tools/mktable.py'), '@INPUT@', '@OUTPUT@'])
endforeach
executable('dialect', 'main.c', tables)
""",
            "tools/mktable.py": r"""import json, os, subprocess, sys

source, target = sys.argv[1:]
lang = os.path.basename(source)[:2]
if subprocess.call(["test", "-e", source + ".override"]) == 0:
    source += ".override"
words = json.load(open(source))
with open(target, "w") as out:
    out.write("const char *%s[] = {%s, 0};\n" % (lang, ", ".join('"%s"' % w["text"] for w in words)))
""",
            "words/de.json": '[{"text": "moin"}]\n',
            "words/fr.json": '[{"text": "salut"}, {"txt": "bonjour"}]\n',
            "words/sv.json": '[{"text": "hej"}]\n',
            "main.c": "extern const char *de[];\nint main(void) { return !de[0]; }\n",
        },
        r"mktable\.py.*fr\.",
        r"\b(meson|ninja)\b",
        needs="meson",
    ),
    # ---------------------------------------------------------------- cargo
    "bakery-cargo-workspace": Plant(
        "cargo",
        "sh ci/build.sh",
        {
            "ci/build.sh": r"""set -eu
export CARGO_TARGET_DIR=$PWD/target CARGO_NET_OFFLINE=true CARGO_TERM_COLOR=never
cargo deny-of-the-team check 2> /dev/null || echo "cargo-deny is not installed"
cargo build --workspace
cargo test --workspace
""",
            "Cargo.toml": '[workspace]\nmembers = ["dough", "oven", "shop"]\nresolver = "2"\n\n[profile.dev]\ndebug = 0\n',
            "dough/Cargo.toml": '[package]\nname = "dough"\nversion = "0.1.0"\nedition = "2021"\n',
            "dough/src/lib.rs": "pub struct Dough {\n    pub grams: u32,\n}\n",
            "oven/Cargo.toml": '[package]\nname = "oven"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\ndough = { path = "../dough" }\n',
            "oven/src/lib.rs": "use dough::Dough;\n\npub fn bake(d: &Dough) -> u32 {\n    let minutes: u64 = d.grams / 20;\n    minutes\n}\n",
            "shop/Cargo.toml": '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\noven = { path = "../oven" }\ndough = { path = "../dough" }\n',
            "shop/src/main.rs": 'fn main() {\n    println!("{}", oven::bake(&dough::Dough { grams: 500 }));\n}\n',
        },
        r"\brustc\b.*oven",
        r"\bcargo\b",
        needs="cargo",
    ),
    "thermo-cargo-test": Plant(
        "cargo",
        "bash ci/test.sh",
        {
            "ci/test.sh": r"""#!/bin/bash
set -euo pipefail
export CARGO_TARGET_DIR=$PWD/target CARGO_NET_OFFLINE=true CARGO_TERM_COLOR=never
cleanup() { rm fixtures.lock 2> /dev/null || true; }
trap cleanup EXIT
cargo test --no-fail-fast 2>&1 | tee test.log
grep -c 'test result: ok' test.log
""",
            "Cargo.toml": '[package]\nname = "thermo"\nversion = "0.3.0"\nedition = "2021"\n\n[lib]\ndoctest = false\ntest = false\n\n[profile.dev]\ndebug = 0\n\n[workspace]\n',
            "src/lib.rs": "pub fn fahrenheit(c: i32) -> i32 {\n    c * 9 / 5 + 32\n}\n\npub fn kelvin(c: i32) -> i32 {\n    c + 237\n}\n",
            "tests/absolute.rs": "#[test]\nfn freezing() {\n    assert_eq!(thermo::kelvin(0), 273);\n}\n\n#[test]\nfn rises() {\n    assert!(thermo::kelvin(1) > thermo::kelvin(0));\n}\n",
            "tests/imperial.rs": '#[test]\nfn boiling() {\n    assert_eq!(thermo::fahrenheit(100), 212);\n}\n\n#[test]\nfn no_helper() {\n    assert!(!std::process::Command::new("sh").args(["-c", "exit 3"]).status().unwrap().success());\n}\n',
        },
        r"\babsolute\b",
        r"\bcargo\b|\btee\b",
        needs="cargo",
    ),
    "canal-cargo-clippy": Plant(
        "lint",
        "make -s check",
        {
            "Makefile": r"""export CARGO_TARGET_DIR := $(CURDIR)/target
export CARGO_NET_OFFLINE := true
check: fmt clippy test
fmt:
	-cargo fmt -- --check > fmt.diff
clippy:
	cargo clippy --all-targets -- -D warnings
test:
	cargo test
.PHONY: check fmt clippy test
""",
            "Cargo.toml": '[package]\nname = "canal"\nversion = "0.1.0"\nedition = "2021"\n\n[workspace]\n',
            "src/main.rs": 'fn locks(levels: &Vec<i32>) -> bool {\n    if levels.len() == 0 {\n        return false;\n    }\n    true\n}\n\nfn main() {\n  println!("{}", locks(&vec![1]));\n}\n',
        },
        r"clippy",
        r"\bmake\b|cargo fmt|rustfmt|cargo-fmt",
        needs="cargo-clippy",
    ),
    # ------------------------------------------------------------------- go
    "postman-go-timeout": Plant(
        "go",
        "make test",
        {
            "Makefile": "export GOFLAGS := -mod=mod\nexport GOPROXY := off\nexport CGO_ENABLED := 0\ntest:\n\t-@rm coverage.out\n\tgo test -vet=off -timeout 1s ./...\n.PHONY: test\n",
            "go.mod": "module example.org/postman\n\ngo 1.18\n",
            "queue/queue.go": "package queue\n\ntype Queue struct{ c chan int }\n\nfunc New() *Queue { return &Queue{make(chan int)} }\nfunc (q *Queue) Put(n int) { q.c <- n }\nfunc (q *Queue) Get() int { return <-q.c }\n",
            "queue/queue_test.go": 'package queue\n\nimport "testing"\n\nfunc TestPutGet(t *testing.T) {\n\tq := New()\n\tq.Put(3)\n\tif q.Get() != 3 {\n\t\tt.Fatal("lost")\n\t}\n}\n',
            "route/route.go": "package route\n\nfunc Hops(a, b int) int { return b - a }\n",
            "route/route_test.go": 'package route\n\nimport (\n\t"os/exec"\n\t"testing"\n)\n\nfunc TestHops(t *testing.T) {\n\tif exec.Command("false").Run() == nil || Hops(1, 3) != 2 {\n\t\tt.Fatal("hops")\n\t}\n}\n',
        },
        r"\btest queue\b|\bqueue\.test\b",
        r"\bgo test\b|\bmake\b",
        needs="go",
    ),
    # ------------------------------------------------------------------ npm
    "kiosk-npm-build": Plant(
        "npm",
        "npm run build",
        {
            "package.json": r"""{
  "name": "kiosk", "version": "1.0.0", "private": true,
  "scripts": {
    "prebuild": "npm run lint || echo 'lint warnings are tolerated'",
    "lint": "node tools/lint.js src",
    "build": "npm run css && npm run bundle && npm run size",
    "css": "node tools/css.js src/site.css dist",
    "bundle": "node tools/bundle.js src/main.js dist/main.js",
    "size": "node tools/size.js dist"
  }
}
""",
            ".npmrc": "update-notifier=false\nfund=false\n",
            "tools/lint.js": "const fs = require('fs');\nlet bad = 0;\nfor (const f of fs.readdirSync(process.argv[2])) {\n  if (/\\bvar\\b/.test(fs.readFileSync(`src/${f}`, 'utf8'))) { console.log(`${f}: var`); bad = 1; }\n}\nprocess.exit(bad);\n",
            "tools/css.js": "const fs = require('fs');\nconst [src, dist] = process.argv.slice(2);\nfs.mkdirSync(dist, { recursive: true });\nfs.writeFileSync(`${dist}/site.css`, fs.readFileSync(src, 'utf8').replace(/\\s+/g, ' '));\n",
            "tools/bundle.js": r"""const fs = require('fs');
const path = require('path');
const seen = new Set();
let out = '';
function add(file) {
  if (seen.has(file)) return;
  seen.add(file);
  const text = fs.readFileSync(file, 'utf8');
  for (const m of text.matchAll(/^import '(.*)';/gm)) add(path.join(path.dirname(file), m[1]));
  out += text.replace(/^import.*$/gm, '');
}
try {
  add(process.argv[2]);
} catch (e) {
  console.error(`bundle: could not resolve ${e.path}`);
  process.exit(1);
}
fs.writeFileSync(process.argv[3], out);
""",
            "tools/size.js": "console.log('ok');\n",
            "src/main.js": "import './menu.js';\nimport './pay.js';\nvar x = 1;\n",
            "src/menu.js": "import './price.js';\nconst menu = [];\n",
            "src/price.js": "const price = 3;\n",
            "src/site.css": "a {\n  color: red;\n}\n",
        },
        r"bundle\.js",
        r"^npm\b|lint\.js",
        needs="npm",
    ),
    "basket-node-test": Plant(
        "node",
        "npm test",
        {
            "package.json": '{"name": "basket", "version": "2.0.0", "private": true, "scripts": {"pretest": "node --check lib/basket.js", "test": "node --test test/"}}\n',
            ".npmrc": "update-notifier=false\n",
            "lib/basket.js": "exports.total = (items) => items.reduce((sum, i) => sum + i.price * (i.count || 1), 0);\nexports.discount = (total) => (total > 100 ? total * 0.9 : total);\n",
            "test/total.test.js": "const test = require('node:test');\nconst assert = require('node:assert');\nconst { total } = require('../lib/basket.js');\ntest('total', () => assert.strictEqual(total([{ price: 2, count: 3 }]), 6));\n",
            "test/discount.test.js": "const test = require('node:test');\nconst assert = require('node:assert');\nconst { discount } = require('../lib/basket.js');\ntest('none', () => assert.strictEqual(discount(50), 50));\ntest('from 100', () => assert.strictEqual(discount(100), 90));\n",
            "test/cli.test.js": "const test = require('node:test');\nconst assert = require('node:assert');\nconst { spawnSync } = require('child_process');\ntest('usage', () => assert.strictEqual(spawnSync('sh', ['-c', 'echo usage; exit 2']).status, 2));\n",
        },
        r"discount\.test\.js",
        r"^npm\b|--test",
        needs="npm",
    ),
    # --------------------------------------------------------------- pytest
    "calendar-pytest": Plant(
        "pytest",
        "bash -eo pipefail -c 'rm -r .cache || true; /usr/bin/python3 -m pytest -q -p no:cacheprovider tests 2>&1 | tee pytest.log'",
        {
            "cal.py": "def leap(y):\n    return y % 4 == 0 and y % 100 != 0\n\n\ndef days(m):\n    return [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][m - 1]\n",
            "conftest.py": "import subprocess\n\n\ndef pytest_report_header():\n    done = subprocess.run(['git', '--git-dir=.git', 'rev-parse', 'HEAD'], capture_output=True)\n    return 'rev: ' + (done.stdout.decode().strip() or 'unknown')\n",
            "tests/test_leap.py": "import pytest\nfrom cal import leap\n\n\n@pytest.mark.parametrize('year, want', [(2024, True), (1900, False), (2000, True)])\ndef test_leap(year, want):\n    assert leap(year) is want\n",
            "tests/test_days.py": "import pytest\nimport shutil\nfrom cal import days\n\n\ndef test_days():\n    assert days(2) == 28\n\n\n@pytest.mark.skipif(not shutil.which('ncal-of-the-team'), reason='no ncal')\ndef test_ncal():\n    pass\n\n\n@pytest.mark.xfail\ndef test_zero():\n    assert days(13) == 31\n",
        },
        r"\bpytest\b",
        r"\bgit\b|\btee\b",
        needs="pytest",
    ),
    "convert-pytest-cli": Plant(
        "pytest",
        "sh run-tests.sh",
        {
            "run-tests.sh": "set -e\n/usr/bin/python3 -m compileall -q tools\n/usr/bin/python3 -m pytest -q -x -p no:cacheprovider\necho ok\n",
            "tools/convert.py": r"""import csv, json, sys

source, fmt = sys.argv[1:]
rows = list(csv.DictReader(open(source, encoding="ascii")))
if fmt == "json":
    print(json.dumps(rows))
elif fmt == "count":
    print(len(rows))
else:
    sys.exit(f"convert: unknown format: {fmt}")
""",
            "test_convert.py": r"""import subprocess

TOOL = ["/usr/bin/python3", "tools/convert.py"]


def test_count():
    assert subprocess.check_output([*TOOL, "data/plain.csv", "count"]) == b"2\n"


def test_unknown_format():
    assert subprocess.run([*TOOL, "data/plain.csv", "yaml"]).returncode == 1


def test_missing():
    assert subprocess.run([*TOOL, "data/none.csv", "json"], stderr=subprocess.DEVNULL).returncode != 0


def test_umlauts():
    subprocess.check_output([*TOOL, "data/umlauts.csv", "json"])
""",
            "data/plain.csv": "name,age\nann,3\nbob,4\n",
            "data/umlauts.csv": "name,age\nJürgen,5\n",
        },
        r"convert\.py.*umlauts",
        r"\bpytest\b",
        needs="pytest",
    ),
    # ------------------------------------------------------- other runners
    "clock-prove": Plant(
        "prove",
        "prove -j2 -Ilib t",
        {
            "lib/Clock.pm": 'package Clock;\nuse strict;\nuse warnings;\nsub parse { my ($h, $m) = $_[0] =~ /^(\\d\\d):(\\d\\d)$/ or die "no time: $_[0]\\n"; return $h * 60 + $m }\nsub add { return ($_[0] + $_[1]) }\n1;\n',
            "t/10-parse.t": "use strict;\nuse Test::More tests => 2;\nuse Clock;\nis(Clock::parse('01:10'), 70);\nok(!eval { Clock::parse('noon'); 1 }, 'refused');\n",
            "t/20-add.t": "use strict;\nuse Test::More tests => 2;\nuse Clock;\nis(Clock::add(60, 5), 65);\nis(Clock::add(1430, 20), 10, 'past midnight');\n",
            "t/30-exit.t": "use strict;\nuse Test::More tests => 1;\nsystem($^X, '-e', 'exit 4');\nis($? >> 8, 4, 'the status comes through');\n",
            "t/40-todo.t": "use strict;\nuse Test::More tests => 1;\nTODO: { local $TODO = 'seconds'; ok(0, 'seconds'); }\n",
        },
        r"20-add\.t",
        r"\bprove\b",
        needs="prove",
    ),
    "notes-bats": Plant(
        "bats",
        "bash -c 'set -e; chmod +x bin/notes; bats test'",
        {
            "bin/notes": '#!/bin/bash\nset -eu\nfile=${NOTES:-notes.txt}\ncase ${1:-} in\n    add) shift; echo "$*" >> "$file" ;;\n    count) wc -l < "$file" ;;\n    find) grep -- "$2" "$file" ;;\n    *) echo \'usage: notes add|count|find\' >&2; exit 2 ;;\nesac\n',
            "test/add.bats": 'setup() { export NOTES=$BATS_TEST_TMPDIR/notes; }\n@test "add and count" {\n  bin/notes add milk\n  bin/notes add bread\n  [ "$(bin/notes count)" -eq 2 ]\n}\n@test "usage" {\n  run bin/notes\n  [ "$status" -eq 2 ]\n}\n',
            "test/find.bats": 'setup() { export NOTES=$BATS_TEST_TMPDIR/notes; bin/notes add Milk; }\n@test "nothing found" {\n  run bin/notes find tea\n  [ "$status" -eq 1 ]\n}\n@test "the case does not matter" {\n  run bin/notes find milk\n  [ "$output" = Milk ]\n}\n',
        },
        r"find\.bats|^bats\b(?!.*add\.bats)|\bnotes find milk|\bgrep\b.*\bmilk",
        r"add\.bats",
        needs="bats",
    ),
    "station-javac": Plant(
        "java",
        "bash build.sh",
        {
            "build.sh": "#!/bin/bash\nset -euo pipefail\nrm -r classes 2> /dev/null || true\nmkdir classes\nmapfile -t sources < <(find src -name '*.java' | sort)\njavac -d classes \"${sources[@]}\"\njava -cp classes org.example.Main\njar cf station.jar -C classes .\n",
            "src/org/example/Main.java": 'package org.example;\n\npublic class Main {\n    public static void main(String[] args) {\n        System.out.println(new Train("S1").name());\n    }\n}\n',
            "src/org/example/Train.java": "package org.example;\n\npublic class Train {\n    private final String name;\n\n    Train(String name) {\n        this.name = name;\n    }\n\n    int name() {\n        return name;\n    }\n}\n",
        },
        r"\bjavac\b",
        r"build\.sh|\brm\b",
        needs="javac",
    ),
    # ----------------------------------------------------------------- lint
    "guestbook-php-lint": Plant(
        "lint",
        "bash -eo pipefail -c '. ci/lint.sh; lint_json; lint_php; echo clean'",
        {
            "ci/lint.sh": r"""lint_json() {
    local f
    for f in config/*.json; do
        jq -e .version "$f" > /dev/null || echo "$f: has no version (a warning)"
    done
}
lint_php() {
    find www -name '*.php' -print0 | sort -z | xargs -0 -n1 -P2 php -l
}
""",
            "config/app.json": '{"name": "guestbook"}\n',
            "www/index.php": "<?php\necho 'hello';\n",
            "www/entry.php": "<?php\nfunction entry($text) {\n    return trim($text;\n}\n",
            "www/list.php": "<?php\nforeach ([] as $e) { echo $e; }\n",
        },
        r"\bphp\b.*entry\.php",
        r"xargs|\bjq\b",
        needs="php",
    ),
    # ------------------------------------------------------------- time-out
    "lift-test-timeout": Plant(
        "timeout",
        "bash ci/tests.sh",
        {
            "ci/tests.sh": r"""#!/bin/bash
set -u
failed=()
for t in tests/*.py; do
    timeout 1.5 /usr/bin/python3 "$t" > "$t.log" 2>&1
    rc=$?
    case $rc in
        0) echo "ok   $t" ;;
        77) echo "skip $t" ;;
        124) echo "TIME $t"; failed+=("$t") ;;
        *) echo "FAIL $t ($rc)"; failed+=("$t") ;;
    esac
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "failed: ${failed[*]}"
    exit 1
fi
""",
            "tests/test_call.py": "assert sorted([3, 1]) == [1, 3]\n",
            "tests/test_cable.py": "import sys\nsys.exit(77)\n",
            "tests/test_door.py": "import queue\n\nclosed = queue.Queue()\n# nobody puts anything into it\nprint('waiting for the door', flush=True)\nclosed.get()\n",
            "tests/test_floor.py": "import subprocess\nassert subprocess.call(['false']) == 1\n",
        },
        r"test_door\.py",
        r"test_cable",
    ),
    # --------------------------------------------------------------- server
    "wiki-server-start": Plant(
        "server",
        "bash ci/e2e.sh",
        {
            "ci/e2e.sh": r"""#!/bin/bash
set -euo pipefail
. ci/wait.sh
/usr/bin/python3 app/server.py app/server.ini > server.log 2>&1 &
server=$!
trap 'kill $server 2> /dev/null || true' EXIT
wait_for http://127.0.0.1:18461/ 8 || { echo "the server did not come up:"; cat server.log; exit 1; }
curl -sf http://127.0.0.1:18461/page
""",
            "ci/wait.sh": r"""wait_for() {
    local i
    for i in $(seq "$2"); do
        curl -s -o /dev/null --max-time 1 "$1" && return 0
        sleep 0.2
    done
    return 1
}
""",
            "app/server.py": r"""import configparser, http.server, sys

config = configparser.ConfigParser()
config.read(sys.argv[1])
root = config["pages"]["root"]
port = config.getint("http", "port")
http.server.ThreadingHTTPServer(("127.0.0.1", port), http.server.SimpleHTTPRequestHandler).serve_forever()
""",
            "app/server.ini": "[http]\nport = 18461\n\n[page]\nroot = pages\n",
        },
        r"server\.py",
        r"\bcurl\b",
        needs="curl",
    ),
    "ticket-health": Plant(
        "server",
        "bash deploy/release.sh 7",
        {
            "deploy/release.sh": r"""#!/bin/bash
set -euo pipefail
release=$1
source deploy/health.sh
mkdir -p "releases/$release"
cp app/* "releases/$release"
rm current 2> /dev/null || true
ln -s "releases/$release" current
/usr/bin/python3 current/tickets.py 18473 "$release" > app.log 2>&1 &
pid=$!
cleanup() { kill "$pid" || true; wait "$pid" 2> /dev/null || true; }
trap cleanup EXIT
until curl -s -o /dev/null http://127.0.0.1:18473/; do sleep 0.1; done
healthy
echo "release $release is live"
""",
            "deploy/health.sh": "healthy() {\n    curl -sSf --retry 2 --retry-delay 1 -o /dev/null http://127.0.0.1:18473/health\n}\n",
            "app/tickets.py": r"""import http.server, os, sys


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        ok = self.path != "/health" or os.path.exists("/nonexistent/tickets.sock")
        self.send_response(200 if ok else 503)
        self.end_headers()

    def log_message(self, *args):
        pass


http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
""",
        },
        r"\bcurl\b.*(health|--retry)",
        r"tickets\.py",
        needs="curl",
    ),
    # ------------------------------------------------------------- database
    "museum-migration": Plant(
        "database",
        "sh db/migrate.sh museum.db",
        {
            "db/migrate.sh": r"""set -eu
db=$1
sqlite3 "$db" 'select max(id) from migrations' 2> /dev/null || sqlite3 "$db" 'create table migrations (id text primary key)'
for file in db/migrations/*.sql; do
    id=$(basename "$file" .sql)
    if [ -n "$(sqlite3 "$db" "select id from migrations where id = '$id'")" ]; then continue; fi
    echo "applying $id"
    sqlite3 -bail -init "$file" "$db" "insert into migrations values ('$id')"
done
grep -q view db/migrations/*.sql || echo "no views"
echo "migrated"
""",
            "db/migrations/001_items.sql": "create table items (id integer primary key, title text);\n",
            "db/migrations/002_rooms.sql": "create table rooms (id integer primary key, floor int);\ninsert into items values (1, 'vase'), (2, 'vase');\n",
            "db/migrations/003_unique.sql": "create unique index titles on items (title);\n",
            "db/migrations/004_loans.sql": "create table loans (item int);\n",
        },
        r"\bsqlite3\b.*003_unique",
        r"select max",
        needs="sqlite3",
    ),
    # --------------------------------------------------------------- limits
    "archive-open-files": Plant(
        "limits",
        "bash ci/merge.sh",
        {
            "ci/merge.sh": r"""#!/bin/bash
set -euo pipefail
. ci/limits.sh
mkdir -p parts
for i in $(seq 60); do echo "$i" > "parts/$i.txt"; done
ls merged.txt 2> /dev/null || echo "a first merge"
/usr/bin/python3 tools/merge.py parts merged.txt
wc -l merged.txt
""",
            "ci/limits.sh": "# as on the farm\nulimit -c 0\nulimit -n 40\nulimit -l 1 2> /dev/null || true\n",
            "tools/merge.py": "import heapq, os, sys\n\nfolder, target = sys.argv[1:]\nfiles = [open(os.path.join(folder, name)) for name in sorted(os.listdir(folder))]\nwith open(target, 'w') as out:\n    out.writelines(heapq.merge(*files))\n",
        },
        r"merge\.py",
        r"\bls\b",
    ),
    "mirror-disk-full": Plant(
        "limits",
        "sh -e ci/cache.sh",
        {
            "ci/cache.sh": r"""# the disk of the cache is full
mkdir -p cache stage
ln -sf /dev/full cache/packages.tar
rm stage/old.list || :
for p in alpha beta; do mkdir -p stage/$p && echo "$p" > stage/$p/control; done
find stage -name control | sort > stage/list
tar -cf cache/packages.tar stage
echo "cached $(wc -l < stage/list) packages"
""",
        },
        r"\btar\b",
        r"\brm\b",
    ),
    # ------------------------------------------------------------- checksum
    "vendor-checksum": Plant(
        "checksum",
        "make fetch",
        {
            "Makefile": r"""DEPS := zstd.txt brotli.txt
fetch: $(addprefix vendor/,$(DEPS))
	cd vendor && sha256sum --strict -c ../checksums.sha256
	$(MAKE) unpack
vendor/%: mirror/%
	@mkdir -p vendor
	@curl -sf --max-time 1 -o $@ http://127.0.0.1:9/$* || { echo "the primary mirror is down, using the second"; cp $< $@; }
unpack:
	@echo unpacked
.PHONY: fetch unpack
""",
            "checksums.sha256": "fcf9b8e65c9cdbd83579b18fb0025c2a796a05e6f0d0bf3c0e058ce77b0b2c76  zstd.txt\n5ee5f252d6b9feb084db9375699298b8a1a1dde5c7131749cdcca6df4b237b5d  brotli.txt\n",
            "mirror/zstd.txt": "zstd 1.5\n",
            "mirror/brotli.txt": "brotli 1.1\n",
        },
        r"\bsha256sum\b",
        r"\bmake\b|\bcurl\b",
        needs="curl",
    ),
    # ------------------------------------------------------------------ git
    "fork-git-apply": Plant(
        "git",
        "bash ci/patch.sh upstream",
        {
            "setup.sh": "set -e\ngit -c init.defaultBranch=main init -q upstream\ncd upstream\ngit config user.name Ann\ngit config user.email ann@example.org\ngit config commit.gpgSign false\nprintf 'one\\ntwo\\nthree\\n' > count.txt\nprintf 'red\\ngreen\\n' > colour.txt\ngit add .\ngit commit -q -m first\n",
            "ci/patch.sh": r"""#!/bin/bash
set -euo pipefail
cd "$1"
git fetch -q origin 2> /dev/null || echo "no remote, the local copy will do"
git rev-parse -q --verify refs/heads/patched > /dev/null && git branch -D patched
git checkout -q -b patched
for p in ../patches/*.patch; do
    if git apply --reverse --check "$p" 2> /dev/null; then
        echo "$p is applied already"
        continue
    fi
    git apply "$p"
done
git commit -q -a -m patched
""",
            "patches/01-count.patch": "--- a/count.txt\n+++ b/count.txt\n@@ -1,3 +1,4 @@\n one\n two\n three\n+four\n",
            "patches/02-colour.patch": "--- a/colour.txt\n+++ b/colour.txt\n@@ -1,2 +1,3 @@\n red\n blue\n+yellow\n",
        },
        r"\bgit apply\b(?!.*--check).*02-colour",
        r"fetch|rev-parse|--reverse",
        "sh setup.sh",
        needs="git",
    ),
    # ----------------------------------------------------------------- docs
    "manual-docs": Plant(
        "docs",
        "make -C docs html",
        {
            "docs/Makefile": "PAGES := $(patsubst %.pod,out/%.1,$(wildcard *.pod))\nhtml: $(PAGES)\n\t@echo built $(words $(PAGES))\nout/%.1: %.pod\n\t@mkdir -p out\n\t-@grep -q '=head1 AUTHOR' $<\n\tpodchecker -warnings $<\n\tpod2man $< $@\n.PHONY: html\n",
            "docs/alpha.pod": "=head1 NAME\n\nalpha - the first\n\n=head1 AUTHOR\n\nAnn\n\n=cut\n",
            "docs/beta.pod": "=head1 NAME\n\nbeta - the second\n\n=over 4\n\n=item one\n\n=head1 SEE ALSO\n\nL<alpha>\n\n=cut\n",
            "docs/gamma.pod": "=head1 NAME\n\ngamma - the third\n\n=cut\n",
        },
        r"podchecker",
        r"\bmake\b|\bgrep\b",
        needs="podchecker",
    ),
    # ------------------------------------------------------------ packaging
    "beacon-deb": Plant(
        "packaging",
        "bash packaging/build-deb.sh 1.2",
        {
            "packaging/build-deb.sh": r"""#!/bin/bash
set -euo pipefail
version=$1
root=$(mktemp -d)
trap 'rm -rf "$root"; rmdir pkg-lock 2> /dev/null || true' EXIT
mkdir -p "$root/DEBIAN"
sed "s/@VERSION@/$version/" packaging/control.in > "$root/DEBIAN/control"
while read -r mode from to; do
    install -D -m "$mode" "$from" "$root/$to"
done < packaging/files.list
strip "$root/usr/bin/beacon" 2> /dev/null || echo "nothing to strip"
dpkg-deb --build "$root" beacon.deb
""",
            "packaging/control.in": "Package: beacon\nVersion: @VERSION@\nArchitecture: all\nMaintainer: Ann <ann@example.org>\nDescription: light\n",
            "packaging/files.list": "0755 bin/beacon usr/bin/beacon\n0644 etc/beacon.conf etc/beacon.conf\n0644 etc/beacon.service lib/systemd/system/beacon.service\n",
            "bin/beacon": "#!/bin/sh\necho on\n",
            "etc/beacon.conf": "bright = 1\n",
        },
        r"\binstall\b.*beacon\.service",
        r"\bstrip\b|dpkg-deb",
    ),
    # --------------------------------------------------------------- shell
    "phrase-steps": Plant(
        "shell",
        "bash ci/main.sh",
        {
            "ci/main.sh": r"""#!/bin/bash
set -Eeuo pipefail
here=$(dirname "$0")
source "$here/lib/log.sh"
source "$here/lib/steps.sh"
trap 'log "failed at line $LINENO"' ERR
run prepare
run extract
run translations
run bundle
""",
            "ci/lib/log.sh": 'log() { printf \'[%s] %s\\n\' ci "$*"; }\nrun() { log "$1"; "step_$1"; }\n',
            "ci/lib/steps.sh": r"""step_prepare() {
    rm -r out 2> /dev/null || :
    mkdir -p out
}
step_extract() {
    grep -ho '_("[^"]*")' src/*.py | sort -u > out/strings.txt
    diff -q out/strings.txt strings.last > /dev/null 2>&1 || log "the strings changed"
}
step_translations() {
    local po
    for po in po/*.po; do
        msgfmt --check -o "out/$(basename "$po" .po).mo" "$po"
    done
}
step_bundle() { tar -cf out/bundle.tar out/*.mo; }
""",
            "src/app.py": 'print(_("%d files") % 3)\nprint(_("bye"))\n',
            "po/da.po": 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "bye"\nmsgstr "farvel"\n',
            "po/de.po": 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n#, c-format\nmsgid "%d files"\nmsgstr "%s Dateien"\n',
            "po/fr.po": 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "bye"\nmsgstr "au revoir"\n',
        },
        r"\bmsgfmt\b.*de\.",
        r"\bdiff\b",
        needs="msgfmt",
    ),
    # --------------------------------------------------------------- matrix
    "driver-matrix": Plant(
        "matrix",
        "bash ci/matrix.sh",
        {
            "ci/matrix.sh": r"""#!/bin/bash
# every backend with every mode, two at a time
set -u
declare -A pids
status=0
for backend in file memory; do
    for mode in sync async; do
        sh ci/job.sh "$backend" "$mode" > "job-$backend-$mode.log" 2>&1 &
        pids[$backend-$mode]=$!
    done
done
for job in file-sync file-async memory-sync memory-async; do
    if wait "${pids[$job]}"; then
        echo "ok   $job"
    elif [ "$job" = file-async ]; then
        echo "fail $job (allowed)"
    else
        echo "FAIL $job"; cat "job-$job.log"; status=1
    fi
done
exit $status
""",
            "ci/job.sh": 'set -e\necho "$1 $2"\n[ -e "ci/setup-$1.sh" ] && sh "ci/setup-$1.sh" || echo \'no setup\'\n/usr/bin/python3 suite.py --backend=$1 --mode=$2\n',
            "ci/setup-file.sh": "mkdir -p data\n",
            "suite.py": r"""import sys

options = dict(a[2:].split("=") for a in sys.argv[1:])
store = {}
if options["mode"] == "async" and options["backend"] == "file":
    raise NotImplementedError("aio of files")
for key in "abc":
    store[key] = key.upper()
if options["backend"] == "memory" and options["mode"] == "sync":
    assert list(store) == ["c", "b", "a"], "the newest should come first"
print("passed")
""",
        },
        r"suite\.py.*memory.*=sync",
        r"file.*async",
    ),
    # --------------------------------------------------------------- deploy
    "blog-deploy-scp": Plant(
        "deploy",
        "make -s deploy",
        {
            "Makefile": "HOST ?= deploy@127.0.0.1\ndeploy: public/index.html\n\tsh tools/deploy.sh $(HOST)\npublic/index.html: index.txt\n\t@mkdir -p public\n\t-grep -n TODO $<\n\tsed 's,.*,<p>&</p>,' $< > $@\n.PHONY: deploy\n",
            "tools/deploy.sh": r"""set -eu
tar -czf site.tgz -C public .
n=1
until scp -q -P 9 -o BatchMode=yes -o StrictHostKeyChecking=no -o ConnectTimeout=1 site.tgz "$1:/srv/www/"; do
    [ $n -lt 3 ] || { echo "giving up after $n attempts" >&2; exit 1; }
    n=$((n + 1))
    sleep 0.2
done
echo deployed
""",
            "index.txt": "hello\nworld\n",
        },
        r"\bscp\b|\bssh\b",
        r"\bmake\b|\bgrep\b",
        needs="scp",
    ),
}
