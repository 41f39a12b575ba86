//! Gives the main thread a larger stack if the limit of its stack is small (`ulimit -s 150`), because the parser of
//! the command line and the reports need more. The program then runs on a stack that it has allocated itself. The
//! limit is not changed, so COMMAND inherits it.

use std::cell::Cell;
use std::process::ExitCode;

use nix::sys::resource::{getrlimit, Resource};

/// The size in bytes of the main thread's new stack, which is also the default of Rust's threads. A new stack is needed
/// only if the limit for the stack is below this size.
const SIZE: usize = 2 << 20;

thread_local! {
    static JOB: Cell<Option<fn() -> ExitCode>> = const { Cell::new(None) };
    static DONE: Cell<Option<ExitCode>> = const { Cell::new(None) };
}

/// Runs `job` in the main thread. With the GNU C library, a new stack is used if the limit for the stack is too small.
pub fn with_room(job: fn() -> ExitCode) -> ExitCode {
    let is_small = getrlimit(Resource::RLIMIT_STACK).is_ok_and(|(soft, _)| soft < SIZE as u64);
    if !is_small {
        return job();
    }
    #[cfg(target_env = "gnu")]
    if let Some(stack) = allocated() {
        JOB.set(Some(job));
        run_on(stack);
        if let Some(done) = DONE.take() {
            return done;
        }
    }
    job()
}

/// Allocates memory for the main thread's new stack, which is never freed. Returns its lowest address; the page below
/// it cannot be accessed, so that an overflow is detected.
#[cfg(target_env = "gnu")]
fn allocated() -> Option<*mut libc::c_void> {
    const GUARD: usize = 64 << 10;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK | libc::MAP_NORESERVE;
    // SAFETY: the kernel chooses the place of the new mapping, which nothing else uses.
    unsafe {
        let null = std::ptr::null_mut();
        let mapping = libc::mmap(null, GUARD + SIZE, libc::PROT_NONE, flags, -1, 0);
        if mapping == libc::MAP_FAILED {
            return None;
        }
        let stack = mapping.byte_add(GUARD);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        (libc::mprotect(stack, SIZE, access) == 0).then_some(stack)
    }
}

/// Switches the main thread to this stack of [`SIZE`] bytes, calls [`begin`] there, and returns after it has returned.
#[cfg(target_env = "gnu")]
fn run_on(stack: *mut libc::c_void) {
    // SAFETY: all zeros are valid contexts, which the calls fill in. `stack` is memory of `SIZE` bytes that nothing
    // else uses. `begin` takes no arguments; when it returns, the thread goes on in `before`, which lives as long as
    // this function. `begin` does not unwind: a panic that leaves an `extern "C"` function ends the process.
    unsafe {
        let mut before: libc::ucontext_t = std::mem::zeroed();
        let mut context: libc::ucontext_t = std::mem::zeroed();
        if libc::getcontext(&raw mut context) != 0 {
            return;
        }
        context.uc_stack.ss_sp = stack;
        context.uc_stack.ss_size = SIZE;
        context.uc_link = &raw mut before;
        libc::makecontext(&raw mut context, begin, 0);
        libc::swapcontext(&raw mut before, &raw const context);
    }
}

#[cfg(target_env = "gnu")]
extern "C" fn begin() {
    DONE.set(JOB.take().map(|job| job()));
}
