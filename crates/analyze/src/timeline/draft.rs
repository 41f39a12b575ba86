//! Collects the timelines of the tracker's tasks while a recording is read.

use std::cmp::Reverse;

use tr_format::event::{CpuId, Ktime, Tid};

use super::change::{ActorRef, Change, Why};
use super::packed::{Packed, Reader};
use super::{Line, Recent, Timeline, AHEAD_BYTES};
use crate::ids::ThreadIx;
use crate::scratch::Scratch;
use crate::state::{Bucket, Wait};

/// The timelines of the tracker's tasks while events are still read. `tasks` has the same indices as the tracker's
/// tasks.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(super) tasks: Vec<Packed>,
    /// The scratch file to which packed bytes of timelines are moved when [`Draft::moves_at`] are in memory.
    pub(super) scratch: Option<&'static Scratch>,
    /// The number of packed bytes of timelines in memory.
    pub(super) held: usize,
    /// If this many packed bytes of timelines are in memory, complete segments are moved to the scratch file.
    pub(super) moves_at: usize,
    /// How many more packed bytes have to be collected in memory after a move to the scratch file before the next
    /// move.
    pub(super) kept: usize,
}

/// The number of bytes of packed timelines in memory at which complete segments are moved to the scratch file for the
/// first time, if there is one.
const KEPT_BYTES: usize = 32 << 20;
/// The least number of packed bytes of timelines that are written to the scratch file at once, except at the end.
const WRITTEN_BYTES: usize = 1 << 20;

impl Draft {
    pub(crate) fn new(scratch: Option<&'static Scratch>) -> Draft {
        Draft {
            scratch,
            moves_at: KEPT_BYTES,
            kept: KEPT_BYTES,
            ..Draft::default()
        }
    }

    /// Appends a stretch that begins at `from` to the timeline of a task. Stretches have to be added in the order of
    /// time, without gaps.
    pub(crate) fn add(
        &mut self,
        task: usize,
        from: Ktime,
        doing: Bucket,
        cpu: Option<CpuId>,
        why: Why,
    ) {
        if self.tasks.len() <= task {
            self.tasks.resize_with(task + 1, Packed::default);
        }
        let change = Change::new(from, doing, cpu, why);
        if let Some(packed) = self.tasks.get_mut(task) {
            let continues = packed
                .last()
                .is_some_and(|last| last.is_continued_by(&change));
            if !continues {
                self.held += packed.push(task, change);
            }
        }
        if self.held >= self.moves_at && self.scratch.is_some() {
            self.move_out();
        }
    }

    /// Moves all complete segments of packed changes to the scratch file. If the file cannot take them, everything
    /// stays in memory from then on.
    #[cold]
    fn move_out(&mut self) {
        let Some(scratch) = self.scratch else {
            return;
        };
        let mut piece: Vec<u8> = Vec::with_capacity(WRITTEN_BYTES);
        let mut moving: Vec<(usize, usize)> = Vec::new();
        let tasks = self.tasks.len();
        for task in 0..tasks {
            if let Some(packed) = self.tasks.get(task) {
                let movable = packed.movable();
                if movable > 0 {
                    piece.extend_from_slice(packed.to_move(movable));
                    moving.push((task, movable));
                }
            }
            if piece.len() < WRITTEN_BYTES && task + 1 < tasks {
                continue;
            }
            let Ok(mut place) = scratch.write(&piece) else {
                self.moves_at = usize::MAX;
                return;
            };
            for (task, movable) in moving.drain(..) {
                if let Some(packed) = self.tasks.get_mut(task) {
                    packed.moved(movable, place);
                }
                self.held = self.held.saturating_sub(movable);
                place += movable as u64;
            }
            piece.clear();
        }
        // Only complete segments can be moved out; the others stay in memory, however many they are. So the next move
        // is due when the memory has grown by `kept` bytes.
        self.moves_at = self.held + self.kept;
    }

    /// The changes of a task's state in its timeline, unpacked.
    fn changes(&self, task: usize) -> Vec<Change> {
        let Some(packed) = self.tasks.get(task) else {
            return Vec::new();
        };
        let mut reader = Reader::new(self.scratch, AHEAD_BYTES);
        let (mut all, mut segment) = (Vec::new(), Vec::new());
        for number in 0..packed.segments() {
            packed.unpack(task, number, &mut reader, &mut segment);
            all.append(&mut segment);
        }
        all
    }

    /// Makes up to `most` nanoseconds of a task's waits for a CPU unknown, the longest waits first. A wait is
    /// considered only if it directly follows time on a CPU and no waking was seen for it, because the task may have
    /// slept for a part of such a wait. Returns how many ns were made unknown.
    pub(crate) fn doubt_unwoken(&mut self, task: usize, most: u64) -> u64 {
        let mut changes = self.changes(task);
        let is = |change: &Change, doing: Bucket| change.state() == Some(&doing);
        let waits = Bucket::RunQueue { preempted: false };
        let unwoken = changes.windows(3).enumerate().filter_map(|(at, changes)| {
            let [before, wait, after] = changes else {
                return None;
            };
            let nobody = wait.actor == ActorRef::UNKNOWN && is(wait, waits);
            let length = after.from.since(wait.from);
            (nobody && is(before, Bucket::OnCpu(None))).then_some((length, at + 1))
        });
        let mut unwoken: Vec<(u64, usize)> = unwoken.collect();
        unwoken.sort_unstable_by_key(|(length, at)| (Reverse(*length), *at));
        let off_cpu = Why {
            actor: ActorRef::UNKNOWN,
            reason: 0,
            timeout: 0,
        };
        let mut left = most;
        let mut divided = Vec::new();
        for (length, at) in unwoken {
            let Some(wait) = changes.get_mut(at).filter(|_| left > 0) else {
                break;
            };
            let rest = *wait;
            *wait = Change::new(rest.from, Bucket::Wait(Wait::Unknown), None, off_cpu);
            if length > left {
                let from = Ktime(wait.from.0.saturating_add(left));
                divided.push((at + 1, Change { from, ..rest }));
            }
            left -= left.min(length);
        }
        // At most one wait was split, because only one wait can be longer than the time that was left. So `divided` has
        // at most one entry, and the insertion of this entry does not shift the place of another entry.
        for (at, rest) in divided {
            changes.insert(at, rest);
        }
        if left < most {
            self.replace(task, &changes);
        }
        most - left
    }

    fn replace(&mut self, task: usize, changes: &[Change]) {
        if let Some(packed) = self.tasks.get_mut(task) {
            self.held = self.held.saturating_sub(packed.in_memory());
            *packed = Packed::default();
            for change in changes {
                self.held += packed.push(task, *change);
            }
        }
    }

    /// Makes the timeline of the model's threads. `threads` has the index of each thread's task and the end of the
    /// thread. `thread_of` finds the thread of a task, or the tid of a task that is not part of the model.
    pub(crate) fn finish(
        mut self,
        threads: impl Iterator<Item = (usize, Ktime)>,
        thread_of: impl Fn(usize) -> Result<ThreadIx, Tid>,
        tasks: usize,
    ) -> Timeline {
        let actor_of = |task: usize| match thread_of(task) {
            Ok(thread) => ActorRef::task(thread.0 as usize),
            Err(tid) => ActorRef::outside(tid),
        };
        let lines = threads.map(|(task, end)| {
            // A task that spent no time in the analyzed span has no changes of state.
            let mut packed = self
                .tasks
                .get_mut(task)
                .map(std::mem::take)
                .unwrap_or_default();
            packed.shrink();
            Line {
                packed,
                task,
                end,
                plain: None,
            }
        });
        Timeline {
            lines: lines.collect(),
            actors: (0..tasks).map(actor_of).collect(),
            scratch: self.scratch,
            recent: Recent::default(),
        }
    }
}
