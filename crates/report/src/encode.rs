//! The columns of times, and arguments, in JSON documents and tables.

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
        // Only of a recording without scheduling events.
        #[serde(skip_serializing_if = "Option::is_none")]
        asleep_or_blocked_ns: Option<u64> = times.asleep_or_blocked_known(),
        unknown_ns: u64 = times.unknown,
    }
}

/// The times that people see.
#[derive(Clone, Copy)]
pub(crate) struct ShownTimes {
    pub basis: Basis,
    pub on_cpu: bool,
    /// Each kind of wait has a column.
    pub waits: bool,
    pub unknown: bool,
    /// A narrow table leaves some out.
    pub spare: bool,
}

/// Adds the columns of times, in the order of `keys`.
pub(crate) fn times<'a, R: 'a>(
    table: Table<'a, R>,
    of: fn(&R) -> Option<&model::Times>,
    seen: ShownTimes,
    keys: &str,
) -> Table<'a, R> {
    let events = seen.basis == Basis::Events;
    let known = |time: fn(&model::Times) -> Option<u64>| {
        move |row: &R| Cell::known(of(row).and_then(time), Cell::Time)
    };
    let spare = |table: Table<'a, R>| if seen.spare { table.spare() } else { table };
    keys.split_whitespace().fold(table, |table, key| match key {
        "on_cpu" => table
            .fact("CPU", "on_cpu_ns", known(|times| times.on_cpu_known()))
            .shown(seen.on_cpu),
        "run_queue" => table
            .fact(
                RUN_QUEUE,
                "run_queue_ns",
                known(|times| times.run_queue_known()),
            )
            .shown(seen.waits),
        "sleep" => spare(table.fact(SLEEP, "sleep_ns", known(|times| times.sleep_known())))
            .shown(seen.waits && events),
        "blocked" => table
            .fact(BLOCKED, "blocked_ns", known(|times| times.blocked_known()))
            .shown(seen.waits && events),
        "unknown" => spare(table.fact(UNKNOWN, "unknown_ns", known(|times| Some(times.unknown))))
            .shown(seen.unknown),
        _ if events => table,
        _ => {
            let asleep = known(|times| times.asleep_or_blocked_known());
            let table = table.fact(SLEEP_OR_BLOCKED, "asleep_or_blocked_ns", asleep);
            let table = table.shown(seen.waits);
            match seen.basis {
                Basis::Totals => table,
                _ => table.csv_only(),
            }
        }
    })
}

pub(crate) fn argv(argv: &Argv) -> Option<Vec<String>> {
    argv.full_len.map(|_| argv.args().map(text).collect())
}
