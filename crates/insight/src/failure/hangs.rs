//! Finds the program that a stopped process was waiting for: this program hung until a time limit was exceeded.

use tr_analyze::model::{Process, ProcessIx};

use super::finder::Finder;
use super::passes::{passes, passes_status, program, Passes, DEEP};
use crate::timeout::timed_out;
use crate::{exit, label};
use tr_text::phrase::Phrase;

/// The largest width in columns, for people, of the name of the program that a stopped process was waiting for.
const AWAITED: usize = 40;

impl Finder<'_> {
    /// The label of the innermost program that a process was waiting for when it was stopped. `None` if the process is
    /// no shell, no wrapper and no `timeout`, or if it only waited for the program that its own command line names.
    pub(super) fn awaited(&self, stopped: ProcessIx) -> Option<Phrase> {
        let mut at = stopped;
        let mut is_named = false;
        for _ in 0..DEEP {
            let Some(next) = self.awaited_child(at) else {
                break;
            };
            // The awaited program is reported only if a shell started it. Other programs that wait for a child already
            // have it on their own command line, such as `timeout 9 cat x`.
            is_named |= passes(self.analysis.process(at)) == Passes::Status;
            at = next;
        }
        let is_other = at != stopped && is_named;
        is_other.then(|| label::shortened(self.analysis.process(at), AWAITED))
    }

    /// The child that a process was waiting for when it was stopped: the last child that it started, if the same signal
    /// killed the child or the child outlived the process.
    fn awaited_child(&self, ix: ProcessIx) -> Option<ProcessIx> {
        let process = self.analysis.process(ix);
        let waits = passes(process) == Passes::Status || passes_status(process);
        if !waits && !timed_out(process) {
            return None;
        }
        let last = *process.children.last()?;
        let child = self.analysis.process(last);
        let is_own = child.start >= program(process) && !self.sure.was_ended(last);
        (is_own && ended_together(process, child)).then_some(last)
    }
}

/// Whether a process was stopped before the child that it waited for ended by itself.
fn ended_together(process: &Process, child: &Process) -> bool {
    let signal = exit::killed_by(child.status);
    let is_same = signal.is_some() && signal == exit::killed_by(process.status);
    is_same || child.end > process.end || signal.is_some() && timed_out(process)
}
