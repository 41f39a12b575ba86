//! Does the next action of a simulated CPU's current task: a step that the kernel does for the task, a signal, or the
//! next operation of the task's program.

use tr_format::event::{CgroupMove, Comm, LifeKind, Rename, Tgid, Tid};

use crate::fork::{Child, ForkKind};
use crate::machine::{Machine, Turn};
use crate::process::cgroup;
use crate::program::{ns, Chan, Op};
use crate::progress::sleep_state;
use crate::sched::Out;
use crate::task::{raw, Place, Ref, Step, Task, Wait, IDLE_TASK};

impl Machine {
    /// Does the next action of the task that runs on the simulated CPU.
    pub(crate) fn act(&mut self, turn: Turn) {
        let slot = turn.cur;
        if slot == IDLE_TASK {
            self.cpus[turn.cpu].op_at = crate::agenda::NEVER;
            return;
        }
        let task = &mut self.tasks[slot];
        if task.committed {
            task.committed = false;
            self.switch(turn, Out::Sleep);
            return;
        }
        if task.scheduling {
            task.scheduling = false;
            // A waking or a fatal signal (`signal_wake_up`) has come after the task set its sleep state, so the task
            // does not sleep.
            if task.state == raw::RUNNING {
                self.give_way(turn);
            } else if self.draw.chance(self.cfg.kernel.late_stamp) {
                self.tasks[slot].committed = true;
                self.cpus[turn.cpu].hold = true;
                self.cpus[turn.cpu].op_at = turn.now + self.draw.length(ns(100, 3_000));
            } else {
                self.switch(turn, Out::Sleep);
            }
            return;
        }
        if let Some(step) = task.steps.pop() {
            self.do_step(turn, step);
            return;
        }
        if task.killed.is_some() {
            self.end_wait(slot);
            self.begin_exit(turn);
            return;
        }
        if task.stopping {
            task.stopping = false;
            task.state = raw::STOPPED | raw::WAKEKILL;
            self.switch(turn, Out::Sleep);
            return;
        }
        if task.wait != Wait::Nothing {
            if task.done {
                self.end_wait(slot);
                self.proceed(turn);
            } else {
                let state = sleep_state(task.wait);
                self.fall_asleep(turn, state);
            }
            return;
        }
        let program = &self.cfg.world.programs[usize::from(task.program)];
        let op = program
            .get(usize::from(task.pc))
            .copied()
            .unwrap_or(Op::ExitGroup(0));
        task.pc = task.pc.saturating_add(1);
        self.do_op(turn, op);
    }

    /// Does one operation of the program of the task that runs on the simulated CPU.
    fn do_op(&mut self, turn: Turn, op: Op) {
        let cur = turn.cur;
        let fork = |kind, program, arg| Child { kind, program, arg };
        match op {
            Op::Run(span) => self.cpus[turn.cpu].op_at = turn.now + self.draw.length(span),
            Op::Sleep(span) => {
                let until = turn.now + self.draw.length(span);
                self.wait_until(turn, Wait::Timer, turn.cpu, until);
            }
            Op::Io(span) | Op::Lock(span) => {
                let until = turn.now + self.draw.length(span);
                let io = matches!(op, Op::Io(_));
                // The interrupt of the device comes on a random CPU.
                let on = self.draw.below(self.cpus.len() as u32) as usize;
                self.wait_until(turn, if io { Wait::Io } else { Wait::Lock }, on, until);
            }
            Op::Yield => self.give_way(turn),
            Op::Fork(program, arg) => self.fork(turn, fork(ForkKind::Fork, program, arg)),
            Op::Vfork(program, arg) => self.fork(turn, fork(ForkKind::Vfork, program, arg)),
            Op::Thread(program, arg) => self.fork(turn, fork(ForkKind::Thread, program, arg)),
            Op::Exec(image) => self.begin_exec(turn, image),
            Op::Wait | Op::WaitAll => self.wait_child(turn, op == Op::WaitAll),
            Op::Post(chan) => self.post(turn, chan),
            Op::Take(chan) => self.take(turn, chan, None),
            Op::TakeFor(chan, span) => {
                let until = turn.now + self.draw.length(span);
                self.take(turn, chan, Some(until));
            }
            Op::Poll(chan, otherwise) => {
                let chan = self.channel(cur, chan);
                match &mut self.channels[usize::from(chan)].count {
                    0 => self.tasks[cur].pc = otherwise,
                    posts => *posts -= 1,
                }
                self.proceed(turn);
            }
            Op::Pick(mix) => self.pick(turn, mix),
            Op::Exit(code) => {
                self.tasks[cur].exit_code = u32::from(code) << 8;
                self.begin_exit(turn);
            }
            Op::ExitGroup(code) => self.exit_group(turn, u32::from(code) << 8),
            Op::Poke => self.poke(turn),
            Op::Rename => self.rename(turn),
            Op::MoveCgroup => self.move_cgroup(turn),
            Op::Kill | Op::Stop => self.signal_other(turn, op == Op::Stop),
            Op::Continue => self.continue_other(turn),
            Op::Repeat { .. } | Op::Goto(_) => {
                self.tasks[cur].pc -= 1;
                self.proceed(turn);
            }
        }
    }

    /// Lets the current simulated task wait until an interrupt comes on CPU `on` at the time
    /// `until`.
    fn wait_until(&mut self, turn: Turn, wait: Wait, on: usize, until: u64) {
        let task = &mut self.tasks[turn.cur];
        task.wait = wait;
        task.limit = until.saturating_sub(turn.now);
        self.arm(on, until, turn.cur);
        self.fall_asleep(turn, sleep_state(wait));
    }

    fn pick(&mut self, turn: Turn, mix: u16) {
        let mix = &self.mixes[usize::from(mix)];
        let sum = mix.last().map_or(0, |(sum, _)| *sum);
        let dice = self.draw.below(sum);
        match mix.iter().find(|(upto, _)| dice < *upto) {
            Some((_, Op::Pick(_) | Op::Repeat { .. } | Op::Goto(_))) | None => self.proceed(turn),
            Some(&(_, op)) => self.do_op(turn, op),
        }
    }

    fn poke(&mut self, turn: Turn) {
        if let Some(other) = self.any_task(|task| task.state & raw::INTERRUPTIBLE != 0) {
            self.wake(turn, other, raw::INTERRUPTIBLE, false);
        }
        self.proceed(turn);
    }

    fn rename(&mut self, turn: Turn) {
        self.rename_count += 1;
        let comm = Comm::new(format!("name{}", self.rename_count).as_bytes());
        let task = &mut self.tasks[turn.cur];
        if turn.stamp < self.end {
            task.comm = comm;
        }
        if self.attached && task.followed {
            let rename = Rename {
                tid: Tid(task.tid),
                tgid: Tgid(self.processes[task.process].tgid),
                comm,
            };
            self.emit_life(turn, LifeKind::Rename(rename));
        }
        self.proceed(turn);
    }

    fn move_cgroup(&mut self, turn: Turn) {
        let cgroup = cgroup(self.draw.below(self.cfg.world.cgroups.max(1)));
        let process = &mut self.processes[self.tasks[turn.cur].process];
        if turn.stamp < self.end {
            process.cgroup = cgroup;
        }
        if self.attached && process.followed {
            let moved = CgroupMove {
                tid: Tid(process.tgid),
                tgid: Tgid(process.tgid),
                cgroup,
            };
            self.emit_life(turn, LifeKind::CgroupMove(moved));
        }
        self.proceed(turn);
    }

    /// Lets the current simulated task kill or stop another process, which is drawn at random.
    fn signal_other(&mut self, turn: Turn, stop: bool) {
        if let Some(other) = self.any_process(turn.cur) {
            let process = &mut self.processes[other];
            if process.group_exit.is_none() && !(stop && process.stopped) {
                if stop {
                    process.stopped = true;
                    self.signal_threads(turn.cur, other, Step::Stop);
                } else {
                    process.group_exit = Some(9);
                    self.signal_threads(turn.cur, other, |name| Step::Kill(name, 9));
                }
            }
        }
        self.proceed(turn);
    }

    /// Lets the current simulated task continue a stopped process.
    fn continue_other(&mut self, turn: Turn) {
        let count = self.processes.len();
        let start = self.draw.below(count);
        let stopped = (0..count.min(64)).map(|i| (start + i) % count).find(|&p| {
            let process = &self.processes[p];
            process.stopped && !process.gone
        });
        if let Some(other) = stopped {
            self.processes[other].stopped = false;
            self.signal_threads(turn.cur, other, Step::Continue);
        }
        self.proceed(turn);
    }

    fn wait_child(&mut self, turn: Turn, all: bool) {
        let task = &mut self.tasks[turn.cur];
        let process = &mut self.processes[task.process];
        let zombie = process.zombies.pop();
        let waits = zombie.is_none() && !process.children.is_empty();
        if waits || zombie.is_some() && all {
            task.pc -= 1;
        }
        if waits {
            task.wait = Wait::Child;
            let name = Ref {
                slot: turn.cur,
                used: task.used,
            };
            if !process.waiters.contains(&name) {
                process.waiters.push(name);
            }
            self.fall_asleep(turn, raw::INTERRUPTIBLE);
            return;
        }
        if let Some(zombie) = zombie {
            self.reap(zombie, turn.now);
        }
        self.proceed(turn);
    }

    fn channel(&self, cur: u32, chan: Chan) -> u16 {
        let arg = self.tasks[cur].arg as usize;
        let index = usize::from(chan.base) + usize::from(chan.stride) * arg;
        index.min(self.channels.len() - 1) as u16
    }

    fn post(&mut self, turn: Turn, chan: Chan) {
        let chan = self.channel(turn.cur, chan);
        let mut woken = false;
        while let Some(name) = self.channels[usize::from(chan)].waiters.pop_front() {
            let Some(waiter) = self.find(name) else {
                continue;
            };
            let task = &mut self.tasks[waiter];
            let waits = [Wait::Chan(chan), Wait::ChanFor(chan)].contains(&task.wait);
            if waits && !task.done && task.killed.is_none() {
                task.done = true;
                self.wake(turn, waiter, raw::NORMAL, false);
                woken = true;
                break;
            }
        }
        if !woken {
            self.channels[usize::from(chan)].count += 1;
        }
        self.proceed(turn);
    }

    /// Lets the current simulated task take one post (one unit of the count that a channel keeps, like a semaphore),
    /// or wait for a post until the time `timeout`. Without a `timeout` the wait has no limit.
    fn take(&mut self, turn: Turn, chan: Chan, timeout: Option<u64>) {
        let chan = self.channel(turn.cur, chan);
        let name = self.name(turn.cur);
        let channel = &mut self.channels[usize::from(chan)];
        if channel.count > 0 {
            channel.count -= 1;
            self.proceed(turn);
            return;
        }
        channel.waiters.push_back(name);
        self.tasks[turn.cur].wait = Wait::Chan(chan);
        if let Some(until) = timeout {
            let task = &mut self.tasks[turn.cur];
            task.wait = Wait::ChanFor(chan);
            task.limit = until.saturating_sub(turn.now);
            self.arm(turn.cpu, until, turn.cur);
        }
        self.fall_asleep(turn, raw::INTERRUPTIBLE);
    }

    /// Draws up to eight simulated tasks at random, and returns the index of the first one for which `fits` is true.
    fn any_task(&mut self, fits: impl Fn(&Task) -> bool) -> Option<u32> {
        let count = self.tasks.len();
        let drawn = [(); 8].map(|()| self.draw.below(count));
        drawn.into_iter().find(|&slot| {
            let task = &self.tasks[slot];
            !matches!(task.place, Place::Dead | Place::New) && fits(task)
        })
    }

    /// Draws at random another simulated process that may get a signal.
    fn any_process(&mut self, cur: u32) -> Option<u32> {
        let own = self.tasks[cur].process;
        let follow_all = self.follow_all;
        let slot = self.any_task(|task| {
            (task.followed || follow_all) && !task.exiting && task.process != own
        })?;
        let process = self.tasks[slot].process;
        let at = &self.processes[process];
        let free = !at.gone && !at.kthread && at.execing.is_none() && at.serial != self.root_serial;
        free.then_some(process)
    }
}
