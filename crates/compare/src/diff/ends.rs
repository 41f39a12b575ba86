//! Finds out how the builds of a comparison ended. The times of a build that failed measure no whole build.

use super::{Diff, Run};
use tr_insight::processes::exit;
use tr_text::units;

impl Run {
    /// For a recording that has only a part of the build, its file name and a phrase with the reason, such as `is
    /// truncated`; otherwise `None`.
    pub(super) fn partial(&self) -> Option<(&str, &'static str)> {
        let why = match (self.cut, self.unfinished) {
            (true, _) => "is truncated",
            (_, true) => exit::UNFINISHED,
            _ => return None,
        };
        Some((&self.file, why))
    }

    /// Whether the build of this run failed: COMMAND ended with a status other than 0. A run whose end is unknown
    /// has not failed.
    pub fn failed(&self) -> bool {
        exit::failed(self.status)
    }

    /// The reason why the times of this run are not those of a whole build: the build failed, or its recording is
    /// partial. `None` if they are the times of a whole build.
    pub fn no_build(&self) -> Option<String> {
        let (file, end) = (&self.file, self.status.filter(|_| self.failed()));
        let failed = end.map(|end| format!("{file}: its build failed ({})", exit::words(end)));
        failed.or_else(|| self.partial().map(|(file, why)| format!("{file} {why}")))
    }
}

/// Divides the runs of the base into those to compare and those to leave out. The failed runs are left out if any
/// other run did not fail.
pub(super) fn sorted_out(base: Vec<Run>) -> (Vec<Run>, Vec<Run>) {
    if base.iter().all(Run::failed) {
        return (base, Vec::new());
    }
    base.into_iter().partition(|run| !run.failed())
}

/// The different ways in which the builds of some runs ended, such as `exit 2`, as texts.
pub(super) fn ends<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Vec<String> {
    let known = runs.into_iter().filter_map(|run| run.status);
    let mut all: Vec<String> = known.map(exit::words).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// A text such as `the new build failed: exit 2` or `2 of 5 new builds failed: exit 2`; `None` if none of the
/// runs failed.
fn failure_of(side: &str, runs: &[Run]) -> Option<String> {
    let failed: Vec<&Run> = runs.iter().filter(|run| run.failed()).collect();
    let ends = ends(failed.iter().copied()).join(", ");
    let (count, all) = (failed.len(), runs.len());
    match (count, all) {
        (0, _) => None,
        (1, 1) => Some(format!("the {side} build failed: {ends}")),
        _ => {
            let count = units::count(count as u64);
            let [one, more] = ["build", "builds"].map(|noun| format!("{side} {noun}"));
            let all = units::plural(all as u64, &one, &more);
            Some(format!("{count} of {all} failed: {ends}"))
        }
    }
}

/// A text about the first partial recording of a side, such as `the new recording x.bin is truncated`; `None` if all
/// recordings are whole. The times of a partial recording are only lower bounds.
fn partial_of(side: &str, runs: &[Run]) -> Option<String> {
    let (file, why) = runs.iter().find_map(Run::partial)?;
    Some(format!("the {side} recording {file} {why}"))
}

/// A text about recordings in a comparison that have only a part of the build, so that their times are lower
/// bounds; `None` if all are whole.
fn partial(diff: &Diff) -> Option<String> {
    partial_of("new", &diff.new).or_else(|| partial_of("base", &diff.base))
}

/// Verifies that the two sides can be compared.
///
/// # Errors
/// The error is a text for the user: a build failed; or only one side has partial recordings, so that the difference is
/// not one between whole builds.
pub fn comparable(diff: &Diff) -> Result<(), String> {
    let has_part =
        [&diff.base, &diff.new].map(|runs| runs.iter().any(|run| run.partial().is_some()));
    match (failure(diff), has_part) {
        (Some(failure), _) => Err(failure),
        (None, [true, false] | [false, true]) => Err(partial(diff).unwrap_or_default()),
        (None, _) => Ok(()),
    }
}

/// The reason why the times of this comparison are not those of whole builds: a build failed, or a recording is
/// partial. `None` if they are the times of whole builds.
pub(super) fn no_build(diff: &Diff) -> Option<String> {
    failure(diff).or_else(|| partial(diff))
}

/// A text about the sides whose builds failed; `None` if none failed. It is reported before any difference of
/// times.
pub fn failure(diff: &Diff) -> Option<String> {
    let (base, new) = (failure_of("base", &diff.base), failure_of("new", &diff.new));
    match (new, base) {
        (Some(new), Some(base)) => Some(format!("{new}; {base}")),
        (new, base) => new.or(base),
    }
}
