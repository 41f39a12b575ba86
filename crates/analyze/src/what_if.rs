//! Lower limits for the time of the recorded work, had one group's work cost nothing or
//! had there been more CPUs.
//!
//! The recording is replayed forwards with a virtual clock for every thread. Work on a
//! CPU advances its thread's clock, unless the work counts as free. The end of a wait
//! sets the clock to that of the thread that ended the wait, if that is later. A new
//! thread starts with the clock of the thread that forked it. Waits for disks last as long as
//! they did. A wait that a timer, the network or a task outside the recording ended may be
//! one of a loop that asks again and again whether other work is done: no limit counts it.
//!
//! A clock that counts each wait for a CPU as it was shows the recorded time, to the
//! nanosecond. A clock that leaves them out shows the least time on any number of CPUs
//! (the span law). The CPU time that the end needed, divided among the CPUs, is another
//! limit (the work law; both e.g. in R. Blumofe, C. Leiserson, "Scheduling multithreaded
//! computations by work stealing", JACM 46(5), 1999).
//!
//! All limits hold for the wake-ups as they were recorded: another run may hand a job
//! server's token to another job. And a limit may be lower than necessary: if a child had
//! ended before its parent waited for it, no event shows that the parent needed it.

use rayon::slice::ParallelSliceMut;
use tr_format::event::Ktime;

use crate::arena::Arena;
use crate::awaited::Awaited;
use crate::critical_path::{CriticalPath, NoPath};
use crate::graph::{Cause, Graph, Kind};
use crate::model::{Analysis, ThreadIx};
use crate::programs::{Group, Groups};
use crate::timeline::Bucket;

/// The limits without the work of one group, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Free {
    /// The group.
    pub group: Group,
    /// The least time: no less on any number of CPUs, and no less than the rest of the
    /// work takes on these.
    pub at_least: u64,
    /// With every wait for a CPU, a timer, the network or a task outside as long as it was,
    /// and not less than `at_least`. No limit: a loop that asks whether other work is done
    /// would ask less often.
    pub same_waits: u64,
    /// Where the chain of work and waits that then decides, with the same waits, stays
    /// longest.
    pub decides: Option<Stay>,
}

/// The time of a thread between two links of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    /// The thread.
    pub thread: ThreadIx,
    /// Its last moment.
    pub at: Ktime,
    /// Its length in ns.
    pub ns: u64,
}

/// Limits for how fast the recorded work can be done, in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The recorded time: the clock of the process's end with nothing left out.
    pub recorded: u64,
    /// The least time on any number of CPUs: without waits for a CPU, a timer, the network or
    /// a task outside, and without unknown time.
    pub span: u64,
    /// CPU time that the end depended on.
    pub work: u64,
    /// The machine's CPUs.
    pub cpus: u64,
    /// The time if no task had waited for a job slot, with the other waits as they were;
    /// `None` if none did. No limit, as [`Free::same_waits`].
    pub more_slots: Option<u64>,
    /// For each group that was asked for.
    pub free: Vec<Free>,
}

impl Limits {
    /// The least time on that many CPUs, with nothing else to do.
    pub fn on(&self, cpus: u64) -> u64 {
        self.span.max(self.work.div_ceil(cpus.max(1)))
    }
}

/// The limits for the path's process. `free` has the groups that count as free, one at a
/// time. Takes 16 bytes for each wait and 80 for each thread and group.
///
/// # Errors
/// No timeline was kept.
pub fn limits(
    analysis: &Analysis,
    path: &CriticalPath,
    groups: &Groups,
    free: &[Group],
) -> Result<Limits, NoPath> {
    let graph = Graph::new(analysis).ok_or(NoPath::NoTimeline)?;
    let links = links(&graph, path);
    let scenario = |free| Scenario {
        free,
        slots: false,
        clocks: analysis.thread_ids().map(|_| Clock::default()).collect(),
    };
    let mut replay = Replay {
        graph,
        groups,
        from: path.from,
        to: path.to,
        cursors: analysis.thread_ids().map(|_| Cursor::default()).collect(),
        recorded: scenario(None),
        waited_for_slot: false,
        free: free.iter().copied().map(Some).map(scenario).collect(),
    };
    replay.free.push(Scenario {
        slots: true,
        ..scenario(None)
    });
    for link in &links {
        replay.advance(link.thread, link.time, 0);
    }
    replay.advance(path.thread, path.to, 0);
    let (work, needed) = needed(&graph, path, &links, groups);
    let cpus = (analysis.meta.cpus.len() as u64).max(1);
    let recorded = replay.recorded.clocks[path.thread];
    let free = replay.free.iter().zip(free).map(|(scenario, group)| {
        let clock = scenario.clocks[path.thread];
        let own = needed.get(*group as usize).copied().unwrap_or(0);
        let rest = work.saturating_sub(own);
        let at_least = clock.no_waits.max(rest.div_ceil(cpus));
        Free {
            group: *group,
            at_least,
            same_waits: clock.same_waits.max(at_least),
            decides: clock.longest_stay(),
        }
    });
    Ok(Limits {
        recorded: recorded.same_waits,
        more_slots: replay.more_slots(path.thread),
        span: recorded.no_waits,
        work,
        cpus,
        free: free.collect(),
    })
}

/// A moment at which a thread's clock depends on another's: a waking or a fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Link {
    time: Ktime,
    /// The thread that was woken or forked.
    thread: ThreadIx,
    /// The thread that woke or forked it.
    by: ThreadIx,
}

/// All links that can bear on the path, in order of time.
fn links(graph: &Graph<'_>, path: &CriticalPath) -> Vec<Link> {
    let inside = |time: Ktime| time > path.from && time <= path.to;
    let mut links = Vec::new();
    for thread in graph.analysis.thread_ids() {
        let time = graph.analysis.thread(thread).start;
        if let Some(by) = graph.forked_by(thread).filter(|_| inside(time)) {
            links.push(Link { time, thread, by });
        }
        for stretch in graph.timeline.of(thread).filter(|s| inside(s.to)) {
            if let Cause::Thread(by) = graph.cause(thread, &stretch) {
                let time = stretch.to;
                links.push(Link { time, thread, by });
            }
        }
    }
    links.par_sort_unstable();
    links
}

/// A thread's position in the replay.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    /// The current stretch.
    number: u32,
    /// The time up to which its clocks count.
    now: Ktime,
    begun: bool,
    /// It is waiting for another thread's clock: a cycle leads back here.
    busy: bool,
}

/// A thread's virtual clocks, in ns.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    /// With every wait, and unknown time, as it was.
    same_waits: u64,
    /// With the waits for disks only.
    no_waits: u64,
    /// The present stay of the chain of `same_waits`, and its longest one before.
    stays: [Option<Stay>; 2],
}

impl Clock {
    /// Adds a part of the thread's time, up to a moment. `waits`: it may have been shorter.
    fn add(&mut self, thread: ThreadIx, ns: u64, until: Ktime, waits: bool) {
        let at = Ktime(until.0.saturating_sub(1));
        self.same_waits = self.same_waits.saturating_add(ns);
        self.no_waits = self.no_waits.saturating_add(if waits { 0 } else { ns });
        let before = self.stays[0].map_or(0, |stay| stay.ns);
        let ns = before.saturating_add(ns);
        self.stays[0] = Some(Stay { thread, at, ns });
    }

    /// Goes on from another thread's clock, where that is later.
    fn follow(&mut self, other: &Clock) {
        if other.same_waits > self.same_waits {
            self.same_waits = other.same_waits;
            self.stays = [None, other.longest_stay()];
        }
        self.no_waits = self.no_waits.max(other.no_waits);
    }

    fn longest_stay(&self) -> Option<Stay> {
        let stays = self.stays.iter().rev().flatten();
        stays.max_by_key(|stay| stay.ns).copied()
    }
}

/// The clocks of all threads, with one group's work free, or enough job slots.
struct Scenario {
    free: Option<Group>,
    /// No task waits for a job slot.
    slots: bool,
    clocks: Arena<ThreadIx, Clock>,
}

/// A link from another thread's clock at a moment.
struct Follow {
    other: ThreadIx,
    at: Ktime,
    /// The other thread gave a job slot back.
    slot: bool,
}

struct Replay<'a> {
    graph: Graph<'a>,
    groups: &'a Groups,
    from: Ktime,
    to: Ktime,
    cursors: Arena<ThreadIx, Cursor>,
    /// With all work.
    recorded: Scenario,
    /// The groups' scenarios, and that of the job slots.
    free: Vec<Scenario>,
    waited_for_slot: bool,
}

/// The number of threads that are followed at one instant, as in the path.
const AT_ONCE: u32 = 64;

impl Replay<'_> {
    fn clocks(&mut self, thread: ThreadIx) -> impl Iterator<Item = &mut Clock> {
        let all = std::iter::once(&mut self.recorded).chain(&mut self.free);
        all.map(move |scenario| &mut scenario.clocks[thread])
    }

    /// The time at a thread's end if no task had waited for a job slot.
    fn more_slots(&self, thread: ThreadIx) -> Option<u64> {
        let scenario = self.free.last().filter(|_| self.waited_for_slot)?;
        Some(scenario.clocks[thread].same_waits)
    }

    /// The length of a part of the time inside the path's.
    fn length(&self, from: Ktime, to: Ktime) -> u64 {
        to.min(self.to).since(from.max(self.from))
    }

    /// Adds a thread's wait for a disk.
    fn add_disk(&mut self, thread: ThreadIx, from: Ktime, to: Ktime) {
        let ns = self.length(from, to);
        self.clocks(thread)
            .for_each(|clock| clock.add(thread, ns, to, false));
    }

    /// Adds a wait that may have been shorter, or unknown time.
    fn add_wait(&mut self, thread: ThreadIx, from: Ktime, to: Ktime) {
        let ns = self.length(from, to);
        self.clocks(thread)
            .for_each(|clock| clock.add(thread, ns, to, true));
    }

    /// Adds work, which is free in some scenarios.
    fn add_work(&mut self, thread: ThreadIx, from: Ktime, to: Ktime) {
        let (from, to) = (from.max(self.from), to.min(self.to));
        let process = self.graph.analysis.thread(thread).process;
        self.recorded.clocks[thread].add(thread, to.since(from), to, false);
        self.groups.split(process, from, to, |group, from, to| {
            for scenario in self.free.iter_mut().filter(|it| it.free != Some(group)) {
                scenario.clocks[thread].add(thread, to.since(from), to, false);
            }
        });
    }

    /// Sets a thread's clocks to another thread's at a time, where those are later.
    /// `false`, and nothing is done, in a cycle or a chain that is too long.
    fn follow(&mut self, thread: ThreadIx, link: Follow, depth: u32) -> bool {
        let Follow { other, at, slot } = link;
        if depth >= AT_ONCE || other == thread || self.cursors[other].busy {
            return false;
        }
        self.cursors[thread].busy = true;
        self.advance(other, at, depth + 1);
        self.cursors[thread].busy = false;
        self.waited_for_slot |= slot;
        for scenario in std::iter::once(&mut self.recorded).chain(&mut self.free) {
            if slot && scenario.slots {
                continue;
            }
            let later = scenario.clocks[other];
            scenario.clocks[thread].follow(&later);
        }
        true
    }

    /// Advances a thread's clocks up to `until`, and through a wait that ends then. All
    /// links before `until` have been replayed. Links at `until` may lead from thread to
    /// thread.
    fn advance(&mut self, thread: ThreadIx, until: Ktime, depth: u32) {
        let start = self.graph.analysis.thread(thread).start;
        let cursor = &mut self.cursors[thread];
        if cursor.busy || until < start {
            return;
        }
        if !std::mem::replace(&mut cursor.begun, true) {
            cursor.now = start;
            let parent = self.graph.forked_by(thread).filter(|_| start > self.from);
            let fork = |other| Follow {
                other,
                at: start,
                slot: false,
            };
            if !parent.is_some_and(|parent| self.follow(thread, fork(parent), depth)) {
                // The time before its start is not known.
                self.add_wait(thread, self.from, start);
            }
        }
        loop {
            let Cursor { number, now, .. } = self.cursors[thread];
            let stretch = self.graph.timeline.get(thread, number as usize);
            let Some(stretch) = stretch.filter(|s| s.from < until) else {
                break;
            };
            let (from, to) = (now.max(stretch.from), stretch.to.min(until));
            let ends = stretch.to <= until;
            match self.graph.cause(thread, &stretch) {
                // In the middle of a wait, or before the path, the clocks stay: none of
                // that time bears on the path.
                Cause::Thread(_) if !ends => break,
                Cause::Thread(other)
                    if to > self.from && {
                        let awaited = self.graph.analysis.awaited(thread, &stretch);
                        let slot = awaited == Some(Awaited::Slot);
                        let at = to;
                        self.follow(thread, Follow { other, at, slot }, depth)
                    } => {}
                Cause::Own(Kind::OnCpu) => self.add_work(thread, from, to),
                Cause::Own(Kind::Disk | Kind::Blocked) => self.add_disk(thread, from, to),
                Cause::Thread(_) | Cause::Own(_) => self.add_wait(thread, from, to),
            }
            let cursor = &mut self.cursors[thread];
            cursor.now = to;
            if !ends {
                break;
            }
            cursor.number += 1;
        }
    }
}

/// The CPU time that the path's end depended on: all of it, and that of each group. The
/// last moment at which a thread mattered is found backwards. Of several wake-ups at one
/// instant some may be missed, which makes the time less, never more.
fn needed(
    graph: &Graph<'_>,
    path: &CriticalPath,
    links: &[Link],
    groups: &Groups,
) -> (u64, Vec<u64>) {
    let threads = || graph.analysis.thread_ids();
    let mut until: Arena<ThreadIx, Ktime> = threads().map(|_| Ktime(0)).collect();
    until[path.thread] = path.to;
    for link in links.iter().rev() {
        if until[link.thread] >= link.time {
            until[link.by] = until[link.by].max(link.time);
        }
    }
    let (mut all, mut of) = (0u64, vec![0u64; groups.count()]);
    for thread in threads() {
        let process = graph.analysis.thread(thread).process;
        let until = until[thread];
        let needed = graph.timeline.of(thread).take_while(|s| s.from < until);
        for stretch in needed.filter(|s| matches!(s.doing, Bucket::OnCpu(_))) {
            let (from, to) = (stretch.from.max(path.from), stretch.to.min(until));
            groups.split(process, from, to, |group, from, to| {
                all = all.saturating_add(to.since(from));
                if let Some(sum) = of.get_mut(group as usize) {
                    *sum = sum.saturating_add(to.since(from));
                }
            });
        }
    }
    (all, of)
}
