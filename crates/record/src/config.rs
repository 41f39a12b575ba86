//! The settings of a recording.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use tr_bpf::Containers;
use tr_format::meta::Method;
use tr_output::Target;
use tr_redact::Redactor;

use crate::error::Error;
use crate::inherited::Inherited;
use crate::watcher::Watching;

#[derive(Clone, Debug)]
pub struct Config {
    pub output: Target,
    /// The kind of files that the trace may replace; `None`: any.
    pub replaces: Option<tr_output::Kind>,
    /// A trace that it replaces stays as NAME.old.
    pub keeps: bool,
    pub method: Choice,
    /// `auto` may take ptrace(2), which can change what COMMAND does.
    pub may_ptrace: bool,
    pub follow: Follow,
    /// COMMAND and its arguments; may be empty unless `follow` is `Command`.
    pub command: Vec<OsString>,
    /// The recorded CPUs; `None`: all.
    pub cpus: Option<Vec<u16>>,
    /// The longest recording.
    pub duration: Option<Duration>,
    /// The memory of all rings in bytes; `None`: by the number of CPUs.
    pub buffer: Option<u64>,
    pub containers: Containers,
    /// Servers that answer followed tasks are followed.
    pub servers: bool,
    pub syscalls: bool,
    /// Sample stacks, so many times a second on each CPU.
    pub stacks: Option<u32>,
    /// Record the stacks of waits of at least this length.
    pub off_cpu_stacks: Option<Duration>,
    /// Record forks, execs and ends alone, and totals of CPU time once a second.
    pub light: bool,
    /// Divides the recording into files; of a light one alone.
    pub rotation: Option<Rotation>,
    /// Search the functions of the stacks after COMMAND's end.
    pub symbols: bool,
    pub mask_addresses: bool,
    /// The longest recorded argv in bytes.
    pub argv_limit: u32,
    /// Masks secrets in command lines.
    pub redactor: Redactor,
    /// Record until COMMAND's last descendant ends, not only COMMAND.
    pub wait_all: bool,
    /// The user that runs COMMAND, by name or number.
    pub user: Option<String>,
    /// The state that COMMAND inherits.
    pub inherited: Inherited,
    /// Called once when the recording has begun, before COMMAND runs.
    pub on_begin: Notice,
    /// Called once if the output has not taken the end of the trace [`LONG`](crate::LONG)
    /// after COMMAND's end. From then on a signal ends the wait.
    pub on_wait: fn(),
    /// COMMAND runs, untraced, if the recording cannot begin, or the recorder panics before.
    pub best_effort: bool,
    /// Called if the recorder panics, from any thread: with what the panic says, and whether COMMAND runs on or
    /// runs untraced.
    pub on_panic: fn(&str, bool),
    /// Whoever sees the events as they come.
    pub watching: Option<Watching>,
    /// The start of `tr`.
    pub started: Instant,
    pub version: String,
}

/// A function that is called when a recording has begun, with its method and the refusals of better ones.
type OnBegin = dyn Fn(&Config, Method, &[Error]) + Send + Sync;

/// The notice that a recording has begun.
#[derive(Clone)]
pub struct Notice(pub Arc<OnBegin>);

impl std::fmt::Debug for Notice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Notice")
    }
}

impl Config {
    pub fn has_stacks(&self) -> bool {
        self.stacks.is_some() || self.off_cpu_stacks.is_some()
    }
}

/// When a part ends, and how the next one is called. At least one limit is there.
#[derive(Clone, Copy, Debug)]
pub struct Rotation {
    /// The longest part.
    pub every: Option<Duration>,
    /// The size in bytes at which a part ends; the blocks that are open then come on top of it.
    pub size: Option<u64>,
    /// The file of a part: of the output's name, the part's begin in ns since 1970, and a number if that
    /// name is taken.
    pub name: fn(&Path, u64, Option<u32>) -> PathBuf,
}

impl Rotation {
    /// The file of a part that begins at `real` ns since 1970. It replaces no other, which may have
    /// begun at the same time if the clock was set back.
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

/// The way to record (`--method`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The best that works here and leaves COMMAND as it is.
    #[default]
    Auto,
    Bpf,
    /// BPF programs that a process of root's attaches.
    Sudo,
    /// ptrace(2).
    Ptrace,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Follow {
    /// COMMAND and its descendants.
    Command,
    /// Every task of the machine.
    All,
    /// These processes and their descendants.
    Pids(Vec<u32>),
    /// The tasks of this cgroup (a directory of the cgroup v2 file system) and
    /// their descendants.
    Cgroup(std::path::PathBuf),
}

/// Ring sizes in bytes: of one CPU, and of the lifecycle events. The kernel requires
/// powers of two.
///
/// By default the CPUs share 32 MiB, at least 256 KiB and at most 4 MiB each, and
/// lifecycle events get 4 MiB. Of a given budget lifecycle events get a quarter.
///
/// 256 KiB hold 16,384 events: between two drains, 46,000 a second. Four recorded builds made up to
/// 7,000 a second and CPU, and a storm of 1.2 million wakes the reader after 7 ms, with 7 ms left to
/// come. More costs at the start: the kernel clears a MiB in 0.6 ms, so that from 128 CPUs on each
/// CPU adds 0.15 ms.
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
