//! Prints the messages with which a command of `tr` ends, and returns its exit status.

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

/// The exit status of a command whose input file cannot be read at all.
pub const UNREADABLE_STATUS: u8 = 2;

/// The error text for a second recording on the command line of a subcommand that reads only one.
pub const COMPARED_BY: &str = "two recordings are compared by: tr diff BASE NEW";

/// The result of a command: its exit status. `Err` has the exit status for an error that has already been printed.
/// Functions that return a value have the same `Err`: `Result<T, ExitCode>`.
pub type Done = Result<ExitCode, ExitCode>;

/// The path of a file for a message to the user, with special characters escaped.
pub fn shown(path: &Path) -> String {
    tr_text::escape::text(path.as_os_str().as_encoded_bytes())
}

/// Prints why a command cannot do what was requested. Returns the exit status.
pub fn refused(why: impl Display) -> ExitCode {
    message!("{why}");
    ExitCode::from(UNREADABLE_STATUS)
}

/// Prints the error that a program cannot be executed. Returns the exit status that a shell would have in
/// this case.
pub fn not_executed(program: &[u8], errno: nix::errno::Errno) -> u8 {
    let program = tr_text::escape::text(program);
    message!("cannot execute {program}: {}", errno.desc());
    tr_output::status::not_executed(errno)
}

/// The error text for the case that `tr record` cannot wait for COMMAND's end.
#[cfg(feature = "record")]
pub const NOT_WAITED: &str = "cannot wait for the command: its exit status is not known";

/// Prints an error of `tr record` or of one of its helper processes. Returns the exit status for that.
#[cfg(feature = "record")]
pub fn failed(why: impl Display) -> ExitCode {
    message!("{why}");
    ExitCode::from(tr_output::status::FAILED)
}

/// Prints the error that a file or standard output cannot be written. Returns the exit status.
pub fn unwritten(what: &str, error: impl Display) -> ExitCode {
    message!("cannot write {what}: {error}");
    ExitCode::FAILURE
}
