//! Defines the terms that all outputs use. There is one term for each fact, as far as possible the one that perf and
//! the kernel use. `docs/glossary.md` explains the terms. A new term does not change the keys of JSON and CSV.

/// The term for the state of a task from a switch-in to the next switch-out.
pub const ON_CPU: &str = "on CPU";
/// The term for a runnable task's time off CPU. A column and a state have this name.
pub const RUN_QUEUE: &str = "run queue";
/// The term for the time in a run queue, as a word in a sentence.
pub const RUN_QUEUE_WAIT: &str = "run-queue wait";
/// The term for the state off CPU in an interruptible sleep.
pub const SLEEP: &str = "sleep";
/// The term for the state off CPU in an uninterruptible sleep.
pub const BLOCKED: &str = "blocked";
/// The term for the state of a sleeping or blocked task where the kernel's totals do not distinguish the two.
pub const SLEEP_OR_BLOCKED: &str = "sleep or blocked";
/// The term for the time from a switch-out to the next switch-in.
pub const OFF_CPU: &str = "off CPU";
/// The term for time whose events are lost or were not recorded.
pub const UNKNOWN: &str = "unknown";
/// The terms for the states of a thread, in the order in which pages draw them.
pub const STATES: [&str; 5] = [ON_CPU, RUN_QUEUE, BLOCKED, SLEEP, UNKNOWN];
/// The term for waits for disks, files and pages of files.
pub const IO_WAIT: &str = "I/O wait";
/// The term for the time of a step that is neither on CPU nor in a run queue.
pub const OTHER_WAITS: &str = "other waits";
/// The term for the mean number of CPUs that the recorded tasks ran on at once.
pub const UTILIZED: &str = "CPUs utilized";
/// The term for the kernel's figure of pressure on CPUs (PSI).
pub const STALLED_CPU: &str = "some tasks stalled on CPU";
/// The term for the kernel's figure of pressure on memory (PSI).
pub const STALLED_MEMORY: &str = "some tasks stalled on memory";
/// The term for the kernel's figure of pressure on disks (PSI).
pub const STALLED_IO: &str = "some tasks stalled on I/O";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_glossary_explains_each_term() {
        let glossary = include_str!("../../../docs/glossary.md");
        let columns = [
            ON_CPU,
            RUN_QUEUE,
            SLEEP,
            BLOCKED,
            SLEEP_OR_BLOCKED,
            OFF_CPU,
            UNKNOWN,
            IO_WAIT,
            OTHER_WAITS,
            UTILIZED,
        ];
        for term in columns {
            assert!(glossary.contains(&format!("\n| {term} |")), "{term}");
        }
        for term in [RUN_QUEUE_WAIT, STALLED_CPU, STALLED_MEMORY, STALLED_IO] {
            assert!(glossary.contains(term), "{term}");
        }
    }
}
