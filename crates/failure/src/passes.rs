//! Sorts programs by how they treat the failure of a child.

use tr_analyze::model::{Analysis, Process, ProcessIx};
use tr_analyze::status::{self, INTERRUPT};
use tr_format::event::Ktime;
use tr_programs::job_tools::{Starts, ASKING_OPTIONS, KEEPS_GOING};
use tr_programs::table;
use tr_programs::table::utilities::{self, UtilityUse};
use tr_programs::tools::{Children, Family, Role};
use tr_programs::words;

use tr_insight::processes::roles::{role, runs_jobs, tool};
use tr_insight::processes::{exit, label};

/// The largest number of processes in a chain of failures, or of ancestors of a process, that are examined. In a forged
/// file, all processes may form one chain, and a search must not walk the whole chain for each process.
pub(super) const LONGEST_CHAIN: usize = 64;

/// The largest number of children of one process, or of entries in one thread's timeline, that are examined for each
/// failure. This bounds the work.
pub(super) const MOST_EXAMINED: usize = 256;

/// The way in which a program treats the failure of one of its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passes {
    /// The program is a shell, which ends with the exit status of one of its commands.
    Status,
    /// The program fails if any of its children fails.
    Any,
    /// The program runs tests, which may start programs that are expected to fail.
    Tests,
    /// The program is of unknown kind. Its failure counts as caused by a child if the program ends right after that
    /// child.
    Last,
}

pub(super) fn passes(process: &Process) -> Passes {
    let first = process.argv.args().next().unwrap_or_default();
    let interpreter = table::by_path(first.strip_prefix(b"-").unwrap_or(first));
    match role(process) {
        Some(Role::Jobs) => return Passes::Any,
        Some(Role::Tests) => return Passes::Tests,
        Some(Role::Configure) => return Passes::Last,
        _ => {}
    }
    match children(process) {
        Children::Fail
        | Children::FailOrOwn
        | Children::FailLate
        | Children::FailUnlessOptional
        | Children::FailIfNamed => Passes::Any,
        _ if interpreter.is_some_and(|tool| tool.children == Children::Script) => Passes::Status,
        Children::Unknown | Children::Script | Children::Status => Passes::Last,
    }
}

/// Whether a process is a shell, a build tool or a test runner, and was killed by a signal that was sent to this
/// process itself. If a signal kills only a child of such a program, the program exits with a status. SIGINT does not
/// count, because a shell whose child was killed by SIGINT also sends SIGINT to itself.
pub(super) fn is_killed_itself(process: &Process) -> bool {
    let signal = exit::killed_by(process.status);
    let exits = || passes(process) == Passes::Status || runs_jobs(process);
    signal.is_some_and(|number| number != INTERRUPT) && exits()
}

/// The time at which a process executed its last program, or at which it started if it executed none. Children that
/// started before this time were not started by the last program.
pub(super) fn program_start(process: &Process) -> Ktime {
    let last = process.execs.last();
    last.map_or(process.start, |exec| exec.start)
}

/// Whether a process is a build tool or a test runner whose failure always counts, even if the script that runs this
/// tool ignores the exit status. Two kinds of tools do not count: a make that runs no recipe (`-n`, `-q`), and a tool
/// that runs the commands in its arguments (xargs).
pub(super) fn decides(process: &Process) -> bool {
    let jobs = tool(process).and_then(|tool| tool.jobs);
    let asks = |letters: &str| !letters.is_empty() && has_option(process, letters, ASKING_OPTIONS);
    match role(process) {
        Some(Role::Jobs) => jobs.is_none_or(|jobs| {
            let runs_any_command = jobs.starts == Some(Starts::Listed);
            !runs_any_command && !asks(jobs.asks)
        }),
        Some(Role::Tests) => true,
        _ => false,
    }
}

/// Whether a program builds or tests something: a compiler or its driver, a linker, or a tool that runs jobs or tests.
/// Scripts hardly ever run such a program only to check something.
pub(super) fn builds(process: &Process) -> bool {
    let by_role = matches!(
        role(process),
        Some(Role::Compiler | Role::Linker | Role::Jobs | Role::Tests)
    );
    let fails_with = children(process);
    by_role
        || matches!(
            fails_with,
            Children::Fail | Children::FailOrOwn | Children::FailLate
        )
}

/// Whether the program of a process fails if one of its children fails, and on which conditions. A program that is not
/// in the table of known tools gets `Unknown`.
pub(super) fn children(process: &Process) -> Children {
    tool(process).map_or(Children::Unknown, |tool| tool.children)
}

pub(super) fn family(process: &Process) -> Option<Family> {
    Some(tool(process)?.family)
}

/// The longest time in nanoseconds that a program takes to end if it ends at once because a child failed. A guess:
/// runtimes that clean up on a busy machine need some hundred milliseconds.
pub(super) const AT_ONCE: u64 = 500_000_000;

/// Whether scripts use the program of a process for the given purpose, for example to clean up or to check something.
pub(super) fn has_use(process: &Process, which: UtilityUse) -> bool {
    label::program(process).uses().contains(&which)
}

/// Whether a process runs a program that prints facts about the machine, such as installed packages (`pkg-config`).
pub(super) fn asks_for_packages(process: &Process) -> bool {
    tool(process).is_some_and(|tool| tool.answers)
}

/// Whether a process runs a program with which scripts check something (`test`, `grep -q`). The failure of such a
/// program is a reason for the failure of a script only if the script ends right afterwards with the program's status.
pub(super) fn is_question(process: &Process) -> bool {
    let asks_by_verb = || label::program(process).answers_by_verb();
    asks_for_packages(process) || has_use(process, UtilityUse::Question) || asks_by_verb()
}

/// Whether a process is a subshell, or runs one of the programs with which a configure script cleans up at its end.
pub(super) fn is_tidying(process: &Process) -> bool {
    process.execs.is_empty() || has_use(process, UtilityUse::Tidying)
}

/// Whether a process runs a program with which a script cleans up, waits or prints a report.
pub(super) fn is_report(process: &Process) -> bool {
    has_use(process, UtilityUse::Tidying) || has_use(process, UtilityUse::Report)
}

/// The words in the names and arguments of programs that undo what a script has set up, separated by spaces. (Small
/// programs for this purpose are in the table of utilities.) A trap runs such a program after the failure that ended
/// its shell.
const UNDOING_WORDS: &str =
    "clean cleanup destroy down purge remove rollback shutdown stop teardown undeploy unmount";

/// The number of arguments at the start of a command line that are searched for a word such as "cleanup", which shows
/// that the program undoes something. A guess: these arguments are an interpreter, a script, the script's subcommand
/// and one more argument.
const UNDOING_ARGS: usize = 4;

/// Whether a process undoes what a script has set up, by a word such as "cleanup" or "rm" at the start of its command
/// line. Compilers, test runners and other tools with a role are excluded, because such a word can be in the name of
/// their file (`test_cleanup.py`).
pub(super) fn undoes(process: &Process) -> bool {
    let args = process.argv.args().take(UNDOING_ARGS);
    let names = args.filter(|arg| !arg.starts_with(b"-") && !arg.contains(&b' '));
    let mut names = names.filter_map(|arg| arg.rsplit(|byte| *byte == b'/').next());
    !process.execs.is_empty()
        && (role(process).is_none() || role(process) == Some(Role::Shell))
        && names.any(|name| {
            let mut words = name.split(|byte| !byte.is_ascii_alphabetic());
            words.any(|word| words::has(UNDOING_WORDS, word) || is_undoing(word))
        })
}

fn is_undoing(program: &[u8]) -> bool {
    let program = std::str::from_utf8(program).unwrap_or_default();
    utilities::uses(program).contains(&UtilityUse::Undoing)
}

/// Whether recipes and scripts often ignore the failure of a process's program.
pub(super) fn is_often_ignored(process: &Process) -> bool {
    has_use(process, UtilityUse::Ignored)
}

/// Whether a process runs a program that exits with the status of the program it runs, such as `env` or `nice`.
pub(super) fn passes_status(process: &Process) -> bool {
    children(process) == Children::Status || has_use(process, UtilityUse::Wrapper)
}

/// Whether a build tool goes on with other work after the failure of a child, and fails only at its own end. Compiler
/// drivers and xargs always go on, and other tools do so if an option requests it.
pub(super) fn goes_on(analysis: &Analysis, ix: ProcessIx) -> bool {
    let process = analysis.process(ix);
    match children(process) {
        Children::FailLate | Children::FailIfNamed => true,
        // With such an option, npm also runs the scripts of the other packages after a failure.
        Children::FailUnlessOptional => has_option(process, "", KEEPS_GOING),
        _ => analysis
            .lineage(ix)
            .take(LONGEST_CHAIN)
            .any(|ix| keeps_going(analysis.process(ix))),
    }
}

/// Whether a process is one of the jobs that the command line of GNU parallel names. parallel also runs programs for
/// its own use, and some of them fail without consequences.
pub(super) fn is_named_job(child: &Process, parallel: &Process) -> bool {
    let Some(tool) = tool(parallel) else {
        return false;
    };
    let name = tool.name();
    let mut words = parallel
        .argv
        .args()
        .skip_while(|arg| table::by_path(arg).is_none_or(|tool| tool.name() != name))
        .skip(1)
        .peekable();
    let jobs = tool.jobs;
    while let Some(option) = words.next_if(|word| word.starts_with(b"-")) {
        words.next_if(|value| jobs.is_some_and(|jobs| jobs.takes(option, value)));
    }
    let words: Vec<&[u8]> = words.take_while(|word| !word.starts_with(b":::")).collect();
    let command = words.join(&b' ');
    let command = command
        .split(|byte| *byte == b'{')
        .next()
        .unwrap_or_default();
    let job: Vec<&[u8]> = child.argv.args().collect();
    !command.is_empty() && words::contains(&job.join(&b' '), command)
}

/// Whether a build tool has an option such as `-k` of make, with which the tool goes on after a failure.
fn keeps_going(process: &Process) -> bool {
    let jobs = tool(process).and_then(|tool| tool.jobs);
    let letters = jobs.map_or("", |jobs| jobs.keep_going);
    runs_jobs(process) && has_option(process, letters, KEEPS_GOING)
}

/// Whether a make's command line has the option `-j` or `--jobs`, whatever its number is.
pub(super) fn is_parallel(make: &Process) -> bool {
    let mut args = make.argv.args();
    has_option(make, "j", "--jobs") || args.any(|arg| arg.starts_with(b"--jobs="))
}

/// Whether an option of a make, or of a make that is its ancestor, requests to ignore all failures of jobs.
pub(super) fn ignores_failures(analysis: &Analysis, ix: ProcessIx) -> bool {
    if family(analysis.process(ix)) != Some(Family::Make) {
        return false;
    }
    let mut makes = analysis
        .lineage(ix)
        .take(LONGEST_CHAIN)
        .map(|ix| analysis.process(ix))
        .filter(|process| family(process) == Some(Family::Make));
    makes.any(|process| has_option(process, "i", "--ignore-errors"))
}

/// Whether the arguments of a build tool contain one of the short options whose letters are in `letters`, or one of the
/// long options in `long`.
fn has_option(process: &Process, letters: &str, long: &str) -> bool {
    let args = || process.argv.args().skip(1);
    let jobs = tool(process).and_then(|tool| tool.jobs.as_ref());
    let is_short = jobs.is_some_and(|jobs| {
        let mut given = jobs.letters(args());
        given.any(|letter| letters.as_bytes().contains(&letter))
    });
    is_short || args().any(|arg| words::has(long, arg))
}

/// A child that took at least the script's wall time divided by this number, a twentieth, did more than a check. Fitted
/// to the failures that the script `failures.py` plants in builds.
pub(super) const LONG_CHILD: u64 = 20;

/// The time in nanoseconds within which a program must end after the failure of a child, so that this failure is taken
/// for the reason: half a second, or a twentieth of the program's life if that is longer.
pub(super) fn soon(process: &Process) -> u64 {
    (process.wall() / 20).max(AT_ONCE)
}

/// Whether a process ended with an exit status (126, 127) by which shells and make report a program that cannot be
/// started.
pub(super) fn is_unstarted(process: &Process) -> bool {
    process.status.is_some_and(status::is_unstarted)
}

pub(super) fn code(process: &Process) -> Option<u32> {
    process.status.map(status::in_shell)
}

pub(super) fn fails(process: &Process) -> bool {
    exit::failed(process.status)
}

/// Whether a process runs a program (such as a download) whose result a script often does not need, so that its failure
/// is often ignored.
pub(super) fn is_optional(process: &Process) -> bool {
    let program = label::program(process);
    utilities::uses(program.name()).contains(&UtilityUse::Optional)
}

/// Whether a process is a step of a script: it executed a program that does more than report, clean up or check
/// something.
pub(super) fn is_step(process: &Process) -> bool {
    !process.execs.is_empty() && !is_report(process) && !is_question(process)
}
