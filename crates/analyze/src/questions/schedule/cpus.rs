//! The CPUs of a simulated run, and its clock.

use crate::share::share_up;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The number of CPUs.
    pub cpus: u64,
    /// The CPU time in ns that a quota allows in each period of 100 ms.
    pub quota: Option<u64>,
    /// Tasks of others that never sleep, in thousandths of a task: they have even parts of the CPUs.
    pub others: u64,
    /// The jobs are planned anew: those of a tool that has as many as there are CPUs are
    /// `cpus`, those of another one as many at once as recorded.
    pub planned: bool,
    /// The jobs at once of every build tool, if they are planned anew with another number.
    pub jobs: Option<u64>,
    /// Of the jobs that could start, the one starts that took longest in the recording.
    pub longest_first: bool,
    /// How much longer the work of large processes takes while tasks wait for the CPUs, in
    /// thousandths: others had the caches meanwhile.
    pub cold: u64,
    /// Above 0 each process's work is up to a tenth more or less, another part for each number.
    pub shaken: u64,
}

/// The period of a quota in ns: the kernel's default.
pub const PERIOD: u64 = 100_000_000;

impl Machine {
    /// So many CPUs with nothing else on them.
    pub fn of(cpus: u64) -> Machine {
        Machine {
            cpus: cpus.max(1),
            quota: None,
            others: 0,
            planned: false,
            jobs: None,
            longest_first: false,
            cold: 0,
            shaken: 0,
        }
    }
}

/// A quota that stops tasks costs them so many times what another task on their CPU costs.
const STOPPED: u64 = 2;

pub(super) struct Clock {
    machine: Machine,
    pub now: u64,
    /// The service that a task has got which wanted a CPU all the time.
    pub served: u64,
    pub on_cpu: u64,
    /// Tasks have waited for a CPU.
    pub crowded: bool,
    /// The end of the quota's period, and what it still allows.
    period: u64,
    budget: u64,
    /// The quota stopped the tasks in this period or the one before.
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

    /// What the caches cost, in thousandths of the work: `large` of the `tasks` find others' in
    /// them, where a task waits for a CPU or a quota stops all of them. `waiting`: in thousandths of
    /// a task.
    fn cost(&self, (tasks, large): (u64, u64), waiting: u64) -> u64 {
        let cold = match self.stopped {
            true => self.machine.cold.saturating_mul(STOPPED),
            false => self.machine.cold.saturating_mul(waiting.min(1000)) / 1000,
        };
        cold.saturating_mul(large) / tasks.max(1)
    }

    /// Goes to the next moment: the service `work` is reached by the first of `tasks`, or the
    /// moment `delay`, or the quota changes what runs. `large`: so many of the tasks are those of
    /// large processes. `false`: there is none.
    pub fn advance(
        &mut self,
        (tasks, large): (u64, u64),
        work: Option<u64>,
        delay: Option<u64>,
    ) -> bool {
        let cpus = self.machine.cpus.saturating_mul(1000);
        let all = tasks
            .saturating_mul(1000)
            .saturating_add(self.machine.others);
        self.crowded |= tasks > 1 && all > cpus;
        let cost = self.cost((tasks, large), all.saturating_sub(cpus));
        // The service is without that cost, a quota's use and CPU time are with it.
        let share = share_up(all.max(cpus), 1000 + cost, 1000);
        let work = work.map(|served| share_up(served.saturating_sub(self.served), share, cpus));
        let work = work.map(|ns| self.now.saturating_add(ns));
        let mut runs = tasks > 0;
        let mut exhausted = u64::MAX;
        let to = match self.machine.quota.filter(|_| runs) {
            None => work.into_iter().chain(delay).min(),
            Some(quota) => {
                if self.now >= self.period {
                    self.stopped = self.period > 0 && self.budget == 0;
                    self.period = (self.now / PERIOD + 1).saturating_mul(PERIOD);
                    self.budget = quota.max(1);
                }
                runs = self.budget > 0;
                // All tasks together use it up.
                let rate = share_up(cpus.saturating_mul(tasks), 1000 + cost, 1000);
                exhausted = self.now.saturating_add(share_up(self.budget, share, rate));
                let work = work.filter(|_| runs).map(|at| at.min(exhausted));
                let next = work.into_iter().chain(delay).min();
                Some(next.map_or(self.period, |at| at.min(self.period)))
            }
        };
        let Some(to) = to else {
            return false;
        };
        if runs {
            let passed = crate::share(to.saturating_sub(self.now), cpus, share);
            self.served = self.served.saturating_add(passed);
            let used = share_up(passed.saturating_mul(tasks), 1000 + cost, 1000);
            self.on_cpu = self.on_cpu.saturating_add(used);
            // What is left is less than a nanosecond of each task.
            self.budget = match to >= exhausted {
                true => 0,
                false => self.budget.saturating_sub(used),
            };
        }
        self.now = to;
        true
    }
}
