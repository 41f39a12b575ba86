//! The report that compares the sums over events with the kernel's own sums, see [`tr_insight::recordings::audit`].

use serde_json::Value;

use crate::output::Report;
use tr_insight::recordings::audit::{Audit, Worst};
use tr_text::page::Page;
use tr_text::style::{Paint, Style};
use tr_text::table::{Cell, Sheet, Table};
use tr_text::units;
use tr_text::words::{RUN_QUEUE, UNKNOWN};

/// The text that compares a CPU time summed up over events with the kernel's own figure. `unknown` is the
/// part of the time in ns that the events do not show.
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

/// The difference of a measured figure from the expected one in percent, with its sign, as text.
fn off(is: u64, should: u64) -> String {
    if should == 0 {
        return "–".into();
    }
    let percent = (is as f64 - should as f64) * 100.0 / should as f64;
    format!("{percent:+.2} %")
}

impl Report for Audit {
    fn page(&self, _style: &Style) -> Page {
        let mut out = Page::new();
        if self.tasks == 0 {
            out.spans(["Audit   no task began and ended in this span"]);
            return out;
        }
        let of = |n: u64| format!("{} of {}", units::count(n), units::count(self.tasks));
        let title = format!(
            "Audit: {} tasks that began and ended here, beside the kernel's own figures",
            units::count(self.tasks)
        );
        out.wrapped(Paint::Plain, "", &title);
        let mut fact = |lead: &str, text: &str| {
            let lead = format!("  {lead:<11}");
            out.wrapped(Paint::Plain, &lead, text);
        };
        let sums = of(self.switches_equal_in_sum);
        let switches = format!("equal for {}, in sum for {sums}", of(self.switches_equal));
        fact("switches", &switches);
        fact(
            "CPU time",
            &beside(self.on_cpu_ns, self.unknown_ns, self.kernel_ns),
        );
        if let Some(queue) = &self.run_queue {
            let queue = beside(queue.events_ns, queue.unknown_ns, queue.kernel_ns);
            fact(RUN_QUEUE, &queue);
        }
        if let Some(impossible) = &self.impossible {
            fact("run_delay", &impossible.text());
        }
        let [half, nine, most, all] = self.differences_ns.map(units::time);
        let task = format!(
            "differs by {half} (half of them), {nine} (9 of 10), {most} (99 of 100), {all} (all)"
        );
        fact("a task", &task);
        let [half, nine, most, all] = self.switch_differences_ns.map(units::time);
        let switch = format!(
            "{half} (half of the tasks with no unknown time), {nine} (9 of 10), {most} (99 of 100), {all} (all)"
        );
        fact("a switch", &switch);
        let sum = format!(
            "{} more by the events, with all interrupts and steal; {} more by the kernel",
            units::time(self.events_more_ns),
            units::time(self.kernel_more_ns)
        );
        fact("in sum", &sum);
        out.grid(table().grid(&self.worst), 2);
        out
    }

    fn json(&self) -> Option<Value> {
        None
    }

    fn sheet(&self) -> Sheet {
        table().sheet(&self.worst)
    }
}

/// The table of the tasks whose times and numbers of switches, summed up over events, differ most from the kernel's own
/// figures.
fn table<'a>() -> Table<'a, &'a Worst> {
    Table::new("the largest differences", |worst: &&Worst| {
        worst.label.short().to_owned()
    })
    .fact("events", "on_cpu_ns", |worst| Cell::Time(worst.on_cpu_ns))
    .fact(UNKNOWN, "unknown_ns", |worst| Cell::Time(worst.unknown_ns))
    .fact("kernel", "kernel_ns", |worst| Cell::Time(worst.kernel_ns))
    .fact("switches", "switches", |worst| Cell::Count(worst.switches))
    .fact("kernel", "kernel_switches", |worst| {
        Cell::Count(worst.kernel_switches)
    })
    .fact("tid", "tid", |worst| Cell::Id(worst.tid))
    .named("name")
}
