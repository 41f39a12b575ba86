//! Collects the changes of a build that the rules of advice propose.

use std::cmp::Reverse;

use tr_analyze::schedule::MOST_CHANGES;

use crate::candidate::Candidate;
use crate::facts::BuildFacts;
use crate::jobs::{runners, BuildJobs};
use crate::simulation::OTHER_CHANGES;
use crate::sleeps::known::KnownSleeps;
use crate::{caches, fetches, machine, sleeps, waits, work, wrappers};

/// The changes of a build that the rules of advice propose, with what else the rules found.
pub(super) struct Proposals<'f> {
    /// The proposed changes that can save most by themselves, in descending order. The list has at most as many changes
    /// as a simulation can compare.
    pub candidates: Vec<Candidate>,
    pub jobs: BuildJobs<'f>,
    pub sleeps: KnownSleeps,
}

impl<'f> Proposals<'f> {
    pub fn of(facts: &'f BuildFacts<'_>) -> Proposals<'f> {
        let jobs = BuildJobs::of(facts);
        let mut candidates = work::candidates(facts);
        candidates.extend(sleeps::candidates(facts));
        candidates.extend(fetches::candidates(facts));
        candidates.extend(waits::candidates(facts));
        candidates.extend(jobs.candidates(facts));
        candidates.extend(runners::candidates(facts));
        candidates.extend(machine::candidates(facts));
        candidates.extend(wrappers::candidates(facts));
        candidates.extend(caches::candidates(facts));
        candidates.retain(|candidate| candidate.cap > 0);
        let sleeps = KnownSleeps::of(facts, &candidates);
        candidates.sort_by_key(|candidate| (Reverse(candidate.cap), candidate.kind));
        candidates.truncate(MOST_CHANGES - OTHER_CHANGES);
        Proposals {
            candidates,
            jobs,
            sleeps,
        }
    }
}
