//! The part of the report on waits for a CPU that shows how many tasks wanted a CPU at once, and how much machines with
//! more CPUs would help.

use serde_json::{json, Value};

use tr_insight::cpus::cpu_demand::{CpuDemand, MachineSize};
use tr_text::page::Page;
use tr_text::table::{Cell, Table};
use tr_text::units;

/// Sentences on how long more tasks wanted to run than there are CPUs, and a table of how busy machines with other
/// numbers of CPUs would be.
pub fn page(demand: &CpuDemand) -> Page {
    let mut out = Page::new();
    let whole = demand.known_ns.saturating_add(demand.unknown_ns);
    let text = format!(
        "More tasks than the {} wanted to run for {} ({} of the time)",
        units::cpus(demand.cpus),
        units::time(demand.starved_ns),
        units::share(demand.starved_ns, whole),
    );
    out.line(&text);
    if demand.unknown_ns > 0 {
        let text = format!(
            "For {} more ({}) the number is unknown; the table leaves that time out",
            units::time(demand.unknown_ns),
            units::share(demand.unknown_ns, whole)
        );
        out.line(&text);
    }
    out.grid(table(demand).grid(&demand.machines), 2);
    out
}

fn table(demand: &CpuDemand) -> Table<'_, &MachineSize> {
    let this = if demand.is_limited {
        "as recorded"
    } else {
        "this machine"
    };
    let this = move |machine: &&MachineSize| {
        if machine.cpus == demand.cpus {
            this.into()
        } else {
            String::new()
        }
    };
    Table::new("", this)
        .fact("CPUs", "cpus", |machine| Cell::Count(machine.cpus))
        .data("could_use_ns", |machine| machine.could_use_ns)
        .column("could be busy", |machine| {
            let busy = machine.could_use_ns as f64 / demand.known_ns as f64;
            Cell::Text(format!("{busy:.2}"))
        })
        .fact("time at least", "at_least_ns", |machine| {
            machine.at_least_ns.map_or(Cell::Empty, Cell::Time)
        })
}

/// The JSON value for how many tasks wanted a CPU and how busy machines with other numbers of CPUs would be.
pub fn json(demand: &CpuDemand) -> Value {
    json!({
        "cpus": demand.cpus,
        "starved_ns": demand.starved_ns,
        "known_ns": demand.known_ns,
        "unknown_ns": demand.unknown_ns,
        "machines": table(demand).rows(&demand.machines),
    })
}
