//! The connections that a critical path waited for.

use std::collections::{HashMap, HashSet};

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
        let connection = during(analysis, candidates, segment);
        let local = connection.is_some_and(|at| is_local(analysis, at));
        let by = segment.ended_by(analysis).filter(|it| !it.kthread);
        Waited {
            process,
            connection,
            local,
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
fn is_local(analysis: &Analysis, at: usize) -> bool {
    let Some(it) = analysis.connections.get(at) else {
        return false;
    };
    let remote = it.remote.address;
    let loopback = match remote {
        Address::V4(ip) => ip.is_loopback(),
        Address::V6(ip) => ip.is_loopback(),
        Address::Masked(_) => false,
    };
    loopback || it.local.is_some_and(|local| local.address == remote)
}

/// One of the connections that a process had at the time of a segment, if they lead to the same
/// end. `all`: the process's connections, in order of their beginning.
fn during(analysis: &Analysis, all: &[usize], segment: &Segment) -> Option<usize> {
    let get = |at: usize| analysis.connections.get(at);
    let end = |at: usize| get(at).map(|it| it.remote);
    let begun = |at: &usize| get(*at).is_some_and(|it| it.begun <= segment.to);
    let (begun, _) = all.split_at(all.partition_point(begun));
    let last = begun.iter().rev().take(LOOK_BACK).copied();
    let open = |it: &Connection| it.closed.is_none_or(|at| at >= segment.from);
    let mut there = last.filter(|at| get(*at).is_some_and(open));
    let first = there.next();
    let same = there.all(|other| end(other) == first.and_then(end));
    let same = same && begun.len() <= LOOK_BACK;
    first.filter(|_| same)
}
