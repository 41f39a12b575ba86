//! Finds the spans of time in which the tests of a suite can have run in given processes.

use std::ops::RangeInclusive;
use std::rc::Rc;

use tr_analyze::model::ProcessIx;

use crate::junit::active::Active;
use crate::junit::placer::Placer;
use crate::junit::proof::Stamp;
use crate::junit::report::Suite;
use crate::junit::runner::RunnerFacts;
use crate::lookup::signed;

impl Placer<'_> {
    /// The facts about a process that decide which tests it can have run, such as when it was on a CPU; `None` without
    /// a timeline. The facts are kept for the next call.
    pub fn facts(&mut self, process: ProcessIx) -> Option<Rc<RunnerFacts>> {
        let analysis = self.lookup.analysis;
        let new = || RunnerFacts::new(analysis, process).map(Rc::new);
        self.facts.entry(process).or_insert_with(new).clone()
    }

    /// The stretches of time in which the given processes, which lived one after the other, can have run the tests of a
    /// suite.
    pub(super) fn active(&self, all: &[(i64, &Active)]) -> Active {
        let active = Active::chain(all);
        if self.others.is_empty() {
            active
        } else {
            active.without(&self.others)
        }
    }

    /// The span of time in which the tests of a suite can have run in the given processes, which lived one after the
    /// other.
    pub(super) fn window(
        &self,
        suite: &Suite,
        processes: &[ProcessIx],
    ) -> Option<RangeInclusive<i64>> {
        let life = |process: &ProcessIx| self.lookup.analysis.process(*process);
        let from = signed(life(processes.first()?).start);
        let to = signed(life(processes.last()?).end);
        let (from, to) = self.narrowed(suite, from, to);
        Some(from..=to)
    }

    /// Narrows the span of time (`from` to `to`, in nanoseconds) in which the tests of a suite can have run. The tests
    /// ended before the report was written, and the suite's own time in the report limits them, too.
    pub fn narrowed(&self, suite: &Suite, mut from: i64, to: i64) -> (i64, i64) {
        let mut to = to.min(self.written.unwrap_or(to));
        let Some(times) = self.of_suite(suite).filter(|times| times.doubt.is_none()) else {
            return (from, to);
        };
        let error = self.stamp_error(times.digit);
        match self.of_suites {
            // The suite's time is the latest possible end. The suite may have ended earlier, because some reports are
            // written later than the last test.
            Some(Stamp::End) => to = to.min(times.to.saturating_add(error)),
            // The suite's time limits only when its tests began, not when they ended. A runner may count the suite's
            // length from a later moment, such as the start of Go's test program.
            _ => from = from.max(times.from.saturating_sub(self.stamp_error(0))),
        }
        (from, to)
    }

    /// Whether all times of the day that the report gives for a suite lie in the recording. If not, the report belongs
    /// to another run.
    pub fn is_of_recording(&self, suite: &Suite) -> bool {
        let cases = suite.cases.iter().map(|case| case.attributes.at);
        let mut dates = cases.chain([suite.attributes.at]).flatten();
        dates.all(|date| {
            let (time, error) = (self.time(date), self.stamp_error(date.digit));
            let (from, to) = (time.saturating_sub(error), time.saturating_add(error));
            !self.lookup.is_outside(from, to)
        })
    }
}
