//! Limits the memory and the time that a command may take: `--max-memory`, `--max-time`. At half of either limit, `tr`
//! stops reading the recording and reports what it knows by then. The other half is for the model of the build and for
//! the reports. A forged file can make the model or the reports exceed the whole limit: then the command ends without a
//! report.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tr_output::cgroups;
use tr_text::units;

use crate::{args, limits};

/// The options `--max-memory` and `--max-time` of every subcommand that analyzes a recording.
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

/// The longest time that a command may run, unless the user gives `--max-time`.
const TIME: Duration = Duration::from_secs(3600);
/// The memory in bytes that a command always gets, and the time that it gets if `--max-time` is less than
/// [`SHORT_TIME`], because a report about the smallest part of a recording needs as much.
const LEAST_BUDGET: (u64, Duration) = (128 << 20, Duration::from_secs(5));
/// The shortest sensible value of `--max-time`. If the user gives less, `tr` reads as little of the recording as
/// possible.
const SHORT_TIME: Duration = Duration::from_secs(1);

/// The limits of memory and time of one command, which are checked while it reads a recording.
pub struct Watch {
    memory: Option<u64>,
    /// The time after which the command stops reading the recording, and the time after which the whole command
    /// ends.
    time: Option<(Duration, Duration)>,
    begun: Instant,
}

impl Budget {
    /// Sets the limits of memory and time for the whole process. A command that streams a recording to its reader
    /// has no time limit unless the user gives one.
    pub fn hold(self, streams: bool) {
        let memory = self.memory().map(|given| {
            let most = given.max(LEAST_BUDGET.0);
            let limit = format!("--max-memory {}", units::bytes(given));
            (most, limit + &raised(most > given, units::bytes(most)))
        });
        let time = self.max_time.or((!streams).then_some(TIME));
        let time = time.map(|given| {
            let most = if given < SHORT_TIME {
                LEAST_BUDGET.1
            } else {
                given
            };
            let limit = format!("--max-time {given:?}");
            (most, limit + &raised(most > given, format!("{most:?}")))
        });
        // An estimate of the number of threads: one for each CPU in rayon's pool, as many again because of
        // `--threads`, and 4 others.
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        limits::hold(memory, time, 2 * threads as u64 + 4);
    }

    /// The largest memory in bytes that the command may use, if there is a limit.
    pub fn memory(self) -> Option<u64> {
        self.max_memory.or(half())
    }

    /// Starts the clock for the reading of one recording. The command analyzes `files` recordings, each of which
    /// gets an equal part of half of the time limit.
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
    /// The reason to stop reading the recording, if reading has used up its half of the memory or time limit. The other
    /// half is for the model of the build and for the reports: in real builds, the model needed another third of the
    /// memory. The model and the reports do not call this function: if they exceed the whole limit, the command ends.
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

/// The remark in an error message that `tr` has raised the user's limit to `most`, which every report may use: ` (128
/// MiB, the least that a report has)`. Empty if `is` is false, because the limit was not raised.
fn raised(is: bool, most: String) -> String {
    if is {
        format!(" ({most}, the least that a report has)")
    } else {
        String::new()
    }
}

/// Half of the memory in bytes of this machine, or of the process's cgroup if the limit of the cgroup is lower. The
/// first call reads the number and stores it: [`Budget::hold`] makes this call before the process gives up access to
/// most files.
pub fn half() -> Option<u64> {
    static HALF: OnceLock<Option<u64>> = OnceLock::new();
    let machine = || Some(nix::sys::sysinfo::sysinfo().ok()?.ram_total());
    let least = || machine().into_iter().chain(cgroups::memory_limit()).min();
    *HALF.get_or_init(|| Some(least()? / 2))
}
