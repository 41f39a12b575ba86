//! How the walk came to its thread from others of the process: by waits that it ended.
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
    /// The beginning of its wait.
    pub since: Ktime,
}

/// A wait by which the walk came from one thread to another of its process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The thread that waited.
    pub waiter: Waiter,
    /// The last thread inside, if that one was outside.
    pub away: Option<Waiter>,
    /// The steps of the walk before.
    pub steps: u64,
}

/// The most steps that the walk takes back, in all: a thread with many waits in one piece of work
/// would make it long.
const IN_VAIN: u64 = 1 << 22;

/// The waits by which the walk came to its thread.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// Their beginnings rise: of a wait that began before another one that it is a part of nothing
    /// follows.
    open: Vec<Entry>,
    in_vain: u64,
}

impl Entries {
    /// The walk goes from a thread to another one, which ended its wait.
    pub fn push(&mut self, next: ThreadIx, entry: Entry) {
        self.return_to(next);
        let last = self.open.last();
        if last.is_none_or(|last| last.waiter.since < entry.waiter.since) {
            self.open.push(entry);
        }
    }

    /// The walk goes to a thread whose own wait led to the present one: there it is without it.
    pub fn return_to(&mut self, next: ThreadIx) {
        while self.open.pop_if(|it| it.waiter.thread == next).is_some() {}
    }

    /// The walk is where these waits have no part.
    pub fn clear(&mut self) {
        self.open.clear();
    }

    /// The walk has returned to a thread, at the moment at which it began to wait.
    pub fn truncate(&mut self, since: Ktime) {
        while self.open.pop_if(|it| it.waiter.since >= since).is_some() {}
    }

    /// A timer began the work of a thread at a time, of which the walk has made so many steps: the
    /// wait before which it is to go on instead, if that began later.
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
        self.open.iter().map(|it| it.waiter)
    }
}
