//! Gives the kinds of time their titles in text, and the columns in which tables merge them.

use std::cmp::Reverse;

use tr_analyze::kinds::{ByKind, Kind};
use tr_analyze::model::Basis;

use tr_text::units;
use tr_text::words;
use tr_text::words::{RUN_QUEUE, SLEEP, SLEEP_OR_BLOCKED};

/// The title of a kind of time (such as time on a CPU or waits for a disk) in text.
pub fn title(kind: Kind) -> &'static str {
    match kind {
        Kind::OnCpu => "CPU",
        Kind::RunQueue => RUN_QUEUE,
        Kind::Outside => "tasks not recorded",
        Kind::Others => "work of other steps",
        Kind::SleepOrBlocked => SLEEP_OR_BLOCKED,
        Kind::Lived => words::UNKNOWN,
        Kind::Disk
        | Kind::Memory
        | Kind::Network
        | Kind::Terminal
        | Kind::Sleep
        | Kind::Stopped
        | Kind::Blocked
        | Kind::Unknown => kind.name(),
    }
}

/// The state of a thread during time of a kind, as an index into [`tr_text::words::STATES`].
pub fn state(kind: Kind) -> usize {
    match kind {
        Kind::OnCpu => 0,
        Kind::RunQueue => 1,
        Kind::Disk | Kind::Memory | Kind::Blocked => 2,
        Kind::Network
        | Kind::Terminal
        | Kind::Sleep
        | Kind::Stopped
        | Kind::Outside
        | Kind::Others => 3,
        Kind::SleepOrBlocked | Kind::Lived | Kind::Unknown => 4,
    }
}

/// A column of a table that divides time on the critical path by kind, such as time on a CPU or waits for a
/// disk.
pub struct Column {
    /// The title of the table column for people.
    pub title: &'static str,
    /// The name of the table column in JSON, CSV and datasets.
    pub name: &'static str,
    pub kinds: &'static [Kind],
}

/// The columns of a table that divides times of the critical path by kind. Each kind of time is in exactly one column.
/// If a recording has only totals, time that these do not divide is in the column for an unknown state.
pub const COLUMNS: [Column; 7] = [
    column("CPU", &[Kind::OnCpu], "on_cpu"),
    column(RUN_QUEUE, &[Kind::RunQueue], "run_queue"),
    column("disk", &[Kind::Disk], "disk"),
    column("network", &[Kind::Network], "network"),
    column(SLEEP, &[Kind::Sleep], "sleep"),
    column("other", OTHER, "other"),
    column(words::UNKNOWN, UNKNOWN, "unknown"),
];

const OTHER: &[Kind] = &[
    Kind::Memory,
    Kind::Terminal,
    Kind::Stopped,
    Kind::Blocked,
    Kind::Outside,
    Kind::Others,
];

const UNKNOWN: &[Kind] = &[Kind::SleepOrBlocked, Kind::Lived, Kind::Unknown];

/// The index of the table column that shows a kind of time of the critical path.
pub fn column_of(kind: Kind) -> usize {
    let holds = |column: &Column| column.kinds.contains(&kind);
    COLUMNS.iter().position(holds).unwrap_or_default()
}

const fn column(title: &'static str, kinds: &'static [Kind], name: &'static str) -> Column {
    Column { title, name, kinds }
}

impl Column {
    pub fn of(&self, times: &ByKind) -> u64 {
        times.of_all(self.kinds.iter().copied())
    }

    /// The sum of `times` that this table column shows; `None` if a recording whose times come from this source
    /// (events, totals or run times) does not show it.
    pub fn told(&self, times: &ByKind, basis: Basis) -> Option<u64> {
        let told = |kind: &Kind| is_told(*kind, basis);
        self.kinds.iter().any(told).then(|| self.of(times))
    }
}

/// Whether a recording whose times come from this source (events, totals or run times) shows the time of a kind.
pub fn is_told(kind: Kind, basis: Basis) -> bool {
    match basis {
        Basis::Events => true,
        Basis::Totals => matches!(kind, Kind::OnCpu | Kind::RunQueue | Kind::Unknown),
        Basis::RunTime => matches!(kind, Kind::OnCpu | Kind::Unknown),
    }
}

/// The kinds of time into which the time of a step is divided. Only the kinds count that occur in a recording with
/// scheduling events.
pub fn of_steps() -> impl DoubleEndedIterator<Item = Kind> + Clone {
    let known = |kind: &Kind| !matches!(kind, Kind::SleepOrBlocked | Kind::Lived);
    Kind::ALL.into_iter().filter(known)
}

/// The sentence that lists the given times by kind (such as time on a CPU), the longest first.
pub fn sentence(times: &ByKind) -> String {
    let whole = times.sum();
    let all = of_steps().map(|kind| (times.of(kind), kind));
    let large = |(ns, _): &(u64, Kind)| *ns > whole / 100;
    let mut kinds: Vec<_> = all.filter(large).collect();
    kinds.sort_unstable_by_key(|(ns, kind)| (Reverse(*ns), *kind));
    let kinds = kinds.iter().take(3);
    let kinds = kinds.map(|(ns, kind)| format!("{} {}", title(*kind), units::time(*ns)));
    kinds.collect::<Vec<_>>().join(", ")
}

/// The sum in nanoseconds of a step's waits for anything except a CPU, including waits for the work of other
/// steps, and the kind of wait with the longest time.
pub fn waited(times: &ByKind) -> (u64, Kind) {
    let waits = of_steps().filter(|kind| kind.is_wait() || *kind == Kind::Others);
    // If several kinds are equally long, the first one counts.
    let longest = waits.clone().rev().max_by_key(|kind| times.of(*kind));
    (times.of_all(waits), longest.unwrap_or(Kind::Sleep))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_in_one_column() {
        for kind in Kind::ALL {
            let columns = COLUMNS.iter().filter(|column| column.kinds.contains(&kind));
            assert_eq!(columns.count(), 1, "{kind:?}");
        }
    }
}
