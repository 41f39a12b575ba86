//! A task of the tracker: its figures, and the changes of its state. Both the usual path and the fast path use these
//! functions.

use std::mem::offset_of;

use tr_format::event::{Comm, CpuId, Exit, Ktime, Tid, Timeout};

use crate::arena::Ix;
use crate::concurrency::Epoch;
use crate::ids::{ProcIx, TaskIx};
use crate::model::{ByKernel, Causes, KernelFigures, Switches};
use crate::state::{Bucket, State, StateTimes, Wait};
use crate::timeline::{ActorRef, Draft, Why};

impl TaskIx {
    /// The form in which the timeline names this task as the one that woke or preempted another task.
    #[inline]
    pub fn actor(self) -> ActorRef {
        ActorRef::task(self.place())
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exited {
    /// The raw `wait` status of the task, if it is known.
    pub status: Option<u32>,
    /// The numbers of minor and major page faults of the task, if they were recorded.
    pub faults: Option<(u64, u64)>,
    /// The numbers of bytes that the task read from and wrote to storage, if the kernel counts them.
    pub io: Option<(u64, u64)>,
}

/// A divisor: a wait may be shorter than the time-out of its system call by 1/16 of the wait, and still count as ended
/// by the time-out. The wait is shorter, because the system call begins before the wait does. A guess: if the call
/// begins still earlier, the thread has done other work in the call.
const EARLY_END: u64 = 16;

/// A task that events have shown. The fields that most events change come first, so that they are in few cache lines.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Task {
    pub(super) state: State,
    /// Whether the task was woken since its last switch-in. If so, a task that is runnable now may have been on a CPU
    /// when it was woken.
    pub(super) woken: bool,
    /// Whether an event has been seen that shows the state of this task.
    pub(super) seen: bool,
    /// Whether the task has times that have not yet been added to the times of its process's program; see
    /// `Tracker::flush`.
    pub(super) owes: bool,
    /// The code of the [`tr_format::event::Reason`] for the task's last sleep.
    pub(super) reason: u8,
    /// The code of the [`Timeout`] of the task's last sleep.
    pub(super) timeout: u8,
    pub(super) last_cpu: Option<CpuId>,
    /// The task or interrupt that woke or forked this task or, if it was preempted, the task that took its CPU.
    pub(super) actor: ActorRef,
    /// The number of the epoch (the time between two losses of events) in which the task's state was last known. The
    /// count of running tasks includes only tasks whose state is known in the present epoch.
    pub(super) epoch: Epoch,
    /// The time at which the task's present state began.
    pub(super) since: Ktime,
    /// The time of the task's last event, which may be before the analyzed span.
    pub(super) last_event_ts: Ktime,
    /// The time since which the task is off CPU; `None` if it is on a CPU or may have been since.
    pub(super) off_since: Option<Ktime>,
    /// The vfork child that runs in the memory of this task.
    pub(super) vfork_child: Option<TaskIx>,
    /// The next thread in a linked list of those threads of a process whose times still have to be added to the times
    /// of the process's program.
    pub(super) owes_next: Option<TaskIx>,
    pub times: StateTimes,
    pub switches: Switches,
    pub migrations: u64,
    pub causes: Causes,
    /// The longest time that the task was off CPU, in ns.
    pub max_off_cpu: Option<u64>,
    /// The part of the task's times that has already been added to the times of its process's programs.
    pub(super) paid: StateTimes,
    /// The last tid of the task.
    pub tid: Tid,
    /// The tid of the task in its own pid namespace.
    pub ns_tid: Tid,
    pub process: ProcIx,
    pub comm: Comm,
    /// The start of the task, or the start of the analyzed span if the task existed before.
    pub start: Ktime,
    /// Whether the task existed before the start of the analyzed span.
    pub started_before: bool,
    /// The time of the task's last switch-out; `None` while the task lives.
    pub end: Option<Ktime>,
    pub exit: Option<Exited>,
    /// The time at which the task began to exit. The last switch-out comes later.
    pub exited: Option<Ktime>,
    pub kernel: Option<KernelFigures>,
    /// The parts of the task's times that only the kernel's figures show.
    pub by_kernel: ByKernel,
    pub parent: Option<TaskIx>,
    /// The only CPU that the task may run on, if there is one.
    pub(super) pinned: Option<CpuId>,
    /// The part of the task's run-queue time in ns that is only assumed: no waking was seen, so the task may have
    /// slept for some of it.
    pub(super) unwoken: u64,
}

/// A switch reads the first cache line of a task, which has 64 bytes, and adds to the sums in the next one. So the sums
/// have to begin there.
const _: () = assert!(offset_of!(Task, times) == 64 && offset_of!(Task, causes) == 128);

/// A switch-out after which the task lives on.
#[derive(Clone, Copy)]
pub(super) struct SwitchOut {
    pub cpu: CpuId,
    /// The wait that begins with the switch-out; `None` if the task stays runnable.
    pub wait: Option<Wait>,
    pub preempt: bool,
    /// If the task goes to sleep: the code of the [`tr_format::event::Reason`].
    pub reason: u8,
    /// If the task goes to sleep: the code of the system call's [`Timeout`].
    pub timeout: u8,
    /// The task to which the CPU goes at the switch-out.
    pub next: ActorRef,
}

/// A moment at which a task's state changes. The time up to the moment is added to `timeline`.
pub(super) struct Moment<'a> {
    pub start: Ktime,
    pub now: Ktime,
    pub timeline: Option<&'a mut Draft>,
}

impl Task {
    /// Makes a task without a name and a parent, outside of containers.
    pub(super) fn new(tid: Tid, process: ProcIx, start: Ktime, state: State) -> Task {
        Task {
            tid,
            ns_tid: tid,
            process,
            comm: Comm::default(),
            start,
            started_before: false,
            end: None,
            times: StateTimes::default(),
            causes: Causes::default(),
            switches: Switches::default(),
            max_off_cpu: None,
            migrations: 0,
            exit: None,
            exited: None,
            kernel: None,
            by_kernel: ByKernel::default(),
            state,
            epoch: 0,
            since: start,
            last_event_ts: start,
            woken: false,
            off_since: Some(start),
            actor: ActorRef::UNKNOWN,
            last_cpu: None,
            vfork_child: None,
            owes_next: None,
            parent: None,
            pinned: None,
            unwoken: 0,
            seen: false,
            owes: false,
            reason: 0,
            timeout: 0,
            paid: StateTimes::default(),
        }
    }

    // ---- Transitions ----

    /// Updates the task at its switch-out, except its state. Returns the new state (runnable or waiting), which the
    /// caller sets. [`Task::close`] or [`super::Tracker::enter`] adds the time on the CPU to the task's sum.
    #[inline]
    pub(super) fn switch_out(&mut self, now: Ktime, how: SwitchOut) -> State {
        let new = match how.wait {
            Some(wait) => State::Waiting(wait),
            // A task that was woken before its switch-out was complete did not sleep, and was not preempted either.
            None => State::Runnable {
                preempted: how.preempt || !self.woken,
            },
        };
        self.off_since = Some(now);
        self.actor = match new {
            State::Runnable { preempted: true } => how.next,
            State::Runnable { .. } => self.actor,
            _ => ActorRef::UNKNOWN,
        };
        self.last_cpu = Some(how.cpu);
        self.reason = how.reason;
        self.timeout = how.timeout;
        self.woken &= how.wait.is_some();
        new
    }

    /// Updates the task at its switch-in, except its state, which the caller sets. `woken` is whether the task was
    /// woken while it was already on the CPU. Returns whether the task was on another CPU before.
    #[inline]
    pub(super) fn switch_in(&mut self, cpu: CpuId, woken: bool) -> bool {
        let last = self.last_cpu.replace(cpu);
        self.woken = woken;
        last.is_some_and(|last| last != cpu)
    }

    /// Updates the task at its waking, except its state, which the caller sets. A task can also be woken while it is on
    /// a CPU: it was about to sleep, or the waking has no effect. Its switch-out will show which of the two is true.
    #[inline]
    pub(super) fn wake(&mut self, actor: ActorRef, time: Ktime) {
        self.vfork_child = None;
        self.actor = self.ended_by(actor, time);
        if matches!(self.state, State::On(_)) {
            self.woken = true;
            self.last_event_ts = time;
        }
    }

    /// The task or interrupt that ends a wait of this task. For an interrupt, the result also states whether the
    /// time-out of the waiting system call had passed.
    #[inline]
    fn ended_by(&self, actor: ActorRef, time: Ktime) -> ActorRef {
        let timeout = Timeout::of(self.timeout);
        let interrupt = actor == ActorRef::INTERRUPT;
        if timeout == Timeout::UNKNOWN
            || !matches!(self.state, State::Waiting(_))
            || !(interrupt || actor == ActorRef::SOFTIRQ)
        {
            return actor;
        }
        let waited = time.since(self.since);
        let reached = |least| least <= waited.saturating_add(waited / EARLY_END);
        match (interrupt, timeout.least()) {
            (true, Some(least)) if reached(least) && timeout.is_asked() => ActorRef::ASKED_TIMEOUT,
            (true, Some(least)) if reached(least) => ActorRef::TIMEOUT,
            (true, Some(_)) => ActorRef::DEVICE,
            (true, None) if timeout.limit() == Timeout::NONE => ActorRef::DEVICE,
            // The kernel counts the time-out of a socket in ticks, and wakes the task in a softirq when the time-out
            // has passed. So this softirq may be the time-out.
            (false, None) if timeout == Timeout::SOME => ActorRef::INTERRUPT,
            _ => actor,
        }
    }

    /// Notes that the task begins to exit. Its last switch-out comes later.
    pub(super) fn exit(&mut self, time: Ktime, exit: &Exit) {
        self.exit = Some(Exited {
            status: Some(exit.status),
            faults: Some((exit.min_flt, exit.maj_flt)),
            io: exit.read_bytes.zip(exit.write_bytes),
        });
        self.exited = Some(time);
        self.kernel = Some(KernelFigures {
            sum_exec_runtime: exit.sum_exec_runtime,
            is_final: false,
            nvcsw: exit.nvcsw,
            nivcsw: exit.nivcsw,
            run_delay: exit.delays.run,
        });
    }

    // ---- Time ----

    /// Adds the time since the task's last change of state to the task's sum for this kind of time. The caller sets
    /// the new state. Returns `true` if the caller must also put the task on the list of tasks whose times are not yet
    /// added to the times of their process's program.
    #[inline(always)]
    pub(super) fn close(&mut self, ix: TaskIx, moment: &mut Moment, bucket: Bucket) -> bool {
        (self.last_event_ts, self.seen) = (moment.now, true);
        let from = std::mem::replace(&mut self.since, moment.now).max(moment.start);
        let ns = moment.now.since(from);
        let on = match bucket {
            Bucket::OnCpu(cpu) => cpu,
            _ => None,
        };
        let timeline = moment.timeline.as_deref_mut();
        ns > 0 && self.spend(ix, (from, ns), (bucket, on), timeline)
    }

    /// Adds `ns` nanoseconds of this kind, which begin at `from`, to the task's sums and to the timeline. `ns` must not
    /// be 0, and `on` is the CPU if the task was on one. Returns `true` if the caller must put the task on the list of
    /// tasks whose times are not yet added to the times of their process's program.
    // When the function is inlined, `bucket` is mostly a constant, so the compiler removes the `match` below.
    #[inline(always)]
    pub(super) fn spend(
        &mut self,
        ix: TaskIx,
        (from, ns): (Ktime, u64),
        (bucket, on): (Bucket, Option<CpuId>),
        timeline: Option<&mut Draft>,
    ) -> bool {
        if let Some(timeline) = timeline {
            let why = Why {
                actor: self.actor,
                reason: self.reason,
                timeout: Timeout::of(self.timeout).limit().number(),
            };
            timeline.add(ix.place(), from, bucket, on, why);
        }
        let (times, causes) = (&mut self.times, &mut self.causes);
        match bucket {
            Bucket::OnCpu(_) => times.on_cpu += ns,
            Bucket::Unknown | Bucket::Wait(Wait::Unknown) => times.unknown += ns,
            Bucket::RunQueue { preempted } => {
                times.run_queue += ns;
                causes.preempted += if preempted { ns } else { 0 };
            }
            Bucket::Wait(Wait::Sleep) => times.sleep += ns,
            Bucket::Wait(Wait::Stopped) => {
                times.sleep += ns;
                causes.stopped += ns;
            }
            Bucket::Wait(Wait::Io) => {
                times.blocked += ns;
                causes.io += ns;
            }
            Bucket::Wait(Wait::Vfork) => {
                times.blocked += ns;
                causes.vfork += ns;
            }
            Bucket::Wait(Wait::Blocked) => times.blocked += ns,
        }
        !self.owes
    }

    /// Ends the task's present time off CPU at `until`, and updates the longest time off CPU. Only time after
    /// `start`, the start of the analyzed span, counts.
    #[inline]
    pub(super) fn close_off_cpu(&mut self, start: Ktime, until: Ktime) {
        if let Some(since) = self.off_since.take() {
            let length = Some(until.since(since.max(start))).filter(|ns| *ns > 0);
            self.max_off_cpu = self.max_off_cpu.max(length);
        }
    }

    // ---- Questions ----

    /// Whether the task's own events show more reliably than a snapshot whether the task is on a CPU. There are two
    /// exceptions: no event has shown the task's state yet, or the task was woken after its last switch-in and counts
    /// as runnable, but the snapshot shows the task on a CPU (`on_cpu`). In the second case the task may have been on
    /// that CPU when it was woken.
    pub(super) fn is_known_better(&self, on_cpu: bool) -> bool {
        let woken = self.woken && matches!(self.state, State::Runnable { .. });
        self.seen && !(woken && on_cpu)
    }

    /// Whether the task was woken at the time `time` when it was already runnable.
    pub(super) fn woken_again(&self, time: Ktime) -> bool {
        self.last_event_ts == time && self.since < time
    }

    /// Whether the task is on this CPU, or is on a CPU and it is not known on which.
    pub(super) fn is_on(&self, cpu: CpuId) -> bool {
        matches!(self.state, State::On(on) if on.is_none_or(|on| on == cpu))
    }

    pub(super) fn is_dead(&self) -> bool {
        self.state == State::Dead
    }
}
