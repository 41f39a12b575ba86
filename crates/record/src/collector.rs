//! Drains the source into batches, adds the recorder's own events and offers the batches
//! to the writer.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use tr_format::counters::Counter;
use tr_format::event::{Ktime, LifeEvent, LifeKind};

use crate::host;
use crate::machine::Sampler;
use crate::marks::Marks;
use crate::output::{Batch, Lines, Output};
use crate::pace::Pace;
use crate::source::{recorder, Source};

/// The interval between two flushes of the file's blocks, at every second drain: a kill
/// costs less than a second of the trace.
const FLUSH_EVERY: Duration = Duration::from_millis(700);
/// The same of a light recording: a block of few events is mostly names that the one before had.
const LIGHT_FLUSH: Duration = Duration::from_secs(30);
/// The interval between two clock events.
const CLOCK_EVERY: Duration = Duration::from_secs(10);
/// Bytes of drained events that may wait for the writer. Beyond it events stay in the
/// source: BPF programs count those that no longer fit into their rings.
const MAX_WAITING: usize = 16 << 20;
/// The size in bytes at which a batch is offered before the next flush.
const BATCH: usize = 1 << 20;

/// The source, the events drained from it, and the writer.
pub struct Collector {
    /// The source.
    pub source: Box<dyn Source>,
    /// The writer.
    pub output: Output,
    /// The recorder's own events that no batch has taken yet.
    own: Vec<LifeEvent>,
    /// The batch that the writer was too busy to take.
    waiting: Option<Batch>,
    /// All events before this time have been drained.
    drained_until: Ktime,
    next_flush: Instant,
    flush_every: Duration,
    next_clock: Instant,
    pace: Pace,
    /// The machine's counters.
    pub machine: Sampler,
    /// The largest resident memory since the last sample.
    peak: u64,
    /// The marks of programs.
    marks: Option<Marks>,
}

impl Collector {
    /// For a recording that begins at `start`.
    pub fn new(
        source: Box<dyn Source>,
        output: Output,
        start: Ktime,
        (marks, machine): (Option<Marks>, Sampler),
        light: bool,
    ) -> Collector {
        let now = Instant::now();
        let flush_every = if light { LIGHT_FLUSH } else { FLUSH_EVERY };
        Collector {
            source,
            output,
            own: Vec::new(),
            waiting: None,
            drained_until: start,
            next_flush: now + flush_every,
            flush_every,
            next_clock: now + CLOCK_EVERY,
            pace: Pace::new(now),
            machine,
            peak: 0,
            marks,
        }
    }

    fn has_room(&self) -> bool {
        let waiting = self.waiting.as_ref().map_or(0, |it| it.events.bytes());
        waiting + self.source.bytes() < MAX_WAITING
    }

    /// Readable when the source has to be drained before the next interval.
    pub fn ready(&self) -> Option<BorrowedFd<'_>> {
        self.source.ready()
    }

    /// Adds an event of the recorder's own.
    pub fn push(&mut self, event: LifeEvent) {
        self.own.push(event);
    }

    /// Drains the source and offers the events to the writer.
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
        let flush = now >= self.next_flush;
        let due = flush || self.source.bytes() >= BATCH || self.source.urgent();
        if self.waiting.is_none() && due {
            let batch = self.batch(flush);
            self.offer(batch);
        }
    }

    /// Reads the resident memory, and takes a sample if one is due.
    fn second(&mut self, now: Instant) {
        if !self.pace.is_due(now, self.output.written()) {
            let resident = self.source.resident();
            self.peak = self.peak.max(resident.unwrap_or(0));
            return;
        }
        let counters = self.counters();
        let sums = self.source.sums();
        self.pace.taken(now, 1 + sums.len());
        self.own.push(recorder(host::now(), counters));
        self.own.extend(sums);
    }

    /// A sample of the machine's counters and of the memory of the recorded processes.
    pub fn counters(&mut self) -> LifeKind {
        let mut counters = self.machine.sample();
        if let Some(bytes) = self.source.resident() {
            counters.set(Counter::Resident, bytes);
            counters.set(Counter::ResidentPeak, bytes.max(self.peak));
        }
        self.peak = 0;
        LifeKind::Counters(counters)
    }

    fn batch(&mut self, flush: bool) -> Batch {
        let marks = self.marks.as_mut().filter(|_| flush);
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
            flush,
        }
    }

    fn offer(&mut self, batch: Batch) {
        let flush = batch.flush;
        match self.output.offer(batch) {
            Ok(()) if flush => self.next_flush = Instant::now() + self.flush_every,
            Ok(()) | Err(None) => {}
            // The writer is busy: continue to collect, up to MAX_WAITING.
            Err(waiting) => self.waiting = waiting,
        }
    }

    /// The machine's counters and the memory's peak begin anew with a part of the recording that
    /// begins at `start`; the last batch of the part before, with the events `own`, and its writer.
    pub fn change(
        &mut self,
        (output, machine): (Output, Sampler),
        own: Vec<LifeEvent>,
        start: Ktime,
    ) -> (Output, Vec<Batch>) {
        self.own.extend(own);
        self.drained_until = start;
        let last = self.batch(true);
        let batches = self.waiting.take().into_iter().chain([last]).collect();
        let now = Instant::now();
        self.next_flush = now + self.flush_every;
        self.pace = Pace::new(now);
        (self.machine, self.peak) = (machine, 0);
        (std::mem::replace(&mut self.output, output), batches)
    }

    /// The last batches, which end with the events `own`; the source and the writer. The
    /// recording ended at `end`.
    pub fn finish(
        mut self,
        own: Vec<LifeEvent>,
        end: Ktime,
    ) -> (Vec<Batch>, Box<dyn Source>, Output) {
        self.own.extend(own);
        let last = self.batch(false);
        let mut batches: Vec<Batch> = self.waiting.take().into_iter().chain([last]).collect();
        let (lines, unread) = self.marks.as_mut().map(Marks::finish).unwrap_or_default();
        for lines in lines {
            let mut batch = self.batch(false);
            batch.marks = Lines {
                lines,
                time: end,
                unread: 0,
            };
            batches.push(batch);
        }
        if let Some(last) = batches.last_mut() {
            last.marks.unread = unread;
        }
        (batches, self.source, self.output)
    }
}
