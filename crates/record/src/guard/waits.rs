//! Finds out from `/proc` what the processes of a hanging COMMAND wait for.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::TcpListener;
use std::ops::Deref;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use super::activity::Activity;
use super::peers;
use super::{Identity, ARGV};
use crate::command::pidfd_open;
use crate::hang::{HangWait, HungProcess};
use crate::proc::{self, Id};

/// The largest number of descriptors of one process that are examined.
const DESCRIPTORS: usize = 1024;

/// The processes of a COMMAND that hangs, among which the causes of waits are searched.
struct Processes {
    ids: Vec<Id>,
    /// The processes that have each socket open, by the socket's inode. The map is made at most once, because it needs
    /// a look at all descriptors of all processes.
    holders: OnceCell<HashMap<u64, Vec<Id>>>,
}

impl Deref for Processes {
    type Target = [Id];

    fn deref(&self) -> &[Id] {
        &self.ids
    }
}

impl Processes {
    fn holders(&self) -> &HashMap<u64, Vec<Id>> {
        self.holders.get_or_init(|| {
            let mut holders: HashMap<u64, Vec<Id>> = HashMap::new();
            for id in &self.ids {
                let links = descriptors(*id).filter_map(|descriptor| link(*id, descriptor));
                for inode in links.filter_map(|name| socket_inode(&name)) {
                    holders.entry(inode).or_default().push(*id);
                }
            }
            holders
        })
    }
}

/// The living processes of a hanging COMMAND, each with what it waits for. The list also has processes that do not
/// descend from COMMAND, but for which a process of COMMAND waits.
pub fn processes(own: &[Identity], activity: &Activity) -> Vec<HungProcess> {
    let ids = Processes {
        ids: own.iter().map(|(id, _)| *id).collect(),
        holders: OnceCell::new(),
    };
    let mut found: Vec<HungProcess> = ids
        .iter()
        .filter_map(|id| process(*id, &ids, activity, true))
        .collect();
    let known: HashSet<u32> = found.iter().map(|process| process.pid).collect();
    let awaited = found.iter().flat_map(|process| match &process.wait {
        HangWait::FileLock {
            holders: others, ..
        }
        | HangWait::Connection { others, .. } => others.as_slice(),
        _ => &[],
    });
    let outside: HashSet<u32> = awaited
        .copied()
        .filter(|pid| !known.contains(pid))
        .collect();
    let outside = outside.into_iter().filter_map(|pid| Id::try_from(pid).ok());
    found.extend(outside.filter_map(|id| process(id, &ids, activity, false)));
    found
}

fn process(id: Id, all: &Processes, activity: &Activity, is_own: bool) -> Option<HungProcess> {
    let stat = proc::stat(id).filter(|stat| !stat.zombie)?;
    let (wait, thread) = wait_of(id, all);
    let pid = id.unsigned_abs();
    Some(HungProcess {
        pid,
        parent: stat.parent.unsigned_abs(),
        comm: stat.comm,
        argv: proc::cmdline(pid, ARGV),
        wait,
        since: activity.since(thread),
        is_own,
    })
}

/// The wait of a process, and the id of the thread that waits: the main thread, or another thread if only that one
/// waits for something outside of the process.
fn wait_of(id: Id, all: &Processes) -> (HangWait, Id) {
    let first = thread_wait(id, id, all);
    if is_outside(&first) {
        return (first, id);
    }
    let others = proc::threads(id).into_iter().filter(|thread| *thread != id);
    let mut waits = others.map(|thread| (thread_wait(id, thread, all), thread));
    waits
        .find(|(wait, _)| is_outside(wait))
        .unwrap_or((first, id))
}

/// Whether a wait is for something outside of the waiting process, so that it explains why COMMAND hangs.
fn is_outside(wait: &HangWait) -> bool {
    !matches!(
        wait,
        HangWait::OwnPipe
            | HangWait::Thread
            | HangWait::SharedLock
            | HangWait::OwnLock
            | HangWait::Sleep
            | HangWait::Poll
            | HangWait::Call(_)
            | HangWait::Unknown
    )
}

/// A system call in which a thread waits, and its arguments.
struct SystemCall {
    number: i64,
    arguments: [u64; 6],
}

fn system_call(process: Id, thread: Id) -> Option<Result<SystemCall, HangWait>> {
    let text = std::fs::read_to_string(format!("/proc/{process}/task/{thread}/syscall")).ok()?;
    if text.starts_with("running") {
        return Some(Err(HangWait::Runs));
    }
    let mut words = text.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let mut arguments = [0; 6];
    for (argument, word) in arguments.iter_mut().zip(words) {
        *argument = u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()?;
    }
    Some(Ok(SystemCall { number, arguments }))
}

fn thread_wait(id: Id, thread: Id, all: &Processes) -> HangWait {
    if proc::stat(thread).is_some_and(|stat| stat.state == b'T') {
        return HangWait::Stopped;
    }
    let call = match system_call(id, thread) {
        Some(Ok(call)) => call,
        Some(Err(wait)) => return wait,
        None => return HangWait::Unknown,
    };
    let [first, second, third, ..] = call.arguments;
    let descriptor = |writes| of_descriptor(id, first, writes, all);
    match call.number {
        libc::SYS_wait4 | libc::SYS_waitid => HangWait::Child,
        libc::SYS_read
        | libc::SYS_readv
        | libc::SYS_pread64
        | libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_splice => descriptor(false),
        libc::SYS_write
        | libc::SYS_writev
        | libc::SYS_sendto
        | libc::SYS_sendmsg
        | libc::SYS_connect => descriptor(true),
        libc::SYS_accept | libc::SYS_accept4 => HangWait::Accept(
            socket(id, first).and_then(|fd| TcpListener::from(fd).local_addr().ok()),
        ),
        libc::SYS_flock => lock(id, first, all),
        libc::SYS_fcntl if is_lock(second) => lock(id, first, all),
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => HangWait::Sleep,
        libc::SYS_futex => futex(id, second),
        libc::SYS_openat => open(id, second, third),
        libc::SYS_ppoll => first_of(id, polled(id, first, second), all),
        libc::SYS_pselect6 => first_of(id, selected(id, first, second), all),
        libc::SYS_epoll_pwait => first_of(id, registered(id, first), all),
        number => legacy(id, number, [first, second], all),
    }
}

/// The wait of a process in futex(2). Only a futex without the flag FUTEX_PRIVATE_FLAG can be ended by another process.
fn futex(id: Id, operation: u64) -> HangWait {
    let is_private = operation & u64::from(libc::FUTEX_PRIVATE_FLAG.unsigned_abs()) != 0;
    match (proc::threads(id).len(), is_private) {
        (0 | 1, false) => HangWait::SharedLock,
        (0 | 1, true) => HangWait::OwnLock,
        _ => HangWait::Thread,
    }
}

fn is_lock(operation: u64) -> bool {
    const OFD: i32 = libc::F_OFD_SETLKW;
    i32::try_from(operation).is_ok_and(|operation| [libc::F_SETLKW, OFD].contains(&operation))
}

/// The wait of a process in a system call that x86-64 has and newer architectures lack, such as open(2) or poll(2).
#[cfg(target_arch = "x86_64")]
fn legacy(id: Id, number: i64, [first, second]: [u64; 2], all: &Processes) -> HangWait {
    match number {
        libc::SYS_open => open(id, first, second),
        libc::SYS_poll => first_of(id, polled(id, first, second), all),
        libc::SYS_select => first_of(id, selected(id, first, second), all),
        libc::SYS_epoll_wait => first_of(id, registered(id, first), all),
        number => HangWait::Call(number),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn legacy(_: Id, number: i64, _: [u64; 2], _: &[Id]) -> HangWait {
    HangWait::Call(number)
}

/// A descriptor for which a process waits: until it can be written if `writes` is set, otherwise until it can be read.
struct Wanted {
    descriptor: u64,
    writes: bool,
}

impl Wanted {
    fn to_read(descriptor: u64) -> Wanted {
        Wanted {
            descriptor,
            writes: false,
        }
    }
}

/// Describes a wait for any of several descriptors (poll(2)) by the first descriptor that explains why COMMAND hangs.
/// If that descriptor is a terminal, or a pipe whose other end no process of COMMAND has, a later descriptor is
/// preferred whose other end a process of COMMAND has.
fn first_of(id: Id, wanted: Vec<Wanted>, all: &Processes) -> HangWait {
    if wanted.is_empty() {
        return HangWait::Sleep;
    }
    let mut waits = wanted
        .iter()
        .map(|wanted| of_descriptor(id, wanted.descriptor, wanted.writes, all));
    let explains = |wait: &HangWait| {
        is_outside(wait) && !matches!(wait, HangWait::File(_)) && !wait.is_own_socket()
    };
    let Some(first) = waits.find(explains) else {
        let mut wanted = wanted.iter();
        let by_itself = wanted.all(|wanted| is_own(id, wanted, all));
        let is_by_thread = by_itself && proc::threads(id).len() > 1;
        return if is_by_thread {
            HangWait::Thread
        } else {
            HangWait::Poll
        };
    };
    let is_from_outside = matches!(first, HangWait::Pipe { .. } | HangWait::Terminal { .. });
    if wanted.len() == 1 || !is_from_outside || !first.holders().is_empty() {
        return first;
    }
    let better = waits.find(|wait| !wait.holders().is_empty());
    better.unwrap_or_else(|| HangWait::AnyOf(Box::new(first)))
}

/// Whether only the process itself can end its wait for this descriptor. Runtimes (Go, Java) use a pipe or an eventfd
/// to wake their own threads.
fn is_own(id: Id, wanted: &Wanted, all: &Processes) -> bool {
    let is_event = link(id, wanted.descriptor).is_some_and(|name| name == "anon_inode:[eventfd]");
    is_event || of_descriptor(id, wanted.descriptor, wanted.writes, all) == HangWait::OwnPipe
}

/// The descriptors that a call of poll(2) waits to read or to write. Programs such as `tail -f` also list a descriptor
/// only to notice that the reader of their output is gone; these are left out.
fn polled(id: Id, address: u64, count: u64) -> Vec<Wanted> {
    let count = usize::try_from(count).unwrap_or(0).min(DESCRIPTORS);
    let bytes = memory(id, address, count * 8);
    let wanted = bytes.chunks_exact(8).filter_map(|entry| {
        let (word, rest) = entry.split_first_chunk()?;
        let descriptor = u64::try_from(i32::from_ne_bytes(*word)).ok()?;
        let events = i16::from_ne_bytes(*rest.first_chunk()?);
        let reads = events & (libc::POLLIN | libc::POLLRDNORM | libc::POLLPRI) != 0;
        let writes = events & (libc::POLLOUT | libc::POLLWRNORM) != 0;
        (reads || writes).then_some(Wanted {
            descriptor,
            writes: !reads,
        })
    });
    wanted.collect()
}

/// The descriptors that a call of select(2) waits to read.
fn selected(id: Id, count: u64, address: u64) -> Vec<Wanted> {
    let count = usize::try_from(count).unwrap_or(0).min(DESCRIPTORS);
    let bytes = memory(id, address, count.div_ceil(8));
    let is_set = |at: &usize| {
        bytes
            .get(at / 8)
            .is_some_and(|byte| byte >> (at % 8) & 1 == 1)
    };
    (0..count)
        .filter(is_set)
        .map(|at| Wanted::to_read(at as u64))
        .collect()
}

/// The descriptors that were added to an epoll descriptor, each taken as one to read.
fn registered(id: Id, descriptor: u64) -> Vec<Wanted> {
    let text = std::fs::read_to_string(format!("/proc/{id}/fdinfo/{descriptor}"));
    let text = text.unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.strip_prefix("tfd:"));
    lines
        .filter_map(|rest| rest.split_whitespace().next()?.parse().ok())
        .map(Wanted::to_read)
        .collect()
}

fn memory(id: Id, address: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let from = usize::try_from(address).unwrap_or(0);
    let read = proc::read_memory(id, from, &mut bytes).unwrap_or(0);
    bytes.truncate(read);
    bytes
}

fn link(id: Id, descriptor: u64) -> Option<String> {
    let link = std::fs::read_link(format!("/proc/{id}/fd/{descriptor}")).ok()?;
    Some(link.to_string_lossy().into_owned())
}

fn of_descriptor(id: Id, descriptor: u64, writes: bool, all: &Processes) -> HangWait {
    let Some(name) = link(id, descriptor) else {
        return HangWait::Unknown;
    };
    let is_fifo = std::fs::metadata(format!("/proc/{id}/fd/{descriptor}"))
        .is_ok_and(|file| file.file_type().is_fifo());
    if name.starts_with("pipe:") || is_fifo {
        return pipe(id, &name, writes, all);
    }
    if name.starts_with("socket:") {
        return of_socket(id, descriptor, writes, all);
    }
    let terminals = ["/dev/pts/", "/dev/tty", "/dev/console"];
    if terminals.iter().any(|start| name.starts_with(start)) {
        return HangWait::Terminal { writes };
    }
    if name.starts_with("anon_inode:") {
        return HangWait::Poll;
    }
    HangWait::File(name)
}

fn of_socket(id: Id, descriptor: u64, writes: bool, all: &Processes) -> HangWait {
    let Some(socket) = socket(id, descriptor) else {
        return HangWait::Connection {
            peer: None,
            others: Vec::new(),
            writes,
        };
    };
    let socket = TcpListener::from(socket);
    let with = |inodes: &[u64]| {
        let holders = inodes.iter().filter_map(|inode| all.holders().get(inode));
        let others = holders.flatten().filter(|other| **other != id);
        let others: BTreeSet<u32> = others.map(|other| other.unsigned_abs()).collect();
        others.into_iter().collect::<Vec<u32>>()
    };
    let own = socket.local_addr().ok();
    let peer = peers::address(&socket);
    match (own, peer) {
        (Some(own), None) => HangWait::Accept(Some(own)),
        (Some(own), Some(peer)) => {
            let others = peers::tcp(id, own, peer).map_or_else(Vec::new, |inodes| with(&inodes));
            HangWait::Connection {
                peer: Some(peer),
                others,
                writes,
            }
        }
        (None, _) => {
            let mut others = with(&peers::local(id, &socket));
            if others.is_empty() {
                let maker = peers::maker(&socket).filter(|maker| *maker != id);
                others.extend(maker.map(Id::unsigned_abs));
            }
            HangWait::Connection {
                peer: None,
                others,
                writes,
            }
        }
    }
}

/// The inode of a socket, from the name of its descriptor in `/proc`, such as `socket:[17]`; `None` for other names.
fn socket_inode(name: &str) -> Option<u64> {
    let inode = name.strip_prefix("socket:[")?.strip_suffix(']')?;
    inode.parse().ok()
}

/// The kernel's functions in which a task that opens a FIFO waits for the other end (fs/pipe.c).
const FIFO_WAITS: [&[u8]; 2] = [b"wait_for_partner", b"fifo_open"];

/// The wait of a process in a call that opens a file. The open of a FIFO waits until another process opens the other
/// end.
fn open(id: Id, path: u64, flags: u64) -> HangWait {
    let at = usize::try_from(path).ok();
    let Some(path) = at.and_then(|at| proc::string(id, at)) else {
        return HangWait::Call(libc::SYS_openat);
    };
    let path = String::from_utf8_lossy(&path).into_owned();
    // `/proc/PID/wchan` has the kernel function in which the process waits. The file that the process opens is not
    // examined, because an examination could wait for the same server as the process.
    let wait = std::fs::read(format!("/proc/{id}/wchan")).unwrap_or_default();
    let is_fifo = FIFO_WAITS.contains(&wait.as_slice());
    if is_fifo {
        let mode = i32::try_from(flags & 0o3).unwrap_or(0);
        let writes = mode == libc::O_WRONLY;
        HangWait::Fifo { path, writes }
    } else {
        HangWait::File(path)
    }
}

/// Duplicates the socket of another process into a descriptor of this process. Returns `None` if the kernel refuses
/// that.
fn socket(id: Id, descriptor: u64) -> Option<OwnedFd> {
    let process = pidfd_open(nix::unistd::Pid::from_raw(id)).ok()?;
    // SAFETY: a plain system call, which returns a new descriptor or an error.
    let copy = unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), descriptor, 0) };
    let copy = i32::try_from(copy).ok().filter(|copy| *copy >= 0)?;
    // SAFETY: the descriptor is new, and nothing else has it.
    Some(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// The wait of a process for a pipe, with the processes that have the pipe's other end.
fn pipe(id: Id, name: &str, writes: bool, all: &Processes) -> HangWait {
    let wanted = if writes {
        libc::O_RDONLY
    } else {
        libc::O_WRONLY
    };
    let has_end = |other: &Id| {
        descriptors(*other).any(|descriptor| {
            link(*other, descriptor).as_deref() == Some(name)
                && access(*other, descriptor)
                    .is_some_and(|mode| [wanted, libc::O_RDWR].contains(&mode))
        })
    };
    let others = all.iter().filter(|other| **other != id && has_end(other));
    let others: Vec<u32> = others.map(|other| other.unsigned_abs()).collect();
    if others.is_empty() && has_end(&id) {
        return HangWait::OwnPipe;
    }
    HangWait::Pipe { writes, others }
}

fn descriptors(id: Id) -> impl Iterator<Item = u64> {
    let ids = proc::ids(std::path::Path::new(&format!("/proc/{id}/fd")));
    ids.take(DESCRIPTORS).map(|id| u64::from(id.unsigned_abs()))
}

/// The access mode (read, write or both) with which a process has opened a descriptor.
fn access(id: Id, descriptor: u64) -> Option<i32> {
    let text = std::fs::read_to_string(format!("/proc/{id}/fdinfo/{descriptor}")).ok()?;
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
    let flags = i32::from_str_radix(flags.trim(), 8).ok()?;
    Some(flags & libc::O_ACCMODE)
}

/// The wait of a process for the lock of a file, with the processes that have the lock (`/proc/locks`).
fn lock(id: Id, descriptor: u64, all: &Processes) -> HangWait {
    let path = link(id, descriptor).unwrap_or_default();
    let inode = std::fs::metadata(format!("/proc/{id}/fd/{descriptor}"));
    let inode = inode.map_or(0, |file| file.ino()).to_string();
    let text = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    let holders = text.lines().filter(|line| !line.contains("->"));
    let holders = holders.filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let of_file = words.get(5)?.rsplit(':').next() == Some(&inode);
        of_file.then(|| words.get(4)?.parse::<Id>().ok())?
    });
    // `/proc/locks` may name no living process as the holder: a lock of an open file description belongs to no process,
    // and a lock by flock(2) can outlive the process that took it. Then all processes that have the file open count as
    // holders.
    let mut holders: Vec<Id> = holders
        .filter(|holder| proc::stat(*holder).is_some())
        .collect();
    if holders.is_empty() {
        let has_open = |other: &&Id| {
            **other != id
                && descriptors(**other)
                    .any(|descriptor| link(**other, descriptor).as_deref() == Some(&path))
        };
        holders.extend(all.iter().filter(has_open));
    }
    let holders = holders.into_iter().filter(|holder| *holder != id);
    HangWait::FileLock {
        path,
        holders: holders.map(Id::unsigned_abs).collect(),
    }
}

/// The number of bytes that the TCP connections of a process have received and sent.
pub fn connection_bytes(id: Id) -> u64 {
    let sockets = descriptors(id)
        .filter(|descriptor| link(id, *descriptor).is_some_and(|name| name.starts_with("socket:")));
    let bytes = sockets.filter_map(|descriptor| tcp_bytes(&socket(id, descriptor)?));
    bytes.fold(0, u64::wrapping_add)
}

/// The offset of the field `tcpi_bytes_acked` in the kernel's `struct tcp_info` (Linux 4.1). The field
/// `tcpi_bytes_received` follows it.
const TCP_BYTES: usize = 120;

fn tcp_bytes(socket: &OwnedFd) -> Option<u64> {
    let mut info = [0u8; 256];
    let mut length = 256;
    // SAFETY: the kernel writes at most `length` bytes into `info`.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    let known = info.get(..usize::try_from(length).ok()?)?;
    let word = |at: usize| Some(u64::from_ne_bytes(*known.get(at..)?.first_chunk()?));
    (done == 0).then(|| Some(word(TCP_BYTES)?.wrapping_add(word(TCP_BYTES + 8)?)))?
}
