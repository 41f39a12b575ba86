//! What a process has from its ancestors.

use tr_analyze::arena::Arena;
use tr_analyze::model::{Analysis, ProcessIx};

/// A value for each process, which `of` makes of its parent's: each is made once, in chains of
/// any length.
pub(crate) fn down<T: Default>(
    analysis: &Analysis,
    mut of: impl FnMut(ProcessIx, Option<&T>) -> T,
) -> Arena<ProcessIx, T> {
    let all = || analysis.process_ids();
    let mut values: Arena<_, _> = all().map(|_| T::default()).collect();
    let roots = all().filter(|ix| analysis.process(*ix).parent.is_none());
    let mut open: Vec<ProcessIx> = roots.collect();
    while let Some(ix) = open.pop() {
        let process = analysis.process(ix);
        values[ix] = of(ix, process.parent.map(|parent| &values[parent]));
        open.extend(&process.children);
    }
    values
}
