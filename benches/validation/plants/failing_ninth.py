"""The ninth part of the plants of failing.py: written before anything of it was recorded, by somebody who had not read the rules."""

from plant import Plant

GOOD_C = "int {0}(void) {{ return 2; }}\n"

NINTH = {
    # scons builds two programs at once; one source has an error.
    "scons-compile": Plant(
        "scons",
        "scons -Q -j2",
        {
            "SConstruct": "env = Environment()\nenv.Program('one', 'one.c')\nenv.Program('two', 'two.c')\n",
            "one.c": "int main(void) { return 0; }\n",
            "two.c": "int main(void) { return undeclared; }\n",
        },
        r"cc1 .*two\.c",
        r"gcc|scons|sh",
    ),
    # doit: an action of a task fails after a task that it depends on.
    "doit-action": Plant(
        "wrapper",
        "doit",
        {
            "dodo.py": "def task_prepare():\n    return {'actions': ['ruby prepare.rb']}\ndef task_render():\n    return {'actions': ['ruby render.rb index'], 'task_dep': ['prepare']}\ndef task_publish():\n    return {'actions': ['ruby publish.rb'], 'task_dep': ['render']}\n",
            "prepare.rb": "sleep 0.1\n",
            "render.rb": "sleep 0.2\nraise 'no template'\n",
            "publish.rb": "",
        },
        r"render\.rb",
        r"doit|^sh",
    ),
    # snakemake: one of three jobs of a rule fails, the others are allowed to end.
    "snakemake-rule": Plant(
        "pool",
        "snakemake -c2 --quiet all",
        {
            "Snakefile": 'rule all:\n    input: expand("out/{s}.txt", s=["a", "b", "c"])\n\nrule call:\n    output: "out/{s}.txt"\n    shell: "perl call.pl {wildcards.s} > {output}"\n',
            "call.pl": 'select undef, undef, undef, 0.2;\nprint "x\\n";\nexit($ARGV[0] eq "b" ? 6 : 0);\n',
        },
        r"call\.pl b",
        r"snakemake|bash|^sh",
    ),
    # pre-commit with three local hooks; all of them run, one fails.
    "pre-commit-local": Plant(
        "pre-commit",
        "pre-commit run --all-files",
        {
            ".pre-commit-config.yaml": "repos:\n- repo: local\n  hooks:\n  - {id: spaces, name: spaces, language: system, entry: ruby spaces.rb}\n  - {id: licenses, name: licenses, language: system, entry: ruby licenses.rb}\n  - {id: names, name: names, language: system, entry: ruby names.rb}\n",
            "spaces.rb": "sleep 0.05\n",
            "licenses.rb": "sleep 0.05\nexit 2\n",
            "names.rb": "sleep 0.05\n",
        },
        r"licenses\.rb",
        r"pre-commit",
        before='sh -c "git init -q . && git add -A && git -c user.name=ci -c user.email=ci@example.org commit -q -m first"',
    ),
    # Robot Framework: a keyword starts a program and compares its status.
    "robot-process": Plant(
        "robot",
        "robot --output NONE --log NONE --report NONE suite.robot",
        {
            "suite.robot": "*** Settings ***\nLibrary    Process\n\n*** Test Cases ***\nImport\n    ${r}=    Run Process    sh    tool.sh    import\n    Should Be Equal As Integers    ${r.rc}    0\n\nExport\n    ${r}=    Run Process    sh    tool.sh    export\n    Should Be Equal As Integers    ${r.rc}    0\n\nDelete\n    ${r}=    Run Process    sh    tool.sh    delete\n    Should Be Equal As Integers    ${r.rc}    0\n",
            "tool.sh": "sleep 0.1\ntest $1 != export || exit 4\n",
        },
        r"tool\.sh export",
        r"robot",
    ),
    # DejaGnu compares what a program prints: the program ends well, the comparison fails.
    "dejagnu-output": Plant(
        "dejagnu",
        "runtest --tool calc",
        {
            "calc.test/calc.exp": 'spawn sh $srcdir/calc.sh\nexpect {\n  "42" { pass "answer" }\n  eof { fail "answer" }\n}\nwait\n',
            "calc.sh": "echo 41\n",
            "site.exp": "set tool calc\nset srcdir .\n",
        },
        "itself",
    ),
    # ant: a target runs a program with failonerror.
    "ant-exec": Plant(
        "ant",
        "ant -q dist",
        {
            "build.xml": '<project name="p" default="dist">\n<target name="probe"><exec executable="sh" failonerror="false"><arg line="probe.sh"/></exec></target>\n<target name="dist" depends="probe"><exec executable="sh" failonerror="true"><arg line="pack.sh dist"/></exec></target>\n</project>\n',
            "probe.sh": "exit 1\n",
            "pack.sh": "sleep 0.2\nexit 5\n",
        },
        r"pack\.sh dist",
        r"ant|java|probe",
    ),
    # bmake runs two targets at once; one generator fails.
    "bmake-jobs": Plant(
        "bmake",
        "bmake -j2 all",
        {
            "Makefile": "all: lexer.h tables.h\nlexer.h:\n\tlua5.4 lexer.lua > lexer.h\ntables.h:\n\tlua5.4 tables.lua > tables.h\n",
            "lexer.lua": "local t = os.clock()\nwhile os.clock() - t < 0.3 do end\nprint('x')\n",
            "tables.lua": "local t = os.clock()\nwhile os.clock() - t < 0.1 do end\nerror('no state 7')\n",
        },
        r"tables\.lua",
        r"bmake|sh",
    ),
    # Coverage: build, run, gcov, and a gate that awk decides.
    "gcov-gate": Plant(
        "rule",
        "bash cover.sh",
        {
            "cover.sh": "set -eu\ngcc --coverage -o app app.c\n./app\ngcov -n app.c > gcov.txt\nawk '/Lines executed/ { split($2, p, \":\"); if (p[2] + 0 < 90) exit 1 }' gcov.txt\necho covered\n",
            "app.c": '#include <stdio.h>\nint f(int x) {\n  if (x) {\n    puts("a");\n    puts("b");\n  }\n  return x;\n}\nint main(void) { return f(0); }\n',
        },
        r"^awk|^gawk|^mawk",
    ),
    # GNU parallel ends the other jobs at the first failure.
    "parallel-halt": Plant(
        "parallel",
        "parallel --halt now,fail=1 -j3 ruby shard.rb ::: 1 2 3 4 5 6",
        {
            "shard.rb": "if ARGV[0] == '2'\n  sleep 0.3\n  exit 4\nend\nsleep 5\n",
        },
        r"shard\.rb 2",
        r"parallel|perl",
    ),
    # expect talks to a program that dies before its prompt.
    "expect-prompt": Plant(
        "expect",
        "expect login.exp",
        {
            "login.exp": 'set timeout 5\nspawn python3 console.py\nexpect {\n  "login:" { send "root\\r" }\n  eof { puts "no prompt"; exit 1 }\n  timeout { exit 2 }\n}\nexpect eof\n',
            "console.py": "import sys, time\ntime.sleep(0.2)\nprint('booting')\nsys.exit(3)\n",
        },
        r"console\.py",
    ),
    # A database that refuses its configuration, a loop that waits for it, and a clean-up.
    "redis-start": Plant(
        "server",
        "bash start.sh",
        {
            "start.sh": 'redis-server ./redis.conf > redis.log 2>&1 &\nfor i in 1 2 3; do\n  redis-cli -p 16399 ping > /dev/null 2>&1 && ready=1 && break\n  sleep 0.3\ndone\nif [ -z "$ready" ]; then\n  tail -n 3 redis.log\n  exit 1\nfi\nredis-cli -p 16399 shutdown nosave\n',
            "redis.conf": "port 16399\nmaxmemory lots\n",
        },
        r"^redis-server",
        r"redis-cli",
        needs="redis-server",
    ),
    # perl's alarm is the time limit of a program that hangs.
    "perl-alarm": Plant(
        "time-out",
        "bash limits.sh",
        {
            "limits.sh": "set -e\nlimit() { perl -e 'alarm shift; exec @ARGV' \"$@\"; }\nlimit 5 ruby quick.rb\nlimit 1 ruby slow.rb\necho done\n",
            "quick.rb": "",
            "slow.rb": "sleep 30\n",
        },
        r"slow\.rb",
    ),
    # Three tries with a growing pause, then the script gives up.
    "retry-backoff": Plant(
        "retry",
        "sh push.sh",
        {
            "push.sh": "n=0\nuntil ruby push.rb; do\n  n=$((n + 1))\n  if [ $n -ge 3 ]; then echo 'giving up'; exit 75; fi\n  sleep 0.$n\ndone\nruby announce.rb\n",
            "push.rb": "sleep 0.05\nabort 'the registry does not answer'\n",
            "announce.rb": "",
        },
        r"push\.rb",
    ),
    # A trap on EXIT collects logs, tolerates its own failure and changes the status.
    "trap-exit": Plant(
        "shell",
        "bash nightly.sh",
        {
            "nightly.sh": "set -e\nfinish() { rc=$?; cp core.* saved 2> /dev/null; python3 collect.py || echo 'no logs'; if [ $rc -ne 0 ]; then exit 1; fi; }\ntrap finish EXIT\npython3 fetch.py\npython3 simulate.py --steps 9\npython3 plot.py\n",
            "fetch.py": "import time\ntime.sleep(0.1)\n",
            "simulate.py": "import time\ntime.sleep(0.2)\nraise ArithmeticError('diverged')\n",
            "collect.py": "raise SystemExit('disk is full')\n",
            "plot.py": "",
        },
        r"simulate\.py",
    ),
    # A coprocess of bash ends before it answers.
    "coprocess": Plant(
        "pipe",
        "bash ask.sh",
        {
            "ask.sh": 'coproc CALC { ruby calc.rb; }\nin=${CALC[1]} out=${CALC[0]}\nfor q in 1 2 3; do\n  echo $q >&$in 2> /dev/null || exit 1\n  read -r answer <&$out || exit 1\n  echo "$q: $answer"\n  sleep 0.1\ndone\n',
            "calc.rb": "$stdout.sync = true\nwhile (line = gets)\n  abort 'cannot divide' if line.to_i == 2\n  puts 10 / line.to_i\nend\n",
        },
        r"calc\.rb",
    ),
    # Ruby's forked workers: one raises, the parent counts the statuses.
    "ruby-forks": Plant(
        "pool",
        "ruby pool.rb",
        {
            "pool.rb": "pids = %w[north south east].map do |name|\n  fork do\n    sleep 0.2\n    raise 'no data' if name == 'south'\n    sleep 0.2\n  end\nend\nbad = pids.count { |pid| Process.wait2(pid)[1].exitstatus != 0 }\nexit 1 if bad > 0\n",
        },
        r"pool\.rb \(forked\)",
    ),
    # head closes the pipe early; with pipefail the writer's failure is the pipe's.
    "pipe-closed": Plant(
        "pipe",
        "bash first.sh",
        {
            "first.sh": "set -euo pipefail\npython3 dump.py | head -n 1 > first.txt\nwc -c first.txt\n",
            "dump.py": "for i in range(200000):\n    print('row', i)\n",
        },
        r"dump\.py",
    ),
    # zsh with err_exit and pipe_fail.
    "zsh-pipe": Plant(
        "zsh",
        "zsh report.zsh",
        {
            "report.zsh": "setopt err_exit pipe_fail\nload() { ruby load.rb | sort | uniq -c > counts.txt }\n[[ -e cache ]] || print 'no cache'\nload\nruby mail.rb\n",
            "load.rb": "puts 'a', 'b'\nsleep 0.1\nexit 9\n",
            "mail.rb": "",
        },
        r"load\.rb",
    ),
    # make compiles through ccache.
    "ccache-make": Plant(
        "make",
        "make CCACHE_DIR=.ccache",
        {
            "Makefile": "export CCACHE_DIR\nCC = ccache gcc\nall: a.o b.o\n%.o: %.c\n\t$(CC) -c $< -o $@\n",
            "a.c": GOOD_C.format("a"),
            "b.c": "struct s { int x; };\nint b(struct s *p) { return p->y; }\n",
        },
        r"cc1 .*b\.c",
        r"ccache|gcc|make",
        needs="ccache",
    ),
    # A build daemon like Gradle's: the client starts it, sends a task, and ends with the answer's status.
    "build-daemon": Plant(
        "daemon",
        "python3 client.py compile",
        {
            "client.py": "import os, socket, subprocess, sys, time\nif not os.path.exists('daemon.sock'):\n    subprocess.Popen([sys.executable, 'daemon.py'], start_new_session=True, stdin=subprocess.DEVNULL, stdout=open('daemon.log', 'w'), stderr=subprocess.STDOUT)\n    for _ in range(100):\n        if os.path.exists('daemon.sock'):\n            break\n        time.sleep(0.05)\ns = socket.socket(socket.AF_UNIX)\ns.connect('daemon.sock')\ns.sendall(sys.argv[1].encode())\nsys.exit(int(s.recv(16).decode()))\n",
            "daemon.py": "import os, socket, subprocess, time\nl = socket.socket(socket.AF_UNIX)\nl.bind('tmp.sock')\nl.listen()\nl.settimeout(3)\nos.rename('tmp.sock', 'daemon.sock')\ntry:\n    while True:\n        c, _ = l.accept()\n        task = c.recv(64).decode()\n        rc = subprocess.run(['perl', task + '.pl']).returncode\n        c.sendall(str(1 if rc else 0).encode())\n        c.close()\nexcept TimeoutError:\n    pass\n",
            "compile.pl": "select undef, undef, undef, 0.2;\ndie 'cannot find the symbol';\n",
        },
        r"compile\.pl",
        r"client\.py",
    ),
    # socat starts a handler for each connection; the handler dies, the client gets no answer.
    "socat-handler": Plant(
        "server",
        "bash e2e.sh",
        {
            "e2e.sh": "socat TCP-LISTEN:18471,reuseaddr,fork,bind=127.0.0.1 EXEC:'ruby handler.rb' &\nserver=$!\nsleep 0.5\npython3 client.py\nrc=$?\nkill $server\nexit $rc\n",
            "handler.rb": 'line = gets\nraise "unknown: #{line}"\n',
            "client.py": "import socket\ns = socket.create_connection(('127.0.0.1', 18471))\ns.sendall(b'hello\\n')\nassert s.recv(100) == b'world\\n'\n",
        },
        r"handler\.rb",
        r"client\.py",
        needs="socat",
    ),
    # valgrind finds an error in one of two programs.
    "valgrind-test": Plant(
        "valgrind",
        "make test",
        {
            "Makefile": "CHECK = valgrind -q --error-exitcode=9\ntest: plain leaky\n\t$(CHECK) ./plain\n\t$(CHECK) ./leaky\n%: %.c\n\tgcc -g -O0 -o $@ $<\n",
            "plain.c": "int main(void) { return 0; }\n",
            "leaky.c": "#include <stdlib.h>\nint main(void) { volatile int *p = malloc(4); int x = p[2]; free((void *)p); return x == 77; }\n",
        },
        r"leaky",
        r"make|^sh",
        needs="valgrind",
    ),
    # autoconf: m4 ends with an error in a macro of the project's own.
    "autoconf-macro": Plant(
        "autoconf",
        "sh bootstrap.sh",
        {
            "bootstrap.sh": "set -e\naclocal --version > /dev/null 2>&1 || echo 'no aclocal'\nautoconf -I m4\n./configure\n",
            "configure.ac": "AC_INIT([p], [1])\nm4_include([m4/version.m4])\nPROJECT_VERSION\nAC_OUTPUT\n",
            "m4/version.m4": "AC_DEFUN([PROJECT_VERSION], [m4_fatal([no version is set])])\n",
        },
        r"m4|autom4te",
        r"autoconf",
        needs="autoconf",
    ),
    # tmux runs the job in its server; the script waits for a channel and reads the status.
    "tmux-job": Plant(
        "daemon",
        "bash job.sh",
        {
            "job.sh": "T='tmux -S ./tmux.sock -f /dev/null'\n$T new-session -d 'ruby long.rb; echo $? > rc; tmux -S ./tmux.sock wait -S ended'\n$T wait ended\n$T kill-server 2> /dev/null\nexit $(cat rc)\n",
            "long.rb": "sleep 0.3\nexit 11\n",
        },
        r"long\.rb",
        needs="tmux",
    ),
    # script gives a program a terminal and returns its status.
    "script-terminal": Plant(
        "wrapper",
        "bash -e session.sh",
        {
            "session.sh": "script -qec 'ruby colors.rb' first.log > /dev/null\nscript -qec 'ruby wizard.rb --yes' second.log > /dev/null\necho recorded\n",
            "colors.rb": "puts $stdout.tty?\n",
            "wizard.rb": "sleep 0.2\nexit 8\n",
        },
        r"wizard\.rb",
        r"script|^sh|bash",
        needs="script",
    ),
    # A Debian package: the rules call a program of dpkg that misses its input.
    "debian-rules": Plant(
        "make",
        "fakeroot make -f debian/rules binary",
        {
            "debian/rules": "build:\n\tgcc -o tool tool.c\nbinary: build\n\tinstall -D tool debian/tmp/usr/bin/tool\n\t-strip debian/tmp/usr/bin/none\n\tmkdir -p debian/tmp/DEBIAN\n\tdpkg-gencontrol -Pdebian/tmp\n\tdpkg-deb --build debian/tmp ..\n",
            "debian/changelog": "tool (1.0) unstable; urgency=low\n\n  * First.\n\n -- CI <ci@example.org>  Sat, 28 Nov 2026 10:00:00 +0000\n",
            "tool.c": "int main(void) { return 0; }\n",
        },
        r"dpkg-gencontrol",
        r"make|fakeroot|^sh",
        needs="fakeroot",
    ),
    # PHP's own server answers 500; the server lives on, so that the client is what failed.
    "php-server-500": Plant(
        "server",
        "bash smoke.sh",
        {
            "smoke.sh": "php -S 127.0.0.1:18472 router.php > server.log 2>&1 &\nserver=$!\ntrap 'kill $server' EXIT\nfor i in 1 2 3 4 5 6 7 8 9; do curl -sf -o /dev/null http://127.0.0.1:18472/health && break; sleep 0.2; done\ncurl -sf -o orders.json http://127.0.0.1:18472/orders || exit 1\necho smoke passed\n",
            "router.php": "<?php\nif ($_SERVER['REQUEST_URI'] == '/health') { echo 'ok'; return true; }\nhttp_response_code(500);\n",
        },
        r"curl .*orders",
        needs="php",
    ),
    # A documentation test of Rust fails.
    "cargo-doctest": Plant(
        "cargo",
        "cargo test --offline --doc",
        {
            "Cargo.toml": '[package]\nname = "units"\nversion = "0.1.0"\nedition = "2021"\n',
            "src/lib.rs": "/// ```\n/// assert_eq!(units::twice(2), 4);\n/// ```\npub fn twice(x: u32) -> u32 { x * 2 }\n/// ```\n/// assert_eq!(units::thrice(2), 7);\n/// ```\npub fn thrice(x: u32) -> u32 { x * 3 }\n",
        },
        r"rustdoc|rust_out|doctest",
        r"^cargo",
    ),
    # go run: the program that was built ends with a status of its own.
    "go-run": Plant(
        "go",
        "sh seed.sh",
        {
            "seed.sh": "set -e\ngo env GOARCH > arch.txt\ngo run . seed\necho seeded\n",
            "go.mod": "module seed\n\ngo 1.19\n",
            "main.go": 'package main\n\nimport (\n\t"os"\n\t"time"\n)\n\nfunc main() {\n\ttime.Sleep(100 * time.Millisecond)\n\tos.Exit(3)\n}\n',
        },
        r"exe/seed|^seed\b",
        r"^go",
        needs="go",
    ),
}
