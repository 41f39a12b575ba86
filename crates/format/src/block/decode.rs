//! Symbols to scheduling events, a column at a time: the shapes, what follows
//! from them, the symbols of tasks, the tasks, the symbols of times, the times.
//! Short loops without branches are faster than one that makes whole events:
//! more of them are in flight at once.

use super::bits::BitReader;
use super::model::{self, Context, Shape, Traits, COMMON, GIVEN, IDLE, OTHER, SHAPES};
use super::rans::{self, GROUP, LANES, ROUND};
use super::tables::{self, Digits, Slots, TABLES};
use super::tasks::{Recent, Tasks, FIRST_AT, IDLE_AT, IRQ_AT, NOBODY, RANKS, STRANGER_AT};
use super::tick::Grid;
use super::{OP, STEP, TASK};
use crate::limits;
use crate::sched::{flag, SchedBlock};
use crate::varint::{unfold, Cursor};
use crate::Fault;

/// Decodes payloads; keeps its memory.
#[derive(Debug, Default)]
pub struct Decoder {
    slots: Slots,
    tasks: Tasks,
    /// Words of symbols.
    words: Vec<u32>,
    /// Low bits, and what a reader may touch behind them.
    low: Vec<u8>,
    columns: Columns,
}

/// What the loops hand on to each other.
#[derive(Debug, Default)]
struct Columns {
    /// Symbols of shapes, then for each event what it means for tasks.
    ops: Vec<u8>,
    /// The step tables of events, then the symbols taken from them.
    steps: Vec<u8>,
    /// The task tables of events, then the symbols taken from them.
    tasks: Vec<u8>,
    /// What the frame gives to the loop that comes next: it is read before, for
    /// a call would keep the loop's values out of the registers.
    given: Vec<u64>,
}

/// What stands in front of the events.
struct Front {
    grid: Grid,
    current: u32,
    lanes: usize,
    far_bits: u32,
    shapes: [Shape; SHAPES],
}

/// An id that is given as the difference to another.
#[cold]
#[inline(never)]
fn id(from: u32, side: &mut Cursor) -> Result<u32, Fault> {
    i64::from(from)
        .checked_add(unfold(side.int()?))
        .and_then(|id| u32::try_from(id).ok())
        .ok_or(Fault::Content("no such task id"))
}

/// A shape that a frame gives.
fn shape(side: &mut Cursor) -> Result<Shape, Fault> {
    Ok((side.byte()?, side.int16()?))
}

impl Front {
    /// Reads the front, and the frame's own tables.
    fn read(side: &mut Cursor, low: &mut BitReader, slots: &mut Slots) -> Result<Front, Fault> {
        let period = side
            .int()?
            .checked_add(Grid::NANOSECOND)
            .filter(|period| *period <= Grid::LONGEST)
            .ok_or(Fault::Content("the clock's tick is too long"))?;
        let phase = u32::from(side.int16()?) << 16;
        let current = side.int32()?;
        let (lanes, far_bits) = match side.byte()? {
            packed @ 0..=0x1f => (
                if packed & 0x10 == 0 { 1 } else { LANES },
                u32::from(packed & 0xf),
            ),
            _ => return Err(Fault::Content("no such coding of symbols")),
        };
        if far_bits > model::FAR_BITS {
            return Err(Fault::Content("no such coding of tasks"));
        }
        let mut shapes = COMMON;
        for _ in 0..side.byte()? {
            let place = shapes.get_mut(usize::from(side.byte()?));
            let place = place.ok_or(Fault::Content("no such place for a shape"))?;
            *place = shape(side)?;
            if place.0 & GIVEN != 0 {
                return Err(Fault::Content("a shape with a running task"));
            }
        }
        let mut seen = [false; TABLES];
        for _ in 0..side.byte()? {
            let at = usize::from(side.byte()?);
            // Each only once: a table costs much more than it is long.
            match seen.get_mut(at) {
                Some(seen) if !*seen && !(TASK + model::NO_TASK..STEP).contains(&at) => {
                    *seen = true
                }
                _ => return Err(Fault::Content("no such table")),
            }
            let digits = Digits::get(tables::symbols(at), low)?;
            slots.set(at, &digits.frequencies()?);
        }
        slots.reset(&seen);
        Ok(Front {
            grid: Grid { period, phase },
            current,
            lanes,
            far_bits,
            shapes,
        })
    }
}

impl Decoder {
    /// Reads a payload of `events` events into `block`, their smallest time `min`
    /// and their largest `max`. After an error it is empty.
    pub fn decode(
        &mut self,
        payload: &[u8],
        events: u64,
        span: (u64, u64),
        block: &mut SchedBlock,
    ) -> Result<(), Fault> {
        // What a block before has left is not zeroed, but written over.
        let read = crate::error::within("the number of events", events, limits::SCHED_EVENTS)
            .and_then(|()| self.events(payload, events as usize, span, block));
        if read.is_err() {
            block.clear();
        }
        read
    }

    fn events(
        &mut self,
        payload: &[u8],
        events: usize,
        (min, max): (u64, u64),
        block: &mut SchedBlock,
    ) -> Result<(), Fault> {
        let mut cursor = Cursor::new(payload);
        let (side, symbols) = (cursor.int()?, cursor.int()?);
        let mut side = Cursor::new(cursor.take(side)?);
        let symbols = cursor.take(symbols)?;
        self.low.clear();
        self.low.extend_from_slice(cursor.rest());
        let end = self.low.len();
        self.low
            .extend_from_slice(&[0; rans::SPARE_BYTES + BitReader::PADDING]);
        let mut low = BitReader::padded(&self.low, 0);
        let front = Front::read(&mut side, &mut low, &mut self.slots)?;
        let first = low.used();
        if first > 8 * end {
            return Err(Fault::Content("the tables end too early"));
        }
        let lanes = front.lanes;
        let mut rans = rans::Reader::new(symbols, lanes, &mut self.words)?;
        block.resize(events);
        let columns = &mut self.columns;
        columns.ops.resize(events, 0);
        columns.steps.resize(events, 0);
        columns.tasks.resize(events, 0);

        take_shapes(self.slots.from(OP)?, lanes, &mut rans, &mut columns.ops);
        columns.given.clear();
        for _ in memchr::memchr_iter(OTHER, &columns.ops) {
            let (flags, state) = shape(&mut side)?;
            columns
                .given
                .push(u64::from(flags) << 16 | u64::from(state));
        }
        shapes(&front, block, columns);
        take(self.slots.from(TASK)?, lanes, &mut rans, &mut columns.tasks);
        take(self.slots.from(STEP)?, lanes, &mut rans, &mut columns.steps);
        let spare = rans.finish()?;
        if let Some(out) = self.low.get_mut(end..end + rans::SPARE_BYTES) {
            out.copy_from_slice(&rans::spare_bytes(spare));
        }
        let mut low = BitReader::padded(&self.low, first);
        columns.new_ids(front.current, &mut self.tasks, &mut side)?;
        match front.far_bits {
            0 => ids::<false>(&front, &mut self.tasks, &mut low, columns, block)?,
            _ => ids::<true>(&front, &mut self.tasks, &mut low, columns, block)?,
        }
        columns.given.clear();
        for _ in memchr::memchr_iter(0, &columns.steps) {
            columns.given.push(unfold(side.int()?) as u64);
        }
        let span = times(&front.grid, (min, max), &mut low, block, columns)?;
        if span != (min, max) {
            return Err(Fault::Content("its times are not those its header tells"));
        }
        low.finish_within(end, rans::SPARE as usize * lanes)?;
        match side.left() {
            0 => Ok(()),
            _ => Err(Fault::Content("there is more than the events")),
        }
    }
}

/// Symbols of shapes. A table is chosen by the symbol before, so each lane has
/// a part of the block of its own.
#[allow(clippy::indexing_slicing)] // A remainder is below 32, the number of tables.
#[inline(never)] // One loop's values fit into the registers.
fn take_shapes(tables: &[rans::Slots; 32], lanes: usize, rans: &mut rans::Reader, ops: &mut [u8]) {
    let part = ops.len().div_ceil(lanes).max(1);
    let mut parts = ops.chunks_mut(part);
    let mut parts: [&mut [u8]; LANES] = std::array::from_fn(|_| parts.next().unwrap_or_default());
    let mut last = [OTHER; LANES];
    let mut done = 0;
    {
        let [(a, _), (b, _), (c, _), (d, _)] =
            parts.each_mut().map(|part| part.as_chunks_mut::<GROUP>());
        for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
            for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
                last = rans.four(last.map(|op| &tables[usize::from(op % 32)]));
                [*a, *b, *c, *d] = last;
            }
            rans.fill();
            done += GROUP;
        }
    }
    // What is left of the shortest part, and one lane.
    for at in done..part {
        for (lane, (last, ops)) in last.iter_mut().zip(&mut parts).enumerate() {
            if let Some(op) = ops.get_mut(at) {
                *last = rans.one(lane, &tables[usize::from(*last % 32)]);
                *op = *last;
            }
        }
        if at % GROUP == GROUP - 1 {
            rans.fill();
        }
    }
    rans.fill();
}

/// Puts the symbol taken from it in the place of each table's number; lanes
/// take turns.
#[allow(clippy::indexing_slicing)] // A remainder is below 32, the number of tables.
#[inline(never)] // One loop's values fit into the registers.
fn take(tables: &[rans::Slots; 32], lanes: usize, rans: &mut rans::Reader, symbols: &mut [u8]) {
    let table = |at: u8| &tables[usize::from(at % 32)];
    if lanes != LANES {
        for group in symbols.chunks_mut(GROUP) {
            for symbol in group {
                *symbol = rans.one(0, table(*symbol));
            }
            rans.fill();
        }
        return;
    }
    let (rounds, rest) = symbols.as_chunks_mut::<ROUND>();
    for round in rounds {
        for four in round.as_chunks_mut::<LANES>().0 {
            rans.four_in_place(four, table);
        }
        rans.fill();
    }
    for (lane, symbol) in rest.iter_mut().enumerate() {
        *symbol = rans.one(lane, table(*symbol));
    }
    rans.fill();
}

/// The columns `flags` and `state`; the tables of steps and tasks, and for each
/// event what it means for tasks.
#[allow(clippy::indexing_slicing)] // A remainder is below the length.
#[inline(never)] // One loop's values fit into the registers.
fn shapes(front: &Front, block: &mut SchedBlock, columns: &mut Columns) {
    let known = super::shapes::traits(&front.shapes);
    let mut context = Context::new(front.current == 0);
    let mut given = columns.given.iter();
    let out = block.flags.iter_mut().zip(&mut block.state);
    let tables = columns.steps.iter_mut().zip(&mut columns.tasks);
    for ((op, (step, task)), (flags, state)) in columns.ops.iter_mut().zip(tables).zip(out) {
        let traits = match *op {
            OTHER => {
                let shape = given.next().copied().unwrap_or(0);
                Traits::of(((shape >> 16) as u8, shape as u16))
            }
            op => known[usize::from(op % 32)],
        };
        *op = traits.flags();
        *flags = traits.flags() & flag::ALL;
        *state = traits.state();
        (*step, *task) = context.tables(traits);
    }
}

impl Columns {
    /// Reads the ids of new tasks, which are known then, and of running tasks
    /// that are given.
    fn new_ids(&mut self, first: u32, known: &mut Tasks, side: &mut Cursor) -> Result<(), Fault> {
        known.reset();
        let mut last = first;
        // All shapes that were given, with those of running tasks among them.
        let given = |shape: &u64| shape >> 16 & u64::from(GIVEN) != 0;
        let strangers = self.given.iter().any(given);
        self.given.clear();
        if strangers {
            for (flags, symbol) in self.ops.iter().zip(&self.tasks) {
                if flags & GIVEN != 0 {
                    self.given.push(u64::from(id(last, side)?));
                }
                if *symbol == model::NEW {
                    last = id(last, side)?;
                    known.add(last);
                }
            }
            return Ok(());
        }
        for _ in memchr::memchr_iter(model::NEW, &self.tasks) {
            last = id(last, side)?;
            known.add(last);
        }
        Ok(())
    }
}

/// In the meaning of a task's symbol, where four times the rank stands in bits 0
/// to 7 and an index, low bits left out, from bit 12 on: it is the recent task
/// of the rank, not one with the index.
const RECENT: u32 = 1 << 8;
/// Low bits of the index follow.
const LOW: u32 = 1 << 9;
/// The index is that of the next new task.
const NEW: u32 = 1 << 10;

/// The columns `from` and `to`. `FAR`: indices have low bits.
#[allow(clippy::indexing_slicing)] // A remainder is below the length.
#[inline(never)] // One loop's values fit into the registers.
fn ids<const FAR: bool>(
    front: &Front,
    known: &mut Tasks,
    low: &mut BitReader,
    columns: &Columns,
    block: &mut SchedBlock,
) -> Result<(), Fault> {
    let far_bits = front.far_bits;
    // All but the recent ones come into the last one's place.
    let last = 4 * (RANKS - 1);
    let meanings: [u32; model::TASKS] = std::array::from_fn(|symbol| match symbol as u8 {
        model::NEW => NEW | last,
        model::EXPECTED => last,
        symbol if symbol < model::FAR => RECENT | (4 * u32::from(symbol - model::RANK)),
        symbol => {
            let first = u32::from(symbol - model::FAR) << far_bits;
            LOW | last | ((first + u32::from(FIRST_AT)) << 12)
        }
    });
    let far = ((1u64 << far_bits) - 1, u64::from(far_bits));
    let mut low_bits = low.clone();
    let mut recent = Recent::new();
    let mut given = columns.given.iter();
    // The index of the next new task.
    let mut new_at = u32::from(FIRST_AT);
    let mut current = front.current;
    let mut current_at = match current {
        0 => IDLE_AT,
        _ => STRANGER_AT,
    };
    let out = block.from.iter_mut().zip(&mut block.to);
    let shapes = columns.ops.iter().zip(&columns.tasks);
    for ((from, to), (flags, symbol)) in out.zip(shapes) {
        let waking = flags & flag::WAKING != 0;
        if *flags >= IDLE {
            if flags & GIVEN != 0 {
                current = given.next().map_or(0, |id| *id as u32);
                current_at = STRANGER_AT;
            }
            if !waking && flags & IDLE != 0 {
                (*from, *to) = (current, 0);
                (current, current_at) = (0, IDLE_AT);
                continue;
            }
        }
        *from = current;
        let meaning = meanings[usize::from(symbol % 64)];
        let shift = meaning as u8;
        let place = recent.place(shift);
        let at = recent.at(place);
        let mut index = meaning >> 12;
        if FAR {
            let (mask, width) = if meaning & LOW != 0 { far } else { (0, 0) };
            index += low_bits.masked(mask, width) as u32;
        }
        if meaning & NEW != 0 {
            index = new_at;
            new_at += 1;
        }
        if index >= new_at {
            return Err(Fault::Content("no such task"));
        }
        let mut at = if meaning & RECENT != 0 {
            at
        } else {
            index as u16
        };
        if waking {
            let waker = if flags & flag::IRQ == 0 {
                current_at
            } else {
                IRQ_AT
            };
            let expected = known.expected(waker);
            at = if *symbol == model::EXPECTED {
                expected
            } else {
                at
            };
            known.woken(waker, at);
            *to = known.id(at);
        } else {
            current = known.id(at);
            current_at = at;
            *to = current;
        }
        // Also of a switch to the task that a waker is expected to wake.
        if at == NOBODY || at == IDLE_AT {
            return Err(Fault::Content("no task is expected here"));
        }
        recent.set(shift, place, at);
    }
    *low = low_bits;
    Ok(())
}

/// The times of all ticks, `offset` telling how many ns after `min` one is. The
/// last tick.
#[allow(clippy::indexing_slicing)] // A remainder is below the table's length.
#[inline(always)]
fn ticks(
    min: u64,
    low: &mut BitReader,
    time: &mut [u64],
    symbols: &[u8],
    offset: impl Fn(u64) -> u64,
) -> u64 {
    let mut low_bits = low.clone();
    let mut tick = 0u64;
    for (out, class) in time.iter_mut().zip(symbols) {
        let step = &STEPS_OF[usize::from(class % 128)];
        tick = tick.wrapping_add(step.least + low_bits.masked(step.mask, step.width));
        *out = min.wrapping_add(offset(tick));
    }
    *low = low_bits;
    tick
}

/// The column `time`; its smallest and largest. `span` is what they should be.
#[inline(never)] // One loop's values fit into the registers.
fn times(
    grid: &Grid,
    (min, max): (u64, u64),
    low: &mut BitReader,
    block: &mut SchedBlock,
    columns: &Columns,
) -> Result<(u64, u64), Fault> {
    let symbols = &columns.steps;
    let time = &mut block.time;
    let tick = if *grid == Grid::PLAIN {
        ticks(min, low, time, symbols, |tick| tick)
    } else if max.wrapping_sub(min) < Grid::SHORT {
        ticks(min, low, time, symbols, grid.offsets_of_a_short_block())
    } else {
        ticks(min, low, time, symbols, |tick| grid.offset(tick))
    };
    // Ticks only grow: of the times on the grid the first is the smallest, and
    // the last the largest. Others are looked at one by one.
    let (mut smallest, mut largest) = (u64::MAX, 0);
    for (at, given) in memchr::memchr_iter(0, symbols).zip(&columns.given) {
        let before = at.checked_sub(1).and_then(|at| block.time.get(at));
        let time = before.unwrap_or(&min).wrapping_add(*given);
        smallest = smallest.min(time);
        largest = largest.max(time);
        if let Some(out) = block.time.get_mut(at) {
            *out = time;
        }
    }
    let on_grid = block
        .time
        .iter()
        .zip(symbols)
        .find(|(_, class)| **class != 0);
    if let Some((first, _)) = on_grid {
        let last = grid
            .offset_of(tick)
            .and_then(|offset| min.checked_add(offset))
            .ok_or(Fault::Content("its times do not fit in 64 bits"))?;
        smallest = smallest.min(*first);
        largest = largest.max(last);
    }
    Ok((smallest, largest))
}

/// [`model::step_of`], and the mask of the low bits.
#[derive(Clone, Copy)]
struct StepOf {
    least: u64,
    mask: u64,
    width: u64,
    // The size is a power of 2.
    _pad: u64,
}

/// Of every number that a slot can hold.
#[allow(clippy::indexing_slicing)] // Checked when it is compiled.
const STEPS_OF: [StepOf; 128] = {
    let mut steps = [StepOf {
        least: 0,
        mask: 0,
        width: 0,
        _pad: 0,
    }; 128];
    let mut class = 0;
    while class < model::STEPS {
        let (least, width) = model::step_of(class as u8);
        steps[class].least = least;
        steps[class].mask = (1 << width) - 1;
        steps[class].width = width as u64;
        class += 1;
    }
    steps
};
