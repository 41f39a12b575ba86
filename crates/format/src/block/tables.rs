//! Tables of frequencies: the format's own, and those that a frame brings.
//!
//! A table is given by a weight for each of its symbols, and a weight by a
//! digit. Small frames use the format's tables (`tables.txt`, a part of the
//! format), so that they need not bring any.

use std::sync::OnceLock;

use super::bits::{BitReader, BitWriter};
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
pub fn digit(share: f64, most: u8) -> u8 {
    // Two digits are a factor of 2.
    let below = (-2.0 * share.log2()).round().max(0.0);
    most.saturating_sub(below as u8).max(1)
}

/// Frequencies that add up to [`SCALE`] in the proportion of the digits'
/// weights; 0 only for the digit 0.
#[allow(clippy::indexing_slicing)] // A remainder.
pub fn frequencies(digits: &[u8]) -> Result<[u16; STEPS], Fault> {
    let total: u64 = digits.iter().map(|digit| weight(*digit)).sum();
    if total == 0 {
        return Err(Fault::Content("a table without symbols"));
    }
    // A table has few digits that differ: one division for each.
    let mut shares = [0u16; 1 << DIGIT];
    let mut frequencies = [0u16; STEPS];
    let (mut sum, mut largest, mut at) = (0, 0, 0);
    for (symbol, (frequency, digit)) in frequencies.iter_mut().zip(digits).enumerate() {
        let weight = weight(*digit);
        if weight > 0 {
            let share = &mut shares[usize::from(*digit) % shares.len()];
            if *share == 0 {
                *share = (weight * u64::from(SCALE) / total).max(1) as u16;
            }
            *frequency = *share;
            sum += i32::from(*frequency);
        }
        if weight > largest {
            (largest, at) = (weight, symbol);
        }
    }
    // What is left over or missing is the first of the most frequent symbols'.
    // Only where some 32 symbols have the same weight and as many others hardly
    // any can more be missing than it has. A writer does without such a table.
    if let Some(frequency) = frequencies.get_mut(at) {
        let rest = i32::from(*frequency) + SCALE as i32 - sum;
        *frequency = u16::try_from(rest)
            .ok()
            .filter(|rest| *rest > 0)
            .ok_or(Fault::Content("a table with too many symbols"))?;
    }
    Ok(frequencies)
}

/// Appends a frame's own table.
pub fn put(digits: &[u8], out: &mut BitWriter) {
    for digit in digits {
        match digit {
            0 => out.put(0, 1),
            digit => out.put(1 | u64::from(*digit) << 1, 1 + DIGIT),
        }
    }
}

/// Reads a frame's own table of `symbols` symbols.
pub fn get(symbols: usize, from: &mut BitReader) -> [u8; STEPS] {
    let mut digits = [0; STEPS];
    for digit in digits.iter_mut().take(symbols) {
        if from.get(1) == 1 {
            *digit = from.get(DIGIT) as u8;
        }
    }
    digits
}

/// The frequencies of the format's tables.
pub fn defaults() -> &'static [[u16; STEPS]; TABLES] {
    static FREQUENCIES: OnceLock<[[u16; STEPS]; TABLES]> = OnceLock::new();
    FREQUENCIES.get_or_init(|| {
        let mut lines = include_str!("tables.txt")
            .lines()
            .filter(|line| !line.starts_with('#'));
        std::array::from_fn(|_| {
            let line = lines.next().unwrap_or_default();
            let digits: Vec<u8> = line.bytes().map(digit_of).collect();
            // A test holds the file to having all tables.
            frequencies(&digits).unwrap_or([0; STEPS])
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

/// All tables for decoding, one behind the other.
#[derive(Debug)]
pub struct Slots {
    slots: Box<[rans::Slots; ROOM]>,
    /// Which tables are not the format's.
    own: [bool; TABLES],
}

impl Default for Slots {
    fn default() -> Slots {
        let slots = vec![[0; SCALE as usize]; ROOM].into_boxed_slice();
        let mut slots = Slots {
            // It has this length.
            slots: slots.try_into().unwrap_or_else(|_| unreachable!()),
            own: [false; TABLES],
        };
        for (at, frequencies) in defaults().iter().enumerate() {
            slots.fill(at, frequencies);
        }
        slots
    }
}

impl Slots {
    fn fill(&mut self, at: usize, frequencies: &[u16; STEPS]) {
        let Some(table) = self.slots.get_mut(at) else {
            return;
        };
        let mut start = 0;
        for (symbol, frequency) in (0..).zip(frequencies) {
            let slots = table.get_mut(start..).unwrap_or_default();
            rans::fill(slots, symbol, *frequency);
            start += usize::from(*frequency);
        }
    }

    /// Puts all tables but those that a frame brings back to the format's.
    pub fn reset(&mut self, brought: &[bool; TABLES]) {
        for (at, (frequencies, brought)) in defaults().iter().zip(brought).enumerate() {
            if !brought && self.own.get(at) == Some(&true) {
                self.fill(at, frequencies);
            }
        }
        self.own = *brought;
    }

    /// Puts a frame's own table in the place of the format's, until
    /// [`Slots::reset`].
    pub fn set(&mut self, at: usize, frequencies: &[u16; STEPS]) {
        if let Some(own) = self.own.get_mut(at) {
            *own = true;
        }
        self.fill(at, frequencies);
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
    /// Of frequencies that add up to [`SCALE`].
    pub fn new(frequencies: &[u16; STEPS]) -> Places {
        let mut places = [Place::default(); STEPS];
        let mut start = 0;
        for (place, frequency) in places.iter_mut().zip(frequencies) {
            if *frequency > 0 {
                *place = Place::new(start, *frequency);
                start += frequency;
            }
        }
        Places(places)
    }

    /// The format's tables, and for each symbol its cost in bits.
    pub fn defaults() -> &'static [(Places, [f32; STEPS])] {
        static PLACES: OnceLock<Vec<(Places, [f32; STEPS])>> = OnceLock::new();
        PLACES.get_or_init(|| {
            let tables = defaults().iter();
            tables
                .map(|frequencies| (Places::new(frequencies), frequencies.map(cost)))
                .collect()
        })
    }
}

/// The cost of a symbol in bits.
pub fn cost(frequency: u16) -> f32 {
    match frequency {
        // What a symbol that a table lacks costs, about: it is given.
        0 => 24.0,
        frequency => BITS as f32 - f32::from(frequency).log2(),
    }
}

/// The digits for these counts; `None` when there are none.
pub fn fit(counts: &[u32]) -> Option<[u8; STEPS]> {
    let largest = f64::from(counts.iter().copied().max().filter(|most| *most > 0)?);
    let mut digits = [0; STEPS];
    for (at, count) in digits.iter_mut().zip(counts) {
        if *count > 0 {
            *at = digit(f64::from(*count) / largest, MOST);
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
            let Ok(frequencies) = frequencies(&digits) else {
                let used = digits.iter().filter(|digit| **digit > 0).count();
                assert!(used == 0 || used > 64, "{digits:?}");
                continue;
            };
            assert_eq!(
                frequencies.iter().map(|f| u32::from(*f)).sum::<u32>(),
                SCALE
            );
            slots.set(7, &frequencies);
            let table = &slots.from::<1>(7).unwrap()[0];
            let mut start = 0;
            for (symbol, (digit, frequency)) in digits.iter().zip(frequencies).enumerate() {
                assert_eq!(*digit > 0, frequency > 0, "{digits:?}");
                for slot in 0..u32::from(frequency) {
                    let found = table[(start + slot) as usize];
                    let expected = symbol as u32 | slot << 7 | u32::from(frequency) << 17;
                    assert_eq!(found, expected);
                }
                start += u32::from(frequency);
            }
        }
        slots.reset(&[false; TABLES]);
        assert_eq!(slots.slots, Slots::default().slots);
    }

    #[test]
    fn the_format_has_all_its_tables() {
        let all = defaults().iter();
        assert!(all
            .map(|f| f.iter().sum::<u16>())
            .all(|sum| sum == SCALE as u16));
    }
}
