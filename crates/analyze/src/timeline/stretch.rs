//! A stretch, which is a part of a thread's time in one state, together with the task or interrupt that ended
//! a wait.

use tr_format::event::{CpuId, Ktime, Reason, Tid, Timeout};

use crate::ids::ThreadIx;
use crate::state::Bucket;

/// A task or an interrupt that woke or preempted a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Actor {
    /// No task or interrupt woke or preempted the task, or it is not known which one did.
    Unknown,
    /// The time-out of the waiting system call ended the wait: the call had a time-out, the wait lasted that long, and
    /// an interrupt ended the wait.
    Timeout {
        /// Whether a TCP connection of the process had sent bytes that were not answered when the wait began.
        asked: bool,
    },
    /// A hardware interrupt that was not the time-out of the waiting call woke the task: that of a device, or
    /// a signal from a timer.
    Device,
    /// A hardware interrupt of a timer or a device, or a softirq that may have been a socket's time-out, woke the task.
    /// The recording does not show whether the time-out of the waiting call had passed.
    Interrupt,
    /// A softirq woke the task, for example for the network or for completed block I/O.
    SoftIrq,
    /// A thread of the recording woke or preempted the task.
    Thread(ThreadIx),
    /// A task that is not recorded, or that lived outside the analyzed span, woke or preempted the task.
    Outside(Tid),
}

impl Actor {
    /// Whether the time-out of the waiting call woke the task, or an interrupt that may have been this
    /// time-out.
    pub fn is_timer(self) -> bool {
        matches!(self, Actor::Interrupt | Actor::Timeout { .. })
    }

    /// Whether an interrupt, and not another task, woke the task.
    pub fn is_interrupt(self) -> bool {
        self.is_timer() || matches!(self, Actor::Device | Actor::SoftIrq)
    }
}

/// A stretch of a thread: a part of its time in which it stays in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub from: Ktime,
    /// The end of the stretch, which is the beginning of the thread's next stretch.
    pub to: Ktime,
    pub doing: Bucket,
    /// The class of the system call in which the thread went to sleep, if the stretch is a wait.
    pub reason: Reason,
    /// The length of the time-out of the system call in which the thread went to sleep. [`Timeout::is_asked`] is
    /// always false here.
    pub timeout: Timeout,
    /// The task or interrupt that ended this wait or time of unknown state. If the thread waited for a CPU, the value
    /// is the task or interrupt that woke, forked or preempted the thread. See [`Stretch::waker`] and
    /// [`Stretch::preempted_by`].
    pub actor: Actor,
    /// The CPU that the thread was on in the stretch, if it is known. With
    /// [`Options::cpu`](crate::Options::cpu), a stretch on another CPU counts as unknown time, but has its
    /// CPU here.
    pub cpu: Option<CpuId>,
}

impl Stretch {
    /// The length of the stretch of the thread's time in ns.
    pub fn length(&self) -> u64 {
        self.to.since(self.from)
    }

    /// The task or interrupt that ended the stretch, if the stretch is a wait or time of unknown state. For a wait for
    /// a CPU, the result is the task or interrupt that woke or forked the thread. For all other stretches the result is
    /// [`Actor::Unknown`].
    pub fn waker(&self) -> Actor {
        match self.doing {
            Bucket::RunQueue { preempted: true } => Actor::Unknown,
            _ => self.actor,
        }
    }

    /// Whether the thread waits for the other end of a pipe in this stretch.
    pub fn is_for_pipe(&self) -> bool {
        let is_pipe = matches!(self.reason, Reason::PipeRead | Reason::PipeWrite);
        is_pipe && matches!(self.doing, Bucket::Wait(_))
    }

    /// The task that took the CPU from the thread, if the thread was preempted at the beginning of this stretch. For
    /// all other stretches the result is [`Actor::Unknown`].
    pub fn preempted_by(&self) -> Actor {
        match self.doing {
            Bucket::RunQueue { preempted: true } => self.actor,
            _ => Actor::Unknown,
        }
    }
}
