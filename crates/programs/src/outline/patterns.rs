//! Patterns of `case` and of file names.
//! Rules: <https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html#tag_19_14>.

use super::words::Word;

/// Whether the branch with the index `at` of a `case` statement is the one that runs for this text; `None` if a pattern
/// is not known.
pub(super) fn is_chosen(arms: &[Vec<Word>], at: usize, text: &[u8]) -> Option<bool> {
    let own = any_fits(arms.get(at)?, text);
    if own == Some(false) {
        return own;
    }
    let mut is_known = true;
    for before in arms.iter().take(at) {
        match any_fits(before, text) {
            Some(true) => return Some(false),
            Some(false) => {}
            None => is_known = false,
        }
    }
    own.filter(|_| is_known)
}

fn any_fits(patterns: &[Word], text: &[u8]) -> Option<bool> {
    let mut is_known = true;
    for pattern in patterns {
        match fits_word(pattern, text) {
            Some(true) => return Some(true),
            Some(false) => {}
            None => is_known = false,
        }
    }
    is_known.then_some(false)
}

/// Whether a word is a pattern that matches a text; `None` if the word has another expansion than a plain pattern.
fn fits_word(pattern: &Word, text: &[u8]) -> Option<bool> {
    if let Some(literal) = pattern.literal() {
        return Some(literal == text);
    }
    (is_plain(&pattern.text) && !pattern.is_quoted).then(|| fits(&pattern.text, text))
}

/// Whether a text has no bytes that are special to the shell, except those of patterns other than `[:…:]`.
pub(super) fn is_plain(pattern: &[u8]) -> bool {
    let is_special = |byte: &u8| b"$`\\{}()~'\"".contains(byte);
    !pattern.iter().any(is_special) && !crate::words::contains(pattern, b"[:")
}

/// Whether a pattern of `*`, `?` and `[…]` matches a whole text.
pub(super) fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut pattern, mut text) = (pattern, text);
    // If a later part does not match, the comparison returns to the last `*`. `retry` has the pattern after this `*`,
    // and the text with which that pattern was last compared.
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        if let Some(rest) = pattern.strip_prefix(b"*") {
            retry = Some((rest, text));
            pattern = rest;
            continue;
        }
        match (pattern.is_empty(), text.split_first()) {
            (true, None) => return true,
            (false, Some((byte, after))) => {
                let (is_fit, rest) = element(pattern, *byte);
                if is_fit {
                    (pattern, text) = (rest, after);
                    continue;
                }
            }
            _ => {}
        }
        let Some((rest, from)) = retry else {
            return false;
        };
        let Some((_, after)) = from.split_first() else {
            return false;
        };
        retry = Some((rest, after));
        (pattern, text) = (rest, after);
    }
}

/// Whether the first element of a pattern matches a byte. Also returns the pattern after this element.
fn element(pattern: &[u8], byte: u8) -> (bool, &[u8]) {
    let Some((first, rest)) = pattern.split_first() else {
        return (false, pattern);
    };
    match first {
        b'?' => (true, rest),
        b'[' => class(rest, byte).unwrap_or((byte == b'[', rest)),
        first => (*first == byte, rest),
    }
}

/// Whether a byte belongs to a class such as `[a-z]`; `pattern` begins after its `[`. Also returns the pattern after
/// the class; `None` if the class has no end.
fn class(pattern: &[u8], byte: u8) -> Option<(bool, &[u8])> {
    let is_negated = matches!(pattern.first(), Some(b'!' | b'^'));
    let mut rest = pattern.get(usize::from(is_negated)..)?;
    let mut is_inside = false;
    let mut is_first = true;
    loop {
        match rest {
            [b']', after @ ..] if !is_first => return Some((is_inside != is_negated, after)),
            [from, b'-', to, after @ ..] if *to != b']' => {
                is_inside |= (*from..=*to).contains(&byte);
                rest = after;
            }
            [one, after @ ..] => {
                is_inside |= *one == byte;
                rest = after;
            }
            [] => return None,
        }
        is_first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, text, want) in [
            ("*", "", true),
            ("*.sh", "a.sh", true),
            ("*.sh", "a.sh~", false),
            ("1??", "124", true),
            ("1??", "12", false),
            ("[1-9]*", "124", true),
            ("[!0]", "0", false),
            ("[0-9]*-*.sh", "10-a-b.sh", true),
            ("[]a]", "]", true),
            ("[a", "[a", true),
            ("a*b*c", "aXbXbXc", true),
            ("a*b*c", "aXbXb", false),
        ] {
            let found = fits(pattern.as_bytes(), text.as_bytes());
            assert_eq!(found, want, "{pattern} {text}");
        }
    }
}
