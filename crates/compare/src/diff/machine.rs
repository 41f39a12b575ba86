//! Compares the machines and the system calls of the two sides.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::run::{Figure, Run};
use super::spread::Difference;
use tr_insight::loads::Load;

/// A system call whose number or time differs.
#[derive(Clone, Debug)]
pub struct CallChange {
    pub name: String,
    pub count: Difference,
    /// The sum of the calls' times in ns.
    pub time: Difference,
}

/// The runs of the base and the new runs.
pub type Sides<'a> = (&'a [Run], &'a [Run]);

/// Compares the values that `of` returns for the runs of two sides. A run may have no value.
pub fn judge<'a>(
    (base, new): Sides<'a>,
    of: impl Fn(&'a Run) -> Option<u64>,
) -> Option<Difference> {
    let side = |runs: &'a [Run]| runs.iter().filter_map(&of).collect::<Vec<_>>();
    Difference::new(&side(base), &side(new))
}

/// The loads of the machine that differ between the sides by a twentieth of the wall time or more.
pub fn loads_of(base: &[Run], new: &[Run]) -> Vec<(Load, Difference)> {
    let wall = judge((base, new), |run| run.figures.get(Figure::Wall));
    let wall = wall.map_or(u64::MAX, |wall| wall.most());
    let all = Load::ALL.into_iter();
    let all =
        all.filter_map(|load| Some((load, judge((base, new), |run| run.machine.load(load))?)));
    all.filter(|(_, judged)| judged.is_noticeable_in(wall))
        .collect()
}

/// The least difference of a number of calls that is noticeable. A guess: start-up alone makes that many calls more
/// or fewer.
const CALLS: u128 = 100;

/// The system calls that differ between the sides, with the largest difference of time first.
pub fn calls_of(base: &[Run], new: &[Run], least: u64) -> Vec<CallChange> {
    let runs = base.iter().chain(new);
    if runs.clone().any(|run| run.machine.calls.is_none()) {
        return Vec::new();
    }
    let names = runs.flat_map(|run| run.machine.calls.iter().flat_map(BTreeMap::keys));
    let names: std::collections::BTreeSet<&String> = names.collect();
    let change = |name: &String| {
        let of = |run: &Run| {
            let calls = run.machine.calls.as_ref()?;
            Some(calls.get(name).copied().unwrap_or_default())
        };
        Some(CallChange {
            name: name.clone(),
            count: judge((base, new), |run| of(run).map(|sum| sum.0))?,
            time: judge((base, new), |run| of(run).map(|sum| sum.1))?,
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
