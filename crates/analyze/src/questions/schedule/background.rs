//! Finds the processes that work in the background of a run, such as one that sends heartbeats. The simulated run
//! leaves out waits that exist only because of these processes.

use std::collections::HashMap;

use tr_format::event::Ktime;

use super::builder::Builder;
use crate::critical_path::CriticalPath;
use crate::model::{Analysis, ProcessIx, ThreadIx};
use crate::status::{is_crash, killed_by};
use crate::timeline::{Bucket, Stretch};

/// Whether a process ended by itself, which includes a crash. A server does not end by itself: a signal ends it, or it
/// lives until the recording ends.
fn ends_by_itself(analysis: &Analysis, ix: ProcessIx) -> bool {
    let process = analysis.process(ix);
    let signal = killed_by(process.status);
    !process.alive && signal.is_none_or(is_crash) && !analysis.ends_after_signal(ix)
}

/// The largest number of ancestors of a process that are searched for a server. This limit bounds the work.
const MOST_ANCESTORS: usize = 8;

impl Builder<'_> {
    /// Finds the processes in the background of the run, such as a heartbeat, and notes them.
    pub(super) fn find_background(&mut self, path: &CriticalPath) {
        let analysis = self.graph.analysis;
        let process = |thread: ThreadIx| analysis.thread(thread).process;
        let others = analysis.process_ids().filter(|ix| *ix != path.process);
        let endless = others.filter(|ix| !ends_by_itself(analysis, *ix));
        let endless: Vec<ProcessIx> = endless.collect();
        if endless.is_empty() {
            return;
        }
        for ix in endless {
            self.background[ix] = true;
        }
        // For each thread on the path, the end of its last wait. The timeline of a thread with many segments is read
        // only once.
        let mut last_waits: HashMap<ThreadIx, Option<Ktime>> = HashMap::new();
        for segment in &path.segments {
            let ix = process(segment.thread);
            if !self.background[ix] {
                continue;
            }
            let last = last_waits.entry(segment.thread).or_insert_with(|| {
                let last = self.last_wait(segment.thread);
                last.map(|stretch| stretch.to)
            });
            if last.is_some_and(|to| to > segment.from) {
                self.background[ix] = false;
            }
        }
        for thread in analysis.thread_ids() {
            let own = process(thread);
            if !self.is_own(thread) || !ends_by_itself(analysis, own) {
                continue;
            }
            for stretch in self.graph.stretches_by_threads(thread) {
                let by = self.waker(thread, &stretch);
                let above = by
                    .into_iter()
                    .flat_map(|by| analysis.ancestors(process(by)));
                for above in above.take(MOST_ANCESTORS).filter(|above| *above != own) {
                    self.serves_by_children[above] = true;
                }
                let by = by.filter(|by| self.background[process(*by)]);
                if let Some(by) = by {
                    let awaited = analysis.awaited(thread, &stretch);
                    if !self.awaits_child(thread, (by, stretch.to), awaited) {
                        self.background[process(by)] = false;
                    }
                }
            }
        }
    }

    /// Whether nothing depends on the order in which the children of a process run. This is the case if the process is
    /// in the background, and no other process that ends by itself waited for a descendant of the background process.
    pub(super) fn has_idle_children(&self, process: ProcessIx) -> bool {
        self.background[process] && !self.serves_by_children[process]
    }

    /// For a thread of a process in the background, the beginning of the thread's last wait, which lasts until the
    /// process ends (0 if there is none); `None` for threads of other processes. The thread's earlier waits take no
    /// time in the simulation, because no other process waits for anything that the thread does after these waits.
    pub(super) fn last_pause(&self, thread: ThreadIx) -> Option<Ktime> {
        let process = self.graph.analysis.thread(thread).process;
        let last = || self.last_wait(thread);
        let last = self.background[process].then(last)?;
        Some(last.map_or(Ktime(0), |stretch| stretch.from))
    }

    /// The last wait of a thread that began before the thread's exit. Later waits do not count: a thread that exits may
    /// wait until the kernel has closed its files.
    fn last_wait(&self, thread: ThreadIx) -> Option<Stretch> {
        let exited = self.graph.analysis.thread(thread).exited;
        let stretches = self.graph.timeline.of(thread);
        let waits = stretches.filter(|stretch| matches!(stretch.doing, Bucket::Wait(_)));
        let before = waits.filter(|stretch| exited.is_none_or(|exited| stretch.from < exited));
        before.last()
    }

    /// Whether a thread of a server waits for a request that a process in the background sends, such as a heartbeat,
    /// while the server also has other clients. The simulated run leaves this wait out, because the server answers its
    /// other clients also without the heartbeat.
    pub(super) fn is_beat(&mut self, thread: ThreadIx, by: ThreadIx) -> bool {
        let analysis = self.graph.analysis;
        let process = |thread| analysis.thread(thread).process;
        let (own, other) = (process(thread), process(by));
        own != other && self.background[other] && !ends_by_itself(analysis, own) && self.serves(own)
    }

    /// Whether a process serves clients that are not in the background: a thread of such a client ended a wait of the
    /// server process.
    fn serves(&mut self, server: ProcessIx) -> bool {
        if let Some(serves) = self.serves.get(&server) {
            return *serves;
        }
        let analysis = self.graph.analysis;
        let is_client = |thread: ThreadIx, stretch: &Stretch| {
            let by = self.waker(thread, stretch);
            let by = by.map(|by| analysis.thread(by).process);
            by.is_some_and(|by| by != server && !self.background[by])
        };
        let mut threads = analysis.process(server).threads.iter();
        let serves = threads.any(|thread| {
            let mut waits = self.graph.timeline.around_tasks(*thread);
            waits.any(|stretch| is_client(*thread, &stretch))
        });
        self.serves.insert(server, serves);
        serves
    }
}
