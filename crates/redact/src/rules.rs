//! Applies the rules that find secrets to a recorded command line, word by word. A secret is
//! recognized by its name (`words`, `names`), by its program's options (`programs`), by the form of
//! its value (`forms`), by its place in a URL (`urls`), a header (`headers`), JSON, XML or SQL
//! (`expressions`) or a pipe (`stdin`), or by its looks after other words (`context`).

use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use crate::harmless::is_harmless;
use crate::masks::Masks;
use crate::read::Read;
use crate::words::{self, How, Word};
use crate::{context, expressions, forms, headers, looks, programs, stdin, urls};

/// The depth to which nested scripts (`sh -c "ssh host 'sh -c …'"`) are searched for secrets. A rule reads each byte
/// of a command line at most twice at each depth, because a value in quotes is read once more together with its name.
const DEPTH: usize = 4;

/// Texts that show that a rule may find a secret in the command line that contains one. The case of letters does not
/// matter. [`Rules::may_apply`] also looks for the texts of [`forms::HINTS`], for programs of the table and for
/// values that look like a secret.
#[rustfmt::skip]
const HINTS: [&str; 78] = [
    "config:set", "env:set", "&u=", "?u=",
    "pass", "secret", "token", "key", "pw", "cred", "auth", "bearer", "cookie",
    "sig=", "signature", "://", "login", "otp", "identified", "psk", "hmac", "jwt", "pserver",
    "put-parameter", "alias", "http-basic", "sudo -", "cryptsetup", "kinit", "mfa", "_pat=", "_pat\0", "--pat\0", "--pat=", "bundle_", "ident", "pragma", "pin=", "-pin", "jdbc:",
    "akia", "session", "assword", "connect(", "pdo(", "su -c", "-u\0", "-user\0", "-u ", "/u\0", "/u ", "register ", "register\0", "unlock", "-user ", "-user=", "access_code", "mnemonic", "dsn", "htdigest", "<<<", "| su ", "|su ", "username", "users ", "users\0", "admins ", "admins\0",
    "-seed\0", "-seed ", "db_connect", "using '", "changeme", "changeit", "letmein", "qwerty", "hunter", "swordfish",
];

/// Fast searches that show whether a command line, or one of its words, can contain a secret at all.
#[derive(Clone, Debug)]
pub struct Rules {
    hints: AhoCorasick,
    forms: AhoCorasick,
}

impl Rules {
    #[allow(clippy::expect_used)] // of constants
    pub fn new() -> Rules {
        let search = |words: &[&str], kind| {
            let mut builder = AhoCorasick::builder();
            let search = builder
                .kind(Some(kind))
                .ascii_case_insensitive(true)
                .build(words);
            search.expect("a list of 200 words is not too large")
        };
        Rules {
            // Every command line is searched for the hints, so a DFA is used, which takes half the time of an NFA.
            hints: search(&[&HINTS[..], &forms::HINTS].concat(), AhoCorasickKind::DFA),
            forms: search(&forms::HINTS, AhoCorasickKind::ContiguousNFA),
        }
    }

    /// Whether any rule can find a secret in this command line. A false result saves the actual search.
    pub fn may_apply(&self, line: &[u8], args: &[&[u8]]) -> bool {
        let mut pairs = args.iter().zip(args.iter().skip(1));
        let token = |arg: &&[u8]| forms::may_be_discord(arg) || forms::may_be_token(arg);
        self.hints.is_match(line)
            || pairs.any(|(option, value)| may_be_generated(option, value))
            || args.iter().any(|arg| may_hold(arg) || token(arg))
    }

    /// Finds the secrets among the arguments of a command line and adds them to `masks`. `cut` is
    /// whether the last argument may be incomplete.
    pub fn apply(&self, args: &[&[u8]], cut: bool, masks: &mut Masks) {
        let words = args.iter().enumerate().map(|(arg, text)| Word {
            arg,
            at: 0,
            text,
            first: arg == 0,
        });
        let words: Vec<Word<'_>> = words.collect();
        self.line(&words, DEPTH, false, masks);
        if let (true, Some(last)) = (cut, words.last()) {
            masks.extend(last, urls::cut(last.text));
        }
    }

    /// Finds the secrets in a command line or in the words of a script. `depth` is the number of further levels of
    /// nested scripts that are searched, and `printed` is whether the words are text that a program prints.
    fn line(&self, words: &[Word<'_>], depth: usize, printed: bool, masks: &mut Masks) {
        let mut read = Read::new(words);
        let mut last: Option<&Word<'_>> = None;
        for (at, word) in words.iter().enumerate() {
            if word.first {
                read.end(last, masks);
                read = Read::new(words.get(at..).unwrap_or_default());
            }
            last = Some(word);
            if read.secret(word, masks) {
                continue;
            }
            let text = word.text;
            let option = read.previous;
            if read.is_text(text) {
                self.known(word, true, masks);
                let coded =
                    |part: &Range<usize>| text.get(part.clone()).is_some_and(looks::is_code);
                masks.extend(word, words::assignments(text).into_iter().filter(coded));
                read.previous = text;
                continue;
            }
            let script = words::is_script(option, text) && !read.options.is_plain();
            let part = words::replacement(word);
            if let Some((part, true)) = &part {
                masks.add(part, 0..part.text.len());
            }
            let part = part.as_ref().map_or(word, |(part, _)| part);
            let printed = printed || read.options.prints();
            let again = depth > 0 && text.iter().any(|b| b" \t\n;".contains(b));
            // A script with a here-document is also searched as a whole for assignments and headers, because the
            // lines of the here-document may be YAML.
            let words = script && again && !text.windows(2).any(|part| part == b"<<");
            let how = match (words, printed) {
                (true, _) => How::Script,
                (_, true) => How::Printed,
                _ => How::Value,
            };
            self.word(part, &read, how, masks);
            let quoted = words::quoted_value(word);
            if let Some((name, value)) = &quoted {
                read.previous = name;
                self.word(value, &read, how, masks);
            }
            if again {
                let script = quoted.map_or(*word, |(_, value)| value);
                self.line(&words::split(&script), depth - 1, printed, masks);
            }
            read.previous = text;
        }
        read.end(last, masks);
    }

    /// Finds the secrets inside one word of a command line.
    fn word(&self, word: &Word<'_>, read: &Read<'_>, how: How, masks: &mut Masks) {
        let text = word.text;
        let value = |part: &Range<usize>| text.get(part.clone()).unwrap_or_default();
        if how != How::Script && !read.options.takes_name(text) {
            let found = words::assignments(text).into_iter();
            masks.extend(word, found.filter(|part| how.is_secret(value(part))));
        }
        let from = b"pass:".len();
        if text.starts_with(b"pass:")
            && !text.contains(&b' ')
            && !is_harmless(value(&(from..text.len())))
        {
            masks.add(word, from..text.len());
        }
        self.known(word, false, masks);
        context::mask(word, read, masks);
        if text.contains(&b':') && how != How::Script {
            let option =
                matches!(read.previous, b"-H" | b"--header" | b"--headers") || read.options.sends();
            headers::mask(word, option, how, masks);
        }
        expressions::find(text, |part| masks.add(word, part));
        stdin::find(text, |part| masks.add(word, part));
    }

    /// Finds the secrets of known forms, such as tokens, and the passwords in URLs, in a word of a command line.
    /// `prose` is whether the word is text for people or a pattern.
    fn known(&self, word: &Word<'_>, prose: bool, masks: &mut Masks) {
        let text = word.text;
        if self.forms.is_match(text) || forms::may_be_bare(text) || forms::may_be_token(text) {
            masks.extend(word, forms::find(text));
        }
        if text.contains(&b':') {
            // In text for people, `user:pass@` is an example and no secret.
            let example = |part: &Range<usize>| {
                let text = text.get(part.clone()).unwrap_or_default();
                prose && (text == b"pass" || text == b"password")
            };
            let found = urls::credentials(text);
            masks.extend(word, found.filter(|part| !example(part)));
            masks.extend(word, urls::hooks(text));
        }
    }
}

/// Whether a word of a command line is a short option joined with a value that can matter for the search
/// ([`may_be_generated`]): `-k=X`.
fn joins_generated(word: &[u8]) -> bool {
    match word {
        [b'-', letter, b'=', value @ ..] => may_be_generated(&[b'-', *letter], value),
        _ => false,
    }
}

/// Whether an argument, or a word of a script in it, names a program for which the table has rules, or may be a
/// token, the value of an option with a secret, or an address with a password.
fn may_hold(arg: &[u8]) -> bool {
    let plain = !arg.iter().any(u8::is_ascii_whitespace);
    if plain {
        return programs::names_program(arg)
            || urls::may_have_password(arg)
            || joins_generated(arg);
    }
    let separates = |b: &u8| b.is_ascii_whitespace() || b"\"'`;|&()".contains(b);
    let mut previous: &[u8] = b"";
    arg.split(separates).any(|word| {
        let generated = may_be_generated(previous, word);
        previous = word;
        generated
            || joins_generated(word)
            || programs::names_program(word)
            || forms::may_be_token(word)
            || urls::may_have_password(word)
    })
}

/// Whether an option and its value can matter for the search. Examples are `-p X` where X looks like a password or a
/// token, `-C me:X`, and the port in `-P 25575`. The port matters because it shows that a later `-p X` is no port, so
/// that X may be a password.
fn may_be_generated(option: &[u8], value: &[u8]) -> bool {
    let [b'-', letter, ..] = option else {
        return false;
    };
    let looks = || {
        looks::is_generated(value)
            || looks::is_password(value)
            || looks::is_common_password(value)
            || option == b"-p" && looks::is_simple_password(value)
    };
    words::may_take_password(option) && looks()
        || option.len() == 2
            && (*letter == b'P' && value.iter().all(u8::is_ascii_digit)
                || words::name_and_password(option, value).is_some())
}
