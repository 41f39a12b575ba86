//! DNS queries by UDP.

use crate::event::{Tgid, Tid};
use crate::network::Address;

/// The most addresses of an answer that are kept.
pub const ADDRESSES: usize = 64;

/// A task sends a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsQuery {
    /// The task.
    pub tid: Tid,
    /// Its process.
    pub tgid: Tgid,
    /// The server's address.
    pub server: Address,
    /// The port of the task's socket.
    pub port: u16,
    /// The query's id.
    pub id: u16,
    /// Its type (QTYPE of RFC 1035): 1 for A, 28 for AAAA.
    pub kind: u16,
    /// The name without the last dot.
    pub name: Box<[u8]>,
}

/// An answer of a server has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsAnswer {
    /// The server's address.
    pub server: Address,
    /// The port that it is for; `None`: not readable, as `id` and `code`.
    pub port: Option<u16>,
    /// The query's id.
    pub id: Option<u16>,
    /// RCODE of RFC 1035: 0 for no error, 3 for no such name.
    pub code: Option<u8>,
    /// Its addresses, at most [`ADDRESSES`].
    pub addresses: Box<[Address]>,
}
