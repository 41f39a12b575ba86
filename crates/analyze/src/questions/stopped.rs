//! Finds the process that ended another process by a signal, and whether it did so because the other process took too
//! long.
//!
//! No event shows the sender of a signal. But a signal wakes a process that waits, and the recording has the task that
//! woke it. If the process was running when the signal came, the sender is not known.

use tr_format::event::{Ktime, Reason};

use crate::model::{Analysis, ProcessIx, ThreadIx};
use crate::status::killed_by;
use crate::timeline::{Actor, Bucket, Stretch, Timeline, Wait};

/// The largest number of stretches of a thread's timeline before a moment that are searched for the reason of a signal.
const MOST_STRETCHES: usize = 64;

/// The largest number of threads of a process that are searched for the reason of a signal.
const THREADS: usize = 64;

/// The longest time in ns that a thread works after a signal that kills it, before it begins to exit. The number is a
/// guess: with a longer time, a sender would be blamed for the end of a process that ended itself.
const PROMPT_EXIT: u64 = 100_000;

/// If a thread has worked for this many ns since its waking, it was woken for its work, and not by a signal. The number
/// is a guess: with a longer time, a signal that a worker sends on its own would be taken for a signal that the worker
/// only passes on.
const LONG_WORK: u64 = 20_000_000;

/// A program counts as checking in a loop whether a process has ended if it has slept briefly at least this many times
/// in a row. [`NAP`] is the longest such sleep in ns. Both numbers are guesses: with fewer or longer sleeps, ordinary
/// pauses before a kill would count as such loops.
const LEAST_LOOKS: usize = 5;
const NAP: u64 = 100_000_000;

/// The sender of the signal that killed a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    pub process: ProcessIx,
    /// Whether the sender can have woken the killed process at that moment only by a signal.
    pub is_proven: bool,
    /// Whether the sender sent the signal because of a time-out.
    pub time_out: TimeOut,
}

/// Whether the sender of a signal had waited until a time-out before it sent the signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeOut {
    /// Nothing shows that the sender of the signal had reached a time-out.
    No,
    /// The sender of the signal waited for descriptors or a lock until a timer ended the wait, or the sender checked
    /// something again and again with short sleeps in between.
    Perhaps,
    /// The sender of the signal waited for its child or for a signal until a timer ended the wait.
    Proven,
}

/// The sender of the signal that killed a process; `None` if no signal did, or if the recording does not show who sent
/// it.
pub fn sender(analysis: &Analysis, process: ProcessIx) -> Option<Sender> {
    let timeline = analysis.timeline.as_ref()?;
    let process = analysis.process(process);
    killed_by(process.status)?;
    let threads = process.threads.iter().copied().take(THREADS);
    threads
        .filter_map(|thread| woken_to_exit(analysis, timeline, thread))
        .max_by_key(|sender| sender.is_proven)
}

/// The sender of the signal that killed a thread. The task that woke the thread last is taken for the sender, if the
/// thread did hardly any work after this waking.
fn woken_to_exit(analysis: &Analysis, timeline: &Timeline, ix: ThreadIx) -> Option<Sender> {
    let thread = analysis.thread(ix);
    let end = thread.exited.unwrap_or(thread.end);
    let mut worked = 0u64;
    for stretch in backwards(timeline, ix, end) {
        match stretch.doing {
            Bucket::OnCpu(_) => {
                let to = stretch.to.min(end);
                worked = worked.saturating_add(to.since(stretch.from.min(to)));
            }
            Bucket::RunQueue { .. } => {}
            Bucket::Unknown => return None,
            // Only the waker of a sleeping thread can be the sender. For example, a debugger ends the stop of a thread
            // that it traces, whoever sent the signal.
            Bucket::Wait(wait) if wait != Wait::Sleep => return None,
            Bucket::Wait(_) => {
                let Actor::Thread(by) = stretch.waker() else {
                    return None;
                };
                let sender = analysis.thread(by);
                // A thread that exits wakes its parent and the readers of its pipes. So a waker that had begun to
                // exit did not send a signal.
                let ends = sender.exited.is_some_and(|exited| exited <= stretch.to);
                if ends || sender.process == thread.process || worked > LONG_WORK {
                    return None;
                }
                let by_signal = matches!(
                    stretch.reason,
                    Reason::Child | Reason::Signal | Reason::Timer
                );
                return Some(Sender {
                    process: sender.process,
                    is_proven: by_signal || worked <= PROMPT_EXIT,
                    time_out: time_out(timeline, by, stretch.to),
                });
            }
        }
    }
    None
}

/// The time of the last waking of a process's threads by a process that `is_sender` accepts. Only waits are
/// searched whose reason `counts` accepts. The waking may be some time before the exit, because a process that
/// handles a signal works for a while before it exits.
pub fn woken_before_exit(
    analysis: &Analysis,
    process: ProcessIx,
    is_sender: impl Fn(ProcessIx) -> bool,
    counts: impl Fn(Reason) -> bool,
) -> Option<Ktime> {
    let timeline = analysis.timeline.as_ref()?;
    let threads = analysis.process(process).threads.iter().take(THREADS);
    let woken = threads.filter_map(|ix| {
        let thread = analysis.thread(*ix);
        let end = thread.exited.unwrap_or(thread.end);
        let mut waits = waits_before(timeline, *ix, end).filter(|wait| counts(wait.reason));
        let wait = waits.find(|wait| {
            let Actor::Thread(by) = wait.waker() else {
                return false;
            };
            let sender = analysis.thread(by);
            let ends = sender.exited.is_some_and(|exited| exited <= wait.to);
            wait.doing == Bucket::Wait(Wait::Sleep) && !ends && is_sender(sender.process)
        });
        wait.map(|wait| wait.to)
    });
    woken.max()
}

/// Whether the process `by` can have sent the signal that killed another process. For this, `by` must have been on a
/// CPU after the last wait of a thread of the killed process, because all signals that were sent before had been
/// handled by then.
pub fn may_have_sent(analysis: &Analysis, killed: ProcessIx, by: ProcessIx) -> bool {
    let Some(timeline) = analysis.timeline.as_ref() else {
        return true;
    };
    let threads = analysis.process(killed).threads.iter().take(THREADS);
    let spans = threads.map(|ix| {
        let thread = analysis.thread(*ix);
        let end = thread.exited.unwrap_or(thread.end);
        let last = backwards(timeline, *ix, end)
            .take_while(|stretch| !matches!(stretch.doing, Bucket::Wait(_)))
            .last();
        (last.map_or(end, |stretch| stretch.from), end)
    });
    let (Some(from), Some(to)) = (
        spans.clone().map(|(from, _)| from).min(),
        spans.map(|(_, to)| to).max(),
    ) else {
        return true;
    };
    let mut senders = analysis.process(by).threads.iter().take(THREADS);
    senders.any(|ix| {
        let stretches = backwards(timeline, *ix, to);
        let mut stretches = stretches.take_while(|stretch| stretch.to >= from);
        stretches.any(|stretch| matches!(stretch.doing, Bucket::OnCpu(_) | Bucket::Unknown))
    })
}

/// Whether a thread acted at the time `at`, for example by sending a signal, because a time-out had come.
fn time_out(timeline: &Timeline, thread: ThreadIx, at: Ktime) -> TimeOut {
    let Some(wait) = last_wait(timeline, thread, at) else {
        return TimeOut::No;
    };
    if !wait.waker().is_timer() {
        return TimeOut::No;
    }
    match wait.reason {
        Reason::Child | Reason::Signal => TimeOut::Proven,
        Reason::Poll | Reason::Lock => TimeOut::Perhaps,
        Reason::Timer if looks_again(timeline, thread, at) => TimeOut::Perhaps,
        _ => TimeOut::No,
    }
}

/// Whether the last waits of a thread before a moment were at least [`LEAST_LOOKS`] short sleeps.
fn looks_again(timeline: &Timeline, thread: ThreadIx, at: Ktime) -> bool {
    let waits = waits_before(timeline, thread, at);
    let naps = waits.take_while(|wait| {
        let is_sleep = wait.reason == Reason::Timer && wait.waker().is_timer();
        is_sleep && wait.length() <= NAP
    });
    naps.take(LEAST_LOOKS).count() == LEAST_LOOKS
}

/// The last wait of a thread before a moment.
pub(crate) fn last_wait(timeline: &Timeline, thread: ThreadIx, at: Ktime) -> Option<Stretch> {
    waits_before(timeline, thread, at).next()
}

/// The waits of a thread before a moment, the last one first.
fn waits_before(
    timeline: &Timeline,
    thread: ThreadIx,
    at: Ktime,
) -> impl Iterator<Item = Stretch> + '_ {
    let stretches = backwards(timeline, thread, at);
    stretches.filter(|stretch| matches!(stretch.doing, Bucket::Wait(_)))
}

/// The stretches of a thread that begin before a moment, the last one first.
fn backwards(
    timeline: &Timeline,
    thread: ThreadIx,
    at: Ktime,
) -> impl Iterator<Item = Stretch> + '_ {
    let last = timeline.number_before(thread, at);
    let numbers = last.map(|last| last.saturating_sub(MOST_STRETCHES)..=last);
    let numbers = numbers.into_iter().flatten().rev();
    numbers.filter_map(move |number| timeline.get(thread, number))
}
