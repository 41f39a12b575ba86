//! The CPU time of the calling thread, for tests of how much work something is. Other programs on the machine do not
//! change it, unlike the time on the clock.

use std::time::Duration;

/// The time that the calling thread has been on a CPU so far, by `/proc/thread-self/schedstat` (Documentation/scheduler/sched-stats.rst).
///
/// # Panics
/// The kernel has no such file, or the file does not begin with a number.
#[allow(clippy::unwrap_used)] // A test's helper.
pub fn of_thread() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let on_cpu = text.split_whitespace().next().unwrap();
    Duration::from_nanos(on_cpu.parse().unwrap())
}
