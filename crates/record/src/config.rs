//! What is asked of a recording.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use crate::output::Target;
use crate::redact::Redactor;

/// What to record, and how.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the trace goes.
    pub output: Target,
    /// What is followed.
    pub follow: Follow,
    /// COMMAND and its arguments; may be empty unless `follow` is `Command`.
    pub command: Vec<OsString>,
    /// Only these CPUs; `None` = all.
    pub cpus: Option<Vec<u16>>,
    /// Stop recording after this long.
    pub duration: Option<Duration>,
    /// Ring memory in all, in bytes; `None` = by the number of CPUs.
    pub buffer: Option<u64>,
    /// Longest argv to keep, in bytes.
    pub argv_limit: u32,
    /// Masks secrets in command lines.
    pub redactor: Redactor,
    /// After COMMAND's end, go on until the last of its descendants has ended.
    pub wait_all: bool,
    /// Run COMMAND as this user.
    pub user: Option<String>,
    /// SIGPIPE was ignored when `tr` was started.
    pub sigpipe_ignored: bool,
    /// Standard input, output, error were closed when `tr` was started.
    pub closed_streams: [bool; 3],
    /// Called once when COMMAND has ended and the output still has not taken the end
    /// of the trace after [`LONG`](crate::LONG); a signal ends the waiting.
    pub on_wait: fn(),
    /// When `tr` was started.
    pub started: Instant,
    /// The version of `tr`.
    pub version: String,
}

/// What is followed.
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

/// Ring sizes in bytes: of each CPU, of the lifecycle events.
///
/// By default 32 MiB are shared by the CPUs, at least 256 KiB and at most
/// 4 MiB each, and 4 MiB are for lifecycle events. Of a given budget a quarter
/// is for lifecycle events. Sizes are powers of two, as the kernel wants them.
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
