//! The short way for events that leave no question open: everything around them
//! is known, so most of what [`Book::sched`] looks after need not be looked at.
//! What comes out is the same, see the tests of the simulator.

use tr_format::event::{CpuId, Ktime, SchedEvent, SchedKind, Tid};

use super::{Book, Task, TaskIx};
use crate::model::Switches;
use crate::tasks::{Ended, State};
use crate::timeline::By;

/// A task that a switch or a waking names.
enum Named {
    /// There is none: the idle task, or one that is not recorded.
    Nobody,
    /// In the book.
    Task(TaskIx),
    /// It has to be looked into.
    Unclear,
}

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

    fn named(&self, tid: Tid) -> Named {
        match self.by_tid.get(tid) {
            _ if tid == Tid::IDLE => Named::Nobody,
            Some(ix) => Named::Task(ix),
            None if self.everybody => Named::Unclear,
            None => Named::Nobody,
        }
    }

    /// Takes the event when it is a simple one; else nothing has been done.
    #[inline]
    pub(super) fn take_plain(&mut self, cpu: CpuId, event: &SchedEvent) -> bool {
        let time = event.time;
        if !self.plain || !self.inside(time) {
            return false;
        }
        match event.kind {
            SchedKind::Switch {
                prev,
                next,
                prev_state,
                preempt,
                iowait,
            } => self.plain_switch(cpu, time, (prev, next), (prev_state, preempt, iowait)),
            SchedKind::Waking { new: true, .. } => false,
            SchedKind::Waking {
                waker, wakee, irq, ..
            } => self.plain_waking(cpu, time, (waker, wakee), irq),
        }
    }

    #[inline]
    fn plain_switch(
        &mut self,
        cpu: CpuId,
        time: Ktime,
        (prev, next): (Tid, Tid),
        (state, preempt, iowait): (u16, bool, bool),
    ) -> bool {
        let on = State::On(Some(cpu));
        let running = self.current.get(cpu);
        let leaving = match self.named(prev) {
            Named::Unclear => return false,
            Named::Task(ix) => {
                let fits = |task: &Task| task.state == on && task.vfork_child.is_none();
                if running != Some(ix) || !self.tasks.get(ix.0).is_some_and(fits) {
                    return false;
                }
                Some(ix)
            }
            Named::Nobody if running.is_some() => return false,
            Named::Nobody => None,
        };
        let entering = match self.named(next) {
            Named::Unclear => return false,
            Named::Task(ix) => {
                let fits = |task: &Task| {
                    matches!(task.state, State::Runnable { .. }) && !task.woken_again(time)
                };
                if !self.tasks.get(ix.0).is_some_and(fits) {
                    return false;
                }
                Some(ix)
            }
            Named::Nobody => None,
        };
        if self.states.is_dead(state) || leaving.or(entering).is_none() {
            return false;
        }

        self.cpu_switched(cpu, time, prev, next);
        if let Some(ix) = leaving {
            let involuntary = u64::from(preempt || state == 0);
            let switches = Switches {
                voluntary: 1 - involuntary,
                involuntary,
            };
            self.cpu_left(cpu, time, switches);
            let taker = entering.map_or_else(|| By::outside(next), |ix| By::task(ix.0));
            let wait = |book: &Book| book.states.wait(state, iowait, false);
            let wait = (!preempt && state != 0).then(|| wait(self));
            self.pass(ix, time);
            let Some(task) = self.tasks.get_mut(ix.0) else {
                return true;
            };
            task.switches.add(&switches);
            let new = task.leave(cpu, time, wait, preempt, taker);
            task.epoch = self.concurrency.change(time, task.epoch, on, new);
            task.state = new;
            self.current.remove(cpu);
        }
        if let Some(ix) = entering {
            self.close_off_cpu(ix, time, false);
            self.pass(ix, time);
            let Some(task) = self.tasks.get_mut(ix.0) else {
                return true;
            };
            let before = std::mem::replace(&mut task.state, on);
            task.epoch = self.concurrency.change(time, task.epoch, before, on);
            self.arrive(ix, cpu, time, false);
        }
        self.last_switch.insert(cpu, time);
        true
    }

    #[inline]
    fn plain_waking(
        &mut self,
        cpu: CpuId,
        time: Ktime,
        (waker, wakee): (Tid, Tid),
        irq: bool,
    ) -> bool {
        let Named::Task(ix) = self.named(wakee) else {
            return false;
        };
        let fits = |task: &Task| {
            let known = matches!(task.state, State::On(_) | State::Waiting(_));
            known && task.doubt.is_none()
        };
        if !self.tasks.get(ix.0).is_some_and(fits) {
            return false;
        }
        let by = match self.named(waker) {
            Named::Unclear => return false,
            Named::Task(by) => {
                let fits =
                    |task: &Task| matches!(task.state, State::On(_)) && task.vfork_child.is_none();
                if !self.tasks.get(by.0).is_some_and(fits) {
                    return false;
                }
                By::task(by.0)
            }
            Named::Nobody => By::outside(waker),
        };
        if waker != Tid::IDLE {
            self.cpu_not_idle(cpu);
        }
        let by = match irq || waker == Tid::IDLE {
            true => By::INTERRUPT,
            false => by,
        };
        let Some(task) = self.tasks.get_mut(ix.0) else {
            return true;
        };
        (task.vfork_child, task.by) = (None, by);
        if matches!(task.state, State::Waiting(_)) {
            self.pass(ix, time);
            if let Some(task) = self.tasks.get_mut(ix.0) {
                let new = State::Runnable { preempted: false };
                let before = std::mem::replace(&mut task.state, new);
                task.epoch = self.concurrency.change(time, task.epoch, before, new);
            }
        } else {
            task.woken = true;
        }
        true
    }

    /// Gives the time of a task's state, up to now, to where it belongs.
    #[inline]
    fn pass(&mut self, ix: TaskIx, now: Ktime) {
        let Some(task) = self.tasks.get_mut(ix.0) else {
            return;
        };
        (task.told, task.seen) = (now, true);
        let now = now.max(task.since);
        let from = std::mem::replace(&mut task.since, now);
        // Only a waking ends a wait here.
        let bucket = task.state.bucket(Ended::Woken);
        self.account(ix, from, now, bucket);
    }
}
