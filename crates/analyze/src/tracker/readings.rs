//! Readings of the totals that the kernel keeps for a task, and the times between two readings.

use tr_format::event::Ktime;

use crate::state::StateTimes;

/// The totals that the kernel keeps for a task, as they were at a time: the run time and, if it is counted, the
/// time in run queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) time: Ktime,
    pub(super) run_time: u64,
    pub(super) run_delay: Option<u64>,
}

/// The kernel's totals of a task since the beginning of the program that its process executes now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LastAccount {
    /// The first reading of the task's totals that belongs to the present program.
    pub(super) first: Reading,
    pub(super) last: Reading,
    /// The times between the first and the last reading of the totals. They have been added to the task's sums.
    pub(super) spent: StateTimes,
    /// Whether the task's totals are counted from its fork on, so that none of them are missing.
    pub(super) whole: bool,
    /// Whether the program of the process has not changed since the last reading of the totals, so that the
    /// difference to the next reading belongs to this program.
    pub(super) usable: bool,
}

impl LastAccount {
    pub(super) fn new(first: Reading, whole: bool) -> LastAccount {
        LastAccount {
            first,
            last: first,
            spent: StateTimes::default(),
            whole,
            usable: true,
        }
    }

    /// The last reading of the task's totals, limited to what fits into the time that has passed. The totals can be
    /// larger than that time, because the recorder stamps a fork only after the child has begun to run.
    pub(super) fn rest(&self) -> Reading {
        let LastAccount {
            first, last, spent, ..
        } = self;
        let add = |first: u64, spent: u64, last: u64| first.saturating_add(spent).min(last);
        let delays = first.run_delay.zip(last.run_delay);
        Reading {
            time: last.time,
            run_time: add(first.run_time, spent.on_cpu, last.run_time),
            run_delay: delays.map(|(first, last)| add(first, spent.run_queue, last)),
        }
    }
}
