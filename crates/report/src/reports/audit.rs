//! Our figures beside the kernel's: each task that ended has its run time and its
//! context switches from the kernel, which the events must give as well.
//!
//! The two run times differ by design. The kernel charges a switch from its run
//! queue's clock on, so that the few µs in which it picks the next task count for
//! that task (`set_next_entity`). The event's timestamp is later
//! (`trace_sched_switch` in `__schedule`), so that they count for the previous
//! task. And `rq_clock_task` leaves out interrupts and steal time.

use std::fmt::Write;

use serde::Serialize;
use serde_json::{json, Value};
use tr_analyze::model::{Analysis, Thread, Times};

use crate::style::Style;
use crate::table::{csv, Cell, Table};
use crate::view::Report;
use crate::{label, units};

/// The comparison of all tasks that started and ended in the span.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Audit {
    /// The number of tasks.
    pub tasks: u64,
    /// Tasks with equal numbers of voluntary and of involuntary switches.
    pub switches_equal: u64,
    /// Tasks with equal numbers of switches.
    pub switches_equal_in_sum: u64,
    /// Time on a CPU in ns, by the events.
    pub on_cpu_ns: u64,
    /// Unknown time in ns, by the events.
    pub unknown_ns: u64,
    /// `sum_exec_runtime` in ns, by the kernel.
    pub kernel_ns: u64,
    /// The tasks' absolute differences in ns: median, 90 %, 99 %, maximum.
    pub differences_ns: [u64; 4],
    /// The same of each task's difference divided by its switches, over the tasks
    /// without unknown time: the distance of a switch's two timestamps.
    pub switch_differences_ns: [u64; 4],
    /// The sum of the differences of the tasks to which the events give more. It
    /// contains all that the kernel leaves out: interrupts and steal.
    pub events_more_ns: u64,
    /// The sum of the differences of the tasks to which the kernel gives more,
    /// less their unknown time.
    pub kernel_more_ns: u64,
    /// Time in run queues; absent where the kernel does not count it.
    pub run_queue: Option<RunQueue>,
    /// The tasks with the largest differences.
    pub worst: Vec<Worst>,
}

/// Time in run queues, of the tasks for which the kernel counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RunQueue {
    /// By the events, in ns.
    pub events_ns: u64,
    /// Unknown time in ns, by the events.
    pub unknown_ns: u64,
    /// `run_delay` in ns, by the kernel.
    pub kernel_ns: u64,
}

impl RunQueue {
    fn add(&mut self, times: &Times, run_delay: u64) {
        self.events_ns = self.events_ns.saturating_add(times.run_queue);
        self.unknown_ns = self.unknown_ns.saturating_add(times.unknown);
        self.kernel_ns = self.kernel_ns.saturating_add(run_delay);
    }
}

/// A task with a difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Worst {
    /// The tid.
    pub tid: u32,
    /// The process's label.
    pub label: String,
    /// Time on a CPU in ns, by the events.
    pub on_cpu_ns: u64,
    /// Unknown time in ns, by the events.
    pub unknown_ns: u64,
    /// `sum_exec_runtime` in ns, by the kernel.
    pub kernel_ns: u64,
    /// Switches by the events.
    pub switches: u64,
    /// Switches by the kernel.
    pub kernel_switches: u64,
}

const WORST: usize = 5;

/// Compares the tasks of an analysis.
pub fn audit(analysis: &Analysis) -> Audit {
    let mut out = Audit::default();
    let mut compared: Vec<(u64, &Thread, Worst)> = Vec::new();
    let mut by_switch: Vec<u64> = Vec::new();
    // The kernel's figures of an older task contain time before the trace.
    let whole = |thread: &&Thread| !thread.started_before && !thread.alive;
    for thread in analysis.threads.iter().filter(whole) {
        let Some(kernel) = thread.kernel.filter(|kernel| kernel.is_final) else {
            continue;
        };
        let (switches, times) = (thread.switches, thread.times_by_events());
        let task = Worst {
            tid: thread.tid.0,
            label: String::new(),
            on_cpu_ns: times.on_cpu,
            unknown_ns: times.unknown,
            kernel_ns: kernel.sum_exec_runtime,
            switches: switches.voluntary + switches.involuntary,
            kernel_switches: kernel.nvcsw.saturating_add(kernel.nivcsw),
        };
        let equal = (switches.voluntary, switches.involuntary) == (kernel.nvcsw, kernel.nivcsw);
        let add = |sum: &mut u64, ns: u64| *sum = sum.saturating_add(ns);
        let most = task.on_cpu_ns.saturating_add(task.unknown_ns);
        add(&mut out.tasks, 1);
        add(&mut out.switches_equal, equal.into());
        let equal = task.switches == task.kernel_switches;
        add(&mut out.switches_equal_in_sum, equal.into());
        add(&mut out.on_cpu_ns, task.on_cpu_ns);
        add(&mut out.unknown_ns, task.unknown_ns);
        add(&mut out.kernel_ns, task.kernel_ns);
        if let Some(run_delay) = kernel.run_delay {
            let run_queue = out.run_queue.get_or_insert_default();
            run_queue.add(&times, run_delay);
        }
        let more = task.on_cpu_ns.saturating_sub(task.kernel_ns);
        add(&mut out.events_more_ns, more);
        add(&mut out.kernel_more_ns, task.kernel_ns.saturating_sub(most));
        let difference = task.on_cpu_ns.abs_diff(task.kernel_ns);
        if task.unknown_ns == 0 {
            by_switch.push(difference / task.switches.max(1));
        }
        compared.push((difference, thread, task));
    }
    compared.sort_by_key(|(difference, thread, _)| (*difference, thread.start, thread.tid));
    by_switch.sort_unstable();
    let differences = compared.iter().map(|(difference, ..)| *difference);
    out.differences_ns = quantiles(&differences.collect::<Vec<_>>());
    out.switch_differences_ns = quantiles(&by_switch);
    for (_, thread, mut worst) in compared.into_iter().rev().take(WORST) {
        let process = analysis.processes.get(thread.process.0 as usize);
        worst.label = process.map(label::label).unwrap_or_default();
        out.worst.push(worst);
    }
    out
}

/// The median, 90 %, 99 % and maximum of sorted values.
fn quantiles(sorted: &[u64]) -> [u64; 4] {
    [500, 900, 990, 1000].map(|share| {
        let place = sorted.len().saturating_sub(1) * share / 1000;
        sorted.get(place).copied().unwrap_or(0)
    })
}

/// The words on a sum by the events, a part of which is unknown, and by the kernel.
fn beside(events: u64, unknown: u64, kernel: u64) -> String {
    let unknown = match unknown {
        0 => String::new(),
        ns => format!(
            "; with the {} unknown at most {}",
            units::time(ns),
            off(events.saturating_add(ns), kernel)
        ),
    };
    format!(
        "{} by the events, {} by the kernel: {}{unknown}",
        units::time(events),
        units::time(kernel),
        off(events, kernel),
    )
}

/// A signed difference in percent.
fn off(is: u64, should: u64) -> String {
    if should == 0 {
        return "–".into();
    }
    let percent = (is as f64 - should as f64) * 100.0 / should as f64;
    format!("{percent:+.2} %")
}

impl Report for Audit {
    fn text(&self, style: &Style) -> String {
        if self.tasks == 0 {
            return "Audit   no task began and ended in this span\n".into();
        }
        let mut out = String::new();
        let of = |n: u64| format!("{} of {}", units::count(n), units::count(self.tasks));
        let _ = writeln!(
            out,
            "Audit: {} tasks that began and ended here, beside the kernel's own figures",
            units::count(self.tasks)
        );
        let _ = writeln!(
            out,
            "  switches   equal for {}, in sum for {}",
            of(self.switches_equal),
            of(self.switches_equal_in_sum)
        );
        let cpu = beside(self.on_cpu_ns, self.unknown_ns, self.kernel_ns);
        let _ = writeln!(out, "  CPU time   {cpu}");
        if let Some(queue) = &self.run_queue {
            let queue = beside(queue.events_ns, queue.unknown_ns, queue.kernel_ns);
            let _ = writeln!(out, "  run queue  {queue}");
        }
        let [half, nine, most, all] = self.differences_ns.map(units::time);
        let _ = writeln!(
            out,
            "  a task     differs by {half} (half of them), {nine} (9 of 10), {most} (99 of 100), {all} (all)"
        );
        let [half, nine, most, all] = self.switch_differences_ns.map(units::time);
        let _ = writeln!(
            out,
            "  a switch   {half} (half of the tasks with no unknown time), {nine} (9 of 10), {most} (99 of 100), {all} (all)"
        );
        let _ = writeln!(
            out,
            "  in sum     {} more by the events, with all interrupts and steal; {} more by the kernel",
            units::time(self.events_more_ns),
            units::time(self.kernel_more_ns)
        );
        let name = |worst: &&Worst| worst.label.clone();
        out + &Table::new("the largest differences", name)
            .column("events", |worst| Cell::Time(worst.on_cpu_ns))
            .column("unknown", |worst| Cell::Time(worst.unknown_ns))
            .column("kernel", |worst| Cell::Time(worst.kernel_ns))
            .column("switches", |worst| Cell::Count(worst.switches))
            .column("kernel", |worst| Cell::Count(worst.kernel_switches))
            .column("tid", |worst| Cell::Id(worst.tid))
            .text(&self.worst, style, 2)
    }

    fn json(&self) -> Option<Value> {
        None
    }

    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let columns = "on_cpu_ns unknown_ns kernel_ns switches kernel_switches tid name=label";
        csv(self.worst.iter().map(|worst| json!(worst)), columns)
    }
}
