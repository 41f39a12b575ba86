//! Values that look like a secret, whatever is before them: they seem random.

/// At least so many bytes are needed to tell random letters from words.
const SHORTEST: usize = 24;

/// The word could be random: a search before all others, so it has to be fast.
pub fn may_be_random(word: &[u8]) -> bool {
    let value = word.iter().rposition(|b| *b == b'=').map_or(word, |at| {
        let after = word.get(at + 1..).unwrap_or_default();
        // The padding of Base64.
        if after.is_empty() {
            word
        } else {
            after
        }
    });
    let digits = || value.iter().filter(|b| b.is_ascii_digit()).count() >= 3;
    let path = || value.contains(&b'/') && value.len() != 40 && !value.ends_with(b"=");
    (SHORTEST..=256).contains(&value.len())
        && value.iter().all(|b| in_token(*b))
        && digits()
        && !path()
}

fn in_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-+=~./:@%".contains(&byte)
}

/// Letters of both cases and digits, in an order that no name has: of Base64 and the like, but not
/// of hexadecimal digits, which are hashes more often than secrets.
pub fn is_random(text: &[u8]) -> bool {
    if text.len() < SHORTEST || text.len() > 256 {
        return false;
    }
    // Hashes, public keys, names of content.
    let known: [&[u8]; 6] = [b"sha", b"AAAA", b"Qm", b"_ZN", b"_R", b"MII"];
    if known.iter().any(|start| text.starts_with(start)) {
        return false;
    }
    let body = text.len() - text.iter().rev().take_while(|b| **b == b'=').count();
    let (mut kinds, mut turns, mut before) = ([0; 3], 0, 3);
    for byte in text.iter().take(body) {
        let kind = match byte {
            b'0'..=b'9' => 0,
            b'A'..=b'Z' => 1,
            b'a'..=b'z' => 2,
            b'+' | b'/' if text.len() == 40 || text.ends_with(b"=") => 3,
            b'_' | b'-' | b'~' | b'+' => 3,
            _ => return false,
        };
        turns += usize::from(kind != before);
        before = kind;
        if let Some(count) = kinds.get_mut(kind) {
            *count += 1;
        }
    }
    // Of random letters and digits, 62 of 100 are of another kind than the one before.
    kinds.iter().all(|count| *count >= 3) && turns * 100 >= body * 45
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
        .all(|b| b.is_ascii_graphic() && !b"/=:.-_,".contains(b));
    let marks = text.iter().any(|b| b"!@#$%^&*".contains(b));
    let digits = text.iter().filter(|b| b.is_ascii_digit()).count();
    core && inner && text.len() < 40 && (marks || digits >= 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_letters_are_told_from_names() {
        for word in [
            "k7GhQ2pL9xZtR4vBn1MsYw8D",
            "Zx81kQpLm02TbVcR5sWyNd7fHgJ4aUeK3iOo",
            "dGhpcyBpcyBub3Qgc2VjcmV0IGF0IGFsbA19==",
        ] {
            assert!(may_be_random(word.as_bytes()), "{word}");
            assert!(is_random(word.as_bytes()), "{word}");
        }
        for word in [
            "TestParseUnixTimestamp2DigitsOfYear2026",
            "0123456789abcdef0123456789abcdef01234567",
            "0f8fad5b-d9cb-469f-a165-70867728950e",
            "_ZN4core3fmt9Formatter12pad_integral17h0123456789abcdefE",
            "CMakeFiles/x.dir/Lib64/A1b2C3d4E5f6G7h8.o",
            "sha512-k7GhQ2pL9xZtR4vBn1MsYw8Dk7GhQ2pL9xZt",
            "x86_64-unknown-linux-gnu-ubuntu-22.04",
        ] {
            assert!(!is_random(word.as_bytes()), "{word}");
        }
        assert!(is_password(b"S3cr3t!") && is_password(b"P@ssw0rd"));
        assert!(!is_password(b"libsecret-1-dev") && !is_password(b"secrets"));
    }
}
