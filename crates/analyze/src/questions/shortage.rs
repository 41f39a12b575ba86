//! Waits for memory, kills for lack of it, and which page faults waited for memory, not for a file.

use std::collections::{BTreeMap, HashMap, HashSet};

use tr_format::event::{Ktime, Reason};

use crate::collect::memory::MemoryKind;
use crate::model::{Analysis, ProcessIx, ThreadIx};
use crate::timeline::Bucket;

/// A thread's waits for memory between two moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryWaits {
    /// The thread that waited.
    pub thread: ThreadIx,
    /// The thread's reclaim before, or its start; of waits for swap always its start.
    pub since: Ktime,
    /// The event that tells them.
    pub until: Ktime,
    /// How often it reclaimed memory; `None`: it waited for pages from swap.
    pub reclaims: Option<u64>,
    /// The time of the waits in ns.
    pub ns: u64,
}

/// The waits for memory, in order of the events that tell them.
pub fn waits(analysis: &Analysis) -> impl Iterator<Item = MemoryWaits> + '_ {
    let mut before: HashMap<ThreadIx, Ktime> = HashMap::new();
    analysis.memory.iter().filter_map(move |it| {
        let (thread, until) = (it.thread, it.time);
        let start = analysis.thread(thread).start;
        let (since, reclaims, ns) = match it.kind {
            MemoryKind::Reclaimed(count, ns) => {
                let last = before.insert(thread, until);
                (last.unwrap_or(start), Some(count), ns)
            }
            MemoryKind::Swapped(ns) => (start, None, ns),
            MemoryKind::Killed(_) => return None,
        };
        Some(MemoryWaits {
            thread,
            since,
            until,
            reclaims,
            ns,
        })
    })
}

/// A process that the kernel killed for lack of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Killed {
    /// The process.
    pub process: ProcessIx,
    /// The moment.
    pub at: Ktime,
    /// Its resident memory in bytes, if that is known.
    pub resident: Option<u64>,
}

/// The processes that the kernel killed for lack of memory, in order.
pub fn killed(analysis: &Analysis) -> impl Iterator<Item = Killed> + '_ {
    analysis.memory.iter().filter_map(|it| match it.kind {
        MemoryKind::Killed(resident) => Some(Killed {
            process: analysis.thread(it.thread).process,
            at: it.time,
            resident,
        }),
        _ => None,
    })
}

/// The threads whose page faults waited for memory: of a process that has read nothing from a disk
/// those that reclaimed, and those that waited for pages from swap for most of that time.
pub(crate) fn short_of_memory(analysis: &Analysis) -> HashSet<ThreadIx> {
    let Some(timeline) = &analysis.timeline else {
        return HashSet::new();
    };
    let mut swapped: BTreeMap<ThreadIx, u64> = BTreeMap::new();
    let mut all = HashSet::new();
    for it in waits(analysis) {
        let process = analysis.process(analysis.thread(it.thread).process);
        if it.reclaims.is_none() {
            let sum = swapped.entry(it.thread).or_default();
            *sum = sum.saturating_add(it.ns);
        } else if process.io.is_some_and(|(read, _)| read == 0) {
            all.insert(it.thread);
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
