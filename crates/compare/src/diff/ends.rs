//! Finds out how the builds of a comparison ended. The times of a build that failed measure no whole build.

use super::{Diff, Run};
use tr_insight::exit;
use tr_text::units;

impl Run {
    /// The name of the run's file, and the reason why it has only a part of the build; `None` if it has the
    /// whole build.
    pub(super) fn partial(&self) -> Option<(&str, &'static str)> {
        let why = match (self.cut, self.unfinished) {
            (true, _) => "is truncated",
            (_, true) => exit::UNFINISHED,
            _ => return None,
        };
        Some((&self.file, why))
    }

    /// Whether COMMAND ended with a status other than 0. An unknown end is not a failure.
    pub fn failed(&self) -> bool {
        exit::failed(self.status)
    }

    /// The reason why the times of a run do not measure a whole build, as text.
    pub fn no_build(&self) -> Option<String> {
        let (file, end) = (&self.file, self.status.filter(|_| self.failed()));
        let failed = end.map(|end| format!("{file}: its build failed ({})", exit::words(end)));
        failed.or_else(|| self.partial().map(|(file, why)| format!("{file} {why}")))
    }
}

/// The runs of the base that are compared, and the runs that are left out: the failed ones, if others ended well.
pub(super) fn sorted_out(base: Vec<Run>) -> (Vec<Run>, Vec<Run>) {
    if base.iter().all(Run::failed) {
        return (base, Vec::new());
    }
    base.into_iter().partition(|run| !run.failed())
}

/// The different ends of some runs, as text.
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

/// A text such as `the new recording x.bin is truncated`, because the times of such a recording are lower
/// bounds; `None` if there is none.
fn partial_of(side: &str, runs: &[Run]) -> Option<String> {
    let (file, why) = runs.iter().find_map(Run::partial)?;
    Some(format!("the {side} recording {file} {why}"))
}

/// The recordings that have only a part of a build, as text, because their times measure no whole build.
fn partial(diff: &Diff) -> Option<String> {
    partial_of("new", &diff.new).or_else(|| partial_of("base", &diff.base))
}

/// Verifies that the two sides can be compared.
///
/// # Errors
/// A build failed, or only one side has whole builds, so that no difference is one of the build. The
/// error is text for the user.
pub fn comparable(diff: &Diff) -> Result<(), String> {
    let has_part =
        [&diff.base, &diff.new].map(|runs| runs.iter().any(|run| run.partial().is_some()));
    match (failure(diff), has_part) {
        (Some(failure), _) => Err(failure),
        (None, [true, false] | [false, true]) => Err(partial(diff).unwrap_or_default()),
        (None, _) => Ok(()),
    }
}

/// The reason why the times of a comparison do not measure whole builds, as text.
pub(super) fn no_build(diff: &Diff) -> Option<String> {
    failure(diff).or_else(|| partial(diff))
}

/// The sides whose builds failed, as text. A failure is reported before any difference of times.
pub fn failure(diff: &Diff) -> Option<String> {
    let (base, new) = (failure_of("base", &diff.base), failure_of("new", &diff.new));
    match (new, base) {
        (Some(new), Some(base)) => Some(format!("{new}; {base}")),
        (new, base) => new.or(base),
    }
}
