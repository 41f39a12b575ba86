//! The lengths of pieces of threads' time as histograms: of slices on a CPU (`histogram`), and of waits for a CPU
//! (`run-queue`).
//!
//! A slice goes from the switch-in to the switch-out. A wait for a CPU goes from the waking, the fork or the switch-out
//! by preemption to the switch-in. It belongs to the CPU of the switch-in.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{json, Value};
use tr_analyze::waits::{self, Piece};
use tr_format::event::CpuId;

use super::wanted::{wanted, CpuDemand};
use crate::hist::{self, Groups, Hist};
use crate::members::{members, Members};
use crate::output::Report;
use tr_insight::query::By;
use tr_insight::view::View;
use tr_text::json::with;
use tr_text::page::Page;
use tr_text::style::Style;

/// A report about lengths. With `--by` it draws each group; otherwise it draws all pieces together and lists the
/// programs.
pub struct Lengths<'a> {
    all: Hist,
    /// The groups with the most time first.
    groups: Groups<'a>,
    /// The parts that the report about waits has in addition.
    waits: Option<OfWaits>,
}

/// The facts beside the lengths in a report about waits for a CPU.
struct OfWaits {
    cpus: BTreeMap<CpuId, Hist>,
    /// The demand of all recorded tasks, whichever are chosen; `None` with `--cpu`.
    wanted: Option<CpuDemand>,
}

impl<'a> Lengths<'a> {
    /// The report about slices on a CPU.
    pub fn slices(view: &View<'a>) -> Lengths<'a> {
        let slices = |group: &Members| {
            let threads = group.threads.clone().into_iter();
            let pieces = threads.flat_map(|thread| waits::slices(view.analysis, thread));
            pieces.map(|piece| (piece.length(), piece.whole_slice()))
        };
        let time = |hist: &Hist| hist.total().saturating_add(hist.cut().1);
        let by = view.ask.by.unwrap_or(By::Program);
        let groups = members(view, by);
        let all = Hist::new(groups.iter().flat_map(slices));
        let mut groups: Vec<(Members, Hist)> = groups
            .into_iter()
            .map(|group| {
                let hist = Hist::new(slices(&group));
                (group, hist)
            })
            .filter(|(_, hist)| time(hist) > 0)
            .collect();
        groups.sort_by_key(|(_, hist)| Reverse(time(hist)));
        Lengths {
            all,
            groups: Groups {
                view: *view,
                by,
                what: "slices",
                groups,
            },
            waits: None,
        }
    }

    /// The report about waits for a CPU.
    pub fn waits(view: &View<'a>) -> Lengths<'a> {
        let only = view.ask.cpu;
        let length = |piece: &Piece| (piece.length(), piece.whole_wait());
        let (mut groups, mut all) = (Vec::new(), Vec::new());
        let mut cpus = BTreeMap::<CpuId, Vec<(u64, bool)>>::new();
        let by = view.ask.by.unwrap_or(By::Program);
        for group in members(view, by) {
            let pieces: Vec<Piece> = group
                .threads
                .iter()
                .flat_map(|thread| waits::for_cpu(view.analysis, *thread))
                // Without a switch-in the CPU is unknown.
                .filter(|piece| only.is_none() || piece.after.cpu() == only)
                .collect();
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
        Lengths {
            all: Hist::new(all),
            groups: Groups {
                view: *view,
                by,
                what: "waits",
                groups,
            },
            waits: Some(OfWaits {
                cpus: cpus
                    .into_iter()
                    .map(|(cpu, waits)| (cpu, Hist::new(waits)))
                    .collect(),
                wanted: if only.is_none() { wanted(view) } else { None },
            }),
        }
    }

    /// The beginning of the text, before the sums.
    fn title(&self) -> String {
        match (&self.waits, self.groups.view.ask.cpu) {
            (None, _) => "Slices on a CPU   ".to_owned(),
            (Some(_), None) => "Run-queue waits   ".to_owned(),
            (Some(_), Some(cpu)) => format!("Run-queue waits that ended on CPU {}   ", cpu.0),
        }
    }
}

impl OfWaits {
    /// The demand for CPUs, and the waits by CPU if there are any.
    fn add(&self, out: &mut Page, has_waits: bool) {
        if let Some(wanted) = &self.wanted {
            out.blank();
            out.add(wanted.page());
        }
        if has_waits {
            let cpus = self.cpus.iter();
            let rows = cpus.map(|(cpu, hist)| ("cpu", format!("CPU {}", cpu.0), None, hist));
            let table = hist::table("waits").titled("by CPU that the wait ended on");
            out.blank();
            out.table(&table, rows);
        }
    }
}

impl Report for Lengths<'_> {
    fn page(&self, style: &Style) -> Page {
        let mut out = Page::new();
        let ask = self.groups.view.ask;
        out.items(self.title(), self.all.summary(self.groups.what));
        if let Some(waits) = &self.waits {
            self.all.draw(&mut out, style);
            waits.add(&mut out, self.all.count() > 0);
        } else if ask.by.is_none() {
            self.all.draw(&mut out, style);
        }
        if ask.by.is_none() {
            out.blank();
            self.groups.table(&mut out);
            return out;
        }
        self.groups.draw(&mut out, style);
        let number = self.groups.groups.len();
        if self.waits.is_none() && number > ask.top {
            out.blank();
            out.more(number, ask.top, ": --top shows them");
        }
        out
    }

    fn json(&self) -> Option<Value> {
        let table = hist::table(self.groups.what);
        let json = |hist| table.json(&("", String::new(), None, hist));
        let document = json!({"all": json(&self.all), "groups": self.groups.json()});
        let Some(waits) = &self.waits else {
            return Some(document);
        };
        let cpus = waits.cpus.iter();
        let cpus: Value = cpus
            .map(|(cpu, hist)| with(json(hist), json!({"cpu": cpu.0})))
            .collect();
        let wanted = waits.wanted.as_ref().map(CpuDemand::json);
        Some(with(document, json!({"cpus": cpus, "wanted": wanted})))
    }

    /// The histograms of the CPUs, then the ones of the groups.
    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let cpus = self.waits.iter().flat_map(|waits| &waits.cpus);
        let cpus = cpus.map(|(cpu, hist)| ("cpu", cpu.0.to_string(), None, hist));
        hist::csv(cpus.chain(self.groups.asked()), self.waits.is_some())
    }
}
