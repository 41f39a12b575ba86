//! The kinds of events of tasks, and their fields as stored.

use std::sync::Arc;

use serde::Serialize;

use crate::codec::{fitting, Codec, Col, Step, Stored, Text, TICK, UNIT};
use crate::ids::{Argv, CgroupId, Comm, Ktime, Tgid, Tid};
use crate::show;
use crate::varint::{fold, unfold};

/// `sched_process_fork`: a new task; a thread when `tgid` is the parent's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fork {
    /// The task that called fork, vfork or clone.
    pub parent_tid: Tid,
    /// Its process.
    pub parent_tgid: Tgid,
    /// The new task.
    pub tid: Tid,
    /// Its process: itself, or for a thread the parent's.
    pub tgid: Tgid,
    /// The new task's `start_time` (`CLOCK_MONOTONIC`).
    pub start_time: Ktime,
    /// The new task's id in its own (innermost) pid namespace.
    pub ns_tid: Tid,
    /// Its cgroup.
    pub cgroup: CgroupId,
    /// Its name, inherited.
    pub comm: Comm,
}

impl Stored for Fork {
    fn fields<C: Codec>(&mut self, c: &mut C, time: Ktime) -> Step {
        c.task(&mut self.parent_tid, &mut self.parent_tgid)?;
        c.new_task(&mut self.tid, &mut self.tgid)?;
        let mut age = time.0.wrapping_sub(self.start_time.0);
        c.wide(Col::ForkStart, &mut age)?;
        self.start_time.0 = time.0.wrapping_sub(age);
        c.diff(Col::NsTid, &mut self.ns_tid.0, self.tid.0)?;
        c.cgroup(&mut self.cgroup)?;
        c.comm(&mut self.comm)
    }
}

/// `sched_process_exec`: a program was replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Exec {
    /// The task, with its tid after the exec (the process's leader).
    pub tid: Tid,
    /// Its process.
    pub tgid: Tgid,
    /// Its tid before: differs when a thread other than the leader called exec.
    pub old_tid: Tid,
    /// The new name.
    pub comm: Comm,
    /// The path given to `execve` (or the interpreter's script).
    #[serde(serialize_with = "show::text")]
    pub filename: Arc<[u8]>,
    /// The argument vector.
    #[serde(flatten, serialize_with = "show::argv")]
    pub argv: Argv,
    /// Its cgroup.
    pub cgroup: CgroupId,
    /// The kernel's `maxrss` of the process in bytes, after the exec: the largest resident set
    /// of all programs before, the one that it was forked from included.
    pub max_rss: Option<u64>,
}

impl Stored for Exec {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.task(&mut self.tid, &mut self.tgid)?;
        c.diff(Col::OldTid, &mut self.old_tid.0, self.tid.0)?;
        c.comm(&mut self.comm)?;
        c.path(&mut self.filename)?;
        c.argv(&mut self.argv)?;
        c.cgroup(&mut self.cgroup)?;
        c.memory(Col::ExecRss, &mut self.max_rss)
    }

    fn weight(&self) -> usize {
        self.filename.len() + self.argv.bytes.len()
    }
}

/// The kernel's sums of a task's times off CPU in ns; `None` where the kernel does not count
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Delays {
    /// In run queues (`sched_info.run_delay`).
    #[serde(rename = "run_delay")]
    pub run: Option<u64>,
    /// For block I/O (`delays->blkio_delay`).
    #[serde(rename = "block_delay")]
    pub block: Option<u64>,
    /// For pages from swap (`delays->swapin_delay`).
    #[serde(rename = "swap_delay")]
    pub swap: Option<u64>,
}

/// The columns of an exit's delays.
const EXIT_DELAYS: [Col; 3] = [Col::RunDelay, Col::BlockDelay, Col::SwapDelay];
/// The columns of a final event's delays.
const FINAL_DELAYS: [Col; 3] = [
    Col::FinalRunDelay,
    Col::FinalBlockDelay,
    Col::FinalSwapDelay,
];

impl Delays {
    fn sums(&self) -> [Option<u64>; 3] {
        [self.run, self.block, self.swap]
    }

    /// As their increase since `before`.
    fn fields<C: Codec>(&mut self, c: &mut C, columns: [Col; 3], before: [Option<u64>; 3]) -> Step {
        let [mut run, mut block, mut swap] = self.sums().map(|sum| sum.is_some());
        let known = [&mut run, &mut block, &mut swap];
        c.flags(Col::Delays, known, "unknown delays of a task")?;
        let sums = [&mut self.run, &mut self.block, &mut self.swap];
        let known = [run, block, swap].into_iter().zip(before);
        for ((sum, col), (known, before)) in sums.into_iter().zip(columns).zip(known) {
            if_known(c, col, known, sum, before.unwrap_or(0))?;
        }
        Ok(())
    }
}

/// The increase of a sum since `before`, if it is known.
fn if_known<C: Codec>(
    c: &mut C,
    col: Col,
    known: bool,
    sum: &mut Option<u64>,
    before: u64,
) -> Step {
    if known {
        c.increase(col, sum.get_or_insert_default(), before)?;
    }
    Ok(())
}

/// `sched_process_exit`: the task begins to exit; with the kernel's accounting
/// of it so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Exit {
    /// The task.
    pub tid: Tid,
    /// Its process.
    pub tgid: Tgid,
    /// The task's own raw `wait` status: code = status >> 8, signal = low 7
    /// bits, 0x80 = core dumped.
    pub status: u32,
    /// It is the last living thread of its process.
    pub group_dead: bool,
    /// With `group_dead`: the process's raw `wait` status.
    pub group_status: u32,
    /// User time in ns, as sampled by the kernel.
    pub utime: u64,
    /// System time in ns, as sampled by the kernel.
    pub stime: u64,
    /// Exact run time in ns, up to the last scheduler update.
    pub sum_exec_runtime: u64,
    /// Voluntary context switches.
    pub nvcsw: u64,
    /// Involuntary context switches.
    pub nivcsw: u64,
    /// Minor page faults.
    pub min_flt: u64,
    /// Major page faults.
    pub maj_flt: u64,
    /// Largest resident set of the process in bytes, programs before its last exec included;
    /// with `group_dead` only, else 0.
    pub max_rss: u64,
    /// Largest resident set of the last program alone; with `group_dead`, where the kernel
    /// still has its memory (6.16).
    pub program_rss: Option<u64>,
    /// Bytes read from storage; `None` where the kernel does not count it.
    pub read_bytes: Option<u64>,
    /// Bytes written to storage; `None` where the kernel does not count it.
    pub write_bytes: Option<u64>,
    /// Times off CPU.
    #[serde(flatten)]
    pub delays: Delays,
}

impl Stored for Exit {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.task(&mut self.tid, &mut self.tgid)?;
        c.narrow(Col::Status, &mut self.status)?;
        let other = u64::from(self.group_status ^ self.status);
        let mut group = other << 1 | u64::from(self.group_dead);
        c.int(Col::GroupStatus, &mut group)?;
        self.group_dead = group & 1 == 1;
        self.group_status = self.status ^ fitting::<u32>(group >> 1)?;
        c.quantity(TICK, (Col::Utime, Col::TimeRest), &mut self.utime)?;
        c.quantity(TICK, (Col::Stime, Col::TimeRest), &mut self.stime)?;
        c.wide(Col::Runtime, &mut self.sum_exec_runtime)?;
        c.int(Col::Nvcsw, &mut self.nvcsw)?;
        c.int(Col::Nivcsw, &mut self.nivcsw)?;
        c.int(Col::MinFlt, &mut self.min_flt)?;
        c.int(Col::MajFlt, &mut self.maj_flt)?;
        c.quantity(UNIT, (Col::Rss, Col::RssRest), &mut self.max_rss)?;
        c.memory(Col::Read, &mut self.read_bytes)?;
        c.memory(Col::Write, &mut self.write_bytes)?;
        // Nearly always the same as max_rss.
        let more = |rss: u64| fold(rss.wrapping_sub(self.max_rss) as i64).wrapping_add(1);
        let mut program = self.program_rss.map_or(0, more);
        c.int(Col::ProgramRss, &mut program)?;
        let program = program.checked_sub(1);
        self.program_rss = program.map(|more| self.max_rss.wrapping_add(unfold(more) as u64));
        self.delays.fields(c, EXIT_DELAYS, [None; 3])?;
        let [run, block, swap] = self.delays.sums();
        let [runtime, voluntary, involuntary] =
            [self.sum_exec_runtime, self.nvcsw, self.nivcsw].map(Some);
        let figures = [runtime, voluntary, involuntary, run, block, swap];
        c.known().exits.insert(self.tid.0, figures);
        Ok(())
    }
}

/// The last switch-out of a dead task: the kernel's final, exact figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Final {
    /// The task.
    pub tid: Tid,
    /// Exact run time in ns, last switch-out included.
    pub sum_exec_runtime: u64,
    /// Voluntary context switches, the last one included.
    pub nvcsw: u64,
    /// Involuntary context switches.
    pub nivcsw: u64,
    /// Times off CPU.
    #[serde(flatten)]
    pub delays: Delays,
}

impl Stored for Final {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        let mut tgid = Tgid(self.tid.0);
        if C::WRITES {
            tgid = c.known().process_of(self.tid).unwrap_or(tgid);
        }
        c.task(&mut self.tid, &mut tgid)?;
        let before = c.known().exits.remove(&self.tid.0).unwrap_or_default();
        let [runtime, voluntary, involuntary, run, block, swap] = before;
        c.increase(
            Col::FinalRuntime,
            &mut self.sum_exec_runtime,
            runtime.unwrap_or(0),
        )?;
        c.change(Col::FinalNvcsw, &mut self.nvcsw, voluntary.unwrap_or(0))?;
        c.change(Col::FinalNivcsw, &mut self.nivcsw, involuntary.unwrap_or(0))?;
        self.delays.fields(c, FINAL_DELAYS, [run, block, swap])
    }
}

/// `task_rename` other than by exec.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rename {
    /// The task.
    pub tid: Tid,
    /// Its process.
    pub tgid: Tgid,
    /// The new name.
    pub comm: Comm,
}

impl Stored for Rename {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.task(&mut self.tid, &mut self.tgid)?;
        c.comm(&mut self.comm)
    }
}

/// The path of a cgroup id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CgroupPath {
    /// The cgroup.
    pub id: CgroupId,
    /// Its path from the root of the cgroup v2 hierarchy, starting with `/`.
    #[serde(serialize_with = "show::text")]
    pub path: Box<[u8]>,
}

impl Stored for CgroupPath {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.cgroup(&mut self.id)?;
        c.path(&mut self.path)
    }

    fn weight(&self) -> usize {
        self.path.len()
    }
}

/// `cgroup_attach_task`: a task moved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CgroupMove {
    /// The task.
    pub tid: Tid,
    /// Its process.
    pub tgid: Tgid,
    /// The new cgroup.
    pub cgroup: CgroupId,
}

impl Stored for CgroupMove {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.task(&mut self.tid, &mut self.tgid)?;
        c.cgroup(&mut self.cgroup)
    }
}

/// A task that was alive when the recording began, or that has come into the followed cgroup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Snapshot {
    /// The task.
    pub tid: Tid,
    /// Its process.
    pub tgid: Tgid,
    /// The parent process.
    pub parent_tgid: Tgid,
    /// When it was started.
    pub start_time: Ktime,
    /// Its id in its own pid namespace.
    pub ns_tid: Tid,
    /// Its cgroup.
    pub cgroup: CgroupId,
    /// Its name.
    pub comm: Comm,
    /// Its arguments; empty for kernel threads and for tasks not followed.
    pub argv: Argv,
    /// Raw state bits at this event's time.
    pub state: u16,
    /// It was on a CPU at this event's time. If not, a task in state 0 was runnable.
    pub on_cpu: bool,
    /// It is a kernel thread.
    pub kthread: bool,
    /// It is followed. The others are recorded for the names of wakers.
    pub followed: bool,
    /// Exact run time in ns before the recording.
    pub sum_exec_runtime: u64,
}

impl Stored for Snapshot {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.task(&mut self.tid, &mut self.tgid)?;
        c.diff(Col::Parent, &mut self.parent_tgid.0, self.tgid.0)?;
        let last = c.known().start;
        c.increase(Col::Start, &mut self.start_time.0, last)?;
        c.known().start = self.start_time.0;
        c.diff(Col::NsTid, &mut self.ns_tid.0, self.tid.0)?;
        c.cgroup(&mut self.cgroup)?;
        c.comm(&mut self.comm)?;
        c.argv(&mut self.argv)?;
        c.narrow(Col::State, &mut self.state)?;
        let flags = [&mut self.on_cpu, &mut self.kthread, &mut self.followed];
        c.flags(Col::SnapFlags, flags, "unknown flags of a snapshot")?;
        c.wide(Col::SnapRuntime, &mut self.sum_exec_runtime)
    }

    fn weight(&self) -> usize {
        self.argv.bytes.len()
    }
}

/// Whether a task may run on the event's CPU alone, when it leaves that CPU: from the event's time
/// on, until its next event of this kind. Without one it may run on several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pinned {
    /// The task.
    pub tid: Tid,
    /// Its process.
    pub tgid: Tgid,
    /// It may run there only.
    pub pinned: bool,
}

impl Stored for Pinned {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.own_task(Col::Pinned, Col::Pinned, &mut self.tid, &mut self.tgid)?;
        c.bool(Col::Pinned, &mut self.pinned)
    }
}

/// The name of a task that is not recorded, at its first event beside one that is, and again after
/// it has got another name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outsider {
    /// The task.
    pub tid: Tid,
    /// Its process.
    pub tgid: Tgid,
    /// The task's `start_time` (`CLOCK_MONOTONIC`).
    pub start_time: Ktime,
    /// Its cgroup.
    pub cgroup: CgroupId,
    /// It is a kernel thread.
    pub kthread: bool,
    /// Its name.
    pub comm: Comm,
}

impl Stored for Outsider {
    fn fields<C: Codec>(&mut self, c: &mut C, time: Ktime) -> Step {
        c.own_task(Col::Outsider, Col::Outsider, &mut self.tid, &mut self.tgid)?;
        c.change(Col::Outsider, &mut self.start_time.0, time.0)?;
        c.int(Col::Outsider, &mut self.cgroup.0)?;
        c.bool(Col::Outsider, &mut self.kthread)?;
        c.text(Text::Outsider, &mut self.comm)
    }
}

/// A task's totals at the event's time (`/proc/PID/task/TID/schedstat`). Recorders without
/// scheduling events write it at an exec, at the task's end and as samples between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// The task.
    pub tid: Tid,
    /// Its process.
    pub tgid: Tgid,
    /// Run time in ns.
    pub sum_exec_runtime: u64,
    /// Time in run queues in ns, where the kernel counts it.
    pub run_delay: Option<u64>,
    /// Times that it was switched in, where the kernel counts them.
    pub slices: Option<u64>,
}

impl Stored for Account {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.task(&mut self.tid, &mut self.tgid)?;
        let before = c.known().accounts.get(&self.tid.0).copied();
        let [runtime, delay, switches] = before.unwrap_or_default();
        let (mut has_delay, mut has_slices) = (self.run_delay.is_some(), self.slices.is_some());
        let known = [&mut has_delay, &mut has_slices];
        c.flags(Col::AccountKnown, known, "unknown totals of a task")?;
        c.increase(Col::AccountRuntime, &mut self.sum_exec_runtime, runtime)?;
        if_known(
            c,
            Col::AccountRunDelay,
            has_delay,
            &mut self.run_delay,
            delay,
        )?;
        if_known(
            c,
            Col::AccountSlices,
            has_slices,
            &mut self.slices,
            switches,
        )?;
        // A total that is absent keeps its value.
        let totals = [
            self.sum_exec_runtime,
            self.run_delay.unwrap_or(delay),
            self.slices.unwrap_or(switches),
        ];
        c.known().accounts.insert(self.tid.0, totals);
        Ok(())
    }
}

/// The recorder has let go of a task: later events of it and of its later children are not
/// recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Detached {
    /// The task.
    pub tid: Tid,
    /// Its process.
    pub tgid: Tgid,
}

impl Stored for Detached {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.task(&mut self.tid, &mut self.tgid)
    }
}

/// A task has ended, as its tracer or parent learned from `wait`, or by a sample without it.
/// It ran for the last time before the event's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TaskEnd {
    /// The task.
    pub tid: Tid,
    /// Its process.
    pub tgid: Tgid,
    /// Its raw `wait` status, with `group_dead` that of its process; `None` where it is not
    /// known.
    pub status: Option<u32>,
    /// It is the last thread of its process.
    pub group_dead: bool,
    /// The largest resident set of the process in bytes, programs before its last exec
    /// included; `None` where it is not known.
    pub max_rss: Option<u64>,
}

impl Stored for TaskEnd {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.task(&mut self.tid, &mut self.tgid)?;
        c.optional(Col::EndStatus, &mut self.status)?;
        c.flags(
            Col::EndDead,
            [&mut self.group_dead],
            "unknown end of a task",
        )?;
        c.memory(Col::EndRss, &mut self.max_rss)
    }
}

/// `oom:mark_victim`: the out-of-memory killer has chosen a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OomKill {
    /// A task of it.
    pub tid: Tid,
    /// The process.
    pub tgid: Tgid,
    /// Its resident set at that time in bytes.
    pub resident: Option<u64>,
}

impl Stored for OomKill {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        // The last task of both kinds.
        c.own_task(
            Col::OomResident,
            Col::Reclaim,
            &mut self.tid,
            &mut self.tgid,
        )?;
        c.optional(Col::OomResident, &mut self.resident)
    }
}

/// `vmscan:mm_vmscan_direct_reclaim_end`, `mm_vmscan_memcg_reclaim_end`: a task had to reclaim
/// memory before it got some. The increase since the task's event before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reclaim {
    /// The task.
    pub tid: Tid,
    /// Its process.
    pub tgid: Tgid,
    /// The number of times.
    pub count: u64,
    /// The time that they took, in ns.
    pub ns: u64,
}

impl Stored for Reclaim {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.own_task(Col::Reclaim, Col::Reclaim, &mut self.tid, &mut self.tgid)?;
        c.int(Col::Reclaim, &mut self.count)?;
        c.int(Col::Reclaim, &mut self.ns)
    }
}
