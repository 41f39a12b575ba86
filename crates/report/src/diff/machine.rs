//! The machine and the system calls of the two sides, where they differ noticeably.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Diff, Figure, Judged, Run, Verdict};
use crate::facts::loads::Load;
use crate::sort::Rows;
use crate::units;
use crate::words::{STALLED_CPU, STALLED_IO, STALLED_MEMORY};

/// A system call whose number or time differs.
#[derive(Clone, Debug)]
pub struct CallChange {
    pub name: String,
    /// The number of calls.
    pub count: Judged,
    /// Their time in ns.
    pub time: Judged,
}

/// Compares values that a run may lack.
pub fn judge<'a>(
    (base, new): (&'a [Run], &'a [Run]),
    of: impl Fn(&'a Run) -> Option<u64>,
) -> Option<Judged> {
    let side = |runs: &'a [Run]| runs.iter().filter_map(&of).collect::<Vec<_>>();
    Judged::new(&side(base), &side(new))
}

/// The difference is at least this part of the larger side: a twentieth.
pub fn is_noticeable(judged: &Judged, whole: u64) -> bool {
    let size = judged.difference().unsigned_abs();
    judged.verdict != Verdict::Inside && size > 0 && size * 20 >= u128::from(whole)
}

/// The loads that differ by a twentieth of the wall time or more.
pub fn loads_of(base: &[Run], new: &[Run], wall: Option<&Judged>) -> Vec<(Load, Judged)> {
    let wall = wall.map_or(u64::MAX, |wall| wall.base.max(wall.new));
    let all = Load::ALL.into_iter();
    let all = all.filter_map(|load| {
        let of = |run: &Run| run.machine.loads.get(&load).copied();
        Some((load, judge((base, new), of)?))
    });
    all.filter(|(_, judged)| is_noticeable(judged, wall))
        .collect()
}

/// The fewest calls by which two runs differ noticeably.
const CALLS: u128 = 100;

/// The system calls that differ, those with the largest difference of time first.
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
    let larger = |judged: &Judged| judged.base.max(judged.new);
    changes.retain(|it| {
        let more = it.count.difference().unsigned_abs() >= CALLS;
        let longer = it.time.difference().unsigned_abs() >= u128::from(least.max(1));
        (more && is_noticeable(&it.count, larger(&it.count)))
            || (longer && is_noticeable(&it.time, larger(&it.time)))
    });
    let size = |judged: &Judged| judged.difference().unsigned_abs();
    changes.order_by_key(|it| Reverse((size(&it.time), size(&it.count))));
    changes
}

impl Diff {
    /// The wall time differs although the build's CPU work is equal, because the machine withheld
    /// more or less CPU time: in words.
    pub(super) fn runner(&self) -> Option<String> {
        let wall = self.whole(Figure::Wall)?;
        if wall.verdict == Verdict::Inside || !is_noticeable(wall, wall.base.max(wall.new)) {
            return None;
        }
        let work = judge((&self.base, &self.new), |run| run.machine.work)?;
        if is_noticeable(&work, work.base.max(work.new)) {
            return None;
        }
        // Its tasks were runnable, or had a CPU that the hypervisor did not run.
        let waited = judge((&self.base, &self.new), |run| {
            let taken = run
                .figures
                .get(Figure::OnCpu)?
                .saturating_sub(run.machine.work?);
            Some(run.figures.get(Figure::RunQueue)?.saturating_add(taken))
        })?;
        let same_sign =
            |judged: &Judged| judged.difference().signum() == wall.difference().signum();
        let explains =
            same_sign(&waited) && waited.difference().abs() * 2 >= wall.difference().abs();
        let withheld = self.loads.iter();
        let withheld = withheld.filter(|(load, judged)| load.is_withheld() && same_sign(judged));
        let most = withheld.max_by_key(|(_, judged)| judged.difference().abs())?;
        explains.then(|| {
            format!(
                "The runner, not your change: the build's CPU work is equal ({} and {}); {}: {}",
                units::time(work.base),
                units::time(work.new),
                most.0.title(),
                super::signed(most.1.difference(), units::time)
            )
        })
    }
}

#[cfg(test)]
#[path = "tests/machine.rs"]
pub(super) mod tests;
