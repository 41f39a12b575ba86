//! The kinds of facts that the backward search from the end of a shell script looks for.

use super::super::flow::NodeIx;
use super::super::tree::CommandIx;

/// The index of a state in the comparison of a script with its recorded processes.
pub(super) type StateIx = usize;

/// A possible cause of the end of a shell script: a failed child process or a statement of the script. The cause can
/// also be unclear.
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
    /// Search for the point at which the script ended and the shell began to run its traps. The shell's final exit
    /// status is the one that the shell had at this point.
    BeforeTraps,
    /// Search for a failure that occurred before the shell ran its traps. The traps then changed the exit status, but
    /// that failure may be the reason why the script ended. If there was no such failure, the cause is the child
    /// process with this index, which a trap started. Without an index, the cause is then unclear.
    Earlier(Option<usize>),
    /// Search for the test of the condition under which a statement was executed. The node `after` is the one at which
    /// the paths continue after this test ([`Node::guard`](super::super::flow::Node::guard)).
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
    /// Search for the end of a loop right before a statement of the script. The search ends if a command stands there
    /// instead.
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
    /// The shell ended with the value of a variable as its exit status, as after `exit $x`.
    Status,
    /// The script tested a variable, and the test succeeded. The value is the index of the command that is the test.
    Success(CommandIx),
    /// The script tested a variable, and the test failed. The value is the index of the command that is the test.
    Failure(CommandIx),
    /// A `case` statement of the script chose the commands at this node by the value of a variable.
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
    /// The command with the index `test` used a variable: the command is `exit $x`, or it is a test of the variable
    /// that decided whether a statement was executed. The script does not show why the variable has its value. So the
    /// search goes on with the condition under which the script ran this command.
    Condition {
        test: CommandIx,
        at: StateIx,
        after: NodeIx,
    },
}
