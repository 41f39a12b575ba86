//! The parts of a recorded command line that contain secrets, and the text that replaces them.

use std::ops::Range;

use crate::words::Word;

/// The text that replaces a secret in a recording.
pub const MASK: &[u8] = b"***";

/// The parts of a command line that are to be masked: for each, the index of the argument and the byte range in it.
#[derive(Debug, Default)]
pub struct Masks(Vec<(usize, Range<usize>)>);

impl Masks {
    /// The parts to be masked, sorted by argument and position; `None` if there are none.
    pub fn sorted(mut self) -> Option<Masks> {
        self.0
            .sort_unstable_by_key(|(arg, range)| (*arg, range.start, range.end));
        (!self.0.is_empty()).then_some(self)
    }

    /// Adds byte ranges of a word to the parts of the command line that are to be masked.
    pub fn extend(&mut self, word: &Word<'_>, parts: impl IntoIterator<Item = Range<usize>>) {
        // A part that is a mask already is skipped. Archived traces contain masks, and the rules are also applied to
        // such traces.
        let open = |part: &Range<usize>| {
            !part.is_empty() && word.text.get(part.clone()).is_none_or(|text| text != MASK)
        };
        let parts = parts.into_iter().filter(open);
        let in_arg = |part: Range<usize>| (word.arg, word.at + part.start..word.at + part.end);
        self.0.extend(parts.map(in_arg));
    }

    pub fn add(&mut self, word: &Word<'_>, part: Range<usize>) {
        self.extend(word, std::iter::once(part));
    }

    /// The parts to be masked: for each, the index of the argument and the byte range in it.
    pub fn into_parts(self) -> Vec<(usize, Range<usize>)> {
        self.0
    }

    /// Copies the argument with the index `arg`, with its secrets replaced by [`MASK`], and returns
    /// the number of replacements. Parts that touch or overlap are replaced together.
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
