//! The suites of a JUnit report, and the places of their tests under the processes that ran them.

mod active;
pub mod cases;
mod own;
mod proof;
mod runner;
mod schedule;
mod serial;

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use tr_analyze::model::{Doubt, Imported, ImportedKind, ProcessIx};
use tr_format::event::Ktime;
use tr_programs::steps::StepKind;
use tr_text::units;

use super::lookup::{base, imported, ktime, names, signed, Lookup, Placed};
use crate::steps::Steps;
use own::OwnProcesses;
use proof::{find_doubts, Contradictions, Guess, Stamp, Stamped};
use runner::RunnerFacts;
use schedule::Scheduled;

/// The most slashes of a name that may end the name of another test.
const SLASHES: usize = 100;

/// The suites of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub suites: Vec<Suite>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suite {
    pub attributes: Attributes,
    pub cases: Vec<Case>,
    /// The tests stand in the file as they ran.
    pub has_order: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    pub attributes: Attributes,
    pub result: &'static str,
}

impl Case {
    fn has_failed(&self) -> bool {
        matches!(self.result, "failed" | "error")
    }
}

impl Suite {
    /// The lengths of the tests together, in ns.
    pub fn sum(&self) -> i64 {
        let lengths = self.cases.iter().filter_map(|case| case.attributes.length);
        lengths.fold(0, i64::saturating_add)
    }

    /// The error of the sum of its tests' lengths and of its own length, in ns.
    fn rounded(&self) -> i64 {
        let digits = self.cases.iter().map(|case| case.attributes.digit);
        digits.fold(self.attributes.digit, i64::saturating_add)
    }

    /// Whether the suite's own length was measured: one that is no more than the sum of its tests bounds no time
    /// between them.
    fn is_measured(&self) -> bool {
        let sum = self.sum().saturating_add(self.rounded());
        self.attributes.length.is_some_and(|length| length > sum)
    }

    /// Whether the tests that failed all stand before or all behind the others: the file can be ordered by result.
    fn is_by_result(&self) -> bool {
        let results = self.cases.iter().map(Case::has_failed);
        let changes = results.clone().zip(results.skip(1));
        changes.filter(|(a, b)| a != b).count() == 1
    }

    /// For each test the one around it, as Go's `TestA` is around `TestA/x`: the longest name that a slash ends.
    pub fn around(&self) -> Vec<Option<usize>> {
        let name = |case: &Case| (case.attributes.class.clone(), case.attributes.name.clone());
        let places = self.cases.iter().enumerate();
        let places: HashMap<(String, String), usize> =
            places.map(|(at, case)| (name(case), at)).collect();
        let around = self.cases.iter().map(|case| {
            let (class, name) = (&case.attributes.class, &case.attributes.name);
            let slashes = name.rmatch_indices('/').take(SLASHES);
            let mut around = slashes.filter_map(|(at, _)| name.get(..at));
            around.find_map(|around| places.get(&(class.clone(), around.to_owned())).copied())
        });
        around.collect()
    }
}

/// The attributes of a suite or a test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    pub name: String,
    pub class: String,
    /// The file that the report names, in which the test is.
    pub file: Option<String>,
    pub at: Option<Date>,
    /// The length in ns.
    pub length: Option<i64>,
    /// The length of the last digit of `length`, in ns.
    pub digit: i64,
}

/// A time of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// In ns since 1970, in its zone.
    pub local: i64,
    /// The difference of the date's zone from UTC, in ns, if it has a zone; zones east of UTC are positive.
    pub ahead: Option<i64>,
    /// The length of its last digit, in ns.
    pub digit: i64,
}

/// The divisor of a test's length: the test may be earlier by this part without a note.
const TOLERATED: i64 = 10;

/// A process of a test's own lasts longer than the test, by this or by a fifth, in ns.
const LONGER: i64 = 100_000_000;

/// A runner reads the time of the day and the clock by which it measures a test's length one after the other, within
/// this time, in ns.
const BETWEEN_CLOCKS: i64 = 1_000_000;

/// A file system's clock is as late as a tick of the kernel, 10 ms where it is longest (CONFIG_HZ=100).
const COARSE: i64 = 10_000_000;

/// A runner writes its report this soon after its last test, in ns: much less than zones are apart.
const WRITTEN_WITHIN: i64 = 60_000_000_000;

/// The most processes that are tried for a suite.
const TRIED: usize = 1_000;

/// The most places of tests that are computed for a file, some 100 ns each: the search for the runners of very many
/// suites ends within some seconds.
const WORK: u64 = 20_000_000;

/// So many processes of which only the life is looked at cost as much as the place of a test.
const LIVES: usize = 8;

const SECOND: i64 = 1_000_000_000;

const QUARTER_HOUR: i64 = 900_000_000_000;

impl Report {
    /// Places each test on a process of its own whose command line names it, or else at its
    /// time under the process that ran the suite.
    /// `written` is the time of the file in ns since 1970.
    pub(super) fn place(&self, path: &[u8], written: Option<i64>, lookup: &Lookup<'_>) -> Placed {
        let written = written.map(|time| lookup.time(time).saturating_add(COARSE));
        // A copy is younger than the recording, and tells nothing.
        let written = written.filter(|time| !lookup.is_outside(*time, *time));
        let zone = self.zone(written, lookup);
        let mut placer = Placer {
            lookup,
            written,
            facts: HashMap::new(),
            decided: HashSet::new(),
            work: Cell::new(WORK),
            zone: zone.proven,
            ahead: zone.ahead,
            of_cases: None,
            of_suites: None,
            guesses: Vec::new(),
            runners: runners(path, lookup),
            own: OwnProcesses::new(self, lookup),
            used: HashSet::new(),
            several: self.suites.len() > 1,
            early: 0,
            placed: Placed {
                note: zone.note,
                ..Placed::default()
            },
        };
        placer.find_stamps(&self.suites);
        let overlapping = placer.overlapping(&self.suites);
        for (suite, overlaps) in self.suites.iter().zip(overlapping) {
            placer.suite(suite, overlaps);
        }
        let [_, tests, _] = &placer.runners;
        find_doubts(lookup.analysis, tests, &placer.decided, &mut placer.guesses);
        let guesses = std::mem::take(&mut placer.guesses);
        if placer.work.get() == 0 {
            placer
                .placed
                .add_note("it has more suites than the search for their runners may try");
        }
        placer
            .placed
            .spans
            .extend(guesses.into_iter().map(|guess| guess.span));
        if let early @ 1.. = placer.early.unsigned_abs() {
            let early = units::time(early);
            placer
                .placed
                .add_note(&format!("tests may be up to {early} earlier than shown"));
        }
        let doubtful = placer.placed.spans.iter();
        let is_test = |span: &&Imported| span.result.is_some() && span.doubt.is_some();
        let doubtful = doubtful.filter(is_test).count() as u64;
        if doubtful > 0 {
            let doubtful = units::plural(doubtful, "test has", "tests have");
            placer.placed.add_note(&format!(
                "{doubtful} no figures, as the place in time is not proven"
            ));
        }
        placer.placed
    }

    /// The zone of times that have none: the one in which the last of them ends just before the report was written,
    /// or else the nearest to UTC that puts the first of them into the recording.
    fn zone(&self, written: Option<i64>, lookup: &Lookup<'_>) -> Zone {
        let Some(first) = self.local_dates().next().map(|(date, _)| date) else {
            return Zone::UTC;
        };
        let span = (signed(lookup.analysis.start), signed(lookup.analysis.end));
        let at = |date: Date, quarters: i64| {
            lookup.time(date.local.saturating_sub(quarters * QUARTER_HOUR))
        };
        let is_inside = |quarters: &i64| {
            let time = at(first, *quarters);
            span.0.saturating_sub(first.digit) <= time && time <= span.1
        };
        // From 12 hours behind UTC to 14 ahead of it.
        let quarters = (1..=56).flat_map(|ahead| [ahead, -ahead]);
        let quarters = std::iter::once(0).chain(quarters);
        let quarters = quarters.filter(|quarters| *quarters >= -48);
        let fitting: Vec<i64> = quarters.filter(is_inside).collect();
        // With beginnings the last test ends later than its time, with ends not.
        let by_file = |quarters: &i64| {
            let ends = self.local_dates().flat_map(|(date, length)| {
                let time = at(date, *quarters);
                [time, time.saturating_add(length)].map(|time| (time, date.digit))
            });
            let Some((end, digit)) = ends.max() else {
                return false;
            };
            let since = written.map(|written| written.saturating_sub(end).saturating_add(digit));
            since.is_some_and(|since| (0..=WRITTEN_WITHIN).contains(&since))
        };
        let told: Vec<i64> = fitting.iter().copied().filter(by_file).collect();
        let (nearest, proven) = match told[..] {
            [told] => (Some(told), true),
            _ => (fitting.first().copied(), fitting.len() < 2),
        };
        match nearest {
            None | Some(0) => Zone {
                proven,
                ..Zone::UTC
            },
            Some(quarters) => {
                let sign = if quarters < 0 { '-' } else { '+' };
                let minutes = quarters.abs() * 15;
                let note = format!(
                    "its times have no zone: UTC{sign}{:02}:{:02} assumed",
                    minutes / 60,
                    minutes % 60
                );
                Zone {
                    ahead: quarters * QUARTER_HOUR,
                    proven,
                    note: Some(note),
                }
            }
        }
    }

    /// The times without a zone, each with the length of its suite or test in ns.
    fn local_dates(&self) -> impl Iterator<Item = (Date, i64)> + '_ {
        let of = |attributes: &Attributes| {
            let date = attributes.at.filter(|date| date.ahead.is_none())?;
            Some((date, attributes.length.unwrap_or(0)))
        };
        self.suites.iter().flat_map(move |suite| {
            let cases = suite
                .cases
                .iter()
                .filter_map(move |case| of(&case.attributes));
            of(&suite.attributes).into_iter().chain(cases)
        })
    }
}

/// Lists of processes, the likelier runners of tests first, each in order of their start: those
/// whose command line names the file; test programs; the recorded command.
fn runners(path: &[u8], lookup: &Lookup<'_>) -> [Vec<ProcessIx>; 3] {
    let analysis = lookup.analysis;
    let named = |ix: &ProcessIx| names(analysis.process(*ix), base(path));
    let steps = Steps::new(analysis, &[]);
    let tests = steps
        .list()
        .iter()
        .filter(|step| step.kind == StepKind::Test);
    let mut tests: Vec<ProcessIx> = tests.filter_map(|step| step.process).collect();
    tests.sort_unstable();
    tests.dedup();
    let is_root = |ix: &ProcessIx| analysis.process(*ix).parent.is_none();
    [
        analysis.process_ids().filter(named).collect(),
        tests,
        analysis.process_ids().filter(is_root).take(1).collect(),
    ]
}

/// The zone of times that have none.
struct Zone {
    /// The zone's time minus UTC, in ns.
    ahead: i64,
    /// No other zone puts the times into the recording.
    proven: bool,
    note: Option<String>,
}

impl Zone {
    const UTC: Zone = Zone {
        ahead: 0,
        proven: true,
        note: None,
    };
}

struct Placer<'a> {
    lookup: &'a Lookup<'a>,
    /// The latest time at which the report can have been written, if the recording has it: no test ends after it.
    written: Option<i64>,
    /// The facts about the processes that were looked at.
    facts: HashMap<ProcessIx, Option<Rc<RunnerFacts>>>,
    /// The children of runners that began and ended in one test each.
    decided: HashSet<ProcessIx>,
    /// The part of [`WORK`] that is left.
    work: Cell<u64>,
    /// The difference from UTC of the times that have no zone, in ns.
    ahead: i64,
    /// Whether no other zone puts the times into the recording.
    zone: bool,
    /// The meaning of the tests' own times, if it is proven.
    of_cases: Option<Stamp>,
    /// The meaning of the suites' times, if it is proven.
    of_suites: Option<Stamp>,
    /// The tests that have no process of their own.
    guesses: Vec<Guess>,
    runners: [Vec<ProcessIx>; 3],
    own: OwnProcesses,
    /// The processes of a test's own that have their test.
    used: HashSet<ProcessIx>,
    /// The report has several suites.
    several: bool,
    /// The most by which a test may be earlier than shown, in ns.
    early: i64,
    placed: Placed,
}

/// A span before it has a process.
#[derive(Clone, Copy)]
struct Times {
    from: i64,
    to: i64,
    /// The most by which the span may begin later, in ns.
    digit: i64,
    /// The most by which the span may begin and end earlier, in ns.
    early: i64,
    /// The most by which the beginning or the end is wrong, in ns, if the recording bounds it ([`serial`]).
    error: Option<i64>,
    /// The reason why the times are not proven.
    doubt: Option<Doubt>,
}

/// A process that ran tests, and a span in its life.
#[derive(Clone, Copy)]
struct Runner {
    process: ProcessIx,
    from: Ktime,
    to: Ktime,
    /// No other process can have run the tests but those around it.
    is_sure: bool,
    /// One thread of the process ran the tests, and no other can have.
    is_one_thread: bool,
}

impl Placer<'_> {
    /// Counts the places of tests that are to be computed; none if they were too many before.
    fn spend(&self, count: usize) -> Option<()> {
        let left = self.work.get().checked_sub(count as u64);
        self.work.set(left.unwrap_or(0));
        left.map(|_| ())
    }

    /// Finds the meaning of the times of suites and of tests.
    fn find_stamps(&mut self, suites: &[Suite]) {
        let stamped = |attributes: &Attributes, length: i64| {
            let times = self.from(attributes.at?, length, Some(Stamp::Begin));
            let outside = self.lookup.is_outside(times.from, times.to);
            let runner = self.runner(times).map(|runner| {
                let process = self.lookup.analysis.process(runner.process);
                (signed(process.start), signed(process.end))
            });
            (!outside).then_some(Stamped {
                at: times.from,
                length,
                error: self.error(&times, attributes),
                runner,
            })
        };
        let mut of_suites = Contradictions::default();
        let lengths = |suite: &Suite| suite.attributes.length.unwrap_or_else(|| suite.sum());
        let all = suites.iter().filter(|suite| !suite.cases.is_empty());
        let all: Vec<Stamped> = all
            .filter_map(|suite| stamped(&suite.attributes, lengths(suite)))
            .collect();
        of_suites.by_lives(&all);
        of_suites.by_file(&all, self.written);
        let mut of_cases = Contradictions::default();
        for suite in suites {
            let cases = suite.cases.iter();
            let cases: Vec<Stamped> = cases
                .filter_map(|case| stamped(&case.attributes, case.attributes.length?))
                .collect();
            of_cases.by_lives(&cases);
            of_cases.by_file(&cases, self.written);
            of_cases.by_order(cases);
        }
        self.of_suites = of_suites.stamp();
        self.of_cases = of_cases.stamp();
        if self.of_suites.is_none() && suites.iter().any(|suite| suite.attributes.at.is_some()) {
            self.of_suites = self.by_schedule(suites, |placer, stamp| placer.of_suites = stamp);
        }
        let mut cases = suites.iter().flat_map(|suite| &suite.cases);
        if self.of_cases.is_none() && cases.any(|case| case.attributes.at.is_some()) {
            self.of_cases = self.by_schedule(suites, |placer, stamp| placer.of_cases = stamp);
        }
    }

    /// The only meaning of the file's times that leaves a schedule for each suite which has one by either meaning.
    fn by_schedule(
        &mut self,
        suites: &[Suite],
        set: impl Fn(&mut Self, Option<Stamp>),
    ) -> Option<Stamp> {
        let mut found = Contradictions::default();
        for suite in suites.iter().filter(|suite| !suite.cases.is_empty()) {
            let fits = [Stamp::Begin, Stamp::End].map(|stamp| {
                set(self, Some(stamp));
                let runner = self.around(suite).and_then(|around| self.runner(around));
                runner.is_some_and(|runner| self.schedule(suite, Some(runner.process)).is_some())
            });
            found.by_fit(fits);
        }
        set(self, None);
        found.stamp()
    }

    /// For each suite whether it ran at the same time as another one.
    fn overlapping(&self, suites: &[Suite]) -> Vec<bool> {
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

    fn suite(&mut self, suite: &Suite, overlaps: bool) {
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
        let schedule = self.schedule(suite, runner.map(|runner| runner.process));
        let (scheduled, times) = match schedule {
            Some(schedule) => {
                self.decided.extend(schedule.decided);
                (Some(schedule.runner), schedule.times)
            }
            None => (None, self.times(suite, within)),
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
        for (case, times) in suite.cases.iter().zip(times) {
            let name = match case.attributes.class.as_str() {
                "" => case.attributes.name.clone(),
                class => format!("{class} {}", case.attributes.name),
            };
            if let Some(process) = self.own_process(case, times) {
                self.own_test(case, &name, process);
                continue;
            }
            match times {
                _ if has_marks => self.placed.add_note("the recording has its tests as marks"),
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
                }
                Some(times) => {
                    let runner = match &scheduled {
                        Some(scheduled) => self.within(scheduled, times),
                        None => self.runner(times),
                    };
                    let Some(runner) = runner else {
                        continue;
                    };
                    let length = times.to.saturating_sub(times.from);
                    if length > 0 && times.early > length / TOLERATED {
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
                    self.guesses.push(Guess {
                        doubt: guess.doubt.or(in_overlap.then_some(Doubt::Runner)),
                        ..guess
                    });
                }
            }
        }
    }

    /// A test that is a process, or a part of one that has no other test.
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

    /// A suite without times that is a process: a test that is alone in it has its time.
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
            [only] => add(
                &format!("{name} {}", only.attributes.name),
                Some(only.result),
            ),
            _ => {
                add(name, None);
                self.placed.parts += 1;
                self.placed.add_note("tests without a time of the day");
            }
        }
    }

    /// A span in the life of one of the processes that a schedule names.
    fn within(&self, scheduled: &Scheduled, times: Times) -> Option<Runner> {
        let middle = times.from.midpoint(times.to);
        let start = |process: &ProcessIx| signed(self.lookup.analysis.process(*process).start);
        let mut processes = scheduled.processes.iter().copied();
        let process = processes.rfind(|process| start(process) <= middle)?;
        let (from, to) = self.lookup.inside(process, times.from, times.to)?;
        Some(Runner {
            process,
            from,
            to,
            is_sure: true,
            is_one_thread: scheduled.is_one_thread,
        })
    }

    /// A test or a suite at its times under the process that ran it.
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
        Guess {
            span: Imported {
                result,
                ..imported(ImportedKind::Test, name, at)
            },
            error: self.error(&times, attributes),
            own_stamp: attributes.at.is_some(),
            is_suite: result.is_none(),
            doubt: times.doubt,
            sure_runner: runner.is_sure,
            one_thread: runner.is_one_thread,
            is_test: tests.binary_search(&runner.process).is_ok(),
        }
    }

    /// The most by which a boundary is wrong, in ns: by the digits of the file's numbers, by
    /// work between tests, and by clocks.
    fn error(&self, times: &Times, attributes: &Attributes) -> i64 {
        if let Some(error) = times.error {
            return error;
        }
        let place = times.digit.max(times.early);
        let clocks = self.lookup.clock_error();
        place
            .saturating_add(attributes.digit)
            .saturating_add(clocks)
    }

    /// The recording's time at a time of the day, in ns.
    fn time(&self, date: Date) -> i64 {
        let ahead = date.ahead.unwrap_or(self.ahead);
        self.lookup.time(date.local.saturating_sub(ahead))
    }

    /// A span of a length that begins or ends at a time of the day.
    fn from(&self, date: Date, length: i64, stamp: Option<Stamp>) -> Times {
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
            doubt,
        }
    }

    /// The span of a suite that has a time of the day.
    fn of_suite(&self, suite: &Suite) -> Option<Times> {
        let length = suite.attributes.length.unwrap_or_else(|| suite.sum());
        Some(self.from(suite.attributes.at?, length, self.of_suites))
    }

    /// The suite's span, or that of its tests' times.
    fn around(&self, suite: &Suite) -> Option<Times> {
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
            doubt: a.doubt.or(b.doubt),
        })
    }

    /// The span of a test that has a time of the day.
    fn of_case(&self, case: &Case) -> Option<Times> {
        let length = case.attributes.length.unwrap_or(0);
        Some(self.from(case.attributes.at?, length, self.of_cases))
    }

    /// The spans of the tests. Tests without a time of the day follow each other, so that the
    /// last one ends with the suite: what is left of the suite's length is its preparation. If the
    /// runner did other work between them, they were earlier, by what is left at most.
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
        let is_proven = suite.is_measured() && suite.has_order && !suite.is_by_result();
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
                doubt,
            })
        });
        spans.collect()
    }

    /// The most by which a time of the day is wrong, in ns.
    fn stamp_error(&self, digit: i64) -> i64 {
        let clocks = self.lookup.clock_error();
        digit.saturating_add(clocks).saturating_add(BETWEEN_CLOCKS)
    }

    /// The process that then ran tests, and the span in it.
    fn runner(&self, times: Times) -> Option<Runner> {
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
            // Of a runner and its wrappers, the runner began last.
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

    /// Programs have marked their tests: those times are exact.
    fn has_marks(&self, process: ProcessIx) -> bool {
        let analysis = self.lookup.analysis;
        let pid = analysis.process(process).ns_pid;
        let mut marks = analysis.marks.iter();
        marks.any(|(_, mark)| mark.pid == Some(pid) && &*mark.kind == b"test")
    }
}
