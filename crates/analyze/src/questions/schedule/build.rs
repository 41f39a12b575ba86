//! Turns the timeline of every thread into the operations that the simulation of a run does.

use std::cell::Cell;
use std::collections::HashMap;

use tr_format::event::Ktime;

use super::builder::{Builder, WAKE_UP};
use super::change::{Change, Jobs};
use super::gates::{Plan, PLANNED_JOBS};
use super::merge::{Merger, MOST_OPS};
use super::ops::{List, Op, What};
use crate::arena::Arena;
use crate::containers::WaitedFor;
use crate::critical_path::{CriticalPath, TimeKind};
use crate::model::{ProcessIx, ThreadIx};
use crate::own::Own;
use crate::programs::Groups;
use crate::questions::graph::Graph;
use crate::timeline::{Bucket, Stretch};

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
    /// How many different wakings the run has, counting those that are interchangeable (such as job slots) as one.
    pub wakings: usize,
    /// For each timer that a thread of the run set before other work, the time in ns from setting it to its end.
    pub timers: Vec<u64>,
    /// Whether a process of the recorded run, which is simulated here, worked with more memory than the caches of a CPU
    /// hold. Only then does the simulated time depend on the caches.
    pub large: bool,
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
        sleeps: waits(path, |kind| kind == TimeKind::Sleep),
        timed: waits(path, |kind| {
            matches!(kind, TimeKind::Sleep | TimeKind::Network)
        }),
        looks: Cell::new(MOST_STRETCHES),
        containers: WaitedFor::of(analysis),
        own: Own::below(analysis, path.process),
        ends: lists(),
        starts: lists(),
        at_once: analysis.process_ids().map(|_| 0).collect(),
        marks: analysis.thread_ids().map(|_| Vec::new()).collect(),
        answers: analysis.thread_ids().map(|_| Vec::new()).collect(),
        wakings: HashMap::new(),
        timers: Vec::new(),
        background: analysis.process_ids().map(|_| false).collect(),
        serves_by_children: analysis.process_ids().map(|_| false).collect(),
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
        timers: builder.timers,
    }
}

/// The largest number of stretches (times of a thread in one state) that are searched, in the whole recording, for work
/// that other threads did while a thread slept. This limit bounds the work of `tr`.
const MOST_STRETCHES: usize = 1_000_000;

/// The waits of some kinds on the critical path: each waiting thread with the time at which the wait began.
fn waits<S: FromIterator<(ThreadIx, Ktime)>>(
    path: &CriticalPath,
    counts: impl Fn(TimeKind) -> bool,
) -> S {
    let segments = path.segments.iter();
    let waits = segments.filter(|segment| counts(segment.kind));
    waits
        .map(|segment| (segment.thread, segment.from))
        .collect()
}

impl Builder<'_> {
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
            // Nothing shows which thread started this thread. So in the simulation the thread exists from the beginning
            // of the run, and first waits until its recorded start.
            list.push(What::Delay, 0, start.min(self.to).since(self.from), start);
        }
        if let Some(job) = self.plan.job_of(self.graph.analysis, thread) {
            list.push(What::Gate, PLANNED_JOBS, job, start);
        }
        let timeline = self.graph.timeline;
        let ticks = self.ticks(thread);
        let last_pause = self.last_pause(thread);
        let mut timers = self.timers_of(thread);
        let mut cold = false;
        for stretch in timeline.of(thread) {
            if stretch.to <= self.from || stretch.from >= self.to {
                continue;
            }
            while let Some(number) = timers.next_set(stretch.from) {
                self.marks_until(&mut list, thread, stretch.from);
                list.push(What::Set, 0, number, stretch.from);
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
                    if let Some(number) = timers.of_wait(stretch.from) {
                        let mask = self.changes_of_wait(thread, &stretch, cause);
                        list.push(What::Expire, mask, number, stretch.to);
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
            // Whether the wait is between jobs that an assumed change lets run at the same time. With this change, the
            // owner of the jobs starts the next one without waiting for the one before.
            let inside = |jobs: &Jobs| jobs.owner == process && at > jobs.from && at <= jobs.to;
            awaited.is_some_and(|awaited| (change.time.waits)(awaited, stretch.reason))
                && change.time.counts(group)
                || change.jobs.iter().any(inside) && self.own_child(process, by)
        });
        let analysis = self.graph.analysis;
        if self.plan.replaces(analysis, (thread, by), at, awaited) {
            mask |= PLANNED_JOBS;
        }
        if self.awaits_child(thread, (by, at), awaited) {
            let ended = self.ended_children(process, at);
            list.push(What::Children, mask, ended, at);
        } else {
            let number = self.waking(thread, by, awaited);
            list.push(What::Await, mask, number, at);
        }
    }
}
