//! What failed, in the order in which one acts.
//!
//! A failure counts if it led to COMMAND's own, if the kernel killed the process for lack of memory,
//! if a signal that no one sends on purpose killed it, or if it is a failed test. Another one is a
//! question that was answered with no: what started the process went on (`grep -q`, a configure
//! script's tests).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use tr_analyze::arena::Arena;
use tr_analyze::containers::Called;
use tr_analyze::critical_path;
use tr_analyze::memory::killed;
use tr_analyze::model::{Analysis, Process, ProcessIx};
use tr_analyze::own::Own;
use tr_analyze::sort::{Gather, Rows};
use tr_analyze::status::{self, Purpose, INTERRUPT, KILL};
use tr_analyze::tools::{self, Family, Role};
use tr_format::event::Ktime;
use tr_format::meta::Extra;

use super::memory::limit;
use super::timeout::timed_out;
use super::verdicts::{Judged, Verdict};
use crate::ancestors::down;
use crate::steps::{Step, StepIx, StepKind, Steps};
use crate::{exit, label, query, units};

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

const HIDDEN: usize = 4;

/// The most failures that led to COMMAND's beside the one that explains it best, and that are told with what they led to.
const BRANCHES: usize = 100;

/// The most subshells around a tool in a pipeline, and the most commands after it.
const SUBSHELLS: usize = 8;

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

/// What a process's end says by itself.
struct Sure<'a> {
    /// The processes that the kernel killed for lack of memory, with their resident memory in bytes.
    out_of_memory: BTreeMap<ProcessIx, Option<u64>>,
    /// The container that each process is in, if any was killed.
    containers: Option<Arena<ProcessIx, Option<&'a Called>>>,
    /// The recording tells such kills: another one is on purpose.
    kills_told: bool,
    /// The limit of the memory of COMMAND's cgroup, in bytes.
    limit: Option<u64>,
    own: Own,
}

impl<'a> Sure<'a> {
    fn new(analysis: &'a Analysis) -> Sure<'a> {
        let killed = killed(analysis).map(|it| (it.process, it.resident));
        let out_of_memory: BTreeMap<_, _> = killed.gather();
        let containers = (!out_of_memory.is_empty()).then(|| query::containers(analysis));
        Sure {
            out_of_memory,
            containers,
            kills_told: analysis.meta.has(Extra::Memory),
            limit: limit(analysis),
            own: Own::of(analysis),
        }
    }

    /// What became of a process.
    fn end(&self, ix: ProcessIx, process: &Process) -> String {
        let Some(resident) = self.out_of_memory.get(&ix) else {
            let end = exit::words(process.status.unwrap_or(0));
            return match timed_out(process) {
                true => format!("timed out ({})", end.trim_start_matches("killed by ")),
                false => end,
            };
        };
        let container = self.containers.as_ref().and_then(|it| it[ix]);
        let limit = self
            .limit
            .filter(|limit| container.is_none() && resident.is_none_or(|it| it <= *limit));
        let killed = match container {
            Some(called) => format!("killed in {}: out of memory", label::container(called)),
            None => "killed: out of memory".to_owned(),
        };
        match (resident.map(units::bytes), limit.map(units::bytes)) {
            (Some(resident), Some(limit)) => format!("{killed} at {resident} of {limit}"),
            (Some(resident), None) => format!("{killed} at {resident}"),
            (None, Some(limit)) => format!("{killed}, limit {limit}"),
            (None, None) => killed,
        }
    }

    /// The rank of a process that a signal killed which nobody sends to end a program in good order.
    fn crash(&self, process: &Process) -> Option<Rank> {
        match exit::killed_by(process.status)? {
            KILL => (!self.kills_told && !timed_out(process)).then_some(Rank::Reason),
            signal => (!status::is_for(signal, Purpose::Order)).then_some(Rank::Crash),
        }
    }

    /// Whether another program's signal ended a process, one that is sent for that.
    fn on_purpose(&self, ix: ProcessIx, process: &Process) -> bool {
        let by_kill = || self.kills_told && !self.out_of_memory.contains_key(&ix);
        let signal = exit::killed_by(process.status).filter(|_| !timed_out(process));
        signal.is_some_and(|it| status::is_for(it, Purpose::Order) || it == KILL && by_kill())
    }
}

/// The steps that are failed tests.
struct Tests {
    /// The failed tests without another failed one inside them, by their numbers.
    failed: Vec<StepIx>,
    /// The processes whose execution is a failed test.
    is_failed: HashSet<ProcessIx>,
    /// Those inside a test that did not fail, or below a configuration that succeeded.
    is_asked: HashSet<ProcessIx>,
    /// Those inside a test.
    is_within: HashSet<ProcessIx>,
}

impl Tests {
    fn new(analysis: &Analysis, steps: &Steps) -> Tests {
        let list = steps.list();
        let is_test = |step: &Step| step.kind == StepKind::Test;
        let passed = |step: &Step| is_test(step) && step.ended && !step.failed();
        let (mut has_inner, mut asked, mut within) =
            (HashSet::new(), HashSet::new(), HashSet::new());
        let mut failed: Vec<StepIx> = Vec::new();
        let expected = expected(analysis);
        for (at, step) in list.iter().enumerate() {
            // Parents come first.
            let above = |of: &HashSet<StepIx>| step.parent.is_some_and(|it| of.contains(&it));
            let around = above(&asked);
            asked.extend(Some(at).filter(|_| around || passed(step)));
            let inside = above(&within) || is_test(step);
            within.extend(Some(at).filter(|_| inside));
            // One that a program reports is as it says.
            let tolerated = around || step.process.is_some_and(|ix| expected[ix]);
            let counts = step.failed() && (!tolerated || step.result.is_some());
            if counts && (is_test(step) || step.result.is_some()) {
                failed.push(at);
                has_inner.extend(steps.around(step.parent));
            }
        }
        let is_failed = failed.iter().filter_map(|at| list.get(*at)?.process);
        let is_failed = is_failed.collect();
        let below = down(analysis, |ix, above: Option<&bool>| {
            let process = analysis.process(ix);
            let configures = role(process) == Some(Role::Configure);
            above == Some(&true) || configures && !fails(process)
        });
        let is_in = |ix: &ProcessIx, of: &HashSet<StepIx>| {
            let step = steps.of_process(analysis, *ix);
            step.is_some_and(|step| of.contains(&step))
        };
        let all = || analysis.process_ids();
        failed.retain(|at| !has_inner.contains(at));
        Tests {
            failed,
            is_failed,
            is_asked: all().filter(|ix| is_in(ix, &asked) || below[*ix]).collect(),
            is_within: all().filter(|ix| is_in(ix, &within)).collect(),
        }
    }
}

struct Finder<'a> {
    analysis: &'a Analysis,
    sure: Sure<'a>,
    tests: Tests,
    root: Option<ProcessIx>,
    /// For a process the ends of the children that failed by themselves, in order.
    failures: BTreeMap<ProcessIx, Vec<Ktime>>,
    /// The processes whose children that failed are tries of one command line, or one job beside others.
    alike: BTreeSet<ProcessIx>,
    /// For each process, whether its failure leads to the root's.
    leads: Arena<ProcessIx, bool>,
    /// For each process, whether the signal that killed it was sent to what is above it, too.
    with: Arena<ProcessIx, bool>,
}

impl<'a> Finder<'a> {
    fn new(
        analysis: &'a Analysis,
        (sure, tests): (Sure<'a>, Tests),
        root: Option<ProcessIx>,
    ) -> Finder<'a> {
        // What the parent's program started, and that started a program itself.
        let jobs = |parent: &'a Process| {
            let children = parent.children.iter();
            let children = children.map(|ix| (*ix, analysis.process(*ix)));
            let own = |it: &(_, &Process)| !it.1.execs.is_empty() && it.1.start >= program(parent);
            children.filter(own)
        };
        let failures = |parent: &'a Process| {
            let failed = jobs(parent).filter(|(ix, it)| fails(it) && !sure.on_purpose(*ix, it));
            let mut ends: Vec<Ktime> = failed.map(|(_, it)| it.end).collect();
            ends.sort_unstable();
            ends
        };
        let all = || analysis.process_ids().map(|ix| (ix, analysis.process(ix)));
        let ends = all().map(|(ix, it)| (ix, failures(it)));
        let failures = ends.filter(|(_, ends)| !ends.is_empty()).gather();
        let is_alike = |parent: &'a Process| {
            let mut failed = jobs(parent).map(|(_, it)| it).filter(|it| fails(it));
            let Some(first) = failed.next() else {
                return false;
            };
            match failed.next() {
                Some(again) => again.argv == first.argv && failed.all(|it| it.argv == first.argv),
                None => jobs(parent).any(|(_, it)| {
                    it.pid != first.pid && it.start < first.end && it.end > first.start
                }),
            }
        };
        let alike = all().filter(|(_, it)| fails(it) && is_alike(it));
        let alike = alike.map(|(ix, _)| ix).gather();
        let mut finder = Finder {
            analysis,
            sure,
            tests,
            root,
            failures,
            alike,
            leads: Arena::default(),
            with: Arena::default(),
        };
        finder.with = down(analysis, |ix, above: Option<&bool>| {
            let process = analysis.process(ix);
            let Some(parent) = process.parent.map(|ix| analysis.process(ix)) else {
                return false;
            };
            let signal = exit::killed_by(process.status);
            let is_same = signal.is_some() && signal == exit::killed_by(parent.status);
            let alone = finder.sure.out_of_memory.contains_key(&ix);
            is_same && !alone && (above == Some(&true) || is_killed_itself(parent))
        });
        finder.leads = down(analysis, |ix, above: Option<&bool>| {
            let parent = analysis.process(ix).parent.filter(|_| above == Some(&true));
            Some(ix) == root && finder.fails(ix)
                || parent
                    .and_then(|parent| finder.explains(ix, parent))
                    .is_some_and(|it| it != Explains::Maybe)
        });
        finder
    }

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
        self.held(&mut found, judged);
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

    /// The failures that a pipeline hid (`make | tee log`) from COMMAND, which succeeded: each from what explains it up to
    /// COMMAND.
    fn hidden(&self, failed: &[ProcessIx]) -> Vec<Vec<ProcessIx>> {
        let root = self
            .root
            .filter(|ix| self.analysis.process(*ix).status == Some(0));
        let Some(root) = root else {
            return Vec::new();
        };
        let hidden = failed.iter().copied().filter(|ix| self.is_hidden(*ix));
        let hidden: Vec<ProcessIx> = hidden.collect();
        if hidden.is_empty() {
            return Vec::new();
        }
        // The start of the last run that succeeded.
        let mut good: BTreeMap<&[u8], Ktime> = BTreeMap::new();
        for process in &self.analysis.processes {
            if process.status == Some(0) {
                let last = good.entry(&process.argv.bytes).or_default();
                *last = process.start.max(*last);
            }
        }
        let is_good_again = |ix: &ProcessIx| {
            let process = self.analysis.process(*ix);
            let last = good.get(&*process.argv.bytes);
            last.is_some_and(|start| *start >= process.end)
        };
        let last = hidden.into_iter().filter(|ix| !is_good_again(ix));
        let chains = last.take(HIDDEN).map(|ix| {
            let mut chain = self.chain(Some(ix));
            chain.reverse();
            // What the kernel killed, or what crashed, has a line of its own.
            let told = chain.iter().any(|ix| self.rank(*ix).is_some());
            (!told).then(|| [chain, vec![root]].concat())
        });
        chains.flatten().collect()
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

    fn leads(&self, ix: ProcessIx) -> bool {
        self.leads[ix]
    }

    /// Whether a process is a build tool or a test runner whose output another process read to its end, in a shell
    /// that succeeded, or below script(1).
    fn is_hidden(&self, ix: ProcessIx) -> bool {
        let process = self.analysis.process(ix);
        if !decides(process) || !self.sure.own.has(ix) || self.tests.is_asked.contains(&ix) {
            return false;
        }
        // `(cd sub && make) | tee log`
        let (mut top, mut above) = (process, process.parent);
        for _ in 0..SUBSHELLS {
            let parent = above.map(|ix| self.analysis.process(ix));
            let Some(parent) = parent.filter(|it| fails(it) && it.execs.is_empty()) else {
                break;
            };
            (top, above) = (parent, parent.parent);
        }
        let Some(parent) = above.map(|ix| self.analysis.process(ix)) else {
            return false;
        };
        let is_read = match passes(parent) {
            Passes::Status => self.has_reader(top, parent),
            _ => label::program(parent) == "script",
        };
        parent.status == Some(0) && is_read
    }

    /// Whether a shell started another process beside this one, right after it, which ended right after it.
    fn has_reader(&self, process: &Process, shell: &Process) -> bool {
        let children = &shell.children;
        let own = children.partition_point(|ix| self.analysis.process(*ix).start <= process.start);
        let next = children
            .get(own..)
            .unwrap_or_default()
            .iter()
            .take(SUBSHELLS);
        let mut next = next.map(|ix| self.analysis.process(*ix));
        next.any(|it| {
            let begins = it.start < process.end && it.start.since(process.start) <= AT_ONCE;
            let ends = it.end >= process.end && it.end.since(process.end) <= AT_ONCE;
            begins && ends && !fails(it)
        })
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

    /// Adds what held the steps back that failed: of a process its own step, if that has no tests.
    fn held(&self, found: &mut [(Rank, Failed)], judged: &Judged<'_>) {
        if found.is_empty() {
            return;
        }
        let list = judged.steps.list();
        let mut of: BTreeMap<ProcessIx, StepIx> = BTreeMap::new();
        for (at, step) in list.iter().enumerate() {
            if let Some(ix) = step.process.filter(|_| step.result.is_none()) {
                of.entry(ix).or_insert(at);
            }
        }
        let tests = list.iter().filter(|step| step.kind == StepKind::Test);
        let runners = tests.filter_map(|step| list.get(step.parent?)?.process);
        let runners: BTreeSet<ProcessIx> = runners.gather();
        of.retain(|ix, _| !runners.contains(ix));
        let verdicts = judged.verdicts();
        let shown: BTreeSet<StepIx> = found.iter().filter_map(|(_, it)| it.step).gather();
        for (_, it) in found {
            let step = it.step.or_else(|| of.get(&it.process?).copied());
            let verdict = step.and_then(|step| verdicts.told(step));
            it.held = verdict.map(Verdict::text);
            let no_memory = it
                .process
                .is_some_and(|ix| self.sure.out_of_memory.contains_key(&ix));
            if it.held.is_none() && it.step.is_none() && !no_memory {
                // Of a runner that does not say which test failed: the longest one held back.
                let inside = list.iter().enumerate().filter(|(_, step)| {
                    let silent = step.status.is_none() && step.result.is_none();
                    silent && step.kind == StepKind::Test && step.process == it.process
                });
                let inside = inside.filter_map(|(at, step)| Some((step, verdicts.told(at)?)));
                let longest = inside.max_by_key(|(step, _)| (step.wall(), Reverse(step.from)));
                // Of a process that a suite started, whose tests the recording does not tell: the suite.
                let around = it.process.and_then(|ix| {
                    let step = judged.steps.of_process(self.analysis, ix);
                    let mut around = judged.steps.around(step);
                    around.find(|at| verdicts.told(*at).is_some() && !shown.contains(at))
                });
                let around = around.and_then(|at| list.get(at).zip(verdicts.told(at)));
                let named = longest.or(around);
                it.held = named.map(|(step, held)| format!("{}: {}", step.name, held.text()));
            }
        }
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
        if let Some(rank) = self.sure.crash(self.analysis.process(ix)) {
            return Some(match self.is_death_test(ix) {
                true => Rank::Reason,
                false => rank,
            });
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

    /// From a process down: of the children that explain a failure the one that does so best.
    fn chain(&self, from: Option<ProcessIx>) -> Vec<ProcessIx> {
        let mut chain = Vec::new();
        let mut at = from;
        while let Some(ix) = at.filter(|ix| self.fails(*ix)) {
            chain.push(ix);
            let children = self.analysis.process(ix).children.iter();
            let best = children.filter_map(|ix| {
                let child = self.analysis.process(*ix);
                let explains = self.explains(*ix, at?)?;
                let is_test = self.tests.is_failed.contains(ix);
                let parent = self.analysis.process(at?);
                // It may be any of them: one with the shell's own status that is none of any failure, the last one,
                // or the one that took the longest, which is no mere question.
                let by = match explains {
                    Explains::Maybe => {
                        let is_own = code(parent) != Some(1) && code(child) == code(parent);
                        (is_own, self.gave_up(child, at?), child.wall())
                    }
                    _ => (false, false, child.end.0),
                };
                Some(((explains, is_test, by, *ix), *ix))
            });
            at = best.max_by_key(|(key, _)| *key).map(|(_, ix)| ix);
        }
        chain
    }

    /// Whether a process's failure is one of several possible reasons for its parent's.
    fn is_maybe(&self, ix: ProcessIx) -> bool {
        let parent = self.analysis.process(ix).parent;
        let explains = parent.and_then(|parent| self.explains(ix, parent));
        explains == Some(Explains::Maybe)
    }

    fn is_with(&self, ix: ProcessIx) -> bool {
        self.with[ix]
    }

    fn fails(&self, ix: ProcessIx) -> bool {
        fails(self.analysis.process(ix)) || self.sure.out_of_memory.contains_key(&ix)
    }

    /// A fork of a test that crashed, after which the test went on: it may have been to crash. So
    /// it comes after what made COMMAND fail.
    fn is_death_test(&self, ix: ProcessIx) -> bool {
        let process = self.analysis.process(ix);
        let goes_on = |parent| self.explains(ix, parent).is_none();
        self.tests.is_within.contains(&ix)
            && process.execs.is_empty()
            && process.parent.is_some_and(goes_on)
    }

    /// Whether a parent started nothing after a child's end.
    fn is_last(&self, child: &Process, parent: ProcessIx) -> bool {
        let last = self.analysis.process(parent).children.last();
        last.is_none_or(|ix| self.analysis.process(*ix).start <= child.end)
    }

    /// Whether a parent started nothing after a child's end, and soon ended itself.
    fn gave_up(&self, child: &Process, parent: ProcessIx) -> bool {
        let above = self.analysis.process(parent);
        self.is_last(child, parent) && until_the_end(child, above) <= soon(above)
    }

    /// Whether a child's failure may be the reason for its parent's.
    fn explains(&self, ix: ProcessIx, parent: ProcessIx) -> Option<Explains> {
        let child = self.analysis.process(ix);
        let (last, gave_up) = (self.is_last(child, parent), self.gave_up(child, parent));
        let (failures, is_alike) = (self.failures.get(&parent), self.alike.contains(&parent));
        let parent = self.analysis.process(parent);
        // What a program's predecessor in the same process started is none of its reasons.
        if !self.fails(ix) || !fails(parent) || child.start < program(parent) || timed_out(parent) {
            return None;
        }
        if is_killed_itself(parent) && !self.sure.out_of_memory.contains_key(&ix) {
            return None;
        }
        let on_purpose = self.sure.on_purpose(ix, child);
        // The parent, or what ended the parent, killed it for another one's failure.
        let failures = failures.map_or(&[][..], Vec::as_slice);
        let before = failures.partition_point(|end| *end <= child.end);
        let before = failures.get(..before).and_then(|it| it.last());
        if on_purpose && before.is_some_and(|end| child.end.since(*end) <= soon(parent)) {
            return None;
        }
        let is_same = code(child) == code(parent);
        match passes(parent) {
            Passes::Status if gave_up && is_same => Some(Explains::Last),
            // `make || exit 1`, or a script that counts failures and goes on. A short one long before the end may be
            // a question.
            Passes::Status if is_question(child) => None,
            Passes::Status => {
                let at_once = until_the_end(child, parent) <= AT_ONCE && (last || is_same);
                let is_long = child.wall() >= parent.wall() / LONG;
                let counts = at_once || is_alike || is_long || runs_jobs(child);
                (counts && (is_same || !on_purpose)).then_some(Explains::Maybe)
            }
            // No job, but a question of the tool's own.
            Passes::Any if child.execs.is_empty() && !gave_up && !is_unstarted(child) => None,
            Passes::Any if last => Some(Explains::Last),
            Passes::Any => Some(Explains::One),
            Passes::Tests => self.tests.is_failed.contains(&ix).then_some(Explains::One),
            Passes::Last => gave_up.then_some(Explains::Last),
        }
    }
}

/// The time from a child's end to its parent's, in ns.
fn until_the_end(child: &Process, parent: &Process) -> u64 {
    parent.end.since(child.end.min(parent.end))
}

/// When a process's program began: children of an earlier one are none of its.
fn program(process: &Process) -> Ktime {
    let last = process.execs.last();
    last.map_or(process.start, |exec| exec.start)
}

/// How long a process's last program ran, in ns: from the process's start, where it is the only one.
pub(crate) fn ran(process: &Process) -> u64 {
    match &*process.execs {
        [] | [_] => process.wall(),
        [.., last] => process.end.since(last.start),
    }
}

/// How well a child's failure explains its parent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Explains {
    /// A shell did other things after it, or ended with another status: it is one of several possible reasons.
    Maybe,
    /// One of several that do.
    One,
    /// The parent started nothing after it.
    Last,
}

/// What a program makes of a child that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passes {
    /// A shell ends with the status of one of its commands.
    Status,
    /// It fails if a child does.
    Any,
    /// It runs tests: they may fail on purpose what they start.
    Tests,
    /// Nothing is known of it: it fails if it ends at once.
    Last,
}

fn passes(process: &Process) -> Passes {
    let first = process.argv.args().next().unwrap_or_default();
    let interpreter = tools::by_path(first.strip_prefix(b"-").unwrap_or(first));
    match role(process) {
        Some(Role::Jobs) => return Passes::Any,
        Some(Role::Tests) => return Passes::Tests,
        Some(Role::Configure) => return Passes::Last,
        _ => {}
    }
    match family(process) {
        Some(
            Family::Builder
            | Family::Cargo
            | Family::CargoNextest
            | Family::Cmake
            | Family::CompilerCache
            | Family::CompilerDriver
            | Family::Linker
            | Family::Meson
            | Family::Npm
            | Family::Npx,
        ) => Passes::Any,
        _ if interpreter.is_some_and(|tool| tool.family == Family::Shell) => Passes::Status,
        _ => Passes::Last,
    }
}

/// Whether a signal killed a shell, or a tool that runs jobs. It was sent to that itself: of a child's death such a
/// program exits, but for SIGINT, which a shell sends itself then.
fn is_killed_itself(process: &Process) -> bool {
    let signal = exit::killed_by(process.status);
    let exits = || passes(process) == Passes::Status || runs_jobs(process);
    signal.is_some_and(|it| it != INTERRUPT) && exits()
}

/// For each process whether the test runner above it passed: a test that failed there was to fail (`WILL_FAIL` of
/// ctest, `should_fail` of meson), or has passed since.
fn expected(analysis: &Analysis) -> Arena<ProcessIx, bool> {
    let passes = down(analysis, |ix, above: Option<&bool>| {
        let process = analysis.process(ix);
        match role(process) {
            Some(Role::Tests) => process.status == Some(0),
            _ => above == Some(&true),
        }
    });
    let parents = analysis.processes.iter().map(|it| it.parent);
    parents.map(|ix| ix.is_some_and(|ix| passes[ix])).collect()
}

/// A tool whose failure is that of a job or a test: nobody asks by it.
fn runs_jobs(process: &Process) -> bool {
    matches!(role(process), Some(Role::Jobs | Role::Tests))
}

/// A tool whose failure is one, whatever a script makes of it: a build or tests, no make that says what it would do, and
/// nothing that runs any command.
fn decides(process: &Process) -> bool {
    let asks = || {
        let mut args = process.argv.args().skip(1);
        args.any(|arg| match arg {
            [b'-', b'-', ..] => label::has(ASKS, arg),
            [b'-', letters @ ..] => letters.iter().any(|it| b"npqt".contains(it)),
            _ => false,
        })
    };
    match family(process) {
        Some(Family::Xargs | Family::Parallel) => false,
        Some(Family::Make | Family::Ninja) => runs_jobs(process) && !asks(),
        _ => runs_jobs(process),
    }
}

/// The long options of a make that says what it would do.
const ASKS: &str = "--dry-run --just-print --print-data-base --question --recon --touch";

fn role(process: &Process) -> Option<Role> {
    label::role(&label::program(process), &process.argv)
}

fn family(process: &Process) -> Option<Family> {
    let program = label::program(process);
    let (tool, _) = label::tool_of(&program)?;
    Some(tool.family)
}

/// A program that ends at once for a child's failure does so within this time, in ns.
const AT_ONCE: u64 = 500_000_000;

/// What scripts ask by its status beside what is known to answer questions, separated by spaces.
const QUESTIONS: &str = "[ egrep fgrep getent grep pgrep pidof test";

/// A program that scripts ask. It is the reason of a failure only if the script ends with its status right after it.
fn is_question(process: &Process) -> bool {
    let asked = || label::has(QUESTIONS, label::program(process).as_bytes());
    family(process) == Some(Family::Query) || asked()
}

/// A child that took a part of a script's time is no mere question: one in so many.
const LONG: u64 = 20;

/// A program that ends for a child's failure does so within this time, in ns: half a second, or a
/// twentieth of its life.
fn soon(process: &Process) -> u64 {
    (process.wall() / 20).max(AT_ONCE)
}

/// The child of a shell or of make that says so has executed nothing.
fn is_unstarted(process: &Process) -> bool {
    process.status.is_some_and(status::is_unstarted)
}

fn code(process: &Process) -> Option<u32> {
    process.status.map(status::in_shell)
}

fn fails(process: &Process) -> bool {
    exit::failed(process.status)
}
