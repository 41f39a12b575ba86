//! Servers: which processes they are, and whom they have answered.

use std::collections::HashMap;

use tr_format::container::Server;
use tr_format::event::{Tgid, Tid};

use crate::ids::ProcIx;

const MOST: usize = 1 << 16;

#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Of its first snapshot; `None`: that is not there.
    pub process: Option<ProcIx>,
    /// The task that answered first.
    pub tid: Tid,
    /// The process that it answered first.
    pub client: Tgid,
    /// The first process that is not recorded and that it answered, if it did.
    pub other: Option<Tgid>,
}

#[derive(Debug, Default)]
pub(crate) struct Servers {
    /// In order of time.
    pub list: Vec<Found>,
    /// The last one of each process id.
    last: HashMap<Tgid, usize>,
}

impl Servers {
    /// A server has answered a process.
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

    /// The snapshot of a process.
    pub fn begin(&mut self, pid: Tgid, process: ProcIx) {
        let known = self.last.get(&pid);
        if let Some(found) = known.and_then(|at| self.list.get_mut(*at)) {
            found.process.get_or_insert(process);
        }
    }
}
