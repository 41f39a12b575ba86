//! The present state of each CPU, such as the task that runs on it, and its figures. Both are derived from the
//! CPU's switches.

use tr_format::event::{CpuId, Ktime, Tid};

use crate::gaps::Gaps;
use crate::ids::TaskIx;
use crate::model::CpuFigures;

/// For each CPU that has had an event, by its number, its present state and its figures.
#[derive(Debug, Default)]
pub struct Cpus(Vec<CpuEntry>);

impl Cpus {
    /// The state and the figures of a CPU; `None` if no event has made an entry for the CPU yet.
    #[inline]
    pub(super) fn get_mut(&mut self, cpu: CpuId) -> Option<&mut CpuEntry> {
        self.0.get_mut(usize::from(cpu.0))
    }

    #[allow(clippy::indexing_slicing)] // the entry exists after `resize`
    pub(super) fn entry(&mut self, cpu: CpuId) -> &mut CpuEntry {
        let at = usize::from(cpu.0);
        if self.0.len() <= at {
            self.0.resize(at + 1, CpuEntry::default());
        }
        &mut self.0[at]
    }

    /// The figures of a CPU, such as its idle time, to be changed. They are part of the result from now on.
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

/// Whether a CPU certainly ran one task from its switch at `since` up to `time`: no later switch of it is known,
/// and no events of it are lost in between.
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
