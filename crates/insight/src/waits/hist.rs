//! Makes histograms of durations, whose slots double in length.

use serde::Serialize;
use tr_format::event::CpuId;

use crate::views::members::Collect;

/// The distribution of the lengths of stretches of time (such as waits), in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hist {
    lengths: Vec<u64>,
    total: u64,
    /// The stretches whose start or end is not known: their number, and the sum of their known lengths in nanoseconds.
    cut: (u64, u64),
}

/// A slot of a histogram of durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Slot {
    /// The shortest duration that this slot of the histogram counts, in whole µs.
    pub from_us: u64,
    /// The longest duration that this slot of the histogram counts, in whole µs.
    pub to_us: u64,
    pub count: u64,
    pub ns: u64,
}

impl Hist {
    /// The number of durations in the histogram. Only durations with a known start and end count.
    pub fn count(&self) -> u64 {
        self.lengths.len() as u64
    }

    /// The sum of the durations with a known start and end, in nanoseconds.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The number of durations (such as waits) whose start or end is not known, and the sum in nanoseconds of the parts
    /// of these durations that are known.
    pub fn cut(&self) -> (u64, u64) {
        self.cut
    }

    /// The quantile of the durations in nanoseconds: the smallest duration such that at least `permille` thousandths of
    /// all durations are not longer (nearest rank).
    pub fn quantile(&self, permille: usize) -> Option<u64> {
        let rank = (self.lengths.len() * permille).div_ceil(1000);
        self.lengths.get(rank.max(1) - 1).copied()
    }

    /// The slots of the histogram of durations, from 0 µs up to the slot that has the longest duration. Slots double
    /// in length.
    pub fn slots(&self) -> Vec<Slot> {
        // The slots are those of bcc's print_log2_hist: 0 -> 1, 2 -> 3, 4 -> 7, …
        let place = |ns: u64| (ns / 1000).max(1).ilog2();
        let Some(last) = self.lengths.last().map(|ns| place(*ns)) else {
            return Vec::new();
        };
        let mut slots: Vec<Slot> = (0..=last)
            .map(|power| Slot {
                from_us: if power == 0 { 0 } else { 1 << power },
                to_us: (2 << power) - 1,
                count: 0,
                ns: 0,
            })
            .collect();
        for ns in &self.lengths {
            if let Some(slot) = slots.get_mut(place(*ns) as usize) {
                slot.count += 1;
                slot.ns = slot.ns.saturating_add(*ns);
            }
        }
        slots
    }
}

/// The length of a stretch of a thread's time, such as a wait in a run queue, and the CPU to which the stretch belongs.
#[derive(Clone, Copy, Debug)]
pub struct Length {
    pub ns: u64,
    /// Whether both the beginning and the end of the stretch are known, so that its length is exact.
    pub whole: bool,
    pub cpu: Option<CpuId>,
}

impl Collect<Length> for Hist {
    fn add(&mut self, length: &Length) {
        if length.whole {
            self.lengths.push(length.ns);
            self.total = self.total.saturating_add(length.ns);
        } else {
            self.cut.0 += 1;
            self.cut.1 = self.cut.1.saturating_add(length.ns);
        }
    }

    fn finish(&mut self) {
        self.lengths.sort_unstable();
    }
}
