//! The longest time off CPU of each process, for each interval.
//!
//! A time off CPU belongs to the CPU that the thread left, and to the interval
//! in which it ended, with its whole length. One that has no known beginning
//! (the thread was off CPU when the recording began) has no CPU, so that it
//! counts only when none is asked for; one that has no known end belongs to the
//! interval up to which it is known, and may be longer.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use tr_analyze::model::ThreadIx;
use tr_analyze::waits::{self, Piece};
use tr_format::event::CpuId;

use crate::reports::{Report, View};
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};
use crate::{label, units};

const SECOND: u64 = 1_000_000_000;

/// The report.
pub struct MaxOffCpu<'a> {
    view: View<'a>,
    /// In ns.
    interval: u64,
    /// By interval, then by the process's place.
    rows: BTreeMap<(u64, usize), Row>,
}

/// A process in an interval.
#[derive(Clone, Copy, Debug)]
struct Row {
    longest: Piece,
    /// Times off CPU, of which that is the longest.
    count: u64,
}

impl<'a> MaxOffCpu<'a> {
    /// Of the processes that were chosen.
    pub fn new(view: &View<'a>) -> MaxOffCpu<'a> {
        let analysis = view.analysis;
        let interval = view.ask.interval.unwrap_or(SECOND).max(1);
        let mut rows = BTreeMap::<(u64, usize), Row>::new();
        let mut add = |process: usize, thread: ThreadIx| {
            for piece in waits::off_cpu(analysis, thread) {
                let here = |cpu: CpuId| piece.before.cpu() == Some(cpu);
                if !view.ask.cpu.is_none_or(here) {
                    continue;
                }
                // It ends with its last nanosecond.
                let end = piece.to.since(analysis.meta.start).saturating_sub(1);
                let row = rows.entry((end / interval, process)).or_insert(Row {
                    longest: piece,
                    count: 0,
                });
                row.count += 1;
                if piece.length() > row.longest.length() {
                    row.longest = piece;
                }
            }
        };
        for at in view.chosen {
            let threads = analysis.processes.get(*at).map(|p| &p.threads);
            for thread in threads.into_iter().flatten() {
                add(*at, *thread);
            }
        }
        MaxOffCpu {
            view: *view,
            interval,
            rows,
        }
    }

    /// A place of text for an interval's number.
    fn span(&self, number: u64) -> (u64, u64) {
        let from = number.saturating_mul(self.interval);
        (from, from.saturating_add(self.interval))
    }

    /// For CSV and JSON: all, or as many of the longest as were asked for.
    fn asked(&self) -> impl Iterator<Item = OfProcess> + '_ {
        let rows = match self.view.ask.limit {
            None => self.rows.iter().collect(),
            Some(most) => self.longest(most),
        };
        rows.into_iter().map(|(at, row)| self.row(*at, row))
    }

    fn longest(&self, most: usize) -> Vec<(&(u64, usize), &Row)> {
        let mut rows: Vec<_> = self.rows.iter().collect();
        rows.sort_by_key(|(at, row)| (std::cmp::Reverse(row.longest.length()), **at));
        rows.truncate(most);
        rows
    }

    fn row(&self, at: (u64, usize), row: &Row) -> OfProcess {
        let process = self.view.analysis.processes.get(at.1);
        let (from, to) = self.span(at.0);
        OfProcess {
            from_ns: from,
            to_ns: to,
            pid: process.map_or(0, |process| process.pid.0),
            process: process.map(label::label).unwrap_or_default(),
            max_off_cpu_ns: row.longest.length(),
            start_ns: row.longest.from.since(self.view.analysis.meta.start),
            cpu: row.longest.before.cpu().map(|cpu| cpu.0),
            whole: row.longest.whole_wait(),
            count: row.count,
        }
    }
}

#[derive(Serialize)]
struct OfProcess {
    from_ns: u64,
    to_ns: u64,
    pid: u32,
    process: String,
    max_off_cpu_ns: u64,
    start_ns: u64,
    cpu: Option<u16>,
    whole: bool,
    count: u64,
}

impl Report for MaxOffCpu<'_> {
    fn text(&self, style: &Style) -> String {
        let mut out = String::new();
        let top = self.view.ask.top;
        let on = match self.view.ask.cpu {
            Some(cpu) => format!(", of threads that left CPU {}", cpu.0),
            None => String::new(),
        };
        let title = format!(
            "Longest time off CPU per process and {}{on}",
            units::time(self.interval)
        );
        style.line(&mut out, &title);
        if self.rows.is_empty() {
            style.line(&mut out, "  none");
            return out;
        }
        let name = units::top("process", top, self.rows.len());
        let mut table = Table::new()
            .column("interval", "")
            .column("off CPU", "")
            .column("from", "")
            .column("CPU", "")
            .column("times", "")
            .column("pid", "")
            .name(name, "");
        for (at, row) in self.longest(top) {
            let row = self.row(*at, row);
            let length = units::time(row.max_off_cpu_ns);
            let at_least = if row.whole { "" } else { "≥ " };
            let cells = vec![
                Cell::At(row.from_ns),
                Cell::Text(format!("{at_least}{length}")),
                Cell::At(row.start_ns),
                Cell::known(row.cpu, |cpu| Cell::Id(u32::from(cpu))),
                Cell::Count(row.count),
                Cell::Id(row.pid),
            ];
            table.row(cells, row.process, Paint::Plain);
        }
        out + &table.text(style, 0)
    }

    fn json(&self) -> serde_json::Result<Option<Value>> {
        #[derive(Serialize)]
        struct Document {
            interval_ns: u64,
            cpu: Option<u16>,
            rows: Vec<OfProcess>,
        }
        let document = Document {
            interval_ns: self.interval,
            cpu: self.view.ask.cpu.map(|cpu| cpu.0),
            rows: self.asked().collect(),
        };
        serde_json::to_value(document).map(Some)
    }

    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let mut table = Table::keyed([
            "interval_ns",
            "pid",
            "max_off_cpu_ns",
            "start_ns",
            "cpu",
            "whole",
            "count",
            "process",
        ]);
        for row in self.asked() {
            let cells = vec![
                Cell::At(row.from_ns),
                Cell::Id(row.pid),
                Cell::Time(row.max_off_cpu_ns),
                Cell::At(row.start_ns),
                Cell::known(row.cpu, |cpu| Cell::Id(u32::from(cpu))),
                Cell::Id(u32::from(row.whole)),
                Cell::Count(row.count),
                Cell::Text(row.process),
            ];
            table.record(cells);
        }
        table.csv()
    }
}
