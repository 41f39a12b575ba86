//! The functions of sampled stacks, the hottest ones first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{json, Value};
use tr_analyze::model::ThreadIx;
use tr_analyze::stacks::Sampled;
use tr_format::stack::{Doing, Place};

use crate::frames::{Name, Names};
use crate::members::{members, Members};
use crate::query::By;
use crate::sort::Rows;
use crate::style::{Paint, Style};
use crate::table::{csv, Cell, Table};
use crate::units;
use crate::view::{Report, View};

/// Rows in text without `--top`.
const ROWS: usize = 20;
/// The text names programs with at least so many samples ...
const SOME: u64 = 20;
/// ... of which at least this share, in per cent, has one frame.
const FLAT: u64 = 10;
/// The text names at most so many.
const PROGRAMS: usize = 3;

/// The report.
pub struct Flame<'a> {
    view: View<'a>,
    by: Option<By>,
    /// The samples and their time in ns, by what the tasks did.
    all: BTreeMap<Doing, Sum>,
    programs: Vec<Program>,
    /// Those with the longest time of their own first.
    rows: Vec<Row>,
}

/// Samples, and the time that they stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Sum {
    samples: u64,
    ns: u64,
}

impl Sum {
    fn add(&mut self, it: &Sampled) {
        self.samples = self.samples.saturating_add(it.count);
        self.ns = self.ns.saturating_add(it.ns);
    }
}

/// The depths of a program's stacks.
#[derive(Clone, Debug, Default)]
struct Program {
    name: String,
    /// Samples with frames in user mode.
    samples: u64,
    /// Those with one of them.
    flat: u64,
}

/// A function of all chosen processes, or of a group of them.
struct Row {
    /// The group's name and, of one process, its pid.
    group: Option<(String, Option<u32>)>,
    name: Name,
    doing: Doing,
    /// The function was the innermost one; of waits, the innermost one in user mode.
    own: Sum,
    /// The function was in the stack.
    total: Sum,
}

impl<'a> Flame<'a> {
    /// Sums up the samples of the chosen processes.
    pub fn new(view: &View<'a>) -> Flame<'a> {
        let by = view.ask.by;
        let groups = members(view, by.unwrap_or(By::Program));
        let place = places(&groups);
        let stacks = &view.analysis.stacks;
        let mut names = Names::new(stacks);
        let mut sums: BTreeMap<(Option<usize>, Doing, usize), (Sum, Sum)> = BTreeMap::new();
        let mut all: BTreeMap<Doing, Sum> = BTreeMap::new();
        for it in &stacks.samples {
            let Some(at) = place.get(&it.thread) else {
                continue;
            };
            let group = by.map(|_| *at);
            all.entry(it.doing).or_default().add(it);
            let functions = names.of_stack(it.stack);
            let innermost = match it.doing {
                Doing::OnCpu => None,
                // All waits end in the scheduler.
                Doing::OffCpu => names.in_user_mode(it.stack),
            };
            if let Some(innermost) = innermost.or(functions.first().copied()) {
                let sum = sums.entry((group, it.doing, innermost)).or_default();
                sum.0.add(it);
            }
            // A function that calls itself counts once.
            for function in functions.into_iter().collect::<BTreeSet<_>>() {
                sums.entry((group, it.doing, function))
                    .or_default()
                    .1
                    .add(it);
            }
        }
        let named = |at: Option<usize>| {
            let group = at.and_then(|at| groups.get(at));
            group.map(|it: &Members| (it.name.clone(), it.pid))
        };
        let rows = sums.into_iter().map(|((at, doing, function), sum)| Row {
            group: named(at),
            name: names.name(function).cloned().unwrap_or_default(),
            doing,
            own: sum.0,
            total: sum.1,
        });
        let mut rows: Vec<Row> = rows.collect();
        rows.order_by_key(|row| Reverse((row.own.ns, row.total.ns, Reverse(row.name.clone()))));
        Flame {
            view: *view,
            by,
            all,
            programs: programs(view),
            rows,
        }
    }

    fn sum(&self, doing: Doing) -> Sum {
        self.all.get(&doing).copied().unwrap_or_default()
    }

    fn rows(&self) -> impl Iterator<Item = Value> + '_ {
        let rows = self.rows.iter().take(self.view.ask.most());
        rows.map(|row| {
            json!({
                "name": row.group.as_ref().map(|(name, _)| name),
                "pid": row.group.as_ref().and_then(|(_, pid)| *pid),
                "function": row.name.function,
                "binary": row.name.binary,
                "off_cpu": row.doing == Doing::OffCpu,
                "self_samples": row.own.samples,
                "self_ns": row.own.ns,
                "total_samples": row.total.samples,
                "total_ns": row.total.ns,
            })
        })
    }

    fn table(&self, out: &mut String, style: &Style, doing: Doing) {
        let all = self.sum(doing);
        if all.samples == 0 {
            return;
        }
        let (samples, time) = (all.samples, units::time(all.ns));
        let samples = units::plural(samples, "sample", "samples");
        let head = match doing {
            Doing::OnCpu => format!("Functions on a CPU: {samples}, {time}"),
            Doing::OffCpu => format!("Functions that waited: {samples}, {time}"),
        };
        style.painted(out, Paint::Bold, &head);
        let grouped = self.by.is_some();
        let group = |row: &&Row| match &row.group {
            Some((name, _)) => Cell::Text(name.clone()),
            None => Cell::Empty,
        };
        let table = Table::new("function", |row: &&Row| row.name.function.clone())
            .column("self", |row| Cell::few(row.own.ns, Cell::Time))
            .column("%", move |row| Cell::Share(row.own.ns, all.ns))
            .column("total", |row| Cell::Time(row.total.ns))
            .column("%", move |row| Cell::Share(row.total.ns, all.ns))
            .words("in", |row| Cell::Text(row.name.binary.clone()))
            .words(
                if grouped {
                    self.by.map_or("", By::title)
                } else {
                    ""
                },
                group,
            );
        let rows: Vec<&Row> = self.rows.iter().filter(|row| row.doing == doing).collect();
        let shown = self.view.ask.limit.unwrap_or(ROWS);
        out.push_str(&table.text(rows.iter().copied().take(shown), style, 0));
        style.more(out, rows.len(), shown, " functions");
    }
}

/// The group of each thread.
fn places(groups: &[Members]) -> HashMap<ThreadIx, usize> {
    let groups = groups.iter().enumerate();
    let threads = groups.flat_map(|(at, group)| group.threads.iter().map(move |ix| (*ix, at)));
    threads.collect()
}

/// The depths of the stacks, by program; those with most samples of one frame first.
fn programs(view: &View<'_>) -> Vec<Program> {
    let stacks = &view.analysis.stacks;
    let groups = members(view, By::Program);
    let place = places(&groups);
    let mut programs: Vec<Program> = groups
        .into_iter()
        .map(|group| Program {
            name: group.name,
            ..Program::default()
        })
        .collect();
    for it in &stacks.samples {
        let program = place.get(&it.thread).and_then(|at| programs.get_mut(*at));
        let places = stacks.frames(it.stack).map(|frame| stacks.place(frame));
        let user = places.filter(|place| !matches!(place, Some(Place::Kernel(_))));
        if let (Some(program), depth @ 1..) = (program, user.take(2).count()) {
            program.samples = program.samples.saturating_add(it.count);
            let flat = if depth == 1 { it.count } else { 0 };
            program.flat = program.flat.saturating_add(flat);
        }
    }
    programs.retain(|it| it.samples > 0);
    programs.sort_by(|a, b| (b.flat, &a.name).cmp(&(a.flat, &b.name)));
    programs
}

impl Report for Flame<'_> {
    fn text(&self, style: &Style) -> String {
        let mut out = String::new();
        let flat = |it: &&Program| {
            it.samples >= SOME && it.flat.saturating_mul(100) >= it.samples.saturating_mul(FLAT)
        };
        if self.all.is_empty() {
            style.line(&mut out, "No stack was sampled.");
        }
        for doing in [Doing::OnCpu, Doing::OffCpu] {
            self.table(&mut out, style, doing);
        }
        for it in self.programs.iter().filter(flat).take(PROGRAMS) {
            let share = it.flat.saturating_mul(100) / it.samples.max(1);
            let line = format!(
                "{share} % of {}'s samples have one frame: code without frame pointers",
                it.name
            );
            style.line(&mut out, &line);
        }
        out
    }

    fn json(&self) -> Option<Value> {
        let programs = self
            .programs
            .iter()
            .map(|it| json!({ "name": it.name, "samples": it.samples, "one_frame": it.flat }));
        let (on, off) = (self.sum(Doing::OnCpu), self.sum(Doing::OffCpu));
        Some(json!({
            "samples": on.samples,
            "ns": on.ns,
            "off_cpu_samples": off.samples,
            "off_cpu_ns": off.ns,
            "by": self.by.map(By::name),
            "programs": programs.collect::<Vec<_>>(),
            "rows": self.rows().collect::<Vec<_>>(),
        }))
    }

    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        csv(
            self.rows(),
            "name pid function binary off_cpu self_samples self_ns total_samples total_ns",
        )
    }
}
