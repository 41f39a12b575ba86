//! The operations of a thread of a simulated run, and the list that they are collected in.

use tr_format::event::Ktime;

use super::Changes;
use crate::model::{ProcessIx, ThreadIx};

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The thread runs on a CPU for this number of ns.
    Work,
    /// The thread of a large process runs on a CPU for this number of ns. Other tasks on the CPU slow it down.
    Warm,
    /// The thread of a large process runs on a CPU for this number of ns. In the recording, another task had
    /// the CPU right before.
    Cold,
    /// The thread waits for this number of ns.
    Delay,
    /// The thread waits for one of the wakings with this number.
    Await,
    /// The thread causes one of the wakings with this number.
    Wake,
    /// The thread starts the thread with this number.
    Start,
    /// The thread waits until this number of children of its process have ended, unless one of the
    /// operation's changes is made.
    Children,
    /// The thread waits until this number of children of its process have ended, if one of the operation's
    /// changes is made.
    AtOnce,
    /// The process with this number has ended.
    Ended,
    /// If jobs are planned anew, the thread waits for a slot for the job with this number, and for the jobs
    /// that it needs.
    Gate,
}

impl What {
    /// Whether the operation takes CPU time.
    pub fn works(self) -> bool {
        self == What::Work || self.is_large()
    }

    /// Whether the operation takes CPU time of a large process.
    pub fn is_large(self) -> bool {
        matches!(self, What::Warm | What::Cold)
    }

    /// Whether the value of the operation is a length of time.
    pub fn is_timed(self) -> bool {
        self.works() || self == What::Delay
    }
}

/// One thing that a thread does in a simulated run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub what: What,
    /// The set of assumed changes that concern the operation.
    pub mask: Changes,
    pub value: u64,
    /// The time in the recording at which the operation ended.
    pub at: Ktime,
}

/// Something that a thread did at a moment and that another thread depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    Wake(u64),
    Ended(ProcessIx),
    Start(ThreadIx),
}

/// The operations of a thread so far, and what it did for other threads that is not among them yet.
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
