//! An entropy coder: range asymmetric numeral systems (rANS) over tables of
//! frequencies that add up to [`SCALE`], with one or four states (*lanes*) that
//! take turns, so that a processor works on several symbols at once.
//!
//! A state is 63 bits wide and takes 32 bits at a time. That is enough for
//! [`GROUP`] symbols, so it is filled up only so often. What a state has left when
//! all symbols are taken are [`SPARE`] bits of other fields, which cost nothing
//! there: four states of a small block would cost too much else.

use crate::varint::{put, Cursor};
use crate::Fault;

/// Bits of a frequency.
pub const BITS: u32 = 10;
/// What the frequencies of a table add up to.
pub const SCALE: u32 = 1 << BITS;
/// States of a block that is not tiny; such a one has one.
pub const LANES: usize = 4;
/// Symbols of a lane between two fillings.
pub const GROUP: usize = 3;
/// Symbols of all lanes between two fillings.
pub const ROUND: usize = GROUP * LANES;
/// Bits of other fields that a state holds when all symbols are taken.
pub const SPARE: u32 = 31;
/// Bytes that have room for the spare bits of all lanes.
pub const SPARE_BYTES: usize = 16;
/// Smallest state between groups.
const LEAST: u64 = 1 << SPARE;
/// Bits of a state.
const WIDTH: u32 = 63;

/// Spare bits as one bit string, lane 0 first.
pub fn spare_bytes(spare: [u32; LANES]) -> [u8; SPARE_BYTES] {
    let join = |bits: u128, lane: &u32| bits << SPARE | u128::from(*lane);
    spare.iter().rev().fold(0, join).to_le_bytes()
}

/// The inverse of [`spare_bytes`], of at most as many bytes.
pub fn spare_bits(bytes: &[u8]) -> [u32; LANES] {
    let bits = bytes.iter().rev();
    let bits = bits.fold(0u128, |bits, byte| bits << 8 | u128::from(*byte));
    std::array::from_fn(|lane| (bits >> (SPARE * lane as u32)) as u32 & (LEAST - 1) as u32)
}

/// A symbol's place in its table, made ready for encoding.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    /// `⌈2^(64 + shift) / frequency⌉`, which turns division into multiplication
    /// (Giesen, "rANS in practice").
    reciprocal: u64,
    /// What is added to a state besides the quotient's share.
    bias: u32,
    /// Slots.
    frequency: u16,
    shift: u8,
}

impl Place {
    /// The place of `frequency` slots from `start` on.
    #[inline]
    pub fn new(start: u16, frequency: u16) -> Place {
        let divisor = DIVISORS.get(usize::from(frequency));
        let (reciprocal, shift) = divisor.copied().unwrap_or((u64::MAX, 0));
        // By 1 the quotient comes out as state - 1, and this puts it right.
        let more = if frequency == 1 { SCALE - 1 } else { 0 };
        Place {
            reciprocal,
            bias: u32::from(start) + more,
            frequency,
            shift,
        }
    }

    /// The state in front of which this symbol stands.
    #[inline(always)]
    fn put(&self, state: u64) -> u64 {
        let high = (u128::from(state) * u128::from(self.reciprocal)) >> 64;
        let whole = high as u64 >> (self.shift % 64);
        state
            .wrapping_add(u64::from(self.bias))
            .wrapping_add(whole.wrapping_mul(u64::from(SCALE - u32::from(self.frequency))))
    }
}

/// For each frequency its reciprocal and shift.
#[allow(clippy::indexing_slicing)] // Checked when it is compiled.
static DIVISORS: [(u64, u8); SCALE as usize + 1] = {
    let mut divisors = [(u64::MAX, 0); SCALE as usize + 1];
    let mut divisor = 2;
    while divisor < divisors.len() {
        // Exact for dividends below 2^63: Alverson, "Integer division using
        // reciprocals".
        let shift = usize::BITS - (divisor - 1).leading_zeros();
        let reciprocal = (1u128 << (shift + 63)).div_ceil(divisor as u128);
        divisors[divisor] = (reciprocal as u64, shift as u8 - 1);
        divisor += 1;
    }
    divisors
};

/// Encodes symbols, the last one first.
#[derive(Debug, Default)]
pub struct Writer {
    states: [u64; LANES],
    /// Filled from the end.
    words: Vec<u32>,
    /// The first of the words in use.
    at: usize,
}

impl Writer {
    /// For at most `groups` groups; `spare` are the fields of the lanes.
    pub fn begin(&mut self, groups: usize, spare: [u32; LANES]) {
        self.states = spare.map(|bits| LEAST | (u64::from(bits) % LEAST));
        // A group takes a word at most.
        if self.words.len() < groups + 1 {
            self.words.resize(groups + 1, 0);
        }
        self.at = self.words.len();
    }

    /// Puts a group of at most [`GROUP`] symbols in front of those of its lane.
    #[inline(always)]
    #[allow(clippy::indexing_slicing)] // A lane is below LANES; `begin` was told how many come.
    pub fn put<const N: usize>(&mut self, lane: usize, group: [&Place; N]) {
        let mut state = self.states[lane % LANES];
        let frequencies = group.map(|place| u64::from(place.frequency));
        let product: u64 = frequencies.iter().product();
        // The state must be below 2^WIDTH after the group. Without a branch,
        // which would be foretold badly: what is not taken is written over.
        let full = state >= product << (WIDTH - BITS * N as u32);
        self.words[self.at - 1] = state as u32;
        self.at -= usize::from(full);
        state >>= u32::from(full) * 32;
        for place in group.iter().rev() {
            state = place.put(state);
        }
        self.states[lane % LANES] = state;
    }

    /// Appends the states of the first lanes, and the words.
    pub fn finish(&self, lanes: usize, out: &mut Vec<u8>) {
        for state in self.states.iter().take(lanes) {
            out.extend_from_slice(&(*state as u32).to_le_bytes());
            put(out, state >> 32);
        }
        let words = self.words.get(self.at..).unwrap_or_default();
        out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }
}

/// A table for decoding: for each slot its symbol (8 bits), the symbol's
/// frequency (12 bits) and the distance to its first slot (12 bits).
pub type Slots = [u32; SCALE as usize];

/// Writes the slots of `symbol` into the first `frequency` of `slots`.
#[inline(always)]
pub fn fill(slots: &mut [u32], symbol: u32, frequency: u16) {
    let mut slot = symbol | u32::from(frequency) << 8;
    for out in slots {
        *out = slot;
        slot += 1 << 20;
    }
}

/// Decodes symbols.
#[derive(Debug)]
pub struct Reader<'a> {
    states: [u64; LANES],
    /// With [`LANES`] words of 0 behind the end.
    words: &'a [u32],
    at: usize,
}

impl<'a> Reader<'a> {
    /// At the first symbol of `bytes`; `words` is memory to work in.
    pub fn new(bytes: &[u8], lanes: usize, words: &'a mut Vec<u32>) -> Result<Reader<'a>, Fault> {
        let mut cursor = Cursor::new(bytes);
        let mut states = [LEAST; LANES];
        for state in states.iter_mut().take(lanes) {
            let (low, high) = (cursor.word()?, cursor.int32()?);
            *state = u64::from(low) | u64::from(high) << 32;
            if !(LEAST..1 << WIDTH).contains(state) {
                return Err(Fault::Content("no such state of the symbols"));
            }
        }
        words.clear();
        let (all, rest) = cursor.rest().as_chunks();
        words.extend(all.iter().map(|word| u32::from_le_bytes(*word)));
        words.extend([0; LANES]);
        match rest {
            [] => Ok(Reader {
                states,
                words,
                at: 0,
            }),
            _ => Err(Fault::Content("a part of a word of symbols")),
        }
    }

    /// Decodes one symbol from each of [`LANES`] tables by the state of its
    /// lane. At most [`GROUP`] times between two fillings.
    #[inline(always)]
    pub fn four(&mut self, tables: [&Slots; LANES]) -> [u8; LANES] {
        let mut symbols = [0; LANES];
        let lanes = self.states.iter_mut().zip(tables).zip(&mut symbols);
        for ((state, slots), symbol) in lanes {
            *symbol = step(state, slots);
        }
        symbols
    }

    /// [`Reader::four`], each into the place that tells its table.
    #[inline(always)]
    pub fn four_in_place<'s>(
        &mut self,
        symbols: &mut [u8; LANES],
        table: impl Fn(u8) -> &'s Slots,
    ) {
        for (state, symbol) in self.states.iter_mut().zip(symbols) {
            *symbol = step(state, table(*symbol));
        }
    }

    /// Decodes one symbol by one lane's state.
    #[inline(always)]
    #[allow(clippy::indexing_slicing)] // A remainder is below LANES.
    pub fn one(&mut self, lane: usize, slots: &Slots) -> u8 {
        step(&mut self.states[lane % LANES], slots)
    }

    /// Fills up the states.
    #[inline(always)]
    #[allow(clippy::indexing_slicing)] // A remainder is below LANES.
    pub fn fill(&mut self) {
        // Behind the end, which `finish` notices, zeros are taken.
        let words = self.words.get(self.at..self.at + LANES);
        let words: &[u32; LANES] = words.and_then(|w| w.try_into().ok()).unwrap_or(&[0; LANES]);
        let mut taken = 0;
        for state in &mut self.states {
            let filled = *state << 32 | u64::from(words[taken % LANES]);
            // Without a branch, which would be foretold badly.
            let short = *state < LEAST;
            *state = if short { filled } else { *state };
            taken += usize::from(short);
        }
        self.at += taken;
    }

    /// The spare bits of the lanes. Refuses when not all words were used, or
    /// more than there are, or a state is not one that a writer begins with.
    pub fn finish(self) -> Result<[u32; LANES], Fault> {
        let ends = self.states.iter().all(|state| state >> SPARE == 1);
        match self.at + LANES == self.words.len() && ends {
            true => Ok(self.states.map(|state| (state % LEAST) as u32)),
            false => Err(Fault::Content("the symbols do not end where they should")),
        }
    }
}

/// The symbol of a state, which becomes the next one.
#[inline(always)]
#[allow(clippy::indexing_slicing)] // A remainder is below what it is divided by.
fn step(state: &mut u64, slots: &Slots) -> u8 {
    let slot = slots[(*state % u64::from(SCALE)) as usize];
    *state = u64::from(slot >> 8 & 0xfff)
        .wrapping_mul(*state >> BITS)
        .wrapping_add(u64::from(slot >> 20));
    slot as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiplication_divides_exactly() {
        for frequency in 1..=SCALE as u16 {
            let place = Place::new(5, frequency);
            let f = u64::from(frequency);
            let most = (f << (WIDTH - BITS)) - 1;
            let around = (0..40).flat_map(|k| {
                let x = (most - most % f).wrapping_sub(k * f * 0x3_7919_2b3c);
                [x, x.wrapping_sub(1), x.wrapping_add(1)]
            });
            for state in around.chain([1, f, most, LEAST, most / 2]) {
                if (1..=most).contains(&state) {
                    let next = ((state / f) << BITS) + state % f + 5;
                    assert_eq!(place.put(state), next, "{state} / {f}");
                }
            }
        }
    }
}
