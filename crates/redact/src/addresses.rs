//! Masks the network addresses of recorded connections, and the host names of recorded DNS queries.

use std::collections::HashMap;

use tr_format::event::LifeKind;
use tr_format::network::{Address, Endpoint};

/// Replaces recorded network addresses by `host-1`, `host-2`, … and DNS names by `name-1`, `name-2`, … in the order
/// of their first appearance. Loopback addresses and addresses that are masked already are kept.
#[derive(Debug, Default)]
pub struct Addresses {
    hosts: HashMap<Address, u64>,
    names: HashMap<Box<[u8]>, usize>,
}

impl Addresses {
    /// Masks the network addresses and DNS names in a recorded event.
    pub fn mask(&mut self, kind: &mut LifeKind) {
        match kind {
            LifeKind::Connect(connect) => self.endpoint(&mut connect.remote),
            LifeKind::Accepted(accepted) => {
                self.endpoint(&mut accepted.local);
                self.endpoint(&mut accepted.remote);
            }
            LifeKind::Connected(connected) => self.endpoint(&mut connected.local),
            LifeKind::DnsQuery(query) => {
                self.address(&mut query.server);
                self.name(&mut query.name);
            }
            LifeKind::DnsAnswer(answer) => {
                self.address(&mut answer.server);
                for address in &mut answer.addresses {
                    self.address(address);
                }
            }
            _ => {}
        }
    }

    /// The number of different network addresses and DNS names that were masked so far.
    pub fn masked(&self) -> usize {
        self.hosts.len() + self.names.len()
    }

    fn endpoint(&mut self, end: &mut Endpoint) {
        self.address(&mut end.address);
    }

    fn address(&mut self, address: &mut Address) {
        if address.is_loopback() != Some(false) {
            return;
        }
        let next = self.hosts.len() as u64 + 1;
        let number = *self.hosts.entry(*address).or_insert(next);
        *address = Address::Masked(number);
    }

    fn name(&mut self, name: &mut Box<[u8]>) {
        let next = self.names.len() + 1;
        let number = *self.names.entry(name.clone()).or_insert(next);
        *name = format!("name-{number}").into_bytes().into();
    }
}

#[cfg(test)]
mod tests {
    use tr_format::network::{Accepted, ConnectionId};

    use super::*;

    fn end(address: [u8; 4]) -> Endpoint {
        Endpoint {
            address: Address::V4(address.into()),
            port: 80,
        }
    }

    #[test]
    fn equal_addresses_are_masked_alike_and_the_machines_own_stay() {
        let mut addresses = Addresses::default();
        let mut ends = |local, remote| {
            let mut kind = LifeKind::Accepted(Accepted {
                id: ConnectionId(7),
                listener: None,
                local: end(local),
                remote: end(remote),
            });
            addresses.mask(&mut kind);
            // Masking an event a second time must not change a masked address.
            addresses.mask(&mut kind);
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
        assert_eq!(addresses.masked(), 2);
    }
}
