//! Finds out whether the times in a report are the beginnings or the ends of its suites and tests.

use super::placer::Placer;
use super::pool::Undecided;
use super::proof::{Contradictions, Stamp, Stamped};
use super::report::{Attributes, Suite};
use crate::lookup::signed;

impl Placer<'_> {
    /// Finds out whether the times that a report gives for suites and tests are their beginnings or their ends.
    pub(super) fn find_stamps(&mut self, suites: &[Suite]) {
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

    /// Decides whether the report's times are beginnings or ends. For each suite, a schedule is searched with each of
    /// the two meanings. If only one of the meanings leaves suites without a schedule, the result is the other meaning;
    /// otherwise the result is `None`.
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
                let Some(runner) = runner else {
                    return Ok(false);
                };
                let known = runner.is_sure.then_some(runner.process);
                let schedules = self.possible(suite, known)?;
                Ok::<bool, Undecided>(!schedules.is_empty())
            });
            // If one of the two searches for a suite was not decided, the suite does not show whether the times are
            // beginnings or ends.
            if let [Ok(as_begin), Ok(as_end)] = fits {
                found.by_fit([as_begin, as_end]);
            }
        }
        set(self, None);
        found.stamp()
    }
}
