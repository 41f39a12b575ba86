//! Why a thread was off CPU.

use tr_analyze::awaited::Awaited;
use tr_analyze::model::{Analysis, ThreadIx};
use tr_analyze::timeline::{Bucket, Stretch};

use tr_text::named;

named! {
    /// The reason of a thread's time off CPU.
    pub enum Reason {
        /// The task is in a run queue after a wake-up or its fork.
        Woken = "woken", "run queue, after a wake-up";
        /// The task is in a run queue after another task preempted it.
        Preempted = "preempted", "run queue, preempted";
        Child = "child", "its child";
        Vfork = "vfork", "its vfork child";
        Slot = "slot", "a job slot";
        /// The task reads from or writes to a pipe.
        Pipe = "pipe", "a pipe";
        /// The task waits for a lock, or another condition of a futex.
        Lock = "lock", "a lock";
        /// The task reads from or writes to a socket.
        Socket = "socket", "a socket";
        /// The task sleeps, or a timeout has passed.
        Timer = "timer", "a timer";
        /// The task waits for one of several descriptors.
        Events = "events", "events (poll)";
        /// The task reads from or writes to a terminal.
        Terminal = "terminal", "its terminal";
        /// The task waits for a file: a read, a write, fsync, a page fault.
        File = "file", "a file";
        Io = "block-io", "block I/O";
        /// An interruptible sleep of another kind.
        Sleep = "sleep", tr_text::words::SLEEP;
        Blocked = "blocked", "blocked in the kernel";
        Stopped = "stopped", "stopped";
        /// Unknown; it may have been on a CPU.
        Unknown = "unknown", tr_text::words::UNKNOWN;
    }
}

impl Reason {
    /// The reason of a stretch of a thread's timeline; `None` of one on a CPU.
    pub fn of(analysis: &Analysis, thread: ThreadIx, stretch: &Stretch) -> Option<Reason> {
        let awaited = match stretch.doing {
            Bucket::OnCpu(_) => return None,
            Bucket::RunQueue { preempted: false } => return Some(Reason::Woken),
            Bucket::RunQueue { preempted: true } => return Some(Reason::Preempted),
            Bucket::Wait(_) | Bucket::Unknown => analysis.awaited(thread, stretch),
        };
        Some(match awaited {
            Some(Awaited::Child) => Reason::Child,
            Some(Awaited::Vfork) => Reason::Vfork,
            Some(Awaited::Slot) => Reason::Slot,
            Some(Awaited::Pipe) => Reason::Pipe,
            Some(Awaited::Lock) => Reason::Lock,
            Some(Awaited::Socket) => Reason::Socket,
            Some(Awaited::Timer) => Reason::Timer,
            Some(Awaited::Events) => Reason::Events,
            Some(Awaited::Terminal) => Reason::Terminal,
            Some(Awaited::File) => Reason::File,
            Some(Awaited::Disk) => Reason::Io,
            Some(Awaited::Sleep) => Reason::Sleep,
            Some(Awaited::Kernel) => Reason::Blocked,
            Some(Awaited::Continue) => Reason::Stopped,
            Some(Awaited::Unknown) | None => Reason::Unknown,
        })
    }
}
