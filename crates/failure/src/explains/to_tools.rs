//! Decides how the failure of a child explains the failure of a build tool, which fails if any of its jobs fails.

use tr_analyze::model::ProcessIx;
use tr_programs::tools::{Children, Family};

use crate::finder::{Explains, Finder};
use crate::passes::{
    children, code, family, goes_on, ignores_failures, is_named_job, is_question, is_unstarted,
};

impl Finder<'_> {
    pub(super) fn to_a_build_tool(&self, ix: ProcessIx, above: ProcessIx) -> Option<Explains> {
        let (child, tool) = (self.analysis.process(ix), self.analysis.process(above));
        let (last, gave_up) = (self.is_last(child, above), self.gave_up(child, above));
        // A forked child without an exec runs the code of the tool itself, so it is no job of the tool.
        if child.execs.is_empty() && !gave_up && !is_unstarted(child) {
            return None;
        }
        if !self.is_required_job(ix, above) {
            return gave_up.then_some(Explains::Maybe);
        }
        if family(tool) == Some(Family::Make) {
            return self.explains_make(ix, above);
        }
        // The tool can also fail by a step inside its own process, after the tool ignored the failure of a child.
        if children(tool) == Children::FailOrOwn && !self.is_build(child) {
            let counts = last || self.may_have_been_kept(child, above);
            return counts.then_some(Explains::Maybe);
        }
        // npm continues after the failure of an optional step.
        let may_be_optional = children(tool) == Children::FailUnlessOptional;
        if last && (!may_be_optional || self.gave_up_after_others(child, above)) {
            return Some(Explains::Last);
        }
        // If a script fails, npm may continue with other packages and then exit with the status of the failed script.
        let is_passed_on = may_be_optional && code(child) != Some(1) && code(child) == code(tool);
        // The failure is one of the reasons if the tool goes on after any failure, or passed on the child's status.
        // Otherwise the failure perhaps did not count, because the tool went on although it normally ends after a
        // failure.
        Some(if goes_on(self.analysis, above) || is_passed_on {
            Explains::One
        } else {
            Explains::Maybe
        })
    }

    /// Whether a child of a build tool is a job whose failure makes the tool fail. Other children are no such jobs: the
    /// tool reads only their output, ignores their failures, or runs them for its own use.
    fn is_required_job(&self, ix: ProcessIx, above: ProcessIx) -> bool {
        let (child, tool) = (self.analysis.process(ix), self.analysis.process(above));
        let is_check = is_question(child) && family(tool) != Some(Family::Make);
        let is_for_own_use =
            || children(tool) == Children::FailIfNamed && !is_named_job(child, tool);
        !(is_check
            || self.is_text(ix, above)
            || ignores_failures(self.analysis, above)
            || is_for_own_use())
    }

    /// Whether a make read the output of a process from a pipe, as for `$(shell …)`. The make then ignores the exit
    /// status of the process.
    fn is_text(&self, ix: ProcessIx, above: ProcessIx) -> bool {
        family(self.analysis.process(above)) == Some(Family::Make) && self.reads(above, ix)
    }
}
