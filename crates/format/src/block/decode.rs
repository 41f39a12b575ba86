//! Symbols to scheduling events, a column at a time: the shapes, what follows
//! from them, the symbols of tasks, the tasks, the symbols of times, the times.
//! Short loops without branches are faster than one that makes whole events:
//! more of them are in flight at once.

use super::bits::BitReader;
use super::model::{self, Context, Shape, Traits, COMMON, GIVEN, IDLE, OTHER, SHAPES};
use super::rans::{self, LANES};
use super::tables::{self, Slots, TABLES};
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
    words: Vec<u16>,
    columns: Columns,
}

/// What the loops hand on to each other.
#[derive(Debug, Default)]
struct Columns {
    /// Symbols of shapes.
    ops: Vec<u8>,
    /// The step tables of events, then the symbols taken from them.
    steps: Vec<u8>,
    /// The task tables of events that have one, then the symbols taken from
    /// them; then anything.
    tasks: Vec<u8>,
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
        slots.reset();
        let mut seen = [false; TABLES];
        for _ in 0..side.byte()? {
            let at = usize::from(side.byte()?);
            // Each only once: a table costs much more than it is long.
            match seen.get_mut(at) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(Fault::Content("no such table")),
            }
            let digits = tables::get(tables::symbols(at), low);
            slots.set(at, &tables::frequencies(&digits)?);
        }
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
        block.clear();
        crate::error::within("the number of events", events, limits::SCHED_EVENTS)?;
        let read = self.events(payload, events as usize, span, block);
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
        let mut low = BitReader::new(cursor.rest());
        let front = Front::read(&mut side, &mut low, &mut self.slots)?;
        let mut rans = rans::Reader::new(symbols, front.lanes, &mut self.words)?;
        block.resize(events);
        let columns = &mut self.columns;
        columns.ops.resize(events, 0);
        columns.steps.resize(events, 0);
        columns.tasks.resize(events, 0);

        take_shapes(self.slots.from(OP)?, front.lanes, &mut rans, &mut columns.ops);
        let tasks = shapes(&front, &mut side, block, columns)?;
        let symbols = columns.tasks.get_mut(..tasks).unwrap_or_default();
        take(self.slots.from::<32>(TASK)?, front.lanes, &mut rans, symbols);
        ids(&front, &mut self.tasks, &mut side, &mut low, block, symbols)?;
        take(self.slots.from::<32>(STEP)?, front.lanes, &mut rans, &mut columns.steps);
        let span = times(&front.grid, min, &mut side, &mut low, block, &columns.steps)?;
        if span != (min, max) {
            return Err(Fault::Content("its times are not those its header tells"));
        }
        rans.finish()?;
        low.finish()?;
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
fn take_shapes(
    tables: &[rans::Slots; 32],
    lanes: usize,
    rans: &mut rans::Reader,
    ops: &mut [u8],
) {
    let mut last = [OTHER; LANES];
    let mut rest = ops;
    if lanes == LANES {
        let quarter = rest.len() / LANES;
        let (first, second) = rest.split_at_mut(2 * quarter);
        let (a, b) = first.split_at_mut(quarter);
        let (c, d) = second.split_at_mut(quarter);
        let (d, more) = d.split_at_mut(quarter);
        for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
            last = rans.four(last.map(|op| &tables[usize::from(op % 32)]));
            [*a, *b, *c, *d] = last;
        }
        rest = more;
    }
    let mut op = last[lanes - 1];
    for out in rest {
        op = rans.one(lanes - 1, &tables[usize::from(op % 32)]);
        *out = op;
    }
}

/// Puts the symbol taken from it in the place of each table's number; lanes
/// take turns.
#[allow(clippy::indexing_slicing)] // A remainder is below 32, the number of tables.
#[inline(never)] // One loop's values fit into the registers.
fn take(tables: &[rans::Slots; 32], lanes: usize, rans: &mut rans::Reader, symbols: &mut [u8]) {
    let table = |at: u8| &tables[usize::from(at % 32)];
    if lanes != LANES {
        for symbol in symbols {
            *symbol = rans.one(0, table(*symbol));
        }
        return;
    }
    let (fours, rest) = symbols.as_chunks_mut::<LANES>();
    for four in fours {
        *four = rans.four(four.map(table));
    }
    for (lane, symbol) in rest.iter_mut().enumerate() {
        *symbol = rans.one(lane, table(*symbol));
    }
}

/// The columns `flags`, with [`IDLE`] and [`GIVEN`], and `state`; the tables of
/// steps and tasks. How many events have a task.
#[allow(clippy::indexing_slicing)] // Remainders are below lengths; there are fewer tasks than events.
#[inline(never)] // One loop's values fit into the registers.
fn shapes(
    front: &Front,
    side: &mut Cursor,
    block: &mut SchedBlock,
    columns: &mut Columns,
) -> Result<usize, Fault> {
    let mut traits = [Traits::default(); 32];
    for (traits, shape) in traits.iter_mut().zip(front.shapes) {
        *traits = Traits::of(shape);
    }
    let mut context = Context::new(front.current == 0);
    let tasks = columns.tasks.as_mut_slice();
    let mut count = 0;
    let out = block.flags.iter_mut().zip(&mut block.state);
    let ops = columns.ops.iter().zip(&mut columns.steps);
    for ((op, step), (flags, state)) in ops.zip(out) {
        let traits = match *op {
            OTHER => Traits::of(shape(side)?),
            op => traits[usize::from(op % 32)],
        };
        *flags = traits.flags();
        *state = traits.state();
        let task;
        (*step, task) = context.tables(traits);
        tasks[count] = task;
        count += usize::from(traits.has_task());
    }
    Ok(count)
}

/// The columns `from` and `to`; `flags` loses what is not an event's.
#[inline(never)] // One loop's values fit into the registers.
fn ids(
    front: &Front,
    known: &mut Tasks,
    side: &mut Cursor,
    low: &mut BitReader,
    block: &mut SchedBlock,
    symbols: &[u8],
) -> Result<(), Fault> {
    known.reset();
    let mut recent = Recent::new();
    let mut low_bits = low.clone();
    let first = front.current;
    let (mut current, mut new_id) = (first, first);
    let mut current_at = match current {
        0 => IDLE_AT,
        _ => STRANGER_AT,
    };
    let mut symbols = symbols.iter();
    let columns = block.from.iter_mut().zip(&mut block.to);
    for ((from, to), flags) in columns.zip(&mut block.flags) {
        let all = *flags;
        *flags = all & flag::ALL;
        if all & GIVEN != 0 {
            current = id(new_id, side)?;
            current_at = STRANGER_AT;
        }
        *from = current;
        let waking = all & flag::WAKING != 0;
        if !waking && all & IDLE != 0 {
            *to = 0;
            (current, current_at) = (0, IDLE_AT);
            continue;
        }
        let symbol = symbols.next().copied().unwrap_or(model::NEW);
        let rank = u32::from(symbol).wrapping_sub(u32::from(model::RANK));
        // All but the recent ones come into the last one's place.
        let rank = if rank < RANKS { rank } else { RANKS - 1 };
        let place = recent.place(rank);
        let far = u32::from(symbol).wrapping_sub(u32::from(model::FAR));
        let is_far = symbol >= model::FAR;
        let width = if is_far { front.far_bits } else { 0 };
        let far = (far << front.far_bits).wrapping_add(low_bits.part(width) as u32);
        let far = far.wrapping_add(u32::from(FIRST_AT)).min(u32::from(NOBODY));
        let mut at = if is_far { far as u16 } else { recent.at(place) };
        if waking {
            let waker = match all & flag::IRQ {
                0 => current_at,
                _ => IRQ_AT,
            };
            let (last, next) = known.expected(waker);
            at = if symbol == model::NEXT { next } else { at };
            at = if symbol == model::SAME { last } else { at };
            if symbol == model::NEW {
                new_id = id(new_id, side)?;
                at = known.add(new_id);
            }
            if at >= known.count() {
                return Err(Fault::Content("no task is expected here"));
            }
            known.woken(waker, last, at);
            recent.set(rank, place, at);
            *to = known.id(at);
        } else {
            if symbol < model::RANK {
                if symbol != model::NEW {
                    return Err(Fault::Content("no task is expected here"));
                }
                new_id = id(new_id, side)?;
                at = known.add(new_id);
            }
            if at >= known.count() {
                return Err(Fault::Content("no task is expected here"));
            }
            recent.set(rank, place, at);
            current = known.id(at);
            current_at = at;
            *to = current;
        }
    }
    *low = low_bits;
    Ok(())
}

/// The column `time`; its smallest and largest.
#[allow(clippy::indexing_slicing)] // A remainder is below the table's length.
#[inline(never)] // One loop's values fit into the registers.
fn times(
    grid: &Grid,
    min: u64,
    side: &mut Cursor,
    low: &mut BitReader,
    block: &mut SchedBlock,
    symbols: &[u8],
) -> Result<(u64, u64), Fault> {
    let mut low_bits = low.clone();
    let (mut time, mut tick) = (min, 0u64);
    // Ticks only grow: of the times on the grid the first is the smallest, and
    // the last the largest. Others are looked at one by one.
    let (mut smallest, mut largest) = (u64::MAX, 0);
    let mut on_grid = None;
    for (out, class) in block.time.iter_mut().zip(symbols) {
        if *class == 0 {
            time = time.wrapping_add(unfold(side.int()?) as u64);
            smallest = smallest.min(time);
            largest = largest.max(time);
        } else {
            let (least, width) = STEPS_OF[usize::from(class % 128)];
            tick += least + low_bits.part(u32::from(width));
            time = min.wrapping_add(grid.offset(tick));
            on_grid.get_or_insert(time);
        }
        *out = time;
    }
    if let Some(first) = on_grid {
        let last = grid
            .offset_of(tick)
            .and_then(|offset| min.checked_add(offset))
            .ok_or(Fault::Content("its times do not fit in 64 bits"))?;
        smallest = smallest.min(first);
        largest = largest.max(last);
    }
    *low = low_bits;
    Ok((smallest, largest))
}

#[allow(clippy::indexing_slicing)] // Checked when it is compiled.
/// [`model::step_of`] of every number that a slot can hold.
const STEPS_OF: [(u64, u8); 128] = {
    let mut steps = [(0, 0); 128];
    let mut class = 0;
    while class < model::STEPS {
        let (least, width) = model::step_of(class as u8);
        steps[class] = (least, width as u8);
        class += 1;
    }
    steps
};
