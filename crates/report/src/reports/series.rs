//! The report on the time on a CPU of every process in every interval. The values of a process add up to its on-CPU
//! time, to the nanosecond. Without scheduling events, the time between two totals of a thread is divided evenly.

use serde_json::{json, Value};
use tr_analyze::model::{Basis, Process};

use crate::output::Report;
use tr_insight::cpu_time::{on_cpu, on_cpu_in_intervals};
use tr_insight::label;
use tr_insight::view::View;
use tr_text::page::{Page, Span};
use tr_text::strips::{fit, shade};
use tr_text::style::{Paint, Style};
use tr_text::table::Table;
use tr_text::units;

/// The length in nanoseconds of the report's intervals, unless `--interval` is given: 1 s.
const INTERVAL: u64 = 1_000_000_000;
/// The largest number of values in the report of CPU time per process and interval: they take some 200 MB of JSON. A
/// recording has at most the first number of `FEW`, plus the second for each of its events, so that a small forged file
/// has few values. The interval is doubled until they fit.
const VALUES: u64 = 1 << 20;
const FEW: (u64, u64) = (1 << 14, 64);

pub struct Series<'a> {
    view: View<'a>,
    /// The length in nanoseconds of the intervals for which the report has each process's CPU time.
    pub interval: u64,
    asked: u64,
    /// The largest number of values (processes times intervals with CPU time) that the report may have for this
    /// recording.
    most: u64,
    /// For each chosen process, its CPU time in the intervals. The processes are in the order of their starts.
    pub lines: Vec<ProcessSeries<'a>>,
}

pub struct ProcessSeries<'a> {
    pub process: &'a Process,
    /// The process's CPU time: pairs of an interval's number and the nanoseconds on a CPU in it. Intervals without CPU
    /// time are left out. Interval 0 begins at the start of the recording.
    pub values: Vec<(u64, u64)>,
}

impl<'a> Series<'a> {
    pub fn new(view: &View<'a>) -> Series<'a> {
        let asked = view.ask.interval.unwrap_or(INTERVAL).max(1);
        let processes: Vec<&Process> = view.processes().collect();
        let mut interval = asked;
        let stretches = |interval: u64| {
            let all = processes.iter();
            let all = all.flat_map(|process| on_cpu(view.analysis, process));
            all.fold(0u64, |sum, ran| {
                sum.saturating_add(((ran.to - ran.from) / interval).saturating_add(2))
            })
        };
        let (few, each) = FEW;
        let most = view.analysis.events.total().saturating_mul(each);
        let most = most.saturating_add(few).min(VALUES);
        while stretches(interval) > most && interval < u64::MAX / 2 {
            interval *= 2;
        }
        let lines = processes.into_iter().map(|process| ProcessSeries {
            process,
            values: on_cpu_in_intervals(view.analysis, process, interval),
        });
        Series {
            view: *view,
            interval,
            asked,
            most,
            lines: lines.collect(),
        }
    }

    /// The number of intervals from the start of the recording to the end of the analyzed span.
    pub fn intervals(&self) -> u64 {
        let length = self.view.since(self.view.analysis.end);
        length.div_ceil(self.interval)
    }

    pub fn first(&self) -> u64 {
        self.view.since(self.view.analysis.start) / self.interval
    }
}

impl Series<'_> {
    /// The line below the strips of the processes' CPU time that shows where they begin and end, in seconds since the
    /// start of the recording. It is `wide` columns wide.
    fn axis(&self, wide: usize) -> String {
        let from = units::at(self.first().saturating_mul(self.interval));
        let to = format!("{} s", units::at(self.view.since(self.view.analysis.end)));
        let room = wide.saturating_sub(units::width(&from) + units::width(&to));
        match room {
            0 => from,
            room => format!("{from}{:room$}{to}", ""),
        }
    }

    /// The chosen processes that have CPU time in the analyzed span, the one with the most CPU time first.
    fn ranked(&self) -> Vec<&ProcessSeries<'_>> {
        let mut lines: Vec<&ProcessSeries> = self.lines.iter().collect();
        lines.retain(|line| !line.values.is_empty());
        lines.sort_by_key(|line| {
            let p = line.process;
            (u64::MAX - p.times.on_cpu, p.start, p.pid)
        });
        lines
    }

    /// The processes whose CPU time per interval CSV and JSON have: all, or with `--top` those with the most CPU time.
    fn asked(&self) -> Vec<&ProcessSeries<'_>> {
        match self.view.ask.limit {
            None => self.lines.iter().collect(),
            Some(most) => self.ranked().into_iter().take(most).collect(),
        }
    }

    fn strip(&self, line: &ProcessSeries, columns: u64, each: u64, ascii: bool) -> String {
        let (first, last) = (self.first(), self.intervals());
        let cells = (last - first.min(last)).div_ceil(each);
        let mut sums = vec![0u64; usize::try_from(cells).unwrap_or(0)];
        for (number, ns) in &line.values {
            let at = usize::try_from(number.saturating_sub(first) / each).unwrap_or(usize::MAX);
            if let Some(sum) = sums.get_mut(at) {
                *sum = sum.saturating_add(*ns);
            }
        }
        let whole = self.interval.saturating_mul(each);
        let repeat = usize::try_from(columns).unwrap_or(1);
        let shades = sums.iter().map(|sum| shade(*sum, whole, ascii));
        shades
            .flat_map(|c| std::iter::repeat_n(c, repeat))
            .collect()
    }
}

impl Report for Series<'_> {
    fn page(&self, style: &Style) -> Page {
        use std::fmt::Write;
        let mut out = Page::new();
        let intervals = self.intervals() - self.first().min(self.intervals());
        // Label and sum stand before the strip.
        let names = (style.width / 3).clamp(16, 48);
        let room = style.width.saturating_sub(names + 12).max(10) as u64;
        let (columns, each) = fit(intervals, room);
        let end = if style.ascii { "@" } else { "█" };
        let mut title = format!(
            "On CPU, by process; a column is {}, {end} one whole CPU",
            units::time(self.interval.saturating_mul(each))
        );
        if columns > 1 {
            title = format!(
                "On CPU, by process; {columns} columns are {}, {end} one whole CPU",
                units::time(self.interval)
            );
        }
        if self.view.analysis.basis() != Basis::Events {
            title.push_str(", from samples");
        }
        if self.interval != self.asked {
            let _ = write!(title, " ({} is too fine)", units::time(self.asked));
        }
        out.wrapped(Paint::Bold, "", &title);
        let lines = self.ranked();
        if !lines.is_empty() {
            let wide = intervals.div_ceil(each).saturating_mul(columns);
            let axis = self.axis(usize::try_from(wide).unwrap_or(0));
            out.painted(Paint::Dim, &format!("{:1$}{axis}", "", names + 12));
        }
        for line in lines.iter().take(self.view.ask.top) {
            let name = units::shorten(&label::label(line.process), names);
            let strip = self.strip(line, columns, each, style.ascii);
            let lead = format!(
                "{}  {}  ",
                units::pad(&units::time(line.process.times.on_cpu), 8, true),
                units::pad(&name, names, false),
            );
            out.spans([lead.into(), Span::new(Paint::Bar, strip.trim_end())]);
        }
        out.more(lines.len(), self.view.ask.top, " processes");
        out
    }

    fn warning(&self, _text: bool) -> Option<String> {
        (self.interval != self.asked).then(|| {
            format!(
                "--interval {} would make more than {} rows: {} is used",
                units::time(self.asked),
                units::count(self.most),
                units::time(self.interval)
            )
        })
    }

    fn json(&self) -> Option<Value> {
        let processes = self.asked().into_iter().map(|line| {
            json!({
                "pid": line.process.pid.0,
                "label": label::label(line.process),
                "start_ns": self.view.since(line.process.start),
                "on_cpu_ns": line.process.times.on_cpu,
                "values": line.values,
            })
        });
        Some(json!({
            "interval_ns": self.interval,
            "first": self.first(),
            "intervals": self.intervals(),
            "processes": processes.collect::<Value>(),
        }))
    }

    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let interval = self.interval;
        let table = Table::new("", |(line, _): &(&ProcessSeries<'_>, (u64, u64))| {
            label::label(line.process)
        })
        .data("interval_start_ns", move |(_, (number, _))| {
            number.saturating_mul(interval)
        })
        .data("interval_ns", move |_| interval)
        .data("pid", |(line, _)| line.process.pid.0)
        .data("process_start_ns", |(line, _)| {
            self.view.since(line.process.start)
        })
        .data("on_cpu_ns", |(_, (_, ns))| *ns)
        .named("label");
        let lines = self.asked().into_iter();
        table.csv(lines.flat_map(|line| line.values.iter().map(move |value| (line, *value))))
    }
}
