//! Finds the TCP connections for which a critical path waited.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use tr_format::event::Comm;
use tr_format::network::Address;

use super::critical_path::{CriticalPath, Segment};
use crate::collect::network::Connection;
use crate::ids::ProcessIx;
use crate::kinds::TimeKind;
use crate::model::Analysis;
use crate::timeline::Bucket;

/// A wait of a thread for the network on the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waited {
    pub process: ProcessIx,
    /// The index of the connection that the thread waited for. It is known in two cases: all connections that the
    /// process had at that time lead to the same remote address and port, or those lead there that the process gave up
    /// after the wait, without an answer. Of several such connections, the last one is taken.
    pub connection: Option<usize>,
    /// Whether the remote end of the connection that the thread waited for is in this machine or in the same
    /// container.
    pub local: bool,
    /// Whether all connections that the waiting process had at that time lead to public addresses, which are
    /// certainly in other machines. Other addresses can belong to containers of this machine.
    pub elsewhere: bool,
    /// The name of the program at the remote end of the connection that ended the wait. The name is known if the
    /// program ran on this machine as an unrecorded task whose name the recording has.
    pub server: Option<Comm>,
    /// The length of the wait for the network in ns.
    pub ns: u64,
}

/// The largest number of a process's connections that are checked for one wait. If there are more, the
/// connection that the process waited for is not known.
const LOOK_BACK: usize = 1000;

/// The waits for the network on a critical path, each with the connection that it was for.
pub fn waited(analysis: &Analysis, path: &CriticalPath) -> Vec<Waited> {
    let ends = Ends::new(analysis);
    let segments = path.segments.iter();
    let waits = segments.filter(|segment| segment.kind == TimeKind::Network);
    waits
        .map(|segment| ends.waited(analysis, segment))
        .collect()
}

/// For each process, the indices of its TCP connections.
#[derive(Debug)]
pub struct Ends(HashMap<ProcessIx, Vec<usize>>);

impl Ends {
    /// Collects the TCP connections of an analysis by process.
    pub fn new(analysis: &Analysis) -> Ends {
        let mut of: HashMap<ProcessIx, Vec<usize>> = HashMap::new();
        for (at, connection) in analysis.network.connections.iter().enumerate() {
            if let Some(thread) = connection.thread {
                let process = analysis.thread(thread).process;
                of.entry(process).or_default().push(at);
            }
        }
        Ends(of)
    }

    /// Finds the connection that a segment of the critical path waited for, and the other facts about this wait
    /// for the network.
    pub fn waited(&self, analysis: &Analysis, segment: &Segment) -> Waited {
        let process = analysis.thread(segment.thread).process;
        let candidates = self.0.get(&process).map_or(&[][..], Vec::as_slice);
        let open = during(analysis, candidates, segment);
        let connection = one_end(&open).or_else(|| one_end(&given_up(analysis, &open, segment)));
        let local = !open.is_empty() && open.iter().all(|(_, connection)| is_local(connection));
        let by = segment
            .ended_by(analysis)
            .filter(|outsider| !outsider.kthread);
        Waited {
            process,
            connection: connection.map(|(at, _)| at),
            local,
            elsewhere: !open.is_empty()
                && open.iter().all(|(_, connection)| is_elsewhere(connection)),
            server: by.filter(|_| local).map(|outsider| outsider.comm),
            ns: segment.length(),
        }
    }
}

/// The processes whose TCP connections all lead to recorded processes.
pub fn among_themselves(analysis: &Analysis) -> HashSet<ProcessIx> {
    let owned = analysis
        .network
        .connections
        .iter()
        .filter_map(|connection| {
            let process = analysis.thread(connection.thread?).process;
            Some((process, connection.peer.is_some()))
        });
    let (inside, outside): (Vec<_>, Vec<_>) = owned.partition(|(_, inside)| *inside);
    let outside: HashSet<ProcessIx> = outside.into_iter().map(|(ix, _)| ix).collect();
    let inside = inside.into_iter().map(|(ix, _)| ix);
    inside.filter(|ix| !outside.contains(ix)).collect()
}

/// Whether the remote end of a TCP connection is in this machine or in the same container.
pub fn is_local(connection: &Connection) -> bool {
    let remote = connection.remote.address;
    remote.is_loopback() == Some(true)
        || connection
            .local
            .is_some_and(|local| local.address == remote)
}

/// Whether the remote end of a TCP connection is certainly in another machine, because its address is public.
fn is_elsewhere(connection: &Connection) -> bool {
    let remote = match connection.remote.address {
        Address::V4(ip) => IpAddr::V4(ip),
        Address::V6(ip) => ip.to_canonical(),
        Address::Masked(_) => return false,
    };
    is_public(remote) && !is_local(connection)
}

/// Whether an address is a public internet address, which is not limited to an interface, a network or a provider.
fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            let [first, second, ..] = ip.octets();
            let shared = first == 100 && second & 0xc0 == 64;
            let own = ip.is_private() || ip.is_loopback() || ip.is_link_local();
            !(own || shared || ip.is_unspecified())
        }
        IpAddr::V6(ip) => {
            let own = ip.is_unique_local() || ip.is_unicast_link_local();
            !(own || ip.is_loopback() || ip.is_unspecified())
        }
    }
}

type Numbered<'a> = (usize, &'a Connection);

/// The connections that a process had at the time of a segment, the last one first; none if there are too many to
/// check. `all` has the process's connections in the order of their beginnings.
fn during<'a>(analysis: &'a Analysis, all: &[usize], segment: &Segment) -> Vec<Numbered<'a>> {
    let get = |at: usize| Some((at, analysis.network.connections.get(at)?));
    let begun = |at: &usize| get(*at).is_some_and(|(_, connection)| connection.begun <= segment.to);
    let (begun, _) = all.split_at(all.partition_point(begun));
    if begun.len() > LOOK_BACK {
        return Vec::new();
    }
    let there = begun.iter().rev().filter_map(|at| get(*at));
    let open =
        there.filter(|(_, connection)| connection.closed.is_none_or(|at| at >= segment.from));
    open.collect()
}

/// The given connections that the process itself began, on which it received nothing, and which it closed after the
/// wait of a segment and before the thread waited again.
fn given_up<'a>(
    analysis: &Analysis,
    open: &[Numbered<'a>],
    segment: &Segment,
) -> Vec<Numbered<'a>> {
    let after = analysis.timeline.iter().flat_map(|timeline| {
        let after = timeline.since(segment.thread, segment.to);
        after.take(LOOK_BACK)
    });
    let mut waits = after.filter(|part| matches!(part.doing, Bucket::Wait(_)));
    let next = waits.find(|part| part.from >= segment.to);
    let until = next.map_or(analysis.end, |wait| wait.from);
    let is_given_up = |connection: &Connection| {
        let (Some(closed), Some((_, received))) = (connection.closed, connection.bytes) else {
            return false;
        };
        !connection.accepted && received == 0 && (segment.to..=until).contains(&closed)
    };
    let given_up = open
        .iter()
        .filter(|(_, connection)| is_given_up(connection));
    given_up.copied().collect()
}

/// The first of the given connections of a process, if all of them lead to the same address and port; otherwise `None`.
fn one_end<'a>(open: &[Numbered<'a>]) -> Option<Numbered<'a>> {
    let first = open.first().copied()?;
    let same = open
        .iter()
        .all(|(_, connection)| connection.remote == first.1.remote);
    same.then_some(first)
}
