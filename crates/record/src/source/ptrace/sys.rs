//! ptrace(2) and waitid(2), each call in its place.

use nix::errno::Errno;

use crate::source::proc::Id;

/// Options of a tracee; its children inherit them. No `PTRACE_O_EXITKILL`: if the recorder
/// is killed, COMMAND goes on.
const OPTIONS: i32 = libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC;

fn ptrace(request: libc::c_uint, id: Id, data: usize) -> Result<(), Errno> {
    // SAFETY: of the requests below none reads or writes the recorder's memory.
    let done = unsafe { libc::ptrace(request, id, 0usize, data) };
    Errno::result(done).map(drop)
}

/// Begins to trace a task; the calling thread is the tracer.
pub fn seize(id: Id) -> Result<(), Errno> {
    ptrace(libc::PTRACE_SEIZE, id, OPTIONS.unsigned_abs() as usize)
}

/// Lets a stopped tracee go on; `signal` is delivered to it, if it is not 0.
pub fn go_on(id: Id, signal: i32) -> Result<(), Errno> {
    ptrace(libc::PTRACE_CONT, id, signal.unsigned_abs() as usize)
}

/// Leaves a tracee in its group stop; the next SIGCONT ends that.
pub fn listen(id: Id) -> Result<(), Errno> {
    ptrace(libc::PTRACE_LISTEN, id, 0)
}

/// Stops a running tracee.
pub fn interrupt(id: Id) -> Result<(), Errno> {
    ptrace(libc::PTRACE_INTERRUPT, id, 0)
}

/// Lets go of a stopped tracee; `signal` is delivered to it, if it is not 0.
pub fn detach(id: Id, signal: i32) -> Result<(), Errno> {
    ptrace(libc::PTRACE_DETACH, id, signal.unsigned_abs() as usize)
}

/// The message of a tracee's event: the id of a child, the id before an exec.
pub fn message(id: Id) -> Result<Id, Errno> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: `message` is a valid place for the result.
    let done = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, id, 0usize, &raw mut message) };
    Errno::result(done)?;
    Id::try_from(message).map_err(|_| Errno::ERANGE)
}

/// The process that sent the signal for which a tracee has stopped; 0: the kernel.
pub fn sender(id: Id) -> Result<Id, Errno> {
    // SAFETY: all zeros are a valid `siginfo_t`, and it is a valid place for the result.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let done = libc::ptrace(libc::PTRACE_GETSIGINFO, id, 0usize, &raw mut info);
        Errno::result(done)?;
        Ok(if info.si_code > 0 { 0 } else { info.si_pid() })
    }
}

/// Whether a task is a thread of this process.
pub fn is_thread_of(process: Id, id: Id) -> bool {
    // SAFETY: signal 0 is only checked, not sent.
    unsafe { libc::syscall(libc::SYS_tgkill, process, id, 0) == 0 }
}

/// A state of a tracee that `waitid` has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The tracee.
    pub id: Id,
    /// Of a stop the signal, and the event beyond its low byte; of an end the raw `wait`
    /// status.
    pub status: i32,
}

/// The signal that ends [`wait_for_any`] early. Its default is to be ignored.
const WAKE_UP: libc::c_int = libc::SIGURG;

extern "C" fn nothing(_: libc::c_int) {}

/// Lets [`wake`] end a wait. Without stops in SIGCHLD: they are many, and the tracer waits
/// for them.
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

/// The calling thread; from now on [`wake`] reaches it.
pub fn own_thread() -> Id {
    // SAFETY: all zeros are a valid set, which `sigemptyset` initializes.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, WAKE_UP);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::gettid()
    }
}

/// Ends the wait of a thread of this process.
pub fn wake(thread: Id) {
    // SAFETY: a plain system call; the handler does nothing.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, WAKE_UP) };
}

/// Lets the main thread look for COMMAND's stop: SIGCHLD comes without stops.
pub fn announce_stop() {
    // SAFETY: a plain system call; the main thread takes the signal by its descriptor.
    unsafe {
        let process = libc::getpid();
        libc::syscall(libc::SYS_tgkill, process, process, libc::SIGCHLD);
    }
}

/// Waits for a stop or an end of a tracee, or for [`wake`].
pub fn wait_for_any() {
    let flags = libc::WSTOPPED | libc::WEXITED | libc::WNOWAIT | libc::__WALL | libc::__WNOTHREAD;
    // SAFETY: all zeros are a valid `siginfo_t`, and it is a valid place for the result.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        libc::waitid(libc::P_ALL, 0, &raw mut info, flags);
    }
}

fn wait(flags: i32) -> Option<libc::siginfo_t> {
    let flags = flags | libc::WNOHANG | libc::__WALL | libc::__WNOTHREAD;
    loop {
        // SAFETY: all zeros are a valid `siginfo_t`, and it is a valid place for the result.
        let (done, info) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            (libc::waitid(libc::P_ALL, 0, &raw mut info, flags), info)
        };
        match Errno::result(done) {
            Err(Errno::EINTR) => {}
            Err(_) => return None,
            // SAFETY: `waitid` has filled in a child's state, or left zeros.
            Ok(_) => return (unsafe { info.si_pid() } != 0).then_some(info),
        }
    }
}

/// Takes the next stop of a tracee of this thread.
pub fn next_stop() -> Option<Found> {
    let info = wait(libc::WSTOPPED)?;
    // SAFETY: `waitid` has filled in a child's state.
    let (id, status) = unsafe { (info.si_pid(), info.si_status()) };
    Some(Found { id, status })
}

/// What [`next_end`] finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// An ended tracee, which stays a zombie.
    End(Found),
    /// A stop: a wait for ends finds those of tracees, too.
    Stop,
}

/// Finds an ended tracee of this thread.
pub fn next_end() -> Option<Next> {
    let info = wait(libc::WEXITED | libc::WNOWAIT)?;
    // SAFETY: `waitid` has filled in a child's state.
    let (id, status) = unsafe { (info.si_pid(), info.si_status()) };
    let status = match info.si_code {
        libc::CLD_EXITED => (status & 0xff) << 8,
        libc::CLD_DUMPED => status & 0x7f | 0x80,
        libc::CLD_KILLED => status & 0x7f,
        _ => return Some(Next::Stop),
    };
    Some(Next::End(Found { id, status }))
}

/// Takes a zombie: its status and, with its waited-for children, its resources.
pub fn reap(id: Id) -> Option<(i32, libc::rusage)> {
    let mut status = 0;
    // SAFETY: all zeros are a valid `rusage`; both are valid places for the results.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let flags = libc::__WALL | libc::__WNOTHREAD | libc::WNOHANG;
        let found = libc::wait4(id, &raw mut status, flags, &raw mut usage);
        (found == id).then_some((status, usage))
    }
}
