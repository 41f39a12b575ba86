//! The steps of a recording, summed up by kind and name.

use std::collections::BTreeMap;

use tr_analyze::critical_path::Segment;
use tr_analyze::kinds::Kind;
use tr_analyze::model::Analysis;

use super::normal::stable;
use super::parts::Part;
use super::verdicts::{Judged, Verdict};
use crate::kinds::is_told;
use crate::steps::times::AllTimes;
use crate::steps::StepKind;

/// The sums over the steps of a kind and name in one run, in ns; `None`: not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepSum {
    pub count: u64,
    pub wall: u64,
    pub on_cpu: Option<u64>,
    pub starved: Option<u64>,
    pub path: Option<u64>,
    pub failed: u64,
    /// The wall time by part; `None`: not known of one of them.
    pub parts: Option<BTreeMap<Part, u64>>,
    /// What held back the first that failed or was slow, with the evidence.
    pub held: Option<String>,
}

impl StepSum {
    /// A part of the wall time.
    pub fn part(&self, part: Part) -> Option<u64> {
        Some(self.parts.as_ref()?.get(&part).copied().unwrap_or(0))
    }
}

/// The steps of a run by kind and name.
pub type StepSums = BTreeMap<(StepKind, String), StepSum>;

/// The steps of a recording, of which `path` is the critical path.
pub fn sums(analysis: &Analysis, path: &[Segment]) -> StepSums {
    let (judged, basis) = (Judged::new(analysis), analysis.basis());
    let (steps, verdicts) = (&judged.steps, judged.verdicts());
    let times = AllTimes::new(analysis, steps, path);
    let mut sums = StepSums::new();
    let known = steps.list().iter().zip(&times.steps).enumerate();
    for (at, (step, times)) in known {
        let key = (step.kind, stable(step.kind, &step.name));
        let sum = sums.entry(key).or_insert(StepSum {
            on_cpu: Some(0),
            starved: Some(0),
            path: Some(0),
            parts: Some(BTreeMap::new()),
            ..StepSum::default()
        });
        let add = |sum: Option<u64>, more: Option<u64>| Some(sum?.saturating_add(more?));
        sum.count += 1;
        sum.wall = sum.wall.saturating_add(step.wall());
        sum.on_cpu = add(sum.on_cpu, times.times.map(|times| times.on_cpu));
        let spent = times.spent.filter(|_| is_told(Kind::RunQueue, basis));
        sum.starved = add(sum.starved, spent.map(|it| it.of(Kind::RunQueue)));
        sum.path = add(sum.path, Some(times.on_path));
        sum.failed += u64::from(step.failed());
        sum.parts = sum.parts.take().zip(verdicts.figures(at)).map(add_parts);
        if sum.held.is_none() {
            sum.held = verdicts.told(at).map(Verdict::text);
        }
    }
    sums
}

fn add_parts((mut sum, verdict): (BTreeMap<Part, u64>, &Verdict)) -> BTreeMap<Part, u64> {
    for (part, ns) in &verdict.parts {
        let sum = sum.entry(*part).or_default();
        *sum = sum.saturating_add(*ns);
    }
    sum
}
