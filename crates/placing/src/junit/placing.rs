//! Places the tests of a suite under the processes that ran them.

use super::choice::{Choice, Schedule};
use super::even::{self, Possible};
use super::placer::{Placer, Runner, Times};
use super::proof::{is_far, tolerated, Guess};
use super::report::{Attributes, Case, Suite};
use super::runner::TRIED;
use crate::lookup::{imported, ktime, signed};
use tr_analyze::model::{Doubt, Imported, ImportedKind, ProcessIx, ThreadIx};
use tr_insight::imports::TOLERATED;

/// The unit of seconds: the number of nanoseconds in one second.
const SECOND: i64 = 1_000_000_000;

impl Placer<'_> {
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
        // If neither the order of the tests nor their process is proven, the tests can have run anywhere within the
        // suite.
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
                    // Suites that ran at the same time ran in different processes, so it is not known which process ran
                    // this test.
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

    /// Places a test that has a process of its own. Its place is the whole life of the process, or a part of that life
    /// if the recording proves that the test was shorter.
    fn own_test(&mut self, case: &Case, name: &str, process: ProcessIx) {
        let life = self.lookup.analysis.process(process);
        let (life, within) = ((life.start, life.end), self.within_own(process, case));
        let at = within.map_or(life, |times| (ktime(times.from), ktime(times.to)));
        let error = within.and_then(|times| times.error).unwrap_or(0);
        self.placed.spans.push(Imported {
            whole: within.is_none(),
            file: case.attributes.test_file(),
            result: Some(case.result),
            error: error.unsigned_abs(),
            doubt: within.and_then(|times| times.doubt),
            ..imported(ImportedKind::Test, name.as_bytes(), (process, at))
        });
    }

    /// Places a suite without times that has a process of its own. The place of the suite is the whole life of this
    /// process. If the suite has only one test, the test gets the same place.
    fn own_suite(&mut self, suite: &Suite, process: ProcessIx) {
        let life = self.lookup.analysis.process(process);
        let at = (process, (life.start, life.end));
        let mut add = |name: &str, attributes: &Attributes, result: Option<&'static str>| {
            self.placed.spans.push(Imported {
                whole: true,
                file: attributes.test_file(),
                result,
                ..imported(ImportedKind::Test, name.as_bytes(), at)
            });
        };
        match &suite.cases[..] {
            [only] => add(&suite.title_of(only), &only.attributes, Some(only.result)),
            _ => {
                add(&suite.attributes.name, &suite.attributes, None);
                self.placed.parts += 1;
                self.placed.add_note("tests without a time of the day");
            }
        }
    }

    /// Returns the schedule that is shown for a suite. If other schedules are possible as well, a test keeps its
    /// figures (such as its CPU time) only if these figures are equal in all possible schedules.
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
    /// time. A process is known if its command line names the report or a test program, or if it is the recorded
    /// command.
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

    /// Places a test in the process that ran it according to the suite's schedule. `None` if the test's times are not
    /// within the life of the process.
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
                file: attributes.test_file(),
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

    /// The times of the tests of a suite in a report. Tests without a time of day are placed one after the other, and
    /// the last test ends with the suite. This assumes that the runner did all its other work before the tests. If the
    /// runner also worked between the tests, the tests really ran earlier, but at most by the length of that other
    /// work.
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
        // No schedule was found for the suite. If the recording shows the sleeps of the runner, then the tests did not
        // simply follow each other, so their places are in doubt.
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

    /// Whether the program in a process marked its tests itself in the recording, so that their times are exactly
    /// known.
    fn has_marks(&self, process: ProcessIx) -> bool {
        let analysis = self.lookup.analysis;
        let pid = analysis.process(process).ns_pid;
        let mut marks = analysis.marks.iter();
        marks.any(|(_, mark)| mark.pid == Some(pid) && &*mark.kind == b"test")
    }
}
