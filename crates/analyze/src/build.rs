//! From the closed tracker to the model: sorted, counted, the tree summed up.

use rayon::prelude::*;
use tr_format::event::{CgroupId, Ktime, Tgid, Tid};

use crate::model::{
    Analysis, Causes, OffCpu, Process, ProcessIx, Switches, Thread, ThreadIx, Times, Totals, Tree,
};
use crate::tracker::{Exited, ProcessEntry, Task, TaskIx, Tracker};

/// So few processes or threads are not worth being shared by several threads.
const FEW: usize = 1 << 10;

/// Fills in everything that comes from the tracker.
pub fn build(mut tracker: Tracker, analysis: &mut Analysis) {
    let (start, end) = (analysis.start, analysis.end);
    analysis.cpus = tracker.cpu_figures(&analysis.meta.cpus);
    analysis.concurrency = tracker.concurrency.finish();
    let known: u64 = analysis.concurrency.iter().sum();
    analysis.concurrency_unknown = end.since(start).saturating_sub(known);
    analysis.quality.anomalies = tracker.anomalies.into_iter().collect();
    let [forks, execs, exits] = tracker.counts;

    // Tasks that lived only outside the span are not part of it.
    let inside = |task: &Task| task.start < end && task.end.is_none_or(|at| at >= start);
    // The order of the output: by start, then pid, then order of appearance.
    let tasks = |process| tasks_of(&tracker.tasks, process);
    let mut order: Vec<(Ktime, Tgid, usize)> = tracker
        .processes
        .par_iter()
        .with_min_len(FEW)
        .enumerate()
        .filter(|(_, process)| tasks(process).any(inside))
        .map(|(at, process)| {
            let begin = tasks(process).map(|task| task.start).min();
            (begin.unwrap_or(start), process.pid, at)
        })
        .collect();
    order.par_sort_unstable();
    let mut place = vec![None; tracker.processes.len()];
    for ((.., old), new) in order.iter().zip(0..) {
        if let Some(slot) = place.get_mut(*old) {
            *slot = Some(ProcessIx(new));
        }
    }
    let process_ix = |mut old: usize| {
        // A process is moved once, or twice when its events come before it is
        // listed.
        for _ in 0..4 {
            match tracker.processes.get(old).and_then(|p| p.moved) {
                Some(new) => old = new,
                None => break,
            }
        }
        place.get(old).copied().flatten()
    };

    let mut thread_order: Vec<(TaskIx, &Task, ProcessIx)> = Vec::with_capacity(tracker.tasks.len());
    for ((.., old), new) in order.iter().zip(0..) {
        let first = thread_order.len();
        let threads = tracker
            .processes
            .get(*old)
            .into_iter()
            .flat_map(|p| &p.threads);
        let threads =
            threads.filter_map(|ix| Some((*ix, tracker.tasks.get(ix.0)?, ProcessIx(new))));
        thread_order.extend(threads.filter(|(_, task, _)| inside(task)));
        let these = thread_order.get_mut(first..).unwrap_or_default();
        // An exec gives a thread the tid of its leader, which has ended before.
        these.sort_by_key(|(ix, task, _)| {
            let end = task.end.unwrap_or(Ktime(u64::MAX));
            (task.start, task.tid, end, *ix)
        });
    }
    let mut thread_place = vec![None; tracker.tasks.len()];
    for ((old, ..), new) in thread_order.iter().zip(0..) {
        if let Some(slot) = thread_place.get_mut(old.0) {
            *slot = Some(ThreadIx(new));
        }
    }
    let thread_ix = |old: TaskIx| thread_place.get(old.0).copied().flatten();
    analysis.threads = thread_order
        .par_iter()
        .with_min_len(FEW)
        .map(|(_, task, process)| thread_of(task, *process, end, thread_ix))
        .collect();
    analysis.timeline = tracker.timeline.take().map(|timeline| {
        let tasks = thread_order.iter().map(|(task, ..)| task.0);
        let ends = analysis.threads.iter().map(|thread| thread.end);
        timeline.finish(tasks.zip(ends), |at| {
            let place = thread_place.get(at).copied().flatten();
            place.ok_or_else(|| tracker.tasks.get(at).map_or(Tid(0), |task| task.tid))
        })
    });

    // The tasks take more memory than all else; only this is needed of them.
    let rest: Vec<(Option<ProcessIx>, Exits)> = order
        .par_iter()
        .with_min_len(FEW)
        .map(|(.., old)| {
            let process = tracker.processes.get(*old);
            let parent = process
                .and_then(|process| process.parent)
                .and_then(process_ix);
            let exits = process.into_iter().flat_map(tasks);
            (
                parent,
                Exits::of(exits.filter_map(|task| task.exit.as_ref())),
            )
        })
        .collect();
    drop(thread_order);
    drop(tracker.tasks);
    let mut entries: Vec<_> = tracker.processes.iter_mut().map(Some).collect();
    let entry = |(.., old): &(Ktime, Tgid, usize)| entries.get_mut(*old).and_then(Option::take);
    let entries: Vec<&mut ProcessEntry> = order.iter().filter_map(entry).collect();
    let view: &Analysis = analysis;
    let processes = entries
        .into_par_iter()
        .with_min_len(FEW)
        .zip(rest)
        .map(|(entry, (parent, exits))| process_of(entry, parent, view, &thread_place, exits))
        .collect();
    analysis.processes = processes;
    link(analysis);
    analysis.totals = totals(analysis, [forks, execs, exits]);
    analysis.cgroups = tracker
        .cgroups
        .into_iter()
        .filter(|(id, _)| *id != CgroupId(0))
        .collect();
}

/// What the tracker knows of a process's threads.
fn tasks_of<'a>(
    tasks: &'a [Task],
    process: &'a ProcessEntry,
) -> impl Iterator<Item = &'a Task> + Clone {
    let threads = process.threads.iter();
    threads.filter_map(|ix| tasks.get(ix.0))
}

/// The model of a thread.
fn thread_of(
    task: &Task,
    process: ProcessIx,
    end: Ktime,
    thread_ix: impl Fn(TaskIx) -> Option<ThreadIx>,
) -> Thread {
    let alive = task.end.is_none_or(|at| at > end);
    let max_off_cpu = task.max_off_cpu.map(|(stretch, waker)| OffCpu {
        waker: waker.and_then(&thread_ix),
        ..stretch
    });
    let status = task.exit.as_ref().map(|exit| exit.status);
    let thread = Thread {
        tid: task.tid,
        ns_tid: task.ns_tid,
        process,
        comm: task.comm,
        start: task.start,
        started_before: task.started_before,
        end: task.end.unwrap_or(end).min(end),
        alive,
        times: task.times,
        causes: task.causes,
        switches: task.switches,
        max_off_cpu,
        migrations: task.migrations,
        status: status.filter(|_| !alive),
        kernel: task.kernel.filter(|_| !alive),
        exited: task.exited.filter(|at| *at <= end),
        parent: task.parent.and_then(thread_ix),
    };
    debug_assert_eq!(
        thread.times.sum(),
        thread.end.since(thread.start),
        "{thread:?}"
    );
    thread
}

/// What the exits of a process's threads say together.
#[derive(Clone, Copy, Debug)]
struct Exits {
    faults: (u64, u64),
    io: Option<(u64, u64)>,
}

impl Exits {
    fn of<'a>(exits: impl Iterator<Item = &'a Exited> + Clone) -> Exits {
        let faults = exits.clone().fold((0u64, 0u64), |(min, maj), e| {
            (
                min.saturating_add(e.faults.0),
                maj.saturating_add(e.faults.1),
            )
        });
        let any = exits.clone().next().is_some();
        let mut exits = exits;
        let io = exits.try_fold((0u64, 0u64), |(read, written), e| {
            let (more_read, more_written) = e.io?;
            Some((
                read.saturating_add(more_read),
                written.saturating_add(more_written),
            ))
        });
        Exits {
            faults,
            io: io.filter(|_| any),
        }
    }
}

/// The model of a process, to which what the tracker knows of it goes over.
fn process_of(
    entry: &mut ProcessEntry,
    parent: Option<ProcessIx>,
    analysis: &Analysis,
    thread_place: &[Option<ThreadIx>],
    exits: Exits,
) -> Process {
    // Freed here, by several threads at once.
    let mut ixs: Vec<ThreadIx> = std::mem::take(&mut entry.threads)
        .into_iter()
        .filter_map(|t| thread_place.get(t.0).copied().flatten())
        .collect();
    ixs.sort_unstable();
    let threads = || {
        let threads = ixs.iter();
        threads.filter_map(|ix| analysis.threads.get(ix.0 as usize))
    };
    let leader = threads()
        .find(|t| t.tid.0 == entry.pid.0)
        .or(threads().next());
    let (mut times, mut causes, mut switches) =
        (Times::default(), Causes::default(), Switches::default());
    let mut max_off_cpu: Option<OffCpu> = None;
    for thread in threads() {
        times.add(&thread.times);
        causes.add(&thread.causes);
        switches.add(&thread.switches);
        if let Some(stretch) = thread.max_off_cpu {
            if max_off_cpu.is_none_or(|longest| stretch.length > longest.length) {
                max_off_cpu = Some(stretch);
            }
        }
    }
    let alive = threads().any(|t| t.alive);
    Process {
        pid: entry.pid,
        ns_pid: leader.map_or(Tid(entry.pid.0), |t| t.ns_tid),
        ppid: entry.ppid,
        parent,
        children: Vec::new(),
        comm: leader.map(|t| t.comm).unwrap_or_default(),
        argv: std::mem::take(&mut entry.argv),
        cgroup: entry.cgroup,
        kthread: entry.kthread,
        start: threads().map(|t| t.start).min().unwrap_or(analysis.start),
        started_before: threads().any(|t| t.started_before),
        end: threads().map(|t| t.end).max().unwrap_or(analysis.end),
        alive,
        status: entry.status.filter(|_| !alive),
        times,
        causes,
        switches,
        max_off_cpu,
        max_rss: entry.max_rss,
        faults: exits.faults,
        io: exits.io,
        execs: std::mem::take(&mut entry.execs),
        tree: Tree::default(),
        threads: ixs,
    }
}

/// Children and the sums over each tree. A parent may stand behind its child
/// when both were there before the span, so the way up is walked for each
/// process from the youngest generation on.
fn link(analysis: &mut Analysis) {
    let parents: Vec<Option<usize>> = analysis
        .processes
        .iter()
        .map(|p| p.parent.map(|parent| parent.0 as usize))
        .collect();
    let mut waiting = vec![0usize; parents.len()];
    for parent in parents.iter().flatten() {
        if let Some(count) = waiting.get_mut(*parent) {
            *count += 1;
        }
    }
    for (process, count) in analysis.processes.iter_mut().zip(&waiting) {
        process.children.reserve_exact(*count);
        process.tree = Tree {
            processes: 1,
            times: process.times,
            end: process.end,
        };
    }
    for (parent, at) in parents.iter().zip(0..) {
        let process = parent.and_then(|parent| analysis.processes.get_mut(parent));
        if let Some(process) = process {
            process.children.push(ProcessIx(at));
        }
    }
    let mut ready: Vec<usize> = (0..parents.len())
        .filter(|at| waiting.get(*at) == Some(&0))
        .collect();
    while let Some(at) = ready.pop() {
        let Some(tree) = analysis.processes.get(at).map(|p| p.tree) else {
            continue;
        };
        let Some(parent) = parents.get(at).copied().flatten() else {
            continue;
        };
        if let Some(process) = analysis.processes.get_mut(parent) {
            process.tree.processes += tree.processes;
            process.tree.times.add(&tree.times);
            process.tree.end = process.tree.end.max(tree.end);
        }
        if let Some(count) = waiting.get_mut(parent) {
            *count -= 1;
            if *count == 0 {
                ready.push(parent);
            }
        }
    }
}

fn totals(analysis: &Analysis, [forks, execs, exits]: [u64; 3]) -> Totals {
    let sums = |process: &Process| (process.times, process.causes);
    let none = || (Times::default(), Causes::default());
    let (times, causes) = analysis
        .processes
        .par_iter()
        .with_min_len(FEW)
        .map(sums)
        .reduce(
            none,
            |(mut times, mut causes), (more_times, more_causes)| {
                times.add(&more_times);
                causes.add(&more_causes);
                (times, causes)
            },
        );
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
