//! Keeps track of the tasks of a scheduling block, in the same way for its encoder and its decoder: the indices of
//! tasks, the recent tasks, and the task that each task is expected to wake next.

/// The index that a block uses for the idle task in its role as a waker.
pub const IDLE_AT: u16 = 0;
/// The index that a block uses for interrupts in their role as wakers; all of them share it.
pub const IRQ_AT: u16 = 1;
/// The index that stands for a running task whose id an event stores in full. All such tasks share it.
pub const GIVEN_AT: u16 = 2;
/// The index of the first task that a block of scheduling events names. Smaller indices have special meanings.
pub const FIRST_AT: u16 = 3;
/// The index that stands for no task. A block has too few events to give this index to a task.
pub const NOBODY: u16 = u16::MAX;
/// The number of recent tasks that are remembered while a block is encoded or decoded. The rank of a task is its
/// position among them, and rank 0 is the most recent task.
pub const RANKS: usize = 16;

/// The properties of a task's sleep in a block: the task's state, the reason and the time-out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sleep {
    /// The raw bits of the kernel's state of the task that goes to sleep.
    pub state: u16,
    /// The stored number of the [`Reason`](crate::reason::Reason) why the task sleeps.
    pub reason: u8,
    /// The stored number of the [`Timeout`](crate::reason::Timeout) with which the task sleeps.
    pub timeout: u8,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    id: u32,
    /// The index of the task that this task of the block woke most recently.
    woke: u16,
    /// A prediction for a waker that has just woken this task: the index of the task that the waker will wake next. The
    /// prediction is the task that the last such waker woke after this task; before there is one, it is this task
    /// itself.
    next: u16,
    /// The index of the task that this task of the block is expected to wake next.
    expected: u16,
    /// The state, the reason and the time-out of this task's most recent sleep in the block.
    slept: Sleep,
}

/// The tasks that a block of scheduling events has named so far, by index.
#[derive(Debug)]
pub struct Tasks {
    tasks: Vec<Task>,
    /// For each event class (flags and task state), the reason for the block's last sleep that began with an event of
    /// this class. The index is the number of the class, and the value is the number of the reason.
    reasons: [u8; 256],
    /// For each reason for a sleep (the index), the stored number of the time-out of the block's last sleep with this
    /// reason.
    timeouts: [u8; 256],
}

impl Default for Tasks {
    fn default() -> Tasks {
        Tasks {
            tasks: Vec::new(),
            reasons: [0; 256],
            timeouts: [0; 256],
        }
    }
}

impl Tasks {
    /// Forgets all tasks and predictions, as at the beginning of a block of scheduling events.
    pub fn reset(&mut self) {
        self.tasks.clear();
        self.reasons = [0; 256];
        self.timeouts = [0; 256];
        (0..FIRST_AT).for_each(|_| _ = self.add(0));
    }

    /// The number of tasks that the block of scheduling events has named so far.
    pub fn count(&self) -> usize {
        self.tasks.len().saturating_sub(usize::from(FIRST_AT))
    }

    /// Adds a task that the block of scheduling events names for the first time. Returns the index of the task.
    pub fn add(&mut self, id: u32) -> u16 {
        // The index fits into 16 bits, because a block has fewer than 2^16 - 4 events.
        let at = self.tasks.len() as u16;
        self.tasks.push(Task {
            id,
            woke: NOBODY,
            next: at,
            expected: NOBODY,
            slept: Sleep::default(),
        });
        at
    }

    /// The id of the task that has this index in the block; `None` if the block has named no such task.
    #[inline(always)]
    pub fn id(&self, at: u16) -> Option<u32> {
        let task = self.tasks.get(usize::from(at))?;
        (at >= FIRST_AT).then_some(task.id)
    }

    /// The index of the task that the task with the index `waker` is expected to wake next.
    #[inline(always)]
    pub fn expected(&self, waker: u16) -> u16 {
        let waker = self.tasks.get(usize::from(waker));
        waker.map_or(NOBODY, |task| task.expected)
    }

    /// The number of the reason that is predicted for a sleep. If the task had the same state in its last sleep, the
    /// reason of that sleep is predicted. Otherwise it is the reason of the block's last sleep that began with an event
    /// of the class `class`.
    #[inline(always)]
    #[allow(clippy::indexing_slicing)] // The index is a byte, and the array has 256 elements.
    pub fn reason(&self, at: u16, state: u16, class: u8) -> u8 {
        match self.tasks.get(usize::from(at)) {
            Some(task) if task.slept.state == state => task.slept.reason,
            _ => self.reasons[usize::from(class)],
        }
    }

    /// The stored number of the time-out that is predicted for a sleep. If the task's last sleep had the same reason,
    /// the time-out of that sleep is predicted. Otherwise it is the time-out of the block's last sleep with this
    /// reason.
    #[inline(always)]
    #[allow(clippy::indexing_slicing)] // The index is a byte, and the array has 256 elements.
    pub fn timeout(&self, at: u16, reason: u8) -> u8 {
        match self.tasks.get(usize::from(at)) {
            Some(task) if task.slept.reason == reason => task.slept.timeout,
            _ => self.timeouts[usize::from(reason)],
        }
    }

    /// Records a task's switch-out into a sleep, for later predictions. `class` is the number of the event's class (its
    /// flags and task state).
    #[inline(always)]
    #[allow(clippy::indexing_slicing)] // Both indices are bytes, and both arrays have 256 elements.
    pub fn slept(&mut self, at: u16, class: u8, sleep: Sleep) {
        self.reasons[usize::from(class)] = sleep.reason;
        self.timeouts[usize::from(sleep.reason)] = sleep.timeout;
        if let Some(task) = self.tasks.get_mut(usize::from(at)) {
            task.slept = sleep;
        }
    }

    /// Records that `waker` woke `wakee`, and predicts the task that `waker` will wake next. The prediction is the task
    /// that was woken right after `wakee` the last time.
    #[inline(always)]
    pub fn woken(&mut self, waker: u16, wakee: u16) {
        let next = self
            .tasks
            .get(usize::from(wakee))
            .map_or(NOBODY, |task| task.next);
        let Some(task) = self.tasks.get_mut(usize::from(waker)) else {
            return;
        };
        let last = std::mem::replace(&mut task.woke, wakee);
        // A task that the waker wakes twice in a row is expected to be woken a third time.
        task.expected = if last == wakee { wakee } else { next };
        if let Some(last) = self.tasks.get_mut(usize::from(last)) {
            last.next = wakee;
        }
    }
}

/// The 16 most recent tasks of a block, by their indices. `places` has them in any order, and `order` has the order:
/// four bits for each rank (0 for the most recent task), with the place of the task of that rank. With this packed
/// order, a task moves to the front in a few instructions without a jump.
#[derive(Debug)]
pub struct Recent {
    places: [u16; RANKS],
    /// For each rank of a recent task (0 for the most recent one), the position of that task in `places`: four bits for
    /// each rank, with rank 0 in the lowest four bits.
    order: u64,
}

#[allow(clippy::indexing_slicing)] // An index of four bits is below RANKS.
impl Recent {
    pub fn new() -> Recent {
        Recent {
            places: [NOBODY; RANKS],
            order: 0xfedc_ba98_7654_3210,
        }
    }

    /// The rank of a task among the block's recent tasks, 0 for the most recent one; `None` if the task is not one of
    /// them. `at` is the task's index in the block.
    #[inline(always)]
    pub fn rank(&self, at: u16) -> Option<usize> {
        const ONES: u64 = 0x1111_1111_1111_1111;
        let place = self.places.iter().position(|recent| *recent == at)?;
        // `order` is searched for the hexadecimal digit `place`: XOR makes that digit 0, and the usual bit trick then
        // finds the lowest 0 exactly.
        let digits = self.order ^ (ONES * place as u64);
        let zero = digits.wrapping_sub(ONES) & !digits & (ONES << 3);
        Some(zero.trailing_zeros() as usize / 4)
    }

    /// The index in the block of the recent task with this rank (0 for the most recent task).
    #[inline(always)]
    pub fn at(&self, rank: usize) -> u16 {
        self.places[(self.order >> (4 * rank % 64) & 15) as usize]
    }

    /// Puts the task with the index `at` at the front of the list of recent tasks, as the most recent one. The task
    /// that had the rank `rank` is removed, unless it is the same task.
    #[inline(always)]
    pub fn put(&mut self, rank: usize, at: u16) {
        let shift = 4 * rank % 64;
        let place = self.order >> shift & 15;
        self.places[place as usize] = at;
        let below = (1u64 << shift) - 1;
        let through = below << 4 | 15;
        self.order = (self.order & !through) | (self.order & below) << 4 | place;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_move_to_the_front_from_any_rank() {
        let mut recent = Recent::new();
        let mut model = vec![NOBODY; RANKS];
        for step in 0..5000usize {
            let rank = step * step / 7 % RANKS;
            assert_eq!(recent.at(rank), model[rank]);
            let at = step as u16;
            model.remove(rank);
            model.insert(0, at);
            recent.put(rank, at);
            if step >= RANKS {
                let of = |task: &u16| recent.rank(*task);
                assert!(model.iter().map(of).eq((0..RANKS).map(Some)) || step < 4 * RANKS);
            }
        }
    }
}
