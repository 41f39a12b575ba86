//! Escapes text of a trace for each medium that shows it, because the author of the text may be hostile.
//!
//! | output | escapes one value | escapes the whole output |
//! | --- | --- | --- |
//! | terminal, CI log | [`text`], [`command`] | [`page`] |
//! | folded stacks | [`text`] | [`page`] |
//! | CSV | [`cell`] | |
//! | Markdown | [`markdown`], [`code`] | |
//! | HTML | [`html`] | |
//! | JSON | `json::safe`, by [`is_hidden`] and [`is_command`] | |
//! | data in an HTML page | `json::visible` | |
//!
//! Values that are not shown yet contain the text of a trace without escapes ([`raw`], [`quoted`]). The code that shows
//! such a value escapes it.
//!
//! An escaped value stays recognizable: a line feed becomes `\n`, `\x1b` becomes `\u{1b}`, and bytes that are not UTF-8
//! become `\xNN`.

use std::borrow::Cow;
use std::fmt::Write;

use crate::units;

/// Converts bytes to a text that is safe to show. Bytes that are not UTF-8 become `\xNN`, line feeds, tabs and
/// carriage returns `\n`, `\t` and `\r`, and other hidden characters and the first letters of commands to a CI system
/// `\u{NN}`.
pub fn text(bytes: &[u8]) -> String {
    // Most texts are plain ASCII and need no escapes, so they are copied as they are.
    let plain = bytes
        .iter()
        .all(|byte| matches!(byte, b' '..=b'~') && *byte != b'#');
    if let (true, Ok(text)) = (plain, std::str::from_utf8(bytes)) {
        if !has_command(text) {
            return text.to_owned();
        }
    }
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid();
        for (at, c) in valid.char_indices() {
            match c {
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                '\r' => out.push_str("\\r"),
                c if is_hidden(c) || is_command(valid, at) => out.extend(c.escape_unicode()),
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// Whether a character is invisible or changes how other characters are shown: controls, format characters (zero-width,
/// bidirectional, tags), fillers, variation selectors, line and paragraph separators, private and unassigned planes.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
            | '\u{890}'..='\u{891}' | '\u{8e2}' | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1345f}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{10ffff}')
}

/// The beginnings of the commands that CI systems execute wherever these stand in a line of a log: Azure Pipelines and
/// GitHub, TeamCity, GitLab. Commands that begin with `::` are not listed, because they count only at the beginning of
/// a line ([`page`]).
const COMMANDS: [&str; 5] = [
    "##[",
    "##vso[",
    "##teamcity[",
    "section_start:",
    "section_end:",
];

/// Whether a command to a CI system begins at this byte of a text in a log. Only commands that are recognized anywhere
/// in a line count.
pub fn is_command(text: &str, at: usize) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    COMMANDS.iter().any(|start| rest.starts_with(start))
}

/// Whether a text may contain a command that is recognized anywhere in a line of a log.
fn has_command(text: &str) -> bool {
    text.contains("##") || text.contains("section_")
}

/// Converts bytes to a text. Bytes that are not UTF-8 become `\xNN`. The text is not escaped, so the code that shows
/// the text has to escape it.
pub fn raw(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// A command line as text for a terminal. Arguments with special characters are quoted.
pub fn command<'a>(args: impl IntoIterator<Item = &'a [u8]>) -> String {
    text(quoted(args).as_bytes())
}

/// Converts a command line to a text. Arguments with special characters are quoted. The text is not escaped, so the
/// code that shows the text has to escape it.
pub fn quoted<'a>(args: impl IntoIterator<Item = &'a [u8]>) -> String {
    args.into_iter().map(word).collect::<Vec<_>>().join(" ")
}

/// An argument as a word of a command line, in quotes if it has special characters. The text is not escaped.
pub fn word(arg: &[u8]) -> String {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-_./=+:,@%^".contains(b) || *b >= 0x80;
    if !arg.is_empty() && arg.iter().all(plain) {
        return raw(arg);
    }
    in_quotes(&raw(arg))
}

/// Puts a text into quotes, as POSIX shells and xargs read them. Double quotes are used for a text with single quotes,
/// if nothing in the text has a meaning inside double quotes.
pub fn in_quotes(text: &str) -> String {
    let has_meaning = |c| matches!(c, '"' | '$' | '`' | '\\' | '!');
    if text.contains('\'') && !text.contains(has_meaning) {
        return format!("\"{text}\"");
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The index at which a line has a command to a CI system that counts only at the beginning of a line (`::error::`);
/// spaces may precede it. `None` if the line has none.
fn command_of_line(line: &str) -> Option<usize> {
    let rest = line.trim_start();
    rest.starts_with("::").then(|| line.len() - rest.len())
}

/// The places in a text at which a CI system that shows the text in its log would recognize a command, in order.
pub fn commands(text: &str) -> Vec<usize> {
    let mut begin = 0;
    let mut all = Vec::new();
    for line in text.split_inclusive('\n') {
        all.extend(command_of_line(line).map(|at| begin + at));
        let anywhere = line.match_indices(['#', 's']);
        let anywhere = anywhere.filter(|(at, _)| is_command(line, *at));
        all.extend(anywhere.map(|(at, _)| begin + at));
        begin += line.len();
    }
    all
}

/// Makes a whole output of this program safe for a terminal or a log. The values in the output were already escaped one
/// by one. This function escapes the remaining hidden characters, other than line feeds and colours, and the beginnings
/// of commands to a CI system.
pub fn page(whole: &str) -> Cow<'_, str> {
    let commands = commands(whole);
    let is_hidden = |c: char| c != '\n' && is_hidden(c);
    if commands.is_empty() && !whole.contains(is_hidden) {
        return Cow::Borrowed(whole);
    }
    let mut commands = commands.into_iter().peekable();
    let (mut out, mut at) = (String::with_capacity(whole.len()), 0);
    while let Some(rest) = whole.get(at..) {
        let Some(c) = rest.chars().next() else {
            break;
        };
        let colour = colour(rest);
        let length = colour.unwrap_or(c.len_utf8());
        let is_command = commands.next_if_eq(&at).is_some();
        if is_command || colour.is_none() && is_hidden(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push_str(rest.get(..length).unwrap_or_default());
        }
        at += length;
    }
    Cow::Owned(out)
}

/// The length in bytes of the escape sequence of a colour (`ESC [ digits m`) with which a text begins.
fn colour(text: &str) -> Option<usize> {
    let digits = text.strip_prefix("\x1b[")?;
    let end = digits.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    digits.get(end..)?.starts_with('m').then_some(end + 3)
}

/// The text of a CSV cell for a value, without quotes around it. A text that begins, perhaps after spaces, with `=`,
/// `+`, `-` or `@` gets a `'` before it, because a spreadsheet would take the text for a formula. A text that begins
/// with `::` gets a `'`, too, because a CI system would take the line for a command.
pub fn cell(value: &str) -> String {
    let safe = text(value.as_bytes());
    let begins = |c: char| "=+-@\u{ff1d}\u{ff0b}\u{ff0d}\u{ff20}".contains(c);
    let first = safe.trim_start();
    if first.starts_with(begins) || command_of_line(first).is_some() {
        format!("'{safe}")
    } else {
        safe
    }
}

/// Escapes a text for Markdown outside of code. Words that a forge would turn into mentions, references or links
/// (`@user`, `GH-1`, `#1`, a commit, `www.`) become code, because HTML entities would not prevent that.
pub fn markdown(value: &str) -> String {
    let word = |word: &str| {
        if links(word) {
            code(word)
        } else {
            entities(word)
        }
    };
    let words: Vec<String> = text(value.as_bytes()).split(' ').map(word).collect();
    words.join(" ")
}

/// A text, shortened to 80 columns, as code for Markdown. An HTML element is used instead of backticks, because
/// backticks in the text would end the code.
pub fn code(value: &str) -> String {
    if value.is_empty() {
        return String::new();
    }
    let value = text(units::shorten(value, 80).as_bytes());
    format!("<code>{}</code>", entities(&value))
}

/// Whether a forge (such as GitHub) may turn a word of Markdown text into a link.
fn links(word: &str) -> bool {
    let hex = |part: &str| part.len() >= 7 && part.bytes().all(|b| b.is_ascii_hexdigit());
    let parts = word.split(|c: char| !c.is_ascii_alphanumeric());
    // References to issues, such as `GH-1` or `ABC-1`, have a letter or digit, a hyphen and a digit in a row.
    let issue = |part: &[u8]| matches!(part, [a, b'-', n] if a.is_ascii_alphanumeric() && n.is_ascii_digit());
    let numbered = word.as_bytes().windows(3).any(issue);
    word.contains(['@', '#', '!', '$', '~', '&']) && word.len() > 1
        || word.contains("://")
        || word.to_ascii_lowercase().contains("www.")
        || numbered
        || parts.into_iter().any(hex)
}

/// A figure with its unit as text for Markdown. Unlike [`markdown`], this function marks nothing as code, because a
/// figure has no mentions, references or links.
pub fn figure(value: &str) -> String {
    entities(value)
}

fn entities(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars().peekable();
    let (mut before, mut open) = (' ', false);
    while let Some(c) = chars.next() {
        let next = chars.peek().copied().unwrap_or(' ');
        let plain = match c {
            // Each of these characters is markup only together with other characters, and those are escaped.
            '/' | '-' | '+' | '=' | ',' | '%' | '\'' | ';' | '(' | '"' | '?' => true,
            // Markdown could take a dot between letters for a part of a link (`tool.sh`), and a dot after a number for
            // the beginning of a list.
            '.' => match next {
                ' ' => before.is_alphabetic(),
                next => before.is_ascii_digit() && next.is_ascii_digit(),
            },
            ':' => next == ' ',
            // An underscore inside of a word does not begin emphasis.
            '_' => before.is_ascii_alphanumeric() && next.is_ascii_alphanumeric(),
            ')' => open || !before.is_ascii_digit(),
            c => !c.is_ascii_punctuation(),
        };
        if plain {
            out.push(c);
        } else {
            let _ = write!(out, "&#{};", u32::from(c));
        }
        open = c == '(' || open && c != ')';
        before = c;
    }
    out
}

/// A text for HTML, in an element or an attribute.
pub fn html(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in text(value.as_bytes()).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
