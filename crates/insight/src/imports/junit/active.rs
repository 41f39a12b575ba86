//! The time in which a process ran on a CPU, as far as a recording has it.
//!
//! A runner that notes when a test begins or ends reads a clock then, so it is on a CPU. While all of its threads
//! are off CPU, none of its tests begins or ends.

use tr_analyze::model::ThreadIx;

use tr_analyze::timeline::{Bucket, Timeline};

use crate::imports::lookup::signed;

/// The stretches of time, in ns, in which a process may have run, in the order of time and apart from each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Active(Vec<(i64, i64)>);

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
        Active(apart)
    }

    /// The first moment from a time on at which the process may have run.
    pub fn from(&self, time: i64) -> Option<i64> {
        let at = self.0.partition_point(|(_, to)| *to < time);
        self.0.get(at).map(|(from, _)| time.max(*from))
    }

    /// The last moment up to a time at which the process may have run.
    pub fn until(&self, time: i64) -> Option<i64> {
        let after = self.0.partition_point(|(from, _)| *from <= time);
        let at = after.checked_sub(1)?;
        self.0.get(at).map(|(_, to)| time.min(*to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
