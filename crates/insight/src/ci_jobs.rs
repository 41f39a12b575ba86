//! The jobs of a CI run as the CI system reports them, and the job that a recording is of.

use tr_analyze::model::Analysis;

use crate::ci::Ci;

/// The largest number of jobs of a CI run that are read.
pub const MOST: usize = 1_000;

/// A job as the CI system reports it; times in ns since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CiJob {
    /// The name of the job as the CI system has it, not escaped.
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
    /// The name of the runner that ran the job, not escaped.
    pub runner: Option<String>,
}

/// The most by which a runner's clock and the CI system's may differ if a recording still counts as part of its job,
/// in ns. A guess: whole seconds of the CI system, and clocks that network time has not adjusted yet.
const SLACK: u64 = 5_000_000_000;

/// A recording for which the CI job is searched. The times are in nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub struct RecordedJob<'a> {
    /// The name of the job in the recording's environment.
    pub name: &'a str,
    pub start: u64,
    pub end: u64,
}

impl RecordedJob<'_> {
    /// Whether the recording lies between two times that the CI system reports, in ns since 1970. The clocks may
    /// differ by a few seconds.
    pub fn lies_in(&self, started: u64, ended: u64) -> bool {
        self.start.saturating_add(SLACK) >= started && self.end <= ended.saturating_add(SLACK)
    }
}

impl CiJob {
    /// Whether the recording lies within the job's times.
    fn holds(&self, job: &RecordedJob<'_>) -> bool {
        job.lies_in(self.started, self.ended)
    }

    /// Whether the CI system shows this name for the job: it shows `build (ubuntu)` or `ci / build` for `build`.
    pub fn is_called(&self, name: &str) -> bool {
        let inner = self.name.rsplit(" / ").next().unwrap_or_default();
        let plain = inner.split_once(" (").map_or(inner, |(plain, _)| plain);
        [self.name.as_str(), inner, plain]
            .iter()
            .any(|part| part.trim().eq_ignore_ascii_case(name))
    }
}

/// The job that a recording was made in, and the job's full name if it is one job of a matrix.
pub fn of<'a>(ci_jobs: &'a [CiJob], analysis: &Analysis) -> Option<(&'a CiJob, Option<&'a str>)> {
    let ci = Ci::new(&analysis.meta);
    let name = ci.get("job").unwrap_or_default();
    let start = analysis.meta.start_unix()?;
    let job = RecordedJob {
        name,
        start,
        end: start.saturating_add(analysis.wall()),
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

/// The place in `ci_jobs` of the job that a recording was made in.
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
