//! Writes, as sentences and in JSON, which size of CI runner (CPUs, memory, disk) would suffice for the recorded job.

use std::cmp::Reverse;

use serde_json::{json, Value};

use tr_insight::cpus::cpu_need::{CpuNeed, MOST_OF_THE_TIME_PERCENT};
use tr_insight::processes::label;
use tr_insight::resources::memory;
use tr_insight::resources::size::{DiskNeed, MemoryNeed, RunnerSize};
use tr_insight::views::view::View;
use tr_text::units;

/// The greatest width in columns of the name of a process in the sentences about a runner's size.
const NAME: usize = 30;

/// Sentences about the memory, CPUs and disk that a job needs, and about the size of runner that would suffice. There
/// are no sentences if only the need for CPUs is known and no smaller number of CPUs would suffice.
pub(crate) fn words(view: &View<'_>, size: &RunnerSize) -> Vec<String> {
    let proposal = proposal(size);
    let has_disk = size.disk.is_some_and(|disk| disk.is_noticeable());
    if size.memory.is_none() && proposal.is_none() && !has_disk {
        return Vec::new();
    }
    let memory = size.memory.as_ref().map(used);
    let largest = memory::largest(view.processes()).map(|(bytes, process)| {
        let name = units::shorten(&label::label(process), NAME);
        format!("{} in {name}", units::bytes(bytes))
    });
    let cpus = size.cpus.as_ref().map(wanted);
    let disk = size.disk.filter(DiskNeed::is_noticeable);
    let disk = disk.map(|disk| used_disk(view, &disk));
    let used = [memory, largest, cpus, disk, proposal];
    used.into_iter().flatten().collect()
}

/// The title of the line with the sentences on the size of runner that a job needs: `Memory` if the first sentence is
/// about memory, otherwise `Size`.
pub(crate) fn lead(size: Option<&RunnerSize>) -> &'static str {
    match size.and_then(|size| size.memory) {
        Some(_) => "Memory",
        None => "Size",
    }
}

/// The words for the memory that a job used: `171 to 213 MiB of 23 GiB`.
fn used(memory: &MemoryNeed) -> String {
    let used = match memory.at_most {
        Some(most) => units::bytes_range(memory.at_least, most),
        None => format!("at least {}", units::bytes(memory.at_least)),
    };
    let of = memory
        .available
        .map(|bytes| format!(" of {}", units::bytes(bytes)));
    format!("{used}{}", of.unwrap_or_default())
}

/// The words for the disk space that a job used: `3.1 GiB of disk, 900 MiB left (2.9 GiB written by cp)`.
fn used_disk(view: &View<'_>, disk: &DiskNeed) -> String {
    let writers = view.processes().filter_map(|process| {
        let (_, written) = process.resources.io?;
        Some((written, process))
    });
    let most = writers.max_by_key(|(written, process)| (*written, Reverse(process.start)));
    let most = most.filter(|(written, _)| *written > disk.used_peak / 2);
    let by = most.map(|(written, process)| {
        let name = units::shorten(&label::label(process), NAME);
        format!(" ({} written by {name})", units::bytes(written))
    });
    format!(
        "{} of disk, {} left{}",
        units::bytes(disk.used_peak),
        units::bytes(disk.free_at_least),
        by.unwrap_or_default()
    )
}

/// The words for the CPUs that a job wanted: `≤ 2 of 4 CPUs for 90 % of the time`.
fn wanted(cpus: &CpuNeed) -> String {
    format!(
        "≤ {} of {} for {MOST_OF_THE_TIME_PERCENT} % of the time",
        cpus.wanted,
        units::cpus(cpus.available)
    )
}

/// The words for the proposed size of runner: `2 CPUs and 512 MiB would do (8.82 s → 9.10 s)`; `None` if no smaller
/// size would do.
fn proposal(size: &RunnerSize) -> Option<String> {
    let memory = size.memory.and_then(|memory| {
        memory
            .enough
            .filter(|enough| memory.available.is_none_or(|all| *enough < all))
    });
    let fewer = size.cpus.filter(|cpus| cpus.enough < cpus.available);
    let parts = [
        fewer.map(|cpus| units::cpus(cpus.enough)),
        memory.map(units::bytes),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        return None;
    }
    let time = fewer.map(|cpus| {
        let [from, to] = [cpus.on_available, cpus.on_enough].map(units::time);
        if from == to {
            format!(" (in the same {from})")
        } else {
            format!(" ({from} → {to})")
        }
    });
    Some(format!(
        "{} would do{}",
        parts.join(" and "),
        time.unwrap_or_default()
    ))
}

/// The resources that a job needs, and the size of runner that would suffice, in JSON.
pub(crate) fn json(size: &RunnerSize) -> Value {
    let memory = size.memory.map(|memory| {
        json!({
            "at_least_bytes": memory.at_least,
            "at_most_bytes": memory.at_most,
            "available_bytes": memory.available,
            "with_files_bytes": memory.with_files,
            "enough_bytes": memory.enough,
        })
    });
    let cpus = size.cpus.map(|cpus| {
        json!({
            "available": cpus.available,
            "wanted_p90": cpus.wanted,
            "enough": cpus.enough,
            "on_available_ns": cpus.on_available,
            "on_enough_ns": cpus.on_enough,
        })
    });
    let disk = size.disk.map(|disk| {
        json!({
            "free_at_least_bytes": disk.free_at_least,
            "used_peak_bytes": disk.used_peak,
        })
    });
    json!({ "memory": memory, "cpus": cpus, "disk": disk })
}
