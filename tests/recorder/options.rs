//! Tests the options for the scope, the duration and the output of a recording.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use serde_json::Value;

use crate::storm::program;
use crate::support::{
    analyze, dump, ensure, info, int, kill, list, record, report, scratch, text, Test, TR,
};

pub const TESTS: &[Test] = &[
    ("pid_follows_processes_that_run_already", pid),
    ("a_process_that_cannot_be_recorded_is_told", hidden),
    ("a_time_namespace_changes_no_time", time_namespace),
    ("cgroup_follows_who_is_in_it_and_who_comes", cgroup),
    ("a_process_that_joins_the_cgroup_is_recorded", joining),
    ("memory_is_of_the_program_alone", memory),
    ("cpu_keeps_to_its_cpus", cpu),
    ("a_method_without_bpf_refuses_other_targets", other_targets),
    (PINNED, pinned),
    ("a_build_has_the_cpus_of_its_affinity", affinity),
    ("all_is_the_whole_machine_for_a_time", all),
    ("a_duration_ends_the_recording_not_the_command", duration),
    ("a_size_ends_the_recording_not_the_command", max_size),
    ("any_duration_is_a_deadline_or_an_error", durations),
    ("standard_output_takes_the_trace", stdout),
    ("buffer_and_quiet_are_obeyed", buffer),
    ("a_long_argv_is_cut_and_said_or_kept_whole", argv),
    ("an_argv_that_is_cut_for_want_of_room_is_said", no_room),
];

const TRUES: &str = "i=0; while [ $i -lt 100 ]; do /bin/true; i=$((i+1)); done";

fn other_targets() -> Result<(), Failed> {
    let own = std::process::id().to_string();
    for target in [&["--cpu", "0"][..], &["--all"], &["--pid", &own]] {
        let options = [&["--method", "ptrace", "-q"], target].concat();
        let out = record(&scratch("targets.bin"), &options, &["true"])?;
        let said = text(&out.stderr);
        let refused = out.status.code() == Some(125) && said.contains("need --method bpf");
        ensure(refused, || format!("{options:?}: {out:?}"))?;
    }
    Ok(())
}

/// A command `tr record -o TRACE OPTIONS` without COMMAND, which records tasks that already run.
pub fn watch(trace: &std::path::Path, options: &[&str]) -> Command {
    let mut tr = Command::new(TR);
    tr.args(["record", "-o"]).arg(trace).args(options);
    tr.stdout(Stdio::piped()).stderr(Stdio::piped());
    tr
}

/// Starts a shell that waits for a line on its standard input, and then runs the script.
fn waiting(script: &str) -> Result<Child, Failed> {
    let child = Command::new("sh")
        .args(["-c", &format!("read go; {script}")])
        .stdin(Stdio::piped())
        .spawn()?;
    std::thread::sleep(Duration::from_millis(50));
    Ok(child)
}

/// Waits until the recorder traces. The recorder makes the trace file only then.
pub fn under_way(trace: &std::path::Path) -> Result<(), Failed> {
    crate::support::eventually("the header", || trace.exists())?;
    std::thread::sleep(Duration::from_millis(50));
    Ok(())
}

fn trues(analysis: &serde_json::Value) -> usize {
    let execs = list(analysis, "processes")
        .iter()
        .flat_map(|p| list(p, "execs"));
    execs
        .filter(|exec| exec["argv"] == serde_json::json!(["/bin/true"]))
        .count()
}

fn pid() -> Result<(), Failed> {
    let trace = scratch("pid.bin");
    let _ = std::fs::remove_file(&trace);
    let (mut one, mut two, mut other) = (waiting(TRUES)?, waiting(TRUES)?, waiting(TRUES)?);
    let pids = format!("{},{}", one.id(), two.id());
    let tr = watch(&trace, &["--pid", &pids]).spawn()?;
    under_way(&trace)?;
    for child in [&mut one, &mut two, &mut other] {
        drop(child.stdin.take());
        child.wait()?;
    }
    // The recording ends when the second of the two processes has ended.
    let out = tr.wait_with_output()?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let analysis = analyze(&trace)?;
    ensure(trues(&analysis) == 200, || {
        format!("{} execs", trues(&analysis))
    })?;
    ensure(list(&analysis, "processes").len() == 202, || {
        format!("{} processes", list(&analysis, "processes").len())
    })?;
    let shell = list(&analysis, "processes")
        .iter()
        .find(|p| int(p, "pid") == u64::from(one.id()));
    ensure(shell.is_some_and(|p| p["exit"]["code"] == 0), || {
        format!("{shell:?}")
    })?;

    let out = watch(&trace, &["--pid", "4194000"]).output()?;
    ensure(out.status.code() == Some(125), || format!("{out:?}"))?;
    ensure(
        text(&out.stderr).contains("no such process: 4194000"),
        || text(&out.stderr),
    )?;

    // Ctrl-C (SIGINT) ends the recording with a complete file.
    let _ = std::fs::remove_file(&trace);
    let mut sleeper = waiting(":")?;
    let tr = watch(&trace, &["--pid", &sleeper.id().to_string()]).spawn()?;
    under_way(&trace)?;
    kill().args(["-INT", &tr.id().to_string()]).status()?;
    let out = tr.wait_with_output()?;
    drop(sleeper.stdin.take());
    sleeper.wait()?;
    ensure(out.status.success(), || text(&out.stderr))?;
    ensure(analyze(&trace)?["trace"]["truncated"] == false, || {
        "cut".into()
    })
}

/// A cgroup for this test; dropping the value removes it.
pub struct Cgroup(pub PathBuf);

impl Cgroup {
    pub fn new(name: &str) -> Option<Cgroup> {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        let line = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
        let path = PathBuf::from(line.split(' ').nth(4)?)
            .join(format!("tr-test-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).ok()?;
        Some(Cgroup(path))
    }

    pub fn add(&self, pid: u32) -> std::io::Result<()> {
        std::fs::write(self.0.join("cgroup.procs"), pid.to_string())
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// The reason why cgroups cannot be tested here.
pub fn no_cgroup() -> Option<String> {
    Cgroup::new("probe")
        .is_none()
        .then(|| "no cgroup v2 that can be written".into())
}

fn cgroup() -> Result<(), Failed> {
    let trace = scratch("cgroup.bin");
    let _ = std::fs::remove_file(&trace);
    let cgroup = Cgroup::new("follow").ok_or("no cgroup")?;
    let (mut inside, mut late, mut outside) = (waiting(TRUES)?, waiting(TRUES)?, waiting(TRUES)?);
    cgroup.add(inside.id())?;
    let path = cgroup.0.to_string_lossy().into_owned();
    let tr = watch(&trace, &["--cgroup", &path]).spawn()?;
    under_way(&trace)?;
    cgroup.add(late.id())?;
    for child in [&mut inside, &mut late, &mut outside] {
        drop(child.stdin.take());
        child.wait()?;
    }
    kill().args(["-INT", &tr.id().to_string()]).status()?;
    let out = tr.wait_with_output()?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let analysis = analyze(&trace)?;
    ensure(trues(&analysis) == 200, || {
        format!("{} execs", trues(&analysis))
    })?;
    let out = watch(&trace, &["--cgroup", "/etc/passwd"]).output()?;
    ensure(out.status.code() == Some(125), || format!("{out:?}"))
}

/// Two processes are moved into the recorded cgroup, run there and end without an exec. One is a shell, which moves
/// itself. The other is a process with two threads, which another process moves.
fn joining() -> Result<(), Failed> {
    let trace = scratch("joining.bin");
    let _ = std::fs::remove_file(&trace);
    let cgroup = Cgroup::new("join").ok_or("no cgroup")?;
    let path = cgroup.0.to_string_lossy().into_owned();
    let script =
        format!("echo $$ > {path}/cgroup.procs; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done");
    let mut shell = waiting(&script)?;
    let threads = "import sys, threading, time\n\
        def burn():\n    start = time.thread_time()\n    while time.thread_time() - start < 0.1: pass\n\
        threads = [threading.Thread(target=lambda: (sys.stdin.read(), burn()))]\n\
        [t.start() for t in threads]; [t.join() for t in threads]";
    let mut python = Command::new("python3")
        .args(["-c", threads])
        .stdin(Stdio::piped())
        .spawn()?;
    let threads_of = format!("/proc/{}/task", python.id());
    crate::support::eventually("python's thread", || {
        std::fs::read_dir(&threads_of).is_ok_and(|threads| threads.count() == 2)
    })?;
    let tr = watch(&trace, &["--cgroup", &path]).spawn()?;
    under_way(&trace)?;
    cgroup.add(python.id())?;
    drop(python.stdin.take());
    drop(shell.stdin.take());
    let (shell_pid, python_pid) = (shell.id(), python.id());
    shell.wait()?;
    python.wait()?;
    kill().args(["-INT", &tr.id().to_string()]).status()?;
    let out = tr.wait_with_output()?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let analysis = analyze(&trace)?;
    let find = |pid: u32| {
        let mut all = list(&analysis, "processes").iter();
        let found = all.find(|p| int(p, "pid") == u64::from(pid));
        found.ok_or_else(|| Failed::from(format!("no process {pid}: {analysis}")))
    };
    let shell = find(shell_pid)?;
    ensure(int(shell, "on_cpu_ns") > 50_000_000, || shell.to_string())?;
    let script = format!("read go; {script}");
    ensure(
        shell["argv"][2] == *script && shell["exit"]["code"] == 0,
        || shell.to_string(),
    )?;
    let python = find(python_pid)?;
    let cpu = int(python, "on_cpu_ns");
    ensure(cpu > 90_000_000 && int(python, "threads") == 2, || {
        python.to_string()
    })?;
    // The recording may lack the argv of python. The recorder did not read the memory of the process, and /proc has the
    // command line only until the process ends.
    let known = python["argv"].is_null() || python["argv"][2] == *threads;
    ensure(known && python["comm"] == "python3", || python.to_string())
}

/// If a large program starts a small one by vfork, the memory of the small program must be its own, not that of the
/// large program.
fn memory() -> Result<(), Failed> {
    let trace = scratch("memory.bin");
    let script = "import os; large = b'x' * (300 << 20)\n\
        os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)";
    let out = record(&trace, &[], &["python3", "-c", script])?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let analysis = analyze(&trace)?;
    let mut large = 0;
    for process in list(&analysis, "processes") {
        let memory = process["max_rss_bytes"].as_u64();
        let last = list(process, "execs").last();
        let last = last.and_then(|exec| exec["max_rss_bytes"].as_u64());
        if process["comm"] == "true" {
            ensure(memory.is_none_or(|bytes| bytes < 100 << 20), || {
                process.to_string()
            })?;
            ensure(last == memory, || process.to_string())?;
        }
        large = large.max(memory.unwrap_or(0));
    }
    ensure(large > 300 << 20, || format!("{large} bytes"))
}

/// On some virtual machines the kernel hides process 1 from BPF programs; this must be reported.
fn hidden() -> Result<(), Failed> {
    let trace = scratch("pid-1.bin");
    let out = watch(&trace, &["--pid", "1", "--duration", "300ms"]).output()?;
    let said = text(&out.stderr);
    if out.status.success() {
        let analysis = analyze(&trace)?;
        return ensure(!list(&analysis, "processes").is_empty(), || said);
    }
    ensure(
        out.status.code() == Some(125) && said.contains("does not list process 1"),
        || said,
    )
}

fn time_namespace() -> Result<(), Failed> {
    let trace = scratch("time.bin");
    let out = Command::new("unshare")
        .args(["-T", "--monotonic", "100000", "--boottime", "100000"])
        .args([TR, "record", "-o"])
        .arg(&trace)
        .args(["--", "sh", "-c", "/bin/true; sleep 0.1; :"])
        .output()?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let analysis = analyze(&trace)?;
    let processes = list(&analysis, "processes");
    let all = || format!("{:#}", analysis["processes"]);
    ensure(processes.len() == 3, all)?;
    ensure(int(&processes[0], "wall_ns") >= 100_000_000, all)?;
    // The times must not be off by the time namespace's offset of 100,000 s.
    const HALF: u64 = 50_000_000_000_000;
    ensure(processes.iter().all(|p| int(p, "start_ns") < HALF), all)
}

/// The reason why no time namespace can be made here, if any.
pub fn no_time_namespace() -> Option<String> {
    let tried = Command::new("unshare")
        .args(["-T", "--monotonic", "1", "true"])
        .stderr(Stdio::null())
        .status();
    let works = tried.is_ok_and(|status| status.success());
    (!works).then(|| "unshare makes no time namespace here".to_owned())
}

fn cpu() -> Result<(), Failed> {
    if std::thread::available_parallelism()?.get() < 2 {
        return Ok(());
    }
    let trace = scratch("cpu.bin");
    let script = "taskset -c 0 sh -c 'sleep 0.1; :' & taskset -c 1 sh -c 'sleep 0.1; :' & wait";
    for (list, cpus) in [("0", &[0][..]), ("1", &[1]), ("0-1", &[0, 1])] {
        let out = record(&trace, &["--cpu", list], &["sh", "-c", script])?;
        ensure(out.status.success(), || text(&out.stderr))?;
        let mut seen = std::collections::BTreeSet::new();
        for event in dump(&trace)? {
            if event["kind"] == "switch" || event["kind"] == "waking" {
                seen.insert(int(&event, "cpu"));
            }
        }
        ensure(seen.iter().copied().eq(cpus.iter().copied()), || {
            format!("{list}: {seen:?}")
        })?;
    }
    Ok(())
}

pub const PINNED: &str = "a_pinned_task_is_exact_on_its_cpu";

/// A busy task is pinned to the recorded CPU, which it shares with another task. The times for which the busy task was
/// off the CPU must equal the times that perf records. For a task that may run on other CPUs, the times off the CPU are
/// unknown, and the report says so.
fn pinned() -> Result<(), Failed> {
    if std::thread::available_parallelism()?.get() < 2 {
        return Ok(());
    }
    let (trace, data) = (scratch("pinned.bin"), scratch("pinned.data"));
    let busy = "while :; do :; done";
    let mut other = Command::new("taskset")
        .args(["-c", "1", "timeout", "100", "sh", "-c", busy])
        .spawn()?;
    let perf = ["sched", "record", "-q", "-m", "8M", "-o"];
    let record = ["record", "-q", "--cpu", "1", "-o"];
    let preempted = "while :; do
            while read name count; do
                case $name in nonvoluntary*) if [ $count -ge 100 ]; then exit; fi ;; esac
            done </proc/self/status
        done";
    let command = [
        "--", "timeout", "90", "taskset", "-c", "1", "sh", "-c", preempted,
    ];
    let mut run = Command::new("perf");
    run.args(perf).arg(&data).arg("--").arg(TR);
    let out = run.args(record).arg(&trace).args(command).output();
    // timeout passes SIGTERM on to its command.
    kill().arg("-TERM").arg(other.id().to_string()).status()?;
    other.wait()?;
    out?;
    let task = dump(&trace)?;
    let mut task = task.iter().filter(|event| event["pinned"] == true);
    let task = task.next().ok_or("no task is pinned")?;
    let tid = int(task, "tid");
    let report = crate::common::document(&trace, &["--report", "max-off-cpu"])?;
    let rows = list(&report["max_off_cpu"], "rows").iter();
    let rows: Vec<_> = rows.filter(|row| int(row, "pid") == tid).collect();
    let longest = rows.iter().map(|row| int(row, "max_off_cpu_ns")).max();
    let longest = longest.ok_or("no time off CPU")? as f64 / 1e6;
    let count: u64 = rows.iter().map(|row| int(row, "count")).sum();
    let theirs = Command::new("perf")
        .args(["sched", "timehist", "-i"])
        .arg(&data)
        .args(["--tid", &tid.to_string()])
        .output()?;
    let waits: Vec<f64> = text(&theirs.stdout)
        .lines()
        .filter(|line| line.contains(&format!("[{tid}")))
        .filter_map(|line| line.split_whitespace().rev().nth(2)?.parse().ok())
        .collect();
    let said = || format!("{count} times, {longest} ms are not perf's {waits:?}");
    // Until taskset has pinned the task, other tasks preempt it as well, so perf may have seen more waits.
    let before = (waits.len() as u64).checked_sub(count);
    ensure(
        count >= 60 && before.is_some_and(|before| before <= 40),
        said,
    )?;
    let before = usize::try_from(before.unwrap_or(0))?;
    let pinned = waits.get(before..).unwrap_or_default();
    // The hypervisor may take the CPU between the moments at which the two recorders read the clock, so times may
    // differ.
    let tolerance = 0.5;
    ensure(
        pinned.iter().any(|ms| (ms - longest).abs() < tolerance),
        said,
    )?;
    let longer = pinned.iter().filter(|ms| **ms > longest + tolerance);
    ensure(longer.count() <= 1, said)?;
    let free = ["--", "sh", "-c", "sleep 0.1; :"];
    let out = record_cpu(&trace, &free)?;
    ensure(out.contains("unknown") && !out.contains("none"), || {
        out.clone()
    })
}

/// Records a command only on CPU 1. Returns the report of the longest times off CPU as text.
fn record_cpu(trace: &std::path::Path, command: &[&str]) -> Result<String, Failed> {
    let out = record(trace, &["--cpu", "1"], command.get(1..).unwrap_or_default())?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let args = ["analyze", "--report", "max-off-cpu"];
    Ok(text(&crate::support::tr(&args, trace)?))
}

/// Two jobs are pinned to one CPU (taskset), so together they take as long as one after the other. The verdict must not
/// blame other load for this. If COMMAND may change its CPUs itself, it could use all of them.
fn affinity() -> Result<(), Failed> {
    let cpus = std::thread::available_parallelism()?.get();
    if cpus < 2 {
        eprintln!("a_build_has_the_cpus_of_its_affinity: not tried, there is one CPU");
        return Ok(());
    }
    let trace = scratch("affinity.bin");
    let busy = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done";
    let script = format!("({busy}) & ({busy}) & wait");
    let pinned = |command: &[&str]| -> Result<Value, Failed> {
        let mut tr = Command::new("taskset");
        tr.args(["-c", "0", TR, "record", "-o"]).arg(&trace);
        let out = tr.arg("--").args(command).output()?;
        ensure(out.status.success(), || text(&out.stderr))?;
        analyze(&trace)
    };
    let build = pinned(&["sh", "-c", &script])?;
    let all = || build["trace"].to_string();
    ensure(info(&trace)?["allowed_cpus"] == serde_json::json!([0]), all)?;
    ensure(build["trace"]["cpus_of_build"] == 1, all)?;
    ensure(int(&build["trace"], "cpus") as usize >= cpus, all)?;
    let advice = crate::support::report(&trace, "advice", &[])?;
    let (alone, on_cpu) = (
        int(&advice["verdict"], "alone_ns"),
        int(&build["totals"], "on_cpu_ns"),
    );
    ensure(alone + on_cpu / 10 >= on_cpu, || {
        format!("{alone} on one CPU for work of {on_cpu}: {advice}")
    })?;
    let left = pinned(&["taskset", "-c", "1", "true"])?;
    let none = &left["trace"]["cpus_of_build"];
    ensure(none.is_null(), || left["trace"].to_string())?;
    let mut sleep = Command::new("taskset")
        .args(["-c", "1", "sleep", "20"])
        .spawn()?;
    // taskset sets the affinity before it becomes `sleep`.
    let status = format!("/proc/{}/status", sleep.id());
    crate::support::eventually("the affinity", || {
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        status.contains("Name:\tsleep\n")
    })?;
    let pid = sleep.id().to_string();
    let out = watch(&trace, &["--duration", "100ms", "--pid", &pid]).output();
    sleep.kill()?;
    sleep.wait()?;
    let out = out?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let told = info(&trace)?;
    ensure(told["allowed_cpus"] == serde_json::json!([1]), || {
        told.to_string()
    })
}

fn all() -> Result<(), Failed> {
    let trace = scratch("all.bin");
    let mut other = Command::new("sh")
        .args(["-c", "while :; do /bin/true; sleep 0.01; done"])
        .spawn()?;
    let started = Instant::now();
    let out = watch(&trace, &["-a", "--duration", "400ms"]).output();
    let took = started.elapsed();
    other.kill()?;
    other.wait()?;
    let out = out?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let analysis = analyze(&trace)?;
    ensure(trues(&analysis) > 0, || {
        format!("{} execs", trues(&analysis))
    })?;
    let duration = Duration::from_nanos(int(&analysis["trace"], "duration_ns"));
    ensure(duration.as_millis() >= 400 && duration < took, || {
        format!("{duration:?} of {took:?}")
    })?;
    // The recording has every switch, so a task can be in an unknown state only while it is on no CPU. This unknown
    // time must be small, unless events were lost.
    let found = report(&trace, "parallelism", &[])?;
    let lost = &info(&trace)?["lost_events"];
    let unknown = u128::from(int(&found, "unknown_ns"));
    ensure(
        unknown * 10 < duration.as_nanos() || *lost != serde_json::json!({}),
        || format!("{found:#} {lost}"),
    )?;
    let shell = list(&analysis, "processes")
        .iter()
        .any(|p| int(p, "pid") == u64::from(other.id()));
    ensure(shell, || "what ran before is missing".into())?;
    // The kernels of some virtual machines do not list all processes to BPF programs. A process may lack a name only if
    // it was not listed and did not run on a CPU later. For example, it ended while the programs were attached.
    let events = dump(&trace)?;
    let listed = events.iter().filter(|event| event["kind"] == "snapshot");
    let listed: BTreeSet<u64> = listed.map(|event| int(event, "tgid")).collect();
    let nameless = list(&analysis, "processes").iter();
    let nameless: Vec<_> = nameless
        .filter(|p| p["comm"] == "")
        .filter(|p| int(p, "on_cpu_ns") > 0 || listed.contains(&int(p, "pid")))
        .collect();
    ensure(nameless.is_empty(), || format!("no name: {nameless:?}"))
}

fn duration() -> Result<(), Failed> {
    let trace = scratch("duration.bin");
    let out = record(
        &trace,
        &["--duration", "200ms"],
        &["sh", "-c", "sleep 0.6; exit 4"],
    )?;
    ensure(out.status.code() == Some(4), || format!("{out:?}"))?;
    // The recording ended before COMMAND, so it has no exit status of COMMAND.
    let found = analyze(&trace)?["trace"].take();
    ensure(
        int(&found, "duration_ns") >= 200_000_000 && found["exit"].is_null(),
        || found.to_string(),
    )
}

/// On a busy machine the recorder may wait for a CPU just when the many events begin, so that the file exceeds the
/// limit a little. This must not happen in both of two tries.
fn max_size() -> Result<(), Failed> {
    sized().or_else(|_| sized())
}

/// Records with a size limit: the file stays below the limit and contains the end of COMMAND, which goes on after the
/// limit is reached.
fn sized() -> Result<(), Failed> {
    const LIMIT: u64 = 1 << 20;
    let trace = scratch("max_size.bin");
    let storm = program()?;
    let script = format!("{storm} pipe 500000; exit 4");
    for options in [&["--max-size", "1M"][..], &["--max-size=1M", "--stacks"]] {
        let out = record(&trace, options, &["sh", "-c", &script])?;
        let said = text(&out.stderr);
        let last = said.lines().last().unwrap_or_default();
        let told = last.contains("at its limit of 1 MiB (--max-size); the command ran on for");
        ensure(out.status.code() == Some(4) && told, || format!("{out:?}"))?;
        let bytes = std::fs::metadata(&trace)?.len();
        ensure((LIMIT / 2..=LIMIT).contains(&bytes), || {
            format!("{bytes} bytes")
        })?;

        let info = info(&trace)?;
        let full = &info["max_size"];
        let command = &full["command"];
        let cpu = int(&command["usage"], "user_ns") + int(&command["usage"], "system_ns");
        let wall = int(command, "duration_ns");
        let right = int(full, "limit") == LIMIT
            && info["truncated"] == false
            && command["exit"]["code"] == 4
            && wall > int(&info, "duration_ns")
            && cpu > 0;
        ensure(right, || info.to_string())?;

        let found = analyze(&trace)?["trace"].take();
        let warned = list(&found, "warnings").iter().any(|warning| {
            let warning = warning.as_str().unwrap_or_default();
            warning.contains("(--max-size); the command ran on (exit 4, ")
        });
        ensure(warned && found["exit"]["code"] == 4, || found.to_string())?;
    }
    let out = record(&trace, &["--max-size", "1K"], &["true"])?;
    ensure(out.status.code() == Some(125), || format!("{out:?}"))?;
    let rotated = ["--max-size=1M", "--light", "--rotate=1h"];
    let out = record(&trace, &rotated, &["true"])?;
    ensure(out.status.code() == Some(125), || format!("{out:?}"))
}

/// The largest duration is never reached. A duration of zero is an error.
fn durations() -> Result<(), Failed> {
    let trace = scratch("durations.bin");
    for length in ["18446744073709549568s", "5124095576030430h"] {
        let out = record(&trace, &["--duration", length], &["sh", "-c", "exit 3"])?;
        ensure(out.status.code() == Some(3), || format!("{out:?}"))?;
    }
    let out = record(&trace, &["--duration", "0"], &["sh", "-c", "exit 3"])?;
    let said = text(&out.stderr);
    ensure(
        out.status.code() == Some(125) && said.contains("--duration"),
        || format!("{out:?}"),
    )
}

fn stdout() -> Result<(), Failed> {
    // If the reader closes the pipe, the recording ends, but COMMAND goes on.
    let mut tr = Command::new(TR)
        .args(["record", "-o", "-", "--", "sh", "-c", "sleep 1; exit 3"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut head = [0; 100];
    tr.stdout.take().ok_or("no stdout")?.read_exact(&mut head)?;
    let out = tr.wait_with_output()?;
    ensure(out.status.code() == Some(3), || format!("{out:?}"))?;
    ensure(text(&out.stderr).contains("writing failed"), || {
        text(&out.stderr)
    })?;
    ensure(head.starts_with(b"\x89tr\xb5"), || format!("{head:?}"))?;
    // tr refuses to write a trace to a terminal.
    let pty = nix::pty::openpty(None, None)?;
    let out = Command::new(TR)
        .args(["record", "-o", "-", "--", "true"])
        .stdout(pty.slave)
        .stderr(Stdio::piped())
        .output()?;
    ensure(out.status.code() == Some(125), || format!("{out:?}"))?;
    ensure(text(&out.stderr).contains("terminal"), || text(&out.stderr))
}

fn buffer() -> Result<(), Failed> {
    let trace = scratch("buffer.bin");
    let out = record(&trace, &["--buffer", "1M", "-q"], &["sh", "-c", "exit 2"])?;
    ensure(
        out.status.code() == Some(2) && out.stderr.is_empty(),
        || format!("{out:?}"),
    )?;
    let said = info(&trace)?;
    let buffer = int(&said["options"], "buffer");
    ensure((1 << 18..=1 << 20).contains(&buffer), || said.to_string())
}

fn argv() -> Result<(), Failed> {
    let trace = scratch("argv.bin");
    let long = ["x", "y", "z"].map(|letter| letter.repeat(100_000));
    let command = ["/bin/true", &long[0], &long[1], &long[2]];
    let kept = |whole: bool| -> Result<(), Failed> {
        let analysis = analyze(&trace)?;
        let execs = list(&analysis["processes"][0], "execs");
        let [exec] = execs else {
            return Err(format!("{} execs", execs.len()).into());
        };
        let args = list(exec, "argv");
        ensure(exec["argv_truncated"] == !whole, || {
            exec["argv_truncated"].to_string()
        })?;
        let equal = |(kept, given): (&serde_json::Value, &&str)| {
            if whole {
                kept == given
            } else {
                given.starts_with(kept.as_str().unwrap_or("?"))
            }
        };
        let len: usize = args
            .iter()
            .filter_map(|arg| arg.as_str())
            .map(str::len)
            .sum();
        let bytes = if whole { 300_009 } else { 16_384 - 1 };
        ensure(args.iter().zip(&command).all(equal) && len == bytes, || {
            format!("{len} bytes of arguments")
        })
    };
    let out = record(&trace, &[], &command)?;
    let said = text(&out.stderr);
    ensure(
        said.contains("the arguments of 1 exec are cut at 16,384 bytes"),
        || said.clone(),
    )?;
    kept(false)?;
    let out = record(&trace, &["--argv-limit", "1M"], &command)?;
    let said = text(&out.stderr);
    ensure(out.status.success() && !said.contains("cut at"), || {
        said.clone()
    })?;
    kept(true)
}

/// The recorder is stopped until its ring buffer is full. Arguments are cut if the rest of the ring is too small for
/// them. The rest may by chance be too small for any argv, so the ring is filled several times, with arguments of
/// several lengths.
fn no_room() -> Result<(), Failed> {
    let trace = scratch("no-room.bin");
    let script = "for length in 4000 3700 3100 2300 1700; do
        kill -STOP $PPID; a=$(printf %0${length}d 0); i=0
        while [ $i -lt 60 ]; do /bin/true $a; i=$((i+1)); done
        kill -CONT $PPID; sleep 0.2; done";
    let out = record(&trace, &["--buffer", "256K"], &["sh", "-c", script])?;
    let said = text(&out.stderr);
    ensure(
        said.contains(" are cut because the ring had no room for them (--buffer makes it larger)"),
        || said.clone(),
    )?;
    ensure(!said.contains("--argv-limit"), || said.clone())
}
