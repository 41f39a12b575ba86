//! Containers in the model: their clients, and the links between the waits of a client for a daemon and the work of the
//! containers that the daemon started for the client.
//!
//! The daemon is not recorded, so no waking leads from a client to its container or back. Two rules replace such
//! wakings. A container begins during a wait of its client for the daemon. If the first process of the container ends
//! during a wait of the client, the client waited for that end.

use std::collections::HashMap;
use std::sync::Arc;

use tr_format::container::Evidence;
use tr_format::event::{Ktime, Reason, Tgid};

use crate::collect::containers::Runtime;
use crate::model::{Analysis, ProcessIx, ThreadIx};
use crate::timeline::{Actor, Bucket, Stretch, Timeline};
use tr_programs::table;
use tr_programs::tools::Family;

/// The id, the name and the image of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Called {
    /// The id of the container; empty if it is unknown. The name and the image are unknown then, too.
    pub id: Arc<[u8]>,
    pub name: Arc<[u8]>,
    pub image: Arc<[u8]>,
    /// Whether the client is only inferred, because no daemon has named the client. The container may then belong to
    /// another client.
    pub inferred: bool,
}

/// A container with recorded processes, in the model.
#[derive(Clone, Debug)]
pub struct Container {
    /// The id, the name and the image of the container.
    pub called: Arc<Called>,
    /// The reason why the processes of the container are recorded.
    pub evidence: Evidence,
    /// The process that requested the container from a daemon, if it is known and recorded.
    pub client: Option<ProcessIx>,
    /// The first recorded process of the container's runtime. All other processes of the container are descendants of
    /// this process.
    pub process: ProcessIx,
    /// The main process of the container, which is mostly the one with the pid 1 inside; see `main_of`.
    pub main: Option<ProcessIx>,
    /// The time in ns for which a quota of the container's cgroup throttled the container, summed over all CPUs; `None`
    /// if this time is unknown.
    pub throttled: Option<u64>,
}

pub(crate) struct ByPid(HashMap<Tgid, Vec<ProcessIx>>);

impl ByPid {
    pub fn new(analysis: &Analysis) -> ByPid {
        let mut all: HashMap<Tgid, Vec<ProcessIx>> = HashMap::new();
        for ix in analysis.process_ids() {
            all.entry(analysis.process(ix).pid).or_default().push(ix);
        }
        ByPid(all)
    }

    /// Finds the process of the model that is the client of the process `of`. The client had the pid `pid` when `of`
    /// started.
    pub fn client(&self, analysis: &Analysis, pid: Tgid, of: ProcessIx) -> Option<ProcessIx> {
        let start = analysis.process(of).start;
        let lived = |ix: &ProcessIx| {
            let client = analysis.process(*ix);
            *ix != of && client.start <= start && start <= client.end
        };
        self.0.get(&pid)?.iter().copied().rfind(lived)
    }
}

/// Fills in [`Analysis::containers`], and the parents of runtimes that are not descendants of recorded processes.
/// The function has to be called before times are added up over the tree of processes, because it changes the tree.
pub(crate) fn place(
    analysis: &mut Analysis,
    runtimes: impl ExactSizeIterator<Item = (Runtime, Option<ProcessIx>)>,
) {
    if runtimes.len() == 0 {
        return;
    }
    let by_pid = ByPid::new(analysis);
    let mut by_id: HashMap<Arc<[u8]>, usize> = HashMap::new();
    for (Runtime { container, .. }, process) in runtimes {
        let Some(process) = process else { continue };
        let client = Some(container.client).filter(|client| client.0 != 0);
        let client = client.and_then(|pid| by_pid.client(analysis, pid, process));
        let adopted = container.evidence != Evidence::Descendant;
        if container.id.is_empty() {
            // Without a container id, this process cannot be matched with a container. If no recorded process started
            // it, it becomes a child of the client, like a program that the client started.
            if adopted {
                analysis.process_mut(process).parent = client;
            }
            continue;
        }
        let known = by_id.get(&container.id).copied();
        let first = known.and_then(|at| analysis.containers.list.get_mut(at));
        let Some(first) = first else {
            by_id.insert(Arc::clone(&container.id), analysis.containers.list.len());
            let (id, name, image) = (container.id, container.name, container.image);
            analysis.containers.list.push(Container {
                called: Arc::new(Called {
                    id,
                    name,
                    image,
                    inferred: container.evidence.is_inferred(),
                }),
                evidence: container.evidence,
                client,
                process,
                main: None,
                throttled: container.throttled,
            });
            if adopted {
                analysis.process_mut(process).parent = client;
            }
            continue;
        };
        let called = Arc::make_mut(&mut first.called);
        for (text, new) in [
            (&mut called.name, container.name),
            (&mut called.image, container.image),
        ] {
            if text.is_empty() {
                *text = new;
            }
        }
        // The container already has a first runtime process. If no recorded process started `process`, it becomes a
        // child of that first one.
        let parent = Some(first.process).filter(|_| adopted);
        if let Some(parent) = parent.filter(|parent| *parent != process) {
            analysis.process_mut(process).parent = Some(parent);
        }
    }
    for container in analysis.containers.list.clone() {
        analysis.process_mut(container.process).role.container = Some(container.called);
    }
}

/// Finds the main process of each container, and splits the wait of the container's client in two where the
/// container begins, and where it ends. `runtimes` has the processes of the runtimes. The function has to be called
/// after times are added up over the tree of processes.
pub(crate) fn link(analysis: &mut Analysis, runtimes: &[Option<ProcessIx>]) {
    let mut containers = std::mem::take(&mut analysis.containers.list);
    for container in &mut containers {
        container.main = main_of(analysis, container.process, runtimes);
    }
    let timeline = analysis.timeline.take();
    if let Some(mut timeline) = timeline {
        for container in &containers {
            link_one(analysis, &mut timeline, container);
        }
        analysis.timeline = Some(timeline);
    }
    analysis.containers.list = containers;
}

/// The main process of a container: the first descendant of the runtime's process that has the pid 1 in its own pid
/// namespace. If there is none, the first one that executed several programs, among them the runtime's `init`, is
/// taken. If there is no such descendant either, the first one that is not a process of a runtime is taken.
fn main_of(
    analysis: &Analysis,
    runtime: ProcessIx,
    runtimes: &[Option<ProcessIx>],
) -> Option<ProcessIx> {
    let mut below = analysis.below(runtime);
    below.sort_unstable();
    let inside = |ix: &ProcessIx| analysis.process(*ix).ns_pid.0 == 1;
    let is_init = |argv: &tr_format::event::Argv| argv.args().nth(1) == Some(b"init");
    let executes = |ix: &ProcessIx| {
        let execs = &analysis.process(*ix).execs;
        execs.len() > 1 && execs.iter().any(|exec| is_init(&exec.argv))
    };
    let other = |ix: &ProcessIx| {
        let execs = &analysis.process(*ix).execs;
        !runtimes.contains(&Some(*ix)) && execs.last().is_some_and(|exec| !is_init(&exec.argv))
    };
    let find = |is: &dyn Fn(&ProcessIx) -> bool| below.iter().copied().find(is);
    find(&inside)
        .or_else(|| find(&executes))
        .or_else(|| find(&other))
}

fn link_one(analysis: &mut Analysis, timeline: &mut Timeline, container: &Container) {
    let Some(client) = container.client else {
        return link_polls(analysis, timeline, container);
    };
    let begin = analysis.process(container.process).start;
    let end = container.main.and_then(|main| end_of(analysis, main));
    // The end of the container is handled before its beginning, because both may be in the same wait of the client.
    // All threads of the client that wait at the end are treated as waiting for the container, because any of them
    // may be the one that goes on.
    if let Some((last, at)) = end {
        for (waiter, _) in waiters(analysis, timeline, client, at) {
            timeline.divide(waiter, at, Actor::Thread(last));
        }
    }
    if let Some((waiter, wait)) = first_waiter(analysis, timeline, client, begin) {
        let actor = match wait.waker() {
            by @ Actor::Outside(_) => by,
            by => daemon(analysis, timeline, client, begin).unwrap_or(by),
        };
        timeline.divide(waiter, begin, actor);
        let first = analysis.process(container.process).threads.first().copied();
        if let Some(thread) = first.and_then(|ix| analysis.threads.get_mut(ix.0 as usize)) {
            thread.parent = Some(waiter);
        }
    }
    if let Some((_, end)) = end {
        let outside = |by| matches!(by, Actor::Outside(_));
        end_waits(analysis, timeline, container, ((begin, end), outside));
    }
}

/// Attributes sleeps of container programs that poll (such as `docker`) to the end of the container that they wait for.
/// Such a program is an ancestor of the container's runtime. It may query again and again whether the container has
/// ended, and sleep in between. The sleep during which the container ends counts as a wait for this end. If the program
/// was not asleep when the container ended, because it waited for a CPU or queried at that moment, the sleep before
/// counts.
fn link_polls(analysis: &Analysis, timeline: &mut Timeline, container: &Container) {
    let Some((last, at)) = container.main.and_then(|main| end_of(analysis, main)) else {
        return;
    };
    let begin = analysis.process(container.process).start;
    for process in askers(analysis, container) {
        for thread in &analysis.process(process).threads {
            let Some((number, sleep)) = last_sleep(timeline, *thread, begin, at) else {
                continue;
            };
            if sleep.to > at {
                timeline.divide(*thread, at, Actor::Thread(last));
            } else {
                timeline.end_by(*thread, number, Actor::Thread(last));
            }
        }
    }
    let timer = |by: Actor| by.is_timer();
    end_waits(analysis, timeline, container, ((begin, at), timer));
}

/// The largest number of stretches that are searched backwards from the end of a container to find a thread's last
/// sleep before it. The thread may have been running or waiting for a CPU at that end.
const QUERY: usize = 64;

/// The sleep of a thread during which a container ended, and the number of this sleep among the stretches of the
/// thread's timeline. If the thread was on a CPU or waited for one when the container ended, the thread's last sleep
/// before that moment is taken. `None` if no timer ended this sleep. The container lived from `begin` to `end`.
fn last_sleep(
    timeline: &Timeline,
    thread: ThreadIx,
    begin: Ktime,
    end: Ktime,
) -> Option<(usize, Stretch)> {
    let around = timeline.at(thread, end)?;
    let numbers = (0..=around).rev().take(QUERY);
    let mut stretches = numbers.filter_map(|number| Some((number, timeline.get(thread, number)?)));
    let runs = |doing| matches!(doing, Bucket::OnCpu(_) | Bucket::RunQueue { .. });
    let (number, sleep) = stretches.find(|(_, stretch)| !runs(stretch.doing))?;
    let sleeps = matches!(sleep.doing, Bucket::Wait(_)) && sleep.waker().is_timer();
    (sleeps && sleep.to > begin).then_some((number, sleep))
}

/// Attributes the ends of certain waits to the container that the waiting processes wait for: a task of the container
/// counts as the task that ended the wait, in place of the recorded waker. Only waits are changed that end during
/// `lives`, and for whose recorded waker the function `others` returns true.
fn end_waits(
    analysis: &Analysis,
    timeline: &mut Timeline,
    container: &Container,
    (lives, others): ((Ktime, Ktime), fn(Actor) -> bool),
) {
    let Some(main) = container.main else { return };
    let active = Active::of(analysis, timeline, main);
    let client = container.client.into_iter();
    let polls = askers(analysis, container).filter(|_| container.client.is_none());
    for process in client.chain(polls) {
        for thread in &analysis.process(process).threads {
            active.end_waits(timeline, *thread, (lives, others));
        }
    }
}

/// The container programs (`docker`, `podman`) that wait for a container: the client and its ancestors, up to the first
/// ancestor that is no container program. If the client is not known, the search begins at the parent of the runtime's
/// first process.
fn askers<'a>(
    analysis: &'a Analysis,
    container: &Container,
) -> impl Iterator<Item = ProcessIx> + 'a {
    let above = |ix: &ProcessIx| analysis.process(*ix).parent;
    let first = container.client.or_else(|| above(&container.process));
    std::iter::successors(first, above).take_while(|ix| {
        let process = analysis.process(*ix);
        let called = process
            .execs
            .last()
            .and_then(|exec| exec.argv.args().next());
        let mut known = process
            .tool()
            .into_iter()
            .chain(called.and_then(table::by_path));
        known.any(|tool| tool.family == Family::Container)
    })
}

/// For each process of a container program, the beginnings and ends of the containers that it waited for.
pub(crate) struct WaitedFor(HashMap<ProcessIx, Vec<(Ktime, Ktime)>>);

impl WaitedFor {
    pub fn of(analysis: &Analysis) -> WaitedFor {
        let mut all: HashMap<ProcessIx, Vec<(Ktime, Ktime)>> = HashMap::new();
        for container in &analysis.containers.list {
            let Some((_, end)) = container.main.and_then(|main| end_of(analysis, main)) else {
                continue;
            };
            let begin = analysis.process(container.process).start;
            for process in askers(analysis, container) {
                all.entry(process).or_default().push((begin, end));
            }
        }
        WaitedFor(all)
    }

    /// Whether a wait is part of a container program's waiting for a container: the whole wait is within the life of
    /// the container, and a timer or an unrecorded task, such as the daemon, ended the wait.
    pub fn has(&self, analysis: &Analysis, thread: ThreadIx, wait: &Stretch) -> bool {
        let lives = self.0.get(&analysis.thread(thread).process);
        let others = matches!(wait.waker(), Actor::Outside(_)) || wait.waker().is_timer();
        let within = |(begin, end): &(Ktime, Ktime)| *begin <= wait.from && wait.to <= *end;
        others && lives.is_some_and(|lives| lives.iter().any(within))
    }
}

/// The thread of a client that waited for the container daemon at a time and was the first one to go on, with its wait.
/// If no thread seems to wait for the daemon, it is the thread that began to wait last: in Go programs, other threads
/// wait for locks and timers in place of the thread that waits for the daemon.
pub(crate) fn first_waiter(
    analysis: &Analysis,
    timeline: &Timeline,
    client: ProcessIx,
    at: Ktime,
) -> Option<(ThreadIx, Stretch)> {
    let waits = waiters(analysis, timeline, client, at);
    let first = waits.into_iter().min_by_key(|(_, wait)| wait.to);
    first.or_else(|| waiting(analysis, timeline, client, at).max_by_key(|(_, wait)| wait.from))
}

/// The times in which tasks of a container ran or waited for a CPU, in the order of their ends. Each entry has the
/// end, the beginning and the task.
struct Active(Vec<(Ktime, Ktime, ThreadIx)>);

/// The largest number of entries of [`Active`] that are checked to find a task that ran at a given time.
const AT_ONCE: usize = 64;

impl Active {
    fn of(analysis: &Analysis, timeline: &Timeline, main: ProcessIx) -> Active {
        let mut all: Vec<(Ktime, Ktime, ThreadIx)> = Vec::new();
        for process in analysis.below(main) {
            for thread in &analysis.process(process).threads {
                let before = all.len();
                for stretch in timeline.of(*thread) {
                    if !matches!(stretch.doing, Bucket::OnCpu(_) | Bucket::RunQueue { .. }) {
                        continue;
                    }
                    let own = all.get_mut(before..).and_then(<[_]>::last_mut);
                    match own.filter(|(until, ..)| *until == stretch.from) {
                        Some(last) => last.0 = stretch.to,
                        None => all.push((stretch.to, stretch.from, *thread)),
                    }
                }
            }
        }
        all.sort_unstable();
        Active(all)
    }

    /// Attributes the ends of certain waits of a thread to the container: a task of the container counts as the task
    /// that ended the wait, in place of the recorded waker. The task of the container that ran when the wait ended is
    /// taken or, if none ran then, the last one that ran during the wait. Only waits are changed that end from `begin`
    /// to `end`, and for whose recorded waker the function `others` returns true. Mostly that waker was the daemon,
    /// which passed on output of the container.
    fn end_waits(
        &self,
        timeline: &mut Timeline,
        thread: ThreadIx,
        ((begin, end), others): ((Ktime, Ktime), fn(Actor) -> bool),
    ) {
        let first = timeline.at(thread, begin).unwrap_or(0);
        let last = timeline.at(thread, end).unwrap_or(0);
        // The last wait is handled first, because splitting a wait changes the numbers of all stretches after it.
        for number in (first..=last).rev() {
            let Some(wait) = timeline.get(thread, number) else {
                continue;
            };
            let waits = matches!(wait.doing, Bucket::Wait(_)) && others(wait.waker());
            if !waits || wait.to <= begin || wait.to > end {
                continue;
            }
            let next = self.0.partition_point(|(until, ..)| *until < wait.to);
            let mut running = self.0.iter().skip(next).take(AT_ONCE);
            if let Some((_, _, worker)) = running.find(|(_, from, _)| *from < wait.to) {
                timeline.end_by(thread, number, Actor::Thread(*worker));
                continue;
            }
            let before = next.checked_sub(1).and_then(|at| self.0.get(at));
            if let Some((until, _, worker)) = before.filter(|(until, ..)| *until > wait.from) {
                timeline.divide(thread, *until, Actor::Thread(*worker));
            }
        }
    }
}

/// The daemon's task that started a container. The unrecorded task that ended the client's next wait after the time
/// `after` is taken for this task.
fn daemon(
    analysis: &Analysis,
    timeline: &Timeline,
    client: ProcessIx,
    after: Ktime,
) -> Option<Actor> {
    let threads = analysis.process(client).threads.iter().copied();
    let ended = threads.filter_map(|thread| {
        let stretches = timeline.since(thread, after);
        let mut waits = stretches.filter(|wait| matches!(wait.doing, Bucket::Wait(_)));
        waits.find(|wait| wait.to > after && matches!(wait.waker(), Actor::Outside(_)))
    });
    ended.min_by_key(|wait| wait.to).map(|wait| wait.waker())
}

/// The last thread of a process, and the time at which this thread ended; `None` if the process was still alive at the
/// end of the analyzed span.
fn end_of(analysis: &Analysis, process: ProcessIx) -> Option<(ThreadIx, Ktime)> {
    let process = analysis.process(process);
    let threads = process.threads.iter().copied();
    let last = threads.max_by_key(|ix| analysis.thread(*ix).end)?;
    (!process.alive).then_some((last, analysis.thread(last).end))
}

/// The threads of a process that waited at the time `at`, each with its wait.
fn waiting<'a>(
    analysis: &'a Analysis,
    timeline: &'a Timeline,
    process: ProcessIx,
    at: Ktime,
) -> impl Iterator<Item = (ThreadIx, Stretch)> + 'a {
    let threads = analysis.process(process).threads.iter().copied();
    threads.filter_map(move |thread| {
        let stretch = timeline.around(thread, at)?;
        let waits = matches!(stretch.doing, Bucket::Wait(_));
        (waits && stretch.from < at && at < stretch.to).then_some((thread, stretch))
    })
}

/// The threads of a client that waited for the container daemon at a time, with their waits. These are the waits
/// that an unrecorded task ended or, if there is no such wait, the waits for a descriptor.
fn waiters(
    analysis: &Analysis,
    timeline: &Timeline,
    client: ProcessIx,
    at: Ktime,
) -> Vec<(ThreadIx, Stretch)> {
    let waits = waiting(analysis, timeline, client, at);
    let outside = |wait: &Stretch| matches!(wait.waker(), Actor::Outside(_));
    let polls = |wait: &Stretch| {
        matches!(
            wait.reason,
            Reason::Poll | Reason::SocketRead | Reason::SocketWrite
        )
    };
    let (by_outsiders, mut rest): (Vec<_>, Vec<_>) = waits.partition(|(_, wait)| outside(wait));
    if !by_outsiders.is_empty() {
        return by_outsiders;
    }
    rest.retain(|(_, wait)| polls(wait));
    rest
}
