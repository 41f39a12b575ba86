//! Gives a test whose runner is not known a wide place: the time in which its suite ran.
//!
//! Such a place needs a proof that the tests ran during the recording, because the report may belong to another run.

use tr_analyze::model::{Analysis, Doubt, Imported, ImportedKind, ProcessIx};

use super::anywhere::Anywhere;
use super::even::{self, Bounds, Possible};
use super::placer::Placer;
use super::proof::Guess;
use super::report::{Case, Date, Suite, LEAST_ERROR};
use super::runner::MOST_TRIED;
use crate::lookup::{imported, ktime, signed};

/// The life of the recorded command, if all tests must have run during this life; otherwise `None`. All tests must have
/// run during this life in two cases: the command lived during the whole recording, or every other recorded process has
/// a known parent.
pub fn life_of_command(analysis: &Analysis, command: Option<ProcessIx>) -> Option<(i64, i64)> {
    let is_root = |ix: &ProcessIx| analysis.process(*ix).parent.is_none();
    let mut roots = analysis.process_ids().filter(is_root);
    let process = analysis.process(command?);
    let is_all = process.started_before && process.alive || roots.nth(1).is_none();
    is_all.then_some((signed(process.start), signed(process.end)))
}

/// The test program whose command line names the report. If several test programs name the report, it is the one that
/// is an ancestor of all the others. The tests of the report all ran during the life of this program, in the program
/// itself or in programs that it started. `runners` has three lists: processes that name the report, test programs, and
/// the recorded command.
pub fn writer(analysis: &Analysis, runners: &[Vec<ProcessIx>; 3]) -> Option<ProcessIx> {
    let [named, tests, _] = runners;
    let is_test = |ix: &&ProcessIx| tests.binary_search(ix).is_ok();
    let writers = || {
        named
            .iter()
            .copied()
            .filter(|ix| is_test(&ix))
            .take(MOST_TRIED)
    };
    let first = writers().min_by_key(|ix| (analysis.process(*ix).start, *ix))?;
    let is_below = |ix: ProcessIx| {
        analysis
            .lineage(ix)
            .take(MOST_TRIED)
            .any(|above| above == first)
    };
    writers().all(is_below).then_some(first)
}

impl Guess {
    /// Sets the error of the time of a test that can have run anywhere in its suite. The test keeps its figures, such
    /// as CPU time, only if the figures are the same at every possible place of the test.
    pub fn loosen(&mut self, case: &Case, placer: &Placer<'_>) {
        self.is_even = false;
        let process = self.span.process;
        let analysis = placer.lookup.analysis;
        let life = analysis.process(process);
        let (Some(place), Some(length)) = (self.anywhere, case.attributes.length) else {
            return;
        };
        let first = place.from.saturating_sub(place.error);
        let last = place.to.saturating_add(place.error);
        let window = (first.max(signed(life.start)), last.min(signed(life.end)));
        let shown = (signed(self.span.from), signed(self.span.to));
        let digit = case.attributes.digit.max(LEAST_ERROR);
        let bounds = Bounds::anywhere(window.0, window.1, length, digit);
        let is_even = placer.spend(even::COST).is_some()
            && case.attributes.between() == 0
            && even::is_even(analysis, &[Possible { process, bounds }], shown);
        if is_even {
            self.is_even = true;
            let early = shown.0.saturating_sub(window.0);
            self.error = early.max(window.1.saturating_sub(shown.1));
        }
    }
}

impl Placer<'_> {
    /// For each test of a suite, the place in time that the test gets if it can have run anywhere within the suite.
    /// `None` for all tests if it is not proven that the suite ran in the recording. A time of the day in the report
    /// proves this. Without such a time, two facts together prove it: the report was written during the recording, and
    /// either recorded processes have a schedule of the tests or the command line of a test program names the report.
    pub fn anywhere(&self, suite: &Suite, has_schedule: bool) -> Vec<Option<Anywhere>> {
        let window = self.whole(suite, has_schedule);
        let places = suite.cases.iter().map(|case| {
            let window = window?;
            let own = self.of_stamp(case);
            let own = own.filter(|_| !case.is_unmeasured());
            let (first, last) = own.unwrap_or(window);
            Anywhere::new(case, first.max(window.0), last.min(window.1))
        });
        places.collect()
    }

    /// The span of time in which a test ran, if the report has a time for the test and it is known whether this is the
    /// beginning or the end.
    fn of_stamp(&self, case: &Case) -> Option<(i64, i64)> {
        let is_whole = case.attributes.length.is_some() && !case.attributes.is_sum;
        let times = self
            .of_case(case)
            .filter(|times| is_whole && times.doubt.is_none())?;
        let error = self.stamp_error(case.attributes.digit);
        let last = times.to.saturating_add(times.digit).saturating_add(error);
        Some((times.from.saturating_sub(error), last))
    }

    /// The span of time in which all tests of a suite ran, as a part of the life of the test program whose command line
    /// names the report, or else of the recorded command. `None` if neither life is known, or if it is not proven that
    /// the suite ran in the recording.
    fn whole(&self, suite: &Suite, has_schedule: bool) -> Option<(i64, i64)> {
        let cases = suite.cases.iter().map(|case| case.attributes.at);
        let dates: Vec<Date> = cases.chain([suite.attributes.at]).flatten().collect();
        let has_zone = self.zone || dates.iter().all(|date| date.ahead.is_some());
        // A report proves nothing if all its lengths are zero, because the runner then did not measure the tests. A
        // report without times of the day needs more evidence that it belongs to this recording.
        let is_known = has_schedule || self.has_writer(suite);
        let is_proven = !dates.is_empty() || is_known && self.written.is_some();
        if !is_proven || !has_zone || suite.sum() == 0 || !self.is_of_recording(suite) {
            return None;
        }
        let life = self.writer.map(|ix| self.life(ix)).or(self.of_command)?;
        // All tests ran within `life`. If a time in the report lies outside of `life`, the report belongs to another
        // run.
        let is_outside = dates.iter().any(|date| {
            let (time, error) = (self.time(*date), self.stamp_error(date.digit));
            time.saturating_add(error) < life.0 || life.1 < time.saturating_sub(error)
        });
        if is_outside {
            return None;
        }
        let window = self.narrowed(suite, life.0, life.1);
        (window.0 <= window.1).then_some(window)
    }

    /// The start and the end of a process, in nanoseconds of the recording's time.
    fn life(&self, process: ProcessIx) -> (i64, i64) {
        let process = self.lookup.analysis.process(process);
        (signed(process.start), signed(process.end))
    }

    /// Whether some test program whose command line names the report lived at least as long as the longest test of the
    /// suite. False if the length of no test is known.
    fn has_writer(&self, suite: &Suite) -> bool {
        let [named, tests, _] = &self.runners;
        let lengths = suite.cases.iter().map(|case| case.attributes.length);
        let longest = lengths.flatten().max().unwrap_or(i64::MAX);
        named.iter().any(|ix| {
            let (start, end) = self.life(*ix);
            tests.binary_search(ix).is_ok() && longest <= end.saturating_sub(start)
        })
    }

    /// Places a test without a known runner in the test program whose command line names the report, or, if there is
    /// none, in the recorded command. Returns whether the test has such a place.
    pub fn add_anywhere(&mut self, case: &Case, place: Option<Anywhere>) -> bool {
        let [_, _, commands] = &self.runners;
        let process = self.writer.or(commands.first().copied());
        let (Some(place), Some(process)) = (place, process) else {
            return false;
        };
        let name = case.attributes.title();
        let at = (process, (ktime(place.from), ktime(place.to)));
        let span = Imported {
            brief: case.attributes.brief(&name),
            file: case.attributes.test_file(),
            result: Some(case.result),
            error: place.error.unsigned_abs(),
            doubt: Some(Doubt::Process(place.error.unsigned_abs())),
            ..imported(ImportedKind::Test, name.as_bytes(), at)
        };
        self.placed.add_test(case.number, span);
        true
    }
}
