//! Records by ptrace: COMMAND behaves as without `tr`, and the figures are the kernel's.

use std::collections::BTreeMap;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use serde_json::Value;

use crate::support::{
    analyze, awaits, compiled, dump, ensure, eventually, info, int, list, record, recording,
    scratch, text, tr, Test, TR,
};

/// Tests that need no right to trace.
pub const TESTS: &[Test] = &[
    ("ptrace_records_every_status_and_signal", statuses),
    ("ptrace_follows_an_exec_from_a_thread", exec_from_a_thread),
    ("ptrace_follows_threads_and_vfork", threads),
    ("ptrace_lets_the_command_stop_and_go_on", stops),
    ("ptrace_lets_daemons_go_or_waits_for_them", daemons),
    ("a_killed_ptrace_recorder_leaves_the_command_alone", killed),
    (FALLBACK, fallback),
    ("ptrace_shows_what_it_knows_and_no_more", reports),
    ("a_signal_to_the_ptrace_recorder_is_passed_on", passed_on),
    ("samples_tell_when_a_task_ran", sampled),
    ("ptrace_makes_room_for_nested_recordings", nested),
    ("ptrace_makes_room_for_strace", strace),
    ("ptrace_names_what_daemons_do", clients),
    ("ptrace_makes_room_for_gdb", gdb),
    ("ptrace_makes_room_for_leak_checkers", leaks),
    (KILLED_FORKS, killed_forks),
    (TRACES_TR, traces_tr),
    (UNTRACED, untraced),
    (MANY, many),
];

/// Tests that compare ptrace with BPF, so they need the right to use both.
pub const BESIDE: &[Test] = &[("ptrace_has_the_kernels_figures", beside_bpf)];

/// This test needs gcc.
pub const KILLED_FORKS: &str = "a_process_killed_while_it_forks_leaves_no_child_stopped";

/// This test needs unshare.
pub const FALLBACK: &str = "without_bpf_auto_takes_ptrace_on_a_terminal_alone";
/// Tests that need gcc.
pub const TRACES_TR: &str = "a_command_that_traces_the_recorder_ends";
pub const UNTRACED: &str = "children_that_nobody_can_trace_are_reported";
pub const MANY: &str = "many_threads_do_not_look_at_each_other";

const PTRACE: &[&str] = &["--method", "ptrace", "-q"];

/// Records a shell script by ptrace. Returns the exit status of `tr` and the analysis.
fn script(name: &str, script: &str) -> Result<(Option<i32>, Value), Failed> {
    let trace = scratch(name);
    let out = record(&trace, PTRACE, &["sh", "-c", script])?;
    ensure(out.stderr.is_empty(), || text(&out.stderr))?;
    Ok((out.status.code(), analyze(&trace)?))
}

/// The processes whose name (comm) is this.
fn named<'a>(analysis: &'a Value, comm: &str) -> Vec<&'a Value> {
    let all = list(analysis, "processes").iter();
    all.filter(|process| process["comm"] == comm).collect()
}

fn statuses() -> Result<(), Failed> {
    let all = "for i in $(seq 0 255); do sh -c \"exit $i\"; done; exit 7";
    let (status, analysis) = script("codes.bin", all)?;
    ensure(status == Some(7), || format!("{status:?}"))?;
    let mut codes: Vec<u64> = list(&analysis, "processes")
        .iter()
        .filter(|process| {
            process["argv"][2]
                .as_str()
                .is_some_and(|arg| arg.starts_with("exit "))
        })
        .map(|process| int(&process["exit"], "code"))
        .collect();
    codes.sort_unstable();
    ensure(codes == (0..256).collect::<Vec<_>>(), || {
        format!("{codes:?}")
    })?;
    for signal in (1..32)
        .filter(|n| ![libc::SIGCHLD, libc::SIGCONT, libc::SIGURG, libc::SIGWINCH].contains(n))
    {
        let stops = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
        if stops.contains(&signal) {
            continue;
        }
        let trace = scratch("signal.bin");
        let kill = format!("ulimit -c 0; kill -{signal} $$; sleep 5");
        let bare = Command::new("sh").args(["-c", &kill]).status()?;
        // Whoever runs the tests under nohup ignores SIGHUP, and so does the shell.
        if bare.signal().is_none() {
            continue;
        }
        let out = record(&trace, PTRACE, &["sh", "-c", &kill])?;
        let want = bare.signal().map(|signal| 128 + signal);
        ensure(out.status.code() == want, || {
            format!("{signal}: {out:?}, bare {bare:?}")
        })?;
        let root = &analyze(&trace)?["trace"]["exit"];
        ensure(root["signal"] == signal, || format!("{signal}: {root}"))?;
    }
    Ok(())
}

fn exec_from_a_thread() -> Result<(), Failed> {
    let program = "import threading, os, time
t = threading.Thread(target=lambda: os.execv('/bin/sh', ['sh', '-c', 'exit 7']))
t.start(); time.sleep(5)";
    let trace = scratch("thread.bin");
    let out = record(&trace, PTRACE, &["/usr/bin/python3", "-c", program])?;
    ensure(out.status.code() == Some(7), || format!("{out:?}"))?;
    let analysis = analyze(&trace)?;
    let processes = list(&analysis, "processes");
    let [process] = processes else {
        return Err(format!("{processes:?}").into());
    };
    let execs = list(process, "execs");
    ensure(execs.len() == 2 && execs[1]["argv"][0] == "sh", || {
        process.to_string()
    })?;
    ensure(
        process["threads"] == 2 && process["exit"]["code"] == 7,
        || process.to_string(),
    )
}

fn threads() -> Result<(), Failed> {
    let program = "import threading, subprocess
def work():
    sum(i * i for i in range(200000))
all = [threading.Thread(target=work) for _ in range(20)]
[t.start() for t in all]; [t.join() for t in all]
subprocess.run(['true'], close_fds=False)";
    let trace = scratch("threads.bin");
    let out = record(&trace, PTRACE, &["/usr/bin/python3", "-c", program])?;
    ensure(out.status.success(), || format!("{out:?}"))?;
    let analysis = analyze(&trace)?;
    let python = list(&analysis, "processes")
        .iter()
        .find(|p| int(p, "threads") == 21);
    let python = python.ok_or_else(|| analysis.to_string())?;
    ensure(int(python, "on_cpu_ns") > 10_000_000, || python.to_string())?;
    ensure(named(&analysis, "true").len() == 1, || analysis.to_string())?;
    ensure(analysis["totals"]["unknown_ns"] == 0, || {
        analysis["totals"].to_string()
    })
}

fn stops() -> Result<(), Failed> {
    let (status, analysis) = script(
        "stops.bin",
        "(sleep 0.2; kill -CONT $$) & kill -STOP $$; wait; exit 5",
    )?;
    ensure(status == Some(5), || format!("{status:?}"))?;
    ensure(
        int(&analysis["trace"], "duration_ns") >= 200_000_000,
        || analysis["trace"].to_string(),
    )
}

fn daemons() -> Result<(), Failed> {
    let (go, mark) = (scratch("daemon.go"), scratch("daemon.mark"));
    let _ = (std::fs::remove_file(&go), std::fs::remove_file(&mark));
    let line = format!(
        "({}; sleep 0.3; touch {}) >&2 & exit 3",
        awaits(&go),
        mark.display()
    );
    let out = recording(
        &scratch("daemon.bin"),
        &["--method", "ptrace"],
        &["sh", "-c", &line],
    )
    .stderr(std::fs::File::create(scratch("daemon.err"))?)
    .output()?;
    ensure(out.status.code() == Some(3), || format!("{out:?}"))?;
    ensure(!mark.exists(), || "waited".into())?;
    let said = std::fs::read_to_string(scratch("daemon.err"))?;
    ensure(said.contains("still running: sh"), || said.clone())?;
    std::fs::write(&go, "")?;
    eventually("the daemon ends", || mark.exists())?;
    std::fs::remove_file(&mark)?;
    let options = ["--method", "ptrace", "-q", "--wait-all"];
    let out = record(&scratch("daemon.bin"), &options, &["sh", "-c", &line])?;
    ensure(out.status.code() == Some(3) && mark.exists(), || {
        format!("{out:?}")
    })
}

fn killed() -> Result<(), Failed> {
    let mark = scratch("killed.mark");
    let _ = std::fs::remove_file(&mark);
    let trace = scratch("killed.bin");
    let _ = std::fs::remove_file(&trace);
    let line = format!(
        "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.2; true; done; touch {}",
        mark.display()
    );
    let mut tr_ = recording(&trace, PTRACE, &["sh", "-c", &line]).spawn()?;
    std::thread::sleep(Duration::from_millis(1_200));
    tr_.kill()?;
    tr_.wait()?;
    eventually("COMMAND ends", || mark.exists())?;
    let out = tr(&["analyze", "--format", "json"], &trace)?;
    let analysis: Value = serde_json::from_slice(&out)?;
    ensure(analysis["trace"]["truncated"] == true, || {
        analysis["trace"].to_string()
    })?;
    ensure(!named(&analysis, "sleep").is_empty(), || {
        analysis.to_string()
    })
}

/// Without the rights for BPF, the automatic method uses ptrace only if standard error is a terminal, and prints a
/// message about the method before COMMAND runs.
fn fallback() -> Result<(), Failed> {
    let trace = scratch("fallback.bin");
    let unshare = ["--user", "--map-root-user", TR, "record", "-o"];
    let run = |options: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(unshare).arg(&trace).args(options);
        command.args(["--", "sh", "-c", "exit 6"]).output()
    };
    let method = || -> Result<(bool, bool), Failed> {
        let found = info(&trace)?;
        Ok((found["not_traced"].is_string(), found["method"] == "ptrace"))
    };
    for options in [&[][..], &["--best-effort"]] {
        let out = run(options)?;
        let said = text(&out.stderr);
        ensure(out.status.code() == Some(6), || format!("{out:?}"))?;
        let words = said.contains("sudo ") && said.contains("the command runs untraced");
        ensure(words && method()? == (true, false), || said.clone())?;
    }
    let quiet = run(&["-q"])?;
    ensure(
        quiet.status.code() == Some(6) && quiet.stderr.is_empty(),
        || format!("{quiet:?}"),
    )?;
    for (options, traced) in [("", true), ("-q", false), ("--best-effort", false)] {
        let pty = nix::pty::openpty(None, None)?;
        let mut command = Command::new("unshare");
        command.args(unshare).arg(&trace);
        command.args(options.split_whitespace());
        command.args(["--", "sh", "-c", "echo begun >&2; exit 6"]);
        let status = command.stderr(Stdio::from(pty.slave)).status()?;
        drop(command);
        let mut said = Vec::new();
        // Reading from a terminal fails with EIO once nobody can write to it any more.
        let _ = std::io::Read::read_to_end(&mut std::fs::File::from(pty.master), &mut said);
        let said = text(&said);
        ensure(status.code() == Some(6), || format!("{options}: {status}"))?;
        ensure(method()? == (!traced, traced), || {
            format!("{options}: {said}")
        })?;
        let before = said.split("begun").next().unwrap_or_default();
        let warned = before.contains("setuid, setgid and file capabilities have no effect")
            && before.contains("to record everything");
        ensure(warned == traced, || format!("{options}: {said}"))?;
    }
    let refused = run(&["--method", "bpf"])?;
    ensure(refused.status.code() == Some(125), || {
        format!("{refused:?}")
    })?;
    // ptrace cannot record the whole machine. COMMAND runs unrecorded; with `--method ptrace` the option is an error.
    let all = run(&["-a"])?;
    ensure(all.status.code() == Some(6), || format!("{all:?}"))?;
    let all = run(&["-a", "--method", "ptrace"])?;
    ensure(
        all.status.code() == Some(125) && text(&all.stderr).contains("--method bpf"),
        || format!("{all:?}"),
    )
}

fn reports() -> Result<(), Failed> {
    let (_, analysis) = script("reports.bin", "sleep 0.3; sh -c 'exit 2'; true")?;
    ensure(analysis["trace"]["method"] == "ptrace", || {
        analysis["trace"].to_string()
    })?;
    let sleep = named(&analysis, "sleep");
    let [sleep] = sleep[..] else {
        return Err(analysis.to_string().into());
    };
    ensure(int(sleep, "asleep_or_blocked_ns") > 250_000_000, || {
        sleep.to_string()
    })?;
    for absent in [
        "sleep_ns",
        "blocked_ns",
        "switches",
        "migrations",
        "max_rss_bytes",
        "preempted_ns",
    ] {
        ensure(sleep[absent].is_null(), || format!("{absent}: {sleep}"))?;
    }
    let trace = scratch("reports.bin");
    let shown = text(&tr(&["analyze"], &trace)?);
    for want in [
        "Recorded   by ptrace",
        "sleep or blocked",
        "Critical path by forks and exits",
        "not known: wake-ups",
    ] {
        ensure(shown.contains(want), || {
            format!("{want:?} is missing: {shown}")
        })?;
    }
    for report in [
        "cpus",
        "off-cpu",
        "run-queue",
        "max-off-cpu",
        "histogram",
        "parallelism",
        "audit",
    ] {
        let text_ = text(&tr(&["analyze", "--report", report], &trace)?);
        ensure(text_.contains("not known with --method ptrace"), || {
            format!("{report}: {text_}")
        })?;
        let csv = tr(&["analyze", "--report", report, "--format", "csv"], &trace)?;
        ensure(csv.is_empty(), || format!("{report}: {}", text(&csv)))?;
    }
    let series = ["analyze", "--report", "series", "--format", "json"];
    let series: Value = serde_json::from_slice(&tr(&series, &trace)?)?;
    for process in list(&series["series"], "processes") {
        let values = list(process, "values").iter();
        let sum: u64 = values.filter_map(|value| value[1].as_u64()).sum();
        ensure(sum == int(process, "on_cpu_ns"), || process.to_string())?;
    }
    for report in ["tree", "execs", "critical-path", "series"] {
        let shown = text(&tr(&["analyze", "--report", report], &trace)?);
        ensure(shown.contains("sleep"), || format!("{report}: {shown}"))?;
    }
    let all = Command::new(TR)
        .args(["analyze", "--report", "all"])
        .arg(&trace)
        .output()?;
    ensure(all.status.success(), || format!("{all:?}"))
}

fn passed_on() -> Result<(), Failed> {
    let ready = scratch("passed.ready");
    let _ = std::fs::remove_file(&ready);
    let line = format!(
        "trap 'exit 9' TERM; touch {}; while :; do sleep 0.05; done",
        ready.display()
    );
    let mut tr_ = recording(&scratch("passed.bin"), PTRACE, &["sh", "-c", &line]).spawn()?;
    eventually("COMMAND runs", || ready.exists())?;
    let pid = nix::unistd::Pid::from_raw(tr_.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM)?;
    let status = tr_.wait()?;
    ensure(status.code() == Some(9), || format!("{status:?}"))
}

/// A program sleeps for half a second, and then uses a CPU for half a second. The recorded samples show when the
/// program slept and when it used the CPU.
fn sampled() -> Result<(), Failed> {
    let program = "import time
time.sleep(0.5)
end = time.process_time() + 0.5
while time.process_time() < end: pass";
    let trace = scratch("sampled.bin");
    let out = record(&trace, PTRACE, &["/usr/bin/python3", "-c", program])?;
    ensure(out.status.success(), || format!("{out:?}"))?;
    let series = tr(
        &[
            "analyze",
            "--report",
            "series",
            "--format",
            "json",
            "--interval",
            "400ms",
        ],
        &trace,
    )?;
    let series: Value = serde_json::from_slice(&series)?;
    let process = &series["series"]["processes"][0];
    // During the first 400 ms Python starts, and then sleeps.
    let first = list(process, "values").iter().filter(|value| value[0] == 0);
    let first: u64 = first.filter_map(|value| value[1].as_u64()).sum();
    let sum = int(process, "on_cpu_ns");
    ensure(first < sum / 3, || process.to_string())?;
    ensure(sum > 450_000_000, || process.to_string())?;
    Ok(())
}

/// A recording by ptrace inside of another one: the outer recorder detaches from the inner COMMAND, and the recording
/// says so.
fn nested() -> Result<(), Failed> {
    let (outer, inner) = (scratch("nest-outer.bin"), scratch("nest-inner.bin"));
    let inside = inner.to_string_lossy().into_owned();
    let command = [
        TR,
        "record",
        "--method",
        "ptrace",
        "-q",
        "-o",
        &inside,
        "--",
        "sh",
        "-c",
        "true; (exit 2); exit 9",
    ];
    let out = record(&outer, PTRACE, &command)?;
    ensure(
        out.status.code() == Some(9) && out.stderr.is_empty(),
        || format!("{out:?}"),
    )?;
    let inner = analyze(&inner)?;
    ensure(inner["trace"]["exit"]["code"] == 9, || {
        inner["trace"].to_string()
    })?;
    ensure(inner["totals"]["processes"] == 2, || {
        inner["totals"].to_string()
    })?;
    lets_go(&outer)
}

/// Checks that the recording names the processes from which the recorder has detached.
fn lets_go(trace: &Path) -> Result<(), Failed> {
    analyze(trace)?;
    let shown = text(&tr(&["analyze"], trace)?);
    let shown: Vec<&str> = shown.split_whitespace().collect();
    let shown = shown.join(" ");
    ensure(
        shown.contains("not recorded further: another program traces it"),
        || shown.clone(),
    )?;
    let events = dump(trace)?;
    ensure(
        events.iter().any(|event| event["kind"] == "detached"),
        || format!("{events:?}"),
    )
}

fn strace() -> Result<(), Failed> {
    let (trace, log) = (scratch("strace.bin"), scratch("strace.log"));
    let line = format!(
        "strace -f -o {} sh -c 'true; exit 8'; exit $?",
        log.display()
    );
    let out = record(&trace, PTRACE, &["sh", "-c", &line])?;
    ensure(
        out.status.code() == Some(8) && out.stderr.is_empty(),
        || format!("{out:?}"),
    )?;
    let logged = std::fs::read_to_string(&log)?;
    ensure(logged.contains("exited with 8"), || logged.clone())?;
    lets_go(&trace)
}

/// If a recorded program has the name of a daemon's client, this name is enough for the warning that the daemon's work
/// is not recorded.
fn clients() -> Result<(), Failed> {
    let dir = scratch("ptrace-daemons");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir)?;
    let trace = dir.join("trace.bin");
    for (name, told) in [("docker", true), ("podman", false)] {
        let program = dir.join(name);
        std::os::unix::fs::symlink("/bin/true", &program)?;
        let command = [&program.display().to_string(), "run"];
        record(&trace, &["--method", "ptrace", "--force", "-q"], &command)?;
        let screen = text(&tr(&["analyze"], &trace)?);
        let screen = screen.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = "what daemons do for docker run is recorded only with BPF rights (tr doctor)";
        ensure(screen.contains(line) == told, || screen.clone())?;
    }
    // While the client sleeps, it is assumed to wait for its daemon.
    let program = dir.join("nerdctl");
    std::os::unix::fs::symlink("/bin/sleep", &program)?;
    let command = [&program.display().to_string(), "0.3"];
    record(&trace, &["--method", "ptrace", "--force", "-q"], &command)?;
    let path = text(&tr(&["analyze", "--report", "critical-path"], &trace)?);
    ensure(path.contains("wait for nerdctl's daemon"), || path.clone())
}

fn gdb() -> Result<(), Failed> {
    let trace = scratch("gdb.bin");
    let command = [
        "gdb", "-nx", "-batch", "-ex", "run", "--args", "sh", "-c", "exit 3",
    ];
    let out = record(&trace, PTRACE, &command)?;
    let said = text(&out.stdout);
    ensure(said.contains("exited with code 03"), || format!("{out:?}"))?;
    lets_go(&trace)
}

fn leaks() -> Result<(), Failed> {
    let source = scratch("leak.c");
    std::fs::write(
        &source,
        "#include <stdlib.h>\nint main(void) { void *volatile p = malloc(10); p = 0; return 0; }\n",
    )?;
    let Ok(program) = compiled(&source, "leak", &["-fsanitize=address"]) else {
        return Ok(()); // gcc comes without the sanitizer's library
    };
    let trace = scratch("leak.bin");
    let out = record(&trace, PTRACE, &[&program])?;
    ensure(text(&out.stderr).contains("10 byte(s) leaked"), || {
        format!("{out:?}")
    })?;
    lets_go(&trace)
}

/// A C program that forks without a pause, until one of its threads kills it.
const FORKS: &str = "#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
static void *end(void *after) { usleep(*(int *)after); kill(getpid(), SIGKILL); return 0; }
int main(int count, char **args) {
    int after = atoi(args[1]);
    pthread_t thread;
    pthread_create(&thread, 0, end, &after);
    while (count) if (fork() == 0) _exit(0);
}
";

/// A process that is killed while it forks does not report its child to the tracer. If that child stayed stopped, the
/// child would hold the pipe open, and `cat` would wait for ever.
fn killed_forks() -> Result<(), Failed> {
    let rounds = if crate::common::long() { 5_000 } else { 150 };
    let source = scratch("forks.c");
    std::fs::write(&source, FORKS)?;
    let program = compiled(&source, "forks", &["-pthread"])?;
    let line = format!(
        "i=0; while [ $i -lt {rounds} ]; do {program} $((200 + i * 37 % 3000)) | cat; i=$((i + 1)); done; exit 4"
    );
    let trace = scratch("forks.bin");
    let mut tr_ = recording(&trace, PTRACE, &["sh", "-c", &line])
        .stderr(Stdio::null())
        .spawn()?;
    let limit = Instant::now() + Duration::from_secs(if rounds > 150 { 280 } else { 60 });
    let status = loop {
        if let Some(status) = tr_.try_wait()? {
            break status;
        }
        if Instant::now() > limit {
            // When tr ends, the kernel resumes the stopped child.
            tr_.kill()?;
            tr_.wait()?;
            return Err("COMMAND hangs".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    ensure(status.code() == Some(4), || format!("{status:?}"))?;
    let analysis = analyze(&trace)?;
    let killed = list(&analysis, "processes").iter();
    let killed = killed.filter(|killed| killed["exit"]["signal"] == libc::SIGKILL);
    let killed = killed.count();
    ensure(killed >= rounds, || format!("{killed} of {rounds}"))?;
    let endless = |process: &&Value| process["end_ns"].is_null() || process["exit"].is_null();
    let endless = list(&analysis, "processes").iter().find(endless);
    ensure(endless.is_none(), || format!("{endless:?}"))
}

/// A C program that seizes and stops all threads of its parent, forks, and ends without detaching from them.
const TRACER: &str = "#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    char path[64];
    sprintf(path, \"/proc/%d/task\", getppid());
    DIR *threads = opendir(path);
    struct dirent *entry;
    int stopped = 0;
    while ((entry = readdir(threads))) {
        int thread = atoi(entry->d_name);
        if (thread && ptrace(PTRACE_SEIZE, thread, 0, 0) == 0) stopped += ptrace(PTRACE_INTERRUPT, thread, 0, 0) == 0;
    }
    for (int i = 0; i < 20; i++) { if (fork() == 0) _exit(0); wait(0); }
    return stopped ? 12 : 77;
}
";

/// COMMAND stops all threads of the recorder. The forks of COMMAND would then wait for the recorder for ever, so the
/// recorder must stop tracing.
fn traces_tr() -> Result<(), Failed> {
    let source = scratch("traces-tr.c");
    std::fs::write(&source, TRACER)?;
    let program = compiled(&source, "traces-tr", &[])?;
    let trace = scratch("traces-tr.bin");
    let mut tr_ = recording(&trace, PTRACE, &[&program]);
    let mut tr_ = tr_.process_group(0).spawn()?;
    let limit = Instant::now() + Duration::from_secs(60);
    let status = loop {
        if let Some(status) = tr_.try_wait()? {
            break status;
        }
        if Instant::now() > limit {
            let group = nix::unistd::Pid::from_raw(tr_.id().cast_signed());
            nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL)?;
            tr_.wait()?;
            return Err("COMMAND hangs".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    if status.code() == Some(77) {
        return Ok(()); // Yama lets no descendant trace
    }
    ensure(status.code() == Some(12), || format!("{status:?}"))?;
    let said = info(&trace)?["degraded"].to_string();
    ensure(said.contains("traces the recorder"), || said.clone())
}

/// A child of a raw clone(2) with CLONE_UNTRACED cannot be traced, so the recording must report this child.
fn untraced() -> Result<(), Failed> {
    let source = scratch("untraced.c");
    std::fs::write(
        &source,
        "#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    for (int i = 0; i < 3; i++) {
        int child = syscall(SYS_clone, 0x00800000 | SIGCHLD, 0, 0, 0, 0), status;
        if (child == 0) _exit(3);
        if (waitpid(child, &status, 0) != child || status != 3 << 8) return 1;
    }
    return 5;
}
",
    )?;
    let program = compiled(&source, "untraced", &[])?;
    let trace = scratch("untraced.bin");
    let out = record(&trace, PTRACE, &[&program])?;
    ensure(out.status.code() == Some(5), || format!("{out:?}"))?;
    let said = info(&trace)?["degraded"].clone();
    let what = said[0]["what"].as_str().unwrap_or_default();
    ensure(
        what.contains("CLONE_UNTRACED") && said.as_array().map(Vec::len) == Some(1),
        || said.to_string(),
    )
}

/// A C program that starts many threads, all of which live at the same time, and then ends.
const THREADS: &str = "#include <pthread.h>
#include <stdlib.h>
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static void *wait(void *nothing) { pthread_mutex_lock(&gate); pthread_mutex_unlock(&gate); return nothing; }
int main(int count, char **args) {
    int all = atoi(args[1]), made = 0;
    pthread_t *threads = malloc(all * sizeof *threads);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 16384);
    pthread_mutex_lock(&gate);
    while (made < all && pthread_create(&threads[made], &small, wait, 0) == 0) made++;
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < made; i++) pthread_join(threads[i], 0);
    return count > 1 && made == all ? 5 : 77;
}
";

/// The recorder's CPU time must grow in proportion to the number of threads: for four times as many threads, the CPU
/// time may be little more than four times as long. If the recorder looked at all threads at each stop, the CPU time
/// would be sixteen times as long.
fn many() -> Result<(), Failed> {
    let source = scratch("threads.c");
    std::fs::write(&source, THREADS)?;
    let program = compiled(&source, "threads", &["-pthread"])?;
    let mut all = Vec::new();
    // Other load can make a single measurement too long, because thousands of stopped threads wait meanwhile. If the
    // recorder really looked at all threads at each stop, all three rounds would take too long.
    for _ in 0..3 {
        let Some([few, many]) = costs_of_threads(&program)? else {
            return Ok(()); // a limit forbids so many threads
        };
        if many < few * 10 {
            return Ok(());
        }
        all.push((few, many));
    }
    Err(format!("ns of 2,000 and 8,000 threads: {all:?}").into())
}

/// The CPU time in ns that the recorder takes to trace 2,000 threads, and to trace 8,000 threads. `None` if there
/// cannot be so many threads.
fn costs_of_threads(program: &str) -> Result<Option<[u64; 2]>, Failed> {
    let mut costs = [0; 2];
    for (count, cost) in [2_000, 8_000].into_iter().zip(&mut costs) {
        let trace = scratch("many.bin");
        let out = record(&trace, PTRACE, &[program, &count.to_string()])?;
        if out.status.code() == Some(77) {
            return Ok(None);
        }
        ensure(out.status.code() == Some(5), || format!("{out:?}"))?;
        let analysis = analyze(&trace)?;
        let totals = &analysis["totals"];
        ensure(
            totals["threads"] == count + 1 && totals["exits"] == count + 1,
            || totals.to_string(),
        )?;
        *cost = int(&info(&trace)?["cost"], "recorder_ns");
    }
    Ok(Some(costs))
}

/// For each tid, the value of a member in the last event of this kind.
fn last(events: &[Value], kind: &str, member: &str) -> BTreeMap<u64, u64> {
    let all = events.iter().filter(|event| event["kind"] == kind);
    all.map(|event| (int(event, "tid"), int(event, member)))
        .collect()
}

/// Five builds: make, a compiler's driver started by xargs, threads and processes of Python, only short processes, and
/// Java if it is installed.
fn beside_bpf() -> Result<(), Failed> {
    let dir = scratch("beside");
    let _ = std::fs::remove_dir_all(&dir);
    copy(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("fixtures")
            .join("demo")
            .as_path(),
        &dir,
    )?;
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/programs");
    let rounds = if crate::common::long() {
        "1 2 3 4 5"
    } else {
        "1"
    };
    let compile = format!(
        "for i in {rounds}; do ls {sources}/*.c; done | xargs -P4 -n1 gcc -w -O2 -c -o /dev/null"
    );
    let python = "import concurrent.futures as f, subprocess as s
with f.ThreadPoolExecutor(4) as pool: list(pool.map(lambda n: s.run(['sh', '-c', 'true; (exit 1); seq 1000 | wc -l'], stdout=-3), range(60)))";
    let many = "i=0; while [ $i -lt 1500 ]; do /bin/true; i=$((i + 1)); done; seq 200 | xargs -P3 -n1 sh -c 'exit 0'";
    std::fs::write(
        dir.join("A.java"),
        "public class A { public static void main(String[] a) { System.out.println(1); } }",
    )?;
    let builds: [&[&str]; 5] = [
        &["make", "-s", "-j2", crate::common::kernels()],
        &["sh", "-c", &compile],
        &["sh", "-c", many],
        &["/usr/bin/python3", "-c", python],
        &["java", "A.java"],
    ];
    let there = |build: &&&[&str]| {
        let program = build.first();
        program.is_some_and(|program| crate::common::lacks(program).is_none())
    };
    let (mut tasks, mut equal) = (0, 0);
    for build in builds.iter().filter(there) {
        let (all, same) = build_beside_bpf(&dir, build)?;
        (tasks, equal) = (tasks + all, equal + same);
    }
    ensure(tasks > 2000 && equal * 1000 >= tasks * 995, || {
        format!("{equal} of {tasks}")
    })
}

/// Records a build by ptrace, and records this recorder together with the build by BPF programs. Both recordings must
/// have the same processes, arguments and exit statuses. Returns the number of tasks, and the number of tasks whose run
/// time equals the last figure of the kernel.
fn build_beside_bpf(dir: &Path, build: &[&str]) -> Result<(usize, usize), Failed> {
    let (outer, inner) = (scratch("outer.bin"), scratch("inner.bin"));
    let inside = inner.to_string_lossy().into_owned();
    let command = [
        &[
            TR, "record", "--method", "ptrace", "-q", "-o", &inside, "--",
        ],
        build,
    ];
    let out = recording(&outer, &["-q", "--method", "bpf"], &command.concat())
        .current_dir(dir)
        .output()?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let (by_bpf, by_ptrace) = (analyze(&outer)?, analyze(&inner)?);
    let key = |process: &Value| {
        let argv: Vec<&Value> = list(process, "execs")
            .iter()
            .map(|exec| &exec["argv"])
            .collect();
        (
            int(process, "pid"),
            format!("{argv:?} {} {}", process["exit"], process["threads"]),
        )
    };
    let theirs: BTreeMap<u64, String> = list(&by_bpf, "processes").iter().map(key).collect();
    let ours: BTreeMap<u64, String> = list(&by_ptrace, "processes").iter().map(key).collect();
    let root = int(&by_ptrace["processes"][0], "pid");
    for (pid, process) in &ours {
        // In the outer recording the first program of COMMAND's process is still `tr`.
        if *pid != root {
            ensure(theirs.get(pid) == Some(process), || {
                format!("{pid}: {process}, by BPF {:?}", theirs.get(pid))
            })?;
        }
    }
    // The inner recorder is the only other process of the outer recording.
    ensure(theirs.len() == ours.len() + 1, || {
        format!("{} and {}", theirs.len(), ours.len())
    })?;
    let (bpf, ptrace) = (dump(&outer)?, dump(&inner)?);
    let finals = last(&bpf, "final", "sum_exec_runtime");
    let accounts = last(&ptrace, "account", "sum_exec_runtime");
    let equal = accounts
        .iter()
        .filter(|(tid, ran)| finals.get(tid) == Some(ran))
        .count();
    for (tid, ran) in &accounts {
        let kernel = finals.get(tid).copied().unwrap_or(0);
        // A zombie may still run, and be interrupted, before it switches out for the last time.
        ensure(kernel.abs_diff(*ran) <= 500_000, || {
            format!("{tid}: {ran}, kernel {kernel}")
        })?;
    }
    let sum = int(&by_ptrace["totals"], "on_cpu_ns");
    ensure(by_ptrace["totals"]["unknown_ns"] == 0, || {
        by_ptrace["totals"].to_string()
    })?;
    let kernel: u64 = accounts.values().sum();
    // COMMAND's process used a little CPU time before it executed COMMAND.
    ensure(sum <= kernel && kernel - sum < 5_000_000, || {
        format!("{sum}, kernel {kernel}")
    })?;
    Ok((accounts.len(), equal))
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
