//! The graph of waits: for each stretch of a thread's time the thread that ended it.
//! [`critical_path`](crate::critical_path) follows its edges backwards,
//! [`what_if`](crate::what_if) forwards.
//!
//! A wait that a recorded thread ended has an edge to that thread, a new thread to the
//! thread that forked it. All other stretches are time of the thread's own.

use tr_format::event::{Ktime, Tid};

use crate::awaited::Awaited;
use crate::model::{Analysis, ThreadIx};
use crate::timeline::{Actor, Bucket, Stretch, Timeline};

/// The kind of a part of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// On a CPU.
    OnCpu,
    /// Waiting for a CPU; of a preempted thread the actor that took it.
    RunQueue(Actor),
    /// Waiting for a disk or a file.
    Disk,
    /// Waiting for the network.
    Network,
    /// Waiting for a terminal.
    Terminal,
    /// Asleep until a timer, or another interrupt that is not known better.
    Sleep,
    /// Stopped or traced, until an actor that is not known as a task.
    Stopped,
    /// In another uninterruptible wait that an interrupt ended.
    Blocked,
    /// Waiting for a task that is no part of the recording, or a kernel thread.
    Outside(Tid),
    /// On a CPU or not: totals do not tell what the thread did when.
    Lived,
    /// Not known: events are missing, or the wait has not ended yet.
    Unknown,
}

/// The cause of a stretch's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The time of this thread until it ended the wait.
    Thread(ThreadIx),
    /// Time of the thread's own.
    Own(Kind),
}

/// The graph of a recording.
#[derive(Clone, Copy)]
pub(crate) struct Graph<'a> {
    pub analysis: &'a Analysis,
    pub timeline: &'a Timeline,
}

impl<'a> Graph<'a> {
    /// `None` when no timeline was kept.
    pub fn new(analysis: &'a Analysis) -> Option<Graph<'a>> {
        let timeline = analysis.timeline.as_ref()?;
        Some(Graph { analysis, timeline })
    }

    /// The cause of a whole stretch of a thread.
    pub fn cause(&self, thread: ThreadIx, stretch: &Stretch) -> Cause {
        match stretch.doing {
            Bucket::OnCpu(_) => return Cause::Own(Kind::OnCpu),
            // The waker of a thread is not the task that had the CPU.
            Bucket::RunQueue { .. } => return Cause::Own(Kind::RunQueue(stretch.preempted_by())),
            Bucket::Unknown => return Cause::Own(Kind::Unknown),
            Bucket::Wait(_) => {}
        }
        match stretch.waker() {
            Actor::Thread(waker) if self.lives(waker, stretch.to) => {
                // A kernel thread works for many tasks: its own wait for work explains nothing
                // of this wait. It is treated like a kernel thread that is not recorded.
                let waker_is = self.analysis.thread(waker);
                match self.analysis.process(waker_is.process).kthread {
                    true => Cause::Own(self.outside(thread, stretch, waker_is.tid)),
                    false => Cause::Thread(waker),
                }
            }
            Actor::Outside(tid) => Cause::Own(self.outside(thread, stretch, tid)),
            Actor::Interrupt | Actor::SoftIrq => Cause::Own(self.own(thread, stretch)),
            Actor::Thread(_) | Actor::Unknown => Cause::Own(Kind::Unknown),
        }
    }

    /// A wait that a task outside of the recording or a kernel thread ended: the last step of
    /// block I/O may be a kernel thread's.
    fn outside(&self, thread: ThreadIx, stretch: &Stretch, tid: Tid) -> Kind {
        match self.analysis.awaited(thread, stretch) {
            Some(Awaited::Disk | Awaited::File) => Kind::Disk,
            _ => Kind::Outside(tid),
        }
    }

    /// The kind of a wait that no task ended.
    pub fn own(&self, thread: ThreadIx, stretch: &Stretch) -> Kind {
        match self.analysis.awaited(thread, stretch) {
            None | Some(Awaited::Unknown) => Kind::Unknown,
            Some(Awaited::Disk | Awaited::File) => Kind::Disk,
            Some(Awaited::Socket) => Kind::Network,
            Some(Awaited::Terminal) => Kind::Terminal,
            Some(Awaited::Continue) => Kind::Stopped,
            Some(Awaited::Kernel | Awaited::Vfork) => Kind::Blocked,
            Some(_) => Kind::Sleep,
        }
    }

    /// The thread that forked this one, if it lived then.
    pub fn forked_by(&self, thread: ThreadIx) -> Option<ThreadIx> {
        let thread = self.analysis.thread(thread);
        let parent = thread.parent.filter(|_| !thread.started_before);
        parent.filter(|parent| self.lives(*parent, thread.start))
    }

    /// Whether a thread lived at that moment, and did not wait. A thread that forks or wakes
    /// another runs, even if its switch-in is missing.
    pub fn lives(&self, ix: ThreadIx, at: Ktime) -> bool {
        let thread = self.analysis.thread(ix);
        let waits = |s: Stretch| s.to > at && matches!(s.doing, Bucket::Wait(_));
        thread.start <= at && at <= thread.end && !self.before(ix, at).is_some_and(waits)
    }

    /// A thread's stretch right before `time`.
    pub fn before(&self, ix: ThreadIx, time: Ktime) -> Option<Stretch> {
        let number = self.timeline.at(ix, Ktime(time.0.checked_sub(1)?))?;
        self.timeline.get(ix, number)
    }
}
