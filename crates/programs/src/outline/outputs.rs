//! Finds the files to which a shell script writes the output of a program that it runs.

use std::collections::BTreeMap;

use super::arguments::are;
use super::commands::Destination;
use super::tree::Outline;
use super::words::Word;
use crate::words::split_name;

impl Outline {
    /// The files to which the script writes the output of the program with these arguments. The script can do so by a
    /// redirection, through a pipe, or by a later command such as `mv`. If `is_cut` is set, the last argument may be
    /// incomplete, and further arguments may be missing.
    ///
    /// Variables in the names of these files are replaced if the program's own arguments show their values. A name
    /// that begins with another expansion is returned without the expansion: `x.txt` for `"$dir/x.txt"`. The result is
    /// empty unless exactly one command of the script can have started the program.
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

/// The values of a script's variables, as far as the arguments of a recorded process show them. For this, the arguments
/// are compared with the words of the command that started the process.
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

/// The name of the variable, if a text in a script is nothing but the expansion of this variable.
fn variable(text: &[u8]) -> Option<&[u8]> {
    let (name, rest) = expansion(text.strip_prefix(b"$")?)?;
    rest.is_empty().then_some(name)
}

/// Splits an expansion of a script, without its `$`, into the variable's name and the text after
/// it. Returns `None` for other forms than `$x` and `${x}`.
fn expansion(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let braced = text.strip_prefix(b"{");
    let inside = braced.unwrap_or(text);
    let (name, rest) = split_name(inside);
    let rest = match braced {
        Some(_) => rest.strip_prefix(b"}")?,
        None => rest,
    };
    (!name.is_empty()).then_some((name, rest))
}

/// The name of the file that a word of a script stands for. If a variable in the word has no known value, only the
/// part after its expansion and a slash is returned; `None` if there is no such part.
fn name(word: &Word, values: &BTreeMap<&[u8], &[u8]>) -> Option<Vec<u8>> {
    if let Some(name) = word.literal() {
        return Some(name.to_vec());
    }
    let mut known = Vec::new();
    let mut is_whole = true;
    let mut rest = word.text.as_slice();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'$' {
            known.push(*byte);
            continue;
        }
        let Some((name, after)) = expansion(after) else {
            return word.path_after_expansion().map(<[u8]>::to_vec);
        };
        rest = after;
        match values.get(name) {
            Some(value) => known.extend_from_slice(value),
            None => {
                known.clear();
                is_whole = false;
            }
        }
    }
    if !is_whole {
        known = known.strip_prefix(b"/")?.to_vec();
    }
    (!known.is_empty()).then_some(known)
}
