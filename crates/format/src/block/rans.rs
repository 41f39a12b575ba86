//! An entropy coder: range asymmetric numeral systems (rANS) over tables of
//! frequencies that add up to [`SCALE`], with one or several states that take
//! turns, so that a processor works on several symbols at once.
//!
//! A state is 31 bits wide and takes 16 bits at a time.

use crate::varint::Cursor;
use crate::Fault;

/// Bits of a frequency.
pub const BITS: u32 = 10;
/// What the frequencies of a table add up to.
pub const SCALE: u32 = 1 << BITS;
/// States of a large block; a small one has one.
pub const LANES: usize = 4;
/// Smallest state between symbols.
const LEAST: u32 = 1 << 15;
/// Bits of a state.
const WIDTH: u32 = 31;

/// A symbol's place in its table, made ready for encoding.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    /// First slot.
    start: u16,
    /// Slots.
    frequency: u16,
    /// `⌈2^(31 + shift) / frequency⌉`, which turns division into
    /// multiplication (Giesen, "rANS in practice").
    reciprocal: u32,
    shift: u8,
}

impl Place {
    /// The place of `frequency` slots from `start` on.
    pub fn new(start: u16, frequency: u16) -> Place {
        let divisor = u64::from(frequency.max(1));
        // Exact for dividends below 2^31: Alverson, "Integer division using
        // reciprocals".
        let shift = 64 - (divisor - 1).leading_zeros();
        let reciprocal = ((1u64 << (shift + 31)).div_ceil(divisor)) as u32;
        Place {
            start,
            frequency,
            reciprocal,
            shift: shift as u8,
        }
    }

    #[inline(always)]
    fn divide(&self, state: u32) -> u32 {
        ((u64::from(state) * u64::from(self.reciprocal)) >> (31 + u32::from(self.shift))) as u32
    }
}

/// Encodes symbols, the last one first.
#[derive(Debug, Default)]
pub struct Writer {
    states: [u32; LANES],
    /// Filled from the end.
    words: Vec<u16>,
    /// The first of the words in use.
    at: usize,
}

impl Writer {
    /// For at most `symbols` symbols.
    pub fn begin(&mut self, symbols: usize) {
        self.states = [LEAST; LANES];
        // A symbol takes a word at most.
        if self.words.len() < symbols {
            self.words.resize(symbols, 0);
        }
        self.at = self.words.len();
    }

    /// Puts a symbol in front of those of its lane.
    #[inline(always)]
    #[allow(clippy::indexing_slicing)] // A lane is below LANES; `begin` was told how many come.
    pub fn put(&mut self, lane: usize, place: &Place) {
        let mut state = self.states[lane % LANES];
        let frequency = u32::from(place.frequency);
        // The state must be below 2^WIDTH after the step. Without a branch,
        // which would be foretold badly: what is not taken is written over.
        let full = state >= frequency << (WIDTH - BITS);
        self.words[self.at - 1] = state as u16;
        self.at -= usize::from(full);
        state >>= u32::from(full) * 16;
        let whole = place.divide(state);
        let rest = state.wrapping_sub(whole.wrapping_mul(frequency));
        self.states[lane % LANES] = (whole << BITS)
            .wrapping_add(rest)
            .wrapping_add(u32::from(place.start));
    }

    /// How many bytes [`Writer::finish`] appends.
    pub fn bytes(&self, lanes: usize) -> usize {
        4 * lanes + 2 * (self.words.len() - self.at)
    }

    /// Appends the states of the first lanes, and the words.
    pub fn finish(&self, lanes: usize, out: &mut Vec<u8>) {
        for state in self.states.iter().take(lanes) {
            out.extend_from_slice(&state.to_le_bytes());
        }
        let words = self.words.get(self.at..).unwrap_or_default();
        out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }
}

/// A table for decoding: for each slot its symbol (7 bits), its distance to the
/// symbol's first slot (10 bits) and the symbol's frequency (11 bits).
pub type Slots = [u32; SCALE as usize];

/// Writes the slots of `symbol` into the first `frequency` of `slots`.
pub fn fill(slots: &mut [u32], symbol: u32, frequency: u16) {
    let fixed = symbol | u32::from(frequency) << (7 + BITS);
    for (distance, slot) in (0..u32::from(frequency)).zip(slots) {
        *slot = fixed | distance << 7;
    }
}

/// Decodes symbols.
#[derive(Debug)]
pub struct Reader<'a> {
    states: [u32; LANES],
    /// With [`LANES`] words of 0 behind the end.
    words: &'a [u16],
    at: usize,
}

impl<'a> Reader<'a> {
    /// At the first symbol of `bytes`; `words` is memory to work in.
    pub fn new(bytes: &[u8], lanes: usize, words: &'a mut Vec<u16>) -> Result<Reader<'a>, Fault> {
        let mut cursor = Cursor::new(bytes);
        let mut states = [LEAST; LANES];
        for state in states.iter_mut().take(lanes) {
            *state = cursor.word()?;
        }
        words.clear();
        let (pairs, rest) = cursor.rest().as_chunks();
        words.extend(pairs.iter().map(|pair| u16::from_le_bytes(*pair)));
        words.extend([0; LANES]);
        match rest {
            [] => Ok(Reader {
                states,
                words,
                at: 0,
            }),
            _ => Err(Fault::Content("half a word of symbols")),
        }
    }

    /// Decodes one symbol from each of [`LANES`] tables by the state of its
    /// lane.
    #[inline(always)]
    pub fn four(&mut self, tables: [&Slots; LANES]) -> [u8; LANES] {
        // Behind the end, which `finish` notices, zeros are taken.
        let words = self.words.get(self.at..self.at + LANES);
        let words: &[u16; LANES] = words.and_then(|w| w.try_into().ok()).unwrap_or(&[0; LANES]);
        let mut taken = 0;
        let mut symbols = [0; LANES];
        let lanes = self.states.iter_mut().zip(tables).zip(&mut symbols);
        for ((state, slots), symbol) in lanes {
            (*symbol, *state, taken) = step(*state, slots, words, taken);
        }
        self.at += taken;
        symbols
    }

    /// Decodes one symbol by one lane's state.
    #[inline(always)]
    #[allow(clippy::indexing_slicing)] // A lane is below LANES.
    pub fn one(&mut self, lane: usize, slots: &Slots) -> u8 {
        let words = self.words.get(self.at..self.at + LANES);
        let words: &[u16; LANES] = words.and_then(|w| w.try_into().ok()).unwrap_or(&[0; LANES]);
        let state = &mut self.states[lane % LANES];
        let (symbol, next, taken) = step(*state, slots, words, 0);
        *state = next;
        self.at += taken;
        symbol
    }

    /// Refuses when not all words were used, or more than there are, or a
    /// state has not come back to where the writer began.
    pub fn finish(self) -> Result<(), Fault> {
        match self.at + LANES == self.words.len() && self.states == [LEAST; LANES] {
            true => Ok(()),
            false => Err(Fault::Content("the symbols do not end where they should")),
        }
    }
}

/// The symbol of a state, the next state, filled up from `words` behind `taken`
/// of them, and how many are taken then.
#[inline(always)]
#[allow(clippy::indexing_slicing)] // Remainders are below what they are divided by.
fn step(state: u32, slots: &Slots, words: &[u16; LANES], taken: usize) -> (u8, u32, usize) {
    let slot = slots[(state % SCALE) as usize];
    let next = (slot >> (7 + BITS))
        .wrapping_mul(state >> BITS)
        .wrapping_add((slot >> 7) % SCALE);
    // Without a branch, which would be foretold badly.
    let short = next < LEAST;
    let filled = next << 16 | u32::from(words[taken % LANES]);
    let next = if short { filled } else { next };
    ((slot & 0x7f) as u8, next, taken + usize::from(short))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiplication_divides_exactly() {
        for frequency in 1..=SCALE as u16 {
            let place = Place::new(0, frequency);
            let f = u32::from(frequency);
            let most = (f << (WIDTH - BITS)) - 1;
            let around = (0..40).flat_map(|k| {
                let x = (most - most % f).wrapping_sub(k * f * 7919);
                [x, x.wrapping_sub(1), x.wrapping_add(1)]
            });
            for state in around.chain([0, 1, f, most, LEAST, most / 2]) {
                if state <= most {
                    assert_eq!(place.divide(state), state / f, "{state} / {f}");
                }
            }
        }
    }
}
