//! The parts of a command line that are masked, and the text in their place.

use std::ops::Range;

use crate::words::Word;

/// The text that replaces a secret.
pub const MASK: &[u8] = b"***";

/// The masked parts of arguments: the argument's index and the bytes in it.
#[derive(Debug, Default)]
pub struct Masks(Vec<(usize, Range<usize>)>);

impl Masks {
    /// The masked parts in their order, or `None` if there are none.
    pub fn sorted(mut self) -> Option<Masks> {
        self.0
            .sort_unstable_by_key(|(arg, range)| (*arg, range.start, range.end));
        (!self.0.is_empty()).then_some(self)
    }

    /// Adds these parts of a word to the masked parts.
    pub fn extend(&mut self, word: &Word<'_>, parts: impl IntoIterator<Item = Range<usize>>) {
        // An archived trace has masks of its own.
        let open = |part: &Range<usize>| {
            !part.is_empty() && word.text.get(part.clone()).is_none_or(|text| text != MASK)
        };
        let parts = parts.into_iter().filter(open);
        let in_arg = |part: Range<usize>| (word.arg, word.at + part.start..word.at + part.end);
        self.0.extend(parts.map(in_arg));
    }

    /// Adds this part of a word to the masked parts.
    pub fn add(&mut self, word: &Word<'_>, part: Range<usize>) {
        self.extend(word, std::iter::once(part));
    }

    /// The masked parts: the number of the argument of each part, and the range of its bytes there.
    pub fn into_parts(self) -> Vec<(usize, Range<usize>)> {
        self.0
    }

    /// Copies the argument `arg` with its parts replaced, and returns the number of replacements. Parts that touch
    /// or overlap are one.
    pub fn copy(&self, arg: usize, text: &[u8], out: &mut Vec<u8>) -> u64 {
        let (mut done, mut count) = (0, 0);
        let first = self.0.partition_point(|(of, _)| *of < arg);
        let own = self.0.iter().skip(first).take_while(|(of, _)| *of == arg);
        for (_, part) in own {
            if part.start >= done {
                out.extend_from_slice(text.get(done..part.start).unwrap_or_default());
                if part.start > done || count == 0 {
                    out.extend_from_slice(MASK);
                    count += 1;
                }
            }
            done = done.max(part.end);
        }
        out.extend_from_slice(text.get(done..).unwrap_or_default());
        count
    }
}
