//! Names: of what was recorded, of those who ended a wait or took a CPU.

use serde::Serialize;
use tr_analyze::model::{Analysis, Process, Thread, ThreadIx};
use tr_analyze::timeline::Actor;
use tr_format::meta::{Metadata, Scope};

use crate::{escape, label};

/// What was recorded, in one line: COMMAND, or what was asked for instead of one.
pub fn recorded(meta: &Metadata) -> String {
    match (meta.command.is_empty(), &meta.scope) {
        (false, _) => escape::command(meta.command.iter().map(Vec::as_slice)),
        (true, Scope::All) => "the whole machine".into(),
        (true, Scope::Pids(_)) => "the processes asked for".into(),
        (true, _) => "the cgroup asked for".into(),
    }
}

/// A thread and its process.
pub fn thread(analysis: &Analysis, ix: ThreadIx) -> Option<(&Thread, &Process)> {
    let thread = analysis.threads.get(ix.0 as usize)?;
    let process = analysis.processes.get(thread.process.0 as usize)?;
    Some((thread, process))
}

/// One line for people: the process's label, before it a thread's own name.
pub fn name(analysis: &Analysis, who: Actor) -> String {
    match who {
        Actor::Unknown => "?".into(),
        Actor::Interrupt => "an interrupt".into(),
        Actor::Outside(tid) => format!("tid {}, not recorded", tid.0),
        Actor::Thread(ix) => match thread(analysis, ix) {
            None => "?".into(),
            Some((thread, process)) if thread.tid.0 != process.pid.0 => format!(
                "{} · {}",
                escape::text(thread.comm.bytes()),
                label::label(process)
            ),
            Some((_, process)) => label::label(process),
        },
    }
}

/// The same in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Named {
    /// `thread`, `interrupt`, `outside` or `unknown`.
    pub kind: &'static str,
    /// Its process, when it is one of the recording.
    pub pid: Option<u32>,
    /// Its tid.
    pub tid: Option<u32>,
    /// Its process's label, when it is one of the recording.
    pub label: Option<String>,
}

/// For JSON.
pub fn named(analysis: &Analysis, who: Actor) -> Named {
    let named = |kind| Named {
        kind,
        pid: None,
        tid: None,
        label: None,
    };
    match who {
        Actor::Unknown => named("unknown"),
        Actor::Interrupt => named("interrupt"),
        Actor::Outside(tid) => Named {
            tid: Some(tid.0),
            ..named("outside")
        },
        Actor::Thread(ix) => match thread(analysis, ix) {
            None => named("unknown"),
            Some((thread, process)) => Named {
                kind: "thread",
                pid: Some(process.pid.0),
                tid: Some(thread.tid.0),
                label: Some(label::label(process)),
            },
        },
    }
}
