//! Scheduling events to symbols.

use std::collections::HashMap;

use super::bits::BitWriter;
use super::model::{self, Context, Model, Shape, GIVEN, OTHER, SHAPES};
use super::rans::{self, Place};
use super::tick::{Clock, Grid};
use crate::sched::{flag, SchedBlock};
use crate::varint::{fold, put};

/// Index of the idle task among a frame's tasks.
pub(super) const IDLE_AT: u32 = 0;
/// Index that stands for whoever an interrupt found running.
pub(super) const IRQ_AT: u32 = 1;
/// Index that stands for tasks that are given as `from`.
pub(super) const STRANGER_AT: u32 = 2;
/// The first task's index.
pub(super) const FIRST_AT: u32 = 3;
/// No task.
pub(super) const NOBODY: u32 = u32::MAX;

/// What is known of a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Its id.
    pub id: u32,
    /// The task it woke last.
    pub woke: u32,
    /// The task that was woken after it by the same waker.
    pub next: u32,
}

impl Seen {
    pub(super) fn new(id: u32) -> Seen {
        Seen {
            id,
            woke: NOBODY,
            next: NOBODY,
        }
    }
}

/// Encodes blocks; keeps its memory, and what it has found out about the clock.
#[derive(Debug)]
pub struct Encoder {
    model: Model,
    clock: Clock,
    places: Vec<Place>,
    /// Indices of tasks by use, the last one used at the end.
    recent: Vec<u32>,
    seen: Vec<Seen>,
    by_id: HashMap<u32, u32>,
    ticks: Vec<Option<u64>>,
}

impl Encoder {
    /// A new one.
    pub fn new() -> Encoder {
        Encoder {
            model: Model::start().clone(),
            clock: Clock::default(),
            places: Vec::new(),
            recent: Vec::new(),
            seen: Vec::new(),
            by_id: HashMap::new(),
            ticks: Vec::new(),
        }
    }

    /// As it is after the last block; for the training of priors.
    #[cfg(test)]
    pub(super) fn model(&self) -> &Model {
        &self.model
    }

    /// Appends a block's payload. `min` is its smallest time.
    pub fn encode(&mut self, block: &SchedBlock, min: u64, out: &mut Vec<u8>) {
        self.model.reset();
        self.places.clear();
        self.recent.clear();
        self.by_id.clear();
        self.seen.clear();
        self.seen.extend([0, 0, 0].map(Seen::new));
        let grid = self.clock.grid(&block.time, min);
        self.ticks.clear();
        self.ticks
            .extend(grid.ticks(block.time.iter().map(|time| time - min)));
        let shapes = Shapes::new(block);
        let mut side = Vec::new();
        put(&mut side, grid.period - Grid::NANOSECOND);
        put(&mut side, u64::from(grid.phase >> 16));
        shapes.put(&mut side);
        let mut low = BitWriter::default();
        self.events(block, min, &shapes, &mut side, &mut low);
        let mut symbols = Vec::new();
        rans::encode(&self.places, &mut symbols);
        put(out, side.len() as u64);
        put(out, symbols.len() as u64);
        out.extend_from_slice(&side);
        out.extend_from_slice(&symbols);
        out.extend_from_slice(&low.finish());
    }

    #[allow(clippy::indexing_slicing)] // Columns of one length; indices made here.
    fn events(
        &mut self,
        block: &SchedBlock,
        min: u64,
        shapes: &Shapes,
        side: &mut Vec<u8>,
        low: &mut BitWriter,
    ) {
        let mut context = Context::new();
        let (mut current, mut current_at) = (0, IDLE_AT);
        let (mut time, mut tick, mut new_id) = (min, 0, 0);
        for at in 0..block.len() {
            let (from, to) = (block.from[at], block.to[at]);
            let (flags, state) = (block.flags[at], block.state[at]);

            let mut op = shapes.symbol((flags, state));
            if op == OTHER {
                side.push(flags);
                put(side, u64::from(state));
            }
            if from != current {
                op |= GIVEN;
                put(side, fold(i64::from(from) - i64::from(new_id)));
                current_at = STRANGER_AT;
            }
            let table = context.op();
            self.places.push(self.model.ops[table].encode(op));

            let table = context.task(flags, state);
            let waking = flags & flag::WAKING != 0;
            let waker = match flags & flag::IRQ {
                0 => current_at,
                _ => IRQ_AT,
            };
            let (task, to_at) = self.task(to, waking.then_some(waker), low);
            if task == model::NEW {
                put(side, fold(i64::from(to) - i64::from(new_id)));
                new_id = to;
            }
            self.places.push(self.model.tasks[table].encode(task));

            let now = block.time[at];
            let table = context.step();
            let step = self.ticks[at].and_then(|k| Some((k, k.checked_sub(tick)?)));
            let class = step.and_then(|(k, step)| Some((k, model::step_class(step)?)));
            let class = match class {
                Some((k, (class, bits, width))) => {
                    low.put(bits, width);
                    tick = k;
                    class
                }
                None => {
                    put(side, fold(now.wrapping_sub(time) as i64));
                    0
                }
            };
            time = now;
            self.places.push(self.model.steps[table].encode(class));

            if waking {
                current = from;
            } else {
                (current, current_at) = (to, to_at);
            }
            context.after(op, task, current == 0);
        }
    }

    /// The symbol of a task, and its index.
    #[allow(clippy::indexing_slicing)] // Indices are made here.
    fn task(&mut self, to: u32, waker: Option<u32>, low: &mut BitWriter) -> (u8, u32) {
        if to == 0 {
            if let Some(waker) = waker {
                self.woken(waker, IDLE_AT);
            }
            return (model::IDLE, IDLE_AT);
        }
        let known = self.by_id.get(&to).copied();
        let (symbol, at) = 'found: {
            let Some(at) = known else {
                break 'found (model::NEW, NOBODY);
            };
            if let Some(waker) = waker {
                let last = self.seen[waker as usize].woke;
                if last != NOBODY && self.seen[last as usize].next == at {
                    self.recent.push(at);
                    break 'found (model::NEXT, at);
                }
                if last == at {
                    self.recent.push(at);
                    break 'found (model::SAME, at);
                }
            }
            let first = self.recent.len().saturating_sub(model::RANKS);
            let window = &self.recent[first..];
            let Some(place) = window.iter().rposition(|recent| *recent == at) else {
                break 'found (model::NEW, NOBODY);
            };
            let place = first + place;
            let rank = self.recent.len() - 1 - place;
            self.recent[place..].rotate_left(1);
            let (class, bits, width) = model::rank_class(rank as u32);
            low.put(u64::from(bits), width);
            (class, at)
        };
        let at = match symbol {
            model::NEW => {
                let at = self.seen.len() as u32;
                self.seen.push(Seen::new(to));
                self.by_id.insert(to, at);
                self.recent.push(at);
                at
            }
            _ => at,
        };
        if let Some(waker) = waker {
            self.woken(waker, at);
        }
        (symbol, at)
    }

    #[allow(clippy::indexing_slicing)] // Indices are made here.
    fn woken(&mut self, waker: u32, wakee: u32) {
        let last = self.seen[waker as usize].woke;
        if last != NOBODY {
            self.seen[last as usize].next = wakee;
        }
        self.seen[waker as usize].woke = wakee;
    }
}

/// The shapes of a frame that have a symbol.
#[derive(Debug)]
struct Shapes {
    table: [Shape; 15],
    /// Places that differ from the default.
    own: Vec<u8>,
}

impl Shapes {
    /// Puts the frame's frequent shapes in the places of those it does not use.
    #[allow(clippy::indexing_slicing)] // Places are below 15.
    fn new(block: &SchedBlock) -> Shapes {
        let mut used = [false; 15];
        let mut others: Vec<(Shape, u32)> = Vec::new();
        let mut last = None;
        for shape in block.flags.iter().copied().zip(block.state.iter().copied()) {
            if last == Some(shape) {
                continue;
            }
            last = Some(shape);
            if let Some(at) = SHAPES.iter().position(|known| *known == shape) {
                used[at] = true;
            } else if let Some(known) = others.iter_mut().find(|(known, _)| *known == shape) {
                known.1 += 1;
            } else if others.len() < 64 {
                others.push((shape, 1));
            }
        }
        others.sort_by_key(|(shape, count)| (std::cmp::Reverse(*count), *shape));
        let mut shapes = Shapes {
            table: SHAPES,
            own: Vec::new(),
        };
        // Rare ones cost less when given.
        let frequent = others.iter().filter(|(_, count)| *count > 2);
        let free = (0u8..15).filter(|at| !used[usize::from(*at)]);
        for ((shape, _), at) in frequent.zip(free) {
            shapes.table[usize::from(at)] = *shape;
            shapes.own.push(at);
        }
        shapes
    }

    #[allow(clippy::indexing_slicing)] // Places are below 15.
    fn put(&self, out: &mut Vec<u8>) {
        out.push(self.own.len() as u8);
        for at in &self.own {
            let (flags, state) = self.table[usize::from(*at)];
            out.extend([*at, flags]);
            put(out, u64::from(state));
        }
    }

    #[inline]
    fn symbol(&self, shape: Shape) -> u8 {
        let at = self.table.iter().position(|known| *known == shape);
        at.map_or(OTHER, |at| at as u8)
    }
}
