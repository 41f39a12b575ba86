//! How much of the recording went on at once: how many tasks ran, how many
//! wanted to, and who was alone.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use tr_format::event::{Ktime, Stream};
use tr_format::meta::Scope;

use crate::concurrency::add;
use crate::critical_path::{CriticalPath, Kind, NoPath};
use crate::graph::Graph;
use crate::model::{Analysis, ProcessIx, ThreadIx};
use crate::programs::{sleeper, Group, Groups};
use crate::timeline::{Bucket, Stretch};

/// A stretch of time in which one process, as one program, was all that ran or
/// wanted to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alone {
    /// From here on.
    pub from: Ktime,
    /// Up to here.
    pub to: Ktime,
    /// Actor.
    pub process: ProcessIx,
    /// What it was.
    pub group: Group,
    /// How much of it it was on a CPU; the rest of the time it waited for one.
    pub on_cpu: u64,
}

impl Alone {
    /// Its length in ns.
    pub fn length(&self) -> u64 {
        self.to.since(self.from)
    }
}

/// A group's time alone, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AloneSum {
    /// One of its tasks was the only one that ran.
    pub ran: u64,
    /// The same, and nobody else waited for a CPU.
    pub serial: u64,
}

/// Why nobody ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // as in [`Kind`]
pub enum Idle {
    /// Somebody wanted to: the CPUs were busy with tasks that are not recorded.
    NoCpu,
    Disk,
    Sleep,
    Stopped,
    Blocked,
    Outside,
    Unknown,
    /// The critical path says nothing of this time: before the exec, after the
    /// end, or there is none.
    NoPath,
}

/// How much went on at once. Times in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parallelism {
    /// `running[n]`: how long exactly n tasks were on a CPU.
    pub running: Vec<u64>,
    /// `demand[n]`: how long exactly n tasks were on a CPU or waiting for one.
    pub demand: Vec<u64>,
    /// How long it is not known: events are missing, or one task's state is not
    /// known. With this the sums of `running` and of `demand` are the span.
    pub unknown: u64,
    /// The longest stretches in which one process was all that ran or wanted to,
    /// longest first.
    pub alone: Vec<Alone>,
    /// Actor ran alone, by group.
    pub alone_by_group: BTreeMap<Group, AloneSum>,
    /// What it was waiting for while nobody ran, with the group that waited; by
    /// the critical path.
    pub idle: BTreeMap<(Idle, Option<Group>), u64>,
}

impl Parallelism {
    /// How long at least n tasks were on a CPU or waiting for one.
    pub fn wanted(&self, n: usize) -> u64 {
        self.demand.iter().skip(n).sum()
    }
}

/// How much went on at once. `path` tells what it waited for while nobody ran;
/// `longest` is the number of stretches to keep.
///
/// # Errors
/// No timeline was kept.
pub fn parallelism(
    analysis: &Analysis,
    groups: &Groups,
    path: Option<&CriticalPath>,
    longest: usize,
) -> Result<Parallelism, NoPath> {
    let graph = Graph::new(analysis).ok_or(NoPath::NoTimeline)?;
    let mut sweep = Sweep {
        graph,
        groups,
        path,
        at_segment: 0,
        longest,
        now: analysis.start,
        count: Counts::default(),
        blind_from: blind_from(analysis),
        alone: None,
        kept: BinaryHeap::new(),
        result: Parallelism::default(),
    };
    sweep.run();
    Ok(sweep.finish())
}

/// From when on there may be tasks that nothing tells of: forks are missing.
/// Where system_wide is recorded, they show themselves by running.
fn blind_from(analysis: &Analysis) -> Ktime {
    let lost = &analysis.quality.lost;
    let cpus = lost
        .iter()
        .any(|span| matches!(span.stream, Stream::Cpu(_)));
    let lives = lost.iter().filter(|span| span.stream == Stream::Lifecycle);
    let first = lives.map(|span| span.since).min();
    match first {
        Some(since) if cpus || analysis.meta.scope != Scope::All => since,
        _ => Ktime(u64::MAX),
    }
}

/// How many tasks are in a state; when it is one, which.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    tasks: usize,
    /// The sum of their numbers: the one's own number when there is one.
    sum: u64,
}

impl Count {
    fn enter(&mut self, thread: ThreadIx) {
        self.tasks += 1;
        self.sum += u64::from(thread.0);
    }

    fn leave(&mut self, thread: ThreadIx) {
        self.tasks = self.tasks.saturating_sub(1);
        self.sum = self.sum.saturating_sub(u64::from(thread.0));
    }

    fn only(&self) -> Option<ThreadIx> {
        let only = u32::try_from(self.sum).ok().filter(|_| self.tasks == 1);
        only.map(ThreadIx)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    running: Count,
    /// Waiting for a CPU.
    ready: Count,
    unknown: usize,
}

impl Counts {
    fn enter(&mut self, thread: ThreadIx, doing: Bucket) {
        match doing {
            Bucket::OnCpu(_) => self.running.enter(thread),
            Bucket::RunQueue { .. } => self.ready.enter(thread),
            Bucket::Unknown => self.unknown += 1,
            Bucket::Wait(_) => {}
        }
    }

    fn leave(&mut self, thread: ThreadIx, doing: Bucket) {
        match doing {
            Bucket::OnCpu(_) => self.running.leave(thread),
            Bucket::RunQueue { .. } => self.ready.leave(thread),
            Bucket::Unknown => self.unknown = self.unknown.saturating_sub(1),
            Bucket::Wait(_) => {}
        }
    }
}

struct Sweep<'a> {
    graph: Graph<'a>,
    groups: &'a Groups,
    path: Option<&'a CriticalPath>,
    at_segment: usize,
    longest: usize,
    /// Up to here the time is told.
    now: Ktime,
    count: Counts,
    blind_from: Ktime,
    /// The stretch alone that goes on.
    alone: Option<Alone>,
    /// The longest ones; the shortest of them on top, of equal ones the latest.
    kept: BinaryHeap<(Reverse<u64>, Ktime, Kept)>,
    result: Parallelism,
}

/// An [`Alone`], which has no order of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kept {
    to: Ktime,
    process: ProcessIx,
    group: Group,
    on_cpu: u64,
}

impl Sweep<'_> {
    /// Goes through all changes of all threads in order of time.
    fn run(&mut self) {
        let analysis = self.graph.analysis;
        let count = u32::try_from(analysis.threads.len()).unwrap_or(u32::MAX);
        let mut born: Vec<(Ktime, ThreadIx)> = (0..count)
            .map(ThreadIx)
            .filter_map(|ix| Some((self.graph.timeline.get(ix, 0)?.from, ix)))
            .collect();
        born.sort_unstable();
        let mut born = born.into_iter().peekable();
        // The ends of the stretches that the living threads are in.
        let mut ends: BinaryHeap<Reverse<(Ktime, ThreadIx, u32)>> = BinaryHeap::new();
        loop {
            let end = ends.peek().map(|Reverse((time, ..))| *time);
            let begin = born.peek().map(|(time, _)| *time);
            match (begin, end) {
                (None, None) => break,
                (Some(begin), end) if end.is_none_or(|end| begin < end) => {
                    let Some((time, ix)) = born.next() else { break };
                    self.pass(time);
                    if let Some(first) = self.graph.timeline.get(ix, 0) {
                        self.count.enter(ix, first.doing);
                        ends.push(Reverse((first.to, ix, 0)));
                    }
                }
                _ => {
                    let Some(mut top) = ends.peek_mut() else {
                        break;
                    };
                    let Reverse((time, ix, number)) = *top;
                    self.pass(time);
                    let next = number as usize + 1;
                    let next: Option<Stretch> = self.graph.timeline.get(ix, next);
                    if let Some(old) = self.graph.timeline.get(ix, number as usize) {
                        self.count.leave(ix, old.doing);
                    }
                    match next {
                        Some(next) => {
                            self.count.enter(ix, next.doing);
                            *top = Reverse((next.to, ix, number + 1));
                        }
                        None => {
                            std::collections::binary_heap::PeekMut::pop(top);
                        }
                    }
                }
            }
        }
        self.pass(analysis.end);
    }

    /// Nothing has changed from `now` up to this time.
    fn pass(&mut self, to: Ktime) {
        if to > self.blind_from && self.now < self.blind_from {
            self.tell(self.blind_from);
        }
        if to > self.now {
            self.tell(to);
        }
    }

    fn tell(&mut self, to: Ktime) {
        let (from, ns) = (self.now, to.since(self.now));
        self.now = to;
        if self.count.unknown > 0 || from >= self.blind_from {
            self.result.unknown += ns;
            self.close();
            return;
        }
        let Counts { running, ready, .. } = self.count;
        add(&mut self.result.running, running.tasks, ns);
        add(&mut self.result.demand, running.tasks + ready.tasks, ns);
        if running.tasks == 0 {
            self.nobody(from, to, ready.tasks > 0);
        }
        let process = |ix: ThreadIx| self.graph.thread(ix).map(|thread| thread.process);
        if let Some(process) = running.only().and_then(process) {
            let sums = &mut self.result.alone_by_group;
            self.groups.split(process, from, to, |group, from, to| {
                let sum = sums.entry(group).or_default();
                sum.ran += to.since(from);
                if ready.tasks == 0 {
                    sum.serial += to.since(from);
                }
            });
        }
        let only = match (running.tasks, ready.tasks) {
            (1, 0) => running.only(),
            (0, 1) => ready.only(),
            _ => None,
        };
        let Some(process) = only.and_then(process) else {
            self.close();
            return;
        };
        let groups = self.groups;
        groups.split(process, from, to, |group, from, to| {
            let goes_on = |alone: &Alone| (alone.process, alone.group) == (process, group);
            if !self.alone.as_ref().is_some_and(goes_on) {
                self.close();
            }
            let alone = self.alone.get_or_insert(Alone {
                from,
                to,
                process,
                group,
                on_cpu: 0,
            });
            alone.to = to;
            alone.on_cpu += if running.tasks == 1 {
                to.since(from)
            } else {
                0
            };
        });
    }

    /// The process is no longer alone.
    fn close(&mut self) {
        let Some(alone) = self.alone.take() else {
            return;
        };
        let kept = Kept {
            to: alone.to,
            process: alone.process,
            group: alone.group,
            on_cpu: alone.on_cpu,
        };
        self.kept.push((Reverse(alone.length()), alone.from, kept));
        if self.kept.len() > self.longest {
            self.kept.pop();
        }
    }

    /// Nobody ran: what the path says of that time.
    fn nobody(&mut self, from: Ktime, to: Ktime, wanted: bool) {
        let mut now = from;
        let segments = self.path.map_or(&[][..], |path| &path.segments);
        while now < to {
            while segments
                .get(self.at_segment)
                .is_some_and(|segment| segment.to <= now)
            {
                self.at_segment += 1;
            }
            let segment = segments.get(self.at_segment);
            let (end, idle, group) = match segment {
                Some(segment) if segment.from > now => (segment.from, Idle::NoPath, None),
                None => (to, Idle::NoPath, None),
                Some(segment) => {
                    let process = self.graph.thread(segment.thread).map(|t| t.process);
                    let who = process.map(|process| match segment.kind {
                        Kind::Sleep => sleeper(self.graph.analysis, process, now),
                        _ => (process, now),
                    });
                    let group = who.and_then(|(process, now)| self.groups.at(process, now));
                    (segment.to, idle(segment.kind), group)
                }
            };
            let (idle, group) = match wanted {
                true => (Idle::NoCpu, None),
                false => (idle, group),
            };
            let end = end.min(to);
            *self.result.idle.entry((idle, group)).or_default() += end.since(now);
            now = end;
        }
    }

    fn finish(mut self) -> Parallelism {
        self.close();
        let kept = self.kept.into_sorted_vec();
        let alone = kept.into_iter().map(|(_, from, kept)| Alone {
            from,
            to: kept.to,
            process: kept.process,
            group: kept.group,
            on_cpu: kept.on_cpu,
        });
        self.result.alone = alone.collect();
        for times in [&mut self.result.running, &mut self.result.demand] {
            times.resize(times.len().max(1), 0);
        }
        self.result
    }
}

fn idle(kind: Kind) -> Idle {
    match kind {
        Kind::RunQueue(_) => Idle::NoCpu,
        Kind::Disk => Idle::Disk,
        Kind::Sleep => Idle::Sleep,
        Kind::Stopped => Idle::Stopped,
        Kind::Blocked => Idle::Blocked,
        Kind::Outside(_) => Idle::Outside,
        // Nobody ran, so the path's thread did not either.
        Kind::OnCpu | Kind::Unknown => Idle::Unknown,
    }
}
