//! Decides how the failure of a child explains the failure of a program of unknown kind, by what the program did after
//! the child's end.

use tr_analyze::model::{Process, ProcessIx};
use tr_analyze::stopped::may_have_sent;

use crate::finder::{Explains, Finder};
use crate::passes::{asks_for_packages, code, is_question, passes_status, MOST_EXAMINED};

impl Finder<'_> {
    pub(super) fn to_a_program(&self, ix: ProcessIx, above: ProcessIx) -> Option<Explains> {
        let (child, program) = (self.analysis.process(ix), self.analysis.process(above));
        if self.is_failed_tidying(child, above) {
            return None;
        }
        if !self.gave_up(child, above) && !self.gave_up_before_tidying(child, above) {
            return self.may_count(ix, above).then_some(Explains::Maybe);
        }
        if self.is_tolerated_again(child, above)
            || self.is_wanted(child, above)
            || has_panicked_in_go(program)
            || self.is_accepted_answer(child, above)
            || self.was_stopped_before_going_on(ix, above)
        {
            return None;
        }
        let is_same = code(child) == code(program);
        let is_distinct = is_same && code(child) != Some(1);
        let is_killed = self.was_killed_by_others(ix, above);
        let is_certain = is_distinct || is_killed || is_same && passes_status(program);
        Some(if is_certain {
            Explains::Last
        } else {
            Explains::Maybe
        })
    }

    /// Whether a child only made a check for a program, and the program accepts the negative answer of this check.
    ///
    /// A program accepts the answer if it makes the check only once and the check does not look for a package. A
    /// program that makes the same check again and again waits for a positive answer. If the child is a shell that only
    /// makes a check, the answer is also accepted if the program ended with another status than this shell.
    fn is_accepted_answer(&self, child: &Process, above: ProcessIx) -> bool {
        let is_single = || !asks_for_packages(child) && !self.is_asked_again(child, above);
        is_question(child) && is_single()
            || self.asks_only(child) && code(child) != code(self.analysis.process(above))
    }

    /// Whether a program may have stopped a child on purpose and went on afterwards, so that the end of the child is no
    /// failure.
    fn was_stopped_before_going_on(&self, ix: ProcessIx, above: ProcessIx) -> bool {
        let child = self.analysis.process(ix);
        self.sure.on_purpose(ix, child)
            && may_have_sent(self.analysis, ix, above)
            && self.waited_after(child, above)
    }

    /// Whether a parent had already run the same command line before it started the given child. A program repeats a
    /// command line if it waits for a state to change.
    fn is_asked_again(&self, child: &Process, above: ProcessIx) -> bool {
        let mut before = self.before_start(child, above).rev().take(MOST_EXAMINED);
        before.any(|other| other.argv == child.argv)
    }
}

/// Whether a process is a test program of Go that panicked. The reason for the failure of such a process is its own
/// panic, and not the status of a child. A Go test program exits with 2 after a panic, and with 1 after a failed test.
fn has_panicked_in_go(process: &Process) -> bool {
    let mut args = process.argv.args();
    code(process) == Some(2) && args.any(|arg| arg.starts_with(b"-test."))
}
