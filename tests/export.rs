//! `tr export`, read by other programs: Perfetto's trace_processor, and parsers of JSON.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)] // of our own files

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::Arguments;
use serde_json::Value;

use common::{ensure, lacks, trial, Failure, TR};

fn main() {
    let reason = trace_processor().err();
    let tests = vec![
        trial(
            "perfetto_has_the_analysis_of_builds",
            reason.clone(),
            || {
                for trace in ["demo", "build", "signals"] {
                    perfetto(trace, &[]).map_err(|e| format!("{trace}: {e}"))?;
                }
                Ok(())
            },
        ),
        trial(
            "perfetto_has_the_analysis_of_a_machine",
            reason.clone(),
            || perfetto("linux-6.12-all", &[]).map_err(|e| e.to_string().into()),
        ),
        trial("perfetto_has_the_chosen_processes", reason.clone(), || {
            perfetto("build", &["--comm", "^cc1$"]).map_err(|e| e.to_string().into())
        }),
        trial("perfetto_has_steps_path_and_wakers", reason, || {
            tracks().map_err(|e| e.to_string().into())
        }),
        trial("stacks_have_all_of_the_time", None, || {
            stacks().map_err(|e| e.to_string().into())
        }),
        trial("chrome_has_every_program", None, || {
            chrome().map_err(|e| e.to_string().into())
        }),
    ];
    libtest_mimic::run(&Arguments::from_args(), tests).exit();
}

fn fixture(trace: &str) -> String {
    format!("{}/fixtures/traces/{trace}.bin", env!("CARGO_MANIFEST_DIR"))
}

/// The directory of trace_processor, or the reason why it is not there.
fn trace_processor() -> Result<PathBuf, String> {
    lacks("node").map_or(Ok(()), Err)?;
    // This program lies in target/PROFILE/deps.
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let target = own.ancestors().nth(3).ok_or("no target directory")?;
    let directory = target.join("trace_processor");
    if directory.join("trace_processor.wasm").is_file() {
        Ok(directory)
    } else {
        Err("scripts/trace_processor.sh has not fetched trace_processor".into())
    }
}

fn export(trace: &str, format: &str, more: &[&str]) -> Result<Vec<u8>, Failure> {
    let out = Command::new(TR)
        .args(["export", &fixture(trace), "--format", format, "-o", "-"])
        .args(more)
        .output()?;
    ensure(out.status.success(), || {
        String::from_utf8_lossy(&out.stderr).into_owned()
    })?;
    Ok(out.stdout)
}

fn analysis(trace: &str, more: &[&str]) -> Result<Value, Failure> {
    let out = Command::new(TR)
        .args(["analyze", &fixture(trace), "--format", "json"])
        .args(more)
        .output()?;
    Ok(serde_json::from_slice(&out.stdout)?)
}

/// The rows of queries on an export.
fn query(trace: &Path, queries: &[&str]) -> Result<Vec<Value>, Failure> {
    let out = Command::new("node")
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/trace_processor.mjs"
        ))
        .arg(trace_processor()?)
        .arg(trace)
        .args(queries)
        .output()?;
    ensure(out.status.success(), || {
        String::from_utf8_lossy(&out.stderr).into_owned()
    })?;
    let text = String::from_utf8(out.stdout)?;
    text.lines()
        .map(|line| Ok(serde_json::from_str(line)?))
        .collect()
}

/// CPU time and blocked time by pid: those of the export equal those that events show.
fn perfetto(trace: &str, more: &[&str]) -> Result<(), Failure> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("trace.pftrace");
    std::fs::write(&file, export(trace, "perfetto", more)?)?;
    let rows = query(
        &file,
        &["select p.pid, s.state, sum(s.dur) as ns from thread_state s join thread t using(utid) \
           join process p using(upid) where p.pid > 0 and p.pid < 4194304 group by 1, 2"],
    )?;
    let mut found: BTreeMap<u64, [u64; 2]> = BTreeMap::new();
    for row in rows {
        let sums = found.entry(row["pid"].as_u64().unwrap()).or_default();
        match row["state"].as_str().unwrap() {
            "Running" => sums[0] += row["ns"].as_u64().unwrap(),
            "D" => sums[1] += row["ns"].as_u64().unwrap(),
            _ => {}
        }
    }
    let analysis = analysis(trace, more)?;
    let mut expected: BTreeMap<u64, [u64; 2]> = BTreeMap::new();
    for process in analysis["processes"].as_array().unwrap() {
        let ns = |name: &str| process[name].as_u64().unwrap();
        let sums = expected.entry(ns("pid")).or_default();
        sums[0] += ns("on_cpu_ns") - ns("on_cpu_by_kernel_ns");
        sums[1] += ns("blocked_ns");
    }
    ensure(expected.len() > 1, || "no processes".into())?;
    for (pid, sums) in &expected {
        let found = found.get(pid).copied().unwrap_or_default();
        ensure(found[0] == sums[0], || {
            format!("pid {pid}: {found:?} ns on CPU and blocked, expected {sums:?}")
        })?;
        // An end that no event shows.
        ensure(found[1].abs_diff(sums[1]) <= 1_000_000, || {
            format!("pid {pid}: blocked {found:?}, expected {sums:?}")
        })?;
    }
    ensure(found.values().map(|it| it[0]).sum::<u64>() > 0, || {
        "no time".into()
    })
}

/// The process tree, steps, the critical path, wakers, counters.
fn tracks() -> Result<(), Failure> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("trace.pftrace");
    std::fs::write(&file, export("demo", "perfetto", &[])?)?;
    let rows = query(
        &file,
        &[
            "select count(*) as n from process where parent_upid is not null",
            "select count(*) as n, sum(s.dur) as ns from slice s join track t on s.track_id = t.id \
             where t.name = 'Critical path'",
            "select count(*) as n from slice s join track t on s.track_id = t.id \
             where t.name in ('Steps', 'Tests')",
            "select count(*) as n from slice s join thread_track t on s.track_id = t.id",
            "include perfetto module sched.thread_executing_span",
            "select count(*) as n from _wakeup_graph where waker_id is not null",
            "select count(*) as n from ftrace_event where name = 'sched_waking'",
            "select count(*) as n, max(c.value) as top from counter c join track t \
             on c.track_id = t.id where t.name = 'recorded tasks on a CPU'",
            "select count(*) as n from stats where severity in ('error', 'data_loss') and value > 0",
            "select cmdline from process where pid = 10525",
        ],
    )?;
    let number = |at: usize, name: &str| rows[at][name].as_u64().unwrap();
    let json = analysis("demo", &["--report", "critical-path,steps"])?;
    let processes = json["processes"].as_array().unwrap();
    ensure(number(0, "n") == processes.len() as u64, || {
        format!("{rows:?}")
    })?;
    let path = &json["critical_path"]["path"]["wall_ns"];
    ensure(rows[1]["ns"] == *path, || format!("{} {path}", rows[1]))?;
    let steps = json["steps"]["steps"].as_array().unwrap().len() as u64;
    ensure(number(2, "n") == steps, || format!("{} {steps}", rows[2]))?;
    let execs = processes
        .iter()
        .map(|it| it["execs"].as_array().unwrap().len());
    ensure(number(3, "n") == execs.sum::<usize>() as u64, || {
        format!("{}", rows[3])
    })?;
    ensure(number(4, "n") > 100 && number(5, "n") > 100, || {
        format!("{rows:?}")
    })?;
    let top = rows[6]["top"].as_f64().unwrap();
    ensure(number(6, "n") > 1000 && top > 1.0 && top <= 2.0, || {
        format!("{}", rows[6])
    })?;
    ensure(number(7, "n") == 0, || {
        format!("errors of the importer: {}", rows[7])
    })?;
    let command = rows[8]["cmdline"].as_str().unwrap();
    ensure(command.contains("cc1 -quiet -I"), || command.to_owned())
}

fn stacks() -> Result<(), Failure> {
    let json = analysis("demo", &[])?;
    let processes = json["processes"].as_array().unwrap();
    let all = |name: &str| {
        processes
            .iter()
            .map(|it| it[name].as_u64().unwrap())
            .sum::<u64>()
    };
    let folded = String::from_utf8(export("demo", "folded", &[])?)?;
    let weights = folded.lines().map(|line| line.rsplit_once(' ').unwrap().1);
    let sum: u64 = weights.map(|weight| weight.parse::<u64>().unwrap()).sum();
    ensure((sum * 1000).abs_diff(all("on_cpu_ns")) < 1_000_000, || {
        format!("{sum} µs")
    })?;
    ensure(folded.contains(";cc kernels_4.c;cc1 kernels_4.c "), || {
        folded.clone()
    })?;
    let waits = all("run_queue_ns") + all("sleep_ns") + all("blocked_ns");
    for (weight, expected) in [("cpu", all("on_cpu_ns")), ("waiting", waits)] {
        let speedscope = export("demo", "speedscope", &["--weight", weight])?;
        let speedscope: Value = serde_json::from_slice(&speedscope)?;
        let profile = &speedscope["profiles"][0];
        let weights = profile["weights"].as_array().unwrap();
        let sum: u64 = weights.iter().map(|it| it.as_u64().unwrap()).sum();
        ensure(sum == expected && profile["endValue"] == sum, || {
            format!("{sum} {expected}")
        })?;
        let frames = speedscope["shared"]["frames"].as_array().unwrap().len() as u64;
        let samples = profile["samples"].as_array().unwrap();
        let mut places = samples.iter().flat_map(|it| it.as_array().unwrap());
        ensure(places.all(|at| at.as_u64().unwrap() < frames), || {
            "a frame".into()
        })?;
        ensure(samples.len() == weights.len(), || "as many".into())?;
    }
    // The wall time of the tree is that of its root, less what children spend beside each other.
    let wall = String::from_utf8(export("demo", "folded", &["--weight", "wall"])?)?;
    ensure(wall.lines().any(|line| line.contains("sleep 0.4")), || {
        wall.clone()
    })
}

fn chrome() -> Result<(), Failure> {
    let events: Value = serde_json::from_slice(&export("demo", "chrome", &[])?)?;
    let json = analysis("demo", &[])?;
    let mut programs = 0;
    for process in json["processes"].as_array().unwrap() {
        let of = |event: &&Value| event["pid"] == process["pid"] && event["ph"] == "X";
        let spans: Vec<&Value> = events.as_array().unwrap().iter().filter(of).collect();
        let us: f64 = spans.iter().map(|it| it["dur"].as_f64().unwrap()).sum();
        let wall = process["wall_ns"].as_u64().unwrap() as f64 / 1000.0;
        ensure((us - wall).abs() < 0.01, || format!("{process}: {us}"))?;
        programs += spans
            .iter()
            .filter(|it| it["args"]["argv"].is_string())
            .count();
    }
    ensure(programs > 100, || format!("{programs}"))
}
