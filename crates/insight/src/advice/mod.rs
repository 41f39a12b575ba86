//! Advises what to change in the build: findings with their evidence, a bound of the gain, and one thing to do.
//!
//! Each rule of advice proposes changes that save a part of the recorded time. The simulation
//! ([`tr_analyze::schedule`]) computes the gain of a change: the difference of the run's simulated times without and
//! with the change, both without other tasks on the CPUs. So the time that other tasks took has a line of its own and
//! is not part of another line's gain, and a second path that is almost as long as the critical one limits the gain. If
//! several changes explain the same part of the critical path, the most specific one stays.

mod affinity;
mod awaited;
mod candidate;
mod combined;
mod deadlines;
mod directories;
pub mod facts;
mod fetches;
mod job_limit;
mod jobs;
mod limits;
mod machine;
mod nap;
mod naps;
mod open;
mod pauses;
mod polls;
pub mod programs;
mod quartiles;
mod rating;
mod rhythm;
mod runners;
mod totals;
mod verdict;
mod waits;
mod work;
mod wrappers;

use tr_analyze::critical_path::{by_kind, CriticalPath, NoPath, Segment, TimeKind};
use tr_analyze::model::Basis;
use tr_analyze::schedule::{self, Change, Changes, Effect, Schedule};

#[cfg(doc)]
use crate::course;
use crate::cpu_need::CpuNeed;
use crate::exit;
use crate::path;
use crate::view::View;
use affinity::Affinity;
use candidate::Candidate;
pub(crate) use candidate::Gain;
pub use candidate::{Advice, AdviceKind, MOST};
use combined::combined;
pub use combined::Combined;
use facts::BuildFacts;
use machine::WithheldTime;
use nap::Superfluous;
use rating::{distinct, polled, rated, Assumed};
pub use verdict::{Blame, BuildVerdict, OpenKind, OpenPoint};
use verdict::{CpuOwners, Mostly};

/// The length in nanoseconds of the shortest recording that gets advice. A guess: nothing in a shorter recording is
/// worth a change.
const SHORTEST: u64 = 100_000_000;

/// The advice on a build and the verdict on it.
#[derive(Clone, Debug, Default)]
pub struct BuildAdvice {
    /// The verdict on how much of the build's time is its own and how much the machine withheld; `None` where no time
    /// is known.
    pub verdict: Option<BuildVerdict>,
    /// The advised changes, sorted by the middle of their gain in descending order. The advice about the machine is
    /// the last one.
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
    /// The mean number of CPUs that the build used in each of the [`course::PARTS`] equal parts of the recording, in
    /// hundredths of a CPU; empty for a short recording.
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

/// The advice on a recording. Nothing is advised if there is no critical path, or if filters select some processes,
/// because the advice is about the whole build.
pub fn advise<'a>(view: &View<'a>, path: &'a CriticalPath) -> BuildAdvice {
    if !view.has_all() {
        return BuildAdvice::default();
    }
    let facts = BuildFacts::new(view.recording, path);
    advise_by(view, path, facts.as_ref())
}

/// The advice on a recording for a view of all processes, like [`advise`], with facts that other reports have already
/// computed.
pub fn advise_by(
    view: &View<'_>,
    path: &CriticalPath,
    facts: Option<&BuildFacts<'_>>,
) -> BuildAdvice {
    // A recording with sums only does not say when a task ran, so no gain can be computed.
    if view.analysis.basis() != Basis::Events {
        return BuildAdvice {
            verdict: totals::verdict(view.analysis, path),
            ..BuildAdvice::default()
        };
    }
    let facts = facts.filter(|facts| facts.wall >= SHORTEST);
    facts
        .and_then(|facts| advised(facts).ok())
        .unwrap_or_default()
}

fn advised(facts: &BuildFacts<'_>) -> Result<BuildAdvice, NoPath> {
    let rules = [
        work::candidates,
        waits::candidates,
        jobs::candidates,
        runners::candidates,
        machine::candidates,
        wrappers::candidates,
    ];
    let mut candidates: Vec<Candidate> = rules.iter().flat_map(|rule| rule(facts)).collect();
    candidates.retain(|candidate| candidate.cap > 0);
    let polled = polled(facts, &candidates);
    let known = known_naps(facts, &candidates, &polled);
    // Two candidates can leave out the same time, which counts once.
    let superfluous = candidates.iter().filter(|candidate| !candidate.beside);
    let superfluous = superfluous.map(|candidate| candidate.superfluous);
    let superfluous = superfluous.fold(Superfluous::default(), Superfluous::plus);
    candidates.sort_by_key(|candidate| (std::cmp::Reverse(candidate.cap), candidate.kind));
    // Three places are left for changes that are no candidates: the waits without a proven cause, all sleeps, and the
    // change that runs commands at once which no candidate covers.
    candidates.truncate(schedule::MOST - 3);
    let orders = jobs::orders(facts);
    let unproven: Changes = 1 << candidates.len();
    let sleeps: Changes = unproven << 1;
    let last: Changes = sleeps << 1;
    let assumed = Assumed { unproven, sleeps };
    let order = jobs::order_of_all(facts, &orders);
    let changes = candidates.iter().map(Candidate::change);
    let changes = changes.chain([rating::without_unproven_waits(), rating::without_sleeps()]);
    let changes: Vec<Change> = changes.chain(order).collect();
    let schedule = Schedule::new(facts.analysis, facts.path, &facts.groups, &changes)?;
    let run = schedule.alone();
    let own = run.wall;
    let affinity = Affinity::of(facts, &schedule, own);
    let limited = affinity.as_ref().map_or(own, |affinity| affinity.own);
    let mut withheld = WithheldTime::new(facts, limited);
    let (rated, silenced) = rated(facts, candidates, &schedule, own, assumed, &withheld)?;
    let (mut kept, covered) = distinct(facts, rated);
    withheld.add_polled(facts, &polled, superfluous.ns);
    let deadline = deadlines::deadline(facts);
    let measurement = deadlines::measurement(facts);
    let by_clock = [
        deadline.as_ref().map(|deadline| deadline.queued),
        measurement.as_ref().map(|own| own.queued),
    ];
    withheld.keep(by_clock.into_iter().flatten().max().unwrap_or(0));
    let alone = facts.wall.saturating_sub(withheld.lost());
    // The threads of a program that wait for each other's CPUs make the simulated time longer than the build's own.
    let longest = alone.saturating_add(superfluous.guessed);
    for (advice, _) in &mut kept {
        advice.gain = advice.gain.min(longest);
        advice.at_least = advice.at_least.min(alone);
    }
    kept.sort_by_key(|(advice, _)| rank(advice));
    kept.truncate(MOST);
    // Perhaps work that runs alone can neither be divided nor left out, so the common gain does not count it.
    let alone_from = kept.partition_point(|(advice, _)| advice.kind != AdviceKind::Alone);
    let counted = kept.get(..alone_from).unwrap_or_default();
    let all = counted.iter().fold(0, |all, (_, changes)| all | changes);
    let gains = counted.iter().map(|(advice, _)| advice.gain);
    let sum = gains.fold(0, u64::saturating_add);
    // The sum of the gains is an upper limit, because a rule may know a smaller gain than the simulation.
    let mut together = own
        .saturating_sub(schedule.wall(all, Effect::Best))
        .min(sum);
    let mut forecasts = Vec::new();
    if rating::is_whole(facts, own) {
        forecasts = combined(&schedule, own, alone, counted);
    } else {
        // The simulation lacks some waits, but no change alone saves more than all together.
        let gains = counted.iter().map(|(advice, _)| advice.gain);
        together = gains.fold(together, u64::max);
    }
    let mut changes: Vec<Advice> = kept.into_iter().map(|(advice, _)| advice).collect();
    let pin = affinity
        .as_ref()
        .and_then(|affinity| affinity.advice(facts));
    let more_cpus = pin.as_ref().map_or(0, |line| line.gain);
    changes.extend(pin);
    changes.sort_by_key(rank);
    let together = together.saturating_add(more_cpus);
    let has_own = own_changes(&changes).next().is_some();
    let had = CpuOwners::of(facts.analysis, facts.path, withheld.others);
    changes.extend(withheld.advice(facts, &had.names));
    changes.truncate(MOST);
    let nothing = if changes.is_empty() {
        Some((facts.wall, facts.limits()?.on(facts.cpus).min(facts.wall)))
    } else {
        None
    };
    let bound = nothing.map(|(_, bound)| bound);
    let saved = has_own.then_some(together);
    let mut points = open::waits(facts, &covered, &polled);
    // A program that measures for a set time has timers for that time.
    let other_timer = deadline.filter(|_| measurement.is_none());
    points.extend(other_timer.and_then(|deadline| open::deadline(facts, &deadline)));
    points.extend(measurement.map(|own| open::measurement(facts, &own)));
    points.extend(open::limit(facts).filter(|_| affinity.is_none()));
    points.extend(silenced.map(|jobs| open::jobs(&jobs, &withheld)));
    if !points.iter().any(|point| point.kind == OpenKind::Jobs) {
        points.extend(open::crowd(facts));
    }
    let is_sleep = |kind| matches!(kind, AdviceKind::Sleep | AdviceKind::Poll);
    let has_sleep = changes.iter().any(|advice| is_sleep(advice.kind))
        || points.iter().any(|point| point.kind == OpenKind::Sleep);
    if !has_sleep && withheld.lost() > 0 {
        let most = own.saturating_sub(schedule.wall(sleeps, Effect::Best));
        points.extend(open::sleeps_beside(most, own));
    }
    // Advice about one task alone, about waits or about repeated work does not say how the other tasks could run, so their
    // number and order stay open points.
    let is_about_all = |advice: &Advice| {
        let kind = advice.kind;
        let is_wait = kind.of_waits().is_some() && kind != AdviceKind::Lock;
        let is_other = kind.is_machine() || kind.is_generic() || kind == AdviceKind::Repeated;
        !is_other && !is_wait
    };
    let all = changes.iter().any(is_about_all);
    if !all && !points.iter().any(|point| point.kind == OpenKind::Jobs) {
        let most = own.saturating_sub(schedule.wall(last, Effect::Best));
        points.extend(open::order(facts, &orders, most.min(own), own));
        let jobs = jobs::one_by_one(facts);
        points.extend(jobs.and_then(|jobs| open::one_by_one(facts, &jobs, own)));
    }
    // Fewer CPUs are enough for the recorded order, but perhaps not for another one.
    let is_open = |point: &OpenPoint| matches!(point.kind, OpenKind::Jobs | OpenKind::Order);
    let could_be_parallel =
        points.iter().any(is_open) || changes.iter().any(|line| line.kind.uses_cpus());
    let mut verdict = verdict(facts, &withheld, &changes, saved, bound, had);
    // The simulated time without a quota is less than the recorded time minus the throttled time, so it lowers the
    // least time of the forecast.
    if verdict.quota > 0 {
        verdict.alone_at_least = verdict.alone_at_least.min(own - own / 10);
    }
    let longest = verdict.alone_at_most.saturating_add(superfluous.guessed);
    verdict.alone_at_most = longest.min(facts.wall);
    verdict.have_open(points);
    // If the build's own work ends sooner, a loop that sleeps and checks for its end sleeps less often, and notices the
    // end at most one sleep late.
    let polls = changes
        .iter()
        .filter(|advice| advice.kind == AdviceKind::Poll);
    let late = polls.map(|advice| advice.gain).max();
    if let Some(late) = late.filter(|_| verdict.blame != Blame::Code) {
        let soonest = facts.limits()?.on(facts.cpus);
        verdict.alone_at_least = verdict.alone_at_least.min(soonest);
        let latest = verdict.alone_at_most.saturating_add(late);
        verdict.alone_at_most = latest.min(facts.wall);
    }
    let sleeps = naps::in_loops(facts);
    let sleeps = sleeps.iter().zip(&known);
    let sleeps: Vec<bool> = sleeps.map(|(sleep, known)| *sleep && !known).collect();
    verdict.have_starved(machine::starved_meanwhile(facts, &sleeps));
    Ok(BuildAdvice {
        verdict: Some(verdict),
        // A difference of a twentieth or less is not shown, because a single line can be wrong by more.
        together: Some(together).filter(|gain| sum.saturating_sub(*gain) > sum / 20),
        combined: forecasts,
        changes,
        nothing,
        in_use: facts.in_use(),
        // If the simulated time is much shorter than the verdict's, the simulation lacks waits and cannot show how many
        // CPUs are enough. If it is much longer, the verdict assumes fewer sleeps.
        cpus: CpuNeed::of(facts.cpus, &run, &schedule)
            .filter(|_| is_near(own, alone) && is_near(alone, own))
            .map(|need| {
                if could_be_parallel {
                    need.of_all()
                } else {
                    need
                }
            }),
    })
}

/// For each segment of the critical path, whether it is a sleep for which the awaited work is known.
fn known_naps(facts: &BuildFacts<'_>, candidates: &[Candidate], polled: &[bool]) -> Vec<bool> {
    let mut known = polled.to_vec();
    let lasted = candidates
        .iter()
        .filter(|candidate| candidate.superfluous.ns > 0);
    for candidate in lasted.take(MOST) {
        let covers = facts.covers(&candidate.without);
        for (is_known, own) in known.iter_mut().zip(covers) {
            *is_known |= own;
        }
    }
    known
}

/// Whether a time is at least four fifths of another one.
fn is_near(time: u64, other: u64) -> bool {
    time.saturating_mul(5) >= other.saturating_mul(4)
}

/// The key by which lines of advice are sorted: a larger middle of the gain comes first. Advice on tasks that run alone
/// comes last.
fn rank(advice: &Advice) -> (bool, std::cmp::Reverse<u64>, AdviceKind) {
    let gain = Gain::of(advice).twice_the_middle();
    (
        advice.kind == AdviceKind::Alone,
        std::cmp::Reverse(gain),
        advice.kind,
    )
}

/// The advised changes of the build itself whose gains the verdict counts. Perhaps work that runs alone can neither be
/// divided nor left out, so it does not count.
fn own_changes(changes: &[Advice]) -> impl Iterator<Item = &Advice> {
    let is_own = |advice: &&Advice| !advice.kind.is_machine() && advice.kind != AdviceKind::Alone;
    changes.iter().filter(is_own)
}

/// The cause of most of a build's waiting. It is returned only if the CPUs of this machine need less than half of the
/// recorded time for the work of the build. `bound` is the time in nanoseconds that they need.
fn waits(facts: &BuildFacts<'_>, bound: u64) -> Option<Mostly> {
    let half = facts.wall / 2;
    if bound >= half {
        return None;
    }
    let groups = path::groups(facts.analysis);
    let shares = path::shares(facts.analysis, &groups, facts.path);
    let mut known = shares.into_iter();
    let longest = known.find(|wait| is_known_wait(wait.part.kind, wait.by.as_deref()))?;
    let outside = longest
        .by
        .filter(|_| longest.part.kind == TimeKind::Outside);
    let mostly = Mostly {
        outside: outside.is_some(),
        name: outside.unwrap_or(longest.name),
        ns: longest.time,
        open: OpenKind::of(longest.part.kind),
    };
    (mostly.ns > half).then_some(mostly)
}

/// Whether the recording shows what a wait of the given kind waits for. `by` is the name of the task that ended the
/// wait, if this task is not recorded itself.
fn is_known_wait(kind: TimeKind, by: Option<&str>) -> bool {
    match kind {
        TimeKind::Outside => by.is_some(),
        kind => kind.is_wait() && kind != TimeKind::SleepOrBlocked,
    }
}

fn verdict(
    facts: &BuildFacts<'_>,
    withheld: &WithheldTime,
    changes: &[Advice],
    saved: Option<u64>,
    bound: Option<u64>,
    had: CpuOwners,
) -> BuildVerdict {
    let stolen = changes
        .iter()
        .find(|advice| advice.kind == AdviceKind::Stolen);
    let (others, quota) = (withheld.others, withheld.throttled);
    let much = |kind: AdviceKind, ns: u64| ns > 0 && ns.saturating_mul(kind.least()) >= facts.wall;
    let machine =
        stolen.is_some() || much(AdviceKind::Others, others) || much(AdviceKind::Throttled, quota);
    let lost = withheld.lost();
    let segments = facts.path.segments.iter();
    let segments = segments.filter(|segment| segment.kind.is_wait());
    let waited = segments.map(Segment::length).fold(0, u64::saturating_add);
    let alone = facts.wall.saturating_sub(lost);
    // Some of the lost time went to the build's own tasks beside the path. The build cannot be faster than its CPUs can
    // do all its work, so this time is the least.
    let alone = if lost > alone {
        let soonest = facts.limits().map_or(0, |limits| limits.on(facts.cpus));
        alone.max(soonest.min(facts.wall))
    } else {
        alone
    };
    let error = verdict::errors(
        lost,
        alone,
        by_kind(&facts.path.segments).of(TimeKind::Disk),
    );
    BuildVerdict {
        blame: match (machine, saved) {
            (true, Some(_)) => Blame::Both,
            // Advice on work that runs alone is not certain to help, because the work can perhaps not be divided.
            (true, None) if changes.iter().any(|line| line.kind == AdviceKind::Alone) => {
                Blame::Perhaps
            }
            (true, None) => Blame::Machine,
            (false, _) => Blame::Code,
        },
        wall: facts.wall,
        alone,
        alone_at_least: alone.saturating_sub(error.below),
        alone_at_most: alone.saturating_add(error.above).min(facts.wall),
        others: had.others,
        nobody: had.nobody,
        names: had.names,
        quota,
        quota_of: withheld.container.clone(),
        stolen: stolen.map_or(0, |advice| advice.gain),
        changes: saved.unwrap_or(0),
        unless_meant: own_changes(changes).all(|line| line.unless_meant),
        bound,
        // A wait longer than the build's own time is not shown: a part of it comes from other tasks, as for a loop that
        // checks for slowed work.
        mostly: waits(facts, bound.unwrap_or(0)).filter(|mostly| mostly.ns <= alone),
        waits: if waited <= alone && waited > alone / 2 {
            waited
        } else {
            0
        },
        open: Vec::new(),
        failed: exit::command_failed(facts.analysis),
        cpus: facts.cpus,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that waits of unknown cause are never named as the cause of most of a build's waiting, because that would
    /// explain nothing.
    #[test]
    fn what_a_build_mostly_waits_for_is_known() {
        let known = |by| -> Vec<&str> {
            let all = TimeKind::ALL.into_iter();
            let known = all.filter(|kind| is_known_wait(*kind, by));
            known.map(TimeKind::name).collect()
        };
        let waits = "disk memory network terminal sleep stopped blocked";
        assert_eq!(known(None).join(" "), waits);
        let mut named = known(Some("bash"));
        named.retain(|kind| *kind != "outside");
        assert_eq!(named, known(None));
        assert_eq!(known(Some("bash")).len(), named.len() + 1);
    }
}
