//! Where the time of a start goes.

use std::time::{Duration, Instant};

use nix::time::{clock_gettime, ClockId};

/// A part of the work.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    pub name: &'static str,
    /// How long it took.
    pub wall: Duration,
    /// CPU time of the process, all threads and the kernel's for it.
    pub cpu: Duration,
}

/// Parts of the work, in the order of their ends.
#[derive(Clone, Debug, Default)]
pub struct Phases(pub Vec<Phase>);

impl Phases {
    /// Does a part of the work.
    pub fn time<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) -> T {
        let (wall, cpu) = (Instant::now(), used());
        let done = work();
        self.0.push(Phase {
            name,
            wall: wall.elapsed(),
            cpu: used().saturating_sub(cpu),
        });
        done
    }
}

/// CPU time of this process.
fn used() -> Duration {
    let now = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID);
    now.map_or(Duration::ZERO, Duration::from)
}
