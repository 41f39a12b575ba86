//! How long the same work would have taken at least, had some of it cost
//! nothing or had there been more CPUs.
//!
//! The recording is gone through once more, forward, with a clock for every
//! thread. What a thread did on a CPU moves its clock, or does not when that work
//! is taken to be free; the end of a wait sets it to the clock of the thread that
//! ended the wait, if that one is later; a new thread starts with the clock of
//! the one that forked it. Waits for timers, disks and tasks outside the
//! recording last as long as they did.
//!
//! A clock that counts every wait for a CPU as it was shows the recorded time, to
//! the nanosecond. One that leaves them out shows the least time on any number of
//! CPUs (the span law), and the CPU time that the end needed, divided among the
//! CPUs, is another limit (the work law; both e.g. in R. Blumofe, C. Leiserson,
//! "Scheduling multithreaded computations by work stealing", JACM 46(5), 1999).
//!
//! All of that holds for the wake-ups as they were recorded: who gets a job
//! server's token from whom could be otherwise in another run. And a limit may be
//! lower than it could be: of a child that had ended before its parent asked for
//! it no event tells that the parent needed it.

use rayon::slice::ParallelSliceMut;
use tr_format::event::Ktime;

use crate::critical_path::{CriticalPath, NoPath};
use crate::graph::{Cause, Graph, Kind};
use crate::model::{Analysis, ThreadIx};
use crate::programs::{Group, Groups};
use crate::timeline::Bucket;

/// What would be if one group's work cost nothing, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Free {
    /// The group.
    pub group: Group,
    /// It would still take at least this long: no less on any number of CPUs,
    /// and no less than the rest of the work takes on these.
    pub at_least: u64,
    /// With every wait for a CPU as long as it was, and not less than
    /// `at_least`.
    pub same_waits: u64,
}

/// Limits for how fast the recorded work can be done, in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The clock of the process's end with nothing left out: the time it took.
    pub recorded: u64,
    /// The least time on any number of CPUs: without a wait for a CPU, and with
    /// nothing for the time that is not known.
    pub span: u64,
    /// CPU time that the end depended on.
    pub work: u64,
    /// The machine's CPUs.
    pub cpus: u64,
    /// For each group that was asked for.
    pub free: Vec<Free>,
}

impl Limits {
    /// The least time on that many CPUs, with nothing else to do.
    pub fn on(&self, cpus: u64) -> u64 {
        self.span.max(self.work.div_ceil(cpus.max(1)))
    }
}

/// The limits for the path's process; `free` are the groups to be taken as free,
/// one at a time. Takes 16 bytes for each wait and 16 for each thread and group.
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
    let joins = joins(&graph, path);
    let lanes = (free.len() + 1) * 2;
    let mut clocks = Clocks {
        graph,
        groups,
        free,
        from: path.from,
        to: path.to,
        lanes,
        threads: vec![Cursor::default(); analysis.threads.len()],
        time: vec![0; analysis.threads.len() * lanes],
    };
    for join in &joins {
        clocks.advance(join.thread, join.time, 0);
    }
    clocks.advance(path.thread, path.to, 0);
    let time = clocks.of(path.thread).to_vec();
    let lane = |at: usize| time.get(at).copied().unwrap_or(0);
    let (work, needed) = needed(&graph, path, &joins, groups);
    let cpus = (analysis.meta.cpus.len() as u64).max(1);
    let free = free.iter().zip(1..).map(|(group, at)| {
        let own = needed.get(*group as usize).copied().unwrap_or(0);
        let rest = work.saturating_sub(own);
        let at_least = lane(at * 2 + 1).max(rest.div_ceil(cpus));
        Free {
            group: *group,
            at_least,
            same_waits: lane(at * 2).max(at_least),
        }
    });
    Ok(Limits {
        recorded: lane(0),
        span: lane(1),
        work,
        cpus,
        free: free.collect(),
    })
}

/// A moment at which a thread's clock depends on another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Join {
    time: Ktime,
    /// Actor was woken or forked.
    thread: ThreadIx,
    /// ActorRef whom.
    by: ThreadIx,
}

/// All joins that can bear on the path, in order of time.
fn joins(graph: &Graph<'_>, path: &CriticalPath) -> Vec<Join> {
    let mut joins = Vec::new();
    for at in 0..graph.analysis.threads.len() {
        let Ok(ix) = u32::try_from(at) else { break };
        let thread = ThreadIx(ix);
        let start = graph.thread(thread).map(|thread| thread.start);
        if let (Some(time), Some(by)) = (start, graph.forked_by(thread)) {
            joins.push(Join { time, thread, by });
        }
        for stretch in graph.timeline.of(thread) {
            if let Cause::Thread(by) = graph.cause(&stretch) {
                let time = stretch.to;
                joins.push(Join { time, thread, by });
            }
        }
    }
    joins.retain(|join| join.time > path.from && join.time <= path.to);
    joins.par_sort_unstable();
    joins
}

/// How far a thread's clock has got.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    /// The stretch that it is in.
    number: u32,
    /// The clock stands for this moment.
    now: Ktime,
    begun: bool,
    /// Its clock is being set at this moment: a circle leads back here.
    busy: bool,
}

struct Clocks<'a> {
    graph: Graph<'a>,
    groups: &'a Groups,
    free: &'a [Group],
    from: Ktime,
    to: Ktime,
    lanes: usize,
    threads: Vec<Cursor>,
    /// For each thread its clocks, in ns: with the waits for a CPU as they were
    /// and without them; first with all work, then for each free group.
    time: Vec<u64>,
}

/// How many wake-ups at one instant are followed, as in the path.
const AT_ONCE: u32 = 64;

impl Clocks<'_> {
    fn of(&self, thread: ThreadIx) -> &[u64] {
        let at = thread.0 as usize * self.lanes;
        self.time.get(at..at + self.lanes).unwrap_or_default()
    }

    fn of_mut(&mut self, thread: ThreadIx) -> &mut [u64] {
        let at = thread.0 as usize * self.lanes;
        let lanes = at..at + self.lanes;
        self.time.get_mut(lanes).unwrap_or_default()
    }

    /// The length of a piece of time inside the path's.
    fn length(&self, from: Ktime, to: Ktime) -> u64 {
        to.min(self.to).since(from.max(self.from))
    }

    /// Time that passes in all lanes, or only where waits for a CPU are as they
    /// were.
    fn add(&mut self, thread: ThreadIx, ns: u64, all: bool) {
        for lanes in self.of_mut(thread).chunks_exact_mut(2) {
            if let [kept, least] = lanes {
                *kept += ns;
                *least += if all { ns } else { 0 };
            }
        }
    }

    fn run(&mut self, thread: ThreadIx, from: Ktime, to: Ktime) {
        let (from, to) = (from.max(self.from), to.min(self.to));
        self.add(thread, to.since(from), true);
        let Some(process) = self.graph.thread(thread).map(|thread| thread.process) else {
            return;
        };
        let (groups, free) = (self.groups, self.free);
        let lanes = self.of_mut(thread);
        groups.split(process, from, to, |group, from, to| {
            if let Some(at) = free.iter().position(|free| *free == group) {
                let lanes = lanes.get_mut((at + 1) * 2..(at + 2) * 2);
                for time in lanes.unwrap_or_default() {
                    *time = time.saturating_sub(to.since(from));
                }
            }
        });
    }

    /// A thread's clock is at least another's.
    fn wait_for(&mut self, thread: ThreadIx, other: ThreadIx) {
        for lane in 0..self.lanes {
            let later = self.of(other).get(lane).copied().unwrap_or(0);
            if let Some(time) = self.of_mut(thread).get_mut(lane) {
                *time = (*time).max(later);
            }
        }
    }

    /// Brings a thread's clock up to `until`, and through a wait that ends then. All joins before `until` have been
    /// passed; those at that very moment may lead on from thread to thread.
    fn advance(&mut self, thread: ThreadIx, until: Ktime, depth: u32) {
        let Some(of) = self.graph.thread(thread) else {
            return;
        };
        let Some(mut cursor) = self.threads.get(thread.0 as usize).copied() else {
            return;
        };
        if cursor.busy || until < of.start {
            return;
        }
        let mark = |clocks: &mut Self, cursor: Cursor| {
            if let Some(slot) = clocks.threads.get_mut(thread.0 as usize) {
                *slot = cursor;
            }
        };
        if !cursor.begun {
            cursor.begun = true;
            cursor.now = of.start;
            match self
                .graph
                .forked_by(thread)
                .filter(|_| of.start > self.from)
            {
                Some(parent) if depth < AT_ONCE && !self.is_busy(parent) => {
                    mark(
                        self,
                        Cursor {
                            busy: true,
                            ..cursor
                        },
                    );
                    self.advance(parent, of.start, depth + 1);
                    self.wait_for(thread, parent);
                }
                // What was before is not known.
                _ => self.add(thread, self.length(self.from, of.start), false),
            }
        }
        while let Some(stretch) = self.graph.timeline.get(thread, cursor.number as usize) {
            if stretch.from >= until {
                break;
            }
            let (from, to) = (cursor.now.max(stretch.from), stretch.to.min(until));
            let ends = stretch.to <= until;
            let ns = self.length(from, to);
            match self.graph.cause(&stretch) {
                // Actor asks in the middle of a wait, or before the path, gets
                // what was: nothing of it bears on the path.
                Cause::Thread(_) if !ends => break,
                Cause::Thread(by)
                    if to > self.from && depth < AT_ONCE && !self.is_busy(by) && by != thread =>
                {
                    mark(
                        self,
                        Cursor {
                            busy: true,
                            ..cursor
                        },
                    );
                    self.advance(by, to, depth + 1);
                    self.wait_for(thread, by);
                }
                Cause::Thread(_) => self.add(thread, ns, false),
                Cause::Own(Kind::OnCpu) => self.run(thread, from, to),
                Cause::Own(Kind::RunQueue(_) | Kind::Unknown) => self.add(thread, ns, false),
                Cause::Own(_) => self.add(thread, ns, true),
            }
            cursor.now = to;
            if !ends {
                break;
            }
            cursor.number += 1;
        }
        mark(
            self,
            Cursor {
                busy: false,
                ..cursor
            },
        );
    }

    fn is_busy(&self, thread: ThreadIx) -> bool {
        self.threads
            .get(thread.0 as usize)
            .is_some_and(|cursor| cursor.busy)
    }
}

/// The CPU time that the path's end depended on: in all, and of each group. Up
/// to when a thread mattered is found backwards; of several wake-ups at one
/// instant some may be missed, which makes it less, never more.
fn needed(
    graph: &Graph<'_>,
    path: &CriticalPath,
    joins: &[Join],
    groups: &Groups,
) -> (u64, Vec<u64>) {
    let mut until = vec![Ktime(0); graph.analysis.threads.len()];
    let mut raise = |thread: ThreadIx, time: Ktime| {
        let slot = until.get_mut(thread.0 as usize)?;
        *slot = (*slot).max(time);
        Some(*slot)
    };
    raise(path.thread, path.to);
    for join in joins.iter().rev() {
        if raise(join.thread, Ktime(0)) >= Some(join.time) {
            raise(join.by, join.time);
        }
    }
    let (mut all, mut of) = (0, vec![0; groups.count()]);
    for (at, until) in (0..).zip(until) {
        let thread = ThreadIx(at);
        let Some(process) = graph.thread(thread).map(|thread| thread.process) else {
            continue;
        };
        for stretch in graph.timeline.of(thread) {
            if stretch.from >= until {
                break;
            }
            if !matches!(stretch.doing, Bucket::OnCpu(_)) {
                continue;
            }
            let (from, to) = (stretch.from.max(path.from), stretch.to.min(until));
            groups.split(process, from, to.max(from), |group, from, to| {
                all = u64::saturating_add(all, to.since(from));
                if let Some(sum) = of.get_mut(group as usize) {
                    *sum += to.since(from);
                }
            });
        }
    }
    (all, of)
}
