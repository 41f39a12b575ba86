//! Scheduling events to symbols.

use rustc_hash::FxHashMap;

use super::bits::BitWriter;
use super::model::{self, Context, Traits, GIVEN, OTHER, STEPS};
use super::rans;
use super::shapes::{shapes, Shapes};
use super::tables::{self, Places, TABLES};
use super::tasks::{Tasks, IDLE_AT, IRQ_AT, NOBODY, STRANGER_AT};
use super::tick::{Clock, Grid};
use super::{OP, STEP, TASK};
use crate::sched::{flag, SchedBlock};
use crate::varint::{fold, put};

/// A symbol and the number of its table.
type Symbol = (u8, u8);

/// Encodes blocks; keeps its memory, and what it has found out about the clock.
#[derive(Debug)]
pub struct Encoder {
    clock: Clock,
    shapes: Shapes,
    tasks: Tasks,
    by_id: FxHashMap<u32, u16>,
    /// Symbols of shapes, tasks and steps.
    symbols: [Vec<Symbol>; 3],
    /// Numbers of the events' step tables.
    steps: Vec<u8>,
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
            symbols: Default::default(),
            steps: Vec::new(),
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
        let current = block.from.first().copied().unwrap_or(0);
        let mut front = Vec::new();
        put(&mut front, grid.period - Grid::NANOSECOND);
        put(&mut front, u64::from(grid.phase >> 16));
        put(&mut front, u64::from(current));
        self.shapes.put(&mut front);
        self.side.clear();
        self.low.clear();
        self.shapes(block, current);
        self.ids(block, current);
        self.times(block, min, &grid);
        // The own tables stand before the low bits of the events.
        let mut low = BitWriter::default();
        let own = self.own_tables(&mut front, &mut low);
        low.append(&self.low);
        let state = self.code(&own);
        put(out, (front.len() + self.side.len()) as u64);
        put(out, (4 + 2 * self.words.len()) as u64);
        out.extend_from_slice(&front);
        out.extend_from_slice(&self.side);
        out.extend_from_slice(&state.to_le_bytes());
        out.extend(self.words.iter().flat_map(|word| word.to_le_bytes()));
        out.extend_from_slice(&low.finish());
    }

    /// The symbols of shapes, and what they give.
    fn shapes(&mut self, block: &SchedBlock, first: u32) {
        for counts in self.counts.iter_mut() {
            counts.fill(0);
        }
        let [symbols, ..] = &mut self.symbols;
        symbols.clear();
        self.steps.clear();
        let mut current = first;
        let mut context = Context::new(current == 0);
        let ids = block.from.iter().zip(&block.to);
        for ((shape, (from, to)), op) in shapes(block).zip(ids).zip(&self.shapes.symbols) {
            let given = *from != current;
            let op = if given { OTHER } else { *op };
            if op == OTHER {
                self.side
                    .push(if given { shape.0 | GIVEN } else { shape.0 });
                put(&mut self.side, u64::from(shape.1));
            }
            let table = OP + usize::from(context.op);
            symbols.push(count(&mut self.counts, table, op));
            let traits = Traits::of(shape);
            self.steps.push(context.step(&traits));
            context.after(op, &traits);
            current = match shape.0 & flag::WAKING {
                0 => *to,
                _ => *from,
            };
        }
    }

    /// The symbols of tasks, what they give, and the low bits of ranks.
    fn ids(&mut self, block: &SchedBlock, first: u32) {
        self.tasks.reset();
        self.by_id.clear();
        let mut symbols = std::mem::take(&mut self.symbols[1]);
        let steps = std::mem::take(&mut self.steps);
        symbols.clear();
        let (mut current, mut new_id, mut hit) = (first, first, false);
        let mut current_at = match current {
            0 => IDLE_AT,
            _ => STRANGER_AT,
        };
        let ids = block.from.iter().zip(&block.to);
        for (((from, to), flags), step) in ids.zip(&block.flags).zip(&steps) {
            if *from != current {
                put(&mut self.side, fold(i64::from(*from) - i64::from(new_id)));
                (current, current_at) = (*from, STRANGER_AT);
            }
            let waking = flags & flag::WAKING != 0;
            if !waking && *to == 0 {
                (current, current_at) = (0, IDLE_AT);
                continue;
            }
            let waker = match flags & flag::IRQ {
                0 => current_at,
                _ => IRQ_AT,
            };
            let (task, at) = self.task(*to, waking.then_some(waker));
            if task == model::NEW {
                put(&mut self.side, fold(i64::from(*to) - i64::from(new_id)));
                new_id = *to;
            }
            let table = TASK + model::task_table(*step, hit);
            symbols.push(count(&mut self.counts, table, task));
            if model::plain_waking(*step) {
                hit = task == model::NEXT;
            }
            if !waking {
                (current, current_at) = (*to, at);
            }
        }
        self.symbols[1] = symbols;
        self.steps = steps;
    }

    /// The symbols of steps, what they give, and their low bits.
    fn times(&mut self, block: &SchedBlock, min: u64, grid: &Grid) {
        let [.., symbols] = &mut self.symbols;
        symbols.clear();
        let (mut time, mut tick) = (min, 0);
        let ticks = grid.ticks(block.time.iter().map(|time| time.wrapping_sub(min)));
        for ((now, step), table) in block.time.iter().zip(ticks).zip(&self.steps) {
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
            symbols.push(count(&mut self.counts, STEP + usize::from(*table), class));
        }
    }

    /// The symbol of a task, and its index.
    #[inline]
    #[allow(clippy::indexing_slicing)] // Indices of tasks that were met.
    fn task(&mut self, to: u32, waker: Option<u16>) -> (u8, u16) {
        let last = waker.map_or(NOBODY, |waker| self.tasks.seen[usize::from(waker)].woke);
        let expected = |at: u16| Some(at).filter(|at| self.tasks.id(*at) == Some(to));
        let next = self.tasks.seen.get(usize::from(last)).map(|seen| seen.next);
        let found = if let Some(at) = next.and_then(expected) {
            self.tasks.push(at);
            Some((model::NEXT, at))
        } else if let Some(at) = expected(last) {
            self.tasks.push(at);
            Some((model::SAME, at))
        } else {
            let far = || {
                let at = self.by_id.get(&to).copied()?;
                Some((self.tasks.rank(at)?, at))
            };
            self.tasks.near(to).or_else(far).map(|(rank, at)| {
                let (class, bits, width) = model::rank_class(rank as u32);
                self.low.put(u64::from(bits), width);
                self.tasks.take(rank);
                (class, at)
            })
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
            // A symbol saves some 8 bits at most.
            let total: u32 = counts.iter().sum();
            if 8 * (total as usize) < 8 + symbols {
                continue;
            }
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

    /// Encodes the symbols by their tables: gives the state; the words are in
    /// place.
    #[allow(clippy::indexing_slicing)] // Tables and symbols that were counted.
    fn code(&mut self, own: &[(usize, Places)]) -> u32 {
        let mut tables: [&Places; TABLES] = {
            let defaults = Places::defaults();
            std::array::from_fn(|at| &defaults[at].0)
        };
        for (at, places) in own {
            tables[*at] = places;
        }
        self.words.clear();
        let places = self
            .symbols
            .iter()
            .flatten()
            .map(|(symbol, table)| &tables[usize::from(*table)].0[usize::from(*symbol)]);
        rans::encode(places, &mut self.words)
    }
}

/// Counts a symbol.
#[inline(always)]
#[allow(clippy::indexing_slicing)] // Tables are chosen by `Context`, symbols by the model.
fn count(counts: &mut [[u32; STEPS]; TABLES], table: usize, symbol: u8) -> Symbol {
    counts[table][usize::from(symbol)] += 1;
    (symbol, table as u8)
}
