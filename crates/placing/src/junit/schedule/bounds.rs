//! Finds bounds of the places in time of a suite's tests, within the time in which the processes of the suite can have
//! run these tests.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::junit::active::Active;
use crate::junit::blocks::{joined, Block};
use crate::junit::placer::Placer;
use crate::junit::proof::Stamp;
use crate::junit::report::{Case, Suite, LEAST_ERROR};
use crate::junit::serial::{self, Place, Test};

/// The largest number of rounds in which the bounds of the tests narrow the bounds of their suite, and then the suite's
/// bounds narrow those of the tests.
const ROUNDS: usize = 8;

/// For each test that contains other tests of the suite, the tests inside it. The key `None` has the tests that no
/// other test contains. Tests are given by their indexes in the suite's list of tests.
pub(super) type Groups = BTreeMap<Option<usize>, Vec<usize>>;

impl Placer<'_> {
    /// The tests of a suite that have to be placed, sorted by their times and grouped by the test that contains them.
    /// If some tests have times, only these are placed.
    pub(super) fn groups(&self, suite: &Suite) -> Groups {
        let has_stamps = suite.cases.iter().any(|case| case.attributes.at.is_some());
        let mut groups = Groups::new();
        for (at, (case, outer)) in suite.cases.iter().zip(suite.around()).enumerate() {
            if case.attributes.at.is_some() || !has_stamps {
                groups.entry(outer).or_default().push(at);
            }
        }
        let stamp = |at: &usize| suite.cases.get(*at).and_then(|case| case.attributes.at);
        for group in groups.values_mut() {
            group.sort_by_key(|at| stamp(at).map(|date| self.time(date)));
        }
        groups
    }

    /// The bounds of the place in time of each test of a suite; `None` if the tests do not fit into the time `around`.
    /// Tests that contain other tests are placed first.
    pub(super) fn bounds(
        &self,
        suite: &Suite,
        groups: &Groups,
        around: &RangeInclusive<i64>,
        active: &Active,
    ) -> Option<Vec<Option<Place>>> {
        let mut places: Vec<Option<Place>> = vec![None; suite.cases.len()];
        let mut open = vec![(None, around.clone())];
        while let Some((outer, around)) = open.pop() {
            let group = groups.get(&outer).map_or(&[][..], Vec::as_slice);
            let found = match outer {
                None => self.bounds_in_suite(suite, group, around, active)?,
                Some(_) => self.bounds_of(suite, group, &around, active)?,
            };
            for (at, place) in group.iter().copied().zip(found) {
                open.push((Some(at), *place.begin.start()..=*place.end.end()));
                if let Some(slot) = places.get_mut(at) {
                    *slot = Some(place);
                }
            }
        }
        Some(places)
    }

    /// The bounds of the places in time of those tests of a suite that no other test contains. If the suite's own
    /// length was measured, these tests have to fit into this length.
    fn bounds_in_suite(
        &self,
        suite: &Suite,
        group: &[usize],
        mut around: RangeInclusive<i64>,
        active: &Active,
    ) -> Option<Vec<Place>> {
        let mut places = self.bounds_of(suite, group, &around, active)?;
        let length = suite.attributes.length.filter(|_| suite.is_measured());
        let Some(length) = length else {
            return Some(places);
        };
        let length = length.saturating_add(suite.attributes.digit.max(LEAST_ERROR));
        for _ in 0..ROUNDS {
            let first = places.iter().map(|place| *place.begin.end()).min();
            let last = places.iter().map(|place| *place.end.start()).max();
            let (Some(first), Some(last)) = (first, last) else {
                break;
            };
            let from = last.saturating_sub(length).max(*around.start());
            let to = first.saturating_add(length).min(*around.end());
            if (from..=to) == around {
                break;
            }
            around = from..=to;
            places = self.bounds_of(suite, group, &around, active)?;
        }
        Some(places)
    }

    /// The bounds of the places of tests that ran in the order of their times, or in the order of the report if the
    /// tests have no times. If the report may be sorted by result, the report does not show the order between failed
    /// tests and other tests.
    fn bounds_of(
        &self,
        suite: &Suite,
        group: &[usize],
        around: &RangeInclusive<i64>,
        active: &Active,
    ) -> Option<Vec<Place>> {
        self.spend(group.len().max(1))?;
        let cases: Vec<&Case> = group.iter().filter_map(|at| suite.cases.get(*at)).collect();
        let tests: Vec<Test> = cases.iter().map(|case| self.test(case)).collect();
        if suite.has_order && !suite.is_by_result() {
            return serial::places(&tests, around, active);
        }
        self.mixed(suite.has_order, &cases, &tests, around, active)
    }

    /// For each test, the earliest and the latest times at which it can have begun and ended, for a report in which the
    /// tests may be in another order than the one in which they ran. If the order means nothing (`has_order` is false),
    /// the tests can have run in any order. Otherwise the report may be sorted by result: then the failed tests ran in
    /// their order, and so did the others. Tests with equal times or without times get bounds that cover all orders
    /// that the recording allows.
    fn mixed(
        &self,
        has_order: bool,
        cases: &[&Case],
        tests: &[Test],
        around: &RangeInclusive<i64>,
        active: &Active,
    ) -> Option<Vec<Place>> {
        let stamp = |case: &Case| case.attributes.at.map(|date| self.time(date));
        let has_stamps = cases.iter().any(|case| stamp(case).is_some());
        let mut blocks: Vec<Block<'_>> = Vec::new();
        let mut rest = tests;
        for same in cases.chunk_by(|a, b| stamp(a) == stamp(b)) {
            let (block, after) = rest.split_at_checked(same.len())?;
            rest = after;
            let lane = |(at, case): (usize, &&Case)| match (has_order, case.has_failed()) {
                (false, _) => at,
                (true, failed) => usize::from(failed),
            };
            let lanes = same.iter().enumerate().map(lane);
            blocks.extend(Block::of(block, lanes.collect()));
        }
        let joined: Vec<Test> = blocks
            .iter()
            .filter_map(|block| joined(block.tests))
            .collect();
        let mut places = Vec::with_capacity(tests.len());
        for (block, place) in blocks.iter().zip(serial::places(&joined, around, active)?) {
            if let [_] = block.tests {
                places.push(place);
                continue;
            }
            let around = *place.begin.start()..=*place.end.end();
            if let Some(count) = block.count() {
                self.spend(count.saturating_mul(block.tests.len()))?;
            }
            match block.orders() {
                Some(orders) => places.extend(block.in_any_order(&orders, &around, active)?),
                None if has_stamps => {
                    for test in block.tests {
                        let alone = std::slice::from_ref(test);
                        places.extend(serial::places(alone, &around, active)?);
                    }
                }
                None => return None,
            }
        }
        Some(places)
    }

    /// The length of a test and the ranges of time in which it begins or ends, as far as the report gives them.
    pub(super) fn test(&self, case: &Case) -> Test {
        let times = self.of_case(case).filter(|times| times.doubt.is_none());
        let window = |at: i64, digit: i64| {
            let error = self.stamp_error(0);
            at.saturating_sub(error)..=at.saturating_add(digit).saturating_add(error)
        };
        let (begin, end) = match (times, self.of_cases) {
            (Some(times), Some(Stamp::Begin)) => (Some(window(times.from, times.digit)), None),
            (Some(times), Some(Stamp::End)) => (None, Some(window(times.to, times.digit))),
            _ => (None, None),
        };
        Test {
            begin,
            end,
            length: case.attributes.length.unwrap_or(0),
            error: match case.attributes.length {
                Some(_) => case.attributes.digit.max(LEAST_ERROR),
                None => i64::MAX,
            },
            between: case.attributes.between(),
        }
    }
}
