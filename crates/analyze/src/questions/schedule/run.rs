//! The simulation. Tasks that share the CPUs advance evenly: the service that each of them has
//! got is one clock for all, which a task leaves when it has got what it asked for.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use tr_format::event::Ktime;

use super::build::{Op, Threads, What};
use super::Changes;
use crate::arena::{Arena, Ix};
use crate::model::{ProcessIx, ThreadIx};

/// The wakings of one number: how many more were done than awaited, and who waits.
#[derive(Clone, Debug, Default)]
struct Waking {
    done: i64,
    waiting: VecDeque<ThreadIx>,
}

/// The children of a process that have ended, and the threads that wait for more of them.
#[derive(Clone, Debug, Default)]
struct Children {
    ended: u64,
    waiting: Vec<(u64, ThreadIx)>,
}

/// What a run is like.
pub(super) struct On<F> {
    pub cpus: u64,
    /// The changes that are made.
    pub changes: Changes,
    /// The length of a piece of time, of which it gets the changes that concern it.
    pub length: F,
}

struct Run<'a, F> {
    threads: &'a Threads,
    on: On<F>,
    now: u64,
    /// The service that a task has got which wanted a CPU all the time.
    served: u64,
    /// The next operation of each thread.
    next: Arena<ThreadIx, usize>,
    /// The threads that have something to do at this moment.
    ready: Vec<ThreadIx>,
    /// The threads on a CPU, by the service at which they are done.
    working: BinaryHeap<Reverse<(u64, ThreadIx)>>,
    delayed: BinaryHeap<Reverse<(u64, ThreadIx)>>,
    wakings: Vec<Waking>,
    children: Arena<ProcessIx, Children>,
    blocked: Arena<ThreadIx, bool>,
    /// The blocked threads by the end of their waits in the recording, once none could go on.
    stuck: Option<BinaryHeap<Reverse<(Ktime, ThreadIx)>>>,
}

/// The time at which the last thread is done.
pub(super) fn wall<F: Fn(Changes, u64) -> u64>(threads: &Threads, on: On<F>) -> u64 {
    let each = || threads.ops.ids();
    let mut run = Run {
        threads,
        on,
        now: 0,
        served: 0,
        next: each().map(|_| 0).collect(),
        ready: threads.first.iter().rev().copied().collect(),
        working: BinaryHeap::new(),
        delayed: BinaryHeap::new(),
        wakings: vec![Waking::default(); threads.wakings],
        children: (0..threads.processes)
            .map(|_| Children::default())
            .collect(),
        blocked: each().map(|_| false).collect(),
        stuck: None,
    };
    run.all()
}

impl<F: Fn(Changes, u64) -> u64> Run<'_, F> {
    fn all(&mut self) -> u64 {
        let last = self.threads.last;
        let count = self.threads.ops[last].len();
        loop {
            while let Some(thread) = self.ready.pop() {
                self.go_on(thread);
            }
            if self.next[last] >= count || !(self.advance() || self.release()) {
                return self.now;
            }
        }
    }

    /// Does a thread's operations until it has to wait. An operation that takes time is passed
    /// when its time begins.
    fn go_on(&mut self, thread: ThreadIx) {
        while let Some(op) = self.threads.ops[thread].get(self.next[thread]) {
            if !self.does(thread, op) {
                return;
            }
            self.next[thread] += 1;
        }
    }

    /// Does an operation; `false`: the thread waits in it.
    fn does(&mut self, thread: ThreadIx, op: &Op) -> bool {
        let process = self.threads.process[thread];
        let mask = op.mask & self.on.changes;
        let concerned = mask != 0;
        match op.what {
            What::Work | What::Delay => {
                let ns = (self.on.length)(mask, op.value);
                if ns == 0 {
                    return true;
                }
                let (list, from) = match op.what {
                    What::Work => (&mut self.working, self.served),
                    _ => (&mut self.delayed, self.now),
                };
                list.push(Reverse((from.saturating_add(ns), thread)));
                false
            }
            What::Wake => {
                let Some(waking) = self.wakings.get_mut(op.value as usize) else {
                    return true;
                };
                waking.done += 1;
                if waking.done > 0 {
                    if let Some(other) = waking.waiting.pop_front() {
                        waking.done -= 1;
                        self.unblock(other);
                    }
                }
                true
            }
            What::Await => {
                let Some(waking) = self.wakings.get_mut(op.value as usize) else {
                    return true;
                };
                if concerned || waking.done > 0 {
                    waking.done -= 1;
                    return true;
                }
                waking.waiting.push_back(thread);
                self.block(thread, op.at);
                false
            }
            What::Start => {
                self.ready.push(ThreadIx::new(op.value as usize));
                true
            }
            What::Ended => {
                let parent = &mut self.children[ProcessIx::new(op.value as usize)];
                parent.ended += 1;
                let ended = parent.ended;
                let enough = |(wants, _): &mut (u64, ThreadIx)| *wants <= ended;
                let woken: Vec<_> = parent.waiting.extract_if(.., enough).collect();
                for (_, other) in woken {
                    self.unblock(other);
                }
                true
            }
            What::Children if concerned => true,
            What::AtOnce if !concerned => true,
            What::Children | What::AtOnce => {
                if self.children[process].ended >= op.value {
                    return true;
                }
                self.children[process].waiting.push((op.value, thread));
                self.block(thread, op.at);
                false
            }
        }
    }

    fn block(&mut self, thread: ThreadIx, at: Ktime) {
        self.blocked[thread] = true;
        if let Some(stuck) = &mut self.stuck {
            stuck.push(Reverse((at, thread)));
        }
    }

    fn unblock(&mut self, thread: ThreadIx) {
        if std::mem::replace(&mut self.blocked[thread], false) {
            self.next[thread] += 1;
            self.ready.push(thread);
        }
    }

    /// Goes to the next moment at which a thread is done with its work or its wait; `false`:
    /// none has any.
    fn advance(&mut self) -> bool {
        let tasks = self.working.len() as u64;
        let share = u128::from(tasks.max(self.on.cpus));
        let work = self.working.peek().map(|Reverse((served, _))| {
            let ns = u128::from(served.saturating_sub(self.served));
            let ns = (ns * share).div_ceil(u128::from(self.on.cpus));
            self.now
                .saturating_add(u64::try_from(ns).unwrap_or(u64::MAX))
        });
        let delay = self.delayed.peek().map(|Reverse((at, _))| *at);
        let Some(to) = work.into_iter().chain(delay).min() else {
            return false;
        };
        let passed = u128::from(to.saturating_sub(self.now)) * u128::from(self.on.cpus) / share;
        self.served = self
            .served
            .saturating_add(u64::try_from(passed).unwrap_or(u64::MAX));
        self.now = to;
        let (served, now) = (self.served, self.now);
        for (list, until) in [(&mut self.working, served), (&mut self.delayed, now)] {
            while let Some(Reverse((_, thread))) = list.peek().filter(|it| it.0 .0 <= until) {
                let thread = *thread;
                list.pop();
                self.next[thread] += 1;
                self.ready.push(thread);
            }
        }
        true
    }

    /// Ends the wait that ended first in the recording: threads that wait for each other in the
    /// new order never go on. `false`: none waits.
    fn release(&mut self) -> bool {
        let stuck = self.stuck.get_or_insert_with(|| {
            let ids = self.threads.ops.ids();
            let blocked = ids.filter(|thread| self.blocked[*thread]);
            let end = |thread: ThreadIx| {
                let op = self.threads.ops[thread].get(self.next[thread]);
                Reverse((op.map_or(Ktime(0), |op| op.at), thread))
            };
            blocked.map(end).collect()
        });
        while let Some(Reverse((at, thread))) = stuck.pop() {
            let op = self.threads.ops[thread].get(self.next[thread]);
            if let Some(op) = op.filter(|op| self.blocked[thread] && op.at == at) {
                // The waking comes too late.
                let waking = self.wakings.get_mut(op.value as usize);
                if let Some(waking) = waking.filter(|_| op.what == What::Await) {
                    waking.waiting.retain(|other| *other != thread);
                    waking.done -= 1;
                }
                let process = self.threads.process[thread];
                let waiting = &mut self.children[process].waiting;
                waiting.retain(|(_, other)| *other != thread);
                self.unblock(thread);
                return true;
            }
        }
        false
    }
}
