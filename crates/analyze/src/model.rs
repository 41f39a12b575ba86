//! The result of an analysis. All times are in ns; points in time are
//! [`Ktime`], to be shown relative to [`Analysis::start`].

use std::sync::Arc;

use tr_format::event::{Argv, CgroupId, Comm, CpuId, Ktime, Stream, Tgid, Tid};
use tr_format::meta::{Metadata, Summary};
use tr_format::tally::Events;

use crate::timeline::Timeline;

/// Index into [`Analysis::processes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessIx(pub u32);

/// Index into [`Analysis::threads`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadIx(pub u32);

/// Everything that was found out about a trace.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    /// What the trace says about itself.
    pub meta: Metadata,
    /// How the recording ended; `None` when the file has no proper end.
    pub summary: Option<Summary>,
    /// Start of the analyzed span (the trace's start, or `--from`).
    pub start: Ktime,
    /// End of the analyzed span.
    pub end: Ktime,
    /// Length of the whole recording, in ns.
    pub whole: u64,
    /// What can be said about the trace's quality.
    pub quality: Quality,
    /// Events, by kind.
    pub events: Events,
    /// Sums over all processes.
    pub totals: Totals,
    /// The processes of the recording, ordered by start time, then pid.
    pub processes: Vec<Process>,
    /// Their threads, ordered by process, then start time, then tid.
    pub threads: Vec<Thread>,
    /// `concurrency[n]`: how long exactly n of the recorded tasks were on a
    /// CPU at once. Sums to the span less `concurrency_unknown`.
    pub concurrency: Vec<u64>,
    /// How long the number of running tasks was not known.
    pub concurrency_unknown: u64,
    /// What each CPU did, by its number: those of the machine and those met.
    pub cpus: Vec<(CpuId, CpuFigures)>,
    /// Paths of the cgroups met, by id.
    pub cgroups: Vec<(CgroupId, Box<[u8]>)>,
    /// What every thread did when, if that was asked for.
    pub timeline: Option<Timeline>,
}

/// How far the numbers of an analysis can be trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quality {
    /// Spans of time in which events of a stream are missing.
    pub lost: Vec<LostSpan>,
    /// Sum of the known counts of `lost`.
    pub lost_events: u64,
    /// Some span's count is not known.
    pub lost_unknown: bool,
    /// The file ends before the recording did: where and why.
    pub truncated: Option<String>,
    /// The largest step back in time inside one ring, ns.
    pub largest_inversion: u64,
    /// The longest time, in ns, by which an event is proved to have been written
    /// after its stamp: it stands behind a younger event of its ring, or the
    /// recorder had emptied that ring meanwhile and not found it. It may have
    /// been later than that, and so may others. Never less than
    /// `largest_inversion`.
    pub latest_write: u64,
    /// Events that contradict what came before (a task on two CPUs, running
    /// before its fork, …), by kind; empty on a good trace.
    pub anomalies: Vec<(&'static str, u64)>,
    /// Clocks of two CPUs disagree: all times of the trace are doubtful.
    pub clocks: Option<ClockDisagreement>,
}

/// The pair of CPUs whose clocks disagree by most, as impossible event orders prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockDisagreement {
    /// The pair; the order of events does not tell whose clock is right.
    pub cpus: (CpuId, CpuId),
    /// ActorRef how much they differ at least, ns.
    pub by: u64,
    /// Impossible event orders of all pairs of CPUs whose clocks disagree.
    pub impossible_orders: u64,
}

/// One span with missing events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LostSpan {
    /// From (the first lost event, or the last event known to be there).
    pub since: Ktime,
    /// To.
    pub until: Ktime,
    /// Of which stream.
    pub stream: Stream,
    /// How many events, when that is known.
    pub count: Option<u64>,
    /// Why.
    pub cause: tr_format::event::LossCause,
}

/// Where a thread's or process's time went, in ns. The five add up to the
/// lifetime inside the analyzed span, for a process that of all its threads
/// together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// On a CPU.
    pub on_cpu: u64,
    /// Runnable, waiting for a CPU.
    pub run_queue: u64,
    /// Asleep: waiting for a timer, a pipe, a child, input. Stopped counts here.
    pub sleep: u64,
    /// In an uninterruptible wait: storage, vfork, kernel locks.
    pub blocked: u64,
    /// Not known, because events are missing.
    pub unknown: u64,
}

impl Times {
    /// All five together.
    pub fn sum(&self) -> u64 {
        self.on_cpu + self.run_queue + self.sleep + self.blocked + self.unknown
    }

    /// Takes another's times, which are a part of this one's, away.
    pub fn take(&mut self, other: &Times) {
        self.on_cpu -= other.on_cpu;
        self.run_queue -= other.run_queue;
        self.sleep -= other.sleep;
        self.blocked -= other.blocked;
        self.unknown -= other.unknown;
    }

    /// Adds another's times to this one's.
    pub fn add(&mut self, other: &Times) {
        self.on_cpu += other.on_cpu;
        self.run_queue += other.run_queue;
        self.sleep += other.sleep;
        self.blocked += other.blocked;
        self.unknown += other.unknown;
    }
}

/// Parts of [`Times`], told apart by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    /// Of `run_queue`: after being preempted (the rest is after a wake-up).
    pub preempted: u64,
    /// Of `blocked`: block I/O (`in_iowait`).
    pub io: u64,
    /// Of `blocked`: a vfork parent waiting for its child's exec or exit.
    pub vfork: u64,
    /// Of `sleep`: stopped or traced.
    pub stopped: u64,
}

impl Causes {
    /// Adds another's parts to this one's.
    pub fn add(&mut self, other: &Causes) {
        self.preempted += other.preempted;
        self.io += other.io;
        self.vfork += other.vfork;
        self.stopped += other.stopped;
    }
}

/// Context switches counted from the events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// Gave up the CPU (slept, blocked, exited).
    pub voluntary: u64,
    /// Was preempted, or yielded while runnable.
    pub involuntary: u64,
}

impl Switches {
    /// Adds another's counts to this one's.
    pub fn add(&mut self, other: &Switches) {
        self.voluntary += other.voluntary;
        self.involuntary += other.involuntary;
    }
}

/// What a CPU did. How long a thread ran on it, the timeline tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuFigures {
    /// For how long its switches prove that nobody ran, in ns.
    pub idle: u64,
    /// Its switches from and to system_wide are recorded, so that `idle` is all
    /// of its idle time but for gaps; otherwise that is not known.
    pub idle_known: bool,
    /// How often a recorded thread left it. Sums to the processes' switches.
    pub switches: Switches,
    /// How often a recorded thread came to it from another CPU. Sums to the
    /// threads' migrations.
    pub migrations: u64,
}

/// The longest time a task was off CPU at a stretch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OffCpu {
    /// Its length in ns.
    pub length: u64,
    /// When it began.
    pub since: Ktime,
    /// Actor ended it by waking the task; `None`: nobody (it was preempted), an
    /// interrupt, or not known.
    pub waker: Option<ThreadIx>,
    /// It touches the start or the end of the span, or a gap: the true length
    /// may be larger.
    pub censored: bool,
}

/// One thread.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its tid, as seen from the host.
    pub tid: Tid,
    /// Its id in its own pid namespace; equal to `tid` outside containers.
    pub ns_tid: Tid,
    /// Its process.
    pub process: ProcessIx,
    /// Its last name.
    pub comm: Comm,
    /// When it began, or the span's start when it was there before.
    pub start: Ktime,
    /// It was alive before the span's start.
    pub started_before: bool,
    /// Its last switch-out; the span's end when it was still alive then.
    pub end: Ktime,
    /// It was still alive at the span's end.
    pub alive: bool,
    /// Where its time went; sums to `end - start`.
    pub times: Times,
    /// Parts of `times`.
    pub causes: Causes,
    /// Its context switches.
    pub switches: Switches,
    /// Its longest off-CPU stretch.
    pub max_off_cpu: Option<OffCpu>,
    /// Moves from one CPU to another.
    pub migrations: u64,
    /// Its raw `wait` status, once it has exited.
    pub status: Option<u32>,
    /// The kernel's own figures at its exit.
    pub kernel: Option<KernelFigures>,
    /// When it began to exit; `end` is its last switch-out, which comes later.
    pub exited: Option<Ktime>,
    /// The thread that started it, when that is one of the recording.
    pub parent: Option<ThreadIx>,
}

/// The kernel's own accounting of an exited task, to check ours by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelFigures {
    /// Exact run time in ns, over the task's whole life.
    pub sum_exec_runtime: u64,
    /// `sum_exec_runtime` stands for the last switch-out, not for the exit.
    pub is_final: bool,
    /// User time in ns, sampled.
    pub utime: u64,
    /// System time in ns, sampled.
    pub stime: u64,
    /// Voluntary context switches.
    pub nvcsw: u64,
    /// Involuntary context switches.
    pub nivcsw: u64,
}

/// One process: a thread group from its first thread to its last.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its pid, as seen from the host.
    pub pid: Tgid,
    /// Its pid in its own pid namespace; equal to `pid` outside containers.
    pub ns_pid: Tid,
    /// Its parent's pid; `None` when not known.
    pub ppid: Option<Tgid>,
    /// Its parent, when that is one of the recorded processes. A process whose
    /// parent has exited keeps the parent that forked it.
    pub parent: Option<ProcessIx>,
    /// Its children, in order of start.
    pub children: Vec<ProcessIx>,
    /// Its last name.
    pub comm: Comm,
    /// Arguments of its last exec; before any exec those it inherited from its
    /// parent (see `execs`).
    pub argv: Argv,
    /// Its last cgroup.
    pub cgroup: CgroupId,
    /// It is a kernel thread.
    pub kthread: bool,
    /// When it began, or the span's start when it was there before.
    pub start: Ktime,
    /// It was alive before the span's start.
    pub started_before: bool,
    /// Its last thread's last switch-out; the span's end when it was alive then.
    pub end: Ktime,
    /// It was still alive at the span's end.
    pub alive: bool,
    /// Its raw `wait` status; `None` while alive or when the exit was not seen.
    pub status: Option<u32>,
    /// Its threads.
    pub threads: Vec<ThreadIx>,
    /// Where its threads' time went.
    pub times: Times,
    /// Parts of `times`.
    pub causes: Causes,
    /// Its threads' context switches.
    pub switches: Switches,
    /// The longest off-CPU stretch of any of its threads.
    pub max_off_cpu: Option<OffCpu>,
    /// Its largest resident set in bytes, once it has exited.
    pub max_rss: Option<u64>,
    /// Page faults, minor and major, of the threads that have exited.
    pub faults: (u64, u64),
    /// Bytes read from and written to storage, of the threads that have exited;
    /// `None` where the kernel does not count it.
    pub io: Option<(u64, u64)>,
    /// The programs it was, in order. A forked process that never called exec
    /// has none.
    pub execs: Vec<ExecSpan>,
    /// This process and its descendants.
    pub tree: Tree,
}

/// A process together with its descendants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// How many processes, itself included.
    pub processes: u64,
    /// Their times together.
    pub times: Times,
    /// The end of the last of them.
    pub end: Ktime,
}

/// One program that a process was: from its exec to the next exec or the exit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecSpan {
    /// The exec.
    pub start: Ktime,
    /// It was running before the span's start; `start` is the span's start.
    pub started_before: bool,
    /// The next exec, the process's end, or the span's end.
    pub end: Ktime,
    /// It ended inside the span.
    pub ended: bool,
    /// What was executed; empty for a program that was running before.
    pub filename: Arc<[u8]>,
    /// Its arguments.
    pub argv: Argv,
    /// The name after the exec.
    pub comm: Comm,
    /// Its threads' times from `start` to `end`.
    pub times: Times,
}

/// Sums over all processes of the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Processes.
    pub processes: u64,
    /// Threads.
    pub threads: u64,
    /// Successful execs.
    pub execs: u64,
    /// New tasks, threads included.
    pub forks: u64,
    /// Tasks that exited, threads included.
    pub exits: u64,
    /// Where all their time went.
    pub times: Times,
    /// Parts of it.
    pub causes: Causes,
}
