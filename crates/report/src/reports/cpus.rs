//! The report on the time of each CPU: that of this build, that of others, and idle time.
//! A recording of COMMAND holds only the switches from and to COMMAND's tasks. Between two of them a CPU was idle or
//! ran other tasks, and such a recording does not show which. A recording of the whole machine (`tr record -a`) does.

use serde_json::{json, Value};
use tr_analyze::contention::{Contention, Division, Occupant};

use crate::output::Report;
use tr_insight::cpus::{Cpu, CpuTimes};
use tr_insight::processes::who;
use tr_insight::views::view::View;
use tr_text::called::TR;
use tr_text::page::Page;
use tr_text::style::Style;
use tr_text::table::{Cell, Sheet, Table};
use tr_text::units;

pub struct Cpus {
    span: u64,
    times: CpuTimes,
    /// The time that recorded tasks waited in the run queue, divided by who had the CPU meanwhile: recorded tasks,
    /// other tasks or unknown tasks. The list has the names of the other tasks, each with its time in nanoseconds.
    /// `None` if the waits are not known.
    waits: Option<(Division, Vec<(Occupant, u64)>)>,
    shown: usize,
}

impl Cpus {
    pub fn new(view: &View) -> Cpus {
        Cpus {
            span: view.analysis.wall(),
            times: CpuTimes::new(view),
            waits: Contention::of_all(view.analysis),
            shown: view.ask.rows(),
        }
    }

    /// Prints who had the CPUs while recorded tasks waited in the run queue: recorded tasks, other tasks by name, or
    /// unknown ones.
    fn who_had_the_cpu(&self, out: &mut Page) {
        let Some((sum, names)) = &self.waits else {
            return;
        };
        let Division { own, others, rest } = *sum;
        if others == 0 {
            return;
        }
        let parts = [
            ("recorded tasks", own),
            ("other tasks", others),
            ("nobody known", rest),
        ];
        let parts = parts.map(|(who, ns)| format!("{who} {}", units::time(ns)));
        out.line("During the run-queue wait of recorded tasks their CPU was that of (two that wait at once \
             count twice):",
        );
        out.items("  ", &parts);
        let names = names.iter().take(self.shown).map(|(occupant, ns)| {
            let name = who::occupant(*occupant).unwrap_or_else(|| "?".to_owned());
            format!("{name} {}", units::time(*ns))
        });
        out.items("  other tasks   ", names);
    }
}

impl Report for Cpus {
    fn page(&self, style: &Style) -> Page {
        let mut out = Page::new();
        let title = format!(
            "Time of the CPUs in {}; \"build\": {}",
            units::time(self.span),
            self.times.build
        );
        out.line(&title);
        let single = self
            .times
            .cpus
            .iter()
            .filter(|cpu| cpu.cpu.is_some())
            .count();
        let cpus = self.times.cpus.iter().map(|cpu| {
            let name = cpu.cpu.map_or("?".into(), |cpu| cpu.to_string());
            (name, self.span, *cpu)
        });
        let whole = self.span.saturating_mul(single as u64);
        let sum = (self.times.cpus.len() > 1).then(|| ("all".to_owned(), whole, self.times.sum()));
        out.table(&self.table(style), cpus.chain(sum));
        if !self.times.all {
            let hint = format!("Only {TR} record -a tells idle time from the time of others.");
            out.line(&hint);
            self.who_had_the_cpu(&mut out);
        } else {
            let others = self.times.others.iter().take(self.shown);
            let parts = others.map(|(name, ns)| format!("{name} {}", units::time(*ns)));
            out.items("others   ", parts);
        }
        out
    }

    fn json(&self) -> Option<Value> {
        let others = self.times.others.iter();
        let others =
            others.map(|(program, ns)| json!({"program": program.to_string(), "on_cpu_ns": ns}));
        Some(json!({
            "span_ns": self.span,
            "build": self.times.build,
            "cpus": self.table(&Style::PLAIN).rows(self.rows()),
            "others": others.collect::<Vec<_>>(),
            "run_queue_wait": self.waits.as_ref().map(|(sum, names)| json!({
                "own_ns": sum.own,
                "others_ns": sum.others,
                "rest_ns": sum.rest,
                "others": names.iter().map(occupant).collect::<Vec<_>>(),
            })),
        }))
    }

    fn sheet(&self) -> Sheet {
        self.table(&Style::PLAIN).sheet(self.rows())
    }
}

/// The JSON object for a task, outside of the recording, that had a CPU while recorded tasks waited: its name and
/// its time in nanoseconds.
fn occupant((occupant, ns): &(Occupant, u64)) -> Value {
    match occupant {
        Occupant::Named(_) => json!({"comm": who::occupant(*occupant), "ns": ns}),
        Occupant::Rest => json!({"comm": null, "rest": true, "ns": ns}),
    }
}

/// A row of the table of CPUs: its name (empty for a single CPU), the length of the analyzed time in nanoseconds, and
/// the CPU's times.
type CpuRow = (String, u64, Cpu);

impl Cpus {
    fn rows(&self) -> impl Iterator<Item = CpuRow> + '_ {
        let cpus = self.times.cpus.iter();
        cpus.map(|cpu| (String::new(), self.span, *cpu))
    }

    fn table<'t>(&self, style: &'t Style) -> Table<'t, CpuRow> {
        let rest = if self.times.all {
            "unknown"
        } else {
            "idle or others"
        };
        let waited = |(.., cpu): &CpuRow| units::time(cpu.preempted_wait_ns);
        Table::new("then waited", waited)
            .data("cpu", |(.., cpu)| cpu.cpu)
            .words("CPU", |(name, ..)| Cell::Text(name.clone()))
            .fact("build", "build_ns", |(.., cpu)| Cell::Time(cpu.build_ns))
            .column("", |(_, of, cpu)| Cell::Share(cpu.build_ns, *of))
            .words("", |(_, of, cpu)| match style.width {
                110.. => Cell::Text(style.bar(cpu.build_ns, *of, 16)),
                _ => Cell::Empty,
            })
            .fact("others", "others_ns", |(.., cpu)| {
                Cell::known(cpu.others_ns, Cell::Time)
            })
            .shown(self.times.all)
            .fact("idle", "idle_ns", |(.., cpu)| {
                Cell::known(cpu.idle_ns, Cell::Time)
            })
            .shown(self.times.all)
            .fact(rest, "unknown_ns", |(.., cpu)| Cell::Time(cpu.unknown_ns))
            .fact("switches", "switches", |(.., cpu)| {
                Cell::Count(cpu.switches)
            })
            .data("involuntary", |(.., cpu)| cpu.involuntary)
            .fact("migrations", "migrations", |(.., cpu)| {
                Cell::Count(cpu.migrations)
            })
            .spare()
            .fact("preemptions", "preempted", |(.., cpu)| {
                Cell::Count(cpu.preempted)
            })
            .data("preempted_wait_ns", |(.., cpu)| cpu.preempted_wait_ns)
    }
}
