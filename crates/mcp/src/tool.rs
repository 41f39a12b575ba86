//! The declaration of a tool for AI agents, which stands in the code beside the subcommand of `tr`
//! that the tool runs.

/// A tool that an AI agent can call by the Model Context Protocol. It runs a subcommand of `tr`.
#[derive(Debug)]
pub struct AgentTool {
    pub name: &'static str,
    /// The description of the tool, by which the agent decides whether to call it.
    pub about: &'static str,
    /// The first words of the `tr` command line that the tool runs.
    pub words: &'static [&'static str],
    pub takes: &'static [Takes],
}

impl AgentTool {
    /// Whether the tool runs a command that the agent chooses, so that the user must permit it.
    pub fn records(&self) -> bool {
        self.takes(TakesKind::Command)
    }

    /// Whether the tool, which an agent can call, has an argument of this type.
    pub fn takes(&self, kind: TakesKind) -> bool {
        self.takes.iter().any(|takes| takes.1 == kind)
    }
}

/// An argument of a tool for agents: its name, its type and its description. Unless it is a file,
/// the `tr` command line has an option with the same name.
#[derive(Debug)]
pub struct Takes(pub &'static str, pub TakesKind, pub &'static str);

/// The type of an argument of a tool for agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakesKind {
    /// The argument is a recording. If the agent leaves it out, it is `trace.bin`.
    File,
    /// The argument is a list of recordings. Each becomes an option of the `tr` command line with
    /// the argument's name.
    Files,
    /// The argument is the name of a report of `tr`.
    Report,
    /// The argument is one of these words.
    Word(&'static [&'static str]),
    Text,
    Texts,
    Number,
    Switch,
    /// The argument is the command that the agent wants to record.
    Command,
    /// The argument is the name of the file for a new recording.
    Output,
}

/// The arguments that several tools for agents have in common.
pub mod takes {
    use super::{Takes, TakesKind};

    pub const FILE: Takes = Takes("file", TakesKind::File, "the recording [trace.bin]");
    pub const TOP: Takes = Takes("top", TakesKind::Number, "rows");
}
