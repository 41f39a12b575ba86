//! Supports recorded programs that use ptrace(2) themselves: debuggers, strace, the leak checker of sanitizers,
//! recorders. A task can have only one tracer, so ptrace(2) would fail for these programs while the recorder traces the
//! task. A seccomp filter of COMMAND announces such calls to the recorder, which then detaches from the tasks that the
//! calls are about.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags};

use crate::proc::Id;

/// The task that an announced call of ptrace(2) or clone(2) affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// The caller itself becomes a tracee by its call of ptrace(2).
    Caller,
    /// Another task becomes a tracee by the call of ptrace(2). The id is that of the task in the caller's pid
    /// namespace.
    Task(Id),
    /// The call of clone(2) makes a child that cannot be traced.
    Untraced,
}

/// A system call that a recorded task has announced. The call makes its caller or another task a tracee, or it makes a
/// child that cannot become a tracee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The number of the announcement of the call, which the answer repeats.
    id: u64,
    pub caller: Id,
    pub about: About,
}

/// The number of the architecture for which this program's system calls are made (linux/audit.h).
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: Option<u32> = None;

const TRACEME: u32 = 0;
const ATTACH: u32 = 16;
const SEIZE: u32 = 0x4206;

/// Installs the seccomp filter that announces calls of ptrace(2), and of clone(2) with CLONE_UNTRACED, in COMMAND's
/// process before its exec. Returns the listener for the announcements, which closes on exec.
///
/// The kernel allows the filter to an ordinary user only with `no_new_privs`, by which COMMAND gains no rights by an
/// exec. A task that an ordinary user traces gains no rights anyway.
///
/// # Errors
/// There is another listener (EBUSY), or the kernel refuses filters or lacks listeners (Linux 5.5).
pub fn install() -> Result<OwnedFd, Errno> {
    let architecture = ARCHITECTURE.ok_or(Errno::ENOSYS)?;
    let number = |call: libc::c_long| u32::try_from(call).map_err(|_| Errno::ENOSYS);
    let (ptrace, clone) = (number(libc::SYS_ptrace)?, number(libc::SYS_clone)?);
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let equal = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let has = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
    let give = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    // The filter reads `seccomp_data`, which has the number of the system call at byte 0, the architecture at byte 4
    // and the first argument at byte 16.
    let mut filter = [
        step(load, 0, 0, 4),
        step(equal, 0, 9, architecture),
        step(load, 0, 0, 0),
        step(equal, 3, 0, ptrace),
        step(equal, 0, 6, clone),
        step(load, 0, 0, 16),
        step(has, 5, 4, libc::CLONE_UNTRACED as u32),
        step(load, 0, 0, 16),
        step(equal, 3, 0, TRACEME),
        step(equal, 2, 0, ATTACH),
        step(equal, 1, 0, SEIZE),
        step(give, 0, 0, libc::SECCOMP_RET_ALLOW),
        step(give, 0, 0, libc::SECCOMP_RET_USER_NOTIF),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    let set = || {
        // SAFETY: the kernel reads `program` and the filter during the call.
        let fd = unsafe {
            let mode = libc::SECCOMP_SET_MODE_FILTER;
            libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program)
        };
        let fd = RawFd::try_from(Errno::result(fd)?).map_err(|_| Errno::EBADF)?;
        // SAFETY: the kernel has just opened the descriptor for this call, so nothing else owns it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    };
    match set() {
        Err(Errno::EACCES) => {
            nix::sys::prctl::set_no_new_privs()?;
            set()
        }
        result => result,
    }
}

/// Waits for the next announced call of ptrace(2) or clone(2); `None` after `timeout` ms without one.
///
/// # Errors
/// No task has the filter any more.
pub fn next(listener: &OwnedFd, timeout: u16) -> io::Result<Option<Call>> {
    let mut fd = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
    if !poll(&mut fd, timeout).is_ok_and(|ready| ready > 0) {
        return Ok(None);
    }
    let [polled] = fd;
    if !polled
        .revents()
        .is_some_and(|events| events.contains(PollFlags::POLLIN))
    {
        return Err(Errno::ENOENT.into());
    }
    // SAFETY: all zeros are a valid `seccomp_notif`, which the kernel demands and fills in.
    let (done, notification) = unsafe {
        let mut notification: libc::seccomp_notif = std::mem::zeroed();
        let request = RECEIVE;
        let done = libc::ioctl(listener.as_raw_fd(), request, &raw mut notification);
        (done, notification)
    };
    match Errno::result(done) {
        Ok(_) => {}
        // The caller has been interrupted by a signal meanwhile. It makes its call again, which is announced again.
        Err(Errno::ENOENT | Errno::EINTR) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    }
    let [request, target, ..] = notification.data.args;
    Ok(Some(Call {
        id: notification.id,
        caller: notification.pid.cast_signed(),
        about: match (libc::c_long::from(notification.data.nr), request as u32) {
            (libc::SYS_clone, _) => About::Untraced,
            (_, TRACEME) => About::Caller,
            _ => About::Task(target as Id),
        },
    }))
}

/// Lets an announced system call go on. If the caller has been interrupted, the answer fails, and the caller makes its
/// call again.
pub fn answer(listener: &OwnedFd, call: &Call) {
    let mut response = libc::seccomp_notif_resp {
        id: call.id,
        val: 0,
        error: 0,
        flags: CONTINUE,
    };
    // SAFETY: `response` is valid during the call.
    unsafe { libc::ioctl(listener.as_raw_fd(), SEND, &raw mut response) };
}

/// The flag in the answer to an announcement that lets the announced system call go on
/// (`SECCOMP_USER_NOTIF_FLAG_CONTINUE`).
const CONTINUE: u32 = 1;
/// The ioctl(2) number for receiving a seccomp announcement (`SECCOMP_IOCTL_NOTIF_RECV`): _IOWR('!', 0, struct
/// seccomp_notif).
const RECEIVE: libc::c_ulong = request::<libc::seccomp_notif>(0);
/// The ioctl(2) number for answering a seccomp announcement (`SECCOMP_IOCTL_NOTIF_SEND`): _IOWR('!', 1, struct
/// seccomp_notif_resp).
const SEND: libc::c_ulong = request::<libc::seccomp_notif_resp>(1);

const fn request<T>(number: libc::c_ulong) -> libc::c_ulong {
    3 << 30 | (size_of::<T>() as libc::c_ulong) << 16 | (b'!' as libc::c_ulong) << 8 | number
}
