//! Finds waits for memory, kills for lack of memory, and the page faults that waited for memory and not for a file.

use std::collections::{BTreeMap, HashMap, HashSet};

use tr_format::event::{Ktime, Reason};

use crate::collect::memory::MemoryKind;
use crate::model::{Analysis, ProcessIx, ThreadIx};
use crate::timeline::Bucket;

/// A thread's waits for memory in the interval that one event covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryWaits {
    /// The thread that waited for memory.
    pub thread: ThreadIx,
    /// The beginning of the interval. For reclaims of memory, this is the time of the thread's previous reclaim or, for
    /// the first one, the thread's start. For waits for pages from swap, this is always the thread's start.
    pub since: Ktime,
    /// The end of the interval: the time of the event that reports the waits for memory.
    pub until: Ktime,
    /// How often the thread reclaimed memory in the interval; `None` if it waited for pages from swap.
    pub reclaims: Option<u64>,
    /// The time in ns that the thread waited for memory in the interval.
    pub ns: u64,
}

/// All waits for memory of the recorded threads, in the order of the events that report them.
pub fn waits(analysis: &Analysis) -> impl Iterator<Item = MemoryWaits> + '_ {
    let mut before: HashMap<ThreadIx, Ktime> = HashMap::new();
    analysis.memory.events.iter().filter_map(move |event| {
        let (thread, until) = (event.thread, event.time);
        let start = analysis.thread(thread).start;
        let (since, reclaims, ns) = match event.kind {
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
    /// The process that was killed for lack of memory.
    pub process: ProcessIx,
    /// The time at which the kernel killed the process for lack of memory.
    pub at: Ktime,
    /// The resident memory of the process killed for lack of memory, in bytes, if it is known.
    pub resident: Option<u64>,
}

/// The processes that the kernel killed for lack of memory, in the order of time.
pub fn killed(analysis: &Analysis) -> impl Iterator<Item = Killed> + '_ {
    analysis
        .memory
        .events
        .iter()
        .filter_map(|event| match event.kind {
            MemoryKind::Killed(resident) => Some(Killed {
                process: analysis.thread(event.thread).process,
                at: event.time,
                resident,
            }),
            _ => None,
        })
}

/// The threads whose page faults waited for memory and not for a file. They are the threads that reclaimed memory, in a
/// process that has read nothing from a disk, and the threads that waited for pages from swap for at least four fifths
/// of the time of their page faults.
pub(crate) fn short_of_memory(analysis: &Analysis) -> HashSet<ThreadIx> {
    let Some(timeline) = &analysis.timeline else {
        return HashSet::new();
    };
    let mut swapped: BTreeMap<ThreadIx, u64> = BTreeMap::new();
    let mut all = HashSet::new();
    for wait in waits(analysis) {
        let process = analysis.process(analysis.thread(wait.thread).process);
        if wait.reclaims.is_none() {
            let sum = swapped.entry(wait.thread).or_default();
            *sum = sum.saturating_add(wait.ns);
        } else if process.resources.io.is_some_and(|(read, _)| read == 0) {
            all.insert(wait.thread);
        }
    }
    for (thread, swapped) in swapped {
        let waits = timeline.of(thread).filter(|stretch| {
            stretch.reason == Reason::PageFault && matches!(stretch.doing, Bucket::Wait(_))
        });
        let waited = waits.fold(0, |sum: u64, wait| sum.saturating_add(wait.length()));
        if swapped >= waited - waited / 5 {
            all.insert(thread);
        }
    }
    all
}
