//! Finds bounds of the places in time of tests that ran one after the other, in one process or in several processes in
//! turn.
//!
//! The length of each test is known, and sometimes a time of the day. A test begins and ends while its runner is on a
//! CPU ([`Active`]), and it begins no earlier than the end of the test before it. The earliest and the latest schedule
//! (places for all tests) that agree with these facts bound all other schedules.

use std::ops::RangeInclusive;

use super::active::Active;

/// The least number of tests of a process whose beginnings and ends must be known nearly exactly, as a proof that the
/// lengths in the report were measured by this process. A guess: a single test can fit by chance.
pub const EXACT_TESTS: usize = 2;

/// The largest error in nanoseconds with which the beginning and the end of a test still count as known nearly exactly.
/// A guess: a runner needs about this time between two tests, so the beginning and the end of a test are hardly ever
/// known better.
const NEARLY_EXACT: i64 = 5_000_000;

/// The times that are known about a test of a suite, in nanoseconds. From these times, the beginning and the end of the
/// test in the recording are computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// The range of times in which the test begins, if the report gives its beginning; otherwise `None`.
    pub begin: Option<RangeInclusive<i64>>,
    /// The range of times in which the test ends, if the report gives its end; otherwise `None`.
    pub end: Option<RangeInclusive<i64>>,
    pub length: i64,
    /// The largest error of the test's length in the report, in nanoseconds.
    pub error: i64,
    /// The longest time in nanoseconds that can lie between the parts of the test. The length in the report may be only
    /// the sum of the lengths of these parts. The test can then have lasted longer than the report says, by at most
    /// this time.
    pub between: i64,
}

impl Test {
    /// The longest time in nanoseconds by which the test can have lasted longer than the report says.
    fn longer(&self) -> i64 {
        self.error.saturating_add(self.between)
    }

    fn begin(&self) -> RangeInclusive<i64> {
        self.begin.clone().unwrap_or(i64::MIN..=i64::MAX)
    }

    fn end(&self) -> RangeInclusive<i64> {
        self.end.clone().unwrap_or(i64::MIN..=i64::MAX)
    }
}

/// The bounds of a test's place in time: a range for its beginning and a range for its end, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub begin: RangeInclusive<i64>,
    pub end: RangeInclusive<i64>,
}

impl Place {
    /// The smallest bounds that include both this place and the bounds `other`.
    pub fn reach(&self, other: &Place) -> Place {
        let reach = |a: &RangeInclusive<i64>, b: &RangeInclusive<i64>| {
            *a.start().min(b.start())..=*a.end().max(b.end())
        };
        Place {
            begin: reach(&self.begin, &other.begin),
            end: reach(&self.end, &other.end),
        }
    }

    /// Whether the beginning and the end of a test are known nearly exactly, for example because the test lies between
    /// two sleeps of its runner. `error` is the largest error of the test's length. The result is false if this error
    /// is large or the test is short (`NEARLY_EXACT`), because an inexact or short length fits into many places by
    /// chance.
    pub fn is_exact(&self, length: i64, error: i64) -> bool {
        self.error().max(error) <= NEARLY_EXACT && NEARLY_EXACT < length
    }

    /// The largest error in nanoseconds of the beginning or the end of a test that is placed within these bounds.
    pub fn error(&self) -> i64 {
        let width = |range: &RangeInclusive<i64>| range.end().saturating_sub(*range.start());
        width(&self.begin).max(width(&self.end))
    }
}

/// For tests that a process ran one after the other within `around`: for each test, the bounds of its beginning and its
/// end. `None` if no schedule agrees with everything that is known.
pub fn places(tests: &[Test], around: &RangeInclusive<i64>, active: &Active) -> Option<Vec<Place>> {
    let mut earliest = Vec::with_capacity(tests.len());
    let mut free = *around.start();
    for test in tests {
        let (begin, end) = first(test, free, active)?;
        earliest.push((begin, end));
        free = end;
    }
    let mut places = Vec::with_capacity(tests.len());
    let mut free = *around.end();
    for (test, early) in tests.iter().zip(earliest).rev() {
        let (begin, end) = last(test, free, active)?;
        if begin < early.0 || end < early.1 {
            return None;
        }
        places.push(Place {
            begin: early.0..=begin,
            end: early.1..=end,
        });
        free = begin;
    }
    places.reverse();
    Some(places)
}

/// The earliest beginning and end of a test that begins at `free` or later, in nanoseconds. The runner must be on a CPU
/// at both times, so each round of the search moves the beginning to a later stretch on a CPU.
pub fn first(test: &Test, free: i64, active: &Active) -> Option<(i64, i64)> {
    let mut at = free.max(*test.begin().start());
    loop {
        let begin = active.from(at)?;
        if begin > *test.begin().end() {
            return None;
        }
        let shortest = begin.saturating_add(test.length).saturating_sub(test.error);
        let end = active.from(shortest.max(begin).max(*test.end().start()))?;
        if end > *test.end().end() {
            return None;
        }
        // A test runs in one process. If the runner replaced its process by a new one between the assumed beginning
        // and the assumed end of the test, the test ran in the new process.
        if let Some(change) = active.change(begin, end) {
            at = change.begin;
            continue;
        }
        let longest = begin
            .saturating_add(test.length)
            .saturating_add(test.longer());
        if end <= longest {
            return Some((begin, end));
        }
        at = begin.saturating_add(end.saturating_sub(longest));
    }
}

/// The latest beginning and end of a test that ends at `free` or earlier, in nanoseconds. The runner must be on a CPU
/// at both times.
fn last(test: &Test, free: i64, active: &Active) -> Option<(i64, i64)> {
    let mut at = free.min(*test.end().end());
    loop {
        let end = active.until(at)?;
        if end < *test.end().start() {
            return None;
        }
        let shortest = end.saturating_sub(test.length).saturating_add(test.error);
        let begin = active.until(shortest.min(end).min(*test.begin().end()))?;
        if begin < *test.begin().start() {
            return None;
        }
        if let Some(change) = active.change(begin, end) {
            at = change.end;
            continue;
        }
        let longest = end
            .saturating_sub(test.length)
            .saturating_sub(test.longer());
        if begin >= longest {
            return Some((begin, end));
        }
        at = end.saturating_sub(longest.saturating_sub(begin));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn test(length: i64) -> Test {
        Test {
            begin: None,
            end: None,
            length,
            error: 1,
            between: 0,
        }
    }

    /// Checks that two tests have only one possible place each if the test runner sleeps during each of them, whatever
    /// the runner did before.
    #[test]
    fn sleeps_of_the_runner_hold_tests_in_their_places() {
        let active = Active::of(vec![(0, 200), (700, 705), (1_000, 1_002)]);
        let found = places(&[test(503), test(297)], &(0..=1_100), &active).unwrap();
        let want = [(196..=200, 700..=704), (702..=705, 1_000..=1_002)];
        let want = want.map(|(begin, end)| Place { begin, end });
        assert_eq!(found, want);
        assert_eq!(found.iter().map(Place::error).max(), Some(4));
    }

    /// Checks that the recording does not narrow the bounds of the tests if the test runner is on a CPU all the time.
    /// Only the bounds of the suite limit the tests in this case.
    #[test]
    fn a_runner_on_a_cpu_leaves_the_slack_of_the_suite() {
        let active = Active::of(vec![(0, 1_000)]);
        let found = places(&[test(500), test(300)], &(100..=950), &active).unwrap();
        assert_eq!(found.iter().map(Place::error).collect::<Vec<_>>(), [52, 52]);
    }

    /// Checks that a test cannot begin in one process and end in the next one, even if its length fits.
    #[test]
    fn a_test_has_one_of_the_processes_that_follow_each_other() {
        let lives = [
            vec![(0, 100), (400, 405)],
            vec![(500, 510), (800, 801), (1_000, 1_001)],
        ];
        let lives = lives.map(Active::of);
        let begins = [0, 500];
        let all: Vec<(i64, &Active)> = begins.into_iter().zip(&lives).collect();
        let active = Active::chain(&all);
        let found = places(&[test(304), test(200)], &(0..=1_100), &active).unwrap();
        let place = |begin, end| Place { begin, end };
        assert_eq!(
            found,
            [place(95..=100, 400..=405), place(800..=801, 1_000..=1_001)]
        );
        // No single process lived long enough for this test.
        assert_eq!(places(&[test(600)], &(0..=1_100), &active), None);
    }

    /// Checks that no schedule is found if a test would have to begin or end while its runner sleeps. Then another
    /// process ran the test, or the reported times mean something else.
    #[test]
    fn tests_across_a_sleep_have_no_schedule() {
        let active = Active::of(vec![(0, 100), (900, 1_000)]);
        assert_eq!(places(&[test(300)], &(0..=1_000), &active), None);
        assert!(places(&[test(800)], &(0..=1_000), &active).is_some());
        let stamped = Test {
            begin: Some(300..=310),
            ..test(600)
        };
        assert_eq!(places(&[stamped], &(0..=1_000), &active), None);
    }

    /// Checks that a test whose length is the sum of its parts can last longer than this length, across a sleep between
    /// the parts.
    #[test]
    fn the_time_between_the_parts_of_a_test_is_not_in_its_length() {
        let active = Active::of(vec![(0, 10), (200, 210), (400, 402)]);
        let parts = Test {
            between: i64::MAX,
            ..test(210)
        };
        let found = [test(210), parts].map(|test| places(&[test], &(0..=402), &active).unwrap());
        let place = |begin, end| vec![Place { begin, end }];
        assert_eq!(found, [place(0..=1, 209..=210), place(0..=10, 209..=402)]);
    }

    #[test]
    fn times_of_the_day_bound_a_test() {
        let active = Active::of(vec![(0, 10_000)]);
        let stamped = |begin: Option<i64>, end: Option<i64>| Test {
            begin: begin.map(|at| at..=at + 999),
            end: end.map(|at| at..=at + 999),
            ..test(1_900)
        };
        let tests = [stamped(Some(1_000), None), stamped(None, Some(5_000))];
        let found = places(&tests, &(0..=10_000), &active).unwrap();
        assert_eq!(found[0].begin, 1_000..=1_999);
        assert_eq!(found[1].end, 5_000..=5_999);
        // Each test lasted 1,900 ns, give or take 1 ns. So the first test ends at 2,899 ns or later, and the second
        // test ends at 4,798 ns or later.
        let tests = [stamped(Some(1_000), None), stamped(None, Some(4_000))];
        let found = places(&tests, &(0..=10_000), &active).unwrap();
        assert_eq!(found[1].end, 4_798..=4_999);
        assert_eq!(found[0].begin, 1_000..=1_201);
    }
}
