//! Attributes of waits: the system call in which a task went to sleep, and the context in which it
//! was woken.

named! {
    /// The class of the system call that a task was in at its switch-out.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[repr(u8)]
    #[non_exhaustive]
    pub enum Reason {
        /// The reason was not recorded, or the task was runnable.
        #[default]
        Unknown = "unknown",
        /// `wait4`, `waitid`.
        Child = "child",
        /// `futex` and its variants.
        Lock = "lock",
        /// `nanosleep`, `clock_nanosleep`.
        Timer = "timer",
        /// `pause`, `rt_sigsuspend`, `rt_sigtimedwait`.
        Signal = "signal",
        /// `poll`, `select`, `epoll_wait` and their variants.
        Poll = "poll",
        /// A read from a pipe or a FIFO.
        PipeRead = "pipe_read",
        /// A write to a pipe or a FIFO.
        PipeWrite = "pipe_write",
        /// A read from a socket, or `recv*`, `accept*`.
        SocketRead = "socket_read",
        /// A write to a socket, or `send*`, `connect`.
        SocketWrite = "socket_write",
        /// A read from or a write to a terminal.
        Terminal = "terminal",
        /// A read from a regular file or a block device.
        FileRead = "file_read",
        /// A write to a regular file or a block device.
        FileWrite = "file_write",
        /// `fsync`, `fdatasync`, `sync`, `msync`.
        Sync = "sync",
        /// A system call that takes a path or reads a directory: `openat`, `unlink`, `getdents64`.
        Path = "path",
        /// A read from or a write to another descriptor: an eventfd, a timerfd, inotify.
        OtherDescriptor = "other_descriptor",
        /// `flock`, `fcntl`.
        FileLock = "file_lock",
        /// `io_uring_enter`.
        IoUring = "io_uring",
        /// `mmap`, `munmap`, `mprotect`, `madvise`, `brk`.
        Memory = "memory",
        /// No system call: a page fault, or another exception in user mode.
        PageFault = "page_fault",
        /// `execve`, `execveat`.
        Exec = "exec",
        /// `exit`, `exit_group`.
        Exit = "exit",
        /// `clone`, `fork`, `vfork`.
        Clone = "clone",
        /// Message queues and semaphores.
        Ipc = "ipc",
        /// Another system call, or a class that only a later version knows.
        Other = "other",
    }
}

impl Reason {
    /// The reason with this number.
    #[inline]
    pub fn of(number: u8) -> Reason {
        let known = Reason::ALL.get(usize::from(number));
        known.copied().unwrap_or(Reason::Other)
    }
}

named! {
    /// The context in which a waker's CPU ran at a waking.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum Context {
        /// The waking task itself.
        #[default]
        Task = "task",
        /// A hardware interrupt: a timer, a device.
        HardIrq = "hardirq",
        /// A softirq: the network, completed block I/O.
        SoftIrq = "softirq",
        /// A softirq that was raised because the waking task itself sent data to a socket. This task is the
        /// cause of the waking.
        SendSoftIrq = "send",
    }
}

impl Context {
    /// Whether an interrupt woke the task, so that the interrupted task is not the cause.
    #[inline]
    pub fn is_interrupt(self) -> bool {
        matches!(self, Context::HardIrq | Context::SoftIrq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_has_its_number_as_its_place() {
        for (number, reason) in (0..).zip(Reason::ALL) {
            assert_eq!((reason as u8, Reason::of(number)), (number, reason));
        }
        assert_eq!(Reason::of(25), Reason::Other, "of a later version");
    }
}
