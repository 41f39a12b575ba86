//! The number of jobs at once. More than the CPUs are no fault: jobs that wait for each other on
//! full CPUs lose nothing, and what they cost in memory is a wait for memory.

use std::collections::BTreeMap;

use tr_analyze::critical_path::Kind as Time;
use tr_analyze::model::{ImportedKind, ProcessIx};
use tr_analyze::programs::Group;
use tr_analyze::schedule::Jobs;
use tr_analyze::sort::Rows;
use tr_analyze::tools::{Family, Role};
use tr_analyze::what_if::Without;
use tr_format::event::Ktime;

use super::facts::Facts;
use super::programs;
use super::{Candidate, Kind};
use crate::units;

/// The least number of jobs in a row, and the least length of one in ns.
const ROW: (usize, u64) = (3, 5_000_000);
/// Shorter tests, in ns, take as long or longer by pytest-xdist: its controller has about 0.6 ms of work for each.
const XDIST: u64 = 10_000_000;

pub(super) fn candidates(facts: &Facts<'_>) -> Vec<Candidate> {
    let mut all = in_a_row(facts);
    all.extend(in_one_process(facts));
    all
}

/// One job: a child, all below it, and the program that used most of its CPU time.
struct Job {
    from: Ktime,
    to: Ktime,
    on_cpu: u64,
    group: Group,
}

/// Children of one execution that do the same and of which few run at once, while a CPU has
/// nothing to do; those of several makes together.
fn in_a_row(facts: &Facts<'_>) -> Vec<Candidate> {
    let mut by_owner: BTreeMap<(Group, &str), Vec<Job>> = BTreeMap::new();
    let main = main_programs(facts);
    // A check of a configuration rests on those before it, and its tool has no jobs.
    let configures = |group: &Group| facts.role(*group) == Some(Role::Configure);
    let configurations: Vec<Group> = facts.all().map(|it| it.0).filter(configures).collect();
    let configurations = facts.below(&configurations);
    let tried_again = facts.tried_again();
    for (group, it) in facts.all() {
        let process = facts.analysis.process(it.process);
        // A process once: by its first program.
        let first = it.exec.is_none_or(|exec| exec == 0);
        let (Some(owner), Some((program, _)), true) = (it.owner, main.get(&it.process), first)
        else {
            continue;
        };
        if configurations.get(owner as usize) == Some(&true)
            || facts.runs_containers(owner)
            || tried_again.contains(&it.process)
            // The end of the build did not wait for it.
            || process.alive
        {
            continue;
        }
        // A test is a test, whatever its file is called.
        let program = if is_runner(facts, owner) {
            "test"
        } else {
            program
        };
        let to = process.tree.end.min(facts.path.to);
        if to.since(process.start) >= ROW.1 && program != "sleep" {
            by_owner.entry((owner, program)).or_default().push(Job {
                from: process.start,
                to,
                on_cpu: process.tree.times.on_cpu,
                group,
            });
        }
    }
    let mut rows: BTreeMap<(&str, &str), Vec<Row>> = BTreeMap::new();
    for ((owner, program), jobs) in by_owner {
        let parent = facts.execution(owner).map_or("", |it| it.program.as_str());
        if let Some(row) = row(facts, owner, jobs) {
            rows.entry((parent, program)).or_default().push(row);
        }
    }
    let rows = rows.into_iter();
    rows.filter_map(|((_, program), rows)| of_rows(facts, program, &rows))
        .collect()
}

fn is_runner(facts: &Facts<'_>, group: Group) -> bool {
    facts.role(group) == Some(Role::Tests)
}

/// The program with the most CPU time in each process and below it.
fn main_programs<'f>(facts: &'f Facts<'_>) -> BTreeMap<ProcessIx, (&'f str, u64)> {
    let mut main: BTreeMap<ProcessIx, (&str, u64)> = BTreeMap::new();
    for (_, it) in facts.all() {
        let mut at = Some(it.process);
        // As deep as a job's processes are.
        for _ in 0..8 {
            let Some(process) = at else { break };
            let most = main.entry(process).or_insert((&it.program, it.on_cpu));
            if it.on_cpu > most.1 {
                *most = (&it.program, it.on_cpu);
            }
            at = facts.analysis.process(process).parent;
        }
    }
    main
}

/// Jobs of one parent, few at once.
struct Row {
    owner: Group,
    at_once: u64,
    /// The time in which one of them ran, and what it may take less.
    length: u64,
    cap: u64,
    groups: Vec<Group>,
    /// All but the longest.
    others: Vec<Group>,
    /// All of them, at once.
    jobs: Jobs,
}

/// The number of jobs that a tool was told: of makes below a make that one's, whose slots they share.
fn limit(facts: &Facts<'_>, owner: Group) -> Option<Option<u64>> {
    let known = |group: Group| programs::known(&facts.execution(group)?.program);
    let family = known(owner)?.family;
    let own = std::iter::successors(Some(owner), |group| facts.owner(*group));
    let mut tools = own.filter_map(|group| Some((group, known(group)?)));
    tools.find_map(|(group, it)| {
        let shares = group == owner || family == Family::Make && it.family == family;
        it.jobs(&facts.args(group)).filter(|_| shares)
    })
}

fn row(facts: &Facts<'_>, owner: Group, mut jobs: Vec<Job>) -> Option<Row> {
    jobs.order_by_key(|job| (job.from, job.group));
    let from = jobs.first()?.from;
    let slowest = jobs.iter().max_by_key(|job| job.to.since(job.from))?;
    let at_once = at_once(&jobs);
    let limit = limit(facts, owner);
    let limited = match (at_once, limit) {
        (1, None | Some(Some(1))) => true,
        (n, Some(Some(limit))) => n == limit && n < facts.cpus,
        _ => false,
    };
    if jobs.len() < ROW.0 || !limited || facts.cpus < 2 {
        return None;
    }
    // The union of their times: another phase may lie between them.
    let mut until = from;
    let (mut length, mut idle) = (0u64, 0u64);
    for job in &jobs {
        let from = until.max(job.from);
        length = length.saturating_add(job.to.since(from));
        idle = idle.saturating_add(facts.idle(from, job.to));
        until = until.max(job.to);
    }
    if idle.saturating_mul(2) < length {
        return None;
    }
    let work: u64 = jobs
        .iter()
        .map(|job| job.on_cpu)
        .fold(0, u64::saturating_add);
    let longest = slowest.to.since(slowest.from);
    let groups: Vec<Group> = jobs.iter().map(|job| job.group).collect();
    let others = groups.iter().copied().filter(|it| *it != slowest.group);
    Some(Row {
        jobs: Jobs {
            owner: facts.execution(owner)?.process,
            from,
            to: jobs.last()?.from,
            at_once: facts.cpus,
        },
        owner,
        at_once,
        length,
        cap: length.saturating_sub((work / facts.cpus).max(longest)),
        others: others.collect(),
        groups,
    })
}

fn of_rows(facts: &Facts<'_>, program: &str, rows: &[Row]) -> Option<Candidate> {
    let first = rows
        .iter()
        .max_by_key(|row| (row.length, std::cmp::Reverse(row.owner)))?;
    let parent = programs::known(&facts.execution(first.owner)?.program);
    let (name, s) = facts.names(first.owner, rows.iter().map(|row| row.owner));
    let at_once = match first.at_once {
        1 => "one after the other".to_owned(),
        n => format!("{n} at once"),
    };
    let all = || rows.iter().flat_map(|row| &row.groups).copied();
    let others: Vec<Group> = rows.iter().flat_map(|row| &row.others).copied().collect();
    let length = rows.iter().map(|row| row.length).max()?;
    Some(Candidate {
        kind: match is_runner(facts, first.owner) {
            true => Kind::Tests,
            false => Kind::FewJobs,
        },
        finding: format!(
            "{name} run{s} {} × {program} {at_once}, {}",
            units::count(all().count() as u64),
            units::time(length)
        ),
        action: parent
            .map(|known| known.change(facts.cpus))
            .filter(|action| !action.is_empty())
            .unwrap_or_else(|| "run them at once".into()),
        without: Without::own(|_, _| true, Some(facts.below(&others))),
        cap: rows.iter().map(|row| row.cap).fold(0, u64::saturating_add),
        jobs: rows.iter().map(|row| row.jobs).collect(),
        number: parent.is_some_and(|known| known.takes_jobs()),
        evidence: all().collect(),
        stays: true,
    })
}

/// The most jobs at once. A job may overlap with the next one by a millisecond.
fn at_once(jobs: &[Job]) -> u64 {
    let mut steps: Vec<(Ktime, i64)> = Vec::new();
    for job in jobs {
        steps.push((job.from, 1));
        steps.push((Ktime(job.to.0.saturating_sub(1_000_000)), -1));
    }
    steps.sort_unstable();
    let (mut now, mut most) = (0i64, 0i64);
    for (_, step) in steps {
        now += step;
        most = most.max(now);
    }
    most.unsigned_abs()
}

/// The mean length in ns of a process's tests, if its runner's file tells them.
fn test_length(facts: &Facts<'_>, process: ProcessIx) -> Option<u64> {
    let imported = facts.analysis.imported.iter();
    let tests = imported.filter(|it| it.kind == ImportedKind::Test && it.process == process);
    let lengths = tests.map(|it| it.to.since(it.from));
    let (count, sum) = lengths.fold((0u64, 0u64), |(count, sum), ns| {
        (count + 1, sum.saturating_add(ns))
    });
    sum.checked_div(count)
}

/// A test runner that runs all tests itself, one after the other.
fn in_one_process(facts: &Facts<'_>) -> Vec<Candidate> {
    let candidate = |(group, it): (Group, &super::facts::Execution)| {
        let known = programs::known(&it.program).filter(|it| it.role == Role::Tests)?;
        if !(known.family == Family::Pytest && it.program != "pytest worker"
            || known.family == Family::Rspec)
            || known.jobs(&facts.args(group)).is_some()
            || facts.cpus < 2
        {
            return None;
        }
        let action = match (known.family, test_length(facts, it.process)) {
            (Family::Pytest, Some(ns)) if ns < XDIST => return None,
            (Family::Pytest, None) => "divide them by pytest-xdist if most take 10 ms or more",
            _ => known.action,
        };
        let set = facts.set([group]);
        let time = facts.on_path(&set, |kind, _| matches!(kind, Time::OnCpu | Time::Sleep));
        let name = facts.name(group);
        Some(Candidate {
            finding: format!(
                "{name} runs its tests one after the other, {}",
                units::time(time)
            ),
            action: action.into(),
            without: Without::own(
                |kind, _| matches!(kind, Time::OnCpu | Time::Sleep),
                Some(set),
            ),
            cap: time - time / facts.cpus,
            number: true,
            evidence: vec![group],
            ..Candidate::of(Kind::Tests)
        })
    };
    facts.all().filter_map(candidate).collect()
}
