//! Finds processes that did not run tests, but only received messages about tests from the process that ran them.

use std::cell::Cell;
use std::collections::HashSet;

use tr_analyze::model::ProcessIx;
use tr_analyze::timeline::{Actor, Bucket};

use super::choice::Schedule;
use super::placer::Placer;
use crate::lookup::{ktime, signed};

/// The cost of reading a timeline is counted in computed test places: reading this many stretches of a timeline takes
/// as long as computing the place of one test. A guess: reading a stretch takes some ns.
const STRETCHES: usize = 16;

impl Placer<'_> {
    /// Leaves out the schedules whose processes did not run the tests, but only received messages about the tests from
    /// the process that ran them. Returns the remaining schedules, and all processes that only received such messages.
    /// Processes of the `pools` (groups that lived at the same time) are examined as well, even if they are in no
    /// schedule.
    pub(super) fn without_listeners(
        &self,
        found: Vec<Schedule>,
        pools: &[Vec<ProcessIx>],
    ) -> (Vec<Schedule>, HashSet<ProcessIx>) {
        let mut all: HashSet<ProcessIx> = pools.iter().flatten().copied().collect();
        all.extend(found.iter().flat_map(|found| &found.runner.processes));
        let mut listeners = HashSet::new();
        for schedule in &found {
            let own = self.wakers(schedule);
            let heard = all.iter().filter(|process| {
                !own.contains(&Some(**process)) && self.hears(**process, schedule)
            });
            listeners.extend(heard.copied());
        }
        let is_listener = |schedule: &Schedule| {
            let mut processes = schedule.runner.processes.iter();
            processes.all(|process| listeners.contains(process))
        };
        let (heard, mut rest): (Vec<Schedule>, Vec<Schedule>) =
            found.into_iter().partition(is_listener);
        // A process that only received messages about the tests may also have measured the tests' lengths. So if such a
        // process was found, a remaining schedule becomes doubtful unless it is proven that the schedule's own
        // processes measured the lengths.
        let is_open = |schedule: &&mut Schedule| !heard.is_empty() && !schedule.is_measured();
        rest.iter_mut().filter(is_open).for_each(Schedule::doubt);
        (rest, listeners)
    }

    /// Whether the processes that a schedule assigns to a suite woke the process `process` after each test of the
    /// suite, before the next test was certainly running. If so, these processes probably sent messages about the tests
    /// to `process`.
    fn hears(&self, process: ProcessIx, schedule: &Schedule) -> bool {
        let analysis = self.lookup.analysis;
        let own = &schedule.runner.processes;
        let Some(timeline) = analysis
            .timeline
            .as_ref()
            .filter(|_| !own.contains(&process))
        else {
            return false;
        };
        let threads = analysis.process(process).threads.iter();
        let seen = Cell::new(0_usize);
        let stretches = threads.flat_map(|thread| timeline.of(*thread));
        let stretches = stretches.inspect(|_| seen.set(seen.get() + 1));
        let heard = stretches.filter(|stretch| match stretch.waker() {
            Actor::Thread(waker) if matches!(stretch.doing, Bucket::Wait(_)) => {
                own.contains(&analysis.thread(waker).process)
            }
            _ => false,
        });
        let mut heard: Vec<i64> = heard.map(|stretch| signed(stretch.to)).collect();
        if self.spend(seen.get().div_ceil(STRETCHES)).is_none() {
            return false;
        }
        heard.sort_unstable();
        let bounds = schedule
            .times
            .iter()
            .flatten()
            .filter_map(|times| times.bounds);
        let mut certain: Vec<(i64, i64)> = bounds.filter_map(|bounds| bounds.certain()).collect();
        certain.sort_unstable();
        let nexts = certain
            .iter()
            .skip(1)
            .map(|(begin, _)| *begin)
            .chain([i64::MAX]);
        let mut ends = certain.iter().map(|(_, end)| *end).zip(nexts);
        !certain.is_empty()
            && ends.all(|(end, next)| {
                let first = heard.partition_point(|at| *at < end);
                heard.get(first).is_some_and(|at| *at <= next)
            })
    }

    /// For each test with a time at which it certainly ran, the process that woke the test's process from its last
    /// sleep before the earliest end of the test. `None` if the process did not sleep in the test, or if no recorded
    /// thread ended the sleep.
    fn wakers(&self, schedule: &Schedule) -> Vec<Option<ProcessIx>> {
        let analysis = self.lookup.analysis;
        let tests = schedule.times.iter().zip(&schedule.of_tests);
        let wakers = tests.filter_map(|(times, process)| {
            let (from, to) = times.as_ref()?.bounds?.certain()?;
            let process = (*process)?;
            let facts = self.facts.get(&process)?.as_ref()?;
            let began = facts.any.began(to).filter(|began| *began > from);
            Some(began.and_then(|began| {
                let timeline = analysis.timeline.as_ref()?;
                let threads = analysis.process(process).threads.iter();
                let waits = threads.filter_map(|thread| {
                    let waits = timeline.since(*thread, ktime(from));
                    let waits = waits.take_while(|stretch| signed(stretch.to) <= began);
                    waits
                        .filter(|stretch| matches!(stretch.doing, Bucket::Wait(_)))
                        .last()
                });
                match waits.max_by_key(|stretch| stretch.to)?.waker() {
                    Actor::Thread(waker) => Some(analysis.thread(waker).process),
                    _ => None,
                }
            }))
        });
        wakers.collect()
    }
}
