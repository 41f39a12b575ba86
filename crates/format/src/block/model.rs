//! What the coder of scheduling events expects: which symbols there are, what
//! each one's frequency depends on, and how the frequencies follow the events.
//!
//! Every table starts from a prior (`priors.txt`, a part of the format), so
//! that small frames need no tables of their own; both sides count the symbols
//! and renew the tables at the same events.

use std::sync::OnceLock;

use super::rans::{Place, BITS, SCALE};
use crate::sched::flag;

/// An event's kind, flags and state.
pub type Shape = (u8, u16);

/// Shapes that have a symbol. The first ones are those of common kernels; a
/// frame may put others in their places.
pub const SHAPES: [Shape; 15] = [
    (0, 0),
    (flag::PREEMPT, 0),
    (0, 0x0001),
    (0, 0x2001),
    (0, 0x0002),
    (flag::IOWAIT, 0x0002),
    (flag::IOWAIT, 0x0102),
    (0, 0x0402),
    (0, 0x2102),
    (0, 0x0080),
    (0, 0x0102),
    (flag::WAKING, 0),
    (flag::WAKING | flag::IRQ, 0),
    (flag::WAKING | flag::NEW, 0),
    (flag::WAKING | flag::NEW | flag::VFORK, 0),
];
/// The symbol of a shape that has none; it is given.
pub const OTHER: u8 = 15;
/// Added to the symbol when `from` is not the current task and is given.
pub const GIVEN: u8 = 16;
/// Symbols of shapes.
pub const OPS: usize = 32;

/// Task symbols: a task that is not among the recent ones; its id is given.
pub const NEW: u8 = 0;
/// The idle task.
pub const IDLE: u8 = 1;
/// The task that was woken after the one that this waker woke last.
pub const NEXT: u8 = 2;
/// The task that this waker woke last.
pub const SAME: u8 = 3;
/// The recent tasks, from the last one on: 16 single ranks, then classes.
pub const RANK: u8 = 4;
/// Symbols of tasks.
pub const TASKS: usize = 32;
/// Ranks that have a symbol.
pub const RANKS: usize = 1024;

/// Symbols of time steps: 0, a step that is given in ns; then classes.
pub const STEPS: usize = 87;

/// How many tables there are of each kind.
pub const OP_TABLES: usize = 32;
/// As [`OP_TABLES`].
pub const TASK_TABLES: usize = 12;
/// As [`OP_TABLES`].
pub const STEP_TABLES: usize = 18;

/// What one symbol counts against a prior of some hundreds.
const WEIGHT: u32 = 24;
/// How many of its symbols a table waits for until it is renewed the first
/// time; then it is renewed whenever their number has doubled.
const FIRST_RENEWAL: u32 = 32;

/// The class of a rank, and the bits below it.
#[inline]
pub fn rank_class(rank: u32) -> (u8, u32, u32) {
    if rank < 16 {
        return (RANK + rank as u8, 0, 0);
    }
    let width = 32 - rank.leading_zeros() - 2;
    let class = 20 + (width - 3) * 2 + (rank >> width & 1);
    (class as u8, rank & ((1 << width) - 1), width)
}

/// The first rank of a class and how many bits follow.
#[inline(always)]
pub fn rank_of(class: u8) -> (u32, u32) {
    if class < 20 {
        return (u32::from(class - RANK), 0);
    }
    let (pair, half) = (u32::from(class - 20) / 2, u32::from(class) & 1);
    ((2 | half) << (pair + 3), pair + 3)
}

/// The class of a step of `ticks`; `None` when it is too large for one.
#[inline]
pub fn step_class(ticks: u64) -> Option<(u8, u64, u32)> {
    let length = 64 - ticks.leading_zeros();
    let (first, width) = match length {
        0..=3 => return Some((1 + ticks as u8, 0, 0)),
        4..=15 => (9 + (length - 4) * 4, length - 3),
        16..=24 => (57 + (length - 16) * 2, length - 2),
        25..=36 => (75 + (length - 25), length - 1),
        _ => return None,
    };
    let top = (ticks >> width) as u32 - (1 << (length - 1 - width));
    Some(((first + top) as u8, ticks & ((1 << width) - 1), width))
}

/// The smallest step of a class (not 0) and how many bits follow.
pub const fn step_of(class: u8) -> (u64, u32) {
    let class = class as u32;
    match class {
        0 => (0, 0),
        1..=8 => (class as u64 - 1, 0),
        9..=56 => {
            let (length, top) = (4 + (class - 9) / 4, (class - 9) % 4);
            ((4 + top as u64) << (length - 3), length - 3)
        }
        57..=74 => {
            let (length, top) = (16 + (class - 57) / 2, (class - 57) % 2);
            ((2 + top as u64) << (length - 2), length - 2)
        }
        _ => (1 << (class - 51), class - 51),
    }
}

/// What the next symbols depend on.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// The last event's shape symbol, without [`GIVEN`].
    shape: u8,
    /// The current task is the idle task.
    idle: bool,
    /// 0: the last event switched to idle; 1: another switch; 2: a waking.
    last: u8,
    /// The last plain waking's task was [`NEXT`].
    hit: bool,
    /// The current event's group, see [`Context::task`].
    group: u8,
}

impl Context {
    /// Before the first event.
    pub fn new() -> Context {
        Context {
            shape: 0,
            idle: true,
            last: 1,
            hit: false,
            group: 0,
        }
    }

    /// The table for the shape.
    #[inline(always)]
    pub fn op(&self) -> usize {
        usize::from(self.shape) * 2 + usize::from(self.idle)
    }

    /// The table for the task, once the shape is known. Groups: 0 waking, 1 by
    /// an interrupt, 2 of a new task; 3 switch from idle, 4 of a task that can
    /// go on, 5 of one that cannot.
    #[inline(always)]
    pub fn task(&mut self, flags: u8, state: u16) -> usize {
        self.group = if flags & flag::WAKING != 0 {
            if flags & flag::NEW != 0 {
                2
            } else {
                u8::from(flags & flag::IRQ != 0)
            }
        } else if self.idle {
            3
        } else if state == 0 || flags & flag::PREEMPT != 0 {
            4
        } else {
            5
        };
        let half = match self.group {
            0..=2 => self.hit,
            _ => self.last == 2,
        };
        usize::from(self.group) * 2 + usize::from(half)
    }

    /// The table for the step, once the task is known.
    #[inline(always)]
    pub fn step(&self) -> usize {
        usize::from(self.group) * 3 + usize::from(self.last)
    }

    /// After an event: `op` is its shape symbol, `task` its task symbol, `idle`
    /// whether the idle task is current now.
    #[inline(always)]
    pub fn after(&mut self, op: u8, task: u8, idle: bool) {
        self.shape = op & 15;
        self.idle = idle;
        if self.group <= 2 {
            self.last = 2;
            if self.group == 0 {
                self.hit = task == NEXT;
            }
        } else {
            self.last = u8::from(!idle);
        }
    }
}

/// Buckets in which a table's slots are looked up.
const BUCKETS: usize = 64;
/// Bits of a slot below its bucket's.
const BUCKET_BITS: u32 = BITS - BUCKETS.ilog2();

/// One table of frequencies for `N` symbols.
#[derive(Clone, Debug)]
pub struct Table<const N: usize> {
    /// First slot of each symbol, in increasing order.
    starts: [u16; N],
    frequencies: [u16; N],
    /// The symbol of each bucket's first slot.
    buckets: [u8; BUCKETS],
    counts: [u32; N],
    /// Symbols since the start.
    seen: u32,
    /// At which number of symbols the table is renewed.
    due: u32,
}

impl<const N: usize> Table<N> {
    fn new(prior: [u32; N]) -> Table<N> {
        let mut table = Table {
            starts: [0; N],
            frequencies: [0; N],
            buckets: [0; BUCKETS],
            counts: prior,
            seen: 0,
            due: FIRST_RENEWAL,
        };
        table.renew();
        table
    }

    /// Counts a symbol; renews the table when it is time.
    #[inline(always)]
    #[allow(clippy::indexing_slicing)] // Symbols come from `step_class` and its like, or `find`.
    fn count(&mut self, symbol: u8) {
        self.counts[usize::from(symbol)] += WEIGHT;
        self.seen += 1;
        if self.seen == self.due {
            self.due *= 2;
            self.renew();
        }
    }

    /// A symbol for the encoder.
    #[inline(always)]
    #[allow(clippy::indexing_slicing)] // As in `count`.
    pub fn encode(&mut self, symbol: u8) -> Place {
        let place = Place {
            start: self.starts[usize::from(symbol)],
            frequency: self.frequencies[usize::from(symbol)],
        };
        self.count(symbol);
        place
    }

    /// The symbol of a slot below [`SCALE`], and its place.
    #[inline(always)]
    #[allow(clippy::indexing_slicing)] // `SCALE >> BUCKET_BITS` is BUCKETS; a symbol's
                                       // start is above `slot` for all behind it.
    pub fn decode(&mut self, slot: u32) -> (u8, Place) {
        let mut symbol = usize::from(self.buckets[(slot >> BUCKET_BITS) as usize % BUCKETS]);
        while symbol + 1 < N && u32::from(self.starts[symbol + 1]) <= slot {
            symbol += 1;
        }
        let place = Place {
            start: self.starts[symbol],
            frequency: self.frequencies[symbol],
        };
        self.count(symbol as u8);
        (symbol as u8, place)
    }

    /// Frequencies that add up to [`SCALE`], none of them 0, from the counts,
    /// none of which is 0.
    #[cold]
    #[inline(never)]
    #[allow(clippy::indexing_slicing)] // Slots are below SCALE.
    fn renew(&mut self) {
        let total: u64 = self.counts.iter().map(|count| u64::from(*count)).sum();
        let scale = (u64::from(SCALE) << 32) / total.max(1);
        let mut sum = 0;
        for (frequency, count) in self.frequencies.iter_mut().zip(&self.counts) {
            *frequency = (((u64::from(*count) * scale) >> 32) as u16).max(1);
            sum += i32::from(*frequency);
        }
        let mut over = sum - SCALE as i32;
        // What is left over, or missing, is the most frequent symbol's.
        while over != 0 {
            let mut most = 0;
            for symbol in 1..N {
                if self.frequencies[symbol] > self.frequencies[most] {
                    most = symbol;
                }
            }
            let take = over.min(i32::from(self.frequencies[most]) / 2);
            self.frequencies[most] = (i32::from(self.frequencies[most]) - take) as u16;
            over -= take;
        }
        let (mut start, mut bucket) = (0, 0);
        for symbol in 0..N {
            self.starts[symbol] = start;
            start += self.frequencies[symbol];
            while bucket < BUCKETS && (bucket << BUCKET_BITS) < usize::from(start) {
                self.buckets[bucket] = symbol as u8;
                bucket += 1;
            }
        }
    }
}

/// All tables.
#[derive(Clone, Debug)]
pub struct Model {
    pub ops: [Table<OPS>; OP_TABLES],
    pub tasks: [Table<TASKS>; TASK_TABLES],
    pub steps: [Table<STEPS>; STEP_TABLES],
}

impl Model {
    /// As at the start of every frame.
    pub fn start() -> &'static Model {
        static START: OnceLock<Model> = OnceLock::new();
        START.get_or_init(|| {
            let mut lines = include_str!("priors.txt")
                .lines()
                .filter(|line| !line.starts_with('#'));
            Model {
                ops: std::array::from_fn(|_| Table::new(prior(&mut lines))),
                tasks: std::array::from_fn(|_| Table::new(prior(&mut lines))),
                steps: std::array::from_fn(|_| Table::new(prior(&mut lines))),
            }
        })
    }

    /// Back to the start of a frame.
    pub fn reset(&mut self) {
        fn reset<const N: usize>(tables: &mut [Table<N>], start: &[Table<N>]) {
            for (table, start) in tables.iter_mut().zip(start) {
                if table.seen > 0 {
                    table.clone_from(start);
                }
            }
        }
        let start = Model::start();
        reset(&mut self.ops, &start.ops);
        reset(&mut self.tasks, &start.tasks);
        reset(&mut self.steps, &start.steps);
    }
}

/// Digits of the priors: `0` to `9`, `a` to `z`.
fn weight(digit: u8) -> u32 {
    let digit = match digit {
        b'0'..=b'9' => u32::from(digit - b'0'),
        b'a'..=b'z' => u32::from(digit - b'a') + 10,
        _ => 0,
    };
    // 1, 2, 3, 4, 6, 8, 12, 16, …
    match digit {
        0 => 1,
        digit if digit % 2 == 1 => 2 << (digit / 2),
        digit => 3 << (digit / 2 - 1),
    }
}

fn prior<'a, const N: usize>(lines: &mut impl Iterator<Item = &'a str>) -> [u32; N] {
    let mut prior = [1; N];
    let digits = lines.next().unwrap_or_default().bytes();
    for (count, digit) in prior.iter_mut().zip(digits) {
        *count = weight(digit);
    }
    prior
}

#[cfg(test)]
pub(super) mod train {
    //! Makes `priors.txt` from recordings. Not part of the format: only its
    //! result is.
    use super::*;
    use crate::event::Stream;
    use crate::reader::Trace;
    use crate::source::Source;

    /// A frame's say is that of at most this many symbols a table.
    const SAY: f64 = 200.0;
    /// What a table's weights add up to, about.
    const SUM: f64 = 500.0;

    fn add<const N: usize>(tables: &[Table<N>], start: &[Table<N>], sums: &mut [[f64; N]]) {
        for ((table, prior), sums) in tables.iter().zip(start).zip(sums) {
            let counts: Vec<u32> = table
                .counts
                .iter()
                .zip(&prior.counts)
                .map(|(c, p)| (c - p) / WEIGHT)
                .collect();
            let total = f64::from(counts.iter().sum::<u32>());
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum += f64::from(count) * SAY.min(total) / total.max(1.0);
            }
        }
    }

    fn digits<const N: usize>(sums: &[[f64; N]], out: &mut String) {
        let mut all = [0.0; N];
        for table in sums {
            for (all, sum) in all.iter_mut().zip(table) {
                *all += sum;
            }
        }
        let whole: f64 = all.iter().sum();
        for table in sums {
            let total: f64 = table.iter().sum();
            for (sum, all) in table.iter().zip(&all) {
                // A little of the whole, for tables that have seen little.
                let share = (sum + 20.0 * all / whole) / (total + 20.0);
                let best = (0..25u8)
                    .map(|d| if d < 10 { b'0' + d } else { b'a' + d - 10 })
                    .min_by_key(|d| {
                        let off = (f64::from(weight(*d)).ln() - (share * SUM).max(1e-9).ln()).abs();
                        (off * 1e6) as u64
                    });
                out.push(char::from(best.unwrap()));
            }
            out.push('\n');
        }
    }

    #[test]
    #[ignore = "makes priors.txt: TRACES='a.bin b.bin' cargo test -p tr-format train -- --ignored"]
    fn train() {
        let start = Model::start();
        let mut ops = vec![[0.0; OPS]; OP_TABLES];
        let mut tasks = vec![[0.0; TASKS]; TASK_TABLES];
        let mut steps = vec![[0.0; STEPS]; STEP_TABLES];
        for path in std::env::var("TRACES").unwrap().split_whitespace() {
            let trace =
                Trace::open(Source::file(std::fs::File::open(path).unwrap()).unwrap()).unwrap();
            let mut encoder = crate::block::encode::Encoder::new();
            let mut block = crate::sched::SchedBlock::default();
            for frame in trace.frames() {
                if matches!(frame.stream, Stream::Cpu(_)) {
                    trace.read_sched(frame, &mut block).unwrap();
                    encoder.encode(&block, frame.min.0, &mut Vec::new());
                    let model = encoder.model();
                    add(&model.ops, &start.ops, &mut ops);
                    add(&model.tasks, &start.tasks, &mut tasks);
                    add(&model.steps, &start.steps, &mut steps);
                }
            }
        }
        let mut out = String::from(
            "# Prior weights; see FORMAT.md. 32 tables of shapes, 12 of tasks, 18 of steps.\n",
        );
        digits(&ops, &mut out);
        digits(&tasks, &mut out);
        digits(&steps, &mut out);
        std::fs::write(std::env::var("OUT").unwrap(), out).unwrap();
    }
}
