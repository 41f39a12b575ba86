//! Handles scheduling events: switches and wakings.

use tr_format::event::{Context, CpuId, Ktime, SchedEvent, SchedKind, Switch, Tgid, Tid, Waking};

use super::cpu_table::goes_on;
use super::task::SwitchOut;
use super::{TaskIx, Tracker};
use crate::arena::Ix;
use crate::collect::workers::is_worker;
use crate::model::Switches;
use crate::state::{Ended, State};
use crate::timeline::ActorRef;

impl Tracker {
    pub fn sched(&mut self, cpu: CpuId, event: &SchedEvent) {
        let time = event.time;
        self.pass_gaps(time);
        self.begin(time);
        match event.kind {
            SchedKind::Switch(switch) => {
                self.concerns(time, switch.prev, switch.next);
                self.switch(cpu, time, switch);
            }
            SchedKind::Waking(waking) => {
                self.concerns(time, waking.waker, waking.wakee);
                self.runs(waking.waker, cpu, time);
                self.waking(time, waking);
            }
        }
    }

    /// Counts a contradiction if neither of the two tasks of a scheduling event is known. Each recorded event concerns
    /// a recorded task, so the fork of one of the two must be missing.
    fn concerns(&mut self, time: Ktime, one: Tid, other: Tid) {
        let concerned = |tid: Tid| {
            let task = self.task(tid).filter(|_| tid != Tid::IDLE);
            task.is_some_and(|ix| self.keeps(ix, tid))
        };
        // While a recorded task waits for a CPU, switches between unrecorded tasks are recorded, too. The names of
        // these tasks are recorded before such a switch. So an event of two tasks with known names is no contradiction.
        let is_named = |tid| self.collectors.outside.knows(tid);
        let others = is_named(one) && is_named(other);
        if !self.open()
            && !others
            && self.gaps.lives_before(time).is_none()
            && !concerned(one)
            && !concerned(other)
        {
            self.anomaly("event of unknown tasks");
        }
    }

    // ---- Switch ----

    /// Processes a switch: a CPU goes from one task to another.
    ///
    /// ```text
    /// cpu0  ==prev==|__           prev: on CPU → waiting, runnable or dead
    ///       ________|==next==     next: runnable → on CPU
    /// ```
    fn switch(&mut self, cpu: CpuId, time: Ktime, switch: Switch) {
        let next = switch.next;
        let (cpus, gaps) = (&self.cpus, &self.gaps);
        let goes_on = |cpu, since| goes_on(cpus, gaps, cpu, since, time);
        self.clock_check.switch_out(cpu, switch.prev, time, goes_on);
        if next != Tid::IDLE && self.task(next).is_none() {
            self.clock_check.unborn(next, cpu, time);
            // While the whole machine is recorded, or while snapshots still come, a task can appear without a fork.
            // Such a task existed before this switch.
            if self.open() {
                self.appear(next, Tgid(next.0), time);
            }
        }
        self.cpu_switched(cpu, time, switch.prev, next);
        self.outside_leaves(cpu, time, switch.prev);
        self.switch_out(cpu, time, switch);
        if next != Tid::IDLE {
            self.switch_in(cpu, time, next);
        }
        let entry = self.cpus.entry(cpu);
        (entry.last_switch, entry.next) = (Some(time), next);
    }

    /// Notes that an unrecorded task leaves a CPU.
    fn outside_leaves(&mut self, cpu: CpuId, time: Ktime, prev: Tid) {
        if self.timeline.is_some() && self.task(prev).is_none() && self.inside(time) {
            let since = self.cpus.last_switch(cpu).unwrap_or(self.start);
            let since = since.max(self.start);
            self.collectors.outside.leaves(cpu, since, time, prev);
        }
    }

    fn switch_out(&mut self, cpu: CpuId, time: Ktime, switch: Switch) {
        let dies = self.states.is_dead(switch.prev_state);
        let Some(ix) = self.leaving(cpu, time, switch.prev, dies) else {
            return;
        };
        match self.tasks[ix].state {
            // The task was already on a CPU at its snapshot, which did not show on which CPU. The switch-out shows that
            // the task was on this CPU.
            State::On(None) if self.may_be_on(ix, cpu) => {
                self.tasks[ix].state = State::On(Some(cpu));
            }
            State::On(Some(on)) if on == cpu => {}
            State::On(Some(_)) => self.anomaly("switched out on another CPU than it ran on"),
            State::Dead => {
                self.lose_unplaced(cpu, time);
                // Unless every task is recorded, an unrecorded task may have got the tid of the dead one, which is no
                // contradiction.
                if self.open() {
                    self.anomaly("ran after its exit");
                }
                return;
            }
            _ => self.came_unseen(ix, cpu, time),
        }
        let runnable = switch.preempt || switch.prev_state == 0;
        if self.inside(time) {
            // Voluntary and involuntary switches are counted as by the kernel: switch_count in __schedule
            // (kernel/sched/core.c).
            let involuntary = u64::from(!dies && runnable);
            let switches = Switches {
                voluntary: 1 - involuntary,
                involuntary,
            };
            self.cpus.figures(cpu).switches.add(&switches);
            self.tasks[ix].switches.add(&switches);
        }
        if dies {
            self.end_task(ix, time);
            return;
        }
        let vfork = switch.prev_state != 0 && self.waits_for_vfork(ix, time);
        let wait = || self.states.wait(switch.prev_state, switch.iowait, vfork);
        let how = SwitchOut {
            cpu,
            wait: (!runnable).then(wait),
            preempt: switch.preempt,
            reason: switch.reason as u8,
            timeout: switch.timeout.number(),
            next: self.actor(switch.next, time),
        };
        let new = self.tasks[ix].switch_out(time, how);
        self.enter(ix, time, new, Ended::Otherwise);
    }

    /// Whether the task has a vfork child that runs in the task's memory and had not exited before `time`, so that the
    /// task probably waits for this child.
    fn waits_for_vfork(&self, ix: TaskIx, time: Ktime) -> bool {
        let child = self.tasks[ix].vfork_child.map(|child| &self.tasks[child]);
        child.is_some_and(|child| child.exited.is_none_or(|exited| exited >= time))
    }

    fn switch_in(&mut self, cpu: CpuId, time: Ktime, next: Tid) {
        let Some(ix) = self.task_to_run(next, time) else {
            return;
        };
        self.check_overlap(ix, cpu, time);
        self.tasks[ix].close_off_cpu(self.start, time.min(self.end));
        // A waking of a runnable task at the time of its switch-in may have come after the switch-in. Then the task was
        // woken on its CPU.
        let woken = self.tasks[ix].woken_again(time);
        self.enter(ix, time, State::On(Some(cpu)), Ended::SwitchedIn);
        let moved = self.tasks[ix].switch_in(cpu, woken);
        if moved && self.inside(time) {
            self.tasks[ix].migrations += 1;
            self.cpus.figures(cpu).migrations += 1;
        }
        self.cpus.entry(cpu).current = Some(ix);
    }

    /// Checks whether a task that is switched in on `cpu` is still on another CPU, which would show that the clocks
    /// of the two CPUs disagree.
    fn check_overlap(&mut self, ix: TaskIx, cpu: CpuId, time: Ktime) {
        let (state, since, tid) = {
            let task = &self.tasks[ix];
            (task.state, task.since, task.tid)
        };
        let State::On(on) = state else {
            return;
        };
        let spans = self.spans_of(ix, state, time);
        if spans.is_some_and(|spans| spans.first_in(since, time).is_some()) {
            return;
        }
        self.anomaly("on two CPUs at once");
        if let Some(on) = on.filter(|on| *on != cpu) {
            if self.cpus.current(on) == Some(ix) && self.cpus.last_switch(on) == Some(since) {
                self.clock_check.overlap(tid, (on, since), cpu, time);
            }
        }
    }

    // ---- Waking ----

    /// Processes a waking: a sleep or another wait of a task ends here.
    ///
    /// ```text
    /// cpu0  ==waker==!=======     waker: it runs, whether or not its switch-in was seen
    ///       ..wakee..|-------     wakee: waiting → runnable, until it is switched in
    /// ```
    fn waking(&mut self, time: Ktime, waking: Waking) {
        let Some(ix) = self.wakee(time, waking) else {
            self.wakes_worker(time, waking);
            return;
        };
        let actor = match waking.waker {
            // The packet came from the task on this CPU, which has just closed the other end of a connection.
            waker
                if waking.context == Context::SoftIrq
                    && self.last_closed.has_just_closed(waker, time) =>
            {
                self.actor(waker, time)
            }
            // The idle task itself wakes nobody: an interrupt on its CPU does.
            _ if waking.context == Context::SoftIrq => ActorRef::SOFTIRQ,
            waker if waking.context.is_interrupt() || waker == Tid::IDLE => ActorRef::INTERRUPT,
            waker => self.actor(waker, time),
        };
        self.update_vfork(waking, ix, actor);
        match self.tasks[ix].state {
            // The first waking of a new task can have the same time as the task's switch-in. Such a waking came before
            // the switch-in, so it changes nothing.
            State::On(_) if waking.new => {}
            State::On(_) => self.tasks[ix].wake(actor, time),
            State::Dead => {}
            state @ State::Runnable { .. } => {
                if self.gaps.any().covers(time) {
                    // The waking shows that the task had not run up to now. But it may run from now on without a
                    // recorded switch-in, because events are being lost.
                    self.enter(ix, time, state, Ended::Otherwise);
                } else if !waking.new && !self.in_gap(ix, time) {
                    self.tasks[ix].last_event_ts = time;
                }
            }
            state @ (State::Waiting(_) | State::Unknown) => {
                let unknown = state == State::Unknown || self.in_gap(ix, time);
                self.tasks[ix].wake(actor, time);
                self.enter(ix, time, State::Runnable { preempted: false }, Ended::Woken);
                self.tasks[ix].woken |= unknown;
            }
        }
    }

    /// Notes that a recorded task wakes an unrecorded worker of the kernel.
    fn wakes_worker(&mut self, time: Ktime, waking: Waking) {
        let worker = self.collectors.outside.at(waking.wakee, time);
        if self.timeline.is_none()
            || waking.context.is_interrupt()
            || !worker.is_some_and(is_worker)
        {
            return;
        }
        if let Some(by) = self.holder(waking.waker, time) {
            self.collectors.workers.take(time, waking.wakee, by);
        }
    }

    fn wakee(&mut self, time: Ktime, waking: Waking) -> Option<TaskIx> {
        let (waker, wakee, new) = (waking.waker, waking.wakee, waking.new);
        let known = self.task(wakee);
        let known = known.filter(|ix| !(new && self.has_passed_on(*ix, wakee, time)));
        if known.is_none() && new && !waking.context.is_interrupt() && waker != Tid::IDLE {
            let parent = self.task(waker);
            let appears = parent.is_none() && self.open();
            let parent =
                parent.or_else(|| appears.then(|| self.appear(waker, Tgid(waker.0), time)));
            if let Some(parent) = parent {
                // A recorded task forked this child, but the fork is missing. The child's exit will show whether the
                // child is a process or a thread.
                return Some(self.appear_child(wakee, parent, time));
            }
        }
        self.task_to_run(wakee, time)
    }

    /// Updates whether a parent waits for its vfork child (kernel/fork.c, wait_for_vfork_done). The parent waits from
    /// the first waking of the child until the parent wakes another task or is woken.
    fn update_vfork(&mut self, waking: Waking, wakee: TaskIx, actor: ActorRef) {
        let waker = actor.place().map(TaskIx::new);
        // A task that wakes another one is not waiting. So if a vfork child was faster than its parent, the parent did
        // not wait for it.
        if let Some(waker) = waker {
            self.tasks[waker].vfork_child = None;
        }
        if waking.new && waking.vfork {
            // If the fork came before the recording, the parent is not known yet. The first waking shows it: a
            // vfork child is first woken by its parent.
            let parent = self.tasks[wakee].parent.or(waker);
            self.tasks[wakee].parent = parent;
            if let Some(parent) = parent {
                self.tasks[parent].vfork_child = Some(wakee);
            }
        }
        // A parent that is woken no longer waits for its vfork child. The child's exec, which lets the parent go on, is
        // reported only later.
        self.tasks[wakee].vfork_child = None;
    }

    /// The form in which the timeline names the task that has a tid at a time, for example as the one that woke
    /// another task.
    fn actor(&self, tid: Tid, time: Ktime) -> ActorRef {
        let task = self.holder(tid, time);
        task.map_or_else(|| ActorRef::outside(tid), TaskIx::actor)
    }
}
