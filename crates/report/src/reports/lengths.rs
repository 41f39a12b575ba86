//! The reports that show how long threads ran or waited at a time, as histograms: slices on a CPU (`histogram`), and
//! waits for a CPU (`run-queue`).
//! A slice goes from the switch-in to the switch-out. A wait for a CPU goes from the waking, the fork or the switch-out
//! by preemption to the switch-in. A wait belongs to the CPU of this switch-in.

use std::collections::BTreeMap;

use serde_json::{json, Value};
use tr_analyze::waits::{self, Piece};
use tr_format::event::CpuId;

use super::wanted;
use crate::hist;
use crate::members;
use crate::output::Report;
use tr_insight::cpus::cpu_demand::{demand, CpuDemand};
use tr_insight::views::members::{Collect, Grouped, Members};
use tr_insight::views::query::By;
use tr_insight::views::view::View;
use tr_insight::waits::hist::{Hist, Length};
use tr_text::json::with;
use tr_text::page::{Page, Span};
use tr_text::style::{Paint, Style};
use tr_text::table::{Sheet, Table};

/// The report `histogram` on the lengths of slices on a CPU, or `run-queue` on the lengths of waits for a CPU. With
/// `--by`, the report draws a histogram for each group. Otherwise it draws one histogram for all chosen threads, and
/// lists the programs.
pub struct Lengths<'a> {
    view: View<'a>,
    by: By,
    lengths: Grouped<Hist>,
    /// The additional parts of the report on waits for a CPU; `None` in the report on slices.
    waits: Option<OfWaits>,
}

/// The parts of the report `run-queue` that the report on slices does not have: the waits by CPU, and the demand for
/// CPUs.
struct OfWaits {
    cpus: BTreeMap<CpuId, Hist>,
    /// The demand for CPUs by all recorded tasks, even by those that the filters leave out; `None` with `--cpu`.
    wanted: Option<CpuDemand>,
}

impl<'a> Lengths<'a> {
    /// Makes the report on the lengths of slices, which are the times from switch-in to switch-out that a thread
    /// is on a CPU.
    pub fn slices(view: &View<'a>) -> Lengths<'a> {
        let by = view.ask.by.unwrap_or(By::Program);
        let slices = |thread| {
            waits::slices(view.analysis, thread).map(|piece| Length {
                ns: piece.length(),
                whole: piece.whole_slice(),
                cpu: None,
            })
        };
        let time = |hist: &Hist| {
            let time = hist.total().saturating_add(hist.cut().1);
            (time > 0).then_some(time)
        };
        Lengths {
            view: *view,
            by,
            lengths: Grouped::new(view, by, slices, time, |_| ()),
            waits: None,
        }
    }

    /// Makes the report on the lengths of waits for a CPU, from the moment at which a thread becomes runnable to
    /// its switch-in.
    pub fn waits(view: &View<'a>) -> Lengths<'a> {
        let by = view.ask.by.unwrap_or(By::Program);
        let only = view.ask.cpu;
        let waits = |thread| {
            // A wait that did not end with a switch-in has no known CPU, so `--cpu` leaves it out.
            let chosen = move |piece: &Piece| only.is_none() || piece.after.cpu() == only;
            let waits = waits::for_cpu(view.analysis, thread).filter(chosen);
            waits.map(|piece| Length {
                ns: piece.length(),
                whole: piece.whole_wait(),
                cpu: piece.after.cpu(),
            })
        };
        let time = |hist: &Hist| (hist.count() + hist.cut().0 > 0).then(|| hist.total());
        let mut cpus = BTreeMap::<CpuId, Hist>::new();
        let lengths = Grouped::new(view, by, waits, time, |wait: Length| {
            if let Some(cpu) = wait.cpu {
                cpus.entry(cpu).or_default().add(&wait);
            }
        });
        cpus.values_mut().for_each(Hist::finish);
        Lengths {
            view: *view,
            by,
            lengths,
            waits: Some(OfWaits {
                cpus,
                wanted: if only.is_none() { demand(view) } else { None },
            }),
        }
    }

    /// The title at the beginning of the report on lengths: `Slices on a CPU` or `Run-queue waits`.
    fn title(&self) -> String {
        match (&self.waits, self.view.ask.cpu) {
            (None, _) => "Slices on a CPU   ".to_owned(),
            (Some(_), None) => "Run-queue waits   ".to_owned(),
            (Some(_), Some(cpu)) => format!("Run-queue waits that ended on CPU {}   ", cpu.0),
        }
    }

    /// The plural noun for what the report is about, `slices` on a CPU or `waits` for a CPU, in its texts.
    fn what(&self) -> &'static str {
        match self.waits {
            None => "slices",
            Some(_) => "waits",
        }
    }

    /// Draws the histograms of lengths of the first groups of threads, as many as `--top` says.
    fn draw(&self, out: &mut Page, style: &Style) {
        for (group, hist) in self.lengths.groups.iter().take(self.view.ask.rows()) {
            let pid = group.pid.map(|pid| format!(" ({pid})")).unwrap_or_default();
            let [name, pid] = [group.name.short(), &pid].map(|text| Span::new(Paint::Bold, text));
            out.blank();
            out.named::<Span, _>([], name, 0, [pid]);
            out.items("", hist::summary(hist, self.what()));
            hist::draw(hist, out, style);
        }
    }

    /// The table that sums up the lengths of each group of threads.
    fn groups(&self) -> Table<'_, &(Members, Hist)> {
        let table = members::table(self.by, |row: &&(Members, Hist)| &row.0);
        hist::sums(table, self.what(), |row| &row.1)
    }
}

impl OfWaits {
    /// Adds two parts to the report on waits for a CPU: the demand for CPUs, and a table of the waits by the CPU on
    /// which they ended. The table is left out if there are no waits (`has_waits`).
    fn add(&self, out: &mut Page, has_waits: bool) {
        if let Some(wanted) = &self.wanted {
            out.blank();
            out.add(wanted::page(wanted));
        }
        if has_waits {
            out.blank();
            out.table(&OfWaits::by_cpu(), &self.cpus);
        }
    }

    /// The table that sums up the waits by the CPU on which they ended.
    fn by_cpu<'r>() -> Table<'r, (&'r CpuId, &'r Hist)> {
        let name = |(cpu, _): &(&CpuId, &Hist)| format!("CPU {}", cpu.0);
        let table = Table::new("by CPU that the wait ended on", name).data("cpu", |(cpu, _)| cpu.0);
        hist::sums(table, "waits", |(_, hist)| hist)
    }
}

impl Report for Lengths<'_> {
    fn page(&self, style: &Style) -> Page {
        let mut out = Page::new();
        let Grouped { all, groups } = &self.lengths;
        let ask = self.view.ask;
        out.items(self.title(), hist::summary(all, self.what()));
        if self.waits.is_some() || ask.by.is_none() {
            hist::draw(all, &mut out, style);
        }
        if let Some(waits) = &self.waits {
            waits.add(&mut out, all.count() > 0);
        }
        if ask.by.is_none() {
            out.blank();
            out.first(self.groups(), self.by.title(), groups, ask.rows());
            return out;
        }
        self.draw(&mut out, style);
        if self.waits.is_none() && groups.len() > ask.rows() {
            out.blank();
            out.more(groups.len(), ask.rows(), ": --top shows them");
        }
        out
    }

    fn json(&self) -> Option<Value> {
        let Grouped { all, groups } = &self.lengths;
        let document = json!({
            "all": hist::sums(Table::unnamed(), self.what(), |hist: &&Hist| hist).json(&all),
            "groups": self.groups().rows(self.view.asked(groups)),
        });
        let Some(waits) = &self.waits else {
            return Some(document);
        };
        let cpus = OfWaits::by_cpu().rows(&waits.cpus);
        let wanted = waits.wanted.as_ref().map(wanted::json);
        Some(with(document, json!({"cpus": cpus, "wanted": wanted})))
    }

    /// The report's histograms of lengths as CSV: those of the CPUs first, then those of the groups of threads.
    fn sheet(&self) -> Sheet {
        let cpus = self.waits.as_ref().map(|waits| &waits.cpus);
        hist::sheet(cpus, self.view.asked(&self.lengths.groups))
    }
}
