//! Compares the critical path of recordings in which a guest's kernel has hidden some switches with the path of the
//! complete recording.
#![allow(clippy::unwrap_used, clippy::expect_used)] // tables of the simulator

use std::collections::BTreeMap;

use tr_analyze::critical_path::{self, critical_path, CriticalPath, Segment, TimeKind};
use tr_analyze::model::{Analysis, Thread};
use tr_analyze::{analyze, Options};
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_sim::blocks::{Cut, Order};
use tr_sim::config::Config;
use tr_sim::inject::{Hidden, Plan};
use tr_sim::program::World;
use tr_sim::recording::Recording;
use tr_sim::scenario;

fn path_of(recording: &Recording) -> (Analysis, CriticalPath) {
    let cut = Cut {
        largest: 100,
        order: Order::Written,
        seed: 1,
    };
    let file = recording.to_file(&cut).expect("a file");
    let trace = Trace::open(Source::bytes(file)).expect("a trace");
    let options = Options {
        timeline: true,
        ..Options::default()
    };
    let analysis = analyze(&trace, &options);
    let root = critical_path::root(&analysis).expect("COMMAND");
    let path = critical_path(&analysis, root).expect("a path");
    (analysis, path)
}

/// The known time of each program on the critical path, and the unknown time of the path.
fn shares(analysis: &Analysis, path: &CriticalPath) -> (BTreeMap<String, u64>, u64) {
    let (mut programs, mut unknown) = (BTreeMap::new(), 0);
    for segment in &path.segments {
        if segment.kind == TimeKind::Unknown {
            unknown += segment.length();
            continue;
        }
        let exec = segment.program;
        let exec = exec.and_then(|(ix, at)| analysis.process(ix).execs.get(at as usize));
        let name = exec.map(|exec| String::from_utf8_lossy(&exec.filename).into_owned());
        *programs.entry(name.unwrap_or_default()).or_insert(0) += segment.length();
    }
    (programs, unknown)
}

fn world(number: u64) -> World {
    let n = (number / 4 % 6) as u32;
    match number % 4 {
        0 => scenario::build(2 + n, 6 + 2 * n, 3),
        1 => scenario::make(1 + n, 10),
        2 => scenario::short_processes(1 + n / 2, 10 + 10 * n),
        _ => scenario::build(8, 12, 1 + n),
    }
}

/// If 1 to 10 of 1000 switches are hidden, the time of each program on the critical path changes by at most 5 % of the
/// path, in 99 % of the recordings. The path's unknown time never exceeds that of all threads together, and sleeps do
/// not become work.
#[test]
fn hidden_switches_leave_the_path() {
    let cases = std::env::var("PATH_CASES").ok();
    let cases = cases.and_then(|n| n.parse().ok()).unwrap_or(200);
    let mut wrong = Vec::new();
    for number in 0..cases {
        let mut config = Config::new(world(number), 1 + (number % 7) as u16, 3_000_000_000);
        config.seed = number;
        config.linger = Some(100_000);
        let (mut recording, _) = Recording::record(&config);
        let (analysis, whole) = path_of(&recording);
        let (expected, _) = shares(&analysis, &whole);
        let plan = Plan {
            hidden: Some(Hidden {
                per_mille: 1 + (number % 10) as u16,
            }),
            seed: number,
            ..Plan::default()
        };
        plan.apply(&mut recording);
        let (analysis, path) = path_of(&recording);
        let (is, unknown) = shares(&analysis, &path);
        let sum: u64 = path.segments.iter().map(Segment::length).sum();
        assert_eq!(sum, path.length(), "case {number}");
        let hole = |thread: &Thread| thread.times_by_events().unknown;
        let holes: u64 = analysis.threads.iter().map(hole).sum();
        assert!(unknown <= holes, "case {number}: {unknown} of {holes} ns");
        // Time that is only inferred to be work must not be much longer than the kernel's totals allow.
        for it in path.segments.iter().filter(|segment| segment.inferred) {
            let of = analysis.thread(it.thread);
            let most = (of.by_kernel.on_cpu + of.by_kernel.run_queue) * 2 + 1;
            assert!(
                it.kind != TimeKind::OnCpu || of.kernel.is_none() || it.length() <= most,
                "case {number}: {} of {most} ns",
                it.length()
            );
        }
        let length = whole.length().max(1);
        let names = expected.keys().chain(is.keys());
        let differ = |name: &String| {
            let of = |shares: &BTreeMap<String, u64>| shares.get(name).copied().unwrap_or(0);
            of(&expected).abs_diff(of(&is)) * 100 / length
        };
        let worst = names.map(differ).max().unwrap_or(0);
        if worst > 5 {
            let unknown = unknown * 100 / length;
            wrong.push(format!(
                "case {number}: {worst} points, unknown {unknown} %"
            ));
        }
    }
    println!("{} of {cases} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(
        wrong.len() as u64 * 100 <= cases,
        "{} of {cases}",
        wrong.len()
    );
}
