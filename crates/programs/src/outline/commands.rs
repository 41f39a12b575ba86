//! The commands of a script in the order of its text.

use super::arguments::are;
use super::tree::{Command, CommandIx, Outline, Tree};
use super::words::Word;
use crate::words;

/// The signals by which others end a shell, by their names and numbers, separated by spaces.
const SIGNALS: &str = "1 15 2 HUP INT TERM";

impl Outline {
    /// The simple commands in the order of the text, without the commands that only expand words. The redirections of a
    /// compound command count as a command without words.
    pub fn in_order(&self) -> Vec<&Command> {
        let mut places = Vec::new();
        self.collect(&self.body, &mut places);
        let commands = places.into_iter();
        commands.filter_map(|ix| self.commands.get(ix)).collect()
    }

    /// The file that gets the output of a program with these arguments, also through a pipe. `is_cut` is whether arguments
    /// are missing at the end. `None` if the script has no command or several commands that can be the program, or if the
    /// name of the file is not written out.
    pub fn output_of(&self, args: &[&[u8]], is_cut: bool) -> Option<&[u8]> {
        let mut found = Vec::new();
        self.visit(&self.body, None, &mut |ix, output| {
            let words = self.commands.get(ix).map(|command| &command.words);
            if words.is_some_and(|words| !words.is_empty() && are(words, args, is_cut)) {
                found.push(output);
            }
        });
        let [Some(output)] = found.as_slice() else {
            return None;
        };
        let is_written_out = !output.contains(&b'$') && !output.contains(&b'`');
        Some(*output).filter(|_| is_written_out)
    }

    /// Whether the script sets a trap for a signal that others send, so that the shell can end at any command.
    pub fn handles_signals(&self) -> bool {
        let is_signal = |word: &Word| {
            let name = word.text.strip_prefix(b"SIG").unwrap_or(&word.text);
            words::has(SIGNALS, name)
        };
        self.commands.iter().any(|command| {
            let first = command.words.first().and_then(Word::literal);
            first == Some(b"trap") && command.words.iter().skip(2).any(is_signal)
        })
    }

    /// Appends the places of the simple commands in a tree.
    pub(super) fn collect(&self, tree: &Tree, places: &mut Vec<CommandIx>) {
        self.visit(tree, None, &mut |ix, _| places.push(ix));
    }

    /// Calls `each` for the simple commands in a tree, with the file that gets their output. `output` is that of the
    /// commands around the tree.
    fn visit<'a>(
        &'a self,
        tree: &Tree,
        output: Option<&'a [u8]>,
        each: &mut impl FnMut(CommandIx, Option<&'a [u8]>),
    ) {
        match tree {
            Tree::Simple(ix) => {
                let output = self.output(*ix).or(output);
                each(*ix, output);
                if let Some(body) = self.sourced(*ix) {
                    self.visit(body, output, each);
                }
            }
            Tree::List(all) => all.iter().for_each(|tree| self.visit(tree, output, each)),
            Tree::Pipe { members, .. } => {
                let last = members.last().and_then(|last| match &**last {
                    Tree::Simple(ix) => self.output(*ix),
                    Tree::Redirected { words, .. } => self.output(*words),
                    _ => None,
                });
                for tree in members {
                    self.visit(tree, last.or(output), each);
                }
            }
            Tree::Chain(all) => all
                .iter()
                .for_each(|(_, tree)| self.visit(tree, output, each)),
            Tree::Background(body) | Tree::Subshell(body) => self.visit(body, output, each),
            Tree::If { arms, otherwise } => {
                for arm in arms {
                    self.visit(&arm.condition, output, each);
                    self.visit(&arm.body, output, each);
                }
                if let Some(otherwise) = otherwise {
                    self.visit(otherwise, output, each);
                }
            }
            Tree::Loop { arm, .. } => {
                self.visit(&arm.condition, output, each);
                self.visit(&arm.body, output, each);
            }
            Tree::For { body, .. } => self.visit(body, output, each),
            Tree::Case { arms, .. } => {
                arms.iter()
                    .for_each(|arm| self.visit(&arm.body, output, each));
            }
            Tree::Redirected { words, body } => {
                self.visit(body, self.output(*words).or(output), each);
                each(*words, output);
            }
            Tree::Function(ix) => {
                if let Some(function) = self.functions.get(*ix) {
                    self.visit(&function.body, None, each);
                }
            }
        }
    }

    /// The file to which a command's own redirection sends its output.
    fn output(&self, ix: CommandIx) -> Option<&[u8]> {
        self.commands.get(ix)?.output.as_deref()
    }
}
