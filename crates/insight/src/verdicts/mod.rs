//! Makes the verdict on each step: on which work or wait the step spent most of its wall time, and which tasks were
//! involved.
//!
//! The verdict rests on the step's own critical path. If a step failed or was slower than its neighbours while
//! something delayed the step, the verdict names this cause as a hint, with the evidence. If the evidence is weak,
//! there is no hint.

mod division;
pub mod parts;
pub mod step_sums;
mod words;

use std::cell::OnceCell;
use std::collections::BTreeMap;

use tr_analyze::contention::{Contention, Wait};
use tr_analyze::critical_path::{Paths, Segment};
use tr_analyze::model::{Analysis, Basis};
use tr_analyze::status::ended_in_time;

use self::division::{Divider, StepParts};
use crate::processes::who;
use crate::steps::times::{own_path, AllTimes, Fineness, OwnSegment};
use crate::steps::{Step, StepIx, Steps};
use crate::verdicts::parts::{PartTimes, WallPart};
use crate::Recording;
use tr_programs::steps::StepKind;
use tr_text::phrase::Phrase;

/// A verdict names a part of a step's wall time only if the part is at least two fifths of the wall time. A part that
/// is not the step's own ([`StepVerdict::is_own`]) must also be at least `SHORTEST_PART` nanoseconds long. With these
/// limits, `verdicts.py` found 160 of 165 planted faults, and reported a fault for 2 of 111 failures without one.
const OF_WALL: (u64, u64) = (2, 5);
const SHORTEST_PART: u64 = 200_000_000;
/// A failed test may have exceeded a time limit that the recording does not show. The test is assumed to have exceeded
/// such a limit if it lacked a CPU for at least this long, in nanoseconds. The first value is for a test in a suite.
/// The second value is for a test that may itself be a whole suite. Without this rule, `verdicts.py` found failures on
/// a busy machine whose run-queue wait was wrongly reported as the reason.
const TIME_LIMITS: [u64; 2] = [500_000_000, 1_000_000_000];
/// A step has no verdict if more than a tenth (1/`UNKNOWN_PART`) of its wall time is unknown. A decision: a printed
/// figure never hides more than a tenth.
const UNKNOWN_PART: u64 = 10;
/// The least number of other tests in a test's suite for which a median is computed. A guess: the median of fewer tests
/// is not typical.
const SUITE: usize = 3;
/// At most this many verdicts of a recording name the tasks that had the CPUs or that the step waited for. A bound on
/// the work of finding these tasks.
const NAMED_VERDICTS: usize = 50;
/// The largest number of tasks that a verdict names. A task with too little time ([`NAMED_PART`]) is never named.
pub const NAMED_TASKS: usize = 3;
/// A verdict names a task if the task has at least a twentieth (1/`NAMED_PART`) of the time of all tasks in the
/// verdict. A decision: a smaller part would not change what a reader does.
pub const NAMED_PART: u64 = 20;

/// The conclusion about the work or wait on which a step spent most of its wall time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepVerdict {
    /// The largest part of the step's wall time; [`WallPart::Unknown`] if no part stands out.
    pub part: WallPart,
    /// The time in nanoseconds of the part that `part` names. All waits for a CPU count together, whatever their cause.
    pub ns: u64,
    /// The wall time in nanoseconds of the step that the verdict is about.
    pub wall: u64,
    /// For a test, the median of the CPU shares of the other tests of its suite. The CPU share of a test is the CPU
    /// time that the test got, as a percentage of the CPU time that the test wanted.
    pub median: Option<u64>,
    /// The wall time of the step divided into all of its parts, in nanoseconds.
    pub parts: PartTimes,
    /// The time in nanoseconds that the step waited in run queues while its own tasks had the CPUs. The part `Work`
    /// includes this time.
    pub queued: u64,
    /// The names of the tasks that had the CPUs or that the step waited for, with their times in nanoseconds, the
    /// longest first. Only the first `NAMED_VERDICTS` reported verdicts have names.
    pub by: Vec<(Phrase, u64)>,
    /// Whether the verdict is reported: the step failed, or was slow (a test with less than half of the CPU share that
    /// is the median of its suite), because of something other than its own work or sleep.
    pub is_reported: bool,
    /// Whether a time-out may explain a failure of the step: a time-out ended the step, or timers ended waits inside
    /// the step while another thread of the step had no CPU, or waited for a disk or in the kernel.
    pub is_late: bool,
}

impl StepVerdict {
    /// Whether the verdict gives the step itself as the reason: the step's own work, its own sleep, or other waits of
    /// its own.
    pub fn is_own(&self) -> bool {
        matches!(
            self.part,
            WallPart::Work | WallPart::Sleep | WallPart::Other
        )
    }
}

/// The steps of a recording, together with the verdicts on these steps. The verdicts are computed when they are first
/// needed.
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

    /// The times of all steps of the recording, where `path` is the recording's critical path. The verdicts are
    /// computed with them and kept. See [`JudgedTimes::new`].
    pub fn times(&self, path: &[Segment], fineness: Option<Fineness>) -> AllTimes {
        self.times_with(path, fineness, Contention::new(self.analysis))
    }

    /// Computes the times of all steps of a recording like [`StepVerdicts::times`], for a caller that already knows
    /// which tasks had the CPUs ([`Contention::new`]).
    pub fn times_with(
        &self,
        path: &[Segment],
        fineness: Option<Fineness>,
        contention: Option<Contention>,
    ) -> AllTimes {
        let judged = JudgedTimes::by(self.analysis, &self.steps, path, fineness, contention);
        self.verdicts.get_or_init(|| judged.verdicts);
        judged.times
    }
}

/// The verdicts on all steps of a recording, which say on which work or wait a step spent most of its wall time.
#[derive(Clone, Debug, Default)]
pub struct Verdicts(Vec<Option<StepVerdict>>);

impl Verdicts {
    /// Computes the verdicts on all steps of a recording. A recording without scheduling events has none.
    pub fn new(analysis: &Analysis, steps: &Steps) -> Verdicts {
        let Ok(paths) = Paths::new(analysis) else {
            return Verdicts::default();
        };
        let Some(mut judge) = Judge::new(analysis, steps, Contention::new(analysis)) else {
            return Verdicts::default();
        };
        for at in 0..steps.list().len() {
            if let Some(path) = own_path(&paths, steps, at) {
                judge.divide(at, &path);
            }
        }
        judge.verdicts(&paths)
    }

    /// Whether the recording has enough facts for verdicts on its steps.
    pub fn are_known(&self) -> bool {
        !self.0.is_empty()
    }

    /// The verdict on a step; `None` if nothing in the step's time stands out, or if not enough is known.
    pub fn of(&self, step: StepIx) -> Option<&StepVerdict> {
        self.figures(step)
            .filter(|verdict| verdict.part != WallPart::Unknown)
    }

    /// The verdict on a step with its figures, even if no part of the step's wall time stands out. In that case, the
    /// verdict names the part [`WallPart::Unknown`].
    pub fn figures(&self, step: StepIx) -> Option<&StepVerdict> {
        self.0.get(step)?.as_ref()
    }

    /// The verdict on a step that failed or was slow, if something other than the step's own work delayed it; otherwise
    /// `None`.
    pub fn reported(&self, step: StepIx) -> Option<&StepVerdict> {
        self.of(step).filter(|verdict| verdict.is_reported)
    }
}

/// The times of a recording's steps, together with the verdicts on the steps. Both are computed in one walk of each
/// step's own critical path.
pub struct JudgedTimes {
    pub times: AllTimes,
    pub verdicts: Verdicts,
}

impl JudgedTimes {
    /// Computes the times of a recording's steps and the verdicts on them; `path` is the recording's critical path. If
    /// `fineness` is given, the times also have each step's course: the parts of its wall time in the order of time.
    pub fn new(
        analysis: &Analysis,
        steps: &Steps,
        path: &[Segment],
        fineness: Option<Fineness>,
    ) -> JudgedTimes {
        JudgedTimes::by(analysis, steps, path, fineness, Contention::new(analysis))
    }

    /// Computes the times of a recording's steps and the verdicts on them like [`JudgedTimes::new`], for a caller that
    /// already knows which tasks had the CPUs ([`Contention::new`]).
    fn by(
        analysis: &Analysis,
        steps: &Steps,
        path: &[Segment],
        fineness: Option<Fineness>,
        contention: Option<Contention>,
    ) -> JudgedTimes {
        let mut times = AllTimes::without_parts(analysis, steps, path);
        let paths = Paths::new(analysis).ok();
        let mut judge = Judge::new(analysis, steps, contention);
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

/// Divides the own critical paths of a recording's steps first and judges the steps afterwards, because the verdict on
/// a step depends on the other steps of its suite.
struct Judge<'a> {
    analysis: &'a Analysis,
    steps: &'a Steps,
    divider: Divider<'a>,
    divided: Vec<Option<StepParts>>,
}

impl<'a> Judge<'a> {
    /// Prepares the verdicts on a recording's steps. `None` for a recording without scheduling events, which has no
    /// verdicts.
    fn new(
        analysis: &'a Analysis,
        steps: &'a Steps,
        contention: Option<Contention>,
    ) -> Option<Judge<'a>> {
        (analysis.basis() == Basis::Events).then(|| Judge {
            analysis,
            steps,
            divider: Divider::new(analysis, steps, contention),
            divided: vec![None; steps.list().len()],
        })
    }

    fn divide(&mut self, at: StepIx, path: &[OwnSegment]) {
        if let Some(divided) = self.divided.get_mut(at) {
            *divided = Some(self.divider.divide(at, path));
        }
    }

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
            // If a process of the step was killed for lack of memory, more CPU time would not have prevented the
            // failure.
            verdict.is_reported &= !(verdict.part.is_starved() && divider.lacked_memory(at));
            Some(verdict)
        });
        let mut all = Verdicts(verdicts.collect());
        let reported = all.0.iter_mut().enumerate();
        let reported = reported.filter_map(|(at, entry)| {
            Some((at, entry.as_mut().filter(|verdict| verdict.is_reported)?))
        });
        for (at, verdict) in reported.take(NAMED_VERDICTS) {
            let divided = divided.get(at).and_then(Option::as_ref);
            verdict.by = match &divider.contention {
                Some(contention) if verdict.part == WallPart::Others => {
                    let path = own_path(paths, steps, at).unwrap_or_default();
                    let waits = divider.waits(at, &path);
                    let others = others(contention, analysis, waits);
                    named(others.map(|(name, ns)| (name.into(), ns)).collect())
                }
                _ => divided.map_or_else(Vec::new, |divided| named(divided.by(verdict.part))),
            };
        }
        all
    }
}

/// For each step, whether a test or a failed step is inside it. In that case, the inner step gets the verdict about the
/// failure.
fn has_inner(steps: &Steps) -> Vec<bool> {
    steps.with_any_inside(|_, step| step.kind == StepKind::Test || step.failed())
}

/// Whether a test without a known result may have failed, because its process failed. Tests that run in threads (Rust's
/// libtest) have no result of their own.
fn may_have_failed(steps: &Steps, step: &Step) -> bool {
    let around = step.parent.and_then(|at| steps.list().get(at));
    let around = around.filter(|outer| outer.process == step.process && outer.failed());
    let silent = step.status.is_none() && step.result.is_none();
    step.kind == StepKind::Test && silent && around.is_some()
}

/// Judges a step by the parts of its wall time. `failed` says whether the step failed and has no test and no failed
/// step inside it. `None` if the step has no length, or if too much of its time is unknown.
fn judge(
    step: &Step,
    failed: bool,
    divided: &StepParts,
    median: Option<u64>,
) -> Option<StepVerdict> {
    let wall = step.wall();
    if wall == 0
        || divided
            .times
            .get(WallPart::Unknown)
            .saturating_mul(UNKNOWN_PART)
            > wall
    {
        return None;
    }
    let starved = divided.times.sum(WallPart::is_starved);
    let waits = WallPart::ALL.into_iter().filter(|part| !part.is_starved());
    let waits = waits.map(|part| (divided.times.get(part), part));
    let cpu = WallPart::ALL.into_iter().filter(|part| part.is_starved());
    // If several causes kept the step from a CPU, the verdict names the cause that did so for the longest time.
    let who = cpu.rev().max_by_key(|part| divided.times.get(*part))?;
    let all = waits.chain([(starved, who)]);
    let (ns, part) = all.rev().max_by_key(|(ns, _)| *ns)?;
    let large = ns.saturating_mul(OF_WALL.1) >= wall.saturating_mul(OF_WALL.0);
    let held = StepVerdict {
        part,
        ns,
        wall,
        median,
        parts: divided.times.clone(),
        queued: divided.queued,
        by: Vec::new(),
        is_reported: false,
        is_late: divided.timers >= SHORTEST_PART || step.status.is_some_and(ended_in_time),
    };
    if !large || part == WallPart::Unknown || !held.is_own() && ns < SHORTEST_PART {
        return Some(StepVerdict {
            part: WallPart::Unknown,
            ns: 0,
            ..held
        });
    }
    let slow = median.zip(held.parts.share());
    let slow = slow.is_some_and(|(median, share)| share.saturating_mul(2) < median);
    let slow = slow && part.is_starved();
    let is_late = held.is_late;
    let [one, suite] = TIME_LIMITS;
    let late = if median.is_some() { one } else { suite };
    let is_test = matches!(step.kind, StepKind::Test | StepKind::Mark);
    let failed = failed
        && match part {
            // A slow machine explains a failure only if the failure can depend on time. A compiler's error does not
            // depend on time. A test that failed after a short wait probably failed by an assertion.
            WallPart::Disk | WallPart::Memory => is_test || is_late,
            part if part.is_starved() => is_late || is_test && (slow || starved >= late),
            _ => true,
        };
    let is_reported = !held.is_own() && part != WallPart::Steps;
    let is_reported = is_reported && (failed || slow && step.kind == StepKind::Test);
    Some(StepVerdict {
        is_reported,
        ..held
    })
}

/// For each suite, the CPU shares of its tests in ascending order, so that medians can be read off. The CPU share of a
/// test is the CPU time that the test got, as a percentage of the CPU time that the test wanted. The tests directly
/// inside one step form a suite.
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

    /// The median of the CPU shares of the other tests in the suite of the given test. The CPU share of a test is the
    /// CPU time that the test got, as a percentage of the CPU time that the test wanted. `None` if the step is not a
    /// test, if its own CPU share is not known, or if the suite has fewer than [`SUITE`] other tests.
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

/// The names of the tasks that had the CPUs during the given waits, with their times in nanoseconds.
pub fn others(
    contention: &Contention,
    analysis: &Analysis,
    waits: Vec<Wait>,
) -> impl Iterator<Item = (String, u64)> {
    let (_, names) = contention.by_name(analysis, waits.into_iter());
    let names = names.into_iter();
    names.filter_map(|(occupant, ns)| Some((who::occupant(occupant)?, ns)))
}

/// Keeps the tasks of a list that a verdict names: those with the longest times, at most [`NAMED_TASKS`].
fn named(mut names: Vec<(Phrase, u64)>) -> Vec<(Phrase, u64)> {
    let sum = names
        .iter()
        .fold(0, |sum: u64, (_, ns)| sum.saturating_add(*ns));
    names.sort_unstable_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    names.retain(|(_, ns)| *ns > 0 && ns.saturating_mul(NAMED_PART) >= sum);
    names.truncate(NAMED_TASKS);
    names
}

#[cfg(test)]
mod tests;
