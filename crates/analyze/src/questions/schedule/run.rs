//! Runs the simulation of a recorded run. Tasks that share the CPUs advance evenly, so one clock counts the CPU
//! time that each of them has got since the beginning. A task is done with its work when this clock has advanced by
//! the length of the work.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use tr_format::event::Ktime;

use super::build::Threads;
use super::change::{Changes, Effect};
use super::cpus::{Clock, Machine};
use super::gates::{Gates, Plan, PLANNED_JOBS};
use super::ops::{Op, What};
use super::path::{Done, Log};
use crate::arena::{Arena, Ix};
use crate::model::{ProcessIx, ThreadIx};
use crate::share::{share, share_up};

/// The wakings of one kind in a simulated run, which are interchangeable. `done` is the number of wakings that are left
/// over for later waits. If `done` is negative, that many later wakings must not count. `waiting` has the threads that
/// wait for such a waking.
#[derive(Clone, Debug, Default)]
struct Waking {
    done: i64,
    waiting: VecDeque<ThreadIx>,
}

/// The children of a process in a simulated run: how many have ended, and the threads that wait until a certain
/// number of them have ended.
#[derive(Clone, Debug, Default)]
struct Children {
    ended: u64,
    waiting: Vec<(u64, ThreadIx)>,
}

/// The conditions under which a run is simulated.
pub(super) struct On<'p> {
    pub machine: Machine,
    /// The plan for the jobs of build tools; it is used if the simulation plans these jobs anew.
    pub plan: &'p Plan,
    pub effect: Effect,
    /// The set of changes that the simulation assumes.
    pub changes: Changes,
    /// The value of [`Change::remains`](super::Change::remains) for each assumed change, by its number.
    pub remains: &'p [(u64, u64)],
    /// Whether the chain of threads on which the end of the run depends is requested.
    pub traced: bool,
}

impl On<'_> {
    /// The length in ns to which the assumed changes shorten a piece of a thread's time. `mask` has the changes that
    /// concern this piece.
    fn shortened(&self, mask: Changes, ns: u64) -> u64 {
        if mask & !PLANNED_JOBS == 0 {
            return ns;
        }
        let concerned = self.remains.iter().zip(0..);
        let concerned = concerned.filter(|(_, bit)| mask & (1 << *bit) != 0);
        let parts = concerned.map(|((best, worst), _)| match self.effect {
            Effect::Best | Effect::Likely => *best,
            Effect::Worst => *worst,
        });
        // If several assumed changes concern the same time, only the one that shortens it the most takes effect.
        share(ns, parts.min().unwrap_or(1000), 1000)
    }
}

/// The largest change of a process's work in a simulation with [`Machine::shaken`], in thousandths.
const LARGEST_SHAKE: u64 = 100;

/// The time in ns that an operation of a process needs on the simulated machine.
fn lasts(machine: Machine, (what, process): (What, ProcessIx), ns: u64) -> u64 {
    let ns = match what {
        What::Cold => share_up(ns, 1000, 1000 + machine.cold),
        _ => ns,
    };
    if machine.shaken == 0 || !what.works() {
        return ns;
    }
    // The multiplication turns the process's index and `shaken` into an evenly distributed number. Equal inputs always
    // give the same number, so that a run can be repeated.
    let mixed = (u64::from(process.0) + 1)
        .wrapping_add(machine.shaken << 32)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    share_up(
        ns,
        1000 - LARGEST_SHAKE + (mixed >> 40) % (2 * LARGEST_SHAKE + 1),
        1000,
    )
}

struct Run<'a> {
    threads: &'a Threads,
    on: On<'a>,
    clock: Clock,
    gates: Gates<'a>,
    log: Option<Log>,
    /// The thread that is performing its operations at this moment of the simulation.
    current: Option<ThreadIx>,
    /// For each thread, the index of its next operation.
    next: Arena<ThreadIx, usize>,
    /// The threads that can perform an operation at this moment of the simulation.
    ready: Vec<ThreadIx>,
    /// The threads that are on the simulated CPUs or want one, ordered by the CPU time in ns (see [`Clock::served`]) at
    /// which they are done with their work.
    working: BinaryHeap<Reverse<(u64, ThreadIx)>>,
    /// The number of threads in `working` that belong to large processes.
    large: u64,
    delayed: BinaryHeap<Reverse<(u64, ThreadIx)>>,
    /// The simulated time in ns in which exactly n tasks wanted a CPU: `demand[n]`.
    demand: Vec<u64>,
    wakings: Vec<Waking>,
    /// For each timer that a thread set before other work, the simulated time in ns at which it expires.
    expires: Vec<u64>,
    children: Arena<ProcessIx, Children>,
    blocked: Arena<ThreadIx, bool>,
    /// The blocked threads, ordered by the ends of their waits in the recording. The list is needed when no thread of
    /// the simulation can go on. It is `None` until this happens for the first time.
    stuck: Option<BinaryHeap<Reverse<(Ktime, ThreadIx)>>>,
}

/// Simulates the threads of a recorded run under the given conditions.
pub(super) fn simulate<'a>(threads: &'a Threads, on: On<'a>) -> Done {
    let each = || threads.ops.ids();
    let mut run = Run {
        threads,
        clock: Clock::new(on.machine),
        gates: Gates::new(on.plan, on.machine, on.effect, threads.parent.len()),
        log: on.traced.then(|| Log::new(threads.ops.len())),
        current: None,
        on,
        next: each().map(|_| 0).collect(),
        ready: threads.first.iter().rev().copied().collect(),
        working: BinaryHeap::new(),
        large: 0,
        delayed: BinaryHeap::new(),
        demand: Vec::new(),
        wakings: vec![Waking::default(); threads.wakings],
        expires: vec![0; threads.timers.len()],
        children: threads.parent.ids().map(|_| Children::default()).collect(),
        blocked: each().map(|_| false).collect(),
        stuck: None,
    };
    for thread in &threads.first {
        run.begins(*thread);
    }
    let wall = run.all();
    let log = run.log.as_ref();
    Done {
        wall,
        on_cpu: run.clock.on_cpu,
        crowded: run.clock.crowded,
        demand: run.demand,
        legs: log.map_or(Vec::new(), |log| log.legs(threads.last, wall)),
        lives: log.map_or(Vec::new(), |log| log.lives(wall)),
    }
}

impl Run<'_> {
    fn all(&mut self) -> u64 {
        let last = self.threads.last;
        let count = self.threads.ops[last].len();
        loop {
            while let Some(thread) = self.ready.pop() {
                self.go_on(thread);
            }
            if self.next[last] >= count || !(self.advance() || self.release()) {
                return self.clock.now;
            }
        }
    }

    /// Performs the operations of a thread of the simulation until one takes time or has to wait. Such an operation
    /// counts as performed when its time or wait ends.
    fn go_on(&mut self, thread: ThreadIx) {
        self.current = Some(thread);
        while let Some(op) = self.threads.ops[thread].get(self.next[thread]) {
            if !self.does(thread, op) {
                return;
            }
            self.next[thread] += 1;
        }
        if let Some(log) = &mut self.log {
            log.ends(thread, self.clock.now);
        }
    }

    fn begins(&mut self, thread: ThreadIx) {
        if let Some(log) = &mut self.log {
            log.begins(thread, self.clock.now);
        }
    }

    /// Performs an operation of a thread in the simulation. Returns `false` if it takes time or the thread waits in it.
    fn does(&mut self, thread: ThreadIx, op: &Op) -> bool {
        let process = self.threads.process[thread];
        let mask = op.mask & self.on.changes;
        let concerned = mask != 0;
        match op.what {
            What::Work | What::Warm | What::Cold | What::Delay => {
                let ns = self.on.shortened(mask, op.value);
                let ns = lasts(self.on.machine, (op.what, process), ns);
                if ns == 0 {
                    return true;
                }
                let (list, from) = match op.what {
                    What::Delay => (&mut self.delayed, self.clock.now),
                    _ => (&mut self.working, self.clock.served),
                };
                self.large += u64::from(op.what.is_large());
                list.push(Reverse((from.saturating_add(ns), thread)));
                false
            }
            What::Set => {
                if let Some(end) = self.expires.get_mut(op.value as usize) {
                    let length = self.threads.timers.get(op.value as usize);
                    *end = self.clock.now.saturating_add(length.copied().unwrap_or(0));
                }
                true
            }
            What::Expire => {
                let end = self.expires.get(op.value as usize).copied().unwrap_or(0);
                let rest = end.saturating_sub(self.clock.now);
                let rest = self.on.shortened(mask, rest);
                if rest == 0 {
                    return true;
                }
                let end = self.clock.now.saturating_add(rest);
                self.delayed.push(Reverse((end, thread)));
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
                let child = ThreadIx::new(op.value as usize);
                self.note(child, op.at);
                self.begins(child);
                self.ready.push(child);
                true
            }
            What::Ended => {
                self.ended(ProcessIx::new(op.value as usize));
                true
            }
            What::Gate if !concerned => true,
            What::Gate => {
                if self.gates.arrives(op.value as usize, thread) {
                    return true;
                }
                self.block(thread, op.at);
                false
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

    /// Notes that a process of the simulated run has ended, so that its parent and jobs may go on.
    fn ended(&mut self, process: ProcessIx) {
        if let Some(parent) = self.threads.parent[process] {
            let parent = &mut self.children[parent];
            parent.ended += 1;
            let ended = parent.ended;
            let enough = |(wants, _): &mut (u64, ThreadIx)| *wants <= ended;
            let woken: Vec<_> = parent.waiting.extract_if(.., enough).collect();
            for (_, other) in woken {
                self.unblock(other);
            }
        }
        for other in self.gates.ended(process) {
            self.unblock(other);
        }
    }

    /// Notes that the thread that is performing its operations lets the thread `thread` go on.
    fn note(&mut self, thread: ThreadIx, at: Ktime) {
        if let Some(log) = &mut self.log {
            log.note(thread, self.current, self.clock.now, at);
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
            let op = self.threads.ops[thread].get(self.next[thread]);
            self.note(thread, op.map_or(Ktime(0), |op| op.at));
            if op.is_some_and(|op| op.what == What::Gate) {
                self.begins(thread);
            }
            self.next[thread] += 1;
            self.ready.push(thread);
        }
    }

    /// Goes to the next moment of the simulation at which a thread is done with its work or its wait, or at which a
    /// quota stops or releases the threads. Returns `false` if there is none.
    fn advance(&mut self) -> bool {
        let work = self.working.peek().map(|Reverse((served, _))| *served);
        let delay = self.delayed.peek().map(|Reverse((at, _))| *at);
        let (tasks, since) = (self.working.len(), self.clock.now);
        if !self.clock.advance((tasks as u64, self.large), work, delay) {
            return false;
        }
        if self.demand.len() <= tasks {
            self.demand.resize(tasks + 1, 0);
        }
        if let Some(time) = self.demand.get_mut(tasks) {
            *time += self.clock.now - since;
        }
        let (served, now) = (self.clock.served, self.clock.now);
        for (list, until) in [(&mut self.working, served), (&mut self.delayed, now)] {
            while let Some(Reverse((_, thread))) =
                list.peek().filter(|Reverse((end, _))| *end <= until)
            {
                let thread = *thread;
                list.pop();
                let op = self.threads.ops[thread].get(self.next[thread]);
                let large = op.is_some_and(|op| op.what.is_large());
                self.large -= u64::from(large);
                self.next[thread] += 1;
                self.ready.push(thread);
            }
        }
        true
    }

    /// Ends one blocked wait, because all threads wait for each other in the simulated order and would never go on. The
    /// wait that ended first in the recording is chosen. Returns `false` if no thread waits.
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
        self.current = None;
        while let Some(Reverse((at, thread))) = stuck.pop() {
            let op = self.threads.ops[thread].get(self.next[thread]);
            if let Some(op) = op.filter(|op| self.blocked[thread] && op.at == at) {
                // The thread no longer waits for what it was blocked on. A waking that comes later must not count for
                // another wait, so one waking is subtracted.
                self.gates.forget(thread);
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
