//! Narrows the unknown time of a task by the kernel's own totals.

use super::{ProcIx, Task, TaskIx, Tracker};
use crate::arena::Ix;
use crate::model::{Basis, ByKernel};
use crate::state::StateTimes;

/// The least difference in ns between the run-queue time by events and by the kernel's own figure that makes
/// the former doubtful. The two figures differ by some microseconds at each switch. A guess above these
/// microseconds: a smaller one would make short true waits unknown.
const LONG: u64 = 1_000_000;

impl Tracker {
    /// Moves the time that a task spent on a CPU and in run queues, by the kernel's totals of its whole life, out
    /// of its unknown time, and out of the unknown time of its process's programs. The events themselves do
    /// not show when that time was.
    pub(super) fn narrow(&mut self, ix: TaskIx) {
        if self.only.is_some() || !self.lived_inside(&self.tasks[ix]) {
            return;
        }
        let task = &mut self.tasks[ix];
        let Some(kernel) = task.kernel.filter(|kernel| kernel.is_final) else {
            return;
        };
        let times = &mut task.times;
        let ran = kernel.sum_exec_runtime.saturating_sub(times.on_cpu);
        let waited = kernel.run_delay.unwrap_or(0);
        let waited = waited.saturating_sub(times.run_queue);
        // The totals are those of its whole life.
        let told = self.basis == Basis::Totals && kernel.run_delay.is_some();
        let part = StateTimes::by_totals(times.unknown, ran, waited, told);
        times.take_from_unknown(&part);
        task.by_kernel.add(&ByKernel::of(&part));
        let of = task.process;
        self.narrow_programs(of, part);
    }

    /// Makes the run-queue time of an ended task unknown as far as it is more than the kernel counted and only the
    /// lack of a waking speaks for it: then the waking was not seen, and the task slept for some of that time.
    pub(super) fn doubt_unwoken(&mut self, ix: TaskIx) {
        let task = &mut self.tasks[ix];
        let counted = task.kernel.and_then(|kernel| kernel.run_delay);
        if task.unwoken < LONG || task.started_before {
            return;
        }
        let Some(counted) = counted else {
            return;
        };
        let excess = task.times.run_queue.saturating_sub(counted);
        let most = excess.min(task.unwoken);
        if most < LONG {
            return;
        }
        let found = match self.timeline.as_mut() {
            Some(timeline) => timeline.doubt_unwoken(ix.place(), most),
            None => most,
        };
        let task = &mut self.tasks[ix];
        task.times.run_queue = task.times.run_queue.saturating_sub(found);
        task.times.unknown = task.times.unknown.saturating_add(found);
        task.unwoken -= found;
    }

    /// Whether the kernel's totals of a task have no time outside of the span.
    fn lived_inside(&self, task: &Task) -> bool {
        let ended = task.end.is_some_and(|end| end <= self.end);
        ended && !task.started_before && task.times.unknown > 0
    }

    /// Moves time out of the unknown time of a process's programs. The totals of a task do not show in which
    /// program the time was, so it is taken from the first programs with unknown time.
    fn narrow_programs(&mut self, of: ProcIx, mut rest: StateTimes) {
        let basis = self.basis;
        for exec in &mut self.processes[of].execs {
            let on_cpu = rest.on_cpu.min(exec.times.unknown);
            let run_queue = rest.run_queue.min(exec.times.unknown - on_cpu);
            let sleep = rest.sleep.min(exec.times.unknown - on_cpu - run_queue);
            let part = StateTimes {
                on_cpu,
                run_queue,
                sleep,
                ..StateTimes::default()
            };
            exec.times.unknown -= on_cpu + run_queue + sleep;
            exec.times.add(&part.times(basis));
            rest = rest.since(&part);
        }
    }
}
