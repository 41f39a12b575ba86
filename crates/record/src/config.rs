//! The settings of a recording, grouped by what they are about.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use tr_bpf::Containers;
use tr_format::meta::Method;
use tr_output::Target;
use tr_redact::Redactor;

use crate::error::Error;
use crate::hang::GuardSettings;
use crate::inherited::Inherited;
use crate::scripts::ScriptFinder;
use crate::watcher::Watching;

/// All settings of a recording by `tr record`.
#[derive(Clone, Debug)]
pub struct Config {
    pub file: TraceFile,
    pub method: MethodSettings,
    pub scope: Scope,
    pub facts: FactSettings,
    pub mask: MaskSettings,
    pub command: CommandSettings,
    pub limits: Limits,
    pub guard: GuardSettings,
    pub notices: Notices,
    /// The time at which `tr` was started.
    pub started: Instant,
    /// The version of `tr` that makes the recording.
    pub version: String,
}

/// The settings for the trace file: its name, and what happens to an earlier file.
#[derive(Clone, Debug)]
pub struct TraceFile {
    pub target: Target,
    /// The kind of existing files that the trace file may replace; `None` stands for any file.
    pub replaces: Option<tr_output::FileKind>,
    /// Whether a trace file that is replaced is kept, as NAME.old.
    pub keeps: bool,
    /// The rules by which the recording is divided into several files; `None` if it is written to one file. Only a
    /// light recording ([`FactSettings::light`]) can be divided.
    pub rotation: Option<Rotation>,
}

/// The settings for the method by which events are recorded.
#[derive(Clone, Copy, Debug)]
pub struct MethodSettings {
    pub choice: Choice,
    /// Whether the method `auto` may choose ptrace(2), which can change what COMMAND does.
    pub may_ptrace: bool,
}

/// The settings for the choice of the tasks and CPUs that are recorded.
#[derive(Clone, Debug)]
pub struct Scope {
    pub follow: Follow,
    /// The CPUs whose events are recorded; `None` stands for all CPUs.
    pub cpus: Option<Vec<u16>>,
    pub containers: Containers,
    /// Whether the recording also follows servers that answer the followed tasks.
    pub servers: bool,
}

/// The settings for what is recorded about the tasks.
#[derive(Clone, Copy, Debug)]
pub struct FactSettings {
    /// Whether to record only forks, execs and ends of processes, and the totals of CPU time once a second.
    pub light: bool,
    /// Whether the recorder sums up the system calls of processes.
    pub syscalls: bool,
    /// The number of times a second that the stacks of the tasks on each CPU are sampled; `None` if they are not.
    pub stacks: Option<u32>,
    /// The stack of a task is recorded when the task has waited for at least this time; `None` if no stacks of waits
    /// are recorded.
    pub off_cpu_stacks: Option<Duration>,
    /// Whether the recorder searches for the functions of the recorded stacks at the end of the recording.
    pub symbols: bool,
    /// The largest number of bytes of a program's argument vector that are recorded.
    pub argv_limit: u32,
    /// The functions that find the shell scripts whose texts are recorded; `None` if no scripts are recorded.
    pub scripts: Option<ScriptFinder>,
}

/// The settings for masking secrets and addresses in the trace.
#[derive(Clone, Debug)]
pub struct MaskSettings {
    /// The rules that mask secrets in command lines.
    pub redactor: Redactor,
    /// Whether network addresses in the trace are masked.
    pub addresses: bool,
}

/// The settings for COMMAND and for how it runs.
#[derive(Clone, Debug)]
pub struct CommandSettings {
    /// COMMAND and its arguments. They may be empty unless the recording follows COMMAND.
    pub argv: Vec<OsString>,
    /// The user that COMMAND runs as, by name or number; `None` stands for the user of `tr`.
    pub user: Option<String>,
    /// The state that COMMAND inherits, such as signal actions and closed streams.
    pub inherited: Inherited,
    /// Whether the recording lasts until COMMAND's last descendant ends, and not only until COMMAND ends.
    pub wait_all: bool,
    /// Whether COMMAND runs without a recording if the recording cannot begin, or if the recorder panics before COMMAND
    /// has begun.
    pub best_effort: bool,
}

/// The limits of a recording: its duration, the size of its file, and the memory of its buffers.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest time that is recorded; `None` if there is no limit.
    pub duration: Option<Duration>,
    /// The largest size of the trace file in bytes; `None` if there is no limit.
    pub size: Option<u64>,
    /// The memory in bytes that all buffers (slots and rings) of the BPF programs get together at most, except that
    /// none is smaller than a page; `None` if the number of CPUs decides it.
    pub buffer: Option<u64>,
}

/// The functions that the recorder calls during a recording to notify the user.
#[derive(Clone, Debug)]
pub struct Notices {
    /// The function that is called once when the recording has begun, before COMMAND runs.
    pub on_begin: Notice,
    /// The function that is called once if, after COMMAND's end, the output (such as a pipe) has not accepted the rest
    /// of the trace within the time [`LONG_WAIT`](crate::LONG_WAIT). From then on a signal to `tr` ends the wait for
    /// the output.
    pub on_wait: fn(),
    /// The function that is called if the recorder panics in any thread. It gets the text of the panic, and whether
    /// COMMAND runs on or runs untraced.
    pub on_panic: fn(&str, bool),
    /// The functions of a watcher that sees the events while they are recorded; `None` if there is no watcher.
    pub watching: Option<Watching>,
}

/// A function that is called when a recording has begun. It gets the settings, the method of the recording, and the
/// errors by which better methods were refused.
type OnBegin = dyn Fn(&Config, Method, &[Error]) + Send + Sync;

/// The function that is called when a recording has begun, to notify the user.
#[derive(Clone)]
pub struct Notice(pub Arc<OnBegin>);

impl std::fmt::Debug for Notice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Notice")
    }
}

impl FactSettings {
    /// Whether any stacks of tasks are recorded, on a CPU or of waits.
    pub fn has_stacks(&self) -> bool {
        self.stacks.is_some() || self.off_cpu_stacks.is_some()
    }
}

/// The rules that divide a recording into parts with a file each: when a part ends, and the name of its file. At least
/// one of the limits is set.
#[derive(Clone, Copy, Debug)]
pub struct Rotation {
    /// The longest time that a part of a rotated recording covers; `None` if there is no such limit.
    pub every: Option<Duration>,
    /// The size in bytes of a part's file at which the part ends. The file then becomes a little larger, because the
    /// blocks of events that are still open at that time are written to it as well.
    pub size: Option<u64>,
    /// The function that makes the name of a part's file from the name of the output, the beginning of the part in ns
    /// since 1970, and a number if the name is already taken.
    pub name: fn(&Path, u64, Option<u32>) -> PathBuf,
}

impl Rotation {
    /// The output for a part of the recording that begins at the time `real` in ns since 1970. If a file with the name
    /// for this time exists already, for example because the clock was set back, the name gets a number.
    pub fn target(&self, output: &Target, real: u64) -> Target {
        match output {
            Target::File(path) => {
                let numbers = std::iter::once(None).chain((2..).map(Some));
                let mut names = numbers.map(|number| (self.name)(path, real, number));
                let free = names.find(|name| name.symlink_metadata().is_err());
                Target::File(free.unwrap_or_else(|| (self.name)(path, real, None)))
            }
            Target::Stdout => Target::Stdout,
        }
    }
}

/// The method of recording that the user requests (`--method`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The recorder chooses the best method that works on this machine. It chooses ptrace(2), which can change what
    /// COMMAND does, only if [`MethodSettings::may_ptrace`] is set.
    #[default]
    Auto,
    Bpf,
    /// The recording is made by BPF programs that a process with root's rights attaches.
    Sudo,
    /// The recording is made by tracing COMMAND with ptrace(2).
    Ptrace,
}

/// The choice of the tasks that a recording follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Follow {
    /// The recording follows COMMAND and its descendants.
    Command,
    /// The recording follows every task of the machine.
    All,
    /// The recording follows the processes with these ids and their descendants.
    Pids(Vec<u32>),
    /// The recording follows the tasks of a cgroup, given by its directory in the cgroup v2 file system, and
    /// their descendants.
    Cgroup(std::path::PathBuf),
}

/// The sizes in bytes of each CPU's slots and of the ring for lifecycle events, with a budget in bytes or without
/// one. The kernel requires powers of two of at least a page.
///
/// By default the CPUs share 32 MiB, with at least 256 KiB and at most 4 MiB for each CPU, and the lifecycle events get
/// 4 MiB. If a budget is given, the lifecycle events get a quarter of it. Sizes are rounded down to powers of two.
///
/// 256 KiB hold 16,384 events, which is enough for 46,000 events a second between two drains. Four recorded builds made
/// up to 7,000 events a second on a CPU. A burst of 1.2 million events a second wakes the recorder after 7 ms, and the
/// slots then have room for the events of another 7 ms. More slots make the start slower: the kernel clears a MiB in
/// 0.6 ms, so that beyond 128 CPUs each CPU adds 0.15 ms.
pub fn buffer_sizes(cpus: usize, budget: Option<u64>, page: u32) -> (u32, u32) {
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    let cpus = cpus.max(1) as u64;
    let (each, life) = match budget {
        None => ((32 * MIB / cpus).clamp(256 * KIB, 4 * MIB), 4 * MIB),
        Some(budget) => (budget / 4 * 3 / cpus, budget / 4),
    };
    let power = |bytes: u64| {
        let bytes = bytes.clamp(u64::from(page), 1 << 30);
        1u32 << bytes.ilog2()
    };
    (power(each), power(life))
}

#[cfg(test)]
mod tests {
    use super::buffer_sizes;

    #[test]
    fn slots_and_rings_share_one_budget() {
        const MIB: u32 = 1 << 20;
        assert_eq!(buffer_sizes(2, None, 4096), (4 * MIB, 4 * MIB));
        assert_eq!(buffer_sizes(64, None, 4096), (MIB / 2, 4 * MIB));
        assert_eq!(buffer_sizes(512, None, 4096), (MIB / 4, 4 * MIB));
        assert_eq!(buffer_sizes(2, Some(16 << 20), 4096), (4 * MIB, 4 * MIB));
        assert_eq!(buffer_sizes(2, Some(0), 4096), (4096, 4096));
    }
}
