//! Finds the waits that were cut short: a signal (of a time-out, a CI agent, Ctrl-C or an alarm) killed the waiting
//! process, or the process waited until a time-out came and then killed the child that it waited for.
//!
//! The sender of the signal does not show what the process waited for. The process waited for its child that lived then
//! or, without such a child, for the object of its system call, such as a pipe.

use tr_format::event::{Ktime, Reason};

use super::graph::Graph;
use super::stopped::last_wait;
use crate::model::{Analysis, Process, ProcessIx, ThreadIx};
use crate::status::{ended_by, failed, is_for, killed_by, Purpose, ALARM};
use crate::timeline::{Actor, Bucket, Stretch, Wait};

/// The largest number of stretches (times in one state) that a thread may have after a wait, if the signal that ended
/// the wait also ended the thread.
const MOST_STRETCHES: usize = 64;

/// The largest number of child processes that are searched for the one that worked when a signal came.
const MOST_SEARCHED: usize = 64;

/// Whether a process was ended by a signal that ends builds, or exited with the status by which shells report
/// such a signal.
fn has_signal(process: &Process) -> bool {
    let signal = process.status.and_then(ended_by);
    signal.is_some_and(|signal| is_for(signal, Purpose::Outside))
}

/// Whether a system call has no time-out: it waits until its object or a signal comes.
pub fn has_no_timeout(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Child
            | Reason::PipeRead
            | Reason::PipeWrite
            | Reason::FileLock
            // The open of a FIFO, which waits for the other end.
            | Reason::Path
    )
}

/// Whether a process gave up waiting and failed. The wait of `thread` around the time `at` must be the last wait of the
/// process, and a time-out or an alarm of the process itself must have ended the wait. A server that sleeps until a
/// signal ends the server does not give up.
pub fn gave_up(analysis: &Analysis, thread: ThreadIx, at: Ktime) -> bool {
    let process = analysis.process(analysis.thread(thread).process);
    if killed_by(process.status).is_some_and(|signal| signal != ALARM) {
        return false;
    }
    let graph = Graph::new(analysis);
    let gave_up = graph.and_then(|graph| {
        let wait = graph.timeline.around(thread, at)?;
        let waits = !matches!(wait.reason, Reason::Timer | Reason::Unknown);
        Some((waits || graph.is_alarmed(thread)) && graph.gave_up(thread, &wait))
    });
    gave_up == Some(true)
}

impl Graph<'_> {
    /// Finds out whether a signal cut a wait of a process short. `None` means that no signal did. `Some(None)` means
    /// that a signal did, but that it is not known for which task the process waited. Otherwise the result has that
    /// task.
    pub fn cut(&self, thread: ThreadIx, wait: &Stretch) -> Option<Option<ThreadIx>> {
        let was_cut = self.was_cut(thread, wait);
        was_cut.then(|| self.below_cut(thread, wait))
    }

    /// Whether a signal cut a wait short. There are three cases:
    /// - A signal from outside the build, or from a time-out of an ancestor, ended the wait and killed the process.
    /// - The process waited for another process until a time-out came, and then killed that other process.
    /// - An alarm ended a wait without a time-out, and the process failed.
    fn was_cut(&self, thread: ThreadIx, wait: &Stretch) -> bool {
        let analysis = self.analysis;
        let process = analysis.thread(thread).process;
        if wait.waker().is_timer() || wait.waker() == Actor::Device {
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
                analysis.process(sender).role.kthread
                    || self.is_above(sender, process)
                        && self.timed_out(by, wait.to)
                        && !self.is_request(thread, wait, by)
            }
            _ => false,
        };
        by_other && self.is_last(thread, wait)
    }

    /// Whether a wait is the last one of a process that failed, and a timer ended this wait.
    fn gave_up(&self, thread: ThreadIx, wait: &Stretch) -> bool {
        let process = self.analysis.thread(thread).process;
        wait.doing == Bucket::Wait(Wait::Sleep)
            && (wait.waker().is_timer() || wait.waker() == Actor::Device)
            && failed(self.analysis.process(process).status)
            && self.is_last(thread, wait)
    }

    /// Whether the process of a thread was killed by an alarm that it had set itself.
    fn is_alarmed(&self, thread: ThreadIx) -> bool {
        let process = self.analysis.thread(thread).process;
        killed_by(self.analysis.process(process).status) == Some(ALARM)
    }

    /// The task that worked for a process when a signal cut one of its waits short. The descendants of the process
    /// are searched, older children first, for a task that ran or waited for a CPU. If there is none, a task of the
    /// first descendant without living children is returned.
    fn below_cut(&self, thread: ThreadIx, wait: &Stretch) -> Option<ThreadIx> {
        let analysis = self.analysis;
        let (own, at) = (analysis.thread(thread).process, wait.to);
        let lives = |ix: &ThreadIx| {
            let thread = analysis.thread(*ix);
            thread.start < at && at <= thread.end
        };
        let living = |ix: ProcessIx| {
            let last = analysis.process(ix).threads.iter().copied().rev();
            last.take(MOST_SEARCHED).filter(lives)
        };
        let mut leaf = None;
        let mut next = vec![own];
        for _ in 0..MOST_SEARCHED {
            let Some(process) = next.pop() else {
                break;
            };
            if process != own {
                let working = living(process).find(|task| self.worked(*task, wait));
                if working.is_some() {
                    return working;
                }
            }
            let before = next.len();
            let children = self.children(process, at).iter().copied();
            next.extend(children.filter(|child| living(*child).next().is_some()));
            if next.len() == before && process != own {
                leaf = leaf.or_else(|| living(process).next());
            }
            // The search takes the last process in the list next. The order of the new children is reversed, so that
            // the oldest one is searched first.
            if let Some(added) = next.get_mut(before..) {
                added.reverse();
            }
        }
        leaf
    }

    /// Whether a task was on a CPU, or waited for one, right before a signal ended the given wait of another task. Work
    /// that began only because the sender of the signal had woken the task does not count.
    fn worked(&self, task: ThreadIx, wait: &Stretch) -> bool {
        let Some(number) = self.timeline.number_before(task, wait.to) else {
            return false;
        };
        let get = |number| self.timeline.get(task, number);
        let before = number.checked_sub(1).and_then(get);
        let woken = before.filter(|stretch| matches!(stretch.doing, Bucket::Wait(_)));
        let by_sender =
            |stretch: Stretch| stretch.waker() == wait.waker() && !stretch.waker().is_interrupt();
        get(number).is_some_and(|stretch| match stretch.doing {
            Bucket::OnCpu(_) => true,
            Bucket::RunQueue { .. } => !woken.is_some_and(by_sender),
            _ => false,
        })
    }

    /// The children that a process had started before a time, in the order of their starts. If there are too many, only
    /// the last ones are returned.
    fn children(&self, process: ProcessIx, at: Ktime) -> &[ProcessIx] {
        let children = &self.analysis.process(process).children;
        let begun = children.partition_point(|child| self.analysis.process(*child).start < at);
        let last = children.get(begun.saturating_sub(MOST_SEARCHED)..begun);
        last.unwrap_or_default()
    }

    /// Whether at least one child that the process had at a time failed. A killed child fails, too.
    fn kills(&self, process: ProcessIx, at: Ktime) -> bool {
        let children = self.children(process, at).iter();
        let mut children = children.map(|child| self.analysis.process(*child));
        children.any(|child| child.start < at && at <= child.end && failed(child.status))
    }

    /// Whether a signal that ends builds killed a process. If the process was still alive at the end of the recording,
    /// its nearest ancestor that had ended is examined in place of the process. make handles the signal itself and then
    /// fails, so a failed process also counts if such a signal killed one of its children.
    fn was_killed(&self, ix: ProcessIx) -> bool {
        let process = self.analysis.process(ix);
        let has = |ix: ProcessIx| has_signal(self.analysis.process(ix));
        let mut above = self.analysis.lineage(ix).take(MOST_SEARCHED);
        let ended = above.find(|process| !self.analysis.process(*process).alive);
        ended.is_some_and(has)
            || failed(process.status)
                && self
                    .children(ix, process.end)
                    .iter()
                    .any(|child| has(*child))
    }

    fn is_above(&self, above: ProcessIx, process: ProcessIx) -> bool {
        let mut up = self.analysis.ancestors(process).take(MOST_SEARCHED);
        up.any(|ancestor| ancestor == above)
    }

    /// Whether the last wait of a task before a time was for a child, a signal or descriptors, and a timer ended it.
    fn timed_out(&self, task: ThreadIx, at: Ktime) -> bool {
        let wait = last_wait(self.timeline, task, at);
        wait.is_some_and(|wait| {
            (is_for_child(&wait) || wait.reason == Reason::Poll) && wait.waker().is_timer()
        })
    }

    /// Whether the thread `by`, which ended a wait of `thread` for descriptors, did so with a request and not with
    /// a signal. Two later events show a request: `thread` woke `by` (the answer), and after that the process of
    /// `by` woke `thread` again.
    fn is_request(&self, thread: ThreadIx, wait: &Stretch, by: ThreadIx) -> bool {
        let reads = matches!(
            wait.reason,
            Reason::Poll | Reason::SocketRead | Reason::PipeRead
        );
        let process = |thread| self.analysis.thread(thread).process;
        let after = |thread| {
            let stretches = self.timeline.since(thread, wait.to).take(MOST_STRETCHES);
            stretches.filter(|stretch| {
                stretch.to > wait.to && stretch.doing == Bucket::Wait(Wait::Sleep)
            })
        };
        let mut answers = after(by).filter(|stretch| stretch.waker() == Actor::Thread(thread));
        let Some(answer) = answers.next().filter(|_| reads) else {
            return false;
        };
        after(thread).any(|stretch| match stretch.waker() {
            Actor::Thread(again) => stretch.to > answer.to && process(again) == process(by),
            _ => false,
        })
    }

    /// Whether a wait was the last long one of a thread: later waits, apart from those for children, take together at
    /// most a tenth of its length, as a signal handler may still wait briefly, for example to remove files.
    fn is_last(&self, thread: ThreadIx, wait: &Stretch) -> bool {
        let rest = self.timeline.since(thread, wait.to);
        let rest: Vec<Stretch> = rest.take(MOST_STRETCHES + 1).collect();
        if rest.len() > MOST_STRETCHES {
            return false;
        }
        let rest = rest.iter().filter(|stretch| stretch.from >= wait.to);
        let waits = rest.filter(|stretch| matches!(stretch.doing, Bucket::Wait(_)));
        let other = waits.filter(|stretch| !is_for_child(stretch));
        let waited = other.map(Stretch::length).fold(0, u64::saturating_add);
        waited <= wait.length() / 10
    }
}

/// Whether a wait is a wait for a child, or for the SIGCHLD of a child.
fn is_for_child(wait: &Stretch) -> bool {
    matches!(wait.reason, Reason::Child | Reason::Signal)
}
