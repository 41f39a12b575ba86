//! Waits for memory, and kills for lack of it.

use tr_format::event::{Ktime, LifeKind, Tid};

use crate::ids::{TaskIx, ThreadIx};

/// A fact about a thread's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryEvent<T = ThreadIx> {
    /// When; of a sum, its end.
    pub time: Ktime,
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

#[derive(Debug, Default)]
pub(crate) struct Memory {
    all: Vec<MemoryEvent<TaskIx>>,
    /// An exit told the waits for pages from swap: the kernel counts them.
    pub(crate) swap_told: bool,
}

impl Memory {
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

/// The task of an event about memory, and the fact.
fn fact(kind: &LifeKind) -> Option<(Tid, MemoryKind)> {
    match kind {
        LifeKind::Reclaim(it) => Some((it.tid, MemoryKind::Reclaimed(it.count, it.ns))),
        LifeKind::OomKill(it) => Some((it.tid, MemoryKind::Killed(it.resident))),
        LifeKind::Exit(it) => Some((it.tid, MemoryKind::Swapped(it.delays.swap?))),
        _ => None,
    }
}
