//! Makes the first columns, with name and id, of the report tables whose rows are groups of threads.

use tr_insight::views::members::Members;
use tr_insight::views::query::By;
use tr_text::table::{Cell, Table};

/// A report table with its first columns, for rows that are groups of threads: the group's name, and the pid or tid
/// if the group is one process or one thread.
pub fn table<'a, R: 'a>(by: By, of: fn(&R) -> &Members) -> Table<'a, R> {
    let id = if by == By::Thread { "tid" } else { "pid" };
    Table::new(by.title(), move |row| of(row).name.short().to_owned())
        .phrase_data("name", move |row| Some(of(row).name.clone()))
        .fact(id, "pid", move |row| {
            of(row).pid.map_or(Cell::Empty, Cell::Id)
        })
        .shown(matches!(by, By::Process | By::Thread))
        .place(0)
}
