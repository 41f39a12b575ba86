//! Finds ticks: time-outs after which a thread waits again for the same descriptors with the same time-out, until
//! something else ends a wait, as in the loop of a server. Together, these waits are one wait for what ends the last of
//! them.

use std::collections::HashMap;

use tr_format::event::{Ktime, Reason, Timeout};

use crate::ids::ThreadIx;
use crate::timeline::{Actor, Bucket, Stretch, Timeline};

/// A divisor: between two waits of a loop, the thread may work for at most one tenth of a wait's length. The number is
/// a guess, verified with the thread by which pytest-xdist reads a queue: if more work were allowed, a wait before real
/// work would count as a tick.
const BETWEEN_PART: u64 = 10;
/// If a thread ended a wait of another thread, at most this many stretches (times in one state) of the first thread are
/// searched for a waking by the other thread. The number is a guess: an answer to a request takes a few stretches.
const ANSWER: usize = 1000;

/// For each thread, the beginnings of its ticks, in order. A tick is a wait that ends with a time-out, after which the
/// thread waits again for the same descriptors.
#[derive(Clone, Debug, Default)]
pub struct Ticks(HashMap<ThreadIx, Vec<Ktime>>);

impl Ticks {
    pub(crate) fn of(timeline: &Timeline, threads: impl Iterator<Item = ThreadIx>) -> Ticks {
        let polls = threads.filter(|thread| timeline.may_wait(*thread, Reason::Poll));
        let all = polls.map(|thread| {
            let answers = |by: ThreadIx, tick: Ktime, wait: &Stretch| {
                by != thread && answers(timeline, (thread, tick), (by, wait.to))
            };
            (thread, of_thread(timeline.of(thread), answers))
        });
        Ticks(all.filter(|(_, ticks)| !ticks.is_empty()).collect())
    }

    /// Whether the wait of a thread that began at the time `wait` is a tick: it ended with a time-out, after which
    /// the thread waited again for the same descriptors.
    pub(crate) fn has(&self, thread: ThreadIx, wait: Ktime) -> bool {
        let ticks = self.0.get(&thread);
        ticks.is_some_and(|ticks| ticks.binary_search(&wait).is_ok())
    }
}

/// Whether a thread ended a wait only to answer a request of the waiting thread. This is the case if the waiting thread
/// had woken or started the answering thread since the last tick (a time-out of the waiting thread's loop). Then the
/// timer is the real cause of the wait's end. `asker` is the waiting thread and the end of its tick; `answer` is the
/// answering thread and the end of the wait.
fn answers(timeline: &Timeline, asker: (ThreadIx, Ktime), answer: (ThreadIx, Ktime)) -> bool {
    let ((asker, tick), (by, end)) = (asker, answer);
    let since = timeline.since(by, tick).take(ANSWER);
    let mut since = since.take_while(|stretch| stretch.from < end);
    since.any(|stretch| stretch.to >= tick && stretch.waker() == Actor::Thread(asker))
}

/// The beginnings of the ticks among the stretches of a thread: waits that end with a time-out, after which the thread
/// waits again for the same descriptors. `answers(by, time, wait)` returns whether the thread `by` ended `wait` only
/// because the waiting thread had woken `by` after `time`.
fn of_thread(
    stretches: impl Iterator<Item = Stretch>,
    answers: impl Fn(ThreadIx, Ktime, &Stretch) -> bool,
) -> Vec<Ktime> {
    let mut ticks = Vec::new();
    let mut open: Vec<Ktime> = Vec::new();
    let mut last = Ktime(0);
    let (mut timeout, mut between, mut length) = (Timeout::UNKNOWN, 0u64, 0);
    for stretch in stretches {
        match stretch.doing {
            Bucket::RunQueue { .. } => continue,
            Bucket::Wait(_) if stretch.reason == Reason::Poll => {}
            _ => {
                between = between.saturating_add(stretch.length());
                continue;
            }
        }
        let goes_on = stretch.timeout == timeout && between <= length / BETWEEN_PART;
        if !goes_on {
            open.clear();
        }
        match stretch.waker() {
            Actor::Timeout { .. } => {
                open.push(stretch.from);
                (timeout, between, length) = (stretch.timeout, 0, stretch.length());
                last = stretch.to;
            }
            // After the last time-out, the thread sent a request, and the answer has now ended its wait. So the timer
            // was set for this request, and the time-out was no tick.
            Actor::Thread(by) if !open.is_empty() && answers(by, last, &stretch) => open.clear(),
            _ => ticks.append(&mut open),
        }
    }
    ticks
}
