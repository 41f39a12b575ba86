//! The threads of each row of a report, for the reports that read timelines.

use std::collections::{BTreeMap, HashMap};

use tr_analyze::model::ThreadIx;

use tr_insight::label;
use tr_insight::query::{names, By};
use tr_insight::view::View;
use tr_text::table::{Cell, Table};

/// The threads of one row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    pub name: String,
    /// The pid (tid) of a row of one process (thread).
    pub pid: Option<u32>,
    pub threads: Vec<ThreadIx>,
}

/// The threads of the chosen processes by row, in the order of the first one.
pub fn members(view: &View<'_>, by: By) -> Vec<Members> {
    let analysis = view.analysis;
    let mut rows: Vec<Members> = Vec::new();
    let mut places = BTreeMap::<String, usize>::new();
    let name = names(view.recording, by, &view.ask.groups);
    for ix in view.chosen {
        let process = analysis.process(*ix);
        match by {
            By::Process => rows.push(Members {
                name: label::label(process),
                pid: Some(process.pid.0),
                threads: process.threads.clone(),
            }),
            By::Thread => rows.extend(process.threads.iter().map(|ix| Members {
                name: label::thread(analysis.thread(*ix), process),
                pid: Some(analysis.thread(*ix).tid.0),
                threads: vec![*ix],
            })),
            _ => {
                let name = name(*ix);
                let place = *places.entry(name.clone()).or_insert(rows.len());
                match rows.get_mut(place) {
                    Some(row) => row.threads.extend_from_slice(&process.threads),
                    None => rows.push(Members {
                        name,
                        pid: None,
                        threads: process.threads.clone(),
                    }),
                }
            }
        }
    }
    rows
}

/// The number of each thread's row.
pub fn places(rows: &[Members]) -> HashMap<ThreadIx, usize> {
    let rows = rows.iter().enumerate();
    let threads = rows.flat_map(|(at, row)| row.threads.iter().map(move |ix| (*ix, at)));
    threads.collect()
}

/// The columns of a table whose rows are those of members: their name, and the pid (tid) where a row
/// is one process (thread).
pub fn table<'a, R: 'a>(by: By, of: fn(&R) -> &Members) -> Table<'a, R> {
    let id = if by == By::Thread { "tid" } else { "pid" };
    Table::new(by.title(), move |row| of(row).name.clone())
        .data("name", move |row| of(row).name.clone())
        .fact(id, "pid", move |row| {
            of(row).pid.map_or(Cell::Empty, Cell::Id)
        })
        .shown(matches!(by, By::Process | By::Thread))
        .place(0)
}
