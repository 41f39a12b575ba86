//! COMMAND: started stopped, released, waited for. Everything it inherits is
//! what `tr` itself inherited.

use std::ffi::{CString, OsString};
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::unistd::{ForkResult, Pid};

use crate::identity::{self, Identity};
use crate::status;

/// How things were when `tr` was started, for COMMAND to inherit.
#[derive(Clone, Debug)]
pub struct Inherited {
    /// Another user for COMMAND.
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

/// COMMAND's process, from its release on.
#[derive(Debug)]
pub struct Running {
    pid: Pid,
    pidfd: OwnedFd,
    failure: std::fs::File,
}

/// Forks a child that waits before it executes `command`. When `tr` ends
/// first, in whatever way, the child ends too: COMMAND has not begun.
///
/// # Errors
/// When the kernel refuses a pipe or a process; when an argument holds a NUL.
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
    // A thread could leave the child a lock that nobody will open. `record` has
    // started none before; of a recording that could not begin, before
    // `run_untraced`, one may be about to end: the child takes no lock but the
    // allocator's, which glibc's fork looks after, and else makes system calls.
    // SAFETY: so the child does nothing that a fork beside a thread makes unsafe.
    match unsafe { nix::unistd::fork() }? {
        ForkResult::Parent { child } => {
            drop((go_read, fail_write));
            // Where SIGCHLD is ignored there is no status to wait for; COMMAND
            // has its own copy of that already.
            // SAFETY: the default action is not a handler.
            let _ = unsafe {
                nix::sys::signal::signal(Signal::SIGCHLD, nix::sys::signal::SigHandler::SigDfl)
            };
            Ok(Stopped {
                pid: child,
                release: go_write.into(),
                failure: fail_read.into(),
            })
        }
        ForkResult::Child => {
            drop((go_write, fail_read));
            let mut go = [0u8; 1];
            loop {
                match nix::unistd::read(&go_read, &mut go) {
                    Ok(1) => break,
                    Err(Errno::EINTR) => {}
                    // SAFETY: ends the child at once, without the parent's exit handlers.
                    _ => unsafe { libc::_exit(status::FAILED.into()) },
                }
            }
            restore_signals(inherited);
            for (fd, closed) in (0..).zip(inherited.closed_streams) {
                if closed {
                    // SAFETY: the runtime's stand-in; ours all have higher numbers.
                    unsafe { libc::close(fd) };
                }
            }
            let fail = |errno: Errno, code: i32| -> ! {
                let _ = nix::unistd::write(&fail_write, &(errno as i32).to_ne_bytes());
                // SAFETY: as above.
                unsafe { libc::_exit(code) }
            };
            if let Some(Err(errno)) = inherited.user.as_ref().map(Identity::assume) {
                fail(errno, status::FAILED.into());
            }
            let failed = match &environment {
                None => nix::unistd::execvp(program, &argv),
                Some(environment) => nix::unistd::execvpe(program, &argv, environment),
            };
            let errno = match failed {
                Err(errno) => errno,
                Ok(never) => match never {},
            };
            fail(errno, status::not_executed(errno).into())
        }
    }
}

fn restore_signals(inherited: &Inherited) {
    if !inherited.sigpipe_ignored {
        // SAFETY: the default action is not a handler.
        let _ = unsafe {
            nix::sys::signal::signal(Signal::SIGPIPE, nix::sys::signal::SigHandler::SigDfl)
        };
    }
    let _ = nix::sys::signal::sigprocmask(SigmaskHow::SIG_SETMASK, Some(&inherited.mask), None);
}

impl Stopped {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw().unsigned_abs()
    }

    /// Lets it become COMMAND.
    ///
    /// # Errors
    /// When the child is gone already, or the kernel gives no pidfd.
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

/// The descriptors beyond standard error that we were started with: ours are
/// all closed on exec, those that have survived one are not.
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

/// Lets go of what COMMAND alone is to hold from now on: the end of a pipe that
/// it closes is then really closed, and whoever reads it sees the end.
pub fn leave_descriptors(inherited: &[i32]) {
    if let Ok(null) = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
    {
        for stream in [0, 1] {
            // See `output::prepare` for standard output.
            // SAFETY: nothing of ours uses the standard streams' numbers by another name.
            unsafe { libc::dup3(null.as_raw_fd(), stream, 0) };
        }
    }
    for fd in inherited {
        // SAFETY: it was open before anything of ours was; nobody here uses it.
        unsafe { libc::close(*fd) };
    }
}

/// A descriptor that becomes readable when the process has ended (Linux 5.3).
///
/// # Errors
/// When there is no such process.
pub fn pidfd_open(pid: Pid) -> std::io::Result<OwnedFd> {
    // SAFETY: a plain system call; what is not negative is a new descriptor of nobody else's.
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

    /// Readable when COMMAND's process has ended.
    pub fn ended(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// COMMAND's process has ended.
    pub fn has_ended(&self) -> bool {
        use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
        let mut fd = [PollFd::new(self.ended(), PollFlags::POLLIN)];
        poll(&mut fd, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
    }

    /// Sends a signal on to it.
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

    /// Waits for its end: the raw `wait` status, and why it could not be
    /// executed, if so.
    ///
    /// # Errors
    /// When somebody else has waited for it.
    pub fn wait(mut self) -> std::io::Result<(u32, Option<Errno>)> {
        let mut status = 0;
        loop {
            // SAFETY: `status` is a valid place for the result.
            match Errno::result(unsafe { libc::waitpid(self.pid.as_raw(), &mut status, 0) }) {
                Ok(_) => break,
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        let mut errno = [0; 4];
        // Closed by a successful exec; the child is gone, so this cannot hang.
        let failure = self
            .failure
            .read_exact(&mut errno)
            .ok()
            .map(|()| Errno::from_raw(i32::from_ne_bytes(errno)));
        Ok((status.cast_unsigned(), failure))
    }
}
