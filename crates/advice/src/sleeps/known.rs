//! Collects what the proposed changes say about the sleeps on the critical path of a build.

use std::collections::BTreeMap;

use tr_analyze::critical_path::Segment;
use tr_analyze::model::{ProcessIx, ThreadIx};

use crate::candidate::{AdviceKind, Candidate, MOST_LINES};
use crate::facts::BuildFacts;
use crate::machine;
use crate::sleeps;
use crate::sleeps::nap::Superfluous;

/// The sleeps on the critical path for which it is known what the program waits for.
pub(crate) struct KnownSleeps {
    /// For each segment of the path, whether it is a sleep in a loop that sleeps and checks for the end of other work.
    pub polled: Vec<bool>,
    /// For each segment of the path, whether the segment is a sleep for which it is known what work the program waits
    /// for.
    awaited: Vec<bool>,
    /// The time by which the sleeps are longer than they would be on free CPUs.
    pub superfluous: Superfluous,
    /// The time in nanoseconds by which the sleeps may be longer on free CPUs than in the recording, or than the time
    /// that counts as the build's own.
    longer: u64,
}

impl KnownSleeps {
    pub fn of(facts: &BuildFacts<'_>, candidates: &[Candidate]) -> KnownSleeps {
        let mut polled = polled(facts, candidates);
        // A thread that sleeps beside working threads of its process looks after them, so it sleeps less if they wait
        // less for a CPU. If it sleeps only a few times, the process may also work for a time that it measures by the
        // clock.
        let mut beside = sleeps::collect::beside_work(facts);
        for (polled, beside) in polled.iter_mut().zip(&mut beside) {
            *beside &= !*polled;
            *polled |= *beside;
        }
        leave_out_loops(facts, &mut beside);
        let perhaps_measured = machine::starved_meanwhile(facts, &beside);
        // Two proposed changes can leave out the same sleeps, but the time of these sleeps counts once.
        let own = || candidates.iter().filter(|candidate| !candidate.extends);
        let superfluous = own().map(|candidate| candidate.superfluous);
        let longer = own().map(|candidate| candidate.longer);
        KnownSleeps {
            awaited: awaited(facts, candidates, &polled),
            polled,
            superfluous: superfluous.fold(Superfluous::default(), Superfluous::plus),
            longer: longer.fold(perhaps_measured, u64::saturating_add),
        }
    }

    /// The time in nanoseconds that may belong to the build's own time on free CPUs: the sleeps for which it is not
    /// proven that they are shorter there, and the time by which sleeps may be longer.
    pub fn unsure(&self) -> u64 {
        self.superfluous.guessed.saturating_add(self.longer)
    }

    /// The starved time during the sleeps in loops for which it is not known what work the loops wait for.
    pub fn starved_meanwhile(&self, facts: &BuildFacts<'_>) -> Starved {
        let in_loops = sleeps::collect::in_loops(facts);
        let segments = facts.path.segments.iter().zip(&self.awaited);
        let unknown = segments
            .zip(in_loops)
            .filter(|((_, awaited), _)| !**awaited);
        let mut by_process: BTreeMap<ProcessIx, Vec<&Segment>> = BTreeMap::new();
        for ((segment, _), process) in unknown {
            if let Some(process) = process {
                by_process.entry(process).or_default().push(segment);
            }
        }
        let mut starved = Starved { ns: 0, sleeps: 0 };
        for sleeps in by_process.values() {
            let own = starved_during(facts, sleeps);
            starved.ns = starved.ns.saturating_add(own.ns);
            starved.sleeps = starved.sleeps.saturating_add(own.sleeps);
        }
        starved
    }
}

/// The least number of sleeps of a thread that looks after the other threads of its process, as a runtime's thread
/// does. A guess: a program that works for a time on the clock sleeps fewer times meanwhile.
const LEAST_LOOKS: usize = 10;

/// Removes the marks of the segments of threads that have at least [`LEAST_LOOKS`] marked segments.
fn leave_out_loops(facts: &BuildFacts<'_>, marks: &mut [bool]) {
    let segments = || facts.path.segments.iter();
    let mut counts: BTreeMap<ThreadIx, usize> = BTreeMap::new();
    for (segment, _) in segments().zip(marks.iter()).filter(|(_, mark)| **mark) {
        *counts.entry(segment.thread).or_default() += 1;
    }
    for (mark, segment) in marks.iter_mut().zip(segments()) {
        *mark &= counts
            .get(&segment.thread)
            .is_some_and(|count| *count < LEAST_LOOKS);
    }
}

/// The time in which tasks of the build wanted a CPU and none of them had one, during sleeps in loops that may check
/// for the end of these tasks' work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Starved {
    /// The time in nanoseconds.
    pub ns: u64,
    /// The time in nanoseconds by which the sleeps may be shorter if no task had waited: at least `ns`, and more if the
    /// loops then need fewer sleeps, because a loop ends only with one of its sleeps.
    pub sleeps: u64,
}

/// The starved time during the sleeps of one process, which are sorted by time.
fn starved_during(facts: &BuildFacts<'_>, sleeps: &[&Segment]) -> Starved {
    let starved = sleeps
        .iter()
        .map(|sleep| machine::starved_within(facts, sleep.from, sleep.to));
    let ns = starved.fold(0, u64::saturating_add);
    // The last sleep began because the awaited work had not ended yet. Without the starved time, the work would have
    // ended after `soonest`.
    let soonest = sleeps
        .last()
        .map_or(0, |last| last.from.0.saturating_sub(ns));
    let needless = sleeps.iter().filter(|sleep| sleep.from.0 > soonest);
    let needless = needless.map(|sleep| sleep.length());
    Starved {
        ns,
        sleeps: needless.fold(0, u64::saturating_add).max(ns),
    }
}

/// For each segment of the critical path, whether it is a sleep in a loop that sleeps and checks for the end of other
/// work. The loops of build tools count, too.
fn polled(facts: &BuildFacts<'_>, candidates: &[Candidate]) -> Vec<bool> {
    let mut polled = sleeps::collect::of_tools(facts);
    let polls = candidates
        .iter()
        .filter(|candidate| candidate.kind == AdviceKind::Poll);
    for poll in polls.take(MOST_LINES) {
        mark(&mut polled, facts, poll);
    }
    polled
}

/// For each segment of the critical path, whether the segment is a sleep for which it is known what work the program
/// waits for.
fn awaited(facts: &BuildFacts<'_>, candidates: &[Candidate], polled: &[bool]) -> Vec<bool> {
    let mut awaited = polled.to_vec();
    let lasted = candidates
        .iter()
        .filter(|candidate| candidate.superfluous.ns > 0);
    for candidate in lasted.take(MOST_LINES) {
        mark(&mut awaited, facts, candidate);
    }
    awaited
}

/// Marks the segments of the critical path that a proposed change affects.
fn mark(marks: &mut [bool], facts: &BuildFacts<'_>, candidate: &Candidate) {
    for (mark, is_affected) in marks.iter_mut().zip(facts.covers(&candidate.without)) {
        *mark |= is_affected;
    }
}
