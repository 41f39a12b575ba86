//! The short way for events that leave no question open: everything around them
//! is known, so most of what [`Tracker::sched`] looks after need not be looked at.
//! What comes out is the same, see the tests of the simulator.
//!
//! Most of a trace goes this way, a branch that cannot be foretold costs as much
//! as twenty that can: so questions are asked in few of them.

use tr_format::event::{CpuId, Ktime, Tid};
use tr_format::sched::flag;

use super::{MaybeTask, Task, TaskIx, Tracker};
use crate::order::{Record, LIFE};
use crate::state::{Bucket, State, Wait};
use crate::timeline::{ActorRef, Draft};

/// What a task does when it is certain to leave its CPU.
struct Leaving {
    cpu: CpuId,
    /// Why it waits; `None`: it does not, it is runnable.
    wait: Option<Wait>,
    preempt: bool,
    /// Actor has the CPU then.
    taker: ActorRef,
}

/// Where the time of a task's state goes that is over.
struct Past<'a> {
    start: Ktime,
    now: Ktime,
    timeline: Option<&'a mut Draft>,
}

impl Tracker {
    /// Whether there is nothing in the trace that makes a simple event doubtful.
    /// Asked again after whatever could change it.
    pub(super) fn look_around(&mut self) {
        self.fast_path = self.begun
            && !self.slow
            && !self.partial
            && self.only.is_none()
            && self.gaps.is_empty();
    }

    /// Takes events as long as they are simple ones; how many. No event that is
    /// still to come may have the time of one of these.
    pub(crate) fn run(&mut self, records: &[Record]) -> usize {
        let inside = |record: &Record| self.inside(Ktime(record.time));
        if !self.fast_path || !records.first().is_some_and(inside) {
            return 0;
        }
        let end = self.end.0;
        let within = match records.last() {
            Some(last) if last.time >= end => records.partition_point(|r| r.time < end),
            _ => records.len(),
        };
        let records = records.get(..within).unwrap_or_default();
        let mut next = records.iter().skip(1);
        let simple = |record: &&Record| {
            // Which of several comes first is to be looked into.
            let tied = next.next().is_some_and(|next| next.time == record.time);
            !tied && self.take_fast(record)
        };
        records.iter().take_while(simple).count()
    }

    /// Takes the event when it is a simple one; else nothing has been done.
    #[inline(always)]
    fn take_fast(&mut self, record: &Record) -> bool {
        match record.flags & (LIFE | flag::WAKING | flag::NEW) {
            0 => self.fast_switch(record),
            flag::WAKING => self.fast_waking(record),
            _ => false,
        }
    }

    /// The task of that tid, if there is one; whether that is certain.
    #[inline(always)]
    fn named(&self, tid: Tid) -> (Option<TaskIx>, bool) {
        let ix = self.by_tid.get(tid);
        (ix, ix.is_some() | (tid == Tid::IDLE) | !self.system_wide)
    }

    #[inline(always)]
    fn fast_switch(&mut self, record: &Record) -> bool {
        let (cpu, time) = (CpuId(record.cpu), Ktime(record.time));
        let (prev, next) = (Tid(record.from), Tid(record.to));
        let (leaving, one_known) = self.named(prev);
        let (entering, other_known) = self.named(next);
        let Some(entry) = self.cpus.get_mut(cpu) else {
            return false;
        };
        // Before its first switch a CPU's idle time is to be looked into.
        let switched = entry.switched | !self.system_wide;
        let certain = one_known & other_known & switched & (leaving == entry.current);
        if !certain || self.states.is_dead(record.state) {
            return false;
        }
        let mut past = Past {
            start: self.start,
            now: time,
            timeline: self.timeline.as_mut(),
        };
        let preempt = record.flags & flag::PREEMPT != 0;
        let runnable = preempt | (record.state == 0);
        let goes = |taker: ActorRef| Leaving {
            cpu,
            wait: match runnable {
                true => None,
                false => {
                    let iowait = record.flags & flag::IOWAIT != 0;
                    Some(self.states.wait(record.state, iowait, false))
                }
            },
            preempt,
            taker,
        };
        let (tasks, concurrency) = (&mut self.tasks, &mut self.concurrency);
        let on = State::On(Some(cpu));
        let (mut owing, mut moved) = ([None, None], false);
        match (leaving, entering) {
            (Some(from), Some(to)) => {
                let Ok([one, other]) = tasks.get_disjoint_mut([from.0, to.0]) else {
                    return false;
                };
                if !(one.may_leave(cpu) && other.may_enter()) {
                    return false;
                }
                let (before, epochs) = (other.state, (one.epoch, other.epoch));
                owing[0] = one.leaves(&mut past, from, goes(ActorRef::task(to.0)));
                (owing[1], moved) = other.enters(&mut past, to, cpu);
                if !concurrency.hand_over(time, epochs.0, epochs.1) {
                    one.epoch = concurrency.change(time, epochs.0, on, one.state);
                    other.epoch = concurrency.change(time, epochs.1, before, on);
                }
            }
            (Some(from), None) => {
                let Some(one) = tasks.get_mut(from.0).filter(|task| task.may_leave(cpu)) else {
                    return false;
                };
                owing[0] = one.leaves(&mut past, from, goes(ActorRef::outside(next)));
                one.epoch = concurrency.change(time, one.epoch, on, one.state);
            }
            (None, Some(to)) => {
                let Some(other) = tasks.get_mut(to.0).filter(|task| task.may_enter()) else {
                    return false;
                };
                let before = other.state;
                (owing[1], moved) = other.enters(&mut past, to, cpu);
                other.epoch = concurrency.change(time, other.epoch, before, on);
            }
            (None, None) => return false,
        }
        entry.counted |= leaving.is_some() | moved;
        if leaving.is_some() {
            entry.figures.switches.involuntary += u64::from(runnable);
            entry.figures.switches.voluntary += u64::from(!runnable);
        }
        if self.system_wide {
            // Actor was idle is not anybody's time, but the CPU's.
            let idle = entry.idle_since.filter(|_| prev == Tid::IDLE);
            let idle = idle.map_or(0, |since| time.since(since.max(self.start)));
            entry.figures.idle += idle;
            entry.idle_since = (next == Tid::IDLE).then_some(time);
        }
        entry.figures.migrations += u64::from(moved);
        (entry.current, entry.last_switch) = (entering, Some(time));
        for ix in owing.into_iter().flatten() {
            self.owe(ix);
        }
        true
    }

    #[inline(always)]
    fn fast_waking(&mut self, record: &Record) -> bool {
        let (cpu, time) = (CpuId(record.cpu), Ktime(record.time));
        let (waker, wakee) = (Tid(record.from), Tid(record.to));
        let (Some(ix), (by, known)) = (self.by_tid.get(wakee), self.named(waker)) else {
            return false;
        };
        let wakes = |ix: TaskIx| {
            let task = self.tasks.get(ix.0);
            task.is_some_and(|t| {
                matches!(t.state, State::On(_)) && t.vfork_child == MaybeTask::NONE
            })
        };
        if !(known && by.is_none_or(wakes)) {
            return false;
        }
        let Some(task) = self.tasks.get_mut(ix.0) else {
            return false;
        };
        let irq = (record.flags & flag::IRQ != 0) | (waker == Tid::IDLE);
        let by = match by {
            _ if irq => ActorRef::INTERRUPT,
            Some(by) => ActorRef::task(by.0),
            None => ActorRef::outside(waker),
        };
        let mut owing = None;
        match task.state {
            State::Waiting(wait) => {
                (task.vfork_child, task.by) = (MaybeTask::NONE, by);
                let new = State::Runnable { preempted: false };
                let before = std::mem::replace(&mut task.state, new);
                task.epoch = self.concurrency.change(time, task.epoch, before, new);
                let mut past = Past {
                    start: self.start,
                    now: time,
                    timeline: self.timeline.as_mut(),
                };
                // The common case apart: the others are a jump that is hard to foretell.
                owing = match wait {
                    Wait::Sleep => task.pass(&mut past, ix, Bucket::Wait(Wait::Sleep)),
                    wait => task.pass(&mut past, ix, Bucket::Wait(wait)),
                };
            }
            State::On(_) => {
                (task.vfork_child, task.by, task.woken) = (MaybeTask::NONE, by, true);
            }
            _ => return false,
        }
        if waker != Tid::IDLE {
            self.cpu_not_idle(cpu);
        }
        if let Some(ix) = owing {
            self.owe(ix);
        }
        true
    }
}

impl Task {
    /// It is on that CPU, and nothing is special about it.
    #[inline(always)]
    fn may_leave(&self, cpu: CpuId) -> bool {
        self.state == State::On(Some(cpu)) && self.vfork_child == MaybeTask::NONE
    }

    #[inline(always)]
    fn may_enter(&self) -> bool {
        matches!(self.state, State::Runnable { .. })
    }

    /// Leaves its CPU; itself, when its program lacks a part of its times now.
    #[inline(always)]
    fn leaves(&mut self, past: &mut Past, ix: TaskIx, how: Leaving) -> Option<TaskIx> {
        let runnable = how.wait.is_none();
        self.switches.involuntary += u64::from(runnable);
        self.switches.voluntary += u64::from(!runnable);
        let owing = self.pass(past, ix, Bucket::OnCpu(Some(how.cpu)));
        self.state = self.leave(how.cpu, past.now, how.wait, how.preempt, how.taker);
        owing
    }

    /// Reaches a CPU; itself, when its program lacks a part of its times now, and
    /// whether it was on another CPU before.
    #[inline(always)]
    fn enters(&mut self, past: &mut Past, ix: TaskIx, cpu: CpuId) -> (Option<TaskIx>, bool) {
        let preempted = self.state == State::Runnable { preempted: true };
        self.close_off_cpu((past.start, past.now), |_| false);
        let owing = self.pass(past, ix, Bucket::RunQueue { preempted });
        self.state = State::On(Some(cpu));
        let moved = self.arrive(cpu, false);
        self.migrations += u64::from(moved);
        (owing, moved)
    }

    /// Gives the time of its state, up to now, to where it belongs.
    #[inline(always)]
    fn pass(&mut self, past: &mut Past, ix: TaskIx, bucket: Bucket) -> Option<TaskIx> {
        (self.told, self.seen) = (past.now, true);
        let from = std::mem::replace(&mut self.since, past.now).max(past.start);
        let ns = past.now.since(from);
        if ns == 0 {
            return None;
        }
        let on = match bucket {
            Bucket::OnCpu(cpu) => cpu,
            _ => None,
        };
        let timeline = past.timeline.as_deref_mut();
        let owing = self.had(ix, (from, ns), (bucket, on), timeline);
        owing.then_some(ix)
    }
}
