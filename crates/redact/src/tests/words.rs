//! Unit tests of `words`.

use super::*;

#[test]
fn names_are_read_in_words() {
    for name in [
        "--password",
        "DB_PASS",
        "clientSecret",
        "x-api-key",
        "KEY",
        "MY_PWD",
        "_authToken",
    ] {
        assert!(is_secret(name.as_bytes()), "{name}");
    }
    for name in [
        "tokens",
        "author",
        "bypass",
        "key",
        "monkey",
        "TOKEN_FILE",
        "passes",
        "",
        "--",
    ] {
        assert!(!is_secret(name.as_bytes()), "{name}");
    }
}

#[test]
fn a_script_is_split_as_a_shell_does() {
    let text = b"a 'b c';d|\"e f\"&g=\"h i\" don't \\";
    let script = Word {
        arg: 0,
        at: 10,
        text,
    };
    let words = split(&script);
    let texts: Vec<_> = words
        .iter()
        .map(|w| String::from_utf8_lossy(w.text))
        .collect();
    assert_eq!(texts, ["a", "b c", "d", "e f", "g=\"h i\"", "don't", "\\"]);
    for word in words {
        let at = word.at - 10;
        assert_eq!(&text[at..at + word.text.len()], word.text);
    }
}
