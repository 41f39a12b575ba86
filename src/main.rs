//! `tr`: where did the time go? Records a build or test run with eBPF and reads
//! it back.
//!
//! A command line for the system's `tr` is passed on before this `main` begins: see `before_main` in
//! `passthrough.rs`.

/// `std`'s `eprintln`, without its panic when standard error cannot be written: after a panic, `tr record` would not
/// pass on COMMAND's status. The caller has to escape text of a trace in the message. The macro stands before the
/// modules, because they use it.
macro_rules! eprintln {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let message = format!($($arg)*);
        let message = tr_text::escape::page(&message);
        let _ = writeln!(std::io::stderr().lock(), "{message}");
    }};
}

/// Prints a message on standard error, after the name by which the program was called: `tr: cannot write x: …`.
macro_rules! message {
    ($($arg:tt)*) => {
        eprintln!("{}: {}", tr_text::called::TR, format_args!($($arg)*))
    };
}

#[cfg(feature = "report")]
mod analysis;
mod args;
mod budget;
mod called;
mod cli;
mod cmd;
mod config;
mod confine;
#[cfg(feature = "report")]
mod contents;
mod copy;
mod errors;
#[cfg(feature = "report")]
mod filters;
mod inherited;
mod layout;
mod limits;
mod mapping;
mod mistyped;
mod open;
mod output;
mod pager;
#[cfg(feature = "report")]
mod parts;
mod passthrough;
#[cfg(any(feature = "record", feature = "report"))]
mod pattern;
#[cfg(feature = "report")]
mod progress;
#[cfg(feature = "report")]
mod scratch;
#[cfg(feature = "export")]
mod send;
#[cfg(feature = "report")]
mod span;
mod stack;
#[cfg(feature = "report")]
mod style;
mod subcommand;
#[cfg(feature = "report")]
mod suspend;
mod version;
#[cfg(feature = "report")]
#[cfg_attr(not(feature = "import"), path = "without_imports.rs")]
mod with;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: limits::Allocator = limits::Allocator;

fn main() -> ExitCode {
    stack::with_room(choose_task)
}

/// Hands this call of the program to the code that it is for: to the system's `tr`, to a helper process of the
/// recorder, to `--version --verbose`, or to the command line with its subcommands. Returns the exit status.
fn choose_task() -> ExitCode {
    let started = std::time::Instant::now();
    if let Some(status) = passthrough::before_clap() {
        return ExitCode::from(status);
    }
    #[cfg(feature = "record")]
    if let Some(helper) = cmd::helpers::helper() {
        return helper();
    }
    if version::is_asked() {
        return version::print();
    }
    cli::run_command_line(&subcommand::Program {
        rows: cmd::ROWS,
        started,
    })
}
