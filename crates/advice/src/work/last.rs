//! Does the longest job of a program that runs several at once start last? If so, another order of the jobs saves time.

use tr_analyze::programs::Group;
use tr_format::event::Ktime;
use tr_programs::changes;
use tr_programs::tools::{Family, Role};

use crate::facts::{BuildFacts, Execution};

/// The late start of a job that takes longest of all jobs of a program, and that ends last.
pub(super) struct LateStart {
    /// The time in nanoseconds from the start of the first job to the start of the longest one.
    pub after: u64,
    /// The most time in nanoseconds that another order of the jobs saves.
    pub gain: u64,
}

/// The late start of an execution, if this execution is the longest of some jobs and ends last. `is_job` selects the
/// jobs among all executions. In any order the jobs take at least the time of the longest one, and at least their CPU
/// time divided by the number of CPUs.
pub(super) fn starts_last(
    facts: &BuildFacts<'_>,
    group: Group,
    is_job: impl Fn(&Execution) -> bool,
) -> Option<LateStart> {
    let own = facts.execution(group)?;
    let others = facts
        .all()
        .filter(|(other, execution)| *other != group && is_job(execution));
    let others: Vec<(Group, &Execution)> = others.collect();
    let length = |execution: &Execution| execution.end.since(execution.start);
    let first = others.iter().map(|(_, execution)| execution.start).min()?;
    let longest = others
        .iter()
        .map(|(_, execution)| length(execution))
        .max()?;
    let last = others.iter().map(|(_, execution)| execution.end).max()?;
    if others.len() < 2 || length(own) < longest || own.end < last || own.start <= first {
        return None;
    }
    let all = others
        .iter()
        .map(|(_, execution)| execution.on_cpu)
        .chain([own.on_cpu]);
    let work: u64 = all.fold(0, u64::saturating_add);
    let least = (work / facts.cpus).max(length(own));
    Some(LateStart {
        after: own.start.since(first),
        gain: own.end.since(first).saturating_sub(least),
    })
}

/// Like [`starts_last`], for a job of a program that runs several jobs at once and is neither a shell nor a tool that
/// starts a job when its inputs are ready. The job must not be a step that has to come after all others. The proof is
/// that another job still ran when the job started, and that most of the other jobs also started while another job ran.
/// A test needs no other test, so of a test runner's jobs it is enough that most ran beside another one.
pub(super) fn starts_last_of_pool(
    facts: &BuildFacts<'_>,
    group: Group,
    own: &Execution,
) -> Option<LateStart> {
    let owner = own.owner?;
    // Tools such as xargs run independent jobs, unlike other build tools.
    let takes_any = || {
        let known = changes::known(&facts.execution(owner)?.program)?;
        Some(known.takes_jobs() && known.family == Family::Other)
    };
    let role = facts.role(owner);
    let is_pool = match role {
        None | Some(Role::Tests) => !facts.is_shell(owner),
        Some(Role::Jobs) => takes_any() == Some(true),
        _ => false,
    };
    if !is_pool {
        return None;
    }
    let file = facts.file(group);
    let jobs = facts
        .all()
        .filter(|(other, job)| job.owner == Some(owner) && facts.file(*other) == file);
    let mut jobs: Vec<(Ktime, Ktime)> = jobs.map(|(_, job)| (job.start, job.end)).collect();
    jobs.sort_unstable();
    let is_pool = if role == Some(Role::Tests) {
        overlapping(&jobs) * 2 > jobs.len()
    } else {
        let is_beside = jobs
            .iter()
            .any(|(from, to)| *from < own.start && own.start < *to);
        is_beside && started_beside(&jobs).filter(|beside| *beside).count() * 2 > jobs.len()
    };
    let is_job = |job: &Execution| job.owner == Some(owner);
    starts_last(facts, group, is_job).filter(|_| is_pool && !file.is_empty())
}

/// For each job, given by its start and its end in the order of the starts, whether it started while another one ran.
fn started_beside(jobs: &[(Ktime, Ktime)]) -> impl Iterator<Item = bool> + '_ {
    let mut until = Ktime(0);
    jobs.iter().map(move |(start, end)| {
        let beside = *start < until;
        until = until.max(*end);
        beside
    })
}

/// The number of jobs that ran at the same time as another one. The jobs are given as for [`started_beside`].
fn overlapping(jobs: &[(Ktime, Ktime)]) -> usize {
    let next = jobs.iter().skip(1).map(|(start, _)| Some(*start));
    let next = next.chain([None]);
    let all = jobs.iter().zip(started_beside(jobs)).zip(next);
    let overlaps =
        all.filter(|(((_, end), beside), next)| *beside || next.is_some_and(|next| next < *end));
    overlaps.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_ran_at_the_same_time_overlap() {
        let jobs = |times: &[(u64, u64)]| -> Vec<(Ktime, Ktime)> {
            let jobs = times.iter().map(|(from, to)| (Ktime(*from), Ktime(*to)));
            jobs.collect()
        };
        // Two workers take the next two jobs at the same moment, and then the last job alone.
        let pairs = jobs(&[(0, 10), (1, 10), (10, 20), (11, 20), (20, 60)]);
        assert_eq!(overlapping(&pairs), 4);
        assert_eq!(started_beside(&pairs).filter(|beside| *beside).count(), 2);
        let serial = jobs(&[(0, 10), (10, 20), (20, 60)]);
        assert_eq!(overlapping(&serial), 0);
        assert_eq!(overlapping(&[]), 0);
    }
}
