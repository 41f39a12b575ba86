//! Places the tests of a report, suite by suite, in the lives of processes.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use tr_analyze::model::{Doubt, Imported, ImportedKind, ProcessIx, ThreadIx};
use tr_format::event::Ktime;

use super::active::Active;
use super::choice::{Choice, Schedule};
use super::even::{self, Bounds, Possible};
use super::own::OwnProcesses;
use super::proof::{is_far, tolerated, Guess, Stamp};
use super::report::{Attributes, Case, Date, Suite};
use super::runner::RunnerFacts;
use crate::imports::lookup::{imported, ktime, signed, Lookup, Placed, TOLERATED};

/// The longest time in nanoseconds by which a process may last longer than the only test that it runs; a fifth of the
/// test's length is allowed as well. A guess for the start and the end of an interpreter; the script `reporters.py`
/// tests the places of 35 runners' tests.
pub(super) const LONGER: i64 = 100_000_000;

/// The longest time in nanoseconds between two readings of a test runner: of the time of the day, and of the clock that
/// measures a test's length. A guess: more would needlessly allow tests to begin before their shown beginning.
const BETWEEN_CLOCKS: i64 = 1_000_000;

/// The largest number of processes that are tried as the process that ran a suite. A bound of the work.
pub(super) const TRIED: usize = 1_000;

/// The largest number of test places that are computed for a report, at about 100 ns each, so that the search for the
/// runners of very many suites ends within some seconds. A bound of the work.
pub(super) const WORK: u64 = 20_000_000;

/// The number of processes whose start and end can be compared in the time in which one test place is computed. It
/// converts such comparisons to the unit in which the search's work is bounded.
const LIVES: usize = 8;

/// The unit of seconds in nanoseconds.
const SECOND: i64 = 1_000_000_000;

pub(super) struct Placer<'a> {
    pub lookup: &'a Lookup<'a>,
    /// The latest time in nanoseconds at which the report can have been written, if the recording shows it. No test
    /// ends after this time.
    pub written: Option<i64>,
    /// For each process examined so far, the facts that decide which tests it can have run.
    pub facts: HashMap<ProcessIx, Option<Rc<RunnerFacts>>>,
    /// The child processes of test runners that began and ended within one test each, so that their test is known.
    pub decided: HashSet<ProcessIx>,
    /// The stretches of time in which the processes that can have run the current suite certainly ran other suites.
    pub others: Active,
    /// The part of the bounded work ([`WORK`]) that the search for test places may still do.
    pub work: Cell<u64>,
    /// The difference from UTC, in nanoseconds, that is assumed for the report's times without a time zone.
    pub ahead: i64,
    /// Whether the assumed time zone is the only one with which the times of the report lie in the recording.
    pub zone: bool,
    /// Whether the times of tests are their beginnings or their ends, if one of these is proven.
    pub of_cases: Option<Stamp>,
    /// Whether the times of suites are their beginnings or their ends, if one of these is proven.
    pub of_suites: Option<Stamp>,
    /// The tests that were placed in the process of their suite, because they do not have a process of their own.
    pub guesses: Vec<Guess>,
    pub runners: [Vec<ProcessIx>; 3],
    /// The life of the recorded command in nanoseconds, if no other process can have run the tests.
    pub of_command: Option<(i64, i64)>,
    pub own: OwnProcesses,
    /// The processes that ran a single test and to which that test has already been assigned.
    pub used: HashSet<ProcessIx>,
    /// Whether the report has several test suites.
    pub several: bool,
    /// The largest time in nanoseconds by which the tests of the report may really have been earlier than they are
    /// shown.
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
    /// The largest error in nanoseconds of the beginning or the end of the test or suite, if the recording bounds it
    /// ([`super::serial`]).
    pub error: Option<i64>,
    /// The bounds of the time in which the test can have run, if the recording limits it.
    pub bounds: Option<Bounds>,
    /// Whether several processes can have run the test, and its figures (such as CPU time) are equal in all of them.
    pub is_even: bool,
    /// The reason why the times of the test or suite are not proven.
    pub doubt: Option<Doubt>,
}

/// A process that ran tests, and the span of its life in which it did.
#[derive(Clone, Copy)]
pub(super) struct Runner {
    pub process: ProcessIx,
    pub from: Ktime,
    pub to: Ktime,
    /// Whether no other process can have run the tests, apart from ancestors of this process.
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

    /// Places the tests of a suite in the recording, and the suite itself if the report has several suites.
    pub(super) fn suite(
        &mut self,
        suite: &Suite,
        overlaps: bool,
        choice: Option<Choice>,
        threads: Vec<Option<ThreadIx>>,
    ) {
        let all = suite.cases.len() as u64;
        self.placed.all += all;
        let around = self.around(suite);
        let runner = around.and_then(|times| self.runner(times));
        let has_marks = runner.is_some_and(|runner| self.has_marks(runner.process));
        let within = runner.map(|runner| (signed(runner.from), signed(runner.to)));
        let own = self.suite_process(suite);
        if let Some(process) = own {
            self.own_suite(suite, process);
            return;
        }
        let anywhere = self.anywhere(suite, choice.is_some());
        // Without proof of the order and of the process, such tests can have run anywhere within the suite.
        let is_loose = choice.as_ref().is_some_and(Choice::is_loose);
        let is_only = choice
            .as_ref()
            .is_some_and(|choice| choice.others.is_empty());
        let (scheduled, times, of_tests) = match choice {
            Some(choice) => {
                let mut schedule = self.among(choice);
                if is_loose && is_only && !self.are_known(&schedule.runner.processes) {
                    schedule.doubt();
                }
                self.decided.extend(schedule.decided);
                (Some(schedule.runner), schedule.times, schedule.of_tests)
            }
            None => (
                None,
                self.times(suite, within),
                vec![None; suite.cases.len()],
            ),
        };
        if let (Some((runner, around)), true, false) = (runner.zip(around), self.several, has_marks)
        {
            if !suite.attributes.name.is_empty() {
                let span = self.guess(
                    suite.attributes.name.as_bytes(),
                    None,
                    runner,
                    around,
                    &suite.attributes,
                );
                self.guesses.push(Guess {
                    doubt: span.doubt.or(overlaps.then_some(Doubt::Runner)),
                    ..span
                });
                self.placed.parts += 1;
            }
        }
        let is_nested = suite.around().iter().any(Option::is_some);
        let cases = suite.cases.iter().zip(anywhere).zip(threads);
        for ((((case, anywhere), thread), times), of_test) in cases.zip(times).zip(of_tests) {
            let name = case.attributes.title();
            if let Some(thread) = thread {
                self.own_thread_test(case, &name, thread);
                continue;
            }
            if let Some(process) = self.own_process(case, times) {
                self.own_test(case, &name, process);
                continue;
            }
            match times {
                _ if has_marks => {
                    self.placed.add_elsewhere(name, case.has_failed());
                    self.placed.add_note("the recording has its tests as marks");
                }
                None if self.add_anywhere(case, anywhere) => {}
                None if around.is_some() && is_nested => {
                    self.placed
                        .add_note("tests that hold other tests have no times of their own");
                }
                None if around.is_some() => {
                    self.placed
                        .add_note("tests that overlap have no times of their own");
                }
                None => self.placed.add_note("tests without a time of the day"),
                Some(times) if self.lookup.is_outside(times.from, times.to) => {
                    self.placed.outside += 1;
                    self.placed.add_elsewhere(name, case.has_failed());
                }
                Some(times) => {
                    let runner = match (&scheduled, of_test) {
                        (Some(scheduled), Some(process)) => {
                            self.within(process, scheduled.is_one_thread, times)
                        }
                        _ => self.runner(times),
                    };
                    let Some(runner) = runner else {
                        self.add_anywhere(case, anywhere);
                        continue;
                    };
                    let length = times.to.saturating_sub(times.from);
                    let is_early = times.early > length / TOLERATED.cast_signed();
                    if length > 0 && is_early && times.doubt.is_none() {
                        self.early = self.early.max(times.early);
                    }
                    if times.error.is_none() && around.is_some_and(|around| around.digit >= SECOND)
                    {
                        self.placed
                            .add_note("its times are whole seconds: tests are up to 1 s later");
                    }
                    let guess = self.guess(
                        name.as_bytes(),
                        Some(case.result),
                        runner,
                        times,
                        &case.attributes,
                    );
                    // Each of several suites at the same time has a process of its own.
                    let in_overlap = overlaps && !guess.own_stamp && scheduled.is_none();
                    let is_loose = is_loose && !guess.own_stamp;
                    let mut guess = Guess {
                        anywhere,
                        is_loose: is_loose || case.is_unmeasured(),
                        doubt: guess.doubt.or(in_overlap.then_some(Doubt::Runner)),
                        ..guess
                    };
                    if is_loose && is_only && guess.is_even {
                        guess.loosen(case, self);
                    }
                    self.guesses.push(guess);
                }
            }
        }
    }

    /// Places a test that has a process of its own. Its place is the whole life of the process, or a part of it if the
    /// recording proves that the test was shorter.
    fn own_test(&mut self, case: &Case, name: &str, process: ProcessIx) {
        let life = self.lookup.analysis.process(process);
        let (life, within) = ((life.start, life.end), self.within_own(process, case));
        let at = within.map_or(life, |times| (ktime(times.from), ktime(times.to)));
        let error = within.and_then(|times| times.error).unwrap_or(0);
        self.placed.spans.push(Imported {
            whole: within.is_none(),
            result: Some(case.result),
            error: error.unsigned_abs(),
            doubt: within.and_then(|times| times.doubt),
            ..imported(ImportedKind::Test, name.as_bytes(), (process, at))
        });
    }

    /// Places a suite without times that has a process of its own: its place is the whole life of the process. The only
    /// test of such a suite gets the same place.
    fn own_suite(&mut self, suite: &Suite, process: ProcessIx) {
        let life = self.lookup.analysis.process(process);
        let at = (process, (life.start, life.end));
        let mut add = |name: &str, result: Option<&'static str>| {
            self.placed.spans.push(Imported {
                whole: true,
                result,
                ..imported(ImportedKind::Test, name.as_bytes(), at)
            });
        };
        let name = &suite.attributes.name;
        match &suite.cases[..] {
            [only] => add(&suite.title_of(only), Some(only.result)),
            _ => {
                add(name, None);
                self.placed.parts += 1;
                self.placed.add_note("tests without a time of the day");
            }
        }
    }

    /// The schedule of a suite that is shown. If others are possible as well, a test keeps its figures only if they are
    /// equal in all of the possible schedules.
    fn among(&self, choice: Choice) -> Schedule {
        let Choice {
            mut schedule,
            others,
        } = choice;
        if others.is_empty() {
            return schedule;
        }
        for (at, times) in schedule.times.iter_mut().enumerate() {
            let Some(times) = times else { continue };
            let of = |schedule: &Schedule, times: Option<Times>| {
                let process = schedule.of_tests.get(at).copied().flatten()?;
                let bounds = times?.bounds?;
                Some(Possible { process, bounds })
            };
            let shown = (times.from, times.to);
            let chosen = schedule.of_tests.get(at).copied().flatten();
            let first = chosen.zip(times.bounds);
            let first = first.map(|(process, bounds)| Possible { process, bounds });
            let rest = others
                .iter()
                .map(|other| of(other, other.times.get(at).copied().flatten()));
            let all: Option<Vec<Possible>> = std::iter::once(first).chain(rest).collect();
            let begins = others
                .iter()
                .filter_map(|other| other.times.get(at).copied().flatten());
            let off = begins
                .map(|other| other.from.abs_diff(times.from).cast_signed())
                .max();
            times.error = times.error.max(off);
            times.is_even = all.is_some_and(|all| {
                self.spend(even::COST.saturating_mul(all.len())).is_some()
                    && even::is_even(self.lookup.analysis, &all, shown)
            });
            times.doubt = times.doubt.or((!times.is_even).then_some(Doubt::Runner));
        }
        schedule.decided.clear();
        schedule
    }

    /// Whether all of the given processes are known as runners of tests, and no other test program lived at the same
    /// time: their command lines name the report or a test program, or the recorded command itself ran the tests.
    fn are_known(&self, processes: &[ProcessIx]) -> bool {
        let [_, tests, _] = &self.runners;
        let is_known = |process: &ProcessIx| self.runners.iter().flatten().any(|ix| ix == process);
        let has_company = |process: &ProcessIx| {
            let mut others = tests.iter().take(TRIED);
            others.any(|other| self.are_beside(*process, *other))
        };
        let pairs = processes.len().saturating_mul(tests.len().min(TRIED));
        self.spend(pairs).is_some()
            && processes
                .iter()
                .all(|process| is_known(process) && !has_company(process))
    }

    /// Whether two processes lived at the same time, and neither is an ancestor of the other.
    fn are_beside(&self, a: ProcessIx, b: ProcessIx) -> bool {
        let analysis = self.lookup.analysis;
        let (first, second) = (analysis.process(a), analysis.process(b));
        let has_above = |of: ProcessIx, ix: ProcessIx| {
            let mut lineage = analysis.lineage(of).take(TRIED);
            lineage.any(|above| above == ix)
        };
        let at_once = first.start < second.end && second.start < first.end;
        at_once && !has_above(a, b) && !has_above(b, a)
    }

    /// Places a test in the life of a process that the suite's schedule proves to have run it. `None` if the times do
    /// not fit into the process's life.
    fn within(&self, process: ProcessIx, is_one_thread: bool, times: Times) -> Option<Runner> {
        let (from, to) = self.lookup.inside(process, times.from, times.to)?;
        Some(Runner {
            process,
            from,
            to,
            is_sure: true,
            is_one_thread,
        })
    }

    /// Places a test or a suite at its times under the process that ran it.
    fn guess(
        &self,
        name: &[u8],
        result: Option<&'static str>,
        runner: Runner,
        times: Times,
        attributes: &Attributes,
    ) -> Guess {
        let at = (runner.process, (runner.from, runner.to));
        let [_, tests, _] = &self.runners;
        let error = self.error(&times, attributes);
        let length = times.to.saturating_sub(times.from);
        let (off, length) = (error.unsigned_abs(), length.unsigned_abs());
        let is_far = off > tolerated(length) || times.bounds.is_some() && is_far(off, length);
        let bounds = times.bounds.filter(|_| is_far);
        let is_even = times.is_even
            || bounds.is_some_and(|bounds| {
                let shown = (times.from, times.to);
                let process = runner.process;
                self.spend(even::COST).is_some()
                    && even::is_even(self.lookup.analysis, &[Possible { process, bounds }], shown)
            });
        Guess {
            span: Imported {
                result,
                ..imported(ImportedKind::Test, name, at)
            },
            error,
            own_stamp: attributes.at.is_some(),
            is_suite: result.is_none(),
            doubt: times.doubt,
            sure_runner: runner.is_sure,
            one_thread: runner.is_one_thread,
            is_test: tests.binary_search(&runner.process).is_ok(),
            is_even,
            is_far,
            anywhere: None,
            is_loose: false,
        }
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

    /// The times of a test or suite with this length that begins or ends at the time of the day `date`.
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

    /// The beginning and the end of a suite or, if the suite has no time of the day, of all its tests together.
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

    /// The times of the tests of a suite in a report. Tests without a time of the day follow each other, and the last
    /// one ends with the suite: the rest of the suite's length is its preparation. If the runner did other work between
    /// the tests, the tests were earlier, at most by the length of this rest.
    fn times(&self, suite: &Suite, within: Option<(i64, i64)>) -> Vec<Option<Times>> {
        if suite.cases.iter().any(|case| case.attributes.at.is_some()) {
            return suite.cases.iter().map(|case| self.of_case(case)).collect();
        }
        let lengths = suite
            .cases
            .iter()
            .map(|case| case.attributes.length.unwrap_or(0));
        let sum = suite.sum();
        let rounded = suite.rounded();
        let none = vec![None; suite.cases.len()];
        let is_nested = suite.around().iter().any(Option::is_some);
        let Some(around) = self.around(suite).filter(|_| !is_nested) else {
            return none;
        };
        let (first, last) = within.unwrap_or((around.from, around.to));
        if sum > last.saturating_sub(first).saturating_add(rounded) {
            return none; // several at once
        }
        let left = last.saturating_sub(first).saturating_sub(sum);
        // The recording allows no schedule for tests that followed each other, if it shows the sleeps of their runner.
        let has_schedules = self.lookup.analysis.timeline.is_some();
        let is_measured = suite.is_measured() && suite.has_order && !suite.is_by_result();
        let is_proven = is_measured && !has_schedules;
        let doubt = around.doubt.or((!is_proven).then_some(Doubt::Suite));
        let mut now = last.saturating_sub(sum);
        let spans = lengths.map(|length| {
            let from = now;
            now = now.saturating_add(length);
            Some(Times {
                from: from.max(first),
                to: now.max(first),
                digit: around.digit.saturating_add(rounded),
                early: left.max(0),
                error: None,
                bounds: None,
                is_even: false,
                doubt,
            })
        });
        spans.collect()
    }

    /// The largest error in nanoseconds of a time of the day in a report, which has a last digit of the value `digit`.
    pub(super) fn stamp_error(&self, digit: i64) -> i64 {
        let clocks = self.lookup.clock_error();
        digit.saturating_add(clocks).saturating_add(BETWEEN_CLOCKS)
    }

    /// Finds the process that ran tests at the given times, and the span of its life that they take; `None` if no
    /// process fits.
    pub(super) fn runner(&self, times: Times) -> Option<Runner> {
        let analysis = self.lookup.analysis;
        self.runners.iter().find_map(|runners| {
            let start = |ix: &ProcessIx| signed(analysis.process(*ix).start);
            let latest = times
                .from
                .saturating_add(times.digit)
                .saturating_add(LONGER);
            let after = runners.partition_point(|ix| start(ix) <= latest);
            let before = runners.get(..after).unwrap_or_default();
            self.spend(before.len().min(TRIED).div_ceil(LIVES))?;
            // The runner began after its wrappers.
            let tried = before.iter().rev().take(TRIED).copied();
            let mut fitting = tried.filter_map(|ix| {
                let later = start(&ix).saturating_sub(times.from).clamp(0, times.digit);
                let (from, to) = (
                    times.from.saturating_add(later),
                    times.to.saturating_add(later),
                );
                Some((ix, self.lookup.inside(ix, from, to)?))
            });
            let (process, (from, to)) = fitting.next()?;
            let around: HashSet<ProcessIx> = analysis.lineage(process).take(TRIED).collect();
            Some(Runner {
                process,
                from,
                to,
                is_sure: fitting.all(|(other, _)| around.contains(&other)),
                is_one_thread: false,
            })
        })
    }

    /// Whether the program in a process marked its tests itself in the recording, so that their times are exactly
    /// known.
    fn has_marks(&self, process: ProcessIx) -> bool {
        let analysis = self.lookup.analysis;
        let pid = analysis.process(process).ns_pid;
        let mut marks = analysis.marks.iter();
        marks.any(|(_, mark)| mark.pid == Some(pid) && &*mark.kind == b"test")
    }
}
