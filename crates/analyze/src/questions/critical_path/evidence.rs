//! Chooses the most likely step of the walk over the critical path where events are missing or where the recording
//! ends.

use std::cell::OnceCell;

use tr_format::event::{Ktime, Stream};

use crate::arena::Arena;
use crate::gaps::Spans;
use crate::model::{Analysis, Basis, KernelFigures, ProcessIx, ThreadIx};
use crate::questions::graph::Graph;
use crate::timeline::{Actor, Bucket, Stretch, Wait};

/// The spans of time in which scheduling events of the recording are lost.
pub(super) fn lost_spans(analysis: &Analysis) -> Spans {
    let mut lost = Spans::default();
    for span in &analysis.quality.lost {
        if matches!(span.stream, Stream::Cpu(_)) {
            lost.insert(span.since, span.until);
        }
    }
    lost
}

pub(super) struct Evidence<'a> {
    graph: Graph<'a>,
    lost: &'a Spans,
    to: Ktime,
    /// The result of [`Evidence::busy`]. It is computed only when it is needed, because few critical paths end in a
    /// wait that has not ended.
    busy: OnceCell<Arena<ProcessIx, bool>>,
}

impl<'a> Evidence<'a> {
    /// Collects the evidence for the most likely steps of a critical path that ends at `to`.
    pub fn new(graph: Graph<'a>, lost: &'a Spans, to: Ktime) -> Evidence<'a> {
        Evidence {
            graph,
            lost,
            to,
            busy: OnceCell::new(),
        }
    }

    /// The processes with a thread that runs, is runnable or waits for a disk at the path's end, and their ancestors.
    fn busy(&self) -> &Arena<ProcessIx, bool> {
        self.busy.get_or_init(|| {
            let analysis = self.graph.analysis;
            let mut busy: Arena<_, _> = analysis.process_ids().map(|_| false).collect();
            for thread in analysis.thread_ids() {
                let is = analysis.thread(thread);
                let before = || self.graph.timeline.before(thread, self.to);
                if is.end < self.to || !before().is_some_and(|s| works(&s)) {
                    continue;
                }
                // If a process is marked as busy, all of its ancestors are already marked, so the walk upwards ends
                // there.
                let mut up = analysis.lineage(is.process);
                while up
                    .next()
                    .is_some_and(|process| !std::mem::replace(&mut busy[process], true))
                {
                }
            }
            busy
        })
    }

    /// The thread that probably started the given thread, and that was alive when the given thread began. Both threads
    /// belong to the same process or, if the process is new, the starting thread belongs to the parent process.
    pub fn parent(&self, thread: ThreadIx) -> Option<ThreadIx> {
        let analysis = self.graph.analysis;
        let of = analysis.thread(thread);
        let start = of.start;
        let process = analysis.process(of.process);
        // If the process began before the thread, another thread of the process started it. Otherwise the process
        // is new, and a thread of the parent process started it.
        let parent = if process.start < start {
            of.process
        } else {
            process.parent?
        };
        let lived = |ix: &ThreadIx| *ix != thread && self.graph.lives(*ix, start);
        let mut threads = analysis.process(parent).threads.iter().copied();
        let found = threads.find(lived);
        found.filter(|_| !of.started_before)
    }

    /// Whether a thread whose state is unknown for a time up to `now` probably ran or waited for a CPU in all of that
    /// time. Several conditions have to be met. The thread was runnable before that time and ran after that time. No
    /// event is recorded as lost in that time. No waking ended a sleep. The kernel's totals, if known, leave room for
    /// at least half of that time.
    pub fn ran_through(&self, thread: ThreadIx, now: Ktime) -> bool {
        // Without scheduling events nothing shows that the thread did not sleep.
        if self.graph.analysis.basis() != Basis::Events {
            return false;
        }
        let Some(number) = self.graph.timeline.number_before(thread, now) else {
            return false;
        };
        let get = |at: usize| self.graph.timeline.get(thread, at);
        let is = |at: usize, edge: bool| {
            get(at).map_or(edge, |s| {
                matches!(s.doing, Bucket::OnCpu(_) | Bucket::RunQueue { .. })
            })
        };
        let of = self.graph.analysis.thread(thread);
        let before = match number.checked_sub(1) {
            Some(last) => is(last, false),
            None => !of.started_before,
        };
        let Some(stretch) = get(number) else {
            return false;
        };
        // One of three events shows that the thread ran: an event within the stretch, the event that ended the stretch,
        // or the end of the thread.
        let ran = stretch.to > now || get(number + 1).is_some() || !of.alive;
        let lost = self.lost.first_in(stretch.from, now).is_some();
        let has_total = |figures: &KernelFigures| figures.run_delay.is_some();
        let runnable = of.by_kernel.on_cpu.saturating_add(of.by_kernel.run_queue);
        let slept =
            of.kernel.is_some_and(|figures| has_total(&figures)) && runnable < stretch.length() / 2;
        before && ran && !lost && !slept && stretch.cpu.is_none()
    }

    /// The child of a thread's process that ended last, after `since` and not after `now`: the last thread of this
    /// child, and the time of the child's end.
    pub fn ended_child(
        &self,
        thread: ThreadIx,
        since: Ktime,
        now: Ktime,
    ) -> Option<(ThreadIx, Ktime)> {
        let analysis = self.graph.analysis;
        let process = analysis.process(analysis.thread(thread).process);
        let children = process.children.iter().map(|ix| analysis.process(*ix));
        let ended = children.filter(|child| !child.alive && child.end > since && child.end <= now);
        let last = ended.max_by_key(|child| child.end)?;
        let of_end = |ix: &ThreadIx| analysis.thread(*ix).end == last.end;
        let thread = last.threads.iter().copied().find(of_end)?;
        Some((thread, last.end))
    }

    /// The thread for whose end a thread waits at the end of the recording: a thread of a living child of the process,
    /// another thread of the process, or a thread at the other end of a pipe.
    pub fn awaited(&self, thread: ThreadIx, now: Ktime) -> Option<ThreadIx> {
        let analysis = self.graph.analysis;
        let own = analysis.thread(thread).process;
        let process = analysis.process(own);
        let mut living = self.living(&process.children, now);
        // A child that waits for a pipe depends on another child, like `tee` in `make | tee log`, so only the other
        // children count.
        let goes_on = |ix: &ProcessIx| !analysis.waits_for_pipe(*ix, now);
        if living.iter().any(goes_on) {
            living.retain(goes_on);
        }
        // If several children live, the oldest busy one is taken, or the youngest one if none is busy.
        let busy = || living.iter().find(|ix| self.busy()[**ix]);
        let child = match living.as_slice() {
            [] => None,
            [only] => Some(only),
            [.., last] => busy().or(Some(last)),
        };
        match child {
            Some(child) => self.thread_of(*child, now),
            None => {
                let mut threads = process.threads.iter().copied();
                let working = threads
                    .find(|ix| *ix != thread && self.lives(*ix, now) && self.works(*ix, now));
                working.or_else(|| self.other_end(thread, now))
            }
        }
    }

    /// Returns those of the given processes that live at a time and began before it.
    fn living(&self, processes: &[ProcessIx], now: Ktime) -> Vec<ProcessIx> {
        let living = processes.iter().copied().filter(|ix| {
            let process = self.graph.analysis.process(*ix);
            process.end >= now && process.start < now
        });
        living.collect()
    }

    fn lives(&self, thread: ThreadIx, now: Ktime) -> bool {
        self.graph.analysis.thread(thread).end >= now
    }

    fn works(&self, thread: ThreadIx, now: Ktime) -> bool {
        let before = self.graph.timeline.before(thread, now);
        before.is_some_and(|stretch| works(&stretch))
    }

    /// The thread of a living process that works at a time or, if no thread works, the first thread of the process.
    fn thread_of(&self, process: ProcessIx, now: Ktime) -> Option<ThreadIx> {
        let threads = self.graph.analysis.process(process).threads.iter().copied();
        let threads: Vec<ThreadIx> = threads.filter(|ix| self.lives(*ix, now)).collect();
        let working = threads.iter().copied().find(|ix| self.works(*ix, now));
        working.or(threads.first().copied())
    }

    /// The thread at the other end of a pipe for which a thread waits. The answer is a guess, because a recording does
    /// not contain pipes. The process that ended the thread's previous wait for a pipe is taken or, if there is none, a
    /// process that the same parent started. Processes that wait for a pipe themselves, or for this thread, are left
    /// out.
    fn other_end(&self, thread: ThreadIx, now: Ktime) -> Option<ThreadIx> {
        let analysis = self.graph.analysis;
        let stretch = self.graph.timeline.before(thread, now)?;
        if !stretch.is_for_pipe() {
            return None;
        }
        let own = analysis.thread(thread).process;
        let above: Vec<ProcessIx> = analysis.lineage(own).collect();
        let can_be = |ix: &ProcessIx| !above.contains(ix) && !analysis.waits_for_pipe(*ix, now);
        let woke = self.graph.timeline.of(thread).filter_map(|wait| {
            let Actor::Thread(waker) = wait.waker() else {
                return None;
            };
            let process = analysis.thread(waker).process;
            wait.is_for_pipe().then_some(process)
        });
        let last = woke.last().filter(|ix| can_be(ix));
        let last = last.filter(|ix| !self.living(&[*ix], now).is_empty());
        let sibling = || {
            let parent = analysis.process(analysis.process(own).parent?);
            let mut living = self.living(&parent.children, now);
            living.retain(can_be);
            // A shell starts the programs of a pipeline from left to right, so the writer is the sibling that was
            // started right before this process.
            let before = living.iter().rfind(|ix| **ix < own).or(living.first());
            before.copied()
        };
        self.thread_of(last.or_else(sibling)?, now)
    }
}

/// Whether a thread in this state does work, or waits only for a CPU or a disk.
fn works(stretch: &Stretch) -> bool {
    matches!(
        stretch.doing,
        Bucket::OnCpu(_) | Bucket::RunQueue { .. } | Bucket::Wait(Wait::Io)
    )
}
