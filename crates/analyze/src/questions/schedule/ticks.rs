//! Timeouts after which a thread goes on waiting: ticks of one wait.
//!
//! `pthread_cond_timedwait` in a loop, a background thread that sleeps and looks: when the wait
//! comes to its end earlier in a simulated run, the thread does not wait for its timeout. A loop whose last wait another
//! thread ended, by a waking or by ending the process, has its end from that thread alone.

use std::collections::HashSet;

use tr_format::event::{Ktime, Reason};

use super::build::Builder;
use crate::model::ThreadIx;
use crate::timeline::{Actor, Bucket};

/// Calls that a timeout ends.
fn has_timeout(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Lock
            | Reason::Timer
            | Reason::Signal
            | Reason::Poll
            | Reason::SocketRead
            | Reason::SocketWrite
    )
}

impl Builder<'_> {
    /// The beginnings of a thread's waits that are ticks of a later one. Between them it works for less
    /// time than it waits.
    pub(super) fn ticks(&self, thread: ThreadIx) -> HashSet<Ktime> {
        let timeline = self.graph.timeline;
        let mut ticks = HashSet::new();
        // Those that are ticks if the next wait is one, or if a thread of the run ends it.
        let mut open: Vec<Ktime> = Vec::new();
        let (mut reason, mut waited, mut worked) = (Reason::Unknown, 0, 0u64);
        for stretch in timeline.of(thread) {
            match stretch.doing {
                Bucket::OnCpu(_) => worked = worked.saturating_add(stretch.length()),
                Bucket::RunQueue { .. } | Bucket::Unknown => {}
                Bucket::Wait(_) => {
                    if reason != stretch.reason || worked > waited {
                        open.clear();
                    }
                    let timed = has_timeout(stretch.reason);
                    if timed && stretch.waker() == Actor::Interrupt {
                        open.push(stretch.from);
                        (reason, waited) = (stretch.reason, stretch.length());
                    } else if !open.is_empty() && self.waker(thread, &stretch).is_some() {
                        ticks.extend(open.drain(..));
                    } else {
                        open.clear();
                    }
                    worked = 0;
                }
            }
        }
        ticks
    }
}
