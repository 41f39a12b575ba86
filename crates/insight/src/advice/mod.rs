//! What to change in the build: findings with their evidence, a bound of the gain, and one
//! thing to do.
//!
//! Each rule proposes candidates: a part of the recorded time that a change may save. The
//! simulation ([`tr_analyze::schedule`]) tells the gain: the run on CPUs of its own, less the same
//! with that change. So what other tasks took is no line's gain but its own line's, and a second
//! path that is almost as long limits it. Of candidates that explain the same part of the critical
//! path, the most specific one stays.

pub mod facts;
mod jobs;
mod machine;
mod open;
mod polls;
pub mod programs;
mod totals;
mod verdict;
mod waits;
mod work;
mod wrappers;

use std::collections::BTreeSet;

use tr_analyze::critical_path::{self, CriticalPath, Kind as Time, NoPath};
use tr_analyze::model::{Analysis, Basis, ProcessIx};
use tr_analyze::programs::Group;
use tr_analyze::schedule::{self, Change, Changes, Effect, Jobs, Schedule};
use tr_analyze::what_if::Without;
use tr_format::event::Ktime;
use tr_programs::tools::Role;

#[cfg(doc)]
use crate::course;
use crate::cpu_need::CpuNeed;
use crate::exit;
use crate::path;
use crate::view::View;
use facts::Facts;
use machine::WithheldTime;
use tr_text::named;
use tr_text::units;
pub use verdict::{Blame, OpenKind, OpenPoint, Verdict};
use verdict::{CpuOwners, Mostly};

named! {
    /// The kind of an advice, the most specific ones first.
    pub enum Kind {
        Link = "link", "A linker decides";
        Configure = "configure", "A configuration decides";
        Install = "install", "An installation of packages decides";
        /// Sleeps of a fixed length.
        Sleep = "sleep", "Sleeps decide";
        Poll = "poll", "A loop that sleeps and checks decides";
        Network = "network", "The network decides";
        Disk = "disk", "The disk decides";
        /// Waits for memory that is on a disk.
        Memory = "memory", "Missing memory decides";
        /// Waits for a file's lock.
        Lock = "lock", "A lock decides";
        Tests = "tests", "Tests run one after the other";
        /// One test of many.
        SlowTest = "slow-test", "One test decides";
        /// Jobs one after the other, or fewer than the CPUs.
        FewJobs = "few-jobs", "More jobs could run at once";
        Repeated = "repeated", "Work is repeated";
        /// The own time of programs that only start others.
        Wrapper = "wrapper", "Programs that start others take time";
        /// A compiler's cache without a hit.
        ColdCache = "cold-cache", "The compiler's cache is empty";
        Short = "short", "Many short programs run";
        Throttled = "throttled", "The CPU quota throttles the build";
        Stolen = "stolen", "The hypervisor takes CPU time";
        Others = "others", "Other tasks have the CPUs";
        Last = "last", "The longest job starts last";
        Alone = "alone", "One task runs alone";
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    pub kind: Kind,
    /// The evidence: the tasks and their time.
    pub finding: String,
    pub action: String,
    /// The wall time that it saves at least, as far as that is known, and at most, in ns.
    pub at_least: u64,
    pub gain: u64,
    /// The time in which the evidence lies.
    pub from: Ktime,
    pub to: Ktime,
    /// The processes, in order of start.
    pub processes: Vec<ProcessIx>,
}

impl Advice {
    /// The time that the change saves, in words; `at_most` stands before a time that is only an upper bound.
    pub fn saves(&self, at_most: &str) -> String {
        match self.at_least {
            0 => format!("{at_most} {}", units::time(self.gain)),
            least => units::range(least, self.gain),
        }
    }
}

/// A change whose gain is not computed yet.
pub(crate) struct Candidate {
    kind: Kind,
    finding: String,
    action: String,
    /// The time that the change saves, if it saves all of it.
    without: Without,
    /// A bound that follows from the rule.
    cap: u64,
    /// Jobs that the change runs at once: their work remains.
    jobs: Vec<Jobs>,
    /// The change is another number of jobs.
    number: bool,
    /// Whether the work remains to be done: at other times, or by several tasks.
    stays: bool,
    /// Whether the change may save nothing.
    unsure: bool,
    /// Whether the change also takes away what lies beside the path: another candidate takes away the path's part alone.
    beside: bool,
    /// The executions that are the evidence.
    evidence: Vec<Group>,
}

impl Candidate {
    /// A candidate that saves nothing yet.
    fn of(kind: Kind) -> Candidate {
        Candidate {
            kind,
            finding: String::new(),
            action: String::new(),
            without: Without::own(|_, _| false, None),
            cap: 0,
            jobs: Vec::new(),
            number: false,
            stays: false,
            unsure: false,
            beside: false,
            evidence: Vec::new(),
        }
    }
}

pub const MOST: usize = 7;
/// The least gain is the time that the build takes on CPUs of its own, divided by this.
fn least(kind: Kind) -> u64 {
    match kind {
        Kind::Sleep | Kind::Poll | Kind::Network | Kind::Lock | Kind::Throttled | Kind::Wrapper => {
            50
        }
        // Every machine has some, and every build has a task that is the longest.
        Kind::Others | Kind::Stolen | Kind::Last | Kind::Alone => 10,
        // Every build has shorter ones.
        _ => 20,
    }
}
/// The shortest recording with advice, in ns: nothing in it is worth a change.
const SHORTEST: u64 = 100_000_000;
/// The least gain that is worth a change, in ns. One of 52 recorded builds had a line of no use for 0.8 ms.
const WORTH: u64 = 20_000_000;

/// The advice on a build and the verdict on it.
#[derive(Clone, Debug, Default)]
pub struct BuildAdvice {
    /// The build's own time and the machine's part; `None` where no time is known.
    pub verdict: Option<Verdict>,
    /// The changes, those with the largest middle of the gain first, and the line about the machine last.
    pub changes: Vec<Advice>,
    /// The most that all changes save together, if that is less than their sum, in nanoseconds.
    pub together: Option<u64>,
    /// The first two changes together, the first three, and so on.
    combined: Vec<Combined>,
    /// For a build without any change: its time, and the least time that these CPUs need for it, in
    /// nanoseconds.
    pub nothing: Option<(u64, u64)>,
    /// The CPUs that the build used, and how many would do.
    pub cpus: Option<CpuNeed>,
    /// The mean number of CPUs that the build used in each of the [`course::PARTS`] of the time, in hundredths; empty
    /// for a short recording.
    pub in_use: Vec<u64>,
}

/// The forecast for several changes at once: their gains do not add up. Times in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combined {
    /// The number of the changes, the first ones of the list.
    pub changes: usize,
    /// The build's time on CPUs of its own.
    pub from: u64,
    /// The time with the changes at best, and at worst, in nanoseconds.
    pub to: (u64, u64),
}

impl Combined {
    /// The forecast in words. `shown`: the number of lines above it.
    pub fn text(&self, shown: usize) -> String {
        const NUMBERS: [&str; 8] = ["", "", "two", "three", "four", "five", "six", "seven"];
        let number = NUMBERS.get(self.changes).copied().unwrap_or("lines");
        let these = if self.changes < shown {
            "the first"
        } else {
            "these"
        };
        let (best, worst) = self.to;
        let to = if worst >= self.from {
            format!("{} at best", units::time(best))
        } else {
            units::range(best, worst)
        };
        let from = units::time(self.from);
        format!("combined, {these} {number}: {from} → {to}")
    }
}

impl BuildAdvice {
    /// The first changes together: none, if fewer than two of these are simulated.
    pub fn combined(&self, first: usize) -> Option<Combined> {
        let of = |combined: &&Combined| combined.changes <= first;
        self.combined.iter().take_while(of).last().copied()
    }

    /// The changes that can be made. The CPU time that other tasks took belongs to the verdict.
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

/// The changes. None without a critical path, and with filters: they speak about the whole.
pub fn advise<'a>(view: &View<'a>, path: &'a CriticalPath) -> BuildAdvice {
    if !view.has_all() {
        return BuildAdvice::default();
    }
    let facts = Facts::new(view.recording, path);
    advise_by(view, path, facts.as_ref())
}

/// Like [`advise`] for a view of all processes, but reuses facts that other reports have already computed.
pub fn advise_by(view: &View<'_>, path: &CriticalPath, facts: Option<&Facts<'_>>) -> BuildAdvice {
    // Totals do not say when a task ran: no gain can be shown.
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

fn failed(analysis: &Analysis) -> bool {
    let root = critical_path::root(analysis).ok();
    root.is_some_and(|root| exit::failed(analysis.process(root).status))
}

fn advised(facts: &Facts<'_>) -> Result<BuildAdvice, NoPath> {
    let rules = [
        work::candidates,
        waits::candidates,
        jobs::candidates,
        machine::candidates,
        wrappers::candidates,
    ];
    let mut candidates: Vec<Candidate> = rules.iter().flat_map(|rule| rule(facts)).collect();
    candidates.retain(|candidate| candidate.cap > 0);
    let polled = polled(facts, &candidates);
    candidates.sort_by_key(|candidate| (std::cmp::Reverse(candidate.cap), candidate.kind));
    // The last change is that of the orders which no candidate changes.
    candidates.truncate(schedule::MOST - 1);
    let orders = jobs::orders(facts);
    let last: Changes = 1 << candidates.len();
    let order = jobs::order_of_all(facts, &orders);
    let changes = candidates.iter().map(Candidate::change);
    let changes: Vec<Change> = changes.chain(order).collect();
    let schedule = Schedule::new(facts.analysis, facts.path, &facts.groups, &changes)?;
    let own = schedule.wall(0, Effect::Best);
    let mut withheld = WithheldTime::new(facts, own);
    let (rated, silenced) = rated(facts, candidates, &schedule, own, &withheld)?;
    let (mut kept, mut covered) = distinct(facts, rated);
    // A loop that gains too little for a line is judged.
    for (is_covered, polled) in covered.iter_mut().zip(&polled) {
        *is_covered |= polled;
    }
    withheld.add_polled(facts, &polled);
    kept.sort_by_key(|(advice, _)| {
        (
            std::cmp::Reverse(Gain::of(advice).twice_the_middle()),
            advice.kind,
        )
    });
    kept.truncate(MOST);
    let all = kept.iter().fold(0, |all, (_, bit)| all | bit);
    let gains = kept.iter().map(|(advice, _)| advice.gain);
    let sum = gains.fold(0, u64::saturating_add);
    // A rule may know a bound.
    let together = own
        .saturating_sub(schedule.wall(all, Effect::Best))
        .min(sum);
    let alone = facts.wall.saturating_sub(withheld.others);
    let alone = alone.saturating_sub(withheld.throttled);
    let combined = combined(&schedule, own, alone, &kept);
    let mut changes: Vec<Advice> = kept.into_iter().map(|(advice, _)| advice).collect();
    let has_own = changes.iter().any(|advice| !advice.kind.is_machine());
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
    let mut points = open::waits(facts, &covered);
    points.extend(open::limit(facts));
    points.extend(silenced.map(|jobs| open::jobs(&jobs, &withheld)));
    // Advice about one task alone does not say how the others could run.
    let is_about_all = |advice: &Advice| !advice.kind.is_machine() && !advice.kind.is_generic();
    let all = changes.iter().any(is_about_all);
    if !all && !points.iter().any(|point| point.kind == OpenKind::Jobs) {
        let most = own.saturating_sub(schedule.wall(last, Effect::Best));
        points.extend(open::order(facts, &orders, most.min(own), own));
    }
    let mut verdict = verdict(facts, &withheld, &changes, saved, bound, had);
    verdict.have_open(points);
    // A loop that looks whether the build's own work is done sleeps less often where that is done sooner, and
    // notices it at most one sleep late.
    let polls = changes.iter().filter(|advice| advice.kind == Kind::Poll);
    let late = polls.map(|advice| advice.gain).max();
    if let Some(late) = late.filter(|_| verdict.blame != Blame::Code) {
        let soonest = facts.limits()?.on(facts.cpus);
        verdict.alone_at_least = verdict.alone_at_least.min(soonest);
        let latest = verdict.alone_at_most.saturating_add(late);
        verdict.alone_at_most = latest.min(facts.wall);
    }
    Ok(BuildAdvice {
        verdict: Some(verdict),
        // A twentieth of the sum is less than what a line can be wrong by.
        together: Some(together).filter(|gain| sum.saturating_sub(*gain) > sum / 20),
        combined,
        changes,
        nothing,
        in_use: facts.in_use(),
        cpus: CpuNeed::of(facts.cpus, &facts.parallelism.demand, &schedule, own),
    })
}

/// The cause of most of the waiting, for a build that needs less than half of its time on these CPUs.
fn waits(facts: &Facts<'_>, bound: u64) -> Option<Mostly> {
    let half = facts.wall / 2;
    if bound >= half {
        return None;
    }
    let groups = path::groups(facts.analysis);
    let shares = path::shares(facts.analysis, &groups, facts.path);
    let mut known = shares.into_iter();
    let longest = known.find(|wait| is_known_wait(wait.part.kind, wait.by.as_deref()))?;
    let outside = longest.by.filter(|_| longest.part.kind == Time::Outside);
    let mostly = Mostly {
        outside: outside.is_some(),
        name: outside.unwrap_or(longest.name),
        ns: longest.time,
        open: OpenKind::of(longest.part.kind),
    };
    (mostly.ns > half).then_some(mostly)
}

/// Whether the recording shows what a wait of this kind is for. `by`: the task that is not recorded and ended
/// the wait.
fn is_known_wait(kind: Time, by: Option<&str>) -> bool {
    match kind {
        Time::Outside => by.is_some(),
        kind => kind.is_wait() && kind != Time::SleepOrBlocked,
    }
}

/// The candidates that save enough, and the most of the numbers of jobs that are not advised here. `own`: the
/// simulated time without changes.
fn rated(
    facts: &Facts<'_>,
    candidates: Vec<Candidate>,
    schedule: &Schedule,
    own: u64,
    withheld: &WithheldTime,
) -> Result<(Vec<RatedCandidate>, Option<Silenced>), NoPath> {
    let mut rated: Vec<RatedCandidate> = Vec::new();
    let mut silenced: Option<Silenced> = None;
    // However the same work is divided, these CPUs need so long for it.
    let spare = if candidates.iter().any(|candidate| candidate.stays) {
        own.saturating_sub(facts.limits()?.work.div_ceil(facts.cpus))
    } else {
        own
    };
    for (candidate, bit) in candidates.into_iter().zip(0..) {
        // Where others have the CPUs, a wait for a disk is longer, too.
        let whole = match candidate.kind {
            Kind::Disk | Kind::Memory | Kind::Lock => facts.wall,
            _ => own,
        };
        let enough =
            |gain: u64| gain >= WORTH && gain.saturating_mul(least(candidate.kind)) >= whole;
        let jobs = matches!(candidate.kind, Kind::FewJobs | Kind::Tests);
        if !enough(candidate.cap) {
            continue;
        }
        let saved = |effect| own.saturating_sub(schedule.wall(1 << bit, effect));
        let gain = saved(Effect::Best).min(candidate.cap);
        let gain = if candidate.stays {
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
                // It may guard what only one can use.
                Kind::Lock => 0,
                // Whole builds may need each other's results, which no recording tells.
                _ if jobs && of_builds(facts, &candidate) => 0,
                _ if candidate.unsure => 0,
                // Beside others more tasks may get no more of the CPUs.
                _ if jobs && withheld.shared => 0,
                kind if candidate.jobs.is_empty() && kind.remains().1 >= 1000 => 0,
                _ => saved(Effect::Worst).min(gain),
            };
            rated.push(RatedCandidate {
                gain: Gain {
                    at_least,
                    at_most: gain,
                },
                bit: 1 << bit,
                candidate,
            });
        }
    }
    Ok((rated, silenced))
}

/// A number of jobs that is not advised beside other tasks or under a quota.
struct Silenced {
    action: String,
    /// The most that the change saves on CPUs of its own, in nanoseconds.
    gain: u64,
}

/// The first two changes at once, the first three, and so on. A change that may save nothing is
/// left out at worst.
/// `own`: the simulated time without changes; `alone`: that which the verdict tells.
fn combined(
    schedule: &Schedule,
    own: u64,
    alone: u64,
    kept: &[(Advice, Changes)],
) -> Vec<Combined> {
    let (mut all, mut sure) = (0, 0);
    let (mut sum, mut least) = (0u64, 0);
    let mut list = Vec::new();
    for ((advice, bit), changes) in kept.iter().zip(1..) {
        all |= bit;
        sum = sum.saturating_add(advice.gain);
        if advice.at_least > 0 {
            sure |= bit;
            least = least.max(advice.at_least);
        }
        if changes < 2 {
            continue;
        }
        let saved = |changes, effect| own.saturating_sub(schedule.wall(changes, effect));
        // A rule may know a bound, and others take nothing from what one alone gains.
        let most = saved(all, Effect::Best).min(sum);
        let least = saved(sure, Effect::Worst).clamp(least.min(most), most);
        list.push(Combined {
            changes,
            from: alone,
            to: (alone.saturating_sub(most), alone.saturating_sub(least)),
        });
    }
    list
}

fn verdict(
    facts: &Facts<'_>,
    withheld: &WithheldTime,
    changes: &[Advice],
    saved: Option<u64>,
    bound: Option<u64>,
    had: CpuOwners,
) -> Verdict {
    let stolen = changes.iter().find(|advice| advice.kind == Kind::Stolen);
    let (others, quota) = (withheld.others, withheld.throttled);
    let much = |kind, ns: u64| ns > 0 && ns.saturating_mul(least(kind)) >= facts.wall;
    let machine = stolen.is_some() || much(Kind::Others, others) || much(Kind::Throttled, quota);
    let lost = others.saturating_add(quota);
    let alone = facts.wall.saturating_sub(lost);
    let error = verdict::error(lost, alone);
    Verdict {
        blame: match (machine, saved) {
            (true, Some(_)) => Blame::Both,
            (true, None) => Blame::Machine,
            (false, _) => Blame::Code,
        },
        wall: facts.wall,
        alone,
        alone_at_least: alone.saturating_sub(error),
        alone_at_most: alone.saturating_add(error).min(facts.wall),
        others: had.others,
        nobody: had.nobody,
        names: had.names,
        quota,
        quota_of: withheld.container.clone(),
        stolen: stolen.map_or(0, |advice| advice.gain),
        changes: saved.unwrap_or(0),
        bound,
        // A loop that looks for work of the build is not all of it the build's own.
        mostly: waits(facts, bound.unwrap_or(0)).filter(|mostly| mostly.ns <= alone),
        open: Vec::new(),
        failed: failed(facts.analysis),
        cpus: facts.cpus,
    }
}

/// Jobs that are builds themselves: a make below another one.
fn of_builds(facts: &Facts<'_>, candidate: &Candidate) -> bool {
    let mut jobs = candidate.evidence.iter();
    jobs.any(|group| facts.role(*group) == Some(Role::Jobs))
}

impl Candidate {
    fn change(&self) -> Change {
        let (time, remains) = if self.jobs.is_empty() {
            (self.without.clone(), self.kind.remains())
        } else {
            // Jobs that run at once share caches.
            let of = self.without.of.clone().unwrap_or_default();
            (Without::work(of), (1000, 1200))
        };
        Change {
            time,
            remains,
            jobs: self.jobs.clone(),
        }
    }
}

/// A candidate with its gain, and its number among the changes.
struct RatedCandidate {
    gain: Gain,
    bit: Changes,
    candidate: Candidate,
}

/// The time that a change saves, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gain {
    pub at_least: u64,
    pub at_most: u64,
}

impl Gain {
    fn of(advice: &Advice) -> Gain {
        Gain {
            at_least: advice.at_least,
            at_most: advice.gain,
        }
    }

    /// Twice the middle of the gain: a bound that nothing reaches is worth less than a gain that is known.
    fn twice_the_middle(self) -> u64 {
        self.at_least.saturating_add(self.at_most)
    }
}

/// For each segment of the path, whether it is a sleep of a loop that sleeps and checks.
fn polled(facts: &Facts<'_>, candidates: &[Candidate]) -> Vec<bool> {
    let mut polled = vec![false; facts.path.segments.len()];
    let polls = candidates
        .iter()
        .filter(|candidate| candidate.kind == Kind::Poll);
    for poll in polls.take(MOST) {
        let covers = facts.covers(&poll.without);
        for (is_polled, own) in polled.iter_mut().zip(covers) {
            *is_polled |= own;
        }
    }
    polled
}

/// Leaves out what a more specific candidate explains already. Returns the advice, and for each segment of the
/// path whether some advice covers it.
fn distinct(
    facts: &Facts<'_>,
    mut rated: Vec<RatedCandidate>,
) -> (Vec<(Advice, Changes)>, Vec<bool>) {
    rated.sort_by_key(|rated| {
        let kind = rated.candidate.kind;
        let mut worth = rated.gain.twice_the_middle();
        // The smaller change does, if it gains nearly as much.
        if rated.candidate.beside {
            worth -= worth / 5;
        }
        (kind.is_generic(), std::cmp::Reverse(worth), kind)
    });
    let mut kept: Vec<(Kind, Vec<bool>)> = Vec::new();
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
            Kind::Lock | Kind::FewJobs | Kind::Tests | Kind::SlowTest
        ) {
            explained.extend(&told.processes);
        }
        kept.push((kind, covers));
        advice.push((told, rated.bit));
    }
    let mut covered = vec![false; facts.path.segments.len()];
    for (_, covers) in &kept {
        for (is_covered, own) in covered.iter_mut().zip(covers) {
            *is_covered |= own;
        }
    }
    (advice, covered)
}

impl Kind {
    /// The part of the time that remains after the change, in thousandths: at best, and at worst
    /// as far as experience tells. 1000: it may save nothing.
    fn remains(self) -> (u64, u64) {
        let worst = match self {
            // A linker that is twice as fast.
            Kind::Link => 500,
            // Files are copied from a cache.
            Kind::Install => 500,
            Kind::Configure | Kind::Network | Kind::Repeated => 200,
            Kind::Short | Kind::Wrapper => 300,
            _ => 1000,
        };
        (0, worst)
    }

    /// Whether the line is a forecast of the verdict and no change.
    pub fn is_forecast(self) -> bool {
        matches!(self, Kind::Others | Kind::Throttled)
    }

    /// Whether the advice addresses the administrator of the machine.
    pub fn is_machine(self) -> bool {
        self.is_forecast() || self == Kind::Stolen
    }

    /// Whether the advice is about one task alone, so that advice of any other kind explains more.
    fn is_generic(self) -> bool {
        matches!(self, Kind::Last | Kind::Alone)
    }

    /// The kind of wait that the advice is about. Jobs that wait can also run at once, so both lines are
    /// right.
    fn of_waits(self) -> Option<Kind> {
        match self {
            Kind::Sleep | Kind::Poll => Some(Kind::Sleep),
            // Parts of the waits for a CPU, which do not overlap.
            Kind::Network
            | Kind::Disk
            | Kind::Memory
            | Kind::Lock
            | Kind::Throttled
            | Kind::Stolen
            | Kind::Others
            // Tests that run at once can also be faster.
            | Kind::SlowTest => Some(self),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "Mostly unknown" explains nothing.
    #[test]
    fn what_a_build_mostly_waits_for_is_known() {
        let known = |by| -> Vec<&str> {
            let all = Time::ALL.into_iter();
            let known = all.filter(|kind| is_known_wait(*kind, by));
            known.map(Time::name).collect()
        };
        let waits = "disk memory network terminal sleep stopped blocked";
        assert_eq!(known(None).join(" "), waits);
        let mut named = known(Some("bash"));
        named.retain(|kind| *kind != "outside");
        assert_eq!(named, known(None));
        assert_eq!(known(Some("bash")).len(), named.len() + 1);
    }
}
