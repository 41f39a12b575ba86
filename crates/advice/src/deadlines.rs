//! Finds timers that a program set long before a wait that such a timer then ended. An event loop that works after it
//! has set a timer waits only for the rest of the timer's time. If the work takes less time, the loop waits for longer
//! instead.

use std::collections::BTreeMap;

use tr_analyze::critical_path::{Segment, TimeKind};
use tr_analyze::model::ThreadIx;
use tr_analyze::programs::Group;
use tr_analyze::timeline::Bucket;
use tr_format::event::Ktime;

use super::facts::BuildFacts;
use super::open::MUCH;

/// The largest number of threads, and of entries in the timeline of a thread, that are searched. A bound of the work.
const THREADS: usize = 50;
const PARTS: usize = 10_000;
/// The largest delay in nanoseconds with which a timer ends a wait. A guess: timers of event loops are late by as much
/// as a millisecond.
const LATE: u64 = 1_000_000;

/// A timer that a program set, and for which the program waited only after other work.
pub(super) struct Deadline {
    /// The execution that waited for the timer.
    pub group: Group,
    /// The time in nanoseconds from the first wait whose time-out was this timer to the moment when the timer expired.
    pub length: u64,
    /// The time in nanoseconds for which the critical path waited for a CPU while the timer ran. Without these waits,
    /// the timer would expire at the same time.
    pub queued: u64,
}

/// An execution of a program, such as a benchmark, that is on the critical path and measures for a set time.
pub(super) struct Measurement {
    pub group: Group,
    /// The time in nanoseconds that the execution takes on the critical path.
    pub length: u64,
    /// The part of `length` in nanoseconds for which the execution waited for a CPU.
    pub queued: u64,
}

/// The execution that measures for a set time, if one takes a tenth of the critical path. If there are several, the
/// longest one.
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
    let long = long.filter(|own| own.length.saturating_mul(MUCH) >= facts.wall);
    let long = long.filter(|own| facts.measures_by_clock(own.group));
    long.max_by_key(|own| own.length)
}

/// The timer that covers most of the critical path's waits for a CPU, if a program set this timer before other work of
/// the program. Only the last sleep of each thread on the path is examined.
pub(super) fn deadline(facts: &BuildFacts<'_>) -> Option<Deadline> {
    let sleeps = facts.path.segments.iter();
    let sleeps = sleeps.filter(|segment| segment.kind == TimeKind::Sleep);
    let last: BTreeMap<ThreadIx, &Segment> =
        sleeps.map(|segment| (segment.thread, segment)).collect();
    let all = last.into_values().take(THREADS);
    let all = all.filter_map(|segment| {
        let set = set_at(facts, segment)?;
        let process = facts.analysis.thread(segment.thread).process;
        Some(Deadline {
            group: facts.groups.at(process, segment.from)?,
            length: segment.to.since(set),
            queued: queued(facts, set, segment.from),
        })
    });
    all.max_by_key(|deadline| deadline.queued)
}

/// The beginning of the thread's first wait whose time-out ends at the same time as the given wait; `None` if the given
/// wait takes more than three quarters of the time since then. A loop that waits with the same time-out again and again
/// has no such timer.
fn set_at(facts: &BuildFacts<'_>, wait: &Segment) -> Option<Ktime> {
    let timeline = facts.analysis.timeline.as_ref()?;
    let start = facts.analysis.thread(wait.thread).start;
    let parts = timeline.since(wait.thread, start).take(PARTS);
    let mut waits = parts
        .take_while(|part| part.to <= wait.from)
        .filter(|part| matches!(part.doing, Bucket::Wait(_)));
    let first = waits.find(|part| {
        let Some(least) = part.timeout.least() else {
            return false;
        };
        // Time-outs are recorded in classes of similar length. `least` is the shortest time-out of the class, and the
        // longest one of the class is a quarter longer.
        let most = least.saturating_add(least / 4).saturating_add(LATE);
        (least..=most).contains(&wait.to.since(part.from))
    })?;
    let length = wait.to.since(first.from);
    (wait.length().saturating_mul(4) <= length.saturating_mul(3)).then_some(first.from)
}

/// The time in nanoseconds for which the critical path waited for a CPU between two times.
fn queued(facts: &BuildFacts<'_>, from: Ktime, to: Ktime) -> u64 {
    let segments = facts.path.segments.iter();
    let waits = segments.filter(|segment| segment.kind == TimeKind::RunQueue);
    let waits = waits.map(|wait| wait.to.min(to).since(wait.from.max(from)));
    waits.fold(0, u64::saturating_add)
}
