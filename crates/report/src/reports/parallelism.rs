//! How much ran at once, how much wanted to, and what ran alone.

use std::fmt::Write;

use serde::Serialize;
use serde_json::Value;
use tr_analyze::critical_path::NoPath;
use tr_analyze::model::{Analysis, Process};
use tr_analyze::parallelism::{self, Alone, Idle, Parallelism};
use tr_analyze::programs::{Group, Groups};

use crate::reports::{critical_path, View};
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};
use crate::{label, units};

/// The report.
pub struct Report<'a> {
    view: View<'a>,
    groups: Groups,
    found: Result<Parallelism, NoPath>,
}

impl<'a> Report<'a> {
    /// Counts.
    pub fn new(view: &View<'a>) -> Report<'a> {
        let groups = critical_path::groups(view.analysis);
        let path = critical_path::path_of(view).ok();
        let longest = view.ask.top.max(1);
        let found = parallelism::parallelism(view.analysis, &groups, path.as_ref(), longest);
        Report {
            view: *view,
            groups,
            found,
        }
    }

    fn cpus(&self) -> usize {
        self.view.analysis.meta.cpus.len()
    }

    /// How long how many ran, and how many could have.
    fn at_once(&self, out: &mut String, found: &Parallelism, style: &Style) {
        let rows = levels(found, self.cpus());
        let whole: u64 = found.running.iter().sum();
        let columns = style.width.saturating_sub(44).clamp(8, 60) / 2;
        let cell = |ns: u64| {
            let bar = units::pad(&style.bar(ns, whole, columns), columns, false);
            let share = units::pad(&units::share(ns, whole), 5, true);
            let time = units::pad(&units::time(ns), 8, true);
            format!("{time} {share} {}", style.paint(Paint::Bar, &bar))
        };
        let width = rows.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
        let width = width.max(5);
        let title = format!(
            "{}  {}  {}",
            units::pad("tasks", width, true),
            units::pad("on a CPU", 15 + columns, false),
            "on a CPU or waiting for one"
        );
        let _ = writeln!(out, "{}", style.paint(Paint::Bold, &title));
        for (name, running, demand) in rows {
            let text = format!(
                "{}  {}  {}",
                units::pad(&name, width, true),
                cell(running),
                cell(demand)
            );
            let _ = writeln!(out, "{}", text.trim_end());
        }
        if found.unknown > 0 {
            let text = format!(
                "and {} in which it is not known",
                units::time(found.unknown)
            );
            let _ = writeln!(out, "{}", style.paint(Paint::Dim, &text));
        }
    }

    /// What more CPUs could have been used for.
    fn more(&self, out: &mut String, found: &Parallelism, style: &Style) {
        let whole: u64 = found.demand.iter().sum();
        let cpus = self.cpus();
        let busy = |cpus: usize| {
            let levels = found.demand.iter().enumerate();
            let sum: u128 = levels
                .map(|(n, ns)| n.min(cpus) as u128 * u128::from(*ns))
                .sum();
            sum as f64 / (whole.max(1)) as f64
        };
        let of = |n: usize| if n == 1 { "CPU" } else { "CPUs" };
        let text = format!(
            "More tasks wanted to run than there are CPUs ({cpus}) for {} of the time.",
            units::share(found.wanted(cpus + 1), whole)
        );
        style.line(out, &text);
        let mut machines = vec![format!("{:.2} of {cpus} {}", busy(cpus), of(cpus))];
        for n in [2, 4, 8, 16, 32, 64, 128, 256] {
            // More are of no use.
            if n > cpus && busy(cpus.max(n / 2)) < busy(n) {
                machines.push(format!("{:.2} of {n} {}", busy(n), of(n)));
            }
        }
        style.line(out, "On average that many could have been used at once:");
        style.items(out, "  ", &machines, " · ");
    }

    fn who(&self, alone: &Alone) -> String {
        let analysis: &Analysis = self.view.analysis;
        let Some(process) = analysis.processes.get(alone.process.0 as usize) else {
            return String::new();
        };
        let execs = process.execs.iter();
        let exec = execs.rev().find(|exec| exec.start <= alone.from);
        match exec {
            Some(exec) => label::label_of(&exec.argv, &exec.comm, false),
            None => format!("{} (forked)", self.groups.name(alone.group)),
        }
    }

    fn alone(&self, out: &mut String, found: &Parallelism, style: &Style) {
        if found.alone.is_empty() {
            return;
        }
        let mut table = Table::new()
            .column("from", "from_ns")
            .column("length", "length_ns")
            .column("CPU", "on_cpu_ns")
            .column("pid", "pid")
            .name("alone longest: nobody else ran or waited for a CPU", "name");
        for alone in &found.alone {
            let cells = vec![
                Cell::At(self.since(alone.from)),
                Cell::Time(alone.length()),
                Cell::Time(alone.on_cpu),
                Cell::Id(self.process(alone).map_or(0, |process| process.pid.0)),
            ];
            table.row(cells, self.who(alone), Paint::Plain);
        }
        out.push_str(&table.text(style, 2));
        let sums = self.sums(found);
        let serial: u64 = sums.iter().map(|(_, _, serial)| serial).sum();
        let parts: Vec<String> = sums
            .iter()
            .filter(|(_, _, serial)| *serial > 0)
            .take(8)
            .map(|(name, _, serial)| format!("{name} {}", units::time(*serial)))
            .collect();
        if serial > 0 {
            let text = format!(
                "Ran alone, nobody else waiting, for {}:",
                units::time(serial)
            );
            style.line(out, &text);
            style.items(out, "  ", &parts, " · ");
        }
        let starved: u64 = sums.iter().map(|(_, ran, serial)| ran - serial).sum();
        if starved > 0 {
            let text = format!(
                "For {} more one task ran while others waited for a CPU.",
                units::time(starved)
            );
            style.line(out, &text);
        }
    }

    fn idle(&self, out: &mut String, found: &Parallelism, style: &Style) {
        let none = found.running.first().copied().unwrap_or(0);
        if none == 0 {
            return;
        }
        let mut parts: Vec<(u64, String)> = found
            .idle
            .iter()
            .map(|((idle, group), ns)| (*ns, self.idle_name(*idle, *group)))
            .collect();
        parts.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        let parts: Vec<String> = parts
            .iter()
            .take(8)
            .map(|(ns, name)| format!("{name} {}", units::time(*ns)))
            .collect();
        let text = format!("Nobody ran for {}, waiting for:", units::time(none));
        style.line(out, &text);
        style.items(out, "  ", &parts, " · ");
    }

    fn idle_name(&self, idle: Idle, group: Option<Group>) -> String {
        let what = match idle {
            Idle::NoCpu => "a CPU, all busy with other tasks",
            Idle::Disk => "disk",
            Idle::Sleep => "sleep",
            Idle::Stopped => "stopped",
            Idle::Blocked => "blocked",
            Idle::Outside => "tasks not recorded",
            Idle::Unknown => "what is not known",
            Idle::NoPath => "what is not on the critical path",
        };
        match group {
            Some(group) => format!("{what} in {}", self.groups.name(group)),
            None => what.to_owned(),
        }
    }

    /// By group: its name, how long one of it was the only one that ran, and of
    /// that how long nobody else waited for a CPU; the latter decides.
    fn sums(&self, found: &Parallelism) -> Vec<(String, u64, u64)> {
        let named = found
            .alone_by_group
            .iter()
            .map(|(group, sum)| (self.groups.name(*group).to_owned(), sum.ran, sum.serial));
        let mut sums: Vec<_> = named.collect();
        sums.sort_by(|a, b| (b.2, b.1).cmp(&(a.2, a.1)).then_with(|| a.0.cmp(&b.0)));
        sums
    }

    fn since(&self, time: tr_format::event::Ktime) -> u64 {
        time.since(self.view.analysis.meta.start)
    }

    fn process(&self, alone: &Alone) -> Option<&Process> {
        let process = alone.process.0 as usize;
        self.view.analysis.processes.get(process)
    }
}

/// Rows of the distribution: each number of tasks up to the CPUs or 8, whichever
/// is more but at most 16; then by powers of two.
fn levels(found: &Parallelism, cpus: usize) -> Vec<(String, u64, u64)> {
    let count = found.running.len().max(found.demand.len());
    let single = cpus.clamp(8, 16);
    let of = |times: &[u64], from: usize, to: usize| -> u64 {
        times.iter().take(to + 1).skip(from).sum()
    };
    let mut rows = Vec::new();
    let mut from = 0;
    while from < count {
        let to = match from {
            n if n <= single => n,
            n => n.next_power_of_two().min(count - 1),
        };
        let name = match from == to {
            true => from.to_string(),
            false => format!("{from}–{to}"),
        };
        let (running, demand) = (of(&found.running, from, to), of(&found.demand, from, to));
        if running + demand > 0 {
            rows.push((name, running, demand));
        }
        from = to + 1;
    }
    rows
}

impl crate::reports::Report for Report<'_> {
    fn text(&self, style: &Style) -> String {
        let mut out = String::new();
        let found = match &self.found {
            Ok(found) => found,
            Err(why) => {
                style.line(&mut out, &format!("Parallelism: {why}"));
                return out;
            }
        };
        self.at_once(&mut out, found, style);
        self.more(&mut out, found, style);
        out.push('\n');
        self.alone(&mut out, found, style);
        self.idle(&mut out, found, style);
        out
    }

    fn json(&self) -> serde_json::Result<Option<Value>> {
        let value = match &self.found {
            Ok(found) => Some(self.document(found)),
            Err(_) => None,
        };
        serde_json::to_value(value).map(Some)
    }

    /// The distribution.
    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let mut table = Table::keyed(["tasks", "running_ns", "wanted_ns"]);
        if let Ok(found) = &self.found {
            let time = |times: &[u64], n| Cell::Time(times.get(n).copied().unwrap_or(0));
            for n in 0..found.running.len().max(found.demand.len()) {
                let cells = vec![
                    Cell::Count(n as u64),
                    time(&found.running, n),
                    time(&found.demand, n),
                ];
                table.record(cells);
            }
        }
        table.csv()
    }
}

// ---- JSON ----

#[derive(Serialize)]
struct Document {
    running_ns: Vec<u64>,
    wanted_ns: Vec<u64>,
    unknown_ns: u64,
    alone: Vec<AloneValue>,
    alone_by_program: Vec<AloneSum>,
    idle: Vec<IdleValue>,
}

#[derive(Serialize)]
struct AloneValue {
    pid: u32,
    label: String,
    from_ns: u64,
    to_ns: u64,
    on_cpu_ns: u64,
}

#[derive(Serialize)]
struct AloneSum {
    program: String,
    ran_ns: u64,
    serial_ns: u64,
}

#[derive(Serialize)]
struct IdleValue {
    what: &'static str,
    program: Option<String>,
    time_ns: u64,
}

impl Report<'_> {
    fn document(&self, found: &Parallelism) -> Document {
        let alone = |alone: &Alone| AloneValue {
            pid: self.process(alone).map_or(0, |process| process.pid.0),
            label: self.who(alone),
            from_ns: self.since(alone.from),
            to_ns: self.since(alone.to),
            on_cpu_ns: alone.on_cpu,
        };
        let sums = self.sums(found).into_iter();
        let idle = found.idle.iter().map(|((idle, group), ns)| IdleValue {
            what: match idle {
                Idle::NoCpu => "run_queue",
                Idle::Disk => "disk",
                Idle::Sleep => "sleep",
                Idle::Stopped => "stopped",
                Idle::Blocked => "blocked",
                Idle::Outside => "outside",
                Idle::Unknown => "unknown",
                Idle::NoPath => "no_path",
            },
            program: group.map(|group| self.groups.name(group).to_owned()),
            time_ns: *ns,
        });
        Document {
            running_ns: found.running.clone(),
            wanted_ns: found.demand.clone(),
            unknown_ns: found.unknown,
            alone: found.alone.iter().map(alone).collect(),
            alone_by_program: sums
                .map(|(program, ran_ns, serial_ns)| AloneSum {
                    program,
                    ran_ns,
                    serial_ns,
                })
                .collect(),
            idle: idle.collect(),
        }
    }
}
