//! The events about TCP connections.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::codec::{ago, unfolded, Codec, Col, Step, Stored, TextColumns};
pub use crate::ids::Address;
use crate::ids::{Ktime, Tgid, Tid};
use crate::varint::fold;
use crate::{show, Fault};

/// The number that identifies a TCP connection within a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ConnectionId(pub u64);

/// One of the two ends of a TCP connection: an address and a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The internet address of this end of a TCP connection.
    pub address: Address,
    /// The port number of this end of a TCP connection.
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

/// An event about a task that begins to connect to a remote end by TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Connect {
    /// The number of the TCP connection that the task begins.
    #[serde(rename = "connection")]
    pub id: ConnectionId,
    /// The task that called connect(2) for the TCP connection.
    pub tid: Tid,
    /// The process of the task that called connect(2).
    pub tgid: Tgid,
    /// The remote end that the task connects to.
    pub remote: Endpoint,
}

/// An event about a TCP connection that a task began and that is now established.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Connected {
    /// The number of the TCP connection that is established.
    #[serde(rename = "connection")]
    pub id: ConnectionId,
    /// The local end of the TCP connection, which belongs to the task that began it.
    pub local: Endpoint,
}

/// An event about a TCP connection that a peer began to a listening socket and that is now established. The process may
/// get the connection only later, from accept(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Accepted {
    /// The number of the TCP connection that is established.
    #[serde(rename = "connection")]
    pub id: ConnectionId,
    /// The task that called listen(2) and the task's process; `None` if listen(2) was called before the
    /// recording.
    #[serde(flatten, serialize_with = "show::task")]
    pub listener: Option<(Tid, Tgid)>,
    /// The local end of the TCP connection, which belongs to the listening socket.
    pub local: Endpoint,
    /// The remote end of the TCP connection, which belongs to the peer.
    pub remote: Endpoint,
}

/// An event about a TCP connection that has ended for its process: it was closed, shut down in both directions, or
/// given up by the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Closed {
    /// The number of the TCP connection that has ended.
    #[serde(rename = "connection")]
    pub id: ConnectionId,
    /// The task whose system call closed the connection and the task's process; `None` if the network ended
    /// the connection.
    #[serde(flatten, serialize_with = "show::task")]
    pub by: Option<(Tid, Tgid)>,
    /// The reason why the TCP connection ended.
    #[serde(serialize_with = "show::shown")]
    pub ending: Ending,
    /// The number of bytes that the process wrote to the TCP connection.
    pub sent: u64,
    /// The number of bytes that arrived for the process on the TCP connection.
    pub received: u64,
}

named! {
    /// The reason why a TCP connection ended.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum Ending {
        /// The TCP connection ended because the process closed it or shut it down.
        #[default]
        Closed = "closed",
        /// The TCP connection ended because the peer refused it.
        Refused = "refused",
        /// The TCP connection ended because the peer reset it.
        Reset = "reset",
        /// The TCP connection ended because the kernel gave it up when the peer did not answer.
        TimedOut = "timed_out",
        /// The TCP connection ended because the network or the host of the peer could not be reached.
        Unreachable = "unreachable",
        /// The TCP connection ended because the process reset it: it closed the connection with unread data, or without
        /// lingering.
        Aborted = "aborted",
        /// The TCP connection ended because the process closed it before it was established.
        Abandoned = "abandoned",
        /// The TCP connection ended because of another error.
        Failed = "failed",
    }
}

impl Ending {
    /// The reason for a connection's end that is stored as this number; [`Ending::Failed`] for an unknown number.
    pub fn of(number: u8) -> Ending {
        let known = Ending::ALL.get(usize::from(number));
        known.copied().unwrap_or(Ending::Failed)
    }
}

impl ConnectionId {
    /// Writes or reads the number of a new connection, which is stored as the difference to the number of the previous
    /// new connection.
    fn first<C: Codec>(&mut self, c: &mut C) -> Step {
        let last = c.known().connection;
        c.change(Col::ConnectionId, &mut self.0, last)?;
        c.known().connection = self.0;
        Ok(())
    }

    /// Writes or reads the number of an earlier connection, which is stored as its distance before the number of the
    /// most recent new connection.
    fn again<C: Codec>(&mut self, c: &mut C) -> Step {
        let last = c.known().connection;
        let mut back = last.wrapping_sub(self.0);
        c.change(Col::ConnectionId, &mut back, 0)?;
        self.0 = last.wrapping_sub(back);
        Ok(())
    }
}

/// Writes or reads the task that an event of a connection names: 0 is stored for no task, else 1 plus the difference to
/// the id of the previous such task.
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

    /// Tests that the reasons for ends of connections keep their numbers, because traces store the numbers.
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
