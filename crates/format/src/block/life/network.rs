//! Connections and DNS messages to columns and back.

use super::decode::{ago, Dec};
use super::encode::Enc;
use super::{tag, Col};
use crate::dns::{DnsAnswer, DnsQuery, ADDRESSES};
use crate::event::{LifeKind, Tgid, Tid};
use crate::limits;
use crate::network::{Accepted, Address, Closed, Connect, ConnectionId, Endpoint};
use crate::varint::{fold, unfold};
use crate::Fault;

impl Enc {
    pub(super) fn new_connection(&mut self, id: ConnectionId) {
        let step = id.0.wrapping_sub(self.known.connection) as i64;
        self.int(Col::ConnectionId, fold(step));
        self.known.connection = id.0;
    }

    pub(super) fn connection(&mut self, id: ConnectionId) {
        let back = self.known.connection.wrapping_sub(id.0) as i64;
        self.int(Col::ConnectionId, fold(back));
    }

    pub(super) fn connection_task(&mut self, task: Option<(Tid, Tgid)>) {
        let Some((tid, tgid)) = task else {
            return self.int(Col::ConnectionTask, 0);
        };
        let step = fold(i64::from(tid.0) - i64::from(self.known.connection_tid));
        self.int(Col::ConnectionTask, step + 1);
        self.diff(Col::ConnectionTask, tgid.0, tid.0);
        self.known.connection_tid = tid.0;
    }

    pub(super) fn endpoint(&mut self, endpoint: &Endpoint) {
        self.int(Col::Port, endpoint.port.into());
        let count = self.addresses.len();
        if let Some(at) = self.addresses.get(&endpoint.address) {
            let back = count - at;
            return self.int(Col::Address, back as u64);
        }
        self.addresses.insert(endpoint.address, count);
        self.int(Col::Address, 0);
        let mut put_ip = |bytes: &[u8]| {
            self.int(Col::NewAddress, bytes.len() as u64);
            self.column(Col::NewAddress).extend_from_slice(bytes);
        };
        match endpoint.address {
            Address::V4(ip) => put_ip(&ip.octets()),
            Address::V6(ip) => put_ip(&ip.octets()),
            Address::Masked(number) => {
                self.int(Col::NewAddress, 0);
                self.int(Col::NewAddress, number);
            }
        }
    }

    pub(super) fn connect(&mut self, connect: &Connect) {
        self.byte(Col::Kind, tag::CONNECT);
        self.new_connection(connect.id);
        self.connection_task(Some((connect.tid, connect.tgid)));
        self.endpoint(&connect.remote);
    }

    pub(super) fn accepted(&mut self, accepted: &Accepted) {
        self.byte(Col::Kind, tag::ACCEPTED);
        self.new_connection(accepted.id);
        self.connection_task(accepted.listener);
        self.endpoint(&accepted.local);
        self.endpoint(&accepted.remote);
    }

    pub(super) fn closed(&mut self, closed: &Closed) {
        self.byte(Col::Kind, tag::CLOSED);
        self.connection(closed.id);
        self.connection_task(closed.by);
        self.byte(Col::Ending, closed.ending as u8);
        self.int(Col::Sent, closed.sent);
        self.int(Col::Received, closed.received);
    }

    pub(super) fn dns_bytes(&mut self, bytes: &[u8]) {
        self.int(Col::Dns, bytes.len() as u64);
        self.column(Col::DnsBytes).extend_from_slice(bytes);
    }

    /// Not as an end of a connection, whose columns an older reader knows.
    pub(super) fn dns_address(&mut self, address: Address) {
        match address {
            Address::V4(ip) => self.dns_bytes(&ip.octets()),
            Address::V6(ip) => self.dns_bytes(&ip.octets()),
            Address::Masked(number) => {
                self.int(Col::Dns, 0);
                self.int(Col::Dns, number);
            }
        }
    }

    pub(super) fn dns_query(&mut self, query: &DnsQuery) {
        self.byte(Col::Kind, tag::DNS_QUERY);
        self.diff(Col::Dns, query.tid.0, self.known.dns_tid);
        self.diff(Col::Dns, query.tgid.0, query.tid.0);
        self.known.dns_tid = query.tid.0;
        self.dns_address(query.server);
        for value in [query.port, query.id, query.kind] {
            self.int(Col::Dns, value.into());
        }
        self.dns_bytes(query.name.get(..limits::NAME).unwrap_or(&query.name));
    }

    pub(super) fn dns_answer(&mut self, answer: &DnsAnswer) {
        self.byte(Col::Kind, tag::DNS_ANSWER);
        self.dns_address(answer.server);
        let values = [answer.port, answer.id, answer.code.map(u16::from)];
        for value in values {
            self.int(Col::Dns, value.map_or(0, |value| u64::from(value) + 1));
        }
        let addresses = answer.addresses.iter().take(ADDRESSES);
        self.int(Col::Dns, addresses.len() as u64);
        for address in addresses {
            self.dns_address(*address);
        }
    }
}

impl<'a> Dec<'a> {
    pub(super) fn new_connection(&mut self) -> Result<ConnectionId, Fault> {
        let step = unfold(self.int(Col::ConnectionId)?) as u64;
        self.known.connection = self.known.connection.wrapping_add(step);
        Ok(ConnectionId(self.known.connection))
    }

    pub(super) fn connection(&mut self) -> Result<ConnectionId, Fault> {
        let back = unfold(self.int(Col::ConnectionId)?) as u64;
        Ok(ConnectionId(self.known.connection.wrapping_sub(back)))
    }

    pub(super) fn connection_task(&mut self) -> Result<Option<(Tid, Tgid)>, Fault> {
        let Some(step) = self.int(Col::ConnectionTask)?.checked_sub(1) else {
            return Ok(None);
        };
        let tid = i64::from(self.known.connection_tid).checked_add(unfold(step));
        let tid = tid.and_then(|tid| u32::try_from(tid).ok());
        let tid = tid.ok_or(Fault::Content(
            "a connection's task does not fit in 32 bits",
        ))?;
        let tgid = self.diff(Col::ConnectionTask, tid)?;
        self.known.connection_tid = tid;
        Ok(Some((Tid(tid), Tgid(tgid))))
    }

    pub(super) fn endpoint(&mut self) -> Result<Endpoint, Fault> {
        let port = self.column(Col::Port).int16()?;
        let back = self.int(Col::Address)?;
        let address = if back == 0 {
            let address = self.new_address()?;
            self.addresses.push(address);
            address
        } else {
            *ago(&self.addresses, back)?
        };
        Ok(Endpoint { address, port })
    }

    pub(super) fn new_address(&mut self) -> Result<Address, Fault> {
        let length = self.int(Col::NewAddress)?;
        if length == 0 {
            return Ok(Address::Masked(self.int(Col::NewAddress)?));
        }
        let bytes = self.column(Col::NewAddress).take(length)?;
        address(bytes)
    }

    pub(super) fn dns_bytes(&mut self) -> Result<&'a [u8], Fault> {
        let len = self.int(Col::Dns)?;
        crate::error::within("a string's length", len, limits::NAME as u64)?;
        self.spend(len as usize)?;
        self.column(Col::DnsBytes).take(len)
    }

    pub(super) fn dns_address(&mut self) -> Result<Address, Fault> {
        let bytes = self.dns_bytes()?;
        if bytes.is_empty() {
            return Ok(Address::Masked(self.int(Col::Dns)?));
        }
        address(bytes)
    }

    pub(super) fn dns_query(&mut self) -> Result<DnsQuery, Fault> {
        let tid = self.diff(Col::Dns, self.known.dns_tid)?;
        self.known.dns_tid = tid;
        Ok(DnsQuery {
            tid: Tid(tid),
            tgid: Tgid(self.diff(Col::Dns, tid)?),
            server: self.dns_address()?,
            port: self.column(Col::Dns).int16()?,
            id: self.column(Col::Dns).int16()?,
            kind: self.column(Col::Dns).int16()?,
            name: self.dns_bytes()?.into(),
        })
    }

    pub(super) fn dns_answer(&mut self) -> Result<DnsAnswer, Fault> {
        let server = self.dns_address()?;
        let mut optional = || self.int(Col::Dns).map(|value| value.checked_sub(1));
        let (port, id, code) = (optional()?, optional()?, optional()?);
        let small = |value: Option<u64>| value.map(u16::try_from).transpose();
        let wrong = |_| Fault::Content("a number of a DNS answer is too large");
        let count = self.int(Col::Dns)?;
        crate::error::within("the number of addresses", count, ADDRESSES as u64)?;
        let addresses = (0..count).map(|_| self.dns_address());
        Ok(DnsAnswer {
            server,
            addresses: addresses.collect::<Result<_, _>>()?,
            port: small(port).map_err(wrong)?,
            id: small(id).map_err(wrong)?,
            code: code.map(u8::try_from).transpose().map_err(wrong)?,
        })
    }

    pub(super) fn connect(&mut self) -> Result<LifeKind, Fault> {
        let id = self.new_connection()?;
        let task = self.connection_task()?;
        let (tid, tgid) = task.ok_or(Fault::Content("a connect without its task"))?;
        let remote = self.endpoint()?;
        Ok(LifeKind::Connect(Connect {
            id,
            tid,
            tgid,
            remote,
        }))
    }
}

fn address(bytes: &[u8]) -> Result<Address, Fault> {
    let v4 = <[u8; 4]>::try_from(bytes).map(|ip| Address::V4(ip.into()));
    let v6 = || <[u8; 16]>::try_from(bytes).map(|ip| Address::V6(ip.into()));
    v4.or_else(|_| v6())
        .map_err(|_| Fault::Content("unknown length of an address"))
}
