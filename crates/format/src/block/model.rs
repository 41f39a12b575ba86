//! What the coder of scheduling events distinguishes: which symbols there are,
//! and on what the frequencies of each kind depend.

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

/// Task symbols: a task that is not among the recent ones; its id is given.
pub const NEW: u8 = 0;
/// The task that was woken after the one that this waker woke last.
pub const NEXT: u8 = 1;
/// The task that this waker woke last.
pub const SAME: u8 = 2;
/// The recent tasks, from the last one on: 16 single ranks, then classes.
pub const RANK: u8 = 3;
/// Symbols of tasks.
pub const TASKS: usize = 31;
/// The first class of several ranks.
const RANK_CLASS: u8 = RANK + 16;
/// Ranks that have a symbol.
pub const RANKS: usize = 1024;

/// Symbols of time steps: 0, a step that is given in ns; then classes.
pub const STEPS: usize = 87;

/// How many tables there are of each kind.
pub const OP_TABLES: usize = OPS;
/// As [`OP_TABLES`].
pub const TASK_TABLES: usize = 12;
/// As [`OP_TABLES`].
pub const STEP_TABLES: usize = 18;

/// The class of a rank, and the bits below it.
#[inline]
pub fn rank_class(rank: u32) -> (u8, u32, u32) {
    if rank < 16 {
        return (RANK + rank as u8, 0, 0);
    }
    let width = 32 - rank.leading_zeros() - 2;
    let class = u32::from(RANK_CLASS) + (width - 3) * 2 + (rank >> width & 1);
    (class as u8, rank & ((1 << width) - 1), width)
}

/// The first rank of a class and how many bits follow.
#[inline(always)]
pub fn rank_of(class: u8) -> (u32, u32) {
    if class < RANK_CLASS {
        return (u32::from(class - RANK), 0);
    }
    let class = u32::from(class - RANK_CLASS);
    ((2 | class & 1) << (class / 2 + 3), class / 2 + 3)
}

/// The class of a step of `ticks`; `None` when it is too large for one.
#[inline]
pub fn step_class(ticks: u64) -> Option<(u8, u64, u32)> {
    let length = 64 - ticks.leading_zeros();
    let (first, width) = match length {
        0..=3 => return Some((1 + ticks as u8, 0, 0)),
        4..=15 => (9 + (length - 4) * 4, length - 3),
        16..=24 => (57 + (length - 16) * 2, length - 2),
        25..=36 => (75 + (length - 25), length - 1),
        _ => return None,
    };
    let top = (ticks >> width) as u32 - (1 << (length - 1 - width));
    Some(((first + top) as u8, ticks & ((1 << width) - 1), width))
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

/// What an event's shape tells the coder.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traits {
    /// The state.
    pub state: u16,
    /// The flags, with [`IDLE`] and [`GIVEN`].
    pub flags: u8,
    /// 0: it switches to idle; 1: another switch; 2: a waking.
    kind: u8,
    /// Three times the event's group when the idle task does not run, and when
    /// it does.
    group: [u8; 2],
}

impl Traits {
    /// Of a shape. Groups: 0 waking, 1 by an interrupt, 2 of a new task; 3
    /// switch from idle, 4 of a task that can go on, 5 of one that cannot.
    #[inline]
    pub fn of((flags, state): Shape) -> Traits {
        let waking = flags & flag::WAKING != 0;
        let group = if waking && flags & flag::NEW != 0 {
            [2; 2]
        } else if waking {
            [u8::from(flags & flag::IRQ != 0); 2]
        } else {
            [4 + u8::from(state != 0 && flags & flag::PREEMPT == 0), 3]
        };
        Traits {
            state,
            flags,
            kind: match waking {
                true => 2,
                false => u8::from(flags & IDLE == 0),
            },
            group: group.map(|group| 3 * group),
        }
    }
}

/// What the next shape and step depend on.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// The last event's shape symbol: the table of the next.
    pub op: u8,
    /// The idle task runs.
    idle: bool,
    /// The last event's kind.
    last: u8,
}

impl Context {
    /// Before the first event.
    pub fn new(idle: bool) -> Context {
        Context {
            op: OTHER,
            idle,
            last: 1,
        }
    }

    /// The number of the event's step table, 0 to 17: three times its group,
    /// and the kind of the event before.
    #[inline(always)]
    #[allow(clippy::indexing_slicing)] // A bool is below 2.
    pub fn step(&self, traits: &Traits) -> u8 {
        traits.group[usize::from(self.idle)] + self.last
    }

    /// After an event.
    #[inline(always)]
    pub fn after(&mut self, op: u8, traits: &Traits) {
        self.op = op;
        self.last = traits.kind;
        self.idle = traits.flags & IDLE != 0;
    }
}

/// The number of an event's task table, 0 to 11, when its step table is `step`.
/// `hit`: the task of the last waking of group 0 was [`NEXT`].
#[inline(always)]
pub fn task_table(step: u8, hit: bool) -> usize {
    let (group, last) = (step / 3, step % 3);
    let half = if group < 3 { hit } else { last == 2 };
    usize::from(group) * 2 + usize::from(half)
}

/// Whether an event with this step table is of group 0.
#[inline(always)]
pub fn plain_waking(step: u8) -> bool {
    step < 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_come_back() {
        for rank in 0..RANKS as u32 {
            let (class, low, width) = rank_class(rank);
            assert!((RANK..TASKS as u8).contains(&class));
            assert_eq!((rank_of(class).0 + low, rank_of(class).1), (rank, width));
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
