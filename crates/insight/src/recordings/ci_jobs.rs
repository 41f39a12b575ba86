//! Finds the job of a CI run in which a recording was made, among the jobs that the CI system reports.

use tr_analyze::model::Analysis;

use crate::recordings::ci::Ci;

/// The largest number of jobs of a CI run that are read.
pub const MOST_JOBS: usize = 1_000;

/// A job of a CI run as the CI system reports it. The times are in ns since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CiJob {
    /// The name of the CI job as the CI system has it.
    pub name: String,
    /// The names of the CI jobs that this job needs, if the CI system reports them.
    pub needs: Option<Vec<String>>,
    /// The time at which the CI job started on a runner, in ns since 1970.
    pub started: u64,
    pub ended: u64,
    /// The time for which the CI job waited for a runner before its start, in ns.
    pub queued: u64,
    /// Whether the CI job failed.
    pub failed: bool,
    /// The name of the machine (runner) that ran the CI job.
    pub runner: Option<String>,
}

/// A recording may lie outside of the times of its CI job by this much, in ns, because the clocks of the runner and of
/// the CI system differ. A guess: the CI system reports whole seconds, and network time may not have adjusted the
/// clocks yet.
const SLACK: u64 = 5_000_000_000;

/// A recording for which the CI job is searched. The times are in nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub struct RecordedJob<'a> {
    /// The name of the CI job, as the environment of the recorded command has it.
    pub name: &'a str,
    pub start: u64,
    pub end: u64,
}

impl RecordedJob<'_> {
    /// Whether the recording lies between two times that the CI system reports, in ns since 1970. `SLACK` is tolerated
    /// at both ends.
    pub fn lies_in(&self, started: u64, ended: u64) -> bool {
        self.start.saturating_add(SLACK) >= started && self.end <= ended.saturating_add(SLACK)
    }
}

impl CiJob {
    /// Whether the times of a recording lie within the times of this CI job.
    fn holds(&self, job: &RecordedJob<'_>) -> bool {
        job.lies_in(self.started, self.ended)
    }

    /// Whether this job is the one that the CI configuration calls `name`. For a job `build`, the CI system may report
    /// the name `build (ubuntu)` or `ci / build`.
    pub fn is_called(&self, name: &str) -> bool {
        let inner = self.name.rsplit(" / ").next().unwrap_or_default();
        let plain = inner.split_once(" (").map_or(inner, |(plain, _)| plain);
        [self.name.as_str(), inner, plain]
            .iter()
            .any(|part| part.trim().eq_ignore_ascii_case(name))
    }
}

/// The CI job in which a recording was made, and the job's full name if the job belongs to a matrix (one job definition
/// that runs several times).
pub fn of<'a>(ci_jobs: &'a [CiJob], analysis: &Analysis) -> Option<(&'a CiJob, Option<&'a str>)> {
    let ci = Ci::new(&analysis.meta);
    let name = ci.get("job").unwrap_or_default();
    let start = analysis.meta.start_unix()?;
    let job = RecordedJob {
        name,
        start,
        end: start.saturating_add(analysis.wall()),
    };
    // The jobs of a matrix have the same name and run at the same time, but each runner runs only one job at a time. So
    // the runner is compared first.
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

/// The index in `ci_jobs` of the CI job in which a recording was made. The first of the rules below that exactly one
/// job fulfils decides; `None` if there is no such rule.
pub fn find(ci_jobs: &[&CiJob], job: &RecordedJob<'_>) -> Option<usize> {
    let only = |fits: &dyn Fn(&CiJob) -> bool| {
        let mut all = ci_jobs.iter().enumerate().filter(|(_, one)| fits(one));
        let first = all.next().map(|(at, _)| at);
        first.filter(|_| all.next().is_none())
    };
    only(&|one| one.name == job.name)
        .or_else(|| only(&|one| one.is_called(job.name) && one.holds(job)))
        .or_else(|| only(&|one| one.is_called(job.name)))
        .or_else(|| only(&|one| one.holds(job)))
}
