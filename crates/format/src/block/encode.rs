//! Scheduling events to symbols.

use rustc_hash::FxHashMap;

use super::bits::BitWriter;
use super::model::{self, Context, Shape, COMMON, GIVEN, IDLE, OTHER, SHAPES, STEPS};
use super::rans::{self, Place, STATES};
use super::tables::{self, Places, TABLES};
use super::tasks::{Tasks, IDLE_AT, IRQ_AT, NOBODY, STRANGER_AT};
use super::tick::{Clock, Grid};
use super::{OP, STEP, TASK};
use crate::sched::{flag, SchedBlock};
use crate::varint::{fold, put};

/// A symbol and the number of its table.
type Symbol = (u8, u8);
/// A symbol that is not there: what it stands for is implied.
const IMPLIED: Symbol = (u8::MAX, 0);

/// Encodes blocks; keeps its memory, and what it has found out about the clock.
#[derive(Debug)]
pub struct Encoder {
    clock: Clock,
    shapes: Shapes,
    tasks: Tasks,
    by_id: FxHashMap<u32, u16>,
    rounds: Vec<[Symbol; STATES]>,
    places: Vec<[Place; STATES]>,
    words: Vec<u16>,
    side: Vec<u8>,
    low: BitWriter,
    counts: Box<[[u32; STEPS]; TABLES]>,
}

impl Encoder {
    /// A new one.
    pub fn new() -> Encoder {
        Encoder {
            clock: Clock::default(),
            shapes: Shapes::common(),
            tasks: Tasks::default(),
            by_id: FxHashMap::default(),
            rounds: Vec::new(),
            places: Vec::new(),
            words: Vec::new(),
            side: Vec::new(),
            low: BitWriter::default(),
            counts: Box::new([[0; STEPS]; TABLES]),
        }
    }

    /// How often each symbol of each table came in the last block.
    #[cfg(test)]
    pub(super) fn counts(&self) -> &[[u32; STEPS]; TABLES] {
        &self.counts
    }

    /// Appends a block's payload. `min` is its smallest time.
    pub fn encode(&mut self, block: &SchedBlock, min: u64, out: &mut Vec<u8>) {
        let grid = self.clock.grid(&block.time, min);
        self.shapes.choose(block);
        let mut front = Vec::new();
        put(&mut front, grid.period - Grid::NANOSECOND);
        put(&mut front, u64::from(grid.phase >> 16));
        let current = block.from.first().copied().unwrap_or(0);
        put(&mut front, u64::from(current));
        self.shapes.put(&mut front);
        self.side.clear();
        self.low.clear();
        self.events(block, min, &grid, current);
        // The own tables stand before the low bits of the events.
        let mut low = BitWriter::default();
        let own = self.own_tables(&mut front, &mut low);
        self.place(&own);
        let mut symbols = Vec::new();
        rans::encode(&self.places, &mut self.words, &mut symbols);
        low.append(&self.low);
        put(out, (front.len() + self.side.len()) as u64);
        put(out, symbols.len() as u64);
        out.extend_from_slice(&front);
        out.extend_from_slice(&self.side);
        out.extend_from_slice(&symbols);
        out.extend_from_slice(&low.finish());
    }

    /// Symbols, given values and low bits of all events.
    fn events(&mut self, block: &SchedBlock, min: u64, grid: &Grid, first: u32) {
        self.tasks.reset();
        self.by_id.clear();
        self.rounds.clear();
        self.rounds.reserve(block.len());
        for counts in self.counts.iter_mut() {
            counts.fill(0);
        }
        let mut current = first;
        let mut context = Context::new(current == 0);
        let mut current_at = match current {
            0 => IDLE_AT,
            _ => STRANGER_AT,
        };
        let (mut time, mut tick, mut new_id) = (min, 0, current);
        let ticks = grid.ticks(block.time.iter().map(|time| time.wrapping_sub(min)));
        let ids = block.from.iter().zip(&block.to);
        let rest = block.state.iter().zip(&block.flags);
        for (((now, step), (from, to)), (state, flags)) in
            block.time.iter().zip(ticks).zip(ids).zip(rest)
        {
            let waking = flags & flag::WAKING != 0;
            let idle = if waking { *from == 0 } else { *to == 0 };
            let shape = (if idle { *flags | IDLE } else { *flags }, *state);
            let given = *from != current;
            let op = match given {
                true => OTHER,
                false => self.shapes.symbol(shape),
            };
            if op == OTHER {
                self.side.push(if given { shape.0 | GIVEN } else { shape.0 });
                put(&mut self.side, u64::from(*state));
                if given {
                    put(&mut self.side, fold(i64::from(*from) - i64::from(new_id)));
                    (current, current_at) = (*from, STRANGER_AT);
                }
            }
            let op = self.count(OP + usize::from(context.op), op);

            let group = model::group(*flags, *state, context.idle);
            let step_table = STEP + context.step(group);
            let (task, to_at) = if !waking && idle {
                (IMPLIED, IDLE_AT)
            } else {
                let table = TASK + context.task(group);
                let waker = match flags & flag::IRQ {
                    0 => current_at,
                    _ => IRQ_AT,
                };
                let (task, at) = self.task(*to, waking.then_some(waker));
                if task == model::NEW {
                    put(&mut self.side, fold(i64::from(*to) - i64::from(new_id)));
                    new_id = *to;
                }
                if group == 0 {
                    context.hit = task == model::NEXT;
                }
                (self.count(table, task), at)
            };

            let step = step.and_then(|k| Some((k, k.checked_sub(tick)?)));
            let step = step.and_then(|(k, step)| Some((k, model::step_class(step)?)));
            let class = match step {
                Some((k, (class, bits, width))) => {
                    self.low.put(bits, width);
                    tick = k;
                    class
                }
                None => {
                    put(&mut self.side, fold(now.wrapping_sub(time) as i64));
                    0
                }
            };
            time = *now;
            let step = self.count(step_table, class);
            self.rounds.push([op, task, step]);

            context.op = op.0;
            if waking {
                context.last = 2;
            } else {
                (current, current_at) = (*to, to_at);
                context.last = u8::from(current != 0);
            }
            context.idle = current == 0;
        }
    }

    #[inline(always)]
    #[allow(clippy::indexing_slicing)] // Tables are chosen by `Context`, symbols by the model.
    fn count(&mut self, table: usize, symbol: u8) -> Symbol {
        self.counts[table][usize::from(symbol)] += 1;
        (symbol, table as u8)
    }

    /// The symbol of a task, and its index.
    #[inline]
    #[allow(clippy::indexing_slicing)] // Indices of tasks that were met.
    fn task(&mut self, to: u32, waker: Option<u16>) -> (u8, u16) {
        let known = self.by_id.get(&to).copied();
        let last = waker.map_or(NOBODY, |waker| self.tasks.seen[usize::from(waker)].woke);
        let next = self.tasks.seen.get(usize::from(last)).map(|seen| seen.next);
        let found = match known {
            Some(at) if next == Some(at) => {
                self.tasks.push(at);
                Some((model::NEXT, at))
            }
            Some(at) if last == at => {
                self.tasks.push(at);
                Some((model::SAME, at))
            }
            Some(at) => self.tasks.rank(at).map(|rank| {
                let (class, bits, width) = model::rank_class(rank as u32);
                self.low.put(u64::from(bits), width);
                self.tasks.take(rank);
                (class, at)
            }),
            None => None,
        };
        let (symbol, at) = found.unwrap_or_else(|| {
            let at = self.tasks.add(to);
            self.by_id.insert(to, at);
            (model::NEW, at)
        });
        if let Some(waker) = waker {
            self.tasks.woken(waker, last, at);
        }
        (symbol, at)
    }

    /// Decides which tables the frame brings, and writes them.
    fn own_tables(&self, front: &mut Vec<u8>, low: &mut BitWriter) -> Vec<(usize, Places)> {
        let defaults = Places::defaults();
        let mut own = Vec::new();
        for (at, (counts, (_, costs))) in self.counts.iter().zip(defaults).enumerate() {
            let symbols = tables::symbols(at);
            let counts = counts.get(..symbols).unwrap_or_default();
            let Some(digits) = tables::fit(counts) else {
                continue;
            };
            let digits = digits.get(..symbols).unwrap_or_default();
            let Ok(frequencies) = tables::frequencies(digits) else {
                continue;
            };
            let used = digits.iter().filter(|digit| **digit > 0).count();
            // Its number, and its digits.
            let mut gain = -8.0 - symbols as f32 - (used as u32 * tables::DIGIT) as f32;
            for ((count, cost), frequency) in counts.iter().zip(costs).zip(frequencies) {
                if *count > 0 {
                    gain += *count as f32 * (cost - tables::cost(frequency));
                }
            }
            if gain > 0.0 {
                tables::put(digits, low);
                own.push((at, Places::new(&frequencies)));
            }
        }
        front.push(own.len() as u8);
        front.extend(own.iter().map(|(at, _)| *at as u8));
        own
    }

    /// Looks up where the symbols are in their tables.
    #[allow(clippy::indexing_slicing)] // Tables and symbols that were counted.
    fn place(&mut self, own: &[(usize, Places)]) {
        let mut tables: [&Places; TABLES] = {
            let defaults = Places::defaults();
            std::array::from_fn(|at| &defaults[at].0)
        };
        for (at, places) in own {
            tables[*at] = places;
        }
        self.places.clear();
        self.places.extend(self.rounds.iter().map(|round| {
            round.map(|symbol| match symbol {
                IMPLIED => Place::CERTAIN,
                (symbol, table) => tables[usize::from(table)].0[usize::from(symbol)],
            })
        }));
    }
}

/// The shapes of a frame that have a symbol.
#[derive(Debug)]
struct Shapes {
    table: [Shape; SHAPES],
    /// Places that differ from the common ones.
    own: Vec<u8>,
    /// Symbols by a hash of the shape.
    lookup: Box<[(Shape, u8); 256]>,
}

#[inline(always)]
fn hash(shape: Shape) -> usize {
    let key = u32::from(shape.1) << 8 | u32::from(shape.0);
    (key.wrapping_mul(0x9e37_79b9) >> 24) as usize
}

impl Shapes {
    fn common() -> Shapes {
        let mut shapes = Shapes {
            table: COMMON,
            own: Vec::new(),
            lookup: Box::new([((0, 0), 0); 256]),
        };
        shapes.index();
        shapes
    }

    #[allow(clippy::indexing_slicing)] // A hash is below 256.
    fn index(&mut self) {
        *self.lookup = [((0, 0), OTHER); 256];
        for (symbol, shape) in (0..).zip(self.table) {
            self.lookup[hash(shape)] = (shape, symbol);
        }
    }

    /// Puts the block's frequent shapes in the places of those it does not use.
    #[allow(clippy::indexing_slicing)] // Symbols and places are below SHAPES.
    fn choose(&mut self, block: &SchedBlock) {
        if !self.own.is_empty() {
            *self = Shapes::common();
        }
        let mut used = [false; SHAPES];
        let mut others: Vec<(Shape, u32)> = Vec::new();
        let ids = block.from.iter().zip(&block.to);
        for ((flags, state), (from, to)) in block.flags.iter().zip(&block.state).zip(ids) {
            let idle = match flags & flag::WAKING {
                0 => *to == 0,
                _ => *from == 0,
            };
            let shape = (if idle { *flags | IDLE } else { *flags }, *state);
            let symbol = self.symbol(shape);
            if let Some(used) = used.get_mut(usize::from(symbol)) {
                *used = true;
            } else if let Some(known) = others.iter_mut().find(|(known, _)| *known == shape) {
                known.1 += 1;
            } else if others.len() < 64 {
                others.push((shape, 1));
            }
        }
        if others.is_empty() {
            return;
        }
        others.sort_by_key(|(shape, count)| (std::cmp::Reverse(*count), *shape));
        // Rare ones cost less when given.
        let frequent = others.iter().filter(|(_, count)| *count > 2);
        let free = (0u8..).zip(used).filter(|(_, used)| !used);
        for ((shape, _), (at, _)) in frequent.zip(free) {
            self.table[usize::from(at)] = *shape;
            self.own.push(at);
        }
        self.index();
    }

    #[allow(clippy::indexing_slicing)] // Places are below SHAPES.
    fn put(&self, out: &mut Vec<u8>) {
        out.push(self.own.len() as u8);
        for at in &self.own {
            let (flags, state) = self.table[usize::from(*at)];
            out.extend([*at, flags]);
            put(out, u64::from(state));
        }
    }

    #[inline(always)]
    #[allow(clippy::indexing_slicing)] // A hash is below 256.
    fn symbol(&self, shape: Shape) -> u8 {
        let (known, symbol) = self.lookup[hash(shape)];
        if known == shape {
            return symbol;
        }
        // Another shape has the same hash.
        let at = self.table.iter().position(|known| *known == shape);
        at.map_or(OTHER, |at| at as u8)
    }
}
