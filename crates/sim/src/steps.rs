//! What the current task of a CPU does next: the rest of something that the
//! kernel does for it, a signal, or its program's next operation.

use tr_format::event::{CgroupMove, Comm, LifeKind, Rename, Tgid, Tid};

use crate::machine::Machine;
use crate::program::{ns, Chan, Op};
use crate::sched::Out;
use crate::sink::Sink;
use crate::task::{raw, Place, Ref, Step, Wait, IDLE};

/// A program may do this many jumps without doing anything else.
const JUMPS: u32 = 1_000;

impl Machine {
    /// The current task of `c` does its next thing.
    pub(crate) fn act<S: Sink>(&mut self, sink: &mut S, c: usize, now: u64) {
        let cur = self.cpus[c].cur;
        if cur == IDLE {
            self.cpus[c].op_at = crate::agenda::NEVER;
            return;
        }
        let slot = cur as usize;
        let task = &mut self.tasks[slot];
        if task.committed {
            task.committed = false;
            self.switch(sink, c, now, Out::Sleep);
            return;
        }
        if task.scheduling {
            task.scheduling = false;
            // A fatal signal in between has woken it, too (`signal_wake_up`).
            if task.state == raw::RUNNING {
                self.give_way(sink, c, now);
            } else if self.draw.chance(self.cfg.kernel.late_stamp) {
                self.tasks[slot].committed = true;
                self.cpus[c].hold = true;
                self.cpus[c].op_at = now + self.draw.length(ns(100, 3_000));
            } else {
                self.switch(sink, c, now, Out::Sleep);
            }
            return;
        }
        if let Some(step) = task.steps.pop() {
            self.do_step(sink, c, now, cur, step);
            return;
        }
        if task.killed.is_some() {
            self.end_wait(slot);
            self.begin_exit(c, now, slot);
            return;
        }
        if task.stopping {
            task.stopping = false;
            task.state = raw::STOPPED | raw::WAKEKILL;
            self.switch(sink, c, now, Out::Sleep);
            return;
        }
        if task.wait != Wait::Nothing {
            if task.done {
                self.end_wait(slot);
                self.proceed(c, now);
            } else {
                let state = sleep_state(task.wait);
                self.fall_asleep(sink, c, now, state);
            }
            return;
        }
        let program = &self.cfg.world.programs[usize::from(task.program)];
        let op = program
            .get(usize::from(task.pc))
            .copied()
            .unwrap_or(Op::ExitGroup(0));
        task.pc = task.pc.saturating_add(1);
        self.do_op(sink, c, now, cur, op);
    }

    /// Plans the current task's next thing.
    #[inline]
    pub(crate) fn proceed(&mut self, c: usize, now: u64) {
        let slot = self.cpus[c].cur as usize;
        let task = &mut self.tasks[slot];
        if let Some(step) = task.steps.last() {
            let held = step.held();
            self.cpus[c].hold = held;
            let length = if held { ns(150, 500) } else { ns(300, 3_000) };
            self.cpus[c].op_at = now + self.draw.length(length);
            return;
        }
        self.cpus[c].hold = false;
        let mut delay = 0;
        if task.killed.is_none() && !task.stopping {
            let program = &self.cfg.world.programs[usize::from(task.program)];
            for _ in 0..JUMPS {
                match program.get(usize::from(task.pc)) {
                    Some(Op::Run(span)) => {
                        delay += self.draw.length(*span);
                        task.pc += 1;
                    }
                    Some(Op::Goto(to)) => task.pc = *to,
                    Some(&Op::Repeat { slot, times, to }) => {
                        let counter = &mut task.loops[usize::from(slot) & 3];
                        *counter += 1;
                        if *counter < times {
                            task.pc = to;
                        } else {
                            *counter = 0;
                            task.pc += 1;
                        }
                    }
                    _ => break,
                }
            }
        }
        if delay == 0 {
            delay = 150 + (self.draw.bits() & 0xff);
        }
        self.cpus[c].op_at = now + delay;
    }

    /// One operation of a program.
    fn do_op<S: Sink>(&mut self, sink: &mut S, c: usize, now: u64, cur: u32, op: Op) {
        let slot = cur as usize;
        match op {
            Op::Run(span) => self.cpus[c].op_at = now + self.draw.length(span),
            Op::Sleep(span) => {
                let length = self.draw.length(span);
                self.tasks[slot].wait = Wait::Timer;
                self.arm(c, now, cur, length);
                self.fall_asleep(sink, c, now, raw::INTERRUPTIBLE | raw::FREEZABLE);
            }
            Op::Io(span) | Op::Lock(span) => {
                let length = self.draw.length(span);
                self.tasks[slot].wait = if matches!(op, Op::Io(_)) {
                    Wait::Io
                } else {
                    Wait::Lock
                };
                // The device interrupts some CPU.
                let on = self.draw.below(self.cpus.len() as u32) as usize;
                self.arm(on, now, cur, length);
                let state = sleep_state(self.tasks[slot].wait);
                self.fall_asleep(sink, c, now, state);
            }
            Op::Yield => self.give_way(sink, c, now),
            Op::Fork(program, arg) => {
                self.fork(sink, c, now, cur, program, arg, crate::fork::Kind::Fork)
            }
            Op::Vfork(program, arg) => {
                self.fork(sink, c, now, cur, program, arg, crate::fork::Kind::Vfork)
            }
            Op::Thread(program, arg) => {
                self.fork(sink, c, now, cur, program, arg, crate::fork::Kind::Thread)
            }
            Op::Exec(image) => self.begin_exec(c, now, cur, image),
            Op::Wait | Op::WaitAll => self.wait_child(sink, c, now, cur, op == Op::WaitAll),
            Op::Post(chan) => self.post(sink, c, now, cur, chan),
            Op::Take(chan) => self.take(sink, c, now, cur, chan, None),
            Op::TakeFor(chan, span) => {
                let length = self.draw.length(span);
                self.take(sink, c, now, cur, chan, Some(length));
            }
            Op::Poke => {
                if let Some(other) = self.any_task(|task| task.state & raw::INTERRUPTIBLE != 0) {
                    self.wake(sink, c, now, other, raw::INTERRUPTIBLE, false);
                }
                self.proceed(c, now);
            }
            Op::Rename => {
                self.rename_count += 1;
                let comm = Comm::new(format!("name{}", self.rename_count).as_bytes());
                let stamp = self.stamp(now);
                let ended = stamp >= self.end;
                let task = &mut self.tasks[slot];
                if !ended {
                    task.comm = comm;
                }
                if self.attached && task.followed {
                    let tgid = Tgid(self.processes[task.process as usize].tgid);
                    let rename = Rename {
                        tid: Tid(task.tid),
                        tgid,
                        comm,
                    };
                    self.emit_life(sink, c, stamp, LifeKind::Rename(rename));
                }
                self.proceed(c, now);
            }
            Op::MoveCgroup => {
                let cgroup = Machine::cgroup(self.draw.below(self.cfg.world.cgroups.max(1)));
                let stamp = self.stamp(now);
                let ended = stamp >= self.end;
                let process = &mut self.processes[self.tasks[slot].process as usize];
                if !ended {
                    process.cgroup = cgroup;
                }
                if self.attached && process.followed {
                    let moved = CgroupMove {
                        tid: Tid(process.tgid),
                        tgid: Tgid(process.tgid),
                        cgroup,
                    };
                    self.emit_life(sink, c, stamp, LifeKind::CgroupMove(moved));
                }
                self.proceed(c, now);
            }
            Op::Kill => {
                if let Some(other) = self.any_process(cur) {
                    let process = &mut self.processes[other as usize];
                    if process.group_exit.is_none() {
                        process.group_exit = Some(9);
                        self.signal_threads(cur, other, |name| Step::Kill(name, 9));
                    }
                }
                self.proceed(c, now);
            }
            Op::Stop => {
                if let Some(other) = self.any_process(cur) {
                    let process = &mut self.processes[other as usize];
                    if process.group_exit.is_none() && !process.stopped {
                        process.stopped = true;
                        self.signal_threads(cur, other, Step::Stop);
                    }
                }
                self.proceed(c, now);
            }
            Op::Continue => {
                let start = self.draw.below(self.processes.len() as u32) as usize;
                let count = self.processes.len();
                let stopped = (0..count.min(64)).map(|i| (start + i) % count);
                let stopped = stopped
                    .into_iter()
                    .find(|&p| self.processes[p].stopped && !self.processes[p].gone);
                if let Some(other) = stopped {
                    self.processes[other].stopped = false;
                    self.signal_threads(cur, other as u32, Step::Continue);
                }
                self.proceed(c, now);
            }
            Op::Pick(mix) => {
                let mix = &self.mixes[usize::from(mix)];
                let sum = mix.last().map_or(0, |(sum, _)| *sum);
                let dice = self.draw.below(sum);
                let picked = mix.iter().find(|(upto, _)| dice < *upto).map(|(_, op)| *op);
                match picked {
                    Some(Op::Pick(_) | Op::Repeat { .. } | Op::Goto(_)) | None => {
                        self.proceed(c, now)
                    }
                    Some(op) => self.do_op(sink, c, now, cur, op),
                }
            }
            Op::Repeat { .. } | Op::Goto(_) => {
                self.tasks[slot].pc -= 1;
                self.proceed(c, now);
            }
            Op::Exit(code) => {
                self.tasks[slot].exit_code = u32::from(code) << 8;
                self.begin_exit(c, now, slot);
            }
            Op::ExitGroup(code) => self.exit_group(c, now, slot, u32::from(code) << 8),
        }
    }

    fn is_childless(&self, slot: usize) -> bool {
        let process = &self.processes[self.tasks[slot].process as usize];
        process.children.is_empty() && process.zombies.is_empty()
    }

    fn wait_child<S: Sink>(&mut self, sink: &mut S, c: usize, now: u64, cur: u32, all: bool) {
        let process = self.tasks[cur as usize].process;
        let childless = self.is_childless(cur as usize);
        if let Some(zombie) = self.processes[process as usize].zombies.pop() {
            self.reap(zombie, now);
            if all {
                self.tasks[cur as usize].pc -= 1;
            }
            self.proceed(c, now);
        } else if childless {
            self.proceed(c, now);
        } else {
            self.tasks[cur as usize].pc -= 1;
            self.tasks[cur as usize].wait = Wait::Child;
            let name = self.name(cur);
            let waiters = &mut self.processes[process as usize].waiters;
            if !waiters.contains(&name) {
                waiters.push(name);
            }
            self.fall_asleep(sink, c, now, raw::INTERRUPTIBLE);
        }
    }

    fn channel(&self, cur: u32, chan: Chan) -> u16 {
        let arg = self.tasks[cur as usize].arg as usize;
        let index = usize::from(chan.base) + usize::from(chan.stride) * arg;
        index.min(self.channels.len() - 1) as u16
    }

    fn post<S: Sink>(&mut self, sink: &mut S, c: usize, now: u64, cur: u32, chan: Chan) {
        let chan = self.channel(cur, chan);
        let mut woken = false;
        while let Some(name) = self.channels[usize::from(chan)].waiters.pop_front() {
            let Some(waiter) = self.find(name) else {
                continue;
            };
            let task = &mut self.tasks[waiter as usize];
            let waits = matches!(task.wait, Wait::Chan { chan: on, .. } if on == chan);
            if waits && !task.done && task.killed.is_none() {
                task.done = true;
                self.wake(sink, c, now, waiter, raw::NORMAL, false);
                woken = true;
                break;
            }
        }
        if !woken {
            self.channels[usize::from(chan)].count += 1;
        }
        self.proceed(c, now);
    }

    fn take<S: Sink>(
        &mut self,
        sink: &mut S,
        c: usize,
        now: u64,
        cur: u32,
        chan: Chan,
        timeout: Option<u64>,
    ) {
        let chan = self.channel(cur, chan);
        let channel = &mut self.channels[usize::from(chan)];
        if channel.count > 0 {
            channel.count -= 1;
            self.proceed(c, now);
            return;
        }
        let name = self.name(cur);
        self.channels[usize::from(chan)].waiters.push_back(name);
        self.tasks[cur as usize].wait = Wait::Chan {
            chan,
            timeout: timeout.is_some(),
        };
        if let Some(length) = timeout {
            self.arm(c, now, cur, length);
        }
        self.fall_asleep(sink, c, now, raw::INTERRUPTIBLE);
    }

    /// Some task for which `fits`; a few are tried.
    fn any_task(&mut self, fits: impl Fn(&crate::task::Task) -> bool) -> Option<u32> {
        (0..8)
            .map(|_| self.draw.below(self.tasks.len() as u32))
            .collect::<Vec<_>>()
            .into_iter()
            .find(|&slot| {
                let task = &self.tasks[slot as usize];
                !matches!(task.place, Place::Dead | Place::New) && fits(task)
            })
    }

    /// Some other process that may be sent signals.
    fn any_process(&mut self, cur: u32) -> Option<u32> {
        let own = self.tasks[cur as usize].process;
        let follow_all = self.follow_all;
        let slot = self.any_task(|task| {
            (task.followed || follow_all) && !task.exiting && task.process != own
        })?;
        let process = self.tasks[slot as usize].process;
        let at = &self.processes[process as usize];
        let free = !at.gone && !at.kthread && at.execing.is_none() && at.serial != self.root_serial;
        free.then_some(process)
    }

    /// Gives the current task a step for each thread of a process.
    pub(crate) fn signal_threads(&mut self, cur: u32, process: u32, step: impl Fn(Ref) -> Step) {
        for i in 0..self.processes[process as usize].threads.len() {
            let slot = self.processes[process as usize].threads[i];
            if slot != cur && !self.tasks[slot as usize].exiting {
                let name = self.name(slot);
                self.tasks[cur as usize].steps.push(step(name));
            }
        }
    }
}

/// The state in which a task waits for this.
pub(crate) fn sleep_state(wait: Wait) -> u16 {
    match wait {
        Wait::Io => raw::UNINTERRUPTIBLE,
        Wait::Lock => raw::UNINTERRUPTIBLE,
        Wait::Vfork(_) => raw::UNINTERRUPTIBLE | raw::WAKEKILL | raw::FREEZABLE,
        Wait::DeThread => raw::UNINTERRUPTIBLE | raw::WAKEKILL,
        Wait::Timer => raw::INTERRUPTIBLE | raw::FREEZABLE,
        Wait::Nothing | Wait::Chan { .. } | Wait::Child => raw::INTERRUPTIBLE,
    }
}
