//! Compares the steps of two sides of builds. All steps of one kind and name in a run are summed up.

use std::cmp::Reverse;

use super::ask::Ask;
use super::run::Run;
use super::sides::Sides;
use super::spread::{median, Difference, PerSide, SpreadVerdict};
use tr_insight::verdicts::parts::WallPart;
use tr_insight::verdicts::step_sums::StepSum;
use tr_programs::steps::StepKind;
use tr_text::phrase::Phrase;

/// The difference between the base and the new runs in the steps that have one kind and name, summed up in
/// each run.
#[derive(Clone, Debug)]
pub struct StepChange {
    pub kind: StepKind,
    pub name: Phrase,
    /// For each side of the comparison, the median of the number of steps with this kind and name in a
    /// run.
    pub count: PerSide<u64>,
    pub wall: Difference,
    pub on_cpu: Option<Difference>,
    /// The part of the wall time in which the steps of this kind and name were able to run but got no CPU, summed up
    /// over these steps; `None` if it is not known.
    pub starved: Option<Difference>,
    pub path: Option<Difference>,
    /// For the base and for the new runs, how many steps of this kind and name failed in all runs
    /// together.
    pub failed: PerSide<u64>,
    /// The part of the wall time, such as waits for the disk, that grew most for all steps of this kind and name
    /// together, and by how much; `None` if the steps are not slower or no part explains half of their growth.
    pub more: Option<(WallPart, Difference)>,
    /// The reason, with evidence, why a step of this kind and name failed or was slow in the first of the new runs in
    /// which something delayed such a step; `None` without such a run.
    pub held: Option<String>,
}

impl StepChange {
    /// Whether steps of this kind and name failed in the new runs but never in the base.
    pub fn fails_now(&self) -> bool {
        fails_now(self.failed)
    }
}

/// Whether the counts of failures say that something fails in the new runs but never in the base.
fn fails_now(failed: PerSide<u64>) -> bool {
    failed.base == 0 && failed.new > 0
}

/// The steps that differ between the base and the new runs: first those that fail only in the new runs, then the
/// others; in both groups, the largest difference of wall time comes first. A run without a step counts as one in
/// which the step took 0 ns.
pub fn changes(sides: Sides<'_>, ask: &Ask) -> Vec<StepChange> {
    let mut keys: Vec<&Key> = sides.runs().flat_map(|run| run.steps.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    let changes = keys.into_iter();
    let changes = changes.filter_map(|key| change(sides, key, ask));
    let mut changes: Vec<StepChange> = changes.collect();
    let size = |change: &StepChange| (change.fails_now(), change.wall.difference().unsigned_abs());
    changes.sort_by(|a, b| (Reverse(size(a)), &a.name).cmp(&(Reverse(size(b)), &b.name)));
    changes
}

type Key = (StepKind, Phrase);

fn change(sides: Sides<'_>, key: &Key, ask: &Ask) -> Option<StepChange> {
    let of_run =
        |run: &Run, of: &dyn Fn(&StepSum) -> Option<u64>| run.steps.get(key).map_or(Some(0), of);
    let judged = |of: &dyn Fn(&StepSum) -> Option<u64>| sides.judge(|run| of_run(run, of));
    let (count, wall) = (
        judged(&|sum| Some(sum.count))?,
        judged(&|sum| Some(sum.wall))?,
    );
    let on_cpu = judged(&|sum| sum.on_cpu);
    let sums = |runs| <[Run]>::iter(runs).filter_map(|run| run.steps.get(key));
    let failed = |runs| sums(runs).fold(0u64, |failed, sum| failed.saturating_add(sum.failed));
    let failed = PerSide {
        base: failed(sides.base),
        new: failed(sides.new),
    };
    let least = u128::from(ask.least.max(1));
    let large = |judged: &Difference| {
        judged.verdict != SpreadVerdict::Inside && judged.difference().unsigned_abs() >= least
    };
    if !large(&wall) && !on_cpu.as_ref().is_some_and(large) && !fails_now(failed) {
        return None;
    }
    let is_slower = count.base > 0 && large(&wall) && wall.difference() > 0;
    let grown = |part: WallPart| {
        let median = |runs: &[Run]| {
            let times = runs
                .iter()
                .filter_map(|run| of_run(run, &|sum| sum.part(part)));
            median(&times.collect::<Vec<_>>()).map(i128::from)
        };
        Some((median(sides.new)? - median(sides.base)?, part))
    };
    // The part of the wall time that grew most. It is shown only if its growth is at least half of the growth of the
    // wall time.
    let parts = WallPart::ALL.into_iter().filter(|_| is_slower);
    let more = parts.filter_map(grown).max().filter(|(ns, part)| {
        *part != WallPart::Unknown && ns.saturating_mul(2) >= wall.difference()
    });
    Some(StepChange {
        kind: key.0,
        name: key.1.clone(),
        count: count.medians(),
        wall,
        on_cpu,
        starved: judged(&|sum| sum.starved),
        path: judged(&|sum| sum.path),
        failed,
        more: more.and_then(|(_, part)| Some((part, judged(&|sum| sum.part(part))?))),
        held: sums(sides.new).find_map(|sum| sum.held.clone()),
    })
}

#[cfg(test)]
#[path = "tests/steps.rs"]
mod tests;
