//! One CPU.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::agenda::NEVER;
use crate::task::IDLE;

/// When somebody's wait will be over: the time, then the task's slot, then its
/// count of waits when it was armed, so that one that is no longer waited for
/// is known. In one number, as the heap compares nothing else.
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

/// One CPU: who runs on it, who waits for it, and what comes next when.
#[derive(Debug)]
pub(crate) struct Cpu {
    /// The slot of the task that runs, or [`IDLE`].
    pub(crate) cur: u32,
    /// The time of the last thing that was done on it; nothing is done twice
    /// at one time, as a CPU's clock goes on between two events.
    pub(crate) last: u64,
    /// When the current task does its next thing.
    pub(crate) op_at: u64,
    /// When the current task is to be switched out in favour of another.
    pub(crate) resched_at: u64,
    /// Preemption is off.
    pub(crate) hold: bool,
    /// The current task's slice ends.
    pub(crate) slice_end: u64,
    /// The stamp of the last switch.
    pub(crate) since: u64,
    /// Who waits for the CPU, the next one first.
    pub(crate) queue: VecDeque<u32>,
    /// Interrupts to come.
    pub(crate) timers: BinaryHeap<Reverse<Timer>>,
}

impl Cpu {
    /// An idle CPU at this time.
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

    /// When the next interrupt comes.
    #[inline]
    pub(crate) fn timer(&self) -> u64 {
        self.timers.peek().map_or(NEVER, |timer| timer.0.time())
    }

    /// When something is to be done next.
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
