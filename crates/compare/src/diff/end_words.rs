//! The words for the ends of the builds of a comparison.

use super::ends::{BuildSide, Defect, FailedBuilds, Failure, PartialReason, PartialRun, RunDefect};
use super::Run;
use std::fmt::{self, Display, Formatter};
use tr_insight::processes::exit;
use tr_text::units;

/// The different ways in which the builds of some runs ended, such as `exit 2`, as texts.
pub(super) fn ends<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Vec<String> {
    distinct(runs.into_iter().filter_map(|run| run.status))
}

fn distinct(statuses: impl Iterator<Item = u32>) -> Vec<String> {
    let mut all: Vec<String> = statuses.map(exit::words).collect();
    all.sort_unstable();
    all.dedup();
    all
}

impl Display for BuildSide {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            BuildSide::Base => "base",
            BuildSide::New => "new",
        })
    }
}

/// The file with the reason, such as `x.bin is truncated`.
impl Display for PartialRun<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let reason = match self.reason {
            PartialReason::Truncated => "is truncated",
            PartialReason::Unfinished => exit::UNFINISHED,
        };
        write!(out, "{} {reason}", self.file)
    }
}

impl Display for RunDefect<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            RunDefect::Failed { file, status } => {
                write!(out, "{file}: its build failed ({})", exit::words(*status))
            }
            RunDefect::Partial(run) => write!(out, "{run}"),
        }
    }
}

/// A text such as `the new build failed: exit 2` or `2 of 5 new builds failed: exit 2`.
impl Display for FailedBuilds {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let side = self.side;
        let ends = distinct(self.statuses.iter().copied()).join(", ");
        if (self.failed, self.all) == (1, 1) {
            return write!(out, "the {side} build failed: {ends}");
        }
        let count = units::count(self.failed as u64);
        let [one, more] = ["build", "builds"].map(|noun| format!("{side} {noun}"));
        let all = units::plural(self.all as u64, &one, &more);
        write!(out, "{count} of {all} failed: {ends}")
    }
}

impl Display for Failure {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let sides: Vec<String> = self.0.iter().map(FailedBuilds::to_string).collect();
        out.write_str(&sides.join("; "))
    }
}

/// A text such as `the new recording x.bin is truncated`.
impl Display for Defect<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Defect::Failed(failure) => write!(out, "{failure}"),
            Defect::Partial(side, run) => write!(out, "the {side} recording {run}"),
        }
    }
}
