//! Sums over TCP connections.

use tr_analyze::critical_path::CriticalPath;
use tr_analyze::model::Analysis;
use tr_analyze::network::{self, Connection};

/// Sums over connections.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NetworkSum {
    pub connections: u64,
    pub failed: u64,
    pub connecting: u64,
    pub open: u64,
    /// Bytes of those that are closed.
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// Those whose bytes are not known: established, and not closed.
    pub untold: u64,
    /// Of the critical path.
    pub path_wait: u64,
}

impl NetworkSum {
    pub fn of<'a>(
        analysis: &Analysis,
        all: impl IntoIterator<Item = &'a Connection>,
    ) -> NetworkSum {
        let mut sum = NetworkSum::default();
        for it in all {
            sum.add(analysis, it);
        }
        sum
    }

    pub fn add(&mut self, analysis: &Analysis, it: &Connection) {
        let (sent, received) = it.bytes.unwrap_or_default();
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        self.connections += 1;
        self.failed += u64::from(it.failed());
        add(
            &mut self.connecting,
            it.connecting(analysis.end).unwrap_or(0),
        );
        add(&mut self.open, it.open(analysis.end));
        add(&mut self.sent_bytes, sent);
        add(&mut self.received_bytes, received);
        self.untold += u64::from(it.bytes.is_none() && it.established.is_some());
    }

    /// Bytes sent, if they are known of all connections.
    pub fn sent(&self) -> Option<u64> {
        (self.untold == 0).then_some(self.sent_bytes)
    }

    /// Bytes received, if they are known of all connections.
    pub fn received(&self) -> Option<u64> {
        (self.untold == 0).then_some(self.received_bytes)
    }
}

/// The figures of a whole recording.
pub(crate) fn totals(analysis: &Analysis, path: Option<&CriticalPath>) -> NetworkSum {
    let mut sum = NetworkSum::of(analysis, &analysis.connections);
    let waited = path.map(|path| network::waited(analysis, path));
    sum.path_wait = waited
        .iter()
        .flatten()
        .fold(0, |sum, it| sum.saturating_add(it.ns));
    sum
}
