//! Collects what a recording shows about a process that runs tests: the times at which a test of the process can begin
//! or end, and the children for which the process waits.

use std::collections::HashMap;

use tr_analyze::model::{Analysis, ProcessIx, ThreadIx};
use tr_analyze::timeline::{Actor, Bucket, Timeline};

use tr_programs::table;
use tr_programs::tools::Role;

use super::active::Active;
use crate::lookup::{program, signed};

/// The largest number of processes that are tried as the process that ran a suite. A bound of the work.
pub(super) const MOST_TRIED: usize = 1_000;

/// The largest number of threads of a process that are tried, one by one, as the only thread that ran the tests. In a
/// process with more threads, no single thread is tried.
const THREADS: usize = 64;

/// The facts about a process that decide which tests it can have run, such as when it was on a CPU.
#[derive(Clone, Debug, Default)]
pub struct RunnerFacts {
    /// The stretches of time in which any thread of the process may have been on a CPU.
    pub any: Active,
    /// For a shell, the stretches of time in which the shell or any of its descendants may have been on a CPU, and the
    /// number of its children. Descendants count, because a shell can run a program to read a clock, and waits for that
    /// program. `None` for a process that is no shell.
    of_shell: Option<(Active, usize)>,
    /// For each thread of the process, the stretches of time in which the thread may have been on a CPU. If the tests
    /// fit into the stretches of exactly one thread, this thread ran the tests. The list is empty for a process with
    /// one thread or with very many threads.
    pub threads: Vec<Active>,
    /// The child processes that woke the process. For each child, the first and the last moment at which the child woke
    /// the process, in nanoseconds.
    pub waited: HashMap<ProcessIx, (i64, i64)>,
}

/// The threads of a process and of its descendants, of at most [`MOST_TRIED`] processes.
fn with_descendants(analysis: &Analysis, process: ProcessIx) -> Vec<ThreadIx> {
    let (mut threads, mut open, mut left) = (Vec::new(), vec![process], MOST_TRIED);
    while let Some(process) = open.pop().filter(|_| left > 0) {
        let process = analysis.process(process);
        threads.extend(&process.threads);
        open.extend(&process.children);
        left -= 1;
    }
    threads
}

impl RunnerFacts {
    pub fn is_shell(&self) -> bool {
        self.of_shell.is_some()
    }

    /// The stretches of time in which a test can have begun or ended, if the process ran a suite with `tests` tests.
    /// For a shell with at least `tests` children, the time in which its descendants ran counts as well. A shell with
    /// fewer children is only a wrapper.
    pub fn active(&self, tests: usize) -> &Active {
        match &self.of_shell {
            Some((active, children)) if *children >= tests => active,
            _ => &self.any,
        }
    }

    /// Collects the facts about a process that decide which tests it can have run; `None` without a timeline.
    pub fn new(analysis: &Analysis, process: ProcessIx) -> Option<RunnerFacts> {
        let timeline: &Timeline = analysis.timeline.as_ref()?;
        let threads = &analysis.process(process).threads;
        let alone = threads
            .iter()
            .map(|thread| Active::new(timeline, &[*thread]));
        let mut waited: HashMap<ProcessIx, (i64, i64)> = HashMap::new();
        for stretch in threads.iter().flat_map(|thread| timeline.of(*thread)) {
            let (Bucket::Wait(_), Actor::Thread(waker)) = (stretch.doing, stretch.waker()) else {
                continue;
            };
            let child = analysis.thread(waker).process;
            if analysis.process(child).parent == Some(process) {
                let at = signed(stretch.to);
                let (first, last) = waited.entry(child).or_insert((at, at));
                (*first, *last) = (at.min(*first), at.max(*last));
            }
        }
        let own = analysis.process(process);
        let role = table::by_path(program(own)).and_then(|tool| tool.role(None));
        let is_shell = role == Some(Role::Shell);
        let of_shell = (is_shell && !own.children.is_empty()).then(|| {
            let threads = with_descendants(analysis, process);
            (Active::new(timeline, &threads), own.children.len())
        });
        Some(RunnerFacts {
            of_shell,
            any: Active::new(timeline, threads),
            threads: if (2..=THREADS).contains(&threads.len()) {
                alone.collect()
            } else {
                Vec::new()
            },
            waited,
        })
    }
}
