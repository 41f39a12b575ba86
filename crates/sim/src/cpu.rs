//! A CPU of the simulated machine.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::agenda::NEVER;
use crate::task::IDLE;

/// An interrupt that will end a task's wait: its time, the task's slot, and the task's count of waits, which
/// identifies an outdated timer. They are packed into one number to make comparisons in the heap fast.
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

/// One CPU: its current task, its queue and the times of its next actions.
#[derive(Debug)]
pub(crate) struct Cpu {
    /// The slot of the task that runs, or [`IDLE`].
    pub(crate) cur: u32,
    /// The time of the CPU's last action. No two actions have the same time.
    pub(crate) last: u64,
    /// The time of the next action of the task that runs.
    pub(crate) op_at: u64,
    /// The time at which the task that runs is preempted.
    pub(crate) resched_at: u64,
    /// Whether preemption is switched off.
    pub(crate) hold: bool,
    /// The time at which the current task's slice ends.
    pub(crate) slice_end: u64,
    /// The stamp of the last switch of the CPU.
    pub(crate) since: u64,
    /// The tasks that wait for the CPU, the next one first.
    pub(crate) queue: VecDeque<u32>,
    /// The interrupts that will come on the CPU.
    pub(crate) timers: BinaryHeap<Reverse<Timer>>,
}

impl Cpu {
    /// A CPU that is idle at the time `now`.
    pub(crate) fn new(now: u64) -> Cpu {
        Cpu {
            cur: IDLE,
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

    /// The time of the CPU's next interrupt.
    #[inline]
    pub(crate) fn timer(&self) -> u64 {
        self.timers.peek().map_or(NEVER, |timer| timer.0.time())
    }

    /// The time of the CPU's next action.
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
