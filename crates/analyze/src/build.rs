//! Makes the model from the finished tracker: sorts, counts, sums up the tree.

use rayon::prelude::*;
use tr_format::event::{CgroupId, Ktime, Tgid, Tid};

use crate::arena::{Arena, Ix};
use crate::model::{
    Analysis, Causes, OffCpu, Process, ProcessIx, Switches, Thread, ThreadIx, Times, Totals, Tree,
};
use crate::tracker::{Exited, ProcIx, ProcessEntry, Task, TaskIx, Tracker};

/// So few processes or threads are not worth being shared by several threads.
const FEW: usize = 1 << 10;

/// Fills in everything that comes from the tracker.
pub fn build(mut tracker: Tracker, analysis: &mut Analysis) {
    let (start, end) = (analysis.start, analysis.end);
    analysis.cpus = tracker.cpu_figures(&analysis.meta.cpus);
    analysis.concurrency = tracker.concurrency.finish();
    let known: u64 = analysis.concurrency.iter().sum();
    analysis.concurrency_unknown = end.since(start).saturating_sub(known);
    let anomalies = std::mem::take(&mut tracker.anomalies);
    analysis.quality.anomalies = anomalies.into_iter().collect();
    let counts = tracker.counts;
    let cgroups = std::mem::take(&mut tracker.cgroups);
    analysis.cgroups = cgroups
        .into_iter()
        .filter(|(id, _)| *id != CgroupId(0))
        .collect();

    let order = Order::new(&tracker, (start, end));
    let thread_ix = |ix: TaskIx| order.thread[ix];
    analysis.threads = order
        .threads
        .par_iter()
        .with_min_len(FEW)
        .map(|(ix, process)| thread_of(&tracker.tasks[*ix], *process, end, thread_ix))
        .collect();
    let timeline = tracker.timeline.take();
    analysis.timeline = timeline.map(|timeline| {
        let tasks = order.threads.iter().map(|(ix, _)| ix.place());
        let ends = analysis.threads.iter().map(|thread| thread.end);
        timeline.finish(tasks.zip(ends), |place| {
            let ix = TaskIx::new(place);
            order.thread[ix].ok_or(tracker.tasks[ix].tid)
        })
    });
    analysis.processes = processes(tracker, analysis, &order);
    link(analysis);
    analysis.totals = totals(analysis, counts);
}

/// Which tasks and processes are in the model, and where.
struct Order {
    processes: Vec<ProcIx>,
    process: Arena<ProcIx, Option<ProcessIx>>,
    threads: Vec<(TaskIx, ProcessIx)>,
    thread: Arena<TaskIx, Option<ThreadIx>>,
}

impl Order {
    /// Processes by start, then pid, then appearance; their threads likewise. Tasks that
    /// lived only outside the span are not part of it.
    fn new(tracker: &Tracker, (start, end): (Ktime, Ktime)) -> Order {
        let inside = |ix: &TaskIx| {
            let task = &tracker.tasks[*ix];
            task.start < end && task.end.is_none_or(|at| at >= start)
        };
        let ids: Vec<ProcIx> = tracker.processes.ids().collect();
        let mut sorted: Vec<(Ktime, Tgid, ProcIx)> = ids
            .into_par_iter()
            .with_min_len(FEW)
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
            // An exec gives a thread the tid of its leader, which has ended before.
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

    /// The process of the model, the one that it was moved to.
    fn process(&self, tracker: &Tracker, mut ix: ProcIx) -> Option<ProcessIx> {
        // A process is moved once, or twice when its events come before its snapshot.
        for _ in 0..4 {
            match tracker.processes[ix].moved {
                Some(new) => ix = new,
                None => break,
            }
        }
        self.process[ix]
    }
}

/// The processes of the model. Frees the tracker's tables, which take more memory than all
/// else.
fn processes(mut tracker: Tracker, analysis: &Analysis, order: &Order) -> Vec<Process> {
    let rest: Vec<(Option<ProcessIx>, Exits)> = order
        .processes
        .par_iter()
        .with_min_len(FEW)
        .map(|ix| {
            let process = &tracker.processes[*ix];
            let parent = process.parent.and_then(|ix| order.process(&tracker, ix));
            let tasks = process.threads.iter().map(|ix| &tracker.tasks[*ix]);
            (
                parent,
                Exits::of(tasks.filter_map(|task| task.exit.as_ref())),
            )
        })
        .collect();
    drop(std::mem::take(&mut tracker.tasks));
    let take = |ix: &ProcIx| std::mem::take(&mut tracker.processes[*ix]);
    let entries: Vec<ProcessEntry> = order.processes.iter().map(take).collect();
    entries
        .into_par_iter()
        .with_min_len(FEW)
        .zip(rest)
        .map(|(entry, (parent, exits))| process_of(entry, parent, analysis, &order.thread, exits))
        .collect()
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

/// The model of a process.
fn process_of(
    entry: ProcessEntry,
    parent: Option<ProcessIx>,
    analysis: &Analysis,
    thread: &Arena<TaskIx, Option<ThreadIx>>,
    exits: Exits,
) -> Process {
    let threads = entry.threads.iter();
    let mut ixs: Vec<ThreadIx> = threads.filter_map(|ix| thread[*ix]).collect();
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
        argv: entry.argv,
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
        execs: entry.execs,
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
