//! The kernel's workers that carry what one recorded thread writes to another one: through a
//! pseudo-terminal.
//!
//! The thread that writes wakes a worker, and that wakes the one at the other end: the first waking tells
//! whose output it was.

use std::collections::HashMap;

use tr_format::event::{Ktime, Outsider, Tid};

use crate::ids::ThreadIx;

/// The most wakings that are kept, with 16 bytes for each.
const MOST: usize = 1 << 20;
/// The time in ns within which a worker does what it was woken for, on a busy machine, too.
const SOON: u64 = 10_000_000;

/// For each worker the threads that woke it, in the order of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workers<T = ThreadIx> {
    wakings: HashMap<Tid, Vec<(Ktime, T)>>,
    kept: usize,
}

impl<T> Default for Workers<T> {
    fn default() -> Workers<T> {
        Workers {
            wakings: HashMap::new(),
            kept: 0,
        }
    }
}

impl<T> Workers<T> {
    /// A thread wakes a worker.
    pub(crate) fn take(&mut self, time: Ktime, worker: Tid, by: T) {
        if self.kept < MOST {
            self.kept += 1;
            self.wakings.entry(worker).or_default().push((time, by));
        }
    }

    /// The same for the model's threads.
    pub(crate) fn finish<U>(self, thread: impl Fn(T) -> Option<U>) -> Workers<U> {
        let mut workers = Workers::default();
        for (worker, wakings) in self.wakings {
            for (time, by) in wakings {
                if let Some(by) = thread(by) {
                    workers.take(time, worker, by);
                }
            }
        }
        workers
    }
}

impl Workers {
    /// The thread that had woken a worker for what it does at a time.
    pub fn works_for(&self, worker: Tid, at: Ktime) -> Option<ThreadIx> {
        let wakings = self.wakings.get(&worker)?;
        let until = wakings.partition_point(|(time, _)| *time <= at);
        let (time, by) = wakings.get(until.checked_sub(1)?)?;
        (at.since(*time) <= SOON).then_some(*by)
    }
}

/// Whether a task is a worker of any CPU, as those are that serve pseudo-terminals (`system_unbound_wq`).
pub(crate) fn is_worker(task: &Outsider) -> bool {
    task.kthread && task.comm.bytes().starts_with(b"kworker/u")
}
