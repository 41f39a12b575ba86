//! The truth about a simulated run, from the machine's own changes of state. An analysis of the
//! run's recording is compared with it.
//!
//! # Definitions
//! All points in time are the machine's time stamps (the true time, rounded down to the clock's resolution). All times
//! are counted only inside the recorded span `[start, end]`.
//!
//! - A task lives from its fork to its last switch-out. Tasks that live only outside the span are left out.
//! - `on_cpu`: from switch-in to switch-out.
//! - `run_queue`: from the fork to the first switch-in; from the waking to the switch-in; from a switch-out by
//!   preemption or in state 0 to the switch-in. If a waking has an earlier stamp than the switch-out whose sleep it
//!   ends, the time counts from that switch-out.
//! - `sleep`: from a switch-out in state S, or stopped, to the waking.
//! - `blocked`: from a switch-out in state D to the waking.
//! - `preempted` is the part of `run_queue` after a switch-out with the preempt flag, or in state 0 without a recorded
//!   waking since the switch-in (a yield). `io` is the part of `blocked` with in_iowait. `vfork` is the part of
//!   `blocked` in which a parent waits for its child's exec or exit, if neither is stamped before the switch-out; it
//!   ends with the waking. `stopped` is the part of `sleep` in state T. A cause does not count if only an event before
//!   tracing was attached would show it.
//! - A switch counts if it is stamped in `[start, end)`. With the preempt flag or in state 0 it is involuntary, as in
//!   the kernel's nivcsw, otherwise voluntary.
//! - A process lives from the fork of its first thread to the last switch-out of any of its threads. Its parent is the
//!   process that forked it.
//! - A program lives from its exec to the next exec or the process's end, with the times of all threads of the process.

use tr_format::event::{Argv, CgroupId, Comm, Ktime, Tgid, Tid};

/// The times of a simulated task or process in each state, in ns, according to the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// The time that the simulated task or process was on a CPU, in ns.
    pub on_cpu: u64,
    /// The time in ns for which the simulated task was runnable and waited for a CPU.
    pub run_queue: u64,
    /// The time in ns for which the simulated task was asleep (state S) or stopped.
    pub sleep: u64,
    /// The time in ns for which the simulated task waited uninterruptibly (state D).
    pub blocked: u64,
}

impl Times {
    /// The sum of the simulated task's or process's times in all four states, in ns.
    pub fn sum(&self) -> u64 {
        self.on_cpu + self.run_queue + self.sleep + self.blocked
    }

    /// Makes the struct from an array of the times in ns in each state, in the order of [`crate::task::Bucket`].
    pub(crate) fn from_array([on_cpu, run_queue, sleep, blocked]: [u64; 4]) -> Times {
        Times {
            on_cpu,
            run_queue,
            sleep,
            blocked,
        }
    }

    /// The differences between these times and earlier ones of the same process, in ns.
    pub(crate) fn since(&self, earlier: &Times) -> Times {
        Times {
            on_cpu: self.on_cpu - earlier.on_cpu,
            run_queue: self.run_queue - earlier.run_queue,
            sleep: self.sleep - earlier.sleep,
            blocked: self.blocked - earlier.blocked,
        }
    }

    /// Adds the times of another simulated task or process to these.
    pub fn add(&mut self, other: &Times) {
        self.on_cpu += other.on_cpu;
        self.run_queue += other.run_queue;
        self.sleep += other.sleep;
        self.blocked += other.blocked;
    }
}

/// The times of a simulated task in ns that have a certain cause. Each of them is a part of the time in one state
/// ([`Times`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    /// The part of the simulated task's time in run queues after a preemption or a yield, in ns.
    pub preempted: u64,
    /// The part of the simulated task's blocked time that was a wait for block I/O, in ns.
    pub io: u64,
    /// The part of the simulated task's blocked time in which it waited as a vfork parent for its
    /// child, in ns.
    pub vfork: u64,
    /// The part of the simulated task's time asleep in which it was stopped, in ns.
    pub stopped: u64,
}

impl Causes {
    /// Makes the struct from an array of the times in ns for each cause, in the order of [`crate::task::StateCause`].
    pub(crate) fn from_array([preempted, io, vfork, stopped]: [u64; 4]) -> Causes {
        Causes {
            preempted,
            io,
            vfork,
            stopped,
        }
    }

    /// Adds the times of another simulated task or process to these times, for each cause.
    pub fn add(&mut self, other: &Causes) {
        self.preempted += other.preempted;
        self.io += other.io;
        self.vfork += other.vfork;
        self.stopped += other.stopped;
    }
}

/// The truth about one simulated thread, with which the analysis of its recording is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskTruth {
    /// The tid of the simulated thread at the end of its life or of the recorded span.
    pub tid: Tid,
    /// The tid of the simulated thread at its fork. It differs from `tid` after the exec of a
    /// thread that is not the leader.
    pub first_tid: Tid,
    /// The id of the simulated thread in its own pid namespace, for its first tid.
    pub ns_tid: Tid,
    /// The process of the simulated thread, as an index into [`Truth::processes`].
    pub process: usize,
    /// The last name of the simulated thread in the recorded span.
    pub comm: Comm,
    /// The time of the simulated thread's fork, or the start of the recorded span if that is later.
    pub start: Ktime,
    /// Whether the simulated thread was forked before the recorded span.
    pub started_before: bool,
    /// The time of the simulated thread's last switch-out, or the end of the recorded span if that
    /// is earlier.
    pub end: Ktime,
    /// Whether the simulated thread had not made its last switch-out at the end of the recorded
    /// span.
    pub alive: bool,
    /// The times of the simulated thread in each state, in ns. Their sum is `end - start`.
    pub times: Times,
    /// The times of the simulated thread that have a certain cause, such as preemption.
    pub causes: Causes,
    /// The time in ns up to the end of the recording for which no event shows whether the simulated thread slept or was
    /// runnable. This happens if a thread is woken while it is on a CPU and is then switched out asleep: either the
    /// waking had no effect, or the waking came after the kernel had read the thread's state.
    pub undecided: u64,
    /// The number of voluntary switches of the simulated thread in the recorded span.
    pub voluntary: u64,
    /// The number of involuntary switches of the simulated thread in the recorded span.
    pub involuntary: u64,
    /// The number of times that the simulated thread was switched in on another CPU than before.
    pub migrations: u64,
    /// The longest single time that the simulated thread was off CPU, in ns, counted only inside
    /// the recorded span.
    pub max_off_cpu: u64,
    /// The simulated thread's own raw `wait` status, if its exit was recorded.
    pub status: Option<u32>,
    /// The run time in ns and the numbers of voluntary and involuntary switches in the simulated
    /// thread's whole life, as the kernel counts them.
    pub kernel: (u64, u64, u64),
}

/// The truth about one program that a simulated process executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecTruth {
    /// The time of the simulated program's exec, or the start of the recorded span if that is
    /// later.
    pub start: Ktime,
    /// Whether the simulated program began before the recorded span or before tracing.
    pub started_before: bool,
    /// The time at which the simulated program ended: the next exec, the process's end or the end
    /// of the recorded span.
    pub end: Ktime,
    /// The arguments of the simulated program; empty if there is no exec event.
    pub argv: Argv,
    /// The times of the simulated process's threads from `start` to `end` of this program, in ns.
    pub times: Times,
}

impl ExecTruth {
    /// The truth about a simulated program that begins at `start` and whose end is not known yet.
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

/// The truth about one simulated process, with which the analysis of its recording is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessTruth {
    /// The pid of the simulated process.
    pub pid: Tgid,
    /// The process that forked this simulated one, as an index into [`Truth::processes`]; `None` if the forking process
    /// is not recorded.
    pub parent: Option<usize>,
    /// The pid of the process that forked this simulated one.
    pub ppid: Option<Tgid>,
    /// The last cgroup of the simulated process in the recorded span.
    pub cgroup: CgroupId,
    /// Whether the simulated process is a kernel thread.
    pub kthread: bool,
    /// The time of the fork of the simulated process's first thread, or the start of the recorded
    /// span if that is later.
    pub start: Ktime,
    /// Whether the simulated process was forked before the recorded span.
    pub started_before: bool,
    /// The time of the last switch-out of the simulated process's last thread, or the end of the
    /// recorded span if that is earlier.
    pub end: Ktime,
    /// Whether some thread of the simulated process had not made its last switch-out at the end of
    /// the recorded span.
    pub alive: bool,
    /// The raw `wait` status of the simulated process, if the exit of its last thread was recorded.
    pub status: Option<u32>,
    /// The threads of the simulated process, as indices into [`Truth::tasks`].
    pub threads: Vec<usize>,
    /// The sums of the times of the simulated process's threads in each state, in ns.
    pub times: Times,
    /// The times of the simulated process that have a certain cause, such as preemption.
    pub causes: Causes,
    /// The number of voluntary switches of all threads of the simulated process in the recorded
    /// span.
    pub voluntary: u64,
    /// The number of involuntary switches of all threads of the simulated process in the recorded
    /// span.
    pub involuntary: u64,
    /// The numbers of minor and major page faults of those threads of the simulated process whose exit was recorded.
    pub faults: (u64, u64),
    /// The largest resident set of the simulated process in bytes, if the exit of its last thread
    /// was recorded.
    pub max_rss: Option<u64>,
    /// The programs that the simulated process executed, in order. A process that began before
    /// tracing begins with its program of that time, without arguments.
    pub execs: Vec<ExecTruth>,
}

/// The truth about a simulated run. An analysis of the run's events is compared with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    /// The start of the recorded span of the simulated run, in which the truth counts all times.
    pub start: Ktime,
    /// The end of the recorded span of the simulated run, in which the truth counts all times.
    pub end: Ktime,
    /// The number of CPUs of the simulated machine.
    pub cpus: u16,
    /// The recorded processes of the simulated run, ordered by start, then pid.
    pub processes: Vec<ProcessTruth>,
    /// The recorded threads of the simulated run, ordered by process, then start, then tid.
    pub tasks: Vec<TaskTruth>,
    /// The concurrency of the simulated run: for each n, the time in ns in which exactly n recorded
    /// tasks were on CPUs.
    pub concurrency: Vec<u64>,
    /// The idle time of all simulated CPUs together, in ns.
    pub idle: u64,
    /// The time in ns that unrecorded tasks ran on all simulated CPUs together.
    pub others: u64,
    /// The raw `wait` status of the simulated COMMAND, if it ended in the recorded span.
    pub status: Option<u32>,
    /// The number of execs in the recorded span of the simulated run.
    pub execs: u64,
    /// The number of forks in the recorded span of the simulated run, including those of threads.
    pub forks: u64,
    /// The number of exits in the recorded span of the simulated run, including those of threads.
    pub exits: u64,
}
