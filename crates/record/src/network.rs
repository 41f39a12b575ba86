//! Numbers the TCP connections of a recording, and masks their addresses if that is requested.

use std::collections::HashMap;

use tr_format::event::LifeKind;
use tr_format::network::ConnectionId;
use tr_redact::addresses::Addresses;

/// The TCP connections that are not closed yet, with their numbers in the trace, and the masks that replace the
/// internet addresses.
///
/// The BPF programs identify a connection by a number that does not show the order in which connections began, so each
/// connection gets a new number here. The events of one socket come in their order, because the BPF programs run under
/// the socket's lock.
#[derive(Debug, Default)]
pub struct Connections {
    numbers: HashMap<u64, u64>,
    count: u64,
    /// The masks that replace internet addresses; `None` if addresses are not masked.
    mask: Option<Addresses>,
}

impl Connections {
    /// Creates a table of TCP connections that is empty. `mask` says whether addresses are masked.
    pub fn new(mask: bool) -> Connections {
        Connections {
            mask: mask.then(Addresses::default),
            ..Connections::default()
        }
    }

    /// Numbers the TCP connection of an event and masks its addresses. Returns false if the event that begins the
    /// connection is missing, for example because it was lost, so that this event cannot be stored.
    pub fn take(&mut self, kind: &mut LifeKind) -> bool {
        if let Some(mask) = &mut self.mask {
            mask.mask(kind);
        }
        match kind {
            LifeKind::Connect(connect) => self.begin(&mut connect.id),
            LifeKind::Accepted(accepted) => self.begin(&mut accepted.id),
            LifeKind::Connected(connected) => {
                let number = self.numbers.get(&connected.id.0).copied();
                return set(&mut connected.id, number);
            }
            LifeKind::Closed(closed) => {
                let number = self.numbers.remove(&closed.id.0);
                return set(&mut closed.id, number);
            }
            _ => {}
        }
        true
    }

    fn begin(&mut self, id: &mut ConnectionId) {
        self.count += 1;
        self.numbers.insert(id.0, self.count);
        id.0 = self.count;
    }
}

fn set(id: &mut ConnectionId, number: Option<u64>) -> bool {
    id.0 = number.unwrap_or(id.0);
    number.is_some()
}

#[cfg(test)]
mod tests {
    use tr_format::event::{Tgid, Tid};
    use tr_format::network::{Address, Closed, Connect, Ending, Endpoint};

    use super::*;

    fn end(address: [u8; 4]) -> Endpoint {
        Endpoint {
            address: Address::V4(address.into()),
            port: 80,
        }
    }

    fn connect(id: u64, to: [u8; 4]) -> LifeKind {
        LifeKind::Connect(Connect {
            id: ConnectionId(id),
            tid: Tid(1),
            tgid: Tgid(1),
            remote: end(to),
        })
    }

    fn closed(id: u64) -> LifeKind {
        LifeKind::Closed(Closed {
            id: ConnectionId(id),
            by: None,
            ending: Ending::Closed,
            sent: 0,
            received: 0,
        })
    }

    #[test]
    fn a_socket_that_is_used_again_is_another_connection() {
        let mut connections = Connections::default();
        let mut number = |mut kind| connections.take(&mut kind).then_some(kind);
        assert_eq!(number(connect(900, [9; 4])), Some(connect(1, [9; 4])));
        assert_eq!(number(closed(900)), Some(closed(1)));
        assert_eq!(number(closed(900)), None);
        assert_eq!(number(connect(900, [9; 4])), Some(connect(2, [9; 4])));
        assert_eq!(number(closed(900)), Some(closed(2)));
    }
}
