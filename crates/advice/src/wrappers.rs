//! Gives advice on programs that stand between the build and its work, because they find and start other programs.

use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::critical_path::TimeKind;
use tr_analyze::model::ProcessIx;
use tr_analyze::programs::Group;
use tr_analyze::what_if::Without;
use tr_programs::command_line;
use tr_programs::program_name::ProgramName;

use crate::candidate::{largest, AdviceKind, Candidate};
use crate::facts::BuildFacts;
use tr_text::units;

pub(super) fn candidates(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let mut all = starters(facts);
    all.extend(launchers(facts));
    all.extend(scripts(facts));
    all.extend(shims(facts));
    all
}

/// Advice on the time that programs which only start other programs, such as `npx`, need for themselves. Each program
/// has its own line.
fn starters(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let mut by_program: BTreeMap<(&str, &str), Vec<Group>> = BTreeMap::new();
    let owners = facts.all().filter_map(|(_, execution)| execution.owner);
    let owners: BTreeSet<Group> = owners.collect();
    for (group, execution) in facts.all() {
        let Some(action) = execution.program.bypass() else {
            continue;
        };
        if owners.contains(&group) && shim(facts, group).is_none() {
            let key = (execution.program.name(), action);
            by_program.entry(key).or_default().push(group);
        }
    }
    let candidate = |((program, action), groups): ((&str, &str), Vec<Group>)| {
        let started = match groups.len() {
            1 => "a program".to_owned(),
            count => format!("{} programs", units::count(count as u64)),
        };
        let finding = |time| format!("{program} itself takes {time} to start {started}");
        without(facts, action, groups, finding)
    };
    by_program.into_iter().map(candidate).collect()
}

/// Advice on the time that programs such as npm need themselves to run the scripts of a package, if the scripts call
/// these programs again (`npm run` in a script of npm).
fn scripts(facts: &BuildFacts<'_>) -> Option<Candidate> {
    let action = |group: &Group| facts.execution(*group)?.program.bypass_of_scripts();
    let runners = facts.all().map(|(group, _)| group);
    let runners: Vec<Group> = runners.filter(|group| action(group).is_some()).collect();
    let action = action(runners.first()?)?;
    let calls = runners.len();
    // The first call may begin the build and cannot be avoided, so at least two calls are needed.
    (calls >= 2).then(|| {
        let calls = units::count(calls as u64);
        without(facts, action, runners, |time| {
            format!("{calls} calls of npm itself take {time}")
        })
    })
}

/// The least number of calls of a launcher (a program that only starts another one) that get advice. A guess: a program
/// that is called only twice may be two steps of a build.
const CALLS: usize = 3;
/// The divisor of the CPU time of all calls of a launcher: the launcher's own start-up and the started tools must each
/// have at least a fifth of that time. A guess: a launcher that needs more than four fifths itself does the real work,
/// and one that needs less than a fifth costs little.
const LAUNCHER_PART: u64 = 5;
/// The largest number of arguments of a launcher that are compared with the arguments of the program it starts. This
/// bounds the work.
const ARGS: usize = 64;

/// One call of a launcher, which is a program that starts another one and ends with it.
struct Call {
    launcher: Group,
    /// The first execution of the program that the launcher starts.
    tool: Group,
    /// Whether the started program replaced the launcher in its process (by an exec without a fork).
    replaces: bool,
    /// The number of the launcher's last arguments that it hands to the program which it starts.
    handed: usize,
}

impl Call {
    /// Describes an execution of a program as the call of a launcher; `None` if the execution is not proven to be such
    /// a call. A launcher replaces itself by the tool that it starts, or hands its last arguments to its last child,
    /// for which it waits.
    fn of(facts: &BuildFacts<'_>, launcher: Group) -> Option<Call> {
        let execution = facts.execution(launcher)?;
        let process = facts.process(launcher)?;
        let next = process.execs.get(execution.exec? + 1);
        let own = facts.args(launcher);
        let (tool, replaces) = match next {
            Some(next) => (facts.groups.at(execution.process, next.start)?, true),
            None => {
                let mut children = process.children.iter().rev();
                let last = *children.find(|ix| !facts.analysis.process(**ix).execs.is_empty())?;
                let child = facts.analysis.process(last);
                let begins = child.execs.first()?.start;
                // Only if all other children ended before the last child began, the launcher waits for the last child
                // alone.
                let before = process.children.iter().filter(|ix| **ix != last);
                let mut before = before.map(|ix| facts.analysis.process(*ix));
                if child.alive || before.any(|other| other.end > begins) {
                    return None;
                }
                (facts.groups.at(last, begins)?, false)
            }
        };
        let handed = handed(&own, &facts.args(tool));
        (replaces || handed > 0).then_some(Call {
            launcher,
            tool,
            replaces,
            handed,
        })
    }
}

/// The number of arguments at the end of a launcher's command line (`own`) that also end the command line of the
/// program it starts (`tool`). The number is 1 if the launcher put its last argument at the end of a command line for a
/// shell.
fn handed(own: &[&[u8]], tool: &[&[u8]]) -> usize {
    // The first argument is left out: it is the name of the launcher, or of the interpreter if the launcher is a
    // script.
    let own = own.get(1..).unwrap_or_default();
    let pairs = own.iter().rev().zip(tool.iter().rev());
    let same = pairs.take(ARGS).take_while(|(a, b)| a == b).count();
    match (same, own.last(), tool.last()) {
        (0, Some(own), Some(line)) if line.contains(&b' ') && line.ends_with(own) => 1,
        _ => same,
    }
}

/// Advice on launchers: programs that are called once for each of many tools, and that start only the tool and each
/// time the same helpers. The CPU time of the launcher and its helpers is the price of each call. Launchers are found
/// by what they do, not by their names.
fn launchers(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let mut by_program: BTreeMap<&ProgramName, Vec<Call>> = BTreeMap::new();
    for (group, execution) in facts.all() {
        let is_known = execution.program.bypass().is_some()
            || execution.program.bypass_of_scripts().is_some()
            || shim(facts, group).is_some();
        // Tools with a role, such as a shell that runs a recipe, are no launchers.
        if is_known || facts.role(group).is_some() {
            continue;
        }
        if let Some(call) = Call::of(facts, group) {
            by_program.entry(&execution.program).or_default().push(call);
        }
    }
    by_program.retain(|_, calls| calls.len() >= CALLS);
    if by_program.is_empty() {
        return Vec::new();
    }
    let totals = facts.up();
    let total = |group: Group| totals.get(group as usize).copied().unwrap_or(0);
    let all = largest(by_program, |(_, calls)| {
        let totals = calls.iter().map(|call| total(call.launcher));
        totals.fold(0, u64::saturating_add)
    });
    let launchers = all.iter().flat_map(|(_, calls)| calls);
    let mut started: BTreeMap<Group, Vec<Group>> =
        launchers.map(|call| (call.launcher, Vec::new())).collect();
    for (group, execution) in facts.all() {
        let owner = execution.owner.and_then(|owner| started.get_mut(&owner));
        if let Some(programs) = owner {
            programs.push(group);
        }
    }
    let candidate = |(program, calls): &(&ProgramName, Vec<Call>)| {
        launcher(facts, program, calls, &started, &totals)
    };
    all.iter().filter_map(candidate).collect()
}

/// The advice on the calls of one launcher. `started` has the programs that each launcher starts, and `totals` the CPU
/// time of each execution of a program with its descendants, in ns.
fn launcher(
    facts: &BuildFacts<'_>,
    program: &ProgramName,
    calls: &[Call],
    started: &BTreeMap<Group, Vec<Group>>,
    totals: &[u64],
) -> Option<Candidate> {
    let total = |group: Group| totals.get(group as usize).copied().unwrap_or(0);
    let tools: BTreeSet<Group> = calls.iter().map(|call| call.tool).collect();
    // The helpers of each call: the programs that the launcher starts beside the tool.
    let mut helpers: Vec<(Group, &Call)> = Vec::new();
    let mut same: BTreeMap<Vec<&[u8]>, usize> = BTreeMap::new();
    for call in calls {
        let programs = started.get(&call.launcher).into_iter().flatten();
        for group in programs.filter(|group| !tools.contains(group)) {
            helpers.push((*group, call));
            *same.entry(facts.args(*group)).or_default() += 1;
        }
    }
    let own_arguments = |call: &Call| {
        let args = facts.args(call.launcher);
        args.get(args.len().saturating_sub(call.handed)..)
            .unwrap_or_default()
            .to_vec()
    };
    // A process whose command line contains arguments that the launcher hands to the tool prepares the tool's work. So
    // the process is not part of the launcher's start-up.
    let is_start_up = |group: Group, call: &Call| {
        let args = facts.args(group);
        let mut of_tool = own_arguments(call).into_iter();
        let is_same = same.get(&args).is_some_and(|count| count * 2 > calls.len());
        is_same || call.handed > 0 && !of_tool.any(|arg| args.contains(&arg))
    };
    let (helpers, tasks): (Vec<_>, Vec<_>) = helpers
        .into_iter()
        .partition(|(group, call)| is_start_up(*group, call));
    let groups =
        |all: &[(Group, &Call)]| -> Vec<Group> { all.iter().map(|(group, _)| *group).collect() };
    let (helpers, mut works) = (groups(&helpers), groups(&tasks));
    works.extend(&tools);
    let launchers: Vec<Group> = calls.iter().map(|call| call.launcher).collect();
    let own = |group: &Group| {
        facts
            .execution(*group)
            .map_or(0, |execution| execution.on_cpu)
    };
    let sum = |groups: &[Group]| {
        let totals = groups.iter().map(|group| total(*group));
        totals.fold(0u64, u64::saturating_add)
    };
    let launched = launchers.iter().map(own).fold(0u64, u64::saturating_add);
    let start_up = launched.saturating_add(sum(&helpers));
    let work = sum(&works);
    let least = start_up.saturating_add(work) / LAUNCHER_PART;
    if start_up < least || work < least {
        return None;
    }
    let replaced = calls.iter().filter(|call| call.replaces).count();
    let (below, of_works) = (facts.below(&launchers), facts.below(&works));
    let is_in = |set: &[bool], group: Group| set.get(group as usize) == Some(&true);
    let parts = facts.all().map(|(group, _)| group);
    let parts = parts.filter(|group| is_in(&below, *group) && !is_in(&of_works, *group));
    let parts: Vec<Group> = parts.collect();
    let started = units::count(calls.len() as u64);
    let verb = if replaced * 2 > calls.len() {
        "become"
    } else {
        "start"
    };
    Some(without(
        facts,
        "call these programs themselves, or let one call start several",
        parts,
        |time| format!("{program} itself takes {time} to {verb} {started} programs"),
    ))
}

/// A proposed change that leaves out the time that executions of a wrapper have on the critical path. `finding` makes
/// the words of the evidence from that time.
fn without(
    facts: &BuildFacts<'_>,
    action: &str,
    groups: Vec<Group>,
    finding: impl FnOnce(String) -> String,
) -> Candidate {
    let set = facts.set(groups.iter().copied());
    // If a program that only starts other programs sleeps, the sleep is intended, or another line of advice is about
    // the sleep. So sleeps do not count here.
    let is_own = |kind: TimeKind, _| !matches!(kind, TimeKind::RunQueue | TimeKind::Sleep);
    let time = facts.on_path(&set, is_own);
    Candidate {
        finding: finding(units::time(time)).into(),
        action: action.into(),
        without: Without::own(|kind, _| kind != TimeKind::Sleep, Some(set)),
        cap: time,
        evidence: groups,
        ..Candidate::of(AdviceKind::Wrapper)
    }
}

/// The name of the version manager (such as pyenv) if an execution of a program is a part of the manager's shim;
/// otherwise `None`.
fn shim(facts: &BuildFacts<'_>, group: Group) -> Option<&'static str> {
    let exec = facts.exec(group)?;
    let args: Vec<&[u8]> = exec.argv.args().collect();
    command_line::shim(&exec.filename, &args)
}

/// Advice on shims of version managers (such as pyenv), with the time of the shims and of their descendants. A shim
/// replaces itself by the real program. Each manager has its own line of advice.
fn shims(facts: &BuildFacts<'_>) -> Vec<Candidate> {
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
        // A process counts as a call if no other process of a shim started it; the others are helpers of a call.
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
        let action = ProgramName::new(manager).bypass()?;
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
