//! Makes running totals of the machine's counters in a rotated recording, in which each part of the recording
//! counts from 0 again.

use std::collections::VecDeque;

use tr_format::counters::Counters;
use tr_format::event::Ktime;

/// The totals of the machine's counters in a rotated recording: the sums of the earlier parts, and the last sample of
/// the present part.
#[derive(Debug, Default)]
pub struct Parts {
    /// The times at which the second and the later parts of a rotated recording begin.
    begins: VecDeque<Ktime>,
    /// The last sample of the machine's counters as the present part of the recording has it, without the earlier
    /// parts.
    last: Counters,
    before: Counters,
}

impl Parts {
    pub fn new(begins: impl Iterator<Item = Ktime>) -> Parts {
        Parts {
            begins: begins.collect(),
            ..Parts::default()
        }
    }

    /// Returns a sample of the machine's counters to which the totals of the recording's earlier parts are added. A new
    /// part is recognized by its time and by totals that are smaller than before. The time alone is not enough, because
    /// the last sample of a part can have the time at which the next part begins.
    pub fn continued(&mut self, time: Ktime, counters: &Counters) -> Counters {
        let begins = self.begins.front().is_some_and(|begin| *begin <= time);
        let totals = || {
            counters
                .iter()
                .filter(|(counter, _)| counter.unit().is_total())
        };
        let is_lower = |(counter, value)| self.last.get(counter).is_some_and(|last| value < last);
        if begins && totals().any(is_lower) {
            self.begins.retain(|begin| *begin > time);
            for (counter, value) in self.last.iter() {
                let sum = self.before.get(counter).unwrap_or(0).saturating_add(value);
                self.before.set(counter, sum);
            }
            self.last = Counters::default();
        }
        let mut all = counters.clone();
        for (counter, value) in totals() {
            self.last.set(counter, value);
            let before = self.before.get(counter).unwrap_or(0);
            all.set(counter, value.saturating_add(before));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use tr_format::counters::Counter;

    use super::*;

    #[test]
    fn totals_go_on_over_parts() {
        let mut parts = Parts::new([Ktime(20), Ktime(40)].into_iter());
        let mut at = |time, busy, free| {
            let mut counters = Counters::default();
            counters.set(Counter::Busy, busy);
            counters.set(Counter::Resident, free);
            let all = parts.continued(Ktime(time), &counters);
            (all.get(Counter::Busy), all.get(Counter::Resident))
        };
        // The total becomes smaller at 15, but no part of the recording begins there. So the kernel itself reported the
        // smaller total, and the total is passed on unchanged.
        assert_eq!(at(10, 5, 9), (Some(5), Some(9)));
        assert_eq!(at(15, 4, 9), (Some(4), Some(9)));
        assert_eq!(at(20, 6, 9), (Some(6), Some(9)));
        assert_eq!(at(20, 0, 3), (Some(6), Some(3)));
        assert_eq!(at(30, 7, 3), (Some(13), Some(3)));
        assert_eq!(at(41, 1, 2), (Some(14), Some(2)));
    }
}
