//! The short way for events that leave no question open: everything around them
//! is known, so most of what [`Book::sched`] looks after need not be looked at.
//! What comes out is the same, see the tests of the simulator.
//!
//! Most of a trace goes this way, a branch that cannot be foretold costs as much
//! as twenty that can: so questions are asked in few of them.

use tr_format::event::{CpuId, Ktime, Tid};
use tr_format::sched::flag;

use super::{Book, Task, TaskIx};
use crate::model::Switches;
use crate::order::{Record, LIFE};
use crate::tasks::{Bucket, State, Wait};
use crate::timeline::By;

impl Book {
    /// Whether there is nothing in the trace that makes a simple event doubtful.
    /// Asked again after whatever could change it.
    pub(super) fn look_around(&mut self) {
        self.plain = self.begun
            && !self.careful
            && !self.partial
            && self.uncertainty == 0
            && self.only.is_none()
            && self.gaps.is_empty();
    }

    /// Takes events as long as they are simple ones; how many.
    pub(crate) fn run(&mut self, records: &[Record]) -> usize {
        if !self.plain {
            return 0;
        }
        let mut next = records.iter().skip(1);
        let simple = |record: &&Record| {
            // Which of several comes first is to be looked into.
            let tied = next.next().is_some_and(|next| next.time == record.time);
            !tied && self.inside(Ktime(record.time)) && self.take_plain(record)
        };
        records.iter().take_while(simple).count()
    }

    /// Takes the event when it is a simple one; else nothing has been done.
    #[inline(always)]
    fn take_plain(&mut self, record: &Record) -> bool {
        match record.flags & (LIFE | flag::WAKING | flag::NEW) {
            0 => self.plain_switch(record),
            flag::WAKING => self.plain_waking(record),
            _ => false,
        }
    }

    /// The task of that tid, if there is one; whether that is certain.
    #[inline(always)]
    fn named(&self, tid: Tid) -> (Option<TaskIx>, bool) {
        let ix = self.by_tid.get(tid);
        (ix, ix.is_some() || tid == Tid::IDLE || !self.everybody)
    }

    #[inline(always)]
    fn plain_switch(&mut self, record: &Record) -> bool {
        let (cpu, time) = (CpuId(record.cpu), Ktime(record.time));
        let (prev, next) = (Tid(record.from), Tid(record.to));
        let on = State::On(Some(cpu));
        let (leaving, one_known) = self.named(prev);
        let (entering, other_known) = self.named(next);
        let certain = one_known & other_known
            && leaving == self.current.get(cpu)
            && leaving.or(entering).is_some()
            && !self.states.is_dead(record.state);
        let leaves = |ix: TaskIx| {
            let task = self.tasks.get(ix.0);
            task.is_some_and(|t| t.state == on && t.vfork_child.is_none() && t.since <= time)
        };
        let enters = |ix: TaskIx| {
            let task = self.tasks.get(ix.0);
            task.is_some_and(|task| {
                let runnable = matches!(task.state, State::Runnable { .. });
                runnable && task.since <= time && !task.woken_again(time)
            })
        };
        if !(certain && leaving.is_none_or(leaves) && entering.is_none_or(enters)) {
            return false;
        }

        self.cpu_switched(cpu, time, prev, next);
        self.last_switch.insert(cpu, time);
        let mut epochs = (None, None);
        if let Some(ix) = leaving {
            let preempt = record.flags & flag::PREEMPT != 0;
            let runnable = preempt | (record.state == 0);
            let switches = Switches {
                voluntary: u64::from(!runnable),
                involuntary: u64::from(runnable),
            };
            self.cpu_left(cpu, time, switches);
            let taker = entering.map_or_else(|| By::outside(next), |ix| By::task(ix.0));
            let iowait = record.flags & flag::IOWAIT != 0;
            let wait = (!runnable).then(|| self.states.wait(record.state, iowait, false));
            self.pass(ix, time, Bucket::OnCpu(Some(cpu)));
            if let Some(task) = self.tasks.get_mut(ix.0) {
                task.switches.add(&switches);
                task.state = task.leave(cpu, time, wait, preempt, taker);
                epochs.0 = Some((task.epoch, task.state));
            }
            self.current.remove(cpu);
        }
        if let Some(ix) = entering {
            let preempted = State::Runnable { preempted: true };
            let task = self.tasks.get(ix.0);
            let before = task.map_or(preempted, |task| task.state);
            if task.is_some_and(|task| task.is_off_longest(self.start, time)) {
                self.close_off_cpu(ix, time, false);
            }
            let preempted = before == preempted;
            self.pass(ix, time, Bucket::RunQueue { preempted });
            if let Some(task) = self.tasks.get_mut(ix.0) {
                (task.off_since, task.state) = (None, on);
                epochs.1 = Some((task.epoch, before));
            }
            self.arrive(ix, cpu, time, false);
        }
        match epochs {
            (Some((one, _)), Some((other, _))) if self.concurrency.hand_over(time, one, other) => {}
            (one, other) => {
                let one = one
                    .zip(leaving)
                    .map(|((epoch, to), ix)| (ix, epoch, on, to));
                let other = other.zip(entering);
                let other = other.map(|((epoch, from), ix)| (ix, epoch, from, on));
                for (ix, epoch, from, to) in [one, other].into_iter().flatten() {
                    let epoch = self.concurrency.change(time, epoch, from, to);
                    if let Some(task) = self.tasks.get_mut(ix.0) {
                        task.epoch = epoch;
                    }
                }
            }
        }
        true
    }

    #[inline(always)]
    fn plain_waking(&mut self, record: &Record) -> bool {
        let (cpu, time) = (CpuId(record.cpu), Ktime(record.time));
        let (waker, wakee) = (Tid(record.from), Tid(record.to));
        let (Some(ix), (by, known)) = (self.by_tid.get(wakee), self.named(waker)) else {
            return false;
        };
        let fits = |task: &Task| {
            let known = matches!(task.state, State::On(_) | State::Waiting(_));
            known && task.doubt.is_none() && task.since <= time
        };
        let wakes = |ix: TaskIx| {
            let task = self.tasks.get(ix.0);
            task.is_some_and(|t| matches!(t.state, State::On(_)) && t.vfork_child.is_none())
        };
        if !(known && self.tasks.get(ix.0).is_some_and(fits) && by.is_none_or(wakes)) {
            return false;
        }
        if waker != Tid::IDLE {
            self.cpu_not_idle(cpu);
        }
        let by = match record.flags & flag::IRQ != 0 || waker == Tid::IDLE {
            true => By::INTERRUPT,
            false => by.map_or_else(|| By::outside(waker), |by| By::task(by.0)),
        };
        let Some(task) = self.tasks.get_mut(ix.0) else {
            return true;
        };
        (task.vfork_child, task.by) = (None, by);
        let State::Waiting(wait) = task.state else {
            task.woken = true;
            return true;
        };
        let new = State::Runnable { preempted: false };
        let before = std::mem::replace(&mut task.state, new);
        task.epoch = self.concurrency.change(time, task.epoch, before, new);
        match wait {
            Wait::Sleep => self.pass(ix, time, Bucket::Wait(Wait::Sleep)),
            _ => self.pass(ix, time, Bucket::Wait(wait)),
        }
        true
    }

    /// Gives the time of a task's state, up to now, to where it belongs.
    #[inline(always)]
    fn pass(&mut self, ix: TaskIx, now: Ktime, bucket: Bucket) {
        let Some(task) = self.tasks.get_mut(ix.0) else {
            return;
        };
        (task.told, task.seen) = (now, true);
        let from = std::mem::replace(&mut task.since, now).max(self.start);
        let ns = now.since(from);
        if ns == 0 {
            return;
        }
        if let Some(timeline) = &mut self.timeline {
            let on = match bucket {
                Bucket::OnCpu(cpu) => cpu,
                _ => None,
            };
            timeline.add(ix.0, from, bucket, on, task.by);
        }
        task.spend(bucket, ns);
        if !task.owes {
            self.owe(ix);
        }
    }
}

impl Task {
    /// The stretch off CPU that ends now, in a span that began at `start`, is its
    /// longest one so far.
    #[inline(always)]
    fn is_off_longest(&self, start: Ktime, now: Ktime) -> bool {
        let length = self
            .off_since
            .map_or(0, |since| now.since(since.max(start)));
        length
            > self
                .max_off_cpu
                .as_ref()
                .map_or(0, |(longest, _)| longest.length)
    }
}
