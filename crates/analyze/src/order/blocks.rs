//! The blocks of a trace: where they are read from, and the events of a block that are not yet in a sorted run (a list
//! of events sorted by time).

use std::sync::{Mutex, PoisonError};

use tr_format::event::{Ktime, LifeEvent};
use tr_format::sched::{flag, SchedBlock};
use tr_format::Error;

/// A block of a trace's events that has not been read yet.
#[derive(Clone, Copy, Debug)]
pub struct Block<K> {
    /// The smallest time of an event in the block, which is known before the block is read.
    pub min: Ktime,
    /// The number of events in the block, which is known before the block is read.
    pub events: u64,
    /// The key by which the source of the block, such as a trace file, finds the block.
    pub key: K,
}

/// A source of blocks of events: a trace, or a test.
pub trait Blocks: Sync {
    /// The key by which the source finds a block of events.
    type Key: Copy + std::fmt::Debug + Send + Sync;

    /// Reads the events of a block in the order of writing, into memory of `spare`. If the block cannot be read, the
    /// result has an event that reports the loss of the block's events.
    fn read(&self, key: &Self::Key, spare: &Spare) -> Read;
}

/// A pool of used items, such as lists, whose memory is kept for reuse.
#[derive(Debug, Default)]
pub struct Pool<T>(Mutex<Vec<T>>);

impl<T: Default> Pool<T> {
    /// Takes a used item, such as an empty list, out of the pool for reuse, or makes a new one if the pool
    /// is empty.
    pub fn take(&self) -> T {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.pop().unwrap_or_default()
    }

    /// Puts a used item, such as an empty list, into the pool for reuse.
    pub fn put(&self, used: T) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(used);
    }
}

#[derive(Debug, Default)]
pub struct Spare {
    pub sched: Pool<SchedBlock>,
    /// A pool of empty lists of lifecycle events, whose memory is reused.
    pub life: Pool<Vec<LifeEvent>>,
}

impl Spare {
    /// Keeps the memory of a block's events for reuse.
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

/// The events of a block that was read, in the order of writing.
#[derive(Debug)]
pub struct Read {
    pub content: Content,
    /// The number of the file's frame that could not be read, and the error; `None` if the block could be
    /// read.
    pub error: Option<(u64, Error)>,
}

/// The events of a block that was read from a trace.
#[derive(Debug)]
pub enum Content {
    /// The scheduling events of one CPU that a block contains.
    Sched(SchedBlock),
    /// The events of the lifecycle stream, or of the recorder's stream.
    Life(Vec<LifeEvent>),
}

/// The numbers of scheduling events of each kind: switches, wakings and first wakings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub switches: u64,
    /// The number of wakings of tasks that have run before.
    pub wakings: u64,
    /// The number of first wakings of new tasks.
    pub new: u64,
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        self.switches += other.switches;
        self.wakings += other.wakings;
        self.new += other.new;
    }

    /// Counts the scheduling events of a block by their flags.
    fn of(flags: &[u8]) -> Counts {
        // The matches in up to 255 flags are first counted in a `u8`, so that the processor can count many flags with
        // one vector instruction.
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

/// A block of events that has been read from a trace, with its events sorted by time.
#[derive(Debug)]
pub struct Loaded {
    pub events: Rest,
    /// The number of the file's frame that could not be read, and the error; `None` if the block could be
    /// read.
    pub error: Option<(u64, Error)>,
    /// The numbers of scheduling events of each kind in the block.
    pub counts: Counts,
    /// The longest time in ns by which an event of the block is older than an event that was written before it. Events
    /// that the recorder itself made are not counted.
    pub back: u64,
    /// The smallest time in ns of the block's events, without events that the recorder itself made.
    pub least: u64,
    /// The largest time in ns of the block's events, without events that the recorder itself made.
    pub most: u64,
}

/// A block that has been read, with the events that are not yet in a sorted run (a list of events sorted by time).
#[derive(Debug)]
pub enum Rest {
    /// The scheduling events of a CPU, and the index of the first one that is not in a sorted run yet.
    Sched(SchedBlock, usize),
    /// The events of the lifecycle stream, or of the recorder's stream, that are not yet in a sorted run (a list of
    /// events sorted by time).
    Life(Lives),
}

/// The events of a block of lifecycle events or of the recorder's events. Each event is large, so it stays in place
/// until it is moved to a sorted run (a list of events sorted by time).
#[derive(Debug, Default)]
pub struct Lives {
    /// The block's events in the order in which they were written.
    pub events: Vec<LifeEvent>,
    /// For each event of the block, its time in ns and its index in `events`, sorted by time.
    order: Vec<(u64, usize)>,
    /// The number of the block's events that are already in a sorted run (a list of events sorted by time).
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

    /// The times in ns and the indices of the block's events that are not in a sorted run yet.
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
                let ring = events.iter().filter(|event| event.kind.is_from_the_ring());
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
    /// Whether all events of the block are already in sorted runs (lists of events sorted by time).
    pub fn is_empty(&self) -> bool {
        match self {
            Rest::Sched(block, at) => *at >= block.len(),
            Rest::Life(lives) => lives.at >= lives.order.len(),
        }
    }
}
