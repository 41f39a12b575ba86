//! Finds out whether any of COMMAND's processes is active: whether one has begun, used CPU time, executed a program,
//! ended, or read or written bytes.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::waits;
use crate::proc::{self, Id};

/// The number of bytes that a process may read and write between two examinations and still count as idle. Some bytes
/// are allowed because a timer may wake the event loop of an idle program through an eventfd, which moves 8 bytes each
/// time.
const WAKE_BYTES: u64 = 16;
/// The CPU time that all processes of COMMAND may use together while they still count as inactive, besides 1 % of the
/// time for which they have been inactive.
const SLACK: Duration = Duration::from_millis(50);

/// The counters of a process of COMMAND, as the guard read them in one examination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// The time at which the process began, and the address of the process's arguments, which an exec changes.
    program: (u64, u64),
    /// The CPU time of the examined process in nanoseconds.
    cpu: u64,
    /// The number of bytes that the process has read and written. If the kernel hides that number, each of the
    /// process's slices of CPU time counts as 17 bytes.
    bytes: u64,
    /// The number of bytes that the process's TCP connections have received and sent. It is `None` while other
    /// activity is seen, because reading it takes several system calls for each descriptor.
    connections: Option<u64>,
}

/// Measures for how long all of COMMAND's processes have been inactive.
pub struct Activity {
    last: HashMap<Id, Seen>,
    /// The number of time slices of each thread, and the time at which the guard last saw that number change.
    threads: HashMap<Id, (u64, Instant)>,
    looked: Instant,
    every: Duration,
    quiet: Duration,
    /// The CPU time that COMMAND's processes have used since they count as inactive.
    used: Duration,
}

impl Activity {
    pub fn new(now: Instant, every: Duration) -> Activity {
        Activity {
            last: HashMap::new(),
            threads: HashMap::new(),
            looked: now,
            every,
            quiet: Duration::ZERO,
            used: Duration::ZERO,
        }
    }

    /// The time for which COMMAND's processes have not been active.
    pub fn quiet(&self) -> Duration {
        self.quiet
    }

    /// The time since the guard last saw that this thread had run.
    pub fn since(&self, thread: Id) -> Duration {
        let changed = self.threads.get(&thread);
        changed.map_or(Duration::ZERO, |(_, at)| at.elapsed())
    }

    /// Examines whether these processes of COMMAND have been active between the previous examination and the time
    /// `now`. `root` is COMMAND's own process; while it is stopped, the time does not count.
    pub fn look(&mut self, now: Instant, root: Id, processes: &[Id]) {
        let mut threads = HashMap::new();
        let mut seen = HashMap::new();
        for id in processes {
            if let Some(process) = self.process(*id, now, &mut threads) {
                seen.insert(*id, process);
            }
        }
        self.threads = threads;
        let last = std::mem::replace(&mut self.last, seen);
        // If this examination is late because `tr` was stopped, only two intervals count: `tr` has not watched COMMAND
        // in the rest of the time.
        let elapsed = (now - self.looked).min(self.every * 2);
        self.looked = now;
        if proc::stat(root).is_some_and(|stat| stat.state == b'T') {
            return;
        }
        let cpu: u64 = self
            .last
            .iter()
            .map(|(id, seen)| {
                let before = last.get(id).map_or(seen.cpu, |before| before.cpu);
                seen.cpu.saturating_sub(before)
            })
            .sum();
        let cpu = Duration::from_nanos(cpu);
        self.used += cpu;
        self.quiet += elapsed;
        let is_busy = cpu > elapsed / 5 || self.used > SLACK + self.quiet / 100;
        if is_busy || self.has_moved(&last) {
            self.quiet = Duration::ZERO;
            self.used = Duration::ZERO;
        }
    }

    /// Whether a process of COMMAND began, ended, executed a program or moved bytes since the previous examination.
    /// `last` has the counters that were read then.
    fn has_moved(&self, last: &HashMap<Id, Seen>) -> bool {
        if self.last.len() != last.len() {
            return true;
        }
        self.last.iter().any(|(id, seen)| {
            last.get(id).is_none_or(|before| {
                seen.program != before.program
                    || seen.bytes.saturating_sub(before.bytes) > WAKE_BYTES
                    || before.connections.is_some() && seen.connections != before.connections
            })
        })
    }

    fn process(
        &self,
        id: Id,
        now: Instant,
        threads: &mut HashMap<Id, (u64, Instant)>,
    ) -> Option<Seen> {
        let stat = proc::stat(id)?;
        let (mut cpu, mut all_slices) = (0u64, 0u64);
        for thread in proc::threads(id) {
            let Some((run, _, slices)) = proc::totals(thread) else {
                continue;
            };
            cpu = cpu.saturating_add(run);
            all_slices = all_slices.saturating_add(slices);
            let before = self.threads.get(&thread);
            let since = before.filter(|(before, _)| *before == slices);
            threads.insert(thread, (slices, since.map_or(now, |(_, at)| *at)));
        }
        // The kernel hides the number of bytes that the process has read and written. So each of its slices of CPU time
        // counts as more bytes than an idle process may move.
        let hidden = all_slices.saturating_mul(WAKE_BYTES + 1);
        Some(Seen {
            program: (stat.start, stat.arguments),
            cpu,
            bytes: proc::moved_bytes(id).unwrap_or(hidden),
            connections: (!self.quiet.is_zero()).then(|| waits::connection_bytes(id)),
        })
    }
}
