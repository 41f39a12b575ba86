//! The cost of a test: its time without the waits for a CPU that others caused.

use tr_analyze::critical_path::{CriticalPath, Segment};
use tr_analyze::kinds::Kind;
use tr_analyze::share;
use tr_format::event::Ktime;
use tr_insight::parts::Part;
use tr_insight::steps::times::AllTimes;
use tr_insight::steps::{StepIx, Steps};
use tr_insight::verdicts::Verdicts;
use tr_insight::Recording;

/// The source of a test's cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The recording has the test's own work and waits.
    Recording,
    /// The test's length in the report, less the part of the critical path that waited for a CPU meanwhile.
    Report,
    /// No length is known: the median of the other tests.
    Median,
}

/// The cost of a test or a file of tests, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    pub ns: u64,
    /// The CPU time of all its tasks, if the recording proves it.
    pub on_cpu: Option<u64>,
    pub wall: u64,
    pub source: Source,
}

/// The costs of a recording's steps.
pub struct Costs<'a> {
    pub steps: &'a Steps,
    verdicts: Verdicts,
    times: AllTimes,
    /// The waits for a CPU on the critical path, each with the sum of those before it.
    queued: Vec<(Ktime, Ktime, u64)>,
    span: (Ktime, Ktime),
}

impl<'a> Costs<'a> {
    pub fn new(recording: &Recording, path: &CriticalPath, steps: &'a Steps) -> Costs<'a> {
        let analysis = &recording.analysis;
        let mut sum = 0u64;
        let waits = path.segments.iter();
        let waits = waits.filter(|segment| segment.kind == Kind::RunQueue);
        let queued = waits.map(|segment: &Segment| {
            let before = sum;
            sum = sum.saturating_add(segment.length());
            (segment.from, segment.to, before)
        });
        Costs {
            queued: queued.collect(),
            span: (path.from, path.to),
            verdicts: Verdicts::new(analysis, steps),
            times: AllTimes::new(analysis, steps, &path.segments),
            steps,
        }
    }

    /// The cost of a step whose work the recording has.
    pub fn recorded(&self, at: StepIx) -> Option<Cost> {
        let step = self.steps.list().get(at).filter(|step| step.has_work)?;
        let figures = self.verdicts.figures(at)?;
        let starved = figures.parts.sum(Part::is_starved);
        let times = self.times.steps.get(at).and_then(|times| times.times);
        Some(Cost {
            ns: step.wall().saturating_sub(starved),
            on_cpu: times.map(|times| times.on_cpu),
            wall: step.wall(),
            source: Source::Recording,
        })
    }

    /// The cost of a test of a length, in ns, of which the recording has at most a place that is not proven.
    pub fn reported(&self, length: u64, at: Option<StepIx>) -> Cost {
        let place = at.and_then(|at| self.steps.list().get(at));
        let (from, to) = place.map_or(self.span, |step| (step.from, step.to));
        let queued = self
            .queued_before(to)
            .saturating_sub(self.queued_before(from));
        let within = to.since(from).max(1);
        Cost {
            ns: length.saturating_sub(share(length, queued.min(within), within)),
            on_cpu: None,
            wall: length,
            source: Source::Report,
        }
    }

    /// The time that the critical path had waited for a CPU until then, in ns.
    fn queued_before(&self, time: Ktime) -> u64 {
        let after = self.queued.partition_point(|(from, ..)| *from < time);
        let last = after.checked_sub(1).and_then(|at| self.queued.get(at));
        last.map_or(0, |(from, to, before)| {
            before.saturating_add(time.min(*to).since(*from))
        })
    }
}
