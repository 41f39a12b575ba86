//! The payloads of the frames with events: the events of a frame, stored as columns of bytes.

mod bits;
pub mod decode;
pub mod encode;
pub mod life;
mod quantum;
mod tasks;

use crate::sched::flag;

/// The class of a scheduling event: its flags, including [`IDLE`] and [`GIVEN_TASK`], and the state of the task that is
/// switched out.
pub type Class = (u8, u16);

/// The flag of a switch to the idle task, or of a waking while the idle task runs. A switch with this flag does not
/// store the id of the task that is switched in.
const IDLE: u8 = 0x40;
/// The flag of a scheduling event whose running task is stored in full, because it is not the task that the previous
/// switch on this CPU switched in.
const GIVEN_TASK: u8 = 0x80;

const SOFTIRQ: u8 = flag::WAKING | flag::IRQ | flag::SOFTIRQ;
const SENDER: u8 = flag::WAKING | flag::SOFTIRQ;

/// The event classes (flags and task state) that are frequent on common kernels. In every block, these classes have the
/// numbers from 0 on.
pub const COMMON_CLASSES: [Class; 34] = [
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
    (SOFTIRQ, 0),
    (SENDER, 0),
    (flag::WAKING | flag::NEW, 0),
    (flag::WAKING | flag::NEW | flag::VFORK, 0),
    (IDLE | flag::WAKING, 0),
    (IDLE | flag::WAKING | flag::IRQ, 0),
    (IDLE | SOFTIRQ, 0),
    (flag::PREEMPT, 0x0001),
    (flag::PREEMPT, 0x0002),
    (0, 0x0004),
];
/// The symbol (a byte of the column of event classes) for a class that is new in the block and is therefore stored in
/// full. The class gets the next free number of the block.
const OTHER_CLASS: u8 = COMMON_CLASSES.len() as u8;

/// The symbol (a byte of the column of reasons) for a sleep that has the predicted reason. Any other symbol in this
/// column is the number of the sleep's reason plus 1.
const PREDICTED_REASON: u8 = 0;

/// The symbol (a byte of the column of time-outs) for a sleep that has the predicted time-out. Any other symbol in this
/// column is the stored number of the sleep's time-out plus 1.
const SAME_TIMEOUT: u8 = 0;

/// The bit that is set if a block has a column of time-outs. The lower bits of the same byte say how many low bits of a
/// task's index are stored separately.
const TIMEOUTS: u8 = 0x20;

/// Whether an event with these flags is a switch to the idle task. The block does not store which task such an event
/// switches in.
fn to_idle(flags: u8) -> bool {
    flags & (flag::WAKING | IDLE) == IDLE
}

/// The symbol (a byte of the column of tasks) for a task that is new in the block. The block then stores the id of the
/// task, too.
const NEW_TASK: u8 = 0;
/// The symbol (a byte of the column of tasks) for the task that the waker is expected to wake. Only wakings have this
/// symbol, and the block then does not store which task is woken.
const EXPECTED_TASK: u8 = 1;
/// The symbol (a byte of the column of tasks) for the most recent task of a block. The symbols after it stand for the
/// other recent tasks, from the most to the least recent one.
const RANK: u8 = 2;
/// The first of the symbols (bytes of the column of tasks) for tasks that are not among the recent tasks of a block.
/// Such a symbol is this number plus the high bits of the task's index in the block.
const FAR_TASK: u8 = RANK + tasks::RANKS as u8;

/// The number of parts into which a block divides its column of tasks, and its column of steps between times.
const COLUMN_PARTS: usize = 4;

/// The part of a column to which the symbol of an event with these flags belongs: 0 for a switch after a switch, 1 for
/// a switch after a waking, 2 for a waking after a switch, 3 for a waking after a waking. `before` is 1 if the previous
/// event was a waking, otherwise 0. The function updates `before` for the next event.
#[inline(always)]
fn part(before: &mut usize, flags: u8) -> usize {
    let waking = usize::from(flags & flag::WAKING);
    2 * waking + std::mem::replace(before, waking)
}

/// How many low bits of a task's index are stored separately, so that the high bits fit into the task's symbol (a
/// byte). The block names `tasks` tasks.
fn far_bits(tasks: usize) -> u32 {
    let symbols = usize::from(u8::MAX - FAR_TASK) + 1;
    (0..16)
        .find(|bits| tasks.saturating_sub(1) >> bits < symbols)
        .unwrap_or(16)
}

/// Splits the distance between two times, in clock quanta, into its class, its low bits and the number of low bits.
/// Each doubling of the distance has four classes. Class 0 is never returned: it marks a distance that is stored in ns.
#[inline(always)]
fn step_class(step: u64) -> (u8, u64, u32) {
    let width = (64 - step.leading_zeros()).saturating_sub(3);
    let class = 1 + 4 * width as u8 + (step >> width) as u8;
    (class, step & ((1 << width) - 1), width)
}

/// The smallest distance between two times, in clock quanta, that has this class, and the number of low bits of the
/// distances in this class. Class 0 is not allowed.
#[inline(always)]
fn step_of(class: u8) -> (u64, u32) {
    let class = u64::from(class) - 1;
    let width = (class / 4).saturating_sub(1);
    ((class - 4 * width) << (width % 64), width as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_steps_come_back() {
        let steps = (0..64).flat_map(|b| [1u64 << b, (1 << b) + (1 << b >> 1), !0 >> b]);
        for step in steps.chain(0..2000) {
            let (class, low, width) = step_class(step);
            assert!(class > 0);
            assert_eq!((step_of(class).0 + low, step_of(class).1), (step, width));
        }
    }

    #[test]
    fn every_index_has_a_symbol() {
        for tasks in (1..2000).chain([1 << 15]) {
            assert!((tasks - 1) >> far_bits(tasks) <= usize::from(u8::MAX - FAR_TASK));
        }
    }
}
