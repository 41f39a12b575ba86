//! Symbols to scheduling events.

use super::bits::BitReader;
use super::encode::{Seen, FIRST_AT, IDLE_AT, IRQ_AT, NOBODY, STRANGER_AT};
use super::model::{self, Context, Model, GIVEN, OTHER, SHAPES};
use super::rans::{self, SCALE};
use super::tick::Grid;
use crate::sched::{flag, SchedBlock};
use crate::varint::{unfold, Cursor};
use crate::Fault;

/// Decodes payloads; keeps its memory.
#[derive(Debug)]
pub struct Decoder {
    model: Model,
    recent: Vec<u32>,
    seen: Vec<Seen>,
}

/// An id that is given as the difference to another.
fn id(from: u32, side: &mut Cursor) -> Result<u32, Fault> {
    i64::from(from)
        .checked_add(unfold(side.int()?))
        .and_then(|id| u32::try_from(id).ok())
        .ok_or(Fault::Content("no such task id"))
}

impl Decoder {
    /// A new one.
    pub fn new() -> Decoder {
        Decoder {
            model: Model::start().clone(),
            recent: Vec::new(),
            seen: Vec::new(),
        }
    }

    /// Reads a payload of `events` events, the first at `min` or after it, into
    /// `block`, which is emptied first.
    pub fn decode(
        &mut self,
        payload: &[u8],
        events: u64,
        min: u64,
        block: &mut SchedBlock,
    ) -> Result<(), Fault> {
        block.clear();
        self.model.reset();
        self.recent.clear();
        self.seen.clear();
        self.seen.extend([0, 0, 0].map(Seen::new));
        let mut cursor = Cursor::new(payload);
        let (side, symbols) = (cursor.int()?, cursor.int()?);
        let mut side = Cursor::new(cursor.take(side)?);
        let symbols = rans::Decoder::new(cursor.take(symbols)?)?;
        let mut low = BitReader::new(cursor.rest());
        let period = side
            .int()?
            .checked_add(Grid::NANOSECOND)
            .filter(|period| *period <= Grid::LONGEST)
            .ok_or(Fault::Content("the clock's tick is too long"))?;
        let phase = u32::from(side.int16()?) << 16;
        let mut shapes = SHAPES;
        for _ in 0..side.byte()? {
            let place = shapes.get_mut(usize::from(side.byte()?));
            let place = place.ok_or(Fault::Content("no such shape"))?;
            *place = (side.byte()?, side.int16()?);
        }
        if shapes.iter().any(|(flags, _)| flags & !flag::ALL != 0) {
            return Err(Fault::Content("an event has unknown flags"));
        }
        let grid = Grid { period, phase };
        let events = events as usize;
        let symbols = self.events(
            events, min, &grid, &shapes, symbols, &mut side, &mut low, block,
        )?;
        symbols.finish()?;
        low.finish()?;
        match side.left() {
            0 => Ok(()),
            _ => Err(Fault::Content("there is more than the events")),
        }
    }

    #[allow(clippy::too_many_arguments)] // The one loop, and all it works on.
    #[allow(clippy::indexing_slicing)] // Tables are chosen by `Context`, slots are below SCALE.
    fn events<'a>(
        &mut self,
        events: usize,
        min: u64,
        grid: &Grid,
        shapes: &[model::Shape; 15],
        symbols: rans::Decoder<'a>,
        side: &mut Cursor,
        low: &mut BitReader,
        block: &mut SchedBlock,
    ) -> Result<rans::Decoder<'a>, Fault> {
        let rans::Decoder {
            states: [mut ops, mut tasks, mut steps],
            mut words,
        } = symbols;
        let mut context = Context::new();
        let (mut current, mut current_at) = (0u32, IDLE_AT);
        let (mut time, mut tick, mut new_id) = (min, 0u64, 0u32);
        for _ in 0..events {
            let table = context.op();
            ops = words.renew(ops);
            let (op, place) = self.model.ops[table].decode(ops % SCALE);
            ops = rans::step(ops, place);
            let (flags, state) = match op & !GIVEN {
                OTHER => {
                    let (flags, state) = (side.byte()?, side.int16()?);
                    if flags & !flag::ALL != 0 {
                        return Err(Fault::Content("an event has unknown flags"));
                    }
                    (flags, state)
                }
                shape => shapes[usize::from(shape)],
            };
            let mut from = current;
            if op & GIVEN != 0 {
                from = id(new_id, side)?;
                current_at = STRANGER_AT;
            }

            let table = context.task(flags, state);
            tasks = words.renew(tasks);
            let (task, place) = self.model.tasks[table].decode(tasks % SCALE);
            tasks = rans::step(tasks, place);
            let waking = flags & flag::WAKING != 0;
            let waker = match flags & flag::IRQ {
                0 => current_at,
                _ => IRQ_AT,
            };
            let last = self.seen[waker as usize].woke;
            let to_at = match task {
                model::NEW => {
                    new_id = id(new_id, side)?;
                    let at = self.seen.len() as u32;
                    self.seen.push(Seen::new(new_id));
                    self.recent.push(at);
                    at
                }
                model::IDLE => IDLE_AT,
                model::NEXT | model::SAME => {
                    let mut at = last;
                    if task == model::NEXT && at != NOBODY {
                        at = self.seen[at as usize].next;
                    }
                    if !waking || at == NOBODY {
                        return Err(Fault::Content("no task is expected here"));
                    }
                    self.recent.push(at);
                    at
                }
                class => {
                    let (first, width) = model::rank_of(class);
                    let rank = (first + low.get(width) as u32) as usize;
                    let place = self.recent.len().checked_sub(rank + 1);
                    let place = place.ok_or(Fault::Content("no such rank"))?;
                    let at = self.recent[place];
                    self.recent.copy_within(place + 1.., place);
                    if let Some(end) = self.recent.last_mut() {
                        *end = at;
                    }
                    at
                }
            };
            let to = self.seen[to_at as usize].id;
            if waking {
                if last != NOBODY {
                    self.seen[last as usize].next = to_at;
                }
                self.seen[waker as usize].woke = to_at;
            }

            let table = context.step();
            steps = words.renew(steps);
            let (class, place) = self.model.steps[table].decode(steps % SCALE);
            steps = rans::step(steps, place);
            time = match class {
                0 => time.wrapping_add(unfold(side.int()?) as u64),
                class => {
                    let (least, width) = model::step_of(class);
                    tick += least + low.get(width);
                    min.wrapping_add(grid.offset(tick))
                }
            };

            if waking {
                current = from;
            } else {
                (current, current_at) = (to, to_at);
            }
            context.after(op, task, current == 0);
            block.time.push(time);
            block.from.push(from);
            block.to.push(to);
            block.state.push(state);
            block.flags.push(flags);
        }
        let fill = |state: u32, words: &mut rans::Words| words.renew(state);
        let states = [
            fill(ops, &mut words),
            fill(tasks, &mut words),
            fill(steps, &mut words),
        ];
        debug_assert!(self.seen.len() >= FIRST_AT as usize);
        Ok(rans::Decoder { states, words })
    }
}
