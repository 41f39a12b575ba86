//! Steps of one kind and name, compared: the sums over all of them in a run.

use std::cmp::Reverse;

use tr_analyze::sort::Rows;

use super::ask::Ask;
use super::run::Run;
use super::spread::{median, Judged, Verdict};
use crate::facts::parts::Part;
use crate::facts::step_sums::StepSum;
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
    pub path: Option<Judged>,
    /// The failed ones of all runs.
    pub failed: (u64, u64),
    /// What most of the added wall time went to.
    pub more: Option<(Part, Judged)>,
    /// What held back one that failed or was slow in the new runs, with the evidence.
    pub held: Option<String>,
}

impl StepChange {
    /// It failed in new runs alone.
    pub fn fails_now(&self) -> bool {
        fails_now(self.failed)
    }
}

/// Of so many runs before and after that failed, none was before.
fn fails_now((base, new): (u64, u64)) -> bool {
    base == 0 && new > 0
}

/// The steps that differ: those that fail now, then the largest difference of wall time first. A step
/// that a run does not have took no time there.
pub fn changes(base: &[Run], new: &[Run], ask: &Ask) -> Vec<StepChange> {
    let runs = base.iter().chain(new);
    let mut keys: Vec<&Key> = runs.flat_map(|run| run.steps.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    let sides = Sides { base, new };
    let changes = keys.into_iter().filter_map(|key| sides.change(key, ask));
    let mut changes: Vec<StepChange> = changes.collect();
    let size = |it: &StepChange| (it.fails_now(), it.wall.difference().unsigned_abs());
    changes.order_by(|a, b| (Reverse(size(a)), &a.name).cmp(&(Reverse(size(b)), &b.name)));
    changes
}

type Key = (StepKind, String);

struct Sides<'a> {
    base: &'a [Run],
    new: &'a [Run],
}

impl Sides<'_> {
    fn change(&self, key: &Key, ask: &Ask) -> Option<StepChange> {
        let judged = |of: &dyn Fn(&StepSum) -> Option<u64>| {
            Judged::new(&values(self.base, key, of), &values(self.new, key, of))
        };
        let (count, wall) = (
            judged(&|sum| Some(sum.count))?,
            judged(&|sum| Some(sum.wall))?,
        );
        let on_cpu = judged(&|sum| sum.on_cpu);
        let failed = |runs: &[Run]| {
            let failed = values(runs, key, &|sum| Some(sum.failed));
            failed.into_iter().fold(0, u64::saturating_add)
        };
        let failed = (failed(self.base), failed(self.new));
        let least = u128::from(ask.least.max(1));
        let large = |judged: &Judged| {
            judged.verdict != Verdict::Inside && judged.difference().unsigned_abs() >= least
        };
        if !large(&wall) && !on_cpu.as_ref().is_some_and(large) && !fails_now(failed) {
            return None;
        }
        let is_slower = count.base > 0 && large(&wall) && wall.difference() > 0;
        let more = is_slower.then(|| self.more(key, &wall)).flatten();
        let mut sums = self.new.iter().filter_map(|run| run.steps.get(key));
        Some(StepChange {
            kind: key.0,
            name: key.1.clone(),
            count: (count.base, count.new),
            wall,
            on_cpu,
            starved: judged(&|sum| sum.starved),
            path: judged(&|sum| sum.path),
            failed,
            more: more.and_then(|part| Some((part, judged(&|sum| sum.part(part))?))),
            held: sums.find_map(|sum| sum.held.clone()),
        })
    }

    /// The part that grew most, if that is at least half of what the wall time grew by.
    fn more(&self, key: &Key, wall: &Judged) -> Option<Part> {
        let grown = |part: Part| {
            let of = |runs| {
                Some(i128::from(median(&values(runs, key, &|sum| {
                    sum.part(part)
                }))?))
            };
            Some((of(self.new)? - of(self.base)?, part))
        };
        let (grown, part) = Part::ALL.into_iter().filter_map(grown).max()?;
        let most = grown.saturating_mul(2) >= wall.difference();
        (most && part != Part::Unknown).then_some(part)
    }
}

/// A figure of the steps of a key in each run that tells it.
fn values(runs: &[Run], key: &Key, of: &dyn Fn(&StepSum) -> Option<u64>) -> Vec<u64> {
    let sums = runs.iter().map(|run| run.steps.get(key));
    let values = sums.filter_map(|sum| sum.map_or(Some(0), of));
    values.collect()
}

#[cfg(test)]
#[path = "tests/steps.rs"]
mod tests;
