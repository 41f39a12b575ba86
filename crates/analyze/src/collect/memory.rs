//! Waits for memory, and kills for lack of it.

use std::collections::{BTreeMap, HashSet};

use tr_format::event::{Ktime, LifeKind, Reason, Tid};

use crate::ids::{TaskIx, ThreadIx};
use crate::model::Analysis;
use crate::timeline::Bucket;

/// A fact about a thread's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryEvent<T = ThreadIx> {
    /// When; of a sum, its end.
    pub time: Ktime,
    /// The thread.
    pub thread: T,
    /// What.
    pub kind: MemoryKind,
}

/// The kinds of a [`MemoryEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// Since its event before, the thread has so often reclaimed memory, which took so many ns.
    Reclaimed(u64, u64),
    /// The thread has exited, after waits for pages from swap of so many ns.
    Swapped(u64),
    /// The kernel killed the process, which had so many bytes resident, if that is known.
    Killed(Option<u64>),
}

/// The memory events of the recorded tasks.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    all: Vec<MemoryEvent<TaskIx>>,
    /// An exit told the waits for pages from swap: the kernel counts them.
    pub(crate) swap_told: bool,
}

impl Memory {
    /// The most events that an analysis keeps.
    const MOST: usize = 1 << 20;

    /// Takes an event; `task` finds a task by its tid.
    pub(crate) fn take(
        &mut self,
        time: Ktime,
        kind: &LifeKind,
        task: impl FnOnce(Tid) -> Option<TaskIx>,
    ) {
        let Some((tid, kind)) = fact(kind) else {
            return;
        };
        let Some(task) = task(tid) else {
            return;
        };
        self.swap_told |= matches!(kind, MemoryKind::Swapped(_));
        if kind != MemoryKind::Swapped(0) && self.all.len() < Memory::MOST {
            self.all.push(MemoryEvent {
                time,
                thread: task,
                kind,
            });
        }
    }

    /// Those of the span.
    pub(crate) fn finish(
        self,
        (start, end): (Ktime, Ktime),
        thread: impl Fn(TaskIx) -> Option<ThreadIx>,
    ) -> Vec<MemoryEvent> {
        let all = self.all.into_iter();
        let inside = all.filter(|it| it.time > start && it.time <= end);
        let known = inside.filter_map(|it| {
            Some(MemoryEvent {
                time: it.time,
                thread: thread(it.thread)?,
                kind: it.kind,
            })
        });
        known.collect()
    }
}

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

/// The task of an event about memory, and the fact.
fn fact(kind: &LifeKind) -> Option<(Tid, MemoryKind)> {
    match kind {
        LifeKind::Reclaim(it) => Some((it.tid, MemoryKind::Reclaimed(it.count, it.ns))),
        LifeKind::OomKill(it) => Some((it.tid, MemoryKind::Killed(it.resident))),
        LifeKind::Exit(it) => Some((it.tid, MemoryKind::Swapped(it.delays.swap?))),
        _ => None,
    }
}
