//! The report with a line for every execution of a program, in the form of `execsnoop` and `exitsnoop`.
//!
//! The report has all executions unless `--top` is given: a user who looks for one run of a program must not
//! wonder whether it was left out.

use serde_json::{json, Value};

use crate::encode::{self, ShownTimes, TimeColumn, AFTER_TIMES};
use crate::output::Report;
use crate::status;
use tr_insight::processes::executions::{executions, sort, Execution};
use tr_insight::processes::exit;
use tr_insight::views::query::Sort;
use tr_insight::views::view::View;
use tr_text::escape;
use tr_text::json;
use tr_text::page::Page;
use tr_text::style::{Paint, Style};
use tr_text::table::{Cell, Sheet, Table};
use tr_text::words::OFF_CPU;

pub struct Execs<'a> {
    view: View<'a>,
    rows: Vec<Execution<'a>>,
}

impl<'a> Execs<'a> {
    pub fn new(view: &View<'a>) -> Execs<'a> {
        let ask = view.ask;
        let mut rows: Vec<Execution<'a>> = view
            .processes()
            .flat_map(executions)
            .filter(|row| row.exec.wall() >= ask.min && (!ask.failed || exit::failed(row.status())))
            .collect();
        sort(&mut rows, ask.sort.unwrap_or(Sort::Start));
        Execs { view: *view, rows }
    }

    /// The table with a row for each execution of a program. A `wide` table has more columns and whole
    /// command lines.
    fn table(&self, wide: bool) -> Table<'_, &Execution<'a>> {
        let seen = ShownTimes {
            basis: self.view.analysis.basis(),
            on_cpu: true,
            waits: wide,
            unknown: wide && self.rows.iter().any(|row| row.exec.times.unknown > 0),
            spare: false,
        };
        let start = |row: &&Execution<'a>| self.view.since(row.exec.start);
        let (title, name): (_, fn(&&Execution<'a>) -> String) = if wide {
            ("ARGV", |row| row.command())
        } else {
            ("COMMAND", |row| row.label())
        };
        let table = Table::new(title, name)
            .fact("START(s)", "start_ns", move |row| {
                if row.exec.started_before {
                    Cell::Note("before")
                } else {
                    Cell::Seconds(start(row))
                }
            })
            .shown(wide)
            .csv_only()
            .json_data("start_ns", start)
            .json_data("started_before", |row| row.exec.started_before)
            .json_data("end_ns", move |row| {
                (!row.alive()).then(|| start(row) + row.exec.wall())
            })
            .fact("TIME(s)", "time_ns", |row| Cell::Seconds(row.exec.wall()))
            .data("ended", |row| row.ended());
        let table = status::add_columns(table, "", |row| (row.status(), false)).shown(false);
        let table = table
            .fact("PID", "pid", |row| Cell::Id(row.process.pid.0))
            .place(AFTER_TIMES + 2)
            .fact("PPID", "ppid", |row| {
                Cell::known(row.process.ppid, |ppid| Cell::Id(ppid.0))
            })
            .place(AFTER_TIMES + 3);
        let columns = [
            TimeColumn::OnCpu,
            TimeColumn::RunQueue,
            TimeColumn::Blocked,
            TimeColumn::Sleep,
            TimeColumn::Unknown,
            TimeColumn::AsleepOrBlocked,
        ];
        encode::times(table, |row| Some(&row.exec.times), seen, &columns)
            .column(OFF_CPU, |row| Cell::Time(row.exec.times.off_cpu()))
            .shown(!wide)
            .place(1)
            .fact("memory", "max_rss_bytes", |row| {
                Cell::known(row.exec.max_rss, Cell::Bytes)
            })
            .shown(self.view.ask.sort == Some(Sort::Rss))
            .place(AFTER_TIMES)
            .json_data("comm", |row| json::text(row.exec.comm.bytes()))
            .csv_data("filename", |row| escape::raw(&row.exec.filename))
            .json_data("filename", |row| {
                let filename = &row.exec.filename;
                (!filename.is_empty()).then(|| json::text(filename))
            })
            .named("argv")
            .csv_only()
            .json_data("argv", |row| json!(encode::argv(&row.exec.argv)))
            .json_data("argv_truncated", |row| row.exec.argv.truncated())
            .column("CODE", |row| {
                if row.last {
                    status::cell(row.status(), row.alive())
                } else {
                    Cell::from("exec")
                }
            })
            .place(AFTER_TIMES + 1)
            .paint(|row| Paint::bad_if(exit::failed(row.status())))
    }
}

/// The least width of the terminal in columns for which the table of executions has a column for each kind
/// of wait.
const WIDE_TERMINAL: usize = 120;

impl Report for Execs<'_> {
    fn page(&self, style: &Style) -> Page {
        let wide = style.width >= WIDE_TERMINAL;
        let most = self.view.ask.most();
        let rows = self.view.asked(&self.rows);
        let mut out = Page::new();
        out.table(&self.table(wide), rows);
        out.more(self.rows.len(), most, " executions");
        out
    }

    fn json(&self) -> Option<Value> {
        Some(self.table(true).rows(self.view.asked(&self.rows)))
    }

    fn sheet(&self) -> Sheet {
        self.table(true).sheet(self.view.asked(&self.rows))
    }
}
