//! The receivers of a run's events.

use tr_format::event::{CpuId, LifeEvent, SchedEvent, Stream};

/// Receives the events of a run in the order of true time.
pub trait Sink {
    /// An event of this CPU's ring.
    fn sched(&mut self, cpu: CpuId, event: SchedEvent);
    /// An event of [`Stream::Lifecycle`] or [`Stream::Recorder`].
    fn life(&mut self, stream: Stream, event: LifeEvent);
}

/// Counts the events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Events of the CPUs' rings.
    pub sched: u64,
    /// Events of the other two streams.
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

/// One event with its ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An event of a CPU's ring.
    Sched(CpuId, SchedEvent),
    /// An event of another stream.
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

/// Keeps the events.
impl Sink for Vec<Event> {
    fn sched(&mut self, cpu: CpuId, event: SchedEvent) {
        self.push(Event::Sched(cpu, event));
    }

    fn life(&mut self, stream: Stream, event: LifeEvent) {
        self.push(Event::Life(stream, event));
    }
}
