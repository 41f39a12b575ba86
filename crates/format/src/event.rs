//! The stored events, independent of the kernel's wire format (`tr-bpf`) and of the block
//! codecs.
//!
//! # Glossary
//! The words of the kernel and of this project:
//!
//! - *task*: a thread; named by its [`Tid`].
//! - *process*: a thread group; named by its [`Tgid`], which is the tid of its *leader*. The leader is the thread
//!   with which the process began, or the last one that called `exec`: this thread takes over the tid.
//! - *on-CPU*: switch-in to switch-out. *off-CPU*: switch-out to switch-in.
//! - *run-queue latency*: from the waking (or from a preempted switch-out) to
//!   the switch-in.
//! - *preempted*: switched out while runnable.
//! - *prev_state*: the kernel's task state bits of the task that is switched
//!   out; 0 is "running".
//! - *comm*: the kernel's 15-byte task name. *argv*: the argument vector.
//! - *rusage*: the kernel's own accounting of a task.
//! - *slots*: the memory of a CPU into which the BPF programs write its scheduling events.
//! - *ring*: the BPF ring buffer into which the BPF programs write lifecycle events.
//! - *stream*: the events of one CPU's slots or of the ring, in the order in which they were written.

use serde::Serialize;

use crate::codec::{Codec, Step, Stored};
use crate::container::{Container, Server};
use crate::counters::{Counters, SystemCalls};
use crate::device::{Block, DiskWait, SyncFile};
use crate::dns::{DnsAnswer, DnsQuery};
pub use crate::ids::{Argv, CgroupId, Comm, CpuId, Ktime, Stream, Tgid, Tid};
use crate::network::{Accepted, Closed, Connect, Connected};
pub use crate::others::{Others, Share, Threads};
pub use crate::reason::{Context, Reason, Timeout};
pub use crate::recorder::{Clock, Degraded, LossCause, Lost, Mark, Point};
use crate::stack::{Module, Sample, Symbol};
pub use crate::task::{
    Account, CgroupMove, CgroupPath, Delays, Detached, Exec, Exit, Final, Fork, OomKill, Outsider,
    Pinned, Reclaim, Rename, Snapshot, TaskEnd,
};
use crate::{show, Fault};

/// One scheduling event of one CPU's stream. Such events are frequent: a switch of tasks or a waking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedEvent {
    /// The time of the scheduling event.
    pub time: Ktime,
    /// The kind of the scheduling event, a switch or a waking, with the fields of that kind.
    pub kind: SchedKind,
}

/// The two kinds of scheduling events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum SchedKind {
    /// A switch of the CPU to another task.
    Switch(Switch),
    /// A waking of a task by the task that runs on the CPU, or by an interrupt.
    Waking(Waking),
}

/// The kernel's event `sched_switch`: the CPU switches from the task `prev` to the task `next`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Switch {
    /// The task that the CPU is taken from in the switch.
    pub prev: Tid,
    /// The task that gets the CPU in the switch.
    pub next: Tid,
    /// The raw state bits of `prev`; see [`crate::meta::StateName`]. They do not show whether `prev` was preempted.
    pub prev_state: u16,
    /// Whether `prev` was preempted. If so, `prev` is runnable, whatever its state bits are.
    pub preempt: bool,
    /// Whether the kernel's flag `in_iowait` of `prev` is set. If so and if `prev` is in an uninterruptible sleep, this
    /// sleep is a wait for block I/O.
    pub iowait: bool,
    /// The system call in which `prev` went to sleep; [`Reason::Unknown`] if `prev` is runnable.
    #[serde(serialize_with = "show::shown")]
    pub reason: Reason,
    /// The time-out of the system call in which `prev` went to sleep, as far as it is recorded. The time-out bounds the
    /// sleep.
    #[serde(flatten)]
    pub timeout: Timeout,
}

/// `sched_waking` (`new` unset) and `sched_wakeup_new` (`new` set): `waker`, running on this CPU, makes `wakee`
/// runnable.
///
/// The wakee's CPU is not stored: at `sched_waking` the kernel has not chosen it yet. The next switch-in of the wakee
/// shows the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Waking {
    /// The task that was running on this CPU at the wake-up. If an interrupt is the context of the waking
    /// ([`Context::is_interrupt`]), this task was only interrupted and is not the cause of the waking.
    pub waker: Tid,
    /// The task that the waker makes runnable.
    pub wakee: Tid,
    /// The context of the waking: the task itself, a hardware interrupt or a softirq.
    #[serde(serialize_with = "show::shown")]
    pub context: Context,
    /// Whether this is the first wake-up of a new task (`sched_wakeup_new`). `tr dump` shows such a wake-up as another
    /// kind of event.
    #[serde(skip)]
    pub new: bool,
    /// Whether the new task's parent waits for the exec or exit of this child (vfork). It is set only if `new` is set.
    pub vfork: bool,
}

/// One event of a task's life or of the recording itself, such as a fork or a loss. Such events are rarer
/// than scheduling events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LifeEvent {
    /// The time of the lifecycle event.
    pub time: Ktime,
    /// The CPU of the event; `None` for the recorder's own events.
    pub cpu: Option<CpuId>,
    /// The kind of the lifecycle event, with the fields of that kind.
    pub kind: LifeKind,
}

/// The part of the recorder that writes lifecycle events of a certain kind into the trace.
#[derive(PartialEq, Eq)]
enum Writer {
    /// The BPF programs in the kernel write the events of this kind into the ring.
    Ring,
    /// The recorder itself writes the events of this kind. Some of them are about a time in the past.
    Recorder,
}

/// Defines [`LifeKind`], the kinds of lifecycle events, from lines `Variant(it: Fields) = number, "name", writer;`, in
/// the order of the numbers. A number is never used for a second kind. `tr dump` prints the name.
macro_rules! kinds {
    ($(
        $(#[$doc:meta])*
        $variant:ident $(($it:ident: $fields:ty))? = $number:literal, $name:literal, $writer:ident;
    )*) => {
        /// The kinds of lifecycle events, each with its fields.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
        #[serde(untagged)]
        pub enum LifeKind {
            $($(#[$doc])* $variant $(($fields))?,)*
        }

        /// The numbers and the names of the kinds of lifecycle events.
        pub(crate) const KINDS: [(u8, &str); [$($number),*].len()] = [$(($number, $name)),*];

        impl LifeKind {
            /// The number by which traces store this kind of lifecycle event. Marks (named moments or spans) have two
            /// numbers: this one if they have only a name, and another one (`Mark::MORE`) otherwise.
            pub(crate) fn number(&self) -> u8 {
                match self {
                    $(LifeKind::$variant { .. } => $number,)*
                }
            }

            /// The index of this kind of lifecycle event among all kinds, in the order of their numbers.
            pub(crate) fn place(&self) -> usize {
                /// The kinds of lifecycle events without their fields. The value of each is its index in the list of
                /// kinds.
                enum Place {
                    $($variant,)*
                }
                match self {
                    $(LifeKind::$variant { .. } => Place::$variant as usize,)*
                }
            }

            /// The name of this kind of lifecycle event in `tr dump`.
            pub fn name(&self) -> &'static str {
                match self {
                    $(LifeKind::$variant { .. } => $name,)*
                }
            }

            /// Reads the stored fields of a lifecycle event whose kind has this number. Returns `None` if the number
            /// is unknown.
            pub(crate) fn read<C: Codec>(
                number: u8,
                codec: &mut C,
                time: Ktime,
            ) -> Result<Option<LifeKind>, Fault> {
                Ok(Some(match number {
                    $($number => LifeKind::$variant $(({
                        let mut $it = <$fields>::default();
                        $it.fields(codec, time)?;
                        $it
                    }))?,)*
                    _ => return Ok(None),
                }))
            }

            /// Writes the fields of this lifecycle event into the columns of a frame.
            pub(crate) fn write<C: Codec>(&mut self, codec: &mut C, time: Ktime) -> Step {
                match self {
                    $(LifeKind::$variant $(($it))? => {
                        $($it.fields(codec, time)?;)?
                        Ok(())
                    })*
                }
            }

            /// The approximate number of bytes that the event has on the heap.
            pub(crate) fn weight(&self) -> usize {
                match self {
                    $(LifeKind::$variant $(($it))? => {
                        0 $(+ $it.weight())?
                    })*
                }
            }

            /// Whether the BPF programs wrote the event into the ring. All other events are written by the recorder and
            /// can be about a time in the past.
            pub fn is_from_the_ring(&self) -> bool {
                match self {
                    $(LifeKind::$variant { .. } => Writer::$writer == Writer::Ring,)*
                }
            }
        }
    };
}

kinds! {
    /// A new task was created.
    Fork(it: Fork) = 1, "fork", Ring;
    /// A process has successfully executed another program.
    Exec(it: Exec) = 2, "exec", Ring;
    /// A task begins to exit. It may still run until its last switch-out.
    Exit(it: Exit) = 3, "exit", Ring;
    /// A dead task was switched out for the last time. The event has the task's final CPU time, context switches and
    /// times off CPU, as the kernel counted them.
    Final(it: Final) = 4, "final", Ring;
    /// A task got another name (comm), other than by exec.
    Rename(it: Rename) = 5, "rename", Ring;
    /// The event has the path of the cgroup with a certain id.
    CgroupPath(it: CgroupPath) = 6, "cgroup_path", Recorder;
    /// A task was moved to another cgroup.
    CgroupMove(it: CgroupMove) = 7, "cgroup_move", Ring;
    /// A task was alive when the recording began to see it. The event has the task's state.
    Snapshot(it: Snapshot) = 8, "snapshot", Recorder;
    /// Some events of one stream (of a CPU, for example) could not be recorded.
    Lost(it: Lost) = 9, "lost", Recorder;
    /// The readings of the machine's clocks, all taken at the event's time.
    Clock(it: Clock) = 10, "clock", Recorder;
    /// The recorder has drained all rings after this event's time. So every event that was stamped and committed before
    /// this time is in an earlier frame than this event. `tr dump` prints this event as `progress`.
    Watermark = 11, "progress", Recorder;
    /// A user or a program has named a moment, or the beginning or the end of a span.
    Mark(it: Mark) = 12, "mark", Recorder;
    /// The CPU time, the run-queue time and the number of switch-ins of a task so far, as the kernel counts them.
    Account(it: Account) = 13, "account", Ring;
    /// The recorder no longer follows a task, so that the task's later events are not recorded.
    Detached(it: Detached) = 14, "detached", Ring;
    /// From the event's time on, some facts can no longer be recorded.
    Degraded(it: Degraded) = 15, "degraded", Recorder;
    /// A task has ended. The event has its `wait` status.
    End(it: TaskEnd) = 16, "end", Ring;
    /// A task begins to connect to another end by TCP.
    Connect(it: Connect) = 18, "connect", Ring;
    /// A TCP connection that a recorded task began is established.
    Connected(it: Connected) = 19, "connected", Ring;
    /// A TCP connection that a peer of a recorded task began is established.
    Accepted(it: Accepted) = 20, "accepted", Ring;
    /// A TCP connection has ended for the process that it belongs to.
    Closed(it: Closed) = 21, "closed", Ring;
    /// The values of the machine's counters at the event's time.
    Counters(it: Counters) = 22, "counters", Recorder;
    /// The number and the duration of a process's system calls, summed up since the process's previous event of this
    /// kind.
    SystemCalls(it: SystemCalls) = 23, "system_calls", Recorder;
    /// The number, size and latency of the requests to a block device, summed up over an interval.
    Block(it: Box<Block>) = 24, "block", Recorder;
    /// The kernel kills a process because memory has run out.
    OomKill(it: OomKill) = 25, "oom_kill", Ring;
    /// A task has reclaimed memory.
    Reclaim(it: Reclaim) = 26, "reclaim", Ring;
    /// A task sends a DNS query.
    DnsQuery(it: Box<DnsQuery>) = 27, "dns_query", Ring;
    /// A DNS server's answer has arrived.
    DnsAnswer(it: Box<DnsAnswer>) = 28, "dns_answer", Ring;
    /// A task waits for another disk than in its previous wait for block I/O.
    DiskWait(it: Box<DiskWait>) = 29, "disk_wait", Ring;
    /// The recorder has found a file whose code occurs in sampled call stacks.
    Module(it: Box<Module>) = 30, "module", Recorder;
    /// The stack of a task was sampled.
    Sample(it: Box<Sample>) = 32, "sample", Recorder;
    /// The event names the functions in which a frame of a sampled call stack is.
    Symbol(it: Symbol) = 33, "symbol", Recorder;
    /// A task waits in fsync for another file than before.
    SyncFile(it: Box<SyncFile>) = 34, "sync_file", Ring;
    /// The set of CPUs on which a task may run has changed: from now on the task may run either only on the event's
    /// CPU, or on other CPUs as well.
    Pinned(it: Pinned) = 35, "pinned", Ring;
    /// The event has the name of a task that is not recorded.
    Outsider(it: Box<Outsider>) = 36, "outsider", Ring;
    /// A process of a container's runtime has executed its program.
    Container(it: Box<Container>) = 37, "container", Recorder;
    /// A server has answered a task. If that task is recorded, the server is recorded from now on.
    Server(it: Server) = 38, "server", Recorder;
    /// The times for which unrecorded tasks had a CPU while recorded tasks waited for it.
    Others(it: Box<Others>) = 39, "others", Recorder;
    /// The event has the common name of some threads of a process that is not recorded.
    Threads(it: Box<Threads>) = 40, "threads", Recorder;
}
