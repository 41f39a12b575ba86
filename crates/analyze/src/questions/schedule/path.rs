//! The chain of threads that decided about the end of a simulated run.

use tr_format::event::Ktime;

use crate::arena::Arena;
use crate::model::ThreadIx;

/// A run, simulated. Times in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The time at which its last thread was done.
    pub wall: u64,
    /// The CPU time of all its threads.
    pub on_cpu: u64,
    /// The chain of threads that decided about the end, in order of time, if it was asked for.
    pub legs: Vec<Leg>,
}

/// The time of one thread in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leg {
    /// The thread.
    pub thread: ThreadIx,
    /// Its moment in the recording at which the leg begins.
    pub at: Ktime,
    /// The simulated time at which it begins, and its length, in ns.
    pub from: u64,
    /// Its length in ns.
    pub ns: u64,
}

/// A thread began to go on.
#[derive(Clone, Copy, Debug)]
struct Event {
    thread: ThreadIx,
    now: u64,
    at: Ktime,
    /// The last event before of the thread that let it go on; of a thread whose wait no thread
    /// ended its own.
    before: Option<usize>,
}

/// What let each thread go on.
pub(super) struct Log {
    events: Vec<Event>,
    last: Arena<ThreadIx, Option<usize>>,
}

impl Log {
    pub fn new(threads: usize) -> Log {
        Log {
            events: Vec::new(),
            last: (0..threads).map(|_| None).collect(),
        }
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

    /// The chain up to a thread's end.
    pub fn legs(&self, last: ThreadIx, wall: u64) -> Vec<Leg> {
        let mut legs = Vec::new();
        let (mut at, mut end) = (self.last[last], wall);
        // Each event comes after the one before it.
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
            // The thread that let the first one go on was there from the beginning.
            let thread = last;
            legs.push(Leg {
                thread,
                at: Ktime(0),
                from: 0,
                ns: end,
            });
        }
        legs.reverse();
        legs
    }
}
