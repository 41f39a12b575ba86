//! Finds the program that a stopped process was waiting for: this program hung until a time limit was exceeded.

use tr_analyze::model::{Process, ProcessIx};

use super::finder::Finder;
use super::passes::{passes, passes_status, program_start, Passes, LONGEST_CHAIN};
use tr_insight::processes::timeout::timed_out;
use tr_insight::processes::{exit, label};
use tr_text::phrase::Phrase;

/// The largest width in columns, for people, of the name of the program that a stopped process was waiting for.
const AWAITED_WIDTH: usize = 40;

impl Finder<'_> {
    /// The label of the innermost program for which a process was waiting when the process was stopped. `None` if the
    /// process is no shell, no wrapper and no `timeout`, or if the process only waited for the program that its own
    /// command line names.
    pub(super) fn awaited(&self, stopped: ProcessIx) -> Option<Phrase> {
        let mut at = stopped;
        let mut is_named = false;
        for _ in 0..LONGEST_CHAIN {
            let Some(next) = self.awaited_child(at) else {
                break;
            };
            // The awaited program is reported only if one of the waiting processes is a shell. Other waiting programs,
            // such as `timeout 9 cat x`, already name the awaited program on their own command line.
            is_named |= passes(self.analysis.process(at)) == Passes::Status;
            at = next;
        }
        let is_other = at != stopped && is_named;
        is_other.then(|| label::shortened(self.analysis.process(at), AWAITED_WIDTH))
    }

    /// The child for which a process was waiting when the process was stopped. This is the last child that the process
    /// started, if the same signal killed this child too, if this child outlived the process, or if the process is a
    /// `timeout` that killed this child.
    fn awaited_child(&self, ix: ProcessIx) -> Option<ProcessIx> {
        let process = self.analysis.process(ix);
        let waits = passes(process) == Passes::Status || passes_status(process);
        if !waits && !timed_out(process) {
            return None;
        }
        let last = *process.children.last()?;
        let child = self.analysis.process(last);
        let is_own = child.start >= program_start(process) && !self.sure.was_ended(last);
        (is_own && ended_together(process, child)).then_some(last)
    }
}

/// Whether a process and the child that the process waited for ended together: the same signal killed both, the child
/// outlived the process, or the process is a `timeout` that killed the child.
fn ended_together(process: &Process, child: &Process) -> bool {
    let signal = exit::killed_by(child.status);
    let is_same = signal.is_some() && signal == exit::killed_by(process.status);
    is_same || child.end > process.end || signal.is_some() && timed_out(process)
}
