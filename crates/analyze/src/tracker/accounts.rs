//! Recordings without scheduling events: a task's times are the differences of its totals.
//!
//! ```text
//! fork        account       account, end
//! |-- unknown ->|-- unknown ---->|       the state at a moment is never known
//!  run time, run delay, and the rest: asleep or blocked
//! ```

use tr_format::event::{Account, Argv, Ktime, TaskEnd, Tid};

use super::task::Exited;
use super::{ProcIx, TaskIx, Tracker};
use crate::model::{Basis, KernelFigures};
use crate::state::{Ended, State, StateTimes};

/// A task's totals at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LastAccount {
    time: Ktime,
    run_time: u64,
    run_delay: Option<u64>,
    /// Totals beyond the time between two accounts: the recorder stamps a fork after the
    /// child has begun to run.
    ahead: (u64, u64),
    /// The totals count from the task's fork.
    whole: bool,
    /// Up to this account the differences are known to belong to the present program.
    usable: bool,
}

impl Tracker {
    /// A new task has used nothing.
    pub(super) fn open_account(&mut self, ix: TaskIx, time: Ktime) {
        if self.basis == Basis::Events {
            return;
        }
        let account = LastAccount {
            time,
            run_time: 0,
            run_delay: Some(0),
            ahead: (0, 0),
            whole: true,
            usable: true,
        };
        self.accounts.insert(ix, account);
    }

    /// A program begins: totals from before it, which no account has divided, cannot be
    /// divided between the programs by a later account.
    pub(super) fn keep_accounts_of(&mut self, process: ProcIx, time: Ktime) {
        if self.basis == Basis::Events {
            return;
        }
        for ix in &self.processes[process].threads {
            if let Some(account) = self.accounts.get_mut(ix) {
                account.usable &= account.time == time;
            }
        }
    }

    /// A task's totals: the time since those before is known, though not its order.
    pub(super) fn account_totals(&mut self, time: Ktime, account: &Account) {
        let Some(ix) = self.task(account.tid) else {
            return;
        };
        if self.basis == Basis::Events || self.tasks[ix].is_dead() {
            return;
        }
        self.enter(ix, time, State::Unknown, Ended::Otherwise);
        let before = self.accounts.get(&ix).copied();
        let mut now = LastAccount {
            time,
            run_time: account.sum_exec_runtime,
            run_delay: account.run_delay,
            ahead: (0, 0),
            whole: before.is_some_and(|before| before.whole),
            usable: true,
        };
        let inside = |before: &LastAccount| before.time >= self.start && time <= self.end;
        if let Some(before) = before.filter(|before| before.usable && inside(before)) {
            now.ahead = self.spend_totals(ix, &before, &now);
        }
        self.accounts.insert(ix, now);
    }

    /// Divides the time between two accounts. Returns the totals that exceed it.
    fn spend_totals(&mut self, ix: TaskIx, before: &LastAccount, now: &LastAccount) -> (u64, u64) {
        let grown =
            |now: u64, before: u64, ahead: u64| now.saturating_sub(before).saturating_add(ahead);
        let ran = grown(now.run_time, before.run_time, before.ahead.0);
        let delays = now.run_delay.zip(before.run_delay);
        let waited = delays.map_or(0, |(now, before_delay)| {
            grown(now, before_delay, before.ahead.1)
        });
        let task = &mut self.tasks[ix];
        let length = now.time.since(before.time).min(task.times.unknown);
        let on_cpu = ran.min(length);
        let run_queue = waited.min(length - on_cpu);
        let known = self.basis == Basis::Totals && delays.is_some();
        let part = StateTimes {
            on_cpu,
            run_queue,
            sleep: if known {
                length - on_cpu - run_queue
            } else {
                0
            },
            ..StateTimes::default()
        };
        // With --cpu: the totals do not say on which CPU.
        if self.only.is_none() {
            task.times.take_from_unknown(&part);
            task.by_kernel.on_cpu = task.by_kernel.on_cpu.saturating_add(on_cpu);
            task.by_kernel.run_queue = task.by_kernel.run_queue.saturating_add(run_queue);
        }
        (ran - on_cpu, waited - run_queue)
    }

    /// The recorder has let go of a task: the rest of its life is unknown.
    pub(super) fn detach(&mut self, time: Ktime, tid: Tid) {
        if let Some(ix) = self.task(tid).filter(|ix| !self.tasks[*ix].is_dead()) {
            self.enter(ix, time, State::Unknown, Ended::Otherwise);
            self.accounts.remove(&ix);
        }
    }

    /// A task has ended.
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
            faults: None,
            io: None,
        });
        task.exited = Some(time);
        let account = self.accounts.remove(&ix);
        let last = account.filter(|account| account.whole && account.time == time);
        task.kernel = last.map(|account| KernelFigures {
            sum_exec_runtime: account.run_time,
            run_delay: account.run_delay,
            is_final: true,
            ..KernelFigures::default()
        });
        if end.group_dead {
            self.end_process(ix, end.status, (end.max_rss, None));
        }
        self.end_task(ix, time);
    }
}
