//! Forks a process that will execute COMMAND, releases it, and waits for the end of COMMAND. The process inherits the
//! state that `tr` itself inherited.

use std::ffi::{CString, OsStr, OsString};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::unistd::{access, AccessFlags, ForkResult, Pid};
use rustix::io;
use rustix::process::{self, PidfdFlags, WaitId, WaitIdOptions, WaitIdStatus};
use tr_format::meta::Usage;

use crate::identity::{self, Identity};
use crate::inherited::Inherited;
use crate::passing;
use crate::rescue::{self, Child, Stage};
use crate::source::ptrace::listener;
use crate::source::{Reaped, Source};
use crate::urgency;
use tr_output::status;

/// The program, arguments and environment of COMMAND, ready for exec.
#[derive(Debug)]
pub struct Program {
    argv: Vec<CString>,
    /// The file that is executed for COMMAND, as found in a directory of PATH; `None` if execvp(3) gets the name of
    /// COMMAND instead.
    file: Option<CString>,
    /// The environment that COMMAND gets; `None` stands for the environment of `tr`.
    environment: Option<Vec<CString>>,
    /// The user that COMMAND runs as; `None` stands for the user of `tr`.
    user: Option<Identity>,
    /// Whether COMMAND gets a session of its own. This is necessary if the terminal belongs to another user than
    /// COMMAND and the kernel allows TIOCSTI: COMMAND could otherwise type commands into that user's shell.
    own_session: bool,
    inherited: Inherited,
}

impl Program {
    /// Prepares the execution of COMMAND as the user `user`.
    ///
    /// # Errors
    /// `command` is empty, or one of its words contains a NUL.
    pub fn new(
        command: &[OsString],
        user: Option<Identity>,
        inherited: &Inherited,
    ) -> std::io::Result<Program> {
        let argv = command
            .iter()
            .map(|arg| CString::new(arg.as_bytes()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| std::io::Error::from(Errno::EINVAL))?;
        if argv.is_empty() {
            return Err(Errno::EINVAL.into());
        }
        let file = command.first().and_then(|name| find(name).ok()?);
        let file = file.and_then(|file| CString::new(file.into_os_string().into_vec()).ok());
        Ok(Program {
            // A name with a slash is itself the path of the file: execvp(3) executes it without a search of PATH.
            file: file.filter(|file| Some(file) != argv.first()),
            argv,
            environment: identity::environment(user.as_ref(), inherited.environment.clone()),
            own_session: user.as_ref().is_some_and(Identity::is_other) && terminal_takes_input(),
            user,
            inherited: inherited.clone(),
        })
    }

    /// Executes COMMAND in place of the present program. If that fails, returns the error and the exit status for it.
    /// The socket `announce` gets the listener of a seccomp filter that announces COMMAND's calls of ptrace(2), or is
    /// shut down if there is no such filter.
    pub fn exec(&self, announce: Option<&UnixStream>) -> (Errno, u8) {
        self.inherited.restore();
        if let Some(socket) = announce {
            let sent = listener::install()
                .map_err(std::io::Error::from)
                .and_then(|fd| passing::send(socket, b"d", &[fd.as_fd()]));
            if sent.is_err() {
                // The recorder, at the other end of the socket, then sees the end of the stream and does not wait for a
                // listener.
                let _ = socket.shutdown(Shutdown::Both);
            }
        }
        if self.own_session {
            // setsid(2) fails only for the leader of a process group, which the process forked for COMMAND never is.
            let _ = nix::unistd::setsid();
        }
        if let Some(Err(errno)) = self.user.as_ref().map(Identity::assume) {
            return (errno, status::FAILED);
        }
        let Some(program) = self.argv.first() else {
            return (Errno::EINVAL, status::FAILED);
        };
        // The found file is executed directly: execvp(3) would try each directory of PATH, and `--syscalls` would count
        // the failed execs as COMMAND's.
        if let Some(file) = &self.file {
            let _ = match &self.environment {
                None => nix::unistd::execv(file, &self.argv),
                Some(environment) => nix::unistd::execve(file, &self.argv, environment),
            };
        }
        let failed = match &self.environment {
            None => nix::unistd::execvp(program, &self.argv),
            Some(environment) => nix::unistd::execvpe(program, &self.argv, environment),
        };
        let Err(errno) = failed;
        (errno, status::not_executed(errno))
    }
}

/// The file that execvp(3) executes for COMMAND's name; `None` if only an exec can show which file this is.
///
/// # Errors
/// The error of access(2), if COMMAND is missing or not executable.
pub fn find(name: &OsStr) -> Result<Option<PathBuf>, Errno> {
    let look = |path: PathBuf| match access(&path, AccessFlags::X_OK) {
        Ok(()) if path.is_dir() => Err(Errno::EACCES),
        Ok(()) => Ok(Some(path)),
        // access(2) itself is refused, perhaps by a filter of system calls (seccomp(2)): only an exec can show the
        // answer.
        Err(Errno::EPERM) => Ok(None),
        Err(errno) => Err(errno),
    };
    if name.as_bytes().contains(&b'/') {
        return look(name.into());
    }
    let Some(path) = std::env::var_os("PATH") else {
        return Ok(None);
    };
    let mut why = Errno::ENOENT;
    for directory in std::env::split_paths(&path) {
        match look(directory.join(name)) {
            Ok(file) => return Ok(file),
            Err(Errno::EACCES) => why = Errno::EACCES,
            Err(_) => {}
        }
    }
    Err(why)
}

/// Whether a standard stream of `tr` is a terminal into which COMMAND could type by TIOCSTI. Since Linux 6.2 the
/// setting `dev.tty.legacy_tiocsti` can forbid that.
fn terminal_takes_input() -> bool {
    use std::io::IsTerminal;
    let terminal = std::io::stdin().is_terminal()
        || std::io::stdout().is_terminal()
        || std::io::stderr().is_terminal();
    let forbidden = || std::fs::read("/proc/sys/dev/tty/legacy_tiocsti").is_ok_and(|v| v == b"0\n");
    terminal && !forbidden()
}

/// The byte by which the recorder releases COMMAND's process and tells it to install the seccomp filter of
/// [`listener`].
const ANNOUNCE_BYTE: [u8; 1] = *b"a";

/// A child process that was forked for COMMAND, waits for its release and has not yet executed COMMAND.
#[derive(Debug)]
pub struct Stopped {
    pid: Pid,
    release: UnixStream,
    failure: std::fs::File,
    own_session: bool,
}

/// COMMAND's process after its release. Only [`Running::wait`], or the thread of the ptrace source, takes the status
/// of the process. Until then no other process can get its process id.
#[derive(Debug)]
pub struct Running {
    pid: Pid,
    failure: std::fs::File,
    /// Whether COMMAND leads a session of its own, which the terminal's signals do not reach.
    pub own_session: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct Waited {
    /// The raw `wait` status with which COMMAND ended.
    pub status: u32,
    /// The error of COMMAND's exec, if COMMAND could not be executed.
    pub not_executed: Option<Errno>,
    /// The resources of COMMAND and of the descendants that it waited for. `RUSAGE_CHILDREN` would include other
    /// children of `tr`, such as children that the process had before it executed `tr`.
    pub usage: Usage,
}

/// Forks a child process that waits before it executes `program`. If `tr` ends first, in whatever way, the child ends
/// as well, and COMMAND never begins.
pub fn start(program: &Program) -> std::io::Result<Stopped> {
    let (go_read, go_write) = UnixStream::pair()?;
    let (fail_read, fail_write) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    // A lock that another thread holds at the fork stays locked in the child. `record` has started no thread before;
    // before `run_untraced`, a thread of the failed recording may be about to end. The child takes no lock but the
    // allocator's, which glibc's fork handles, and otherwise makes system calls only. SAFETY: therefore the child does
    // nothing that is unsafe after a fork of a process with several threads.
    match unsafe { nix::unistd::fork() }? {
        ForkResult::Parent { child } => {
            drop((go_read, fail_write));
            rescue::note(Some(Stage::Forked(child.as_raw().unsigned_abs())));
            Ok(Stopped {
                pid: child,
                release: go_write,
                failure: fail_read.into(),
                own_session: program.own_session,
            })
        }
        ForkResult::Child => {
            drop((go_write, fail_read));
            let (errno, status) = match await_release(&go_read) {
                Ok(announce) => program.exec(announce.then_some(&go_read)),
                Err(errno) => (errno, status::FAILED),
            };
            let _ = nix::unistd::write(&fail_write, &(errno as i32).to_ne_bytes());
            // SAFETY: ends the child at once, without the parent's exit handlers.
            unsafe { libc::_exit(status.into()) }
        }
    }
}

/// Waits in the child process until the parent releases it. Returns an error if the parent has ended. The result is
/// true if COMMAND's calls of ptrace(2) have to be announced.
fn await_release(go: &UnixStream) -> Result<bool, Errno> {
    let mut byte = [0u8; 1];
    loop {
        match nix::unistd::read(go, &mut byte) {
            Ok(0) => return Err(Errno::EPIPE),
            Ok(_) => return Ok(byte == ANNOUNCE_BYTE),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

impl Stopped {
    pub fn pid(&self) -> u32 {
        self.pid.as_raw().unsigned_abs()
    }

    /// Releases the waiting child process, so that it executes COMMAND.
    ///
    /// # Errors
    /// The child has ended already, or the kernel refuses the write that would release the child. COMMAND then never
    /// runs.
    pub fn release(mut self) -> std::io::Result<Running> {
        self.note();
        if let Err(error) = self.release.write_all(b"g") {
            self.abandon();
            return Err(error);
        }
        Ok(self.running())
    }

    /// Releases the waiting child process, so that it executes COMMAND, whose calls of ptrace(2) are announced.
    /// Returns the listener for the announcements, if there is one.
    pub fn release_announcing(mut self) -> std::io::Result<(Running, Option<OwnedFd>)> {
        self.note();
        if let Err(error) = self.release.write_all(&ANNOUNCE_BYTE) {
            self.abandon();
            return Err(error);
        }
        let received = passing::receive(&self.release, &mut [0]).ok();
        let listener = received.and_then(|mut descriptors| descriptors.pop());
        Ok((self.running(), listener))
    }

    /// Tells the panic handler ([`rescue`]) that COMMAND runs. This happens before the write that releases COMMAND's
    /// process, because a panic in another thread at that moment must not start COMMAND a second time. If the write
    /// fails, `tr` ends with status 125.
    fn note(&self) {
        rescue::note(Some(Stage::Runs(Child {
            pid: self.pid(),
            own_session: self.own_session,
        })));
    }

    fn running(self) -> Running {
        Running {
            pid: self.pid,
            failure: self.failure,
            own_session: self.own_session,
        }
    }

    /// Ends the waiting child process without executing COMMAND.
    pub fn abandon(self) {
        drop(self.release);
        let _ = nix::sys::wait::waitpid(self.pid, None);
        rescue::note(None);
    }
}

/// The numbers of the descriptors beyond standard error that `tr` inherited. Such a descriptor lacks the flag to be
/// closed at an exec, which every descriptor that `tr` itself opens has.
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

/// Closes the inherited descriptors of `tr`, and replaces its standard input and output by /dev/null. When COMMAND
/// closes its end of an inherited pipe, the pipe's reader then sees the end.
pub fn leave_descriptors(inherited: &[i32]) {
    if let Ok(null) = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
    {
        for stream in [0, 1] {
            // A trace that goes to standard output is written through a duplicate of that descriptor (see
            // `destination`). SAFETY: no value of this process owns the descriptors 0 and 1.
            unsafe { libc::dup3(null.as_raw_fd(), stream, 0) };
        }
    }
    for fd in inherited {
        // SAFETY: the descriptor was inherited, so no value of this process owns it, and nothing here uses it.
        unsafe { libc::close(*fd) };
    }
}

/// A descriptor that becomes readable when the process ends (pidfd, Linux 5.3).
pub fn pidfd_open(pid: Pid) -> std::io::Result<OwnedFd> {
    let pid = process::Pid::from_raw(pid.as_raw()).ok_or(Errno::EINVAL)?;
    Ok(process::pidfd_open(pid, PidfdFlags::empty())?)
}

impl Running {
    /// Takes over the running COMMAND that the previous recorder process has left to this process. The error of
    /// COMMAND's exec, if there was one, is unknown.
    pub fn of(child: Child) -> std::io::Result<Running> {
        Ok(Running {
            pid: Pid::from_raw(child.pid.cast_signed()),
            failure: std::fs::File::open("/dev/null")?,
            own_session: child.own_session,
        })
    }

    pub fn pid(&self) -> u32 {
        self.pid.as_raw().unsigned_abs()
    }

    /// Whether COMMAND's process has stopped or ended, as `change` and `is` specify. The status of the process
    /// remains for a later `wait`. A stop of a COMMAND that is traced has the code CLD_TRAPPED, which
    /// `WaitIdStatus::stopped` does not count: the ptrace source finds such stops ([`Source::has_stopped_command`]).
    fn has(&self, change: WaitIdOptions, is: fn(&WaitIdStatus) -> bool) -> io::Result<bool> {
        let pid = process::Pid::from_raw(self.pid.as_raw()).ok_or(io::Errno::SRCH)?;
        let options = change | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let changed = process::waitid(WaitId::Pid(pid), options)?;
        Ok(changed.is_some_and(|status| is(&status)))
    }

    pub fn has_ended(&self) -> bool {
        let ended = self.has(WaitIdOptions::EXITED, |status| {
            status.exited() || status.killed() || status.dumped()
        });
        ended.unwrap_or_else(|errno| errno == io::Errno::CHILD)
    }

    /// Whether COMMAND is stopped while its process group, or the group of `tr`, is in the foreground of the terminal.
    fn is_stopped_in_foreground(&self, source: Option<&dyn Source>) -> bool {
        let own = || nix::unistd::getpgid(Some(self.pid)).ok() == foreground();
        let stopped = self.has(WaitIdOptions::STOPPED, WaitIdStatus::stopped);
        let seen = source.is_some_and(Source::has_stopped_command);
        let stopped = seen || stopped.unwrap_or(false);
        stopped && (in_foreground() || own())
    }

    /// If COMMAND has stopped in the foreground, for example by the `suspend` of an interactive shell, stops `tr` as
    /// well, because the shell that started `tr` waits for `tr` to stop. A later SIGCONT to `tr` is passed on to
    /// COMMAND.
    pub fn stop_alike(&self, source: Option<&dyn Source>) {
        if self.own_session || !self.is_stopped_in_foreground(source) {
            return;
        }
        // If SIGCONT went to the whole process group, it may have continued `tr` before COMMAND. So COMMAND is checked
        // again after a pause.
        crate::host::pause(std::time::Duration::from_millis(5));
        if self.is_stopped_in_foreground(source) {
            // The kernel ignores this SIGTSTP if no shell with job control started `tr`: nobody could continue `tr`
            // then.
            let _ = nix::sys::signal::kill(Pid::this(), Signal::SIGTSTP);
        }
    }

    /// Sends a signal to COMMAND, with the value of sigqueue(3) if there is one. If `from_terminal` is set, COMMAND
    /// has a session of its own, and the signal goes to its whole process group.
    pub fn forward(&self, signal: i32, value: Option<u64>, from_terminal: bool) {
        // If another part of the recorder has already reaped COMMAND, its process id may now belong to another process.
        if self.has_ended() {
            return;
        }
        let pid = self.pid.as_raw();
        match value {
            Some(value) => {
                let value = libc::sigval {
                    sival_ptr: std::ptr::without_provenance_mut(value as usize),
                };
                // SAFETY: a plain system call; COMMAND gets the value, nothing here reads it.
                unsafe { libc::sigqueue(pid, signal, value) };
            }
            None => {
                // SAFETY: a plain system call; our child keeps its id until `wait`.
                unsafe { libc::kill(if from_terminal { -pid } else { pid }, signal) };
            }
        }
    }

    /// Waits for the end of COMMAND, and returns its `wait` status and its resources.
    ///
    /// # Errors
    /// Another part of the process has waited for COMMAND, or the kernel refuses the call.
    pub fn wait(self) -> std::io::Result<Waited> {
        const TRIES: u32 = 50;
        urgency::normal();
        let mut tries = 0;
        let mut status = 0;
        // SAFETY: all zeros are a valid `rusage`.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        loop {
            // SAFETY: `status` and `usage` are valid places for the results.
            let pid = unsafe { libc::wait4(self.pid.as_raw(), &mut status, 0, &mut usage) };
            match Errno::result(pid) {
                Ok(_) => return Ok(self.waited(Reaped { status, usage })),
                Err(Errno::EINTR) => {}
                Err(errno) if errno == Errno::ECHILD || tries >= TRIES => {
                    return Err(errno.into());
                }
                Err(_) => {
                    tries += 1;
                    crate::host::pause(std::time::Duration::from_millis(20));
                }
            }
        }
    }

    /// Makes the result for a COMMAND whose end another part of the process has waited for: its `wait` status and its
    /// resources.
    pub fn waited(mut self, reaped: Reaped) -> Waited {
        rescue::note(Some(Stage::Ended(reaped.status.cast_unsigned())));
        let mut errno = [0; 4];
        // A successful exec has closed the pipe, and the child has ended, so this read cannot block.
        let failure = self.failure.read_exact(&mut errno).ok();
        Waited {
            status: reaped.status.cast_unsigned(),
            not_executed: failure.map(|()| Errno::from_raw(i32::from_ne_bytes(errno))),
            usage: resources(&reaped.usage),
        }
    }
}

/// Whether the process group of `tr` is the terminal's foreground group, which gets the user's Ctrl-C.
pub fn in_foreground() -> bool {
    foreground() == Some(nix::unistd::getpgrp())
}

fn foreground() -> Option<Pid> {
    let terminal = std::fs::File::open("/dev/tty").ok()?;
    nix::unistd::tcgetpgrp(terminal).ok()
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
