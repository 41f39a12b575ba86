//! Masks the secrets of a recording before anything is written.
//!
//! A trace has the arguments of every program, and traces are archived. In doubt the rules mask a word, because a
//! harmless word that is masked costs a reader little. docs/privacy.md lists the rules and their limits; `tests/corpus`
//! tests them with command lines of real tools.

#![forbid(unsafe_code)]

pub mod addresses;
mod context;
mod expressions;
mod forms;
mod harmless;
mod headers;
mod looks;
mod masks;
mod matching;
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

use masks::Masks;
use rules::Rules;
use words::Word;

pub use masks::MASK;

/// An error in a user's regular expression for secrets.
pub use regex::Error as PatternError;

/// Compiles a regular expression with which the user describes secrets for [`Redactor::new`]. The first group of the
/// expression is masked, or the whole match if the expression has no group.
///
/// # Errors
/// The text is no regular expression, or too large a one.
pub fn pattern(text: &str) -> Result<Regex, PatternError> {
    Regex::new(text)
}

/// Masks the secrets in recorded texts, by the rules of this crate and by the user's regular expressions.
#[derive(Clone, Debug)]
pub struct Redactor {
    rules: Option<Rules>,
    patterns: Vec<Regex>,
    masked: u64,
}

impl Redactor {
    /// A redactor that masks the matches of the user's regular expressions and, if `rules` is true,
    /// the secrets that the rules of this crate find.
    pub fn new(rules: bool, patterns: Vec<Regex>) -> Redactor {
        Redactor {
            rules: rules.then(Rules::new),
            patterns,
            masked: 0,
        }
    }

    /// The number of masks that this redactor has put into texts and recorded argument vectors so far. Masks in
    /// commands and scripts are not counted.
    pub fn masked(&self) -> u64 {
        self.masked
    }

    /// The recorded argv of a process with its secrets masked. A mask and its secret can differ in length, so the
    /// full length is corrected: it is the new length plus the number of bytes that the recorder had cut off.
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

    /// Finds the secrets in a recorded argv without masking them. Each result has the index of an argument and the byte
    /// range of a secret in that argument. The results are in order and do not overlap.
    pub fn find(&self, argv: &Argv) -> Vec<(usize, Range<usize>)> {
        let args: Vec<&[u8]> = argv.args().collect();
        self.found(&argv.bytes, &args, argv.truncated())
    }

    /// Like [`Redactor::find`], but for a command that is given as a list of arguments.
    pub fn find_in_command(&self, command: &[Vec<u8>]) -> Vec<(usize, Range<usize>)> {
        let args: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        self.found(&args.join(&0), &args, false)
    }

    fn found(&self, line: &[u8], args: &[&[u8]], cut: bool) -> Vec<(usize, Range<usize>)> {
        let masks = self.masks(line, args, cut).unwrap_or_default();
        let mut found: Vec<(usize, Range<usize>)> = Vec::new();
        for (arg, part) in masks.into_parts() {
            match found.last_mut() {
                Some((of, last)) if *of == arg && part.start <= last.end => {
                    last.end = last.end.max(part.end);
                }
                _ => found.push((arg, part)),
            }
        }
        found
    }

    /// Like [`Redactor::find`], but for a text that is no command line. Returns the byte ranges of the secrets.
    pub fn find_in_text(&self, text: &[u8]) -> Vec<Range<usize>> {
        let found = self.found(text, &[text], false);
        found.into_iter().map(|(_, part)| part).collect()
    }

    /// Like [`Redactor::find`], but for the text of a shell script. Returns the byte ranges of the secrets.
    pub fn find_in_script(&self, script: &[u8]) -> Vec<Range<usize>> {
        let args = [b"sh", b"-c", script];
        let found = self.found(&args.join(&0), &args, false);
        let in_script = found.into_iter().filter(|(arg, _)| *arg == 2);
        in_script.map(|(_, part)| part).collect()
    }

    /// The arguments of a command with their secrets masked.
    pub fn masked_command(&mut self, command: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let args: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        let Some(masks) = self.masks(&args.join(&0), &args, false) else {
            return command.to_vec();
        };
        let mut masked = Vec::new();
        for (at, arg) in args.iter().enumerate() {
            let mut bytes = Vec::new();
            self.masked += masks.copy(at, arg, &mut bytes);
            masked.push(bytes);
        }
        masked
    }

    /// The parts of the arguments that are to be masked, or `None` if there are none. `line` has all arguments with a
    /// separator between them; `cut` says whether the last one may be incomplete.
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

/// Masks a recorded command line as a whole, and any other recorded text as if it were a command line of one word.
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
