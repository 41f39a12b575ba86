//! Exit statuses of a program that starts another, as `env`, `nice` and `timeout` have
//! them: they differ from the usual statuses of the program itself.

use nix::errno::Errno;

/// `tr` failed before COMMAND ran.
pub const FAILED: u8 = 125;
/// `tr` has ended COMMAND at a limit.
pub const TIMED_OUT: u8 = 124;
/// COMMAND was not found.
pub const NOT_FOUND: u8 = 127;
/// COMMAND was found and could not be executed.
const NOT_EXECUTABLE: u8 = 126;

/// The status for an exec that failed with this error.
pub fn not_executed(errno: Errno) -> u8 {
    match errno {
        Errno::ENOENT => NOT_FOUND,
        _ => NOT_EXECUTABLE,
    }
}
