//! The time of a thread that depends on no other thread: its work and its own waits.

use tr_format::event::{Ktime, Reason};

use super::builder::{Builder, WAKE_UP};
use super::change::Changes;
use super::ops::{List, What};
use crate::kinds::TimeKind;
use crate::model::ThreadIx;
use crate::programs::Group;
use crate::questions::graph::StretchCause;
use crate::share;
use crate::timeline::{Bucket, Stretch};

/// The size of a large process in bytes. A process with a larger resident set finds less of its data in the caches of
/// its CPU after another task had the CPU. In 118 real runs, compilations took 5 to 25 % more CPU time then, and loops
/// that use no memory did not.
const LARGE_PROCESS: u64 = 8 << 20;

/// The time in ns that a process works until the caches of its CPU are filled again: a time slice. The number is a
/// guess from the scheduler's slice of 3 to 4 ms; with it 114 of 118 real runs were within their forecast intervals.
const REFILL: u64 = 4_000_000;

impl Builder<'_> {
    /// Adds to a thread's operations a stretch of the thread (a time in one state) that depends on no other thread.
    /// Actions of the thread in this time on which other threads depend, such as wakings, are added as well. `cold` is
    /// whether another task had the CPU before.
    pub(super) fn own_time(
        &self,
        list: &mut List,
        thread: ThreadIx,
        (stretch, cause): (&Stretch, StretchCause),
        cold: bool,
    ) {
        let (mut from, to) = (stretch.from.max(self.from), stretch.to.min(self.to));
        let process = self.graph.analysis.thread(thread).process;
        let kind = self.own_kind(thread, stretch, cause);
        if let Bucket::RunQueue { preempted } = stretch.doing {
            let woken = if preempted {
                0
            } else {
                to.since(from).min(WAKE_UP)
            };
            list.push(What::Delay, 0, woken, to);
            return;
        }
        let work = matches!(stretch.doing, Bucket::OnCpu(_));
        let memory = self.graph.analysis.process(process).resources.max_rss;
        let large = memory.is_some_and(|bytes| bytes > LARGE_PROCESS);
        let working = if large { What::Warm } else { What::Work };
        let what = if work { working } else { What::Delay };
        let hidden = (stretch.doing == Bucket::Unknown).then(|| self.hidden(thread));
        let warm = if cold && what == What::Warm {
            Ktime(stretch.from.0.saturating_add(REFILL))
        } else {
            stretch.from
        };
        let waits = matches!(stretch.doing, Bucket::Wait(_));
        if !waits {
            self.marks_until(list, thread, from);
        }
        while from < to {
            let next = list.marks.peek().map(|(at, _)| *at);
            let until = next
                .filter(|at| !waits && *at > from)
                .map_or(to, |at| at.min(to));
            let (what, until) = if from < warm {
                (What::Cold, until.min(warm))
            } else {
                (what, until)
            };
            self.groups
                .split(process, from, until, |group, from, until| {
                    let mask = |kind| self.changes_of((kind, stretch.reason), group);
                    let ns = until.since(from);
                    let (work, rest) = hidden.map_or((0, ns), |hidden| hidden.divide(ns));
                    if work > 0 {
                        list.push(working, mask(TimeKind::OnCpu), work, until);
                    }
                    list.push(what, mask(kind), rest, until);
                });
            if !waits {
                self.marks_until(list, thread, until);
            }
            from = until;
        }
    }

    /// The set of the assumed changes that leave out a wait of a thread which depends on no other thread.
    pub(super) fn changes_of_wait(
        &self,
        thread: ThreadIx,
        wait: &Stretch,
        cause: StretchCause,
    ) -> Changes {
        let process = self.graph.analysis.thread(thread).process;
        let kind = self.own_kind(thread, wait, cause);
        let group = self.groups.at(process, wait.from);
        group.map_or(0, |group| self.changes_of((kind, wait.reason), group))
    }

    /// The set of the assumed changes that leave out time of the given kind, which a program spent in system calls of
    /// the given class.
    fn changes_of(&self, time: (TimeKind, Reason), group: Group) -> Changes {
        self.mask(|change| change.time.leaves_out(time, Some(group)))
    }

    /// The kind of a thread's time that depends on no other thread.
    fn own_kind(&self, thread: ThreadIx, stretch: &Stretch, cause: StretchCause) -> TimeKind {
        match cause {
            StretchCause::Own(kind) => kind,
            StretchCause::Thread(by) if self.is_chance(thread, by, stretch) => {
                self.graph.wait(thread, stretch, false)
            }
            // The thread that ended the wait is not part of the simulated run or is the waiting thread, or the wait
            // ends after the run. So the simulation cannot show how long the wait would be.
            StretchCause::Thread(_) => TimeKind::Unknown,
        }
    }

    /// The parts of the thread's unknown time that the kernel's totals show as time on a CPU and in run queues.
    fn hidden(&self, thread: ThreadIx) -> Hidden {
        let thread = self.graph.analysis.thread(thread);
        Hidden {
            on_cpu: thread.by_kernel.on_cpu,
            run_queue: thread.by_kernel.run_queue,
            all: thread.times_by_events().unknown,
        }
    }
}

/// How much of a thread's unknown time (`all`) the thread spent on a CPU and in run queues, in ns, by the kernel's
/// totals for the thread's whole life. The totals do not show when the thread ran, so each piece of the unknown time is
/// split in the same proportion.
#[derive(Clone, Copy)]
struct Hidden {
    on_cpu: u64,
    run_queue: u64,
    all: u64,
}

impl Hidden {
    /// Splits a part of a thread's unknown time. Returns the CPU time in it, and the rest that is neither work nor
    /// a wait in a run queue, both in ns.
    fn divide(self, ns: u64) -> (u64, u64) {
        let part = |of: u64| share(ns, of, self.all).min(ns);
        let (work, queue) = (part(self.on_cpu), part(self.run_queue));
        (work, (ns - work).saturating_sub(queue))
    }
}
