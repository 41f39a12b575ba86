//! Finds the thread that ended a process of several threads.
//!
//! This thread need not be the last one to leave its CPU: a thread that compiles, collects garbage or watches other
//! threads is killed by `exit_group` in the middle of work that nothing waited for. The leader counts as the thread
//! that ended the process if no other thread was asleep after the leader began to exit, because a killed thread only
//! finishes its work in the kernel and does not wait for others.

use tr_format::event::Ktime;

use crate::arena::Arena;
use crate::model::{Analysis, Basis, Process, ProcessIx, ThreadIx};
use crate::timeline::{Bucket, Timeline, Wait};

/// The leader thread of a process, if it ended the process, and the time of the leader's exit.
pub(super) type Ender = (ThreadIx, Ktime);

/// A divisor: one twentieth. If a process goes on for a longer part of its life after its leader's exit, the leader did
/// not end it. A guess: threads that exit_group(2) kills end at once, and threads that do not end with the leader work
/// for most of the process's life.
const TAIL: u64 = 20;

/// For each process, its leader, if the leader ended the process while other threads lived.
pub(super) fn of_all(analysis: &Analysis, timeline: &Timeline) -> Arena<ProcessIx, Option<Ender>> {
    let processes = analysis.process_ids().map(|ix| analysis.process(ix));
    processes
        .map(|process| of(analysis, timeline, process))
        .collect()
}

fn of(analysis: &Analysis, timeline: &Timeline, process: &Process) -> Option<Ender> {
    let (leader, others) = process.threads.split_first()?;
    if process.alive || others.is_empty() || analysis.basis() != Basis::Events {
        return None;
    }
    let at = analysis.thread(*leader).exited?;
    let slept = |thread: &ThreadIx| {
        let mut rest = timeline.since(*thread, at);
        rest.any(|stretch| stretch.to > at && stretch.doing == Bucket::Wait(Wait::Sleep))
    };
    (!others.iter().any(slept)).then_some((*leader, at))
}

/// The thread of a process in which the process's critical path ends: the leader if it ended the process, and
/// otherwise the thread that ended last.
pub(super) fn last(analysis: &Analysis, process: &Process) -> Option<ThreadIx> {
    let end_of = |ix: &ThreadIx| analysis.thread(*ix).end;
    // If several threads end at the same time, the first one of the list is taken.
    let last = process.threads.iter().rev().copied().max_by_key(end_of)?;
    let timeline = analysis.timeline.as_ref();
    let ender = timeline.and_then(|timeline| of(analysis, timeline, process));
    let ender = ender.map(|(leader, _)| leader).filter(|leader| {
        let tail = process.end.since(end_of(leader));
        tail.saturating_mul(TAIL) <= process.wall()
    });
    Some(ender.unwrap_or(last))
}
