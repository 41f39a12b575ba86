//! A task of the simulated machine.

use tr_format::event::{Comm, Delays, Ktime};

use crate::agenda::NEVER;
use crate::sums::Sums;

/// The slot that stands for the idle task, which has no entry.
pub(crate) const IDLE: u32 = u32::MAX;

/// The slot of a task or process and the number of the slot's earlier users, which identify the task or
/// process even after its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ref {
    pub(crate) slot: u32,
    pub(crate) used: u32,
}

/// The place of a task: on a CPU, in a queue, or neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Place {
    /// The task is forked and was not woken for the first time.
    #[default]
    New,
    /// The task is in the queue of a CPU.
    Queued,
    /// The task is on the CPU with this number.
    OnCpu(u16),
    /// The task is asleep or blocked.
    Off,
    /// The task has made its last switch-out.
    Dead,
}

/// The account that a task's time is added to, in the order of [`crate::truth::Times`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Bucket {
    OnCpu,
    #[default]
    RunQueue,
    Sleep,
    Blocked,
}

/// The cause of a task's time, in the order of [`crate::truth::Causes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Cause {
    Preempted,
    Io,
    Vfork,
    Stopped,
    #[default]
    Plain,
}

/// The thing that ends a task's wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wait {
    #[default]
    Nothing,
    Timer,
    Io,
    Lock,
    Chan(u16),
    /// A post to a channel with this number ends the wait, or a timer.
    ChanFor(u16),
    Child,
    Vfork(Ref),
    DeThread,
}

/// The bits of the kernel's task state (include/linux/sched.h) that the simulation uses.
pub(crate) mod raw {
    pub(crate) const RUNNING: u16 = 0;
    pub(crate) const INTERRUPTIBLE: u16 = 0x1;
    pub(crate) const UNINTERRUPTIBLE: u16 = 0x2;
    pub(crate) const STOPPED: u16 = 0x4;
    pub(crate) const DEAD: u16 = 0x80;
    pub(crate) const WAKEKILL: u16 = 0x100;
    pub(crate) const NEW: u16 = 0x800;
    pub(crate) const FREEZABLE: u16 = 0x2000;
    /// The states that `wake_up_process` wakes (`TASK_NORMAL`).
    pub(crate) const NORMAL: u16 = INTERRUPTIBLE | UNINTERRUPTIBLE;
}

/// A step of a system call or of a task's exit. Between two steps the task can be interrupted and, unless
/// [`Step::held`], preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The new child is woken for the first time.
    WakeNew(Ref),
    /// The parent waits until this vfork child has exec'd or exited.
    VforkWait(Ref),
    /// The task sends a fatal signal to a sibling or to another process's thread. The number is the raw status.
    Kill(Ref, u32),
    /// The task stops a thread of another process.
    Stop(Ref),
    /// The task lets a stopped thread of another process go on.
    Continue(Ref),
    /// The task waits until its sibling threads are gone.
    DeThread,
    /// The task becomes the leader of its process.
    TakeOver,
    /// The wait of the vfork parent is completed.
    VforkDone,
    /// The kernel emits the event `sched_process_exec`.
    ExecEvent { image: u16, old_tid: u32 },
    /// The exit begins (`do_exit`).
    ExitBegin,
    /// The kernel emits the event `sched_process_exit`.
    ExitEvent,
    /// The task runs a little while the kernel releases its resources.
    Teardown,
    /// The task notifies its parent (`exit_notify`).
    ExitNotify,
    /// The task is switched out for the last time.
    Die,
}

impl Step {
    /// Whether the task is not preempted before this step. The kernel may preempt it there, but then no reader could
    /// recognize one task under two tids, or distinguish a wait for a vfork from another wait.
    pub(crate) fn held(self) -> bool {
        matches!(
            self,
            Step::VforkDone | Step::ExecEvent { .. } | Step::ExitEvent | Step::Die
        )
    }
}

/// A task of the simulated machine.
#[derive(Debug, Default)]
pub(crate) struct Task {
    pub(crate) place: Place,
    pub(crate) bucket: Bucket,
    pub(crate) cause: Cause,
    /// The state of the task as in the kernel's `__state`.
    pub(crate) state: u16,
    pub(crate) followed: bool,
    /// Whether the wait of the task has been completed.
    pub(crate) done: bool,
    /// Whether the task has set its state and is about to call `schedule()`.
    pub(crate) scheduling: bool,
    /// Whether the state of the task has been read for the switch-out, which is not stamped yet.
    pub(crate) committed: bool,
    /// Whether the task was woken after its state was read for the switch-out.
    pub(crate) woken_early: bool,
    /// The state that was read for the switch-out, if a waking has changed it since.
    pub(crate) committed_state: u16,
    /// Whether a waking of the task was recorded, according to the stamps, since it was switched in.
    pub(crate) woken: bool,
    /// The stamp of the last recorded waking while the task was in a queue.
    pub(crate) vain: u64,
    /// Whether the task was switched out asleep after `woken`, or with the stamp of a waking, and was neither
    /// woken nor switched in since. The events do not show the order of the two.
    pub(crate) doubt: bool,
    /// The time of `doubt` up to the end of the span in ns, if only a later event ended it.
    pub(crate) undecided: u64,
    /// Whether the exit of the task has begun.
    pub(crate) exiting: bool,
    /// Whether the task no longer counts for its process (`release_task`).
    pub(crate) released: bool,
    /// Whether the task has to stop.
    pub(crate) stopping: bool,
    pub(crate) tid: u32,
    /// The slot of the task's process.
    pub(crate) process: u32,
    /// The stamp from which on the task's time has not been added to `times`.
    pub(crate) since: u64,
    /// The stamp of the task's last switch-in or switch-out, or of its fork.
    pub(crate) switched: u64,
    pub(crate) sums: Sums,
    /// The remaining run time before the next action in ns, while the task is off CPU.
    pub(crate) remaining: u64,
    /// The number of waits of this slot's users; see [`crate::cpu::Timer`].
    pub(crate) waits: u32,
    pub(crate) wait: Wait,
    /// The time-out of the present wait in ns, if the wait has one.
    pub(crate) limit: u64,
    pub(crate) program: u16,
    pub(crate) pc: u16,
    /// The CPU on which the task was switched in last.
    pub(crate) last_cpu: u16,
    /// The CPU of the task's last recorded switch.
    pub(crate) seen_cpu: u16,
    /// The only CPU that the task may use, or `u16::MAX`.
    pub(crate) pin: u16,
    pub(crate) loops: [u32; 4],
    pub(crate) arg: u32,
    /// The steps of a system call that are still to be done, the next one last.
    pub(crate) steps: Vec<Step>,
    /// The raw status with which the task is to be killed, if it is.
    pub(crate) killed: Option<u32>,
    pub(crate) exit_code: u32,
    /// The stamp of the task's event `sched_process_exit`.
    pub(crate) exited: Option<u64>,
    /// Whether the exit of the task was recorded in the span.
    pub(crate) exit_seen: bool,
    /// Whether the task was the last living thread of its process when it began to exit.
    pub(crate) group_dead: bool,
    /// The parent that waits for this vfork child.
    pub(crate) vfork_parent: Option<Ref>,
    /// Whether the waking of the task with the vfork flag was recorded.
    pub(crate) vfork_seen: bool,
    pub(crate) used: u32,
    pub(crate) first_tid: u32,
    pub(crate) ns_tid: u32,
    pub(crate) comm: Comm,
    /// The stamp of the task's fork.
    pub(crate) born: u64,
    pub(crate) start_time: Ktime,
    pub(crate) run_time: u64,
    pub(crate) nvcsw: u64,
    pub(crate) nivcsw: u64,
    pub(crate) migrations: u64,
    pub(crate) max_off_cpu: u64,
    /// The time in ns that the task has spent in run queues, as the kernel's `run_delay` counts it.
    pub(crate) run_delay: u64,
}

impl Task {
    /// A task that is forked at `born` and has not run.
    pub(crate) fn new(tid: u32, process: u32, born: u64) -> Task {
        Task {
            state: raw::NEW,
            tid,
            first_tid: tid,
            ns_tid: tid,
            process,
            born,
            since: born,
            switched: born,
            start_time: Ktime(born),
            last_cpu: u16::MAX,
            seen_cpu: u16::MAX,
            pin: u16::MAX,
            ..Task::default()
        }
    }

    /// The tid that the task's events had so far, if it has taken over the leader's tid and its exec event is
    /// still to come.
    pub(crate) fn recorded_tid(&self) -> Option<u32> {
        self.steps.iter().find_map(|step| match step {
            Step::ExecEvent { old_tid, .. } if *old_tid != self.tid => Some(*old_tid),
            _ => None,
        })
    }

    /// Ends the doubt about the task's time since the switch-out, because an event at `stamp` decides it.
    #[inline]
    pub(crate) fn decide(&mut self, stamp: u64, start: u64, end: u64) {
        if self.doubt && stamp > end && self.switched < end {
            self.undecided = end - self.switched.max(start);
        }
        self.doubt = false;
    }

    /// The kernel's sums of the task's times off CPU.
    pub(crate) fn delays(&self) -> Delays {
        Delays {
            run: Some(self.run_delay),
            ..Delays::default()
        }
    }

    /// Adds the task's time up to `stamp`, clipped to the span, to its accounts.
    #[inline]
    pub(crate) fn settle(&mut self, stamp: u64, start: u64, end: u64) {
        if self.bucket == Bucket::RunQueue {
            self.run_delay += stamp.saturating_sub(self.since);
        }
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

/// The end of a span whose end is not known.
pub(crate) const OPEN: u64 = NEVER;
