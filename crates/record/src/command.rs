//! COMMAND: started stopped, released, waited for. It inherits the state that `tr`
//! itself inherited.

use std::ffi::{CString, OsString};
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use nix::errno::Errno;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal};
use nix::unistd::{ForkResult, Pid};
use tr_format::meta::Usage;

use crate::identity::{self, Identity};
use crate::status;

/// The state at the start of `tr`, which COMMAND inherits.
#[derive(Clone, Debug)]
pub struct Inherited {
    /// The user that runs COMMAND, if it is another one.
    pub user: Option<Identity>,
    /// The signal mask.
    pub mask: SigSet,
    /// SIGPIPE was ignored (Rust's runtime ignores it for itself).
    pub sigpipe_ignored: bool,
    /// Standard input, output, error were closed (Rust's runtime opens
    /// /dev/null in their place).
    pub closed_streams: [bool; 3],
}

/// A child that has not yet become COMMAND.
#[derive(Debug)]
pub struct Stopped {
    pid: Pid,
    release: std::fs::File,
    failure: std::fs::File,
}

/// COMMAND's process after its release.
#[derive(Debug)]
pub struct Running {
    pid: Pid,
    pidfd: OwnedFd,
    failure: std::fs::File,
}

/// COMMAND's end.
#[derive(Clone, Copy, Debug)]
pub struct Waited {
    /// The raw `wait` status.
    pub status: u32,
    /// The error of its exec.
    pub not_executed: Option<Errno>,
    /// Its own resources and those of the descendants that it waited for. `RUSAGE_CHILDREN`
    /// would add other children of this process, such as those before its own exec.
    pub usage: Usage,
}

/// Forks a child that waits before it executes `command`. If `tr` ends first, in whatever
/// way, the child ends too: COMMAND has not begun.
///
/// # Errors
/// The kernel refuses a pipe or a process, or an argument holds a NUL.
pub fn start(command: &[OsString], inherited: &Inherited) -> std::io::Result<Stopped> {
    let argv = command
        .iter()
        .map(|arg| CString::new(arg.as_bytes()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| std::io::Error::from(Errno::EINVAL))?;
    let program = argv.first().ok_or(Errno::EINVAL)?;
    let environment = identity::environment(inherited.user.as_ref());
    let (go_read, go_write) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    let (fail_read, fail_write) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    // A lock that another thread holds stays locked in the child. `record` has started no
    // thread before; before `run_untraced`, a thread of the failed recording may be about
    // to end. The child takes no lock but the allocator's, which glibc's fork handles, and
    // otherwise makes system calls only.
    // SAFETY: so the child does nothing that a fork beside a thread makes unsafe.
    match unsafe { nix::unistd::fork() }? {
        ForkResult::Parent { child } => {
            drop((go_read, fail_write));
            // With SIGCHLD ignored the kernel keeps no status. COMMAND has its own copy of
            // the disposition already.
            default_action(Signal::SIGCHLD);
            Ok(Stopped {
                pid: child,
                release: go_write.into(),
                failure: fail_read.into(),
            })
        }
        ForkResult::Child => {
            drop((go_write, fail_read));
            await_release(&go_read);
            let (errno, status) = match become_user(inherited) {
                Err(errno) => (errno, status::FAILED),
                Ok(()) => {
                    let failed = match &environment {
                        None => nix::unistd::execvp(program, &argv),
                        Some(environment) => nix::unistd::execvpe(program, &argv, environment),
                    };
                    let Err(errno) = failed;
                    (errno, status::not_executed(errno))
                }
            };
            let _ = nix::unistd::write(&fail_write, &(errno as i32).to_ne_bytes());
            // SAFETY: ends the child at once, without the parent's exit handlers.
            unsafe { libc::_exit(status.into()) }
        }
    }
}

/// In the child: waits for the release, or ends with the parent.
fn await_release(go: &OwnedFd) {
    let mut byte = [0u8; 1];
    loop {
        match nix::unistd::read(go, &mut byte) {
            Ok(1) => return,
            Err(Errno::EINTR) => {}
            // SAFETY: ends the child at once, without the parent's exit handlers.
            _ => unsafe { libc::_exit(status::FAILED.into()) },
        }
    }
}

/// In the child: takes on the inherited state and the user.
fn become_user(inherited: &Inherited) -> Result<(), Errno> {
    if !inherited.sigpipe_ignored {
        default_action(Signal::SIGPIPE);
    }
    let _ = nix::sys::signal::sigprocmask(SigmaskHow::SIG_SETMASK, Some(&inherited.mask), None);
    for (fd, closed) in (0..).zip(inherited.closed_streams) {
        if closed {
            // SAFETY: the runtime's stand-in; ours all have higher numbers.
            unsafe { libc::close(fd) };
        }
    }
    inherited.user.as_ref().map_or(Ok(()), Identity::assume)
}

fn default_action(signal: Signal) {
    // SAFETY: the default action is not a handler.
    let _ = unsafe { nix::sys::signal::signal(signal, SigHandler::SigDfl) };
}

impl Stopped {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw().unsigned_abs()
    }

    /// Lets it become COMMAND.
    ///
    /// # Errors
    /// The child has ended already, or the kernel refuses a pidfd.
    pub fn release(mut self) -> std::io::Result<Running> {
        let pidfd = pidfd_open(self.pid)?;
        self.release.write_all(b"g")?;
        Ok(Running {
            pid: self.pid,
            pidfd,
            failure: self.failure,
        })
    }

    /// Ends it: COMMAND never runs.
    pub fn abandon(self) {
        drop(self.release);
        let _ = nix::sys::wait::waitpid(self.pid, None);
    }
}

/// The inherited descriptors beyond standard error: they survived an exec, while `tr`'s
/// own are all closed on exec.
pub fn inherited_descriptors() -> Vec<i32> {
    let is_inherited = |fd: &i32| {
        // SAFETY: asks for a flag of a descriptor that may not be open.
        let flags = unsafe { libc::fcntl(*fd, libc::F_GETFD) };
        *fd > 2 && flags >= 0 && flags & libc::FD_CLOEXEC == 0
    };
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten();
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(is_inherited)
        .collect()
}

/// Closes `tr`'s copies of the inherited descriptors. When COMMAND closes its end of a
/// pipe, the pipe's reader sees the end.
pub fn leave_descriptors(inherited: &[i32]) {
    if let Ok(null) = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
    {
        for stream in [0, 1] {
            // A trace to standard output has a descriptor of its own (`destination`).
            // SAFETY: nothing of ours uses the standard streams' numbers by another name.
            unsafe { libc::dup3(null.as_raw_fd(), stream, 0) };
        }
    }
    for fd in inherited {
        // SAFETY: it was open before any descriptor of ours; nothing here uses it.
        unsafe { libc::close(*fd) };
    }
}

/// A descriptor that becomes readable at the end of the process (Linux 5.3).
///
/// # Errors
/// There is no such process.
pub fn pidfd_open(pid: Pid) -> std::io::Result<OwnedFd> {
    // SAFETY: a plain system call; a result that is not negative is a new descriptor.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0);
        let fd = i32::try_from(Errno::result(fd)?).map_err(|_| Errno::EBADF)?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

impl Running {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw().unsigned_abs()
    }

    /// Readable after the end of COMMAND's process.
    pub fn ended(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// COMMAND's process has ended.
    pub fn has_ended(&self) -> bool {
        use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
        let mut fd = [PollFd::new(self.ended(), PollFlags::POLLIN)];
        poll(&mut fd, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
    }

    /// Sends it a signal.
    pub fn forward(&self, signal: i32) {
        // SAFETY: a plain system call on a descriptor that we own.
        unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.pidfd.as_raw_fd(),
                signal,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            );
        }
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// Another part of the process has waited for it.
    pub fn wait(mut self) -> std::io::Result<Waited> {
        let mut status = 0;
        // SAFETY: all zeros are a valid `rusage`.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        loop {
            // SAFETY: `status` and `usage` are valid places for the results.
            let pid = unsafe { libc::wait4(self.pid.as_raw(), &mut status, 0, &mut usage) };
            match Errno::result(pid) {
                Ok(_) => break,
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        let mut errno = [0; 4];
        // Closed by a successful exec; the child is gone, so this cannot hang.
        let failure = self.failure.read_exact(&mut errno).ok();
        Ok(Waited {
            status: status.cast_unsigned(),
            not_executed: failure.map(|()| Errno::from_raw(i32::from_ne_bytes(errno))),
            usage: resources(&usage),
        })
    }
}

fn resources(usage: &libc::rusage) -> Usage {
    let count = |n: i64| u64::try_from(n).unwrap_or(0);
    let ns = |time: libc::timeval| {
        let us = count(time.tv_usec).saturating_mul(1000);
        count(time.tv_sec)
            .saturating_mul(1_000_000_000)
            .saturating_add(us)
    };
    Usage {
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        max_rss: count(usage.ru_maxrss).saturating_mul(1024),
        minor_faults: count(usage.ru_minflt),
        major_faults: count(usage.ru_majflt),
        voluntary_switches: count(usage.ru_nvcsw),
        involuntary_switches: count(usage.ru_nivcsw),
    }
}
