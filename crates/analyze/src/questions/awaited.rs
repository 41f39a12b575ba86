//! Determines why a thread is off CPU. The object that the thread waits for follows from the system call in which the
//! thread went to sleep, the state of the thread, and the task or interrupt that woke the thread.

use tr_format::event::{Ktime, Reason};
use tr_text::named;

use super::ending::WaitEnd;
use crate::kinds::TimeKind;
use crate::model::{Analysis, Process, ProcessIx, ThreadIx};
use crate::status::killed_by;
use crate::timeline::{Actor, Bucket, Stretch, Wait};

/// The least length in ns of a worker thread's wait on a futex that counts as a wait for work, because programs hold
/// their locks for shorter times. The number is a guess: with a shorter time, waits for a busy lock would be reported
/// as idleness.
const SHORTEST_PARK: u64 = 10_000_000;

/// The largest number of ancestors of a thread that are searched: the thread that started this thread, the thread that
/// started that thread, and so on.
const MOST_STARTERS: usize = 16;

named! {
    /// Why a thread is off CPU: it is in a run queue, or it waits for an object. The title is the reason's text in a
    /// list of reasons.
    #[derive(Hash)]
    pub enum WaitReason {
        /// The task is in a run queue after a wake-up or after its fork.
        Woken = "woken", "run queue, after a wake-up";
        /// The task is in a run queue after another task preempted it, or after it yielded the CPU.
        Preempted = "preempted", "run queue, preempted";
        /// The thread waits for the end of a child, or another change of its state.
        Child = "child", "its child";
        /// The thread waits for the exec or the exit of a vfork child.
        Vfork = "vfork", "its vfork child";
        /// The thread waits for a job slot of a build tool, which another client of the job server has given back.
        Slot = "slot", "a job slot";
        /// The thread waits for the other end of a pipe.
        Pipe = "pipe", "a pipe";
        /// The thread waits for a lock, or for another condition of a futex.
        Lock = "lock", "a lock";
        /// The thread waits on a futex, and another thread of the same process ended the wait: it released a lock,
        /// or it finished its work.
        Thread = "thread", "another thread";
        /// The thread has no work, and waits until another thread gives it some or its process ends.
        Idle = "idle", "idle";
        /// The thread waits for the other end of a socket.
        Socket = "socket", "a socket";
        /// The thread waits for a moment in time: a timer or a timeout.
        Timer = "timer", "a timer";
        /// The thread waits for one of several descriptors (`poll`), an eventfd, inotify or io_uring.
        Events = "events", "events (poll)";
        /// The thread waits for input or output of a terminal.
        Terminal = "terminal", "its terminal";
        /// The thread waits for a file's data or metadata, such as a page, a directory or an `fsync`, and the
        /// kernel does not count the wait as block I/O.
        File = "file", "a file";
        Disk = "block-io", "block I/O";
        /// The thread sleeps for an unknown reason: the system call in which it sleeps is not recorded, or does not
        /// show the reason.
        Sleep = "sleep", "sleep";
        /// The thread is in an uninterruptible wait for which none of the other reasons fits.
        Kernel = "blocked", "blocked in the kernel";
        /// The thread is stopped, and stays so until a signal or a tracer lets it go on.
        Continue = "stopped", "stopped";
        /// The reason why the thread is off CPU is not known. If even the state of the thread is not known, the thread
        /// may have been on a CPU.
        Unknown = "unknown", "unknown";
    }
}

impl WaitReason {
    /// The noun for the object that the thread waits for, such as `pipe`, without an article.
    pub fn noun(self) -> &'static str {
        match self {
            WaitReason::Woken => "run queue",
            WaitReason::Preempted => "run queue, preempted",
            WaitReason::Child => "child",
            WaitReason::Vfork => "vfork child",
            WaitReason::Slot => "job slot",
            WaitReason::Pipe => "pipe",
            WaitReason::Lock => "lock",
            WaitReason::Thread => "another thread",
            WaitReason::Idle => "idle",
            WaitReason::Socket => "socket",
            WaitReason::Timer => "timer",
            WaitReason::Events => "events (poll)",
            WaitReason::Terminal => "terminal",
            WaitReason::File => "file",
            WaitReason::Disk => "disk",
            WaitReason::Sleep => "sleep",
            WaitReason::Kernel => "blocked in the kernel",
            WaitReason::Continue => "stopped",
            WaitReason::Unknown => "unknown",
        }
    }

    /// The reason why a thread was off CPU in a stretch of its timeline; `None` if it was on a CPU.
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

    /// Whether the reason for waiting is a lock, or another condition of a futex.
    pub fn is_futex(self) -> bool {
        matches!(
            self,
            WaitReason::Lock | WaitReason::Thread | WaitReason::Idle
        )
    }

    /// The kind of time of a wait with this reason that no recorded thread ended. `by_task` is whether an
    /// unrecorded task or a kernel thread ended the wait. `network` is whether the process had a connection or an
    /// open DNS query then, or a packet ended the wait.
    pub(super) fn kind(self, by_task: bool, network: bool) -> TimeKind {
        match self {
            // The wait counts as one for a disk even if a task ended it, because a kernel thread may do the last
            // step of block I/O.
            WaitReason::Disk | WaitReason::File => TimeKind::Disk,
            // The thread was stopped, whatever let it continue.
            WaitReason::Continue => TimeKind::Stopped,
            // The wait counts as one for the network even if a task ended it, because the other end of the
            // connection may be a server of this machine. A wait for a Unix socket is no wait for the network.
            WaitReason::Socket if network => TimeKind::Network,
            // The wait counts as one for the terminal even if a task ended it, because a kernel worker passes on
            // what a user types.
            WaitReason::Terminal => TimeKind::Terminal,
            _ if by_task => TimeKind::Outside,
            WaitReason::Unknown => TimeKind::Unknown,
            // An interrupt such as a time-out or a signal ended the wait, and nothing shows which event was awaited.
            WaitReason::Socket | WaitReason::Events => TimeKind::Unknown,
            WaitReason::Kernel | WaitReason::Vfork => TimeKind::Blocked,
            WaitReason::Woken
            | WaitReason::Preempted
            | WaitReason::Child
            | WaitReason::Slot
            | WaitReason::Pipe
            | WaitReason::Lock
            | WaitReason::Thread
            | WaitReason::Idle
            | WaitReason::Timer
            | WaitReason::Sleep => TimeKind::Sleep,
        }
    }
}

impl Analysis {
    /// The object that a thread waits for in a stretch of its timeline; `None` if the stretch is not a wait.
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

    /// Whether everything that a process still does at a time depends on the other end of a pipe: all of its threads
    /// wait for pipes, and no child of it lives. The result is false without a timeline.
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
            // The thread waits for another task, such as the other end of a FIFO or the daemon of a file system. Waits
            // for the kernel's own file systems are uninterruptible, so they do not come here.
            Reason::Path => WaitReason::Sleep,
            reason if is_file(reason) => WaitReason::File,
            reason @ (Reason::Lock | Reason::Poll | Reason::SocketRead | Reason::SocketWrite) => {
                match end {
                    WaitEnd::Timer { asked: Some(true) } => WaitReason::Socket,
                    // Either the thread only slept, or it waited for an answer that did not come in time: the recording
                    // does not show which.
                    WaitEnd::Timer { asked: None } if online() => WaitReason::Unknown,
                    WaitEnd::Timer { .. } if self.ticks.has(thread, stretch.from) => {
                        WaitReason::Events
                    }
                    WaitEnd::Timer { .. } => WaitReason::Timer,
                    WaitEnd::Packet => WaitReason::Socket,
                    // An unrecorded process ended the wait, probably a server of this machine that sent something over
                    // the connection.
                    WaitEnd::Task(Actor::Outside(_)) if reason != Reason::Lock && online() => {
                        WaitReason::Socket
                    }
                    _ => self.polled(thread, stretch, end),
                }
            }
            Reason::FileLock | Reason::Ipc => WaitReason::Lock,
            Reason::PipeRead if self.is_slot(thread, stretch) => WaitReason::Slot,
            // A child's exit ended the wait with a SIGCHLD, not with data in the pipe.
            Reason::PipeRead if matches!(end, WaitEnd::Child(_)) => WaitReason::Child,
            Reason::Signal if self.is_ended_child(thread, stretch) => WaitReason::Child,
            Reason::PipeRead | Reason::PipeWrite => WaitReason::Pipe,
            Reason::OtherDescriptor | Reason::IoUring => WaitReason::Events,
            _ => WaitReason::Sleep,
        }
    }

    /// The reason for a wait for a lock or for descriptors that neither a time-out nor a packet ended. The reason
    /// follows from `end`, the cause that ended the wait.
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

    /// The reason for a wait on a futex that another thread ended: a lock of the process, new work, or a lock that
    /// several processes share.
    fn waited_for_thread(&self, thread: ThreadIx, by: ThreadIx, wait: &Stretch) -> WaitReason {
        let (waiter, waker) = (self.thread(thread), self.thread(by));
        let inside = |ix: &ThreadIx| self.thread(*ix).process == waiter.process;
        let parent = |ix: &ThreadIx| self.thread(*ix).parent.filter(inside);
        // The first thread of a process is no worker: no other thread gives it work, so it is never idle.
        let is_worker = parent(&thread).is_some();
        let mut starters = std::iter::successors(parent(&by), parent).take(MOST_STARTERS);
        let parked = is_worker && wait.length() >= SHORTEST_PARK;
        if waiter.process != waker.process {
            // A thread of another process woke the worker. If that thread did so only to kill the worker's process, and
            // the worker had not been given any work until then, the worker was idle.
            let ends_idle = parked && self.was_woken_to_be_killed(thread, wait);
            return if ends_idle {
                WaitReason::Idle
            } else {
                WaitReason::Lock
            };
        }
        if parked && !starters.any(|starter| starter == thread) {
            WaitReason::Idle
        } else {
            WaitReason::Thread
        }
    }

    /// Whether a wait is the last one of a thread whose process a signal killed.
    fn was_woken_to_be_killed(&self, thread: ThreadIx, wait: &Stretch) -> bool {
        let is_killed = killed_by(self.process(self.thread(thread).process).status).is_some();
        let timeline = self.timeline.as_ref().filter(|_| is_killed);
        timeline.is_some_and(|timeline| {
            let mut later = timeline.since(thread, wait.to);
            !later
                .any(|stretch| matches!(stretch.doing, Bucket::Wait(_)) && stretch.from >= wait.to)
        })
    }

    /// Whether the process of a thread had a TCP connection or an open DNS query when a wait of the thread began.
    pub fn is_online(&self, thread: ThreadIx, wait: &Stretch) -> bool {
        let process = self.thread(thread).process;
        self.network.online.covers(process, wait.from)
    }

    /// Whether the task that woke a thread is an exiting thread of a child process of the woken thread's process.
    fn is_ended_child(&self, thread: ThreadIx, stretch: &Stretch) -> bool {
        let Actor::Thread(waker) = stretch.waker() else {
            return false;
        };
        self.is_child_at_end(thread, waker, stretch)
    }

    /// Whether a thread waited for a job slot, because both this thread and the thread that woke it belong to clients
    /// of a job server. A wait for a child does not count. In such a wait, the waking thread has begun to exit.
    fn is_slot(&self, thread: ThreadIx, stretch: &Stretch) -> bool {
        let Actor::Thread(waker) = stretch.waker() else {
            return false;
        };
        let is_client = |ix| is_client(self.process(self.thread(ix).process));
        !self.has_exited(waker, stretch.to)
            && is_client(thread)
            && is_client(waker)
            && !self.reads_output(thread, waker)
    }

    /// Whether a thread waits for output and not for a job slot, because this thread has started the process to which
    /// the thread `waker` belongs. For example, cargo starts each rustc from a separate thread that reads the output of
    /// the rustc, while another thread waits for job slots. The first thread of a process never counts as such a
    /// reader.
    fn reads_output(&self, thread: ThreadIx, waker: ThreadIx) -> bool {
        let first = |ix| self.process(self.thread(ix).process).threads.first();
        let starter = first(waker).and_then(|job| self.thread(*job).parent);
        starter == Some(thread) && first(thread) != Some(&thread)
    }

    /// Whether a thread has begun to exit at or before a time, so that its exit may have ended another thread's wait.
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
