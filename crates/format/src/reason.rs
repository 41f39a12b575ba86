//! Attributes of waits: the system call in which a task went to sleep, and the context in which it
//! was woken.

use serde::ser::{Serialize, SerializeMap, Serializer};

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

/// The time-out of the system call in which a task went to sleep. A known length is stored as a class: four classes an
/// octave. The [`Timeout`] also has the bit [`Timeout::is_asked`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Timeout(u8);

impl Timeout {
    /// The time-out was not recorded, or the call can have none.
    pub const UNKNOWN: Timeout = Timeout(0);
    /// The call waits without a limit.
    pub const NONE: Timeout = Timeout(1);
    /// The call has a time-out of unknown length.
    pub const SOME: Timeout = Timeout(2);
    /// The call waits for at most 20 minutes or more.
    pub const LONGEST: Timeout = Timeout(Timeout::LAST);
    /// The number of the class that begins with a length of 0.
    const SHORT: u8 = 3;
    /// The number of the last class, which also has all longer time-outs.
    const LAST: u8 = 126;
    /// The length in ns of the first class after [`Timeout::SHORT`] is 2 to this power.
    const FIRST_BITS: u32 = 10;
    /// The bit of the number for [`Timeout::is_asked`].
    const ASKED: u8 = 0x80;

    /// The time-out of a call that waits for at most `ns`.
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

    /// The time-out with this number.
    #[inline]
    pub fn of(number: u8) -> Timeout {
        if number == u8::MAX {
            return Timeout::UNKNOWN;
        }
        Timeout(number)
    }

    /// The number of the time-out, as in traces.
    #[inline]
    pub fn number(self) -> u8 {
        self.0
    }

    /// The time-out of a process one of whose TCP connections had sent bytes that were not answered.
    pub fn asked(self) -> Timeout {
        Timeout(self.0 | Self::ASKED)
    }

    /// Whether a TCP connection of the process had sent bytes that were not answered when the sleep began. It is
    /// recorded for time-outs of known length alone.
    pub fn is_asked(self) -> bool {
        self.0 & Self::ASKED != 0
    }

    /// The time-out without the bit [`Timeout::is_asked`].
    pub fn limit(self) -> Timeout {
        Timeout(self.0 & !Self::ASKED)
    }

    /// The shortest time-out of the class in ns; `None` without a time-out of known length.
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
