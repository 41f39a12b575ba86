//! Remembers through which waits the walk over the critical path came to a thread from other threads of the same
//! process. The thread has ended these waits.
//!
//! A thread of a process serves the other threads: it does the work that they wait for, and also periodic work of its
//! own. Work that it began before another thread waited for it can be a cause of that wait, if it is one piece of work
//! up to the end of the wait. But if a timer had begun this piece of work before the wait, nothing shows that it was
//! done for the waiting thread, because the timer would have come anyway. Then the waiting thread's own time before its
//! wait is the path, as in the traversal of Giraldeau and Dagenais (see `critical_path`).
//!
//! ```text
//! main    =======|....wait....|===       the VM thread polls, and finds that main has stopped
//! VM      zz|=|zz|=|zzz|======|          path: VM while main waited, then main
//! ```
//!
//! A timer that fires while the other thread waits is a cause of the wait.

use tr_format::event::Ktime;

use crate::model::ThreadIx;

/// A thread on the critical path that waited for another thread, and the beginning of its wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub thread: ThreadIx,
    /// The time at which the thread on the critical path began to wait.
    pub since: Ktime,
}

/// A wait through which the walk over the critical path came from the waiting thread to another thread of the same
/// process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The thread of the process that waited, and the beginning of its wait.
    pub waiter: Waiter,
    /// The last thread on the critical path that belonged to the path's subject (for example a step), if the waiting
    /// thread does not belong to it.
    pub away: Option<Waiter>,
    /// The number of steps that the walk over the critical path had made before it left the waiting thread.
    pub steps: u64,
}

/// The largest number of steps of the walk over a critical path that may be undone in total. Without a limit, a thread
/// with many waits in one piece of work would make the walk long.
const IN_VAIN: u64 = 1 << 22;

/// The waits through which the walk over the critical path came to its present thread.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// The remembered waits, to whose beginnings the walk may still have to return, sorted by their beginnings. A wait
    /// is not kept if it began before the wait through which the walk came earlier, because it shows nothing.
    open: Vec<Entry>,
    in_vain: u64,
}

impl Entries {
    /// Notes that the walk over the critical path goes from a waiting thread to the thread that ended its wait.
    pub fn push(&mut self, next: ThreadIx, entry: Entry) {
        self.return_to(next);
        let last = self.open.last();
        if last.is_none_or(|last| last.waiter.since < entry.waiter.since) {
            self.open.push(entry);
        }
    }

    /// Notes that the walk over the critical path returns to a thread whose wait had led to the present thread. The
    /// wait and all later waits are removed.
    pub fn return_to(&mut self, next: ThreadIx) {
        while self
            .open
            .pop_if(|entry| entry.waiter.thread == next)
            .is_some()
        {}
    }

    /// Forgets all remembered waits, because the walk over the critical path is at a place where none of them matters.
    pub fn clear(&mut self) {
        self.open.clear();
    }

    /// Forgets the remembered waits that began at `since` or later, because the walk over the critical path has
    /// returned to a thread at the time at which the thread began to wait.
    pub fn truncate(&mut self, since: Ktime) {
        while self
            .open
            .pop_if(|entry| entry.waiter.since >= since)
            .is_some()
        {}
    }

    /// Returns the remembered wait at whose beginning the walk over the critical path has to go on in the waiting
    /// thread. There is one if a timer began the work of the present thread `thread` at `now`, and the wait began
    /// later. `steps` is the number of steps that the walk has made.
    pub fn timer(&mut self, thread: ThreadIx, now: Ktime, steps: u64) -> Option<Entry> {
        let entry = *self.open.last()?;
        let more = steps.saturating_sub(entry.steps);
        let fits = entry.waiter.since >= now && entry.waiter.thread != thread;
        let in_vain = self.in_vain.saturating_add(more);
        if !fits || in_vain > IN_VAIN {
            return None;
        }
        self.in_vain = in_vain;
        Some(entry)
    }

    /// The threads whose waits have led the walk over the critical path to the present thread.
    pub fn waiters(&self) -> impl Iterator<Item = Waiter> + '_ {
        self.open.iter().map(|entry| entry.waiter)
    }
}
