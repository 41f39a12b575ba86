//! Finds the chain of threads on which the end of a simulated run depended.

use tr_format::event::Ktime;

use crate::arena::Arena;
use crate::model::ThreadIx;
use crate::share;

/// The result of a simulated run. All times are in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The simulated time at which the thread with which the run ends reached its end.
    pub wall: u64,
    /// The CPU time in ns that all threads used in the simulated run.
    pub on_cpu: u64,
    /// Whether tasks of the simulated run waited for a CPU.
    pub crowded: bool,
    /// The time in ns in which exactly n tasks wanted a CPU: `demand[n]`.
    pub demand: Vec<u64>,
    /// The chain of threads on which the end of the simulated run depended, in the order of time, if it was
    /// requested.
    pub legs: Vec<Leg>,
    /// The life of each thread that began in the simulated run, if the chain of threads was requested.
    pub lives: Vec<Life>,
}

impl Done {
    /// The time `ns` multiplied by the fraction `is / of`.
    pub fn times(ns: u64, (is, of): (u64, u64)) -> u64 {
        share(ns, is, of)
    }

    /// Returns the result of the simulated run with its times multiplied by a fraction: the length of the run, the
    /// times in the run's chain of threads, and the starts and ends of the threads. `on_cpu` and `demand` are kept.
    pub fn fitted(self, part: (u64, u64)) -> Done {
        let long = |ns| Done::times(ns, part);
        let leg = |leg: Leg| {
            let from = long(leg.from);
            let to = long(leg.from.saturating_add(leg.ns));
            Leg {
                from,
                ns: to.saturating_sub(from),
                ..leg
            }
        };
        let life = |life: Life| Life {
            from: long(life.from),
            to: long(life.to),
            ..life
        };
        Done {
            wall: long(self.wall),
            legs: self.legs.into_iter().map(leg).collect(),
            lives: self.lives.into_iter().map(life).collect(),
            ..self
        }
    }
}

/// The life of a thread in a simulated run, in ns from the run's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    pub thread: ThreadIx,
    /// The simulated time at which the thread started, in ns; for a job of a build tool, the time at which it
    /// got its slot.
    pub from: u64,
    /// The simulated time at which the thread ended, or at which the run ended if that was earlier.
    pub to: u64,
}

/// A part of the chain of threads on which the end of a simulated run depended: a time in one of these threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leg {
    pub thread: ThreadIx,
    /// The time in the recording that corresponds to the beginning of this part of the chain of threads.
    pub at: Ktime,
    /// The simulated time at which this part of the chain of threads begins, in ns.
    pub from: u64,
    /// The length of this part of the chain of threads in ns.
    pub ns: u64,
}

/// An event of the simulated run: a thread goes on after it has waited for another thread.
#[derive(Clone, Copy, Debug)]
struct Event {
    thread: ThreadIx,
    now: u64,
    at: Ktime,
    /// The index of the event on which this event depends: the last earlier event of the thread that ended this event's
    /// wait. If no thread ended the wait, this is the index of the last earlier event of the same thread.
    before: Option<usize>,
}

/// All events of a simulated run in which a thread went on.
pub(super) struct Log {
    events: Vec<Event>,
    last: Arena<ThreadIx, Option<usize>>,
    lives: Arena<ThreadIx, (Option<u64>, Option<u64>)>,
}

impl Log {
    pub fn new(threads: usize) -> Log {
        Log {
            events: Vec::new(),
            last: (0..threads).map(|_| None).collect(),
            lives: (0..threads).map(|_| (None, None)).collect(),
        }
    }

    pub fn begins(&mut self, thread: ThreadIx, now: u64) {
        self.lives[thread].0 = Some(now);
    }

    pub fn ends(&mut self, thread: ThreadIx, now: u64) {
        self.lives[thread].1 = Some(now);
    }

    /// The lives of all threads that began in the simulated run, which took `wall` ns.
    pub fn lives(&self, wall: u64) -> Vec<Life> {
        let lives = self.lives.ids().filter_map(|thread| {
            let (from, to) = self.lives[thread];
            let to = to.unwrap_or(wall);
            from.map(|from| Life { thread, from, to })
        });
        lives.collect()
    }

    pub fn note(&mut self, thread: ThreadIx, by: Option<ThreadIx>, now: u64, at: Ktime) {
        let before = self.last[by.unwrap_or(thread)];
        self.last[thread] = Some(self.events.len());
        self.events.push(Event {
            thread,
            now,
            at,
            before,
        });
    }

    /// The chain of threads on which the end of the thread `last` depended. The thread ends `wall` ns after
    /// the run's beginning.
    pub fn legs(&self, last: ThreadIx, wall: u64) -> Vec<Leg> {
        let mut legs = Vec::new();
        let (mut at, mut end) = (self.last[last], wall);
        // The walk goes backwards and ends, because an event depends only on events with lower indices.
        while let Some(event) = at.and_then(|at| self.events.get(at)) {
            legs.push(Leg {
                thread: event.thread,
                at: event.at,
                from: event.now,
                ns: end.saturating_sub(event.now),
            });
            (at, end) = (event.before, event.now);
        }
        if end > 0 {
            // The time before the first event belongs to a thread that was there from the beginning of the run. No
            // event names this thread, so the time counts as time of the thread `last`.
            legs.push(Leg {
                thread: last,
                at: Ktime(0),
                from: 0,
                ns: end,
            });
        }
        legs.reverse();
        legs
    }
}
