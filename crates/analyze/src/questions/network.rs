//! The connections that a critical path waited for.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use tr_format::event::Comm;
use tr_format::network::Address;

use super::critical_path::{CriticalPath, Segment};
use crate::collect::network::Connection;
use crate::ids::ProcessIx;
use crate::kinds::Kind;
use crate::model::Analysis;

/// Time of the critical path in which a thread waited for the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waited {
    pub process: ProcessIx,
    /// The connection, if all that its process had at that time lead to the same end.
    pub connection: Option<usize>,
    /// The other end of that connection is in this machine, or its container.
    pub local: bool,
    /// All that its process had at that time lead to other machines: to public addresses. Others can
    /// be those of this machine's containers.
    pub elsewhere: bool,
    /// The program at the other end, if that is in this machine and not recorded, and is told by
    /// name: it ended the wait.
    pub server: Option<Comm>,
    /// In ns.
    pub ns: u64,
}

/// The number of a process's connections that are looked at for one wait; of more the one that
/// was waited for is not known.
const LOOK_BACK: usize = 1000;

/// The waits for the network on a critical path.
pub fn waited(analysis: &Analysis, path: &CriticalPath) -> Vec<Waited> {
    let ends = Ends::new(analysis);
    let segments = path.segments.iter();
    let waits = segments.filter(|it| it.kind == Kind::Network);
    waits
        .map(|segment| ends.waited(analysis, segment))
        .collect()
}

/// The connections of each process.
#[derive(Debug)]
pub struct Ends(HashMap<ProcessIx, Vec<usize>>);

impl Ends {
    /// Those of a recording.
    pub fn new(analysis: &Analysis) -> Ends {
        let mut of: HashMap<ProcessIx, Vec<usize>> = HashMap::new();
        for (at, it) in analysis.connections.iter().enumerate() {
            if let Some(thread) = it.thread {
                let process = analysis.thread(thread).process;
                of.entry(process).or_default().push(at);
            }
        }
        Ends(of)
    }

    /// What a segment that waits for the network waited for.
    pub fn waited(&self, analysis: &Analysis, segment: &Segment) -> Waited {
        let process = analysis.thread(segment.thread).process;
        let candidates = self.0.get(&process).map_or(&[][..], Vec::as_slice);
        let open = during(analysis, candidates, segment);
        let connection = one_end(&open);
        let local = connection.is_some_and(|(_, it)| is_local(it));
        let by = segment.ended_by(analysis).filter(|it| !it.kthread);
        Waited {
            process,
            connection: connection.map(|(at, _)| at),
            local,
            elsewhere: !open.is_empty() && open.iter().all(|(_, it)| is_elsewhere(it)),
            server: by.filter(|_| local).map(|it| it.comm),
            ns: segment.length(),
        }
    }
}

/// The processes all of whose connections lead to recorded ones.
pub fn among_themselves(analysis: &Analysis) -> HashSet<ProcessIx> {
    let owned = analysis.connections.iter().filter_map(|it| {
        let process = analysis.thread(it.thread?).process;
        Some((process, it.peer.is_some()))
    });
    let (inside, outside): (Vec<_>, Vec<_>) = owned.partition(|(_, inside)| *inside);
    let outside: HashSet<ProcessIx> = outside.into_iter().map(|(ix, _)| ix).collect();
    let inside = inside.into_iter().map(|(ix, _)| ix);
    inside.filter(|ix| !outside.contains(ix)).collect()
}

/// The other end of a connection is in this machine, or its container.
fn is_local(it: &Connection) -> bool {
    let remote = it.remote.address;
    remote.is_loopback() == Some(true) || it.local.is_some_and(|local| local.address == remote)
}

/// The other end of a connection is in another machine.
fn is_elsewhere(it: &Connection) -> bool {
    let remote = match it.remote.address {
        Address::V4(ip) => IpAddr::V4(ip),
        Address::V6(ip) => ip.to_canonical(),
        Address::Masked(_) => return false,
    };
    is_public(remote) && !is_local(it)
}

/// Not of an interface, a network or a provider alone.
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

/// The connections that a process had at the time of a segment; none if it has too many to look at.
/// `all`: the process's connections, in order of their beginning.
fn during<'a>(analysis: &'a Analysis, all: &[usize], segment: &Segment) -> Vec<Numbered<'a>> {
    let get = |at: usize| Some((at, analysis.connections.get(at)?));
    let begun = |at: &usize| get(*at).is_some_and(|(_, it)| it.begun <= segment.to);
    let (begun, _) = all.split_at(all.partition_point(begun));
    if begun.len() > LOOK_BACK {
        return Vec::new();
    }
    let there = begun.iter().rev().filter_map(|at| get(*at));
    let open = there.filter(|(_, it)| it.closed.is_none_or(|at| at >= segment.from));
    open.collect()
}

/// The last one of these connections, if all lead to the same end.
fn one_end<'a>(open: &[Numbered<'a>]) -> Option<Numbered<'a>> {
    let first = open.first().copied()?;
    let same = open.iter().all(|(_, it)| it.remote == first.1.remote);
    same.then_some(first)
}
