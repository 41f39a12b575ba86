//! Finds by how much sleeps would be longer on free CPUs. This concerns programs that set the timer of a sleep and then
//! do other work: if the work takes less time, the program waits longer for the rest of the timer's time. It also
//! concerns timers that pass while other work is on the critical path, and programs that wait for a moment of the
//! clock.

use std::collections::BTreeMap;

use tr_analyze::critical_path::{Segment, TimeKind};
use tr_analyze::model::ThreadIx;
use tr_analyze::timers::set_early;
use tr_format::event::Ktime;

use crate::facts::BuildFacts;
use crate::sleeps::nap::{sum, Nap};

/// The largest number of threads that are searched for timers. A bound of the work.
const THREADS: usize = 50;

/// The waits of the critical path for a CPU, sorted by time, each with the sum in nanoseconds of the waits before it.
/// The sums keep the cost of a question independent of the number of waits, of which a recording can have millions.
pub(super) struct Queue<'p>(Vec<(&'p Segment, u64)>);

impl<'p> Queue<'p> {
    /// Collects the waits from the segments of a critical path, which are sorted by time and do not overlap.
    pub(super) fn of(path: &'p [Segment]) -> Queue<'p> {
        let mut sum = 0u64;
        let waits = path
            .iter()
            .filter(|segment| segment.kind == TimeKind::RunQueue);
        let waits = waits.map(|wait| {
            let before = sum;
            sum = sum.saturating_add(wait.length());
            (wait, before)
        });
        Queue(waits.collect())
    }

    /// The time in nanoseconds for which the critical path waited for a CPU between the moments at which a program set
    /// the timers of the given sleeps, and the beginnings of these sleeps.
    pub(super) fn before(&self, facts: &BuildFacts<'_>, slept: &[Nap]) -> u64 {
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
        let queued = timers.map(|timer| self.within(timer.set, timer.wait));
        queued.fold(0, u64::saturating_add)
    }

    /// The time in nanoseconds by which the given sleeps, which are sorted by time, may be longer on free CPUs, beyond
    /// what the simulation shows. A sleep whose first part passed beside other work on the path takes its whole time,
    /// even if that work waits for no CPU. If the sleeps get longer each time (`is_growing`), the program may wait for
    /// a moment of the clock, for example until something is old enough; then it also sleeps while, in the recording,
    /// it waited for a CPU before that moment. As the recording does not show such a moment, the sleeps are assumed to
    /// become at most twice as long by it.
    pub(super) fn longer_on_free_cpus(
        &self,
        facts: &BuildFacts<'_>,
        slept: &[Nap],
        is_growing: bool,
    ) -> u64 {
        let (Some(timeline), Some(first), Some(last)) =
            (&facts.analysis.timeline, slept.first(), slept.last())
        else {
            return 0;
        };
        let beside = slept.iter().map(|nap| {
            let wait = timeline.around(nap.thread, nap.from);
            wait.map_or(0, |wait| self.within(wait.from, nap.from))
        });
        let beside = beside.fold(0, u64::saturating_add);
        if !is_growing {
            return beside;
        }
        let begin = facts.execution(first.by).map_or(first.from, |by| by.start);
        let until_moment = self.within(begin, last.from).min(sum(slept));
        beside.max(until_moment)
    }

    /// The time in nanoseconds for which the path waited for a CPU between two times.
    fn within(&self, from: Ktime, to: Ktime) -> u64 {
        self.until(to).saturating_sub(self.until(from))
    }

    /// The time in nanoseconds for which the path waited for a CPU before a time.
    fn until(&self, time: Ktime) -> u64 {
        let after = self.0.partition_point(|(wait, _)| wait.from < time);
        let last = after.checked_sub(1).and_then(|ix| self.0.get(ix));
        last.map_or(0, |(wait, before)| {
            before.saturating_add(wait.to.min(time).since(wait.from))
        })
    }
}

#[cfg(test)]
mod tests {
    use tr_analyze::critical_path::Then;

    use super::*;

    #[test]
    fn the_queue_is_summed_within_bounds() {
        let segment = |from: u64, to: u64, kind: TimeKind| Segment {
            from: Ktime(from),
            to: Ktime(to),
            thread: ThreadIx(0),
            program: None,
            kind,
            then: Then::Woke,
            then_inferred: false,
            inferred: false,
        };
        let path = [
            segment(10, 20, TimeKind::RunQueue),
            segment(20, 30, TimeKind::Sleep),
            segment(30, 45, TimeKind::RunQueue),
            segment(45, 60, TimeKind::OnCpu),
            segment(60, 61, TimeKind::RunQueue),
        ];
        let queue = Queue::of(&path);
        for (from, to, ns) in [
            (0, 100, 26),
            (0, 10, 0),
            (15, 35, 10),
            (20, 30, 0),
            (45, 60, 0),
            (50, 61, 1),
            (40, 12, 0),
        ] {
            assert_eq!(queue.within(Ktime(from), Ktime(to)), ns, "{from} to {to}");
        }
    }
}
