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
const TIMED_REASONS: [Reason; 7] = [
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
const LEAST_TIMEOUTS: usize = 8;
/// The largest number of a process's other threads that are searched for a thread that waited for the end of a given
/// thread. Also the largest number of stretches (times in one state) of each of these threads that are searched.
const MOST_SEARCHED: usize = 64;
/// The largest number of stretches (times in one state) of each other thread that are searched for work while a thread
/// slept. This limit bounds the work of `tr`.
const MOST_STRETCHES: usize = 10_000;
/// The longest time in ns that a thread may work between the moment at which its process begins to end and its own end.
/// The number is a guess: with a longer time, a thread's last work would be taken for its end.
const LONGEST_ENDING: u64 = 1_000_000;
/// A divisor: a wait shorter than 1/100 of the loop's last tick is skipped, because it is not a wait of the loop
/// itself. Example: a short wait for an interpreter's lock before the thread's work. A wait whose system call has the
/// loop's time-out is never skipped. The number is a guess: with a smaller one, different loops would be joined to one.
const SHORT_WAIT: u64 = 100;

impl Builder<'_> {
    /// The beginnings of a thread's ticks. A tick is a wait that ends with a time-out, after which the thread goes on
    /// waiting. Between these waits the thread does other things for less time than it waits.
    pub(super) fn ticks(&self, thread: ThreadIx) -> HashSet<Ktime> {
        let timeline = self.graph.timeline;
        let mut reasons = TIMED_REASONS.iter();
        if !reasons.any(|reason| timeline.may_wait(thread, *reason)) {
            return HashSet::new();
        }
        let mut search = TickSearch::new(self, thread);
        for stretch in timeline.of(thread) {
            search.see(stretch);
        }
        search.finish()
    }

    /// Whether a sleep of a thread that began at the given time is on the critical path.
    fn decides(&self, thread: ThreadIx, from: Ktime) -> bool {
        self.sleeps.contains(&(thread, from))
    }

    /// Whether the other threads of the process together worked for more than half of the time from a thread's first
    /// sleep on the critical path to its last one, or whether it has fewer than two such sleeps. Then the thread is in
    /// the background, and on the path only because another thread waited for its end. `from` has the sleeps' starts.
    fn is_beside_work(&self, thread: ThreadIx, from: &[Ktime]) -> bool {
        let mut decisive = from.iter().filter(|from| self.decides(thread, **from));
        match (decisive.next(), decisive.next_back()) {
            (Some(first), Some(last)) => self.others_work(thread, *first, *last),
            _ => true,
        }
    }

    /// Whether the other threads of a thread's process together worked for more than half of the time between two
    /// moments. If the limit of the search (`looks`) is used up, they are taken to have done so.
    fn others_work(&self, thread: ThreadIx, first: Ktime, last: Ktime) -> bool {
        let analysis = self.graph.analysis;
        let timeline = &self.graph.timeline;
        let own = &analysis.process(analysis.thread(thread).process).threads;
        let others = own
            .iter()
            .filter(|other| **other != thread)
            .take(MOST_SEARCHED);
        let works = others.flat_map(|other| {
            let parts = timeline.since(*other, first).take(MOST_STRETCHES);
            let parts = parts.take_while(|part| part.from < last);
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
                let length = work.to.min(last).since(work.from.max(first));
                sum = sum.saturating_add(length);
            }
        }
        sum.saturating_mul(2) > last.since(first)
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

    /// Whether another thread of the process waited for the end of this thread, at most twice as long as this thread's
    /// last wait took. Then this thread had been asked to end, and noticed the request when its time-out came.
    fn is_joined(&self, thread: ThreadIx, last: &Stretch) -> bool {
        let analysis = self.graph.analysis;
        let process = analysis.process(analysis.thread(thread).process);
        let others = process.threads.iter().filter(|other| **other != thread);
        let timeline = &self.graph.timeline;
        let mut waits = others.take(MOST_SEARCHED).flat_map(|other| {
            let stretches = timeline.since(*other, last.to).take(MOST_SEARCHED);
            stretches
                .filter(|stretch| {
                    stretch.doing == Bucket::Wait(Wait::Sleep) && stretch.to >= last.to
                })
                .filter(|stretch| self.waker(*other, stretch) == Some(thread))
        });
        waits.any(|wait| wait.length() <= last.length().saturating_mul(2))
    }
}

/// The loop in which a thread waits again and again with a time-out, as far as the thread's stretches have been seen.
struct WaitLoop {
    /// The beginnings of the waits of the thread's loop so far, all of which ended with a time-out. If another thread
    /// of the run ends a later wait of the loop, these waits become ticks, which the simulation leaves out. Waits on
    /// the critical path never become ticks.
    open: Vec<Ktime>,
    reason: Reason,
    /// The length in ns of the last wait in the loop in which the thread waits again and again.
    waited: u64,
    /// The time in ns in which the thread did other things since the last wait in its loop of waits.
    between: u64,
    /// The time-out of the last wait in the loop in which the thread waits again and again.
    timeout: Timeout,
}

impl WaitLoop {
    fn empty() -> WaitLoop {
        WaitLoop {
            open: Vec::new(),
            reason: Reason::Unknown,
            waited: 0,
            between: 0,
            timeout: Timeout::UNKNOWN,
        }
    }

    /// Whether a wait belongs to the loop in which the thread waits again and again with a time-out. At the end of a
    /// process, the runtime of its language may also wait for the other threads. Such a wait has no time-out and does
    /// not belong to the loop. But an event loop (poll and the like) waits without a time-out when it has no timer left.
    fn has(&self, wait: &Stretch) -> bool {
        self.reason == wait.reason && (wait.timeout != Timeout::NONE || wait.reason == Reason::Poll)
    }

    /// Whether a wait has the same reason and time-out as the last wait in the thread's loop of waits. Such a wait is
    /// part of the loop even if it is short. For example, right after a time-out of the loop there came a request, or a
    /// signal that ended the server.
    fn repeats(&self, wait: &Stretch) -> bool {
        let least = self.timeout.least();
        wait.reason == self.reason && least.is_some() && wait.timeout.least() == least
    }

    /// Whether a wait that no time-out ended is too short to belong to the thread's loop of waits.
    fn skips(&self, wait: &Stretch) -> bool {
        let is_short = wait.length() < self.waited / SHORT_WAIT;
        !self.open.is_empty() && is_short && !self.repeats(wait)
    }

    fn add_between(&mut self, ns: u64) {
        self.between = self.between.saturating_add(ns);
    }

    /// Adds a wait that ended with a time-out to the thread's loop of waits.
    fn add(&mut self, wait: &Stretch) {
        self.open.push(wait.from);
        self.reason = wait.reason;
        self.waited = wait.length();
        self.between = 0;
        self.timeout = wait.timeout;
    }
}

/// The search for a thread's ticks, stretch by stretch.
struct TickSearch<'a, 'b> {
    builder: &'a Builder<'b>,
    thread: ThreadIx,
    ticks: HashSet<Ktime>,
    /// The beginnings of all waits that a time-out ended.
    timeouts: Vec<Ktime>,
    now: WaitLoop,
    /// The waits since the last wait of the thread's loop of waits (`now`) that a time-out ended and that do not belong
    /// to this loop, if they have one reason and one time-out. An example are the waits of a server's loop after the
    /// server slept once.
    aside: Option<WaitLoop>,
    /// The time at which a time-out last ended a wait.
    ended: Ktime,
    /// Whether another thread of the process ended the thread's last wait, and the thread has hardly worked since then.
    stopped: bool,
    /// The thread's last wait if a time-out ended it and the thread has hardly worked since then; otherwise `None`.
    last: Option<Stretch>,
}

impl<'a, 'b> TickSearch<'a, 'b> {
    fn new(builder: &'a Builder<'b>, thread: ThreadIx) -> TickSearch<'a, 'b> {
        TickSearch {
            builder,
            thread,
            ticks: HashSet::new(),
            timeouts: Vec::new(),
            now: WaitLoop::empty(),
            aside: None,
            ended: Ktime(0),
            stopped: false,
            last: None,
        }
    }

    /// Takes the next stretch of the thread's time into account.
    fn see(&mut self, stretch: Stretch) {
        let length = stretch.length();
        match stretch.doing {
            Bucket::RunQueue { .. } | Bucket::Unknown => {}
            Bucket::OnCpu(_) => {
                self.now.add_between(length);
                self.aside
                    .iter_mut()
                    .for_each(|aside| aside.add_between(length));
                self.stopped &= length < LONGEST_ENDING;
                self.last = self.last.filter(|_| length < LONGEST_ENDING);
            }
            Bucket::Wait(Wait::Sleep) => self.see_sleep(stretch),
            // A tracer can stop the task after the time-out, while the task is still in the system call. Such a stop is
            // no wait of the loop but counts as time between two waits.
            Bucket::Wait(_) => self.now.add_between(length),
        }
    }

    fn see_sleep(&mut self, sleep: Stretch) {
        let timed = TIMED_REASONS.contains(&sleep.reason) && sleep.waker().is_timer();
        let by = self.builder.waker(self.thread, &sleep).filter(|_| !timed);
        let is_loops = self.now.has(&sleep);
        self.stopped = is_loops && by.is_some_and(|by| self.is_of_process(by));
        self.last = timed.then_some(sleep);
        if timed {
            self.timeouts.push(sleep.from);
        } else if self.now.skips(&sleep) {
            self.now.add_between(sleep.length());
            return;
        }
        self.forget_timers_of_work(&sleep);
        if timed {
            self.ended = sleep.to;
        }
        // A wait that is not part of the thread's loop of waits counts like the work between two waits of the loop.
        if !is_loops {
            self.now.add_between(sleep.length());
        }
        if self.now.between > self.now.waited {
            self.now.open.clear();
        }
        if !is_loops && !self.now.open.is_empty() {
            if timed && sleep.length() >= self.now.waited / SHORT_WAIT {
                self.see_aside(&sleep);
            }
            return;
        }
        self.aside = None;
        if timed {
            self.now.add(&sleep);
        } else {
            self.end_loop(by.is_some());
        }
    }

    /// Takes a wait into account that a time-out ended and that does not belong to the thread's loop of waits. If it
    /// has the reason and the time-out of the wait before it, the two begin a new loop.
    fn see_aside(&mut self, sleep: &Stretch) {
        let mut aside = match self.aside.take() {
            Some(aside) if aside.repeats(sleep) && aside.between <= aside.waited => aside,
            _ => WaitLoop::empty(),
        };
        aside.add(sleep);
        if aside.open.len() > 1 {
            self.now = aside;
        } else {
            self.aside = Some(aside);
        }
    }

    /// Whether a thread belongs to the process of the searched thread.
    fn is_of_process(&self, thread: ThreadIx) -> bool {
        let process = |thread| self.builder.graph.analysis.thread(thread).process;
        process(thread) == process(self.thread)
    }

    /// Forgets the waits of an event loop if the thread woke or started another process after the last time-out. The
    /// event loop had then set the timer for this work, and the time-out was no tick.
    fn forget_timers_of_work(&mut self, sleep: &Stretch) {
        let is_poll = self.now.reason == Reason::Poll;
        if is_poll
            && self
                .builder
                .woke_another(self.thread, self.ended, sleep.from)
        {
            self.now.open.clear();
            self.aside = None;
        }
    }

    /// Ends the thread's loop of waits, because no time-out ended the present wait. `is_woken` is whether another
    /// thread of the run ended this wait.
    fn end_loop(&mut self, is_woken: bool) {
        let open = std::mem::take(&mut self.now.open);
        if is_woken {
            // Waits on the critical path do not become ticks. The run went on because such a wait ended, and not
            // because of the thread that ended the last wait of the loop.
            let (builder, thread) = (self.builder, self.thread);
            let ticks = open.into_iter();
            self.ticks
                .extend(ticks.filter(|from| !builder.decides(thread, *from)));
        }
    }

    /// Whether none of the time-outs is on the critical path, and the other threads of the process work meanwhile. A
    /// runtime has such threads, which look after the others.
    fn looks_after_others(&self) -> bool {
        let (builder, thread) = (self.builder, self.thread);
        let mut timeouts = self.timeouts.iter();
        let (Some(first), Some(last)) = (timeouts.next(), timeouts.next_back()) else {
            return false;
        };
        let decides = |from: &Ktime| builder.decides(thread, *from);
        !self.timeouts.iter().any(decides) && builder.others_work(thread, *first, *last)
    }

    /// The beginnings of the thread's ticks: waits that a time-out ended, after which the thread went on waiting. In a
    /// thread with many time-outs that ends with its process, or that looks after other threads, all of them are ticks,
    /// except those on the critical path if the other threads did not work beside them.
    fn finish(mut self) -> HashSet<Ktime> {
        let (builder, thread) = (self.builder, self.thread);
        let is_joined = || {
            self.last
                .is_some_and(|last| builder.is_joined(thread, &last))
        };
        let is_background = || self.stopped || is_joined() || self.looks_after_others();
        if self.timeouts.len() >= LEAST_TIMEOUTS && is_background() {
            let is_beside = builder.is_beside_work(thread, &self.timeouts);
            let is_tick = |from: &Ktime| is_beside || !builder.decides(thread, *from);
            let timeouts = self.timeouts.into_iter();
            self.ticks.extend(timeouts.filter(is_tick));
        }
        self.ticks
    }
}
