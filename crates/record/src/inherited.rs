//! Handles the state that `tr` inherited and COMMAND inherits: signal mask and actions, closed streams,
//! environment.

use std::ffi::CString;

use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal};

/// The state with which `tr` was started and which COMMAND inherits: signal mask and actions, closed streams,
/// environment.
#[derive(Clone, Debug)]
pub struct Inherited {
    mask: SigSet,
    /// For each of the signals SIGPIPE, SIGXFSZ and SIGCHLD, whether `tr` ignored it when it was started.
    ignored: [(Signal, bool); 3],
    /// For each of standard input, output and error, whether it was closed when `tr` was started. Rust's
    /// runtime opens /dev/null in place of a closed stream.
    pub closed_streams: [bool; 3],
    /// The environment of `tr` before the dynamic loader changed it; `None` if the loader has not changed the
    /// environment.
    pub environment: Option<Vec<CString>>,
}

impl Inherited {
    /// The inheritable state of this process as it was before `main`. The arguments describe what has changed
    /// since: Rust's runtime ignores SIGPIPE and opens closed streams, and the dynamic loader may change the
    /// environment (`None` if it did not).
    pub fn now(
        sigpipe_ignored: bool,
        closed_streams: [bool; 3],
        environment: Option<Vec<CString>>,
    ) -> Inherited {
        Inherited {
            mask: SigSet::thread_get_mask().unwrap_or_else(|_| SigSet::empty()),
            ignored: [
                (Signal::SIGPIPE, sigpipe_ignored),
                (Signal::SIGXFSZ, is_ignored(Signal::SIGXFSZ)),
                (Signal::SIGCHLD, is_ignored(Signal::SIGCHLD)),
            ],
            closed_streams,
            environment,
        }
    }

    /// Sets the signal mask, actions and streams of the calling process to the state in which `tr` was
    /// started, before the process executes COMMAND.
    pub fn restore(&self) {
        for (signal, ignored) in self.ignored {
            let action = if ignored {
                SigHandler::SigIgn
            } else {
                SigHandler::SigDfl
            };
            set_action(signal, action);
        }
        let _ = nix::sys::signal::sigprocmask(SigmaskHow::SIG_SETMASK, Some(&self.mask), None);
        for (fd, closed) in (0..).zip(self.closed_streams) {
            if closed {
                // SAFETY: Rust's runtime opened this descriptor in place of the closed stream. All descriptors that
                // `tr` uses have higher numbers.
                unsafe { libc::close(fd) };
            }
        }
    }
}

/// Whether this process ignores the signal.
pub fn is_ignored(signal: Signal) -> bool {
    // SAFETY: without a new action (null) the call only reads the old one; all zeros are a valid `sigaction`.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal as i32, std::ptr::null(), &mut old) == 0
            && old.sa_sigaction == libc::SIG_IGN
    }
}

fn set_action(signal: Signal, action: SigHandler) {
    // SAFETY: the callers pass SIG_DFL or SIG_IGN, which install no handler.
    let _ = unsafe { nix::sys::signal::signal(signal, action) };
}

/// Sets how the recorder reacts to two signals. SIGXFSZ is ignored, so that a write beyond the limit of the file's
/// size fails with an error. SIGCHLD gets its default action, so that the kernel keeps COMMAND's status until it is
/// waited for.
pub fn own_actions() {
    set_action(Signal::SIGXFSZ, SigHandler::SigIgn);
    set_action(Signal::SIGCHLD, SigHandler::SigDfl);
}
