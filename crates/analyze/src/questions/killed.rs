//! Waits that a signal ended which killed the waiting process: a time-out's, a CI agent's, Ctrl-C, an alarm.
//!
//! Who sent it tells nothing of what the process waited for: that is its child that lived then, or
//! what its system call waits for.

use tr_format::event::{Ktime, Reason};

use super::graph::Graph;
use super::stopped::last_wait;
use crate::model::{Analysis, Process, ProcessIx, ThreadIx};
use crate::status::{ended_by, failed, is_for, killed_by, Purpose, ALARM};
use crate::timeline::{Actor, Bucket, Stretch, Wait};

/// The most stretches between such a wait and the thread's end.
const NEAR: usize = 64;

/// The most processes among which the one is sought that worked.
const MOST: usize = 64;

/// Whether a process ended by a signal that ends builds, or exited as shells say that it did.
fn has_signal(process: &Process) -> bool {
    let signal = process.status.and_then(ended_by);
    signal.is_some_and(|it| is_for(it, Purpose::Outside))
}

/// Whether a call waits until what it waits for comes, or a signal.
pub fn has_no_timeout(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Child
            | Reason::PipeRead
            | Reason::PipeWrite
            | Reason::FileLock
            // The other end of a FIFO.
            | Reason::Path
    )
}

/// Whether the wait of a thread at a time was the last one of a process that failed, ended by its time-out or
/// alarm: the process gave up what it waited for, and slept for nothing.
pub fn gave_up(analysis: &Analysis, thread: ThreadIx, at: Ktime) -> bool {
    let graph = Graph::new(analysis);
    let gave_up = graph.and_then(|graph| {
        let wait = graph.timeline.around(thread, at)?;
        let waits = !matches!(wait.reason, Reason::Timer | Reason::Unknown);
        Some((waits || graph.is_alarmed(thread)) && graph.gave_up(thread, &wait))
    });
    gave_up == Some(true)
}

impl Graph<'_> {
    /// Of a wait that was cut the task that worked for the process then, if any.
    pub fn cut(&self, thread: ThreadIx, wait: &Stretch) -> Option<Option<ThreadIx>> {
        let was_cut = self.was_cut(thread, wait);
        was_cut.then(|| self.below_cut(thread, wait))
    }

    /// Whether a signal from outside the build, or of a time-out above, ended a wait and killed its
    /// process; or a time-out ended a wait for a process that it then killed; or an alarm ended one
    /// that has no time-out, and its process failed.
    fn was_cut(&self, thread: ThreadIx, wait: &Stretch) -> bool {
        let analysis = self.analysis;
        let process = analysis.thread(thread).process;
        if wait.waker() == Actor::Interrupt {
            let kills = || is_for_child(wait) && self.kills(process, wait.to);
            let alarm = || has_no_timeout(wait.reason) || self.is_alarmed(thread);
            return alarm() && self.gave_up(thread, wait) || kills() && self.is_last(thread, wait);
        }
        if !self.was_killed(process) {
            return false;
        }
        let by_other = match wait.waker() {
            Actor::Outside(_) => true,
            Actor::Thread(by) => {
                let sender = analysis.thread(by).process;
                analysis.process(sender).kthread
                    || self.is_above(sender, process) && self.timed_out(by, wait.to)
            }
            Actor::Unknown | Actor::Interrupt | Actor::SoftIrq => false,
        };
        by_other && self.is_last(thread, wait)
    }

    /// Whether a timer ended the last wait of a process that failed.
    fn gave_up(&self, thread: ThreadIx, wait: &Stretch) -> bool {
        let process = self.analysis.thread(thread).process;
        wait.doing == Bucket::Wait(Wait::Sleep)
            && wait.waker() == Actor::Interrupt
            && failed(self.analysis.process(process).status)
            && self.is_last(thread, wait)
    }

    /// Whether its alarm killed a thread's process.
    fn is_alarmed(&self, thread: ThreadIx) -> bool {
        let process = self.analysis.thread(thread).process;
        killed_by(self.analysis.process(process).status) == Some(ALARM)
    }

    /// The task that worked for a process when one of its waits was cut: of the oldest job the
    /// first that ran or waited for a CPU, or one that waited and had no child.
    fn below_cut(&self, thread: ThreadIx, wait: &Stretch) -> Option<ThreadIx> {
        let analysis = self.analysis;
        let (own, at) = (analysis.thread(thread).process, wait.to);
        let lives = |ix: &ThreadIx| {
            let it = analysis.thread(*ix);
            it.start < at && at <= it.end
        };
        let living = |ix: ProcessIx| {
            let last = analysis.process(ix).threads.iter().copied().rev();
            last.take(MOST).filter(lives)
        };
        let mut leaf = None;
        let mut next = vec![own];
        for _ in 0..MOST {
            let Some(process) = next.pop() else {
                break;
            };
            if process != own {
                let working = living(process).find(|it| self.worked(*it, wait));
                if working.is_some() {
                    return working;
                }
            }
            let before = next.len();
            let children = self.children(process, at).iter().copied();
            next.extend(children.filter(|it| living(*it).next().is_some()));
            if next.len() == before && process != own {
                leaf = leaf.or_else(|| living(process).next());
            }
            // The oldest one comes next.
            if let Some(added) = next.get_mut(before..) {
                added.reverse();
            }
        }
        leaf
    }

    /// Whether a task ran or waited for a CPU before a signal; the sender had not woken it.
    fn worked(&self, task: ThreadIx, wait: &Stretch) -> bool {
        let Some(number) = self.timeline.number_before(task, wait.to) else {
            return false;
        };
        let get = |it| self.timeline.get(task, it);
        let before = number.checked_sub(1).and_then(get);
        let woken = before.filter(|it| matches!(it.doing, Bucket::Wait(_)));
        let by_sender = |it: Stretch| it.waker() == wait.waker() && it.waker() != Actor::Interrupt;
        get(number).is_some_and(|it| match it.doing {
            Bucket::OnCpu(_) => true,
            Bucket::RunQueue { .. } => !woken.is_some_and(by_sender),
            _ => false,
        })
    }

    /// The last children that a process had started by a time, in the order of their starts.
    fn children(&self, process: ProcessIx, at: Ktime) -> &[ProcessIx] {
        let children = &self.analysis.process(process).children;
        let begun = children.partition_point(|it| self.analysis.process(*it).start < at);
        let last = children.get(begun.saturating_sub(MOST)..begun);
        last.unwrap_or_default()
    }

    /// Whether a child that lived then failed, as one that is killed does.
    fn kills(&self, process: ProcessIx, at: Ktime) -> bool {
        let children = self.children(process, at).iter();
        let mut children = children.map(|it| self.analysis.process(*it));
        children.any(|it| it.start < at && at <= it.end && failed(it.status))
    }

    /// A process that had not ended yet when the recording ended may have got the signal of the first one above
    /// it that had. make handles its own one, and fails after its children.
    fn was_killed(&self, ix: ProcessIx) -> bool {
        let process = self.analysis.process(ix);
        let has = |ix: ProcessIx| has_signal(self.analysis.process(ix));
        let mut above = self.analysis.lineage(ix).take(MOST);
        let ended = above.find(|it| !self.analysis.process(*it).alive);
        ended.is_some_and(has)
            || failed(process.status) && self.children(ix, process.end).iter().any(|it| has(*it))
    }

    fn is_above(&self, above: ProcessIx, process: ProcessIx) -> bool {
        let mut up = self.analysis.ancestors(process).take(MOST);
        up.any(|it| it == above)
    }

    /// A task's last wait was for a child or a signal, and its timer ended it.
    fn timed_out(&self, task: ThreadIx, at: Ktime) -> bool {
        let wait = last_wait(self.timeline, task, at);
        wait.is_some_and(|it| {
            (is_for_child(&it) || it.reason == Reason::Poll) && it.waker() == Actor::Interrupt
        })
    }

    /// What a thread waits for afterwards, children apart, is short: a signal's handler removes files.
    fn is_last(&self, thread: ThreadIx, wait: &Stretch) -> bool {
        let rest = self.timeline.since(thread, wait.to);
        let rest: Vec<Stretch> = rest.take(NEAR + 1).collect();
        if rest.len() > NEAR {
            return false;
        }
        let rest = rest.iter().filter(|it| it.from >= wait.to);
        let waits = rest.filter(|it| matches!(it.doing, Bucket::Wait(_)));
        let other = waits.filter(|it| !is_for_child(it));
        let waited = other.map(Stretch::length).fold(0, u64::saturating_add);
        waited <= wait.length() / 10
    }
}

/// A wait for a child, or for its SIGCHLD.
fn is_for_child(wait: &Stretch) -> bool {
    matches!(wait.reason, Reason::Child | Reason::Signal)
}
