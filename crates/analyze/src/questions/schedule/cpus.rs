//! The CPUs of the machine on which a run is simulated, and the clock of the simulation.

use crate::share::share_up;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The number of CPUs of the simulated machine.
    pub cpus: u64,
    /// The CPU time in ns that a quota on the simulated machine allows in each period of 100 ms.
    pub quota: Option<u64>,
    /// The load of the simulated machine by tasks outside of the run: the number of tasks that never sleep, in
    /// thousandths of a task. Unless `grouped` is set, each of these tasks gets the same share of the CPUs as a task of
    /// the run.
    pub others: u64,
    /// Whether all tasks of the simulated run together have one share of the CPUs, however many they are, as in a
    /// session or a cgroup of their own. `others` is then the share of all other tasks, in thousandths of the run's
    /// share.
    pub grouped: bool,
    /// Whether the simulation plans the jobs of build tools anew. A tool that runs as many jobs as there are CPUs
    /// then runs `cpus` jobs at once; any other tool runs as many as in the recording.
    pub planned: bool,
    /// The number of jobs that every build tool runs at once, if the simulation plans the jobs anew with another
    /// number than in the recording.
    pub jobs: Option<u64>,
    /// Whether the simulation starts the longest job first if several jobs could start. The length of a job is its
    /// length in the recording.
    pub longest_first: bool,
    /// How much longer the work of large processes takes while tasks wait for the CPUs, in thousandths of the work. The
    /// reason is that other tasks use the CPU caches meanwhile.
    pub cold: u64,
    /// The number of a random variation of the simulated run. The work of each process is made up to a tenth longer or
    /// shorter, differently for each number. With 0, nothing is changed.
    pub shaken: u64,
}

/// The period of a CPU quota in ns, which is the kernel's default.
pub const PERIOD: u64 = 100_000_000;

impl Machine {
    /// A simulated machine with this many CPUs and no other load.
    pub fn of(cpus: u64) -> Machine {
        Machine {
            cpus: cpus.max(1),
            quota: None,
            others: 0,
            grouped: false,
            planned: false,
            jobs: None,
            longest_first: false,
            cold: 0,
            shaken: 0,
        }
    }
}

/// The factor by which a stop by a quota costs a task more time than sharing the CPU with another task does,
/// because the data of the task leaves the CPU caches during the stop. The factor was fitted to the 118 real runs
/// to which `LARGE_PROCESS` in `own_time.rs` was fitted, so these runs do not verify it.
const STOP_FACTOR: u64 = 2;

pub(super) struct Clock {
    machine: Machine,
    pub now: u64,
    /// The CPU time in ns that a task has got so far if it wanted a CPU all the time. The time lost by shared caches is
    /// not included.
    pub served: u64,
    pub on_cpu: u64,
    /// Whether tasks have had to wait for a CPU in the simulation so far.
    pub crowded: bool,
    /// The end of the present period of the CPU quota, in ns.
    period: u64,
    /// The CPU time in ns that the CPU quota still allows in the present period.
    budget: u64,
    /// Whether the CPU quota stopped the tasks in the period before the present one.
    stopped: bool,
}

impl Clock {
    pub fn new(machine: Machine) -> Clock {
        Clock {
            machine,
            now: 0,
            served: 0,
            on_cpu: 0,
            crowded: false,
            period: 0,
            budget: 0,
            stopped: false,
        }
    }

    /// The time that is lost by shared caches, in thousandths of the work. `tasks` is the number of tasks on the CPUs,
    /// and `large` is how many of them belong to large processes. Only tasks of large processes lose time: while such a
    /// task waited for a CPU, or a quota had stopped all tasks, other tasks have replaced its data in the caches.
    /// `waiting` is the number of waiting tasks in thousandths.
    fn cost(&self, (tasks, large): (u64, u64), waiting: u64, stopped: bool) -> u64 {
        let cold = if stopped {
            self.machine.cold.saturating_mul(STOP_FACTOR)
        } else {
            self.machine.cold.saturating_mul(waiting.min(1000)) / 1000
        };
        cold.saturating_mul(large) / tasks.max(1)
    }

    /// Goes to the next moment of the simulation: one of the `tasks` has got the CPU time `work`, or the moment `delay`
    /// comes, or the quota stops or releases the tasks. `large` is the number of the tasks that belong to large
    /// processes. Returns `false` if there is no next moment.
    ///
    /// The number of calls depends only on the number of operations, never on how long they last: periods of a quota in
    /// which nothing ends are passed in one step, and when the clock reaches its largest value, everything ends.
    pub fn advance(
        &mut self,
        (tasks, large): (u64, u64),
        work: Option<u64>,
        delay: Option<u64>,
    ) -> bool {
        if self.now == u64::MAX {
            self.served = work.unwrap_or(self.served).max(self.served);
            return work.is_some() || delay.is_some();
        }
        let quota = self.machine.quota.filter(|_| tasks > 0);
        if let Some(quota) = quota.filter(|_| self.now >= self.period) {
            self.stopped = self.period > 0 && self.budget == 0;
            self.period = (self.now / PERIOD + 1).saturating_mul(PERIOD);
            self.budget = quota.max(1);
        }
        let rates = self.rates(tasks, large, self.stopped);
        self.crowded |= tasks > 1 && rates.all > rates.cpus;
        if self.pass_periods(large, &rates, work, delay) {
            return true;
        }
        let cpus = rates.cpus;
        let lasts = |served: u64| share_up(served.saturating_sub(self.served), rates.share, cpus);
        let work = work.map(|served| self.now.saturating_add(lasts(served)));
        let runs = tasks > 0 && (quota.is_none() || self.budget > 0);
        let exhausted = match quota {
            Some(_) => self.now.saturating_add(rates.exhausts(self.budget)),
            None => u64::MAX,
        };
        let work = work.filter(|_| runs).map(|at| at.min(exhausted));
        let next = work.into_iter().chain(delay).min();
        let end = quota.map(|_| self.period);
        let Some(to) = next.into_iter().chain(end).min() else {
            return false;
        };
        if runs {
            let (passed, used) = rates.serve(to.saturating_sub(self.now), to >= exhausted);
            self.served = self.served.saturating_add(passed);
            self.on_cpu = self.on_cpu.saturating_add(used);
            // If less than 1 ns of the quota's budget is left for each task, the budget counts as used up.
            self.budget = if to >= exhausted {
                0
            } else {
                self.budget.saturating_sub(used)
            };
        }
        self.now = to;
        true
    }

    /// The rates at which `tasks` run on the simulated CPUs. `large` of them belong to large processes.
    fn rates(&self, tasks: u64, large: u64, stopped: bool) -> Rates {
        let cpus = self.machine.cpus.saturating_mul(1000);
        let others = self.machine.others;
        let all = if self.machine.grouped {
            // The run as a whole has one share of the CPUs, and all other tasks together have `others` thousandths of
            // such a share. The run's tasks divide the run's share evenly. So for each task of the run, the other tasks
            // weigh as much as `others` thousandths of a task.
            tasks.saturating_mul(others.saturating_add(1000))
        } else {
            tasks.saturating_mul(1000).saturating_add(others)
        };
        let cost = self.cost((tasks, large), all.saturating_sub(cpus), stopped);
        Rates {
            tasks,
            cpus,
            all,
            share: share_up(all.max(cpus), 1000 + cost, 1000),
            cost,
        }
    }

    /// Passes all whole periods of a CPU quota before the period in which something ends, in one step. Returns `false`
    /// if no period begins now or if there is no such period.
    fn pass_periods(
        &mut self,
        large: u64,
        rates: &Rates,
        work: Option<u64>,
        delay: Option<u64>,
    ) -> bool {
        let begins = self.now.checked_add(PERIOD) == Some(self.period);
        let quota = self.machine.quota.filter(|_| begins && rates.tasks > 0);
        let Some(quota) = quota.map(|quota| quota.max(1)) else {
            return false;
        };
        // If the quota stops the tasks in a period, the next period is different, because the tasks have lost their
        // data in the caches. Mostly all periods are equal: the quota stops the tasks in each of them, or in none. But
        // because of rounding, periods with and without a stop can alternate. Then one such period and the next one are
        // passed together, because all these pairs are equal.
        let first = rates.period(quota);
        let (each, length) = if first.stops == self.stopped {
            (first, PERIOD)
        } else {
            let second = self.rates(rates.tasks, large, first.stops).period(quota);
            if second.stops != self.stopped {
                return false;
            }
            (first.and(second), 2 * PERIOD)
        };
        let by_work = work.map(|served| {
            let left = served.saturating_sub(self.served).saturating_sub(1);
            left / each.passed.max(1)
        });
        let by_delay = delay.map(|at| at.saturating_sub(self.now).saturating_sub(1) / length);
        let count = by_work.into_iter().chain(by_delay).min().unwrap_or(0);
        if count == 0 {
            return false;
        }
        self.served = self
            .served
            .saturating_add(each.passed.saturating_mul(count));
        self.on_cpu = self.on_cpu.saturating_add(each.used.saturating_mul(count));
        self.now = self.now.saturating_add(length.saturating_mul(count));
        self.budget = u64::from(!each.stops);
        true
    }
}

/// The rates at which tasks run that share the simulated CPUs.
struct Rates {
    tasks: u64,
    /// The number of simulated CPUs, in thousandths of a CPU.
    cpus: u64,
    /// The number of all tasks that share the simulated CPUs, including tasks outside of the run, in thousandths of a
    /// task.
    all: u64,
    /// The time in ns in which each task gets as many ns of CPU time as the number in `cpus`. Time lost by shared
    /// caches makes `share` longer, but is not part of the CPU time that a task gets. A quota counts the lost time,
    /// too.
    share: u64,
    /// The time that tasks lose because they share the CPU caches with other tasks, in thousandths of the work.
    cost: u64,
}

impl Rates {
    /// The time in ns after which all tasks together have used up the CPU time `budget` that a quota allows.
    fn exhausts(&self, budget: u64) -> u64 {
        let rate = share_up(self.cpus.saturating_mul(self.tasks), 1000 + self.cost, 1000);
        share_up(budget, self.share, rate)
    }

    /// The CPU time that each task gets in `ns`, and the CPU time that all tasks use in it, both in ns. If the
    /// tasks use up a quota, each task gets at least 1 ns.
    fn serve(&self, ns: u64, exhausts: bool) -> (u64, u64) {
        let passed = crate::share(ns, self.cpus, self.share).max(u64::from(exhausts));
        let used = share_up(passed.saturating_mul(self.tasks), 1000 + self.cost, 1000);
        (passed, used)
    }

    /// The CPU time that each task gets in one whole period of a CPU quota.
    fn period(&self, quota: u64) -> Passed {
        let exhausts = self.exhausts(quota);
        let (passed, used) = self.serve(exhausts.min(PERIOD), exhausts <= PERIOD);
        Passed {
            passed,
            used,
            stops: exhausts <= PERIOD || used >= quota,
        }
    }
}

/// The CPU times of the tasks in one or more whole periods of a quota in which no task ends.
struct Passed {
    /// The CPU time in ns that each task gets in these whole periods of the CPU quota.
    passed: u64,
    /// The CPU time in ns that all tasks together use in these whole periods of the CPU quota.
    used: u64,
    /// Whether the CPU quota stops the tasks in the last of these whole periods of the quota.
    stops: bool,
}

impl Passed {
    fn and(self, next: Passed) -> Passed {
        Passed {
            passed: self.passed.saturating_add(next.passed),
            used: self.used.saturating_add(next.used),
            stops: next.stops,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets `tasks` run until each has got the CPU time `work`. Returns the clock of the simulation then, and the
    /// number of its steps. If `each` is set, the simulation also makes a step at the end of each quota period, as if a
    /// delay ended there.
    fn serve(machine: Machine, tasks: u64, work: u64, each: bool) -> (Clock, u64) {
        let (mut clock, mut steps) = (Clock::new(machine), 0);
        while clock.served < work {
            let delay = each.then(|| (clock.now / PERIOD + 1) * PERIOD);
            assert!(clock.advance((tasks, 1), Some(work), delay));
            steps += 1;
        }
        (clock, steps)
    }

    fn machines() -> impl Iterator<Item = Machine> {
        let quotas = [
            1,
            777,
            1_000_000,
            33_333_333,
            66_666_667,
            PERIOD,
            150_000_000,
            PERIOD * 9,
        ];
        let with = |quota| {
            let each = [(0, 0), (700, 90), (7_333, 250)].map(|(others, cold)| Machine {
                quota: Some(quota),
                others,
                cold,
                ..Machine::of(2)
            });
            let grouped = each.map(|machine| Machine {
                grouped: true,
                ..machine
            });
            each.into_iter().chain(grouped)
        };
        quotas.into_iter().flat_map(with)
    }

    #[test]
    fn equal_periods_are_passed_at_once() {
        for machine in machines() {
            for (tasks, work) in [(1, PERIOD * 13), (3, PERIOD * 7 + 1), (40, 12_345_678)] {
                // The slow way goes through each period, so the work is limited to 50 periods of the quota.
                let work = work.min(machine.quota.unwrap_or(1) * 50);
                let (slow, many) = serve(machine, tasks, work, true);
                let (fast, few) = serve(machine, tasks, work, false);
                let state = |clock: &Clock| (clock.now, clock.served, clock.on_cpu, clock.crowded);
                assert_eq!(state(&slow), state(&fast), "{machine:?} {tasks} {work}");
                assert!(few <= many && few < 12, "{machine:?} {tasks}: {few} {many}");
            }
        }
    }

    #[test]
    fn the_longest_work_takes_no_more_steps_than_a_short_one() {
        for machine in machines().chain([Machine {
            others: 64_000,
            ..Machine::of(1)
        }]) {
            for work in [1 << 63, u64::MAX] {
                for tasks in [1, 5, 1 << 40] {
                    let (clock, steps) = serve(machine, tasks, work, false);
                    assert!(steps < 12, "{machine:?} {tasks}: {steps}");
                    assert!(clock.now >= work / 2);
                }
            }
        }
    }

    #[test]
    fn nothing_is_left_at_the_end_of_time() {
        let mut clock = Clock::new(Machine::of(1));
        clock.now = u64::MAX;
        assert!(!clock.advance((0, 0), None, None));
        assert!(clock.advance((0, 0), None, Some(u64::MAX)));
        assert!(clock.advance((1, 0), Some(7), None) && clock.served == 7);
    }
}
