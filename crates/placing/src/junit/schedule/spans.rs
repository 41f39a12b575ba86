//! Chooses a place for each test of a suite within the bounds of its place.

use std::rc::Rc;

use tr_analyze::model::ProcessIx;

use crate::junit::choice::{Schedule, Scheduled};
use crate::junit::even::Bounds;
use crate::junit::placer::{Placer, Times};
use crate::junit::report::Suite;
use crate::junit::runner::RunnerFacts;
use crate::junit::serial::Place;
use crate::lookup::signed;

/// The span of time that is chosen for each test of a suite. The functions below correct the spans step by step.
struct Spans<'a> {
    /// The bounds of each test's place in time; `None` for a test that is not placed.
    places: &'a [Option<Place>],
    /// The beginning and the end that are chosen for each test, in nanoseconds.
    chosen: Vec<Option<(i64, i64)>>,
    /// The indexes of the placed tests, in the order of their earliest beginnings.
    order: Vec<usize>,
}

impl<'a> Spans<'a> {
    /// Chooses for each test the latest place that its bounds allow. If the tests ran one after the other in a known
    /// order, these places do not overlap, so they are a valid schedule.
    fn latest(places: &'a [Option<Place>]) -> Spans<'a> {
        let latest = |place: &Place| (*place.begin.end(), *place.end.end());
        let chosen = places
            .iter()
            .map(|place| place.as_ref().map(latest))
            .collect();
        let earliest = places
            .iter()
            .map(|place| Some(*place.as_ref()?.begin.start()));
        let placed = earliest.enumerate().filter(|(_, begin)| begin.is_some());
        let mut placed: Vec<(usize, Option<i64>)> = placed.collect();
        placed.sort_by_key(|(_, begin)| *begin);
        Spans {
            places,
            chosen,
            order: placed.into_iter().map(|(at, _)| at).collect(),
        }
    }

    fn place(&self, at: usize) -> Option<&'a Place> {
        self.places.get(at).and_then(Option::as_ref)
    }

    /// The tests with a stretch of time in which they certainly ran, in the order of these stretches. The stretches do
    /// not overlap, so they can be sorted.
    fn certain(&self) -> Vec<usize> {
        let mut certain = self.order.clone();
        certain.retain(|at| {
            self.place(*at)
                .is_some_and(|place| place.begin.end() < place.end.start())
        });
        certain.sort_by_key(|at| self.place(*at).map(|place| *place.begin.end()));
        certain
    }

    /// Assigns a child process to a test: the test that certainly ran in the middle of the time from the child's start
    /// to the runner's last wait for the child. This test is extended so that the child started during the test, and
    /// the previous test is cut so that it ends no later than the child's start. Returns whether there is such a test.
    fn take_in(&mut self, child: &WaitedChild, certain: &[usize]) -> bool {
        let WaitedChild { start, waits, .. } = *child;
        let (first, last) = waits;
        let middle = start.midpoint(last);
        let after = certain.partition_point(|at| {
            self.place(*at)
                .is_some_and(|place| *place.begin.end() <= middle)
        });
        let Some(at) = after.checked_sub(1).and_then(|at| certain.get(at)).copied() else {
            return false;
        };
        let has_child = |place: &Place| {
            let begun = *place.begin.start();
            let has_middle = middle <= *place.end.start();
            has_middle && begun <= start && begun <= first && last <= *place.end.end()
        };
        if !self.place(at).is_some_and(has_child) {
            return false;
        }
        if let Some(Some((from, _))) = self.chosen.get_mut(at) {
            *from = start.min(*from);
        }
        let before = after.checked_sub(2).and_then(|at| certain.get(at));
        if let Some(Some((_, to))) = before.and_then(|at| self.chosen.get_mut(*at)) {
            *to = start.min(*to);
        }
        true
    }

    /// Cuts two neighbouring tests that overlap, at a time that the bounds of both tests allow. `around` has for each
    /// test the test that contains it.
    fn cut_overlaps(&mut self, around: &[Option<usize>]) {
        let mut order = self.order.clone();
        order.sort_by_key(|at| self.chosen.get(*at).copied().flatten());
        for (before, after) in order.iter().zip(order.iter().skip(1)) {
            let (Some(place_before), Some(place_after)) = (self.place(*before), self.place(*after))
            else {
                continue;
            };
            let (Some(Some(first)), Some(Some(second))) = (
                self.chosen.get(*before).copied(),
                self.chosen.get(*after).copied(),
            ) else {
                continue;
            };
            let cut = second.0.max(*place_before.end.start());
            let is_free = cut <= *place_after.begin.end() && cut < first.1;
            if is_free && around.get(*before) == around.get(*after) {
                if let Some(slot) = self.chosen.get_mut(*before) {
                    *slot = Some((first.0, cut));
                }
                if let Some(slot) = self.chosen.get_mut(*after) {
                    *slot = Some((cut, second.1));
                }
            }
        }
    }

    /// Extends each test that contains other tests, so that the containing test covers all tests inside it. `around`
    /// has for each test the test that contains it.
    fn surround(&mut self, around: &[Option<usize>]) {
        let next = |at: usize| around.get(at).copied().flatten();
        for at in 0..self.chosen.len() {
            let Some((from, to)) = self.chosen.get(at).copied().flatten() else {
                continue;
            };
            for outer in std::iter::successors(next(at), |outer| next(*outer)) {
                if let Some(Some(outer)) = self.chosen.get_mut(outer) {
                    *outer = (outer.0.min(from), outer.1.max(to));
                }
            }
        }
    }
}

/// A child process that a test runner waited for.
struct WaitedChild {
    process: ProcessIx,
    start: i64,
    /// The first and the last time in nanoseconds at which the child ended a wait of the runner.
    waits: (i64, i64),
}

impl Placer<'_> {
    /// Makes the schedule of a suite: chooses a place within the bounds of each test. If the runner waits for a child
    /// process only during one test, the child belongs to that test, even if it began shortly before the test's assumed
    /// beginning.
    pub(super) fn spans(
        &self,
        suite: &Suite,
        runner: Scheduled,
        facts: &[Rc<RunnerFacts>],
        places: Vec<Option<Place>>,
    ) -> Schedule {
        let mut spans = Spans::latest(&places);
        let certain = spans.certain();
        let mut decided = Vec::new();
        for child in self.waited_children(&runner, facts) {
            if spans.take_in(&child, &certain) {
                decided.push(child.process);
            }
        }
        let around = suite.around();
        spans.cut_overlaps(&around);
        spans.surround(&around);
        let placed = suite.cases.iter().zip(&places).zip(spans.chosen);
        let times = placed.map(|((case, place), span)| {
            let (place, (from, to)) = (place.as_ref()?, span?);
            Some(Times {
                from,
                to: to.max(from),
                digit: 0,
                early: place.error(),
                error: Some(place.error()),
                bounds: Some(Bounds::new(place, &self.test(case))),
                is_even: false,
                doubt: None,
            })
        });
        let times: Vec<Option<Times>> = times.collect();
        Schedule {
            of_tests: self.processes_of(&times, &runner),
            runner,
            times,
            decided,
        }
    }

    /// The child processes that the runner's processes waited for.
    fn waited_children(&self, runner: &Scheduled, facts: &[Rc<RunnerFacts>]) -> Vec<WaitedChild> {
        let analysis = self.lookup.analysis;
        let mut waited = Vec::new();
        for (process, facts) in runner.processes.iter().zip(facts) {
            for child in &analysis.process(*process).children {
                if let Some(waits) = facts.waited.get(child) {
                    waited.push(WaitedChild {
                        process: *child,
                        start: signed(analysis.process(*child).start),
                        waits: *waits,
                    });
                }
            }
        }
        waited
    }

    /// For each test, the process of the runner that ran the test. This is the last of the runner's processes that had
    /// started by the middle of the test.
    fn processes_of(&self, times: &[Option<Times>], runner: &Scheduled) -> Vec<Option<ProcessIx>> {
        let start = |process: &ProcessIx| signed(self.lookup.analysis.process(*process).start);
        let of_tests = times.iter().map(|times| {
            let middle = times.map(|times| times.from.midpoint(times.to))?;
            let mut processes = runner.processes.iter().copied();
            processes.rfind(|process| start(process) <= middle)
        });
        of_tests.collect()
    }
}
