//! Finds programs that look again and again whether the jobs that they started have ended.

use std::collections::BTreeSet;

use tr_analyze::model::ProcessIx;
use tr_analyze::programs::Group;
use tr_analyze::schedule::Jobs;
use tr_analyze::timeline::{Bucket, Wait};

use crate::candidate::{AdviceKind, Candidate};
use crate::facts::BuildFacts;

/// The largest number of entries in a thread's timeline that are searched for sleeps. This bounds the work.
const MOST_ENTRIES: usize = 100_000;
/// If a program looks at least this many times during one job whether the job has ended, the program's sleeps in
/// between get no advice of their own. A guess: with fewer sleeps, each sleep takes a tenth of the job's length or
/// more, so the program may notice the end of the job that much too late.
const LEAST_LOOKS: usize = 10;

/// Among the programs whose jobs the proposed changes run at once, those that look again and again whether their jobs
/// have ended.
#[derive(Default)]
pub(crate) struct Checkers {
    processes: BTreeSet<ProcessIx>,
}

impl Checkers {
    /// Adds the programs that started the jobs of a proposed change, if one of these programs looks again and again
    /// whether its jobs have ended. Returns whether the programs were added.
    pub fn add(&mut self, facts: &BuildFacts<'_>, candidate: &Candidate) -> bool {
        let checks = checks_for_jobs(facts, candidate);
        if checks {
            let owners = candidate.jobs.iter().map(|jobs| jobs.owner);
            self.processes.extend(owners);
        }
        checks
    }

    /// Whether a proposed change is about the sleeps of one of the programs in `self`, which look again and again
    /// whether their jobs have ended. The sleeps end when the program's jobs end, so removing the sleeps is no change
    /// of its own.
    pub fn sleep_in(&self, facts: &BuildFacts<'_>, candidate: &Candidate) -> bool {
        let is_checker = |group: &Group| {
            let execution = facts.execution(*group);
            execution.is_some_and(|execution| self.processes.contains(&execution.process))
        };
        candidate.kind == AdviceKind::Sleep && candidate.evidence.iter().any(is_checker)
    }
}

/// Whether the program that started the jobs of a proposed change looks again and again whether a job has ended. The
/// proof is that, from the start of the first job to the start of the last one, its main thread sleeps often
/// ([`LEAST_LOOKS`]), and that its sleeps and its waits for a CPU together take more than half of this time.
fn checks_for_jobs(facts: &BuildFacts<'_>, candidate: &Candidate) -> bool {
    let checks = |jobs: &Jobs| {
        let owner = facts.analysis.process(jobs.owner);
        let (Some(thread), Some(timeline)) = (owner.threads.first(), &facts.analysis.timeline)
        else {
            return false;
        };
        let parts = timeline.since(*thread, jobs.from).take(MOST_ENTRIES);
        let (mut waits, mut sleeps) = (0u64, 0usize);
        for part in parts.take_while(|part| part.from < jobs.to) {
            let is_sleep = part.doing == Bucket::Wait(Wait::Sleep)
                && facts.analysis.wait_end(*thread, &part).is_timer();
            sleeps += usize::from(is_sleep);
            if is_sleep || matches!(part.doing, Bucket::RunQueue { .. }) {
                waits = waits.saturating_add(part.length());
            }
        }
        // The time from the start of the first job to the start of the last job is the time of all jobs but one.
        let earlier = candidate.evidence.len().saturating_sub(1);
        sleeps >= LEAST_LOOKS * earlier.max(1) && waits.saturating_mul(2) > jobs.to.since(jobs.from)
    };
    candidate.jobs.iter().any(checks)
}
