//! TCP connections.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::event::{Tgid, Tid};

/// Names a connection within a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// An address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// Of IPv4.
    V4(Ipv4Addr),
    /// Of IPv6.
    V6(Ipv6Addr),
    /// Masked: equal numbers are equal addresses.
    Masked(u64),
}

impl Address {
    /// It is of the machine itself; `None` for a masked one.
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

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// Its address.
    pub address: Address,
    /// Its port.
    pub port: u16,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Address::V6(ip) => write!(f, "[{ip}]:{}", self.port),
            address => write!(f, "{address}:{}", self.port),
        }
    }
}

/// A task begins to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connect {
    /// The connection.
    pub id: ConnectionId,
    /// The task that called connect(2).
    pub tid: Tid,
    /// Its process.
    pub tgid: Tgid,
    /// The other end.
    pub remote: Endpoint,
}

/// A connection that a task began is established.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connected {
    /// The connection.
    pub id: ConnectionId,
    /// This end.
    pub local: Endpoint,
}

/// A connection of a peer to a listening socket is established. accept(2) may return it later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The connection.
    pub id: ConnectionId,
    /// The task that called listen(2), and its process; `None` if it did before the recording.
    pub listener: Option<(Tid, Tgid)>,
    /// This end.
    pub local: Endpoint,
    /// The peer's end.
    pub remote: Endpoint,
}

/// A connection is over for its process: closed, shut down in both directions, or given up by
/// the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The connection.
    pub id: ConnectionId,
    /// The task whose system call closed it, and its process; `None` if the network did.
    pub by: Option<(Tid, Tgid)>,
    /// How it ended.
    pub ending: Ending,
    /// Bytes that the process wrote.
    pub sent: u64,
    /// Bytes that arrived for the process.
    pub received: u64,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Ending {
    /// Closed or shut down by its process.
    #[default]
    Closed = 0,
    /// Refused by the peer.
    Refused = 1,
    /// Reset by the peer.
    Reset = 2,
    /// No answer.
    TimedOut = 3,
    /// The network or the host cannot be reached.
    Unreachable = 4,
    /// Reset by its process: closed with unread data, or without lingering.
    Aborted = 5,
    /// Closed by its process before it was established.
    Abandoned = 6,
    /// Another error.
    Failed = 7,
}

impl Ending {
    /// All of them; each has its number as its place.
    pub const ALL: [Ending; 8] = [
        Ending::Closed,
        Ending::Refused,
        Ending::Reset,
        Ending::TimedOut,
        Ending::Unreachable,
        Ending::Aborted,
        Ending::Abandoned,
        Ending::Failed,
    ];

    /// The ending with this number.
    pub fn of(number: u8) -> Ending {
        let known = Ending::ALL.get(usize::from(number));
        known.copied().unwrap_or(Ending::Failed)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Ending::Closed => "closed",
            Ending::Refused => "refused",
            Ending::Reset => "reset",
            Ending::TimedOut => "timed_out",
            Ending::Unreachable => "unreachable",
            Ending::Aborted => "aborted",
            Ending::Abandoned => "abandoned",
            Ending::Failed => "failed",
        }
    }
}
