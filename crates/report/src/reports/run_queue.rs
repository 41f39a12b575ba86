//! How long tasks waited for a CPU, by CPU and by group; how long more of them
//! wanted one than there are; what more CPUs could have been used for.
//!
//! A wait for a CPU goes from the waking, the fork or the switch-out by
//! preemption to the switch-in; it belongs to the CPU of the switch-in.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use tr_analyze::model::Analysis;
use tr_analyze::parallelism::{self, Parallelism};
use tr_analyze::waits::{self, Piece};
use tr_analyze::what_if;
use tr_format::event::CpuId;

use crate::hist::{self, Facts, Hist, SLOT_KEYS};
use crate::members::{members, Members};
use crate::query::By;
use crate::reports::{critical_path, Report, View};
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};
use crate::units;

/// The report.
pub struct RunQueue<'a> {
    view: View<'a>,
    by: By,
    all: Hist,
    cpus: BTreeMap<CpuId, Hist>,
    /// Those that waited longest in all first.
    groups: Vec<(Members, Hist)>,
    /// Of all recorded tasks, whichever are chosen; not known from one CPU alone.
    wanted: Option<Wanted>,
}

/// How many tasks were on a CPU or waiting for one.
#[derive(Serialize)]
struct Wanted {
    cpus: u64,
    /// How long more than there are CPUs.
    starved_ns: u64,
    /// How long their number is known.
    known_ns: u64,
    unknown_ns: u64,
    /// For machines of several sizes.
    machines: Vec<Machine>,
}

/// A machine of another size, at the moments as they were.
#[derive(Clone, Copy, Serialize)]
struct Machine {
    cpus: u64,
    /// CPU time that it could have given in the same wall time: its CPUs, or
    /// as many as there were tasks that wanted one.
    could_use_ns: u64,
    /// The build would take at least this long on it, by its critical path.
    at_least_ns: Option<u64>,
}

impl<'a> RunQueue<'a> {
    /// Of the processes that were chosen.
    pub fn new(view: &View<'a>) -> RunQueue<'a> {
        let analysis = view.analysis;
        let by = view.ask.by.unwrap_or(By::Program);
        let only = view.ask.cpu;
        // Without a switch-in no CPU is known.
        let here = move |piece: &Piece| only.is_none() || piece.after.cpu() == only;
        let of = |group: &Members| -> Vec<Piece> {
            let threads = group.threads.iter();
            let pieces = threads.flat_map(|ix| waits::for_cpu(analysis, *ix));
            pieces.filter(here).collect()
        };
        let length = |piece: &Piece| (piece.length(), piece.whole_wait());
        let (mut groups, mut all) = (Vec::new(), Vec::new());
        let mut cpus = BTreeMap::<CpuId, Vec<(u64, bool)>>::new();
        for group in members(view, by) {
            let pieces = of(&group);
            for piece in &pieces {
                all.push(length(piece));
                if let Some(cpu) = piece.after.cpu() {
                    cpus.entry(cpu).or_default().push(length(piece));
                }
            }
            if !pieces.is_empty() {
                groups.push((group, Hist::new(pieces.iter().map(length))));
            }
        }
        groups.sort_by_key(|(_, hist)| Reverse(hist.total()));
        let cpus = cpus.into_iter();
        RunQueue {
            view: *view,
            by,
            all: Hist::new(all),
            cpus: cpus.map(|(cpu, waits)| (cpu, Hist::new(waits))).collect(),
            groups,
            wanted: match only {
                None => wanted(view),
                Some(_) => None,
            },
        }
    }

    fn by_cpu(&self, style: &Style) -> String {
        let cpus = self.cpus.iter();
        let rows = cpus.map(|(cpu, hist)| (format!("CPU {}", cpu.0), hist));
        hist::table("waits", "by CPU that the wait ended on", rows).text(style, 0)
    }

    fn by_group(&self, style: &Style) -> String {
        let top = self.view.ask.top;
        let title = units::top(self.by.title(), top, self.groups.len());
        let groups = self.groups.iter().take(top);
        let rows = groups.map(|(group, hist)| (group.name.clone(), hist));
        hist::table("waits", title, rows).text(style, 0)
    }
}

/// How many tasks wanted a CPU, if that is known.
fn wanted(view: &View<'_>) -> Option<Wanted> {
    let analysis: &Analysis = view.analysis;
    let groups = critical_path::groups(analysis);
    let found = parallelism::parallelism(analysis, &groups, None, 0).ok()?;
    let path = critical_path::path_of(view).ok();
    let limits = path.and_then(|path| what_if::limits(analysis, &path, &groups, &[]).ok());
    let cpus = analysis.meta.cpus.len();
    let known: u64 = found.demand.iter().sum();
    if known == 0 {
        return None;
    }
    let machine = |n: usize| Machine {
        cpus: n as u64,
        could_use_ns: could_use(&found, n),
        at_least_ns: limits.as_ref().map(|limits| limits.on(n as u64)),
    };
    // This one, and those of twice the size as long as that is of use.
    let mut machines = vec![machine(cpus)];
    let mut n = cpus.max(1);
    while could_use(&found, n) < could_use(&found, n.saturating_mul(2)) {
        n = n.saturating_mul(2);
        machines.push(machine(n));
    }
    Some(Wanted {
        cpus: cpus as u64,
        starved_ns: found.wanted(cpus + 1),
        known_ns: known,
        unknown_ns: found.unknown,
        machines,
    })
}

/// CPU time that so many CPUs could have given at the moments as they were.
fn could_use(found: &Parallelism, cpus: usize) -> u64 {
    let levels = found.demand.iter().enumerate();
    levels.fold(0, |sum: u64, (n, ns)| {
        sum.saturating_add(ns.saturating_mul(n.min(cpus) as u64))
    })
}

impl Wanted {
    fn text(&self, style: &Style) -> String {
        let mut out = String::new();
        let of = if self.cpus == 1 { "CPU" } else { "CPUs" };
        let text = format!(
            "More tasks than the {} {of} wanted to run for {} ({} of the time)",
            self.cpus,
            units::time(self.starved_ns),
            units::share(self.starved_ns, self.known_ns),
        );
        style.line(&mut out, &text);
        if self.unknown_ns > 0 {
            let text = format!(
                "For {} more it is not known how many did",
                units::time(self.unknown_ns)
            );
            style.line(&mut out, &text);
        }
        let mut table = Table::new()
            .column("CPUs", "")
            .column("could be busy", "")
            .column("time at least", "")
            .name("", "");
        for machine in &self.machines {
            let busy = machine.could_use_ns as f64 / self.known_ns as f64;
            let own = machine.cpus == self.cpus;
            let cells = vec![
                Cell::Count(machine.cpus),
                Cell::Text(format!("{busy:.2}")),
                machine.at_least_ns.map_or(Cell::Empty, Cell::Time),
            ];
            table.row(cells, if own { "this machine" } else { "" }, Paint::Plain);
        }
        out + &table.text(style, 2)
    }
}

impl Report for RunQueue<'_> {
    fn text(&self, style: &Style) -> String {
        let mut out = String::new();
        let on = match self.view.ask.cpu {
            Some(cpu) => format!("Waits for a CPU that ended on CPU {}   ", cpu.0),
            None => "Waits for a CPU   ".into(),
        };
        style.items(&mut out, &on, &self.all.summary("waits"), " · ");
        out.push_str(&self.all.draw(style));
        if let Some(wanted) = &self.wanted {
            out.push('\n');
            out.push_str(&wanted.text(style));
        }
        if self.all.count() > 0 {
            out.push('\n');
            out.push_str(&self.by_cpu(style));
        }
        if self.view.ask.by.is_none() {
            out.push('\n');
            return out + &self.by_group(style);
        }
        for (group, hist) in self.groups.iter().take(self.view.ask.top) {
            let pid = group.pid.map(|pid| format!(" ({pid})")).unwrap_or_default();
            let room = style.width.saturating_sub(units::width(&pid));
            let name = units::shorten(&group.name, room) + &pid;
            out.push_str(&format!("\n{}\n", style.paint(Paint::Bold, &name)));
            style.items(&mut out, "", &hist.summary("waits"), " · ");
            out.push_str(&hist.draw(style));
        }
        out
    }

    fn json(&self) -> serde_json::Result<Option<Value>> {
        #[derive(Serialize)]
        struct Document<'a> {
            all: Facts,
            cpus: Vec<OfCpu>,
            groups: Vec<OfGroup>,
            wanted: &'a Option<Wanted>,
        }
        #[derive(Serialize)]
        struct OfCpu {
            cpu: u16,
            #[serde(flatten)]
            facts: Facts,
        }
        #[derive(Serialize)]
        struct OfGroup {
            name: String,
            pid: Option<u32>,
            #[serde(flatten)]
            facts: Facts,
        }
        let cpus = self.cpus.iter().map(|(cpu, hist)| OfCpu {
            cpu: cpu.0,
            facts: hist.facts(),
        });
        let groups = self.groups.iter().take(self.view.ask.most());
        let groups = groups.map(|(group, hist)| OfGroup {
            name: group.name.clone(),
            pid: group.pid,
            facts: hist.facts(),
        });
        let document = Document {
            all: self.all.facts(),
            cpus: cpus.collect(),
            groups: groups.collect(),
            wanted: &self.wanted,
        };
        serde_json::to_value(document).map(Some)
    }

    /// The histograms, of each CPU and of each group.
    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let mut table = Table::keyed(["of", "name", "pid"].into_iter().chain(SLOT_KEYS));
        for (cpu, hist) in &self.cpus {
            let name = Cell::Text(cpu.0.to_string());
            hist.records(&["cpu".into(), name, Cell::Empty], &mut table);
        }
        for (group, hist) in self.groups.iter().take(self.view.ask.most()) {
            let pid = Cell::known(group.pid, Cell::Id);
            hist.records(
                &["group".into(), group.name.clone().into(), pid],
                &mut table,
            );
        }
        table.csv()
    }
}
