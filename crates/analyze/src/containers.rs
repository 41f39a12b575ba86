//! Containers in the model: whose they are, and the links between a client's waits for a daemon
//! and the work of the containers that the daemon started for it.
//!
//! The daemon is not recorded, so no waking leads from a client to its container or back. Two
//! moments stand for them: a container begins in a wait of its client for the daemon, and in the
//! wait in which the container's first process has ended, the client waited for that end.

use std::collections::HashMap;
use std::sync::Arc;

use tr_format::container::Evidence;
use tr_format::event::{Ktime, Reason, Tgid};

use crate::collect::containers::Runtime;
use crate::model::{Analysis, ProcessIx, ThreadIx};
use crate::timeline::{Actor, Bucket, Stretch, Timeline};
use crate::tools::{self, Family};

/// What a container is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Called {
    /// Its id; empty: unknown, as are the next ones.
    pub id: Arc<[u8]>,
    pub name: Arc<[u8]>,
    pub image: Arc<[u8]>,
    /// Nobody has told whose it is: it may be another client's.
    pub inferred: bool,
}

/// A container of which processes are recorded.
#[derive(Clone, Debug)]
pub struct Container {
    /// What it is called.
    pub called: Arc<Called>,
    /// Why its processes are recorded.
    pub evidence: Evidence,
    /// The process that asked a daemon for it, if one did.
    pub client: Option<ProcessIx>,
    /// Its runtime's first recorded process. All others of the container are below it.
    pub process: ProcessIx,
    /// Its first process: the one with pid 1 inside.
    pub main: Option<ProcessIx>,
    /// The time in which a quota of its cgroup throttled it, in ns, all CPUs together; `None`:
    /// unknown.
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

    /// The client of a process: the one of that id that lived at the process's start.
    pub fn client(&self, analysis: &Analysis, pid: Tgid, of: ProcessIx) -> Option<ProcessIx> {
        let start = analysis.process(of).start;
        let lived = |ix: &ProcessIx| {
            let client = analysis.process(*ix);
            *ix != of && client.start <= start && start <= client.end
        };
        self.0.get(&pid)?.iter().copied().rfind(lived)
    }
}

/// Fills in [`Analysis::containers`], and the parents of those that are no descendants of recorded
/// processes. Comes before the tree is summed up.
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
            // It tells no id, and is its client's program like others.
            if adopted {
                analysis.process_mut(process).parent = client;
            }
            continue;
        }
        let known = by_id.get(&container.id).copied();
        let first = known.and_then(|at| analysis.containers.get_mut(at));
        let Some(first) = first else {
            by_id.insert(Arc::clone(&container.id), analysis.containers.len());
            let (id, name, image) = (container.id, container.name, container.image);
            analysis.containers.push(Container {
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
        // A further program of the same container's runtime.
        let parent = Some(first.process).filter(|_| adopted);
        if let Some(parent) = parent.filter(|parent| *parent != process) {
            analysis.process_mut(process).parent = Some(parent);
        }
    }
    for container in analysis.containers.clone() {
        analysis.process_mut(container.process).container = Some(container.called);
    }
}

/// Finds the containers' first processes, and divides their clients' waits where they begin and
/// end. `runtimes`: the processes of their runtimes. Comes after the tree.
pub(crate) fn link(analysis: &mut Analysis, runtimes: &[Option<ProcessIx>]) {
    let mut containers = std::mem::take(&mut analysis.containers);
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
    analysis.containers = containers;
}

/// The first process below a runtime's whose pid is 1 in its own pid namespace. If the container has
/// none: the first that has executed a program after the runtime's, or one that is no runtime's.
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
    // The end first: both may be in one wait. Any of the client's threads may be the one that goes on.
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

/// A container program that the runtime is a descendant of may ask again and again whether the
/// container has ended: the sleep in which it ends is a wait for that.
fn link_polls(analysis: &Analysis, timeline: &mut Timeline, container: &Container) {
    let Some((last, at)) = container.main.and_then(|main| end_of(analysis, main)) else {
        return;
    };
    for process in askers(analysis, container) {
        for thread in &analysis.process(process).threads {
            let stretch = timeline.around(*thread, at);
            let sleeps =
                |it: Stretch| matches!(it.doing, Bucket::Wait(_)) && it.waker() == Actor::Interrupt;
            if stretch.is_some_and(sleeps) {
                timeline.divide(*thread, at, Actor::Thread(last));
            }
        }
    }
    let lives = (analysis.process(container.process).start, at);
    let timer = |by| by == Actor::Interrupt;
    end_waits(analysis, timeline, container, (lives, timer));
}

/// Links the waits of the processes that wait for a container, and that others ended while it lived, to
/// what ran in it then.
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

/// The container programs (`docker`, `podman`) that wait for a container: its client, or the one that
/// its runtime comes from, and those above.
fn askers<'a>(
    analysis: &'a Analysis,
    container: &Container,
) -> impl Iterator<Item = ProcessIx> + 'a {
    let above = |ix: &ProcessIx| analysis.process(*ix).parent;
    let first = container.client.or_else(|| above(&container.process));
    std::iter::successors(first, above).take_while(|ix| {
        let process = analysis.process(*ix);
        let called = process.execs.last().and_then(|it| it.argv.args().next());
        let mut known = process
            .tool()
            .into_iter()
            .chain(called.and_then(tools::by_path));
        known.any(|tool| tool.family == Family::Container)
    })
}

/// The lives of the containers that container programs wait for, by these.
pub(crate) struct WaitedFor(HashMap<ProcessIx, Vec<(Ktime, Ktime)>>);

impl WaitedFor {
    pub fn of(analysis: &Analysis) -> WaitedFor {
        let mut all: HashMap<ProcessIx, Vec<(Ktime, Ktime)>> = HashMap::new();
        for container in &analysis.containers {
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

    /// Whether a wait is part of one for a container, by whose end another one ends: a timer, or the
    /// daemon, ended it while the container lived.
    pub fn has(&self, analysis: &Analysis, thread: ThreadIx, wait: &Stretch) -> bool {
        let lives = self.0.get(&analysis.thread(thread).process);
        let others = matches!(wait.waker(), Actor::Outside(_) | Actor::Interrupt);
        let within = |(begin, end): &(Ktime, Ktime)| *begin <= wait.from && wait.to <= *end;
        others && lives.is_some_and(|lives| lives.iter().any(within))
    }
}

/// The thread of a client that waited at a time and goes on first, and its wait. If none waits for somebody else,
/// it is the one that ran last: Go's threads wait for locks and timers in the place of what waits for the daemon.
pub(crate) fn first_waiter(
    analysis: &Analysis,
    timeline: &Timeline,
    client: ProcessIx,
    at: Ktime,
) -> Option<(ThreadIx, Stretch)> {
    let waits = waiters(analysis, timeline, client, at);
    let first = waits.into_iter().min_by_key(|it| it.1.to);
    first.or_else(|| waiting(analysis, timeline, client, at).max_by_key(|it| it.1.from))
}

/// The times in which the tasks of a container ran, or waited for a CPU, by their ends.
struct Active(Vec<(Ktime, Ktime, ThreadIx)>);

/// The most tasks that run at a time and are looked at.
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
                    match own.filter(|it| it.0 == stretch.from) {
                        Some(last) => last.0 = stretch.to,
                        None => all.push((stretch.to, stretch.from, *thread)),
                    }
                }
            }
        }
        all.sort_unstable();
        Active(all)
    }

    /// The daemon ends a wait of its client while the container lives, mostly with the container's
    /// output: what ran in the container then had led to that. If none ran, as while the exit of a shell
    /// waits, it is the one that had run last.
    fn end_waits(
        &self,
        timeline: &mut Timeline,
        thread: ThreadIx,
        ((begin, end), others): ((Ktime, Ktime), fn(Actor) -> bool),
    ) {
        let first = timeline.at(thread, begin).unwrap_or(0);
        let last = timeline.at(thread, end).unwrap_or(0);
        // From the last one on: a division gives those behind it other numbers.
        for number in (first..=last).rev() {
            let Some(wait) = timeline.get(thread, number) else {
                continue;
            };
            let waits = matches!(wait.doing, Bucket::Wait(_)) && others(wait.waker());
            if !waits || wait.to <= begin || wait.to > end {
                continue;
            }
            let next = self.0.partition_point(|it| it.0 < wait.to);
            let mut running = self.0.iter().skip(next).take(AT_ONCE);
            if let Some((_, _, worker)) = running.find(|it| it.1 < wait.to) {
                timeline.end_by(thread, number, Actor::Thread(*worker));
                continue;
            }
            let before = next.checked_sub(1).and_then(|at| self.0.get(at));
            if let Some((until, _, worker)) = before.filter(|it| it.0 > wait.from) {
                timeline.divide(thread, *until, Actor::Thread(*worker));
            }
        }
    }
}

/// The task that is not recorded and ends a wait of the client as the next one: the daemon's.
fn daemon(
    analysis: &Analysis,
    timeline: &Timeline,
    client: ProcessIx,
    after: Ktime,
) -> Option<Actor> {
    let threads = analysis.process(client).threads.iter().copied();
    let ended = threads.filter_map(|thread| {
        let stretches = timeline.since(thread, after);
        let mut waits = stretches.filter(|it| matches!(it.doing, Bucket::Wait(_)));
        waits.find(|it| it.to > after && matches!(it.waker(), Actor::Outside(_)))
    });
    ended.min_by_key(|it| it.to).map(|it| it.waker())
}

/// The last thread of a process that has ended, and its end.
fn end_of(analysis: &Analysis, process: ProcessIx) -> Option<(ThreadIx, Ktime)> {
    let process = analysis.process(process);
    let threads = process.threads.iter().copied();
    let last = threads.max_by_key(|ix| analysis.thread(*ix).end)?;
    (!process.alive).then_some((last, analysis.thread(last).end))
}

/// The threads of a process that waited at a time, and their waits.
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

/// The threads of a client that waited for the daemon at a time, and their waits: those that a task
/// which is not recorded ended. If there is none: those that waited for a descriptor.
fn waiters(
    analysis: &Analysis,
    timeline: &Timeline,
    client: ProcessIx,
    at: Ktime,
) -> Vec<(ThreadIx, Stretch)> {
    let waits = waiting(analysis, timeline, client, at);
    let outside = |it: &Stretch| matches!(it.waker(), Actor::Outside(_));
    let polls = |it: &Stretch| {
        matches!(
            it.reason,
            Reason::Poll | Reason::SocketRead | Reason::SocketWrite
        )
    };
    let (told, mut rest): (Vec<_>, Vec<_>) = waits.partition(|it| outside(&it.1));
    if !told.is_empty() {
        return told;
    }
    rest.retain(|it| polls(&it.1));
    rest
}
