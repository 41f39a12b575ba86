//! A task of the simulated machine.

use tr_format::event::{Comm, Delays, Ktime};

use crate::agenda::NEVER;
use crate::sums::Sums;

/// The idle task of a simulated CPU is not in the table of tasks. This value stands for it in place of an index.
pub(crate) const IDLE_TASK: u32 = u32::MAX;

/// A reference to a simulated task or process: its index in the table (slot), and how many earlier entries had this
/// index. The reference identifies the task or process even after its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ref {
    pub(crate) slot: u32,
    pub(crate) used: u32,
}

/// Where a simulated task is: on a CPU, in a run queue, or neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Place {
    /// The simulated task is forked, but was not woken for the first time yet.
    #[default]
    New,
    /// The simulated task is in the run queue of a CPU.
    Queued,
    /// The simulated task is on the CPU with this number.
    OnCpu(u16),
    /// The simulated task is asleep or blocked.
    Off,
    /// The simulated task has made its last switch-out.
    Dead,
}

/// The account to which a simulated task's time is added, in the order of [`crate::truth::Times`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Bucket {
    OnCpu,
    #[default]
    RunQueue,
    Sleep,
    Blocked,
}

/// The cause of a simulated task's time in its state, in the order of [`crate::truth::Causes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StateCause {
    Preempted,
    Io,
    Vfork,
    Stopped,
    #[default]
    Plain,
}

/// The event that ends the wait of a simulated task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wait {
    #[default]
    Nothing,
    Timer,
    Io,
    Lock,
    Chan(u16),
    /// A post to the channel with this number, or a timer, ends the simulated task's wait.
    ChanFor(u16),
    Child,
    Vfork(Ref),
    DeThread,
}

/// The bits of the kernel's task state (`__state`, include/linux/sched.h) that the simulation uses.
pub(crate) mod raw {
    pub(crate) const RUNNING: u16 = 0;
    pub(crate) const INTERRUPTIBLE: u16 = 0x1;
    pub(crate) const UNINTERRUPTIBLE: u16 = 0x2;
    pub(crate) const STOPPED: u16 = 0x4;
    pub(crate) const DEAD: u16 = 0x80;
    pub(crate) const WAKEKILL: u16 = 0x100;
    pub(crate) const NEW: u16 = 0x800;
    pub(crate) const FREEZABLE: u16 = 0x2000;
    /// The states from which the kernel's `wake_up_process` wakes a task (`TASK_NORMAL`).
    pub(crate) const NORMAL: u16 = INTERRUPTIBLE | UNINTERRUPTIBLE;
}

/// A step of a system call or of a simulated task's exit. Between two steps the task can be
/// interrupted and, unless [`Step::held`], preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The simulated task wakes its new child for the first time.
    WakeNew(Ref),
    /// The simulated task waits until its vfork child has exec'd or exited.
    VforkWait(Ref),
    /// The simulated task sends a fatal signal to a thread of its own or another process. The
    /// number is the raw `wait` status.
    Kill(Ref, u32),
    /// The simulated task stops a thread of another process.
    Stop(Ref),
    /// The simulated task lets a stopped thread of another process go on.
    Continue(Ref),
    /// The simulated task waits until the other threads of its process are gone.
    DeThread,
    /// The simulated task becomes the leader of its process.
    TakeOver,
    /// The simulated task completes the wait of its vfork parent.
    VforkDone,
    /// The simulated kernel emits the event `sched_process_exec` for the task.
    ExecEvent { image: u16, old_tid: u32 },
    /// The exit of the simulated task begins (`do_exit` of the kernel).
    ExitBegin,
    /// The simulated kernel emits the event `sched_process_exit` for the task.
    ExitEvent,
    /// The simulated task runs a little while the kernel releases its resources.
    Teardown,
    /// The exiting simulated task notifies its parent (`exit_notify` of the kernel).
    ExitNotify,
    /// The simulated task is switched out for the last time.
    Die,
}

impl Step {
    /// Whether the simulated task cannot be preempted before this step. A real kernel may preempt the task there, but
    /// then no reader of the recording could recognize that one task has two tids, or distinguish the wait for a vfork
    /// from another wait.
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
    pub(crate) cause: StateCause,
    /// The state of the simulated task as in the kernel's `__state`.
    pub(crate) state: u16,
    pub(crate) followed: bool,
    /// Whether the event for which the simulated task waits has happened.
    pub(crate) done: bool,
    /// Whether the simulated task has set its state and is about to call `schedule()`.
    pub(crate) scheduling: bool,
    /// Whether the kernel has read the state of the simulated task for its switch-out, but has not yet stamped the
    /// switch-out.
    pub(crate) committed: bool,
    /// Whether the simulated task was woken after its state was read for the switch-out.
    pub(crate) woken_early: bool,
    /// The state that the kernel has read for the simulated task's switch-out, if a waking has changed the task's state
    /// after that; otherwise 0.
    pub(crate) committed_state: u16,
    /// Whether, by the time stamps of the recording, the simulated task was woken since it was switched in.
    pub(crate) woken: bool,
    /// The time stamp of the simulated task's last recorded waking that had no effect, because the task was in a run
    /// queue.
    pub(crate) vain: u64,
    /// Whether the recording leaves open if the simulated task slept or was runnable. This doubt begins with a
    /// switch-out into a sleep if a waking came before the switch-out (`woken`) or has the same time stamp. The doubt
    /// ends with the next waking or switch-in.
    pub(crate) doubt: bool,
    /// The time in ns from the last switch-out to the end of the recorded span, if no event after the switch-out shows
    /// whether the simulated task slept (`doubt`).
    pub(crate) undecided: u64,
    /// Whether the exit of the simulated task has begun.
    pub(crate) exiting: bool,
    /// Whether the simulated task no longer counts for its process (`release_task` of the kernel).
    pub(crate) released: bool,
    /// Whether the simulated task has to stop, because its process got a SIGSTOP.
    pub(crate) stopping: bool,
    pub(crate) tid: u32,
    /// The index of the simulated task's process in the table of processes.
    pub(crate) process: u32,
    /// The time stamp up to which the simulated task's time has been added to its sums.
    pub(crate) since: u64,
    /// The time stamp of the simulated task's last switch-in or switch-out, or of its fork.
    pub(crate) switched: u64,
    pub(crate) sums: Sums,
    /// The remaining run time in ns before the simulated task's next action, while the task is off
    /// CPU.
    pub(crate) remaining: u64,
    /// The number of waits of all tasks that have had this index in the table of tasks. It identifies outdated timers,
    /// see [`crate::cpu::Timer`].
    pub(crate) waits: u32,
    pub(crate) wait: Wait,
    /// The time-out of the simulated task's present wait in ns, if the wait has one.
    pub(crate) limit: u64,
    pub(crate) program: u16,
    pub(crate) pc: u16,
    /// The CPU on which the simulated task was switched in last.
    pub(crate) last_cpu: u16,
    /// The CPU of the simulated task's last recorded switch.
    pub(crate) seen_cpu: u16,
    /// The only CPU that the simulated task may use, or `u16::MAX` if it may use all.
    pub(crate) pin: u16,
    pub(crate) loops: [u32; 4],
    pub(crate) arg: u32,
    /// The steps of a system call that the simulated task still has to do, the next one last.
    pub(crate) steps: Vec<Step>,
    /// The raw `wait` status with which the simulated task is to be killed, if it is.
    pub(crate) killed: Option<u32>,
    pub(crate) exit_code: u32,
    /// The time stamp of the simulated task's event `sched_process_exit`.
    pub(crate) exited: Option<u64>,
    /// Whether the exit of the simulated task was recorded before the end of the span.
    pub(crate) exit_seen: bool,
    /// Whether the simulated task was the last living thread of its process when it began to exit.
    pub(crate) group_dead: bool,
    /// The parent that waits for this simulated task, if the task is a vfork child.
    pub(crate) vfork_parent: Option<Ref>,
    /// Whether the first waking of the simulated task was recorded with the flag for a vfork.
    pub(crate) vfork_seen: bool,
    pub(crate) used: u32,
    pub(crate) first_tid: u32,
    pub(crate) ns_tid: u32,
    pub(crate) comm: Comm,
    /// The time stamp of the simulated task's fork.
    pub(crate) born: u64,
    pub(crate) start_time: Ktime,
    pub(crate) run_time: u64,
    pub(crate) nvcsw: u64,
    pub(crate) nivcsw: u64,
    pub(crate) migrations: u64,
    pub(crate) max_off_cpu: u64,
    /// The time in ns that the simulated task has spent in run queues, as the kernel's `run_delay`
    /// counts it.
    pub(crate) run_delay: u64,
}

impl Task {
    /// A simulated task that is forked at the time `born` and has not run.
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

    /// The tid that the events of the simulated task had so far, if the task has taken over its
    /// leader's tid and its exec event is still to come.
    pub(crate) fn recorded_tid(&self) -> Option<u32> {
        self.steps.iter().find_map(|step| match step {
            Step::ExecEvent { old_tid, .. } if *old_tid != self.tid => Some(*old_tid),
            _ => None,
        })
    }

    /// Ends the doubt whether the simulated task slept or was runnable since its switch-out,
    /// because an event at `stamp` shows it.
    #[inline]
    pub(crate) fn decide(&mut self, stamp: u64, start: u64, end: u64) {
        if self.doubt && stamp > end && self.switched < end {
            self.undecided = end - self.switched.max(start);
        }
        self.doubt = false;
    }

    /// The times off CPU that the kernel would count for the simulated task.
    pub(crate) fn delays(&self) -> Delays {
        Delays {
            run: Some(self.run_delay),
            ..Delays::default()
        }
    }

    /// Adds the simulated task's time up to `stamp` to its accounts, as far as it lies in the
    /// recorded span.
    #[inline]
    pub(crate) fn settle(&mut self, stamp: u64, start: u64, end: u64) {
        if self.bucket == Bucket::RunQueue {
            self.run_delay += stamp.saturating_sub(self.since);
        }
        let from = self.since.max(start);
        let to = stamp.min(end);
        if to > from {
            self.sums.times[self.bucket as usize] += to - from;
            if self.cause != StateCause::Plain {
                self.sums.causes[self.cause as usize] += to - from;
            }
        }
        self.since = stamp;
    }
}

/// The span of a simulated recording ends at the latest at half of this time in ns.
pub(crate) const OPEN_END: u64 = NEVER;
