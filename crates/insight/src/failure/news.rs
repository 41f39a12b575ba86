//! Failures that a process learned of by other means than the status of a child: the answer of a server, a status that was
//! written to a file, polls of a service that had ended, results that are text.

use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::model::{Process, ProcessIx};
use tr_analyze::timeline::{Actor, Bucket, Wait};

use super::afterwards::{is_optional, is_step};
use super::explains::OF_SHELLS;
use super::finder::Finder;
use super::passes::{code, fails, is_often_ignored, is_probe, is_question, passes, program, soon};
use super::passes::{Passes, AT_ONCE, DEEP, NEAR};
use super::runners::is_script;
use super::servers::addresses;
use crate::exit;

/// A program that is run so often with one command line is a poll.
const POLLS: usize = 2;

impl Finder<'_> {
    /// The failure that perhaps was the reason for that of a chain's first process, which no child explains.
    pub(super) fn news(
        &self,
        chain: &[ProcessIx],
        failed: &BTreeSet<ProcessIx>,
    ) -> Option<ProcessIx> {
        let first = *chain.first()?;
        if exit::killed_by(self.analysis.process(first).status).is_some() {
            return None;
        }
        let within: BTreeSet<ProcessIx> = chain.iter().copied().collect();
        let counts = |ix: &ProcessIx| {
            !within.contains(ix)
                && !self.tests.is_asked.contains(ix)
                && !self.leads(*ix)
                && self.sure.own.has(*ix)
                && self.is_work(*ix)
        };
        let others: Vec<ProcessIx> = failed.iter().copied().filter(counts).collect();
        if others.is_empty() {
            return None;
        }
        let found = self.by_answer(first, &others);
        let found = found.or_else(|| self.by_status(first, &others));
        let found = found.or_else(|| self.by_polls(first, &others));
        found.or_else(|| self.by_result(first, &others))
    }

    /// Whether the failure of a process is that of a program which is run for its work, and nothing above stopped it.
    fn is_work(&self, ix: ProcessIx) -> bool {
        let process = self.analysis.process(ix);
        let parent = process.parent.map(|parent| self.analysis.process(parent));
        is_step(process)
            && !is_often_ignored(process)
            && !is_optional(process)
            && self.sure.stop(ix).is_none()
            && self.rank(ix).is_none()
            && !parent.is_some_and(|parent| is_probe(process, parent))
    }

    /// The last program of a server that failed right before the server ended the last wait of a client, after which the
    /// client gave up.
    fn by_answer(&self, client: ProcessIx, others: &[ProcessIx]) -> Option<ProcessIx> {
        let process = self.analysis.process(client);
        let timeline = self.analysis.timeline.as_ref()?;
        let stretches = process
            .threads
            .iter()
            .flat_map(|thread| timeline.of(*thread));
        let waits = stretches.filter(|stretch| {
            let is_wait = stretch.doing == Bucket::Wait(Wait::Sleep);
            is_wait && process.end.since(stretch.to.min(process.end)) <= soon(process)
        });
        let answers = waits.filter_map(|stretch| match stretch.waker() {
            Actor::Thread(by) => Some((stretch.to, self.analysis.thread(by).process)),
            _ => None,
        });
        let (at, server) = answers.max_by_key(|(at, _)| *at)?;
        let mut above = self.analysis.ancestors(client).take(DEEP);
        let is_server = server != client && above.all(|ix| ix != server);
        let mut others = others.iter().copied().rev().filter(|ix| {
            let job = self.analysis.process(*ix);
            let is_told = job.end <= at && at.since(job.end) <= AT_ONCE;
            is_server && job.parent == Some(server) && is_told && self.is_last(job, server)
        });
        others.next()
    }

    /// The only failure with the status of a script, if that is a status which no shell has by itself:
    /// `exit $(cat status)`.
    fn by_status(&self, last: ProcessIx, others: &[ProcessIx]) -> Option<ProcessIx> {
        let process = self.analysis.process(last);
        if passes(process) != Passes::Status && !is_script(process) {
            return None;
        }
        let status = code(process).filter(|code| *code != 0 && !OF_SHELLS.contains(code))?;
        let is_same = |ix: &&ProcessIx| {
            let other = self.analysis.process(**ix);
            code(other) == Some(status) && other.end <= process.end
        };
        self.only_uppermost(others.iter().filter(is_same))
    }

    /// The job in the background of a shell that failed before the last of the shell's polls, which failed, too.
    fn by_polls(&self, last: ProcessIx, others: &[ProcessIx]) -> Option<ProcessIx> {
        let process = self.analysis.process(last);
        let is_shell = passes(process) == Passes::Status;
        let shell = if is_shell { last } else { process.parent? };
        let script = self.analysis.process(shell);
        if passes(script) != Passes::Status {
            return None;
        }
        let services = others.iter().copied().rev().filter(|ix| {
            let service = self.analysis.process(*ix);
            let is_piped = || self.reader(service, script).is_some();
            service.parent == Some(shell) && self.is_in_background(*ix) && !is_piped()
        });
        let mut services = services.take(NEAR);
        services.find(|ix| self.polls_fail_after(self.analysis.process(*ix), script, process))
    }

    /// Whether a shell polled after the end of a service: a program that scripts ask, one that fetches something, or
    /// several runs of one command line. `last` is the shell or the poll that failed last.
    fn polls_fail_after(&self, service: &Process, shell: &Process, last: &Process) -> bool {
        let children = shell.children.iter().rev().take(NEAR);
        let children = children.map(|ix| self.analysis.process(*ix));
        let ports = addresses(&service.argv);
        let is_of_others = |child: &Process| {
            let asked = addresses(&child.argv);
            let is_known = !ports.is_empty() && !asked.is_empty();
            is_known && !asked.iter().any(|port| ports.contains(port))
        };
        let later = children.filter(|child| {
            let is_poll = last.pid == shell.pid || child.argv == last.argv;
            let has_failed = fails(child) && !child.execs.is_empty();
            is_poll && has_failed && program(child) >= service.end && !is_of_others(child)
        });
        let mut runs: BTreeMap<&[u8], usize> = BTreeMap::new();
        let mut polls = later.filter(|child| {
            let all = runs.entry(&child.argv.bytes).or_default();
            *all += 1;
            *all >= POLLS || is_question(child) || is_optional(child)
        });
        polls.next().is_some()
    }

    /// The only script that failed in a shell which succeeded all the same: a shell that reads results has only its text.
    /// Not inside a test: tests start programs that fail on purpose.
    fn by_result(&self, last: ProcessIx, others: &[ProcessIx]) -> Option<ProcessIx> {
        let reader = self.analysis.process(last);
        if passes(reader) != Passes::Status {
            return None;
        }
        let scripts = others.iter().filter(|ix| {
            let script = self.analysis.process(**ix);
            let Some(parent) = script.parent.map(|parent| self.analysis.process(parent)) else {
                return false;
            };
            let is_kept = passes(parent) == Passes::Status && parent.status == Some(0);
            is_script(script) && is_kept && script.end <= reader.end
        });
        self.only_uppermost(scripts)
    }

    /// The process of several that has all the others below it.
    fn only_uppermost<'a>(
        &self,
        mut all: impl Iterator<Item = &'a ProcessIx>,
    ) -> Option<ProcessIx> {
        let uppermost = *all.next()?;
        let is_below = |ix: &ProcessIx| {
            let mut above = self.analysis.ancestors(*ix).take(DEEP);
            above.any(|above| above == uppermost)
        };
        all.all(is_below).then_some(uppermost)
    }
}
