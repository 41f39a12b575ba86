//! The chain of failures that led to another one.

use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::arena::Arena;
use tr_analyze::model::{Analysis, Process, ProcessIx};
use tr_analyze::sort::Gather;
use tr_format::event::Ktime;

use super::ends::Sure;
use super::failed_tests::Tests;
use super::passes::{
    code, fails, is_killed_itself, is_question, is_unstarted, passes, program, runs_jobs, soon,
    Passes, AT_ONCE, LONG,
};
use crate::ancestors::down;
use crate::exit;
use crate::facts::timeout::timed_out;

pub(super) struct Finder<'a> {
    pub(super) analysis: &'a Analysis,
    pub(super) sure: Sure<'a>,
    pub(super) tests: Tests,
    pub(super) root: Option<ProcessIx>,
    /// For a process the ends of the children that failed by themselves, in order.
    pub(super) failures: BTreeMap<ProcessIx, Vec<Ktime>>,
    /// The processes whose children that failed are tries of one command line, or one job beside others.
    pub(super) alike: BTreeSet<ProcessIx>,
    /// For each process, whether its failure leads to the root's.
    pub(super) leads: Arena<ProcessIx, bool>,
    /// For each process, whether the signal that killed it was sent to what is above it, too.
    pub(super) with: Arena<ProcessIx, bool>,
}

impl<'a> Finder<'a> {
    pub(super) fn new(
        analysis: &'a Analysis,
        (sure, tests): (Sure<'a>, Tests),
        root: Option<ProcessIx>,
    ) -> Finder<'a> {
        // What the parent's program started, and that started a program itself.
        let jobs = |parent: &'a Process| {
            let children = parent.children.iter();
            let children = children.map(|ix| (*ix, analysis.process(*ix)));
            let own = |it: &(_, &Process)| !it.1.execs.is_empty() && it.1.start >= program(parent);
            children.filter(own)
        };
        let failures = |parent: &'a Process| {
            let failed = jobs(parent).filter(|(ix, it)| fails(it) && !sure.on_purpose(*ix, it));
            let mut ends: Vec<Ktime> = failed.map(|(_, it)| it.end).collect();
            ends.sort_unstable();
            ends
        };
        let all = || analysis.process_ids().map(|ix| (ix, analysis.process(ix)));
        let ends = all().map(|(ix, it)| (ix, failures(it)));
        let failures = ends.filter(|(_, ends)| !ends.is_empty()).gather();
        let is_alike = |parent: &'a Process| {
            let mut failed = jobs(parent).map(|(_, it)| it).filter(|it| fails(it));
            let Some(first) = failed.next() else {
                return false;
            };
            match failed.next() {
                Some(again) => again.argv == first.argv && failed.all(|it| it.argv == first.argv),
                None => jobs(parent).any(|(_, it)| {
                    it.pid != first.pid && it.start < first.end && it.end > first.start
                }),
            }
        };
        let alike = all().filter(|(_, it)| fails(it) && is_alike(it));
        let alike = alike.map(|(ix, _)| ix).gather();
        let mut finder = Finder {
            analysis,
            sure,
            tests,
            root,
            failures,
            alike,
            leads: Arena::default(),
            with: Arena::default(),
        };
        finder.with = down(analysis, |ix, above: Option<&bool>| {
            let process = analysis.process(ix);
            let Some(parent) = process.parent.map(|ix| analysis.process(ix)) else {
                return false;
            };
            let signal = exit::killed_by(process.status);
            let is_same = signal.is_some() && signal == exit::killed_by(parent.status);
            let alone = finder.sure.out_of_memory.contains_key(&ix);
            is_same && !alone && (above == Some(&true) || is_killed_itself(parent))
        });
        finder.leads = down(analysis, |ix, above: Option<&bool>| {
            let parent = analysis.process(ix).parent.filter(|_| above == Some(&true));
            Some(ix) == root && finder.fails(ix)
                || parent
                    .and_then(|parent| finder.explains(ix, parent))
                    .is_some_and(|it| it != Explains::Maybe)
        });
        finder
    }

    pub(super) fn leads(&self, ix: ProcessIx) -> bool {
        self.leads[ix]
    }

    /// From a process down: of the children that explain a failure the one that does so best.
    pub(super) fn chain(&self, from: Option<ProcessIx>) -> Vec<ProcessIx> {
        let mut chain = Vec::new();
        let mut at = from;
        while let Some(ix) = at.filter(|ix| self.fails(*ix)) {
            chain.push(ix);
            let children = self.analysis.process(ix).children.iter();
            let best = children.filter_map(|ix| {
                let child = self.analysis.process(*ix);
                let explains = self.explains(*ix, at?)?;
                let is_test = self.tests.is_failed.contains(ix);
                let parent = self.analysis.process(at?);
                // It may be any of them: one with the shell's own status that is none of any failure, the last one,
                // or the one that took the longest, which is no mere question.
                let by = match explains {
                    Explains::Maybe => {
                        let is_own = code(parent) != Some(1) && code(child) == code(parent);
                        (is_own, self.gave_up(child, at?), child.wall())
                    }
                    _ => (false, false, child.end.0),
                };
                Some(((explains, is_test, by, *ix), *ix))
            });
            at = best.max_by_key(|(key, _)| *key).map(|(_, ix)| ix);
        }
        chain
    }

    /// Whether a process's failure is one of several possible reasons for its parent's.
    pub(super) fn is_maybe(&self, ix: ProcessIx) -> bool {
        let parent = self.analysis.process(ix).parent;
        let explains = parent.and_then(|parent| self.explains(ix, parent));
        explains == Some(Explains::Maybe)
    }

    pub(super) fn is_with(&self, ix: ProcessIx) -> bool {
        self.with[ix]
    }

    pub(super) fn fails(&self, ix: ProcessIx) -> bool {
        fails(self.analysis.process(ix)) || self.sure.out_of_memory.contains_key(&ix)
    }

    /// A fork of a test that crashed, after which the test went on: it may have been to crash. So
    /// it comes after what made COMMAND fail.
    pub(super) fn is_death_test(&self, ix: ProcessIx) -> bool {
        let process = self.analysis.process(ix);
        let goes_on = |parent| self.explains(ix, parent).is_none();
        self.tests.is_within.contains(&ix)
            && process.execs.is_empty()
            && process.parent.is_some_and(goes_on)
    }

    /// Whether a parent started nothing after a child's end.
    pub(super) fn is_last(&self, child: &Process, parent: ProcessIx) -> bool {
        let last = self.analysis.process(parent).children.last();
        last.is_none_or(|ix| self.analysis.process(*ix).start <= child.end)
    }

    /// Whether a parent started nothing after a child's end, and soon ended itself.
    pub(super) fn gave_up(&self, child: &Process, parent: ProcessIx) -> bool {
        let above = self.analysis.process(parent);
        self.is_last(child, parent) && until_the_end(child, above) <= soon(above)
    }

    /// Whether a child's failure may be the reason for its parent's.
    pub(super) fn explains(&self, ix: ProcessIx, parent: ProcessIx) -> Option<Explains> {
        let child = self.analysis.process(ix);
        let (last, gave_up) = (self.is_last(child, parent), self.gave_up(child, parent));
        let (failures, is_alike) = (self.failures.get(&parent), self.alike.contains(&parent));
        let parent = self.analysis.process(parent);
        // What a program's predecessor in the same process started is none of its reasons.
        if !self.fails(ix) || !fails(parent) || child.start < program(parent) || timed_out(parent) {
            return None;
        }
        if is_killed_itself(parent) && !self.sure.out_of_memory.contains_key(&ix) {
            return None;
        }
        let on_purpose = self.sure.on_purpose(ix, child);
        // The parent, or what ended the parent, killed it for another one's failure.
        let failures = failures.map_or(&[][..], Vec::as_slice);
        let before = failures.partition_point(|end| *end <= child.end);
        let before = failures.get(..before).and_then(|it| it.last());
        if on_purpose && before.is_some_and(|end| child.end.since(*end) <= soon(parent)) {
            return None;
        }
        let is_same = code(child) == code(parent);
        match passes(parent) {
            Passes::Status if gave_up && is_same => Some(Explains::Last),
            // `make || exit 1`, or a script that counts failures and goes on. A short one long before the end may be
            // a question.
            Passes::Status if is_question(child) => None,
            Passes::Status => {
                let at_once = until_the_end(child, parent) <= AT_ONCE && (last || is_same);
                let is_long = child.wall() >= parent.wall() / LONG;
                let counts = at_once || is_alike || is_long || runs_jobs(child);
                (counts && (is_same || !on_purpose)).then_some(Explains::Maybe)
            }
            // No job, but a question of the tool's own.
            Passes::Any if child.execs.is_empty() && !gave_up && !is_unstarted(child) => None,
            Passes::Any if last => Some(Explains::Last),
            Passes::Any => Some(Explains::One),
            Passes::Tests => self.tests.is_failed.contains(&ix).then_some(Explains::One),
            Passes::Last => gave_up.then_some(Explains::Last),
        }
    }
}

/// The time from a child's end to its parent's, in ns.
pub(super) fn until_the_end(child: &Process, parent: &Process) -> u64 {
    parent.end.since(child.end.min(parent.end))
}

/// How well a child's failure explains its parent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Explains {
    /// A shell did other things after it, or ended with another status: it is one of several possible reasons.
    Maybe,
    /// One of several that do.
    One,
    /// The parent started nothing after it.
    Last,
}
