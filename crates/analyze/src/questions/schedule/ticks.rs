//! Timeouts after which a thread goes on waiting: ticks of one wait.
//!
//! `pthread_cond_timedwait` in a loop, a background thread that sleeps and looks: when the wait
//! comes to its end earlier in a simulated run, the thread does not wait for its timeout. A loop whose last wait another
//! thread ended, by a waking or by ending the process, has its end from that thread alone.

use std::collections::HashSet;

use tr_format::event::{Ktime, Reason};

use super::build::Builder;
use crate::model::ThreadIx;
use crate::timeline::{Actor, Bucket, Stretch, Wait};

/// Calls that a timeout ends.
fn has_timeout(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Lock
            | Reason::Timer
            | Reason::Signal
            | Reason::Poll
            | Reason::SocketRead
            | Reason::SocketWrite
            // A timerfd. The interrupt of a disk, too, wakes the readers of an eventfd: rarely one without a task.
            | Reason::OtherDescriptor
    )
}

/// A thread in the background looks more often than this before its process ends.
const PERIODIC: usize = 8;
/// The most threads of a process that are asked whether they waited for one's end, and the most
/// stretches of each.
const MOST: usize = 64;
/// The longest time in ns that a thread works to end, once its process ends.
const ENDING: u64 = 1_000_000;
/// A wait of less than this part of the timeout before it is another one's: for the lock of an
/// interpreter, which the thread takes before it does what it slept for.
const SHORT: u64 = 100;

impl Builder<'_> {
    /// The beginnings of a thread's waits that are ticks of a later one. Between them it does other
    /// things for less time than it waits.
    pub(super) fn ticks(&self, thread: ThreadIx) -> HashSet<Ktime> {
        let mut ticks = HashSet::new();
        let mut timeouts: Vec<Ktime> = Vec::new();
        // Those that are ticks if the next wait is one, or if a thread of the run ends it.
        let mut open: Vec<Ktime> = Vec::new();
        let (mut reason, mut waited, mut between) = (Reason::Unknown, 0, 0u64);
        let mut stopped = false;
        // The last wait, if it was a timeout and the thread did nothing long after it.
        let mut last = None;
        for stretch in self.graph.timeline.of(thread) {
            let length = stretch.length();
            match stretch.doing {
                Bucket::RunQueue { .. } | Bucket::Unknown => continue,
                Bucket::OnCpu(_) => {
                    between = between.saturating_add(length);
                    stopped &= length < ENDING;
                    last = last.filter(|_| length < ENDING);
                    continue;
                }
                Bucket::Wait(Wait::Sleep) => {}
                // A tracer stops a task in the call that its timeout has ended.
                Bucket::Wait(_) => {
                    between = between.saturating_add(length);
                    continue;
                }
            }
            let timed = has_timeout(stretch.reason) && stretch.waker() == Actor::Interrupt;
            let by = self.waker(thread, &stretch).filter(|_| !timed);
            let process = |it| self.graph.analysis.thread(it).process;
            stopped = by.is_some_and(|by| process(by) == process(thread));
            last = timed.then_some(stretch);
            if timed {
                timeouts.push(stretch.from);
            }
            if !timed && !open.is_empty() && length < waited / SHORT {
                between = between.saturating_add(length);
                continue;
            }
            let same = reason == stretch.reason;
            if !same {
                between = between.saturating_add(length);
            }
            if between > waited {
                open.clear();
            }
            match (timed, same || open.is_empty()) {
                (true, true) => {
                    open.push(stretch.from);
                    (reason, waited, between) = (stretch.reason, length, 0);
                }
                (false, true) => {
                    if by.is_some() {
                        ticks.extend(open.iter().copied());
                    }
                    open.clear();
                }
                (_, false) => {}
            }
        }
        if timeouts.len() >= PERIODIC
            && (stopped || last.is_some_and(|last| self.is_joined(thread, &last)))
        {
            ticks.extend(timeouts);
        }
        ticks
    }

    /// A thread of the process waited for the end of this one, and for little more than the timeout:
    /// it had been told to end, and saw that at its next look.
    fn is_joined(&self, thread: ThreadIx, last: &Stretch) -> bool {
        let analysis = self.graph.analysis;
        let process = analysis.process(analysis.thread(thread).process);
        let others = process.threads.iter().filter(|it| **it != thread);
        let timeline = &self.graph.timeline;
        let mut waits = others.take(MOST).flat_map(|other| {
            let stretches = timeline.since(*other, last.to).take(MOST);
            stretches
                .filter(|it| it.doing == Bucket::Wait(Wait::Sleep) && it.to >= last.to)
                .filter(|it| self.waker(*other, it) == Some(thread))
        });
        waits.any(|it| it.length() <= last.length().saturating_mul(2))
    }
}
