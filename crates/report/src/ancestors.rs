//! What a process has from its ancestors.

use tr_analyze::model::{Analysis, ProcessIx};

/// A value for each process, which `of` makes of its parent's: each is made once, in chains of
/// any length.
pub(crate) fn down<T: Clone + Default>(
    analysis: &Analysis,
    mut of: impl FnMut(ProcessIx, Option<&T>) -> T,
) -> Vec<T> {
    let mut values = vec![T::default(); analysis.processes.len()];
    let roots = analysis.process_ids();
    let roots = roots.filter(|ix| analysis.process(*ix).parent.is_none());
    let mut open: Vec<ProcessIx> = roots.collect();
    while let Some(ix) = open.pop() {
        let process = analysis.process(ix);
        let parent = process.parent;
        let above = parent.and_then(|parent| values.get(parent.0 as usize));
        let value = of(ix, above);
        if let Some(known) = values.get_mut(ix.0 as usize) {
            *known = value;
        }
        open.extend(&process.children);
    }
    values
}
