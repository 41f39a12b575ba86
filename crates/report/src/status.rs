//! Writes the exit statuses of processes: as an object in JSON, and as columns of a table.

use serde::Serialize;
use serde_json::json;

use tr_insight::processes::exit::{code, killed_by};
use tr_text::table::{Cell, Table};

/// The exit status of a process as an object in JSON. The object has either a code or a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Exit {
    code: Option<u32>,
    signal: Option<u32>,
}

impl From<u32> for Exit {
    fn from(status: u32) -> Exit {
        Exit {
            code: code(status),
            signal: killed_by(Some(status)),
        }
    }
}

/// Adds the columns of a process's exit status to a table. `of` returns for a row the raw `wait` status, and whether
/// the process is still alive.
pub fn add_columns<'a, R: 'a>(
    table: Table<'a, R>,
    title: &str,
    of: impl Fn(&R) -> (Option<u32>, bool) + Copy + 'a,
) -> Table<'a, R> {
    let exit = move |row: &R| of(row).0.map(Exit::from);
    table
        .json_data("exit", move |row| json!(exit(row)))
        .csv_data("exit_code", move |row| exit(row).and_then(|exit| exit.code))
        .csv_data("signal", move |row| exit(row).and_then(|exit| exit.signal))
        .column(title, move |row| {
            let (status, alive) = of(row);
            cell(status, alive)
        })
}

pub fn cell(status: Option<u32>, alive: bool) -> Cell {
    match status.map(Exit::from) {
        Some(Exit { signal, code }) => match signal {
            Some(signal) => Cell::Text(format!("sig {signal}")),
            None => Cell::known(code, Cell::Id),
        },
        None if alive => Cell::from("alive"),
        None => Cell::Unknown,
    }
}
