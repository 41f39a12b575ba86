//! Blocks of a trace: their source, and the rest of a block that has been read.

use std::sync::{Mutex, PoisonError};

use tr_format::event::{Ktime, LifeEvent};
use tr_format::sched::{flag, SchedBlock};
use tr_format::Error;

/// A block that has not been read.
#[derive(Clone, Copy, Debug)]
pub struct Block<K> {
    /// The smallest time in it.
    pub min: Ktime,
    /// The number of its events.
    pub events: u64,
    /// Its key for the reader.
    pub key: K,
}

/// A source of blocks: a trace, or a test.
pub trait Blocks: Sync {
    /// The key of a block.
    type Key: Copy + std::fmt::Debug + Send + Sync;

    /// A block's events in the order of writing, in memory of `spare`. An unreadable block is
    /// to be replaced by its loss.
    fn read(&self, key: &Self::Key, spare: &Spare) -> Read;
}

/// Memory that has been used, for the next ones.
#[derive(Debug, Default)]
pub struct Pool<T>(Mutex<Vec<T>>);

impl<T: Default> Pool<T> {
    /// A used one, or a new one.
    pub fn take(&self) -> T {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.pop().unwrap_or_default()
    }

    /// Takes a used one back.
    pub fn put(&self, used: T) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(used);
    }
}

#[derive(Debug, Default)]
pub struct Spare {
    pub sched: Pool<SchedBlock>,
    /// They are empty.
    pub life: Pool<Vec<LifeEvent>>,
}

impl Spare {
    /// Takes that of a block.
    pub fn put(&self, content: Content) {
        match content {
            Content::Sched(block) => self.sched.put(block),
            Content::Life(mut events) => {
                events.clear();
                self.life.put(events);
            }
        }
    }
}

/// The events of a block that was read.
#[derive(Debug)]
pub struct Read {
    pub content: Content,
    /// The frame that could not be read, and why.
    pub error: Option<(u64, Error)>,
}

/// The events of a block.
#[derive(Debug)]
pub enum Content {
    /// Of a CPU.
    Sched(SchedBlock),
    /// Of another stream.
    Life(Vec<LifeEvent>),
}

/// Numbers of scheduling events by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub switches: u64,
    /// Wakings of tasks that have run before.
    pub wakings: u64,
    /// First wakings of new tasks.
    pub new: u64,
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        self.switches += other.switches;
        self.wakings += other.wakings;
        self.new += other.new;
    }

    /// Of a block's flags.
    fn of(flags: &[u8]) -> Counts {
        // In bytes, so that many are counted in one step.
        let count = |is: fn(u8) -> bool| -> u64 {
            let few = flags.chunks(usize::from(u8::MAX));
            let counts = few.map(|few| few.iter().map(|flags| u8::from(is(*flags))).sum::<u8>());
            counts.map(u64::from).sum()
        };
        let wakings = count(|flags| flags & flag::WAKING != 0);
        let new = count(|flags| flags & (flag::WAKING | flag::NEW) == flag::WAKING | flag::NEW);
        Counts {
            switches: flags.len() as u64 - wakings,
            wakings: wakings - new,
            new,
        }
    }
}

/// A block that has been read, sorted.
#[derive(Debug)]
pub struct Loaded {
    pub events: Rest,
    /// The frame that could not be read, and why.
    pub error: Option<(u64, Error)>,
    /// The scheduling events among these.
    pub counts: Counts,
    /// The largest step back in time inside the whole block, of events that the kernel
    /// wrote into a ring.
    pub back: u64,
    /// The smallest time of these.
    pub least: u64,
    /// The largest.
    pub most: u64,
}

/// The events of a block that have not been handed on.
#[derive(Debug)]
pub enum Rest {
    /// Of a CPU, from this event on.
    Sched(SchedBlock, usize),
    /// Of another stream.
    Life(Lives),
}

/// Lifecycle or recorder's events. They are large, so they stay where they are until they go
/// to a run.
#[derive(Debug, Default)]
pub struct Lives {
    /// As they were written.
    pub events: Vec<LifeEvent>,
    /// Each one's time and place, sorted.
    order: Vec<(u64, usize)>,
    /// The number of these that have been handed on.
    pub at: usize,
}

impl Lives {
    fn new(events: Vec<LifeEvent>) -> Lives {
        let times = events.iter().map(|event| event.time.0);
        let mut order: Vec<(u64, usize)> = times.zip(0..).collect();
        order.sort_unstable();
        Lives {
            events,
            order,
            at: 0,
        }
    }

    /// Times and places of those that have not been handed on.
    pub fn rest(&self) -> &[(u64, usize)] {
        self.order.get(self.at..).unwrap_or_default()
    }
}

impl Loaded {
    pub fn new(read: Read) -> Loaded {
        let mut loaded = Loaded {
            events: Rest::Life(Lives::default()),
            error: read.error,
            counts: Counts::default(),
            back: 0,
            least: u64::MAX,
            most: 0,
        };
        match read.content {
            Content::Sched(mut block) => {
                match (block.time.first(), block.time.last()) {
                    (Some(first), Some(last)) if block.time.is_sorted() => {
                        (loaded.least, loaded.most) = (*first, *last);
                    }
                    _ => {
                        loaded.measure(block.time.iter().copied());
                        block.sort();
                    }
                }
                loaded.counts = Counts::of(&block.flags);
                loaded.events = Rest::Sched(block, 0);
            }
            Content::Life(events) => {
                let ring = events.iter().filter(|event| event.kind.is_from_a_ring());
                loaded.measure(ring.map(|event| event.time.0));
                loaded.events = Rest::Life(Lives::new(events));
            }
        }
        loaded
    }

    fn measure(&mut self, times: impl Iterator<Item = u64>) {
        for time in times {
            self.back = self.back.max(self.most.saturating_sub(time));
            self.most = self.most.max(time);
            self.least = self.least.min(time);
        }
    }
}

impl Rest {
    /// All of it has been handed on.
    pub fn is_empty(&self) -> bool {
        match self {
            Rest::Sched(block, at) => *at >= block.len(),
            Rest::Life(lives) => lives.at >= lives.order.len(),
        }
    }
}
