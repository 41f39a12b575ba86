//! Narrows the unknown time of a task with the kernel's own totals of its time on a CPU and in run queues.

use super::{ProcIx, Task, TaskIx, Tracker};
use crate::arena::Ix;
use crate::model::{Basis, ByKernel};
use crate::state::StateTimes;

/// The least error in ns that makes a task's run-queue time doubtful. The error is the difference between the run-queue
/// time computed from the events and the kernel's own figure. A guess: some microseconds of difference arise at each
/// switch, and with a smaller limit short true waits would become unknown.
const DOUBTFUL_TIME: u64 = 1_000_000;

impl Tracker {
    /// Reduces the unknown time of a task, and of the programs of its process. The kernel's totals of the task's whole
    /// life show how long the task was on a CPU or in run queues. They do not show when.
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
        // The totals cover the whole life of the task. If they include the time in run queues, the rest of the unknown
        // time can only be sleeps and blocked waits.
        let is_whole = self.basis == Basis::Totals && kernel.run_delay.is_some();
        let part = StateTimes::by_totals(times.unknown, ran, waited, is_whole);
        times.take_from_unknown(&part);
        task.by_kernel.add(&ByKernel::of(&part));
        let of = task.process;
        self.narrow_programs(of, part);
    }

    /// If an ended task's run-queue time is longer than the kernel counted, makes the difference unknown. Only
    /// waits for which no waking was seen are changed: the waking was lost, and the task slept for a part of the
    /// wait.
    pub(super) fn doubt_unwoken(&mut self, ix: TaskIx) {
        let task = &mut self.tasks[ix];
        let counted = task.kernel.and_then(|kernel| kernel.run_delay);
        if task.unwoken < DOUBTFUL_TIME || task.started_before {
            return;
        }
        let Some(counted) = counted else {
            return;
        };
        let excess = task.times.run_queue.saturating_sub(counted);
        let most = excess.min(task.unwoken);
        if most < DOUBTFUL_TIME {
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

    /// Whether the kernel's totals of a task contain only time inside the analyzed span, and some of its time is
    /// unknown.
    fn lived_inside(&self, task: &Task) -> bool {
        let ended = task.end.is_some_and(|end| end <= self.end);
        ended && !task.started_before && task.times.unknown > 0
    }

    /// Moves time out of the unknown time of a process's programs to the known times. The totals of a task do not
    /// show during which program the time was spent, so it is taken from the first programs with unknown time.
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
