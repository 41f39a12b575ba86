//! SIGPIPE as it was when we were started.
//!
//! Rust's runtime ignores SIGPIPE before `main`. What we execute (COMMAND, the
//! system's `tr`) has to find it as we found it, so it is looked at earlier: by
//! an initialization function, which the loader calls before the runtime.

use std::sync::atomic::{AtomicBool, Ordering};

static IGNORED: AtomicBool = AtomicBool::new(false);

extern "C" fn look() {
    // SAFETY: a null new action only asks; `old` is a valid place for the
    // answer, and all of its bit patterns are valid.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGPIPE, std::ptr::null(), &mut old) == 0 {
            IGNORED.store(old.sa_sigaction == libc::SIG_IGN, Ordering::Relaxed);
        }
    }
}

#[used]
// SAFETY: the loader calls each pointer of this section once, before `main`,
// as a C function; `look` takes no arguments and calls nothing of Rust's runtime.
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// SIGPIPE was ignored when we were started.
pub fn inherited_ignored() -> bool {
    IGNORED.load(Ordering::Relaxed)
}

/// Makes SIGPIPE again what it was.
pub fn restore() {
    if !inherited_ignored() {
        // SAFETY: the default action is no handler.
        unsafe {
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        }
    }
}
