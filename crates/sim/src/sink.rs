//! Defines the receivers of a simulated run's events.

use tr_format::event::{CpuId, LifeEvent, SchedEvent, Stream};

/// Receives the events of a run in the order of true time.
pub trait Sink {
    /// Receives an event of this CPU's ring.
    fn sched(&mut self, cpu: CpuId, event: SchedEvent);
    /// Receives an event of [`Stream::Lifecycle`] or [`Stream::Recorder`].
    fn life(&mut self, stream: Stream, event: LifeEvent);
}

/// A sink that only counts the events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// The number of events of the CPUs' rings.
    pub sched: u64,
    /// The number of events of the lifecycle stream and of the recorder's stream.
    pub life: u64,
}

impl Sink for Count {
    fn sched(&mut self, _: CpuId, _: SchedEvent) {
        self.sched += 1;
    }

    fn life(&mut self, _: Stream, _: LifeEvent) {
        self.life += 1;
    }
}

/// One event, with the ring or stream that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An event of the ring of this CPU.
    Sched(CpuId, SchedEvent),
    /// An event of the lifecycle stream or of the recorder's stream.
    Life(Stream, LifeEvent),
}

impl Event {
    /// The stamp of the event.
    pub fn time(&self) -> tr_format::event::Ktime {
        match self {
            Event::Sched(_, event) => event.time,
            Event::Life(_, event) => event.time,
        }
    }
}

/// Keeps all events in the order in which they come.
impl Sink for Vec<Event> {
    fn sched(&mut self, cpu: CpuId, event: SchedEvent) {
        self.push(Event::Sched(cpu, event));
    }

    fn life(&mut self, stream: Stream, event: LifeEvent) {
        self.push(Event::Life(stream, event));
    }
}
