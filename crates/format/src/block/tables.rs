//! Tables of frequencies: the format's own, and those that a frame brings.
//!
//! A table is given by a weight for each of its symbols, and a weight by a
//! digit. Small frames use the format's tables (`tables.txt`, a part of the
//! format), so that they need not bring any.

use std::sync::OnceLock;

use super::bits::{BitReader, BitWriter};
use super::model::{OPS, OP_TABLES, STEPS, STEP_TABLES, TASKS, TASK_TABLES};
use super::rans::{Place, BITS, SCALE};
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
pub fn frequencies(digits: &[u8]) -> Result<[u16; STEPS], Fault> {
    let total: u64 = digits.iter().map(|digit| weight(*digit)).sum();
    if total == 0 {
        return Err(Fault::Content("a table without symbols"));
    }
    let mut frequencies = [0u16; STEPS];
    let (mut sum, mut largest, mut at) = (0, 0, 0);
    for (symbol, (frequency, digit)) in frequencies.iter_mut().zip(digits).enumerate() {
        let weight = weight(*digit);
        if weight > 0 {
            *frequency = (weight * u64::from(SCALE) / total).max(1) as u16;
            sum += i32::from(*frequency);
        }
        if weight > largest {
            (largest, at) = (weight, symbol);
        }
    }
    // What is left over or missing is the first of the most frequent symbols'.
    // With n of them among 87 at most 87 - n is missing, which is less than
    // each has, SCALE / n.
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

/// The digits of the format's tables.
pub fn defaults() -> &'static [Vec<u8>; TABLES] {
    static DIGITS: OnceLock<[Vec<u8>; TABLES]> = OnceLock::new();
    DIGITS.get_or_init(|| {
        let mut lines = include_str!("tables.txt")
            .lines()
            .filter(|line| !line.starts_with('#'));
        std::array::from_fn(|_| {
            let line = lines.next().unwrap_or_default();
            line.bytes().map(digit_of).collect()
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

/// A table for decoding: for each slot its symbol (7 bits), its distance to the
/// symbol's first slot (11 bits) and the symbol's frequency (12 bits).
#[derive(Clone, Debug)]
pub struct Slots(pub Box<[u32; SCALE as usize]>);

impl Slots {
    /// Of frequencies that add up to [`SCALE`].
    pub fn new(frequencies: &[u16; STEPS]) -> Slots {
        let mut slots = Slots(Box::new([0; SCALE as usize]));
        slots.set(frequencies);
        slots
    }

    /// Becomes the table of these frequencies.
    pub fn set(&mut self, frequencies: &[u16; STEPS]) {
        let mut slots = self.0.iter_mut();
        for (symbol, frequency) in (0u32..).zip(frequencies) {
            let fixed = symbol | u32::from(*frequency) << (7 + BITS);
            for (distance, slot) in (0..u32::from(*frequency)).zip(&mut slots) {
                *slot = fixed | distance << 7;
            }
        }
    }

    /// The symbol at a state, and the state behind it, not filled up.
    #[cfg(test)]
    pub fn take(&self, state: u32) -> (u8, u32) {
        take(&self.0, state)
    }

    /// The format's tables.
    pub fn defaults() -> &'static [Slots] {
        static SLOTS: OnceLock<Vec<Slots>> = OnceLock::new();
        SLOTS.get_or_init(|| {
            let none = [0; STEPS];
            let tables = defaults().iter();
            tables
                .map(|digits| Slots::new(&frequencies(digits).unwrap_or(none)))
                .collect()
        })
    }
}

/// The symbol at a state, and the state behind it, not filled up.
#[inline(always)]
#[allow(clippy::indexing_slicing)] // The remainder is below SCALE.
pub fn take(slots: &[u32; SCALE as usize], state: u32) -> (u8, u32) {
    let slot = slots[(state % SCALE) as usize];
    let next = (slot >> (7 + BITS))
        .wrapping_mul(state >> BITS)
        .wrapping_add((slot >> 7) % SCALE);
    ((slot & 0x7f) as u8, next)
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
            let none = [0; STEPS];
            let tables = defaults().iter();
            tables
                .map(|digits| {
                    let frequencies = frequencies(digits).unwrap_or(none);
                    (Places::new(&frequencies), frequencies.map(cost))
                })
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
        for seed in 0..2000u64 {
            let symbols = [31, 32, 87][seed as usize % 3];
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
                assert!(digits.iter().all(|digit| *digit == 0));
                continue;
            };
            assert_eq!(
                frequencies.iter().map(|f| u32::from(*f)).sum::<u32>(),
                SCALE
            );
            let slots = Slots::new(&frequencies);
            let mut start = 0;
            for (symbol, (digit, frequency)) in digits.iter().zip(frequencies).enumerate() {
                assert_eq!(*digit > 0, frequency > 0, "{digits:?}");
                for slot in 0..u32::from(frequency) {
                    let (found, next) = slots.take(start + slot + (17 << BITS));
                    assert_eq!(
                        (found as usize, next),
                        (symbol, u32::from(frequency) * 17 + slot)
                    );
                }
                start += u32::from(frequency);
            }
        }
    }
}
