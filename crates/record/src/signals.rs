//! The signals to `tr`: passed on to COMMAND, or the end of a recording without one.

use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::command::{Running, Waited};

const SIGNALS: [Signal; 4] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
];

/// Blocks the signals and opens a descriptor for them. Returns the previous mask, too.
///
/// # Errors
/// The kernel refuses the descriptor.
pub fn take() -> std::io::Result<(SigSet, SignalFd)> {
    let mut taken = SigSet::empty();
    SIGNALS.iter().for_each(|signal| taken.add(*signal));
    let mask = taken.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    Ok((mask, SignalFd::with_flags(&taken, flags)?))
}

/// Passes on the signals that were sent to `tr` alone; true if any signal came. The
/// terminal (SI_KERNEL) has signalled the whole foreground process group, COMMAND
/// included. `to_both` recognizes a signal of a process to the common group.
pub fn forward(
    signals: &SignalFd,
    command: Option<&Running>,
    to_both: impl Fn(u32) -> bool,
) -> bool {
    let mut any = false;
    while let Ok(Some(info)) = signals.read_signal() {
        any = true;
        let Some(command) = command else { continue };
        if info.ssi_code == libc::SI_KERNEL || to_both(info.ssi_signo) {
            continue;
        }
        // The sender may still be in the middle of the group.
        std::thread::sleep(Duration::from_millis(2));
        if !to_both(info.ssi_signo) {
            command.forward(info.ssi_signo.cast_signed());
        }
    }
    any
}

/// Passes signals on until COMMAND ends.
///
/// # Errors
/// Another part of the process has waited for it.
pub fn forward_until_end(
    command: Running,
    signals: &SignalFd,
    to_both: impl Fn(u32) -> bool,
) -> std::io::Result<Waited> {
    loop {
        let mut fds = [
            PollFd::new(command.ended(), PollFlags::POLLIN),
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
        ];
        let _ = nix::poll::poll(&mut fds, PollTimeout::NONE);
        forward(signals, Some(&command), &to_both);
        if command.has_ended() {
            return command.wait();
        }
    }
}
