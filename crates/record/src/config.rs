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

/// All settings of a recording.
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
    /// The version of `tr` that records.
    pub version: String,
}

/// The settings of the file of the trace.
#[derive(Clone, Debug)]
pub struct TraceFile {
    pub target: Target,
    /// The kind of files that the trace may replace; `None` stands for any file.
    pub replaces: Option<tr_output::Kind>,
    /// Whether a trace that is replaced is kept, as NAME.old.
    pub keeps: bool,
    /// The rules by which a light recording is divided into several files; `None` if it is not.
    pub rotation: Option<Rotation>,
}

/// The settings of the way to record.
#[derive(Clone, Copy, Debug)]
pub struct MethodSettings {
    pub choice: Choice,
    /// Whether `auto` may choose ptrace(2), which can change what COMMAND does.
    pub may_ptrace: bool,
}

/// The settings of the tasks and CPUs that are recorded.
#[derive(Clone, Debug)]
pub struct Scope {
    pub follow: Follow,
    /// The recorded CPUs; `None` stands for all CPUs.
    pub cpus: Option<Vec<u16>>,
    pub containers: Containers,
    /// Whether to follow the servers that answer followed tasks.
    pub servers: bool,
}

/// The settings of the facts that are recorded.
#[derive(Clone, Copy, Debug)]
pub struct FactSettings {
    /// Whether to record only forks, execs and ends, and the totals of CPU time once a second.
    pub light: bool,
    /// Whether to sum up the system calls of processes.
    pub syscalls: bool,
    /// How often a second the stacks of tasks on each CPU are sampled; `None` if they are not.
    pub stacks: Option<u32>,
    /// The shortest wait whose stack is recorded; `None` if no stacks of waits are recorded.
    pub off_cpu_stacks: Option<Duration>,
    /// Whether to search for the functions of the recorded stacks after COMMAND's end.
    pub symbols: bool,
    /// The longest argument vector that is recorded, in bytes.
    pub argv_limit: u32,
    /// The functions that find the scripts whose texts are recorded; `None` if no scripts are recorded.
    pub scripts: Option<ScriptFinder>,
}

/// The settings of the masking of secrets and addresses.
#[derive(Clone, Debug)]
pub struct MaskSettings {
    /// The rules that mask secrets in command lines.
    pub redactor: Redactor,
    /// Whether to mask network addresses.
    pub addresses: bool,
}

/// The settings of COMMAND and of how it runs.
#[derive(Clone, Debug)]
pub struct CommandSettings {
    /// COMMAND and its arguments; may be empty unless `follow` is `Command`.
    pub argv: Vec<OsString>,
    /// The user that runs COMMAND, by name or number; `None` stands for the user of `tr`.
    pub user: Option<String>,
    /// The state that COMMAND inherits.
    pub inherited: Inherited,
    /// Whether to record until COMMAND's last descendant ends, and not only until COMMAND ends.
    pub wait_all: bool,
    /// Whether to run COMMAND without a recording if the recording cannot begin, or if the recorder panics before that.
    pub best_effort: bool,
}

/// The limits of a recording.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest time that is recorded.
    pub duration: Option<Duration>,
    /// The largest size of the file in bytes.
    pub size: Option<u64>,
    /// The memory of all rings in bytes; `None` if the number of CPUs decides it.
    pub buffer: Option<u64>,
}

/// The functions that the recorder calls during a recording to notify the user.
#[derive(Clone, Debug)]
pub struct Notices {
    /// The function that is called once when the recording has begun, before COMMAND runs.
    pub on_begin: Notice,
    /// The function that is called once if the output has not taken the end of the trace
    /// [`LONG`](crate::LONG) after COMMAND's end. From then on a signal ends the wait.
    pub on_wait: fn(),
    /// The function that is called if the recorder panics, from any thread, with the text of the panic, and
    /// whether COMMAND runs on or runs untraced.
    pub on_panic: fn(&str, bool),
    /// The watcher that receives the events while they are recorded.
    pub watching: Option<Watching>,
}

/// A function that is called when a recording has begun, with the method of the recording and the refusals of
/// better methods.
type OnBegin = dyn Fn(&Config, Method, &[Error]) + Send + Sync;

/// The function that is called when a recording has begun.
#[derive(Clone)]
pub struct Notice(pub Arc<OnBegin>);

impl std::fmt::Debug for Notice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Notice")
    }
}

impl FactSettings {
    /// Whether any stacks are recorded.
    pub fn has_stacks(&self) -> bool {
        self.stacks.is_some() || self.off_cpu_stacks.is_some()
    }
}

/// The rules that divide a recording into parts with a file each: when a part ends, and the name of the next
/// file. At least one of the limits is set.
#[derive(Clone, Copy, Debug)]
pub struct Rotation {
    /// The longest time that a part records.
    pub every: Option<Duration>,
    /// The size in bytes of a part's file at which the part ends. The blocks that are open then are added to it.
    pub size: Option<u64>,
    /// The function that makes the name of a part's file, from the name of the output, the beginning of the
    /// part in ns since 1970, and a number if the name is already taken.
    pub name: fn(&Path, u64, Option<u32>) -> PathBuf,
}

impl Rotation {
    /// The file of a part that begins at the time `real` in ns since 1970. It replaces no other part, which
    /// may have begun at the same time if the clock was set back.
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

/// The requested way to record (`--method`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The recorder chooses the best method that works here and does not change what COMMAND does.
    #[default]
    Auto,
    Bpf,
    /// BPF programs record that a process with root's rights attaches.
    Sudo,
    /// The recorder traces by ptrace(2).
    Ptrace,
}

/// The tasks that a recording follows.
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

/// The sizes in bytes of each CPU's ring and of the ring for lifecycle events, with a budget in bytes or
/// without one. The kernel requires powers of two.
///
/// By default the CPUs share 32 MiB, with at least 256 KiB and at most 4 MiB for each CPU, and the lifecycle
/// events get 4 MiB. If a budget is given, the lifecycle events get a quarter of it.
///
/// 256 KiB hold 16,384 events, which is enough for 46,000 events a second between two drains. Four recorded
/// builds made up to 7,000 events a second on a CPU. A burst of 1.2 million events a second wakes the reader
/// after 7 ms, when there is room for another 7 ms. Larger rings make the start slower: the kernel clears a
/// MiB in 0.6 ms, so that beyond 128 CPUs each CPU adds 0.15 ms.
pub fn ring_sizes(cpus: usize, budget: Option<u64>, page: u32) -> (u32, u32) {
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
    use super::ring_sizes;

    #[test]
    fn rings_share_one_budget() {
        const MIB: u32 = 1 << 20;
        assert_eq!(ring_sizes(2, None, 4096), (4 * MIB, 4 * MIB));
        assert_eq!(ring_sizes(64, None, 4096), (MIB / 2, 4 * MIB));
        assert_eq!(ring_sizes(512, None, 4096), (MIB / 4, 4 * MIB));
        assert_eq!(ring_sizes(2, Some(16 << 20), 4096), (4 * MIB, 4 * MIB));
        assert_eq!(ring_sizes(2, Some(0), 4096), (4096, 4096));
    }
}
