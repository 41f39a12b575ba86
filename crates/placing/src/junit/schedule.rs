//! Finds the process that ran the tests of a suite, and the bounds of the tests' places in time.
//!
//! The search goes from processes to places: `candidates` lists the processes that can have run the suite, `lives`
//! knows when they can have done so, `one_by_one` and `workers` make a schedule for such processes, with the places of
//! the tests from `bounds` and `spans`. This file chooses among the schedules of all suites of a report.

mod bounds;
mod candidates;
mod lives;
mod one_by_one;
mod spans;
mod workers;

use std::collections::{BTreeMap, HashMap};

use tr_analyze::model::ProcessIx;

use self::bounds::Groups;
use super::active::Active;
use super::choice::{choose, Choice, Schedule};
use super::placer::Placer;
use super::pool::Undecided;
use super::report::Suite;

impl Placer<'_> {
    /// Finds for each suite of a report the processes that ran it and the places of its tests; `None` for a suite for
    /// which no such schedule is found.
    pub fn schedules(&mut self, suites: &[Suite]) -> Vec<Option<Choice>> {
        let nested = if self.several {
            self.nested(suites)
        } else {
            BTreeMap::new()
        };
        let possible = suites.iter().enumerate().map(|(at, suite)| {
            if let Some(schedule) = nested.get(&at) {
                return vec![schedule.clone()];
            }
            if self.suite_process(suite).is_some() {
                return Vec::new();
            }
            let runner = self.around(suite).and_then(|around| self.runner(around));
            // The runner is used only if no other test program is possible. If several test programs fit, it is not
            // known which of them ran the suite.
            let known = runner.filter(|runner| runner.is_sure);
            let found = self.possible(suite, known.map(|runner| runner.process));
            found.unwrap_or_default()
        });
        let mut choices = choose(possible.collect());
        if self.several {
            self.narrow(suites, &mut choices, |at| nested.contains_key(&at));
        }
        choices
    }

    /// Computes the places of the tests again, for each suite with only one possible schedule. Times at which the
    /// suite's process certainly ran another suite are now excluded. Suites for which `is_nested` is true are skipped,
    /// because they were placed together; so are suites in which tests contain other tests.
    fn narrow(
        &mut self,
        suites: &[Suite],
        choices: &mut [Option<Choice>],
        is_nested: impl Fn(usize) -> bool,
    ) {
        let mut claimed: HashMap<ProcessIx, Vec<(i64, i64, usize)>> = HashMap::new();
        for (at, choice) in choices.iter().enumerate() {
            let sure = choice.iter().filter(|choice| choice.others.is_empty());
            for (process, from, to) in sure.flat_map(|choice| choice.schedule.claims()) {
                claimed.entry(process).or_default().push((from, to, at));
            }
        }
        for (at, (suite, choice)) in suites.iter().zip(choices).enumerate() {
            let choice = choice
                .as_mut()
                .filter(|choice| choice.others.is_empty() && !is_nested(at));
            let Some(choice) = choice.filter(|_| suite.around().iter().all(Option::is_none)) else {
                continue;
            };
            let processes = choice.schedule.runner.processes.clone();
            let claims = processes.iter().filter_map(|process| claimed.get(process));
            let claims: Vec<&(i64, i64, usize)> = claims.flatten().collect();
            if self.spend(claims.len()).is_none() {
                return;
            }
            let others = claims.into_iter().filter(|(_, _, of)| *of != at);
            self.others = Active::of(others.map(|(from, to, _)| (*from, *to)).collect());
            if self.others.is_empty() {
                continue;
            }
            let groups = self.groups(suite);
            if let Some(schedule) = self.scheduled(suite, &groups, &processes) {
                choice.schedule = schedule;
            }
            self.others = Active::default();
        }
    }

    /// Finds the possible schedules of a suite: the processes that can have run the suite, and the places of the tests.
    /// If `runner` is given, the runner and its descendants are tried. The descendants are needed because a runner with
    /// workers only waits for these workers, as a wrapper such as npx, make or a shell does. If `runner` is not given,
    /// the processes that probably ran the suite are tried, also with their descendants. If there are several
    /// schedules, the schedules of other suites can decide which one is right.
    pub fn possible(
        &mut self,
        suite: &Suite,
        runner: Option<ProcessIx>,
    ) -> Result<Vec<Schedule>, Undecided> {
        if !self.is_of_recording(suite) {
            return Ok(Vec::new());
        }
        let groups = self.groups(suite);
        let mut found = self.likely(suite, &groups, runner)?;
        let [named, _, commands] = &self.runners;
        if named.is_empty() && !found.iter().any(Schedule::is_measured) {
            // No command line names the report, and no schedule is proven. So another process may fit as well, and all
            // descendants of the recorded command are tried.
            let commands = commands.clone();
            let mut all = self.below(suite, &groups, &commands, None)?;
            for schedule in found {
                let processes = &schedule.runner.processes;
                if !all.iter().any(|found| found.runner.processes == *processes) {
                    all.push(schedule);
                }
            }
            found = all;
        }
        // If a schedule in a single thread is proven, schedules in processes with several threads are dropped: with
        // many threads, many tests fit by chance.
        let is_proven = |found: &Schedule| self.is_alone(found) && found.is_measured();
        if found.iter().any(is_proven) {
            found.retain(|found| self.is_alone(found));
        }
        Ok(found)
    }

    /// The schedules (processes and times for the tests) of a suite in the processes that most likely ran the suite: in
    /// the given runner with its descendants, or in the first list of likely runners that has a schedule.
    fn likely(
        &mut self,
        suite: &Suite,
        groups: &Groups,
        runner: Option<ProcessIx>,
    ) -> Result<Vec<Schedule>, Undecided> {
        if let Some(runner) = runner {
            let found = self.scheduled(suite, groups, &[runner]);
            // The runner may only have received messages about the tests from its workers, so its descendants are tried
            // as well.
            let below = self.below(suite, groups, &[runner], Some(runner))?;
            let all = found.into_iter().chain(below).collect();
            let (rest, _) = self.without_listeners(all, &[]);
            if !rest.is_empty() {
                return Ok(rest);
            }
        }
        let lists = std::mem::take(&mut self.runners);
        // If the known runner has no schedule, this runner may be one of several workers. So the recorded command,
        // which is the last of the lists, is tried with all of its descendants.
        let known = if runner.is_some() { lists.len() - 1 } else { 0 };
        let likely = lists.iter().skip(known);
        let mut found = likely.map(|likely| self.below(suite, groups, likely, None));
        let found = found.find(|found| found.as_ref().map_or(true, |found| !found.is_empty()));
        self.runners = lists;
        found.unwrap_or(Ok(Vec::new()))
    }

    /// Whether, in each process of the schedule, a single thread ran all of this process's tests.
    pub fn is_alone(&self, schedule: &Schedule) -> bool {
        let mut processes = schedule.runner.processes.iter();
        let has_one =
            |process: &ProcessIx| self.lookup.analysis.process(*process).threads.len() == 1;
        schedule.runner.is_one_thread || processes.all(has_one)
    }
}
