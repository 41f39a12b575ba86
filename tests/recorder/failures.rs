//! Tests what a user reads first: the failure that caused the others, and the critical path of a recording whose
//! command did not end.

use libtest_mimic::Failed;

use crate::support::{
    ensure, int, list, record, recording, scratch, text, tr, write_program, Test,
};

pub const TESTS: &[Test] = &[
    ("the_chain_of_failures_comes_first", chain),
    ("a_test_that_is_to_fail_is_no_failure", to_fail),
    ("the_cause_stands_before_the_noise_around_it", noise),
    ("a_path_that_is_cut_off_begins_at_the_busy_job", cut_off),
];

/// The last command explains the shell's failure. Conditions (`[ … ]`) that are false do not explain it, nor do
/// failures after which the shell goes on.
fn chain() -> Result<(), Failed> {
    let trace = scratch("chain.bin");
    let script = "for i in 1 2 3; do sh -c 'grep -q x /dev/null; true'; done; \
                  sh -c 'grep -q y /dev/null; exit 9'; sh -c 'sh -c \"exit 7\"; exit 7'";
    let out = record(&trace, &[], &["sh", "-c", script])?;
    ensure(out.status.code() == Some(7), || format!("{:?}", out.status))?;
    let report = text(&tr(&["analyze"], &trace)?);
    let at = report.find("Failed").ok_or("no failure")?;
    let lines: Vec<&str> = report[at..].lines().take(4).collect();
    let all = || report.clone();
    ensure(
        lines[0].contains("sh -c 'exit 7'") && lines[0].contains("exit 7 after"),
        all,
    )?;
    ensure(
        lines[1].contains("→ perhaps sh -c ") && lines[1].ends_with("exit 7"),
        all,
    )?;
    // The script's text shows that the shell went on after exit status 9 and after the false conditions.
    let rest: Vec<&str> = lines[2..]
        .iter()
        .flat_map(|words| words.split_whitespace())
        .collect();
    let known = "5 failed without consequence";
    ensure(rest.join(" ").contains(known), all)
}

/// If a test runner succeeds although a test failed, the runner was configured to expect this failure (`WILL_FAIL` of
/// ctest, `should_fail` of meson). So the failed test is not reported.
fn to_fail() -> Result<(), Failed> {
    let place = scratch("to-fail");
    std::fs::create_dir_all(&place)?;
    for (passes, told) in [("exit 0", false), ("exit 8", true)] {
        let runner = format!("#!/bin/sh\n./unit-of-it\n./other\n{passes}\n");
        write_program(place.join("ctest"), runner)?;
        write_program(place.join("unit-of-it"), "#!/bin/sh\nsleep 0.01; exit 3\n")?;
        write_program(place.join("other"), "#!/bin/sh\nsleep 0.01\n")?;
        let trace = place.join("trace.bin");
        let script = format!("cd '{}' && ./ctest; true", place.display());
        record(&trace, &["--force"], &["sh", "-c", &script])?;
        let args = ["summary", "--format", "json"];
        let report: serde_json::Value = serde_json::from_slice(&tr(&args, &trace)?)?;
        let failures = list(&report, "failures");
        ensure(failures.is_empty() != told, || {
            format!("{passes}: {report:#}")
        })?;
    }
    Ok(())
}

/// Commands that fail, together with processes whose failures are not the cause. An entry has the files, the command,
/// and the failure that must be reported first (the name and the end of a process).
const NOISE: [Noise; 36] = [
    // make is told to ignore a failure and continues with another job. Then make stops because of `$(error)`.
    Noise {
        files: &[(
            "Makefile",
            "all: last\nfirst:\n\t-@sh -c 'sleep 0.2; exit 5'\nother:\n\t@sleep 1\n\
             middle: first\n\t@sleep 0.1\nlast: middle other\n\t$(error stop)\n",
        )],
        command: &["make", "-j2"],
        first: ("make -j2", "exit 2"),
        failures: 1,
    },
    // The first job that fails makes the shell stop the other job, which handles the signal and exits with 1.
    Noise {
        files: &[
            (
                "first.sh",
                "until [ -e ready ]; do sleep 0.1; done\nsleep 0.5; exit 1\n",
            ),
            (
                "other.sh",
                "trap 'kill $!; exit 1' TERM\ntouch ready\nsleep 99 & wait\n",
            ),
        ],
        command: &[
            "bash",
            "-c",
            "sh first.sh & sh other.sh & other=$!; wait -n || { kill $other; wait $other; }",
        ],
        first: ("first.sh", "exit 1"),
        failures: 1,
    },
    // A test runner stops a test that hangs. Before that, another test has failed.
    Noise {
        files: &[
            (
                "ctest",
                "import subprocess, sys\nsubprocess.run(['./fails'])\nhung = subprocess.Popen(['./hangs'])\n\
                 try:\n    hung.wait(timeout=1)\nexcept subprocess.TimeoutExpired:\n    hung.terminate()\n\
                 hung.wait()\nsys.exit(8)\n",
            ),
            ("fails", "import time\ntime.sleep(0.1)\nexit(1)\n"),
            ("hangs", "import time\ntime.sleep(20)\n"),
        ],
        command: &["./ctest"],
        first: ("hangs", "stopped by its parent (SIGTERM)"),
        failures: 2,
    },
    // A worker is killed. A program that it ran before had failed, too.
    Noise {
        files: &[(
            "pool.py",
            "import os, subprocess, sys, time\nif os.fork() == 0:\n    subprocess.run(['cat', 'no-such'])\n    \
             time.sleep(0.2)\n    os.kill(os.getpid(), 9)\nos.wait()\nsys.exit(1)\n",
        )],
        command: &["python3", "pool.py"],
        first: ("pool.py (forked)", "killed by SIGKILL"),
        failures: 1,
    },
    // A server answers that its job failed, so the client fails.
    Noise {
        files: &[
            (
                "run.sh",
                "mkfifo in out\nbash serve.sh &\npython3 ask.py; code=$?\nwait\nexit $code\n",
            ),
            (
                "serve.sh",
                "read job < in\npython3 work.py $job || answer=bad\necho ${answer:-good} > out\n",
            ),
            (
                "ask.py",
                "import sys\nwith open('in', 'w') as jobs:\n    jobs.write('a\\n')\n\
                 sys.exit(open('out').read() != 'good\\n')\n",
            ),
            ("work.py", "import time\ntime.sleep(0.2)\nexit(3)\n"),
        ],
        command: &["bash", "run.sh"],
        first: ("work.py a", "exit 3"),
        failures: 1,
    },
    // A script ends with a status that it read from a file.
    Noise {
        files: &[
            (
                "run.sh",
                "sh job.sh &\nwhile [ ! -e status ]; do sleep 0.1; done\nexit $(cat status)\n",
            ),
            ("job.sh", "python3 nightly.py\necho $? > new\nmv new status\n"),
            ("nightly.py", "import time\ntime.sleep(0.3)\nexit(42)\n"),
        ],
        command: &["sh", "run.sh"],
        first: ("nightly.py", "exit 42"),
        failures: 1,
    },
    // A service ended at once, so all programs that check whether it is up fail.
    Noise {
        files: &[
            (
                "run.sh",
                "python3 db.py &\nfor i in 1 2 3; do python3 ping.py && exit 0; sleep 0.2; done\nexit 1\n",
            ),
            ("db.py", "exit(2)\n"),
            ("ping.py", "import time\ntime.sleep(0.1)\nexit(1)\n"),
        ],
        command: &["sh", "run.sh"],
        first: ("db.py", "exit 2"),
        failures: 1,
    },
    // Each job writes its result as text into a file, and itself succeeds. The script then fails because one of the
    // texts is "no".
    Noise {
        files: &[
            (
                "run.sh",
                "for part in a b c; do sh part.sh $part; done\n! grep -l no *.result\n",
            ),
            (
                "part.sh",
                "if python3 part.py $1; then echo yes; else echo no; fi > $1.result\n",
            ),
            ("part.py", "import sys\nsys.exit(sys.argv[1] == 'b')\n"),
        ],
        command: &["bash", "run.sh"],
        first: ("part.py b", "exit 1"),
        failures: 1,
    },
    // One of many commands that a program gives to a shell fails.
    Noise {
        files: &[
            (
                "all.py",
                "import subprocess\nbad = 0\nfor name in 'abc':\n    \
                 bad += subprocess.call(f'echo {name} && python3 check.py {name}', shell=True) != 0\nexit(bad > 0)\n",
            ),
            ("check.py", "import sys\nsys.exit(7 if sys.argv[1] == 'b' else 0)\n"),
        ],
        command: &["python3", "all.py"],
        first: ("check.py b", "exit 7"),
        failures: 1,
    },
    // One of the programs that a test starts fails.
    Noise {
        files: &[
            (
                "test_tool.py",
                "import subprocess, unittest\nclass T(unittest.TestCase):\n    def test_all(self):\n        \
                 for name in 'abc':\n            with self.subTest(name):\n                \
                 subprocess.check_call(['sh', 'tool.sh', name])\n",
            ),
            ("tool.sh", "sleep 0.1\ntest $1 != b\n"),
        ],
        command: &["python3", "-m", "unittest", "-q", "test_tool"],
        first: ("tool.sh b", "exit 1"),
        failures: 1,
    },
    // The last program of a pipeline fails because the first one, which failed, has written nothing.
    Noise {
        files: &[
            (
                "run.sh",
                "set -e\nsh export.sh | sed s/a/b/ | sh load.sh\necho done\n",
            ),
            ("export.sh", "exit 3\n"),
            ("load.sh", "cat > got\nsleep 0.1\ntest -s got\n"),
        ],
        command: &["sh", "run.sh"],
        first: ("export.sh", "exit 3"),
        failures: 1,
    },
    // The tests sleep while they wait for their server, which has already failed.
    Noise {
        files: &[
            (
                "test_hub.py",
                "import subprocess, sys, time, unittest\ndef setUpModule():\n    \
                 server = subprocess.Popen([sys.executable, 'hub.py'])\n    \
                 unittest.addModuleCleanup(server.wait)\n    \
                 while open(f'/proc/{server.pid}/stat').read().split()[2] != 'Z':\n        time.sleep(1)\n\
                 class T(unittest.TestCase):\n    def test_hub(self):\n        open('no-such-socket')\n",
            ),
            ("hub.py", "exit(1)\n"),
        ],
        command: &["python3", "-m", "unittest", "-q", "test_hub"],
        first: ("hub.py", "exit 1"),
        failures: 1,
    },
    // The test expects that `tool.py c` exits with status 2. Another run, `tool.py b`, fails with status 1, with which
    // every uncaught Python error ends.
    Noise {
        files: &[
            (
                "test_tool.py",
                "import subprocess, sys\ndone = [subprocess.run([sys.executable, 'tool.py', name]).returncode\n        \
                 for name in ('a', 'b', 'c')]\nassert done == [0, 0, 2]\n",
            ),
            (
                "tool.py",
                "import sys\nname = sys.argv[1]\nassert name != 'b'\nexit(2 if name == 'c' else 0)\n",
            ),
        ],
        command: &["python3", "test_tool.py"],
        first: ("tool.py b", "exit 1"),
        failures: 1,
    },
    // A shell script calls a program that does not exist, and the message names the program.
    Noise {
        files: &[],
        command: &["sh", "-c", "cd . && uname -r && no-such-bundler --out x && uname -m"],
        first: (
            "sh -c 'cd . && uname -r && no-such-bundler --out x && uname -m'",
            "exit 127 (no such program: no-such-bundler)",
        ),
        failures: 1,
    },
    // A supervisor checks its services periodically, and stops the others after one has failed.
    Noise {
        files: &[
            (
                "all.py",
                "import subprocess, sys, time\nnames = ['web', 'queue']\n\
                 all = [subprocess.Popen([sys.executable, 'one.py', name]) for name in names]\n\
                 while all[1].poll() is None:\n    time.sleep(0.05)\nall[0].terminate()\nall[0].wait()\nexit(1)\n",
            ),
            (
                "one.py",
                "import sys, time\nif sys.argv[1] == 'queue':\n    time.sleep(1)\n    exit(3)\ntime.sleep(60)\n",
            ),
        ],
        command: &["python3", "all.py"],
        first: ("one.py queue", "exit 3"),
        failures: 1,
    },
    // A program waits for a file. A background job should make the file, but fails.
    Noise {
        files: &[
            (
                "run.sh",
                "(python3 make.py && touch ready) &\npython3 use.py || exit 1\n",
            ),
            ("make.py", "import time\ntime.sleep(1)\nexit(4)\n"),
            (
                "use.py",
                "import os, time\nfor i in range(40):\n    time.sleep(0.1)\nexit(not os.path.exists('ready'))\n",
            ),
        ],
        command: &["bash", "run.sh"],
        first: ("make.py", "exit 4"),
        failures: 1,
    },
    // A trap at the end of the script undoes its set-up, and fails as well.
    Noise {
        files: &[
            (
                "run.sh",
                "set -e\ntrap 'python3 env.py down' EXIT\npython3 env.py up\npython3 apply.py\n",
            ),
            ("env.py", "import sys\nexit(5 if sys.argv[1] == 'down' else 0)\n"),
            ("apply.py", "import time\ntime.sleep(0.2)\nexit(3)\n"),
        ],
        command: &["bash", "run.sh"],
        first: ("apply.py", "exit 3"),
        failures: 1,
    },
    // A script stores in a variable that one of many runs failed. Then the script runs grep, whose failure does not
    // matter.
    Noise {
        files: &[
            (
                "run.sh",
                "for name in a b c d; do python3 one.py $name || bad=1; done\ngrep -q no-such one.py || true\n\
                 [ -z \"$bad\" ]\n",
            ),
            ("one.py", "import sys\nexit(sys.argv[1] == 'b')\n"),
        ],
        command: &["sh", "run.sh"],
        first: ("one.py b", "exit 1"),
        failures: 1,
    },
    // The exit status of the program that writes into a pipe is lost, and a later program fails for lack of data.
    Noise {
        files: &[
            (
                "run.sh",
                "set -e\npython3 export.py | gzip > data.gz\nsleep 0.6\npython3 load.py data.gz\n",
            ),
            ("export.py", "import time\ntime.sleep(0.3)\nexit(3)\n"),
            (
                "load.py",
                "import gzip, sys\nexit(not gzip.open(sys.argv[1]).read())\n",
            ),
        ],
        command: &["sh", "run.sh"],
        first: ("export.py", "exit 3"),
        failures: 1,
    },
    // A script ignores that a build failed, and the next step fails because it needs what was not built.
    Noise {
        files: &[
            (
                "run.sh",
                "printf '1\\n2\\n3\\n' | xargs -n1 python3 build.py || true\npython3 pack.py || exit 1\n",
            ),
            (
                "build.py",
                "import sys, time\ntime.sleep(0.1)\nif sys.argv[1] == '2':\n    exit(1)\n\
                 open('built' + sys.argv[1], 'w')\n",
            ),
            ("pack.py", "[open('built' + name) for name in '123']\n"),
        ],
        command: &["sh", "run.sh"],
        first: ("build.py 2", "exit 1"),
        failures: 1,
    },
    // The test expects that both runs of `tool.py usage` exit with status 2. Another run, `tool.py crash`, exits with
    // status 1.
    Noise {
        files: &[
            (
                "test_tool.py",
                "import subprocess, sys\ndone = [subprocess.run([sys.executable, 'tool.py', name]).returncode\n        \
                 for name in ('usage', 'a', 'crash', 'usage', 'b')]\nexit(done != [2, 0, 0, 2, 0])\n",
            ),
            (
                "tool.py",
                "import sys, time\ntime.sleep(0.1)\nexit({'usage': 2, 'crash': 1}.get(sys.argv[1], 0))\n",
            ),
        ],
        command: &["python3", "test_tool.py"],
        first: ("tool.py crash", "exit 1"),
        failures: 1,
    },
    // A program checks again and again for a state that a failed step should have set.
    Noise {
        files: &[
            (
                "run.py",
                "import subprocess, sys, time\nsubprocess.run(['sh', 'join.sh'])\n\
                 for i in range(3):\n    if subprocess.call(['grep', '-qx', 'ready', 'state']) == 0:\n        exit(0)\n    \
                 time.sleep(0.3)\nexit(2)\n",
            ),
            (
                "join.sh",
                "python3 cert.py && echo ready > state || echo bad > state\n",
            ),
            ("cert.py", "import time\ntime.sleep(0.2)\nexit(4)\n"),
        ],
        command: &["python3", "run.py"],
        first: ("cert.py", "exit 4"),
        failures: 1,
    },
    // A step fails to make a file. A later step, which packs the file from another directory, fails because of that.
    Noise {
        files: &[
            (
                "run.sh",
                "mkdir -p site\npython3 feed.py posts site/feed.xml\nfind . -type f | sort > list\n\
                 tar -cf site.tar -C site feed.xml\n",
            ),
            ("feed.py", "exit(5)\n"),
        ],
        command: &["sh", "run.sh"],
        first: ("feed.py posts site/feed.xml", "exit 5"),
        failures: 1,
    },
    // Several commands of a trap fail after the real failure.
    Noise {
        files: &[
            (
                "run.sh",
                "set -e\ntrap 'set +e; umount full; (cat no-such); cmp -s apply.sh run.sh' EXIT\nmkdir full\ntouch full/x\n\
                 sh apply.sh\n",
            ),
            ("apply.sh", "exit 1\n"),
        ],
        command: &["bash", "run.sh"],
        first: ("apply.sh", "exit 1"),
        failures: 1,
    },
    // make continues without an included file that a failed job should have written.
    Noise {
        files: &[
            (
                "Makefile",
                "all: a.out b.out\n\t@cat $^ > all\na.out:\n\t@echo > $@\n-include rules.mk\nrules.mk:\n\t@python3 rules.py > $@.new\n",
            ),
            ("rules.py", "exit(3)\n"),
        ],
        command: &["make"],
        first: ("rules.py", "exit 3"),
        failures: 1,
    },
    // A pipe hides that a code generator failed. The compiler then fails because of something that is missing in the
    // generated file.
    Noise {
        files: &[
            (
                "Makefile",
                "main.o: main.c table.inc\n\tcc -c main.c\ntable.inc: gen.py\n\tpython3 gen.py | sort > $@\n",
            ),
            ("gen.py", "print('int one;', flush=True)\nexit(3)\n"),
            ("main.c", "#include \"table.inc\"\nint sum(void) { return one + two; }\n"),
        ],
        command: &["make"],
        first: ("gen.py", "exit 3"),
        failures: 1,
    },
    // A worker of a pool crashes in a test. The pool then stops the other worker.
    Noise {
        files: &[(
            "test_pool.py",
            "import concurrent.futures, os, time, unittest\ndef work(number):\n    time.sleep(0.2)\n    \
             if number == 1:\n        os.kill(os.getpid(), 11)\n    time.sleep(60)\n\
             class T(unittest.TestCase):\n    def test_pool(self):\n        \
             with concurrent.futures.ProcessPoolExecutor(2) as pool:\n            list(pool.map(work, range(2)))\n",
        )],
        command: &["python3", "-m", "unittest", "-q", "test_pool"],
        first: ("unittest -q test_pool (forked)", "killed by SIGSEGV"),
        failures: 1,
    },
    // A command substitution runs a program that fails, and the shell reports the failure only at its end.
    Noise {
        files: &[
            (
                "run.sh",
                "got=$(sh tool.sh 1 2; exit $?); code=$?\nsleep 1\n[ $code = 0 ] || exit 1\n",
            ),
            ("tool.sh", "exit 127\n"),
        ],
        command: &["bash", "run.sh"],
        first: ("tool.sh 1 2", "exit 127"),
        failures: 1,
    },
    // A program runs a shell command whose failure does not matter. The program then fails for another reason.
    Noise {
        files: &[(
            "ask.py",
            "import subprocess\nsubprocess.call('ls /no-such-* 2>&1', shell=True)\nopen('no-such-file')\n",
        )],
        command: &["python3", "ask.py"],
        first: ("ask.py", "exit 1"),
        failures: 1,
    },
    // The script reads functions from another file. One function tolerates that its command fails. The other one
    // returns the failure.
    Noise {
        files: &[
            (
                "job.sh",
                "set -e\n. \"$(dirname \"$0\")/lib.sh\"\nadvisory sh lint.sh\nstage sh build.sh\nsleep 0.1\ntrue\n",
            ),
            (
                "lib.sh",
                "LEVEL=info\nadvisory() {\n    \"$@\" || echo \"$LEVEL: advisory\"\n}\n\
                 stage() {\n    \"$@\" || status=$?\n    sleep 0.1\n    return ${status:-0}\n}\n",
            ),
            ("lint.sh", "exit 1\n"),
            ("build.sh", "exit 1\n"),
        ],
        command: &["bash", "./job.sh"],
        first: ("build.sh", "exit 1"),
        failures: 1,
    },
    // A failed step that was tolerated should have made the file that a later step needs.
    Noise {
        files: &[
            (
                "render.sh",
                "out=$1\nfor name in a b; do\n    sh make-$name.sh > \"$out/$name.new\" && mv \"$out/$name.new\" \"$out/$name.txt\"\n\
                 done\nsleep 0.1\ntrue\n",
            ),
            ("make-a.sh", "exit 3\n"),
            ("make-b.sh", "echo b\n"),
            ("all.sh", "mkdir out; sh render.sh out; sleep 0.1; cd out; set -e; cat b.txt; cat a.txt\n"),
        ],
        command: &["bash", "./all.sh"],
        first: ("make-a.sh", "exit 3"),
        failures: 1,
    },
    // A step inside of braces fails, and tee writes its output into a log. The script fails because of the log.
    Noise {
        files: &[
            (
                "run.sh",
                "{ echo begin; python3 shrink.py; echo over; } 2>&1 | tee shrink.log\nsleep 0.1\n\
                 tail -n 1 shrink.log | grep -qx good\n",
            ),
            (
                "shrink.py",
                "import time\nprint(1, flush=True)\ntime.sleep(0.3)\nexit(3)\n",
            ),
        ],
        command: &["bash", "run.sh"],
        first: ("shrink.py", "exit 3"),
        failures: 1,
    },
    // A test kills a program that hangs, and its runner goes on with the next test.
    Noise {
        files: &[
            (
                "test_slow.py",
                "import subprocess, sys, time, unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        \
                 late = subprocess.Popen([sys.executable, 'late.py'])\n        end = time.monotonic() + 1\n        \
                 while late.poll() is None and time.monotonic() < end:\n            time.sleep(0.05)\n        \
                 late.kill()\n        self.assertEqual(late.wait(), 0)\n    def test_b(self):\n        \
                 subprocess.check_call([sys.executable, 'quick.py'])\n",
            ),
            ("late.py", "import time\ntime.sleep(60)\n"),
            ("quick.py", ""),
        ],
        command: &["python3", "-m", "unittest", "-q", "test_slow"],
        first: ("late.py", "stopped by its parent (SIGKILL)"),
        failures: 1,
    },
    // A script is killed after a time-out. The program that hung is one for which the script waits.
    Noise {
        files: &[
            (
                "all.py",
                "import subprocess\njob = subprocess.Popen(['sh', 'job.sh'])\ntry:\n    job.wait(timeout=1)\n\
                 except subprocess.TimeoutExpired:\n    job.kill()\n    job.wait()\n    exit(1)\n",
            ),
            ("job.sh", "uname -r\nsleep 3\ntrue\n"),
        ],
        command: &["python3", "all.py"],
        first: (
            "job.sh",
            "stopped by its parent (SIGKILL) while it waited for sleep 3",
        ),
        failures: 1,
    },
    // The first try of a script fails and leaves a file behind, because of which all other tries fail.
    Noise {
        files: &[
            (
                "run.sh",
                "for try in 1 2 3; do\n    sh import.sh && exit 0\n    sleep 0.1\ndone\nexit 1\n",
            ),
            ("import.sh", "set -e\nln -s . busy\npython3 rows.py\nrm busy\n"),
            ("rows.py", "exit(3)\n"),
        ],
        command: &["sh", "run.sh"],
        first: ("rows.py", "exit 3"),
        failures: 1,
    },
    // A failed step does not write a file. So the next step fails, too, and does not write the file that the last step
    // needs.
    Noise {
        files: &[
            (
                "run.sh",
                "python3 table.py -o table.txt\npython3 merge.py table.txt -o all.txt\npython3 show.py all.txt\n",
            ),
            ("table.py", "exit(5)\n"),
            ("merge.py", "import sys\nopen(sys.argv[1])\n"),
            ("show.py", "import sys\nopen(sys.argv[1])\n"),
        ],
        command: &["sh", "run.sh"],
        first: ("table.py -o table.txt", "exit 5"),
        failures: 1,
    },
];

struct Noise {
    files: &'static [(&'static str, &'static str)],
    command: &'static [&'static str],
    first: (&'static str, &'static str),
    /// The number of failures that are reported in all.
    failures: usize,
}

fn noise() -> Result<(), Failed> {
    for (number, noise) in NOISE.iter().enumerate() {
        let place = scratch(&format!("noise-{number}"));
        // Files that an earlier run of this test has left would change what the scripts do.
        if place.exists() {
            std::fs::remove_dir_all(&place)?;
        }
        std::fs::create_dir_all(&place)?;
        for (name, text) in noise.files {
            let file = place.join(name);
            let is_program = !name.contains('.') && *name != "Makefile";
            let interpreter = if is_program {
                "#!/usr/bin/env python3\n"
            } else {
                ""
            };
            write_program(file, format!("{interpreter}{text}"))?;
        }
        let trace = place.join("trace.bin");
        let out = recording(&trace, &["--force"], noise.command)
            .current_dir(&place)
            .output()?;
        ensure(!out.status.success(), || text(&out.stdout))?;
        let report = tr(&["summary", "--format", "json"], &trace)?;
        let report: serde_json::Value = serde_json::from_slice(&report)?;
        let failures = list(&report, "failures");
        ensure(failures.len() == noise.failures, || {
            format!("{:?}: {report:#}", noise.command)
        })?;
        let first = failures.first();
        let first = first.map(|first| (first["name"].as_str(), first["end"].as_str()));
        let (name, end) = noise.first;
        ensure(first == Some((Some(name), Some(end))), || {
            format!("{:?}: {report:#}", noise.command)
        })?;
    }
    Ok(())
}

/// `--duration` ends the recording while the shell still waits. The shell's critical path leads to the child that
/// works, not to the children that sleep.
fn cut_off() -> Result<(), Failed> {
    let trace = scratch("cut.bin");
    let script = "sleep 5 & sh -c 'i=0; while [ $i -lt 100000000 ]; do i=$((i+1)); done' & \
                  sleep 5 & wait";
    let command = ["timeout", "4", "sh", "-c", script];
    record(&trace, &["--duration", "3s"], &command)?;
    let args = ["analyze", "--report", "critical-path", "--format", "json"];
    let report: serde_json::Value = serde_json::from_slice(&tr(&args, &trace)?)?;
    let path = &report["critical_path"]["path"];
    let steps = list(path, "steps");
    // Only the time after the beginning of the job counts, because the job begins late on a busy machine.
    let is_job = |step: &&serde_json::Value| {
        let label = step["label"].as_str().unwrap_or_default();
        label.starts_with("sh -c 'i=0")
    };
    let job: Vec<_> = steps.iter().filter(is_job).collect();
    let begin = job.first().map_or(u64::MAX, |step| int(step, "from_ns"));
    let wall = int(path, "wall_ns").saturating_sub(begin);
    ensure(wall > 0, || format!("{path:#}"))?;
    let busy = job
        .iter()
        .map(|step| int(step, "on_cpu_ns") + int(step, "run_queue_ns"));
    ensure(busy.sum::<u64>() * 10 > wall * 8, || format!("{path:#}"))?;
    ensure(int(path, "inferred_ns") * 10 > wall * 8, || {
        format!("{path:#}")
    })?;
    let awaited = steps.iter().filter(|step| step["then"] == "awaited");
    ensure(awaited.count() > 0, || format!("{path:#}"))
}
