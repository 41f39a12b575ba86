//! The signals that come while a recording runs: COMMAND's, or for us to end.

use std::time::Duration;

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::command::Running;

/// Signals that are COMMAND's, or that end a recording without one.
const SIGNALS: [Signal; 4] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
];

/// From here on they come as readable events. Returns the mask of before, too.
///
/// # Errors
/// When the kernel refuses.
pub fn take() -> std::io::Result<(SigSet, SignalFd)> {
    let mut taken = SigSet::empty();
    SIGNALS.iter().for_each(|signal| taken.add(*signal));
    let mask = taken.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    Ok((mask, SignalFd::with_flags(&taken, flags)?))
}

/// Sends on what was sent to `tr` alone. A signal from the terminal (SI_KERNEL)
/// has gone to the whole foreground process group, COMMAND included, already; of
/// one that a process has sent to their group `to_both` knows. True when any
/// signal came.
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
        // The sender may not be through with the group.
        std::thread::sleep(Duration::from_millis(2));
        if !to_both(info.ssi_signo) {
            command.forward(info.ssi_signo.cast_signed());
        }
    }
    any
}
