//! The memory and the time that an analysis may take: `--max-memory`, `--max-time`.

use std::time::{Duration, Instant};

use tr_report::units;

use crate::args;

/// The options of every subcommand that analyzes.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Budget {
    /// Stop reading when the analysis takes this much memory; the rest of the recording is
    /// unknown then [default: a quarter of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = args::size)]
    max_memory: Option<u64>,
    /// Stop reading after this long; the rest of the recording is unknown then
    #[arg(long, value_name = "DUR", value_parser = args::duration)]
    max_time: Option<Duration>,
}

/// A budget in use.
pub struct Watch {
    memory: Option<u64>,
    time: Option<Duration>,
    begun: Instant,
}

impl Budget {
    /// The analysis begins.
    pub fn begin(self) -> Watch {
        Watch {
            memory: self.max_memory.or_else(|| Some(machine()? / 4)),
            time: self.max_time,
            begun: Instant::now(),
        }
    }
}

impl Watch {
    /// The reason to stop. The model takes up to a third of the memory once more, so reading
    /// stops at three quarters.
    pub fn exceeded(&self) -> Option<String> {
        if let Some(most) = self.time.filter(|most| self.begun.elapsed() >= *most) {
            return Some(format!("--max-time {most:?} was reached"));
        }
        let most = self.memory?;
        (own()? >= most / 4 * 3).then(|| format!("--max-memory {} was reached", units::bytes(most)))
    }
}

/// The machine's memory in bytes.
fn machine() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = info
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = total.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// This process's memory in bytes, without mapped files: the trace is one.
fn own() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = pages.split(' ').skip(1).map(str::parse::<u64>);
    let (resident, shared) = (pages.next()?.ok()?, pages.next()?.ok()?);
    let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok()??;
    resident
        .saturating_sub(shared)
        .checked_mul(u64::try_from(page).ok()?)
}
