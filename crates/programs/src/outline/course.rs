//! Finds the paths through a shell script that agree with the recorded processes which its shell
//! started, and the command that made the script end.

mod causes;
mod compare;
mod search;
mod variables;
mod walk;

use std::collections::BTreeMap;
use std::rc::Rc;

use super::options::Options;
use super::tree::{CommandIx, Outline, StatusUsage, Tree};
use super::words::Word;

/// The largest number of commands after `||` that are examined for one that writes the file which the failed command
/// before `||` should have written. A guess: scripts run only a few other commands before such a command, for example
/// to print a message.
const SUBSTITUTES: usize = 8;

/// A process that the shell of a script started.
#[derive(Clone, Debug, Default)]
pub struct Child<'a> {
    /// The arguments of the first program that the child process executed; `None` if it executed
    /// none.
    pub args: Option<Vec<&'a [u8]>>,
    /// Whether the recorded arguments of the child process are incomplete: the last one was cut
    /// off, or further ones are missing.
    pub is_cut: bool,
    /// The exit status of the child process, as the shell has it in `$?`; `None` if it is not
    /// known.
    pub status: Option<u32>,
}

/// A shell script, or the commands of a script that a subshell process runs.
#[derive(Clone, Debug)]
pub struct ScriptPart {
    outline: Rc<Outline>,
    tree: Rc<Tree>,
    options: Options,
}

/// A command of a shell script as it is written there, with its file and its line.
#[derive(Clone, Copy, Debug)]
pub struct CommandText<'a> {
    /// The path of the sourced file (`. FILE`) that contains the command; `None` if the script
    /// itself contains it.
    pub file: Option<&'a [u8]>,
    /// The number of the line on which the script's command begins, from 1.
    pub line: u32,
    pub text: &'a [u8],
}

/// The reason why the shell of a script ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The script ended because this child of its shell failed. The value is the index of the
    /// child.
    Child(usize),
    /// The script ended because of one of these children of its shell, or because of a statement.
    OneOf(Vec<usize>),
    /// The script ended because these children of its shell failed. One command in a loop started all of them, and
    /// each failure alone would have ended the script.
    Each(Vec<usize>),
    /// The script was ended by a builtin or a statement such as `exit 4`, and not by the failure of
    /// a child process.
    Statement(CommandIx),
    /// One of these statements of the script ended it, and not the failure of a child process.
    Statements(Vec<CommandIx>),
    Unknown,
}

/// The proven facts about one run of a shell script: why it ended, and which command started each
/// child process.
#[derive(Clone, Debug)]
pub struct Course {
    pub ending: Ending,
    /// The children whose failures may be the reason why a statement ended the script. A child is in the list if it is
    /// a background job, if its command names the same file as the statement or as the test before the statement, or
    /// if the statement or test contains its command (`$(…)`). If there is no such child, the list has, for each
    /// variable that the script tested, the last failed command whose success would have changed the variable.
    pub linked: Vec<usize>,
    /// For each child process of the script's shell, the command that it was started for, if this
    /// is certain.
    pub commands: Vec<Option<CommandIx>>,
    /// For each child process of the script's shell, the commands of the script that the child runs itself, as a
    /// subshell does; `None` if the child runs none.
    pub parts: Vec<Option<ScriptPart>>,
}

impl ScriptPart {
    /// A whole shell script, which a shell with these options runs.
    pub fn new(outline: Rc<Outline>, options: Options) -> ScriptPart {
        ScriptPart {
            tree: outline.body.clone(),
            outline,
            options,
        }
    }

    /// The name of the program that a command of the script starts. If the name begins with an
    /// expansion, the result is the path after the expansion: `tools/x` for `"$top/tools/x"`.
    /// `None` if the script does not contain the name, or if a function has this name.
    pub fn program(&self, command: CommandIx) -> Option<&[u8]> {
        let command = self.outline.commands.get(command)?;
        let word = command.words.first()?;
        let name = word.literal().or_else(|| word.path_after_expansion())?;
        let mut functions = self.outline.functions.iter();
        functions
            .all(|function| function.name != name)
            .then_some(name)
    }

    /// Whether the script runs a second command if this command fails (`get -o x || echo > x`), and redirects the
    /// output of the second command to a file that the failed command names.
    pub fn has_substitute(&self, command: CommandIx) -> bool {
        let commands = &self.outline.commands;
        let Some(failed) = commands.get(command) else {
            return false;
        };
        let is_named = |word: &Word| {
            let mut names = failed.words.iter().chain(&failed.output);
            names.any(|name| name.text == word.text)
        };
        let file = self.outline.file_of(command);
        let text = file.map_or(&self.outline.text, |file| &file.text);
        let mut end = failed.span.1;
        let mut is_in_braces = false;
        // The commands are in the order of the text, so the next ones stand after the failed command.
        for other in commands.iter().skip(command + 1).take(SUBSTITUTES) {
            let between = text.get(end..other.span.0).unwrap_or_default();
            let between: Vec<u8> = between
                .iter()
                .copied()
                .filter(|byte| !byte.is_ascii_whitespace())
                .collect();
            match between.as_slice() {
                _ if is_in_braces && !between.contains(&b'}') => {}
                b"||{" if !is_in_braces => is_in_braces = true,
                b"||" if !is_in_braces => {}
                _ => return false,
            }
            if other.output.as_ref().is_some_and(is_named) {
                return true;
            }
            if !is_in_braces {
                return false;
            }
            end = other.span.1;
        }
        false
    }

    /// The use that the script makes of the exit status of each of its commands, apart from `set -e`.
    pub fn status_usage(&self) -> BTreeMap<CommandIx, StatusUsage> {
        let mut found = BTreeMap::new();
        let outline = &self.outline;
        let functions = outline.functions.iter().map(|function| &function.body);
        let files = outline.files.iter().map(|file| &file.body);
        let whole = StatusUsage {
            is_used: true,
            is_condition: false,
        };
        for tree in std::iter::once(&outline.body).chain(functions).chain(files) {
            tree.with_usage(whole, &mut |ix, usage| {
                found.insert(ix, usage);
            });
        }
        found
    }

    /// The text of a command of the script, with its file and its line.
    pub fn text(&self, command: CommandIx) -> Option<CommandText<'_>> {
        Some(CommandText {
            file: self
                .outline
                .file_of(command)
                .map(|file| file.path.as_slice()),
            line: self.outline.commands.get(command)?.line,
            text: self.outline.text_of(command)?,
        })
    }
}
