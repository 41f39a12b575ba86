//! Simulates how the kernel switches and wakes tasks and chooses CPUs for them
//! (kernel/sched/core.c).

use std::cmp::Reverse;

use tr_format::event::{Context, Reason, SchedKind, Switch, Timeout, Waking};

use crate::agenda::NEVER;
use crate::cpu::Timer;
use crate::machine::{Machine, Turn};
use crate::program::ns;
use crate::task::{raw, Bucket, Place, Ref, StateCause, Task, Wait, IDLE_TASK};

/// The reason why a simulated task is switched out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Out {
    /// The simulated task is switched out while it is still runnable. `preempt` is false if this
    /// happens on the way back to user mode or by a yield.
    Runnable { preempt: bool },
    /// The simulated task is switched out because it sleeps in the state that it has set.
    Sleep,
    /// The simulated task is switched out for the last time, because it is dead.
    Dead,
    /// The idle task of the simulated CPU is switched out.
    Idle,
}

impl Machine {
    /// Lets an interrupt of a timer or a device end the wait of a simulated task.
    pub(crate) fn interrupt(&mut self, turn: Turn) {
        let Some(Reverse(timer)) = self.cpus[turn.cpu].timers.pop() else {
            return;
        };
        let slot = timer.slot();
        let task = &mut self.tasks[slot];
        if task.waits != timer.waits() || task.done || task.place == Place::Dead {
            return;
        }
        task.done = true;
        if let Wait::ChanFor(chan) = task.wait {
            let waiters = &mut self.channels[usize::from(chan)].waiters;
            let used = task.used;
            waiters.retain(|waiter| *waiter != Ref { slot, used });
        }
        self.wake(turn, slot, raw::NORMAL, true);
    }

    /// Arms a timer of the simulated machine: an interrupt on CPU `on` will end the wait of the task with the index
    /// `slot` at `time`.
    pub(crate) fn arm(&mut self, on: usize, time: u64, slot: u32) {
        let timer = Timer::new(time, slot, self.tasks[slot].waits);
        self.cpus[on].timers.push(Reverse(timer));
        self.replan(on);
    }

    /// Preempts the current simulated task, or ends the idling of the CPU, if a task waits for the CPU.
    pub(crate) fn reschedule(&mut self, turn: Turn) {
        let cpu = &mut self.cpus[turn.cpu];
        cpu.resched_at = NEVER;
        if cpu.queue.is_empty() {
            if cpu.cur == IDLE_TASK {
                self.idle_cpus[turn.cpu / 64] |= 1 << (turn.cpu % 64);
            }
            return;
        }
        if cpu.cur == IDLE_TASK {
            self.switch(turn, Out::Idle);
            return;
        }
        let task = &mut self.tasks[cpu.cur];
        task.remaining = cpu.op_at.saturating_sub(turn.now).max(1);
        // A task that has set its sleep state is still in the kernel. There it is preempted with the flag `preempt`.
        // Half of all other preemptions happen on the way back to user mode, by a `schedule()` without this flag.
        let preempt = task.state != raw::RUNNING || self.draw.bits() & 1 == 0;
        self.switch(turn, Out::Runnable { preempt });
    }

    /// Lets the current simulated task call `schedule()` while it is runnable.
    pub(crate) fn give_way(&mut self, turn: Turn) {
        if self.cpus[turn.cpu].queue.is_empty() {
            self.proceed(turn);
        } else {
            let slot = self.cpus[turn.cpu].cur;
            self.tasks[slot].remaining = 0;
            self.switch(turn, Out::Runnable { preempt: false });
        }
    }

    /// Switches a simulated CPU from its current task to the next one (`__schedule` of the kernel).
    pub(crate) fn switch(&mut self, turn: Turn, out: Out) {
        let prev = self.cpus[turn.cpu].cur;
        let next = match self.cpus[turn.cpu].queue.pop_front() {
            Some(next) => next,
            None => self.steal(turn.cpu).unwrap_or(IDLE_TASK),
        };
        let prev_state = if prev == IDLE_TASK {
            0
        } else {
            self.switch_out(turn, prev, out)
        };
        if next != IDLE_TASK {
            self.switch_in(turn, next);
        }
        self.count_cpu(turn.cpu, prev, turn.stamp);
        let (prev_followed, next_followed) = (self.is_followed(prev), self.is_followed(next));
        if prev_followed != next_followed {
            self.count_running(turn.stamp, if next_followed { 1 } else { -1 });
        }
        if self.attached && (self.follow_all || prev_followed || next_followed) {
            // The flag for block I/O is set only for a task in an uninterruptible state, like in the BPF program of the
            // recorder.
            let iowait =
                prev_state & raw::UNINTERRUPTIBLE != 0 && self.tasks[prev].wait == Wait::Io;
            let reason = match out {
                Out::Sleep => reason(&self.tasks[prev]),
                _ => Reason::Unknown,
            };
            let timeout = match out {
                Out::Sleep => timeout(&self.tasks[prev]),
                _ => Timeout::UNKNOWN,
            };
            let kind = SchedKind::Switch(Switch {
                prev: self.tid(prev),
                next: self.tid(next),
                prev_state,
                preempt: out == Out::Runnable { preempt: true },
                iowait,
                reason,
                timeout,
            });
            self.emit(turn, kind);
        }
        let cpu = &mut self.cpus[turn.cpu];
        cpu.cur = next;
        cpu.hold = false;
        match out {
            Out::Runnable { .. } => cpu.queue.push_back(prev),
            Out::Sleep if std::mem::take(&mut self.tasks[prev].woken_early) => {
                let task = &mut self.tasks[prev];
                task.bucket = Bucket::RunQueue;
                task.cause = StateCause::Plain;
                let on = self.choose_cpu(prev, turn.cpu);
                self.enqueue(on, turn.now, prev);
            }
            Out::Dead => self.bury(turn, prev),
            Out::Sleep | Out::Idle => {}
        }
        if next != IDLE_TASK {
            self.resume(turn);
            return;
        }
        let cpu = &mut self.cpus[turn.cpu];
        cpu.op_at = NEVER;
        if cpu.queue.is_empty() {
            cpu.resched_at = NEVER;
            self.idle_cpus[turn.cpu / 64] |= 1 << (turn.cpu % 64);
        } else {
            cpu.resched_at = turn.now + 1;
        }
    }

    /// Does the part of a simulated switch that concerns the outgoing task. Returns the
    /// `prev_state` of the switch event.
    fn switch_out(&mut self, turn: Turn, prev: u32, out: Out) -> u16 {
        let vfork = match self.tasks[prev].wait {
            Wait::Vfork(child) => self.find(child).is_some_and(|child| {
                let child = &self.tasks[child];
                child.vfork_seen && child.exited.is_none_or(|exited| exited >= turn.stamp)
            }),
            _ => false,
        };
        let in_span = self.in_span(turn.stamp);
        let task = &mut self.tasks[prev];
        task.settle(turn.stamp, self.start, self.end);
        task.run_time += turn.stamp - task.switched;
        task.switched = turn.stamp;
        task.seen_cpu = turn.cpu as u16;
        let prev_state = match out {
            Out::Runnable { preempt } => {
                task.place = Place::Queued;
                task.bucket = Bucket::RunQueue;
                task.cause = if self.attached && (preempt || !task.woken) {
                    StateCause::Preempted
                } else {
                    StateCause::Plain
                };
                task.state
            }
            Out::Sleep => {
                let committed = std::mem::take(&mut task.committed_state);
                let state = if committed == 0 {
                    task.state
                } else {
                    committed
                };
                task.place = Place::Off;
                task.remaining = 0;
                (task.bucket, task.cause) =
                    asleep(task, state, vfork && self.attached, self.attached);
                task.doubt = task.woken;
                state
            }
            Out::Dead => {
                task.place = Place::Dead;
                raw::DEAD
            }
            Out::Idle => 0,
        };
        if matches!(out, Out::Runnable { .. }) {
            task.nivcsw += 1;
            task.sums.involuntary += u64::from(in_span);
        } else {
            task.nvcsw += 1;
            task.sums.voluntary += u64::from(in_span);
        }
        prev_state
    }

    /// Does the part of a simulated switch that concerns the incoming task.
    fn switch_in(&mut self, turn: Turn, next: u32) {
        let (start, end, cpu) = (self.start, self.end, turn.cpu as u16);
        let in_span = self.in_span(turn.stamp);
        let task = &mut self.tasks[next];
        task.settle(turn.stamp, start, end);
        let off = turn.stamp.min(end).saturating_sub(task.switched.max(start));
        task.max_off_cpu = task.max_off_cpu.max(off);
        task.decide(turn.stamp, start, end);
        task.switched = turn.stamp;
        task.place = Place::OnCpu(cpu);
        task.bucket = Bucket::OnCpu;
        task.cause = StateCause::Plain;
        task.woken = task.vain == turn.stamp;
        if task.seen_cpu != u16::MAX && task.seen_cpu != cpu && in_span {
            task.migrations += 1;
        }
        task.seen_cpu = cpu;
        task.last_cpu = cpu;
    }

    /// Lets the simulated task that was just switched in continue with its program or its wait.
    fn resume(&mut self, turn: Turn) {
        let cpu = &mut self.cpus[turn.cpu];
        cpu.slice_end = turn.now + self.cfg.kernel.slice;
        cpu.resched_at = if cpu.queue.is_empty() {
            NEVER
        } else {
            cpu.slice_end
        };
        let slot = cpu.cur;
        let task = &mut self.tasks[slot];
        if task.remaining > 0 {
            cpu.op_at = turn.now + std::mem::take(&mut task.remaining);
            cpu.hold = task.committed;
        } else if task.wait != Wait::Nothing && task.done && !task.stopping {
            self.end_wait(slot);
            self.proceed(turn);
        } else if task.wait != Wait::Nothing {
            // A signal or a spurious wake-up has woken the task, although its wait is not over. The task runs briefly
            // to check this, and sleeps again.
            cpu.op_at = turn.now + 200 + (self.draw.bits() & 0x3ff);
        } else {
            self.proceed(turn);
        }
    }

    /// Ends the wait of the simulated task with this index in the table of tasks.
    pub(crate) fn end_wait(&mut self, slot: u32) {
        let task = &mut self.tasks[slot];
        task.wait = Wait::Nothing;
        task.done = false;
        task.waits = task.waits.wrapping_add(1);
    }

    /// Wakes the simulated task with the index `slot` if its state is among `mask` (`try_to_wake_up` of the kernel).
    /// With `irq` an interrupt wakes the task, otherwise the task that runs on this CPU does. Returns whether the task
    /// was woken.
    pub(crate) fn wake(&mut self, turn: Turn, slot: u32, mask: u16, irq: bool) -> bool {
        let (start, end) = (self.start, self.end);
        let task = &mut self.tasks[slot];
        if task.state & mask == 0 || task.place == Place::New {
            return false;
        }
        let state = std::mem::replace(&mut task.state, raw::RUNNING);
        let place = task.place;
        match place {
            Place::OnCpu(_) if task.committed => {
                task.woken_early = true;
                task.woken = self.attached;
                task.committed_state = state;
            }
            Place::OnCpu(_) => task.woken = self.attached,
            Place::Off => {
                task.settle(turn.stamp, start, end);
                task.bucket = Bucket::RunQueue;
                task.cause = StateCause::Plain;
                task.decide(turn.stamp, start, end);
                // If the waking and the switch-out have the same time stamp but are in the rings of different CPUs, the
                // recording does not show which of them came first.
                task.doubt = turn.stamp == task.switched && usize::from(task.seen_cpu) != turn.cpu;
            }
            Place::Queued if self.attached => task.vain = turn.stamp,
            Place::New | Place::Queued | Place::Dead => {}
        }
        self.emit_waking(turn, slot, irq, false);
        if place == Place::Off {
            let on = self.choose_cpu(slot, turn.cpu);
            self.enqueue(on, turn.now, slot);
        }
        true
    }

    /// Emits the event of a waking in the simulation. `new` is whether it is the first waking of a
    /// new task.
    pub(crate) fn emit_waking(&mut self, turn: Turn, wakee: u32, irq: bool, new: bool) {
        let waker = self.cpus[turn.cpu].cur;
        let recorded = self.follow_all || self.is_followed(wakee) || self.is_followed(waker);
        if self.attached && recorded {
            let context = match self.tasks[wakee].wait {
                Wait::Io if irq => Context::SoftIrq,
                _ if irq => Context::HardIrq,
                _ => Context::Task,
            };
            let kind = SchedKind::Waking(Waking {
                waker: self.tid(waker),
                wakee: self.tid(wakee),
                context,
                new,
                vfork: new && self.tasks[wakee].vfork_parent.is_some(),
            });
            self.emit(turn, kind);
        }
    }

    /// Chooses the CPU for a woken simulated task by a simple form of the kernel's `select_task_rq`: the only CPU that
    /// the task may use, or else the task's last CPU if that is idle, or else mostly another idle CPU, or else mostly
    /// the task's last CPU. `here` is the CPU of the waker.
    pub(crate) fn choose_cpu(&mut self, slot: u32, here: usize) -> usize {
        let cpus = self.cpus.len();
        let task = &self.tasks[slot];
        if task.pin != u16::MAX {
            return usize::from(task.pin).min(cpus - 1);
        }
        if cpus == 1 {
            return 0;
        }
        let last = if task.last_cpu == u16::MAX {
            here
        } else {
            usize::from(task.last_cpu)
        };
        if self.idle_cpus[last / 64] & (1 << (last % 64)) != 0 {
            return last;
        }
        let dice = self.draw.bits();
        if dice & 7 != 0 {
            for word in 0..4 {
                let word = (here / 64 + word) % 4;
                if self.idle_cpus[word] != 0 {
                    return word * 64 + self.idle_cpus[word].trailing_zeros() as usize;
                }
            }
        }
        match (dice >> 3) & 7 {
            0 => self.draw.below(cpus as u32) as usize,
            1 | 2 => here,
            _ => last,
        }
    }

    /// Puts the simulated task with the index `slot` into the run queue of CPU `on`.
    pub(crate) fn enqueue(&mut self, on: usize, now: u64, slot: u32) {
        self.tasks[slot].place = Place::Queued;
        let cpu = &mut self.cpus[on];
        if cpu.cur == IDLE_TASK {
            cpu.queue.push_back(slot);
            self.idle_cpus[on / 64] &= !(1 << (on % 64));
            let latency = 300 + (self.draw.bits() & 0x7ff);
            cpu.resched_at = cpu.resched_at.min(now + latency);
        } else if self.draw.chance(self.cfg.kernel.preempt) {
            cpu.queue.push_front(slot);
            cpu.resched_at = cpu.resched_at.min(now + 100 + (self.draw.bits() & 0x3ff));
        } else {
            cpu.queue.push_back(slot);
            if cpu.resched_at == NEVER {
                cpu.resched_at = cpu.slice_end.max(now + 1);
            }
        }
        self.replan(on);
    }

    /// Finds work for a simulated CPU that would otherwise be idle: takes a task from the run queue of another CPU.
    fn steal(&mut self, c: usize) -> Option<u32> {
        let cpus = self.cpus.len();
        if cpus == 1 {
            return None;
        }
        let mut victim = self.draw.below(cpus as u32) as usize;
        for _ in 0..cpus.min(4) {
            if victim != c {
                if let Some(&slot) = self.cpus[victim].queue.back() {
                    if self.tasks[slot].pin == u16::MAX {
                        self.cpus[victim].queue.pop_back();
                        return Some(slot);
                    }
                }
            }
            victim += 1;
            if victim == cpus {
                victim = 0;
            }
        }
        None
    }

    /// Notes that the current simulated task has set its state and goes to sleep.
    pub(crate) fn fall_asleep(&mut self, turn: Turn, state: u16) {
        let slot = self.cpus[turn.cpu].cur;
        self.tasks[slot].state = state;
        if self.draw.chance(self.cfg.kernel.window) {
            self.tasks[slot].scheduling = true;
            self.cpus[turn.cpu].op_at = turn.now + self.draw.length(ns(100, 2_000));
        } else {
            self.switch(turn, Out::Sleep);
        }
    }
}

/// The system call in which a simulated task sleeps, as its switch event reports it.
fn reason(task: &Task) -> Reason {
    match task.wait {
        Wait::Nothing => Reason::Unknown,
        Wait::Timer => Reason::Timer,
        Wait::Io => Reason::FileRead,
        Wait::Lock => Reason::Memory,
        Wait::Chan(_) => Reason::PipeRead,
        Wait::ChanFor(_) => Reason::Poll,
        Wait::Child => Reason::Child,
        Wait::Vfork(_) => Reason::Clone,
        Wait::DeThread => Reason::Exec,
    }
}

/// The time-out of the system call in which a simulated task sleeps.
fn timeout(task: &Task) -> Timeout {
    match task.wait {
        Wait::Timer | Wait::ChanFor(_) => Timeout::after(task.limit),
        _ => Timeout::UNKNOWN,
    }
}

/// The account to which the time of a simulated task is added after a switch-out in `state`, and
/// the cause of this time.
fn asleep(task: &Task, state: u16, vfork: bool, attached: bool) -> (Bucket, StateCause) {
    if state & raw::STOPPED != 0 {
        (Bucket::Sleep, StateCause::Stopped)
    } else if state & raw::UNINTERRUPTIBLE != 0 {
        let cause = match task.wait {
            Wait::Io if attached => StateCause::Io,
            Wait::Vfork(_) if vfork => StateCause::Vfork,
            _ => StateCause::Plain,
        };
        (Bucket::Blocked, cause)
    } else {
        (Bucket::Sleep, StateCause::Plain)
    }
}
