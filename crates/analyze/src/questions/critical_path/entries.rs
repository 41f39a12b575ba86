//! Remembers waits of threads for other threads of the same process. The critical path may have to return from the
//! thread that ended such a wait to the thread that waited.
//!
//! Assume that thread A waits for thread B of its process, and the critical path has gone back from A's wait to B. B
//! may work without a break from before A's wait to its end. Then all of this work can be a cause of the wait, so the
//! path stays in B. But if a timer started this work before A's wait began, nothing shows that B did it for A, because
//! the timer would have come anyway. Then the path returns to A at the beginning of A's wait, as in the traversal of
//! Giraldeau and Dagenais (see `critical_path`). In this example, A is `main` and B is `VM`:
//!
//! ```text
//! main    =======|....wait....|===       the VM thread polls, and finds that main has stopped
//! VM      zz|=|zz|=|zzz|======|          path: VM while main waited, then main
//! ```
//!
//! A timer that fires while A waits is a cause of the wait.

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
    /// If the waiting thread is not in the group of threads whose path is computed (for example the threads of a build
    /// step): the last thread on the path that is in this group. The value is a copy of `Walk::away` from the moment at
    /// which the walk came to this wait.
    pub away: Option<Waiter>,
    /// The number of steps that the walk over the critical path had made before it left the waiting thread.
    pub steps: u64,
}

/// The largest number of steps that the walk over a critical path may undo in total. The walk undoes steps when it
/// returns to a waiting thread. Without a limit, the walk would take long if threads wait many times during one piece
/// of another thread's work.
const IN_VAIN: u64 = 1 << 22;

/// The remembered waits that led the walk over the critical path from waiting threads to the thread in which the
/// walk is now.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// The remembered waits, sorted by their beginnings. The walk goes backwards in time and may return to the
    /// beginning of any of these waits. A further wait is remembered only if it began later than all of them.
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

    /// Notes that the walk over the critical path goes to the thread `next`. If the last remembered waits are waits of
    /// `next`, these waits are removed, because the walk has returned to the thread that waited.
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

    /// Decides how the walk over the critical path goes on at the time `now`, at which a timer woke `thread`. If the
    /// last remembered wait began at `now` or later, the timer did not wake `thread` for the thread that waited. The
    /// function then returns this wait, and the walk has to go on at the beginning of the wait. `steps` is the number
    /// of steps of the walk so far.
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
