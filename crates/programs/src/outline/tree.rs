//! The data structures of a shell script's outline: commands, words, and how the commands are
//! connected.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::words::Word;

/// The largest number of bytes of a shell script that are read.
pub const LONGEST_SCRIPT: usize = 65_536;

/// The index of a command of a shell script in [`Outline::commands`].
pub type CommandIx = usize;

/// The outline of a shell script: its commands and how they are connected, found by reading the
/// script without running it.
#[derive(Clone, Debug, Default)]
pub struct Outline {
    /// The text of the script that was read.
    pub text: Vec<u8>,
    /// The simple commands of the script in the order of the text, including those of functions and of `$(…)`. The
    /// commands of traps follow, and then those of sourced files.
    pub commands: Vec<Command>,
    /// The commands that the shell executes for the script, as a tree of lists, pipes, loops and
    /// conditions.
    pub body: Rc<Tree>,
    /// The functions that the script defines. A function that is defined twice is in the list
    /// twice.
    pub functions: Vec<Function>,
    /// The commands that the script sets with `trap` for the shell's end or for errors.
    pub traps: Vec<Trap>,
    /// The loops by `for` and `select` over words.
    pub loops: Vec<ForLoop>,
    /// Whether the reader knows all parts of the script.
    pub is_whole: bool,
    /// The files that the script sources (`. FILE`), in the order of the commands that do so.
    pub files: Vec<SourcedFile>,
    /// The commands that execute files in the script's own shell, each with the indices of these files in `files`. In a
    /// loop, such a command executes one file after the other.
    pub(super) sources: BTreeMap<CommandIx, Vec<usize>>,
}

/// A loop of a script over words, by `for` or `select`.
#[derive(Clone, Debug)]
pub struct ForLoop {
    pub variable: Vec<u8>,
    /// The index of the loop's words among the script's commands: the words are stored as a command without a name.
    pub words: CommandIx,
}

/// A file that a script sources (`. FILE`), so that its commands run in the script's own shell.
#[derive(Clone, Debug)]
pub struct SourcedFile {
    /// The absolute path of the sourced file, as [`path_of`](tr_format::scripts::path_of) makes it.
    pub path: Vec<u8>,
    pub text: Vec<u8>,
    /// The index of the sourced file's first command. The commands of the next file follow this
    /// file's last one.
    pub first: CommandIx,
    pub body: Rc<Tree>,
}

/// A simple command of a shell script: its assignments, words and redirections.
#[derive(Clone, Debug, Default)]
pub struct Command {
    /// The line, from 1, on which the command begins in the script or in the sourced file that contains it.
    pub line: u32,
    /// The byte range of the command in the text of the script or sourced file: its first byte, and the byte after its
    /// last one. A command in backquotes has the range of the backquotes, and a command of a trap that of the `trap`
    /// command.
    pub span: (usize, usize),
    pub assignments: Vec<Assignment>,
    pub words: Vec<Word>,
    /// The file to which a redirection sends the command's standard output.
    pub output: Option<Word>,
    /// Whether the shell opens a file outside of `/dev` for the command's redirections, which can fail.
    pub opens: bool,
    /// Whether an expansion in the command's words ends the shell if a variable is not set
    /// (`${x:?}`).
    pub insists: bool,
    /// The command substitutions that the shell runs to expand the command's words, in the order of
    /// the text.
    pub substitutions: Vec<Substitution>,
}

/// The assignment of a variable in a shell script: `name=word`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    pub name: Vec<u8>,
    pub value: Word,
}

/// A substitution in a word of a shell script: commands in `$(…)`, in backquotes, or in `<(…)`.
#[derive(Clone, Debug)]
pub struct Substitution {
    pub body: Rc<Tree>,
    /// Whether the shell does not wait for the commands of the substitution: `<(…)`, `>(…)`.
    pub is_beside: bool,
    /// Whether the shell itself may never start the commands of the substitution. For example,
    /// `${x:-$(…)}` needs them only if `x` is not set, and bash expands the file of a redirection
    /// in the command's process.
    pub may_be_left_out: bool,
}

/// The operator that connects a command of a shell script with the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// The operator `&&` of the shell: the command runs if the one before it succeeded.
    And,
    /// The operator `||` of the shell: the command runs if the one before it failed.
    Or,
}

/// A part of a shell script: a simple command, or several commands connected by operators, loops or
/// conditions.
#[derive(Clone, Debug)]
pub enum Tree {
    Simple(CommandIx),
    /// A list of commands of the script that run one after the other.
    List(Vec<Tree>),
    /// A list of commands of the script connected by `&&` and `||`. The operator stored with the
    /// first command has no meaning.
    Chain(Vec<(Link, Tree)>),
    /// A pipe: one command of the script, or several that are connected by `|`. With `negated`, `!`
    /// stands before them.
    Pipe {
        members: Vec<Rc<Tree>>,
        negated: bool,
    },
    Background(Rc<Tree>),
    If {
        arms: Vec<Arm>,
        otherwise: Option<Box<Tree>>,
    },
    /// A `while` loop of the script, or an `until` loop if `until` is set.
    Loop {
        until: bool,
        arm: Box<Arm>,
    },
    /// A `for` or `select` loop. The words over which it runs are stored as a command without a name.
    For {
        words: CommandIx,
        body: Box<Tree>,
    },
    Case {
        word: CommandIx,
        arms: Vec<CaseArm>,
        /// Whether the `case` statement has the pattern `*`, which fits any word.
        has_default: bool,
    },
    Subshell(Rc<Tree>),
    /// The redirections of a compound command of the script, such as `{ …; } > FILE`. The shell
    /// opens their files before the command runs.
    Redirected {
        words: CommandIx,
        body: Box<Tree>,
    },
    /// The definition of a shell function, as an index into [`Outline::functions`].
    Function(usize),
}

impl Tree {
    /// Calls `each` for every simple command of this part of a script, with what the script does with the exit status
    /// of the command. `usage` is what the script does with the exit status of the whole part.
    pub(super) fn with_usage(
        &self,
        usage: StatusUsage,
        each: &mut impl FnMut(CommandIx, StatusUsage),
    ) {
        let used = |is_used: bool| StatusUsage { is_used, ..usage };
        match self {
            Tree::Simple(ix) => each(*ix, usage),
            Tree::List(all) => {
                for (at, tree) in all.iter().enumerate() {
                    let is_last = at + 1 == all.len();
                    tree.with_usage(used(is_last && usage.is_used), each);
                }
            }
            Tree::Chain(all) => {
                let is_alone = all.len() == 1;
                for (_, tree) in all {
                    tree.with_usage(used(!is_alone || usage.is_used), each);
                }
            }
            Tree::Pipe { members, negated } => {
                let is_alone = members.len() == 1 && !negated;
                for member in members {
                    member.with_usage(used(!is_alone || usage.is_used), each);
                }
            }
            Tree::If { arms, otherwise } => {
                for arm in arms {
                    arm.condition.with_usage(StatusUsage::CONDITION, each);
                    arm.body.with_usage(usage, each);
                }
                if let Some(otherwise) = otherwise {
                    otherwise.with_usage(usage, each);
                }
            }
            // The status of a loop's body is not used, because the next round replaces it.
            Tree::Loop { arm, .. } => {
                arm.condition.with_usage(StatusUsage::CONDITION, each);
                arm.body.with_usage(used(false), each);
            }
            Tree::For { body, .. } => body.with_usage(used(false), each),
            Tree::Case { arms, .. } => {
                for arm in arms {
                    arm.body.with_usage(usage, each);
                }
            }
            Tree::Background(tree) | Tree::Subshell(tree) => tree.with_usage(used(true), each),
            Tree::Redirected { body, .. } => body.with_usage(usage, each),
            Tree::Function(_) => {}
        }
    }
}

/// The use that a script makes of the exit status of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusUsage {
    /// Whether an operator, a condition or a pipe uses the status, or the status becomes that of a whole list of
    /// commands.
    pub is_used: bool,
    /// Whether the command is in a condition, after `if`, `elif`, `while` or `until`, so that its failure is an answer
    /// and no error.
    pub is_condition: bool,
}

impl StatusUsage {
    const CONDITION: StatusUsage = StatusUsage {
        is_used: true,
        is_condition: true,
    };
}

impl Default for Tree {
    fn default() -> Tree {
        Tree::List(Vec::new())
    }
}

/// A function that a shell script defines.
#[derive(Clone, Debug, Default)]
pub struct Function {
    pub name: Vec<u8>,
    pub body: Rc<Tree>,
}

/// The commands that a shell script sets with `trap` for errors (`ERR`) or for the end of the shell (`EXIT`). Traps
/// for signals are left out.
#[derive(Clone, Debug, Default)]
pub struct Trap {
    /// Whether the trap's commands run after each command that fails (`ERR`), and not at the end of
    /// the shell.
    pub is_of_errors: bool,
    pub body: Rc<Tree>,
}

/// A condition of a shell script (after `if`, `elif`, `while` or `until`), and the commands that run if the condition
/// succeeds or, after `until`, fails.
#[derive(Clone, Debug, Default)]
pub struct Arm {
    pub condition: Tree,
    pub body: Tree,
}

/// The commands of one branch of a `case` statement in a shell script.
#[derive(Clone, Debug, Default)]
pub struct CaseArm {
    pub patterns: Vec<Word>,
    pub body: Tree,
}

impl CaseArm {
    /// Whether the branch of the `case` statement has `0` as its only pattern.
    pub fn is_zero(&self) -> bool {
        matches!(self.patterns.as_slice(), [only] if only.text == b"0")
    }
}
