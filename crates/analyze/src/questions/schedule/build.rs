//! Turns the timeline of every thread into the operations that the simulation of a run does.

use std::collections::HashMap;

use tr_format::event::Ktime;

use super::gates::{Plan, PLANNED};
use super::merge::{Merger, MOST_OPS};
use super::ops::{List, Mark, Op, What};
use super::{Change, Changes, Jobs};
use crate::arena::Arena;
use crate::awaited::WaitReason;
use crate::containers::WaitedFor;
use crate::critical_path::CriticalPath;
use crate::model::{ProcessIx, ThreadIx};
use crate::own::Own;
use crate::programs::Groups;
use crate::questions::graph::{Graph, StretchCause};
use crate::timeline::{Bucket, Stretch, Wait};

/// The longest time in ns that a woken or forked task waits for an idle CPU. In a longer wait the CPU has other work.
/// The number is a guess about idle CPUs: with a longer time, waits behind another task would be taken for the time
/// that the machine itself needs.
pub(super) const WAKE_UP: u64 = 50_000;

/// The threads of a simulated run, with the operations that each of them performs.
#[derive(Debug)]
pub(super) struct Threads {
    pub ops: Arena<ThreadIx, Vec<Op>>,
    pub process: Arena<ThreadIx, ProcessIx>,
    pub parent: Arena<ProcessIx, Option<ProcessIx>>,
    /// The threads that exist from the beginning of the simulated run, because no other thread of the run starts them.
    pub first: Vec<ThreadIx>,
    /// The thread whose end is the end of the simulated run.
    pub last: ThreadIx,
    /// The number of different waking numbers. Wakings with equal numbers are interchangeable.
    pub wakings: usize,
    /// Whether the simulated run has processes that need more memory than the caches of a single CPU have.
    pub large: bool,
}

/// Collects the operations of all threads of a simulated run. `marks` and `background` first look through the whole
/// run; then `ops` goes through one thread after the other.
pub(super) struct Builder<'a> {
    pub(super) graph: Graph<'a>,
    pub(super) groups: &'a Groups,
    pub(super) changes: &'a [Change],
    pub(super) plan: &'a Plan,
    pub(super) from: Ktime,
    pub(super) to: Ktime,
    /// The containers that processes of the simulated run wait for.
    pub(super) containers: WaitedFor,
    pub(super) own: Own,
    /// For each process, the times at which its children ended, in order.
    pub(super) ends: Arena<ProcessIx, Vec<Ktime>>,
    /// For each process, the times at which its children started, in order.
    pub(super) starts: Arena<ProcessIx, Vec<Ktime>>,
    /// For each process, the largest number of children that it had at the same time.
    pub(super) at_once: Arena<ProcessIx, u64>,
    pub(super) marks: Arena<ThreadIx, Vec<(Ktime, Mark)>>,
    /// For each thread, the times at which it ended a wait of another process or started one, in order.
    pub(super) answers: Arena<ThreadIx, Vec<Ktime>>,
    /// The numbers of wakings in the simulated run. Wakings with the same number are interchangeable: a thread that
    /// waits for one of them goes on at the first one. For example, a job slot may go to any other process.
    pub(super) wakings: HashMap<(Option<ThreadIx>, Option<WaitReason>), u64>,
    /// For each process, whether it is in the background, such as a heartbeat. A process is in the background if a
    /// signal or the recording's end ends it, the critical path contains nothing of it but this end, and no process
    /// that ends by itself waited for anything else of it.
    pub(super) background: Arena<ProcessIx, bool>,
    /// For each process that has been asked about, whether it is a server of a process that is not in the background.
    pub(super) serves: HashMap<ProcessIx, bool>,
}

/// Collects the operations of the threads of the critical path's process and its descendants, from the path's beginning
/// to its end.
pub(super) fn threads(
    graph: Graph<'_>,
    path: &CriticalPath,
    groups: &Groups,
    (changes, plan): (&[Change], &Plan),
) -> Threads {
    let analysis = graph.analysis;
    let lists = || analysis.process_ids().map(|_| Vec::new()).collect();
    let mut builder = Builder {
        graph,
        groups,
        changes,
        plan,
        from: path.from,
        to: path.to,
        containers: WaitedFor::of(analysis),
        own: Own::below(analysis, path.process),
        ends: lists(),
        starts: lists(),
        at_once: analysis.process_ids().map(|_| 0).collect(),
        marks: analysis.thread_ids().map(|_| Vec::new()).collect(),
        answers: analysis.thread_ids().map(|_| Vec::new()).collect(),
        wakings: HashMap::new(),
        background: analysis.process_ids().map(|_| false).collect(),
        serves: HashMap::new(),
    };
    builder.find_background(path);
    let first = builder.mark();
    let mut merger = Merger::new(MOST_OPS);
    let mut ops: Arena<ThreadIx, Vec<Op>> = Arena::default();
    for thread in analysis.thread_ids() {
        ops.push(merger.merged(builder.ops(thread)));
        merger.limit(&mut ops);
    }
    let large = |op: &Op| op.what.is_large();
    Threads {
        large: ops.ids().any(|thread| ops[thread].iter().any(large)),
        ops,
        process: analysis
            .thread_ids()
            .map(|thread| analysis.thread(thread).process)
            .collect(),
        parent: analysis
            .process_ids()
            .map(|process| analysis.process(process).parent)
            .collect(),
        first,
        last: path.last_thread(analysis),
        wakings: builder.wakings.len(),
    }
}

impl Builder<'_> {
    pub(super) fn is_own(&self, thread: ThreadIx) -> bool {
        self.own.has_thread(self.graph.analysis, thread)
    }

    /// Whether a wait was for a page, a disk or a lock of the kernel that another thread had by chance. With another
    /// order of events, no thread or a different thread would have had it. A wait that a child ends never counts as
    /// chance.
    pub(super) fn is_chance(&self, thread: ThreadIx, by: ThreadIx, stretch: &Stretch) -> bool {
        let analysis = self.graph.analysis;
        let parent = analysis.process(analysis.thread(by).process).parent;
        let child = parent == Some(analysis.thread(thread).process);
        !child && matches!(stretch.doing, Bucket::Wait(Wait::Io | Wait::Blocked))
    }

    /// The thread of the simulated run that ended a wait of a thread, if the wait ended during the run.
    pub(super) fn waker(&self, thread: ThreadIx, stretch: &Stretch) -> Option<ThreadIx> {
        if stretch.to <= self.from || stretch.to > self.to {
            return None;
        }
        self.waker_of(thread, stretch, self.graph.cause(thread, stretch))
    }

    /// Like [`Builder::waker`], for a stretch of the simulated run whose cause is already known.
    pub(super) fn waker_of(
        &self,
        thread: ThreadIx,
        stretch: &Stretch,
        cause: StretchCause,
    ) -> Option<ThreadIx> {
        match cause {
            _ if stretch.to <= self.from || stretch.to > self.to => None,
            StretchCause::Thread(by) if self.is_chance(thread, by, stretch) => None,
            StretchCause::Thread(by) => Some(by).filter(|by| self.is_own(*by) && *by != thread),
            StretchCause::Own(_) => None,
        }
    }

    /// The number of the waking by which a thread ended the wait of another thread. Returned job slots have a number of
    /// their own for each process, because they are meant for any other process.
    pub(super) fn waking(
        &mut self,
        thread: ThreadIx,
        by: ThreadIx,
        awaited: Option<WaitReason>,
    ) -> u64 {
        let process = |thread| self.graph.analysis.thread(thread).process;
        let slot = awaited == Some(WaitReason::Slot) && process(thread) != process(by);
        let of = Some(thread).filter(|_| !slot);
        let next = self.wakings.len() as u64;
        *self.wakings.entry((of, awaited)).or_insert(next)
    }

    /// Whether a thread waits for the end of a child of its process.
    pub(super) fn awaits_child(
        &self,
        thread: ThreadIx,
        (by, at): (ThreadIx, Ktime),
        awaited: Option<WaitReason>,
    ) -> bool {
        let analysis = self.graph.analysis;
        let parent = analysis.process(analysis.thread(by).process).parent;
        analysis.has_exited(by, at)
            && parent == Some(analysis.thread(thread).process)
            && awaited != Some(WaitReason::Vfork)
    }

    fn ops(&mut self, thread: ThreadIx) -> Vec<Op> {
        if !self.is_own(thread) {
            return Vec::new();
        }
        let marks = std::mem::take(&mut self.marks[thread]);
        let mut list = List {
            ops: Vec::new(),
            marks: marks.into_iter().peekable(),
        };
        let start = self.graph.analysis.thread(thread).start;
        let shown = self.graph.forked_by(thread).filter(|by| self.is_own(*by));
        if shown.is_none() && start > self.from {
            // The time before its start is not known.
            list.push(What::Delay, 0, start.min(self.to).since(self.from), start);
        }
        if let Some(job) = self.plan.job_of(self.graph.analysis, thread) {
            list.push(What::Gate, PLANNED, job, start);
        }
        let timeline = self.graph.timeline;
        let ticks = self.ticks(thread);
        let last_pause = self.last_pause(thread);
        let mut cold = false;
        for stretch in timeline.of(thread) {
            if stretch.to <= self.from || stretch.from >= self.to {
                continue;
            }
            let waits = matches!(stretch.doing, Bucket::Wait(_));
            if waits && last_pause.is_some_and(|last| stretch.from < last) {
                self.marks_until(&mut list, thread, stretch.from);
                continue;
            }
            let cause = self.graph.cause(thread, &stretch);
            match (stretch.doing, self.waker_of(thread, &stretch, cause)) {
                (Bucket::Wait(_), Some(by)) => {
                    self.marks_until(&mut list, thread, stretch.from);
                    if self.is_beat(thread, by) {
                        continue;
                    }
                    self.wait(&mut list, thread, by, &stretch);
                }
                (Bucket::Wait(_), None) => {
                    self.marks_until(&mut list, thread, stretch.from);
                    let has = self.containers.has(self.graph.analysis, thread, &stretch);
                    if has || ticks.contains(&stretch.from) {
                        continue;
                    }
                    self.own_time(&mut list, thread, (&stretch, cause), false);
                }
                _ => self.own_time(&mut list, thread, (&stretch, cause), cold),
            }
            cold = match stretch.doing {
                Bucket::RunQueue { preempted } => preempted || stretch.length() > WAKE_UP,
                _ => false,
            };
        }
        self.marks_until(&mut list, thread, self.to);
        self.all_jobs(&mut list, thread, self.to);
        list.ops
    }

    /// Adds a wait that another thread of the run ended to the operations of a thread.
    fn wait(&mut self, list: &mut List, thread: ThreadIx, by: ThreadIx, stretch: &Stretch) {
        let process = self.graph.analysis.thread(thread).process;
        let at = stretch.to;
        let awaited = self.graph.analysis.awaited(thread, stretch);
        let group = self.groups.at(process, stretch.from);
        let mut mask = self.mask(|change| {
            // The job whose start follows does not need the one that is awaited here.
            let inside = |jobs: &Jobs| jobs.owner == process && at > jobs.from && at <= jobs.to;
            awaited.is_some_and(|awaited| (change.time.waits)(awaited, stretch.reason))
                && change.time.counts(group)
                || change.jobs.iter().any(inside) && self.own_child(process, by)
        });
        let analysis = self.graph.analysis;
        if self.plan.replaces(analysis, (thread, by), at, awaited) {
            mask |= PLANNED;
        }
        if self.awaits_child(thread, (by, at), awaited) {
            let ended = self.ended_children(process, at);
            list.push(What::Children, mask, ended, at);
        } else {
            let number = self.waking(thread, by, awaited);
            list.push(What::Await, mask, number, at);
        }
    }

    /// Whether the process of a thread is a descendant of the process `process`.
    pub(super) fn own_child(&self, process: ProcessIx, thread: ThreadIx) -> bool {
        let analysis = self.graph.analysis;
        let mut above = analysis.ancestors(analysis.thread(thread).process);
        above.any(|ix| ix == process)
    }

    pub(super) fn numbered(&self) -> impl Iterator<Item = (Changes, &Change)> {
        self.changes
            .iter()
            .zip(0..)
            .map(|(change, at)| (1 << at, change))
    }

    /// The set of those assumed changes for which `concerns` is true.
    pub(super) fn mask(&self, concerns: impl Fn(&Change) -> bool) -> Changes {
        let all = self.numbered().filter(|(_, change)| concerns(change));
        all.fold(0, |mask, (bit, _)| mask | bit)
    }
}
