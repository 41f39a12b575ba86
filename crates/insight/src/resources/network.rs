//! Sums up TCP connections, and names their remote ends.

use std::collections::HashMap;

use tr_analyze::critical_path::CriticalPath;
use tr_analyze::model::{Analysis, ProcessIx};
use tr_analyze::network::{self, Connection, Waited};
use tr_format::event::Comm;
use tr_format::network::{Address, Endpoint};

use crate::processes::who;

/// The remote end of a group of TCP connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// The remote end is a server: recorded processes connected to this address and port.
    To(Address, u16),
    /// The remote end is a client: this address connected to this port of the recorded machine.
    From(Address, u16),
}

impl Host {
    pub fn of(connection: &Connection) -> Host {
        let remote = connection.remote;
        match connection.local.filter(|_| connection.accepted) {
            Some(local) => Host::From(remote.address, local.port),
            None => Host::To(remote.address, remote.port),
        }
    }

    /// The remote end of the connection for which a process waited; `None` if the wait has no connection.
    pub fn waited(analysis: &Analysis, wait: &Waited) -> Option<Host> {
        let connection = analysis.network.connections.get(wait.connection?)?;
        Some(Host::of(connection))
    }

    pub fn address(self) -> Address {
        match self {
            Host::To(address, _) | Host::From(address, _) => address,
        }
    }

    pub fn port(self) -> u16 {
        match self {
            Host::To(_, port) | Host::From(_, port) => port,
        }
    }

    pub fn direction(self) -> &'static str {
        match self {
            Host::To(..) => "out",
            Host::From(..) => "in",
        }
    }

    pub fn text(self) -> String {
        match self {
            Host::To(address, port) => Endpoint { address, port }.to_string(),
            Host::From(address, port) => format!("from {address} to port {port}"),
        }
    }
}

/// The names of the remote ends of TCP connections.
#[derive(Debug, Default)]
pub struct Remotes {
    /// For each address, the DNS name whose query first returned it.
    names: HashMap<Address, String>,
    /// For each remote end of TCP connections, the program at that end, if the program runs on this machine and is not
    /// recorded. The program is known because it ended waits for the remote end. `None` if several programs ended such
    /// waits.
    servers: HashMap<Host, Option<Comm>>,
    /// For each remote end of TCP connections within this machine, the recorded process at that end. `None` if several
    /// processes had that end one after the other.
    processes: HashMap<Host, Option<ProcessIx>>,
}

impl Remotes {
    /// Collects the names of the remote ends of TCP connections. `waited` has the waits for the network on the
    /// critical path.
    pub fn new(analysis: &Analysis, waited: &[Waited]) -> Remotes {
        let mut remotes = Remotes::default();
        for lookup in &analysis.network.lookups {
            for address in &lookup.addresses {
                let name = remotes.names.entry(*address);
                name.or_insert_with(|| who::asked_name(lookup));
            }
        }
        for wait in waited {
            if let (Some(host), Some(server)) = (Host::waited(analysis, wait), wait.server) {
                let known = remotes.servers.entry(host).or_insert(Some(server));
                *known = known.filter(|known| *known == server);
            }
        }
        for connection in &analysis.network.connections {
            if let Some(process) = peer_process(analysis, connection) {
                let known = remotes.processes.entry(Host::of(connection));
                let known = known.or_insert(Some(process));
                *known = known.filter(|known| *known == process);
            }
        }
        remotes
    }

    pub fn name(&self, host: Host) -> Option<String> {
        self.names.get(&host.address()).cloned()
    }

    pub fn server(&self, host: Host) -> Option<String> {
        let server = self.servers.get(&host).copied().flatten();
        server.map(|comm| who::comm(&comm))
    }

    /// The recorded process at a remote end, if the end is in this machine and belonged to one process only.
    pub fn process(&self, host: Host) -> Option<ProcessIx> {
        self.processes.get(&host).copied().flatten()
    }

    /// The address of a remote end in text, with the name of the host or the program there.
    pub fn text(&self, host: Host) -> String {
        match (self.server(host), self.name(host)) {
            (Some(server), _) => format!("{} ({server})", host.text()),
            (None, Some(name)) => format!("{} {name}", host.text()),
            (None, None) => host.text(),
        }
    }
}

fn peer_process(analysis: &Analysis, connection: &Connection) -> Option<ProcessIx> {
    let peer = analysis.network.connections.get(connection.peer?)?;
    Some(analysis.thread(peer.thread?).process)
}

/// Sums over some TCP connections.
#[derive(Clone, Copy, Debug, Default)]
pub struct NetworkSum {
    pub connections: u64,
    pub failed: u64,
    pub connecting: u64,
    pub open: u64,
    /// The number of bytes that were sent through those of the connections that are closed.
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// The number of connections whose bytes are not known, because they were established and not closed.
    pub unknown: u64,
    /// The time in nanoseconds for which the critical path waited for the connections.
    pub path_wait: u64,
}

impl NetworkSum {
    pub fn of<'a>(
        analysis: &Analysis,
        all: impl IntoIterator<Item = &'a Connection>,
    ) -> NetworkSum {
        let mut sum = NetworkSum::default();
        for connection in all {
            sum.add(analysis, connection);
        }
        sum
    }

    pub fn add(&mut self, analysis: &Analysis, connection: &Connection) {
        let (sent, received) = connection.bytes.unwrap_or_default();
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        self.connections += 1;
        self.failed += u64::from(connection.failed());
        add(
            &mut self.connecting,
            connection.connecting(analysis.end).unwrap_or(0),
        );
        add(&mut self.open, connection.open(analysis.end));
        add(&mut self.sent_bytes, sent);
        add(&mut self.received_bytes, received);
        self.unknown += u64::from(connection.bytes.is_none() && connection.established.is_some());
    }

    /// The number of bytes sent through the connections; `None` if the number is unknown for at least one connection.
    pub fn sent(&self) -> Option<u64> {
        (self.unknown == 0).then_some(self.sent_bytes)
    }

    /// The number of bytes received through the connections; `None` if the number is unknown for at least one
    /// connection.
    pub fn received(&self) -> Option<u64> {
        (self.unknown == 0).then_some(self.received_bytes)
    }
}

/// Sums up the TCP connections of a whole recording, and the time that the critical path waited for the network.
pub(crate) fn totals(analysis: &Analysis, path: Option<&CriticalPath>) -> NetworkSum {
    let mut sum = NetworkSum::of(analysis, &analysis.network.connections);
    let waited = path.map(|path| network::waited(analysis, path));
    sum.path_wait = waited
        .iter()
        .flatten()
        .fold(0, |sum, wait| sum.saturating_add(wait.ns));
    sum
}
