//! Did two equal executions of a program have equal inputs? The recording has no contents of files, so this module
//! looks for signs that the inputs differ: pipes, programs that change files, and checks whose results decide about
//! repetitions.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::model::ProcessIx;
use tr_analyze::programs::Group;
use tr_analyze::timeline::Actor;
use tr_format::event::{Ktime, Reason};
use tr_programs::program_name::ProgramName;
use tr_programs::table::utilities::UtilityUse;

use crate::facts::BuildFacts;
use tr_insight::processes::exit;

/// The largest number of programs that ran between two equal executions and are examined for changes of files. This
/// bounds the work for a forged file with thousands of programs.
const EDITS: usize = 1000;
/// The least CPU time in ns for which an execution that repeats another one gets advice. A guess: avoiding a shorter
/// execution costs as much as repeating it.
pub(super) const LEAST_REPEAT: u64 = 20_000_000;
/// The largest number of ancestors of an execution that are searched for the program that started it. A compiler is
/// fewer levels below its build tool. This bounds the work.
pub(super) const MOST_ANCESTORS: usize = 8;
/// The longest time in ns between the starts of two programs of one pipe. A guess: a shell starts them within some
/// milliseconds, and later on a busy machine.
const PIPE: u64 = 50_000_000;

/// The signs in a recording that equal executions of a program had different inputs.
pub(super) struct Inputs<'f, 'a> {
    facts: &'f BuildFacts<'a>,
    edits: Vec<Edit<'f>>,
    /// The times at which executions of programs checked something, from [`questions`]. They are computed only if they
    /// are needed, because most builds repeat nothing.
    questions: OnceCell<BTreeMap<Group, Vec<Ktime>>>,
    /// For each execution that writes into a pipe of another one, whether it reads a pipe itself. One program may write
    /// for many others, so the answers are kept.
    reads_pipes: RefCell<BTreeMap<Group, bool>>,
}

impl<'f, 'a> Inputs<'f, 'a> {
    pub fn new(facts: &'f BuildFacts<'a>) -> Inputs<'f, 'a> {
        Inputs {
            facts,
            edits: edits(facts),
            questions: OnceCell::new(),
            reads_pipes: RefCell::default(),
        }
    }

    /// The origin of the input of an execution of a program.
    pub fn input(&self, group: Group) -> Input {
        let by = writers(self.facts, group);
        let source = match by.iter().copied().collect::<Vec<Writer>>().as_slice() {
            [Writer::Execution(source)] => Some(*source),
            _ => None,
        };
        match source.filter(|source| !self.reads_a_pipe(*source)) {
            Some(source) => Input::Of(source),
            None if !by.is_empty() || is_in_a_pipe(self.facts, group) => Input::Unknown,
            None => Input::Files,
        }
    }

    /// Whether an execution of a program waited for data from a pipe.
    fn reads_a_pipe(&self, group: Group) -> bool {
        let mut kept = self.reads_pipes.borrow_mut();
        let reads = kept.entry(group);
        *reads.or_insert_with(|| !writers(self.facts, group).is_empty())
    }

    /// Whether something happened between two equal executions by which the inputs of the later one may differ.
    pub fn may_differ(&self, first: Group, again: Group) -> bool {
        let questions = || self.questions.get_or_init(|| questions(self.facts));
        is_edited(self.facts, &self.edits, first, again)
            || is_asked_between(self.facts, questions(), first, again)
    }
}

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

/// The origin of the input of an execution of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// The program reads only files, as far as the recording shows.
    Files,
    /// The program reads from a pipe into which this execution of another program writes. The other program reads no
    /// pipe itself.
    Of(Group),
    /// The program may read from a pipe, and it is not known who writes into this pipe.
    Unknown,
}

/// The cause of the end of an execution's wait for data from a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Writer {
    Execution(Group),
    Unknown,
}

/// The writers into the pipes for whose data an execution of a program waited. Descendants of the execution are left
/// out.
fn writers(facts: &BuildFacts<'_>, group: Group) -> BTreeSet<Writer> {
    let analysis = facts.analysis;
    let (Some(timeline), Some(execution)) = (&analysis.timeline, facts.execution(group)) else {
        return BTreeSet::new();
    };
    let is_own = |process| {
        analysis
            .lineage(process)
            .any(|above| above == execution.process)
    };
    let threads = &analysis.process(execution.process).threads;
    let stretches = threads.iter().flat_map(|thread| {
        let stretches = timeline.since(*thread, execution.start);
        stretches.take_while(|stretch| stretch.from < execution.end)
    });
    let reads = stretches.filter(|stretch| stretch.reason == Reason::PipeRead);
    let writers = reads.filter_map(|wait| match wait.waker() {
        Actor::Thread(waker) => {
            let process = analysis.thread(waker).process;
            let writer = facts.groups.at(process, wait.to);
            (!is_own(process)).then_some(writer.map_or(Writer::Unknown, Writer::Execution))
        }
        _ => Some(Writer::Unknown),
    });
    writers.collect()
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

/// Whether, between two equal executions of a program, another program changed a file that is named, apart from its
/// directory, by the arguments of that program and of the later execution. A program that may change files which its
/// arguments do not name, such as `git checkout`, may have changed any file.
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

/// Whether a program compares two files. Scripts use the exit status of such a program to decide whether a result is
/// stable.
fn compares(program: &ProgramName) -> bool {
    program.uses().contains(&UtilityUse::Compare) || program.has_verb("git", "diff")
}

/// For each execution of a program, the sorted times at which checks of this execution ended. A check is a program that
/// the execution started, and whose exit status may decide whether the execution repeats other programs. Programs that
/// compare files count as checks. A command line that ran several times until the result (success or failure) changed
/// also counts as a check.
fn questions(facts: &BuildFacts<'_>) -> BTreeMap<Group, Vec<Ktime>> {
    let mut asked: BTreeMap<Group, Vec<Ktime>> = BTreeMap::new();
    // The times at which the runs of one command line ended, each with whether the run failed.
    type Ends = Vec<(Ktime, bool)>;
    let mut equal: BTreeMap<(Group, Vec<&[u8]>), Ends> = BTreeMap::new();
    for (group, execution) in facts.all() {
        let (Some(owner), Some(exec)) = (execution.owner, facts.exec(group)) else {
            continue;
        };
        if compares(&execution.program) {
            asked.entry(owner).or_default().push(execution.end);
        } else if !exec.argv.truncated() && execution.on_cpu < LEAST_REPEAT {
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

/// Whether a program that started two equal executions, directly or through others, ran a check between these
/// executions. The result of the check may decide how often the program repeats the executions (see [`questions`]).
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
        owners.take(MOST_ANCESTORS)
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
