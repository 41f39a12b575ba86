//! Waits for COMMAND in place of a recorder that has panicked ([`rescue`](crate::rescue)), and ends `tr` with
//! COMMAND's status.

use nix::sys::signal::{raise, SigSet, Signal};
use tr_format::wait_status::killed_by;

use crate::command::{in_foreground, Running};
use crate::rescue::{of_command, Child};
use crate::signals::Signals;

/// Passes signals on to COMMAND until COMMAND ends, and returns COMMAND's raw `wait` status.
///
/// # Errors
/// COMMAND is not a child of this process, or the kernel refuses a descriptor.
pub fn wait_for(child: Child) -> std::io::Result<u32> {
    let command = Running::of(child)?;
    let waited = Signals::take(None)?.forward_until_end(command, None, None)?;
    Ok(waited.status)
}

/// The exit status of a `tr` whose COMMAND has ended with this raw `wait` status. If Ctrl-C (SIGINT) killed
/// COMMAND in the foreground, the function does not return: it ends `tr` by the same signal.
pub fn end_like(status: u32) -> u8 {
    let interrupt = Signal::SIGINT as u32;
    if killed_by(Some(status)) == Some(interrupt) && in_foreground() {
        // `tr` ends by SIGINT like COMMAND, so that a loop in the shell that runs `tr` ends as well.
        let mut interrupt = SigSet::empty();
        interrupt.add(Signal::SIGINT);
        let _ = interrupt.thread_unblock();
        let _ = raise(Signal::SIGINT);
    }
    of_command(status)
}
