//! Computes values for processes from the values of their ancestors.

use tr_analyze::arena::Arena;
use tr_analyze::model::{Analysis, ProcessIx};

/// Sorts all processes so that a parent comes before its children. The children of one parent are in the order of
/// their starts.
pub fn from_parents_to_children(analysis: &Analysis) -> Vec<ProcessIx> {
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

/// Computes a value for each process from the value of its parent. `of` is called exactly once for each process, with
/// the parent's value if the process has a parent. So the cost does not grow with the depth of the process tree.
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
