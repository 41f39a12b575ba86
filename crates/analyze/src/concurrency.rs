//! Sums up, for each number n, the time in which exactly n recorded tasks ran at once.

use std::collections::VecDeque;

use tr_format::event::Ktime;

use crate::state::State;

/// The number of the epoch in which the state of a task was seen. An epoch is the time between two losses of events,
/// counted from 1. 0 means that the state is not known.
pub type Epoch = u32;

/// Counts the running tasks as long as the state of every living task is known. A loss of events makes all states
/// unknown, and the next event of a task makes the state of this task known again. There is one exception, if every
/// switch of all CPUs is recorded: once each CPU has switched, the task on each CPU is known. A task of unknown state
/// is then on no CPU, so this task does not disturb the count until events are lost.
#[derive(Debug, Default)]
pub struct Concurrency {
    start: Ktime,
    end: Ktime,
    /// The time up to which the running tasks have been counted in `times` and `recent`.
    now: Ktime,
    running: u32,
    living: usize,
    /// The number of living tasks whose states are known at present.
    known: usize,
    epoch: Epoch,
    /// The number of CPUs that have not switched yet; `None` if not every switch of all CPUs is recorded. A task whose
    /// state is unknown may have been on such a CPU since before the recording.
    unseen_cpus: Option<usize>,
    /// The time at which the last of all CPUs switched for the first time. `None` if there are still CPUs that have not
    /// switched, or if not every switch of all CPUs is recorded.
    pub all_cpus_seen_from: Option<Ktime>,
    /// For each n, the time in ns in which exactly n tasks were running. The changes in `recent` are not added yet.
    times: Vec<u64>,
    /// The latest changes of the number of running tasks: the time of each change, and how many tasks run from then on
    /// (`None` if unknown). The changes are not added to `times` yet, because a later event may show that the number
    /// was wrong.
    recent: VecDeque<(Ktime, Option<u32>)>,
}

/// The number of the first epoch. An epoch is the time between two losses of events, and the first one ends at the
/// first loss.
const FIRST_EPOCH: Epoch = 1;

/// The largest number of changes in [`Concurrency::recent`], which a later event can still correct. Older changes
/// are final.
const RECENT_CHANGES: usize = 1 << 14;

/// Adds `ns` to the entry of `times` for n tasks: the time in ns in which exactly n tasks were running.
pub fn add(times: &mut Vec<u64>, n: usize, ns: u64) {
    if times.len() <= n {
        times.resize(n + 1, 0);
    }
    if let Some(time) = times.get_mut(n) {
        *time += ns;
    }
}

impl Concurrency {
    /// Makes a counter of running tasks for the span from `start` to `end`. At `start`, the counter counts no task as
    /// running. `unseen_cpus` is the number of CPUs if every switch of all CPUs is recorded.
    pub fn new(start: Ktime, end: Ktime, unseen_cpus: Option<usize>) -> Concurrency {
        Concurrency {
            start,
            end,
            now: start,
            epoch: FIRST_EPOCH,
            unseen_cpus,
            ..Concurrency::default()
        }
    }

    /// Notes that a CPU switches for the first time in the recording.
    pub fn see_cpu(&mut self, time: Ktime) {
        self.advance(time);
        self.unseen_cpus = self.unseen_cpus.map(|cpus| cpus.saturating_sub(1));
        if self.unseen_cpus == Some(0) {
            self.all_cpus_seen_from.get_or_insert(time);
        }
    }

    /// Counts the time up to `now` with the present number of running tasks, because no task's state has changed in
    /// it.
    #[inline]
    fn advance(&mut self, now: Ktime) {
        let to = now.clamp(self.start, self.end);
        if to > self.now {
            let all_known = self.known == self.living
                || self.all_cpus_seen_from.is_some() && self.epoch == FIRST_EPOCH;
            let running = all_known.then_some(self.running);
            if self.recent.back().is_none_or(|(_, last)| *last != running) {
                self.push(self.now, running);
            }
            self.now = to;
        }
    }

    fn push(&mut self, since: Ktime, running: Option<u32>) {
        self.recent.push_back((since, running));
        if self.recent.len() > RECENT_CHANGES {
            self.settle();
        }
    }

    /// Moves the oldest entry of `recent` to `times`: its time is added to the sum for its number of running tasks.
    fn settle(&mut self) {
        let Some((from, running)) = self.recent.pop_front() else {
            return;
        };
        let to = self.recent.front().map_or(self.now, |(next, _)| *next);
        if let Some(running) = running {
            add(&mut self.times, running as usize, to.since(from));
        }
    }

    /// Makes the number of running tasks unknown from `from` to `now`, because a running task may have been left
    /// out, or a task that did not run may have been counted. Times that are already in `times` are final and stay
    /// as they are.
    pub fn take_back(&mut self, from: Ktime, now: Ktime) {
        self.advance(now);
        let mut from = from.max(self.start);
        if from >= self.now {
            return;
        }
        while let Some((since, _)) = self.recent.back().filter(|(since, _)| *since >= from) {
            if self.recent.len() == 1 {
                from = *since;
            }
            self.recent.pop_back();
        }
        if self.recent.back().is_none_or(|(_, last)| last.is_some()) {
            self.push(from, None);
        }
    }

    pub fn meet(&mut self, now: Ktime, state: State) -> Epoch {
        self.advance(now);
        self.living += 1;
        self.change(now, 0, State::Unknown, state)
    }

    /// Notes that a CPU switches from one task to another one. Returns `false`, and counts nothing, if the state of
    /// one of the two tasks was not known.
    #[inline]
    pub fn hand_over(&mut self, now: Ktime, one: Epoch, other: Epoch) -> bool {
        let known = (one == self.epoch) & (other == self.epoch);
        if known {
            self.advance(now);
        }
        known
    }

    /// Notes that a living task goes from one state to another. Returns the number of the present epoch (the time
    /// between two losses of events) if the task's state is known now, otherwise 0.
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
            self.running = (self.running + u32::from(is_on)).saturating_sub(u32::from(was_on));
        }
        if is_known {
            self.epoch
        } else {
            0
        }
    }

    /// Notes that events are missing from `now` on. The states of all tasks become unknown, except the states that
    /// the next calls of [`Concurrency::vouch`] confirm.
    pub fn lose(&mut self, now: Ktime) {
        self.advance(now);
        self.epoch = self.epoch.saturating_add(1);
        self.known = 0;
    }

    /// Confirms after a loss of events that the state of a task is still known, because the task's CPU has lost none.
    /// Returns the number of the new epoch (the time since this loss) if the state was known right before the loss,
    /// otherwise `epoch` unchanged.
    pub fn vouch(&mut self, epoch: Epoch) -> Epoch {
        if epoch.saturating_add(1) != self.epoch {
            return epoch;
        }
        self.known += 1;
        self.epoch
    }

    /// Returns for each n how many ns of the whole counted span exactly n tasks were running.
    pub fn finish(&mut self) -> Vec<u64> {
        self.advance(self.end);
        while !self.recent.is_empty() {
            self.settle();
        }
        let mut times = std::mem::take(&mut self.times);
        while times.len() > 1 && times.last() == Some(&0) {
            times.pop();
        }
        times.resize(times.len().max(1), 0);
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns for each n how many ns exactly n tasks were running, in a recording of two tasks. The first task
    /// runs all the time, and the state of the second one is unknown. The second CPU switches for the first time at
    /// 20, and at 60 events are lost.
    ///
    /// ```text
    /// one   ====|===========|loss======
    /// other ????|???????????|??????????
    /// ```
    fn counted(unseen_cpus: Option<usize>) -> Vec<u64> {
        let mut concurrency = Concurrency::new(Ktime(0), Ktime(100), unseen_cpus);
        concurrency.see_cpu(Ktime(0));
        concurrency.meet(Ktime(0), State::On(None));
        concurrency.meet(Ktime(0), State::Unknown);
        concurrency.see_cpu(Ktime(20));
        concurrency.lose(Ktime(60));
        concurrency.finish()
    }

    #[test]
    fn a_task_of_unknown_state_is_on_no_cpu_if_all_switches_are_recorded() {
        assert_eq!(counted(None), [0]);
        assert_eq!(counted(Some(2)), [0, 40]);
        // With three CPUs, one has not switched yet. The second task may be on it, so the number of running tasks is
        // unknown.
        assert_eq!(counted(Some(3)), [0]);
    }
}
