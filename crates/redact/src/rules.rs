//! The rules that recognize a secret in a command line: by its name (`words`), by the
//! form of its value, by its place in a URL, a header or JSON.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, BuildError};
use regex::bytes::Regex;

use crate::words::{self, is_secret, Word};
use crate::Masks;

/// Nested scripts (`sh -c "ssh host 'sh -c …'"`) are read to this depth. So each rule
/// reads a byte of the command line at most `DEPTH + 1` times.
const DEPTH: usize = 4;

/// No rule applies to a command line without one of these, in upper or lower case. Most
/// command lines cost this one search. Tests compare it with the rules.
#[rustfmt::skip]
const HINTS: [&str; 24] = [
    "pass", "secret", "token", "key", "pwd", "cred", "auth", "bearer", "cookie", "sig=",
    "signature", "://", "mysql", "mariadb", "curl", "redis-cli", "mongo", "ldap", "smbclient",
    "zip", "7z", "openssl", "twine", "login",
];

/// A word with one of these may hold a token of a known form, or a private key.
#[rustfmt::skip]
const FORM_HINTS: [&str; 18] = [
    "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "sk-", "sk_", "npm_",
    "pypi-", "dckr_pat_", "hf_", "aiza", "eyj", "age-", "-----begin",
];

/// `scheme://user:password@host`: a password as in RFC 3986, or one with characters that
/// should have been encoded.
static URL: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r#"(?-u)://[^\s/?#:@"']*:([^\s"'/?#]+)@|://[^\s/?#:@"']*:([^\s"'@]+)@"#)
});

/// The same, cut off before its end.
static CUT_URL: LazyLock<Regex> =
    LazyLock::new(|| compiled(r#"(?-u)://[^\s/?#:@"']*:([^\s"'@/?#]+)$"#));

/// `"name": "value"`.
static JSON: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r#"(?-u)["']([A-Za-z0-9_.-]+)\\?["']\s*:\s*\\?["']((?:[^"'\\]|\\.)*)"#)
});

/// `Name: value` at the start of an argument, with or without `-H` before it.
static HEADER: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"(?i-u)^(?:-H\s*|--header=)?([a-z0-9_-]+):(\s*)(\S[^\r\n]*)"));

/// Headers whose value is a secret, in addition to the secret names.
const SECRET_HEADERS: [&str; 4] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
];

/// Tokens of a known form.
static FORMS: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?-u)\bgh[pousr]_[A-Za-z0-9]{16,}",
        r"|\bgithub_pat_[A-Za-z0-9_]{16,}",
        r"|\bglpat-[A-Za-z0-9_-]{16,}",
        r"|\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
        r"|\bsk[-_][A-Za-z0-9_-]{20,}",
        r"|\bnpm_[A-Za-z0-9]{30,}",
        r"|\bpypi-[A-Za-z0-9_-]{30,}",
        r"|\bdckr_pat_[A-Za-z0-9_-]{16,}",
        r"|\bhf_[A-Za-z0-9]{20,}",
        r"|\bAIza[A-Za-z0-9_-]{30,}",
        r"|\bAGE-SECRET-KEY-[A-Z0-9]+",
        r"|\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*",
        r"|-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*)",
    ))
});

/// Compiles a constant expression, when a command line first needs it: most builds never
/// do, and all of them take a ms. Tests compile each.
#[allow(clippy::expect_used)]
fn compiled(text: &str) -> Regex {
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
            hints: search(&[&HINTS[..], &FORM_HINTS].concat())?,
            forms: search(&FORM_HINTS)?,
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
        let mut options = words::Options::default();
        let mut previous: &[u8] = b"";
        for word in words {
            let text = word.text;
            let is_value = std::mem::take(&mut options.next_is_secret);
            if is_value && !words::is_option(text) {
                masks.extend(word, std::iter::once(0..text.len()));
                previous = text;
                continue;
            }
            match options.see(text) {
                Some(from) => masks.extend(word, std::iter::once(from..text.len())),
                None if words::names_secret(text) => options.next_is_secret = true,
                None => {}
            }
            self.word(word, words::is_script(previous, text), masks);
            if depth > 0 && text.iter().any(|b| b" \t\n;".contains(b)) {
                self.line(&words::split(word), depth - 1, masks);
            }
            previous = text;
        }
    }

    /// The secrets inside one word.
    fn word(&self, word: &Word<'_>, script: bool, masks: &mut Masks) {
        let text = word.text;
        masks.extend(word, words::assignments(text, script));
        if text.starts_with(b"pass:") {
            masks.extend(word, std::iter::once(b"pass:".len()..text.len()));
        }
        if self.forms.is_match(text) {
            masks.extend(word, FORMS.find_iter(text).map(|found| found.range()));
        }
        // Headers, JSON and URLs have a colon.
        if text.contains(&b':') {
            header(word, masks);
            json(word, masks);
            let secret = |found: regex::bytes::Captures<'_>| {
                found.get(1).or(found.get(2)).map(|m| m.range())
            };
            masks.extend(word, URL.captures_iter(text).filter_map(secret));
        }
    }
}

fn header(word: &Word<'_>, masks: &mut Masks) {
    let Some(header) = HEADER.captures(word.text) else {
        return;
    };
    let group = |n| header.get(n).map_or(&b""[..], |m| m.as_bytes());
    let name = group(1);
    let known = |header: &&str| name.eq_ignore_ascii_case(header.as_bytes());
    if SECRET_HEADERS.iter().any(known) || !group(2).is_empty() && is_secret(name) {
        masks.extend(word, header.get(3).map(|value| value.range()));
    }
}

fn json(word: &Word<'_>, masks: &mut Masks) {
    for found in JSON.captures_iter(word.text) {
        if let (Some(name), Some(value)) = (found.get(1), found.get(2)) {
            if is_secret(name.as_bytes()) {
                masks.extend(word, [value.range()]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_expression_compiles() {
        for expression in [&URL, &CUT_URL, &JSON, &HEADER, &FORMS] {
            assert!(!expression.is_match(b"x"));
        }
    }
}
