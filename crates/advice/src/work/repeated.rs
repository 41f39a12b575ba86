//! Does a program do the same work twice? Advises to keep the result of executions with equal command lines, about
//! equal CPU time, and equal inputs as far as they are known.

use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::model::ProcessIx;
use tr_analyze::programs::Group;
use tr_analyze::what_if::Without;
use tr_programs::program_name::ProgramName;
use tr_programs::tools::Role;
use tr_text::phrase::Phrase;
use tr_text::units;

use crate::candidate::{largest, AdviceKind, Candidate, Certainty};
use crate::directories::{Directories, Directory};
use crate::facts::{BuildFacts, Execution};
use crate::work::inputs::{Input, Inputs, LEAST_REPEAT, MOST_ANCESTORS};
use tr_insight::processes::normal::{argument, Paths};

/// The least number of equal executions in direct succession that count as a loop on purpose, for example until a result
/// is stable, or for a benchmark. A guess: two equal executions may stand in two parts of a script.
const LOOP_RUNS: usize = 3;

/// A call of a program. Executions with equal calls may repeat work.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Call {
    program: ProgramName,
    /// The arguments, with the parts that differ between the runs of one build made equal.
    args: Vec<String>,
    /// The arguments of the program that writes the input of this program into a pipe; empty if there is none.
    source: Vec<String>,
    directory: Directory,
}

/// An execution of a program that could repeat work.
struct Equal {
    group: Group,
    /// The CPU time of the execution in nanoseconds.
    cpu: u64,
    /// The options of a compiler that only choose its warnings.
    lints: Vec<String>,
    /// The execution that writes the input of this one into a pipe; `None` if there is none.
    source: Option<Group>,
}

/// The executions of one program that repeat the work of earlier ones.
#[derive(Default)]
struct Again {
    groups: Vec<Group>,
    /// The CPU time in ns of the executions that repeat work.
    sum: u64,
    /// For repetitions in which two different build tools started the two executions: the tool that started the first
    /// execution, and the tool that started the later one. `None` stands for all other repetitions.
    builds: BTreeSet<Option<(Group, Group)>>,
    /// Whether the repeated executions of a compiler have other options for warnings than the earlier ones.
    have_other_lints: bool,
}

pub(super) fn candidates(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let inputs = Inputs::new(facts);
    let mut by_program: BTreeMap<ProgramName, Again> = BTreeMap::new();
    for (call, mut equal) in equal_executions(facts, &inputs) {
        if call.program.role() != Some(Role::Compiler) {
            let in_a_loop = in_a_loop(facts, &equal);
            equal.retain(|equal| !in_a_loop.contains(&equal.group));
        }
        let again = by_program.entry(call.program).or_default();
        again.add(facts, &inputs, &equal);
    }
    largest(by_program, |(_, again)| again.sum)
        .into_iter()
        .filter_map(|(program, again)| again.candidate(facts, &program))
        .collect()
}

/// The executions of programs that could repeat work, by their calls, in the order of their starts.
fn equal_executions(facts: &BuildFacts<'_>, inputs: &Inputs<'_, '_>) -> BTreeMap<Call, Vec<Equal>> {
    let cwd = String::from_utf8_lossy(&facts.analysis.meta.cwd);
    let directories = Directories::new(facts);
    let tried_again = facts.groups_of(facts.tried_again());
    let tried_again = facts.below(&tried_again);
    let mut equal: BTreeMap<Call, Vec<Equal>> = BTreeMap::new();
    for (group, execution) in facts.all() {
        let Some(exec) = facts.exec(group) else {
            continue;
        };
        if execution.on_cpu < LEAST_REPEAT
            || !exec.ended
            || exec.argv.truncated()
            || tried_again.get(group as usize) == Some(&true)
        {
            continue;
        }
        let normal = |args: Vec<&[u8]>| -> Vec<String> {
            let args = args.into_iter();
            let args = args.map(|arg| argument(arg, &cwd, &[], Paths::Whole));
            args.collect()
        };
        let source = match may_repeat(execution, || inputs.input(group)) {
            Input::Unknown => continue,
            Input::Files => None,
            Input::Of(source) => Some(source),
        };
        let (args, lints) = execution.program.without_lints(&facts.args(group));
        let (args, lints) = (normal(args), normal(lints));
        // A configure script overwrites the same file (conftest) for each test, so equal command lines have different
        // inputs.
        if args.iter().any(|arg| arg.contains("conftest")) || args.len() < 2 {
            continue;
        }
        let directory = directories.of(execution, exec);
        let call = Call {
            program: execution.program.clone(),
            args,
            source: source.map_or(Vec::new(), |source| normal(facts.args(source))),
            directory,
        };
        let of = equal.entry(call).or_default();
        of.push(Equal {
            group,
            cpu: exec.times.on_cpu,
            lints,
            source,
        });
    }
    equal
}

/// The executions, among equal ones in the order of their starts, that one process started in direct succession.
/// The process does nothing else with the result of each of them than to decide whether it needs another one. A test
/// runner is left out: each of its tests may make the same fixture.
fn in_a_loop(facts: &BuildFacts<'_>, equal: &[Equal]) -> BTreeSet<Group> {
    let analysis = facts.analysis;
    // The process that started an execution, and the execution's place among the children of that process.
    let place = |equal: &Equal| -> Option<(ProcessIx, usize)> {
        let process = facts.execution(equal.group)?.process;
        let (parent, start) = {
            let process = analysis.process(process);
            (process.parent?, process.start)
        };
        if facts.role(facts.owner(equal.group)?) == Some(Role::Tests) {
            return None;
        }
        let children = &analysis.process(parent).children;
        let first = children.partition_point(|child| analysis.process(*child).start < start);
        let mut from_first = children.get(first..)?.iter();
        let place = from_first.position(|child| *child == process)?;
        Some((parent, first + place))
    };
    let places: Vec<Option<(ProcessIx, usize)>> = equal.iter().map(place).collect();
    let follows = |first: &Option<(ProcessIx, usize)>, next: &Option<(ProcessIx, usize)>| {
        first
            .zip(*next)
            .is_some_and(|(first, next)| (first.0, first.1 + 1) == next)
    };
    let mut looped = BTreeSet::new();
    let mut from = 0;
    for run in places.chunk_by(follows) {
        let executions = equal.iter().skip(from).take(run.len());
        if run.len() >= LOOP_RUNS {
            looped.extend(executions.map(|equal| equal.group));
        }
        from += run.len();
    }
    looped
}

/// The input by which a program with an equal command line does equal work; unknown if it may do other work with the
/// same input. `input` finds the origin of the program's input; the input of a compiler is in files.
fn may_repeat(execution: &Execution, input: impl Fn() -> Input) -> Input {
    match execution.program.role() {
        _ if execution.program.converges() => Input::Unknown,
        Some(Role::Shell | Role::Jobs | Role::Tests) => Input::Unknown,
        Some(Role::Compiler) => Input::Files,
        _ => input(),
    }
}

impl Again {
    /// Adds the executions that repeat the first one of some equal executions, which are in the order of their starts.
    fn add(&mut self, facts: &BuildFacts<'_>, inputs: &Inputs<'_, '_>, equal: &[Equal]) {
        let Some((first, again)) = equal.split_first() else {
            return;
        };
        // If the CPU times differ much, the executions did different work, because the contents of their input files
        // may differ. Equal executions that run at the same time are workers of one program and repeat nothing.
        let end = facts.execution(first.group).map(|execution| execution.end);
        let alike = again.iter().filter(|other| {
            let sources = first.source.zip(other.source);
            other.cpu.saturating_mul(2) <= first.cpu.saturating_mul(3)
                && first.cpu.saturating_mul(2) <= other.cpu.saturating_mul(3)
                && facts
                    .execution(other.group)
                    .map(|execution| execution.start)
                    >= end
                && !inputs.may_differ(first.group, other.group)
                && !sources.is_some_and(|(first, other)| inputs.may_differ(first, other))
        });
        for other in alike {
            self.groups.push(other.group);
            self.sum = self.sum.saturating_add(other.cpu);
            self.have_other_lints |= other.lints != first.lints;
            let tools = builds_of(facts, first.group).zip(builds_of(facts, other.group));
            self.builds
                .insert(tools.filter(|(first, second)| first != second));
        }
    }

    fn candidate(self, facts: &BuildFacts<'_>, program: &ProgramName) -> Option<Candidate> {
        let first = self.groups.first()?;
        let compiler = program.role() == Some(Role::Compiler);
        let (name, s) = facts.names(*first, self.groups.iter().copied());
        let work = units::time(self.sum);
        let builds: Vec<_> = self.builds.into_iter().collect();
        let (finding, again) = match builds.as_slice() {
            [Some((earlier, later))] if compiler => {
                let (earlier, later) = (facts.label(*earlier), facts.label(*later));
                (
                    Phrase::with([&name], |[name]| {
                        format!("{later} compiles again what {earlier} compiled: {name}, {work}")
                    }),
                    if self.have_other_lints {
                        "give both the same options for warnings, or "
                    } else {
                        "find out why it is out of date, or "
                    },
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
            action: if compiler && link_at_once(facts, &self.groups) {
                format!("{again}build it once and keep the result")
            } else if compiler {
                format!("{again}use a compiler cache (ccache, sccache)")
            } else {
                "do it once and keep the result, if its inputs are the same".into()
            },
            // The recording does not contain the files that programs read and write, so only for compilers the work is
            // surely repeated.
            certainty: Certainty::unsure_if(!compiler),
            without: Without::work(facts.set(self.groups.iter().copied())),
            cap: self.sum,
            evidence: self.groups,
            ..Candidate::of(AdviceKind::Repeated)
        })
    }
}

/// Whether most of the given compilations are of calls that compile and link at once, such as `gcc -o tool tool.c`.
/// Compiler caches leave such calls alone (ccache's manual, "called_for_link").
fn link_at_once(facts: &BuildFacts<'_>, compilations: &[Group]) -> bool {
    let linkers = facts.all().map(|(group, _)| group);
    let linkers = linkers.filter(|group| facts.role(*group) == Some(Role::Linker));
    // gcc starts collect2, which starts ld.
    let drivers: BTreeSet<Group> = linkers
        .filter_map(|linker| facts.owner(linker))
        .flat_map(|owner| [Some(owner), facts.owner(owner)])
        .flatten()
        .collect();
    let of_driver = |group: &&Group| {
        let driver = facts.owner(**group);
        driver.is_some_and(|driver| {
            facts.role(driver) == Some(Role::Compiler) && drivers.contains(&driver)
        })
    };
    compilations.iter().filter(of_driver).count() * 2 > compilations.len()
}

/// The nearest build tool that started an execution, directly or through others.
fn builds_of(facts: &BuildFacts<'_>, group: Group) -> Option<Group> {
    let mut above = facts.owner(group);
    for _ in 0..MOST_ANCESTORS {
        let owner = above?;
        if facts.role(owner) == Some(Role::Jobs) {
            return Some(owner);
        }
        above = facts.owner(owner);
    }
    None
}
