//! The files that a script makes of the output of a program.

use std::collections::BTreeMap;

use super::arguments::are;
use super::commands::Destination;
use super::tree::Outline;
use super::words::Word;

impl Outline {
    /// The files that get the output of a program with these arguments, also through a pipe, or that a command makes of it which
    /// runs only after the program's success. `is_cut` is whether arguments are missing at the end.
    ///
    /// Variables whose values the program's own arguments show are replaced. Of a name that begins with another expansion,
    /// the rest is returned: `x.txt` of `"$dir/x.txt"`. Empty if the script has no command or several commands that can be
    /// the program, and without files whose names the text does not tell.
    pub fn outputs_of(&self, args: &[&[u8]], is_cut: bool) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        self.visit(
            &self.body,
            Destination::default(),
            &mut |ix, destination| {
                let words = self.commands.get(ix).map(|command| &command.words);
                if let Some(words) =
                    words.filter(|words| !words.is_empty() && are(words, args, is_cut))
                {
                    found.push((words, destination));
                }
            },
        );
        let [(words, destination)] = found.as_slice() else {
            return Vec::new();
        };
        let values = values(words, args);
        let files = [destination.output, destination.moved]
            .into_iter()
            .flatten();
        files.filter_map(|file| name(file, &values)).collect()
    }
}

/// The values of variables by the arguments that a command's words have become.
fn values<'a>(words: &'a [Word], args: &[&'a [u8]]) -> BTreeMap<&'a [u8], &'a [u8]> {
    let pairs = words.iter().zip(args).filter(|_| words.len() == args.len());
    let values = pairs.filter_map(|(word, arg)| {
        let tail = word.text.len().checked_sub(word.tail)?;
        let inside = word.text.get(word.head..tail)?;
        let end = arg.len().checked_sub(word.tail)?;
        Some((variable(inside)?, arg.get(word.head..end)?))
    });
    values.collect()
}

/// The name of the variable that a text expands, and nothing else.
fn variable(text: &[u8]) -> Option<&[u8]> {
    let name = text.strip_prefix(b"$")?;
    let braced = name
        .strip_prefix(b"{")
        .and_then(|name| name.strip_suffix(b"}"));
    let name = braced.unwrap_or(name);
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    (!name.is_empty() && name.iter().all(is_part)).then_some(name)
}

/// The name of a file.
fn name(word: &Word, values: &BTreeMap<&[u8], &[u8]>) -> Option<Vec<u8>> {
    if let Some(name) = word.literal() {
        return Some(name.to_vec());
    }
    let tail_at = word.text.len().checked_sub(word.tail)?;
    let (head, tail) = (word.text.get(..word.head)?, word.text.get(tail_at..)?);
    let inside = word.text.get(word.head..tail_at)?;
    match variable(inside).and_then(|name| values.get(name)) {
        Some(value) => Some([head, value, tail].concat()),
        None => tail
            .strip_prefix(b"/")
            .filter(|name| !name.is_empty())
            .map(<[u8]>::to_vec),
    }
}
