//! Symbols to scheduling events: first all shapes, then all tasks, then all
//! times. Three short loops are faster than a long one: more events are in
//! flight at once.

use super::bits::BitReader;
use super::model::{self, Context, Shape, Traits, COMMON, GIVEN, IDLE, SHAPES};
use super::rans::{self, SCALE};
use super::tables::{self, take, Slots, TABLES};
use super::tasks::{Tasks, IDLE_AT, IRQ_AT, NOBODY, STRANGER_AT};
use super::tick::Grid;
use super::{OP, STEP, TASK};
use crate::limits;
use crate::sched::{flag, SchedBlock};
use crate::varint::{unfold, Cursor};
use crate::Fault;

/// Decodes payloads; keeps its memory.
#[derive(Debug, Default)]
pub struct Decoder {
    /// Tables that frames have brought.
    own: Vec<Slots>,
    tasks: Tasks,
    /// Numbers of the events' step tables.
    steps: Vec<u8>,
}

/// What the loops work on, each going on where the one before has stopped.
struct Parts<'a> {
    side: Cursor<'a>,
    words: rans::Words<'a>,
    low: BitReader<'a>,
}

/// What stands in front of the events.
struct Front<'a> {
    grid: Grid,
    current: u32,
    shapes: [Shape; SHAPES],
    /// Where each table is: below `TABLES` the format's, else an own one.
    tables: [u8; TABLES],
    parts: Parts<'a>,
}

type Tables<'a> = [&'a [u32; SCALE as usize]; TABLES];

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

impl Decoder {
    /// Reads a payload of `events` events into `block`, their smallest time `min`
    /// and their largest `max`. After an error it is empty.
    pub fn decode(
        &mut self,
        payload: &[u8],
        events: u64,
        (min, max): (u64, u64),
        block: &mut SchedBlock,
    ) -> Result<(), Fault> {
        block.clear();
        crate::error::within("the number of events", events, limits::SCHED_EVENTS)?;
        let front = self.front(payload)?;
        let read = self.events(events as usize, (min, max), front, block);
        if read.is_err() {
            block.clear();
        }
        read
    }

    fn front<'a>(&mut self, payload: &'a [u8]) -> Result<Front<'a>, Fault> {
        let mut cursor = Cursor::new(payload);
        let (side, symbols) = (cursor.int()?, cursor.int()?);
        let mut side = Cursor::new(cursor.take(side)?);
        let words = rans::Words::new(cursor.take(symbols)?)?;
        let mut low = BitReader::new(cursor.rest());
        let period = side
            .int()?
            .checked_add(Grid::NANOSECOND)
            .filter(|period| *period <= Grid::LONGEST)
            .ok_or(Fault::Content("the clock's tick is too long"))?;
        let phase = u32::from(side.int16()?) << 16;
        let current = side.int32()?;
        let mut shapes = COMMON;
        for _ in 0..side.byte()? {
            let place = shapes.get_mut(usize::from(side.byte()?));
            let place = place.ok_or(Fault::Content("no such place for a shape"))?;
            *place = shape(&mut side)?;
            if place.0 & GIVEN != 0 {
                return Err(Fault::Content("a shape with a running task"));
            }
        }
        let mut tables: [u8; TABLES] = std::array::from_fn(|at| at as u8);
        for own in 0..side.byte()? {
            let at = usize::from(side.byte()?);
            let place = tables.get_mut(at);
            let place = place
                .filter(|place| usize::from(**place) < TABLES && usize::from(own) < TABLES)
                .ok_or(Fault::Content("no such table"))?;
            let digits = tables::get(tables::symbols(at), &mut low);
            let frequencies = tables::frequencies(&digits)?;
            match self.own.get_mut(usize::from(own)) {
                Some(slots) => slots.set(&frequencies),
                None => self.own.push(Slots::new(&frequencies)),
            }
            *place = TABLES as u8 + own;
        }
        Ok(Front {
            grid: Grid { period, phase },
            current,
            shapes,
            tables,
            parts: Parts { side, words, low },
        })
    }

    #[allow(clippy::indexing_slicing)] // Places made by `front`.
    fn events(
        &mut self,
        events: usize,
        (min, max): (u64, u64),
        front: Front,
        block: &mut SchedBlock,
    ) -> Result<(), Fault> {
        let defaults = Slots::defaults();
        let own = &self.own;
        let tables: Tables = front.tables.map(|at| match usize::from(at) {
            at if at < TABLES => &*defaults[at].0,
            at => &*own[at - TABLES].0,
        });
        let mut parts = front.parts;
        block.resize(events);
        self.steps.clear();
        self.steps.resize(events, 0);
        let current = front.current;
        shapes(
            &tables,
            &front.shapes,
            current,
            &mut parts,
            block,
            &mut self.steps,
        )?;
        self.tasks.reset();
        ids(
            &tables,
            &mut self.tasks,
            current,
            &mut parts,
            block,
            &self.steps,
        )?;
        let span = times(&tables, &front.grid, min, &mut parts, block, &self.steps)?;
        if span != (min, max) {
            return Err(Fault::Content("its times are not those its header tells"));
        }
        parts.words.finish()?;
        parts.low.finish()?;
        match parts.side.left() {
            0 => Ok(()),
            _ => Err(Fault::Content("there is more than the events")),
        }
    }
}

/// The columns `flags`, with [`IDLE`] and [`GIVEN`], and `state`; and for each
/// event the number of its step table.
#[allow(clippy::indexing_slicing)] // Tables are chosen by `Context`.
#[inline(never)] // One loop's values fit into the registers.
fn shapes(
    tables: &Tables,
    shapes: &[Shape; SHAPES],
    current: u32,
    parts: &mut Parts,
    block: &mut SchedBlock,
    steps: &mut [u8],
) -> Result<(), Fault> {
    let mut traits = [Traits::default(); 32];
    for (traits, shape) in traits.iter_mut().zip(shapes) {
        *traits = Traits::of(*shape);
    }
    let mut context = Context::new(current == 0);
    // Copies stay in registers.
    let (side, mut words) = (&mut parts.side, parts.words.clone());
    let mut state = words.state;
    let columns = block.flags.iter_mut().zip(&mut block.state);
    for ((out_flags, out_state), step) in columns.zip(steps) {
        let (op, next) = take(tables[OP + usize::from(context.op)], state);
        state = words.fill(next);
        let traits = match op {
            model::OTHER => Traits::of(shape(side)?),
            op => traits[usize::from(op) % 32],
        };
        *out_flags = traits.flags;
        *out_state = traits.state;
        *step = context.step(&traits);
        context.after(op, &traits);
    }
    words.state = state;
    parts.words = words;
    Ok(())
}

/// The columns `from` and `to`; `flags` loses what is not an event's.
#[allow(clippy::indexing_slicing)] // Tables are chosen by `Context`, tasks were met.
#[inline(never)] // One loop's values fit into the registers.
fn ids(
    tables: &Tables,
    known: &mut Tasks,
    first: u32,
    parts: &mut Parts,
    block: &mut SchedBlock,
    steps: &[u8],
) -> Result<(), Fault> {
    let side = &mut parts.side;
    let (mut words, mut low) = (parts.words.clone(), parts.low.clone());
    let mut state = words.state;
    let (mut current, mut new_id, mut hit) = (first, first, false);
    let mut current_at = match current {
        0 => IDLE_AT,
        _ => STRANGER_AT,
    };
    let columns = block.from.iter_mut().zip(&mut block.to);
    for (((from, to), flags), step) in columns.zip(&mut block.flags).zip(steps) {
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
        let table = model::task_table(*step, hit);
        let (task, next) = take(tables[TASK + table], state);
        state = words.fill(next);
        if !waking {
            let at = match task {
                model::NEW => {
                    new_id = id(new_id, side)?;
                    known.add(new_id)
                }
                class => recent(known, class, &mut low)?,
            };
            current = known.seen[usize::from(at)].id;
            current_at = at;
            *to = current;
            continue;
        }
        let waker = match all & flag::IRQ {
            0 => current_at,
            _ => IRQ_AT,
        };
        let last = known.seen[usize::from(waker)].woke;
        let at = match task {
            model::NEW => {
                new_id = id(new_id, side)?;
                known.add(new_id)
            }
            model::NEXT | model::SAME => {
                let at = match known.seen.get(usize::from(last)) {
                    Some(seen) if task == model::NEXT => seen.next,
                    _ => last,
                };
                if at == NOBODY {
                    return Err(Fault::Content("no task is expected here"));
                }
                known.push(at);
                at
            }
            class => recent(known, class, &mut low)?,
        };
        known.woken(waker, last, at);
        if model::plain_waking(*step) {
            hit = task == model::NEXT;
        }
        *to = known.seen[usize::from(at)].id;
    }
    words.state = state;
    (parts.words, parts.low) = (words, low);
    Ok(())
}

/// The index of a recent task.
#[inline(always)]
fn recent(known: &mut Tasks, class: u8, low: &mut BitReader) -> Result<u16, Fault> {
    if class < model::RANK {
        return Err(Fault::Content("no task is expected here"));
    }
    let (first, width) = model::rank_of(class);
    let rank = first + low.part(width) as u32;
    known
        .take(rank as usize)
        .ok_or(Fault::Content("no such rank"))
}

/// The column `time`; its smallest and largest.
#[allow(clippy::indexing_slicing)] // Tables are chosen by `Context`.
#[inline(never)] // One loop's values fit into the registers.
fn times(
    tables: &Tables,
    grid: &Grid,
    min: u64,
    parts: &mut Parts,
    block: &mut SchedBlock,
    steps: &[u8],
) -> Result<(u64, u64), Fault> {
    let side = &mut parts.side;
    let (mut words, mut low) = (parts.words.clone(), parts.low.clone());
    let mut state = words.state;
    let (mut time, mut tick) = (min, 0u64);
    let (mut smallest, mut largest) = (u64::MAX, 0);
    for (out, step) in block.time.iter_mut().zip(steps) {
        let (class, next) = take(tables[STEP + usize::from(*step)], state);
        state = words.fill(next);
        time = match class {
            0 => time.wrapping_add(unfold(side.int()?) as u64),
            class => {
                let (least, width) = STEPS_OF[usize::from(class) % 128];
                tick += least + low.part(u32::from(width));
                min.wrapping_add(grid.offset(tick))
            }
        };
        *out = time;
        smallest = smallest.min(time);
        largest = largest.max(time);
    }
    words.state = state;
    (parts.words, parts.low) = (words, low);
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
