//! What each CPU did, as far as its switches prove it: when nobody ran there,
//! how often a recorded thread came from another CPU and how often one left.

use std::collections::BTreeMap;

use tr_format::event::{CpuId, Ktime, Tid};

use super::{TaskIx, Tracker};
use crate::model::{CpuFigures, Switches};

/// What is known of a CPU, while the tracker is being kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuEntry {
    pub(super) figures: CpuFigures,
    /// It has figures.
    pub(super) counted: bool,
    /// A switch of it was seen.
    pub(super) switched: bool,
    /// Nobody runs there, since then.
    pub(super) idle_since: Option<Ktime>,
    /// Actor runs there.
    pub(super) current: Option<TaskIx>,
    /// When it last switched.
    pub(super) last_switch: Option<Ktime>,
}

impl Tracker {
    /// Changes a CPU's entry, which is made when there is none.
    pub(super) fn cpu_entry<T>(
        &mut self,
        cpu: CpuId,
        change: impl FnOnce(&mut CpuEntry) -> T,
    ) -> T {
        match self.cpus.get_mut(cpu) {
            Some(entry) => change(entry),
            None => {
                let mut entry = CpuEntry::default();
                let changed = change(&mut entry);
                self.cpus.insert(cpu, entry);
                changed
            }
        }
    }

    /// Changes a CPU's figures.
    fn cpu_figure<T>(&mut self, cpu: CpuId, change: impl FnOnce(&mut CpuEntry) -> T) -> T {
        self.cpu_entry(cpu, |entry| {
            entry.counted = true;
            change(entry)
        })
    }

    /// Actor runs there.
    pub(super) fn current(&self, cpu: CpuId) -> Option<TaskIx> {
        self.cpus.get(cpu).and_then(|entry| entry.current)
    }

    /// Puts a task there, or nobody.
    pub(super) fn set_current(&mut self, cpu: CpuId, task: Option<TaskIx>) {
        self.cpu_entry(cpu, |entry| entry.current = task);
    }

    /// When the CPU last switched.
    pub(super) fn last_switch(&self, cpu: CpuId) -> Option<Ktime> {
        self.cpus.get(cpu).and_then(|entry| entry.last_switch)
    }

    /// The CPU has switched.
    pub(super) fn has_switched(&mut self, cpu: CpuId, time: Ktime) {
        self.cpu_entry(cpu, |entry| entry.last_switch = Some(time));
    }

    /// A switch on a CPU, for its idle time. That is only known when system_wide
    /// is recorded: otherwise the switches from and to others are missing.
    pub(super) fn cpu_switched(&mut self, cpu: CpuId, time: Ktime, prev: Tid, next: Tid) {
        if !self.system_wide {
            return;
        }
        let begun = self.recorded_from;
        let idle = self.cpu_figure(cpu, |entry| {
            // Before its first switch it was in one state since the beginning.
            let since = if std::mem::replace(&mut entry.switched, true) {
                entry.idle_since
            } else {
                Some(begun)
            };
            entry.idle_since = (next == Tid::IDLE).then_some(time);
            since.filter(|_| prev == Tid::IDLE)
        });
        if let Some(since) = idle {
            self.was_idle(cpu, since, time);
        }
    }

    /// Somebody ran there, whether or not it was seen to come.
    pub(super) fn cpu_not_idle(&mut self, cpu: CpuId) {
        if let Some(entry) = self.cpus.get_mut(cpu) {
            entry.idle_since = None;
        }
    }

    fn was_idle(&mut self, cpu: CpuId, from: Ktime, to: Ktime) {
        // In a gap somebody may have come and gone; what is before it is sure.
        let spans = self.gaps.of(cpu);
        let lost = spans.and_then(|spans| spans.first_in(from, to));
        let (from, to) = (from.max(self.start), lost.unwrap_or(to).min(self.end));
        self.cpu_figure(cpu, |entry| entry.figures.idle += to.since(from));
    }

    /// A recorded thread left the CPU.
    pub(super) fn cpu_left(&mut self, cpu: CpuId, time: Ktime, switches: Switches) {
        if self.inside(time) {
            self.cpu_figure(cpu, |entry| entry.figures.switches.add(&switches));
        }
    }

    /// A recorded thread came from another CPU.
    pub(super) fn cpu_gained(&mut self, cpu: CpuId, time: Ktime) {
        if self.inside(time) {
            self.cpu_figure(cpu, |entry| entry.figures.migrations += 1);
        }
    }

    /// The span is over.
    pub(super) fn finish_cpus(&mut self) {
        let idle: Vec<_> = self
            .cpus
            .iter()
            .map(|(cpu, e)| (cpu, e.idle_since))
            .collect();
        for (cpu, since) in idle {
            if let Some(since) = since {
                self.was_idle(cpu, since, self.end);
            }
        }
    }

    /// Of every CPU that was met or is known.
    pub fn cpu_figures(&self, known: &[CpuId]) -> Vec<(CpuId, CpuFigures)> {
        let none = known.iter().map(|cpu| (*cpu, CpuFigures::default()));
        let mut all: BTreeMap<CpuId, CpuFigures> = none.collect();
        let counted = self.cpus.iter().filter(|(_, entry)| entry.counted);
        all.extend(counted.map(|(cpu, entry)| (cpu, entry.figures)));
        let known = self.system_wide;
        for figures in all.values_mut() {
            figures.idle_known = known;
        }
        all.into_iter().collect()
    }
}
