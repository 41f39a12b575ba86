//! The time in which a process ran on a CPU, as far as a recording has it.
//!
//! A runner that notes when a test begins or ends reads a clock then, so it is on a CPU. While all of its threads
//! are off CPU, none of its tests begins or ends.

use tr_analyze::model::ThreadIx;

use tr_analyze::timeline::{Bucket, Timeline};

use crate::imports::lookup::signed;

/// The stretches of time, in ns, in which a process may have run, or one of several processes of which each began after
/// the end of the one before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Active {
    /// The stretches in the order of time, apart from each other.
    stretches: Vec<(i64, i64)>,
    /// The beginning of each process after the first one.
    begins: Vec<i64>,
}

impl Active {
    /// The time in which any of these threads was on a CPU, or in which that is unknown.
    pub fn new(timeline: &Timeline, threads: &[ThreadIx]) -> Active {
        let stretches = threads.iter().flat_map(|thread| timeline.of(*thread));
        let may_run = stretches.filter(|stretch| {
            matches!(stretch.doing, Bucket::OnCpu(_) | Bucket::Unknown) && stretch.from < stretch.to
        });
        let stretches = may_run.map(|stretch| (signed(stretch.from), signed(stretch.to)));
        Active::of(stretches.collect())
    }

    /// Stretches in any order.
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

    /// The stretches of several processes in the order of their lives, each with its beginning.
    pub fn chain(all: &[(i64, &Active)]) -> Active {
        let stretches = all.iter().flat_map(|(_, active)| &active.stretches);
        Active {
            stretches: stretches.copied().collect(),
            begins: all.iter().skip(1).map(|(begin, _)| *begin).collect(),
        }
    }

    /// Where another process than at `from` runs at `to`, its beginning and the end of the one at `from`.
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

    /// The first moment from a time on at which the process may have run.
    pub fn from(&self, time: i64) -> Option<i64> {
        let at = self.stretches.partition_point(|(_, to)| *to < time);
        self.stretches.get(at).map(|(from, _)| time.max(*from))
    }

    /// The last moment up to a time at which the process may have run.
    pub fn until(&self, time: i64) -> Option<i64> {
        let after = self.stretches.partition_point(|(from, _)| *from <= time);
        let at = after.checked_sub(1)?;
        self.stretches.get(at).map(|(_, to)| time.min(*to))
    }
}

/// Two processes that ran at two times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The last moment of the process at the earlier time.
    pub end: i64,
    /// The beginning of the process at the later time.
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
