//! Places the tests of several suites as one sequence, if these suites are inside one outer suite of the report.
//! PHPUnit and node write such reports.
//!
//! An inner suite often has no time and no length, so by itself it could have run anywhere. But one process may have
//! run all inner suites in the order of the file. Two facts together prove this. All tests together have only one
//! schedule (one possible process with places for all tests). Several tests fit nearly exactly between the sleeps of
//! that process.

use std::collections::BTreeMap;

use super::choice::Schedule;
use super::placer::Placer;
use super::report::{Case, Suite};

/// Identifies a test of a report: the index of its suite, and the index of the test in the suite.
type Position = (usize, usize);

impl Placer<'_> {
    /// The schedules of the suites that are inside an outer suite of the report and ran one after the other, by the
    /// indexes of the suites.
    pub fn nested(&mut self, suites: &[Suite]) -> BTreeMap<usize, Schedule> {
        let mut trees: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, suite) in suites.iter().enumerate() {
            if !suite.cases.is_empty() {
                trees.entry(suite.outermost).or_default().push(at);
            }
        }
        trees.retain(|_, members| members.len() > 1);
        let mut schedules = BTreeMap::new();
        for (outermost, members) in trees {
            schedules.extend(
                self.in_sequence(suites, outermost, &members)
                    .unwrap_or_default(),
            );
        }
        schedules
    }

    /// The schedules (processes and times for the tests) of the suites inside one outermost suite; `None` if it is not
    /// proven that these suites ran in the order of the file.
    fn in_sequence(
        &mut self,
        suites: &[Suite],
        outermost: usize,
        members: &[usize],
    ) -> Option<Vec<(usize, Schedule)>> {
        let members: Vec<(usize, &Suite)> = members
            .iter()
            .filter_map(|at| Some((*at, suites.get(*at)?)))
            .collect();
        let mut tests: Vec<(Position, &Case)> = Vec::new();
        for (at, suite) in &members {
            let cases = suite.cases.iter().enumerate();
            tests.extend(cases.map(|(number, case)| ((*at, number), case)));
        }
        tests.sort_by_key(|(_, case)| case.number);
        let whole = Suite {
            attributes: suites.get(outermost)?.attributes.clone(),
            cases: tests.iter().map(|(_, case)| (*case).clone()).collect(),
            has_order: members.iter().all(|(_, suite)| suite.has_order),
            outermost,
        };
        if members
            .iter()
            .any(|(_, suite)| self.suite_process(suite).is_some())
        {
            return None;
        }
        let runner = self.around(&whole).and_then(|around| self.runner(around));
        let known = runner.filter(|runner| runner.is_sure);
        let found = self.possible(&whole, known.map(|runner| runner.process));
        let mut found = found.ok()?;
        let found = found.pop().filter(|_| found.is_empty())?;
        if !self.is_alone(&found) || !found.is_measured() {
            return None;
        }
        let mut places: BTreeMap<Position, usize> = BTreeMap::new();
        places.extend(
            tests
                .iter()
                .enumerate()
                .map(|(place, (of, _))| (*of, place)),
        );
        let mut decided = found.decided;
        let schedules = members.iter().map(|(at, suite)| {
            let places = (0..suite.cases.len()).map(|number| places.get(&(*at, number)).copied());
            let places: Vec<Option<usize>> = places.collect();
            let times = places
                .iter()
                .map(|place| found.times.get((*place)?).copied()?);
            let of_tests = places
                .iter()
                .map(|place| found.of_tests.get((*place)?).copied()?);
            let schedule = Schedule {
                runner: found.runner.clone(),
                times: times.collect(),
                of_tests: of_tests.collect(),
                decided: std::mem::take(&mut decided),
            };
            (*at, schedule)
        });
        Some(schedules.collect())
    }
}
