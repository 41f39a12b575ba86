//! The facts that are recorded about a task's wait: the system call in which the task went to sleep, the call's
//! time-out, and the context in which the task was woken.

use serde::ser::{Serialize, SerializeMap, Serializer};

named! {
    /// The class of the system call that a task was in when it was switched out.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[repr(u8)]
    #[non_exhaustive]
    pub enum Reason {
        /// The system call was not recorded, or the task was still runnable.
        #[default]
        Unknown = "unknown",
        /// The task was in a system call that waits for a child: `wait4`, `waitid`.
        Child = "child",
        /// The task was in a system call that waits for a lock: `futex` and its variants.
        Lock = "lock",
        /// The task was in a system call that sleeps for a time: `nanosleep`, `clock_nanosleep`.
        Timer = "timer",
        /// The task was in a system call that waits for a signal: `pause`, `rt_sigsuspend`, `rt_sigtimedwait`.
        Signal = "signal",
        /// The task was in a system call that waits for one of several descriptors: `poll`, `select`, `epoll_wait`
        /// and their variants.
        Poll = "poll",
        /// The task was in a system call that reads from a pipe or a FIFO.
        PipeRead = "pipe_read",
        /// The task was in a system call that writes to a pipe or a FIFO.
        PipeWrite = "pipe_write",
        /// The task was in a system call that reads from a socket, or in `recv*` or `accept*`.
        SocketRead = "socket_read",
        /// The task was in a system call that writes to a socket, or in `send*` or `connect`.
        SocketWrite = "socket_write",
        /// The task was in a system call that reads from or writes to a terminal.
        Terminal = "terminal",
        /// The task was in a system call that reads from a regular file or a block device.
        FileRead = "file_read",
        /// The task was in a system call that writes to a regular file or a block device.
        FileWrite = "file_write",
        /// The task was in a system call that waits until data is on a disk: `fsync`, `fdatasync`, `sync`,
        /// `msync`.
        Sync = "sync",
        /// The task was in a system call that takes a path or reads a directory: `openat`, `unlink`, `getdents64`.
        Path = "path",
        /// The task was in a system call that reads from or writes to another kind of descriptor: an eventfd, a
        /// timerfd, inotify.
        OtherDescriptor = "other_descriptor",
        /// The task was in a system call that waits for a lock of a file: `flock`, `fcntl`.
        FileLock = "file_lock",
        /// The task was in the system call `io_uring_enter`.
        IoUring = "io_uring",
        /// The task was in a system call that changes its memory mappings: `mmap`, `munmap`, `mprotect`,
        /// `madvise`, `brk`.
        Memory = "memory",
        /// The task was in no system call, but in a page fault or another exception in user mode.
        PageFault = "page_fault",
        /// The task was in a system call that executes a program: `execve`, `execveat`.
        Exec = "exec",
        /// The task was in a system call that ends it: `exit`, `exit_group`.
        Exit = "exit",
        /// The task was in a system call that creates a task: `clone`, `fork`, `vfork`.
        Clone = "clone",
        /// The task was in a system call for a message queue or a semaphore.
        Ipc = "ipc",
        /// The task was in another system call, or in a system call of a class that only a later version knows.
        Other = "other",
    }
}

impl Reason {
    /// The class of system calls that is stored as this number.
    #[inline]
    pub fn of(number: u8) -> Reason {
        let known = Reason::ALL.get(usize::from(number));
        known.copied().unwrap_or(Reason::Other)
    }
}

/// The time-out of the system call in which a task went to sleep. Only the class of its length is stored; each doubling
/// of the length has four classes. One more bit is [`Timeout::is_asked`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Timeout(u8);

impl Timeout {
    /// The time-out of the system call was not recorded, or the call can have none.
    pub const UNKNOWN: Timeout = Timeout(0);
    /// The system call waits without a limit of time.
    pub const NONE: Timeout = Timeout(1);
    /// The system call has a time-out of unknown length.
    pub const SOME: Timeout = Timeout(2);
    /// The system call has a time-out of 6 * 2^38 ns (27 minutes) or more.
    pub const LONGEST: Timeout = Timeout(Timeout::LAST);
    /// The number of the class of the shortest time-outs, from 0 to below 2^10 ns.
    const SHORT: u8 = 3;
    /// The number of the class of the longest time-outs of system calls.
    const LAST: u8 = 126;
    /// All time-outs below 2 to the power of this number, in ns, are in the class [`Timeout::SHORT`].
    const FIRST_BITS: u32 = 10;
    /// The bit of a time-out's stored number that is set if [`Timeout::is_asked`] is true.
    const ASKED: u8 = 0x80;

    /// The time-out of a system call that waits for at most `ns` nanoseconds.
    pub fn after(ns: u64) -> Timeout {
        let Some(octave) = ns
            .checked_ilog2()
            .and_then(|bits| bits.checked_sub(Self::FIRST_BITS))
        else {
            return Timeout(Self::SHORT);
        };
        let quarter = ns >> (octave + Self::FIRST_BITS - 2) & 3;
        let class = u64::from(Self::SHORT) + 1 + 4 * u64::from(octave) + quarter;
        Timeout(u8::try_from(class).map_or(Self::LAST, |class| class.min(Self::LAST)))
    }

    /// The time-out that traces store as this number.
    #[inline]
    pub fn of(number: u8) -> Timeout {
        if number == u8::MAX {
            return Timeout::UNKNOWN;
        }
        Timeout(number)
    }

    /// The number by which traces store this time-out.
    #[inline]
    pub fn number(self) -> u8 {
        self.0
    }

    /// Returns this time-out with the bit [`Timeout::is_asked`] set. The bit says that a TCP connection of the process
    /// had sent bytes that were not answered yet when the sleep began.
    pub fn asked(self) -> Timeout {
        Timeout(self.0 | Self::ASKED)
    }

    /// Whether a TCP connection of the process had sent bytes that were not answered when the sleep began. This is
    /// recorded only if the length of the time-out is known.
    pub fn is_asked(self) -> bool {
        self.0 & Self::ASKED != 0
    }

    /// Returns this time-out without the bit [`Timeout::is_asked`], so that only its length remains.
    pub fn limit(self) -> Timeout {
        Timeout(self.0 & !Self::ASKED)
    }

    /// The shortest time-out in ns that has the same class as this one; `None` if the length is not known.
    pub fn least(self) -> Option<u64> {
        let class = self.limit().0.checked_sub(Self::SHORT)?;
        let Some(class) = class.checked_sub(1) else {
            return Some(0);
        };
        let (octave, quarter) = (u32::from(class / 4), u64::from(class % 4));
        Some((4 + quarter) << (octave + Self::FIRST_BITS - 2))
    }
}

impl Serialize for Timeout {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let word = match (self.limit(), self.least()) {
            (_, Some(_)) => "known",
            (Timeout::NONE, None) => "none",
            (Timeout::SOME, None) => "some",
            _ => "unknown",
        };
        let mut map = to.serialize_map(None)?;
        if *self != Timeout::UNKNOWN {
            map.serialize_entry("timeout", word)?;
        }
        if let Some(least) = self.least() {
            map.serialize_entry("timeout_ns", &least)?;
            map.serialize_entry("asked", &self.is_asked())?;
        }
        map.end()
    }
}

named! {
    /// The code that ran on a CPU when the CPU woke a task.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum Context {
        /// The CPU ran the waking task itself, outside of interrupts.
        #[default]
        Task = "task",
        /// The CPU ran a hardware interrupt, for example that of a timer or a device.
        HardIrq = "hardirq",
        /// The CPU ran a softirq, for example for the network or for completed block I/O.
        SoftIrq = "softirq",
        /// The CPU ran a softirq that was raised because the waking task itself sent data to a socket. This task
        /// is the cause of the waking.
        SendSoftIrq = "send",
    }
}

impl Context {
    /// Whether an interrupt woke the task. If so, the task that ran on the CPU was only interrupted and is not the
    /// cause.
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

    #[test]
    fn the_class_of_a_time_out_is_at_most_a_fifth_shorter() {
        assert_eq!(Timeout::UNKNOWN.least(), None);
        assert_eq!(Timeout::NONE.least(), None);
        assert_eq!(Timeout::SOME.asked().least(), None);
        let lengths =
            (0..60).flat_map(|bits| [1u64 << bits, (3 << bits) / 2, (7 << bits) / 4, !0 >> bits]);
        for ns in lengths.chain(0..5000) {
            let timeout = Timeout::after(ns);
            let least = timeout.least().expect("a class");
            assert!(least <= ns, "{ns} ns: {least}");
            let longest = 1 << 40;
            assert!(
                ns < 1024 || ns > longest || least > ns - ns / 5 - 1,
                "{ns} ns: {least}"
            );
            assert_eq!(Timeout::of(timeout.asked().number()).limit(), timeout);
            assert!(timeout.asked().number() < u8::MAX);
        }
    }
}
