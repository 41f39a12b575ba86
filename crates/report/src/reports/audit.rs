//! Our figures beside the kernel's own: every task that ended brings its exact
//! run time and its context switches, which the events must give as well.
//!
//! The two run times are not quite the same thing. The kernel charges a switch
//! from its run queue's clock on, that is the few µs in which the next task is
//! chosen to that next task (`set_next_entity`); the event is stamped behind
//! that (`trace_sched_switch` in `__schedule`), so that they count for the task
//! before. And `rq_clock_task` leaves out interrupts and steal time.

use serde::Serialize;
use serde_json::Value;
use tr_analyze::model::{Analysis, Thread};

use crate::reports::Report;
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};
use crate::{label, units};

/// The comparison, over all tasks that began and ended in the span.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Audit {
    /// Tasks compared.
    pub tasks: u64,
    /// Those whose voluntary and involuntary switches are both equal.
    pub switches_equal: u64,
    /// Those whose switches are equal in number, whatever their kinds.
    pub switches_equal_in_sum: u64,
    /// Time on a CPU in ns, by the events.
    pub on_cpu_ns: u64,
    /// Time of which the events don't tell what it was.
    pub unknown_ns: u64,
    /// `sum_exec_runtime` in ns, by the kernel.
    pub kernel_ns: u64,
    /// Of the tasks' differences, without their sign, in ns: the median, nine of
    /// ten, 99 of 100, the largest.
    pub differences_ns: [u64; 4],
    /// The same of each task's difference divided by its switches, over the tasks
    /// without unknown time: how far a switch's two times lie apart.
    pub switch_differences_ns: [u64; 4],
    /// By how much the events give more than the kernel, over the tasks for which
    /// they do. In it is all that the kernel leaves out: interrupts and steal.
    pub events_more_ns: u64,
    /// By how much the kernel gives more, over the tasks for which it does; time
    /// that is unknown to the events is taken off first.
    pub kernel_more_ns: u64,
    /// The tasks with the largest differences.
    pub worst: Vec<Worst>,
}

/// A task whose figures differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Worst {
    /// Its tid.
    pub tid: u32,
    /// What it is.
    pub label: String,
    /// By the events, in ns.
    pub on_cpu_ns: u64,
    /// Not known to the events, in ns.
    pub unknown_ns: u64,
    /// By the kernel, in ns.
    pub kernel_ns: u64,
    /// Switches by the events.
    pub switches: u64,
    /// Switches by the kernel.
    pub kernel_switches: u64,
}

const WORST: usize = 5;

/// Compares.
pub fn audit(analysis: &Analysis) -> Audit {
    let mut out = Audit {
        tasks: 0,
        switches_equal: 0,
        switches_equal_in_sum: 0,
        on_cpu_ns: 0,
        unknown_ns: 0,
        kernel_ns: 0,
        differences_ns: [0; 4],
        switch_differences_ns: [0; 4],
        events_more_ns: 0,
        kernel_more_ns: 0,
        worst: Vec::new(),
    };
    let mut compared: Vec<(u64, &Thread, Worst)> = Vec::new();
    let mut by_switch: Vec<u64> = Vec::new();
    // A task that was there before is older than what the events tell of it.
    let whole = |thread: &&Thread| !thread.started_before && !thread.alive;
    for thread in analysis.threads.iter().filter(whole) {
        let Some(kernel) = thread.kernel.filter(|kernel| kernel.is_final) else {
            continue;
        };
        let switches = thread.switches;
        let sum = switches.voluntary + switches.involuntary;
        let kernel_sum = kernel.nvcsw.saturating_add(kernel.nivcsw);
        out.tasks += 1;
        out.switches_equal +=
            u64::from(switches.voluntary == kernel.nvcsw && switches.involuntary == kernel.nivcsw);
        out.switches_equal_in_sum += u64::from(sum == kernel_sum);
        out.on_cpu_ns = out.on_cpu_ns.saturating_add(thread.times.on_cpu);
        out.unknown_ns = out.unknown_ns.saturating_add(thread.times.unknown);
        out.kernel_ns = out.kernel_ns.saturating_add(kernel.sum_exec_runtime);
        let worst = Worst {
            tid: thread.tid.0,
            label: String::new(),
            on_cpu_ns: thread.times.on_cpu,
            unknown_ns: thread.times.unknown,
            kernel_ns: kernel.sum_exec_runtime,
            switches: sum,
            kernel_switches: kernel_sum,
        };
        let difference = worst.on_cpu_ns.abs_diff(worst.kernel_ns);
        let most = worst.on_cpu_ns.saturating_add(worst.unknown_ns);
        let more = worst.on_cpu_ns.saturating_sub(worst.kernel_ns);
        out.events_more_ns = out.events_more_ns.saturating_add(more);
        let more = worst.kernel_ns.saturating_sub(most);
        out.kernel_more_ns = out.kernel_more_ns.saturating_add(more);
        if worst.unknown_ns == 0 {
            by_switch.push(difference / sum.max(1));
        }
        compared.push((difference, thread, worst));
    }
    compared.sort_by_key(|(difference, thread, _)| (*difference, thread.start, thread.tid));
    by_switch.sort_unstable();
    let differences: Vec<u64> = compared
        .iter()
        .map(|(difference, ..)| *difference)
        .collect();
    out.differences_ns = shares(&differences);
    out.switch_differences_ns = shares(&by_switch);
    for (_, thread, mut worst) in compared.into_iter().rev().take(WORST) {
        let process = analysis.processes.get(thread.process.0 as usize);
        worst.label = process.map(label::label).unwrap_or_default();
        out.worst.push(worst);
    }
    out
}

/// Of sorted values: the median, nine of ten, 99 of 100, the largest.
fn shares(sorted: &[u64]) -> [u64; 4] {
    [500, 900, 990, 1000].map(|share| {
        let place = sorted.len().saturating_sub(1) * share / 1000;
        sorted.get(place).copied().unwrap_or(0)
    })
}

/// A difference, with its sign, as a share.
fn off(is: u64, should: u64) -> String {
    if should == 0 {
        return "–".into();
    }
    let percent = (is as f64 - should as f64) * 100.0 / should as f64;
    format!("{percent:+.2} %")
}

impl Audit {
    /// The tasks with the largest differences.
    fn table(&self) -> Table {
        let mut table = Table::new()
            .column("events", "on_cpu_ns")
            .column("unknown", "unknown_ns")
            .column("kernel", "kernel_ns")
            .column("switches", "switches")
            .column("kernel", "kernel_switches")
            .column("tid", "tid")
            .name("the largest differences", "name");
        for worst in &self.worst {
            let cells = vec![
                Cell::Time(worst.on_cpu_ns),
                Cell::Time(worst.unknown_ns),
                Cell::Time(worst.kernel_ns),
                Cell::Count(worst.switches),
                Cell::Count(worst.kernel_switches),
                Cell::Id(worst.tid),
            ];
            table.row(cells, worst.label.clone(), Paint::Plain);
        }
        table
    }
}

impl Report for Audit {
    fn text(&self, style: &Style) -> String {
        use std::fmt::Write;
        let mut out = String::new();
        if self.tasks == 0 {
            return "Audit   no task began and ended in this span\n".into();
        }
        let of = |n: u64| format!("{} of {}", units::count(n), units::count(self.tasks));
        let [half, nine, most, all] = self.differences_ns.map(units::time);
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
        let _ = writeln!(
            out,
            "  CPU time   {} by the events, {} by the kernel: {}; with the {} unknown at most {}",
            units::time(self.on_cpu_ns),
            units::time(self.kernel_ns),
            off(self.on_cpu_ns, self.kernel_ns),
            units::time(self.unknown_ns),
            off(
                self.on_cpu_ns.saturating_add(self.unknown_ns),
                self.kernel_ns
            ),
        );
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
        out + &self.table().text(style, 2)
    }

    /// Every document has it.
    fn json(&self) -> serde_json::Result<Option<Value>> {
        Ok(None)
    }

    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        self.table().csv()
    }
}
