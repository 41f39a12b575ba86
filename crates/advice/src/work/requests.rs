//! Does a server of the build compute the same for each of several requests? Advises to keep what the requests share.

use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::model::ProcessIx;
use tr_analyze::programs::Group;
use tr_analyze::what_if::Without;
use tr_text::phrase::Phrase;
use tr_text::units;

use crate::candidate::{largest, AdviceKind, Candidate, Certainty};
use crate::facts::{on_cpu, BuildFacts};
use crate::quartiles::Quartiles;
use crate::work::inputs::LEAST_REPEAT;

/// The least number of about equally long requests for which a server gets advice. A guess: two equally long requests
/// may be chance.
const REQUESTS: usize = 3;

/// The requests that a server computed, each about as long as the others.
struct Requests {
    /// The CPU time in ns of each request on the critical path, in ascending order.
    lengths: Vec<u64>,
    groups: BTreeSet<Group>,
}

impl Requests {
    /// The CPU time in ns of all requests to this server together.
    fn sum(&self) -> u64 {
        self.lengths.iter().copied().fold(0, u64::saturating_add)
    }

    /// The CPU time in ns of all requests to this server together, without the longest request.
    fn again(&self) -> u64 {
        let longest = self.lengths.last().copied().unwrap_or(0);
        self.sum().saturating_sub(longest)
    }
}

/// Advice on servers of the build that compute about equally long for each of several requests on the critical path.
pub(super) fn candidates(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let analysis = facts.analysis;
    let connections = analysis.network.connections.iter();
    let accepted = connections.filter(|connection| connection.accepted);
    let servers: BTreeSet<ProcessIx> = accepted
        .filter_map(|connection| Some(analysis.thread(connection.thread?).process))
        .collect();
    // A visit is the time for which the critical path stays in a server without a break. Each visit is taken as one
    // request.
    let mut visits: BTreeMap<ProcessIx, Vec<(u64, BTreeSet<Group>)>> = BTreeMap::new();
    let mut before = None;
    for (segment, group, reason) in facts.segments() {
        let process = analysis.thread(segment.thread).process;
        let is_same = before.replace(process) == Some(process);
        let Some(group) = group.filter(|_| servers.contains(&process)) else {
            continue;
        };
        let of = visits.entry(process).or_default();
        if !is_same || of.is_empty() {
            of.push((0, BTreeSet::new()));
        }
        if let Some((sum, groups)) = of.last_mut().filter(|_| on_cpu(segment.kind, reason)) {
            *sum = sum.saturating_add(segment.length());
            groups.insert(group);
        }
    }
    let mut by_server: Vec<Requests> = Vec::new();
    for visits in visits.into_values() {
        let long = visits.into_iter().filter(|(sum, _)| *sum >= LEAST_REPEAT);
        let (mut lengths, groups): (Vec<u64>, Vec<BTreeSet<Group>>) = long.unzip();
        lengths.sort_unstable();
        let is_alike = Quartiles::of_sorted(&lengths).is_some_and(|lengths| {
            lengths.upper.saturating_mul(4) <= lengths.lower.saturating_mul(5)
        });
        if lengths.len() < REQUESTS || !is_alike {
            continue;
        }
        let groups = groups.into_iter().flatten().collect();
        by_server.push(Requests { lengths, groups });
    }
    let candidate = |requests: Requests| {
        let (again, sum) = (requests.again(), requests.sum());
        let Requests { lengths, groups } = requests;
        let (name, s) = facts.names(*groups.first()?, groups.iter().copied());
        let each = units::time(sum / (lengths.len() as u64).max(1));
        Some(Candidate {
            finding: Phrase::with([&name], |[name]| {
                format!(
                    "{name} compute{s} {} for {} requests, {each} each",
                    units::time(sum),
                    units::count(lengths.len() as u64)
                )
            }),
            action: "keep what they share, if it is computed again each time".into(),
            without: Without::work(facts.set(groups.iter().copied())),
            cap: again,
            certainty: Certainty::Unsure,
            evidence: groups.into_iter().collect(),
            ..Candidate::of(AdviceKind::Repeated)
        })
    };
    let all = largest(by_server, Requests::again);
    all.into_iter().filter_map(candidate).collect()
}
