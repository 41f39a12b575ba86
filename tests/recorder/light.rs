//! Tests `--light`: forks, execs and ends are recorded as they were, and the totals of CPU time equal the kernel's.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::Failed;
use serde_json::Value;

use crate::support::{
    analyze, dump, ensure, info, int, list, record, report, scratch, text, tr, Test, TR,
};

pub const TESTS: &[Test] = &[
    ("light_tells_statuses_arguments_and_totals", totals),
    (
        "the_times_of_the_machine_are_no_more_than_its_cpus_have",
        machine,
    ),
    ("parts_are_readable_alone_and_add_up", parts),
    (
        "a_task_that_ends_while_a_part_begins_is_in_both",
        short_lives,
    ),
];

const LIGHT: &[&str] = &["--light", "-q"];

/// A shell's command line for a loop of so many rounds, which then prints its own run time in ns by the kernel's
/// account. Its last argument is its name.
fn burner(rounds: u32, name: &str) -> String {
    format!(
        "sh -c 'i=0; while [ $i -lt {rounds} ]; do i=$((i+1)); done; \
         read t rest < /proc/$$/schedstat; echo {name} $t' {name}"
    )
}

/// The run time that the loop with this name has printed.
fn said(out: &[u8], name: &str) -> Result<u64, Failed> {
    let out = text(out);
    let mut lines = out.lines();
    let told = lines.find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Ok(told.ok_or_else(|| format!("{name} said nothing: {out}"))?)
}

/// The process whose last argument is this name.
fn called<'a>(analysis: &'a Value, name: &str) -> Result<&'a Value, Failed> {
    let named = |process: &&Value| {
        let last = list(process, "argv").last();
        last.is_some_and(|last| last == name)
    };
    let found = list(analysis, "processes").iter().find(named);
    Ok(found.ok_or_else(|| format!("no process {name}"))?)
}

fn totals() -> Result<(), Failed> {
    let trace = scratch("totals.bin");
    let script = format!(
        "{}; {}; for i in 3 77; do sh -c \"exit $i\" \"code-$i\"; done; sh -c 'kill -9 $$' killed; exit 5",
        burner(300_000, "long"),
        burner(1, "short"),
    );
    let out = record(&trace, LIGHT, &["sh", "-c", &script])?;
    ensure(out.status.code() == Some(5), || text(&out.stderr))?;
    let analysis = analyze(&trace)?;
    for name in ["long", "short"] {
        let kernel = said(&out.stdout, name)?;
        let ours = int(called(&analysis, name)?, "on_cpu_ns");
        // The program reads its CPU time, prints it and exits, so its CPU time at the end is a little longer. The
        // totals in schedstat lag by up to a tick.
        ensure((kernel..kernel + 20_000_000).contains(&ours), || {
            format!("{name}: {ours} ns, and the kernel says {kernel}")
        })?;
    }
    for (name, code) in [("code-3", 3), ("code-77", 77)] {
        let exit = &called(&analysis, name)?["exit"];
        ensure(exit["code"] == code, || format!("{name}: {exit}"))?;
    }
    let exit = &called(&analysis, "killed")?["exit"];
    ensure(exit["signal"] == 9, || format!("killed: {exit}"))?;
    ensure(analysis["trace"]["exit"]["code"] == 5, || {
        analysis["trace"].to_string()
    })?;
    // A light recording has seen no blocked time and no scheduling events, so it must not report any.
    ensure(analysis["totals"]["blocked_ns"].is_null(), || {
        analysis["totals"].to_string()
    })?;
    let info = info(&trace)?;
    let kinds = &info["events_by_kind"];
    let sched = ["switch", "waking", "wakeup_new"].map(|kind| int(kinds, kind));
    ensure(sched == [0; 3], || kinds.to_string())?;
    ensure(info["facts"]["wakings"] == "absent", || {
        info["facts"].to_string()
    })
}

/// Each figure of the machine's CPUs is counted once, and idle time is known from the kernel's counters.
fn machine() -> Result<(), Failed> {
    let trace = scratch("machine.bin");
    let out = Command::new(TR)
        .args(["record", "--light", "-q", "-a", "--duration", "2s", "-o"])
        .arg(&trace)
        .output()?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let figures = report(&trace, "machine", &[])?;
    let cpus = int(&figures, "length_ns") * int(&figures, "cpus");
    let part = |key: &str| figures[key].as_u64().unwrap_or(0);
    let sum = part("build_ns") + part("others_ns") + part("idle_ns");
    // The counters of idle time have ticks of 10 ms, and the recorded tasks also run while they are listed.
    ensure(sum < cpus + cpus / 5, || figures.to_string())?;
    let screen = text(&tr(&["analyze"], &trace)?);
    let idle = part("idle_ns") * 100 / cpus;
    let line = screen.lines().find(|line| line.starts_with("CPUs "));
    let line = line.ok_or("no line about the CPUs")?;
    let shown = line
        .rsplit("idle ")
        .next()
        .and_then(|rest| rest.split(' ').next());
    let shown: u64 = shown.and_then(|shown| shown.parse().ok()).unwrap_or(0);
    ensure(shown.abs_diff(idle) <= 10, || format!("{idle} %: {line}"))
}

/// The files of a recording's parts, in their order.
fn files(dir: &Path) -> Result<Vec<PathBuf>, Failed> {
    let entries = std::fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.path()));
    let mut files: Vec<_> = entries.collect::<Result<_, _>>()?;
    files.sort();
    Ok(files)
}

fn parts() -> Result<(), Failed> {
    let dir = scratch("parts");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir)?;
    let options = ["--light", "--rotate", "2s"];
    // The loop of the script runs during all parts of the recording.
    let script = format!(
        "sh -c 'until [ -e {}/over ]; do i=1; while [ $i -lt 20000 ]; do i=$((i+1)); done; done; \
         read t rest < /proc/$$/schedstat; echo burner $t' burner & sleep 5; touch {0}/over; wait",
        dir.with_extension("d").display()
    );
    let over = dir.with_extension("d");
    let _ = std::fs::remove_dir_all(&over);
    std::fs::create_dir_all(&over)?;
    let begun = std::time::Instant::now();
    let out = record(&dir.join("host.bin"), &options, &["sh", "-c", &script])?;
    let most = begun.elapsed().as_secs() as usize / 2 + 1;
    ensure(out.status.success(), || text(&out.stderr))?;
    let files = files(&dir)?;
    ensure((2..=most).contains(&files.len()), || format!("{files:?}"))?;
    // The proposed next command names all parts by a pattern, and works.
    let hint = text(&out.stderr);
    let next = hint.trim_end().rsplit("next: ").next().unwrap_or_default();
    let whole = Command::new("sh").args(["-c", next]).output()?;
    let screen = text(&whole.stdout);
    let names = format!("{} parts of one recording", files.len());
    ensure(text(&whole.stderr).contains(&names), || {
        format!("{next}: {}", text(&whole.stderr))
    })?;
    let (_, words) = next.split_once(" analyze ").unwrap_or_default();
    ensure(words.contains('*') && screen.contains(words), || {
        screen.clone()
    })?;
    let mut sum = 0;
    for file in &files {
        tr(&["verify"], file)?;
        let analysis = analyze(file)?;
        sum += int(called(&analysis, "burner")?, "on_cpu_ns");
        let told = dump(file)?;
        let clock = told.iter().any(|event| event["kind"] == "clock");
        ensure(clock, || format!("{}: no clock", file.display()))?;
    }
    let kernel = said(&out.stdout, "burner")?;
    ensure(kernel.abs_diff(sum) < 30_000_000, || {
        format!(
            "{sum} ns in {} parts, and the kernel says {kernel}",
            files.len()
        )
    })?;
    joined(&files, kernel)
}

/// All parts together are analyzed as one recording, in whatever order they are named.
fn joined(files: &[PathBuf], kernel: u64) -> Result<(), Failed> {
    let (whole, said) = together(files.iter().rev())?;
    ensure(said.contains("nothing is missing"), || said)?;
    let burner = called(&whole, "burner")?;
    let processes = list(&whole, "processes").iter();
    let alike = processes.filter(|process| process["pid"] == burner["pid"]);
    ensure(alike.count() == 1, || "several burners".into())?;
    let on_cpu = int(burner, "on_cpu_ns");
    ensure(kernel.abs_diff(on_cpu) < 30_000_000, || {
        format!("{on_cpu} ns, and the kernel says {kernel}")
    })?;
    let durations = files
        .iter()
        .map(|file| Ok(int(&analyze(file)?["trace"], "duration_ns")));
    let sum: u64 = durations
        .collect::<Result<Vec<u64>, Failed>>()?
        .iter()
        .sum();
    let duration = int(&whole["trace"], "duration_ns");
    ensure(duration == sum, || {
        format!("{duration} ns instead of {sum}")
    })?;
    // If the second file is left out, its time is unknown, and the length of the whole recording stays the same.
    let (gap, said) = together(
        files
            .iter()
            .enumerate()
            .filter(|(at, _)| *at != 1)
            .map(|(_, file)| file),
    )?;
    ensure(said.contains("are missing between"), || said)?;
    ensure(int(&gap["trace"], "duration_ns") == sum, || {
        gap["trace"].to_string()
    })?;
    let lost = list(&gap["trace"]["quality"], "lost").len();
    ensure(lost > 0, || gap["trace"].to_string())
}

/// The JSON analysis of several parts together, and the messages on standard error.
fn together<'f>(files: impl Iterator<Item = &'f PathBuf>) -> Result<(Value, String), Failed> {
    let mut command = std::process::Command::new(crate::common::TR);
    let out = command
        .args(["analyze", "--format", "json"])
        .args(files)
        .output()?;
    ensure(out.status.success(), || text(&out.stderr))?;
    Ok((serde_json::from_slice(&out.stdout)?, text(&out.stderr)))
}

/// Each part of a rotated recording can be read alone: if a task ends in a part, the same part has the task's fork or
/// lists the task as living. A process that is alive at the end of a part also appears in the next part.
fn short_lives() -> Result<(), Failed> {
    let dir = scratch("short-lives");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir)?;
    let options = ["--light", "-q", "--rotate", "2s"];
    // The jobs' sleeps end at any time, some of them between the beginning of a part and its list of living tasks.
    let script = "for i in $(seq 30); do (until [ -e over ]; do sleep 0.01; done) & done; sleep 8; touch over; wait";
    let over = dir.with_extension("d");
    let _ = std::fs::remove_dir_all(&over);
    std::fs::create_dir_all(&over)?;
    let script = format!("cd {}; {script}", over.display());
    let out = record(&dir.join("host.bin"), &options, &["sh", "-c", &script])?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let files = files(&dir)?;
    ensure(files.len() > 2, || format!("{files:?}"))?;
    let mut before = HashSet::new();
    for file in &files {
        let (mut known, mut ends) = (HashSet::new(), 0);
        // The frames of the file are not in the order of time, so all beginnings are collected first.
        let events = dump(file)?;
        for event in &events {
            if ["fork", "snapshot"]
                .iter()
                .any(|kind| event["kind"] == *kind)
            {
                known.insert(int(event, "tid"));
            }
        }
        for event in events.iter().filter(|event| event["kind"] == "end") {
            let tid = int(event, "tid");
            ensure(known.contains(&tid), || {
                format!("{}: {event} of an unknown task", file.display())
            })?;
            ends += 1;
        }
        let analysis = analyze(file)?;
        // A part may be very short: if the recorder got no CPU during the whole time of a part, the recorder begins the
        // next part at once.
        let is_short = int(&analysis["trace"], "duration_ns") < 100_000_000;
        ensure(ends > 0 || is_short, || {
            format!("{}: no end", file.display())
        })?;
        let mut all = HashSet::new();
        let mut alive = HashSet::new();
        for process in list(&analysis, "processes") {
            all.insert(int(process, "pid"));
            if process["end_ns"].is_null() {
                alive.insert(int(process, "pid"));
            }
        }
        let absent: Vec<_> = before.difference(&all).collect();
        ensure(absent.is_empty(), || {
            format!("{}: {absent:?} lived before", file.display())
        })?;
        before = alive;
    }
    Ok(())
}
