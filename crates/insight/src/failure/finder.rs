//! The facts of a recording that every question about its failures shares.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use tr_analyze::arena::Arena;
use tr_analyze::model::{Analysis, ProcessIx};
use tr_format::event::Ktime;

use super::ends::ProcessEnds;
use super::failed_tests::Tests;
use super::makes::FailedJobs;
use super::runners::Scripts;

/// The search for the failures that explain a recording's end.
pub(super) struct Finder<'a> {
    pub(super) analysis: &'a Analysis,
    pub(super) sure: ProcessEnds<'a>,
    pub(super) tests: Tests,
    pub(super) root: Option<ProcessIx>,
    /// For a process the ends of the children that failed by themselves, in order.
    pub(super) failures: BTreeMap<ProcessIx, Vec<Ktime>>,
    /// The processes of which a child, also a fork, failed and was not stopped on purpose.
    pub(super) unstopped: BTreeSet<ProcessIx>,
    /// The processes whose children that failed are tries of one command line, or one job beside others.
    pub(super) alike: BTreeSet<ProcessIx>,
    /// For each process, the last end of a child that ended before it.
    pub(super) last_ends: Arena<ProcessIx, Ktime>,
    /// For a process, the waits for pipes, once they were needed.
    pub(super) reads: RefCell<BTreeMap<ProcessIx, PipeReads>>,
    /// For a process, the start of the last wait for a timer, once that was needed.
    pub(super) last_naps: RefCell<BTreeMap<ProcessIx, Option<Ktime>>>,
    /// For a process, the starts of the sleeps of all its threads in order, once they were needed.
    pub(super) sleeps: RefCell<BTreeMap<ProcessIx, Vec<Ktime>>>,
    /// For a process, the numbers of its children with a program by their first argument, once they were needed.
    pub(super) programs: RefCell<BTreeMap<ProcessIx, NumbersByName>>,
    /// For a make, its failed jobs, once they were needed.
    pub(super) failed_jobs: RefCell<BTreeMap<ProcessIx, FailedJobs>>,
    /// For a test runner, its reactions to the ends of its children, once they were needed.
    pub(super) reactions: RefCell<BTreeMap<ProcessIx, Reactions>>,
    /// For a process, the scripts that it ran, once they were needed.
    pub(super) scripts: RefCell<BTreeMap<ProcessIx, Scripts>>,
    /// For each process, whether its failure leads to the root's.
    pub(super) leads: Arena<ProcessIx, bool>,
    /// For each process, whether the signal that killed it was sent to what is above it, too.
    pub(super) with: Arena<ProcessIx, bool>,
}

/// How well a child's failure explains its parent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Explains {
    /// The child's failure is one of several possible reasons.
    Maybe,
    /// The child's failure is one of several reasons, each of which was enough.
    One,
    /// The parent started nothing after it.
    Last,
}

/// The waits of one process for data in pipes, by the processes that wrote it: when each wait began and ended.
pub(super) type PipeReads = BTreeMap<ProcessIx, Vec<(Ktime, Ktime)>>;

/// The numbers of children by the first argument of their command lines.
pub(super) type NumbersByName = HashMap<Vec<u8>, usize>;

/// The children of a test runner after which it worked for the longest time.
#[derive(Clone, Debug, Default)]
pub(super) struct Reactions {
    /// The children whose reactions stand out.
    pub(super) long: Vec<ProcessIx>,
    /// The last child of several. No other test follows it, and the runner's summary does.
    pub(super) last: Option<ProcessIx>,
}
