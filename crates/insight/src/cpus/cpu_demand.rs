//! Computes how many tasks of a build wanted a CPU at the same time, and how much more CPUs would help.

use tr_analyze::parallelism::{self, Parallelism};
use tr_analyze::what_if;

use crate::path;
use crate::views::view::View;

/// The numbers of CPUs for which a forecast of the build's time is made: the number in the recording, and larger
/// numbers.
pub fn machines(cpus: u64) -> impl Iterator<Item = u64> {
    let larger = (1..=16).map(|power| 1 << power);
    std::iter::once(cpus).chain(larger.filter(move |count| *count > cpus))
}

/// The numbers of CPUs that are worth showing: the number in the recording, and some larger ones. A larger number is
/// worth showing only if the recorded tasks could have used more CPU time on it than on half as many CPUs.
pub fn machines_of_use(found: &Parallelism, cpus: u64) -> impl Iterator<Item = u64> + '_ {
    let used = |cpus| found.could_use(cpus);
    machines(cpus).filter(move |n| *n == cpus || used(cpus.max(n / 2)) < used(*n))
}

/// The number of tasks on a CPU or waiting for one, over the time of a recording.
pub struct CpuDemand {
    pub cpus: u64,
    /// Whether the build was allowed to use fewer CPUs than the machine has.
    pub is_limited: bool,
    /// The time in nanoseconds in which more of the build's tasks wanted a CPU than there are CPUs.
    pub starved_ns: u64,
    /// The time in nanoseconds of the recording for which the number of tasks that want a CPU is known.
    pub known_ns: u64,
    pub unknown_ns: u64,
    pub machines: Vec<MachineSize>,
}

/// A number of CPUs, and the CPU time that the tasks of a recorded build could have used on this number of CPUs.
#[derive(Clone, Copy)]
pub struct MachineSize {
    pub cpus: u64,
    /// The CPU time in nanoseconds that the recorded tasks could have used on this number of CPUs in the recorded wall
    /// time. At each moment, the tasks use all CPUs, or only one CPU for each task that wants a CPU, if there are fewer
    /// such tasks than CPUs.
    pub could_use_ns: u64,
    /// The shortest possible wall time of the build in nanoseconds, by its critical path; `None` if no critical path is
    /// known.
    pub at_least_ns: Option<u64>,
}

/// The demand for CPUs in a recording; `None` if the number of tasks that wanted a CPU is not known.
pub fn demand(view: &View<'_>) -> Option<CpuDemand> {
    let analysis = view.analysis;
    let groups = path::groups(analysis);
    let found = parallelism::parallelism(analysis, &groups, None, 0, None).ok()?;
    let path = path::path_of(view).ok();
    let limits = path.and_then(|path| what_if::limits(analysis, &path, &groups, &[]).ok());
    let cpus = analysis.cpus_of_build();
    let known: u64 = found.demand.iter().sum();
    if known == 0 {
        return None;
    }
    let machines = machines_of_use(&found, cpus).map(|cpus| MachineSize {
        cpus,
        could_use_ns: found.could_use(cpus),
        at_least_ns: limits.as_ref().map(|limits| limits.on(cpus)),
    });
    Some(CpuDemand {
        cpus,
        is_limited: analysis.machine.limited_to.is_some(),
        starved_ns: found.starved(cpus),
        known_ns: known,
        unknown_ns: found.unknown,
        machines: machines.collect(),
    })
}
