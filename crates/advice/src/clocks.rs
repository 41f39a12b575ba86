//! Finds the program of a build that measures for a set time. Such a program takes as long on free CPUs as on busy
//! ones.

use tr_analyze::critical_path::TimeKind;
use tr_analyze::programs::Group;

use crate::facts::BuildFacts;
use crate::verdict::open::OPEN_PART;

/// An execution of a program, such as a benchmark, that is on the critical path and measures for a set time.
pub(super) struct Measurement {
    pub group: Group,
    /// The time in nanoseconds that the execution takes on the critical path.
    pub length: u64,
    /// The part of `length` in nanoseconds for which the execution waited for a CPU.
    pub queued: u64,
}

/// The execution that measures for a set time, if it takes at least a tenth of the critical path. If there are several,
/// the one with the most time on the path.
pub(super) fn measurement(facts: &BuildFacts<'_>) -> Option<Measurement> {
    let all = facts.all().map(|(group, _)| Measurement {
        group,
        length: 0,
        queued: 0,
    });
    let mut all: Vec<Measurement> = all.collect();
    for (segment, group, _) in facts.segments() {
        let Some(own) = group.and_then(|group| all.get_mut(group as usize)) else {
            continue;
        };
        own.length = own.length.saturating_add(segment.length());
        if segment.kind == TimeKind::RunQueue {
            own.queued = own.queued.saturating_add(segment.length());
        }
    }
    let long = all.into_iter();
    let long = long.filter(|own| own.length.saturating_mul(OPEN_PART) >= facts.wall);
    let long = long.filter(|own| facts.measures_by_clock(own.group));
    long.max_by_key(|own| own.length)
}
