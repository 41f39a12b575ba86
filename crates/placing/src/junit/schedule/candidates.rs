//! Searches for processes that can have run a suite: single processes, chains of processes that lived one after the
//! other, and pools of workers.

use std::collections::{BTreeMap, HashSet};

use tr_analyze::model::ProcessIx;

use super::bounds::Groups;
use crate::junit::choice::Schedule;
use crate::junit::placer::Placer;
use crate::junit::pool::Undecided;
use crate::junit::report::Suite;
use crate::junit::runner::MOST_TRIED;
use crate::lookup::signed;

/// The number of words at the start of a command line that name the program. A decision: they are an interpreter and
/// its script.
const PROGRAM: usize = 2;

/// The number of possible schedules (processes and times for the tests) of one suite at which the search for more of
/// them ends. A bound of the work: a suite that reaches this number gets no schedule.
const MOST_SCHEDULES: usize = 16;

/// The processes that can have run a suite's tests: one test after the other (`runners`), or several tests at the same
/// time (`pools`).
struct Candidates {
    /// The single processes, and the chains of processes that lived one after the other, that can have run the suite's
    /// tests one after the other.
    runners: Vec<Vec<ProcessIx>>,
    /// Groups of processes that lived at the same time, among which the tests may have been distributed.
    pools: Vec<Vec<ProcessIx>>,
}

impl Placer<'_> {
    /// The schedules (processes and times for the tests) of a suite in the processes `likely` and their descendants,
    /// except for the process `but`. The result is an error if a pool of workers may have run the suite, and it cannot
    /// be decided whether the tests fit these workers. In this case, no schedule is proven.
    pub(super) fn below(
        &mut self,
        suite: &Suite,
        groups: &Groups,
        likely: &[ProcessIx],
        but: Option<ProcessIx>,
    ) -> Result<Vec<Schedule>, Undecided> {
        let all = self.with_descendants(likely);
        self.spend(all.len()).ok_or(Undecided)?;
        let sum = suite.sum();
        let Candidates { runners, mut pools } = self.candidates(&all, but, sum);
        let found = self.in_runners(suite, groups, runners)?;
        let (found, listeners) = self.without_listeners(found, &pools);
        let mut found = self.without_chains(found);
        if self.several {
            return Ok(found);
        }
        for pool in &mut pools {
            pool.retain(|process| !listeners.contains(process));
        }
        pools.retain(|pool| pool.len() > 1);
        if found.is_empty() && pools.is_empty() {
            // The workers may run different scripts with one interpreter, so only the first word of the command line is
            // compared.
            pools = self.siblings(&all, 1);
            pools.retain(|pool| self.has_room(pool, sum));
        }
        for pool in pools {
            let Some(of_pool) = self.distributed(suite, groups, &pool)? else {
                continue;
            };
            // A schedule in a single worker of the pool (workers that lived at the same time) is included in the
            // schedule of the whole pool, so it is removed.
            let is_worker = |process: &ProcessIx| pool.contains(process);
            found.retain(|found| !found.runner.processes.iter().all(is_worker));
            found.push(of_pool);
        }
        Ok(found)
    }

    /// The given processes and their descendants, at most [`MOST_TRIED`] processes.
    fn with_descendants(&self, processes: &[ProcessIx]) -> Vec<ProcessIx> {
        let (mut all, mut seen) = (Vec::new(), HashSet::new());
        let mut open: Vec<ProcessIx> = processes.to_vec();
        while let Some(process) = open.pop().filter(|_| all.len() < MOST_TRIED) {
            if seen.insert(process) {
                all.push(process);
                open.extend(&self.lookup.analysis.process(process).children);
            }
        }
        all
    }

    /// The processes that can have run a suite whose tests took `sum` ns together, among the processes `all` and their
    /// children. The process `but` is not returned as a single process. It can still be a member of a chain (processes
    /// that lived one after the other) or of a pool (processes that lived at the same time).
    fn candidates(&self, all: &[ProcessIx], but: Option<ProcessIx>, sum: i64) -> Candidates {
        let siblings = self.siblings(all, PROGRAM).into_iter();
        let siblings = siblings.filter(|siblings| self.has_room(siblings, sum));
        let (mut runners, pools): (Vec<_>, Vec<_>) =
            siblings.partition(|siblings| self.is_chain(siblings));
        let single = all.iter().filter(|process| Some(**process) != but);
        let single = single.map(|process| vec![*process]);
        runners.extend(single.filter(|process| self.has_room(process, sum)));
        Candidates { runners, pools }
    }

    /// Whether the given processes lived for at least `sum` ns together.
    fn has_room(&self, processes: &[ProcessIx], sum: i64) -> bool {
        let lengths = processes.iter().map(|process| {
            let process = self.lookup.analysis.process(*process);
            signed(process.end).saturating_sub(signed(process.start))
        });
        lengths.fold(0, i64::saturating_add) >= sum
    }

    /// The schedules in which one of the given runners (a process, or a chain of processes that lived one after the
    /// other) ran the tests of the suite one after the other.
    fn in_runners(
        &mut self,
        suite: &Suite,
        groups: &Groups,
        runners: Vec<Vec<ProcessIx>>,
    ) -> Result<Vec<Schedule>, Undecided> {
        let found = runners
            .into_iter()
            .filter_map(|runner| self.scheduled(suite, groups, &runner));
        let mut found: Vec<Schedule> = found.take(MOST_SCHEDULES).collect();
        if found.len() == MOST_SCHEDULES {
            return Err(Undecided);
        }
        // If several processes lived one after the other, many tests fit into these processes by chance. A schedule for
        // such processes is in doubt unless the lengths of the tests prove the schedule.
        for schedule in &mut found {
            if schedule.runner.processes.len() > 1 && !schedule.is_measured() {
                schedule.doubt();
            }
        }
        Ok(found)
    }

    /// Leaves out some schedules if the tests fit a chain (a series of processes that lived one after the other) and
    /// also a single process of this chain. If the report has several suites, the schedule of the chain is left out,
    /// because each suite then probably ran in one process. If the report has one suite, the schedule of the single
    /// process is left out, because several workers can have run the suite's tests.
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
            siblings.extend(several.filter(|children| (2..=MOST_TRIED).contains(&children.len())));
        }
        siblings
    }
}
