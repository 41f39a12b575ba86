//! The first screen: what ran, how long, how parallel, where the CPU time
//! went, who waited, what failed.

use std::fmt::Write;

use serde_json::Value;
use tr_analyze::model::{Analysis, Process, Quality};
use tr_format::event::Stream;
use tr_format::meta::Scope;

use crate::query::{self, By, Row, Sort};
use crate::reports::{critical_path, Report, View};
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};
use crate::{escape, label, units, who};

/// `exit 0`, `killed by SIGKILL`.
pub fn status(raw: u32) -> String {
    const NAMES: [&str; 16] = [
        "", "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV",
        "USR2", "PIPE", "ALRM", "TERM",
    ];
    let signal = raw & 0x7f;
    if signal == 0 {
        return format!("exit {}", raw >> 8 & 0xff);
    }
    let name = match NAMES.get(signal as usize) {
        Some(name) => format!("SIG{name}"),
        None => format!("signal {signal}"),
    };
    let core = if raw & 0x80 != 0 {
        " (core dumped)"
    } else {
        ""
    };
    format!("killed by {name}{core}")
}

/// Up to how many events the first screen shows the critical path. It takes
/// the timeline, some 60 bytes an event at the peak, where all else grows with
/// the tasks: a trace of a million events is read in 16 MB without it, and in 60
/// with it. A larger one is asked for its path by name.
pub const PATH_UP_TO: u64 = 1_000_000;

/// The report.
pub struct Top<'a> {
    view: View<'a>,
    by: By,
    sort: Sort,
}

impl<'a> Top<'a> {
    /// Over the processes that were chosen.
    pub fn new(view: &View<'a>) -> Top<'a> {
        Top {
            view: *view,
            by: view.ask.by.unwrap_or_default(),
            sort: view.ask.sort.unwrap_or_default(),
        }
    }

    /// What the time from exec to exit went to, and that time: of all
    /// processes, when the timeline was kept.
    fn path(&self) -> Option<(Vec<critical_path::Share>, u64)> {
        let analysis = self.view.analysis;
        if analysis.events.total() > PATH_UP_TO || self.view.chosen.len() < analysis.processes.len()
        {
            return None;
        }
        let path = critical_path::path_of(&self.view).ok()?;
        let groups = critical_path::groups(analysis);
        let shares = critical_path::shares(analysis, &groups, &path);
        Some((shares, path.length()))
    }

    /// The first of the table's rows, and how many there are.
    fn rows(&self, most: usize) -> (Vec<Row>, usize) {
        let View {
            analysis,
            chosen,
            ask,
            ..
        } = self.view;
        query::first_rows(analysis, chosen, (self.by, self.sort, &ask.groups), most)
    }
}

impl Report for Top<'_> {
    fn text(&self, style: &Style) -> String {
        let View {
            analysis,
            chosen,
            file,
            ..
        } = self.view;
        let mut out = String::new();
        header(&mut out, analysis, file, style);
        warn(&mut out, analysis, style);
        let programs = query::rows(analysis, chosen, By::Program, Sort::OnCpu, &[]);
        match self.path() {
            Some((shares, whole)) => {
                let title = format!("The {} went to", units::time(whole));
                let title = style.paint(Paint::Bold, &title);
                let _ = writeln!(
                    out,
                    "{title}   {}",
                    style.paint(Paint::Dim, "(critical path)")
                );
                critical_path::bars(&mut out, &shares, whole, 7, style);
            }
            None => bars(&mut out, &programs, style),
        }
        all_processes(&mut out, analysis, style);
        busy(&mut out, analysis, style);
        self.table(&mut out, style);
        if self.by != By::Program {
            by_program(&mut out, &programs, style);
        }
        failed(&mut out, analysis, chosen, style);
        peak(&mut out, analysis, chosen, style);
        trust(&mut out, analysis, style);
        let found = contradictions(analysis);
        if !found.is_empty() {
            style.items(&mut out, "Contradictions   ", &found, " · ");
        }
        out
    }

    /// Every document has it.
    fn json(&self) -> serde_json::Result<Option<Value>> {
        Ok(None)
    }

    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let mut table = Table::keyed([
            "name",
            "count",
            "pid",
            "start_ns",
            "wall_ns",
            "on_cpu_ns",
            "run_queue_ns",
            "sleep_ns",
            "blocked_ns",
            "unknown_ns",
            "tree_on_cpu_ns",
            "max_rss_bytes",
            "exit_code",
            "signal",
        ]);
        for row in self.rows(self.view.ask.most()).0 {
            let code = row.status.filter(|s| s & 0x7f == 0).map(|s| s >> 8 & 0xff);
            let signal = row.status.map(|s| s & 0x7f).filter(|s| *s != 0);
            let times = &row.times;
            let cells = vec![
                Cell::Text(row.name),
                Cell::Count(row.count),
                Cell::known(row.pid, Cell::Id),
                Cell::At(row.start),
                Cell::Time(row.wall),
                Cell::Time(times.on_cpu),
                Cell::Time(times.run_queue),
                Cell::Time(times.sleep),
                Cell::Time(times.blocked),
                Cell::Time(times.unknown),
                Cell::Time(row.tree_cpu),
                Cell::known(row.max_rss, Cell::Bytes),
                Cell::known(code, Cell::Id),
                Cell::known(signal, Cell::Id),
            ];
            table.record(cells);
        }
        table.csv()
    }
}

fn header(out: &mut String, analysis: &Analysis, file: &str, style: &Style) {
    let meta = &analysis.meta;
    let wall = analysis.end.since(analysis.start);
    let cpu = analysis.totals.times.on_cpu;
    let busy = if wall > 0 {
        cpu as f64 / wall as f64
    } else {
        0.0
    };
    let mut what = who::recorded(meta);
    if meta.command.is_empty() && meta.scope == Scope::All {
        what = format!("{what} {}", escape::text(meta.host.as_bytes()));
    }
    let mut facts = Vec::new();
    match analysis.summary.as_ref().map(|summary| summary.status) {
        Some(Some(raw)) => facts.push(status(raw)),
        Some(None) => {}
        None => facts.push("no end".into()),
    }
    let of = if analysis.meta.cpus.len() == 1 {
        "CPU"
    } else {
        "CPUs"
    };
    facts.push(units::time(wall));
    facts.push(format!("{} of CPU", units::time(cpu)));
    facts.push(format!("{busy:.2} of {} {of} busy", meta.cpus.len()));
    let all = facts.join(" · ");
    let room = style.width.saturating_sub(units::width(&all) + 2);
    if units::width(&what) <= room {
        let space = " ".repeat(style.width - units::width(&what) - units::width(&all));
        let _ = writeln!(out, "{}{space}{all}", style.paint(Paint::Bold, &what));
    } else {
        let _ = writeln!(
            out,
            "{}",
            style.paint(Paint::Bold, &units::shorten(&what, style.width))
        );
        style.items(out, "", &facts, " · ");
    }
    let events = analysis.events.total();
    let lost = match (
        analysis.quality.lost.is_empty(),
        analysis.quality.lost_unknown,
    ) {
        (true, _) => "none lost".into(),
        (false, false) => format!("{} lost", units::count(analysis.quality.lost_events)),
        (false, true) => "some lost".into(),
    };
    let kernel: Vec<&str> = meta.kernel.split(' ').take(2).collect();
    let facts = [
        escape::text(file.as_bytes()),
        units::date(meta.start_clock.real),
        escape::text(kernel.join(" ").as_bytes()),
        match analysis.totals.processes {
            1 => "1 process".into(),
            n => format!("{} processes", units::count(n)),
        },
        format!("{} events, {lost}", units::count(events)),
    ];
    let mut text = String::new();
    style.items(&mut text, "", &facts, " · ");
    if wall < analysis.whole {
        let at = |t: tr_format::event::Ktime| units::at(t.since(meta.start));
        let _ = writeln!(
            text,
            "only from {} s to {} s of {}; the events are those of the whole",
            at(analysis.start),
            at(analysis.end),
            units::time(analysis.whole)
        );
    }
    for line in text.lines() {
        let _ = writeln!(out, "{}", style.paint(Paint::Dim, line));
    }
    out.push('\n');
}

/// What makes the numbers less than whole.
pub(crate) fn warnings(analysis: &Analysis) -> Vec<String> {
    let mut said = Vec::new();
    let quality = &analysis.quality;
    let at =
        |t: tr_format::event::Ktime| format!("{:.3} s", t.since(analysis.meta.start) as f64 / 1e9);
    if let Some(truncated) = &quality.truncated {
        said.push(format!(
            "the trace has no proper end ({truncated}); everything up to {} is shown",
            at(analysis.end)
        ));
    }
    const MOST: usize = 5;
    for span in quality.lost.iter().take(MOST) {
        let count = span.count.map_or("some".into(), units::count);
        let stream = match span.stream {
            Stream::Cpu(cpu) => format!("events of CPU {}", cpu.0),
            _ => "forks, execs or exits".into(),
        };
        said.push(format!(
            "{count} {stream} are missing between {} and {}",
            at(span.since),
            at(span.until)
        ));
    }
    if quality.lost.len() > MOST {
        said.push(format!(
            "and {} more spans with missing events",
            quality.lost.len() - MOST
        ));
    }
    said.extend(clocks(quality).map(|clocks| format!("the CPUs' clocks disagree: {clocks}")));
    let times = &analysis.totals.times;
    // Less than that changes no answer; it stands with the other sums.
    if times.unknown.saturating_mul(100) >= times.sum().max(1) {
        said.push(format!(
            "{} of the processes' time ({}) is unknown",
            units::share(times.unknown, times.sum()),
            units::time(times.unknown)
        ));
    }
    said
}

/// The warnings stand before the numbers.
fn warn(out: &mut String, analysis: &Analysis, style: &Style) {
    let said = warnings(analysis);
    for text in &said {
        let text = units::shorten(&format!("! {text}"), style.width);
        let _ = writeln!(out, "{}", style.paint(Paint::Bad, &text));
    }
    if !said.is_empty() {
        out.push('\n');
    }
}

/// Where the CPU time went, by program.
fn bars(out: &mut String, programs: &[Row], style: &Style) {
    let whole: u64 = programs.iter().map(|row| row.times.on_cpu).sum();
    if whole == 0 {
        return;
    }
    let _ = writeln!(
        out,
        "{}",
        style.paint(Paint::Bold, "Where the CPU time went")
    );
    let shown: Vec<&Row> = programs
        .iter()
        .take(6)
        .filter(|row| row.times.on_cpu.saturating_mul(200) >= whole)
        .collect();
    let names = shown
        .iter()
        .map(|row| units::width(&row.name))
        .max()
        .unwrap_or(0)
        .min(24);
    let columns = style.width.saturating_sub(names + 34).clamp(8, 40);
    let largest = shown.first().map_or(1, |row| row.times.on_cpu);
    for row in shown {
        let bar = style.bar(row.times.on_cpu, largest, columns);
        let _ = writeln!(
            out,
            "  {}  {}  {}  {}  {:>6} ×",
            units::pad(&units::shorten(&row.name, names), names, false),
            style.paint(Paint::Bar, &units::pad(&bar, columns, false)),
            units::pad(&units::time(row.times.on_cpu), 9, true),
            units::pad(&units::share(row.times.on_cpu, whole), 5, true),
            units::count(row.count),
        );
    }
}

/// What all processes' time was.
fn all_processes(out: &mut String, analysis: &Analysis, style: &Style) {
    let times = &analysis.totals.times;
    if times.on_cpu == 0 {
        return;
    }
    let mut parts = vec![format!("on CPU {}", units::time(times.on_cpu))];
    for (what, ns) in [
        ("waited for a CPU", times.run_queue),
        ("blocked", times.blocked),
        ("asleep", times.sleep),
        ("unknown", times.unknown),
    ] {
        if ns > 0 {
            parts.push(format!("{what} {}", units::time(ns)));
        }
    }
    style.items(out, "All processes   ", &parts, " · ");
}

/// How many CPUs this build kept busy, and for how long.
fn busy(out: &mut String, analysis: &Analysis, style: &Style) {
    let whole: u64 = analysis.concurrency.iter().sum();
    if whole == 0 {
        return;
    }
    let parts: Vec<String> = analysis
        .concurrency
        .iter()
        .enumerate()
        .filter(|(_, ns)| **ns > 0)
        .map(|(n, ns)| format!("{n} for {}", units::share(*ns, whole)))
        .collect();
    // On a large machine only the shape matters.
    let shown = match parts.len() {
        0..=9 => parts,
        n => {
            let mut ends = parts.get(..4).unwrap_or_default().to_vec();
            ends.push("…".into());
            ends.extend_from_slice(parts.get(n - 4..).unwrap_or_default());
            ends
        }
    };
    style.items(out, "CPUs at once    ", &shown, " · ");
    out.push('\n');
}

/// How a process ended, in a column.
pub fn exit_cell(status: Option<u32>, alive: bool) -> Cell {
    match status {
        Some(raw) if raw & 0x7f != 0 => Cell::Text(format!("sig {}", raw & 0x7f)),
        Some(raw) => Cell::Id(raw >> 8 & 0xff),
        None if alive => Cell::from("alive"),
        None => Cell::Unknown,
    }
}

impl Top<'_> {
    fn table(&self, out: &mut String, style: &Style) {
        let (shown, all) = self.rows(self.view.ask.top);
        let (by, sort) = (self.by, self.sort);
        let View {
            analysis, chosen, ..
        } = self.view;
        let mut processes = chosen.iter().filter_map(|at| analysis.processes.get(*at));
        let unknown = processes.any(|process| process.times.unknown > 0);
        let single = matches!(by, By::Process | By::Thread);
        let title = format!(
            "{} (top {} of {} by {})",
            by.title(),
            shown.len(),
            units::count(all as u64),
            sort.title()
        );
        let mut table = Table::new()
            .column("CPU", "")
            .column("wall", "")
            .column("wait cpu", "")
            .column("blocked", "")
            .column("sleep", "");
        let more = [
            (unknown, "unknown"),
            (sort == Sort::Rss, "memory"),
            (sort == Sort::TreeCpu, "CPU tree"),
            (single, "exit"),
            (single, "pid"),
            (!single, "count"),
        ];
        for (_, title) in more.iter().filter(|(wanted, _)| *wanted) {
            table = table.column(*title, "");
        }
        let mut table = table.name(title, "");
        for row in shown {
            let mut cells = vec![
                Cell::Time(row.times.on_cpu),
                Cell::Time(row.wall),
                Cell::Time(row.times.run_queue),
                Cell::Time(row.times.blocked),
                Cell::Time(row.times.sleep),
            ];
            if unknown {
                cells.push(Cell::Time(row.times.unknown));
            }
            if sort == Sort::Rss {
                cells.push(Cell::known(row.max_rss, Cell::Bytes));
            }
            if sort == Sort::TreeCpu {
                cells.push(Cell::Time(row.tree_cpu));
            }
            if single {
                cells.push(exit_cell(row.status, row.alive));
                cells.push(Cell::known(row.pid, Cell::Id));
            } else {
                cells.push(Cell::Count(row.count));
            }
            let bad = single && row.status.is_some_and(|raw| raw != 0);
            let paint = if bad { Paint::Bad } else { Paint::Plain };
            table.row(cells, row.name, paint);
        }
        out.push_str(&table.text(style, 0));
    }
}

fn by_program(out: &mut String, programs: &[Row], style: &Style) {
    let parts: Vec<String> = programs
        .iter()
        .take(8)
        .map(|row| {
            format!(
                "{} {} × {}",
                row.name,
                units::count(row.count),
                units::time(row.times.on_cpu)
            )
        })
        .collect();
    if !parts.is_empty() {
        style.items(out, "by program   ", &parts, " · ");
    }
}

fn failed(out: &mut String, analysis: &Analysis, chosen: &[usize], style: &Style) {
    const MOST: usize = 8;
    let processes: Vec<&Process> = chosen
        .iter()
        .filter_map(|at| analysis.processes.get(*at))
        .filter(|process| process.status.is_some_and(|raw| raw != 0))
        .collect();
    if processes.is_empty() {
        return;
    }
    out.push('\n');
    for process in processes.iter().take(MOST) {
        let after = units::time(process.end.since(process.start));
        let fact = format!(
            "{} after {after} (pid {})",
            status(process.status.unwrap_or(0)),
            process.pid.0
        );
        let room = style.width.saturating_sub(units::width(&fact) + 12).max(20);
        let what = units::shorten(&label::label(process), room);
        let _ = writeln!(
            out,
            "{}   {what}   {fact}",
            style.paint(Paint::Bad, "Failed")
        );
    }
    if processes.len() > MOST {
        let _ = writeln!(
            out,
            "         and {} more",
            units::count((processes.len() - MOST) as u64)
        );
    }
}

fn peak(out: &mut String, analysis: &Analysis, chosen: &[usize], style: &Style) {
    let processes = chosen.iter().filter_map(|at| analysis.processes.get(*at));
    let largest = processes
        .filter_map(|process| Some((process.max_rss?, process)))
        .max_by(|(a, x), (b, y)| {
            a.cmp(b)
                .then_with(|| y.start.cmp(&x.start))
                .then_with(|| y.pid.cmp(&x.pid))
        });
    if let Some((rss, process)) = largest {
        let text = format!(
            "Peak memory   {} in {}",
            units::bytes(rss),
            label::label(process)
        );
        style.line(out, &text);
    }
}

/// How far the trace can be trusted: what is missing, what is not known, how
/// far out of order and how late the events were written.
fn trust(out: &mut String, analysis: &Analysis, style: &Style) {
    let quality = &analysis.quality;
    let spans = quality.lost.len() as u64;
    let contradictions: u64 = quality.anomalies.iter().map(|(_, count)| count).sum();
    let of = |n: u64, one: &str, more: &str| match n {
        0 => format!("no {more}"),
        1 => format!("1 {one}"),
        n => format!("{} {more}", units::count(n)),
    };
    let mut parts = vec![
        of(spans, "lost span", "lost spans"),
        match analysis.totals.times.unknown {
            0 => "no unknown time".to_owned(),
            unknown => format!("{} unknown", units::time(unknown)),
        },
        of(contradictions, "contradiction", "contradictions"),
        match quality.largest_inversion {
            0 => "rings in order".to_owned(),
            back => format!("rings out of order by up to {}", units::time(back)),
        },
    ];
    if quality.latest_write > 0 {
        let late = units::time(quality.latest_write);
        parts.push(format!("latest write at least {late} late"));
    }
    style.items(out, "Trace   ", &parts, " · ");
}

/// The disagreement of the CPUs' clocks, if there is one.
pub fn clocks(quality: &Quality) -> Option<String> {
    quality.clocks.map(|clocks| {
        format!(
            "CPU {} and CPU {} by at least {} ({} impossible orders of events): all times are \
             doubtful",
            clocks.cpus.0 .0,
            clocks.cpus.1 .0,
            units::time(clocks.by),
            units::count(clocks.impossible_orders)
        )
    })
}

/// What cannot be as the trace has it, so that some time had to be unknown.
pub(crate) fn contradictions(analysis: &Analysis) -> Vec<String> {
    let counts = analysis.quality.anomalies.iter();
    counts
        .map(|(what, count)| format!("{} × {what}", units::count(*count)))
        .collect()
}
