//! Finds the thread that ended a process of several threads.
//!
//! It need not be the last thread to leave its CPU: a thread that compiles, collects garbage or watches other
//! threads is killed by `exit_group` in the middle of its work, for which nothing waited. The leader ended
//! the process if no other thread slept after the leader's exit, because a killed thread only finishes its
//! work in the kernel and does not begin to wait for others. In doubt it is the leader.

use tr_format::event::Ktime;

use crate::arena::Arena;
use crate::model::{Analysis, Basis, Process, ProcessIx, ThreadIx};
use crate::timeline::{Bucket, Timeline, Wait};

/// The leader of a process that ended its process, and the time of the leader's exit.
pub(super) type Ender = (ThreadIx, Ktime);

/// The part of a process's life, one twentieth, that it may go on after its leader's exit. If it goes on for longer,
/// the leader did not end it. A guess: threads that exit_group(2) kills end at once, those that go on work for most
/// of the process's life.
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

/// The thread at whose end the path of a process with several threads ends: the leader that ended the
/// process, unless the process went on for long.
pub(super) fn last(analysis: &Analysis, process: &Process) -> Option<ThreadIx> {
    let end_of = |ix: &ThreadIx| analysis.thread(*ix).end;
    // Of several that end together the first one.
    let last = process.threads.iter().rev().copied().max_by_key(end_of)?;
    let timeline = analysis.timeline.as_ref();
    let ender = timeline.and_then(|timeline| of(analysis, timeline, process));
    let ender = ender.map(|(leader, _)| leader).filter(|leader| {
        let tail = process.end.since(end_of(leader));
        tail.saturating_mul(TAIL) <= process.wall()
    });
    Some(ender.unwrap_or(last))
}
