//! Attributes of waits: the system call in which a task went to sleep, and the context of
//! the waker.

/// The class of the system call that a task was in at its switch-out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[non_exhaustive]
pub enum Reason {
    /// Not recorded, or the task was runnable.
    #[default]
    Unknown = 0,
    /// `wait4`, `waitid`.
    Child = 1,
    /// `futex` and its variants.
    Lock = 2,
    /// `nanosleep`, `clock_nanosleep`.
    Timer = 3,
    /// `pause`, `rt_sigsuspend`, `rt_sigtimedwait`.
    Signal = 4,
    /// `poll`, `select`, `epoll_wait` and their variants.
    Poll = 5,
    /// A read from a pipe or a FIFO.
    PipeRead = 6,
    /// A write to a pipe or a FIFO.
    PipeWrite = 7,
    /// A read from a socket, or `recv*`, `accept*`.
    SocketRead = 8,
    /// A write to a socket, or `send*`, `connect`.
    SocketWrite = 9,
    /// A read from or a write to a terminal.
    Terminal = 10,
    /// A read from a regular file or a block device.
    FileRead = 11,
    /// A write to a regular file or a block device.
    FileWrite = 12,
    /// `fsync`, `fdatasync`, `sync`, `msync`.
    Sync = 13,
    /// A system call that takes a path or reads a directory: `openat`, `unlink`, `getdents64`.
    Path = 14,
    /// A read from or a write to another descriptor: an eventfd, a timerfd, inotify.
    OtherDescriptor = 15,
    /// `flock`, `fcntl`.
    FileLock = 16,
    /// `io_uring_enter`.
    IoUring = 17,
    /// `mmap`, `munmap`, `mprotect`, `madvise`, `brk`.
    Memory = 18,
    /// No system call: a page fault, or another exception in user mode.
    PageFault = 19,
    /// `execve`, `execveat`.
    Exec = 20,
    /// `exit`, `exit_group`.
    Exit = 21,
    /// `clone`, `fork`, `vfork`.
    Clone = 22,
    /// Message queues and semaphores.
    Ipc = 23,
    /// Another system call, or a class that only a later version knows.
    Other = 24,
}

impl Reason {
    /// All of them; each has its number as its place.
    pub const ALL: [Reason; 25] = [
        Reason::Unknown,
        Reason::Child,
        Reason::Lock,
        Reason::Timer,
        Reason::Signal,
        Reason::Poll,
        Reason::PipeRead,
        Reason::PipeWrite,
        Reason::SocketRead,
        Reason::SocketWrite,
        Reason::Terminal,
        Reason::FileRead,
        Reason::FileWrite,
        Reason::Sync,
        Reason::Path,
        Reason::OtherDescriptor,
        Reason::FileLock,
        Reason::IoUring,
        Reason::Memory,
        Reason::PageFault,
        Reason::Exec,
        Reason::Exit,
        Reason::Clone,
        Reason::Ipc,
        Reason::Other,
    ];

    /// The reason with this number.
    #[inline]
    pub fn of(number: u8) -> Reason {
        let known = Reason::ALL.get(usize::from(number));
        known.copied().unwrap_or(Reason::Other)
    }

    /// Its name in `tr dump`.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Unknown => "unknown",
            Reason::Child => "child",
            Reason::Lock => "lock",
            Reason::Timer => "timer",
            Reason::Signal => "signal",
            Reason::Poll => "poll",
            Reason::PipeRead => "pipe_read",
            Reason::PipeWrite => "pipe_write",
            Reason::SocketRead => "socket_read",
            Reason::SocketWrite => "socket_write",
            Reason::Terminal => "terminal",
            Reason::FileRead => "file_read",
            Reason::FileWrite => "file_write",
            Reason::Sync => "sync",
            Reason::Path => "path",
            Reason::OtherDescriptor => "other_descriptor",
            Reason::FileLock => "file_lock",
            Reason::IoUring => "io_uring",
            Reason::Memory => "memory",
            Reason::PageFault => "page_fault",
            Reason::Exec => "exec",
            Reason::Exit => "exit",
            Reason::Clone => "clone",
            Reason::Ipc => "ipc",
            Reason::Other => "other",
        }
    }
}

/// The context in which a waker's CPU ran at a waking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Context {
    /// The waker itself.
    #[default]
    Task,
    /// A hardware interrupt: a timer, a device.
    HardIrq,
    /// A softirq: the network, completed block I/O.
    SoftIrq,
    /// A softirq that the waker's own send to a socket raised: it is the sender.
    SendSoftIrq,
}

impl Context {
    /// Whether an interrupt woke the task and the waker is not the cause.
    #[inline]
    pub fn is_interrupt(self) -> bool {
        matches!(self, Context::HardIrq | Context::SoftIrq)
    }

    /// Its name in `tr dump`.
    pub fn name(self) -> &'static str {
        match self {
            Context::Task => "task",
            Context::HardIrq => "hardirq",
            Context::SoftIrq => "softirq",
            Context::SendSoftIrq => "send",
        }
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
