//! An entropy coder: range asymmetric numeral systems (rANS) with tables of
//! frequencies that add up to [`SCALE`].
//!
//! Each kind of symbol has a state of its own, so that a reader works on all
//! of them at once; their renormalization words share one sequence. States are
//! 32 bits wide and take 16 bits at a time.

use crate::Fault;

/// Bits of a frequency.
pub const BITS: u32 = 11;
/// What the frequencies of a table add up to.
pub const SCALE: u32 = 1 << BITS;
/// Smallest state between symbols.
const LEAST: u32 = 1 << 16;
/// How many states are interleaved.
pub const STATES: usize = 3;

/// A symbol's place in its table: first slot and frequency.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    pub start: u16,
    pub frequency: u16,
}

/// Encodes symbols given in the order of decoding; they go round the states.
/// Appends the words.
#[allow(clippy::indexing_slicing)] // `at % STATES` is below STATES.
pub fn encode(places: &[Place], out: &mut Vec<u8>) {
    let mut states = [LEAST; STATES];
    let mut words: Vec<u16> = Vec::with_capacity(places.len());
    for (at, place) in places.iter().enumerate().rev() {
        let state = &mut states[at % STATES];
        let frequency = u32::from(place.frequency);
        // The state must be below 2^32 after the step.
        if u64::from(*state) >= u64::from(frequency) << (32 - BITS) {
            words.push(*state as u16);
            *state >>= 16;
        }
        let (whole, rest) = (*state / frequency, *state % frequency);
        *state = (whole << BITS) + rest + u32::from(place.start);
    }
    for state in states {
        out.extend_from_slice(&state.to_le_bytes());
    }
    out.extend(words.iter().rev().flat_map(|word| word.to_le_bytes()));
}

/// Reads symbols.
#[derive(Debug)]
pub struct Decoder<'a> {
    pub states: [u32; STATES],
    pub words: Words<'a>,
}

/// The renormalization words.
#[derive(Debug)]
pub struct Words<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Words<'_> {
    /// Fills up a state; takes zeros behind the end, which `finish` notices.
    #[inline(always)]
    pub fn renew(&mut self, state: u32) -> u32 {
        if state >= LEAST {
            return state;
        }
        let word = match self.bytes.get(self.at..self.at + 2) {
            Some(bytes) => u16::from_le_bytes(bytes.try_into().unwrap_or_default()),
            None => 0,
        };
        self.at += 2;
        state << 16 | u32::from(word)
    }
}

impl<'a> Decoder<'a> {
    /// At the first symbol of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Result<Decoder<'a>, Fault> {
        let mut cursor = crate::varint::Cursor::new(bytes);
        let mut states = [0; STATES];
        for state in &mut states {
            *state = cursor.word()?;
        }
        Ok(Decoder {
            states,
            words: Words {
                bytes: cursor.rest(),
                at: 0,
            },
        })
    }

    /// Refuses when not everything was used, or more than there is.
    pub fn finish(self) -> Result<(), Fault> {
        match self.words.at == self.words.bytes.len() && self.states == [LEAST; STATES] {
            true => Ok(()),
            false => Err(Fault::Content("the symbols do not end where they should")),
        }
    }
}

/// Takes a symbol out of a state.
#[inline(always)]
pub fn step(state: u32, place: Place) -> u32 {
    u32::from(place.frequency)
        .wrapping_mul(state >> BITS)
        .wrapping_add(state % SCALE)
        .wrapping_sub(u32::from(place.start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_come_back() {
        let frequencies = [1000u16, 1, 7, 1040];
        let starts = [0u16, 1000, 1001, 1008];
        let symbols: Vec<usize> = (0..10_000usize).map(|i| (i * i / 7 + i) % 4).collect();
        let places: Vec<Place> = symbols
            .iter()
            .map(|s| Place {
                start: starts[*s],
                frequency: frequencies[*s],
            })
            .collect();
        let mut out = Vec::new();
        encode(&places, &mut out);
        let mut decoder = Decoder::new(&out).unwrap();
        for (at, symbol) in symbols.iter().enumerate() {
            let state = decoder.words.renew(decoder.states[at % STATES]);
            let slot = (state % SCALE) as u16;
            let found = starts.iter().rposition(|start| *start <= slot).unwrap();
            assert_eq!(found, *symbol);
            decoder.states[at % STATES] = step(state, places[at]);
        }
        // The last states are filled up by the symbol that would come next.
        for state in &mut decoder.states {
            *state = decoder.words.renew(*state);
        }
        decoder.finish().unwrap();
    }
}
