//! Symbols to scheduling events.

use super::bits::BitReader;
use super::model::{self, Context, Shape, COMMON, GIVEN, IDLE, SHAPES};
use super::rans::{self, STATES};
use super::tables::{self, Slots, TABLES};
use super::tasks::{Tasks, IDLE_AT, IRQ_AT, NOBODY, STRANGER_AT};
use super::tick::Grid;
use super::{OP, STEP, TASK};
use crate::event::CpuId;
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
}

/// What stands in front of the events.
struct Front<'a> {
    grid: Grid,
    current: u32,
    shapes: [Shape; SHAPES],
    /// Where each table is: below `TABLES` the format's, else an own one.
    tables: [u8; TABLES],
    side: Cursor<'a>,
    low: BitReader<'a>,
    states: [u32; STATES],
    words: rans::Words<'a>,
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
    let shape = (side.byte()?, side.int16()?);
    if shape.0 & !(flag::ALL | IDLE | GIVEN) != 0 {
        return Err(Fault::Content("an event has unknown flags"));
    }
    Ok(shape)
}

impl Decoder {
    /// Reads a payload of `events` events, none before `min`, into `block`,
    /// which is emptied first. After an error it is empty.
    pub fn decode(
        &mut self,
        payload: &[u8],
        events: u64,
        min: u64,
        block: &mut SchedBlock,
    ) -> Result<(), Fault> {
        let cpu = block.cpu;
        crate::error::within("the number of events", events, limits::SCHED_EVENTS)?;
        let front = self.front(payload)?;
        let read = self.events(events as usize, min, front, block);
        if read.is_err() && !cfg!(test) {
            block.clear();
        }
        block.cpu = CpuId(cpu.0);
        read
    }

    fn front<'a>(&mut self, payload: &'a [u8]) -> Result<Front<'a>, Fault> {
        let mut cursor = Cursor::new(payload);
        let (side, symbols) = (cursor.int()?, cursor.int()?);
        let mut side = Cursor::new(cursor.take(side)?);
        let (states, words) = rans::states(cursor.take(symbols)?)?;
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
            side,
            low,
            states,
            words,
        })
    }

    #[allow(clippy::indexing_slicing)] // Tables are chosen by `Context`, tasks were met.
    fn events(
        &mut self,
        events: usize,
        min: u64,
        front: Front,
        block: &mut SchedBlock,
    ) -> Result<(), Fault> {
        let Front {
            grid,
            mut current,
            shapes,
            tables,
            mut side,
            mut low,
            states: [mut ops, mut tasks, mut steps],
            mut words,
        } = front;
        let defaults = Slots::defaults();
        let own = &self.own;
        let tables: [&Slots; TABLES] = tables.map(|at| match usize::from(at) {
            at if at < TABLES => &defaults[at],
            at => &own[at - TABLES],
        });
        let known = &mut self.tasks;
        known.reset();
        let mut context = Context::new(current == 0);
        let mut current_at = match current {
            0 => IDLE_AT,
            _ => STRANGER_AT,
        };
        let (mut time, mut tick, mut new_id) = (min, 0u64, current);
        block.resize(events);
        let ids = block.from.iter_mut().zip(&mut block.to);
        let rest = block.state.iter_mut().zip(&mut block.flags);
        for ((out_time, (out_from, out_to)), (out_state, out_flags)) in
            block.time.iter_mut().zip(ids).zip(rest)
        {
            ops = words.fill(ops);
            let (op, next) = tables[OP + usize::from(context.op)].take(ops);
            ops = next;
            let (flags, state) = match shapes.get(usize::from(op)) {
                Some(shape) => *shape,
                None => {
                    let shape = shape(&mut side)?;
                    if shape.0 & GIVEN != 0 {
                        current = id(new_id, &mut side)?;
                        current_at = STRANGER_AT;
                    }
                    shape
                }
            };
            let group = model::group(flags, state, context.idle);
            let waking = flags & flag::WAKING != 0;
            let from = current;

            let (to, to_at) = if !waking && flags & IDLE != 0 {
                (0, IDLE_AT)
            } else {
                tasks = words.fill(tasks);
                let (task, next) = tables[TASK + context.task(group)].take(tasks);
                tasks = next;
                let waker = match flags & flag::IRQ {
                    0 => current_at,
                    _ => IRQ_AT,
                };
                let last = known.seen[usize::from(waker)].woke;
                if std::env::var("DBG").is_ok() { eprintln!("D {} {task}", context.task(group)); }
                let at = match task {
                    model::NEW => {
                        new_id = id(new_id, &mut side)?;
                        known.add(new_id)
                    }
                    model::NEXT | model::SAME => {
                        let at = match known.seen.get(usize::from(last)) {
                            Some(seen) if task == model::NEXT => seen.next,
                            _ => last,
                        };
                        if !waking || at == NOBODY {
                            return Err(Fault::Content("no task is expected here"));
                        }
                        known.push(at);
                        at
                    }
                    class => {
                        let (first, width) = model::rank_of(class);
                        let rank = first + low.get(width) as u32;
                        let at = known.take(rank as usize);
                        at.ok_or(Fault::Content("no such rank"))?
                    }
                };
                if waking {
                    known.woken(waker, last, at);
                    if group == 0 {
                        context.hit = task == model::NEXT;
                    }
                }
                (known.seen[usize::from(at)].id, at)
            };

            let step_table = STEP + context.step(group);
            steps = words.fill(steps);
            let (class, next) = tables[step_table].take(steps);
            steps = next;
            time = match class {
                0 => time.wrapping_add(unfold(side.int()?) as u64),
                class => {
                    let (least, width) = STEPS_OF[usize::from(class)];
                    tick += least + low.get(u32::from(width));
                    min.wrapping_add(grid.offset(tick))
                }
            };

            context.op = op;
            if waking {
                context.last = 2;
            } else {
                (current, current_at) = (to, to_at);
                context.last = u8::from(current != 0);
            }
            context.idle = current == 0;
            *out_time = time;
            *out_from = from;
            *out_to = to;
            *out_state = state;
            *out_flags = flags & flag::ALL;
        }
        words.finish([ops, tasks, steps])?;
        low.finish()?;
        match side.left() {
            0 => Ok(()),
            _ => Err(Fault::Content("there is more than the events")),
        }
    }
}

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
