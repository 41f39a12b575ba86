//! The tasks of a frame as both sides know them: who was met, who was recent,
//! who woke whom.

use super::model::RANKS;

/// Index of the idle task among a frame's tasks.
pub const IDLE_AT: u16 = 0;
/// Index that stands for whoever an interrupt found running.
pub const IRQ_AT: u16 = 1;
/// Index that stands for a running task that was given.
pub const STRANGER_AT: u16 = 2;
/// How many indices do not stand for a task that was met.
const FIRST_AT: usize = 3;
/// No task.
pub const NOBODY: u16 = u16::MAX;

/// What is known of a task.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Its id.
    pub id: u32,
    /// The task it woke last.
    pub woke: u16,
    /// The task that was woken after it by the same waker.
    pub next: u16,
}

impl Seen {
    /// A task that has woken nobody.
    pub fn new(id: u32) -> Seen {
        Seen {
            id,
            woke: NOBODY,
            next: NOBODY,
        }
    }
}

/// Ranks that are moved without a loop.
const NEAR: usize = 16;

/// The tasks of a frame.
#[derive(Debug, Default)]
pub struct Tasks {
    /// By index.
    pub seen: Vec<Seen>,
    /// Indices by use, the last one used at the end, behind [`NEAR`] that stand
    /// for nobody. A task that is used as NEXT or SAME stays in its place too,
    /// since to look for it would cost more than the double entry does.
    recent: Vec<u16>,
}

impl Tasks {
    /// Before the first event.
    pub fn reset(&mut self) {
        self.seen.clear();
        self.seen.resize(FIRST_AT, Seen::new(0));
        self.recent.clear();
        self.recent.resize(NEAR, NOBODY);
    }

    /// A task that was not among the recent ones. Its index.
    #[inline]
    pub fn add(&mut self, id: u32) -> u16 {
        let at = self.seen.len() as u16;
        self.seen.push(Seen::new(id));
        self.recent.push(at);
        at
    }

    /// A task that is recent again, from an unknown place.
    #[inline(always)]
    pub fn push(&mut self, at: u16) {
        self.recent.push(at);
    }

    /// The task of this rank; it has rank 0 then.
    #[inline(always)]
    #[allow(clippy::indexing_slicing)] // All indices follow from `place`, which is checked.
    pub fn take(&mut self, rank: usize) -> Option<u16> {
        let len = self.recent.len();
        let place = len.checked_sub(rank + 1).filter(|place| *place >= NEAR)?;
        let at = self.recent[place];
        if rank == 0 {
            return Some(at);
        }
        if rank == 1 {
            self.recent.swap(place, place + 1);
            return Some(at);
        }
        match self.recent.last_chunk_mut::<NEAR>() {
            // Without a branch for each length, and without a call.
            Some(near) if rank < NEAR => {
                let old = *near;
                let first = (NEAR - 1 - rank) as u16;
                for (i, slot) in (0u16..).zip(near.iter_mut()).take(NEAR - 1) {
                    let moved = old[usize::from(i) + 1];
                    *slot = if i >= first { moved } else { *slot };
                }
                near[NEAR - 1] = at;
            }
            _ => {
                self.recent.copy_within(place + 1.., place);
                self.recent[len - 1] = at;
            }
        }
        Some(at)
    }

    /// The id of the task at an index.
    #[inline(always)]
    pub fn id(&self, at: u16) -> Option<u32> {
        self.seen.get(usize::from(at)).map(|seen| seen.id)
    }

    /// The rank and index of a task that is among the last few, found without
    /// looking up its index.
    #[inline(always)]
    pub fn near(&self, id: u32) -> Option<(usize, u16)> {
        let last = self.recent.get(NEAR..)?.iter().rev().take(4);
        last.copied()
            .enumerate()
            .find(|(_, at)| self.id(*at) == Some(id))
    }

    /// The rank of a task, when it has one.
    #[inline]
    pub fn rank(&self, at: u16) -> Option<usize> {
        let window = self.recent.get(NEAR..).unwrap_or_default();
        let first = window.len().saturating_sub(RANKS);
        let window = window.get(first..).unwrap_or_default();
        // Pieces can be compared at once.
        let mut before = 0;
        for piece in window.rchunks(NEAR) {
            let found = piece
                .iter()
                .fold(false, |found, other| found | (*other == at));
            if found {
                let back = piece.iter().rev().position(|other| *other == at)?;
                return Some(before + back);
            }
            before += piece.len();
        }
        None
    }

    /// A task woke another.
    #[inline(always)]
    #[allow(clippy::indexing_slicing)] // Indices of tasks that were met.
    pub fn woken(&mut self, waker: u16, last: u16, wakee: u16) {
        if let Some(last) = self.seen.get_mut(usize::from(last)) {
            last.next = wakee;
        }
        self.seen[usize::from(waker)].woke = wakee;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_move_to_the_front_from_any_rank() {
        let mut tasks = Tasks::default();
        tasks.reset();
        let mut model: Vec<u16> = Vec::new();
        for id in 0..40 {
            model.insert(0, tasks.add(id));
        }
        for step in 0..500usize {
            let rank = step * step % 40;
            assert_eq!(tasks.rank(model[rank]), Some(rank));
            let at = model.remove(rank);
            model.insert(0, at);
            assert_eq!(tasks.take(rank), Some(at));
        }
        assert_eq!(tasks.take(40), None, "there are no more");
    }
}
