//! Collects TCP connections: which thread connected to which address, when, and how many bytes went each way.

use std::collections::{BTreeMap, HashMap};

use tr_format::event::{Ktime, LifeKind, Tid};
use tr_format::network::{ConnectionId, Ending, Endpoint};

use super::dns::Lookup;
use crate::gaps::Spans;
use crate::ids::{ProcessIx, TaskIx, ThreadIx};

/// A TCP connection of the recorded tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The thread of the TCP connection. If a recorded thread called connect(2) for the connection, this thread is
    /// taken. Otherwise the thread that closed the connection is taken or, if no thread closed it, the thread that
    /// called listen(2).
    pub thread: Option<ThreadIx>,
    /// Whether the peer, and not this process, began the TCP connection.
    pub accepted: bool,
    /// The time at which the process called connect(2). For an accepted TCP connection, it is the time at which
    /// the connection was established.
    pub begun: Ktime,
    /// The time at which the TCP connection was established.
    pub established: Option<Ktime>,
    /// The time at which the TCP connection ended for its process; `None` if it was still open.
    pub closed: Option<Ktime>,
    /// How the TCP connection ended; `None` if it was still open.
    pub ending: Option<Ending>,
    /// The address and the port of the TCP connection on the side of the recorded thread. They are not known
    /// before the connection is established.
    pub local: Option<Endpoint>,
    pub remote: Endpoint,
    /// The numbers of bytes that the process sent and received over the TCP connection, if the connection is
    /// closed.
    pub bytes: Option<(u64, u64)>,
    /// The index of the TCP connection that is the other end of this one, if that end is recorded, too.
    pub peer: Option<usize>,
}

impl Connection {
    /// Whether the TCP connection was not established, or an error ended it.
    pub fn failed(&self) -> bool {
        !matches!(self.ending, None | Some(Ending::Closed | Ending::Aborted))
    }

    /// The time in ns from the call of connect(2) until the TCP connection was established. If it never was, the time
    /// is counted to its close, or to `end` if it was not closed either. `None` for an accepted connection.
    pub fn connecting(&self, end: Ktime) -> Option<u64> {
        let until = self.established.or(self.closed).unwrap_or(end);
        (!self.accepted).then(|| until.since(self.begun))
    }

    /// The time in ns from the TCP connection's establishment to its close, or to `end` if it was not closed.
    pub fn open(&self, end: Ktime) -> u64 {
        let until = self.closed.unwrap_or(end);
        self.established.map_or(0, |since| until.since(since))
    }
}

/// A TCP connection while events are still read, with its task as an index of the tracker, because the model has no
/// threads yet.
#[derive(Debug)]
struct Draft {
    task: Option<TaskIx>,
    connection: Connection,
}

#[derive(Debug, Default)]
pub(crate) struct Connections {
    all: Vec<Draft>,
    open: HashMap<ConnectionId, usize>,
    /// The number of TCP connections that exceeded the limit of the analysis and were left out.
    pub left_out: u64,
}

impl Connections {
    /// The largest number of TCP connections that an analysis keeps. Each takes about 200 bytes.
    const MOST: usize = 1 << 20;

    /// Stores a new TCP connection, or adds the facts of an event to a stored TCP connection. `task` finds a task by
    /// its tid.
    pub fn take(&mut self, time: Ktime, kind: &LifeKind, task: impl Fn(Tid) -> Option<TaskIx>) {
        match kind {
            LifeKind::Connect(event) => {
                let connection = begun(time, event.remote);
                self.begin(event.id, task(event.tid), connection);
            }
            LifeKind::Accepted(event) => {
                let connection = Connection {
                    accepted: true,
                    established: Some(time),
                    local: Some(event.local),
                    ..begun(time, event.remote)
                };
                let listener = event.listener.and_then(|(tid, _)| task(tid));
                self.begin(event.id, listener, connection);
            }
            LifeKind::Connected(event) => {
                if let Some(draft) = self.find(event.id) {
                    draft.connection.established = Some(time);
                    draft.connection.local = Some(event.local);
                }
            }
            LifeKind::Closed(event) => {
                if let Some(draft) = self.find(event.id) {
                    let connection = &mut draft.connection;
                    connection.closed = Some(time);
                    connection.ending = Some(event.ending);
                    connection.bytes = Some((event.sent, event.received));
                    let by = event.by.and_then(|(tid, _)| task(tid));
                    if connection.accepted && by.is_some() {
                        draft.task = by;
                    }
                }
                self.open.remove(&event.id);
            }
            _ => {}
        }
    }

    /// The address and port of the peer of an open TCP connection; `None` if no such connection is open.
    pub fn remote(&self, id: ConnectionId) -> Option<Endpoint> {
        let draft = self.all.get(*self.open.get(&id)?)?;
        Some(draft.connection.remote)
    }

    fn find(&mut self, id: ConnectionId) -> Option<&mut Draft> {
        self.all.get_mut(*self.open.get(&id)?)
    }

    fn begin(&mut self, id: ConnectionId, task: Option<TaskIx>, connection: Connection) {
        if self.all.len() >= Connections::MOST {
            self.left_out += 1;
            return;
        }
        self.open.insert(id, self.all.len());
        self.all.push(Draft { task, connection });
    }

    /// The TCP connections that overlap the span `start..end`, in the order of their beginnings.
    pub fn finish(
        self,
        (start, end): (Ktime, Ktime),
        thread: impl Fn(TaskIx) -> Option<ThreadIx>,
    ) -> Vec<Connection> {
        let inside =
            |draft: &Connection| draft.begun < end && draft.closed.is_none_or(|at| at >= start);
        let all = self.all.into_iter();
        let all = all.filter(|draft| inside(&draft.connection));
        let mut all: Vec<Connection> = all
            .map(|draft| Connection {
                thread: draft.task.and_then(&thread),
                ..draft.connection
            })
            .collect();
        pair(&mut all);
        all
    }
}

fn begun(time: Ktime, remote: Endpoint) -> Connection {
    Connection {
        thread: None,
        accepted: false,
        begun: time,
        established: None,
        closed: None,
        ending: None,
        local: None,
        remote,
        bytes: None,
        peer: None,
    }
}

/// Finds the connections whose two ends are both recorded, and links the two ends. If several recorded connections may
/// be the other end, because ports are reused, the one that was established at the nearest time is taken.
fn pair(all: &mut [Connection]) {
    let mut accepted: HashMap<(Endpoint, Endpoint), BTreeMap<Ktime, usize>> = HashMap::new();
    for (at, connection) in all
        .iter()
        .enumerate()
        .filter(|(_, connection)| connection.accepted)
    {
        if let (Some(local), Some(time)) = (connection.local, connection.established) {
            accepted
                .entry((local, connection.remote))
                .or_default()
                .insert(time, at);
        }
    }
    let mut pairs = Vec::new();
    for (at, connection) in all
        .iter()
        .enumerate()
        .filter(|(_, connection)| !connection.accepted)
    {
        let (Some(local), Some(time)) = (connection.local, connection.established) else {
            continue;
        };
        let Some(others) = accepted.get_mut(&(connection.remote, local)) else {
            continue;
        };
        let before = others.range(..=time).next_back();
        let after = others.range(time..).next();
        let near = before
            .into_iter()
            .chain(after)
            .min_by_key(|(other, _)| other.0.abs_diff(time.0));
        if let Some((key, other)) = near.map(|(key, other)| (*key, *other)) {
            others.remove(&key);
            pairs.push((at, other));
        }
    }
    for (one, other) in pairs {
        for (at, peer) in [(one, other), (other, one)] {
            if let Some(connection) = all.get_mut(at) {
                connection.peer = Some(peer);
            }
        }
    }
}

/// For each process, the times in which it had a TCP connection open (from the call of connect(2) on) or waited for a
/// DNS answer. The model has a second value of this type that contains only the waits for DNS answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Online(BTreeMap<ProcessIx, Spans>);

impl Online {
    /// Returns for each process the times in which one of the given TCP connections or DNS queries was open.
    /// `process` finds the process of a thread.
    pub(crate) fn new(
        connections: &[Connection],
        lookups: &[Lookup],
        process: impl Fn(ThreadIx) -> ProcessIx,
    ) -> Online {
        let connections = connections.iter().map(|connection| {
            let closed = connection.closed.unwrap_or(Ktime(u64::MAX));
            (connection.thread, connection.begun, closed)
        });
        let lookups = lookups
            .iter()
            .map(|lookup| (lookup.thread, lookup.asked, lookup.waited_until()));
        let mut all: Vec<(ProcessIx, Ktime, Ktime)> = connections
            .chain(lookups)
            .filter_map(|(thread, since, until)| Some((process(thread?), since, until)))
            .collect();
        // The times are sorted, so that each one is appended to the end of its process's spans, which is fast.
        all.sort_unstable();
        let mut online = Online::default();
        for (process, since, until) in all {
            online.0.entry(process).or_default().insert(since, until);
        }
        online
    }

    /// Whether a process had a TCP connection open, or waited for a DNS answer, at a time.
    pub fn covers(&self, process: ProcessIx, time: Ktime) -> bool {
        self.0.get(&process).is_some_and(|spans| spans.covers(time))
    }
}
