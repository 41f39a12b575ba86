//! Raw `wait` statuses.

use serde::Serialize;

use crate::table::{Cell, Table};

/// A status in JSON: one of the two is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Exit {
    code: Option<u32>,
    signal: Option<u32>,
}

impl From<u32> for Exit {
    fn from(status: u32) -> Exit {
        let signal = Some(status & 0x7f).filter(|signal| *signal != 0);
        let code = signal.is_none().then_some(status >> 8 & 0xff);
        Exit { code, signal }
    }
}

impl Exit {
    /// The exit code, unless a signal killed the process.
    pub(crate) fn code(self) -> Option<u32> {
        self.code
    }
}

/// The signal that killed a process with this status.
pub(crate) fn killed_by(status: Option<u32>) -> Option<u32> {
    Exit::from(status?).signal
}

/// The name of the signal of a status: `SIGKILL`.
pub fn signal(status: u32) -> String {
    const NAMES: [&str; 16] = [
        "", "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV",
        "USR2", "PIPE", "ALRM", "TERM",
    ];
    let signal = status & 0x7f;
    match NAMES.get(signal as usize) {
        Some(name) => format!("SIG{name}"),
        None => format!("signal {signal}"),
    }
}

/// `exit 0`, `killed by SIGKILL`.
pub fn words(status: u32) -> String {
    if status & 0x7f == 0 {
        return format!("exit {}", status >> 8 & 0xff);
    }
    let name = signal(status);
    let core = if status & 0x80 != 0 {
        " (core dumped)"
    } else {
        ""
    };
    format!("killed by {name}{core}")
}

/// The status of `timeout` when it ended what it ran.
pub(crate) fn is_timeout(status: u32) -> bool {
    status == 124 << 8
}

/// Adds the columns of a status: `of` has it, and that the process is alive.
pub(crate) fn columns<'a, R: 'a>(
    table: Table<'a, R>,
    title: &str,
    of: impl Fn(&R) -> (Option<u32>, bool) + Copy + 'a,
) -> Table<'a, R> {
    let exit = move |row: &R| of(row).0.map(Exit::from);
    table
        .json_data("exit", move |row| serde_json::json!(exit(row)))
        .csv_data("exit_code", move |row| exit(row).and_then(|it| it.code))
        .csv_data("signal", move |row| exit(row).and_then(|it| it.signal))
        .column(title, move |row| {
            let (status, alive) = of(row);
            cell(status, alive)
        })
}

/// A status in a column.
pub(crate) fn cell(status: Option<u32>, alive: bool) -> Cell {
    match status.map(Exit::from) {
        Some(Exit { signal, code }) => match signal {
            Some(signal) => Cell::Text(format!("sig {signal}")),
            None => Cell::known(code, Cell::Id),
        },
        None if alive => Cell::from("alive"),
        None => Cell::Unknown,
    }
}

/// Whether a process ended with another status than 0.
pub(crate) fn failed(status: Option<u32>) -> bool {
    status.is_some_and(|status| status != 0)
}
