//! The first columns of a table whose rows are groups of threads.

use tr_insight::members::Members;
use tr_insight::query::By;
use tr_text::table::{Cell, Table};

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
