//! Finds the jobs that each program of a build started, and the limit on their number.

use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::model::ProcessIx;
use tr_analyze::programs::Group;
use tr_format::event::Ktime;
use tr_programs::program_name::ProgramName;
use tr_programs::tools::Role;

use crate::facts::BuildFacts;
use crate::jobs::job_limit::{limit, limits_of_makes, Limit};

/// The length in ns of the shortest job for which advice is given. A guess: starting a shorter job costs as much time
/// as running it beside other jobs saves.
const SHORTEST_JOB: u64 = 5_000_000;

/// The least number of jobs in a row (one after the other) for which advice is given. A guess: if there are only two
/// jobs, the second one may need the result of the first one.
pub(crate) const LEAST_JOBS: usize = 3;

/// A job of a build: a child process with all its descendants.
#[derive(Clone, Copy)]
pub(crate) struct Job {
    pub from: Ktime,
    pub to: Ktime,
    pub on_cpu: u64,
    pub group: Group,
}

/// A job of a build, with the program whose single execution used more CPU time than any other one in the job.
pub(crate) type NamedJob<'f> = (&'f ProgramName, Job);

/// The jobs that one execution of a program started.
pub(crate) struct StartedJobs<'f> {
    pub owner: Group,
    /// The process that started the jobs: that of the owner or, for one of several loops that a shell script runs at
    /// the same time, the copy of the shell that runs this loop.
    pub process: ProcessIx,
    pub limit: Limit,
    /// The jobs, ordered by the number of the execution (`group`) with which each job begins.
    pub jobs: Vec<NamedJob<'f>>,
}

/// The jobs of each execution of a program that started at least one job, in the order of these executions. The jobs
/// of loops that a shell script runs at the same time are listed for each loop.
pub(crate) fn started_jobs<'f>(facts: &'f BuildFacts<'_>) -> Vec<StartedJobs<'f>> {
    let limits = limits_of_makes(facts);
    let all = children(facts).into_iter().filter_map(|(owner, jobs)| {
        let process = facts.execution(owner)?.process;
        let loops = loops(facts, owner, process, jobs).into_iter();
        Some(loops.map(move |(process, jobs)| (owner, process, jobs)))
    });
    all.flatten()
        .map(|(owner, process, jobs)| StartedJobs {
            owner,
            process,
            limit: limit(facts, owner, &limits),
            jobs,
        })
        .collect()
}

/// Divides the jobs of one execution of a program by the loops that started them. A script that runs several loops at
/// the same time runs each of them in a copy of the shell. If the script has no such loops, all jobs belong to the
/// process of the execution.
fn loops<'f>(
    facts: &BuildFacts<'_>,
    owner: Group,
    process: ProcessIx,
    jobs: Vec<NamedJob<'f>>,
) -> BTreeMap<ProcessIx, Vec<NamedJob<'f>>> {
    let parent = |job: &NamedJob<'_>| facts.process(job.1.group).and_then(|job| job.parent);
    let mut counts: BTreeMap<ProcessIx, usize> = BTreeMap::new();
    for parent in jobs.iter().filter_map(parent) {
        *counts.entry(parent).or_default() += 1;
    }
    counts.retain(|_, count| *count >= LEAST_JOBS);
    if counts.len() < 2 || !facts.is_shell(owner) {
        return BTreeMap::from([(process, jobs)]);
    }
    let mut loops: BTreeMap<ProcessIx, Vec<NamedJob<'f>>> = BTreeMap::new();
    for job in jobs {
        let own = parent(&job).filter(|parent| counts.contains_key(parent));
        loops.entry(own.unwrap_or(process)).or_default().push(job);
    }
    loops
}

/// For each execution of a program, the children that it started and that could be jobs of their own.
fn children<'f>(facts: &'f BuildFacts<'_>) -> BTreeMap<Group, Vec<NamedJob<'f>>> {
    let main = main_programs(facts);
    // The checks of a configure script depend on earlier checks and cannot run as jobs, so its children do not count.
    let configures = |group: &Group| facts.role(*group) == Some(Role::Configure);
    let configurations: Vec<Group> = facts
        .all()
        .map(|entry| entry.0)
        .filter(configures)
        .collect();
    let configurations = facts.below(&configurations);
    // A job that failed and was started again later needed something that other jobs had, so it could not run beside
    // them.
    let tried_again = facts.tried_again().iter();
    let tried_again: BTreeSet<ProcessIx> = tried_again
        .flat_map(|ix| facts.analysis.lineage(*ix))
        .collect();
    let mut by_owner: BTreeMap<Group, Vec<NamedJob<'f>>> = BTreeMap::new();
    for (group, execution) in facts.all() {
        let process = facts.analysis.process(execution.process);
        // Each process counts once, by its first program. A process that executed none counts only if it is an
        // execution of its own because the program of its parent is not known.
        let executes = !process.execs.is_empty();
        let first = execution.exec == executes.then_some(0);
        let (Some(owner), Some((program, _)), true) =
            (execution.owner, main.get(&execution.process), first)
        else {
            continue;
        };
        if configurations.get(owner as usize) == Some(&true)
            || facts.runs_containers(owner)
            || tried_again.contains(&execution.process)
            // A process that outlived the build is not a job that the build waited for.
            || process.alive
        {
            continue;
        }
        let to = process.tree.end.min(facts.path.to);
        if to.since(process.start) >= SHORTEST_JOB && !program.is("sleep") {
            let job = Job {
                from: process.start,
                to,
                on_cpu: process.tree.times.on_cpu,
                group,
            };
            by_owner.entry(owner).or_default().push((program, job));
        }
    }
    by_owner
}

/// For each process, the program with the execution that used most CPU time among the process and its descendants of
/// seven generations, and this CPU time in nanoseconds.
fn main_programs<'f>(facts: &'f BuildFacts<'_>) -> BTreeMap<ProcessIx, (&'f ProgramName, u64)> {
    let mut main: BTreeMap<ProcessIx, (&ProgramName, u64)> = BTreeMap::new();
    for (_, execution) in facts.all() {
        let mut at = Some(execution.process);
        // The walk visits the process and seven ancestors, which is as deep as the processes of a job usually are.
        for _ in 0..8 {
            let Some(process) = at else { break };
            let most = main
                .entry(process)
                .or_insert((&execution.program, execution.on_cpu));
            if execution.on_cpu > most.1 {
                *most = (&execution.program, execution.on_cpu);
            }
            at = facts.analysis.process(process).parent;
        }
    }
    main
}
