//! Finds the places of tests that a runner distributed to several worker processes which worked at the same time.
//!
//! The report does not name the worker of a test. A distribution of the tests is possible if each worker can have run
//! its tests one after the other ([`serial`]), in the order of the report. A test gets a worker for certain only if it
//! has this worker in all possible distributions. Its place then spans the places that it has in all of them.

use std::ops::RangeInclusive;

use super::active::Active;
use super::serial::{self, Place, Test};

/// The largest number of tests that are distributed to workers by a search. A bound of the depth of the search.
const TESTS: usize = 64;

/// Limits the work of distributing the tests of one suite to workers: at most so many places of tests are computed, at
/// about 1 µs each.
const STEPS: usize = 200_000;

/// A worker process that can have run some of the tests of a suite.
#[derive(Clone, Debug)]
pub struct Worker<'a> {
    /// The span of time in which the worker process can have run tests, in nanoseconds.
    pub around: RangeInclusive<i64>,
    pub active: &'a Active,
}

/// The worker process of a test, and the bounds of the test's place in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The index of a worker process that can have run the test.
    pub worker: usize,
    pub place: Place,
    /// Whether no other worker process can have run the test.
    pub is_sure: bool,
}

/// The error for suites that cannot be decided, because there are too many possibilities to try or the report has too
/// little information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undecided;

/// Distributes the tests of a suite to worker processes: finds the worker of each test, and the bounds of its place in
/// time. `None` if the tests cannot be distributed in any way.
pub fn shares(tests: &[Test], workers: &[Worker<'_>]) -> Result<Option<Vec<Share>>, Undecided> {
    if tests.len() > TESTS {
        return Err(Undecided);
    }
    let mut search = Search {
        tests,
        workers,
        by_worker: vec![Vec::new(); workers.len()],
        found: vec![None; tests.len()],
        steps: STEPS,
    };
    let free: Vec<i64> = workers
        .iter()
        .map(|worker| *worker.around.start())
        .collect();
    search.distribute(0, &free).ok_or(Undecided)?;
    Ok(search.found.into_iter().collect())
}

/// Whether it is proven that the worker processes measured the lengths of the tests. The proof is that several tests
/// fit nearly exactly between the sleeps of their workers.
pub fn are_measured(tests: &[Test], shares: &[Share]) -> bool {
    let sure = shares.iter().zip(tests).filter(|(share, _)| share.is_sure);
    let exact = sure.filter(|(share, test)| share.place.is_exact(test.length, test.error));
    exact.count() >= serial::EXACT_TESTS
}

/// The state of the search through all ways to distribute a suite's tests to worker processes.
struct Search<'a> {
    tests: &'a [Test],
    workers: &'a [Worker<'a>],
    /// For each worker process, the indexes of the tests that it has in the distribution of tests to workers that is
    /// being tried.
    by_worker: Vec<Vec<usize>>,
    /// For each test, its worker in the first possible distribution of the tests to workers, and the bounds of its
    /// places with that worker in all distributions that have been found so far.
    found: Vec<Option<Share>>,
    /// The number of test places (times for a test in a process) that the search may still compute.
    steps: usize,
}

impl Search<'_> {
    /// Tries each worker for the test `at`, and then distributes the tests after it. `free` has for each worker the
    /// earliest time at which its last test can have ended. `None` if the work reaches its bound.
    fn distribute(&mut self, at: usize, free: &[i64]) -> Option<()> {
        let Some(test) = self.tests.get(at) else {
            return self.add();
        };
        for (number, worker) in self.workers.iter().enumerate() {
            self.steps = self.steps.checked_sub(1)?;
            let from = free.get(number).copied().unwrap_or(i64::MAX);
            let first = serial::first(test, from, worker.active);
            let Some((_, end)) = first.filter(|(_, end)| end <= worker.around.end()) else {
                continue;
            };
            let mut free = free.to_vec();
            if let Some(free) = free.get_mut(number) {
                *free = end;
            }
            self.give(number, |tests| tests.push(at));
            self.distribute(at + 1, &free)?;
            self.give(number, |tests| {
                tests.pop();
            });
        }
        Some(())
    }

    fn give(&mut self, worker: usize, change: impl Fn(&mut Vec<usize>)) {
        self.by_worker.get_mut(worker).into_iter().for_each(change);
    }

    /// Adds the distribution that is being tried to the possible ones, if every worker can have run its tests one after
    /// the other. `None` if the work reaches its bound.
    fn add(&mut self) -> Option<()> {
        let mut all = Vec::with_capacity(self.tests.len());
        for (number, (own, worker)) in self.by_worker.iter().zip(self.workers).enumerate() {
            self.steps = self.steps.checked_sub(own.len())?;
            let tests = own.iter().filter_map(|at| self.tests.get(*at).cloned());
            let tests: Vec<Test> = tests.collect();
            let Some(places) = serial::places(&tests, &worker.around, worker.active) else {
                return Some(());
            };
            all.extend(
                own.iter()
                    .copied()
                    .zip(places)
                    .map(|(at, place)| (at, number, place)),
            );
        }
        for (at, worker, place) in all {
            let Some(slot) = self.found.get_mut(at) else {
                continue;
            };
            *slot = Some(match slot.take() {
                None => Share {
                    worker,
                    place,
                    is_sure: true,
                },
                Some(before) if before.worker == worker => Share {
                    place: before.place.reach(&place),
                    ..before
                },
                Some(before) => Share {
                    is_sure: false,
                    ..before
                },
            });
        }
        Some(())
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
            error: 2,
            between: 0,
        }
    }

    fn worker(active: &Active) -> Worker<'_> {
        Worker {
            around: 0..=1_000,
            active,
        }
    }

    fn sure(tests: &[Test], workers: &[Worker<'_>]) -> Vec<Option<usize>> {
        let shares = shares(tests, workers).unwrap().unwrap().into_iter();
        shares
            .map(|share| share.is_sure.then_some(share.worker))
            .collect()
    }

    /// Checks that the sleeps of two workers (w0 and w1) show which of them ran the tests a to d. In the drawing, `=`
    /// is time on a CPU and `_` is a sleep. The number after the letter of a test is the test's length in nanoseconds.
    ///
    /// ```text
    /// w0 ==a 100==____b 300____=
    /// w1 ______c 250____====d 150============
    /// ```
    #[test]
    fn sleeps_of_the_workers_tell_who_ran_a_test() {
        let actives = [vec![(0, 110), (410, 415)], vec![(0, 5), (252, 505)]];
        let actives = actives.map(Active::of);
        let workers: Vec<Worker<'_>> = actives.iter().map(worker).collect();
        let tests = [test(250), test(100), test(300), test(150)];
        let found = shares(&tests, &workers).unwrap().unwrap();
        // By its length, the second test can have run in either worker.
        assert_eq!(sure(&tests, &workers), [Some(1), None, Some(0), Some(1)]);
        let place = found.get(2).unwrap().place.clone();
        assert_eq!(
            place,
            Place {
                begin: 108..=110,
                end: 410..=412
            }
        );
        // No worker has room for a test of this length between its sleeps.
        assert_eq!(shares(&[test(700)], &workers), Ok(None));
    }

    /// Checks that two workers with equal times on a CPU do not prove which of them ran a test.
    #[test]
    fn equal_workers_prove_nothing() {
        let active = Active::of(vec![(0, 10), (300, 310)]);
        let workers = [worker(&active), worker(&active)];
        assert_eq!(sure(&[test(292), test(292)], &workers), [None, None]);
    }

    /// Checks with random tests in random workers that the search calls a worker certain only if it really ran the
    /// test.
    #[test]
    fn sure_shares_are_true() {
        let mut seed = 7_u64;
        let mut below = |most: i64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            i64::try_from(seed >> 33).unwrap() % most
        };
        let mut sure = 0;
        for _ in 0..300 {
            let count = 2 + usize::try_from(below(2)).unwrap();
            let mut all = Vec::new();
            let mut actives = Vec::new();
            for worker in 0..count {
                // At first, each worker loads its tests on a CPU.
                let mut now = below(50);
                let mut stretches = vec![(now, now + 20 + below(150))];
                now = stretches.first().unwrap().1;
                for _ in 0..2 + below(3) {
                    let begin = now;
                    let (before, nap, after) =
                        (below(2) * below(200), below(2) * below(300), below(90));
                    stretches.push((now, now + before + 1));
                    now += before + 1 + nap;
                    stretches.push((now, now + after + 1));
                    now += after + 1;
                    all.push((begin, now, worker));
                    // Between two tests, the worker is on a CPU for a short time.
                    stretches.push((now, now + below(8)));
                    now = stretches.last().unwrap().1;
                }
                actives.push(Active::of(
                    stretches
                        .into_iter()
                        .filter(|(from, to)| from < to)
                        .collect(),
                ));
            }
            all.sort_unstable();
            let tests: Vec<Test> = all.iter().map(|(from, to, _)| test(to - from)).collect();
            let workers: Vec<Worker<'_>> = actives
                .iter()
                .map(|active| Worker {
                    around: 0..=3_000,
                    active,
                })
                .collect();
            let Ok(Some(found)) = shares(&tests, &workers) else {
                continue;
            };
            for (share, (from, to, worker)) in found.iter().zip(&all) {
                if share.is_sure {
                    sure += 1;
                    assert_eq!(share.worker, *worker);
                    assert!(share.place.begin.contains(from) && share.place.end.contains(to));
                }
            }
        }
        assert!(sure > 100, "{sure}");
    }

    #[test]
    fn very_many_ways_are_not_tried() {
        let active = Active::of(vec![(0, 1_000)]);
        let workers = [worker(&active), worker(&active), worker(&active)];
        assert_eq!(shares(&vec![test(5); 40], &workers), Err(Undecided));
        assert_eq!(shares(&vec![test(5); 400], &workers), Err(Undecided));
    }
}
