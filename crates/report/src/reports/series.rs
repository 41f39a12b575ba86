//! On-CPU time of every process in every interval. The values of a process add
//! up to its on-CPU time, to the nanosecond.

use serde::Serialize;
use serde_json::Value;
use tr_analyze::model::{Analysis, Process, ThreadIx};
use tr_analyze::timeline::Bucket;

use crate::reports::{Report, View};
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};
use crate::{label, units};

/// The interval that is taken when none is asked for: 1 s.
pub const INTERVAL: u64 = 1_000_000_000;
/// So many values are kept; where there would be more, the interval is doubled
/// until there are not.
const VALUES: u64 = 1 << 24;

/// The report.
pub struct Series<'a> {
    view: View<'a>,
    /// In ns.
    pub interval: u64,
    /// What was asked for.
    asked: u64,
    /// The chosen processes, in order of start.
    pub lines: Vec<Line<'a>>,
}

/// One process.
pub struct Line<'a> {
    /// Whose.
    pub process: &'a Process,
    /// Number of the interval, ns on a CPU in it; in order, none is 0. Interval
    /// 0 begins at the start of the recording.
    pub values: Vec<(u64, u64)>,
}

impl<'a> Series<'a> {
    /// Of the processes that were chosen.
    pub fn new(view: &View<'a>) -> Series<'a> {
        let asked = view.ask.interval.unwrap_or(INTERVAL).max(1);
        let chosen = view.chosen.iter();
        let processes: Vec<&Process> = chosen
            .filter_map(|at| view.analysis.processes.get(*at))
            .collect();
        let mut interval = asked;
        let stretches = |interval: u64| {
            let all = processes.iter();
            let all = all.flat_map(|process| on_cpu(view.analysis, process));
            all.fold(0u64, |sum, (from, to)| {
                sum.saturating_add((to - from) / interval + 2)
            })
        };
        while stretches(interval) > VALUES && interval < u64::MAX / 2 {
            interval *= 2;
        }
        let lines = processes.into_iter().map(|process| Line {
            process,
            values: values(view.analysis, process, interval),
        });
        Series {
            view: *view,
            interval,
            asked,
            lines: lines.collect(),
        }
    }

    /// How many intervals there are from the start of the recording to the end
    /// of the span.
    pub fn intervals(&self) -> u64 {
        let analysis = self.view.analysis;
        let length = analysis.end.since(analysis.meta.start);
        length.div_ceil(self.interval)
    }

    /// The first interval of the span.
    pub fn first(&self) -> u64 {
        let analysis = self.view.analysis;
        analysis.start.since(analysis.meta.start) / self.interval
    }
}

/// A process's stretches on a CPU, thread by thread, in ns since the start of
/// the recording.
fn on_cpu<'a>(
    analysis: &'a Analysis,
    process: &'a Process,
) -> impl Iterator<Item = (u64, u64)> + 'a {
    let zero = analysis.meta.start;
    let threads = process.threads.iter();
    let timeline = analysis.timeline.iter();
    timeline
        .flat_map(move |timeline| {
            let threads = threads.clone();
            threads.flat_map(|thread: &ThreadIx| timeline.of(*thread))
        })
        .filter(|stretch| matches!(stretch.doing, Bucket::OnCpu(_)))
        .map(move |stretch| (stretch.from.since(zero), stretch.to.since(zero)))
}

fn values(analysis: &Analysis, process: &Process, interval: u64) -> Vec<(u64, u64)> {
    let mut values: Vec<(u64, u64)> = Vec::new();
    for (from, to) in on_cpu(analysis, process) {
        let mut from = from;
        while from < to {
            let number = from / interval;
            let end = number.saturating_add(1).saturating_mul(interval).min(to);
            match values.last_mut() {
                Some((last, ns)) if *last == number => *ns += end - from,
                _ => values.push((number, end - from)),
            }
            from = end;
        }
    }
    // Each thread's are in order; together they have to be merged.
    values.sort_unstable();
    values.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
    values
}

/// How full a character is: of one CPU, or of more for several threads.
fn shade(part: u64, whole: u64, ascii: bool) -> char {
    const FINE: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const PLAIN: [char; 9] = [' ', '.', ':', '-', '=', '+', '*', '#', '@'];
    let steps = if ascii { PLAIN } else { FINE };
    if part == 0 || whole == 0 {
        return ' ';
    }
    let at = (u128::from(part) * 8).div_ceil(u128::from(whole)).min(8);
    let at = usize::try_from(at).unwrap_or(8);
    steps.get(at).copied().unwrap_or(' ')
}

/// Columns of a strip for each interval, and intervals for each column: one of
/// the two is 1.
fn fit(intervals: u64, room: u64) -> (u64, u64) {
    let intervals = intervals.max(1);
    match room / intervals {
        0 => (1, intervals.div_ceil(room.max(1))),
        // Wider than that tells no more.
        columns => (columns.min(4), 1),
    }
}

impl Series<'_> {
    /// Those with time on a CPU, the one with the most first.
    fn ranked(&self) -> Vec<&Line<'_>> {
        let mut lines: Vec<&Line> = self.lines.iter().collect();
        lines.retain(|line| !line.values.is_empty());
        lines.sort_by_key(|line| {
            let p = line.process;
            (u64::MAX - p.times.on_cpu, p.start, p.pid)
        });
        lines
    }

    /// For CSV and JSON: all, or as many of the first as were asked for.
    fn asked(&self) -> Vec<&Line<'_>> {
        match self.view.ask.limit {
            None => self.lines.iter().collect(),
            Some(most) => self.ranked().into_iter().take(most).collect(),
        }
    }

    fn strip(&self, line: &Line, columns: u64, each: u64, ascii: bool) -> String {
        let (first, last) = (self.first(), self.intervals());
        let cells = (last - first.min(last)).div_ceil(each);
        let mut sums = vec![0u64; usize::try_from(cells).unwrap_or(0)];
        for (number, ns) in &line.values {
            let at = usize::try_from(number.saturating_sub(first) / each).unwrap_or(usize::MAX);
            if let Some(sum) = sums.get_mut(at) {
                *sum += ns;
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
    fn text(&self, style: &Style) -> String {
        use std::fmt::Write;
        let mut out = String::new();
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
        if self.interval != self.asked {
            let _ = write!(title, " ({} is too fine)", units::time(self.asked));
        }
        let title = units::shorten(&title, style.width);
        let _ = writeln!(out, "{}", style.paint(Paint::Bold, &title));
        let lines = self.ranked();
        for line in lines.iter().take(self.view.ask.top) {
            let name = units::shorten(&label::label(line.process), names);
            let strip = self.strip(line, columns, each, style.ascii);
            let _ = writeln!(
                out,
                "{}  {}  {}",
                units::pad(&units::time(line.process.times.on_cpu), 8, true),
                units::pad(&name, names, false),
                style.paint(Paint::Bar, strip.trim_end()),
            );
        }
        if lines.len() > self.view.ask.top {
            let more = units::count((lines.len() - self.view.ask.top) as u64);
            style.line(&mut out, &format!("and {more} more processes"));
        }
        out
    }

    fn json(&self) -> serde_json::Result<Option<Value>> {
        #[derive(Serialize)]
        struct All<'a> {
            interval_ns: u64,
            first: u64,
            intervals: u64,
            processes: Vec<Row<'a>>,
        }
        #[derive(Serialize)]
        struct Row<'a> {
            pid: u32,
            label: String,
            start_ns: u64,
            on_cpu_ns: u64,
            values: &'a [(u64, u64)],
        }
        let zero = self.view.analysis.meta.start;
        let rows = self.asked().into_iter().map(|line| Row {
            pid: line.process.pid.0,
            label: label::label(line.process),
            start_ns: line.process.start.since(zero),
            on_cpu_ns: line.process.times.on_cpu,
            values: &line.values,
        });
        serde_json::to_value(All {
            interval_ns: self.interval,
            first: self.first(),
            intervals: self.intervals(),
            processes: rows.collect(),
        })
        .map(Some)
    }

    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let mut table = Table::keyed([
            "interval_start_ns",
            "interval_ns",
            "pid",
            "process_start_ns",
            "on_cpu_ns",
            "label",
        ]);
        let zero = self.view.analysis.meta.start;
        for line in self.asked() {
            let name = label::label(line.process);
            for (number, ns) in &line.values {
                let cells = vec![
                    Cell::At(number.saturating_mul(self.interval)),
                    Cell::Time(self.interval),
                    Cell::Id(line.process.pid.0),
                    Cell::At(line.process.start.since(zero)),
                    Cell::Time(*ns),
                    Cell::Text(name.clone()),
                ];
                table.record(cells);
            }
        }
        table.csv()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_little_shows_and_more_than_all_is_full() {
        let fine = |part| shade(part, 100, false);
        assert_eq!(
            [fine(0), fine(1), fine(13), fine(100), fine(900)],
            [' ', '▁', '▂', '█', '█']
        );
        assert_eq!(shade(50, 100, true), '=');
    }

    #[test]
    fn strips_fit() {
        assert_eq!(fit(17, 40), (2, 1));
        assert_eq!(fit(5, 40), (4, 1));
        assert_eq!(fit(41, 40), (1, 2));
        assert_eq!(fit(1_000_000, 40), (1, 25_000));
        assert_eq!(fit(0, 0), (1, 1));
    }
}
