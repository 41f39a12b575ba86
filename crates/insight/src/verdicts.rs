//! The verdict on each step: what most of its wall time went to, and who or what that was.
//!
//! It rests on the step's own critical path. A step that failed, or that was slower than its
//! neighbours, while it was held back is told so: a hint with its evidence. Where the evidence is
//! thin there is none.

mod division;
mod words;

use std::cell::OnceCell;
use std::collections::BTreeMap;

use tr_analyze::contention::{Contention, Wait};
use tr_analyze::critical_path::{Paths, Segment};
use tr_analyze::model::{Analysis, Basis};
use tr_analyze::status::ended_in_time;

use self::division::{Divider, StepParts};
use super::parts::{Part, PartTimes};
use crate::steps::times::{own_path, AllTimes, Fineness, OwnSegment};
use crate::steps::{Step, StepIx, Steps};
use crate::who;
use crate::Recording;
use tr_programs::steps::StepKind;

/// A part is the verdict if it has two fifths of the wall time, and this much, in ns. With these limits `verdicts.py` found 160
/// of 165 planted faults, and a fault in 2 of 111 failures that had none.
const OF_WALL: (u64, u64) = (2, 5);
const LEAST: u64 = 200_000_000;
/// A failed test that had no CPU for so long, in ns, may have run out of time, whatever else tells so:
/// one of several, and one that may be a whole suite. Without them `verdicts.py` had failures beside load that were
/// explained by their run-queue wait.
const LATE: [u64; 2] = [500_000_000, 1_000_000_000];
/// A step of whose time a tenth is unknown has no verdict. A decision: a printed figure never hides more than a
/// tenth.
const UNKNOWN: u64 = 10;
/// A suite has a median if it has so many other tests. A guess: the middle of fewer is one of them.
const SUITE: usize = 3;
/// The most steps that are told with names.
const NAMED: usize = 50;
/// The most names, and the part of the time that the least of them has: a twentieth.
pub(crate) const NAMES: usize = 3;
pub(crate) const COUNTS: u64 = 20;

/// The conclusion on a step's wall time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The part of the wall time that is largest.
    pub part: Part,
    /// The time of that, in ns; of waits for a CPU together.
    pub ns: u64,
    /// The wall time in ns.
    pub wall: u64,
    /// The median of the share of its `wanted` time that the suite's other tests had, in percent.
    pub median: Option<u64>,
    /// All parts of the wall time, in ns.
    pub parts: PartTimes,
    /// The part of `Work` in run queues while the step's own tasks had the CPUs, in nanoseconds.
    pub queued: u64,
    /// The names of the tasks that had the CPUs or that the step waited for, with their times in nanoseconds.
    pub by: Vec<(String, u64)>,
    /// Whether the verdict is reported: the step failed or was slow because of something other than its own
    /// work or sleep.
    pub told: bool,
    /// A time-out ended it, or a wait inside it while something held it back.
    pub is_late: bool,
}

impl Verdict {
    /// Whether the reason is the step's own work, or its own sleep.
    pub fn is_own(&self) -> bool {
        matches!(self.part, Part::Work | Part::Sleep | Part::Other)
    }
}

/// A recording's steps, and the verdicts on them, which are found when they are first asked for.
pub struct StepVerdicts<'a> {
    analysis: &'a Analysis,
    pub steps: Steps,
    verdicts: OnceCell<Verdicts>,
}

impl<'a> StepVerdicts<'a> {
    pub fn new(recording: &'a Recording) -> StepVerdicts<'a> {
        let Recording {
            analysis, imports, ..
        } = recording;
        StepVerdicts {
            analysis,
            steps: Steps::new(analysis, &imports.spans),
            verdicts: OnceCell::new(),
        }
    }

    pub fn verdicts(&self) -> &Verdicts {
        let new = || Verdicts::new(self.analysis, &self.steps);
        self.verdicts.get_or_init(new)
    }

    /// The times of the steps; `path` is the recording's critical path. Unless the verdicts are known already, this finds
    /// them, too. See [`JudgedTimes::new`].
    pub fn times(&self, path: &[Segment], fineness: Option<Fineness>) -> AllTimes {
        let judged = JudgedTimes::new(self.analysis, &self.steps, path, fineness);
        self.verdicts.get_or_init(|| judged.verdicts);
        judged.times
    }
}

/// The verdicts on a recording's steps.
#[derive(Clone, Debug, Default)]
pub struct Verdicts(Vec<Option<Verdict>>);

impl Verdicts {
    /// The verdicts on these steps; none without scheduling events.
    pub fn new(analysis: &Analysis, steps: &Steps) -> Verdicts {
        let Ok(paths) = Paths::new(analysis) else {
            return Verdicts::default();
        };
        let Some(mut judge) = Judge::new(analysis, steps) else {
            return Verdicts::default();
        };
        for at in 0..steps.list().len() {
            if let Some(path) = own_path(&paths, steps, at) {
                judge.divide(at, &path);
            }
        }
        judge.verdicts(&paths)
    }

    /// Whether the recording tells enough for verdicts.
    pub fn are_known(&self) -> bool {
        !self.0.is_empty()
    }

    /// The verdict on a step; `None`: nothing stands out, or not enough is known.
    pub fn of(&self, step: StepIx) -> Option<&Verdict> {
        self.figures(step)
            .filter(|verdict| verdict.part != Part::Unknown)
    }

    /// A step's figures; the verdict is [`Part::Unknown`] if nothing stands out.
    pub fn figures(&self, step: StepIx) -> Option<&Verdict> {
        self.0.get(step)?.as_ref()
    }

    /// The verdict on a step that failed or was slow, if something delayed the step.
    pub fn told(&self, step: StepIx) -> Option<&Verdict> {
        self.of(step).filter(|verdict| verdict.told)
    }
}

/// The times of a recording's steps and the verdicts on the steps, found by one walk of each step's own critical path.
pub struct JudgedTimes {
    pub times: AllTimes,
    pub verdicts: Verdicts,
}

impl JudgedTimes {
    /// The times and the verdicts of these steps; `path` is the recording's critical path. With a fineness, the times have
    /// the courses of the steps.
    pub fn new(
        analysis: &Analysis,
        steps: &Steps,
        path: &[Segment],
        fineness: Option<Fineness>,
    ) -> JudgedTimes {
        let mut times = AllTimes::without_parts(analysis, steps, path);
        let paths = Paths::new(analysis).ok();
        let mut judge = Judge::new(analysis, steps);
        times.divide(steps, paths.as_ref(), fineness, |at, path| {
            if let Some(judge) = &mut judge {
                judge.divide(at, path);
            }
        });
        let verdicts = judge.zip(paths.as_ref());
        let verdicts = verdicts.map(|(judge, paths)| judge.verdicts(paths));
        JudgedTimes {
            times,
            verdicts: verdicts.unwrap_or_default(),
        }
    }
}

/// Divides the own critical paths of a recording's steps, and judges the steps after that: a step's verdict depends on
/// the other steps of its suite.
struct Judge<'a> {
    analysis: &'a Analysis,
    steps: &'a Steps,
    divider: Divider<'a>,
    divided: Vec<Option<StepParts>>,
}

impl<'a> Judge<'a> {
    /// `None` without scheduling events.
    fn new(analysis: &'a Analysis, steps: &'a Steps) -> Option<Judge<'a>> {
        (analysis.basis() == Basis::Events).then(|| Judge {
            analysis,
            steps,
            divider: Divider::new(analysis, steps),
            divided: vec![None; steps.list().len()],
        })
    }

    /// Divides a step's own critical path.
    fn divide(&mut self, at: StepIx, path: &[OwnSegment]) {
        if let Some(divided) = self.divided.get_mut(at) {
            *divided = Some(self.divider.divide(at, path));
        }
    }

    /// The verdicts on all steps, by the divided paths.
    fn verdicts(self, paths: &Paths<'_>) -> Verdicts {
        let Judge {
            analysis,
            steps,
            divider,
            divided,
        } = self;
        let has_inner = has_inner(steps);
        let medians = Medians::of_all(steps.list().iter(), &divided);
        let list = steps.list().iter().zip(&divided).enumerate();
        let verdicts = list.map(|(at, (step, divided))| {
            let divided = divided.as_ref()?;
            let failed = step.failed() || may_have_failed(steps, step);
            let failed = failed && has_inner.get(at) != Some(&true);
            let mut verdict = judge(step, failed, divided, medians.of(step, at, divided))?;
            // More CPU time would not have spared it.
            verdict.told &= !(verdict.part.is_starved() && divider.lacked_memory(at));
            Some(verdict)
        });
        let mut all = Verdicts(verdicts.collect());
        let told = all.0.iter_mut().enumerate();
        let told = told
            .filter_map(|(at, entry)| Some((at, entry.as_mut().filter(|verdict| verdict.told)?)));
        for (at, verdict) in told.take(NAMED) {
            let divided = divided.get(at).and_then(Option::as_ref);
            verdict.by = match &divider.contention {
                Some(contention) if verdict.part == Part::Others => {
                    let path = own_path(paths, steps, at).unwrap_or_default();
                    let waits = divider.waits(at, &path);
                    named(others(contention, analysis, waits).collect())
                }
                _ => divided.map_or_else(Vec::new, |divided| named(divided.by(verdict.part))),
            };
        }
        all
    }
}

/// For each step, whether a test or a failed step is in it: that is what failed.
fn has_inner(steps: &Steps) -> Vec<bool> {
    steps.with_any_inside(|_, step| step.kind == StepKind::Test || step.failed())
}

/// A test of which no result is known, in a process that failed (libtest's threads).
fn may_have_failed(steps: &Steps, step: &Step) -> bool {
    let around = step.parent.and_then(|at| steps.list().get(at));
    let around = around.filter(|outer| outer.process == step.process && outer.failed());
    let silent = step.status.is_none() && step.result.is_none();
    step.kind == StepKind::Test && silent && around.is_some()
}

/// The verdict on a step. `failed`: it failed, and no step inside it did.
fn judge(step: &Step, failed: bool, divided: &StepParts, median: Option<u64>) -> Option<Verdict> {
    let wall = step.wall();
    if wall == 0 || divided.times.get(Part::Unknown).saturating_mul(UNKNOWN) > wall {
        return None;
    }
    let starved = divided.times.sum(Part::is_starved);
    let waits = Part::ALL.into_iter().filter(|part| !part.is_starved());
    let waits = waits.map(|part| (divided.times.get(part), part));
    let cpu = Part::ALL.into_iter().filter(|part| part.is_starved());
    // Of several that kept it from a CPU the one that did so for longest.
    let who = cpu.rev().max_by_key(|part| divided.times.get(*part))?;
    let all = waits.chain([(starved, who)]);
    let (ns, part) = all.rev().max_by_key(|(ns, _)| *ns)?;
    let large = ns.saturating_mul(OF_WALL.1) >= wall.saturating_mul(OF_WALL.0);
    let held = Verdict {
        part,
        ns,
        wall,
        median,
        parts: divided.times.clone(),
        queued: divided.queued,
        by: Vec::new(),
        told: false,
        is_late: divided.timers >= LEAST || step.status.is_some_and(ended_in_time),
    };
    if !large || part == Part::Unknown || !held.is_own() && ns < LEAST {
        return Some(Verdict {
            part: Part::Unknown,
            ns: 0,
            ..held
        });
    }
    let slow = median.zip(held.parts.share());
    let slow = slow.is_some_and(|(median, share)| share.saturating_mul(2) < median);
    let slow = slow && part.is_starved();
    let is_late = held.is_late;
    let [one, suite] = LATE;
    let late = if median.is_some() { one } else { suite };
    let is_test = matches!(step.kind, StepKind::Test | StepKind::Mark);
    let failed = failed
        && match part {
            // A compiler's error is none of the machine's, and an assertion of 50 ms none of 300.
            Part::Disk | Part::Memory => is_test || is_late,
            part if part.is_starved() => is_late || is_test && (slow || starved >= late),
            _ => true,
        };
    let told = !held.is_own() && part != Part::Steps;
    let told = told && (failed || slow && step.kind == StepKind::Test);
    Some(Verdict { told, ..held })
}

/// The shares of the tests of each suite: those with the same step around them.
struct Medians(BTreeMap<Option<StepIx>, Vec<(u64, StepIx)>>);

impl Medians {
    fn of_all<'s>(steps: impl Iterator<Item = &'s Step>, divided: &[Option<StepParts>]) -> Medians {
        let mut suites: BTreeMap<Option<StepIx>, Vec<(u64, StepIx)>> = BTreeMap::new();
        for (at, (step, divided)) in steps.zip(divided).enumerate() {
            let Some(divided) = divided.as_ref().filter(|_| step.kind == StepKind::Test) else {
                continue;
            };
            if let Some(share) = divided.times.share() {
                suites.entry(step.parent).or_default().push((share, at));
            }
        }
        suites.values_mut().for_each(|suite| suite.sort_unstable());
        Medians(suites)
    }

    /// The median of the other tests of a step's suite.
    fn of(&self, step: &Step, at: StepIx, divided: &StepParts) -> Option<u64> {
        let suite = self.0.get(&step.parent)?;
        let own = suite.binary_search(&(divided.times.share()?, at)).ok()?;
        let others = suite.len() - 1;
        let middle = others / 2;
        let place = if middle < own { middle } else { middle + 1 };
        let (share, _) = suite.get(place).filter(|_| others >= SUITE)?;
        Some(*share)
    }
}

/// The names of the tasks that had the CPUs during some waits, with their times in nanoseconds.
pub fn others(
    contention: &Contention,
    analysis: &Analysis,
    waits: Vec<Wait>,
) -> impl Iterator<Item = (String, u64)> {
    let (_, names) = contention.by_name(analysis, waits.into_iter());
    let names = names.into_iter();
    names.filter_map(|(occupant, ns)| Some((who::occupant(occupant)?, ns)))
}

/// The names with the longest times.
fn named(mut names: Vec<(String, u64)>) -> Vec<(String, u64)> {
    let sum = names
        .iter()
        .fold(0, |sum: u64, (_, ns)| sum.saturating_add(*ns));
    names.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    names.retain(|(_, ns)| *ns > 0 && ns.saturating_mul(COUNTS) >= sum);
    names.truncate(NAMES);
    names
}

#[cfg(test)]
#[path = "tests/verdicts.rs"]
mod tests;
