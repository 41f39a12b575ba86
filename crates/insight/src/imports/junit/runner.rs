//! Collects what a recording shows about a process that runs tests: when it can begin or end a test, and for which of
//! its children it waits.

use std::collections::HashMap;

use tr_analyze::model::{Analysis, ProcessIx};
use tr_analyze::timeline::{Actor, Bucket, Timeline};

use super::active::Active;
use crate::imports::lookup::signed;

/// The largest number of threads of a process for which it is examined whether one of them alone ran the tests.
const THREADS: usize = 64;

/// The facts about a process that decide which tests it can have run, such as when it was on a CPU.
#[derive(Clone, Debug, Default)]
pub struct RunnerFacts {
    /// The stretches of time in which any thread of the process may have been on a CPU.
    pub any: Active,
    /// For each thread of the process, the stretches of time in which it may have been on a CPU. If the tests fit
    /// into those of one thread only, that thread ran the tests. Empty for a process with one thread or with very
    /// many threads.
    pub threads: Vec<Active>,
    /// The child processes that woke the process. For each, the first and the last moment at which it did so, in
    /// nanoseconds.
    pub waited: HashMap<ProcessIx, (i64, i64)>,
}

impl RunnerFacts {
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
        Some(RunnerFacts {
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
