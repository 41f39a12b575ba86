//! The events about TCP connections.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::codec::{ago, unfolded, Codec, Col, Step, Stored, TextColumns};
pub use crate::ids::Address;
use crate::ids::{Ktime, Tgid, Tid};
use crate::varint::fold;
use crate::{show, Fault};

/// The number that identifies a connection within a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ConnectionId(pub u64);

/// An end of a TCP connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The internet address of this end.
    pub address: Address,
    /// The port number of this end.
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

impl Serialize for Endpoint {
    fn serialize<S: Serializer>(&self, to: S) -> show::Shown<S> {
        to.collect_str(self)
    }
}

/// A task begins to connect to a remote end by TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Connect {
    /// The connection that the task begins.
    #[serde(rename = "connection")]
    pub id: ConnectionId,
    /// The task that called connect(2).
    pub tid: Tid,
    /// The process of the task.
    pub tgid: Tgid,
    /// The end that the task connects to.
    pub remote: Endpoint,
}

/// A TCP connection that a task began is established.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Connected {
    /// The connection that is established.
    #[serde(rename = "connection")]
    pub id: ConnectionId,
    /// The end of the connection that belongs to the task.
    pub local: Endpoint,
}

/// A TCP connection that a peer began to a listening socket is established. accept(2) may return it later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Accepted {
    /// The connection that is established.
    #[serde(rename = "connection")]
    pub id: ConnectionId,
    /// The task that called listen(2) and the task's process; `None` if listen(2) was called before the
    /// recording.
    #[serde(flatten, serialize_with = "show::task")]
    pub listener: Option<(Tid, Tgid)>,
    /// The end of the connection that belongs to the listening socket.
    pub local: Endpoint,
    /// The end of the connection that belongs to the peer.
    pub remote: Endpoint,
}

/// A TCP connection has ended for its process: it was closed, shut down in both directions, or given up by the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Closed {
    /// The connection that has ended.
    #[serde(rename = "connection")]
    pub id: ConnectionId,
    /// The task whose system call closed the connection and the task's process; `None` if the network ended
    /// the connection.
    #[serde(flatten, serialize_with = "show::task")]
    pub by: Option<(Tid, Tgid)>,
    /// Why the connection ended.
    #[serde(serialize_with = "show::shown")]
    pub ending: Ending,
    /// The number of bytes that the process wrote to the connection.
    pub sent: u64,
    /// The number of bytes that arrived for the process on the connection.
    pub received: u64,
}

named! {
    /// Why a TCP connection ended.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum Ending {
        /// The process closed the connection or shut it down.
        #[default]
        Closed = "closed",
        /// The peer refused the connection.
        Refused = "refused",
        /// The peer reset the connection.
        Reset = "reset",
        /// The kernel gave the connection up because the peer did not answer.
        TimedOut = "timed_out",
        /// The network or the host of the peer could not be reached.
        Unreachable = "unreachable",
        /// The process reset the connection: it closed it with unread data, or without lingering.
        Aborted = "aborted",
        /// The process closed the connection before it was established.
        Abandoned = "abandoned",
        /// Another error ended the connection.
        Failed = "failed",
    }
}

impl Ending {
    /// The ending that is stored as this number.
    pub fn of(number: u8) -> Ending {
        let known = Ending::ALL.get(usize::from(number));
        known.copied().unwrap_or(Ending::Failed)
    }
}

impl ConnectionId {
    /// Handles the number of a new connection, which is stored as the difference to the last new connection.
    fn first<C: Codec>(&mut self, c: &mut C) -> Step {
        let last = c.known().connection;
        c.change(Col::ConnectionId, &mut self.0, last)?;
        c.known().connection = self.0;
        Ok(())
    }

    /// Handles the number of an earlier connection, which is stored as the difference from the last new connection.
    fn again<C: Codec>(&mut self, c: &mut C) -> Step {
        let last = c.known().connection;
        let mut back = last.wrapping_sub(self.0);
        c.change(Col::ConnectionId, &mut back, 0)?;
        self.0 = last.wrapping_sub(back);
        Ok(())
    }
}

/// Handles the task that a connection's event names: 0 is stored for none, else 1 plus the difference to the last task.
fn task<C: Codec>(c: &mut C, task: &mut Option<(Tid, Tgid)>) -> Step {
    let last = *c.known().last(Col::ConnectionTask);
    let step = |(tid, _): (Tid, Tgid)| fold(i64::from(tid.0) - i64::from(last)) + 1;
    let mut stored = task.map_or(0, step);
    c.int(Col::ConnectionTask, &mut stored)?;
    let Some(step) = stored.checked_sub(1) else {
        *task = None;
        return Ok(());
    };
    let (tid, tgid) = task.get_or_insert_default();
    tid.0 = unfolded(step, last)?;
    c.diff(Col::ConnectionTask, &mut tgid.0, tid.0)?;
    *c.known().last(Col::ConnectionTask) = tid.0;
    Ok(())
}

impl Endpoint {
    fn fields<C: Codec>(&mut self, c: &mut C) -> Step {
        c.narrow(Col::Port, &mut self.port)?;
        let count = c.known().addresses.len();
        let found = c.known().address_at.get(&self.address);
        let mut back = found.map_or(0, |at| (count - at) as u64);
        c.int(Col::Address, &mut back)?;
        if back > 0 {
            self.address = *ago(&c.known().addresses, back)?;
            return Ok(());
        }
        let cols = TextColumns::new(Col::NewAddress, Col::NewAddress);
        c.address(cols, &mut self.address)?;
        c.known().addresses.push(self.address);
        if C::WRITES {
            c.known().address_at.insert(self.address, count);
        }
        Ok(())
    }
}

impl Stored for Connect {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        self.id.first(c)?;
        let mut by = Some((self.tid, self.tgid));
        task(c, &mut by)?;
        (self.tid, self.tgid) = by.ok_or(Fault::Content("a connect without its task"))?;
        self.remote.fields(c)
    }
}

impl Stored for Connected {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        self.id.again(c)?;
        self.local.fields(c)
    }
}

impl Stored for Accepted {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        self.id.first(c)?;
        task(c, &mut self.listener)?;
        self.local.fields(c)?;
        self.remote.fields(c)
    }
}

impl Stored for Closed {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        self.id.again(c)?;
        task(c, &mut self.by)?;
        let mut number = self.ending as u8;
        c.byte(Col::Ending, &mut number)?;
        self.ending = Ending::of(number);
        c.int(Col::Sent, &mut self.sent)?;
        c.int(Col::Received, &mut self.received)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers are stored in files, so they may not change.
    #[test]
    fn endings_keep_their_numbers() {
        let all = [
            (0, "closed"),
            (1, "refused"),
            (2, "reset"),
            (3, "timed_out"),
            (4, "unreachable"),
            (5, "aborted"),
            (6, "abandoned"),
            (7, "failed"),
        ];
        assert_eq!(Ending::ALL.map(|ending| (ending as u8, ending.name())), all);
    }
}
