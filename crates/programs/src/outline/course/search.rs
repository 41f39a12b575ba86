//! The kinds of facts that the backward search from the end of a shell script looks for.

use super::super::flow::NodeIx;
use super::super::tree::CommandIx;

/// The index of a state in the comparison of a script with its recorded processes.
pub(super) type StateIx = usize;

/// A possible cause of the end of a shell script: a failed child process, a statement of the
/// script, or an unclear one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EndingCause {
    Child(usize),
    Statement(CommandIx),
    Unclear,
}

/// The fact that the backward search from the end of a script looks for next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Search {
    /// Search for the command that set the shell's final exit status.
    Status,
    /// Search for the command in a trap that set the exit status, because the trap ended the shell.
    TrapStatus,
    /// Search for the end of the script before its traps ran. The shell ended with the status of
    /// that moment.
    BeforeTraps,
    /// Search for the failure before the shell ran its traps, although the traps then changed the exit status. If
    /// there was no such failure, a trap's own child with this index is the cause. Without an index, the cause is
    /// unclear.
    Earlier(Option<usize>),
    /// Search for the test of the condition under which a statement was executed.
    Guard { after: NodeIx, otherwise: Otherwise },
    /// Search for the command whose success or failure a condition of the script tested.
    Tested(Otherwise),
    /// Search for the command whose exit status a variable got. `usage` is the known fact about this status.
    Kept {
        name: Vec<u8>,
        usage: Usage,
        otherwise: Otherwise,
    },
    /// Search for the place at which a variable was set.
    Variable {
        name: Vec<u8>,
        usage: Usage,
        otherwise: Otherwise,
    },
    /// Search at the command right before a statement of the script.
    Before(Otherwise),
    /// Search for the failed background jobs that the shell waited for.
    Jobs,
    /// Search for the background job that the shell started last.
    LastJob,
    /// Search for the last failure in a loop. The nodes are the beginning and the end of the loop.
    Try(NodeIx, NodeIx, Otherwise),
}

/// A fact about how the script used the value of a variable. The fact limits the values that the variable can have
/// had.
///
/// [`Usage::Status`] and [`Usage::Chosen`] also hold for a variable from which this variable got its value (`x=$y`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Usage {
    /// The fact is that the shell ended with the variable's value as its exit status.
    Status,
    /// The fact is that a test of the variable, the command with this number, succeeded.
    Success(CommandIx),
    /// The fact is that a test of the variable failed in the script.
    Failure(CommandIx),
    /// The fact is that a `case` chose its commands at this node by the variable's value.
    Chosen(NodeIx),
    Other,
}

/// The cause of the script's end that is reported if the backward search finds no failed child
/// process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Otherwise {
    /// If this search finds no failed child process, nothing is reported, because another path to the end of the script
    /// already has a cause.
    Nothing,
    Unclear,
    Statement(CommandIx),
    /// The cause is a test in the script that decided whether a statement was executed.
    Test(CommandIx),
    /// The cause is a test of a file that decided whether a statement was executed. If a program before this test
    /// failed, its failure is the cause instead, unless scripts run the program just to get an answer (`grep -q`).
    File(CommandIx),
    /// The cause is the failed child process with this index, unless the search finds an earlier failure. The child
    /// may only have answered the script's question about that failure, as `grep -q` does.
    Question(usize),
    /// The command `test` used a variable: either `test` is `exit $x`, or it decided by the variable whether a
    /// statement was executed. The script does not show why the variable has its value. So the search goes on with the
    /// condition under which the script ran `test`.
    Condition {
        test: CommandIx,
        at: StateIx,
        after: NodeIx,
    },
}
