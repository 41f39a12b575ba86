//! Servers in the model: processes of this machine that answered recorded processes. A server is recorded from its
//! first answer on, and from then on wakings link its work to its clients, like any other work. The wait of the
//! client that got the first answer is split in two where the recording of the server begins.

use tr_format::event::{Tgid, Tid};

use crate::collect::servers::FoundServer;
use crate::containers::{first_waiter, ByPid};
use crate::model::{Analysis, ProcessIx};
use crate::timeline::Actor;

#[derive(Clone, Copy, Debug)]
pub struct Server {
    pub process: ProcessIx,
    /// The process that got the server's first answer.
    pub client: Option<ProcessIx>,
    /// The pid of an unrecorded process that the server has answered; `None` if none is known.
    pub other: Option<Tgid>,
    /// The task of the server that sent the server's first answer.
    tid: Tid,
}

/// Adds the found servers to `Analysis::others`. A server without a parent becomes a child of the process that it
/// answered first. The function has to be called before times are added up over the tree of processes, because it
/// changes the tree.
pub(crate) fn place(
    analysis: &mut Analysis,
    found: impl ExactSizeIterator<Item = (FoundServer, Option<ProcessIx>)>,
) {
    if found.len() == 0 {
        return;
    }
    let by_pid = ByPid::new(analysis);
    for (found, process) in found {
        let Some(process) = process else { continue };
        let client = by_pid.client(analysis, found.client, process);
        if analysis.process(process).role.shared {
            continue; // only in a damaged trace
        }
        let is_new = analysis.process(process).parent.is_none();
        let adopted = analysis.process_mut(process);
        adopted.role.shared = true;
        if is_new {
            adopted.parent = client;
        }
        analysis.others.servers.push(Server {
            process,
            client,
            other: found.other,
            tid: found.tid,
        });
    }
}

/// For each server, splits the wait of its first client in two at the moment at which the recording of the server
/// begins. The function has to be called after times are added up over the tree of processes.
pub(crate) fn link(analysis: &mut Analysis) {
    let Some(mut timeline) = analysis.timeline.take() else {
        return;
    };
    for server in analysis.others.servers.clone() {
        let Some(client) = server.client else {
            continue;
        };
        let begin = analysis.process(server.process).start;
        let Some((waiter, _)) = first_waiter(analysis, &timeline, client, begin) else {
            continue;
        };
        timeline.divide(waiter, begin, Actor::Outside(server.tid));
        for ix in analysis.process(server.process).threads.clone() {
            if let Some(thread) = analysis.threads.get_mut(ix.0 as usize) {
                if thread.started_before {
                    thread.parent = Some(waiter);
                }
            }
        }
    }
    analysis.timeline = Some(timeline);
}
