//! Remembers the waits by which the walk over the critical path came to a thread from other threads of its process. The
//! thread has ended these waits.
//!
//! A thread of a process serves the others: it does what they wait for, and things of its own, periodically. What it
//! did before one began to wait for it is a cause of that wait as far back as it is one piece of work. Where a timer
//! had begun that piece before, nothing shows that it was for the waiter: the timer would have come without it. Then
//! the waiter's own time before its wait is the path, as in the traversal of Giraldeau and Dagenais.
//!
//! ```text
//! main    =======|....wait....|===       the VM thread polls, and finds that main has stopped
//! VM      zz|=|zz|=|zzz|======|          path: VM while main waited, then main
//! ```
//!
//! A timer that fires while the waiter waits is a cause of it.

use tr_format::event::Ktime;

use crate::model::ThreadIx;

/// A thread on the path that waited for another thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub thread: ThreadIx,
    /// The beginning of the thread's wait.
    pub since: Ktime,
}

/// A wait by which the walk came from one thread to another thread of the process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The thread that waited, and since when.
    pub waiter: Waiter,
    /// The last thread on the path that was inside the subject of the path, if the waiting thread was outside of it.
    pub away: Option<Waiter>,
    /// The number of steps of the walk before it came to the other thread.
    pub steps: u64,
}

/// The largest number of steps of the walk that may be undone in all. A thread with many waits in one piece
/// of work would make the walk long.
const IN_VAIN: u64 = 1 << 22;

/// The waits by which the walk over the critical path came to its present thread.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// The waits that are still of interest, with rising beginnings. A wait that began before the wait that
    /// it is a part of shows nothing, and is not kept.
    open: Vec<Entry>,
    in_vain: u64,
}

impl Entries {
    /// Notes that the walk goes from a thread to another thread that ended its wait.
    pub fn push(&mut self, next: ThreadIx, entry: Entry) {
        self.return_to(next);
        let last = self.open.last();
        if last.is_none_or(|last| last.waiter.since < entry.waiter.since) {
            self.open.push(entry);
        }
    }

    /// Notes that the walk returns to a thread whose wait had led to the present thread. That wait and all
    /// later ones are removed.
    pub fn return_to(&mut self, next: ThreadIx) {
        while self
            .open
            .pop_if(|entry| entry.waiter.thread == next)
            .is_some()
        {}
    }

    /// Forgets all waits, because the walk is at a place where none of them matters.
    pub fn clear(&mut self) {
        self.open.clear();
    }

    /// Forgets the waits that began at `since` or later, because the walk has returned to a thread at the
    /// time at which that thread began to wait.
    pub fn truncate(&mut self, since: Ktime) {
        while self
            .open
            .pop_if(|entry| entry.waiter.since >= since)
            .is_some()
        {}
    }

    /// The wait at whose beginning the walk has to go on in the waiting thread. There is one if a timer began
    /// the work of the thread `thread` at `now`, and the wait began later. `steps` is the number of steps
    /// that the walk has made.
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

    /// The threads whose waits have led the walk to the present thread.
    pub fn waiters(&self) -> impl Iterator<Item = Waiter> + '_ {
        self.open.iter().map(|entry| entry.waiter)
    }
}
