"""The sixth part of the failing builds and test runs: other workloads of CI, each with failures that do no harm.

The author of this part did not know the rules, and did not run the recorder before each cause was written down and verified by a
run without it.
"""

from plant import Plant

SIXTH = {
    # make: the third level of a recursive make lacks a generated header; probes for tools fail before.
    "make-deep-header": Plant(
        "make",
        "bash ci.sh",
        {
            "ci.sh": "set -e\nwhich no-such-ccache || echo 'no ccache'\nmake -j2 -C src CC=gcc\necho built\n",
            "src/Makefile": "ARCH := $(shell cat arch.txt 2>/dev/null || uname -m)\nall: util net\nutil net:\n\t$(MAKE) -C $@\n.PHONY: util net\n",
            "src/util/Makefile": "all: str.o\nstr.o: str.c\n\t$(CC) -O1 -c -o $@ $<\n",
            "src/util/str.c": "int str(void) { return 1; }\n",
            "src/net/Makefile": "all: tls\ntls:\n\t-rm stale.o\n\t$(MAKE) -C $@\n.PHONY: tls\n",
            "src/net/tls/Makefile": "all: cipher.o codec.o\n%.o: %.c\n\t$(CC) -Wall -c -o $@ $<\n",
            "src/net/tls/cipher.c": "int cipher(void) { return 2; }\n",
            "src/net/tls/codec.c": '#include "version_generated.h"\nint codec(void) { return VERSION; }\n',
        },
        r"cc1 .*codec\.c",
        r"gcc|make",
    ),
    # make: `-k` builds a second program after the first one does not link; the check of the manual is ignored.
    "make-k-archive-order": Plant(
        "make",
        "make -k -j2",
        {
            "Makefile": """\
all: report query manual
libstore.a: store.o
\tar rcs $@ $^
%.o: %.cc
\tg++ -O1 -c -o $@ $<
report: report.o libstore.a
\tg++ -o $@ libstore.a report.o
query: query.o libstore.a
\tsleep 0.3
\tg++ -o $@ query.o libstore.a
manual: report.cc
\t-grep -n '@page' report.cc > manual.txt
""",
            "store.cc": "int store(int x) { return x + 1; }\n",
            "report.cc": "int store(int);\nint main(int n, char **) { return store(n); }\n",
            "query.cc": "int store(int);\nint main(int n, char **) { return store(n + 1); }\n",
        },
        r"^ld",
        r"collect2|g\+\+|make|^sh",
    ),
    # node: a runner forks a process for each file of tests; one of them tests that a program ends with an error.
    "node-fork-runner": Plant(
        "node",
        "node run.js",
        {
            "run.js": """\
const { fork } = require('child_process');
const files = ['spec/cart.js', 'spec/login.js', 'spec/refund.js', 'spec/tax.js'];
let failed = 0;
function next() {
  const file = files.shift();
  if (!file) { console.log(`${failed} failed`); process.exitCode = failed ? 1 : 0; return; }
  fork(file).on('exit', (code) => { if (code !== 0) failed++; next(); });
}
next();
""",
            "spec/cart.js": "require('assert').equal([1, 2].length, 2);\n",
            "spec/login.js": "const r = require('child_process').spawnSync('sh', ['bin/login.sh', 'nobody']);\nrequire('assert').equal(r.status, 4);\n",
            "spec/refund.js": "require('assert').deepEqual({ amount: 10 - 2.5 }, { amount: 8 });\n",
            "spec/tax.js": "require('assert').ok(true);\n",
            "bin/login.sh": 'grep -q "^$1:" bin/users || exit 4\n',
            "bin/users": "admin:1\n",
        },
        r"refund\.js",
    ),
    # unittest: a test compares an output that is wrong, though its program succeeds; another one wants an exit status of 2.
    "unittest-output": Plant(
        "python",
        "bash ci.sh",
        {
            "ci.sh": "set -e\npython3 -m unittest -q test_cli\necho passed\n",
            "test_cli.py": """\
import subprocess
import unittest


def run(*args):
    return subprocess.run(["perl", "cli.pl", *args], capture_output=True, text=True)


class Cli(unittest.TestCase):
    def test_a_usage(self):
        self.assertEqual(run().returncode, 2)

    def test_b_sum(self):
        self.assertEqual(run("2", "3").stdout, "5\\n")

    def test_c_float(self):
        self.assertEqual(run("0.1", "0.2").stdout, "0.30\\n")

    def test_d_unknown(self):
        self.assertEqual(run("--unknown").returncode, 2)
""",
            "cli.pl": 'exit 2 if @ARGV != 2;\nprint $ARGV[0] + $ARGV[1], "\\n";\n',
        },
        r"unittest",
    ),
    # prove: a test script in sh prints `not ok`, and ends with 0.
    "prove-sh-not-ok": Plant(
        "perl",
        "prove -v --exec sh t",
        {
            "t/10-log.t": "echo 1..1\nif grep -q ERROR t/good.log; then echo 'not ok 1'; else echo 'ok 1'; fi\n",
            "t/20-round.t": """\
echo 1..2
check() { if [ "$2" = "$3" ]; then echo "ok $1"; else echo "not ok $1"; echo "# $2 is not $3"; fi; }
check 1 "$((7 / 2))" 3
check 2 "$(expr 9 / 2)" 5
""",
            "t/30-end.t": "echo 1..1\nsh t/refuse.sh || echo 'ok 1 - refuses'\n",
            "t/good.log": "INFO started\n",
            "t/refuse.sh": "exit 9\n",
        },
        "itself",
    ),
    # git: a chain of lints before a commit; shellcheck finds something, a lint that is not installed is skipped.
    "git-lint-chain": Plant(
        "git",
        "git commit -q -m backup",
        {
            "setup.sh": """\
git init -q .
git config user.email a@b
git config user.name a
cp pre-commit .git/hooks/pre-commit
chmod +x .git/hooks/pre-commit
git add tools
""",
            "pre-commit": '#!/bin/sh\nfailed=0\nfor hook in hooks.d/*; do\n  sh $hook || { echo "$hook failed"; failed=1; }\ndone\nexit $failed\n',
            "hooks.d/05-yaml": "python3 -c 'import no_such_yamllint' 2>/dev/null || { echo 'yaml: skipped'; exit 0; }\n",
            "hooks.d/10-whitespace": "git diff --cached --check\n",
            "hooks.d/20-shell": "git diff --cached --name-only --diff-filter=AM -- '*.sh' | xargs shellcheck\n",
            "hooks.d/30-todo": "git diff --cached | grep -n 'TODO' && echo 'note: a TODO is left'\nexit 0\n",
            "tools/backup.sh": "#!/bin/sh\nfor f in $(ls *.db); do cp $f /backup/$f; done\n",
            "tools/list.sh": "#!/bin/sh\nls\n",
        },
        r"shellcheck",
        r"xargs|20-shell|pre-commit|^git commit",
        "sh setup.sh",
        "shellcheck",
    ),
    # git: the hook of the other repository refuses a file that is too large.
    "git-push-refused": Plant(
        "git",
        "sh publish.sh",
        {
            "setup.sh": """\
set -e
git init -q --bare remote.git
cp pre-receive remote.git/hooks/pre-receive
chmod +x remote.git/hooks/pre-receive
git init -q work
cd work
git config user.email a@b
git config user.name a
head -c 5000 /dev/zero | tr '\\0' x > dump.sql
git add dump.sql
git commit -q -m dump
git remote add origin ../remote.git
""",
            "publish.sh": "cd work\ngit rev-parse -q --verify origin/main >/dev/null || echo 'first publication'\ngit push -q origin HEAD:main || exit 1\necho published\n",
            "pre-receive": '#!/bin/sh\nwhile read -r old new ref; do\n  git cat-file -e "$old" 2>/dev/null || echo "$ref is new"\n  perl ../policy.pl "$new" || exit 1\ndone\n',
            "policy.pl": """\
my ($commit) = @ARGV;
for (`git ls-tree -r -l $commit`) {
  my (undef, undef, undef, $size, $name) = split;
  die "$name has $size bytes, 4096 are allowed\\n" if $size > 4096;
}
""",
        },
        r"policy\.pl",
        r"pre-receive|git[ -](push|receive-pack)",
        "sh setup.sh",
        "git",
    ),
    # The shell: a script without `set -e` goes on after its compiler failed, until the program is not there.
    "script-goes-on": Plant(
        "shell",
        "bash build.sh",
        {
            "build.sh": "test -f version.txt || echo 0 > version.txt\ngcc -O1 -o app app.c\nstrip app\ncp README.md out 2>/dev/null\n./app --version\n",
            "app.c": '#include <stdio.h>\nint main(void) { puts("1.0"; }\n',
            "README.md": "app\n",
        },
        r"cc1 .*app\.c",
        r"gcc|strip|build\.sh|\./app",
    ),
    # Pipes: the first command of a pipe lacks a file.
    "pipe-tar-missing": Plant(
        "pipe",
        "bash package.sh",
        {
            "package.sh": """\
set -euo pipefail
rm dist/old.tgz 2>/dev/null || true
mkdir -p dist
diff -q README CHANGES > /dev/null || echo 'they differ'
tar -cf - README CHANGES LICENSE | gzip -9 | tee dist/app.tgz | sha256sum > dist/app.sha256
cat dist/app.sha256
""",
            "README": "read me\n",
            "CHANGES": "1.0\n",
        },
        r"^tar",
    ),
    # A wrapper turns exit statuses around: the third input should be refused, and is accepted.
    "wrapper-inverts": Plant(
        "wrapper",
        "bash negative.sh",
        {
            "negative.sh": "set -e\nfor input in bad/*.txt; do\n  sh expect_fail.sh python3 parse.py $input\ndone\n",
            "expect_fail.sh": 'if "$@"; then\n  echo "unexpected success: $*"\n  exit 1\nfi\necho "fails as expected: $*"\n',
            "parse.py": "import sys\nfor line in open(sys.argv[1]):\n    key, value = line.split('=')\n    int(value)\n",
            "bad/1-no-value.txt": "a\n",
            "bad/2-word.txt": "a=b\n",
            "bad/3-negative.txt": "a=-1\n",
            "bad/4-two.txt": "a=1=2\n",
        },
        r"expect_fail\.sh",
    ),
    # Retries: four attempts fail, and the cleanup fails as well.
    "retry-exhausted": Plant(
        "retry",
        "bash deploy.sh",
        {
            "deploy.sh": """\
set -e
cleanup() { rm session.lock; rmdir work; }
trap 'cleanup || true' EXIT
mkdir work && echo x > work/state
getent hosts registry.no-such.invalid || echo 'the registry is not in the hosts file'
retry() {
  local n
  for n in 1 2 3; do
    "$@" && return 0
    echo "attempt $n failed"
    sleep 0.2
  done
  "$@"
}
retry node upload.js artifact.bin
echo deployed
""",
            "upload.js": "const fs = require('fs');\nif (fs.statSync(process.argv[2]).size === 0) { console.error('the artifact is empty'); process.exitCode = 1; }\n",
            "artifact.bin": "",
        },
        r"upload\.js",
    ),
    # Time-outs: timeout(1) ends a make, the recipe of which waits for a lock that nobody gives up.
    "timeout-make-lock": Plant(
        "timeout",
        "bash ci.sh",
        {
            "ci.sh": "make -q report && echo 'up to date'\ntimeout 2 make report || { status=$?; echo \"make ended with $status\"; exit $status; }\n",
            "Makefile": "report: input\n\tpython3 wait_lock.py report.lock\n\ttouch $@\ninput:\n\t-cat old-input > $@\n",
            "wait_lock.py": "import os, sys, time\nwhile os.path.exists(sys.argv[1]):\n    time.sleep(0.05)\n",
            "report.lock": "4711\n",
        },
        r"^timeout|wait_lock\.py",
        r"make .*report",
    ),
    # Time-outs: a watchdog kills a job that prints nothing for a while.
    "watchdog-silence": Plant(
        "timeout",
        "node watchdog.js",
        {
            "watchdog.js": """\
const { spawn, spawnSync } = require('child_process');
if (spawnSync('pgrep', ['-f', 'no-such-import-is-running']).status !== 0) console.log('no other import runs');
const job = spawn('sh', ['import.sh'], { detached: true, stdio: ['ignore', 'pipe', 'inherit'] });
let timer;
const rearm = () => {
  clearTimeout(timer);
  timer = setTimeout(() => { console.log('no output for 1.2 s'); process.kill(-job.pid, 'SIGKILL'); }, 1200);
};
job.stdout.on('data', (data) => { process.stdout.write(data); rearm(); });
job.on('exit', (code, signal) => { clearTimeout(timer); process.exitCode = signal || code ? 1 : 0; });
rearm();
""",
            "import.sh": "cmp -s a.csv b.csv || echo 'a.csv has changed'\ntclsh import.tcl\necho imported\n",
            "import.tcl": "puts {rows: 100}\nflush stdout\nvwait never\n",
            "a.csv": "1\n",
            "b.csv": "2\n",
        },
        r"import\.(sh|tcl)",
    ),
    # Memory: the C++ compiler does not get what it needs.
    "memory-cc1plus": Plant(
        "memory",
        "bash build.sh",
        {
            "build.sh": "set -e\nulimit -v 110000\ngrep -c processor /no/cpuinfo || true\ng++ -O0 -c small.cc\ng++ -O2 -c large.cc\ng++ -o app small.o large.o\n",
            "small.cc": "int small() { return 1; }\n",
            "large.cc": '#include <regex>\n#include <iostream>\n#include <map>\nint main() { std::cout << std::regex_match("a", std::regex("a+")); }\n',
        },
        r"cc1plus .*large\.cc|cc1plus",
        r"g\+\+",
    ),
    # A process is killed from outside, as if memory were short; another one ends with an error, and is run again with success.
    "shard-killed": Plant(
        "killed",
        "python3 driver.py",
        {
            "driver.py": """\
import subprocess, sys

shards = {n: subprocess.Popen(["node", "shard.js", str(n)]) for n in range(3)}
reaper = subprocess.Popen(["perl", "reaper.pl", *(str(shard.pid) for shard in shards.values())])
failed = []
for n, shard in shards.items():
    status = shard.wait()
    if status == 75:
        status = subprocess.call(["node", "shard.js", str(n)])
    if status:
        failed.append(n)
reaper.terminate()
reaper.wait()
if failed:
    sys.exit(f"failed shards: {failed}")
""",
            "shard.js": """\
const fs = require('fs');
const n = process.argv[2];
if (n === '1' && !fs.existsSync('warm')) { fs.writeFileSync('warm', ''); process.exit(75); }
const kept = [];
let rounds = 0;
const work = () => {
  if (n === '2') kept.push(Buffer.alloc(8 << 20, 1));
  if (++rounds < 60) setTimeout(work, 20);
};
work();
""",
            "reaper.pl": """\
while (1) {
  for my $pid (@ARGV) {
    open(my $file, '<', "/proc/$pid/statm") or next;
    my (undef, $resident) = split ' ', (<$file> // '0 0');
    kill 'KILL', $pid if $resident > 50000;
  }
  select(undef, undef, undef, 0.05);
}
""",
        },
        r"shard\.js 2",
    ),
    # A configuration by hand: its probes fail, and the build fails later by a generator.
    "configure-generator": Plant(
        "probe",
        "sh bootstrap.sh",
        {
            "bootstrap.sh": "set -e\nsh configure\nmake\n",
            "configure": """\
try() { echo "int $1(); int main(void) { return $1(); }" > conftest.c; gcc -o conftest conftest.c 2>/dev/null; }
: > config.mk
for function in getpid strlcat_no_such arc4_no_such; do
  if try $function; then echo "HAVE_$function = 1" >> config.mk; fi
done
pkg-config --exists no-such-zstd || echo 'zstd: no'
echo 'int main(void) { return 3; }' > conftest.c
gcc -o conftest conftest.c && { ./conftest || echo 'int is small'; }
rm -f conftest conftest.c
""",
            "Makefile": "include config.mk\napp: main.o table.o\n\tgcc -o $@ $^\n%.o: %.c\n\tgcc -c -o $@ $<\ntable.c: table.in gen.tcl\n\ttclsh gen.tcl table.in > $@.new && mv $@.new $@\n",
            "main.c": "extern int table[]; int main(void) { return table[0]; }\n",
            "gen.tcl": 'set in [open [lindex $argv 0]]\nputs "int table\\[\\] = {"\nforeach {name value} [read $in] { puts "[expr {$value * 2}]," }\nputs "};"\n',
            "table.in": "one 1\ntwo 2\nthree drei\n",
        },
        r"gen\.tcl",
        r"^make|^sh .*gen\.tcl",
        needs="tclsh",
    ),
    # Servers: a daemon that reads jobs from a named pipe dies, so that the shell gets no answer.
    "fifo-daemon": Plant(
        "server",
        "bash queue.sh",
        {
            "queue.sh": """\
rm jobs results 2>/dev/null
mkfifo jobs results
perl daemon.pl < jobs > results & daemon=$!
exec 3> jobs 4< results
for job in 12/3 10/5 7/0 8/2; do
  echo "$job" >&3
  if ! read -r -t 5 answer <&4; then
    echo "no answer for $job"
    exit 1
  fi
  echo "$job = $answer"
done
exec 3>&-
wait $daemon
""",
            "daemon.pl": "$| = 1;\nwhile (<STDIN>) {\n  my ($a, $b) = m{(\\d+)/(\\d+)};\n  system('test', '-e', \"cache-$a\");\n  print $a / $b, \"\\n\";\n}\n",
        },
        r"daemon\.pl",
    ),
    # npm: a script names a program that nobody installed.
    "npm-missing-bundler": Plant(
        "npm",
        "npm run build",
        {
            "package.json": '{ "name": "p", "version": "1.0.0", "scripts": { "prebuild": "node version.js", "build": "no-such-bundler --minify src/index.js" } }\n',
            "version.js": "const r = require('child_process').spawnSync('git', ['describe', '--tags']);\nconsole.log(r.status === 0 ? String(r.stdout) : 'unknown version');\n",
            "src/index.js": "console.log(1);\n",
        },
        r"no-such-bundler",
        r"npm",
    ),
    # An entry point as images of containers have it: the program is not executable; a hook before it fails without harm.
    "entrypoint-not-executable": Plant(
        "container",
        "bash run.sh",
        {
            "run.sh": "set -e\nexport APP_ENV=test\nsh entrypoint.sh ./bin/server --listen 8080\n",
            "entrypoint.sh": """\
set -e
for hook in entrypoint.d/*.sh; do
  sh "$hook" || echo "warning: $hook ended with $?"
done
if [ "${1#-}" != "$1" ]; then set -- ./bin/server "$@"; fi
exec "$@"
""",
            "entrypoint.d/10-tune.sh": "cat /proc/sys/net/no-such\n",
            "entrypoint.d/20-config.sh": 'sed "s/ENV/$APP_ENV/" app.conf.in > app.conf\n',
            "app.conf.in": "env = ENV\n",
            "bin/server": "#!/bin/sh\necho serving\n",
        },
        r"entrypoint\.sh|bin/server",
    ),
    # A migration of a data base fails after steps whose failures are ignored.
    "migration-after-or-true": Plant(
        "shell",
        "bash migrate.sh",
        {
            "migrate.sh": """\
set -eu
rm app.db.bak 2>/dev/null || true
kill -0 999999999 2>/dev/null || true
sqlite3 app.db 'select version from meta' 2>/dev/null || true
for file in migrations/*.sql; do
  echo "$file"
  sqlite3 -bail app.db < "$file"
done
sqlite3 app.db .schema
""",
            "migrations/001.sql": "create table meta (version int);\ncreate table item (name text not null);\n",
            "migrations/002.sql": "insert into item values ('a'), ('b');\n",
            "migrations/003.sql": "alter table item add column price int not null;\n",
        },
        r"^sqlite3(?!.*select)",
        needs="sqlite3",
    ),
    # Two jobs at a time fail; the one that only advises fails first, and is without consequence.
    "advisory-lint": Plant(
        "parallel",
        "bash ci.sh",
        {
            "ci.sh": """\
perl lint.pl src & lint=$!
node unit.js & unit=$!
wait $lint || echo 'lint: advice only'
wait $unit || { echo 'the unit tests failed'; exit 1; }
echo passed
""",
            "lint.pl": "my @long = grep { length > 20 } do { local @ARGV = glob 'src/*'; <> };\nprint scalar(@long), \" long lines\\n\";\nexit(@long ? 1 : 0);\n",
            "unit.js": "setTimeout(() => { require('assert').strictEqual('1' + 1, 2); }, 700);\n",
            "src/a.txt": "a line that has more than 20 characters\n",
        },
        r"unit\.js",
    ),
    # A trap that cleans up fails, although all steps succeeded.
    "trap-cleanup-fails": Plant(
        "trap",
        "bash snapshot.sh",
        {
            "snapshot.sh": """\
set -e
trap 'rm -f stage/*.tmp; rmdir stage' EXIT
mkdir stage
if grep -q secret data.csv; then echo 'the data has secrets'; exit 2; fi
ls *.bak 2>/dev/null || echo 'no backup'
python3 snapshot.py data.csv stage
cat stage/a.tmp > snapshot.txt
echo done
""",
            "snapshot.py": "import sys\nopen(sys.argv[2] + '/a.tmp', 'w').write(open(sys.argv[1]).read())\nopen(sys.argv[2] + '/.index', 'w').write('1')\n",
            "data.csv": "1,2\n",
        },
        r"^rmdir",
    ),
    # A pool of workers: one module of many has a syntax error.
    "xargs-perl-syntax": Plant(
        "pool",
        "bash check.sh",
        {
            "check.sh": "set -e\nfind lib -name '*.orig' | grep . && exit 1\nfind lib -name '*.pm' -print0 | sort -z | xargs -0 -n1 -P2 perl -wc\necho fine\n",
            "lib/Cart.pm": "package Cart;\nsub new { return bless {} }\n1;\n",
            "lib/Item.pm": "package Item;\nsub name { return $_[0]{name} }\n1;\n",
            "lib/Money.pm": "package Money;\nsub add { return $_[0]{cents} + $_[1]{cents };\n1;\n",
            "lib/Order.pm": "package Order;\nsub id { return 7 }\n1;\n",
            "lib/Tax.pm": "package Tax;\nsub rate { return 0.19 }\n1;\n",
        },
        r"Money\.pm",
        r"xargs",
    ),
    # Python: a release script checks the status of one of its commands, and the tag exists already.
    "python-release-tag": Plant(
        "python",
        "python3 release.py 1.2.0",
        {
            "setup.sh": "set -e\ngit init -q .\ngit config user.email a@b\ngit config user.name a\ngit add notes.txt\ngit commit -q -m a\ngit tag v1.2.0\necho more >> notes.txt\n",
            "notes.txt": "notes\n",
            "release.py": """\
import subprocess
import sys


def git(*args, check=False):
    return subprocess.run(["git", *args], check=check, stdout=subprocess.PIPE, text=True)


if git("diff", "--quiet").returncode:
    git("commit", "-q", "-a", "-m", "release", check=True)
if git("describe", "--exact-match").returncode:
    print("this commit has no tag yet")
git("config", "--get", "user.signingkey")
git("tag", "v" + sys.argv[1], check=True)
git("log", "-1", check=True)
""",
        },
        r"git tag",
        before="sh setup.sh",
        needs="git",
    ),
    # npm: the script of a package fails that is run after its installation; the package that is optional fails without harm.
    "npm-postinstall": Plant(
        "npm",
        "npm install --offline --no-audit --no-fund",
        {
            "pack.sh": "set -e\n(cd accel && npm pack --offline)\n(cd native && npm pack --offline)\n",
            "package.json": '{ "name": "p", "version": "1.0.0", "dependencies": { "native": "file:native/native-1.0.0.tgz" },'
            ' "optionalDependencies": { "accel": "file:accel/accel-1.0.0.tgz" } }\n',
            "accel/package.json": '{ "name": "accel", "version": "1.0.0", "scripts": { "postinstall": "node detect.js" } }\n',
            "accel/detect.js": "console.log('no such GPU'); process.exit(3);\n",
            "native/package.json": '{ "name": "native", "version": "1.0.0", "scripts": { "postinstall": "node compile.js" } }\n',
            "native/compile.js": "setTimeout(() => { require('fs').readFileSync('binding.gyp'); }, 500);\n",
        },
        r"compile\.js",
        r"npm",
        "sh pack.sh",
    ),
    # A download fails, and a script without `set -e` unpacks what it did not get.
    "download-not-found": Plant(
        "download",
        "sh fetch_tool.sh",
        {
            "fetch_tool.sh": """\
python3 mirror.py & mirror=$!
until [ -s port ]; do sleep 0.1; done
if tool --version 2>/dev/null; then kill $mirror; exit 0; fi
curl -sSf -o tool.tar.gz "http://127.0.0.1:$(cat port)/tool-2.1.tar.gz"
kill $mirror
mkdir -p tool
tar -xzf tool.tar.gz -C tool || { echo 'the archive cannot be unpacked'; exit 1; }
tool/tool --version
""",
            "mirror.py": """\
import http.server, os
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
with open("port.new", "w") as out:
    out.write(str(server.server_port))
os.rename("port.new", "port")
server.serve_forever()
""",
        },
        r"^curl",
        r"^tar|gzip",
        needs="curl",
    ),
    # The size of files is limited: gzip is killed, and its producer gets SIGPIPE.
    "file-size-limit": Plant(
        "disk",
        "bash export.sh",
        {
            "export.sh": """\
set -eo pipefail
ulimit -f 64
mkdir out
grep -h ^limit limits.conf 2>/dev/null || echo 'no limits'
perl export.pl | gzip -1 > out/export.gz
echo done
""",
            "export.pl": "srand(7);\nprint join(',', map { int(rand(1e9)) } 1 .. 20), \"\\n\" for 1 .. 200000;\n",
        },
        r"^gzip",
        r"export\.pl",
    ),
    # Permissions: a user without rights installs a file.
    "permission-install": Plant(
        "permission",
        "bash deploy.sh",
        {
            "deploy.sh": "set -e\nsetpriv --reuid=65534 --regid=65534 --clear-groups sh install.sh\necho deployed\n",
            "install.sh": "set -e\nid -u no-such-user 2>/dev/null || id -u\nmkdir -p dest\ncat dest/app.conf || echo 'not installed yet'\ncp app.conf dest/app.conf\nls dest\n",
            "app.conf": "listen 80\n",
            "dest/README": "configuration\n",
        },
        r"^cp",
        r"install\.sh|setpriv",
        "chmod 755 . dest",
        "setpriv",
    ),
    # A signal: a monitor of the quota ends the job, all steps of which succeed.
    "quota-signal": Plant(
        "signal",
        "sh run.sh",
        {
            "run.sh": 'bash job.sh\nstatus=$?\necho "the job ended with $status"\nexit $status\n',
            "job.sh": """\
mkdir -p cache
perl quota.pl $$ cache 1000000 &
cmp -s cache/0 cache/1 || echo 'the cache is empty'
for n in $(seq 20); do
  head -c 200000 /dev/zero > cache/$n
  sleep 0.2
done
""",
            "quota.pl": """\
my ($pid, $place, $most) = @ARGV;
while (1) {
  my $size = 0;
  $size += -s $_ for glob "$place/*";
  if ($size > $most) { print "the quota is exceeded\\n"; kill 'TERM', $pid; exit 0; }
  select(undef, undef, undef, 0.1);
}
""",
        },
        r"job\.sh",
    ),
    # A gate: the coverage is too low, which is no failure of a child; its children fail without harm.
    "coverage-gate": Plant(
        "gate",
        "bash ci.sh",
        {
            "ci.sh": "set -e\npython3 gate.py coverage.txt 80\necho passed\n",
            "gate.py": """\
import subprocess
import sys

quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
if subprocess.call(["git", "rev-parse", "--verify", "no-such-branch"], **quiet):
    print("there is no base to compare with")
if subprocess.call(["grep", "-q", "skip-coverage", "message.txt"]):
    print("the message does not skip the gate")
values = [float(line.split()[1]) for line in open(sys.argv[1])]
mean = sum(values) / len(values)
if mean < float(sys.argv[2]):
    sys.exit(f"the coverage is {mean:.1f} %, {sys.argv[2]} % are wanted")
""",
            "coverage.txt": "a.py 90\nb.py 52\n",
            "message.txt": "add b\n",
        },
        r"gate\.py",
    ),
}
