//! The exit statuses of a program that starts another one, as `env`, `nice` and `timeout` have them. They
//! differ from the usual statuses of the program itself.

use nix::errno::Errno;

/// The exit status when `tr` itself failed before COMMAND ran, or does not know the status of COMMAND.
pub const FAILED: u8 = 125;
/// The exit status of `tr` if it ended COMMAND because a limit was reached, such as one of time.
pub const TIMED_OUT: u8 = 124;
/// The exit status when COMMAND was not found.
pub const NOT_FOUND: u8 = 127;
/// The exit status when COMMAND was found and could not be executed.
const NOT_EXECUTABLE: u8 = 126;

/// The exit status of `tr` if the exec of COMMAND failed with this error.
pub fn not_executed(errno: Errno) -> u8 {
    match errno {
        Errno::ENOENT => NOT_FOUND,
        _ => NOT_EXECUTABLE,
    }
}
