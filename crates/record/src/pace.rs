//! Decides when the machine's counters and the sums of its disks are sampled.
//!
//! A sample has the same size in a file that grows by 1 KB a second as in one that grows by 1 MB. The samples are
//! totals, so that fewer samples do not lose any time, but only the moments at which it was spent.

use std::time::{Duration, Instant};

/// The shortest interval between two samples of the counters. Samples are taken when the source of events is
/// drained.
const LEAST: Duration = Duration::from_secs(1);
/// The longest interval between two samples of the counters, however small the file is.
const LONGEST: Duration = Duration::from_secs(30);
/// The approximate size that an event of a sample (for the counters or for a disk) takes in the file, in bytes: 71
/// to 92 in four builds. Most of it was measured while others used the disk as well.
const EVENT: u64 = 95;
/// The divisor of the file's size that gives the part which samples may take: 1/40 or 2.5 %. Together with the disks
/// of waits, which take 0.4 to 0.7 % for a build, the facts about the machine stay at 3 %.
const PART: u64 = 40;

/// Decides when the next sample of the machine's counters is due.
#[derive(Debug)]
pub struct Pace {
    /// The next time at which the recorder checks whether a sample is due, by the clock and the size of the file.
    next: Instant,
    last: Instant,
    /// The approximate number of bytes that all samples take in the file so far.
    spent: u64,
    /// The approximate number of bytes that the last sample took in the file.
    cost: u64,
}

impl Pace {
    /// The pace of samples in a recording that begins at `now` with a sample. The sample at the end of the recording
    /// is counted from the start.
    pub fn new(now: Instant) -> Pace {
        Pace {
            next: now + LEAST,
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
            self.next = now + LEAST;
        }
        is
    }

    /// Whether a sample of the machine's counters is due, if the trace file has this size in bytes.
    pub fn is_due(&self, now: Instant, file: u64) -> bool {
        self.spent + self.cost <= file / PART || now.duration_since(self.last) >= LONGEST
    }

    /// Notes that a sample was taken at the time `now` and that it has this number of events.
    pub fn taken(&mut self, now: Instant, events: usize) {
        self.cost = EVENT.saturating_mul(events as u64);
        self.spent = self.spent.saturating_add(self.cost);
        self.last = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of samples of the machine's counters that a recording of this many seconds takes, with three
    /// events each, if its file grows by this many bytes a second.
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
        // One a second, but for the first.
        assert!((58..=60).contains(&samples(60, 100_000)));
        // 2.5 % of 120 kB are 3,000 bytes, with the samples at the start and at the end.
        assert!((9..=11).contains(&samples(60, 2000)));
        // Every 30 s.
        assert!((1..=2).contains(&samples(60, 10)));
        assert_eq!(samples(20, 10), 0);
    }
}
