//! Values that look like a secret, where the word before them lets one expect it.

/// A secret access key of AWS: 40 letters of both cases and digits.
pub fn is_aws_key(text: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| text.iter().any(is);
    text.len() == 40
        && text
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b"+/".contains(b))
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_digit)
}

/// 16 or more digits and letters, also hexadecimal ones: after a word that announces a secret.
pub fn is_code(text: &[u8]) -> bool {
    let digits = text.iter().filter(|b| b.is_ascii_digit()).count();
    let letters = text.iter().filter(|b| b.is_ascii_alphabetic()).count();
    let others = text.len() - digits - letters;
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-_=".contains(b);
    text.len() >= 16
        && text.iter().all(plain)
        && digits >= 3
        && letters >= 3
        && others * 6 <= text.len()
}

/// 24 or more letters of both cases and digits that follow each other without order, as in no name:
/// of random ones, six neighbours in ten differ in kind.
pub fn is_random(text: &[u8]) -> bool {
    let kind = |b: &u8| {
        if b.is_ascii_digit() {
            0
        } else if b.is_ascii_uppercase() {
            1
        } else {
            2
        }
    };
    let kinds = || text.iter().map(kind);
    let count = |of: u8| kinds().filter(|kind| *kind == of).count();
    let changes = kinds().zip(kinds().skip(1)).filter(|(a, b)| a != b).count();
    (24..=200).contains(&text.len())
        && text.iter().all(u8::is_ascii_alphanumeric)
        && count(0) >= 3
        && count(1) >= 4
        && count(2) >= 4
        && changes * 100 >= text.len() * 48
}

/// A password as generators and careful people make them: eight or more letters of both cases and
/// digits, perhaps with marks, and no path, address or list.
pub fn is_strong(text: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| text.iter().any(is);
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"!@#$%^&*+~".contains(b);
    (8..=64).contains(&text.len())
        && text.iter().all(plain)
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
}

/// A strong password whose neighbours mostly differ in kind: `kP93hwZq`, not `Python38Lib`.
pub fn is_scrambled(text: &[u8]) -> bool {
    let kind = |b: &u8| {
        (
            b.is_ascii_digit(),
            b.is_ascii_uppercase(),
            b.is_ascii_lowercase(),
        )
    };
    let kinds = || text.iter().map(kind);
    let changes = kinds().zip(kinds().skip(1)).filter(|(a, b)| a != b).count();
    is_strong(text) && changes * 2 > text.len()
}

/// A password or a token that a program has made.
pub fn is_generated(text: &[u8]) -> bool {
    is_scrambled(text) || is_random(text) || is_random_base64(text) || is_prefixed_hex(text)
}

/// `abc_0123…`: 32 or more hexadecimal digits after the prefix of a service.
fn is_prefixed_hex(text: &[u8]) -> bool {
    let Some(at) = text.iter().position(|b| *b == b'_') else {
        return false;
    };
    let (prefix, digits) = text.split_at(at);
    let digits = digits.get(1..).unwrap_or_default();
    (2..=4).contains(&prefix.len())
        && prefix.iter().all(u8::is_ascii_lowercase)
        && (32..=128).contains(&digits.len())
        && digits.iter().all(u8::is_ascii_hexdigit)
}

/// Base64 of 30 bytes or more whose neighbours differ in kind as random ones do: no path.
fn is_random_base64(text: &[u8]) -> bool {
    let kind = |b: &u8| {
        (
            b.is_ascii_digit(),
            b.is_ascii_uppercase(),
            b.is_ascii_lowercase(),
        )
    };
    let changes = text.iter().zip(text.iter().skip(1));
    let changes = changes.filter(|(a, b)| kind(a) != kind(b)).count();
    text.len() <= 400 && is_base64(text) && changes * 100 >= text.len() * 48
}

/// A password as careful people make them: eight or more letters of both cases and digits, perhaps with marks between
/// them: `Walnut-brook-41`, `Birch9meadow`. Names of tests and versions look like this, too: for few places.
pub fn is_careful(text: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| text.iter().any(is);
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"!@#$%^&*+~_-.".contains(b);
    let address = text.contains(&b'@') && text.contains(&b'.');
    (8..=80).contains(&text.len())
        && !address
        && text.first().is_some_and(u8::is_ascii_alphanumeric)
        && text.iter().all(plain)
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
}

/// A text that may be a password after the name of a user: no word, number, path or address.
pub fn may_be_password(text: &[u8]) -> bool {
    let path = text.contains(&b'/')
        && !is_careful(
            &text
                .iter()
                .filter(|b| **b != b'/')
                .copied()
                .collect::<Vec<u8>>(),
        );
    let begins = text.first().is_some_and(|b| b"/.~\\$".contains(b));
    is_no_word(text) && text.len() <= 128 && !path && !begins && !text.contains(&b':')
}

/// Base64 of 30 bytes or more: letters of both cases and digits.
pub fn is_base64(text: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| text.iter().filter(|b| is(b)).count() >= 3;
    let in_base64 = |b: &u8| b.is_ascii_alphanumeric() || b"+/=".contains(b);
    text.len() >= 40
        && text.iter().all(in_base64)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_digit)
}

/// Five or more letters with digits or marks among them: `hunter2`, `tr0ub4dor&3`, not `expired`,
/// `accessToken`, `X`, `2025-01-01`.
pub fn is_no_word(text: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| text.iter().any(is);
    let marks = |b: &u8| b"!@#$%^&*+=~".contains(b);
    text.len() >= 5
        && has(u8::is_ascii_alphabetic)
        && (has(u8::is_ascii_digit) || has(marks))
        && !has(u8::is_ascii_whitespace)
}

/// `S3cr3t!`, `Passw0rd`, `secret123`: a password that says so.
pub fn is_password(text: &[u8]) -> bool {
    let plain: Vec<u8> = text
        .iter()
        .map(|byte| match byte {
            b'0' => b'o',
            b'1' | b'!' => b'i',
            b'3' => b'e',
            b'4' | b'@' => b'a',
            b'5' | b'$' => b's',
            _ => byte.to_ascii_lowercase(),
        })
        .collect();
    let cores: [&[u8]; 5] = [b"password", b"passwd", b"secret", b"passphrase", b"hunter2"];
    let core = cores
        .iter()
        .any(|core| plain.windows(core.len()).any(|part| part == *core));
    let inner = text
        .iter()
        .all(|b| b.is_ascii_graphic() && !b"/=:.-_,()\"'".contains(b));
    let marks = text.iter().any(|b| b"!@#$%^&*".contains(b));
    let digits = text.iter().filter(|b| b.is_ascii_digit()).count();
    core && inner && text.len() < 40 && (marks || digits >= 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_and_keys_are_told_from_names() {
        assert!(is_aws_key(b"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"));
        assert!(!is_aws_key(b"0123456789abcdef0123456789abcdef01234567"));
        assert!(is_password(b"S3cr3t!") && is_password(b"P@ssw0rd"));
        assert!(!is_password(b"libsecret-1-dev") && !is_password(b"secrets"));
        assert!(is_random(b"ky0TcgnfhzEYbNWHv2dBk8zmmp2G"));
        assert!(!is_random(b"AnArgumentWithManyWords2And3Digits1"));
        assert!(!is_random(b"0123456789abcdef0123456789abcdef01234567"));
        assert!(is_scrambled(b"kP93hwZq") && is_scrambled(b"Tr0ub4dor"));
        assert!(!is_scrambled(b"Python38Lib") && !is_scrambled(b"Exp12Run"));
    }
}
