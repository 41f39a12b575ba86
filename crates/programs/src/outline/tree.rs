//! The parts of a script's outline.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::words::Word;

/// The longest script that is read, in bytes.
pub const LONGEST: usize = 65_536;

/// The place of a command in [`Outline::commands`].
pub type CommandIx = usize;

/// A shell script, read without running it.
#[derive(Clone, Debug, Default)]
pub struct Outline {
    /// The text that was read.
    pub text: Vec<u8>,
    /// The simple commands of the script in the order of the text, also those of functions and of `$(…)`.
    pub commands: Vec<Command>,
    /// The script's list of commands.
    pub body: Rc<Tree>,
    /// The functions of the script. A function that is defined twice is there twice.
    pub functions: Vec<Function>,
    /// The commands that `trap` sets for the end of the shell or for errors.
    pub traps: Vec<Trap>,
    /// The variables of `for` and `select`.
    pub loop_variables: Vec<Vec<u8>>,
    /// Whether the reader knows all parts of the script.
    pub is_whole: bool,
    /// The files that the script executes in its own shell, in the order of their commands.
    pub files: Vec<SourcedFile>,
    /// The commands that execute a file, with the place of the file in `files`.
    pub(super) sources: BTreeMap<CommandIx, usize>,
}

/// A file that a script executes in its own shell.
#[derive(Clone, Debug)]
pub struct SourcedFile {
    /// The absolute path, as [`path_of`](tr_format::scripts::path_of) makes it.
    pub path: Vec<u8>,
    pub text: Vec<u8>,
    /// The first command of the file. The commands of the next file follow the last one.
    pub first: CommandIx,
    pub body: Rc<Tree>,
}

/// A simple command: its assignments, words and redirections.
#[derive(Clone, Debug, Default)]
pub struct Command {
    /// The line on which the command begins; the first line of a script is 1.
    pub line: u32,
    /// The places of the first byte of the command in the text, and of the first byte after it.
    pub span: (usize, usize),
    pub assignments: Vec<Assignment>,
    pub words: Vec<Word>,
    /// The file that the command's output goes to.
    pub output: Option<Word>,
    /// Whether the shell opens a file for the command, which can fail.
    pub opens: bool,
    /// Whether an expansion of the command ends the shell if a variable is not set (`${x:?}`).
    pub insists: bool,
    /// The commands that the shell runs to expand the words of the command, in the order of the text.
    pub substitutions: Vec<Substitution>,
}

/// The setting of a variable: `name=word`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    pub name: Vec<u8>,
    pub value: Word,
}

/// Commands in `$(…)`, in backquotes, or in `<(…)`.
#[derive(Clone, Debug)]
pub struct Substitution {
    pub body: Rc<Tree>,
    /// Whether the shell does not wait for the commands: `<(…)`, `>(…)`
    pub is_beside: bool,
    /// Whether the shell may expand the word without running the commands: `${x:-$(…)}`
    pub may_be_left_out: bool,
}

/// The connection of a command with the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// `&&`
    And,
    /// `||`
    Or,
}

/// A command, or commands that are connected.
#[derive(Clone, Debug)]
pub enum Tree {
    Simple(CommandIx),
    /// Commands that run one after the other.
    List(Vec<Tree>),
    /// Commands connected by `&&` and `||`. The link of the first one has no meaning.
    Chain(Vec<(Link, Tree)>),
    /// One command or several commands connected by `|`; `!` may stand before it.
    Pipe {
        members: Vec<Rc<Tree>>,
        negated: bool,
    },
    Background(Rc<Tree>),
    If {
        arms: Vec<Arm>,
        otherwise: Option<Box<Tree>>,
    },
    /// `while`, or `until` if `until` is set.
    Loop {
        until: bool,
        arm: Box<Arm>,
    },
    /// A loop over the words of a command without a name.
    For {
        words: CommandIx,
        body: Box<Tree>,
    },
    Case {
        word: CommandIx,
        arms: Vec<CaseArm>,
        /// Whether a pattern fits any word.
        has_default: bool,
    },
    Subshell(Rc<Tree>),
    /// The redirections of a command in braces or of another compound command, which run before it.
    Redirected {
        words: CommandIx,
        body: Box<Tree>,
    },
    /// The definition of a function, by its place in [`Outline::functions`].
    Function(usize),
}

impl Default for Tree {
    fn default() -> Tree {
        Tree::List(Vec::new())
    }
}

/// A function of a script.
#[derive(Clone, Debug, Default)]
pub struct Function {
    pub name: Vec<u8>,
    pub body: Rc<Tree>,
}

/// The commands of a trap.
#[derive(Clone, Debug, Default)]
pub struct Trap {
    /// Whether the commands run after each command that fails (`ERR`), and not at the end of the shell.
    pub is_of_errors: bool,
    pub body: Rc<Tree>,
}

/// A condition and the commands that it decides about.
#[derive(Clone, Debug, Default)]
pub struct Arm {
    pub condition: Tree,
    pub body: Tree,
}

/// The commands for some patterns of `case`.
#[derive(Clone, Debug, Default)]
pub struct CaseArm {
    /// Whether `0` is the only pattern.
    pub is_zero: bool,
    pub body: Tree,
}
