//! What a program makes of the failure of a child.

use tr_analyze::model::Process;
use tr_analyze::status::{self, INTERRUPT};
use tr_analyze::tools::{self, Family, Role};
use tr_format::event::Ktime;

use crate::{exit, label};

/// What a program makes of a child that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passes {
    /// A shell ends with the status of one of its commands.
    Status,
    /// It fails if a child does.
    Any,
    /// It runs tests: they may fail on purpose what they start.
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
            | Family::Linker
            | Family::Meson
            | Family::Npm
            | Family::Npx,
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
    signal.is_some_and(|it| it != INTERRUPT) && exits()
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
    let asks = || {
        let mut args = process.argv.args().skip(1);
        args.any(|arg| match arg {
            [b'-', b'-', ..] => label::has(ASKS, arg),
            [b'-', letters @ ..] => letters.iter().any(|it| b"npqt".contains(it)),
            _ => false,
        })
    };
    match family(process) {
        Some(Family::Xargs | Family::Parallel) => false,
        Some(Family::Make | Family::Ninja) => runs_jobs(process) && !asks(),
        _ => runs_jobs(process),
    }
}

/// The long options of a make that says what it would do.
pub(super) const ASKS: &str = "--dry-run --just-print --print-data-base --question --recon --touch";

pub(super) fn role(process: &Process) -> Option<Role> {
    label::role(&label::program(process), &process.argv)
}

pub(super) fn family(process: &Process) -> Option<Family> {
    let program = label::program(process);
    let (tool, _) = label::tool_of(&program)?;
    Some(tool.family)
}

/// A program that ends at once for a child's failure does so within this time, in ns.
pub(super) const AT_ONCE: u64 = 500_000_000;

/// What scripts ask by its status beside what is known to answer questions, separated by spaces.
pub(super) const QUESTIONS: &str = "[ egrep fgrep getent grep pgrep pidof test";

/// A program that scripts ask. It is the reason of a failure only if the script ends with its status right after it.
pub(super) fn is_question(process: &Process) -> bool {
    let asked = || label::has(QUESTIONS, label::program(process).as_bytes());
    family(process) == Some(Family::Query) || asked()
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
