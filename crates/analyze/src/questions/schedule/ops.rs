//! The operations of a thread of a simulated run, and the list that they are collected in.

use tr_format::event::Ktime;

use super::change::Changes;
use crate::model::{ProcessIx, ThreadIx};

/// The kind of an operation of a thread in a simulated run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The thread runs on a CPU for the given number of ns.
    Work,
    /// The thread of a large process runs on a CPU for the given number of ns. The work takes longer if other tasks
    /// wait for the CPUs, because all of these tasks share the CPU caches.
    Warm,
    /// The thread of a large process runs on a CPU for the given number of ns. Another task had the CPU right
    /// before in the recording, so the given time already contains the time that it took to fill the CPU caches
    /// again.
    Cold,
    /// The thread waits for the given number of ns.
    Delay,
    /// The thread sets the timer with the given number.
    Set,
    /// The thread waits until the timer with the given number expires, which it set earlier.
    Expire,
    /// The thread waits for a waking of the kind with the given number. Wakings of one kind are interchangeable.
    Await,
    /// The thread causes a waking of the kind with the given number. Wakings of one kind are interchangeable.
    Wake,
    /// The thread starts the thread with the given number.
    Start,
    /// The thread waits until the given number of children of its process have ended. The wait is left out if the
    /// simulation assumes one of the changes in `mask`.
    Children,
    /// The thread waits until the given number of children of its process have ended, but only if the simulation
    /// assumes one of the changes in `mask`.
    AtOnce,
    /// The process with the given number ends here. The operation belongs to the thread whose exit ended the parent's
    /// wait for the process or, if there was no such wait, to the last thread of the process.
    Ended,
    /// The thread waits until the job with the given number may start: until the jobs that it needs have ended and a
    /// slot is free. The wait exists only if the jobs of build tools are planned anew.
    Gate,
}

impl What {
    /// Whether the operation of a simulated thread takes CPU time.
    pub fn works(self) -> bool {
        self == What::Work || self.is_large()
    }

    /// Whether the operation of a simulated thread is work, on a CPU, of a large process: of one that works with more
    /// memory than the caches of a CPU hold, so that its speed depends on these caches.
    pub fn is_large(self) -> bool {
        matches!(self, What::Warm | What::Cold)
    }

    /// Whether the value of the operation of a simulated thread is a length of time.
    pub fn is_timed(self) -> bool {
        self.works() || self == What::Delay
    }
}

/// An operation of a thread in a simulated run: a piece of work, a wait, or an action that other threads
/// depend on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub what: What,
    /// The assumed changes of a simulation that concern this operation of a thread, as a set of bits.
    pub mask: Changes,
    pub value: u64,
    /// The time in the recording at which this operation of a simulated thread ended.
    pub at: Ktime,
}

/// An action of a thread that another thread depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    Wake(u64),
    Ended(ProcessIx),
    Start(ThreadIx),
}

/// The operations of a thread that have been collected so far, and in `marks` the thread's later actions that other
/// threads depend on.
pub(super) struct List {
    pub ops: Vec<Op>,
    pub marks: std::iter::Peekable<std::vec::IntoIter<(Ktime, Mark)>>,
}

impl List {
    pub fn push(&mut self, what: What, mask: Changes, value: u64, at: Ktime) {
        let timed = what.is_timed();
        if timed && value == 0 {
            return;
        }
        match self.ops.last_mut() {
            Some(last) if timed && (last.what, last.mask) == (what, mask) => {
                last.value = last.value.saturating_add(value);
                last.at = at;
            }
            _ => self.ops.push(Op {
                what,
                mask,
                value,
                at,
            }),
        }
    }
}
