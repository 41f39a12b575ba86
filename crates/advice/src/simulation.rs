//! Simulates a build without other tasks on its CPUs, as recorded and with proposed changes.

use tr_analyze::critical_path::{NoPath, TimeKind};
use tr_analyze::schedule::{Change, Changes, Done, Effect, Schedule};
use tr_analyze::what_if::Without;

use crate::affinity::Affinity;
use crate::candidate::Candidate;
use crate::facts::BuildFacts;
use crate::jobs::{order_of_all, BuildJobs};
use tr_insight::cpus::cpu_need::CpuNeed;

/// The number of bits in a set of changes that are kept for changes which no rule proposes: to leave out the waits that
/// have no proven cause, to leave out all sleeps, and to run at once the commands that ran one after the other.
pub(super) const OTHER_CHANGES: usize = 3;

/// The simulation of a build without other tasks on its CPUs.
pub(super) struct Simulation {
    schedule: Schedule,
    /// The simulated run of the build without changes.
    run: Done,
    /// The simulated time in nanoseconds that the build takes without changes.
    pub own: u64,
    /// The program that restricts the build to some of the machine's CPUs, if there is one.
    pub affinity: Option<Affinity>,
    /// The change that leaves out all waits whose cause the recording does not prove. The simulation assumes this
    /// change together with a proposed change about sleeps to find the most time that the proposed change saves.
    pub unproven: Changes,
    /// The change that leaves out all sleeps of the build, also the sleeps that are not on the critical path.
    pub sleeps: Changes,
    order: Changes,
}

impl Simulation {
    /// Prepares the simulation of proposed changes. The change that `candidates[n]` proposes has the bit `1 << n` in a
    /// set of changes.
    pub fn of(
        facts: &BuildFacts<'_>,
        candidates: &[Candidate],
        jobs: &BuildJobs<'_>,
    ) -> Result<Simulation, NoPath> {
        let changes = candidates.iter().map(Candidate::change);
        let changes = changes.chain([without_unproven_waits(), without_sleeps()]);
        let changes = changes.chain(order_of_all(facts, &jobs.orders));
        let changes: Vec<Change> = changes.collect();
        let unproven: Changes = 1 << candidates.len();
        let schedule = Schedule::new(facts.analysis, facts.path, &facts.groups, &changes)?;
        let run = schedule.alone();
        let own = run.wall;
        Ok(Simulation {
            affinity: Affinity::of(facts, &schedule, own),
            schedule,
            run,
            own,
            unproven,
            sleeps: unproven << 1,
            order: unproven << 2,
        })
    }

    /// The simulated time in nanoseconds of the build on the CPUs to which it restricts itself (such as by `taskset`).
    pub fn own_as_restricted(&self) -> u64 {
        let affinity = self.affinity.as_ref();
        affinity.map_or(self.own, |affinity| affinity.own)
    }

    /// The time in nanoseconds that a set of changes saves in the simulation.
    pub fn saved(&self, changes: Changes, effect: Effect) -> u64 {
        let with_changes = self.schedule.wall(changes, effect);
        self.own.saturating_sub(with_changes)
    }

    /// The most time in nanoseconds that the build saves if it has no sleeps at all, neither on the critical path nor
    /// elsewhere.
    pub fn saved_without_sleeps(&self) -> u64 {
        self.saved(self.sleeps, Effect::Best)
    }

    /// The most time in nanoseconds that the build saves if the commands that ran one after the other run at once.
    pub fn saved_by_order(&self) -> u64 {
        self.saved(self.order, Effect::Best)
    }

    /// Whether the simulation seems to have all waits of the critical path: its time is at least four fifths of the
    /// path's time without waits for a CPU. It leaves out waits of threads that seem to be in the background. In a
    /// program of some runtimes, such as Go's, a thread may wait for a timer and wake another thread, which then waits
    /// for the next timer; the simulation takes such threads for threads in the background.
    pub fn has_all_waits(&self, facts: &BuildFacts<'_>) -> bool {
        is_near(self.own, facts.worked)
    }

    /// The CPUs that the build needs. `alone` is the time in nanoseconds that the build takes without other tasks, as
    /// the verdict shows it. If the simulated time is much shorter, the simulation lacks waits and cannot show how many
    /// CPUs are enough. If the simulated time is much longer, the verdict assumes fewer sleeps than the simulation. In
    /// both cases the result is `None`.
    pub fn cpu_need(&self, facts: &BuildFacts<'_>, alone: u64) -> Option<CpuNeed> {
        if is_near(self.own, alone) && is_near(alone, self.own) {
            let need = CpuNeed::of(facts.cpus, &self.run, &self.schedule);
            need.map(|need| need.for_time(alone))
        } else {
            None
        }
    }
}

/// Whether the length of time `time` is at least four fifths of `other`.
fn is_near(time: u64, other: u64) -> bool {
    time.saturating_mul(5) >= other.saturating_mul(4)
}

fn without_unproven_waits() -> Change {
    let is_unproven = |kind: TimeKind, _| {
        matches!(
            kind,
            TimeKind::Terminal | TimeKind::Outside | TimeKind::Unknown | TimeKind::SleepOrBlocked
        )
    };
    Change {
        time: Without::own(is_unproven, None),
        remains: (0, 1000),
        jobs: Vec::new(),
    }
}

fn without_sleeps() -> Change {
    Change {
        time: Without::own(|kind, _| kind == TimeKind::Sleep, None),
        remains: (0, 1000),
        jobs: Vec::new(),
    }
}
