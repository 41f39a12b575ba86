//! Finds the process that ran the tests of a suite, and the bounds of the tests' places in time.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::RangeInclusive;
use std::rc::Rc;

use tr_analyze::model::ProcessIx;

use super::active::Active;
use super::blocks::{joined, Block};
use super::choice::{choose, Choice, Schedule, Scheduled};
use super::even::Bounds;
use super::placer::{Placer, Times};
use super::pool::{self, Share, Undecided, Worker};
use super::proof::Stamp;
use super::report::{Case, Suite, LEAST_ERROR};
use super::runner::{RunnerFacts, TRIED};
use super::serial::{self, Place, Test};
use crate::imports::lookup::signed;

/// The largest number of rounds in which the bounds of a suite and of its tests narrow each other.
const ROUNDS: usize = 8;

/// The number of words at the start of a command line that name the program. A decision: they are an interpreter and
/// its script.
const PROGRAM: usize = 2;

/// The name that pytest gives to its suite. The lengths in its report do not show which worker of pytest-xdist ran a
/// test. The length of a test includes its set-up, its call and its tear-down, but not the time between these. In that
/// time, the workers send reports, which takes up to 26 ms on a busy machine.
const PYTEST: &str = "pytest";

/// The number of possible schedules of one suite at which the search for more ends. A bound of the work: a suite with
/// so many possible schedules gets none of them.
const POSSIBLE: usize = 16;

/// The largest number of worker processes among which a suite's tests are distributed. A guess: with more workers, no
/// distribution of the tests would be the only possible one.
const WORKERS: usize = 16;

/// For each test that contains other tests of the suite, the tests inside it. The key `None` has the tests that no
/// other test contains. Tests are given by their indexes in the suite's list of tests.
type Groups = BTreeMap<Option<usize>, Vec<usize>>;

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
            // The runner is used only if it is the only possible one. If several test programs fit, it is not known
            // which of them ran the suite.
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

    /// Computes the places of each suite's tests again. Times at which the suite's process certainly ran another suite
    /// are now excluded. Suites for which `is_nested` is true are skipped, because they were placed together.
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

    /// Finds the possible schedules of a suite: the processes that can have run it, and the places of its tests. If
    /// `runner` is given, the runner and its descendants are tried. The descendants are needed because a runner with
    /// workers only waits for them, as do wrappers such as npx, make or a shell. Otherwise the processes that probably
    /// ran the suite are tried, also with their descendants. If there are several schedules, the schedules of other
    /// suites can decide which one is right.
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
            // processes of the recorded command are tried.
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
        // If one schedule in a single thread is proven, schedules in processes with several threads are dropped: with
        // many threads, many tests fit by chance.
        let is_proven = |found: &Schedule| self.is_alone(found) && found.is_measured();
        if found.iter().any(is_proven) {
            found.retain(|found| self.is_alone(found));
        }
        Ok(found)
    }

    /// The schedules of a suite in the processes that most likely ran it: the given runner with its descendants, or the
    /// processes of the first list of likely runners in which a schedule is found.
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
        // If the known runner has no schedule, it may be one of several workers, so all processes of the recorded
        // command are tried.
        let known = if runner.is_some() { lists.len() - 1 } else { 0 };
        let likely = lists.iter().skip(known);
        let mut found = likely.map(|likely| self.below(suite, groups, likely, None));
        let found = found.find(|found| found.as_ref().map_or(true, |found| !found.is_empty()));
        self.runners = lists;
        found.unwrap_or(Ok(Vec::new()))
    }

    /// Whether a single thread ran all tests of a schedule.
    pub fn is_alone(&self, schedule: &Schedule) -> bool {
        let mut processes = schedule.runner.processes.iter();
        let has_one =
            |process: &ProcessIx| self.lookup.analysis.process(*process).threads.len() == 1;
        schedule.runner.is_one_thread || processes.all(has_one)
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

    /// The schedules of a suite in the processes `likely` and their descendants. A group of workers may have run the
    /// suite. If it cannot be decided whether the tests fit these workers, the result is an error, because then no
    /// schedule is proven.
    fn below(
        &mut self,
        suite: &Suite,
        groups: &Groups,
        likely: &[ProcessIx],
        but: Option<ProcessIx>,
    ) -> Result<Vec<Schedule>, Undecided> {
        let analysis = self.lookup.analysis;
        let (mut all, mut seen) = (Vec::new(), HashSet::new());
        let mut open: Vec<ProcessIx> = likely.to_vec();
        while let Some(process) = open.pop().filter(|_| all.len() < TRIED) {
            if seen.insert(process) {
                all.push(process);
                open.extend(&analysis.process(process).children);
            }
        }
        let length = |process: &ProcessIx| {
            let process = analysis.process(*process);
            signed(process.end).saturating_sub(signed(process.start))
        };
        self.spend(all.len()).ok_or(Undecided)?;
        let siblings = self.siblings(&all, PROGRAM);
        let sum = suite.sum();
        let has_room =
            |runner: &Vec<ProcessIx>| runner.iter().map(length).fold(0, i64::saturating_add) >= sum;
        let (mut runners, mut pools): (Vec<_>, Vec<_>) = siblings
            .into_iter()
            .filter(has_room)
            .partition(|siblings| self.is_chain(siblings));
        let others = all.iter().filter(|process| Some(**process) != but);
        runners.extend(others.map(|process| vec![*process]).filter(has_room));
        let found = runners
            .into_iter()
            .filter_map(|runner| self.scheduled(suite, groups, &runner));
        let mut found: Vec<Schedule> = found.take(POSSIBLE).collect();
        if found.len() == POSSIBLE {
            return Err(Undecided);
        }
        // If several processes lived one after the other, many tests fit into them by chance. Such a schedule is in
        // doubt unless the lengths of the tests prove it.
        for schedule in &mut found {
            if schedule.runner.processes.len() > 1 && !schedule.is_measured() {
                schedule.doubt();
            }
        }
        let (found, listeners) = self.without_listeners(found, &pools);
        let mut found = self.without_chains(found);
        for pool in &mut pools {
            pool.retain(|process| !listeners.contains(process));
        }
        pools.retain(|pool| pool.len() > 1);
        if self.several {
            return Ok(found);
        }
        if found.is_empty() && pools.is_empty() {
            // The workers may run different scripts with one interpreter, so only the first word of the command line is
            // compared.
            pools = self.siblings(&all, 1);
            pools.retain(has_room);
        }
        for pool in pools {
            let Some(of_pool) = self.distributed(suite, groups, &pool)? else {
                continue;
            };
            // Schedules in single workers of the pool are included in the schedule of the pool, so they are removed.
            let is_worker = |process: &ProcessIx| pool.contains(process);
            found.retain(|found| !found.runner.processes.iter().all(is_worker));
            found.push(of_pool);
        }
        Ok(found)
    }

    /// Leaves out some of the schedules if both chains and single processes of these chains have schedules. A chain is
    /// a series of processes that lived one after the other. If the report has several suites, the chains are left out,
    /// because each suite then probably ran in one process. If it has one suite, the single processes are left out,
    /// because several workers can have run its tests.
    fn without_chains(&self, mut found: Vec<Schedule>) -> Vec<Schedule> {
        let of = |is_chain: bool| {
            let found = found.iter().map(|found| &found.runner.processes);
            let found = found.filter(move |processes| (processes.len() > 1) == is_chain);
            found.flatten().copied().collect::<HashSet<ProcessIx>>()
        };
        let (single, chained) = (of(false), of(true));
        found.retain(|found| {
            let is_chain = found.runner.processes.len() > 1;
            let other = if is_chain { &single } else { &chained };
            let mut processes = found.runner.processes.iter();
            let has_other = processes.any(|process| other.contains(process));
            !has_other || is_chain != self.several
        });
        found
    }

    /// Whether the given processes lived one after the other: each began after the end of the one before it.
    fn is_chain(&self, processes: &[ProcessIx]) -> bool {
        let life = |process: &ProcessIx| {
            let process = self.lookup.analysis.process(*process);
            (process.start, process.end)
        };
        let follows = |pair: &[ProcessIx]| match pair {
            [a, b] => life(a).1 < life(b).0,
            _ => false,
        };
        processes.windows(2).all(follows)
    }

    /// For each of the given parents, groups of at least two children whose command lines begin with the same `words`
    /// words. Such children run one program.
    fn siblings(&self, parents: &[ProcessIx], words: usize) -> Vec<Vec<ProcessIx>> {
        let analysis = self.lookup.analysis;
        let mut siblings = Vec::new();
        for parent in parents {
            let mut by_program: BTreeMap<Vec<&[u8]>, Vec<ProcessIx>> = BTreeMap::new();
            for child in &analysis.process(*parent).children {
                let process = analysis.process(*child);
                if !process.execs.is_empty() {
                    let program: Vec<&[u8]> = process.argv.args().take(words).collect();
                    by_program.entry(program).or_default().push(*child);
                }
            }
            let several = by_program.into_values();
            siblings.extend(several.filter(|children| (2..=TRIED).contains(&children.len())));
        }
        siblings
    }

    /// Places the tests of a suite in several worker processes that ran the tests at the same time. `None` if the tests
    /// cannot be distributed to these workers. A worker is left out if it lived for less time than the shortest test.
    fn distributed(
        &mut self,
        suite: &Suite,
        groups: &Groups,
        processes: &[ProcessIx],
    ) -> Result<Option<Schedule>, Undecided> {
        let group = groups.get(&None).filter(|_| groups.len() == 1);
        let group = group.ok_or(Undecided)?;
        if !suite.has_order || suite.is_by_result() || suite.attributes.name == PYTEST {
            return Err(Undecided);
        }
        let cases: Vec<&Case> = group.iter().filter_map(|at| suite.cases.get(*at)).collect();
        let tests: Vec<Test> = cases.iter().map(|case| self.test(case)).collect();
        let shortest = tests
            .iter()
            .map(|test| test.length.saturating_sub(test.error))
            .min();
        let shortest = shortest.ok_or(Undecided)?;
        let mut workers: Vec<(ProcessIx, RangeInclusive<i64>, Rc<RunnerFacts>)> = Vec::new();
        for process in processes {
            let around = self.window(suite, &[*process]).ok_or(Undecided)?;
            if around.end().saturating_sub(*around.start()) >= shortest {
                let facts = self.facts(*process).ok_or(Undecided)?;
                workers.push((*process, around, facts));
            }
        }
        if workers.len() > WORKERS {
            return Err(Undecided);
        }
        let shares = |active: &dyn Fn(&RunnerFacts) -> Option<&Active>| {
            let all = workers.iter().map(|(_, around, facts)| {
                Some(Worker {
                    around: around.clone(),
                    active: active(facts)?,
                })
            });
            let Some(all) = all.collect::<Option<Vec<Worker<'_>>>>() else {
                return Ok(None);
            };
            let places = tests.len().saturating_mul(all.len());
            self.spend(places).ok_or(Undecided)?;
            pool::shares(&tests, &all)
        };
        // In all processes of one program, the n-th thread does the same work. So for each n, it is tried whether the
        // n-th threads ran the tests.
        let number = workers
            .iter()
            .map(|(_, _, facts)| facts.threads.len())
            .min();
        let threads = number.unwrap_or(0);
        let mut alone = Vec::new();
        let mut is_open = false;
        for thread in 0..threads {
            match shares(&|facts| facts.threads.get(thread)) {
                Ok(found) => alone.extend(found),
                Err(Undecided) => is_open = true,
            }
        }
        let only = alone.pop().filter(|_| alone.is_empty());
        let only = only.filter(|only| !is_open || pool::are_measured(&tests, only));
        let is_one_thread = only.is_some();
        let only = match only {
            Some(only) => Some(only),
            None => shares(&|facts| Some(&facts.any))?,
        };
        let Some(shares) = only else {
            return Ok(None);
        };
        if !pool::are_measured(&tests, &shares) {
            return Err(Undecided);
        }
        let mut schedule = Schedule {
            runner: Scheduled {
                processes: processes.to_vec(),
                is_one_thread,
                threads,
            },
            times: vec![None; suite.cases.len()],
            of_tests: vec![None; suite.cases.len()],
            decided: Vec::new(),
        };
        for (number, (process, _, facts)) in workers.iter().enumerate() {
            for is_sure in [true, false] {
                let own = |share: &Share| share.worker == number && share.is_sure == is_sure;
                let mut places = vec![None; suite.cases.len()];
                for (at, share) in group.iter().zip(&shares).filter(|(_, share)| own(share)) {
                    if let Some(slot) = places.get_mut(*at) {
                        *slot = Some(share.place.clone());
                    }
                }
                let runner = Scheduled {
                    processes: vec![*process],
                    is_one_thread,
                    threads,
                };
                let found = self.spans(suite, runner, std::slice::from_ref(facts), places);
                schedule.add(found, is_sure);
            }
        }
        Ok(Some(schedule))
    }

    /// Places the tests of a suite in the given processes, which ran them one after the other. The schedule has the
    /// earliest and the latest beginning and end of each test. `None` if no schedule agrees with everything that is
    /// known (see [`serial`]). A test's time of day is used only if it is known to be the beginning or the end, and in
    /// which time zone. Otherwise, the test can be anywhere in the lives of the processes.
    fn scheduled(
        &mut self,
        suite: &Suite,
        groups: &Groups,
        processes: &[ProcessIx],
    ) -> Option<Schedule> {
        let facts = processes.iter().map(|process| self.facts(*process));
        let facts: Vec<Rc<RunnerFacts>> = facts.collect::<Option<_>>()?;
        // A shell counts only if it is known as a test runner: other shells are wrappers that only wait for the real
        // runner.
        let [named, tests, _] = &self.runners;
        let is_wrapper = |(process, facts): (&ProcessIx, &Rc<RunnerFacts>)| {
            facts.is_shell() && ![named, tests].iter().any(|known| known.contains(process))
        };
        if processes.iter().zip(&facts).any(is_wrapper) {
            return None;
        }
        let around = self.window(suite, processes)?;
        let starts = processes
            .iter()
            .map(|process| signed(self.lookup.analysis.process(*process).start));
        let starts: Vec<i64> = starts.collect();
        // In all processes of one program, the n-th thread does the same work. So for each n, it is tried whether the
        // n-th threads ran the tests.
        let number = facts.iter().map(|facts| facts.threads.len()).min();
        let threads = (0..number.unwrap_or(0)).filter_map(|thread| {
            let active = starts.iter().zip(&facts);
            let active = active.map(|(start, facts)| Some((*start, facts.threads.get(thread)?)));
            let active: Vec<(i64, &Active)> = active.collect::<Option<_>>()?;
            self.bounds(suite, groups, &around, &self.active(&active))
        });
        let mut alone = threads.fuse();
        let only = alone.next().filter(|_| alone.next().is_none());
        let runner = Scheduled {
            processes: processes.to_vec(),
            is_one_thread: only.is_some(),
            threads: number.unwrap_or(0),
        };
        let places = match only {
            Some(places) => places,
            None => {
                let active = starts.iter().zip(&facts);
                let count = suite.cases.len();
                let active = active.map(|(start, facts)| (*start, facts.active(count)));
                let active: Vec<(i64, &Active)> = active.collect();
                self.bounds(suite, groups, &around, &self.active(&active))?
            }
        };
        Some(self.spans(suite, runner, &facts, places))
    }

    /// The stretches of time in which the given processes, which lived one after the other, can have run the tests of a
    /// suite.
    fn active(&self, all: &[(i64, &Active)]) -> Active {
        let active = Active::chain(all);
        if self.others.is_empty() {
            active
        } else {
            active.without(&self.others)
        }
    }

    /// The facts about a process that decide which tests it can have run, such as when it was on a CPU; `None` without
    /// a timeline. The facts are kept for the next call.
    pub fn facts(&mut self, process: ProcessIx) -> Option<Rc<RunnerFacts>> {
        let analysis = self.lookup.analysis;
        let new = || RunnerFacts::new(analysis, process).map(Rc::new);
        self.facts.entry(process).or_insert_with(new).clone()
    }

    /// The span of time in which the tests of a suite can have run in the given processes, which lived one after the
    /// other.
    fn window(&self, suite: &Suite, processes: &[ProcessIx]) -> Option<RangeInclusive<i64>> {
        let life = |process: &ProcessIx| self.lookup.analysis.process(*process);
        let from = signed(life(processes.first()?).start);
        let to = signed(life(processes.last()?).end);
        let (from, to) = self.narrowed(suite, from, to);
        Some(from..=to)
    }

    /// Narrows the span of time in which the tests of a suite can have run. The tests ended before the report was
    /// written, and the suite's own time in the report limits them, too.
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

    /// The tests of a suite that have to be placed, sorted by their times and grouped by the test that contains them.
    /// If some tests have times, only these are placed.
    fn groups(&self, suite: &Suite) -> Groups {
        let has_stamps = suite.cases.iter().any(|case| case.attributes.at.is_some());
        let mut groups = Groups::new();
        for (at, (case, outer)) in suite.cases.iter().zip(suite.around()).enumerate() {
            if case.attributes.at.is_some() || !has_stamps {
                groups.entry(outer).or_default().push(at);
            }
        }
        let stamp = |at: &usize| suite.cases.get(*at).and_then(|case| case.attributes.at);
        for group in groups.values_mut() {
            group.sort_by_key(|at| stamp(at).map(|date| self.time(date)));
        }
        groups
    }

    /// The bounds of the place in time of each test of a suite; `None` if the tests do not fit into the time `around`.
    /// Tests that contain other tests are placed first.
    fn bounds(
        &self,
        suite: &Suite,
        groups: &Groups,
        around: &RangeInclusive<i64>,
        active: &Active,
    ) -> Option<Vec<Option<Place>>> {
        let mut places: Vec<Option<Place>> = vec![None; suite.cases.len()];
        let mut open = vec![(None, around.clone())];
        while let Some((outer, around)) = open.pop() {
            let group = groups.get(&outer).map_or(&[][..], Vec::as_slice);
            let found = match outer {
                None => self.bounds_in_suite(suite, group, around, active)?,
                Some(_) => self.bounds_of(suite, group, &around, active)?,
            };
            for (at, place) in group.iter().copied().zip(found) {
                open.push((Some(at), *place.begin.start()..=*place.end.end()));
                if let Some(slot) = places.get_mut(at) {
                    *slot = Some(place);
                }
            }
        }
        Some(places)
    }

    /// The bounds of the places in time of those tests of a suite that no other test contains. If the suite's own
    /// length was measured, the tests have to fit into it.
    fn bounds_in_suite(
        &self,
        suite: &Suite,
        group: &[usize],
        mut around: RangeInclusive<i64>,
        active: &Active,
    ) -> Option<Vec<Place>> {
        let mut places = self.bounds_of(suite, group, &around, active)?;
        let length = suite.attributes.length.filter(|_| suite.is_measured());
        let Some(length) = length else {
            return Some(places);
        };
        let length = length.saturating_add(suite.attributes.digit.max(LEAST_ERROR));
        for _ in 0..ROUNDS {
            let first = places.iter().map(|place| *place.begin.end()).min();
            let last = places.iter().map(|place| *place.end.start()).max();
            let (Some(first), Some(last)) = (first, last) else {
                break;
            };
            let from = last.saturating_sub(length).max(*around.start());
            let to = first.saturating_add(length).min(*around.end());
            if (from..=to) == around {
                break;
            }
            around = from..=to;
            places = self.bounds_of(suite, group, &around, active)?;
        }
        Some(places)
    }

    /// The bounds of the places of tests that ran in the order of their times, or in the order of the report if they
    /// have no times. If the report may be sorted by result, it does not show the order between failed tests and other
    /// tests.
    fn bounds_of(
        &self,
        suite: &Suite,
        group: &[usize],
        around: &RangeInclusive<i64>,
        active: &Active,
    ) -> Option<Vec<Place>> {
        self.spend(group.len().max(1))?;
        let cases: Vec<&Case> = group.iter().filter_map(|at| suite.cases.get(*at)).collect();
        let tests: Vec<Test> = cases.iter().map(|case| self.test(case)).collect();
        if suite.has_order && !suite.is_by_result() {
            return serial::places(&tests, around, active);
        }
        self.mixed(suite.has_order, &cases, &tests, around, active)
    }

    /// For each test, the earliest and the latest times at which it can have begun and ended, for a report in which the
    /// tests may be in another order than the one in which they ran. If the order means nothing (`has_order` is false),
    /// the tests can have run in any order. Otherwise the report may be sorted by result: then the failed tests ran in
    /// their order, and so did the others. Tests with equal times or without times get bounds that cover all orders
    /// that the recording allows.
    fn mixed(
        &self,
        has_order: bool,
        cases: &[&Case],
        tests: &[Test],
        around: &RangeInclusive<i64>,
        active: &Active,
    ) -> Option<Vec<Place>> {
        let stamp = |case: &Case| case.attributes.at.map(|date| self.time(date));
        let has_stamps = cases.iter().any(|case| stamp(case).is_some());
        let mut blocks: Vec<Block<'_>> = Vec::new();
        let mut rest = tests;
        for same in cases.chunk_by(|a, b| stamp(a) == stamp(b)) {
            let (block, after) = rest.split_at_checked(same.len())?;
            rest = after;
            let lane = |(at, case): (usize, &&Case)| match (has_order, case.has_failed()) {
                (false, _) => at,
                (true, failed) => usize::from(failed),
            };
            let lanes = same.iter().enumerate().map(lane);
            blocks.extend(Block::of(block, lanes.collect()));
        }
        let joined: Vec<Test> = blocks
            .iter()
            .filter_map(|block| joined(block.tests))
            .collect();
        let mut places = Vec::with_capacity(tests.len());
        for (block, place) in blocks.iter().zip(serial::places(&joined, around, active)?) {
            if let [_] = block.tests {
                places.push(place);
                continue;
            }
            let around = *place.begin.start()..=*place.end.end();
            if let Some(count) = block.count() {
                self.spend(count.saturating_mul(block.tests.len()))?;
            }
            match block.orders() {
                Some(orders) => places.extend(block.in_any_order(&orders, &around, active)?),
                None if has_stamps => {
                    for test in block.tests {
                        let alone = std::slice::from_ref(test);
                        places.extend(serial::places(alone, &around, active)?);
                    }
                }
                None => return None,
            }
        }
        Some(places)
    }

    /// The length of a test and the ranges of time in which it begins or ends, as far as the report gives them.
    fn test(&self, case: &Case) -> Test {
        let times = self.of_case(case).filter(|times| times.doubt.is_none());
        let window = |at: i64, digit: i64| {
            let error = self.stamp_error(0);
            at.saturating_sub(error)..=at.saturating_add(digit).saturating_add(error)
        };
        let (begin, end) = match (times, self.of_cases) {
            (Some(times), Some(Stamp::Begin)) => (Some(window(times.from, times.digit)), None),
            (Some(times), Some(Stamp::End)) => (None, Some(window(times.to, times.digit))),
            _ => (None, None),
        };
        Test {
            begin,
            end,
            length: case.attributes.length.unwrap_or(0),
            error: match case.attributes.length {
                Some(_) => case.attributes.digit.max(LEAST_ERROR),
                None => i64::MAX,
            },
            between: case.attributes.between(),
        }
    }

    /// Makes the schedule of a suite: chooses a place within the bounds of each test. If the runner waits for a child
    /// process only during one test, the child belongs to that test, even if it began shortly before the test's assumed
    /// beginning.
    fn spans(
        &self,
        suite: &Suite,
        runner: Scheduled,
        facts: &[Rc<RunnerFacts>],
        places: Vec<Option<Place>>,
    ) -> Schedule {
        let analysis = self.lookup.analysis;
        let mut order: Vec<usize> = (0..places.len()).collect();
        let place = |at: usize| places.get(at).and_then(Option::as_ref);
        order.retain(|at| place(*at).is_some());
        order.sort_by_key(|at| place(*at).map(|place| *place.begin.start()));
        // At first, each test gets the latest place that its bounds allow. If the tests ran one after the other in a
        // known order, these places do not overlap, so they are a valid schedule.
        let latest = |place: &Place| (*place.begin.end(), *place.end.end());
        let mut spans: Vec<Option<(i64, i64)>> = places
            .iter()
            .map(|place| place.as_ref().map(latest))
            .collect();
        // The stretches in which tests certainly ran do not overlap, so they can be sorted.
        let mut certain = order.clone();
        certain.retain(|at| place(*at).is_some_and(|place| place.begin.end() < place.end.start()));
        certain.sort_by_key(|at| place(*at).map(|place| *place.begin.end()));
        let mut decided = Vec::new();
        let children = runner
            .processes
            .iter()
            .zip(facts)
            .flat_map(|(process, facts)| {
                let children = analysis.process(*process).children.iter();
                children.filter_map(|child| Some((child, *facts.waited.get(child)?)))
            });
        for (child, (first, last)) in children {
            let start = signed(analysis.process(*child).start);
            // The child belongs to the test that certainly ran in the middle of the time from the child's start to the
            // last wait for the child.
            let middle = start.midpoint(last);
            let after = certain
                .partition_point(|at| place(*at).is_some_and(|place| *place.begin.end() <= middle));
            let Some(at) = after.checked_sub(1).and_then(|at| certain.get(at)).copied() else {
                continue;
            };
            let holds = |place: &Place| {
                let begun = *place.begin.start();
                let has_middle = middle <= *place.end.start();
                has_middle && begun <= start && begun <= first && last <= *place.end.end()
            };
            if !place(at).is_some_and(holds) {
                continue;
            }
            decided.push(*child);
            if let Some(Some((from, _))) = spans.get_mut(at) {
                *from = start.min(*from);
            }
            let before = after.checked_sub(2).and_then(|at| certain.get(at));
            if let Some(Some((_, to))) = before.and_then(|at| spans.get_mut(*at)) {
                *to = start.min(*to);
            }
        }
        // Two neighbouring tests may overlap after these changes. They are cut at a time that the bounds of both allow.
        let around = suite.around();
        order.sort_by_key(|at| spans.get(*at).copied().flatten());
        for (before, after) in order.iter().zip(order.iter().skip(1)) {
            let (Some(place_before), Some(place_after)) = (place(*before), place(*after)) else {
                continue;
            };
            let (Some(Some(first)), Some(Some(second))) =
                (spans.get(*before).copied(), spans.get(*after).copied())
            else {
                continue;
            };
            let cut = second.0.max(*place_before.end.start());
            let is_free = cut <= *place_after.begin.end() && cut < first.1;
            if is_free && around.get(*before) == around.get(*after) {
                if let Some(slot) = spans.get_mut(*before) {
                    *slot = Some((first.0, cut));
                }
                if let Some(slot) = spans.get_mut(*after) {
                    *slot = Some((cut, second.1));
                }
            }
        }
        // A test that contains other tests is extended so that it surrounds them.
        for at in 0..spans.len() {
            let Some((from, to)) = spans.get(at).copied().flatten() else {
                continue;
            };
            let next = |at: usize| around.get(at).copied().flatten();
            for outer in std::iter::successors(next(at), |outer| next(*outer)) {
                if let Some(Some(outer)) = spans.get_mut(outer) {
                    *outer = (outer.0.min(from), outer.1.max(to));
                }
            }
        }
        let placed = suite.cases.iter().zip(&places).zip(spans);
        let times = placed.map(|((case, place), span)| {
            let (place, (from, to)) = (place.as_ref()?, span?);
            Some(Times {
                from,
                to: to.max(from),
                digit: 0,
                early: place.error(),
                error: Some(place.error()),
                bounds: Some(Bounds::new(place, &self.test(case))),
                is_even: false,
                doubt: None,
            })
        });
        let times: Vec<Option<Times>> = times.collect();
        let start = |process: &ProcessIx| signed(analysis.process(*process).start);
        let of_tests = times.iter().map(|times| {
            let middle = times.map(|times| times.from.midpoint(times.to))?;
            let mut processes = runner.processes.iter().copied();
            processes.rfind(|process| start(process) <= middle)
        });
        Schedule {
            of_tests: of_tests.collect(),
            runner,
            times,
            decided,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that two tests which fit a thread exactly are not enough proof if the process has many threads, because
    /// they may fit by chance.
    #[test]
    fn many_threads_need_more_proof() {
        let place = Place {
            begin: 0..=2_000_000,
            end: 80_000_000..=82_000_000,
        };
        let test = Test {
            begin: None,
            end: None,
            length: 80_000_000,
            error: LEAST_ERROR,
            between: 0,
        };
        let exact = Times {
            from: 0,
            to: 80_000_000,
            digit: 0,
            early: 0,
            error: None,
            bounds: Some(Bounds::new(&place, &test)),
            is_even: false,
            doubt: None,
        };
        let is_measured = |tests: usize, threads: usize| {
            let schedule = Schedule {
                runner: Scheduled {
                    processes: Vec::new(),
                    is_one_thread: true,
                    threads,
                },
                times: vec![Some(exact); tests],
                of_tests: vec![None; tests],
                decided: Vec::new(),
            };
            schedule.is_measured()
        };
        assert_eq!(
            [(1, 1), (2, 1), (2, 4)].map(|(a, b)| is_measured(a, b)),
            [false, true, true]
        );
        assert_eq!(
            [(2, 23), (3, 23)].map(|(a, b)| is_measured(a, b)),
            [false, true]
        );
    }
}
