"""The seventh part of the plants of failing.py: made blind, by somebody who saw neither the rules nor what `tr` prints for them."""

from plant import Plant

MAKE_LIB = "OBJS := one.o two.o three.o four.o\nall: $(OBJS)\n%.o: %.c\n\tgcc -c -o $@ $<\n"
OK_C = "int {0}(void) {{ return 1; }}\n"

SEVENTH = {
    # make: one file of a sub-make does not compile.
    "sub-make-compile": Plant(
        "make",
        "make -j2",
        {
            "Makefile": "all: lib app\nlib app:\n\t$(MAKE) -C $@\n.PHONY: all lib app\n",
            "lib/Makefile": MAKE_LIB,
            "app/Makefile": MAKE_LIB,
            **{f"{d}/{n}.c": OK_C.format(n) for d in ("lib", "app") for n in ("one", "two", "three", "four")},
            "lib/three.c": "struct point { int x; };\nint three(struct point *p) { return p->y; }\n",
        },
        r"cc1 .*three\.c",
        r"gcc|make",
    ),
    # make: two objects define the same symbol.
    "link-twice-defined": Plant(
        "make",
        "make",
        {
            "Makefile": "-include config.mk\nVERSION := $(shell git describe 2>/dev/null || echo none)\napp: a.o b.o\n\t-rm old-app\n\tgcc -o $@ $^\n%.o: %.c\n\tgcc -c -o $@ $<\n",
            "a.c": "int limit = 1;\nint main(void) { return 0; }\n",
            "b.c": "int limit = 2;\n",
        },
        r"^ld",
        r"collect2|gcc|make",
    ),
    # bats: one test expects a failure, another one does not.
    "bats-convert": Plant(
        "bats",
        "bats convert.bats",
        {
            "convert.bats": '@test "refuses a missing file" {\n  run sh convert.sh none.txt\n  [ "$status" -ne 0 ]\n}\n'
            '@test "converts" {\n  sh convert.sh empty.txt\n}\n@test "has help" {\n  sh convert.sh --help\n}\n',
            "convert.sh": '[ "$1" != --help ] || exit 0\n[ -s "$1" ] || { echo "$1 is empty" >&2; exit 2; }\n',
            "empty.txt": "",
        },
        r"convert\.sh empty",
        r"bats",
    ),
    # rspec: an example's own expectation is wrong; programs fail as expected.
    "rspec-expectation": Plant(
        "rspec",
        "rspec spec",
        {
            "spec/tool_spec.rb": "describe 'tool' do\n  it 'refuses' do\n    expect(system('sh', 'tool.sh', 'bad')).to be false\n  end\n"
            "  it 'adds' do\n    expect(`sh tool.sh good`.to_i).to eq 3\n  end\nend\n",
            "tool.sh": '[ "$1" = good ] || exit 4\necho 2\n',
        },
        "itself",
    ),
    # phpunit: an assertion about the code that a program should end with.
    "phpunit-exporter": Plant(
        "phpunit",
        "phpunit tests",
        {
            "tests/ExportTest.php": "<?php\nclass ExportTest extends PHPUnit\\Framework\\TestCase {\n"
            "  function testRefuses() { exec('php export.php nowhere', $out, $code); $this->assertSame(3, $code); }\n"
            "  function testExports() { exec('php export.php orders', $out, $code); $this->assertSame(0, $code); }\n}\n",
            "export.php": "<?php\n$known = ['users' => 1];\nif (!isset($known[$argv[1]])) exit(3);\n",
        },
        r"export\.php orders",
        r"phpunit|php|sh",
    ),
    # go: a test runs a script that fails.
    "go-test-script": Plant(
        "go",
        "go test ./...",
        {
            "go.mod": "module p\n\ngo 1.19\n",
            "p.go": "package p\n",
            "p_test.go": 'package p\n\nimport (\n\t"os/exec"\n\t"testing"\n)\n\nfunc TestNone(t *testing.T) {\n\tif exec.Command("sh", "emit.sh", "none").Run() == nil {\n\t\tt.Fatal("none")\n\t}\n}\n\n'
            'func TestAll(t *testing.T) {\n\tif err := exec.Command("sh", "emit.sh", "all").Run(); err != nil {\n\t\tt.Fatal(err)\n\t}\n}\n',
            "emit.sh": "sleep 0.1\ncase $1 in none) exit 1 ;; all) exit 5 ;; esac\n",
        },
        r"emit\.sh all",
        r"p\.test|^go|sh",
        needs="go",
    ),
    # prove: one of three files of tests.
    "prove-one-file": Plant(
        "prove",
        "prove -j2 t",
        {
            "t/a.t": "use Test::More tests => 1;\nis(system('test', '-e', 'none') >> 8, 1);\n",
            "t/b.t": "use Test::More tests => 2;\nok(1);\nis(lc 'A', 'b', 'lower case');\n",
            "t/c.t": "use Test::More tests => 1;\nok(1);\n",
        },
        r"\bb\.t",
        r"prove",
    ),
    # node: one file of tests runs a packer that fails.
    "node-test-packer": Plant(
        "node",
        "node --test",
        {
            "test/a.test.js": "const test = require('node:test');\nconst cp = require('child_process');\ntest('refuses', () => { if (cp.spawnSync('sh', ['pack.sh', 'none']).status !== 2) throw new Error('accepted'); });\n",
            "test/b.test.js": "const test = require('node:test');\nconst cp = require('child_process');\ntest('packs', () => { cp.execFileSync('sh', ['pack.sh', 'dist']); });\n",
            "pack.sh": '[ "$1" = dist ] || exit 2\nsleep 0.1\necho "dist: no space" >&2\nexit 7\n',
        },
        r"pack\.sh dist",
        r"node|b\.test\.js",
    ),
    # unittest: a test of a command line runs it and verifies its code.
    "unittest-cli": Plant(
        "unittest",
        "python3 -m unittest -q test_cli",
        {
            "test_cli.py": "import subprocess, sys, unittest\n\n\nclass Cli(unittest.TestCase):\n    def test_bad(self):\n        self.assertEqual(subprocess.run([sys.executable, 'cli.py', 'bad']).returncode, 2)\n\n"
            "    def test_export(self):\n        subprocess.run([sys.executable, 'cli.py', 'export'], check=True)\n\n    def test_help(self):\n        subprocess.run([sys.executable, 'cli.py', 'help'], check=True)\n",
            "cli.py": "import sys\nif sys.argv[1] == 'bad':\n    sys.exit(2)\nif sys.argv[1] == 'export':\n    print({}['rows'])\n",
        },
        r"cli\.py export",
    ),
    # Lint: each linter runs, and the code is that of the sum.
    "lint-chain": Plant(
        "lint",
        "bash lint.sh",
        {
            "lint.sh": "failed=0\ngrep -rn TODO src && echo 'there are notes'\npython3 -m json.tool src/a.json > /dev/null || failed=1\nphp -l src/price.php || failed=1\nbash -n src/run.sh || failed=1\nperl -c src/x.pl || failed=1\nexit $failed\n",
            "src/a.json": "{}\n",
            "src/price.php": "<?php\nfunction price( { return 1; }\n",
            "src/run.sh": "echo run\n",
            "src/x.pl": "print 1;\n",
        },
        r"php.* -l",
    ),
    # A wrapper tolerates one code and replaces another one.
    "wrapper-code": Plant(
        "wrapper",
        "python3 wrap.py",
        {
            "wrap.py": "import subprocess, sys\nSOFT = {1}\nfor step in ('style', 'unit', 'docs'):\n    code = subprocess.run(['perl', 'step.pl', step]).returncode\n    if code and code not in SOFT:\n        sys.exit(70)\n",
            "step.pl": "my %code = (style => 1, unit => 2, docs => 0);\nselect(undef, undef, undef, 0.1);\nexit $code{$ARGV[0]};\n",
        },
        r"step\.pl unit",
    ),
    # Retries: no attempt works, and then the logs are not there.
    "retry-push": Plant(
        "retry",
        "bash push.sh",
        {
            "push.sh": 'retry() { local n; for n in 1 2 3; do "$@" && return 0; sleep 0.2; done; return 1; }\nif ! retry python3 push.py image; then\n  cp /no/such/push.log . || true\n  exit 1\nfi\n',
            "push.py": "import socket\nsocket.create_connection(('127.0.0.1', 9), 1)\n",
        },
        r"push\.py",
    ),
    # A watchdog in perl ends a program that hangs.
    "watchdog-perl": Plant(
        "time-out",
        "perl guard.pl",
        {
            "guard.pl": "system('test', '-e', 'none');\nmy $pid = fork;\nif (!$pid) { exec 'ruby', 'hang.rb' }\n$SIG{ALRM} = sub { kill 'TERM', $pid; waitpid $pid, 0; exit 1 };\nalarm 2;\nwaitpid $pid, 0;\nexit($? ? 1 : 0);\n",
            "hang.rb": "sleep 30\n",
        },
        r"hang\.rb",
    ),
    # A limit of the size of files.
    "ulimit-file-size": Plant(
        "limit",
        "bash export.sh",
        {
            "export.sh": "set -e\ncmp -s old.csv new.csv || echo changed\n( ulimit -f 8; python3 export.py )\necho exported\n",
            "export.py": "with open('new.csv', 'w') as out:\n    for n in range(100000):\n        out.write(f'{n};{n * n}\\n')\n",
        },
        r"export\.py",
    ),
    # A worker is killed as if memory were short; its parent exits 1.
    "killed-worker": Plant(
        "killed",
        "make site",
        {
            "Makefile": "site:\n\t@test -d cache || mkdir cache\n\tnode build.js\n",
            "build.js": "const cp = require('child_process');\nconst w = cp.fork('worker.js');\nw.on('exit', (code, signal) => { if (signal) { console.error('worker: ' + signal); process.exit(1); } });\n",
            "worker.js": "setTimeout(() => process.kill(process.pid, 'SIGKILL'), 300);\n",
        },
        r"worker\.js",
        r"node|make",
    ),
    # A server can't bind: the script waits for it in vain.
    "server-no-bind": Plant(
        "server",
        "bash e2e.sh",
        {
            "e2e.sh": "node hold.js & hold=$!\ntrap 'kill $hold' EXIT\nuntil [ -s port ]; do sleep 0.1; done\nnode api.js $(cat port) &\nfor n in 1 2 3 4 5 6 7 8; do test -e api.ready && break; sleep 0.2; done\n[ -e api.ready ] || { echo 'the API is not ready'; exit 1; }\n",
            "hold.js": "const s = require('net').createServer();\ns.listen(0, '127.0.0.1', () => require('fs').writeFileSync('port', String(s.address().port)));\n",
            "api.js": "const s = require('http').createServer();\ns.listen(+process.argv[2], '127.0.0.1', () => require('fs').writeFileSync('api.ready', '1'));\n",
        },
        r"api\.js",
    ),
    # npm: the bundler is not installed.
    "npm-no-bundler": Plant(
        "npm",
        "npm run build",
        {
            "package.json": '{ "name": "p", "version": "1.0.0", "scripts": { "prebuild": "test -e cache || mkdir cache", "build": "no-such-bundler src" } }\n',
        },
        r"no-such-bundler",
        r"npm",
    ),
    # make: a generator is not executable.
    "make-not-executable": Plant(
        "make",
        "make",
        {
            "Makefile": "all: table.h\ntable.h: gen\n\t-grep -q none gen\n\t./gen\n",
            "gen": "#!/bin/sh\necho > table.h\n",
        },
        r"itself|^(\./)?gen\b",
        r"make",
    ),
    # The cleanup fails after the migration.
    "cleanup-fails-too": Plant(
        "shell",
        "bash migrate.sh",
        {
            "migrate.sh": "set -euo pipefail\nwork=$(mktemp -d -p .)\ntrap 'rmdir $work' EXIT\ngit rev-parse --short HEAD 2>/dev/null || true\nsqlite3 $work/app.db 'create table users (id integer primary key);'\npython3 migrate.py $work/app.db\necho migrated\n",
            "migrate.py": "import sqlite3, sys\nsqlite3.connect(sys.argv[1]).execute('alter table orders add column total')\n",
        },
        r"migrate\.py",
    ),
    # xargs: shells of a pool compile, and one file is wrong.
    "xargs-syntax": Plant(
        "pool",
        "bash syntax.sh",
        {
            "syntax.sh": "set -eo pipefail\nls src/*.cc 2>/dev/null | wc -l || true\nfind src -name '*.c' | sort | xargs -P2 -I{} sh -c 'gcc -fsyntax-only {} && echo {} ok'\n",
            **{f"src/{n}.c": OK_C.format(n) for n in ("one", "two", "three", "five")},
            "src/four.c": '#include "no-such.h"\n',
        },
        r"cc1 .*four\.c",
        r"gcc|xargs|sh",
    ),
    # make -k: an ignored failure comes first, and other targets are still made.
    "make-k-ignored": Plant(
        "make",
        "make -k check",
        {
            "Makefile": "check: t1 t2 t3\nt1:\n\t-perl t/lint.pl\n\tperl t/t1.pl\nt2:\n\tperl t/t2.pl\nt3:\n\tperl t/t3.pl\n",
            "t/lint.pl": "exit 1;\n",
            "t/t1.pl": "exit 0;\n",
            "t/t2.pl": "select(undef, undef, undef, 0.1);\ndie 'the totals differ';\n",
            "t/t3.pl": "exit 0;\n",
        },
        r"t2\.pl",
        r"make",
    ),
    # git: a hook refuses the commit.
    "git-hook-line": Plant(
        "git",
        "git -c user.name=ci -c user.email=ci@example.org -c core.hooksPath=hooks commit -q -m change",
        {
            "prep.sh": "set -e\ngit init -q .\ngit add lint.py\nchmod +x hooks/pre-commit\n",
            "hooks/pre-commit": "#!/bin/sh\ngit rev-parse -q --verify HEAD > /dev/null || echo 'the first commit'\nfor file in $(git diff --cached --name-only); do\n  python3 lint.py $file || exit 1\ndone\n",
            "lint.py": "import sys\nfor line in open(sys.argv[1]):\n    if len(line) > 60:\n        sys.exit('a long line: ' + line)\n# This line is longer than the sixty characters that are allowed here.\n",
        },
        r"lint\.py",
        r"pre-commit|git",
        before="sh prep.sh",
    ),
    # npm: one of three workspaces.
    "npm-workspaces-b": Plant(
        "npm",
        "npm test --workspaces",
        {
            "package.json": '{ "name": "root", "version": "1.0.0", "private": true, "workspaces": ["a", "b", "c"] }\n',
            **{
                f"{n}/package.json": f'{{ "name": "{n}", "version": "1.0.0", "scripts": {{ "test": "node check-{n}.js" }} }}\n'
                for n in "abc"
            },
            "a/check-a.js": "require('child_process').spawnSync('test', ['-e', 'none']);\n",
            "b/check-b.js": "require('assert').strictEqual(1 + 1, 3);\n",
            "c/check-c.js": "",
        },
        r"check-b\.js",
        r"npm|sh",
    ),
    # go generate: a generator fails.
    "go-generate-sizes": Plant(
        "go",
        "go generate ./...",
        {
            "go.mod": "module p\n\ngo 1.19\n",
            "a.go": "package p\n\n//go:generate sh gen.sh colors\n//go:generate sh gen.sh sizes\n",
            "gen.sh": 'grep -q custom go.mod || echo default\n[ "$1" = colors ] || { echo "$1: no input" >&2; exit 3; }\n',
        },
        r"gen\.sh sizes",
        r"^go",
        needs="go",
    ),
    # java: the program tolerates a probe, and exits 1 by its own rule.
    "java-own-rule": Plant(
        "java",
        "java Main.java",
        {
            "Main.java": 'public class Main {\n  public static void main(String[] a) throws Exception {\n    int probe = new ProcessBuilder("sh", "probe.sh").start().waitFor();\n    new ProcessBuilder("uname").start().waitFor();\n'
            '    Thread.sleep(300);\n    System.out.println("probe " + probe + ", rows 3 of 4");\n    System.exit(1);\n  }\n}\n',
            "probe.sh": "exit 3\n",
        },
        "itself",
    ),
    # A runner of steps, each of which is a shell.
    "ci-steps": Plant(
        "ci",
        "python3 runner.py",
        {
            "runner.py": "import json, subprocess, sys\nfor step in json.load(open('steps.json')):\n    done = subprocess.run(['bash', '-eo', 'pipefail', '-c', step['run']])\n    if done.returncode and not step.get('optional'):\n        sys.exit(1)\n",
            "steps.json": '[{"run": "ls /no/such/cache", "optional": true}, {"run": "sh -c \'ruby report.rb draft | sort\'; ruby report.rb final | sort | head -n 3"}, {"run": "echo done"}]\n',
            "report.rb": "puts 'b', 'a'\nraise 'no totals'\n",
        },
        r"report\.rb final",
        r"bash",
    ),
    # A download works, but what it got is cut off.
    "unpack-cut-off": Plant(
        "shell",
        "dash fetch.sh",
        {
            "fetch.sh": 'set -e\nseq 20000 > data.txt\ntar -czf full.tgz data.txt\nhead -c 2000 full.tgz > mirror.tgz\ncurl -sf file:///no/such/mirror.tgz -o pkg.tgz || curl -sf "file://$PWD/mirror.tgz" -o pkg.tgz\nmkdir out\ntar -xzf pkg.tgz -C out\nout/install\n',
        },
        r"tar|gzip",
    ),
    # The disk is full for the result of a sort.
    "disk-full-rank": Plant(
        "shell",
        "bash rank.sh",
        {
            "rank.sh": "set -e\nln -s /dev/full ranked.txt\ngrep -v '^#' scores.txt > clean.txt || true\nperl rank.pl < clean.txt > ranked.txt && echo ranked || failed=1\necho 'to be sent' | grep -q reached || true\nexit ${failed:-0}\n",
            "rank.pl": 'my @a = sort { $a <=> $b } <STDIN>;\nprint @a;\nclose STDOUT or die "ranked: $!";\n',
            "scores.txt": "# scores\n3\n1\n",
        },
        r"rank\.pl",
    ),
    # A user may not write to the directory of releases.
    "permission-denied": Plant(
        "shell",
        "bash release.sh",
        {
            "release.sh": "as_user() { setpriv --reuid 65534 --regid 65534 --clear-groups \"$@\"; }\nmkdir -m 755 releases\nas_user test -w releases && echo 'may write'\nas_user touch /etc/release-of-ci.txt || exit 1\necho released\n",
        },
        r"touch",
    ),
    # The coverage is too low: nothing that the program ran failed for that reason.
    "coverage-rule": Plant(
        "rule",
        "python3 coverage.py",
        {
            "coverage.py": "import subprocess, sys, time\nsubprocess.run(['git', 'rev-parse', 'HEAD'], stderr=subprocess.DEVNULL)\nran = [subprocess.run([sys.executable, f'{n}.py']).returncode for n in ('one', 'two')]\nassert ran == [0, 0]\ntime.sleep(0.2)\nsys.exit('coverage 61 % is less than 80 %')\n",
            "one.py": "import os\n",
            "two.py": "import sys\n",
        },
        "itself",
    ),
}
