//! A CPU of the simulated machine.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::agenda::NEVER;
use crate::task::IDLE_TASK;

/// An interrupt that will end the wait of a simulated task: its time, the task's index in the table of tasks, and the
/// task's count of waits, by which an outdated timer is recognized. They are packed into one number to make comparisons
/// in the heap fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timer(u128);

impl Timer {
    pub(crate) fn new(time: u64, slot: u32, waits: u32) -> Timer {
        Timer(u128::from(time) << 64 | u128::from(slot) << 32 | u128::from(waits))
    }

    #[inline]
    pub(crate) fn time(self) -> u64 {
        (self.0 >> 64) as u64
    }

    #[inline]
    pub(crate) fn slot(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    pub(crate) fn waits(self) -> u32 {
        self.0 as u32
    }
}

/// One CPU of the simulated machine: its current task, its run queue and the times of its next
/// actions.
#[derive(Debug)]
pub(crate) struct Cpu {
    /// The index in the table of tasks of the task that runs on the simulated CPU, or [`IDLE_TASK`].
    pub(crate) cur: u32,
    /// The time of the simulated CPU's last action, in ns. Its next action is at least 1 ns later.
    pub(crate) last: u64,
    /// The time of the next action of the task that runs on the simulated CPU, in ns.
    pub(crate) op_at: u64,
    /// The time in ns at which the simulated CPU next checks whether it should switch to a waiting task.
    pub(crate) resched_at: u64,
    /// Whether preemption is switched off on the simulated CPU.
    pub(crate) hold: bool,
    /// The time at which the time slice of the simulated CPU's current task ends, in ns.
    pub(crate) slice_end: u64,
    /// The time up to which the simulated CPU's time has been added to the accounts, in ns: the time stamp of its last
    /// switch.
    pub(crate) since: u64,
    /// The run queue of the simulated CPU: the indices of the tasks that wait for it, the next one first.
    pub(crate) queue: VecDeque<u32>,
    /// The interrupts that will come on the simulated CPU.
    pub(crate) timers: BinaryHeap<Reverse<Timer>>,
}

impl Cpu {
    /// A simulated CPU that is idle at the time `now`.
    pub(crate) fn new(now: u64) -> Cpu {
        Cpu {
            cur: IDLE_TASK,
            last: now - 1,
            op_at: NEVER,
            resched_at: NEVER,
            hold: false,
            slice_end: 0,
            since: now,
            queue: VecDeque::new(),
            timers: BinaryHeap::new(),
        }
    }

    /// The time of the simulated CPU's next interrupt, in ns.
    #[inline]
    pub(crate) fn timer(&self) -> u64 {
        self.timers.peek().map_or(NEVER, |timer| timer.0.time())
    }

    /// The time of the simulated CPU's next action, in ns.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        let resched = if self.hold { NEVER } else { self.resched_at };
        let next = self.op_at.min(resched).min(self.timer());
        if next >= NEVER {
            NEVER
        } else {
            next.max(self.last + 1)
        }
    }
}
