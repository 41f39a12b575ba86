//! Iterates over the stretches of one thread, or over the changes of several threads in the order of time.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::BinaryHeap;

use tr_format::event::Ktime;

use super::change::Change;
use super::packed::{Reader, SEGMENT_LENGTH};
use super::stretch::Stretch;
use super::{Timeline, AHEAD_BYTES};
use crate::ids::ThreadIx;

/// Iterates over the stretches of a thread in the order of time.
pub struct Stretches<'a> {
    timeline: &'a Timeline,
    thread: ThreadIx,
    /// The number of the thread's stretch that is returned next.
    number: usize,
    /// Whether the iterator leaves out the segments of the timeline in which no task ended a wait.
    by_task: bool,
    reader: Reader,
    /// The unpacked changes in the segment that contains the next stretch, unless the next stretch is the first
    /// one of the segment.
    changes: Vec<Change>,
}

impl Iterator for Stretches<'_> {
    type Item = Stretch;

    #[inline]
    fn next(&mut self) -> Option<Stretch> {
        if self.number.is_multiple_of(SEGMENT_LENGTH) || self.changes.is_empty() {
            self.enter()?;
        }
        let at = self.number % SEGMENT_LENGTH;
        let change = self.changes.get(at)?;
        let until = match self.changes.get(at + 1) {
            Some(next) => next.from,
            None => {
                let line = &self.timeline.lines[self.thread];
                let next = line.begin_of(self.number / SEGMENT_LENGTH + 1);
                next.unwrap_or(line.end)
            }
        };
        self.number += 1;
        Some(change.stretch(until))
    }
}

impl<'a> Stretches<'a> {
    /// An iterator over the stretches of a thread from the stretch with the number `number` on.
    pub(super) fn new(timeline: &'a Timeline, thread: ThreadIx, number: usize) -> Stretches<'a> {
        Stretches {
            timeline,
            thread,
            number,
            by_task: false,
            reader: Reader::new(timeline.scratch, AHEAD_BYTES),
            changes: Vec::new(),
        }
    }

    /// Makes the iterator leave out the segments of the timeline in which no task ended a wait.
    pub(super) fn around_tasks(self) -> Stretches<'a> {
        Stretches {
            by_task: true,
            ..self
        }
    }

    /// Unpacks the segment of the timeline that contains the thread's next stretch.
    fn enter(&mut self) -> Option<()> {
        let Stretches {
            timeline,
            thread,
            number,
            by_task,
            reader,
            changes,
        } = self;
        let line = &timeline.lines[*thread];
        if *by_task && line.plain.is_none() {
            while *number < line.count() && !line.packed.has_by_task(*number / SEGMENT_LENGTH) {
                *number = (*number / SEGMENT_LENGTH + 1) * SEGMENT_LENGTH;
            }
        }
        if *number >= line.count() {
            return None;
        }
        timeline.unpack(*thread, *number / SEGMENT_LENGTH, reader, changes);
        Some(())
    }
}

/// A moment at which the state of a thread changes, or at which the thread begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateChange {
    pub at: Ktime,
    pub thread: ThreadIx,
    /// The thread's stretch that ends at this moment; `None` at the beginning of the thread.
    pub before: Option<Stretch>,
    /// The thread's stretch that begins at this moment; `None` at the end of the thread.
    pub after: Option<Stretch>,
}

/// Iterates over the changes of several threads in the order of time; see [`Timeline::changes`].
pub struct Changes<'a> {
    timeline: &'a Timeline,
    /// The threads that have not begun yet, with their beginnings. The thread that begins first is the last in
    /// the list.
    unborn: Vec<(Ktime, ThreadIx)>,
    /// The next change of state of each living thread: its time, the thread, and the index of the thread in the
    /// list of living threads.
    next: BinaryHeap<Reverse<(Ktime, ThreadIx, u32)>>,
    living: Vec<Living<'a>>,
    /// The indices in the list of living threads that are free again, because the threads that had these indices have
    /// ended.
    free: Vec<u32>,
}

/// A thread that has begun and has not ended yet, in a walk over the changes of several threads.
struct Living<'a> {
    stretches: Stretches<'a>,
    /// The stretch of its timeline that the thread is in at the present moment of the walk.
    now: Stretch,
}

impl<'a> Changes<'a> {
    /// An iterator over the changes of state of several threads. `unborn` has the beginning of each thread; the
    /// thread that begins first is the last in the list.
    pub(super) fn new(timeline: &'a Timeline, unborn: Vec<(Ktime, ThreadIx)>) -> Changes<'a> {
        Changes {
            timeline,
            unborn,
            next: BinaryHeap::new(),
            living: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Lets a thread begin in the walk over several threads, and returns this beginning as a change of state.
    fn begin(&mut self, thread: ThreadIx) -> Option<StateChange> {
        let mut stretches = self.timeline.of(thread);
        let now = stretches.next()?;
        let living = Living { stretches, now };
        let place = match self.free.pop() {
            Some(place) => {
                if let Some(entry) = self.living.get_mut(place as usize) {
                    *entry = living;
                }
                place
            }
            None => {
                self.living.push(living);
                u32::try_from(self.living.len() - 1).ok()?
            }
        };
        self.next.push(Reverse((now.to, thread, place)));
        Some(StateChange {
            at: now.from,
            thread,
            before: None,
            after: Some(now),
        })
    }
}

impl Iterator for Changes<'_> {
    type Item = StateChange;

    fn next(&mut self) -> Option<StateChange> {
        let next = self
            .next
            .peek()
            .map(|Reverse((at, thread, _))| (*at, *thread));
        while let Some(first) = self.unborn.last().copied() {
            if next.is_some_and(|next| next < first) {
                break;
            }
            self.unborn.pop();
            if let Some(change) = self.begin(first.1) {
                return Some(change);
            }
        }
        let mut next = self.next.peek_mut()?;
        let Reverse((at, thread, place)) = *next;
        let living = self.living.get_mut(place as usize)?;
        let before = Some(living.now);
        let after = living.stretches.next();
        match after {
            Some(after) => {
                living.now = after;
                *next = Reverse((after.to, thread, place));
            }
            None => {
                PeekMut::pop(next);
                self.free.push(place);
            }
        }
        Some(StateChange {
            at,
            thread,
            before,
            after,
        })
    }
}
