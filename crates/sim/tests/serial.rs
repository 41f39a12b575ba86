//! The critical path, what-if limits and parallelism: against worlds whose
//! answer is known, against the events themselves, and laws that hold whatever
//! happens.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used)] // of our own tables, in a test

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;
use tr_analyze::critical_path::{self, critical_path, CriticalPath, Kind, Segment, Then};
use tr_analyze::model::{Analysis, Process, ProcessIx, Thread};
use tr_analyze::parallelism::{parallelism, Idle, Parallelism};
use tr_analyze::programs::Groups;
use tr_analyze::timeline::{Bucket, Who};
use tr_analyze::what_if::{limits, Limits};
use tr_analyze::{analyze, Options};
use tr_format::event::{LifeKind, SchedKind, Stream, Tid};
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_sim::blocks::{Cut, Order};
use tr_sim::config::{Config, Kernel};
use tr_sim::program::{chan, ms, us, Arg, Image, Op, World};
use tr_sim::recording::Recording;
use tr_sim::sink::Event;
use tr_sim::strategy::{self, Case};
use tr_sim::{scenario, timeline};

const MS: u64 = 1_000_000;

fn analyzed(recording: &Recording, cut: &Cut) -> Analysis {
    let file = recording.to_file(cut).expect("a file");
    let trace = Trace::open(Source::bytes(file)).expect("a trace");
    let options = Options {
        timeline: true,
        ..Options::default()
    };
    analyze(&trace, &options)
}

/// Groups by the program's file name; a child before its exec is its parent's.
fn by_program(analysis: &Analysis) -> Groups {
    Groups::new(analysis, |_, exec| {
        let path = exec.map(|exec| String::from_utf8_lossy(&exec.filename).into_owned());
        path.as_deref()
            .and_then(|path| path.rsplit('/').next())
            .unwrap_or("?")
            .to_owned()
    })
}

fn name_of(analysis: &Analysis, groups: &Groups, segment: &Segment) -> String {
    let process = analysis.threads[segment.thread.0 as usize].process;
    let group = groups.at(process, segment.from).unwrap();
    groups.name(group).to_owned()
}

// ---- Laws ----

/// Whatever the trace: the segments follow each other, and each is what the
/// thread's own timeline says.
fn check_path(analysis: &Analysis, path: &CriticalPath) -> Result<(), TestCaseError> {
    let timeline = analysis.timeline.as_ref().unwrap();
    let mut now = path.from;
    for segment in &path.segments {
        prop_assert_eq!(segment.from, now, "{:?}", segment);
        prop_assert!(segment.to > segment.from, "{:?}", segment);
        now = segment.to;
        if segment.kind == Kind::Unknown {
            continue;
        }
        // What the timeline says at both ends and in the middle.
        let middle = segment.from.0 + (segment.to.0 - segment.from.0) / 2;
        for at in [segment.from.0, middle, segment.to.0 - 1] {
            let number = timeline.at(segment.thread, tr_format::event::Ktime(at));
            let stretch = timeline.get(segment.thread, number.unwrap()).unwrap();
            let fits = match (segment.kind, stretch.doing) {
                (Kind::OnCpu, Bucket::OnCpu(_)) => true,
                (Kind::RunQueue(_), Bucket::RunQueue { .. }) => true,
                (Kind::OnCpu | Kind::RunQueue(_), _) => false,
                (Kind::Outside(_), Bucket::Wait(_)) => !matches!(stretch.who, Who::Interrupt),
                (_, Bucket::Wait(_)) => true,
                (_, _) => false,
            };
            prop_assert!(fits, "{:?} in {:?}", segment, stretch);
        }
    }
    prop_assert_eq!(now, path.to);
    let sum: u64 = path.segments.iter().map(Segment::length).sum();
    prop_assert_eq!(sum, path.length());
    for pair in path.segments.windows(2) {
        let same = |s: &Segment| (s.thread, s.program, s.kind);
        prop_assert!(same(&pair[0]) != same(&pair[1]), "not merged: {:?}", pair);
        prop_assert_eq!(
            pair[0].then == Then::Same,
            pair[0].thread == pair[1].thread,
            "{:?}",
            pair
        );
    }
    Ok(())
}

/// The forward pass: with nothing free the end's clock shows the time it took.
fn check_limits(
    analysis: &Analysis,
    path: &CriticalPath,
    groups: &Groups,
) -> Result<(), TestCaseError> {
    let free: Vec<u32> = (0..groups.count() as u32).take(4).collect();
    let limits = limits(analysis, path, groups, &free).expect("a timeline");
    prop_assert_eq!(limits.recorded, path.length(), "the clock of the end");
    prop_assert!(limits.span <= limits.recorded, "{:?}", limits);
    for free in &limits.free {
        prop_assert!(free.at_least <= free.same_waits, "{:?}", limits);
        prop_assert!(free.at_least <= limits.on(limits.cpus), "{:?}", limits);
    }
    Ok(())
}

fn check_parallelism(
    analysis: &Analysis,
    path: Option<&CriticalPath>,
    groups: &Groups,
) -> Result<(), TestCaseError> {
    let is = parallelism(analysis, groups, path, 5).expect("a timeline");
    let span = analysis.end.since(analysis.start);
    prop_assert_eq!(is.running.iter().sum::<u64>() + is.unknown, span);
    prop_assert_eq!(is.demand.iter().sum::<u64>() + is.unknown, span);
    // The book counts the running tasks event by event.
    let told = |n: usize| is.running.get(n).copied().unwrap_or(0);
    for (n, time) in analysis.concurrency.iter().enumerate() {
        prop_assert!(told(n) <= time + analysis.concurrency_unknown, "{} at once", n);
        prop_assert!(*time <= told(n) + is.unknown, "{} at once", n);
    }
    let ran: u64 = is.alone_by_group.values().map(|sum| sum.ran).sum();
    prop_assert_eq!(ran, told(1));
    let idle: u64 = is.idle.values().sum();
    prop_assert_eq!(idle, told(0));
    prop_assert!(is
        .alone
        .windows(2)
        .all(|pair| pair[0].length() >= pair[1].length()));
    let alone: u64 = is.alone.iter().map(|alone| alone.length()).sum();
    prop_assert!(alone <= is.demand.get(1).copied().unwrap_or(0));
    Ok(())
}

/// The laws for every process of the recording.
fn check_all(analysis: &Analysis) -> Result<(), TestCaseError> {
    let groups = by_program(analysis);
    check_parallelism(analysis, None, &groups)?;
    for at in 0..analysis.processes.len() {
        let path = critical_path(analysis, ProcessIx(at as u32)).expect("a path");
        check_path(analysis, &path)?;
        if at < 12 {
            check_limits(analysis, &path, &groups)?;
            check_parallelism(analysis, Some(&path), &groups)?;
        }
    }
    Ok(())
}

/// Where the path goes from one thread to another there was a wake-up, or a
/// fork, by the one for the other, at that moment.
fn check_links(
    analysis: &Analysis,
    recording: &Recording,
    path: &CriticalPath,
) -> Result<(), TestCaseError> {
    let mut wakings = HashSet::new();
    let mut forks = HashSet::new();
    for event in timeline::in_order(recording) {
        match event {
            Event::Sched(_, event) => {
                if let SchedKind::Waking {
                    waker,
                    wakee,
                    irq: false,
                    ..
                } = event.kind
                {
                    wakings.insert((event.time, waker, wakee));
                }
            }
            Event::Life(_, event) => {
                if let LifeKind::Fork(fork) = event.kind {
                    forks.insert((event.time, fork.parent_tid, fork.tid));
                }
            }
        }
    }
    // An exec may have given a thread another tid since.
    let tid = |segment: &Segment| -> Option<Tid> {
        let thread: &Thread = &analysis.threads[segment.thread.0 as usize];
        let process: &Process = &analysis.processes[thread.process.0 as usize];
        (process.threads.len() == 1).then_some(thread.tid)
    };
    for pair in path.segments.windows(2) {
        let (Some(by), Some(of)) = (tid(&pair[0]), tid(&pair[1])) else {
            continue;
        };
        let link = (pair[1].from, by, of);
        let known = match pair[0].then {
            Then::Same => true,
            Then::Forked => forks.contains(&link),
            _ => wakings.contains(&link),
        };
        prop_assert!(known, "{:?}", pair);
    }
    Ok(())
}

fn explain(case: &Case, error: TestCaseError) -> TestCaseError {
    TestCaseError::fail(format!("{error}\n{}", case.draw(400)))
}

proptest! {
    #![proptest_config(strategy::cases(200))]

    /// Any lateness, inversions and order of the blocks.
    #[test]
    fn without_loss_the_path_is_made_of_what_happened(case in strategy::lossless(3_000_000)) {
        let (mut recording, _) = Recording::record(&case.config);
        let before = recording.clone();
        case.plan.apply(&mut recording);
        let analysis = analyzed(&recording, &case.cut);
        let checked = check_all(&analysis).and_then(|()| {
            // Equal times make chains at one instant.
            let exact = case.config.grain == 1;
            (0..analysis.processes.len()).filter(|_| exact).try_for_each(|at| {
                let path = critical_path(&analysis, ProcessIx(at as u32)).expect("a path");
                check_links(&analysis, &before, &path)
            })
        });
        checked.map_err(|error| explain(&case, error))?;
    }

    /// Lost spans: what is missing is unknown, and all adds up.
    #[test]
    fn with_loss_the_path_adds_up(case in strategy::lossy(3_000_000)) {
        let (mut recording, _) = Recording::record(&case.config);
        case.plan.apply(&mut recording);
        check_all(&analyzed(&recording, &case.cut)).map_err(|error| explain(&case, error))?;
    }

    /// Everything at once: nothing panics, and all adds up.
    #[test]
    fn whatever_happens_the_path_adds_up(case in strategy::anything(3_000_000)) {
        let (mut recording, _) = Recording::record(&case.config);
        case.plan.apply(&mut recording);
        check_all(&analyzed(&recording, &case.cut)).map_err(|error| explain(&case, error))?;
    }
}
