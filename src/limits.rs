//! The end of a command that takes more memory or time than it may: a trace from a stranger can be
//! made to cost any amount, in a report as well as in its reading.
//!
//! The kernel refuses memory beyond the limit (RLIMIT_DATA), which costs nothing, and a thread
//! waits for the time. Files are complete or not there (`crates/output`), so either ends `tr` at
//! once.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::OnceLock;
use std::time::Duration;

use nix::sys::resource::{getrlimit, setrlimit, Resource};

use crate::open::UNREADABLE;

/// The stack that Rust gives a thread; RLIMIT_DATA counts all of it.
const STACK: u64 = 2 << 20;

/// The message of the limit of memory, once there is one.
static MEMORY: OnceLock<String> = OnceLock::new();

/// The system's allocator. Beyond a limit that was set by [`hold`] it ends the process.
pub struct Allocator;

// SAFETY: each function is the system allocator's.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is the same.
        granted(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is the same.
        granted(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's contract is the same.
        granted(unsafe { System.realloc(memory, layout, size) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is the same.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[inline]
fn granted(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        refused();
    }
    memory
}

/// No memory: says that it is the limit, if there is one.
#[cold]
fn refused() {
    if let Some(message) = MEMORY.get() {
        end(message);
    }
}

/// Says why, without any memory, and ends the process.
fn end(message: &str) -> ! {
    let _ = nix::unistd::write(std::io::stderr(), message.as_bytes());
    // SAFETY: it takes any status. Other threads run; no destructor may meet them.
    unsafe { libc::_exit(UNREADABLE.into()) }
}

fn message(limit: &str) -> String {
    format!(
        "tr: {limit} was reached, and the output is not complete\n    \
         give more, or ask for less: --from and --to, or one --report\n"
    )
}

/// From now on, the process may take this much memory in bytes and this long. `threads` of it have
/// stacks, which come on top.
pub fn hold(memory: Option<(u64, String)>, time: Option<(Duration, String)>, threads: u64) {
    if let Some((most, limit)) = memory {
        let most = most.saturating_add(threads.saturating_mul(STACK));
        let _ = MEMORY.set(message(&limit));
        if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_DATA) {
            // A limit that is too low already stays.
            let _ = setrlimit(Resource::RLIMIT_DATA, most.min(soft), hard);
        }
    }
    if let Some((most, limit)) = time {
        let message = message(&limit);
        let wait = move || {
            std::thread::sleep(most);
            end(&message);
        };
        // Without a thread more there is no limit of time, and all else goes on.
        let _ = std::thread::Builder::new().name("limit".into()).spawn(wait);
    }
}
