//! Raw statuses of wait(2), as exits have them: a code in the second byte, or a signal in the first one.

/// Whether a process ended with another status than 0.
pub fn failed(status: Option<u32>) -> bool {
    status.is_some_and(|status| status != 0)
}

/// The signal that killed a process with this status.
pub fn killed_by(status: Option<u32>) -> Option<u32> {
    status.map(|it| it & 0x7f).filter(|signal| *signal != 0)
}

/// The exit code, unless a signal killed the process.
pub fn code(status: u32) -> Option<u32> {
    (status & 0x7f == 0).then_some(status >> 8 & 0xff)
}

/// The signal left a core dump.
pub fn has_core(status: u32) -> bool {
    status & 0x80 != 0
}

/// The status that a shell has of a command: of one that a signal has killed 128 and its number.
pub fn in_shell(status: u32) -> u32 {
    code(status).unwrap_or(128 + (status & 0x7f))
}
