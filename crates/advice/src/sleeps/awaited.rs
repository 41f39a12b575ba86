//! Finds the work of the build for whose end a program waited by a series of naps (sleeps on the critical path). On a
//! busy machine this work takes longer, so the program naps more often than on free CPUs.
//!
//! Work that merely runs during the naps is no evidence. The napping process must continue because that work ended.
//! There are four signs: the napping process starts its next child after the nap in which a child ended; the napping
//! process woke one of its own threads, and that thread then worked; another process starts up during the naps and then
//! waits for the napping process; or another process works during most of the naps and ends when they end.

use tr_analyze::model::{Process, ProcessIx, ThreadIx};
use tr_analyze::programs::Group;
use tr_analyze::timeline::{Actor, Bucket, Stretch};
use tr_format::event::{Ktime, Reason};

use crate::facts::BuildFacts;
use crate::machine::starved_within;
use crate::sleeps::nap::{self, Nap, Superfluous, LOOP_SLEEPS};
use crate::sleeps::polls::awaited_work;
use crate::sleeps::started_servers::{started_servers, StartedServer};

/// The longest time in nanoseconds from the moment when a thread wakes another thread, in order to give it work, to the
/// moment when the waking thread begins to sleep until this work is done. A guess: in between, the waking thread only
/// takes a lock and reads a clock.
const EARLIEST_REQUEST: u64 = 1_000_000;
/// The naps of a program count as waits for the ends of its children ([`waits_for_children`]) only if, on average,
/// there are at most this many naps for each child. A guess: a program that naps more often for each child checks
/// often, and would gain little without the naps.
const NAPS_PER_CHILD: usize = 3;
/// The largest number of processes that are searched for awaited work. A bound of the work.
const TASKS: usize = 200;
/// The build's time divided by this number is the length of the shortest nap that is compared with the work of other
/// threads. A bound of the work: shorter naps are not compared.
const LONG_NAP: u64 = 1000;
/// The largest number of threads of a process that are searched for awaited work. A bound of the work.
const THREADS: usize = 50;
/// The largest number of naps, and of entries in a thread's timeline, that are searched for awaited work. A bound of
/// the work.
const MOST_ENTRIES: usize = 1000;

/// Work that a process waited for by a loop: the process slept for short times until the work had ended.
struct Awaited {
    /// The first and the last nap in which the process waited for the awaited work, as indexes into the list of the
    /// process's naps.
    naps: (usize, usize),
    from: Ktime,
    to: Ktime,
}

/// The time by which a process slept longer than it would sleep on free CPUs: it slept until some work was done, and
/// this work waited for a CPU. `slept` has the sleeps of the process, sorted by time.
pub(crate) fn superfluous(facts: &BuildFacts<'_>, slept: &[Nap]) -> Superfluous {
    let all = of_children(facts, slept);
    let all = if all.is_empty() {
        of_threads(facts, slept)
    } else {
        all
    };
    let sum = |all: &[Awaited]| {
        let all = all.iter().map(|awaited| too_long(facts, slept, awaited));
        all.fold(0, u64::saturating_add)
    };
    if !all.is_empty() {
        let ns = sum(&all);
        return Superfluous { ns, guessed: 0 };
    }
    if let Some(starting) = of_starting(facts, slept) {
        let ns = sum(&[starting]);
        return Superfluous { ns, guessed: ns };
    }
    let other = of_others(facts, slept);
    let ns = other.map_or(0, |other| sum(&[other]));
    Superfluous { ns, guessed: 0 }
}

/// The sum in nanoseconds of the naps that would not have begun if the awaited work had had a CPU all the time.
fn too_long(facts: &BuildFacts<'_>, slept: &[Nap], awaited: &Awaited) -> u64 {
    let starved = starved_within(facts, awaited.from, awaited.to);
    let soonest = Ktime(awaited.to.0.saturating_sub(starved));
    let (first, last) = awaited.naps;
    let Some((begin, naps)) = slept.get(first..=last).and_then(<[Nap]>::split_first) else {
        return 0;
    };
    // The time between the naps is left out, because the process then runs or waits for a CPU.
    let mut now = begin.to;
    let mut sum = 0u64;
    for nap in naps {
        let length = nap.length();
        if now >= soonest {
            sum = sum.saturating_add(length);
        }
        now = Ktime(now.0.saturating_add(length));
    }
    sum
}

fn process_of(facts: &BuildFacts<'_>, group: Group) -> Option<ProcessIx> {
    facts.execution(group).map(|execution| execution.process)
}

/// Whether a process slept for most of the given naps, which are sorted by time, until several of its children had
/// ended, one after the other.
pub(crate) fn waits_for_children(facts: &BuildFacts<'_>, slept: &[Nap]) -> bool {
    let naps = |awaited: &Awaited| slept.get(awaited.naps.0..=awaited.naps.1);
    // If a child ended before the last nap for this child began, that nap did not wait for the child.
    let ended = of_children(facts, slept).into_iter();
    let ended = ended.filter_map(|awaited| {
        let naps = naps(&awaited)?;
        (naps.last()?.from < awaited.to).then_some(naps)
    });
    let ended: Vec<&[Nap]> = ended.collect();
    let naps = ended.iter().copied().flatten();
    // If there are many short naps for each child, only the last of these naps could be shorter.
    let few = ended.iter().map(|naps| naps.len()).sum::<usize>() <= ended.len() * NAPS_PER_CHILD;
    ended.len() > 1 && few && nap::sum(naps).saturating_mul(2) > nap::sum(slept)
}

/// The children for whose ends the process napped. The proof for a child is that the process started its next child
/// directly after the nap in which this child ended, or that this nap was the last one and no other child was started.
fn of_children(facts: &BuildFacts<'_>, slept: &[Nap]) -> Vec<Awaited> {
    let analysis = facts.analysis;
    let Some(sleeper) = slept.first().and_then(|nap| process_of(facts, nap.by)) else {
        return Vec::new();
    };
    let sleeps: Vec<Option<ProcessIx>> = slept
        .iter()
        .map(|nap| process_of(facts, nap.group))
        .collect();
    let children = analysis.process(sleeper).children.iter().copied();
    let children = children.filter(|child| !sleeps.contains(&Some(*child)));
    let mut children: Vec<&Process> = children.map(|ix| analysis.process(ix)).collect();
    children.sort_by_key(|child| child.start);
    let mut found = Vec::new();
    for (at, child) in children.iter().enumerate().take(TASKS) {
        let first = slept.partition_point(|nap| nap.to <= child.start);
        let last = slept.partition_point(|nap| nap.ran < child.end);
        if last >= slept.len() || first > last {
            continue;
        }
        let next = children.get(at + 1).map(|next| next.start);
        let since = slept.get(last).map_or(Ktime(0), |nap| nap.to);
        let goes_on = match next {
            Some(next) => next >= since && slept.get(last + 1).is_none_or(|nap| next <= nap.from),
            None => last + 1 == slept.len(),
        };
        if goes_on && !child.alive {
            found.push(Awaited {
                naps: (first, last),
                from: child.start,
                to: child.end,
            });
        }
    }
    found
}

/// The work that the napping thread asked other threads to do: the napping thread woke such a thread just before its
/// own wait, with a time-out, for a condition variable.
fn of_threads(facts: &BuildFacts<'_>, slept: &[Nap]) -> Vec<Awaited> {
    let mut found: Vec<Awaited> = Vec::new();
    for (at, nap) in slept.iter().enumerate().take(MOST_ENTRIES) {
        let is_known = found.last().is_some_and(|last| last.naps.1 >= at);
        let Some(work) = asked(facts, nap).filter(|_| !is_known) else {
            continue;
        };
        let later = slept.iter().skip(at + 1);
        let later = later.take_while(|nap| nap.from < work.1);
        found.push(Awaited {
            naps: (at, at + later.count()),
            from: work.0,
            to: work.1,
        });
    }
    found
}

/// The beginning and the end of the work that ends last, among the work that the napping thread asked for just before
/// its nap.
fn asked(facts: &BuildFacts<'_>, nap: &Nap) -> Option<(Ktime, Ktime)> {
    let works = asked_parts(facts, nap);
    let ends = works
        .into_iter()
        .filter_map(|parts| Some((parts.first()?.from, parts.last()?.to)));
    ends.max_by_key(|(_, to)| *to)
}

/// The CPU time in nanoseconds that other threads of the sleeping process needed, during the given waits, for work that
/// the waiting thread had asked for: the waiting thread woke such a thread just before its own wait for a condition
/// variable. For each wait, only the asked thread with most CPU time counts. A shorter time-out does not save this
/// time, because the waiting thread needs the result of the work.
pub(crate) fn asked_work(facts: &BuildFacts<'_>, slept: &[Nap]) -> u64 {
    let work = |nap: &Nap| {
        let works = asked_parts(facts, nap).into_iter().map(|parts| {
            let parts = parts.iter().take_while(|part| part.from < nap.to);
            let works = parts.filter(|part| matches!(part.doing, Bucket::OnCpu(_)));
            let works = works.map(|part| part.to.min(nap.to).since(part.from));
            works.fold(0, u64::saturating_add)
        });
        works.max().unwrap_or(0)
    };
    let slept = slept.iter().take(MOST_ENTRIES);
    slept.map(work).fold(0, u64::saturating_add)
}

/// The other threads of the process to which `thread` belongs, at most [`THREADS`] of them.
fn other_threads<'f>(
    facts: &'f BuildFacts<'_>,
    thread: ThreadIx,
) -> impl Iterator<Item = &'f ThreadIx> {
    let process = facts.analysis.thread(thread).process;
    let threads = facts.analysis.process(process).threads.iter();
    threads.filter(move |other| **other != thread).take(THREADS)
}

/// Whether the times in which other threads of the sleeping process run or wait for a CPU are, in sum, three quarters
/// of a sleep of `thread` between `from` and `to`, or more. If so, the process does not really sleep: it works for a
/// time that it measures itself, or one of its threads looks from time to time at the work of the others. The answer is
/// no for short sleeps ([`LONG_NAP`]).
pub(crate) fn is_beside_work(
    facts: &BuildFacts<'_>,
    thread: ThreadIx,
    from: Ktime,
    to: Ktime,
) -> bool {
    let work = work_beside(facts, thread, from, to);
    work.is_some_and(|work| work.fills(to.since(from)))
}

/// The divisor of a sleep's length: other threads that wait for a CPU beside the sleep work if they also run for a
/// tenth of it. A guess, below the share of the CPUs that a small quota leaves: the threads of a runtime wait for a
/// CPU, too, but run for microseconds.
const RUNNING_PART: u64 = 10;

/// Like [`is_beside_work`], but the other threads must also run for a tenth of the sleep.
pub(crate) fn is_beside_running(
    facts: &BuildFacts<'_>,
    thread: ThreadIx,
    from: Ktime,
    to: Ktime,
) -> bool {
    let length = to.since(from);
    let runs = |work: &WorkBeside| work.on_cpu.saturating_mul(RUNNING_PART) >= length;
    let work = work_beside(facts, thread, from, to);
    work.is_some_and(|work| work.fills(length) && runs(&work))
}

/// The times in nanoseconds, in sum over the other threads of a sleeping process, in which they run and wait for a CPU
/// beside a sleep.
struct WorkBeside {
    on_cpu: u64,
    queued: u64,
}

impl WorkBeside {
    /// Whether the other threads work for three quarters of a sleep of `length` nanoseconds, or more.
    fn fills(&self, length: u64) -> bool {
        let sum = self.on_cpu.saturating_add(self.queued);
        sum.saturating_mul(4) >= length.saturating_mul(3)
    }
}

/// The work of other threads beside a sleep of `thread`; `None` for a short sleep ([`LONG_NAP`]).
fn work_beside(
    facts: &BuildFacts<'_>,
    thread: ThreadIx,
    from: Ktime,
    to: Ktime,
) -> Option<WorkBeside> {
    let timeline = facts.analysis.timeline.as_ref()?;
    if to.since(from).saturating_mul(LONG_NAP) < facts.wall {
        return None;
    }
    let mut work = WorkBeside {
        on_cpu: 0,
        queued: 0,
    };
    for other in other_threads(facts, thread) {
        let parts = timeline.since(*other, from).take(MOST_ENTRIES);
        for part in parts.take_while(|part| part.from < to) {
            let sum = match part.doing {
                Bucket::OnCpu(_) => &mut work.on_cpu,
                Bucket::RunQueue { .. } => &mut work.queued,
                _ => continue,
            };
            *sum = sum.saturating_add(part.to.min(to).since(part.from.max(from)));
        }
    }
    Some(work)
}

/// The work that the thread of a nap may have asked other threads of its process to do. If the nap is a wait for a
/// condition variable, every thread that the napping thread woke at most [`EARLIEST_REQUEST`] ns earlier counts as
/// asked. For each asked thread, the result has the entries of its timeline from this waking until the asked thread
/// waits again.
fn asked_parts(facts: &BuildFacts<'_>, nap: &Nap) -> Vec<Vec<Stretch>> {
    let Some(timeline) = &facts.analysis.timeline else {
        return Vec::new();
    };
    let wait = timeline.around(nap.thread, nap.from);
    if wait.is_none_or(|wait| wait.reason != Reason::Lock) {
        return Vec::new();
    }
    let asked = Ktime(nap.from.0.saturating_sub(EARLIEST_REQUEST));
    let works = other_threads(facts, nap.thread).filter_map(|other| {
        let is_asked = |part: &Stretch| {
            matches!(part.doing, Bucket::Wait(_))
                && part.waker() == Actor::Thread(nap.thread)
                && (asked..=nap.from).contains(&part.to)
        };
        let mut parts = timeline.since(*other, asked).take(MOST_ENTRIES);
        parts
            .find(|part| part.from >= nap.to || is_asked(part))
            .filter(is_asked)?;
        let works = parts.take_while(|part| !matches!(part.doing, Bucket::Wait(_)));
        Some(works.collect())
    });
    works.collect()
}

/// A server of the build that starts up during the naps of its client. The server becomes ready in the last nap or just
/// before that nap. After the last nap, the client, or a program that the client started, sends a request to the
/// server.
fn of_starting(facts: &BuildFacts<'_>, slept: &[Nap]) -> Option<Awaited> {
    let [first, .., before, last] = slept else {
        return None;
    };
    let servers = started_servers(facts, slept).into_iter();
    let mut awaited = servers.filter(|server| {
        server.start <= first.to
            && server.ready > before.ran
            && server.ready <= last.ran
            && server.asked >= last.to
    });
    let server = awaited.next()?;
    Some(Awaited {
        naps: (0, slept.len() - 1),
        from: server.start.max(first.from),
        to: server.ready,
    })
}

/// The time in nanoseconds during the given naps in which a server worked in order to become ready. The napping
/// program, or a program that it started, asked this server after these naps.
pub(crate) fn starting(facts: &BuildFacts<'_>, slept: &[Nap]) -> u64 {
    let servers = started_servers(facts, slept);
    let needed = servers.iter().filter(|server| {
        // The first nap that ended after the server became ready. If the program napped once more between that nap and
        // its request to the server, the program did not nap for this server. This does not apply if another server was
        // started between the two naps.
        let noticed = slept.partition_point(|nap| nap.to < server.ready);
        let Some(nap) = slept.get(noticed) else {
            return true;
        };
        let is_next = |next: &Nap| {
            let mut others = servers.iter();
            server.asked <= next.from
                || others.any(|other| other.start >= nap.to && other.start <= next.from)
        };
        server.asked >= nap.to && slept.get(noticed + 1).is_none_or(is_next)
    });
    let needed: Vec<&StartedServer> = needed.collect();
    // A loop that sleeps and checks ends when the server is ready, so the loop sleeps for longer if the server waits
    // for a CPU. One or two sleeps are no such loop, and take as long on free CPUs as on busy ones.
    let queued = slept.len() >= LOOP_SLEEPS;
    let needed = slept.iter().map(|nap| {
        let worked = needed
            .iter()
            .map(|server| server.worked(nap.from, nap.to, queued));
        worked.max().unwrap_or(0)
    });
    needed.fold(0, u64::saturating_add)
}

/// Another process that works during most of the naps and ends when the naps end. The napping process then probably
/// waits for a lock or a file of that other process.
fn of_others(facts: &BuildFacts<'_>, slept: &[Nap]) -> Option<Awaited> {
    let (first, last) = (slept.first()?, slept.last()?);
    if slept.len() < LOOP_SLEEPS && (slept.len() < 2 || !is_retry(facts, slept)) {
        return None;
    }
    let longest = slept.iter().map(Nap::length).max()?;
    let process = facts.analysis.process(awaited_work(facts, slept, longest)?);
    Some(Awaited {
        naps: (0, slept.len() - 1),
        from: process.start.max(first.from),
        to: process.end.min(last.ran),
    })
}

/// Whether the number of failed commands that the napping process later started again is at least the number of naps. A
/// script that tries until it gets a lock starts such commands.
fn is_retry(facts: &BuildFacts<'_>, slept: &[Nap]) -> bool {
    let Some(sleeper) = slept.first().and_then(|nap| process_of(facts, nap.by)) else {
        return false;
    };
    let children = facts.analysis.process(sleeper).children.iter();
    let failed = children.filter(|child| facts.tried_again().contains(child));
    failed.count() >= slept.len()
}
