//! Places the test suites of a JUnit report under the processes that ran them.

mod active;
mod anywhere;
mod assign;
mod blocks;
pub mod cases;
mod choice;
mod even;
mod listeners;
mod neighbours;
mod nested;
mod own;
mod placer;
mod placing;
mod pool;
mod proof;
mod report;
mod runner;
mod schedule;
mod serial;
mod stamps;
mod threads;
mod window;

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use tr_analyze::model::{Imported, ProcessIx};
use tr_programs::steps::StepKind;

use super::lookup::{base, names, signed, Lookup, Placed};
use super::notes::ImportNote;
use active::Active;
use own::OwnProcesses;
use placer::{Placer, MOST_PLACES};
use proof::find_doubts;
pub use report::{Attributes, Case, Date, Report, Suite, TestResult};
use tr_insight::steps::Steps;

/// The time stamp of a written file can be too early by at most this much, in nanoseconds, because file systems use a
/// clock that advances only once in each tick of the kernel. A tick is at most 10 ms (CONFIG_HZ=100).
const COARSE_CLOCK: i64 = 10_000_000;
/// The longest time in nanoseconds from the end of the last test until a runner has written its report. The right time
/// zone is found by this limit, so the limit must be much less than the difference between two zones. A guess: the
/// nearest zones are 15 minutes apart.
const WRITTEN_WITHIN: i64 = 60_000_000_000;
const QUARTER_HOUR: i64 = 900_000_000_000;

impl Report {
    /// Finds for each test of a report the process that ran the test and the test's place in time. If the command line
    /// of a process names the test, the test has this process of its own. Otherwise the test is placed at its time
    /// under the process that ran the suite. `written` is the time at which the report was written, in ns since 1970.
    pub(super) fn place(&self, path: &[u8], written: Option<i64>, lookup: &Lookup<'_>) -> Placed {
        let written = written.map(|time| lookup.time(time).saturating_add(COARSE_CLOCK));
        // A report file that was written outside of the recorded time is a copy, so the file's time says nothing about
        // when the runner wrote the report.
        let is_inside = |time: &i64| !lookup.is_outside(time.saturating_sub(COARSE_CLOCK), *time);
        let written = written.filter(is_inside);
        let zone = self.zone(written, lookup);
        let runners = runners(path, lookup);
        let [_, _, commands] = &runners;
        let command = commands.first().copied();
        let mut placer = Placer {
            of_command: window::life_of_command(lookup.analysis, command),
            writer: window::writer(lookup.analysis, &runners),
            lookup,
            written,
            facts: HashMap::new(),
            decided: HashSet::new(),
            others: Active::default(),
            work: Cell::new(MOST_PLACES),
            zone: zone.proven,
            ahead: zone.ahead,
            of_cases: None,
            of_suites: None,
            guesses: Vec::new(),
            runners,
            own: OwnProcesses::new(self, lookup),
            used: HashSet::new(),
            several: self.suites.len() > 1,
            early: 0,
            placed: Placed {
                notes: zone.note.into_iter().collect(),
                ..Placed::default()
            },
        };
        placer.find_stamps(&self.suites);
        let overlapping = placer.overlapping(&self.suites);
        let schedules = placer.schedules(&self.suites);
        let threads = placer.threads_of(&self.suites);
        let suites = self.suites.iter().zip(overlapping);
        for (((suite, overlaps), schedule), threads) in suites.zip(schedules).zip(threads) {
            placer.suite(suite, overlaps, schedule, threads);
        }
        let [_, tests, _] = &placer.runners;
        find_doubts(lookup.analysis, tests, &placer.decided, &mut placer.guesses);
        neighbours::separate(&mut placer.guesses);
        let mut guesses = std::mem::take(&mut placer.guesses);
        guesses
            .iter_mut()
            .for_each(|guess| guess.bound(lookup.analysis, command));
        if placer.work.get() == 0 {
            placer.placed.add_note(ImportNote::TooManySuites);
        }
        placer
            .placed
            .spans
            .extend(guesses.into_iter().map(|guess| guess.span));
        if let early @ 1.. = placer.early.unsigned_abs() {
            placer.placed.add_note(ImportNote::MaybeEarlier(early));
        }
        let doubtful = placer.placed.spans.iter();
        let is_test = |span: &&Imported| span.result.is_some() && span.doubt.is_some();
        let doubtful = doubtful.filter(is_test).count() as u64;
        if doubtful > 0 {
            placer.placed.add_note(ImportNote::NotProven(doubtful));
        }
        placer.placed
    }

    /// Finds the time zone to assume for a report whose times have no zone. The right zone is the one in which the last
    /// of these times is just before the report was written. If no zone or more than one zone fits, the result is the
    /// zone nearest to UTC in which the first of these times lies in the recording, or UTC.
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
        // Time zones are between 12 hours behind UTC and 14 hours ahead of it, in steps of a quarter of an hour.
        let quarters = (1..=56).flat_map(|ahead| [ahead, -ahead]);
        let quarters = std::iter::once(0).chain(quarters);
        let quarters = quarters.filter(|quarters| *quarters >= -48);
        let fitting: Vec<i64> = quarters.filter(is_inside).collect();
        // A report's time may be the beginning or the end of a test. If the time is a beginning, the time plus the
        // test's length is the end. So the latest of all times and all such sums is compared with the time at which the
        // report was written.
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
        let certain: Vec<i64> = fitting.iter().copied().filter(by_file).collect();
        let (nearest, proven) = match certain[..] {
            [certain] => (Some(certain), true),
            _ => (fitting.first().copied(), fitting.len() < 2),
        };
        match nearest {
            None | Some(0) => Zone {
                proven,
                ..Zone::UTC
            },
            Some(quarters) => Zone {
                ahead: quarters * QUARTER_HOUR,
                proven,
                note: Some(ImportNote::AssumedZone { quarters }),
            },
        }
    }

    /// The times of a report's suites and tests that have no time zone, each with the length of the suite or test in
    /// nanoseconds.
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

/// Three lists of processes that may have run the tests of a report, the likelier ones first: processes whose command
/// line names the report's file, test programs, and the recorded command. Each list is in the order of the processes'
/// starts.
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

/// The time zone that is assumed for the times of a report which have no zone.
struct Zone {
    /// The number of nanoseconds by which clocks in the assumed time zone are ahead of UTC.
    ahead: i64,
    /// Whether the time zone is proven: it is the only one that fits the time at which the report was written, or at
    /// most one zone puts the report's first time into the recording.
    proven: bool,
    note: Option<ImportNote>,
}

impl Zone {
    const UTC: Zone = Zone {
        ahead: 0,
        proven: true,
        note: None,
    };
}
