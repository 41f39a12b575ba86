//! Escapes text of a trace for a terminal. Its author may be hostile.

/// Bytes as text. Bytes that are not UTF-8 become `\xNN`; control characters and
/// marks that change the direction of writing become `\u{NN}`.
pub fn text(bytes: &[u8]) -> String {
    // The common case.
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

/// A control character or a mark of direction.
pub fn is_hidden(c: char) -> bool {
    c.is_control() || is_bidi(c)
}

/// Marks, embeddings and isolates of the bidirectional algorithm; line and
/// paragraph separators; the byte order mark.
fn is_bidi(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{061c}' | '\u{feff}')
}

/// A command line; arguments with other than plain characters are quoted.
pub fn command<'a>(args: impl IntoIterator<Item = &'a [u8]>) -> String {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-_./=+:,@%^".contains(b) || *b >= 0x80;
    let quoted = args.into_iter().map(|arg| {
        if !arg.is_empty() && arg.iter().all(plain) {
            return text(arg);
        }
        format!("'{}'", text(arg).replace('\'', "'\\''"))
    });
    quoted.collect::<Vec<_>>().join(" ")
}
