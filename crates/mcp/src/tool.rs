//! The declaration of a tool, which stands beside the subcommand that the tool runs.

/// A tool that an agent can call.
#[derive(Debug)]
pub struct Tool {
    pub name: &'static str,
    /// The description of the tool, by which the agent chooses it.
    pub about: &'static str,
    /// The words with which the tool's command line begins.
    pub words: &'static [&'static str],
    pub takes: &'static [Takes],
}

impl Tool {
    /// Whether the tool runs a command that the agent chooses.
    pub fn records(&self) -> bool {
        self.takes(TakesKind::Command)
    }

    /// Whether the tool takes an argument of this type.
    pub fn takes(&self, kind: TakesKind) -> bool {
        self.takes.iter().any(|takes| takes.1 == kind)
    }
}

/// An argument of a tool: its name, its type, its description. Unless it is a file, its name is also that of
/// the option of the command line.
#[derive(Debug)]
pub struct Takes(pub &'static str, pub TakesKind, pub &'static str);

/// The type of a tool's argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakesKind {
    /// The argument is a recording; `trace.bin` if it is absent.
    File,
    /// The argument is a list of recordings, each of which becomes an option with the argument's name.
    Files,
    /// The argument is the name of a report.
    Report,
    Text,
    Texts,
    Number,
    Switch,
    /// The argument is the command to record.
    Command,
    /// The argument is the name of a new recording.
    Output,
}

/// The arguments that several tools have.
pub mod takes {
    use super::{Takes, TakesKind};

    pub const FILE: Takes = Takes("file", TakesKind::File, "the recording [trace.bin]");
    pub const TOP: Takes = Takes("top", TakesKind::Number, "rows");
}
