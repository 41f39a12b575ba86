//! The CPUs of a simulated run, and its clock.

/// A machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The number of CPUs.
    pub cpus: u64,
    /// The CPU time in ns that a quota allows in each period of 100 ms.
    pub quota: Option<u64>,
    /// Tasks of others that never sleep, in thousandths of a task: they have even parts of the CPUs.
    pub others: u64,
    /// The jobs at once of each build tool, if they are planned anew.
    pub jobs: Option<u64>,
    /// Of the jobs that could start, the one starts that took longest in the recording.
    pub longest_first: bool,
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
            jobs: None,
            longest_first: false,
        }
    }
}

/// The time of a run.
pub(super) struct Clock {
    machine: Machine,
    pub now: u64,
    /// The service that a task has got which wanted a CPU all the time.
    pub served: u64,
    pub on_cpu: u64,
    /// The end of the quota's period, and what it still allows.
    period: u64,
    budget: u64,
}

/// `value * by / of`, rounded up.
fn scaled(value: u64, by: u64, of: u64) -> u64 {
    let product = u128::from(value) * u128::from(by);
    u64::try_from(product.div_ceil(u128::from(of.max(1)))).unwrap_or(u64::MAX)
}

impl Clock {
    pub fn new(machine: Machine) -> Clock {
        Clock {
            machine,
            now: 0,
            served: 0,
            on_cpu: 0,
            period: 0,
            budget: 0,
        }
    }

    /// Goes to the next moment: the service `work` is reached by the first of `tasks`, or the
    /// moment `delay`, or the quota changes what runs. `false`: there is none.
    pub fn advance(&mut self, tasks: u64, work: Option<u64>, delay: Option<u64>) -> bool {
        let cpus = self.machine.cpus.saturating_mul(1000);
        let all = tasks
            .saturating_mul(1000)
            .saturating_add(self.machine.others);
        let share = all.max(cpus);
        let work = work.map(|served| scaled(served.saturating_sub(self.served), share, cpus));
        let work = work.map(|ns| self.now.saturating_add(ns));
        let mut runs = tasks > 0;
        let mut exhausted = u64::MAX;
        let to = match self.machine.quota.filter(|_| runs) {
            None => work.into_iter().chain(delay).min(),
            Some(quota) => {
                if self.now >= self.period {
                    self.period = (self.now / PERIOD + 1).saturating_mul(PERIOD);
                    self.budget = quota.max(1);
                }
                runs = self.budget > 0;
                // All tasks together use it up.
                let rate = cpus.saturating_mul(tasks);
                exhausted = self.now.saturating_add(scaled(self.budget, share, rate));
                let work = work.filter(|_| runs).map(|at| at.min(exhausted));
                let next = work.into_iter().chain(delay).min();
                Some(next.map_or(self.period, |at| at.min(self.period)))
            }
        };
        let Some(to) = to else {
            return false;
        };
        let ns = u128::from(to.saturating_sub(self.now));
        if runs {
            let passed = u64::try_from(ns * u128::from(cpus) / u128::from(share));
            let passed = passed.unwrap_or(u64::MAX);
            self.served = self.served.saturating_add(passed);
            let used = passed.saturating_mul(tasks);
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
