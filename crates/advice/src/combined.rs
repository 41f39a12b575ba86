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

/// The most time in nanoseconds that some advised changes save together, as far as their own gains show it. A rule of
/// advice may know a smaller gain than the simulation, and changes that keep the work of the build save at most `spare`
/// together, but as much as the best of them.
pub(super) fn bound(kept: &[DistinctAdvice], spare: u64) -> u64 {
    let gains = |keeps_work: bool| {
        let kept = kept
            .iter()
            .filter(move |kept| kept.keeps_work == keeps_work);
        kept.map(|kept| kept.advice.gain)
    };
    let best = gains(true).max().unwrap_or(0);
    let moved = gains(true).fold(0, u64::saturating_add);
    let left_out = gains(false).fold(0, u64::saturating_add);
    left_out.saturating_add(moved.min(spare.max(best)))
}

/// Forecasts the build's time with the first two advised changes together, with the first three, and so on. The worst
/// case leaves out each change that may save nothing. `alone` is the time in nanoseconds that the build takes if no
/// other tasks use its CPUs, as the verdict shows it.
pub(super) fn combined(
    simulation: &Simulation,
    alone: u64,
    kept: &[DistinctAdvice],
    spare: u64,
) -> Vec<Combined> {
    let (mut all, mut sure) = (0, 0);
    let mut least = 0;
    let mut list = Vec::new();
    for (last, changes) in kept.iter().zip(1..) {
        let advice = &last.advice;
        all |= last.changes;
        if advice.at_least > 0 {
            sure |= last.changes;
            least = least.max(advice.at_least);
        }
        if changes < 2 {
            continue;
        }
        // Together, the changes save at least the certain gain of the best single change.
        let bound = bound(kept.get(..changes).unwrap_or_default(), spare);
        let most = simulation.saved(all, Effect::Best).min(bound);
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

#[cfg(test)]
mod tests {
    use tr_format::event::Ktime;
    use tr_text::phrase::Phrase;

    use super::*;
    use crate::candidate::{Advice, AdviceKind};

    fn advised(gain: u64, keeps_work: bool) -> DistinctAdvice {
        DistinctAdvice {
            advice: Advice {
                kind: AdviceKind::Sleep,
                finding: Phrase::default(),
                action: String::new(),
                at_least: 0,
                gain,
                unless_meant: false,
                from: Ktime(0),
                to: Ktime(0),
                processes: Vec::new(),
            },
            changes: 0,
            longer: 0,
            keeps_work,
        }
    }

    #[test]
    fn the_cpus_still_need_the_time_for_the_work_that_remains() {
        let kept = |gain| advised(gain, true);
        for (changes, spare, most) in [
            (vec![kept(20), kept(30)], 100, 50),
            (vec![kept(20), kept(30)], 40, 40),
            (vec![kept(20), kept(30)], 10, 30),
            (vec![kept(20), kept(30), advised(7, false)], 40, 47),
        ] {
            assert_eq!(bound(&changes, spare), most);
        }
    }
}
