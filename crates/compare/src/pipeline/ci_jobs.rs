//! Adds the facts that a CI system reports about its jobs: their times by its own clock, jobs that were not
//! recorded, the waits for a runner, and which job needs which.

use std::collections::BTreeMap;

use tr_insight::recordings::ci_jobs::{find, CiJob, RecordedJob};
use tr_text::escape;

use super::{Graph, Job};

/// The resolution in ns of the times that CI systems report: whole seconds.
const SECOND: u64 = 1_000_000_000;

impl Job {
    fn recorded(&self) -> RecordedJob<'_> {
        RecordedJob {
            name: &self.name,
            start: self.start,
            end: self.end,
        }
    }

    /// Merges another recording of this CI job into this one.
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

/// Gives each recorded job the times that the CI system reports, and adds jobs that were not recorded. A recording
/// belongs to the CI job with its name, or, if no job has this name, to the only job during which it was made. A
/// second recording in a job is added to the first. Also returns the graph of jobs, if the CI system reports which job
/// needs which.
pub(super) fn place(recordings: Vec<Job>, ci_jobs: &[CiJob]) -> (Vec<Job>, Option<Graph>) {
    let mut left: Vec<&CiJob> = ci_jobs.iter().collect();
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    let mut jobs: Vec<Job> = Vec::with_capacity(recordings.len());
    for mut job in recordings {
        let named = ci_jobs.iter().any(|one| one.is_called(&job.name));
        let fits = |one: &&CiJob| !named || one.is_called(&job.name);
        let fits: Vec<&CiJob> = left.iter().copied().filter(fits).collect();
        let found = find(&fits, &job.recorded()).and_then(|at| fits.get(at).copied());
        let Some(one) = found else {
            let mut placed = jobs
                .iter_mut()
                .filter(|candidate| named && candidate.apart > 0);
            match placed.find(|candidate| {
                candidate.name == job.name && job.recorded().lies_in(candidate.start, candidate.end)
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
        let name = escape::raw(one.name.as_bytes());
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
