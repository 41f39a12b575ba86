//! The facts about the failures of a recording that reports print.

use std::collections::BTreeSet;

use tr_analyze::model::ProcessIx;
use tr_format::event::Ktime;

use super::ends::{FailureEnd, PERHAPS};
use super::texts::{ScriptLine, Statement};
use tr_insight::steps::{Step, StepIx, Steps};
use tr_insight::verdicts::StepVerdict;
use tr_text::phrase::Phrase;
use tr_text::units;

/// The largest width in columns of a script's statement in a report of a failure for people.
const STATEMENT: usize = 60;

/// The process or the step that failed. A process is shown by its label, and a step by its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailedTask {
    /// The recorded COMMAND itself, which failed because of another failure.
    Command(Phrase),
    Process(Phrase),
    /// A failed process that is not a descendant of COMMAND.
    ProcessOfOthers(Phrase),
    Step(Phrase),
}

impl Default for FailedTask {
    fn default() -> FailedTask {
        FailedTask::Step(Phrase::default())
    }
}

/// A cause that delayed a failed process or step while it ran, such as other tasks on the CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The name of the step that the cause delayed, if this step is not the failed step itself.
    pub step: Option<Phrase>,
    pub verdict: StepVerdict,
}

impl Held {
    /// The words for the cause of the delay, preceded by the name of the delayed step if this is not the failed step
    /// itself.
    fn text(&self) -> Phrase {
        let verdict = self.verdict.text();
        match &self.step {
            Some(step) => Phrase::with([step], |[step]| format!("{step}: {verdict}")),
            None => verdict.into(),
        }
    }
}

/// A process or a step that failed.
#[derive(Clone, Debug, Default)]
pub struct Failure {
    pub task: FailedTask,
    pub end: FailureEnd,
    /// The time in nanoseconds for which the failed process or step ran before the failure. For a process that
    /// executed several programs, the time counts from the start of the last one.
    pub after: u64,
    pub pid: Option<u32>,
    pub process: Option<ProcessIx>,
    /// The processes that failed because of this failure, from the nearest one up to COMMAND. They are mostly
    /// ancestors of the failed process.
    pub above: Vec<Failure>,
    /// Whether, in a list of consequences (`above`), the previous failure is only a possible reason for this one. For
    /// the first entry, the previous failure is the one that has the list.
    pub perhaps: bool,
    /// Whether this entry is COMMAND at the end of a list of consequences (`above`), although COMMAND's exit status
    /// shows no failure.
    pub is_hidden: bool,
    /// Whether the signal that killed the failed process also killed a child of this process.
    pub with_descendants: bool,
    /// The time in the recording at which the process or step failed.
    pub(super) at: Ktime,
    /// The step of the recording that failed; `None` if the failure is that of a process and not of a step.
    pub step: Option<StepIx>,
    /// The cause that delayed the failed process or step while it ran, with the evidence.
    pub held: Option<Held>,
    /// Whether a time limit certainly or perhaps ended the failed process or step, so that a delay can be the reason.
    pub was_late: bool,
    /// The place in a shell script of the command for which the shell started the failed process.
    pub place: Option<ScriptLine>,
    /// The statement at which the failed script ended, if the script did not fail because of a program that it ran.
    pub statement: Option<Statement>,
}

impl Failure {
    /// The word that is printed before this failure's name in a list of consequences: "perhaps" if it is not certain
    /// that the previous failure in the list caused this one, otherwise nothing.
    pub fn lead(&self) -> &'static str {
        if self.perhaps {
            PERHAPS
        } else {
            ""
        }
    }

    /// The name of the process or step that failed.
    pub fn name(&self) -> Phrase {
        match &self.task {
            FailedTask::Command(name) | FailedTask::Process(name) | FailedTask::Step(name) => {
                name.clone()
            }
            FailedTask::ProcessOfOthers(name) => {
                Phrase::with([name], |[name]| format!("{name} (not COMMAND's)"))
            }
        }
    }

    /// How the process or step ended, in words such as `exit 1` or `killed: out of memory`.
    pub fn ended(&self) -> Phrase {
        let descendants = if self.with_descendants {
            " with those below it"
        } else {
            ""
        };
        let hidden = if self.is_hidden { " all the same" } else { "" };
        Phrase::with([&self.end.text()], |[end]| {
            format!("{end}{descendants}{hidden}")
        })
    }

    /// The cause that delayed the failed process or step. The cause is given only if a time limit was exceeded, because
    /// only then can the delay be the reason for the failure.
    pub fn held_by(&self) -> Option<Phrase> {
        self.held_whenever().filter(|_| self.was_late)
    }

    /// Like [`Failure::held_by`], but the cause is also given if no time limit was exceeded.
    pub fn held_whenever(&self) -> Option<Phrase> {
        self.held.as_ref().map(Held::text)
    }

    /// The place of the failure in a shell script: `build.sh:42`, or with the statement by which the script itself
    /// failed, `build.sh:12: [ -s out ]`. `None` for the first line of a script on a command line (`sh -c`), where the
    /// place says nothing.
    pub fn at(&self) -> Option<Phrase> {
        if let Some(Statement { place, text }) = &self.statement {
            let text = Phrase::name(text, STATEMENT);
            return Some(Phrase::with([&text], |[text]| format!("{place}: {text}")));
        }
        let place = self.place.as_ref();
        let place = place.filter(|place| place.script.is_some() || place.line > 1);
        place.map(|place| place.to_string().into())
    }

    /// The sentence that says how the failed process or step ended, and when. A failed test whose place in time is not
    /// known is described without a time.
    pub fn fact(&self) -> Phrase {
        if self.after == 0 {
            return self.ended();
        }
        let after = units::time(self.after);
        Phrase::with([&self.ended()], |[ended]| format!("{ended} after {after}"))
    }
}

#[derive(Clone, Debug, Default)]
pub struct Failures {
    /// The failures that matter, in the order of the report: first the processes that a signal killed, then those that
    /// were stopped after a time-out, then other failures, then failed tests whose runners succeeded, and last the
    /// processes that a signal killed perhaps on purpose. Each group is in the order of time.
    pub reported: Vec<Failure>,
    /// The index in the list `reported` of the failure that explains COMMAND's failure; `None` if COMMAND did not
    /// fail, or if nothing explains its failure.
    pub command: Option<usize>,
    /// The number of COMMAND's processes that failed without consequences, for example checks in a script that
    /// succeeded.
    pub tolerated: usize,
    /// The number of COMMAND's processes that failed and for which the recording does not show whether the failure had
    /// consequences.
    pub unclear: usize,
    /// Failed processes whose consequences are not known, in the order of time. If there are too many, the list has
    /// only the ones that ran longest. All of them are children of one process in the reported chain. To find this
    /// process, the chain is followed from COMMAND down as long as each next failure certainly explains the failure
    /// above it. If the process that is found is a configure script, the list is empty, because the children of a
    /// configure script are probes.
    pub beside: Vec<Failure>,
    /// The processes that failed without known consequences, including those that are not descendants of COMMAND.
    pub calm: BTreeSet<ProcessIx>,
    /// The processes that failed for certain because of another failure. Pictures mark only the first failure, and not
    /// these consequences.
    pub led: BTreeSet<ProcessIx>,
    /// The failed processes that are steps and that failed because a step inside of them failed, such as a test runner
    /// with a failed test.
    pub(super) outer: BTreeSet<ProcessIx>,
}

impl Failures {
    /// Whether a step failed in a way that matters. A failed process without consequences, such as a check in a build
    /// script, does not matter. A step that failed because a step inside of it failed does not matter either. A test
    /// that its runner reports as failed always matters, whatever the exit status of its process.
    pub fn counts(&self, step: &Step) -> bool {
        let is_aside = |ix| self.calm.contains(&ix) || self.outer.contains(&ix);
        step.failed() && (step.result.is_some() || !step.process.is_some_and(is_aside))
    }

    /// The failed processes that are steps and that failed because a step inside of them failed, such as a test runner
    /// with a failed test.
    pub(super) fn outer_steps(&self, steps: &Steps) -> BTreeSet<ProcessIx> {
        let has_inner = steps.with_any_inside(|_, step| self.counts(step));
        let failed = || {
            let steps = steps.list().iter().zip(&has_inner);
            steps.filter(|(step, _)| self.counts(step) && step.result.is_none())
        };
        let of = |(step, _): (&Step, &bool)| step.process;
        let outer: BTreeSet<ProcessIx> = failed().filter(|(_, has)| **has).filter_map(of).collect();
        let inner: BTreeSet<ProcessIx> =
            failed().filter(|(_, has)| !**has).filter_map(of).collect();
        outer.difference(&inner).copied().collect()
    }
}
