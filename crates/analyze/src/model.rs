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
use crate::servers::Server;
use crate::state::StateTimes;
use crate::timeline::{Sample, Timeline};
pub use crate::times::{Basis, Causes, Times};
use crate::tools::{self, Tool};

/// The model of a trace.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    pub meta: Metadata,
    /// The recorder's summary; `None` when the file has no proper end.
    pub summary: Option<Summary>,
    /// Start of the analyzed span (the trace's start, or `--from`).
    pub start: Ktime,
    /// End of the analyzed span.
    pub end: Ktime,
    /// Length of the whole recording, in ns.
    pub whole: u64,
    /// Losses, anomalies and clocks.
    pub quality: Quality,
    pub events: Events,
    /// Sums over all processes.
    pub totals: Totals,
    /// The processes of the recording, ordered by start time, then pid.
    pub processes: Vec<Process>,
    /// Their threads, ordered by process, then start time, then tid.
    pub threads: Vec<Thread>,
    /// `concurrency[n]`: the time in which exactly n of the recorded tasks were on a
    /// CPU. Sums to the span less `concurrency_unknown`.
    pub concurrency: Vec<u64>,
    /// The time in which the number of running tasks is not known.
    pub concurrency_unknown: u64,
    /// The time from which on a task of unknown state is on no CPU, as long as nothing is lost: every CPU has
    /// switched since the recording began, and every switch is recorded.
    pub all_cpus_seen_from: Option<Ktime>,
    /// The number of CPUs that the build was allowed, if it kept to fewer than were online.
    pub limited_to: Option<u64>,
    /// Each CPU's figures, by its number: the machine's CPUs and those of the events.
    pub cpus: Vec<(CpuId, CpuFigures)>,
    /// Paths of the cgroups of the events, by id.
    pub cgroups: Vec<(CgroupId, Box<[u8]>)>,
    /// Marks that programs wrote to the recorder, with their times.
    pub marks: Vec<(Ktime, Mark)>,
    /// TCP connections, in order of their beginning.
    pub connections: Vec<Connection>,
    /// DNS queries, in their order.
    pub lookups: Vec<Lookup>,
    /// The times in which each process had one of those open.
    pub online: Online,
    /// Samples of the machine's counters, in order of time. Those around the span are there,
    /// too.
    pub counters: Vec<(Ktime, Counters)>,
    /// The requests to disks of each interval that ends in the span, by the end.
    pub blocks: Vec<(Ktime, Box<Block>)>,
    /// System calls by process.
    pub calls: Vec<Call>,
    pub stacks: Stacks,
    /// Waits for memory and kills for lack of it, in order of time.
    pub memory: Vec<MemoryEvent>,
    /// The threads whose page faults waited for memory, and not for a file's pages: with
    /// [`Options::timeline`](crate::Options::timeline).
    pub short_of_memory: HashSet<ThreadIx>,
    /// The kernel counts waits for pages from swap (`kernel.task_delayacct`).
    pub swap_told: bool,
    /// The disks that threads waited for.
    pub waited_disks: WaitedDisks,
    /// Tasks that are not recorded, as far as they met recorded ones.
    pub outside: Outside,
    /// Workers of the kernel that recorded threads woke: with
    /// [`Options::timeline`](crate::Options::timeline).
    pub workers: Workers,
    /// Containers of which processes are recorded, in order of their first one's start.
    pub containers: Vec<Container>,
    /// The number of processes of containers' runtimes that are not recorded, because a recorded client and
    /// others had connections to their daemon.
    pub runtimes_not_recorded: u64,
    /// Servers that recorded processes have asked, in order of their first answer.
    pub servers: Vec<Server>,
    /// Every thread's states in order, with
    /// [`Options::timeline`](crate::Options::timeline).
    pub timeline: Option<Timeline>,
    /// Every thread's samples in order, beside the timeline of a recording without
    /// scheduling events.
    pub samples: Vec<Vec<Sample>>,
    /// Spans of other tools' files. The analysis has none: an importer adds them.
    pub imported: Vec<Imported>,
}

/// A span of another tool's file, under the process that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    pub from: Ktime,
    pub to: Ktime,
    /// The kind of step that it is.
    pub kind: ImportedKind,
    /// The tool's name for it, as the file has it.
    pub name: Box<[u8]>,
    /// The result of a test.
    pub result: Option<&'static str>,
    pub process: ProcessIx,
    /// The thread, if it is a span of one thread.
    pub thread: Option<ThreadIx>,
    /// It is the whole life of the process.
    pub whole: bool,
    /// The reason why the span's place in time is not proven. A step without a proven place has no
    /// figures.
    pub doubt: Option<Doubt>,
}

/// The reason why the place in time of an imported span is not proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The place is known to so many ns only, which is too much for the span's length.
    Off(u64),
    /// The place is known to so many ns, and a process began that close to a boundary of the span.
    Boundary(u64),
    /// The file's times may be those of beginnings or of ends.
    Stamp,
    /// The file's times have no zone, and several zones put them into the recording.
    Zone,
    /// The suite's length does not bound the time between its tests.
    Suite,
    /// Another process or thread may have run the span at the same time.
    Runner,
}

/// The kind of an imported span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportedKind {
    /// A target of a build.
    Target,
    /// A unit of a compiler, or a part of its work.
    Unit,
    Test,
}

#[allow(clippy::indexing_slicing)] // an index of this analysis is valid
impl Analysis {
    /// The length of the span in ns.
    pub fn wall(&self) -> u64 {
        self.end.since(self.start)
    }

    /// The span is a part of the recording.
    pub fn is_part(&self) -> bool {
        self.wall() < self.whole
    }

    /// The source of all tasks' times.
    pub fn basis(&self) -> Basis {
        Basis::of(&self.meta.facts())
    }

    /// The number of CPUs that the build could use. The machine's counters and streams are of all of
    /// `meta.cpus`.
    pub fn cpus_of_build(&self) -> u64 {
        let all = self.meta.cpus.len() as u64;
        self.limited_to.unwrap_or(all)
    }

    /// A thread's samples; none in a recording with scheduling events.
    pub fn samples_of(&self, thread: ThreadIx) -> &[Sample] {
        let samples = self.samples.get(thread.0 as usize);
        samples.map(Vec::as_slice).unwrap_or_default()
    }

    /// Tells the processes with this pid. If none has it, a container's user may mean that of the
    /// container's own pid namespace, where one process alone has had it.
    pub fn has_pid(&self, pid: Tgid) -> impl Fn(&Process) -> bool {
        let is_seen = self.processes.iter().any(|it| it.pid == pid);
        let inside = self.processes.iter().filter(|it| it.ns_pid.0 == pid.0);
        let by_container = !is_seen && inside.count() == 1;
        move |it| it.pid == pid || by_container && it.ns_pid.0 == pid.0
    }

    /// A process by its index. Panics for an index of another analysis.
    pub fn process(&self, ix: ProcessIx) -> &Process {
        &self.processes[ix.place()]
    }

    pub(crate) fn process_mut(&mut self, ix: ProcessIx) -> &mut Process {
        &mut self.processes[ix.place()]
    }

    /// A thread by its index. Panics for an index of another analysis.
    pub fn thread(&self, ix: ThreadIx) -> &Thread {
        &self.threads[ix.place()]
    }

    /// The indices of all processes.
    pub fn process_ids(&self) -> impl DoubleEndedIterator<Item = ProcessIx> + use<> {
        (0..self.processes.len()).map(ProcessIx::new)
    }

    /// The parent of a process, its parent, and so on.
    pub fn ancestors(&self, ix: ProcessIx) -> impl Iterator<Item = ProcessIx> + '_ {
        let first = self.process(ix).parent;
        std::iter::successors(first, |ix| self.process(*ix).parent)
    }

    /// A process, its parent, and so on.
    pub fn lineage(&self, ix: ProcessIx) -> impl Iterator<Item = ProcessIx> + '_ {
        std::iter::once(ix).chain(self.ancestors(ix))
    }

    /// A process and its descendants, each after its parent.
    pub fn below(&self, ix: ProcessIx) -> Vec<ProcessIx> {
        let (mut below, mut next) = (Vec::new(), vec![ix]);
        // No process is its own ancestor.
        while let Some(ix) = next.pop() {
            below.push(ix);
            next.extend(&self.process(ix).children);
        }
        below
    }

    /// The indices of all threads.
    pub fn thread_ids(&self) -> impl DoubleEndedIterator<Item = ThreadIx> + use<> {
        (0..self.threads.len()).map(ThreadIx::new)
    }
}

/// The quality of a trace: how far an analysis's numbers can be trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quality {
    /// Spans of time in which events of a stream are missing.
    pub lost: Vec<LostSpan>,
    /// Sum of the known counts of `lost`.
    pub lost_events: u64,
    /// The count of some span is not known.
    pub lost_unknown: bool,
    /// The place and the reason, when the file ends before the recording did.
    pub truncated: Option<String>,
    /// That is because the recording goes on.
    pub under_way: bool,
    /// The reason why reading stopped before the end of the file ([`crate::Watch`]).
    pub stopped: Option<String>,
    /// The reason why there is no [`Analysis::timeline`], where reports would have one.
    pub left_out: Option<String>,
    /// The largest step back in time inside one ring, ns.
    pub largest_inversion: u64,
    /// The longest commit delay, in ns, that the file proves: the event was written
    /// after a younger event of its ring, or the recorder had emptied that ring
    /// after the event's stamp and not found it. The true delay may be longer. Never less
    /// than `largest_inversion`.
    pub commit_delay: u64,
    /// Events that contradict what came before (a task on two CPUs, running
    /// before its fork, …), by kind; empty on a good trace.
    pub anomalies: Vec<(&'static str, u64)>,
    /// Facts that the recording lacks from these times on, in words.
    pub degraded: Vec<(Ktime, Box<[u8]>)>,
    /// Two CPUs whose clocks disagree, which makes all times of the trace doubtful.
    pub clocks: Option<ClockDisagreement>,
    /// The files of [`Analysis::imported`].
    pub imports: Vec<Import>,
}

/// Another tool's file: the number of its spans, and of those with a place in the recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Import {
    pub file: Box<[u8]>,
    pub spans: u64,
    /// Those under a recorded process.
    pub placed: u64,
    /// Those outside of the analyzed span.
    pub outside: u64,
    /// Those that are left out for their number.
    pub left_out: u64,
    /// The reason why the file, or a part of it, has no place; an assumption about its times.
    pub note: Option<String>,
    /// A tool with its version that the file names, as `rustc 1.88.0`.
    pub tool: Option<String>,
}

/// The pair of CPUs whose clocks disagree by most, as impossible event orders prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockDisagreement {
    /// The pair; the order of events does not show which clock is right.
    pub cpus: (CpuId, CpuId),
    /// The least difference of the two clocks, ns.
    pub by: u64,
    /// Impossible event orders of all pairs of CPUs whose clocks disagree.
    pub impossible_orders: u64,
}

/// A span with missing events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LostSpan {
    /// The first lost event, or the last event before it.
    pub since: Ktime,
    pub until: Ktime,
    /// The stream that lacks events.
    pub stream: Stream,
    /// The number of missing events, when that is known.
    pub count: Option<u64>,
    /// The cause of the loss.
    pub cause: tr_format::event::LossCause,
}

/// Context switches counted from the events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// Gave up the CPU (slept, blocked, exited).
    pub voluntary: u64,
    /// Was preempted, or yielded while runnable.
    pub involuntary: u64,
}

impl Switches {
    /// Adds other counts to these.
    pub fn add(&mut self, other: &Switches) {
        self.voluntary = self.voluntary.saturating_add(other.voluntary);
        self.involuntary = self.involuntary.saturating_add(other.involuntary);
    }
}

/// A CPU's figures. The timeline has the time of each thread on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuFigures {
    /// The time in which its switches prove that no task ran, in ns.
    pub idle: u64,
    /// All its switches are recorded (system-wide), so that `idle` is all of its idle time
    /// except in gaps. Otherwise its idle time is not known.
    pub idle_known: bool,
    /// Switch-outs of recorded threads. Sums to the processes' switches.
    pub switches: Switches,
    /// Switch-ins of recorded threads that last ran on another CPU. Sums to the threads'
    /// migrations.
    pub migrations: u64,
}

#[derive(Clone, Debug)]
pub struct Thread {
    /// Its tid, as seen from the host.
    pub tid: Tid,
    /// Its id in its own pid namespace; equal to `tid` outside containers.
    pub ns_tid: Tid,
    pub process: ProcessIx,
    /// Its last name.
    pub comm: Comm,
    /// Its start, or the span's start when it is older.
    pub start: Ktime,
    /// It was alive before the span's start.
    pub started_before: bool,
    /// Its last switch-out; the span's end when it was still alive then.
    pub end: Ktime,
    /// It was still alive at the span's end.
    pub alive: bool,
    /// Its time by state; sums to `end - start`.
    pub times: Times,
    /// Parts of `times`.
    pub causes: Causes,
    pub switches: Switches,
    /// Its longest time off CPU in ns.
    pub max_off_cpu: Option<u64>,
    /// Moves from one CPU to another.
    pub migrations: u64,
    /// Its raw `wait` status, once it has exited.
    pub status: Option<u32>,
    /// The kernel's own figures at its exit, if the times rest on events.
    pub kernel: Option<KernelFigures>,
    /// Parts of `times` that only those figures show; the timeline has them as unknown.
    pub by_kernel: ByKernel,
    /// The beginning of its exit; `end` is its last switch-out, which comes later.
    pub exited: Option<Ktime>,
    /// The thread that forked it, when that is part of the recording.
    pub parent: Option<ThreadIx>,
}

impl Thread {
    /// The length of its life in the span, in ns.
    pub fn wall(&self) -> u64 {
        self.end.since(self.start)
    }

    /// A thread of which its ids and its life are known, and nothing else.
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

    /// Its time by state as its events alone show it; the timeline adds up to that.
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

/// The kernel's own accounting of an exited task, to check the analysis by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelFigures {
    /// Exact run time in ns, over the task's whole life.
    pub sum_exec_runtime: u64,
    /// `sum_exec_runtime` is that of the last switch-out, not of the exit.
    pub is_final: bool,
    pub nvcsw: u64,
    pub nivcsw: u64,
    /// Time in run queues in ns (`sched_info.run_delay`), where the kernel counts it.
    pub run_delay: Option<u64>,
}

/// Parts of a thread's [`Times`] in ns, that its events do not show. They are the
/// difference between the kernel's totals of its whole life and the events' sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByKernel {
    /// Of `on_cpu`.
    pub on_cpu: u64,
    /// Of `run_queue`.
    pub run_queue: u64,
}

impl ByKernel {
    pub(crate) fn of(part: &StateTimes) -> ByKernel {
        ByKernel {
            on_cpu: part.on_cpu,
            run_queue: part.run_queue,
        }
    }

    /// Adds other parts to these.
    pub fn add(&mut self, other: &ByKernel) {
        self.on_cpu = self.on_cpu.saturating_add(other.on_cpu);
        self.run_queue = self.run_queue.saturating_add(other.run_queue);
    }
}

/// One process: a thread group from its first thread to its last.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its pid, as seen from the host.
    pub pid: Tgid,
    /// Its pid in its own pid namespace; equal to `pid` outside containers.
    pub ns_pid: Tid,
    /// Its parent's pid; `None` when not known.
    pub ppid: Option<Tgid>,
    /// Its parent, when that is part of the recording. A process whose parent has
    /// exited keeps the parent that forked it.
    pub parent: Option<ProcessIx>,
    /// Its children, in order of start.
    pub children: Vec<ProcessIx>,
    /// Its last name.
    pub comm: Comm,
    /// Arguments of its last exec; before its first exec (see `execs`) its parent's.
    pub argv: Argv,
    /// Its last cgroup.
    pub cgroup: CgroupId,
    /// It is a kernel thread.
    pub kthread: bool,
    /// The container whose runtime's first recorded process it is.
    pub container: Option<Arc<Called>>,
    /// It is a server that a recorded process has asked ([`Analysis::servers`]).
    pub shared: bool,
    /// Its start, or the span's start when it is older.
    pub start: Ktime,
    /// It was alive before the span's start.
    pub started_before: bool,
    /// Its last thread's last switch-out; the span's end when it was alive then.
    pub end: Ktime,
    /// It was still alive at the span's end.
    pub alive: bool,
    /// Its raw `wait` status; `None` while alive or when the exit was not seen.
    pub status: Option<u32>,
    pub threads: Vec<ThreadIx>,
    /// Its threads' time by state.
    pub times: Times,
    /// Parts of `times`.
    pub causes: Causes,
    /// Parts of `times` that no events show.
    pub by_kernel: ByKernel,
    /// Its threads' context switches.
    pub switches: Switches,
    /// The longest time off CPU of any of its threads, in ns.
    pub max_off_cpu: Option<u64>,
    /// Its largest resident set in bytes, once it has exited.
    pub max_rss: Option<u64>,
    /// Page faults, minor and major, of the threads that have exited, if they were recorded.
    pub faults: Option<(u64, u64)>,
    /// Bytes read from and written to storage, of the threads that have exited;
    /// `None` where the kernel does not count it.
    pub io: Option<(u64, u64)>,
    /// Its programs, in order. A forked process that never called exec has none.
    pub execs: Vec<ExecSpan>,
    /// Sums over this process and its descendants.
    pub tree: Tree,
}

impl Process {
    /// The length of its life in the span, in ns.
    pub fn wall(&self) -> u64 {
        self.end.since(self.start)
    }

    /// The program that it executed last, by its file's name.
    pub fn tool(&self) -> Option<&'static Tool> {
        tools::by_path(&self.execs.last()?.filename)
    }
}

/// Sums over a process and its descendants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// The number of processes, itself included.
    pub processes: u64,
    /// The sum of their times.
    pub times: Times,
    /// The latest end.
    pub end: Ktime,
}

/// One program of a process, from its exec to the next exec or the exit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecSpan {
    pub start: Ktime,
    /// It was running before the span's start; `start` is the span's start.
    pub started_before: bool,
    /// The next exec, the process's end, or the span's end.
    pub end: Ktime,
    /// It ended inside the span.
    pub ended: bool,
    /// The file that was executed; empty for a program that was running before.
    pub filename: Arc<[u8]>,
    pub argv: Argv,
    /// The name after the exec.
    pub comm: Comm,
    /// Its threads' times from `start` to `end`.
    pub times: Times,
    /// Its largest resident set in bytes. Kernels before 6.16 tell only that of a program that
    /// needs more than each before it in the process, the one that it was forked from
    /// included.
    pub max_rss: Option<u64>,
}

impl ExecSpan {
    /// Its length in ns.
    pub fn wall(&self) -> u64 {
        self.end.since(self.start)
    }
}

/// Sums over all processes of the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub processes: u64,
    pub threads: u64,
    pub execs: u64,
    /// New tasks, threads included.
    pub forks: u64,
    /// Tasks that exited, threads included.
    pub exits: u64,
    pub times: Times,
    /// Parts of `times`.
    pub causes: Causes,
}
