"""The eighth part of the plants of failing.py: written before anything of it was recorded, by somebody who knew the rules."""

from plant import Plant

OK_C = "int {0}(void) {{ return 1; }}\n"

EIGHTH = {
    # A wrapper like tox: an environment a program, and a summary at the end.
    "tox-like": Plant(
        "wrapper",
        "python3 envs.py",
        {
            "envs.py": "import subprocess, sys\nbad = []\nfor name in ('lint', 'unit', 'docs'):\n    if subprocess.run([sys.executable, f'{name}.py']).returncode:\n        bad.append(name)\nprint('failed:', bad)\nsys.exit(1 if bad else 0)\n",
            "lint.py": "import time\ntime.sleep(0.1)\n",
            "unit.py": "import sys, time\ntime.sleep(0.2)\nsys.exit(1)\n",
            "docs.py": "import time\ntime.sleep(0.1)\n",
        },
        r"unit\.py",
    ),
    # ctest: one test of four fails.
    "ctest-one": Plant(
        "ctest",
        "ctest --test-dir .",
        {
            "CTestTestfile.cmake": 'add_test(a "sh" "check.sh" "a")\nadd_test(b "sh" "check.sh" "b")\nadd_test(refuses "sh" "check.sh" "c")\nset_tests_properties(refuses PROPERTIES WILL_FAIL TRUE)\n',
            "check.sh": "case $1 in b) exit 3 ;; c) exit 4 ;; esac\n",
        },
        r"check\.sh b|^b$",
        r"ctest",
    ),
    # prove runs shell tests of the TAP kind.
    "prove-tap": Plant(
        "prove",
        "prove --exec sh t",
        {
            "t/one.t": "echo 1..1\necho ok 1\n",
            "t/two.t": "echo 1..1\ngrep -q x /dev/null || :\nperl pack.pl && echo ok 1 || echo not ok 1\n",
            "t/three.t": "echo 1..1\ntest -e none\necho ok 1\n",
            "pack.pl": "select undef, undef, undef, 0.1;\nexit 5;\n",
        },
        r"pack\.pl",
        r"two\.t|prove",
    ),
    # automake's parallel tests: a .log and a .trs file for each, and the total at the end.
    "automake-check": Plant(
        "make",
        "make check",
        {
            "Makefile": "TESTS = a.test b.test c.test\ncheck: $(TESTS:.test=.trs)\n\t@grep -l FAIL $^ > failed.txt; if [ -s failed.txt ]; then cat failed.txt; exit 1; fi\n%.trs: %.test\n\t@if sh $< > $*.log 2>&1; then echo PASS > $@; else echo FAIL > $@; fi\n",
            "a.test": "ruby -e '1'\n",
            "b.test": "ruby totals.rb\n",
            "c.test": "ruby -e '2'\n",
            "totals.rb": "sleep 0.1\nabort 'the totals differ'\n",
        },
        r"totals\.rb",
        r"b\.test|^sh|make",
    ),
    # kselftest: a list of programs, each with a result, and a status at the end.
    "kselftest": Plant(
        "shell",
        "bash run_kselftest.sh",
        {
            "run_kselftest.sh": "rc=0\nfor t in mount timers net; do\n  python3 $t.py > $t.log 2>&1\n  case $? in 0) echo ok $t ;; 4) echo ok $t SKIP ;; *) echo not ok $t; rc=1 ;; esac\ndone\nexit $rc\n",
            "mount.py": "raise SystemExit(4)\n",
            "timers.py": "import time\ntime.sleep(0.1)\nassert 1 == 2\n",
            "net.py": "import time\ntime.sleep(0.1)\n",
        },
        r"timers\.py",
    ),
    # GNU make like bmake: a loop over directories that stops at the first.
    "subdir-loop": Plant(
        "make",
        "make all",
        {
            "Makefile": "all:\n\t@for d in lib bin; do (cd $$d && $(MAKE) all) || exit 1; done\n",
            "lib/Makefile": "all:\n\tgcc -c -o a.o a.c\n",
            "bin/Makefile": "all:\n\tgcc -c -o m.o m.c\n",
            "lib/a.c": OK_C.format("a"),
            "bin/m.c": "int m(void) { return missing(; }\n",
        },
        r"cc1 m\.c",
        r"gcc|make",
    ),
    # A runner of recipes like just: set -euo pipefail in each.
    "just-like": Plant(
        "wrapper",
        "perl just.pl lint test",
        {
            "just.pl": "my %r = (lint => 'perl -c a.pl 2>/dev/null | cat', test => 'perl t.pl | sort | uniq -c');\nfor (@ARGV) { system('bash', '-euo', 'pipefail', '-c', $r{$_}) == 0 or exit($? >> 8); }\n",
            "a.pl": "1;\n",
            "t.pl": 'print "a\\n";\nselect undef, undef, undef, 0.1;\nexit 6;\n',
        },
        r"\bt\.pl",
        r"bash|perl",
    ),
    # A wrapper like gradlew: finds Java, then runs the build, and keeps its status.
    "gradlew-like": Plant(
        "shell",
        "sh gradlew build",
        {
            "gradlew": 'set -e\nif ! command -v java-of-project > /dev/null; then JAVA=java; fi\nuname -s > os.txt\n"$JAVA" Build.java "$@"\n',
            "Build.java": 'public class Build { public static void main(String[] a) throws Exception { if (new ProcessBuilder("git", "describe").start().waitFor() != 0) System.out.println("no version"); int c = new ProcessBuilder("sh", "compile.sh").inheritIO().start().waitFor(); if (c != 0) System.exit(1); } }\n',
            "compile.sh": "sleep 0.1\nexit 2\n",
        },
        r"compile\.sh",
        r"java|Build",
        needs="java",
    ),
    # rake: a task that runs a program.
    "rake-task": Plant(
        "rake",
        "rake dist",
        {
            "Rakefile": "task :clean do\n  system 'rmdir', 'none', err: File::NULL\nend\ntask dist: :clean do\n  sh 'sh', 'pack.sh', 'dist'\nend\n",
            "pack.sh": "sleep 0.1\nexit 3\n",
        },
        r"pack\.sh",
        r"rake",
    ),
    # A plan like terraform's: several at once, one is refused, the others end.
    "plan-parallel": Plant(
        "pool",
        "python3 apply.py",
        {
            "apply.py": "import concurrent.futures as f, subprocess, sys\ndef one(n):\n    return subprocess.run(['sh', 'resource.sh', n]).returncode\nwith f.ThreadPoolExecutor(3) as pool:\n    codes = list(pool.map(one, ['net', 'disk', 'vm', 'dns']))\nsys.exit(1 if any(codes) else 0)\n",
            "resource.sh": "sleep 0.2\n[ $1 != disk ] || exit 9\nsleep 0.2\n",
        },
        r"resource\.sh disk",
    ),
    # cargo nextest, or cargo test: one test of a binary panics.
    "cargo-test-panics": Plant(
        "cargo",
        "cargo test --offline",
        {
            "Cargo.toml": '[package]\nname = "p"\nversion = "0.1.0"\nedition = "2021"\n',
            "src/lib.rs": "#[test]\nfn good() {}\n#[test]\nfn bad() { assert_eq!(1, 2); }\n",
        },
        r"p-[0-9a-f]+|^p\b|test p",
        r"cargo",
    ),
    # go vet finds a wrong format.
    "go-vet-format": Plant(
        "go",
        "go vet ./...",
        {
            "go.mod": "module p\n\ngo 1.19\n",
            "p.go": 'package p\n\nimport "fmt"\n\nfunc F() { fmt.Printf("%d\\n", "x") }\n',
        },
        r"vet",
        r"^go",
        needs="go",
    ),
    # pre-commit: hooks one after the other, all run.
    "pre-commit-like": Plant(
        "wrapper",
        "ruby hooks.rb",
        {
            "hooks.rb": "ok = true\n%w[whitespace yaml types].each { |h| ok &= system('python3', \"#{h}.py\") }\nexit ok ? 0 : 1\n",
            "whitespace.py": "import time\ntime.sleep(0.1)\n",
            "yaml.py": "import sys, time\ntime.sleep(0.1)\nsys.exit('a.yaml: bad indentation')\n",
            "types.py": "import time\ntime.sleep(0.1)\n",
        },
        r"yaml\.py",
    ),
    # xargs -P: one of many.
    "xargs-many": Plant(
        "pool",
        "bash all.sh",
        {
            "all.sh": "set -o pipefail\nseq 1 6 | xargs -P2 -n1 sh one.sh\n",
            "one.sh": "sleep 0.05\n[ $1 != 4 ] || exit 3\n",
        },
        r"one\.sh 4",
        r"xargs",
    ),
    # find -exec +: one program for all files.
    "find-exec-plus": Plant(
        "shell",
        "sh -e check.sh",
        {
            "check.sh": "test -d none || echo 'no cache'\nfind src -name '*.py' -exec python3 check.py {} +\necho done\n",
            "check.py": "import sys\nfor name in sys.argv[1:]:\n    compile(open(name).read(), name, 'exec')\n",
            "src/a.py": "x = 1\n",
            "src/b.py": "x = = 1\n",
        },
        r"check\.py",
        r"find",
    ),
    # timeout ends a test that hangs; the script reports its own status.
    "timeout-hangs": Plant(
        "time-out",
        "bash e2e.sh",
        {
            "e2e.sh": "git rev-parse HEAD 2> /dev/null || true\nif ! timeout 1 python3 hang.py; then\n  echo 'the test failed'\n  exit 1\nfi\n",
            "hang.py": "import time\ntime.sleep(60)\n",
        },
        r"hang\.py|timeout 1",
    ),
    # set -e and a trap that prints the line and uploads logs.
    "trap-err-logs": Plant(
        "shell",
        "bash ci.sh",
        {
            "ci.sh": "set -Eeuo pipefail\ntrap 'echo failed at $LINENO; tar -czf logs.tgz *.log; exit 1' ERR\nperl configure.pl > c.log\nperl compile.pl > b.log\nperl test.pl > t.log\n",
            "configure.pl": "exit 0;\n",
            "compile.pl": "select undef, undef, undef, 0.1;\nexit 17;\n",
            "test.pl": "exit 0;\n",
        },
        r"compile\.pl",
    ),
    # A number of failed checks is the status.
    "count-failures": Plant(
        "shell",
        "bash checks.sh",
        {
            "checks.sh": "n=0\nfor c in size style links names; do python3 $c.py || n=$((n+1)); done\nsleep 0.1\nexit $n\n",
            "size.py": "",
            "style.py": "raise SystemExit(1)\n",
            "links.py": "raise SystemExit(1)\n",
            "names.py": "",
        },
        r"style\.py|links\.py",
    ),
    # Logs are collected after a failed step, and its status is kept.
    "keep-status": Plant(
        "shell",
        "dash nightly.sh",
        {
            "nightly.sh": "python3 suite.py; rc=$?\npython3 collect.py\ngzip -c suite.py > suite.gz\npython3 notify.py\nexit $rc\n",
            "suite.py": "import time\ntime.sleep(0.1)\nraise SystemExit(12)\n",
            "collect.py": "import time\ntime.sleep(0.7)\n",
            "notify.py": "raise SystemExit(1)\n",
        },
        r"suite\.py",
    ),
    # A rule of the script itself, after a tolerated advisory lint.
    "size-rule": Plant(
        "rule",
        "bash size.sh",
        {
            "size.sh": "curl -sf file:///no/such/base.txt -o base.txt || echo 20 > base.txt\nseq 100 > out.txt\nsize=$(wc -l < out.txt)\n[ $size -le $(cat base.txt) ]\n",
        },
        "itself",
    ),
    # A build step that writes a file fails, and the next one misses it.
    "codegen-missed": Plant(
        "shell",
        "sh build.sh",
        {
            "build.sh": "perl gen.pl -o table.h\ngcc -c main.c -o main.o\n",
            "gen.pl": "die 'no input';\n",
            "main.c": '#include "table.h"\nint main(void) { return 0; }\n',
        },
        r"gen\.pl",
        r"cc1|gcc",
    ),
    # make: a line that is ignored, and then a link that fails.
    "make-ignored-strip": Plant(
        "make",
        "make",
        {
            "Makefile": "all: app\napp: a.o\n\t-strip none.o\n\tgcc -o app a.o -lno-such-lib\na.o: a.c\n\tgcc -c a.c\n",
            "a.c": "int main(void) { return 0; }\n",
        },
        r"^ld",
        r"collect2|gcc|make",
    ),
    # make -j: a generator fails, jobs beside it go on.
    "make-j-generator": Plant(
        "make",
        "make -j3 all",
        {
            "Makefile": "all: one.txt two.txt three.txt\none.txt three.txt:\n\tsleep 0.4; echo > $@\ntwo.txt:\n\tpython3 gen.py two > $@\n",
            "gen.py": "import time\ntime.sleep(0.1)\nraise KeyError('two')\n",
        },
        r"gen\.py",
        r"sh -c|make",
    ),
    # cmake -P: a script that runs a process and reports.
    "cmake-script": Plant(
        "cmake",
        "cmake -P release.cmake",
        {
            "release.cmake": "execute_process(COMMAND sh probe.sh RESULT_VARIABLE p)\nexecute_process(COMMAND sh sign.sh RESULT_VARIABLE s)\nif(s)\n  message(FATAL_ERROR sign)\nendif()\n",
            "probe.sh": "exit 1\n",
            "sign.sh": "sleep 0.1\nexit 8\n",
        },
        r"sign\.sh",
    ),
    # ninja: one edge fails.
    "ninja-edge": Plant(
        "ninja",
        "ninja",
        {
            "build.ninja": "rule cc\n  command = gcc -c $in -o $out\nbuild a.o: cc a.c\nbuild b.o: cc b.c\n",
            "a.c": OK_C.format("a"),
            "b.c": "#error no\n",
        },
        r"cc1 b\.c",
        r"gcc|ninja",
    ),
    # node: a script of npm that runs two commands.
    "npm-and": Plant(
        "npm",
        "npm run verify",
        {
            "package.json": '{ "name": "p", "version": "1.0.0", "scripts": { "verify": "node lint.js && node types.js" } }\n',
            "lint.js": "",
            "types.js": "setTimeout(() => process.exit(2), 100);\n",
        },
        r"types\.js",
        r"npm|sh",
    ),
    # A program is killed by SIGSEGV in the middle of a script that goes on.
    "segfault-kept": Plant(
        "shell",
        "bash fuzz.sh",
        {
            "fuzz.sh": "st=0\nfor i in 1 2 3; do python3 target.py $i || st=1; done\necho ended\nexit $st\n",
            "target.py": "import os, sys\nif sys.argv[1] == '2':\n    os.kill(os.getpid(), 11)\n",
        },
        r"target\.py 2",
    ),
    # parallel jobs by & and wait.
    "wait-each": Plant(
        "pool",
        "bash jobs.sh",
        {
            "jobs.sh": "pids=()\nfor n in a b c; do python3 job.py $n & pids+=($!); done\nrc=0\nfor p in ${pids[@]}; do wait $p || rc=1; done\nexit $rc\n",
            "job.py": "import sys, time\ntime.sleep(0.2)\nsys.exit(sys.argv[1] == 'b')\n",
        },
        r"job\.py b",
    ),
    # systemd-run like: env and setsid around a program.
    "wrapped-run": Plant(
        "wrapper",
        "setsid -w nice -n 5 env A=1 bash run.sh",
        {
            "run.sh": "set -e\nruby warm.rb\nruby load.rb\n",
            "warm.rb": "exit 0\n",
            "load.rb": "sleep 0.1\nexit 4\n",
        },
        r"load\.rb",
    ),
    # unittest: a program in a test fails, the tests after it pass.
    "unittest-program": Plant(
        "unittest",
        "python3 -m unittest test_p",
        {
            "test_p.py": "import subprocess, sys, unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        subprocess.check_call([sys.executable, 'p.py', 'a'])\n    def test_b(self):\n        subprocess.check_call([sys.executable, 'p.py', 'b'])\n    def test_c(self):\n        subprocess.check_call([sys.executable, 'p.py', 'c'])\n",
            "p.py": "import sys, time\ntime.sleep(0.1)\nsys.exit(sys.argv[1] == 'b')\n",
        },
        r"p\.py b",
        r"unittest",
    ),
}
