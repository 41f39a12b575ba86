//! Makes the lines of advice on a build, and computes what the advised changes save together.

use std::cmp::Reverse;

use tr_analyze::critical_path::NoPath;
use tr_analyze::schedule::Effect;

use crate::candidate::{Advice, AdviceKind, Gain, MOST_LINES};
use crate::combined::{bound, combined, Combined};
use crate::facts::BuildFacts;
use crate::rating::DistinctAdvice;
use crate::simulation::Simulation;

/// The lines of advice on a build.
pub(super) struct AdviceLines {
    pub changes: Vec<Advice>,
    /// The most time in nanoseconds that all advised changes save together.
    pub together: u64,
    /// The sum in nanoseconds of the gains of the changes that `together` counts. The gain of using more of the
    /// machine's CPUs is left out of the sum, although `together` counts it.
    sum: u64,
    pub combined: Vec<Combined>,
    /// Whether the build's authors can make at least one of the changes whose gains the verdict counts.
    has_own: bool,
}

impl AdviceLines {
    /// The lines of advice without the one about other tasks and a CPU quota. `alone` is the time in nanoseconds that
    /// the build takes if no other tasks use its CPUs, as the verdict shows it, and `spare` the most time in
    /// nanoseconds that changes save together if all work remains.
    pub fn of(
        facts: &BuildFacts<'_>,
        simulation: &Simulation,
        mut kept: Vec<DistinctAdvice>,
        alone: u64,
        spare: u64,
    ) -> AdviceLines {
        kept.sort_by_key(|kept| rank(&kept.advice));
        kept.truncate(MOST_LINES);
        let together = Together::of(facts, simulation, &kept, alone, spare);
        let mut changes: Vec<Advice> = kept.into_iter().map(|kept| kept.advice).collect();
        let affinity = simulation.affinity.as_ref();
        let pin = affinity.and_then(|affinity| affinity.advice(facts));
        let more_cpus = pin.as_ref().map_or(0, |line| line.gain);
        changes.extend(pin);
        changes.sort_by_key(rank);
        let has_own = own_changes(&changes).next().is_some();
        AdviceLines {
            has_own,
            changes,
            together: together.most.saturating_add(more_cpus),
            sum: together.sum,
            combined: together.combined,
        }
    }

    /// Adds the advice about other tasks and a CPU quota as the last line.
    pub fn add_machine(&mut self, advice: Option<Advice>) {
        self.changes.extend(advice);
    }

    /// The most time in nanoseconds that all advised changes save together; `None` if there is no advised change that
    /// counts. Changes by the administrator of the machine and advice on work that runs alone do not count.
    pub fn saved(&self) -> Option<u64> {
        self.has_own.then_some(self.together)
    }

    /// The most time in nanoseconds that all advised changes save together, if that is less than the sum of their
    /// gains. A difference of a twentieth or less is not shown, because the gain of a single line can be wrong by more
    /// than this.
    pub fn less_than_the_sum(&self) -> Option<u64> {
        let less = self.sum.saturating_sub(self.together);
        (less > self.sum / 20).then_some(self.together)
    }

    /// If no change is advised: the time in nanoseconds that the build takes, and the least time in nanoseconds in
    /// which its CPUs can do its work.
    pub fn nothing(&self, facts: &BuildFacts<'_>) -> Result<Option<(u64, u64)>, NoPath> {
        if self.changes.is_empty() {
            let bound = facts.limits()?.on(facts.cpus);
            Ok(Some((facts.wall, bound.min(facts.wall))))
        } else {
            Ok(None)
        }
    }
}

/// The times in nanoseconds that several advised changes save together.
struct Together {
    /// The sum in nanoseconds of the times that the changes save one by one.
    sum: u64,
    /// The most time in nanoseconds that all changes save together.
    most: u64,
    combined: Vec<Combined>,
}

impl Together {
    fn of(
        facts: &BuildFacts<'_>,
        simulation: &Simulation,
        kept: &[DistinctAdvice],
        alone: u64,
        spare: u64,
    ) -> Together {
        // Work that runs alone can perhaps neither be divided nor left out, so the common gain does not count advice on
        // such work.
        let is_counted = |kept: &DistinctAdvice| kept.advice.kind != AdviceKind::Alone;
        let counted = kept.get(..kept.partition_point(is_counted));
        let counted = counted.unwrap_or_default();
        let all = counted.iter().fold(0, |all, kept| all | kept.changes);
        let gains = || counted.iter().map(|kept| kept.advice.gain);
        let sum = gains().fold(0, u64::saturating_add);
        let bound = bound(counted, spare);
        let longer = counted.iter().map(|kept| kept.longer);
        let longer = longer.fold(0, u64::saturating_add);
        let most = simulation.saved(all, Effect::Best).saturating_add(longer);
        let most = most.min(bound);
        if simulation.has_all_waits(facts) {
            Together {
                sum,
                most,
                combined: combined(simulation, alone, counted, spare),
            }
        } else {
            // The simulation lacks some waits, so it may find a gain for all changes together that is smaller than the
            // gain of a single change. But no change alone saves more than all changes together.
            Together {
                sum,
                most: gains().fold(most, u64::max),
                combined: Vec::new(),
            }
        }
    }
}

/// The advised changes of the build itself whose gains the verdict counts. Work that runs alone can perhaps neither be
/// divided nor left out, so advice on such work is left out.
pub(super) fn own_changes(changes: &[Advice]) -> impl Iterator<Item = &Advice> {
    let is_own = |advice: &&Advice| !advice.kind.is_machine() && advice.kind != AdviceKind::Alone;
    changes.iter().filter(is_own)
}

/// The key by which lines of advice are sorted: lines with a larger gain come first, measured by the middle between the
/// least and the largest gain of a line. Advice on tasks that run alone comes last.
fn rank(advice: &Advice) -> (bool, Reverse<u64>, AdviceKind) {
    let gain = Gain::of(advice).twice_the_middle();
    (advice.kind == AdviceKind::Alone, Reverse(gain), advice.kind)
}
