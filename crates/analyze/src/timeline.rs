//! The timeline: the states of each thread in the order of time, for reports that need more than sums (wait
//! chains, serial phases).
//!
//! The timeline takes four to eight bytes for each change of a thread's state, beyond some MiB in a temporary file
//! ([`Scratch`]). It is kept only if [`Options::timeline`](crate::Options) is set.

mod change;
mod draft;
mod packed;
mod stretch;
mod walks;

use std::cmp::Reverse;
use std::sync::Mutex;

use tr_format::event::{Ktime, Reason};

use crate::arena::Arena;
use crate::ids::ThreadIx;
use crate::scratch::Scratch;
pub use crate::state::{Bucket, Wait};
use change::Change;
pub(crate) use change::{ActorRef, Why};
pub(crate) use draft::Draft;
use packed::{Packed, Reader, SEGMENT_LENGTH};
pub use stretch::{Actor, Stretch};
pub use walks::{Changes, StateChange, Stretches};

/// The number of bytes of the scratch file that are read in addition to those that are needed, when a timeline is read
/// from beginning to end.
const AHEAD_BYTES: u64 = 16 << 10;

/// A sample of a thread's times: the span between two readings of its totals, in a recording without scheduling
/// events. The order of the states in this span is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The time at which the earlier one of the sample's two readings of the totals was made.
    pub from: Ktime,
    /// The time at which the later one of the sample's two readings of the totals was made.
    pub to: Ktime,
    /// The time in ns that the thread was on a CPU between the two readings of its totals.
    pub on_cpu: u64,
    /// The time in ns that the thread was in a run queue between the two readings of its totals.
    pub run_queue: u64,
    /// The time in ns that the thread was asleep or blocked between the two readings of its totals. The rest of the
    /// time is unknown.
    pub off_cpu: u64,
}

impl Sample {
    /// The length of the time between the two readings of the thread's totals, in ns.
    pub fn length(&self) -> u64 {
        self.to.since(self.from)
    }

    /// Appends a sample to the list of a thread's samples. Times on a CPU and in a run queue that exceed the length of
    /// the sample are added to the samples before it, because the totals of a running task lag by up to a tick. If
    /// the sample and the last one are wholly off CPU and follow each other, the last one is extended instead.
    pub(crate) fn push(samples: &mut Vec<Sample>, mut next: Sample) {
        let (mut on_cpu, mut run_queue) = next.fit();
        let mut end = next.from;
        for sample in samples.iter_mut().rev() {
            if (on_cpu, run_queue) == (0, 0) || sample.to != end {
                break;
            }
            sample.on_cpu = sample.on_cpu.saturating_add(on_cpu);
            sample.run_queue = sample.run_queue.saturating_add(run_queue);
            (on_cpu, run_queue) = sample.fit();
            end = sample.from;
        }
        let idle = |sample: &Sample| sample.off_cpu == sample.length();
        match samples.last_mut() {
            Some(last) if last.to == next.from && idle(last) && idle(&next) => {
                last.to = next.to;
                last.off_cpu = last.off_cpu.saturating_add(next.off_cpu);
            }
            _ => samples.push(next),
        }
    }

    /// Limits the times of the sample to its length. Returns by how much its time on a CPU and its time in a run queue
    /// exceeded the length, in ns.
    fn fit(&mut self) -> (u64, u64) {
        let length = self.length();
        let (on_cpu, run_queue) = (self.on_cpu, self.run_queue);
        self.on_cpu = on_cpu.min(length);
        self.run_queue = run_queue.min(length - self.on_cpu);
        self.off_cpu = self.off_cpu.min(length - self.on_cpu - self.run_queue);
        (on_cpu - self.on_cpu, run_queue - self.run_queue)
    }
}

/// The changes of state of one thread, and the end of its last state.
#[derive(Clone, Debug)]
struct Line {
    packed: Packed,
    /// The index of the thread's task in the tracker.
    task: usize,
    end: Ktime,
    /// The thread's changes of state in unpacked form, if they were altered after the trace was read; otherwise
    /// `None`.
    plain: Option<Vec<Change>>,
}

impl Line {
    fn count(&self) -> usize {
        self.plain.as_ref().map_or(self.packed.count(), Vec::len)
    }

    /// The time of the first change of state in a segment, which is a group of a thread's packed changes.
    fn begin_of(&self, segment: usize) -> Option<Ktime> {
        match &self.plain {
            Some(plain) => plain
                .get(segment * SEGMENT_LENGTH)
                .map(|change| change.from),
            None => self.packed.begin_of(segment),
        }
    }

    /// The last segment of a thread's timeline that begins at or before a time. A segment is a group of packed changes
    /// of state.
    fn segment_at(&self, time: Ktime) -> Option<usize> {
        match &self.plain {
            Some(plain) => {
                let after = plain.partition_point(|change| change.from <= time);
                Some(after.checked_sub(1)? / SEGMENT_LENGTH)
            }
            None => self.packed.segment_at(time),
        }
    }
}

/// Segments (groups of packed changes of state) that were unpacked to answer a question about a single time. Further
/// questions are often about the same segment.
#[derive(Debug, Default)]
struct Recent(Mutex<Vec<Option<RecentSegment>>>);

#[derive(Debug)]
struct RecentSegment {
    key: (ThreadIx, usize),
    changes: Vec<Change>,
}

/// The number of unpacked segments of timelines that are kept; a power of two. The number is a guess that changes only
/// the speed.
const RECENT_SEGMENTS: usize = 1024;

impl Clone for Recent {
    fn clone(&self) -> Recent {
        Recent::default()
    }
}

/// The stretches of every thread: the parts of its time in one state, in order. All functions panic for a thread of
/// another analysis.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    lines: Arena<ThreadIx, Line>,
    /// For each task of the tracker, the task's thread in the model, or the task's tid if it has no such thread. Packed
    /// changes of state name the task that woke or preempted a thread by the index of that task in this list.
    actors: Vec<ActorRef>,
    scratch: Option<&'static Scratch>,
    recent: Recent,
}

impl Timeline {
    /// The number of stretches that a thread's timeline has.
    pub fn count(&self, thread: ThreadIx) -> usize {
        self.lines[thread].count()
    }

    /// The number of waits that were ended by tasks, summed over all threads. Threads whose changes were altered after
    /// the trace was read are left out.
    pub fn dependencies(&self) -> u64 {
        let each = self
            .lines
            .iter()
            .map(|line| u64::from(line.packed.by_task()));
        each.fold(0, u64::saturating_add)
    }

    /// Unpacks a segment of a thread's timeline, which is a group of packed changes of state, into `to`.
    fn unpack(&self, thread: ThreadIx, segment: usize, reader: &mut Reader, to: &mut Vec<Change>) {
        let line = &self.lines[thread];
        if let Some(plain) = &line.plain {
            to.clear();
            let changes = plain.chunks(SEGMENT_LENGTH).nth(segment);
            to.extend_from_slice(changes.unwrap_or_default());
            return;
        }
        line.packed.unpack(line.task, segment, reader, to);
        for change in to {
            if let Some(actor) = change.actor.place().and_then(|task| self.actors.get(task)) {
                change.actor = *actor;
            }
        }
    }

    /// Calls `with` with the changes of state in a segment of a thread's timeline, and returns what `with` returns.
    fn with_segment<T>(
        &self,
        thread: ThreadIx,
        segment: usize,
        with: impl FnOnce(&[Change]) -> T,
    ) -> T {
        let key = (thread, segment);
        let unpack = |changes: &mut Vec<Change>| {
            let mut reader = Reader::new(self.scratch, 0);
            self.unpack(thread, segment, &mut reader, changes);
        };
        let Ok(mut recent) = self.recent.0.try_lock() else {
            let mut changes = Vec::new();
            unpack(&mut changes);
            return with(&changes);
        };
        if recent.is_empty() {
            recent.resize_with(RECENT_SEGMENTS, || None);
        }
        let place = (thread.0 as usize).wrapping_mul(31).wrapping_add(segment) % RECENT_SEGMENTS;
        let Some(entry) = recent.get_mut(place) else {
            return with(&[]);
        };
        let entry = entry.get_or_insert_with(|| RecentSegment {
            key: (thread, usize::MAX),
            changes: Vec::new(),
        });
        if entry.key != key {
            unpack(&mut entry.changes);
            entry.key = key;
        }
        with(&entry.changes)
    }

    /// The stretch with the number `number` in a thread's timeline; `None` if there is none.
    pub fn get(&self, thread: ThreadIx, number: usize) -> Option<Stretch> {
        let line = &self.lines[thread];
        if number >= line.count() {
            return None;
        }
        let (segment, at) = (number / SEGMENT_LENGTH, number % SEGMENT_LENGTH);
        self.with_segment(thread, segment, |changes| {
            let change = changes.get(at)?;
            let next = changes.get(at + 1).map(|next| next.from);
            Some(
                change.stretch(
                    next.or_else(|| line.begin_of(segment + 1))
                        .unwrap_or(line.end),
                ),
            )
        })
    }

    /// The stretches of a thread from the stretch with the number `number` on.
    pub fn from_number(&self, thread: ThreadIx, number: usize) -> Stretches<'_> {
        Stretches::new(self, thread, number)
    }

    /// The stretches of a thread's timeline, but many of those that no other task ended are left out, which makes
    /// the iteration faster.
    pub(crate) fn around_tasks(&self, thread: ThreadIx) -> Stretches<'_> {
        self.of(thread).around_tasks()
    }

    /// Whether a thread may have waited for this reason. The result `false` is certain; `true` is not.
    pub fn may_wait(&self, thread: ThreadIx, reason: Reason) -> bool {
        let line = &self.lines[thread];
        line.plain.is_some() || line.packed.has_reason(reason as u8)
    }

    /// The stretches of a thread. They follow each other without gaps from the thread's start to its end, inside
    /// the analyzed span.
    pub fn of(&self, thread: ThreadIx) -> Stretches<'_> {
        self.from_number(thread, 0)
    }

    /// The stretch of a thread around a time: the last stretch that begins at or before the time.
    pub fn around(&self, thread: ThreadIx, time: Ktime) -> Option<Stretch> {
        self.get(thread, self.at(thread, time)?)
    }

    /// The last stretch of a thread that begins before a time. The stretch contains the time or ends at it, unless the
    /// thread ended earlier.
    pub fn before(&self, thread: ThreadIx, time: Ktime) -> Option<Stretch> {
        self.get(thread, self.number_before(thread, time)?)
    }

    /// The number of the last stretch of a thread that begins before a time; see [`Self::before`].
    pub fn number_before(&self, thread: ThreadIx, time: Ktime) -> Option<usize> {
        self.at(thread, Ktime(time.0.checked_sub(1)?))
    }

    /// The stretches of a thread, beginning with the stretch that contains a time, or with the first one.
    pub fn since(&self, thread: ThreadIx, time: Ktime) -> Stretches<'_> {
        self.from_number(thread, self.at(thread, time).unwrap_or(0))
    }

    /// The changes of state of all the given threads in the order of time.
    pub fn changes(&self, threads: impl Iterator<Item = ThreadIx>) -> Changes<'_> {
        let first = |thread| Some((self.lines[thread].begin_of(0)?, thread));
        let mut unborn: Vec<(Ktime, ThreadIx)> = threads.filter_map(first).collect();
        unborn.sort_unstable_by_key(|first| Reverse(*first));
        Changes::new(self, unborn)
    }

    /// The changes of state of a thread in unpacked form, so that they can be altered.
    fn plain(&mut self, thread: ThreadIx) -> &mut Vec<Change> {
        let segments = self.lines[thread].count().div_ceil(SEGMENT_LENGTH);
        if self.lines[thread].plain.is_none() {
            let mut reader = Reader::new(self.scratch, AHEAD_BYTES);
            let (mut all, mut changes) = (Vec::new(), Vec::new());
            for segment in 0..segments {
                self.unpack(thread, segment, &mut reader, &mut changes);
                all.append(&mut changes);
            }
            self.lines[thread].packed = Packed::default();
            self.lines[thread].plain = Some(all);
        }
        self.recent = Recent::default();
        self.lines[thread].plain.get_or_insert_default()
    }

    /// Splits the stretch of a thread around the time `at` in two at that time. `actor` becomes the task or interrupt
    /// that ended the first part. The second part keeps the task or interrupt that ended the whole stretch.
    pub(crate) fn divide(&mut self, thread: ThreadIx, at: Ktime, actor: Actor) {
        let Some(number) = self.at(thread, at) else {
            return;
        };
        let changes = self.plain(thread);
        let Some(first) = changes.get_mut(number).filter(|first| first.from < at) else {
            return;
        };
        let rest = Change { from: at, ..*first };
        first.actor = ActorRef::of(actor);
        changes.insert(number + 1, rest);
    }

    /// Sets which task or interrupt ended the stretch with the number `number` of a thread.
    pub(crate) fn end_by(&mut self, thread: ThreadIx, number: usize, actor: Actor) {
        if let Some(change) = self.plain(thread).get_mut(number) {
            change.actor = ActorRef::of(actor);
        }
    }

    /// The number of the thread's last stretch that begins at or before a time; see [`Self::around`].
    pub fn at(&self, thread: ThreadIx, time: Ktime) -> Option<usize> {
        let segment = self.lines[thread].segment_at(time)?;
        self.with_segment(thread, segment, |changes| {
            let after = changes.partition_point(|change| change.from <= time);
            Some(segment * SEGMENT_LENGTH + after.checked_sub(1)?)
        })
    }
}

#[cfg(test)]
#[path = "tests/timeline.rs"]
mod tests;
