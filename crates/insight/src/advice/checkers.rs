//! Finds programs that look again and again whether the jobs that they started have ended.

use std::collections::BTreeSet;

use tr_analyze::model::ProcessIx;
use tr_analyze::programs::Group;
use tr_analyze::schedule::Jobs;
use tr_analyze::timeline::{Bucket, Wait};

use super::candidate::{AdviceKind, Candidate};
use super::facts::BuildFacts;

/// The largest number of entries in a thread's timeline that are searched for sleeps. This bounds the work.
const PARTS: usize = 100_000;
/// How many times a program looks during one job whether it has ended, if its sleeps in between are no change of their
/// own. A guess: of fewer sleeps, the last one is a tenth of the job's length or more.
const OFTEN: usize = 10;

/// The programs that look again and again whether their jobs have ended, among those whose jobs proposed changes run at
/// once.
#[derive(Default)]
pub(super) struct Checkers {
    processes: BTreeSet<ProcessIx>,
}

impl Checkers {
    /// Adds the programs that started the jobs of a proposed change, if one of them looks whether its jobs have ended.
    /// Returns whether this is so.
    pub fn add(&mut self, facts: &BuildFacts<'_>, candidate: &Candidate) -> bool {
        let checks = checks_for_jobs(facts, candidate);
        if checks {
            let owners = candidate.jobs.iter().map(|jobs| jobs.owner);
            self.processes.extend(owners);
        }
        checks
    }

    /// Whether a proposed change is about the sleeps of such a program. These sleeps end when the jobs do, so they are
    /// no change of their own.
    pub fn sleep_in(&self, facts: &BuildFacts<'_>, candidate: &Candidate) -> bool {
        let is_checker = |group: &Group| {
            let execution = facts.execution(*group);
            execution.is_some_and(|execution| self.processes.contains(&execution.process))
        };
        candidate.kind == AdviceKind::Sleep && candidate.evidence.iter().any(is_checker)
    }
}

/// Whether the program that started the jobs of a proposed change looks again and again whether a job has ended: while
/// the jobs run, it sleeps for most of the time, or waits for a CPU between its sleeps.
fn checks_for_jobs(facts: &BuildFacts<'_>, candidate: &Candidate) -> bool {
    let checks = |jobs: &Jobs| {
        let owner = facts.analysis.process(jobs.owner);
        let (Some(thread), Some(timeline)) = (owner.threads.first(), &facts.analysis.timeline)
        else {
            return false;
        };
        let parts = timeline.since(*thread, jobs.from).take(PARTS);
        let (mut waits, mut sleeps) = (0u64, 0usize);
        for part in parts.take_while(|part| part.from < jobs.to) {
            let is_sleep = part.doing == Bucket::Wait(Wait::Sleep)
                && facts.analysis.wait_end(*thread, &part).is_timer();
            sleeps += usize::from(is_sleep);
            if is_sleep || matches!(part.doing, Bucket::RunQueue { .. }) {
                waits = waits.saturating_add(part.length());
            }
        }
        // The time from the start of the first job to that of the last one is the time of all jobs but one.
        let earlier = candidate.evidence.len().saturating_sub(1);
        sleeps >= OFTEN * earlier.max(1) && waits.saturating_mul(2) > jobs.to.since(jobs.from)
    };
    candidate.jobs.iter().any(checks)
}
