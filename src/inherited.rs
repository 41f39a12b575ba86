//! Notes which standard streams and which action of SIGPIPE `tr` inherited, and finds the inherited environment.
//!
//! Before `main`, Rust's runtime ignores SIGPIPE and opens /dev/null for a closed standard stream. COMMAND
//! and the system's `tr` must inherit both unchanged, so an initialization function, which the loader calls
//! before the runtime, notes both.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::errors;
use tr_output::status;

static SIGPIPE_IGNORED: AtomicBool = AtomicBool::new(false);
static CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

/// Stores whether SIGPIPE was ignored and which standard streams were closed when `tr` was started. An initialization
/// function calls this function before `main`, so it needs nothing that Rust's runtime sets up.
pub fn look() {
    // SAFETY: with null as the new action, the call only returns the present one. `old` is valid with any bits, also
    // with zeros.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGPIPE, std::ptr::null(), &mut old) == 0 {
            SIGPIPE_IGNORED.store(old.sa_sigaction == libc::SIG_IGN, Ordering::Relaxed);
        }
    }
    for (fd, closed) in (0..).zip(&CLOSED) {
        // SAFETY: the call only reads a flag of the descriptor, which may be closed.
        let answer = unsafe { libc::fcntl(fd, libc::F_GETFD) };
        closed.store(answer < 0, Ordering::Relaxed);
    }
}

/// Whether SIGPIPE was ignored when `tr` was started.
pub fn sigpipe_ignored() -> bool {
    SIGPIPE_IGNORED.load(Ordering::Relaxed)
}

/// For each of standard input, output and error, whether the stream was closed when `tr` was started.
pub fn closed_streams() -> [bool; 3] {
    CLOSED
        .each_ref()
        .map(|closed| closed.load(Ordering::Relaxed))
}

/// Gives SIGPIPE its default action, unless the signal was ignored when `tr` was started.
pub fn restore_sigpipe() {
    if !sigpipe_ignored() {
        // SAFETY: the default action runs no code of this process.
        unsafe {
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        }
    }
}

/// Makes this process ignore Ctrl-C and Ctrl-\ from now on.
pub fn ignore_interrupts() {
    for signal in [libc::SIGINT, libc::SIGQUIT] {
        // SAFETY: the signal is ignored, so no code of this process runs.
        unsafe {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
}

/// Closes those standard streams again that were closed when `tr` was started and that Rust's runtime has
/// opened as /dev/null.
pub fn restore_streams() {
    for (fd, closed) in (0..).zip(closed_streams()) {
        if closed {
            // SAFETY: only the runtime has opened this descriptor, on /dev/null, and no code of `tr` uses it.
            unsafe {
                libc::close(fd);
            }
        }
    }
}

/// The environment before the loader removed LD_LIBRARY_PATH, TMPDIR and others, as the loader does for a program with
/// file capabilities. COMMAND and the system's `tr` have no such capabilities, so they get these variables back. `None`
/// if the loader removed nothing.
pub fn original_environment() -> Option<Vec<CString>> {
    // SAFETY: the call only reads the auxiliary vector.
    if unsafe { libc::getauxval(libc::AT_SECURE) } == 0 {
        return None;
    }
    // A process with file capabilities is not "dumpable": its /proc files belong to root, and the process cannot read
    // them. So the process is made dumpable for a moment. Even then, processes with fewer capabilities cannot trace it.
    let dumpable = nix::sys::prctl::get_dumpable().unwrap_or(true);
    let _ = nix::sys::prctl::set_dumpable(true);
    let bytes = std::fs::read("/proc/self/environ");
    let _ = nix::sys::prctl::set_dumpable(dumpable);
    let variables = bytes.ok()?;
    let variables = variables.split(|b| *b == 0).filter(|v| !v.is_empty());
    Some(variables.filter_map(|v| CString::new(v).ok()).collect())
}

/// The value of the environment variable PATH, or the system's default if it is not set.
pub fn path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into())
}

/// Executes COMMAND in place of this process, with the inherited state; returns an exit status only if that fails.
/// `Command::exec` of `std` cannot be used: it empties the signal mask and resets SIGPIPE's action.
pub fn become_command(command: &[OsString]) -> u8 {
    restore_sigpipe();
    restore_streams();
    // The arguments came from the kernel as C strings, so none contains a NUL byte.
    let string = |text: &OsString| CString::new(text.as_bytes()).unwrap_or_default();
    let args: Vec<CString> = command.iter().map(string).collect();
    let Some(program) = args.first() else {
        return status::FAILED;
    };
    // The environment variables such as LD_PRELOAD that the loader removed, because `tr` has file capabilities, are set
    // again for COMMAND, as in `tr record`.
    let failed = match original_environment() {
        None => nix::unistd::execvp(program, &args),
        Some(environment) => nix::unistd::execvpe(program, &args, &environment),
    };
    let Err(errno) = failed;
    errors::not_executed(program.to_bytes(), errno)
}
