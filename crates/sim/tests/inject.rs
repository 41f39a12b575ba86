//! Tests that each fault injector makes only the changes that it reports, and that the blocks of a recording have
//! exactly the events of its rings.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // The indices are of the test's own tables.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tr_format::event::{LifeKind, LossCause, Stream};
use tr_sim::blocks::{Events, Order};
use tr_sim::inject::{provable, Injected, Plan, Provable};
use tr_sim::recording::{Recording, Written};
use tr_sim::strategy::{self, Case};

/// The events of each ring of a recording as text, sorted by time stamp. Events of one ring with equal stamps keep
/// their order.
fn sorted(recording: &Recording) -> Vec<String> {
    let mut all = Vec::new();
    for (cpu, ring) in recording.cpus.iter().enumerate() {
        let mut ring: Vec<_> = ring.iter().map(|written| written.event).collect();
        ring.sort_by_key(|event| event.time);
        all.extend(ring.iter().map(|event| format!("{cpu} {event:?}")));
    }
    for ring in [&recording.life, &recording.recorder] {
        let mut ring: Vec<_> = ring.iter().map(|written| written.event.clone()).collect();
        ring.sort_by_key(|event| event.time);
        all.extend(ring.iter().map(|event| format!("{event:?}")));
    }
    all
}

fn written_in_order<E>(ring: &[Written<E>]) -> bool {
    ring.windows(2).all(|pair| pair[0].at <= pair[1].at)
}

fn check_order(recording: &Recording) -> Result<(), TestCaseError> {
    for ring in &recording.cpus {
        prop_assert!(written_in_order(ring));
    }
    prop_assert!(written_in_order(&recording.life));
    prop_assert!(written_in_order(&recording.recorder));
    Ok(())
}

/// Checks that the blocks of each stream together have the events of the stream's ring. Also checks that all events
/// that were written before a watermark (which promises this to the reader) are in blocks before the watermark.
fn check_blocks(recording: &Recording, case: &Case) -> Result<(), TestCaseError> {
    let blocks = recording.blocks(&case.cut);
    let mut cpus = vec![Vec::new(); recording.cpus.len()];
    let (mut life, mut recorder) = (Vec::new(), Vec::new());
    let mut seqs: HashMap<Stream, u32> = HashMap::new();
    for block in &blocks {
        let seq = seqs.entry(block.stream).or_default();
        prop_assert_eq!(block.seq, *seq);
        *seq += 1;
        match (&block.events, block.stream) {
            (Events::Sched(events), Stream::Cpu(cpu)) => {
                prop_assert!(!events.is_empty() && events.len() <= case.cut.largest as usize);
                cpus[usize::from(cpu.0)].extend(events.iter().copied());
            }
            (Events::Life(events), Stream::Lifecycle) => {
                prop_assert!(!events.is_empty() && events.len() <= case.cut.largest as usize);
                life.extend(events.iter().cloned());
            }
            (Events::Life(events), Stream::Recorder) => {
                for event in events {
                    if event.kind == LifeKind::Watermark && case.cut.order == Order::Written {
                        // The blocks so far must have all events that were written before this watermark, an event by
                        // which the recorder says so.
                        for (ring, got) in recording.cpus.iter().zip(&cpus) {
                            let due = ring.partition_point(|written| written.at < event.time.0);
                            prop_assert!(got.len() >= due);
                        }
                        let due = recording
                            .life
                            .partition_point(|written| written.at < event.time.0);
                        prop_assert!(life.len() >= due);
                    }
                }
                recorder.extend(events.iter().cloned());
            }
            _ => prop_assert!(false, "{:?}", block),
        }
    }
    for (ring, got) in recording.cpus.iter().zip(&cpus) {
        prop_assert!(ring.iter().map(|written| &written.event).eq(got));
    }
    prop_assert!(recording
        .life
        .iter()
        .map(|written| &written.event)
        .eq(&life));
    prop_assert!(recording
        .recorder
        .iter()
        .map(|written| &written.event)
        .eq(&recorder));
    Ok(())
}

proptest! {
    #![proptest_config(strategy::cases(150))]

    #[test]
    fn disorder_moves_events_and_nothing_else(case in strategy::lossless(4_000_000)) {
        let (before, _) = Recording::record(&case.config);
        let mut after = before.clone();
        let done = case.plan.apply(&mut after);
        check_order(&after)?;
        prop_assert_eq!(provable(&done), Provable::Exact);
        prop_assert_eq!(sorted(&before), sorted(&after));
        if case.plan == (Plan { seed: case.plan.seed, ..Plan::default() }) {
            prop_assert_eq!(&before, &after);
        }
        check_blocks(&after, &case)?;
    }

    #[test]
    fn losses_are_reported_in_full(case in strategy::lossy(4_000_000)) {
        let (before, _) = Recording::record(&case.config);
        let mut after = before.clone();
        let done = case.plan.apply(&mut after);
        check_order(&after)?;
        let lost: u64 = done.iter().map(|what| match what { Injected::Lost { count, .. } => *count, _ => 0 }).sum();
        let losses = done.iter().filter(|what| matches!(what, Injected::Lost { .. })).count();
        prop_assert_eq!(after.len() + lost as usize, before.len() + losses);
        let mut reported = 0;
        for written in &after.recorder {
            let LifeKind::Lost(lost) = &written.event.kind else { continue };
            reported += 1;
            let (since, until) = (written.event.time, lost.until);
            let inside = |time| time > since && time < until;
            match lost.stream {
                Stream::Cpu(cpu) => {
                    let ring = &after.cpus[usize::from(cpu.0)];
                    prop_assert!(!ring.iter().any(|written| inside(written.event.time)));
                }
                _ => prop_assert!(!after.life.iter().any(|written| inside(written.event.time))),
            }
        }
        prop_assert_eq!(reported, losses);
        check_blocks(&after, &case)?;
    }

    #[test]
    fn a_cut_off_file_has_what_its_progress_promises(case in strategy::cut_off(4_000_000)) {
        let (before, _) = Recording::record(&case.config);
        let mut after = before.clone();
        let done = case.plan.apply(&mut after);
        prop_assert!(after.summary.is_none());
        prop_assert!(provable(&done) == Provable::Bounds);
        if let Some(progress) = after.last_progress() {
            for (was, is) in before.cpus.iter().zip(&after.cpus) {
                let due = was.partition_point(|written| written.at < progress.0);
                prop_assert!(is.len() >= due);
                prop_assert_eq!(&was[..is.len()], &is[..]);
            }
        }
        check_blocks(&after, &case)?;
    }

    #[test]
    fn everything_together_stays_in_order(case in strategy::anything(4_000_000)) {
        let (mut recording, _) = Recording::record(&case.config);
        case.plan.apply(&mut recording);
        check_order(&recording)?;
        check_blocks(&recording, &case)?;
        prop_assert!(!case.draw(50).is_empty());
    }
}

/// Tests that the strategies draw every kind of fault, alone and together with others, up to the ends of their ranges.
#[test]
fn everything_that_can_go_wrong_is_drawn() {
    let seen: RefCell<HashMap<&'static str, u64>> = RefCell::default();
    let mut runner = TestRunner::new(strategy::cases(600));
    let cases = prop_oneof![
        strategy::anything(3_000_000),
        strategy::skewed(200_000, 400_000, true)
    ];
    let result = runner.run(&cases, |case| {
        let (mut recording, truth) = Recording::record(&case.config);
        let mut kinds = HashSet::new();
        let mut ids = HashSet::new();
        for written in &recording.life {
            if matches!(&written.event.kind, LifeKind::Fork(fork) if !ids.insert(fork.tid)) {
                kinds.insert("id given again");
            }
        }
        let done = case.plan.apply(&mut recording);
        let longest = |kinds: &mut HashSet<_>, ns: u64, long: u64, short: &'static str, name| {
            kinds.insert(short);
            if ns > long {
                kinds.insert(name);
            }
        };
        for what in &done {
            match what {
                Injected::Skewed { offset, .. } => {
                    let most = offset.0.unsigned_abs();
                    assert!((50_000..=100_000_000).contains(&most));
                    longest(&mut kinds, most, 50_000_000, "skew", "skew over 50 ms");
                    if offset.0 != offset.1 {
                        kinds.insert("drift");
                    }
                    kinds.insert(if offset.0 < 0 { "behind" } else { "ahead" });
                }
                Injected::Late { longest: ns, .. } => {
                    longest(&mut kinds, *ns, 5_000_000_000, "late", "late over 5 s");
                }
                Injected::Inverted { .. } => {
                    kinds.insert("inverted");
                }
                Injected::Lost { stream, cause, .. } => {
                    kinds.insert(match stream {
                        Stream::Cpu(_) => "lost of a CPU",
                        _ => "lost lives",
                    });
                    kinds.insert(match cause {
                        LossCause::Recursion => "lost by recursion",
                        _ => "lost by a full ring",
                    });
                }
                Injected::CutOff { .. } => {
                    kinds.insert("cut off");
                }
                Injected::Hidden { .. } => {
                    kinds.insert("hidden");
                }
                Injected::Duplicated(_) => {
                    kinds.insert("duplicated");
                }
                Injected::Missing(_) => {
                    kinds.insert("missing");
                }
            }
        }
        if kinds.len() >= 8 {
            kinds.insert("many at once");
        }
        if truth.tasks.iter().any(|task| task.started_before) {
            kinds.insert("there before");
        }
        if case.config.cpus > 128 {
            kinds.insert("over 128 CPUs");
        }
        if case.config.cpus == 1 {
            kinds.insert("one CPU");
        }
        let stamps = recording.cpus.iter().enumerate();
        let stamps = stamps.flat_map(|(cpu, ring)| ring.iter().map(move |e| (e.event.time, cpu)));
        let mut stamps: Vec<_> = stamps.collect();
        stamps.sort_unstable();
        if stamps
            .windows(2)
            .any(|pair| pair[0].0 == pair[1].0 && pair[0].1 != pair[1].1)
        {
            kinds.insert("equal stamps");
        }
        for kind in kinds {
            *seen.borrow_mut().entry(kind).or_default() += 1;
        }
        Ok(())
    });
    result.unwrap();
    let seen = seen.into_inner();
    for what in [
        "skew",
        "skew over 50 ms",
        "drift",
        "behind",
        "ahead",
        "late",
        "late over 5 s",
        "inverted",
        "lost of a CPU",
        "lost lives",
        "lost by recursion",
        "lost by a full ring",
        "cut off",
        "duplicated",
        "missing",
        "hidden",
        "many at once",
        "there before",
        "over 128 CPUs",
        "one CPU",
        "equal stamps",
        "id given again",
    ] {
        assert!(
            seen.get(what).copied().unwrap_or(0) >= 3,
            "{what}: {seen:?}"
        );
    }
}
