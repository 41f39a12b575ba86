"""Builds and test runs that fail for a reason that is known, for benches/validation/failures.py.

`cause` is what failed first of its own account, as a pattern of its name; `itself`: COMMAND failed for a reason of its own, and
nothing that it ran. `also`: what may be named beside it, because it failed as well, or led from the cause to COMMAND.
"""

from failing_eighteenth import EIGHTEENTH
from failing_eighth import EIGHTH
from failing_eleventh import ELEVENTH
from failing_fifteenth import FIFTEENTH
from failing_fifth import FIFTH
from failing_fourteenth import FOURTEENTH
from failing_nineteenth import NINETEENTH
from failing_ninth import NINTH
from failing_seventeenth import SEVENTEENTH
from failing_seventh import SEVENTH
from failing_sixteenth import SIXTEENTH
from failing_sixth import SIXTH
from failing_tenth import TENTH
from failing_thirteenth import THIRTEENTH
from failing_twelfth import TWELFTH
from failing_twentieth import TWENTIETH
from plant import Plant

BAD_C = "int main(void) { return undeclared; }\n"
GOOD_C = "int f{n}(void) {{ return {n}; }}\n"
SLOW_C = "".join(f"int f{n}(int x) {{ return x * {n} + {n % 7}; }}\n" for n in range(9000))
CARGO = '[package]\nname = "p"\nversion = "0.1.0"\nedition = "2021"\n'
INVENTORY = "localhost ansible_connection=local ansible_python_interpreter=python3\n"
SERVER = "import http.server, sys\nhttp.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler).serve_forever()\n"

# The rules were made with the first part in view. Nobody looked at the second one before they were done.
FIRST = {
    "make-k": Plant(
        "make",
        "make -k",
        {
            "Makefile": "all: slow.o bad.o good.o\n%.o: %.c\n\tgcc -c -o $@ $<\nslow.o: slow.c\n\tgcc -O1 -c -o $@ $<\n",
            "bad.c": BAD_C,
            "good.c": GOOD_C.format(n=1),
            "slow.c": SLOW_C + BAD_C,
        },
        r"cc1 slow.c",
        r"gcc|make|cc1 bad.c",
    ),
    "make-link": Plant(
        "make",
        "make -j2",
        {
            "Makefile": "HAVE := $(shell pkg-config --exists no-such-library && echo yes)\nall: x\nx: a.o b.o\n\tgcc -o $@ $^\n%.o: %.c\n\tgcc -c -o $@ $<\n",
            "a.c": "int g(void); int main(void) { return g(); }\n",
            "b.c": GOOD_C.format(n=1),
        },
        r"^ld",
        r"collect2|gcc|make",
    ),
    "cmake-directory": Plant(
        "cmake",
        "cmake -S . -B b",
        {
            "CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(p C)\ninclude(CheckIncludeFile)\ncheck_include_file(no-such.h A)\n"
            "check_include_file(stdio.h B)\nadd_subdirectory(no-such)\n",
        },
        "itself",
    ),
    "cmake-compiler": Plant(
        "cmake",
        "env LDFLAGS=-lno-such-library cmake -S . -B b",
        {
            "CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(p C)\n",
        },
        r"^ld|collect2",
        r"collect2|gcc|cc|sh|make|cmake",
    ),
    "cmake-git": Plant(
        "cmake",
        "cmake -S . -B b",
        {
            "CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(p NONE)\nexecute_process(COMMAND git describe --tags OUTPUT_VARIABLE v ERROR_QUIET)\n"
            'execute_process(COMMAND uname -r OUTPUT_VARIABLE k)\nif(NOT v)\n  message(FATAL_ERROR "no version")\nendif()\n',
        },
        "itself",
    ),
    "meson-test": Plant(
        "meson",
        "meson test -C b",
        {
            "meson.build": "project('p', 'c')\ntest('good', executable('good', 'good.c'))\ntest('bad', executable('bad', 'bad.c'))\n",
            "good.c": "int main(void) { return 0; }\n",
            "bad.c": "int main(void) { return 3; }\n",
        },
        r"\bbad\b",
        r"meson|ninja",
        "meson setup b",
    ),
    "ninja-k": Plant(
        "ninja",
        "ninja -k 0 -j1",
        {
            "build.ninja": "rule r\n command = sh $in $out\nbuild a: r a.sh\nbuild b: r b.sh\nbuild c: r c.sh\n",
            "a.sh": "sleep 0.2\nexit 4\n",
            "b.sh": "touch $1\n",
            "c.sh": "sleep 0.6\nexit 5\n",
        },
        r"a\.sh|^sh -c 'sh a|c\.sh",
        r"c\.sh|a\.sh|ninja",
    ),
    "cargo-test": Plant(
        "cargo",
        "cargo test --offline -q",
        {
            "Cargo.toml": CARGO,
            "src/lib.rs": "#[test] fn good() {}\n#[test] fn bad() { assert_eq!(1 + 1, 3); }\n",
        },
        r"^p\b|deps/p-|\bbad\b|^test p",
        r"cargo",
    ),
    "go-build": Plant(
        "go",
        "go build ./...",
        {
            "go.mod": "module p\n\ngo 1.19\n",
            "main.go": "package main\n\nfunc main() { undefined() }\n",
        },
        r"compile",
        r"go build",
        needs="go",
    ),
    "npm-test": Plant(
        "npm",
        "npm test",
        {
            "package.json": '{ "name": "p", "version": "1.0.0", "scripts": { "test": "node test.js" } }\n',
            "test.js": "const cp = require('child_process');\nif (cp.spawnSync('grep', ['-q', 'no', 'package.json']).status !== 0) console.log('none');\nsetTimeout(() => { throw new Error('bad') }, 700);\n",
        },
        r"test\.js|npm test \(node|node",
        r"npm|sh",
    ),
    "pytest-helper": Plant(
        "pytest",
        "python3 -m pytest -q test_a.py",
        {
            "test_a.py": "import subprocess\ndef test_refuses():\n    assert subprocess.call(['sh', 'helper.sh']) == 3\ndef test_bad():\n    assert [1, 2] == [1, 3]\n",
            "helper.sh": "exit 3\n",
        },
        "itself",
    ),
    "ansible-ignored": Plant(
        "ansible",
        "ansible-playbook -i hosts site.yml",
        {
            "hosts": INVENTORY,
            "old.sh": "exit 7\n",
            "new.sh": "sleep 0.1\nexit 9\n",
            "site.yml": "- hosts: all\n  gather_facts: false\n  tasks:\n    - command: sh {{ playbook_dir }}/old.sh\n      ignore_errors: true\n"
            "    - command: sh {{ playbook_dir }}/new.sh\n",
        },
        r"new\.sh",
        r"ansible|python|sh -c|AnsiballZ|command",
    ),
    "sh-builtin": Plant(
        "sh",
        "sh -e check.sh",
        {
            "check.sh": 'grep -n no-such check.txt | cat\nn=3\n[ "$n" -gt 5 ]\n',
            "check.txt": "a\n",
        },
        "itself",
    ),
    "bash-pipefail": Plant(
        "bash",
        "bash -euo pipefail report.sh",
        {
            "report.sh": "sh gen.sh | sort | tail -n 1\necho done\n",
            "gen.sh": "echo b\nsleep 0.2\nexit 5\n",
        },
        r"gen\.sh",
        "",
    ),
    "xargs-pool": Plant(
        "pool",
        "sh all.sh",
        {
            "all.sh": "printf '%s\\n' 1 2 3 4 5 | xargs -n1 -P2 sh job.sh\n",
            "job.sh": "sleep 0.1\n[ $1 != 3 ] || exit 6\n",
        },
        r"job\.sh 3",
        r"xargs",
    ),
    "python-timeout": Plant(
        "time-out",
        "python3 ci.py",
        {
            "ci.py": "import subprocess\nsubprocess.run(['sh', 'quick.sh'])\nsubprocess.run(['sh', 'slow.sh'], timeout=1)\n",
            "quick.sh": "exit 1\n",
            "slow.sh": "exec sleep 30\n",
        },
        r"sleep 30|slow\.sh",
        "",
    ),
    "server-crash": Plant(
        "server",
        "bash e2e.sh",
        {
            "e2e.sh": "set -e\npython3 server.py &\nsleep 1.5\ncurl -sf http://127.0.0.1:9/health\n",
            "server.py": "import os, signal, time\ntime.sleep(0.3)\nos.kill(os.getpid(), signal.SIGSEGV)\n",
        },
        r"server\.py",
        r"curl",
    ),
    "node-timeout": Plant(
        "time-out",
        "node ci.js",
        {
            "ci.js": "const cp = require('child_process');\ncp.execFile('sleep', ['30'], { timeout: 1200 }, (e) => { if (e) process.exit(1); });\n",
        },
        r"sleep 30",
        "",
    ),
}
SECOND = {
    "make-ignored": Plant(
        "make",
        "make",
        {
            "Makefile": "all: one two\none:\n\t-sh tools.sh\n\tsleep 0.1\ntwo: one\n\tsh gen.sh > two.txt\n",
            "tools.sh": "exit 3\n",
            "gen.sh": "echo x\nexit 4\n",
        },
        r"gen\.sh",
        r"make|sh",
    ),
    "make-missing": Plant(
        "make",
        "make -s",
        {
            "Makefile": "all:\n\tgrep -q x Makefile\n\tno-such-program --all\n",
        },
        "itself",
    ),
    "cmake-required": Plant(
        "cmake",
        "cmake -S . -B b",
        {
            "CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(p C)\nfind_package(PkgConfig REQUIRED)\npkg_check_modules(X REQUIRED no-such-library)\n",
        },
        r"pkg-config",
        r"cmake",
    ),
    "cmake-build": Plant(
        "cmake",
        "cmake --build b -j2",
        {
            "CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(p C)\nadd_library(p good.c bad.c)\n",
            "good.c": GOOD_C.format(n=1),
            "bad.c": BAD_C,
        },
        r"cc1 .*bad\.c",
        r"cc|gcc|make|gmake|sh|cmake|ninja",
        "cmake -S . -B b",
    ),
    "meson-dependency": Plant(
        "meson",
        "meson setup b",
        {
            "meson.build": "project('p', 'c')\ncc = meson.get_compiler('c')\ncc.has_header('no-such.h')\ndependency('no-such-library')\n",
        },
        r"pkg-config|cmake|itself",
        r"meson|pkg-config|cmake",
    ),
    "ninja-generator": Plant(
        "ninja",
        "ninja",
        {
            "build.ninja": "rule gen\n command = python3 gen.py $out\nrule cc\n command = gcc -c -o $out $in\nbuild g.c: gen\nbuild x.o: cc x.c\nbuild g.o: cc g.c\n",
            "gen.py": "import sys\nsys.exit('no input')\n",
            "x.c": GOOD_C.format(n=1),
        },
        r"gen\.py",
        r"ninja|sh",
    ),
    "cargo-build": Plant(
        "cargo",
        "cargo build --offline",
        {
            "Cargo.toml": CARGO,
            "src/main.rs": 'fn main() { let x: u8 = "a"; }\n',
        },
        r"rustc",
        r"cargo",
    ),
    "cargo-script": Plant(
        "cargo",
        "cargo build --offline",
        {
            "Cargo.toml": CARGO,
            "src/main.rs": "fn main() {}\n",
            "build.rs": 'use std::process::Command;\nfn main() {\n    let _ = Command::new("pkg-config").args(["--exists", "no-such-library"]).status();\n'
            '    let _ = Command::new("uname").status();\n    panic!("no library");\n}\n',
        },
        r"build-script|build script|build\.rs",
        r"cargo",
    ),
    "go-test": Plant(
        "go",
        "go test ./...",
        {
            "go.mod": "module p\n\ngo 1.19\n",
            "p.go": "package p\n",
            "p_test.go": 'package p\n\nimport "testing"\n\nfunc TestBad(t *testing.T) { t.Fatal("bad") }\n',
        },
        r"p\.test|TestBad|^test p|^p$",
        r"go test|go",
        needs="go",
    ),
    "npm-chain": Plant(
        "npm",
        "npm run build",
        {
            "package.json": '{ "name": "p", "version": "1.0.0", "scripts": { "build": "node gen.js && node pack.js" } }\n',
            "gen.js": "",
            "pack.js": "process.exit(4)\n",
        },
        r"pack\.js",
        r"npm|sh",
    ),
    "pytest-server": Plant(
        "pytest",
        "python3 -m pytest -q test_a.py",
        {
            "server.py": SERVER,
            "test_a.py": "import subprocess, sys, time, pytest\n@pytest.fixture(scope='module')\ndef server():\n    p = subprocess.Popen([sys.executable, 'server.py'])\n"
            "    time.sleep(0.5)\n    yield p\n    p.terminate(); p.wait()\ndef test_bad(server):\n    assert server.pid == 0\n",
        },
        "itself",
    ),
    "ansible-block": Plant(
        "ansible",
        "ansible-playbook -i hosts site.yml",
        {
            "hosts": INVENTORY,
            "migrate.sh": "sleep 0.2\nexit 3\n",
            "site.yml": "- hosts: all\n  gather_facts: false\n  tasks:\n    - command: 'false'\n      failed_when: false\n    - command: 'true'\n"
            "    - shell: sh {{ playbook_dir }}/migrate.sh 2>&1\n    - command: 'true'\n",
        },
        r"migrate\.sh",
        r"ansible|python|sh -c|AnsiballZ|command",
    ),
    "wget-unzip": Plant(
        "sh",
        "sh fetch.sh",
        {
            "fetch.sh": "mkdir -p dist\nfor i in 1 2; do wget -q -O dist/pkg.tar.gz http://127.0.0.1:9/pkg.tar.gz && break; rm -f dist/pkg.tar.gz; sleep 0.2; done\n"
            "tar xf dist/pkg.tar.gz -C dist\n",
        },
        r"wget",
        r"tar",
    ),
    "python-pool": Plant(
        "pool",
        "python3 pool.py",
        {
            "pool.py": "import concurrent.futures as f, os, time\ndef work(i):\n    time.sleep(0.2)\n    if i == 2: os.abort()\n    return i\n"
            "if __name__ == '__main__':\n    with f.ProcessPoolExecutor(3) as pool: print(list(pool.map(work, range(9))))\n",
        },
        r"pool\.py",
        r"",
    ),
    "node-server": Plant(
        "server",
        "node e2e.js",
        {
            "e2e.js": "const cp = require('child_process');\nconst server = cp.spawn('python3', ['server.py'], { stdio: 'ignore' });\n"
            "setTimeout(() => { server.once('exit', () => setTimeout(() => process.exit(1), 100)); server.kill(); }, 800);\n",
            "server.py": SERVER,
        },
        "itself",
    ),
    "make-timeout": Plant(
        "time-out",
        "make check",
        {
            "Makefile": "check:\n\tsh quick.sh\n\ttimeout 1 sh hang.sh\n",
            "quick.sh": "exit 0\n",
            "hang.sh": "cat fifo\n",
        },
        r"hang\.sh|timeout|cat fifo",
        r"make",
        "mkfifo fifo",
    ),
    "watchdog": Plant(
        "time-out",
        "bash guard.sh",
        {
            "guard.sh": "sh job.sh &\njob=$!\n( sleep 1; kill $job ) &\nwait $job || exit 1\n",
            "job.sh": "exec sleep 30\n",
        },
        r"sleep 30|job\.sh",
        "",
    ),
    "git-clone": Plant(
        "sh",
        "bash get.sh",
        {
            "get.sh": "git clone -q http://127.0.0.1:9/tool.git || true\nuname -r\nmake -C tool\n",
        },
        r"git",
        r"make|git",
    ),
}
# Made after the second half was looked at, for what the rules changed since then.
THIRD = {
    "ctest": Plant(
        "ctest",
        "ctest",
        {
            "CTestTestfile.cmake": "add_test(good sh good.sh)\nadd_test(bad sh bad.sh)\nadd_test(last sh good.sh)\n",
            "good.sh": "sleep 0.1\n",
            "bad.sh": "sleep 0.2\nexit 3\n",
        },
        r"\bbad\b",
        r"ctest",
    ),
    "make-check": Plant(
        "make",
        "make -j3 check",
        {
            "Makefile": "check: t1 t2 t3\nt%:\n\tsh tests/$@.sh\n",
            "tests/t1.sh": "sleep 0.6\n",
            "tests/t2.sh": "sleep 0.2\ntest -e no-such-file\n",
            "tests/t3.sh": "sleep 0.4\n",
        },
        r"t2\.sh",
        r"make",
    ),
    "curl-load": Plant(
        "sh",
        "bash load.sh",
        {
            "load.sh": "set -e\ncurl -sfo data.json http://127.0.0.1:9/data.json || echo none\nuname -r\npython3 load.py data.json\n",
            "load.py": "import sys\nopen(sys.argv[1])\n",
        },
        r"curl",
        r"load\.py",
    ),
    "unittest": Plant(
        "unittest",
        "python3 -m unittest -q t",
        {
            "t.py": "import subprocess, unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        subprocess.run(['sh', '-c', 'exit 4'])\n        subprocess.run(['uname'])\n"
            "    def test_b(self):\n        self.assertEqual(1, 2)\n",
        },
        "itself",
    ),
    "configure": Plant(
        "configure",
        "sh ./configure",
        {
            "configure": "#!/bin/sh\nfor h in stdio.h no-such.h; do\n  echo \"#include <$h>\" >conftest.c\n  gcc -c conftest.c 2>conftest.err || bad=$h\n  sed 's/^/| /' conftest.err >>config.log\n"
            '  rm -f conftest.*\ndone\n[ -z "$bad" ] || { cat config.log; rm -f config.log; exit 1; }\n',
        },
        r"cc1 conftest\.c",
        r"gcc",
    ),
    "python-e2e": Plant(
        "server",
        "python3 e2e.py",
        {
            "server.py": "import http.server\nhttp.server.HTTPServer(('127.0.0.1', 18397), http.server.SimpleHTTPRequestHandler).serve_forever()\n",
            "e2e.py": "import subprocess, sys, time, urllib.request\np = subprocess.Popen([sys.executable, 'server.py'], stderr=subprocess.DEVNULL)\nfor i in range(200):\n    time.sleep(0.05)\n"
            "    try:\n        body = urllib.request.urlopen('http://127.0.0.1:18397/').read()\n        break\n    except OSError: pass\np.terminate(); p.wait()\nsys.exit(body != b'ok')\n",
        },
        "itself",
    ),
    "go-vet": Plant(
        "go",
        "go vet ./...",
        {
            "go.mod": "module p\n\ngo 1.19\n",
            "p.go": 'package p\n\nimport "fmt"\n\nfunc F() { fmt.Printf("%d", "a") }\n',
        },
        r"vet",
        r"go",
        needs="go",
    ),
    "cargo-abort": Plant(
        "cargo",
        "cargo test --offline -q",
        {
            "Cargo.toml": CARGO,
            "src/lib.rs": "#[test] fn good() {}\n#[test] fn bad() { std::process::abort() }\n",
        },
        r"^p\b|deps/p-|^test p",
        r"cargo",
    ),
    "make-tee": Plant(
        "sh",
        "sh ci.sh",
        {
            "ci.sh": "make 2>&1 | tee log\nif grep -q rror log; then exit 1; fi\n",
            "Makefile": "x.o: x.c\n\tgcc -c -o $@ $<\n",
            "x.c": BAD_C,
        },
        r"cc1 x\.c",
        r"gcc|make",
    ),
}
# Made before anybody looked at what the rules say of them, of kinds that are in no other part.
FOURTH = {
    "bash-trap": Plant(
        "bash",
        "bash deploy.sh",
        {
            "deploy.sh": "set -euo pipefail\ntrap 'rm -rf tmp; ls tmp 2>/dev/null || true' EXIT\nmkdir tmp\nsh first.sh\nsh second.sh\nsh third.sh\n",
            "first.sh": "sleep 0.1\n",
            "second.sh": "sleep 0.2\nexit 7\n",
            "third.sh": "",
        },
        r"second\.sh",
        r"rm|ls",
    ),
    "bash-err-trap": Plant(
        "bash",
        "bash deploy.sh",
        {
            "deploy.sh": "set -E\ntrap 'date; uname -r; exit 1' ERR\nbuild() { python3 check.py; }\ngrep -q no-such deploy.txt && echo there\nbuild\n",
            "deploy.txt": "x\n",
            "check.py": "import sys, time\ntime.sleep(0.2)\nsys.exit(3)\n",
        },
        r"check\.py",
        "",
    ),
    "bash-wait": Plant(
        "bash",
        "bash jobs.sh",
        {
            "jobs.sh": "python3 a.py & a=$!\npython3 b.py & b=$!\nwait $a\nwait $b\n",
            "a.py": "import sys, time\ntime.sleep(0.6)\nsys.exit(1)\n",
            "b.py": "import sys, time\ntime.sleep(0.3)\nsys.exit(9)\n",
        },
        r"b\.py",
        "",
    ),
    "dash-source": Plant(
        "dash",
        "dash build.sh",
        {
            "build.sh": "set -eu\ncmp -s a.txt b.txt || true\nls no-such 2>/dev/null || :\n. ./no-such.sh\n",
            "a.txt": "a\n",
            "b.txt": "b\n",
        },
        "itself",
    ),
    "dash-redirection": Plant(
        "dash",
        "dash -e build.sh",
        {
            "build.sh": "make -s probe || echo none\necho x > no-such-directory/out.txt\n",
            "Makefile": "probe:\n\tfalse\n",
        },
        "itself",
    ),
    "bash-test": Plant(
        "bash",
        "bash -e build.sh",
        {
            "build.sh": "python3 lint.py || true\n[[ -s out.txt ]]\n",
            "lint.py": "import sys, time\ntime.sleep(0.4)\nsys.exit(1)\n",
        },
        "itself",
    ),
    "sh-unread": Plant(
        "sh",
        "sh build.sh",
        {
            "build.sh": "sh gen.sh | sort > out.txt\n[ -s out.txt ] || exit 1\n",
            "gen.sh": "sleep 0.2\nexit 3\n",
        },
        r"gen\.sh",
        "",
    ),
    "sh-shebang": Plant(
        "sh",
        "sh -e run.sh",
        {
            "run.sh": "uname -r\n./tool\n",
            "tool": "#!/usr/bin/env no-such-interpreter\n",
        },
        r"env|tool",
        "",
        "chmod +x tool",
    ),
    "sh-lock": Plant(
        "sh",
        "sh run.sh",
        {
            "run.sh": "flock lock sleep 2 &\nsleep 0.3\nflock -n lock sh job.sh || exit 1\n",
            "job.sh": "",
        },
        r"^flock",
        "",
    ),
    "disk-full": Plant(
        "pipe",
        "bash -euo pipefail pack.sh",
        {
            "pack.sh": "head -c 3000000 /dev/urandom > data\ntar cf - data | gzip > /dev/full\n",
        },
        r"^gzip",
        r"tar",
    ),
    "timeout-tolerated": Plant(
        "time-out",
        "bash -e nightly.sh",
        {
            "nightly.sh": "timeout 0.5 sleep 5 || true\nuname -r\npython3 report.py\n",
            "report.py": "raise SystemExit('no data')\n",
        },
        r"report\.py",
        "",
    ),
    "timeout-kill": Plant(
        "time-out",
        "sh e2e.sh",
        {
            "e2e.sh": "python3 prepare.py\ntimeout -k 0.5 1 python3 deaf.py || { echo failed; exit 1; }\n",
            "prepare.py": "",
            "deaf.py": "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(30)\n",
        },
        r"deaf\.py|^timeout",
        "",
    ),
    "find-exec": Plant(
        "find",
        "find src -name *.json -exec python3 lint.py {} +",
        {
            "src/a.json": "{}\n",
            "src/b.json": "{\n",
            "lint.py": "import json, sys\nfor name in sys.argv[1:]: json.load(open(name))\n",
        },
        r"lint\.py",
        r"find",
    ),
    "find-xargs": Plant(
        "find",
        "bash -o pipefail all.sh",
        {
            "all.sh": "find src -name '*.py' -print0 | xargs -0 -n1 python3 -m py_compile\n",
            "src/a.py": "x = 1\n",
            "src/b.py": "x = = 1\n",
            "src/c.py": "",
        },
        r"py_compile src/b\.py|b\.py",
        r"xargs|find",
    ),
    "ninja-restat": Plant(
        "ninja",
        "ninja",
        {
            "build.ninja": "rule gen\n command = sh gen.sh $out\n restat = 1\nrule link\n command = sh link.sh $in $out\nbuild a.txt: gen\nbuild b.txt: gen\nbuild app: link a.txt b.txt\ndefault app\n",
            "gen.sh": "echo $1 > $1\n",
            "link.sh": "cat $1 $2 > /dev/null\nsleep 0.1\nexit 2\n",
        },
        r"link\.sh",
        r"ninja|sh",
    ),
    "ctest-fixtures": Plant(
        "ctest",
        "ctest",
        {
            "CTestTestfile.cmake": "add_test(setup sh setup.sh)\nset_tests_properties(setup PROPERTIES FIXTURES_SETUP db)\nadd_test(cleanup sh good.sh)\nset_tests_properties(cleanup PROPERTIES FIXTURES_CLEANUP db)\n"
            "add_test(query sh good.sh)\nset_tests_properties(query PROPERTIES FIXTURES_REQUIRED db)\nadd_test(other sh good.sh)\n",
            "good.sh": "sleep 0.1\n",
            "setup.sh": "grep -q no-such good.sh\nsleep 0.2\nexit 4\n",
        },
        r"setup",
        r"ctest",
    ),
    "cmake-custom": Plant(
        "cmake",
        "cmake --build b",
        {
            "CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(p NONE)\nadd_custom_command(OUTPUT g.txt COMMAND sh ${CMAKE_SOURCE_DIR}/gen.sh g.txt)\nadd_custom_target(all-of-it ALL DEPENDS g.txt)\n",
            "gen.sh": "ls no-such 2>/dev/null\nsleep 0.1\nexit 12\n",
        },
        r"gen\.sh",
        r"make|gmake|sh|cmake|ninja",
        "cmake -S . -B b",
    ),
    "meson-target": Plant(
        "meson",
        "meson compile -C b",
        {
            "meson.build": "project('p')\ncustom_target('g', output: 'g.txt', command: ['python3', files('gen.py'), '@OUTPUT@'], build_by_default: true)\n",
            "gen.py": "import os, subprocess\nsubprocess.run(['uname'])\nos._exit(5)\n",
        },
        r"gen\.py",
        r"meson|ninja|sh",
        "meson setup b",
    ),
    "cargo-cc": Plant(
        "cargo",
        "cargo build --offline",
        {
            "Cargo.toml": CARGO,
            "src/main.rs": "fn main() {}\n",
            "bad.c": BAD_C,
            "build.rs": 'use std::process::Command;\nfn main() {\n    let status = Command::new("gcc").args(["-c", "-o", "/dev/null", "bad.c"]).status().unwrap();\n    assert!(status.success());\n}\n',
        },
        r"cc1 .*bad\.c",
        r"gcc|build-script|cargo",
    ),
    "go-generate": Plant(
        "go",
        "go generate ./...",
        {
            "go.mod": "module p\n\ngo 1.19\n",
            "p.go": "package p\n\n//go:generate sh good.sh\n//go:generate sh gen.sh\n",
            "good.sh": "",
            "gen.sh": "sleep 0.1\nexit 3\n",
        },
        r"gen\.sh",
        r"go",
        needs="go",
    ),
    "go-timeout": Plant(
        "go",
        "go test -timeout 1s ./...",
        {
            "go.mod": "module p\n\ngo 1.19\n",
            "p.go": "package p\n",
            "p_test.go": 'package p\n\nimport (\n\t"os/exec"\n\t"testing"\n\t"time"\n)\n\nfunc TestA(t *testing.T) { exec.Command("false").Run() }\nfunc TestHang(t *testing.T) { time.Sleep(time.Minute) }\n',
        },
        r"p\.test|TestHang|^test p|^p$",
        r"go test|go",
        needs="go",
    ),
    "npm-workspaces": Plant(
        "npm",
        "npm run build --workspaces",
        {
            "package.json": '{ "name": "p", "version": "1.0.0", "workspaces": ["a", "b", "c"] }\n',
            **{
                f"{name}/package.json": f'{{ "name": "{name}", "version": "1.0.0", "scripts": {{ "build": "node {name}.js" }} }}\n'
                for name in "abc"
            },
            "a/a.js": "",
            "b/b.js": "process.exit(6)\n",
            "c/c.js": "",
        },
        r"\bb\.js",
        r"npm|sh",
    ),
    "pytest-xdist": Plant(
        "pytest",
        "python3 -m pytest -q -n 2 test_a.py",
        {
            "test_a.py": "import subprocess\ndef test_refuses():\n    assert subprocess.call(['sh', '-c', 'exit 3']) == 3\ndef test_other():\n    subprocess.run(['uname'], check=True)\n"
            "def test_bad():\n    assert sum([1, 2]) == 4\n",
        },
        "itself",
    ),
    "pytest-cli": Plant(
        "pytest",
        "python3 -m pytest -q test_cli.py",
        {
            "cli.py": "import sys\nsys.exit('no such option')\n",
            "test_cli.py": "import subprocess, sys\ndef test_cli():\n    subprocess.run([sys.executable, 'cli.py', '--all'], check=True)\ndef test_uname():\n    subprocess.run(['uname'], check=True)\n",
        },
        r"cli\.py --all|itself",
        "",
    ),
    "make-sub": Plant(
        "make",
        "make",
        {
            "Makefile": "all:\n\t-rm no-such\n\t$(MAKE) -C lib\n\t$(MAKE) -C app\n",
            "lib/Makefile": "all:\n\t-sh optional.sh\n\ttouch lib.a\n",
            "lib/optional.sh": "sleep 0.3\nexit 3\n",
            "app/Makefile": "all: a b\na:\n\t@true\nb: a\n\tsh build.sh\n",
            "app/build.sh": "sleep 0.1\nexit 5\n",
        },
        r"build\.sh",
        r"make|sh",
    ),
    "make-include": Plant(
        "make",
        "make",
        {
            "Makefile": "-include optional.mk\ninclude config.mk\nall:\n\techo $(X)\nconfig.mk:\n\tsh config.sh > $@.tmp && mv $@.tmp $@\noptional.mk:\n\tgrep no-such Makefile.in > $@\n",
            "config.sh": "uname -r\nsleep 0.1\nexit 8\n",
            "Makefile.in": "x\n",
        },
        r"config\.sh",
        r"make|grep",
    ),
    "make-output": Plant(
        "make",
        "make -j2 -Oline",
        {
            "Makefile": "all: a b c\na:\n\tsleep 0.6\nb:\n\tsh b.sh\nc:\n\tsleep 0.5; sh c.sh\n",
            "b.sh": "sleep 0.2\nexit 2\n",
            "c.sh": "",
        },
        r"b\.sh",
        r"make|sh",
    ),
    "make-javac": Plant(
        "make",
        "make",
        {
            "Makefile": "all: Good.class Bad.class\n%.class: %.java\n\tjavac $<\n",
            "Good.java": "class Good {}\n",
            "Bad.java": "class Bad { int x = y; }\n",
        },
        r"javac .*Bad\.java|Bad\.java|^javac",
        r"make",
        needs="javac",
    ),
    "prove": Plant(
        "prove",
        "prove t/",
        {
            "t/a.t": 'print "1..1\\nok 1\\n";\n',
            "t/b.t": "system('grep', '-q', 'no-such', 't/a.t');\nprint \"1..1\\nnot ok 1\\n\";\nexit 1;\n",
            "t/c.t": 'print "1..1\\nok 1\\n";\n',
        },
        r"b\.t",
        r"prove",
    ),
    "ansible-rescue": Plant(
        "ansible",
        "ansible-playbook -i hosts site.yml",
        {
            "hosts": INVENTORY,
            "old.sh": "sleep 0.1\nexit 3\n",
            "final.sh": "sleep 0.1\nexit 5\n",
            "site.yml": "- hosts: all\n  gather_facts: false\n  tasks:\n    - block:\n        - command: sh {{ playbook_dir }}/old.sh\n      rescue:\n        - command: uname\n"
            "    - command: sh {{ playbook_dir }}/final.sh\n",
        },
        r"final\.sh",
        r"ansible|python|AnsiballZ|command",
    ),
    "ansible-fail": Plant(
        "ansible",
        "ansible-playbook -i hosts site.yml",
        {
            "hosts": INVENTORY,
            "site.yml": "- hosts: all\n  gather_facts: false\n  tasks:\n    - command: grep -q no-such {{ playbook_dir }}/hosts\n      register: found\n      failed_when: false\n    - command: uname\n"
            "    - fail:\n        msg: not found\n      when: found.rc != 0\n",
        },
        "itself",
    ),
    "tox": Plant(
        "tox",
        "tox -q",
        {
            "tox.ini": "[tox]\nenvlist = a\nskipsdist = true\n[testenv]\nskip_install = true\ncommands =\n  - python opt.py\n  python check.py\n",
            "opt.py": "raise SystemExit(3)\n",
            "check.py": "raise SystemExit(4)\n",
        },
        r"check\.py",
        r"tox",
    ),
    "nox": Plant(
        "nox",
        "nox --no-venv",
        {
            "noxfile.py": "import nox\n@nox.session\ndef check(session):\n    session.run('sh', 'opt.sh', success_codes=[0, 3])\n    session.run('python3', 'bad.py')\n",
            "opt.sh": "exit 3\n",
            "bad.py": "raise SystemExit(2)\n",
        },
        r"bad\.py",
        r"nox",
    ),
    "parallel": Plant(
        "pool",
        "parallel -j2 sh job.sh ::: 1 2 3 4 5",
        {
            "job.sh": "sleep 0.2\n[ $1 != 3 ] || exit 6\n",
        },
        r"job\.sh 3",
        r"parallel|perl",
    ),
    "node-pool": Plant(
        "pool",
        "node pool.js",
        {
            "pool.js": "const cp = require('child_process');\nconst jobs = ['a', 'b', 'c'].map((name) => cp.spawn('python3', ['job.py', name], { stdio: 'ignore' }));\n"
            "let failed = false;\njobs.forEach((job) => job.on('exit', (code, signal) => { if (code) { failed = true; jobs.forEach((other) => other.kill()); } }));\nprocess.on('exit', () => { process.exitCode = failed ? 1 : 0; });\n",
            "job.py": "import sys, time\ntime.sleep(0.4 if sys.argv[1] == 'b' else 5)\nsys.exit(3)\n",
        },
        r"job\.py b",
        "",
    ),
    "python-raise": Plant(
        "pool",
        "python3 pool.py",
        {
            "pool.py": "import multiprocessing, time\ndef work(n):\n    time.sleep(0.1)\n    return 10 // (n - 2)\nif __name__ == '__main__':\n    with multiprocessing.Pool(2) as pool: print(pool.map(work, range(6)))\n",
        },
        "itself",
    ),
    "supervisor": Plant(
        "server",
        "python3 supervisor.py",
        {
            "supervisor.py": "import subprocess, sys, time\nservers = [subprocess.Popen([sys.executable, 'server.py', name]) for name in 'ab']\nwhile all(s.poll() is None for s in servers): time.sleep(0.05)\n"
            "for s in servers: s.terminate()\nfor s in servers: s.wait()\nsys.exit(1)\n",
            "server.py": "import os, sys, time\ntime.sleep(0.6 if sys.argv[1] == 'a' else 30)\nos.abort()\n",
        },
        r"server\.py a",
        "",
    ),
    "server-killed": Plant(
        "server",
        "bash e2e.sh",
        {
            "e2e.sh": "set -e\npython3 server.py & echo $! > pid\nsleep 0.6\npython3 chaos.py\nsleep 0.2\ncurl -sf http://127.0.0.1:18398/\n",
            "server.py": "import http.server\nhttp.server.HTTPServer(('127.0.0.1', 18398), http.server.SimpleHTTPRequestHandler).serve_forever()\n",
            "chaos.py": "import os\nos.kill(int(open('pid').read()), 9)\n",
        },
        r"server\.py",
        r"curl",
    ),
    "git-hook": Plant(
        "git",
        "git commit -q -m x",
        {
            "setup.sh": "git init -q .\ngit config user.email a@b\ngit config user.name a\nprintf '#!/bin/sh\\ngrep -q no-such x || echo none\\nsh lint.sh\\n' > .git/hooks/pre-commit\nchmod +x .git/hooks/pre-commit\ngit add x\n",
            "x": "x\n",
            "lint.sh": "sleep 0.1\nexit 3\n",
        },
        r"lint\.sh",
        r"pre-commit|git",
        "sh setup.sh",
    ),
    "git-bisect": Plant(
        "git",
        "git bisect run sh test.sh",
        {
            "setup.sh": "git init -q .\ngit config user.email a@b\ngit config user.name a\nfor n in 1 2 3 4 5 6 7 8; do echo $n > n; git add n; git commit -q -m $n; done\ngit bisect start HEAD HEAD~7\n",
            "test.sh": "n=$(cat n)\n[ $n -lt 4 ] || [ $n = 4 ] || exit 1\nsleep 0.1\n[ $n != 4 ] || exit 200\n",
        },
        r"^(sh )?test\.sh",
        r"git",
        "sh setup.sh",
    ),
    "perl-system": Plant(
        "perl",
        "perl build.pl",
        {
            "build.pl": "system('grep', '-q', 'no-such', 'build.pl2');\nsystem('sh', 'step.sh') == 0 or die 'step failed';\n",
            "build.pl2": "",
            "step.sh": "sleep 0.1\nexit 6\n",
        },
        r"step\.sh",
        "",
    ),
    "tcl-exec": Plant(
        "tcl",
        "tclsh build.tcl",
        {
            "build.tcl": "catch {exec ls no-such}\nexec uname\nexec sh gen.sh\n",
            "gen.sh": "sleep 0.1\nexit 2\n",
        },
        r"gen\.sh",
        "",
        needs="tclsh",
    ),
    "memory-limit": Plant(
        "sh",
        "bash -e mem.sh",
        {
            "mem.sh": "ulimit -v 300000\nuname -r\npython3 alloc.py\n",
            "alloc.py": "x = bytearray(800 << 20)\n",
        },
        r"alloc\.py",
        "",
    ),
}
PARTS = [
    FIRST,
    SECOND,
    THIRD,
    FOURTH,
    FIFTH,
    SIXTH,
    SEVENTH,
    EIGHTH,
    NINTH,
    TENTH,
    ELEVENTH,
    TWELFTH,
    THIRTEENTH,
    FOURTEENTH,
    FIFTEENTH,
    SIXTEENTH,
    SEVENTEENTH,
    EIGHTEENTH,
    NINETEENTH,
    TWENTIETH,
]
ALL = {name: plant for part in PARTS for name, plant in part.items()}
