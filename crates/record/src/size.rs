//! Enforces the limit of the trace file's size (`--max-size`): decides when a recording ends so that its file stays
//! below the limit.

use std::sync::atomic::{AtomicU64, Ordering};

/// The unit of [`Size::rate`], which is the number of bytes in the file for each 65,536 bytes of events in memory.
const RATE_UNIT: u64 = 1 << 16;
/// The rate that is assumed for a trace file whose rate is not known yet: 4 bytes in the file for each event of 16
/// bytes in memory.
const UNKNOWN_RATE: u64 = RATE_UNIT / 4;
/// The number of bytes that are reserved for the end of the trace file: the summary, the second copy of the metadata
/// and the trailer.
const END: u64 = 16 << 10;
/// The room for the index of the trace file is the file's size divided by this number. The index has ten bytes for each
/// frame.
const INDEX: u64 = 1024;

/// The size of the trace file so far, and the events on their way to it. The recording thread notes the events that
/// it sends, and the writing thread the flushes.
#[derive(Debug, Default)]
pub struct Size {
    /// The number of bytes that the trace file had at its last flush.
    written: AtomicU64,
    /// The number of bytes that each [`RATE_UNIT`] bytes of events in memory take in the file; 0 if it is not known
    /// yet.
    rate: AtomicU64,
    /// The number of bytes of memory that the events since the last flush take. These events are not yet part of
    /// `written`.
    open: AtomicU64,
    /// The number of bytes of memory that the events up to the last flush took. These events are part of `written`.
    closed: AtomicU64,
}

impl Size {
    /// The number of bytes that the trace file had at its last flush.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Notes that the writing thread gets events that have `memory` bytes in memory.
    pub fn sent(&self, memory: usize) {
        self.open.fetch_add(memory as u64, Ordering::Relaxed);
    }

    /// Notes that the writing thread was too busy to take events that have `memory` bytes in memory, after they were
    /// counted as sent.
    pub fn unsent(&self, memory: usize) {
        self.open.fetch_sub(memory as u64, Ordering::Relaxed);
    }

    /// Notes a flush of the trace file. The flush has closed all blocks, so the file now has `bytes` bytes. The events
    /// since the previous flush took `memory` bytes in memory.
    pub fn flushed(&self, bytes: u64, memory: usize) {
        let memory = memory as u64;
        let before = self.written.swap(bytes, Ordering::Relaxed);
        self.open.fetch_sub(memory, Ordering::Relaxed);
        let all = self.closed.fetch_add(memory, Ordering::Relaxed) + memory;
        // The events since the last flush can shrink less than the earlier events when they are written. So two rates
        // of bytes in the file to bytes in memory are computed, for all events and for the events since the last flush,
        // and the higher rate is kept.
        let rate = rate(bytes, all).max(rate(bytes - before.min(bytes), memory));
        self.rate.store(rate, Ordering::Relaxed);
    }

    /// Whether it is known from a flush by how much events shrink when they are packed.
    pub fn is_known(&self) -> bool {
        self.rate.load(Ordering::Relaxed) > 0
    }

    /// The number of bytes that the trace file will probably have when all events so far are in it, including events
    /// with `memory` bytes that the writing thread was not given yet.
    pub fn expected(&self, memory: usize) -> u64 {
        let open = self.open.load(Ordering::Relaxed) + memory as u64;
        let rate = match self.rate.load(Ordering::Relaxed) {
            0 => UNKNOWN_RATE,
            rate => rate,
        };
        self.written() + open.saturating_mul(rate) / RATE_UNIT
    }
}

/// The rate at which events shrink when they are written: the number of bytes in the file for each [`RATE_UNIT`] bytes
/// in memory. So far, `memory` bytes of events have taken `bytes` bytes in the file. The result is 0 if there were too
/// few events to know the rate.
fn rate(bytes: u64, memory: u64) -> u64 {
    const ENOUGH: u64 = 64 << 10;
    if memory < ENOUGH {
        return 0;
    }
    (bytes.saturating_mul(RATE_UNIT) / memory).clamp(1, RATE_UNIT)
}

/// Decides when a recording ends because its file reaches the limit of its size.
#[derive(Debug)]
pub struct SizeLimit {
    bytes: u64,
    /// The size of the trace file in bytes that was expected at the last check.
    before: u64,
}

impl SizeLimit {
    pub fn new(bytes: u64) -> SizeLimit {
        SizeLimit { bytes, before: 0 }
    }

    /// Whether the recording has to end now, because the file might become too long before the next check. The file is
    /// assumed to grow by the same number of bytes as since the last check, and the file's end needs room as well.
    /// `expected` is the size in bytes that the file will probably have when all events so far are written.
    pub fn is_reached(&mut self, expected: u64) -> bool {
        let growth = expected.saturating_sub(self.before);
        self.before = expected;
        let end = END + expected / INDEX;
        expected.saturating_add(growth).saturating_add(end) >= self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_leaves_room_for_the_next_events_and_the_end() {
        let mut limit = SizeLimit::new(1 << 20);
        assert!(!limit.is_reached(300_000));
        assert!(!limit.is_reached(600_000));
        // Since the last check the file has grown by 230,000 bytes. If it grew by the same number again, the file with
        // its end would be larger than the limit.
        assert!(limit.is_reached(830_000));
        // With few events between two checks, the file may come closer to the limit.
        let mut limit = SizeLimit {
            bytes: 1 << 20,
            before: 1_020_000,
        };
        assert!(!limit.is_reached(1_025_000));
        assert!(limit.is_reached(1_031_000));
    }

    #[test]
    fn events_on_their_way_count() {
        let size = Size::default();
        size.sent(160_000);
        assert!(!size.is_known());
        assert_eq!(size.expected(160_000), 80_000, "4 bytes for 16 are assumed");
        size.flushed(10_000, 160_000);
        assert!(size.is_known());
        let sixteenth = 100_000 / 16;
        assert_eq!(size.expected(100_000), 10_000 + sixteenth);
        // The events of the second flush take twice as many bytes in the file as those of the first, so the higher
        // rate is used.
        size.sent(160_000);
        size.flushed(30_000, 160_000);
        let eighth = 100_000 / 8;
        assert_eq!(
            (size.written(), size.expected(100_000)),
            (30_000, 30_000 + eighth)
        );
    }
}
