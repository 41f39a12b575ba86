//! Collects the processes of servers, and the processes that they have answered.

use std::collections::HashMap;

use tr_format::container::Server;
use tr_format::event::{Tgid, Tid};

use crate::ids::ProcIx;

const MOST: usize = 1 << 16;

#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The process that the server's first snapshot began; `None` if there was no snapshot.
    pub process: Option<ProcIx>,
    /// The task of the server that answered first.
    pub tid: Tid,
    /// The process that the server answered first.
    pub client: Tgid,
    /// The first unrecorded process that the server answered, if there is one.
    pub other: Option<Tgid>,
}

#[derive(Debug, Default)]
pub(crate) struct Servers {
    /// The servers that have answered recorded processes, in the order of time.
    pub list: Vec<Found>,
    /// The index in `list` of the last server that had each process id.
    last: HashMap<Tgid, usize>,
}

impl Servers {
    /// Notes that a server has answered a process.
    pub fn take(&mut self, server: &Server) {
        if server.client.0 == 0 {
            let known = self.last.get(&server.tgid);
            if let Some(found) = known.and_then(|at| self.list.get_mut(*at)) {
                found.other.get_or_insert(server.other);
            }
        } else if self.list.len() < MOST {
            self.last.insert(server.tgid, self.list.len());
            self.list.push(Found {
                process: None,
                tid: server.tid,
                client: server.client,
                other: None,
            });
        }
    }

    /// Notes that the snapshot of a process has come, which may be the process of a server.
    pub fn begin(&mut self, pid: Tgid, process: ProcIx) {
        let known = self.last.get(&pid);
        if let Some(found) = known.and_then(|at| self.list.get_mut(*at)) {
            found.process.get_or_insert(process);
        }
    }
}
