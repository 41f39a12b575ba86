//! The report on the longest time off CPU of each process in each interval. The recording's time is divided into equal
//! intervals.

use serde_json::{json, Value};

use crate::output::Report;
use tr_insight::processes::label;
use tr_insight::waits::longest_off_cpu::{Longest, LongestOffCpu};
use tr_text::page::Page;
use tr_text::style::Style;
use tr_text::table::{Cell, Sheet, Table, Title};
use tr_text::units;
use tr_text::words::OFF_CPU;

fn table<'t, 'a>(found: &'t LongestOffCpu<'a>) -> Table<'t, &'t Longest<'a>> {
    let interval = found.interval;
    let from = move |row: &&'t Longest<'a>| row.number.saturating_mul(interval);
    Table::new("process", |row: &&'t Longest<'a>| label::label(row.process))
        .fact("interval", "from_ns", move |row| Cell::At(from(row)))
        .csv_key("interval_ns")
        .json_data("to_ns", move |row| from(row).saturating_add(interval))
        .fact("pid", "pid", |row| Cell::Id(row.process.pid.0))
        .place(0)
        .fact(OFF_CPU, "max_off_cpu_ns", |row| {
            Cell::wait(row.piece.length(), row.piece.whole_wait())
        })
        .fact("from", "start_ns", |row| {
            Cell::At(found.view.since(row.piece.from))
        })
        .fact("CPU", "cpu", |row| {
            let cpu = row.piece.before.cpu();
            Cell::known(cpu, |cpu| Cell::Id(cpu.0.into()))
        })
        .data("whole", |row| row.piece.whole_wait())
        .fact("times", "count", |row| Cell::Count(row.count))
        .named("process")
        .csv_only()
        .json_data("process", |row| label::whole(row.process))
}

impl Report for LongestOffCpu<'_> {
    fn page(&self, _style: &Style) -> Page {
        let mut out = Page::new();
        let top = self.view.ask.rows();
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
        out.table(&table(self).titled(name), self.longest(top));
        out
    }

    fn json(&self) -> Option<Value> {
        Some(json!({
            "interval_ns": self.interval,
            "cpu": self.view.ask.cpu.map(|cpu| cpu.0),
            "rows": table(self).rows(self.shown()),
        }))
    }

    fn sheet(&self) -> Sheet {
        table(self).sheet(self.shown())
    }
}
