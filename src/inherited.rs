//! What we were started with, before Rust's runtime changed it.
//!
//! The runtime ignores SIGPIPE and opens /dev/null in the place of a closed
//! standard stream, both before `main`. What we execute (COMMAND, the system's
//! `tr`) has to find them as we found them, so they are looked at earlier: by an
//! initialization function, which the loader calls before the runtime.

use std::sync::atomic::{AtomicBool, Ordering};

static SIGPIPE_IGNORED: AtomicBool = AtomicBool::new(false);
static CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

extern "C" fn look() {
    // SAFETY: null for the new action only asks; `old` may hold any bits, zeros too.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGPIPE, std::ptr::null(), &mut old) == 0 {
            SIGPIPE_IGNORED.store(old.sa_sigaction == libc::SIG_IGN, Ordering::Relaxed);
        }
    }
    for (fd, closed) in (0..).zip(&CLOSED) {
        // SAFETY: asks for a flag of a descriptor that may not be open.
        let answer = unsafe { libc::fcntl(fd, libc::F_GETFD) };
        closed.store(answer < 0, Ordering::Relaxed);
    }
}

#[used]
// SAFETY: the loader calls each pointer of this section once, before `main`,
// as a C function; `look` takes no arguments and calls nothing of Rust's runtime.
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// SIGPIPE was ignored.
pub fn sigpipe_ignored() -> bool {
    SIGPIPE_IGNORED.load(Ordering::Relaxed)
}

/// Which of standard input, output and error were closed.
pub fn closed_streams() -> [bool; 3] {
    CLOSED
        .each_ref()
        .map(|closed| closed.load(Ordering::Relaxed))
}

/// Makes SIGPIPE again what it was.
pub fn restore_sigpipe() {
    if !sigpipe_ignored() {
        // SAFETY: the default action is no handler.
        unsafe {
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        }
    }
}

/// Closes the standard streams again that were closed.
pub fn restore_streams() {
    for (fd, closed) in (0..).zip(closed_streams()) {
        if closed {
            // SAFETY: the runtime's stand-in, which nothing of ours has taken over.
            unsafe {
                libc::close(fd);
            }
        }
    }
}
