//! The stored events, independent of the kernel's wire format (`tr-bpf`) and of the block
//! codecs.
//!
//! # Glossary
//! The words of the kernel and of this project:
//!
//! - *task*: a thread; named by its [`Tid`].
//! - *process*: a thread group; named by its [`Tgid`], which is the tid of its
//!   first thread (the *leader*) unless another thread has called `exec`.
//! - *on-CPU*: switch-in to switch-out. *off-CPU*: switch-out to switch-in.
//! - *run-queue latency*: from the waking (or from a preempted switch-out) to
//!   the switch-in.
//! - *preempted*: switched out while runnable.
//! - *prev_state*: the kernel's task state bits of the task that is switched
//!   out; 0 is "running".
//! - *comm*: the kernel's 15-byte task name. *argv*: the argument vector.
//! - *rusage*: the kernel's own accounting of a task.
//! - *stream*: the events of one ring, in the order in which they were written.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::counters::{Counters, SystemCalls};
use crate::device::{Block, DiskWait, SyncFile};
use crate::dns::{DnsAnswer, DnsQuery};
use crate::network::{Accepted, Closed, Connect, Connected};
pub use crate::reason::{Context, Reason};
use crate::stack::{Module, Sample, Symbol};

/// A point in time: nanoseconds of `CLOCK_MONOTONIC` (`bpf_ktime_get_ns`).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Ktime(pub u64);

impl Ktime {
    /// Nanoseconds from `earlier` to `self`; 0 if `earlier` is later.
    pub fn since(self, earlier: Ktime) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A task (thread) id in the first pid namespace. 0 is the idle task of any CPU.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Tid(pub u32);

impl Tid {
    /// The idle task (`swapper`) of any CPU.
    pub const IDLE: Tid = Tid(0);
}

/// A process (thread group) id in the first pid namespace.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Tgid(pub u32);

/// A logical CPU's number.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct CpuId(pub u16);

/// A cgroup v2 id: the inode number of its directory in cgroupfs. 0 is unknown.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct CgroupId(pub u64);

/// The kernel's task name: up to 15 bytes, NUL padded, any bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Comm(pub [u8; 16]);

impl Comm {
    /// Cuts the name after 15 bytes.
    pub fn new(name: &[u8]) -> Comm {
        let mut comm = [0; 16];
        for (to, from) in comm
            .iter_mut()
            .take(15)
            .zip(name.iter().take_while(|b| **b != 0))
        {
            *to = *from;
        }
        Comm(comm)
    }

    /// The name without its padding.
    pub fn bytes(&self) -> &[u8] {
        let end = self.0.iter().position(|b| *b == 0).unwrap_or(self.0.len());
        self.0.get(..end).unwrap_or_default()
    }
}

impl std::fmt::Debug for Comm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Comm({:?})", String::from_utf8_lossy(self.bytes()))
    }
}

/// The ring of an event. The events of a stream are stored in the order of their commit,
/// which is nearly that of their times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Stream {
    /// The scheduling events of one CPU ([`SchedEvent`]).
    Cpu(CpuId),
    /// Forks, execs, exits and other rare events of all CPUs ([`LifeEvent`]).
    Lifecycle,
    /// The recorder's own events ([`LifeEvent`]): clocks, losses, watermarks, marks, tasks
    /// alive at the start.
    Recorder,
}

/// One high-rate event of one CPU's stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedEvent {
    /// When.
    pub time: Ktime,
    /// What.
    pub kind: SchedKind,
}

/// The two kinds of high-rate events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedKind {
    /// `sched_switch`: the CPU goes from `prev` to `next`.
    Switch {
        /// The task switched out.
        prev: Tid,
        /// The task switched in.
        next: Tid,
        /// `prev`'s raw state bits; see [`crate::meta::StateName`]. Preemption
        /// is not folded in.
        prev_state: u16,
        /// `prev` was preempted: it is runnable, whatever its state.
        preempt: bool,
        /// `prev` has `in_iowait` set: an uninterruptible sleep is block I/O.
        iowait: bool,
        /// The system call in which `prev` went to sleep; [`Reason::Unknown`] if `prev` is
        /// runnable.
        reason: Reason,
    },
    /// `sched_waking` (`new` unset) and `sched_wakeup_new` (`new` set): `waker`,
    /// running on this CPU, makes `wakee` runnable.
    ///
    /// The wakee's CPU is not stored: at `sched_waking` the kernel has not chosen it yet. The
    /// next switch-in has it.
    Waking {
        /// The task that was running at the wake-up. If [`Context::is_interrupt`], it was
        /// interrupted and is not the cause.
        waker: Tid,
        /// The task that is woken.
        wakee: Tid,
        /// Task, hardware interrupt or softirq.
        context: Context,
        /// The first wake-up of a new task.
        new: bool,
        /// With `new`: the parent will wait for this child's exec or exit (vfork).
        vfork: bool,
    },
}

/// One low-rate event of a task or of the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LifeEvent {
    /// When.
    pub time: Ktime,
    /// The CPU; `None` for the recorder's own events.
    pub cpu: Option<CpuId>,
    /// What.
    pub kind: LifeKind,
}

/// The kinds of low-rate events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LifeKind {
    /// A new task.
    Fork(Fork),
    /// A successful exec.
    Exec(Exec),
    /// A task begins to exit. It runs until its last switch-out.
    Exit(Exit),
    /// A task's last switch-out: the kernel's final figures for it.
    Final(Final),
    /// A task got another comm, other than by exec.
    Rename(Rename),
    /// A cgroup's path.
    CgroupPath(CgroupPath),
    /// A task was moved to another cgroup.
    CgroupMove(CgroupMove),
    /// A task that was alive when the recording began, or that has come into the followed
    /// cgroup.
    Snapshot(Snapshot),
    /// Events of one stream that could not be recorded.
    Lost(Lost),
    /// The clocks, read together.
    Clock(Clock),
    /// All rings were drained after this event's time: every event stamped and
    /// committed before it is in an earlier frame. `tr dump` prints it as `progress`.
    Watermark,
    /// A moment, or an end of a span, that a user or a program named.
    Mark(Mark),
    /// A task's totals so far.
    Account(Account),
    /// The recorder has let go of a task.
    Detached(Detached),
    /// Facts that are not recorded from now on.
    Degraded(Degraded),
    /// A task has ended, by its `wait` status.
    End(TaskEnd),
    /// A task begins to connect.
    Connect(Connect),
    /// A connection that a task began is established.
    Connected(Connected),
    /// A connection of a peer is established.
    Accepted(Accepted),
    /// A connection is over for its process.
    Closed(Closed),
    /// Counters of the machine.
    Counters(Counters),
    /// System calls of a process.
    SystemCalls(SystemCalls),
    /// Requests to a block device.
    Block(Box<Block>),
    /// The kernel kills a process for lack of memory.
    OomKill(OomKill),
    /// A task has reclaimed memory.
    Reclaim(Reclaim),
    /// A task sends a DNS query.
    DnsQuery(Box<DnsQuery>),
    /// A DNS server's answer has arrived.
    DnsAnswer(Box<DnsAnswer>),
    /// A task waits for another disk than before.
    DiskWait(Box<DiskWait>),
    /// A file of which frames of stacks are.
    Module(Box<Module>),
    /// A task's stack.
    Sample(Box<Sample>),
    /// The functions of a frame.
    Symbol(Symbol),
    /// A task waits in fsync for another file than before.
    SyncFile(Box<SyncFile>),
    /// A task may run on the event's CPU alone, or on others as well.
    Pinned(Pinned),
}

impl LifeKind {
    /// Whether the kernel wrote it into a ring. The others are the recorder's own and describe
    /// the past.
    pub fn is_from_a_ring(&self) -> bool {
        !matches!(
            self,
            LifeKind::Snapshot(_)
                | LifeKind::Lost(_)
                | LifeKind::Clock(_)
                | LifeKind::CgroupPath(_)
                | LifeKind::Watermark
                | LifeKind::Mark(_)
                | LifeKind::Degraded(_)
                | LifeKind::Counters(_)
                | LifeKind::SystemCalls(_)
                | LifeKind::Block(_)
                | LifeKind::Module(_)
                | LifeKind::Sample(_)
                | LifeKind::Symbol(_)
        )
    }
}

/// `oom:mark_victim`: the out-of-memory killer has chosen a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OomKill {
    /// A task of it.
    pub tid: Tid,
    /// The process.
    pub tgid: Tgid,
    /// Its resident set at that time in bytes.
    pub resident: Option<u64>,
}

/// `vmscan:mm_vmscan_direct_reclaim_end`, `mm_vmscan_memcg_reclaim_end`: a task had to reclaim
/// memory before it got some. The increase since the task's event before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// `sched_process_fork`: a new task; a thread when `tgid` is the parent's.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// `sched_process_exec`: a program was replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    pub filename: Arc<[u8]>,
    /// The argument vector.
    pub argv: Argv,
    /// Its cgroup.
    pub cgroup: CgroupId,
    /// The kernel's `maxrss` of the process in bytes, after the exec: the largest resident set
    /// of all programs before, the one that it was forked from included.
    pub max_rss: Option<u64>,
}

/// An argument vector as in the process's memory: a NUL follows each argument.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Argv {
    /// All bytes, or the first part. Children share the bytes of their parent.
    pub bytes: Arc<[u8]>,
    /// The true length; larger than that of `bytes` if they were cut. `None` if the memory
    /// could not be read.
    pub full_len: Option<u32>,
}

impl Argv {
    /// From complete arguments.
    pub fn from_args<I: IntoIterator<Item = B>, B: AsRef<[u8]>>(args: I) -> Argv {
        let mut bytes = Vec::new();
        for arg in args {
            bytes.extend_from_slice(arg.as_ref());
            bytes.push(0);
        }
        let full_len = u32::try_from(bytes.len()).ok();
        Argv {
            bytes: bytes.into(),
            full_len,
        }
    }

    /// The arguments, one by one; the last may be cut.
    pub fn args(&self) -> impl Iterator<Item = &[u8]> {
        let body = self.bytes.strip_suffix(b"\0").unwrap_or(&self.bytes);
        let empty = self.bytes.is_empty();
        body.split(|b| *b == 0)
            .take(if empty { 0 } else { usize::MAX })
    }

    /// Whether a part is missing.
    pub fn truncated(&self) -> bool {
        self.full_len
            .is_none_or(|full| full as usize > self.bytes.len())
    }
}

/// `sched_process_exit`: the task begins to exit; with the kernel's accounting
/// of it so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    pub delays: Delays,
}

/// The kernel's sums of a task's times off CPU in ns; `None` where the kernel does not count
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delays {
    /// In run queues (`sched_info.run_delay`).
    pub run: Option<u64>,
    /// For block I/O (`delays->blkio_delay`).
    pub block: Option<u64>,
    /// For pages from swap (`delays->swapin_delay`).
    pub swap: Option<u64>,
}

/// The last switch-out of a dead task: the kernel's final, exact figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    pub delays: Delays,
}

/// `task_rename` other than by exec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rename {
    /// The task.
    pub tid: Tid,
    /// Its process.
    pub tgid: Tgid,
    /// The new name.
    pub comm: Comm,
}

/// The path of a cgroup id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupPath {
    /// The cgroup.
    pub id: CgroupId,
    /// Its path from the root of the cgroup v2 hierarchy, starting with `/`.
    pub path: Box<[u8]>,
}

/// `cgroup_attach_task`: a task moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupMove {
    /// The task.
    pub tid: Tid,
    /// Its process.
    pub tgid: Tgid,
    /// The new cgroup.
    pub cgroup: CgroupId,
}

/// A task that was alive when the recording began, or that has come into the followed cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// Whether a task may run on the event's CPU alone, when it leaves that CPU: from the event's time
/// on, until its next event of this kind. Without one it may run on several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// The task.
    pub tid: Tid,
    /// Its process.
    pub tgid: Tgid,
    /// It may run there only.
    pub pinned: bool,
}

/// Events of one stream that could not be recorded. The event's time is the
/// time of the first of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The stream of the lost events.
    pub stream: Stream,
    /// The number of lost events, if known.
    pub count: Option<u64>,
    /// The time of the last of them.
    pub until: Ktime,
    /// Why.
    pub cause: LossCause,
}

/// The cause of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LossCause {
    /// The ring was full.
    RingFull,
    /// The kernel skipped the BPF program because it was already running on that CPU.
    Recursion,
    /// The recorder could not write (disk full, closed pipe).
    Output,
    /// A task id was too large for the set of followed tasks, or a process that joined the
    /// followed cgroup had too many threads.
    FollowSet,
    /// A frame is damaged. The reader adds this; it is never stored.
    Damage,
}

/// The clocks, read at one moment; the event's time is `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// `CLOCK_BOOTTIME` in ns: its lead over the monotonic clock grows in suspend.
    pub boot: u64,
    /// `CLOCK_REALTIME` in ns since 1970.
    pub real: u64,
}

/// A mark that a program has written to the recorder. The event's time is that of its
/// reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Its name.
    pub name: Box<[u8]>,
    /// A moment, or an end of a span.
    pub point: Point,
    /// The mark's time in ns before the event's.
    pub ago: u64,
    /// The kind of the span (`test`), the result of what ended (`failed`), and an id that
    /// tells equal names apart; each empty if not given.
    pub kind: Box<[u8]>,
    /// See `kind`.
    pub result: Box<[u8]>,
    /// See `kind`.
    pub id: Box<[u8]>,
    /// The program's process id, in its own pid namespace.
    pub pid: Option<Tid>,
    /// The thread's id, in that namespace.
    pub tid: Option<Tid>,
}

impl Mark {
    /// It has a name, and nothing else.
    pub(crate) fn is_plain(&self) -> bool {
        let plain = Mark {
            name: self.name.clone(),
            ..Mark::default()
        };
        *self == plain
    }
}

/// The point of a [`Mark`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Point {
    /// A moment.
    #[default]
    Moment,
    /// The beginning of a span.
    Begin,
    /// The end of the span with that name.
    End,
}

/// A task's totals at the event's time (`/proc/PID/task/TID/schedstat`). Recorders without
/// scheduling events write it at an exec, at the task's end and as samples between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// The recorder has let go of a task: later events of it and of its later children are not
/// recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detached {
    /// The task.
    pub tid: Tid,
    /// Its process.
    pub tgid: Tgid,
}

/// From this time on the recording lacks facts that its metadata promises.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Degraded {
    /// The missing facts, in words.
    pub what: Box<[u8]>,
}

/// A task has ended, as its tracer or parent learned from `wait`, or by a sample without it.
/// It ran for the last time before the event's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
