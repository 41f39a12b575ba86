//! Finds threads that take turns, as a client and a server do: each of them waits until the other one has written.
//!
//! If such a thread loses its CPU just after it has written, the other one answers before the thread waits, so the
//! recording has no wait that shows the dependency. The simulation then runs the two at the same time.

use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::model::ThreadIx;
use tr_analyze::timeline::{Actor, Bucket, Stretch};
use tr_format::event::Reason;

use crate::facts::BuildFacts;

/// The number of waits that decides whether two threads take turns: each thread must have at least this many waits that
/// the other thread ended. A guess: two threads that wait for each other less often lose little time by these waits.
const TURNS: usize = 100;
/// The largest number of threads, and of entries in the timeline of a thread, that are searched. A bound of the work.
const THREADS: usize = 50;
const MOST_ENTRIES: usize = 100_000;

/// The CPU time in nanoseconds of threads on the critical path that may run at the same time in the simulation although
/// they take turns. Of two such threads, the one with less CPU time counts.
pub(crate) fn in_turn(facts: &BuildFacts<'_>) -> u64 {
    let segments = facts.path.segments.iter();
    let threads: BTreeSet<ThreadIx> = segments.map(|segment| segment.thread).collect();
    let partners: BTreeMap<ThreadIx, ThreadIx> = threads
        .into_iter()
        .take(THREADS)
        .filter_map(|thread| Some((thread, partner(facts, thread)?)))
        .collect();
    // Each pair of threads that take turns counts once.
    let pairs = partners
        .iter()
        .filter(|(one, other)| one < other && partners.get(other) == Some(one));
    let on_cpu = |thread: ThreadIx| facts.analysis.thread(thread).times.on_cpu;
    let both = pairs.map(|(one, other)| on_cpu(*one).min(on_cpu(*other)));
    both.fold(0, u64::saturating_add)
}

/// The thread of another process that ended more than half of a thread's waits for something to read, and at least
/// [`TURNS`] of them.
fn partner(facts: &BuildFacts<'_>, thread: ThreadIx) -> Option<ThreadIx> {
    let analysis = facts.analysis;
    let timeline = analysis.timeline.as_ref()?;
    let process = analysis.thread(thread).process;
    let is_read = |part: &Stretch| {
        let reads = [Reason::PipeRead, Reason::SocketRead, Reason::Poll];
        matches!(part.doing, Bucket::Wait(_)) && reads.contains(&part.reason)
    };
    let mut by: BTreeMap<ThreadIx, usize> = BTreeMap::new();
    let mut all = 0usize;
    for wait in timeline.of(thread).take(MOST_ENTRIES).filter(is_read) {
        all += 1;
        if let Actor::Thread(waker) = wait.waker() {
            *by.entry(waker).or_default() += 1;
        }
    }
    let (partner, turns) = by.into_iter().max_by_key(|(_, turns)| *turns)?;
    let is_other = analysis.thread(partner).process != process;
    (is_other && turns >= TURNS && turns * 2 > all).then_some(partner)
}
