//! Hides the values of variables in a file that a script executes in its own shell: such a file may be a list of settings with secrets
//! in it, and none of them decides which commands run.

/// The words that may stand before an assignment.
const BEFORE: [&[u8]; 4] = [b"export ", b"readonly ", b"local ", b"declare "];

/// The longest number that stays: an exit status may decide what a script does.
const NUMBER: usize = 3;

/// The text with `***` in place of the value of each assignment that has a line of its own and needs no expansion.
pub(super) fn hidden(text: &[u8]) -> Vec<u8> {
    let mut all = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        match value(line) {
            Some(before) => {
                all.extend_from_slice(before);
                all.extend_from_slice(b"***\n");
            }
            None => all.extend_from_slice(line),
        }
    }
    all
}

/// The part of a line before a value that is to be hidden.
fn value(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let mut word = line.trim_ascii_start();
    for before in BEFORE {
        word = word.strip_prefix(before).unwrap_or(word).trim_ascii_start();
    }
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let end = word.iter().position(|byte| !is_part(byte))?;
    let value = word.get(end..)?.strip_prefix(b"=")?;
    let is_name = word.first().is_some_and(|byte| !byte.is_ascii_digit());
    let is_status = value.len() <= NUMBER && value.iter().all(u8::is_ascii_digit);
    let is_plain = !value.is_empty() && !is_status && is_one_word(value);
    let length = line.len() - value.len();
    (is_name && is_plain).then(|| line.get(..length)).flatten()
}

/// Whether a text is one word without an expansion: plain, or in one pair of quotes.
fn is_one_word(text: &[u8]) -> bool {
    let inside = match text {
        [b'\'', inside @ .., b'\''] => return !inside.contains(&b'\''),
        [b'"', inside @ .., b'"'] => inside,
        _ if text.iter().any(|byte| b" \t;&|<>()\"'\\#".contains(byte)) => return false,
        _ => text,
    };
    !inside.iter().any(|byte| b"$`\"\\".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_hidden_and_commands_stay() {
        let text = "# settings\nTOKEN=abc123\nexport URL='https://u:p@h/x y'\nPASS=\"a b c\"\nrc=1\nempty=\n\
                    declare -A all=([a]=b)\ndir=$(pwd)\nx=1 make\nf() {\n    local name=value\n}\nlast=word";
        let want = "# settings\nTOKEN=***\nexport URL=***\nPASS=***\nrc=1\nempty=\n\
                    declare -A all=([a]=b)\ndir=$(pwd)\nx=1 make\nf() {\n    local name=***\n}\nlast=***\n";
        let hidden = hidden(text.as_bytes());
        assert_eq!(String::from_utf8(hidden).unwrap(), want);
    }
}
