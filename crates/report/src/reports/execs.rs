//! Every execution in a line, as `execsnoop` and `exitsnoop` print them.
//!
//! The report has all executions unless `--top` is given: a user who looks for one
//! run of a program must not wonder whether it was left out.

use serde_json::{json, Value};
use tr_analyze::model::{Basis, ExecSpan, Process};

use crate::encode::{self, with};
use crate::exit::{self, Exit};
use crate::query::{self, Sort};
use crate::sort::Rows;
use crate::style::{Paint, Style};
use crate::table::{csv, Cell, Table};
use crate::view::{Report, View};
use crate::words::{OFF_CPU, RUN_QUEUE, SLEEP_OR_BLOCKED};
use crate::{escape, units};

#[derive(Clone, Copy)]
struct Execution<'a> {
    process: &'a Process,
    exec: &'a ExecSpan,
    /// The process's last one; another exec ended the others.
    last: bool,
}

impl Execution<'_> {
    /// Its length in ns.
    fn time(&self) -> u64 {
        self.exec.end.since(self.exec.start)
    }

    /// Its waits in ns.
    fn waited(&self) -> u64 {
        query::off_cpu(&self.exec.times)
    }

    /// The raw status of an execution that ended with its process.
    fn status(&self) -> Option<u32> {
        self.process.status.filter(|_| self.last)
    }

    fn alive(&self) -> bool {
        self.last && self.process.status.is_none() && self.process.alive
    }

    /// The kind of its end.
    fn ended(&self) -> &'static str {
        match self.status() {
            Some(_) => "exit",
            None if !self.last => "exec",
            None if self.alive() => "alive",
            None => "unknown",
        }
    }

    /// The command line, or else the file or the comm.
    fn command(&self) -> String {
        let argv = &self.exec.argv;
        let mut out = if !argv.bytes.is_empty() {
            escape::command(argv.args())
        } else if self.exec.filename.is_empty() {
            escape::text(self.exec.comm.bytes())
        } else {
            escape::text(&self.exec.filename)
        };
        if let Some(full) = argv.full_len.filter(|_| argv.truncated()) {
            out.push_str(&format!(" … of {}", units::bytes(full.into())));
        }
        out
    }
}

pub struct Execs<'a> {
    view: View<'a>,
    rows: Vec<Execution<'a>>,
}

impl<'a> Execs<'a> {
    /// The executions of the chosen processes.
    pub fn new(view: &View<'a>) -> Execs<'a> {
        let ask = view.ask;
        let mut rows: Vec<Execution<'a>> = view
            .processes()
            .flat_map(executions)
            .filter(|row| row.time() >= ask.min && (!ask.failed || exit::failed(row.status())))
            .collect();
        sort(&mut rows, ask.sort.unwrap_or(Sort::Start));
        Execs { view: *view, rows }
    }

    /// The rows in CSV and JSON.
    fn asked(&self) -> impl Iterator<Item = (&Execution<'a>, Value)> {
        let rows = self.rows.iter().take(self.view.ask.most());
        rows.map(|row| {
            let start = self.view.since(row.exec.start);
            let filename = &row.exec.filename;
            let object = json!({
                "pid": row.process.pid.0,
                "ppid": row.process.ppid.map(|ppid| ppid.0),
                "start_ns": start,
                "started_before": row.exec.started_before,
                "end_ns": (!row.alive()).then(|| start + row.time()),
                "time_ns": row.time(),
                "ended": row.ended(),
                "exit": row.status().map(Exit::from),
                "comm": encode::text(row.exec.comm.bytes()),
                "filename": (!filename.is_empty()).then(|| encode::text(filename)),
                "argv": encode::argv(&row.exec.argv),
                "argv_truncated": row.exec.argv.truncated(),
                "max_rss_bytes": row.exec.max_rss,
            });
            let times = encode::Times::new(&row.exec.times);
            (row, with(object, json!(times)))
        })
    }
}

/// A process's executions, in order.
fn executions(process: &Process) -> impl Iterator<Item = Execution<'_>> {
    let execs = process.execs.iter().enumerate();
    execs.map(move |(at, exec)| Execution {
        process,
        exec,
        last: at + 1 == process.execs.len(),
    })
}

/// Sorts in descending order, but by start and pid in ascending order; equal
/// executions by start.
fn sort(rows: &mut [Execution], by: Sort) {
    let key = |row: &Execution| {
        let times = &row.exec.times;
        match by {
            Sort::OnCpu => times.on_cpu,
            Sort::OffCpu => row.waited(),
            Sort::Wall => row.time(),
            Sort::RunQueue => times.run_queue,
            Sort::Sleep => times.sleep,
            Sort::Blocked => times.blocked,
            Sort::Unknown => times.unknown,
            Sort::Rss => row.exec.max_rss.unwrap_or(0),
            Sort::TreeCpu => row.process.tree.times.on_cpu,
            Sort::Start => 0,
            Sort::Pid => u64::MAX - u64::from(row.process.pid.0),
        }
    };
    rows.order_by_key(|row| {
        let key = u64::MAX - key(row);
        (key, row.exec.start, row.process.pid, row.process.start)
    });
}

/// The width from which on the table has a column for each kind of wait.
const WIDE: usize = 120;

impl Report for Execs<'_> {
    fn text(&self, style: &Style) -> String {
        let wide = style.width >= WIDE;
        let unknown = self.rows.iter().any(|row| row.exec.times.unknown > 0);
        let events = self.view.analysis.basis() == Basis::Events;
        let most = self.view.ask.most();
        let table = Table::new("ARGV", |row: &&Execution| row.command())
            .column_if(wide, "START(s)", |row| match row.exec.started_before {
                true => Cell::from("before"),
                false => Cell::Seconds(self.view.since(row.exec.start)),
            })
            .column("TIME(s)", |row| Cell::Seconds(row.time()))
            .column("CPU", |row| {
                Cell::known(row.exec.times.on_cpu_known(), Cell::Time)
            })
            .column_if(!wide, OFF_CPU, |row| Cell::Time(row.waited()))
            .column_if(wide, RUN_QUEUE, |row| {
                Cell::known(row.exec.times.run_queue_known(), Cell::Time)
            })
            .column_if(wide && events, "blocked", |row| {
                Cell::Time(row.exec.times.blocked)
            })
            .column_if(wide && events, "sleep", |row| {
                Cell::Time(row.exec.times.sleep)
            })
            .column_if(wide && !events, SLEEP_OR_BLOCKED, |row| {
                Cell::known(row.exec.times.asleep_or_blocked_known(), Cell::Time)
            })
            .column_if(wide && unknown, "unknown", |row| {
                Cell::Time(row.exec.times.unknown)
            })
            .column_if(self.view.ask.sort == Some(Sort::Rss), "memory", |row| {
                Cell::known(row.exec.max_rss, Cell::Bytes)
            })
            .column("CODE", |row| match row.last {
                true => exit::cell(row.status(), row.alive()),
                false => Cell::from("exec"),
            })
            .column("PID", |row| Cell::Id(row.process.pid.0))
            .column("PPID", |row| {
                Cell::known(row.process.ppid, |ppid| Cell::Id(ppid.0))
            })
            .paint(|row| Paint::bad_if(exit::failed(row.status())));
        let mut out = table.text(self.rows.iter().take(most), style, 0);
        style.more(&mut out, self.rows.len(), most, " executions");
        out
    }

    fn json(&self) -> Option<Value> {
        Some(self.asked().map(|(_, row)| row).collect())
    }

    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let rows = self.asked().map(|(row, object)| {
            let seen = !row.exec.started_before;
            let text = json!({
                "start_ns": seen.then(|| self.view.since(row.exec.start)),
                "filename": escape::text(&row.exec.filename),
                "argv": row.command(),
            });
            with(object, text)
        });
        let columns = "start_ns time_ns ended exit_code=exit/code signal=exit/signal pid ppid
                       on_cpu_ns run_queue_ns blocked_ns sleep_ns unknown_ns max_rss_bytes
                       filename argv";
        csv(rows, &self.view.time_columns(columns))
    }
}
