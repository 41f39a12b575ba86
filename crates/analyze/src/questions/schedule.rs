//! Simulates how the recorded run would go on CPUs that no other tasks use, and with assumed changes. The simulation is
//! one of discrete events.
//!
//! Each thread of the run is a list of operations (`ops`, which `build` collects): its work, its own waits with their
//! lengths, the wakings that it waited for, the wakings that it caused, and its forks. The simulation performs the
//! operations of each thread in their order, on as many CPUs as the recording had, with no other tasks on them (`run`).
//! So waits for a CPU are not taken from the recording. They follow from the run's own work, because tasks that want
//! the CPUs share them evenly.
//!
//! The simulation keeps these facts of the recording: the length of waits for timers, disks, the network and tasks that
//! are not part of the run; the order of the operations of each thread; and which thread ended which wait. A parent
//! that waited for a child goes on when as many of its children have ended as in the recording, no matter which ones.
//! This rule also keeps the limits of build tools: a job starts when another job has ended.
//!
//! If there are never more tasks than CPUs, the simulated run takes the recorded time, to the nanosecond. Otherwise it
//! may differ, by the costs of time slices and of the choice of a CPU.

mod background;
mod build;
mod builder;
mod change;
mod cpus;
mod gates;
mod marks;
mod merge;
mod ops;
mod own_time;
mod path;
mod run;
mod ticks;
mod timers;

use super::critical_path::{CriticalPath, NoPath};
use super::graph::Graph;
use super::programs::Groups;
use crate::model::Analysis;
pub use change::{Change, Changes, Effect, Jobs, MOST_CHANGES};
pub use cpus::{Machine, PERIOD};
pub use gates::{Plan, Planned};
pub use path::{Done, Leg, Life};

/// A recorded run that can be simulated with any subset of the assumed changes.
#[derive(Debug)]
pub struct Schedule {
    threads: build::Threads,
    remains: Vec<(u64, u64)>,
    plan: Plan,
    cpus: u64,
}

impl Schedule {
    /// Prepares the simulation of the critical path's process and all of its descendants. Changes beyond the first
    /// [`MOST_CHANGES`] are left out. The simulated run takes 24 bytes of memory for each piece of work and each wait,
    /// so in a long run, neighboring pieces of a thread's time are joined.
    ///
    /// # Errors
    ///
    /// [`NoPath::NoTimeline`] if the analysis kept no timeline.
    pub fn new(
        analysis: &Analysis,
        path: &CriticalPath,
        groups: &Groups,
        changes: &[Change],
    ) -> Result<Schedule, NoPath> {
        Schedule::planned(analysis, path, groups, (changes, Plan::default()))
    }

    /// Like [`Schedule::new`], but the simulation can also start the jobs of build tools in another order than the
    /// recorded one ([`Machine::planned`]).
    ///
    /// # Errors
    ///
    /// No timeline was kept.
    pub fn planned(
        analysis: &Analysis,
        path: &CriticalPath,
        groups: &Groups,
        (changes, plan): (&[Change], Plan),
    ) -> Result<Schedule, NoPath> {
        let graph = Graph::new(analysis).ok_or(NoPath::NoTimeline)?;
        let changes = changes.get(..MOST_CHANGES).unwrap_or(changes);
        Ok(Schedule {
            threads: build::threads(graph, path, groups, (changes, &plan)),
            remains: changes.iter().map(|change| change.remains).collect(),
            plan,
            cpus: analysis.cpus_of_build().max(1),
        })
    }

    /// Whether a process of the recorded run, which is simulated here, worked with more memory than the caches of a CPU
    /// hold. Only then does the simulated time depend on the caches.
    pub fn has_large(&self) -> bool {
        self.threads.large
    }

    /// Simulates the recorded run on the recorded CPUs, without other tasks and without assumed changes.
    pub fn alone(&self) -> Done {
        self.simulate(Machine::of(self.cpus), 0, Effect::Best)
    }

    /// The simulated time in ns from the beginning of the critical path to its end, on the recorded CPUs, with the
    /// given set of assumed changes.
    pub fn wall(&self, changes: Changes, effect: Effect) -> u64 {
        self.simulate(Machine::of(self.cpus), changes, effect).wall
    }

    /// The simulated time in ns from the beginning of the critical path to its end, on another number of CPUs, without
    /// assumed changes.
    pub fn on(&self, cpus: u64) -> u64 {
        self.simulate(Machine::of(cpus), 0, Effect::Best).wall
    }

    /// Simulates the recorded run on the given machine, with a set of assumed changes.
    pub fn simulate(&self, machine: Machine, changes: Changes, effect: Effect) -> Done {
        self.simulation(machine, (changes, effect), false)
    }

    /// Like [`Schedule::simulate`], but also returns the chain of threads on which the end of the simulated run
    /// depended. The chain takes 40 bytes of memory for each end of a wait.
    pub fn trace(&self, machine: Machine, changes: Changes, effect: Effect) -> Done {
        self.simulation(machine, (changes, effect), true)
    }

    /// The simulated run on the given machine. If `traced` is set, the result has the chain of threads on which the end
    /// of the run depended.
    fn simulation(&self, machine: Machine, with: (Changes, Effect), traced: bool) -> Done {
        let (changes, effect) = with;
        let planned = if machine.planned || machine.jobs.is_some() {
            gates::PLANNED_JOBS
        } else {
            0
        };
        let on = run::On {
            machine,
            plan: &self.plan,
            effect,
            changes: changes & !gates::PLANNED_JOBS | planned,
            remains: &self.remains,
            traced,
        };
        run::simulate(&self.threads, on)
    }
}
