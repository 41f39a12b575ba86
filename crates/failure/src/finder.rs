//! Holds the search for a recording's failures, with the facts that all parts of the search need.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use tr_analyze::arena::Arena;
use tr_analyze::model::{Analysis, ProcessIx};
use tr_format::event::Ktime;

use super::ends::ProcessEnds;
use super::failed_tests::Tests;
use super::runs::Scripts;
use super::texts::Texts;

/// The state of the search for the failures that explain how a recording's command ended.
pub(super) struct Finder<'a> {
    pub(super) analysis: &'a Analysis,
    pub(super) sure: ProcessEnds<'a>,
    pub(super) texts: Texts<'a>,
    pub(super) tests: Tests,
    pub(super) root: Option<ProcessIx>,
    /// For each process, the times at which its failed jobs ended, in order. Jobs are the children that the process's
    /// last program started and that executed a program. Jobs that were stopped on purpose are left out.
    pub(super) failures: BTreeMap<ProcessIx, Vec<Ktime>>,
    /// The processes that have a failed child which was not stopped on purpose. A fork without a program counts as a
    /// child.
    pub(super) unstopped: BTreeSet<ProcessIx>,
    /// The failed processes whose failed jobs all have one command line (repeated tries), or whose only failed job ran
    /// at the same time as another job.
    pub(super) alike: BTreeSet<ProcessIx>,
    /// For each process, the end of the child that ended last before the process itself ended.
    pub(super) last_ends: Arena<ProcessIx, Ktime>,
    /// For each process, whether its failure leads to the failure of COMMAND.
    pub(super) leads: Arena<ProcessIx, bool>,
    /// For each process, whether its parent was killed and the same signal killed the process, so that the end of the
    /// process needs no line of its own in the report.
    pub(super) with: Arena<ProcessIx, bool>,
    pub(super) caches: Caches,
}

/// Facts about processes that are computed when the search first needs them, by process.
#[derive(Default)]
pub(super) struct Caches {
    pub(super) reads: RefCell<BTreeMap<ProcessIx, PipeReads>>,
    /// The start of a process's last wait for a timer.
    pub(super) last_naps: RefCell<BTreeMap<ProcessIx, Option<Ktime>>>,
    /// The starts of the sleeps of all threads of a process, in order.
    pub(super) sleeps: RefCell<BTreeMap<ProcessIx, Vec<Ktime>>>,
    pub(super) programs: RefCell<BTreeMap<ProcessIx, NumbersByName>>,
    pub(super) failed_jobs: RefCell<BTreeMap<ProcessIx, FailedJobs>>,
    pub(super) reactions: RefCell<BTreeMap<ProcessIx, Reactions>>,
    pub(super) scripts: RefCell<BTreeMap<ProcessIx, Scripts>>,
}

impl Finder<'_> {
    /// Whether the failure of a process has a rank in the report: the failure matters, and it does not belong to a
    /// failed test.
    pub(super) fn has_rank(&self, ix: ProcessIx) -> bool {
        if self.sure.out_of_memory.contains_key(&ix) {
            return true;
        }
        if !self.sure.own.has(ix) || self.tests.is_asked.contains(&ix) {
            return false;
        }
        let process = self.analysis.process(ix);
        ProcessEnds::is_crash(process)
            || self.sure.is_unexplained_kill(process)
            || self.leads[ix] && !self.tests.is_failed.contains(&ix)
    }
}

/// How certainly the failure of a child explains the failure of its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Explains {
    /// The child's failure is only one of several possible reasons for the parent's failure.
    Maybe,
    /// The child's failure is one of several reasons, each of which is enough to explain the parent's failure.
    One,
    /// The child's failure alone explains the parent's failure, because the parent ended by it. In most cases, the
    /// failed child is the last process that the parent started.
    Last,
}

/// The waits of one process for data in pipes, each with its beginning and end. The key is the process that ended the
/// wait by writing to the pipe or closing it, or a near ancestor of that process.
pub(super) type PipeReads = BTreeMap<ProcessIx, Vec<(Ktime, Ktime)>>;

/// For each program, how many children of a process ran it. The key is the first word (`argv[0]`) of the children's
/// command lines.
pub(super) type NumbersByName = HashMap<Vec<u8>, usize>;

/// The children of a test runner after whose end the runner worked for the longest time. They probably belong to failed
/// tests, because a runner works to report a failure.
#[derive(Clone, Debug, Default)]
pub(super) struct Reactions {
    /// The children of the test runner after whose end the runner worked for an exceptionally long time.
    pub(super) long: Vec<ProcessIx>,
    /// The last child of the test runner, if there were several children. The last child cannot be compared with the
    /// others: after its end, the runner prints a summary instead of running another test. If a test probably expects
    /// the status of this child, the field has another run of the child's program instead.
    pub(super) last: Option<ProcessIx>,
}

/// The numbers of failed jobs of a make by kind, without jobs whose failure the make probably ignored.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FailedJobs {
    /// The number of the make's failed jobs that are compilers, linkers, other builds or test runs.
    pub(super) builds: usize,
    /// The number of the make's failed jobs that run programs of unknown kind. The counting stops when it is 2.
    pub(super) others: usize,
}
