//! Sums up the steps of a recording by kind and name.

use std::collections::BTreeMap;

use tr_analyze::critical_path::Segment;
use tr_analyze::kinds::{ByKind, TimeKind};
use tr_analyze::model::Times;

use crate::path::kinds::is_known;
use crate::steps::Step;
use crate::verdicts::parts::{PartTimes, WallPart};
use crate::verdicts::{StepVerdict, StepVerdicts};
use crate::Recording;
use tr_programs::steps::StepKind;
use tr_text::phrase::Phrase;

/// The sums over all steps of one kind and name in one run, in nanoseconds. A sum is `None` if it is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepSum {
    pub count: u64,
    pub failed: u64,
    pub wall: u64,
    /// The wall time in nanoseconds of the longest of the steps of this name.
    pub longest: u64,
    /// The CPU time of all threads in the steps of this name, in nanoseconds.
    pub on_cpu: Option<u64>,
    /// The time in run queues of all threads in the steps of this name, in nanoseconds.
    pub run_queue: Option<u64>,
    /// The wall time of the steps of this name, divided by kind of time (such as time on a CPU or waits for a disk).
    pub spent: Option<ByKind>,
    /// The wall time in nanoseconds in which the steps' own critical paths were in a run queue.
    pub starved: Option<u64>,
    pub path: Option<u64>,
    /// The wall time of the steps of this name, divided into parts by cause; `None` if one of the steps has no known
    /// division.
    pub parts: Option<PartTimes>,
    /// The time in nanoseconds that the steps waited in run queues while their own tasks had the CPUs. The part `Work`
    /// of their wall time includes this time.
    pub queued: u64,
    /// The number of the steps of this name that failed or were slow while something other than their own work delayed
    /// them.
    pub held_back: Option<u64>,
    /// The verdict in words on the first step that is counted in `held_back`, with the evidence; `None` if no step is
    /// counted there.
    pub held: Option<String>,
    /// The verdict in words on one step of this name, and the length in nanoseconds of the part of the step's wall time
    /// that the verdict names. This step is the longest one that something delayed, or the longest of all steps of this
    /// name if nothing delayed any of them. `None` if no part of that step's time stands out.
    pub verdict: Option<(String, u64)>,
    /// For the step that `verdict` is about: whether this step is counted in `held_back`, and its wall time in
    /// nanoseconds.
    pub judged: (bool, u64),
}

impl StepSum {
    fn none(verdicts: bool) -> StepSum {
        StepSum {
            on_cpu: Some(0),
            run_queue: Some(0),
            spent: Some(ByKind::default()),
            starved: Some(0),
            path: Some(0),
            parts: Some(PartTimes::default()),
            held_back: verdicts.then_some(0),
            ..StepSum::default()
        }
    }

    /// The length in nanoseconds of one part of the steps' wall time. Here, the time in run queues while the steps' own
    /// tasks had the CPUs belongs to the part `Own` and not to the part `Work`.
    pub fn part(&self, part: WallPart) -> Option<u64> {
        let mut parts = self.parts.clone()?;
        parts.take(WallPart::Work, self.queued, WallPart::Own);
        Some(parts.get(part))
    }
}

/// The sums over the steps of one recording, by the kind of the steps and the name that is equal in all runs.
pub type StepSums = BTreeMap<(StepKind, Phrase), StepSum>;

/// Sums up the steps of a recording by kind and name. `path` is the recording's critical path. A step that is a moment
/// (the mark of a point in time) counts only if it has a result.
pub fn sums(recording: &Recording, path: &[Segment]) -> StepSums {
    let analysis = &recording.analysis;
    let (judged, basis) = (StepVerdicts::new(recording), analysis.basis());
    let times = judged.times(path, None);
    let (steps, verdicts) = (&judged.steps, judged.verdicts());
    let mut sums = StepSums::new();
    let known = steps.list().iter().zip(&times.steps).enumerate();
    let counts = |step: &Step| !step.is_moment() || step.result.is_some();
    for (at, (step, times)) in known.filter(|(_, (step, _))| counts(step)) {
        let key = (step.kind, step.stable_name());
        let none = || StepSum::none(verdicts.are_known());
        let sum = sums.entry(key).or_insert_with(none);
        sum.count += 1;
        sum.failed += u64::from(step.failed());
        sum.wall = sum.wall.saturating_add(step.wall());
        sum.longest = sum.longest.max(step.wall());
        let own = |of: fn(&Times) -> Option<u64>| times.times.as_ref().and_then(of);
        add(&mut sum.on_cpu, own(Times::on_cpu_known));
        add(&mut sum.run_queue, own(Times::run_queue_known));
        let spent = times.spent.filter(|_| is_known(TimeKind::RunQueue, basis));
        add(
            &mut sum.starved,
            spent.map(|parts| parts.of(TimeKind::RunQueue)),
        );
        sum.spent = sum.spent.zip(times.spent).map(|(mut sum, more)| {
            sum.add_all(&more);
            sum
        });
        add(&mut sum.path, Some(times.on_path));
        let figures = verdicts.figures(at);
        let queued = figures.map_or(0, |figures| figures.queued);
        sum.queued = sum.queued.saturating_add(queued);
        sum.parts = sum.parts.take().zip(figures).map(|(mut sum, more)| {
            sum.add_all(&more.parts);
            sum
        });
        let reported = verdicts.reported(at);
        add(&mut sum.held_back, Some(u64::from(reported.is_some())));
        if sum.held.is_none() {
            sum.held = reported.map(StepVerdict::text);
        }
        let size = (reported.is_some(), step.wall());
        if size >= sum.judged {
            sum.judged = size;
            sum.verdict = verdicts.of(at).map(|verdict| (verdict.name(), verdict.ns));
        }
    }
    sums
}

/// Adds a figure to a sum. The sum becomes unknown (`None`) if one of its parts is unknown.
pub fn add(sum: &mut Option<u64>, more: Option<u64>) {
    *sum = sum.zip(more).map(|(sum, more)| sum.saturating_add(more));
}
