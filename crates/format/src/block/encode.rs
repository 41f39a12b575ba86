//! Scheduling events to symbols.

use rustc_hash::FxHashMap;

use super::bits::BitWriter;
use super::boxed;
use super::model::{self, Context, Traits, FAR, GIVEN, OTHER, RANK, STEPS};
use super::rans::{self, Place, GROUP, LANES};
use super::shapes::{shape, Shapes};
use super::tables::{self, Places, TABLES};
use super::tasks::{Recent, Tasks, FIRST_AT, IDLE_AT, IRQ_AT, NOBODY, RANKS, STRANGER_AT};
use super::tick::{Clock, Grid};
use super::{OP, STEP, TASK};
use crate::sched::{flag, Open, Rest};
use crate::varint::{fold, put};

/// Blocks with fewer events have one lane: a state costs four bytes.
const LARGE: usize = 64;
/// Bits that a frame's own table has to save: a reader takes as long to make it as for ten
/// events. In small blocks this is 0.2 % of the bytes for 4 % of the time.
const PAYS: f32 = 48.0;

/// Encodes blocks; keeps its memory, and what it has found out about the clock.
#[derive(Debug)]
pub struct Encoder {
    clock: Clock,
    shapes: Shapes,
    ids: Ids,
    /// Symbols of tasks and of steps, and the tables of each.
    tasks: Symbols,
    steps: Symbols,
    rans: rans::Writer,
    coded: Vec<u8>,
    side: Vec<u8>,
    low: BitWriter,
    counts: Counts,
}

/// Symbols, and the number of each one's table among those of its kind.
#[derive(Debug, Default)]
struct Symbols {
    symbols: Vec<u8>,
    tables: Vec<u8>,
}

/// Indices and places of tasks by their ids.
#[derive(Debug)]
struct Ids {
    known: Tasks,
    /// The index that an id with these low bits has had last.
    quick: Box<[u16; 1 << 16]>,
    /// All indices.
    sure: FxHashMap<u32, u16>,
    /// For each index its place among the recent tasks, when it has one.
    places: Box<[u8; 1 << 16]>,
    /// Indices of symbols of the class [`FAR`], in order.
    far: Vec<u16>,
}

#[allow(clippy::indexing_slicing)] // A u16 is below 2^16.
impl Ids {
    fn new() -> Ids {
        Ids {
            known: Tasks::default(),
            quick: boxed(0),
            sure: FxHashMap::default(),
            places: boxed(0),
            far: Vec::new(),
        }
    }

    fn reset(&mut self) {
        self.known.reset();
        self.sure.clear();
        self.far.clear();
    }

    /// The index of a task; `None` when it is met for the first time.
    #[inline(always)]
    fn find(&mut self, id: u32) -> Option<u16> {
        let quick = self.quick[usize::from(id as u16)];
        // What stands there may be of a block before.
        let same = (FIRST_AT..self.known.count()).contains(&quick) && self.known.id(quick) == id;
        match same {
            true => Some(quick),
            false => self.find_surely(id),
        }
    }

    #[cold]
    fn find_surely(&mut self, id: u32) -> Option<u16> {
        let at = *self.sure.get(&id)?;
        self.quick[usize::from(id as u16)] = at;
        Some(at)
    }

    fn add(&mut self, id: u32) -> u16 {
        let at = self.known.add(id);
        self.sure.insert(id, at);
        self.quick[usize::from(id as u16)] = at;
        at
    }

    /// The symbol of the task that is switched to, or that `waker` wakes, and
    /// its index.
    #[inline(always)]
    fn symbol(&mut self, recent: &mut Recent, to: u32, waker: Option<u16>) -> (u8, u16) {
        let found = self.find(to);
        let at = found.unwrap_or_else(|| self.add(to));
        let expected = waker.map_or(NOBODY, |waker| self.known.expected(waker));
        let (mut rank, mut place) = (RANKS - 1, recent.place(4 * (RANKS as u8 - 1)));
        let symbol = if found.is_none() {
            model::NEW
        } else if at == expected {
            model::EXPECTED
        } else {
            let known = self.places[usize::from(at)];
            if recent.at(known) == at {
                (rank, place) = (recent.rank(known), known);
                RANK + rank as u8
            } else {
                self.far.push(at - FIRST_AT);
                FAR
            }
        };
        recent.set(4 * rank as u8, place, at);
        self.places[usize::from(at)] = place;
        if let Some(waker) = waker {
            self.known.woken(waker, at);
        }
        (symbol, at)
    }
}

impl Encoder {
    /// A new one.
    pub fn new() -> Encoder {
        Encoder {
            clock: Clock::default(),
            shapes: Shapes::common(),
            ids: Ids::new(),
            tasks: Symbols::default(),
            steps: Symbols::default(),
            rans: rans::Writer::default(),
            coded: Vec::new(),
            side: Vec::new(),
            low: BitWriter::default(),
            counts: Counts::default(),
        }
    }

    /// How often each symbol of each table came in the last block.
    #[cfg(test)]
    pub(super) fn counts(&self) -> &[[u32; STEPS]; TABLES] {
        &self.counts.counts
    }

    /// Appends a block's payload. `min` is its smallest time.
    pub fn encode(&mut self, block: &Open, min: u64, out: &mut Vec<u8>) {
        let grid = self.clock.grid(&block.time, min);
        self.shapes.choose(block);
        let current = block.rest.first().map_or(0, |event| event.from);
        let lanes = if block.len() < LARGE { 1 } else { LANES };
        self.side.clear();
        self.low.clear();
        self.counts.clear();
        self.find_shapes(block, current, lanes);
        let far_bits = self.find_tasks(block, current);
        self.find_steps(block, min, &grid);

        let mut front = Vec::new();
        put(&mut front, grid.period - Grid::NANOSECOND);
        put(&mut front, u64::from(grid.phase >> 16));
        put(&mut front, u64::from(current));
        front.push(if lanes == 1 { 0 } else { 0x10 } | far_bits as u8);
        self.shapes.put(&mut front);
        // The own tables stand before the low bits of the events.
        let mut low = BitWriter::default();
        let own = self.own_tables(&mut front, &mut low);
        let tables = low.bits().div_ceil(8);
        low.append(&self.low);
        // The last of the low bits go into the states, but for those of tables,
        // which are needed first.
        let bits = low.bits();
        let spare = rans::SPARE as usize * lanes;
        let kept = tables.max(bits.saturating_sub(spare).div_ceil(8));
        let mut low = low.finish();
        low.resize(low.len().max(kept), 0);
        let (low, spare) = low.split_at_checked(kept).unwrap_or((&low, &[]));
        self.rans.begin(
            self.shapes.symbols.len() + 3 * LANES,
            rans::spare_bits(spare),
        );
        match lanes {
            LANES => self.code::<LANES>(&own),
            _ => self.code::<1>(&own),
        }
        self.coded.clear();
        self.rans.finish(lanes, &mut self.coded);
        put(out, (front.len() + self.side.len()) as u64);
        put(out, self.coded.len() as u64);
        out.extend_from_slice(&front);
        out.extend_from_slice(&self.side);
        out.extend_from_slice(&self.coded);
        out.extend_from_slice(low);
    }

    /// The symbols of shapes, and what they give; the tables of tasks and steps.
    #[allow(clippy::indexing_slicing)] // Tables and symbols of the model.
    #[inline(never)] // One loop's values fit into the registers.
    fn find_shapes(&mut self, block: &Open, first: u32, lanes: usize) {
        for symbols in [&mut self.tasks, &mut self.steps] {
            symbols.tables.resize(block.len(), 0);
            symbols.symbols.resize(block.len(), 0);
        }
        let known = self.shapes.traits();
        let (mut steps_used, mut tasks_used) = (0u32, 0u32);
        let mut current = first;
        let mut context = Context::new(current == 0);
        let tables = self.tasks.tables.iter_mut().zip(&mut self.steps.tables);
        let events = block.rest.iter().zip(tables);
        for ((event, (task, step)), op) in events.zip(&mut self.shapes.symbols) {
            if event.from != current {
                *op = OTHER;
            }
            let traits = if *op == OTHER {
                let shape = shape(event);
                let given = if event.from != current { GIVEN } else { 0 };
                self.side.push(shape.0 | given);
                put(&mut self.side, u64::from(shape.1));
                Traits::of(shape)
            } else {
                known[usize::from(*op % 32)]
            };
            (*step, *task) = context.tables(traits);
            steps_used |= 1 << (*step % 32);
            tasks_used |= 1 << (*task % 32);
            current = if event.flags & flag::WAKING == 0 {
                event.to
            } else {
                event.from
            };
        }
        self.counts.used = u128::from(tasks_used) << TASK | u128::from(steps_used) << STEP;
        let symbols = &self.shapes.symbols;
        match lanes {
            LANES => count_shapes(&mut self.counts, lanes_of::<LANES>(symbols)),
            _ => count_shapes(&mut self.counts, lanes_of::<1>(symbols)),
        }
    }

    /// The symbols of tasks, what they give, and the low bits of indices. How
    /// many low bits an index has.
    #[inline(never)] // One loop's values fit into the registers.
    fn find_tasks(&mut self, block: &Open, first: u32) -> u32 {
        self.ids.reset();
        let mut recent = Recent::new();
        let (mut current, mut new_id) = (first, first);
        let mut current_at = match current {
            0 => IDLE_AT,
            _ => STRANGER_AT,
        };
        let symbols = &mut self.tasks.symbols;
        for (event, out) in block.rest.iter().zip(symbols.iter_mut()) {
            let Rest {
                from, to, flags, ..
            } = event;
            if *from != current {
                put(&mut self.side, fold(i64::from(*from) - i64::from(new_id)));
                (current, current_at) = (*from, STRANGER_AT);
            }
            let waking = flags & flag::WAKING != 0;
            if !waking && *to == 0 {
                (current, current_at) = (0, IDLE_AT);
                *out = model::EXPECTED;
                continue;
            }
            let waker = match flags & flag::IRQ {
                0 => current_at,
                _ => IRQ_AT,
            };
            let waker = if waking { Some(waker) } else { None };
            let (symbol, at) = self.ids.symbol(&mut recent, *to, waker);
            if symbol == model::NEW {
                put(&mut self.side, fold(i64::from(*to) - i64::from(new_id)));
                new_id = *to;
            }
            *out = symbol;
            if !waking {
                (current, current_at) = (*to, at);
            }
        }
        let far_bits = model::far_bits(u32::from(self.ids.known.count() - FIRST_AT));
        let mut far = self.ids.far.iter();
        for (symbol, table) in symbols.iter_mut().zip(&self.tasks.tables) {
            if *symbol == FAR {
                let index = u32::from(far.next().copied().unwrap_or(0));
                *symbol += (index >> far_bits) as u8;
                self.low
                    .put(u64::from(index & ((1 << far_bits) - 1)), far_bits);
            }
            self.counts.add(TASK + usize::from(*table), *symbol);
        }
        far_bits
    }

    /// The symbols of steps, what they give, and their low bits.
    #[inline(never)] // One loop's values fit into the registers.
    fn find_steps(&mut self, block: &Open, min: u64, grid: &Grid) {
        let (mut time, mut tick) = (min, 0);
        let ticks = grid.ticks(block.time.iter().map(|time| time.wrapping_sub(min)));
        let out = self.steps.symbols.iter_mut().zip(&self.steps.tables);
        for ((now, step), (out, table)) in block.time.iter().zip(ticks).zip(out) {
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
            *out = class;
            self.counts.add(STEP + usize::from(*table), class);
        }
    }

    /// Decides which tables the frame brings, and writes them.
    #[allow(clippy::indexing_slicing)] // Symbols that were counted.
    #[inline(never)] // One loop's values fit into the registers.
    fn own_tables(&self, front: &mut Vec<u8>, low: &mut BitWriter) -> Vec<(usize, Places)> {
        let defaults = Places::defaults();
        let mut own = Vec::new();
        for (at, (counts, (_, costs))) in self.counts.rows(defaults) {
            let symbols = tables::symbols(at);
            let counts = counts.get(..symbols).unwrap_or_default();
            // A symbol saves some 8 bits at most.
            let total: u32 = counts.iter().sum();
            if 8 * (total as usize) < 8 + symbols {
                continue;
            }
            // What the best of all tables would save.
            let mut gain = -8.0 - symbols as f32 - total as f32 * tables::log2(total);
            for (count, cost) in counts.iter().zip(costs) {
                if *count > 0 {
                    gain += *count as f32 * (cost + tables::log2(*count));
                    gain -= tables::DIGIT as f32;
                }
            }
            if gain <= PAYS {
                continue;
            }
            let Some(digits) = tables::fit(counts) else {
                continue;
            };
            let Ok(frequencies) = digits.frequencies() else {
                continue;
            };
            // Its number, and its digits.
            let mut gain = -8.0 - symbols as f32 - (digits.len() as u32 * tables::DIGIT) as f32;
            for (symbol, frequency) in frequencies.iter() {
                let symbol = usize::from(symbol);
                gain += counts[symbol] as f32 * (costs[symbol] - tables::cost(frequency));
            }
            if gain > PAYS {
                digits.put(symbols, low);
                own.push((at, Places::new(&frequencies)));
            }
        }
        front.push(own.len() as u8);
        front.extend(own.iter().map(|(at, _)| *at as u8));
        own
    }

    /// Encodes the symbols by their tables, the last one first. In `N` lanes.
    #[allow(clippy::indexing_slicing)] // Tables and symbols that were counted.
    #[inline(never)] // One loop's values fit into the registers.
    fn code<const N: usize>(&mut self, own: &[(usize, Places)]) {
        let mut tables: [&Places; TABLES] = {
            let defaults = Places::defaults();
            std::array::from_fn(|at| &defaults[at].0)
        };
        for (at, places) in own {
            tables[*at] = places;
        }
        let place = |kind: usize, table: u8, symbol: u8| {
            &tables[kind + usize::from(table)].0[usize::from(symbol)]
        };
        let ops = &self.shapes.symbols;
        let rans = &mut self.rans;
        for (kind, symbols) in [(STEP, &self.steps), (TASK, &self.tasks)] {
            let (symbols, tables) = (&symbols.symbols, &symbols.tables);
            let place = |at: usize| place(kind, tables[at], symbols[at]);
            let whole = symbols.len() - symbols.len() % (GROUP * N);
            group(rans, N, symbols.len() - whole, |lane, at| {
                place(whole + N * at + lane)
            });
            for first in (0..whole).step_by(GROUP * N).rev() {
                for lane in (0..N).rev() {
                    let first = first + lane;
                    rans.put(lane, [place(first), place(first + N), place(first + 2 * N)]);
                }
            }
        }
        let parts = lanes_of::<N>(ops);
        let longest = parts[0].len();
        for first in (0..longest).step_by(GROUP).rev() {
            for (lane, part) in parts.iter().enumerate().rev() {
                let place = |at: usize| {
                    let before = match at.checked_sub(1) {
                        None => OTHER,
                        Some(before) => part[before],
                    };
                    place(OP, before, part[at])
                };
                match part.len().saturating_sub(first) {
                    0 => {}
                    1 => rans.put(lane, [place(first)]),
                    2 => rans.put(lane, [place(first), place(first + 1)]),
                    _ => rans.put(lane, [place(first), place(first + 1), place(first + 2)]),
                }
            }
        }
    }
}

/// Puts the last symbols of a column, fewer than a round. `place` tells the
/// place of a lane's symbols.
fn group<'a>(
    rans: &mut rans::Writer,
    lanes: usize,
    symbols: usize,
    place: impl Fn(usize, usize) -> &'a Place,
) {
    for lane in (0..lanes).rev() {
        match (symbols + lanes - 1 - lane) / lanes {
            0 => {}
            1 => rans.put(lane, [place(lane, 0)]),
            2 => rans.put(lane, [place(lane, 0), place(lane, 1)]),
            _ => rans.put(lane, [place(lane, 0), place(lane, 1), place(lane, 2)]),
        }
    }
}

/// The parts of a block that are lanes of shapes. The last ones are shorter.
fn lanes_of<const N: usize>(symbols: &[u8]) -> [&[u8]; N] {
    let mut parts = symbols.chunks(symbols.len().div_ceil(N).max(1));
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}

/// Counts the symbols of shapes; the one before is the number of the table.
fn count_shapes<const N: usize>(counts: &mut Counts, lanes: [&[u8]; N]) {
    let mut used = 0;
    for lane in lanes {
        let mut last = OTHER;
        for op in lane {
            used |= 1 << (last % 32);
            counts.add(OP + usize::from(last), *op);
            last = *op;
        }
    }
    counts.used |= used << OP;
}

/// How often each symbol of each table comes.
#[derive(Debug)]
struct Counts {
    counts: Box<[[u32; STEPS]; TABLES]>,
    /// The tables that are in use, as bits.
    used: u128,
}

impl Default for Counts {
    fn default() -> Counts {
        Counts {
            counts: boxed([0; STEPS]),
            used: 0,
        }
    }
}

impl Counts {
    /// Counts a symbol of a table that is in use.
    #[inline(always)]
    #[allow(clippy::indexing_slicing)] // Tables are chosen by `Context`, symbols by the model.
    fn add(&mut self, table: usize, symbol: u8) {
        self.counts[table][usize::from(symbol)] += 1;
    }

    fn clear(&mut self) {
        for (at, counts) in self.counts.iter_mut().enumerate() {
            if self.used >> at & 1 == 1 {
                counts.fill(0);
            }
        }
        self.used = 0;
    }

    /// The tables that are in use: their numbers, their counts, and what
    /// belongs to each.
    fn rows<'a, T>(
        &'a self,
        with: &'a [T],
    ) -> impl Iterator<Item = (usize, (&'a [u32; STEPS], &'a T))> {
        let rows = self.counts.iter().zip(with).enumerate();
        rows.filter(|(at, _)| self.used >> at & 1 == 1)
    }
}
