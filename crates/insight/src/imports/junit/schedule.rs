//! Finds the process that ran the tests of a suite, and the bounds of their places.

use std::collections::{BTreeMap, HashSet};
use std::ops::RangeInclusive;
use std::rc::Rc;

use tr_analyze::model::ProcessIx;

use super::active::Active;
use super::proof::Stamp;
use super::runner::RunnerFacts;
use super::serial::{self, Place, Test};
use super::{Case, Placer, Suite, Times, TRIED};
use crate::imports::lookup::signed;

/// The most tests of a suite whose orders are tried.
const ORDERS: usize = 200;

/// The most times that the bounds of a suite and those of its tests narrow each other.
const ROUNDS: usize = 8;

/// The least error of a length, in ns, however many digits the file has: a runner reads two clocks, and a tracepoint
/// is a little before or after what it traces.
const LEAST_ERROR: i64 = 100_000;

/// The places of tests in their suite, by that of the test around them.
type Groups = BTreeMap<Option<usize>, Vec<usize>>;

/// The tests of a suite under the only process that can have run them one after the other.
pub struct Schedule {
    pub runner: Scheduled,
    /// The span of each test; none without a length or a time that the others have.
    pub times: Vec<Option<Times>>,
    /// The children that began and ended in one test each.
    pub decided: Vec<ProcessIx>,
}

/// The process that ran the tests of a suite.
#[derive(Clone, Copy, Debug)]
pub struct Scheduled {
    pub process: ProcessIx,
    /// One thread of the process ran the tests, and no other can have.
    pub is_one_thread: bool,
}

impl Placer<'_> {
    /// The schedule of a suite that `runner` ran, or else the only one of the processes below it. A runner that began
    /// workers before the test, and a wrapper such as npx, make or a shell, only waits. Without a runner the likelier
    /// ones are tried, and those below them.
    pub fn schedule(&mut self, suite: &Suite, runner: Option<ProcessIx>) -> Option<Schedule> {
        if !self.is_of_recording(suite) {
            return None;
        }
        let groups = self.groups(suite);
        if let Some(runner) = runner {
            let found = self.scheduled(suite, &groups, runner);
            return found.or_else(|| self.only(suite, &groups, &[runner]));
        }
        let lists = std::mem::take(&mut self.runners);
        let mut likely = lists.iter();
        let found = likely.find_map(|likely| self.only(suite, &groups, likely));
        self.runners = lists;
        found
    }

    /// Whether all times of the day of a suite lie in the recording. Others are those of another run.
    fn is_of_recording(&self, suite: &Suite) -> bool {
        let cases = suite.cases.iter().map(|case| case.attributes.at);
        let mut dates = cases.chain([suite.attributes.at]).flatten();
        dates.all(|date| {
            let (time, error) = (self.time(date), self.stamp_error(date.digit));
            let (from, to) = (time.saturating_sub(error), time.saturating_add(error));
            !self.lookup.is_outside(from, to)
        })
    }

    /// The schedule of the only process that has one, of some and of all below them.
    fn only(&mut self, suite: &Suite, groups: &Groups, likely: &[ProcessIx]) -> Option<Schedule> {
        let analysis = self.lookup.analysis;
        let (mut all, mut seen) = (Vec::new(), HashSet::new());
        let mut open: Vec<ProcessIx> = likely.to_vec();
        while let Some(process) = open.pop().filter(|_| all.len() < TRIED) {
            if seen.insert(process) {
                all.push(process);
                open.extend(&analysis.process(process).children);
            }
        }
        let length = |process: &ProcessIx| {
            let process = analysis.process(*process);
            signed(process.end).saturating_sub(signed(process.start))
        };
        self.spend(all.len())?;
        all.retain(|process| length(process) >= suite.sum());
        let mut found = all
            .into_iter()
            .filter_map(|process| self.scheduled(suite, groups, process));
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }

    /// The spans of the tests of a suite as the recording bounds them, if the process ran them one after the other
    /// and a schedule agrees with all that is known: see [`serial`]. A time of the day counts only where its
    /// meaning and its zone are proven; without one a test can be anywhere in the life of its runner.
    fn scheduled(
        &mut self,
        suite: &Suite,
        groups: &Groups,
        process: ProcessIx,
    ) -> Option<Schedule> {
        let facts = self.facts(process)?;
        let around = self.window(suite, process);
        let threads = facts.threads.iter();
        let mut alone = threads.filter_map(|active| self.bounds(suite, groups, &around, active));
        let only = alone.next().filter(|_| alone.next().is_none());
        let runner = Scheduled {
            process,
            is_one_thread: only.is_some(),
        };
        let places = match only {
            Some(places) => places,
            None => self.bounds(suite, groups, &around, &facts.any)?,
        };
        Some(self.spans(suite, runner, &facts, places))
    }

    /// The facts about a process; none without a timeline.
    fn facts(&mut self, process: ProcessIx) -> Option<Rc<RunnerFacts>> {
        let analysis = self.lookup.analysis;
        let new = || RunnerFacts::new(analysis, process).map(Rc::new);
        self.facts.entry(process).or_insert_with(new).clone()
    }

    /// The time in which the tests of a suite can have run in a process.
    fn window(&self, suite: &Suite, process: ProcessIx) -> RangeInclusive<i64> {
        let process = self.lookup.analysis.process(process);
        let (mut from, mut to) = (signed(process.start), signed(process.end));
        to = to.min(self.written.unwrap_or(to));
        let Some(times) = self.of_suite(suite).filter(|times| times.doubt.is_none()) else {
            return from..=to;
        };
        let error = self.stamp_error(times.digit);
        match self.of_suites {
            // The suite may have ended any time before: the report is written later than its last test.
            Some(Stamp::End) => to = to.min(times.to.saturating_add(error)),
            _ => {
                from = from.max(times.from.saturating_sub(error));
                if suite.is_measured() {
                    let end = times.to.saturating_add(suite.attributes.digit);
                    to = to.min(end.saturating_add(error));
                }
            }
        }
        from..=to
    }

    /// The tests of a suite that have a place to find, by the test around them, in the order of their times.
    fn groups(&self, suite: &Suite) -> Groups {
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

    /// The bounds of each test, if there is a schedule. Tests that hold others are scheduled before those.
    fn bounds(
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

    /// The bounds of the tests of a suite, which has room for no more than its own length if that was measured.
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

    /// The bounds of tests in the order of their times, or without times in that of the file. The order of a file that
    /// can be one by result proves nothing about a test that failed and one that did not.
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
        if !suite.is_by_result() {
            return serial::places(&tests, around, active);
        }
        if cases.iter().any(|case| case.attributes.at.is_some()) {
            return self.beside_each_other(&cases, &tests, around, active);
        }
        let mut failed =
            (0..cases.len()).filter(|at| cases.get(*at).is_some_and(|case| case.has_failed()));
        match (failed.next(), failed.next()) {
            (None, _) => serial::places(&tests, around, active),
            (Some(only), None) if tests.len() <= ORDERS => {
                self.spend(tests.len().saturating_mul(tests.len()))?;
                anywhere(only, &tests, around, active)
            }
            _ => None,
        }
    }

    /// The bounds of tests with times of their own. Tests with the same time that differ in their results can be
    /// anywhere among them.
    fn beside_each_other(
        &self,
        cases: &[&Case],
        tests: &[Test],
        around: &RangeInclusive<i64>,
        active: &Active,
    ) -> Option<Vec<Place>> {
        let stamp = |case: &Case| case.attributes.at.map(|date| self.time(date));
        let mut blocks: Vec<&[Test]> = Vec::with_capacity(tests.len());
        let mut rest = tests;
        for same in cases.chunk_by(|a, b| stamp(a) == stamp(b)) {
            let (block, after) = rest.split_at_checked(same.len())?;
            rest = after;
            let mut results = same.iter().map(|case| case.has_failed());
            let first = results.next();
            if results.any(|failed| Some(failed) != first) {
                blocks.push(block);
            } else {
                blocks.extend(block.chunks(1));
            }
        }
        let joined: Vec<Test> = blocks.iter().filter_map(|block| joined(block)).collect();
        let mut places = Vec::with_capacity(tests.len());
        for (block, place) in blocks.iter().zip(serial::places(&joined, around, active)?) {
            if let [_] = block {
                places.push(place);
                continue;
            }
            let around = *place.begin.start()..=*place.end.end();
            for test in *block {
                places.extend(serial::places(std::slice::from_ref(test), &around, active)?);
            }
        }
        Some(places)
    }

    /// A test as the file bounds it.
    fn test(&self, case: &Case) -> Test {
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
        }
    }

    /// The spans of tests within their bounds. A child for which the runner waits in one test alone belongs to that
    /// test, also if it began within the error of the test's beginning.
    fn spans(
        &self,
        suite: &Suite,
        runner: Scheduled,
        facts: &RunnerFacts,
        places: Vec<Option<Place>>,
    ) -> Schedule {
        let analysis = self.lookup.analysis;
        let mut order: Vec<usize> = (0..places.len()).collect();
        let place = |at: usize| places.get(at).and_then(Option::as_ref);
        order.retain(|at| place(*at).is_some());
        order.sort_by_key(|at| place(*at).map(|place| *place.begin.start()));
        let mut spans: Vec<Option<(i64, i64)>> = Vec::with_capacity(places.len());
        spans.extend(places.iter().zip(&suite.cases).map(|(place, case)| {
            let place = place.as_ref()?;
            let (to, length) = (*place.end.end(), case.attributes.length.unwrap_or(0));
            let from = to.saturating_sub(length).min(*place.begin.end());
            Some((from.max(*place.begin.start()), to))
        }));
        let mut decided = Vec::new();
        for child in &analysis.process(runner.process).children {
            let Some((first, last)) = facts.waited.get(child).copied() else {
                continue;
            };
            let start = signed(analysis.process(*child).start);
            // The test that has begun for certain in the middle of the time of the child.
            let middle = start.midpoint(last);
            let after = order
                .partition_point(|at| place(*at).is_some_and(|place| *place.begin.end() <= middle));
            let Some(at) = after.checked_sub(1).and_then(|at| order.get(at)).copied() else {
                continue;
            };
            let holds = |place: &Place| {
                let begun = *place.begin.start();
                let has_middle = middle <= *place.end.start();
                has_middle && begun <= start && begun <= first && last <= *place.end.end()
            };
            if !place(at).is_some_and(holds) {
                continue;
            }
            decided.push(*child);
            if let Some(Some((from, _))) = spans.get_mut(at) {
                *from = start.min(*from);
            }
            let before = after.checked_sub(2).and_then(|at| order.get(at));
            if let Some(Some((_, to))) = before.and_then(|at| spans.get_mut(*at)) {
                *to = start.min(*to);
            }
        }
        let times = places.iter().zip(spans).map(|(place, span)| {
            let (place, (from, to)) = (place.as_ref()?, span?);
            Some(Times {
                from,
                to: to.max(from),
                digit: 0,
                early: place.error(),
                error: Some(place.error()),
                doubt: None,
            })
        });
        Schedule {
            runner,
            times: times.collect(),
            decided,
        }
    }
}

/// Tests whose order is not known, and which have the same time, as one test. The first of them begins at that time, or
/// the last ends then. What the runner did between them is not bounded.
fn joined(tests: &[Test]) -> Option<Test> {
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

/// The bounds of tests of which one can be before or behind any other.
fn anywhere(
    moved: usize,
    tests: &[Test],
    around: &RangeInclusive<i64>,
    active: &Active,
) -> Option<Vec<Place>> {
    let mut all: Option<Vec<Place>> = None;
    for to in 0..tests.len() {
        let mut order: Vec<Test> = tests.to_vec();
        let test = order.remove(moved);
        order.insert(to, test);
        let Some(mut places) = serial::places(&order, around, active) else {
            continue;
        };
        let place = places.remove(to);
        places.insert(moved, place);
        all = Some(match all {
            None => places,
            Some(before) => before
                .into_iter()
                .zip(places)
                .map(|(a, b)| a.reach(&b))
                .collect(),
        });
    }
    all
}
