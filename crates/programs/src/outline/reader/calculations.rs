//! Reads arithmetic commands (`((…))` and `let`) that consist of one comparison of a variable, or that set one
//! variable.

use super::super::tree::Assignment;
use super::super::words::{Expansion, Word};
use crate::words::split_name;

/// The comparison operators of an arithmetic expression. Each has the option of `[` for the same comparison (`-gt` for
/// `>`), and the option of `[` for this comparison with its two sides exchanged (`-lt`). Longer operators come first.
const COMPARISONS: [(&[u8], &[u8], &[u8]); 6] = [
    (b"==", b"-eq", b"-eq"),
    (b"!=", b"-ne", b"-ne"),
    (b">=", b"-ge", b"-le"),
    (b"<=", b"-le", b"-ge"),
    (b">", b"-gt", b"-lt"),
    (b"<", b"-lt", b"-gt"),
];

/// The setting of a variable by an arithmetic expression: `n++`, `n+=1`, `n=2`. `None` if the expression sets no
/// variable.
pub(super) fn setting(expression: &[u8]) -> Option<Assignment> {
    let text = expression.trim_ascii();
    let is_step = |part: &[u8]| matches!(part, b"++" | b"--");
    let name = match text {
        [first, second, name @ ..] if is_step(&[*first, *second]) => name.trim_ascii(),
        _ => {
            let (name, rest) = text.split_at(name_length(text));
            let rest = rest.trim_ascii();
            let sign = rest
                .strip_prefix(b"=")
                .filter(|after| !after.starts_with(b"="));
            let is_set = sign.is_some()
                || matches!(rest, [b'+' | b'-' | b'*' | b'|', b'=', ..])
                || is_step(rest);
            Some(name).filter(|_| is_set)?
        }
    };
    let is_name = !name.is_empty() && name_length(name) == name.len();
    is_name.then(|| Assignment {
        name: name.to_vec(),
        value: Word {
            text: [b"$((", text, b"))"].concat(),
            expansion: Expansion::One,
            ..Word::default()
        },
    })
}

/// The words of a `[` command that tests the same as an arithmetic expression: `$n -gt 0` for `n > 0`. The list is
/// empty if no such command exists.
pub(super) fn test(expression: &[u8]) -> Vec<Word> {
    compared(expression.trim_ascii()).unwrap_or_default()
}

fn compared(text: &[u8]) -> Option<Vec<Word>> {
    let (negated, inside) = match text.strip_prefix(b"!") {
        Some(inside) if !inside.starts_with(b"=") => (true, inside.trim_ascii()),
        _ => (false, text),
    };
    let zero = || literal(b"0");
    if let Some(word) = variable(inside) {
        let operator = if negated { b"-eq" } else { b"-ne" };
        return Some(vec![word, literal(operator), zero()]);
    }
    let at = |sign: &[u8]| inside.windows(sign.len()).position(|part| part == sign);
    let (place, (sign, operator, exchanged)) = COMPARISONS
        .iter()
        .find_map(|known| Some((at(known.0)?, *known)))
        .filter(|_| !negated)?;
    let left = inside.get(..place)?.trim_ascii();
    let right = inside.get(place + sign.len()..)?.trim_ascii();
    match (variable(left), number(left), variable(right), number(right)) {
        (Some(left), _, _, Some(right)) => Some(vec![left, literal(operator), right]),
        (_, Some(left), Some(right), _) => Some(vec![right, literal(exchanged), left]),
        _ => None,
    }
}

/// The shell word for a part of an arithmetic expression: the expansion of a variable, or the number of elements of an
/// array. `None` for any other text.
fn variable(text: &[u8]) -> Option<Word> {
    let is_bare = name_length(text) == text.len() && !text.is_empty();
    let text = if is_bare {
        [b"$", text].concat()
    } else {
        text.to_vec()
    };
    let word = Word {
        text,
        expansion: Expansion::One,
        ..Word::default()
    };
    let is_known = word.variable().or(word.counted()).is_some() || word.text == b"$?";
    is_known.then_some(word)
}

fn number(text: &[u8]) -> Option<Word> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    is_number.then(|| literal(text))
}

fn literal(text: &[u8]) -> Word {
    Word {
        text: text.to_vec(),
        head: text.len(),
        ..Word::default()
    }
}

/// The number of bytes at the beginning of a text that are the name of a variable.
fn name_length(text: &[u8]) -> usize {
    let begins_with_digit = text.first().is_some_and(u8::is_ascii_digit);
    if begins_with_digit {
        0
    } else {
        split_name(text).0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_a_test_or_a_setting() {
        for (expression, want) in [
            ("fails", "$fails -ne 0"),
            ("! fails", "$fails -eq 0"),
            ("fails > 0", "$fails -gt 0"),
            ("$fails>=3", "$fails -ge 3"),
            ("0 < ${#bad[@]}", "${#bad[@]} -gt 0"),
            ("${#bad[@]}", "${#bad[@]} -ne 0"),
            ("$? != 0", "$? -ne 0"),
            ("a + b > 0", ""),
            ("a > 0 && b > 0", ""),
            ("n++", ""),
        ] {
            let words = test(expression.as_bytes());
            let words: Vec<&[u8]> = words.iter().map(|word| word.text.as_slice()).collect();
            assert_eq!(words.join(&b' '), want.as_bytes(), "{expression}");
        }
        for (expression, want) in [
            (" errors++ ", Some("errors")),
            ("++n", Some("n")),
            ("n += 1", Some("n")),
            ("rc |= 4", Some("rc")),
            ("n=2", Some("n")),
            ("n == 2", None),
            ("n > 2", None),
            ("2", None),
        ] {
            let set = setting(expression.as_bytes());
            let name = set.map(|set| set.name);
            assert_eq!(name.as_deref(), want.map(str::as_bytes), "{expression}");
        }
    }
}
