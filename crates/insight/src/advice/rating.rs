//! Chooses the proposed changes that gain enough for a line of advice. If several changes explain the same part of the
//! critical path, the most specific one is chosen.

use std::collections::BTreeSet;

use tr_analyze::critical_path::{NoPath, TimeKind};
use tr_analyze::model::ProcessIx;
use tr_analyze::programs::Group;
use tr_analyze::schedule::{Change, Changes, Effect, Jobs, Schedule};
use tr_analyze::timeline::{Bucket, Wait};
use tr_analyze::what_if::Without;
use tr_programs::tools::Role;

use super::candidate::{Advice, AdviceKind, AffectedWork, Candidate, Certainty, Gain, MOST};
use super::facts::BuildFacts;
use super::machine::WithheldTime;
use super::naps;

/// The least gain in ns for which a change is worth a line of advice. One of 52 recorded builds had a useless line for
/// a gain of 0.8 ms.
pub(super) const WORTH: u64 = 20_000_000;

/// The divisor of the build's own time for gains that always have a line of advice: a fifth. A guess: other tasks of
/// the machine make waits longer, but not by so much.
const FIFTH: u64 = 5;

/// The proposed changes that save enough for a line of advice. Some changes are not shown because other tasks have the
/// CPUs; the one of them that saves most is also returned. `own` is the simulated time of the build without changes, in
/// nanoseconds.
pub(super) fn rated(
    facts: &BuildFacts<'_>,
    candidates: Vec<Candidate>,
    schedule: &Schedule,
    own: u64,
    assumed: Assumed,
    withheld: &WithheldTime,
) -> Result<(Vec<RatedCandidate>, Option<Silenced>), NoPath> {
    let mut rated: Vec<RatedCandidate> = Vec::new();
    let mut silenced: Option<Silenced> = None;
    let mut checkers: BTreeSet<ProcessIx> = BTreeSet::new();
    // A change that only divides or moves work saves at most `spare`, because the CPUs still need the time for all
    // work.
    let remains = |candidate: &Candidate| candidate.work == AffectedWork::Remains;
    let spare = if candidates.iter().any(remains) {
        own.saturating_sub(facts.limits()?.work.div_ceil(facts.cpus))
    } else {
        own
    };
    for (candidate, number) in candidates.into_iter().zip(0..) {
        // Other tasks on the machine also make waits for disks, memory and locks longer, so these are compared with the
        // recorded time and not with the simulated time.
        let whole = match candidate.kind {
            AdviceKind::Disk | AdviceKind::Memory | AdviceKind::Lock => facts.wall,
            _ => own,
        };
        let least = candidate.kind.least();
        let is_part =
            |gain: u64| gain.saturating_mul(least) >= whole || gain.saturating_mul(FIFTH) >= own;
        let enough = |gain: u64| gain >= WORTH && is_part(gain);
        let jobs = matches!(candidate.kind, AdviceKind::FewJobs | AdviceKind::Tests);
        if !enough(candidate.cap) {
            continue;
        }
        let bit: Changes = 1 << number;
        // Without a sleep, another task may go on earlier whose wait has no proven cause.
        let most = match candidate.kind {
            AdviceKind::Sleep | AdviceKind::Poll => bit | assumed.unproven,
            // Jobs that run at once also end earlier for a program that checks for their ends.
            _ if checks_for_jobs(facts, &candidate) => {
                checkers.extend(candidate.jobs.iter().map(|jobs| jobs.owner));
                bit | assumed.sleeps
            }
            _ => bit,
        };
        let saved = |changes, effect| own.saturating_sub(schedule.wall(changes, effect));
        let gain = match candidate.kind {
            AdviceKind::Sleep | AdviceKind::Poll
                if !is_whole(facts, own) && has_threads(facts, &candidate) =>
            {
                candidate.cap
            }
            _ => saved(most, Effect::Best),
        };
        let gain = gain.saturating_sub(candidate.superfluous.proven());
        let gain = gain.min(candidate.cap);
        let gain = if remains(&candidate) {
            gain.min(spare)
        } else {
            gain
        };
        if enough(gain) && withheld.silences(&candidate) {
            let action = candidate.action;
            let most = silenced.as_ref().map_or(0, |jobs| jobs.gain);
            if gain > most {
                silenced = Some(Silenced { action, gain });
            }
        } else if enough(gain) {
            let at_least = match candidate.kind {
                // The lock may guard something that only one process can use at a time.
                AdviceKind::Lock => 0,
                // Whole builds may need each other's results, which no recording shows.
                _ if jobs && of_builds(facts, &candidate) => 0,
                _ if candidate.certainty != Certainty::Sure => 0,
                // Beside other tasks, more tasks of the build may not get more CPU time.
                _ if jobs && withheld.shared => 0,
                kind if candidate.jobs.is_empty() && kind.remains().1 >= 1000 => 0,
                _ => saved(bit, Effect::Worst).min(gain),
            };
            rated.push(RatedCandidate {
                gain: Gain {
                    at_least,
                    at_most: gain,
                },
                changes: most,
                candidate,
            });
        }
    }
    // The sleeps between such checks end when the jobs do, so they are no change of their own.
    let is_checker = |group: &Group| {
        let execution = facts.execution(*group);
        execution.is_some_and(|execution| checkers.contains(&execution.process))
    };
    let is_check = |rated: &RatedCandidate| {
        rated.candidate.kind == AdviceKind::Sleep && rated.candidate.evidence.iter().any(is_checker)
    };
    let has_jobs = rated.iter().any(|rated| !rated.candidate.jobs.is_empty());
    rated.retain(|rated| !has_jobs || !is_check(rated));
    Ok((rated, silenced))
}

/// Changes of the schedule that are assumed together with a proposed change where the most that it saves is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Assumed {
    /// The change [`without_unproven_waits`].
    pub unproven: Changes,
    /// The change [`without_sleeps`].
    pub sleeps: Changes,
}

/// The largest number of entries in a thread's timeline that are searched for sleeps. This bounds the work.
const PARTS: usize = 100_000;
/// How many times a program looks during one job whether it has ended, if its sleeps in between are no change of their
/// own. A guess: of fewer sleeps, the last one is a tenth of the job's length or more.
const OFTEN: usize = 10;

/// Whether the program that started the jobs of a proposed change looks again and again whether a job has ended: while
/// the jobs run, it sleeps for most of the time, or waits for a CPU between its sleeps.
fn checks_for_jobs(facts: &BuildFacts<'_>, candidate: &Candidate) -> bool {
    let checks = |jobs: &Jobs| {
        let owner = facts.analysis.process(jobs.owner);
        let (Some(thread), Some(timeline)) = (owner.threads.first(), &facts.analysis.timeline)
        else {
            return false;
        };
        let parts = timeline.since(*thread, jobs.from).take(PARTS);
        let (mut waits, mut sleeps) = (0u64, 0usize);
        for part in parts.take_while(|part| part.from < jobs.to) {
            let is_sleep = part.doing == Bucket::Wait(Wait::Sleep)
                && facts.analysis.wait_end(*thread, &part).is_timer();
            sleeps += usize::from(is_sleep);
            if is_sleep || matches!(part.doing, Bucket::RunQueue { .. }) {
                waits = waits.saturating_add(part.length());
            }
        }
        // The time from the start of the first job to that of the last one is the time of all jobs but one.
        let earlier = candidate.evidence.len().saturating_sub(1);
        sleeps >= OFTEN * earlier.max(1) && waits.saturating_mul(2) > jobs.to.since(jobs.from)
    };
    candidate.jobs.iter().any(checks)
}

/// The change to another number of jobs that would save time, but is not advised because other tasks or a quota have
/// the CPUs.
pub(super) struct Silenced {
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

/// Whether the simulation has all waits of the critical path. `own` is the simulated time of the build without changes, in
/// nanoseconds. The simulation leaves out waits that it takes for those of a thread in the background. The threads of some
/// runtimes, such as Go's, hand their waits to each other, so that they look like that.
pub(super) fn is_whole(facts: &BuildFacts<'_>, own: u64) -> bool {
    own.saturating_mul(5) >= facts.worked.saturating_mul(4)
}

/// The change that leaves out all waits whose cause the recording does not prove. It is assumed together with a proposed
/// change where the most that the latter saves is asked for.
pub(super) fn without_unproven_waits() -> Change {
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

/// The change that leaves out all sleeps of the build, also those beside the critical path.
pub(super) fn without_sleeps() -> Change {
    Change {
        time: Without::own(|kind, _| kind == TimeKind::Sleep, None),
        remains: (0, 1000),
        jobs: Vec::new(),
    }
}

/// Whether the jobs of a proposed change are builds themselves, such as a make that another make starts.
fn of_builds(facts: &BuildFacts<'_>, candidate: &Candidate) -> bool {
    let mut jobs = candidate.evidence.iter();
    jobs.any(|group| facts.role(*group) == Some(Role::Jobs))
}

/// A proposed change with its gain.
pub(super) struct RatedCandidate {
    pub gain: Gain,
    /// The changes that a simulation assumes for the most that the proposed change saves.
    pub changes: Changes,
    pub candidate: Candidate,
}

/// For each segment of the critical path, whether it is a sleep in a loop that sleeps and checks for the end of other
/// work. The loops of build tools count, too.
pub(super) fn polled(facts: &BuildFacts<'_>, candidates: &[Candidate]) -> Vec<bool> {
    let mut polled = naps::of_tools(facts);
    let polls = candidates
        .iter()
        .filter(|candidate| candidate.kind == AdviceKind::Poll);
    for poll in polls.take(MOST) {
        let covers = facts.covers(&poll.without);
        for (is_polled, own) in polled.iter_mut().zip(covers) {
            *is_polled |= own;
        }
    }
    polled
}

/// Removes proposed changes whose part of the critical path a more specific change already explains. Returns the
/// remaining ones as advice, and for each segment of the path whether some advice covers it.
pub(super) fn distinct(
    facts: &BuildFacts<'_>,
    mut rated: Vec<RatedCandidate>,
) -> (Vec<(Advice, Changes)>, Vec<bool>) {
    rated.sort_by_key(|rated| {
        let kind = rated.candidate.kind;
        let mut worth = rated.gain.twice_the_middle();
        // A change that also removes time beside the critical path is larger than a change that does not, so a fifth of
        // its gain is not counted.
        if rated.candidate.beside {
            worth -= worth / 5;
        }
        (kind.is_generic(), std::cmp::Reverse(worth), kind)
    });
    let mut kept: Vec<(AdviceKind, Vec<bool>)> = Vec::new();
    let mut explained: BTreeSet<ProcessIx> = BTreeSet::new();
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
        let told = facts.advice(rated.candidate, rated.gain);
        if matches!(
            kind,
            AdviceKind::Lock | AdviceKind::FewJobs | AdviceKind::Tests | AdviceKind::SlowTest
        ) {
            explained.extend(&told.processes);
        }
        kept.push((kind, covers));
        advice.push((told, rated.changes));
    }
    let mut covered = vec![false; facts.path.segments.len()];
    for (_, covers) in &kept {
        for (is_covered, own) in covered.iter_mut().zip(covers) {
            *is_covered |= own;
        }
    }
    (advice, covered)
}
