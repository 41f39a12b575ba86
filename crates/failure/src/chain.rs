//! Finds the chain of failures that leads from a process, such as COMMAND, down to the failure that made this process
//! fail.

use std::collections::BTreeMap;

use tr_analyze::arena::Arena;
use tr_analyze::model::{Analysis, Process, ProcessIx};
use tr_format::event::Ktime;
use tr_programs::tools::Family;

use super::ends::ProcessEnds;
use super::failed_tests::Tests;
use super::finder::{Caches, Explains, Finder};
use super::passes::{
    code, fails, family, is_killed_itself, is_question, passes, program_start, Passes,
};
use super::runners::LONGEST_CHECK;
use super::texts::Texts;
use tr_insight::processes::ancestors::down;
use tr_insight::processes::exit;

/// The rank of a failed child among several children that explain the failure of one parent equally well. Two ranks are
/// compared field by field from the top, and the child with the larger rank is chosen.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct ChildRank {
    /// True in two cases: the child certainly explains the parent's failure and exceeded its time limit, or the child
    /// is only a possible reason and was not stopped on purpose. Here, a child that a neighbour stopped, or that a
    /// time-out ended, does not count as stopped on purpose.
    is_first: bool,
    /// The failed child is a member of the last pipe that its parent ran, or the parent only cleaned up after the child
    /// had ended.
    is_end: bool,
    /// The failed child has the exit status of its parent, and this status is not 1. A status of 1 would be no
    /// evidence, because any failure can have this status. Below a make, an equal status is no evidence either.
    is_own: bool,
    /// The rank of the failed child among several possible reasons for its parent's failure ([`Finder::weight`]).
    weight: u8,
    /// If the child is only a possible reason for the parent's failure: the child's wall time in ns. If the child is a
    /// certain reason: the time at which the child ended.
    ns: u64,
}

impl<'a> Finder<'a> {
    pub(super) fn new(
        analysis: &'a Analysis,
        sure: ProcessEnds<'a>,
        tests: Tests,
        root: Option<ProcessIx>,
    ) -> Finder<'a> {
        let failed_jobs =
            |parent: &'a Process| jobs_of(analysis, parent).filter(|(_, job)| fails(job));
        let all = || analysis.process_ids().map(|ix| (ix, analysis.process(ix)));
        let mut failures = BTreeMap::new();
        for (ix, parent) in all() {
            let by_themselves = failed_jobs(parent).filter(|(ix, job)| !sure.on_purpose(*ix, job));
            let mut ends: Vec<Ktime> = by_themselves.map(|(_, job)| job.end).collect();
            if !ends.is_empty() {
                ends.sort_unstable();
                failures.insert(ix, ends);
            }
        }
        let is_alike = |parent: &'a Process| {
            let mut failed = failed_jobs(parent).map(|(_, job)| job);
            let Some(first) = failed.next() else {
                return false;
            };
            match failed.next() {
                Some(again) => again.argv == first.argv && failed.all(|job| job.argv == first.argv),
                None => jobs_of(analysis, parent).any(|(_, job)| {
                    job.pid != first.pid && job.start < first.end && job.end > first.start
                }),
            }
        };
        let alike = all()
            .filter(|(_, parent)| fails(parent) && is_alike(parent))
            .map(|(ix, _)| ix)
            .collect();
        let by_itself = |(ix, process): &(ProcessIx, &Process)| {
            let has_failed = fails(process) || sure.out_of_memory.contains_key(ix);
            has_failed && !sure.on_purpose(*ix, process)
        };
        let by_themselves = all().filter(by_itself);
        let unstopped = by_themselves.filter_map(|(_, process)| process.parent);
        let unstopped = unstopped.collect();
        let mut finder = Finder {
            analysis,
            sure,
            texts: Texts::new(analysis),
            tests,
            root,
            failures,
            unstopped,
            alike,
            last_ends: last_ends(analysis),
            leads: Arena::default(),
            with: Arena::default(),
            caches: Caches::default(),
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

    /// The chain of failures that begins with the given process and descends to the cause of its failure. At each
    /// process, the chain goes on to the child that explains this process's failure best.
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
                let rank = match explains {
                    Explains::Maybe => {
                        // A make does not pass on the exit status of a child, so an equal status is no evidence.
                        let is_passed_on = family(parent) != Some(Family::Make);
                        let is_own =
                            is_passed_on && code(parent) != Some(1) && code(child) == code(parent);
                        let is_end =
                            self.is_end_by_a_pipe(ix, at) || self.is_end_before_tidying(child, at);
                        let is_stop = self.sure.on_purpose(ix, child)
                            && !self.sure.by_a_neighbour(ix)
                            && !self.sure.was_late(ix, child);
                        ChildRank {
                            is_first: !is_stop,
                            is_end,
                            is_own,
                            weight: self.weight(child, at),
                            ns: child.wall(),
                        }
                    }
                    // A child that a time limit ended is preferred to a child that failed by itself.
                    _ => ChildRank {
                        is_first: self.was_too_late(ix),
                        ns: child.end.0,
                        ..ChildRank::default()
                    },
                };
                Some(((explains, is_test, rank, ix), ix))
            });
            next = best.max_by_key(|(key, _)| *key).map(|(_, ix)| ix);
        }
        chain
    }

    /// The rank of a child's failure among several possible reasons for its parent's failure:
    /// - 2 if the parent may have remembered the error of the child and the child ran for longer than a check usually
    ///   does, or if the child is the only failed one of many similar children of a shell.
    /// - 1 if the parent may have remembered the error of a shorter child, or if the parent ended right after the
    ///   child.
    /// - 0 otherwise.
    fn weight(&self, child: &Process, above: ProcessIx) -> u8 {
        // A status of 1 may be a negative answer, but any other failure status is an error.
        let is_error = !is_question(child) && code(child) != Some(1);
        let is_kept = is_error && self.may_have_been_kept(child, above);
        let is_script = passes(self.analysis.process(above)) == Passes::Status;
        if is_kept && child.wall() >= LONGEST_CHECK
            || is_script && self.is_only_failed_run(child, above)
        {
            2
        } else {
            u8::from(is_kept || self.gave_up(child, above))
        }
    }

    pub(super) fn is_with(&self, ix: ProcessIx) -> bool {
        self.with[ix]
    }

    pub(super) fn fails(&self, ix: ProcessIx) -> bool {
        fails(self.analysis.process(ix)) || self.sure.out_of_memory.contains_key(&ix)
    }

    /// Whether a crashed process is a forked child of a test that went on after the crash. The test may have expected
    /// the crash, so the crash is reported after the causes of COMMAND's failure.
    pub(super) fn is_death_test(&self, ix: ProcessIx) -> bool {
        let process = self.analysis.process(ix);
        let goes_on = |parent| self.explains(ix, parent).is_none();
        self.tests.is_within.contains(&ix)
            && process.execs.is_empty()
            && process.parent.is_some_and(goes_on)
    }
}

/// The children that the last program of a process started and that executed a program themselves.
fn jobs_of<'a>(
    analysis: &'a Analysis,
    parent: &'a Process,
) -> impl Iterator<Item = (ProcessIx, &'a Process)> {
    let children = parent.children.iter();
    let children = children.map(|ix| (*ix, analysis.process(*ix)));
    children.filter(|(_, child)| !child.execs.is_empty() && child.start >= program_start(parent))
}

/// For each process, the latest time at which a child of the process ended. Children that outlived the process do not
/// count. The time is 0 if no child counts.
fn last_ends(analysis: &Analysis) -> Arena<ProcessIx, Ktime> {
    let ends = analysis.processes.iter().map(|process| {
        let children = process.children.iter().map(|ix| analysis.process(*ix).end);
        let inside = children.filter(|end| *end <= process.end);
        inside.max().unwrap_or_default()
    });
    ends.collect()
}
