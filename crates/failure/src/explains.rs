//! Decides whether the failure of one process explains the failure of another process.
//!
//! This file excludes failures that cannot be the reason. The rules for the remaining failures depend on the program of
//! the process whose failure is to be explained. Each kind of program has a module: shells, build tools, test runners,
//! and other programs.

mod stops;
mod to_programs;
mod to_shells;
mod to_test_runners;
mod to_tools;

use tr_analyze::model::{Process, ProcessIx};
use tr_analyze::status::KILL;
use tr_programs::tools::Family;

pub(super) use self::stops::is_nap;
pub(super) use self::to_shells::OF_SHELLS;
use super::finder::{Explains, Finder};
use super::passes::{
    asks_for_packages, code, fails, family, is_killed_itself, is_question, passes, program_start,
    Passes, LONG_CHILD,
};
use super::texts::Decided;
use tr_insight::processes::exit;
use tr_insight::processes::roles::{is_probe, role};
use tr_insight::processes::timeout::timed_out;

impl Finder<'_> {
    /// The process whose failure can be explained by the failure of the given process. In most cases, this is the
    /// parent. There are two exceptions. If the parent is a worker to which another process gave a part of the work,
    /// the result is this other process. If the parent is git's server process, the result is the client process of git
    /// that started the server.
    pub(super) fn above(&self, ix: ProcessIx) -> Option<ProcessIx> {
        let parent = self.analysis.process(ix).parent?;
        if self.is_worker(parent) {
            return self.analysis.process(parent).parent;
        }
        self.client(parent).or(Some(parent))
    }

    /// The processes whose failures can explain the failure of the given process, such as its children.
    pub(super) fn below(&self, ix: ProcessIx) -> impl Iterator<Item = ProcessIx> + '_ {
        let children = self.analysis.process(ix).children.iter().copied();
        let workers = children.clone().filter(|child| self.is_worker(*child));
        let inside = workers.chain(self.server_of_git(ix));
        let inside = inside.flat_map(|worker| &self.analysis.process(worker).children);
        children.chain(inside.copied())
    }

    /// Whether the failure of a process is only a possible reason, and not a certain one, for the failure of the
    /// process above it (mostly its parent).
    pub(super) fn is_maybe(&self, ix: ProcessIx) -> bool {
        let above = self.above(ix);
        let explains = above.and_then(|above| self.explains(ix, above));
        explains == Some(Explains::Maybe)
    }

    /// Whether the failure of a descendant, such as a child, certainly explains the failure of a process.
    pub(super) fn is_explained(&self, ix: ProcessIx) -> bool {
        self.below(ix).any(|child| {
            let explains = self.explains(child, ix);
            matches!(explains, Some(Explains::One | Explains::Last))
        })
    }

    /// How the failure of the process `ix` may explain the failure of the process `above`, such as its parent. `None`
    /// if the failure of `ix` does not explain the failure of `above`.
    pub(super) fn explains(&self, ix: ProcessIx, above: ProcessIx) -> Option<Explains> {
        let child = self.analysis.process(ix);
        let parent = self.analysis.process(above);
        if self.is_unrelated(ix, above) {
            return None;
        }
        let by_script = self.by_script(ix, above);
        match by_script {
            Some(Decided::No) => return None,
            Some(Decided::Too) => return Some(Explains::One),
            Some(Decided::Yes) => return Some(Explains::Last),
            Some(Decided::Maybe) | None => {}
        }
        if self.is_worker(ix) && self.has_better_reason(ix, above) {
            return None;
        }
        if let Some(stop) = self.sure.stop(ix) {
            if self.passes_on_a_kill(ix, above) {
                return Some(Explains::Maybe);
            }
            return self.stopped(*stop, ix, above);
        }
        if self.was_killed_for_another(ix, above) || self.was_stopped_for_another(ix, above) {
            return None;
        }
        // Here `above` is not the parent of the child. Instead, `above` is the owner of a pool whose worker is the
        // parent, or the client of a git server that is the parent. The child's failure counts if `above` started no
        // process after the end of the child.
        if child.parent != Some(above) {
            let counts = self.is_last(child, above) && !is_question(child);
            return counts.then_some(Explains::Maybe);
        }
        if is_probe(child, parent) {
            return self.probe_to_a_configuration(child, above);
        }
        match passes(parent) {
            Passes::Status => {
                let explains = self.to_a_shell(ix, above);
                // The script's text shows that this child or another one made the script end.
                explains.or(by_script.map(|_| Explains::Maybe))
            }
            Passes::Any => self.to_a_build_tool(ix, above),
            Passes::Tests => self.to_a_test_runner(ix, above),
            Passes::Last => self.to_a_program(ix, above),
        }
    }

    /// Whether the failures of two processes certainly have nothing to do with each other: one of the two processes did
    /// not fail, or the process `above` failed for a reason of its own.
    fn is_unrelated(&self, ix: ProcessIx, above: ProcessIx) -> bool {
        let child = self.analysis.process(ix);
        let parent = self.analysis.process(above);
        // A child that started before the parent's last exec belongs to an earlier program of the parent. So the child
        // cannot be the reason why the parent's last program failed.
        let is_of_an_earlier_program = child.start < program_start(parent);
        if !self.fails(ix) || !fails(parent) || is_of_an_earlier_program || timed_out(parent) {
            return true;
        }
        is_killed_itself(parent) && !self.sure.out_of_memory.contains_key(&ix)
            || self.was_killed_otherwise(ix, parent)
    }

    /// Whether the end of a worker process explains nothing about the failure of its owner (the process that started
    /// the worker). This is so in three cases: the worker was stopped and another child of the owner failed by itself,
    /// the worker was stopped together with another worker, or a child of the worker failed. In the first and the last
    /// case, the other failure is a better explanation.
    fn has_better_reason(&self, worker: ProcessIx, owner: ProcessIx) -> bool {
        let process = self.analysis.process(worker);
        let signal = exit::killed_by(process.status).filter(|number| *number != KILL);
        let is_end = signal.is_some() && self.unstopped.contains(&owner);
        let is_closed = signal.is_some() && self.was_stopped_with_another(worker, owner);
        is_end || is_closed || process.children.iter().any(|ix| self.fails(*ix))
    }

    /// How the failure of a check that a configure step runs explains the failure of this configure step.
    fn probe_to_a_configuration(&self, probe: &Process, above: ProcessIx) -> Option<Explains> {
        let is_last = match family(self.analysis.process(above)) {
            Some(Family::Configure) => self.is_last_but_tidying(probe, above),
            _ => self.is_last(probe, above),
        };
        let gave_up = is_last && self.soon_ended(probe, above);
        // A configure step fails if a package that it needs is missing. After any other negative answer of a check,
        // such as a failed `git describe`, the configure step goes on.
        let is_needed = !is_question(probe) || asks_for_packages(probe);
        (gave_up && is_needed).then_some(Explains::Maybe)
    }

    /// Whether the failure of a child is the reason for the failure of its shell, according to the text of the shell's
    /// script; `None` if the script's text does not show whether this is the reason.
    pub(super) fn by_script(&self, ix: ProcessIx, shell: ProcessIx) -> Option<Decided> {
        if self.analysis.process(ix).parent != Some(shell) {
            return None;
        }
        let course = self.course(shell)?;
        let was_stopped = |child: ProcessIx| {
            self.sure.stop(child).is_some()
                || self.was_killed_for_another(child, shell)
                || self.was_stopped_for_another(child, shell)
        };
        // A shell may have stopped a child and then ended with the status of that child. The shell then failed for the
        // reason for which it stopped the child, and the text of the script does not show this reason.
        if course.reasons().any(was_stopped) {
            return None;
        }
        course.decides(ix)
    }

    /// Whether the failure of a process leads to the failure of its parent. A process that is only a possible reason
    /// for the parent's failure counts in two cases. Either the process was the last step of a shell that ended with
    /// the same status, or the parent is a make that goes on after failures and has no failed build.
    pub(super) fn leads_to(&self, ix: ProcessIx, parent: ProcessIx) -> bool {
        match self.explains(ix, parent) {
            None => false,
            Some(Explains::Maybe) => self.is_likely_step(ix, parent) || self.has_equal_jobs(parent),
            Some(Explains::One | Explains::Last) => true,
        }
    }

    /// Whether a process was the last step of a shell, and the shell ended with the exit status of this step. The step
    /// must have done more than a check for the script.
    fn is_likely_step(&self, ix: ProcessIx, above: ProcessIx) -> bool {
        let (child, shell) = (self.analysis.process(ix), self.analysis.process(above));
        let is_step = role(child).is_some() || child.wall() >= shell.wall() / LONG_CHILD;
        passes(shell) == Passes::Status
            && code(child) == code(shell)
            && self.gave_up(child, above)
            && is_step
            && !is_question(child)
            && self.reader(child, shell).is_none()
    }
}
