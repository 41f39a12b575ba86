//! Tests the critical path by function, and functions in `tr diff`, with a program whose functions take as long as its
//! arguments say.

use std::path::PathBuf;
use std::process::Command;

use libtest_mimic::Failed;
use serde_json::Value;

use crate::support::{
    analyze, compiled, dump, ensure, int, list, record, report, scratch, text, Test, TR,
};

pub const TESTS: &[Test] = &[(PATH, path), (REASONS, reasons), (DIFF, diff)];

pub const PATH: &str = "the_path_by_function_has_the_longer_process_alone";
pub const REASONS: &str = "sampled_waits_have_their_reasons";
pub const DIFF: &str = "diff_names_the_function_that_grew";

const MS: u64 = 1_000_000;
/// The kernel's function for a sleep. Its name does not depend on the version of libc.
const SLEEP: &str = "hrtimer_nanosleep";

fn pair() -> Result<String, Failed> {
    compiled("pair.c", "pair", &["-O0", "-Wl,--build-id"])
}

fn recorded(name: &str, options: &[&str], command: &[&str]) -> Result<PathBuf, Failed> {
    let trace = scratch(&format!("functions-{name}.bin"));
    let out = record(&trace, options, command)?;
    ensure(out.status.success(), || text(&out.stderr))?;
    Ok(trace)
}

/// The time of a function of the test program itself, in ns, in the rows of a report.
fn own(rows: &[Value], function: &str) -> u64 {
    let mine = rows.iter();
    let mine = mine.filter(|row| row["function"] == function && row["binary"] == "pair");
    mine.map(|row| int(row, "self_ns")).sum()
}

/// Records two processes at once: one spends 0.8 s in `left` and then sleeps for 0.2 s; the other spends 0.3 s in
/// `right`. The build waits for the first process, so only the first process is on the critical path.
fn path() -> Result<(), Failed> {
    let program = pair()?;
    let script = format!("{program} 800 0 200 & {program} 0 300 0 & wait");
    let options = ["--stacks=997", "--off-cpu-stacks"];
    let trace = recorded("path", &options, &["/bin/sh", "-c", &script])?;
    let flame = report(&trace, "flame", &[])?;
    let all = list(&flame, "rows");
    let (left, right) = (own(all, "left"), own(all, "right"));
    ensure(left > 400 * MS && right > 150 * MS, || flame.to_string())?;
    let document =
        crate::common::document(&trace, &["--report", "critical-path", "--by", "function"])?;
    let path = &document["critical_path"]["path"];
    let functions = &path["functions"];
    let rows = list(functions, "rows");
    // The path follows the first process from its fork to its end, so it contains all of `left` and nothing of `right`.
    ensure(own(rows, "left") == left && own(rows, "right") == 0, || {
        format!("{left} {functions}")
    })?;
    // The samples on the path are counted once more, from the events whose times lie in the path's steps.
    let steps = list(path, "steps");
    let start = dump(&trace)?;
    let sampled = start
        .iter()
        .filter(|start| start["kind"] == "sample" && start["off_cpu"] == false);
    let inside = sampled.filter(|sample| {
        let (tid, time) = (int(sample, "tid"), int(sample, "t"));
        steps.iter().any(|step| {
            let span = int(step, "from_ns")..int(step, "to_ns");
            int(step, "tid") == tid && span.contains(&time)
        })
    });
    let (count, samples) = (inside.count() as u64, int(functions, "samples"));
    ensure(count.abs_diff(samples) <= 1, || {
        format!("{count}: {functions}")
    })?;
    // The time on a CPU consists of several separate stretches. The samples may stand for more time than the sum of the
    // stretches, by up to one sampling period for each stretch.
    let on_cpu: u64 = steps.iter().map(|step| int(step, "on_cpu_ns")).sum();
    let sums = int(functions, "sampled_on_cpu_ns") + int(functions, "other_on_cpu_ns");
    ensure(sums == on_cpu, || format!("{on_cpu}: {functions}"))?;
    ensure(int(functions, "ns") <= on_cpu + on_cpu / 20, || {
        format!("{on_cpu}: {functions}")
    })?;
    // The path contains the sleep. libc's function for it keeps no frame pointer, so its caller is missing in the
    // stack.
    let nap = rows.iter().find(|row| row["function"] == SLEEP);
    let nap = nap.map(|row| (int(row, "total_ns"), row["reason"].clone()));
    let (ns, reason) = nap.ok_or_else(|| format!("no nap: {functions}"))?;
    ensure(ns >= 190 * MS && reason == "timer", || {
        functions.to_string()
    })?;
    ensure(
        int(functions, "off_cpu_ns") <= int(functions, "waited_ns"),
        || functions.to_string(),
    )
}

/// Records a sleep and a wait for a child, whose reasons must be `timer` and `child`.
fn reasons() -> Result<(), Failed> {
    let program = pair()?;
    let script = format!("{program} 0 0 300; true");
    let command = ["/bin/sh", "-c", &script];
    let trace = recorded("reasons", &["--off-cpu-stacks=50ms"], &command)?;
    let flame = report(&trace, "flame", &["--by", "program"])?;
    let sums = list(&flame, "off_cpu_reasons");
    let sum = |reason: &str| {
        let mine = sums.iter().find(|sum| sum["reason"] == reason);
        mine.map_or(0, |value| int(value, "ns"))
    };
    // Each of the two processes waits for 300 ms. The wait may be shorter by the times in which the process runs, waits
    // for a CPU or is blocked, because the shell may begin its wait late. Waits of less than 50 ms have no sample, so
    // another 50 ms may be missing.
    let processes = analyze(&trace)?["processes"].take();
    for (at, reason) in ["child", "timer"].into_iter().enumerate() {
        let process = &processes[at];
        let rest = ["on_cpu_ns", "run_queue_ns", "blocked_ns", "unknown_ns"];
        let rest: u64 = rest.iter().map(|name| int(process, name)).sum();
        ensure(sum(reason) + rest + 50 * MS >= 300 * MS, || {
            format!("{reason}: {process} {flame}")
        })?;
    }
    // Samples of waits must have one of three reasons: a timer, a child, or vfork. On a loaded machine the start of a
    // process by vfork may take longer than the threshold.
    let other = |value: &&Value| {
        !["timer", "child", "vfork"]
            .iter()
            .any(|known| value["reason"] == *known)
    };
    ensure(!sums.iter().any(|sum| other(&sum)), || flame.to_string())?;
    let known = list(&flame, "rows").iter();
    let known = known.filter(|row| row["function"] == SLEEP);
    let known = known.filter(|row| row["reason"] == "timer" && row["name"] == "pair");
    ensure(known.count() == 1, || flame.to_string())?;
    // The only sample of the program is taken when the program has nearly ended. The program's binary must be known
    // from the exec event.
    let mut rows = list(&flame, "rows").iter();
    ensure(rows.any(|row| row["function"] == "main"), || {
        flame.to_string()
    })
}

fn diff() -> Result<(), Failed> {
    let program = pair()?;
    let of = |name: &str, left: &str| {
        let command = [program.as_str(), left, "500", "0"];
        recorded(name, &["--stacks=997"], &command)
    };
    let (base, new) = (of("base", "400")?, of("new", "900")?);
    let run = |args: &[&str]| {
        let mut tr = Command::new(TR);
        let out = tr.arg("diff").args([&base, &new]).args(args).output()?;
        ensure(out.status.success(), || text(&out.stderr))?;
        Ok::<String, Failed>(text(&out.stdout))
    };
    let json: Value = serde_json::from_str(&run(&["--format", "json"])?)?;
    let functions = list(&json, "functions");
    let first = functions.first().cloned().unwrap_or_default();
    let grown = first["self_time"]["difference"].as_i64().unwrap_or(0);
    ensure(
        first["function"] == "left"
            && first["program"] == "pair"
            && first["binary"] == "pair"
            && (300 * MS as i64..700 * MS as i64).contains(&grown),
        || json["functions"].to_string(),
    )?;
    // `right` took as long in the base recording, so its difference is small. `main` takes longer only because of the
    // function `left` that it calls, so the own time of `main` does not differ.
    let own = |name: &str| {
        let mine = functions
            .iter()
            .filter(|function| function["function"] == name);
        mine.map(|mine| mine["self_time"]["difference"].as_i64().unwrap_or(0))
            .sum::<i64>()
    };
    ensure(
        own("right").abs() < 150 * MS as i64 && own("main") == 0,
        || json["functions"].to_string(),
    )?;
    let words = run(&[])?;
    ensure(words.contains("ms in left"), || words.clone())?;
    // Each line has two numbers, for base and new. Their sums are those of the samples.
    let folded = run(&["--format", "folded"])?;
    let mut sums = [0u64; 2];
    for line in folded.lines() {
        let mut words = line.rsplitn(3, ' ');
        for sum in sums.iter_mut().rev() {
            *sum += words.next().unwrap_or_default().parse::<u64>()?;
        }
        let stack = words.next().unwrap_or_default();
        ensure(stack.starts_with("pair"), || line.to_owned())?;
    }
    for (sum, trace) in sums.iter().zip([&base, &new]) {
        let flame = report(trace, "flame", &[])?;
        let expected = int(&flame, "ns") / 1000;
        ensure(sum.abs_diff(expected) < 100, || format!("{sum} {expected}"))?;
    }
    let page = run(&["--format", "html"])?;
    ensure(
        page.contains("<svg id=\"flame\"") && page.contains("<title>left in pair: "),
        || page.clone(),
    )
}
