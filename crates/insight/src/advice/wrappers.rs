//! Programs that stand between the build and its work: they find and start other programs, or keep their results.

use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::critical_path::Kind as Time;
use tr_analyze::model::ProcessIx;
use tr_analyze::programs::Group;
use tr_analyze::what_if::Without;
use tr_programs::command_line;
use tr_programs::tools::Role;

use super::candidate::{Candidate, Kind};
use super::facts::{Execution, Facts};
use tr_text::units;

/// The least number of files that a compiler's cache compiled. A guess: of two files neither may have been compiled
/// before.
const FILES: usize = 3;
/// The least CPU time in ns of a compiler: with a hit none runs. A guess between the start of a compiler's driver and
/// the smallest compilation.
const COMPILED: u64 = 10_000_000;

pub(super) fn candidates(facts: &Facts<'_>) -> Vec<Candidate> {
    let mut all = starters(facts);
    all.extend(scripts(facts));
    all.extend(shims(facts));
    all.extend(cold_cache(facts));
    all
}

/// Advice on the own time of programs that only start others, such as `npx`, by program.
fn starters(facts: &Facts<'_>) -> Vec<Candidate> {
    let mut by_program: BTreeMap<&str, Vec<Group>> = BTreeMap::new();
    let owners = facts.all().filter_map(|(_, execution)| execution.owner);
    let owners: BTreeSet<Group> = owners.collect();
    for (group, execution) in facts.all() {
        let name = execution.program.split(' ').next().unwrap_or_default();
        let starts = command_line::bypass(name).is_some() && owners.contains(&group);
        if starts && shim(facts, group).is_none() {
            by_program.entry(name).or_default().push(group);
        }
    }
    let candidate = |(program, groups): (&str, Vec<Group>)| {
        let started = match groups.len() {
            1 => "a program".to_owned(),
            count => format!("{} programs", units::count(count as u64)),
        };
        let action = command_line::bypass(program)?;
        let finding = |time| format!("{program} itself takes {time} to start {started}");
        Some(without(facts, action, groups, finding))
    };
    by_program.into_iter().filter_map(candidate).collect()
}

/// Advice on the own time of programs that run the scripts of a package and start each other, such as `npm run` in a
/// script of npm.
fn scripts(facts: &Facts<'_>) -> Option<Candidate> {
    let action = |group: &Group| {
        let execution = facts.execution(*group)?;
        command_line::bypass_of_scripts(&execution.program)
    };
    let runners = facts.all().map(|(group, _)| group);
    let runners: Vec<Group> = runners.filter(|group| action(group).is_some()).collect();
    let action = action(runners.first()?)?;
    let calls = runners.len();
    // One call begins the build.
    (calls >= 2).then(|| {
        let calls = units::count(calls as u64);
        without(facts, action, runners, |time| {
            format!("{calls} calls of npm itself take {time}")
        })
    })
}

/// A scenario that leaves out the time on the critical path of executions of a wrapper. `finding` makes the words of
/// the evidence from that time.
fn without(
    facts: &Facts<'_>,
    action: &str,
    groups: Vec<Group>,
    finding: impl FnOnce(String) -> String,
) -> Candidate {
    let set = facts.set(groups.iter().copied());
    let time = facts.on_path(&set, |kind, _| kind != Time::RunQueue);
    Candidate {
        finding: finding(units::time(time)),
        action: action.into(),
        without: Without::own(|_, _| true, Some(set)),
        cap: time,
        evidence: groups,
        ..Candidate::of(Kind::Wrapper)
    }
}

/// The manager of versions whose shim an execution is a part of.
fn shim(facts: &Facts<'_>, group: Group) -> Option<&'static str> {
    let exec = facts.exec(group)?;
    let args: Vec<&[u8]> = exec.argv.args().collect();
    command_line::shim(&exec.filename, &args)
}

/// Advice on shims of version managers, with the work of the shims and of their descendants. A shim replaces itself by
/// the program. Each manager has its own candidate.
fn shims(facts: &Facts<'_>) -> Vec<Candidate> {
    let of = facts.down(|group, above: Option<&Option<&'static str>>| {
        shim(facts, group).or_else(|| above.copied().flatten())
    });
    let manager = |group: Group| of.get(group as usize).copied().flatten();
    let mut by_manager: BTreeMap<&'static str, Vec<Group>> = BTreeMap::new();
    for (group, _) in facts.all() {
        if let Some(manager) = manager(group) {
            by_manager.entry(manager).or_default().push(group);
        }
    }
    let candidate = |(manager, groups): (&'static str, Vec<Group>)| {
        let process = |group: &Group| Some(facts.execution(*group)?.process);
        let processes: BTreeSet<ProcessIx> = groups.iter().filter_map(process).collect();
        // A call is a process that became the program.
        let is_call = |group: &&Group| {
            let owner = facts.owner(**group);
            owner
                .and_then(|owner| of.get(owner as usize).copied().flatten())
                .is_none()
        };
        let calls: BTreeSet<ProcessIx> =
            groups.iter().filter(is_call).filter_map(process).collect();
        let more = processes.len().saturating_sub(calls.len());
        let each = (more / calls.len().max(1)) as u64;
        let action = command_line::bypass(manager)?;
        Some(without(facts, action, groups, |time| {
            format!(
                "shims of {manager} start {} for each of {}, {time}",
                units::plural(each, "process", "processes"),
                units::plural(calls.len() as u64, "call", "calls"),
            )
        }))
    };
    by_manager.into_iter().filter_map(candidate).collect()
}

/// Whether an execution is a compiler's cache, also one that a link with a compiler's name calls.
fn is_cache(facts: &Facts<'_>, group: Group, execution: &Execution) -> bool {
    let file = facts.exec(group).map_or(&b""[..], |exec| &exec.filename);
    let mut parts = file.rsplit(|byte| *byte == b'/').skip(1);
    matches!(execution.program.as_str(), "ccache" | "sccache") || parts.next() == Some(b"ccache")
}

/// Advice on a compiler's cache in which no call found its result, as in the first build.
fn cold_cache(facts: &Facts<'_>) -> Option<Candidate> {
    let caches = facts
        .all()
        .filter(|(group, execution)| is_cache(facts, *group, execution));
    let caches: Vec<Group> = caches.map(|(group, _)| group).collect();
    if caches.len() < FILES {
        return None;
    }
    // A cache starts the compiler in place of itself, or as a child.
    let below = facts.below(&caches);
    let own: BTreeSet<ProcessIx> = caches
        .iter()
        .filter_map(|group| Some(facts.execution(*group)?.process))
        .collect();
    let compilers = facts.all().filter(|(group, execution)| {
        let is_below =
            below.get(*group as usize) == Some(&true) || own.contains(&execution.process);
        let compiles = command_line::role_of(&execution.program) == Some(Role::Compiler);
        is_below && compiles && execution.on_cpu >= COMPILED
    });
    let compilers: Vec<Group> = compilers.map(|(group, _)| group).collect();
    if compilers.len() < caches.len() {
        return None;
    }
    let set = facts.set(compilers.iter().copied());
    let time = facts.on_path(&set, |kind, _| kind == Time::OnCpu);
    let files = units::count(caches.len() as u64);
    Some(Candidate {
        finding: format!(
            "the compiler's cache had no hit for {files} files, {}",
            units::time(time)
        ),
        action: "keep its directory from build to build (CCACHE_DIR, SCCACHE_DIR)".into(),
        without: Without::work(set),
        cap: time,
        unsure: true,
        evidence: caches,
        ..Candidate::of(Kind::ColdCache)
    })
}
