//! Waits for a CPU, by CPU and by group; the number of tasks that wanted one; the
//! use of more CPUs.
//!
//! A wait for a CPU goes from the waking, the fork or the switch-out by
//! preemption to the switch-in. It belongs to the CPU of the switch-in.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{json, Value};
use tr_analyze::parallelism;
use tr_analyze::waits::{self, Piece};
use tr_analyze::what_if;
use tr_format::event::CpuId;

use crate::hist::{self, Groups, Hist};
use crate::members::{members, Members};
use crate::output::Report;
use tr_insight::path;
use tr_insight::query::By;
use tr_insight::view::View;
use tr_text::json::with;
use tr_text::style::Style;
use tr_text::table::{Cell, Table};
use tr_text::units;

pub struct RunQueue<'a> {
    all: Hist,
    cpus: BTreeMap<CpuId, Hist>,
    /// The groups with the longest waits in all first.
    groups: Groups<'a>,
    /// Of all recorded tasks, whichever are chosen; `None` with `--cpu`.
    wanted: Option<Wanted>,
}

/// The number of tasks on a CPU or waiting for one.
struct Wanted {
    cpus: u64,
    /// The name of a machine with so many.
    this: &'static str,
    /// The time with more such tasks than CPUs.
    starved_ns: u64,
    /// The time in which their number is known, and the rest.
    known_ns: u64,
    unknown_ns: u64,
    machines: Vec<MachineSize>,
}

/// A machine of another size, with the recorded demand.
#[derive(Clone, Copy)]
struct MachineSize {
    cpus: u64,
    /// The CPU time that it gives in the same wall time: of all its CPUs, or of
    /// as many as there are tasks that want one.
    could_use_ns: u64,
    /// The least wall time of the build, by its critical path.
    at_least_ns: Option<u64>,
}

impl<'a> RunQueue<'a> {
    pub fn new(view: &View<'a>) -> RunQueue<'a> {
        let analysis = view.analysis;
        let by = view.ask.by.unwrap_or(By::Program);
        let only = view.ask.cpu;
        // Without a switch-in the CPU is unknown.
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
            all: Hist::new(all),
            cpus: cpus.map(|(cpu, waits)| (cpu, Hist::new(waits))).collect(),
            groups: Groups {
                view: *view,
                by,
                what: "waits",
                groups,
            },
            wanted: only.map_or_else(|| wanted(view), |_| None),
        }
    }
}

/// The number of tasks that wanted a CPU, if it is known.
fn wanted(view: &View<'_>) -> Option<Wanted> {
    let analysis = view.analysis;
    let groups = path::groups(analysis);
    let found = parallelism::parallelism(analysis, &groups, None, 0).ok()?;
    let path = path::path_of(view).ok();
    let limits = path.and_then(|path| what_if::limits(analysis, &path, &groups, &[]).ok());
    let cpus = analysis.cpus_of_build();
    let known: u64 = found.demand.iter().sum();
    if known == 0 {
        return None;
    }
    let machines = super::machines_of_use(&found, cpus).map(|cpus| MachineSize {
        cpus,
        could_use_ns: found.could_use(cpus),
        at_least_ns: limits.as_ref().map(|limits| limits.on(cpus)),
    });
    Some(Wanted {
        cpus,
        this: match analysis.limited_to {
            Some(_) => "as recorded",
            None => "this machine",
        },
        starved_ns: found.starved(cpus),
        known_ns: known,
        unknown_ns: found.unknown,
        machines: machines.collect(),
    })
}

impl Wanted {
    fn text(&self, style: &Style) -> String {
        let mut out = String::new();
        let whole = self.known_ns.saturating_add(self.unknown_ns);
        let text = format!(
            "More tasks than the {} wanted to run for {} ({} of the time)",
            units::cpus(self.cpus),
            units::time(self.starved_ns),
            units::share(self.starved_ns, whole),
        );
        style.line(&mut out, &text);
        if self.unknown_ns > 0 {
            let text = format!(
                "For {} more ({}) the number is unknown; the table leaves that time out",
                units::time(self.unknown_ns),
                units::share(self.unknown_ns, whole)
            );
            style.line(&mut out, &text);
        }
        out + &self.table().text(&self.machines, style, 2)
    }

    fn table(&self) -> Table<'_, &MachineSize> {
        let this = |machine: &&MachineSize| match machine.cpus == self.cpus {
            true => self.this.into(),
            false => String::new(),
        };
        Table::new("", this)
            .fact("CPUs", "cpus", |machine| Cell::Count(machine.cpus))
            .data("could_use_ns", |machine| machine.could_use_ns)
            .column("could be busy", |machine| {
                let busy = machine.could_use_ns as f64 / self.known_ns as f64;
                Cell::Text(format!("{busy:.2}"))
            })
            .fact("time at least", "at_least_ns", |machine| {
                machine.at_least_ns.map_or(Cell::Empty, Cell::Time)
            })
    }

    fn json(&self) -> Value {
        json!({
            "cpus": self.cpus,
            "starved_ns": self.starved_ns,
            "known_ns": self.known_ns,
            "unknown_ns": self.unknown_ns,
            "machines": self.table().rows(&self.machines),
        })
    }
}

impl Report for RunQueue<'_> {
    fn text(&self, style: &Style) -> String {
        let mut out = String::new();
        let ask = self.groups.view.ask;
        let on = match ask.cpu {
            Some(cpu) => format!("Run-queue waits that ended on CPU {}   ", cpu.0),
            None => "Run-queue waits   ".into(),
        };
        style.items(&mut out, &on, self.all.summary("waits"));
        out.push_str(&self.all.draw(style));
        if let Some(wanted) = &self.wanted {
            out.push('\n');
            out.push_str(&wanted.text(style));
        }
        if self.all.count() > 0 {
            let cpus = self.cpus.iter();
            let rows = cpus.map(|(cpu, hist)| ("cpu", format!("CPU {}", cpu.0), None, hist));
            let table = hist::table("waits").titled("by CPU that the wait ended on");
            out.push('\n');
            out += &table.text(rows, style, 0);
        }
        if ask.by.is_none() {
            out.push('\n');
            return out + &self.groups.table(style);
        }
        self.groups.draw(&mut out, style);
        out
    }

    fn json(&self) -> Option<Value> {
        let table = hist::table("waits");
        let all = table.json(&("", String::new(), None, &self.all));
        let cpus = self.cpus.iter();
        let cpus = cpus.map(|(cpu, hist)| (cpu.0, table.json(&("cpu", String::new(), None, hist))));
        let cpus = cpus.map(|(cpu, hist)| with(hist, json!({"cpu": cpu})));
        Some(json!({
            "all": all,
            "cpus": cpus.collect::<Value>(),
            "groups": self.groups.json(),
            "wanted": self.wanted.as_ref().map(Wanted::json),
        }))
    }

    /// The histograms of the CPUs, then those of the groups.
    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let cpus = self.cpus.iter();
        let cpus = cpus.map(|(cpu, hist)| ("cpu", cpu.0.to_string(), None, hist));
        hist::csv(cpus.chain(self.groups.asked()), true)
    }
}
