//! The report on the longest time off CPU of each process in each interval.
//!
//! A time off CPU belongs to the CPU that the thread left, and with its whole length to the interval in which it ended.
//! Without a known start (the thread was off CPU when the recording started) it has no CPU: it counts only without
//! `--cpu`. Without a known end it belongs to the interval up to which it is known, and its length is a lower bound.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{json, Value};
use tr_analyze::model::Process;
use tr_analyze::waits::{self, Piece};

use crate::output::Report;
use tr_insight::label;
use tr_insight::view::View;
use tr_text::page::Page;
use tr_text::style::Style;
use tr_text::table::{Cell, Table, Title};
use tr_text::units;
use tr_text::words::OFF_CPU;

const SECOND: u64 = 1_000_000_000;

pub struct MaxOffCpu<'a> {
    view: View<'a>,
    /// The length in nanoseconds of the intervals for which the longest time off CPU is reported.
    interval: u64,
    /// The rows of the report: the longest time off CPU of each process in each interval, ordered by interval and then
    /// by process.
    rows: Vec<Longest<'a>>,
}

/// A row of the report: the longest time off CPU of one process in one interval.
#[derive(Clone, Copy)]
struct Longest<'a> {
    number: u64,
    process: &'a Process,
    piece: Piece,
    /// The number of times off CPU of the process that ended in this interval.
    count: u64,
}

impl<'a> MaxOffCpu<'a> {
    /// Makes the report on the longest time off CPU of each chosen process in each interval.
    pub fn new(view: &View<'a>) -> MaxOffCpu<'a> {
        let interval = view.ask.interval.unwrap_or(SECOND).max(1);
        let mut rows = BTreeMap::<(u64, usize), Longest>::new();
        for (at, process) in view.processes().enumerate() {
            let threads = process.threads.iter();
            let pieces = threads.flat_map(|thread| waits::off_cpu(view.analysis, *thread));
            let only = view.ask.cpu;
            for piece in pieces.filter(|p| only.is_none() || p.before.cpu() == only) {
                // The last nanosecond of a wait decides on its interval.
                let number = view.since(piece.to).saturating_sub(1) / interval;
                let row = rows.entry((number, at)).or_insert(Longest {
                    number,
                    process,
                    piece,
                    count: 0,
                });
                row.count += 1;
                if piece.length() > row.piece.length() {
                    row.piece = piece;
                }
            }
        }
        MaxOffCpu {
            view: *view,
            interval,
            rows: rows.into_values().collect(),
        }
    }

    /// The rows of the report that CSV and JSON show: all, or with `--top` those with the longest times off CPU.
    fn asked(&self) -> Vec<&Longest<'a>> {
        match self.view.ask.limit {
            None => self.rows.iter().collect(),
            Some(most) => self.longest(most),
        }
    }

    fn longest(&self, most: usize) -> Vec<&Longest<'a>> {
        let mut rows: Vec<&Longest<'a>> = self.rows.iter().collect();
        rows.sort_by_key(|row| Reverse(row.piece.length()));
        rows.truncate(most);
        rows
    }

    fn table(&self) -> Table<'_, &Longest<'a>> {
        let interval = self.interval;
        let from = move |row: &&Longest<'a>| row.number.saturating_mul(interval);
        Table::new("process", |row: &&Longest<'a>| label::label(row.process))
            .fact("interval", "from_ns", move |row| Cell::At(from(row)))
            .csv_key("interval_ns")
            .json_data("to_ns", move |row| from(row).saturating_add(interval))
            .fact("pid", "pid", |row| Cell::Id(row.process.pid.0))
            .place(0)
            .fact(OFF_CPU, "max_off_cpu_ns", |row| {
                Cell::wait(row.piece.length(), row.piece.whole_wait())
            })
            .fact("from", "start_ns", |row| {
                Cell::At(self.view.since(row.piece.from))
            })
            .fact("CPU", "cpu", |row| {
                let cpu = row.piece.before.cpu();
                Cell::known(cpu, |cpu| Cell::Id(cpu.0.into()))
            })
            .data("whole", |row| row.piece.whole_wait())
            .fact("times", "count", |row| Cell::Count(row.count))
            .named("process")
    }
}

impl Report for MaxOffCpu<'_> {
    fn page(&self, _style: &Style) -> Page {
        let mut out = Page::new();
        let top = self.view.ask.top;
        let on = match self.view.ask.cpu {
            Some(cpu) => format!(", of threads that left CPU {}", cpu.0),
            None => String::new(),
        };
        let title = format!(
            "Longest time off CPU per process and {}{on}",
            units::time(self.interval)
        );
        out.line(&title);
        if self.rows.is_empty() {
            let unknown = self
                .view
                .processes()
                .any(|process| process.times.unknown > 0);
            let unknown = if unknown {
                "unknown: events are missing, or tasks may have run on CPUs that --cpu left out"
            } else {
                "none"
            };
            out.sentence("  ", unknown);
            return out;
        }
        let name = Title::top("process", top, self.rows.len());
        out.table(&self.table().titled(name), self.longest(top));
        out
    }

    fn json(&self) -> Option<Value> {
        Some(json!({
            "interval_ns": self.interval,
            "cpu": self.view.ask.cpu.map(|cpu| cpu.0),
            "rows": self.table().rows(self.asked()),
        }))
    }

    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        self.table().csv(self.asked())
    }
}
