//! Finds processes that ran at once and whose parent stopped them because one of them had failed.

use tr_analyze::model::{Process, ProcessIx};
use tr_analyze::stopped::{may_have_sent, woken_before_exit, TimeOut};
use tr_format::event::{Ktime, Reason};
use tr_programs::table::utilities::UtilityUse;

use super::ends::ProcessEnds;
use super::finder::Finder;
use super::passes::MOST_EXAMINED;
use super::passes::{fails, has_use, passes, soon, Passes, AT_ONCE};
use tr_insight::processes::exit;

impl Finder<'_> {
    /// Whether a process is a forked worker that may have reported a failure to its parent by other means than its
    /// status, as in a pool of workers or in Ansible. The end of such a worker shows no failure: the worker succeeded,
    /// or its owner stopped the worker when there was no more work.
    pub(super) fn is_worker(&self, ix: ProcessIx) -> bool {
        let process = self.analysis.process(ix);
        let is_stopped = |parent| {
            self.sure.on_purpose(ix, process)
                && (self.sure.stop(ix).is_some() || may_have_sent(self.analysis, ix, parent))
        };
        process.execs.is_empty()
            && process.parent.is_some_and(|parent| {
                let owner = self.analysis.process(parent);
                let is_owner = fails(owner) && passes(owner) == Passes::Last;
                is_owner && (process.status == Some(0) || is_stopped(parent))
            })
    }

    /// Whether the same signal killed a worker and another worker of the same owner at about the same time. The owner
    /// then closed the pool.
    pub(super) fn was_stopped_with_another(&self, ix: ProcessIx, owner: ProcessIx) -> bool {
        let worker = self.analysis.process(ix);
        let children = self.analysis.process(owner).children.iter().rev();
        let mut others = children.take(MOST_EXAMINED).filter(|other| **other != ix);
        others.any(|other| {
            let other_worker = self.analysis.process(*other);
            let (first, last) = (
                worker.end.min(other_worker.end),
                worker.end.max(other_worker.end),
            );
            self.is_worker(*other)
                && other_worker.status == worker.status
                && last.since(first) <= AT_ONCE
        })
    }

    /// Whether a process is a forked worker that broke its pool: the worker crashed, and the parent stopped another
    /// worker at once. A test that expects a crash does not stop other processes.
    pub(super) fn broke_a_pool(&self, ix: ProcessIx, above: ProcessIx) -> bool {
        let worker = self.analysis.process(ix);
        let children = self.analysis.process(above).children.iter().rev();
        let mut others = children.take(MOST_EXAMINED).filter(|other| **other != ix);
        let is_stopped = |ix: ProcessIx, other: &Process| {
            let is_fork = other.execs.is_empty() && self.sure.on_purpose(ix, other);
            let is_after = other.start <= worker.end && other.end >= worker.end;
            is_fork && is_after && other.end.since(worker.end) <= AT_ONCE
        };
        worker.execs.is_empty()
            && ProcessEnds::is_crash(worker)
            && others.any(|other| is_stopped(*other, self.analysis.process(*other)))
    }

    /// Whether a process is a test that the test runner stopped because the test exceeded its time limit, and not
    /// because another test had failed.
    pub(super) fn is_hung_test(&self, ix: ProcessIx) -> bool {
        let parent = self.analysis.process(ix).parent;
        let runner = parent.filter(|ix| passes(self.analysis.process(*ix)) == Passes::Tests);
        let stop = self.sure.stop(ix);
        let is_proven = stop.is_some_and(|stop| stop.is_proven) && !self.sure.was_closed(ix);
        let is_late =
            |runner| self.sure.was_stopped_late(ix) || !self.was_killed_for_another(ix, runner);
        self.tests.is_failed.contains(&ix) && is_proven && runner.is_some_and(is_late)
    }

    /// Whether an ancestor of a process stopped the process because a time limit was exceeded.
    pub(super) fn was_too_late(&self, ix: ProcessIx) -> bool {
        self.sure.was_stopped_late(ix) || self.is_hung_test(ix)
    }

    /// Whether a process was probably killed because another child of its parent had failed shortly before. A process
    /// that a neighbour certainly stopped does not count.
    pub(super) fn was_killed_for_another(&self, ix: ProcessIx, above: ProcessIx) -> bool {
        let child = self.analysis.process(ix);
        self.sure.on_purpose(ix, child)
            && !self.sure.by_a_neighbour(ix)
            && self.failed_shortly_before(child.end, above).is_some()
    }

    /// Whether the parent of a process stopped the process because another child had failed. Here the stopped process
    /// handled the signal and exited with a status.
    pub(super) fn was_stopped_for_another(&self, ix: ProcessIx, above: ProcessIx) -> bool {
        let child = self.analysis.process(ix);
        let others = self.failures.get(&above).map_or(0, Vec::len);
        if others < 2 || exit::killed_by(child.status).is_some() {
            return false;
        }
        let stopped = self
            .signalled(ix, above)
            .or_else(|| self.beside_a_stop(child, above));
        let other = stopped.and_then(|stopped| self.failed_shortly_before(stopped, above));
        other.is_some_and(|end| child.start < end && end < child.end)
    }

    /// The time of the last failure of a child of `above` before `time`. `None` if no child failed before `time`, or if
    /// the last failure was too early for the action of `above` at `time` to be a reaction to it. Stopped children do
    /// not count as failed.
    fn failed_shortly_before(&self, time: Ktime, above: ProcessIx) -> Option<Ktime> {
        let failures = self.failures.get(&above).map_or(&[][..], Vec::as_slice);
        let before = failures.partition_point(|end| *end <= time);
        let last = *failures.get(before.checked_sub(1)?)?;
        (time.since(last) <= soon(self.analysis.process(above))).then_some(last)
    }

    /// The time at which the parent of a process, or a kill(1) that the parent started, woke the process by a signal;
    /// `None` if there is no such signal or if the process did not end right afterwards.
    fn signalled(&self, ix: ProcessIx, above: ProcessIx) -> Option<Ktime> {
        let is_shell = passes(self.analysis.process(above)) == Passes::Status;
        let is_sender = |by: ProcessIx| {
            let sender = self.analysis.process(by);
            let is_kill = || has_use(sender, UtilityUse::Kill);
            by == above || sender.parent == Some(above) && is_kill()
        };
        // A shell and kill(1) wake other processes only by signals. Another program may also wake the stopped process
        // in other ways, so the reason for which the stopped process waited must fit a signal.
        let by_signal =
            |reason| is_shell || matches!(reason, Reason::Child | Reason::Signal | Reason::Timer);
        let woken = woken_before_exit(self.analysis, ix, is_sender, by_signal)?;
        (self.analysis.process(ix).end.since(woken) <= AT_ONCE).then_some(woken)
    }

    /// The end of another child that the parent stopped shortly before the end of the given child; `None` if there is
    /// no such child. If there is one, the parent probably stopped both children.
    fn beside_a_stop(&self, child: &Process, above: ProcessIx) -> Option<Ktime> {
        let children = self
            .analysis
            .process(above)
            .children
            .iter()
            .rev()
            .take(MOST_EXAMINED);
        let stopped = children.filter(|ix| {
            let stop = self.sure.stop(**ix);
            stop.is_some_and(|stop| stop.is_proven && stop.time_out == TimeOut::No)
        });
        let mut ends = stopped.map(|ix| self.analysis.process(*ix).end.min(child.end));
        ends.find(|end| child.end.since(*end) <= AT_ONCE)
    }
}
