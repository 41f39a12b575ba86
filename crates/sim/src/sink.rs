//! Defines the receivers of the events that a simulation emits.

use tr_format::event::{CpuId, LifeEvent, SchedEvent, Stream};

/// Receives the events of a simulated run in the order of true time.
pub trait Sink {
    /// Receives a scheduling event of this simulated CPU.
    fn sched(&mut self, cpu: CpuId, event: SchedEvent);
    /// Receives a simulated event of [`Stream::Lifecycle`] or [`Stream::Recorder`].
    fn life(&mut self, stream: Stream, event: LifeEvent);
}

/// A receiver of simulated events that only counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// The number of scheduling events of all simulated CPUs.
    pub sched: u64,
    /// The number of simulated events of the lifecycle stream and of the recorder's stream.
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

/// One simulated event, with the CPU or the stream to which it belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A scheduling event of this simulated CPU.
    Sched(CpuId, SchedEvent),
    /// A simulated event of the lifecycle stream or of the recorder's stream.
    Life(Stream, LifeEvent),
}

impl Event {
    /// The time stamp of the simulated event.
    pub fn time(&self) -> tr_format::event::Ktime {
        match self {
            Event::Sched(_, event) => event.time,
            Event::Life(_, event) => event.time,
        }
    }
}

/// Keeps all simulated events in the order in which they come.
impl Sink for Vec<Event> {
    fn sched(&mut self, cpu: CpuId, event: SchedEvent) {
        self.push(Event::Sched(cpu, event));
    }

    fn life(&mut self, stream: Stream, event: LifeEvent) {
        self.push(Event::Life(stream, event));
    }
}
