//! Finds the servers of a build that started up while a program napped, and for each server the moment from which the
//! server waited for requests.

use std::collections::BTreeSet;

use tr_analyze::model::{ProcessIx, ThreadIx};
use tr_analyze::timeline::{Actor, Bucket, Stretch, Timeline, Wait};
use tr_format::event::{Ktime, Reason};

use crate::facts::BuildFacts;
use crate::sleeps::nap::{self, Nap};

/// The longest time in nanoseconds between the start of a server and the first nap of the program that waits for it. A
/// guess: in between the program only tries once whether the server answers.
const EARLIEST_SPAWN: u64 = 1_000_000_000;
/// The largest number of processes that are searched for servers. A bound of the work.
const TASKS: usize = 200;
/// The largest number of threads of a process, and of entries in a thread's timeline, that are searched. A bound of the
/// work.
const THREADS: usize = 50;
const MOST_ENTRIES: usize = 1000;
/// The build's time divided by this number is the least time for which a program must nap in sum so that servers are
/// searched for it. A bound of the work: at most this many programs on the critical path can nap for so long.
const NAP_SHARE: u64 = 1000;

/// A server that started up while a program napped.
pub(crate) struct StartedServer {
    pub start: Ktime,
    /// The moment from which the server only waited for requests.
    pub ready: Ktime,
    /// The moment of the first request: the napping program, or a program that the napping program had started, ended
    /// the server's wait for requests.
    pub asked: Ktime,
    /// The times before the server was ready in which one of these ran, waited for a CPU or waited for a disk: the
    /// server, or a program that had started the server. The times are sorted and may overlap.
    busy: Vec<Busy>,
}

/// A time in which a server that starts up was busy.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Busy {
    from: Ktime,
    to: Ktime,
    /// Whether the server only waited for a CPU in this stretch of time.
    queued: bool,
}

impl StartedServer {
    /// The time in nanoseconds from `from` to `to` in which the server was busy and not ready yet. If `queued` is true,
    /// the times in which the server only waited for a CPU count, too.
    pub fn worked(&self, from: Ktime, to: Ktime, queued: bool) -> u64 {
        let busy = self.busy.iter().filter(|busy| queued || !busy.queued);
        let (mut until, mut sum) = (from, 0u64);
        for busy in busy.take_while(|busy| busy.from < to) {
            let end = busy.to.min(to);
            sum = sum.saturating_add(end.since(busy.from.max(until)));
            until = until.max(end);
        }
        sum
    }
}

/// The servers that started shortly before or during the given naps, and that the napping programs or their descendants
/// asked for something later. The naps are sorted by time. If they take less than a thousandth of the build's time, no
/// servers are searched.
pub(crate) fn started_servers(facts: &BuildFacts<'_>, slept: &[Nap]) -> Vec<StartedServer> {
    let analysis = facts.analysis;
    let (Some(first), Some(last), Some(timeline)) =
        (slept.first(), slept.last(), &analysis.timeline)
    else {
        return Vec::new();
    };
    if nap::sum(slept) < facts.wall / NAP_SHARE {
        return Vec::new();
    }
    let groups = slept.iter().flat_map(|nap| [nap.by, nap.group]);
    let own = groups.filter_map(|group| facts.execution(group));
    let own: BTreeSet<ProcessIx> = own.map(|execution| execution.process).collect();
    let begin = Ktime(first.from.0.saturating_sub(EARLIEST_SPAWN));
    let all = analysis.process_ids().filter(|ix| {
        let process = analysis.process(*ix);
        let starts = process.start >= begin && process.start < last.to;
        starts && facts.own.has(*ix) && !own.contains(ix)
    });
    let servers = all.take(TASKS).filter_map(|ix| {
        // The server may be a child of the napping program itself. Processes of the server are no clients of the
        // server.
        let is_client = |thread: ThreadIx| {
            let lineage = || analysis.lineage(analysis.thread(thread).process);
            lineage().all(|other| other != ix) && lineage().any(|other| own.contains(&other))
        };
        let process = analysis.process(ix);
        let threads = process.threads.iter().take(THREADS);
        let asked = threads.filter_map(|thread| first_request(timeline, *thread, is_client));
        let (ready, asked) = asked.min_by_key(|(_, asked)| *asked)?;
        // A program such as npm may have started the server.
        let starters = analysis.lineage(ix).take_while(|other| {
            let process = analysis.process(*other);
            !own.contains(other) && process.start >= begin
        });
        let threads = starters.flat_map(|other| &analysis.process(other).threads);
        let threads = threads.take(THREADS);
        let busy = threads.flat_map(|thread| busy(timeline, *thread, ready));
        let mut busy: Vec<Busy> = busy.collect();
        busy.sort_unstable();
        Some(StartedServer {
            start: process.start,
            ready,
            asked,
            busy,
        })
    });
    servers.collect()
}

/// The stretches of time before the server was ready (`ready`) in which the given thread ran, waited for a CPU, or
/// waited for a disk.
fn busy(timeline: &Timeline, thread: ThreadIx, ready: Ktime) -> impl Iterator<Item = Busy> + '_ {
    let parts = timeline.of(thread).take(MOST_ENTRIES);
    let parts = parts.take_while(move |part| part.from < ready);
    parts.filter_map(move |part| {
        let queued = matches!(part.doing, Bucket::RunQueue { .. });
        let is_busy = matches!(
            part.doing,
            Bucket::OnCpu(_) | Bucket::Wait(Wait::Io | Wait::Blocked)
        );
        (queued || is_busy).then_some(Busy {
            from: part.from,
            to: part.to.min(ready),
            queued,
        })
    })
}

/// The time from which a thread of a server only waited for requests, and the time at which a client ended such a wait
/// for the first time. If the thread looks at its timers from time to time while it waits, this still counts as one
/// wait.
fn first_request(
    timeline: &Timeline,
    thread: ThreadIx,
    is_client: impl Fn(ThreadIx) -> bool,
) -> Option<(Ktime, Ktime)> {
    let mut idle: Option<Idle> = None;
    for part in timeline.of(thread).take(MOST_ENTRIES) {
        if !matches!(part.doing, Bucket::Wait(_)) {
            idle = idle.and_then(|idle| idle.after_work(part.length()));
            continue;
        }
        let same = idle.filter(|idle| idle.reason == part.reason);
        let from = same.map_or(part.from, |idle| idle.from);
        match part.waker() {
            Actor::Thread(by) if is_client(by) => return Some((from, part.to)),
            waker => idle = waker.is_timer().then(|| Idle::of(&part, from)),
        }
    }
    None
}

/// The time in which a thread waits for events and only looks at its timers in between.
#[derive(Clone, Copy)]
struct Idle {
    from: Ktime,
    reason: Reason,
    /// The length in nanoseconds of the last wait, minus the time for which the thread worked after that wait. A thread
    /// that works for longer than the last wait is no longer idle.
    rest: u64,
}

impl Idle {
    fn of(wait: &Stretch, from: Ktime) -> Idle {
        Idle {
            from,
            reason: wait.reason,
            rest: wait.length(),
        }
    }

    fn after_work(self, ns: u64) -> Option<Idle> {
        let rest = self.rest.checked_sub(ns)?;
        Some(Idle { rest, ..self })
    }
}
