//! Steps of one kind and name, compared: the sums over all of them in a run.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tr_analyze::critical_path::Segment;
use tr_analyze::kinds::Kind as Time;
use tr_analyze::model::Analysis;

use super::{Ask, Judged, Run, Verdict};
use crate::facts::normal::stable;
use crate::sort::Rows;
use crate::steps::times::AllTimes;
use crate::steps::{Kind, Steps};

/// The sums over the steps of a kind and name in one run, in ns; `None`: not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepSum {
    count: u64,
    wall: u64,
    on_cpu: Option<u64>,
    starved: Option<u64>,
    path: u64,
}

/// The steps of a run by kind and name.
pub type StepSums = BTreeMap<(Kind, String), StepSum>;

/// A kind and name of steps with a difference.
#[derive(Clone, Debug)]
pub struct StepChange {
    pub kind: Kind,
    pub name: String,
    /// The medians of their number.
    pub count: (u64, u64),
    pub wall: Judged,
    pub on_cpu: Option<Judged>,
    /// Of the wall time: no CPU.
    pub starved: Option<Judged>,
    /// Time on the critical path.
    pub path: Option<Judged>,
}

/// The steps of a recording, of which `path` is the critical path.
pub fn sums(analysis: &Analysis, path: &[Segment]) -> StepSums {
    let steps = Steps::new(analysis);
    let times = AllTimes::new(analysis, &steps, path);
    let mut sums = StepSums::new();
    for (step, times) in steps.list().iter().zip(&times.steps) {
        let key = (step.kind, stable(step.kind, &step.name));
        let sum = sums.entry(key).or_insert(StepSum {
            on_cpu: Some(0),
            starved: Some(0),
            ..StepSum::default()
        });
        let add = |sum: Option<u64>, more: Option<u64>| Some(sum?.saturating_add(more?));
        sum.count += 1;
        sum.wall = sum.wall.saturating_add(step.wall());
        sum.on_cpu = add(sum.on_cpu, times.times.map(|times| times.on_cpu));
        sum.starved = add(sum.starved, times.spent.map(|it| it.of(Time::RunQueue)));
        sum.path = sum.path.saturating_add(times.on_path);
    }
    sums
}

/// The steps that differ, the largest difference of wall time first. A step that a run does
/// not have took no time there.
pub fn changes(base: &[Run], new: &[Run], ask: &Ask) -> Vec<StepChange> {
    let runs = base.iter().chain(new);
    let mut keys: Vec<&(Kind, String)> = runs.flat_map(|run| run.steps.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    let least = u128::from(ask.least.max(1));
    let large = |judged: &Judged| {
        judged.verdict != Verdict::Inside && judged.difference().unsigned_abs() >= least
    };
    let mut changes: Vec<StepChange> = Vec::new();
    for key in keys {
        let side = |runs: &[Run], of: &dyn Fn(&StepSum) -> Option<u64>| -> Vec<u64> {
            let sums = runs.iter().map(|run| run.steps.get(key));
            let values = sums.filter_map(|sum| sum.map_or(Some(0), of));
            values.collect()
        };
        let judged =
            |of: &dyn Fn(&StepSum) -> Option<u64>| Judged::new(&side(base, of), &side(new, of));
        let (count, wall) = (
            judged(&|sum| Some(sum.count)),
            judged(&|sum| Some(sum.wall)),
        );
        let (Some(count), Some(wall)) = (count, wall) else {
            continue;
        };
        let on_cpu = judged(&|sum| sum.on_cpu);
        if !large(&wall) && !on_cpu.as_ref().is_some_and(large) {
            continue;
        }
        changes.push(StepChange {
            kind: key.0,
            name: key.1.clone(),
            count: (count.base, count.new),
            wall,
            on_cpu,
            starved: judged(&|sum| sum.starved),
            path: judged(&|sum| Some(sum.path)),
        });
    }
    let size = |change: &StepChange| change.wall.difference().unsigned_abs();
    changes.order_by(|a, b| (Reverse(size(a)), &a.name).cmp(&(Reverse(size(b)), &b.name)));
    changes
}

#[cfg(test)]
#[path = "tests/steps.rs"]
mod tests;
