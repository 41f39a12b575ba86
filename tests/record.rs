//! Records real programs. Without the right to trace, these tests are reported as ignored, with the reason.

#![allow(clippy::expect_used, clippy::indexing_slicing)] // a JSON value indexes to null

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use libtest_mimic::{Arguments, Failed};
use serde_json::Value;

mod common;

use common::{analyze, int, list, why_not, ABSENT, TR};

fn main() {
    let mut args = Arguments::from_args();
    // Tests that run at the same time would change each other's times.
    args.test_threads = Some(1);
    let reason = why_not();
    let trial = |name: &str, test: fn() -> Result<(), Failed>| {
        let own = || match name {
            "reused_pids_are_different_processes" => {
                (!nix::unistd::geteuid().is_root()).then(|| "not root".to_owned())
            }
            "strace_sees_the_same_execs_and_exits" => common::lacks("strace"),
            _ => None,
        };
        common::trial(name, reason.clone().or_else(own), test)
    };
    let trials = vec![
        trial("exit_statuses_are_the_commands_own", exit_statuses),
        trial("streams_are_the_commands_own", streams),
        trial("every_short_process_is_recorded", short_processes),
        trial("sleeping_and_spinning_are_separate", sleep_spin),
        trial("two_spinners_share_a_cpu", spinners),
        trial("a_vfork_parent_is_blocked_by_vfork", vfork_exec),
        trial("exec_from_a_second_thread", thread_exec),
        trial("the_leader_exits_first", leader_first),
        trial("a_daemon_keeps_its_place_in_the_tree", daemon),
        trial("reused_pids_are_different_processes", reuse),
        trial("the_kernel_agrees_on_cpu_time_and_switches", kernel_figures),
        trial("strace_sees_the_same_execs_and_exits", strace),
        trial("diff_names_a_planted_slowdown", planted_slowdown),
        trial(
            "kill_9_leaves_a_readable_file_and_an_unharmed_command",
            kill_9,
        ),
        trial("marks_name_parts_of_a_recording", marks),
    ];
    libtest_mimic::run(&args, trials).exit();
}

fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("record");
    std::fs::create_dir_all(&dir).expect("a scratch directory");
    dir.join(name)
}

fn record(trace: &Path, command: &[&str]) -> std::io::Result<Output> {
    Command::new(TR)
        .arg("record")
        .arg("-o")
        .arg(trace)
        .arg("--")
        .args(command)
        .output()
}

/// Records a command that must succeed, and analyzes it.
fn run(name: &str, command: &[&str]) -> Result<Value, Failed> {
    let trace = scratch(name);
    let out = record(&trace, command)?;
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    ensure(said.contains("none lost"), || said.clone())?;
    Ok(analyze(&trace)?)
}

/// Compiles a program of fixtures/programs.
fn program(name: &str) -> Result<String, Failed> {
    let source = format!("{name}.c");
    let to = scratch(name);
    Ok(common::compiled(source.as_ref(), &to, &["-pthread"])?)
}

fn ensure(good: bool, what: impl FnOnce() -> String) -> Result<(), Failed> {
    Ok(common::ensure(good, what)?)
}

fn root(analysis: &Value) -> &Value {
    &analysis["processes"][0]
}

/// Checks a time of sleep. A part of the sleep may be unknown, and the sleep may end late if the whole machine stands
/// still for a while.
fn near(is: u64, want: u64, what: &str) -> Result<(), Failed> {
    ensure(is * 2 >= want && is <= want + LATE, || {
        format!("{what}: {is} ns, expected {want} to {} ns", want + LATE)
    })
}

const LATE: u64 = 500 * MS;

const MS: u64 = 1_000_000;

fn exit_statuses() -> Result<(), Failed> {
    for (command, code) in [
        (&["sh", "-c", "exit 0"][..], 0),
        (&["sh", "-c", "exit 3"], 3),
        (&["sh", "-c", "kill -9 $$"], 137),
        (&[ABSENT], 127),
        (&["/etc/passwd"], 126),
    ] {
        let out = record(&scratch("status"), command)?;
        ensure(out.status.code() == Some(code), || {
            format!("{command:?}: {:?}", out.status)
        })?;
    }
    // If the output cannot be written, the command runs unrecorded.
    let trace = Path::new(ABSENT).join("trace.bin");
    let out = record(&trace, &["sh", "-c", "exit 4"])?;
    ensure(out.status.code() == Some(4), || {
        format!("unwritable output: {:?}", out.status)
    })
}

fn streams() -> Result<(), Failed> {
    let out = Command::new(TR)
        .args(["record", "-q", "-o", "-", "--", "sh", "-c", "cat >&2"])
        .stdin(std::fs::File::open("/etc/hostname")?)
        .output()?;
    ensure(out.stderr == std::fs::read("/etc/hostname")?, || {
        format!("{:?}", out.stderr)
    })?;
    let mut analyze = Command::new(TR)
        .args(["analyze", "-", "--format", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    std::io::Write::write_all(&mut analyze.stdin.take().ok_or("no stdin")?, &out.stdout)?;
    let analysis: Value = serde_json::from_slice(&analyze.wait_with_output()?.stdout)?;
    ensure(int(&analysis["totals"], "execs") == 2, || {
        format!("{}", analysis["totals"])
    })
}

fn short_processes() -> Result<(), Failed> {
    let count = if common::long() { 12_000 } else { 3_000 };
    let script = format!("i=0; while [ $i -lt {count} ]; do /bin/true; i=$((i+1)); done");
    let analysis = run("short", &["sh", "-c", &script])?;
    let trues = list(&analysis, "processes")
        .iter()
        .flat_map(|process| list(process, "execs"))
        .filter(|exec| {
            exec["argv"] == serde_json::json!(["/bin/true"]) && exec["argv_truncated"] == false
        })
        .count();
    ensure(trues == count, || format!("{trues} execs of true"))?;
    ensure(
        int(&analysis["totals"], "exits") == count as u64 + 1,
        || format!("{}", analysis["totals"]),
    )
}

/// Compares the times with the program's own measurements by the kernel's clocks. On a busy machine, the sleeps that
/// the program measured contain waits for a CPU.
fn sleep_spin() -> Result<(), Failed> {
    let trace = scratch("sleep_spin.bin");
    let before = disturbed()?;
    let out = record(&trace, &[&program("sleep_spin")?])?;
    let disturbed = disturbed()? - before;
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    let mut said = said.trim().split(' ').map(str::parse::<u64>);
    let (Some(Ok(slept)), Some(Ok(cpu))) = (said.next(), said.next()) else {
        return Err(format!("{out:?}").into());
    };
    // The times of the program are counted from its exec, because before that the process waits for tr.
    let execs = Command::new(TR)
        .args(["analyze", "--report", "execs", "--format", "json"])
        .arg(&trace)
        .output()?;
    let analysis: Value = serde_json::from_slice(&execs.stdout)?;
    let program = &analysis["execs"][0];
    let (sleep, on_cpu) = (int(program, "sleep_ns"), int(program, "on_cpu_ns"));
    let unknown = int(program, "unknown_ns");
    ensure(
        sleep <= slept && sleep + unknown + 50 * MS >= 1500 * MS,
        || format!("asleep {sleep} ns, {unknown} ns unknown; by its own clock at most {slept} ns"),
    )?;
    let slack = 10 * MS;
    ensure(
        on_cpu <= cpu + slack + disturbed && on_cpu + unknown + slack >= cpu,
        || {
            format!(
                "on CPU {on_cpu} ns, {unknown} ns unknown; the kernel says {cpu} ns, besides \
                 {disturbed} ns of interrupts and steal time"
            )
        },
    )
}

/// Checks a time: the known part must not exceed the expected time, and known and unknown time together must reach it.
fn within(process: &Value, name: &str, want: u64, slack: u64) -> Result<(), Failed> {
    let (known, unknown) = (int(process, name), int(process, "unknown_ns"));
    ensure(
        known <= want + slack && known + unknown + slack >= want,
        || format!("{name}: {known} ns known, {unknown} ns unknown, expected {want} ± {slack} ns"),
    )
}

/// Checks that a process slept for `ms` milliseconds. The process's waits for a CPU count as well, because the timer
/// may run before the sleep begins. Unknown time counts as well, because the kernel does not report every waking.
fn slept(process: &Value, ms: u64, what: &str) -> Result<(), Failed> {
    let [slept, queued, unknown] =
        ["sleep_ns", "run_queue_ns", "unknown_ns"].map(|name| int(process, name));
    ensure(
        slept <= ms * MS + LATE && slept + queued + unknown >= ms * MS * 9 / 10,
        || format!("{what}: {process}"),
    )
}

fn spinners() -> Result<(), Failed> {
    let analysis = run("spinners.bin", &[&program("spinners")?])?;
    for process in list(&analysis, "processes").iter().skip(1) {
        within(process, "on_cpu_ns", 500 * MS, 10 * MS)?;
        let (wait, wall) = (int(process, "run_queue_ns"), int(process, "wall_ns"));
        ensure(wait * 100 >= wall * 35, || {
            format!("waited {wait} of {wall} ns")
        })?;
        // Neither process sleeps, so the whole time of each process is on a CPU or in a run queue, however many other
        // tasks share the CPU.
        let known = wait + int(process, "on_cpu_ns");
        ensure(known * 100 >= wall * 98, || {
            format!("{known} of {wall} ns in a run queue or on a CPU")
        })?;
    }
    ensure(list(&analysis, "processes").len() == 3, || {
        "three processes".into()
    })
}

fn vfork_exec() -> Result<(), Failed> {
    let analysis = run("vfork.bin", &[&program("vfork_exec")?])?;
    let (parent, child) = (root(&analysis), &analysis["processes"][1]);
    // If the child is preempted just before its sleep, its timer may fire while the child still waits for a CPU. Then
    // the child does not sleep at all, and the wait for a CPU is counted instead.
    let sleep = int(child, "sleep_ns");
    let queued = if sleep < 50 * MS {
        int(child, "run_queue_ns")
    } else {
        0
    };
    near(sleep + queued, 100 * MS, "the child's sleep")?;
    // The parent is blocked at most from the fork to the exec, which includes the child's waits for a CPU. The parent
    // is blocked at least for the child's sleep, minus the time for which the parent itself waited for a CPU before it
    // blocked.
    let most = int(&child["execs"][0], "start_ns") - int(child, "start_ns");
    let blocked = int(parent, "vfork_ns");
    ensure(
        blocked <= most && blocked + int(parent, "run_queue_ns") >= 90 * MS,
        || format!("blocked by vfork: {blocked} ns, of at most {most} ns: {parent}"),
    )?;
    ensure(
        child["execs"][0]["argv"] == serde_json::json!(["true", "by-vfork"]),
        || child.to_string(),
    )?;
    ensure(child["ppid"] == parent["pid"], || child.to_string())
}

fn thread_exec() -> Result<(), Failed> {
    let trace = scratch("thread_exec.bin");
    let out = record(&trace, &[&program("thread_exec")?])?;
    ensure(out.status.code() == Some(7), || format!("{:?}", out.status))?;
    let analysis = analyze(&trace)?;
    let process = root(&analysis);
    ensure(process["exit"]["code"] == 7, || process.to_string())?;
    ensure(list(process, "execs").len() == 2, || process.to_string())?;
    ensure(process["execs"][1]["argv"][0] == "sh", || {
        process.to_string()
    })?;
    ensure(int(process, "threads") == 2, || process.to_string())?;
    let second = &process["execs"][1];
    near(
        int(second, "end_ns") - int(second, "start_ns"),
        100 * MS,
        "the second program",
    )
}

fn leader_first() -> Result<(), Failed> {
    let trace = scratch("leader.bin");
    let out = record(&trace, &[&program("leader_first")?])?;
    ensure(out.status.code() == Some(5), || format!("{:?}", out.status))?;
    let analysis = analyze(&trace)?;
    let process = root(&analysis);
    ensure(process["exit"]["code"] == 5, || process.to_string())?;
    // The sleeps of leader and thread add up to 200 ms; more if other tasks occupy the CPUs.
    let wall = int(process, "wall_ns");
    ensure((200 * MS..600 * MS + LATE).contains(&wall), || {
        format!("wall time {wall} ns")
    })
}

fn daemon() -> Result<(), Failed> {
    let trace = scratch("daemon.bin");
    let out = Command::new(TR)
        .args(["record", "--wait-all", "-o"])
        .arg(&trace)
        .arg("--")
        .arg(program("daemon")?)
        .output()?;
    ensure(out.status.success(), || format!("{:?}", out.status))?;
    let analysis = analyze(&trace)?;
    let [first, second, third] = list(&analysis, "processes") else {
        return Err(format!("{} processes", list(&analysis, "processes").len()).into());
    };
    ensure(
        second["ppid"] == first["pid"] && third["ppid"] == second["pid"],
        || third.to_string(),
    )?;
    ensure(third["exit"]["code"] == 3, || third.to_string())?;
    slept(third, 100, "the daemon's sleep")?;
    ensure(int(&first["tree"], "processes") == 3, || first.to_string())
}

fn reuse() -> Result<(), Failed> {
    let analysis = run("reuse.bin", &[&program("reuse")?])?;
    let mut pids = std::collections::HashMap::<u64, u64>::new();
    for process in list(&analysis, "processes").iter().skip(1) {
        *pids.entry(int(process, "pid")).or_default() += 1;
        ensure(process["exit"]["code"] == 9, || process.to_string())?;
    }
    ensure(pids.values().filter(|n| **n == 2).count() == 1, || {
        "one pid comes twice".into()
    })
}

/// The interrupt and steal time of all CPUs so far, in ns, which the kernel excludes from the run time of the
/// interrupted task.
fn disturbed() -> Result<u64, Failed> {
    let stat = std::fs::read_to_string("/proc/stat")?;
    let first = stat.lines().next().ok_or("/proc/stat is empty")?;
    let ticks: Vec<u64> = first
        .split_whitespace()
        .filter_map(|n| n.parse().ok())
        .collect();
    // The fields are: user nice system idle iowait irq softirq steal (and two more), in full ticks of 10 ms.
    let [.., irq, softirq, steal, _, _] = ticks[..] else {
        return Err(format!("/proc/stat: {first}").into());
    };
    Ok((irq + softirq + steal) * 10 * MS)
}

/// CPU times and switch counts equal the kernel's accounting, which the events contain, and getrusage.
fn kernel_figures() -> Result<(), Failed> {
    let build = scratch("build");
    let _ = std::fs::remove_dir_all(&build);
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/demo");
    let to = format!("BUILD={}", build.display());
    let trace = scratch("make.bin");
    let script = "TIMEFORMAT='rusage %U %S'; time make -s -j2 -C \"$0\" \"$@\"";
    let before = disturbed()?;
    let command = ["bash", "-c", script, demo, &to, common::kernels()];
    let out = record(&trace, &command)?;
    let disturbed = disturbed()? - before;
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    ensure(out.status.success(), || said.clone())?;
    let dump = Command::new(TR)
        .arg("dump")
        .arg(&trace)
        .args(["--format", "ndjson"])
        .output()?;
    let mut kernel = 0;
    for line in String::from_utf8_lossy(&dump.stdout).lines() {
        let event: Value = serde_json::from_str(line)?;
        if event["kind"] == "final" {
            kernel += int(&event, "sum_exec_runtime");
        }
    }
    let analysis = analyze(&trace)?;
    // The known time is a lower bound of the kernel's figure; with the unknown time it is an upper bound.
    let totals = &analysis["totals"];
    let (known, unknown) = (int(totals, "on_cpu_ns"), int(totals, "unknown_ns"));
    // The kernel charges the time that a switch itself takes to the next task, but by the recorded events this time
    // belongs to the previous task. Under load the difference is some µs for each switch, and at most a tick for each
    // process.
    let slack = kernel / 100 + 4 * MS * int(totals, "processes") + disturbed;
    ensure(
        known <= kernel + slack && kernel <= known + unknown + slack,
        || {
            format!(
                "on CPU {known} ns known, {unknown} ns unknown; the kernel says {kernel} ns, \
                 besides {disturbed} ns of interrupts and steal time"
            )
        },
    )?;
    // The voluntary and involuntary switches of nearly every task equal the kernel's counts.
    let audit = &analysis["audit"];
    let (tasks, equal) = (int(audit, "tasks"), int(audit, "switches_equal"));
    ensure(tasks > 90 && equal * 1000 >= tasks * 999, || {
        audit.to_string()
    })?;
    // The kernel counts the time in run queues from the end of the wake-up. The events count this time from the
    // beginning of the wake-up.
    let queue = &audit["run_queue"];
    if !queue.is_null() {
        let [events, unknown, kernel] =
            ["events_ns", "unknown_ns", "kernel_ns"].map(|name| int(queue, name));
        let slack = kernel / 10 + 100_000 * tasks;
        ensure(
            events <= kernel + slack && kernel <= events + unknown + slack,
            || queue.to_string(),
        )?;
    }
    // The shell's `time` prints the getrusage figures of make and its descendants.
    let line = said.lines().find_map(|line| line.strip_prefix("rusage "));
    let rusage: f64 = line
        .ok_or("no rusage")?
        .split(' ')
        .map(|seconds| seconds.parse().unwrap_or(f64::NAN))
        .sum();
    let rusage = (rusage * 1e9) as u64;
    let make = list(&analysis, "processes")
        .iter()
        .find(|process| process["comm"] == "make")
        .ok_or("no make")?;
    let tree = &make["tree"];
    let known = int(tree, "on_cpu_ns");
    let slack = rusage / 100 + 4 * MS * int(tree, "processes") + disturbed;
    ensure(
        known <= rusage + slack && rusage <= known + unknown + slack,
        || format!("on CPU {known} ns known, {unknown} ns unknown; getrusage says {rusage} ns"),
    )
}

/// `tr diff` finds a planted change between two checkouts of the demo project: in one of them a test sleeps longer.
fn planted_slowdown() -> Result<(), Failed> {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/demo");
    let record = |name: &str, sleep: &str| -> Result<String, Failed> {
        let checkout = scratch(name);
        let _ = std::fs::remove_dir_all(&checkout);
        let copied = Command::new("cp")
            .arg("-r")
            .args([&demo, &checkout])
            .status()?;
        ensure(copied.success(), || "cp".into())?;
        // `make demo` may have built the project there with another number of kernels.
        let _ = std::fs::remove_dir_all(checkout.join("build"));
        let test = checkout.join("tests/sleep.sh");
        let script = std::fs::read_to_string(&test)?.replace("sleep 0.4", sleep);
        std::fs::write(&test, script)?;
        let dir = checkout.to_string_lossy().into_owned();
        let build = format!("BUILD={dir}/build");
        let trace = format!("{name}.bin");
        run(
            &trace,
            &["make", "-s", "-j2", "-C", &dir, &build, "KERNELS=0"],
        )?;
        std::fs::remove_dir_all(&checkout)?;
        Ok(scratch(&trace).to_string_lossy().into_owned())
    };
    let base = record("checkout-a", "sleep 0.4")?;
    let new = record("checkout-b", "sleep 0.9")?;
    let out = Command::new(TR)
        .args(["diff", &base, &new, "--format", "json"])
        .output()?;
    let diff: Value = serde_json::from_slice(&out.stdout)?;
    let changes = list(&diff, "changes").iter();
    // The wall time of a row contains waits for a CPU, so the sleep is compared instead of the wall time. The tolerance
    // is 250 ms, because a sleep ends late if the whole machine stands still for a while.
    let slower = |change: &&Value| {
        let figures = &change["figures"];
        let longer = figures["sleep"]["difference"].as_i64();
        let unknown = int(&figures["unknown"], "base") + int(&figures["unknown"], "new");
        change["what"] == "slower"
            && change["program"] == "sleep"
            && longer.is_some_and(|ns| ns.abs_diff(500 * MS as i64) <= 250 * MS + unknown)
    };
    let named = changes.filter(slower).count();
    ensure(named == 3, || format!("{named}: {diff:#}"))?;
    // Each process of one checkout must be matched with one of the other.
    let lone = |change: &&Value| change["what"] == "new" || change["what"] == "gone";
    let lone: Vec<&Value> = list(&diff, "changes").iter().filter(lone).collect();
    ensure(lone.is_empty(), || format!("{lone:#?}"))
}

/// strace and tr trace the same build at the same time, and must agree on processes, arguments and exit codes.
fn strace() -> Result<(), Failed> {
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/demo");
    let (build, log) = (scratch("build"), scratch("strace.log"));
    let to = format!("BUILD={}", build.display());
    let mut command = vec!["strace", "-f", "-q", "-xx", "-s", "65536"];
    command.extend(["--seccomp-bpf", "-e", "trace=execve", "-o"]);
    let shown = log.to_string_lossy().into_owned();
    command.push(&shown);
    command.extend(["make", "-s", "-j2", "-C", demo, &to, common::kernels()]);
    let _ = std::fs::remove_dir_all(&build);
    let analysis = run("traced.bin", &command)?;
    let _ = std::fs::remove_dir_all(&build);
    let lives = common::strace(&std::fs::read_to_string(&log)?)?;
    ensure(lives.len() > 50, || format!("{} processes", lives.len()))?;
    Ok(common::agree(&analysis, &lives)?)
}

fn kill_9() -> Result<(), Failed> {
    let [trace, go, done] = ["killed.bin", "killed.go", "killed.done"].map(scratch);
    for left in [&trace, &go, &done] {
        let _ = std::fs::remove_file(left);
    }
    let script = format!(
        "i=0; while [ $i -lt 1200 ] && ! [ -e {} ]; do /bin/true; sleep 0.05; i=$((i+1)); done; touch {}",
        go.display(),
        done.display()
    );
    let mut tr = Command::new(TR)
        .arg("record")
        .arg("-o")
        .arg(&trace)
        .args(["--", "sh", "-c", &script])
        .spawn()?;
    // The times at which the file grew. The command takes at least a minute, so the file grows often enough under any
    // load.
    let mut growths = vec![SystemTime::UNIX_EPOCH];
    let mut len = 0;
    while growths.len() < 8 {
        if let Ok(meta) = std::fs::metadata(&trace) {
            let (last, now) = (growths[growths.len() - 1], meta.modified()?);
            if meta.len() > len && now > last + Duration::from_millis(50) {
                growths.push(now);
            }
            len = meta.len();
        }
        ensure(!done.exists(), || {
            format!("the file grows too seldom: {growths:?}")
        })?;
        std::thread::sleep(Duration::from_millis(2));
    }
    tr.kill()?;
    tr.wait()?;
    std::fs::write(&go, "")?;
    let analysis = analyze(&trace)?;
    ensure(analysis["trace"]["truncated"] == true, || {
        "not noticed".into()
    })?;
    let start = Duration::from_nanos(int(&analysis["trace"], "start_unix_ns"));
    let recorded = start + Duration::from_nanos(int(&analysis["trace"], "duration_ns"));
    // When the file grows, the events that are written happened after the third growth before this one. So a recording
    // that was killed after its last growth contains everything up to the fourth-last growth.
    let least = growths[4].duration_since(UNIX_EPOCH)?;
    ensure(recorded >= least, || {
        format!("up to {recorded:?} of {growths:?}")
    })?;
    let deadline = Instant::now() + Duration::from_secs(120);
    while !done.exists() {
        ensure(Instant::now() < deadline, || {
            "the command did not go on".into()
        })?;
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Records marks of moments, of the time of a command, and of spans. One of the spans ends in the last command of its
/// shell.
fn marks() -> Result<(), Failed> {
    let directory = scratch("marks");
    std::fs::create_dir_all(&directory)?;
    let link = directory.join("tr");
    if !link.exists() {
        std::os::unix::fs::symlink(TR, &link)?;
    }
    let script = "tr mark start; tr mark --begin outer; sleep 0.1
        tr mark 'the tests' -- sh -c 'sleep 0.2; tr mark inner -- sleep 0.1; exit 3'
        bash -c 'tr mark --begin last; sleep 0.05; tr mark --end last'
        tr mark --end outer; tr mark --end never";
    let path = std::env::var("PATH").unwrap_or_default();
    let trace = scratch("marks.bin");
    let out = Command::new(TR)
        .args(["record", "-q", "-o"])
        .arg(&trace)
        .args(["--", "sh", "-c", script])
        .env("PATH", format!("{}:{path}", directory.display()))
        .output()?;
    let said =
        String::from_utf8_lossy(&out.stderr).into_owned() + &String::from_utf8_lossy(&out.stdout);
    ensure(out.status.success() && said.is_empty(), || said)?;
    let out = Command::new(TR)
        .arg("analyze")
        .arg(&trace)
        .args(["--report", "steps", "--format", "json"])
        .output()?;
    let analysis: Value = serde_json::from_slice(&out.stdout)?;
    let steps = list(&analysis["steps"], "steps");
    let marks = steps.iter().map(|step| {
        let name = step["name"].as_str().unwrap_or_default();
        format!("{} {name} {}", int(step, "depth"), step["exit"]["code"])
    });
    let marks: Vec<String> = marks.collect();
    let want = [
        "0 start null",
        "0 outer null",
        "1 the tests 3",
        "2 inner 0",
        "1 last null",
    ];
    ensure(marks == want, || format!("{marks:?}"))?;
    for (name, least) in [
        ("outer", 450),
        ("the tests", 300),
        ("inner", 100),
        ("last", 50),
    ] {
        let step = steps
            .iter()
            .find(|step| step["name"] == name)
            .ok_or("a mark")?;
        let wall = int(step, "wall_ns");
        let [slept, queued, ran] =
            ["sleep_ns", "run_queue_ns", "on_cpu_ns"].map(|name| int(&step["spent"], name));
        // On a busy machine a timer may fire while its task still waits for a CPU on its way to sleep, so that time
        // counts as well.
        let good = slept + queued + ran >= least * MS && slept <= wall;
        ensure(wall >= least * MS && good, || format!("{name}: {step}"))?;
    }
    Ok(())
}
