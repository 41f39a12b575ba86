//! The ids, times, names and texts that are fields of many kinds of recorded events.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A point in time: nanoseconds of `CLOCK_MONOTONIC` (`bpf_ktime_get_ns`).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Ktime(pub u64);

impl Ktime {
    /// The time from `earlier` to `self` in ns; 0 if `earlier` is later.
    pub fn since(self, earlier: Ktime) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A task (thread) id in the initial pid namespace or, if BPF programs did not record the trace, in that of the
/// recorder. 0 is the idle task of any CPU.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Tid(pub u32);

impl Tid {
    /// The id of the idle task (`swapper`) of any CPU: 0.
    pub const IDLE: Tid = Tid(0);
}

/// A process (thread group) id, in the same pid namespace as a [`Tid`].
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Tgid(pub u32);

/// The number of a logical CPU, as the kernel counts CPUs.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct CpuId(pub u16);

/// The id of a cgroup v2: the inode number of its directory in cgroupfs. 0 stands for an unknown cgroup.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct CgroupId(pub u64);

/// The kernel's task name: up to 15 bytes, NUL padded, any bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Comm(pub [u8; 16]);

impl Comm {
    /// Makes the name of a task from these bytes. The name is cut after 15 bytes.
    pub fn new(name: &[u8]) -> Comm {
        let mut comm = [0; 16];
        for (to, from) in comm
            .iter_mut()
            .take(15)
            .zip(name.iter().take_while(|b| **b != 0))
        {
            *to = *from;
        }
        Comm(comm)
    }

    /// The bytes of the task's name without its padding.
    pub fn bytes(&self) -> &[u8] {
        let end = self.0.iter().position(|b| *b == 0).unwrap_or(self.0.len());
        self.0.get(..end).unwrap_or_default()
    }
}

impl std::fmt::Debug for Comm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Comm({:?})", String::from_utf8_lossy(self.bytes()))
    }
}

/// A sequence of recorded events that are stored together, because they came from the slots of one CPU, from the ring
/// buffer or from the recorder. The events of slots or of the ring are stored in the order in which they were
/// committed. A few of these events can have an earlier time than the event before them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stream {
    /// The stream of the scheduling events of one CPU ([`crate::event::SchedEvent`]).
    Cpu(CpuId),
    /// The stream of forks, execs, exits and other rare events of all CPUs ([`crate::event::LifeEvent`]).
    #[default]
    Lifecycle,
    /// The stream of the recorder's own events ([`crate::event::LifeEvent`]): clocks, losses, watermarks, marks, and
    /// the tasks that were alive at the start.
    Recorder,
}

impl Stream {
    /// The number that stands for this stream of events in a trace: 0 for lifecycle events, 1 for the recorder's
    /// events, or the CPU's number plus 2.
    pub(crate) fn stored(self) -> u32 {
        match self {
            Stream::Lifecycle => 0,
            Stream::Recorder => 1,
            Stream::Cpu(CpuId(cpu)) => u32::from(cpu) + 2,
        }
    }

    /// The stream of events that a number in a trace stands for; `None` if the number is too large for a CPU.
    pub(crate) fn of_stored(number: u64) -> Option<Stream> {
        match number {
            0 => Some(Stream::Lifecycle),
            1 => Some(Stream::Recorder),
            cpu => Some(Stream::Cpu(CpuId(u16::try_from(cpu - 2).ok()?))),
        }
    }
}

/// The arguments of a program as they are in the memory of the process: a NUL byte follows each argument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Argv {
    /// All bytes of the argument vector, or the first part of them. The argument vector of a child process shares the
    /// bytes of its parent's.
    pub bytes: Arc<[u8]>,
    /// The true length of the argument vector in bytes, which is larger than the length of `bytes` if they
    /// were cut. `None` if the memory could not be read.
    pub full_len: Option<u32>,
}

impl Argv {
    /// Makes an argument vector from arguments that are complete.
    pub fn from_args<I: IntoIterator<Item = B>, B: AsRef<[u8]>>(args: I) -> Argv {
        let mut bytes = Vec::new();
        for arg in args {
            bytes.extend_from_slice(arg.as_ref());
            bytes.push(0);
        }
        let full_len = u32::try_from(bytes.len()).ok();
        Argv {
            bytes: bytes.into(),
            full_len,
        }
    }

    /// The arguments in the argument vector, one by one. The last one may be cut.
    pub fn args(&self) -> impl Iterator<Item = &[u8]> {
        let body = self.bytes.strip_suffix(b"\0").unwrap_or(&self.bytes);
        let empty = self.bytes.is_empty();
        body.split(|b| *b == 0)
            .take(if empty { 0 } else { usize::MAX })
    }

    /// Whether a part of the argument vector is missing.
    pub fn truncated(&self) -> bool {
        self.full_len
            .is_none_or(|full| full as usize > self.bytes.len())
    }
}

/// An internet address of a TCP connection or DNS query, which may have been masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// An internet address of IP version 4.
    V4(Ipv4Addr),
    /// An internet address of IP version 6.
    V6(Ipv6Addr),
    /// A masked internet address. Equal numbers stand for equal addresses, and the number says nothing else about the
    /// address.
    Masked(u64),
}

impl Default for Address {
    fn default() -> Address {
        Address::Masked(0)
    }
}

impl Address {
    /// Whether the address is a loopback address, which leads to the machine itself. `None` for a masked
    /// address.
    pub fn is_loopback(self) -> Option<bool> {
        match self {
            Address::V4(ip) => Some(ip.is_loopback()),
            Address::V6(ip) => Some(ip.is_loopback()),
            Address::Masked(_) => None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::V4(ip) => ip.fmt(f),
            Address::V6(ip) => ip.fmt(f),
            Address::Masked(number) => write!(f, "host-{number}"),
        }
    }
}
