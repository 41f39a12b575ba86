//! Holds the possible schedules of test suites (which processes can have run a suite's tests, and when), and chooses a
//! schedule for each suite.

use tr_analyze::model::{Doubt, ProcessIx};

use super::assign::{self, Claim};
use super::even::Bounds;
use super::placer::Times;
use super::serial;

/// The largest number of threads of a process for which [`serial::EXACT_TESTS`] tests that fit nearly exactly are
/// enough proof that the process ran the suite. With more threads, the tests may fit one of the threads by chance, so
/// one more test must fit. A guess: of the 23 threads of a Java program, one fitted to tests of another process.
const FEW_THREADS: usize = 4;

/// A schedule of a suite: the processes that can have run the suite's tests, and the place of each test in time.
#[derive(Clone, Debug)]
pub struct Schedule {
    pub runner: Scheduled,
    /// The time at which each test of the suite ran. `None` for a test whose length the report does not have. Also
    /// `None` for a test without a time of day, if other tests of the suite have one.
    pub times: Vec<Option<Times>>,
    /// For each test of the suite, in the order of the report, the process that ran the test.
    pub of_tests: Vec<Option<ProcessIx>>,
    /// The child processes of the runner that each lived within a single test of the suite, so that it is known which
    /// test they belong to.
    pub decided: Vec<ProcessIx>,
}

/// The processes that ran the tests of a suite. There are three cases. A single process ran the tests. Several
/// processes of one program, which lived one after the other, ran them: some runners start a new worker after a failed
/// test or for each test. Several workers of one program ran them at the same time ([`pool`](super::pool)).
#[derive(Clone, Debug)]
pub struct Scheduled {
    pub processes: Vec<ProcessIx>,
    /// Whether each process of the schedule has a thread that ran all of the process's tests, and no other thread of
    /// the process can have run these tests.
    pub is_one_thread: bool,
    /// The number of threads in a process that were tried, one by one, as the only thread that ran the tests.
    pub threads: usize,
}

/// The chosen schedule of a suite, which says which processes ran its tests, and when. The other possible schedules are
/// kept, too.
pub struct Choice {
    pub schedule: Schedule,
    /// The other schedules (processes and times for the tests) that are also possible for this suite.
    pub others: Vec<Schedule>,
}

/// Chooses a schedule (processes and times for the tests) for each suite of a report so that no process runs two suites
/// at the same time. The other possible schedules are returned as well. `None` for a suite that has no schedule, and
/// for one that has several if no assignment of the suites to processes was found.
pub fn choose(mut possible: Vec<Vec<Schedule>>) -> Vec<Option<Choice>> {
    let claims: Vec<Vec<Vec<Claim>>> = possible
        .iter()
        .map(|schedules| schedules.iter().map(Schedule::claims).collect())
        .collect();
    let found = assign::search(&claims);
    let all = possible.iter_mut().enumerate().map(|(suite, schedules)| {
        if schedules.len() <= 1 {
            let others = Vec::new();
            return schedules.pop().map(|schedule| Choice { schedule, others });
        }
        let found = found.as_ref()?;
        let first = found.first.get(suite).copied().flatten()?;
        let numbers = found.of_suites.get(suite)?;
        let mut numbered: Vec<(usize, Schedule)> = schedules.drain(..).enumerate().collect();
        numbered.retain(|(number, _)| numbers.contains(number));
        let at = numbered.iter().position(|(number, _)| *number == first)?;
        let (_, schedule) = numbered.swap_remove(at);
        let others = numbered.into_iter().map(|(_, schedule)| schedule).collect();
        Some(Choice { schedule, others })
    });
    all.collect()
}

impl Choice {
    /// Whether the sleeps of the processes prove none of the suite's possible schedules. The tests can then have run in
    /// another order, or in other processes.
    pub fn is_loose(&self) -> bool {
        let mut all = std::iter::once(&self.schedule).chain(&self.others);
        !all.any(Schedule::is_measured)
    }
}

impl Schedule {
    /// The stretches of time in which the processes that the schedule assigns to the suite certainly ran its tests,
    /// sorted by process and time.
    pub fn claims(&self) -> Vec<Claim> {
        let tests = self.times.iter().zip(&self.of_tests);
        let claims = tests.filter_map(|(times, process)| {
            let (from, to) = times.as_ref()?.bounds?.certain()?;
            Some(((*process)?, from, to))
        });
        let mut claims: Vec<Claim> = claims.collect();
        claims.sort_unstable();
        claims
    }

    /// Whether it is proven that the processes of the schedule measured the lengths of the tests. The proof is that
    /// several tests fit nearly exactly between the sleeps of these processes. If a process has many threads, one more
    /// test must fit.
    pub fn is_measured(&self) -> bool {
        let bounds = self.times.iter().flatten().filter_map(|times| times.bounds);
        let exact = bounds.filter(Bounds::is_exact).count();
        exact >= serial::EXACT_TESTS + usize::from(self.runner.threads > FEW_THREADS)
    }

    /// Marks the places of all tests of the schedule as doubtful, because another process may have run or measured the
    /// tests.
    pub fn doubt(&mut self) {
        for times in self.times.iter_mut().flatten() {
            times.doubt = times.doubt.or(Some(Doubt::Runner));
        }
    }

    /// Adds the tests that one worker of a pool ran, with their places in time, to the schedule of the suite. If
    /// `is_sure` is not set, another worker can have run these tests, so the places of these tests are in doubt.
    pub fn add(&mut self, of_worker: Schedule, is_sure: bool) {
        if is_sure {
            self.decided.extend(of_worker.decided);
        }
        let found = of_worker.times.into_iter().zip(of_worker.of_tests);
        let slots = self.times.iter_mut().zip(&mut self.of_tests);
        for ((times, of_test), (found, process)) in slots.zip(found) {
            if let Some(found) = found {
                let doubt = found.doubt.or((!is_sure).then_some(Doubt::Runner));
                *times = Some(Times { doubt, ..found });
                *of_test = process;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::junit::report::LEAST_ERROR;
    use crate::junit::serial::{Place, Test};

    /// Checks that two tests which fit a thread exactly are not enough proof if the process has many threads, because
    /// the tests may fit one of many threads by chance.
    #[test]
    fn many_threads_need_more_proof() {
        let place = Place {
            begin: 0..=2_000_000,
            end: 80_000_000..=82_000_000,
        };
        let test = Test {
            begin: None,
            end: None,
            length: 80_000_000,
            error: LEAST_ERROR,
            between: 0,
        };
        let exact = Times {
            from: 0,
            to: 80_000_000,
            digit: 0,
            early: 0,
            error: None,
            bounds: Some(Bounds::new(&place, &test)),
            is_even: false,
            doubt: None,
        };
        let is_measured = |tests: usize, threads: usize| {
            let schedule = Schedule {
                runner: Scheduled {
                    processes: Vec::new(),
                    is_one_thread: true,
                    threads,
                },
                times: vec![Some(exact); tests],
                of_tests: vec![None; tests],
                decided: Vec::new(),
            };
            schedule.is_measured()
        };
        assert_eq!(
            [(1, 1), (2, 1), (2, 4)].map(|(a, b)| is_measured(a, b)),
            [false, true, true]
        );
        assert_eq!(
            [(2, 23), (3, 23)].map(|(a, b)| is_measured(a, b)),
            [false, true]
        );
    }
}
