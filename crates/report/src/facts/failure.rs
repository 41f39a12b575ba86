//! What failed, in the order in which one acts.
//!
//! A failure counts if it led to COMMAND's own, if the kernel killed the process for lack of memory,
//! if a signal that no one sends on purpose killed it, or if it is a failed test. Another one is a
//! question that was answered with no: what started the process went on (`grep -q`, a configure
//! script's tests).

mod chain;
mod ends;
mod failed_tests;
mod held;
mod passes;
mod pipes;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use tr_analyze::critical_path;
use tr_analyze::model::{Analysis, Process, ProcessIx};
use tr_analyze::sort::{Gather, Rows};
use tr_analyze::tools::Role;

use self::chain::Finder;
use self::ends::Sure;
use self::failed_tests::Tests;
use self::passes::{fails, passes, program, role, Passes};
use super::timeout::{ran, timed_out};
use super::verdicts::Judged;
use crate::ancestors::down;
use crate::steps::{Step, StepIx};
use crate::{exit, label, units};

/// A process or a step that failed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failed {
    /// Its label, escaped for a terminal.
    pub name: String,
    /// What became of it: `exit 1`, `killed: out of memory`.
    pub end: String,
    /// How long it had run, in ns: of a process its last program.
    pub after: u64,
    pub pid: Option<u32>,
    pub process: Option<ProcessIx>,
    /// Those that it made fail, up to COMMAND.
    pub above: Vec<Failed>,
    /// Among those above: the one before it may be the reason, or something else.
    pub perhaps: bool,
    /// The step, if it is one.
    step: Option<StepIx>,
    /// What held it back meanwhile, with the evidence.
    pub held: Option<String>,
}

/// Before the name of what failed for one of several possible reasons.
pub(crate) const PERHAPS: &str = "perhaps ";

impl Failed {
    /// What stands before its name among those above another one.
    pub fn lead(&self) -> &'static str {
        match self.perhaps {
            true => PERHAPS,
            false => "",
        }
    }

    /// What became of it, and when.
    pub fn fact(&self) -> String {
        format!("{} after {}", self.end, units::time(self.after))
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Failures {
    /// Those that count, the gravest first.
    pub told: Vec<Failed>,
    /// COMMAND failed: the place among them of what explains that.
    pub command: Option<usize>,
    /// The number of COMMAND's processes that failed and do not count: what one that succeeded asked, or an earlier
    /// program of the same process.
    pub tolerated: usize,
    /// The number of COMMAND's other processes that failed: what they led to is not known.
    pub unclear: usize,
    /// The first of these: children of the last process whose failure is explained for certain, the longest first. Those
    /// of a configure script are questions.
    pub beside: Vec<Failed>,
    /// The processes that failed and do not count, others' too.
    pub calm: Vec<ProcessIx>,
}

/// The most failures that led to COMMAND's beside the one that explains it best, and that are told with what they led to.
const BRANCHES: usize = 100;

const BESIDE: usize = 3;

/// The order in which failures are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    OutOfMemory,
    Crash,
    /// A test, of a runner that failed.
    Cause,
    /// The process whose failure explains COMMAND's.
    Command,
    Test,
    Reason,
}

impl Failures {
    /// The failures of these processes: of a recording of the whole machine those
    /// of COMMAND's. `judged`: the recording's steps, where they are known already.
    pub fn new(analysis: &Analysis, chosen: &[ProcessIx], judged: Option<&Judged<'_>>) -> Failures {
        let root = critical_path::root(analysis).ok();
        let sure = Sure::new(analysis);
        let is_any =
            |ix: &ProcessIx| fails(analysis.process(*ix)) || sure.out_of_memory.contains_key(ix);
        let failed: Vec<ProcessIx> = chosen.iter().copied().filter(is_any).collect();
        let marked = analysis.marks.len() + analysis.imported.len() > 0;
        if failed.is_empty() && !marked {
            return Failures::default();
        }
        let own = judged.is_none().then(|| Judged::new(analysis));
        let Some(judged) = judged.or(own.as_ref()) else {
            return Failures::default();
        };
        let tests = Tests::new(analysis, &judged.steps);
        Finder::new(analysis, (sure, tests), root).all(&failed, judged)
    }
}

/// The order in which the failures of a recording are told, and their words.
impl Finder<'_> {
    fn all(&self, failed: &[ProcessIx], judged: &Judged<'_>) -> Failures {
        let chosen: BTreeSet<ProcessIx> = failed.iter().copied().gather();
        let mut chain: Vec<ProcessIx> = self
            .chain(self.root)
            .into_iter()
            .filter(|ix| chosen.contains(ix))
            .collect();
        chain.reverse();
        let hidden = self.hidden(failed);
        let mut in_chain: BTreeSet<ProcessIx> =
            hidden.iter().flatten().chain(&chain).copied().gather();
        let branches = self.branches(&chosen, &mut in_chain);
        let mut found: Vec<(Rank, Failed)> = Vec::new();
        let (mut tolerated, mut unclear, mut calm) = (0, Vec::new(), Vec::new());
        // What a time-out above ended.
        let killed = down(self.analysis, |ix, above: Option<&bool>| {
            let parent = self.analysis.process(ix).parent;
            above == Some(&true) || parent.is_some_and(|ix| timed_out(self.analysis.process(ix)))
        });
        let answered = down(self.analysis, |ix, above: Option<&bool>| {
            let process = self.analysis.process(ix);
            let parent = process.parent.map(|ix| self.analysis.process(ix));
            let goes_on = |it: &Process| it.status == Some(0) || process.start < program(it);
            above == Some(&true) || parent.is_some_and(goes_on)
        });
        for ix in failed.iter().filter(|ix| !in_chain.contains(ix)) {
            match self.rank(*ix) {
                _ if self.is_with(*ix) => calm.push(*ix),
                Some(Rank::Reason) if killed[*ix] => calm.push(*ix),
                Some(rank) => found.push((rank, self.uppermost(*ix))),
                // A failed test has a line by its step.
                None if self.tests.is_failed.contains(ix) => {}
                None => {
                    calm.push(*ix);
                    match answered[*ix] {
                        _ if !self.sure.own.has(*ix) || killed[*ix] => {}
                        true => tolerated += 1,
                        false => unclear.push(*ix),
                    }
                }
            }
        }
        let told: BTreeSet<ProcessIx> = found.iter().filter_map(|(_, it)| it.process).gather();
        let is_told = |ix: ProcessIx| told.contains(&ix) || in_chain.contains(&ix);
        let test = match chain.first() {
            Some(cause) if self.runs_others(*cause) => Rank::Cause,
            _ => Rank::Test,
        };
        let tests = self.failed_tests(judged, &chosen, is_told);
        found.extend(tests.into_iter().map(|it| (test, it)));
        found.extend(self.cause(&chain).map(|cause| (Rank::Command, cause)));
        let hidden = hidden.iter().filter_map(|it| self.cause(it));
        found.extend(hidden.map(|cause| (Rank::Reason, cause)));
        found.extend(branches.iter().filter_map(|it| {
            let rank = self.rank(*it.first()?).unwrap_or(Rank::Reason);
            Some((rank, self.cause(it)?))
        }));
        let mut failed: Vec<&mut Failed> = found.iter_mut().map(|(_, failed)| failed).collect();
        held::add(&mut failed, self.analysis, &self.sure, judged);
        found.order_by_key(|(rank, it)| (*rank, Reverse(it.after), it.pid));
        Failures {
            command: found.iter().position(|(rank, _)| *rank == Rank::Command),
            told: found.into_iter().map(|(_, it)| it).collect(),
            tolerated,
            beside: self.beside(&chain, &unclear),
            unclear: unclear.len(),
            calm,
        }
    }

    /// The failed tests of chosen processes that have no line by their process.
    fn failed_tests(
        &self,
        judged: &Judged<'_>,
        chosen: &BTreeSet<ProcessIx>,
        is_told: impl Fn(ProcessIx) -> bool,
    ) -> Vec<Failed> {
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
            if is_chosen && !ix.is_some_and(&is_told) {
                tests.push(self.step(*at, step));
            }
        }
        tests
    }

    /// The failures that led to COMMAND's beside those in `told`, such as those of jobs at once: each from what explains it
    /// up to COMMAND.
    fn branches(
        &self,
        chosen: &BTreeSet<ProcessIx>,
        told: &mut BTreeSet<ProcessIx>,
    ) -> Vec<Vec<ProcessIx>> {
        let mut branches = Vec::new();
        // Parents come first.
        for ix in chosen {
            let counts = |ix: &ProcessIx| {
                let tests = &self.tests;
                let is_test = tests.is_failed.contains(ix) || tests.is_asked.contains(ix);
                chosen.contains(ix) && !told.contains(ix) && !is_test
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
            told.extend(&branch);
            let above = self.analysis.ancestors(*ix);
            let above = above.take_while(|ix| self.leads(*ix));
            branch.extend(above.filter(|ix| chosen.contains(ix)));
            branches.push(branch);
        }
        branches
    }

    /// What else may be the reason for COMMAND's failure: of these processes the children of the last one in the
    /// chain whose failure is explained for certain.
    fn beside(&self, chain: &[ProcessIx], unclear: &[ProcessIx]) -> Vec<Failed> {
        let root = chain.last();
        let below = chain.iter().rev().skip(1);
        let sure = below.take_while(|ix| !self.is_maybe(**ix)).last().or(root);
        let is_below = |ix: &&ProcessIx| {
            sure.is_some_and(|sure| self.analysis.process(**ix).parent == Some(*sure))
        };
        if sure.is_some_and(|ix| role(self.analysis.process(*ix)) == Some(Role::Configure)) {
            return Vec::new();
        }
        let mut beside: Vec<Failed> = unclear
            .iter()
            .filter(is_below)
            .map(|ix| self.process(*ix))
            .collect();
        beside.order_by_key(|it| (Reverse(it.after), it.pid));
        beside.dedup_by(|a, b| a.name == b.name && a.end == b.end);
        beside.truncate(BESIDE);
        beside
    }

    /// The cause of COMMAND's failure, with those above it; `chain` begins with it.
    fn cause(&self, chain: &[ProcessIx]) -> Option<Failed> {
        let (first, above) = chain.split_first()?;
        let above = chain.iter().zip(above).map(|(below, ix)| Failed {
            perhaps: self.is_maybe(*below),
            ..self.process(*ix)
        });
        let mut above: Vec<Failed> = above.collect();
        if let Some(command) = above.last_mut().filter(|it| it.process == self.root) {
            command.name = "the command".into();
            if command.process.is_some_and(|ix| !self.fails(ix)) {
                command.end += " all the same";
            }
        }
        Some(Failed {
            above,
            ..self.uppermost(*first)
        })
    }

    /// A process that does nothing by itself: what it ran is the cause.
    fn runs_others(&self, ix: ProcessIx) -> bool {
        passes(self.analysis.process(ix)) != Passes::Last
    }

    /// Why a process's failure counts, apart from a test's.
    fn rank(&self, ix: ProcessIx) -> Option<Rank> {
        if self.sure.out_of_memory.contains_key(&ix) {
            return Some(Rank::OutOfMemory);
        }
        if !self.sure.own.has(ix) || self.tests.is_asked.contains(&ix) {
            return None;
        }
        let process = self.analysis.process(ix);
        if Sure::is_crash(process) {
            return Some(match self.is_death_test(ix) {
                true => Rank::Reason,
                false => Rank::Crash,
            });
        }
        if self.sure.is_unexplained_kill(process) {
            return Some(Rank::Reason);
        }
        let leads = self.leads[ix] && !self.tests.is_failed.contains(&ix);
        leads.then_some(Rank::Reason)
    }

    /// A process, which may have been killed with what was below it.
    fn uppermost(&self, ix: ProcessIx) -> Failed {
        let children = &self.analysis.process(ix).children;
        let mut failed = self.process(ix);
        if children.iter().any(|ix| self.is_with(*ix)) {
            failed.end += " with those below it";
        }
        failed
    }

    fn process(&self, ix: ProcessIx) -> Failed {
        let process = self.analysis.process(ix);
        let name = label::label(process);
        Failed {
            name: match self.sure.own.has(ix) {
                true => name,
                false => format!("{name} (not COMMAND's)"),
            },
            end: self.sure.end(ix, process),
            after: ran(process),
            pid: Some(process.pid.0),
            process: Some(ix),
            ..Failed::default()
        }
    }

    fn step(&self, at: StepIx, step: &Step) -> Failed {
        let own = step.process.filter(|_| step.result.is_none());
        let killed = own.filter(|ix| self.sure.out_of_memory.contains_key(ix));
        let killed = killed.map(|ix| self.sure.end(ix, self.analysis.process(ix)));
        let status = || step.status.filter(|status| *status != 0).map(exit::words);
        let reported = step.result.clone();
        Failed {
            name: step.name.clone(),
            end: killed
                .or(reported)
                .or_else(status)
                .unwrap_or_else(|| "failed".into()),
            after: step.wall(),
            pid: own.map(|ix| self.analysis.process(ix).pid.0),
            process: step.process,
            step: Some(at),
            ..Failed::default()
        }
    }
}
