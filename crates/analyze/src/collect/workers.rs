//! Collects which threads woke the kernel's workers that carry the output of one recorded thread to another
//! one through a pseudo-terminal.
//!
//! The thread that writes wakes a worker, and the worker wakes the thread at the other end. The first waking
//! shows whose output the worker carries.

use std::collections::HashMap;

use tr_format::event::{Ktime, Outsider, Tid};

use crate::ids::ThreadIx;

/// The largest number of wakings of workers that are kept. Each takes 16 bytes.
const MOST_WAKINGS: usize = 1 << 20;
/// The time in ns within which a worker does its work after it was woken, also on a busy machine. A guess, verified
/// only by recordings of script(1): a longer time would attribute a worker's output to an earlier writer.
const LATEST_WORK: u64 = 10_000_000;

/// For each worker of the kernel, the threads that woke it, in the order of time, with the time of each waking.
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
    /// Notes that the thread `by` wakes a worker of the kernel.
    pub(crate) fn take(&mut self, time: Ktime, worker: Tid, by: T) {
        if self.kept < MOST_WAKINGS {
            self.kept += 1;
            self.wakings.entry(worker).or_default().push((time, by));
        }
    }

    /// The wakings of the kernel's workers, with the threads of the model in place of those of the tracker. `thread`
    /// finds the thread of the model.
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
    /// The thread for which a worker of the kernel works at the time `at`, and when the thread woke the worker: it is
    /// the last thread that woke the worker, if this waking was at most `LATEST_WORK` ns before.
    pub fn works_for(&self, worker: Tid, at: Ktime) -> Option<(Ktime, ThreadIx)> {
        let wakings = self.wakings.get(&worker)?;
        let until = wakings.partition_point(|(time, _)| *time <= at);
        let (time, by) = wakings.get(until.checked_sub(1)?)?;
        (at.since(*time) <= LATEST_WORK).then_some((*time, *by))
    }
}

/// Whether a task is a worker of the kernel that is not bound to a CPU. The workers that serve
/// pseudo-terminals are of this kind (`system_unbound_wq`).
pub(crate) fn is_worker(task: &Outsider) -> bool {
    task.kthread && task.comm.bytes().starts_with(b"kworker/u")
}
