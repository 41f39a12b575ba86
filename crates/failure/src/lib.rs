//! Finds the failures in a recording, and sorts them so that the one to act on first comes first.
//!
//! The failure of a process counts if it led to COMMAND's failure, if the kernel killed the process for lack of memory,
//! if a signal that no one sends on purpose killed it, or if it is a failed test. Any other failure is only a negative
//! answer: the program that started the process went on (`grep -q`, a configure script's tests).
#![forbid(unsafe_code)]

mod afterwards;
mod chain;
mod courses;
mod ends;
mod explains;
mod facts;
mod failed_tests;
mod files;
mod finder;
mod git;
mod hangs;
mod held;
mod links;
mod makes;
mod named;
mod news;
mod passes;
mod pipes;
mod pools;
mod reactions;
mod runners;
mod runs;
mod scripts;
mod servers;
mod texts;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::iter;

use tr_analyze::arena::Arena;
use tr_analyze::critical_path;
use tr_analyze::model::ProcessIx;
use tr_programs::tools::{Family, Role};

use self::ends::ProcessEnds;
pub use self::ends::{FailureEnd, PERHAPS};
pub use self::facts::{FailedTask, Failure, Failures, Held};
use self::failed_tests::Tests;
use self::finder::Finder;
use self::links::Chain;
use self::passes::{code, fails, family, program_start, LONGEST_CHAIN};
use self::texts::Decided;
pub use self::texts::{ScriptLine, Statement};
use tr_insight::processes::ancestors::down;
use tr_insight::processes::exit;
use tr_insight::processes::roles::role;
use tr_insight::processes::timeout::timed_out;
use tr_insight::verdicts::StepVerdicts;
use tr_insight::Recording;

/// The largest number of failures that are reported beside the best explanation of COMMAND's failure. Each of these
/// failures also led to COMMAND's failure and is reported with its consequences.
const BRANCHES: usize = 100;

/// The largest number of failures without known consequences that are named. A guess: a person who reads the report
/// takes in three failures at once.
const MOST_BESIDE: usize = 3;

/// The rank by which reported failures are sorted. Failures of one rank are reported in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FailureRank {
    /// The kernel killed the process for lack of memory, or a signal killed it that is never sent on purpose. If the
    /// process is the first of a chain of failures, any signal counts, unless an ancestor sent it to stop the process.
    Killed,
    /// The process was stopped after a time-out, and this process explains COMMAND's failure or is a failed test.
    Late,
    /// The process explains COMMAND's failure, or is a failed test.
    Failed,
    /// The process is a failed test, but the test runner that started it succeeded.
    Tolerated,
    /// A signal killed the process, perhaps on purpose: a test may have expected the crash of its forked child, or
    /// another program may have sent SIGKILL. Such failures are reported last.
    Aside,
}

/// A failure that the report shows, with its rank among the reported failures.
struct RankedFailure {
    rank: FailureRank,
    /// Whether the failure is the best explanation of COMMAND's failure.
    is_command: bool,
    failed: Failure,
}

impl RankedFailure {
    fn new(rank: FailureRank, failed: Failure) -> RankedFailure {
        RankedFailure {
            rank,
            is_command: false,
            failed,
        }
    }
}

/// The chains of failures that led to COMMAND's failure. Each begins with the process that failed first and ends with
/// COMMAND.
struct FailureChains {
    /// The chain of failures that the exit statuses show.
    of_command: Vec<ProcessIx>,
    /// The chain of failures that the exit statuses show, extended by an earlier failure that perhaps led to one of
    /// these failures.
    linked: Chain,
    /// The chains of failures that a pipeline hid, and then the other chains that also led to COMMAND's failure.
    further: Vec<Vec<ProcessIx>>,
    /// All processes that are in one of the chains of failures above.
    processes: BTreeSet<ProcessIx>,
}

/// The failed processes that are in no chain of failures.
#[derive(Default)]
struct OtherFailures {
    /// The failures that the report shows although they are in no chain of failures, such as crashes.
    found: Vec<RankedFailure>,
    /// The number of COMMAND's processes that failed without consequences.
    tolerated: usize,
    /// COMMAND's processes that failed and for which the recording does not show whether the failure had consequences.
    unclear: Vec<ProcessIx>,
    /// The processes whose failures do not matter, as far as the recording shows.
    calm: BTreeSet<ProcessIx>,
}

impl Failures {
    /// Finds the failures of the chosen processes; in a recording of the whole machine, the failures of COMMAND's
    /// processes. `judged` has the verdicts on the recording's steps; if it is `None`, they are computed here.
    pub fn new(
        recording: &Recording,
        chosen: &[ProcessIx],
        judged: Option<&StepVerdicts<'_>>,
    ) -> Failures {
        let Recording {
            analysis, imports, ..
        } = recording;
        let root = critical_path::root(analysis).ok();
        let sure = ProcessEnds::new(analysis);
        let is_any =
            |ix: &ProcessIx| fails(analysis.process(*ix)) || sure.out_of_memory.contains_key(ix);
        let failed: Vec<ProcessIx> = chosen.iter().copied().filter(is_any).collect();
        let marked = analysis.marks.len() + imports.spans.len() > 0;
        if failed.is_empty() && !marked {
            return Failures::default();
        }
        let own = judged.is_none().then(|| StepVerdicts::new(recording));
        let Some(judged) = judged.or(own.as_ref()) else {
            return Failures::default();
        };
        let tests = Tests::new(analysis, &judged.steps);
        Finder::new(analysis, sure, tests, root).all(&failed, judged)
    }
}

/// Methods that find the failures which a report on a recording shows, and their order.
impl Finder<'_> {
    fn all(&self, failed: &[ProcessIx], judged: &StepVerdicts<'_>) -> Failures {
        let chosen: BTreeSet<ProcessIx> = failed.iter().copied().collect();
        let chains = self.chains(failed, &chosen);
        let answered = self.answered();
        let OtherFailures {
            mut found,
            tolerated,
            unclear,
            calm,
        } = self.others(failed, &chains, &answered);
        let tests = self.ranked_tests(judged, &chosen, &chains, &found, &answered);
        found.extend(tests);
        found.extend(self.ranked_chains(&chains));
        let found = self.in_order(found, judged);
        let failures = Failures {
            led: self.led(&found, &chosen, &chains),
            outer: BTreeSet::new(),
            command: found.iter().position(|found| found.is_command),
            reported: found.into_iter().map(|found| found.failed).collect(),
            tolerated,
            beside: self.beside(&chains.of_command, &unclear),
            unclear: unclear.len(),
            calm,
        };
        let outer = failures.outer_steps(&judged.steps);
        Failures { outer, ..failures }
    }

    fn chains(&self, failed: &[ProcessIx], chosen: &BTreeSet<ProcessIx>) -> FailureChains {
        let mut of_command: Vec<ProcessIx> = self
            .chain(self.root)
            .into_iter()
            .filter(|ix| chosen.contains(ix))
            .collect();
        of_command.reverse();
        let linked = self.linked(of_command.clone(), chosen);
        let hidden = self.hidden(failed);
        let in_chains = hidden.iter().flatten().chain(&of_command);
        let mut processes: BTreeSet<ProcessIx> =
            in_chains.chain(&linked.processes).copied().collect();
        let branches = self.branches(chosen, &mut processes);
        FailureChains {
            of_command,
            linked,
            further: hidden.into_iter().chain(branches).collect(),
            processes,
        }
    }

    /// Sorts the failed processes that are in no chain of failures by whether their failures matter. `answered` has for
    /// each process whether its failure certainly had no consequence.
    fn others(
        &self,
        failed: &[ProcessIx],
        chains: &FailureChains,
        answered: &Arena<ProcessIx, bool>,
    ) -> OtherFailures {
        let mut others = OtherFailures::default();
        let killed = self.killed_in_time();
        let outside = failed.iter().filter(|ix| !chains.processes.contains(ix));
        for ix in outside.copied() {
            let rank = self.rank(ix);
            let was_stopped = killed[ix] && rank.is_some_and(|rank| rank != FailureRank::Killed);
            if self.is_with(ix) || self.sure.was_ended(ix) || was_stopped {
                others.calm.insert(ix);
            } else if let Some(rank) = rank {
                let failure = RankedFailure::new(rank, self.uppermost(ix));
                others.found.push(failure);
            } else if !self.tests.is_failed.contains(&ix) {
                // A process that is a failed test is left out here, because failed tests are reported later, as steps.
                others.calm.insert(ix);
                if self.sure.own.has(ix) && !killed[ix] {
                    if answered[ix] {
                        others.tolerated += 1;
                    } else {
                        others.unclear.push(ix);
                    }
                }
            }
        }
        others
    }

    /// The failed tests that the report does not show yet, neither in a chain of failures nor among the failures
    /// `found`, with their ranks.
    fn ranked_tests(
        &self,
        judged: &StepVerdicts<'_>,
        chosen: &BTreeSet<ProcessIx>,
        chains: &FailureChains,
        found: &[RankedFailure],
        answered: &Arena<ProcessIx, bool>,
    ) -> Vec<RankedFailure> {
        let reported: BTreeSet<ProcessIx> = found
            .iter()
            .filter_map(|found| found.failed.process)
            .collect();
        let is_reported = |ix: ProcessIx| reported.contains(&ix) || chains.processes.contains(&ix);
        let tests = self.failed_tests(judged, chosen, is_reported).into_iter();
        let ranked = tests.map(|test| {
            let goes_on = test.process.is_some_and(|ix| answered[ix]);
            let rank = if goes_on {
                FailureRank::Tolerated
            } else {
                self.rank_by_time(test.process.filter(|_| test.pid.is_some()))
            };
            RankedFailure::new(rank, test)
        });
        ranked.collect()
    }

    /// The first failure of each chain of failures, with the failures that it led to. The first one in the list is the
    /// best explanation of COMMAND's failure, if there is one.
    fn ranked_chains(&self, chains: &FailureChains) -> Vec<RankedFailure> {
        let mut found = Vec::new();
        found.extend(self.cause(&chains.linked).map(|cause| RankedFailure {
            is_command: true,
            ..RankedFailure::new(self.rank_of_chain(&chains.linked.processes), cause)
        }));
        for processes in &chains.further {
            let rank = self.rank_of_chain(processes);
            let cause = self.cause(&Chain::new(processes.clone()));
            found.extend(cause.map(|cause| RankedFailure::new(rank, cause)));
        }
        found
    }

    /// Adds to the failures what delayed them, and sorts them so that the one to act on first comes first.
    fn in_order(
        &self,
        mut found: Vec<RankedFailure>,
        judged: &StepVerdicts<'_>,
    ) -> Vec<RankedFailure> {
        let mut failed: Vec<&mut Failure> =
            found.iter_mut().map(|found| &mut found.failed).collect();
        held::add(&mut failed, self.analysis, &self.sure, judged);
        found.sort_by_key(|found| (found.rank, found.failed.at, found.failed.pid));
        self.with_runners_above(found)
    }

    /// The processes that failed for certain because of another failure: consequences of the reported failures, and
    /// processes outside of the reported chains.
    fn led(
        &self,
        found: &[RankedFailure],
        chosen: &BTreeSet<ProcessIx>,
        chains: &FailureChains,
    ) -> BTreeSet<ProcessIx> {
        let above = found.iter().flat_map(|found| &found.failed.above);
        let led = above.filter(|above| !above.perhaps && !above.is_hidden);
        let led = led.filter_map(|above| above.process);
        let others = chosen.difference(&chains.processes).copied();
        led.chain(others.filter(|ix| self.is_explained(*ix)))
            .collect()
    }

    /// If failed tests explain the failure of their test runner, removes the runner's failure from the list. Instead,
    /// the runner becomes one of the consequences (`above`) of each of these tests.
    fn with_runners_above(&self, mut found: Vec<RankedFailure>) -> Vec<RankedFailure> {
        let explained = self.tests_of_runners(&found);
        for (runner, tests) in &explained {
            let Some(runner) = found.get(*runner) else {
                continue;
            };
            let is_command = runner.is_command;
            let mut nearest = runner.failed.clone();
            let further = std::mem::take(&mut nearest.above);
            self.name_command(&mut nearest);
            let above: Vec<Failure> = iter::once(nearest).chain(further).collect();
            for (order, test) in tests.iter().enumerate() {
                if let Some(test) = found.get_mut(*test) {
                    test.is_command |= is_command && order == 0;
                    test.failed.above.clone_from(&above);
                }
            }
        }
        let places = found.into_iter().enumerate();
        let others = places.filter(|(at, _)| !explained.contains_key(at));
        others.map(|(_, found)| found).collect()
    }

    /// Finds, in a list of failures, the test runners whose failures are explained by failed tests in the same list.
    /// Returns these tests for each such runner. Runners and tests are given by their indexes in the list. Such a
    /// runner exits with 1 or with the number of its failed tests.
    fn tests_of_runners(&self, found: &[RankedFailure]) -> BTreeMap<usize, Vec<usize>> {
        let is_reported = |failed: &Failure| matches!(failed.end, FailureEnd::Reported(_));
        let runner = |RankedFailure { rank, failed, .. }: &RankedFailure| {
            let is_plain = *rank == FailureRank::Failed && failed.statement.is_none();
            let process = failed
                .process
                .filter(|_| is_plain && !is_reported(failed))?;
            let is_runner = role(self.analysis.process(process)) == Some(Role::Tests);
            Some(process).filter(|_| is_runner)
        };
        let places = found.iter().enumerate();
        let runners: HashMap<ProcessIx, usize> = places
            .filter_map(|(at, found)| Some((runner(found)?, at)))
            .collect();
        let mut explained: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, RankedFailure { failed, .. }) in found.iter().enumerate() {
            let is_test = is_reported(failed) && failed.above.is_empty();
            let Some(process) = failed.process.filter(|_| is_test) else {
                continue;
            };
            let above = self.analysis.ancestors(process).take(LONGEST_CHAIN);
            let nearest = iter::once(process)
                .chain(above)
                .find_map(|ix| runners.get(&ix));
            if let Some(runner) = nearest {
                explained.entry(*runner).or_default().push(at);
            }
        }
        explained.retain(|runner, tests| {
            let process = found.get(*runner).and_then(|found| found.failed.process);
            let code = process.and_then(|ix| code(self.analysis.process(ix)));
            code.is_some_and(|code| code == 1 || usize::try_from(code) == Ok(tests.len()))
        });
        explained
    }

    /// For each process, whether an ancestor of it is a `timeout` that ended its program, and so probably this
    /// process, too.
    fn killed_in_time(&self) -> Arena<ProcessIx, bool> {
        down(self.analysis, |ix, above: Option<&bool>| {
            let parent = self.analysis.process(ix).parent;
            above == Some(&true) || parent.is_some_and(|ix| timed_out(self.analysis.process(ix)))
        })
    }

    /// For each process, whether its failure certainly had no consequence: an ancestor succeeded, or executed another
    /// program later, or the text of a script shows that the failure is not the reason for the script's failure.
    fn answered(&self) -> Arena<ProcessIx, bool> {
        down(self.analysis, |ix, above: Option<&bool>| {
            let process = self.analysis.process(ix);
            let goes_on = |above: ProcessIx| {
                let parent = self.analysis.process(above);
                let succeeds = parent.status == Some(0) || process.start < program_start(parent);
                succeeds || fails(process) && self.by_script(ix, above) == Some(Decided::No)
            };
            above == Some(&true) || process.parent.is_some_and(goes_on)
        })
    }

    /// The rank of a chain of failures, which depends on the first process of the chain.
    fn rank_of_chain(&self, chain: &[ProcessIx]) -> FailureRank {
        let first = chain.first().copied();
        let is_killed = first.is_some_and(|ix| {
            let by_signal = exit::killed_by(self.analysis.process(ix).status).is_some();
            self.sure.out_of_memory.contains_key(&ix) || by_signal && self.sure.stop(ix).is_none()
        });
        if is_killed {
            FailureRank::Killed
        } else {
            self.rank_by_time(first)
        }
    }

    /// The rank in the report of a process's failure that is not a crash. A process that was stopped after a time-out
    /// comes before other processes.
    fn rank_by_time(&self, process: Option<ProcessIx>) -> FailureRank {
        if process.is_some_and(|ix| self.was_too_late(ix)) {
            FailureRank::Late
        } else {
            FailureRank::Failed
        }
    }

    /// The failed tests of the chosen processes that the report does not already show as failed processes.
    fn failed_tests(
        &self,
        judged: &StepVerdicts<'_>,
        chosen: &BTreeSet<ProcessIx>,
        is_reported: impl Fn(ProcessIx) -> bool,
    ) -> Vec<Failure> {
        let mut tests = Vec::new();
        for at in &self.tests.failed {
            let Some(step) = judged.steps.list().get(*at) else {
                continue;
            };
            let reported = step.result.is_some();
            let ix = step.process.filter(|_| !reported);
            let is_chosen = step.process.is_none_or(|ix| {
                let chosen = reported
                    || step.status != self.analysis.process(ix).status
                    || chosen.contains(&ix);
                self.sure.own.has(ix) && chosen
            });
            let is_no_failure = |ix| is_reported(ix) || self.sure.was_closed(ix);
            if is_chosen && !ix.is_some_and(is_no_failure) {
                tests.push(Failure {
                    above: self.above_a_job(ix),
                    ..self.failure_of_step(*at, step)
                });
            }
        }
        tests
    }

    /// If a failed test is a job of a make: the further failures to which the failed test perhaps led, such as that of
    /// the make. These further failures are uncertain, because make may have ignored the failure of its job. The list
    /// is empty for any other test.
    fn above_a_job(&self, test: Option<ProcessIx>) -> Vec<Failure> {
        let Some(test) = test.filter(|ix| self.is_maybe(*ix)) else {
            return Vec::new();
        };
        let parent = self.above(test);
        if parent.is_none_or(|ix| family(self.analysis.process(ix)) != Some(Family::Make)) {
            return Vec::new();
        }
        let mut processes = vec![test];
        processes.extend(
            self.analysis
                .ancestors(test)
                .take_while(|ix| self.leads(*ix)),
        );
        let cause = self.cause(&Chain::new(processes));
        cause.map_or(Vec::new(), |cause| cause.above)
    }

    /// The further chains of failures that led to COMMAND's failure, such as those of jobs that ran at once. Each chain
    /// begins with the process that failed first and ends with COMMAND. The processes in `reported` already belong to
    /// reported chains.
    fn branches(
        &self,
        chosen: &BTreeSet<ProcessIx>,
        reported: &mut BTreeSet<ProcessIx>,
    ) -> Vec<Vec<ProcessIx>> {
        let mut branches = Vec::new();
        // Parents come before their children in `chosen`, so each chain of failures is found from its uppermost
        // process.
        for ix in chosen {
            let counts = |ix: &ProcessIx| {
                let tests = &self.tests;
                let is_test = tests.is_failed.contains(ix) || tests.is_asked.contains(ix);
                chosen.contains(ix) && !reported.contains(ix) && !is_test
            };
            if !self.leads(*ix) || !counts(ix) {
                continue;
            }
            if branches.len() == BRANCHES {
                break;
            }
            let below = self.chain(Some(*ix)).into_iter();
            let mut branch: Vec<ProcessIx> = below.take_while(counts).collect();
            branch.reverse();
            reported.extend(&branch);
            let above = self.analysis.ancestors(*ix);
            let above = above.take_while(|ix| self.leads(*ix));
            branch.extend(above.filter(|ix| chosen.contains(ix)));
            branches.push(branch);
        }
        branches
    }

    /// The other possible reasons for COMMAND's failure. The search follows `chain` from COMMAND down to the first
    /// failure, as long as each next failure certainly explains the failure above it. At the last process that the
    /// search reaches, the children that are in `unclear` are the other possible reasons.
    fn beside(&self, chain: &[ProcessIx], unclear: &[ProcessIx]) -> Vec<Failure> {
        let root = chain.last();
        let below = chain.iter().rev().skip(1);
        let sure = below.take_while(|ix| !self.is_maybe(**ix)).last().or(root);
        let is_below = |ix: &&ProcessIx| {
            sure.is_some_and(|sure| self.analysis.process(**ix).parent == Some(*sure))
        };
        if sure.is_some_and(|ix| role(self.analysis.process(*ix)) == Some(Role::Configure)) {
            return Vec::new();
        }
        let mut beside: Vec<Failure> = unclear
            .iter()
            .filter(is_below)
            .map(|ix| self.failure_of_process(*ix))
            .collect();
        beside.sort_by_key(|failed| (Reverse(failed.after), failed.pid));
        let mut seen = BTreeSet::new();
        beside.retain(|failed| seen.insert((failed.task.clone(), failed.end.clone())));
        beside.truncate(MOST_BESIDE);
        beside.sort_by_key(|failed| (failed.at, failed.pid));
        beside
    }

    /// Describes the first failure of a chain of processes, together with the failures that it led to.
    fn cause(&self, chain: &Chain) -> Option<Failure> {
        let (first, above) = chain.processes.split_first()?;
        let pairs = (1..).zip(&chain.processes).zip(above);
        let above = pairs.map(|((at, below), ix)| Failure {
            perhaps: self.is_maybe(*below) || chain.missed.contains(&at),
            ..self.failure_of_process(*ix)
        });
        let mut above: Vec<Failure> = above.collect();
        if let Some(command) = above.last_mut() {
            self.name_command(command);
        }
        Some(Failure {
            above,
            ..self.uppermost(*first)
        })
    }

    /// The rank in the report of the failure of a process; `None` if the failure does not matter or belongs to a failed
    /// test.
    fn rank(&self, ix: ProcessIx) -> Option<FailureRank> {
        if !self.has_rank(ix) {
            return None;
        }
        if self.sure.out_of_memory.contains_key(&ix) {
            return Some(FailureRank::Killed);
        }
        let process = self.analysis.process(ix);
        if ProcessEnds::is_crash(process) {
            return Some(if self.is_death_test(ix) {
                FailureRank::Aside
            } else {
                FailureRank::Killed
            });
        }
        Some(if self.sure.is_unexplained_kill(process) {
            FailureRank::Aside
        } else {
            FailureRank::Failed
        })
    }
}

#[cfg(test)]
mod tests;
