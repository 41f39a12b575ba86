//! Builds the model from the tracker that has followed all tasks through the trace: the functions sort and count the
//! processes and threads, and sum up the times in the tree of processes.

use rayon::prelude::*;
use tr_format::event::{CgroupId, Ktime, Tgid, Tid};

use crate::allowed;
use crate::arena::{Arena, Ix};
use crate::collect::network::Online;
use crate::collect::Collectors;
use crate::containers;
use crate::model::{
    Analysis, Basis, ByKernel, Causes, Process, ProcessIx, Resources, Role, Switches, Thread,
    ThreadIx, Times, Totals, Tree,
};
use crate::questions::shortage;
use crate::questions::ticks::Ticks;
use crate::servers;
use crate::tracker::{Exited, ProcIx, ProcessEntry, Task, TaskIx, Tracker};

/// The smallest number of processes or threads of the model that one thread of `tr` builds when several threads of `tr`
/// share this work. For fewer of them, starting a further thread of `tr` costs more time than it saves.
const LEAST_ITEMS: usize = 1 << 10;

/// Fills in all parts of the analysis that come from the tracker, after the tracker has seen all events of the trace.
pub fn build(mut tracker: Tracker, analysis: &mut Analysis) {
    let (start, end) = (analysis.start, analysis.end);
    analysis.machine.cpus = tracker.cpu_figures(&analysis.meta.cpus);
    analysis.machine.limited_to = allowed::limited_to(&analysis.meta, &analysis.machine.cpus);
    analysis.concurrency.times = match tracker.basis {
        Basis::Events => tracker.concurrency.finish(),
        _ => vec![0],
    };
    analysis.all_cpus_seen_from = tracker.concurrency.all_cpus_seen_from;
    let known: u64 = analysis.concurrency.times.iter().sum();
    analysis.concurrency.unknown = end.since(start).saturating_sub(known);
    let counts = tracker.counts;
    let anomalies = std::mem::take(&mut tracker.anomalies);
    analysis.quality.anomalies = anomalies.into_iter().collect();
    let collected = std::mem::take(&mut tracker.collectors);
    analysis.quality.anomalies.extend(left_out(&collected));
    let cgroups = collected.cgroups.into_iter();
    analysis.cgroups = cgroups.filter(|(id, _)| *id != CgroupId(0)).collect();

    let order = Order::new(&tracker, (start, end));
    let thread_ix = |ix: TaskIx| order.thread[ix];
    analysis.threads = order
        .threads
        .par_iter()
        .with_min_len(LEAST_ITEMS)
        .map(|(ix, process)| {
            let (task, basis) = (&tracker.tasks[*ix], tracker.basis);
            thread_of(task, *process, (end, basis), thread_ix)
        })
        .collect();
    analysis.quality.degraded = collected.degraded;
    analysis.marks = collected.marks;
    analysis.machine.counters = collected.counters;
    analysis.others.outside = collected.outside;
    analysis.disks.blocks = collected.blocks;
    let inside = |time: Ktime| time > start && time <= end;
    analysis.disks.blocks.retain(|(time, _)| inside(*time));
    analysis.stacks = collected.stacks.finish(thread_ix);
    analysis.network.lookups = collected.lookups.finish((start, end), thread_ix);
    analysis.disks.waited = collected.disks.finish(thread_ix);
    analysis.others.workers = collected.workers.finish(thread_ix);
    analysis.memory.counts_swap = collected.memory.counts_swap;
    analysis.memory.events = collected.memory.finish((start, end), thread_ix);
    analysis.network.connections = collected.connections.finish((start, end), thread_ix);
    let process = |thread: ThreadIx| analysis.thread(thread).process;
    let lookups = &analysis.network.lookups;
    let online = Online::new(&analysis.network.connections, lookups, process);
    let querying = Online::new(&[], lookups, process);
    (analysis.network.online, analysis.network.querying) = (online, querying);
    analysis.calls = collected.calls.finish(|ix| order.process(&tracker, ix));
    histories(&mut tracker, analysis, &order);
    let process = |ix| order.process(&tracker, ix);
    analysis.containers.not_recorded = collected.containers.not_recorded;
    let (runtimes, found) = (collected.containers.runtimes, collected.servers.list);
    let of: Vec<_> = runtimes
        .iter()
        .map(|runtime| process(runtime.process))
        .collect();
    let served: Vec<_> = found
        .iter()
        .map(|server| process(server.process?))
        .collect();
    analysis.processes = processes(tracker, analysis, &order);
    containers::place(analysis, runtimes.into_iter().zip(of.iter().copied()));
    servers::place(analysis, found.into_iter().zip(served));
    link(analysis);
    analysis.memory.short = shortage::short_of_memory(analysis);
    containers::link(analysis, &of);
    servers::link(analysis);
    analysis.totals = totals(analysis, counts);
    if analysis.totals.times.is_saturated() {
        let what = "times that add up to more than 584 years (the trace is damaged)";
        analysis.quality.anomalies.push((what, 1));
    }
}

/// For each limited table whose limit left something out (of TCP connections, DNS queries, system calls or stack
/// samples): the text of the message, and how much was left out.
fn left_out(collected: &Collectors) -> impl Iterator<Item = (&'static str, u64)> {
    let beyond = [
        (
            "TCP connections beyond the analysis's limit",
            collected.connections.left_out,
        ),
        (
            "DNS queries beyond the analysis's limit",
            collected.lookups.left_out,
        ),
        (
            "system calls beyond the analysis's limit",
            collected.calls.left_out,
        ),
        (
            "samples of stacks beyond the analysis's limit",
            collected.stacks.left_out,
        ),
    ];
    beyond.into_iter().filter(|(_, count)| *count > 0)
}

/// Fills in the timeline of the threads, the ticks in it ([`Ticks`]), and the samples of the threads' total times.
fn histories(tracker: &mut Tracker, analysis: &mut Analysis, order: &Order) {
    let timeline = tracker.timeline.take();
    analysis.timeline = timeline.map(|timeline| {
        let tasks = order.threads.iter().map(|(ix, _)| ix.place());
        let ends = analysis.threads.iter().map(|thread| thread.end);
        let thread_of = |place| {
            let ix = TaskIx::new(place);
            order.thread[ix].ok_or(tracker.tasks[ix].tid)
        };
        timeline.finish(tasks.zip(ends), thread_of, tracker.tasks.len())
    });
    if let Some(timeline) = &analysis.timeline {
        analysis.ticks = Ticks::of(timeline, analysis.thread_ids());
    }
    let mut samples = std::mem::take(&mut tracker.samples);
    if !samples.is_empty() {
        let threads = order.threads.iter();
        let of = threads.map(|(ix, _)| samples.remove(ix).unwrap_or_default());
        analysis.samples = of.collect();
    }
}

/// The order of the model's processes and threads. `processes` and `threads` have the tracker's indices in this order.
/// `process` and `thread` have, for each index of the tracker, the index in the model.
struct Order {
    processes: Vec<ProcIx>,
    process: Arena<ProcIx, Option<ProcessIx>>,
    threads: Vec<(TaskIx, ProcessIx)>,
    thread: Arena<TaskIx, Option<ThreadIx>>,
}

impl Order {
    /// Determines the order of the model's processes and threads. Processes are ordered by start time, then by pid,
    /// then by the order in which they appeared. The threads of each process are ordered by start time, then by tid,
    /// then by end. Tasks that lived only outside the analyzed span are not part of the model.
    fn new(tracker: &Tracker, (start, end): (Ktime, Ktime)) -> Order {
        let inside = |ix: &TaskIx| {
            let task = &tracker.tasks[*ix];
            task.start < end && task.end.is_none_or(|at| at >= start)
        };
        let ids: Vec<ProcIx> = tracker.processes.ids().collect();
        let mut sorted: Vec<(Ktime, Tgid, ProcIx)> = ids
            .into_par_iter()
            .with_min_len(LEAST_ITEMS)
            .filter(|ix| tracker.processes[*ix].threads.iter().any(inside))
            .map(|ix| {
                let process = &tracker.processes[ix];
                let starts = process.threads.iter().map(|ix| tracker.tasks[*ix].start);
                (starts.min().unwrap_or(start), process.pid, ix)
            })
            .collect();
        sorted.par_sort_unstable();
        let processes: Vec<ProcIx> = sorted.into_iter().map(|(.., ix)| ix).collect();
        let mut process = tracker.processes.map(|_| None);
        let mut threads = Vec::with_capacity(tracker.tasks.len());
        for (ix, new) in processes.iter().zip(0..) {
            process[*ix] = Some(ProcessIx(new));
            let these = tracker.processes[*ix].threads.iter();
            let mut these: Vec<TaskIx> = these.copied().filter(inside).collect();
            // Two threads can have the same tid, because an exec gives a thread the tid of the process's leader after
            // the leader has ended. So threads with equal tids are ordered by the times of their ends.
            these.sort_by_key(|ix| {
                let task = &tracker.tasks[*ix];
                (
                    task.start,
                    task.tid,
                    task.end.unwrap_or(Ktime(u64::MAX)),
                    *ix,
                )
            });
            threads.extend(these.into_iter().map(|ix| (ix, ProcessIx(new))));
        }
        let mut thread = tracker.tasks.map(|_| None);
        for ((ix, _), new) in threads.iter().zip(0..) {
            thread[*ix] = Some(ThreadIx(new));
        }
        Order {
            processes,
            process,
            threads,
            thread,
        }
    }

    /// Maps a process of the tracker to the process of the model. If the tracker has found out that two of its
    /// processes are really one, both are mapped to the same process of the model.
    fn process(&self, tracker: &Tracker, mut ix: ProcIx) -> Option<ProcessIx> {
        // The tracker can find out that one of its processes is really another one (`moved`), and that this other
        // process is really a third one. More than two such steps are not possible. The limit of four steps also ends
        // the loop if the trace is damaged.
        for _ in 0..4 {
            match tracker.processes[ix].moved {
                Some(new) => ix = new,
                None => break,
            }
        }
        self.process[ix]
    }
}

/// The processes of the model. The function frees the tables of the tracker, which need more memory than everything
/// else.
fn processes(mut tracker: Tracker, analysis: &Analysis, order: &Order) -> Vec<Process> {
    let rest: Vec<(Option<ProcessIx>, Exited)> = order
        .processes
        .par_iter()
        .with_min_len(LEAST_ITEMS)
        .map(|ix| {
            let process = &tracker.processes[*ix];
            let parent = process.parent.and_then(|ix| order.process(&tracker, ix));
            let tasks = process.threads.iter();
            (
                parent,
                exits(tasks.filter_map(|ix| tracker.tasks[*ix].exit)),
            )
        })
        .collect();
    drop(std::mem::take(&mut tracker.tasks));
    let take = |ix: &ProcIx| std::mem::take(&mut tracker.processes[*ix]);
    let entries: Vec<ProcessEntry> = order.processes.iter().map(take).collect();
    entries
        .into_par_iter()
        .with_min_len(LEAST_ITEMS)
        .zip(rest)
        .map(|(entry, (parent, exits))| process_of(entry, parent, analysis, &order.thread, exits))
        .collect()
}

fn thread_of(
    task: &Task,
    process: ProcessIx,
    (end, basis): (Ktime, Basis),
    thread_ix: impl Fn(TaskIx) -> Option<ThreadIx>,
) -> Thread {
    let alive = task.end.is_none_or(|at| at > end);
    let status = task.exit.as_ref().and_then(|exit| exit.status);
    let thread = Thread {
        tid: task.tid,
        ns_tid: task.ns_tid,
        process,
        comm: task.comm,
        start: task.start,
        started_before: task.started_before,
        end: task.end.unwrap_or(end).min(end),
        alive,
        times: task.times.times(basis),
        causes: task.causes,
        switches: task.switches,
        max_off_cpu: task.max_off_cpu,
        migrations: task.migrations,
        status: status.filter(|_| !alive),
        kernel: task.kernel.filter(|_| !alive && basis == Basis::Events),
        by_kernel: task.by_kernel,
        exited: task.exited.filter(|at| *at <= end),
        parent: task.parent.and_then(thread_ix),
    };
    debug_assert_eq!(thread.times.sum(), thread.wall(), "{thread:?}");
    thread
}

/// Adds up the figures that the kernel reports at the exits of a process's threads: page faults and I/O. Each of both
/// sums is known only if the figure is known for every thread that exited.
fn exits(exits: impl Iterator<Item = Exited>) -> Exited {
    let add = |a: (u64, u64), b: (u64, u64)| (a.0.saturating_add(b.0), a.1.saturating_add(b.1));
    let sum = exits.reduce(|sum, exit| Exited {
        status: None,
        faults: sum.faults.zip(exit.faults).map(|(a, b)| add(a, b)),
        io: sum.io.zip(exit.io).map(|(a, b)| add(a, b)),
    });
    sum.unwrap_or_default()
}

fn process_of(
    entry: ProcessEntry,
    parent: Option<ProcessIx>,
    analysis: &Analysis,
    thread: &Arena<TaskIx, Option<ThreadIx>>,
    exits: Exited,
) -> Process {
    let threads = entry.threads.iter();
    let mut ixs: Vec<ThreadIx> = threads.filter_map(|ix| thread[*ix]).collect();
    ixs.sort_unstable();
    let threads = || ixs.iter().map(|ix| analysis.thread(*ix));
    let leader = threads()
        .find(|t| t.tid.0 == entry.pid.0)
        .or(threads().next());
    let (mut times, mut causes, mut switches) =
        (Times::default(), Causes::default(), Switches::default());
    let mut by_kernel = ByKernel::default();
    for thread in threads() {
        by_kernel.add(&thread.by_kernel);
        times.add(&thread.times);
        causes.add(&thread.causes);
        switches.add(&thread.switches);
    }
    let end = threads().map(|t| t.end).max().unwrap_or(analysis.end);
    // A process with an exit status has ended, even if the last switch-out of its last thread is missing.
    let alive = entry.status.is_none() && threads().any(|t| t.alive);
    let mut execs = entry.execs;
    // The look-up of the program at a time needs the programs in the order of time. In a damaged trace, a program can
    // start before its predecessor does. Such a start is moved to the start of the predecessor.
    for at in 1..execs.len() {
        if let Some([last, next]) = execs.get_mut(at - 1..=at) {
            next.start = next.start.max(last.start);
            next.end = next.end.max(next.start);
            last.end = last.end.min(next.start);
        }
    }
    Process {
        pid: entry.pid,
        ns_pid: leader.map_or(Tid(entry.pid.0), |t| t.ns_tid),
        ppid: entry.ppid,
        parent,
        children: Vec::new(),
        comm: leader.map(|t| t.comm).unwrap_or_default(),
        argv: entry.argv,
        cgroup: entry.cgroup,
        role: Role {
            kthread: entry.kthread,
            ..Role::default()
        },
        start: threads().map(|t| t.start).min().unwrap_or(analysis.start),
        started_before: threads().any(|t| t.started_before),
        end,
        alive,
        status: entry.status,
        times,
        causes,
        by_kernel,
        resources: Resources {
            switches,
            max_off_cpu: threads().filter_map(|t| t.max_off_cpu).max(),
            max_rss: entry.max_rss,
            rss_bound: entry.rss_bound,
            faults: exits.faults,
            io: exits.io,
        },
        execs,
        tree: Tree {
            processes: 1,
            times,
            end,
        },
        threads: ixs,
    }
}

/// Breaks cycles of parents, which a damaged trace can have: in each cycle, the first process loses its parent.
/// Afterwards no process is its own ancestor. Returns the number of cycles.
fn cut_cycles(analysis: &mut Analysis) -> u64 {
    let mut cut = 0;
    // From each process, the loop below follows the parents upwards. For each process, `met` has the process from which
    // the loop started when it came here for the first time. If the loop comes to a process a second time from the same
    // start, there is a cycle.
    let mut met: Arena<ProcessIx, Option<ProcessIx>> =
        analysis.processes.iter().map(|_| None).collect();
    for first in met.ids() {
        let mut at = Some(first);
        while let Some(ix) = at.filter(|ix| met[*ix].is_none()) {
            met[ix] = Some(first);
            at = analysis.process(ix).parent;
        }
        let Some(closed) = at.filter(|ix| met[*ix] == Some(first)) else {
            continue;
        };
        let (mut earliest, mut at) = (closed, closed);
        while let Some(next) = analysis.process(at).parent.filter(|next| *next != closed) {
            earliest = earliest.min(next);
            at = next;
        }
        analysis.process_mut(earliest).parent = None;
        cut += 1;
    }
    cut
}

/// Fills in the children of each process, and adds the times and figures of each complete subtree of processes to those
/// of the parent. A subtree is complete when the subtrees of all children have been added. Going through the processes
/// from the last to the first would not do, because a parent that is older than the span may come after its child.
fn link(analysis: &mut Analysis) {
    let cycles = cut_cycles(analysis);
    if cycles > 0 {
        let what = "processes that would be their own ancestors (the trace is damaged)";
        analysis.quality.anomalies.push((what, cycles));
    }
    let parents: Arena<ProcessIx, _> = analysis.processes.iter().map(|p| p.parent).collect();
    let mut incomplete = parents.map(|_| 0);
    for parent in parents.ids().filter_map(|ix| parents[ix]) {
        incomplete[parent] += 1;
    }
    for ix in parents.ids() {
        let children = &mut analysis.process_mut(ix).children;
        children.reserve_exact(incomplete[ix]);
    }
    for ix in parents.ids() {
        if let Some(parent) = parents[ix] {
            analysis.process_mut(parent).children.push(ix);
        }
    }
    let mut complete: Vec<ProcessIx> = incomplete.ids().collect();
    complete.retain(|ix| incomplete[*ix] == 0);
    while let Some(ix) = complete.pop() {
        let Some(parent) = parents[ix] else { continue };
        let tree = analysis.process(ix).tree;
        let sum = &mut analysis.process_mut(parent).tree;
        sum.processes += tree.processes;
        sum.times.add(&tree.times);
        sum.end = sum.end.max(tree.end);
        incomplete[parent] -= 1;
        if incomplete[parent] == 0 {
            complete.push(parent);
        }
    }
}

fn totals(analysis: &Analysis, [forks, execs, exits]: [u64; 3]) -> Totals {
    let (mut times, mut causes) = (Times::default(), Causes::default());
    for process in &analysis.processes {
        times.add(&process.times);
        causes.add(&process.causes);
    }
    Totals {
        processes: analysis.processes.len() as u64,
        threads: analysis.threads.len() as u64,
        execs,
        forks,
        exits,
        times,
        causes,
    }
}
