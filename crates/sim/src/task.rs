//! One task, as the machine sees it.

use tr_format::event::{Comm, Ktime};

use crate::accounts::Sums;
use crate::agenda::NEVER;

/// The slot of the idle task, which has no entry.
pub(crate) const IDLE: u32 = u32::MAX;

/// A slot together with how often it was used before: names a task (or a
/// process) also after it is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ref {
    pub(crate) slot: u32,
    pub(crate) used: u32,
}

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Forked, not woken for the first time.
    New,
    /// In a CPU's queue.
    Queued,
    /// On that CPU.
    OnCpu(u16),
    /// Asleep or blocked.
    Off,
    /// After its last switch-out.
    Dead,
}

/// What its time counts as; the order of [`crate::truth::Times`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bucket {
    OnCpu,
    RunQueue,
    Sleep,
    Blocked,
}

/// Why; the order of [`crate::truth::Causes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Preempted,
    Io,
    Vfork,
    Stopped,
    Plain,
}

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Nothing,
    Timer,
    Io,
    Lock,
    Chan(u16),
    Child,
    Vfork(Ref),
    DeThread,
}

/// Kernel state bits (include/linux/sched.h) used here.
pub(crate) mod raw {
    pub(crate) const RUNNING: u16 = 0;
    pub(crate) const INTERRUPTIBLE: u16 = 0x1;
    pub(crate) const UNINTERRUPTIBLE: u16 = 0x2;
    pub(crate) const STOPPED: u16 = 0x4;
    pub(crate) const DEAD: u16 = 0x80;
    pub(crate) const WAKEKILL: u16 = 0x100;
    pub(crate) const NEW: u16 = 0x800;
    pub(crate) const FREEZABLE: u16 = 0x2000;
    /// What `wake_up_process` wakes (`TASK_NORMAL`).
    pub(crate) const NORMAL: u16 = INTERRUPTIBLE | UNINTERRUPTIBLE;
}

/// A step of something longer that the kernel does for a task. They are done
/// one by one; between two of them the task can be interrupted and, unless
/// [`Step::held`], preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The child is woken for the first time.
    WakeNew(Ref),
    /// Wait until this child has exec'd or exited.
    VforkWait(Ref),
    /// Send a fatal signal to a sibling or another process's thread.
    Kill(Ref, u32),
    /// Stop a thread of another process.
    Stop(Ref),
    /// Let a thread of another process go on.
    Continue(Ref),
    /// Wait until the siblings are gone.
    DeThread,
    /// Become the leader.
    TakeOver,
    /// Tell the vfork parent.
    VforkDone,
    /// `sched_process_exec`.
    ExecEvent { image: u16, old_tid: u32 },
    /// `do_exit` begins.
    ExitBegin,
    /// `sched_process_exit`.
    ExitEvent,
    /// Runs a little.
    Teardown,
    /// `exit_notify`.
    ExitNotify,
    /// The last switch-out.
    Die,
}

impl Step {
    /// Not preempted before this step. The kernel would preempt here, too; but
    /// then one tid would be seen under two names, or a wait for a vfork could
    /// not be told from another, by any reader.
    pub(crate) fn held(self) -> bool {
        matches!(
            self,
            Step::VforkDone | Step::ExecEvent { .. } | Step::ExitEvent | Step::Die
        )
    }
}

/// One task.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) place: Place,
    pub(crate) bucket: Bucket,
    pub(crate) cause: Cause,
    /// The kernel's `__state`.
    pub(crate) state: u16,
    pub(crate) followed: bool,
    /// It is what it waits for, or has been told that it has come.
    pub(crate) done: bool,
    /// It has set its state and is about to call `schedule()`.
    pub(crate) scheduling: bool,
    /// Its state has been read for the switch-out, which is not stamped yet.
    pub(crate) committed: bool,
    /// It was woken after that.
    pub(crate) woken_early: bool,
    /// The state that was read, when a waking has changed it since.
    pub(crate) committed_state: u16,
    /// A waking of it was recorded since it was switched in, by the stamps.
    pub(crate) woken: bool,
    /// The stamp of the last recorded waking while it was in a queue.
    pub(crate) vain: u64,
    /// It was switched out asleep after such a waking (or with the same stamp as
    /// one), and neither woken nor switched in since: the events leave open which
    /// of the two came first.
    pub(crate) doubt: bool,
    /// Of the span: how long it was so until the end, when only an event behind
    /// the end told.
    pub(crate) undecided: u64,
    /// Its exit has begun.
    pub(crate) exiting: bool,
    /// It no longer counts for its process (`release_task`).
    pub(crate) released: bool,
    /// It is to stop.
    pub(crate) stopping: bool,
    pub(crate) tid: u32,
    /// Its process's slot.
    pub(crate) process: u32,
    /// The stamp since which the time has not been added to `times`.
    pub(crate) since: u64,
    /// The stamp of its last switch-in or switch-out, or of its fork.
    pub(crate) switched: u64,
    pub(crate) sums: Sums,
    /// What is left to run before its next thing, when it is not on a CPU.
    pub(crate) remaining: u64,
    /// How often it and earlier users of its slot have waited; see
    /// [`crate::cpu::Timer`].
    pub(crate) waits: u32,
    pub(crate) wait: Wait,
    pub(crate) program: u16,
    pub(crate) pc: u16,
    /// The CPU of its last switch-in.
    pub(crate) last_cpu: u16,
    /// The CPU of its last recorded switch.
    pub(crate) seen_cpu: u16,
    /// The only CPU it may use, or `u16::MAX`.
    pub(crate) pin: u16,
    pub(crate) loops: [u32; 4],
    pub(crate) arg: u32,
    /// Steps to be done, the next one last.
    pub(crate) steps: Vec<Step>,
    /// The raw status with which it is to be killed.
    pub(crate) killed: Option<u32>,
    pub(crate) exit_code: u32,
    /// The stamp of its `sched_process_exit`.
    pub(crate) exited: Option<u64>,
    /// The exit was recorded, in the span.
    pub(crate) exit_seen: bool,
    /// It was the last living thread when it began to exit.
    pub(crate) group_dead: bool,
    /// The parent that waits for it, if it is a vfork child, and whether its
    /// waking with the vfork flag was recorded.
    pub(crate) vfork_parent: Option<Ref>,
    pub(crate) vfork_seen: bool,
    pub(crate) used: u32,
    pub(crate) first_tid: u32,
    pub(crate) ns_tid: u32,
    pub(crate) comm: Comm,
    /// The stamp of its fork.
    pub(crate) born: u64,
    pub(crate) start_time: Ktime,
    pub(crate) run_time: u64,
    pub(crate) nvcsw: u64,
    pub(crate) nivcsw: u64,
    pub(crate) migrations: u64,
    pub(crate) max_off_cpu: u64,
}

impl Task {
    /// A task that is forked at `born` and has not run.
    pub(crate) fn new(tid: u32, process: u32, born: u64) -> Task {
        Task {
            place: Place::New,
            bucket: Bucket::RunQueue,
            cause: Cause::Plain,
            state: raw::NEW,
            followed: false,
            done: false,
            scheduling: false,
            committed: false,
            woken_early: false,
            committed_state: 0,
            woken: false,
            vain: 0,
            doubt: false,
            undecided: 0,
            exiting: false,
            released: false,
            stopping: false,
            tid,
            process,
            since: born,
            switched: born,
            sums: Sums::default(),
            remaining: 0,
            waits: 0,
            wait: Wait::Nothing,
            program: 0,
            pc: 0,
            last_cpu: u16::MAX,
            seen_cpu: u16::MAX,
            pin: u16::MAX,
            loops: [0; 4],
            arg: 0,
            steps: Vec::new(),
            killed: None,
            exit_code: 0,
            exited: None,
            exit_seen: false,
            group_dead: false,
            vfork_parent: None,
            vfork_seen: false,
            used: 0,
            first_tid: tid,
            ns_tid: tid,
            comm: Comm::default(),
            born,
            start_time: Ktime(born),
            run_time: 0,
            nvcsw: 0,
            nivcsw: 0,
            migrations: 0,
            max_off_cpu: 0,
        }
    }

    /// The tid by which its events named it so far, when it has taken over the
    /// leader's tid and its exec has not been told.
    pub(crate) fn told_tid(&self) -> Option<u32> {
        self.steps.iter().find_map(|step| match step {
            Step::ExecEvent { old_tid, .. } if *old_tid != self.tid => Some(*old_tid),
            _ => None,
        })
    }

    /// An event tells what it has been doing since its switch-out.
    #[inline]
    pub(crate) fn decide(&mut self, stamp: u64, start: u64, end: u64) {
        if self.doubt && stamp > end && self.switched < end {
            self.undecided = end - self.switched.max(start);
        }
        self.doubt = false;
    }

    /// Adds the time up to `stamp`, clipped to the span, to where it belongs.
    #[inline]
    pub(crate) fn settle(&mut self, stamp: u64, start: u64, end: u64) {
        let from = self.since.max(start);
        let to = stamp.min(end);
        if to > from {
            self.sums.times[self.bucket as usize] += to - from;
            if self.cause != Cause::Plain {
                self.sums.causes[self.cause as usize] += to - from;
            }
        }
        self.since = stamp;
    }
}

/// When a span without a known end ends.
pub(crate) const OPEN: u64 = NEVER;
