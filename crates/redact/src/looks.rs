//! Recognizes values that look like a password or a token. These checks are used where the words before a value make a
//! secret likely.

/// Whether a text looks like a secret access key of AWS: 40 characters, which are letters, digits, `+` or `/`, with
/// at least one capital letter, one small letter and one digit among them.
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

/// Whether a text has at least 16 characters: at least three letters, at least three digits, and otherwise only `-`,
/// `_` and `=`, which are at most a sixth of the text. Many tokens have this form. Hexadecimal digests have it, too,
/// so the check is used only where a secret is likely.
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

/// Whether a text of 24 to 200 letters and digits looks random, because small letters, capital letters and digits
/// alternate often. In a random text, six of ten characters are of another kind than the character before. In names,
/// fewer are.
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

/// Whether a text looks like a password from a generator or a careful person: 8 to 64 letters, digits and marks such
/// as `!`, with at least one capital letter, one small letter and one digit. The characters `/`, `.`, `,` and `:` of
/// paths, addresses and lists are not allowed.
pub fn is_strong(text: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| text.iter().any(is);
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"!@#$%^&*+~".contains(b);
    (8..=64).contains(&text.len())
        && text.iter().all(plain)
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
}

/// Whether a text looks like a strong password in which most neighbouring characters are of
/// different kinds: `kP93hwZq`, not `Python38Lib`.
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

/// Whether a capital letter directly follows a small letter in the text: `hubPw`, not `Hub` or `HUB`.
pub fn changes_case(text: &[u8]) -> bool {
    let mut pairs = text.iter().zip(text.iter().skip(1));
    pairs.any(|(a, b)| a.is_ascii_lowercase() && b.is_ascii_uppercase())
}

/// Whether a text of 6 to 40 letters and digits has a capital letter directly after a small one. Some passwords look
/// like this: `fbPassword`.
pub fn is_mixed_word(text: &[u8]) -> bool {
    (6..=40).contains(&text.len())
        && text.iter().all(u8::is_ascii_alphanumeric)
        && changes_case(text)
}

/// Whether a single digit stands between two letters, as in a password in which digits replace some letters:
/// `new-p4ss`, `s3cret`. A text with `/` or `.`, such as a path or a version, does not count.
pub fn is_leet(text: &[u8]) -> bool {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"!@#$%^&*+~_-".contains(b);
    let inner = |part: &[u8]| match part {
        [a, b, c] => a.is_ascii_alphabetic() && b.is_ascii_digit() && c.is_ascii_alphabetic(),
        _ => false,
    };
    (5..=64).contains(&text.len()) && text.iter().all(plain) && text.windows(3).any(inner)
}

/// Whether a text consists of at least eight words of three to eight small letters each. The mnemonic phrases from
/// which crypto wallets can be restored have this form.
pub fn is_mnemonic(text: &[u8]) -> bool {
    let word =
        |word: &[u8]| (3..=8).contains(&word.len()) && word.iter().all(u8::is_ascii_lowercase);
    let words = || text.split(|b| *b == b' ');
    text.len() <= 256 && text.contains(&b' ') && words().count() >= 8 && words().all(word)
}

/// Whether a text looks like a password or a token that a program has generated.
pub fn is_generated(text: &[u8]) -> bool {
    is_scrambled(text) || is_random(text) || is_random_base64(text) || is_prefixed_hex(text)
}

/// Whether a text looks like a token: a service's prefix of two to four small letters, and 32 to 128 hexadecimal
/// digits: `abc_0123…`.
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

/// Whether a text looks like random data in Base64, of 40 to 400 characters. Capital letters, small letters and
/// digits alternate more often in the text than in a path.
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

/// Whether a text looks like a password that a careful person made up (`Walnut-brook-41`, `Birch9meadow`): 8 to 80
/// letters, digits and marks, with at least one capital letter, one small letter and one digit. Names of tests and
/// versions can look like this, so the check is used in few places.
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

/// Whether a text may be a password that follows the name of a user: the text has letters and also digits or marks,
/// and is no path, variable or text with a colon.
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

/// Whether a text may be a password in a place where nothing else is expected: the text may be a word, but no number,
/// and the characters `/`, `:` and `.` of paths, addresses and file names are not allowed.
pub fn may_be_plain_password(text: &[u8]) -> bool {
    let word = |b: &u8| b.is_ascii_alphanumeric() || b"!@#$%^&*+=~_-".contains(b);
    (4..=128).contains(&text.len())
        && text.iter().all(word)
        && text.iter().any(u8::is_ascii_alphabetic)
}

/// Whether a text is Base64 of at least 40 characters, with at least three capital letters, three small letters and
/// three digits.
pub fn is_base64(text: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| text.iter().filter(|b| is(b)).count() >= 3;
    let in_base64 = |b: &u8| b.is_ascii_alphanumeric() || b"+/=".contains(b);
    text.len() >= 40
        && text.iter().all(in_base64)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_digit)
}

/// Whether a text looks like a simple password: at least five characters, with letters and also with digits or marks,
/// but without white space. Examples are `hunter2` and `tr0ub4dor&3`. `expired` and `accessToken` are only words, `X`
/// is too short, and `2025-01-01` has no letters.
pub fn is_no_word(text: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| text.iter().any(is);
    let marks = |b: &u8| b"!@#$%^&*+=~".contains(b);
    text.len() >= 5
        && has(u8::is_ascii_alphabetic)
        && (has(u8::is_ascii_digit) || has(marks))
        && !has(u8::is_ascii_whitespace)
}

/// Words that passwords such as `P4ssword` contain. A text is compared with these words after its digits and marks were
/// replaced by the letters that they resemble.
const CORES: [&[u8]; 5] = [b"password", b"passwd", b"secret", b"passphrase", b"hunter2"];

/// Passwords that many people use according to leaked lists, and passwords from documentation. Letters replace digits
/// and marks as for [`CORES`]: `trustnoi` stands for `trustno1`.
#[rustfmt::skip]
const COMMON_PASSWORDS: [&[u8]; 14] = [
    b"mysecret", b"mykey",
    b"changeme", b"changeit", b"letmein", b"qwerty", b"hunter", b"swordfish", b"iloveyou", b"welcomei", b"admini2",
    b"correcthorse", b"trustnoi", b"mypass",
];

/// Whether a text contains a word such as "password", perhaps in disguise, and also a mark or at least two digits:
/// `S3cr3t!`, `Passw0rd`, `secret123`.
pub fn is_password(text: &[u8]) -> bool {
    let inner = text
        .iter()
        .all(|b| b.is_ascii_graphic() && !b"/=:.-_,()\"'".contains(b));
    let marks = text.iter().any(|b| b"!@#$%^&*".contains(b));
    let digits = text.iter().filter(|b| b.is_ascii_digit()).count();
    inner && text.len() < 40 && (marks || digits >= 2) && has_one_of(&CORES, text)
}

/// Whether a text of 6 to 23 letters and digits contains a very common password (`changeme`), or a word such as
/// "secret" with a digit in the text (`s3cret`).
pub fn is_common_password(text: &[u8]) -> bool {
    (6..24).contains(&text.len())
        && text.iter().all(u8::is_ascii_alphanumeric)
        && (has_one_of(&COMMON_PASSWORDS, text)
            || text.iter().any(u8::is_ascii_digit) && has_one_of(&CORES, text))
}

/// Whether a text contains a word such as "password" or "secret" and may be a password itself, as
/// `my-secret-pw`. The check is used where a password is likely.
pub fn says_password(text: &[u8]) -> bool {
    text.len() < 40 && may_be_plain_password(text) && has_one_of(&CORES, text)
}

/// Whether a text looks like a simple password: at least three letters, a digit and a mark, or a word in small
/// letters and a number of at least three digits: `Summer2024!`, `hello123`.
pub fn is_simple_password(text: &[u8]) -> bool {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"!#$%^&@_-".contains(b);
    let digits = text.iter().filter(|b| b.is_ascii_digit()).count();
    let letters = text.iter().filter(|b| b.is_ascii_alphabetic()).count();
    let first = text.first().is_some_and(u8::is_ascii_alphanumeric);
    let marked = text.iter().any(|b| b"!#$%^&@".contains(b));
    let word = text.iter().take_while(|b| b.is_ascii_lowercase()).count();
    let number = word >= 4 && digits >= 3 && word + digits == text.len();
    (6..=64).contains(&text.len())
        && first
        && text.iter().all(plain)
        && (marked && digits > 0 && letters >= 3 || number)
}

/// Whether a text contains one of these words and has at most 40 bytes, after its digits and marks were replaced by
/// the letters that they resemble (`P4ssword`).
fn has_one_of(words: &[&[u8]], text: &[u8]) -> bool {
    let mut plain = [0; 40];
    let Some(plain) = plain.get_mut(..text.len()) else {
        return false;
    };
    for (letter, byte) in plain.iter_mut().zip(text) {
        *letter = match byte {
            b'0' => b'o',
            b'1' | b'!' => b'i',
            b'3' => b'e',
            b'4' | b'@' => b'a',
            b'5' | b'$' => b's',
            _ => byte.to_ascii_lowercase(),
        };
    }
    let plain = &*plain;
    let starts = (0..plain.len()).filter_map(|at| plain.get(at..));
    let mut starts =
        starts.filter(|rest| rest.first().is_some_and(|b| b"acdhilmpqstw".contains(b)));
    starts.any(|rest| words.iter().any(|word| rest.starts_with(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_and_keys_are_distinguished_from_names() {
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
