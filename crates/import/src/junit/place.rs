//! Places tests under the processes that ran them.

use std::collections::{HashMap, HashSet};

use tr_analyze::model::{Imported, ImportedKind, ProcessIx};
use tr_format::event::Ktime;
use tr_report::steps::{StepKind, Steps};
use tr_report::units;

use super::{Case, Report, Suite};
use crate::date::Date;
use crate::recording::{base, imported, names, signed, Recording};
use crate::Placed;

/// Lengths have three digits: the sum of a suite's tests may exceed its length by as much each.
const ROUNDED: i64 = 1_000_000;

/// Of a test's length, the part by which it may be earlier without a note.
const TOLERATED: i64 = 10;

/// A process of a test's own lasts longer than the test, by this or by a fifth, in ns.
const LONGER: i64 = 100_000_000;

/// The most processes that are tried for a suite.
const TRIED: usize = 1_000;

const SECOND: i64 = 1_000_000_000;

const QUARTER_HOUR: i64 = 900_000_000_000;

impl Report {
    /// Places each test on a process of its own whose command line names it, or else at its
    /// time under the process that ran the suite.
    pub(crate) fn place(&self, path: &[u8], recording: &Recording<'_>) -> Placed {
        let (ahead, note) = self.zone(recording);
        let mut placer = Placer {
            recording,
            ahead,
            runners: runners(path, recording),
            own: self.own_processes(recording),
            used: HashSet::new(),
            several: self.suites.len() > 1,
            early: 0,
            placed: Placed {
                note,
                ..Placed::default()
            },
        };
        for suite in &self.suites {
            placer.suite(suite);
        }
        if let early @ 1.. = placer.early.unsigned_abs() {
            let early = units::time(early);
            placer.note(&format!("tests may be up to {early} earlier than shown"));
        }
        placer.placed
    }

    /// What the zone of times without one is ahead of UTC: the least that puts the first of them
    /// into the recording. With the note for it.
    fn zone(&self, recording: &Recording<'_>) -> (i64, Option<String>) {
        let suites = self.suites.iter();
        let mut dates = suites.flat_map(|suite| {
            let cases = suite.cases.iter().filter_map(|case| case.it.at);
            suite.it.at.into_iter().chain(cases)
        });
        let Some(first) = dates.find(|date| date.ahead.is_none()) else {
            return (0, None);
        };
        let span = (
            signed(recording.analysis.start),
            signed(recording.analysis.end),
        );
        let is_inside = |quarters: &i64| {
            let time = recording.time(first.local.saturating_sub(quarters * QUARTER_HOUR));
            span.0.saturating_sub(first.digit) <= time && time <= span.1
        };
        // From 12 hours behind UTC to 14 ahead of it.
        let quarters = (0..=56).flat_map(|ahead| [ahead, -ahead]);
        let mut quarters = quarters.filter(|quarters| *quarters >= -48);
        match quarters.find(is_inside) {
            None | Some(0) => (0, None),
            Some(quarters) => {
                let sign = if quarters < 0 { '-' } else { '+' };
                let minutes = quarters.abs() * 15;
                let note = format!(
                    "its times have no zone: UTC{sign}{:02}:{:02} assumed",
                    minutes / 60,
                    minutes % 60
                );
                (quarters * QUARTER_HOUR, Some(note))
            }
        }
    }

    /// The processes whose command line has a test's name.
    fn own_processes(&self, recording: &Recording<'_>) -> HashMap<Vec<u8>, Vec<ProcessIx>> {
        let cases = self.suites.iter().flat_map(|suite| &suite.cases);
        let mut own: HashMap<Vec<u8>, Vec<ProcessIx>> = HashMap::new();
        own.extend(cases.map(|case| (case.it.name.as_bytes().to_vec(), Vec::new())));
        for ix in recording.analysis.process_ids() {
            let mut args = recording.analysis.process(ix).argv.args();
            let program = args.next().map(base);
            for word in program.into_iter().chain(args) {
                if let Some(own) = own.get_mut(word) {
                    if own.last() != Some(&ix) {
                        own.push(ix);
                    }
                }
            }
        }
        own
    }
}

/// Lists of processes, the likelier runners of tests first, each in order of their start: those
/// whose command line names the file; test programs; the recorded command.
fn runners(path: &[u8], recording: &Recording<'_>) -> [Vec<ProcessIx>; 3] {
    let analysis = recording.analysis;
    let named = |ix: &ProcessIx| names(analysis.process(*ix), base(path));
    let steps = Steps::new(analysis);
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

struct Placer<'a> {
    recording: &'a Recording<'a>,
    /// What times without a zone are ahead of UTC.
    ahead: i64,
    runners: [Vec<ProcessIx>; 3],
    own: HashMap<Vec<u8>, Vec<ProcessIx>>,
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
    /// It may begin later by this.
    digit: i64,
    /// It may begin and end earlier by this.
    early: i64,
}

impl Placer<'_> {
    fn suite(&mut self, suite: &Suite) {
        let all = suite.cases.len() as u64;
        self.placed.all += all;
        let around = self.around(suite);
        let runner = around.and_then(|times| self.runner(times));
        let has_marks = runner.is_some_and(|(ix, _)| self.has_marks(ix));
        let within = runner.map(|(_, times)| times);
        let times = self.times(suite, within.map(|(from, to)| (signed(from), signed(to))));
        if let (Some((process, times)), true, false) = (runner, self.several, has_marks) {
            if !suite.it.name.is_empty() {
                let span = imported(
                    ImportedKind::Test,
                    suite.it.name.as_bytes(),
                    (process, times),
                );
                self.placed.spans.push(span);
                self.placed.parts += 1;
            }
        }
        for (case, times) in suite.cases.iter().zip(times) {
            let name = match case.it.class.as_str() {
                "" => case.it.name.clone(),
                class => format!("{class} {}", case.it.name),
            };
            let span = |at| Imported {
                result: Some(case.result),
                ..imported(ImportedKind::Test, name.as_bytes(), at)
            };
            if let Some(process) = self.own_process(case, times) {
                let life = self.recording.analysis.process(process);
                self.placed.spans.push(Imported {
                    whole: true,
                    ..span((process, (life.start, life.end)))
                });
                continue;
            }
            match times {
                _ if has_marks => self.note("the recording has its tests as marks"),
                None if around.is_some() => {
                    self.note("tests that overlap have no times of their own");
                }
                None => self.note("tests without a time of the day"),
                Some(times) if self.recording.is_outside(times.from, times.to) => {
                    self.placed.outside += 1;
                }
                Some(times) => {
                    let at = self.runner(times);
                    if at.is_some() {
                        self.early = self.early.max(times.early);
                    }
                    if at.is_some() && around.is_some_and(|around| around.digit >= SECOND) {
                        self.note("its times are whole seconds: tests are up to 1 s later");
                    }
                    self.placed.spans.extend(at.map(span));
                }
            }
        }
    }

    /// Adds a note, once.
    fn note(&mut self, note: &str) {
        let all = self.placed.note.get_or_insert_default();
        if !all.contains(note) {
            let between = if all.is_empty() { "" } else { "; " };
            *all += between;
            *all += note;
        }
    }

    /// A span of a length from a time of the day on.
    fn from(&self, date: Date, length: i64) -> Times {
        let ahead = date.ahead.unwrap_or(self.ahead);
        let from = self.recording.time(date.local.saturating_sub(ahead));
        Times {
            from,
            to: from.saturating_add(length),
            digit: date.digit,
            early: 0,
        }
    }

    /// The suite's span, or that of its tests' times.
    fn around(&self, suite: &Suite) -> Option<Times> {
        let lengths = suite.cases.iter().filter_map(|case| case.it.length);
        let sum = lengths.fold(0, i64::saturating_add);
        if let Some(at) = suite.it.at {
            return Some(self.from(at, suite.it.length.unwrap_or(sum)));
        }
        let spans = suite.cases.iter().filter_map(|case| self.of_case(case));
        spans.reduce(|a, b| Times {
            from: a.from.min(b.from),
            to: a.to.max(b.to),
            digit: a.digit.max(b.digit),
            early: 0,
        })
    }

    /// The span of a test that has a time of the day.
    fn of_case(&self, case: &Case) -> Option<Times> {
        Some(self.from(case.it.at?, case.it.length.unwrap_or(0)))
    }

    /// The spans of the tests. Tests without a time of the day follow each other, so that the
    /// last one ends with the suite: what is left of the suite's length is its preparation. If the
    /// runner did other work between them, they were earlier, by what is left at most.
    fn times(&self, suite: &Suite, within: Option<(i64, i64)>) -> Vec<Option<Times>> {
        if suite.cases.iter().any(|case| case.it.at.is_some()) {
            return suite.cases.iter().map(|case| self.of_case(case)).collect();
        }
        let lengths = suite.cases.iter().map(|case| case.it.length.unwrap_or(0));
        let sum = lengths.clone().fold(0, i64::saturating_add);
        let rounded = ROUNDED.saturating_mul(suite.cases.len() as i64);
        let none = vec![None; suite.cases.len()];
        let around = within.or_else(|| self.around(suite).map(|times| (times.from, times.to)));
        let Some((first, last)) = around else {
            return none;
        };
        if sum > last.saturating_sub(first).saturating_add(rounded) {
            return none; // several at once
        }
        let left = last.saturating_sub(first).saturating_sub(sum);
        let shortest = lengths.clone().filter(|length| *length > 0).min();
        let tolerated = shortest.map_or(i64::MAX, |length| length / TOLERATED);
        let early = if left > tolerated { left } else { 0 };
        let mut now = last.saturating_sub(sum);
        let spans = lengths.map(|length| {
            let from = now;
            now = now.saturating_add(length);
            Some(Times {
                from: from.max(first),
                to: now.max(first),
                digit: 0,
                early,
            })
        });
        spans.collect()
    }

    /// The process that then ran tests, and the span in it.
    fn runner(&self, times: Times) -> Option<(ProcessIx, (Ktime, Ktime))> {
        let analysis = self.recording.analysis;
        self.runners.iter().find_map(|runners| {
            let start = |ix: &ProcessIx| signed(analysis.process(*ix).start);
            let latest = times
                .from
                .saturating_add(times.digit)
                .saturating_add(LONGER);
            let after = runners.partition_point(|ix| start(ix) <= latest);
            let before = runners.get(..after).unwrap_or_default();
            // Of a runner and its wrappers, the runner began last.
            let mut tried = before.iter().rev().take(TRIED).copied();
            tried.find_map(|ix| {
                let later = start(&ix).saturating_sub(times.from).clamp(0, times.digit);
                let (from, to) = (
                    times.from.saturating_add(later),
                    times.to.saturating_add(later),
                );
                Some((ix, self.recording.inside(ix, from, to)?))
            })
        })
    }

    /// Programs have marked their tests: those times are exact.
    fn has_marks(&self, process: ProcessIx) -> bool {
        let analysis = self.recording.analysis;
        let pid = analysis.process(process).ns_pid;
        let mut marks = analysis.marks.iter();
        marks.any(|(_, mark)| mark.pid == Some(pid) && &*mark.kind == b"test")
    }

    /// The only process that the test's name fits, and its length and time.
    fn own_process(&mut self, case: &Case, times: Option<Times>) -> Option<ProcessIx> {
        let analysis = self.recording.analysis;
        let length = case.it.length?;
        let fits = |ix: &&ProcessIx| {
            let process = analysis.process(**ix);
            let (start, end) = (signed(process.start), signed(process.end));
            let longer = end.saturating_sub(start).saturating_sub(length);
            let at_its_time = case.it.at.is_none()
                || times.is_none_or(|times| {
                    let early = times.from.saturating_sub(LONGER);
                    early <= start && start <= times.from.saturating_add(times.digit + LONGER)
                });
            longer.unsigned_abs() <= LONGER.max(length / 5).unsigned_abs()
                && at_its_time
                && !self.used.contains(*ix)
        };
        let mut own = self.own.get(case.it.name.as_bytes())?.iter().filter(fits);
        match (own.next().copied(), own.next()) {
            (Some(only), None) => {
                self.used.insert(only);
                Some(only)
            }
            _ => None,
        }
    }
}
