//! Implements the loader: a `tr` that sudo runs for another `tr` that may not load BPF programs. The loader attaches
//! the programs and sends their descriptors over its standard input, which is a socket. It ends when the other `tr`
//! closes the socket. The loader accepts only numbers: it opens no file and executes no program for the other `tr`.
//!
//! Before the loader reads the request, it becomes the user who called sudo, and keeps only the capabilities for BPF.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::errno::Errno;
use nix::fcntl::{fcntl, FcntlArg};
use nix::sys::prctl;
use nix::unistd::{alarm, Gid, SysconfVar, Uid};
use tr_bpf::{Living, Programs};
use zerocopy::IntoBytes;

use super::request::{Reply, Request};
use crate::{capabilities, host, passing};

/// The time in seconds after which SIGALRM ends the loader of BPF programs, whatever it waits for.
const LIMIT: u32 = 20;
/// The time in seconds after which a loader ends if no request comes from the `tr` for which it opens BPF iterators
/// over the tasks. The `tr` sends a request each second, but may be stopped for a while.
const IDLE_LIMIT: u32 = 3600;
/// The path of a lock file that only root can open. The loader of BPF programs locks one byte of it: the byte whose
/// offset is the uid of the user who called sudo.
const LOCK: &str = "/run/tr-loader.lock";
/// The byte by which a `tr` requests a BPF iterator over the tasks from the loader.
pub const ITERATOR: [u8; 1] = *b"i";

/// The reason why the loader refuses to attach BPF programs.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The loader's standard input is no Unix socket.
    #[error("standard input is no Unix socket: record --sudo runs this, as root")]
    NoSocket,
    /// The environment variable SUDO_UID is missing, or the loader does not run as root.
    #[error("only sudo runs this, as root")]
    NoSudo,
    /// The loader's standard input is a socket that was not made by the user who called sudo.
    #[error("the socket is of user {peer}, and user {caller} has called sudo")]
    Peer {
        /// The uid of the user who made the loader's socket.
        peer: u32,
        /// The uid of the user who called sudo.
        caller: u32,
    },
    /// The kernel refuses a system call of the loader.
    #[error("cannot {action}: {errno}")]
    System { action: &'static str, errno: Errno },
    /// The `tr` at the other end of the socket has ended, or has sent no request.
    #[error("the request: {0}")]
    Request(io::Error),
}

/// Serves the request for BPF programs that comes from standard input. `confine` restricts the loader to reading
/// /proc and /sys.
///
/// # Errors
/// The reason why the loader has attached no programs.
pub fn serve(confine: impl FnOnce()) -> Result<(), Refused> {
    // SIGALRM, which has had its default action since the exec, ends the loader after this time.
    alarm::set(LIMIT);
    let stdin = io::stdin();
    let socket = stdin.as_fd();
    let peer = peer(socket).ok_or(Refused::NoSocket)?;
    let (user, group) = tr_output::invoking_user().ok_or(Refused::NoSudo)?;
    if peer != user {
        return Err(Refused::Peer {
            peer: peer.as_raw(),
            caller: user.as_raw(),
        });
    }
    let refused = |action| move |errno| Refused::System { action, errno };
    // The lock is held from the count of the living recordings until the programs are attached. Otherwise two loaders
    // of a user could each miss the other's recording in the count.
    let lock = lock(user).map_err(refused("lock /run/tr-loader.lock"))?;
    let living = Living::find();
    confine();
    drop_rights(user, group).map_err(refused("give up root's rights"))?;
    let mut request = Request::empty();
    passing::receive(socket, request.as_mut_bytes()).map_err(Refused::Request)?;
    let (reply, programs) = match attach(&request, living) {
        Ok(programs) => (Reply::attached(programs.parts()), Some(programs)),
        Err(reason) => (Reply::failed(&reason), None),
    };
    drop(lock);
    let descriptors = programs.as_ref().map(Programs::descriptors);
    let sent = passing::send(socket, reply.as_bytes(), &descriptors.unwrap_or_default());
    sent.map_err(Refused::Request)?;
    if let Some(programs) = programs {
        serve_iterators(socket, &programs);
    }
    Ok(())
}

/// Waits until no other loader of this user has the lock, and takes it. The lock ends when the returned file is closed.
fn lock(user: Uid) -> Result<File, Errno> {
    let mut file = OpenOptions::new();
    file.read(true).write(true).create(true).mode(0o600);
    let file = file.custom_flags(libc::O_NOFOLLOW).open(LOCK);
    let file = file.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)))?;
    let byte = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: user.as_raw().into(),
        l_len: 1,
        l_pid: 0,
    };
    fcntl(&file, FcntlArg::F_OFD_SETLKW(&byte))?;
    Ok(file)
}

/// Attaches the BPF programs by the settings in the request.
///
/// # Errors
/// The reason why the programs could not be attached, as text for the user.
fn attach(request: &Request, living: Living) -> Result<Programs, String> {
    let pages = host::sysconf(SysconfVar::_PHYS_PAGES).unwrap_or(0);
    let memory = pages.saturating_mul(host::page_size().into());
    let settings = request.settings(memory, living).map_err(str::to_owned)?;
    Programs::start(&settings).map_err(|error| error.to_string())
}

/// Opens BPF iterators over the tasks for a `tr` to which the kernel refuses them, until that `tr` closes the socket. A
/// `tr` that needs no iterators closes the socket at once.
fn serve_iterators(socket: BorrowedFd<'_>, programs: &Programs) {
    let mut asked = [0];
    while passing::receive(socket, &mut asked).is_ok() && asked == ITERATOR {
        alarm::set(LIMIT);
        let iterator = programs.iterator();
        let iterator: Vec<_> = iterator.iter().map(AsFd::as_fd).collect();
        if passing::send(socket, &ITERATOR, &iterator).is_err() {
            return;
        }
        alarm::set(IDLE_LIMIT);
    }
}

/// The user who made the Unix socket; `None` if the descriptor is no Unix socket.
fn peer(socket: BorrowedFd<'_>) -> Option<Uid> {
    let domain = rustix::net::sockopt::socket_domain(socket).ok()?;
    // rustix cannot be used for this call, because rustix takes the process id 0 for impossible, and a peer in another
    // pid namespace has this id. SAFETY: all zeros are a valid `ucred`, and the kernel writes no more than its size.
    let (done, peer) = unsafe {
        let mut peer: libc::ucred = std::mem::zeroed();
        let mut len = size_of_val(&peer) as libc::socklen_t;
        let (level, name, place) = (libc::SOL_SOCKET, libc::SO_PEERCRED, &raw mut peer);
        let socket = socket.as_raw_fd();
        let done = libc::getsockopt(socket, level, name, place.cast(), &raw mut len);
        (done == 0 && len as usize == size_of_val(&peer), peer)
    };
    (done && domain == rustix::net::AddressFamily::UNIX).then(|| Uid::from_raw(peer.uid))
}

/// Makes the process run as this user, with only the capabilities for BPF, as far as a container has them.
fn drop_rights(user: Uid, group: Gid) -> Result<(), Errno> {
    prctl::set_keepcaps(true)?;
    nix::unistd::setgroups(&[])?;
    nix::unistd::setresgid(group, group, group)?;
    nix::unistd::setresuid(user, user, user)?;
    let kept = capabilities::keep(capabilities::TRACE);
    kept.map_err(|errno| Errno::from_raw(errno.raw_os_error()))?;
    prctl::set_no_new_privs()
}
