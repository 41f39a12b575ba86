//! What to change in the build: findings with their evidence, a bound of the gain, and one
//! thing to do.
//!
//! Each rule proposes candidates: a part of the recorded time that a change may save. The
//! replay ([`tr_analyze::what_if`]) bounds the gain: the recording without that time, with all
//! else as it was. So a second path that is almost as long limits it. Of candidates that
//! explain the same part of the critical path, the most specific one stays.

mod facts;
mod jobs;
mod machine;
mod programs;
mod waits;
mod work;

use std::collections::BTreeSet;

use tr_analyze::critical_path::CriticalPath;
use tr_analyze::model::{Basis, ProcessIx};
use tr_analyze::programs::Group;
use tr_analyze::what_if::{self, Without};
use tr_format::event::Ktime;

use crate::names::named;
use crate::sort::Rows;
use crate::view::View;
use facts::Facts;

named! {
    /// The kind of an advice, the most specific ones first.
    pub enum Kind {
        /// A linker on the critical path.
        Link = "link", "A linker decides";
        Configure = "configure", "A configuration decides";
        /// An installation of packages.
        Install = "install", "An installation of packages decides";
        /// Sleeps of a fixed length.
        Sleep = "sleep", "Sleeps decide";
        /// A loop of sleeps and checks.
        Poll = "poll", "A loop that sleeps and checks decides";
        /// Waits for the network.
        Network = "network", "The network decides";
        /// Waits for the disk.
        Disk = "disk", "The disk decides";
        /// Waits for memory that is on a disk.
        Memory = "memory", "Missing memory decides";
        /// Waits for a file's lock.
        Lock = "lock", "A lock decides";
        /// Tests one after the other.
        Tests = "tests", "Tests run one after the other";
        /// Jobs one after the other, or fewer than the CPUs.
        FewJobs = "few-jobs", "More jobs could run at once";
        /// More jobs than CPUs.
        ManyJobs = "many-jobs", "More jobs run than there are CPUs";
        /// Equal executions.
        Repeated = "repeated", "Work is repeated";
        /// Many executions of a short program.
        Short = "short", "Many short programs run";
        Throttled = "throttled", "The CPU quota throttles the build";
        /// CPU time that the hypervisor took.
        Stolen = "stolen", "The hypervisor takes CPU time";
        /// Other tasks on the CPUs.
        Others = "others", "Other tasks have the CPUs";
        /// The longest job starts last.
        Last = "last", "The longest job starts last";
        Alone = "alone", "One task runs alone";
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    pub kind: Kind,
    /// The evidence: the tasks and their time.
    pub finding: String,
    /// The thing to do.
    pub action: String,
    /// The wall time that it saves at most, in ns.
    pub gain: u64,
    /// The time in which the evidence lies.
    pub from: Ktime,
    pub to: Ktime,
    /// The processes, in order of start.
    pub processes: Vec<ProcessIx>,
}

/// A change whose gain is not known yet.
struct Candidate {
    kind: Kind,
    finding: String,
    action: String,
    /// The time that the change saves, if it saves all of it.
    without: Without,
    /// A bound that follows from the rule.
    cap: u64,
    /// The executions that are the evidence.
    evidence: Vec<Group>,
}

pub const MOST: usize = 7;
/// The least gain is the wall time divided by this.
fn least(kind: Kind) -> u64 {
    match kind {
        Kind::Sleep | Kind::Poll | Kind::Network | Kind::Lock | Kind::Throttled => 50,
        // Every machine has some.
        Kind::Others | Kind::Stolen => 10,
        // Every build has shorter ones.
        _ => 20,
    }
}
/// The shortest recording with advice, in ns: nothing in it is worth a change.
const SHORTEST: u64 = 100_000_000;
/// The most candidates of which the gain is found.
const CANDIDATES: usize = 32;

/// The changes, those with the largest gain first. None without a critical path, and with
/// filters: they speak about the whole.
pub fn advise<'a>(view: &View<'a>, path: &'a CriticalPath) -> Vec<Advice> {
    // Totals do not say when a task ran: no gain can be shown.
    let by_events = view.analysis.basis() == Basis::Events;
    if !by_events || view.chosen.len() < view.analysis.processes.len() {
        return Vec::new();
    }
    let Some(facts) = Facts::new(view, path).filter(|facts| facts.wall >= SHORTEST) else {
        return Vec::new();
    };
    let rules = [
        work::candidates,
        waits::candidates,
        jobs::candidates,
        machine::candidates,
    ];
    let mut candidates: Vec<Candidate> = rules.iter().flat_map(|rule| rule(&facts)).collect();
    candidates.retain(|it| it.cap.saturating_mul(least(it.kind)) >= facts.wall);
    candidates.order_by_key(|it| (std::cmp::Reverse(it.cap), it.kind));
    candidates.truncate(CANDIDATES);
    let scenarios: Vec<Without> = candidates.iter().map(|it| it.without.clone()).collect();
    let Ok(gains) = what_if::gains(view.analysis, facts.path, &facts.groups, &scenarios) else {
        return Vec::new();
    };
    let gains = gains.into_iter().zip(&candidates);
    let mut rated: Vec<(u64, Candidate)> = Vec::new();
    let gains: Vec<u64> = gains.map(|(gain, it)| gain.min(it.cap)).collect();
    rated.extend(gains.into_iter().zip(candidates));
    rated.retain(|(gain, it)| gain.saturating_mul(least(it.kind)) >= facts.wall && *gain > 0);
    let mut advice = distinct(&facts, rated);
    advice.order_by_key(|it| (std::cmp::Reverse(it.gain), it.kind));
    advice.truncate(MOST);
    advice
}

/// Leaves out what a more specific candidate explains already.
fn distinct(facts: &Facts<'_>, mut rated: Vec<(u64, Candidate)>) -> Vec<Advice> {
    rated.order_by_key(|(gain, it)| (it.kind.is_generic(), std::cmp::Reverse(*gain), it.kind));
    let mut kept: Vec<(Kind, Vec<bool>)> = Vec::new();
    let mut explained: BTreeSet<ProcessIx> = BTreeSet::new();
    let mut advice = Vec::new();
    for (gain, candidate) in rated {
        let kind = candidate.kind;
        let covers = facts.covers(&candidate.without);
        let all = facts.length(&covers);
        let same = kept.iter().any(|(other, covered)| {
            let both: Vec<bool> = covers.iter().zip(covered).map(|(a, b)| *a && *b).collect();
            (kind.is_generic() || kind.of_waits() == other.of_waits())
                && all > 0
                && facts.length(&both).saturating_mul(2) > all
        });
        let below = |group: &Group| facts.is_below(*group, &explained);
        if same || (kind.is_generic() && candidate.evidence.iter().any(below)) {
            continue;
        }
        let told = facts.advice(candidate, gain);
        if matches!(kind, Kind::Lock | Kind::FewJobs | Kind::Tests) {
            explained.extend(&told.processes);
        }
        kept.push((kind, covers));
        advice.push(told);
    }
    advice
}

impl Kind {
    /// One task alone: any other kind says more.
    fn is_generic(self) -> bool {
        matches!(self, Kind::Last | Kind::Alone)
    }

    /// It is about waits. Jobs that wait can also run at once, so both are right.
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
            | Kind::Others => Some(self),
            _ => None,
        }
    }
}
