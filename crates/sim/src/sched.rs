//! Switching, waking, choosing a CPU (kernel/sched/core.c).

use std::cmp::Reverse;

use tr_format::event::{SchedKind, Tid};

use crate::agenda::NEVER;
use crate::cpu::Timer;
use crate::machine::Machine;
use crate::program::ns;
use crate::sink::Sink;
use crate::task::{raw, Bucket, Cause, Place, Ref, Task, Wait, IDLE};

/// Why a task is switched out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Out {
    /// It could have gone on; with the preempt flag, or on the way back to user
    /// mode or by its own will, without.
    Runnable { preempt: bool },
    /// It sleeps in the state that it has set.
    Sleep,
    /// For the last time.
    Dead,
    /// It is the idle task.
    Idle,
}

impl Machine {
    /// A timer or a device: somebody's wait is over.
    pub(crate) fn interrupt<S: Sink>(&mut self, sink: &mut S, c: usize, now: u64) {
        let Some(Reverse(timer)) = self.cpus[c].timers.pop() else {
            return;
        };
        let slot = timer.slot();
        let task = &mut self.tasks[slot as usize];
        if task.waits != timer.waits() || task.done || task.place == Place::Dead {
            return;
        }
        task.done = true;
        if let Wait::Chan { chan, .. } = task.wait {
            let waiters = &mut self.channels[usize::from(chan)].waiters;
            let name = Ref {
                slot,
                used: task.used,
            };
            waiters.retain(|waiter| *waiter != name);
        }
        self.wake(sink, c, now, slot, raw::NORMAL, true);
    }

    /// The current task's wait is to be over after `length`, by an interrupt on
    /// CPU `on`.
    pub(crate) fn arm(&mut self, on: usize, now: u64, slot: u32, length: u64) {
        let waits = self.tasks[slot as usize].waits;
        self.cpus[on]
            .timers
            .push(Reverse(Timer::new(now + length, slot, waits)));
        self.replan(on);
    }

    /// Somebody else should run on this CPU now.
    pub(crate) fn reschedule<S: Sink>(&mut self, sink: &mut S, c: usize, now: u64) {
        let cpu = &mut self.cpus[c];
        cpu.resched_at = NEVER;
        if cpu.queue.is_empty() {
            if cpu.cur == IDLE {
                self.idle_cpus[c / 64] |= 1 << (c % 64);
            }
            return;
        }
        if cpu.cur == IDLE {
            self.switch(sink, c, now, Out::Idle);
            return;
        }
        let task = &mut self.tasks[cpu.cur as usize];
        task.remaining = cpu.op_at.saturating_sub(now).max(1);
        // With its state set it is in the kernel. Else half are caught on their
        // way back to user mode, where `schedule()` is called without the flag.
        let preempt = task.state != raw::RUNNING || self.draw.bits() & 1 == 0;
        self.switch(sink, c, now, Out::Runnable { preempt });
    }

    /// The current task calls `schedule()` while it is runnable.
    pub(crate) fn give_way<S: Sink>(&mut self, sink: &mut S, c: usize, now: u64) {
        if self.cpus[c].queue.is_empty() {
            self.proceed(c, now);
        } else {
            let slot = self.cpus[c].cur;
            self.tasks[slot as usize].remaining = 0;
            self.switch(sink, c, now, Out::Runnable { preempt: false });
        }
    }

    /// From the current task to the next one.
    pub(crate) fn switch<S: Sink>(&mut self, sink: &mut S, c: usize, now: u64, out: Out) {
        let stamp = self.stamp(now);
        let (start, end) = (self.start, self.end);
        let in_span = self.in_span(stamp);
        let attached = self.attached;
        let prev = self.cpus[c].cur;
        let next = match self.cpus[c].queue.pop_front() {
            Some(next) => next,
            None => self.steal(c).unwrap_or(IDLE),
        };
        let (mut prev_tid, mut prev_followed, mut prev_state, mut iowait) =
            (Tid::IDLE, false, 0, false);
        let mut woken_early = false;
        if prev != IDLE {
            let vfork = match self.tasks[prev as usize].wait {
                Wait::Vfork(child) => self.find(child).is_some_and(|child| {
                    let child = &self.tasks[child as usize];
                    child.vfork_seen && child.exited.is_none_or(|exited| exited >= stamp)
                }),
                _ => false,
            };
            let task = &mut self.tasks[prev as usize];
            task.settle(stamp, start, end);
            task.run_time += stamp - task.switched;
            task.switched = stamp;
            task.seen_cpu = c as u16;
            prev_tid = Tid(task.tid);
            prev_followed = task.followed;
            let voluntary;
            match out {
                Out::Runnable { preempt } => {
                    prev_state = task.state;
                    voluntary = false;
                    task.place = Place::Queued;
                    task.bucket = Bucket::RunQueue;
                    task.cause = if attached && (preempt || !task.woken) {
                        Cause::Preempted
                    } else {
                        Cause::Plain
                    };
                }
                Out::Sleep => {
                    prev_state = if task.committed_state == 0 {
                        task.state
                    } else {
                        task.committed_state
                    };
                    task.committed_state = 0;
                    voluntary = true;
                    task.place = Place::Off;
                    task.remaining = 0;
                    (task.bucket, task.cause) =
                        asleep(task, prev_state, vfork && attached, attached);
                    woken_early = std::mem::take(&mut task.woken_early);
                    task.doubt = task.woken;
                }
                Out::Dead => {
                    prev_state = raw::DEAD;
                    voluntary = true;
                    task.place = Place::Dead;
                }
                // Not of a task.
                Out::Idle => voluntary = false,
            }
            // As the BPF program looks: only at one in an uninterruptible state.
            iowait = task.wait == Wait::Io && prev_state & raw::UNINTERRUPTIBLE != 0;
            if voluntary {
                task.nvcsw += 1;
                task.voluntary += u64::from(in_span);
            } else {
                task.nivcsw += 1;
                task.involuntary += u64::from(in_span);
            }
        }
        let (mut next_tid, mut next_followed) = (Tid::IDLE, false);
        if next != IDLE {
            let task = &mut self.tasks[next as usize];
            task.settle(stamp, start, end);
            let off = stamp.min(end).saturating_sub(task.switched.max(start));
            task.max_off_cpu = task.max_off_cpu.max(off);
            task.decide(stamp, start, end);
            task.switched = stamp;
            task.place = Place::OnCpu(c as u16);
            task.bucket = Bucket::OnCpu;
            task.cause = Cause::Plain;
            task.woken = task.vain == stamp;
            if task.seen_cpu != u16::MAX && task.seen_cpu != c as u16 && in_span {
                task.migrations += 1;
            }
            task.seen_cpu = c as u16;
            task.last_cpu = c as u16;
            next_tid = Tid(task.tid);
            next_followed = task.followed;
        }
        let on_cpu = self.clip(self.cpus[c].since, stamp);
        if prev == IDLE {
            self.idle_time += on_cpu;
        } else if !prev_followed {
            self.others_time += on_cpu;
        }
        self.cpus[c].since = stamp;
        if prev_followed != next_followed {
            self.count_running(stamp);
            if next_followed {
                self.running += 1;
            } else {
                self.running -= 1;
            }
        }
        if attached && (self.follow_all || prev_followed || next_followed) {
            let preempt = out == Out::Runnable { preempt: true };
            let kind = SchedKind::Switch {
                prev: prev_tid,
                next: next_tid,
                prev_state,
                preempt,
                iowait,
            };
            self.emit(sink, c, stamp, kind);
        }
        let cpu = &mut self.cpus[c];
        cpu.cur = next;
        cpu.hold = false;
        match out {
            Out::Runnable { .. } => cpu.queue.push_back(prev),
            Out::Sleep if woken_early => {
                let task = &mut self.tasks[prev as usize];
                task.bucket = Bucket::RunQueue;
                task.cause = Cause::Plain;
                let on = self.choose_cpu(prev, c);
                self.enqueue(on, now, prev);
            }
            Out::Dead => self.bury(sink, c, stamp, prev),
            _ => {}
        }
        if next == IDLE {
            let cpu = &mut self.cpus[c];
            cpu.op_at = NEVER;
            if cpu.queue.is_empty() {
                cpu.resched_at = NEVER;
                self.idle_cpus[c / 64] |= 1 << (c % 64);
            } else {
                cpu.resched_at = now + 1;
            }
        } else {
            self.resume(c, now);
        }
    }

    /// Adds the time since the last change to the histogram.
    pub(crate) fn count_running(&mut self, stamp: u64) {
        let length = self.clip(self.running_since, stamp);
        self.running_since = stamp;
        if length > 0 {
            if self.concurrency.len() <= self.running {
                self.concurrency.resize(self.running + 1, 0);
            }
            self.concurrency[self.running] += length;
        }
    }

    /// The task that was just switched in goes on.
    fn resume(&mut self, c: usize, now: u64) {
        let cpu = &mut self.cpus[c];
        cpu.slice_end = now + self.cfg.kernel.slice;
        cpu.resched_at = if cpu.queue.is_empty() {
            NEVER
        } else {
            cpu.slice_end
        };
        let slot = cpu.cur as usize;
        let task = &mut self.tasks[slot];
        if task.remaining > 0 {
            cpu.op_at = now + std::mem::take(&mut task.remaining);
            cpu.hold = task.committed;
        } else if task.wait != Wait::Nothing && task.done && !task.stopping {
            self.end_wait(slot);
            self.proceed(c, now);
        } else if task.wait != Wait::Nothing {
            // A signal, or woken in vain: it looks.
            cpu.op_at = now + 200 + (self.draw.bits() & 0x3ff);
        } else {
            self.proceed(c, now);
        }
    }

    /// It no longer waits.
    pub(crate) fn end_wait(&mut self, slot: usize) {
        let task = &mut self.tasks[slot];
        task.wait = Wait::Nothing;
        task.done = false;
        task.waits = task.waits.wrapping_add(1);
    }

    /// `try_to_wake_up` of `slot` by who runs on CPU `c`, if its state is among
    /// `mask`.
    pub(crate) fn wake<S: Sink>(
        &mut self,
        sink: &mut S,
        c: usize,
        now: u64,
        slot: u32,
        mask: u16,
        irq: bool,
    ) -> bool {
        let stamp = self.stamp(now);
        let (start, end) = (self.start, self.end);
        let task = &mut self.tasks[slot as usize];
        if task.state & mask == 0 || task.place == Place::New {
            return false;
        }
        let state = std::mem::replace(&mut task.state, raw::RUNNING);
        let (wakee, followed, place) = (Tid(task.tid), task.followed, task.place);
        match place {
            Place::OnCpu(_) if task.committed => {
                task.woken_early = true;
                task.woken = self.attached;
                task.committed_state = state;
            }
            Place::OnCpu(_) => task.woken = self.attached,
            Place::Off => {
                task.settle(stamp, start, end);
                task.bucket = Bucket::RunQueue;
                task.cause = Cause::Plain;
                task.decide(stamp, start, end);
                // It may have come before the switch-out just as well, if the
                // stamps are all that one has.
                task.doubt = stamp == task.switched && usize::from(task.seen_cpu) != c;
            }
            Place::Queued if self.attached => task.vain = stamp,
            Place::New | Place::Queued | Place::Dead => {}
        }
        if self.attached {
            let cur = self.cpus[c].cur;
            let waker_followed = cur != IDLE && self.tasks[cur as usize].followed;
            if self.follow_all || followed || waker_followed {
                let waker = self.current_tid(c);
                self.emit(
                    sink,
                    c,
                    stamp,
                    SchedKind::Waking {
                        waker,
                        wakee,
                        irq,
                        new: false,
                        vfork: false,
                    },
                );
            }
        }
        if place == Place::Off {
            let on = self.choose_cpu(slot, c);
            self.enqueue(on, now, slot);
        }
        true
    }

    /// `select_task_rq`, roughly: the last CPU if idle, another idle one, the
    /// last one.
    pub(crate) fn choose_cpu(&mut self, slot: u32, here: usize) -> usize {
        let cpus = self.cpus.len();
        let task = &self.tasks[slot as usize];
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

    /// Into the queue of CPU `on`.
    pub(crate) fn enqueue(&mut self, on: usize, now: u64, slot: u32) {
        self.tasks[slot as usize].place = Place::Queued;
        let cpu = &mut self.cpus[on];
        if cpu.cur == IDLE {
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

    /// A waiting task of another CPU, for one that would be idle.
    fn steal(&mut self, c: usize) -> Option<u32> {
        let cpus = self.cpus.len();
        if cpus == 1 {
            return None;
        }
        let mut victim = self.draw.below(cpus as u32) as usize;
        for _ in 0..cpus.min(4) {
            if victim != c {
                if let Some(&slot) = self.cpus[victim].queue.back() {
                    if self.tasks[slot as usize].pin == u16::MAX {
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

    /// The current task has set its state and goes to sleep.
    pub(crate) fn fall_asleep<S: Sink>(&mut self, sink: &mut S, c: usize, now: u64, state: u16) {
        let slot = self.cpus[c].cur as usize;
        self.tasks[slot].state = state;
        if self.draw.chance(self.cfg.kernel.window) {
            self.tasks[slot].scheduling = true;
            self.cpus[c].op_at = now + self.draw.length(ns(100, 2_000));
        } else {
            self.switch(sink, c, now, Out::Sleep);
        }
    }
}

/// What the time after a switch-out in `state` counts as.
fn asleep(task: &Task, state: u16, vfork: bool, attached: bool) -> (Bucket, Cause) {
    if state & raw::STOPPED != 0 {
        (Bucket::Sleep, Cause::Stopped)
    } else if state & raw::UNINTERRUPTIBLE != 0 {
        let cause = match task.wait {
            Wait::Io if attached => Cause::Io,
            Wait::Vfork(_) if vfork => Cause::Vfork,
            _ => Cause::Plain,
        };
        (Bucket::Blocked, cause)
    } else {
        (Bucket::Sleep, Cause::Plain)
    }
}
