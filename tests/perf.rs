//! `tr import`: files of `perf sched record`, held to what perf itself says of them.
#![allow(clippy::expect_used, clippy::indexing_slicing)] // a JSON value indexes to null

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use libtest_mimic::{Arguments, Failed};
use serde_json::Value;

mod common;

use common::{int, lacks, list, TR};

/// Sleeps, work on both CPUs, pipes, a shell that fails.
const LOAD: &str = "for i in 1 2 3; do sleep 0.02; done; \
    sh -c 'i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done' & \
    sh -c 'i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done' & \
    wait; ls / | sort | tail -n 1 >/dev/null; sh -c 'exit 3'";

fn main() {
    let args = Arguments::from_args();
    let trials = vec![
        common::trial("recorded", why_not(&["-g", "-z"]), || {
            recorded(&["-k", "CLOCK_MONOTONIC"])?;
            // Callchains in zstd.
            recorded(&["-g", "-z"])
        }),
        common::trial("stored", None, stored),
        common::trial("all_reports", None, all_reports),
        common::trial("secrets", None, secrets),
        common::trial("refusals", None, refusals),
    ];
    libtest_mimic::run(&args, trials).exit();
}

/// The reason why perf cannot record the whole machine with these options.
fn why_not(options: &[&str]) -> Option<String> {
    lacks("perf").or_else(|| {
        let directory = tempfile::tempdir().ok()?;
        let file = directory.path().join("perf.data");
        let out = perf_record(&file, options, "true").ok()?;
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        (!out.status.success()).then(|| format!("perf cannot record: {}", said.trim()))
    })
}

fn perf_record(file: &Path, options: &[&str], script: &str) -> std::io::Result<Output> {
    let mut command = Command::new("perf");
    command.args(["sched", "record", "-o"]).arg(file);
    command
        .args(options)
        .args(["--", "sh", "-c", script])
        .output()
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/imports")
        .join(name)
}

fn ensure(good: bool, what: impl FnOnce() -> String) -> Result<(), Failed> {
    Ok(common::ensure(good, what)?)
}

fn tr(args: &[&str]) -> Result<Output, Failed> {
    Ok(Command::new(TR).args(args).output()?)
}

/// Imports a file; the analysis of the trace.
fn import(file: &Path, trace: &Path) -> Result<Value, Failed> {
    let (file, trace) = (file.to_string_lossy(), trace.to_string_lossy());
    let out = tr(&["import", &file, "-o", &trace])?;
    ensure(out.status.success(), || format!("{out:?}"))?;
    let out = tr(&["verify", &trace])?;
    ensure(out.status.success(), || format!("{out:?}"))?;
    Ok(common::document(Path::new(&*trace), &["--top", "100000"])?)
}

/// The runs of a process, as `perf sched timehist` lists them.
#[derive(Default)]
struct Runs {
    count: u64,
    run_ns: u64,
    /// Asleep or blocked, until the waking.
    sleep_ns: u64,
    /// Runnable: after a waking, or preempted.
    run_queue_ns: u64,
    /// The last run ended while runnable.
    runnable: bool,
}

/// The runs of the processes with one thread. timehist prints µs, and cuts the rest off.
fn timehist(text: &str) -> BTreeMap<u64, Runs> {
    let mut all: BTreeMap<u64, Runs> = BTreeMap::new();
    let mut threaded = Vec::new();
    for line in text.lines() {
        // time [cpu] name[tid] or name[tid/pid] wait delay run state
        let Some((task, figures)) = line.rsplit_once(']') else {
            continue;
        };
        let ids = task.rsplit('[').next().unwrap_or_default();
        if let Some((_, pid)) = ids.split_once('/') {
            threaded.extend(pid.parse::<u64>());
        }
        let figures: Vec<&str> = figures.split_whitespace().collect();
        let [wait, delay, run, state] = figures[..] else {
            continue;
        };
        let ns = |ms: &str| ms.replace('.', "").parse::<u64>().map(|us| us * 1000);
        let (Ok(pid), Ok(wait), Ok(delay), Ok(run)) = (ids.parse(), ns(wait), ns(delay), ns(run))
        else {
            continue;
        };
        let runs = all.entry(pid).or_default();
        // The time since the last run, of which the delay is since the waking.
        if runs.runnable {
            runs.run_queue_ns += wait;
        } else {
            runs.run_queue_ns += delay;
            runs.sleep_ns += wait.saturating_sub(delay);
        }
        // perf 6.1 prints W for a preempted task, later ones p.
        runs.runnable = ["R", "W", "p"].contains(&state);
        runs.run_ns += run;
        runs.count += 1;
    }
    all.retain(|pid, _| !threaded.contains(pid));
    all
}

/// Holds the processes that began and ended in the recording to timehist's lines; their number.
fn compare(analysis: &Value, timehist: &BTreeMap<u64, Runs>) -> Result<u64, Failed> {
    let (mut compared, mut forgotten) = (0, 0);
    for process in list(analysis, "processes") {
        let whole = int(process, "start_ns") > 0 && process["end_ns"].is_u64();
        let one = int(process, "threads") == 1 && int(process, "unknown_ns") == 0;
        let Some(runs) = timehist.get(&int(process, "pid")).filter(|_| whole && one) else {
            continue;
        };
        let switches = &process["switches"];
        let count = int(switches, "voluntary") + int(switches, "involuntary");
        let cpu = int(process, "on_cpu_ns");
        let sleep = int(process, "sleep_ns") + int(process, "blocked_ns");
        let run_queue = int(process, "run_queue_ns");
        // Each figure of timehist is up to 1 µs too small.
        let cut = runs.count * 1000;
        let fits = |ours: u64, theirs: u64| ours.abs_diff(theirs) <= cut;
        // We count the wait of a new task from its fork on, timehist from its first waking.
        let fork = 500_000_000;
        // A waking can come while its task still goes to sleep. timehist forgets it at the
        // switch-out, and the wait for a CPU is sleep.
        let woken = runs.sleep_ns.saturating_sub(sleep);
        let waits = run_queue + cut >= runs.run_queue_ns + woken.saturating_sub(cut)
            && run_queue <= runs.run_queue_ns + woken + fork;
        let equal = count == runs.count && fits(cpu, runs.run_ns) && sleep <= runs.sleep_ns + cut;
        forgotten += u64::from(woken > cut);
        ensure(equal && waits, || {
            let Runs {
                count,
                run_ns,
                sleep_ns,
                run_queue_ns,
                ..
            } = runs;
            format!("perf: {count} runs, {run_ns} ns, slept {sleep_ns}, waited {run_queue_ns}: {process}")
        })?;
        compared += 1;
    }
    ensure(forgotten * 4 <= compared, || {
        format!("{forgotten} of {compared} processes slept less than timehist says")
    })?;
    Ok(compared)
}

/// What perf does not know is null.
fn unknown_is_null(analysis: &Value) -> Result<(), Failed> {
    ensure(analysis["trace"]["exit"].is_null(), || "exit".to_owned())?;
    for process in list(analysis, "processes") {
        for field in ["exit", "max_rss_bytes", "block_io_ns", "vfork_ns", "cgroup"] {
            ensure(process[field].is_null(), || format!("{field}: {process}"))?;
        }
        for exec in list(process, "execs") {
            let command = exec["argv"][0] == "sh" && exec["argv"][1] == "-c";
            ensure(exec["argv"].is_null() || command, || exec.to_string())?;
        }
    }
    Ok(())
}

fn recorded(options: &[&str]) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let (file, trace) = (
        directory.path().join("p.data"),
        directory.path().join("p.bin"),
    );
    let out = perf_record(&file, options, LOAD)?;
    // Its status is that of the command.
    ensure(out.status.code() == Some(3), || format!("{out:?}"))?;
    let analysis = import(&file, &trace)?;
    let perf = |args: &[&str]| -> Result<String, Failed> {
        let out = Command::new("perf")
            .args(args)
            .arg("-i")
            .arg(&file)
            .output()?;
        Ok(String::from_utf8_lossy(&out.stdout).into_owned())
    };
    let runs = timehist(&perf(&["sched", "timehist", "--state", "--no-call-graph"])?);
    let compared = compare(&analysis, &runs)?;
    ensure(compared >= 5, || {
        format!("{compared} processes compared of {}", runs.len())
    })?;
    unknown_is_null(&analysis)?;
    // Every switch and waking of the file is in the trace.
    let script = perf(&["script", "-G", "-F", "event"])?;
    let count = |name: &str| {
        script
            .lines()
            .filter(|it| it.trim() == format!("{name}:"))
            .count()
    };
    let trace = trace.to_string_lossy();
    let info: Value = serde_json::from_slice(&tr(&["info", &trace, "--format", "json"])?.stdout)?;
    let kinds = &info["events_by_kind"];
    for (ours, theirs) in [
        ("switch", "sched:sched_switch"),
        ("waking", "sched:sched_waking"),
        ("wakeup_new", "sched:sched_wakeup_new"),
    ] {
        ensure(
            int(kinds, ours) == count(theirs) as u64 && count(theirs) > 0,
            || format!("{ours}: {kinds}, perf has {}", count(theirs)),
        )?;
    }
    let clock = options.contains(&"CLOCK_MONOTONIC");
    let known = analysis["trace"]["start_unix_ns"].is_u64();
    ensure(known == clock, || analysis["trace"].to_string())?;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let at = u128::from(int(&analysis["trace"], "start_unix_ns"));
    ensure(
        !clock || now.as_nanos().abs_diff(at) < 600_000_000_000,
        || at.to_string(),
    )
}

fn stored() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let trace = directory.path().join("p.bin");
    let analysis = import(&fixture("sched.data"), &trace)?;
    let runs = timehist(&std::fs::read_to_string(fixture("sched.timehist"))?);
    let compared = compare(&analysis, &runs)?;
    ensure(compared == 9, || format!("{compared} processes compared"))?;
    unknown_is_null(&analysis)?;
    ensure(analysis["trace"]["command"][0] == "sh", || {
        analysis["trace"].to_string()
    })?;
    // As often as the file is read: the same bytes.
    let again = directory.path().join("again.bin");
    import(&fixture("sched.data"), &again)?;
    ensure(std::fs::read(trace)? == std::fs::read(again)?, || {
        "other bytes".to_owned()
    })
}

/// Every report and export reads the trace.
fn all_reports() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let trace = directory.path().join("p.bin");
    import(&fixture("sched.data"), &trace)?;
    let (file, out) = (trace.to_string_lossy(), directory.path().join("out"));
    let output = out.to_string_lossy();
    for line in [
        "analyze --report all",
        "analyze --format json --report all",
        "summary --format markdown",
        "report -o OUT",
        "export --format perfetto -o OUT",
        "export --format otlp -o OUT",
        "export --format folded -o OUT",
    ] {
        let args = line
            .split(' ')
            .map(|word| if word == "OUT" { &output } else { word });
        let args: Vec<&str> = args.chain([&*file]).collect();
        let ran = tr(&args)?;
        ensure(ran.status.success(), || format!("{line}: {ran:?}"))?;
    }
    Ok(())
}

/// COMMAND's arguments are masked like those that tr records.
fn secrets() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let (file, trace) = (
        directory.path().join("p.data"),
        directory.path().join("p.bin"),
    );
    let bytes = std::fs::read(fixture("sched.data"))?;
    // The same length: the first word of the script.
    let at = bytes.windows(8).position(|part| part == b"for i in");
    let mut changed = bytes.clone();
    let place = at.ok_or("the script")?;
    changed[place..place + 17].copy_from_slice(b"--password=hunter");
    std::fs::write(&file, changed)?;
    let name = trace.to_string_lossy();
    let dumped = |args: &[&str]| -> Result<String, Failed> {
        let file = file.to_string_lossy();
        tr(&[&["import", &*file, "-o", &*name], args].concat())?;
        let both = [tr(&["dump", &name])?.stdout, tr(&["info", &name])?.stdout].concat();
        Ok(String::from_utf8_lossy(&both).into_owned())
    };
    let masked = dumped(&[])?;
    ensure(masked.contains("***") && !masked.contains("hunter"), || {
        masked.clone()
    })?;
    let plain = dumped(&["--no-redact"])?;
    ensure(plain.contains("hunter"), || plain.clone())
}

fn refusals() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let trace = directory.path().join("p.bin");
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces/demo.bin");
    let empty = directory.path().join("empty");
    std::fs::write(&empty, "")?;
    for (file, why) in [
        (demo, "not a file of perf record"),
        (empty, "not a file of perf record"),
        (directory.path().join("absent"), "No such file"),
        (directory.path().to_owned(), "neither a file"),
    ] {
        let (file, trace) = (file.to_string_lossy(), trace.to_string_lossy());
        let out = tr(&["import", &file, "-o", &trace])?;
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        ensure(out.status.code() == Some(2) && said.contains(why), || {
            said.clone()
        })?;
    }
    ensure(!trace.exists(), || "a trace of nothing".to_owned())
}
