//! Handles tests of a report with equal times, and the orders in which they can have run.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::active::Active;
use super::serial::{self, Place, Test};

/// The largest number of possible orders of tests that are tried.
const ORDERS: usize = 200;

/// Joins tests with equal times, whose order is not known, into one test, so that a place can be searched for all of
/// them together. The joined test begins or ends at the common time of these tests. The joined test has no exact
/// length, because the runner may have worked between the tests for an unknown time.
pub fn joined(tests: &[Test]) -> Option<Test> {
    let (last, before) = tests.split_last()?;
    if before.is_empty() {
        return Some(last.clone());
    }
    let lengths = before.iter().map(|test| test.length);
    Some(Test {
        length: lengths.fold(last.length, i64::saturating_add),
        error: i64::MAX,
        ..last.clone()
    })
}

/// Tests of a report with equal times, or without times, whose order is only partly known.
pub struct Block<'a> {
    pub tests: &'a [Test],
    /// For each test of the block, the number of its lane. A lane is a list of tests that ran in the order of the file.
    /// The order of tests in different lanes is not known.
    lanes: Vec<usize>,
}

impl<'a> Block<'a> {
    /// Divides tests of a report into blocks, within which the order of the tests is not known. A lane is a list of
    /// tests that ran in the order of the file. If all tests are in one lane, each test is a block of its own;
    /// otherwise all tests are one block.
    pub fn of(tests: &'a [Test], lanes: Vec<usize>) -> Vec<Block<'a>> {
        if lanes.iter().any(|lane| Some(lane) != lanes.first()) {
            return vec![Block { tests, lanes }];
        }
        let alone = tests.chunks(1).zip(lanes);
        let alone = alone.map(|(tests, lane)| Block {
            tests,
            lanes: vec![lane],
        });
        alone.collect()
    }

    /// The indexes of the block's tests in each lane (a list of tests that ran in a known order), by the number of the
    /// lane.
    fn by_lane(&self) -> BTreeMap<usize, Vec<usize>> {
        let mut by_lane: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, lane) in self.lanes.iter().enumerate() {
            by_lane.entry(*lane).or_default().push(at);
        }
        by_lane
    }

    /// The number of possible orders of the block's tests. Each of these orders keeps the known order of the tests
    /// within a lane (a list of tests that ran in the order of the file). `None` if the number is more than [`ORDERS`].
    pub fn count(&self) -> Option<usize> {
        let (mut count, mut tests) = (1_usize, 0_usize);
        for lane in self.by_lane().into_values() {
            for place in 1..=lane.len() {
                tests += 1;
                // The number of orders is a product of binomial coefficients. Each intermediate result is an integer
                // and not larger than the final one, so the search can stop as soon as a result is too large.
                count = count.checked_mul(tests)? / place;
                if count > ORDERS {
                    return None;
                }
            }
        }
        Some(count)
    }

    /// All possible orders of the block's tests. Each of these orders keeps the known order of the tests within a lane
    /// (a list of tests that ran in the order of the file). `None` if there are more than [`ORDERS`] such orders.
    pub fn orders(&self) -> Option<Vec<Vec<usize>>> {
        let mut orders = Vec::with_capacity(self.count()?);
        let by_lane = self.by_lane();
        let mut lanes = self.lanes.clone();
        lanes.sort_unstable();
        loop {
            let mut open: BTreeMap<usize, std::slice::Iter<'_, usize>> = by_lane
                .iter()
                .map(|(lane, tests)| (*lane, tests.iter()))
                .collect();
            let next = lanes.iter().filter_map(|lane| open.get_mut(lane)?.next());
            orders.push(next.copied().collect());
            if !step(&mut lanes) {
                return Some(orders);
            }
        }
    }

    /// For each test of the block, the earliest and the latest times at which the test can have begun and ended if the
    /// block's tests ran in any of the given orders. `None` if the recording allows none of the orders. The tests ran
    /// within `around`, and began and ended while their runner was on a CPU (`active`).
    pub fn in_any_order(
        &self,
        orders: &[Vec<usize>],
        around: &RangeInclusive<i64>,
        active: &Active,
    ) -> Option<Vec<Place>> {
        let mut all: Vec<Option<Place>> = vec![None; self.tests.len()];
        for order in orders {
            let tests = order.iter().filter_map(|at| self.tests.get(*at).cloned());
            let tests: Vec<Test> = tests.collect();
            let Some(places) = serial::places(&tests, around, active) else {
                continue;
            };
            for (at, place) in order.iter().zip(places) {
                if let Some(slot) = all.get_mut(*at) {
                    let reach = slot.as_ref().map(|before| before.reach(&place));
                    *slot = Some(reach.unwrap_or(place));
                }
            }
        }
        all.into_iter().collect()
    }
}

/// Changes a list into its next larger permutation. Returns `false` if there is no larger permutation.
fn step(list: &mut [usize]) -> bool {
    let rises = |pair: &[usize]| matches!(pair, [a, b] if a < b);
    let Some(last) = list.windows(2).rposition(rises) else {
        return false;
    };
    let larger = |number: &usize| list.get(last).is_some_and(|least| number > least);
    let Some(other) = list.iter().rposition(larger) else {
        return false;
    };
    list.swap(last, other);
    if let Some(rest) = list.get_mut(last + 1..) {
        rest.reverse();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_keep_that_of_each_lane() {
        let test = Test {
            begin: None,
            end: None,
            length: 1,
            error: 0,
            between: 0,
        };
        let tests = vec![test; 6];
        let orders = |lanes: &[usize]| {
            let tests = tests.get(..lanes.len())?;
            let lanes = lanes.to_vec();
            Block { tests, lanes }.orders()
        };
        assert_eq!(
            orders(&[0, 1, 0]),
            Some(vec![vec![0, 2, 1], vec![0, 1, 2], vec![1, 0, 2]])
        );
        assert_eq!(orders(&[0, 1, 2, 3, 4]).map(|all| all.len()), Some(120));
        // Six tests in any order have 720 orders, which is more than `ORDERS`.
        assert_eq!(orders(&[0, 1, 2, 3, 4, 5]), None);
        let many: Vec<usize> = (0..100_000).map(|at| at % 2).collect();
        let block = Block {
            tests: &[],
            lanes: many,
        };
        assert_eq!(block.count(), None);
    }
}
