//! The graph of waits: for each stretch of a thread's time, the thread that ended it.
//! [`critical_path`](crate::critical_path) follows its edges backwards, [`what_if`](crate::what_if) forwards.
//!
//! A wait that a recorded thread ended has an edge to that thread, and a new thread has an edge to the thread
//! that forked it. All other stretches are time of the thread itself.

use tr_format::event::{Ktime, Reason, Tid};

use super::awaited::WaitReason;
use super::ending::WaitEnd;
use crate::kinds::TimeKind;
use crate::model::{Analysis, ThreadIx};
use crate::status::failed;
use crate::timeline::{Actor, Bucket, Stretch, Stretches, Timeline, Wait};

/// The cause that determined how long a stretch of a thread's time was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StretchCause {
    /// The thread with this index ended the wait, so the wait took as long as that thread needed.
    Thread(ThreadIx),
    /// The stretch is time of the thread itself, and has this kind, such as time on a CPU.
    Own(TimeKind),
}

#[derive(Clone, Copy)]
pub(crate) struct Graph<'a> {
    pub analysis: &'a Analysis,
    pub timeline: &'a Timeline,
}

impl<'a> Graph<'a> {
    /// Makes the graph of the waits of an analysis; `None` if the analysis kept no timeline.
    pub fn new(analysis: &'a Analysis) -> Option<Graph<'a>> {
        let timeline = analysis.timeline.as_ref()?;
        Some(Graph { analysis, timeline })
    }

    /// The stretches of a thread's timeline, including all stretches that other threads may have ended. To save time,
    /// many of the other stretches are left out.
    pub fn stretches_by_threads(&self, thread: ThreadIx) -> Stretches<'a> {
        let process = self.analysis.process(self.analysis.thread(thread).process);
        // If the thread's process or a child of it failed, a timer may have ended a wait of the thread before the
        // awaited task was done. Such a wait still counts as a wait for that task. So all stretches of the thread are
        // returned, including those that a timer ended.
        let mut children = process.children.iter();
        if failed(process.status) || children.any(|ix| failed(self.analysis.process(*ix).status)) {
            self.timeline.of(thread)
        } else {
            self.timeline.around_tasks(thread)
        }
    }

    /// The cause that determined how long a stretch of a thread's time was.
    pub fn cause(&self, thread: ThreadIx, stretch: &Stretch) -> StretchCause {
        match stretch.doing {
            Bucket::OnCpu(_) => return StretchCause::Own(TimeKind::OnCpu),
            Bucket::RunQueue { .. } => return StretchCause::Own(TimeKind::RunQueue),
            Bucket::Unknown => return StretchCause::Own(TimeKind::Unknown),
            Bucket::Wait(_) => {}
        }
        if let Some(below) = self.cut(thread, stretch) {
            // `below` is a descendant for which the thread waited when a signal cut the wait short. If the descendant
            // was itself waiting then, the descendant did no work, so the wait is not attributed to it.
            return match below.filter(|below| self.lives(*below, stretch.to)) {
                Some(below) => StretchCause::Thread(below),
                None => StretchCause::Own(self.wait(thread, stretch, false)),
            };
        }
        self.ended(thread, stretch)
    }

    /// The cause that determined how long a wait of a thread was, if no killing signal cut it short.
    pub fn ended(&self, thread: ThreadIx, stretch: &Stretch) -> StretchCause {
        match stretch.waker() {
            Actor::Thread(waker) if self.lives(waker, stretch.to) => {
                // A kernel thread works for many tasks. What the kernel thread waited for before does not explain this
                // wait, so the kernel thread is treated like one that is not recorded.
                let process = self.analysis.thread(waker).process;
                if self.analysis.process(process).role.kthread {
                    StretchCause::Own(self.wait(thread, stretch, true))
                } else {
                    StretchCause::Thread(waker)
                }
            }
            Actor::Outside(worker) => match self.carried(thread, stretch, worker) {
                Some(by) => StretchCause::Thread(by),
                None => StretchCause::Own(self.wait(thread, stretch, true)),
            },
            actor if actor.is_interrupt() => StretchCause::Own(self.wait(thread, stretch, false)),
            _ => StretchCause::Own(TimeKind::Unknown),
        }
    }

    /// The thread that wrote the output for which the waiting thread `thread` waited at the other end of a
    /// pseudo-terminal, if that thread did not wait itself when the output came. The kernel's worker `worker` carried
    /// this output from one end to the other.
    fn carried(&self, thread: ThreadIx, wait: &Stretch, worker: Tid) -> Option<ThreadIx> {
        let (_, by) = self.writer(thread, wait, worker)?;
        self.lives(by, wait.to).then_some(by)
    }

    /// Like `carried`, for a thread that began to wait before the worker had carried its output: the thread, and when
    /// it gave the output to the worker. The two threads belong to different processes.
    pub fn carried_late(&self, thread: ThreadIx, wait: &Stretch) -> Option<(Ktime, ThreadIx)> {
        let Actor::Outside(worker) = wait.waker() else {
            return None;
        };
        let (at, by) = self.writer(thread, wait, worker)?;
        let process = |thread| self.analysis.thread(thread).process;
        let is_other = process(by) != process(thread);
        (at > wait.from && is_other && self.lives(by, at)).then_some((at, by))
    }

    /// The thread that gave a worker of the kernel the output that ended a wait for a pseudo-terminal, and when it did.
    fn writer(&self, thread: ThreadIx, wait: &Stretch, worker: Tid) -> Option<(Ktime, ThreadIx)> {
        let reads = matches!(wait.reason, Reason::Poll | Reason::Terminal);
        let sleeps = wait.doing == Bucket::Wait(Wait::Sleep);
        let writer = self.analysis.others.workers.works_for(worker, wait.to)?;
        (reads && sleeps && writer.1 != thread).then_some(writer)
    }

    /// The kind of time of a wait that no recorded thread ended. `by_task` is whether an unrecorded task or a kernel
    /// thread ended the wait.
    pub fn wait(&self, thread: ThreadIx, stretch: &Stretch, by_task: bool) -> TimeKind {
        let fault = stretch.reason == Reason::PageFault;
        if fault && self.analysis.memory.short.contains(&thread) {
            return TimeKind::Memory;
        }
        let packet = || self.analysis.wait_end(thread, stretch) == WaitEnd::Packet;
        let network = self.analysis.is_online(thread, stretch) || packet();
        let awaited = self.analysis.awaited(thread, stretch);
        awaited
            .unwrap_or(WaitReason::Unknown)
            .kind(by_task, network)
    }

    /// The thread that forked the given thread, if the forking thread was alive and did not wait at that moment. For a
    /// thread of a server, the client's thread that first waited for the server.
    pub fn forked_by(&self, thread: ThreadIx) -> Option<ThreadIx> {
        let thread = self.analysis.thread(thread);
        // A thread that began before the recording has no recorded fork. But two kinds of processes are recorded from a
        // later time on: runtimes of containers (from their exec) and servers (from their first answer). Such a process
        // counts as started by its client, because the client waited for it.
        let begins = !thread.started_before || thread.start > self.analysis.start;
        let parent = thread.parent.filter(|_| begins);
        let serves = thread.started_before && self.analysis.process(thread.process).role.shared;
        parent.filter(|parent| serves || self.lives(*parent, thread.start))
    }

    /// Whether a thread lived at a moment and did not wait. A thread that forks or wakes another thread is
    /// running, even if its switch-in is missing.
    pub fn lives(&self, ix: ThreadIx, at: Ktime) -> bool {
        let thread = self.analysis.thread(ix);
        let waits = |s: Stretch| s.to > at && matches!(s.doing, Bucket::Wait(_));
        thread.start <= at && at <= thread.end && !self.timeline.before(ix, at).is_some_and(waits)
    }
}
