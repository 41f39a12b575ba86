//! Finds out how the builds of a comparison ended. The times of a build that failed measure no whole build. The words
//! for these facts are in `end_words`.

use super::{Diff, Run};
use tr_insight::processes::exit;

/// A side of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildSide {
    Base,
    New,
}

/// The reason why a recording has only a part of the build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartialReason {
    /// The file of the recording is truncated.
    Truncated,
    /// The recording ended before its command did.
    Unfinished,
}

/// A recording that has only a part of the build, so that its times are lower bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialRun<'d> {
    pub file: &'d str,
    pub reason: PartialReason,
}

/// The reason why the times of a run are not those of a whole build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunDefect<'d> {
    /// The build failed. `status` is the raw `wait` status of its command.
    Failed {
        file: &'d str,
        status: u32,
    },
    Partial(PartialRun<'d>),
}

/// The failed builds of a side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedBuilds {
    pub side: BuildSide,
    pub failed: usize,
    /// The number of all builds of the side.
    pub all: usize,
    /// The raw `wait` statuses of the failed builds.
    pub statuses: Vec<u32>,
}

/// The sides of a comparison with failed builds, the new side first; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(pub Vec<FailedBuilds>);

/// The reason why the times of a comparison are not those of whole builds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Defect<'d> {
    Failed(Failure),
    Partial(BuildSide, PartialRun<'d>),
}

impl Run {
    /// The reason why the recording has only a part of the build; `None` if it has the whole build.
    pub(super) fn partial(&self) -> Option<PartialRun<'_>> {
        let reason = match (self.cut, self.unfinished) {
            (true, _) => PartialReason::Truncated,
            (_, true) => PartialReason::Unfinished,
            _ => return None,
        };
        Some(PartialRun {
            file: &self.file,
            reason,
        })
    }

    /// Whether the build of this run failed: COMMAND ended with a status other than 0. A run whose end is unknown has
    /// not failed.
    pub fn failed(&self) -> bool {
        exit::failed(self.status)
    }

    /// The reason why the times of this run are not those of a whole build: the build failed, or its recording is
    /// partial. `None` if they are the times of a whole build.
    pub fn defect(&self) -> Option<RunDefect<'_>> {
        let failed = self.status.filter(|_| self.failed());
        let failed = failed.map(|status| RunDefect::Failed {
            file: &self.file,
            status,
        });
        failed.or_else(|| self.partial().map(RunDefect::Partial))
    }
}

/// Divides the runs of the base into those to compare and those to leave out. The failed runs are left out if at least
/// one run of the base did not fail.
pub(super) fn sorted_out(base: Vec<Run>) -> (Vec<Run>, Vec<Run>) {
    if base.iter().all(Run::failed) {
        return (base, Vec::new());
    }
    base.into_iter().partition(|run| !run.failed())
}

fn failed_builds(side: BuildSide, runs: &[Run]) -> Option<FailedBuilds> {
    let failed = runs.iter().filter(|run| run.failed());
    let statuses: Vec<u32> = failed.filter_map(|run| run.status).collect();
    (!statuses.is_empty()).then_some(FailedBuilds {
        side,
        failed: statuses.len(),
        all: runs.len(),
        statuses,
    })
}

/// The first partial recording of a comparison; the new recordings are searched before those of the base. `None` if
/// all recordings are whole. The times of a partial recording are only lower bounds.
fn partial(diff: &Diff) -> Option<(BuildSide, PartialRun<'_>)> {
    let sides = [(BuildSide::New, &diff.new), (BuildSide::Base, &diff.base)];
    let mut found = sides
        .into_iter()
        .filter_map(|(side, runs)| Some((side, runs.iter().find_map(Run::partial)?)));
    found.next()
}

/// Verifies that the two sides can be compared.
///
/// # Errors
/// A build failed; or only one side has partial recordings, so that the difference is not one between whole builds.
pub fn comparable(diff: &Diff) -> Result<(), Defect<'_>> {
    let has_part = |runs: &[Run]| runs.iter().any(|run| run.partial().is_some());
    match defect(diff) {
        Some(Defect::Partial(..)) if has_part(&diff.base) && has_part(&diff.new) => Ok(()),
        Some(defect) => Err(defect),
        None => Ok(()),
    }
}

/// The reason why the times of this comparison are not those of whole builds: a build failed, or a recording is
/// partial. `None` if they are the times of whole builds.
pub(super) fn defect(diff: &Diff) -> Option<Defect<'_>> {
    let partial = || partial(diff).map(|(side, run)| Defect::Partial(side, run));
    failure(diff).map(Defect::Failed).or_else(partial)
}

/// The builds of a comparison that failed; `None` if none failed. They are reported before any difference of times.
pub fn failure(diff: &Diff) -> Option<Failure> {
    let sides = [(BuildSide::New, &diff.new), (BuildSide::Base, &diff.base)];
    let failed = sides
        .into_iter()
        .filter_map(|(side, runs)| failed_builds(side, runs));
    let failed: Vec<FailedBuilds> = failed.collect();
    (!failed.is_empty()).then_some(Failure(failed))
}
