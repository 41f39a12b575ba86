//! An entropy coder: range asymmetric numeral systems (rANS) over tables of
//! frequencies that add up to [`SCALE`].
//!
//! The state is 31 bits wide and takes 16 bits at a time.

use crate::Fault;

/// Bits of a frequency.
pub const BITS: u32 = 11;
/// What the frequencies of a table add up to.
pub const SCALE: u32 = 1 << BITS;
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

    #[inline]
    fn divide(&self, state: u32) -> u32 {
        ((u64::from(state) * u64::from(self.reciprocal)) >> (31 + u32::from(self.shift))) as u32
    }
}

/// Encodes symbols, given in the order of decoding. Appends the words; gives
/// the state from which they are decoded.
pub fn encode<'a>(
    symbols: impl DoubleEndedIterator<Item = &'a Place>,
    words: &mut Vec<u16>,
) -> u32 {
    let mut state = LEAST;
    for place in symbols.rev() {
        let frequency = u32::from(place.frequency);
        // The state must be below 2^WIDTH after the step.
        if state >= frequency << (WIDTH - BITS) {
            words.push(state as u16);
            state >>= 16;
        }
        let whole = place.divide(state);
        let rest = state.wrapping_sub(whole.wrapping_mul(frequency));
        state = (whole << BITS)
            .wrapping_add(rest)
            .wrapping_add(u32::from(place.start));
    }
    words.reverse();
    state
}

/// The state, and the words that fill it up.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    /// The state, full.
    pub state: u32,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Words<'a> {
    /// At the first symbol of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Result<Words<'a>, Fault> {
        let mut cursor = crate::varint::Cursor::new(bytes);
        Ok(Words {
            state: cursor.word()?,
            bytes: cursor.rest(),
            at: 0,
        })
    }

    /// Fills up a state; takes zeros behind the end, which `finish` notices.
    #[inline(always)]
    pub fn fill(&mut self, state: u32) -> u32 {
        let word = match self.bytes.get(self.at..self.at + 2) {
            Some(bytes) => u16::from_le_bytes(bytes.try_into().unwrap_or_default()),
            None => 0,
        };
        // Without a branch, which would be foretold badly.
        let short = state < LEAST;
        self.at += usize::from(short) * 2;
        let filled = state << 16 | u32::from(word);
        if short {
            filled
        } else {
            state
        }
    }

    /// Refuses when not all words were used, or more than there are, or the
    /// state has not come back to where the writer began.
    pub fn finish(self) -> Result<(), Fault> {
        match self.at == self.bytes.len() && self.state == LEAST {
            true => Ok(()),
            false => Err(Fault::Content("the symbols do not end where they should")),
        }
    }
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
