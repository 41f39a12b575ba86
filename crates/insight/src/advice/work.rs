//! Gives advice on work on the critical path: programs that run alone, repeat work, or are short and run very often.

use std::cell::LazyCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tr_programs::changes;
use tr_programs::program_name::ProgramName;
use tr_programs::table::utilities::UtilityUse;

use tr_analyze::critical_path::TimeKind;
use tr_analyze::model::ProcessIx;
use tr_analyze::programs::Group;
use tr_analyze::schedule::MOST;
use tr_analyze::timeline::Actor;
use tr_analyze::what_if::Without;
use tr_format::event::{Ktime, Reason};
use tr_programs::tools::{Family, Role};
use tr_programs::words;

use super::candidate::{AdviceKind, AffectedWork, Candidate, Certainty};
use super::facts::{add, BuildFacts};
use super::quartiles::Quartiles;
use crate::exit;
use crate::normal::{argument, Paths};
use tr_text::phrase::Phrase;
use tr_text::units;

/// The divisor of the critical path's time without waits for a CPU: a single task that runs alone for a tenth of this
/// time or more gets advice. Every build has shorter ones, such as a program's start. Measured by `validate.py`: an
/// eighth left out the demo's serial link, 1.4 s of 12 s; with a tenth 40 of 41 lines were right.
const ALONE: u64 = 10;
/// The shortest time in nanoseconds for which a task must run alone to get advice. A guess: a shorter time is the start
/// of a program or the end of a build, which nobody changes.
const BRIEF: u64 = 300_000_000;
/// The least number of executions of a program for which advice is given to do their work in one call, and the longest
/// mean wall time of these executions in ns. A guess: with fewer or longer executions, one call for all of them would
/// save little.
const SHORT: (u64, u64) = (100, 20_000_000);
/// The least number of executions of a program that takes the same CPU time for each of its files, and the longest such
/// CPU time in ns, which is then the time of the program's start. A guess: the start of a runtime takes 20 to 100 ms.
const START_UP: (usize, u64) = (10, 120_000_000);
/// Like [`START_UP`], for programs whose runtime compiles itself at each start. A guess: javac needs 0.9 s for a file of a
/// few lines, and a large source file takes other times than its neighbours.
const WARM_UP: (usize, u64) = (3, 3_000_000_000);
/// The largest number of programs that ran between two equal executions and are examined for changes of files. This
/// bounds the work for a forged file with thousands of programs.
const EDITS: usize = 1000;
/// The least CPU time in ns for which an execution that repeats another one gets advice. A guess: avoiding a shorter
/// execution costs as much as repeating it.
const REPEATED: u64 = 20_000_000;

pub(super) fn candidates(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = linkers(facts).into_iter().collect();
    all.extend(phase(facts, Role::Configure, AdviceKind::Configure));
    all.extend(phase(facts, Role::Packages, AdviceKind::Install));
    all.extend(alone(facts));
    all.extend(repeated(facts));
    all.extend(answers(facts));
    all.extend(short(facts));
    all.extend(start_ups(facts));
    all
}

fn on_cpu(kind: TimeKind, _: Reason) -> bool {
    kind == TimeKind::OnCpu
}

/// The simulated change that leaves out all time of a set of executions.
fn everything(of: Box<[bool]>) -> Without {
    Without::own(|_, _| true, Some(of))
}

fn linkers(facts: &BuildFacts<'_>) -> Option<Candidate> {
    let all = facts
        .all()
        .filter(|(_, execution)| execution.program.role() == Some(Role::Linker));
    let all = facts.set(all.map(|(group, _)| group));
    let is_linker = |group: Group| all.get(group as usize).copied().unwrap_or(false);
    let mut on_path: BTreeMap<Group, u64> = BTreeMap::new();
    for (segment, group, reason) in facts.segments() {
        if let Some(group) = group.filter(|group| is_linker(*group)) {
            if on_cpu(segment.kind, reason) && segment.length() > 0 {
                add(&mut on_path, group, segment.length());
            }
        }
    }
    let (sum, longest) = facts.longest(&on_path)?;
    let known = changes::known(&facts.execution(longest)?.program)?;
    let (name, s) = facts.names(longest, on_path.keys().copied());
    Some(Candidate {
        finding: Phrase::with([&name], |[name]| {
            format!("{name} link{s} for {}", units::time(sum))
        }),
        action: known.action.into(),
        // The change applies to linkers that are not on the critical path as well.
        without: Without::work(all),
        cap: sum,
        evidence: on_path.into_keys().collect(),
        ..Candidate::of(AdviceKind::Link)
    })
}

/// Advice on programs that do one phase of a build, such as the configuration or the installation, together with all
/// their descendants. `role` selects the programs, and each program has its own line.
fn phase(facts: &BuildFacts<'_>, role: Role, kind: AdviceKind) -> Vec<Candidate> {
    let all = facts
        .all()
        .filter(|(group, _)| facts.role(*group) == Some(role));
    let all: Vec<(Group, &super::facts::Execution)> = all.collect();
    let groups: Vec<Group> = all.iter().map(|(group, _)| *group).collect();
    let within = facts.below(&groups);
    let mut by_program: BTreeMap<&ProgramName, Vec<Group>> = BTreeMap::new();
    for (group, execution) in all {
        // A phase inside another one, such as config.status inside configure, is a part of the outer phase.
        let inside = execution.owner.and_then(|owner| within.get(owner as usize));
        if inside != Some(&true) {
            by_program
                .entry(&execution.program)
                .or_default()
                .push(group);
        }
    }
    let candidate = |(program, roots): (&ProgramName, Vec<Group>)| {
        let below = facts.below(&roots);
        let whole = facts.on_path(&below, |_, _| true);
        // A cache of packages does not change waits for servers that send none.
        let waits = kind != AdviceKind::Install || has_downloads(facts, &below);
        let without = if waits {
            everything(below)
        } else {
            Without::own(is_no_wait_for_servers, Some(below))
        };
        let time = facts.length(&facts.covers(&without));
        if time.saturating_mul(2) < whole {
            return None;
        }
        let name = match facts.runs(roots.iter().copied()) {
            0 | 1 => facts.name(*roots.first()?),
            many => format!("{many} × {program}").into(),
        };
        Some(Candidate {
            finding: Phrase::with([&name], |[name]| {
                format!("{name} takes {}", units::time(whole))
            }),
            action: changes::of_role(role).into(),
            without,
            cap: time,
            evidence: roots,
            ..Candidate::of(kind)
        })
    };
    by_program.into_iter().filter_map(candidate).collect()
}

/// The least number of bytes that count as a download of packages. A guess: an index or an answer with an error is
/// smaller.
const DOWNLOADED: u64 = 1 << 20;

/// Whether the executions in a set received packages over TCP connections that are closed.
fn has_downloads(facts: &BuildFacts<'_>, of: &[bool]) -> bool {
    let groups = (0..).zip(of).filter(|(_, is_in)| **is_in);
    let executions = groups.filter_map(|(group, _)| facts.execution(group));
    let processes: BTreeSet<ProcessIx> = executions.map(|execution| execution.process).collect();
    let connections = facts.analysis.network.connections.iter();
    let received = connections.filter_map(|connection| {
        let process = facts.analysis.thread(connection.thread?).process;
        let (_, received) = connection.bytes?;
        processes.contains(&process).then_some(received)
    });
    received.fold(0, u64::saturating_add) >= DOWNLOADED
}

/// Whether a time is neither a wait for a peer nor a sleep, such as the pause before a try is repeated.
fn is_no_wait_for_servers(kind: TimeKind, _: Reason) -> bool {
    !matches!(
        kind,
        TimeKind::Network | TimeKind::Outside | TimeKind::Sleep | TimeKind::Unknown
    )
}

/// Advice on single executions of programs that run on the critical path while no other task of the build can run.
fn alone(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let candidate = |(group, execution): (Group, &super::facts::Execution)| {
        let alone = facts.alone(group);
        let role = facts.role(group);
        let tests = role == Some(Role::Tests);
        if alone.saturating_mul(ALONE) < facts.worked
            || tests && !beside_workers(facts, group, execution)
            || has_peers(facts, group)
            || facts.measures_by_clock(group)
        {
            return None;
        }
        let set = facts.set([group]);
        let cap = facts.on_path(&set, on_cpu).min(alone);
        let name = facts.name(group);
        // So short a time is the start of an interpreter, which nobody can divide.
        if alone < BRIEF {
            return None;
        }
        // If a program does nearly the whole work of the build, its work can only be divided and not be left out. This
        // does not apply to programs with a known role, such as build tools.
        let whole = role.is_none() && is_whole(facts, execution);
        let last = if role == Some(Role::Compiler) {
            starts_last(facts, group, |other| other.program == execution.program)
        } else if tests {
            None
        } else {
            starts_last_of_pool(facts, group, execution)
        };
        let (kind, finding, action, cap) = match last {
            Some((at, gain)) => (
                AdviceKind::Last,
                Phrase::with([&name], |[name]| {
                    format!("{name}, the longest, starts {} late", units::time(at))
                }),
                "start it first, or split it",
                gain.min(cap),
            ),
            _ if tests => (
                AdviceKind::Last,
                Phrase::with([&name], |[name]| {
                    format!("{name} tests alone for {}", units::time(alone))
                }),
                "start its longest test first, or split it",
                cap - cap / facts.cpus,
            ),
            _ => (
                AdviceKind::Alone,
                Phrase::with([&name], |[name]| {
                    format!("{name} runs alone for {}", units::time(alone))
                }),
                match role {
                    Some(Role::Compiler) => {
                        "split it, or start it earlier, if it needs no result of the work before"
                    }
                    Some(Role::Shell) => "do less in the shell",
                    _ if whole => "divide its work among the CPUs, if its parts are independent",
                    _ => "split it, if its parts are independent",
                },
                // All CPUs together need as long for its parts as one needs for it.
                match role {
                    Some(Role::Compiler | Role::Shell) => cap,
                    _ => cap - cap / facts.cpus,
                },
            ),
        };
        Some(Candidate {
            finding,
            action: action.into(),
            without: Without::work(set),
            cap,
            work: if kind == AdviceKind::Last || role == Some(Role::Compiler) || whole {
                AffectedWork::Remains
            } else {
                AffectedWork::LeftOut
            },
            evidence: vec![group],
            ..Candidate::of(kind)
        })
    };
    facts.all().filter_map(candidate).collect()
}

/// Whether an execution is COMMAND itself, or has at least nineteen twentieths of the CPU time of COMMAND and all its
/// descendants.
fn is_whole(facts: &BuildFacts<'_>, execution: &super::facts::Execution) -> bool {
    let all = facts.analysis.process(facts.path.process).tree.times.on_cpu;
    let rest = all.saturating_sub(execution.on_cpu);
    execution.process == facts.path.process || rest.saturating_mul(20) <= all
}

/// Whether an execution of a program is one of several workers that a test runner has at the same time.
fn beside_workers(
    facts: &BuildFacts<'_>,
    group: Group,
    execution: &super::facts::Execution,
) -> bool {
    facts.all().any(|(other, worker)| {
        other != group
            && (&worker.program, worker.owner) == (&execution.program, execution.owner)
            && worker.start < execution.end
            && execution.start < worker.end
    })
}

/// Whether at least two other executions of the same file used about as much CPU time. Jobs of about equal size are no
/// problem by themselves; only the number of jobs at once can be wrong.
fn has_peers(facts: &BuildFacts<'_>, group: Group) -> bool {
    let own = facts
        .execution(group)
        .map_or(0, |execution| execution.on_cpu);
    let file = facts.file(group);
    let peers = facts.all().filter(|(other, execution)| {
        *other != group
            && execution.on_cpu.saturating_mul(3) >= own.saturating_mul(2)
            && facts.file(*other) == file
    });
    !file.is_empty() && peers.count() >= 2
}

/// For an execution that is the longest of its jobs and ends last: the time in nanoseconds from the start of the first
/// job to its own start, and the most time that another order of the jobs saves. `is_job` selects the jobs among all
/// executions. In any order the jobs take at least the time of the longest one, and at least their CPU time divided by
/// the number of CPUs.
fn starts_last(
    facts: &BuildFacts<'_>,
    group: Group,
    is_job: impl Fn(&super::facts::Execution) -> bool,
) -> Option<(u64, u64)> {
    let own = facts.execution(group)?;
    let others = facts
        .all()
        .filter(|(other, execution)| *other != group && is_job(execution));
    let others: Vec<(Group, &super::facts::Execution)> = others.collect();
    let length = |execution: &super::facts::Execution| execution.end.since(execution.start);
    let first = others.iter().map(|(_, execution)| execution.start).min()?;
    let longest = others
        .iter()
        .map(|(_, execution)| length(execution))
        .max()?;
    let last = others.iter().map(|(_, execution)| execution.end).max()?;
    if others.len() < 2 || length(own) < longest || own.end < last || own.start <= first {
        return None;
    }
    let all = others
        .iter()
        .map(|(_, execution)| execution.on_cpu)
        .chain([own.on_cpu]);
    let work: u64 = all.fold(0, u64::saturating_add);
    let least = (work / facts.cpus).max(length(own));
    Some((
        own.start.since(first),
        own.end.since(first).saturating_sub(least),
    ))
}

/// Like [`starts_last`], for a job of a program that runs several jobs at once and is neither a shell nor a build tool.
/// The job must not be a step that has to come after all others. The proof is that another job still ran when it
/// started, and that most of the other jobs started beside a running one, too.
fn starts_last_of_pool(
    facts: &BuildFacts<'_>,
    group: Group,
    own: &super::facts::Execution,
) -> Option<(u64, u64)> {
    let owner = own.owner?;
    // Tools such as xargs run independent jobs, while other build tools start a job when its inputs are ready.
    let takes_any = || {
        let known = changes::known(&facts.execution(owner)?.program)?;
        Some(known.takes_jobs() && known.family == Family::Other)
    };
    let role = facts.role(owner);
    let is_pool = match role {
        None | Some(Role::Tests) => !facts.is_shell(owner),
        Some(Role::Jobs) => takes_any() == Some(true),
        _ => false,
    };
    if !is_pool {
        return None;
    }
    let file = facts.file(group);
    let jobs = facts
        .all()
        .filter(|(other, job)| job.owner == Some(owner) && facts.file(*other) == file);
    let jobs: Vec<_> = jobs.map(|(_, job)| (job.start, job.end)).collect();
    let is_beside = |start: Ktime| jobs.iter().any(|(from, to)| *from < start && start < *to);
    let beside = jobs.iter().filter(|(start, _)| is_beside(*start)).count();
    let is_pool = is_beside(own.start) && beside * 2 > jobs.len();
    let is_job = |job: &super::facts::Execution| job.owner == Some(owner);
    starts_last(facts, group, is_job).filter(|_| is_pool && !file.is_empty())
}

/// The working directory of an execution of a program: the recorded one (`Recorded`), or a number for what the command
/// lines of its ancestors say about it (`Said`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Directory {
    Recorded(Arc<[u8]>),
    Said(Option<usize>),
}

/// Advice on executions of a program with equal command lines and about equal CPU time, whose inputs are equal as far
/// as is known. Each one after the first repeats work.
fn repeated(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let cwd = String::from_utf8_lossy(&facts.analysis.meta.cwd);
    let directories = directories(facts);
    let tried_again = facts.groups_of(facts.tried_again());
    let tried_again = facts.below(&tried_again);
    let edits = edits(facts);
    // Computed only if needed, because most builds repeat nothing.
    let questions = LazyCell::new(|| questions(facts));
    type Key = (ProgramName, Vec<String>, Directory);
    let mut equal: BTreeMap<Key, Vec<(Group, u64)>> = BTreeMap::new();
    for (group, execution) in facts.all() {
        let Some(exec) = facts.exec(group) else {
            continue;
        };
        if execution.on_cpu < REPEATED || !exec.ended || exec.argv.truncated() {
            continue;
        }
        if tried_again.get(group as usize) == Some(&true) {
            continue;
        }
        let role = execution.program.role();
        if matches!(role, Some(Role::Shell | Role::Jobs | Role::Tests))
            || execution.program.converges()
            || role != Some(Role::Compiler)
                && (is_in_a_pipe(facts, group) || reads_a_pipe(facts, group))
        {
            continue;
        }
        let args = facts.args(group).into_iter();
        let args: Vec<String> = args
            .map(|arg| argument(arg, &cwd, &[], Paths::Whole))
            .collect();
        // A configure script overwrites the same file for each test.
        if args.iter().any(|arg| arg.contains("conftest")) || args.len() < 2 {
            continue;
        }
        let said = execution
            .owner
            .and_then(|owner| *directories.get(owner as usize)?);
        let directory = if exec.directory.is_empty() {
            Directory::Said(said)
        } else {
            Directory::Recorded(Arc::clone(&exec.directory))
        };
        let key = (execution.program.clone(), args, directory);
        equal
            .entry(key)
            .or_default()
            .push((group, exec.times.on_cpu));
    }
    let mut by_program: BTreeMap<ProgramName, Again> = BTreeMap::new();
    for ((program, ..), all) in equal {
        let Some(((first_group, first), again)) = all.split_first() else {
            continue;
        };
        // A different CPU time means different work, because the input files may differ. Equal executions at the same
        // time are workers of one program and repeat nothing.
        let end = facts.execution(*first_group).map(|execution| execution.end);
        let alike = again.iter().filter(|(group, cpu)| {
            cpu.saturating_mul(2) <= first.saturating_mul(3)
                && first.saturating_mul(2) <= cpu.saturating_mul(3)
                && facts.execution(*group).map(|execution| execution.start) >= end
                && !is_edited(facts, &edits, *first_group, *group)
                && !is_asked_between(facts, &questions, *first_group, *group)
        });
        let again = by_program.entry(program).or_default();
        for (group, cpu) in alike {
            again.groups.push(*group);
            again.sum = again.sum.saturating_add(*cpu);
            let tools = builds_of(facts, *first_group).zip(builds_of(facts, *group));
            again
                .builds
                .insert(tools.filter(|(first, second)| first != second));
        }
    }
    // Each candidate needs memory for a set of all groups, so their number is limited: a forged file may have thousands
    // of programs.
    let mut by_program: Vec<(ProgramName, Again)> = by_program.into_iter().collect();
    by_program.sort_by_key(|(_, again)| std::cmp::Reverse(again.sum));
    by_program.truncate(MOST);
    let candidate = |(program, again): (ProgramName, Again)| {
        let Again {
            groups,
            sum,
            builds,
        } = again;
        let first = groups.first()?;
        let compiler = program.role() == Some(Role::Compiler);
        let (name, s) = facts.names(*first, groups.iter().copied());
        let work = units::time(sum);
        let builds: Vec<_> = builds.into_iter().collect();
        let (finding, again) = match builds.as_slice() {
            [Some((earlier, later))] if compiler => {
                let (earlier, later) = (facts.label(*earlier), facts.label(*later));
                (
                    Phrase::with([&name], |[name]| {
                        format!("{later} compiles again what {earlier} compiled: {name}, {work}")
                    }),
                    "find out why it is out of date, or ",
                )
            }
            _ => {
                let finding =
                    Phrase::with([&name], |[name]| format!("{name} repeat{s} {work} of work"));
                (finding, "")
            }
        };
        Some(Candidate {
            finding,
            action: if compiler {
                format!("{again}use a compiler cache (ccache, sccache)")
            } else {
                "do it once and keep the result, if its inputs are the same".into()
            },
            // The recording does not contain the files that programs read and write, so only for compilers the work is
            // surely repeated.
            certainty: Certainty::unsure_if(!compiler),
            without: Without::work(facts.set(groups.iter().copied())),
            cap: sum,
            evidence: groups,
            ..Candidate::of(AdviceKind::Repeated)
        })
    };
    by_program.into_iter().filter_map(candidate).collect()
}

/// Whether a program compares two files. Scripts use the exit status of such a program to decide whether a result is
/// stable.
fn compares(program: &ProgramName) -> bool {
    program.uses().contains(&UtilityUse::Compare) || program.has_verb("git", "diff")
}

/// For each execution of a program, the sorted ends of the programs that it started and whose exit statuses may decide
/// whether it repeats other programs. These are programs that compare files, and command lines that ran several times
/// until their result (success or failure) changed.
fn questions(facts: &BuildFacts<'_>) -> BTreeMap<Group, Vec<Ktime>> {
    let mut asked: BTreeMap<Group, Vec<Ktime>> = BTreeMap::new();
    // The ends of equal command lines of one program, each with whether it failed.
    type Ends = Vec<(Ktime, bool)>;
    let mut equal: BTreeMap<(Group, Vec<&[u8]>), Ends> = BTreeMap::new();
    for (group, execution) in facts.all() {
        let (Some(owner), Some(exec)) = (execution.owner, facts.exec(group)) else {
            continue;
        };
        if compares(&execution.program) {
            asked.entry(owner).or_default().push(execution.end);
        } else if !exec.argv.truncated() && execution.on_cpu < REPEATED {
            let failed = exit::failed(facts.analysis.process(execution.process).status);
            let ends = equal.entry((owner, facts.args(group))).or_default();
            ends.push((execution.end, failed));
        }
    }
    for ((owner, _), mut ends) in equal {
        ends.sort_unstable();
        let Some(((_, last), before)) = ends.split_last() else {
            continue;
        };
        let changes = !before.is_empty() && before.iter().all(|(_, failed)| failed != last);
        if changes {
            let times = asked.entry(owner).or_default();
            times.extend(ends.iter().map(|(end, _)| *end));
        }
    }
    for times in asked.values_mut() {
        times.sort_unstable();
    }
    asked
}

/// Whether a program that started two equal executions, directly or through others, ran a check between them whose
/// result may decide how often it repeats them (see [`questions`]).
fn is_asked_between(
    facts: &BuildFacts<'_>,
    questions: &BTreeMap<Group, Vec<Ktime>>,
    first: Group,
    again: Group,
) -> bool {
    let (from, to) = match (facts.execution(first), facts.execution(again)) {
        (Some(first), Some(again)) => (first.end, again.start),
        _ => return false,
    };
    let above = |group: Group| {
        let owners = std::iter::successors(facts.owner(group), |owner| facts.owner(*owner));
        owners.take(ABOVE)
    };
    let above_first: Vec<Group> = above(first).collect();
    above(again)
        .filter(|owner| above_first.contains(owner))
        .any(|owner| {
            let times = questions.get(&owner).map(Vec::as_slice).unwrap_or_default();
            let next = times.get(times.partition_point(|at| *at < from));
            next.is_some_and(|at| *at <= to)
        })
}

/// The executions of one program that repeat the work of earlier ones.
#[derive(Default)]
struct Again {
    groups: Vec<Group>,
    /// The CPU time in ns of the executions that repeat work.
    sum: u64,
    /// The pairs of different build tools that started the first execution and a later one; `None` stands for
    /// repetitions without such a pair.
    builds: BTreeSet<Option<(Group, Group)>>,
}

/// The largest number of ancestors of an execution that are searched for the program that started it. A compiler is
/// fewer levels below its build tool. This bounds the work.
const ABOVE: usize = 8;

/// The build tool that started an execution, directly or through others.
fn builds_of(facts: &BuildFacts<'_>, group: Group) -> Option<Group> {
    let mut above = facts.owner(group);
    for _ in 0..ABOVE {
        let owner = above?;
        if facts.role(owner) == Some(Role::Jobs) {
            return Some(owner);
        }
        above = facts.owner(owner);
    }
    None
}

/// The least number of about equally long requests for which a server gets advice. A guess: two equally long requests
/// may be chance.
const REQUESTS: usize = 3;

/// The requests that a server computed, each about as long as the others.
struct Requests {
    /// The CPU time in ns of each request on the critical path, in ascending order.
    lengths: Vec<u64>,
    /// The server's executions.
    groups: BTreeSet<Group>,
}

impl Requests {
    /// The CPU time in ns of all requests together.
    fn sum(&self) -> u64 {
        self.lengths.iter().copied().fold(0, u64::saturating_add)
    }

    /// The CPU time in ns of all requests but the longest one.
    fn again(&self) -> u64 {
        let longest = self.lengths.last().copied().unwrap_or(0);
        self.sum().saturating_sub(longest)
    }
}

/// Advice on servers of the build that compute about equally long for each of several requests on the critical path.
fn answers(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let analysis = facts.analysis;
    let connections = analysis.network.connections.iter();
    let accepted = connections.filter(|connection| connection.accepted);
    let servers: BTreeSet<ProcessIx> = accepted
        .filter_map(|connection| Some(analysis.thread(connection.thread?).process))
        .collect();
    // A visit is the time for which the critical path stays in a server without a break, which is taken as one request.
    let mut visits: BTreeMap<ProcessIx, Vec<(u64, BTreeSet<Group>)>> = BTreeMap::new();
    let mut before = None;
    for (segment, group, reason) in facts.segments() {
        let process = analysis.thread(segment.thread).process;
        let is_same = before.replace(process) == Some(process);
        let Some(group) = group.filter(|_| servers.contains(&process)) else {
            continue;
        };
        let of = visits.entry(process).or_default();
        if !is_same || of.is_empty() {
            of.push((0, BTreeSet::new()));
        }
        if let Some((sum, groups)) = of.last_mut().filter(|_| on_cpu(segment.kind, reason)) {
            *sum = sum.saturating_add(segment.length());
            groups.insert(group);
        }
    }
    let mut by_server: Vec<Requests> = Vec::new();
    for visits in visits.into_values() {
        let long = visits.into_iter().filter(|(sum, _)| *sum >= REPEATED);
        let (mut lengths, groups): (Vec<u64>, Vec<BTreeSet<Group>>) = long.unzip();
        lengths.sort_unstable();
        let is_alike = Quartiles::of_sorted(&lengths).is_some_and(|lengths| {
            lengths.upper.saturating_mul(4) <= lengths.lower.saturating_mul(5)
        });
        if lengths.len() < REQUESTS || !is_alike {
            continue;
        }
        let groups = groups.into_iter().flatten().collect();
        by_server.push(Requests { lengths, groups });
    }
    // Each candidate needs memory for a set of all groups, so their number is limited: a forged file may have thousands
    // of servers.
    by_server.sort_by_cached_key(|requests| Reverse(requests.again()));
    by_server.truncate(MOST);
    let candidate = |requests: Requests| {
        let (again, sum) = (requests.again(), requests.sum());
        let Requests { lengths, groups } = requests;
        let (name, s) = facts.names(*groups.first()?, groups.iter().copied());
        let each = units::time(sum / (lengths.len() as u64).max(1));
        Some(Candidate {
            finding: Phrase::with([&name], |[name]| {
                format!(
                    "{name} compute{s} {} for {} requests, {each} each",
                    units::time(sum),
                    units::count(lengths.len() as u64)
                )
            }),
            action: "keep what they share".into(),
            without: Without::work(facts.set(groups.iter().copied())),
            cap: again,
            certainty: Certainty::Unsure,
            evidence: groups.into_iter().collect(),
            ..Candidate::of(AdviceKind::Repeated)
        })
    };
    by_server.into_iter().filter_map(candidate).collect()
}

/// The longest time in ns between the starts of two programs of one pipe. A guess: a shell starts them within some
/// milliseconds, and later on a busy machine.
const PIPE: u64 = 50_000_000;

/// Whether an execution of a program may be a part of a shell's pipe: a sibling started at nearly the same time, and
/// both lived at once.
fn is_in_a_pipe(facts: &BuildFacts<'_>, group: Group) -> bool {
    let owner = facts.owner(group).filter(|owner| facts.is_shell(*owner));
    let (Some(shell), Some(execution)) = (
        owner.and_then(|owner| facts.execution(owner)),
        facts.execution(group),
    ) else {
        return false;
    };
    let own = facts.analysis.process(execution.process);
    let siblings = &facts.analysis.process(shell.process).children;
    // The siblings are sorted by their starts, so the nearby ones are found by binary search.
    let start = |ix: &ProcessIx| facts.analysis.process(*ix).start;
    let first = siblings.partition_point(|ix| start(ix).0.saturating_add(PIPE) < own.start.0);
    let near = siblings.get(first..).unwrap_or_default().iter();
    let mut near = near.take_while(|ix| start(ix).since(own.start) < PIPE);
    near.any(|ix| {
        let other = facts.analysis.process(*ix);
        *ix != execution.process && other.start < own.end && own.start < other.end
    })
}

/// Whether an execution of a program waited for data from a pipe whose other end is not one of its descendants. Then it
/// is not known whether its input equals that of another execution.
fn reads_a_pipe(facts: &BuildFacts<'_>, group: Group) -> bool {
    let analysis = facts.analysis;
    let (Some(timeline), Some(execution)) = (&analysis.timeline, facts.execution(group)) else {
        return false;
    };
    let is_own = |process| {
        analysis
            .lineage(process)
            .any(|above| above == execution.process)
    };
    let threads = &analysis.process(execution.process).threads;
    threads.iter().any(|thread| {
        let stretches = timeline.since(*thread, execution.start);
        let mut stretches = stretches.take_while(|stretch| stretch.from < execution.end);
        stretches.any(|stretch| {
            let by_others = match stretch.waker() {
                Actor::Thread(waker) => !is_own(analysis.thread(waker).process),
                _ => true,
            };
            stretch.reason == Reason::PipeRead && by_others
        })
    })
}

/// An execution of a program that changes the files named by its arguments, such as `sed -i`.
struct Edit<'f> {
    from: Ktime,
    args: Vec<&'f [u8]>,
    /// Whether the program may change files that its arguments do not name, such as `git checkout`.
    any: bool,
}

/// The executions of programs that change files named by their arguments, such as `sed -i`, `cp`, `git checkout` and
/// `patch`.
fn edits<'f>(facts: &'f BuildFacts<'_>) -> Vec<Edit<'f>> {
    let edits = facts.all().filter_map(|(group, execution)| {
        let args = facts.args(group);
        let edit = Edit {
            from: execution.start,
            args: args.get(1..).unwrap_or_default().to_vec(),
            any: execution.program.name() == "git",
        };
        execution.program.edits(&edit.args).then_some(edit)
    });
    let mut edits: Vec<Edit<'f>> = edits.collect();
    edits.sort_by_key(|edit| edit.from);
    edits
}

/// Whether, between two equal executions of a program, another program changed a file that both name. A program that
/// names no files may have changed any file.
fn is_edited(facts: &BuildFacts<'_>, edits: &[Edit<'_>], first: Group, again: Group) -> bool {
    let start = |group| facts.execution(group).map(|execution| execution.start);
    let (Some(from), Some(to)) = (start(first), start(again)) else {
        return false;
    };
    let args = facts.args(again);
    let files = args.get(1..).unwrap_or_default();
    let base = |arg: &[u8]| arg.rsplit(|byte| *byte == b'/').next().map(<[u8]>::to_vec);
    let names: BTreeSet<Vec<u8>> = files
        .iter()
        .filter(|arg| !arg.starts_with(b"-"))
        .filter_map(|arg| base(arg))
        .collect();
    let between = edits.partition_point(|edit| edit.from < from);
    let between = edits.get(between..).unwrap_or_default();
    let mut between = between.iter().take_while(|edit| edit.from < to).take(EDITS);
    between.any(|edit| {
        let mut files = edit.args.iter().filter(|arg| !arg.starts_with(b"-"));
        // A program may get a file's name without the ending: `pdflatex book` reads book.aux. So names without their
        // endings are compared, too.
        let stem = |name: &[u8]| {
            name.rsplitn(2, |byte| *byte == b'.')
                .last()
                .map(<[u8]>::to_vec)
        };
        let names_one = |arg: &&[u8]| {
            let name = base(arg).unwrap_or_default();
            names.contains(&name) || stem(&name).is_some_and(|stem| names.contains(&stem))
        };
        edit.any || files.any(names_one)
    })
}

/// Whether an argument of a build tool names the directory in which the tool works, as `-C DIR` does.
pub(super) fn names_directory(arg: &[u8]) -> bool {
    arg.starts_with(b"-C") || arg.starts_with(b"--directory")
}

/// For each execution of a program, a number that identifies its working directory as far as command lines show it
/// (`make -C` or a shell's `cd`, also of its ancestors). This number is used where the directory itself is not
/// recorded.
fn directories(facts: &BuildFacts<'_>) -> Vec<Option<usize>> {
    let words = |group: Group| -> Option<Vec<&[u8]>> {
        let role = facts.execution(group)?.program.role()?;
        let tells = |arg: &&[u8]| match role {
            Role::Jobs => names_directory(arg),
            Role::Shell => words::contains(arg, b"cd "),
            _ => false,
        };
        Some(facts.args(group)).filter(|args| args.iter().any(tells))
    };
    let mut numbers: BTreeMap<(Option<usize>, Vec<&[u8]>), usize> = BTreeMap::new();
    facts.down(|group, above: Option<&Option<usize>>| {
        let above = above.copied().flatten();
        let Some(words) = words(group) else {
            return above;
        };
        let next = numbers.len();
        Some(*numbers.entry((above, words)).or_insert(next))
    })
}

/// How long a process lived while its main thread did not wait for a CPU, in nanoseconds.
fn own_length(facts: &BuildFacts<'_>, process: ProcessIx) -> u64 {
    let process = facts.analysis.process(process);
    let main = process.threads.first();
    let waited = main.map_or(0, |main| facts.analysis.thread(*main).times.run_queue);
    process.wall().saturating_sub(waited)
}

/// Advice on many executions of one short program by one process, whose work one call could do.
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
        let (least, longest) = SHORT;
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
        // A shell that starts the programs would not need its own time either, so its time counts, too.
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
    by_owner.into_iter().filter_map(candidate).collect()
}

/// Advice on a program that a script starts for each of many files, and that takes the same CPU time for each of them.
fn start_ups(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    type Own = fn(TimeKind, Reason) -> bool;
    let mut by_owner: BTreeMap<(Group, &ProgramName), BTreeMap<ProcessIx, Group>> = BTreeMap::new();
    for (group, execution) in facts.all() {
        let warms_up = execution.program.warms_up();
        let starts = |owner: &Group| warms_up || facts.is_shell(*owner);
        if let Some(owner) = execution.owner.filter(starts) {
            if execution.exec.is_some() && (warms_up || facts.role(group).is_none()) {
                let all = by_owner.entry((owner, &execution.program)).or_default();
                all.insert(execution.process, group);
            }
        }
    }
    let on_cpu = |group: &Group| {
        facts
            .execution(*group)
            .map_or(0, |execution| execution.on_cpu)
    };
    // Each candidate needs memory for a set of all groups, so their number is limited: a forged file may have thousands
    // of scripts.
    let mut all: Vec<((Group, &ProgramName), Vec<Group>)> = by_owner
        .into_iter()
        .map(|(key, processes)| (key, processes.into_values().collect()))
        .collect();
    all.sort_by_key(|(_, groups)| Reverse(groups.iter().map(on_cpu).fold(0, u64::saturating_add)));
    all.truncate(MOST);
    let candidate = |((owner, program), groups): ((Group, &ProgramName), Vec<Group>)| {
        let warms_up = program.warms_up();
        let (least, longest) = if warms_up { WARM_UP } else { START_UP };
        let lines: BTreeSet<Vec<&[u8]>> = groups.iter().map(|group| facts.args(*group)).collect();
        let has_children = |group: &Group| {
            let process = facts.process(*group);
            process.is_some_and(|process| !process.children.is_empty())
        };
        let works = groups.iter().filter_map(|group| facts.execution(*group));
        let mut works: Vec<u64> = works.map(|execution| execution.on_cpu).collect();
        works.sort_unstable();
        let count = works.len();
        let Quartiles { lower, upper } = Quartiles::of_sorted(&works)?;
        let is_short = (SHORT.1 / 2..longest).contains(&upper);
        let is_equal = lower.saturating_mul(4) >= upper.saturating_mul(3);
        // Executions with equal command lines are repeated work, which other advice covers.
        let differ = lines.len() * 2 > count;
        if count < least || !is_short || !is_equal || !differ || groups.iter().any(has_children) {
            return None;
        }
        let set = facts.set(groups.iter().copied());
        // The threads of one program also wait for each other's CPUs. The simulation knows the waits for those of others.
        let time = facts.on_path(&set, |_, _| true);
        let asleep = facts.on_path(&set, |kind, _| kind == TimeKind::Sleep);
        // Sleeps that take less than half of the time are naps of a starting runtime, which the change saves as well.
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
            action: if warms_up {
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
