//! The chain of failures that led to another one.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::arena::Arena;
use tr_analyze::model::{Analysis, Process, ProcessIx};
use tr_format::event::Ktime;

use super::ends::Sure;
use super::explains::Explains;
use super::failed_tests::Tests;
use super::passes::{code, fails, is_killed_itself, program};
use super::pipes::PipeReads;
use crate::ancestors::down;
use crate::exit;

pub(super) struct Finder<'a> {
    pub(super) analysis: &'a Analysis,
    pub(super) sure: Sure<'a>,
    pub(super) tests: Tests,
    pub(super) root: Option<ProcessIx>,
    /// For a process the ends of the children that failed by themselves, in order.
    pub(super) failures: BTreeMap<ProcessIx, Vec<Ktime>>,
    /// The processes whose children that failed are tries of one command line, or one job beside others.
    pub(super) alike: BTreeSet<ProcessIx>,
    /// For each process, the last end of a child that ended before it.
    pub(super) last_ends: Arena<ProcessIx, Ktime>,
    /// For a process, the waits for pipes, once they were needed.
    pub(super) reads: RefCell<BTreeMap<ProcessIx, PipeReads>>,
    /// For a process, the start of the last wait for a timer, once that was needed.
    pub(super) last_naps: RefCell<BTreeMap<ProcessIx, Option<Ktime>>>,
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
        let failures = ends.filter(|(_, ends)| !ends.is_empty()).collect();
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
        let alike = alike.map(|(ix, _)| ix).collect();
        let mut finder = Finder {
            analysis,
            sure,
            tests,
            root,
            failures,
            alike,
            last_ends: last_ends(analysis),
            reads: RefCell::default(),
            last_naps: RefCell::default(),
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
                || parent.is_some_and(|parent| finder.leads_to(ix, parent))
        });
        finder
    }

    pub(super) fn leads(&self, ix: ProcessIx) -> bool {
        self.leads[ix]
    }

    /// From a process down: of the children that explain a failure the one that does so best.
    pub(super) fn chain(&self, from: Option<ProcessIx>) -> Vec<ProcessIx> {
        let mut chain = Vec::new();
        let mut next = from;
        while let Some(at) = next.filter(|ix| self.fails(*ix)) {
            chain.push(at);
            let parent = self.analysis.process(at);
            let best = self.below(at).filter_map(|ix| {
                let child = self.analysis.process(ix);
                let explains = self.explains(ix, at)?;
                let is_test = self.tests.is_failed.contains(&ix);
                // It may be any of them: one with the shell's own status that is none of any failure, the last one,
                // or the one that took the longest, which is no mere question.
                let by = match explains {
                    Explains::Maybe => {
                        let is_own = code(parent) != Some(1) && code(child) == code(parent);
                        (is_own, self.gave_up(child, at), child.wall())
                    }
                    _ => (false, false, child.end.0),
                };
                Some(((explains, is_test, by, ix), ix))
            });
            next = best.max_by_key(|(key, _)| *key).map(|(_, ix)| ix);
        }
        chain
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
}

/// For each process, the last end of a child that ended before it.
fn last_ends(analysis: &Analysis) -> Arena<ProcessIx, Ktime> {
    let ends = analysis.processes.iter().map(|process| {
        let children = process.children.iter().map(|ix| analysis.process(*ix).end);
        let inside = children.filter(|end| *end <= process.end);
        inside.max().unwrap_or_default()
    });
    ends.collect()
}
