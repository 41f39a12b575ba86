//! Unit tests of the comparison of the machine.

use tr_analyze::model::Times;

use super::*;
use crate::diff::warnings;
use crate::diff::{compare, Ask, Diff, Figures};
use tr_insight::resources::loads::Loads;

const SECOND: u64 = 1_000_000_000;

/// A run with these times in seconds: wall time, CPU time, time in run queues, and CPU time of other tasks.
pub(in crate::diff) fn run([wall, on_cpu, run_queue, others]: [u64; 4]) -> Run {
    let times = Times {
        on_cpu: on_cpu * SECOND,
        run_queue: run_queue * SECOND,
        ..Times::default()
    };
    Run {
        cpus: 2,
        method: "bpf".into(),
        figures: Figures::new(wall * SECOND, &times, None, None),
        machine: Loads {
            loads: [(Load::Others, others * SECOND)].into(),
            work: Some(on_cpu * SECOND),
            calls: Some(BTreeMap::new()),
        },
        ..Run::default()
    }
}

pub(in crate::diff) fn diff(base: Run, new: Run) -> Diff {
    let ask = Ask {
        top: 9,
        least: 1,
        gate: None,
        strict: false,
    };
    compare(vec![base], vec![new], ask)
}

#[test]
fn calls_that_differ_are_found() {
    let with = |calls: &[(&str, u64, u64)]| {
        let mut run = run([100, 150, 10, 5]);
        let calls = calls
            .iter()
            .map(|(name, n, ns)| ((*name).to_owned(), (*n, *ns)));
        run.machine.calls = Some(calls.collect());
        run
    };
    let base = with(&[("read", 1000, 50), ("write", 1000, 500), ("open", 10, 0)]);
    let new = with(&[
        ("read", 2000, 51),
        ("write", 1001, 501),
        ("open", 20, 0),
        ("stat", 500, 9),
    ]);
    let found = calls_of(sides(&[base], &[new]), 5);
    let names: Vec<(&str, i128)> = found
        .iter()
        .map(|it| (it.name.as_str(), it.count.difference()))
        .collect();
    assert_eq!(names, [("stat", 500), ("read", 1000)]);
    // The base has no record of system calls.
    let mut none = with(&[]);
    none.machine.calls = None;
    assert!(calls_of(sides(&[none], &[with(&[("read", 2000, 51)])]), 5).is_empty());
}

fn sides<'a>(base: &'a [Run], new: &'a [Run]) -> Sides<'a> {
    Sides { base, new }
}

#[test]
fn other_numbers_of_allowed_cpus_are_reported() {
    let allowed = |cpus| Run {
        allowed: cpus,
        ..run([100, 150, 10, 5])
    };
    let said = |base, new| warnings::warnings(&diff(allowed(base), allowed(new)));
    let difference = "not the same number of CPUs: 1 of 2 and 2";
    assert_eq!(said(None, Some(1)), [difference]);
    assert!(said(Some(1), Some(1)).is_empty());
}
