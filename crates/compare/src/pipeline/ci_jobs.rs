//! What the CI system tells of its jobs: their times by its own clock, those that were not recorded,
//! the waits for a runner, and who needs whom.

use std::collections::BTreeMap;

use tr_analyze::model::Analysis;

use super::{Graph, Job};
use tr_insight::ci::Ci;
use tr_text::escape;

/// A job as the CI system reports it; times in ns since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CiJob {
    /// The name as the CI system has it, not escaped.
    pub name: String,
    /// The names of the jobs that this job needs, if the CI system reports them.
    pub needs: Option<Vec<String>>,
    /// The start of the job on a runner.
    pub started: u64,
    pub ended: u64,
    /// The job's wait for a runner before its start, in ns.
    pub queued: u64,
    /// Whether the job failed.
    pub failed: bool,
    /// The runner's name, not escaped.
    pub runner: Option<String>,
}

/// The most by which a runner's clock and the CI system's may differ if a recording still counts as part of its
/// job, in ns.
const SLACK: u64 = 5_000_000_000;
/// The resolution of the CI systems' times, in ns: whole seconds.
const SECOND: u64 = 1_000_000_000;

/// Whether a recording lies between two times of the CI system.
fn lies_in(job: &Job, started: u64, ended: u64) -> bool {
    job.start.saturating_add(SLACK) >= started && job.end <= ended.saturating_add(SLACK)
}

impl Job {
    /// Adds a further recording of the same job.
    fn add(&mut self, other: Job) {
        self.steps.extend(other.steps);
        self.steps.sort_by_key(|step| std::cmp::Reverse(step.ns));
        self.failed |= other.failed;
        self.set = self.set.max(other.set);
        self.recorded = match (self.recorded, other.recorded) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
    }
}

impl CiJob {
    /// Whether the recording lies within the job's times.
    fn holds(&self, job: &Job) -> bool {
        lies_in(job, self.started, self.ended)
    }

    /// Whether the CI system shows this name for the job: it shows `build (ubuntu)` or `ci / build` for `build`.
    fn is_called(&self, name: &str) -> bool {
        let inner = self.name.rsplit(" / ").next().unwrap_or_default();
        let plain = inner.split(" (").next().unwrap_or_default();
        [self.name.as_str(), inner, plain]
            .iter()
            .any(|part| part.trim().eq_ignore_ascii_case(name))
    }
}

/// Gives each recording the times of its job, adds the jobs that were not recorded, and returns the graph of
/// needs if the CI system reports it. A recording belongs to the job with its name, or else to the only job in whose
/// time it lies. A second recording in a job is added to the first.
pub(super) fn place(recordings: Vec<Job>, ci_jobs: &[CiJob]) -> (Vec<Job>, Option<Graph>) {
    let mut left: Vec<&CiJob> = ci_jobs.iter().collect();
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    let mut jobs: Vec<Job> = Vec::with_capacity(recordings.len());
    for mut job in recordings {
        let named = ci_jobs.iter().any(|one| one.is_called(&job.name));
        let fits = |one: &&CiJob| !named || one.is_called(&job.name);
        let fits: Vec<&CiJob> = left.iter().copied().filter(fits).collect();
        let found = find(&fits, &job).and_then(|at| fits.get(at).copied());
        let Some(one) = found else {
            let mut placed = jobs
                .iter_mut()
                .filter(|candidate| named && candidate.apart > 0);
            match placed.find(|candidate| {
                candidate.name == job.name && lies_in(&job, candidate.start, candidate.end)
            }) {
                Some(first) => first.add(job),
                None => jobs.push(job),
            }
            continue;
        };
        left.retain(|other| !std::ptr::eq(*other, one));
        names.insert(&one.name, job.name.clone());
        job.apart = one
            .started
            .saturating_sub(job.start)
            .max(job.end.saturating_sub(one.ended))
            .max(SECOND);
        (job.start, job.end) = (one.started, one.ended);
        job.queued = one.queued;
        job.failed |= one.failed;
        jobs.push(job);
    }
    for one in left {
        let name = escape::text(one.name.as_bytes());
        names.insert(&one.name, name.clone());
        jobs.push(Job {
            name,
            start: one.started,
            end: one.ended,
            queued: one.queued,
            failed: one.failed,
            apart: SECOND,
            ..Job::default()
        });
    }
    let known = ci_jobs.iter().any(|job| job.needs.is_some());
    let graph = ci_jobs.iter().filter_map(|one| {
        let needs = one.needs.iter().flatten();
        let needs = needs.map(|need| names.get(need.as_str()).unwrap_or(need).clone());
        Some((names.get(one.name.as_str())?.clone(), needs.collect()))
    });
    let graph = graph.collect();
    (jobs, known.then_some(graph))
}

/// The job of a recording, and its name if it is the leg of a matrix.
pub fn of<'a>(ci_jobs: &'a [CiJob], analysis: &Analysis) -> Option<(&'a CiJob, Option<&'a str>)> {
    let ci = Ci::new(&analysis.meta);
    let name = ci.get("job").unwrap_or_default();
    let start = analysis.meta.start_unix()?;
    let job = Job {
        name: name.to_owned(),
        start,
        end: start.saturating_add(analysis.wall()),
        ..Job::default()
    };
    // Legs of a matrix have one name and one time; a runner has one job at a time.
    let runner = ci.get("runner");
    let there = ci_jobs.iter().filter(|other| {
        other.runner.is_some() && other.runner.as_deref() == runner && other.holds(&job)
    });
    let there: Vec<&CiJob> = there.collect();
    let all: Vec<&CiJob> = ci_jobs.iter().collect();
    let one = match there.as_slice() {
        [one] => *one,
        _ => all.get(find(&all, &job)?)?,
    };
    let is_leg = one.name.contains(" (") && one.is_called(name);
    Some((one, is_leg.then_some(one.name.as_str())))
}

/// The job that a recording is of.
fn find(ci_jobs: &[&CiJob], job: &Job) -> Option<usize> {
    let only = |fits: &dyn Fn(&CiJob) -> bool| {
        let mut all = ci_jobs.iter().enumerate().filter(|(_, one)| fits(one));
        let first = all.next().map(|(at, _)| at);
        first.filter(|_| all.next().is_none())
    };
    only(&|one| one.name == job.name)
        .or_else(|| only(&|one| one.is_called(&job.name) && one.holds(job)))
        .or_else(|| only(&|one| one.is_called(&job.name)))
        .or_else(|| only(&|one| one.holds(job)))
}
