//! Finds the servers of a build that started up while a program napped, and the moment from which each of them waited for
//! requests.

use std::collections::BTreeSet;

use tr_analyze::model::{ProcessIx, ThreadIx};
use tr_analyze::timeline::{Actor, Bucket, Stretch, Timeline};
use tr_format::event::{Ktime, Reason};

use super::facts::BuildFacts;
use super::nap::Nap;

/// The longest time in nanoseconds between the start of a server and the first nap of the program that waits for it. A
/// guess: in between the program only tries once whether the server answers.
const SPAWNED: u64 = 1_000_000_000;
/// The largest number of processes that are searched for servers. A bound of the work.
const TASKS: usize = 200;
/// The largest number of threads of a process, and of entries in a thread's timeline, that are searched. A bound of the
/// work.
const THREADS: usize = 50;
const PARTS: usize = 1000;

/// A server that started up while a program napped.
pub(super) struct StartedServer {
    pub start: Ktime,
    /// The moment from which the server only waited for requests.
    pub ready: Ktime,
    /// The moment of the first request: the napping program, or a program that it had started, ended the wait.
    pub asked: Ktime,
    /// The thread of the server that waited for the request, with its start.
    thread: (ThreadIx, Ktime),
    /// The first thread of the server.
    first: ThreadIx,
}

impl StartedServer {
    /// The time in nanoseconds from `from` to `to` in which the server was not ready and did not sleep until a timer
    /// expired. Until the thread that waits for requests exists, the first thread of the server counts.
    pub fn worked(&self, timeline: &Timeline, from: Ktime, to: Ktime) -> u64 {
        let (from, to) = (from.max(self.start), to.min(self.ready));
        let (thread, start) = self.thread;
        let start = start.clamp(from, to.max(from));
        let sleeps = |thread, from: Ktime, to: Ktime| {
            let parts = timeline.since(thread, from).take(PARTS);
            let parts = parts.take_while(move |part| part.from < to);
            let sleeps = parts
                .filter(|part| matches!(part.doing, Bucket::Wait(_)) && part.waker().is_timer());
            let sleeps = sleeps.map(move |part| part.to.min(to).since(part.from.max(from)));
            sleeps.fold(0, u64::saturating_add)
        };
        let slept = sleeps(self.first, from, start).saturating_add(sleeps(thread, start, to));
        to.since(from).saturating_sub(slept)
    }
}

/// The servers that started shortly before or during the given naps, and that the napping programs or their
/// descendants asked for something later. The naps are sorted by time.
pub(super) fn started_servers(facts: &BuildFacts<'_>, slept: &[Nap]) -> Vec<StartedServer> {
    let analysis = facts.analysis;
    let (Some(first), Some(last), Some(timeline)) =
        (slept.first(), slept.last(), &analysis.timeline)
    else {
        return Vec::new();
    };
    let groups = slept.iter().flat_map(|nap| [nap.by, nap.group]);
    let own = groups.filter_map(|group| facts.execution(group));
    let own: BTreeSet<ProcessIx> = own.map(|execution| execution.process).collect();
    let begin = Ktime(first.from.0.saturating_sub(SPAWNED));
    let all = analysis.process_ids().filter(|ix| {
        let process = analysis.process(*ix);
        let starts = process.start >= begin && process.start < last.to;
        starts && facts.own.has(*ix) && !own.contains(ix)
    });
    let servers = all.take(TASKS).filter_map(|ix| {
        // The server may be a child of the napping program itself. Its own processes are no clients.
        let is_client = |thread: ThreadIx| {
            let lineage = || analysis.lineage(analysis.thread(thread).process);
            lineage().all(|other| other != ix) && lineage().any(|other| own.contains(&other))
        };
        let process = analysis.process(ix);
        let threads = process.threads.iter().take(THREADS);
        let asked = threads.filter_map(|thread| {
            let request = first_request(timeline, *thread, is_client)?;
            Some((*thread, request))
        });
        let (thread, (ready, asked)) = asked.min_by_key(|(_, (_, asked))| *asked)?;
        Some(StartedServer {
            start: process.start,
            ready,
            asked,
            thread: (thread, analysis.thread(thread).start),
            first: *process.threads.first()?,
        })
    });
    servers.collect()
}

/// The time from which a thread only waited, and the time at which a client ended this wait for the first time. Ticks of
/// a server that looks at its timers from time to time belong to the wait.
fn first_request(
    timeline: &Timeline,
    thread: ThreadIx,
    is_client: impl Fn(ThreadIx) -> bool,
) -> Option<(Ktime, Ktime)> {
    let mut idle: Option<Idle> = None;
    for part in timeline.of(thread).take(PARTS) {
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
    /// The length of the last wait in nanoseconds, without the thread's work after the wait. If the thread works for
    /// longer than it has waited, it is not idle.
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
