//! Compares the load of the machines and the system calls of the builds between the two sides.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::run::{Figure, Run};
use super::sides::Sides;
use super::spread::Difference;
use tr_insight::resources::loads::Load;

/// A system call whose number or time differs between the two sides of a comparison.
#[derive(Clone, Debug)]
pub struct CallChange {
    pub name: String,
    pub count: Difference,
    /// The time in ns that all invocations of this system call took together, in the base and in the new runs.
    pub time: Difference,
}

/// The figures of the machine's load, such as the CPU time of other tasks, that differ between the sides by at least a
/// twentieth of the wall time and beyond the spread.
pub fn loads_of(sides: Sides<'_>) -> Vec<(Load, Difference)> {
    let wall = sides.judge(|run| run.figures.get(Figure::Wall));
    let wall = wall.map_or(u64::MAX, |wall| wall.most());
    let all = Load::ALL.into_iter();
    let judged = all.filter_map(|load| Some((load, sides.judge(|run| run.machine.load(load))?)));
    judged
        .filter(|(_, judged)| judged.is_noticeable_in(wall))
        .collect()
}

/// The least difference in the number of a system call's invocations that is shown. A guess: the start of programs
/// alone can make the number of invocations differ by almost as much.
const CALLS: u128 = 100;

/// The system calls whose number or time differs between the base and the new runs, with the largest difference of time
/// first. A difference of time counts if it is at least `least` ns. The list is empty if a run did not record system
/// calls.
pub fn calls_of(sides: Sides<'_>, least: u64) -> Vec<CallChange> {
    let runs = sides.runs();
    if runs.clone().any(|run| run.machine.calls.is_none()) {
        return Vec::new();
    }
    let names = runs.flat_map(|run| run.machine.calls.iter().flat_map(BTreeMap::keys));
    let names: BTreeSet<&String> = names.collect();
    let change = |name: &String| {
        let of = |run: &Run| {
            let calls = run.machine.calls.as_ref()?;
            Some(calls.get(name).copied().unwrap_or_default())
        };
        Some(CallChange {
            name: name.clone(),
            count: sides.judge(|run| of(run).map(|sum| sum.0))?,
            time: sides.judge(|run| of(run).map(|sum| sum.1))?,
        })
    };
    let mut changes: Vec<CallChange> = names.into_iter().filter_map(change).collect();
    changes.retain(|change| {
        let more = change.count.difference().unsigned_abs() >= CALLS;
        let longer = change.time.difference().unsigned_abs() >= u128::from(least.max(1));
        (more && change.count.is_noticeable()) || (longer && change.time.is_noticeable())
    });
    let size = |judged: &Difference| judged.difference().unsigned_abs();
    changes.sort_by_key(|change| Reverse((size(&change.time), size(&change.count))));
    changes
}

#[cfg(test)]
#[path = "tests/machine.rs"]
pub(super) mod tests;
