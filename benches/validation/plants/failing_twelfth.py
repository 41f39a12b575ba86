"""The twelfth part of the plants of failing.py: builds, test runs, scripts and jobs, written before anything of it was recorded,
by somebody who had not read the rules. Each was run under strace, from which its cause was determined."""

from plant import Plant

TWELFTH = {
    # ----------------------------------------------------------------- make
    "phrasebook-generated-rules": Plant(
        "make",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p po tools src
cat > Makefile <<'EOF'
# the rules for the catalogues are written by tools/mkrules.pl
all: phrasebook catalogues
-include build/po.mk
catalogues: build/de.cat build/fr.cat
phrasebook: src/main.c
	$(CC) -O1 -o $@ $<
build/po.mk: po/LINGUAS tools/mkrules.pl
	@mkdir -p build
	perl tools/mkrules.pl po/LINGUAS > $@.tmp
	mv $@.tmp $@
.PHONY: all catalogues
EOF
cat > tools/mkrules.pl <<'EOF'
use strict;
open my $in, '<', $ARGV[0] or die "$ARGV[0]: $!\n";
while (<$in>) {
    chomp; next if /^#/;
    die "$ARGV[0]:$.: no catalogue po/$_.po\n" unless -e "po/$_.po";
    print "build/$_.cat: po/$_.po\n\tsort \$< > \$\@\n\n";
}
EOF
printf '# languages\nde\nfr\npt_BR\n' > po/LINGUAS
echo 'hello=hallo' > po/de.po
echo 'hello=bonjour' > po/fr.po
echo 'hello=ola' > po/pt.po
echo 'int main(void) { return 0; }' > src/main.c
""",
            "command": "make -j2\n",
        },
        r"mkrules|po\.mk",
        r"make",
        "sh setup.sh",
        needs="gcc",
    ),
    "release-notes-shebang": Plant(
        "make",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p tools changes
cat > Makefile <<'EOF'
HAVE_PANDOC := $(shell command -v pandoc)
HAVE_XZ := $(shell command -v lzip || command -v no-such-packer)
all: out/CHANGES.txt out/index.txt out/contributors.txt
out/CHANGES.txt: $(wildcard changes/*.txt) | out
	cat $^ > $@
out/index.txt: out/CHANGES.txt tools/index.rexx
	./tools/index.rexx $< > $@
out/contributors.txt: out/CHANGES.txt
	sed -n 's/.*(\(.*\))$$/\1/p' $< | sort -u > $@
out: ; mkdir -p $@
EOF
echo '1.0 first release (ann)' > changes/1.0.txt
echo '1.1 faster (bob)' > changes/1.1.txt
printf '#!/usr/local/bin/regina\nsay "index of" arg(1)\n' > tools/index.rexx
chmod +x tools/index.rexx
""",
            "command": "make\n",
        },
        r"index\.(rexx|txt)",
        r"make",
        "sh setup.sh",
    ),
    # ---------------------------------------------------------------- cmake
    "sensorhub-find-package": Plant(
        "cmake",
        "sh ./command",
        {
            "setup.sh": r"""set -e
cat > CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.16)
project(sensorhub C)
include(CheckSymbolExists)
include(CheckLibraryExists)
check_symbol_exists(strlcat string.h HAVE_STRLCAT)
check_library_exists(wiringpi digitalRead "" HAVE_WIRINGPI)
execute_process(COMMAND git describe --tags RESULT_VARIABLE rc OUTPUT_QUIET ERROR_QUIET)
find_package(Mosquittopp 2.0 REQUIRED CONFIG)
add_executable(sensorhub main.c)
target_link_libraries(sensorhub Mosquittopp::client)
EOF
echo 'int main(void) { return 0; }' > main.c
""",
            "command": "set -e\ncmake -S . -B build\ncmake --build build\n",
        },
        r"\bcmake\b(?!.*(CMakeScratch|--build|cmTC_))",
        r"cmake -S",
        "sh setup.sh",
        needs="cmake",
    ),
    "stockroom-fixture": Plant(
        "cmake",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p sql t
cat > CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.16)
project(stockroom NONE)
enable_testing()
add_test(NAME prepare COMMAND sh ${CMAKE_SOURCE_DIR}/t/prepare.sh ${CMAKE_SOURCE_DIR}/sql stock.db)
add_test(NAME remove COMMAND rm -f stock.db)
add_test(NAME count COMMAND sh ${CMAKE_SOURCE_DIR}/t/count.sh stock.db)
add_test(NAME price COMMAND sh ${CMAKE_SOURCE_DIR}/t/price.sh stock.db)
add_test(NAME help COMMAND sh ${CMAKE_SOURCE_DIR}/t/help.sh)
set_tests_properties(prepare PROPERTIES FIXTURES_SETUP db)
set_tests_properties(remove PROPERTIES FIXTURES_CLEANUP db)
set_tests_properties(count price PROPERTIES FIXTURES_REQUIRED db)
set_tests_properties(help PROPERTIES SKIP_RETURN_CODE 77)
EOF
cat > t/prepare.sh <<'EOF'
set -e
rm -f "$2"
for f in "$1"/*.sql; do sqlite3 -bail "$2" < "$f"; done
EOF
echo '[ "$(sqlite3 "$1" "select count(*) from item")" = 2 ]' > t/count.sh
echo '[ "$(sqlite3 "$1" "select sum(price) from item")" = 7 ]' > t/price.sh
echo 'command -v man-db-viewer > /dev/null || exit 77' > t/help.sh
echo 'create table item (id integer primary key, price integer not null);' > sql/1-schema.sql
printf 'insert into item values (1, 3);\ninsert into item values (1, 4);\n' > sql/2-items.sql
cmake -S . -B build > configure.log
""",
            "command": "cd build\nctest\n",
        },
        r"sqlite3|prepare",
        r"ctest",
        "sh setup.sh",
        needs="sqlite3",
    ),
    # --------------------------------------------------------- meson, ninja
    "tarball-listing": Plant(
        "meson",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p src tools
cat > meson.build <<'EOF'
project('fontview', 'c', version: '0.8')
rev = run_command('git', 'describe', '--always', check: false)
if rev.returncode() != 0
  message('not built from a checkout')
endif
cc = meson.get_compiler('c')
cc.has_header('fontconfig-ng/fc.h')
sources = run_command('sh', 'tools/sources.sh', check: true).stdout().strip().split('\n')
executable('fontview', sources)
EOF
cat > tools/sources.sh <<'EOF'
set -e
cd "$(dirname "$0")/.."
git ls-files -- 'src/*.c' > .sources
sort .sources
EOF
echo 'int main(void) { return 0; }' > src/main.c
""",
            "command": 'set -e\nexport GIT_CEILING_DIRECTORIES="$(dirname "$PWD")"\nmeson setup build\nmeson compile -C build\n',
        },
        r"ls-files|sources\.sh",
        r"meson",
        "sh setup.sh",
        needs="meson",
    ),
    "handbook-pages": Plant(
        "ninja",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p pages macros
cat > build.ninja <<'EOF'
rule m4
  command = m4 -E -I macros $in > $out 2> $out.log || { cat $out.log; rm -f $out; exit 3; }
rule join
  command = cat $in > $out
rule words
  command = if grep -qw TODO $in; then echo open > $out; else echo done > $out; fi
build out/intro.html: m4 pages/intro.m4
build out/install.html: m4 pages/install.m4
build out/faq.html: m4 pages/faq.m4
build out/state: words pages/intro.m4
build out/book.html: join out/intro.html out/install.html out/faq.html
EOF
echo 'define(`TITLE'"'"', `<h1>$1</h1>'"'"')dnl' > macros/base.m4
printf 'include(`base.m4'"'"')TITLE(Introduction)\n' > pages/intro.m4
printf 'include(`base.m4'"'"')include(`notice.m4'"'"')TITLE(Install)\n' > pages/install.m4
printf 'include(`base.m4'"'"')TITLE(Questions)\n' > pages/faq.m4
""",
            "command": "ninja -j2\n",
        },
        r"\bm4\b.*install|install\.(html|m4)",
        r"ninja",
        "sh setup.sh",
        needs="ninja",
    ),
    # ------------------------------------------------------------ cargo, go
    "unitparse-doc-example": Plant(
        "cargo",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p src
printf '[package]\nname = "unitparse"\nversion = "0.1.0"\nedition = "2021"\n' > Cargo.toml
cat > src/lib.rs <<'EOF'
/// Bytes in a size.
///
/// ```
/// assert_eq!(unitparse::bytes("4k"), Some(4096));
/// assert_eq!(unitparse::bytes("2M"), Some(2097152));
/// ```
pub fn bytes(text: &str) -> Option<u64> {
    match text.strip_suffix('k') {
        Some(n) => n.parse::<u64>().ok().map(|n| n * 1024),
        None => text.parse().ok(),
    }
}

/// Must not be called with nothing.
///
/// ```should_panic
/// unitparse::first("");
/// ```
pub fn first(text: &str) -> char {
    text.chars().next().unwrap()
}

#[cfg(test)]
mod tests {
    #[test]
    fn plain() { assert_eq!(super::bytes("12"), Some(12)); }
}
EOF
cargo test --offline --lib --no-run 2> build.log
""",
            "command": "cargo test --offline\n",
        },
        r"rustdoc|rust_out|doctest|--doc",
        r"cargo",
        "sh setup.sh",
        needs="cargo",
    ),
    "lockstep-go-test-limit": Plant(
        "go",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p pairs names
printf 'module example.com/lockstep\n\ngo 1.19\n' > go.mod
cat > pairs/pairs.go <<'EOF'
package pairs

import "sync"

// Account has a balance.
type Account struct {
	sync.Mutex
	Cents int
}

// Move takes cents from a and gives them to b.
func Move(a, b *Account, cents int) {
	a.Lock()
	defer a.Unlock()
	b.Lock()
	defer b.Unlock()
	a.Cents -= cents
	b.Cents += cents
}
EOF
cat > pairs/pairs_test.go <<'EOF'
package pairs

import (
	"testing"
	"time"
)

func TestMove(t *testing.T) {
	a, b := &Account{Cents: 5}, &Account{}
	Move(a, b, 3)
	if b.Cents != 3 {
		t.Error(b.Cents)
	}
}

func TestSelf(t *testing.T) {
	go func() { time.Sleep(time.Minute) }()
	a := &Account{Cents: 5}
	Move(a, a, 3)
	if a.Cents != 5 {
		t.Error(a.Cents)
	}
}
EOF
cat > names/names.go <<'EOF'
package names

// Short is the first letter.
func Short(s string) string { return s[:1] }
EOF
cat > names/names_test.go <<'EOF'
package names

import "testing"

func TestShort(t *testing.T) {
	if Short("ann") != "a" {
		t.Fail()
	}
}
EOF
export GOFLAGS=-mod=mod GOPROXY=off GOCACHE="$PWD/.gocache"
go test -vet=off -run NONE ./... > warm.log
""",
            "command": 'export GOFLAGS=-mod=mod GOPROXY=off GOCACHE="$PWD/.gocache"\ngo test -vet=off -timeout 2s ./...\n',
        },
        r"\bpairs\b",
        r"\bgo\b",
        "sh setup.sh",
        needs="go",
    ),
    # ------------------------------------------------------------------ npm
    "catalogue-node-heap": Plant(
        "npm",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p scripts
cat > package.json <<'EOF'
{
  "name": "catalogue",
  "version": "1.0.0",
  "private": true,
  "scripts": {
    "check": "node scripts/check.js || echo 'no check today'",
    "index": "node --max-old-space-size=24 scripts/index.js items.ndjson index.json",
    "all": "npm run -s check && npm run -s index && npm run -s pages",
    "pages": "node scripts/pages.js index.json"
  }
}
EOF
cat > scripts/check.js <<'EOF'
process.exit(require('node:fs').existsSync('check.json') ? 0 : 1);
EOF
cat > scripts/index.js <<'EOF'
const fs = require('node:fs');
const index = {};
for (const line of fs.readFileSync(process.argv[2], 'utf8').split('\n')) {
  if (!line) continue;
  const item = JSON.parse(line);
  for (let n = 0; n < item.copies; n++) index[`${item.id}/${n}`] = { id: item.id, n, title: item.title + n };
}
fs.writeFileSync(process.argv[3], JSON.stringify(index));
EOF
echo 'console.log(Object.keys(require("../index.json")).length)' > scripts/pages.js
printf '{"id": "a", "copies": 3, "title": "lamp"}\n{"id": "b", "copies": 3000000, "title": "chair"}\n' > items.ndjson
""",
            "command": "ulimit -c 0\nexport npm_config_update_notifier=false\nnpm run all\n",
        },
        r"index\.js",
        r"npm",
        "sh setup.sh",
        needs="npm",
    ),
    # ---------------------------------------- pytest, unittest, prove, bats
    "slugger-wrong-output": Plant(
        "pytest",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p tests
cat > slugger.py <<'EOF'
import sys

if len(sys.argv) < 2:
    sys.exit("usage: slugger TEXT")
if not sys.argv[1].strip():
    sys.exit(3)
print("-".join(sys.argv[1].lower().split(" ")))
EOF
cat > tests/test_slugger.py <<'EOF'
import subprocess
import sys


def slugger(*args):
    return subprocess.run([sys.executable, "slugger.py", *args], capture_output=True, text=True)


def test_empty():
    assert slugger("  ").returncode == 3


def test_two_words():
    assert slugger("Two Words").stdout == "two-words\n"


def test_many_spaces():
    assert slugger("Many   Spaces").stdout == "many-spaces\n"


def test_usage():
    assert slugger().returncode == 1
EOF
""",
            "command": "/usr/bin/python3 -m pytest -q -p no:cacheprovider tests\n",
        },
        r"pytest|many[-_ ]*spaces",
        r"pytest",
        "sh setup.sh",
        needs="pytest",
    ),
    "faces-pool-worker-crash": Plant(
        "unittest",
        "sh ./command",
        {
            "setup.sh": r'''set -e
mkdir -p tests
cat > faces.py <<'EOF'
import ctypes
import time
from concurrent.futures import ProcessPoolExecutor


def width(data):
    """The native decoder takes an address; 0 is what a missing picture has."""
    time.sleep(0.1)
    buf = ctypes.create_string_buffer(data) if data else None
    return len(ctypes.string_at(ctypes.addressof(buf) if buf else 1))


def widths(pictures):
    with ProcessPoolExecutor(2) as pool:
        return list(pool.map(width, pictures))
EOF
cat > tests/test_faces.py <<'EOF'
import subprocess
import unittest

from faces import widths


class Faces(unittest.TestCase):
    def test_all(self):
        self.assertEqual(widths([b"abc", b"de"]), [3, 2])

    def test_missing_picture(self):
        self.assertEqual(widths([b"abc", b"", b"de", b"f"]), [3, 0, 2, 1])

    def test_no_tool(self):
        self.assertEqual(subprocess.run(["sh", "-c", "command -v face-detect-gpu"]).returncode, 127)
EOF
''',
            "command": "ulimit -c 0\n/usr/bin/python3 -m unittest discover -s tests\n",
        },
        r"SIGSEGV",
        r"unittest",
        "sh setup.sh",
    ),
    "mailbox-prove-child": Plant(
        "prove",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p t bin boxes
cat > bin/mboxcount <<'EOF'
#!/usr/bin/perl
use strict;
@ARGV == 1 or die "usage: mboxcount FILE\n";
open my $f, '<', $ARGV[0] or exit 2;
my ($n, %size) = 0;
while (<$f>) {
    if (/^From (\S+)/) { $n++; next }
    $size{$n} = $1 if /^Content-Length: (.*)/;
}
my $mean = 0;
$mean += $_ for values %size;
$mean = $mean / keys %size;
print "$n\n";
EOF
chmod +x bin/mboxcount
printf 'From ann Mon\nContent-Length: 5\n\nhello\nFrom bob Tue\nContent-Length: 2\n\nhi\n' > boxes/two.mbox
printf 'From ann Mon\n\nhello\n' > boxes/bare.mbox
cat > t/01-usage.t <<'EOF'
use Test::More tests => 2;
isnt system('bin/mboxcount 2> /dev/null'), 0, 'no file named';
is system('bin/mboxcount boxes/none.mbox') >> 8, 2, 'no such file';
EOF
cat > t/02-count.t <<'EOF'
use Test::More tests => 1;
is `bin/mboxcount boxes/two.mbox`, "2\n", 'two';
EOF
cat > t/03-bare.t <<'EOF'
use Test::More tests => 1;
is `bin/mboxcount boxes/bare.mbox`, "1\n", 'without a length';
EOF
cat > t/04-todo.t <<'EOF'
use Test::More tests => 2;
ok 1;
TODO: { local $TODO = 'folders'; is system('bin/mboxcount boxes'), 0, 'a folder'; }
EOF
""",
            "command": "prove t\n",
        },
        r"bare",
        r"prove",
        "sh setup.sh",
        needs="prove",
    ),
    "geohash-bats-shared-library": Plant(
        "bats",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p src test
echo 'int grid(int x, int y) { return x * 8 + y; }' > src/grid.c
cat > src/geo.c <<'EOF'
#include <stdio.h>
#include <stdlib.h>
int grid(int x, int y);
int main(int c, char **v) { if (c < 3) { fputs("usage: geo X Y\n", stderr); return 2; } printf("%d\n", grid(atoi(v[1]), atoi(v[2]))); return 0; }
EOF
echo 'int main(void) { return 0; }' > src/geover.c
cat > Makefile <<'EOF'
test: stage
	bats test
stage: src/grid.c src/geo.c src/geover.c
	mkdir -p stage/bin build
	$(CC) -shared -fPIC -o build/libgrid.so src/grid.c
	$(CC) -o stage/bin/geo src/geo.c -Lbuild -lgrid -Wl,-rpath,'$$ORIGIN/../lib'
	$(CC) -o stage/bin/geover src/geover.c
	mkdir -p stage/lib64 && cp build/libgrid.so stage/lib64/
EOF
cat > test/geo.bats <<'EOF'
@test "version" {
    stage/bin/geover
}
@test "no such option" {
    run sh -c 'exec 2> /dev/null; grep -q'
    [ "$status" -eq 2 ]
}
@test "a point" {
    run stage/bin/geo 1 2
    [ "$output" = 10 ]
}
EOF
""",
            "command": "make test\n",
        },
        r"bin/geo\b|\bgeo 1 2",
        r"make|bats",
        "sh setup.sh",
        needs="bats",
    ),
    # --------------------------------------------------------------- limits
    "shard-merge-open-files": Plant(
        "limit",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p shards tests tools
for n in $(seq 100 160); do printf '%s alpha\n' $n > shards/part-$n.txt; done
cat > tools/merge.py <<'EOF'
import glob
import heapq
import sys

parts = [open(name) for name in sorted(glob.glob(sys.argv[1] + "/part-*.txt"))]
with open(sys.argv[2], "w") as out:
    out.writelines(heapq.merge(*parts))
EOF
cat > tools/count.py <<'EOF'
import sys

print(sum(1 for _ in open(sys.argv[1])))
EOF
cat > Makefile <<'EOF'
all: count.txt
merged.txt: $(wildcard shards/*.txt)
	/usr/bin/python3 tools/merge.py shards $@
count.txt: merged.txt
	/usr/bin/python3 tools/count.py $< > $@
EOF
""",
            "command": "ulimit -n 48\nmake -k\n",
        },
        r"merge\.py|merged\.txt",
        r"make",
        "sh setup.sh",
    ),
    "ledger-export-file-size": Plant(
        "limit",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p jobs
seq 1 9000 | awk '{ print $1 * 7919 % 9001 "\taccount-" $1 % 37 "\tbooking of the day" }' > ledger.tsv
cat > jobs/nightly.sh <<'EOF'
#!/bin/bash
# as the old cron did: no file of the job may grow beyond 200 kB
set -u
ulimit -c 0
ulimit -f 200
fail=0
step() { echo "-- $1"; shift; "$@" || fail=1; }
step accounts sh -c 'cut -f 2 ledger.tsv | sort -u > accounts.txt'
step sorted sort -n -o ledger.sorted ledger.tsv
step closed sh -c 'grep -c CLOSED ledger.tsv > closed.txt || true'
step newest sh -c 'tail -n 3 ledger.tsv > newest.txt'
exit $fail
EOF
""",
            "command": "bash jobs/nightly.sh\n",
        },
        r"\bsort\b.*ledger|ledger\.sorted",
        r"nightly\.sh",
        "sh setup.sh",
        needs="bash",
    ),
    "payroll-heap": Plant(
        "limit",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p src classes
cat > src/Payroll.java <<'EOF'
public class Payroll {
    public static void main(String[] args) {
        System.out.println("paid " + args.length);
    }
}
EOF
javac -d classes src/Payroll.java
cat > run.sh <<'EOF'
set -e
if ! which payroll-native > /dev/null; then echo "no native payroll, the one in Java is taken"; fi
test -n "$JAVA_OPTS" || JAVA_OPTS="-Xms1g -Xmx1g"
(
    ulimit -v 700000
    java $JAVA_OPTS -cp classes Payroll ann bob > paid.txt
)
cat paid.txt
EOF
""",
            "command": "sh run.sh\n",
        },
        r"\bPayroll\b",
        r"run\.sh",
        "sh setup.sh",
        needs="java",
    ),
    "thumbnail-cache-full": Plant(
        "limit",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p cache raw bin
for n in 1 2 3 4 5; do head -c 40000 /dev/urandom > raw/img$n.raw; done
cat > bin/scale.sh <<'EOF'
set -e
[ -e "$2" ] && exit 0
dd if="$1" of="$2" bs=4k status=none
EOF
cat > bin/fill.sh <<'EOF'
set -e
mount -t tmpfs -o size=128k none cache
for f in raw/*.raw; do
    sh bin/scale.sh "$f" "cache/$(basename "$f" .raw).thumb"
done
find cache -name '*.thumb' | sort > cache.lst
EOF
""",
            "command": "unshare -m sh bin/fill.sh\n",
        },
        r"\bdd\b|scale\.sh",
        r"fill\.sh|unshare",
        "sh setup.sh",
        needs="unshare",
    ),
    # -------------------------------------------------------------- ansible
    "wiki-rescue": Plant(
        "ansible",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p files
printf '[defaults]\nretry_files_enabled = False\nlocalhost_warning = False\n\n[connection]\npipelining = True\n' > ansible.cfg
cat > wiki.yml <<'EOF'
- name: wiki
  hosts: localhost
  connection: local
  gather_facts: false
  vars:
    ansible_python_interpreter: /usr/bin/python3
  tasks:
    - name: is the user there
      command: getent passwd wikisvc
      register: user
      ignore_errors: true
      changed_when: false
    - block:
        - name: data directory
          command: install -d -o wikisvc -m 750 srv/wiki
        - name: pages
          command: cp files/start.txt srv/wiki/
      rescue:
        - name: back to the last good state
          command: tar -xf backup/last-good.tar
EOF
echo start > files/start.txt
""",
            "command": 'export LC_ALL=C.UTF-8 ANSIBLE_HOME="$PWD/.ansible" ANSIBLE_NOCOWS=1\nansible-playbook -i localhost, wiki.yml\n',
        },
        r"\binstall\b",
        r"ansible",
        "sh setup.sh",
        needs="ansible-playbook",
    ),
    "cluster-join-hidden-status": Plant(
        "ansible",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p files state
printf '[defaults]\nretry_files_enabled = False\nlocalhost_warning = False\n\n[connection]\npipelining = True\n' > ansible.cfg
cat > join.yml <<'EOF'
- name: join the cluster
  hosts: localhost
  connection: local
  gather_facts: false
  vars:
    ansible_python_interpreter: /usr/bin/python3
  tasks:
    - name: join
      command: sh files/join.sh state
    - name: ready
      command: grep -qx ready state/node
      register: node
      until: node.rc == 0
      retries: 2
      delay: 1
      changed_when: false
EOF
cat > files/join.sh <<'EOF'
# the status goes into a file, the tool that collects them is asked later
openssl x509 -in files/node.pem -noout -subject > "$1/subject" 2> "$1/join.err"
rc=$?
echo "$rc" > "$1/join.status"
if [ "$rc" = 0 ]; then echo ready > "$1/node"; else echo joining > "$1/node"; fi
exit 0
EOF
printf -- '-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQ2\n-----END CERTIFICATE-----\n' > files/node.pem
""",
            "command": 'export LC_ALL=C.UTF-8 ANSIBLE_HOME="$PWD/.ansible" ANSIBLE_NOCOWS=1\nansible-playbook -i localhost, join.yml\n',
        },
        r"openssl|join\.sh",
        r"ansible",
        "sh setup.sh",
        needs="ansible-playbook",
    ),
    # ---------------------------------------------------------------- shell
    "feeds-wait-n": Plant(
        "shell",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p feeds out
cat > feeds/convert.tcl <<'EOF'
lassign $argv in out delay
set f [open $in]; set g [open $out w]
while {[gets $f line] >= 0} {
    lassign [split $line |] day temp rain
    puts $g "$day [expr {$temp * 9 / 5 + 32}]"
}
close $g
after $delay
EOF
printf 'mon|10|0\ntue|12|1\n' > feeds/north.txt
printf 'mon|20|0\ntue|n/a|3\n' > feeds/south.txt
printf 'mon|15|0\ntue|16|0\n' > feeds/west.txt
cat > feeds/all.sh <<'EOF'
#!/bin/bash
# three at once; the first that fails ends them all
tclsh feeds/convert.tcl feeds/north.txt out/north 2500 &
tclsh feeds/convert.tcl feeds/west.txt out/west 200 &
{ sleep 0.5; exec tclsh feeds/convert.tcl feeds/south.txt out/south 900; } &
for _ in 1 2 3; do
    if ! wait -n; then
        echo "a feed failed, the others are stopped" >&2
        kill $(jobs -p) 2> /dev/null
        wait
        exit 1
    fi
done
EOF
""",
            "command": "bash feeds/all.sh\n",
        },
        r"south",
        r"all\.sh",
        "sh setup.sh",
        needs="tclsh",
    ),
    "blog-publish-unset-e": Plant(
        "shell",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p posts tools
printf 'title: First\n\nhello\n' > posts/first.txt
printf 'title: Second\n\n<?= strtoupper("hi") ?>\n' > posts/second.txt
cat > tools/feed.php <<'EOF'
<?php
$items = [];
foreach (glob($argv[1] . "/*.txt") as $file) {
    [$head, $body] = explode("\n\n", file_get_contents($file), 2);
    $items[] = render_item(substr($head, 7), $body);
}
file_put_contents($argv[2], implode("\n", $items));
EOF
cat > publish.sh <<'EOF'
#!/bin/sh
set -e
build() {
    rm -rf site; mkdir -p site/posts
    for f in posts/*.txt; do
        sed '1,2d' "$f" > "site/posts/$(basename "$f" .txt).html"
    done
    php tools/feed.php posts site/feed.xml
    if grep -rl '<?=' site/posts > site/.dynamic; then echo "dynamic posts: $(wc -l < site/.dynamic)"; fi
    (cd site && find . -type f | sort) > manifest.txt
}
if build; then
    echo "built"
else
    echo "build failed"; exit 1
fi
tar -czf site.tar.gz -C site posts feed.xml
echo "published"
EOF
""",
            "command": "sh publish.sh\n",
        },
        r"feed\.php",
        r"publish\.sh",
        "sh setup.sh",
        needs="php",
    ),
    "queue-cleanup-trap": Plant(
        "shell",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p upstream patches
seq 1 30 | sed 's/^/line /' > upstream/daemon.c
cat > patches/01-name.diff <<'EOF'
--- a/daemon.c
+++ b/daemon.c
@@ -1,3 +1,3 @@
-line 1
+line one
 line 2
 line 3
EOF
cat > patches/02-limit.diff <<'EOF'
--- a/daemon.c
+++ b/daemon.c
@@ -9,4 +9,4 @@
 line 9
-line ten
+line 10 limited
 line 11
 line 12
EOF
cat > package.sh <<'EOF'
#!/bin/bash
set -e
work=work
cleanup() {
    set +e
    umount "$work/proc" 2> /dev/null
    rmdir "$work" 2> /dev/null
    pid=$(cat "$work/daemon.pid" 2> /dev/null) && kill "$pid"
    losetup-clean "$work" 2> /dev/null
    cmp -s "$work/daemon.c" upstream/daemon.c || echo "the tree was changed, left in $work"
}
trap cleanup EXIT
mkdir -p $work
cp upstream/* $work
for p in patches/*.diff; do
    patch -s -d $work -p1 < "$p"
done
tar -cf package.tar $work
EOF
""",
            "command": "bash package.sh\n",
        },
        r"\bpatch\b",
        r"package\.sh",
        "sh setup.sh",
        needs="patch",
    ),
    "mirror-clone-gives-up": Plant(
        "shell",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p mirrors deps
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com GIT_CONFIG_GLOBAL=/dev/null
for n in libutf libargs; do
    git init -q -b main mirrors/$n
    (cd mirrors/$n && echo $n > README && git add README && git commit -q -m first && git tag v1.0)
done
printf 'libargs v1.0\nlibutf v1.1\n' > deps/pins.txt
cat > deps/get.sh <<'EOF'
#!/bin/sh
# three times each, the network is not always there
set -e
retry() {
    n=1
    until "$@"; do
        [ $n -lt 3 ] || { echo "given up after $n times: $*" >&2; return 9; }
        n=$((n + 1)); sleep 0.4
    done
}
while read -r name tag; do
    rm -rf deps/$name
    retry git clone -q --branch $tag --depth 1 "file://$PWD/mirrors/$name" deps/$name 2> deps/$name.log
    git -C deps/$name diff --quiet HEAD^ 2> /dev/null || echo "$name: nothing to compare with"
done < deps/pins.txt
EOF
""",
            "command": "export GIT_CONFIG_GLOBAL=/dev/null\nsh deps/get.sh\n",
        },
        r"\bclone\b.*libutf",
        r"get\.sh",
        "sh setup.sh",
        needs="git",
    ),
    "stage-hooks-not-executable": Plant(
        "shell",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p hooks.d stage
printf '#!/bin/sh\nmkdir -p stage/etc\n' > hooks.d/10-tree
printf '#!/bin/sh\ngrep -q debug=1 settings.conf && echo debug > stage/etc/mode\nexit 0\n' > hooks.d/20-mode
printf '#!/bin/sh\nhostname > stage/etc/origin\n' > hooks.d/30-origin
printf '#!/bin/sh\ncp settings.conf stage/etc/\n' > hooks.d/40-settings
chmod 755 hooks.d/*
chmod 644 hooks.d/30-origin
echo debug=0 > settings.conf
cat > stage.sh <<'EOF'
for hook in hooks.d/*; do
    echo "hook $hook"
    "$hook" || exit 3
done
test -s stage/etc/settings.conf
EOF
""",
            "command": "sh stage.sh\n",
        },
        r"30-origin",
        r"stage\.sh",
        "sh setup.sh",
    ),
    # ------------------------------------------------------ lint, configure
    "pre-commit-scripts": Plant(
        "lint",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p repo
cd repo
export GIT_CONFIG_GLOBAL=/dev/null
git init -q -b main
git config user.name dev; git config user.email dev@example.com; git config core.hooksPath .git/hooks
mkdir -p scripts
printf '#!/bin/sh\nset -e\necho start\n' > scripts/start.sh
printf '#!/bin/sh\nset -e\nrm -rf "$1"\n' > scripts/clean.sh
git add . && git commit -q -m first
mkdir -p .git/hooks
cat > .git/hooks/pre-commit <<'EOF'
#!/bin/sh
# only what is about to be committed
if git diff --cached --quiet; then exit 0; fi
if git diff --cached | grep -q '^+.*[[:space:]]$'; then echo 'space at the end of a line'; exit 1; fi
git diff --cached --name-only -- '*.sh' | xargs -n 1 shellcheck --severity=warning
EOF
chmod +x .git/hooks/pre-commit
printf '#!/bin/sh\nset -e\nrm -rf "$1"/*.tmp\n' > scripts/clean.sh
printf '#!/bin/sh\nset -e\ncd $1\nlocal=$(ls)\nread answer\nif [ $answer == yes ]; then rm -rf $local; fi\n' > scripts/start.sh
""",
            "command": "cd repo\nexport GIT_CONFIG_GLOBAL=/dev/null\ngit add -A\ngit commit -m 'ask before start'\n",
        },
        r"shellcheck",
        r"commit",
        "sh setup.sh",
        needs="shellcheck",
    ),
    "player-configure-libmad": Plant(
        "configure",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p src
cat > configure.ac <<'EOF'
AC_INIT([miniplay], [0.2])
AC_CONFIG_SRCDIR([src/main.c])
AC_PROG_CC
AC_CHECK_HEADERS([sndio.h])
AC_CHECK_FUNCS([strlcpy arc4random_buf_x])
AC_CHECK_LIB([tinymad9], [mad_decoder_init], [], [AC_MSG_ERROR([tinymad9 is needed to play anything])])
AC_CONFIG_FILES([Makefile])
AC_OUTPUT
EOF
echo 'int main(void) { return 0; }' > src/main.c
printf 'all: miniplay\nminiplay: src/main.c\n\t@CC@ -o $@ src/main.c @LIBS@\n' > Makefile.in
autoconf 2> autoconf.log
rm -rf autom4te.cache
""",
            "command": "set -e\n./configure --quiet\nmake\n",
        },
        r"tinymad9|^ld conftest",
        r"configure",
        "sh setup.sh",
        needs="autoconf",
    ),
    # ------------------------------------------ pipe, pool, server, timeout
    "nightly-head-sigpipe": Plant(
        "pipe",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p logs
seq 1 90000 | awk '{ print "req=" $1 " ms=" $1 * 7919 % 9973 " path=/item/" $1 % 101 }' > logs/access.log
cat > slowest.sh <<'EOF'
#!/bin/bash
set -euo pipefail
if grep -q ' 500 ' logs/access.log; then echo "there were errors"; fi
slow=$(sort -t = -k 3nr logs/access.log | head -n 5)
echo "$slow" > slowest.txt
count=$(wc -l < logs/access.log)
echo "$count requests"
EOF
""",
            "command": "bash slowest.sh\n",
        },
        r"\bsort\b",
        r"slowest\.sh",
        "sh setup.sh",
        needs="bash",
    ),
    "templates-parallel-halt": Plant(
        "pool",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p helpers
for n in cart list mail menu search user; do
    printf 'module %s\n  def self.name = "%s"\nend\n' "$(echo $n | sed 's/./\U&/')" $n > helpers/$n.rb
done
printf 'module Mail\n  def self.name\n    if true\n      "mail"\n  end\nend\n' > helpers/mail.rb
cat > check_one.sh <<'EOF'
ruby -c "$1" > /dev/null 2> "$1.log" || { cat "$1.log"; exit 5; }
grep -q TODO "$1" && echo "$1: something is open"
sleep 0.8
EOF
""",
            "command": 'export PARALLEL_HOME="$PWD/.parallel"\nls helpers/*.rb | parallel --will-cite -j2 --halt now,fail=1 sh check_one.sh {}\n',
        },
        r"mail\.rb",
        r"parallel",
        "sh setup.sh",
        needs="parallel",
    ),
    "line-server-sigpipe": Plant(
        "server",
        "sh ./command",
        {
            "setup.sh": r"""set -e
cat > lineserver.c <<'EOF'
/* answers a line with two lines, one client after the other */
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(void)
{
    int one = 1, s = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(18471) };
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(s, (struct sockaddr *)&a, sizeof a) || listen(s, 5)) return 1;
    for (;;) {
        char line[100]; int c = accept(s, 0, 0);
        if (read(c, line, sizeof line) > 0) {
            usleep(200000);
            write(c, "hello\n", 6);
            usleep(100000);
            write(c, "bye\n", 4);
        }
        close(c);
    }
}
EOF
gcc -O1 -w -o lineserver lineserver.c
cat > client.py <<'EOF'
import socket
import sys

with socket.create_connection(("127.0.0.1", 18471), timeout=float(sys.argv[1])) as s:
    s.sendall(b"hi\n")
    print(s.makefile().read().split())
EOF
cat > check.sh <<'EOF'
#!/bin/bash
./lineserver & server=$!
trap 'kill $server 2> /dev/null' EXIT
sleep 0.3
set -e
/usr/bin/python3 client.py 3
# a client in a hurry must do no harm
/usr/bin/python3 client.py 0.05 2> hurry.log || echo "the hurried client went away"
sleep 0.6
/usr/bin/python3 client.py 3
echo ok
EOF
""",
            "command": "bash check.sh\n",
        },
        r"lineserver",
        r"check\.sh",
        "sh setup.sh",
        needs="gcc",
    ),
    "migration-asks-back": Plant(
        "timeout",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p db tools
echo '1 create' > db/done.txt
printf '1 create\n2 add owner\n3 drop notes\n' > db/plan.txt
cat > tools/migrate.py <<'EOF'
import sys

done = {line.split()[0] for line in open("db/done.txt")}
for line in open("db/plan.txt"):
    number, what = line.rstrip("\n").split(" ", 1)
    if number in done:
        continue
    if what.startswith("drop") and input(f"{what}: data will be lost, go on? [y/N] ") != "y":
        sys.exit(4)
    print(what, file=open("db/log.txt", "a"))
EOF
cat > tools/seed.py <<'EOF'
print(open("db/log.txt").read(), end="")
EOF
cat > ci.sh <<'EOF'
set -e
if ! git rev-parse HEAD > /dev/null 2>&1; then echo "no revision"; fi
timeout -k 1 2 /usr/bin/python3 tools/migrate.py
/usr/bin/python3 tools/seed.py
EOF
""",
            "command": 'mkfifo console\nexport GIT_CEILING_DIRECTORIES="$(dirname "$PWD")"\nexec 3<> console\nsh ci.sh <&3\n',
        },
        r"migrate\.py",
        r"ci\.sh",
        "sh setup.sh",
    ),
}
