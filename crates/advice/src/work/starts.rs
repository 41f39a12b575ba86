//! Do programs start so often that their starts take much of the time? Advises to do the work of many executions in one
//! call, if each execution is short, or if the start takes most of the time of each execution.

use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::critical_path::TimeKind;
use tr_analyze::model::ProcessIx;
use tr_analyze::programs::Group;
use tr_analyze::what_if::Without;
use tr_format::event::Reason;
use tr_programs::checks;
use tr_programs::program_name::ProgramName;
use tr_programs::tools::Role;
use tr_text::phrase::Phrase;
use tr_text::units;

use crate::candidate::{largest, AdviceKind, Candidate, Certainty};
use crate::facts::BuildFacts;
use crate::quartiles::Quartiles;

/// The least number of executions of a program for which advice is given to do their work in one call, and the longest
/// mean time in ns for which these executions live without waits for a CPU. A guess: with fewer or longer executions,
/// one call for all of them would save little.
const SHORT_CALLS: (u64, u64) = (100, 20_000_000);
/// The least number of executions of a program that takes the same CPU time for each of its files, and the longest such
/// CPU time in ns, which is then the time of the program's start. A guess: the start of a runtime takes 20 to 100 ms.
const START_UP: (usize, u64) = (10, 120_000_000);
/// Like [`START_UP`], for programs that need long to start ([`takes_long_to_start`]). A guess: javac needs 0.9 s for a
/// file of a few lines, and the time for a large source file, or for many tests, differs from the times for other
/// files.
const WARM_UP: (usize, u64) = (3, 3_000_000_000);

pub(super) fn candidates(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let mut all = short(facts);
    all.extend(start_ups(facts));
    all
}

/// How long a process lived while its main thread did not wait for a CPU, in nanoseconds.
fn own_length(facts: &BuildFacts<'_>, process: ProcessIx) -> u64 {
    let process = facts.analysis.process(process);
    let main = process.threads.first();
    let waited = main.map_or(0, |main| facts.analysis.thread(*main).times.run_queue);
    process.wall().saturating_sub(waited)
}

/// Advice on many short executions of one program that were started by one process. A single call of a program could do
/// the work of all these executions.
fn short(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let mut by_owner: BTreeMap<(Group, &ProgramName), Vec<Group>> = BTreeMap::new();
    for (group, execution) in facts.all() {
        if let Some(owner) = execution.owner {
            by_owner
                .entry((owner, &execution.program))
                .or_default()
                .push(group);
        }
    }
    let candidate = |((owner, program), groups): ((Group, &ProgramName), Vec<Group>)| {
        let (least, longest) = SHORT_CALLS;
        let processes = groups.iter().filter_map(|group| facts.execution(*group));
        let processes: BTreeSet<ProcessIx> = processes.map(|execution| execution.process).collect();
        // On a busy machine each of these processes waits for a CPU for longer than it otherwise lives, so these waits
        // are left out.
        let sum = processes
            .iter()
            .map(|ix| own_length(facts, *ix))
            .fold(0, u64::saturating_add);
        let count = (processes.len() as u64).max(1);
        let sleeps = program.is("sleep");
        if count < least || sum / count > longest || sleeps {
            return None;
        }
        // If one program did the work of all these executions, a shell that starts them would not need its own time any
        // more. So the shell's time counts, too.
        let shell = facts.execution(owner)?;
        let shell = shell.program.role().is_none_or(|role| role == Role::Shell);
        let set = facts.set(groups.iter().copied().chain(shell.then_some(owner)));
        let time = facts.on_path(&set, |kind, _| kind != TimeKind::Sleep);
        let name = facts.name(owner);
        Some(Candidate {
            finding: Phrase::with([&name], |[name]| {
                format!(
                    "{name} starts {program} {} times, {} each",
                    units::count(count),
                    units::time(sum / count)
                )
            }),
            action: "do it in one program".into(),
            without: Without::own(|kind, _| kind != TimeKind::Sleep, Some(set)),
            cap: time,
            evidence: groups,
            ..Candidate::of(AdviceKind::Short)
        })
    };
    let all = largest(by_owner, |(_, groups)| facts.on_cpu(groups));
    all.into_iter().filter_map(candidate).collect()
}

/// Whether a program takes several files in one call, and needs long to start: its runtime compiles itself, it is a
/// test runner, which imports what its tests need, or a linter, which loads its rules.
fn takes_long_to_start(facts: &BuildFacts<'_>, group: Group, program: &ProgramName) -> bool {
    program.warms_up()
        || program.role() == Some(Role::Tests)
        || checks::only_checks(&facts.args(group))
}

/// Advice on a program that one program, such as a script, starts for each of many files, and that takes the same CPU
/// time for each of them.
fn start_ups(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    type Own = fn(TimeKind, Reason) -> bool;
    let mut by_owner: BTreeMap<(Group, &ProgramName), BTreeMap<ProcessIx, Group>> = BTreeMap::new();
    for (group, execution) in facts.all() {
        let takes_files = takes_long_to_start(facts, group, &execution.program);
        let is_test = facts.role(group) == Some(Role::Tests);
        let starts = |owner: &Group| takes_files && !is_test || facts.is_shell(*owner);
        if let Some(owner) = execution.owner.filter(starts) {
            if execution.exec.is_some() && (takes_files || facts.role(group).is_none()) {
                let all = by_owner.entry((owner, &execution.program)).or_default();
                all.insert(execution.process, group);
            }
        }
    }
    let all = by_owner
        .into_iter()
        .map(|(key, processes)| (key, processes.into_values().collect()));
    let all = largest(all, |(_, groups): &(_, Vec<Group>)| facts.on_cpu(groups));
    let candidate = |((owner, program), groups): ((Group, &ProgramName), Vec<Group>)| {
        let takes_files = takes_long_to_start(facts, *groups.first()?, program);
        let (least, longest) = if takes_files { WARM_UP } else { START_UP };
        let lines: BTreeSet<Vec<&[u8]>> = groups.iter().map(|group| facts.args(*group)).collect();
        // A program whose children do a part of its work is a driver, and no start.
        let has_children = |group: &Group| {
            let process = facts.process(*group);
            process.is_some_and(|process| {
                let all = process.tree.times.on_cpu;
                all.saturating_sub(process.times.on_cpu).saturating_mul(10) > all
            })
        };
        let works = groups.iter().filter_map(|group| facts.execution(*group));
        let mut works: Vec<u64> = works.map(|execution| execution.on_cpu).collect();
        works.sort_unstable();
        let count = works.len();
        let Quartiles { lower, upper } = Quartiles::of_sorted(&works)?;
        let is_short = (SHORT_CALLS.1 / 2..longest).contains(&upper);
        let is_equal = lower.saturating_mul(4) >= upper.saturating_mul(3);
        // Executions with equal command lines are repeated work, which other advice covers.
        let differ = lines.len() * 2 > count;
        if count < least || !is_short || !is_equal || !differ || groups.iter().any(has_children) {
            return None;
        }
        let set = facts.set(groups.iter().copied());
        // The threads of one program also wait for CPUs that other threads of the program use, so waits for a CPU count
        // here. The simulation knows which of these waits are for CPUs of other tasks.
        let time = facts.on_path(&set, |_, _| true);
        let asleep = facts.on_path(&set, |kind, _| kind == TimeKind::Sleep);
        // If at most half of the time of these executions is sleep, the sleeps are naps of a starting runtime. The
        // change saves such naps as well, so sleep and work are both left out. If most of the time is sleep, only the
        // rest is left out.
        let (without, time): (Own, u64) = if asleep.saturating_mul(2) > time {
            (|kind, _| kind != TimeKind::Sleep, time - asleep)
        } else {
            (|_, _| true, time)
        };
        let each = works.iter().copied().fold(0, u64::saturating_add) / count as u64;
        let name = facts.name(owner);
        Some(Candidate {
            finding: Phrase::with([&name], |[name]| {
                format!(
                    "{name} starts {program} {} times, {} of CPU time each whatever its arguments are",
                    units::count(count as u64),
                    units::time(each)
                )
            }),
            action: if takes_files {
                "give all files to one call, if none needs another one's result".into()
            } else {
                "start it once for all, if it takes several".into()
            },
            without: Without::own(without, Some(set)),
            cap: time.saturating_sub(time / count as u64),
            certainty: Certainty::Unsure,
            evidence: groups,
            ..Candidate::of(AdviceKind::Short)
        })
    };
    all.into_iter().filter_map(candidate).collect()
}
