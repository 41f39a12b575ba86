//! Places the tests of suites that are inside one suite of the report, as PHPUnit and node write them, as one sequence.
//!
//! Such a suite often has no time and no length of its own, so that each suite alone could have run anywhere. One process
//! ran them in the order of the file, if all of them together have only one schedule, and several tests of it fit nearly
//! exactly between the sleeps of that process.

use std::collections::BTreeMap;

use super::choice::Schedule;
use super::placer::Placer;
use super::report::{Case, Suite};

/// A test of a report: the index of its suite, and its own index there.
type Position = (usize, usize);

impl Placer<'_> {
    /// The schedules of the suites that ran one after the other because they are inside one suite of the report, by the
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

    /// The schedules of suites of one outermost suite if they ran in the order of the file; `None` if that is not
    /// proven.
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
