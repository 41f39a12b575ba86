//! Limits the memory and the time that a command may take: `--max-memory`, `--max-time`. Reading stops at
//! half of either, and the facts that are known by then are reported, if the model and the reports need no
//! more than the rest. A forged file may make them need more: at the whole the command ends without a report.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tr_output::cgroups;
use tr_text::units;

use crate::{args, limits};

/// The options of every subcommand that analyzes.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Budget {
    /// Use at most this much memory: at half of it, reading stops, and the rest of the
    /// recording is unknown; at the limit, the command ends. What needs the order of more events
    /// than fit is left out [default: half of the machine's or of the cgroup's limit]
    #[arg(long, value_name = "SIZE", value_parser = args::size)]
    max_memory: Option<u64>,
    /// Run at most this long: after half of it, reading stops, and the rest of the
    /// recording is unknown; at the limit, the command ends [default: 1h; dump, recover, redact and symbolize: none]
    #[arg(long, value_name = "DUR", value_parser = args::duration)]
    max_time: Option<Duration>,
}

/// The longest time that a command may take, unless the user gives another.
const TIME: Duration = Duration::from_secs(3600);
/// The memory in bytes and the time that a report of the smallest part of a recording may take, whatever
/// limits the user gives.
const LEAST: (u64, Duration) = (128 << 20, Duration::from_secs(5));
/// The time below which a limit means that as little as possible is read: the report gets [`LEAST`].
const SHORT: Duration = Duration::from_secs(1);

/// The limits of one command while it reads a recording.
pub struct Watch {
    memory: Option<u64>,
    /// The time after which reading stops, and the time limit of the whole command.
    time: Option<(Duration, Duration)>,
    begun: Instant,
}

impl Budget {
    /// Limits the whole command from now on. A command that streams a recording to its reader has no time
    /// limit unless the user gives one.
    pub fn hold(self, streams: bool) {
        let memory = self.memory().map(|given| {
            let most = given.max(LEAST.0);
            let limit = format!("--max-memory {}", units::bytes(given));
            (most, limit + &raised(most > given, units::bytes(most)))
        });
        let time = self.max_time.or((!streams).then_some(TIME));
        let time = time.map(|given| {
            let most = if given < SHORT { LEAST.1 } else { given };
            let limit = format!("--max-time {given:?}");
            (most, limit + &raised(most > given, format!("{most:?}")))
        });
        // The pool of rayon, one of --threads, and some.
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        limits::hold(memory, time, 2 * threads as u64 + 4);
    }

    /// The largest memory of the command in bytes, if a limit is known.
    pub fn memory(self) -> Option<u64> {
        self.max_memory.or(half())
    }

    /// Begins to measure for the analysis of one of `files` recordings.
    pub fn begin(self, files: usize) -> Watch {
        let files = u32::try_from(files).unwrap_or(u32::MAX).max(1);
        Watch {
            memory: self.memory(),
            time: self.max_time.map(|most| (most / 2 / files, most)),
            begun: Instant::now(),
        }
    }
}

impl Watch {
    /// The reason to stop reading, if half of a limit is used up. The rest is for the model, which took a
    /// third of the memory once more for real builds, and the reports. Neither looks at the budget again: a
    /// file that makes a report take more than the rest ends the command.
    pub fn exceeded(&self) -> Option<String> {
        let time = self.time.filter(|(part, _)| self.begun.elapsed() >= *part);
        if let Some((_, most)) = time {
            return Some(format!("reading's part of --max-time {most:?} was reached"));
        }
        let most = self.memory?;
        let reached = || {
            let most = units::bytes(most);
            format!("reading's part of --max-memory {most} was reached")
        };
        (limits::own()? >= most / 2).then(reached)
    }
}

/// The words for a limit that was raised above the one that the user gave; empty if `is` is false.
fn raised(is: bool, most: String) -> String {
    if is {
        format!(" ({most}, the least that a report has)")
    } else {
        String::new()
    }
}

/// Half of the memory that this process can have, in bytes. The first call determines it, which
/// [`Budget::hold`] does before the process gives up access to most files.
pub fn half() -> Option<u64> {
    static HALF: OnceLock<Option<u64>> = OnceLock::new();
    let machine = || Some(nix::sys::sysinfo::sysinfo().ok()?.ram_total());
    let least = || machine().into_iter().chain(cgroups::memory_limit()).min();
    *HALF.get_or_init(|| Some(least()? / 2))
}
