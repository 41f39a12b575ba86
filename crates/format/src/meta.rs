//! What a trace says about itself: [`Metadata`] at its start, [`Summary`] at
//! its end.

use serde::{Deserialize, Serialize};

use crate::event::{Clock, CpuId, Ktime, Tgid};

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
    /// Time zero of the trace: every report counts from here. Tracing was
    /// already running, and COMMAND was let go right after it.
    pub start: Ktime,
    /// The other clocks at `start`.
    pub start_clock: Clock,
    /// What the recording is about.
    pub scope: Scope,
    /// COMMAND and its arguments; empty when there was none.
    pub command: Vec<Vec<u8>>,
    /// COMMAND's process.
    pub root: Option<Tgid>,
    /// The directory in which COMMAND was started.
    pub cwd: Vec<u8>,
    /// The meaning of the bits of `prev_state`, by the kernel that ran.
    pub states: Vec<StateName>,
    /// Settings that change what is in the trace.
    pub options: Options,
    /// What this kernel could not tell, each by name, for people.
    pub missing: Vec<String>,
    /// Identifiers of the CI run, from a fixed list of variables: name, value.
    pub ci: Vec<(String, String)>,
}

/// What a recording follows.
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

/// Settings that change what is in the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Longest recorded argv in bytes.
    pub argv_limit: u32,
    /// Only these CPUs were recorded; empty = all.
    pub cpus: Vec<CpuId>,
    /// Ring memory in bytes, all rings together.
    pub buffer: u64,
    /// `Waking::irq` is meaningful on this kernel.
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

/// How the recording ended; the last thing written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The end of the recording: everything before it is in the trace.
    pub end: Ktime,
    /// The other clocks at `end`.
    pub end_clock: Clock,
    /// COMMAND's raw `wait` status; `None` when it was still running or there
    /// was none.
    pub status: Option<u32>,
    /// Why the recording ended.
    pub reason: EndReason,
    /// What tracing itself cost.
    pub cost: Cost,
}

/// Why a recording ended.
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

/// What tracing itself cost, all in ns of CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// The recorder, user and system time, from the release of COMMAND on.
    pub recorder_ns: u64,
    /// The BPF programs; `None` when the kernel did not count it.
    pub bpf_ns: Option<u64>,
    /// From process start to the release of COMMAND, wall time.
    pub setup_ns: u64,
}
