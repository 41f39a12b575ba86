//! Computes the CPUs that a recorded job needs.

use tr_analyze::schedule::{Done, Schedule};
use tr_analyze::share;

/// The percentage of a job's time during which the number of CPUs that is reported for the job must be enough. A guess:
/// with 100 %, one short burst would decide the size of the machine. Seven real jobs were run on machines of the
/// reported sizes (`size.py`).
pub const MOST_OF_THE_TIME_PERCENT: u64 = 90;
/// Fewer CPUs still count as enough if the build takes at most this percentage longer on them. A guess: the times of
/// most builds vary by as much. Seven real jobs were run on machines of the reported sizes (`size.py`).
const LONGER_PERCENT: u64 = 5;

/// The CPUs that a recorded job could use, the CPUs that it wanted, and the number of CPUs that would be enough for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuNeed {
    /// The number of CPUs that the job could use.
    pub available: u64,
    /// The number of CPUs that the job, run without other tasks, would not exceed for [`MOST_OF_THE_TIME_PERCENT`]
    /// percent of its time.
    pub wanted: u64,
    /// The smallest number of CPUs on which the job would take hardly longer: a power of two, or the number of
    /// available CPUs.
    pub enough: u64,
    /// The time in nanoseconds of the build on the available CPUs without other tasks.
    pub on_available: u64,
    /// The time in nanoseconds of the build on the smallest number of CPUs that is enough (`enough`), without other
    /// tasks.
    pub on_enough: u64,
}

impl CpuNeed {
    /// The need for CPUs of a build that, after a change, may use all available CPUs. Without that change, the tasks
    /// run as recorded, and fewer CPUs may be enough.
    pub fn of_all(self) -> CpuNeed {
        CpuNeed {
            enough: self.available,
            on_enough: self.on_available,
            ..self
        }
    }

    /// Gives the build other times: the build takes the time `alone`, in nanoseconds, on the available CPUs without
    /// other tasks, by a forecast that differs from the simulation.
    pub fn for_time(self, alone: u64) -> CpuNeed {
        let more = self.on_enough.saturating_sub(self.on_available);
        CpuNeed {
            on_available: alone,
            on_enough: alone.saturating_add(more),
            ..self
        }
    }

    /// Computes the CPUs that a build needs, with the simulated times of the build. `available` is the number of CPUs
    /// that the build could use; `alone` is the result of simulating the build on these CPUs without other tasks.
    pub fn of(available: u64, alone: &Done, schedule: &Schedule) -> Option<CpuNeed> {
        let own = alone.wall;
        let mut need = CpuNeed {
            available,
            wanted: wanted(available, alone)?,
            enough: available,
            on_available: own,
            on_enough: own,
        };
        let sizes = (0..u64::BITS)
            .rev()
            .filter_map(|power| 1_u64.checked_shl(power));
        for cpus in sizes.filter(|cpus| *cpus < available) {
            let on_fewer = schedule.on(cpus);
            if on_fewer > own.saturating_add(share(own, LONGER_PERCENT, 100)) {
                break;
            }
            (need.enough, need.on_enough) = (cpus, on_fewer);
        }
        Some(need)
    }
}

/// The number of CPUs that a job wants, at most `available`: in [`MOST_OF_THE_TIME_PERCENT`] percent of the time of a
/// simulated run without other tasks, the job did not exceed this number. The recorded run cannot be used. On a busy
/// machine, tasks that would otherwise run one after the other wait for a CPU at the same time. So the job would seem
/// to want more CPUs.
pub(crate) fn wanted(available: u64, run: &Done) -> Option<u64> {
    let demand = &run.demand;
    let known = demand
        .iter()
        .fold(0, |sum: u64, ns| sum.saturating_add(*ns));
    let most = share(known, MOST_OF_THE_TIME_PERCENT, 100);
    let mut sum = 0_u64;
    let reached = demand.iter().position(|ns| {
        sum = sum.saturating_add(*ns);
        sum >= most
    });
    let wanted = u64::try_from(reached?).ok()?;
    (known > 0).then(|| wanted.clamp(1, available.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_tenths_of_the_time_decide() {
        let wanted = |demand: &[u64]| {
            let demand = demand.to_vec();
            let run = Done {
                demand,
                ..Done::default()
            };
            wanted(4, &run)
        };
        assert_eq!(wanted(&[5, 85, 10]), Some(1));
        assert_eq!(wanted(&[5, 84, 11]), Some(2));
        assert_eq!(wanted(&[0, 0, 0, 0, 0, 0, 9]), Some(4));
        assert_eq!(wanted(&[9]), Some(1));
        assert_eq!(wanted(&[0, 0]), None);
        assert_eq!(wanted(&[]), None);
    }
}
