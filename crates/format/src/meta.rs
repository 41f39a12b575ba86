//! [`Metadata`] at the start of a trace, [`Summary`] at its end.

use serde::{Deserialize, Serialize};

use crate::event::{Clock, CpuId, Ktime, Tgid};
use crate::tally::Tally;

/// Everything needed to interpret a trace, written before the first event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// The version of `tr` that wrote the trace.
    pub tool_version: String,
    /// The host's name.
    pub host: String,
    /// `uname -s -r -v` of the kernel.
    pub kernel: String,
    /// `uname -m`.
    pub machine: String,
    /// The CPUs that were online at the start.
    pub cpus: Vec<CpuId>,
    /// Bytes of a page.
    pub page_size: u32,
    /// Time zero of every report. Tracing was running before; COMMAND starts right after.
    pub start: Ktime,
    /// The other clocks at `start`.
    pub start_clock: Clock,
    /// The followed processes.
    pub scope: Scope,
    /// COMMAND and its arguments; empty when there was none.
    pub command: Vec<Vec<u8>>,
    /// COMMAND's process.
    pub root: Option<Tgid>,
    /// The directory in which COMMAND was started.
    pub cwd: Vec<u8>,
    /// The bits of `prev_state` of the recorded kernel.
    pub states: Vec<StateName>,
    /// The recording's settings.
    pub options: Options,
    /// The facts that could not be recorded.
    pub missing: Vec<Missing>,
    /// Identifiers of the CI run, from a fixed list of variables: name, value.
    pub ci: Vec<(String, String)>,
    /// The reason if nothing was traced: COMMAND ran, and the trace has only a summary.
    pub not_traced: Option<String>,
    /// How the facts are known; `None`: the kernel stamped all of them, by BPF programs.
    pub origin: Option<Origin>,
    /// The numbers of the [`Extra`]s that were recorded.
    pub extras: Option<Vec<u8>>,
    /// The program that recorded, and its version, if that was not `tr`: `perf 6.1.187`. The
    /// `tr import` of version 0.1.0 wrote it.
    pub recorder: Option<String>,
    /// Facts about the machine's hardware that [`Hardware`] names; a fact that is not known is missing.
    pub hardware: Option<Vec<(String, String)>>,
}

named! {
    /// The names of facts about the machine's hardware.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Hardware {
        /// The first CPU's model, as it calls itself.
        CpuModel = "cpu model",
        /// Family, model and stepping of it, as numbers or words.
        CpuStepping = "cpu stepping",
        /// The version of its microcode.
        Microcode = "microcode",
        /// The usable memory in bytes (`MemTotal`).
        Memory = "memory bytes",
        /// The hypervisor or the cloud's kind of machine; `none` on bare metal.
        Virtualization = "virtualization",
    }
}

named! {
    /// A kind of fact that not every recording has. Its name stands before the reason in a
    /// [`Missing`]; stacks of waits are missing where stacks are.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u8)]
    pub enum Extra {
        /// TCP connections.
        Network = "TCP connections",
        /// System calls.
        SystemCalls = "system calls",
        /// Requests to block devices.
        Block = "requests to block devices",
        /// Direct reclaim and kills for lack of memory.
        Memory = "direct reclaim of memory",
        /// DNS queries.
        Dns = "DNS queries",
        /// The disks that tasks wait for.
        DiskWaits = "the disks that tasks wait for",
        /// Stacks on a CPU.
        Stacks = "stacks",
        /// Stacks of waits.
        OffCpuStacks = "stacks",
    }
}

/// A fact that could not be recorded. The file has it as words: `DNS queries: this kernel ...`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Missing {
    /// The fact; `None`: `why` tells it.
    pub fact: Option<Extra>,
    /// The reason, for the user.
    pub why: String,
}

impl Missing {
    /// Of a fact that reports show, or of another one, which the reason tells.
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
    /// Whether every switch of every CPU is recorded, as far as nothing is lost.
    pub fn sees_all_cpus(&self) -> bool {
        self.scope == Scope::All && self.options.cpus.is_empty()
    }

    /// A fact about the machine's hardware.
    pub fn hardware(&self, fact: Hardware) -> Option<&str> {
        let mut all = self.hardware.iter().flatten();
        all.find(|(name, _)| name == fact.name())
            .map(|(_, value)| value.as_str())
    }

    /// Why a fact could not be recorded, if the recording tells.
    pub fn missing(&self, fact: Extra) -> Option<&Missing> {
        self.missing.iter().find(|it| it.fact == Some(fact))
    }

    /// These facts were recorded.
    pub fn has(&self, extra: Extra) -> bool {
        let extras = self.extras.as_ref();
        extras.is_some_and(|extras| extras.contains(&(extra as u8)))
    }

    /// Stacks were recorded: on a CPU, of waits, or both.
    pub fn has_stacks(&self) -> bool {
        self.has(Extra::Stacks) || self.has(Extra::OffCpuStacks)
    }

    /// How each kind of fact is known.
    pub fn facts(&self) -> Facts {
        self.origin.map_or_else(Facts::default, |it| it.facts)
    }

    /// The way of recording, if `tr` did.
    pub fn method(&self) -> Method {
        self.origin.map_or(Method::Bpf, |it| it.method)
    }

    /// BPF programs recorded it without scheduling events (`--light`).
    pub fn is_light(&self) -> bool {
        let by_programs = matches!(self.method(), Method::Bpf | Method::Sudo);
        by_programs && self.facts().switches == Known::Totals
    }

    /// The name of the way of recording, or the other program that did.
    pub fn recorded_by(&self) -> &str {
        self.recorder.as_deref().unwrap_or(self.method().name())
    }

    /// The time of the day at the start, in ns since 1970; `None` if no clock of it was
    /// recorded.
    pub fn start_unix(&self) -> Option<u64> {
        Some(self.start_clock.real).filter(|real| *real > 0)
    }
}

/// The way of recording, and how the facts are known by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The way.
    pub method: Method,
    /// The facts.
    pub facts: Facts,
}

named! {
    /// A way of recording.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Method {
        /// BPF programs.
        #[default]
        Bpf = "bpf",
        /// BPF programs, which the loader attached; sudo ran it.
        Sudo = "sudo",
        /// ptrace(2).
        Ptrace = "ptrace",
        /// Reading `/proc` at intervals. No recorder does so any more.
        Poll = "poll",
    }
}

named! {
    /// How a kind of fact is known.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Known {
        /// By events that the kernel stamped.
        #[default]
        Kernel = "kernel",
        /// By events that the recorder stamped when it learned of them.
        Recorder = "recorder",
        /// By the kernel's totals of each task.
        Totals = "totals",
        /// By samples: an event between two samples may be missing.
        Sampled = "sampled",
        /// Not at all.
        Absent = "absent",
    }
}

/// How each kind of fact is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Times on a CPU.
    pub switches: Known,
    /// Who woke whom.
    pub wakings: Known,
    /// Times of waiting for a CPU.
    pub run_queue: Known,
    /// Uninterruptible waits, apart from sleeps.
    pub blocked: Known,
    /// Forks, execs and ends.
    pub life_times: Known,
    /// Arguments of programs.
    pub argv: Known,
    /// Exit statuses.
    pub codes: Known,
    /// The largest resident sets.
    pub memory: Known,
}

/// The processes that a recording follows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scope {
    /// COMMAND and its descendants.
    #[default]
    Command,
    /// The whole machine.
    All,
    /// These processes and their descendants.
    Pids(Vec<Tgid>),
    /// The processes of this cgroup and their descendants.
    Cgroup(Vec<u8>),
}

/// Settings of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Longest recorded argv in bytes.
    pub argv_limit: u32,
    /// Only these CPUs were recorded; empty = all.
    pub cpus: Vec<CpuId>,
    /// The CPUs that the followed processes were allowed at the start (their affinity, which a
    /// cpuset narrows), if those are not all that were online.
    pub allowed: Option<Vec<CpuId>>,
    /// Ring memory in bytes, all rings together.
    pub buffer: u64,
    /// `Waking::context` is meaningful on this kernel.
    pub irq_known: bool,
}

/// One bit of the kernel's task state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateName {
    /// The bit.
    pub bit: u16,
    /// Its letter in `ps` and `sched_switch`, e.g. `D`.
    pub letter: char,
    /// Its name in the kernel, e.g. `TASK_UNINTERRUPTIBLE`.
    pub name: String,
}

impl StateName {
    /// The kernel's task states since 4.14 (include/linux/sched.h; RTLOCK_WAIT came
    /// with 5.15, FREEZABLE and FROZEN with 6.1). A bit that is not here reads as
    /// unknown.
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

/// The end of the recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The end of the recording: everything before it is in the trace.
    pub end: Ktime,
    /// The other clocks at `end`.
    pub end_clock: Clock,
    /// COMMAND's raw `wait` status; `None` if it was still running or there
    /// was none.
    pub status: Option<u32>,
    /// The reason of the end.
    pub reason: EndReason,
    /// The cost of tracing.
    pub cost: Cost,
    /// The numbers of events. [`crate::writer::Writer::finish`] ignores this and writes its own
    /// count. `None` if the writer did not count.
    pub tally: Option<Tally>,
    /// The resources that COMMAND used, if nothing was traced.
    pub usage: Option<Usage>,
    /// CPU time and memory that the machine withheld.
    pub machine: Option<Machine>,
}

/// CPU time and memory that the machine withheld from the recorded tasks while COMMAND ran, in
/// ns. `None`: the kernel did not count it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The time in which the quota of COMMAND's cgroup, or of one above, throttled a CPU
    /// (`cpu.stat`), all CPUs together.
    pub throttled_ns: Option<u64>,
    /// CPU time that the hypervisor gave to others (`steal` in `/proc/stat`), all CPUs together.
    pub stolen_ns: Option<u64>,
    /// The time in which at least one task of the machine waited for memory
    /// (`/proc/pressure/memory`).
    pub memory_stalled_ns: Option<u64>,
}

/// The resources of COMMAND and of the descendants that it waited for (`getrusage`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time in user mode, in ns.
    pub user_ns: u64,
    /// CPU time in the kernel, in ns.
    pub system_ns: u64,
    /// The largest process's memory, in bytes.
    pub max_rss: u64,
    /// Page faults that took no I/O.
    pub minor_faults: u64,
    /// Page faults that took I/O.
    pub major_faults: u64,
    /// Context switches because the task waited.
    pub voluntary_switches: u64,
    /// Context switches because the task was preempted.
    pub involuntary_switches: u64,
}

/// The reason of a recording's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndReason {
    /// COMMAND ended.
    #[default]
    CommandEnded,
    /// `--duration` was over.
    Duration,
    /// A signal asked for it.
    Signal,
    /// The followed processes ended.
    TargetsEnded,
}

/// The cost of tracing, in ns of CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// The recorder, user and system time, from the release of COMMAND on.
    pub recorder_ns: u64,
    /// The BPF programs; `None` if the kernel did not count it.
    pub bpf_ns: Option<u64>,
    /// From process start to the release of COMMAND, wall time.
    pub setup_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files have the numbers, and the names before reasons.
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
        assert_eq!(Extra::ALL.map(|it| (it as u8, it.name())), all);
    }

    #[test]
    fn no_state_has_two_names() {
        let mut bits: Vec<_> = StateName::of_linux().iter().map(|s| s.bit).collect();
        bits.dedup();
        assert_eq!(bits.len(), StateName::of_linux().len());
        assert!(bits.iter().all(|bit| bit.count_ones() == 1));
    }
}
