//! Finds ticks: time-outs after which a thread goes on waiting, so that several waits in a row are really one wait.
//!
//! Examples are a loop of `pthread_cond_timedwait`, and a background thread that sleeps and checks something again and
//! again. If the awaited event comes earlier in a simulated run, the thread goes on earlier, without waiting for its
//! time-outs. So if another thread ended the last wait of a loop, by a waking or by ending the process, the end of the
//! whole loop depends on that other thread alone.

use std::collections::HashSet;

use tr_format::event::{Ktime, Reason, Timeout};

use super::builder::Builder;
use crate::model::ThreadIx;
use crate::timeline::{Bucket, Stretch, Wait};

/// The reasons for waiting that belong to system calls with a time-out.
const TIMED: [Reason; 7] = [
    Reason::Lock,
    Reason::Timer,
    Reason::Signal,
    Reason::Poll,
    Reason::SocketRead,
    Reason::SocketWrite,
    // Waits for a timerfd have this reason, and so have waits for an eventfd. If the interrupt of a disk woke a reader
    // of an eventfd, this waking would look like that of a timer, but such a case is rare.
    Reason::OtherDescriptor,
];

/// A thread that ends with its process counts as a periodic background thread if at least this many time-outs ended
/// its waits. A guess: with fewer, a thread that waited for its work several times would count as such.
const PERIODIC: usize = 8;
/// The largest number of a process's other threads that are searched for a thread that waited for the end of a given
/// thread. Also the largest number of stretches (times in one state) of each of these threads that are searched.
const MOST: usize = 64;
/// The largest number of stretches (times in one state) of each other thread that are searched for work while a thread
/// slept. This limit bounds the work of `tr`.
const PARTS: usize = 10_000;
/// The longest time in ns that a thread may work between the moment at which its process begins to end and its own end.
/// The number is a guess: with a longer time, a thread's last work would be taken for its end.
const ENDING: u64 = 1_000_000;
/// A divisor: a wait shorter than 1/100 of the loop's last tick is skipped, because it is not a wait of the loop
/// itself. Example: a short wait for an interpreter's lock before the thread's work. A wait whose system call has the
/// loop's time-out is never skipped. The number is a guess: with a smaller one, different loops would be joined to one.
const SHORT: u64 = 100;

impl Builder<'_> {
    /// The beginnings of a thread's ticks. A tick is a wait that ends with a time-out, after which the thread goes on
    /// waiting. Between these waits the thread does other things for less time than it waits.
    pub(super) fn ticks(&self, thread: ThreadIx) -> HashSet<Ktime> {
        let mut ticks = HashSet::new();
        let timeline = self.graph.timeline;
        if !TIMED
            .iter()
            .any(|reason| timeline.may_wait(thread, *reason))
        {
            return ticks;
        }
        let mut timeouts: Vec<Ktime> = Vec::new();
        // The beginnings of the waits of the present loop so far, all of which ended with a time-out. If another thread
        // of the run ends a later wait of the loop, these waits become ticks. Waits on the critical path never become
        // ticks.
        let mut open: Vec<Ktime> = Vec::new();
        let (mut reason, mut waited, mut between) = (Reason::Unknown, 0, 0u64);
        // `timeout` is the time-out of the loop's last wait. `ended` is the time at which a time-out last ended a
        // wait.
        let (mut timeout, mut ended) = (Timeout::UNKNOWN, Ktime(0));
        let mut stopped = false;
        // The thread's last wait if a time-out ended it and the thread has hardly worked since then; otherwise
        // `None`.
        let mut last = None;
        for stretch in timeline.of(thread) {
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
                // A tracer can stop the task after the time-out, while the task is still in the system call. Such a
                // stop is no wait of the loop but counts as time between two waits.
                Bucket::Wait(_) => {
                    between = between.saturating_add(length);
                    continue;
                }
            }
            let timed = TIMED.contains(&stretch.reason) && stretch.waker().is_timer();
            let by = self.waker(thread, &stretch).filter(|_| !timed);
            let process = |thread| self.graph.analysis.thread(thread).process;
            // Whether this wait belongs to the loop. At the end of a process, the runtime of its language may also wait
            // for the other threads. Such a wait has no time-out and does not belong to the loop.
            let is_loops = reason == stretch.reason && stretch.timeout != Timeout::NONE;
            stopped = is_loops && by.is_some_and(|by| process(by) == process(thread));
            last = timed.then_some(stretch);
            if timed {
                timeouts.push(stretch.from);
            }
            // A wait with the loop's reason and time-out is part of the loop even if the wait is short. For example, a
            // request came right after a tick, or a signal that ended the server came right after a tick.
            let waits_again = stretch.reason == reason
                && timeout.least().is_some()
                && stretch.timeout.least() == timeout.least();
            if !timed && !open.is_empty() && length < waited / SHORT && !waits_again {
                between = between.saturating_add(length);
                continue;
            }
            // After the last time-out, the thread woke or started another process. So the event loop had set the timer
            // for this work, and the time-out was no tick.
            if reason == Reason::Poll && self.woke_another(thread, ended, stretch.from) {
                open.clear();
            }
            if timed {
                ended = stretch.to;
            }
            // A wait that is not part of the loop counts like the work between two waits of the loop.
            if !is_loops {
                between = between.saturating_add(length);
            }
            if between > waited {
                open.clear();
            }
            match (timed, is_loops || open.is_empty()) {
                (true, true) => {
                    open.push(stretch.from);
                    (reason, waited, between) = (stretch.reason, length, 0);
                    timeout = stretch.timeout;
                }
                (false, true) => {
                    if by.is_some() {
                        // Waits on the critical path are left out. The run went on because such a wait ended, and not
                        // because of the thread that ended the loop's last wait.
                        ticks.extend(
                            open.iter()
                                .copied()
                                .filter(|from| !self.decides(thread, *from)),
                        );
                    }
                    open.clear();
                }
                (_, false) => {}
            }
        }
        if timeouts.len() >= PERIODIC
            && (stopped || last.is_some_and(|last| self.is_joined(thread, &last)))
        {
            let is_beside = self.is_beside_work(thread, &timeouts);
            let is_tick = |from: &Ktime| is_beside || !self.decides(thread, *from);
            ticks.extend(timeouts.into_iter().filter(is_tick));
        }
        ticks
    }

    /// Whether a sleep of a thread that began at the given time is on the critical path.
    fn decides(&self, thread: ThreadIx, from: Ktime) -> bool {
        self.sleeps.contains(&(thread, from))
    }

    /// Whether the other threads of the process together worked for more than half of the time from a thread's first
    /// sleep on the critical path to its last one. Then the thread is in the background. It is on the path only because
    /// another thread finally waited for its end. `from` has the beginnings of the thread's sleeps.
    fn is_beside_work(&self, thread: ThreadIx, from: &[Ktime]) -> bool {
        let analysis = self.graph.analysis;
        let timeline = &self.graph.timeline;
        let mut decisive = from.iter().filter(|from| self.decides(thread, **from));
        let (Some(first), Some(last)) = (decisive.next(), decisive.next_back()) else {
            return true;
        };
        let own = &analysis.process(analysis.thread(thread).process).threads;
        let others = own.iter().filter(|other| **other != thread).take(MOST);
        let works = others.flat_map(|other| {
            let parts = timeline.since(*other, *first).take(PARTS);
            let parts = parts.take_while(|part| part.from < *last);
            parts.map(|part| (*other, part))
        });
        let mut sum = 0u64;
        for (other, work) in works {
            let looks = self.looks.get();
            if looks == 0 {
                return true;
            }
            self.looks.set(looks - 1);
            if self.is_work(other, &work) {
                let length = work.to.min(*last).since(work.from.max(*first));
                sum = sum.saturating_add(length);
            }
        }
        sum.saturating_mul(2) > last.since(*first)
    }

    /// Whether a thread is not idle in a part of its time: it runs, waits for a CPU, or waits for a disk or for another
    /// process.
    fn is_work(&self, thread: ThreadIx, part: &Stretch) -> bool {
        let process = |thread| self.graph.analysis.thread(thread).process;
        match part.doing {
            Bucket::OnCpu(_) | Bucket::RunQueue { .. } => true,
            Bucket::Wait(Wait::Sleep) => {
                let by = self.waker(thread, part);
                by.is_some_and(|by| process(by) != process(thread))
            }
            Bucket::Wait(_) => true,
            Bucket::Unknown => false,
        }
    }

    /// Whether a thread ended a wait of another process, or started another process, in the time between two moments.
    fn woke_another(&self, thread: ThreadIx, from: Ktime, to: Ktime) -> bool {
        let answers = &self.answers[thread];
        let next = answers.partition_point(|at| *at < from);
        answers.get(next).is_some_and(|at| *at <= to)
    }

    /// Whether another thread of the process waited for the end of this thread, and waited little longer than this
    /// thread's time-out. Then this thread had been asked to end, and noticed the request when its time-out came.
    fn is_joined(&self, thread: ThreadIx, last: &Stretch) -> bool {
        let analysis = self.graph.analysis;
        let process = analysis.process(analysis.thread(thread).process);
        let others = process.threads.iter().filter(|other| **other != thread);
        let timeline = &self.graph.timeline;
        let mut waits = others.take(MOST).flat_map(|other| {
            let stretches = timeline.since(*other, last.to).take(MOST);
            stretches
                .filter(|stretch| {
                    stretch.doing == Bucket::Wait(Wait::Sleep) && stretch.to >= last.to
                })
                .filter(|stretch| self.waker(*other, stretch) == Some(thread))
        });
        waits.any(|wait| wait.length() <= last.length().saturating_mul(2))
    }
}
