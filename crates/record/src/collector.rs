//! Drains the source of a recording's events into batches, adds the recorder's own events, and offers the batches to
//! the thread that writes the trace.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use tr_format::counters::Counter;
use tr_format::event::{Ktime, LifeEvent, LifeKind};

use crate::host;
use crate::machine::Sampler;
use crate::marks::Marks;
use crate::output::{Batch, Lines, Output};
use crate::pace::Pace;
use crate::size::SizeLimit;
use crate::source::{recorder, Source};

/// The interval between two regular batches of events for the writing thread. The source of events is drained twice
/// in this time ([`DRAIN_EVERY`](crate::source::DRAIN_EVERY)). The file of marks is read with each regular batch.
const BATCH_EVERY: Duration = Duration::from_millis(700);
/// The longest interval between two flushes of the trace file, unless the recording is light. Each flush ends the
/// blocks of events in the file, and each new block repeats names and tables: with an interval of 0.7 s the files of
/// three builds are 9 to 12 % longer. If the recorder is killed, the events since the last flush are lost, so the
/// first intervals are shorter ([`until_flush`]).
const FLUSH_EVERY: Duration = Duration::from_millis(2800);
/// The interval between two batches of events in a light recording (`--light`), which has few events. Each batch is
/// followed by a flush.
const LIGHT_FLUSH: Duration = Duration::from_secs(30);
/// The interval between two events that contain the readings of the machine's clocks.
const CLOCK_EVERY: Duration = Duration::from_secs(10);
/// The largest memory in bytes of drained events that wait for the writing thread. Beyond this limit events stay in the
/// source. If the buffers of the BPF programs (slots and rings) are full then, the programs only count further events.
const MAX_WAITING: usize = 16 << 20;
/// If the drained events take this much memory in bytes, they are offered to the writing thread at once, and not only
/// with the next regular batch.
const BATCH: usize = 1 << 20;

/// The writer of a trace file, and the sampler of the machine's counters. Each part of a rotated recording gets a new
/// writer and a new sampler.
pub struct FileOutput {
    pub output: Output,
    pub machine: Sampler,
}

/// The last batches of events that are still to be written to a trace file, and the writer of the file.
pub struct LastBatches {
    pub output: Output,
    pub batches: Vec<Batch>,
}

/// Collects the events of a recording: takes them from the source and sends them in batches to the writer.
pub struct Collector {
    pub source: Box<dyn Source>,
    pub output: Output,
    /// The recorder's own events that are in no batch for the writer yet.
    own: Vec<LifeEvent>,
    /// A batch of events that the writer was too busy to accept.
    waiting: Option<Batch>,
    /// The time before which all events of the source have been drained.
    drained_until: Ktime,
    /// The time at which the recording began.
    begin: Instant,
    next_batch: Instant,
    next_flush: Instant,
    batch_every: Duration,
    next_clock: Instant,
    pace: Pace,
    pub machine: Sampler,
    /// The largest sum of the resident memory of the recorded processes since the last sample, in bytes.
    peak: u64,
    marks: Option<Marks>,
}

impl Collector {
    /// Creates a collector for a recording that begins at `start`.
    pub fn new(
        source: Box<dyn Source>,
        file: FileOutput,
        start: Ktime,
        marks: Option<Marks>,
        light: bool,
    ) -> Collector {
        let now = Instant::now();
        let batch_every = if light { LIGHT_FLUSH } else { BATCH_EVERY };
        let first = now + batch_every;
        Collector {
            source,
            output: file.output,
            own: Vec::new(),
            waiting: None,
            drained_until: start,
            begin: now,
            next_batch: first,
            next_flush: first,
            batch_every,
            next_clock: now + CLOCK_EVERY,
            pace: Pace::new(now),
            machine: file.machine,
            peak: 0,
            marks,
        }
    }

    /// Whether the trace file has no room below its size limit for the events that are expected before the next check.
    pub fn is_full(&mut self, limit: &mut SizeLimit) -> bool {
        let size = self.output.size();
        let waiting = self.waiting.as_ref();
        let waiting = waiting.map_or(0, |batch| batch.events.bytes());
        let reached = limit.is_reached(size.expected(waiting + self.source.waiting().0));
        if reached && !size.is_known() {
            // The trace file may have reached the limit of its size, but only a flush shows how small the events become
            // in the file. So the next batch and the next flush are due now, and the recording goes on until then.
            let now = Instant::now();
            (self.next_batch, self.next_flush) = (now, now);
            return false;
        }
        reached
    }

    fn has_room(&self) -> bool {
        let waiting = self
            .waiting
            .as_ref()
            .map_or(0, |batch| batch.events.bytes());
        waiting + self.source.waiting().0 < MAX_WAITING
    }

    /// A descriptor that becomes readable when the source has to be drained early, before the next interval ends;
    /// `None` if the source has none.
    pub fn ready(&self) -> Option<BorrowedFd<'_>> {
        self.source.ready()
    }

    pub fn push(&mut self, event: LifeEvent) {
        self.own.push(event);
    }

    pub fn drain(&mut self) {
        let before = host::now();
        let room = self.has_room();
        self.source.drain(room);
        if room {
            self.drained_until = before;
        }
        let now = Instant::now();
        if now >= self.next_clock {
            self.next_clock = now + CLOCK_EVERY;
            let clock = LifeKind::Clock(host::clock());
            self.own.push(recorder(host::now(), clock));
        }
        if self.pace.is_second(now) {
            self.second(now);
        }
        if let Some(batch) = self.waiting.take() {
            self.offer(batch);
        }
        let due = now >= self.next_batch;
        let (bytes, urgent) = self.source.waiting();
        if self.waiting.is_none() && (due || urgent || bytes >= BATCH) {
            let batch = self.batch(due, due && now >= self.next_flush);
            self.offer(batch);
        }
    }

    /// Does the work that is due each second: reads the resident memory of the recorded processes and the free space
    /// of the disk, and takes a sample of the counters if one is due.
    fn second(&mut self, now: Instant) {
        if !self.pace.is_due(now, self.output.written()) {
            let resident = self.source.resident();
            self.peak = self.peak.max(resident.unwrap_or(0));
            self.machine.look();
            return;
        }
        let counters = self.counters();
        let sums = self.source.sums();
        self.pace.taken(now, 1 + sums.len());
        self.own.push(recorder(host::now(), counters));
        self.own.extend(sums);
    }

    /// Takes a sample of the machine's counters and of the memory of the recorded processes. Returns the event that
    /// has the sample.
    pub fn counters(&mut self) -> LifeKind {
        let mut counters = self.machine.sample();
        if let Some(bytes) = self.source.resident() {
            counters.set(Counter::Resident, bytes);
            counters.set(Counter::ResidentPeak, bytes.max(self.peak));
        }
        self.peak = 0;
        LifeKind::Counters(counters)
    }

    /// Makes a batch of the events that were drained. If `due` is set, the batch also contains the marks (named
    /// moments) that programs have set since the last such batch. If `flush` is set, the writer closes all blocks after
    /// the batch.
    fn batch(&mut self, due: bool, flush: bool) -> Batch {
        let marks = self.marks.as_mut().filter(|_| due);
        let lines = marks.map_or_else(Vec::new, Marks::take);
        Batch {
            marks: Lines {
                lines,
                time: host::now(),
                unread: 0,
            },
            events: self.source.take(),
            own: std::mem::take(&mut self.own),
            drained_until: self.drained_until,
            due,
            flush,
        }
    }

    fn offer(&mut self, batch: Batch) {
        let (due, flush) = (batch.due, batch.flush);
        match self.output.offer(batch) {
            Ok(()) if due => self.offered(flush),
            Ok(()) | Err(None) => {}
            // The writer is busy: continue to collect, up to MAX_WAITING.
            Err(waiting) => self.waiting = waiting,
        }
    }

    /// Schedules the next regular batch, and with `flush` also the next flush, after the writer's queue has accepted
    /// a regular batch.
    fn offered(&mut self, flush: bool) {
        let now = Instant::now();
        self.next_batch = now + self.batch_every;
        if flush {
            self.next_flush = now + until_flush(now.duration_since(self.begin));
        }
    }

    /// Changes to the file of the next part of a rotated recording, which begins at `start`. The machine's counters
    /// and the peak of the memory begin anew. Returns the last batches of the previous file, which end with the events
    /// `own`, and that file's writer.
    pub fn change(&mut self, next: FileOutput, own: Vec<LifeEvent>, start: Ktime) -> LastBatches {
        self.own.extend(own);
        self.drained_until = start;
        let last = self.batch(true, true);
        let batches = self.waiting.take().into_iter().chain([last]).collect();
        self.offered(true);
        self.pace = Pace::new(Instant::now());
        (self.machine, self.peak) = (next.machine, 0);
        LastBatches {
            output: std::mem::replace(&mut self.output, next.output),
            batches,
        }
    }

    /// Ends the collection of a recording that ended at `end`. Returns the source, and the last batches for the file,
    /// which end with the events `own`.
    pub fn finish(mut self, own: Vec<LifeEvent>, end: Ktime) -> (Box<dyn Source>, LastBatches) {
        self.own.extend(own);
        let (lines, unread) = self.marks.as_mut().map(Marks::finish).unwrap_or_default();
        let mut last = self.batch(false, false);
        last.marks = Lines {
            lines,
            time: end,
            unread,
        };
        let batches = self.waiting.take().into_iter().chain([last]).collect();
        let last = LastBatches {
            output: self.output,
            batches,
        };
        (self.source, last)
    }
}

/// The interval until the next flush of the trace file, for a recording that began `age` ago: a quarter of the age,
/// within limits, so that a kill of the recorder loses little of a short recording.
fn until_flush(age: Duration) -> Duration {
    (age / 4).clamp(BATCH_EVERY, FLUSH_EVERY)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests that a kill of the recorder loses little. The recorder loses the events since the last flush. The tested
    /// flushes begin 0.7 s after the start. From then on, the time between two flushes is at most a quarter of the
    /// recording so far, or 0.7 s if that is longer, and never more than 2.8 s.
    #[test]
    fn a_kill_costs_a_part_of_the_recording() {
        let mut flushed = BATCH_EVERY;
        while flushed < Duration::from_secs(60) {
            let next = flushed + until_flush(flushed);
            assert!(next - flushed <= Duration::from_millis(2800));
            assert!(next - flushed <= (flushed / 4).max(Duration::from_millis(700)));
            assert!(next - flushed >= Duration::from_millis(700));
            flushed = next;
        }
        assert_eq!(until_flush(flushed), FLUSH_EVERY);
    }
}
