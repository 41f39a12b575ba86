//! The machine: CPU time that the build did not get.

use tr_analyze::critical_path::Kind as Time;
use tr_analyze::machine::withheld;
use tr_analyze::programs::Group;
use tr_analyze::what_if::Without;

use super::facts::Facts;
use super::{Candidate, Kind};
use crate::called::TR;
use crate::units;

/// A shorter wait, in ns, may be the time that an idle CPU takes to begin.
const WAKE_UP: u64 = 500_000;

pub(super) fn candidates(facts: &Facts<'_>) -> Vec<Candidate> {
    let machine = withheld(facts.analysis);
    let (starved, waiting) = starved(facts);
    let throttled = machine.throttled_ns.unwrap_or(0).min(starved);
    // It is counted for all CPUs; the path is on one at a time.
    let stolen = machine.stolen_ns.unwrap_or(0) / facts.cpus;
    let stalled = machine.memory_stalled_ns.unwrap_or(0);
    let for_a_cpu = || Without {
        own: |kind, _| kind == Time::RunQueue,
        waits: |_, _| false,
        of: None,
    };
    let all = |own| Without {
        own,
        waits: |_, _| false,
        of: None,
    };
    let others = starved - throttled;
    vec![
        Candidate {
            kind: Kind::Throttled,
            finding: format!(
                "the cgroup's CPU quota stops the build for {}",
                units::time(throttled)
            ),
            action: "raise the quota, or run as many jobs as it allows".into(),
            without: for_a_cpu(),
            cap: throttled,
            evidence: waiting.clone(),
        },
        Candidate {
            kind: Kind::Others,
            finding: format!("other tasks have the CPUs for {}", units::time(others)),
            action: format!("{TR} record -a names them"),
            without: for_a_cpu(),
            cap: others,
            evidence: waiting,
        },
        Candidate {
            kind: Kind::Stolen,
            finding: format!("the hypervisor takes {} of CPU time", units::time(stolen)),
            action: "use a host with less load".into(),
            without: all(|kind, _| kind == Time::OnCpu),
            cap: stolen,
            evidence: Vec::new(),
        },
        Candidate {
            kind: Kind::Memory,
            finding: format!("tasks wait {} for memory", units::time(stalled)),
            action: "give it more memory, or run fewer jobs".into(),
            without: all(|kind, _| matches!(kind, Time::Disk | Time::Blocked | Time::OnCpu)),
            cap: stalled,
            evidence: Vec::new(),
        },
    ]
}

/// Waits for a CPU on the path while fewer of the build's tasks ran than there are CPUs:
/// other tasks had them, or a quota forbade them. In ns, with the executions that waited.
fn starved(facts: &Facts<'_>) -> (u64, Vec<Group>) {
    let mut starved = 0u64;
    let mut groups = Vec::new();
    for (segment, group, _) in facts.segments() {
        let waits = segment.kind == Time::RunQueue;
        if !waits || segment.length() < WAKE_UP {
            continue;
        }
        let without = facts.idle(segment.from, segment.to);
        if without > 0 {
            starved = starved.saturating_add(without);
            groups.extend(group);
        }
    }
    groups.sort_unstable();
    groups.dedup();
    (starved, groups)
}
