//! What a process has from its ancestors.

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
pub(crate) fn down<T: Clone + Default>(
    analysis: &Analysis,
    mut of: impl FnMut(ProcessIx, Option<&T>) -> T,
) -> Vec<T> {
    let mut values = vec![T::default(); analysis.processes.len()];
    for ix in from_parents_to_children(analysis) {
        let parent = analysis.process(ix).parent;
        let value = of(ix, parent.and_then(|parent| values.get(parent.0 as usize)));
        if let Some(known) = values.get_mut(ix.0 as usize) {
            *known = value;
        }
    }
    values
}
