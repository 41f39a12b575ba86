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
    /// The texts of the scripts that shells of the recording ran.
    pub(super) texts: Texts<'a>,
    pub(super) tests: Tests,
    pub(super) root: Option<ProcessIx>,
    /// For each process, the times at which its failed children ended, in order. Children that were stopped on purpose
    /// are left out.
    pub(super) failures: BTreeMap<ProcessIx, Vec<Ktime>>,
    /// The processes that have a failed child which was not stopped on purpose. A fork without a program counts as a
    /// child.
    pub(super) unstopped: BTreeSet<ProcessIx>,
    /// The processes whose failed children are all alike: repeated tries of one command line, or jobs that ran at the
    /// same time.
    pub(super) alike: BTreeSet<ProcessIx>,
    /// For each process, the end of the child that ended last before the process itself ended.
    pub(super) last_ends: Arena<ProcessIx, Ktime>,
    /// For each process, whether its failure leads to the failure of COMMAND.
    pub(super) leads: Arena<ProcessIx, bool>,
    /// For each process, whether the process was killed by a signal that was also sent to one of its ancestors.
    pub(super) with: Arena<ProcessIx, bool>,
    pub(super) caches: Caches,
}

/// Facts about processes that are computed when the search first needs them, by process.
#[derive(Default)]
pub(super) struct Caches {
    /// The waits of a process for data in pipes.
    pub(super) reads: RefCell<BTreeMap<ProcessIx, PipeReads>>,
    /// The start of a process's last wait for a timer.
    pub(super) last_naps: RefCell<BTreeMap<ProcessIx, Option<Ktime>>>,
    /// The starts of the sleeps of all threads of a process, in order.
    pub(super) sleeps: RefCell<BTreeMap<ProcessIx, Vec<Ktime>>>,
    /// The number of a process's children by program. The key is the first argument of the children's command lines.
    pub(super) programs: RefCell<BTreeMap<ProcessIx, NumbersByName>>,
    /// The failed jobs of a make.
    pub(super) failed_jobs: RefCell<BTreeMap<ProcessIx, FailedJobs>>,
    /// The reactions of a test runner to the ends of its children.
    pub(super) reactions: RefCell<BTreeMap<ProcessIx, Reactions>>,
    /// The scripts that a process ran.
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
    /// The failed child is the last process that the parent started, so the child's failure explains the parent's
    /// failure.
    Last,
}

/// The waits of one process for data in pipes, each with its beginning and end. The key is the process that ended the
/// wait by writing the data, or an ancestor of that process.
pub(super) type PipeReads = BTreeMap<ProcessIx, Vec<(Ktime, Ktime)>>;

/// For each program, how many children of a process ran it. The key is the first argument of the children's command
/// lines.
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

/// The numbers of failed jobs of a make by kind. Jobs whose failure the make probably ignored do not count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FailedJobs {
    /// The number of the make's failed jobs that are compilers, linkers, other builds or test runs.
    pub(super) builds: usize,
    /// The number of the make's failed jobs that run programs of unknown kind.
    pub(super) others: usize,
}
