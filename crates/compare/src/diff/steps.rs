//! Compares the steps of one kind and name: the sums over all of them in a run.

use std::cmp::Reverse;

use super::ask::Ask;
use super::machine::{judge, Sides};
use super::run::Run;
use super::spread::{median, Difference, Verdict};
use tr_insight::parts::Part;
use tr_insight::step_sums::StepSum;
use tr_programs::steps::StepKind;

/// The difference of all steps that have the same kind and name.
#[derive(Clone, Debug)]
pub struct StepChange {
    pub kind: StepKind,
    pub name: String,
    /// The median numbers of such steps, in base and new.
    pub count: (u64, u64),
    pub wall: Difference,
    pub on_cpu: Option<Difference>,
    /// The part of the wall time in which the step could run but got no CPU.
    pub starved: Option<Difference>,
    pub path: Option<Difference>,
    /// The numbers of failed steps in all runs of the base and in all new runs.
    pub failed: (u64, u64),
    /// The part of the step's wall time that grew most, and its difference.
    pub more: Option<(Part, Difference)>,
    /// The reason why a step failed or was slow in the new runs, with the evidence.
    pub held: Option<String>,
}

impl StepChange {
    /// Whether the step failed in new runs, but in none of the base.
    pub fn fails_now(&self) -> bool {
        fails_now(self.failed.0, self.failed.1)
    }
}

/// Whether some of the new runs failed, but none of the base.
fn fails_now(base: u64, new: u64) -> bool {
    base == 0 && new > 0
}

/// The steps that differ: first those that fail only now, then by the difference of wall time, the largest
/// first. A run without a step counts as one in which the step took 0 ns.
pub fn changes(base: &[Run], new: &[Run], ask: &Ask) -> Vec<StepChange> {
    let runs = base.iter().chain(new);
    let mut keys: Vec<&Key> = runs.flat_map(|run| run.steps.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    let changes = keys.into_iter();
    let changes = changes.filter_map(|key| change((base, new), key, ask));
    let mut changes: Vec<StepChange> = changes.collect();
    let size = |change: &StepChange| (change.fails_now(), change.wall.difference().unsigned_abs());
    changes.sort_by(|a, b| (Reverse(size(a)), &a.name).cmp(&(Reverse(size(b)), &b.name)));
    changes
}

type Key = (StepKind, String);

fn change(sides: Sides<'_>, key: &Key, ask: &Ask) -> Option<StepChange> {
    let told =
        |run: &Run, of: &dyn Fn(&StepSum) -> Option<u64>| run.steps.get(key).map_or(Some(0), of);
    let judged = |of: &dyn Fn(&StepSum) -> Option<u64>| judge(sides, |run| told(run, of));
    let (count, wall) = (
        judged(&|sum| Some(sum.count))?,
        judged(&|sum| Some(sum.wall))?,
    );
    let on_cpu = judged(&|sum| sum.on_cpu);
    let sums = |runs| <[Run]>::iter(runs).filter_map(|run| run.steps.get(key));
    let failed = |runs| sums(runs).fold(0u64, |failed, sum| failed.saturating_add(sum.failed));
    let failed = (failed(sides.0), failed(sides.1));
    let least = u128::from(ask.least.max(1));
    let large = |judged: &Difference| {
        judged.verdict != Verdict::Inside && judged.difference().unsigned_abs() >= least
    };
    if !large(&wall) && !on_cpu.as_ref().is_some_and(large) && !fails_now(failed.0, failed.1) {
        return None;
    }
    let is_slower = count.base > 0 && large(&wall) && wall.difference() > 0;
    let grown = |part: Part| {
        let median = |runs: &[Run]| {
            let times = runs
                .iter()
                .filter_map(|run| told(run, &|sum| sum.part(part)));
            median(&times.collect::<Vec<_>>()).map(i128::from)
        };
        Some((median(sides.1)? - median(sides.0)?, part))
    };
    // The part that grew most, if that is at least half of what the wall time grew by.
    let parts = Part::ALL.into_iter().filter(|_| is_slower);
    let more = parts
        .filter_map(grown)
        .max()
        .filter(|(ns, part)| *part != Part::Unknown && ns.saturating_mul(2) >= wall.difference());
    Some(StepChange {
        kind: key.0,
        name: key.1.clone(),
        count: (count.base, count.new),
        wall,
        on_cpu,
        starved: judged(&|sum| sum.starved),
        path: judged(&|sum| sum.path),
        failed,
        more: more.and_then(|(_, part)| Some((part, judged(&|sum| sum.part(part))?))),
        held: sums(sides.1).find_map(|sum| sum.held.clone()),
    })
}

#[cfg(test)]
#[path = "tests/steps.rs"]
mod tests;
