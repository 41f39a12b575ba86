//! Bounds the place of a test whose runner is not known: the test ran while its suite did.
//!
//! Such a place needs a proof that the tests ran in the recording. A report can be of another run.

use tr_analyze::model::{Analysis, Doubt, Imported, ImportedKind, ProcessIx};

use super::placer::Placer;
use super::report::{Case, Suite};
use super::schedule::LEAST_ERROR;
use crate::imports::lookup::{imported, ktime, signed};

/// The place in time of a test that can have run anywhere within its suite, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anywhere {
    /// The beginning of the test, if it ran in the middle of its suite.
    pub from: i64,
    pub to: i64,
    /// The largest error of the beginning or the end of the test.
    pub error: i64,
}

impl Anywhere {
    /// The place of a test that ran somewhere between `first` and `last`; `None` if it is longer than that.
    fn new(case: &Case, (first, last): (i64, i64)) -> Option<Anywhere> {
        let length = case.attributes.length?;
        let digit = case.attributes.digit.max(LEAST_ERROR);
        let left = last.saturating_sub(first).saturating_sub(length);
        if left < -digit {
            return None;
        }
        let left = left.max(0);
        let from = first.saturating_add(left / 2);
        Some(Anywhere {
            from,
            to: from.saturating_add(length),
            error: (left - left / 2).saturating_add(digit),
        })
    }
}

/// The life of the recorded command; `None` if the recording has other processes that the command did not start, and it
/// did not live all the time.
pub fn life_of_command(analysis: &Analysis, command: Option<ProcessIx>) -> Option<(i64, i64)> {
    let is_root = |ix: &ProcessIx| analysis.process(*ix).parent.is_none();
    let mut roots = analysis.process_ids().filter(is_root);
    let process = analysis.process(command?);
    let is_all = process.started_before && process.alive || roots.nth(1).is_none();
    is_all.then_some((signed(process.start), signed(process.end)))
}

impl Placer<'_> {
    /// For each test of a suite, its place if it can have run anywhere within the suite; `None` for all tests if no time
    /// of the day proves that the suite ran in the recording. Without one, it did if its report was written in the
    /// recording and recorded processes have a schedule of its tests.
    pub fn anywhere(&self, suite: &Suite, has_schedule: bool) -> Vec<Option<Anywhere>> {
        let window = self.whole(suite, has_schedule);
        let places = suite.cases.iter().map(|case| {
            let window = window?;
            let own = self.of_stamp(case);
            let own = own.filter(|_| !case.is_unmeasured());
            let (first, last) = own.unwrap_or(window);
            Anywhere::new(case, (first.max(window.0), last.min(window.1)))
        });
        places.collect()
    }

    /// The span of time in which a test ran whose own time is that of its beginning, or that of its end.
    fn of_stamp(&self, case: &Case) -> Option<(i64, i64)> {
        let is_whole = case.attributes.length.is_some() && !case.attributes.is_sum;
        let times = self
            .of_case(case)
            .filter(|times| is_whole && times.doubt.is_none())?;
        let error = self.stamp_error(case.attributes.digit);
        let last = times.to.saturating_add(times.digit).saturating_add(error);
        Some((times.from.saturating_sub(error), last))
    }

    /// The span of time in which all tests of a suite ran, whichever processes below the recorded command ran them.
    fn whole(&self, suite: &Suite, has_schedule: bool) -> Option<(i64, i64)> {
        let cases = suite.cases.iter().map(|case| case.attributes.at);
        let mut dates = cases.chain([suite.attributes.at]).flatten().peekable();
        let has_date = dates.peek().is_some();
        let has_zone = self.zone || dates.all(|date| date.ahead.is_some());
        // Lengths that are all zero were not measured.
        let is_proven = has_date || has_schedule && self.written.is_some();
        if !is_proven || !has_zone || suite.sum() == 0 || !self.is_of_recording(suite) {
            return None;
        }
        let life = self.of_command?;
        let window = self.narrowed(suite, life);
        (window.0 <= window.1).then_some(window)
    }

    /// Places a test without a known runner in the recorded command. Returns whether it has such a place.
    pub fn add_anywhere(&mut self, case: &Case, place: Option<Anywhere>) -> bool {
        let [_, _, commands] = &self.runners;
        let (Some(place), Some(command)) = (place, commands.first()) else {
            return false;
        };
        let name = case.attributes.title();
        let at = (*command, (ktime(place.from), ktime(place.to)));
        self.placed.spans.push(Imported {
            result: Some(case.result),
            error: place.error.unsigned_abs(),
            doubt: Some(Doubt::Process(place.error.unsigned_abs())),
            ..imported(ImportedKind::Test, name.as_bytes(), at)
        });
        true
    }
}
