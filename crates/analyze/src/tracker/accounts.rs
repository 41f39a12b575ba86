//! Handles recordings without scheduling events, in which the times of a task are differences between successive
//! totals that the kernel keeps for it.
//!
//! ```text
//! fork        account       account, end
//! |-- unknown ->|-- unknown ---->|       the state at a moment is never known
//!  run time, run delay, and the rest: asleep or blocked
//! ```

use tr_format::event::{Account, Argv, Ktime, TaskEnd, Tid};

use super::readings::{LastAccount, Reading};
use super::task::Exited;
use super::{ProcIx, TaskIx, Tracker};
use crate::model::{Basis, ByKernel, KernelFigures};
use crate::state::{Ended, State, StateTimes};
use crate::timeline::Sample;

fn figures(last: &Reading) -> KernelFigures {
    KernelFigures {
        sum_exec_runtime: last.run_time,
        run_delay: last.run_delay,
        is_final: true,
        ..KernelFigures::default()
    }
}

impl Tracker {
    /// Starts the account of a new task: its totals are 0 at its fork.
    pub(super) fn open_account(&mut self, ix: TaskIx, time: Ktime) {
        if self.basis == Basis::Events {
            return;
        }
        let none = Reading {
            time,
            run_time: 0,
            run_delay: Some(0),
        };
        let account = LastAccount::new(none, true);
        self.accounts.insert(ix, account);
    }

    /// Prepares a process's tasks for the next program that the process executes. The times of a task come from
    /// readings of the kernel's totals. Times up to the last reading belong to the earlier programs. Before its first
    /// program, a process is a copy of its parent, and the time as a copy counts as time of the first program.
    pub(super) fn keep_accounts_of(&mut self, process: ProcIx, time: Ktime) {
        if self.basis == Basis::Events {
            return;
        }
        let process = &self.processes[process];
        let is_copy = process.execs.is_empty();
        for ix in &process.threads {
            if let Some(account) = self.accounts.get_mut(ix) {
                let mut first = account.rest();
                if is_copy && account.first == account.last {
                    first.time = time;
                }
                *account = LastAccount {
                    usable: account.usable && first.time == time,
                    ..LastAccount::new(first, account.whole)
                };
            }
        }
    }

    /// Adds what a living task has done since the previous reading of its totals. The times in each state are known
    /// then, but not their order.
    pub(super) fn account_totals(&mut self, time: Ktime, account: &Account) {
        let Some(ix) = self.task(account.tid) else {
            return;
        };
        if self.basis == Basis::Events {
            return;
        }
        if self.tasks[ix].is_dead() {
            return self.last_totals(ix, account);
        }
        self.enter(ix, time, State::Unknown, Ended::Otherwise);
        let now = Reading {
            time,
            run_time: account.sum_exec_runtime,
            run_delay: account.run_delay,
        };
        let before = self.accounts.get(&ix).copied();
        let whole = before.is_some_and(|before| before.whole);
        let inside = |before: &LastAccount| before.first.time >= self.start && time <= self.end;
        let account = match before.filter(|before| before.usable && inside(before)) {
            Some(before) => self.spend_totals(ix, before, now),
            None => LastAccount::new(now, whole),
        };
        self.accounts.insert(ix, account);
    }

    /// Adds what a task has done until its end, from its last totals. The kernel reports them when it releases the
    /// task.
    fn last_totals(&mut self, ix: TaskIx, account: &Account) {
        let Some(end) = self.tasks[ix].end.filter(|end| *end <= self.end) else {
            return;
        };
        let last = Reading {
            time: end,
            run_time: account.sum_exec_runtime,
            run_delay: account.run_delay,
        };
        let before = self.accounts.get(&ix).copied();
        let known = before.map_or(0, |before| before.last.run_time);
        let known = known.max(
            self.tasks[ix]
                .kernel
                .map_or(0, |kernel| kernel.sum_exec_runtime),
        );
        if account.sum_exec_runtime < known {
            return; // from before its end, or of another task
        }
        let inside = |before: &LastAccount| before.first.time >= self.start;
        if let Some(before) = before.filter(|before| before.usable && inside(before)) {
            let now = self.spend_totals(ix, before, last);
            self.accounts.insert(ix, now);
            if !self.tasks[ix].owes {
                self.owe(ix);
            }
        }
        if before.is_some_and(|before| before.whole) {
            self.tasks[ix].kernel = Some(figures(&last));
        }
    }

    /// Splits the time of a task since its present program began into states, by the growth of the task's totals.
    /// The totals of a running task lag by up to a tick, so a later result replaces an earlier one.
    fn spend_totals(&mut self, ix: TaskIx, before: LastAccount, now: Reading) -> LastAccount {
        let LastAccount { first, spent, .. } = before;
        let ran = now.run_time.saturating_sub(first.run_time);
        let delays = now.run_delay.zip(first.run_delay);
        let waited = delays.map_or(0, |(now, first)| now.saturating_sub(first));
        // With --cpu, the time stays unknown, because the totals do not show on which CPU the task ran.
        if self.only.is_some() {
            return LastAccount {
                last: now,
                ..before
            };
        }
        let task = &mut self.tasks[ix];
        task.times.give_to_unknown(&spent);
        let length = now.time.since(first.time).min(task.times.unknown);
        let known = self.basis == Basis::Totals && delays.is_some();
        let part = StateTimes::by_totals(length, ran, waited, known);
        task.times.take_from_unknown(&part);
        let grown = part.since(&spent);
        task.by_kernel.add(&ByKernel::of(&grown));
        let sample = Sample {
            from: before.last.time,
            to: now.time,
            on_cpu: grown.on_cpu,
            run_queue: grown.run_queue,
            off_cpu: if known { u64::MAX } else { 0 },
        };
        if self.timeline.is_some() && sample.length() > 0 {
            Sample::push(self.samples.entry(ix).or_default(), sample);
        }
        LastAccount {
            last: now,
            spent: part,
            ..before
        }
    }

    /// Notes that the recorder no longer follows a task, so that the rest of its life is unknown.
    pub(super) fn detach(&mut self, time: Ktime, tid: Tid) {
        if let Some(ix) = self.task(tid).filter(|ix| !self.tasks[*ix].is_dead()) {
            self.enter(ix, time, State::Unknown, Ended::Otherwise);
            self.accounts.remove(&ix);
        }
    }

    /// Ends a task. The event comes from a recorder without scheduling events.
    pub(super) fn end(&mut self, time: Ktime, end: &TaskEnd) {
        let ix = match self.task(end.tid) {
            _ if time >= self.end => return,
            Some(ix) if !self.tasks[ix].is_dead() => ix,
            None if self.open() => self.appear(end.tid, end.tgid, time),
            _ => return,
        };
        self.settle(ix, end.tgid, None, Argv::default());
        let task = &mut self.tasks[ix];
        task.exit = Some(Exited {
            status: end.status,
            ..Exited::default()
        });
        task.exited = Some(time);
        // If the totals were last read when the task ended, the task's account is complete. Otherwise a later event has
        // the last totals.
        let last = |account: &&LastAccount| account.last.time == time;
        if let Some(last) = self.accounts.get(&ix).filter(last).copied() {
            self.accounts.remove(&ix);
            task.kernel = last.whole.then(|| figures(&last.last));
        }
        if end.group_dead {
            self.end_process(ix, end.status, (end.max_rss, None));
        }
        self.end_task(ix, time);
    }
}
