//! Programs by how they treat the failure of a child.

use tr_analyze::model::{Analysis, Process, ProcessIx};
use tr_analyze::status::{self, INTERRUPT};
use tr_format::event::Ktime;
use tr_programs::command_line;
use tr_programs::job_tools;
use tr_programs::tools;
use tr_programs::tools::{Family, Role};

use crate::{exit, label};

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
    let interpreter = tools::by_path(first.strip_prefix(b"-").unwrap_or(first));
    match role(process) {
        Some(Role::Jobs) => return Passes::Any,
        Some(Role::Tests) => return Passes::Tests,
        Some(Role::Configure) => return Passes::Last,
        _ => {}
    }
    match family(process) {
        Some(
            Family::Builder
            | Family::Cargo
            | Family::CargoNextest
            | Family::Cmake
            | Family::CompilerCache
            | Family::CompilerDriver
            | Family::Go
            | Family::Linker
            | Family::Meson
            | Family::Npm
            | Family::Npx
            | Family::Rustc
            | Family::Rustdoc,
        ) => Passes::Any,
        _ if interpreter.is_some_and(|tool| tool.family == Family::Shell) => Passes::Status,
        _ => Passes::Last,
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
    let asks = || has_option(process, b"npqt", ASKS);
    match family(process) {
        Some(Family::Xargs | Family::Parallel) => false,
        Some(Family::Make | Family::Ninja) => runs_jobs(process) && !asks(),
        _ => runs_jobs(process),
    }
}

/// The long options of a make that says what it would do.
pub(super) const ASKS: &str = "--dry-run --just-print --print-data-base --question --recon --touch";

pub(super) fn role(process: &Process) -> Option<Role> {
    command_line::role(&label::program(process), &process.argv)
}

pub(super) fn family(process: &Process) -> Option<Family> {
    let program = label::program(process);
    let (tool, _) = command_line::tool_of(&program)?;
    Some(tool.family)
}

/// A program that ends at once for a child's failure does so within this time, in ns.
pub(super) const AT_ONCE: u64 = 500_000_000;

/// The programs beside those of [`Family::Query`] that scripts run for their status, separated by spaces.
const QUESTIONS: &str =
    "[ cmp command diff egrep expr fgrep getent grep id kill ls pgrep pidof ping pkill rg test type";

/// A program that scripts ask. It is the reason of a failure only if the script ends with its status right after it.
pub(super) fn is_question(process: &Process) -> bool {
    let asked = || command_line::has(QUESTIONS, label::program(process).as_bytes());
    family(process) == Some(Family::Query) || asked()
}

/// Whether a child is a probe of its parent: a check of a configuration. It mostly fails because something is not
/// there, and the parent goes on without that.
pub(super) fn is_probe(child: &Process, parent: &Process) -> bool {
    let args = || parent.argv.args().skip(1);
    let is_setup = match family(parent) {
        Some(Family::Configure) => true,
        Some(Family::Meson) => role(parent) == Some(Role::Configure),
        Some(Family::Cmake) => !args().any(|arg| command_line::has(CMAKE_RUNS, arg)),
        _ => false,
    };
    if !is_setup {
        return false;
    }
    // A build that a configuration starts is none, unless it is that of a check.
    let is_check = |arg: &[u8]| PROBED.iter().any(|name| contains(arg, name.as_bytes()));
    !runs_jobs(child) || child.argv.args().any(is_check)
}

/// The options with which cmake does not configure, separated by spaces.
const CMAKE_RUNS: &str = "--build --install --open -E";

/// The names of what cmake's checks build.
const PROBED: [&str; 4] = ["cmTC_", "CMakeScratch", "CMakeTmp", "TryCompile"];

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// The programs that a configure script ends with, whatever it ends for, separated by spaces.
const TIDIES: &str = "cat cp date echo expr hostname mv rm sed sort tr uname uniq";

/// Whether a process is a subshell, or one of the programs that a configure script ends with.
pub(super) fn is_tidying(process: &Process) -> bool {
    process.execs.is_empty() || command_line::has(TIDIES, label::program(process).as_bytes())
}

/// The programs that run another one and exit with its status, separated by spaces.
const WRAPPERS: &str =
    "chroot dbus-run-session doas env faketime flock ionice nice nohup script setpriv setsid \
                        stdbuf strace sudo taskset time timeout unshare valgrind xvfb-run";

/// Whether a program exits with the status of the one that it runs.
pub(super) fn passes_status(process: &Process) -> bool {
    let is_known = matches!(family(process), Some(Family::Container | Family::Tr));
    is_known || command_line::has(WRAPPERS, label::program(process).as_bytes())
}

/// The most processes from a tool up whose options are looked at.
const DEEP: usize = 64;

/// Whether a tool goes on after the failure of a child, and fails in the end: all of a driver's or of xargs's, and
/// what was told to.
pub(super) fn goes_on(analysis: &Analysis, ix: ProcessIx) -> bool {
    let process = analysis.process(ix);
    match family(process) {
        Some(
            Family::CompilerCache
            | Family::CompilerDriver
            | Family::Linker
            | Family::Xargs
            | Family::Parallel,
        ) => true,
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
    !command.is_empty() && contains(&job.join(&b' '), command)
}

/// Whether a build tool was told to go on after a failure.
fn keeps_going(process: &Process) -> bool {
    let letters: &[u8] = match family(process) {
        Some(Family::Make | Family::Ninja) => b"k",
        _ => b"",
    };
    runs_jobs(process) && has_option(process, letters, KEEPS_GOING)
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
    makes.any(|process| has_option(process, b"i", "--ignore-errors"))
}

/// Whether one of the short options of a tool, by their letters, or one of the long ones is among its arguments.
fn has_option(process: &Process, letters: &[u8], long: &str) -> bool {
    let args = || process.argv.args().skip(1);
    let tool = family(process).and_then(job_tools::of);
    let is_short =
        tool.is_some_and(|tool| tool.letters(args()).any(|letter| letters.contains(&letter)));
    is_short || args().any(|arg| command_line::has(long, arg))
}

/// A child that took a part of a script's time is no mere question: one in so many.
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
