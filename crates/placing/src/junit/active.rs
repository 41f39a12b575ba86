//! Finds when a process ran on a CPU, as far as the recording shows it.
//!
//! A test runner reads a clock when a test begins or ends, so the runner is on a CPU at that moment. While all threads
//! of the runner are off CPU, none of its tests begins or ends.

use tr_analyze::model::ThreadIx;

use tr_analyze::timeline::{Bucket, Timeline};

use crate::lookup::signed;

/// The stretches of time in which a process may have been on a CPU, in nanoseconds. A single list can have the
/// stretches of several processes that lived one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Active {
    /// The stretches in which the process may have run, as pairs of beginning and end in nanoseconds, in the order of
    /// time. No two of them touch.
    stretches: Vec<(i64, i64)>,
    /// The times in nanoseconds across which no test can lie: the beginnings of the second and each later process, if
    /// the stretches belong to several processes, and the ends of removed stretches ([`Active::without`]).
    begins: Vec<i64>,
}

impl Active {
    /// Finds the stretches of time in which any of the given threads was on a CPU, or in which the recording does not
    /// show what a thread did.
    pub fn new(timeline: &Timeline, threads: &[ThreadIx]) -> Active {
        let stretches = threads.iter().flat_map(|thread| timeline.of(*thread));
        let may_run = stretches.filter(|stretch| {
            matches!(stretch.doing, Bucket::OnCpu(_) | Bucket::Unknown) && stretch.from < stretch.to
        });
        let stretches = may_run.map(|stretch| (signed(stretch.from), signed(stretch.to)));
        Active::of(stretches.collect())
    }

    /// Makes the list from stretches of time in which a process may have run: sorts them, and joins the ones that
    /// overlap or touch.
    pub fn of(mut stretches: Vec<(i64, i64)>) -> Active {
        stretches.sort_unstable();
        let mut apart: Vec<(i64, i64)> = Vec::with_capacity(stretches.len());
        for (from, to) in stretches {
            match apart.last_mut() {
                Some((_, end)) if from <= *end => *end = to.max(*end),
                _ => apart.push((from, to)),
            }
        }
        Active {
            stretches: apart,
            begins: Vec::new(),
        }
    }

    /// Joins the stretches of several processes that lived one after the other. `all` has for each process the time at
    /// which the process began, and its stretches.
    pub fn chain(all: &[(i64, &Active)]) -> Active {
        let stretches = all.iter().flat_map(|(_, active)| &active.stretches);
        Active {
            stretches: stretches.copied().collect(),
            begins: all.iter().skip(1).map(|(begin, _)| *begin).collect(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// Removes the stretches `other`, in which the process did something else than run the tests of the current suite.
    /// A test of this suite must then lie completely before or completely after each of the removed stretches.
    pub fn without(mut self, other: &Active) -> Active {
        let others = &other.stretches;
        let mut rest = Vec::with_capacity(self.stretches.len());
        for (from, to) in std::mem::take(&mut self.stretches) {
            let mut from = from;
            let first = others.partition_point(|(_, end)| *end <= from);
            let inside = others.iter().skip(first);
            for (begin, end) in inside.take_while(|(begin, _)| *begin < to) {
                if from <= *begin {
                    rest.push((from, *begin));
                }
                from = *end;
            }
            if from <= to {
                rest.push((from, to));
            }
        }
        self.stretches = rest;
        self.begins.extend(others.iter().map(|(_, end)| *end));
        self.begins.sort_unstable();
        self
    }

    /// The change from one process to a later process that lies after the time `from` and not after `to`. A removed
    /// stretch ([`Active::without`]) also counts as such a change, which lies at its end. `None` if there is no change
    /// between the two times.
    pub fn change(&self, from: i64, to: i64) -> Option<Change> {
        let next = self.begins.partition_point(|begin| *begin <= from);
        let last = self.begins.partition_point(|begin| *begin <= to);
        let first_after = *self.begins.get(next)?;
        let begin = last.checked_sub(1).and_then(|at| self.begins.get(at));
        (next < last).then_some(Change {
            end: first_after.saturating_sub(1),
            begin: *begin?,
        })
    }

    /// The first moment in nanoseconds, at the given time or after it, at which the process may have run; `None` if
    /// there is none.
    pub fn from(&self, time: i64) -> Option<i64> {
        let at = self.stretches.partition_point(|(_, to)| *to < time);
        self.stretches.get(at).map(|(from, _)| time.max(*from))
    }

    /// The beginning in nanoseconds of the stretch in which the process may have run at the given time; `None` if the
    /// process certainly did not run at that time.
    pub fn began(&self, time: i64) -> Option<i64> {
        let after = self.stretches.partition_point(|(from, _)| *from <= time);
        let stretch = after.checked_sub(1).and_then(|at| self.stretches.get(at));
        stretch.filter(|(_, to)| time <= *to).map(|(from, _)| *from)
    }

    /// The last moment in nanoseconds, at the given time or before it, at which the process may have run; `None` if
    /// there is none.
    pub fn until(&self, time: i64) -> Option<i64> {
        let after = self.stretches.partition_point(|(from, _)| *from <= time);
        let at = after.checked_sub(1)?;
        self.stretches.get(at).map(|(_, to)| time.min(*to))
    }
}

/// The change from one process to a later process that goes on with the earlier one's work, such as the next worker of
/// a test runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The last moment in nanoseconds at which the earlier process can have run tests: just before the next process
    /// begins.
    pub end: i64,
    /// The moment in nanoseconds at which the last of the later processes begins.
    pub begin: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_changes_its_process_where_the_next_one_begins() {
        let lives = [vec![(0, 10)], vec![(20, 30)], vec![(40, 50)]].map(Active::of);
        let begins = [0, 20, 40];
        let all: Vec<(i64, &Active)> = begins.into_iter().zip(&lives).collect();
        let active = Active::chain(&all);
        assert_eq!(active.change(0, 10), None);
        assert_eq!(active.change(22, 30), None);
        let change = |end, begin| Some(Change { end, begin });
        assert_eq!(active.change(5, 25), change(19, 20));
        assert_eq!(active.change(5, 45), change(19, 40));
        assert_eq!(active.change(25, 45), change(39, 40));
        assert_eq!(Active::of(vec![(0, 9)]).change(0, 9), None);
    }

    #[test]
    fn no_test_lies_across_a_span_of_something_else() {
        let other = Active::of(vec![(5, 22), (25, 27)]);
        let active = Active::of(vec![(0, 10), (20, 30), (40, 50)]).without(&other);
        assert_eq!(active.stretches, [(0, 5), (22, 25), (27, 30), (40, 50)]);
        assert_eq!(active.change(0, 5), None);
        assert_eq!(active.change(0, 23), Some(Change { end: 21, begin: 22 }));
        assert_eq!(active.until(21), Some(5));
        assert_eq!(active.change(27, 50), None);
    }

    #[test]
    fn moments_lie_in_the_stretches() {
        let active = Active::of(vec![(30, 40), (10, 15), (14, 20)]);
        let from = |time| active.from(time);
        assert_eq!(
            [0, 10, 17, 20, 21, 40].map(from),
            [10, 10, 17, 20, 30, 40].map(Some)
        );
        assert_eq!(from(41), None);
        let until = |time| active.until(time);
        assert_eq!(
            [10, 17, 25, 29, 30, 99].map(until),
            [10, 17, 20, 20, 30, 40].map(Some)
        );
        assert_eq!(until(9), None);
    }
}
