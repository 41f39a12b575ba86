//! Finds the functions whose time on a CPU differs, by program.
//!
//! The time of a function is known from the number of its samples, which varies at random: the standard deviation of a
//! number n is √n (Poisson). A difference counts if it is more than [`DEVIATIONS`] standard deviations of the samples
//! of both sides. At this limit, of a thousand functions without a real difference, about three seem to differ.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::ask::Ask;
use super::profile::{FunctionTimes, Profile};
use super::run::Run;
use super::sides::Sides;
use super::spread::{Difference, SpreadVerdict};
use tr_insight::functions::frames::Name;
use tr_insight::functions::SampleSum;
use tr_programs::program_name::ProgramName;

/// The number of standard deviations by which the samples of a function must differ. Measured: between two recordings
/// of one build on a busy machine (1,250 samples, 950 functions), no function differs by so many.
const DEVIATIONS: f64 = 3.0;

/// The times that stack samples show for a function on both sides of a comparison, and how much of their difference
/// may be chance.
#[derive(Clone, Copy, Debug)]
pub struct SampledDifference {
    /// The function's time in the base and in the new runs in ns, as the number of its samples times the sampling
    /// interval.
    pub time: Difference,
    /// Three standard deviations of the difference in ns between the function's times in the base and in the new runs:
    /// the randomness of sampling may explain a difference up to this one.
    pub noise: u64,
}

impl SampledDifference {
    /// Makes a comparison of two sampled times. `periods` are the sampling intervals of both sides in ns, which
    /// determine how much of the difference may be chance.
    pub fn new(time: Difference, periods: [u64; 2]) -> SampledDifference {
        // A time of n samples with the period p is n × p, and its standard deviation is √n × p.
        let [base, new] = periods.map(|period| period as f64);
        let variance = time.base as f64 * base + time.new as f64 * new;
        SampledDifference {
            time,
            noise: (DEVIATIONS * variance.sqrt()) as u64,
        }
    }

    /// Whether a function's time differs between builds by at least `least` ns, by more than sampling can explain,
    /// and by more than runs of one and the same build differ.
    pub fn differs(&self, least: u64) -> bool {
        let size = self.time.difference().unsigned_abs();
        self.time.verdict != SpreadVerdict::Inside
            && size >= u128::from(least.max(1))
            && size > u128::from(self.noise)
    }

    fn size(&self, least: u64) -> u128 {
        if self.differs(least) {
            self.time.difference().unsigned_abs()
        } else {
            0
        }
    }
}

/// A function of a program whose sampled CPU time differs between the base and the new runs.
#[derive(Clone, Debug)]
pub struct FunctionChange {
    pub program: ProgramName,
    pub name: Name,
    /// The function's own CPU time in the base and in the new runs, from the samples in which this function was the
    /// innermost one of the stack.
    pub own: SampledDifference,
    /// The CPU time of the function including its callees, in the base and in the new runs, from the samples in which
    /// the function was anywhere in the stack.
    pub total: SampledDifference,
}

/// The mean time in ns between two stack samples in the profiles of several runs.
pub fn period<'a>(runs: impl Iterator<Item = &'a Profile>) -> u64 {
    let mut all = SampleSum::default();
    runs.for_each(|run| all.add(run.all));
    all.ns.checked_div(all.samples).unwrap_or(0)
}

/// The functions whose sampled CPU time differs between the base and the new runs, with the largest difference of
/// their own time first; `None` if a run has no stacks.
pub fn changes(sides: Sides<'_>, ask: &Ask) -> Option<Vec<FunctionChange>> {
    let profiles = |runs: &[Run]| -> Option<Vec<_>> {
        let profiles = runs
            .iter()
            .map(|run| Some(run.profile.as_ref()?.functions()));
        profiles.collect()
    };
    let (before, after) = (profiles(sides.base)?, profiles(sides.new)?);
    let of = |runs: &[Run]| period(runs.iter().filter_map(|run| run.profile.as_ref()));
    let periods = [of(sides.base), of(sides.new)];
    let keys = before.iter().chain(&after).flat_map(|run| run.keys());
    let keys: BTreeSet<&(ProgramName, Name)> = keys.collect();
    let mut changes: Vec<FunctionChange> = Vec::new();
    for key in keys {
        // A run without the function counts as 0 ns.
        let judged = |of: fn(FunctionTimes) -> u64| {
            let [base, new] = [&before, &after].map(|runs| {
                let values = runs.iter().map(|run| run.get(key).copied());
                values
                    .map(|times| of(times.unwrap_or_default()))
                    .collect::<Vec<u64>>()
            });
            Some(SampledDifference::new(
                Difference::new(&base, &new)?,
                periods,
            ))
        };
        let (own, total) = (judged(|times| times.own), judged(|times| times.total));
        let (Some(own), Some(total)) = (own, total) else {
            continue;
        };
        if own.differs(ask.least) || total.differs(ask.least) {
            let (program, name) = key.clone();
            changes.push(FunctionChange {
                program,
                name,
                own,
                total,
            });
        }
    }
    let size = |change: &FunctionChange| (change.own.size(ask.least), change.total.size(ask.least));
    changes.sort_by_key(|change| Reverse(size(change)));
    Some(changes)
}

/// The note below the table of functions whose CPU time differs between two builds.
pub const RULE: &str =
    "Differences within the noise of their samples (three standard deviations) are left out.";
/// The sentence in place of the table of functions, if no function's CPU time differs between two builds.
pub const NO_DIFFERENCE: &str =
    "No function's time differs by more than the noise of its samples (three standard deviations).";

#[cfg(test)]
#[path = "tests/functions.rs"]
mod tests;
