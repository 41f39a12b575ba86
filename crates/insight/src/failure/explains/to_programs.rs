//! Decides how the failure of a child explains the failure of a program of unknown kind, by what the program did after
//! the child's end.

use tr_analyze::model::{Process, ProcessIx};
use tr_analyze::stopped::may_have_sent;

use crate::failure::finder::{Explains, Finder};
use crate::failure::passes::{asks_for_packages, code, is_question, passes_status, NEAR};

impl Finder<'_> {
    /// How the failure of a child explains the failure of a program of unknown kind.
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

    /// Whether a child only made a check, and the program accepts its negative answer.
    ///
    /// A program that makes the same check again and again waits for a positive answer. A program that makes the check
    /// only once also accepts a negative answer. If the child is a shell command that only makes a check, it is no
    /// reason if the program ended with another status.
    fn is_accepted_answer(&self, child: &Process, above: ProcessIx) -> bool {
        let is_single = || !asks_for_packages(child) && !self.is_asked_again(child, above);
        is_question(child) && is_single()
            || self.asks_only(child) && code(child) != code(self.analysis.process(above))
    }

    /// Whether a program may have stopped a child itself and went on afterwards, so that the end of the child is no
    /// failure.
    fn was_stopped_before_going_on(&self, ix: ProcessIx, above: ProcessIx) -> bool {
        let child = self.analysis.process(ix);
        self.sure.on_purpose(ix, child)
            && may_have_sent(self.analysis, ix, above)
            && self.waited_after(child, above)
    }

    /// Whether a parent had run the command line of a child before. A program does this if it waits for a state to
    /// change.
    fn is_asked_again(&self, child: &Process, above: ProcessIx) -> bool {
        let mut before = self.before_start(child, above).rev().take(NEAR);
        before.any(|other| other.argv == child.argv)
    }
}

/// Whether a process is a test program of Go that panicked: then an error of its own is the reason for its failure, and
/// not the status of a child. Such a program ends with status 2; after a failed test the
/// status is 1.
fn has_panicked_in_go(process: &Process) -> bool {
    let mut args = process.argv.args();
    code(process) == Some(2) && args.any(|arg| arg.starts_with(b"-test."))
}
