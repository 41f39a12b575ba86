//! The declaration of a tool, which stands beside the subcommand that the tool runs.

/// A tool that an agent can call.
#[derive(Debug)]
pub struct Tool {
    pub name: &'static str,
    /// The description by which the agent chooses a tool.
    pub about: &'static str,
    /// The beginning of its command line.
    pub words: &'static [&'static str],
    pub takes: &'static [Takes],
}

impl Tool {
    /// Whether the tool runs a command of the agent's.
    pub fn records(&self) -> bool {
        self.takes(TakesKind::Command)
    }

    /// Whether the tool takes an argument of this type.
    pub fn takes(&self, kind: TakesKind) -> bool {
        self.takes.iter().any(|takes| takes.1 == kind)
    }
}

/// An argument of a tool: its name, its type, its description. Unless it is a file, it is the option of its name.
#[derive(Debug)]
pub struct Takes(pub &'static str, pub TakesKind, pub &'static str);

/// The type of a tool's argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakesKind {
    /// A recording; `trace.bin` if it is absent.
    File,
    /// Recordings, each for the option of the argument's name.
    Files,
    /// The argument is the name of a report.
    Report,
    Text,
    Texts,
    Number,
    Switch,
    /// The command to record.
    Command,
    /// A new recording.
    Output,
}

/// Arguments that several tools take.
pub mod takes {
    use super::{Takes, TakesKind};

    pub const FILE: Takes = Takes("file", TakesKind::File, "the recording [trace.bin]");
    pub const TOP: Takes = Takes("top", TakesKind::Number, "rows");
}
