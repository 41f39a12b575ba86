"""The eighteenth part of the failing builds: the CI of a C, C++, Python and shell shop."""

from plant import Plant

EIGHTEENTH = {
    # An assert is the only use of a variable: only the release configuration warns of it.
    "release-config-werror": Plant(
        "make",
        "make -k -j2 all",
        {
            "Makefile": """\
HAVE_ZSTD := $(shell pkg-config --exists libzstd-acme && echo 1)
WARN = -Wall -Wextra -Werror
FLAGS_debug = -O0 -g
FLAGS_release = -O2 -DNDEBUG

all: debug release

debug release:
\t$(MAKE) -C src OUT=../build-$@ CXXFLAGS="$(WARN) $(FLAGS_$@) $(if $(HAVE_ZSTD),-DHAVE_ZSTD)"

.PHONY: all debug release
""",
            "src/Makefile": """\
OBJS = $(OUT)/main.o $(OUT)/queue.o $(OUT)/meter.o

$(OUT)/meterd: $(OBJS)
\t$(CXX) -o $@ $(OBJS)

$(OUT)/%.o: %.cpp queue.h
\tmkdir -p $(OUT)
\t$(CXX) -c $< $(CXXFLAGS) -o $@
""",
            "src/queue.h": """\
#pragma once
int drain(int limit);
int meter(int readings);
""",
            "src/queue.cpp": """\
#include <cassert>
#include "queue.h"

static int pop(int limit) { return limit / 2; }

int drain(int limit)
{
    const int left = pop(limit);
    assert(left >= 0);
    return limit;
}
""",
            "src/meter.cpp": """\
#include "queue.h"

int meter(int readings) { return readings * 60; }
""",
            "src/main.cpp": """\
#include "queue.h"

int main() { return drain(4) + meter(1) == 64 ? 0 : 1; }
""",
        },
        r"cc1plus|g\+\+|c\+\+",
        also=r"make",
        needs="g++",
    ),
    # Somebody added crc.c and forgot it in the list of the library's objects.
    "library-object-forgotten": Plant(
        "make",
        "make check",
        {
            "Makefile": """\
CFLAGS = -O1 -Wall
LIBOBJS = frame.o

check: frametest
\t-@test -f local.mk && echo "using local.mk"
\t./frametest

frametest: frametest.o libframe.a
\t$(CC) -o $@ frametest.o -L. -lframe

libframe.a: $(LIBOBJS)
\t-rm $@
\t$(AR) rcs $@ $(LIBOBJS)

.PHONY: check
""",
            "frame.h": """\
unsigned crc8(const unsigned char *p, unsigned n);
unsigned frame_sum(const unsigned char *p, unsigned n);
""",
            "frame.c": """\
#include "frame.h"

unsigned frame_sum(const unsigned char *p, unsigned n)
{
    return crc8(p, n) ^ 0xff;
}
""",
            "crc.c": """\
#include "frame.h"

unsigned crc8(const unsigned char *p, unsigned n)
{
    unsigned c = 0;
    while (n--)
        c = (c << 1 ^ *p++) & 0xff;
    return c;
}
""",
            "frametest.c": """\
#include <stdio.h>
#include "frame.h"

int main(void)
{
    printf("sum %u\\n", frame_sum((const unsigned char *)"abc", 3));
    return 0;
}
""",
        },
        r"\bld\b|collect2|\bcc\b|gcc",
        also=r"make",
        needs="gcc",
    ),
    # The fallback branch that is taken without the vendor's header does not compile.
    "configure-fallback-broken": Plant(
        "shell",
        "sh -c 'sh ./configure && make'",
        {
            "configure": """\
#!/bin/sh
CC=${CC:-cc}
: > config.log
echo '/* made by configure */' > config.h

check_header() {
    printf 'checking for %s... ' "$1"
    printf '#include <%s>\\nint main(void) { return 0; }\\n' "$1" > conftest.c
    if $CC -c conftest.c -o conftest.o 2>> config.log; then
        echo yes
        echo "#define $2 1" >> config.h
    else
        echo no
        echo "/* #undef $2 */" >> config.h
    fi
    rm -f conftest.c conftest.o
}

check_header sys/epoll.h HAVE_SYS_EPOLL_H
check_header sys/event.h HAVE_SYS_EVENT_H
check_header acme/ssldrv.h HAVE_ACME_SSLDRV_H
echo "configure: done"
""",
            "Makefile": """\
CFLAGS = -O1 -Wall
gateway: main.o poll.o tls.o
\t$(CC) -o $@ main.o poll.o tls.o

%.o: src/%.c config.h
\t$(CC) -c $< $(CFLAGS) -I. -o $@
""",
            "src/main.c": """\
int poll_once(void);
int tls_open(int fd);

int main(void) { return poll_once() + tls_open(1) < 0; }
""",
            "src/poll.c": """\
#include "config.h"
#ifdef HAVE_SYS_EPOLL_H
#include <sys/epoll.h>
#endif

int poll_once(void) { return 0; }
""",
            "src/tls.c": """\
#include "config.h"
#ifdef HAVE_ACME_SSLDRV_H
#include <acme/ssldrv.h>

int tls_open(int fd) { return ssldrv_attach(fd); }
#else
struct soft_tls { int fd; int state; };

int tls_open(int fd)
{
    struct soft_tls t = { fd, 0 };
    return t.handshake_state;
}
#endif
""",
        },
        r"tls\.c",
        also=r"make",
        needs="gcc",
    ),
    # main.o does not name the generated header as a prerequisite: -j shows it.
    "header-not-generated-yet": Plant(
        "make",
        "make -j2",
        {
            "Makefile": """\
all: include/version.h app

include/version.h:
\tmkdir -p include
\trev=$$(git describe --tags 2>/dev/null || echo unreleased); sleep 1; \\
\tprintf '#define VERSION "%s"\\n' "$$rev" > $@

app: main.o
\t$(CC) -o $@ main.o

main.o: src/main.c
\t$(CC) -c src/main.c -Iinclude -o $@
""",
            "src/main.c": """\
#include <stdio.h>
#include "version.h"

int main(void)
{
    puts(VERSION);
    return 0;
}
""",
        },
        r"cc1|\bcc\b|gcc",
        also=r"make",
        before="git init -q .",
        needs="gcc",
    ),
    # One test is an expected failure, another aborts in an assertion.
    "xfail-and-assertion": Plant(
        "shell",
        "sh tests/run.sh",
        {
            "tests/run.sh": """\
#!/bin/sh
# Builds and runs every t_*.c. Those named in xfail may fail.
cd "$(dirname "$0")" || exit 1
mkdir -p bin
bad=0
for src in t_*.c; do
    name=${src%.c}
    cc -g "$src" -o "bin/$name" || exit 1
    if "bin/$name" > "bin/$name.log" 2>&1; then
        echo "PASS  $name"
    elif grep -qx "$name" xfail; then
        echo "XFAIL $name"
    else
        echo "FAIL  $name"
        cat "bin/$name.log"
        bad=$((bad + 1))
    fi
done
echo "$bad unexpected failure(s)"
test "$bad" -eq 0
""",
            "tests/xfail": "t_legacy\n",
            "tests/t_legacy.c": """\
#include <stdio.h>

int main(void)
{
    fprintf(stderr, "year 2038 is not handled yet\\n");
    return 1;
}
""",
            "tests/t_map.c": "int main(void) { return 0; }\n",
            "tests/t_ring.c": """\
#include <assert.h>

static unsigned ring_next(unsigned at, unsigned size) { return at + 1 > size ? 0 : at + 1; }

int main(void)
{
    assert(ring_next(0, 8) == 1);
    assert(ring_next(7, 8) == 0);
    return 0;
}
""",
        },
        r"t_ring",
        also=r"run\.sh|itself",
        needs="gcc",
    ),
    # A pool of two workers: the style job may fail, the unit job must not.
    "job-matrix-allow-failure": Plant(
        "python",
        "python3 ci/run_jobs.py ci/jobs.json",
        {
            "ci/run_jobs.py": """\
import concurrent.futures
import json
import subprocess
import sys


def run(job):
    done = subprocess.run(["sh", "-c", job["script"]], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    return job, done.returncode, done.stdout


def main():
    with open(sys.argv[1]) as source:
        jobs = json.load(source)
    failed = []
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        for job, code, output in pool.map(run, jobs):
            word = "passed"
            if code:
                word = "failed (allowed)" if job.get("allow_failure") else "FAILED"
            print(f"== {job['name']}: {word}")
            sys.stdout.write(output)
            if code and not job.get("allow_failure"):
                failed.append(job["name"])
    if failed:
        sys.exit("failed jobs: " + ", ".join(failed))


main()
""",
            "ci/jobs.json": """\
[
  {"name": "style", "script": "sh ci/style.sh", "allow_failure": true},
  {"name": "unit", "script": "set -e; echo unit tests; python3 -m unittest -v tests.test_rates"},
  {"name": "docs", "script": "wc -l docs/index.md"},
  {"name": "package", "script": "tar cf rates.tar rates && tar tf rates.tar"}
]
""",
            "ci/style.sh": """\
# Fails while there is a long line somewhere.
if grep -nE '.{80,}' rates/*.py docs/*.md; then
    exit 1
fi
""",
            "docs/index.md": "# Rates\n\nA line that is far too long for the style job of this project, which is allowed to fail.\n",
            "rates/calc.py": """\
def monthly(yearly):
    return round(yearly / 12)
""",
            "tests/test_rates.py": """\
import unittest

from rates.calc import monthly


class Rates(unittest.TestCase):
    def test_whole(self):
        self.assertEqual(monthly(120), 10)

    def test_cents_are_kept(self):
        self.assertEqual(monthly(125.4), 10.45)
""",
        },
        r"unittest|test_rates",
        also=r"run_jobs|itself",
    ),
    # A test waits for ever on a queue that nobody fills.
    "hung-test-timeout": Plant(
        "shell",
        "sh ci/check.sh",
        {
            "ci/check.sh": """\
#!/bin/sh
set -e
export PYTHONPATH=.
for t in tests/test_args.py tests/test_handoff.py tests/test_store.py; do
    echo "--- $t"
    timeout -k 2 4 python3 "$t"
done
echo "all tests passed"
""",
            "tests/test_args.py": """\
import subprocess
import sys

done = subprocess.run([sys.executable, "spool/main.py", "--bogus"], capture_output=True)
assert done.returncode == 2, done
print("ok: an unknown option is refused")
""",
            "tests/test_handoff.py": """\
import queue
import threading

from spool.handoff import hand_over

inbox, outbox = queue.Queue(), queue.Queue()
threading.Thread(target=hand_over, args=(inbox, outbox), daemon=True).start()
for item in ("a", "b", ""):
    inbox.put(item)
seen = [outbox.get() for _ in range(3)]
assert seen == ["a", "b", ""], seen
print("ok: all items arrive")
""",
            "tests/test_store.py": 'print("ok: store")\n',
            "spool/handoff.py": """\
def hand_over(inbox, outbox):
    while True:
        item = inbox.get()
        if not item:
            continue
        outbox.put(item)
""",
            "spool/main.py": """\
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--root")
parser.parse_args()
""",
        },
        r"test_handoff",
        also=r"check\.sh|itself",
    ),
    # The server that the smoke test needs does not survive its configuration.
    "smoke-server-bad-config": Plant(
        "shell",
        "bash ci/smoke.sh",
        {
            "ci/smoke.sh": """\
#!/bin/bash
set -u
port=28471
python3 server.py --config conf/smoke.json --port $port > server.log 2>&1 &
server=$!
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null' EXIT

up=no
for try in 1 2 3 4 5 6; do
    if curl -fs -o /dev/null "http://127.0.0.1:$port/healthz"; then
        up=yes
        break
    fi
    sleep 0.5
done
if [ $up = no ]; then
    echo "the server did not come up; its log:" >&2
    cat server.log >&2
    exit 1
fi
curl -fsS "http://127.0.0.1:$port/healthz"
""",
            "conf/smoke.json": """\
{
  "workers": 2,
  "greeting": "ok",
}
""",
            "server.py": """\
import argparse
import http.server
import json

parser = argparse.ArgumentParser()
parser.add_argument("--config")
parser.add_argument("--port", type=int)
options = parser.parse_args()
with open(options.config) as source:
    config = json.load(source)


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = config["greeting"].encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


http.server.HTTPServer(("127.0.0.1", options.port), Answer).serve_forever()
""",
        },
        r"server\.py",
        also=r"curl|smoke\.sh|itself",
        needs="curl",
    ),
    # The linter of the shell scripts, run by a pool of xargs.
    "shellcheck-in-xargs": Plant(
        "make",
        "make lint",
        {
            "Makefile": """\
lint: lint-marks lint-shell
\t@echo lint passed

# No script may say FIXME.
lint-marks:
\t! grep -rn FIXME scripts

lint-shell:
\tfind scripts -name '*.sh' | sort | xargs -n 1 -P 2 shellcheck --severity=warning

.PHONY: lint lint-marks lint-shell
""",
            "scripts/backup.sh": """\
#!/bin/sh
set -eu
tar cf "$1.tar" "$1"
""",
            "scripts/rotate.sh": """\
#!/bin/sh
cd "$1"
rm -f ./*.old
""",
            "scripts/stamp.sh": """\
#!/bin/sh
date +%F > "$1"
""",
        },
        r"shellcheck",
        also=r"xargs|make",
        needs="shellcheck",
    ),
    # The third migration adds a column that the second one already made.
    "migration-duplicate-column": Plant(
        "shell",
        "sh db/migrate.sh build.db",
        {
            "db/migrate.sh": """\
#!/bin/sh
set -e
db=$1
if ! version=$(sqlite3 "$db" "select max(id) from schema_version" 2>/dev/null); then
    echo "new database"
    sqlite3 "$db" "create table schema_version (id integer)"
    version=0
fi
for file in db/migrations/*.sql; do
    id=$(basename "$file" | cut -d_ -f1)
    if ! [ "$id" -gt "${version:-0}" ]; then
        continue
    fi
    echo "applying $file"
    sqlite3 -bail "$db" ".read $file"
    sqlite3 "$db" "insert into schema_version values ($id)"
done
echo "migrated"
""",
            "db/migrations/0001_builds.sql": "create table builds (id integer primary key, branch text);\n",
            "db/migrations/0002_owner.sql": "alter table builds add column owner text;\n",
            "db/migrations/0003_triage.sql": "alter table builds add column triaged integer;\nalter table builds add column owner text;\n",
            "db/migrations/0004_index.sql": "create index by_branch on builds (branch);\n",
        },
        r"0003",
        also=r"migrate\.sh|itself",
        needs="sqlite3",
    ),
    # The generator refuses its input; a probe of the compiler's options fails by design.
    "codegen-duplicate-id": Plant(
        "make",
        "make -k",
        {
            "Makefile": """\
LTO := $(shell echo 'int main(void) { return 0; }' | $(CC) -x c -facme-lto -o /dev/null - 2>/dev/null && echo -facme-lto)
CFLAGS = -O1 -Wall $(LTO)

all: decode selfcheck

decode: decode.o messages.o
\t$(CC) -o $@ decode.o messages.o

selfcheck: selfcheck.o
\t$(CC) -o $@ selfcheck.o

messages.c: spec/messages.txt tools/gen_messages.py
\tpython3 tools/gen_messages.py spec/messages.txt > $@

.DELETE_ON_ERROR:
""",
            "spec/messages.txt": "1 hello\n2 bye\n3 ping\n2 pong\n",
            "tools/gen_messages.py": """\
import sys

names = {}
with open(sys.argv[1]) as source:
    for number, line in enumerate(source, 1):
        ident, name = line.split()
        if ident in names:
            sys.exit(f"{sys.argv[1]}:{number}: id {ident} of {name} is already that of {names[ident]}")
        names[ident] = name
print("const char *const messages[] = {")
for ident, name in names.items():
    print(f'    [{ident}] = "{name}",')
print("};")
""",
            "decode.c": """\
#include <stdio.h>

extern const char *const messages[];

int main(void) { return puts(messages[1]) < 0; }
""",
            "selfcheck.c": "int main(void) { return 0; }\n",
        },
        r"gen_messages",
        also=r"make",
        needs="gcc",
    ),
    # The generator was changed and its output was not committed again.
    "generated-file-not-committed": Plant(
        "shell",
        "bash ci/verify_generated.sh",
        {
            "ci/verify_generated.sh": """\
#!/bin/bash
set -euo pipefail
mirror=$(git config --get acme.mirror || echo none)
echo "mirror: $mirror"
python3 tools/gen_table.py > src/table.h
echo "comparing the generated files with the committed ones"
git --no-pager diff --exit-code -- src
echo "generated files are up to date"
""",
            "tools/gen_table.py": """\
print("/* generated by tools/gen_table.py, do not edit */")
print("static const int squares[] = {")
for n in range(6):
    print(f"    {n * n},")
print("};")
""",
            "src/table.h": """\
/* generated by tools/gen_table.py, do not edit */
static const int squares[] = {
    0,
    1,
    4,
    9,
};
""",
        },
        r"git.*diff",
        also=r"verify_generated|itself",
        before="sh -c 'git init -q . && git add -A && git -c user.name=ci -c user.email=ci@example.com commit -qm base'",
        needs="git",
    ),
    # The hook finds the blank at the end of the line that the release script wrote.
    "hook-refuses-release": Plant(
        "shell",
        "sh ci/release.sh 1.4.0",
        {
            "ci/release.sh": """\
#!/bin/sh
set -e
version=$1
if git rev-parse -q --verify "refs/tags/v$version" > /dev/null; then
    echo "v$version is already released"
    exit 0
fi
chmod +x .githooks/pre-commit
git config core.hooksPath .githooks
git config user.name ci
git config user.email ci@example.com
echo "* $version, built by the release job " >> CHANGELOG
git add CHANGELOG
git commit -q -m "release: $version"
git tag "v$version"
echo "tagged v$version"
""",
            ".githooks/pre-commit": """\
#!/bin/sh
# Refuses blanks at line ends and left-over conflict marks.
git diff --cached --check
""",
            "CHANGELOG": "* 1.3.0\n",
        },
        r"diff.*--check|pre-commit",
        also=r"git commit|release\.sh|itself",
        before="sh -c 'git init -q . && git add -A && git -c user.name=ci -c user.email=ci@example.com commit -qm base'",
        needs="git",
    ),
    # The manual was renamed, the packing list was not.
    "tar-of-a-renamed-file": Plant(
        "shell",
        "sh ci/package.sh",
        {
            "ci/package.sh": """\
#!/bin/sh
set -eu
rm -rf stage dist
mkdir -p stage/bin dist
cc -O1 src/tool.c -o stage/bin/tool
cp src/tool-env stage/bin/
cp docs/*.md stage/
for f in stage/bin/*; do
    strip "$f" || true
done
tar -czf dist/tool.tar.gz -C stage bin README.md MANUAL.md
sha256sum dist/tool.tar.gz > dist/SHA256SUMS
echo "packaged"
""",
            "src/tool.c": "int main(void) { return 0; }\n",
            "src/tool-env": '#!/bin/sh\nexec env -i tool "$@"\n',
            "docs/README.md": "# tool\n",
            "docs/USER-MANUAL.md": "# How to use tool\n",
        },
        r"\btar\b",
        also=r"package\.sh|itself",
        needs="gcc",
    ),
    # The registry refuses the upload, each of the three times.
    "upload-refused": Plant(
        "shell",
        "bash ci/publish.sh",
        {
            "ci/publish.sh": """\
#!/bin/bash
# Publishes to the staging registry, which this job starts itself.
port=28473
token=$(sed -n 's/^token=//p' ci/registry.conf)
python3 ci/registry.py $port > registry.log 2>&1 &
registry=$!
trap 'kill $registry; wait $registry 2>/dev/null' EXIT
for i in $(seq 40); do
    (exec 3<> /dev/tcp/127.0.0.1/$port) 2>/dev/null && break
    sleep 0.2
done

tar cf pkg.tar src
for attempt in 1 2 3; do
    if curl -fsS -T pkg.tar -H "Authorization: Bearer $token" "http://127.0.0.1:$port/pkg.tar"; then
        echo "published"
        exit 0
    fi
    echo "attempt $attempt failed" >&2
    sleep 0.3
done
echo "giving up after 3 attempts" >&2
exit 1
""",
            "ci/registry.conf": "url=staging\ntoken=spring-2025\n",
            "ci/registry.py": """\
import http.server
import sys


class Registry(http.server.BaseHTTPRequestHandler):
    def do_PUT(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        good = self.headers.get("Authorization") == "Bearer autumn-2026"
        self.send_response(201 if good else 401)
        self.send_header("Content-Length", "0")
        self.end_headers()


http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Registry).serve_forever()
""",
            "src/main.c": "int main(void) { return 0; }\n",
        },
        r"curl",
        also=r"publish\.sh|itself",
        needs="curl",
    ),
    # A pool of three runs the golden cases; malformed input must be refused, and is.
    "golden-case-differs": Plant(
        "make",
        "make test",
        {
            "Makefile": """\
test: csv2tab
\tmkdir -p out
\tfind cases -name '*.csv' | sort | xargs -P 3 -n 1 sh cases/run_case.sh

csv2tab: csv2tab.c
\t$(CC) -O1 -Wall csv2tab.c -o $@

.PHONY: test
""",
            "csv2tab.c": """\
#include <stdio.h>

int main(void)
{
    int c, quoted = 0;
    while ((c = getchar()) != EOF) {
        if (c == '"')
            quoted = !quoted;
        else
            putchar(c == ',' ? '\\t' : c);
    }
    if (quoted) {
        fprintf(stderr, "csv2tab: a quote is not closed\\n");
        return 3;
    }
    return 0;
}
""",
            "cases/run_case.sh": """\
#!/bin/sh
# run_case.sh CASE.csv: converts and compares with CASE.tab, or expects an error without one.
base=${1%.csv}
name=$(basename "$base")
./csv2tab < "$1" > "out/$name.tab"
code=$?
if [ ! -f "$base.tab" ]; then
    [ $code -eq 3 ] || exit 1
    echo "ok   $name (refused)"
    exit 0
fi
if ! diff -u "$base.tab" "out/$name.tab"; then
    echo "FAIL $name"
    exit 1
fi
echo "ok   $name"
""",
            "cases/broken.csv": 'a,"b\n',
            "cases/plain.csv": "a,b,c\n",
            "cases/plain.tab": "a\tb\tc\n",
            "cases/quotedcomma.csv": 'a,"b,c"\n',
            "cases/quotedcomma.tab": "a\tb,c\n",
            "cases/two.csv": "a,b\nc,d\n",
            "cases/two.tab": "a\tb\nc\td\n",
        },
        r"quotedcomma",
        also=r"xargs|make",
        needs="gcc",
    ),
    # The tests run the command line; one of its commands crashes.
    "cli-crash-in-unittest": Plant(
        "unittest",
        "python3 -m unittest discover -s tests -v",
        {
            "stock/__main__.py": """\
import json
import sys


def main(arguments):
    if not arguments or arguments[0] not in ("count", "invoice"):
        print("usage: stock count|invoice FILE", file=sys.stderr)
        return 2
    with open(arguments[1]) as source:
        rows = json.load(source)
    if arguments[0] == "count":
        print(sum(row["number"] for row in rows))
    else:
        for row in rows:
            print(row["name"], row["number"] * row["price"])
    return 0


sys.exit(main(sys.argv[1:]))
""",
            "data/small.json": '[{"name": "bolt", "number": 3, "price": 2}, {"name": "nut", "number": 4}]\n',
            "tests/test_cli.py": """\
import subprocess
import sys
import unittest


def stock(*arguments, check=True):
    return subprocess.run([sys.executable, "-m", "stock", *arguments],
                          stdout=subprocess.PIPE, text=True, check=check)


class Cli(unittest.TestCase):
    def test_count(self):
        self.assertEqual(stock("count", "data/small.json").stdout, "7\\n")

    def test_invoice(self):
        self.assertIn("bolt 6", stock("invoice", "data/small.json").stdout)

    def test_unknown_command(self):
        self.assertEqual(stock("sell", check=False).returncode, 2)

    def test_usage(self):
        self.assertEqual(stock(check=False).returncode, 2)
""",
        },
        r"invoice",
        also=r"itself|unittest",
    ),
    # A test's own assertion fails; the program that another test runs fails as it must.
    "assertion-beside-expected-errors": Plant(
        "unittest",
        "python3 -m unittest discover -s tests",
        {
            "disk/units.py": """\
def human(size):
    for unit in ("B", "K", "M"):
        if size < 1000:
            return f"{size}{unit}"
        size //= 1024
    return f"{size}G"
""",
            "tools/healthcheck.sh": """\
#!/bin/sh
if [ ! -d "$1" ]; then
    echo "healthcheck: ERROR: $1: no such directory" >&2
    exit 3
fi
""",
            "tests/test_units.py": """\
import unittest

from disk.units import human


class Units(unittest.TestCase):
    def test_small(self):
        self.assertEqual(human(12), "12B")

    def test_just_below_the_next_unit(self):
        self.assertEqual(human(1023), "1023B")
""",
            "tests/test_health.py": """\
import subprocess
import unittest


class Health(unittest.TestCase):
    def test_present(self):
        self.assertEqual(subprocess.call(["sh", "tools/healthcheck.sh", "disk"]), 0)

    def test_absent(self):
        self.assertEqual(subprocess.call(["sh", "tools/healthcheck.sh", "no/such"]), 3)
""",
        },
        r"itself",
    ),
    # Valgrind finds the list that one test forgets to free.
    "valgrind-leak": Plant(
        "make",
        "make -k memcheck",
        {
            "Makefile": """\
CFLAGS = -g -O0 -Wall
TESTS = t_args t_list t_text
MEMCHECK = valgrind -q --leak-check=full --error-exitcode=9

memcheck: $(TESTS:%=memcheck-%) usage

$(TESTS:%=memcheck-%): memcheck-%: %
\t$(MEMCHECK) ./$<

# Without arguments it must fail.
usage: t_args
\tif ./t_args --bogus; then exit 1; fi

.PHONY: memcheck usage
""",
            "t_args.c": """\
#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc > 1) {
        fprintf(stderr, "t_args: unknown option %s\\n", argv[1]);
        return 2;
    }
    return 0;
}
""",
            "t_list.c": """\
#include <stdlib.h>

struct node { struct node *next; int value; };

static struct node *push(struct node *list, int value)
{
    struct node *n = malloc(sizeof *n);
    n->next = list;
    n->value = value;
    return n;
}

int main(void)
{
    struct node *list = push(push(NULL, 1), 2);
    int sum = list->value + list->next->value;
    free(list);
    return sum != 3;
}
""",
            "t_text.c": "int main(void) { return 0; }\n",
        },
        r"valgrind|memcheck.*t_list|t_list",
        also=r"make",
        needs="valgrind",
    ),
    # All tests pass, and cover too little.
    "coverage-below-the-gate": Plant(
        "shell",
        "bash ci/coverage.sh",
        {
            "ci/coverage.sh": """\
#!/bin/bash
set -e
mkdir -p cov
cd cov
gcc --coverage -O0 -c ../src/calc.c -o calc.o
gcc --coverage -O0 ../src/test_calc.c calc.o -o test_calc
./test_calc add
./test_calc bogus && exit 1
gcov calc.gcda > summary.txt
python3 ../ci/gate.py summary.txt 80
""",
            "ci/gate.py": """\
import re
import sys

with open(sys.argv[1]) as source:
    found = re.search(r"calc\\.c'\\nLines executed:([0-9.]+)%", source.read())
covered = float(found.group(1))
print(f"line coverage of calc.c: {covered} %, required: {sys.argv[2]} %")
if covered < float(sys.argv[2]):
    sys.exit("coverage is too low")
""",
            "src/calc.c": """\
int add(int a, int b)
{
    return a + b;
}

int power(int a, int n)
{
    int r = 1;
    while (n-- > 0)
        r *= a;
    return r;
}

int gcd(int a, int b)
{
    while (b) {
        int t = a % b;
        a = b;
        b = t;
    }
    return a;
}
""",
            "src/test_calc.c": """\
#include <stdio.h>
#include <string.h>

int add(int a, int b);

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "add") == 0)
        return add(1, 2) != 3;
    fprintf(stderr, "test_calc: no such test\\n");
    return 1;
}
""",
        },
        r"gate\.py",
        also=r"coverage\.sh|itself",
        needs="gcov",
    ),
    # The agent lacks the signing tool; the formatter that it lacks too is optional.
    "signing-tool-missing": Plant(
        "make",
        "make dist",
        {
            "Makefile": """\
dist: format dist/fw.bin.sig

# Only shown, never enforced.
format:
\t-acme-clang-format --dry-run src/fw.c

dist/fw.bin: src/fw.c
\tmkdir -p dist
\t$(CC) -c src/fw.c -o dist/fw.o
\tobjcopy -O binary dist/fw.o $@

dist/fw.bin.sig: dist/fw.bin
\tacme-fw-sign --key keys/dev.pem --in $< --out $@

.PHONY: dist format
""",
            "src/fw.c": "int reset(void) { return 42; }\n",
            "keys/dev.pem": "not a real key\n",
        },
        r"acme-fw-sign",
        also=r"itself|make",
        needs="gcc",
    ),
    # A header that the sources are said to need was removed.
    "no-rule-for-removed-header": Plant(
        "make",
        "make -j2 all",
        {
            "Makefile": """\
ZLIB := $(shell pkg-config --exists zlib-acme && pkg-config --libs zlib-acme)
REV := $(shell cat REVISION 2>/dev/null || echo dev)
CFLAGS = -O1 -DREV='"$(REV)"'

all: sender

sender: sender.o wire.o
\t$(CC) -o $@ sender.o wire.o $(ZLIB)

sender.o: sender.c wire.h
wire.o: wire.c wire.h wire_v1.h

.PHONY: all
""",
            "wire.h": "int wire(int value);\n",
            "wire.c": '#include "wire.h"\n\nint wire(int value) { return value ^ 0x55; }\n',
            "sender.c": '#include "wire.h"\n\nint main(void) { return wire(0x55); }\n',
        },
        r"itself",
        needs="gcc",
    ),
    # One worker of the process pool dies in the native extension.
    "pool-worker-segfaults": Plant(
        "shell",
        "bash ci/native.sh",
        {
            "ci/native.sh": """\
#!/bin/bash
set -e
gcc -shared -fPIC -O1 native/hash.c -o libhash.so
if ! ldconfig -p | grep -q libacmehash; then
    echo "no system libacmehash, using ours"
fi
python3 hash_all.py alpha beta "" gamma
""",
            "native/hash.c": """\
#include <stddef.h>

unsigned hash(const char *text, unsigned size)
{
    const char *last = size ? text + size - 1 : NULL;
    unsigned h = (unsigned char)*last;
    while (size--)
        h = h * 31 + (unsigned char)text[size];
    return h;
}
""",
            "hash_all.py": """\
import concurrent.futures
import ctypes
import sys


def one(word):
    lib = ctypes.CDLL("./libhash.so")
    data = word.encode()
    return lib.hash(data, len(data))


if __name__ == "__main__":
    with concurrent.futures.ProcessPoolExecutor(max_workers=2) as pool:
        for word, value in zip(sys.argv[1:], pool.map(one, sys.argv[1:])):
            print(repr(word), value)
""",
        },
        r"SIGSEGV|[Ss]egmentation|signal 11",
        also=r"hash_all|native\.sh|itself",
        needs="gcc",
    ),
    # One flaky test passes the second time, another one fails each time.
    "retry-does-not-help": Plant(
        "shell",
        "bash ci/tests.sh",
        {
            "ci/tests.sh": """\
#!/bin/bash
# Runs every test, at most three times.
mkdir -p state
export TZ=UTC
failed=()
for test in tests/t_*; do
    for attempt in 1 2 3; do
        if sh "$test"; then
            echo "PASS $test (attempt $attempt)"
            continue 2
        fi
        echo "retrying $test"
    done
    failed+=("$test")
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "failed: ${failed[*]}"
    exit 1
fi
""",
            "tests/t_cache": """\
# The first call finds a cold cache.
if [ ! -f state/warm ]; then
    touch state/warm
    echo "t_cache: timed out on a cold cache" >&2
    exit 1
fi
""",
            "tests/t_clock": """\
got=$(date -d @86400 +%Y/%m/%d)
if [ "$got" != 1970-01-02 ]; then
    echo "t_clock: got $got" >&2
    exit 1
fi
""",
            "tests/t_names": 'test -n "$(id -u)"\n',
        },
        r"t_clock",
        also=r"tests\.sh|itself",
    ),
    # The pool ends a job at its deadline: it waits for a reply that does not come.
    "pool-job-deadline": Plant(
        "python",
        "python3 ci/pool.py",
        {
            "ci/pool.py": """\
import concurrent.futures
import os
import signal
import subprocess
import sys

JOBS = {
    "headers": (["sh", "jobs/headers.sh"], False),
    "lint": (["sh", "jobs/lint.sh"], True),
    "relay": (["sh", "jobs/relay.sh"], False),
    "unit": (["python3", "jobs/unit.py"], False),
}
DEADLINE = 5


def run(name):
    command, optional = JOBS[name]
    process = subprocess.Popen(command, start_new_session=True)
    try:
        code = process.wait(timeout=DEADLINE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return name, optional, f"no end after {DEADLINE} s"
    return name, optional, f"exit {code}" if code else ""


bad = False
with concurrent.futures.ThreadPoolExecutor(max_workers=3) as pool:
    for name, optional, problem in pool.map(run, JOBS):
        print(f"{name}: {problem or 'ok'}{' (optional)' if optional else ''}", flush=True)
        bad = bad or (problem and not optional)
sys.exit(1 if bad else 0)
""",
            "jobs/headers.sh": "grep -L 'Copyright' src/*.c\ntrue\n",
            "jobs/lint.sh": "echo 'lint: src/relay.c: 1 warning' >&2\nexit 1\n",
            "jobs/relay.sh": """\
set -e
echo "relay: round trip"
python3 jobs/roundtrip.py
echo "relay: done"
""",
            "jobs/roundtrip.py": """\
import socket

client, relay = socket.socketpair()
client.sendall(b"PING 1")
request = relay.recv(64)
if request.endswith(b"\\n"):
    relay.sendall(b"PONG 1\\n")
print(client.recv(64))
""",
            "jobs/unit.py": 'print("unit: 12 tests passed")\n',
            "src/relay.c": "int relay(void) { return 0; }\n",
        },
        r"roundtrip|relay\.sh",
        also=r"itself|pool\.py",
    ),
    # The parser never ends on one input of the corpus, until its limit of CPU time.
    "fuzz-input-loops": Plant(
        "shell",
        "sh ci/fuzz_corpus.sh",
        {
            "ci/fuzz_corpus.sh": """\
#!/bin/sh
# Each input may be accepted (0) or refused (1), anything else is a bug.
cc -O1 src/parse.c -o tlvparse || exit 2
bugs=0
for input in corpus/*; do
    (ulimit -t 1; exec ./tlvparse "$input") > /dev/null
    code=$?
    case $code in
    0) echo "$input: accepted" ;;
    1) echo "$input: refused" ;;
    *) echo "$input: BUG (status $code)"; bugs=$((bugs + 1)) ;;
    esac
done
[ $bugs -eq 0 ]
""",
            "src/parse.c": """\
#include <stdio.h>

/* A record is a digit, its length, and as many bytes. */
int main(int argc, char **argv)
{
    static char text[256];
    FILE *in = argc > 1 ? fopen(argv[1], "r") : NULL;
    volatile unsigned at = 0;
    unsigned size;
    if (!in)
        return 1;
    size = fread(text, 1, sizeof text, in);
    while (at < size && text[at] != '\\n') {
        if (text[at] < '0' || text[at] > '9')
            return 1;
        at += text[at] == '0' ? 0 : text[at] - '0' + 1;
    }
    return 0;
}
""",
            "corpus/letters": "abc\n",
            "corpus/one": "3abc\n",
            "corpus/two": "1a2bc\n",
            "corpus/zero": "1a0\n",
        },
        r"tlvparse",
        also=r"fuzz_corpus|itself",
        needs="gcc",
    ),
    # The vendored source moved on, and the second patch no longer fits.
    "vendor-patch-rejected": Plant(
        "shell",
        "bash ci/vendor.sh",
        {
            "ci/vendor.sh": """\
#!/bin/bash
set -euo pipefail
cp -r vendor/tinylog build-tinylog
cd build-tinylog
for p in ../patches/*.diff; do
    if git apply --reverse --check "$p" 2>/dev/null; then
        echo "$p is already applied"
        continue
    fi
    echo "applying $p"
    patch -p1 -i "$p"
done
cc -c log.c -o log.o
""",
            "vendor/tinylog/log.c": """\
#include <stdio.h>

static int level = 1;

void log_line(int severity, const char *text)
{
    if (severity >= level)
        fprintf(stderr, "[%d] %s\\n", severity, text);
}
""",
            "patches/0001-level.diff": """\
--- a/log.c
+++ b/log.c
@@ -1,5 +1,5 @@
 #include <stdio.h>
 
-static int level = 1;
+static int level = 2;
 
 void log_line(int severity, const char *text)
""",
            "patches/0002-stdout.diff": """\
--- a/log.c
+++ b/log.c
@@ -5,5 +5,5 @@
 void log_line(int severity, const char *text)
 {
     if (severity >= level)
-        fprintf(stderr, "%s\\n", text);
+        fprintf(stdout, "%s\\n", text);
 }
""",
        },
        r"patch -p1",
        also=r"vendor\.sh|itself",
        needs="patch",
    ),
    # Without set -e the script goes on after the compiler, to a program that is not there.
    "compiler-error-without-set-e": Plant(
        "shell",
        "sh build.sh",
        {
            "build.sh": """\
#!/bin/sh
mkdir -p out
grep -q '^#define TRACE' src/config.h && echo "a tracing build"
cc -O1 -Wall src/store.c -c -o out/store.o
cc -O1 -Wall src/main.c -c -o out/main.o
cc out/main.o out/store.o -o out/keeper
echo "self test"
./out/keeper --selftest
""",
            "src/config.h": "#define SLOTS 16\n",
            "src/store.h": "struct store { int used; };\nint store_put(struct store *s, int key, int value);\n",
            "src/store.c": """\
#include "config.h"
#include "store.h"

int store_put(struct store *s, int value)
{
    if (s->used == SLOTS)
        return -1;
    s->used++;
    return value;
}
""",
            "src/main.c": """\
#include "store.h"

int main(void)
{
    struct store s = { 0 };
    return store_put(&s, 1, 0);
}
""",
        },
        r"store\.c",
        also=r"keeper|out/main\.o|\bld\b|collect2|itself",
        needs="gcc",
    ),
    # head has read enough, and pipefail takes the writer's SIGPIPE for a failure.
    "pipefail-and-head": Plant(
        "shell",
        "bash ci/manifest.sh",
        {
            "ci/manifest.sh": """\
#!/bin/bash
set -euo pipefail
seq -f 'objects/%06.0f.o' 60000 > objects.txt
if grep -q '^objects/000000.o' objects.txt; then
    echo "object 0 is reserved" >&2
    exit 1
fi
sort -r objects.txt | head -n 1 > last.txt
echo "last object: $(cat last.txt)"
wc -l objects.txt
""",
        },
        r"\bsort\b",
        also=r"manifest\.sh|itself",
    ),
    # The fixtures cannot be loaded; what the trap does after it fails too.
    "cleanup-fails-after-fixtures": Plant(
        "shell",
        "bash ci/integration.sh",
        {
            "ci/integration.sh": """\
#!/bin/bash
set -e
cleanup() {
    code=$?
    set +e
    echo "cleaning up"
    rm run/report.txt
    rmdir run
    exit $code
}
trap cleanup EXIT
mkdir -p run
echo started > run/journal
python3 ci/load_fixtures.py fixtures/*.csv > run/fixtures.sql
sqlite3 run/test.db < run/fixtures.sql
sqlite3 run/test.db 'select count(*) from fixture' > run/report.txt
cat run/report.txt
""",
            "ci/load_fixtures.py": """\
import csv
import sys

print("create table fixture (name text, quota integer);")
for path in sys.argv[1:]:
    with open(path, newline="") as source:
        for row in csv.DictReader(source):
            quota = int(row["quota"])
            print(f"insert into fixture values ('{row['name']}', {quota});")
""",
            "fixtures/groups.csv": "name,quota\nstaff,40\nguests,5\n",
            "fixtures/users.csv": "name,quota\nann,10\nbob,ten\n",
        },
        r"load_fixtures",
        also=r"integration\.sh|itself",
        needs="sqlite3",
    ),
}
