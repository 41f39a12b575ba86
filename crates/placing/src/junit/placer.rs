//! Places the tests of a report, suite by suite, in the lives of processes.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use tr_analyze::model::{Doubt, ProcessIx};
use tr_format::event::Ktime;

use super::active::Active;
use super::even::Bounds;
use super::own::OwnProcesses;
use super::proof::{Guess, Stamp};
use super::report::{Attributes, Case, Date, Suite};
use super::runner::{RunnerFacts, MOST_TRIED};
use crate::lookup::{signed, Lookup, Placed};

/// The largest difference in nanoseconds between the life of a process and the length of the only test that it runs. If
/// a fifth of the test's length is more, that fifth is the limit. A guess for the start and the end of an interpreter;
/// the script `reporters.py` tests the places of 35 runners' tests.
pub(super) const LONGER_LIFE: i64 = 100_000_000;

/// A test runner reads two clocks when a test begins: the time of day, and then the clock that measures the test's
/// length. At most so many nanoseconds lie between the two readings. A guess: a larger limit would needlessly allow
/// tests to begin before the shown time.
const BETWEEN_CLOCKS: i64 = 1_000_000;

/// A bound of the work: how often the place of a test may be computed for one report. One computation takes about 100
/// ns, so the search for the runners of very many suites ends within some seconds.
pub(super) const MOST_PLACES: u64 = 20_000_000;

/// Comparing the lives of this many processes with a test takes as long as computing the place of one test. The number
/// converts such comparisons to the unit of [`MOST_PLACES`].
const LIVES: usize = 8;

pub(super) struct Placer<'a> {
    pub lookup: &'a Lookup<'a>,
    /// The latest time in nanoseconds at which the report can have been written; `None` if the recording does not show
    /// this time. No test ends after this time.
    pub written: Option<i64>,
    /// For each process examined so far, the facts that decide which tests the process can have run.
    pub facts: HashMap<ProcessIx, Option<Rc<RunnerFacts>>>,
    /// The child processes of test runners that began and ended within a single test, so that it is known which test
    /// they belong to.
    pub decided: HashSet<ProcessIx>,
    /// The times at which other suites certainly ran in the processes that can have run the current suite.
    pub others: Active,
    /// The part of the budget [`MOST_PLACES`] that the search for test places may still use.
    pub work: Cell<u64>,
    /// How far ahead of UTC the report's times without a time zone are assumed to be, in nanoseconds.
    pub ahead: i64,
    /// Whether the assumed time zone is proven; see `Zone` in `junit.rs`.
    pub zone: bool,
    /// Whether the times of tests are their beginnings or their ends, if one of these is proven.
    pub of_cases: Option<Stamp>,
    /// Whether the times of suites are their beginnings or their ends, if one of these is proven.
    pub of_suites: Option<Stamp>,
    /// The suites and tests that were placed by their times, because they have no process or thread of their own. A
    /// suite comes before its tests.
    pub guesses: Vec<Guess>,
    pub runners: [Vec<ProcessIx>; 3],
    /// The beginning and the end of the recorded command in nanoseconds, if no other process can have run the tests.
    pub of_command: Option<(i64, i64)>,
    /// The test program in whose life all tests of the report ran, if its command line proves that.
    pub writer: Option<ProcessIx>,
    pub own: OwnProcesses,
    /// The processes that ran a single test and to which that test has already been assigned.
    pub used: HashSet<ProcessIx>,
    /// Whether the report has several test suites.
    pub several: bool,
    /// The largest time in nanoseconds by which the tests of the report may have run earlier than shown.
    pub early: i64,
    pub placed: Placed,
}

/// The times of a test or suite of a report, before the process that ran it is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub from: i64,
    pub to: i64,
    /// The largest time in nanoseconds by which the test or suite may begin later than shown, because its time in the
    /// report has few digits.
    pub digit: i64,
    /// The largest time in nanoseconds by which the test or suite may begin and end earlier than shown.
    pub early: i64,
    /// The largest error in nanoseconds of the beginning or the end of the test or suite; `None` if the recording gives
    /// no limit for this error ([`super::serial`]).
    pub error: Option<i64>,
    /// The bounds of the test's beginning and end, if the recording limits them.
    pub bounds: Option<Bounds>,
    /// Whether the figures of the test (such as CPU time) are equal in all processes that can have run it.
    pub is_even: bool,
    /// The reason why the times of the test or suite are not proven.
    pub doubt: Option<Doubt>,
}

/// A process that ran tests, and the span of its life in which the process ran these tests.
#[derive(Clone, Copy)]
pub(super) struct Runner {
    pub process: ProcessIx,
    pub from: Ktime,
    pub to: Ktime,
    /// Whether it is certain that `process` or one of its ancestors ran the tests, because no other process can have
    /// done so.
    pub is_sure: bool,
    /// Whether a single thread of the process ran the tests, and no other thread can have run them.
    pub is_one_thread: bool,
}

impl Placer<'_> {
    /// Subtracts the cost of computing `count` test places from the work that the search for places may still do;
    /// `None` if nothing remains.
    pub(super) fn spend(&self, count: usize) -> Option<()> {
        let left = self.work.get().checked_sub(count as u64);
        self.work.set(left.unwrap_or(0));
        left.map(|_| ())
    }

    /// For each suite of a report, whether it ran at the same time as another suite.
    pub(super) fn overlapping(&self, suites: &[Suite]) -> Vec<bool> {
        let around = suites.iter().enumerate().filter_map(|(at, suite)| {
            let times = self.around(suite).filter(|_| !suite.cases.is_empty())?;
            let error = self.error(&times, &suite.attributes);
            let from = times.from.saturating_add(error);
            Some((from, times.to.saturating_sub(error), at))
        });
        let mut around: Vec<(i64, i64, usize)> = around.collect();
        around.sort_unstable();
        let mut overlapping = vec![false; suites.len()];
        let mut last: Option<(i64, usize)> = None;
        for (from, to, at) in around {
            if let Some((_, before)) = last.filter(|(end, _)| from < to.min(*end)) {
                for at in [before, at] {
                    overlapping
                        .get_mut(at)
                        .into_iter()
                        .for_each(|is| *is = true);
                }
            }
            if last.is_none_or(|(end, _)| end < to) {
                last = Some((to, at));
            }
        }
        overlapping
    }

    /// The largest error in nanoseconds of the beginning or the end of a placed test. It depends on the digits of the
    /// report's numbers, on work between tests, and on the clocks.
    pub(super) fn error(&self, times: &Times, attributes: &Attributes) -> i64 {
        if let Some(error) = times.error {
            return error;
        }
        let place = times.digit.max(times.early);
        let clocks = self.lookup.clock_error();
        place
            .saturating_add(attributes.digit)
            .saturating_add(clocks)
    }

    /// Converts a time of the day in a report to a time of the recording in nanoseconds.
    pub(super) fn time(&self, date: Date) -> i64 {
        let ahead = date.ahead.unwrap_or(self.ahead);
        self.lookup.time(date.local.saturating_sub(ahead))
    }

    /// The times of a test or suite, from its length in nanoseconds and from `date`: the time of the day at which it
    /// ends (`Stamp::End`) or else begins.
    pub(super) fn from(&self, date: Date, length: i64, stamp: Option<Stamp>) -> Times {
        let at = self.time(date);
        let from = match stamp {
            Some(Stamp::End) => at.saturating_sub(length),
            Some(Stamp::Begin) | None => at,
        };
        let doubt = if date.ahead.is_none() && !self.zone {
            Some(Doubt::Zone)
        } else {
            stamp.is_none().then_some(Doubt::Stamp)
        };
        Times {
            from,
            to: from.saturating_add(length),
            digit: date.digit,
            early: 0,
            error: None,
            bounds: None,
            is_even: false,
            doubt,
        }
    }

    /// The beginning and the end of a suite that has a time of the day; `None` if it has none.
    pub(super) fn of_suite(&self, suite: &Suite) -> Option<Times> {
        let length = suite.attributes.length.unwrap_or_else(|| suite.sum());
        Some(self.from(suite.attributes.at?, length, self.of_suites))
    }

    /// The beginning and the end of a suite or, if the suite has no time of the day, of all its tests together. `None`
    /// if the tests have no times of the day either.
    pub(super) fn around(&self, suite: &Suite) -> Option<Times> {
        if let Some(times) = self.of_suite(suite) {
            return Some(times);
        }
        let spans = suite.cases.iter().filter_map(|case| self.of_case(case));
        spans.reduce(|a, b| Times {
            from: a.from.min(b.from),
            to: a.to.max(b.to),
            digit: a.digit.max(b.digit),
            early: 0,
            error: None,
            bounds: None,
            is_even: false,
            doubt: a.doubt.or(b.doubt),
        })
    }

    /// The beginning and the end of a test that has a time of the day; `None` if it has none.
    pub(super) fn of_case(&self, case: &Case) -> Option<Times> {
        let length = case.attributes.length.unwrap_or(0);
        Some(self.from(case.attributes.at?, length, self.of_cases))
    }

    /// The largest error in nanoseconds of a time of the day in a report. `digit` is the value of one unit in the last
    /// digit of the reported time, in nanoseconds: 10,000,000 for `12:00:03.25`.
    pub(super) fn stamp_error(&self, digit: i64) -> i64 {
        let clocks = self.lookup.clock_error();
        digit.saturating_add(clocks).saturating_add(BETWEEN_CLOCKS)
    }

    /// Finds the process that ran a suite or test with the given times, and the part of the process's life that the
    /// suite or test took. `None` if no process fits.
    pub(super) fn runner(&self, times: Times) -> Option<Runner> {
        let analysis = self.lookup.analysis;
        self.runners.iter().find_map(|runners| {
            let start = |ix: &ProcessIx| signed(analysis.process(*ix).start);
            let latest = times
                .from
                .saturating_add(times.digit)
                .saturating_add(LONGER_LIFE);
            let after = runners.partition_point(|ix| start(ix) <= latest);
            let before = runners.get(..after).unwrap_or_default();
            self.spend(before.len().min(MOST_TRIED).div_ceil(LIVES))?;
            // The runner began after its wrappers, so the processes are tried from the last one to the first one.
            let tried = before.iter().rev().take(MOST_TRIED).copied();
            let mut fitting = tried.filter_map(|ix| {
                let later = start(&ix).saturating_sub(times.from).clamp(0, times.digit);
                let (from, to) = (
                    times.from.saturating_add(later),
                    times.to.saturating_add(later),
                );
                Some((ix, self.lookup.inside(ix, from, to)?))
            });
            let (process, (from, to)) = fitting.next()?;
            let around: HashSet<ProcessIx> = analysis.lineage(process).take(MOST_TRIED).collect();
            Some(Runner {
                process,
                from,
                to,
                is_sure: fitting.all(|(other, _)| around.contains(&other)),
                is_one_thread: false,
            })
        })
    }
}
