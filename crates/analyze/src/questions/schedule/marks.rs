//! Collects the actions of a run's threads that other threads depend on: wakings, starts of threads and ends of
//! processes. Also counts how many children of a process had ended at a time.

use tr_format::event::Ktime;

use super::builder::Builder;
use super::change::Jobs;
use super::gates::PLANNED_JOBS;
use super::ops::{List, Mark, What};
use crate::arena::{Arena, Ix};
use crate::model::{ProcessIx, ThreadIx};

impl Builder<'_> {
    /// Notes for each thread the actions that other threads depend on. Returns the threads that no other thread of
    /// the run starts.
    pub(super) fn mark(&mut self) -> Vec<ThreadIx> {
        let analysis = self.graph.analysis;
        let mut first = Vec::new();
        let mut ended: Arena<ProcessIx, Option<(ThreadIx, Ktime)>> =
            analysis.process_ids().map(|_| None).collect();
        for thread in analysis.thread_ids() {
            if !self.is_own(thread) {
                continue;
            }
            let start = analysis.thread(thread).start;
            let inside = start > self.from && start <= self.to;
            let forked_by = self.graph.forked_by(thread);
            match forked_by.filter(|by| inside && self.is_own(*by)) {
                Some(by) => {
                    self.marks[by].push((start, Mark::Start(thread)));
                    if analysis.thread(by).process != analysis.thread(thread).process {
                        self.answers[by].push(start);
                    }
                }
                None if start <= self.to => first.push(thread),
                None => {}
            }
            let last_pause = self.last_pause(thread);
            for stretch in self.graph.stretches_by_threads(thread) {
                let Some(by) = self.waker(thread, &stretch) else {
                    continue;
                };
                // In a background process, only the thread's last wait counts, which ends with the process. The
                // simulation leaves out the thread's earlier waits, so the wakings that ended them are left out here.
                let is_pause = last_pause.is_some_and(|last| stretch.from < last);
                if is_pause || self.is_beat(thread, by) {
                    continue;
                }
                let awaited = analysis.awaited(thread, &stretch);
                if self.awaits_child(thread, (by, stretch.to), awaited) {
                    let child = analysis.thread(by).process;
                    ended[child].get_or_insert((by, stretch.to));
                } else {
                    let number = self.waking(thread, by, awaited);
                    self.marks[by].push((stretch.to, Mark::Wake(number)));
                    if analysis.thread(by).process != analysis.thread(thread).process {
                        self.answers[by].push(stretch.to);
                    }
                }
            }
        }
        self.mark_children(&ended);
        for thread in analysis.thread_ids() {
            self.marks[thread].sort_unstable();
            self.answers[thread].sort_unstable();
        }
        first
    }

    /// Notes when the children of the run's processes started and ended. A child ends when it wakes a parent that
    /// waits for it. If the parent did not wait, the child ends when its last thread exits.
    fn mark_children(&mut self, ended: &Arena<ProcessIx, Option<(ThreadIx, Ktime)>>) {
        let analysis = self.graph.analysis;
        for child in analysis.process_ids().filter(|ix| self.own.has(*ix)) {
            let process = analysis.process(child);
            let Some(parent) = process.parent.filter(|parent| self.own.has(*parent)) else {
                continue;
            };
            self.starts[parent].push(process.start);
            // The time of the exit counts, not the last switch-out: a task may leave its CPU long after its parent has
            // seen its end.
            let end_of = |ix: &ThreadIx| {
                let thread = analysis.thread(*ix);
                thread.exited.unwrap_or(thread.end)
            };
            let last = process
                .threads
                .iter()
                .copied()
                .max_by_key(end_of)
                .filter(|_| !process.alive)
                .map(|thread| (thread, end_of(&thread)));
            if let Some((thread, at)) = ended[child].or(last).filter(|(_, at)| *at <= self.to) {
                self.ends[parent].push(at);
                self.marks[thread].push((at, Mark::Ended(child)));
            }
        }
        for process in analysis.process_ids() {
            self.ends[process].sort_unstable();
            self.starts[process].sort_unstable();
            let ends = &self.ends[process];
            let living = self.starts[process].iter().zip(1u64..);
            let living = living.map(|(at, started)| started.saturating_sub(count(ends, *at)));
            self.at_once[process] = living.max().unwrap_or(0);
        }
    }

    /// The number of children of a process that have ended up to a moment.
    pub(super) fn ended_children(&self, process: ProcessIx, until: Ktime) -> u64 {
        count(&self.ends[process], until)
    }

    /// Adds to a thread's operations its wakings, starts of threads and ends of processes up to the time `until`.
    pub(super) fn marks_until(&self, list: &mut List, thread: ThreadIx, until: Ktime) {
        while let Some((at, mark)) = list.marks.next_if(|(at, _)| *at <= until) {
            match mark {
                Mark::Wake(number) => list.push(What::Wake, 0, number, at),
                Mark::Ended(child) => {
                    self.all_jobs(list, thread, at);
                    list.push(What::Ended, 0, child.place() as u64, at);
                }
                Mark::Start(child) => {
                    self.before_start(list, thread, child, at);
                    list.push(What::Start, 0, child.place() as u64, at);
                }
            }
        }
    }

    /// Adds to the operations of a build tool a wait for all of its jobs. The simulation performs the wait only if it
    /// plans the jobs anew, because the recorded tool may have had no such wait if its last jobs had already ended.
    pub(super) fn all_jobs(&self, list: &mut List, thread: ThreadIx, at: Ktime) {
        let process = self.graph.analysis.thread(thread).process;
        let first = self.graph.analysis.process(process).threads.first();
        if first == Some(&thread) && self.plan.owns(process) {
            let ended = self.ended_children(process, at);
            list.push(What::AtOnce, PLANNED_JOBS, ended, at);
        }
    }

    /// Adds to the operations of a process a wait for the ends of earlier children, so that no more children live at
    /// once than in the recording. Example: in the recording at most two children lived at once, and now the third
    /// child starts. Then the process waits until one child has ended. More children may have ended in the recording by
    /// then, but only because the process itself had to wait for a CPU.
    fn before_start(&self, list: &mut List, thread: ThreadIx, child: ThreadIx, at: Ktime) {
        let analysis = self.graph.analysis;
        let process = analysis.thread(thread).process;
        let own = analysis.thread(child).process;
        if own == process || self.has_idle_children(process) {
            return;
        }
        let started = count(&self.starts[process], at);
        let ended = self.ended_children(process, at);
        let ended = ended.min(started.saturating_sub(self.at_once[process]));
        let mut mask = 0;
        for (bit, change) in self.numbered() {
            let inside = |jobs: &&Jobs| jobs.owner == process && at >= jobs.from && at <= jobs.to;
            let Some(jobs) = change.jobs.iter().find(inside) else {
                continue;
            };
            // `started` counts the job that starts here, and `first` counts the first of the jobs that may run at the
            // same time. So `started + 1 - first` of these jobs have started, including this one.
            let first = count(&self.starts[process], jobs.from);
            let over = (started + 1).saturating_sub(first + jobs.at_once);
            let before = self.ended_children(process, jobs.from);
            list.push(What::AtOnce, bit, before + over, at);
            mask |= bit;
        }
        if self.plan.starts(own) {
            mask |= PLANNED_JOBS;
        }
        if ended > 0 {
            list.push(What::Children, mask, ended, at);
        }
    }
}

/// The number of moments in a sorted list that are at or before `until`.
fn count(sorted: &[Ktime], until: Ktime) -> u64 {
    sorted.partition_point(|at| *at <= until) as u64
}
