//! Masks the secrets of a recording before anything is written.
//!
//! A trace holds the arguments of every program, and traces are archived. The rules err
//! on the side of masking: a word too many costs a reader little. docs/privacy.md has their
//! list and their limits; `tests/corpus` holds them to command lines of real tools.

#![forbid(unsafe_code)]

pub mod addresses;
mod context;
mod expressions;
mod forms;
mod harmless;
mod headers;
mod looks;
mod names;
mod programs;
mod read;
mod rules;
mod stdin;
mod urls;
mod words;

use std::ops::Range;

use regex::bytes::Regex;
use tr_format::event::Argv;
use tr_format::mask::Mask;

use rules::Rules;
use words::Word;

/// The replacement of a secret.
pub const MASK: &[u8] = b"***";

/// An error in a regular expression.
pub use regex::Error as PatternError;

/// A pattern of the user. Its first group is masked, or without a group the whole match.
///
/// # Errors
/// The text is no regular expression, or too large a one.
pub fn pattern(text: &str) -> Result<Regex, PatternError> {
    Regex::new(text)
}

/// Masks secrets, by the rules and by the user's patterns.
#[derive(Clone, Debug)]
pub struct Redactor {
    rules: Option<Rules>,
    patterns: Vec<Regex>,
    masked: u64,
}

impl Redactor {
    /// A masker that applies the user's patterns, and with `rules` the rules of this crate.
    pub fn new(rules: bool, patterns: Vec<Regex>) -> Redactor {
        Redactor {
            rules: rules.then(Rules::new),
            patterns,
            masked: 0,
        }
    }

    /// The number of values masked so far.
    pub fn masked(&self) -> u64 {
        self.masked
    }

    /// The masked argument vector. Its full length shrinks with the masks, so that only a
    /// cut argv counts as cut.
    pub fn masked_argv(&mut self, argv: Argv) -> Argv {
        let args: Vec<&[u8]> = argv.args().collect();
        let Some(masks) = self.masks(&argv.bytes, &args, argv.truncated()) else {
            return argv;
        };
        let ends_in_nul = argv.bytes.ends_with(b"\0");
        let mut bytes = Vec::with_capacity(argv.bytes.len());
        for (at, arg) in args.iter().enumerate() {
            if at > 0 {
                bytes.push(0);
            }
            self.masked += masks.copy(at, arg, &mut bytes);
        }
        if ends_in_nul {
            bytes.push(0);
        }
        let cut = |full: u32| (full as usize).saturating_sub(argv.bytes.len());
        let full_len = argv
            .full_len
            .map(|full| u32::try_from(bytes.len() + cut(full)).unwrap_or(u32::MAX));
        Argv {
            bytes: bytes.into(),
            full_len,
        }
    }

    /// The parts of an argument vector that would be masked: the argument's index and the bytes in it. The parts
    /// are in order, and none overlaps another.
    pub fn find(&self, argv: &Argv) -> Vec<(usize, Range<usize>)> {
        let args: Vec<&[u8]> = argv.args().collect();
        self.found(&argv.bytes, &args, argv.truncated())
    }

    /// Like [`Redactor::find`], but for a command in the form of separate arguments.
    pub fn find_in_command(&self, command: &[Vec<u8>]) -> Vec<(usize, Range<usize>)> {
        let args: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        self.found(&args.join(&0), &args, false)
    }

    fn found(&self, line: &[u8], args: &[&[u8]], cut: bool) -> Vec<(usize, Range<usize>)> {
        let masks = self.masks(line, args, cut).unwrap_or_default();
        let mut found: Vec<(usize, Range<usize>)> = Vec::new();
        for (arg, part) in masks.0 {
            match found.last_mut() {
                Some((of, last)) if *of == arg && part.start <= last.end => {
                    last.end = last.end.max(part.end);
                }
                _ => found.push((arg, part)),
            }
        }
        found
    }

    /// Like [`Redactor::find`], but for a text that is no command line.
    pub fn find_in_text(&self, text: &[u8]) -> Vec<Range<usize>> {
        let found = self.found(text, &[text], false);
        found.into_iter().map(|(_, part)| part).collect()
    }

    /// The masked arguments of a command.
    pub fn masked_command(&mut self, command: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let args: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        let Some(masks) = self.masks(&args.join(&0), &args, false) else {
            return command.to_vec();
        };
        let masked = |(at, arg): (usize, &&[u8])| {
            let mut bytes = Vec::new();
            masks.copy(at, arg, &mut bytes);
            bytes
        };
        args.iter().enumerate().map(masked).collect()
    }

    /// The parts to mask, or `None` if there are none. `line` holds all arguments.
    fn masks(&self, line: &[u8], args: &[&[u8]], cut: bool) -> Option<Masks> {
        let rules = self
            .rules
            .as_ref()
            .filter(|rules| rules.may_apply(line, args));
        let mut masks = Masks::default();
        if let Some(rules) = rules {
            rules.apply(args, cut, &mut masks);
        }
        self.match_patterns(args, &mut masks);
        masks.sorted()
    }

    fn match_patterns(&self, args: &[&[u8]], masks: &mut Masks) {
        for (arg, text) in args.iter().enumerate() {
            let word = Word {
                arg,
                at: 0,
                text,
                first: arg == 0,
            };
            for pattern in &self.patterns {
                let found = pattern.captures_iter(text);
                let parts = found.filter_map(|found| found.get(1).or(found.get(0)));
                masks.extend(&word, parts.map(|part| part.range()));
            }
        }
    }
}

/// A command line is masked as a whole, and every other text as if it were a command line of one
/// word. A comm is what the kernel has left of a name, 15 bytes.
impl Mask for Redactor {
    fn text(&mut self, text: &[u8]) -> Option<Vec<u8>> {
        let masks = self.masks(text, &[text], false)?;
        let mut bytes = Vec::with_capacity(text.len());
        self.masked += masks.copy(0, text, &mut bytes);
        Some(bytes)
    }

    fn argv(&mut self, argv: &mut Argv) {
        *argv = self.masked_argv(std::mem::take(argv));
    }

    fn command(&mut self, command: &mut Vec<Vec<u8>>) {
        *command = self.masked_command(command);
    }
}

/// The masked parts of arguments: the argument's index and the bytes in it.
#[derive(Debug, Default)]
pub(crate) struct Masks(Vec<(usize, Range<usize>)>);

impl Masks {
    /// The parts in their order, or `None` if there are none.
    fn sorted(mut self) -> Option<Masks> {
        self.0
            .sort_unstable_by_key(|(arg, range)| (*arg, range.start, range.end));
        (!self.0.is_empty()).then_some(self)
    }

    /// Masks these parts of a word.
    pub fn extend(&mut self, word: &Word<'_>, parts: impl IntoIterator<Item = Range<usize>>) {
        // An archived trace has masks of its own.
        let open = |part: &Range<usize>| {
            !part.is_empty() && word.text.get(part.clone()).is_none_or(|text| text != MASK)
        };
        let parts = parts.into_iter().filter(open);
        let in_arg = |part: Range<usize>| (word.arg, word.at + part.start..word.at + part.end);
        self.0.extend(parts.map(in_arg));
    }

    /// Masks this part of a word.
    pub fn add(&mut self, word: &Word<'_>, part: Range<usize>) {
        self.extend(word, std::iter::once(part));
    }

    /// Copies the argument `arg` with its parts replaced, and returns the number of replacements. Parts that touch
    /// or overlap are one.
    fn copy(&self, arg: usize, text: &[u8], out: &mut Vec<u8>) -> u64 {
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
