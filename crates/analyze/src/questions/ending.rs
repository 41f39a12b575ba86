//! Finds the proven cause of the end of each wait.
//!
//! No cause is guessed: where the recording has no proof, the cause is unknown.

use tr_format::event::Reason;

use super::stopped::last_wait;
use crate::model::{Analysis, ProcessIx, ThreadIx};
use crate::timeline::{Actor, Bucket, Stretch, Wait};

/// The cause that ended a wait of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitEnd {
    /// The time-out of the waiting system call ended the wait.
    Timer {
        /// Whether the process had sent a request over the network that was not answered; `None` if the recording does
        /// not show whether there was such a request.
        asked: Option<bool>,
    },
    /// A packet from the network ended the wait, in a softirq.
    Packet,
    /// A child of the process ended the wait by its exit. The value is the thread of the child that has begun to exit.
    Child(ThreadIx),
    /// Another task ended the wait, for example because that task wrote something or freed a lock.
    Task(Actor),
    /// The completion of block I/O ended the wait.
    BlockIo,
    /// A signal ended the wait. The value is the task or interrupt that sent the signal. Only waits that nothing but a
    /// signal can end have this cause.
    Signal(Actor),
    Unknown,
}

impl WaitEnd {
    /// Whether the time-out of the waiting system call ended the wait.
    pub fn is_timer(self) -> bool {
        matches!(self, WaitEnd::Timer { .. })
    }
}

impl Analysis {
    /// Finds the cause that ended a wait of a thread.
    pub fn wait_end(&self, thread: ThreadIx, wait: &Stretch) -> WaitEnd {
        let by = wait.waker();
        match by {
            Actor::Unknown => WaitEnd::Unknown,
            Actor::Thread(_) | Actor::Outside(_) if ends_by_signals(wait.reason) => {
                WaitEnd::Signal(by)
            }
            Actor::Thread(waker) if self.is_child_at_end(thread, waker, wait) => {
                WaitEnd::Child(waker)
            }
            Actor::Thread(_) | Actor::Outside(_) => WaitEnd::Task(by),
            _ if wait.doing == Bucket::Wait(Wait::Io) => WaitEnd::BlockIo,
            // `asked` is only about requests over TCP connections, so a DNS query is looked up separately.
            Actor::Timeout { asked } => WaitEnd::Timer {
                asked: Some(asked || self.is_querying(thread, wait)),
            },
            Actor::Interrupt => match by_interrupt(wait.reason) {
                WaitEnd::Timer { asked: None } if self.is_querying(thread, wait) => {
                    WaitEnd::Timer { asked: Some(true) }
                }
                end => end,
            },
            Actor::SoftIrq if is_for_descriptors(wait.reason) => WaitEnd::Packet,
            Actor::Device if ends_by_signals(wait.reason) || wait.reason == Reason::Lock => {
                WaitEnd::Signal(by)
            }
            Actor::SoftIrq | Actor::Device => WaitEnd::Unknown,
        }
    }

    /// Whether a signal from another recorded process ended the last wait of a process's first thread, which then
    /// exited. An example is a shell script that handles SIGTERM with a trap and exits.
    pub fn ends_after_signal(&self, process: ProcessIx) -> bool {
        let (Some(timeline), Some(main)) = (&self.timeline, self.process(process).threads.first())
        else {
            return false;
        };
        let exited = self.thread(*main).exited.unwrap_or(self.thread(*main).end);
        let wait = last_wait(timeline, *main, exited);
        wait.is_some_and(|wait| match (self.wait_end(*main, &wait), wait.waker()) {
            (WaitEnd::Signal(Actor::Thread(by)), _) => self.thread(by).process != process,
            // The waker is not a child that exits. A wait for a child can otherwise end only by a signal, so the
            // waker sent one.
            (WaitEnd::Task(_), Actor::Thread(by)) => {
                wait.reason == Reason::Child && self.thread(by).process != process
            }
            _ => false,
        })
    }

    /// Whether the task that woke a thread is an exiting thread of a child process of the woken thread's process.
    pub(super) fn is_child_at_end(
        &self,
        thread: ThreadIx,
        waker: ThreadIx,
        wait: &Stretch,
    ) -> bool {
        let parent = self.process(self.thread(waker).process).parent;
        self.has_exited(waker, wait.to) && parent == Some(self.thread(thread).process)
    }

    /// Whether the process of a thread waited for the answer to a DNS query when a wait of the thread began.
    fn is_querying(&self, thread: ThreadIx, wait: &Stretch) -> bool {
        let process = self.thread(thread).process;
        self.network.querying.covers(process, wait.from)
    }
}

/// The cause of a wait's end if a hardware interrupt ended the wait and the recording does not have the system call's
/// time-out. If the wait was for a lock or for descriptors, the interrupt counts as a timer: packets come in a softirq,
/// and apart from time-outs only a timer that sends a signal ends such a wait by a hardware interrupt.
fn by_interrupt(reason: Reason) -> WaitEnd {
    match reason {
        Reason::Timer | Reason::Lock => WaitEnd::Timer { asked: Some(false) },
        Reason::Poll | Reason::SocketRead | Reason::SocketWrite => WaitEnd::Timer { asked: None },
        _ => WaitEnd::Unknown,
    }
}

/// Whether a wait with this reason can be ended by another task only with a signal to the waiting task.
fn ends_by_signals(reason: Reason) -> bool {
    matches!(reason, Reason::Timer | Reason::Signal)
}

fn is_for_descriptors(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Poll | Reason::SocketRead | Reason::SocketWrite
    )
}
