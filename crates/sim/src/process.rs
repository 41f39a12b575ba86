//! A process of the simulated machine.

use tr_format::event::{Argv, CgroupId, Ktime};

use crate::sums::Sums;
use crate::task::Ref;
use crate::truth::{ExecTruth, Times};

/// The id of the cgroup with the number `n`.
pub(crate) fn cgroup(n: u32) -> CgroupId {
    CgroupId(4_000 + u64::from(n) * 73)
}

/// A process of the simulated machine.
#[derive(Debug, Default)]
pub(crate) struct Process {
    pub(crate) used: u32,
    pub(crate) tgid: u32,
    /// The number of earlier processes, which identifies this one in the truth.
    pub(crate) serial: u64,
    /// The serial number and the tgid of the process that forked this one.
    pub(crate) forked_by: Option<(u64, u32)>,
    /// The process that waits for the end of this one.
    pub(crate) parent: Option<Ref>,
    pub(crate) children: Vec<u32>,
    pub(crate) zombies: Vec<u32>,
    /// The threads that wait for a child of the process.
    pub(crate) waiters: Vec<Ref>,
    /// The slot of the leader until its last switch-out.
    pub(crate) leader: Option<u32>,
    /// The slots of the threads that have not made their last switch-out.
    pub(crate) threads: Vec<u32>,
    /// The number of threads that have not begun to exit (`signal->live`).
    pub(crate) live: u32,
    /// The number of threads that have not been released (`release_task`).
    pub(crate) unreleased: u32,
    /// Whether all threads have gone through `exit_notify`.
    pub(crate) gone: bool,
    pub(crate) reaped: bool,
    /// The raw `wait` status of `exit_group` or of a fatal signal, if there was one.
    pub(crate) group_exit: Option<u32>,
    pub(crate) leader_code: u32,
    /// The thread that executes a program, while its sibling threads exit.
    pub(crate) execing: Option<u32>,
    pub(crate) stopped: bool,
    pub(crate) followed: bool,
    pub(crate) kthread: bool,
    pub(crate) container: bool,
    pub(crate) cgroup: CgroupId,
    pub(crate) argv: Argv,
    pub(crate) start_time: Ktime,
    /// The stamp of the fork that made the process.
    pub(crate) born: u64,
    /// The sums over the threads that have ended.
    pub(crate) sums: Sums,
    pub(crate) faults: (u64, u64),
    pub(crate) max_rss: Option<u64>,
    /// The largest resident set of the programs before the last exec, in bytes.
    pub(crate) rss_before: u64,
    pub(crate) status: Option<u32>,
    pub(crate) execs: Vec<ExecTruth>,
    /// The times of the process at the moment at which its present program began.
    pub(crate) span_base: Times,
}

impl Process {
    /// A process that is forked at `born` and has no thread yet.
    pub(crate) fn new(tgid: u32, serial: u64, used: u32, born: u64) -> Process {
        Process {
            used,
            tgid,
            serial,
            cgroup: cgroup(0),
            start_time: Ktime(born),
            born,
            ..Process::default()
        }
    }

    /// Ends the last program of the process at `stamp`. `times` are the times of the process until then.
    pub(crate) fn end_program(&mut self, stamp: u64, times: Times) {
        if let Some(last) = self.execs.last_mut() {
            last.end = Ktime(stamp);
            last.times = times.since(&self.span_base);
        }
        self.span_base = times;
    }
}
