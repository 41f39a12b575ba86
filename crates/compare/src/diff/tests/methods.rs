//! Unit tests of the facts that recordings by different methods have in common.

use super::*;
use crate::diff::machine::tests;
use crate::diff::parts::Parts;
use crate::diff::run::{Bar, Proc};
use crate::diff::{methods, warnings};
use tr_programs::program_name::ProgramName;

/// A run with a critical path, and with a step and a process on the path.
fn run() -> Run {
    let mut run = tests::run([10, 5, 2, 0]);
    let times = tr_analyze::model::Times::default();
    run.processes.push(Proc {
        parent: None,
        keys: [1; 4],
        program: ProgramName::new("cc1"),
        label: "cc1 a.c".into(),
        figures: Figures::new(10, &times, None, Some(7)),
    });
    let step = tr_insight::verdicts::step_sums::StepSum {
        path: Some(7),
        starved: Some(1),
        ..Default::default()
    };
    run.steps
        .insert((tr_programs::steps::StepKind::Target, "a.o".into()), step);
    run.parts = Some(Parts::default());
    run.path.push(Bar {
        from: 0,
        to: 7,
        program: ProgramName::new("cc1"),
        label: vec!["cc1".into(), "a.c".into()],
        states: [7, 0, 0, 0, 0],
    });
    run.demands.insert(Demand::DiskPath, 1);
    run
}

fn has_path(run: &Run) -> bool {
    let known = [
        run.processes[0].figures.get(Figure::CriticalPath).is_some(),
        run.steps.values().all(|step| step.path.is_some()),
        run.parts.is_some(),
        !run.path.is_empty(),
        run.demands.contains_key(&Demand::DiskPath),
    ];
    assert!(known.iter().all(|it| *it == known[0]), "{known:?}");
    known[0]
}

fn queue_wait(diff: &Diff) -> bool {
    diff.whole(Figure::RunQueue).is_some()
}

#[test]
fn totals_and_events_are_two_methods() {
    let light = || Run {
        basis: Basis::Totals,
        ..run()
    };
    let mixed = tests::diff(run(), light());
    let methods = methods::mixed(&mixed).unwrap();
    assert_eq!(methods, "not the same method: bpf and bpf --light");
    assert!(warnings::warnings(&mixed)[0].starts_with(&methods));
    assert!(!queue_wait(&mixed) && !has_path(&mixed.base[0]) && !has_path(&mixed.new[0]));
    let by_sudo = Run {
        method: "sudo".into(),
        ..run()
    };
    for (base, new) in [(run(), by_sudo), (light(), light())] {
        let same = tests::diff(base, new);
        assert_eq!(methods::mixed(&same), None);
        assert!(queue_wait(&same) && has_path(&same.base[0]) && has_path(&same.new[0]));
    }
    // Two imports by one method can have different facts, because these depend on the imported file.
    let import = |basis| Run {
        method: "perf 6.1".into(),
        basis,
        ..run()
    };
    let mixed = tests::diff(import(Basis::RunTime), import(Basis::Events));
    let methods = methods::mixed(&mixed).unwrap();
    assert_eq!(
        methods,
        "not the same method: perf 6.1 and perf 6.1 (totals)"
    );
}

#[test]
fn a_path_is_compared_where_all_runs_have_one() {
    let large = || Run {
        file: "large.bin".into(),
        no_path: Some("their order is left out".into()),
        ..run()
    };
    let ask = crate::diff::Ask {
        top: 9,
        least: 1,
        gate: None,
        strict: false,
    };
    let one = crate::diff::compare(vec![run(), run()], vec![run(), large()], ask);
    assert!(queue_wait(&one));
    for run in one.base.iter().chain(&one.new) {
        assert!(!has_path(run));
    }
    let said = "large.bin: their order is left out; the critical path and causes are not compared";
    assert_eq!(warnings::warnings(&one), [said]);
    assert!(warnings::warnings(&tests::diff(large(), large())).is_empty());
}
