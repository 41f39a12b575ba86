//! Finds secrets in command lines of programs that expect them in special places: after a short
//! option, or at a position. The table of these places is `programs.txt`.

mod table;

use crate::harmless::is_harmless;
use crate::looks;
use crate::names::{self, Certainty};
use crate::words::{self, Word};
use table::{base, Only, Place, Program, ProgramKind, Rule, TABLE};

/// Options whose value is the name of a user, a host or a container. Such a value is not taken for
/// the name of a program, even if a program has that name.
#[rustfmt::skip]
const NAME_OPTIONS: [&str; 9] = [
    "-u", "--user", "--username", "-U", "--name", "--host", "--hostname", "--network",
    "--network-alias",
];

/// Whether a word of a command line names a program for which the table of secrets' places has a rule.
pub fn names_program(word: &[u8]) -> bool {
    TABLE
        .named(word)
        .is_some_and(|program| !program.rules.is_empty())
}

/// Whether a word of a command line contains a secret, or shows that the next word is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SecretPlace {
    /// The word of the command line contains no secret, and none follows it.
    #[default]
    No,
    /// The word of the command line contains a secret, which extends from this byte to the word's end.
    From(usize),
    /// The secret is the next word of the command line or, if a character is given, the part of the next word after
    /// that character.
    Next(Option<u8>),
}

impl SecretPlace {
    /// The first result that is not [`SecretPlace::No`]. The iterator is read to its end even after this result,
    /// because each of the iterator's steps changes the state of a rule.
    fn first(found: impl Iterator<Item = SecretPlace>) -> SecretPlace {
        found.fold(SecretPlace::No, |first, found| match first {
            SecretPlace::No => found,
            _ => first,
        })
    }
}

/// A rule for the secrets in a program's command line, and how far this command line was read by the rule.
struct Active {
    rule: &'static Rule,
    /// How many subcommands of the rule the command line has had so far.
    path: usize,
    /// Whether the rule does not apply, because the command line has another word than the expected subcommand, or
    /// because another command follows.
    failed: bool,
    /// The least and the greatest possible number of words so far after the subcommands, without options and their
    /// values. The two numbers differ after an unknown option, because the next word may be the option's value.
    words: (usize, usize),
    /// Whether the previous word of the command line was the name of a secret. Some rules depend on this.
    named: bool,
}

/// The facts about one word of a command line that are known from this word and the previous one.
#[derive(Clone, Copy, Debug)]
struct State {
    is_option: bool,
    /// Whether the previous word of the command line was an option without a value in the same word.
    after_option: bool,
    /// Whether the previous word of the command line was an option whose value is this word and is no secret.
    is_value: bool,
}

/// Reads a command line from left to right and finds secrets by the rules of the table for the programs in it.
#[derive(Default)]
pub struct Options<'a> {
    /// The words of the present command, followed by the words of later commands on the same line.
    line: &'a [Word<'a>],
    kind: ProgramKind,
    active: Vec<Active>,
    /// Whether a program is expected as the next word of the command line, so that even a short word, such as `su`, may
    /// be its name.
    ready: bool,
    /// Whether the word of the command line that was read last was a subcommand of its program.
    subcommand: bool,
    /// Whether the word of the command line that was read last was an option without a value in the same word.
    option: bool,
    /// Whether the word of the command line that was read last was an option whose value is the
    /// next word and is no secret.
    value: bool,
    /// Whether the word of the command line that was read last was an option whose value is the
    /// name of a user, a host or a container.
    name: bool,
    /// Whether the command line has the word `install`, so that the words after it are packages and not programs.
    installs: bool,
}

impl<'a> Options<'a> {
    /// The state of the reader at the beginning of a command, before its first word.
    pub fn new(line: &'a [Word<'a>]) -> Options<'a> {
        Options {
            line,
            ready: true,
            ..Options::default()
        }
    }

    /// Whether the words of the command are arbitrary text or patterns, as those of grep are. Then only secrets of
    /// known forms, and assignments whose values look like tokens, are searched in them.
    pub fn reads_text(&self) -> bool {
        self.kind == ProgramKind::Text
    }

    /// Whether words of the command may be HTTP headers (`NAME:VALUE`) that the program sends.
    pub fn sends(&self) -> bool {
        self.kind == ProgramKind::Sends
    }

    /// Whether the program of this command runs another program, which one of the command's words names, as `sudo`
    /// does. An option with a user's name, such as `-u`, then announces no password.
    pub fn runs(&self) -> bool {
        self.kind == ProgramKind::Runs
    }

    /// Whether a rule of the table of programs lists this option of the present command, so that it is known whether
    /// the option's value is a secret.
    pub fn knows(&self, option: &[u8]) -> bool {
        let mut rules = self.read().map(|active| active.rule);
        rules.any(|rule| {
            let mut values = rule.values.iter().chain(&rule.names);
            let place = |place: &Place| matches!(place, Place::Option { name, .. } if name.as_bytes() == option);
            values.any(|value| value.as_bytes() == option) || rule.places.iter().any(place)
        })
    }

    /// Whether the program of this command, such as `git`, runs no other program, so that no word of the command is
    /// taken for the name of one.
    pub fn is_plain(&self) -> bool {
        self.kind == ProgramKind::Plain
    }

    /// Whether the program prints its words, as `echo` does, and does not write them to a file, as `sed -i` does.
    pub fn prints(&self) -> bool {
        if self.kind != ProgramKind::Prints {
            return false;
        }
        let mut words = self.line.iter().take(64).skip(1).peekable();
        while let Some(word) = words.next_if(|word| !word.first) {
            let redirected = word.text.strip_prefix(b"1").unwrap_or(word.text);
            let file = match redirected.strip_prefix(b">") {
                // After a bare `>`, the next word is the file, unless that word begins a new command. In `>&2`, the
                // next word (`2`) begins a new command, because the words are split at the `&`.
                Some(b"") | Some(b">") => words
                    .peek()
                    .filter(|next| !next.first)
                    .map(|next| next.text),
                file => file,
            };
            let in_place = word.text.starts_with(b"-i") || word.text.starts_with(b"--in-place");
            if in_place || file.is_some_and(|file| !file.starts_with(b"/dev/")) {
                return false;
            }
        }
        // If the output is piped to tee or sudo, the output may be written to a file, because sudo may run tee. Only
        // the name of the command after the pipe is examined.
        !words
            .next()
            .is_some_and(|next| matches!(next.text, b"tee" | b"sudo"))
    }

    /// The rules for secrets that apply to the present command line, because all subcommands that these rules require
    /// have been read.
    fn read(&self) -> impl Iterator<Item = &Active> {
        let read = |active: &&Active| !active.failed && active.path == active.rule.path.len();
        self.active.iter().filter(read)
    }

    /// Whether all words of the command after a subcommand are text for people, such as a message.
    pub fn is_text(&self) -> bool {
        self.announces_text(b"*")
    }

    /// Whether the value of this option is text for people, such as a commit message.
    pub fn announces_text(&self, option: &[u8]) -> bool {
        let mut texts = self.read().flat_map(|active| &active.rule.texts);
        texts.any(|text| text.as_bytes() == option)
    }

    /// Notes that the last word of the command line was the value of an option.
    pub fn took_value(&mut self) {
        (self.option, self.value) = (false, false);
    }

    /// Reads the next word of the command line. Returns whether it contains a secret or shows that one follows.
    pub fn see(&mut self, word: &[u8]) -> SecretPlace {
        if self.starts(word) {
            return SecretPlace::No;
        }
        let is_option = word.starts_with(b"-") && word.len() > 1 && word != b"--";
        let state = State {
            is_option,
            after_option: self.option,
            is_value: self.value,
        };
        let value = |active: &Active| {
            let mut values = active.rule.values.iter();
            values.any(|option| option.as_bytes() == word)
        };
        let (option, value) = (
            is_option && !word.contains(&b'='),
            self.active.iter().any(|a| !a.failed && value(a)),
        );
        (self.option, self.value) = (option, value);
        self.name = NAME_OPTIONS.iter().any(|name| name.as_bytes() == word);
        let path = |active: &[Active]| active.iter().map(|a| a.path).sum::<usize>();
        let before = path(&self.active);
        self.installs |= word == b"install";
        let found = self.active.iter_mut().map(|active| active.see(word, state));
        let found = SecretPlace::first(found);
        self.subcommand = path(&self.active) > before;
        found
    }

    /// Whether the last word read was a subcommand of a program in the table.
    pub fn is_subcommand(&self) -> bool {
        self.subcommand
    }

    /// Whether the word is taken for the name of a program, or for an assignment before that name. The first word of
    /// a command is taken for a program even if the table does not have it. The rules of a program that the table has
    /// then apply to the words that follow.
    fn starts(&mut self, word: &[u8]) -> bool {
        if word == b"--" {
            self.ready = self.kind != ProgramKind::Text;
            return false;
        }
        // `ProxyCommand=sshpass` counts as the program that it runs, and not as an assignment.
        let runs = |program: &Program| program.kind == ProgramKind::Runs;
        let assigns = words::is_assignment(word) && !TABLE.named(word).is_some_and(runs);
        let ready = self.ready;
        self.ready = ready && assigns;
        let name = self.name && !ready;
        if self.value
            || name
            || !ready
                && (self.installs
                    || matches!(
                        self.kind,
                        ProgramKind::Plain | ProgramKind::Text | ProgramKind::Prints
                    ))
        {
            return false;
        }
        let inside = |active: &Active| {
            let next = active.rule.path.get(active.path);
            !active.failed && next.is_some_and(|next| is_subcommand(next, word))
        };
        let Some(program) = TABLE
            .named(word)
            .filter(|_| !self.active.iter().any(inside))
        else {
            if ready && !assigns {
                *self = Options {
                    line: self.line,
                    ..Options::default()
                };
            }
            return ready;
        };
        let known = match self.kind {
            _ if ready => true,
            ProgramKind::Runs => true,
            // If the table has rules for the current program, a word that names another program is taken for an
            // argument of the current program, because arguments may have such a name by chance.
            _ => self.active.is_empty() && base(word).len() >= 5 && !program.rules.is_empty(),
        };
        if known {
            let active = |rule: &'static Rule| Active {
                rule,
                path: 0,
                failed: false,
                words: (0, 0),
                named: false,
            };
            let line = self.line;
            let has = |with: &str| {
                line.iter()
                    .take(64)
                    .any(|word| word.text == with.as_bytes())
            };
            let rules = program.rules.iter().filter_map(|at| TABLE.rules.get(*at));
            let rules = rules.filter(|rule| rule.with.is_none_or(has));
            self.active = rules.map(active).collect();
            self.kind = program.kind;
            (self.option, self.value) = (false, false);
        }
        known
    }

    /// Whether the option has a name like that of a secret (`--secret`), but its value is no secret according to the
    /// table of programs.
    pub fn takes_name(&self, option: &[u8]) -> bool {
        let name = option.split(|b| *b == b'=').next().unwrap_or_default();
        let mut names = self.active.iter().flat_map(|active| &active.rule.names);
        names.any(|known| known.as_bytes() == name)
    }

    /// Whether a rule for a subcommand that was read gives the positions of secrets among the words that follow.
    pub fn counts(&self) -> bool {
        let position = |place: &Place| matches!(place, Place::Position { .. });
        let counts = |active: &Active| active.path > 0 && active.rule.places.iter().any(position);
        self.read().any(counts)
    }

    /// Whether, according to the table of programs, the word at the end of the present command is a secret. The answer
    /// is only valid after all words of the command have been read.
    pub fn last_is_secret(&self) -> bool {
        let place = |place: &Place| matches!(place, Place::Last);
        let last = |active: &Active| active.words.1 > 0 && active.rule.places.iter().any(place);
        !self.value && self.read().any(last)
    }
}

impl Active {
    /// Reads a word of the command line by this rule. Returns whether the word contains a secret or
    /// shows that one follows.
    fn see(&mut self, word: &[u8], state: State) -> SecretPlace {
        let State {
            is_option,
            after_option,
            is_value,
        } = state;
        if self.failed || is_value {
            return SecretPlace::No;
        }
        if let Some(next) = self.rule.path.get(self.path) {
            if is_subcommand(next, word) {
                self.path += 1;
            } else if !is_option && !after_option && !next.starts_with('-') {
                self.failed = true;
            }
            return SecretPlace::No;
        }
        // SteamCMD has commands that begin with a plus sign: `+app_update`.
        let command = word.strip_prefix(b"+").is_some_and(|name| {
            !name.is_empty() && name.iter().all(|b| b.is_ascii_lowercase() || *b == b'_')
        });
        // Options of Windows can be joined with a value: `/user:NAME`.
        let colon = word.iter().position(|b| *b == b':').unwrap_or_default();
        let slash = word.strip_prefix(b"/").and_then(|_| word.get(1..colon));
        let slash =
            slash.is_some_and(|name| !name.is_empty() && name.iter().all(u8::is_ascii_alphabetic));
        // If another command follows the command of the rule, the rule does not apply any more.
        if command
            && self
                .rule
                .path
                .last()
                .is_some_and(|last| last.starts_with('+'))
        {
            self.failed = true;
            return SecretPlace::No;
        }
        let counted = !is_option && word != b"--" && !command && !slash;
        if counted {
            self.words.1 += 1;
            self.words.0 += usize::from(!after_option);
        }
        let places = self.rule.places.iter();
        let found = places.map(|place| match place {
            Place::Option {
                name,
                joined,
                apart,
                after,
            } => option(name, word, *joined, *apart, *after),
            Place::Position {
                number,
                rest,
                after,
                only,
            } if counted => {
                let lowest = self.words.0.max(1);
                let here = lowest <= *number && *number <= self.words.1;
                let fits = match only {
                    Only::All => true,
                    Only::Code => looks::is_code(word) || looks::is_careful(word),
                    Only::Named => self.named,
                };
                let fits = fits && (after.is_some() || !is_setting(word));
                if fits && (here || *rest && self.words.1 >= *number) {
                    behind(word, *after)
                } else {
                    SecretPlace::No
                }
            }
            Place::Position { .. } | Place::Last => SecretPlace::No,
        });
        let found = SecretPlace::first(found);
        let asks = |place: &Place| {
            matches!(
                place,
                Place::Position {
                    only: Only::Named,
                    ..
                }
            )
        };
        if self.rule.places.iter().any(asks) {
            self.named = !word.contains(&b'=') && names::secret(word) > Certainty::No;
        }
        found
    }
}

/// Whether a word of the command line is one of the alternative subcommands in `next`, which are separated by commas.
fn is_subcommand(next: &str, word: &[u8]) -> bool {
    next.split(',').any(|one| match one.as_bytes() {
        b"*" => !word.starts_with(b"-"),
        [b'-', flag] => {
            let letters = word.strip_prefix(b"-").unwrap_or_default();
            letters.iter().all(u8::is_ascii_alphabetic) && letters.contains(flag)
        }
        [start @ .., b'*'] => word.starts_with(start),
        one => one.eq_ignore_ascii_case(word),
    })
}

/// Whether a word of the command line is a setting whose value does not look like a password, such as `role=ci`.
/// Settings are ignored when the positions of words are counted.
fn is_setting(word: &[u8]) -> bool {
    let Some(equals) = word.iter().position(|b| *b == b'=') else {
        return false;
    };
    let (name, value) = word.split_at(equals);
    let small = |b: &u8| b.is_ascii_lowercase() || *b == b'_';
    name.len() > 2
        && name.iter().all(small)
        && value
            .get(1..)
            .is_some_and(|value| value.len() > 1 && !looks::is_no_word(value))
}

/// Finds the secret in a word of a command line: the part after the character `after`, or the whole
/// word without such a character.
fn behind(word: &[u8], after: Option<u8>) -> SecretPlace {
    let Some(byte) = after else {
        return SecretPlace::From(0);
    };
    // Oracle's programs take `user/X@database`, where X is the password. A word that begins with `/`, `.` or `@` is a
    // path or a script, and a word `NAME=value` with a name other than `userid` is a setting. These words contain no
    // secret.
    let setting = word.contains(&b'=') && !word.starts_with(b"userid=");
    if byte == b'/' && (word.first().is_none_or(|b| b"@/.".contains(b)) || setting) {
        return SecretPlace::No;
    }
    let at = word.iter().position(|b| *b == byte);
    at.map_or(SecretPlace::No, |at| SecretPlace::From(at + 1))
}

/// Long options that are written with one dash, such as `-password`. They must not be read as a
/// short option with a value in the same word (`-pX`).
#[rustfmt::skip]
const LONG_OPTIONS: [&str; 30] = [
    "password", "pass", "passin", "passout", "path", "port", "prefix", "print", "profile", "project", "properties",
    "pwd", "proxy", "token", "type", "tag", "test", "timeout", "target", "key", "keystore", "keyfile", "secret",
    "store", "auth", "account", "all", "api", "user", "url",
];

fn option(name: &str, word: &[u8], joined: bool, apart: bool, after: Option<u8>) -> SecretPlace {
    let name = name.as_bytes();
    let part = |from: usize| match behind(word.get(from..).unwrap_or_default(), after) {
        SecretPlace::From(at) => SecretPlace::From(from + at),
        _ => SecretPlace::No,
    };
    let Some(rest) = word
        .get(..name.len())
        .filter(|head| head.eq_ignore_ascii_case(name) && exact(name, head))
    else {
        return cluster(name, word, after);
    };
    match word.get(rest.len()..).unwrap_or_default() {
        [] if apart => SecretPlace::Next(after),
        [b'=', _, ..] if name.len() > 2 && !name.ends_with(b"=") => part(name.len() + 1),
        [_, ..] if joined && (!apart || !is_long(word)) => part(name.len()),
        _ => SecretPlace::No,
    }
}

/// Whether the option `head` of a command line is the option `name`, apart from the case of the letters. For short
/// options the case matters. For long options it is ignored, because the case of a long option varies between versions
/// and shells.
fn exact(name: &[u8], head: &[u8]) -> bool {
    name == head || name.len() > 3 && name.starts_with(b"-")
}

fn is_long(word: &[u8]) -> bool {
    let name = word.get(1..).unwrap_or_default();
    let name = name.split(|b| *b == b'=').next().unwrap_or_default();
    LONG_OPTIONS.iter().any(|long| long.as_bytes() == name)
}

/// Finds the option `-u` at the end of a word with several short options, as curl accepts them: `-sSu` is short for
/// `-s -S -u`.
fn cluster(name: &[u8], word: &[u8], after: Option<u8>) -> SecretPlace {
    let letters = word.len() <= 6 && word.iter().skip(1).all(u8::is_ascii_alphanumeric);
    if name == b"-u" && letters && word.starts_with(b"-") && word.ends_with(b"u") && word.len() > 2
    {
        return SecretPlace::Next(after);
    }
    SecretPlace::No
}

/// The position of the secret in this word, if the previous word has announced a secret ([`SecretPlace::Next`]);
/// `None` if the word is harmless or does not contain the character `after`.
pub fn next(word: &[u8], after: Option<u8>) -> Option<usize> {
    let from = match after {
        None => 0,
        Some(byte) => word.iter().position(|b| *b == byte)? + 1,
    };
    let value = word.get(from..)?;
    // In `env:KS_PASS` only a name follows the colon, but in `./client.p12:X` a password follows the path of a file.
    let path = from > 0 && word.first().is_some_and(|b| b"./~".contains(b));
    (!is_harmless(value) && (path || !is_harmless(word))).then_some(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_rule() {
        let lines = include_str!("programs.txt").lines();
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let rule = line.contains(" : ") && !line.ends_with(' ');
            assert!(rule && !line.contains("  "), "{line}");
        }
        for (name, program) in &TABLE.programs {
            assert!(
                name.len() <= 30 && !name.iter().any(u8::is_ascii_uppercase),
                "{name:?}"
            );
            assert!(program.kind != ProgramKind::Open || !program.rules.is_empty());
        }
    }
}
