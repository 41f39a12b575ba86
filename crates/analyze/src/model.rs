//! The model: the result of an analysis. Lengths of time are in ns. Points in time are
//! [`Ktime`], which reports show relative to [`Analysis::start`].

use std::collections::HashSet;
use std::sync::Arc;

use tr_format::counters::Counters;
use tr_format::device::Block;
use tr_format::event::{Argv, CgroupId, Comm, CpuId, Ktime, Mark, Stream, Tgid, Tid};
use tr_format::meta::{Metadata, Summary};
use tr_format::tally::Events;

use crate::arena::Ix;
use crate::collect::disks::WaitedDisks;
use crate::collect::dns::Lookup;
use crate::collect::memory::MemoryEvent;
use crate::collect::network::{Connection, Online};
use crate::collect::outside::Outside;
use crate::collect::stacks::Stacks;
use crate::collect::syscalls::Call;
use crate::collect::workers::Workers;
use crate::containers::{Called, Container};
pub use crate::ids::{ProcessIx, ThreadIx};
use crate::questions::ticks::Ticks;
use crate::servers::Server;
use crate::state::StateTimes;
use crate::timeline::{Sample, Timeline};
pub use crate::times::{Basis, Causes, Times};
use tr_programs::table;
use tr_programs::tools::KnownProgram;

/// The model of a trace: all results of its analysis.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    pub meta: Metadata,
    /// The recorder's summary; `None` if the file has no regular end.
    pub summary: Option<Summary>,
    /// The start of the analyzed span: the start of the trace, or `--from`.
    pub start: Ktime,
    /// The end of the analyzed span: the end of the trace, or `--to`.
    pub end: Ktime,
    /// The length of the whole recording in ns.
    pub whole: u64,
    /// Whether the analysis can be trusted: lost events, events that contradict each other, and CPUs whose clocks
    /// disagree.
    pub quality: Quality,
    pub events: Events,
    /// The sums of times and figures over all processes of the recording.
    pub totals: Totals,
    /// The processes of the recording, ordered by start time, then by pid.
    pub processes: Vec<Process>,
    /// The threads of the recording, grouped by process in the order of the processes. The threads of each process
    /// are ordered by start time, then by tid.
    pub threads: Vec<Thread>,
    pub concurrency: Concurrency,
    /// The time at which every CPU had switched at least once. From then on, if every switch is recorded and none
    /// is lost, a task whose state is unknown is certainly on no CPU.
    pub all_cpus_seen_from: Option<Ktime>,
    pub machine: Machine,
    /// The paths of the cgroups that events name, in the order of their ids.
    pub cgroups: Vec<(CgroupId, Box<[u8]>)>,
    /// The marks that programs wrote to the recorder, with their times.
    pub marks: Vec<(Ktime, Mark)>,
    pub network: Network,
    pub disks: Disks,
    /// The sums of the system calls of each process: how often it made each call, and how long the calls took.
    pub calls: Vec<Call>,
    pub stacks: Stacks,
    pub memory: Memory,
    pub containers: Containers,
    pub others: Others,
    /// The states of every thread in the order of time; `None` unless [`Options::timeline`](crate::Options::timeline)
    /// is set.
    pub timeline: Option<Timeline>,
    /// The time-outs after which threads went on waiting for the same object. The table is empty if no timeline is
    /// kept.
    pub ticks: Ticks,
    /// For each thread, samples of its times, in the order of time. In a recording without scheduling events, the
    /// samples complete the timeline. Each sample shows how long the thread ran and waited between two readings of the
    /// thread's totals.
    pub samples: Vec<Vec<Sample>>,
}

/// How many recorded tasks ran at the same time.
#[derive(Clone, Debug, Default)]
pub struct Concurrency {
    /// The times in which exactly n of the recorded tasks were on a CPU: `times[n]`, in ns. The sum is the
    /// length of the span minus `unknown`.
    pub times: Vec<u64>,
    /// The time in which the number of running tasks is not known, in ns.
    pub unknown: u64,
}

/// The machine that the recording was made on.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// The number of CPUs to which the affinity and the cpuset limited the build; `None` if it could use all online
    /// CPUs, or if no limit is known that holds for the whole recording.
    pub limited_to: Option<u64>,
    /// The figures of each CPU, in the order of their numbers: the CPUs of the machine and of the events.
    pub cpus: Vec<(CpuId, CpuFigures)>,
    /// The samples of the machine's counters, in the order of time, including the nearest samples before and after the
    /// analyzed span.
    pub counters: Vec<(Ktime, Counters)>,
}

/// The network traffic of the recorded processes.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// The TCP connections, in the order of their beginnings.
    pub connections: Vec<Connection>,
    /// The DNS queries, in the order of time.
    pub lookups: Vec<Lookup>,
    /// The times in which each process had a TCP connection open or waited for the answer to a DNS query.
    pub online: Online,
    /// The times in which a DNS query of each process was open: from the query to its answer, or for a set time if
    /// there is no answer. The threads of the process may run in these times.
    pub querying: Online,
}

/// The requests to disks, and the waits for them.
#[derive(Clone, Debug, Default)]
pub struct Disks {
    /// The requests to disks, summed over intervals. Each entry has the end of its interval, which is in the
    /// analyzed span, and the requests to one disk.
    pub blocks: Vec<(Ktime, Box<Block>)>,
    /// The disks and files that threads waited for.
    pub waited: WaitedDisks,
}

/// The waits for memory, and the kills for lack of it.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// The waits for memory and the kills for lack of memory, in the order of time.
    pub events: Vec<MemoryEvent>,
    /// The threads that waited in page faults because the machine lacked memory, and not for a file to be read;
    /// empty unless [`Options::timeline`](crate::Options::timeline) is set.
    pub short: HashSet<ThreadIx>,
    /// Whether the kernel counts waits for pages from swap (`kernel.task_delayacct`).
    pub counts_swap: bool,
}

/// The containers of the recorded processes.
#[derive(Clone, Debug, Default)]
pub struct Containers {
    /// The containers with recorded processes, in the order of the start of their first recorded process.
    pub list: Vec<Container>,
    /// The number of processes of container runtimes that are not recorded. For these processes it is not clear who
    /// requested their containers, because both a recorded client and another client had connections to the container
    /// daemon.
    pub not_recorded: u64,
}

/// The tasks that recorded processes did not start but that worked for recorded tasks, woke them or had their CPUs:
/// unrecorded tasks, workers of the kernel and servers.
#[derive(Clone, Debug, Default)]
pub struct Others {
    /// The tasks that are not recorded but met recorded ones, for example by waking them or by taking their CPU.
    pub outside: Outside,
    /// The workers of the kernel that recorded threads woke; empty unless
    /// [`Options::timeline`](crate::Options::timeline) is set.
    pub workers: Workers,
    /// The servers that have answered recorded processes, in the order of their first answers.
    pub servers: Vec<Server>,
}

/// A span of time that a file of another tool contains (a target of a build, a test), with the process that the
/// span belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    pub from: Ktime,
    pub to: Ktime,
    /// The kind of step that the imported span is, such as a target of a build.
    pub kind: ImportedKind,
    /// The name of the imported span (a span of time from a file of another tool), as that tool wrote the name.
    pub name: Box<[u8]>,
    /// The name of the imported span for places where the whole name has no room: the part that distinguishes the span
    /// from its neighbours, without directories, as the tool wrote it. `None` if the whole name has no such part.
    pub brief: Option<Box<str>>,
    /// The path of the file that contains the test, if the imported span is a test and the tool that reported the span
    /// gave this path.
    pub file: Option<Box<str>>,
    /// The result of the test, if the imported span is a test; otherwise `None`.
    pub result: Option<TestResult>,
    pub process: ProcessIx,
    /// The thread that the imported span (from a file of another tool) belongs to, if it belongs to one thread.
    pub thread: Option<ThreadIx>,
    /// Whether the imported span (from a file of another tool) lasts for the whole life of its process.
    pub whole: bool,
    /// An upper bound, in ns, of the error of the imported span's beginning and of the error of its end.
    pub error: u64,
    /// The reason why it is not proven at which time the imported span ran; `None` if it is proven. Reports give no
    /// times for a span whose place in time is not proven.
    pub doubt: Option<Doubt>,
}

/// The result of a test, as the file of a test runner has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestResult {
    Passed,
    /// The test ran, and its subject did not do what the test expects.
    Failed,
    /// The test itself could not run to its end.
    Error,
    Skipped,
}

impl TestResult {
    pub fn has_failed(self) -> bool {
        matches!(self, TestResult::Failed | TestResult::Error)
    }

    /// The word for the result in all outputs.
    pub fn word(self) -> &'static str {
        match self {
            TestResult::Passed => "passed",
            TestResult::Failed => "failed",
            TestResult::Error => "error",
            TestResult::Skipped => "skipped",
        }
    }
}

/// The reason why it is not proven at which time an imported span ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The place of an imported span in time is known only with an error of this many ns, which is too large for
    /// the length of the span.
    Off(u64),
    /// A process began so close to a boundary of the imported span that the distance is not larger than the possible
    /// error of the span's place in time. The value is this error in ns.
    Boundary(u64),
    /// The imported file does not show whether its times are the beginnings or the ends of spans.
    Stamp,
    /// The times in the imported file have no time zone, and they fit the recording with more than one time zone.
    Zone,
    /// The file has a time for the suite of the imported test. The length of the suite does not prove where in the
    /// recording the test ran.
    Suite,
    /// Another process or thread, which ran at the same time, may have executed the imported span.
    Runner,
    /// Another process or thread may have executed the imported span. The value is the possible error of the span's
    /// place in time, in ns.
    Process(u64),
    /// The imported span begins inside another imported span of the same process and ends outside of that span, or the
    /// other way round.
    Crossed,
    /// The recording does not show what the threads of the imported span's process did in this many ns of the span,
    /// which comes from a file of another tool.
    Unseen(u64),
}

impl Doubt {
    /// Whether reports can show the imported span at its approximate place in time. Reports can do so if the possible
    /// error of this place is known, but they give no figures for such a span.
    pub fn has_place(self) -> bool {
        matches!(
            self,
            Doubt::Off(_) | Doubt::Boundary(_) | Doubt::Process(_) | Doubt::Unseen(_)
        )
    }
}

/// The kind of a span from a file of another tool: a target of a build, a unit of a compiler, a part of a program's
/// work or a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportedKind {
    /// The imported span (a span of time from a file of another tool) is a target of a build.
    Target,
    /// The imported span (a span of time from a file of another tool) is a unit of a compiler, or a part of a
    /// compiler's work.
    Unit,
    Test,
    /// The imported span (a span of time from a file of another tool) is a part of a program's work, as the program
    /// itself or its tool reports it.
    Span,
}

#[allow(clippy::indexing_slicing)] // an index of this analysis is valid
impl Analysis {
    /// The length of the analyzed span in ns.
    pub fn wall(&self) -> u64 {
        self.end.since(self.start)
    }

    /// Whether the analyzed span is only a part of the recording.
    pub fn is_part(&self) -> bool {
        self.wall() < self.whole
    }

    /// The source of the times of all tasks: scheduling events, or samples of totals.
    pub fn basis(&self) -> Basis {
        Basis::of(&self.meta.facts())
    }

    /// The number of CPUs that the build could use. The counters and the streams of the machine are about all
    /// CPUs in `meta.cpus`.
    pub fn cpus_of_build(&self) -> u64 {
        let all = self.meta.cpus.len() as u64;
        self.machine.limited_to.unwrap_or(all)
    }

    /// The samples of a thread's total times; an empty list in a recording with scheduling events.
    pub fn samples_of(&self, thread: ThreadIx) -> &[Sample] {
        let samples = self.samples.get(thread.0 as usize);
        samples.map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns a predicate for the processes with this pid. If no process has the pid on the host, the user of a
    /// container may mean a pid in the container's own namespace. The predicate uses such pids then, but only if
    /// exactly one process had the pid in its namespace.
    pub fn has_pid(&self, pid: Tgid) -> impl Fn(&Process) -> bool {
        let is_seen = self.processes.iter().any(|process| process.pid == pid);
        let inside = self
            .processes
            .iter()
            .filter(|process| process.ns_pid.0 == pid.0);
        let by_container = !is_seen && inside.count() == 1;
        move |process| process.pid == pid || by_container && process.ns_pid.0 == pid.0
    }

    /// Returns the process of the model with this index. Panics for an index of another analysis.
    pub fn process(&self, ix: ProcessIx) -> &Process {
        &self.processes[ix.place()]
    }

    pub(crate) fn process_mut(&mut self, ix: ProcessIx) -> &mut Process {
        &mut self.processes[ix.place()]
    }

    /// Returns the thread of the model with this index. Panics for an index of another analysis.
    pub fn thread(&self, ix: ThreadIx) -> &Thread {
        &self.threads[ix.place()]
    }

    /// The indices of all processes of the model.
    pub fn process_ids(&self) -> impl DoubleEndedIterator<Item = ProcessIx> + use<> {
        (0..self.processes.len()).map(ProcessIx::new)
    }

    /// The ancestors of a process: its parent, the parent's parent, and so on.
    pub fn ancestors(&self, ix: ProcessIx) -> impl Iterator<Item = ProcessIx> + '_ {
        let first = self.process(ix).parent;
        std::iter::successors(first, |ix| self.process(*ix).parent)
    }

    /// A process and its ancestors: the process, its parent, the parent's parent, and so on.
    pub fn lineage(&self, ix: ProcessIx) -> impl Iterator<Item = ProcessIx> + '_ {
        std::iter::once(ix).chain(self.ancestors(ix))
    }

    /// A process and its descendants, each after its parent.
    pub fn below(&self, ix: ProcessIx) -> Vec<ProcessIx> {
        let (mut below, mut next) = (Vec::new(), vec![ix]);
        // The loop ends, because `build` has removed all cycles of parents: no process is its own ancestor.
        while let Some(ix) = next.pop() {
            below.push(ix);
            next.extend(&self.process(ix).children);
        }
        below
    }

    /// The indices of all threads of the model.
    pub fn thread_ids(&self) -> impl DoubleEndedIterator<Item = ThreadIx> + use<> {
        (0..self.threads.len()).map(ThreadIx::new)
    }
}

/// The quality of a trace: how far an analysis's numbers can be trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quality {
    /// The spans of time in which events of a stream are missing, with their causes.
    pub lost: Vec<LostSpan>,
    /// The number of lost events: the sum over the spans in `lost` whose number of events is known.
    pub lost_events: u64,
    /// Whether the number of lost events is unknown for at least one span in `lost`.
    pub lost_unknown: bool,
    /// If the file ends before the recording ended, or reading stopped early: the place and the reason, as text.
    pub truncated: Option<String>,
    /// Whether the file has no end because the recording is still running.
    pub under_way: bool,
    /// The reason why reading stopped before the end of the file ([`crate::Watch`]).
    pub stopped: Option<String>,
    /// The longest time in ns by which an event is older than an event that was written before it into the same buffer.
    /// The buffers are those between the kernel and the recorder: each CPU's slots for scheduling events, and the ring
    /// buffer.
    pub largest_inversion: u64,
    /// The longest commit delay that the file proves, in ns. A commit delay is the time from an event's time stamp
    /// until the event has been written into a buffer: its CPU's slots for scheduling events, or the ring buffer. A
    /// delay is proven if an event with a later time stamp was written before the event, or if the recorder emptied the
    /// buffers after the time stamp without finding the event. The true delay may be longer. The value is never less
    /// than `largest_inversion`.
    pub commit_delay: u64,
    /// For each kind of event that contradicts earlier ones (a task on two CPUs, a task running before its fork,
    /// …), the number of such events. The list is empty for a good trace.
    pub anomalies: Vec<(&'static str, u64)>,
    /// Notes of the recorder which say that certain facts are missing from a time on: the time, and the missing
    /// facts as text.
    pub degraded: Vec<(Ktime, Box<[u8]>)>,
    /// The pair of CPUs whose clocks disagree most, if any clocks disagree. All times of the trace are doubtful then.
    pub clocks: Option<ClockDisagreement>,
}

/// The pair of CPUs whose clocks disagree most. Impossible orders of events prove that the clocks disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockDisagreement {
    /// The two CPUs whose clocks disagree. The order of events does not show which clock is right.
    pub cpus: (CpuId, CpuId),
    /// The two CPUs' clocks differ by at least this many ns, as the events prove.
    pub by: u64,
    /// The number of impossible orders of events, of all pairs of CPUs whose clocks disagree.
    pub impossible_orders: u64,
}

/// A span of time in which events of a stream are missing from the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LostSpan {
    /// The time of the first event that is missing in this span, or of the last recorded event before it.
    pub since: Ktime,
    pub until: Ktime,
    /// The stream in which the events of this span are missing.
    pub stream: Stream,
    /// The number of events that are missing in this span, if it is known.
    pub count: Option<u64>,
    /// The cause of the loss of events in this span.
    pub cause: tr_format::event::LossCause,
}

/// The numbers of context switches of a thread, a process or a CPU, counted from the events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// Switches in which the task gave up the CPU because it slept, blocked or exited.
    pub voluntary: u64,
    /// Switches in which the task was preempted, or yielded while it was runnable.
    pub involuntary: u64,
}

impl Switches {
    /// Adds the numbers of switches of another thread, process or CPU to these numbers.
    pub fn add(&mut self, other: &Switches) {
        self.voluntary = self.voluntary.saturating_add(other.voluntary);
        self.involuntary = self.involuntary.saturating_add(other.involuntary);
    }
}

/// The figures of a CPU: its idle time, switches and migrations. The times of each thread on the CPU are in the
/// timeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuFigures {
    /// The time in ns in which no task ran on the CPU, as the recorded switches of the CPU prove.
    pub idle: u64,
    /// Whether all switches of the CPU are recorded (system-wide, and not only sums of times), so that `idle` is all of
    /// its idle time, except in gaps. Otherwise the idle time is not known.
    pub idle_known: bool,
    /// The numbers of switches in which recorded threads left the CPU. The sum over all CPUs equals the sum of the
    /// switches of all processes.
    pub switches: Switches,
    /// The number of times that a recorded thread came to the CPU from another CPU. The sum over all CPUs equals
    /// the sum of the migrations of all threads.
    pub migrations: u64,
}

#[derive(Clone, Debug)]
pub struct Thread {
    /// The tid of the thread on the host.
    pub tid: Tid,
    /// The tid of the thread in its own pid namespace; equal to `tid` outside containers.
    pub ns_tid: Tid,
    pub process: ProcessIx,
    /// The last name (comm) of the thread.
    pub comm: Comm,
    /// The start of the thread, or the start of the analyzed span if the thread is older.
    pub start: Ktime,
    /// Whether the thread was alive before the start of the analyzed span.
    pub started_before: bool,
    /// The last switch-out of the thread, or the end of the analyzed span if the thread was still alive then.
    pub end: Ktime,
    /// Whether the thread was still alive at the end of the analyzed span.
    pub alive: bool,
    /// The time of the thread by state, in ns. The sum is `end - start`.
    pub times: Times,
    /// The parts of the thread's `times` by cause, such as the run-queue time after a preemption, in ns.
    pub causes: Causes,
    pub switches: Switches,
    /// The longest time off CPU of the thread, in ns.
    pub max_off_cpu: Option<u64>,
    /// The number of times that the thread moved from one CPU to another.
    pub migrations: u64,
    /// The raw `wait` status of the thread, if it has exited.
    pub status: Option<u32>,
    /// The kernel's own figures at the exit of the thread, if the times are based on events.
    pub kernel: Option<KernelFigures>,
    /// The parts of the thread's `times` that are known only from the kernel's accounting. In the timeline, these
    /// times are unknown.
    pub by_kernel: ByKernel,
    /// The time at which the thread began to exit. The last switch-out, `end`, comes later.
    pub exited: Option<Ktime>,
    /// The thread that forked this one, if it is part of the recording.
    pub parent: Option<ThreadIx>,
}

impl Thread {
    /// The length of the thread's life in the analyzed span, in ns.
    pub fn wall(&self) -> u64 {
        self.end.since(self.start)
    }

    /// Makes a thread from its ids and the time of its life. All other fields are unknown or 0.
    pub fn new(tid: Tid, process: ProcessIx, (start, end): (Ktime, Ktime)) -> Thread {
        Thread {
            tid,
            ns_tid: tid,
            process,
            comm: Comm::default(),
            start,
            started_before: false,
            end,
            alive: false,
            times: Times::default(),
            causes: Causes::default(),
            switches: Switches::default(),
            max_off_cpu: None,
            migrations: 0,
            status: None,
            kernel: None,
            by_kernel: ByKernel::default(),
            exited: None,
            parent: None,
        }
    }

    /// The times of the thread by state in ns, as far as its events show them. What only the kernel's totals show
    /// counts as unknown here. The stretches of the thread in the timeline add up to these times.
    pub fn times_by_events(&self) -> Times {
        let ByKernel { on_cpu, run_queue } = self.by_kernel;
        let off_cpu = self.times.asleep_or_blocked;
        Times {
            on_cpu: self.times.on_cpu - on_cpu,
            run_queue: self.times.run_queue - run_queue,
            asleep_or_blocked: 0,
            unknown: self.times.unknown + on_cpu + run_queue + off_cpu,
            ..self.times
        }
    }
}

/// The kernel's own accounting of an exited task. The analysis is checked against it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelFigures {
    /// The exact run time over the whole life of the task, in ns.
    pub sum_exec_runtime: u64,
    /// Whether the run time (`sum_exec_runtime`) is the value at the task's last switch-out, and not the value at
    /// its exit.
    pub is_final: bool,
    pub nvcsw: u64,
    pub nivcsw: u64,
    /// The time in ns that the task spent in run queues (`sched_info.run_delay`), if the kernel counts it.
    pub run_delay: Option<u64>,
}

/// The parts of a thread's [`Times`] in ns that its events do not show. They are the differences between the
/// kernel's totals for the thread's whole life and the sums over the events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByKernel {
    /// The thread's time on a CPU that only the kernel's totals show, in ns.
    pub on_cpu: u64,
    /// The thread's time in run queues that only the kernel's totals show, in ns.
    pub run_queue: u64,
}

impl ByKernel {
    pub(crate) fn of(part: &StateTimes) -> ByKernel {
        ByKernel {
            on_cpu: part.on_cpu,
            run_queue: part.run_queue,
        }
    }

    /// Adds the times of another thread to these times. Both are times that only the kernel's totals show.
    pub fn add(&mut self, other: &ByKernel) {
        self.on_cpu = self.on_cpu.saturating_add(other.on_cpu);
        self.run_queue = self.run_queue.saturating_add(other.run_queue);
    }
}

/// One process: a thread group from its first thread to its last.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// The pid of the process on the host.
    pub pid: Tgid,
    /// The pid of the process in its own pid namespace; equal to `pid` outside containers.
    pub ns_pid: Tid,
    /// The pid of the process's parent; `None` if it is not known.
    pub ppid: Option<Tgid>,
    /// The parent of the process, if it is part of the recording. A process whose parent has exited keeps the
    /// parent that forked it.
    pub parent: Option<ProcessIx>,
    /// The children of the process, in the order of their starts.
    pub children: Vec<ProcessIx>,
    /// The last name (comm) of the process.
    pub comm: Comm,
    /// The arguments of the last exec; before the first exec (see `execs`) the arguments of the parent.
    pub argv: Argv,
    /// The last cgroup of the process.
    pub cgroup: CgroupId,
    pub role: Role,
    /// The start of the process, or the start of the analyzed span if the process is older.
    pub start: Ktime,
    /// Whether the process was alive before the start of the analyzed span.
    pub started_before: bool,
    /// The last switch-out of the last thread, or the end of the analyzed span if the process was still alive then.
    pub end: Ktime,
    /// Whether the process was still alive at the end of the analyzed span.
    pub alive: bool,
    /// The raw `wait` status of the process; `None` if it is alive or if its exit was not seen.
    pub status: Option<u32>,
    pub threads: Vec<ThreadIx>,
    /// The times of the process by state in ns: the sums over its threads.
    pub times: Times,
    /// The parts of the process's `times` by cause, in ns.
    pub causes: Causes,
    /// The parts of the process's `times` that only the kernel's totals show, and no events.
    pub by_kernel: ByKernel,
    pub resources: Resources,
    /// The programs that the process has executed, in the order of time. A forked process that never called
    /// exec has none.
    pub execs: Vec<ExecSpan>,
    /// The sums of times and figures over this process and its descendants.
    pub tree: Tree,
}

impl Process {
    /// The length of the process's life in the analyzed span, in ns.
    pub fn wall(&self) -> u64 {
        self.end.since(self.start)
    }

    /// The known build tool that the process executed last, by the name of its file.
    pub fn tool(&self) -> Option<&'static KnownProgram> {
        table::by_path(&self.execs.last()?.filename)
    }
}

/// The role of a process that is not one of the build's own programs: a kernel thread, a container's runtime or a
/// server.
#[derive(Clone, Debug, Default)]
pub struct Role {
    /// Whether the process is a kernel thread.
    pub kthread: bool,
    /// The id and the name of the container, if this is the first recorded process of the container's runtime.
    pub container: Option<Arc<Called>>,
    /// Whether the process is a server that has answered a recorded process ([`Others::servers`]).
    pub shared: bool,
}

/// The resources that a process used, apart from time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// The numbers of voluntary and involuntary context switches of the process's threads.
    pub switches: Switches,
    /// The longest time that a single thread of the process was off CPU, in ns.
    pub max_off_cpu: Option<u64>,
    /// The largest resident set of the process in bytes, if it has exited.
    pub max_rss: Option<u64>,
    /// An upper bound of `max_rss` in bytes, if the process has exited: the kernel's `maxrss`. Before its first exec, a
    /// process is a copy of its parent, and `maxrss` includes the memory of this copy.
    pub rss_bound: Option<u64>,
    /// The numbers of minor and major page faults of the process's threads that have exited; `None` if those of one of
    /// these threads were not recorded.
    pub faults: Option<(u64, u64)>,
    /// The numbers of bytes that the process's exited threads read from and wrote to storage; `None` if the
    /// kernel does not count them.
    pub io: Option<(u64, u64)>,
}

/// The sums over a process and all of its descendants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// The number of processes in the tree: the process and all of its descendants.
    pub processes: u64,
    /// The times of a process and all of its descendants by state, added up, in ns.
    pub times: Times,
    /// The latest end of a process and all of its descendants.
    pub end: Ktime,
}

/// One program of a process, from its exec to the next exec or the exit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecSpan {
    pub start: Ktime,
    /// Whether the program was already running before the start of the analyzed span. `start` is the start of the
    /// span then.
    pub started_before: bool,
    /// The time at which the program ended: the next exec, the end of the process, or the end of the analyzed span.
    pub end: Ktime,
    /// Whether the program ended inside the analyzed span.
    pub ended: bool,
    /// The path of the executed file; empty for a program that was running before the recording.
    pub filename: Arc<[u8]>,
    pub argv: Argv,
    /// The working directory of the process at the exec; empty if it is not known.
    pub directory: Arc<[u8]>,
    /// The name of the process after the exec.
    pub comm: Comm,
    /// The times by state of all threads of the process while it executed this program, in ns.
    pub times: Times,
    /// The largest resident set of the program in bytes. Kernels before 6.16 report it only if the program needs more
    /// than every earlier program of the process. The program that the process was forked from counts as an earlier
    /// program, too.
    pub max_rss: Option<u64>,
}

impl ExecSpan {
    /// The length of the time for which the program ran in the analyzed span, in ns.
    pub fn wall(&self) -> u64 {
        self.end.since(self.start)
    }
}

/// The sums of times and figures over all processes of the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub processes: u64,
    pub threads: u64,
    pub execs: u64,
    /// The number of new tasks in the analyzed span: processes and threads.
    pub forks: u64,
    /// The number of tasks that exited in the analyzed span: processes and threads.
    pub exits: u64,
    pub times: Times,
    /// The parts of the recording's total `times` by cause, in ns.
    pub causes: Causes,
}
