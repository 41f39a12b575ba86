//! Figures of each CPU, as far as its switches prove them: its idle time, the migrations
//! of recorded threads to it, their switch-outs.

use std::collections::BTreeMap;

use tr_format::event::{CpuId, Ktime, Tid};

use super::{TaskIx, Tracker};
use crate::model::{CpuFigures, Switches};
use crate::sort::Gather;

#[derive(Clone, Copy, Debug, Default)]
pub struct CpuEntry {
    pub(super) figures: CpuFigures,
    /// It has figures.
    pub(super) counted: bool,
    /// A switch of it has been seen.
    pub(super) switched: bool,
    /// It has been idle since then.
    pub(super) idle_since: Option<Ktime>,
    /// The recorded task that runs there.
    pub(super) current: Option<TaskIx>,
    /// Its last switch.
    pub(super) last_switch: Option<Ktime>,
}

impl CpuEntry {
    /// Counts a switch of the fast path: whether a recorded task left, runnable or not, and
    /// whether one came from another CPU.
    #[inline(always)]
    pub(super) fn count(&mut self, left: bool, runnable: bool, moved: bool) {
        self.counted |= left | moved;
        if left {
            self.figures.switches.involuntary += u64::from(runnable);
            self.figures.switches.voluntary += u64::from(!runnable);
        }
        self.figures.migrations += u64::from(moved);
    }

    /// Counts its idle time up to a switch of the fast path; `start`: of the span.
    #[inline(always)]
    pub(super) fn count_idle(&mut self, start: Ktime, time: Ktime, prev: Tid, next: Tid) {
        let idle = self.idle_since.filter(|_| prev == Tid::IDLE);
        self.figures.idle += idle.map_or(0, |since| time.since(since.max(start)));
        self.idle_since = (next == Tid::IDLE).then_some(time);
    }
}

impl Tracker {
    /// Changes a CPU's entry; makes it first, if need be.
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

    /// The recorded task that runs on a CPU.
    pub(super) fn current(&self, cpu: CpuId) -> Option<TaskIx> {
        self.cpus.get(cpu).and_then(|entry| entry.current)
    }

    /// Sets the recorded task that runs on a CPU.
    pub(super) fn set_current(&mut self, cpu: CpuId, task: Option<TaskIx>) {
        self.cpu_entry(cpu, |entry| entry.current = task);
    }

    /// The last switch of a CPU.
    pub(super) fn last_switch(&self, cpu: CpuId) -> Option<Ktime> {
        self.cpus.get(cpu).and_then(|entry| entry.last_switch)
    }

    /// A CPU has switched.
    pub(super) fn has_switched(&mut self, cpu: CpuId, time: Ktime) {
        self.cpu_entry(cpu, |entry| entry.last_switch = Some(time));
    }

    /// A switch on a CPU, for its idle time. Only a system-wide recording tells that:
    /// otherwise the switches of other tasks are missing.
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

    /// A task runs on a CPU, whether or not its switch-in was seen.
    pub(super) fn cpu_not_idle(&mut self, cpu: CpuId) {
        if let Some(entry) = self.cpus.get_mut(cpu) {
            entry.idle_since = None;
        }
    }

    fn was_idle(&mut self, cpu: CpuId, from: Ktime, to: Ktime) {
        // In a gap a task may have come and gone; the time before it is sure.
        let spans = self.gaps.of(cpu);
        let lost = spans.and_then(|spans| spans.first_in(from, to));
        let (from, to) = (from.max(self.start), lost.unwrap_or(to).min(self.end));
        self.cpu_figure(cpu, |entry| entry.figures.idle += to.since(from));
    }

    /// A recorded thread left the CPU, inside the span.
    pub(super) fn cpu_left(&mut self, cpu: CpuId, switches: Switches) {
        self.cpu_figure(cpu, |entry| entry.figures.switches.add(&switches));
    }

    /// A recorded thread came from another CPU, inside the span.
    pub(super) fn cpu_gained(&mut self, cpu: CpuId) {
        self.cpu_figure(cpu, |entry| entry.figures.migrations += 1);
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

    /// The figures of each CPU of the machine or of the events.
    pub fn cpu_figures(&self, known: &[CpuId]) -> Vec<(CpuId, CpuFigures)> {
        let none = known.iter().map(|cpu| (*cpu, CpuFigures::default()));
        let mut all: BTreeMap<CpuId, CpuFigures> = none.gather();
        let counted = self.cpus.iter().filter(|(_, entry)| entry.counted);
        all.extend(counted.map(|(cpu, entry)| (cpu, entry.figures)));
        let known = self.system_wide;
        for figures in all.values_mut() {
            figures.idle_known = known;
        }
        all.into_iter().collect()
    }
}
