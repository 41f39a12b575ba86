//! The waits by which the walk came to its thread from other threads of the process. Its thread ended them.
//!
//! A thread of a process serves the others: it does what they wait for, and things of its own,
//! periodically. What it did before one began to wait for it is a cause of that wait as far back
//! as it is one piece of work. Where a timer had begun that piece before, nothing shows that it
//! was for the waiter: the timer would have come without it. Then the waiter's own time before its
//! wait is the path, as in the traversal of Giraldeau and Dagenais.
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
    /// The thread that waited.
    pub waiter: Waiter,
    /// The last thread that was inside, if the waiting thread was outside.
    pub away: Option<Waiter>,
    /// The number of steps of the walk before.
    pub steps: u64,
}

/// The largest number of steps that the walk may take back in all. A thread with many waits in one piece of
/// work would make the walk long.
const IN_VAIN: u64 = 1 << 22;

/// The waits by which the walk came to its thread.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// The waits, with rising beginnings. A wait that began before the wait that it is a part of shows nothing,
    /// and is not kept.
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

    /// Notes that the walk is at a place where none of these waits matters.
    pub fn clear(&mut self) {
        self.open.clear();
    }

    /// Notes that the walk has returned to a thread at the time at which the thread began to wait.
    pub fn truncate(&mut self, since: Ktime) {
        while self
            .open
            .pop_if(|entry| entry.waiter.since >= since)
            .is_some()
        {}
    }

    /// The wait before which the walk has to go on, if a timer began the work of a thread at a time and the wait
    /// began later. `steps` is the number of steps that the walk has made.
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

    /// The threads that wait.
    pub fn waiters(&self) -> impl Iterator<Item = Waiter> + '_ {
        self.open.iter().map(|entry| entry.waiter)
    }
}
