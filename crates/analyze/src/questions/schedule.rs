//! Simulates the recorded run on CPUs of its own and with changes. It is a simulation of discrete events.
//!
//! Each thread of the run is a list of operations (`build`): its work, the waits of its own
//! with their lengths, the wakings that it waited for and those that it caused, its forks. The
//! run does them in the order of each thread on as many CPUs as the recording had, with nothing
//! else on them (`run`). So waits for a CPU are not taken from the recording, but follow from
//! the run's own work: tasks that share the CPUs share them evenly.
//!
//! Kept as they were: the length of waits for timers, disks, the network and tasks that are not
//! part of the run; the order in which a thread does what it did; which thread ended which wait.
//! A parent goes on when as many of its children have ended as had then, whichever these are.
//! Job limits are kept by that: a job starts when one has ended for it.
//!
//! With no more tasks than CPUs at any time the run takes the recorded time, to the nanosecond.
//! With more it may differ, by what time slices and the choice of a CPU cost.

mod build;
mod change;
mod cpus;
mod gates;
mod merge;
mod path;
mod run;
mod ticks;

use tr_format::event::Ktime;

use super::critical_path::{CriticalPath, NoPath};
use super::graph::Graph;
use super::programs::Groups;
use super::what_if::Without;
use crate::model::{Analysis, ProcessIx};
pub use change::{Changes, Effect};
pub use cpus::{Machine, PERIOD};
pub use gates::{Plan, Planned};
pub use path::{Done, Leg, Life};

/// A change: a part of the recorded time that it makes shorter, or jobs that it runs at once.
#[derive(Clone, Debug)]
pub struct Change {
    pub time: Without,
    /// The part of that time that remains, in thousandths: at best, and at worst. Nothing remains of waits
    /// that another thread ended.
    pub remains: (u64, u64),
    /// The jobs that run at once.
    pub jobs: Vec<Jobs>,
}

/// Children of a process that do not wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jobs {
    /// The process that starts them.
    pub owner: ProcessIx,
    /// The start of the first job.
    pub from: Ktime,
    /// The start of the last job.
    pub to: Ktime,
    /// The largest number of jobs at once.
    pub at_once: u64,
}

/// The largest number of changes of a [`Schedule`].
pub const MOST: usize = 31;

/// A run that can be simulated with any set of some changes.
#[derive(Debug)]
pub struct Schedule {
    threads: build::Threads,
    remains: Vec<(u64, u64)>,
    plan: Plan,
    cpus: u64,
}

impl Schedule {
    /// The run of the path's process and of all its descendants. Changes beyond the first [`MOST`] are left
    /// out. The run takes 24 bytes for each piece of work and each wait; of a long run, neighboring pieces of a thread
    /// are one.
    ///
    /// # Errors
    /// No timeline was kept.
    pub fn new(
        analysis: &Analysis,
        path: &CriticalPath,
        groups: &Groups,
        changes: &[Change],
    ) -> Result<Schedule, NoPath> {
        Schedule::planned(analysis, path, groups, (changes, Plan::default()))
    }

    /// Like [`Schedule::new`], with the jobs of build tools, which can be planned anew ([`Machine::jobs`]).
    ///
    /// # Errors
    /// No timeline was kept.
    pub fn planned(
        analysis: &Analysis,
        path: &CriticalPath,
        groups: &Groups,
        (changes, plan): (&[Change], Plan),
    ) -> Result<Schedule, NoPath> {
        let graph = Graph::new(analysis).ok_or(NoPath::NoTimeline)?;
        let changes = changes.get(..MOST).unwrap_or(changes);
        Ok(Schedule {
            threads: build::threads(graph, path, groups, (changes, &plan)),
            remains: changes.iter().map(|change| change.remains).collect(),
            plan,
            cpus: analysis.cpus_of_build().max(1),
        })
    }

    /// Whether the run has processes that need more memory than a CPU's own caches have.
    pub fn has_large(&self) -> bool {
        self.threads.large
    }

    /// The run on the recorded CPUs without other tasks and without changes.
    pub fn alone(&self) -> Done {
        self.run(Machine::of(self.cpus), 0, Effect::Best)
    }

    /// The time from the beginning of the path to its end in ns, on the recorded CPUs, with a set of
    /// changes.
    pub fn wall(&self, changes: Changes, effect: Effect) -> u64 {
        self.run(Machine::of(self.cpus), changes, effect).wall
    }

    /// The time from the beginning of the path to its end in ns, on another number of CPUs, without changes.
    pub fn on(&self, cpus: u64) -> u64 {
        self.run(Machine::of(cpus), 0, Effect::Best).wall
    }

    /// Simulates the run on a machine, with a set of changes.
    pub fn run(&self, machine: Machine, changes: Changes, effect: Effect) -> Done {
        self.simulate(machine, (changes, effect), false)
    }

    /// Like [`Schedule::run`], with the path that decides about the end of the run. It takes 40 bytes for each
    /// end of a wait.
    pub fn trace(&self, machine: Machine, changes: Changes, effect: Effect) -> Done {
        self.simulate(machine, (changes, effect), true)
    }

    fn simulate(&self, machine: Machine, with: (Changes, Effect), traced: bool) -> Done {
        let (changes, effect) = with;
        let planned = if machine.planned || machine.jobs.is_some() {
            gates::PLANNED
        } else {
            0
        };
        let on = run::On {
            machine,
            plan: &self.plan,
            effect,
            changes: changes & !gates::PLANNED | planned,
            remains: &self.remains,
            traced,
        };
        run::run(&self.threads, on)
    }
}
