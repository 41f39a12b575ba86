//! Makes the HTML report's table of TCP connections and DNS queries.

use tr_analyze::dns::Lookup;
use tr_analyze::model::{Analysis, ThreadIx};
use tr_analyze::network::Connection;
use tr_format::event::Ktime;

use tr_insight::processes::who;
use tr_text::strings::Strings;

/// The largest number of TCP connections and DNS queries together that the HTML report shows.
const CONNECTIONS: usize = 5_000;

columns!(Connections(analysis: &Analysis, bar: &Bar, strings: &mut Strings) {
    process: Option<u32> = bar.thread.map(|ix| analysis.thread(ix).process.0),
    remote: u32 = strings.add(bar.name.clone()),
    accepted: u8 = bar.accepted.into(),
    dns: u8 = bar.dns.into(),
    from: u64 = bar.from.since(analysis.meta.start),
    // A DNS query counts as established at the time of its answer.
    established: Option<u64> = bar.established.map(|at| at.since(analysis.meta.start)),
    to: u64 = bar.to.since(analysis.meta.start),
    failed: u8 = bar.failed.into(),
    sent: Option<u64> = bar.bytes.map(|(sent, _)| sent),
    received: Option<u64> = bar.bytes.map(|(_, received)| received),
});

/// A TCP connection or a DNS query, which the HTML report draws as a bar over time.
struct Bar {
    thread: Option<ThreadIx>,
    name: String,
    accepted: bool,
    dns: bool,
    from: Ktime,
    established: Option<Ktime>,
    to: Ktime,
    failed: bool,
    bytes: Option<(u64, u64)>,
}

impl Bar {
    fn connection(analysis: &Analysis, connection: &Connection) -> Bar {
        Bar {
            thread: connection.thread,
            name: connection.remote.to_string(),
            accepted: connection.accepted,
            dns: false,
            from: connection.begun,
            established: connection.established,
            to: connection.closed.unwrap_or(analysis.end),
            failed: connection.failed(),
            bytes: connection.bytes,
        }
    }

    fn lookup(analysis: &Analysis, lookup: &Lookup) -> Bar {
        Bar {
            thread: lookup.thread,
            name: who::asked_name(lookup),
            accepted: false,
            dns: true,
            from: lookup.asked,
            established: lookup.answered,
            to: lookup.answered.unwrap_or(analysis.end),
            failed: lookup.failed(),
            bytes: None,
        }
    }
}

/// The longest TCP connections and DNS queries for the HTML report, in the order of their
/// beginning.
pub fn connections(analysis: &Analysis, strings: &mut Strings) -> Connections {
    let connections = analysis.network.connections.iter();
    let connections = connections.map(|connection| Bar::connection(analysis, connection));
    let lookups = analysis.network.lookups.iter();
    let lookups = lookups.map(|lookup| Bar::lookup(analysis, lookup));
    let mut chosen: Vec<Bar> = connections.chain(lookups).collect();
    if chosen.len() > CONNECTIONS {
        chosen.sort_by_key(|bar| std::cmp::Reverse(bar.to.since(bar.from)));
        chosen.truncate(CONNECTIONS);
    }
    chosen.sort_by_key(|bar| bar.from);
    let mut columns = Connections::default();
    for bar in &chosen {
        columns.push(analysis, bar, strings);
    }
    columns
}
