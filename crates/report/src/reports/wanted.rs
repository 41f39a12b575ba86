//! The number of tasks that wanted a CPU, and the use of more CPUs.

use serde_json::{json, Value};
use tr_analyze::parallelism;
use tr_analyze::what_if;

use tr_insight::path;
use tr_insight::view::View;
use tr_text::page::Page;
use tr_text::table::{Cell, Table};
use tr_text::units;

/// The number of tasks on a CPU or waiting for one.
pub struct CpuDemand {
    cpus: u64,
    /// The name of a machine with so many.
    this: &'static str,
    /// The time with more such tasks than CPUs.
    starved_ns: u64,
    /// The time in which their number is known, and the rest.
    known_ns: u64,
    unknown_ns: u64,
    machines: Vec<MachineSize>,
}

/// A machine of another size, with the recorded demand.
#[derive(Clone, Copy)]
struct MachineSize {
    cpus: u64,
    /// The CPU time that it gives in the same wall time: of all its CPUs, or of
    /// as many as there are tasks that want one.
    could_use_ns: u64,
    /// The least wall time of the build, by its critical path.
    at_least_ns: Option<u64>,
}

/// The number of tasks that wanted a CPU, if it is known.
pub fn wanted(view: &View<'_>) -> Option<CpuDemand> {
    let analysis = view.analysis;
    let groups = path::groups(analysis);
    let found = parallelism::parallelism(analysis, &groups, None, 0).ok()?;
    let path = path::path_of(view).ok();
    let limits = path.and_then(|path| what_if::limits(analysis, &path, &groups, &[]).ok());
    let cpus = analysis.cpus_of_build();
    let known: u64 = found.demand.iter().sum();
    if known == 0 {
        return None;
    }
    let machines = super::machines_of_use(&found, cpus).map(|cpus| MachineSize {
        cpus,
        could_use_ns: found.could_use(cpus),
        at_least_ns: limits.as_ref().map(|limits| limits.on(cpus)),
    });
    Some(CpuDemand {
        cpus,
        this: match analysis.machine.limited_to {
            Some(_) => "as recorded",
            None => "this machine",
        },
        starved_ns: found.starved(cpus),
        known_ns: known,
        unknown_ns: found.unknown,
        machines: machines.collect(),
    })
}

impl CpuDemand {
    pub fn page(&self) -> Page {
        let mut out = Page::new();
        let whole = self.known_ns.saturating_add(self.unknown_ns);
        let text = format!(
            "More tasks than the {} wanted to run for {} ({} of the time)",
            units::cpus(self.cpus),
            units::time(self.starved_ns),
            units::share(self.starved_ns, whole),
        );
        out.line(&text);
        if self.unknown_ns > 0 {
            let text = format!(
                "For {} more ({}) the number is unknown; the table leaves that time out",
                units::time(self.unknown_ns),
                units::share(self.unknown_ns, whole)
            );
            out.line(&text);
        }
        out.grid(self.table().grid(&self.machines), 2);
        out
    }

    fn table(&self) -> Table<'_, &MachineSize> {
        let this = |machine: &&MachineSize| {
            if machine.cpus == self.cpus {
                self.this.into()
            } else {
                String::new()
            }
        };
        Table::new("", this)
            .fact("CPUs", "cpus", |machine| Cell::Count(machine.cpus))
            .data("could_use_ns", |machine| machine.could_use_ns)
            .column("could be busy", |machine| {
                let busy = machine.could_use_ns as f64 / self.known_ns as f64;
                Cell::Text(format!("{busy:.2}"))
            })
            .fact("time at least", "at_least_ns", |machine| {
                machine.at_least_ns.map_or(Cell::Empty, Cell::Time)
            })
    }

    pub fn json(&self) -> Value {
        json!({
            "cpus": self.cpus,
            "starved_ns": self.starved_ns,
            "known_ns": self.known_ns,
            "unknown_ns": self.unknown_ns,
            "machines": self.table().rows(&self.machines),
        })
    }
}
