//! The state that is needed while the operations of a simulated run's threads are collected, and functions that
//! look up in the recording, for example, which thread ended a wait.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap, HashSet};

use tr_format::event::Ktime;

use super::change::{Change, Changes};
use super::gates::Plan;
use super::ops::Mark;
use crate::arena::Arena;
use crate::awaited::WaitReason;
use crate::containers::WaitedFor;
use crate::model::{ProcessIx, ThreadIx};
use crate::own::Own;
use crate::programs::Groups;
use crate::questions::graph::{Graph, StretchCause};
use crate::timeline::{Bucket, Stretch, Wait};

/// The longest time in ns that a woken or forked task waits for an idle CPU. In a longer wait the CPU was busy with
/// another task. The number is a guess about idle CPUs: with a longer time, waits for another task would be taken for
/// the time that the machine itself needs.
pub(super) const WAKE_UP: u64 = 50_000;

/// Collects the operations of all threads of a simulated run. First the modules `marks` and `background` look
/// through the whole recording; then the operations of one thread after the other are collected.
pub(super) struct Builder<'a> {
    pub(super) graph: Graph<'a>,
    pub(super) groups: &'a Groups,
    pub(super) changes: &'a [Change],
    pub(super) plan: &'a Plan,
    pub(super) from: Ktime,
    pub(super) to: Ktime,
    /// The sleeps on the critical path: each sleeping thread with the time at which its sleep began. The end of such a
    /// sleep is what let the run go on.
    pub(super) sleeps: HashSet<(ThreadIx, Ktime)>,
    /// The waits on the critical path that a timer may have ended: sleeps, and waits for answers of the network. Each
    /// entry has the waiting thread and the time at which its wait began.
    pub(super) timed: BTreeSet<(ThreadIx, Ktime)>,
    /// The number of stretches (times of a thread in one state) that may still be searched for work that other threads
    /// did while a thread slept. This limit bounds the work of `tr`.
    pub(super) looks: Cell<usize>,
    /// The containers that processes of the simulated run wait for.
    pub(super) containers: WaitedFor,
    pub(super) own: Own,
    /// For each process, the times at which its children ended, in order.
    pub(super) ends: Arena<ProcessIx, Vec<Ktime>>,
    /// For each process, the times at which its children started, in order.
    pub(super) starts: Arena<ProcessIx, Vec<Ktime>>,
    /// For each process, the largest number of children that it had at the same time.
    pub(super) at_once: Arena<ProcessIx, u64>,
    pub(super) marks: Arena<ThreadIx, Vec<(Ktime, Mark)>>,
    /// For each thread, the times at which the thread ended a wait of another process or started another process, in
    /// order.
    pub(super) answers: Arena<ThreadIx, Vec<Ktime>>,
    /// The numbers of the kinds of wakings in the simulated run. Wakings with the same number are interchangeable: a
    /// thread that waits for one of them goes on at the first one. For example, a job slot may go to any other process.
    pub(super) wakings: HashMap<(Option<ThreadIx>, Option<WaitReason>), u64>,
    /// The lengths in ns of the timers that threads of the run set before other work ([`What::Set`]).
    ///
    /// [`What::Set`]: super::ops::What::Set
    pub(super) timers: Vec<u64>,
    /// For each process, whether it is in the background, such as a heartbeat. Such a process meets three conditions.
    /// Nothing but a signal or the end of the recording ended the process. The critical path contains only the end of
    /// the process's life. A process that ended by itself waited for nothing that the background process did, except
    /// for its end.
    pub(super) background: Arena<ProcessIx, bool>,
    /// For each process, whether another process that ended by itself waited for a descendant of the first process.
    pub(super) serves_by_children: Arena<ProcessIx, bool>,
    /// The results of `Builder::serves` for the processes that were already looked up: whether a process serves
    /// clients that are not in the background.
    pub(super) serves: HashMap<ProcessIx, bool>,
}

impl Builder<'_> {
    pub(super) fn is_own(&self, thread: ThreadIx) -> bool {
        self.own.has_thread(self.graph.analysis, thread)
    }

    /// Whether a wait came about by chance, because another thread happened to have a page, a disk or a lock of the
    /// kernel. With another order of events, the thread would not have waited, or would have waited for a different
    /// thread. A wait for the end of a child is never chance.
    pub(super) fn is_chance(&self, thread: ThreadIx, by: ThreadIx, stretch: &Stretch) -> bool {
        let analysis = self.graph.analysis;
        let parent = analysis.process(analysis.thread(by).process).parent;
        let child = parent == Some(analysis.thread(thread).process);
        !child && matches!(stretch.doing, Bucket::Wait(Wait::Io | Wait::Blocked))
    }

    /// The thread of the simulated run that ended a wait of a thread, if the wait ended during the run.
    pub(super) fn waker(&self, thread: ThreadIx, stretch: &Stretch) -> Option<ThreadIx> {
        if stretch.to <= self.from || stretch.to > self.to {
            return None;
        }
        self.waker_of(thread, stretch, self.graph.cause(thread, stretch))
    }

    /// Like [`Builder::waker`], for a stretch of the simulated run whose cause is already known.
    pub(super) fn waker_of(
        &self,
        thread: ThreadIx,
        stretch: &Stretch,
        cause: StretchCause,
    ) -> Option<ThreadIx> {
        match cause {
            _ if stretch.to <= self.from || stretch.to > self.to => None,
            StretchCause::Thread(by) if self.is_chance(thread, by, stretch) => None,
            StretchCause::Thread(by) => Some(by).filter(|by| self.is_own(*by) && *by != thread),
            StretchCause::Own(_) => None,
        }
    }

    /// The number of the waking by which `by` ended a wait of `thread`. The wakings that end the waits of one thread
    /// for one reason share a number. All wakings that give a job slot to another process share one number, because any
    /// process may get the slot.
    pub(super) fn waking(
        &mut self,
        thread: ThreadIx,
        by: ThreadIx,
        awaited: Option<WaitReason>,
    ) -> u64 {
        let process = |thread| self.graph.analysis.thread(thread).process;
        let slot = awaited == Some(WaitReason::Slot) && process(thread) != process(by);
        let of = Some(thread).filter(|_| !slot);
        let next = self.wakings.len() as u64;
        *self.wakings.entry((of, awaited)).or_insert(next)
    }

    /// Whether a thread waits for the end of a child of its process.
    pub(super) fn awaits_child(
        &self,
        thread: ThreadIx,
        (by, at): (ThreadIx, Ktime),
        awaited: Option<WaitReason>,
    ) -> bool {
        let analysis = self.graph.analysis;
        let parent = analysis.process(analysis.thread(by).process).parent;
        analysis.has_exited(by, at)
            && parent == Some(analysis.thread(thread).process)
            && awaited != Some(WaitReason::Vfork)
    }

    /// Whether the process of a thread is a descendant of `process`.
    pub(super) fn own_child(&self, process: ProcessIx, thread: ThreadIx) -> bool {
        let analysis = self.graph.analysis;
        let mut above = analysis.ancestors(analysis.thread(thread).process);
        above.any(|ix| ix == process)
    }

    pub(super) fn numbered(&self) -> impl Iterator<Item = (Changes, &Change)> {
        self.changes
            .iter()
            .zip(0..)
            .map(|(change, at)| (1 << at, change))
    }

    /// The set of those assumed changes for which `concerns` is true, as bits.
    pub(super) fn mask(&self, concerns: impl Fn(&Change) -> bool) -> Changes {
        let all = self.numbered().filter(|(_, change)| concerns(change));
        all.fold(0, |mask, (bit, _)| mask | bit)
    }
}
