//! Ends a command that takes more memory or time than it may. A trace from a stranger can be made so that reading it,
//! or a report about it, would take any amount of both.
//!
//! A thread checks the resident memory and the clock at short intervals. For the time between two checks, the
//! kernel refuses memory beyond twice the limit (RLIMIT_DATA). It is twice the limit because the kernel also counts
//! memory that is allocated but not yet used, as in a table that has just doubled. Both the thread and a refusal end
//! `tr` at once: output files get their names only when they are complete (`crates/output`), so no half of a file
//! remains.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sys::resource::{getrlimit, setrlimit, Resource};
use tr_text::called::TR;

use crate::errors::UNREADABLE_STATUS;

/// The longest time between two checks whether the process exceeds its limits of memory and time.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// The size in bytes of the stack that Rust gives each thread. The kernel's limit RLIMIT_DATA counts all of it.
const STACK: u64 = 2 << 20;

/// The message that is printed when the command exceeds its memory limit. It is set together with the limit.
static MEMORY: OnceLock<String> = OnceLock::new();

/// The system's allocator. If it gets no memory although [`hold`] has set a limit, it ends the process with a message.
pub struct Allocator;

// SAFETY: each function calls the function of the system's allocator.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps to the contract of `alloc`, which is that of the system's function.
        granted(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps to the contract of `alloc_zeroed`, which is that of the system's function.
        granted(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps to the contract of `realloc`, which is that of the system's function.
        granted(unsafe { System.realloc(memory, layout, size) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps to the contract of `dealloc`, which is that of the system's function.
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

/// Prints that the command exceeds its memory limit and ends the process, after the allocation of memory has failed.
/// Without a limit, the function returns.
#[cold]
fn refused() {
    if let Some(message) = MEMORY.get() {
        end(message);
    }
}

/// Returns freed memory to the kernel. Otherwise the allocator would keep the memory that the threads used for reading
/// a trace: 30 of 250 MB after 10^7 events.
#[cfg(feature = "report")]
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: `malloc_trim` accepts any number, and locks the allocator's data that it uses.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// The function that is called before an exceeded limit ends the process, for example to finish the pager's text. The
/// function must not allocate memory.
static BEFORE: OnceLock<fn()> = OnceLock::new();

/// Sets the function that is called before an exceeded limit of memory or time ends the process.
pub fn before_end(act: fn()) {
    let _ = BEFORE.set(act);
}

/// Prints the message that a limit of memory or time is exceeded, without allocating memory, and ends the process.
fn end(message: &str) -> ! {
    static ENDS: AtomicBool = AtomicBool::new(false);
    while ENDS.swap(true, Ordering::AcqRel) {
        nix::unistd::pause();
    }
    if let Some(before) = BEFORE.get() {
        before();
    }
    let _ = nix::unistd::write(std::io::stderr(), message.as_bytes());
    // SAFETY: `_exit` accepts any status. No destructor runs, because other threads may still use the data.
    unsafe { libc::_exit(UNREADABLE_STATUS.into()) }
}

fn message(limit: &str) -> String {
    format!(
        "{TR}: {limit} was reached, and the output is not complete\n    \
         give more, or ask for less: --from and --to, or one --report\n"
    )
}

/// Limits the memory (in bytes) and the running time of this process from now on. The text of each limit is its name in
/// the error message. `threads` is the largest number of threads. The memory of their stacks is allowed in addition.
pub fn hold(memory: Option<(u64, String)>, time: Option<(Duration, String)>, threads: u64) {
    if let Some((most, limit)) = &memory {
        let _ = MEMORY.set(message(limit));
        let most = most.saturating_add(threads.saturating_mul(STACK));
        if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_DATA) {
            // If the process already has a lower limit, that one stays.
            let _ = setrlimit(
                Resource::RLIMIT_DATA,
                most.saturating_mul(2).min(soft),
                hard,
            );
        }
    }
    let memory = memory.map(|(most, limit)| (most, message(&limit)));
    let time = time.map(|(most, limit)| (most, message(&limit)));
    let begun = Instant::now();
    let watch = move || loop {
        let mut look = LOOK_INTERVAL;
        if let Some((most, message)) = &time {
            match most.checked_sub(begun.elapsed()) {
                Some(left) if !left.is_zero() => look = look.min(left),
                _ => end(message),
            }
        }
        if let Some((most, message)) = &memory {
            if own().is_some_and(|own| own >= *most) {
                end(message);
            }
        }
        std::thread::sleep(look);
    };
    // If no further thread can be started, the kernel's limit alone remains, and the command goes on.
    let _ = std::thread::Builder::new()
        .name("limit".into())
        .spawn(watch);
}

/// The resident memory of this process in bytes, without mapped files, because the trace itself is mapped.
pub fn own() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = pages.split(' ').skip(1).map(str::parse::<u64>);
    let (resident, shared) = (pages.next()?.ok()?, pages.next()?.ok()?);
    let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok()??;
    resident
        .saturating_sub(shared)
        .checked_mul(u64::try_from(page).ok()?)
}
