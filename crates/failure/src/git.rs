//! Connects the processes of a git push to a repository on the same machine, so that a hook that failed explains why
//! the push failed. If a hook refuses the push, git's server process still ends successfully, and only the client
//! process fails.

use tr_analyze::model::{Process, ProcessIx};

use super::finder::Finder;
use super::passes::fails;
use tr_insight::processes::label;

/// Two limits that bound the search: at most `MOST_BETWEEN` processes lie between git's client and its server, and from
/// the client downward, at most `MOST_CHILDREN` processes of each generation are examined.
const MOST_BETWEEN: usize = 2;
const MOST_CHILDREN: usize = 16;

impl Finder<'_> {
    /// The client process of git that started this server process and failed although the server succeeded.
    pub(super) fn client(&self, server: ProcessIx) -> Option<ProcessIx> {
        if !is_server(self.analysis.process(server)) {
            return None;
        }
        let mut above = self.analysis.ancestors(server).take(MOST_BETWEEN + 1);
        above.find(|ix| is_client(self.analysis.process(*ix)))
    }

    /// The server process of git that the given client process started and that succeeded.
    pub(super) fn server_of_git(&self, client: ProcessIx) -> Option<ProcessIx> {
        let process = self.analysis.process(client);
        if !is_client(process) {
            return None;
        }
        let mut level: Vec<ProcessIx> = process
            .children
            .iter()
            .take(MOST_CHILDREN)
            .copied()
            .collect();
        for _ in 0..=MOST_BETWEEN {
            let server = level
                .iter()
                .find(|ix| is_server(self.analysis.process(**ix)));
            if server.is_some() {
                return server.copied();
            }
            let below = level
                .iter()
                .flat_map(|ix| &self.analysis.process(*ix).children);
            level = below.take(MOST_CHILDREN).copied().collect();
        }
        None
    }
}

fn is_client(process: &Process) -> bool {
    fails(process) && label::program(process).is_push()
}

fn is_server(process: &Process) -> bool {
    process.status == Some(0) && label::program(process).takes_pushes(&process.argv)
}
