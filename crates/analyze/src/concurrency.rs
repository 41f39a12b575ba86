//! How many recorded tasks were running at once, and for how long.

use std::collections::VecDeque;

use tr_format::event::Ktime;

use crate::state::State;

/// Which of a trace's losses a task's state has been seen after: 0 for a state
/// that is not known.
pub type Epoch = u32;

/// The time in which n tasks were running, as long as every living task's state
/// is known. After a loss the next event of a task makes it known again.
#[derive(Debug)]
pub struct Concurrency {
    start: Ktime,
    end: Ktime,
    /// Up to when the time is told.
    since: Ktime,
    running: usize,
    living: usize,
    /// Of the living, those whose state is known.
    known: usize,
    epoch: Epoch,
    /// How long n were running, of the time that can't be taken back.
    times: Vec<u64>,
    /// The time before the latest: from when on how many were running, or [`UNKNOWN`].
    recent: VecDeque<(Ktime, usize)>,
    /// The latest time, likewise.
    latest: (Ktime, usize),
}

/// That number is not known.
const UNKNOWN: usize = usize::MAX;

/// How many changes can be taken back.
const RECENT: usize = 1 << 14;

/// Adds to the time in which n tasks were running.
pub fn add(times: &mut Vec<u64>, n: usize, ns: u64) {
    if times.len() <= n {
        times.resize(n + 1, 0);
    }
    if let Some(time) = times.get_mut(n) {
        *time += ns;
    }
}

impl Concurrency {
    /// Nobody is running at the start of the span.
    pub fn new(start: Ktime, end: Ktime) -> Concurrency {
        Concurrency {
            start,
            end,
            since: start,
            running: 0,
            living: 0,
            known: 0,
            epoch: 1,
            times: Vec::new(),
            recent: VecDeque::new(),
            latest: (start, UNKNOWN),
        }
    }

    /// Time has come to `now`, and nothing has changed until then.
    #[inline]
    fn advance(&mut self, now: Ktime) {
        let to = now.clamp(self.start, self.end);
        if to > self.since {
            let running = match self.known == self.living {
                true => self.running,
                false => UNKNOWN,
            };
            if running != self.latest.1 {
                self.note(self.since, running);
            }
            self.since = to;
        }
    }

    /// From then on so many were running.
    fn note(&mut self, since: Ktime, running: usize) {
        let before = std::mem::replace(&mut self.latest, (since, running));
        self.recent.push_back(before);
        if self.recent.len() >= RECENT {
            self.settle();
        }
    }

    /// Takes the oldest of the recent time for good.
    fn settle(&mut self) {
        let Some((from, running)) = self.recent.pop_front() else {
            return;
        };
        let (to, _) = *self.recent.front().unwrap_or(&self.latest);
        if running != UNKNOWN {
            add(&mut self.times, running, to.since(from));
        }
    }

    /// A task may have been running from `from` to `now` without having been
    /// counted, or the other way round. What is too long ago stays as it was told.
    pub fn take_back(&mut self, from: Ktime, now: Ktime) {
        self.advance(now);
        let from = from.max(self.start);
        if from >= self.since {
            return;
        }
        while self.latest.0 >= from {
            let Some(before) = self.recent.pop_back() else {
                // The time before is told for good.
                self.latest.1 = UNKNOWN;
                return;
            };
            self.latest = before;
        }
        if self.latest.1 != UNKNOWN {
            self.note(from, UNKNOWN);
        }
    }

    /// A task is met.
    pub fn meet(&mut self, now: Ktime, state: State) -> Epoch {
        self.advance(now);
        self.living += 1;
        self.change(now, 0, State::Unknown, state)
    }

    /// A CPU goes from one task to another. `false`: nothing has been done, as it
    /// is not known of both what they were doing.
    #[inline]
    pub fn hand_over(&mut self, now: Ktime, one: Epoch, other: Epoch) -> bool {
        let known = (one == self.epoch) & (other == self.epoch);
        if known {
            self.advance(now);
        }
        known
    }

    /// A living task goes from one state to another.
    #[inline]
    pub fn change(&mut self, now: Ktime, epoch: Epoch, from: State, to: State) -> Epoch {
        let was_known = epoch == self.epoch;
        let is_known = !matches!(to, State::Unknown | State::Dead);
        let (was_on, is_on) = (matches!(from, State::On(_)), matches!(to, State::On(_)));
        let dies = to == State::Dead;
        if was_known != is_known || was_on != is_on || dies {
            self.advance(now);
            self.living -= usize::from(dies && self.living > 0);
            self.known =
                (self.known + usize::from(is_known)).saturating_sub(usize::from(was_known));
            self.running = (self.running + usize::from(is_on)).saturating_sub(usize::from(was_on));
        }
        if is_known {
            self.epoch
        } else {
            0
        }
    }

    /// Events are missing from `now` on: nobody's state is known any more but
    /// that of those who are vouched for next.
    pub fn lose(&mut self, now: Ktime) {
        self.advance(now);
        self.epoch = self.epoch.saturating_add(1);
        self.known = 0;
    }

    /// The task whose state was known before the loss runs on a CPU that has
    /// lost nothing.
    pub fn vouch(&mut self, epoch: Epoch) -> Epoch {
        if epoch.saturating_add(1) != self.epoch {
            return epoch;
        }
        self.known += 1;
        self.epoch
    }

    /// How long n tasks were running, for every n; the span is over.
    pub fn finish(mut self) -> Vec<u64> {
        self.advance(self.end);
        self.note(self.since, UNKNOWN);
        while !self.recent.is_empty() {
            self.settle();
        }
        while self.times.len() > 1 && self.times.last() == Some(&0) {
            self.times.pop();
        }
        self.times.resize(self.times.len().max(1), 0);
        self.times
    }
}
