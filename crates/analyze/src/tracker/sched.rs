//! Scheduling events: who runs, who waits, who woke whom.

use tr_format::event::{Argv, CpuId, Ktime, SchedEvent, SchedKind, Tgid, Tid};

use super::{MaybeTask, ProcessEntry, TaskIx, Tracker, UNSEEN, UNSEEN_OUT};
use crate::model::Switches;
use crate::state::{Bucket, Ended, State};
use crate::timeline::ActorRef;

impl Tracker {
    /// Takes a scheduling event.
    pub fn sched(&mut self, cpu: CpuId, event: &SchedEvent) {
        self.pass_gaps(event.time);
        self.begin(event.time);
        match event.kind {
            SchedKind::Switch {
                prev,
                next,
                prev_state,
                preempt,
                iowait,
            } => {
                self.concerns(event.time, prev, next);
                let cpus = &self.cpus;
                let last = |cpu| cpus.get(cpu).and_then(|entry| entry.last_switch);
                self.clock_check.switch_out(cpu, prev, event.time, last);
                if next != Tid::IDLE && self.task(next).is_none() {
                    self.clock_check.unborn(next, cpu, event.time);
                }
                // Actor leaves is to be told who comes.
                if self.open() && next != Tid::IDLE && self.task(next).is_none() {
                    self.appear(next, Tgid(next.0), event.time);
                }
                self.cpu_switched(cpu, event.time, prev, next);
                self.switch_out(cpu, event.time, prev, prev_state, preempt, iowait, next);
                self.switch_in(cpu, event.time, next);
                self.has_switched(cpu, event.time);
            }
            SchedKind::Waking {
                waker,
                wakee,
                irq,
                new,
                vfork,
            } => {
                self.concerns(event.time, waker, wakee);
                self.runs(waker, cpu, event.time);
                self.waking(event.time, waker, wakee, irq, new, new && vfork);
            }
        }
    }

    /// Only what concerns a recorded task is recorded: one that is there, or
    /// whose fork was lost.
    fn concerns(&mut self, time: Ktime, one: Tid, other: Tid) {
        let concerned = |tid| {
            let task = self.task(tid).and_then(|ix| self.tasks.get(ix.0));
            let task = task.filter(|_| tid != Tid::IDLE);
            task.is_some_and(|task| self.keeps(task, tid))
        };
        if !self.open()
            && self.gaps.lives_before(time).is_none()
            && !concerned(one)
            && !concerned(other)
        {
            self.anomaly("an event of tasks that are not there");
        }
    }

    /// Whether the task is on that CPU, as far as is known.
    fn is_on(&self, ix: TaskIx, cpu: CpuId) -> bool {
        matches!(self.state(ix), State::On(on) if on.is_none_or(|on| on == cpu))
    }

    /// Actor is known to be on that CPU.
    fn running(&self, cpu: CpuId) -> Option<TaskIx> {
        self.current(cpu).filter(|ix| self.is_on(*ix, cpu))
    }

    /// The task that leaves the CPU, named `prev` by the event.
    fn leaving(&mut self, cpu: CpuId, time: Ktime, prev: Tid, state: u16) -> Option<TaskIx> {
        let running = self.running(cpu);
        let named = match prev {
            Tid::IDLE => None,
            prev => self.named_on(cpu, prev, time),
        };
        self.set_current(cpu, None);
        let Some(running) = running.filter(|running| named != Some(*running)) else {
            return named;
        };
        // Actor runs here is certain, its name is not: de_thread may have given it
        // another tid, of its own process.
        let process = |ix: TaskIx| self.tasks.get(ix.0).map(|task| task.process);
        let renamed = match named {
            None => prev != Tid::IDLE && self.gaps.lives_before(time).is_some(),
            Some(named) => {
                !self.is_on(named, cpu)
                    && (process(named) == process(running) || self.state(named) == State::Dead)
            }
        };
        let in_gap = self.in_gap(running, time);
        if renamed && !in_gap {
            if !self.states.is_dead(state) {
                self.rename_to(running, prev, time);
            }
            return Some(running);
        }
        // It has gone without a word.
        if !in_gap {
            self.anomaly(UNSEEN_OUT);
        }
        self.forget(running, cpu, time);
        named
    }

    /// The task of a tid that runs on `cpu`. It may be the one that is known to be there,
    /// taking over a process (`de_thread`) whose leader nothing has told of.
    fn named_on(&mut self, cpu: CpuId, tid: Tid, time: Ktime) -> Option<TaskIx> {
        let known = self.task(tid);
        if known.is_some() || !self.open() {
            return known;
        }
        let process = |ix: &TaskIx| self.processes.get(self.tasks.get(ix.0)?.process);
        let leads = |ix: &TaskIx| process(ix).is_some_and(|of| of.pid.0 == tid.0);
        let heir = self.running(cpu).filter(leads);
        let heir = heir.filter(|ix| !self.in_gap(*ix, time));
        if let Some(heir) = heir {
            self.rename_to(heir, tid, time);
        }
        heir.or_else(|| Some(self.appear(tid, Tgid(tid.0), time)))
    }

    /// The task goes by another tid now. When the exec that tells that is lost,
    /// the tid that it had is free, and may come again.
    fn rename_to(&mut self, ix: TaskIx, tid: Tid, time: Ktime) {
        self.by_tid.insert(tid, ix);
        if self.gaps.lives_before(time).is_none() {
            return;
        }
        let Some(task) = self.tasks.get_mut(ix.0) else {
            return;
        };
        let old = std::mem::replace(&mut task.tid, tid);
        if old != tid && self.by_tid.get(old) == Some(ix) {
            self.by_tid.remove(old);
        }
        // The new one is its process's, which may not have been known.
        self.settle(ix, Tgid(tid.0), None, Argv::default());
    }

    #[allow(clippy::too_many_arguments)] // the event's own fields
    fn switch_out(
        &mut self,
        cpu: CpuId,
        time: Ktime,
        prev: Tid,
        state: u16,
        preempt: bool,
        iowait: bool,
        next: Tid,
    ) {
        let Some(ix) = self.leaving(cpu, time, prev, state) else {
            return;
        };
        match self.state(ix) {
            // Now it is known where it has been running since the start.
            State::On(None) if self.may_be_on(ix, cpu) => {
                if let Some(task) = self.tasks.get_mut(ix.0) {
                    task.state = State::On(Some(cpu));
                }
            }
            State::On(Some(on)) if on == cpu => {}
            State::On(None) => self.came_unseen(ix, cpu, time),
            State::On(_) => self.anomaly("switched out on another CPU than it ran on"),
            State::Dead => {
                self.lose_unplaced(cpu, time);
                // When not system_wide is recorded, somebody else may have its tid.
                if self.open() {
                    self.anomaly("ran after its end");
                }
                return;
            }
            _ => self.came_unseen(ix, cpu, time),
        }
        let counted = u64::from(self.inside(time));
        let dies = self.states.is_dead(state);
        // As the kernel counts: __schedule's switch_count.
        let involuntary = u64::from(!dies && (preempt || state == 0));
        let switches = Switches {
            voluntary: counted * (1 - involuntary),
            involuntary: counted * involuntary,
        };
        self.cpu_left(cpu, time, switches);
        if let Some(task) = self.tasks.get_mut(ix.0) {
            task.switches.add(&switches);
        }
        if dies {
            self.end_task(ix, time);
            return;
        }
        let next = self.actor(next, time);
        let vfork = state != 0 && self.waits_for_vfork(ix, time);
        let wait = || self.states.wait(state, iowait, vfork);
        let wait = (!preempt && state != 0).then(wait);
        let Some(task) = self.tasks.get_mut(ix.0) else {
            return;
        };
        let new = task.leave(cpu, time, wait, preempt, next);
        self.enter(ix, time, new, Ended::Otherwise);
    }

    /// The task has a child in its memory that had not exited before `time`: who
    /// is not waiting by then will hardly wait for that.
    fn waits_for_vfork(&self, ix: TaskIx, time: Ktime) -> bool {
        let child = self.tasks.get(ix.0).and_then(|task| task.vfork_child.get());
        let child = child.and_then(|child| self.tasks.get(child.0));
        child.is_some_and(|child| child.exited.is_none_or(|exited| exited >= time))
    }

    /// A task that was listed as being on a CPU may have been on this one since: it
    /// would have left it by a switch.
    fn may_be_on(&self, ix: TaskIx, cpu: CpuId) -> bool {
        let since = self.tasks.get(ix.0).map(|task| task.since);
        self.last_switch(cpu) <= since
    }

    /// The task is on `cpu` and was not seen to get there.
    fn came_unseen(&mut self, ix: TaskIx, cpu: CpuId, time: Ktime) {
        let expected = match self.state(ix) {
            State::Unknown => true,
            // It may have been on this CPU all the time.
            State::Runnable { .. } if self.tasks.get(ix.0).is_some_and(|task| task.woken) => true,
            _ => self.in_gap(ix, time) || !self.seen(ix),
        };
        if !expected {
            self.anomaly(UNSEEN);
        }
        self.lose_unplaced(cpu, time);
        self.forget(ix, cpu, time);
    }

    /// Somebody is on `cpu` who was not seen to get there. It may have been there
    /// since it was listed, and go by another tid since an exec that is lost: of
    /// who was on a CPU then, and may be on this one, nothing is known from now on.
    fn lose_unplaced(&mut self, cpu: CpuId, time: Ktime) {
        if self.unplaced.is_empty() || self.gaps.lives_before(time).is_none() {
            return;
        }
        for ix in std::mem::take(&mut self.unplaced) {
            if self.state(ix) != State::On(None) {
                continue;
            }
            if self.may_be_on(ix, cpu) {
                self.enter(ix, time, State::Unknown, Ended::Otherwise);
            } else {
                self.unplaced.push(ix);
            }
        }
    }

    /// Whoever else was on `cpu`, before the task that turns out to be there,
    /// has gone; or it is that very task under its new tid, and the exec that
    /// gave it that (`de_thread`) is missing.
    fn gone_unseen(&mut self, ix: TaskIx, cpu: CpuId, time: Ktime) {
        let on = |tracker: &Tracker, other: TaskIx| tracker.state(other) == State::On(Some(cpu));
        let other = self.current(cpu).filter(|other| *other != ix);
        let Some(other) = other.filter(|other| on(self, *other)) else {
            return;
        };
        if !self.in_gap(other, time) && self.gaps.lives_before(time).is_none() {
            self.anomaly(UNSEEN_OUT);
        }
        self.forget(other, cpu, time);
    }

    /// The task has come to `cpu`, or left it, without having been seen to. It
    /// came at the earliest at that CPU's last switch, until which a runnable
    /// task was still waiting; all else that it did up to now is not known.
    fn forget(&mut self, ix: TaskIx, cpu: CpuId, time: Ktime) {
        let Some(task) = self.tasks.get(ix.0) else {
            return;
        };
        let since = task.since;
        let known = match task.state {
            State::Runnable { .. } => self
                .last_switch(cpu)
                .unwrap_or(since)
                .clamp(since, time.max(since)),
            _ => since,
        };
        let gap = self.gaps.any().first_in(since, time);
        let known = gap.map_or(known, |gap| known.min(gap));
        let bucket = task.state.bucket(Ended::Otherwise);
        self.account(ix, since, known, bucket);
        self.account(ix, known, time, Bucket::Unknown);
        self.take_back(known, time);
        if let Some(task) = self.tasks.get_mut(ix.0) {
            task.epoch = self
                .concurrency
                .change(time, task.epoch, task.state, State::Unknown);
            task.state = State::Unknown;
            task.since = task.since.max(time);
            task.off_since = None;
        }
    }

    /// An event that only a running task makes: it runs on this CPU, whether or
    /// not its switch-in was seen.
    pub(super) fn runs(&mut self, tid: Tid, cpu: CpuId, time: Ktime) {
        if tid == Tid::IDLE {
            return;
        }
        self.cpu_not_idle(cpu);
        let Some(ix) = self.named_on(cpu, tid, time) else {
            return;
        };
        if matches!(self.state(ix), State::On(_) | State::Dead) {
            return;
        }
        self.came_unseen(ix, cpu, time);
        self.gone_unseen(ix, cpu, time);
        self.enter(ix, time, State::On(Some(cpu)), Ended::Otherwise);
        if let Some(task) = self.tasks.get_mut(ix.0) {
            (task.woken, task.last_cpu) = (false, Some(cpu));
        }
        self.set_current(cpu, Some(ix));
    }

    /// Whoever has this tid, for the timeline.
    fn actor(&self, tid: Tid, time: Ktime) -> ActorRef {
        self.holder(tid, time)
            .map_or_else(|| ActorRef::outside(tid), |ix| ActorRef::task(ix.0))
    }

    pub(super) fn seen(&self, ix: TaskIx) -> bool {
        self.tasks.get(ix.0).is_some_and(|task| task.seen)
    }

    /// A gap lies between the task's last event and now.
    pub(super) fn in_gap(&self, ix: TaskIx, time: Ktime) -> bool {
        self.tasks
            .get(ix.0)
            .is_some_and(|task| self.gaps.any().first_in(task.since, time).is_some())
    }

    fn switch_in(&mut self, cpu: CpuId, time: Ktime, next: Tid) {
        if next == Tid::IDLE {
            return;
        }
        let Some(ix) = self.task_to_run(next, time) else {
            return;
        };
        if let on @ State::On(_) = self.state(ix) {
            let spans = self.spans_of(on);
            let since = self.tasks.get(ix.0).map(|task| task.since);
            let lost = spans
                .zip(since)
                .is_some_and(|(spans, since)| spans.first_in(since, time).is_some());
            if !lost {
                self.anomaly("on two CPUs at once");
                self.check_overlap(ix, on, cpu, time);
            }
        }
        self.close_off_cpu(ix, time, false);
        // Woken when it was runnable already: after the switch-in, by the same
        // stamp, as well as before.
        let woken = self.tasks.get(ix.0).is_some_and(|t| t.woken_again(time));
        self.enter(ix, time, State::On(Some(cpu)), Ended::SwitchedIn);
        let counted = u64::from(self.inside(time));
        if let Some(task) = self.tasks.get_mut(ix.0) {
            if task.arrive(cpu, woken) {
                task.migrations += counted;
                self.cpu_gained(cpu, time);
            }
        }
        self.set_current(cpu, Some(ix));
    }

    /// A task is switched in on `cpu` while it is on another one.
    fn check_overlap(&mut self, ix: TaskIx, on: State, cpu: CpuId, time: Ktime) {
        let Some(task) = self.tasks.get(ix.0) else {
            return;
        };
        if let State::On(Some(on)) = on {
            let first = task.since;
            if self.current(on) == Some(ix) && self.last_switch(on) == Some(first) && on != cpu {
                let tid = task.tid;
                self.clock_check.overlap(tid, (on, first), cpu, time);
            }
        }
    }

    /// The tid belongs to a new task, whose fork is lost: who had it is gone, or
    /// goes by another one since an exec that is lost as well.
    pub(super) fn has_passed_on(&self, ix: TaskIx, tid: Tid, time: Ktime) -> bool {
        let Some(task) = self.tasks.get(ix.0) else {
            return false;
        };
        // Whether it is the leader of its process, only a fork or a listing tells.
        let named = |p: &&ProcessEntry| p.forked || p.ppid.is_some();
        let process = self.processes.get(task.process).filter(named);
        let leads = process.map(|p| p.pid.0 == tid.0);
        let ran = task.last_cpu.is_some() && !self.just_now(Some(task.since), time);
        self.gaps.lives_before(time).is_some()
            && (task.state == State::Dead || ran && leads != Some(true))
    }

    /// Ends an off-CPU stretch and keeps it when it is the longest.
    pub(super) fn close_off_cpu(&mut self, ix: TaskIx, time: Ktime, at_end: bool) {
        let (gaps, end) = (self.gaps.any(), self.end);
        if let Some(task) = self.tasks.get_mut(ix.0) {
            let cut = |from| at_end || time > end || gaps.first_in(from, time).is_some();
            task.close_off_cpu((self.start, time.min(end)), cut);
        }
    }

    #[allow(clippy::too_many_arguments)] // the event's own fields
    fn waking(&mut self, time: Ktime, waker: Tid, wakee: Tid, irq: bool, new: bool, vfork: bool) {
        let known = self.task(wakee);
        let known = known.filter(|ix| !(new && self.has_passed_on(*ix, wakee, time)));
        let parent = match known {
            None if new && !irq && waker != Tid::IDLE => match self.task(waker) {
                None if self.open() => Some(self.appear(waker, Tgid(waker.0), time)),
                waker => waker,
            },
            _ => None,
        };
        let ix = match parent {
            // A recorded task's child, whose fork is missing; whether it is a
            // process or a thread, its exit will tell.
            Some(parent) => self.appear_child(wakee, parent, time),
            None => match self.task_to_run(wakee, time) {
                Some(ix) => ix,
                None => return,
            },
        };
        let by = match waker {
            // The idle task wakes nobody of its own accord.
            waker if irq || waker == Tid::IDLE => ActorRef::INTERRUPT,
            waker => self.actor(waker, time),
        };
        let waker = by.place().map(TaskIx);
        // After a vfork the parent does nothing before its wait is over; when
        // the child was faster there was no wait.
        if let Some(waker) = waker.and_then(|waker| self.tasks.get_mut(waker.0)) {
            waker.vfork_child = MaybeTask::NONE;
        }
        if vfork {
            // The fork may have come before the recording: who wakes a child for
            // the first time has forked it.
            if let Some(child) = self.tasks.get_mut(ix.0) {
                child.parent = child.parent.or(waker);
            }
            let parent = self.tasks.get(ix.0).and_then(|task| task.parent);
            if let Some(parent) = parent.and_then(|parent| self.tasks.get_mut(parent.0)) {
                parent.vfork_child = MaybeTask::some(ix);
            }
        }
        // Its vfork child has let it go; the child's exec is reported later.
        if let Some(task) = self.tasks.get_mut(ix.0) {
            task.vfork_child = MaybeTask::NONE;
        }
        match self.state(ix) {
            // The first waking has the same stamp as the switch-in after it.
            State::On(_) if new => {}
            // It had set its state but not yet left the CPU, or was woken for
            // nothing; which, its switch-out tells.
            State::On(_) => {
                if let Some(task) = self.tasks.get_mut(ix.0) {
                    (task.woken, task.by) = (true, by);
                }
            }
            State::Dead => {}
            state @ State::Runnable { .. } => {
                if self.gaps.any().covers(time) {
                    // From here on it may run where events are being lost.
                    self.enter(ix, time, state, Ended::Otherwise);
                } else if !new && !self.in_gap(ix, time) {
                    if let Some(task) = self.tasks.get_mut(ix.0) {
                        task.told = time;
                    }
                }
            }
            state @ (State::Waiting(_) | State::Unknown) => {
                let unknown = state == State::Unknown || self.in_gap(ix, time);
                if let Some(task) = self.tasks.get_mut(ix.0) {
                    task.by = by;
                }
                self.enter(ix, time, State::Runnable { preempted: false }, Ended::Woken);
                if let Some(task) = self.tasks.get_mut(ix.0) {
                    task.woken |= unknown;
                }
            }
        }
    }
}
