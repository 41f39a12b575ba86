//! Forecasts the time of a build without other tasks on its CPUs and without a CPU quota, as an interval.

use tr_analyze::critical_path::{by_kind, TimeKind};
use tr_analyze::share;

use crate::facts::BuildFacts;
use crate::machine::WithheldTime;
use crate::sleeps::known::Starved;
use crate::verdict::open::OPEN_PART;

/// The interval of a build's time without the time that the machine withheld, in nanoseconds.
pub(crate) struct Forecast {
    pub at_least: u64,
    pub at_most: u64,
}

/// The facts that make a forecast less certain, each as a time in nanoseconds. A fact that does not apply is 0 or
/// `None`.
pub(crate) struct Doubts {
    /// The simulated time in nanoseconds that a build under a CPU quota takes. It may be less than the recorded time
    /// without the throttled time.
    pub simulated: Option<u64>,
    /// The length in nanoseconds of the sleeps for which it is not proven that they are shorter on free CPUs, and the
    /// time by which sleeps may be longer there.
    pub unsure: u64,
    /// The length in nanoseconds of the sleeps that are not on the critical path. A loop that checks for the end of
    /// some work sleeps less if that work takes less time.
    pub beside: u64,
    /// Loops on the critical path that sleep and check for the end of some work.
    pub polls: Option<Polls>,
    /// The time in which a process of the build slept again and again while other tasks of the build got no CPU. A
    /// process that sleeps until the work of such tasks is done would sleep less on free CPUs.
    pub starved: Starved,
    /// The CPU time in nanoseconds of threads that take turns. The simulation may run such threads at the same time
    /// ([`crate::verdict::turns`]).
    pub in_turn: u64,
}

/// The part of a forecast that loops which sleep and check make uncertain. If the build's own work ends sooner, such a
/// loop sleeps less often, and notices the end at most one sleep late. Both times are in nanoseconds.
pub(crate) struct Polls {
    /// The least time in nanoseconds in which the CPUs can do the work of the build.
    pub soonest: u64,
    pub late: u64,
}

impl Forecast {
    /// The time in nanoseconds that a build probably takes without the time that the machine withheld.
    pub fn likely(facts: &BuildFacts<'_>, withheld: &WithheldTime) -> u64 {
        let likely = withheld.alone(facts);
        // During some of the lost time, the CPUs ran tasks of the build that are not on the critical path. The build
        // cannot take less time than its CPUs need for all of its work, so that time is the lower limit.
        if withheld.lost() > likely {
            let soonest = facts.limits().map_or(0, |limits| limits.on(facts.cpus));
            likely.max(soonest.min(facts.wall))
        } else {
            likely
        }
    }

    /// The interval around the time `likely` ([`Forecast::likely`]) that the doubts allow. `lost` is the time in
    /// nanoseconds that the build lost to other tasks and to a CPU quota.
    pub fn of(facts: &BuildFacts<'_>, likely: u64, lost: u64, doubts: &Doubts) -> Forecast {
        let on_disks = by_kind(&facts.path.segments).of(TimeKind::Disk);
        let error = errors(lost, likely, on_disks);
        let simulated = doubts.simulated.map(|own| own - own / 10);
        let soonest = doubts.polls.as_ref().map(|polls| polls.soonest);
        let starved = if is_much(doubts.starved.ns, facts.wall) {
            doubts.starved.sleeps
        } else {
            0
        };
        let least = [error.below, doubts.beside, starved].into_iter();
        let least = least.map(|less| likely.saturating_sub(less));
        let more = [
            error.above,
            doubts.unsure,
            doubts.in_turn,
            doubts.polls.as_ref().map_or(0, |polls| polls.late),
        ];
        let more = more.into_iter().fold(0, u64::saturating_add);
        Forecast {
            at_least: least
                .chain(simulated)
                .chain(soonest)
                .min()
                .unwrap_or(likely),
            at_most: likely.saturating_add(more).min(facts.wall),
        }
    }
}

/// Whether the time `ns` is a tenth of the build's wall time or more, so that it makes a forecast uncertain. Both are
/// in nanoseconds.
pub(crate) fn is_much(ns: u64, wall: u64) -> bool {
    ns.saturating_mul(OPEN_PART) >= wall
}

/// The errors in nanoseconds that are assumed for the forecast of a build's time without other tasks: how much less and
/// how much more time the build may take.
pub(crate) struct Errors {
    pub below: u64,
    pub above: u64,
}

/// The errors of the forecast of a build's time (`alone`) without the time that the build lost to other tasks (`lost`),
/// both in nanoseconds. `on_disks` is the time in nanoseconds for which the critical path waited for disks. On a busy
/// machine the build's own work takes longer, too, because caches and cores are shared. If no time was lost to other
/// tasks, nothing is forecast, and the errors are 0. For four builds of docs/validation.md that ran with and without
/// other tasks, an error of a tenth would cover the times of two builds, and an error of a fifth the times of all four.
/// Larger errors occurred, too (`waits.py`). Three builds lost more than half of their time at a load of 11 to 22, and
/// needed 28 to 55 % more CPU time than without the load. Of 124 builds under a CPU quota, six lost more than two
/// thirds of their time, and needed 43 to 53 % more CPU time. Other tasks that take most of the time may use the disks,
/// too, so without other tasks the build may have no waits for disks.
pub(crate) fn errors(lost: u64, alone: u64, on_disks: u64) -> Errors {
    let below = if lost > alone.saturating_mul(2) {
        share(alone, 4, 10)
    } else if lost > alone {
        share(alone, 3, 10)
    } else {
        alone / 5
    };
    let disks = if lost > alone { on_disks } else { 0 };
    Errors {
        below: below.saturating_add(disks).min(lost),
        above: (alone / 5).min(lost),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forecast_is_less_exact_the_more_others_took() {
        for (lost, on_disks, below, above) in [
            (0, 500, 0, 0),
            (50, 500, 50, 50),
            (900, 500, 200, 200),
            (1_100, 0, 300, 200),
            (2_100, 0, 400, 200),
            (2_100, 500, 900, 200),
        ] {
            let got = errors(lost, 1_000, on_disks);
            assert_eq!((got.below, got.above), (below, above), "{lost} {on_disks}");
        }
    }
}
