//! Decides how the failure of a shell's child explains the failure of the shell, by the exit statuses and by what the
//! shell did after the child's end. These rules are used if the text of the script is not known or does not decide.

use tr_analyze::model::{Process, ProcessIx};
use tr_programs::outline::Options;
use tr_programs::words;

use crate::afterwards::until_the_end;
use crate::finder::{Explains, Finder};
use crate::passes::{code, is_question, is_unstarted, passes, Passes, AT_ONCE, LONG_CHILD};
use crate::scripts;
use tr_insight::processes::roles::runs_jobs;

/// The exit statuses that a shell can have by itself: after a builtin or an expansion that failed (2 in dash), and
/// after a program that could not be started.
pub(crate) const OF_SHELLS: [u32; 4] = [1, 2, 126, 127];

impl Finder<'_> {
    pub(super) fn to_a_shell(&self, ix: ProcessIx, above: ProcessIx) -> Option<Explains> {
        let (child, shell) = (self.analysis.process(ix), self.analysis.process(above));
        let (last, gave_up) = (self.is_last(child, above), self.gave_up(child, above));
        let is_same = code(child) == code(shell);
        // The shell failed because it could not start a program, so the child is not the reason.
        if is_unstarted(shell) && !is_same {
            return None;
        }
        let is_distinct = is_same && code(child).is_some_and(|code| !OF_SHELLS.contains(&code));
        if self.is_tidying_after_a_failure(child, above) {
            return gave_up.then_some(Explains::Maybe);
        }
        // The shell may still have cleaned up and printed reports after the failed child, because a trap can run such
        // programs.
        if is_distinct && (gave_up || self.is_last_but_reports(child, above)) {
            return Some(Explains::Last);
        }
        if gave_up && is_same {
            return self.with_a_common_status(ix, above);
        }
        let is_piped = || !is_question(child) || self.has_run_beside_the_last(ix, above);
        if is_same && self.gave_up_in_a_pipe(child, above) && is_piped() {
            let explains = self.with_a_common_status(ix, above);
            return explains.map(|_| Explains::Maybe);
        }
        // A program in the shell's trap may have failed while it cleaned up. The shell then has the exit status of this
        // program.
        if self.is_end_before_tidying(child, above) {
            return Some(Explains::Maybe);
        }
        // Two kinds of scripts remain: `make || exit 1`, and scripts that count failures and go on. In both, a short
        // child that ended long before the script may have been only a check.
        if is_question(child) || self.asks_only(child) {
            return None;
        }
        let at_once = until_the_end(child, shell) <= AT_ONCE && (last || is_same);
        let is_long = child.wall() >= shell.wall() / LONG_CHILD;
        let is_job = self.alike.contains(&above) || is_long;
        let counts = at_once
            || runs_jobs(child)
            || is_job && !self.was_tolerated(child, above)
            || self.may_have_been_kept(child, above);
        // A child that an ancestor killed on purpose counts only if the shell ended with the same status. A child that
        // any other process killed counts, because that process may have enforced a time limit.
        let on_purpose = self.sure.on_purpose(ix, child) && !self.sure.by_a_neighbour(ix);
        (counts && (is_same || !on_purpose)).then_some(Explains::Maybe)
    }

    /// How the failure of a shell's last child, or of a member of its last pipe, explains the shell's failure, if the
    /// shell ended with an ordinary status, such as 1. A shell can have such a status without a failed child. So the
    /// explanation may be uncertain: the script may ignore the child's failure (`|| true`) and then fail by a builtin,
    /// and without `pipefail` only the last command of a pipe decides the status.
    fn with_a_common_status(&self, ix: ProcessIx, above: ProcessIx) -> Option<Explains> {
        let (child, shell) = (self.analysis.process(ix), self.analysis.process(above));
        let sets_pipefail = |word: &[u8]| words::contains(word, b"pipefail");
        let Some(reader) = self.reader(child, shell) else {
            return Some(if scripts::runs_programs_alone(shell) {
                Explains::Last
            } else {
                Explains::Maybe
            });
        };
        if shell.argv.args().any(sets_pipefail) && scripts::runs_programs_alone(shell) {
            return Some(Explains::Last);
        }
        // A plain sh (not bash) is assumed to have no `pipefail`, so only the last program of a pipe decides the
        // status. The success of this program, which read the child's output, hides the child's failure.
        let args: Vec<&[u8]> = shell.argv.args().collect();
        let is_plain = Options::of(&args).is_some_and(|options| !options.is_bash);
        let hides = is_plain && self.reads(reader, ix);
        (!hides).then_some(Explains::Maybe)
    }

    /// Whether a process is the last child of its shell, ran beside this child, or wrote data that this child read.
    fn has_run_beside_the_last(&self, ix: ProcessIx, shell: ProcessIx) -> bool {
        let Some(last) = self.analysis.process(shell).children.last() else {
            return false;
        };
        self.analysis.process(*last).start < self.analysis.process(ix).end || self.reads(*last, ix)
    }

    /// Whether a process is a shell whose only child is a check: `sh -c 'if grep -q x f; then exit 1; fi'`.
    pub(super) fn asks_only(&self, child: &Process) -> bool {
        let mut inside = child.children.iter().map(|ix| self.analysis.process(*ix));
        let first = inside.next();
        passes(child) == Passes::Status && first.is_some_and(is_question) && inside.next().is_none()
    }
}
