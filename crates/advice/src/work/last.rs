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

/// Like [`starts_last`], for a job of a program that runs several jobs at once and is neither a shell nor a build tool.
/// The job must not be a step that has to come after all others. The proof is that another job still ran when the job
/// started, and that most of the other jobs also started while another job ran.
pub(super) fn starts_last_of_pool(
    facts: &BuildFacts<'_>,
    group: Group,
    own: &Execution,
) -> Option<LateStart> {
    let owner = own.owner?;
    // Tools such as xargs run independent jobs, while other build tools start a job when its inputs are ready.
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
    let jobs: Vec<_> = jobs.map(|(_, job)| (job.start, job.end)).collect();
    let is_beside = |start: Ktime| jobs.iter().any(|(from, to)| *from < start && start < *to);
    let beside = jobs.iter().filter(|(start, _)| is_beside(*start)).count();
    let is_pool = is_beside(own.start) && beside * 2 > jobs.len();
    let is_job = |job: &Execution| job.owner == Some(owner);
    starts_last(facts, group, is_job).filter(|_| is_pool && !file.is_empty())
}
