//! The loader: `tr` as sudo runs it, for a `tr` that may not load BPF programs. It attaches the
//! programs, hands their descriptors over its standard input, a socket, and ends. It takes
//! numbers alone: it opens no file and executes no program for the other side.
//!
//! Before it reads the request, it becomes the user who called sudo, and keeps the capabilities
//! for BPF alone.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::unistd::{Gid, SysconfVar, Uid};
use tr_bpf::{Kernel, Programs};
use zerocopy::IntoBytes;

use super::request::{Reply, Request};
use crate::{identity, passing};

/// The time after which SIGALRM ends the loader, whatever it waits for, in seconds.
const LIMIT: u32 = 20;
/// Asks for an iterator over the tasks.
pub const ITERATOR: [u8; 1] = *b"i";

/// Why the loader does nothing.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// Standard input is no Unix socket.
    #[error("standard input is no Unix socket: tr record --sudo runs this, as root")]
    NoSocket,
    /// There is no SUDO_UID, or this is not root.
    #[error("only sudo runs this, as root")]
    NoSudo,
    /// Another user made the socket.
    #[error("the socket is of user {peer}, and user {caller} has called sudo")]
    Peer {
        /// The socket's.
        peer: u32,
        /// sudo's.
        caller: u32,
    },
    /// The kernel refuses a system call.
    #[error("cannot {action}: {errno}")]
    System {
        /// What was tried.
        action: &'static str,
        /// The error.
        errno: Errno,
    },
    /// The other side has ended, or has sent no request.
    #[error("the request: {0}")]
    Request(io::Error),
}

/// Serves the request from standard input.
///
/// # Errors
/// The loader has done nothing.
pub fn serve() -> Result<(), Refused> {
    // SAFETY: a plain system call; SIGALRM has its default action since the exec.
    unsafe { libc::alarm(LIMIT) };
    let stdin = io::stdin();
    let socket = stdin.as_fd();
    let peer = peer(socket).ok_or(Refused::NoSocket)?;
    let (user, group) = identity::caller().ok_or(Refused::NoSudo)?;
    if peer != user {
        return Err(Refused::Peer {
            peer: peer.as_raw(),
            caller: user.as_raw(),
        });
    }
    drop_rights(user, group).map_err(|errno| Refused::System {
        action: "give up root's rights",
        errno,
    })?;
    let mut request = Request::empty();
    passing::receive(socket, request.as_mut_bytes()).map_err(Refused::Request)?;
    let (reply, programs) = match attach(&request) {
        Ok((programs, irq_known)) => (
            Reply::attached(programs.is_raw(), irq_known, programs.samplers()),
            Some(programs),
        ),
        Err(reason) => (Reply::failed(&reason), None),
    };
    let descriptors = programs.as_ref().map(Programs::descriptors);
    let sent = passing::send(socket, reply.as_bytes(), &descriptors.unwrap_or_default());
    sent.map_err(Refused::Request)?;
    if let Some(programs) = programs {
        serve_iterators(socket, &programs);
    }
    Ok(())
}

/// Attaches the programs; whether wake-ups by interrupts are known, or the reason in words.
fn attach(request: &Request) -> Result<(Programs, bool), String> {
    let number = |var| {
        let value = nix::unistd::sysconf(var).ok().flatten();
        value.map_or(0, i64::cast_unsigned)
    };
    let memory = number(SysconfVar::_PHYS_PAGES).saturating_mul(number(SysconfVar::PAGE_SIZE));
    let settings = request.settings(memory).map_err(str::to_owned)?;
    let kernel = Kernel::detect().map_err(|error| error.to_string())?;
    let programs = Programs::attach(&kernel, &settings).map_err(|error| error.to_string())?;
    Ok((programs, kernel.preempt_count.is_some()))
}

/// Opens iterators for a `tr` to which the kernel refuses them, until it closes the socket.
/// Otherwise it does so at once.
fn serve_iterators(socket: BorrowedFd<'_>, programs: &Programs) {
    let mut asked = [0];
    while passing::receive(socket, &mut asked).is_ok() && asked == ITERATOR {
        // SAFETY: a plain system call; `tr` needs the loader as long as it records.
        unsafe { libc::alarm(0) };
        let iterator = programs.iterator();
        let iterator: Vec<_> = iterator.iter().map(AsFd::as_fd).collect();
        if passing::send(socket, &ITERATOR, &iterator).is_err() {
            return;
        }
    }
}

/// The user who made the Unix socket; `None`: it is none.
fn peer(socket: BorrowedFd<'_>) -> Option<Uid> {
    let option = |name, value: *mut libc::c_void, size: usize| {
        let mut len = libc::socklen_t::try_from(size).ok()?;
        // SAFETY: the callers pass a place of this size.
        let done = unsafe {
            let socket = socket.as_raw_fd();
            libc::getsockopt(socket, libc::SOL_SOCKET, name, value, &raw mut len)
        };
        (done == 0 && len as usize == size).then_some(())
    };
    let mut domain: libc::c_int = 0;
    option(
        libc::SO_DOMAIN,
        (&raw mut domain).cast(),
        size_of_val(&domain),
    )?;
    // SAFETY: all zeros are a valid `ucred`.
    let mut peer: libc::ucred = unsafe { std::mem::zeroed() };
    option(
        libc::SO_PEERCRED,
        (&raw mut peer).cast(),
        size_of_val(&peer),
    )?;
    (domain == libc::AF_UNIX).then(|| Uid::from_raw(peer.uid))
}

/// Becomes this user, with the capabilities for BPF. Before Linux 5.11 CAP_SYS_RESOURCE
/// raises the limit of memory for maps.
fn drop_rights(user: Uid, group: Gid) -> Result<(), Errno> {
    const SYS_RESOURCE: u64 = 1 << 24;
    const PERFMON: u64 = 1 << 38;
    const BPF: u64 = 1 << 39;
    /// `_LINUX_CAPABILITY_VERSION_3`: two words a set.
    const VERSION: u32 = 0x2008_0522;
    let [low, high] = {
        let kept = PERFMON | BPF | SYS_RESOURCE & permitted();
        [kept as u32, (kept >> 32) as u32]
    };
    // Version, process; of each word the effective, the permitted and the inheritable set.
    let (header, sets) = ([VERSION, 0], [low, low, 0, high, high, 0]);
    // SAFETY: plain system calls; capset(2) reads both arrays.
    unsafe {
        let keep = libc::prctl(libc::PR_SET_KEEPCAPS, 1, 0, 0, 0);
        Errno::result(keep)?;
    }
    nix::unistd::setgroups(&[])?;
    nix::unistd::setresgid(group, group, group)?;
    nix::unistd::setresuid(user, user, user)?;
    // SAFETY: as above.
    unsafe {
        Errno::result(libc::syscall(
            libc::SYS_capset,
            header.as_ptr(),
            sets.as_ptr(),
        ))?;
        Errno::result(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
    }
    Ok(())
}

/// The permitted capabilities: CAP_SYS_RESOURCE may be missing in a container.
fn permitted() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let set = status.lines().find_map(|line| line.strip_prefix("CapPrm:"));
    set.map_or(0, |set| u64::from_str_radix(set.trim(), 16).unwrap_or(0))
}
