//! Simulates exec: a simulated process replaces its program (fs/exec.c of the kernel).

use tr_format::event::{Argv, Comm, Exec, LifeKind, Tgid, Tid};

use crate::burial::PID_REST;
use crate::machine::{Machine, Turn};
use crate::progress::sleep_state;
use crate::sched::Out;
use crate::task::{raw, Place, Ref, Step, Wait};
use crate::truth::ExecTruth;

impl Machine {
    /// Begins an `execve` of the current simulated task: first the other threads of its process are
    /// killed (`de_thread` of the kernel).
    pub(crate) fn begin_exec(&mut self, turn: Turn, image: u16) {
        let process = self.tasks[turn.cur].process;
        let at = &mut self.processes[process];
        let doomed = at.execing.is_some() || at.group_exit.is_some();
        if doomed || self.tasks[turn.cur].killed.is_some() || at.kthread {
            self.proceed(turn);
            return;
        }
        at.execing = Some(turn.cur);
        let old_tid = self.tasks[turn.cur].tid;
        let steps = &mut self.tasks[turn.cur].steps;
        steps.extend([
            Step::ExecEvent { image, old_tid },
            Step::VforkDone,
            Step::TakeOver,
            Step::DeThread,
        ]);
        // The kernel gives the status 0 to threads that another thread's exec kills (`do_group_exit`).
        self.signal_threads(turn.cur, process, |name| Step::Kill(name, 0));
        self.proceed(turn);
    }

    /// Does one step of a system call for the current simulated task, such as exec or exit.
    pub(crate) fn do_step(&mut self, turn: Turn, step: Step) {
        match step {
            Step::WakeNew(child) => self.wake_new(turn, child),
            Step::VforkWait(child) => self.vfork_wait(turn, child),
            Step::Kill(name, status) => {
                self.kill(turn, name, status);
                self.proceed(turn);
            }
            Step::Stop(name) => {
                if let Some(slot) = self.find(name) {
                    let task = &mut self.tasks[slot];
                    if !task.exiting && task.killed.is_none() {
                        task.stopping = true;
                        self.wake(turn, slot, raw::INTERRUPTIBLE, false);
                    }
                }
                self.proceed(turn);
            }
            Step::Continue(name) => {
                if let Some(slot) = self.find(name) {
                    self.tasks[slot].stopping = false;
                    self.wake(turn, slot, raw::STOPPED, false);
                }
                self.proceed(turn);
            }
            Step::DeThread => self.de_thread(turn),
            Step::TakeOver => self.take_over(turn),
            Step::VforkDone => self.vfork_done(turn),
            Step::ExecEvent { image, old_tid } => self.exec_event(turn, image, old_tid),
            Step::ExitBegin => self.exit_begin(turn),
            Step::ExitEvent => self.exit_event(turn),
            Step::Teardown => {
                let length = self.draw.length(crate::program::us(1, 60));
                self.cpus[turn.cpu].hold = false;
                self.cpus[turn.cpu].op_at = turn.now + length;
            }
            Step::ExitNotify => self.exit_notify(turn),
            Step::Die => {
                self.tasks[turn.cur].state = raw::DEAD;
                self.switch(turn, Out::Dead);
            }
        }
    }

    /// Sends a fatal signal to one simulated thread.
    fn kill(&mut self, turn: Turn, name: Ref, status: u32) {
        let Some(slot) = self.find(name) else { return };
        let task = &mut self.tasks[slot];
        if task.exiting || task.killed.is_some() {
            return;
        }
        task.killed = Some(status);
        let busy = !task.steps.is_empty() || task.scheduling || task.committed;
        match task.place {
            Place::OnCpu(on) if !busy => {
                // The thread runs on another CPU. That CPU soon looks for signals, because of an inter-processor
                // interrupt.
                let on = usize::from(on);
                let soon = turn.now + 300 + (self.draw.bits() & 0x7ff);
                if on != turn.cpu && task.state == raw::RUNNING {
                    self.cpus[on].op_at = self.cpus[on].op_at.min(soon);
                    self.replan(on);
                }
            }
            Place::Queued if !busy && task.state == raw::RUNNING => {
                task.remaining = task.remaining.min(500)
            }
            _ => {}
        }
        self.wake(turn, slot, raw::INTERRUPTIBLE | raw::WAKEKILL, false);
    }

    /// Lets the simulated task that executes a program wait until it is the only thread of its
    /// process (`de_thread` of the kernel).
    fn de_thread(&mut self, turn: Turn) {
        let process = &self.processes[self.tasks[turn.cur].process];
        if process.unreleased > 1 {
            let task = &mut self.tasks[turn.cur];
            task.steps.push(Step::DeThread);
            task.wait = Wait::DeThread;
            self.fall_asleep(turn, sleep_state(Wait::DeThread));
        } else {
            self.end_wait(turn.cur);
            self.proceed(turn);
        }
    }

    /// Gives the tid and the start time of the process's leader to the simulated thread that
    /// executes a program, as the kernel does.
    fn take_over(&mut self, turn: Turn) {
        let process = self.tasks[turn.cur].process;
        let leader = self.processes[process].leader;
        if leader.is_some_and(|leader| leader != turn.cur) {
            // The leader has exited, but was not switched out for the last time yet, so its tid is not free. The thread
            // tries again after 1 µs.
            self.tasks[turn.cur].steps.push(Step::TakeOver);
            self.cpus[turn.cpu].hold = false;
            self.cpus[turn.cpu].op_at = turn.now + 1_000;
            return;
        }
        let at = &mut self.processes[process];
        let task = &mut self.tasks[turn.cur];
        at.leader = Some(turn.cur);
        task.tid = at.tgid;
        task.start_time = at.start_time;
        self.proceed(turn);
    }

    /// Wakes the simulated parent that waits for its vfork child (`complete_vfork_done` of the
    /// kernel).
    fn vfork_done(&mut self, turn: Turn) {
        let child = self.name(turn.cur);
        if let Some(parent) = self.tasks[turn.cur].vfork_parent.take() {
            if let Some(slot) = self.find(parent) {
                let task = &mut self.tasks[slot];
                if task.wait == Wait::Vfork(child) {
                    task.done = true;
                    self.wake(turn, slot, raw::NORMAL, false);
                }
            }
        }
        self.proceed(turn);
    }

    fn exec_event(&mut self, turn: Turn, image: u16, old_tid: u32) {
        let process = self.tasks[turn.cur].process;
        self.exec_count += 1;
        let mut path = "/bin/true".to_owned();
        let mut argv = Argv::from_args(["true"]);
        if let Some(image) = self.cfg.world.images.get(usize::from(image)) {
            path.clone_from(&image.path);
            let number = self.exec_count.to_string();
            argv = Argv::from_args(image.args.iter().map(|arg| arg.replace("{}", &number)));
        }
        let comm = Comm::new(path.rsplit('/').next().unwrap_or_default().as_bytes());
        let at = &mut self.processes[process];
        at.execing = None;
        at.argv = argv.clone();
        let (tgid, cgroup, followed) = (at.tgid, at.cgroup, at.followed);
        at.rss_before = at.rss_before.max(4096 * (self.exec_count * 7919 % 50_000));
        let at_exec = at.rss_before;
        if old_tid != tgid {
            self.pids.free(old_tid, turn.now + PID_REST);
        }
        if turn.stamp < self.end {
            self.tasks[turn.cur].comm = comm;
            let times = self.process_times(process, turn.stamp);
            let at = &mut self.processes[process];
            at.end_program(turn.stamp, times);
            let seen = if self.attached {
                argv.clone()
            } else {
                Argv::default()
            };
            at.execs.push(ExecTruth::new(turn.stamp, seen));
            if followed && turn.stamp >= self.start {
                self.accounts.execs += 1;
            }
        }
        if self.attached && followed {
            let exec = Exec {
                max_rss: Some(at_exec),
                tid: Tid(tgid),
                tgid: Tgid(tgid),
                old_tid: Tid(old_tid),
                comm,
                filename: path.into_bytes().into(),
                argv,
                cgroup,
                directory: Default::default(),
            };
            self.emit_life(turn, LifeKind::Exec(exec));
        }
        self.proceed(turn);
    }
}
