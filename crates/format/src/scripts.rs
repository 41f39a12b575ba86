//! The shell scripts that recorded processes ran from files.

use serde::{Deserialize, Serialize};

use crate::error::within;
use crate::limits;
use crate::Fault;

/// A shell script that a recorded process ran from a file, or a file that such a script executes in its own shell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedScript {
    /// The absolute path of the script's file, as [`path_of`] makes it.
    pub path: Vec<u8>,
    /// The whole text of the script; `None` if the file had different texts at different times of the recording. In a
    /// file that only other scripts execute, `***` replaces the values of variables.
    pub text: Option<Vec<u8>>,
}

impl RecordedScript {
    fn len(&self) -> u64 {
        self.text.as_ref().map_or(0, Vec::len) as u64
    }
}

/// A function that returns the names of the files in the directory with a given path.
pub type NamesInDirectory<'n> = dyn FnMut(&[u8]) -> Vec<Vec<u8>> + 'n;

/// The absolute path of the file that a word of a shell's command line names in a directory. Empty parts and parts `.`
/// of the path are left out; symbolic links and parts `..` stay. `None` if the word is empty, or if it is relative and
/// the directory is not known.
pub fn path_of(directory: &[u8], word: &[u8]) -> Option<Vec<u8>> {
    let is_absolute = word.starts_with(b"/");
    if word.is_empty() || !is_absolute && !directory.starts_with(b"/") {
        return None;
    }
    let before = if is_absolute { &b""[..] } else { directory };
    let parts = [before, word].into_iter();
    let parts = parts.flat_map(|path| path.split(|byte| *byte == b'/'));
    let mut path = Vec::with_capacity(before.len() + 1 + word.len());
    for part in parts.filter(|part| !part.is_empty() && *part != b".") {
        path.push(b'/');
        path.extend_from_slice(part);
    }
    if path.is_empty() {
        path.push(b'/');
    }
    Some(path)
}

/// Removes the shell scripts that exceed the limits of the trace format. Returns how many were removed.
pub(crate) fn bound(scripts: &mut Vec<RecordedScript>) -> u64 {
    let before = scripts.len();
    let (mut count, mut bytes) = (0, 0);
    scripts.retain(|script| {
        let fits = script.len() <= limits::SCRIPT
            && script.path.len() <= limits::NAME
            && count < limits::SCRIPTS
            && bytes + script.len() <= limits::SCRIPT_BYTES;
        if fits {
            count += 1;
            bytes += script.len();
        }
        fits
    });
    (before - scripts.len()) as u64
}

/// Verifies that the shell scripts that were read from a trace are within the limits of the format.
pub(crate) fn check(scripts: &[RecordedScript]) -> Result<(), Fault> {
    within(
        "the number of scripts",
        scripts.len() as u64,
        limits::SCRIPTS,
    )?;
    let mut bytes = 0;
    for script in scripts {
        within("the length of a script", script.len(), limits::SCRIPT)?;
        within(
            "the length of a script's path",
            script.path.len() as u64,
            limits::NAME as u64,
        )?;
        bytes += script.len();
    }
    within("the length of all scripts", bytes, limits::SCRIPT_BYTES)
}

/// Joins the shell scripts of two parts of a recording. A file whose text differs between the parts gets no text.
pub(crate) fn joined(
    mut before: Vec<RecordedScript>,
    after: Vec<RecordedScript>,
) -> Vec<RecordedScript> {
    for script in after {
        match before.iter_mut().find(|known| known.path == script.path) {
            Some(known) if known.text != script.text => known.text = None,
            Some(_) => {}
            None => before.push(script),
        }
    }
    before
}

#[cfg(test)]
#[path = "tests/scripts.rs"]
mod tests;
