//! Parallelism: the number of tasks that ran or waited for a CPU at once, and the serial phases, in which
//! only one process did. In a recording of the whole machine only the tasks of COMMAND count.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use tr_format::event::{Ktime, Stream};
use tr_format::meta::Scope;

use crate::arena::Ix;
use crate::concurrency::add;
use crate::model::{Analysis, ProcessIx, ThreadIx};
use crate::questions::contention::Slices;
use crate::questions::critical_path::{CriticalPath, NoPath, Segment, TimeKind};
use crate::questions::graph::Graph;
use crate::questions::load::{Load, Loads};
use crate::questions::own::Own;
use crate::questions::programs::{sleeper, Group, Groups};
use crate::timeline::{Bucket, StateChange};

/// A serial phase of a build: only one process, which belongs to one group of programs, ran or waited for a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Alone {
    pub from: Ktime,
    pub to: Ktime,
    pub process: ProcessIx,
    pub group: Group,
    /// The time in ns for which the process of the serial phase was on a CPU. In the rest of the phase it waited for a
    /// CPU.
    pub on_cpu: u64,
}

impl Alone {
    /// The length of the serial phase in ns.
    pub fn length(&self) -> u64 {
        self.to.since(self.from)
    }
}

/// How long the programs of one group were the only programs of the build that ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AloneSum {
    /// The time in nanoseconds in which a task of the group of programs was the only task that ran.
    pub ran: u64,
    /// The time in nanoseconds in which a task of the group of programs was the only task that ran, and no other task
    /// waited for a CPU.
    pub serial: u64,
}

/// The reason why no task of the build ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Idle {
    /// No task of the build ran while the critical path was in a wait of this kind. With [`TimeKind::RunQueue`],
    /// tasks that are not recorded kept the CPUs busy.
    Waits(TimeKind),
    /// No task of the build ran while there was no critical path: the time is before the path's beginning or after its
    /// end, or the path is not known.
    NoPath,
}

/// The parallelism of a build: how many tasks ran or could run at once, and the serial phases. All times are in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parallelism {
    /// The time in ns in which exactly n tasks of the build were on a CPU: `running[n]`.
    pub running: Vec<u64>,
    /// The time in ns in which exactly n tasks of the build were on a CPU or waiting for one: `demand[n]`.
    pub demand: Vec<u64>,
    /// The time in ns in which the numbers of tasks are not known, because events are missing or a task whose state is
    /// unknown may be on a CPU. Together with this time, `running` and `demand` each add up to the length of the
    /// analyzed span.
    pub unknown: u64,
    /// The longest serial phases, in which only one process ran or waited for a CPU, the longest phase first.
    pub alone: Vec<Alone>,
    /// For each group of programs, how long its tasks were the only tasks that ran.
    pub alone_by_group: BTreeMap<Group, AloneSum>,
    /// The time in ns in which no task of the build ran. The key is the reason, and the group of programs that waited
    /// on the critical path.
    pub idle: BTreeMap<(Idle, Option<Group>), u64>,
    /// The numbers of tasks that run, and of tasks that run or wait for a CPU, in the order of time.
    pub load: Vec<Load>,
}

impl Parallelism {
    /// The CPU time in ns that the build's tasks could have used on `cpus` CPUs, if every task that wanted a CPU had
    /// got one while CPUs were free.
    pub fn could_use(&self, cpus: u64) -> u64 {
        let levels = (0u64..).zip(&self.demand);
        levels.fold(0, |sum: u64, (n, ns)| {
            sum.saturating_add(ns.saturating_mul(n.min(cpus)))
        })
    }

    /// The time in ns in which more than `cpus` tasks of the build were on a CPU or waiting for one.
    pub fn starved(&self, cpus: u64) -> u64 {
        let levels = (0u64..).zip(&self.demand);
        levels.filter(|(n, _)| *n > cpus).map(|(_, ns)| ns).sum()
    }
}

/// The parallelism of a recording. `path` has the reasons for the time in which no task ran. `longest` is the
/// number of phases to keep. `slices` collects the tasks that had the CPUs, if the caller needs them, too: a walk over
/// the changes of all threads is most of the work of both.
///
/// # Errors
/// No timeline was kept.
pub fn parallelism(
    analysis: &Analysis,
    groups: &Groups,
    path: Option<&CriticalPath>,
    longest: usize,
    mut slices: Option<&mut Slices>,
) -> Result<Parallelism, NoPath> {
    let mut sweep = Sweep::new(analysis, groups, path, longest)?;
    let own = Own::of(analysis);
    let takes_all = slices.is_some();
    let threads = analysis.thread_ids();
    let threads = threads.filter(|ix| takes_all || own.has_thread(analysis, *ix));
    for change in sweep.graph.timeline.changes(threads) {
        if let Some(slices) = &mut slices {
            slices.take(analysis, &change);
        }
        if !takes_all || own.has_thread(analysis, change.thread) {
            sweep.take(&change);
        }
    }
    Ok(sweep.finish())
}

impl<'a> Sweep<'a> {
    fn new(
        analysis: &'a Analysis,
        groups: &'a Groups,
        path: Option<&'a CriticalPath>,
        longest: usize,
    ) -> Result<Sweep<'a>, NoPath> {
        let graph = Graph::new(analysis).ok_or(NoPath::NoTimeline)?;
        Ok(Sweep {
            graph,
            groups,
            path,
            at_segment: 0,
            longest,
            now: analysis.start,
            counts: Counts::default(),
            forks_missing_from: forks_missing_from(analysis),
            unknown_is_off_from: analysis
                .all_cpus_seen_from
                .filter(|_| analysis.quality.lost.is_empty())
                .unwrap_or(Ktime(u64::MAX)),
            alone: None,
            kept: BinaryHeap::new(),
            loads: Loads::new(analysis.cpus_of_build().max(1)),
            result: Parallelism::default(),
        })
    }
}

/// The time from which on the counts of tasks may be too low, because lifecycle events (forks) are lost. In a recording
/// of the whole machine, the scheduling events also show a task whose fork is lost. There the counts can be too low
/// only if scheduling events are lost as well.
fn forks_missing_from(analysis: &Analysis) -> Ktime {
    let lost = &analysis.quality.lost;
    let cpus = lost
        .iter()
        .any(|span| matches!(span.stream, Stream::Cpu(_)));
    let forks = lost.iter().filter(|span| span.stream == Stream::Lifecycle);
    let first = forks.map(|span| span.since).min();
    let counts = cpus || analysis.meta.scope != Scope::All;
    first.filter(|_| counts).unwrap_or(Ktime(u64::MAX))
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    tasks: usize,
    /// The sum of the indices of the counted threads. If exactly one thread is counted, the sum is the index of this
    /// thread.
    sum: usize,
}

impl Count {
    fn only(&self) -> Option<ThreadIx> {
        (self.tasks == 1).then(|| ThreadIx::new(self.sum))
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    running: Count,
    /// The count of tasks that are not on a CPU but wait for one.
    ready: Count,
    unknown: Count,
}

impl Counts {
    /// How many tasks are on a CPU, and how many are on a CPU or wait for one.
    fn at_once(&self) -> (usize, usize) {
        let running = self.running.tasks;
        (running, running + self.ready.tasks)
    }

    fn of(&mut self, doing: Bucket) -> Option<&mut Count> {
        match doing {
            Bucket::OnCpu(_) => Some(&mut self.running),
            Bucket::RunQueue { .. } => Some(&mut self.ready),
            Bucket::Unknown => Some(&mut self.unknown),
            Bucket::Wait(_) => None,
        }
    }

    fn enter(&mut self, thread: ThreadIx, doing: Bucket) {
        if let Some(count) = self.of(doing) {
            count.tasks += 1;
            count.sum += thread.place();
        }
    }

    /// Notes that a thread leaves a state, so the thread is no longer counted in that state.
    fn leave(&mut self, thread: ThreadIx, doing: Bucket) {
        if let Some(count) = self.of(doing) {
            count.tasks -= 1;
            count.sum -= thread.place();
        }
    }
}

struct Sweep<'a> {
    graph: Graph<'a>,
    groups: &'a Groups,
    path: Option<&'a CriticalPath>,
    at_segment: usize,
    longest: usize,
    /// The time up to which the running and waiting tasks have been counted into the results.
    now: Ktime,
    counts: Counts,
    forks_missing_from: Ktime,
    /// From this time on, a task whose state is unknown is certainly on no CPU, because every CPU has switched and
    /// no switch is lost.
    unknown_is_off_from: Ktime,
    alone: Option<Alone>,
    /// The longest serial phases so far. The top of the heap is the phase that is dropped first: the shortest one and,
    /// among equally long ones, the latest one.
    kept: BinaryHeap<(Reverse<u64>, Alone)>,
    loads: Loads,
    result: Parallelism,
}

impl Sweep<'_> {
    /// Adds the time up to a change of a thread's state to the sums for the present numbers of tasks, and then
    /// applies the change. Changes come in the order of time.
    fn take(&mut self, change: &StateChange) {
        self.advance(change.at);
        let (running, demand) = self.counts.at_once();
        self.loads.begin(change.at, running, demand);
        if let Some(before) = change.before {
            self.counts.leave(change.thread, before.doing);
        }
        if let Some(after) = change.after {
            self.counts.enter(change.thread, after.doing);
        }
    }

    /// Counts the time up to `to` with the present numbers of running and waiting tasks. No task changes its state
    /// before `to`.
    fn advance(&mut self, to: Ktime) {
        let mut borders = [self.forks_missing_from, self.unknown_is_off_from];
        borders.sort_unstable();
        for border in borders {
            if to > border && self.now < border {
                self.account(border);
            }
        }
        if to > self.now {
            self.account(to);
        }
    }

    fn account(&mut self, to: Ktime) {
        let from = std::mem::replace(&mut self.now, to);
        let ns = to.since(from);
        let Counts { running, ready, .. } = self.counts;
        let unknown = self.counts.unknown.tasks > 0 && from < self.unknown_is_off_from;
        if unknown || from >= self.forks_missing_from {
            self.result.unknown += ns;
            self.end_phase();
            return;
        }
        add(&mut self.result.running, running.tasks, ns);
        add(&mut self.result.demand, running.tasks + ready.tasks, ns);
        if running.tasks == 0 {
            self.account_idle(from, to, ready.tasks > 0);
        }
        if let Some(thread) = running.only() {
            let process = self.graph.analysis.thread(thread).process;
            let sums = &mut self.result.alone_by_group;
            self.groups.split(process, from, to, |group, from, to| {
                let sum = sums.entry(group).or_default();
                sum.ran += to.since(from);
                sum.serial += if ready.tasks == 0 { to.since(from) } else { 0 };
            });
        }
        let only = match (running.tasks, ready.tasks) {
            (_, 0) => running.only(),
            (0, _) => ready.only(),
            _ => None,
        };
        match only {
            Some(thread) => self.account_alone(from, to, thread, running.tasks == 1),
            None => self.end_phase(),
        }
    }

    /// Extends the serial phase of a thread that is the only one to run or to wait for a CPU, or begins such a phase.
    fn account_alone(&mut self, from: Ktime, to: Ktime, thread: ThreadIx, on_cpu: bool) {
        let process = self.graph.analysis.thread(thread).process;
        let groups = self.groups;
        groups.split(process, from, to, |group, from, to| {
            let same = |alone: &Alone| (alone.process, alone.group) == (process, group);
            if !self.alone.as_ref().is_some_and(same) {
                self.end_phase();
            }
            let alone = self.alone.get_or_insert(Alone {
                from,
                to,
                process,
                group,
                on_cpu: 0,
            });
            alone.to = to;
            alone.on_cpu += if on_cpu { to.since(from) } else { 0 };
        });
    }

    fn end_phase(&mut self) {
        let Some(alone) = self.alone.take() else {
            return;
        };
        self.kept.push((Reverse(alone.length()), alone));
        if self.kept.len() > self.longest {
            self.kept.pop();
        }
    }

    /// Adds time in which no task ran to the sums by reason. The reason is the kind of time that the critical path has
    /// there.
    fn account_idle(&mut self, from: Ktime, to: Ktime, wanted: bool) {
        let segments = self.path.map_or(&[][..], |path| &path.segments);
        let mut now = from;
        while now < to {
            let passed = |segment: &&Segment| segment.to <= now;
            let rest = segments.get(self.at_segment..).unwrap_or_default();
            self.at_segment += rest.iter().take_while(passed).count();
            let (end, idle, group) = match segments.get(self.at_segment) {
                Some(segment) if segment.from > now => (segment.from, Idle::NoPath, None),
                None => (to, Idle::NoPath, None),
                Some(segment) => {
                    let process = self.graph.analysis.thread(segment.thread).process;
                    let (process, at) = match segment.kind {
                        TimeKind::Sleep => sleeper(self.graph.analysis, process, now),
                        _ => (process, now),
                    };
                    (segment.to, idle(segment.kind), self.groups.at(process, at))
                }
            };
            let reason = if wanted {
                (Idle::Waits(TimeKind::RunQueue), None)
            } else {
                (idle, group)
            };
            let end = end.min(to);
            *self.result.idle.entry(reason).or_default() += end.since(now);
            now = end;
        }
    }

    fn finish(mut self) -> Parallelism {
        self.advance(self.graph.analysis.end);
        self.end_phase();
        let (running, demand) = self.counts.at_once();
        self.result.load = self.loads.end(running, demand);
        let kept = self.kept.into_sorted_vec();
        self.result.alone = kept.into_iter().map(|(_, alone)| alone).collect();
        for times in [&mut self.result.running, &mut self.result.demand] {
            times.resize(times.len().max(1), 0);
        }
        self.result
    }
}

/// The reason why no task ran at a time, derived from the kind of time that the critical path has there. If the path
/// claims that its thread ran, the reason is unknown, because no thread ran.
fn idle(kind: TimeKind) -> Idle {
    if kind.is_wait() || kind == TimeKind::RunQueue {
        Idle::Waits(kind)
    } else {
        Idle::Waits(TimeKind::Unknown)
    }
}
