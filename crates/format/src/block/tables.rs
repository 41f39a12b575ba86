//! Tables of frequencies: the format's own, and those that a frame brings.
//!
//! A table is given by a weight for each of its symbols, and a weight by a
//! digit. Small frames use the format's tables (`tables.txt`, a part of the
//! format), so that they need not bring any.

use std::sync::OnceLock;

use super::bits::{BitReader, BitWriter};
use super::boxed;
use super::model::{OPS, OP_TABLES, STEPS, STEP_TABLES, TASKS, TASK_TABLES};
use super::rans::{self, Place, BITS, SCALE};
use crate::Fault;

/// All tables: those of shapes, of tasks, of steps.
pub const TABLES: usize = OP_TABLES + TASK_TABLES + STEP_TABLES;
/// Bits of a digit.
pub const DIGIT: u32 = 5;
/// Largest digit.
const MOST: u8 = (1 << DIGIT) - 1;

/// How many symbols a table has.
pub fn symbols(table: usize) -> usize {
    if table < OP_TABLES {
        OPS
    } else if table < OP_TABLES + TASK_TABLES {
        TASKS
    } else {
        STEPS
    }
}

/// The weight of a digit: 0, then 2, 3, 4, 6, 8, 12, 16, …
pub fn weight(digit: u8) -> u64 {
    match digit {
        0 => 0,
        digit if digit % 2 == 1 => 2 << (digit / 2),
        digit => 3 << (digit / 2 - 1),
    }
}

/// The digit whose weight comes closest to `share` of the largest.
#[inline]
pub fn digit(share: f64, most: u8) -> u8 {
    // Two digits are a factor of 2: 2 log2(1 / share), rounded, is the exponent
    // of this.
    let ratio = std::f64::consts::SQRT_2 / (share * share);
    let below = (ratio.to_bits() >> 52).saturating_sub(1023);
    most.saturating_sub(below.min(255) as u8).max(1)
}

/// The digits of a table that are not 0, and their symbols in order.
#[derive(Clone, Copy, Debug)]
pub struct Digits {
    symbols: [u8; STEPS],
    digits: [u8; STEPS],
    len: usize,
}

/// The symbols of a table, in order, and their frequencies, which add up to
/// [`SCALE`].
#[derive(Clone, Copy, Debug)]
pub struct Frequencies {
    symbols: [u8; STEPS],
    frequencies: [u16; STEPS],
    len: usize,
}

impl Digits {
    /// No symbols.
    pub fn new() -> Digits {
        Digits {
            symbols: [0; STEPS],
            digits: [0; STEPS],
            len: 0,
        }
    }

    /// Adds a symbol behind the others.
    #[inline(always)]
    pub fn push(&mut self, symbol: u8, digit: u8) {
        let place = self.symbols.get_mut(self.len);
        if let Some((symbols, digits)) = place.zip(self.digits.get_mut(self.len)) {
            (*symbols, *digits) = (symbol, digit);
            self.len += 1;
        }
    }

    /// Of a digit for each symbol.
    fn of(digits: impl Iterator<Item = u8>) -> Digits {
        let mut table = Digits::new();
        for (symbol, digit) in (0..).zip(digits) {
            if digit > 0 {
                table.push(symbol, digit);
            }
        }
        table
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Symbols and digits.
    pub fn iter(&self) -> impl Iterator<Item = (u8, u8)> + '_ {
        let symbols = self.symbols.iter().take(self.len);
        symbols.copied().zip(self.digits.iter().copied())
    }

    /// Frequencies in the proportion of the digits' weights.
    #[allow(clippy::indexing_slicing)] // A remainder.
    pub fn frequencies(&self) -> Result<Frequencies, Fault> {
        let digits = self.digits.get(..self.len).unwrap_or_default();
        let total: u32 = digits.iter().map(|digit| weight(*digit) as u32).sum();
        if total == 0 {
            return Err(Fault::Content("a table without symbols"));
        }
        // A table has few digits that differ: one division for each.
        let mut shares = [0u16; 1 << DIGIT];
        let mut frequencies = [0u16; STEPS];
        let (mut sum, mut largest, mut at) = (0, 0, 0);
        for (place, (frequency, digit)) in frequencies.iter_mut().zip(digits).enumerate() {
            let share = &mut shares[usize::from(*digit) % (1 << DIGIT)];
            if *share == 0 {
                // 2^16 times 2^10 at most.
                *share = (weight(*digit) as u32 * SCALE / total).max(1) as u16;
            }
            *frequency = *share;
            sum += i32::from(*frequency);
            if *digit > largest {
                (largest, at) = (*digit, place);
            }
        }
        // What is left over or missing is the first of the most frequent
        // symbols'. Only where some 32 symbols have the same weight and as many
        // others hardly any can more be missing than it has. A writer does
        // without such a table.
        if let Some(frequency) = frequencies.get_mut(at) {
            let rest = i32::from(*frequency) + SCALE as i32 - sum;
            *frequency = u16::try_from(rest)
                .ok()
                .filter(|rest| *rest > 0)
                .ok_or(Fault::Content("a table with too many symbols"))?;
        }
        Ok(Frequencies {
            symbols: self.symbols,
            frequencies,
            len: self.len,
        })
    }

    /// Appends a frame's own table of `symbols` symbols: which of them it has,
    /// and their digits.
    pub fn put(&self, symbols: usize, out: &mut BitWriter) {
        let used = self
            .iter()
            .fold(0u128, |used, (symbol, _)| used | 1 << symbol);
        let first = symbols.min(64) as u32;
        out.put(used as u64, first);
        out.put((used >> 64) as u64, symbols as u32 - first);
        for (_, digit) in self.iter() {
            out.put(u64::from(digit), DIGIT);
        }
    }

    /// Reads a frame's own table of `symbols` symbols.
    pub fn get(symbols: usize, from: &mut BitReader) -> Result<Digits, Fault> {
        let mut table = Digits::new();
        let first = symbols.min(64) as u32;
        let used = [from.get(first), from.get(symbols as u32 - first)];
        for (base, mut used) in [0, 64].into_iter().zip(used) {
            while used != 0 {
                let digit = from.part(DIGIT) as u8;
                if digit == 0 {
                    return Err(Fault::Content("a digit that is 0"));
                }
                table.push(base + used.trailing_zeros() as u8, digit);
                used &= used - 1;
            }
        }
        Ok(table)
    }
}

impl Frequencies {
    /// Symbols and frequencies.
    pub fn iter(&self) -> impl Iterator<Item = (u8, u16)> + '_ {
        let symbols = self.symbols.iter().take(self.len);
        symbols.copied().zip(self.frequencies.iter().copied())
    }
}

/// The frequencies of the format's tables.
pub fn defaults() -> &'static [Frequencies; TABLES] {
    static FREQUENCIES: OnceLock<[Frequencies; TABLES]> = OnceLock::new();
    FREQUENCIES.get_or_init(|| {
        let mut lines = include_str!("tables.txt")
            .lines()
            .filter(|line| !line.starts_with('#'));
        std::array::from_fn(|_| {
            let line = lines.next().unwrap_or_default();
            let digits = Digits::of(line.bytes().map(digit_of));
            // A test holds the file to having all tables.
            digits.frequencies().unwrap_or(Frequencies {
                symbols: [0; STEPS],
                frequencies: [0; STEPS],
                len: 0,
            })
        })
    })
}

/// `0` to `9`, `a` to `v`.
fn digit_of(letter: u8) -> u8 {
    match letter {
        b'0'..=b'9' => letter - b'0',
        b'a'..=b'v' => letter - b'a' + 10,
        _ => 0,
    }
}

/// Room for tables: 32 from the first one of each kind on.
const ROOM: usize = OP_TABLES + TASK_TABLES + 32;

/// The slots of all tables, one behind the other.
type All = [rans::Slots; ROOM];

/// All tables for decoding.
#[derive(Debug)]
pub struct Slots {
    slots: Box<All>,
    /// Which tables are not the format's.
    own: [bool; TABLES],
}

impl Default for Slots {
    fn default() -> Slots {
        let mut slots = boxed([0; SCALE as usize]);
        slots.copy_from_slice(Slots::defaults());
        Slots {
            slots,
            own: [false; TABLES],
        }
    }
}

/// Fills the slots of a table.
fn fill(table: &mut rans::Slots, frequencies: &Frequencies) {
    let mut rest = &mut table[..];
    for (symbol, frequency) in frequencies.iter() {
        let all = std::mem::take(&mut rest);
        let Some((slots, more)) = all.split_at_mut_checked(usize::from(frequency)) else {
            return;
        };
        rans::fill(slots, u32::from(symbol), frequency);
        rest = more;
    }
}

impl Slots {
    /// The format's tables.
    fn defaults() -> &'static All {
        static SLOTS: OnceLock<Box<All>> = OnceLock::new();
        SLOTS.get_or_init(|| {
            let mut slots = boxed([0; SCALE as usize]);
            for (table, frequencies) in slots.iter_mut().zip(defaults()) {
                fill(table, frequencies);
            }
            slots
        })
    }

    /// Puts all tables but those that a frame brings back to the format's.
    pub fn reset(&mut self, brought: &[bool; TABLES]) {
        let tables = self.slots.iter_mut().zip(Slots::defaults().iter());
        for ((table, default), (own, brought)) in tables.zip(self.own.iter_mut().zip(brought)) {
            if *own && !brought {
                // Half the cost of filling it.
                *table = *default;
            }
            *own = *brought;
        }
    }

    /// Puts a frame's own table in the place of the format's, until
    /// [`Slots::reset`].
    pub fn set(&mut self, at: usize, frequencies: &Frequencies) {
        if let Some((own, table)) = self.own.get_mut(at).zip(self.slots.get_mut(at)) {
            *own = true;
            fill(table, frequencies);
        }
    }

    /// `N` tables from `first` on.
    pub fn from<const N: usize>(&self, first: usize) -> Result<&[rans::Slots; N], Fault> {
        let tables = self.slots.get(first..first + N);
        tables
            .and_then(|tables| tables.try_into().ok())
            .ok_or(Fault::Content("no such table"))
    }
}

/// A table for encoding.
#[derive(Clone, Copy, Debug)]
pub struct Places(pub [Place; STEPS]);

impl Places {
    /// Of these frequencies.
    pub fn new(frequencies: &Frequencies) -> Places {
        let mut places = [Place::default(); STEPS];
        let mut start = 0;
        for (symbol, frequency) in frequencies.iter() {
            if let Some(place) = places.get_mut(usize::from(symbol)) {
                *place = Place::new(start, frequency);
            }
            start += frequency;
        }
        Places(places)
    }

    /// The format's tables, and for each symbol its cost in bits.
    pub fn defaults() -> &'static [(Places, [f32; STEPS])] {
        static PLACES: OnceLock<Vec<(Places, [f32; STEPS])>> = OnceLock::new();
        PLACES.get_or_init(|| {
            let tables = defaults().iter();
            let costs = |table: &Frequencies| {
                // What a symbol that a table lacks costs, about: it is given.
                let mut costs = [24.0; STEPS];
                for (symbol, frequency) in table.iter() {
                    if let Some(out) = costs.get_mut(usize::from(symbol)) {
                        *out = cost(frequency);
                    }
                }
                costs
            };
            tables
                .map(|table| (Places::new(table), costs(table)))
                .collect()
        })
    }
}

/// The cost of a symbol in bits.
#[inline]
pub fn cost(frequency: u16) -> f32 {
    BITS as f32 - log2(u32::from(frequency))
}

/// A logarithm, which is looked up where it can be.
#[inline]
pub fn log2(count: u32) -> f32 {
    static LOGARITHMS: OnceLock<Vec<f32>> = OnceLock::new();
    let known = LOGARITHMS.get_or_init(|| (0..=SCALE).map(|n| (n as f32).log2()).collect());
    let known = known.get(count as usize).copied();
    known.unwrap_or_else(|| (count as f32).log2())
}

/// The digits for these counts; `None` when there are none.
pub fn fit(counts: &[u32]) -> Option<Digits> {
    let largest = f64::from(counts.iter().copied().max().filter(|most| *most > 0)?);
    let mut digits = Digits::new();
    for (symbol, count) in (0..).zip(counts) {
        if *count > 0 {
            digits.push(symbol, digit(f64::from(*count) / largest, MOST));
        }
    }
    Some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_and_places_agree() {
        let mut slots = Slots::default();
        for seed in 0..2000u64 {
            let symbols = [64, 32, 87][seed as usize % 3];
            let digits: Vec<u8> = (0..symbols as u64)
                .map(|at| {
                    let x = (at + 1).wrapping_mul(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
                    match seed % 7 {
                        0 => (x >> 59) as u8,
                        1 => u8::from(x >> 62 == 0) * 31,
                        2 => 31 - u8::from(at > seed / 21) * 30,
                        _ => (x >> 59) as u8 * u8::from(x >> 40 & 7 == 0),
                    }
                })
                .collect();
            let Ok(frequencies) = Digits::of(digits.iter().copied()).frequencies() else {
                let used = digits.iter().filter(|digit| **digit > 0).count();
                assert!(used == 0 || used > 64, "{digits:?}");
                continue;
            };
            slots.set(7, &frequencies);
            let table = &slots.from::<1>(7).unwrap()[0];
            let mut start = 0;
            let mut frequencies = frequencies.iter();
            for (symbol, digit) in digits.iter().enumerate() {
                if *digit == 0 {
                    continue;
                }
                let (found, frequency) = frequencies.next().unwrap();
                assert!(usize::from(found) == symbol && frequency > 0, "{digits:?}");
                for slot in 0..u32::from(frequency) {
                    let found = table[(start + slot) as usize];
                    let expected = symbol as u32 | u32::from(frequency) << 8 | slot << 20;
                    assert_eq!(found, expected);
                }
                start += u32::from(frequency);
            }
            assert_eq!((start, frequencies.next()), (SCALE, None));
        }
        slots.reset(&[false; TABLES]);
        assert_eq!(slots.slots, Slots::default().slots);
    }

    #[test]
    fn the_format_has_all_its_tables() {
        for table in defaults() {
            assert_eq!(table.iter().map(|(_, f)| f).sum::<u16>(), SCALE as u16);
        }
    }
}
