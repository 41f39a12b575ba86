//! The metadata of a trace ([`Metadata`], at its start) and its summary ([`Summary`], at its end).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::event::{Clock, CpuId, Ktime, Tgid};
use crate::scripts::{self, RecordedScript};
use crate::tally::Tally;

/// The metadata of a trace: everything needed to interpret it. It is written before the first event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// The version of the `tr` that wrote the trace.
    pub tool_version: String,
    /// The name of the recorded machine.
    pub host: String,
    /// The kernel of the recorded machine, as `uname -s -r -v` prints it.
    pub kernel: String,
    /// The architecture of the recorded machine, as `uname -m` prints it.
    pub machine: String,
    /// The CPUs of the recorded machine that were online at the start of the recording.
    pub cpus: Vec<CpuId>,
    /// The size of a page of memory on the recorded machine, in bytes.
    pub page_size: u32,
    /// The time at which the recording begins, which is time zero of every report. Tracing was already
    /// running then, and COMMAND starts right after it.
    pub start: Ktime,
    /// The readings of the machine's other clocks at the time `start`.
    pub start_clock: Clock,
    /// The choice of the processes that the recording follows.
    pub scope: Scope,
    /// COMMAND and its arguments; empty if there was no COMMAND.
    pub command: Vec<Vec<u8>>,
    /// The process of COMMAND; `None` if there was no COMMAND.
    pub root: Option<Tgid>,
    /// The directory in which COMMAND was started.
    pub cwd: Vec<u8>,
    /// The meaning of the bits of the kernel's task states (`prev_state`) on the recorded machine.
    pub states: Vec<StateName>,
    /// The settings with which the recording was made.
    pub options: Options,
    /// The facts that the recording lacks, because they could not be recorded.
    pub missing: Vec<Missing>,
    /// Environment variables that identify the CI run, from a fixed list: the name and the value of each.
    pub ci: Vec<(String, String)>,
    /// The reason why COMMAND ran without tracing, if that is the case. The trace then has no events, only a
    /// summary.
    pub not_traced: Option<String>,
    /// How the recording was made. `None` stands for a recording by BPF programs, whose events the kernel has
    /// stamped.
    pub origin: Option<Origin>,
    /// The numbers of the kinds of optional facts ([`Extra`]) that were recorded.
    pub extras: Option<Vec<u8>>,
    /// The name and the version of the program that recorded, if that was not `tr`: `perf 6.1.187`. Only `tr
    /// import` of version 0.1.0 wrote this field.
    pub recorder: Option<String>,
    /// The facts about the machine's hardware that [`Hardware`] names: the name and the value of each. The list leaves
    /// out facts that are not known.
    pub hardware: Option<Vec<(String, String)>>,
}

named! {
    /// The facts about the machine's hardware that a recording has, by their names.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Hardware {
        /// The model of the recorded machine's first CPU, as the CPU names itself.
        CpuModel = "cpu model",
        /// The family, model and stepping of the recorded machine's first CPU, in numbers or words.
        CpuStepping = "cpu stepping",
        /// The version of the microcode of the recorded machine's first CPU.
        Microcode = "microcode",
        /// The memory that the recorded machine's system can use, in bytes (`MemTotal`).
        Memory = "memory bytes",
        /// The hypervisor of the recorded machine, or the cloud's type of machine; `none` on bare metal.
        Virtualization = "virtualization",
    }
}

named! {
    /// A kind of fact that not every recording has. If the facts of a kind could not be recorded, a [`Missing`] shows
    /// the kind's name before the reason. Both kinds of stacks have the same name: if stacks on a CPU are missing,
    /// stacks of waits are missing, too.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u8)]
    pub enum Extra {
        /// The TCP connections of recorded tasks.
        Network = "TCP connections",
        /// The number and the duration of the system calls of recorded processes, summed up for each kind of call.
        SystemCalls = "system calls",
        /// The number, size and latency of requests to block devices, summed up for each device.
        Block = "requests to block devices",
        /// Direct reclaim of memory by recorded tasks, and kills of processes because memory ran out.
        Memory = "direct reclaim of memory",
        /// The DNS queries of recorded tasks, and the answers to them.
        Dns = "DNS queries",
        /// The disk that a recorded task waits for.
        DiskWaits = "the disks that tasks wait for",
        /// The sampled call stacks of recorded tasks that run on a CPU.
        Stacks = "stacks",
        /// The call stacks of recorded tasks that wait.
        OffCpuStacks = "stacks",
    }
}

/// The parts of the text in [`Metadata::kernel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelName<'a> {
    /// The name of the operating system: `Linux`.
    pub system: &'a str,
    /// The release, such as `6.12.9-amd64`.
    pub release: &'a str,
    /// The version of the build: its number, options and date.
    pub build: &'a str,
}

/// Writes the three parts with blanks between them, as [`Metadata::kernel`] has them.
impl fmt::Display for KernelName<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {} {}", self.system, self.release, self.build)
    }
}

impl Metadata {
    /// The kernel of the recorded machine, divided. A part that the file does not have is empty.
    pub fn kernel_name(&self) -> KernelName<'_> {
        let mut parts = self.kernel.splitn(3, ' ');
        let mut part = || parts.next().unwrap_or_default();
        KernelName {
            system: part(),
            release: part(),
            build: part(),
        }
    }
}

/// A fact that could not be recorded. The file stores it as text: `DNS queries: this kernel ...`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Missing {
    /// The kind of the missing fact; `None` if only the reason `why` names the fact.
    pub fact: Option<Extra>,
    /// The reason why the fact could not be recorded, as text for the user.
    pub why: String,
}

impl Missing {
    /// Declares that a fact could not be recorded: either one of the kinds in [`Extra`], or a fact that only
    /// the reason `why` names.
    pub fn new(fact: impl Into<Option<Extra>>, why: &str) -> Missing {
        Missing {
            fact: fact.into(),
            why: why.to_owned(),
        }
    }
}

impl From<String> for Missing {
    fn from(words: String) -> Missing {
        let named = Extra::ALL.into_iter().find_map(|fact| {
            let why = words.strip_prefix(fact.name())?.strip_prefix(": ")?;
            Some(Missing::new(fact, why))
        });
        named.unwrap_or(Missing {
            fact: None,
            why: words,
        })
    }
}

impl From<Missing> for String {
    fn from(missing: Missing) -> String {
        missing.to_string()
    }
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.fact {
            Some(fact) => write!(f, "{}: {}", fact.name(), self.why),
            None => f.write_str(&self.why),
        }
    }
}

impl Metadata {
    /// Whether the recording follows all tasks on all CPUs. If it has switches, then only lost ones are missing.
    pub fn sees_all_cpus(&self) -> bool {
        self.scope == Scope::All && self.options.cpus.is_empty()
    }

    /// The value of a fact about the hardware of the recorded machine; `None` if the recording does not have
    /// it.
    pub fn hardware(&self, fact: Hardware) -> Option<&str> {
        let mut all = self.hardware.iter().flatten();
        all.find(|(name, _)| name == fact.name())
            .map(|(_, value)| value.as_str())
    }

    /// The fact of this kind that could not be recorded, with the reason. `None` if the recording names no
    /// reason for this kind.
    pub fn missing(&self, fact: Extra) -> Option<&Missing> {
        self.missing
            .iter()
            .find(|missing| missing.fact == Some(fact))
    }

    /// Whether this optional kind of fact was recorded.
    pub fn has(&self, extra: Extra) -> bool {
        let extras = self.extras.as_ref();
        extras.is_some_and(|extras| extras.contains(&(extra as u8)))
    }

    /// Whether stacks of tasks were recorded: stacks on a CPU, stacks of waits, or both.
    pub fn has_stacks(&self) -> bool {
        self.has(Extra::Stacks) || self.has(Extra::OffCpuStacks)
    }

    /// How each kind of fact was recorded, for example by events or by samples.
    pub fn facts(&self) -> RecordingFacts {
        self.origin
            .map_or_else(RecordingFacts::default, |origin| origin.facts)
    }

    /// The method by which `tr` recorded, for example BPF programs or ptrace(2).
    pub fn method(&self) -> Method {
        self.origin.map_or(Method::Bpf, |origin| origin.method)
    }

    /// Whether BPF programs recorded without scheduling events (`tr record --light`).
    pub fn is_light(&self) -> bool {
        let by_programs = matches!(self.method(), Method::Bpf | Method::Sudo);
        by_programs && self.facts().switches == Known::Totals
    }

    /// The name of the recording method, or the name of the other program that made the recording.
    pub fn recorded_by(&self) -> &str {
        self.recorder.as_deref().unwrap_or(self.method().name())
    }

    /// The time at which the recording started, in ns since 1970; `None` if it was not recorded.
    pub fn start_unix(&self) -> Option<u64> {
        Some(self.start_clock.real).filter(|real| *real > 0)
    }
}

/// The method by which a recording was made, and how each kind of fact was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The method by which `tr` recorded.
    pub method: Method,
    /// How each kind of fact was recorded, for example by events or by samples.
    pub facts: RecordingFacts,
}

named! {
    /// A method of recording.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Method {
        /// The recording was made by BPF programs.
        #[default]
        Bpf = "bpf",
        /// The recording was made by BPF programs. A separate process that ran with sudo (the loader) attached them.
        Sudo = "sudo",
        /// The recording was made by ptrace(2).
        Ptrace = "ptrace",
        /// The recording was made by reading `/proc` at intervals. No recorder does so any more.
        Poll = "poll",
    }
}

named! {
    /// The way in which a kind of fact was recorded.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Known {
        /// The fact was recorded by events whose time stamps come from the kernel.
        #[default]
        Kernel = "kernel",
        /// The fact was recorded by events that the recorder stamped with the time at which the recorder learned of
        /// them.
        Recorder = "recorder",
        /// The fact comes from the total times that the kernel counts for each task.
        Totals = "totals",
        /// The fact comes from samples, so that an event between two samples may be missing.
        Sampled = "sampled",
        /// The recording has no facts of this kind at all.
        Absent = "absent",
    }
}

/// How each kind of fact was recorded, for example by events or by samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingFacts {
    /// How the times that tasks spent on a CPU were recorded.
    pub switches: Known,
    /// How it was recorded which task woke which task.
    pub wakings: Known,
    /// How the times for which tasks waited for a CPU were recorded.
    pub run_queue: Known,
    /// How it was recorded which waits were uninterruptible, as distinct from other sleeps.
    pub blocked: Known,
    /// How the times of tasks' forks, execs and ends were recorded.
    pub life_times: Known,
    /// How the arguments of executed programs were recorded.
    pub argv: Known,
    /// How the exit statuses of processes were recorded.
    pub codes: Known,
    /// How the largest resident set of each process was recorded.
    pub memory: Known,
}

/// The choice of the processes that a recording follows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scope {
    /// The recording follows COMMAND and its descendants.
    #[default]
    Command,
    /// The recording follows all processes of the machine.
    All,
    /// The recording follows the processes with these ids and their descendants.
    Pids(Vec<Tgid>),
    /// The recording follows the processes of the cgroup with this path and their descendants.
    Cgroup(Vec<u8>),
}

/// The settings with which a recording was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// The largest number of bytes of an argument vector that are recorded. A longer one is cut.
    pub argv_limit: u32,
    /// The CPUs whose events were recorded; empty if all CPUs were recorded.
    pub cpus: Vec<CpuId>,
    /// The CPUs on which COMMAND, or at least one of the processes that were followed from the start, could run at
    /// the start (affinity, which a cpuset narrows). `None` if these are all CPUs that were online, or if they are
    /// not known.
    pub allowed: Option<Vec<CpuId>>,
    /// The memory of all slots and rings between the kernel and the recorder together, in bytes.
    pub buffer: u64,
    /// Whether the recording distinguishes wake-ups by interrupts from wake-ups by the running task, so that
    /// `Waking::context` is meaningful.
    pub irq_known: bool,
}

/// A bit of the kernel's task state, and the state's names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateName {
    /// The value of this bit of the task state.
    pub bit: u16,
    /// The letter of this task state in `ps` and `sched_switch`, for example `D`.
    pub letter: char,
    /// The name of this task state in the kernel, for example `TASK_UNINTERRUPTIBLE`.
    pub name: String,
}

impl StateName {
    /// The bits of the kernel's task states since Linux 4.14 (include/linux/sched.h; RTLOCK_WAIT came with
    /// 5.15, FREEZABLE and FROZEN with 6.1). A state with a bit that is not in this list is unknown.
    pub fn of_linux() -> Vec<StateName> {
        [
            (0x0001, 'S', "TASK_INTERRUPTIBLE"),
            (0x0002, 'D', "TASK_UNINTERRUPTIBLE"),
            (0x0004, 'T', "__TASK_STOPPED"),
            (0x0008, 't', "__TASK_TRACED"),
            (0x0010, 'X', "EXIT_DEAD"),
            (0x0020, 'Z', "EXIT_ZOMBIE"),
            (0x0040, 'P', "TASK_PARKED"),
            (0x0080, 'x', "TASK_DEAD"),
            (0x0100, 'K', "TASK_WAKEKILL"),
            (0x0200, 'W', "TASK_WAKING"),
            (0x0400, 'I', "TASK_NOLOAD"),
            (0x0800, 'N', "TASK_NEW"),
            (0x1000, 'L', "TASK_RTLOCK_WAIT"),
            (0x2000, 'f', "TASK_FREEZABLE"),
            (0x8000, 'F', "TASK_FROZEN"),
        ]
        .into_iter()
        .map(|(bit, letter, name)| StateName {
            bit,
            letter,
            name: name.to_owned(),
        })
        .collect()
    }
}

/// The summary of a recording, written at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The time at which the recording ended. All events before that time are in the trace, except for lost ones.
    pub end: Ktime,
    /// The readings of the machine's other clocks at the time `end`.
    pub end_clock: Clock,
    /// The raw `wait` status of COMMAND; `None` if COMMAND was still running or there was none.
    pub status: Option<u32>,
    /// The reason why the recording ended.
    pub reason: EndReason,
    /// The CPU time and the wall time that tracing cost.
    pub cost: Cost,
    /// The numbers of the trace's events by kind, and other facts about the events. [`crate::writer::Writer::finish`]
    /// ignores this field and writes the numbers that it has counted. `None` if the writer did not count.
    pub tally: Option<Tally>,
    /// The resources that COMMAND used, if it ran without tracing.
    pub usage: Option<Usage>,
    /// The time for which the machine withheld CPUs and memory from the recorded tasks.
    pub machine: Option<Machine>,
    /// The limit of the trace file's size that ended the recording; `None` if another reason ended it.
    pub full: Option<Full>,
    /// The shell scripts that recorded processes ran from files, each path once.
    pub scripts: Vec<RecordedScript>,
    /// The number of shell scripts that exceed a limit of the format, and so are missing from `scripts`.
    pub scripts_left_out: u64,
    /// The limit by which the recorder ended COMMAND; `None` if COMMAND reached no limit.
    pub ended: Option<EndedByLimit>,
}

impl Summary {
    /// The recorded shell script that the file name `word` refers to in the directory `directory`, where a
    /// shell was executed; `None` if that script is not in the summary.
    pub fn script(&self, directory: &[u8], word: &[u8]) -> Option<&RecordedScript> {
        let path = scripts::path_of(directory, word)?;
        self.scripts.iter().find(|script| script.path == path)
    }

    /// Removes the shell scripts that exceed a limit of the format from the summary, and counts them.
    pub(crate) fn bound_scripts(&mut self) {
        let left_out = scripts::bound(&mut self.scripts);
        self.scripts_left_out = self.scripts_left_out.saturating_add(left_out);
    }
}

/// The end of a COMMAND that reached a limit which the user had set: the recorder sent SIGTERM to its processes, and
/// SIGKILL some time later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EndedByLimit {
    /// The limit that COMMAND reached.
    pub limit: CommandLimit,
    /// The time in ns for which COMMAND may run, or for which no process of COMMAND was active.
    pub ns: u64,
}

/// A limit that the user sets on COMMAND.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CommandLimit {
    /// The limit on COMMAND's running time (`--timeout`).
    #[default]
    Timeout,
    /// The limit on the time in which no process of COMMAND is active (`--stall`).
    Stall,
}

/// The facts about a recording that ended because the trace file reached a limit of size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Full {
    /// The limit of the trace file's size in bytes.
    pub limit: u64,
    /// The end of COMMAND, which ran on after the end of the recording; `None` if there was no COMMAND, or if
    /// its end is not known.
    pub command: Option<CommandEnd>,
}

/// The end of a COMMAND that ran on after the end of the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandEnd {
    /// The time at which COMMAND ended.
    pub time: Ktime,
    /// The resources that COMMAND used from its start to its end.
    pub usage: Usage,
}

/// The time for which the machine withheld CPUs and memory from the recorded tasks while COMMAND ran. Each
/// time is in ns, and `None` if the kernel did not count it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The time for which the CPU quota of COMMAND's cgroup, or of an ancestor of it, kept tasks off the CPUs
    /// (`cpu.stat`), summed over all CPUs.
    pub throttled_ns: Option<u64>,
    /// The CPU time that the hypervisor gave to other virtual machines (`steal` in `/proc/stat`), summed over
    /// all CPUs.
    pub stolen_ns: Option<u64>,
    /// The time in which at least one task of the machine waited for memory
    /// (`/proc/pressure/memory`).
    pub memory_stalled_ns: Option<u64>,
}

/// The resources of COMMAND and of the descendants that it waited for (`getrusage`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// The CPU time in user mode of COMMAND and its descendants, in ns.
    pub user_ns: u64,
    /// The CPU time in the kernel of COMMAND and its descendants, in ns.
    pub system_ns: u64,
    /// The largest resident set that any one of COMMAND and its descendants has had, in bytes.
    pub max_rss: u64,
    /// The number of page faults of COMMAND and its descendants that needed no I/O.
    pub minor_faults: u64,
    /// The number of page faults of COMMAND and its descendants that needed I/O.
    pub major_faults: u64,
    /// The number of voluntary context switches of COMMAND and its descendants, in which a task began to
    /// wait.
    pub voluntary_switches: u64,
    /// The number of involuntary context switches of COMMAND and its descendants, in which a task was
    /// preempted.
    pub involuntary_switches: u64,
}

/// The reason why a recording ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndReason {
    /// The recording ended because COMMAND ended.
    #[default]
    CommandEnded,
    /// The recording ended because the time of `--duration` was over, or because the file reached a limit of
    /// size ([`Summary::full`]).
    Duration,
    /// The recording ended because a signal to the recorder requested it.
    Signal,
    /// The recording ended because the followed processes ended.
    TargetsEnded,
}

/// The times that tracing cost, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// The CPU time of the recorder in user mode and in the kernel, from the start of COMMAND on, in ns.
    pub recorder_ns: u64,
    /// The CPU time that the BPF programs took, in ns, counted by the kernel or estimated by a sample of
    /// their runs; `None` if neither is known.
    pub bpf_ns: Option<u64>,
    /// The wall time in ns from the start of `tr` to the start of COMMAND.
    pub setup_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_has_three_parts() {
        let of = |kernel: &str| {
            let meta = Metadata {
                kernel: kernel.to_owned(),
                ..Metadata::default()
            };
            let name = meta.kernel_name();
            let parts = [name.system, name.release, name.build].map(str::to_owned);
            (parts, name.to_string())
        };
        let whole = "Linux 6.12.9-amd64 #1 SMP Debian 6.12.9-1";
        let (parts, again) = of(whole);
        assert_eq!(parts, ["Linux", "6.12.9-amd64", "#1 SMP Debian 6.12.9-1"]);
        assert_eq!(again, whole);
        assert_eq!(of("Linux").0, ["Linux", "", ""]);
        assert_eq!(of("").0, ["", "", ""]);
    }

    /// Tests that the kinds of optional facts keep their numbers and names, because files store both.
    #[test]
    fn extras_keep_their_numbers() {
        let all = [
            (0, "TCP connections"),
            (1, "system calls"),
            (2, "requests to block devices"),
            (3, "direct reclaim of memory"),
            (4, "DNS queries"),
            (5, "the disks that tasks wait for"),
            (6, "stacks"),
            (7, "stacks"),
        ];
        assert_eq!(Extra::ALL.map(|extra| (extra as u8, extra.name())), all);
    }

    #[test]
    fn no_state_has_two_names() {
        let mut bits: Vec<_> = StateName::of_linux().iter().map(|s| s.bit).collect();
        bits.dedup();
        assert_eq!(bits.len(), StateName::of_linux().len());
        assert!(bits.iter().all(|bit| bit.count_ones() == 1));
    }
}
