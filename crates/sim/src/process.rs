//! A process of the simulated machine.

use tr_format::event::{Argv, CgroupId, Ktime};

use crate::sums::Sums;
use crate::task::Ref;
use crate::truth::{ExecTruth, Times};

/// The id of the simulated cgroup with the number `n`.
pub(crate) fn cgroup(n: u32) -> CgroupId {
    CgroupId(4_000 + u64::from(n) * 73)
}

/// A process of the simulated machine.
#[derive(Debug, Default)]
pub(crate) struct Process {
    pub(crate) used: u32,
    pub(crate) tgid: u32,
    /// The number of simulated processes that were made earlier. It identifies the process in the
    /// truth about the run.
    pub(crate) serial: u64,
    /// The serial number and the tgid of the simulated process that forked this one.
    pub(crate) forked_by: Option<(u64, u32)>,
    /// The simulated parent process, which is told when this process has ended.
    pub(crate) parent: Option<Ref>,
    pub(crate) children: Vec<u32>,
    pub(crate) zombies: Vec<u32>,
    /// The threads of the simulated process that wait for a child.
    pub(crate) waiters: Vec<Ref>,
    /// The index in the table of tasks of the simulated process's leader, until the leader's last switch-out.
    pub(crate) leader: Option<u32>,
    /// The indices in the table of tasks of the simulated process's threads that have not made their last switch-out.
    pub(crate) threads: Vec<u32>,
    /// The number of the simulated process's threads that have not begun to exit (`signal->live` of
    /// the kernel).
    pub(crate) live: u32,
    /// The number of the simulated process's threads that have not been released (`release_task` of
    /// the kernel).
    pub(crate) unreleased: u32,
    /// Whether all threads of the simulated process have gone through the kernel's `exit_notify`.
    pub(crate) gone: bool,
    pub(crate) reaped: bool,
    /// The raw `wait` status of the simulated process after `exit_group` or a fatal signal, if
    /// there was one.
    pub(crate) group_exit: Option<u32>,
    pub(crate) leader_code: u32,
    /// The thread of the simulated process that executes a program, while the other threads exit.
    pub(crate) execing: Option<u32>,
    pub(crate) stopped: bool,
    pub(crate) followed: bool,
    pub(crate) kthread: bool,
    pub(crate) container: bool,
    pub(crate) cgroup: CgroupId,
    pub(crate) argv: Argv,
    pub(crate) start_time: Ktime,
    /// The time stamp of the fork that made the simulated process.
    pub(crate) born: u64,
    /// The sums of the times of the simulated process's threads that have ended.
    pub(crate) sums: Sums,
    pub(crate) faults: (u64, u64),
    pub(crate) max_rss: Option<u64>,
    /// The largest resident set in bytes that the simulated process had in programs before its last
    /// exec.
    pub(crate) rss_before: u64,
    pub(crate) status: Option<u32>,
    pub(crate) execs: Vec<ExecTruth>,
    /// The sums of the simulated process's times at the moment at which its present program began.
    pub(crate) span_base: Times,
}

impl Process {
    /// A simulated process that is forked at the time `born` and has no thread yet.
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

    /// Ends the last program of the simulated process at the time `stamp`. `times` are the times of
    /// the process until then.
    pub(crate) fn end_program(&mut self, stamp: u64, times: Times) {
        if let Some(last) = self.execs.last_mut() {
            last.end = Ktime(stamp);
            last.times = times.since(&self.span_base);
        }
        self.span_base = times;
    }
}
