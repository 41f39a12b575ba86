//! Tests that many kinds of programs have the same output and exit status under ptrace and under sampling as without a
//! recorder.

use std::process::Command;

use libtest_mimic::Failed;

use crate::support::{analyze, compiled, ensure, recording, scratch, text, Test};

/// Tests that need no right to trace.
pub const TESTS: &[Test] = &[
    ("programs_see_what_they_see_without_tr", modes),
    ("languages_and_tools_run_as_without_tr", tools),
    ("namespaces_nest_under_ptrace", namespaces),
    ("a_program_of_32_bits_runs_under_ptrace", small_words),
];

/// The modes of fixtures/programs/kinds.c, each of which uses other system calls.
const MODES: &[&str] = &[
    "stops",
    "child_signals",
    "queued",
    "interrupted",
    "pidfds",
    "subreaper",
    "execs",
    "faults",
    "seccomp",
    "traced_child",
    "exit_group",
    "leader_ends",
    "groups",
    "many",
    "clones",
];

/// Checks that a command prints the same and ends in the same way with and without `tr`, by ptrace.
fn same(command: &[&str]) -> Result<(), Failed> {
    let [program, args @ ..] = command else {
        return Err("no command".into());
    };
    let bare = Command::new(program).args(args).output()?;
    let trace = scratch("kinds.bin");
    let out = recording(&trace, &["--method", "ptrace", "-q"], command).output()?;
    let shown = |out: &std::process::Output| {
        let code = out.status.code();
        let signal = std::os::unix::process::ExitStatusExt::signal(&out.status);
        let status = code.or(signal.map(|signal| 128 + signal));
        format!("{} {} {status:?}", text(&out.stdout), text(&out.stderr))
    };
    let (want, is) = (shown(&bare), shown(&out));
    ensure(want == is, || {
        format!("{command:?}: {is:?}, without tr {want:?}")
    })?;
    analyze(&trace).map(|_| ())
}

fn modes() -> Result<(), Failed> {
    let program = compiled("kinds.c", "kinds", &["-pthread"])?;
    for mode in MODES {
        same(&[&program, mode])?;
    }
    Ok(())
}

/// Runs programs of all installed languages and tools with and without `tr`.
fn tools() -> Result<(), Failed> {
    let dir = scratch("kinds-sources");
    std::fs::create_dir_all(&dir)?;
    let source = dir.join("Threads.java");
    std::fs::write(
        &source,
        "public class Threads { public static void main(String[] a) throws Exception {
            java.util.stream.IntStream.range(0, 1000).parallel().forEach(i -> Math.sqrt(i));
            Process p = new ProcessBuilder(\"sh\", \"-c\", \"exit 5\").start();
            System.out.println(\"child \" + p.waitFor()); System.exit(6); } }",
    )?;
    let java = source.to_string_lossy().into_owned();
    let node = "const { Worker } = require('worker_threads');
        const { spawnSync } = require('child_process');
        console.log(spawnSync('sh', ['-c', 'exit 5']).status);
        const w = new Worker('require(\"worker_threads\").parentPort.postMessage(7)', { eval: true });
        w.on('message', (m) => { console.log(m); process.exit(8); });";
    let python = "import multiprocessing, subprocess, sys
def f(x): return x * x
if __name__ == '__main__':
    with multiprocessing.get_context('fork').Pool(4) as pool: print(sum(pool.map(f, range(100))))
    print(subprocess.run(['sh', '-c', 'kill -9 $$']).returncode)
    sys.exit(9)";
    let go = dir.join("threads.go");
    std::fs::write(
        &go,
        "package main\nimport (\"fmt\"; \"os\"; \"os/exec\"; \"sync\")\nfunc main() {
            var w sync.WaitGroup
            for i := 0; i < 100; i++ { w.Add(1); go func() { defer w.Done(); exec.Command(\"true\").Run() }() }
            w.Wait(); fmt.Println(\"done\"); os.Exit(10) }\n",
    )?;
    let go = go.to_string_lossy().into_owned();
    let shell = "set -m; sleep 0.05 & wait %1; echo $?; (trap 'echo term; exit 3' TERM; kill -TERM $BASHPID; sleep 1); echo $?;
        seq 100 | xargs -P4 -n1 sh -c 'exit 0'; echo $?; cat <(echo a) <(echo b); coproc cat; echo hi >&${COPROC[1]}; read -u ${COPROC[0]} x; echo $x;
        timeout 0.1 sleep 5; echo $?; exit 11";
    let all: [&[&str]; 8] = [
        &["java", &java],
        &["node", "-e", node],
        &["python3", "-c", python],
        &["go", "run", &go],
        &["bash", "-c", shell],
        &[
            "perl",
            "-e",
            "for (1..50) { my $p = fork; exit 3 unless $p; waitpid $p, 0; print $? >> 8 } exit 12",
        ],
        &["git", "--no-pager", "log", "--oneline", "-1"],
        &[
            "busybox",
            "sh",
            "-c",
            "for i in 1 2 3; do (exit $i); echo $?; done",
        ],
    ];
    for command in all {
        let there = command
            .first()
            .is_some_and(|command| crate::common::lacks(command).is_none());
        if there {
            same(command)?;
        }
    }
    Ok(())
}

fn namespaces() -> Result<(), Failed> {
    let inside = "echo $$; sh -c 'exit 4'; echo $?; kill -9 $$; sleep 5; exit 3";
    let all: [&[&str]; 3] = [
        &["unshare", "-Urpf", "--mount-proc", "sh", "-c", inside],
        &[
            "unshare",
            "-Ur",
            "unshare",
            "-pf",
            "sh",
            "-c",
            "sh -c 'sleep 0.05; exit 6' & wait $!",
        ],
        &["setpriv", "--no-new-privs", "sh", "-c", "exit 7"],
    ];
    for command in all {
        same(command)?;
    }
    Ok(())
}

/// A 32-bit program that forks and ends by the system calls of i386 is recorded.
fn small_words() -> Result<(), Failed> {
    let source = scratch("small.c");
    std::fs::write(
        &source,
        "static int call(int n, int a, int b, int c) { int r;
            __asm__ volatile(\"int $0x80\" : \"=a\"(r) : \"a\"(n), \"b\"(a), \"c\"(b), \"d\"(c) : \"memory\"); return r; }
        void _start(void) { int status = 0, child = call(2, 0, 0, 0);
            if (child == 0) { call(4, 1, (int)\"child\\n\", 6); call(1, 5, 0, 0); }
            call(7, child, (int)&status, 0); call(4, 1, (int)\"parent\\n\", 7); call(1, status >> 8, 0, 0); }\n",
    )?;
    let flags = [
        "-m32",
        "-nostdlib",
        "-static",
        "-fno-pic",
        "-fno-stack-protector",
    ];
    let Ok(program) = compiled(&source, "small", &flags) else {
        return Ok(()); // gcc has no -m32
    };
    if Command::new(&program).output().is_err() {
        return Ok(()); // the kernel has no 32-bit system calls
    }
    same(&[&program])
}
