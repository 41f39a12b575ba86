//! The events of a simulated run, for each ring in the order in which they were written.

use tr_format::event::{CpuId, Ktime, LifeEvent, LifeKind, Mark, Point, SchedEvent, Stream, Tid};
use tr_format::meta::{Metadata, Summary};

use crate::config::Config;
use crate::machine::Machine;
use crate::sink::Sink;
use crate::truth::Truth;

/// A simulated event with the true time at which it was written into its ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written<E> {
    /// The true simulated time at which the event was written, in ns. The event's own time stamp
    /// may differ.
    pub at: u64,
    /// The number of the event in the simulated recording, counted over all rings.
    pub seq: u64,
    /// The simulated event itself, as it was written into its ring.
    pub event: E,
}

/// A simulated event that has a time stamp.
pub(crate) trait Stamped {
    fn stamp(&self) -> Ktime;
}

impl Stamped for SchedEvent {
    fn stamp(&self) -> Ktime {
        self.time
    }
}

impl Stamped for LifeEvent {
    fn stamp(&self) -> Ktime {
        self.time
    }
}

/// The recording of a simulated run: its events by ring, each ring in the order in which the events
/// were written (`at`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The metadata at the beginning of the simulated trace.
    pub meta: Metadata,
    /// The summary at the end of the simulated trace; `None` if the trace was cut off.
    pub summary: Option<Summary>,
    /// The scheduling events of the simulated recording, one ring for each CPU.
    pub cpus: Vec<Vec<Written<SchedEvent>>>,
    /// The lifecycle events (fork, exec, exit) of the simulated recording ([`Stream::Lifecycle`]).
    pub life: Vec<Written<LifeEvent>>,
    /// The events of the simulated recorder itself ([`Stream::Recorder`]).
    pub recorder: Vec<Written<LifeEvent>>,
    /// The number of events that were added to the simulated recording so far.
    count: u64,
}

impl Sink for Recording {
    fn sched(&mut self, cpu: CpuId, event: SchedEvent) {
        let (at, seq) = (event.time.0, self.seq());
        self.cpus[usize::from(cpu.0)].push(Written { at, seq, event });
    }

    fn life(&mut self, stream: Stream, event: LifeEvent) {
        let written = Written {
            at: event.time.0,
            seq: self.seq(),
            event,
        };
        match stream {
            Stream::Recorder => self.recorder.push(written),
            _ => self.life.push(written),
        }
    }
}

impl Recording {
    fn seq(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// Runs a simulation to its end. Returns the recording and the truth about the run.
    pub fn record(config: &Config) -> (Recording, Truth) {
        let mut machine = Machine::new(config);
        let meta = machine.meta();
        let cpus = vec![Vec::new(); meta.cpus.len()];
        let mut recording = Recording {
            meta,
            summary: None,
            cpus,
            life: Vec::new(),
            recorder: Vec::new(),
            count: 0,
        };
        machine.run(&mut recording);
        recording.summary = Some(machine.summary());
        (recording, machine.into_truth())
    }

    /// The number of events in the simulated recording, over all rings.
    pub fn len(&self) -> usize {
        self.cpus.iter().map(Vec::len).sum::<usize>() + self.life.len() + self.recorder.len()
    }

    /// Whether the simulated recording has no events.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The time of the last [`LifeKind::Watermark`] in the simulated recording.
    pub fn last_progress(&self) -> Option<Ktime> {
        let mut latest = self.recorder.iter().rev().map(|written| &written.event);
        let last = latest.find(|event| event.kind == LifeKind::Watermark)?;
        Some(last.time)
    }

    /// Adds marks (named moments) to the simulated recording, at the begin and the end of each of `count` tests. The
    /// tests follow each other from the recording's beginning to its end, and have a hundred different names. `pid` is
    /// the process that has set the marks.
    pub fn add_tests(&mut self, pid: Option<Tid>, count: u64) {
        let (start, end) = (self.meta.start.0, self.end().0);
        let step = (end - start) / (2 * count + 1);
        let mut at = start;
        for number in 0..count {
            for point in [Point::Begin, Point::End] {
                at += step;
                let mark = Mark {
                    name: format!("test {}", number % 100).into_bytes().into(),
                    point,
                    kind: b"test".as_slice().into(),
                    id: number.to_string().into_bytes().into(),
                    pid,
                    ..Mark::default()
                };
                let event = LifeEvent {
                    time: Ktime(at),
                    cpu: None,
                    kind: LifeKind::Mark(mark),
                };
                let seq = self.seq();
                self.recorder.push(Written { at, seq, event });
            }
        }
        self.recorder.sort_by_key(|written| written.at);
    }

    /// Inserts an event into the simulated recorder's own stream, written at the true time `at`.
    pub(crate) fn insert(&mut self, at: u64, event: LifeEvent) {
        let place = self.recorder.partition_point(|written| written.at <= at);
        let seq = self.seq();
        self.recorder.insert(place, Written { at, seq, event });
    }

    /// The end of the simulated recording's span: the end in the summary or, without a summary, the time of the last
    /// watermark. (All events before a watermark's time are earlier in the trace.)
    pub fn end(&self) -> Ktime {
        let summary = self.summary.as_ref().map(|summary| summary.end);
        summary.or(self.last_progress()).unwrap_or(self.meta.start)
    }
}
