//! Finds the jobs of build tools, and what the recording shows about their order.
//!
//! make, ninja, xargs, parallel, ctest and prove start a job as soon as it can start and a slot is free. So if a slot
//! was free, but a job started only when another job had ended, the job needed that other job.
//!
//! GNU make with a job server waits for a slot in another system call than for the end of a job. If make waited for a
//! slot, the next job could already start and needed no other job. If no slot was free, and the system call does not
//! show what make waited for, the job may have waited for a slot or for another job.
//!
//! cargo and go do the same with a thread for each job, and run as many jobs as there are CPUs.

use std::collections::{BTreeMap, BTreeSet};

use tr_format::event::{Ktime, Reason};

use super::awaited::WaitReason;
use super::graph::{Graph, StretchCause};
use crate::arena::Arena;
use crate::model::{Analysis, ProcessIx};
use crate::timeline::Bucket;
use tr_programs::job_tools::{DefaultJobs, Starts};
use tr_programs::tools::Family;

/// A job of a build tool, which is one of its child processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    pub process: ProcessIx,
    /// The build tool that started the job.
    pub owner: ProcessIx,
    /// The number of the pool of slots from which the job takes its slot. Build tools that share slots have the same
    /// number.
    pub pool: u32,
    /// Whether the job takes one of the build tool's slots. A job of make takes no slot if it runs another make with
    /// the same slots, because the job then lends its slot to the jobs of that other make.
    pub slot: bool,
    pub start: Ktime,
    pub end: Ktime,
    /// The job that had to end before this job could start, if the recording shows one.
    pub needs: Option<ProcessIx>,
    /// The job that ended right before this job started. This job may have needed the results of that job, or only
    /// its slot.
    pub released: Option<ProcessIx>,
    /// The number of the job among the jobs of its build tool.
    pub number: u32,
    /// The number of the build tool's jobs, counted from the first one, that this job may need. If a tool starts a job
    /// only after all earlier jobs have ended, although slots were free before, the tool may have waited for all of
    /// these earlier jobs. Then that job and all later jobs may need them.
    pub barrier: u32,
}

/// The jobs of the build tools in a recording. Tools whose order of jobs is not known are left out.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    /// The jobs of all build tools in the order of their starts.
    pub jobs: Vec<Job>,
    /// For each build tool that starts jobs, how many jobs it runs at once.
    pub limits: BTreeMap<ProcessIx, Limit>,
}

/// How many jobs a build tool runs at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The largest number of jobs that the build tool runs at once.
    pub jobs: u64,
    /// Whether the simulation of another number of CPUs lets the tool run as many jobs as there are CPUs. No argument
    /// sets the number then, and its default is [`DefaultJobs::Seen`].
    pub follows: bool,
    /// Whether the build tool has a thread for each job, which waits for the job.
    pub threads: bool,
}

/// A wait of a build tool's thread that another recorded thread ended, for example one of a job.
struct Wait {
    from: Ktime,
    to: Ktime,
    reason: Reason,
    awaited: Option<WaitReason>,
    child: Option<ProcessIx>,
}

/// The facts about a build tool that starts jobs in a known order: its family, this order, and how many jobs it runs at
/// once if no argument sets the number. `None` if the process is no such tool.
fn tool(analysis: &Analysis, process: ProcessIx) -> Option<(Family, Starts, DefaultJobs)> {
    let tool = analysis.process(process).tool()?;
    let jobs = tool.jobs?;
    Some((tool.family, jobs.starts?, jobs.by_default))
}

impl Tools {
    /// Finds the jobs of build tools in an analysis. `limit` reads from the arguments of a tool how many jobs the tool
    /// runs at once. `limit` returns `None` if no argument sets the number, and `Some(None)` if the arguments set no
    /// limit.
    pub fn new(analysis: &Analysis, limit: impl Fn(ProcessIx) -> Option<Option<u64>>) -> Tools {
        let Some(graph) = Graph::new(analysis) else {
            return Tools::default();
        };
        let cpus = analysis.cpus_of_build();
        let makes = outermost_makes(analysis);
        let mut found = Tools::default();
        for owner in analysis.process_ids() {
            let Some((family, starts, by_default)) = tool(analysis, owner) else {
                continue;
            };
            let root = match family {
                Family::Make => makes[owner].unwrap_or(owner),
                _ => owner,
            };
            let given = limit(root);
            let started = Started::new(&graph, owner, family);
            let at_once = given.map(|given| given.unwrap_or(u64::MAX));
            let at_once = at_once.unwrap_or_else(|| match by_default {
                DefaultJobs::One => 1,
                DefaultJobs::Cpus => cpus,
                DefaultJobs::CpusAndMore => cpus + if cpus < 3 { 1 } else { 2 },
                DefaultJobs::Seen => started.lives.most(),
            });
            let limit = Limit {
                jobs: at_once.max(1),
                follows: given.is_none() && by_default == DefaultJobs::Seen,
                threads: starts == Starts::Threads,
            };
            let how = (family, starts, limit.jobs);
            let jobs = of_tool(analysis, (owner, root), how, started);
            if !jobs.is_empty() {
                found.limits.insert(owner, limit);
                found.jobs.extend(jobs);
            }
        }
        // A job that runs a make with the same slots lends its slot to the jobs of that make.
        let mut lends = BTreeSet::new();
        for owner in found.limits.keys() {
            if is_make(analysis, *owner) {
                // If a process is in `lends`, its ancestors are too, so the walk upwards can end there.
                let mut up = analysis.lineage(*owner);
                while up.next().is_some_and(|process| lends.insert(process)) {}
            }
        }
        for job in &mut found.jobs {
            let make = is_make(analysis, job.owner);
            job.slot = !(make && lends.contains(&job.process));
        }
        found.jobs.sort_by_key(|job| (job.start, job.process));
        found
    }
}

/// For each process, the outermost make among the process and its ancestors. All descendants of this make that are
/// makes share its slots.
fn outermost_makes(analysis: &Analysis) -> Arena<ProcessIx, Option<ProcessIx>> {
    let mut makes: Arena<ProcessIx, Option<ProcessIx>> =
        analysis.process_ids().map(|_| None).collect();
    let all = analysis.process_ids();
    let roots = all.filter(|ix| analysis.process(*ix).parent.is_none());
    for ix in roots.flat_map(|root| analysis.below(root)) {
        let process = analysis.process(ix);
        let above = process.parent.and_then(|parent| makes[parent]);
        makes[ix] = above.or(Some(ix).filter(|ix| is_make(analysis, *ix)));
    }
    makes
}

fn is_make(analysis: &Analysis, process: ProcessIx) -> bool {
    let tool = analysis.process(process).tool();
    tool.is_some_and(|tool| tool.family == Family::Make)
}

/// The jobs that one build tool started, and the waits of the tool.
struct Started {
    jobs: Vec<ProcessIx>,
    waits: Vec<Wait>,
    lives: Lives,
}

impl Started {
    fn new(graph: &Graph<'_>, owner: ProcessIx, family: Family) -> Started {
        let waits = waits(graph, owner);
        let jobs = children(graph, owner, family, &waits);
        let lives = Lives::new(graph.analysis, &jobs);
        Started { jobs, waits, lives }
    }
}

fn children(graph: &Graph<'_>, owner: ProcessIx, family: Family, waits: &[Wait]) -> Vec<ProcessIx> {
    let analysis = graph.analysis;
    let process = analysis.process(owner);
    let mut children = process.children.clone();
    match family {
        Family::Make => {
            // A child whose output make read is no job: make runs it for `$(shell)`, and starts no other child
            // meanwhile.
            let read: BTreeSet<ProcessIx> = waits
                .iter()
                .filter(|wait| {
                    wait.reason == Reason::PipeRead && wait.awaited != Some(WaitReason::Slot)
                })
                .filter_map(|wait| wait.child)
                .collect();
            children.retain(|child| !read.contains(child));
        }
        Family::Cargo => {
            // A child of cargo's first thread is no job: this thread runs rustc to get the version of rustc, and waits
            // for the answer.
            let first = process.threads.first().copied();
            let starter = |child: &ProcessIx| {
                let thread = analysis.process(*child).threads.first();
                thread.and_then(|thread| graph.forked_by(*thread))
            };
            children.retain(|child| starter(child) != first);
        }
        _ => {}
    }
    children
}

fn of_tool(
    analysis: &Analysis,
    (owner, root): (ProcessIx, ProcessIx),
    (family, starts, limit): (Family, Starts, u64),
    started: Started,
) -> Vec<Job> {
    let Started {
        jobs: children,
        waits,
        lives,
    } = started;
    let mut jobs: Vec<Job> = Vec::new();
    for process in children {
        let start = analysis.process(process).start;
        let mut job = Job {
            process,
            owner,
            pool: root.0,
            slot: true,
            start,
            end: ended(analysis, process),
            needs: None,
            released: None,
            number: u32::try_from(jobs.len()).unwrap_or(u32::MAX),
            barrier: jobs.last().map_or(0, |job| job.barrier),
        };
        let alone = limit > 1 && lives.ended_by(start) == jobs.len();
        match starts {
            Starts::Needs => {
                if alone {
                    job.barrier = job.number;
                }
                let server = family == Family::Make && limit > 1;
                (job.needs, job.released) = order(&jobs, &waits, &lives, (start, server, limit));
            }
            Starts::Threads => (job.needs, job.released) = by_ends(&lives, start, limit),
            Starts::Listed => {}
        }
        jobs.push(job);
    }
    jobs
}

/// The times at which the jobs of a build tool started and ended, in order.
struct Lives {
    starts: Vec<Ktime>,
    ends: Vec<(Ktime, ProcessIx)>,
}

impl Lives {
    fn new(analysis: &Analysis, children: &[ProcessIx]) -> Lives {
        let starts = children.iter().map(|child| analysis.process(*child).start);
        let ends = children
            .iter()
            .map(|child| (ended(analysis, *child), *child));
        let (mut starts, mut ends): (Vec<_>, Vec<_>) = (starts.collect(), ends.collect());
        starts.sort_unstable();
        ends.sort_unstable();
        Lives { starts, ends }
    }

    fn ended_by(&self, at: Ktime) -> usize {
        self.ends.partition_point(|(end, _)| *end <= at)
    }

    /// The job of the build tool that was the last one to end at or before a time, and the time of its end.
    fn latest(&self, at: Ktime) -> Option<(Ktime, ProcessIx)> {
        self.ends.get(..self.ended_by(at))?.last().copied()
    }

    /// The largest number of jobs of the build tool that lived at the same time.
    fn most(&self) -> u64 {
        let living = self.starts.iter().map(|start| self.living(*start));
        living.max().unwrap_or(0)
    }

    /// How many jobs of the build tool lived right before the last end of a job that was at or before `at`.
    fn beside_latest(&self, at: Ktime) -> u64 {
        let before = |(end, _): (Ktime, _)| Ktime(end.0.saturating_sub(1));
        self.latest(at)
            .map_or(0, |latest| self.living(before(latest)))
    }

    fn living(&self, at: Ktime) -> u64 {
        let started = self.starts.partition_point(|start| *start <= at);
        started.saturating_sub(self.ended_by(at)) as u64
    }
}

/// Returns two jobs: the job that a new job certainly needs, and the job that the new job may need. The new job starts
/// at `start`. `server` is whether there is a job server.
fn order(
    jobs: &[Job],
    waits: &[Wait],
    lives: &Lives,
    (start, server, limit): (Ktime, bool, u64),
) -> (Option<ProcessIx>, Option<ProcessIx>) {
    let (Some(first), Some(last)) = (jobs.first(), jobs.last()) else {
        return (None, None);
    };
    let before = waits.partition_point(|wait| wait.to <= start);
    let wait = waits.get(..before).and_then(<[Wait]>::last);
    let Some(wait) = wait.filter(|wait| wait.to > first.start) else {
        return (last.needs, None);
    };
    if last.start >= wait.to {
        // The tool did not wait between the starts of the last job and of this one, so this job needs what the last one
        // needed.
        return (last.needs, last.released);
    }
    let ended = lives.latest(start).map(|(_, process)| process);
    // Older recordings do not have the system calls of waits, so these recordings do not show whether a wait was for a
    // slot or for a job.
    let server = server && wait.reason != Reason::Unknown;
    let by_slot = if server {
        wait.reason != Reason::Child
    } else {
        // If all slots were in use before the wait, the job waited for a slot. The slots that were in use right before
        // the last end of a job are checked as well, because ninja first sees the end of a job's output and only then
        // waits for the job's end.
        lives.living(wait.from).max(lives.beside_latest(start)) >= limit
    };
    match (by_slot, server) {
        (true, true) => (last.needs, None),
        (true, false) => (last.needs, ended),
        (false, _) => (wait.child.filter(|_| server).or(ended), None),
    }
}

/// Like [`order`], for a build tool whose waits do not show which job it waited for. A job that starts after the end
/// of another job needs that other job, if a slot was free before.
fn by_ends(lives: &Lives, start: Ktime, limit: u64) -> (Option<ProcessIx>, Option<ProcessIx>) {
    let latest = lives.latest(start).map(|(_, process)| process);
    if lives.beside_latest(start) >= limit {
        (None, latest)
    } else {
        (latest, None)
    }
}

/// The earliest moment at which the parent could know that a process had ended: the exit of its first thread.
fn ended(analysis: &Analysis, process: ProcessIx) -> Ktime {
    let process = analysis.process(process);
    let first = process
        .threads
        .first()
        .map(|thread| analysis.thread(*thread));
    first
        .and_then(|thread| thread.exited)
        .unwrap_or(process.end)
}

/// The waits of a build tool's threads that recorded threads ended, without waits for vfork children, in the order in
/// which the waits ended.
fn waits(graph: &Graph<'_>, owner: ProcessIx) -> Vec<Wait> {
    let analysis = graph.analysis;
    let mut waits = Vec::new();
    for thread in &analysis.process(owner).threads {
        for stretch in graph.timeline.of(*thread) {
            let StretchCause::Thread(by) = graph.cause(*thread, &stretch) else {
                continue;
            };
            if !matches!(stretch.doing, Bucket::Wait(_)) {
                continue;
            }
            let awaited = analysis.awaited(*thread, &stretch);
            if awaited == Some(WaitReason::Vfork) {
                continue;
            }
            let by = analysis.thread(by).process;
            let mut chain = analysis.lineage(by);
            let child = chain.find(|ix| analysis.process(*ix).parent == Some(owner));
            waits.push(Wait {
                from: stretch.from,
                to: stretch.to,
                reason: stretch.reason,
                awaited,
                child,
            });
        }
    }
    waits.sort_by_key(|wait| wait.to);
    waits
}
