//! Forecasts the time of a build with several advised changes at once.

use tr_analyze::schedule::Effect;

use crate::rating::DistinctAdvice;
use crate::simulation::Simulation;
use tr_text::units;

/// The forecast for several advised changes together, because their gains do not add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combined {
    /// The number of advised changes that the forecast combines. The combined changes are the first ones in the list of
    /// advice.
    pub changes: usize,
    /// The simulated time in nanoseconds that the build takes without the changes if no other tasks use its CPUs.
    pub from: u64,
    /// The simulated time in nanoseconds that the build takes with all the combined changes, at best and at worst.
    pub to: (u64, u64),
}

impl Combined {
    /// The words for the forecast of several advised changes together. `shown` is the number of lines of advice that
    /// stand above these words.
    pub fn text(&self, shown: usize) -> String {
        const NUMBERS: [&str; 8] = ["", "", "two", "three", "four", "five", "six", "seven"];
        let number = NUMBERS.get(self.changes).copied().unwrap_or("lines");
        let these = if self.changes < shown {
            "the first"
        } else {
            "these"
        };
        let (best, worst) = self.to;
        let to = if worst >= self.from {
            format!("{} at best", units::time(best))
        } else {
            units::range(best, worst)
        };
        let from = units::time(self.from);
        format!("combined, {these} {number}: {from} → {to}")
    }
}

/// Forecasts the build's time with the first two advised changes together, with the first three, and so on. The worst
/// case leaves out each change that may save nothing. `alone` is the time in nanoseconds that the build takes if no
/// other tasks use its CPUs, as the verdict shows it.
pub(super) fn combined(
    simulation: &Simulation,
    alone: u64,
    kept: &[DistinctAdvice],
) -> Vec<Combined> {
    let (mut all, mut sure) = (0, 0);
    let (mut sum, mut least) = (0u64, 0);
    let mut list = Vec::new();
    for (kept, changes) in kept.iter().zip(1..) {
        let advice = &kept.advice;
        all |= kept.changes;
        sum = sum.saturating_add(advice.gain);
        if advice.at_least > 0 {
            sure |= kept.changes;
            least = least.max(advice.at_least);
        }
        if changes < 2 {
            continue;
        }
        // Together, the changes save at most the sum of their single gains. The simulation alone does not ensure this,
        // because a rule of advice may know a smaller limit of a gain than the simulation finds. Together, the changes
        // also save at least the certain gain of the best single change.
        let most = simulation.saved(all, Effect::Best).min(sum);
        let least = simulation
            .saved(sure, Effect::Worst)
            .clamp(least.min(most), most);
        list.push(Combined {
            changes,
            from: alone,
            to: (alone.saturating_sub(most), alone.saturating_sub(least)),
        });
    }
    list
}
