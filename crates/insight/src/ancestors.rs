//! What a process has from its ancestors.

use tr_analyze::arena::Arena;
use tr_analyze::model::{Analysis, ProcessIx};

/// All processes; a parent comes before its children, and these in order of start.
pub(crate) fn from_parents_to_children(analysis: &Analysis) -> Vec<ProcessIx> {
    let mut order = Vec::with_capacity(analysis.processes.len());
    let roots = analysis.process_ids();
    for root in roots.filter(|ix| analysis.process(*ix).parent.is_none()) {
        let mut open = vec![root];
        while let Some(ix) = open.pop() {
            order.push(ix);
            open.extend(analysis.process(ix).children.iter().rev());
        }
    }
    order
}

/// A value for each process, which `of` makes of its parent's: each is made once, in chains of
/// any length.
pub fn down<T: Default>(
    analysis: &Analysis,
    mut of: impl FnMut(ProcessIx, Option<&T>) -> T,
) -> Arena<ProcessIx, T> {
    let mut values: Arena<_, _> = analysis.process_ids().map(|_| T::default()).collect();
    for ix in from_parents_to_children(analysis) {
        let parent = analysis.process(ix).parent;
        values[ix] = of(ix, parent.map(|parent| &values[parent]));
    }
    values
}
