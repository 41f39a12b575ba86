//! The first screen: what ran, how long, how parallel, where the CPU time
//! went, who waited, what failed.

use std::fmt::Write;

use tr_analyze::model::{Analysis, Process, Quality};
use tr_format::event::Stream;

use crate::query::{self, By, Row, Sort};
use crate::{escape, label, units};

/// How to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal.
    pub width: usize,
    /// With colours.
    pub color: bool,
    /// Rows of the table.
    pub top: usize,
    /// Its order.
    pub sort: Sort,
    /// What a row stands for.
    pub by: By,
}

/// Colours by meaning.
#[derive(Clone, Copy)]
enum Paint {
    Bold,
    Dim,
    Bad,
    Bar,
}

impl Style {
    fn paint(&self, paint: Paint, text: &str) -> String {
        let code = match paint {
            Paint::Bold => "1",
            Paint::Dim => "2",
            Paint::Bad => "31",
            Paint::Bar => "34",
        };
        if self.color && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

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

/// The report over the processes in these places. `file` is the trace's name.
pub fn render(analysis: &Analysis, chosen: &[usize], file: &str, style: &Style) -> String {
    let mut out = String::new();
    header(&mut out, analysis, file, style);
    warnings(&mut out, analysis, style);
    let programs = query::rows(analysis, chosen, By::Program, Sort::OnCpu);
    bars(&mut out, analysis, &programs, style);
    busy(&mut out, analysis, style);
    table(&mut out, analysis, chosen, style);
    if style.by != By::Program {
        by_program(&mut out, &programs, style);
    }
    failed(&mut out, analysis, chosen, style);
    peak(&mut out, analysis, chosen, style);
    contradictions(&mut out, analysis, style);
    out
}

/// Items behind a lead, as many lines as they need: nothing is cut out.
fn items(out: &mut String, lead: &str, items: &[String], between: &str, style: &Style) {
    let indent = units::width(lead);
    let mut text = lead.to_owned();
    let mut empty = true;
    for item in items {
        let more = units::width(&text) + units::width(between) + units::width(item);
        if !empty && more > style.width {
            line(out, text.trim_end(), style);
            text = " ".repeat(indent);
            empty = true;
        }
        if !empty {
            text.push_str(between);
        }
        text.push_str(item);
        empty = false;
    }
    line(out, &text, style);
}

/// A line, cut to the width.
fn line(out: &mut String, text: &str, style: &Style) {
    let _ = writeln!(out, "{}", units::shorten(text.trim_end(), style.width));
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
    let what = match meta.command.is_empty() {
        false => escape::command(meta.command.iter().map(Vec::as_slice)),
        true => match &meta.scope {
            tr_format::meta::Scope::All => {
                format!("the whole machine {}", escape::text(meta.host.as_bytes()))
            }
            tr_format::meta::Scope::Pids(_) => "the processes asked for".into(),
            _ => "the cgroup asked for".into(),
        },
    };
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
        items(out, "", &facts, " · ", style);
    }
    let events = analysis.events.iter().map(|(_, n)| n).sum();
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
    items(&mut text, "", &facts, " · ", style);
    if wall < analysis.whole {
        let at = |t: tr_format::event::Ktime| units::time(t.since(meta.start).max(1));
        let _ = writeln!(
            text,
            "only from {} to {} of {}; the line above is of the whole",
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

/// What makes the numbers less than whole, before the numbers.
fn warnings(out: &mut String, analysis: &Analysis, style: &Style) {
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
    if quality.clocks_unclear {
        said.push(
            "the CPUs' clocks disagree, and it is not clear by how much: times of tasks \
             that changed CPU are not certain"
                .into(),
        );
    }
    let times = &analysis.totals.times;
    // Less than that changes no answer; it stands with the other sums.
    if times.unknown.saturating_mul(100) >= times.sum().max(1) {
        said.push(format!(
            "{} of the processes' time ({}) is unknown",
            units::share(times.unknown, times.sum()),
            units::time(times.unknown)
        ));
    }
    for text in &said {
        let text = units::shorten(&format!("! {text}"), style.width);
        let _ = writeln!(out, "{}", style.paint(Paint::Bad, &text));
    }
    if !said.is_empty() {
        out.push('\n');
    }
}

/// A bar of eighths.
fn bar(part: u64, whole: u64, columns: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = if whole == 0 {
        0
    } else {
        (part as u128 * columns as u128 * 8 / whole as u128) as usize
    };
    let mut bar = "█".repeat(eighths / 8);
    bar.push_str(EIGHTHS.get(eighths % 8).copied().unwrap_or_default());
    if bar.is_empty() && part > 0 {
        bar.push('▏');
    }
    bar
}

/// Where the CPU time went, by program; then what all the time was.
fn bars(out: &mut String, analysis: &Analysis, programs: &[Row], style: &Style) {
    let times = &analysis.totals.times;
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
        let bar = bar(row.times.on_cpu, largest, columns);
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
    items(out, "All processes   ", &parts, " · ", style);
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
    items(out, "CPUs at once    ", &shown, " · ", style);
    out.push('\n');
}

fn table(out: &mut String, analysis: &Analysis, chosen: &[usize], style: &Style) {
    let rows = query::rows(analysis, chosen, style.by, style.sort);
    let unknown = rows.iter().any(|row| row.times.unknown > 0);
    let single = matches!(style.by, By::Process | By::Thread);
    let sorted = match style.sort {
        Sort::OnCpu => "CPU time",
        Sort::OffCpu => "time off CPU",
        Sort::Wall => "wall time",
        Sort::RunQueue => "waiting for a CPU",
        Sort::Sleep => "sleep",
        Sort::Blocked => "blocked time",
        Sort::Unknown => "unknown time",
        Sort::Rss => "memory",
        Sort::TreeCpu => "CPU time with descendants",
        Sort::Start => "start",
        Sort::Pid => "pid",
    };
    let what = match style.by {
        By::Process => "process",
        By::Thread => "thread",
        By::Program => "program",
        By::Comm => "comm",
        By::Cgroup => "cgroup",
        By::Depth => "depth in the tree",
    };
    let mut titles = vec!["CPU", "wall", "wait cpu", "blocked", "sleep"];
    if unknown {
        titles.push("unknown");
    }
    if style.sort == Sort::Rss {
        titles.push("memory");
    }
    if style.sort == Sort::TreeCpu {
        titles.push("CPU tree");
    }
    titles.extend(if single {
        ["exit", "pid"]
    } else {
        ["", "count"]
    });
    let cells = |row: &Row| {
        let mut cells = vec![
            units::time(row.times.on_cpu),
            units::time(row.wall),
            units::time(row.times.run_queue),
            units::time(row.times.blocked),
            units::time(row.times.sleep),
        ];
        if unknown {
            cells.push(units::time(row.times.unknown));
        }
        if style.sort == Sort::Rss {
            cells.push(row.max_rss.map_or("unknown".into(), units::bytes));
        }
        if style.sort == Sort::TreeCpu {
            cells.push(units::time(row.tree_cpu));
        }
        if single {
            cells.push(match row.status {
                Some(raw) if raw & 0x7f != 0 => format!("sig {}", raw & 0x7f),
                Some(raw) => (raw >> 8 & 0xff).to_string(),
                None if row.alive => "alive".into(),
                None => "?".into(),
            });
            cells.push(row.pid.map_or("?".into(), |pid| pid.to_string()));
        } else {
            cells.push(String::new());
            cells.push(units::count(row.count));
        }
        cells
    };
    let shown: Vec<(Vec<String>, &Row)> = rows
        .iter()
        .take(style.top)
        .map(|row| (cells(row), row))
        .collect();
    let widths: Vec<usize> = titles
        .iter()
        .enumerate()
        .map(|(at, title)| {
            let cell = shown
                .iter()
                .filter_map(|(cells, _)| cells.get(at))
                .map(|cell| units::width(cell))
                .max();
            cell.unwrap_or(0).max(units::width(title))
        })
        .collect();
    let join = |cells: &[String]| {
        let padded = cells
            .iter()
            .zip(&widths)
            .filter(|(_, w)| **w > 0)
            .map(|(cell, w)| units::pad(cell, *w, true));
        padded.collect::<Vec<_>>().join("  ")
    };
    let heads = join(&titles.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>());
    // Where no room is left beside the numbers, names go on.
    let room = style.width.saturating_sub(units::width(&heads) + 2).max(20);
    let title = format!(
        "{what} (top {} of {} by {sorted})",
        shown.len(),
        units::count(rows.len() as u64)
    );
    let _ = writeln!(
        out,
        "{}",
        style.paint(
            Paint::Bold,
            &format!("{heads}  {}", units::shorten(&title, room))
        )
    );
    for (cells, row) in shown {
        let bad = single && row.status.is_some_and(|raw| raw != 0);
        let name = units::shorten(&row.name, room);
        let text = format!("{}  {name}", join(&cells));
        let _ = writeln!(
            out,
            "{}",
            if bad {
                style.paint(Paint::Bad, &text)
            } else {
                text
            }
        );
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
        items(out, "by program   ", &parts, " · ", style);
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
        line(
            out,
            &format!(
                "Peak memory   {} in {}",
                units::bytes(rss),
                label::label(process)
            ),
            style,
        );
    }
}

/// Whose clock was corrected, and how far times can be wrong after that; nothing
/// when none had to be.
pub fn clocks(quality: &Quality) -> Vec<String> {
    let Some(clocks) = &quality.clocks else {
        return Vec::new();
    };
    let way = |ns: i64| match ns < 0 {
        true => format!("{} behind", units::time(ns.unsigned_abs())),
        false => format!("{} ahead", units::time(ns.unsigned_abs())),
    };
    let off = clocks
        .corrections
        .iter()
        .filter(|clock| clock.at_start != 0 || clock.at_end != 0);
    let mut parts: Vec<String> = off
        .map(|clock| {
            let (start, end) = (way(clock.at_start), way(clock.at_end));
            let drift = match start == end {
                true => String::new(),
                false => format!(" at first, {end} at last"),
            };
            let known = match clock.uncertainty {
                Some(ns) => format!("±{}", units::time(ns)),
                None => "or more".into(),
            };
            format!(
                "CPU {} was {start}{drift} ({known}), corrected",
                clock.cpu.0
            )
        })
        .collect();
    parts.push(match clocks.uncertainty {
        Some(ns) => format!("times are ±{}", units::time(ns)),
        None => "how far times can be wrong is not known".into(),
    });
    parts
}

/// What cannot be as the trace has it, so that some time had to be unknown.
fn contradictions(out: &mut String, analysis: &Analysis, style: &Style) {
    let counts = analysis.quality.violations.iter();
    let parts: Vec<String> = counts
        .map(|(what, count)| format!("{} × {what}", units::count(*count)))
        .collect();
    if !parts.is_empty() {
        items(out, "Contradictions   ", &parts, " · ", style);
    }
    let parts = clocks(&analysis.quality);
    if !parts.is_empty() {
        items(out, "Clocks   ", &parts, " · ", style);
    }
}
