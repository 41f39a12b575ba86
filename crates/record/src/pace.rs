//! Decides when the machine's counters and the sums of its disks are sampled.
//!
//! Samples may only take a fixed part of the file, and all samples are about equally large. So the more slowly a file
//! grows, the rarer are its samples. The counters are totals: with fewer samples no time gets lost, but it is less
//! precisely known when the time was spent.

use std::time::{Duration, Instant};

/// The shortest interval between two samples of the machine's counters. Samples are taken when the source of events is
/// drained.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);
/// The longest interval between two samples of the machine's counters, however small the trace file is.
const LONGEST_INTERVAL: Duration = Duration::from_secs(30);
/// The approximate size that an event of a sample (for the counters or for a disk) takes in the file, in bytes: 71 to
/// 92 in four builds. Most of these sizes were measured while other programs used the disk as well.
const EVENT: u64 = 95;
/// The samples of the machine's counters may take the trace file's size divided by this number, which is 2.5 %. Events
/// about the disks that tasks wait for take 0.4 to 0.7 % more in a build, so that all facts about the machine take
/// about 3 %.
const FILE_PART: u64 = 40;

/// Decides when the next sample of the machine's counters is due.
#[derive(Debug)]
pub struct Pace {
    /// The next time at which the recorder checks whether a sample of the machine's counters is due, by the clock and
    /// the size of the file.
    next: Instant,
    last: Instant,
    /// The approximate number of bytes that all samples of the machine's counters take in the trace file so far.
    spent: u64,
    /// The approximate number of bytes that the last sample of the machine's counters took in the trace file.
    cost: u64,
}

impl Pace {
    /// The pace of samples of the machine's counters in a recording that begins at `now` with a sample. Another sample
    /// is taken at the end of the recording, and its size is counted as used from the start.
    pub fn new(now: Instant) -> Pace {
        Pace {
            next: now + SHORTEST_INTERVAL,
            last: now,
            spent: 2 * EVENT,
            cost: EVENT,
        }
    }

    /// Whether a second has passed since this function last returned true. Some work of the recorder is due each
    /// second.
    pub fn is_second(&mut self, now: Instant) -> bool {
        let is = now >= self.next;
        if is {
            self.next = now + SHORTEST_INTERVAL;
        }
        is
    }

    /// Whether a sample of the machine's counters is due, if the trace file has this size in bytes.
    pub fn is_due(&self, now: Instant, file: u64) -> bool {
        self.spent + self.cost <= file / FILE_PART
            || now.duration_since(self.last) >= LONGEST_INTERVAL
    }

    /// Notes that a sample of the machine's counters was taken at the time `now` and that it has this number of events.
    pub fn taken(&mut self, now: Instant, events: usize) {
        self.cost = EVENT.saturating_mul(events as u64);
        self.spent = self.spent.saturating_add(self.cost);
        self.last = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of samples of the machine's counters in a recording of this many seconds whose file grows by this
    /// many bytes a second. Each sample has three events.
    fn samples(seconds: u64, bytes: u64) -> u64 {
        let begin = Instant::now();
        let mut pace = Pace::new(begin);
        let mut count = 0;
        for drain in 1..=seconds * 3 {
            let now = begin + Duration::from_millis(drain * 350);
            if pace.is_second(now) && pace.is_due(now, bytes * drain / 3) {
                pace.taken(now, 3);
                count += 1;
            }
        }
        count
    }

    #[test]
    fn samples_have_their_part_of_the_file() {
        // For a large file the machine's counters are sampled each second, except in the first one.
        assert!((58..=60).contains(&samples(60, 100_000)));
        // The file grows to 120 kB, of which samples of the machine's counters may take 2.5 %, which is 3,000 bytes.
        // The samples at the start and at the end are included.
        assert!((9..=11).contains(&samples(60, 2000)));
        // For a tiny file the machine's counters are sampled only every 30 s, which is the longest interval.
        assert!((1..=2).contains(&samples(60, 10)));
        assert_eq!(samples(20, 10), 0);
    }
}
