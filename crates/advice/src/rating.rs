//! Chooses the proposed changes that gain enough for a line of advice. If several changes explain mostly the same part
//! of the critical path, the one with the largest gain is chosen; advice about one task alone yields to all other
//! advice.

use std::collections::BTreeSet;

use tr_analyze::critical_path::NoPath;
use tr_analyze::model::ProcessIx;
use tr_analyze::programs::Group;
use tr_analyze::schedule::{Changes, Effect};
use tr_programs::tools::Role;

use crate::candidate::{
    Advice, AdviceKind, AffectedWork, Candidate, Certainty, CpuDemand, Gain, LEAST_GAIN,
};
use crate::facts::BuildFacts;
use crate::jobs::checkers::Checkers;
use crate::machine::WithheldTime;
use crate::simulation::Simulation;

/// A change that saves at least the build's own time divided by this number (a fifth) is always large enough for a line
/// of advice. A guess: other tasks of the machine make waits longer, but not by so much that a gain of this size is due
/// to other tasks alone.
const FIFTH: u64 = 5;

/// The proposed changes that save enough for a line of advice.
pub(super) struct RatedCandidates {
    /// The changes that save enough to be shown. A change is still left out if a change that is ranked higher explains
    /// the same time.
    pub enough: Vec<RatedCandidate>,
    /// The change that saves most among those that are not shown because other tasks or a quota have the CPUs.
    pub silenced: Option<Silenced>,
    /// The most time in nanoseconds that changes can save together if all work of the build remains.
    pub spare: u64,
}

/// Finds the proposed changes that save enough for a line of advice. `candidates[n]` proposes the change with the bit
/// `1 << n` of the simulation.
pub(super) fn rated(
    facts: &BuildFacts<'_>,
    candidates: Vec<Candidate>,
    simulation: &Simulation,
    withheld: &WithheldTime,
) -> Result<RatedCandidates, NoPath> {
    // A simulation that lacks waits of the critical path takes too little time.
    let own = if simulation.has_all_waits(facts) {
        simulation.own
    } else {
        facts.worked
    };
    let gains = Gains {
        facts,
        simulation,
        withheld,
        spare: spare(facts, own)?,
    };
    let mut rated = RatedCandidates {
        enough: Vec::new(),
        silenced: None,
        spare: gains.spare,
    };
    let mut checkers = Checkers::default();
    for (candidate, number) in candidates.into_iter().zip(0..) {
        if !gains.is_enough(candidate.kind, candidate.cap) {
            continue;
        }
        let change: Changes = 1 << number;
        let changes = match candidate.kind {
            // If a sleep is left out, another task whose wait has no proven cause may go on earlier, too.
            AdviceKind::Sleep | AdviceKind::Poll => change | simulation.unproven,
            // If jobs run at once, a program that checks for the ends of these jobs sleeps less.
            _ if checkers.add(facts, &candidate) => change | simulation.sleeps,
            _ => change,
        };
        let at_most = gains.at_most(&candidate, changes);
        if !gains.is_enough(candidate.kind, at_most) {
            continue;
        }
        if withheld.silences(&candidate) {
            let most = rated.silenced.as_ref().map_or(0, |jobs| jobs.gain);
            if at_most > most {
                let jobs = candidate.evidence.iter();
                let jobs = jobs.filter_map(|group| facts.execution(*group));
                rated.silenced = Some(Silenced {
                    processes: jobs.map(|execution| execution.process).collect(),
                    action: candidate.action,
                    gain: at_most,
                });
            }
        } else {
            let at_least = gains.at_least(&candidate, change).min(at_most);
            rated.enough.push(RatedCandidate {
                gain: Gain { at_least, at_most },
                changes,
                candidate,
            });
        }
    }
    let has_jobs = |rated: &RatedCandidate| !rated.candidate.jobs.is_empty();
    if rated.enough.iter().any(has_jobs) {
        let is_check = |rated: &RatedCandidate| checkers.sleep_in(facts, &rated.candidate);
        rated.enough.retain(|rated| !is_check(rated));
    }
    Ok(rated)
}

/// The most time in nanoseconds that a change can save if it only divides or moves work, or leaves out waits: the CPUs
/// still need the time for all work of the build. `own` is the time in nanoseconds that the build takes without changes
/// and without other tasks.
fn spare(facts: &BuildFacts<'_>, own: u64) -> Result<u64, NoPath> {
    let work = facts.limits()?.work;
    Ok(own.saturating_sub(work.div_ceil(facts.cpus)))
}

fn remains(candidate: &Candidate) -> bool {
    candidate.work == AffectedWork::Remains
}

/// The facts by which the gains of proposed changes are computed. All gains are in nanoseconds.
struct Gains<'g> {
    facts: &'g BuildFacts<'g>,
    simulation: &'g Simulation,
    withheld: &'g WithheldTime,
    spare: u64,
}

impl Gains<'_> {
    /// Whether a change of the given kind of advice is worth a line of advice if the change saves `gain`.
    fn is_enough(&self, kind: AdviceKind, gain: u64) -> bool {
        let own = self.simulation.own;
        // Other tasks on the machine also make waits for disks, memory and locks longer, so these are compared with the
        // recorded time and not with the simulated time.
        let whole = match kind {
            AdviceKind::Disk | AdviceKind::Memory | AdviceKind::Lock => self.facts.wall,
            _ => own,
        };
        let is_part =
            gain.saturating_mul(kind.least()) >= whole || gain.saturating_mul(FIFTH) >= own;
        gain >= LEAST_GAIN && is_part
    }

    /// The most time in nanoseconds that a proposed change saves. `changes` has all changes that the simulation assumes
    /// in order to find this time.
    fn at_most(&self, candidate: &Candidate, changes: Changes) -> u64 {
        let is_sleep = matches!(candidate.kind, AdviceKind::Sleep | AdviceKind::Poll);
        // The simulation may lack the waits of a runtime's threads, but the rule that proposes the change knows how
        // long these threads slept, or how long a program ran alone.
        let simulation_lacks_it = !self.simulation.has_all_waits(self.facts)
            && (is_sleep && has_threads(self.facts, candidate) || candidate.kind.is_generic());
        let gain = if simulation_lacks_it {
            candidate.cap
        } else {
            self.simulation.saved(changes, Effect::Best)
        };
        let gain = gain.saturating_sub(candidate.superfluous.proven());
        let most = if remains(candidate) {
            candidate.cap.min(self.spare)
        } else {
            candidate.cap
        };
        gain.min(most).saturating_add(candidate.longer)
    }

    /// The least time in nanoseconds that a proposed change saves, as far as the simulation shows this. `change` is the
    /// bit of the proposed change alone.
    fn at_least(&self, candidate: &Candidate, change: Changes) -> u64 {
        let is_about_jobs = candidate.demand != CpuDemand::Same;
        match candidate.kind {
            // Processes that wait for a lock may need something that only one process can use at a time. So the least
            // gain is 0.
            AdviceKind::Lock => 0,
            // Whole builds may need each other's results, which no recording shows.
            _ if is_about_jobs && of_builds(self.facts, candidate) => 0,
            _ if candidate.certainty != Certainty::Sure => 0,
            // If other tasks use the CPUs, too, the build may get no more CPU time even if more of its tasks run at
            // once.
            _ if is_about_jobs && self.withheld.shared => 0,
            kind if candidate.jobs.is_empty() && kind.remains().1 >= 1000 => 0,
            _ => self.simulation.saved(change, Effect::Worst),
        }
    }
}

/// The change to another number of jobs that would save time, but is not advised because other tasks or a quota have
/// the CPUs.
pub(super) struct Silenced {
    /// The jobs that the change would run at once. Each of them runs alone only because the others wait for it.
    pub processes: BTreeSet<ProcessIx>,
    pub action: String,
    /// The largest time in nanoseconds that the change saves if the build has its CPUs for itself.
    pub gain: u64,
}

/// Whether all processes that are the evidence for a proposed change have several threads.
fn has_threads(facts: &BuildFacts<'_>, candidate: &Candidate) -> bool {
    let mut processes = candidate
        .evidence
        .iter()
        .filter_map(|group| facts.process(*group));
    processes.all(|process| process.threads.len() > 1)
}

/// Whether the jobs of a proposed change are builds themselves, such as a make that another make starts.
fn of_builds(facts: &BuildFacts<'_>, candidate: &Candidate) -> bool {
    let mut jobs = candidate.evidence.iter();
    jobs.any(|group| facts.role(*group) == Some(Role::Jobs))
}

/// A proposed change with its gain.
pub(super) struct RatedCandidate {
    pub gain: Gain,
    /// The changes that the simulation makes at once to find the most time that the proposed change saves.
    pub changes: Changes,
    pub candidate: Candidate,
}

/// An advised change whose time no change that is ranked higher explains.
pub(super) struct DistinctAdvice {
    pub advice: Advice,
    pub changes: Changes,
    /// The part of the largest gain in nanoseconds that the simulation does not show ([`Candidate::longer`]).
    pub longer: u64,
    /// Whether the CPUs have the same work with the change, because the change moves work or leaves out waits.
    pub keeps_work: bool,
}

/// The advised changes, each of which explains another part of the critical path.
pub(super) struct Distinct {
    pub advice: Vec<DistinctAdvice>,
    /// For each segment of the critical path, whether some advice covers it.
    pub covered: Vec<bool>,
}

impl Distinct {
    /// Limits the gains to the time `alone` that the build takes if no other tasks use its CPUs. `unsure` is the time
    /// of sleeps that may or may not belong to the build's own time, so the largest gains may exceed `alone` by
    /// `unsure`. Both times are in nanoseconds. A limit is needed because the gains follow from the simulated time,
    /// which is longer than `alone` if threads of a program wait for CPUs that other threads of the same program use.
    pub fn limit_gains(&mut self, alone: u64, unsure: u64) {
        let longest = alone.saturating_add(unsure);
        for DistinctAdvice { advice, .. } in &mut self.advice {
            advice.gain = advice.gain.min(longest);
            advice.at_least = advice.at_least.min(alone);
        }
    }
}

/// Removes proposed changes of which a change that is ranked higher explains more than half of the time on the path.
/// Larger gains rank higher, and advice about one task alone ranks lowest. Apart from such advice, both changes must be
/// about the same kind of wait, or both about no wait (`AdviceKind::of_waits`).
/// A change that is not shown (`silenced`) explains why its jobs run alone.
pub(super) fn distinct(
    facts: &BuildFacts<'_>,
    mut rated: Vec<RatedCandidate>,
    silenced: Option<&Silenced>,
) -> Distinct {
    rated.sort_by_key(|rated| {
        let kind = rated.candidate.kind;
        let mut worth = rated.gain.twice_the_middle();
        // A change that also removes sleeps which are not on the critical path changes more of the build than other
        // changes. So a fifth of its gain is not counted when changes are ranked.
        if rated.candidate.extends {
            worth -= worth / 5;
        }
        (kind.is_generic(), std::cmp::Reverse(worth), kind)
    });
    let mut kept: Vec<(AdviceKind, Vec<bool>)> = Vec::new();
    let silenced = silenced.map(|silenced| silenced.processes.clone());
    let mut explained: BTreeSet<ProcessIx> = silenced.unwrap_or_default();
    let mut advice = Vec::new();
    for rated in rated {
        let kind = rated.candidate.kind;
        let covers = facts.covers(&rated.candidate.without);
        let all = facts.length(&covers);
        let same = kept.iter().any(|(other, covered)| {
            let both: Vec<bool> = covers.iter().zip(covered).map(|(a, b)| *a && *b).collect();
            (kind.is_generic() || kind.of_waits() == other.of_waits())
                && all > 0
                && facts.length(&both).saturating_mul(2) > all
        });
        let below = |group: &Group| facts.is_below(*group, &explained);
        if same || (kind.is_generic() && rated.candidate.evidence.iter().any(below)) {
            continue;
        }
        let keeps_work = remains(&rated.candidate) || kind.of_waits().is_some();
        let longer = rated.candidate.longer;
        let new = facts.advice(rated.candidate, rated.gain);
        if matches!(
            kind,
            AdviceKind::Lock | AdviceKind::FewJobs | AdviceKind::Tests | AdviceKind::SlowTest
        ) {
            explained.extend(&new.processes);
        }
        kept.push((kind, covers));
        advice.push(DistinctAdvice {
            advice: new,
            changes: rated.changes,
            longer,
            keeps_work,
        });
    }
    let mut covered = vec![false; facts.path.segments.len()];
    for (_, covers) in &kept {
        for (is_covered, own) in covered.iter_mut().zip(covers) {
            *is_covered |= own;
        }
    }
    Distinct { advice, covered }
}
