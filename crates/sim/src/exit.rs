//! Tasks and processes end (kernel/exit.c).

use tr_format::event::{Exit, Final, LifeKind, Tgid, Tid};

use crate::exec::PID_REST;
use crate::machine::Machine;
use crate::sink::Sink;
use crate::task::{raw, Ref, Step, Wait};
use crate::truth::{Causes, Times};

impl Machine {
    /// The current task will exit, with the status of the signal that kills it
    /// or else its own.
    pub(crate) fn begin_exit(&mut self, c: usize, now: u64, slot: usize) {
        let first = self.cfg.kernel.exit_first;
        let steps = &mut self.tasks[slot].steps;
        steps.extend([Step::Die, Step::ExitNotify, Step::Teardown]);
        if first {
            steps.extend([Step::VforkDone, Step::Teardown, Step::ExitEvent]);
        } else {
            steps.extend([Step::ExitEvent, Step::VforkDone, Step::Teardown]);
        }
        steps.push(Step::ExitBegin);
        self.proceed(c, now);
    }

    /// `do_group_exit`.
    pub(crate) fn exit_group(&mut self, c: usize, now: u64, slot: usize, status: u32) {
        let process = self.tasks[slot].process;
        let at = &mut self.processes[process as usize];
        if at.execing.is_some() {
            // A sibling is in exec and has killed this thread already.
            self.tasks[slot].exit_code = 0;
            self.begin_exit(c, now, slot);
            return;
        }
        let first = at.group_exit.is_none();
        let status = *at.group_exit.get_or_insert(status);
        self.tasks[slot].exit_code = status;
        self.begin_exit(c, now, slot);
        if first {
            self.signal_threads(slot as u32, process, |name| Step::Kill(name, status));
        }
    }

    pub(crate) fn exit_begin(&mut self, c: usize, now: u64, cur: u32) {
        let task = &mut self.tasks[cur as usize];
        task.exiting = true;
        task.stopping = false;
        task.exit_code = task.killed.unwrap_or(task.exit_code);
        let process = &mut self.processes[task.process as usize];
        process.live -= 1;
        task.group_dead = process.live == 0;
        if process.leader == Some(cur) {
            process.leader_code = task.exit_code;
        }
        self.proceed(c, now);
    }

    pub(crate) fn exit_event<S: Sink>(&mut self, sink: &mut S, c: usize, now: u64, cur: u32) {
        let stamp = self.stamp(now);
        let faults = (self.draw.below(5_000).into(), self.draw.below(20).into());
        let rss = 4096 * u64::from(self.draw.below(100_000));
        let attached = self.attached;
        let counted = attached && stamp < self.end;
        let task = &mut self.tasks[cur as usize];
        let process = &mut self.processes[task.process as usize];
        task.exited = Some(stamp);
        task.exit_seen = counted;
        let group_status = process.group_exit.unwrap_or(process.leader_code);
        let max_rss = if task.group_dead { rss } else { 0 };
        if counted {
            process.faults.0 += faults.0;
            process.faults.1 += faults.1;
            if task.group_dead {
                process.max_rss = Some(max_rss);
                process.status = Some(group_status);
            }
            if task.followed && stamp >= self.start {
                self.exits += 1;
            }
        }
        if attached && task.followed {
            let run_time = task.run_time + (stamp - task.switched);
            let exit = Exit {
                tid: Tid(task.tid),
                tgid: Tgid(process.tgid),
                status: task.exit_code,
                group_dead: task.group_dead,
                group_status: if task.group_dead { group_status } else { 0 },
                utime: run_time - run_time / 4,
                stime: run_time / 4,
                sum_exec_runtime: run_time,
                nvcsw: task.nvcsw,
                nivcsw: task.nivcsw,
                min_flt: faults.0,
                maj_flt: faults.1,
                max_rss,
                read_bytes: None,
                write_bytes: None,
            };
            self.emit_life(sink, c, stamp, LifeKind::Exit(exit));
        }
        self.proceed(c, now);
    }

    /// The parent, or a sibling in exec, is told; the children get another
    /// parent.
    pub(crate) fn exit_notify<S: Sink>(&mut self, sink: &mut S, c: usize, now: u64, cur: u32) {
        let task = &mut self.tasks[cur as usize];
        task.released = true;
        let process = task.process;
        let at = &mut self.processes[process as usize];
        at.unreleased -= 1;
        if at.unreleased == 0 {
            at.gone = true;
            self.orphan_children(process, now);
            self.notify_parent(sink, c, now, process);
        } else if at.unreleased == 1 {
            if let Some(execer) = at.execing {
                let task = &mut self.tasks[execer as usize];
                if task.wait == Wait::DeThread {
                    task.done = true;
                    self.wake(sink, c, now, execer, raw::NORMAL, false);
                }
            }
        }
        self.proceed(c, now);
    }

    fn orphan_children(&mut self, process: u32, now: u64) {
        let at = &mut self.processes[process as usize];
        let children = std::mem::take(&mut at.children);
        let zombies = std::mem::take(&mut at.zombies);
        for child in children {
            self.processes[child as usize].parent = None;
        }
        for zombie in zombies {
            self.reap(zombie, now);
        }
    }

    fn notify_parent<S: Sink>(&mut self, sink: &mut S, c: usize, now: u64, process: u32) {
        let parent = self.processes[process as usize].parent;
        let parent = parent.filter(|parent| {
            let at = &self.processes[parent.slot as usize];
            at.used == parent.used && !at.gone
        });
        let Some(Ref { slot: parent, .. }) = parent else {
            // Init reaps at once.
            self.reap(process, now);
            return;
        };
        let at = &mut self.processes[parent as usize];
        if let Some(i) = at.children.iter().position(|child| *child == process) {
            at.children.swap_remove(i);
        }
        at.zombies.push(process);
        while let Some(name) = self.processes[parent as usize].waiters.pop() {
            let Some(waiter) = self.find(name) else {
                continue;
            };
            let task = &mut self.tasks[waiter as usize];
            if task.wait == Wait::Child && !task.done {
                task.done = true;
                self.wake(sink, c, now, waiter, raw::NORMAL, false);
                break;
            }
        }
    }

    /// A zombie has been waited for.
    pub(crate) fn reap(&mut self, process: u32, now: u64) {
        let at = &mut self.processes[process as usize];
        at.reaped = true;
        if at.threads.is_empty() {
            self.forget(process, now);
        }
    }

    /// The process's slot and pid become free.
    fn forget(&mut self, process: u32, now: u64) {
        let at = &mut self.processes[process as usize];
        self.pids.free(at.tgid, now + PID_REST);
        at.used += 1;
        self.free_processes.push(process);
    }

    /// After the task's last switch-out, at `stamp`.
    pub(crate) fn bury<S: Sink>(&mut self, sink: &mut S, c: usize, stamp: u64, slot: u32) {
        let task = &mut self.tasks[slot as usize];
        let process = task.process;
        if self.attached && task.followed {
            let last = Final {
                tid: Tid(task.tid),
                sum_exec_runtime: task.run_time,
                nvcsw: task.nvcsw,
                nivcsw: task.nivcsw,
            };
            self.emit_life(sink, c, stamp, LifeKind::Final(last));
        }
        self.record_task(slot, stamp);
        let task = &mut self.tasks[slot as usize];
        task.used += 1;
        task.steps.clear();
        let (tid, followed) = (task.tid, task.followed);
        let (times, causes) = (
            Times::from_array(task.times),
            Causes::from_array(task.causes),
        );
        let (voluntary, involuntary) = (task.voluntary, task.involuntary);
        self.alive -= 1;
        self.alive_followed -= u32::from(followed);
        self.free_tasks.push(slot);
        let at = &mut self.processes[process as usize];
        at.times.add(&times);
        at.causes.add(&causes);
        at.voluntary += voluntary;
        at.involuntary += involuntary;
        at.ended = stamp;
        at.threads.retain(|thread| *thread != slot);
        if at.leader == Some(slot) {
            at.leader = None;
        }
        if tid != at.tgid {
            self.pids.free(tid, stamp + PID_REST);
        }
        if self.processes[process as usize].threads.is_empty() {
            self.record_process(process as usize, stamp);
            let at = &self.processes[process as usize];
            if at.serial == self.root_serial {
                self.root_status = at.status.filter(|_| stamp < self.end);
                if let Some(linger) = self.cfg.linger {
                    self.end_at(self.stamp(stamp + linger.max(self.cfg.grain)));
                }
            }
            if self.processes[process as usize].reaped {
                self.forget(process, stamp);
            }
        }
    }
}
