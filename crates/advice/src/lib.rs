//! Advises what to change in the build: findings with their evidence, a bound of the gain, and one thing to do.
//!
//! Each rule of advice proposes changes that save a part of the recorded time. The simulation
//! ([`tr_analyze::schedule`]) computes the gain of a change: the difference of the run's simulated times without and
//! with the change, both without other tasks on the CPUs. So the time that other tasks took has a line of its own and
//! is not part of another line's gain, and a second path that is almost as long as the critical one limits the gain. If
//! several changes explain the same part of the critical path, the one with the largest gain stays.
#![forbid(unsafe_code)]

mod affinity;
mod caches;
mod candidate;
mod clocks;
mod combined;
pub mod depends;
mod directories;
pub mod facts;
mod fetches;
mod jobs;
mod limits;
mod lines;
mod machine;
pub mod programs;
mod proposals;
mod quartiles;
mod rating;
mod simulation;
mod sleeps;
mod verdict;
mod waits;
mod work;
mod wrappers;

use tr_analyze::critical_path::{CriticalPath, NoPath};
use tr_analyze::model::Basis;

pub use candidate::{Advice, AdviceKind, MOST_LINES};
pub use combined::Combined;
use facts::BuildFacts;
use lines::AdviceLines;
use machine::WithheldTime;
use proposals::Proposals;
use rating::{distinct, rated};
use simulation::Simulation;
use tr_insight::cpus::cpu_need::CpuNeed;
#[cfg(doc)]
use tr_insight::resources::course;
use tr_insight::views::view::View;
use verdict::judgement::{verdict, Findings};
use verdict::unjudged::Unjudged;
use verdict::CpuOwners;
pub use verdict::{Blame, BuildVerdict, OpenKind, OpenPoint};

/// The length in nanoseconds of the shortest critical path of a recording that gets advice. A guess: nothing in a
/// shorter one is worth a change.
const SHORTEST_PATH: u64 = 100_000_000;

/// The advice on a build and the verdict on it.
#[derive(Clone, Debug, Default)]
pub struct BuildAdvice {
    /// The verdict on how much of the build's time is its own and how much the machine withheld; `None` if the
    /// recording does not show these times.
    pub verdict: Option<BuildVerdict>,
    /// The advised changes, sorted by the middle of their gain in descending order. Work that runs alone comes after
    /// all others, and the line about other tasks and a CPU quota is the last one.
    pub changes: Vec<Advice>,
    /// The most time in nanoseconds that all advised changes save together, if that is less than the sum of their
    /// gains.
    pub together: Option<u64>,
    /// The forecasts of the build's time with the first two advised changes together, with the first three, and so
    /// on.
    combined: Vec<Combined>,
    /// For a build for which no change is advised: the time in nanoseconds that the build takes, and the least time
    /// in nanoseconds in which its CPUs can do its work.
    pub nothing: Option<(u64, u64)>,
    /// The CPUs that the build used, and the number of CPUs that would be enough for it.
    pub cpus: Option<CpuNeed>,
    /// The mean number of CPUs that the build used in each of the [`course::CHART_COLUMNS`] equal parts of the
    /// recording, in hundredths of a CPU; empty for a short recording.
    pub in_use: Vec<u64>,
}

impl BuildAdvice {
    /// The forecast of the build's time with the first `first` advised changes together; `None` if fewer than two of
    /// them were simulated.
    pub fn combined(&self, first: usize) -> Option<Combined> {
        let of = |combined: &&Combined| combined.changes <= first;
        self.combined.iter().take_while(of).last().copied()
    }

    /// The advised changes that the build's authors can make. Advice about the CPU time that other tasks took is left
    /// out, because the verdict shows that time.
    pub fn to_change(&self) -> impl Iterator<Item = &Advice> {
        self.changes
            .iter()
            .filter(|advice| !advice.kind.is_forecast())
    }

    pub fn machines(&self) -> impl Iterator<Item = &Advice> {
        self.changes
            .iter()
            .filter(|advice| advice.kind.is_forecast())
    }
}

/// The advice on a recording. Without a critical path, no advice is given. The advice is about the whole build, so none
/// is given either if filters select only some processes. `facts` are the facts about the build if the caller has
/// already collected them.
pub fn advise(view: &View<'_>, path: &CriticalPath, facts: Option<&BuildFacts<'_>>) -> BuildAdvice {
    if !view.has_all() {
        return BuildAdvice::default();
    }
    // A recording that has only sums of times does not say when a task ran, so no gain can be computed.
    if view.analysis.basis() != Basis::Events {
        return BuildAdvice {
            verdict: verdict::totals::verdict(view.analysis, path),
            ..BuildAdvice::default()
        };
    }
    let collect = || BuildFacts::new(view.recording, path, None);
    let collected = if facts.is_some() { None } else { collect() };
    facts
        .or(collected.as_ref())
        .filter(|facts| facts.wall >= SHORTEST_PATH)
        .and_then(|facts| advised(facts).ok())
        .unwrap_or_default()
}

/// Makes the advice from the facts in steps. Each step hands a struct to the later ones:
///
/// 1. The rules propose changes ([`Proposals`]).
/// 2. A [`Simulation`] computes the build's time without other tasks on its CPUs, as recorded and with the changes. The
///    difference from the recorded time is [`WithheldTime`].
/// 3. The changes that save enough stay ([`rating::RatedCandidates`]), and of those that explain the same time the one
///    with the largest gain ([`rating::Distinct`]).
/// 4. The changes that are left become [`AdviceLines`], the advice about the machine among them.
/// 5. What is [`Unjudged`] by all of these steps becomes the open points of the verdict.
/// 6. The [`BuildVerdict`] divides the time between the build and the machine.
fn advised(facts: &BuildFacts<'_>) -> Result<BuildAdvice, NoPath> {
    let Proposals {
        candidates,
        jobs,
        sleeps,
    } = Proposals::of(facts);
    let simulation = Simulation::of(facts, &candidates, &jobs)?;

    let mut withheld = WithheldTime::new(facts, simulation.own_as_restricted());
    let rated = rated(facts, candidates, &simulation, &withheld)?;
    let mut distinct = distinct(facts, rated.enough, rated.silenced.as_ref());

    withheld.add_polled(facts, &sleeps.polled, sleeps.superfluous.ns);
    let measurement = clocks::measurement(facts);
    withheld.keep(measurement.as_ref().map_or(0, |own| own.queued));
    let alone = withheld.alone(facts);
    distinct.limit_gains(alone, sleeps.unsure());

    let mut lines = AdviceLines::of(facts, &simulation, distinct.advice, alone, rated.spare);
    let had = CpuOwners::of(facts.analysis, facts.path, withheld.others);
    lines.add_machine(withheld.advice(facts, &had.names));
    let nothing = lines.nothing(facts)?;

    let unjudged = Unjudged {
        simulation: &simulation,
        withheld: &withheld,
        jobs: &jobs,
        sleeps: &sleeps,
        covered: &distinct.covered,
        measurement: measurement.as_ref(),
        silenced: rated.silenced.as_ref(),
        changes: &lines.changes,
    };
    let points = unjudged.open_points(facts);
    let could_be_parallel = could_be_parallel(&points, &lines.changes);

    let verdict = verdict(
        facts,
        Findings {
            withheld: &withheld,
            lines: &lines,
            points,
            had,
            bound: nothing.map(|(_, bound)| bound),
            simulated: simulation.own,
            unsure: sleeps.unsure(),
            starved: sleeps.starved_meanwhile(facts),
        },
    )?;

    let need = simulation.cpu_need(facts, alone);
    Ok(BuildAdvice {
        verdict: Some(verdict),
        together: lines.less_than_the_sum(),
        combined: lines.combined,
        changes: lines.changes,
        nothing,
        cpus: if could_be_parallel {
            need.map(CpuNeed::of_all)
        } else {
            need
        },
        in_use: facts.in_use(),
    })
}

/// Whether the build could perhaps run more tasks at once than it did. If so, the number of CPUs that is enough for the
/// recorded order of the tasks may be too small for another order.
fn could_be_parallel(points: &[OpenPoint], changes: &[Advice]) -> bool {
    let is_open = |point: &OpenPoint| matches!(point.kind, OpenKind::Jobs | OpenKind::Order);
    points.iter().any(is_open) || changes.iter().any(|line| line.kind.uses_cpus())
}
