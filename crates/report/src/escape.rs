//! Text from a trace, made safe for a terminal. Traces come from strangers.

/// Bytes as text: what is not UTF-8 becomes `\xNN`; control characters (those
/// of a terminal included) and marks that change the direction of writing are
/// shown by their number.
pub fn text(bytes: &[u8]) -> String {
    // Nearly everything is as it should be.
    let plain = bytes.iter().all(|byte| matches!(byte, b' '..=b'~'));
    if let (true, Ok(text)) = (plain, std::str::from_utf8(bytes)) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                '\r' => out.push_str("\\r"),
                c if is_hidden(c) => out.extend(c.escape_unicode()),
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}

/// A character that is not shown but does something: a control character or a
/// mark of direction.
pub fn is_hidden(c: char) -> bool {
    c.is_control() || is_bidi(c)
}

/// Marks, embeddings and isolates of the bidirectional algorithm; line and
/// paragraph separators; the byte order mark.
fn is_bidi(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{061c}' | '\u{feff}')
}

/// A command line: arguments with anything but plain characters in quotes.
pub fn command<'a>(args: impl IntoIterator<Item = &'a [u8]>) -> String {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-_./=+:,@%^".contains(b) || *b >= 0x80;
    let quoted = args
        .into_iter()
        .map(|arg| match !arg.is_empty() && arg.iter().all(plain) {
            true => text(arg),
            false => format!("'{}'", text(arg).replace('\'', "'\\''")),
        });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_as_a_command() {
        assert_eq!(text(b"a\x1b[31mb"), "a\\u{1b}[31mb");
        assert_eq!(text("\u{9b}x\u{202e}y".as_bytes()), "\\u{9b}x\\u{202e}y");
        assert_eq!(text(b"ok\xff\n"), "ok\\xff\\n");
        assert_eq!(text("naïve".as_bytes()), "naïve");
    }

    #[test]
    fn command_lines_show_where_arguments_end() {
        assert_eq!(command([&b"sh"[..], b"-c", b"a b"]), "sh -c 'a b'");
        assert_eq!(command([&b""[..], b"it's"]), "'' 'it'\\''s'");
    }
}
