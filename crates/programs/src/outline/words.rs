//! The words of a shell script, and how far their text shows what the shell expands them to.

use crate::words::{contains, is_name_byte, split_name};

/// The number that a text consists of; `None` if it is no number.
pub(super) fn number(text: &[u8]) -> Option<u32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The arguments to which the shell may expand a word of a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expansion {
    /// The word of the script has no expansion: it becomes one argument with a known text.
    #[default]
    None,
    /// The word of the script becomes one argument whose beginning and end are known: `"$dir/x"`.
    One,
    /// The word of the script becomes any number of arguments: `$FLAGS`, `*.c`.
    Any,
    /// The word of the script becomes all arguments of the script or function: `"$@"`.
    Arguments,
}

/// A word of a shell script, as it is written and as far as its expansion is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// The text of the word without its quotes. Expansions stay as they are written in the script.
    pub text: Vec<u8>,
    /// The number of bytes at the beginning of the word that no expansion changes.
    pub head: usize,
    /// The number of bytes after the last expansion of the word; 0 for a word without an expansion.
    pub tail: usize,
    pub expansion: Expansion,
    /// Whether a part of the word is quoted, so that it cannot be a keyword of the shell.
    pub is_quoted: bool,
}

impl Word {
    /// The text of the script's word, if it has no expansion.
    pub fn literal(&self) -> Option<&[u8]> {
        (self.expansion == Expansion::None).then_some(self.text.as_slice())
    }

    /// The part of a path in a script's word after the last expansion and its slash: `x.txt` of
    /// `"$dir/x.txt"`.
    pub fn path_after_expansion(&self) -> Option<&[u8]> {
        let end = self.text.len().checked_sub(self.tail)?;
        let path = self.text.get(end..)?.strip_prefix(b"/")?;
        (self.expansion != Expansion::None && !path.is_empty()).then_some(path)
    }

    /// The name of a variable, if the script's word consists of nothing but the expansion of this variable: `$x`,
    /// `"${x}"`, `${x:-0}`, `${x[0]}`.
    pub fn variable(&self) -> Option<&[u8]> {
        let name = self.text.strip_prefix(b"$")?;
        let inside = name
            .strip_prefix(b"{")
            .and_then(|name| name.strip_suffix(b"}"));
        let (name, rest) = match inside {
            Some(inside) => split_name(inside),
            None => (name, &b""[..]),
        };
        let is_value = rest.is_empty()
            || [&b":-"[..], b"-", b"["]
                .iter()
                .any(|part| rest.starts_with(part));
        let is_name = !name.is_empty() && name.iter().all(is_name_byte) && is_value;
        (is_name && self.expansion != Expansion::None).then_some(name)
    }

    /// The name of the variable whose length, or whose number of elements, is the whole word: `${#x[@]}`
    pub fn counted(&self) -> Option<&[u8]> {
        let name = self.text.strip_prefix(b"${#")?.strip_suffix(b"}")?;
        let subscripts = [&b"[@]"[..], b"[*]"];
        let array = subscripts.iter().find_map(|end| name.strip_suffix(*end));
        let name = array.unwrap_or(name);
        let is_name = !name.is_empty() && name.iter().all(is_name_byte);
        (is_name && self.expansion != Expansion::None).then_some(name)
    }

    /// Whether the word is a path with a directory, whatever its expansions become: `./"$tool"`, `$dir/tool`
    pub fn is_path(&self) -> bool {
        let head = self.text.get(..self.head).unwrap_or_default();
        let tail = self.text.len().saturating_sub(self.tail);
        let tail = self.text.get(tail..).unwrap_or_default();
        let text = self.literal().unwrap_or_default();
        [head, tail, text].iter().any(|part| part.contains(&b'/'))
    }

    /// The names of the variables in this word for which it matters to the shell whether they are
    /// set (`set -u`). Variables with a default value (`${x:-0}`) are left out, and so are `$?` and
    /// others that are always set.
    pub fn variables(&self) -> impl Iterator<Item = &[u8]> {
        let text = Some(self.text.as_slice()).filter(|_| self.expansion != Expansion::None);
        let mut parts = text.unwrap_or_default().split(|byte| *byte == b'$');
        parts.next();
        parts.filter_map(|part| {
            let (inside, is_braced) = match part.strip_prefix(b"{") {
                Some(inside) => (inside.strip_prefix(b"#").unwrap_or(inside), true),
                None => (part, false),
            };
            let (name, rest) = split_name(inside);
            let operator = rest.strip_prefix(b":").unwrap_or(rest);
            let has_value = is_braced && operator.first().is_some_and(|byte| b"-+=".contains(byte));
            Some(name).filter(|name| !name.is_empty() && !has_value)
        })
    }

    /// Whether the script's word contains `$?` or `${?}`, the exit status of the command before it.
    pub fn has_status(&self) -> bool {
        let has = |status| contains(&self.text, status);
        self.expansion != Expansion::None && (has(b"$?") || has(b"${?}"))
    }

    /// Whether the shell can expand the script's word to exactly this argument.
    pub fn fits(&self, arg: &[u8]) -> bool {
        if self.expansion == Expansion::None {
            return self.text == arg;
        }
        let head = self.text.get(..self.head).unwrap_or_default();
        let tail = self.text.len().saturating_sub(self.tail);
        let tail = self.text.get(tail..).unwrap_or_default();
        arg.len() >= head.len() + tail.len() && arg.starts_with(head) && arg.ends_with(tail)
    }

    /// Whether the shell may expand the script's word to several arguments or to none.
    pub fn is_many(&self) -> bool {
        matches!(self.expansion, Expansion::Any | Expansion::Arguments)
    }
}
