//! The questions of the search back from the end of a script.

use super::super::flow::NodeIx;
use super::super::tree::CommandIx;

/// The place of a state of the comparison.
pub(super) type StateIx = usize;

/// A cause of the end of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    Child(usize),
    Statement(CommandIx),
    Unclear,
}

/// The search for what a way back from the end of a script depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Search {
    /// The exit status with which the shell ended.
    Status,
    /// The exit status of a trap, which ended the shell.
    TrapStatus,
    /// The end before the traps, with whose status the shell ended.
    BeforeTraps,
    /// The end before the traps, whose status is not that of the shell. If it was no failure, this child of the trap is the
    /// cause.
    Earlier(Option<usize>),
    /// The test of the condition under which a statement ran.
    Guard { after: NodeIx, otherwise: Otherwise },
    /// The result of that test.
    Tested(Otherwise),
    /// The setting of a variable.
    Variable {
        name: Vec<u8>,
        usage: Usage,
        otherwise: Otherwise,
    },
    /// The command right before a statement.
    Before(Otherwise),
    /// The background jobs that failed, for which the shell waited.
    Jobs,
    /// The background job that was started last.
    LastJob,
    /// The last failure in a loop, which began and ended with these nodes.
    Try(NodeIx, NodeIx, Otherwise),
}

/// A fact about the value of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Usage {
    /// The value is the exit status of the shell.
    Status,
    /// A test of it succeeded.
    Success(CommandIx),
    /// A test of it failed.
    Failure(CommandIx),
    Other,
}

/// The cause of the end if the search finds no child.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Otherwise {
    /// Another way is enough.
    Nothing,
    Unclear,
    Statement(CommandIx),
    /// A test that decided about a statement.
    Test(CommandIx),
    /// A program that answered a question about an earlier failure.
    Question(usize),
    /// A test of a variable decided about a statement, and the script shows no reason for the value. The search goes on
    /// with the condition under which the test ran.
    Condition {
        test: CommandIx,
        at: StateIx,
        after: NodeIx,
    },
}
