//! The truth about a simulated run, from the machine's own changes of state.
//!
//! # Definitions
//! All points in time are the machine's stamps (true time, rounded down to the grain), and all times are clipped to the
//! span `[start, end]`.
//!
//! - A task lives from its fork to its last switch-out. Tasks that live only outside the span are left out.
//! - `on_cpu`: from switch-in to switch-out.
//! - `run_queue`: from the fork to the first switch-in; from the waking to the switch-in; from a switch-out by
//!   preemption or in state 0 to the switch-in. If the waking has an earlier stamp than the switch-out that it ends,
//!   from the switch-out.
//! - `sleep`: from a switch-out in state S, or stopped, to the waking.
//! - `blocked`: the same for D.
//! - `preempted`, of `run_queue`: after a switch-out with the preempt flag, or in state 0 without a recorded waking
//!   since the switch-in (a yield). `io`, of `blocked`: in_iowait. `vfork`, of `blocked`: the wait for the child's exec
//!   or exit, neither stamped before the switch-out, up to the waking. `stopped`, of `sleep`: in state T. A cause that
//!   only an event before the attachment tells does not count.
//! - Switches count if stamped in `[start, end)`: as involuntary with the preempt flag or in state 0, as the kernel's
//!   nivcsw, otherwise as voluntary.
//! - A process lives from its first thread's fork to its threads' latest last switch-out. Its parent is the process
//!   that forked it.
//! - A program lives from its exec to the next exec or the process's end, with the times of all threads of the process.

use tr_format::event::{Argv, CgroupId, Comm, Ktime, Tgid, Tid};

/// The times of a task or process in each state, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// The time on a CPU.
    pub on_cpu: u64,
    /// The time in which the task was runnable and waited for a CPU.
    pub run_queue: u64,
    /// The time asleep or stopped.
    pub sleep: u64,
    /// The time in uninterruptible waits.
    pub blocked: u64,
}

impl Times {
    /// The sum of the times in all four states, in ns.
    pub fn sum(&self) -> u64 {
        self.on_cpu + self.run_queue + self.sleep + self.blocked
    }

    /// The times in the order of [`crate::task::Bucket`].
    pub(crate) fn from_array([on_cpu, run_queue, sleep, blocked]: [u64; 4]) -> Times {
        Times {
            on_cpu,
            run_queue,
            sleep,
            blocked,
        }
    }

    /// By how much these times are larger than `earlier`.
    pub(crate) fn since(&self, earlier: &Times) -> Times {
        Times {
            on_cpu: self.on_cpu - earlier.on_cpu,
            run_queue: self.run_queue - earlier.run_queue,
            sleep: self.sleep - earlier.sleep,
            blocked: self.blocked - earlier.blocked,
        }
    }

    /// Adds the times of another task or process.
    pub fn add(&mut self, other: &Times) {
        self.on_cpu += other.on_cpu;
        self.run_queue += other.run_queue;
        self.sleep += other.sleep;
        self.blocked += other.blocked;
    }
}

/// The parts of [`Times`] that have a certain cause, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    /// The part of the time in run queues after a preemption or a yield.
    pub preempted: u64,
    /// The part of the blocked time that was a wait for block I/O.
    pub io: u64,
    /// The part of the blocked time in which a vfork parent waited for its child.
    pub vfork: u64,
    /// The part of the time asleep in which the task was stopped.
    pub stopped: u64,
}

impl Causes {
    /// The times in the order of [`crate::task::Cause`].
    pub(crate) fn from_array([preempted, io, vfork, stopped]: [u64; 4]) -> Causes {
        Causes {
            preempted,
            io,
            vfork,
            stopped,
        }
    }

    /// Adds the parts of another task or process.
    pub fn add(&mut self, other: &Causes) {
        self.preempted += other.preempted;
        self.io += other.io;
        self.vfork += other.vfork;
        self.stopped += other.stopped;
    }
}

/// The truth about one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskTruth {
    /// The tid of the thread at the end of its life or of the span.
    pub tid: Tid,
    /// The tid of the thread at its fork. It differs from `tid` after the exec of a thread that is not the leader.
    pub first_tid: Tid,
    /// The id of the thread in its own pid namespace, for its first tid.
    pub ns_tid: Tid,
    /// The process of the thread, an index into [`Truth::processes`].
    pub process: usize,
    /// The last name of the thread in the span.
    pub comm: Comm,
    /// The time of the thread's fork, or the start of the span.
    pub start: Ktime,
    /// Whether the thread was forked before the span.
    pub started_before: bool,
    /// The time of the thread's last switch-out, or the end of the span.
    pub end: Ktime,
    /// Whether the thread had not made its last switch-out at the end of the span.
    pub alive: bool,
    /// The times of the thread in each state. Their sum is `end - start`.
    pub times: Times,
    /// The parts of the thread's times that have a certain cause.
    pub causes: Causes,
    /// The last part of the thread's time in ns, if no event shows whether it slept or was runnable: it was
    /// switched out asleep after a waking while it was on the CPU, and the recording ends before its next
    /// waking or switch-in. Either the waking was in vain, or it came between the kernel's read of the state
    /// and the stamp of the switch-out.
    pub undecided: u64,
    /// The number of voluntary switches of the thread in the span.
    pub voluntary: u64,
    /// The number of involuntary switches of the thread in the span.
    pub involuntary: u64,
    /// The number of times that the thread was switched in on another CPU than before.
    pub migrations: u64,
    /// The longest single time that the thread was off CPU, clipped to the span, in ns.
    pub max_off_cpu: u64,
    /// The thread's own raw `wait` status, if its exit was recorded.
    pub status: Option<u32>,
    /// The run time in ns and the numbers of voluntary and involuntary switches in the thread's whole life.
    pub kernel: (u64, u64, u64),
}

/// The truth about one program of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecTruth {
    /// The time of the exec, or the start of the span.
    pub start: Ktime,
    /// Whether the program began before the span or before tracing.
    pub started_before: bool,
    /// The time at which the program ended: the next exec, the process's end or the span's end.
    pub end: Ktime,
    /// The arguments of the program; empty if there is no exec event.
    pub argv: Argv,
    /// The times of the process's threads from `start` to `end`.
    pub times: Times,
}

impl ExecTruth {
    /// A program that begins at `start`; its end is not known yet.
    pub(crate) fn new(start: u64, argv: Argv) -> ExecTruth {
        ExecTruth {
            start: Ktime(start),
            started_before: false,
            end: Ktime(0),
            argv,
            times: Times::default(),
        }
    }
}

/// The truth about one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessTruth {
    /// The pid of the process.
    pub pid: Tgid,
    /// The process that forked this one, as an index into [`Truth::processes`], if it is recorded.
    pub parent: Option<usize>,
    /// The pid of the process that forked this one.
    pub ppid: Option<Tgid>,
    /// The last cgroup of the process in the span.
    pub cgroup: CgroupId,
    /// Whether the process is a kernel thread.
    pub kthread: bool,
    /// The time of the first thread's fork, or the start of the span.
    pub start: Ktime,
    /// Whether the process was forked before the span.
    pub started_before: bool,
    /// The time of the last thread's last switch-out, or the end of the span.
    pub end: Ktime,
    /// Whether some thread of the process had not made its last switch-out at the end of the span.
    pub alive: bool,
    /// The raw `wait` status of the process, if the exit of its last thread was recorded.
    pub status: Option<u32>,
    /// The threads of the process, as indices into [`Truth::tasks`].
    pub threads: Vec<usize>,
    /// The sums of the times of the process's threads in each state.
    pub times: Times,
    /// The parts of the process's times that have a certain cause.
    pub causes: Causes,
    /// The number of voluntary switches of all threads in the span.
    pub voluntary: u64,
    /// The number of involuntary switches of all threads in the span.
    pub involuntary: u64,
    /// The numbers of minor and major page faults of the threads that exited.
    pub faults: (u64, u64),
    /// The largest resident set of the process in bytes, if the exit of its last thread was recorded.
    pub max_rss: Option<u64>,
    /// The programs of the process in their order. A process that began before tracing begins with its program of that
    /// time, without arguments.
    pub execs: Vec<ExecTruth>,
}

/// The truth about a simulated run, which an analysis of its events is compared with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    /// The start of the span that the truth is about.
    pub start: Ktime,
    /// The end of the span that the truth is about.
    pub end: Ktime,
    /// The number of CPUs of the machine.
    pub cpus: u16,
    /// The recorded processes, ordered by start, then pid.
    pub processes: Vec<ProcessTruth>,
    /// The recorded threads, ordered by process, then start, then tid.
    pub tasks: Vec<TaskTruth>,
    /// For each n, the time in ns in which exactly n recorded tasks were on CPUs.
    pub concurrency: Vec<u64>,
    /// The idle time of all CPUs together, in ns.
    pub idle: u64,
    /// The time in ns that unrecorded tasks ran on all CPUs together.
    pub others: u64,
    /// The raw `wait` status of COMMAND, if it ended in the span.
    pub status: Option<u32>,
    /// The number of execs with a stamp in the span.
    pub execs: u64,
    /// The number of forks with a stamp in the span, threads included.
    pub forks: u64,
    /// The number of exits with a stamp in the span, threads included.
    pub exits: u64,
}
