//! Masks the values of variables in a file that a shell script sources, because such a file may be
//! a list of settings that contains secrets.

use super::reader;

/// The largest number of digits of a number that stays unmasked in a sourced file. An exit status has at most three
/// digits, and may decide what a script does.
const NUMBER: usize = 3;

/// The text of a shell script in which the values assigned to variables are replaced by `***`; the
/// lines stay the same. Numbers of up to three digits, values that are a single expansion, and
/// values for which the script runs commands are kept. Returns `None` if parts of the script were
/// not understood.
pub fn without_values(text: &[u8]) -> Option<Vec<u8>> {
    let mut all = Vec::with_capacity(text.len());
    let mut at = 0;
    for (from, to) in reader::values(text)? {
        let is_after = from >= at;
        let Some(value) = text.get(from..to).filter(|value| is_after && !stays(value)) else {
            continue;
        };
        all.extend_from_slice(text.get(at..from)?);
        all.extend_from_slice(b"***");
        // The line feeds of a masked value stay, so that the script keeps its line numbers.
        all.extend(value.iter().filter(|byte| **byte == b'\n'));
        at = to;
    }
    all.extend_from_slice(text.get(at..)?);
    Some(all)
}

/// Whether a value that a script assigns to a variable is kept and not masked, because it is no
/// secret or decides which commands run.
fn stays(value: &[u8]) -> bool {
    let is_status = value.len() <= NUMBER && value.iter().all(u8::is_ascii_digit);
    let runs = value.contains(&b'`') || value.windows(2).any(|pair| pair == b"$(");
    let inside = value
        .strip_prefix(b"\"")
        .and_then(|value| value.strip_suffix(b"\""));
    let name = inside
        .unwrap_or(value)
        .strip_prefix(b"$")
        .unwrap_or_default();
    let braced = name
        .strip_prefix(b"{")
        .and_then(|name| name.strip_suffix(b"}"));
    let name = braced.unwrap_or(name);
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_?!#@*$".contains(byte);
    is_status || runs || !name.is_empty() && name.iter().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_hidden_and_commands_stay() {
        for (text, want) in [
            ("TOKEN=abc123\n", "TOKEN=***\n"),
            (
                "export URL='https://u:p@h/x y' B=\"a b\"\n",
                "export URL=*** B=***\n",
            ),
            ("declare -x NAME=\"v\"\n", "declare -x NAME=***\n"),
            (
                "A=x # note\nA=x;\nA=x \nexport\tA=y\nA+=x\n",
                "A=*** # note\nA=***;\nA=*** \nexport\tA=***\nA+=***\n",
            ),
            ("A=\"p$w\"\r\n", "A=***\r\n"),
            ("all=([a]=b c)\nnext\n", "all=***\nnext\n"),
            ("KEY='{\n \"id\": 1\n}'\nnext\n", "KEY=***\n\n\nnext\n"),
            (
                "f() {\n    local name=value\n    x=y make A=b\n}\n",
                "f() {\n    local name=***\n    x=*** make A=b\n}\n",
            ),
            (
                "rc=$?\nn=12\nempty=\ndir=$(pwd)\nx=\"${1}\"\n",
                "rc=$?\nn=12\nempty=\ndir=$(pwd)\nx=\"${1}\"\n",
            ),
            ("last=word", "last=***"),
        ] {
            let hidden = without_values(text.as_bytes()).map(String::from_utf8);
            assert_eq!(hidden, Some(Ok(want.to_owned())), "{text}");
        }
        assert_eq!(without_values(b"A=x\n)\n"), None);
    }
}
