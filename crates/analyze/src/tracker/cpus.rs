//! Keeps the figures of each CPU that its switches prove: the idle time, the migrations of recorded threads
//! to the CPU, and their switch-outs.

use std::collections::BTreeMap;

use tr_format::event::{CpuId, Ktime, Tid};

use super::{TaskIx, Tracker};
use crate::gaps::Gaps;
use crate::model::CpuFigures;

/// For each CPU that has had an event, by its number, its present state and its figures.
#[derive(Debug, Default)]
pub struct Cpus(Vec<CpuEntry>);

impl Cpus {
    /// The state and the figures of a CPU; `None` if the CPU has had no event.
    #[inline]
    pub(super) fn get_mut(&mut self, cpu: CpuId) -> Option<&mut CpuEntry> {
        self.0.get_mut(usize::from(cpu.0))
    }

    #[allow(clippy::indexing_slicing)] // made if need be
    pub(super) fn entry(&mut self, cpu: CpuId) -> &mut CpuEntry {
        let at = usize::from(cpu.0);
        if self.0.len() <= at {
            self.0.resize(at + 1, CpuEntry::default());
        }
        &mut self.0[at]
    }

    /// The figures of a CPU, such as its idle time. They are created if there are none.
    pub(super) fn figures(&mut self, cpu: CpuId) -> &mut CpuFigures {
        let entry = self.entry(cpu);
        entry.counted = true;
        &mut entry.figures
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (CpuId, &CpuEntry)> {
        (0..=u16::MAX).map(CpuId).zip(&self.0)
    }

    /// The recorded task that runs on a CPU, if one is known to run there.
    pub(super) fn current(&self, cpu: CpuId) -> Option<TaskIx> {
        self.0.get(usize::from(cpu.0))?.current
    }

    pub(super) fn last_switch(&self, cpu: CpuId) -> Option<Ktime> {
        self.0.get(usize::from(cpu.0))?.last_switch
    }

    /// For each CPU, forgets the task that runs on it if `lives` is false for the task.
    pub(super) fn retain(&mut self, lives: impl Fn(TaskIx) -> bool) {
        for entry in &mut self.0 {
            entry.current = entry.current.filter(|ix| lives(*ix));
        }
    }
}

/// Whether a CPU has had no switch in the time from its switch at `since` to `time`, as far as is known, and has
/// lost no events in it.
pub(super) fn goes_on(cpus: &Cpus, gaps: &Gaps, cpu: CpuId, since: Ktime, time: Ktime) -> bool {
    let lost = gaps.of(cpu).and_then(|spans| spans.first_in(since, time));
    cpus.last_switch(cpu) == Some(since) && lost.is_none()
}

#[derive(Clone, Copy, Debug, Default)]
pub struct CpuEntry {
    pub(super) figures: CpuFigures,
    /// Whether the figures of the CPU are part of the result.
    pub(super) counted: bool,
    /// Whether a switch of the CPU has been seen.
    pub(super) switched: bool,
    /// The time since which the CPU has been idle, if it is idle.
    pub(super) idle_since: Option<Ktime>,
    /// The recorded task that runs on the CPU, if one is known to run there.
    pub(super) current: Option<TaskIx>,
    pub(super) last_switch: Option<Ktime>,
    /// The task to which the CPU's last switch went.
    pub(super) next: Tid,
}

impl CpuEntry {
    /// Counts a switch that is handled by the fast path. `left` is whether a recorded task left the CPU, `runnable`
    /// whether this task was still runnable, and `moved` whether the recorded task that came had been on another CPU
    /// before.
    #[inline(always)]
    pub(super) fn count(&mut self, left: bool, runnable: bool, moved: bool) {
        self.counted |= left | moved;
        if left {
            self.figures.switches.involuntary += u64::from(runnable);
            self.figures.switches.voluntary += u64::from(!runnable);
        }
        self.figures.migrations += u64::from(moved);
    }

    /// Adds the idle time of the CPU up to a switch that is handled by the fast path. `start` is the start of the
    /// analyzed span.
    #[inline(always)]
    pub(super) fn count_idle(&mut self, start: Ktime, time: Ktime, prev: Tid, next: Tid) {
        let idle = self.idle_since.filter(|_| prev == Tid::IDLE);
        self.figures.idle += idle.map_or(0, |since| time.since(since.max(start)));
        self.idle_since = (next == Tid::IDLE).then_some(time);
    }
}

impl Tracker {
    /// Takes a switch into account for the idle time of its CPU. Only a recording of the whole machine shows the
    /// idle time, because otherwise the switches of other tasks are missing.
    pub(super) fn cpu_switched(&mut self, cpu: CpuId, time: Ktime, prev: Tid, next: Tid) {
        if !self.system_wide {
            return;
        }
        let entry = self.cpus.entry(cpu);
        entry.counted = true;
        // Before its first switch it was in one state since the beginning.
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
        // In a gap a task may have come and gone; the time before it is sure.
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

    /// Notes for each CPU the unrecorded tasks that have it at the end of the recording, because no later switch
    /// shows them.
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
            figures.idle_known = self.system_wide;
        }
        all.into_iter().collect()
    }
}
