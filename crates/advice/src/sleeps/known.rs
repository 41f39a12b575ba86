//! Collects what the proposed changes say about the sleeps on the critical path of a build.

use crate::candidate::{AdviceKind, Candidate, MOST};
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
}

impl KnownSleeps {
    pub fn of(facts: &BuildFacts<'_>, candidates: &[Candidate]) -> KnownSleeps {
        let polled = polled(facts, candidates);
        // Two proposed changes can leave out the same sleeps, but the time of these sleeps counts once.
        let superfluous = candidates.iter().filter(|candidate| !candidate.extends);
        let superfluous = superfluous.map(|candidate| candidate.superfluous);
        KnownSleeps {
            awaited: awaited(facts, candidates, &polled),
            polled,
            superfluous: superfluous.fold(Superfluous::default(), Superfluous::plus),
        }
    }

    /// The time in nanoseconds in which tasks of the build wanted a CPU and none of them had one, during sleeps in
    /// loops for which it is not known what work the loops wait for.
    pub fn starved_meanwhile(&self, facts: &BuildFacts<'_>) -> u64 {
        let in_loops = sleeps::collect::in_loops(facts);
        let in_loops = in_loops.iter().zip(&self.awaited);
        let unknown: Vec<bool> = in_loops
            .map(|(in_loop, is_awaited)| *in_loop && !is_awaited)
            .collect();
        machine::starved_meanwhile(facts, &unknown)
    }
}

/// For each segment of the critical path, whether it is a sleep in a loop that sleeps and checks for the end of other
/// work. The loops of build tools count, too.
fn polled(facts: &BuildFacts<'_>, candidates: &[Candidate]) -> Vec<bool> {
    let mut polled = sleeps::collect::of_tools(facts);
    let polls = candidates
        .iter()
        .filter(|candidate| candidate.kind == AdviceKind::Poll);
    for poll in polls.take(MOST) {
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
    for candidate in lasted.take(MOST) {
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
