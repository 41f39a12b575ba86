//! The report on memory: the largest resident sets, waits for memory, and processes that the kernel
//! killed for lack of it.

use std::cmp::Reverse;

use serde_json::{json, Value};
use tr_analyze::memory::{killed, Killed};
use tr_analyze::model::ThreadIx;
use tr_format::counters::{Counter, Counters};
use tr_format::meta::Known;

use crate::members;
use crate::output::Report;
use tr_insight::processes::label;
use tr_insight::resources::memory::{
    cgroup_peak, facts, largest, limit, samples, sum, MemorySum, Resident,
};
use tr_insight::views::members::{members, Members};
use tr_insight::views::query::By;
use tr_insight::views::view::View;
use tr_text::page::{Page, Span};
use tr_text::style::{Paint, Style};
use tr_text::table::{Cell, Sheet, Table};
use tr_text::{escape, units};

pub struct Memory<'a> {
    view: View<'a>,
    by: By,
    all: MemorySum,
    /// The rows of the report on memory, one for each process or group. Those with the largest
    /// resident sets come first.
    rows: Vec<(Members, MemorySum)>,
    killed: Vec<Killed>,
    samples: Vec<(u64, &'a Counters)>,
}

/// Adds the columns with resident sets and waits for memory to the table of the report on memory. A
/// column without any value is hidden from people.
fn figures<'a, R: 'a>(
    table: Table<'a, R>,
    of: fn(&R) -> &MemorySum,
    any: impl Fn(fn(&MemorySum) -> Option<u64>) -> bool,
) -> Table<'a, R> {
    type Figure = fn(&MemorySum) -> Option<u64>;
    let known =
        |figure: Figure, cell: fn(u64) -> Cell| move |row: &R| Cell::known(figure(of(row)), cell);
    let figures = |table: Table<'a, R>, title: &str, key: &str, figure: Figure, cell| {
        let column = table.fact(title, key, known(figure, cell));
        column.few().shown(any(figure))
    };
    let table = table.fact("peak", "peak_bytes", known(|sum| sum.peak, Cell::Bytes));
    let table = figures(
        table,
        "major",
        "major_faults",
        |sum| sum.major_faults,
        Cell::Count,
    );
    let table = figures(
        table,
        "reclaims",
        "reclaims",
        |sum| sum.reclaims,
        Cell::Count,
    );
    let table = figures(
        table,
        "reclaim",
        "reclaim_ns",
        |sum| sum.reclaimed,
        Cell::Time,
    );
    let table = figures(table, "swap", "swap_ns", |sum| sum.swapped, Cell::Time);
    table.data("oom_kills", move |row| of(row).killed)
}

impl<'a> Memory<'a> {
    pub fn new(view: &View<'a>) -> Memory<'a> {
        let analysis = view.analysis;
        let facts = facts(analysis);
        // The kernel counts memory for whole processes, so threads have no rows of their own.
        let by = view.ask.by.unwrap_or_default().of_processes();
        let mut rows: Vec<(Members, MemorySum)> = members(view, by)
            .into_iter()
            .map(|group| {
                let sum = sum(analysis, &group.threads, &facts);
                (group, sum)
            })
            .filter(|(_, sum)| !sum.is_empty())
            .collect();
        // Rows with waits for memory come first, because a wait says more than the size of a small process.
        rows.sort_by_key(|(_, sum)| Reverse((sum.killed, sum.waited_ms(), sum.peak)));
        let threads: Vec<ThreadIx> = view.threads().collect();
        let chosen = view.is_chosen();
        let is_chosen = |kill: &Killed| chosen[kill.process];
        Memory {
            view: *view,
            by,
            all: sum(analysis, &threads, &facts),
            rows,
            killed: killed(analysis).filter(is_chosen).collect(),
            samples: samples(analysis)
                .map(|(time, counters)| (view.since(*time), counters))
                .collect(),
        }
    }

    /// The largest of the sampled values of one of the machine's counters, in the counter's unit; `None` if the counter
    /// was not sampled.
    fn most(&self, counter: Counter) -> Option<u64> {
        let values = self
            .samples
            .iter()
            .filter_map(|(_, reading)| reading.get(counter));
        values.max()
    }

    fn head(&self) -> String {
        if let Some((peak, process)) = largest(self.view.processes()) {
            let peak = units::bytes(peak);
            return match self.by {
                By::Process => format!("Peak memory: {peak}, {}", label::label(process)),
                _ => format!("Peak memory of a process: {peak}"),
            };
        }
        let meta = &self.view.analysis.meta;
        match meta.facts().memory {
            Known::Absent => format!(
                "Peak memory: not known of a recording by {}",
                escape::raw(meta.recorded_by().as_bytes())
            ),
            _ => "Peak memory: not known before the processes' exits".to_owned(),
        }
    }

    /// Sentences about the memory of all recorded processes together, and about the limit and use
    /// of their cgroup.
    fn sums(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let resident = Resident::of(self.view.analysis);
        let words = match (resident.whole(), resident.least()) {
            (Some(most), _) => Some(format!(
                "at most {} resident, of readings a second apart",
                units::bytes(most)
            )),
            (None, least) => {
                least.map(|bytes| format!("at least {} resident", units::bytes(bytes)))
            }
        };
        lines.extend(words.map(|words| format!("All processes together: {words}")));
        let (least, used) = match cgroup_peak(self.view.analysis) {
            Some(peak) => ("", Some(peak)),
            None => ("at least ", self.most(Counter::CgroupMemory)),
        };
        if let (Some(used), Some(limit)) = (used, limit(self.view.analysis)) {
            let share = units::share(used, limit);
            let (used, limit) = (units::bytes(used), units::bytes(limit));
            lines.push(format!("The cgroup used {least}{used} of {limit}: {share}"));
        }
        if let Some(reclaims @ 1..) = self.all.reclaims {
            let time = units::time(self.all.reclaimed.unwrap_or(0));
            let times = units::plural(reclaims, "time", "times");
            lines.push(format!(
                "Threads reclaimed memory {times}, which took {time}"
            ));
        }
        lines
    }

    fn table(&self) -> Table<'_, &(Members, MemorySum)> {
        let any = |of: fn(&MemorySum) -> Option<u64>| {
            let mut values = self.rows.iter().map(|(_, sum)| of(sum));
            values.any(|value| value.is_some_and(|failures| failures > 0))
        };
        let table = members::table(self.by, |row: &&(Members, MemorySum)| &row.0);
        figures(table, |row| &row.1, any)
    }
}

impl Report for Memory<'_> {
    fn page(&self, _style: &Style) -> Page {
        let mut out = Page::new();
        out.wrapped(Paint::Bold, "", &self.head());
        for line in self.sums() {
            out.line(&line);
        }
        for kill in &self.killed {
            let process = self.view.analysis.process(kill.process);
            let resident = kill.resident.map(units::bytes);
            let resident =
                resident.map_or_else(String::new, |bytes| format!(" with {bytes} resident"));
            let at = units::at(self.view.since(kill.at));
            let what = format!(" (pid {}) at {at}{resident}", process.pid.0);
            let lead = Span::new(Paint::Bad, "Killed for lack of memory");
            out.named([lead, "   ".into()], label::label(process), 12, [what]);
        }
        if self.rows.is_empty() {
            return out;
        }
        let (title, most) = (self.by.title(), self.view.ask.rows());
        out.blank();
        out.first(self.table(), title, &self.rows, most);
        out
    }

    fn json(&self) -> Option<Value> {
        let analysis = self.view.analysis;
        let kills = self.killed.iter().map(|kill| {
            let process = analysis.process(kill.process);
            json!({
                "pid": process.pid.0,
                "process": label::whole(process),
                "at_ns": self.view.since(kill.at),
                "resident_bytes": kill.resident,
            })
        });
        let samples = self.view.asked(&self.samples).map(|(at, counters)| {
            json!({
                "at_ns": at,
                "resident_bytes": counters.get(Counter::Resident),
                "cgroup_bytes": counters.get(Counter::CgroupMemory),
                "available_bytes": counters.get(Counter::AvailableMemory),
            })
        });
        let more = json!({
            "resident_bytes": Resident::of(analysis).least(),
            "cgroup_bytes": self.most(Counter::CgroupMemory),
            "cgroup_peak_bytes": cgroup_peak(self.view.analysis),
            "cgroup_limit_bytes": limit(self.view.analysis),
            "kills": kills.collect::<Vec<_>>(),
            "rows": self.table().rows(self.view.asked(&self.rows)),
            "samples": samples.collect::<Vec<_>>(),
        });
        let all = figures(Table::unnamed(), |sum: &&MemorySum| *sum, |_| true);
        Some(tr_text::json::with(all.json(&&self.all), more))
    }

    fn sheet(&self) -> Sheet {
        self.table().sheet(self.view.asked(&self.rows))
    }
}
