//! Handles a panic of the recorder: a COMMAND that has begun runs on, and `tr` ends with the status of COMMAND.
//!
//! After a panic in any thread the recorder's state cannot be trusted. So nothing unwinds: `tr` executes itself again,
//! as a waiter for COMMAND, which stays its child. By this exec the kernel ends all threads, releases tracees, detaches
//! BPF programs and closes the file, which lacks its end like the file of a killed recorder.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::panic::PanicHookInfo;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::sys::signal::{kill, Signal};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use tr_format::wait_status::in_shell;

use tr_output::status;

/// The beginning of the only argument of the waiter, a `tr` that only waits for COMMAND after a panic. COMMAND's
/// process id and session follow in the same argument. The system's tr(1) is not called like this, because it needs
/// two arguments.
const WAITER: &str = "command-waiter:";

/// The name of the thread that handles a panic of the recorder.
const THREAD: &str = "tr-rescue";

/// The facts about COMMAND's process that the waiter (`WAITER`) needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child {
    pub pid: u32,
    /// Whether COMMAND leads a session of its own, which the terminal's signals do not reach.
    pub own_session: bool,
}

impl Child {
    /// The command-line argument that tells the waiter (see [`WAITER`]) which process it has to wait for.
    fn argument(self) -> String {
        format!("{WAITER}{}:{}", self.pid, u8::from(self.own_session))
    }

    /// Parses the command-line argument of the waiter (see `WAITER`), which names the process of COMMAND; `None` for
    /// other arguments.
    pub fn parse(argument: &str) -> Option<Child> {
        let (pid, own_session) = argument.strip_prefix(WAITER)?.split_once(':')?;
        Some(Child {
            pid: pid.parse().ok().filter(|pid| *pid > 0)?,
            own_session: own_session == "1",
        })
    }
}

/// The stage that COMMAND has reached: whether its process was forked, runs, or has ended. A panic of the recorder is
/// handled accordingly.
#[derive(Clone, Copy, Debug)]
pub enum Stage {
    /// The process for COMMAND has been forked and waits for its release.
    Forked(u32),
    /// The process of COMMAND runs.
    Runs(Child),
    /// The process of COMMAND has ended, with this raw `wait` status.
    Ended(u32),
}

/// The functions that handle a panic of the recorder.
pub struct Plan {
    /// Reports the panic to the user. The arguments are the text of the panic, and whether COMMAND runs on or runs
    /// untraced.
    pub tell: fn(&str, bool),
    /// Executes COMMAND, which has not run yet, in place of `tr`. Returns the exit status if that fails. `None` if
    /// COMMAND must not run without a recording.
    pub untraced: Option<Box<dyn FnOnce() -> u8 + Send>>,
    /// Waits for COMMAND and returns the exit status for `tr`.
    pub wait: fn(Child) -> u8,
}

/// The functions that handle a panic; `None` before [`begin`], and after the first panic.
static PLAN: Mutex<Option<Plan>> = Mutex::new(None);
static STAGE: Mutex<Option<Stage>> = Mutex::new(None);

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a panic of any thread call the functions of `plan` from now on, so that COMMAND survives it.
pub fn begin(plan: Plan) {
    *lock(&PLAN) = Some(plan);
    std::panic::set_hook(Box::new(panicked));
}

/// Notes the stage that COMMAND has reached, for the handling of a later panic; `None` if there is no process for
/// COMMAND.
pub fn note(stage: Option<Stage>) {
    *lock(&STAGE) = stage;
}

/// Handles a panic of the recorder, and ends the thread that panicked, because the processes that this thread traces
/// would stay stopped otherwise. The function does not return.
fn panicked(info: &PanicHookInfo<'_>) {
    let plan = lock(&PLAN).take();
    let Some(plan) = plan else {
        if std::thread::current().name() == Some(THREAD) {
            exit(status::FAILED);
        }
        end_thread();
    };
    let stage = *lock(&STAGE);
    let runs = match stage {
        Some(Stage::Runs(_)) => true,
        Some(Stage::Ended(_)) => false,
        None | Some(Stage::Forked(_)) => plan.untraced.is_some(),
    };
    let message = info.to_string().replace('\n', " ");
    // The message is printed by a new thread, because a write to the terminal can block. In that case only the new
    // thread is blocked. The present thread ends, so that the tracees continue.
    let rescue = move || {
        (plan.tell)(&message, runs);
        exit(rescue(plan, stage))
    };
    let thread = std::thread::Builder::new().name(THREAD.to_owned());
    if thread.spawn(rescue).is_err() {
        exit(status::FAILED);
    }
    end_thread();
}

/// Acts after a panic of the recorder, by the functions of `plan`. A running COMMAND is waited for. A COMMAND that
/// has not run yet is executed without a recording, if the plan allows that. Returns the exit status of `tr`, unless
/// another program has replaced this process.
fn rescue(plan: Plan, stage: Option<Stage>) -> u8 {
    match stage {
        Some(Stage::Runs(child)) => {
            execute(child);
            // The exec fails if /proc is not mounted. Then this process waits for COMMAND itself.
            (plan.wait)(child)
        }
        Some(Stage::Ended(ended)) => of_command(ended),
        None | Some(Stage::Forked(_)) => {
            if let Some(Stage::Forked(pid)) = stage {
                let pid = Pid::from_raw(pid.cast_signed());
                let _ = kill(pid, Signal::SIGKILL);
                let _ = waitpid(pid, None);
            }
            plan.untraced
                .map_or(status::FAILED, |become_command| become_command())
        }
    }
}

/// The exit status of `tr` for COMMAND's raw `wait` status, by the rules of shells.
pub fn of_command(status: u32) -> u8 {
    u8::try_from(in_shell(status)).unwrap_or(u8::MAX)
}

/// Replaces the recorder by a `tr` that only waits for COMMAND (see [`WAITER`]). The function returns only if the exec
/// fails.
fn execute(child: Child) {
    let name = std::env::args_os().next().map(OsString::into_vec);
    let words = [name.unwrap_or_default(), child.argument().into_bytes()];
    // No word contains a NUL: the program's name came from the kernel as a C string, and the argument consists of a
    // constant and numbers.
    let words = words.map(|word| CString::new(word).unwrap_or_default());
    let _ = nix::unistd::execv(c"/proc/self/exe", &words);
}

/// Ends the process without running exit handlers, because other threads may still use memory that the handlers free.
fn exit(status: u8) -> ! {
    // SAFETY: a plain system call.
    unsafe { libc::_exit(status.into()) }
}

/// Ends this thread without freeing anything on its stack, because other threads may use it.
fn end_thread() -> ! {
    loop {
        // SAFETY: a plain system call. The stack of this thread is not freed, so references to it in other threads stay
        // valid.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_waiters_argument_is_one_word() {
        for own_session in [false, true] {
            let child = Child {
                pid: 4711,
                own_session,
            };
            assert_eq!(Child::parse(&child.argument()), Some(child));
        }
        for wrong in [
            "command-waiter",
            "command-waiter:",
            "command-waiter:0:0",
            "command-waiter:-1:0",
            "a-z",
        ] {
            assert_eq!(Child::parse(wrong), None, "{wrong}");
        }
    }
}
