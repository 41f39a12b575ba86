//! Drains the rings into batches, adds the recorder's own events and offers the batches
//! to the writer.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use tr_bpf::Rings;
use tr_format::event::{Ktime, LifeEvent, LifeKind};

use crate::output::Output;
use crate::rings::{Batch, Sink};
use crate::{convert, host};

/// The interval between two drains, unless a ring is half full before. A drain costs
/// some 100 µs, most of it for the wake-up.
pub const DRAIN_EVERY: Duration = Duration::from_millis(350);
/// The interval between two flushes of the file's blocks, at every second drain: a kill
/// costs less than a second of the trace.
const FLUSH_EVERY: Duration = Duration::from_millis(700);
/// The interval between two clock events.
const CLOCK_EVERY: Duration = Duration::from_secs(10);
/// Bytes of drained events that may wait for the writer. Beyond it events stay in the
/// rings, where the programs count the ones that no longer fit.
const MAX_WAITING: usize = 16 << 20;
/// The size in bytes at which a batch is offered before the next flush.
const BATCH: usize = 1 << 20;
/// The longest wait for COMMAND's last switch-out. It comes at once, or when the
/// scheduler gives a CPU to the task, whose parent has its status already: on a busy
/// machine later than 20 ms in 1 of 40 recordings.
const LAST_SWITCH: Duration = Duration::from_millis(250);

/// The rings, the events drained from them, and the writer.
pub struct Collector {
    rings: Rings<'static, Sink>,
    sink: Sink,
    /// The writer.
    pub output: Output,
    /// The recorder's own events that no batch has taken yet.
    own: Vec<LifeEvent>,
    /// All events before this time have been drained.
    drained_until: Ktime,
    next_flush: Instant,
    next_clock: Instant,
}

impl Collector {
    /// For a recording that begins at `start`; `sink` receives the rings' records.
    pub fn new(rings: Rings<'static, Sink>, sink: Sink, output: Output, start: Ktime) -> Collector {
        let now = Instant::now();
        Collector {
            rings,
            sink,
            output,
            own: Vec::new(),
            drained_until: start,
            next_flush: now + FLUSH_EVERY,
            next_clock: now + CLOCK_EVERY,
        }
    }

    fn has_room(&self) -> bool {
        self.sink.bytes() < MAX_WAITING
    }

    /// Readable when a ring is half full; `None` while there is no room to drain into.
    pub fn ready(&self) -> Option<BorrowedFd<'_>> {
        self.has_room().then(|| self.rings.ready())
    }

    /// Drains the rings into the sink.
    pub fn consume(&mut self) {
        self.rings.consume();
    }

    /// Drains the rings and offers the events to the writer.
    pub fn drain(&mut self) {
        let before = host::now();
        if self.has_room() {
            self.consume();
            self.drained_until = before;
        }
        let now = Instant::now();
        if now >= self.next_clock {
            self.next_clock = now + CLOCK_EVERY;
            let clock = LifeKind::Clock(host::clock());
            self.own.push(convert::recorder(host::now(), clock));
        }
        let flush = now >= self.next_flush;
        if flush || self.sink.bytes() >= BATCH {
            let mut batch = self.sink.take();
            batch.drained_until = self.drained_until;
            batch.flush = flush;
            batch.own.append(&mut self.own);
            match self.output.offer(batch) {
                Ok(()) if flush => self.next_flush = now + FLUSH_EVERY,
                Ok(()) | Err(None) => {}
                // The writer is busy: continue to collect, up to MAX_WAITING.
                Err(Some(mut batch)) => {
                    self.own.append(&mut batch.own);
                    self.sink.put_back(batch);
                }
            }
        }
    }

    /// Drains until the last switch-out of COMMAND's process has arrived.
    pub fn await_root_exit(&mut self) {
        let latest = Instant::now() + LAST_SWITCH;
        loop {
            self.consume();
            if self.sink.root_done() || Instant::now() >= latest {
                break;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Lifecycle events that this CPU has lost, of `total`, and no ring has reported.
    pub fn unreported_life(&self, cpu: u32, total: u64) -> u64 {
        self.sink.lost_life(cpu, total)
    }

    /// The last batch, which ends with the events `own`, and the writer.
    pub fn finish(mut self, own: Vec<LifeEvent>) -> (Batch, Output) {
        let mut batch = self.sink.take();
        self.own.extend(own);
        batch.own = self.own;
        (batch, self.output)
    }
}
