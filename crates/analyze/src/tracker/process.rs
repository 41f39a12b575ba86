//! The tracker's state of a process.

use tr_format::event::{Argv, CgroupId, Tgid};

use crate::ids::{ProcIx, TaskIx};
use crate::model::ExecSpan;

/// A process as the events so far have shown it.
#[derive(Clone, Debug, Default)]
pub struct ProcessEntry {
    pub pid: Tgid,
    pub ppid: Option<Tgid>,
    pub parent: Option<ProcIx>,
    pub argv: Argv,
    pub cgroup: CgroupId,
    pub kthread: bool,
    pub threads: Vec<TaskIx>,
    pub live: usize,
    pub execs: Vec<ExecSpan>,
    /// The first thread in a linked list of those threads of the process whose times still have to be added to the
    /// times of the process's last program.
    pub(super) owing: Option<TaskIx>,
    /// The raw `wait` status of the process, if it has exited.
    pub status: Option<u32>,
    /// The largest resident set of the process's programs, in bytes.
    pub max_rss: Option<u64>,
    /// The kernel's `maxrss` at the exit of the process, in bytes.
    pub rss_bound: Option<u64>,
    /// The kernel's `maxrss` at the beginning of the process's last program, in bytes.
    pub rss_before: Option<u64>,
    /// Whether the fork of the process was seen.
    pub forked: bool,
    /// The process to which the only thread of this process turned out to belong; `None` if that has not happened.
    pub moved: Option<ProcIx>,
}
