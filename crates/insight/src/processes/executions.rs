//! Lists every execution of a program by the recorded processes.

use std::cmp::Reverse;

use tr_analyze::model::{ExecSpan, Process};
use tr_programs::command_line;

use crate::views::query::Sort;
use tr_text::{escape, units};

/// One execution of a program by a recorded process, from an exec to the next exec or the end of the process.
#[derive(Clone, Copy)]
pub struct Execution<'a> {
    pub process: &'a Process,
    pub exec: &'a ExecSpan,
    /// Whether this is the last execution of a program by its process. Every earlier execution ended when the next
    /// one began.
    pub last: bool,
}

impl Execution<'_> {
    /// The raw `wait` status of the process, if this execution of a program lasted until the end of the process;
    /// otherwise `None`.
    pub fn status(&self) -> Option<u32> {
        self.process.status.filter(|_| self.last)
    }

    /// Whether the program was still running at the end of the recording.
    pub fn alive(&self) -> bool {
        self.last && self.process.status.is_none() && self.process.alive
    }

    /// One word for the event that ended this execution of a program, such as an exit or the next exec.
    pub fn ended(&self) -> &'static str {
        match self.status() {
            Some(_) => "exit",
            None if !self.last => "exec",
            None if self.alive() => "alive",
            None => "unknown",
        }
    }

    /// The label of the executed program, such as `cc1 main.c`; if the command line is not recorded, the file of the
    /// program or its comm (the kernel's short name of a task).
    pub fn label(&self) -> String {
        if self.exec.argv.bytes.is_empty() {
            self.command()
        } else {
            command_line::label_of(&self.exec.argv, &self.exec.comm, false)
        }
    }

    /// The command line of the executed program; if the command line is not recorded, the file of the program or its
    /// comm (the kernel's short name of a task).
    pub fn command(&self) -> String {
        let argv = &self.exec.argv;
        let mut out = if !argv.bytes.is_empty() {
            escape::quoted(argv.args())
        } else if self.exec.filename.is_empty() {
            escape::raw(self.exec.comm.bytes())
        } else {
            escape::raw(&self.exec.filename)
        };
        if let Some(full) = argv.full_len.filter(|_| argv.truncated()) {
            out.push_str(&format!(" … of {}", units::bytes(full.into())));
        }
        out
    }
}

/// The executions of programs by a process, in the order of time.
pub fn executions(process: &Process) -> impl Iterator<Item = Execution<'_>> {
    let execs = process.execs.iter().enumerate();
    execs.map(move |(at, exec)| Execution {
        process,
        exec,
        last: at + 1 == process.execs.len(),
    })
}

/// Sorts executions of programs by a figure in descending order, or by start or pid in ascending order. Executions
/// with an equal figure are sorted by start.
pub fn sort(rows: &mut [Execution], by: Sort) {
    rows.sort_by_key(|Execution { process, exec, .. }| {
        let tree = process.tree.times.on_cpu;
        let figure = match by {
            Sort::Pid => u64::MAX - u64::from(process.pid.0),
            _ => by.figure(&exec.times, exec.wall(), exec.max_rss, tree),
        };
        (Reverse(figure), exec.start, process.pid, process.start)
    });
}
