//! Programs by how they treat the failure of a child.

use tr_analyze::model::{Analysis, Process, ProcessIx};
use tr_analyze::status::{self, INTERRUPT};
use tr_format::event::Ktime;
use tr_programs::command_line;
use tr_programs::job_tools::Starts;
use tr_programs::table;
use tr_programs::table::utilities::{self, UtilityUse};
use tr_programs::tools::{Children, Family, Role, Tool};
use tr_programs::words;

use crate::{exit, label};

/// The most processes of a chain, or of the ones above a process, that are looked at. A file can
/// claim a chain of all its processes, and each look must not cost its length.
pub(super) const DEEP: usize = 64;

/// The most children of one process, or stretches of one thread, that are looked at for each failure.
pub(super) const NEAR: usize = 256;

/// A program's reaction to the failure of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passes {
    /// A shell ends with the status of one of its commands.
    Status,
    /// The program fails if a child does.
    Any,
    /// The program runs tests, which may make what they start fail on purpose.
    Tests,
    /// Nothing is known of it: it fails if it ends at once.
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

/// Whether a signal killed a shell, or a tool that runs jobs. It was sent to that itself: of a child's death such a
/// program exits, but for SIGINT, which a shell sends itself then.
pub(super) fn is_killed_itself(process: &Process) -> bool {
    let signal = exit::killed_by(process.status);
    let exits = || passes(process) == Passes::Status || runs_jobs(process);
    signal.is_some_and(|number| number != INTERRUPT) && exits()
}

/// When a process's program began: children of an earlier one are none of its.
pub(super) fn program(process: &Process) -> Ktime {
    let last = process.execs.last();
    last.map_or(process.start, |exec| exec.start)
}

/// A tool whose failure is that of a job or a test: nobody asks by it.
pub(super) fn runs_jobs(process: &Process) -> bool {
    matches!(role(process), Some(Role::Jobs | Role::Tests))
}

/// A tool whose failure is one, whatever a script makes of it: a build or tests, no make that says what it would do, and
/// nothing that runs any command.
pub(super) fn decides(process: &Process) -> bool {
    let jobs = tool(process).and_then(|tool| tool.jobs);
    let asks = |letters: &str| !letters.is_empty() && has_option(process, letters, ASKS);
    match role(process) {
        Some(Role::Jobs) => jobs.is_none_or(|jobs| {
            let runs_any_command = jobs.starts == Some(Starts::Listed);
            !runs_any_command && !asks(jobs.asks)
        }),
        Some(Role::Tests) => true,
        _ => false,
    }
}

/// Whether a program builds or tests something: a compiler or its driver, a linker, a tool that runs jobs or tests. Scripts
/// hardly ever run it for a question.
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

/// The long options of a make that says what it would do.
pub(super) const ASKS: &str = "--dry-run --just-print --print-data-base --question --recon --touch";

pub(super) fn role(process: &Process) -> Option<Role> {
    command_line::role(&label::program(process), &process.argv)
}

fn tool(process: &Process) -> Option<&'static Tool> {
    let program = label::program(process);
    let (tool, _) = command_line::tool_of(&program)?;
    Some(tool)
}

/// The consequence of a child's failure for the tool that a process runs.
pub(super) fn children(process: &Process) -> Children {
    tool(process).map_or(Children::Unknown, |tool| tool.children)
}

pub(super) fn family(process: &Process) -> Option<Family> {
    Some(tool(process)?.family)
}

/// A program that ends at once for a child's failure does so within this time, in ns. A guess: runtimes that clean up
/// beside other tasks need some hundred milliseconds.
pub(super) const AT_ONCE: u64 = 500_000_000;

/// Whether scripts do this with a process's program.
pub(super) fn has_use(process: &Process, which: UtilityUse) -> bool {
    utilities::uses(&label::program(process)).contains(&which)
}

/// The verbs with which git says something about a repository, separated by spaces.
const GIT_ANSWERS: &str =
    "config describe merge-base name-rev remote rev-parse show-ref symbolic-ref";

/// A program that scripts ask. It is the reason of a failure only if the script ends with its status right after it.
pub(super) fn is_question(process: &Process) -> bool {
    let asks_git = || {
        let program = label::program(process);
        let verb = program.strip_prefix("git ");
        verb.is_some_and(|verb| words::has(GIT_ANSWERS, verb.as_bytes()))
    };
    tool(process).is_some_and(|tool| tool.answers)
        || has_use(process, UtilityUse::Question)
        || asks_git()
}

/// Whether a child is a probe of its parent: a check of a configuration. It mostly fails because something is not
/// there, and the parent goes on without that.
pub(crate) fn is_probe(child: &Process, parent: &Process) -> bool {
    let probes = tool(parent).is_some_and(|tool| tool.probes);
    if !probes || role(parent) != Some(Role::Configure) {
        return false;
    }
    // A build that a configuration starts is none, unless it is that of a check.
    let is_check = |arg: &[u8]| {
        PROBED
            .iter()
            .any(|name| words::contains(arg, name.as_bytes()))
    };
    !runs_jobs(child) || child.argv.args().any(is_check)
}

/// The names of what cmake's checks build.
const PROBED: [&str; 4] = ["cmTC_", "CMakeScratch", "CMakeTmp", "TryCompile"];

/// Whether a process is a subshell, or one of the programs that a configure script ends with.
pub(super) fn is_tidying(process: &Process) -> bool {
    process.execs.is_empty() || has_use(process, UtilityUse::Tidying)
}

/// Whether a process is a program with which a script cleans up, waits or reports.
pub(super) fn is_report(process: &Process) -> bool {
    has_use(process, UtilityUse::Tidying) || has_use(process, UtilityUse::Report)
}

/// The programs beside those that answer whose failures recipes and scripts often ignore (`-mkdir out`), separated by
/// spaces.
const IGNORED: &str = "cat chmod df du killall ln mkdir pkill rm rmdir touch umount unlink which";

/// Whether recipes and scripts often ignore the failure of a process's program.
pub(super) fn is_often_ignored(process: &Process) -> bool {
    words::has(IGNORED, label::program(process).as_bytes())
}

/// Whether a program exits with the status of the one that it runs.
pub(super) fn passes_status(process: &Process) -> bool {
    children(process) == Children::Status || has_use(process, UtilityUse::Wrapper)
}

/// Whether a tool goes on after the failure of a child, and fails in the end: all of a driver's or of xargs's, and
/// what was told to.
pub(super) fn goes_on(analysis: &Analysis, ix: ProcessIx) -> bool {
    let process = analysis.process(ix);
    match children(process) {
        Children::FailLate | Children::FailIfNamed => true,
        _ => analysis
            .lineage(ix)
            .take(DEEP)
            .any(|ix| keeps_going(analysis.process(ix))),
    }
}

/// The long options of build tools that go on after a failure, separated by spaces.
const KEEPS_GOING: &str = "--keep-going --no-fail-fast --continue --workspaces -ws";

/// Whether the command line of a GNU parallel names a process as a job: it runs programs of its own as well, some of
/// which fail.
pub(super) fn is_named_job(child: &Process, parallel: &Process) -> bool {
    let mut words = parallel
        .argv
        .args()
        .skip_while(|arg| !arg.ends_with(b"parallel"))
        .skip(1)
        .peekable();
    while let Some(option) = words.next_if(|word| word.starts_with(b"-")) {
        // `-j 4`
        if option.len() == 2 {
            words.next();
        }
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

/// Whether a build tool was told to go on after a failure.
fn keeps_going(process: &Process) -> bool {
    let jobs = tool(process).and_then(|tool| tool.jobs);
    let letters = jobs.map_or("", |jobs| jobs.keep_going);
    runs_jobs(process) && has_option(process, letters, KEEPS_GOING)
}

/// Whether a make's command line lets it run several jobs at once.
pub(super) fn is_parallel(make: &Process) -> bool {
    let mut args = make.argv.args();
    has_option(make, "j", "--jobs") || args.any(|arg| arg.starts_with(b"--jobs="))
}

/// Whether a make, or one above it, was told that no job's failure counts.
pub(super) fn ignores_failures(analysis: &Analysis, ix: ProcessIx) -> bool {
    if family(analysis.process(ix)) != Some(Family::Make) {
        return false;
    }
    let mut makes = analysis
        .lineage(ix)
        .take(DEEP)
        .map(|ix| analysis.process(ix))
        .filter(|process| family(process) == Some(Family::Make));
    makes.any(|process| has_option(process, "i", "--ignore-errors"))
}

/// Whether one of the short options of a tool, by their letters, or one of the long ones is among its arguments.
fn has_option(process: &Process, letters: &str, long: &str) -> bool {
    let args = || process.argv.args().skip(1);
    let jobs = tool(process).and_then(|tool| tool.jobs.as_ref());
    let is_short = jobs.is_some_and(|jobs| {
        let mut given = jobs.letters(args());
        given.any(|letter| letters.as_bytes().contains(&letter))
    });
    is_short || args().any(|arg| words::has(long, arg))
}

/// A child that took a part of a script's time is no mere question: one in so many. Fitted to the plants of
/// `failures.py`.
pub(super) const LONG: u64 = 20;

/// A program that ends for a child's failure does so within this time, in ns: half a second, or a
/// twentieth of its life.
pub(super) fn soon(process: &Process) -> u64 {
    (process.wall() / 20).max(AT_ONCE)
}

/// The child of a shell or of make that says so has executed nothing.
pub(super) fn is_unstarted(process: &Process) -> bool {
    process.status.is_some_and(status::is_unstarted)
}

pub(super) fn code(process: &Process) -> Option<u32> {
    process.status.map(status::in_shell)
}

pub(super) fn fails(process: &Process) -> bool {
    exit::failed(process.status)
}

/// The programs that fetch or ask for what a script can do without, separated by spaces: `curl … || true`.
const OPTIONAL: &str = "curl docker git podman rsync scp service ssh systemctl wget";

/// Whether a process fetches or asks for what a script can do without.
pub(super) fn is_optional(process: &Process) -> bool {
    let program = label::program(process);
    let name = program.split(' ').next().unwrap_or_default();
    words::has(OPTIONAL, name.as_bytes())
}

/// Whether a process is a step of a script: a program that is run for its work.
pub(super) fn is_step(process: &Process) -> bool {
    !process.execs.is_empty() && !is_report(process) && !is_question(process)
}
