//! Connections as they come into the file: numbered, and masked if asked for.

use std::collections::HashMap;

use tr_format::event::LifeKind;
use tr_format::network::{Address, ConnectionId, Endpoint};

/// The connections that are not closed yet, and the masked addresses.
///
/// The programs name a connection by its socket's address, which is the kernel's secret and
/// is used again. Each socket's events are in the ring in their order: the programs run under
/// the socket's lock.
#[derive(Debug, Default)]
pub struct Connections {
    numbers: HashMap<u64, u64>,
    count: u64,
    /// Addresses are masked, by their order in the recording.
    mask: bool,
    masked: HashMap<Address, u64>,
    /// Names of DNS queries in the same way.
    names: HashMap<Box<[u8]>, usize>,
}

impl Connections {
    /// With masked addresses, or not.
    pub fn new(mask: bool) -> Connections {
        Connections {
            mask,
            ..Connections::default()
        }
    }

    /// Numbers the event's connection and masks its addresses. False: its beginning is lost.
    pub fn take(&mut self, kind: &mut LifeKind) -> bool {
        match kind {
            LifeKind::Connect(connect) => {
                self.begin(&mut connect.id);
                self.mask(&mut connect.remote);
            }
            LifeKind::Accepted(accepted) => {
                self.begin(&mut accepted.id);
                self.mask(&mut accepted.local);
                self.mask(&mut accepted.remote);
            }
            LifeKind::Connected(connected) => {
                self.mask(&mut connected.local);
                let number = self.numbers.get(&connected.id.0).copied();
                return set(&mut connected.id, number);
            }
            LifeKind::Closed(closed) => {
                let number = self.numbers.remove(&closed.id.0);
                return set(&mut closed.id, number);
            }
            LifeKind::DnsQuery(query) => {
                self.mask_address(&mut query.server);
                self.mask_name(&mut query.name);
            }
            LifeKind::DnsAnswer(answer) => {
                self.mask_address(&mut answer.server);
                for address in &mut answer.addresses {
                    self.mask_address(address);
                }
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

    fn mask(&mut self, end: &mut Endpoint) {
        self.mask_address(&mut end.address);
    }

    fn mask_address(&mut self, address: &mut Address) {
        if !self.mask || address.is_loopback() != Some(false) {
            return;
        }
        let next = self.masked.len() as u64 + 1;
        let number = *self.masked.entry(*address).or_insert(next);
        *address = Address::Masked(number);
    }

    fn mask_name(&mut self, name: &mut Box<[u8]>) {
        if !self.mask {
            return;
        }
        let next = self.names.len() + 1;
        let number = *self.names.entry(name.clone()).or_insert(next);
        *name = format!("name-{number}").into_bytes().into();
    }
}

fn set(id: &mut ConnectionId, number: Option<u64>) -> bool {
    id.0 = number.unwrap_or(id.0);
    number.is_some()
}

#[cfg(test)]
mod tests {
    use tr_format::event::{Tgid, Tid};
    use tr_format::network::{Accepted, Closed, Connect, Ending};

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

    #[test]
    fn equal_addresses_are_masked_alike_and_the_machines_own_stay() {
        let mut connections = Connections::new(true);
        let mut ends = |local, remote| {
            let mut kind = LifeKind::Accepted(Accepted {
                id: ConnectionId(7),
                listener: None,
                local: end(local),
                remote: end(remote),
            });
            connections.take(&mut kind);
            let LifeKind::Accepted(accepted) = kind else {
                panic!("{kind:?}")
            };
            [accepted.local, accepted.remote].map(|end| end.to_string())
        };
        assert_eq!(ends([10, 0, 0, 1], [8; 4]), ["host-1:80", "host-2:80"]);
        assert_eq!(
            ends([127, 0, 0, 1], [10, 0, 0, 1]),
            ["127.0.0.1:80", "host-1:80"]
        );
    }
}
