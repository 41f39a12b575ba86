//! Waits for COMMAND in place of a recorder that has panicked ([`rescue`](crate::rescue)).

use crate::command::Running;
use crate::rescue::Child;
use crate::signals::Signals;

/// Passes signals on until COMMAND ends; its raw `wait` status.
///
/// # Errors
/// COMMAND is not a child of this process, or the kernel refuses a descriptor.
pub fn wait_for(child: Child) -> std::io::Result<u32> {
    let command = Running::of(child)?;
    let waited = Signals::take(None)?.forward_until_end(command, None)?;
    Ok(waited.status)
}
