//! Computes the CPU time that the machine withheld from a build, the pressure on the machine, and the system calls of
//! a recording.

use std::collections::BTreeMap;

use tr_analyze::machine::{samples_are_of_recorded_cpus, withheld, Samples};
use tr_analyze::model::Analysis;
use tr_analyze::share;
use tr_format::counters::Counter;
use tr_format::event::Ktime;
use tr_format::meta::{Extra, Scope};

use crate::resources::calls::name_of;
use tr_text::named;
use tr_text::words::{STALLED_CPU, STALLED_IO, STALLED_MEMORY};

named! {
    /// A load on the machine that delays a build: CPU time that other tasks or the hypervisor took or that a quota
    /// forbade, or the pressure on a resource (the kernel's PSI).
    pub enum Load {
        Others = "others", "CPU time of other tasks";
        Stolen = "stolen", "stolen by the hypervisor";
        /// Time in which a quota of the cgroup kept tasks off the CPUs.
        Throttled = "throttled", "throttled by a quota";
        Cpu = "cpu-pressure", STALLED_CPU;
        Memory = "memory-pressure", STALLED_MEMORY;
        Io = "io-pressure", STALLED_IO;
    }
}

/// The CPU time and other resources that the machine withheld from a recorded build, and the system calls that were
/// recorded.
#[derive(Clone, Debug, Default)]
pub struct Loads {
    /// For each load that can delay a build, its amount in nanoseconds: the CPU time that other tasks had or that was
    /// withheld, or the time in which at least one task waited for a resource (the `some` of the kernel's PSI).
    pub loads: BTreeMap<Load, u64>,
    /// The CPU time of the build in ns, without the part that the hypervisor took.
    pub work: Option<u64>,
    /// The system calls by name, each with the number of calls and the time in nanoseconds of these calls; `None` if
    /// the recording has no system calls.
    pub calls: Option<BTreeMap<String, (u64, u64)>>,
}

impl Loads {
    /// The amount in nanoseconds of one load on the machine, such as the CPU time that other tasks had; `None` if this
    /// amount is not known.
    pub fn load(&self, load: Load) -> Option<u64> {
        self.loads.get(&load).copied()
    }

    /// Computes the loads that delayed a recorded build, the build's CPU time, and its system calls.
    pub fn of(analysis: &Analysis) -> Loads {
        Loads {
            loads: loads(analysis),
            work: work(analysis),
            calls: analysis
                .meta
                .has(Extra::SystemCalls)
                .then(|| calls(analysis)),
        }
    }
}

fn loads(analysis: &Analysis) -> BTreeMap<Load, u64> {
    let samples = Samples::of(analysis);
    let span = (analysis.start, analysis.end);
    let total = |counter| samples.increase(counter, span);
    let others = || {
        // If all tasks of the machine are recorded, there are no other tasks.
        if analysis.meta.scope == Scope::All || !samples_are_of_recorded_cpus(analysis) {
            return None;
        }
        let own = analysis.totals.times.on_cpu_known()?;
        Some(samples.used(span, own)?.others)
    };
    let value = |load| match load {
        Load::Others => others(),
        Load::Stolen => total(Counter::Stolen),
        Load::Throttled => withheld(analysis).throttled_ns,
        Load::Cpu => total(Counter::CpuSome),
        Load::Memory => total(Counter::MemorySome),
        Load::Io => total(Counter::IoSome),
    };
    let all = Load::ALL.into_iter();
    all.filter_map(|load| Some((load, value(load)?))).collect()
}

fn work(analysis: &Analysis) -> Option<u64> {
    let on_cpu = analysis.totals.times.on_cpu_known()?;
    run_within(analysis, (analysis.start, analysis.end), on_cpu)
}

/// The part of a task's CPU time in which the task really ran. While the hypervisor runs other guests, a task is still
/// counted as running. The kernel shows this stolen time only for the whole machine. So the stolen time is divided
/// among the tasks in proportion to their CPU time, and the task's share is subtracted.
pub(crate) fn run_within(analysis: &Analysis, span: (Ktime, Ktime), on_cpu: u64) -> Option<u64> {
    let samples = Samples::of(analysis);
    let total = |counter| samples.increase(counter, span);
    let (busy, stolen) = (total(Counter::Busy)?, total(Counter::Stolen)?);
    Some(share(on_cpu, busy, busy.saturating_add(stolen)))
}

fn calls(analysis: &Analysis) -> BTreeMap<String, (u64, u64)> {
    let mut sums = BTreeMap::<String, (u64, u64)>::new();
    for call in &analysis.calls {
        let name = name_of(&analysis.meta.machine, call.sum.number, call.sum.compat);
        let sum = sums.entry(name).or_default();
        sum.0 = sum.0.saturating_add(call.sum.count);
        sum.1 = sum.1.saturating_add(call.sum.ns);
    }
    sums
}
