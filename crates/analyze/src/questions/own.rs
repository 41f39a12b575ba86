//! The processes that a recording is about.

use tr_format::meta::Scope;

use super::critical_path;
use crate::arena::Arena;
use crate::ids::ThreadIx;
use crate::model::{Analysis, ProcessIx};

/// The processes that came from COMMAND. In a recording of the whole machine the others are
/// strangers; without COMMAND there are none.
#[derive(Clone, Debug)]
pub struct Own(Arena<ProcessIx, bool>);

impl Own {
    /// The processes that the recording is about.
    pub fn of(analysis: &Analysis) -> Own {
        let all = |own| analysis.process_ids().map(|_| own).collect();
        let root = critical_path::root(analysis).ok();
        let Some(root) = root.filter(|_| analysis.meta.scope == Scope::All) else {
            return Own(all(true));
        };
        let mut own: Arena<_, _> = all(false);
        let mut open = vec![root];
        while let Some(process) = open.pop() {
            own[process] = true;
            open.extend(&analysis.process(process).children);
        }
        Own(own)
    }

    /// Whether a process came from COMMAND.
    pub fn has(&self, process: ProcessIx) -> bool {
        self.0[process]
    }

    /// Whether a thread's process did.
    pub fn has_thread(&self, analysis: &Analysis, thread: ThreadIx) -> bool {
        self.has(analysis.thread(thread).process)
    }

    /// There are strangers.
    pub fn is_part(&self) -> bool {
        self.0.iter().any(|own| !own)
    }

    /// For each process, whether it came from COMMAND.
    pub fn into_table(self) -> Arena<ProcessIx, bool> {
        self.0
    }
}
