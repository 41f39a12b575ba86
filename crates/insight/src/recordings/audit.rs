//! Compares the figures that `tr` computes from recorded events with the kernel's own figures: for each task that
//! ended, the kernel counted the run time and the context switches.
//!
//! The two run times differ by design, for two reasons. First, in a switch the kernel needs a few µs to pick the next
//! task. The kernel counts this time for the next task (`set_next_entity`), because the kernel reads the run queue's
//! clock before it picks the task. The event's timestamp is taken after the task was picked (`trace_sched_switch` in
//! `__schedule`), so that `tr` counts this time for the previous task. Second, the kernel's clock (`rq_clock_task`)
//! leaves out interrupts and steal time.

use serde::Serialize;
use tr_analyze::model::{Analysis, KernelFigures, Thread, Times};

use crate::processes::label;
use tr_text::phrase::Phrase;
use tr_text::units;

/// A comparison of two sources of the tasks' times: the recorded events, and the kernel's own counters. Only tasks that
/// started and ended in the analyzed span are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Audit {
    pub tasks: u64,
    /// The number of context switches of all compared tasks, as counted from the recorded events.
    #[serde(skip)]
    switches: u64,
    /// The number of tasks for which the recorded events and the kernel give the same numbers of voluntary and
    /// involuntary switches.
    pub switches_equal: u64,
    pub switches_equal_in_sum: u64,
    /// The sum of the CPU time of all compared tasks in nanoseconds, as computed from the recorded events.
    pub on_cpu_ns: u64,
    /// The sum of the time in nanoseconds in which the recorded events do not show the state of the compared tasks.
    pub unknown_ns: u64,
    /// The sum of the CPU time of all compared tasks in nanoseconds, as counted by the kernel (`sum_exec_runtime`).
    pub kernel_ns: u64,
    /// The absolute differences in nanoseconds between a task's CPU time by the recorded events and by the kernel: the
    /// median, the 90 % and the 99 % quantile and the maximum over all compared tasks.
    pub differences_ns: [u64; 4],
    /// The median, the 90 % and the 99 % quantile and the maximum over all tasks of the following quotient in
    /// nanoseconds: the difference between a task's CPU time by the events and by the kernel, divided by the number of
    /// the task's switches. The quotient is the average distance between the two sources' timestamps of a switch. Tasks
    /// with unknown time are left out.
    pub switch_differences_ns: [u64; 4],
    /// For the tasks with more CPU time by the recorded events than by the kernel: the sum of these differences in
    /// nanoseconds. The sum includes the time that the kernel does not count: interrupts and steal time.
    pub events_more_ns: u64,
    /// For the tasks with more CPU time by the kernel than by the recorded events: the sum of these differences in
    /// nanoseconds. Time in which the state of these tasks is unknown is subtracted.
    pub kernel_more_ns: u64,
    /// The comparison of the tasks' time in run queues by the events and by the kernel; `None` if the kernel does not
    /// count the time in run queues.
    pub run_queue: Option<RunQueueByKernel>,
    /// The tasks for which the kernel counted more time in run queues (`run_delay`) than is possible. These tasks are
    /// left out of the comparison of times in run queues (`run_queue`).
    pub impossible: Option<Impossible>,
    /// The figures (each a sum over all compared tasks) for which the difference between the events and the kernel is
    /// larger than inexact timestamps, interrupts and steal time can explain.
    pub beyond_bounds: Vec<Doubt>,
    pub worst: Vec<Worst>,
}

/// A figure of all compared tasks together, computed from the recorded events, that the kernel's own figure
/// contradicts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Doubt {
    /// The name of the doubtful figure, as JSON has it: `on_cpu` or `run_queue`.
    pub figure: &'static str,
    /// The value in nanoseconds of the figure that `figure` names, as computed from the recorded events.
    pub events_ns: u64,
    /// The time in nanoseconds in which the recorded events do not show the state of the compared tasks.
    pub unknown_ns: u64,
    /// The value in nanoseconds of the figure that `figure` names, as counted by the kernel.
    pub kernel_ns: u64,
}

impl Doubt {
    pub fn text(&self) -> String {
        let figure = match self.figure {
            "run_queue" => "of run-queue wait",
            _ => "of CPU time",
        };
        format!(
            "the kernel counted {} {figure}, the events show {} (see --report audit)",
            units::time(self.kernel_ns),
            units::time(self.events_ns)
        )
    }
}

/// The largest normal difference in nanoseconds between the events' and the kernel's figures of a task: a part for the
/// task itself, and a part for each of its switches. The two sources take their timestamps of a switch or a wake-up at
/// different moments, so small differences are normal. A guess: with a smaller limit, every recording of a virtual
/// machine would be in doubt.
const NOISE: (u64, u64) = (1_000_000, 10_000);

impl Audit {
    /// Computes the sums over all compared tasks, by the events and by the kernel. Figures that need all tasks in
    /// sorted order are left out.
    fn sums(analysis: &Analysis) -> Audit {
        let mut sums = Audit::default();
        whole(analysis).for_each(|(thread, kernel)| sums.add(thread, kernel));
        sums.beyond_bounds = sums.doubts();
        sums
    }

    fn add(&mut self, thread: &Thread, kernel: &KernelFigures) {
        let times = thread.times_by_events();
        let (switches, counted) = switches(thread, kernel);
        let by_kind = (thread.switches.voluntary, thread.switches.involuntary);
        let by_kind = by_kind == (kernel.nvcsw, kernel.nivcsw);
        let (run, most) = (
            kernel.sum_exec_runtime,
            times.on_cpu.saturating_add(times.unknown),
        );
        let sums = [
            (&mut self.tasks, 1),
            (&mut self.switches, switches),
            (&mut self.switches_equal, by_kind.into()),
            (
                &mut self.switches_equal_in_sum,
                (switches == counted).into(),
            ),
            (&mut self.on_cpu_ns, times.on_cpu),
            (&mut self.unknown_ns, times.unknown),
            (&mut self.kernel_ns, run),
            (&mut self.events_more_ns, times.on_cpu.saturating_sub(run)),
            (&mut self.kernel_more_ns, run.saturating_sub(most)),
        ];
        for (sum, term) in sums {
            *sum = sum.saturating_add(term);
        }
        let Some(run_delay) = kernel.run_delay else {
            return;
        };
        let most = most_delay(thread, kernel, &times);
        if let Some(most) = most.filter(|most| run_delay > *most) {
            self.impossible.get_or_insert_default().add(most, run_delay);
        } else {
            self.run_queue
                .get_or_insert_default()
                .add(&times, run_delay);
        }
    }

    fn doubts(&self) -> Vec<Doubt> {
        // A difference between the events and the kernel of at most this many nanoseconds, beyond the normal noise,
        // proves nothing.
        const LEAST: u64 = 20_000_000;
        // The limits are larger than the largest differences in the recorded fixtures, which are 4 % of the CPU time
        // and 12 % of the waits (both in an emulated machine), 2 µs for each switch, and 250 µs of waiting for each
        // task.
        let beyond =
            |more: u64, share: u64, noise: u64| more.saturating_sub(noise) > LEAST && more > share;
        let mut doubts = Vec::new();
        let (a_task, a_switch) = NOISE;
        let switches = self.switches.saturating_mul(a_switch);
        if beyond(self.kernel_more_ns, self.kernel_ns / 10, switches) {
            doubts.push(Doubt {
                figure: "on_cpu",
                events_ns: self.on_cpu_ns,
                unknown_ns: self.unknown_ns,
                kernel_ns: self.kernel_ns,
            });
        }
        if let Some(queue) = self.run_queue {
            let most = queue.events_ns.saturating_add(queue.unknown_ns);
            let (more, less) = (
                queue.events_ns.saturating_sub(queue.kernel_ns),
                queue.kernel_ns.saturating_sub(most),
            );
            let noise = switches.saturating_add(self.tasks.saturating_mul(a_task));
            let share = queue.kernel_ns / 4;
            if beyond(more, share, noise) || beyond(less, share, noise) {
                doubts.push(Doubt {
                    figure: "run_queue",
                    events_ns: queue.events_ns,
                    unknown_ns: queue.unknown_ns,
                    kernel_ns: queue.kernel_ns,
                });
            }
        }
        doubts
    }
}

/// The longest time in nanoseconds that a task can have waited in run queues, according to the events. The limit relies
/// on the events being complete: then the task was in no run queue between a switch-out into sleep and the next
/// wake-up. `None` if the kernel counted another number of switches than the events show, because then events may be
/// missing.
fn most_delay(thread: &Thread, kernel: &KernelFigures, times: &Times) -> Option<u64> {
    let (switches, counted) = switches(thread, kernel);
    if switches != counted {
        return None;
    }
    let (a_task, a_switch) = NOISE;
    let noise = a_task.saturating_add(switches.saturating_mul(a_switch));
    let most = times.run_queue.saturating_add(times.unknown);
    Some(most.saturating_add(noise))
}

/// The threads that began and ended in the analyzed span, each with the kernel's figures. A thread that began earlier
/// is left out, because the kernel's figures contain its time before the trace, and so is one whose run time at its
/// last switch-out the recording lacks.
fn whole(analysis: &Analysis) -> impl Iterator<Item = (&Thread, &KernelFigures)> {
    let threads = analysis.threads.iter();
    threads.filter_map(|thread| {
        let kernel = thread.kernel.as_ref()?;
        (!thread.started_before && !thread.alive && kernel.is_final).then_some((thread, kernel))
    })
}

/// The number of a thread's switches as counted from the events, and as counted by the kernel.
fn switches(thread: &Thread, kernel: &KernelFigures) -> (u64, u64) {
    let switches = thread.switches.voluntary + thread.switches.involuntary;
    (switches, kernel.nvcsw.saturating_add(kernel.nivcsw))
}

/// The figures of tasks in an analysis that the kernel's own totals contradict.
pub fn doubts(analysis: &Analysis) -> Vec<Doubt> {
    Audit::sums(analysis).beyond_bounds
}

/// The tasks of a recording for which the kernel counted more time in run queues than is possible; `None` if there are
/// no such tasks.
pub fn impossible(analysis: &Analysis) -> Option<Impossible> {
    Audit::sums(analysis).impossible
}

/// The tasks for which the kernel counted more time in run queues than is possible, because the recorded events show
/// that they slept in a part of that time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Impossible {
    pub tasks: u64,
    /// The time in run queues in nanoseconds, summed up over all tasks for which the kernel counted (`run_delay`) more
    /// than is possible.
    pub kernel_ns: u64,
    /// The longest possible time in run queues, in nanoseconds, of all tasks with an impossible count together, as the
    /// recorded events show.
    pub at_most_ns: u64,
}

impl Impossible {
    fn add(&mut self, most: u64, run_delay: u64) {
        self.tasks = self.tasks.saturating_add(1);
        self.kernel_ns = self.kernel_ns.saturating_add(run_delay);
        self.at_most_ns = self.at_most_ns.saturating_add(most);
    }

    pub fn text(&self) -> String {
        format!(
            "impossible for {}: {} counted, {} at most, as {} slept",
            units::plural(self.tasks, "task", "tasks"),
            units::time(self.kernel_ns),
            units::time(self.at_most_ns),
            if self.tasks == 1 { "it" } else { "they" },
        )
    }
}

/// The sums of the time in run queues of the tasks for which the kernel counts that time: by the recorded events, and
/// by the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RunQueueByKernel {
    /// The sum of the time in nanoseconds that the compared tasks waited in run queues, as computed from the recorded
    /// events.
    pub events_ns: u64,
    /// The sum of the time in nanoseconds in which the recorded events do not show the state of the compared tasks.
    pub unknown_ns: u64,
    /// The sum of the time in nanoseconds that the compared tasks waited in run queues, as counted by the kernel
    /// (`run_delay`).
    pub kernel_ns: u64,
}

impl RunQueueByKernel {
    fn add(&mut self, times: &Times, run_delay: u64) {
        self.events_ns = self.events_ns.saturating_add(times.run_queue);
        self.unknown_ns = self.unknown_ns.saturating_add(times.unknown);
        self.kernel_ns = self.kernel_ns.saturating_add(run_delay);
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Worst {
    pub tid: u32,
    pub label: Phrase,
    /// The time that this task was on a CPU in nanoseconds, as computed from the recorded events.
    pub on_cpu_ns: u64,
    /// The time in nanoseconds in which the recorded events do not show the state of this task.
    pub unknown_ns: u64,
    /// The time that this task was on a CPU in nanoseconds, as counted by the kernel (`sum_exec_runtime`).
    pub kernel_ns: u64,
    pub switches: u64,
    pub kernel_switches: u64,
}

/// The largest number of tasks that are listed because their CPU time by the events differs from the kernel's.
const WORST_TASKS: usize = 5;

pub fn audit(analysis: &Analysis) -> Audit {
    let mut out = Audit::sums(analysis);
    let mut compared: Vec<(u64, &Thread, &KernelFigures)> = Vec::new();
    let mut by_switch: Vec<u64> = Vec::new();
    for (thread, kernel) in whole(analysis) {
        let times = thread.times_by_events();
        let difference = times.on_cpu.abs_diff(kernel.sum_exec_runtime);
        if times.unknown == 0 {
            by_switch.push(difference / switches(thread, kernel).0.max(1));
        }
        compared.push((difference, thread, kernel));
    }
    compared.sort_by_key(|(difference, thread, _)| (*difference, thread.start, thread.tid));
    by_switch.sort_unstable();
    let differences = compared.iter().map(|(difference, ..)| *difference);
    out.differences_ns = quantiles(&differences.collect::<Vec<_>>());
    out.switch_differences_ns = quantiles(&by_switch);
    for (_, thread, kernel) in compared.into_iter().rev().take(WORST_TASKS) {
        let (times, (switches, kernel_switches)) =
            (thread.times_by_events(), switches(thread, kernel));
        out.worst.push(Worst {
            tid: thread.tid.0,
            label: label::phrase(analysis.process(thread.process)),
            on_cpu_ns: times.on_cpu,
            unknown_ns: times.unknown,
            kernel_ns: kernel.sum_exec_runtime,
            switches,
            kernel_switches,
        });
    }
    out
}

/// The median, the 90 % quantile, the 99 % quantile and the maximum of sorted values.
fn quantiles(sorted: &[u64]) -> [u64; 4] {
    [500, 900, 990, 1000].map(|share| {
        let place = sorted.len().saturating_sub(1) * share / 1000;
        sorted.get(place).copied().unwrap_or(0)
    })
}
