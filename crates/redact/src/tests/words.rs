//! Unit tests for recognizing secrets in the words of command lines.

use super::*;

#[test]
fn a_script_is_split_as_a_shell_does() {
    let text = b"a 'b c';d|\"e f\"&g=\"h i\" don't \\";
    let script = Word {
        arg: 0,
        at: 10,
        text,
        first: true,
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
