//! Collects waits for memory, and kills for lack of memory.

use tr_format::event::{Ktime, LifeKind, Tid};

use crate::ids::{TaskIx, ThreadIx};

/// A wait of a thread for memory, or a kill for lack of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryEvent<T = ThreadIx> {
    /// The time of the fact; for a sum, the end of its interval.
    pub time: Ktime,
    pub thread: T,
    /// The kind of event: a reclaim, a wait for swap, or a kill.
    pub kind: MemoryKind,
}

/// The kinds of a [`MemoryEvent`], with the figures of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// The thread has reclaimed memory. The values are how often since its previous event, and how many ns that took.
    Reclaimed(u64, u64),
    /// The thread has waited for pages from swap. The value is how many ns it waited until its exit.
    Swapped(u64),
    /// The kernel killed the thread's process. The value is its resident memory in bytes, if that is known.
    Killed(Option<u64>),
}

#[derive(Debug, Default)]
pub(crate) struct Memory {
    all: Vec<MemoryEvent<TaskIx>>,
    /// Whether the exit event of a task had its waits for pages from swap, so that the kernel counts them.
    pub(crate) swap_told: bool,
}

impl Memory {
    const MOST: usize = 1 << 20;

    /// Takes an event about memory into account. `task` finds a task by its tid.
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

    /// The waits for memory and the kills in the span `start..end`.
    pub(crate) fn finish(
        self,
        (start, end): (Ktime, Ktime),
        thread: impl Fn(TaskIx) -> Option<ThreadIx>,
    ) -> Vec<MemoryEvent> {
        let all = self.all.into_iter();
        let inside = all.filter(|event| event.time > start && event.time <= end);
        let known = inside.filter_map(|event| {
            Some(MemoryEvent {
                time: event.time,
                thread: thread(event.thread)?,
                kind: event.kind,
            })
        });
        known.collect()
    }
}

/// The task of an event about memory, and what the event states about it.
fn fact(kind: &LifeKind) -> Option<(Tid, MemoryKind)> {
    match kind {
        LifeKind::Reclaim(event) => Some((event.tid, MemoryKind::Reclaimed(event.count, event.ns))),
        LifeKind::OomKill(event) => Some((event.tid, MemoryKind::Killed(event.resident))),
        LifeKind::Exit(event) => Some((event.tid, MemoryKind::Swapped(event.delays.swap?))),
        _ => None,
    }
}
