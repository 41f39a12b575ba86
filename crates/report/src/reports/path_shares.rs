//! Draws the critical path's time by step or by program, as bars.

use tr_analyze::critical_path::CriticalPath;
use tr_analyze::kinds::TimeKind;
use tr_analyze::programs::Groups;
use tr_insight::path::path_steps::{PathBySteps, StepShare};
use tr_insight::path::{self, shares, Share};
use tr_insight::steps::Steps;
use tr_insight::views::query::By;
use tr_insight::views::view::View;
use tr_text::page::{BarRow, Bars, Page};
use tr_text::style::Paint;
use tr_text::units;

/// The time of the critical path divided by step, or by program.
pub enum PathShares {
    Step(PathBySteps),
    Program(Vec<Share>),
}

impl PathShares {
    /// Divides the critical path's time by step, if this division says more than a division by program. The option
    /// `--by` can force either division.
    pub fn new(view: &View<'_>, steps: &Steps, path: &CriticalPath) -> PathShares {
        let groups = path::groups(view.analysis);
        let by_program = || PathShares::Program(shares(view.analysis, &groups, path));
        if view.ask.by == Some(By::Program) {
            return by_program();
        }
        let found = PathBySteps::new(view.analysis, &groups, steps, path);
        if is_by_step(view, &found) {
            PathShares::Step(found)
        } else {
            by_program()
        }
    }

    /// The text for the length of the critical path. If the path is divided by step, the longest wait on the path is
    /// added, provided that both fit into `room` columns.
    pub fn length(&self, whole: u64, room: usize) -> String {
        let waited = match self {
            PathShares::Step(found) => found.waited(),
            PathShares::Program(_) => None,
        };
        let length = units::time(whole);
        let both = waited.map(|waited| format!("{length}: {waited}"));
        let both = both.filter(|text| units::width(text) <= room);
        both.unwrap_or(length)
    }

    /// Draws how much of the critical path's time each step or program has, as bars, for the first `most` of them.
    pub fn bars(&self, out: &mut Page, whole: u64, most: usize) {
        let (rows, beside): (Vec<BarRow>, usize) = match self {
            PathShares::Step(found) => {
                let row = |share: &StepShare| BarRow {
                    name: share.name.short().to_owned(),
                    time: share.time(),
                    note: share.waited().unwrap_or_else(|| times(share)),
                };
                (found.shares.iter().map(row).collect(), 43)
            }
            PathShares::Program(shares) => {
                let row = |share: &Share| BarRow::counted(&share.name, share.time, share.count);
                (shares.iter().map(row).collect(), 33)
            }
        };
        let (shown, hidden) = rows.split_at(rows.len().min(most));
        let rest = hidden.iter().map(|row| row.time);
        let rest = rest.fold(0, u64::saturating_add);
        let unknown = self.unknown(most);
        out.bars(Bars {
            rows: shown.to_vec(),
            whole,
            name: 28,
            beside,
        });
        if rest > 0 {
            let unknown = unknown.map_or(String::new(), |ns| {
                format!(", {} of it unknown", units::time(ns))
            });
            let text = format!("  and {} in smaller parts{unknown}", units::time(rest));
            out.painted(Paint::Dim, &text);
        }
    }

    /// The critical path's unknown time in nanoseconds, if the path is divided by program and the unknown time is not
    /// among the first `shown` bars.
    fn unknown(&self, shown: usize) -> Option<u64> {
        let PathShares::Program(shares) = self else {
            return None;
        };
        let mut hidden = shares.iter().skip(shown);
        let hidden = hidden.find(|share| share.part.kind == TimeKind::Unknown);
        hidden.map(|share| share.time)
    }
}

/// The text `3 ×` for the number of steps with the same name, if there are several; otherwise empty.
fn times(share: &StepShare) -> String {
    if share.is_step && share.count > 1 {
        format!("{} ×", units::count(share.count))
    } else {
        String::new()
    }
}

/// Whether the critical path is shown by step and not by program: if the steps say more than the programs, or if `--by`
/// requests steps.
pub fn is_by_step(view: &View<'_>, found: &PathBySteps) -> bool {
    match view.ask.by {
        Some(By::Program) => false,
        Some(By::Step) => true,
        _ => found.says_more(),
    }
}

/// Divides the critical path's time by the innermost step at each moment.
pub fn all_by_steps(view: &View<'_>, groups: &Groups, path: &CriticalPath) -> PathBySteps {
    let steps = Steps::new(view.analysis, &view.recording.imports.spans);
    PathBySteps::new(view.analysis, groups, &steps, path)
}
