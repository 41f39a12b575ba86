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

/// The items with the largest keys, in descending order, but no more than a simulation can compare. A proposed change
/// needs memory for each execution of a program, so a rule limits their number before it makes them: a forged file may
/// have thousands of programs for which it would propose one.
pub(crate) fn largest<T, K: Ord>(
    items: impl IntoIterator<Item = T>,
    key: impl FnMut(&T) -> K,
) -> Vec<T> {
    let mut all: Vec<T> = items.into_iter().collect();
    let mut key = key;
    all.sort_by_cached_key(|item| Reverse(key(item)));
    all.truncate(MOST_CHANGES);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_proposes_no_more_changes_than_a_simulation_compares() {
        assert_eq!(largest([3, 9, 4], |item| *item), [9, 4, 3]);
        let all = largest(0..MOST_CHANGES * 3, |item| *item);
        assert_eq!(all.len(), MOST_CHANGES);
        assert_eq!(all.first(), Some(&(MOST_CHANGES * 3 - 1)));
    }
}
