//! Makes the schedule of a suite whose tests were distributed to several workers that ran at the same time.

use std::ops::RangeInclusive;
use std::rc::Rc;

use tr_analyze::model::ProcessIx;

use super::bounds::Groups;
use crate::junit::active::Active;
use crate::junit::choice::{Schedule, Scheduled};
use crate::junit::placer::Placer;
use crate::junit::pool::{self, Share, Undecided, Worker};
use crate::junit::report::{Case, Suite};
use crate::junit::runner::RunnerFacts;
use crate::junit::serial::Test;

/// The name that pytest gives to its suite. The lengths in its report do not show which worker of pytest-xdist ran a
/// test. The length of a test includes its set-up, its call and its tear-down, but not the time between these. In that
/// time, the workers send reports, which takes up to 26 ms on a busy machine.
const PYTEST: &str = "pytest";

/// The largest number of worker processes among which a suite's tests are divided. A guess: with more workers, there
/// would always be more than one possible way to divide the tests.
const WORKERS: usize = 16;

/// A worker process that lived long enough to run a test of the suite.
struct LivingWorker {
    process: ProcessIx,
    /// The span of time in which the worker can have run tests.
    around: RangeInclusive<i64>,
    facts: Rc<RunnerFacts>,
}

/// A distribution of a suite's tests to worker processes: which worker ran each test, and the bounds of its place in
/// time.
struct Distribution {
    /// For each test of the suite, in order: the worker that ran the test, and the bounds of the test's place in time.
    shares: Vec<Share>,
    /// Whether a single thread of each worker ran the worker's tests.
    is_one_thread: bool,
    /// The number of threads that were tried: the smallest number of threads of a worker, or 0 if a worker has one
    /// thread or very many.
    threads: usize,
}

impl Placer<'_> {
    /// Places the tests of a suite in several worker processes that ran the tests at the same time. `None` if the tests
    /// cannot be distributed to these workers. A worker is left out if it lived for less time than the shortest test.
    pub(super) fn distributed(
        &mut self,
        suite: &Suite,
        groups: &Groups,
        processes: &[ProcessIx],
    ) -> Result<Option<Schedule>, Undecided> {
        let group = groups.get(&None).filter(|_| groups.len() == 1);
        let group = group.ok_or(Undecided)?;
        if !suite.has_order || suite.is_by_result() || suite.attributes.name == PYTEST {
            return Err(Undecided);
        }
        let cases: Vec<&Case> = group.iter().filter_map(|at| suite.cases.get(*at)).collect();
        let tests: Vec<Test> = cases.iter().map(|case| self.test(case)).collect();
        let workers = self.living_workers(suite, &tests, processes)?;
        let Some(distribution) = self.distribution(&tests, &workers)? else {
            return Ok(None);
        };
        if !pool::are_measured(&tests, &distribution.shares) {
            return Err(Undecided);
        }
        let schedule = self.schedule_of_pool(suite, group, (processes, &workers), &distribution);
        Ok(Some(schedule))
    }

    /// The processes that lived at least as long as the shortest test of the suite.
    fn living_workers(
        &mut self,
        suite: &Suite,
        tests: &[Test],
        processes: &[ProcessIx],
    ) -> Result<Vec<LivingWorker>, Undecided> {
        let lengths = tests
            .iter()
            .map(|test| test.length.saturating_sub(test.error));
        let shortest = lengths.min().ok_or(Undecided)?;
        let mut workers = Vec::new();
        for process in processes {
            let around = self.window(suite, &[*process]).ok_or(Undecided)?;
            if around.end().saturating_sub(*around.start()) >= shortest {
                let facts = self.facts(*process).ok_or(Undecided)?;
                workers.push(LivingWorker {
                    process: *process,
                    around,
                    facts,
                });
            }
        }
        if workers.len() > WORKERS {
            return Err(Undecided);
        }
        Ok(workers)
    }

    /// Distributes the tests to the workers. If exactly one number n exists for which the n-th threads of all workers
    /// can have run all tests, the tests are distributed to these threads, and otherwise to the whole processes. `None`
    /// if the tests cannot be distributed.
    fn distribution(
        &self,
        tests: &[Test],
        workers: &[LivingWorker],
    ) -> Result<Option<Distribution>, Undecided> {
        // In all processes of one program, the n-th thread does the same work. So for each n, the search tries to
        // divide the tests among the n-th threads of all workers.
        let threads = workers.iter().map(|worker| worker.facts.threads.len());
        let threads = threads.min().unwrap_or(0);
        let mut alone = Vec::new();
        let mut is_open = false;
        for thread in 0..threads {
            match self.shares(tests, workers, |facts| facts.threads.get(thread)) {
                Ok(found) => alone.extend(found),
                Err(Undecided) => is_open = true,
            }
        }
        let only = alone.pop().filter(|_| alone.is_empty());
        let only = only.filter(|only| !is_open || pool::are_measured(tests, only));
        let is_one_thread = only.is_some();
        let shares = match only {
            Some(only) => Some(only),
            None => self.shares(tests, workers, |facts| Some(&facts.any))?,
        };
        Ok(shares.map(|shares| Distribution {
            shares,
            is_one_thread,
            threads,
        }))
    }

    /// Distributes the tests to the workers; `None` if this is impossible. `active` returns the stretches of time in
    /// which a worker can have run tests, from the facts about this worker.
    fn shares(
        &self,
        tests: &[Test],
        workers: &[LivingWorker],
        active: impl Fn(&RunnerFacts) -> Option<&Active>,
    ) -> Result<Option<Vec<Share>>, Undecided> {
        let all = workers.iter().map(|worker| {
            Some(Worker {
                around: worker.around.clone(),
                active: active(&worker.facts)?,
            })
        });
        let Some(all) = all.collect::<Option<Vec<Worker<'_>>>>() else {
            return Ok(None);
        };
        let places = tests.len().saturating_mul(all.len());
        self.spend(places).ok_or(Undecided)?;
        pool::shares(tests, &all)
    }

    /// Makes the schedule of a suite whose tests were distributed to workers. `group` has the indexes of these tests in
    /// the suite. For each worker, the tests that certainly ran in this worker are placed first. The tests that another
    /// worker can have run, too, are placed afterwards and do not change the other places.
    fn schedule_of_pool(
        &self,
        suite: &Suite,
        group: &[usize],
        pool: (&[ProcessIx], &[LivingWorker]),
        distribution: &Distribution,
    ) -> Schedule {
        let (processes, workers) = pool;
        let runner = |processes: &[ProcessIx]| Scheduled {
            processes: processes.to_vec(),
            is_one_thread: distribution.is_one_thread,
            threads: distribution.threads,
        };
        let mut schedule = Schedule {
            runner: runner(processes),
            times: vec![None; suite.cases.len()],
            of_tests: vec![None; suite.cases.len()],
            decided: Vec::new(),
        };
        for (number, worker) in workers.iter().enumerate() {
            for is_sure in [true, false] {
                let mut places = vec![None; suite.cases.len()];
                for (at, share) in group.iter().zip(&distribution.shares) {
                    if share.worker == number && share.is_sure == is_sure {
                        if let Some(slot) = places.get_mut(*at) {
                            *slot = Some(share.place.clone());
                        }
                    }
                }
                let of_worker = runner(&[worker.process]);
                let facts = std::slice::from_ref(&worker.facts);
                let found = self.spans(suite, of_worker, facts, places);
                schedule.add(found, is_sure);
            }
        }
        schedule
    }
}
