//! What one stretch of a thread's time had to wait for: the edges of the graph
//! that [`critical_path`](crate::critical_path) goes back through and
//! [`what_if`](crate::what_if) forward.
//!
//! A wait that a recorded thread ended leads to that thread; a new thread to the
//! one that forked it; everything else is a length of time of the thread's own.

use tr_format::event::{Ktime, Tid};

use crate::model::{Analysis, Process, Thread, ThreadIx};
use crate::timeline::{Actor, Bucket, Stretch, Timeline, Wait};

/// What a piece of time was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// On a CPU.
    OnCpu,
    /// Waiting for a CPU; after being preempted: who took it.
    RunQueue(Actor),
    /// Waiting for a disk.
    Disk,
    /// Asleep until an interrupt: a timer, the network, a terminal.
    Sleep,
    /// Stopped or traced, until something that is not known as a task.
    Stopped,
    /// In another uninterruptible wait that an interrupt ended.
    Blocked,
    /// Waiting for a task that is no part of the recording, or a kernel thread.
    Outside(Tid),
    /// Not known: events are missing, or the wait has not ended yet.
    Unknown,
}

/// What explains a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// What this thread did until it ended the wait.
    Thread(ThreadIx),
    /// Nothing else: it is a length of its own.
    Own(Kind),
}

/// A recording as a graph of waits.
#[derive(Clone, Copy)]
pub(crate) struct Graph<'a> {
    pub analysis: &'a Analysis,
    pub timeline: &'a Timeline,
}

impl<'a> Graph<'a> {
    /// `None` when no timeline was kept.
    pub fn new(analysis: &'a Analysis) -> Option<Graph<'a>> {
        Some(Graph {
            analysis,
            timeline: analysis.timeline.as_ref()?,
        })
    }

    pub fn thread(&self, ix: ThreadIx) -> Option<&'a Thread> {
        self.analysis.threads.get(ix.0 as usize)
    }

    pub fn process_of(&self, ix: ThreadIx) -> Option<&'a Process> {
        let process = self.thread(ix)?.process;
        self.analysis.processes.get(process.0 as usize)
    }

    /// Why a stretch lasted until its end.
    pub fn cause(&self, stretch: &Stretch) -> Cause {
        let wait = match stretch.doing {
            Bucket::OnCpu(_) => return Cause::Own(Kind::OnCpu),
            Bucket::RunQueue { preempted: true } => {
                return Cause::Own(Kind::RunQueue(stretch.who));
            }
            // Actor woke it is not who had the CPU.
            Bucket::RunQueue { preempted: false } => {
                return Cause::Own(Kind::RunQueue(Actor::Unknown));
            }
            Bucket::Unknown => return Cause::Own(Kind::Unknown),
            Bucket::Wait(wait) => wait,
        };
        match (stretch.who, wait) {
            (Actor::Thread(waker), _) => self.woken_by(waker, wait, stretch.to),
            (Actor::Interrupt | Actor::Outside(_), Wait::Io) => Cause::Own(Kind::Disk),
            (Actor::Outside(tid), _) => Cause::Own(Kind::Outside(tid)),
            (Actor::Interrupt, Wait::Sleep) => Cause::Own(Kind::Sleep),
            (Actor::Interrupt, Wait::Stopped) => Cause::Own(Kind::Stopped),
            (Actor::Interrupt, Wait::Blocked | Wait::Vfork) => Cause::Own(Kind::Blocked),
            (Actor::Interrupt, Wait::Unknown) | (Actor::Unknown, _) => Cause::Own(Kind::Unknown),
        }
    }

    fn woken_by(&self, waker: ThreadIx, wait: Wait, at: Ktime) -> Cause {
        // A kernel thread works for many: how long it had been waiting for
        // work says nothing about this wait. The same as when kernel threads
        // are not recorded.
        if self
            .process_of(waker)
            .is_some_and(|process| process.kthread)
        {
            let tid = self.thread(waker).map_or(Tid(0), |thread| thread.tid);
            return Cause::Own(match wait {
                Wait::Io => Kind::Disk,
                _ => Kind::Outside(tid),
            });
        }
        match self.may_run(waker, at) {
            true => Cause::Thread(waker),
            false => Cause::Own(Kind::Unknown),
        }
    }

    /// Actor forked a thread, if that one was running then.
    pub fn forked_by(&self, thread: ThreadIx) -> Option<ThreadIx> {
        let thread = self
            .thread(thread)
            .filter(|thread| !thread.started_before)?;
        thread
            .parent
            .filter(|parent| self.may_run(*parent, thread.start))
    }

    /// Whether a thread can have done something at that moment. At the border
    /// of two stretches it may have run for no time.
    fn may_run(&self, ix: ThreadIx, at: Ktime) -> bool {
        let Some(thread) = self.thread(ix) else {
            return false;
        };
        if at < thread.start || at > thread.end {
            return false;
        }
        let stretch = self.before(ix, at).map(|(_, stretch)| stretch);
        stretch.is_none_or(|s| s.to <= at || matches!(s.doing, Bucket::OnCpu(_)))
    }

    /// The stretch that a thread is in right before `time`.
    pub fn before(&self, ix: ThreadIx, time: Ktime) -> Option<(usize, Stretch)> {
        let number = self.timeline.at(ix, Ktime(time.0.checked_sub(1)?))?;
        Some((number, self.timeline.get(ix, number)?))
    }
}
