//! Determines the cost of a test: its CPU time and its own waits, but not the waits for a CPU that
//! other tasks caused.

use tr_analyze::critical_path::CriticalPath;
use tr_analyze::kinds::TimeKind;
use tr_analyze::parallelism;
use tr_analyze::programs::Groups;
use tr_analyze::share;
use tr_format::event::Ktime;
use tr_insight::steps::times::AllTimes;
use tr_insight::steps::{StepIx, Steps};
use tr_insight::verdicts::parts::WallPart;
use tr_insight::verdicts::Verdicts;
use tr_insight::Recording;
use tr_placing::junit::Report;
use tr_programs::program_name::ProgramName;

/// The source from which the cost of a test is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The cost of the test is known from the recording, which has its CPU time and its waits.
    Recording,
    /// Only the length of the test is known, from a runner's report. Its cost is estimated from the build in that time:
    /// the CPU time, and the waits on the critical path, except those for a CPU.
    Report,
    /// No length of the test is known. The median of the other tests' costs is taken.
    Median,
}

/// The cost of a test or of a file of tests: the time in ns that it takes on a machine of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    pub ns: u64,
    /// The CPU time in ns of all tasks of the test or of the file of tests, if the recording proves
    /// it.
    pub on_cpu: Option<u64>,
    pub wall: u64,
    pub source: Source,
}

/// A sum that grows over the time of a recording, such as the CPU time used so far. Its rate of
/// growth changes at certain times.
#[derive(Default)]
struct Growing(Vec<(Ktime, u64, u64)>);

impl Growing {
    /// Makes the growing sum from a list of rates. Each rate of growth is valid from its time until the time of the
    /// next rate.
    fn new(rates: impl Iterator<Item = (Ktime, u64)>) -> Growing {
        let mut points: Vec<(Ktime, u64, u64)> = Vec::new();
        for (from, rate) in rates {
            let sum = points.last().map_or(0, |last| grown(last, from));
            points.push((from, rate, sum));
        }
        Growing(points)
    }

    fn until(&self, time: Ktime) -> u64 {
        let after = self.0.partition_point(|(from, ..)| *from <= time);
        let last = after.checked_sub(1).and_then(|at| self.0.get(at));
        last.map_or(0, |last| grown(last, time))
    }

    fn within(&self, from: Ktime, to: Ktime) -> u64 {
        self.until(to).saturating_sub(self.until(from))
    }
}

fn grown((from, rate, sum): &(Ktime, u64, u64), time: Ktime) -> u64 {
    sum.saturating_add(rate.saturating_mul(time.since(*from)))
}

/// Determines the costs of recorded tests and other build steps of one recording.
pub struct Costs<'a> {
    pub steps: &'a Steps,
    verdicts: Verdicts,
    times: AllTimes,
    /// The CPU time that the recorded build has used up to each time, in ns.
    on_cpu: Growing,
    /// The waits on the recorded critical path up to each time, except waits for a CPU, in ns.
    waits: Growing,
    span: (Ktime, Ktime),
}

impl<'a> Costs<'a> {
    pub fn new(recording: &Recording, path: &CriticalPath, steps: &'a Steps) -> Costs<'a> {
        let analysis = &recording.analysis;
        let groups = Groups::new(analysis, |_, _| ProgramName::default());
        let parallelism = parallelism::parallelism(analysis, &groups, None, 1, None);
        let load = parallelism
            .map(|parallelism| parallelism.load)
            .unwrap_or_default();
        let waits = path.segments.iter().map(|segment| {
            let is_wait = !matches!(segment.kind, TimeKind::OnCpu | TimeKind::RunQueue);
            (segment.from, u64::from(is_wait))
        });
        Costs {
            on_cpu: Growing::new(load.iter().map(|load| (load.from, load.running as u64))),
            waits: Growing::new(waits.chain([(path.to, 0)])),
            span: (path.from, path.to),
            verdicts: Verdicts::new(analysis, steps),
            times: AllTimes::without_parts(analysis, steps, &path.segments),
            steps,
        }
    }

    /// The cost of a build step; `None` if it is not known what the threads of the step did.
    pub fn recorded(&self, at: StepIx) -> Option<Cost> {
        let step = self.steps.list().get(at).filter(|step| step.has_work)?;
        let figures = self.verdicts.figures(at)?;
        let on_cpu = self.times.steps.get(at)?.times?.on_cpu;
        let is_wait = |part: WallPart| part != WallPart::Work && !part.is_starved();
        Some(Cost {
            ns: on_cpu.saturating_add(figures.parts.sum(is_wait)),
            on_cpu: Some(on_cpu),
            wall: step.wall(),
            source: Source::Recording,
        })
    }

    /// The CPU time that the recorded build has used up to a time plus the waits on its critical
    /// path up to that time, except waits for a CPU, in ns.
    pub fn used(&self, time: Ktime) -> u64 {
        self.on_cpu
            .until(time)
            .saturating_add(self.waits.until(time))
    }

    /// The CPU time and the waits of the recorded build outside of this span of time, in ns.
    pub fn used_outside(&self, span: (u64, u64)) -> u64 {
        let (from, to) = span;
        let inside = self.used(Ktime(to)).saturating_sub(self.used(Ktime(from)));
        self.used(self.span.1).saturating_sub(inside)
    }

    /// The estimated cost of a test whose length in ns is known from a report, but whose place in
    /// the recording is not proven. `at_once` is the mean number of tests that run at once, in
    /// thousandths.
    pub fn reported(&self, length: u64, at: Option<StepIx>, at_once: u64) -> Cost {
        let place = at.and_then(|at| self.steps.list().get(at));
        let (from, to) = place.map_or(self.span, |step| (step.from, step.to));
        let on_cpu = share(self.on_cpu.within(from, to), 1000, at_once.max(1000));
        let used = on_cpu.saturating_add(self.waits.within(from, to));
        Cost {
            ns: share(length, used, to.since(from).max(1)),
            on_cpu: None,
            wall: length,
            source: Source::Report,
        }
    }

    /// The mean number of tests that ran at once according to a JUnit report, in thousandths.
    pub fn at_once(&self, report: &Report) -> u64 {
        let sums = report.suites.iter().map(|suite| suite.sum().unsigned_abs());
        let sum = sums.fold(0, u64::saturating_add);
        share(sum, 1000, self.span.1.since(self.span.0).max(1))
    }
}
