//! The calls of ptrace(2) and waitid(2) that the tracer makes, with one function for each.

use nix::errno::Errno;

use crate::proc::Id;

/// The ptrace options of a tracee, which its children inherit. `PTRACE_O_EXITKILL` is missing, so that COMMAND goes on
/// if the recorder is killed.
const OPTIONS: i32 = libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC;

fn ptrace(request: libc::c_uint, id: Id, data: usize) -> Result<(), Errno> {
    // SAFETY: none of the requests that this module makes reads or writes the recorder's memory.
    let done = unsafe { libc::ptrace(request, id, 0usize, data) };
    Errno::result(done).map(drop)
}

/// Begins to trace a task by ptrace(2). The calling thread becomes its tracer.
pub fn seize(id: Id) -> Result<(), Errno> {
    ptrace(libc::PTRACE_SEIZE, id, OPTIONS.unsigned_abs() as usize)
}

/// Lets a stopped tracee go on. The signal is delivered to the tracee, if it is not 0.
pub fn go_on(id: Id, signal: i32) -> Result<(), Errno> {
    ptrace(libc::PTRACE_CONT, id, signal.unsigned_abs() as usize)
}

/// Leaves a tracee in its group stop (PTRACE_LISTEN), which the next SIGCONT ends.
pub fn listen(id: Id) -> Result<(), Errno> {
    ptrace(libc::PTRACE_LISTEN, id, 0)
}

/// Stops a running tracee (PTRACE_INTERRUPT).
pub fn interrupt(id: Id) -> Result<(), Errno> {
    ptrace(libc::PTRACE_INTERRUPT, id, 0)
}

/// Ends the tracing of a stopped tracee, which goes on untraced. The signal is delivered to it, if it is not 0.
pub fn detach(id: Id, signal: i32) -> Result<(), Errno> {
    ptrace(libc::PTRACE_DETACH, id, signal.unsigned_abs() as usize)
}

/// The message that the kernel gives with a tracee's event: after a fork the id of the child, after an exec the id that
/// the task had before.
pub fn message(id: Id) -> Result<Id, Errno> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: `message` is a valid place for the result.
    let done = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, id, 0usize, &raw mut message) };
    Errno::result(done)?;
    Id::try_from(message).map_err(|_| Errno::ERANGE)
}

/// The id that a tracee had before the exec for which it has stopped. If a thread other than the leader has made the
/// exec, that thread has the leader's id now. Then the kernel refuses all requests until a wait has taken the stop
/// (`looks_like_a_spurious_pid` in kernel/ptrace.c). So after a refusal the stop is taken, and the request is repeated.
pub fn id_before_exec(id: Id) -> Result<Id, Errno> {
    message(id).or_else(|_| {
        take_stop(id);
        message(id)
    })
}

/// The process that sent the signal for which a tracee has stopped; 0 if the kernel sent it.
pub fn sender(id: Id) -> Result<Id, Errno> {
    // SAFETY: all zeros are a valid `siginfo_t`, and it is a valid place for the result.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let done = libc::ptrace(libc::PTRACE_GETSIGINFO, id, 0usize, &raw mut info);
        Errno::result(done)?;
        Ok(if info.si_code > 0 { 0 } else { info.si_pid() })
    }
}

/// Whether the task `id` is a thread of the process `process`.
pub fn is_thread_of(process: Id, id: Id) -> bool {
    // SAFETY: signal 0 is only checked, not sent.
    unsafe { libc::syscall(libc::SYS_tgkill, process, id, 0) == 0 }
}

/// A stop or the end of a tracee, as the tracer has found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceeStop {
    pub id: Id,
    /// For a stop of the tracee, the signal in the low byte and the ptrace event above it; for its end, the raw `wait`
    /// status.
    pub status: i32,
}

/// The signal by which another thread ends the tracer's wait in [`next`] early. By default the signal is ignored.
const WAKE_UP: libc::c_int = libc::SIGURG;

extern "C" fn nothing(_: libc::c_int) {}

/// Enables [`wake`] to end a wait of the tracer. Stops of tracees then cause no SIGCHLD: they are many, and the tracer
/// waits for them in another way.
pub fn take_wake_ups() -> Result<(), Errno> {
    // SAFETY: all zeros are a valid `sigaction`; the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        Errno::result(libc::sigaction(
            WAKE_UP,
            &raw const action,
            std::ptr::null_mut(),
        ))?;
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = libc::SIG_DFL;
        action.sa_flags = libc::SA_NOCLDSTOP;
        let done = libc::sigaction(libc::SIGCHLD, &raw const action, std::ptr::null_mut());
        Errno::result(done).map(drop)
    }
}

/// Returns the id of the calling thread and prepares the thread, so that [`wake`] can end its waits from now on.
pub fn own_thread() -> Id {
    // SAFETY: all zeros are a valid set of signals, which `sigemptyset` initializes.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, WAKE_UP);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        // clippy.toml forbids `libc::gettid` and says why.
        libc::syscall(libc::SYS_gettid) as Id
    }
}

/// Ends the wait of the tracer's thread, which has this id.
pub fn wake(thread: Id) {
    // SAFETY: a plain system call; the handler does nothing.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, WAKE_UP) };
}

/// Makes the kernel send SIGCHLD for stops of tracees as well as for their ends, if `all` is set, otherwise only for
/// ends.
pub fn announce_stops(all: bool) {
    // SAFETY: all zeros are a valid `sigaction`, with the default action and no handler.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = libc::SIG_DFL;
        action.sa_flags = if all { 0 } else { libc::SA_NOCLDSTOP };
        libc::sigaction(libc::SIGCHLD, &raw const action, std::ptr::null_mut());
    }
}

/// Waits for SIGCHLD, which all threads block, and returns the id of the task that the signal is about. [`wake`] ends
/// the wait, and so does the time limit.
pub fn announced(longest: std::time::Duration) -> Option<Id> {
    let longest = libc::timespec {
        tv_sec: libc::time_t::try_from(longest.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: longest.subsec_nanos().into(),
    };
    // SAFETY: `sigemptyset` initializes the set; all zeros are a valid `siginfo_t`, and it is a valid place
    // for the result.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let signal = libc::sigtimedwait(&raw const set, &raw mut info, &raw const longest);
        (signal == libc::SIGCHLD).then(|| info.si_pid())
    }
}

/// The result of waiting for a tracee by [`next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A tracee has stopped. The next search finds the same stop again until the tracee goes on, or until
    /// [`take_stop`] takes the stop.
    Stop(TraceeStop),
    /// A tracee has ended. It remains a zombie until it is reaped.
    End(TraceeStop),
}

/// Finds a stop or an end of a tracee of the calling thread. If `wait` is set, the function waits for one, or for
/// [`wake`]. The same stop is found again until the tracee goes on or [`take_stop`] takes the stop.
pub fn next(wait: bool) -> Option<Next> {
    let flags = if wait { 0 } else { libc::WNOHANG };
    found((libc::P_ALL, 0), flags)
}

/// Finds a stop or an end of the tracee with this id, without waiting for one.
pub fn next_of(id: Id) -> Option<Next> {
    found((libc::P_PID, id.unsigned_abs()), libc::WNOHANG)
}

fn found(whose: (libc::idtype_t, libc::id_t), flags: libc::c_int) -> Option<Next> {
    let (kind, id) = whose;
    let kinds = libc::WSTOPPED | libc::WEXITED | libc::WNOWAIT | libc::__WALL | libc::__WNOTHREAD;
    let flags = flags | kinds;
    // SAFETY: all zeros are a valid `siginfo_t`, and it is a valid place for the result, which has
    // the state of a child, or still zeros.
    let (id, status, code) = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        if libc::waitid(kind, id, &raw mut info, flags) != 0 || info.si_pid() == 0 {
            return None;
        }
        (info.si_pid(), info.si_status(), info.si_code)
    };
    let status = match code {
        libc::CLD_EXITED => (status & 0xff) << 8,
        libc::CLD_DUMPED => status & 0x7f | 0x80,
        libc::CLD_KILLED => status & 0x7f,
        _ => return Some(Next::Stop(TraceeStop { id, status })),
    };
    Some(Next::End(TraceeStop { id, status }))
}

/// Consumes the stop of a tracee by waitid(2), although the tracee does not go on yet. The next search then does not
/// find the same stop again.
pub fn take_stop(id: Id) {
    let flags = libc::WSTOPPED | libc::WNOHANG | libc::__WALL | libc::__WNOTHREAD;
    // SAFETY: all zeros are a valid `siginfo_t`, and it is a valid place for the result.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        libc::waitid(libc::P_PID, id.unsigned_abs(), &raw mut info, flags);
    }
}

/// The stack pointer of a stopped 64-bit tracee, which is an address in its memory.
pub fn stack_pointer(id: Id) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    type Registers = libc::user_regs_struct;
    // The words of `struct user_pt_regs`: x0 to x30, the stack pointer, and two more.
    #[cfg(target_arch = "aarch64")]
    type Registers = [u64; 34];
    const NT_PRSTATUS: usize = 1;
    // SAFETY: all zeros are valid registers; the kernel writes as many bytes as `part` says, at
    // most, and says how many it has written.
    unsafe {
        let mut registers: Registers = std::mem::zeroed();
        let mut part = libc::iovec {
            iov_base: (&raw mut registers).cast(),
            iov_len: size_of::<Registers>(),
        };
        let done = libc::ptrace(libc::PTRACE_GETREGSET, id, NT_PRSTATUS, &raw mut part);
        // The kernel returns fewer registers for a 32-bit task, whose stack cannot be read here.
        if done != 0 || part.iov_len != size_of::<Registers>() {
            return None;
        }
        #[cfg(target_arch = "x86_64")]
        return usize::try_from(registers.rsp).ok();
        #[cfg(target_arch = "aarch64")]
        return usize::try_from(registers[31]).ok();
    }
}

const REAP_FLAGS: libc::c_int = libc::__WALL | libc::__WNOTHREAD | libc::WNOHANG;

/// Removes a tracee that is a zombie. The call does not ask for the resources (rusage), because the kernel would
/// examine all threads of the process to add them up.
pub fn reap(id: Id) {
    let usage = std::ptr::null_mut();
    // SAFETY: a plain system call, without places for results.
    unsafe { libc::wait4(id, std::ptr::null_mut(), REAP_FLAGS, usage) };
}

/// Removes a tracee that is a zombie. Returns its status, and its resources with those of the children that it waited
/// for.
pub fn reap_with_usage(id: Id) -> Option<(i32, libc::rusage)> {
    let mut status = 0;
    // SAFETY: all zeros are a valid `rusage`; both are valid places for the results.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let found = libc::wait4(id, &raw mut status, REAP_FLAGS, &raw mut usage);
        (found == id).then_some((status, usage))
    }
}
