//! Returns a figure only if the recording has the facts that the figure needs: without these facts, the figure is
//! unknown (`None`) and never 0.

use std::collections::BTreeSet;

use tr_analyze::model::{Analysis, Basis, Process, ProcessIx, ThreadIx};

/// Returns the value if the recording has the scheduling events that the value needs; otherwise `None`.
pub fn by_events<T>(analysis: &Analysis, value: T) -> Option<T> {
    (analysis.basis() == Basis::Events).then_some(value)
}

/// The processes to which the given threads belong, each once.
pub(crate) fn processes_of<'a>(analysis: &'a Analysis, threads: &[ThreadIx]) -> Vec<&'a Process> {
    let of = threads.iter().map(|ix| analysis.thread(*ix).process);
    let all: BTreeSet<ProcessIx> = of.collect();
    all.into_iter().map(|ix| analysis.process(ix)).collect()
}

pub(crate) fn major_faults(processes: &[&Process]) -> Option<u64> {
    let faults = processes
        .iter()
        .filter_map(|process| process.resources.faults);
    faults.map(|(_, major)| major).reduce(u64::saturating_add)
}

/// Returns the value if the recording has scheduling events and `tr` itself recorded these events; otherwise `None`.
/// Some values, such as the causes of blocked time, cannot be computed from the events of other recorders.
pub fn by_tr<T>(analysis: &Analysis, value: T) -> Option<T> {
    by_events(analysis, value).filter(|_| analysis.meta.recorder.is_none())
}
