//! Opens the book in the middle of a trace: from a checkpoint, which has the last events
//! of everyone who lived then.
//!
//! What was before does not count, so that everything in the book may have begun right
//! before the checkpoint's moment.

use tr_format::checkpoint::{self, Checkpoint, Step, Who};
use tr_format::event::{Comm, Exit, Ktime, Tid};

use super::lives::program_before;
use super::{push_first, Book, Exited, MaybeTask, Task, TaskIx};
use crate::tasks::{State, States};
use crate::timeline::By;

impl Book {
    /// Enters all who lived, in an empty book. No event is between the checkpoint's moment
    /// and the beginning of the span, if that is the earlier one.
    pub fn restore(&mut self, checkpoint: &Checkpoint) {
        let before = checkpoint.at.min(self.start);
        let before = Ktime(before.0.saturating_sub(1));
        self.begun = true;
        self.look_around();
        self.cgroups.extend(checkpoint.cgroups.iter().cloned());
        for process in &checkpoint.processes {
            self.restore_process(process);
        }
        for task in &checkpoint.tasks {
            self.restore_task(task, before);
        }
        for (at, process) in checkpoint.processes.iter().enumerate() {
            self.restore_gone(at, process.gone.as_ref(), before);
        }
        for cpu in &checkpoint.cpus {
            let current = match cpu.current {
                Who::Task(place) => Some(TaskIx(place as usize)),
                Who::Other(_) | Who::Interrupt => None,
            };
            let idle = cpu.current == Who::Other(Tid::IDLE);
            let everybody = self.everybody;
            self.cpu_entry(cpu.cpu, |entry| {
                entry.current = current;
                entry.last_switch = Some(before);
                // Of the others the idle time is not known.
                (entry.counted, entry.switched) = (everybody, everybody);
                entry.idle_since = Some(before).filter(|_| idle && everybody);
            });
        }
        // Somebody was seen running who had not been seen to come there.
        for ix in (0..checkpoint.tasks.len()).map(TaskIx) {
            if let State::On(Some(cpu)) = self.state(ix) {
                self.set_current(cpu, Some(ix));
                self.cpu_not_idle(cpu);
            }
        }
    }

    fn restore_process(&mut self, process: &checkpoint::Process) {
        let parent = process.parent.map(|place| place as usize);
        let at = self.process_of(process.pid, process.ppid, parent, process.argv.clone());
        let span = (self.start, self.end);
        let Some(entry) = self.processes.get_mut(at) else {
            return;
        };
        entry.forked = process.forked;
        entry.kthread = process.kthread;
        entry.cgroup = process.cgroup;
        entry.status = process.status;
        entry.max_rss = process.max_rss;
        if let Some((filename, comm)) = &process.program {
            let argv = process.argv.clone();
            let program = program_before(span, filename.clone(), argv, *comm);
            push_first(&mut entry.execs, program);
        }
    }

    fn restore_task(&mut self, one: &checkpoint::Task, before: Ktime) {
        let (start, states) = (self.start, self.states);
        let parent = one.parent.map(|place| TaskIx(place as usize));
        let ix = self.add_task(
            one.tid,
            one.ns_tid,
            one.process as usize,
            one.comm,
            start,
            true,
            State::Unknown,
            parent,
        );
        let Some(task) = self.tasks.get_mut(ix.0) else {
            return;
        };
        (task.since, task.told) = (before, before);
        if one.forked {
            (task.state, task.seen) = (State::Runnable { preempted: false }, true);
            // Its first waking is by who has forked it, and is gone.
            if let (None, Some(Step::Woken { by })) = (parent, one.steps.first()) {
                task.by = who(*by);
            }
        }
        for step in &one.steps {
            task.retrace(step, before, &states);
        }
        let child = one.vfork_child.map(|place| TaskIx(place as usize));
        task.vfork_child = child.map_or(MaybeTask::NONE, MaybeTask::some);
        if let Some((time, exit)) = &one.exit {
            task.exits(*time, exit);
        }
        self.restore_state(ix, before);
    }

    /// Counts a task as what it is now; it was entered as unknown.
    fn restore_state(&mut self, ix: TaskIx, before: Ktime) {
        let Some(task) = self.tasks.get_mut(ix.0) else {
            return;
        };
        task.epoch = self
            .concurrency
            .change(self.start, task.epoch, State::Unknown, task.state);
        match task.state {
            State::On(None) => self.unplaced.push(ix),
            State::Dead => {
                task.end = Some(before);
                if let Some(process) = self.processes.get_mut(task.process) {
                    process.live = process.live.saturating_sub(1);
                }
            }
            _ => {}
        }
    }

    /// The threads of a process that are gone, as one: it has their figures, and the
    /// leader's tid when that is one of them (see [`Book::task_to_run`]).
    fn restore_gone(&mut self, process: usize, gone: Option<&Exit>, before: Ktime) {
        let Some(entry) = self.processes.get(process) else {
            return;
        };
        let tid = Tid(entry.pid.0);
        let leader = self.by_tid.get(tid);
        if leader.is_some() && gone.is_none() {
            return;
        }
        let (start, comm) = (self.start, Comm::default());
        let ix = self.add_task(tid, tid, process, comm, start, true, State::Unknown, None);
        if let Some(task) = self.tasks.get_mut(ix.0) {
            task.state = State::Dead;
            task.exit = gone.map(Exited::from);
        }
        self.restore_state(ix, before);
        if let Some(leader) = leader {
            self.by_tid.insert(tid, leader);
        }
    }
}

/// Who that is in the restored book.
fn who(who: Who) -> By {
    match who {
        Who::Task(place) => By::task(place as usize),
        Who::Other(tid) => By::outside(tid),
        Who::Interrupt => By::INTERRUPT,
    }
}

impl Task {
    /// Does what an event before the checkpoint has made of it.
    fn retrace(&mut self, step: &Step, before: Ktime, states: &States) {
        match *step {
            Step::Listed { state, on_cpu } => {
                if self.is_known_better(on_cpu) {
                    return;
                }
                self.woken = false;
                self.state = states.listed(state, on_cpu);
                if on_cpu {
                    self.off_since = None;
                }
                return;
            }
            Step::Came { cpu } => {
                self.state = State::On(Some(cpu));
                self.off_since = None;
                self.arrive(cpu, false);
            }
            Step::Ran { cpu } => {
                if !matches!(self.state, State::On(_) | State::Dead) {
                    self.state = State::On(Some(cpu));
                    self.off_since = None;
                    self.arrive(cpu, false);
                }
            }
            Step::Left { state, .. } if states.is_dead(state) => self.state = State::Dead,
            Step::Left {
                cpu,
                state,
                preempt,
                iowait,
                vfork,
                next,
            } => {
                let waits = !preempt && state != 0;
                let wait = waits.then(|| states.wait(state, iowait, vfork));
                self.state = self.leave(cpu, before, wait, preempt, who(next));
            }
            Step::Woken { by } => match self.state {
                State::On(_) => (self.woken, self.by) = (true, who(by)),
                State::Waiting(_) | State::Unknown => {
                    self.woken |= self.state == State::Unknown;
                    self.by = who(by);
                    self.state = State::Runnable { preempted: false };
                }
                State::Runnable { .. } | State::Dead => {}
            },
        }
        self.seen = true;
    }
}
