//! What the coder of scheduling events distinguishes: which symbols there are,
//! and on what the frequencies of each kind depend.

use super::tasks::RANKS;
use crate::sched::flag;

/// An event's flags, [`IDLE`] among them, and its state.
pub type Shape = (u8, u16);

/// In a shape: a switch to the idle task; a waking while it runs. The task of a
/// switch that has it is not stored.
pub const IDLE: u8 = 0x40;
/// With a shape that is given: so is the running task.
pub const GIVEN: u8 = 0x80;

/// Shapes that have a symbol.
pub const SHAPES: usize = 31;
/// The symbol of a shape that has none; it is given.
pub const OTHER: u8 = 31;
/// Symbols of shapes.
pub const OPS: usize = 32;

/// The shapes of common kernels. A frame may put others in their places.
pub const COMMON: [Shape; SHAPES] = [
    (0, 0),
    (flag::PREEMPT, 0),
    (0, 0x0001),
    (0, 0x2001),
    (0, 0x0002),
    (flag::IOWAIT, 0x0002),
    (flag::IOWAIT, 0x0102),
    (0, 0x0402),
    (0, 0x2102),
    (0, 0x0080),
    (0, 0x0102),
    (IDLE, 0),
    (IDLE | flag::PREEMPT, 0),
    (IDLE, 0x0001),
    (IDLE, 0x2001),
    (IDLE, 0x0002),
    (IDLE | flag::IOWAIT, 0x0002),
    (IDLE | flag::IOWAIT, 0x0102),
    (IDLE, 0x0402),
    (IDLE, 0x2102),
    (IDLE, 0x0080),
    (IDLE, 0x0102),
    (flag::WAKING, 0),
    (flag::WAKING | flag::IRQ, 0),
    (flag::WAKING | flag::NEW, 0),
    (flag::WAKING | flag::NEW | flag::VFORK, 0),
    (IDLE | flag::WAKING, 0),
    (IDLE | flag::WAKING | flag::IRQ, 0),
    (flag::PREEMPT, 0x0001),
    (flag::PREEMPT, 0x0002),
    (0, 0x0004),
];

/// Task symbols: a task that was not met in the block; its id is given.
pub const NEW: u8 = 0;
/// The task that this waker is expected to wake (wakings only).
pub const EXPECTED: u8 = 1;
/// The first of the recent tasks, by rank.
pub const RANK: u8 = 2;
/// The first class of tasks that were met longer ago, by index.
pub const FAR: u8 = RANK + RANKS as u8;
/// Symbols of tasks.
pub const TASKS: usize = 64;
/// Classes of indices.
pub const FARS: u32 = TASKS as u32 - FAR as u32;
/// Most low bits of an index.
pub const FAR_BITS: u32 = 11;

/// Symbols of time steps: 0, a step that is given in ns; then classes.
pub const STEPS: usize = 87;

/// How many tables there are of each kind.
pub const OP_TABLES: usize = OPS;
/// As [`OP_TABLES`].
pub const TASK_TABLES: usize = 28;
/// The task tables from this one on are those of switches to the idle task:
/// they have one symbol, [`EXPECTED`], which takes no bits.
pub const NO_TASK: usize = 24;
/// As [`OP_TABLES`].
pub const STEP_TABLES: usize = 18;

/// How many low bits the indices of a block with this many tasks have.
pub fn far_bits(tasks: u32) -> u32 {
    let mut bits = 0;
    while tasks.saturating_sub(1) >> bits >= FARS {
        bits += 1;
    }
    bits
}

/// For each length of a step in bits: its first class and its low bits.
#[allow(clippy::indexing_slicing)] // Checked when it is compiled.
const LENGTHS: [(u8, u8); 37] = {
    let mut lengths = [(0, 0); 37];
    let mut length = 4;
    while length < lengths.len() {
        let (first, width) = match length {
            4..=15 => (9 + (length - 4) * 4, length - 3),
            16..=24 => (57 + (length - 16) * 2, length - 2),
            _ => (75 + (length - 25), length - 1),
        };
        lengths[length] = (first as u8, width as u8);
        length += 1;
    }
    lengths
};

/// The class of a step of `ticks`; `None` when it is too large for one.
#[inline(always)]
pub fn step_class(ticks: u64) -> Option<(u8, u64, u32)> {
    if ticks < 8 {
        return Some((1 + ticks as u8, 0, 0));
    }
    // Without a branch for each range, which would be foretold badly.
    let length = 64 - ticks.leading_zeros();
    let (first, width) = *LENGTHS.get(length as usize)?;
    let top = (ticks >> width) as u32 - (1 << (length - 1 - u32::from(width)));
    let below = ticks & ((1 << width) - 1);
    Some((first + top as u8, below, u32::from(width)))
}

/// The smallest step of a class (not 0) and how many bits follow.
pub const fn step_of(class: u8) -> (u64, u32) {
    let class = class as u32;
    match class {
        0 => (0, 0),
        1..=8 => (class as u64 - 1, 0),
        9..=56 => {
            let (length, top) = (4 + (class - 9) / 4, (class - 9) % 4);
            ((4 + top as u64) << (length - 3), length - 3)
        }
        57..=74 => {
            let (length, top) = (16 + (class - 57) / 2, (class - 57) % 2);
            ((2 + top as u64) << (length - 2), length - 2)
        }
        _ => (1 << (class - 51), class - 51),
    }
}

/// What an event's shape tells the coder, in one word: the state (bits 0 to
/// 15), the flags with [`IDLE`] and [`GIVEN`] (16 to 23), the kind (24, 25: 0 a
/// switch to idle, 1 another switch, 2 a waking), and the first step table and
/// task table of its group, when another task than the idle one runs (32 to 39,
/// 40 to 47) and when that does (48 to 55, 56 to 63).
#[derive(Clone, Copy, Debug, Default)]
pub struct Traits(u64);

impl Traits {
    /// Of a shape. Groups: 0 waking, 1 by an interrupt, 2 of a new task; 3 switch
    /// from idle, 4 of a task that can go on, 5 of one that cannot; 6 for tasks
    /// only: to the idle task.
    #[inline]
    pub const fn of((flags, state): Shape) -> Traits {
        let waking = flags & flag::WAKING != 0;
        let (busy, idle) = if waking && flags & flag::NEW != 0 {
            (2, 2)
        } else if waking {
            let irq = (flags & flag::IRQ != 0) as u64;
            (irq, irq)
        } else {
            (4 + (state != 0 && flags & flag::PREEMPT == 0) as u64, 3)
        };
        let kind = match waking {
            true => 2,
            false => (flags & IDLE == 0) as u64,
        };
        let (busy_task, idle_task) = if kind == 0 { (6, 6) } else { (busy, idle) };
        let tables = (3 * busy) | (4 * busy_task) << 8 | (3 * idle) << 16 | (4 * idle_task) << 24;
        Traits(state as u64 | (flags as u64) << 16 | kind << 24 | tables << 32)
    }

    /// The state.
    #[inline(always)]
    pub fn state(self) -> u16 {
        self.0 as u16
    }

    /// The flags, with [`IDLE`] and [`GIVEN`].
    #[inline(always)]
    pub fn flags(self) -> u8 {
        (self.0 >> 16) as u8
    }
}

/// What tables depend on besides shapes: the events before. Nothing but these
/// events' traits, which are known at once: no event waits for the one before.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// The last event's traits, and those of the one before.
    last: [u64; 2],
}

impl Context {
    /// Before the first event.
    pub fn new(idle: bool) -> Context {
        let flags = if idle { IDLE } else { 0 };
        // Another switch.
        let last = u64::from(flags) << 16 | 1 << 24;
        Context { last: [last, 0] }
    }

    /// The numbers of an event's step table, 0 to 17, and task table, 0 to 27;
    /// it is the last event from now on.
    #[inline(always)]
    pub fn tables(&mut self, traits: Traits) -> (u8, u8) {
        let [last, before] = self.last;
        // 16 when the idle task runs.
        let idle = (last >> 18) & 16;
        let first = traits.0 >> 32 >> idle;
        let kind = (last >> 24) as u8;
        let step = first as u8 + (kind & 3);
        let task = (first >> 8) as u8 + (kind & 2) + ((before >> 25) as u8 & 1);
        self.last = [traits.0, last];
        (step, task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_come_back() {
        assert_eq!(far_bits(u32::from(u16::MAX)), FAR_BITS);
        for tasks in 1..2000 {
            assert!((tasks - 1) >> far_bits(tasks) < FARS);
        }
        let steps = (0..36).flat_map(|b| [1u64 << b, (1 << b) + (1 << b >> 1), (2 << b) - 1]);
        for step in steps.chain([0]) {
            let (class, low, width) = step_class(step).unwrap();
            assert!((1..STEPS as u8).contains(&class));
            assert_eq!((step_of(class).0 + low, step_of(class).1), (step, width));
        }
        assert_eq!(step_class(1 << 36), None);
    }
}
