//! The tasks of a block as both sides know them: who was met, who was recent,
//! who woke whom. Everything takes the same few steps whatever the task.

use super::boxed;

/// Index of the idle task among a block's tasks.
pub const IDLE_AT: u16 = 0;
/// Index that stands for whoever an interrupt found running.
pub const IRQ_AT: u16 = 1;
/// Index that stands for a running task that was given.
pub const STRANGER_AT: u16 = 2;
/// How many indices do not stand for a task that was met.
pub const FIRST_AT: u16 = 3;
/// No task. A block has fewer events.
pub const NOBODY: u16 = u16::MAX;
/// Ranks of recent tasks.
pub const RANKS: u32 = 16;

/// A task of a block.
#[derive(Clone, Copy, Debug, Default)]
struct Task {
    id: u32,
    /// The task that it woke last.
    woke: u16,
    /// The task that was woken after it by the same waker; itself at first.
    next: u16,
    /// The task that it is expected to wake.
    expected: u16,
}

/// The tasks of a block, by index.
#[derive(Debug)]
pub struct Tasks {
    tasks: Box<[Task; 1 << 16]>,
    /// How many of them there are.
    count: u16,
}

impl Default for Tasks {
    fn default() -> Tasks {
        Tasks {
            tasks: boxed(Task::default()),
            count: FIRST_AT,
        }
    }
}

#[allow(clippy::indexing_slicing)] // A u16 is below 2^16.
impl Tasks {
    /// Before the first event.
    pub fn reset(&mut self) {
        self.count = 0;
        for _ in 0..FIRST_AT {
            self.add(0);
        }
    }

    /// How many indices there are.
    #[inline(always)]
    pub fn count(&self) -> u16 {
        self.count
    }

    /// A task that was not met before. Its index.
    #[inline(always)]
    pub fn add(&mut self, id: u32) -> u16 {
        let at = self.count;
        self.tasks[usize::from(at)] = Task {
            id,
            woke: NOBODY,
            next: at,
            expected: NOBODY,
        };
        // A block has fewer than 2^16 - 4 events.
        self.count = at.wrapping_add(1);
        at
    }

    /// The id of the task at an index.
    #[inline(always)]
    pub fn id(&self, at: u16) -> u32 {
        self.tasks[usize::from(at)].id
    }

    /// The task that this one is expected to wake.
    #[inline(always)]
    pub fn expected(&self, waker: u16) -> u16 {
        self.tasks[usize::from(waker)].expected
    }

    /// A task woke another.
    #[inline(always)]
    pub fn woken(&mut self, waker: u16, wakee: u16) {
        let last = self.tasks[usize::from(waker)].woke;
        // Nobody's successor is never asked for.
        self.tasks[usize::from(last)].next = wakee;
        let next = self.tasks[usize::from(wakee)].next;
        let waker = &mut self.tasks[usize::from(waker)];
        waker.expected = next;
        waker.woke = wakee;
    }
}

/// The recent tasks: [`RANKS`] places with an index each, and their order, the
/// last one used first, as the digits of one number.
#[derive(Clone, Debug)]
pub struct Recent {
    places: [u16; RANKS as usize],
    /// A place has four bits, rank 0 the lowest ones.
    order: u64,
}

#[allow(clippy::indexing_slicing)] // Four bits are below RANKS.
impl Recent {
    /// Nobody was recent.
    pub fn new() -> Recent {
        Recent {
            places: [NOBODY; RANKS as usize],
            order: 0xfedc_ba98_7654_3210,
        }
    }

    /// The place of a rank; `shift` is four times the rank.
    #[inline(always)]
    pub fn place(&self, shift: u8) -> u8 {
        (self.order >> (shift % 64) & 15) as u8
    }

    /// The task in a place.
    #[inline(always)]
    pub fn at(&self, place: u8) -> u16 {
        self.places[usize::from(place & 15)]
    }

    /// Puts a task into a place, whose rank is 0 then; `shift` is four times
    /// what it was.
    #[inline(always)]
    pub fn set(&mut self, shift: u8, place: u8, at: u16) {
        self.places[usize::from(place & 15)] = at;
        let below = (1u64 << (shift % 64)) - 1;
        let through = below << 4 | 15;
        self.order = (self.order & !through) | (self.order & below) << 4 | u64::from(place);
    }

    /// The rank of a place.
    #[inline(always)]
    pub fn rank(&self, place: u8) -> u32 {
        const ONES: u64 = 0x1111_1111_1111_1111;
        // The digit in question is 0 here; the lowest 0 is found exactly.
        let digits = self.order ^ (ONES * u64::from(place & 15));
        let zero = digits.wrapping_sub(ONES) & !digits & (ONES << 3);
        zero.trailing_zeros() / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_move_to_the_front_from_any_rank() {
        let mut recent = Recent::new();
        let mut model = vec![NOBODY; RANKS as usize];
        for step in 0..5000u32 {
            let rank = step.wrapping_mul(step) / 7 % RANKS;
            let place = recent.place(4 * rank as u8);
            assert_eq!(recent.rank(place), rank);
            assert_eq!(recent.at(place), model[rank as usize]);
            model.remove(rank as usize);
            model.insert(0, step as u16);
            recent.set(4 * rank as u8, place, step as u16);
        }
        for (rank, at) in (0..).zip(&model) {
            assert_eq!(recent.at(recent.place(4 * rank as u8)), *at);
        }
    }
}
