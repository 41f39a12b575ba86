//! Handles events that show that other events are missing. The missing events are lost or, on some virtual machines,
//! were never reported by the guest's kernel. The doubtful time becomes unknown.

use tr_format::event::{Argv, CpuId, Ktime, Tgid, Tid};

use super::{TaskIx, Tracker};
use crate::state::{Bucket, Ended, State};
use crate::timeline::ActorRef;

/// The text that reports print for tasks whose switch-in the kernel did not report.
const UNSEEN_IN: &str = "ran without having been switched in";
/// The text that reports print for a switch of a CPU that contradicts the CPU's previous switch: the task that leaves
/// the CPU is not the task that came to the CPU.
const UNSEEN_OUT: &str = "switched out another task than was switched in";

impl Tracker {
    /// The task that is known to run on a CPU; `None` if no task is known to run there.
    fn running(&self, cpu: CpuId) -> Option<TaskIx> {
        self.cpus
            .current(cpu)
            .filter(|ix| self.tasks[*ix].is_on(cpu))
    }

    /// Returns the task that leaves the CPU at a switch. The switch names the task by the tid `prev`.
    pub(super) fn leaving(
        &mut self,
        cpu: CpuId,
        time: Ktime,
        prev: Tid,
        dies: bool,
    ) -> Option<TaskIx> {
        let running = self.running(cpu);
        let named = match prev {
            Tid::IDLE => None,
            prev => self.named_on(cpu, prev, time),
        };
        self.cpus.entry(cpu).current = None;
        let Some(running) = running.filter(|running| named != Some(*running)) else {
            return named;
        };
        // The recording shows which task runs on the CPU, but perhaps not the present tid of this task: an exec may
        // have given the task the tid of its thread group's leader (de_thread, fs/exec.c).
        let renamed = match named {
            None => prev != Tid::IDLE && self.gaps.lives_before(time).is_some(),
            Some(named) => {
                let (named, running) = (&self.tasks[named], &self.tasks[running]);
                !named.is_on(cpu) && (named.process == running.process || named.is_dead())
            }
        };
        let in_gap = self.in_gap(running, time);
        if renamed && !in_gap {
            if !dies {
                self.rename_to(running, prev, time);
            }
            return Some(running);
        }
        if !in_gap {
            self.anomaly(UNSEEN_OUT);
        }
        self.forget(running, cpu, time);
        named
    }

    /// Returns the task with the given tid that runs on `cpu`. If no task is known by this tid, the tid may be a new
    /// one of the task that is known to be on the CPU. That task may have taken over a process (`de_thread`) from a
    /// leader that no event has shown.
    fn named_on(&mut self, cpu: CpuId, tid: Tid, time: Ktime) -> Option<TaskIx> {
        let known = self.task(tid);
        if known.is_some() || !self.open() {
            return known;
        }
        let leads = |ix: &TaskIx| self.processes[self.tasks[*ix].process].pid.0 == tid.0;
        let heir = self.running(cpu).filter(leads);
        let heir = heir.filter(|ix| !self.in_gap(*ix, time));
        if let Some(heir) = heir {
            self.rename_to(heir, tid, time);
        }
        heir.or_else(|| Some(self.appear(tid, Tgid(tid.0), time)))
    }

    /// Notes that a task has another tid from now on. If the exec that changed the tid is lost, the old tid is free
    /// and may be reused.
    fn rename_to(&mut self, ix: TaskIx, tid: Tid, time: Ktime) {
        self.by_tid.insert(tid.0, ix);
        if self.gaps.lives_before(time).is_none() {
            return;
        }
        let old = std::mem::replace(&mut self.tasks[ix].tid, tid);
        if old != tid && self.by_tid.get(old.0) == Some(ix) {
            self.by_tid.remove(old.0);
        }
        // The new tid is the pid of the task's process. This pid may not have been known before.
        self.settle(ix, Tgid(tid.0), None, Argv::default());
    }

    /// Whether a task may have been on this CPU since its snapshot, which showed the task on some CPU. The CPU must
    /// have had no switch since that snapshot.
    pub(super) fn may_be_on(&self, ix: TaskIx, cpu: CpuId) -> bool {
        self.cpus.last_switch(cpu) <= Some(self.tasks[ix].since)
    }

    /// Notes that the task is on `cpu`, although its switch-in is missing.
    pub(super) fn came_unseen(&mut self, ix: TaskIx, cpu: CpuId, time: Ktime) {
        let task = &self.tasks[ix];
        let expected = match task.state {
            State::Unknown => true,
            // A task that was woken after its last switch-in may never have left this CPU. Then no event is missing.
            State::Runnable { .. } if task.woken => true,
            _ => self.in_gap(ix, time) || !task.seen,
        };
        if !expected {
            self.anomaly(UNSEEN_IN);
        }
        self.lose_unplaced(cpu, time);
        self.forget(ix, cpu, time);
    }

    /// Makes states unknown after a task was found on `cpu` although its switch-in is missing. A snapshot may have
    /// shown this task on a CPU without the CPU's number, before a lost exec changed the task's tid. Nothing shows
    /// which of the tasks with such a snapshot was found. So each of them that may be on `cpu` has an unknown state
    /// from now on.
    pub(super) fn lose_unplaced(&mut self, cpu: CpuId, time: Ktime) {
        if self.unplaced.is_empty() || self.gaps.lives_before(time).is_none() {
            return;
        }
        for ix in std::mem::take(&mut self.unplaced) {
            if self.tasks[ix].state != State::On(None) {
                continue;
            }
            if self.may_be_on(ix, cpu) {
                self.enter(ix, time, State::Unknown, Ended::Otherwise);
            } else {
                self.unplaced.push(ix);
            }
        }
    }

    /// Notes that the task `ix` was found on `cpu`, where another task was expected. Either the switch-out of the other
    /// task is missing, or both are the same task: an exec (`de_thread`) whose event is missing has given the task
    /// another tid.
    fn gone_unseen(&mut self, ix: TaskIx, cpu: CpuId, time: Ktime) {
        let on = |other: &TaskIx| self.tasks[*other].state == State::On(Some(cpu));
        let other = self.cpus.current(cpu).filter(|other| *other != ix);
        let Some(other) = other.filter(on) else {
            return;
        };
        if !self.in_gap(other, time) && self.gaps.lives_before(time).is_none() {
            self.anomaly(UNSEEN_OUT);
        }
        self.forget(other, cpu, time);
    }

    /// Notes that the task has come to `cpu` or has left it, and that the event of this switch is missing. If the task
    /// was runnable, it waited at least until the last recorded switch of the CPU. All other time since its last event
    /// is unknown.
    fn forget(&mut self, ix: TaskIx, cpu: CpuId, time: Ktime) {
        let task = &self.tasks[ix];
        let since = task.since;
        // If the task was woken while it seemed to be on the CPU, it was really asleep: it had left the CPU, and the
        // waking ended its sleep.
        let woken = matches!(task.state, State::On(_)) && task.woken;
        let woken = if woken { task.last_event_ts } else { since };
        let known = match task.state {
            State::Runnable { .. } => {
                let came = self.cpus.last_switch(cpu).unwrap_or(since);
                came.clamp(since, time.max(since))
            }
            _ => since,
        };
        let gap = self.gaps.any().first_in(since, time);
        let known = gap.map_or(known, |gap| known.min(gap));
        let bucket = task.state.bucket(Ended::Otherwise);
        self.account(ix, since, known, bucket);
        let woken = woken.clamp(known, time.max(known));
        self.account(ix, known, woken, Bucket::Unknown);
        self.tasks[ix].actor = ActorRef::UNKNOWN;
        self.account(ix, woken, time, Bucket::Unknown);
        self.concurrency.take_back(known, time);
        let task = &mut self.tasks[ix];
        let (epoch, old) = (task.epoch, task.state);
        task.epoch = self.concurrency.change(time, epoch, old, State::Unknown);
        task.state = State::Unknown;
        task.since = task.since.max(time);
        task.off_since = None;
    }

    /// Processes an event that only a running task causes. The task runs on this CPU, whether or not its switch-in
    /// was seen.
    pub(super) fn runs(&mut self, tid: Tid, cpu: CpuId, time: Ktime) {
        if tid == Tid::IDLE {
            return;
        }
        self.cpu_not_idle(cpu);
        let Some(ix) = self.named_on(cpu, tid, time) else {
            return;
        };
        if matches!(self.tasks[ix].state, State::On(_) | State::Dead) {
            return;
        }
        self.came_unseen(ix, cpu, time);
        self.gone_unseen(ix, cpu, time);
        self.enter(ix, time, State::On(Some(cpu)), Ended::Otherwise);
        let task = &mut self.tasks[ix];
        (task.woken, task.last_cpu) = (false, Some(cpu));
        self.cpus.entry(cpu).current = Some(ix);
    }

    /// Whether a tid now belongs to a new task whose fork is lost. The tables still have an older task for the tid. The
    /// older task has ended, or an exec that is also lost has given it another tid.
    pub(super) fn has_passed_on(&self, ix: TaskIx, tid: Tid, time: Ktime) -> bool {
        let task = &self.tasks[ix];
        let process = &self.processes[task.process];
        // Only a fork or a snapshot shows which tid is the leader of the process.
        let named = process.forked || process.ppid.is_some();
        let leads = named && process.pid.0 == tid.0;
        let ran = task.last_cpu.is_some() && task.since != time;
        self.gaps.lives_before(time).is_some() && (task.is_dead() || ran && !leads)
    }
}
