//! How many recorded tasks were running at once, and for how long.

use tr_format::event::Ktime;

use crate::tasks::State;

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
    times: Vec<u64>,
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
        }
    }

    /// Time has come to `now`, and nothing has changed until then.
    pub fn advance(&mut self, now: Ktime) {
        let to = now.clamp(self.start, self.end);
        if self.known == self.living {
            if self.times.len() <= self.running {
                self.times.resize(self.running + 1, 0);
            }
            if let Some(time) = self.times.get_mut(self.running) {
                *time += to.since(self.since);
            }
        }
        self.since = self.since.max(to);
    }

    /// A task is met.
    pub fn meet(&mut self, now: Ktime, state: State) -> Epoch {
        self.advance(now);
        self.living += 1;
        self.change(now, 0, State::Unknown, state)
    }

    /// A living task goes from one state to another.
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
        while self.times.len() > 1 && self.times.last() == Some(&0) {
            self.times.pop();
        }
        self.times.resize(self.times.len().max(1), 0);
        self.times
    }
}
