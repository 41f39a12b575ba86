//! The object of a wait. It follows from the system call in which a thread went to sleep, the state of the
//! thread, and the task or interrupt that woke it.

use tr_format::event::{Ktime, Reason};

use crate::kinds::Kind;
use crate::model::{Analysis, Process, ThreadIx};
use crate::timeline::{Actor, Bucket, Stretch, Wait};

/// The object of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Awaited {
    /// The end of a child, or another change of its state.
    Child,
    /// The exec or the exit of a vfork child.
    Vfork,
    /// A job slot of a build tool, which another client of the job server has given back.
    Slot,
    /// The other end of a pipe.
    Pipe,
    /// A lock, or another condition of a futex.
    Lock,
    /// The other end of a socket.
    Socket,
    /// A moment in time: a timer or a timeout.
    Timer,
    /// One of several descriptors (`poll`), an eventfd, inotify, io_uring.
    Events,
    /// Input or output of a terminal.
    Terminal,
    /// The data or the metadata of a file, without block I/O of the thread itself: a page, a directory,
    /// `fsync`.
    File,
    Disk,
    /// The continuation of a stopped thread by a signal or a tracer.
    Continue,
    /// Another uninterruptible wait.
    Kernel,
    /// A sleep whose object is not known: its system call is not recorded, or does not show the object.
    Sleep,
    /// The object is not known.
    Unknown,
}

impl Awaited {
    /// The kind of a wait that no recorded thread ended. `by_task` is whether an unrecorded task or a kernel
    /// thread ended it. `online` is whether the waiting process had a connection or an open DNS query
    /// then.
    pub(super) fn kind(self, by_task: bool, online: bool) -> Kind {
        match self {
            // The last step of block I/O may be a kernel thread's.
            Awaited::Disk | Awaited::File => Kind::Disk,
            // Whoever let it go on.
            Awaited::Continue => Kind::Stopped,
            // The other end of a connection may be a server of this machine; that of a Unix
            // socket is no network.
            Awaited::Socket if online || !by_task => Kind::Network,
            _ if by_task => Kind::Outside,
            Awaited::Unknown => Kind::Unknown,
            Awaited::Terminal => Kind::Terminal,
            Awaited::Kernel | Awaited::Vfork => Kind::Blocked,
            _ => Kind::Sleep,
        }
    }
}

impl Analysis {
    /// The object that a thread waits for in a stretch; `None` if the stretch is not a wait.
    pub fn awaited(&self, thread: ThreadIx, stretch: &Stretch) -> Option<Awaited> {
        let Bucket::Wait(wait) = stretch.doing else {
            return None;
        };
        Some(match wait {
            Wait::Io => Awaited::Disk,
            Wait::Vfork => Awaited::Vfork,
            Wait::Stopped => Awaited::Continue,
            Wait::Unknown => Awaited::Unknown,
            Wait::Blocked if is_file(stretch.reason) => Awaited::File,
            Wait::Blocked => Awaited::Kernel,
            Wait::Sleep => self.slept_for(thread, stretch),
        })
    }

    fn slept_for(&self, thread: ThreadIx, stretch: &Stretch) -> Awaited {
        let waker = stretch.waker();
        // The timeout of a call; its other conditions come by softirqs and tasks.
        let timeout = waker == Actor::Interrupt;
        match stretch.reason {
            Reason::Child => Awaited::Child,
            Reason::Timer => Awaited::Timer,
            Reason::Terminal => Awaited::Terminal,
            // For another task: a FIFO's other end, a file system's daemon. The kernel's own file systems
            // wait uninterruptibly.
            Reason::Path => Awaited::Sleep,
            reason if is_file(reason) => Awaited::File,
            // A call that waits for a socket and for a timeout is called again after the timeout.
            Reason::Poll | Reason::SocketRead | Reason::SocketWrite
                if !matches!(waker, Actor::Thread(_)) && self.is_online(thread, stretch) =>
            {
                Awaited::Socket
            }
            Reason::Lock | Reason::Poll | Reason::SocketRead | Reason::SocketWrite if timeout => {
                Awaited::Timer
            }
            Reason::Lock | Reason::FileLock | Reason::Ipc => Awaited::Lock,
            Reason::SocketRead | Reason::SocketWrite => Awaited::Socket,
            Reason::Poll | Reason::PipeRead if self.is_slot(thread, stretch) => Awaited::Slot,
            // SIGCHLD.
            Reason::Poll | Reason::PipeRead | Reason::Signal
                if self.is_ended_child(thread, stretch) =>
            {
                Awaited::Child
            }
            Reason::PipeRead | Reason::PipeWrite => Awaited::Pipe,
            Reason::Poll if waker == Actor::SoftIrq => Awaited::Socket,
            Reason::Poll | Reason::OtherDescriptor | Reason::IoUring => Awaited::Events,
            _ => Awaited::Sleep,
        }
    }

    /// Whether the process had a TCP connection or an open DNS query when the wait began.
    pub(super) fn is_online(&self, thread: ThreadIx, wait: &Stretch) -> bool {
        let process = self.thread(thread).process;
        self.online.covers(process, wait.from)
    }

    /// Whether the waker is an exiting thread of a child.
    fn is_ended_child(&self, thread: ThreadIx, stretch: &Stretch) -> bool {
        let Actor::Thread(waker) = stretch.waker() else {
            return false;
        };
        let parent = self.process(self.thread(waker).process).parent;
        self.has_exited(waker, stretch.to) && parent == Some(self.thread(thread).process)
    }

    /// Whether the thread and its waker are clients of a job server. (A client that waits for a child is woken
    /// by the child's exit.)
    fn is_slot(&self, thread: ThreadIx, stretch: &Stretch) -> bool {
        let Actor::Thread(waker) = stretch.waker() else {
            return false;
        };
        let is_client = |ix| is_client(self.process(self.thread(ix).process));
        !self.has_exited(waker, stretch.to) && is_client(thread) && is_client(waker)
    }

    /// Whether a thread has begun to exit at or before a time, so that its exit ended a wait.
    pub(super) fn has_exited(&self, thread: ThreadIx, by: Ktime) -> bool {
        self.thread(thread).exited.is_some_and(|at| at <= by)
    }
}

/// Whether a process takes job slots from a job server's pipe.
fn is_client(process: &Process) -> bool {
    process.tool().is_some_and(|tool| tool.client)
}

fn is_file(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::FileRead | Reason::FileWrite | Reason::Sync | Reason::Path | Reason::PageFault
    )
}
