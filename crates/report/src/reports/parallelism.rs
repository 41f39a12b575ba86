//! The report on how many tasks ran or wanted to run at once, and on tasks that ran alone.

use std::cmp::Reverse;
use tr_programs::program_name::ProgramName;

use serde_json::{json, Value};
use tr_analyze::critical_path::NoPath;
use tr_analyze::kinds::TimeKind;
use tr_analyze::parallelism::{self, Alone, AloneSum, Idle, Parallelism};
use tr_analyze::programs::Groups;

use crate::output::Report;
use tr_insight::cpus::cpu_demand::machines_of_use;
use tr_insight::path;
use tr_insight::path::kinds;
use tr_insight::processes::label;
use tr_insight::views::view::View;
use tr_text::page::{Page, Span};
use tr_text::phrase::Phrase;
use tr_text::style::{Paint, Style};
use tr_text::table::{Cell, Sheet, Table};
use tr_text::units;

pub struct ParallelismReport<'a> {
    view: View<'a>,
    groups: Groups,
    found: Result<Parallelism, NoPath>,
}

impl<'a> ParallelismReport<'a> {
    pub fn new(view: &View<'a>) -> ParallelismReport<'a> {
        let groups = path::groups(view.analysis);
        let path = path::path_of(view).ok();
        let longest = view.ask.rows().max(1);
        let found = parallelism::parallelism(view.analysis, &groups, path.as_ref(), longest, None);
        ParallelismReport {
            view: *view,
            groups,
            found,
        }
    }

    /// Prints for how long each number of tasks ran at once, and for how long each number of tasks wanted to run.
    fn at_once(&self, out: &mut Page, found: &Parallelism, style: &Style) {
        let rows = levels(found, self.view.analysis.cpus_of_build());
        let known: u64 = found.running.iter().sum();
        let whole = known.saturating_add(found.unknown);
        let columns = style.width.saturating_sub(44).clamp(8, 60) / 2;
        let cell = |ns: u64| {
            let bar = units::pad(&style.bar(ns, whole, columns), columns, false);
            let share = units::pad(&units::share(ns, whole), 5, true);
            let time = units::pad(&units::time(ns), 8, true);
            (format!("{time} {share} "), Span::new(Paint::Bar, bar))
        };
        let width = rows.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
        let width = width.max(5);
        let room = style.width.saturating_sub(width + columns + 19).max(8);
        let title = format!(
            "{}  {}  {}",
            units::pad("tasks", width, true),
            units::pad("on a CPU", 15 + columns, false),
            units::clip("runnable (with the run queue)", room)
        );
        out.painted(Paint::Bold, &title);
        for (name, running, demand) in rows {
            let name = units::pad(&name, width, true);
            let ((running, bar), (demand, last)) = (cell(running), cell(demand));
            let running = Span::from(format!("{name}  {running}"));
            out.spans([running, bar, format!("  {demand}").into(), last]);
        }
        if found.unknown > 0 {
            let share = units::share(found.unknown, whole);
            let text = format!("and {} ({share}) unknown", units::time(found.unknown));
            out.painted(Paint::Dim, &text);
        }
    }

    fn more(&self, out: &mut Page, found: &Parallelism) {
        let known: u64 = found.demand.iter().sum();
        let whole = known.saturating_add(found.unknown);
        let busy = |cpus| found.could_use(cpus) as f64 / known.max(1) as f64;
        let (least, when) = match found.unknown {
            0 => ("", String::new()),
            _ => (
                "at least ",
                format!(" (over the {} that are fully recorded)", units::time(known)),
            ),
        };
        let analysis = self.view.analysis;
        let cpus = analysis.cpus_of_build();
        let allowed = match analysis.machine.limited_to {
            Some(_) => format!("{cpus} of {} allowed", analysis.meta.cpus.len()),
            None => cpus.to_string(),
        };
        let text = format!(
            "More tasks wanted to run than there are CPUs ({allowed}) for {least}{} of the time.",
            units::share(found.starved(cpus), whole)
        );
        out.line(&text);
        if known == 0 {
            return;
        }
        let machines = machines_of_use(found, cpus);
        let machines = machines.map(|n| format!("{:.2} of {}", busy(n), units::cpus(n)));
        let text = format!("CPUs that could have been busy on average{when}:");
        out.line(&text);
        out.items("  ", machines);
    }

    /// The label of the program that a process was running when the process ran alone, while all other recorded tasks
    /// waited.
    fn who(&self, alone: &Alone) -> Phrase {
        let execs = self.view.analysis.process(alone.process).execs.iter();
        let exec = execs.rev().find(|exec| exec.start <= alone.from);
        match exec {
            Some(exec) => label::of_program(&exec.argv, &exec.comm, false),
            None => format!("{} (forked)", self.groups.name(alone.group)).into(),
        }
    }

    fn alone_table(&self) -> Table<'_, &Alone> {
        let title = "longest alone: no other task was runnable";
        Table::new(title, |alone: &&Alone| self.who(alone).short().to_owned())
            .fact("from", "from_ns", |alone| {
                Cell::At(self.view.since(alone.from))
            })
            .data("to_ns", |alone| self.view.since(alone.to))
            .column("length", |alone| Cell::Time(alone.length()))
            .fact("CPU", "on_cpu_ns", |alone| Cell::Time(alone.on_cpu))
            .fact("pid", "pid", |alone| {
                Cell::Id(self.view.analysis.process(alone.process).pid.0)
            })
            .phrase_data("label", |alone| Some(self.who(alone)))
    }

    fn alone(&self, out: &mut Page, found: &Parallelism) {
        if found.alone.is_empty() {
            return;
        }
        out.grid(self.alone_table().grid(&found.alone), 2);
        let sums = self.sums(found);
        let serial = sums.iter().map(|(_, sum)| sum.serial);
        let serial = serial.fold(0, u64::saturating_add);
        if serial > 0 {
            let text = format!(
                "Ran alone, no other task runnable, for {}:",
                units::time(serial)
            );
            out.line(&text);
            let sums = sums.iter().filter(|(_, sum)| sum.serial > 0).take(8);
            let parts = sums.map(|(name, sum)| format!("{name} {}", units::time(sum.serial)));
            out.items("  ", parts);
        }
        let starved = sums.iter();
        let starved = starved.map(|(_, sum)| sum.ran.saturating_sub(sum.serial));
        let starved = starved.fold(0, u64::saturating_add);
        if starved > 0 {
            let text = format!(
                "For {} more one task ran while others were in a run queue.",
                units::time(starved)
            );
            out.line(&text);
        }
    }

    fn idle(&self, out: &mut Page, found: &Parallelism) {
        let none = found.running.first().copied().unwrap_or(0);
        if none == 0 {
            return;
        }
        let named = found.idle.iter().map(|((idle, group), ns)| {
            let name = match group {
                Some(group) => format!("{} in {}", idle_names(*idle).1, self.groups.name(*group)),
                None => idle_names(*idle).1.to_owned(),
            };
            (Reverse(*ns), name)
        });
        let mut named: Vec<_> = named.collect();
        named.sort_unstable();
        let parts = named.iter().take(8);
        let parts = parts.map(|(ns, name)| format!("{name} {}", units::time(ns.0)));
        let text = format!("No task ran for {}, waiting for:", units::time(none));
        out.line(&text);
        out.items("  ", parts);
    }

    /// The groups (programs) that ran alone, each with the time for which it ran alone. The group with the longest
    /// serial time, in which no other task even waited for a CPU, comes first.
    fn sums(&self, found: &Parallelism) -> Vec<(&ProgramName, AloneSum)> {
        let groups = found.alone_by_group.iter();
        let named = groups.filter_map(|(group, sum)| Some((self.groups.program(*group)?, *sum)));
        let mut sums: Vec<_> = named.collect();
        sums.sort_by_key(|(name, sum)| (Reverse((sum.serial, sum.ran)), *name));
        sums
    }

    fn document(&self, found: &Parallelism) -> Value {
        let sums = self.sums(found).into_iter().map(
            |(name, sum)| json!({"program": name.to_string(), "ran_ns": sum.ran, "serial_ns": sum.serial}),
        );
        let idle = found.idle.iter().map(|((idle, group), ns)| {
            json!({
                "what": idle_names(*idle).0,
                "program": group.map(|group| self.groups.name(group)),
                "time_ns": ns,
            })
        });
        json!({
            "running_ns": found.running,
            "wanted_ns": found.demand,
            "unknown_ns": found.unknown,
            "alone": self.alone_table().rows(&found.alone),
            "alone_by_program": sums.collect::<Value>(),
            "idle": idle.collect::<Value>(),
        })
    }
}

/// The words in JSON and in text for the reason why no task of the build ran at some time.
fn idle_names(idle: Idle) -> (&'static str, &'static str) {
    let kind = match idle {
        Idle::NoPath => return ("no_path", "tasks off the critical path"),
        Idle::Waits(kind) => kind,
    };
    let title = match kind {
        TimeKind::RunQueue => "a CPU, all busy with other tasks",
        TimeKind::Terminal => "a terminal",
        TimeKind::Unknown => "an unknown cause",
        kind => kinds::title(kind),
    };
    (kind.name(), title)
}

/// The rows of the table of how many tasks ran at once. Each row has a number of tasks (`3` or `9–16`), the time in ns
/// in which so many tasks ran, and the time in ns in which so many wanted to run. Small numbers have a row each.
fn levels(found: &Parallelism, cpus: u64) -> Vec<(String, u64, u64)> {
    let count = found.running.len().max(found.demand.len());
    let single = cpus.clamp(8, 16) as usize;
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
        let name = if from == to {
            from.to_string()
        } else {
            format!("{from}–{to}")
        };
        let (running, demand) = (of(&found.running, from, to), of(&found.demand, from, to));
        if running > 0 || demand > 0 {
            rows.push((name, running, demand));
        }
        from = to + 1;
    }
    rows
}

impl Report for ParallelismReport<'_> {
    fn page(&self, style: &Style) -> Page {
        let mut out = Page::new();
        match &self.found {
            Ok(found) => {
                self.at_once(&mut out, found, style);
                self.more(&mut out, found);
                out.blank();
                self.alone(&mut out, found);
                self.idle(&mut out, found);
            }
            Err(why) => out.line(&format!("Parallelism: {why}")),
        }
        out
    }

    fn json(&self) -> Option<Value> {
        let found = self.found.as_ref();
        Some(found.map_or(Value::Null, |found| self.document(found)))
    }

    fn sheet(&self) -> Sheet {
        let found = self.found.iter();
        let time = |times: &[u64], n: usize| times.get(n).copied().unwrap_or(0);
        let rows = found.flat_map(|found| {
            let levels = found.running.len().max(found.demand.len());
            (0..levels).map(move |n| (n, time(&found.running, n), time(&found.demand, n)))
        });
        let table = Table::<(usize, u64, u64)>::unnamed()
            .data("tasks", |(n, ..)| *n)
            .data("running_ns", |(_, running, _)| *running)
            .data("wanted_ns", |(.., wanted)| *wanted);
        table.sheet(rows)
    }
}
