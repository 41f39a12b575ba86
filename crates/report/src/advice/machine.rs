//! The machine: CPU time that the build did not get.

use tr_analyze::critical_path::Kind as Time;
use tr_analyze::what_if::Without;

use super::facts::Facts;
use super::{Candidate, Kind};
use crate::units;

pub(super) fn candidates(facts: &Facts<'_>) -> Vec<Candidate> {
    others(facts).into_iter().collect()
}

/// Waits for a CPU on the path while fewer of the build's tasks ran than there are CPUs:
/// other tasks had them, or a quota forbade them.
fn others(facts: &Facts<'_>) -> Option<Candidate> {
    let mut starved = 0u64;
    let mut groups = Vec::new();
    for (segment, group, _) in facts.segments() {
        if !matches!(segment.kind, Time::RunQueue(_)) {
            continue;
        }
        let load = facts.load(segment.from, segment.to);
        let without: u64 = load
            .filter(|(_, running, _)| (*running as u64) < facts.cpus)
            .map(|(ns, ..)| ns)
            .sum();
        if without > 0 {
            starved += without;
            groups.extend(group);
        }
    }
    groups.sort_unstable();
    groups.dedup();
    Some(Candidate {
        kind: Kind::Others,
        finding: format!("others have the CPUs for {}", units::time(starved)),
        action: "find them by tr record -a, or use a machine of its own".into(),
        without: Without {
            own: |kind, _| matches!(kind, Time::RunQueue(_)),
            waits: |_, _| false,
            of: None,
        },
        cap: starved,
        evidence: groups,
    })
}
