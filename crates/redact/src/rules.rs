//! The rules that recognize a secret in a command line: by its name (`words`), by its
//! program's options (`programs`), by the form of its value (`forms`), by its place in a URL,
//! a header, JSON, SQL or a pipe.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, BuildError};
use regex::bytes::{Captures, Regex};

use crate::names::{self, is_harmless, Sure};
use crate::programs::{self, Found, Options};
use crate::words::{self, Word};
use crate::{forms, Masks};

/// Nested scripts (`sh -c "ssh host 'sh -c …'"`) are read to this depth. So each rule
/// reads a byte of the command line at most `DEPTH + 1` times.
const DEPTH: usize = 4;

/// No rule applies to a command line without one of these, in upper or lower case. Most
/// command lines cost this one search. Tests compare it with the rules.
#[rustfmt::skip]
const HINTS: [&str; 66] = [
    "pass", "secret", "token", "key", "pwd", "_pw", "-pw", "cred", "auth", "bearer", "cookie",
    "sig=", "signature", "://", "mysql", "mariadb", "curl", "redis-cli", "mongo", "ldap", "kadmin",
    "smbclient", "zip", "7z", "rar\0", "rar ", "openssl", "twine", "login", "-otp", "identified",
    "pserver", "http\0", "http ", "https\0", "https ", "xh\0", "xhs\0", "lftp", "open -u",
    "put-parameter", "sqlcmd", "bcp\0", "bcp ", "isql", "tsql", "p4\0", "p4 ", "ipmitool",
    "sqlplus", "expdp", "impdp", "rman\0", "snmp", "pdf", "cqlsh", "cypher", "useradd", "usermod",
    "altool", "freerdp", "rdesktop", "swaks", "security", "signtool", "sudo -s",
];

/// Programs and words with a rule, beside [`HINTS`].
const MORE_HINTS: [&str; 8] = [
    "nuget",
    "cypress",
    "vault",
    "snyk",
    "rclone",
    "alias",
    "rabbitmqctl",
    "http-basic",
];

/// `scheme://user:password@host`: a password as in RFC 3986, or one with characters that
/// should have been encoded; or a token alone as the user.
static URL: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r#"(?-u)://[^\s/?#:@"']*:([^\s"'/?#]+)@|://[^\s/?#:@"']*:([^\s"'@]+)@"#,
        r"|https?://([A-Za-z0-9_~=+-]{16,})@|:pserver:[^\s:@]*:([^\s@]+)@",
    ))
});

/// The same, cut off before its end.
static CUT_URL: LazyLock<Regex> =
    LazyLock::new(|| compiled(r#"(?-u)://[^\s/?#:@"']*:([^\s"'@/?#]+)$"#));

/// `"name": "value"`, `name = 'value'`, `ENV['name'] = "value"`; the same with escaped quotes.
static QUOTED: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r#"(?-u)([A-Za-z0-9_.-]+)(?:\\?["'])?\]?\s*(?::=?|=>?)\s*(?:"#,
        r#"\\["']([^"'\\\s;&|)][^"'\\]*)\\["']"#,
        r#"|"([^"\\\s;&|)](?:[^"\\]|\\.)*)"|'([^'\\\s;&|)](?:[^'\\]|\\.)*)')"#,
    ))
});

/// `Name: value`, at the start of an argument, a line, a quoted text or a value; with or
/// without `-H` before it.
static COLON: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r#"(?i-u)(?:^|[\s"'=]|\\n)(-H\s*)?([a-z0-9_-]+):([ \t]*)([^\s"'\\]+)"#)
});

/// Headers whose value is a secret to its end, in addition to the secret names.
const SECRET_HEADERS: [&str; 4] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
];

/// Headers whose value is a secret, with or without a blank after the colon.
const SECRET_FIELDS: [&str; 6] = [
    "private-token",
    "job-token",
    "deploy-token",
    "x-auth",
    "x-auth-key",
    "x-jfrog-art-api",
];

/// SQL, netrc: `PASSWORD 'X'`, `IDENTIFIED BY 'X'`, `login me password X`.
static STATEMENT: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i-u)\b(?:password|identified(?:\s+with\s+\w+)?\s+by(?:\s+password)?)",
        r"\s*[=(]?\s*\\?'([^'\\]+)|\blogin\s+\S+\s+password\s+([^\s\\]+)",
    ))
});

/// `echo X | docker login --password-stdin`: up to the pipe; the program after it.
static PIPED: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r#"(?-u)\b(?:echo|printf)\s+(?:-[neE]+\s+)?(?:["']?%s(?:\\n)?["']?\s+)?"#,
        r#"(?:"([^"|]*)"|'([^'|]*)'|([^\s"'|;&]+))\s*\|([^|;&\n]*)"#,
    ))
});

/// Programs that read a secret from standard input.
static READS_SECRET: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?-u)--password-stdin|--with-token|\bchpasswd\b|\bpasswd\s+--stdin|\bsudo\s+-S\b",
        r"|--passphrase-fd|-pass(?:in|out)?\s+stdin|--token-stdin|--api-key-stdin",
    ))
});

/// Compiles a constant expression, when a command line first needs it: most builds never
/// do, and all of them take a ms. Tests compile each.
#[allow(clippy::expect_used)]
pub fn compiled(text: &str) -> Regex {
    Regex::new(text).expect("a constant expression is a valid one")
}

/// The searches for hints.
#[derive(Clone, Debug)]
pub struct Rules {
    hints: AhoCorasick,
    forms: AhoCorasick,
}

impl Rules {
    /// Compiles the searches.
    ///
    /// # Errors
    /// The list of hints is too large.
    pub fn new() -> Result<Rules, BuildError> {
        let search = |words: &[&str]| {
            let mut builder = AhoCorasick::builder();
            builder.ascii_case_insensitive(true).build(words)
        };
        Ok(Rules {
            hints: search(&[&HINTS[..], &MORE_HINTS, &forms::HINTS].concat())?,
            forms: search(&forms::HINTS)?,
        })
    }

    /// A rule may apply to this command line.
    pub fn may_apply(&self, line: &[u8]) -> bool {
        self.hints.is_match(line)
    }

    /// Masks the secrets among the arguments; `cut`: the last one may lack its end.
    pub fn apply(&self, args: &[&[u8]], cut: bool, masks: &mut Masks) {
        let args = args.iter().enumerate();
        let words: Vec<Word<'_>> = args.map(|(arg, text)| Word { arg, at: 0, text }).collect();
        self.line(&words, DEPTH, masks);
        if let (true, Some(last)) = (cut, words.last()) {
            let secret = CUT_URL.captures(last.text).and_then(|found| found.get(1));
            masks.extend(last, secret.map(|secret| secret.range()));
        }
    }

    /// A command line, or the words of a script.
    fn line(&self, words: &[Word<'_>], depth: usize, masks: &mut Masks) {
        let (mut options, mut previous) = (Options::default(), &b""[..]);
        let mut next = Found::No;
        // After `config` and `set`, a name and a value are two words.
        let mut sets = false;
        for word in words {
            let text = word.text;
            if let Found::Next(after) = std::mem::take(&mut next) {
                if let (false, Some(from)) = (words::is_option(text), programs::next(text, after)) {
                    masks.add(word, from..text.len());
                    previous = text;
                    continue;
                }
            }
            next = options.see(text);
            match next {
                Found::From(from) if !is_harmless(text.get(from..).unwrap_or_default()) => {
                    masks.add(word, from..text.len());
                }
                Found::No => {
                    let named = words::names_secret(text) && !options.takes_name(text);
                    let set = (sets || previous == b"--arg") && words::sets_secret(text);
                    next = if named || set {
                        Found::Next(None)
                    } else {
                        Found::No
                    };
                }
                _ => {}
            }
            sets |= [&b"set"[..], b"config", b"configure"].contains(&text);
            sets &= text != b"get";
            let script = words::is_script(previous, text);
            self.word(word, previous, script, masks);
            if depth > 0 && text.iter().any(|b| b" \t\n;".contains(b)) {
                self.line(&words::split(word), depth - 1, masks);
            }
            previous = text;
        }
        if let (true, Some(last)) = (options.last_is_secret(), words.last()) {
            masks.add(last, 0..last.text.len());
        }
    }

    /// The secrets inside one word.
    fn word(&self, word: &Word<'_>, previous: &[u8], script: bool, masks: &mut Masks) {
        let text = word.text;
        masks.extend(word, words::assignments(text, script));
        if text.starts_with(b"pass:") && !text.contains(&b' ') {
            masks.add(word, b"pass:".len()..text.len());
        }
        if self.forms.is_match(text) {
            masks.extend(word, forms::find(text));
        }
        let has = |byte: u8| text.contains(&byte);
        if has(b':') {
            masks.extend(
                word,
                URL.captures_iter(text).filter_map(|found| of_url(&found)),
            );
            if !words::announces_prose(previous) {
                colons(word, previous, masks);
            }
        }
        if (has(b':') || has(b'=')) && (has(b'"') || has(b'\'')) {
            masks.extend(
                word,
                QUOTED
                    .captures_iter(text)
                    .filter_map(|found| of_quoted(&found)),
            );
        }
        if has(b' ') {
            let first = |found: Captures<'_>| {
                let group = found.iter().skip(1).flatten().next();
                group
                    .filter(|m| !is_harmless(m.as_bytes()))
                    .map(|m| m.range())
            };
            masks.extend(word, STATEMENT.captures_iter(text).filter_map(first));
        }
        if has(b'|') {
            masks.extend(
                word,
                PIPED
                    .captures_iter(text)
                    .filter_map(|found| of_pipe(&found)),
            );
        }
    }
}

/// The first group that matched.
fn first_group<'t>(found: &Captures<'t>, groups: Range<usize>) -> Option<regex::bytes::Match<'t>> {
    groups.into_iter().find_map(|n| found.get(n))
}

fn of_url(found: &Captures<'_>) -> Option<Range<usize>> {
    let secret = first_group(found, 1..5)?;
    let text = secret.as_bytes();
    if found.get(2).is_some() {
        // `http://host:80/a@b` has a port and a path.
        let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
        if text.get(digits).is_some_and(|b| b"/?#".contains(b)) {
            return None;
        }
    }
    let mixed = text.iter().any(u8::is_ascii_digit) && text.iter().any(u8::is_ascii_alphabetic);
    if found.get(3).is_some() && !mixed {
        return None;
    }
    (!is_harmless(text)).then(|| secret.range())
}

fn of_quoted(found: &Captures<'_>) -> Option<Range<usize>> {
    let (name, value) = (found.get(1)?, first_group(found, 2..5)?);
    let secret = names::secret(name.as_bytes()) > Sure::No && !is_harmless(value.as_bytes());
    secret.then(|| value.range())
}

fn of_pipe(found: &Captures<'_>) -> Option<Range<usize>> {
    let secret = first_group(found, 1..4)?;
    if is_harmless(secret.as_bytes()) || !READS_SECRET.is_match(found.get(4)?.as_bytes()) {
        return None;
    }
    // `user:password` of chpasswd.
    let name = secret.as_bytes().iter().position(|b| *b == b':');
    Some(secret.start() + name.map_or(0, |at| at + 1)..secret.end())
}

/// Headers, and lines of YAML.
fn colons(word: &Word<'_>, previous: &[u8], masks: &mut Masks) {
    let (text, mut at) = (word.text, 0);
    let option = previous == b"-H" || previous == b"--header";
    while let Some(found) = COLON.captures_at(text, at) {
        let (Some(name), Some(blank), Some(value)) = (found.get(2), found.get(3), found.get(4))
        else {
            return;
        };
        let is = |list: &[&str]| {
            let name = name.as_bytes();
            list.iter()
                .any(|known| known.as_bytes().eq_ignore_ascii_case(name))
        };
        at = value.end();
        if is(&SECRET_HEADERS) {
            let rest = text.get(value.start()..).unwrap_or_default();
            let ends = |b: &u8| b"\r\n\"'".contains(b);
            let line = rest.iter().position(ends).unwrap_or(rest.len());
            let last = rest.get(..line).unwrap_or_default();
            let last = last.rsplit(|b| *b == b' ').next().unwrap_or_default();
            if !is_harmless(last) {
                masks.add(word, value.start()..value.start() + line);
            }
            at = value.start() + line;
            continue;
        }
        // Text for people has more than one word.
        let after = text.get(at..).unwrap_or_default();
        let next = after.iter().find(|b| !b" \t".contains(b));
        let alone = next.is_none_or(|b| b"\r\n\\\"',;}#&|".contains(b));
        let strong = names::secret(name.as_bytes()) == Sure::Strong;
        let header = option || found.get(1).is_some() || !blank.is_empty();
        let secret = is(&SECRET_FIELDS) || strong && header && (alone || option);
        if secret && !is_harmless(value.as_bytes()) {
            masks.add(word, value.range());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_expression_compiles() {
        for expression in [
            &URL,
            &CUT_URL,
            &QUOTED,
            &COLON,
            &STATEMENT,
            &PIPED,
            &READS_SECRET,
        ] {
            assert!(!expression.is_match(b"x"));
        }
    }
}
