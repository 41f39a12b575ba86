//! The kinds of events about tasks (such as forks, execs and exits), with their fields as stored.

use std::sync::Arc;

use serde::Serialize;

use crate::codec::{fitting, Codec, Col, QuantityColumns, Step, Stored, Text};
use crate::ids::{Argv, CgroupId, Comm, Ktime, Tgid, Tid};
use crate::show;
use crate::varint::{fold, unfold};

/// The kernel's event `sched_process_fork`: a new task was created. It is a thread if `tgid` equals
/// `parent_tgid`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fork {
    /// The task that called fork, vfork or clone.
    pub parent_tid: Tid,
    /// The process of the task that called fork, vfork or clone.
    pub parent_tgid: Tgid,
    /// The new task that the fork has created.
    pub tid: Tid,
    /// The process of the new task. It is a new process or, if the task is a thread, the process of the
    /// parent task.
    pub tgid: Tgid,
    /// The time at which the new task was started (the kernel's `start_time`, in `CLOCK_MONOTONIC`).
    pub start_time: Ktime,
    /// The new task's id in its own (innermost) pid namespace.
    pub ns_tid: Tid,
    /// The cgroup of the new task.
    pub cgroup: CgroupId,
    /// The name of the new task, which it inherits from its parent.
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

/// The kernel's event `sched_process_exec`: a process has replaced its program by another one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Exec {
    /// The task that executes the program, with its tid after the exec (the process's leader).
    pub tid: Tid,
    /// The process of the task that executes the program.
    pub tgid: Tgid,
    /// The tid that the task had before the exec. It differs from `tid` if a thread other than the leader
    /// called exec.
    pub old_tid: Tid,
    /// The name (comm) of the task after the exec.
    pub comm: Comm,
    /// The path of the program that was given to `execve`, or the path of the script that an interpreter
    /// runs.
    #[serde(serialize_with = "show::text")]
    pub filename: Arc<[u8]>,
    /// The arguments of the program that is executed.
    #[serde(flatten, serialize_with = "show::argv")]
    pub argv: Argv,
    /// The cgroup of the task that executes the program.
    pub cgroup: CgroupId,
    /// The largest resident set in bytes that the process has had before this exec. This includes the time after the
    /// fork, in which the process ran its parent's program. The value is the kernel's `maxrss` after the exec.
    pub max_rss: Option<u64>,
    /// The working directory of the process at the exec, as the process sees it; empty if it is not known.
    #[serde(serialize_with = "show::text", skip_serializing_if = "is_unknown")]
    pub directory: Arc<[u8]>,
}

/// Whether a text of an event is empty, which means that the text is not known.
fn is_unknown(text: &Arc<[u8]>) -> bool {
    text.is_empty()
}

impl Stored for Exec {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.task(&mut self.tid, &mut self.tgid)?;
        c.diff(Col::OldTid, &mut self.old_tid.0, self.tid.0)?;
        c.comm(&mut self.comm)?;
        c.path(&mut self.filename)?;
        c.argv(&mut self.argv)?;
        c.cgroup(&mut self.cgroup)?;
        c.memory(Col::ExecRss, &mut self.max_rss)?;
        // Traces before version 3.10 do not have this column, so the directory stays unknown.
        if c.is_over(Col::Directory) {
            return Ok(());
        }
        c.text(Text::Directory, &mut self.directory)
    }

    fn weight(&self) -> usize {
        self.filename.len() + self.argv.bytes.len() + self.directory.len()
    }
}

/// The kernel's sums of a task's times off CPU in ns. A sum is `None` if the kernel does not count it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Delays {
    /// The time for which the task has waited in run queues, in ns (`sched_info.run_delay`).
    #[serde(rename = "run_delay")]
    pub run: Option<u64>,
    /// The time for which the task has waited for block I/O, in ns (`delays->blkio_delay`).
    #[serde(rename = "block_delay")]
    pub block: Option<u64>,
    /// The time for which the task has waited for pages from swap, in ns (`delays->swapin_delay`).
    #[serde(rename = "swap_delay")]
    pub swap: Option<u64>,
}

/// The columns for the three delays of an event of kind [`Exit`], in the order of [`Delays::sums`].
const EXIT_DELAYS: [Col; 3] = [Col::RunDelay, Col::BlockDelay, Col::SwapDelay];
/// The columns for the three delays of an event of kind [`Final`], in the order of [`Delays::sums`].
const FINAL_DELAYS: [Col; 3] = [
    Col::FinalRunDelay,
    Col::FinalBlockDelay,
    Col::FinalSwapDelay,
];

impl Delays {
    fn sums(&self) -> [Option<u64>; 3] {
        [self.run, self.block, self.swap]
    }

    /// Writes or reads the three delays of a task, which are stored as their increase since the delays
    /// `before`.
    fn fields<C: Codec>(&mut self, c: &mut C, columns: [Col; 3], before: [Option<u64>; 3]) -> Step {
        let [mut run, mut block, mut swap] = self.sums().map(|sum| sum.is_some());
        let known = [&mut run, &mut block, &mut swap];
        c.flags(Col::Delays, known, "unknown delays of a task")?;
        let sums = [&mut self.run, &mut self.block, &mut self.swap];
        let known_and_before = [run, block, swap].into_iter().zip(before);
        for ((sum, col), (known, before)) in sums.into_iter().zip(columns).zip(known_and_before) {
            if_known(c, col, known, sum, before.unwrap_or(0))?;
        }
        Ok(())
    }
}

/// Writes or reads a sum of a task's time in ns, if the sum is known. The stored number is the increase of the sum
/// since `before`.
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

/// The kernel's event `sched_process_exit`: a task begins to exit. The event has the kernel's accounting of
/// the task so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Exit {
    /// The task that begins to exit.
    pub tid: Tid,
    /// The process of the task that begins to exit.
    pub tgid: Tgid,
    /// The raw `wait` status of the exiting task itself: code = status >> 8, signal = low 7 bits, 0x80 =
    /// core dumped.
    pub status: u32,
    /// Whether the exiting task is the last living thread of its process.
    pub group_dead: bool,
    /// The raw `wait` status of the exiting task's process, if `group_dead` is set.
    pub group_status: u32,
    /// The exiting task's CPU time in user mode in ns, as sampled by the kernel.
    pub utime: u64,
    /// The exiting task's CPU time in the kernel in ns, as sampled by the kernel.
    pub stime: u64,
    /// The exact CPU time of the exiting task in ns, up to the last update by the scheduler.
    pub sum_exec_runtime: u64,
    /// The number of voluntary context switches of the exiting task.
    pub nvcsw: u64,
    /// The number of involuntary context switches of the exiting task.
    pub nivcsw: u64,
    /// The number of the exiting task's page faults that needed no I/O.
    pub min_flt: u64,
    /// The number of the exiting task's page faults that needed I/O.
    pub maj_flt: u64,
    /// The largest resident set of the exiting task's process in bytes, including its programs before the
    /// last exec. It is 0 if `group_dead` is not set.
    pub max_rss: u64,
    /// The largest resident set in bytes of the last program of the exiting process. It is known only if
    /// `group_dead` is set and the kernel still has the process's memory at this point (since 6.16).
    pub program_rss: Option<u64>,
    /// The number of bytes that the task has read from storage; `None` if the kernel does not count it.
    pub read_bytes: Option<u64>,
    /// The number of bytes that the task has written to storage; `None` if the kernel does not count it.
    pub write_bytes: Option<u64>,
    /// The kernel's sums of the times that the exiting task spent off CPU.
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
        let utime = QuantityColumns::times(Col::Utime, Col::TimeRest);
        c.quantity(utime, &mut self.utime)?;
        let stime = QuantityColumns::times(Col::Stime, Col::TimeRest);
        c.quantity(stime, &mut self.stime)?;
        c.wide(Col::Runtime, &mut self.sum_exec_runtime)?;
        c.int(Col::Nvcsw, &mut self.nvcsw)?;
        c.int(Col::Nivcsw, &mut self.nivcsw)?;
        c.int(Col::MinFlt, &mut self.min_flt)?;
        c.int(Col::MajFlt, &mut self.maj_flt)?;
        let max_rss = QuantityColumns::memory(Col::Rss, Col::RssRest);
        c.quantity(max_rss, &mut self.max_rss)?;
        c.memory(Col::Read, &mut self.read_bytes)?;
        c.memory(Col::Write, &mut self.write_bytes)?;
        // The value of program_rss is nearly always that of max_rss, so the difference is stored.
        let more = |rss: u64| fold(rss.wrapping_sub(self.max_rss) as i64).wrapping_add(1);
        let mut program = self.program_rss.map_or(0, more);
        c.int(Col::ProgramRss, &mut program)?;
        self.program_rss = program
            .checked_sub(1)
            .map(|more| self.max_rss.wrapping_add(unfold(more) as u64));
        self.delays.fields(c, EXIT_DELAYS, [None; 3])?;
        let [run, block, swap] = self.delays.sums();
        let [runtime, voluntary, involuntary] =
            [self.sum_exec_runtime, self.nvcsw, self.nivcsw].map(Some);
        let figures = [runtime, voluntary, involuntary, run, block, swap];
        c.known().exits.insert(self.tid.0, figures);
        Ok(())
    }
}

/// A dead task was switched out for the last time. The event has the exact and final CPU time, context switches and
/// times off CPU of the task, as the kernel counted them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Final {
    /// The dead task that was switched out.
    pub tid: Tid,
    /// The exact CPU time of the dead task in ns, up to its last switch-out.
    pub sum_exec_runtime: u64,
    /// The number of voluntary context switches of the dead task, including its last switch-out.
    pub nvcsw: u64,
    /// The number of involuntary context switches of the dead task.
    pub nivcsw: u64,
    /// The kernel's sums of the times that the dead task spent off CPU.
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

/// The kernel's event `task_rename`: a task has changed its name without an exec.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rename {
    /// The task that has changed its name.
    pub tid: Tid,
    /// The process of the task that has changed its name.
    pub tgid: Tgid,
    /// The new name (comm) of the task.
    pub comm: Comm,
}

impl Stored for Rename {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.task(&mut self.tid, &mut self.tgid)?;
        c.comm(&mut self.comm)
    }
}

/// An event that gives the path of a cgroup, which other events name by its id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CgroupPath {
    /// The id of the cgroup whose path the event gives.
    pub id: CgroupId,
    /// The path of the cgroup, from the root of the cgroup v2 hierarchy. It starts with `/`.
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

/// The kernel's event `cgroup_attach_task`: a task was moved to another cgroup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CgroupMove {
    /// The task that was moved to another cgroup.
    pub tid: Tid,
    /// The process of the task that was moved.
    pub tgid: Tgid,
    /// The cgroup that the task was moved to.
    pub cgroup: CgroupId,
}

impl Stored for CgroupMove {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.task(&mut self.tid, &mut self.tgid)?;
        c.cgroup(&mut self.cgroup)
    }
}

/// The state of a task that was alive when the recording began to see it: at the start of the recording, or later,
/// for example when the task came into the followed cgroup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Snapshot {
    /// The task whose state is recorded.
    pub tid: Tid,
    /// The process of the task whose state is recorded.
    pub tgid: Tgid,
    /// The parent process of the task's process.
    pub parent_tgid: Tgid,
    /// The time at which the living task was started.
    pub start_time: Ktime,
    /// The id of the task in the task's own pid namespace.
    pub ns_tid: Tid,
    /// The cgroup of the living task.
    pub cgroup: CgroupId,
    /// The name (comm) of the living task.
    pub comm: Comm,
    /// The arguments of the task's program; empty for kernel threads and for tasks that are not followed.
    pub argv: Argv,
    /// The raw bits of the kernel's state of the task at the event's time.
    pub state: u16,
    /// Whether the task was on a CPU at the event's time. If it was on no CPU and its state is 0, it waited for a
    /// CPU.
    pub on_cpu: bool,
    /// Whether the living task is a kernel thread.
    pub kthread: bool,
    /// Whether the recording follows the task. Other tasks are recorded only because they may wake followed
    /// tasks.
    pub followed: bool,
    /// The exact CPU time of the task up to the event's time, in ns.
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

/// An event that says whether a task may run only on the event's CPU. The event is written when the task leaves that
/// CPU, and is valid until the task's next event of this kind. A task without such an event may run on several CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pinned {
    /// The task that leaves the event's CPU.
    pub tid: Tid,
    /// The process of the task that leaves the event's CPU.
    pub tgid: Tgid,
    /// Whether the task may run only on the event's CPU.
    pub pinned: bool,
}

impl Stored for Pinned {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.own_task(Col::Pinned, Col::Pinned, &mut self.tid, &mut self.tgid)?;
        c.bool(Col::Pinned, &mut self.pinned)
    }
}

/// The name of a task that is not recorded. The event is written at the first event that involves both this
/// task and a recorded task, and again when the name has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outsider {
    /// The task that is not recorded and whose name the event gives.
    pub tid: Tid,
    /// The process of the unrecorded task.
    pub tgid: Tgid,
    /// The time at which the unrecorded task was started (the kernel's `start_time`, in `CLOCK_MONOTONIC`).
    pub start_time: Ktime,
    /// The cgroup of the unrecorded task.
    pub cgroup: CgroupId,
    /// Whether the unrecorded task is a kernel thread.
    pub kthread: bool,
    /// The name (comm) of the unrecorded task.
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

/// The kernel's totals of a task's times at the event's time (`/proc/PID/task/TID/schedstat`). A recorder without
/// scheduling events writes these totals at an exec, at the task's end, and at intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// The task whose total times the event gives.
    pub tid: Tid,
    /// The process of the task whose total times the event gives.
    pub tgid: Tgid,
    /// The total CPU time of the task at the event's time, in ns.
    pub sum_exec_runtime: u64,
    /// The total time for which the task waited in run queues in ns, if the kernel counts it.
    pub run_delay: Option<u64>,
    /// The number of times that the task has been switched in, if the kernel counts it.
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
        // If this event lacks one of the task's totals, the earlier value of this total is kept, so that the next event
        // can be stored as the increase from it.
        let totals = [
            self.sum_exec_runtime,
            self.run_delay.unwrap_or(delay),
            self.slices.unwrap_or(switches),
        ];
        c.known().accounts.insert(self.tid.0, totals);
        Ok(())
    }
}

/// The recorder no longer follows a task. Later events of the task, and of children that it starts later,
/// are not recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Detached {
    /// The task that is no longer followed.
    pub tid: Tid,
    /// The process of the task that is no longer followed.
    pub tgid: Tgid,
}

impl Stored for Detached {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.task(&mut self.tid, &mut self.tgid)
    }
}

/// A task has ended: its tracer or its parent learned this from `wait`, or the task was missing from a sample of
/// `/proc`. The task ran for the last time before the event's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TaskEnd {
    /// The task that has ended.
    pub tid: Tid,
    /// The process of the task that has ended.
    pub tgid: Tgid,
    /// The raw `wait` status of the ended task or, with `group_dead`, of its process; `None` if it is not
    /// known.
    pub status: Option<u32>,
    /// Whether the ended task is the last thread of its process.
    pub group_dead: bool,
    /// The largest resident set of the ended task's process in bytes, including its programs before the last
    /// exec; `None` if it is not known.
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

/// The kernel's event `oom:mark_victim`: the out-of-memory killer has chosen a process to kill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OomKill {
    /// A task of the process that the kernel kills because memory has run out.
    pub tid: Tid,
    /// The process that the kernel kills because memory has run out.
    pub tgid: Tgid,
    /// The resident set of the process when the kernel chose to kill it, in bytes.
    pub resident: Option<u64>,
}

impl Stored for OomKill {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        // The tid is stored as the difference from the tid of the last event of kind OomKill or Reclaim: both kinds
        // remember their last tid under `Col::Reclaim`.
        c.own_task(
            Col::OomResident,
            Col::Reclaim,
            &mut self.tid,
            &mut self.tgid,
        )?;
        c.optional(Col::OomResident, &mut self.resident)
    }
}

/// The kernel's events `vmscan:mm_vmscan_direct_reclaim_end` and `mm_vmscan_memcg_reclaim_end`: a task had
/// to reclaim memory before it got some. The figures are the increase since the task's previous event of
/// this kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reclaim {
    /// The task that reclaimed memory.
    pub tid: Tid,
    /// The process of the task that reclaimed memory.
    pub tgid: Tgid,
    /// The number of times that the task reclaimed memory since its previous event of this kind.
    pub count: u64,
    /// The time in ns that the task spent to reclaim memory since its previous event of this kind.
    pub ns: u64,
}

impl Stored for Reclaim {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.own_task(Col::Reclaim, Col::Reclaim, &mut self.tid, &mut self.tgid)?;
        c.int(Col::Reclaim, &mut self.count)?;
        c.int(Col::Reclaim, &mut self.ns)
    }
}
