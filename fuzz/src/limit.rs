//! Limits the CPU time of an input. The fuzzer's own limit counts wall time, which means nothing on a busy machine.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Once;
use std::time::Duration;

/// The most CPU time, in ticks of 10 ms, that an input of 100 KB (the longest one) may take.
const MOST: u64 = 200;

/// The CPU time in ticks that this process had used at the beginning of the input, plus 1. The value is 0 between two
/// inputs.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// Runs a fuzz target. If the target takes too long, the process is aborted, and the fuzzer keeps the input.
pub fn within(target: impl FnOnce()) {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| drop(std::thread::spawn(watch)));
    BEGUN.store(cpu_time() + 1, Ordering::Relaxed);
    target();
    BEGUN.store(0, Ordering::Relaxed);
}

fn watch() {
    loop {
        std::thread::sleep(Duration::from_millis(50));
        let begun = BEGUN.load(Ordering::Relaxed);
        if begun > 0 && cpu_time().saturating_sub(begun) > MOST {
            eprintln!("the input took more than {MOST} ticks of CPU time");
            std::process::abort();
        }
    }
}

/// The CPU time of all threads in ticks, from `/proc/self/stat`.
fn cpu_time() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The process's name stands in parentheses and may contain blanks, so the fields are counted from the last
    // parenthesis.
    let fields = stat.rsplit(')').next().unwrap_or_default().split(' ');
    let times = fields
        .skip(12)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok());
    times.sum()
}
