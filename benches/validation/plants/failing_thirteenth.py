"""The thirteenth part of the plants of failing.py: builds, test runs, scripts and jobs, written before anything of it was recorded,
by somebody who had not read the rules. Each was run three times without the tool; answers.md has its true cause.

Debian packages that a bare machine may lack: gcc make cmake ninja-build meson python3-pytest parallel jq curl sqlite3 git
shellcheck perl binutils default-jdk-headless nodejs npm; cargo from rustup. Needs root (`setpriv` drops it)."""

from plant import Plant

THIRTEENTH = {
    # ----------------------------------------------------------------- make
    "harbour-nested-make": Plant(
        "make",
        "sh ./command",
        {
            "Makefile": r"""# harbourd: a tide table daemon, one directory a part
SUBDIRS := store proto app
all: version.h contrib $(SUBDIRS)
version.h:
	@git --git-dir=.git describe --always > $@.tmp 2>/dev/null || echo '"unreleased"' > $@.tmp
	@sed 's/^/#define VERSION /' $@.tmp > $@
	@rm $@.tmp
contrib:
	-$(MAKE) -C contrib
$(SUBDIRS):
	$(MAKE) -C $@
app: store proto
.PHONY: all contrib $(SUBDIRS)
""",
            "contrib/Makefile": """plugin.so: plugin.c
	$(CC) -shared -fPIC -o $@ $<
""",
            "contrib/plugin.c": "#include <harbour/plugin-api.h>\nint plugin(void) { return HARBOUR_API; }\n",
            "store/Makefile": """# flush.c was added last week
OBJS = table.o tide.o
libstore.a: $(OBJS)
	$(AR) rcs $@ $(OBJS)
""",
            "store/table.c": "static int rows[24];\nint store_get(int hour) { return rows[hour % 24]; }\n",
            "store/tide.c": "int tide(int hour) { return (hour * 7) % 12; }\n",
            "store/flush.c": "int store_flush(void) { return 0; }\n",
            "proto/Makefile": "libproto.a: line.o\n\t$(AR) rcs $@ $^\n",
            "proto/line.c": "int proto_line(const char *text) { return text[0] == 'T'; }\n",
            "app/Makefile": """harbourd: main.o ../store/libstore.a ../proto/libproto.a
	$(CC) -o $@ $^
""",
            "app/main.c": """int store_get(int), store_flush(void), proto_line(const char *);
int main(void) { return proto_line("T") ? store_get(3) : store_flush(); }
""",
            "command": "make\n",
        },
        r"\bld\b|collect2",
        r"cc -o harbourd|make( -C app)?$",
        needs="gcc",
    ),
    "almanac-pipe-codegen": Plant(
        "make",
        "make -j2 almanac",
        {
            "Makefile": r"""almanac: main.o sun.o
	$(CC) -o $@ $^
main.o: main.c gen/moons.inc
	$(CC) -Wall -c -o $@ main.c
sun.o: sun.c
	$(CC) -Wall -c -o $@ sun.c
gen/moons.inc: data/moons.csv tools/moons.pl
	@mkdir -p gen
	perl tools/moons.pl data/moons.csv | LC_ALL=C sort > $@
""",
            "tools/moons.pl": r"""use strict;
use warnings;
open my $in, '<', $ARGV[0] or die "$ARGV[0]: $!\n";
while (my $line = <$in>) {
    chomp $line;
    my ($date, $phase) = split /,/, $line;
    $date =~ /^(\d{4})-(\d\d)-(\d\d)$/ or die "$ARGV[0]:$.: '$date' is no date\n";
    print "{ $1$2$3, \"$phase\" },\n";
}
""",
            "data/moons.csv": "2024-01-11,new\n2024-01-25,full\n2024-02-09,new\n24/02/2024,full\n2024-03-10,new\n2024-03-25,full\n",
            "main.c": r"""#include <stdio.h>
static const struct { int date; const char *phase; } moons[] = {
#include "gen/moons.inc"
};
_Static_assert(sizeof moons / sizeof *moons == 6, "six moons in the first quarter");
int sunrise(int);
int main(void) { printf("%d %s %d\n", moons[0].date, moons[0].phase, sunrise(1)); return 0; }
""",
            "sun.c": "int sunrise(int day) { return 480 - day; }\n",
        },
        r"moons\.pl",
        r"cc1|\bcc\b|gcc|make",
        needs="gcc",
    ),
    # -------------------------------------------------------- cmake and ctest
    "relay-ctest-hang": Plant(
        "cmake",
        "sh ./command",
        {
            "CMakeLists.txt": r"""cmake_minimum_required(VERSION 3.16)
project(relay C)
include(CheckIncludeFile)
check_include_file(sys/kqueue.h HAVE_KQUEUE)
check_include_file(liburing.h HAVE_URING)
enable_testing()
add_library(codec STATIC codec.c)
foreach(t roundtrip overlong handshake)
  add_executable(${t} t/${t}.c)
  target_link_libraries(${t} codec)
  add_test(NAME ${t} COMMAND ${t})
endforeach()
set_tests_properties(overlong PROPERTIES WILL_FAIL TRUE)
""",
            "codec.c": "int encode(int b) { return b ^ 0x5a; }\nint decode(int b) { return b ^ 0x5a; }\n",
            "t/roundtrip.c": """int encode(int), decode(int);
int main(void) { for (int b = 0; b < 256; b++) if (decode(encode(b)) != b) return 1; return 0; }
""",
            "t/overlong.c": "int main(void) { return 2; }\n",
            "t/handshake.c": r"""#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
int encode(int);
/* The peer answers HELLO with READY; nobody writes READY since the peer became a thread of its own. */
int main(void) {
    int ends[2];
    char answer[6];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return 99;
    if (write(ends[0], "HELLO", 5) != 5) return 98;
    if (read(ends[0], answer, 5) != 5) return 1;
    return encode(answer[0]) == 0;
}
""",
            "command": """set -e
cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Debug
cmake --build build
cd build
ctest --timeout 2 --output-on-failure
""",
        },
        r"\bhandshake\b(?!.*(\.c|\.o)\b)",
        r"ctest",
        needs="cmake",
    ),
    # ---------------------------------------------------------------- ninja
    "bookpress-ninja-input": Plant(
        "ninja",
        "sh ./command",
        {
            "build.ninja": r"""rule html
  command = awk -f tools/md2html.awk $in > $out
  description = HTML $out
rule index
  command = cat $in | grep -h '<h1>' > $out
build out/01-sea.html: html text/01-sea.md
build out/02-land.html: html text/02-land.md
build out/03-sky.html: html text/03-sky.md
build out/cover.html: html text/cover.md
build out/index.html: index out/cover.html out/01-sea.html out/02-land.html out/03-sky.html
default out/index.html
""",
            "tools/md2html.awk": r"""/^# / { print "<h1>" substr($0, 3) "</h1>"; next }
NF { print "<p>" $0 "</p>" }
""",
            "text/01-sea.md": "# The sea\nIt is deep.\n",
            "text/02-land.md": "# The land\nIt is wide.\n",
            "text/03-sky.md": "# The sky\nIt is high.\n",
            "text/Cover.md": "# Three parts of a world\n",
            "command": """set -e
if grep -q DRAFT text/*.md; then
    echo "drafts are not printed" >&2
    exit 1
fi
command -v pandoc-crossref > /dev/null || echo "no cross references"
ninja -t targets rule html | sort > targets.txt
cmp -s targets.txt targets.last || cp targets.txt targets.last
ninja -v
wc -c out/*.html
""",
        },
        r"ninja -v",
        needs="ninja",
    ),
    # ---------------------------------------------------------------- meson
    "metronome-meson-abort": Plant(
        "meson",
        "sh ./command",
        {
            "meson.build": r"""project('metronome', 'c', version: '0.3')
cc = meson.get_compiler('c')
conf = configuration_data()
conf.set('HAVE_JACK', cc.has_header('jack/jack.h'))
conf.set('HAVE_PIPEWIRE', cc.has_header('pipewire/pipewire.h'))
configure_file(output: 'config.h', configuration: conf)
find_program('lilypond-book', required: false)
beat = static_library('beat', 'beat.c')
test('tempo', executable('tempo', 't/tempo.c', link_with: beat))
test('silence', executable('silence', 't/silence.c', link_with: beat), should_fail: true)
test('swing', executable('swing', 't/swing.c', link_with: beat))
""",
            "beat.c": "int interval_ms(int bpm) { return 60000 / bpm; }\nint swung_ms(int bpm) { return interval_ms(bpm) / 3; }\n",
            "t/tempo.c": "int interval_ms(int);\nint main(void) { return interval_ms(120) != 500; }\n",
            "t/silence.c": "int main(void) { return 1; }\n",
            "t/swing.c": """#include <assert.h>
int swung_ms(int);
int main(void) { assert(swung_ms(120) == 333); return 0; }
""",
            "command": """set -eu
meson setup build
meson compile -C build
if ! meson test -C build --print-errorlogs; then
    cp build/meson-logs/testlog.txt failed-tests.txt
    exit 1
fi
""",
        },
        r"\bswing\b(?!\.p)",
        r"meson",
        needs="meson",
    ),
    # ---------------------------------------------------------------- cargo
    "unitconv-build-script": Plant(
        "cargo",
        "bash ci/build.sh",
        {
            "Cargo.toml": '[package]\nname = "unitconv"\nversion = "0.2.0"\nedition = "2021"\nbuild = "build.rs"\n\n[workspace]\n',
            "build.rs": r"""use std::{env, fs, path::Path, process::Command};

fn main() {
    println!("cargo:rerun-if-changed=data/units.txt");
    let commit = match Command::new("git").args(["--git-dir=.git", "rev-parse", "--short", "HEAD"]).output() {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_string(),
        _ => "unknown".to_string(),
    };
    println!("cargo:rustc-env=COMMIT={commit}");
    let text = fs::read_to_string("data/units.txt").expect("data/units.txt");
    let mut table = String::from("pub const UNITS: &[(&str, f64)] = &[\n");
    for (number, line) in text.lines().enumerate() {
        let (name, factor) = line.split_once(' ').expect("a name and a factor");
        let factor: f64 = factor.parse().unwrap_or_else(|e| panic!("data/units.txt:{}: {factor}: {e}", number + 1));
        table.push_str(&format!("    (\"{name}\", {factor:?}),\n"));
    }
    table.push_str("];\n");
    fs::write(Path::new(&env::var("OUT_DIR").unwrap()).join("units.rs"), table).unwrap();
}
""",
            "data/units.txt": "metre 1.0\ninch 0.0254\nfoot 0,3048\nmile 1609.344\n",
            "src/main.rs": r"""include!(concat!(env!("OUT_DIR"), "/units.rs"));
fn main() {
    for (name, factor) in UNITS {
        println!("{name} {factor} ({})", env!("COMMIT"));
    }
}
""",
            "ci/build.sh": """set -euo pipefail
export CARGO_TARGET_DIR=$PWD/target CARGO_NET_OFFLINE=true
[ -f Cargo.lock ] || cargo generate-lockfile
cargo build --locked
cargo run --locked -q > units.out
""",
        },
        r"build-script-build",
        r"cargo",
        needs="cargo",
    ),
    # ------------------------------------------------------------------ npm
    "recipebox-npm-build": Plant(
        "npm",
        "npm run build",
        {
            ".npmrc": "update-notifier=false\nlogs-max=0\nfund=false\naudit=false\n",
            "package.json": r"""{
  "name": "recipebox",
  "version": "1.4.0",
  "private": true,
  "scripts": {
    "lint": "node scripts/lint.js recipes",
    "prebuild": "npm run --silent lint || true",
    "build": "node scripts/render.js recipes site && node scripts/shopping.js recipes site",
    "postbuild": "node -e \"console.log('built')\""
  }
}
""",
            "scripts/lint.js": r"""const fs = require('fs');
const path = require('path');
const dir = process.argv[2];
let warnings = 0;
for (const file of fs.readdirSync(dir)) {
  const recipe = JSON.parse(fs.readFileSync(path.join(dir, file), 'utf8'));
  if (recipe.title !== recipe.title.trim() || /[A-Z]/.test(file)) {
    console.log(`${file}: warning: untidy`);
    warnings++;
  }
}
process.exit(warnings ? 1 : 0);
""",
            "scripts/render.js": r"""const fs = require('fs');
const path = require('path');
const [dir, site] = process.argv.slice(2);
fs.mkdirSync(site, { recursive: true });
for (const file of fs.readdirSync(dir)) {
  const { title } = JSON.parse(fs.readFileSync(path.join(dir, file), 'utf8'));
  fs.writeFileSync(path.join(site, file.replace('.json', '.html')), `<h1>${title}</h1>\n`);
}
""",
            "scripts/shopping.js": r"""const fs = require('fs');
const path = require('path');
const [dir, site] = process.argv.slice(2);
const list = [];
for (const file of fs.readdirSync(dir)) {
  const recipe = JSON.parse(fs.readFileSync(path.join(dir, file), 'utf8'));
  for (const { item, grams } of recipe.ingredients) list.push(`${item} ${grams.toFixed(0)} g`);
}
fs.writeFileSync(path.join(site, 'shopping.txt'), list.sort().join('\n'));
""",
            "recipes/Bread.json": '{"title": "Bread ", "ingredients": [{"item": "flour", "grams": 500}]}\n',
            "recipes/pesto.json": '{"title": "Pesto", "ingredients": [{"item": "basil", "grams": 50}]}\n',
            "recipes/soup.json": '{"title": "Soup", "ingredients": [{"item": "leek", "grams": 200}, {"item": "salt"}]}\n',
        },
        r"shopping\.js",
        r"npm run build|sh -c node scripts/render",
        needs="npm",
    ),
    "shardmap-node-pool": Plant(
        "node",
        "sh ./command",
        {
            "pool.js": r"""// Indexes the shards with one process each. The first that fails ends the others.
const { fork } = require('child_process');
const workers = new Map();
let failed = false;
for (const shard of ['alpha', 'bravo', 'charlie', 'delta']) {
  const worker = fork('./index-shard.js', [shard]);
  workers.set(shard, worker);
  worker.on('exit', (code, signal) => {
    workers.delete(shard);
    if (code === 0 || failed) return;
    failed = true;
    console.error(`shard ${shard} failed: ${code ?? signal}`);
    process.exitCode = 1;
    for (const other of workers.values()) other.kill('SIGTERM');
  });
}
""",
            "index-shard.js": r"""const fs = require('fs');
const shard = process.argv[2];
const lines = fs.readFileSync(`shards/${shard}.ndjson`, 'utf8').trim().split('\n');
let at = 0;
const timer = setInterval(() => {
  if (at === lines.length) {
    clearInterval(timer);
    return;
  }
  const { key } = JSON.parse(lines[at++]);
  fs.appendFileSync(`index/${shard}.idx`, `${key}\n`);
}, 250);
""",
            "setup.sh": r"""set -e
mkdir -p shards index
for shard in bravo charlie delta; do
    seq 1 20 | sed 's/.*/{"key": "k&"}/' > shards/$shard.ndjson
done
printf '{"key": "a1"}\n{"key": "a2"}\n' > shards/alpha.ndjson
sed -i '5s/.*/{"key": "k5"/' shards/charlie.ndjson
""",
            "command": "set -e\nnode pool.js\ncat index/*.idx | sort | uniq -d\n",
        },
        r"index-shard\.js charlie",
        r"pool\.js",
        "sh setup.sh",
        needs="node",
    ),
    # --------------------------------------------------- pytest and unittest
    "ledger-pytest-sqlite": Plant(
        "pytest",
        "sh ./command",
        {
            "sql/schema.sql": "CREATE TABLE account (id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL);\n"
            "CREATE TABLE posting (account INTEGER REFERENCES account, cents INTEGER NOT NULL);\n",
            "sql/seed.sql": "INSERT INTO account VALUES (1, 'cash'), (2, 'rent');\n",
            "sql/year2023.sql": "INSERT INTO posting VALUES (1, -90000);\nINSERT INTO posting VALUES (2, 90000);\n",
            "sql/year2024.sql": "INSERT INTO posting VALUES (1, -95000);\nINSERT INTO postings VALUES (2, 95000);\n",
            "tests/test_ledger.py": r"""import subprocess

import pytest


def sql(db, statement, check=True):
    return subprocess.run(["sqlite3", "-bail", db, statement], check=check, capture_output=True, text=True)


@pytest.fixture
def ledger(tmp_path):
    db = str(tmp_path / "ledger.db")
    sql(db, ".read sql/schema.sql")
    sql(db, ".read sql/seed.sql")
    return db


def test_refuses_a_second_cash_account(ledger):
    assert sql(ledger, "INSERT INTO account VALUES (3, 'cash')", check=False).returncode != 0


def test_refuses_an_empty_amount(ledger):
    assert "NOT NULL" in sql(ledger, "INSERT INTO posting VALUES (1, NULL)", check=False).stderr


@pytest.mark.parametrize("year", [2023, 2024])
def test_year_is_balanced(ledger, year):
    sql(ledger, f".read sql/year{year}.sql")
    assert sql(ledger, "SELECT sum(cents) FROM posting").stdout == "0\n"


def test_accounts(ledger):
    assert sql(ledger, "SELECT count(*) FROM account").stdout == "2\n"
""",
            "command": "set -e\npytest -q -p no:cacheprovider tests\necho passed > status\n",
        },
        r"sqlite3 .*year2024",
        r"^(\S*python3 )?\S*pytest -q",
        needs="pytest",
    ),
    "flagparse-pytest-own": Plant(
        "pytest",
        "bash ci/test.sh",
        {
            "flagparse.py": r"""import argparse
import sys


def parser():
    made = argparse.ArgumentParser(prog="flagparse", usage="flagparse [--depth N] [--format {text,json,csv}] [--exclude PATTERN]... PATH")
    made.add_argument("--depth", type=int, default=3)
    made.add_argument("--format", choices=["text", "json", "csv"])
    made.add_argument("--exclude", action="append")
    made.add_argument("path")
    return made


if __name__ == "__main__":
    args = parser().parse_args()
    sys.exit(3 if args.depth < 0 else 0)
""",
            "tests/test_flags.py": r"""import os
import subprocess
import sys

import pytest

sys.path.insert(0, os.getcwd())
import flagparse


@pytest.mark.parametrize("words, status", [
    (["--depth", "x", "."], 2),
    (["--format", "yaml", "."], 2),
    ([], 2),
    (["--depth", "-1", "."], 3),
    (["."], 0),
])
def test_status(words, status):
    assert subprocess.run([sys.executable, "flagparse.py", *words], capture_output=True).returncode == status


def test_usage_fits_a_terminal():
    assert max(map(len, flagparse.parser().format_usage().splitlines())) <= 80


def test_default_depth():
    assert flagparse.parser().parse_args(["."]).depth == 3
""",
            "ci/test.sh": """status=0
scratch=$(mktemp -d ./scratch.XXXX)
pytest -q -p no:cacheprovider --basetemp="$scratch/pytest" tests || status=$?
rm -r "$scratch"
exit $status
""",
        },
        r"pytest",
        needs="pytest",
    ),
    "weathervane-unittest-server": Plant(
        "unittest",
        "/usr/bin/python3 -m unittest discover -s tests",
        {
            "server.py": r"""import configparser
import http.server
import sys

config = configparser.ConfigParser()
config.read(sys.argv[1])
station = config["station"]["name"]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(station.encode())


server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
with open("port", "w") as out:
    out.write(str(server.server_address[1]))
server.serve_forever()
""",
            "conf/test.ini": "[stations]\nname = Wendelstein\n",
            "tests/test_station.py": r"""import os
import subprocess
import sys
import time
import unittest
import urllib.request


class Units(unittest.TestCase):
    def test_knots(self):
        done = subprocess.run(["awk", "BEGIN { exit !(10 * 1.852 == 18.52) }"])
        self.assertEqual(done.returncode, 0)


class Station(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = subprocess.Popen([sys.executable, "server.py", "conf/test.ini"], stderr=subprocess.DEVNULL)
        cls.addClassCleanup(cls.server.terminate)
        for _ in range(20):
            if os.path.exists("port"):
                return
            time.sleep(0.1)
        raise TimeoutError("the station did not come up in 2 s")

    def test_name(self):
        with open("port") as port:
            url = f"http://127.0.0.1:{port.read()}/"
        self.assertEqual(urllib.request.urlopen(url).read(), b"Wendelstein")
""",
        },
        r"server\.py",
        r"unittest",
    ),
    # ------------------------------------------------- servers, locks, time
    "storefront-deploy-lock": Plant(
        "retry",
        "bash deploy.sh",
        {
            "deploy.sh": r"""#!/bin/bash
set -euo pipefail
mkdir -p state public
cp site/robots.txt public/

# Warming the cache holds the lock that publishing needs.
flock state/deploy.lock bash tools/warm-cache.sh &
warming=$!
while [ ! -e state/warming ]; do sleep 0.05; done

publish() { flock -n state/deploy.lock cp -r site/. public/; }
for attempt in 1 2 3; do
    if publish; then
        break
    fi
    echo "attempt $attempt: another deployment runs" >&2
    sleep 0.3
done
if [ ! -e public/index.html ]; then
    echo "not published" >&2
    wait "$warming"
    exit 75
fi
""",
            "tools/warm-cache.sh": """touch state/warming
for page in site/*.html; do
    sleep 0.5
    gzip -9 -c "$page" > "state/$(basename "$page").gz"
done
sleep 1
""",
            "site/robots.txt": "User-agent: *\n",
            "site/index.html": "<h1>Shop</h1>\n",
            "site/cart.html": "<h1>Cart</h1>\n",
            "site/help.html": "<h1>Help</h1>\n",
        },
        r"flock -n",
    ),
    "catalog-smoke-jq": Plant(
        "server",
        "bash ci/smoke.sh",
        {
            "ci/smoke.sh": r"""set -euo pipefail
work=$(mktemp -d ./smoke.XXXX)
/usr/bin/python3 catalog.py "$work/port" 2> "$work/server.log" &
server=$!
finish() {
    kill "$server"
    wait "$server" || true
    rmdir "$work"
}
trap finish EXIT

while [ ! -s "$work/port" ]; do sleep 0.1; done
url=http://127.0.0.1:$(cat "$work/port")
for try in 1 2 3 4 5 6 7 8; do
    curl -sf "$url/healthz" > /dev/null && break
    sleep 0.2
done
curl -sf "$url/items" | jq -e 'length == 3' > /dev/null
curl -sf "$url/about" | jq -e '.schema >= 7' > /dev/null
echo "smoke test passed"
""",
            "catalog.py": r"""import http.server
import json
import os
import sys


class Catalog(http.server.BaseHTTPRequestHandler):
    asked = 0

    def do_GET(self):
        answers = {"/items": ["lamp", "desk", "shelf"], "/about": {"name": "catalog", "schema": 6}, "/healthz": "ok"}
        Catalog.asked += 1
        # The first questions come while the tables load.
        ready = Catalog.asked > 2
        self.send_response(200 if ready else 503)
        self.end_headers()
        self.wfile.write(json.dumps(answers[self.path] if ready else "loading").encode())


server = http.server.HTTPServer(("127.0.0.1", 0), Catalog)
with open(sys.argv[1] + ".new", "w") as out:
    out.write(str(server.server_address[1]))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
""",
        },
        r"jq .*schema",
        r"rmdir",
        needs="jq",
    ),
    "orbit-timeout": Plant(
        "timeout",
        "sh ./command",
        {
            "sim/run.sh": "set -e\nmkdir -p results\nsha256sum sim/orbit.json > results/inputs\n"
            "/usr/bin/python3 sim/integrate.py sim/orbit.json results/orbit.csv\n",
            "sim/integrate.py": r"""import json
import sys
import time

with open(sys.argv[1]) as text:
    orbit = json.load(text)
residual = 1.0
while residual > orbit["tolerance"]:
    # A solver on another machine would do the step.
    time.sleep(orbit["step_s"])
    residual = max(residual / 2, 1e-6)
with open(sys.argv[2], "w") as out:
    out.write(f"{residual}\n")
""",
            "sim/orbit.json": '{"body": "Ceres", "tolerance": 1e-9, "step_s": 0.05}\n',
            "command": r"""cleanup() { rm -f results/*.partial; }
trap cleanup EXIT
timeout -k 1 3 bash sim/run.sh
rc=$?
if [ $rc -ne 0 ]; then
    echo "simulation ended with $rc; its last results:"
    tail -n 3 results/orbit.csv
    exit $rc
fi
""",
        },
        r"integrate\.py|sim/run\.sh",
        r"timeout|tail",
    ),
    # -------------------------------------------------------- many at a time
    "maptiles-xargs": Plant(
        "xargs",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p tiles out
for x in 0 1 2 3 4 5 6 7 8 9 10 11 12 13; do
    awk -v x=$x 'BEGIN { for (r = 0; r < 8; r++) { for (c = 0; c < 8; c++) printf "%s%d", c ? " " : "", (r * x + c) % 17; print "" } }' \
        > tiles/t$x.grid
done
printf '#skip ocean\n' > tiles/t3.grid
sed -i '6s/ [0-9]*$//' tiles/t9.grid
""",
            "bin/encode.awk": r"""NF != 8 { printf "%s:%d: %d columns instead of 8\n", FILENAME, FNR, NF > "/dev/stderr"; exit 3 }
{ for (i = 1; i <= 8; i++) printf "%02x", $i; print "" }
""",
            "bin/convert.sh": r"""# 255 makes xargs stop
tile=$1
if grep -q '^#skip' "tiles/$tile.grid"; then
    exit 0
fi
awk -f bin/encode.awk "tiles/$tile.grid" > "out/$tile.tmp" || exit 255
mv "out/$tile.tmp" "out/$tile.hex"
""",
            "command": r"""set -e
ls tiles | sed 's/\.grid$//' | sort -V > tiles.list
xargs -P 3 -n 1 sh bin/convert.sh < tiles.list
cat out/*.hex | sha256sum > out/SUM
""",
        },
        r"awk .*t9\.grid",
        r"convert\.sh|xargs",
        "sh setup.sh",
    ),
    "checkfarm-parallel-halt": Plant(
        "parallel",
        "sh ./command",
        {
            "checks/spelling.sh": "for f in src/*.c; do sleep 0.2; grep -n 'teh ' \"$f\"; done\n:\n",
            "checks/licence.sh": r"""# every source file names its licence in its first line
sleep 1
missing=0
for f in src/*.c; do
    read -r first < "$f"
    case $first in
        *SPDX-License-Identifier*) ;;
        *) echo "$f: no licence"; missing=$((missing + 1)) ;;
    esac
done
[ $missing -eq 0 ]
""",
            "checks/links.sh": 'for n in 1 2 3 4 5 6 7 8; do sleep 1; echo "page $n"; done\n',
            "checks/style.sh": "for f in src/*.c; do sleep 2; awk 'length > 100 { exit 1 }' \"$f\" || exit 1; done\n",
            "src/a.c": "/* SPDX-License-Identifier: MIT */\nint a;\n",
            "src/b.c": "int b;\n",
            "src/c.c": "/* SPDX-License-Identifier: MIT */\nint c;\n",
            "command": "parallel --will-cite --halt now,fail=1 -j 4 sh checks/{}.sh ::: spelling licence links style\n",
        },
        r"licence\.sh",
        r"parallel",
        needs="parallel",
    ),
    "atlas-find-exec": Plant(
        "find",
        "sh ./command",
        {
            "tools/simplify.sh": r"""set -e
name=$(basename "$1" .geojson)
jq -c '{name: .name, points: [.points[] | map(floor)]}' "$1" > "build/$name.json"
""",
            "data/africa/lakes.geojson": '{"name": "lakes", "points": [[1.5, 2.25], [3.5, 4.75]]}\n',
            "data/africa/roads.geojson": '{"name": "roads", "points": [[10.5, 2.25]]}\n',
            "data/asia/rivers.geojson": '{"name": "rivers", "points": [[7.5, 8.0],]}\n',
            "data/asia/peaks.geojson": '{"name": "peaks", "points": []}\n',
            "data/europe/borders.geojson": '{"name": "borders", "points": [[0.1, 0.2], [0.3, 0.4]]}\n',
            "command": r"""set -eu
mkdir -p build
find data -name '*.geojson' -exec sh tools/simplify.sh {} \;
layers=$(cat build/*.json | jq -s length)
expected=$(find data -name '*.geojson' | wc -l)
echo "$layers of $expected layers"
[ "$layers" -eq "$expected" ]
tar -C build -czf atlas.tar.gz .
""",
        },
        r"jq .*rivers\.geojson",
        r"simplify\.sh",
        needs="jq",
    ),
    "dsp-background-wait": Plant(
        "background jobs",
        "sh ./build.sh",
        {
            "build.sh": r"""# builds the modules at once; the library has them all
set -e
mkdir -p obj
CFLAGS="-O1 -Wall"
for module in mixer reverb resample gain; do
    gcc $CFLAGS -c "src/$module.c" -o "obj/$module.o" &
done
wait
echo "modules are compiled"
ar rcs libdsp.a obj/mixer.o obj/reverb.o obj/resample.o obj/gain.o
gcc -o selftest src/selftest.c libdsp.a
./selftest
""",
            "src/mixer.c": "float mix(float a, float b) { return (a + b) / 2; }\n",
            "src/reverb.c": "float reverb(float a) { return a * 0.7f; }\n",
            "src/resample.c": "#include <stddef.h>\nfloat resample(const float *in, ssize n) { return n ? in[0] : 0; }\n",
            "src/gain.c": "float gain(float a, float db) { return db > 0 ? a * db : a; }\n",
            "src/selftest.c": "float mix(float, float);\nint main(void) { return mix(1, 1) != 1; }\n",
        },
        r"(cc1|gcc) .*resample\.c",
        r"\bar\b",
        needs="gcc",
    ),
    # ---------------------------------------------------------------- limits
    "assets-file-limit": Plant(
        "limits",
        "bash ci/archive.sh",
        {
            "ci/archive.sh": r"""#!/bin/bash
# The small runners allow files of 128 KiB.
set -e
trap 'echo "archive:"; gzip -l dist/assets.tar.gz' EXIT
mkdir -p assets dist
for n in 1 2 3 4 5 6; do
    seq "$n" 6000 > "assets/layer$n.svg"
done
tar -df dist/assets.tar assets 2> /dev/null || echo "the archive is not current"
(
    ulimit -f 128
    tar -cf dist/assets.tar assets
)
gzip -9 dist/assets.tar
""",
        },
        r"tar -cf",
        r"gzip -l",
    ),
    "jigsaw-java-memory": Plant(
        "limits",
        "sh ./command",
        {
            "Makefile": r"""SOURCES := $(wildcard src/jigsaw/*.java)
selftest.log: classes/.built
	bash tools/limited.sh 400000 java -Xmx128m -cp classes jigsaw.Main --selftest > $@
classes/.built: $(SOURCES)
	mkdir -p classes
	javac -nowarn -d classes $(SOURCES)
	touch $@
""",
            "tools/limited.sh": '# limited.sh KIB PROGRAM...: runs PROGRAM with that much address space\nulimit -v "$1"\nshift\n"$@"\n',
            "src/jigsaw/Main.java": r"""package jigsaw;

public class Main {
    public static void main(String[] args) {
        Piece[] pieces = new Piece[1000];
        for (int i = 0; i < pieces.length; i++) pieces[i] = new Piece(i);
        System.out.println("PASS " + pieces.length);
    }
}
""",
            "src/jigsaw/Piece.java": "package jigsaw;\n\nrecord Piece(int edge) {}\n",
            "command": """set -e
make selftest.log || { grep -c PASS selftest.log; exit 1; }
cat selftest.log
""",
        },
        r"\bMain --selftest|\bjava\b.*jigsaw\.Main",
        r"limited\.sh|make|grep",
        needs="javac",
    ),
    # ------------------------------------------- missing, forbidden, refused
    "notebook-pre-commit": Plant(
        "git hook",
        "sh ./command",
        {
            "setup.sh": r"""set -e
git init -q .
git config user.name Ann
git config user.email ann@example.org
git config core.hooksPath .githooks
git config commit.gpgSign false
chmod +x .githooks/pre-commit
""",
            ".githooks/pre-commit": r"""#!/bin/sh
set -e
git diff --cached --check
changed=$(git diff --cached --name-only --diff-filter=AM)
if echo "$changed" | grep -q '\.py$'; then
    python3 -m compileall -q .
fi
prose=$(echo "$changed" | grep '\.md$' || true)
[ -z "$prose" ] || mdl-strict --ignore-words=.words $prose
grep -L '^# ' $prose
""",
            ".words": "teh\n",
            "day1.md": "# Monday\nRain.\n",
            "day2.md": "# Tuesday\nSun.\n",
            "command": """set -e
git rev-parse -q --verify HEAD > /dev/null || echo "first commit"
git add .words day1.md day2.md
git commit -q -m 'two days'
git log --oneline
""",
        },
        r"mdl-strict|pre-commit",
        r"git( .*)? commit",
        "sh setup.sh",
        needs="git",
    ),
    "handbook-publish-user": Plant(
        "permission",
        "sh ./command",
        {
            "setup.sh": r"""set -e
umask 022
chmod 755 .
mkdir -p public
chmod -R a+rX site ci
(cd site && sha256sum *.html > SHA256SUMS && chmod 644 SHA256SUMS)
""",
            "ci/publish.sh": r"""set -e
umask 022
id -un
(cd site && sha256sum --quiet -c SHA256SUMS)
if ! diff -q site/index.html public/index.html > /dev/null 2>&1; then
    echo "index.html is new"
fi
for page in site/*.html; do
    cp "$page" public/
done
ls public | wc -l
""",
            "site/index.html": "<h1>Handbook</h1>\n",
            "site/leave.html": "<h1>Leave</h1>\n",
            "site/travel.html": "<h1>Travel</h1>\n",
            "command": """set -e
# Publishing needs no root.
setpriv --reuid=65534 --regid=65534 --clear-groups sh ci/publish.sh
date -r public/index.html
""",
        },
        r"cp site/index\.html",
        r"publish\.sh",
        "sh setup.sh",
    ),
    # --------------------------------------------------------------- runners
    "beacon-runner-deb": Plant(
        "runner",
        "bash runner.sh",
        {
            "runner.sh": r"""#!/bin/bash
# Runs the steps of the job as the hosted runners do.
failed=0
step() { # NAME [continue-on-error|always]
    local name=$1 how=${2:-}
    if [ $failed -ne 0 ] && [ "$how" != always ]; then
        echo "skipped: $name"
        return
    fi
    echo "##[group]$name"
    bash --noprofile --norc -e -o pipefail "steps/$name.sh"
    local rc=$?
    if [ $rc -ne 0 ] && [ "$how" != continue-on-error ]; then
        echo "##[error]Process completed with exit code $rc."
        failed=1
    fi
}
step 1-checkout
step 2-lint continue-on-error
step 3-build
step 4-package
step 5-publish
step 6-report always
exit $failed
""",
            "steps/1-checkout.sh": "mkdir -p work\ncp -r pkg src work/\nls work\n",
            "steps/2-lint.sh": "cd work\nshellcheck src/beacon.sh\n",
            "steps/3-build.sh": """cd work
mkdir -p root/usr/bin root/DEBIAN
install -m 755 src/beacon.sh root/usr/bin/beacon
sed "s/@SIZE@/$(du -sk root | cut -f1)/" pkg/control.in > root/DEBIAN/control
""",
            "steps/4-package.sh": """cd work
mkdir -p dist
dpkg-deb --root-owner-group --build root dist/beacon.deb
sha256sum dist/beacon.deb > dist/SHA256SUMS
""",
            "steps/5-publish.sh": "cp work/dist/* /nonexistent/\n",
            "steps/6-report.sh": "echo '## package'\ndpkg-deb --info work/dist/beacon.deb\n",
            "src/beacon.sh": "#!/bin/sh\nname=$1\necho beacon $name\n",
            "pkg/control.in": """Package: beacon
Version: beta-2
Architecture: all
Maintainer: Ann <ann@example.org>
Installed-Size: @SIZE@
Description: lights a beacon
""",
        },
        r"dpkg-deb .*--build",
        r"4-package|6-report|dpkg-deb --info",
        needs="dpkg-deb",
    ),
    "tracker-step-coverage": Plant(
        "runner",
        "sh ./command",
        {
            "steps/10-test.sh": """mkdir -p build
/usr/bin/python3 -m trace --count -C build/cover --missing tests.py > build/test.log
""",
            "steps/20-coverage.sh": r"""# lines of the product that ran, by file
awk '/^ *[0-9]+:/ { n[FILENAME]++ } END { for (f in n) print f, n[f] }' build/cover/*.cover | sort > build/all.txt
awk '$1 ~ "^/builds/tracker/src/"' build/all.txt > build/coverage.txt
[ -s build/coverage.txt ]
awk '{ sum += $2 } END { print "covered lines:", sum }' build/coverage.txt
""",
            "steps/30-badge.sh": "awk '{ sum += $2 } END { printf \"<svg>%d</svg>\", sum }' build/coverage.txt > build/badge.svg\n",
            "tracker.py": "def parcel(code):\n    if len(code) != 8:\n        return None\n    return code[:2], int(code[2:])\n",
            "tests.py": 'import tracker\n\nassert tracker.parcel("DE123456") == ("DE", 123456)\nassert tracker.parcel("X") is None\n',
            "command": """for step in steps/*.sh; do
    echo "== $step"
    bash -e "$step" || { echo "== $step failed"; exit 1; }
done
""",
        },
        r"20-coverage\.sh",
    ),
    # ------------------------------------------------------------- databases
    "clinic-migrations": Plant(
        "migrations",
        "sh bin/upgrade.sh",
        {
            "bin/upgrade.sh": r"""#!/bin/sh
set -e

migrate() {
    for file in migrations/*.sql; do
        echo "applying $file"
        sqlite3 -bail clinic.db ".read $file"
    done
    echo "the schema is current"
}

cp -p clinic.db clinic.db.bak 2> /dev/null || echo "a new database"
if migrate; then
    sqlite3 clinic.db .schema > schema.out
else
    echo "the upgrade failed" >&2
    exit 1
fi
sqlite3 -bail clinic.db 'SELECT triage, count(*) FROM visit GROUP BY triage' > triage.txt
cat triage.txt
""",
            "migrations/0001_patient.sql": "CREATE TABLE patient (id INTEGER PRIMARY KEY, name TEXT NOT NULL);\n",
            "migrations/0002_visit.sql": "CREATE TABLE visit (patient INTEGER REFERENCES patient, day TEXT);\n",
            "migrations/0003_triage.sql": "ALTER TABLE visits ADD COLUMN triage TEXT DEFAULT 'green';\n",
            "migrations/0004_data.sql": "INSERT INTO patient VALUES (1, 'Doe');\nINSERT INTO visit (patient, day) VALUES (1, '2024-05-01');\n",
        },
        r"sqlite3 .*0003_triage",
        r"sqlite3 .*SELECT",
        needs="sqlite3",
    ),
    # ----------------------------------------------- the script's own statement
    "mirror-release-unset": Plant(
        "own statement",
        "bash ci/release.sh",
        {
            "ci/release.sh": r"""#!/bin/bash
set -u
tag=$(git --git-dir=.git describe --tags 2> /dev/null) || tag=v0.0.0-dev
notes=$(awk '/^## /{ n++ } n == 1' CHANGES.md)
mkdir -p dist
tar -czf "dist/mirror-$tag.tar.gz" src CHANGES.md
(cd dist && sha256sum *.tar.gz > SHA256SUMS)
printf '%s\n' "$notes" > dist/NOTES
if ! gpg-agent-socket --check 2> /dev/null; then
    echo "not signed"
fi
echo "uploading $tag to ${MIRROR_UPLOAD_HOST}"
cp dist/* "/srv/$MIRROR_UPLOAD_HOST/"
""",
            "CHANGES.md": "## 2.0\n- faster\n\n## 1.9\n- smaller\n",
            "src/mirror.sh": "echo mirror\n",
        },
        "itself",
    ),
    "kiln-cd-output": Plant(
        "own statement",
        "sh ./command",
        {
            "Makefile": """OUT ?= _build
TOOLS = fire glaze cool
all: $(TOOLS:%=$(OUT)/bin/%)
$(OUT)/bin/%: tools/%.sh
	@mkdir -p $(@D)
	install -m 755 $< $@
""",
            "tools/fire.sh": "#!/bin/sh\necho firing at 1200\n",
            "tools/glaze.sh": "#!/bin/sh\necho glazing\n",
            "tools/cool.sh": "#!/bin/sh\necho cooling\n",
            "command": """set -e
make -q all || make all
cd build/bin
for tool in *; do
    ./"$tool" > "../$tool.out"
done
""",
        },
        "itself",
    ),
    "dashboard-size-budget": Plant(
        "own statement",
        "sh ci/size-budget.sh",
        {
            "ci/size-budget.sh": r"""#!/bin/sh
# Fails if the compressed bundle is larger than its budget.
budget=400
bundle() {
    cat web/*.js | sed -e 's,^ *//.*,,' -e '/^ *$/d' > bundle.js
    if grep -q debugger bundle.js; then
        echo "a debugger statement is left" >&2
        exit 2
    fi
    gzip -9 -c bundle.js | wc -c
}
size=$(bundle) || exit
cmp -s bundle.js bundle.last.js || echo "the bundle changed"
case $size in
    *[!0-9]*) echo "no size: $size" >&2; exit 2 ;;
esac
if [ "$size" -gt $budget ]; then
    echo "bundle.js: $size bytes, the budget is $budget" >&2
    exit 3
fi
echo "bundle.js: $size bytes"
""",
            "setup.sh": r"""set -e
mkdir -p web
printf '// entry\nexport function main() { return chart(); }\n' > web/main.js
awk 'BEGIN { srand(7); for (i = 0; i < 60; i++) printf "export const c%d = %d;\n", i, (i * 7919 + 104729 * i * i) % 1000003 }' > web/palette.js
""",
        },
        "itself",
        "",
        "sh setup.sh",
    ),
    "golden-count-increment": Plant(
        "own statement",
        "bash tests/run.sh",
        {
            "tests/run.sh": r"""#!/bin/bash
# Compares what the formatter prints with the golden files.
set -e
passed=0
known=()
for golden in tests/golden/*.out; do
    name=$(basename "$golden" .out)
    if bash fmt.sh < "tests/in/$name.txt" | diff -u "$golden" - > "tests/$name.diff"; then
        rm "tests/$name.diff"
        ((passed++))
    else
        # tests/known lists the failures that wait for a fix
        grep -qx "$name" tests/known
        known+=("$name")
    fi
done
echo "$passed passed, ${#known[@]} are known to fail"
""",
            "fmt.sh": "sed -e 's/[[:space:]]*$//' -e 's/\\t/    /g'\n",
            "tests/known": "accents\n",
            "tests/in/accents.txt": "e\u0301te\u0301  \n",
            "tests/golden/accents.out": "\u00e9t\u00e9\n",
            "tests/in/blanks.txt": "one  \ntwo\t\n",
            "tests/golden/blanks.out": "one\ntwo\n",
            "tests/in/tabs.txt": "a\tb\n",
            "tests/golden/tabs.out": "a    b\n",
        },
        "itself",
    ),
    "firmware-version-read": Plant(
        "own statement",
        "sh ./command",
        {
            "VERSION": "2.4.1",
            "src/boot.s": "boot: nop\n",
            "src/radio.s": "radio: nop\n",
            "docs/TODO": "nothing\n",
            "command": r"""set -e
mkdir -p image
for part in src/*.s; do
    name=$(basename "$part" .s)
    as -o "image/$name.o" "$part"
    objcopy -O binary "image/$name.o" "image/$name.bin"
done
open=$(grep -c FIXME docs/TODO || true)
echo "$open open points"
cat image/*.bin > image/firmware.bin
read -r version < VERSION
mv image/firmware.bin "image/firmware-$version.bin"
cksum "image/firmware-$version.bin"
""",
        },
        "itself",
        needs="as",
    ),
}
