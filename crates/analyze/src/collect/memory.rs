//! Collects waits for memory, and kills for lack of memory.

use tr_format::event::{Ktime, LifeKind, Tid};

use crate::ids::{TaskIx, ThreadIx};

/// An event about memory that concerns a thread: the thread waited for memory, or the kernel killed the thread's
/// process for lack of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryEvent<T = ThreadIx> {
    /// The time of the event about memory. If the event sums up several waits, this is the end of the interval that the
    /// event covers.
    pub time: Ktime,
    pub thread: T,
    /// The kind of this event about memory: a reclaim, a wait for swap, or a kill.
    pub kind: MemoryKind,
}

/// The kinds of a [`MemoryEvent`], with the times and sizes of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// The thread has reclaimed memory. The values are the number of reclaims since the thread's previous event of this
    /// kind, and the time in ns that these reclaims took together.
    Reclaimed(u64, u64),
    /// The thread has waited for pages from swap. The value is the time in ns that it waited in its whole life.
    Swapped(u64),
    /// The kernel killed the thread's process. The value is the resident memory of the process in bytes, if that is
    /// known.
    Killed(Option<u64>),
}

#[derive(Debug, Default)]
pub(crate) struct Memory {
    all: Vec<MemoryEvent<TaskIx>>,
    /// Whether the exit event of at least one task contained its waits for pages from swap, which proves that the
    /// kernel counts such waits.
    pub(crate) counts_swap: bool,
}

impl Memory {
    const MOST: usize = 1 << 20;

    /// Stores an event about memory. `task` finds a task by its tid.
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
        self.counts_swap |= matches!(kind, MemoryKind::Swapped(_));
        if kind != MemoryKind::Swapped(0) && self.all.len() < Memory::MOST {
            self.all.push(MemoryEvent {
                time,
                thread: task,
                kind,
            });
        }
    }

    /// The waits of threads for memory, and the kills for lack of memory, in the span `start..end`.
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

/// Returns the task that an event about memory belongs to, and the kind of the event; `None` for other events.
fn fact(kind: &LifeKind) -> Option<(Tid, MemoryKind)> {
    match kind {
        LifeKind::Reclaim(event) => Some((event.tid, MemoryKind::Reclaimed(event.count, event.ns))),
        LifeKind::OomKill(event) => Some((event.tid, MemoryKind::Killed(event.resident))),
        LifeKind::Exit(event) => Some((event.tid, MemoryKind::Swapped(event.delays.swap?))),
        _ => None,
    }
}
