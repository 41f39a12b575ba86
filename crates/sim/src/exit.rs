//! Simulates the ends of tasks and processes as in the kernel (kernel/exit.c).

use tr_format::event::{Exit, LifeKind, Tgid, Tid};

use crate::machine::{Machine, Turn};
use crate::task::{raw, Step, Wait};

impl Machine {
    /// Begins the exit of the current simulated task, with the status of a signal that kills it or
    /// with its own exit code.
    pub(crate) fn begin_exit(&mut self, turn: Turn) {
        let first = self.cfg.kernel.exit_first;
        let steps = &mut self.tasks[turn.cur].steps;
        steps.extend([Step::Die, Step::ExitNotify, Step::Teardown]);
        if first {
            steps.extend([Step::VforkDone, Step::Teardown, Step::ExitEvent]);
        } else {
            steps.extend([Step::ExitEvent, Step::VforkDone, Step::Teardown]);
        }
        steps.push(Step::ExitBegin);
        self.proceed(turn);
    }

    /// Ends the current simulated process with all of its threads (`do_group_exit` of the kernel).
    pub(crate) fn exit_group(&mut self, turn: Turn, status: u32) {
        let process = self.tasks[turn.cur].process;
        let at = &mut self.processes[process];
        if at.execing.is_some() {
            // Another thread of the process is in exec and has already killed this thread, so only this thread ends,
            // with the status 0.
            self.tasks[turn.cur].exit_code = 0;
            self.begin_exit(turn);
            return;
        }
        let first = at.group_exit.is_none();
        let status = *at.group_exit.get_or_insert(status);
        self.tasks[turn.cur].exit_code = status;
        self.begin_exit(turn);
        if first {
            self.signal_threads(turn.cur, process, |name| Step::Kill(name, status));
        }
    }

    pub(crate) fn exit_begin(&mut self, turn: Turn) {
        let task = &mut self.tasks[turn.cur];
        task.exiting = true;
        task.stopping = false;
        task.exit_code = task.killed.unwrap_or(task.exit_code);
        let process = &mut self.processes[task.process];
        process.live -= 1;
        task.group_dead = process.live == 0;
        if process.leader == Some(turn.cur) {
            process.leader_code = task.exit_code;
        }
        self.proceed(turn);
    }

    pub(crate) fn exit_event(&mut self, turn: Turn) {
        let faults = (self.draw.below(5_000).into(), self.draw.below(20).into());
        let drawn = 4096 * u64::from(self.draw.below(100_000));
        let attached = self.attached;
        let counted = attached && turn.stamp < self.end;
        let task = &mut self.tasks[turn.cur];
        let process = &mut self.processes[task.process];
        task.exited = Some(turn.stamp);
        task.exit_seen = counted;
        let group_status = process.group_exit.unwrap_or(process.leader_code);
        // The kernel reports the largest resident set of the whole process, including the programs before its last
        // exec. So the value must be larger than that of the earlier programs.
        let rss = drawn.max(process.rss_before + 4096);
        let max_rss = if task.group_dead { rss } else { 0 };
        if counted {
            process.faults.0 += faults.0;
            process.faults.1 += faults.1;
            if task.group_dead {
                process.max_rss = Some(max_rss);
                process.status = Some(group_status);
            }
            if task.followed && turn.stamp >= self.start {
                self.accounts.exits += 1;
            }
        }
        if attached && task.followed {
            let run_time = task.run_time + (turn.stamp - task.switched);
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
                program_rss: task.group_dead.then_some(rss),
                read_bytes: None,
                write_bytes: None,
                delays: task.delays(),
            };
            self.emit_life(turn, LifeKind::Exit(exit));
        }
        self.proceed(turn);
    }

    /// Notifies others that the current simulated task exits (`exit_notify` of the kernel): the parent process if the
    /// task was the last thread, or else a thread in exec that waits to be the only one left.
    pub(crate) fn exit_notify(&mut self, turn: Turn) {
        let task = &mut self.tasks[turn.cur];
        task.released = true;
        let process = task.process;
        let at = &mut self.processes[process];
        at.unreleased -= 1;
        if at.unreleased == 0 {
            at.gone = true;
            self.orphan_children(process, turn.now);
            self.notify_parent(turn, process);
        } else if at.unreleased == 1 {
            if let Some(execer) = at.execing {
                let task = &mut self.tasks[execer];
                if task.wait == Wait::DeThread {
                    task.done = true;
                    self.wake(turn, execer, raw::NORMAL, false);
                }
            }
        }
        self.proceed(turn);
    }

    fn orphan_children(&mut self, process: u32, now: u64) {
        let at = &mut self.processes[process];
        let children = std::mem::take(&mut at.children);
        let zombies = std::mem::take(&mut at.zombies);
        for child in children {
            self.processes[child].parent = None;
        }
        for zombie in zombies {
            self.reap(zombie, now);
        }
    }

    fn notify_parent(&mut self, turn: Turn, process: u32) {
        let Some(parent) = self.living_parent(process) else {
            // The parent of the process is dead. So init has taken over the process, and init waits for it at once.
            self.reap(process, turn.now);
            return;
        };
        let at = &mut self.processes[parent];
        if let Some(i) = at.children.iter().position(|child| *child == process) {
            at.children.swap_remove(i);
        }
        at.zombies.push(process);
        while let Some(name) = self.processes[parent].waiters.pop() {
            let Some(waiter) = self.find(name) else {
                continue;
            };
            let task = &mut self.tasks[waiter];
            if task.wait == Wait::Child && !task.done {
                task.done = true;
                self.wake(turn, waiter, raw::NORMAL, false);
                break;
            }
        }
    }
}
