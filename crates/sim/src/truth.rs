//! The truth about a run, from the machine's own state changes.
//!
//! # Definitions
//! All points in time are the machine's stamps (true time, rounded down to the grain), and
//! all times are clipped to the span `[start, end]`.
//!
//! - A task lives from its fork to its last switch-out. Tasks that live only outside the
//!   span are left out.
//! - `on_cpu`: from switch-in to switch-out.
//! - `run_queue`: from the fork to the first switch-in; from the waking to the switch-in;
//!   from a switch-out by preemption or in state 0 to the switch-in. If the waking has an
//!   earlier stamp than the switch-out that it ends, from the switch-out.
//! - `sleep`: from a switch-out in state S, or stopped, to the waking.
//! - `blocked`: the same for D.
//! - `preempted`, of `run_queue`: after a switch-out with the preempt flag, or in state 0
//!   without a recorded waking since the switch-in (a yield). `io`, of `blocked`: in_iowait.
//!   `vfork`, of `blocked`: the wait for the child's exec or exit, neither stamped before
//!   the switch-out, up to the waking. `stopped`, of `sleep`: in state T. A cause that only
//!   an event before the attachment tells does not count.
//! - Switches count if stamped in `[start, end)`: as involuntary with the preempt flag or
//!   in state 0, as the kernel's nivcsw, otherwise as voluntary.
//! - A process lives from its first thread's fork to its threads' latest last switch-out.
//!   Its parent is the process that forked it.
//! - A program lives from its exec to the next exec or the process's end, with the times of
//!   all threads of the process.

use tr_format::event::{Argv, CgroupId, Comm, Ktime, Tgid, Tid};

/// The parts of a time span, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// On a CPU.
    pub on_cpu: u64,
    /// Runnable.
    pub run_queue: u64,
    /// Asleep or stopped.
    pub sleep: u64,
    /// In an uninterruptible wait.
    pub blocked: u64,
}

impl Times {
    /// The sum of all four.
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

    /// The differences between these times and `earlier`.
    pub(crate) fn since(&self, earlier: &Times) -> Times {
        Times {
            on_cpu: self.on_cpu - earlier.on_cpu,
            run_queue: self.run_queue - earlier.run_queue,
            sleep: self.sleep - earlier.sleep,
            blocked: self.blocked - earlier.blocked,
        }
    }

    /// Adds the times of another.
    pub fn add(&mut self, other: &Times) {
        self.on_cpu += other.on_cpu;
        self.run_queue += other.run_queue;
        self.sleep += other.sleep;
        self.blocked += other.blocked;
    }
}

/// Parts of [`Times`], in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    /// The part of `run_queue` after a preemption or a yield.
    pub preempted: u64,
    /// The part of `blocked` for block I/O.
    pub io: u64,
    /// The part of `blocked` in a vfork.
    pub vfork: u64,
    /// The part of `sleep` in which the task was stopped.
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

    /// Adds another's parts.
    pub fn add(&mut self, other: &Causes) {
        self.preempted += other.preempted;
        self.io += other.io;
        self.vfork += other.vfork;
        self.stopped += other.stopped;
    }
}

/// One thread.
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
    /// The fork was before the span.
    pub started_before: bool,
    /// The time of the thread's last switch-out, or the end of the span.
    pub end: Ktime,
    /// The thread had not made its last switch-out at the end of the span.
    pub alive: bool,
    /// The parts of its time: their sum is `end - start`.
    pub times: Times,
    /// The causes of these times.
    pub causes: Causes,
    /// The last part of its time, ns, if no event tells whether it slept or was runnable: it
    /// was switched out asleep after a waking while it was on the CPU, and the recording
    /// ends before its next waking or switch-in. Either the waking was in vain, or it came
    /// between the kernel's read of the state and the stamp of the switch-out.
    pub undecided: u64,
    /// Voluntary switches in the span.
    pub voluntary: u64,
    /// Involuntary switches in the span.
    pub involuntary: u64,
    /// Switch-ins on a CPU other than the last one.
    pub migrations: u64,
    /// The longest single time off CPU, clipped to the span.
    pub max_off_cpu: u64,
    /// The thread's own raw `wait` status, if its exit was recorded.
    pub status: Option<u32>,
    /// Run time, voluntary and involuntary switches of its whole life.
    pub kernel: (u64, u64, u64),
}

/// One program of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecTruth {
    /// The exec, or the span's start.
    pub start: Ktime,
    /// The program began before the span or before tracing.
    pub started_before: bool,
    /// The next exec, the process's end or the span's end.
    pub end: Ktime,
    /// The arguments; empty without an exec event.
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

/// One process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessTruth {
    /// The pid of the process.
    pub pid: Tgid,
    /// The process that forked it, an index into [`Truth::processes`], if it is there.
    pub parent: Option<usize>,
    /// The pid of the process that forked it.
    pub ppid: Option<Tgid>,
    /// The last cgroup of the process in the span.
    pub cgroup: CgroupId,
    /// The task is a kernel thread.
    pub kthread: bool,
    /// The time of the first thread's fork, or the start of the span.
    pub start: Ktime,
    /// The fork was before the span.
    pub started_before: bool,
    /// The time of the last thread's last switch-out, or the end of the span.
    pub end: Ktime,
    /// Some thread had not made its last switch-out at the span's end.
    pub alive: bool,
    /// The raw `wait` status of the process, if the exit of its last thread was recorded.
    pub status: Option<u32>,
    /// The threads of the process, indices into [`Truth::tasks`].
    pub threads: Vec<usize>,
    /// The parts of its threads' times.
    pub times: Times,
    /// The causes of these times.
    pub causes: Causes,
    /// The voluntary switches of all threads in the span.
    pub voluntary: u64,
    /// The involuntary switches of all threads in the span.
    pub involuntary: u64,
    /// Page faults of the threads that exited, minor and major.
    pub faults: (u64, u64),
    /// The largest resident set of the process, if the exit of its last thread was recorded.
    pub max_rss: Option<u64>,
    /// The programs of the process in their order. A process that began before tracing begins with its program of that
    /// time, without arguments.
    pub execs: Vec<ExecTruth>,
}

/// The truth about a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    /// The span's start.
    pub start: Ktime,
    /// The span's end.
    pub end: Ktime,
    /// The number of CPUs.
    pub cpus: u16,
    /// The recorded processes, by start, then pid.
    pub processes: Vec<ProcessTruth>,
    /// The recorded threads, by process, then start, then tid.
    pub tasks: Vec<TaskTruth>,
    /// By n: the time with exactly n recorded tasks on CPUs.
    pub concurrency: Vec<u64>,
    /// The idle time of all CPUs.
    pub idle: u64,
    /// The time of unrecorded tasks on all CPUs.
    pub others: u64,
    /// COMMAND's raw `wait` status, when it ended in the span.
    pub status: Option<u32>,
    /// Execs stamped in the span.
    pub execs: u64,
    /// Forks stamped in the span, threads included.
    pub forks: u64,
    /// Exits stamped in the span, threads included.
    pub exits: u64,
}
