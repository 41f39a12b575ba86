//! The files that a shell script sources, so that its own shell executes their commands: `. file`,
//! `source file`.

use std::rc::Rc;

use tr_format::scripts::{path_of, NamesInDirectory};

use super::builtins::is_source;
use super::patterns;
use super::reader;
use super::tree::{Command, CommandIx, ForLoop, Outline, SourcedFile, Tree, LONGEST_SCRIPT};
use super::words::{Expansion, Word};
use crate::words::split_name;

/// The largest number of sourced files that are added to an outline. A file counts for each command that executes it.
/// This bounds the work for scripts that execute each other.
const MOST_SOURCES: usize = 16;

/// The largest number of words of `for` loops that are examined for one command that sources files.
const LOOP_WORDS: usize = 64;

/// The paths of the files that the word after `.` may name. The file's directory is not certain, so each inner list
/// has the paths for one possible directory.
///
/// `script` is the path of the file that contains the word, if the word is in a file. `directory` is the directory in
/// which the shell began. The script may have changed the directory, mostly to its own. An expansion at the beginning
/// of the word mostly stands for the script's directory or its parent: `. "$(dirname "$0")/lib.sh"`,
/// `. "$ROOT/ci/lib.sh"`.
fn candidates(
    word: &Word,
    script: Option<&[u8]>,
    directory: &[u8],
    names: &mut NamesInDirectory<'_>,
) -> Vec<Vec<Vec<u8>>> {
    let own = script.and_then(parent);
    let directories = [own, Some(directory), own.and_then(parent)];
    let pattern = FilePattern::of(word);
    let name = match &pattern {
        Some(pattern) => Some(pattern.directory),
        None => word.literal().or_else(|| word.path_after_expansion()),
    };
    let Some(name) = name else {
        return Vec::new();
    };
    let has_expansion = match &pattern {
        Some(pattern) => pattern.has_expansion,
        None => word.literal().is_none(),
    };
    let count = match (has_expansion, name.starts_with(b"/")) {
        (true, _) => 3,
        (false, true) => 1,
        (false, false) => 2,
    };
    let mut paths: Vec<Vec<u8>> = Vec::new();
    for directory in directories.into_iter().take(count).flatten() {
        let path = path_of(directory, name).filter(|path| !paths.contains(path));
        paths.extend(path);
    }
    let Some(pattern) = pattern else {
        return paths.into_iter().map(|path| vec![path]).collect();
    };
    let groups = paths.into_iter().map(|directory| {
        let mut found = names(&directory);
        found.retain(|name| pattern.fits(name));
        found.sort_unstable();
        let files = found.iter().filter_map(|name| path_of(&directory, name));
        files.take(MOST_SOURCES + 1).collect()
    });
    groups.filter(|group: &Vec<_>| !group.is_empty()).collect()
}

/// A pattern of the names of files in one directory: `conf.d/*.sh`, `"$here"/conf.d/*.sh`
struct FilePattern<'a> {
    /// The directory in which the files are. If the directory's text has an expansion such as `$x`, only the part after
    /// the expansion is kept.
    directory: &'a [u8],
    name: &'a [u8],
    has_expansion: bool,
}

impl<'a> FilePattern<'a> {
    fn of(word: &'a Word) -> Option<FilePattern<'a>> {
        if word.expansion == Expansion::None {
            return None;
        }
        let start = end_of_expansions(&word.text);
        let mut path = word.text.get(start..)?;
        if start > 0 {
            path = path.strip_prefix(b"/")?;
        }
        let slash = path.iter().rposition(|byte| *byte == b'/');
        let (directory, name) = match slash {
            Some(at) => (path.get(..=at)?, path.get(at + 1..)?),
            None => (&b"."[..], path),
        };
        let is_pattern = |part: &[u8]| part.iter().any(|byte| b"*?[".contains(byte));
        let is_plain = patterns::is_plain(path) && !is_pattern(directory) && is_pattern(name);
        is_plain.then_some(FilePattern {
            directory,
            name,
            has_expansion: start > 0,
        })
    }

    /// Whether the pattern matches the name of a file. A name that begins with a dot is only matched by a pattern that
    /// begins with a dot, too.
    fn fits(&self, name: &[u8]) -> bool {
        let is_hidden = name.starts_with(b".") && !self.name.starts_with(b".");
        !is_hidden && patterns::fits(self.name, name)
    }
}

/// The position after the last expansion (`$x`, `$(…)`) in a word of a script; 0 if there is none.
fn end_of_expansions(text: &[u8]) -> usize {
    let closed = text.iter().rposition(|byte| b")}`\"".contains(byte));
    let closed = closed.map_or(0, |at| at + 1);
    let Some(dollar) = text.iter().rposition(|byte| *byte == b'$') else {
        return closed;
    };
    let name = text.get(dollar + 1..).unwrap_or_default();
    closed.max(dollar + 1 + split_name(name).0.len())
}

fn parent(path: &[u8]) -> Option<&[u8]> {
    let end = path.iter().rposition(|byte| *byte == b'/')?;
    path.get(..end.max(1))
}

/// The word after `.` or `source` that names the sourced file; `None` for other commands, and if
/// the file gets arguments of its own.
fn file_word(command: &Command) -> Option<&Word> {
    match command.words.as_slice() {
        [first, file] if first.literal().is_some_and(is_source) => Some(file),
        _ => None,
    }
}

/// The paths of files that a script may execute in its own shell, as far as the script's words show these paths. Files
/// that the executed files execute in turn are left out. `script` is the path of the file that contains the script, if
/// there is such a file, and `directory` is the directory of the shell. `names` returns the names of the files in a
/// directory, for patterns.
pub fn sourced_files(
    text: &[u8],
    script: Option<&[u8]>,
    directory: &[u8],
    names: &mut NamesInDirectory<'_>,
) -> Vec<Vec<u8>> {
    if !may_source(text) {
        return Vec::new();
    }
    let outline = Outline::read(text);
    let commands = outline.commands.iter();
    let words = commands.flat_map(|command| outline.file_words(command));
    let groups = words
        .take(MOST_SOURCES)
        .flat_map(|word| candidates(word, script, directory, names));
    groups.flatten().collect()
}

/// Whether a script may source a file, judged by its bytes alone. Most scripts source no file, and this check saves
/// reading them completely.
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
    /// The words that name the files which a command such as `. FILE` executes. If the word after `.` is the variable
    /// of `for` loops (`. $part`), the result has the words of these loops. Otherwise the result is the word after `.`
    /// itself, or empty if this word is a pattern.
    fn file_words<'o>(&'o self, command: &'o Command) -> Vec<&'o Word> {
        let Some(word) = file_word(command) else {
            return Vec::new();
        };
        let is_loop = |known: &&ForLoop| word.variable() == Some(&known.variable);
        let loops = self.loops.iter().filter(is_loop);
        let commands = loops.filter_map(|known| self.commands.get(known.words));
        let words: Vec<&Word> = commands
            .flat_map(|command| &command.words)
            .take(LOOP_WORDS)
            .collect();
        // Outside of a `for` loop, the shell executes only the first file that a pattern matches, and the names of the
        // other files are its arguments. So a pattern outside of a loop counts as naming no file.
        if words.is_empty() && FilePattern::of(word).is_none() {
            vec![word]
        } else {
            words
        }
    }

    /// Reads a script with the files that it executes in its own shell. `known` returns the recorded facts about a
    /// file, and `names` returns the names of the known files in a directory. A file is left out if the word after `.`
    /// may name known files in several directories, if the text of the file was not recorded, or if the reader does
    /// not understand a part of the file.
    pub fn with_sources<'t>(
        text: &[u8],
        script: Option<&[u8]>,
        directory: &[u8],
        known: impl Fn(&[u8]) -> KnownFile<'t>,
        names: &mut NamesInDirectory<'_>,
    ) -> Outline {
        let mut outline = Outline::read(text);
        let mut tried = 0;
        let mut at = 0;
        // The commands of a sourced file are added after all others, so that this loop reaches them as well.
        while tried < MOST_SOURCES {
            let Some(command) = outline.commands.get(at) else {
                break;
            };
            let own = outline.file_of(at).map(|file| file.path.as_slice());
            let own = own.or(script);
            let words = outline.file_words(command);
            let mut paths: Option<Vec<Vec<u8>>> = Some(Vec::new());
            for word in words {
                let mut groups = candidates(word, own, directory, names);
                groups.retain(|group| group.iter().any(|path| known(path) != KnownFile::Absent));
                match (groups.as_slice(), &mut paths) {
                    ([group], Some(paths)) => paths.extend(group.iter().cloned()),
                    // A pattern that matches no file is no problem, because the script may expect that.
                    ([], _) if FilePattern::of(word).is_some() => {}
                    _ => paths = None,
                }
            }
            let paths = paths.unwrap_or_default();
            let texts = paths.iter().map_while(|path| match known(path) {
                KnownFile::Text(text) => Some(text),
                _ => None,
            });
            let texts: Vec<&[u8]> = texts.collect();
            if texts.len() == paths.len()
                && !paths.is_empty()
                && tried + paths.len() <= MOST_SOURCES
            {
                tried += paths.len();
                if paths.iter().all(|path| Some(path.as_slice()) != script) {
                    outline.source(at, &paths, &texts);
                }
            }
            at += 1;
        }
        outline
    }

    /// Notes that a command executes one of these files, or executes all of them one after the other.
    fn source(&mut self, at: CommandIx, paths: &[Vec<u8>], texts: &[&[u8]]) {
        let files = paths.iter().zip(texts);
        let files: Option<Vec<usize>> = files
            .map(|(path, text)| self.file(at, path, text))
            .collect();
        if let Some(files) = files {
            self.sources.insert(at, files);
        }
    }

    /// The index in [`Outline::files`] of a file that a command executes; `None` if it cannot be part of the outline.
    fn file(&mut self, at: CommandIx, path: &[u8], text: &[u8]) -> Option<usize> {
        let mut files = self.files.iter();
        if let Some(known) = files.position(|file| file.path == path) {
            // If one file sources another one twice, and that one a third one twice, and so on, the number of visits
            // doubles with each file. So a file may source another file only once.
            let own = self.place_of_file(at);
            let mut others = self.sources.iter();
            let is_again = others
                .any(|(other, files)| files.contains(&known) && self.place_of_file(*other) == own);
            return (!is_again && !self.executes(known, at)).then_some(known);
        }
        let bytes: usize = self.files.iter().map(|file| file.text.len()).sum();
        if bytes + text.len() > LONGEST_SCRIPT {
            return None;
        }
        let first = self.commands.len();
        let body = reader::append(self, text)?;
        self.files.push(SourcedFile {
            path: path.to_vec(),
            text: text.to_vec(),
            first,
            body,
        });
        Some(self.files.len() - 1)
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
                .flat_map(|(_, files)| files)
                .copied()
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

    /// The commands of each file that a command may execute in the script's own shell.
    pub(super) fn sourced(&self, command: CommandIx) -> impl Iterator<Item = &Rc<Tree>> {
        let places = self.sources.get(&command).into_iter().flatten();
        let files = places.filter_map(|place| self.files.get(*place));
        files.map(|file| &file.body)
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
