//! Keeps the figures that the switches of each CPU prove: the idle time of the CPU, the migrations of recorded threads
//! to the CPU, and the switch-outs of recorded threads.

use std::collections::BTreeMap;

use tr_format::event::{CpuId, Ktime, Tid};

use super::Tracker;
use crate::model::{Basis, CpuFigures};

impl Tracker {
    /// Adds to a CPU's idle time what a switch shows. Only a recording of the whole machine shows idle time; in
    /// others the switches between unrecorded tasks are missing.
    pub(super) fn cpu_switched(&mut self, cpu: CpuId, time: Ktime, prev: Tid, next: Tid) {
        if !self.system_wide {
            return;
        }
        let entry = self.cpus.entry(cpu);
        entry.counted = true;
        // Until its first switch, a CPU has been either idle or busy since the beginning of the recording.
        let is_first = !std::mem::replace(&mut entry.switched, true);
        let since = if is_first {
            Some(self.recorded_from)
        } else {
            entry.idle_since
        };
        entry.idle_since = (next == Tid::IDLE).then_some(time);
        if is_first {
            self.concurrency.see_cpu(time);
        }
        if let Some(since) = since.filter(|_| prev == Tid::IDLE) {
            self.was_idle(cpu, since, time);
        }
    }

    /// Notes that a CPU is not idle, because a task runs on it, whether or not its switch-in was seen.
    pub(super) fn cpu_not_idle(&mut self, cpu: CpuId) {
        if let Some(entry) = self.cpus.get_mut(cpu) {
            entry.idle_since = None;
        }
    }

    fn was_idle(&mut self, cpu: CpuId, from: Ktime, to: Ktime) {
        // In a gap, a task may have run without an event. Only the time before the gap certainly was idle.
        let spans = self.gaps.of(cpu);
        let lost = spans.and_then(|spans| spans.first_in(from, to));
        let (from, to) = (from.max(self.start), lost.unwrap_or(to).min(self.end));
        self.cpus.figures(cpu).idle += to.since(from);
    }

    pub(super) fn finish_cpus(&mut self) {
        let all = self.cpus.all();
        let idle = all.filter_map(|(cpu, entry)| Some((cpu, entry.idle_since?)));
        for (cpu, since) in idle.collect::<Vec<_>>() {
            self.was_idle(cpu, since, self.end);
        }
        self.finish_outside();
    }

    /// Notes for each CPU the unrecorded tasks that have the CPU at the end of the recording, because no later switch
    /// shows these tasks.
    fn finish_outside(&mut self) {
        if self.system_wide || self.timeline.is_none() {
            return;
        }
        for (cpu, entry) in self.cpus.all() {
            let since = entry.last_switch.filter(|_| entry.current.is_none());
            if let Some(since) = since.filter(|since| *since < self.end) {
                let since = since.max(self.start);
                let outside = &mut self.collectors.outside;
                outside.goes_on(cpu, since, self.end, entry.next);
            }
        }
    }

    /// Returns the figures of each CPU that the machine has or that events name, in the order of the CPUs' numbers.
    pub fn cpu_figures(&self, known: &[CpuId]) -> Vec<(CpuId, CpuFigures)> {
        let none = known.iter().map(|cpu| (*cpu, CpuFigures::default()));
        let mut all: BTreeMap<CpuId, CpuFigures> = none.collect();
        let counted = self.cpus.all().filter(|(_, entry)| entry.counted);
        all.extend(counted.map(|(cpu, entry)| (cpu, entry.figures)));
        for figures in all.values_mut() {
            figures.idle_known = self.system_wide && self.basis == Basis::Events;
        }
        all.into_iter().collect()
    }
}
