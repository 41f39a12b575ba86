//! Turns the scheduling events of a block into the columns that a trace stores.

use rustc_hash::FxHashMap;

use super::bits::BitWriter;
use super::quantum::{Clock, NANOSECOND};
use super::tasks::{Recent, Sleep, Tasks, FIRST_AT, GIVEN_AT, IDLE_AT, IRQ_AT, RANKS};
use super::{
    far_bits, part, step_class, to_idle, Class, COLUMN_PARTS, COMMON_CLASSES, EXPECTED_TASK,
    FAR_TASK, GIVEN_TASK, IDLE, NEW_TASK, OTHER_CLASS, PREDICTED_REASON, RANK, SAME_TIMEOUT,
    TIMEOUTS,
};
use crate::limits::BLOCK_EVENTS;
use crate::sched::{flag, sleeps, Open, Packed};
use crate::varint::{fold, put};
use crate::zip::{Packer, LEVEL};

/// In a block with at least this many events, each part of a column gets Huffman tables of its own. In a smaller block,
/// the parts of a column share one.
const LONG_BLOCK: usize = 4096;
/// A block with at least this many events is full. If blocks become full, events come so fast that the writer is busy,
/// so a faster compression is used for full blocks.
const BUSY_EVENTS: usize = BLOCK_EVENTS;
/// The level of zstd compression for full blocks, which saves CPU time. Level 6 would take 1.3 times the time for a
/// result that is 2 % smaller.
const BUSY_LEVEL: i32 = 1;

/// Encodes blocks of scheduling events. The encoder reuses its buffers, and the clock quantum (the time between two
/// ticks of the clock) that it found in earlier blocks.
#[derive(Debug, Default)]
pub struct Encoder {
    clock: Clock,
    numbers: Numbers,
    tasks: Tasks,
    /// The index of each task that the block has named so far, by the id of the task.
    indices: FxHashMap<u32, u16>,
    /// The block's column of event classes (flags and task state), with one number for each event.
    classes: Vec<u8>,
    /// The event classes (flags and task state) that have no number in the block yet, and so are stored in full.
    given: Vec<u8>,
    reasons: Vec<u8>,
    /// The column of the time-outs of the block's sleeps. If all of these time-outs are unknown, the block has no such
    /// column.
    timeouts: Vec<u8>,
    any_timeout: bool,
    symbols: Column,
    steps: Column,
    /// The symbols (bytes) in the column of tasks that stand for a task's index and not for a recent task. Each entry
    /// has the part of the column, the position of the symbol in that part, and the index. When the block is complete,
    /// `far_bits` adds the high bits of the index to the symbol.
    far: Vec<(usize, usize, u16)>,
    low: BitWriter,
}

/// A column of a block of scheduling events: its symbols, divided into parts, and the values that are stored
/// in full because no symbol stands for them.
#[derive(Debug, Default)]
struct Column {
    parts: [Vec<u8>; COLUMN_PARTS],
    given: Vec<u8>,
}

impl Column {
    fn clear(&mut self) {
        self.parts.iter_mut().for_each(Vec::clear);
        self.given.clear();
    }

    #[inline(always)]
    #[allow(clippy::indexing_slicing)] // `part()` is below COLUMN_PARTS.
    fn push(&mut self, part: usize, symbol: u8) {
        self.parts[part].push(symbol);
    }
}

/// Assigns numbers to the event classes (flags and task state) of a scheduling block.
#[derive(Debug, Default)]
struct Numbers {
    /// The event classes (flags and task state) that have a number in the block. The position of a class is its number.
    known: Vec<Class>,
    /// A cache of the event classes (flags and task state) that were looked up last, with their numbers, indexed by a
    /// hash of the class.
    quick: [(Class, u8); 32],
}

impl Numbers {
    fn reset(&mut self) {
        self.known.clear();
        self.known.extend_from_slice(&COMMON_CLASSES);
        // The number OTHER_CLASS follows the numbers of the common classes, and no class may get this number. To occupy
        // the number, the first common class is entered a second time. A search never returns the second entry of this
        // class, because it finds the first entry before.
        self.known.push(COMMON_CLASSES[0]);
        self.quick = [(COMMON_CLASSES[0], 0); 32];
    }

    /// The number of an event class (flags and task state) in a scheduling block. A class that is new in the block gets
    /// the next number, but the result is `None`, because its first occurrence must be stored in full.
    #[inline(always)]
    #[allow(clippy::indexing_slicing)] // The remainder of 32 is an index of `quick`.
    fn find(&mut self, class: Class) -> Option<u8> {
        let bits = u16::from(class.0 ^ class.0 >> 3) ^ class.1 ^ class.1 >> 7;
        let quick = &mut self.quick[usize::from(bits % 32)];
        if quick.0 != class {
            let found = self.known.iter().position(|known| *known == class);
            let Some(number) = found else {
                if self.known.len() < 256 {
                    self.known.push(class);
                }
                return None;
            };
            *quick = (class, number as u8);
        }
        Some(quick.1)
    }
}

impl Encoder {
    /// Appends the encoded payload of a block of scheduling events to `out`. `min` is the smallest time of an
    /// event of the block, in ns.
    pub fn encode(
        &mut self,
        block: &Open,
        min: u64,
        packer: &mut Packer,
        out: &mut Vec<u8>,
    ) -> std::io::Result<()> {
        self.classes.clear();
        self.given.clear();
        self.reasons.clear();
        self.timeouts.clear();
        self.any_timeout = false;
        self.symbols.clear();
        self.steps.clear();
        let first = block.rest.first().map_or(0, |event| event.from);
        self.events(block, first);
        let far_bits = self.far_bits();
        let grid = self.clock.grid(&block.time, min);
        let mut front = Vec::with_capacity(32 + self.classes.len());
        put(&mut front, grid.quantum - NANOSECOND);
        put(&mut front, u64::from(grid.phase));
        put(&mut front, u64::from(first));
        let announced = if self.any_timeout { TIMEOUTS } else { 0 };
        front.push(far_bits as u8 | announced);
        if !self.any_timeout {
            self.timeouts.clear();
        }
        front.extend_from_slice(&self.classes);
        front.extend_from_slice(&self.given);
        self.put_steps(block, min);
        let level = if block.len() >= BUSY_EVENTS {
            BUSY_LEVEL
        } else {
            LEVEL
        };
        let columns = [&mut self.symbols, &mut self.steps].map(|column| {
            let [a, b, c, d] = &mut column.parts;
            if block.len() >= LONG_BLOCK {
                d.extend_from_slice(&column.given);
            } else {
                // In a small block, a Huffman table for each part would take more bytes than it saves. So all parts are
                // joined to one, with one table.
                [b, c, d].iter_mut().for_each(|part| a.append(part));
                a.extend_from_slice(&column.given);
            }
            column.parts.each_ref().map(Vec::as_slice)
        });
        let parts = [
            &[
                front.as_slice(),
                self.reasons.as_slice(),
                self.timeouts.as_slice(),
            ],
            columns.as_flattened(),
        ]
        .concat();
        packer.pack(&parts, level, out)?;
        self.low.finish(out);
        Ok(())
    }

    /// Fills the columns of event classes (flags and task state), of reasons for sleeps and of tasks from the events of
    /// a block.
    fn events(&mut self, block: &Open, first: u32) {
        self.numbers.reset();
        self.tasks.reset();
        self.indices.clear();
        self.far.clear();
        let mut recent = Recent::new();
        let (mut current, mut new_id, mut before) = (first, first, 0);
        let mut current_at = if first == 0 { IDLE_AT } else { GIVEN_AT };
        for event in &block.rest {
            let class = class(event, current);
            let (flags, state) = class;
            let number = self.numbers.find(class);
            self.classes.push(number.unwrap_or(OTHER_CLASS));
            if number.is_none() {
                self.given.push(flags);
                put(&mut self.given, u64::from(state));
            }
            if flags & GIVEN_TASK != 0 {
                let given = i64::from(event.from) - i64::from(new_id);
                put(&mut self.symbols.given, fold(given));
                (current, current_at) = (event.from, GIVEN_AT);
            }
            if sleeps(flags, state) {
                self.sleep(event, current_at, number.unwrap_or(OTHER_CLASS));
            }
            let part = part(&mut before, flags);
            if to_idle(flags) {
                (current, current_at) = (0, IDLE_AT);
                continue;
            }
            let waking = flags & flag::WAKING != 0;
            let irq = flags & flag::IRQ != 0;
            let waker = waking.then_some(if irq { IRQ_AT } else { current_at });
            let (symbol, at) = self.symbol(&mut recent, event.to, waker);
            if symbol == NEW_TASK {
                let given = i64::from(event.to) - i64::from(new_id);
                put(&mut self.symbols.given, fold(given));
                new_id = event.to;
            } else if symbol == FAR_TASK {
                let place = self.symbols.parts.get(part).map_or(0, Vec::len);
                self.far.push((part, place, at - FIRST_AT));
            }
            self.symbols.push(part, symbol);
            if !waking {
                (current, current_at) = (event.to, at);
            }
        }
    }

    /// Adds a switch-out into a sleep to the block's columns of reasons and of time-outs.
    #[inline(always)]
    fn sleep(&mut self, event: &Packed, at: u16, class: u8) {
        let (state, reason) = (event.state, event.reason);
        let symbol = if self.tasks.reason(at, state, class) == reason {
            PREDICTED_REASON
        } else {
            reason + 1
        };
        self.reasons.push(symbol);
        let timeout = event.timeout;
        self.any_timeout |= timeout != 0;
        let symbol = if self.tasks.timeout(at, reason) == timeout {
            SAME_TIMEOUT
        } else {
            timeout + 1
        };
        self.timeouts.push(symbol);
        let sleep = Sleep {
            state,
            reason,
            timeout,
        };
        self.tasks.slept(at, class, sleep);
    }

    /// The symbol (a byte of the column of tasks) for the second task of a scheduling event, and that task's index in
    /// the block. The second task is the task that is switched in or, in a waking, the task that `waker` wakes.
    #[inline(always)]
    fn symbol(&mut self, recent: &mut Recent, to: u32, waker: Option<u16>) -> (u8, u16) {
        let mut rank = RANKS - 1;
        let (symbol, at) = match self.indices.get(&to) {
            None => {
                let at = self.tasks.add(to);
                self.indices.insert(to, at);
                (NEW_TASK, at)
            }
            Some(at) => {
                let found = recent.rank(*at);
                rank = found.unwrap_or(rank);
                let expected = waker.is_some_and(|waker| self.tasks.expected(waker) == *at);
                let symbol = match found {
                    _ if expected => EXPECTED_TASK,
                    Some(rank) => RANK + rank as u8,
                    None => FAR_TASK,
                };
                (symbol, *at)
            }
        };
        recent.put(rank, at);
        if let Some(waker) = waker {
            self.tasks.woken(waker, at);
        }
        (symbol, at)
    }

    /// Adds the high bits of each task's index in the block to the byte that names the task. The low bits are stored
    /// separately. Returns the number of low bits.
    fn far_bits(&mut self) -> u32 {
        let bits = far_bits(self.tasks.count());
        for (part, place, index) in &self.far {
            let part = self.symbols.parts.get_mut(*part);
            if let Some(symbol) = part.and_then(|part| part.get_mut(*place)) {
                *symbol += (index >> bits) as u8;
            }
            self.low.put(u64::from(index & ((1 << bits) - 1)), bits);
        }
        bits
    }

    /// Fills the block's column of steps, which are the distances between the times of consecutive events.
    fn put_steps(&mut self, block: &Open, min: u64) {
        let grid = &self.clock.grid;
        let (mut last, mut last_k, mut before) = (min, 0, 0);
        let mut begins = grid.begins.iter().peekable();
        let events = block.rest.iter().zip(&block.time).zip(&grid.k);
        for (number, ((event, time), k)) in events.enumerate() {
            let mut class = 0;
            if let Some((_, phase)) = begins.next_if(|(at, _)| *at == number) {
                put(&mut self.steps.given, fold(time.wrapping_sub(last) as i64));
                self.steps.given.extend_from_slice(&phase.to_le_bytes());
            } else {
                let (step, bits, width) = step_class(k - last_k);
                self.low.put(bits, width);
                class = step;
            }
            self.steps.push(part(&mut before, event.flags), class);
            (last, last_k) = (*time, *k);
        }
    }
}

/// The class of a scheduling event: its flags and the state of the task that is switched out. `current` is the task
/// that runs on the CPU according to the earlier events of the block.
#[inline(always)]
fn class(event: &Packed, current: u32) -> Class {
    let waking = event.flags & flag::WAKING != 0;
    let task = if waking { event.from } else { event.to };
    let idle = if task == 0 { IDLE } else { 0 };
    let given = if event.from != current { GIVEN_TASK } else { 0 };
    (event.flags | idle | given, event.state)
}
