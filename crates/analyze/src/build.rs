//! From the closed book to the model: sorted, counted, the tree summed up.

use tr_format::event::{CgroupId, Exit, Ktime, Tid};

use crate::book::{Book, ProcessEntry, Task};
use crate::model::{
    Analysis, Causes, OffCpu, Process, ProcessIx, Switches, Thread, ThreadIx, Times, Totals, Tree,
};

/// Fills in everything that comes from the book.
pub fn build(mut book: Book, analysis: &mut Analysis) {
    let (start, end) = (analysis.start, analysis.end);
    analysis.cpus = book.cpu_figures(&analysis.meta.cpus);
    analysis.concurrency = book.concurrency.finish();
    let known: u64 = analysis.concurrency.iter().sum();
    analysis.concurrency_unknown = end.since(start).saturating_sub(known);
    analysis.quality.violations = book.violations.into_iter().collect();
    let [forks, execs, exits] = book.counts;

    // Tasks that lived only outside the span are not part of it.
    let inside = |task: &Task| task.start < end && task.end.is_none_or(|at| at >= start);
    let present: Vec<bool> = book
        .processes
        .iter()
        .map(|process| {
            process
                .threads
                .iter()
                .filter_map(|t| book.tasks.get(t.0))
                .any(inside)
        })
        .collect();
    let is_present = |at: usize| present.get(at).copied().unwrap_or(false);

    // The order of the output: by start, then pid, then order of appearance.
    let begin = |process: &ProcessEntry| {
        process
            .threads
            .iter()
            .filter_map(|t| book.tasks.get(t.0))
            .map(|task| task.start)
            .min()
            .unwrap_or(start)
    };
    let mut order: Vec<usize> = (0..book.processes.len())
        .filter(|at| is_present(*at))
        .collect();
    order.sort_by_key(|at| book.processes.get(*at).map(|p| (begin(p), p.pid, *at)));
    let mut place = vec![None; book.processes.len()];
    for (new, old) in order.iter().enumerate() {
        if let Some(slot) = place.get_mut(*old) {
            *slot = Some(ProcessIx(u32::try_from(new).unwrap_or(u32::MAX)));
        }
    }
    let process_ix = |processes: &[ProcessEntry], mut old: usize| {
        // A process is moved once, or twice when its events come before it is
        // listed.
        for _ in 0..4 {
            match processes.get(old).and_then(|p| p.moved) {
                Some(new) => old = new,
                None => break,
            }
        }
        place.get(old).copied().flatten()
    };

    let mut thread_order = Vec::new();
    for old in &order {
        let Some(process) = book.processes.get(*old) else {
            continue;
        };
        let mut threads: Vec<_> = process
            .threads
            .iter()
            .filter(|t| book.tasks.get(t.0).is_some_and(inside))
            .copied()
            .collect();
        // An exec gives a thread the tid of its leader, which has ended before.
        threads.sort_by_key(|t| {
            let task = book.tasks.get(t.0)?;
            let end = task.end.unwrap_or(Ktime(u64::MAX));
            Some((task.start, task.tid, end, *t))
        });
        thread_order.extend(threads.into_iter().map(|thread| (thread, *old)));
    }
    let mut thread_place = vec![None; book.tasks.len()];
    for (new, (old, _)) in thread_order.iter().enumerate() {
        if let Some(slot) = thread_place.get_mut(old.0) {
            *slot = Some(ThreadIx(u32::try_from(new).unwrap_or(u32::MAX)));
        }
    }

    analysis.threads.reserve_exact(thread_order.len());
    analysis.processes.reserve_exact(order.len());
    for (old, process) in &thread_order {
        let Some(task) = book.tasks.get(old.0) else {
            continue;
        };
        let Some(process) = place.get(*process).copied().flatten() else {
            continue;
        };
        let alive = task.end.is_none_or(|at| at > end);
        let max_off_cpu = task.max_off_cpu.map(|(stretch, waker)| OffCpu {
            waker: waker.and_then(|w| thread_place.get(w.0).copied().flatten()),
            ..stretch
        });
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
            status: task
                .exit
                .as_ref()
                .filter(|_| !alive)
                .map(|exit| exit.status),
            kernel: task.kernel.filter(|_| !alive),
            exited: task.exited.filter(|at| *at <= end),
            parent: task
                .parent
                .and_then(|parent| thread_place.get(parent.0).copied().flatten()),
        };
        debug_assert_eq!(
            thread.times.sum(),
            thread.end.since(thread.start),
            "{thread:?}"
        );
        analysis.threads.push(thread);
    }
    analysis.timeline = book.timeline.take().map(|timeline| {
        let tasks = thread_order.iter().map(|(task, _)| task.0);
        let ends = analysis.threads.iter().map(|thread| thread.end);
        timeline.finish(tasks.zip(ends), |at| {
            let place = thread_place.get(at).copied().flatten();
            place.ok_or_else(|| book.tasks.get(at).map_or(Tid(0), |task| task.tid))
        })
    });

    // The tasks take more memory than all else; only this is needed of them.
    let last: Vec<Option<Box<Exit>>> = book.tasks.iter_mut().map(|t| t.exit.take()).collect();
    drop(book.tasks);
    for old in &order {
        let parent = book.processes.get(*old).and_then(|entry| entry.parent);
        let parent = parent.and_then(|parent| process_ix(&book.processes, parent));
        if let Some(entry) = book.processes.get_mut(*old) {
            let process = process_of(entry, parent, analysis, &thread_place, &last);
            analysis.processes.push(process);
        }
    }
    link(analysis);
    analysis.totals = totals(analysis, [forks, execs, exits]);
    analysis.cgroups = book
        .cgroups
        .into_iter()
        .filter(|(id, _)| *id != CgroupId(0))
        .collect();
}

fn process_of(
    entry: &mut ProcessEntry,
    parent: Option<ProcessIx>,
    analysis: &Analysis,
    thread_place: &[Option<ThreadIx>],
    exits: &[Option<Box<Exit>>],
) -> Process {
    let mut ixs: Vec<ThreadIx> = entry
        .threads
        .iter()
        .filter_map(|t| thread_place.get(t.0).copied().flatten())
        .collect();
    ixs.sort_unstable();
    let threads: Vec<&Thread> = ixs
        .iter()
        .filter_map(|ix| analysis.threads.get(ix.0 as usize))
        .collect();
    let leader = threads
        .iter()
        .find(|t| t.tid.0 == entry.pid.0)
        .or(threads.first())
        .copied();
    let (mut times, mut causes, mut switches) =
        (Times::default(), Causes::default(), Switches::default());
    let mut max_off_cpu: Option<OffCpu> = None;
    for thread in &threads {
        times.add(&thread.times);
        causes.add(&thread.causes);
        switches.add(&thread.switches);
        if let Some(stretch) = thread.max_off_cpu {
            if max_off_cpu.is_none_or(|longest| stretch.length > longest.length) {
                max_off_cpu = Some(stretch);
            }
        }
    }
    let exits = || {
        entry
            .threads
            .iter()
            .filter_map(|t| exits.get(t.0)?.as_ref())
    };
    let faults = exits().fold((0, 0), |(min, maj), e| (min + e.min_flt, maj + e.maj_flt));
    let io = exits().try_fold((0u64, 0u64), |(read, written), e| {
        Some((
            read.saturating_add(e.read_bytes?),
            written.saturating_add(e.write_bytes?),
        ))
    });
    let alive = threads.iter().any(|t| t.alive);
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
        start: threads
            .iter()
            .map(|t| t.start)
            .min()
            .unwrap_or(analysis.start),
        started_before: threads.iter().any(|t| t.started_before),
        end: threads.iter().map(|t| t.end).max().unwrap_or(analysis.end),
        alive,
        status: entry.status.filter(|_| !alive),
        threads: ixs,
        times,
        causes,
        switches,
        max_off_cpu,
        max_rss: entry.max_rss,
        faults,
        io: io.filter(|_| exits().next().is_some()),
        execs: std::mem::take(&mut entry.execs),
        tree: Tree::default(),
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
    for (at, parent) in parents.iter().enumerate() {
        let Some(parent) = *parent else { continue };
        if let Some(count) = waiting.get_mut(parent) {
            *count += 1;
        }
        if let Some(process) = analysis.processes.get_mut(parent) {
            process
                .children
                .push(ProcessIx(u32::try_from(at).unwrap_or(u32::MAX)));
        }
    }
    for process in &mut analysis.processes {
        process.tree = Tree {
            processes: 1,
            times: process.times,
            end: process.end,
        };
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
    let mut totals = Totals {
        processes: analysis.processes.len() as u64,
        threads: analysis.threads.len() as u64,
        execs,
        forks,
        exits,
        ..Totals::default()
    };
    for process in &analysis.processes {
        totals.times.add(&process.times);
        totals.causes.add(&process.causes);
    }
    totals
}
