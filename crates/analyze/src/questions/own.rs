//! Determines the processes that a recording is about: the process of COMMAND and its descendants.

use tr_format::meta::Scope;

use super::critical_path;
use crate::arena::Arena;
use crate::ids::ThreadIx;
use crate::model::{Analysis, ProcessIx};

/// The processes that a recording is about: the process of COMMAND and its descendants. In a recording of the whole
/// machine, all other processes are strangers. In a recording without COMMAND, no process is a stranger.
#[derive(Clone, Debug)]
pub struct Own(Arena<ProcessIx, bool>);

impl Own {
    /// The processes that the recording is about. In a recording of the whole machine with a COMMAND, they are the
    /// process of COMMAND and its descendants; in any other recording, all processes.
    pub fn of(analysis: &Analysis) -> Own {
        let root = critical_path::root(analysis).ok();
        match root.filter(|_| analysis.meta.scope == Scope::All) {
            Some(root) => Own::below(analysis, root),
            None => Own(analysis.process_ids().map(|_| true).collect()),
        }
    }

    /// A set of processes that consists of the process `root` and its descendants.
    pub(super) fn below(analysis: &Analysis, root: ProcessIx) -> Own {
        let mut own: Arena<_, _> = analysis.process_ids().map(|_| false).collect();
        for process in analysis.below(root) {
            own[process] = true;
        }
        Own(own)
    }

    /// Whether a process is one of the processes that the recording is about.
    pub fn has(&self, process: ProcessIx) -> bool {
        self.0[process]
    }

    /// Whether the process of a thread is one of the processes that the recording is about.
    pub fn has_thread(&self, analysis: &Analysis, thread: ThreadIx) -> bool {
        self.has(analysis.thread(thread).process)
    }

    /// Whether the recording has processes outside of this set, which are processes that are no descendants of COMMAND.
    pub fn is_part(&self) -> bool {
        self.0.iter().any(|own| !own)
    }

    /// Converts the set into a table, which has for each process whether the set contains the process.
    pub fn into_table(self) -> Arena<ProcessIx, bool> {
        self.0
    }
}
