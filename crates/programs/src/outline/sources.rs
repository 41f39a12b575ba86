//! The files that a shell script sources, so that its own shell executes their commands: `. file`,
//! `source file`.

use std::rc::Rc;

use tr_format::scripts::path_of;

use super::reader;
use super::tree::{Command, CommandIx, Outline, SourcedFile, Tree, LONGEST};
use super::words::Word;

/// The largest number of commands such as `. FILE` that are followed in a script and its sourced
/// files together. It bounds the work for scripts that source each other.
const MOST: usize = 16;

/// The paths that the word after `.` in a script may stand for, because the directory before it is
/// often an expansion or not known: `. "$ROOT/ci/lib.sh"`.
///
/// `script` is the path of the file that contains the word, if it is in a file, and `directory` is
/// the directory in which the shell began. The result has paths in these directories and in the one
/// above the script's: most scripts change to their own directory, and most expansions stand for
/// one of these directories.
fn candidates(word: &Word, script: Option<&[u8]>, directory: &[u8]) -> Vec<Vec<u8>> {
    let own = script.and_then(parent);
    let directories = [own, Some(directory), own.and_then(parent)];
    let (name, count) = match word.literal() {
        Some(name) if name.starts_with(b"/") => (name, 1),
        Some(name) => (name, 2),
        None => match word.path_after_expansion() {
            Some(name) => (name, 3),
            None => return Vec::new(),
        },
    };
    let mut paths: Vec<Vec<u8>> = Vec::new();
    for directory in directories.into_iter().take(count).flatten() {
        let path = path_of(directory, name).filter(|path| !paths.contains(path));
        paths.extend(path);
    }
    paths
}

fn parent(path: &[u8]) -> Option<&[u8]> {
    let end = path.iter().rposition(|byte| *byte == b'/')?;
    path.get(..end.max(1))
}

/// The word after `.` or `source` that names the sourced file; `None` for other commands, and if
/// the file gets arguments of its own.
fn file_word(command: &Command) -> Option<&Word> {
    match command.words.as_slice() {
        [first, file] if matches!(first.literal(), Some(b"." | b"source")) => Some(file),
        _ => None,
    }
}

/// The paths of the files that a script may source (`. FILE`), as far as its words show them. Files
/// that the sourced files source in turn are not included. `script` is the path of the script, if
/// it is in a file, and `directory` is the working directory of its shell.
pub fn sourced_files(text: &[u8], script: Option<&[u8]>, directory: &[u8]) -> Vec<Vec<u8>> {
    if !may_source(text) {
        return Vec::new();
    }
    let outline = Outline::read(text);
    let words = outline.commands.iter().filter_map(file_word).take(MOST);
    words
        .flat_map(|word| candidates(word, script, directory))
        .collect()
}

/// Whether a script may source a file, judged by its bytes alone. Most scripts do not, and need not
/// be read completely to know it.
fn may_source(text: &[u8]) -> bool {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let mut pairs = text.windows(2);
    let has_dot = pairs.any(|pair| matches!(pair, [b'.', after] if is_blank(after)));
    has_dot || crate::words::contains(text, b"source")
}

/// The facts that the recording gives about a file that a script may source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownFile<'a> {
    /// The recording has no file with this path.
    Absent,
    /// The file existed during the recording, but its text was not recorded.
    WithoutText,
    Text(&'a [u8]),
}

impl Outline {
    /// Reads a script together with the files that it sources (`. FILE`). `known` returns the
    /// contents of the file with a path. A file is left out if the word that names it may stand for
    /// several known files, or if parts of the file were not understood.
    pub fn with_sources<'t>(
        text: &[u8],
        script: Option<&[u8]>,
        directory: &[u8],
        known: impl Fn(&[u8]) -> KnownFile<'t>,
    ) -> Outline {
        let mut outline = Outline::read(text);
        let mut tried = 0;
        let mut at = 0;
        // The commands of a file come after all others, so that the loop reaches them as well.
        while tried < MOST {
            let Some(command) = outline.commands.get(at) else {
                break;
            };
            if let Some(word) = file_word(command) {
                let own = outline.file_of(at).map(|file| file.path.as_slice());
                let mut paths = candidates(word, own.or(script), directory);
                paths.retain(|path| known(path) != KnownFile::Absent);
                if let [path] = paths.as_slice() {
                    if let KnownFile::Text(text) = known(path) {
                        tried += 1;
                        if Some(path.as_slice()) != script {
                            outline.source(at, path, text);
                        }
                    }
                }
            }
            at += 1;
        }
        outline
    }

    /// Adds to the outline that the command at `at` sources the file with this path and text.
    fn source(&mut self, at: CommandIx, path: &[u8], text: &[u8]) {
        let mut files = self.files.iter();
        if let Some(known) = files.position(|file| file.path == path) {
            // Twice from one file, and again from each of those, would be too many visits.
            let own = self.place_of_file(at);
            let mut others = self.sources.iter();
            let is_again =
                others.any(|(other, file)| *file == known && self.place_of_file(*other) == own);
            if !is_again && !self.executes(known, at) {
                self.sources.insert(at, known);
            }
            return;
        }
        let bytes: usize = self.files.iter().map(|file| file.text.len()).sum();
        if bytes + text.len() > LONGEST {
            return;
        }
        let first = self.commands.len();
        if let Some(body) = reader::append(self, text) {
            self.sources.insert(at, self.files.len());
            self.files.push(SourcedFile {
                path: path.to_vec(),
                text: text.to_vec(),
                first,
                body,
            });
        }
    }

    /// Whether a sourced file contains the command at `at`, directly or in a file that it sources
    /// in turn.
    fn executes(&self, file: usize, at: CommandIx) -> bool {
        let mut seen = vec![file];
        let mut next = 0;
        while let Some(file) = seen.get(next).copied() {
            if self.place_of_file(at) == Some(file) {
                return true;
            }
            let inner = self
                .sources
                .iter()
                .filter(|(at, _)| self.place_of_file(**at) == Some(file));
            let new: Vec<usize> = inner
                .map(|(_, file)| *file)
                .filter(|file| !seen.contains(file))
                .collect();
            seen.extend(new);
            next += 1;
        }
        false
    }

    /// The index in [`Outline::files`] of the sourced file that contains a command; `None` if the
    /// script itself contains it.
    fn place_of_file(&self, command: CommandIx) -> Option<usize> {
        let after = self.files.partition_point(|file| file.first <= command);
        after.checked_sub(1)
    }

    /// The sourced file that contains a command; `None` if the script itself contains it.
    pub fn file_of(&self, command: CommandIx) -> Option<&SourcedFile> {
        self.files.get(self.place_of_file(command)?)
    }

    /// The commands of the file that a command of the script sources (`. FILE`), if its text is
    /// known.
    pub(super) fn sourced(&self, command: CommandIx) -> Option<&Rc<Tree>> {
        let file = self.files.get(*self.sources.get(&command)?)?;
        Some(&file.body)
    }

    /// Whether the command `inner` of a script is written inside the command `outer`, as in
    /// `echo $(inner)`.
    pub(super) fn contains(&self, outer: CommandIx, inner: CommandIx) -> bool {
        let spans = self.commands.get(outer).zip(self.commands.get(inner));
        let is_inside = spans.is_some_and(|(outer, inner)| {
            outer.span.0 < inner.span.0 && inner.span.1 < outer.span.1
        });
        is_inside && self.place_of_file(outer) == self.place_of_file(inner)
    }

    /// The text of a command as the script or a sourced file has it, on one line or several.
    pub fn text_of(&self, command: CommandIx) -> Option<&[u8]> {
        let (from, to) = self.commands.get(command)?.span;
        let text = self.file_of(command).map_or(&self.text, |file| &file.text);
        text.get(from..to)
    }
}
