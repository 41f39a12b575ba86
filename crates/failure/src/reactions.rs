//! Measures how a test runner reacts to the end of a child. A runner formats the failure of a test before beginning the
//! next test. So the runner works for longer after the child of a failed test than after other children.

use tr_analyze::model::{Process, ProcessIx};
use tr_analyze::timeline::Bucket;
use tr_format::event::Ktime;
use tr_programs::words;

use super::finder::{Finder, Reactions};
use super::passes::is_step;
use super::passes::{code, fails, is_often_ignored, passes, program_start, Passes, MOST_EXAMINED};
use tr_insight::processes::label;

/// The least CPU time of a test runner after a child's end that counts as exceptionally long. The unit is half of the
/// median of the runner's CPU times after the ends of the other children, so 3 means 1.5 times this median. Fitted to
/// the failures that the script `failures.py` plants in builds.
const HALVES: u64 = 3;

/// The first of the exit statuses (126) with which a shell reports a program that could not be started or was killed.
const UNSTARTED_STATUS: u32 = 126;

/// The words in a script's name by which the script counts as one that runs tests.
const TESTS: [&str; 2] = ["test", "spec"];

/// The reaction of a test runner to the end of one of its children: how long the runner worked after this end.
#[derive(Clone, Copy, Debug)]
struct Reaction {
    child: ProcessIx,
    /// The CPU time in nanoseconds that the test runner used from the end of the child to the start of the next child.
    on_cpu: u64,
}

impl Finder<'_> {
    /// Whether a test probably failed because of the given child of a test runner. A long reaction of the runner to the
    /// end of the child shows this. If no reaction of the runner is exceptionally long, the last child is taken.
    pub(super) fn stands_out(&self, ix: ProcessIx, runner: ProcessIx) -> bool {
        let child = self.analysis.process(ix);
        let process = self.analysis.process(runner);
        if !is_step(child) || is_often_ignored(child) || !runs_tests(process) {
            return false;
        }
        let mut kept = self.caches.reactions.borrow_mut();
        let reactions = kept.entry(runner).or_insert_with(|| self.reactions(runner));
        if reactions.long.is_empty() {
            reactions.last == Some(ix)
        } else {
            reactions.long.contains(&ix) && !is_expected(child)
        }
    }

    /// The reactions of a test runner to the ends of its programs, if the runner ran these programs one after the
    /// other.
    fn reactions(&self, runner: ProcessIx) -> Reactions {
        let process = self.analysis.process(runner);
        let children = process
            .children
            .iter()
            .rev()
            .take(MOST_EXAMINED)
            .rev()
            .copied();
        let runs: Vec<ProcessIx> = children
            .filter(|ix| {
                let child = self.analysis.process(*ix);
                !child.execs.is_empty() && child.start >= program_start(process)
            })
            .collect();
        let pairs = runs.iter().zip(runs.iter().skip(1));
        let all = pairs.filter_map(|(ix, next)| {
            let (from, to) = (
                self.analysis.process(*ix).end,
                self.analysis.process(*next).start,
            );
            (from <= to).then(|| Reaction {
                child: *ix,
                on_cpu: self.on_cpu(runner, from, to),
            })
        });
        let all: Vec<Reaction> = all.collect();
        let stands_out = |reaction: &&Reaction| {
            let others = all.iter().filter(|other| other.child != reaction.child);
            let mut others: Vec<u64> = others.map(|other| other.on_cpu).collect();
            others.sort_unstable();
            let median = others.get(others.len() / 2);
            reaction.on_cpu > 0
                && median.is_some_and(|median| reaction.on_cpu * 2 >= median * HALVES)
        };
        Reactions {
            long: all.iter().filter(stands_out).map(|at| at.child).collect(),
            last: runs
                .last()
                .map(|last| self.unexpected(&runs).unwrap_or(*last))
                .filter(|_| !all.is_empty()),
        }
    }

    /// The child that is reported in place of the last child of a test runner, if a test probably expects the status
    /// with which the last child failed. The reported child is the last one that ran the same program and failed with a
    /// common error status. `None` if there is no such child. `runs` has the children in the order of their starts.
    fn unexpected(&self, runs: &[ProcessIx]) -> Option<ProcessIx> {
        let last = self.analysis.process(*runs.last()?);
        let name = label::program(last);
        let mut runs = runs.iter().rev().copied();
        runs.find(|ix| {
            let run = self.analysis.process(*ix);
            let is_error = fails(run) && !is_expected(run);
            fails(last) && is_expected(last) && is_error && label::program(run) == name
        })
    }

    /// The sum of the CPU time in nanoseconds of all threads of a process between two times.
    fn on_cpu(&self, ix: ProcessIx, from: Ktime, to: Ktime) -> u64 {
        let Some(timeline) = &self.analysis.timeline else {
            return 0;
        };
        let threads = self.analysis.process(ix).threads.iter().take(MOST_EXAMINED);
        let stretches = threads.flat_map(|thread| {
            let stretches = timeline.since(*thread, from);
            stretches.take_while(|stretch| stretch.from < to)
        });
        let running = stretches.filter(|stretch| matches!(stretch.doing, Bucket::OnCpu(_)));
        let lengths = running.map(|stretch| {
            let (begin, end) = (stretch.from.max(from), stretch.to.min(to));
            end.since(begin.min(end))
        });
        lengths.sum()
    }
}

/// Whether a test probably expects the exit status of a program that it started: the status differs from the statuses
/// of common errors.
fn is_expected(child: &Process) -> bool {
    let is_own = |code: u32| code != 1 && code < UNSTARTED_STATUS;
    code(child).is_some_and(is_own)
}

/// Whether a process runs tests: it is a test runner, or a script that is named like a test.
pub(super) fn runs_tests(process: &Process) -> bool {
    let program = label::program(process);
    let has = |part: &str| {
        let mut words = TESTS.iter();
        words.any(|word| words::contains(part.as_bytes(), word.as_bytes()))
    };
    let is_named = || has(program.name()) || program.verb().is_some_and(has);
    match passes(process) {
        Passes::Tests => true,
        Passes::Last => is_named(),
        Passes::Status | Passes::Any => false,
    }
}
