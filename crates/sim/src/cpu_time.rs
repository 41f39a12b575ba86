//! Measures the CPU time of the calling thread, for tests of how much work a function does. Unlike the time on the
//! clock, it does not depend on the other programs that run on the machine.

use std::time::Duration;

/// The time that the calling thread has been on a CPU so far, by `/proc/thread-self/schedstat`
/// (Documentation/scheduler/sched-stats.rst).
///
/// # Panics
/// The kernel has no such file, or the file does not begin with a number.
#[allow(clippy::unwrap_used)] // Only tests call this function.
pub fn of_thread() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let on_cpu = text.split_whitespace().next().unwrap();
    Duration::from_nanos(on_cpu.parse().unwrap())
}
