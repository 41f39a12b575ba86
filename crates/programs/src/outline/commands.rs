//! Walks through the commands of a shell script in the order of its text.

use super::builtins::is_source;
use super::tree::{Command, CommandIx, Link, Outline, Tree};
use super::words::Word;
use crate::words;

/// Programs that copy, link or move files: the file that their last argument names is made from a file that another
/// argument names. Separated by spaces.
const MOVING_PROGRAMS: &str = "cp install ln mv";

/// The signals with which other processes end a shell, by their names and numbers, separated by
/// spaces.
const SIGNALS: &str = "1 15 2 HUP INT TERM";

impl Outline {
    /// The simple commands of the script in the order of its text, without those inside of `$(…)`. The redirections of
    /// a compound command count as a command without words.
    pub fn in_order(&self) -> Vec<&Command> {
        let mut places = Vec::new();
        self.collect(&self.body, &mut places);
        let commands = places.into_iter();
        commands.filter_map(|ix| self.commands.get(ix)).collect()
    }

    /// Whether the script sets a trap for a signal that other processes send. Its shell can then
    /// end at any command.
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

    /// Whether a command with this name may make the shell execute a program in its own process, without starting a
    /// new one. A function that uses `exec` may do so. `eval` and `.` may do so, too, because the text that these two
    /// commands run is not known. The name `exec` itself gives false: the caller handles that command.
    pub(super) fn may_exec(&self, name: &[u8]) -> bool {
        let mut names: Vec<&[u8]> = vec![name];
        let mut next = 0;
        while let Some(name) = names.get(next).copied() {
            if name == b"eval" || is_source(name) || next > 0 && name == b"exec" {
                return true;
            }
            let mut places = Vec::new();
            let named = self
                .functions
                .iter()
                .filter(|function| function.name == name);
            named.for_each(|function| self.collect(&function.body, &mut places));
            for ix in places {
                let words = self
                    .commands
                    .get(ix)
                    .map_or(&[][..], |command| &command.words);
                match words.first().map(Word::literal) {
                    Some(Some(inner)) if !names.contains(&inner) => names.push(inner),
                    // A name that results from an expansion may be that of any function.
                    Some(None) => return true,
                    _ => {}
                }
            }
            next += 1;
        }
        false
    }

    /// Appends the indices of the simple commands in a part of the script to `places`.
    pub(super) fn collect(&self, tree: &Tree, places: &mut Vec<CommandIx>) {
        self.visit(tree, Destination::default(), &mut |ix, _| places.push(ix));
    }

    /// Calls `each` for every simple command in a part of the script, with the files that get this
    /// command's output. `around` has the files that get the output of the whole part.
    pub(super) fn visit<'a>(
        &'a self,
        tree: &Tree,
        around: Destination<'a>,
        each: &mut impl FnMut(CommandIx, Destination<'a>),
    ) {
        match tree {
            Tree::Simple(ix) => {
                let own = around.within(self.output(*ix));
                each(*ix, own);
                for body in self.sourced(*ix) {
                    self.visit(body, own, each);
                }
            }
            Tree::List(all) => all.iter().for_each(|tree| self.visit(tree, around, each)),
            Tree::Pipe { members, .. } => {
                let last = members.last().and_then(|last| match &**last {
                    Tree::Simple(ix) => self.output(*ix),
                    Tree::Redirected { words, .. } => self.output(*words),
                    _ => None,
                });
                for tree in members {
                    self.visit(tree, around.within(last), each);
                }
            }
            Tree::Chain(all) => {
                // For each command of the chain, the file to which a later command probably moves its output: `x` in
                // `gen > x.new && mv x.new x`. The loop goes backward, so that the later commands are known.
                let mut moved = vec![None; all.len()];
                let mut later = None;
                for ((link, tree), moved) in all.iter().zip(&mut moved).rev() {
                    *moved = later;
                    later = later
                        .or_else(|| self.moved_to(tree))
                        .filter(|_| *link == Link::And);
                }
                for ((_, tree), moved) in all.iter().zip(moved) {
                    let moved = moved.or(around.moved);
                    self.visit(tree, Destination { moved, ..around }, each);
                }
            }
            Tree::Background(body) | Tree::Subshell(body) => self.visit(body, around, each),
            Tree::If { arms, otherwise } => {
                for arm in arms {
                    self.visit(&arm.condition, around, each);
                    self.visit(&arm.body, around, each);
                }
                if let Some(otherwise) = otherwise {
                    self.visit(otherwise, around, each);
                }
            }
            Tree::Loop { arm, .. } => {
                self.visit(&arm.condition, around, each);
                self.visit(&arm.body, around, each);
            }
            Tree::For { body, .. } => self.visit(body, around, each),
            Tree::Case { arms, .. } => {
                arms.iter()
                    .for_each(|arm| self.visit(&arm.body, around, each));
            }
            Tree::Redirected { words, body } => {
                self.visit(body, around.within(self.output(*words)), each);
                each(*words, around);
            }
            Tree::Function(ix) => {
                if let Some(function) = self.functions.get(*ix) {
                    self.visit(&function.body, Destination::default(), each);
                }
            }
        }
    }

    /// The file to which a command's own redirection (`> FILE`) sends its output.
    fn output(&self, ix: CommandIx) -> Option<&Word> {
        self.commands.get(ix)?.output.as_ref()
    }

    /// The last argument, if this part of the script is a command that copies or moves files (`mv x.new x`).
    fn moved_to(&self, tree: &Tree) -> Option<&Word> {
        let Tree::Simple(ix) = tree else {
            return None;
        };
        let words = &self.commands.get(*ix)?.words;
        let program = words.first().and_then(Word::literal)?;
        words::has(MOVING_PROGRAMS, program)
            .then(|| words.last())
            .flatten()
    }
}

/// The files that receive the output of a command in a script.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Destination<'a> {
    /// The file to which the command's output is redirected, directly or through a pipe.
    pub(super) output: Option<&'a Word>,
    /// The last argument of a command that copies or moves files, and that runs after this command has succeeded: `x`
    /// in `gen > x.new && mv x.new x`. The output is assumed to end there. `None` if no such command follows.
    pub(super) moved: Option<&'a Word>,
}

impl<'a> Destination<'a> {
    /// The files that receive the output of a command inside this part of the script. The command's
    /// own redirection to `output` takes precedence.
    fn within(self, output: Option<&'a Word>) -> Destination<'a> {
        Destination {
            output: output.or(self.output),
            ..self
        }
    }
}
