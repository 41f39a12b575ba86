//! The report on the time on a CPU of every process in every interval. The recording's time is divided into equal
//! intervals.

use serde_json::{json, Value};
use tr_analyze::model::Basis;

use crate::output::Report;
use tr_insight::cpus::cpu_series::{CpuSeries, ProcessSeries};
use tr_insight::processes::label;
use tr_text::page::{Page, Span};
use tr_text::strips::{fit, shade};
use tr_text::style::{Paint, Style};
use tr_text::table::{Sheet, Table};
use tr_text::units;

/// The line below the strips of the processes' CPU time that shows at which times the strips begin and end, in seconds
/// since the start of the recording. The line is `wide` columns wide.
fn axis(series: &CpuSeries<'_>, wide: usize) -> String {
    let from = units::at(series.first().saturating_mul(series.interval));
    let to = format!(
        "{} s",
        units::at(series.view.since(series.view.analysis.end))
    );
    let room = wide.saturating_sub(units::width(&from) + units::width(&to));
    match room {
        0 => from,
        room => format!("{from}{:room$}{to}", ""),
    }
}

/// A process's CPU time as a strip of shades. Every `each` intervals get one shade, which is `columns` columns wide.
fn strip(
    series: &CpuSeries<'_>,
    line: &ProcessSeries<'_>,
    columns: u64,
    each: u64,
    ascii: bool,
) -> String {
    let (first, last) = (series.first(), series.intervals());
    let cells = (last - first.min(last)).div_ceil(each);
    let mut sums = vec![0u64; usize::try_from(cells).unwrap_or(0)];
    for (number, ns) in &line.values {
        let at = usize::try_from(number.saturating_sub(first) / each).unwrap_or(usize::MAX);
        if let Some(sum) = sums.get_mut(at) {
            *sum = sum.saturating_add(*ns);
        }
    }
    let whole = series.interval.saturating_mul(each);
    let repeat = usize::try_from(columns).unwrap_or(1);
    let shades = sums.iter().map(|sum| shade(*sum, whole, ascii));
    shades
        .flat_map(|c| std::iter::repeat_n(c, repeat))
        .collect()
}

impl Report for CpuSeries<'_> {
    fn page(&self, style: &Style) -> Page {
        use std::fmt::Write;
        let mut out = Page::new();
        let intervals = self.intervals() - self.first().min(self.intervals());
        // The label and the sum of a process stand before its strip, which gets the rest of the width.
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
            let axis = axis(self, usize::try_from(wide).unwrap_or(0));
            out.painted(Paint::Dim, &format!("{:1$}{axis}", "", names + 12));
        }
        for line in lines.iter().take(self.view.ask.rows()) {
            let name = units::shorten(&label::label(line.process), names);
            let strip = strip(self, line, columns, each, style.ascii);
            let lead = format!(
                "{}  {}  ",
                units::pad(&units::time(line.process.times.on_cpu), 8, true),
                units::pad(&name, names, false),
            );
            out.spans([lead.into(), Span::new(Paint::Bar, strip.trim_end())]);
        }
        out.more(lines.len(), self.view.ask.rows(), " processes");
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
        let processes = self.shown().into_iter().map(|line| {
            json!({
                "pid": line.process.pid.0,
                "label": label::whole(line.process),
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

    fn sheet(&self) -> Sheet {
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
        let lines = self.shown().into_iter();
        table.sheet(lines.flat_map(|line| line.values.iter().map(move |value| (line, *value))))
    }
}
