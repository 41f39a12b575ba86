//! Keeps the timers that a thread set before other work at their length in a simulated run: the wait that such a timer
//! ended does not keep its own length, but ends a fixed time after the thread set the timer.

use std::collections::VecDeque;

use tr_format::event::Ktime;

use super::builder::Builder;
use crate::model::ThreadIx;
use crate::questions::timers::{set_early, SetTimer};

/// The timers of a thread that it set before other work, and how many of them the thread has set so far while its
/// operations are collected. Each timer has a number in the simulated run.
pub(super) struct Timers {
    /// The timers in the order of the waits that they ended.
    all: Vec<SetTimer>,
    /// The indexes of the timers in `all`, in the order in which they were set.
    by_set: VecDeque<usize>,
    /// The number in the simulated run of the first timer in `all`. The timers after it have the next numbers.
    first: u64,
}

impl Timers {
    fn new(all: Vec<SetTimer>, first: u64) -> Timers {
        let mut by_set: Vec<(Ktime, usize)> = all.iter().map(|timer| timer.set).zip(0..).collect();
        by_set.sort_unstable();
        Timers {
            by_set: by_set.into_iter().map(|(_, index)| index).collect(),
            all,
            first,
        }
    }

    /// The number of the next timer that was set by the time `until`; `None` if all of those were returned.
    pub fn next_set(&mut self, until: Ktime) -> Option<u64> {
        let next = self.by_set.front()?;
        self.all.get(*next).filter(|timer| timer.set <= until)?;
        let index = self.by_set.pop_front()?;
        Some(self.first + index as u64)
    }

    /// The number of the timer that ended the wait which began at `wait`; `None` if no timer of this list did.
    pub fn of_wait(&self, wait: Ktime) -> Option<u64> {
        let index = self.all.binary_search_by_key(&wait, |timer| timer.wait);
        index.ok().map(|index| self.first + index as u64)
    }

    /// The times in ns from setting each timer to its end, in the order of the timers' numbers.
    pub fn lengths(&self) -> impl Iterator<Item = u64> + '_ {
        self.all.iter().map(|timer| timer.length)
    }
}

impl Builder<'_> {
    /// The timers on the critical path that a thread set before other work, as far as their whole time lies in the
    /// simulated run. They get the next free numbers of the run.
    pub(super) fn timers_of(&mut self, thread: ThreadIx) -> Timers {
        let first = self.timers.len() as u64;
        // If the run did not depend on the end of a timer, it need not wait for this end on free CPUs either.
        let mut on_path = self.timed.range((thread, Ktime(0))..);
        let mut timers = match on_path.next() {
            Some((other, _)) if *other == thread => set_early(self.graph.timeline, thread),
            _ => Vec::new(),
        };
        timers.retain(|timer| {
            let is_inside = timer.set >= self.from && timer.end() <= self.to;
            is_inside && self.timed.contains(&(thread, timer.wait))
        });
        let timers = Timers::new(timers, first);
        self.timers.extend(timers.lengths());
        timers
    }
}
