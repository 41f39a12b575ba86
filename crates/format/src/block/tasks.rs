//! The tasks of a block as both sides know them: who was met, who was recent,
//! who woke whom. Everything takes the same few steps whatever the task.

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
    const fn new(id: u32) -> Seen {
        Seen {
            id,
            woke: NOBODY,
            next: NOBODY,
        }
    }
}

/// The tasks of a block, by index.
#[derive(Debug)]
pub struct Tasks {
    /// All that an index can name, so that none needs a check.
    seen: Box<[Seen; 1 << 16]>,
    /// How many of them there are.
    count: u16,
}

impl Default for Tasks {
    fn default() -> Tasks {
        let seen = vec![Seen::new(0); 1 << 16].into_boxed_slice();
        Tasks {
            // It has this length.
            seen: seen.try_into().unwrap_or_else(|_| unreachable!()),
            count: FIRST_AT,
        }
    }
}

#[allow(clippy::indexing_slicing)] // A u16 is below 2^16, a constant below 2^16 - 1.
impl Tasks {
    /// Before the first event.
    pub fn reset(&mut self) {
        self.count = FIRST_AT;
        for at in 0..FIRST_AT {
            self.seen[usize::from(at)] = Seen::new(0);
        }
        self.seen[usize::from(NOBODY)] = Seen::new(0);
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
        self.seen[usize::from(at)] = Seen::new(id);
        // A block has fewer than 2^16 - 4 events.
        self.count = at.wrapping_add(1);
        at
    }

    /// The id of the task at an index.
    #[inline(always)]
    pub fn id(&self, at: u16) -> u32 {
        self.seen[usize::from(at)].id
    }

    /// The task that this one woke last, and the one that was woken after that
    /// one.
    #[inline(always)]
    pub fn expected(&self, waker: u16) -> (u16, u16) {
        let last = self.seen[usize::from(waker)].woke;
        (last, self.seen[usize::from(last)].next)
    }

    /// A task woke another; `last` was the one before.
    #[inline(always)]
    pub fn woken(&mut self, waker: u16, last: u16, wakee: u16) {
        self.seen[usize::from(last)].next = wakee;
        // Nobody is followed by nobody.
        self.seen[usize::from(NOBODY)].next = NOBODY;
        self.seen[usize::from(waker)].woke = wakee;
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

    /// The place of a rank.
    #[inline(always)]
    pub fn place(&self, rank: u32) -> u8 {
        (self.order >> (4 * rank) & 15) as u8
    }

    /// The task in a place.
    #[inline(always)]
    pub fn at(&self, place: u8) -> u16 {
        self.places[usize::from(place & 15)]
    }

    /// Puts a task into a place, whose rank was `rank` and is 0 then.
    #[inline(always)]
    pub fn set(&mut self, rank: u32, place: u8, at: u16) {
        self.places[usize::from(place & 15)] = at;
        let below = (1u64 << (4 * rank)) - 1;
        let through = below << 4 | 15;
        self.order =
            (self.order & !through) | (self.order & below) << 4 | u64::from(place);
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
            let place = recent.place(rank);
            assert_eq!(recent.rank(place), rank);
            assert_eq!(recent.at(place), model[rank as usize]);
            model.remove(rank as usize);
            model.insert(0, step as u16);
            recent.set(rank, place, step as u16);
        }
        for (rank, at) in (0..).zip(&model) {
            assert_eq!(recent.at(recent.place(rank)), *at);
        }
    }
}
