//! Counters of the machine, held against what COMMAND and this test read from `/proc`.

use std::collections::BTreeMap;
use std::fs;

use libtest_mimic::Failed;
use serde_json::Value;

use crate::support::{dump, ensure, record, scratch, text, Test};

pub const TESTS: &[Test] = &[("counters_are_between_two_readings_of_proc", between)];

/// Each `/proc/stat` column is cut to a tick of 10 ms; five make `busy`.
const TICKS: u64 = 50_000_000;

/// Counters in ns, by name, from the texts of `/proc/pressure/*` and `/proc/stat`.
fn counters(all: &str) -> BTreeMap<&'static str, u64> {
    let names = [
        "cpu_some",
        "memory_some",
        "memory_full",
        "io_some",
        "io_full",
    ];
    let total = |line: &str| line.rsplit_once("total=")?.1.trim().parse::<u64>().ok();
    let lines = all.lines().filter(|line| line.contains("total="));
    // `full` of the CPUs is always 0.
    let lines = lines
        .enumerate()
        .filter(|(at, _)| *at != 1)
        .map(|(_, line)| line);
    let mut values: BTreeMap<&str, u64> = names
        .into_iter()
        .zip(lines.map(|line| total(line).expect("a total") * 1000))
        .collect();
    let stat = all.lines().find(|line| line.starts_with("cpu "));
    let ticks: Vec<u64> = stat
        .expect("all CPUs")
        .split_whitespace()
        .skip(1)
        .map(|it| it.parse::<u64>().expect("ticks") * 10_000_000)
        .collect();
    values.insert("busy", ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]);
    values.insert("iowait", ticks[4]);
    values.insert("stolen", ticks[7]);
    values
}

/// The outer readings contain the recording, which contains the inner ones.
fn between() -> Result<(), Failed> {
    const FILES: &str = "/proc/pressure/cpu /proc/pressure/memory /proc/pressure/io /proc/stat";
    let read = || {
        let files = FILES.split(' ').map(fs::read_to_string);
        files
            .collect::<Result<Vec<String>, _>>()
            .map(|all| counters(&all.concat()))
    };
    let (first, last) = (scratch("machine.first"), scratch("machine.last"));
    let script = format!(
        "cat {FILES} > '{}'; for i in 1 2 3; do (i=0; while [ $i -lt 200000 ]; do \
         i=$((i+1)); done) & done; wait; sleep 1.2; cat {FILES} > '{}'",
        first.display(),
        last.display()
    );
    for method in ["bpf", "ptrace", "poll"] {
        let trace = scratch("machine.bin");
        let before = read()?;
        let out = record(&trace, &["--method", method], &["sh", "-c", &script])?;
        let after = read()?;
        ensure(out.status.success(), || text(&out.stderr))?;
        let inner = [&first, &last].map(|file| counters(&fs::read_to_string(file).expect("it")));
        let events = dump(&trace)?;
        let samples: Vec<&Value> = events
            .iter()
            .filter(|it| it["kind"] == "counters")
            .collect();
        let what = || format!("{method}: {samples:#?}");
        // At the start, at least one within, and at the end.
        ensure(samples.len() >= 3, what)?;
        let all_known = ["available_memory", "recorder"].into_iter();
        for name in all_known.chain(before.keys().copied()) {
            ensure(samples.iter().all(|it| it[name].is_u64()), what)?;
        }
        for (name, before) in &before {
            let value = |at: usize| samples[at][name].as_u64().unwrap_or(u64::MAX);
            let (start, end) = (value(0), value(samples.len() - 1));
            let slack = if ["busy", "iowait", "stolen"].contains(name) {
                TICKS
            } else {
                0
            };
            let least = inner[1][name] - inner[0][name];
            let most = after[name] - before;
            let what = || format!("{method} {name}: {least} <= {start}..{end} <= {most}");
            ensure(start <= end && least <= end - start + slack, what)?;
            ensure(end <= most + slack, what)?;
        }
        // Three loops on two CPUs.
        ensure(inner[1]["busy"] - inner[0]["busy"] > 50_000_000, what)?;
        ensure(inner[1]["cpu_some"] > inner[0]["cpu_some"], what)?;
    }
    Ok(())
}
