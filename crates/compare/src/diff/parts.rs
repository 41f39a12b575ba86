//! Divides a run's wall time into parts, along its critical path.
//!
//! The segments of the path add up to the time from COMMAND's exec to its end. Each wait for a CPU on the path is
//! divided among the tasks that had this CPU during the wait. So the time that other tasks took is a separate part.
//! The run is also simulated with CPUs for itself, where other tasks take no time.

use std::collections::BTreeMap;

use tr_analyze::contention::Contention;
use tr_analyze::critical_path::CriticalPath;
use tr_analyze::machine;
use tr_analyze::model::{Analysis, Basis};
use tr_analyze::network::Ends;
use tr_analyze::programs::Groups;
use tr_analyze::schedule::Schedule;

use tr_insight::resources::size;
use tr_insight::verdicts::others;
pub use tr_insight::verdicts::parts::{PartTimes, WallPart};
use tr_programs::program_name::ProgramName;

/// The wall time of one run, divided into parts along the critical path. The parts are in ns and add up to
/// the wall time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    pub times: PartTimes,
    /// For each part of the wall time except waits for a CPU, the number of the critical path's segments in it.
    pub waits: BTreeMap<WallPart, u64>,
    /// The time in ns of the waits for the network on the critical path that may be for servers on this machine.
    pub near: u64,
    /// The names of the tasks outside of the build that had CPUs for which the critical path waited. With each name:
    /// the time in ns for which the path waited for these tasks.
    pub names: BTreeMap<String, u64>,
    /// The simulated time in ns that the run would take with its CPUs for itself; never more than it took.
    pub alone: u64,
    /// The number of CPUs that the run would not exceed during 90 % of its time, if no other tasks used the CPUs; from
    /// a simulation. `None` for a recording without COMMAND.
    pub cpus: Option<u64>,
}

impl Parts {
    /// Divides the wall time of a whole recording into parts; `None` if there are no scheduling events or no
    /// critical path.
    pub fn of(analysis: &Analysis, path: Option<&CriticalPath>) -> Option<Parts> {
        let path = path.filter(|_| analysis.basis() == Basis::Events)?;
        let mut parts = Parts::default();
        let contention = Contention::new(analysis);
        let ends = Ends::new(analysis);
        let mut waits = Vec::new();
        // The time in ns for which the critical path waited for a CPU while it is not known which task had that CPU.
        let mut undivided = 0u64;
        for segment in &path.segments {
            let (ns, part) = (segment.length(), WallPart::of(segment.kind));
            let wait = Contention::within(analysis, segment.thread, segment.from, segment.to);
            match (part, &contention) {
                (WallPart::Nobody, Some(contention)) => {
                    let had = wait.map(|wait| contention.divide(wait));
                    parts.times.add_run_queue(ns, had.unwrap_or_default());
                    waits.extend(wait);
                }
                (WallPart::Nobody, None) => undivided = undivided.saturating_add(ns),
                (part, _) => {
                    if part == WallPart::Network && !ends.waited(analysis, segment).elsewhere {
                        parts.near = parts.near.saturating_add(ns);
                    }
                    parts.times.add(part, ns);
                    *parts.waits.entry(part).or_default() += 1;
                }
            }
        }
        if let Some(contention) = &contention {
            parts.names = others(contention, analysis, waits).collect();
        }
        let groups = Groups::new(analysis, |_, _| ProgramName::default());
        let schedule = Schedule::new(analysis, path, &groups, &[]).ok()?;
        let around = analysis
            .end
            .since(analysis.start)
            .saturating_sub(path.length());
        parts.times.add(WallPart::Around, around);
        // Time slices and the choice of a CPU are not simulated, so the simulated run may be too long. Its length is
        // limited to the length of the critical path.
        let run = schedule.alone();
        parts.cpus = size::cpus_wanted_in(analysis, &run);
        let alone = run.wall.min(path.length());
        parts.alone = alone.saturating_add(around);
        // In the time `undivided`, the critical path waited for a CPU, and it is not known which task had that CPU.
        // Other tasks had the CPU for at most the time by which the path is longer than the simulated run. For the rest
        // of the time, the run's own tasks had the CPU.
        let others = path.length().saturating_sub(alone).min(undivided);
        parts.times.add(WallPart::Others, others);
        parts.times.add(WallPart::Own, undivided - others);
        let throttled = machine::withheld(analysis).throttled_ns.unwrap_or(0);
        let whole = (analysis.start, analysis.end);
        parts
            .times
            .withhold(analysis, whole, (throttled, throttled));
        Some(parts)
    }

    /// The number of segments of the critical path in one part of the wall time; 0 for waits for a CPU.
    pub fn waits(&self, part: WallPart) -> u64 {
        self.waits.get(&part).copied().unwrap_or(0)
    }
}

#[cfg(test)]
#[path = "tests/parts.rs"]
mod tests;
