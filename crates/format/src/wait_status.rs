//! Interprets the raw status that wait(2) reports for an ended process: an exit code in the second byte, or a signal in
//! the first byte.

/// Whether a process that ended with this raw `wait` status has failed: the status is not 0. An unknown status (`None`)
/// does not count as a failure.
pub fn failed(status: Option<u32>) -> bool {
    status.is_some_and(|status| status != 0)
}

/// The signal that killed a process with this raw `wait` status; `None` if the process exited, or if the status is not
/// known.
pub fn killed_by(status: Option<u32>) -> Option<u32> {
    status
        .map(|status| status & 0x7f)
        .filter(|signal| *signal != 0)
}

/// The exit code of a process with this raw `wait` status; `None` if a signal killed the process.
pub fn code(status: u32) -> Option<u32> {
    (status & 0x7f == 0).then_some(status >> 8 & 0xff)
}

/// Whether the kernel has written a core dump of the process with this raw `wait` status.
pub fn has_core(status: u32) -> bool {
    status & 0x80 != 0
}

/// The status that a shell reports for a process with this raw `wait` status: the exit code, or 128
/// plus the number of the signal that killed it.
pub fn in_shell(status: u32) -> u32 {
    code(status).unwrap_or(128 + (status & 0x7f))
}
