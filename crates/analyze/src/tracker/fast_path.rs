//! The fast path of the tracker handles events about which nothing is doubtful, because no events around them are
//! missing. So it leaves out most checks of [`Tracker::switch`] and [`Tracker::waking`]. The fast path changes the
//! states by the same functions of [`Task`] as these two functions do, so the result is the same.
//!
//! Most events take this path. A branch that is mispredicted costs as much as twenty that are not, so the path has few
//! branches.

use tr_format::event::{CpuId, Ktime, Tid};
use tr_format::sched::flag;

use super::task::{Moment, SwitchOut};
use super::{Task, TaskIx, Tracker};
use crate::order::{Record, LIFE};
use crate::state::{Bucket, State, States, Wait};
use crate::timeline::ActorRef;

/// Whether a switch record leaves the task that loses the CPU runnable.
#[inline(always)]
fn runnable(record: &Record) -> bool {
    (record.flags & flag::PREEMPT != 0) | (record.state == 0)
}

#[inline(always)]
fn switch_out(record: &Record, states: &States, next: ActorRef) -> SwitchOut {
    let iowait = record.flags & flag::IOWAIT != 0;
    SwitchOut {
        cpu: CpuId(record.cpu),
        wait: (!runnable(record)).then(|| states.wait(record.state, iowait, false)),
        preempt: record.flags & flag::PREEMPT != 0,
        reason: record.reason,
        timeout: record.timeout,
        next,
    }
}

impl Tracker {
    /// Turns the fast path on if nothing in the trace makes events doubtful, and off otherwise. This function has to be
    /// called after every change that can make events doubtful, such as the beginning of a gap.
    pub(super) fn allow_fast_path(&mut self) {
        self.fast_path = self.begun && !self.slow && self.only.is_none() && self.gaps.is_empty();
    }

    /// Processes events from the beginning of `records` up to the first event that the fast path cannot handle, and
    /// returns the number of processed events. The caller must make sure that no event outside of `records` has the
    /// same time as a record.
    pub(crate) fn take_simple(&mut self, records: &[Record]) -> usize {
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
            // If two events have the same time, the general code has to decide which of them comes first.
            let tied = next.next().is_some_and(|next| next.time == record.time);
            !tied
                && match record.flags & (LIFE | flag::WAKING | flag::NEW) {
                    0 => self.fast_switch(record),
                    flag::WAKING => self.fast_waking(record),
                    _ => false,
                }
        };
        records.iter().take_while(simple).count()
    }

    /// The task that has a tid, if there is one, and whether the answer is certain.
    #[inline(always)]
    fn named(&self, tid: Tid) -> (Option<TaskIx>, bool) {
        let ix = self.by_tid.get(tid.0);
        (ix, ix.is_some() | (tid == Tid::IDLE) | !self.system_wide)
    }

    /// Processes a switch on the fast path if nothing about it is doubtful; otherwise changes nothing. Returns
    /// whether the switch was processed.
    #[inline(always)]
    fn fast_switch(&mut self, record: &Record) -> bool {
        let (cpu, time) = (CpuId(record.cpu), Ktime(record.time));
        let (prev, next) = (Tid(record.from), Tid(record.to));
        let (leaving, one_known) = self.named(prev);
        let (entering, other_known) = self.named(next);
        let Some(entry) = self.cpus.get_mut(cpu) else {
            return false;
        };
        // In a recording of the whole machine, the general code handles the first switch of a CPU, because of the idle
        // time before it.
        let switched = entry.switched | !self.system_wide;
        let certain = one_known & other_known & switched & (leaving == entry.current);
        if !certain || self.states.is_dead(record.state) || self.clock_check.is_waiting() {
            return false;
        }
        let mut moment = Moment {
            start: self.start,
            now: time,
            timeline: self.timeline.as_mut(),
        };
        let states = &self.states;
        let out = |next: ActorRef| switch_out(record, states, next);
        let (tasks, concurrency) = (&mut self.tasks, &mut self.concurrency);
        let on = State::On(Some(cpu));
        let (mut owing, mut moved) = ([None, None], false);
        match (leaving, entering) {
            (Some(from), Some(to)) => {
                let Some([one, other]) = tasks.pair_mut(from, to) else {
                    return false;
                };
                if !(one.may_leave(cpu) && other.may_enter()) {
                    return false;
                }
                let (before, epochs) = (other.state, (one.epoch, other.epoch));
                owing[0] = one.leave(&mut moment, from, out(to.actor()));
                (owing[1], moved) = other.enter(&mut moment, to, cpu);
                if !concurrency.hand_over(time, epochs.0, epochs.1) {
                    one.epoch = concurrency.change(time, epochs.0, on, one.state);
                    other.epoch = concurrency.change(time, epochs.1, before, on);
                }
            }
            (Some(from), None) => {
                let one = &mut tasks[from];
                if !one.may_leave(cpu) {
                    return false;
                }
                owing[0] = one.leave(&mut moment, from, out(ActorRef::outside(next)));
                if next != Tid::IDLE {
                    self.clock_check.unborn(next, cpu, time);
                }
                one.epoch = concurrency.change(time, one.epoch, on, one.state);
            }
            (None, Some(to)) => {
                let other = &mut tasks[to];
                if !other.may_enter() {
                    return false;
                }
                let before = other.state;
                (owing[1], moved) = other.enter(&mut moment, to, cpu);
                other.epoch = concurrency.change(time, other.epoch, before, on);
                if moment.timeline.is_some() {
                    let since = entry.last_switch.unwrap_or(self.start).max(self.start);
                    self.collectors.outside.leaves(cpu, since, time, prev);
                }
            }
            (None, None) => return false,
        }
        entry.count(leaving.is_some(), runnable(record), moved);
        if self.system_wide {
            entry.count_idle(self.start, time, prev, next);
        }
        (entry.current, entry.last_switch) = (entering, Some(time));
        entry.next = next;
        for ix in owing.into_iter().flatten() {
            self.owe(ix);
        }
        true
    }

    /// Processes a waking on the fast path if nothing about it is doubtful; otherwise changes nothing. Returns
    /// whether the waking was processed.
    #[inline(always)]
    fn fast_waking(&mut self, record: &Record) -> bool {
        let (cpu, time) = (CpuId(record.cpu), Ktime(record.time));
        let (waker, wakee) = (Tid(record.from), Tid(record.to));
        let (Some(ix), (by, known)) = (self.by_tid.get(wakee.0), self.named(waker)) else {
            return false;
        };
        let wakes = |ix: TaskIx| {
            let task = &self.tasks[ix];
            matches!(task.state, State::On(_)) && task.vfork_child.is_none()
        };
        if !(known && by.is_none_or(wakes)) {
            return false;
        }
        let irq = (record.flags & flag::IRQ != 0) | (waker == Tid::IDLE);
        let softirq = irq & (record.flags & flag::SOFTIRQ != 0);
        if softirq && self.last_closed.has_just_closed(waker, time) {
            return false;
        }
        let actor = match by {
            _ if softirq => ActorRef::SOFTIRQ,
            _ if irq => ActorRef::INTERRUPT,
            Some(by) => by.actor(),
            None => ActorRef::outside(waker),
        };
        let task = &mut self.tasks[ix];
        let before = task.state;
        match before {
            State::Waiting(wait) => {
                task.wake(actor, time);
                task.state = State::Runnable { preempted: false };
                task.epoch = self
                    .concurrency
                    .change(time, task.epoch, before, task.state);
                let mut moment = Moment {
                    start: self.start,
                    now: time,
                    timeline: self.timeline.as_mut(),
                };
                // The most common wait has a separate call with a constant, so that `close` needs no jump that is hard
                // to predict. The other waits need this jump.
                let owes = match wait {
                    Wait::Sleep => task.close(ix, &mut moment, Bucket::Wait(Wait::Sleep)),
                    wait => task.close(ix, &mut moment, Bucket::Wait(wait)),
                };
                if owes {
                    self.owe(ix);
                }
            }
            State::On(_) => task.wake(actor, time),
            _ => return false,
        }
        if waker != Tid::IDLE {
            self.cpu_not_idle(cpu);
        }
        true
    }
}

impl Task {
    /// Whether the task is on this CPU and has no vfork child that runs in its memory.
    #[inline(always)]
    fn may_leave(&self, cpu: CpuId) -> bool {
        self.state == State::On(Some(cpu)) && self.vfork_child.is_none()
    }

    #[inline(always)]
    fn may_enter(&self) -> bool {
        matches!(self.state, State::Runnable { .. })
    }

    /// Changes the state of the task at a switch-out on the fast path. Returns the task if `Tracker::owe` has to be
    /// called for it.
    #[inline(always)]
    fn leave(&mut self, moment: &mut Moment, ix: TaskIx, how: SwitchOut) -> Option<TaskIx> {
        let runnable = how.wait.is_none();
        self.switches.involuntary += u64::from(runnable);
        self.switches.voluntary += u64::from(!runnable);
        let owes = self.close(ix, moment, Bucket::OnCpu(Some(how.cpu)));
        self.state = self.switch_out(moment.now, how);
        owes.then_some(ix)
    }

    /// Changes the state of the task at a switch-in on the fast path. Returns the task if `Tracker::owe` has to be
    /// called for it, and whether the task was on another CPU before.
    #[inline(always)]
    fn enter(&mut self, moment: &mut Moment, ix: TaskIx, cpu: CpuId) -> (Option<TaskIx>, bool) {
        let preempted = self.state == State::Runnable { preempted: true };
        self.close_off_cpu(moment.start, moment.now);
        let owes = self.close(ix, moment, Bucket::RunQueue { preempted });
        self.state = State::On(Some(cpu));
        let moved = self.switch_in(cpu, false);
        self.migrations += u64::from(moved);
        (owes.then_some(ix), moved)
    }
}
