//! Finds by how much sleeps would be longer on free CPUs. This concerns programs that set the timer of a sleep and then
//! do other work: if the work takes less time, the program waits longer for the rest of the timer's time.

use std::collections::BTreeMap;

use tr_analyze::critical_path::TimeKind;
use tr_analyze::model::ThreadIx;
use tr_analyze::timers::set_early;
use tr_format::event::Ktime;

use super::facts::BuildFacts;
use super::nap::Nap;

/// The largest number of threads that are searched for timers. A bound of the work.
const THREADS: usize = 50;

/// The time in nanoseconds for which the critical path waited for a CPU between the moments at which a program set the
/// timers of the given sleeps, and the beginnings of these sleeps.
pub(super) fn queued_before(facts: &BuildFacts<'_>, slept: &[Nap]) -> u64 {
    let Some(timeline) = &facts.analysis.timeline else {
        return 0;
    };
    let mut by_thread: BTreeMap<ThreadIx, Vec<Ktime>> = BTreeMap::new();
    for nap in slept {
        by_thread.entry(nap.thread).or_default().push(nap.from);
    }
    let timers = by_thread.iter().take(THREADS).flat_map(|(thread, naps)| {
        let timers = set_early(timeline, *thread).into_iter();
        timers.filter(|timer| naps.binary_search(&timer.wait).is_ok())
    });
    let queued = timers.map(|timer| queued(facts, timer.set, timer.wait));
    queued.fold(0, u64::saturating_add)
}

/// The time in nanoseconds for which the critical path waited for a CPU between two times.
fn queued(facts: &BuildFacts<'_>, from: Ktime, to: Ktime) -> u64 {
    let segments = facts.path.segments.iter();
    let waits = segments.filter(|segment| segment.kind == TimeKind::RunQueue);
    let waits = waits.map(|wait| wait.to.min(to).since(wait.from.max(from)));
    waits.fold(0, u64::saturating_add)
}
