//! Turns the timeline of every thread into the operations that the simulation of a run does.

use std::collections::HashMap;

use tr_format::event::Ktime;

use super::gates::{Plan, PLANNED};
use super::merge::{Merger, MOST_OPS};
use super::{Change, Changes, Jobs};
use crate::arena::{Arena, Ix};
use crate::awaited::WaitReason;
use crate::containers::WaitedFor;
use crate::critical_path::CriticalPath;
use crate::kinds::Kind;
use crate::model::{Analysis, ProcessIx, ThreadIx};
use crate::own::Own;
use crate::programs::Groups;
use crate::questions::graph::{Cause, Graph};
use crate::share;
use crate::status::killed_by;
use crate::timeline::{Bucket, Stretch, Wait};

/// The longest time in ns that a woken or forked task waits for an idle CPU. In a longer wait the CPU has other work.
/// A guess about idle CPUs: a longer time would count waits behind another task as the machine's own.
const WAKE_UP: u64 = 50_000;
/// The size of a large process in bytes: a process with a larger resident set finds less of it in the caches
/// of its CPU after another task had the CPU. In 118 real runs, compilations took 5 to 25 % more CPU time then,
/// and loops without memory did not.
const LARGE: u64 = 8 << 20;

/// The time in ns that a process works until the caches of its CPU are filled again: a time slice. A guess from the
/// scheduler's slice of 3 to 4 ms; with it 114 of 118 real runs were within their forecast intervals.
const REFILL: u64 = 4_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The thread runs on a CPU for this number of ns.
    Work,
    /// The thread of a large process runs on a CPU for this number of ns. Other tasks on the CPU slow it down.
    Warm,
    /// The thread of a large process runs on a CPU for this number of ns. In the recording, another task had
    /// the CPU right before.
    Cold,
    /// The thread waits for this number of ns.
    Delay,
    /// The thread waits for one of the wakings with this number.
    Await,
    /// The thread causes one of the wakings with this number.
    Wake,
    /// The thread starts the thread with this number.
    Start,
    /// The thread waits until this number of children of its process have ended, unless one of the
    /// operation's changes is made.
    Children,
    /// The thread waits until this number of children of its process have ended, if one of the operation's
    /// changes is made.
    AtOnce,
    /// The process with this number has ended.
    Ended,
    /// If jobs are planned anew, the thread waits for a slot for the job with this number, and for the jobs
    /// that it needs.
    Gate,
}

impl What {
    /// Whether the operation takes CPU time.
    pub fn works(self) -> bool {
        self == What::Work || self.is_large()
    }

    /// Whether the operation takes CPU time of a large process.
    pub fn is_large(self) -> bool {
        matches!(self, What::Warm | What::Cold)
    }

    /// Whether the value of the operation is a length of time.
    pub fn is_timed(self) -> bool {
        self.works() || self == What::Delay
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub what: What,
    /// The set of assumed changes that concern the operation.
    pub mask: Changes,
    pub value: u64,
    /// The time in the recording at which the operation ended.
    pub at: Ktime,
}

#[derive(Debug)]
pub(super) struct Threads {
    pub ops: Arena<ThreadIx, Vec<Op>>,
    pub process: Arena<ThreadIx, ProcessIx>,
    pub parent: Arena<ProcessIx, Option<ProcessIx>>,
    /// The threads of the run that no other thread of it starts.
    pub first: Vec<ThreadIx>,
    /// The thread whose end is the end of the run.
    pub last: ThreadIx,
    /// The number of different numbers of wakings.
    pub wakings: usize,
    /// Whether the run has large processes.
    pub large: bool,
}

/// Something that a thread did at a moment and that another thread depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    Wake(u64),
    Ended(ProcessIx),
    Start(ThreadIx),
}

pub(super) struct Builder<'a> {
    pub(super) graph: Graph<'a>,
    groups: &'a Groups,
    changes: &'a [Change],
    plan: &'a Plan,
    from: Ktime,
    to: Ktime,
    /// The containers that processes of the run wait for.
    containers: WaitedFor,
    own: Own,
    /// The ends of the children of each process, in the order of time.
    ends: Arena<ProcessIx, Vec<Ktime>>,
    /// The starts of the children of each process, in the order of time.
    starts: Arena<ProcessIx, Vec<Ktime>>,
    /// The largest number of children that each process had at the same time.
    at_once: Arena<ProcessIx, u64>,
    marks: Arena<ThreadIx, Vec<(Ktime, Mark)>>,
    /// The times at which each thread ended a wait of another process, in order.
    pub(super) answers: Arena<ThreadIx, Vec<Ktime>>,
    /// The numbers that stand for wakings. A thread that waits for one of several wakings with the same
    /// number goes on at the first one. A job slot may go to any other process.
    wakings: HashMap<(Option<ThreadIx>, Option<WaitReason>), u64>,
    /// The processes in the background, such as a heartbeat: a signal or the recording's end ends them, nothing on the path
    /// is theirs but that end, and no process that ends by itself waited for anything else of them.
    background: Arena<ProcessIx, bool>,
    /// Whether a process is a server of one that is not in the background, as far as it was asked.
    serves: HashMap<ProcessIx, bool>,
}

/// Whether a process does not end by itself, such as a server.
fn is_ended(analysis: &Analysis, process: ProcessIx) -> bool {
    let process = analysis.process(process);
    process.alive || killed_by(process.status).is_some()
}

/// The operations of the threads of the path's process and its descendants, from the path's beginning to
/// its end.
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
    fn is_own(&self, thread: ThreadIx) -> bool {
        self.own.has_thread(self.graph.analysis, thread)
    }

    /// Whether a wait was for a page, a disk or a lock of the kernel that another thread had by chance. If events
    /// happen in another order, no thread has it, or a third one. A wait that a child ends is never of this kind.
    fn is_chance(&self, thread: ThreadIx, by: ThreadIx, stretch: &Stretch) -> bool {
        let analysis = self.graph.analysis;
        let parent = analysis.process(analysis.thread(by).process).parent;
        let child = parent == Some(analysis.thread(thread).process);
        !child && matches!(stretch.doing, Bucket::Wait(Wait::Io | Wait::Blocked))
    }

    /// The thread of the run that ended a wait of a thread, if it did so during the run.
    pub(super) fn waker(&self, thread: ThreadIx, stretch: &Stretch) -> Option<ThreadIx> {
        if stretch.to <= self.from || stretch.to > self.to {
            return None;
        }
        self.waker_of(thread, stretch, self.graph.cause(thread, stretch))
    }

    /// Like [`Builder::waker`], for a stretch of the run whose cause is known.
    fn waker_of(&self, thread: ThreadIx, stretch: &Stretch, cause: Cause) -> Option<ThreadIx> {
        match cause {
            _ if stretch.to <= self.from || stretch.to > self.to => None,
            Cause::Thread(by) if self.is_chance(thread, by, stretch) => None,
            Cause::Thread(by) => Some(by).filter(|by| self.is_own(*by) && *by != thread),
            Cause::Own(_) => None,
        }
    }

    /// The number of the waking by which a thread ended the wait of another thread. The slots of a process are
    /// for any other process.
    fn waking(&mut self, thread: ThreadIx, by: ThreadIx, awaited: Option<WaitReason>) -> u64 {
        let process = |thread| self.graph.analysis.thread(thread).process;
        let slot = awaited == Some(WaitReason::Slot) && process(thread) != process(by);
        let of = Some(thread).filter(|_| !slot);
        let next = self.wakings.len() as u64;
        *self.wakings.entry((of, awaited)).or_insert(next)
    }

    /// Finds the processes in the background.
    fn find_background(&mut self, path: &CriticalPath) {
        let analysis = self.graph.analysis;
        let process = |thread: ThreadIx| analysis.thread(thread).process;
        let ended = |ix: &ProcessIx| *ix != path.process && is_ended(analysis, *ix);
        let ended: Vec<ProcessIx> = analysis.process_ids().filter(ended).collect();
        if ended.is_empty() {
            return;
        }
        for ix in ended {
            self.background[ix] = true;
        }
        // A thread with many segments on the path is read once.
        let mut last_waits: HashMap<ThreadIx, Option<Ktime>> = HashMap::new();
        for segment in &path.segments {
            let ix = process(segment.thread);
            if !self.background[ix] {
                continue;
            }
            let last = last_waits.entry(segment.thread).or_insert_with(|| {
                let last = self.last_wait(segment.thread);
                last.map(|stretch| stretch.to)
            });
            if last.is_some_and(|to| to > segment.from) {
                self.background[ix] = false;
            }
        }
        for thread in analysis.thread_ids() {
            let own = process(thread);
            if !self.is_own(thread) || is_ended(analysis, own) {
                continue;
            }
            for stretch in self.graph.stretches_by_threads(thread) {
                let by = self.waker(thread, &stretch);
                let by = by.filter(|by| self.background[process(*by)]);
                if let Some(by) = by {
                    let awaited = analysis.awaited(thread, &stretch);
                    if !self.awaits_child(thread, (by, stretch.to), awaited) {
                        self.background[process(by)] = false;
                    }
                }
            }
        }
    }

    /// The beginning of the last wait of a thread of a process in the background, which its end ends. Its other waits
    /// take no time of a run: nothing waits for what comes after them.
    fn last_pause(&self, thread: ThreadIx) -> Option<Ktime> {
        let process = self.graph.analysis.thread(thread).process;
        let last = || self.last_wait(thread);
        let last = self.background[process].then(last)?;
        Some(last.map_or(Ktime(0), |stretch| stretch.from))
    }

    /// The last wait of a thread before it exits. While a thread exits, it may wait until the kernel has closed its files.
    fn last_wait(&self, thread: ThreadIx) -> Option<Stretch> {
        let exited = self.graph.analysis.thread(thread).exited;
        let stretches = self.graph.timeline.of(thread);
        let waits = stretches.filter(|stretch| matches!(stretch.doing, Bucket::Wait(_)));
        let before = waits.filter(|stretch| exited.is_none_or(|exited| stretch.from < exited));
        before.last()
    }

    /// Whether a thread of a server waits for a request of a process in the background, while the server has other
    /// clients: it does not wait for a heartbeat before it answers another one.
    fn is_beat(&mut self, thread: ThreadIx, by: ThreadIx) -> bool {
        let analysis = self.graph.analysis;
        let process = |thread| analysis.thread(thread).process;
        let (own, other) = (process(thread), process(by));
        own != other && self.background[other] && is_ended(analysis, own) && self.serves(own)
    }

    /// Whether a process that is not in the background ended a wait of this one.
    fn serves(&mut self, server: ProcessIx) -> bool {
        if let Some(serves) = self.serves.get(&server) {
            return *serves;
        }
        let analysis = self.graph.analysis;
        let is_client = |thread: ThreadIx, stretch: &Stretch| {
            let by = self.waker(thread, stretch);
            let by = by.map(|by| analysis.thread(by).process);
            by.is_some_and(|by| by != server && !self.background[by])
        };
        let mut threads = analysis.process(server).threads.iter();
        let serves = threads.any(|thread| {
            let mut waits = self.graph.timeline.around_tasks(*thread);
            waits.any(|stretch| is_client(*thread, &stretch))
        });
        self.serves.insert(server, serves);
        serves
    }

    /// Whether a thread waits for the end of a child of its process.
    fn awaits_child(
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

    /// Notes what threads did that other threads depend on. Returns the threads that no other thread of the run starts.
    fn mark(&mut self) -> Vec<ThreadIx> {
        let analysis = self.graph.analysis;
        let mut first = Vec::new();
        let mut ended: Arena<ProcessIx, Option<(ThreadIx, Ktime)>> =
            analysis.process_ids().map(|_| None).collect();
        for thread in analysis.thread_ids() {
            if !self.is_own(thread) {
                continue;
            }
            let start = analysis.thread(thread).start;
            let inside = start > self.from && start <= self.to;
            let forked_by = self.graph.forked_by(thread);
            match forked_by.filter(|by| inside && self.is_own(*by)) {
                Some(by) => self.marks[by].push((start, Mark::Start(thread))),
                None if start <= self.to => first.push(thread),
                None => {}
            }
            let last_pause = self.last_pause(thread);
            for stretch in self.graph.stretches_by_threads(thread) {
                let Some(by) = self.waker(thread, &stretch) else {
                    continue;
                };
                // A signal that ends the process ends its last wait.
                let is_pause = last_pause.is_some_and(|last| stretch.from < last);
                if is_pause || self.is_beat(thread, by) {
                    continue;
                }
                let awaited = analysis.awaited(thread, &stretch);
                if self.awaits_child(thread, (by, stretch.to), awaited) {
                    let child = analysis.thread(by).process;
                    ended[child].get_or_insert((by, stretch.to));
                } else {
                    let number = self.waking(thread, by, awaited);
                    self.marks[by].push((stretch.to, Mark::Wake(number)));
                    if analysis.thread(by).process != analysis.thread(thread).process {
                        self.answers[by].push(stretch.to);
                    }
                }
            }
        }
        self.mark_children(&ended);
        for thread in analysis.thread_ids() {
            self.marks[thread].sort_unstable();
            self.answers[thread].sort_unstable();
        }
        first
    }

    /// Notes the starts and the ends of all children. If the parent waited for a child, the child ends with the
    /// waking of the parent, otherwise with its last thread.
    fn mark_children(&mut self, ended: &Arena<ProcessIx, Option<(ThreadIx, Ktime)>>) {
        let analysis = self.graph.analysis;
        for child in analysis.process_ids().filter(|ix| self.own.has(*ix)) {
            let process = analysis.process(child);
            let Some(parent) = process.parent.filter(|parent| self.own.has(*parent)) else {
                continue;
            };
            self.starts[parent].push(process.start);
            // A task may leave its CPU long after its parent knows of its end.
            let end_of = |ix: &ThreadIx| {
                let thread = analysis.thread(*ix);
                thread.exited.unwrap_or(thread.end)
            };
            let last = process
                .threads
                .iter()
                .copied()
                .max_by_key(end_of)
                .filter(|_| !process.alive)
                .map(|thread| (thread, end_of(&thread)));
            if let Some((thread, at)) = ended[child].or(last).filter(|(_, at)| *at <= self.to) {
                self.ends[parent].push(at);
                self.marks[thread].push((at, Mark::Ended(child)));
            }
        }
        for process in analysis.process_ids() {
            self.ends[process].sort_unstable();
            self.starts[process].sort_unstable();
            let ends = &self.ends[process];
            let living = self.starts[process].iter().zip(1u64..);
            let living = living.map(|(at, started)| started.saturating_sub(count(ends, *at)));
            self.at_once[process] = living.max().unwrap_or(0);
        }
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
            let ended = count(&self.ends[process], at);
            list.push(What::Children, mask, ended, at);
        } else {
            let number = self.waking(thread, by, awaited);
            list.push(What::Await, mask, number, at);
        }
    }

    /// Whether the process of a thread is a descendant of the process `process`.
    fn own_child(&self, process: ProcessIx, thread: ThreadIx) -> bool {
        let analysis = self.graph.analysis;
        let mut above = analysis.ancestors(analysis.thread(thread).process);
        above.any(|ix| ix == process)
    }

    /// Adds time of a thread that depends on no other thread to its operations, with what it did for other
    /// threads in that time. `cold` is whether another task had the CPU before.
    fn own_time(
        &self,
        list: &mut List,
        thread: ThreadIx,
        (stretch, cause): (&Stretch, Cause),
        cold: bool,
    ) {
        let (mut from, to) = (stretch.from.max(self.from), stretch.to.min(self.to));
        let process = self.graph.analysis.thread(thread).process;
        let kind = match cause {
            Cause::Own(kind) => kind,
            Cause::Thread(by) if self.is_chance(thread, by, stretch) => {
                self.graph.wait(thread, stretch, false)
            }
            // Of a thread that is no part of the run, or after its end.
            Cause::Thread(_) => Kind::Unknown,
        };
        if let Bucket::RunQueue { preempted } = stretch.doing {
            let woken = if preempted {
                0
            } else {
                to.since(from).min(WAKE_UP)
            };
            list.push(What::Delay, 0, woken, to);
            return;
        }
        let work = matches!(stretch.doing, Bucket::OnCpu(_));
        let memory = self.graph.analysis.process(process).resources.max_rss;
        let large = memory.is_some_and(|bytes| bytes > LARGE);
        let working = if large { What::Warm } else { What::Work };
        let what = if work { working } else { What::Delay };
        let hidden = (stretch.doing == Bucket::Unknown).then(|| self.hidden(thread));
        let warm = if cold && what == What::Warm {
            Ktime(stretch.from.0.saturating_add(REFILL))
        } else {
            stretch.from
        };
        let waits = matches!(stretch.doing, Bucket::Wait(_));
        if !waits {
            self.marks_until(list, thread, from);
        }
        while from < to {
            let next = list.marks.peek().map(|(at, _)| *at);
            let until = next
                .filter(|at| !waits && *at > from)
                .map_or(to, |at| at.min(to));
            let (what, until) = if from < warm {
                (What::Cold, until.min(warm))
            } else {
                (what, until)
            };
            self.groups
                .split(process, from, until, |group, from, until| {
                    let leaves_out = |change: &Change, kind| {
                        change.time.leaves_out((kind, stretch.reason), Some(group))
                    };
                    let mask = |kind| self.mask(|change| leaves_out(change, kind));
                    let ns = until.since(from);
                    let (work, rest) = hidden.map_or((0, ns), |hidden| hidden.divide(ns));
                    if work > 0 {
                        list.push(working, mask(Kind::OnCpu), work, until);
                    }
                    list.push(what, mask(kind), rest, until);
                });
            if !waits {
                self.marks_until(list, thread, until);
            }
            from = until;
        }
    }

    /// How the kernel's totals divide the time of a thread that is unknown in the timeline.
    fn hidden(&self, thread: ThreadIx) -> Hidden {
        let thread = self.graph.analysis.thread(thread);
        Hidden {
            on_cpu: thread.by_kernel.on_cpu,
            run_queue: thread.by_kernel.run_queue,
            all: thread.times_by_events().unknown,
        }
    }

    fn numbered(&self) -> impl Iterator<Item = (Changes, &Change)> {
        self.changes
            .iter()
            .zip(0..)
            .map(|(change, at)| (1 << at, change))
    }

    /// The set of the assumed changes for which `concerns` is true.
    fn mask(&self, concerns: impl Fn(&Change) -> bool) -> Changes {
        let all = self.numbered().filter(|(_, change)| concerns(change));
        all.fold(0, |mask, (bit, _)| mask | bit)
    }

    /// Adds what a thread did for other threads up to a moment to its operations.
    fn marks_until(&self, list: &mut List, thread: ThreadIx, until: Ktime) {
        while let Some((at, mark)) = list.marks.next_if(|(at, _)| *at <= until) {
            match mark {
                Mark::Wake(number) => list.push(What::Wake, 0, number, at),
                Mark::Ended(child) => {
                    self.all_jobs(list, thread, at);
                    list.push(What::Ended, 0, child.place() as u64, at);
                }
                Mark::Start(child) => {
                    self.before_start(list, thread, child, at);
                    list.push(What::Start, 0, child.place() as u64, at);
                }
            }
        }
    }

    /// Adds a wait for all jobs to the operations of a tool whose jobs are planned anew. In the recording the
    /// last jobs may have ended before the tool checked.
    fn all_jobs(&self, list: &mut List, thread: ThreadIx, at: Ktime) {
        let process = self.graph.analysis.thread(thread).process;
        let first = self.graph.analysis.process(process).threads.first();
        if first == Some(&thread) && self.plan.owns(process) {
            let ended = count(&self.ends[process], at);
            list.push(What::AtOnce, PLANNED, ended, at);
        }
    }

    /// Adds a wait before the start of a child, so that no more other children live at once than in the
    /// recording. More children may have ended by then, but only while the parent waited for a CPU.
    fn before_start(&self, list: &mut List, thread: ThreadIx, child: ThreadIx, at: Ktime) {
        let analysis = self.graph.analysis;
        let process = analysis.thread(thread).process;
        let own = analysis.thread(child).process;
        if own == process {
            return;
        }
        let started = count(&self.starts[process], at);
        let ended = count(&self.ends[process], at);
        let ended = ended.min(started.saturating_sub(self.at_once[process]));
        let mut mask = 0;
        for (bit, change) in self.numbered() {
            let inside = |jobs: &&Jobs| jobs.owner == process && at >= jobs.from && at <= jobs.to;
            let Some(jobs) = change.jobs.iter().find(inside) else {
                continue;
            };
            // Of those that have started since: this one is among them.
            let first = count(&self.starts[process], jobs.from);
            let over = (started + 1).saturating_sub(first + jobs.at_once);
            let before = count(&self.ends[process], jobs.from);
            list.push(What::AtOnce, bit, before + over, at);
            mask |= bit;
        }
        if self.plan.starts(own) {
            mask |= PLANNED;
        }
        if ended > 0 {
            list.push(What::Children, mask, ended, at);
        }
    }
}

/// How the kernel's totals of a thread's life divide its unknown time, in ns. The totals do not show when the
/// thread ran, so each part of the time is divided in the same proportion.
#[derive(Clone, Copy)]
struct Hidden {
    on_cpu: u64,
    run_queue: u64,
    all: u64,
}

impl Hidden {
    /// The CPU time in a part of the unknown time, and the time that is neither work nor a wait in a run
    /// queue, both in ns.
    fn divide(self, ns: u64) -> (u64, u64) {
        let part = |of: u64| share(ns, of, self.all).min(ns);
        let (work, queue) = (part(self.on_cpu), part(self.run_queue));
        (work, (ns - work).saturating_sub(queue))
    }
}

/// The number of moments in a sorted list that are not after `until`.
fn count(sorted: &[Ktime], until: Ktime) -> u64 {
    sorted.partition_point(|at| *at <= until) as u64
}

/// The operations of a thread so far, and what it did for other threads that is not among them yet.
struct List {
    ops: Vec<Op>,
    marks: std::iter::Peekable<std::vec::IntoIter<(Ktime, Mark)>>,
}

impl List {
    fn push(&mut self, what: What, mask: Changes, value: u64, at: Ktime) {
        let timed = what.is_timed();
        if timed && value == 0 {
            return;
        }
        match self.ops.last_mut() {
            Some(last) if timed && (last.what, last.mask) == (what, mask) => {
                last.value = last.value.saturating_add(value);
                last.at = at;
            }
            _ => self.ops.push(Op {
                what,
                mask,
                value,
                at,
            }),
        }
    }
}
