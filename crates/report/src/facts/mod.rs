//! What reports, the comparison, advice, datasets and exports say of a recording: facts that several
//! of them share. It knows none of them.

pub mod audit;
pub(crate) mod calls;
pub(crate) mod demands;
pub(crate) mod disk;
pub(crate) mod failure;
pub(crate) mod loads;
pub(crate) mod memory;
pub(crate) mod network;
pub(crate) mod normal;
pub mod parts;
pub mod path;
pub(crate) mod reason;
pub(crate) mod servers;
pub(crate) mod shares;
pub(crate) mod step_sums;
pub(crate) mod timeout;
pub mod verdicts;
pub(crate) mod versions;

use std::collections::BTreeSet;

use tr_analyze::model::{Analysis, Basis, Process, ProcessIx, ThreadIx};

/// A value that only scheduling events tell.
pub(crate) fn by_events<T>(analysis: &Analysis, value: T) -> Option<T> {
    (analysis.basis() == Basis::Events).then_some(value)
}

/// The processes of some threads.
fn processes_of<'a>(analysis: &'a Analysis, threads: &[ThreadIx]) -> Vec<&'a Process> {
    let of = threads.iter().map(|ix| analysis.thread(*ix).process);
    let all: BTreeSet<ProcessIx> = of.collect();
    all.into_iter().map(|ix| analysis.process(ix)).collect()
}

fn major_faults(processes: &[&Process]) -> Option<u64> {
    let faults = processes.iter().filter_map(|it| it.faults);
    faults.map(|(_, major)| major).reduce(u64::saturating_add)
}

/// A value that only the scheduling events of `tr` tell: causes of blocked time.
pub(crate) fn by_tr<T>(analysis: &Analysis, value: T) -> Option<T> {
    by_events(analysis, value).filter(|_| analysis.meta.recorder.is_none())
}
