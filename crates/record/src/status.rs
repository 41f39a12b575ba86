//! Exit statuses of what starts another program, as `env`, `nice` and `timeout`
//! have them: the program's own are told from them.

use nix::errno::Errno;

/// We failed, before the program could run.
pub const FAILED: u8 = 125;
/// The program was not found.
pub const NOT_FOUND: u8 = 127;
/// The program was found and could not be executed.
const NOT_EXECUTABLE: u8 = 126;

/// Of a program that exec refused with this error.
pub fn not_executed(errno: Errno) -> u8 {
    match errno {
        Errno::ENOENT => NOT_FOUND,
        _ => NOT_EXECUTABLE,
    }
}
