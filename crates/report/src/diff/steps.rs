//! Steps of one kind and name, compared: the sums over all of them in a run.

use std::cmp::Reverse;

use super::ask::Ask;
use super::run::Run;
use super::spread::{Judged, Verdict};
use crate::facts::step_sums::StepSum;
use crate::sort::Rows;
use crate::steps::StepKind;

/// A kind and name of steps with a difference.
#[derive(Clone, Debug)]
pub struct StepChange {
    pub kind: StepKind,
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

/// The steps that differ, the largest difference of wall time first. A step that a run does
/// not have took no time there.
pub fn changes(base: &[Run], new: &[Run], ask: &Ask) -> Vec<StepChange> {
    let runs = base.iter().chain(new);
    let mut keys: Vec<&(StepKind, String)> = runs.flat_map(|run| run.steps.keys()).collect();
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
            path: judged(&|sum| sum.path),
        });
    }
    let size = |change: &StepChange| change.wall.difference().unsigned_abs();
    changes.order_by(|a, b| (Reverse(size(a)), &a.name).cmp(&(Reverse(size(b)), &b.name)));
    changes
}

#[cfg(test)]
#[path = "tests/steps.rs"]
mod tests;
