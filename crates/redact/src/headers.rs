//! Finds secrets in HTTP headers and in lines of YAML (`NAME: VALUE`) on a recorded command line.

use std::sync::LazyLock;

use regex::bytes::{Match, Regex};

use crate::harmless::is_harmless;
use crate::looks;
use crate::masks::Masks;
use crate::matching::compiled;
use crate::names::{self, Certainty};
use crate::words::{How, Word};

/// Matches an HTTP header `Name: value` at the beginning of an argument, a line, a quoted text or a
/// value, with or without `-H` before it.
static COLON: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r#"(?i-u)(?:^/?|[\s"'=]|\\n)(-H\s*)?([a-z0-9_-]+):([ \t]*)([^\s"'\\]+)"#)
});

/// The names of HTTP headers whose whole value is a secret, beside names that contain a word such as `token`.
const SECRET_HEADERS: [&str; 4] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
];

/// The names of HTTP headers that have a secret as their value, whether or not a blank follows the colon (`NAME:X`,
/// `NAME: X`).
const SECRET_FIELDS: [&str; 6] = [
    "private-token",
    "job-token",
    "deploy-token",
    "x-auth",
    "x-auth-key",
    "x-jfrog-art-api",
];

/// Masks the secrets in the HTTP headers and the lines of YAML in a word of a command line. `option` is whether the
/// word is taken for a header, because it follows `-H` or its program sends headers.
pub fn mask(word: &Word<'_>, option: bool, how: How, masks: &mut Masks) {
    let (text, mut at) = (word.text, 0);
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
            let credentials = last.splitn(2, |b| *b == b' ').last().unwrap_or_default();
            let last = last.rsplit(|b| *b == b' ').next().unwrap_or_default();
            if !is_harmless(last) && !is_harmless(credentials) {
                masks.add(word, value.start()..value.start() + line);
            }
            at = value.start() + line;
            continue;
        }
        // In text for people, a colon after a name is mostly followed by several words, as in `token: see below`. So it
        // matters whether the value is a single word (`alone`).
        let after = text.get(at..).unwrap_or_default();
        let next = after.iter().find(|b| !b" \t".contains(b));
        let alone = next.is_none_or(|b| b"\r\n\\\"',;}#&|".contains(b));
        let strong = names::secret(name.as_bytes()) == Certainty::Strong;
        let header = option || found.get(1).is_some() || !blank.is_empty();
        let env =
            start_of_word(found.get(0)) && name.as_bytes().iter().all(|b| !b.is_ascii_lowercase());
        let coded = strong && env && value.end() == text.len() && !is_harmless(value.as_bytes())
            || strong && looks::is_code(value.as_bytes());
        // An option of Windows can be joined with its secret: `/TargetPassword:X`.
        let slash = strong && text.starts_with(b"/") && start_of_word(found.get(0));
        let before = text.get(..name.start()).unwrap_or_default();
        let header = header && (option || found.get(1).is_some() || !is_prose(before));
        let key = option
            && names::is_key(name.as_bytes())
            && (looks::is_code(value.as_bytes()) || looks::is_careful(value.as_bytes()));
        // Some headers have the token of a service although their names do not show that, for example
        // `X-Ovh-Consumer`.
        let lower = name.as_bytes().to_ascii_lowercase();
        let random = option && looks::is_random(value.as_bytes());
        let token = random && lower.starts_with(b"x-") && !lower.ends_with(b"id");
        let secret = is(&SECRET_FIELDS)
            || strong && header && (alone || option)
            || coded
            || key
            || token
            || slash;
        if secret && !is_harmless(value.as_bytes()) && how.is_secret(value.as_bytes()) {
            // The secret can follow a word, as in `X-Sensu-Token: Key X`. Then both the word and the secret are masked.
            let next = after.strip_prefix(b" ").unwrap_or_default();
            let rest = next.len() - next.trim_ascii_start().len();
            let scheme = option && rest == 0 && looks::is_code(next);
            let end = if scheme { text.len() } else { value.end() };
            masks.add(word, value.start()..end);
        }
    }
}

/// Whether the text before a name shows that the name belongs to a sentence, and not to a line of YAML or JSON.
fn is_prose(before: &[u8]) -> bool {
    let last = before.iter().rev().find(|b| !b" \t".contains(b));
    last.is_some_and(u8::is_ascii_alphanumeric) && !before.trim_ascii_end().ends_with(b"\\n")
}

/// Whether a regular expression's match begins at the start of the word that was searched.
fn start_of_word(found: Option<Match<'_>>) -> bool {
    found.is_some_and(|found| found.start() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expression_compiles() {
        assert!(!COLON.is_match(b"x"));
    }
}
