//! Gives the kinds of time their titles in text, and the columns in which tables merge them.

use std::cmp::Reverse;

use tr_analyze::kinds::{ByKind, TimeKind};
use tr_analyze::model::Basis;

use tr_text::units;
use tr_text::words;
use tr_text::words::{RUN_QUEUE, SLEEP, SLEEP_OR_BLOCKED};

/// The title of a kind of time (such as time on a CPU or waits for a disk) in text.
pub fn title(kind: TimeKind) -> &'static str {
    match kind {
        TimeKind::OnCpu => "CPU",
        TimeKind::RunQueue => RUN_QUEUE,
        TimeKind::Outside => "tasks not recorded",
        TimeKind::Others => "work of other steps",
        TimeKind::SleepOrBlocked => SLEEP_OR_BLOCKED,
        TimeKind::Lived => words::UNKNOWN,
        TimeKind::Disk
        | TimeKind::Memory
        | TimeKind::Network
        | TimeKind::Terminal
        | TimeKind::Sleep
        | TimeKind::Stopped
        | TimeKind::Blocked
        | TimeKind::Unknown => kind.name(),
    }
}

/// The state of a thread during time of a kind, as an index into [`tr_text::words::STATES`].
pub fn state(kind: TimeKind) -> usize {
    match kind {
        TimeKind::OnCpu => 0,
        TimeKind::RunQueue => 1,
        TimeKind::Disk | TimeKind::Memory | TimeKind::Blocked => 2,
        TimeKind::Network
        | TimeKind::Terminal
        | TimeKind::Sleep
        | TimeKind::Stopped
        | TimeKind::Outside
        | TimeKind::Others => 3,
        TimeKind::SleepOrBlocked | TimeKind::Lived | TimeKind::Unknown => 4,
    }
}

/// A column of a table that divides time on the critical path by kind, such as time on a CPU or waits for a disk.
pub struct Column {
    /// The title of the table column for people.
    pub title: &'static str,
    /// The name of the table column in JSON, CSV and datasets.
    pub name: &'static str,
    pub kinds: &'static [TimeKind],
}

/// The columns of a table that divides times of the critical path by kind. Each kind of time is in exactly one column.
/// Some recordings have only the kernel's total times. Time that the totals do not explain is in the column for an
/// unknown state.
pub const COLUMNS: [Column; 7] = [
    column("CPU", &[TimeKind::OnCpu], "on_cpu"),
    column(RUN_QUEUE, &[TimeKind::RunQueue], "run_queue"),
    column("disk", &[TimeKind::Disk], "disk"),
    column("network", &[TimeKind::Network], "network"),
    column(SLEEP, &[TimeKind::Sleep], "sleep"),
    column("other", OTHER_KINDS, "other"),
    column(words::UNKNOWN, UNKNOWN_KINDS, "unknown"),
];

const OTHER_KINDS: &[TimeKind] = &[
    TimeKind::Memory,
    TimeKind::Terminal,
    TimeKind::Stopped,
    TimeKind::Blocked,
    TimeKind::Outside,
    TimeKind::Others,
];

const UNKNOWN_KINDS: &[TimeKind] = &[TimeKind::SleepOrBlocked, TimeKind::Lived, TimeKind::Unknown];

/// The index of the table column that shows a kind of time of the critical path.
pub fn column_of(kind: TimeKind) -> usize {
    let holds = |column: &Column| column.kinds.contains(&kind);
    COLUMNS.iter().position(holds).unwrap_or_default()
}

const fn column(title: &'static str, kinds: &'static [TimeKind], name: &'static str) -> Column {
    Column { title, name, kinds }
}

impl Column {
    pub fn of(&self, times: &ByKind) -> u64 {
        times.of_all(self.kinds.iter().copied())
    }

    /// The sum of the times in `times` that belong to this table column; `None` if the recording does not have these
    /// times. `basis` says whether the recording's times come from events, totals or run times.
    pub fn known(&self, times: &ByKind, basis: Basis) -> Option<u64> {
        let known = |kind: &TimeKind| is_known(*kind, basis);
        self.kinds.iter().any(known).then(|| self.of(times))
    }
}

/// Whether a recording shows the time of this kind. `basis` says whether the recording's times come from events, totals
/// or run times.
pub fn is_known(kind: TimeKind, basis: Basis) -> bool {
    match basis {
        Basis::Events => true,
        Basis::Totals => matches!(
            kind,
            TimeKind::OnCpu | TimeKind::RunQueue | TimeKind::Unknown
        ),
        Basis::RunTime => matches!(kind, TimeKind::OnCpu | TimeKind::Unknown),
    }
}

/// The kinds of time into which the time of a step is divided: all kinds except `SleepOrBlocked` and `Lived`, which
/// only recordings without scheduling events have.
pub fn of_steps() -> impl DoubleEndedIterator<Item = TimeKind> + Clone {
    let known = |kind: &TimeKind| !matches!(kind, TimeKind::SleepOrBlocked | TimeKind::Lived);
    TimeKind::ALL.into_iter().filter(known)
}

/// The words for the kinds of time that have more than 1 % of the sum of `times`: at most three, the longest first,
/// such as `CPU 3 s, disk 1 s`.
pub fn sentence(times: &ByKind) -> String {
    let whole = times.sum();
    let all = of_steps().map(|kind| (times.of(kind), kind));
    let large = |(ns, _): &(u64, TimeKind)| *ns > whole / 100;
    let mut kinds: Vec<_> = all.filter(large).collect();
    kinds.sort_unstable_by_key(|(ns, kind)| (Reverse(*ns), *kind));
    let kinds = kinds.iter().take(3);
    let kinds = kinds.map(|(ns, kind)| format!("{} {}", title(*kind), units::time(*ns)));
    kinds.collect::<Vec<_>>().join(", ")
}

/// The sum in nanoseconds of a step's waits for anything except a CPU, including waits for the work of other
/// steps, and the kind of wait with the longest time.
pub fn waited(times: &ByKind) -> (u64, TimeKind) {
    let waits = of_steps().filter(|kind| kind.is_wait() || *kind == TimeKind::Others);
    // If several kinds of waits are equally long, the first one in the order of `TimeKind::ALL` counts.
    let longest = waits.clone().rev().max_by_key(|kind| times.of(*kind));
    (times.of_all(waits), longest.unwrap_or(TimeKind::Sleep))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_in_one_column() {
        for kind in TimeKind::ALL {
            let columns = COLUMNS.iter().filter(|column| column.kinds.contains(&kind));
            assert_eq!(columns.count(), 1, "{kind:?}");
        }
    }
}
