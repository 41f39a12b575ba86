//! The steps of a recording, summed up by kind and name.

use std::collections::BTreeMap;

use tr_analyze::critical_path::Segment;
use tr_analyze::kinds::Kind;
use tr_analyze::model::Analysis;

use super::normal::stable;
use crate::kinds::is_told;
use crate::steps::times::AllTimes;
use crate::steps::{StepKind, Steps};

/// The sums over the steps of a kind and name in one run, in ns; `None`: not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepSum {
    pub count: u64,
    pub wall: u64,
    pub on_cpu: Option<u64>,
    pub starved: Option<u64>,
    pub path: Option<u64>,
}

/// The steps of a run by kind and name.
pub type StepSums = BTreeMap<(StepKind, String), StepSum>;

/// The steps of a recording, of which `path` is the critical path.
pub fn sums(analysis: &Analysis, path: &[Segment]) -> StepSums {
    let (steps, basis) = (Steps::new(analysis), analysis.basis());
    let times = AllTimes::new(analysis, &steps, path);
    let mut sums = StepSums::new();
    for (step, times) in steps.list().iter().zip(&times.steps) {
        let key = (step.kind, stable(step.kind, &step.name));
        let sum = sums.entry(key).or_insert(StepSum {
            on_cpu: Some(0),
            starved: Some(0),
            path: Some(0),
            ..StepSum::default()
        });
        let add = |sum: Option<u64>, more: Option<u64>| Some(sum?.saturating_add(more?));
        sum.count += 1;
        sum.wall = sum.wall.saturating_add(step.wall());
        sum.on_cpu = add(sum.on_cpu, times.times.map(|times| times.on_cpu));
        let spent = times.spent.filter(|_| is_told(Kind::RunQueue, basis));
        sum.starved = add(sum.starved, spent.map(|it| it.of(Kind::RunQueue)));
        sum.path = add(sum.path, Some(times.on_path));
    }
    sums
}
