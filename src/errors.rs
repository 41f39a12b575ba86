//! What a command says on standard error before it ends, and its exit status.

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

/// The exit status for a file that cannot be read at all.
pub const UNREADABLE: u8 = 2;

/// The exit status of a command. As an error, here and in place of another result, it comes after the
/// reason has been said.
pub type Done = Result<ExitCode, ExitCode>;

/// The path of a file as it is shown in a message, with special characters escaped.
pub fn shown(path: &Path) -> String {
    tr_text::escape::text(path.as_os_str().as_encoded_bytes())
}

/// The exit status after the reason why a command cannot do what was asked.
pub fn refused(why: impl Display) -> ExitCode {
    eprintln!("tr: {why}");
    ExitCode::from(UNREADABLE)
}

/// The exit status of a shell after the reason why a program is not executed.
pub fn not_executed(program: &[u8], errno: nix::errno::Errno) -> u8 {
    let program = tr_text::escape::text(program);
    eprintln!("tr: cannot execute {program}: {}", errno.desc());
    tr_output::status::not_executed(errno)
}

/// `tr` cannot wait for COMMAND.
#[cfg(feature = "record")]
pub const NOT_WAITED: &str = "cannot wait for the command: its exit status is not known";

/// The exit status of `tr record` and its helpers after the reason why they failed.
#[cfg(feature = "record")]
pub fn failed(why: impl Display) -> ExitCode {
    eprintln!("tr: {why}");
    ExitCode::from(tr_output::status::FAILED)
}

/// The exit status after the reason why something cannot be written.
pub fn unwritten(what: &str, error: impl Display) -> ExitCode {
    eprintln!("tr: cannot write {what}: {error}");
    ExitCode::FAILURE
}
