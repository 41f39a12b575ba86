//! A program is replaced (fs/exec.c).

use tr_format::event::{Argv, Comm, Exec, Ktime, LifeKind, Tgid, Tid};

use crate::machine::Machine;
use crate::sched::Out;
use crate::sink::Sink;
use crate::steps::sleep_state;
use crate::task::{raw, Place, Ref, Step, Wait};
use crate::truth::{ExecTruth, Times};

/// How long a tid stays unused after it became free, ns: longer than the events
/// of its last holder can be behind.
pub(crate) const PID_REST: u64 = 20_000;

impl Machine {
    /// `execve`: first the siblings are killed (`de_thread`).
    pub(crate) fn begin_exec(&mut self, c: usize, now: u64, cur: u32, image: u16) {
        let process = self.tasks[cur as usize].process;
        let at = &mut self.processes[process as usize];
        let doomed = at.execing.is_some() || at.group_exit.is_some();
        if doomed || self.tasks[cur as usize].killed.is_some() || at.kthread {
            self.proceed(c, now);
            return;
        }
        at.execing = Some(cur);
        let old_tid = self.tasks[cur as usize].tid;
        let steps = &mut self.tasks[cur as usize].steps;
        steps.extend([
            Step::ExecEvent { image, old_tid },
            Step::VforkDone,
            Step::TakeOver,
            Step::DeThread,
        ]);
        // The status of those that an exec kills is 0 (`do_group_exit`).
        self.signal_threads(cur, process, |name| Step::Kill(name, 0));
        self.proceed(c, now);
    }

    /// One step of something longer.
    pub(crate) fn do_step<S: Sink>(
        &mut self,
        sink: &mut S,
        c: usize,
        now: u64,
        cur: u32,
        step: Step,
    ) {
        match step {
            Step::WakeNew(child) => self.wake_new(sink, c, now, child),
            Step::VforkWait(child) => self.vfork_wait(sink, c, now, cur, child),
            Step::Kill(name, status) => {
                self.kill(sink, c, now, name, status);
                self.proceed(c, now);
            }
            Step::Stop(name) => {
                if let Some(slot) = self.find(name) {
                    let task = &mut self.tasks[slot as usize];
                    if !task.exiting && task.killed.is_none() {
                        task.stopping = true;
                        self.wake(sink, c, now, slot, raw::INTERRUPTIBLE, false);
                    }
                }
                self.proceed(c, now);
            }
            Step::Continue(name) => {
                if let Some(slot) = self.find(name) {
                    self.tasks[slot as usize].stopping = false;
                    self.wake(sink, c, now, slot, raw::STOPPED, false);
                }
                self.proceed(c, now);
            }
            Step::DeThread => self.de_thread(sink, c, now, cur),
            Step::TakeOver => self.take_over(c, now, cur),
            Step::VforkDone => self.vfork_done(sink, c, now, cur),
            Step::ExecEvent { image, old_tid } => {
                self.exec_event(sink, c, now, cur, image, old_tid)
            }
            Step::ExitBegin => self.exit_begin(c, now, cur),
            Step::ExitEvent => self.exit_event(sink, c, now, cur),
            Step::Teardown => {
                let length = self.draw.length(crate::program::us(1, 60));
                self.cpus[c].hold = false;
                self.cpus[c].op_at = now + length;
            }
            Step::ExitNotify => self.exit_notify(sink, c, now, cur),
            Step::Die => {
                self.tasks[cur as usize].state = raw::DEAD;
                self.switch(sink, c, now, Out::Dead);
            }
        }
    }

    /// A fatal signal for one thread.
    fn kill<S: Sink>(&mut self, sink: &mut S, c: usize, now: u64, name: Ref, status: u32) {
        let Some(slot) = self.find(name) else { return };
        let task = &mut self.tasks[slot as usize];
        if task.exiting || task.killed.is_some() {
            return;
        }
        task.killed = Some(status);
        let busy = !task.steps.is_empty() || task.scheduling || task.committed;
        match task.place {
            Place::OnCpu(on) if !busy => {
                // An interrupt from the other CPU makes it look.
                let on = usize::from(on);
                let soon = now + 300 + (self.draw.bits() & 0x7ff);
                if on != c && task.state == raw::RUNNING {
                    self.cpus[on].op_at = self.cpus[on].op_at.min(soon);
                    self.replan(on);
                }
            }
            Place::Queued if !busy && task.state == raw::RUNNING => {
                task.remaining = task.remaining.min(500)
            }
            _ => {}
        }
        self.wake(
            sink,
            c,
            now,
            slot,
            raw::INTERRUPTIBLE | raw::WAKEKILL,
            false,
        );
    }

    /// Waits until the caller is its process's only thread.
    fn de_thread<S: Sink>(&mut self, sink: &mut S, c: usize, now: u64, cur: u32) {
        let process = &self.processes[self.tasks[cur as usize].process as usize];
        if process.unreleased > 1 {
            let task = &mut self.tasks[cur as usize];
            task.steps.push(Step::DeThread);
            task.wait = Wait::DeThread;
            self.fall_asleep(sink, c, now, sleep_state(Wait::DeThread));
        } else {
            self.end_wait(cur as usize);
            self.proceed(c, now);
        }
    }

    /// The caller gets the leader's tid and start time.
    fn take_over(&mut self, c: usize, now: u64, cur: u32) {
        let process = self.tasks[cur as usize].process as usize;
        let leader = self.processes[process].leader;
        if leader.is_some_and(|leader| leader != cur) {
            // It is a zombie, but still on its way to its last switch-out.
            self.tasks[cur as usize].steps.push(Step::TakeOver);
            self.cpus[c].hold = false;
            self.cpus[c].op_at = now + 1_000;
            return;
        }
        let at = &mut self.processes[process];
        let task = &mut self.tasks[cur as usize];
        at.leader = Some(cur);
        task.tid = at.tgid;
        task.start_time = at.start_time;
        self.proceed(c, now);
    }

    /// `complete_vfork_done`.
    fn vfork_done<S: Sink>(&mut self, sink: &mut S, c: usize, now: u64, cur: u32) {
        let child = self.name(cur);
        if let Some(parent) = self.tasks[cur as usize].vfork_parent.take() {
            if let Some(slot) = self.find(parent) {
                let task = &mut self.tasks[slot as usize];
                if task.wait == Wait::Vfork(child) {
                    task.done = true;
                    self.wake(sink, c, now, slot, raw::NORMAL, false);
                }
            }
        }
        self.proceed(c, now);
    }

    fn exec_event<S: Sink>(
        &mut self,
        sink: &mut S,
        c: usize,
        now: u64,
        cur: u32,
        image: u16,
        old_tid: u32,
    ) {
        let stamp = self.stamp(now);
        let process = self.tasks[cur as usize].process as usize;
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
        if old_tid != tgid {
            self.pids.free(old_tid, now + PID_REST);
        }
        if stamp < self.end {
            self.tasks[cur as usize].comm = comm;
            let times = self.process_times(process, stamp);
            let at = &mut self.processes[process];
            if let Some(last) = at.execs.last_mut() {
                last.end = Ktime(stamp);
                last.times = times.since(&at.span_base);
            }
            at.span_base = times;
            at.execs.push(ExecTruth {
                start: Ktime(stamp),
                started_before: false,
                end: Ktime(0),
                argv: if self.attached {
                    argv.clone()
                } else {
                    Argv::default()
                },
                times: Times::default(),
            });
            if followed && stamp >= self.start {
                self.execs += 1;
            }
        }
        if self.attached && followed {
            let exec = Exec {
                tid: Tid(tgid),
                tgid: Tgid(tgid),
                old_tid: Tid(old_tid),
                comm,
                filename: path.into_bytes().into(),
                argv,
                cgroup,
            };
            self.emit_life(sink, c, stamp, LifeKind::Exec(exec));
        }
        self.proceed(c, now);
    }

    /// The times of all threads that the process has had, up to `stamp`.
    pub(crate) fn process_times(&mut self, process: usize, stamp: u64) -> Times {
        let (start, end) = (self.start, self.end);
        let mut times = self.processes[process].times;
        for i in 0..self.processes[process].threads.len() {
            let slot = self.processes[process].threads[i] as usize;
            let task = &mut self.tasks[slot];
            task.settle(stamp, start, end);
            times.add(&Times::from_array(task.times));
        }
        times
    }
}
