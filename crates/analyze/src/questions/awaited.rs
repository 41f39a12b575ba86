//! Why a thread is off CPU. The object of a wait follows from the system call in which a thread went to sleep, the state of the
//! thread, and the task or interrupt that woke it.

use tr_format::event::{Ktime, Reason};

use super::ending::WaitEnd;
use crate::kinds::Kind;
use crate::model::{Analysis, Process, ProcessIx, ThreadIx};
use crate::timeline::{Actor, Bucket, Stretch, Wait};

/// The length in ns from which a wait of a worker is for work: programs hold their locks for shorter times. A guess:
/// a shorter time would call waits for a busy lock idleness.
const PARKED: u64 = 10_000_000;

/// The most threads from one to the thread that started it, and to the thread that started that.
const DEEPEST: usize = 16;

/// The words in which reports print a reason for waiting.
struct Words {
    /// The name in JSON and CSV.
    name: &'static str,
    /// The noun of the awaited thing, without an article.
    noun: &'static str,
    /// The reason in a list of reasons.
    title: &'static str,
}

/// Declares the reasons, each with its words.
macro_rules! reasons {
    ($($(#[$doc:meta])* $reason:ident = $name:literal, $noun:literal, $title:literal;)*) => {
        /// Why a thread is off CPU: a run queue, or the object of its wait.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum WaitReason {
            $($(#[$doc])* $reason,)*
        }

        impl WaitReason {
            pub const ALL: [WaitReason; [$($name),*].len()] = [$(WaitReason::$reason),*];

            fn words(self) -> Words {
                let (name, noun, title) = match self {
                    $(WaitReason::$reason => ($name, $noun, $title),)*
                };
                Words { name, noun, title }
            }
        }
    };
}

reasons! {
    /// The task is in a run queue after a wake-up or its fork.
    Woken = "woken", "run queue", "run queue, after a wake-up";
    /// The task is in a run queue after another task preempted it.
    Preempted = "preempted", "run queue, preempted", "run queue, preempted";
    /// The end of a child, or another change of its state.
    Child = "child", "child", "its child";
    /// The exec or the exit of a vfork child.
    Vfork = "vfork", "vfork child", "its vfork child";
    /// A job slot of a build tool, which another client of the job server has given back.
    Slot = "slot", "job slot", "a job slot";
    /// The other end of a pipe.
    Pipe = "pipe", "pipe", "a pipe";
    /// A lock, or another condition of a futex.
    Lock = "lock", "lock", "a lock";
    /// A condition of a futex that another thread of the same process fulfilled: a lock of the process, or the
    /// end of a thread's work.
    Thread = "thread", "another thread", "another thread";
    /// New work: a thread is parked until the thread that started it, or another one that it did not start, has
    /// work for it or ends the process.
    Idle = "idle", "idle", "idle";
    /// The other end of a socket.
    Socket = "socket", "socket", "a socket";
    /// A moment in time: a timer or a timeout.
    Timer = "timer", "timer", "a timer";
    /// One of several descriptors (`poll`), an eventfd, inotify, io_uring.
    Events = "events", "events (poll)", "events (poll)";
    /// Input or output of a terminal.
    Terminal = "terminal", "terminal", "its terminal";
    /// The data or the metadata of a file, without block I/O of the thread itself: a page, a directory,
    /// `fsync`.
    File = "file", "file", "a file";
    Disk = "block-io", "disk", "block I/O";
    /// A sleep whose object is not known: its system call is not recorded, or does not show the object.
    Sleep = "sleep", "sleep", "sleep";
    /// Another uninterruptible wait.
    Kernel = "blocked", "blocked in the kernel", "blocked in the kernel";
    /// The continuation of a stopped thread by a signal or a tracer.
    Continue = "stopped", "stopped", "stopped";
    /// The reason is not known; in a time that is not known the thread may have been on a CPU.
    Unknown = "unknown", "unknown", "unknown";
}

impl WaitReason {
    /// The name in JSON and CSV.
    pub fn name(self) -> &'static str {
        self.words().name
    }

    /// The noun of the awaited thing, without an article.
    pub fn noun(self) -> &'static str {
        self.words().noun
    }

    /// The reason in a list of reasons.
    pub fn title(self) -> &'static str {
        self.words().title
    }

    /// The reason of a stretch of a thread's timeline; `None` of one on a CPU.
    pub fn of(analysis: &Analysis, thread: ThreadIx, stretch: &Stretch) -> Option<WaitReason> {
        match stretch.doing {
            Bucket::OnCpu(_) => None,
            Bucket::RunQueue { preempted: false } => Some(WaitReason::Woken),
            Bucket::RunQueue { preempted: true } => Some(WaitReason::Preempted),
            Bucket::Wait(_) | Bucket::Unknown => {
                let awaited = analysis.awaited(thread, stretch);
                Some(awaited.unwrap_or(WaitReason::Unknown))
            }
        }
    }

    /// Whether the wait is for a lock, or for another condition of a futex.
    pub fn is_futex(self) -> bool {
        matches!(
            self,
            WaitReason::Lock | WaitReason::Thread | WaitReason::Idle
        )
    }

    /// The kind of a wait that no recorded thread ended. `by_task` is whether an unrecorded task or a kernel
    /// thread ended it. `network` is whether the waiting process had a connection or an open DNS query then, or a
    /// packet ended the wait.
    pub(super) fn kind(self, by_task: bool, network: bool) -> Kind {
        match self {
            // The last step of block I/O may be a kernel thread's.
            WaitReason::Disk | WaitReason::File => Kind::Disk,
            // Whoever let it go on.
            WaitReason::Continue => Kind::Stopped,
            // The other end of a connection may be a server of this machine; that of a Unix
            // socket is no network.
            WaitReason::Socket if network => Kind::Network,
            // A worker of the kernel passes on what a user types.
            WaitReason::Terminal => Kind::Terminal,
            _ if by_task => Kind::Outside,
            WaitReason::Unknown => Kind::Unknown,
            // A signal ended it, and the recording does not show what would have ended it otherwise.
            WaitReason::Socket | WaitReason::Events => Kind::Unknown,
            WaitReason::Kernel | WaitReason::Vfork => Kind::Blocked,
            _ => Kind::Sleep,
        }
    }
}

impl Analysis {
    /// The object that a thread waits for in a stretch; `None` if the stretch is not a wait.
    pub fn awaited(&self, thread: ThreadIx, stretch: &Stretch) -> Option<WaitReason> {
        let Bucket::Wait(wait) = stretch.doing else {
            return None;
        };
        Some(match wait {
            Wait::Io => WaitReason::Disk,
            Wait::Vfork => WaitReason::Vfork,
            Wait::Stopped => WaitReason::Continue,
            Wait::Unknown => WaitReason::Unknown,
            Wait::Blocked if is_file(stretch.reason) => WaitReason::File,
            Wait::Blocked => WaitReason::Kernel,
            Wait::Sleep => self.slept_for(thread, stretch),
        })
    }

    /// Whether nothing of a process goes on at a time before its end but for the other end of a pipe: all of its threads
    /// wait for one, and no child of it lives. It is false without a timeline.
    pub fn waits_for_pipe(&self, process: ProcessIx, at: Ktime) -> bool {
        let Some(timeline) = &self.timeline else {
            return false;
        };
        let process = self.process(process);
        let lives = |ix: &ProcessIx| self.process(*ix).end >= at && self.process(*ix).start < at;
        let threads = process.threads.iter();
        let mut living = threads.filter(|ix| self.thread(**ix).end >= at).peekable();
        let waits = |ix: &ThreadIx| {
            let stretch = timeline.before(*ix, at);
            stretch.is_some_and(|stretch| stretch.is_for_pipe())
        };
        living.peek().is_some() && living.all(waits) && !process.children.iter().any(lives)
    }

    fn slept_for(&self, thread: ThreadIx, stretch: &Stretch) -> WaitReason {
        let end = self.wait_end(thread, stretch);
        let online = || self.is_online(thread, stretch);
        match stretch.reason {
            Reason::Child => WaitReason::Child,
            Reason::Timer => WaitReason::Timer,
            Reason::Terminal => WaitReason::Terminal,
            // For another task: a FIFO's other end, a file system's daemon. The kernel's own file systems
            // wait uninterruptibly.
            Reason::Path => WaitReason::Sleep,
            reason if is_file(reason) => WaitReason::File,
            reason @ (Reason::Lock | Reason::Poll | Reason::SocketRead | Reason::SocketWrite) => {
                match end {
                    WaitEnd::Timer { asked: Some(true) } => WaitReason::Socket,
                    // A nap, or a wait for an answer that comes later.
                    WaitEnd::Timer { asked: None } if online() => WaitReason::Unknown,
                    WaitEnd::Timer { .. } if self.ticks.has(thread, stretch.from) => {
                        WaitReason::Events
                    }
                    WaitEnd::Timer { .. } => WaitReason::Timer,
                    WaitEnd::Packet => WaitReason::Socket,
                    // A server of this machine has written.
                    WaitEnd::Task(Actor::Outside(_)) if reason != Reason::Lock && online() => {
                        WaitReason::Socket
                    }
                    _ => self.polled(thread, stretch, end),
                }
            }
            Reason::FileLock | Reason::Ipc => WaitReason::Lock,
            Reason::PipeRead if self.is_slot(thread, stretch) => WaitReason::Slot,
            // SIGCHLD.
            Reason::PipeRead if matches!(end, WaitEnd::Child(_)) => WaitReason::Child,
            Reason::Signal if self.is_ended_child(thread, stretch) => WaitReason::Child,
            Reason::PipeRead | Reason::PipeWrite => WaitReason::Pipe,
            Reason::OtherDescriptor | Reason::IoUring => WaitReason::Events,
            _ => WaitReason::Sleep,
        }
    }

    /// The object of a wait for a lock or for descriptors that no time-out and no packet ended.
    fn polled(&self, thread: ThreadIx, stretch: &Stretch, end: WaitEnd) -> WaitReason {
        match (stretch.reason, end) {
            (Reason::Lock, WaitEnd::Task(Actor::Thread(waker))) => {
                self.waited_for_thread(thread, waker, stretch)
            }
            (Reason::Lock, _) => WaitReason::Lock,
            (Reason::SocketRead | Reason::SocketWrite, WaitEnd::Task(_) | WaitEnd::Child(_)) => {
                WaitReason::Socket
            }
            (Reason::Poll, _) if self.is_slot(thread, stretch) => WaitReason::Slot,
            (_, WaitEnd::Child(_)) => WaitReason::Child,
            (Reason::Poll, _) => WaitReason::Events,
            _ => WaitReason::Socket,
        }
    }

    /// The object of a wait for a futex that a thread ended.
    fn waited_for_thread(&self, thread: ThreadIx, by: ThreadIx, wait: &Stretch) -> WaitReason {
        let (waiter, waker) = (self.thread(thread), self.thread(by));
        if waiter.process != waker.process {
            return WaitReason::Lock;
        }
        let inside = |ix: &ThreadIx| self.thread(*ix).process == waiter.process;
        let parent = |ix: &ThreadIx| self.thread(*ix).parent.filter(inside);
        // The first thread of a process is idle for nobody.
        let is_worker = parent(&thread).is_some();
        let mut starters = std::iter::successors(parent(&by), parent).take(DEEPEST);
        if is_worker && wait.length() >= PARKED && !starters.any(|starter| starter == thread) {
            WaitReason::Idle
        } else {
            WaitReason::Thread
        }
    }

    /// Whether the process had a TCP connection or an open DNS query when the wait began.
    pub(super) fn is_online(&self, thread: ThreadIx, wait: &Stretch) -> bool {
        let process = self.thread(thread).process;
        self.network.online.covers(process, wait.from)
    }

    /// Whether the waker is an exiting thread of a child.
    fn is_ended_child(&self, thread: ThreadIx, stretch: &Stretch) -> bool {
        let Actor::Thread(waker) = stretch.waker() else {
            return false;
        };
        self.is_child_at_end(thread, waker, stretch)
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
