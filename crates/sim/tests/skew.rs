//! Clocks that disagree: what the analysis makes of them, held to the truth.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used)] // of our own tables, in a test

use std::cell::Cell;
use std::collections::HashMap;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tr_analyze::model::{Analysis, Process};
use tr_analyze::{analyze, Options};
use tr_format::event::Stream;
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_sim::recording::Recording;
use tr_sim::strategy::{self, Case};
use tr_sim::truth::{ProcessTruth, Truth};

/// Runs the case through a file and the analysis.
fn run(case: &Case) -> (Analysis, Truth) {
    let (mut recording, truth) = Recording::record(&case.config);
    case.plan.apply(&mut recording);
    let file = recording.to_file(&case.cut).expect("a file");
    let trace = Trace::open(Source::bytes(file)).expect("a trace");
    (analyze(&trace, &Options::default()), truth)
}

/// Processes with a pid of their own, as they are and as they were.
fn pairs<'a>(
    analysis: &'a Analysis,
    truth: &'a Truth,
) -> impl Iterator<Item = (&'a Process, &'a ProcessTruth)> {
    let mut count: HashMap<_, u32> = HashMap::new();
    for process in &truth.processes {
        *count.entry(process.pid).or_default() += 1;
    }
    analysis.processes.iter().filter_map(move |is| {
        let was = truth.processes.iter().find(|was| was.pid == is.pid)?;
        (count[&was.pid] == 1).then_some((is, was))
    })
}

/// How far a total of a process may be off: each stretch of its time by the
/// uncertainty, those that reach to the start or the end of the recording by the
/// margin. A thread has at most one stretch of each kind more than it has
/// switches.
fn allowed(was: &ProcessTruth, truth: &Truth, uncertainty: u64, margin: u64) -> u64 {
    let mut allowed = 0;
    for thread in &was.threads {
        let task = &truth.tasks[*thread];
        let stretches = task.voluntary + task.involuntary + 2;
        allowed += stretches * uncertainty;
        let at_start = task.start.since(truth.start) <= margin;
        let at_end = truth.end.since(task.end) <= margin;
        allowed += (u64::from(at_start) + u64::from(at_end)) * margin;
    }
    allowed
}

/// Every total is within its uncertainty of the truth.
fn check(
    analysis: &Analysis,
    truth: &Truth,
    uncertainty: u64,
    margin: u64,
) -> Result<(), TestCaseError> {
    for (is, was) in pairs(analysis, truth) {
        let slack = allowed(was, truth, uncertainty, margin);
        let undecided: u64 = was
            .threads
            .iter()
            .map(|thread| truth.tasks[*thread].undecided)
            .sum();
        let unknown = is.times.unknown;
        let at = format!("process {} from {}", was.pid.0, was.start.0);
        let ps: Vec<_> = analysis
            .processes
            .iter()
            .filter(|p| p.pid == was.pid)
            .collect();
        for (name, is, was, undecided) in [
            ("on_cpu", is.times.on_cpu, was.times.on_cpu, 0),
            (
                "run_queue",
                is.times.run_queue,
                was.times.run_queue,
                undecided,
            ),
            ("sleep", is.times.sleep, was.times.sleep, undecided),
            ("blocked", is.times.blocked, was.times.blocked, undecided),
        ] {
            prop_assert!(
                is <= was + slack + undecided,
                "{name} of {at}: {is}, but it was {was}; allowed {slack}"
            );
            prop_assert!(
                was <= is + unknown + slack + undecided,
                "{name} of {at}: {is} and {unknown} unknown, but it was {was}; allowed {slack}; {ps:?}"
            );
        }
    }
    Ok(())
}

/// The clocks are the same whatever part of the trace is looked at.
fn check_part(case: &Case, analysis: &Analysis) -> Result<(), TestCaseError> {
    let (mut recording, _) = Recording::record(&case.config);
    case.plan.apply(&mut recording);
    let file = recording.to_file(&case.cut).expect("a file");
    let trace = Trace::open(Source::bytes(file)).expect("a trace");
    let part = Options {
        to: Some(analysis.end.since(analysis.start) / 8),
        ..Options::default()
    };
    let part = analyze(&trace, &part).quality;
    prop_assert_eq!(&part.clocks, &analysis.quality.clocks);
    prop_assert_eq!(part.clocks_unclear, analysis.quality.clocks_unclear);
    Ok(())
}

fn explain(case: &Case, analysis: &Analysis, error: TestCaseError) -> TestCaseError {
    let quality = &analysis.quality;
    TestCaseError::fail(format!(
        "{error}\n{:#?}\n{:?}\n{}",
        quality.clocks,
        quality.violations,
        case.draw(20_000)
    ))
}

/// How many cases came to what.
#[derive(Default)]
struct Tally {
    cases: Cell<u64>,
    /// The trace contradicted itself, or was corrected.
    noticed: Cell<u64>,
    corrected: Cell<u64>,
    /// Nothing contradicted itself any more.
    clean: Cell<u64>,
    /// The uncertainty is known.
    bounded: Cell<u64>,
}

fn up(cell: &Cell<u64>) {
    cell.set(cell.get() + 1);
}

impl Tally {
    fn add(&self, analysis: &Analysis) {
        let quality = &analysis.quality;
        let odd = !quality.violations.is_empty();
        up(&self.cases);
        if odd || quality.clocks.is_some() {
            up(&self.noticed);
        }
        if let Some(clocks) = &quality.clocks {
            up(&self.corrected);
            if !odd {
                up(&self.clean);
            }
            if clocks.uncertainty.is_some() {
                up(&self.bounded);
            }
        }
    }
}

/// Of skewed traces that contradict themselves most are corrected, most of these
/// no longer contradict themselves, and the times are within their uncertainty.
#[test]
fn corrected_times_are_within_their_uncertainty() {
    let tally = Tally::default();
    let result = TestRunner::new(strategy::cases(600)).run(
        &strategy::skewed(2_000_000, 100_000_000, false),
        |case| {
            let (analysis, truth) = run(&case);
            tally.add(&analysis);
            if case.config.seed % 4 == 0 {
                check_part(&case, &analysis)?;
            }
            let bounds = analysis.quality.clocks.as_ref();
            let bounds = bounds.and_then(|clocks| clocks.uncertainty.zip(clocks.margin));
            // Where something still contradicts itself, the report says so.
            let clean = analysis.quality.violations.is_empty();
            let Some((uncertainty, margin)) = bounds.filter(|_| clean) else {
                return Ok(());
            };
            check(&analysis, &truth, uncertainty, margin)
                .map_err(|error| explain(&case, &analysis, error))
        },
    );
    if let Err(error) = result {
        panic!("{error}");
    }
    let Tally {
        cases,
        noticed,
        corrected,
        clean,
        bounded,
    } = tally;
    println!("of {cases:?} cases {noticed:?} noticed, {corrected:?} corrected, {clean:?} clean, {bounded:?} bounded");
    assert!(noticed.get() * 2 > cases.get(), "too few were noticed");
    assert!(
        corrected.get() * 10 > noticed.get() * 8,
        "too few were corrected"
    );
    assert!(clean.get() * 10 > corrected.get() * 8, "too few are clean");
    assert!(
        bounded.get() * 10 > corrected.get() * 7,
        "too few are bounded"
    );
}

proptest! {
    #![proptest_config(strategy::cases(300))]

    /// With lost spans as well: what is known is no more than the truth and its
    /// uncertainty, the truth no more than what is known and unknown.
    #[test]
    fn with_loss_nothing_is_invented(case in strategy::skewed(2_000_000, 30_000_000, true)) {
        let (analysis, truth) = run(&case);
        let quality = &analysis.quality;
        let bounds = quality.clocks.as_ref();
        let bounds = bounds.and_then(|clocks| clocks.uncertainty.zip(clocks.margin));
        let whose = quality.lost.iter().all(|lost| lost.stream != Stream::Lifecycle);
        if let (Some((uncertainty, margin)), true, true) = (bounds, whose, quality.violations.is_empty()) {
            check(&analysis, &truth, uncertainty, margin).map_err(|error| explain(&case, &analysis, error))?;
        }
        for thread in &analysis.threads {
            prop_assert_eq!(thread.times.sum(), thread.end.since(thread.start));
        }
    }

    /// Clocks that are right stay as they are, whatever is missing.
    #[test]
    fn right_clocks_are_left_alone(case in strategy::skewed(2_000_000, 30_000_000, true)) {
        let mut case = case;
        case.plan.skew = None;
        let (analysis, _) = run(&case);
        prop_assert_eq!(&analysis.quality.clocks, &None);
        prop_assert!(!analysis.quality.clocks_unclear);
        // With the whole recording nothing gives a reason to look at them.
        case.plan.loss.clear();
        let (analysis, _) = run(&case);
        prop_assert_eq!(&analysis.quality.violations, &Vec::new());
    }
}
