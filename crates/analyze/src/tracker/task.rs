//! What the tracker knows of one task.

use std::mem::offset_of;

use tr_format::event::{Comm, CpuId, Exit, Ktime, Tid};

use crate::concurrency::Epoch;
use crate::model::{Causes, KernelFigures, OffCpu, Switches, Times};
use crate::state::{Bucket, State, Wait};
use crate::timeline::{ActorRef, Draft};

/// A task, by its place in the tracker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskIx(pub usize);

/// A task or none, in four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaybeTask(u32);

impl MaybeTask {
    /// No task. So many do not fit into memory.
    pub const NONE: MaybeTask = MaybeTask(u32::MAX);

    /// That one.
    pub fn some(ix: TaskIx) -> MaybeTask {
        u32::try_from(ix.0).map_or(MaybeTask::NONE, MaybeTask)
    }

    /// Which one.
    #[inline]
    pub fn get(self) -> Option<TaskIx> {
        (self != MaybeTask::NONE).then_some(TaskIx(self.0 as usize))
    }
}

/// What is kept of a task's exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exited {
    /// Its raw `wait` status.
    pub status: u32,
    /// Its page faults, minor and major.
    pub faults: (u64, u64),
    /// Bytes that it read from and wrote to storage, where the kernel counts them.
    pub io: Option<(u64, u64)>,
}

impl From<&Exit> for Exited {
    fn from(exit: &Exit) -> Exited {
        Exited {
            status: exit.status,
            faults: (exit.min_flt, exit.maj_flt),
            io: exit.read_bytes.zip(exit.write_bytes),
        }
    }
}

/// What the tracker knows of a task. First what most events change, so that it lies
/// in few cache lines.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Task {
    pub(super) state: State,
    /// It was woken since its last switch-in; of one that is runnable: it may have
    /// been on a CPU when it was woken.
    pub(super) woken: bool,
    /// An event of it has been seen.
    pub(super) seen: bool,
    /// Its process's program lacks a part of its times: see `Tracker::flush`.
    pub(super) owes: bool,
    pub(super) last_cpu: Option<CpuId>,
    /// Actor woke it last, or started it; once preempted, who took the CPU.
    pub(super) by: ActorRef,
    /// Of its state, for the concurrency.
    pub(super) epoch: Epoch,
    pub(super) since: Ktime,
    /// The stamp of its last event, which may lie before the span.
    pub(super) told: Ktime,
    /// The stretch off CPU that it is in: since when.
    pub(super) off_since: Option<Ktime>,
    /// The child that runs in its memory.
    pub(super) vfork_child: MaybeTask,
    /// The next one of its process that owes.
    pub(super) owes_next: MaybeTask,
    /// Where its time went.
    pub times: Times,
    /// Its context switches.
    pub switches: Switches,
    /// Moves between CPUs.
    pub migrations: u64,
    /// Parts of where its time went.
    pub causes: Causes,
    /// Its longest off-CPU stretch; the waker is a task's place.
    pub max_off_cpu: Option<(OffCpu, Option<TaskIx>)>,
    /// Its times up to which they stand in its process's programs.
    pub(super) paid: Times,
    /// Its tid, the last one.
    pub tid: Tid,
    /// Its tid in its own namespace.
    pub ns_tid: Tid,
    /// Its process, by place.
    pub process: usize,
    /// Its last name.
    pub comm: Comm,
    /// When it began; the span's start when it was there before.
    pub start: Ktime,
    /// It was there before the span.
    pub started_before: bool,
    /// Its last switch-out.
    pub end: Option<Ktime>,
    /// Its exit.
    pub exit: Option<Exited>,
    /// When it called exit; its last switch-out comes after.
    pub exited: Option<Ktime>,
    /// The kernel's figures.
    pub kernel: Option<KernelFigures>,
    /// Actor forked it.
    pub parent: Option<TaskIx>,
}

/// A switch looks at one cache line and adds to the next.
const _: () = assert!(offset_of!(Task, times) == 64 && offset_of!(Task, causes) == 128);

impl Task {
    /// Its own events say better what it is doing than a listing, on a CPU or not: unless
    /// it was woken while it was on a CPU already.
    pub(super) fn is_known_better(&self, on_cpu: bool) -> bool {
        let woken = self.woken && matches!(self.state, State::Runnable { .. });
        self.seen && !(woken && on_cpu)
    }

    /// Was in a bucket for so long from then on, which is more than 0 ns; on that
    /// CPU, if it was on one. Whether its program lacks a part of its times now, and
    /// that is not yet noted.
    #[inline]
    pub(super) fn had(
        &mut self,
        ix: TaskIx,
        (from, ns): (Ktime, u64),
        (bucket, on): (Bucket, Option<CpuId>),
        timeline: Option<&mut Draft>,
    ) -> bool {
        if let Some(timeline) = timeline {
            timeline.add(ix.0, from, bucket, on, self.by);
        }
        self.spend(bucket, ns);
        !self.owes
    }

    /// Is on the CPU now; `woken`: since it has been there. Whether it was on another
    /// one before.
    #[inline]
    pub(super) fn arrive(&mut self, cpu: CpuId, woken: bool) -> bool {
        let last = self.last_cpu.replace(cpu);
        self.woken = woken;
        last.is_some_and(|last| last != cpu)
    }

    /// Ends the stretch off CPU that it is in, and keeps it when it is the longest in
    /// a span that began at `start`. `cut` tells of one from a time on whether
    /// something but its beginning may have cut it short.
    #[inline]
    pub(super) fn close_off_cpu(
        &mut self,
        (start, until): (Ktime, Ktime),
        cut: impl FnOnce(Ktime) -> bool,
    ) {
        let Some(since) = self.off_since.take() else {
            return;
        };
        let from = since.max(start);
        let length = until.since(from);
        if !self.is_longest(length) {
            return;
        }
        let stretch = OffCpu {
            length,
            since: from,
            waker: None,
            censored: since < start || self.started_before && !self.seen || cut(from),
        };
        let by = self.woken_by();
        self.max_off_cpu = Some((stretch, by.and_then(ActorRef::place).map(TaskIx)));
    }

    /// A stretch off CPU of that length would be the longest.
    #[inline]
    pub(super) fn is_longest(&self, length: u64) -> bool {
        let longest = self.max_off_cpu.as_ref();
        length > longest.map_or(0, |(longest, _)| longest.length)
    }

    /// Actor has ended its last wait; `None`: nobody, it was preempted.
    pub(super) fn woken_by(&self) -> Option<ActorRef> {
        (self.state != State::Runnable { preempted: true }).then_some(self.by)
    }

    /// Begins to exit; its last switch-out comes later.
    pub(super) fn exits(&mut self, time: Ktime, exit: &Exit) {
        self.exit = Some(Exited::from(exit));
        self.exited = Some(time);
        self.kernel = Some(KernelFigures {
            sum_exec_runtime: exit.sum_exec_runtime,
            is_final: false,
            utime: exit.utime,
            stime: exit.stime,
            nvcsw: exit.nvcsw,
            nivcsw: exit.nivcsw,
        });
    }

    /// Was in a bucket for so long, ns.
    #[inline]
    fn spend(&mut self, bucket: Bucket, ns: u64) {
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
    }

    /// Leaves its CPU, which `taker` has then; the state in which it is then.
    #[inline]
    pub(super) fn leave(
        &mut self,
        cpu: CpuId,
        time: Ktime,
        wait: Option<Wait>,
        preempt: bool,
        taker: ActorRef,
    ) -> State {
        let new = match wait {
            Some(wait) => State::Waiting(wait),
            // Woken before its switch-out was complete: a sleep of no length.
            None => State::Runnable {
                preempted: preempt || !self.woken,
            },
        };
        self.off_since = Some(time);
        self.by = match new {
            State::Runnable { preempted: true } => taker,
            State::Runnable { .. } => self.by,
            _ => ActorRef::UNKNOWN,
        };
        self.last_cpu = Some(cpu);
        self.woken &= wait.is_some();
        new
    }

    /// It was woken at that very time, when it was runnable already.
    pub(super) fn woken_again(&self, time: Ktime) -> bool {
        self.told == time && self.since < time
    }
}
