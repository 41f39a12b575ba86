//! Describes a failed process or step: its name, its end, and its place in a script.

use super::ends::FailureEnd;
use super::facts::{FailedTask, Failure};
use super::finder::Finder;
use tr_analyze::model::ProcessIx;
use tr_insight::processes::timeout::ran;
use tr_insight::processes::{label, who};
use tr_insight::steps::{Step, StepIx};
use tr_text::phrase::Phrase;

/// The largest width in columns of COMMAND's name at the end of a chain of failures for people.
const COMMAND: usize = 30;

impl Finder<'_> {
    /// Gives a failure the name of COMMAND, and notes whether COMMAND succeeded, if the process is COMMAND's process.
    pub(super) fn name_command(&self, failure: &mut Failure) {
        if self.root.is_some() && failure.process == self.root {
            let headline = who::headline(&self.analysis.meta);
            failure.task = FailedTask::Command(Phrase::name(&headline, COMMAND));
            failure.is_hidden = failure.process.is_some_and(|ix| !self.fails(ix));
        }
    }

    /// Describes the failure of a process, and notes whether the signal that killed it also killed one of its
    /// children.
    pub(super) fn uppermost(&self, ix: ProcessIx) -> Failure {
        let children = &self.analysis.process(ix).children;
        Failure {
            with_descendants: children.iter().any(|ix| self.is_with(*ix)),
            ..self.failure_of_process(ix)
        }
    }

    pub(super) fn failure_of_process(&self, ix: ProcessIx) -> Failure {
        let process = self.analysis.process(ix);
        let name = label::phrase(process);
        Failure {
            task: if self.sure.own.has(ix) {
                FailedTask::Process(name)
            } else {
                FailedTask::ProcessOfOthers(name)
            },
            end: self.end(ix),
            after: ran(process),
            at: process.end,
            pid: Some(process.pid.0),
            process: Some(ix),
            place: self.script_line(ix),
            statement: self.statement(ix),
            ..Failure::default()
        }
    }

    pub(super) fn end(&self, ix: ProcessIx) -> FailureEnd {
        match self.sure.end(self.analysis, ix) {
            FailureEnd::Unstarted {
                status,
                program: None,
            } => FailureEnd::Unstarted {
                status,
                program: self.unstarted_program(ix),
            },
            FailureEnd::Stopped {
                by,
                is_proven,
                status,
                ..
            } => FailureEnd::Stopped {
                by,
                is_proven,
                status,
                awaited: self.awaited(ix),
            },
            FailureEnd::TimedOut { status, .. } => FailureEnd::TimedOut {
                status,
                awaited: self.awaited(ix),
            },
            end => end,
        }
    }

    pub(super) fn failure_of_step(&self, at: StepIx, step: &Step) -> Failure {
        let own = step.process.filter(|_| step.result.is_none());
        let killed = own.filter(|ix| {
            self.sure.out_of_memory.contains_key(ix) || self.sure.was_stopped_late(*ix)
        });
        let killed = killed.map(|ix| self.end(ix));
        let status = step.status.filter(|status| *status != 0);
        let reported = step.result.clone();
        let reported = reported.map(|result| FailureEnd::Reported(result.into_word()));
        Failure {
            task: FailedTask::Step(step.name.clone()),
            end: killed
                .or(reported)
                .or(status.map(FailureEnd::Status))
                .unwrap_or_default(),
            after: step.wall(),
            at: step.to,
            pid: own.map(|ix| self.analysis.process(ix).pid.0),
            process: step.process,
            step: Some(at),
            ..Failure::default()
        }
    }
}
