//! Which page faults waited for memory, not for a file.

use std::collections::{BTreeMap, HashSet};

use tr_format::event::Reason;

use crate::collect::memory::MemoryKind;
use crate::model::{Analysis, ThreadIx};
use crate::timeline::Bucket;

/// The threads whose page faults waited for memory: of a process that has read nothing from a disk
/// those that reclaimed, and those that waited for pages from swap for most of that time.
pub(crate) fn short_of_memory(analysis: &Analysis) -> HashSet<ThreadIx> {
    let Some(timeline) = &analysis.timeline else {
        return HashSet::new();
    };
    let mut swapped: BTreeMap<ThreadIx, u64> = BTreeMap::new();
    let mut all = HashSet::new();
    for it in &analysis.memory {
        let process = analysis.process(analysis.thread(it.thread).process);
        match it.kind {
            MemoryKind::Reclaimed(..) if process.io.is_some_and(|(read, _)| read == 0) => {
                all.insert(it.thread);
            }
            MemoryKind::Swapped(ns) => {
                let sum = swapped.entry(it.thread).or_default();
                *sum = sum.saturating_add(ns);
            }
            _ => {}
        }
    }
    for (thread, swapped) in swapped {
        let waits = timeline
            .of(thread)
            .filter(|it| it.reason == Reason::PageFault && matches!(it.doing, Bucket::Wait(_)));
        let waited = waits.fold(0, |sum: u64, it| sum.saturating_add(it.length()));
        if swapped >= waited - waited / 5 {
            all.insert(thread);
        }
    }
    all
}
