//! The meaning of raw `wait` statuses for the end of a process, and the purposes of signals.

/// The purpose for which a signal is sent to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The signal asks a program to end in good order, or notifies it. A program that this signal ends has not crashed.
    Order,
    /// The signal ends a build from outside: a CI agent or Ctrl-C sends it.
    Outside,
    /// The signal ends a program that takes too long.
    Late,
}

pub use tr_format::wait_status::{code, failed, has_core, in_shell, killed_by};

use Purpose::{Late, Order, Outside};

/// The number of SIGINT, which Ctrl-C sends.
pub const INTERRUPT: u32 = 2;

/// The number of SIGKILL, which is sent for lack of memory or on purpose.
pub const KILL: u32 = 9;

/// The number of SIGALRM, which a timer of the process itself sends.
pub const ALARM: u32 = 14;

/// The signals that reports print by name: the number, the name and the purposes of each.
const SIGNALS: [(u32, &str, &[Purpose]); 16] = [
    (1, "SIGHUP", &[Order, Outside]),
    (INTERRUPT, "SIGINT", &[Order, Outside]),
    (3, "SIGQUIT", &[]),
    (4, "SIGILL", &[]),
    (5, "SIGTRAP", &[]),
    (6, "SIGABRT", &[]),
    (7, "SIGBUS", &[]),
    (8, "SIGFPE", &[]),
    (KILL, "SIGKILL", &[Outside, Late]),
    (10, "SIGUSR1", &[Order]),
    (11, "SIGSEGV", &[]),
    (12, "SIGUSR2", &[Order]),
    // The reader of a pipe needed no more data and closed the pipe.
    (13, "SIGPIPE", &[Order]),
    (ALARM, "SIGALRM", &[Order, Late]),
    (15, "SIGTERM", &[Order, Outside, Late]),
    (24, "SIGXCPU", &[Late]),
];

/// The name of a signal, such as `SIGKILL`.
pub fn name(signal: u32) -> String {
    match SIGNALS.iter().find(|(number, ..)| *number == signal) {
        Some((_, name, _)) => (*name).to_owned(),
        None => format!("signal {signal}"),
    }
}

/// Whether the signal with this number is sent for the given purpose.
pub fn is_for(signal: u32, purpose: Purpose) -> bool {
    let mut all = SIGNALS.iter();
    all.any(|(number, _, purposes)| *number == signal && purposes.contains(&purpose))
}

/// Whether a program that this signal ended counts as crashed: all signals but SIGKILL and [`Purpose::Order`]'s do so.
pub fn is_crash(signal: u32) -> bool {
    signal != KILL && !is_for(signal, Order)
}

/// The number of the signal that ended the process, as its status shows it. An exit code above 128 counts as that of a
/// shell whose child a signal ended: the result is this signal, the code minus 128.
pub fn ended_by(status: u32) -> Option<u32> {
    in_shell(status).checked_sub(128)
}

/// Whether a status shows that a command could not be executed or was not found. A child of a shell or of make ends
/// with this status if it could not execute its command.
pub fn is_unstarted(status: u32) -> bool {
    matches!(code(status), Some(126 | 127))
}

/// Whether a process with this status may be a `timeout` that ended its command: 124, or 137 with SIGKILL (`-k`).
/// If another process killed the command, `timeout` kills itself by the same signal and has neither status.
pub fn is_timeout(status: u32) -> bool {
    matches!(code(status), Some(124 | 137))
}

/// Whether the status of a process is that of a program that may have taken too long: `timeout` ended it, or a signal
/// that is sent to such programs, among other purposes.
pub fn ended_in_time(status: u32) -> bool {
    is_timeout(status) || ended_by(status).is_some_and(|signal| is_for(signal, Late))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_tells_a_code_or_a_signal() {
        let all = [0, 3 << 8, 9, 11 | 0x80, 137 << 8];
        let read = all.map(|status| {
            (
                code(status),
                killed_by(Some(status)),
                in_shell(status),
                ended_by(status),
            )
        });
        assert_eq!(
            read,
            [
                (Some(0), None, 0, None),
                (Some(3), None, 3, None),
                (None, Some(9), 137, Some(9)),
                (None, Some(11), 139, Some(11)),
                (Some(137), None, 137, Some(9)),
            ]
        );
        assert_eq!(name(11), "SIGSEGV");
        assert_eq!(name(40), "signal 40");
    }

    #[test]
    fn a_crash_is_distinguished_from_a_stop() {
        assert!([3, 6, 7, 11, 24].into_iter().all(is_crash));
        assert!(![1, INTERRUPT, KILL, 13, ALARM, 15]
            .into_iter()
            .any(is_crash));
    }

    #[test]
    fn a_timeout_is_distinguished_from_a_kill() {
        assert!(is_timeout(124 << 8) && is_timeout(137 << 8));
        assert!(!is_timeout(KILL) && !is_timeout(1 << 8) && !is_timeout(0));
        let late = [124 << 8, KILL, 143 << 8, 24];
        assert_eq!(late.map(ended_in_time), [true; 4]);
        let other = [0, 1 << 8, 2, 11, 130 << 8];
        assert_eq!(other.map(ended_in_time), [false; 5]);
    }
}
