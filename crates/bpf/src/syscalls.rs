//! Two tables with an entry for each system call. In the first table, the BPF programs look up why a task waits in the
//! call, for example for a lock. In the second one, they look up which argument of the call has the time-out.

use libc::c_long;

use crate::skel::types::{reason, timeout_form};
use crate::wire::SYSCALLS;

/// The table entry of system calls that read from the descriptor in their first argument. The kind of descriptor, such
/// as a pipe or a socket, decides about the reason for a wait. [`WRITE_ENTRY`] is the entry of system calls that write
/// to a descriptor.
const READ_ENTRY: u32 = reason::REASON_BY_DESCRIPTOR.0;
const WRITE_ENTRY: u32 = READ_ENTRY | reason::REASON_WRITE.0 | SENDS_FLAG;
/// The flag in the table entry of system calls that can wake the reader of a socket. A close and an exit can do that
/// as well.
const SENDS_FLAG: u32 = reason::REASON_SENDS.0;

/// The system calls that all architectures have, grouped by the reason for a wait in the call (their table entry).
/// Calls that are not listed have the entry `REASON_OTHER`.
const COMMON_CALLS: &[(u32, &[c_long])] = &[
    (reason::REASON_CHILD.0, &[libc::SYS_wait4, libc::SYS_waitid]),
    // The numbers are those of futex_waitv, futex_wait and futex_requeue (since Linux 6.7).
    (reason::REASON_LOCK.0, &[libc::SYS_futex, 449, 455, 456]),
    (
        reason::REASON_TIMER.0,
        &[libc::SYS_nanosleep, libc::SYS_clock_nanosleep],
    ),
    (
        reason::REASON_SIGNAL.0,
        &[libc::SYS_rt_sigsuspend, libc::SYS_rt_sigtimedwait],
    ),
    (
        reason::REASON_POLL.0,
        // The number 441 is that of epoll_pwait2.
        &[
            libc::SYS_ppoll,
            libc::SYS_pselect6,
            libc::SYS_epoll_pwait,
            441,
        ],
    ),
    (
        READ_ENTRY,
        &[
            libc::SYS_read,
            libc::SYS_readv,
            libc::SYS_pread64,
            libc::SYS_preadv,
            libc::SYS_preadv2,
        ],
    ),
    (
        WRITE_ENTRY,
        &[
            libc::SYS_write,
            libc::SYS_writev,
            libc::SYS_pwrite64,
            libc::SYS_pwritev,
            libc::SYS_pwritev2,
        ],
    ),
    (
        reason::REASON_SOCKET_READ.0,
        &[
            libc::SYS_recvfrom,
            libc::SYS_recvmsg,
            libc::SYS_recvmmsg,
            libc::SYS_accept,
            libc::SYS_accept4,
        ],
    ),
    (
        reason::REASON_SOCKET_WRITE.0 | SENDS_FLAG,
        &[
            libc::SYS_sendto,
            libc::SYS_sendmsg,
            libc::SYS_sendmmsg,
            libc::SYS_connect,
            libc::SYS_shutdown,
        ],
    ),
    (
        reason::REASON_OTHER.0 | SENDS_FLAG,
        &[libc::SYS_close, libc::SYS_close_range],
    ),
    (
        reason::REASON_FILE_WRITE.0 | SENDS_FLAG,
        &[libc::SYS_sendfile, libc::SYS_copy_file_range],
    ),
    (
        reason::REASON_FILE_WRITE.0,
        &[libc::SYS_fallocate, libc::SYS_truncate, libc::SYS_ftruncate],
    ),
    (
        reason::REASON_PIPE_WRITE.0 | SENDS_FLAG,
        &[libc::SYS_splice, libc::SYS_tee, libc::SYS_vmsplice],
    ),
    (
        // The flag REASON_WRITE here marks calls whose first argument is the descriptor of a file. The name of this
        // file is recorded.
        reason::REASON_SYNC.0 | reason::REASON_WRITE.0,
        &[libc::SYS_fsync, libc::SYS_fdatasync, libc::SYS_syncfs],
    ),
    (reason::REASON_SYNC.0, &[libc::SYS_sync, libc::SYS_msync]),
    (
        reason::REASON_PATH.0,
        &[
            libc::SYS_openat,
            libc::SYS_openat2,
            libc::SYS_newfstatat,
            libc::SYS_fstat,
            libc::SYS_statx,
            libc::SYS_statfs,
            libc::SYS_faccessat,
            libc::SYS_faccessat2,
            libc::SYS_readlinkat,
            libc::SYS_unlinkat,
            libc::SYS_renameat2,
            libc::SYS_mkdirat,
            libc::SYS_mknodat,
            libc::SYS_linkat,
            libc::SYS_symlinkat,
            libc::SYS_fchmod,
            libc::SYS_fchmodat,
            libc::SYS_fchown,
            libc::SYS_fchownat,
            libc::SYS_utimensat,
            libc::SYS_getdents64,
            libc::SYS_chdir,
            libc::SYS_fchdir,
            libc::SYS_chroot,
            libc::SYS_mount,
            libc::SYS_umount2,
            libc::SYS_getxattr,
            libc::SYS_lgetxattr,
            libc::SYS_setxattr,
        ],
    ),
    (
        reason::REASON_FILE_LOCK.0,
        &[libc::SYS_flock, libc::SYS_fcntl],
    ),
    (
        reason::REASON_IO_URING.0,
        &[libc::SYS_io_uring_enter, libc::SYS_io_uring_setup],
    ),
    (
        reason::REASON_MEMORY.0,
        &[
            libc::SYS_mmap,
            libc::SYS_munmap,
            libc::SYS_mremap,
            libc::SYS_mprotect,
            libc::SYS_madvise,
            libc::SYS_brk,
        ],
    ),
    (
        reason::REASON_EXEC.0,
        &[libc::SYS_execve, libc::SYS_execveat],
    ),
    (
        reason::REASON_EXIT.0 | SENDS_FLAG,
        &[libc::SYS_exit, libc::SYS_exit_group],
    ),
    (reason::REASON_CLONE.0, &[libc::SYS_clone, libc::SYS_clone3]),
    (
        reason::REASON_IPC.0,
        &[
            libc::SYS_msgrcv,
            libc::SYS_msgsnd,
            libc::SYS_semop,
            libc::SYS_semtimedop,
            libc::SYS_mq_timedreceive,
            libc::SYS_mq_timedsend,
        ],
    ),
];

/// The system calls that newer architectures, or the `libc` crate for them, lack, grouped by the reason for a wait in
/// the call (their table entry).
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: &[(u32, &[c_long])] = &[
    (reason::REASON_SIGNAL.0, &[libc::SYS_pause]),
    (
        reason::REASON_SYNC.0 | reason::REASON_WRITE.0,
        &[libc::SYS_sync_file_range],
    ),
    (
        reason::REASON_POLL.0,
        &[libc::SYS_poll, libc::SYS_select, libc::SYS_epoll_wait],
    ),
    (
        reason::REASON_PATH.0,
        &[
            libc::SYS_open,
            libc::SYS_creat,
            libc::SYS_stat,
            libc::SYS_lstat,
            libc::SYS_access,
            libc::SYS_readlink,
            libc::SYS_unlink,
            libc::SYS_rename,
            libc::SYS_renameat,
            libc::SYS_mkdir,
            libc::SYS_rmdir,
            libc::SYS_mknod,
            libc::SYS_link,
            libc::SYS_symlink,
            libc::SYS_chmod,
            libc::SYS_chown,
            libc::SYS_lchown,
            libc::SYS_utime,
            libc::SYS_utimes,
            libc::SYS_getdents,
        ],
    ),
    (reason::REASON_CLONE.0, &[libc::SYS_fork, libc::SYS_vfork]),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: &[(u32, &[c_long])] = &[];

/// Makes the table with the reason for a wait in each system call, for the BPF programs (`syscall_reasons`).
pub fn reasons() -> [u8; SYSCALLS] {
    let mut table = [reason::REASON_OTHER.0 as u8; SYSCALLS];
    for (entry, calls) in COMMON_CALLS.iter().chain(OLD_CALLS) {
        for call in *calls {
            let at = usize::try_from(*call).ok();
            if let Some(place) = at.and_then(|at| table.get_mut(at)) {
                *place = *entry as u8;
            }
        }
    }
    table
}

/// Makes a table entry for a system call with a time-out: the form of the time-out (`enum timeout_form`), and the
/// argument that contains it.
const fn form(form: timeout_form, argument: u8) -> u8 {
    form.0 as u8 | argument << timeout_form::TIMEOUT_ARGUMENT_SHIFT.0
}

const POLLS_FLAG: u8 = timeout_form::TIMEOUT_POLLS.0 as u8;
const SELECTS_FLAG: u8 = timeout_form::TIMEOUT_SELECTS.0 as u8;
const TIMESPEC: timeout_form = timeout_form::TIMEOUT_TIMESPEC;
const SOCKET: timeout_form = timeout_form::TIMEOUT_SOCKET;

/// The system calls that can have a time-out, each with the form of the time-out and the argument that contains it.
/// mq_timedreceive and mq_timedsend wait until a time of the real-time clock.
const TIMED_CALLS: &[(c_long, u8)] = &[
    (libc::SYS_ppoll, form(TIMESPEC, 2) | POLLS_FLAG),
    (libc::SYS_pselect6, form(TIMESPEC, 4) | SELECTS_FLAG),
    (
        libc::SYS_epoll_pwait,
        form(timeout_form::TIMEOUT_MILLISECONDS, 3),
    ),
    // The number 441 is that of epoll_pwait2.
    (441, form(TIMESPEC, 3)),
    (libc::SYS_futex, form(timeout_form::TIMEOUT_FUTEX, 3)),
    // The number 449 is that of futex_waitv, and 455 that of futex_wait.
    (449, form(timeout_form::TIMEOUT_DEADLINE, 3)),
    (455, form(timeout_form::TIMEOUT_DEADLINE, 4)),
    (libc::SYS_nanosleep, form(TIMESPEC, 0)),
    (
        libc::SYS_clock_nanosleep,
        form(timeout_form::TIMEOUT_CLOCK, 2),
    ),
    (libc::SYS_rt_sigtimedwait, form(TIMESPEC, 2)),
    (libc::SYS_semtimedop, form(TIMESPEC, 3)),
    (
        libc::SYS_mq_timedreceive,
        form(timeout_form::TIMEOUT_DEADLINE, 4),
    ),
    (
        libc::SYS_mq_timedsend,
        form(timeout_form::TIMEOUT_DEADLINE, 4),
    ),
    (libc::SYS_recvfrom, form(SOCKET, 0)),
    (libc::SYS_recvmsg, form(SOCKET, 0)),
    (libc::SYS_accept, form(SOCKET, 0)),
    (libc::SYS_accept4, form(SOCKET, 0)),
    (libc::SYS_read, form(SOCKET, 0)),
    (libc::SYS_readv, form(SOCKET, 0)),
];

/// The system calls with a time-out that newer architectures, or the `libc` crate for them, lack, each with the form
/// of the time-out and the argument that contains it.
#[cfg(target_arch = "x86_64")]
const OLD_TIMED: &[(c_long, u8)] = &[
    (
        libc::SYS_poll,
        form(timeout_form::TIMEOUT_MILLISECONDS, 2) | POLLS_FLAG,
    ),
    (
        libc::SYS_select,
        form(timeout_form::TIMEOUT_TIMEVAL, 4) | SELECTS_FLAG,
    ),
    (
        libc::SYS_epoll_wait,
        form(timeout_form::TIMEOUT_MILLISECONDS, 3),
    ),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_TIMED: &[(c_long, u8)] = &[];

/// Makes the table that says where each system call has its time-out, for the BPF programs (`syscall_timeouts`).
pub fn timeouts() -> [u8; SYSCALLS] {
    let mut table = [0; SYSCALLS];
    for (call, entry) in TIMED_CALLS.iter().chain(OLD_TIMED) {
        let at = usize::try_from(*call).ok();
        if let Some(place) = at.and_then(|at| table.get_mut(at)) {
            *place = *entry;
        }
    }
    table
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests {
    use super::*;

    #[test]
    fn no_system_call_stands_twice() {
        let mut seen = std::collections::HashSet::new();
        for call in COMMON_CALLS
            .iter()
            .chain(OLD_CALLS)
            .flat_map(|(_, calls)| *calls)
        {
            assert!(*call >= 0 && *call < SYSCALLS as c_long, "{call}");
            assert!(seen.insert(*call), "{call} stands twice");
        }
    }

    #[test]
    fn the_table_has_the_calls_of_each_class() {
        let table = reasons();
        let at = |call: c_long| u32::from(table[call as usize]);
        assert_eq!(at(libc::SYS_wait4), reason::REASON_CHILD.0);
        assert_eq!(at(libc::SYS_read), READ_ENTRY);
        assert_eq!(at(libc::SYS_write), WRITE_ENTRY);
        assert_eq!(at(libc::SYS_getpid), reason::REASON_OTHER.0);
    }
}
