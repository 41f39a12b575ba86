//! Places the tests of a suite under the processes that ran them.

use super::anywhere::Anywhere;
use super::choice::{Choice, Schedule, Scheduled};
use super::even::{self, Possible};
use super::placer::{Placer, Runner, Times};
use super::proof::{is_far, tolerated, Guess};
use super::report::{Attributes, Case, Suite};
use super::runner::MOST_TRIED;
use crate::lookup::{imported, ktime, signed};
use crate::notes::ImportNote;
use tr_analyze::model::{Doubt, Imported, ImportedKind, ProcessIx, TestResult, ThreadIx};
use tr_insight::recordings::imports::TOLERATED_PART;

/// The unit of seconds: the number of nanoseconds in one second.
const SECOND: i64 = 1_000_000_000;

/// The facts about a suite that decide where its tests are placed.
struct SuiteFacts {
    /// The beginning and the end of the suite; `None` if the report has no times of the day.
    around: Option<Times>,
    /// The process that ran the suite, if one fits the suite's times.
    runner: Option<Runner>,
    /// The processes that ran the suite's tests, if a schedule of the suite (processes and times for its tests) was
    /// found.
    scheduled: Option<Scheduled>,
    /// Whether the suite's tests are in the recording as marks (events that the test program sent to the recorder).
    has_marks: bool,
    /// Whether the suite ran at the same time as another suite.
    overlaps: bool,
    /// Whether tests of the suite contain other tests.
    is_nested: bool,
    /// Whether neither the order of the tests nor their process is proven, so that the tests can have run anywhere
    /// within the suite.
    is_loose: bool,
    /// Whether the suite has only one possible schedule (processes and times for its tests).
    is_only: bool,
}

/// The facts about a test that decide where it is placed.
struct TestFacts {
    times: Option<Times>,
    /// The process that ran the test according to the suite's schedule.
    process: Option<ProcessIx>,
    /// The thread that ran only this test.
    thread: Option<ThreadIx>,
    /// The place of the test if it can have run anywhere within its suite.
    anywhere: Option<Anywhere>,
}

/// The times of a suite's tests, in the order of the report, and the processes that ran them.
struct SuiteTimes {
    /// The processes that ran the suite's tests, if a schedule of the suite was found.
    scheduled: Option<Scheduled>,
    times: Vec<Option<Times>>,
    /// For each test, the process that ran it according to the suite's schedule.
    of_tests: Vec<Option<ProcessIx>>,
}

impl Placer<'_> {
    /// Places the tests of a suite in the recording, and the suite itself if the report has several suites.
    pub(super) fn suite(
        &mut self,
        suite: &Suite,
        overlaps: bool,
        choice: Option<Choice>,
        threads: Vec<Option<ThreadIx>>,
    ) {
        self.placed.all += suite.cases.len() as u64;
        let around = self.around(suite);
        let runner = around.and_then(|times| self.runner(times));
        let has_marks = runner.is_some_and(|runner| self.has_marks(runner.process));
        if let Some(process) = self.suite_process(suite) {
            self.own_suite(suite, process);
            return;
        }
        let anywhere = self.anywhere(suite, choice.is_some());
        let is_loose = choice.as_ref().is_some_and(Choice::is_loose);
        let is_only = choice
            .as_ref()
            .is_some_and(|choice| choice.others.is_empty());
        let found = match choice {
            Some(choice) => self.scheduled_times(choice, is_loose && is_only),
            None => self.unscheduled_times(suite, runner),
        };
        let facts = SuiteFacts {
            around,
            runner,
            scheduled: found.scheduled,
            has_marks,
            overlaps,
            is_nested: suite.around().iter().any(Option::is_some),
            is_loose,
            is_only,
        };
        self.suite_itself(suite, &facts);
        let cases = suite.cases.iter().zip(anywhere).zip(threads);
        let tests = cases.zip(found.times).zip(found.of_tests);
        for ((((case, anywhere), thread), times), process) in tests {
            let test = TestFacts {
                times,
                process,
                thread,
                anywhere,
            };
            self.place_test(case, &test, &facts);
        }
    }

    /// The times of a suite's tests according to the chosen schedule. `is_weak` says that neither the order of the
    /// tests nor their process is proven, although no other schedule is possible. The times are then in doubt, unless
    /// the processes are known as runners of tests.
    fn scheduled_times(&mut self, choice: Choice, is_weak: bool) -> SuiteTimes {
        let mut schedule = self.among(choice);
        if is_weak && !self.are_known(&schedule.runner.processes) {
            schedule.doubt();
        }
        self.decided.extend(schedule.decided);
        SuiteTimes {
            scheduled: Some(schedule.runner),
            times: schedule.times,
            of_tests: schedule.of_tests,
        }
    }

    /// The times of a suite's tests according to the report alone.
    fn unscheduled_times(&self, suite: &Suite, runner: Option<Runner>) -> SuiteTimes {
        let within = runner.map(|runner| (signed(runner.from), signed(runner.to)));
        SuiteTimes {
            scheduled: None,
            times: self.times(suite, within),
            of_tests: vec![None; suite.cases.len()],
        }
    }

    /// Places the suite itself, if it has a name and is one of several suites of the report.
    fn suite_itself(&mut self, suite: &Suite, facts: &SuiteFacts) {
        let is_shown = self.several && !facts.has_marks && !suite.attributes.name.is_empty();
        let place = facts.runner.zip(facts.around).filter(|_| is_shown);
        let Some((runner, around)) = place else {
            return;
        };
        let name = &suite.attributes.name;
        let span = self.guess(name, None, runner, around, &suite.attributes);
        self.guesses.push(Guess {
            doubt: span.doubt.or(facts.overlaps.then_some(Doubt::Runner)),
            ..span
        });
        self.placed.parts += 1;
    }

    /// Places a test of a suite: in its own thread or process, or else at its times under the process that ran it. A
    /// test without a place is counted, or explained by a note.
    fn place_test(&mut self, case: &Case, test: &TestFacts, suite: &SuiteFacts) {
        let name = case.attributes.title();
        if let Some(thread) = test.thread {
            self.own_thread_test(case, &name, thread);
            return;
        }
        if let Some(process) = self.own_process(case, test.times) {
            self.own_test(case, &name, process);
            return;
        }
        if suite.has_marks {
            self.placed.known_tests.insert(case.number);
            self.placed.add_note(ImportNote::TestsAreMarks);
            return;
        }
        let Some(times) = test.times else {
            self.test_without_times(case, test, suite);
            return;
        };
        if self.lookup.is_outside(times.from, times.to) {
            self.placed.outside += 1;
            self.placed.known_tests.insert(case.number);
            return;
        }
        let Some(runner) = self.runner_of_test(test, times, suite) else {
            self.add_anywhere(case, test.anywhere);
            return;
        };
        self.note_errors(times, suite);
        let span = self.guess(&name, Some(case.result), runner, times, &case.attributes);
        let guess = self.doubted(span, case, test, suite);
        self.placed.known_tests.insert(case.number);
        self.guesses.push(guess);
    }

    /// Gives a test that has no times of its own the whole time in which it can have run within its suite as its place,
    /// or explains by a note why the test has no place.
    fn test_without_times(&mut self, case: &Case, test: &TestFacts, suite: &SuiteFacts) {
        if self.add_anywhere(case, test.anywhere) {
            return;
        }
        self.placed
            .add_note(match (suite.around.is_some(), suite.is_nested) {
                (true, true) => ImportNote::NestedTests,
                (true, false) => ImportNote::OverlappingTests,
                (false, _) => ImportNote::NoTimeOfDay,
            });
    }

    /// The process that ran a test: the process that the suite's schedule has for it, or else a process that fits the
    /// test's times.
    fn runner_of_test(&self, test: &TestFacts, times: Times, suite: &SuiteFacts) -> Option<Runner> {
        match (&suite.scheduled, test.process) {
            (Some(scheduled), Some(process)) => {
                self.within(process, scheduled.is_one_thread, times)
            }
            _ => self.runner(times),
        }
    }

    /// Notes by how much a placed test can have run earlier or later than its times say.
    fn note_errors(&mut self, times: Times, suite: &SuiteFacts) {
        let length = times.to.saturating_sub(times.from);
        let is_early = times.early > length / TOLERATED_PART.cast_signed();
        if length > 0 && is_early && times.doubt.is_none() {
            self.early = self.early.max(times.early);
        }
        let has_whole_seconds = suite.around.is_some_and(|around| around.digit >= SECOND);
        if times.error.is_none() && has_whole_seconds {
            self.placed.add_note(ImportNote::WholeSeconds);
        }
    }

    /// Adds to the place of a test the doubts that come from its suite.
    fn doubted(&self, span: Guess, case: &Case, test: &TestFacts, suite: &SuiteFacts) -> Guess {
        // Suites that ran at the same time ran in different processes, so it is not known which process ran this test.
        let in_overlap = suite.overlaps && !span.own_stamp && suite.scheduled.is_none();
        let is_loose = suite.is_loose && !span.own_stamp;
        let mut guess = Guess {
            anywhere: test.anywhere,
            is_loose: is_loose || case.is_unmeasured(),
            doubt: span.doubt.or(in_overlap.then_some(Doubt::Runner)),
            ..span
        };
        if is_loose && suite.is_only && guess.is_even {
            guess.loosen(case, self);
        }
        guess
    }

    /// Places a test that has a process of its own. Its place is the whole life of the process, or a part of that life
    /// if the recording proves that the test was shorter.
    fn own_test(&mut self, case: &Case, name: &str, process: ProcessIx) {
        let life = self.lookup.analysis.process(process);
        let (life, within) = ((life.start, life.end), self.within_own(process, case));
        let at = within.map_or(life, |times| (ktime(times.from), ktime(times.to)));
        let error = within.and_then(|times| times.error).unwrap_or(0);
        let span = Imported {
            whole: within.is_none(),
            brief: case.attributes.brief(name),
            file: case.attributes.test_file(),
            result: Some(case.result),
            error: error.unsigned_abs(),
            doubt: within.and_then(|times| times.doubt),
            ..imported(ImportedKind::Test, name.as_bytes(), (process, at))
        };
        self.placed.add_test(case.number, span);
    }

    /// Places a suite without times that has a process of its own. The place of the suite is the whole life of this
    /// process. If the suite has only one test, the test is placed there, and the suite itself is not.
    fn own_suite(&mut self, suite: &Suite, process: ProcessIx) {
        let life = self.lookup.analysis.process(process);
        let at = (process, (life.start, life.end));
        let mut add = |name: &str, attributes: &Attributes, result: Option<TestResult>| {
            self.placed.spans.push(Imported {
                whole: true,
                brief: attributes.brief(name),
                file: attributes.test_file(),
                result,
                ..imported(ImportedKind::Test, name.as_bytes(), at)
            });
        };
        match &suite.cases[..] {
            [only] => {
                add(&suite.title_of(only), &only.attributes, Some(only.result));
                self.placed.known_tests.insert(only.number);
            }
            _ => {
                add(&suite.attributes.name, &suite.attributes, None);
                self.placed.parts += 1;
                self.placed.add_note(ImportNote::NoTimeOfDay);
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
            let mut others = tests.iter().take(MOST_TRIED);
            others.any(|other| self.are_beside(*process, *other))
        };
        let pairs = processes.len().saturating_mul(tests.len().min(MOST_TRIED));
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
            let mut lineage = analysis.lineage(of).take(MOST_TRIED);
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
        name: &str,
        result: Option<TestResult>,
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
                brief: attributes.brief(name),
                file: attributes.test_file(),
                result,
                ..imported(ImportedKind::Test, name.as_bytes(), at)
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
        // simply follow each other, so their places in time are in doubt.
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
