//! Collects the processes of servers, such as the daemons of build tools, and the processes
//! whose requests the servers have answered.

use std::collections::HashMap;

use tr_format::container::Server;
use tr_format::event::{Tgid, Tid};

use crate::ids::ProcIx;

const MOST_SERVERS: usize = 1 << 16;

#[derive(Clone, Debug)]
pub(crate) struct FoundServer {
    /// The process of the server; `None` if the recorder took no snapshot of it. The life of the process in the
    /// model begins with this snapshot.
    pub process: Option<ProcIx>,
    /// The task of the server that sent the server's first answer.
    pub tid: Tid,
    /// The pid of the process that got the server's first answer.
    pub client: Tgid,
    /// The pid of the first unrecorded process that got an answer from the server, if there is one.
    pub other: Option<Tgid>,
}

#[derive(Debug, Default)]
pub(crate) struct Servers {
    /// The servers that have answered recorded processes, in the order of their first answers.
    pub list: Vec<FoundServer>,
    /// For each process id, the index in `list` of the last server that had this process id.
    last: HashMap<Tgid, usize>,
}

impl Servers {
    /// Notes that a server was found because it answered a recorded process or, if the event's `client` is 0, that a
    /// known server has answered an unrecorded process.
    pub fn take(&mut self, server: &Server) {
        if server.client.0 == 0 {
            let known = self.last.get(&server.tgid);
            if let Some(found) = known.and_then(|at| self.list.get_mut(*at)) {
                found.other.get_or_insert(server.other);
            }
        } else if self.list.len() < MOST_SERVERS {
            self.last.insert(server.tgid, self.list.len());
            self.list.push(FoundServer {
                process: None,
                tid: server.tid,
                client: server.client,
                other: None,
            });
        }
    }

    /// Notes that the recorder's snapshot of `process`, which already existed, has come. If `pid` is the pid of a
    /// server, the process is stored with this server.
    pub fn begin(&mut self, pid: Tgid, process: ProcIx) {
        let known = self.last.get(&pid);
        if let Some(found) = known.and_then(|at| self.list.get_mut(*at)) {
            found.process.get_or_insert(process);
        }
    }
}
