//! Makes the columns with tasks' times, and the values of arguments, for tables and JSON documents.

use tr_analyze::model::{self, Basis};
use tr_format::event::Argv;

use tr_text::json::text;
use tr_text::object;
use tr_text::table::{Cell, Table};
use tr_text::words::{BLOCKED, RUN_QUEUE, SLEEP, SLEEP_OR_BLOCKED, UNKNOWN};

object! {
    Times(times: &model::Times) {
        on_cpu_ns: Option<u64> = times.on_cpu_known(),
        run_queue_ns: Option<u64> = times.run_queue_known(),
        sleep_ns: Option<u64> = times.sleep_known(),
        blocked_ns: Option<u64> = times.blocked_known(),
        // The sum of sleep and blocking is needed only for a recording without scheduling events, because such a
        // recording cannot tell the two apart.
        #[serde(skip_serializing_if = "Option::is_none")]
        asleep_or_blocked_ns: Option<u64> = times.asleep_or_blocked_known(),
        unknown_ns: u64 = times.unknown,
    }
}

/// The choice of the columns with tasks' times (on a CPU, waits, unknown time) that a table shows to
/// people.
#[derive(Clone, Copy)]
pub(crate) struct ShownTimes {
    pub basis: Basis,
    pub on_cpu: bool,
    /// Whether the table has a column for each kind of wait of the tasks: run queue, sleep, blocked.
    pub waits: bool,
    pub unknown: bool,
    /// Whether the less important columns of tasks' times may be hidden if the terminal is narrow.
    pub spare: bool,
}

/// A table's column for one kind of time of a task, such as its time on a CPU. A variant's value is the column's place
/// from left to right. Place 1 is free for the column with the sum of these times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeColumn {
    OnCpu = 0,
    RunQueue = 2,
    Blocked,
    Sleep,
    AsleepOrBlocked,
    Unknown,
}

/// The first place in a table for a column to the right of the columns with tasks' times.
pub(crate) const AFTER_TIMES: usize = TimeColumn::Unknown as usize + 1;

/// Adds the columns with the kinds of a task's time to a table. `columns` is in the order of CSV and JSON. Tables for
/// people have the order of [`TimeColumn`].
pub(crate) fn times<'a, R: 'a>(
    table: Table<'a, R>,
    of: fn(&R) -> Option<&model::Times>,
    seen: ShownTimes,
    columns: &[TimeColumn],
) -> Table<'a, R> {
    let events = seen.basis == Basis::Events;
    let known = |time: fn(&model::Times) -> Option<u64>| {
        move |row: &R| Cell::known(of(row).and_then(time), Cell::Time)
    };
    let spare = |table: Table<'a, R>| if seen.spare { table.spare() } else { table };
    let add = |table: Table<'a, R>, column: &TimeColumn| match column {
        TimeColumn::OnCpu => table
            .fact("CPU", "on_cpu_ns", known(|times| times.on_cpu_known()))
            .shown(seen.on_cpu),
        TimeColumn::RunQueue => table
            .fact(
                RUN_QUEUE,
                "run_queue_ns",
                known(|times| times.run_queue_known()),
            )
            .shown(seen.waits),
        TimeColumn::Sleep => {
            spare(table.fact(SLEEP, "sleep_ns", known(|times| times.sleep_known())))
                .shown(seen.waits && events)
        }
        TimeColumn::Blocked => table
            .fact(BLOCKED, "blocked_ns", known(|times| times.blocked_known()))
            .shown(seen.waits && events),
        TimeColumn::Unknown => {
            spare(table.fact(UNKNOWN, "unknown_ns", known(|times| Some(times.unknown))))
                .shown(seen.unknown)
        }
        TimeColumn::AsleepOrBlocked => {
            let asleep = known(|times| times.asleep_or_blocked_known());
            let table = table.fact(SLEEP_OR_BLOCKED, "asleep_or_blocked_ns", asleep);
            let table = table.shown(seen.waits);
            match seen.basis {
                Basis::Totals => table,
                _ => table.csv_only(),
            }
        }
    };
    let placed = |table, column: &TimeColumn| add(table, column).place(*column as usize);
    // A recording with scheduling events has one column for sleep and another one for blocking. So the column with the
    // sum of the two is left out.
    let known = |column: &&TimeColumn| !events || **column != TimeColumn::AsleepOrBlocked;
    columns.iter().filter(known).fold(table, placed)
}

pub(crate) fn argv(argv: &Argv) -> Option<Vec<String>> {
    argv.full_len.map(|_| argv.args().map(text).collect())
}
