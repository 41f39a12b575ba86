//! The outline of a shell script: its commands, and how they are connected.
//!
//! [`Outline::read`] reads any text and always ends. A text that is no script, or that has a part which the reader does
//! not know, gives an outline that is not [`whole`](Outline::is_whole). Rules:
//! <https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html>, and the manuals of dash and bash.
//!
//! No published crate does this: the parsers of shell scripts on crates.io (conch-parser, brush-parser,
//! tree-sitter-bash) return an error for the first thing that they do not know, or recurse without a limit.

mod arguments;
mod builtins;
mod commands;
mod course;
mod flow;
mod options;
mod outputs;
mod patterns;
mod reader;
mod sources;
mod tree;
mod values;
mod words;

pub use builtins::{may_decide, starts_nothing};
pub use course::{Child, CommandText, Course, Ending, ScriptPart};
pub use options::{Options, Setting};
pub use sources::{sourced_files, KnownFile};
pub use tree::{
    Arm, Assignment, CaseArm, Command, CommandIx, ForLoop, Function, Link, Outline, SourcedFile,
    StatusUsage, Substitution, Trap, Tree, LONGEST_SCRIPT,
};
pub use values::without_values;
pub use words::{Expansion, Word};

impl Outline {
    /// Reads the outline of a shell script. Only the first [`LONGEST_SCRIPT`] bytes of a longer text are
    /// read.
    pub fn read(text: &[u8]) -> Outline {
        reader::read(text)
    }
}

#[cfg(test)]
mod tests;
