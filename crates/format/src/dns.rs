//! The events about DNS queries that are sent by UDP.

use serde::Serialize;

use crate::codec::{Codec, Col, Step, Stored, TextColumns};
use crate::ids::{Address, Ktime, Tgid, Tid};
use crate::{limits, show};

/// The largest number of addresses of one DNS answer that are recorded.
pub const ADDRESSES: usize = 64;

/// An event about a task that sends a DNS query by UDP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DnsQuery {
    /// The task that sends the DNS query.
    pub tid: Tid,
    /// The process of the task that sends the DNS query.
    pub tgid: Tgid,
    /// The address of the DNS server that the query is sent to.
    pub server: Address,
    /// The local port of the socket from which the task sends the query.
    pub port: u16,
    /// The id in the DNS query, which the server's answer repeats.
    pub id: u16,
    /// The type of the DNS query (QTYPE of RFC 1035): 1 for A, 28 for AAAA.
    #[serde(rename = "type")]
    pub kind: u16,
    /// The domain name that the DNS query looks up, without the last dot.
    #[serde(serialize_with = "show::text")]
    pub name: Box<[u8]>,
}

/// An event about the arrival of a DNS server's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DnsAnswer {
    /// The address of the DNS server that answers.
    pub server: Address,
    /// The local port that the DNS answer is sent to. The fields `port`, `id` and `code` are `None` if the answer could
    /// not be read.
    pub port: Option<u16>,
    /// The id of the DNS query that is answered.
    pub id: Option<u16>,
    /// The result of the DNS query (RCODE of RFC 1035): 0 for no error, 3 for a name that does not exist.
    pub code: Option<u8>,
    /// The addresses in the DNS server's answer, at most [`ADDRESSES`].
    pub addresses: Box<[Address]>,
}

/// The columns in which the addresses and names of DNS events are stored. They are not shared with connections: an
/// older reader, which skips DNS events, would read the addresses of connections wrong.
const BYTES: TextColumns = TextColumns::new(Col::Dns, Col::DnsBytes);

impl Stored for DnsQuery {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.own_task(Col::Dns, Col::Dns, &mut self.tid, &mut self.tgid)?;
        c.address(BYTES, &mut self.server)?;
        for number in [&mut self.port, &mut self.id, &mut self.kind] {
            c.narrow(Col::Dns, number)?;
        }
        c.bytes(BYTES, limits::NAME, &mut self.name)
    }

    fn weight(&self) -> usize {
        size_of_val(self) + self.name.len()
    }
}

impl Stored for DnsAnswer {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.address(BYTES, &mut self.server)?;
        c.optional(Col::Dns, &mut self.port)?;
        c.optional(Col::Dns, &mut self.id)?;
        c.optional(Col::Dns, &mut self.code)?;
        let what = "the number of addresses";
        let count = c.count(Col::Dns, self.addresses.len(), ADDRESSES, what)?;
        let mut list = std::mem::take(&mut self.addresses).into_vec();
        c.elements(count, &mut list, |c, address| c.address(BYTES, address))?;
        self.addresses = list.into();
        Ok(())
    }

    fn weight(&self) -> usize {
        size_of_val(self) + size_of_val(&*self.addresses)
    }
}
