//! Puts the events of all streams into the order of their times: exactly, for
//! any delay between an event's stamp and its writing, in memory that depends
//! on how far the streams are out of order and not on their length.
//!
//! Each stream is a chain of blocks in the order in which they were written. A
//! block's header has its smallest time, so the minimum over the blocks not yet
//! read says which events nothing can come before any more.
//!
//! Events of one stream with equal times keep the order in which they were
//! written. Between streams the order at equal times is causal: by the kind of
//! event, see `rank`; and whoever follows the tasks can say which event fits
//! what they are doing now, see [`Merge::next_fitting`].

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use tr_format::event::{CpuId, Ktime, LifeEvent, LifeKind, SchedEvent, SchedKind, Stream};
use tr_format::reader::{FrameInfo, Trace};
use tr_format::sched::SchedBlock;
use tr_format::Error;

pub use crate::clocks::Clocks;

/// An event of any stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A scheduling event of this CPU.
    Sched(CpuId, SchedEvent),
    /// A lifecycle event, or one of the recorder's.
    Life(LifeEvent),
}

impl Event {
    /// Its time.
    pub fn time(&self) -> Ktime {
        match self {
            Event::Sched(_, event) => event.time,
            Event::Life(event) => event.time,
        }
    }

    /// Gives it another time.
    pub fn set_time(&mut self, time: Ktime) {
        match self {
            Event::Sched(_, event) => event.time = time,
            Event::Life(event) => event.time = time,
        }
    }
}

/// The order of events with equal times: a gap begins before what is missing
/// in it, a task is forked before it is woken, woken before it runs, and its
/// last figures come after its last switch.
fn rank(event: &Event) -> u8 {
    match event {
        Event::Life(event) => match event.kind {
            LifeKind::Lost(_) => 0,
            LifeKind::Snapshot(_) => 1,
            LifeKind::Fork(_) => 2,
            LifeKind::Final(_) => 6,
            LifeKind::Clock(_) | LifeKind::Progress | LifeKind::Mark(_) => 7,
            _ => 3,
        },
        Event::Sched(
            _,
            SchedEvent {
                kind: SchedKind::Waking { .. },
                ..
            },
        ) => 4,
        Event::Sched(
            _,
            SchedEvent {
                kind: SchedKind::Switch { .. },
                ..
            },
        ) => 5,
    }
}

/// The kernel wrote it into a ring; the others are the recorder's own words.
fn from_ring(event: &Event) -> bool {
    match event {
        Event::Sched(..) => true,
        Event::Life(event) => !matches!(
            event.kind,
            LifeKind::Snapshot(_)
                | LifeKind::Lost(_)
                | LifeKind::Clock(_)
                | LifeKind::CgroupPath(_)
                | LifeKind::Progress
                | LifeKind::Mark(_)
        ),
    }
}

/// A block that has not been read: its times, and how to read it.
#[derive(Clone, Copy, Debug)]
pub struct Block<K> {
    /// The smallest time in it.
    pub min: Ktime,
    /// What the reader knows it by.
    pub key: K,
}

/// Where blocks come from: a trace, or a test.
pub trait Blocks {
    /// What a block is known by.
    type Key: Copy;

    /// Appends a block's events, in the order in which they were written.
    /// What cannot be read is to be replaced by the loss it stands for.
    fn read(&mut self, key: Self::Key, into: &mut Vec<Event>);
}

/// One stream: the blocks still to be read, and the events already read.
struct Chain<K> {
    blocks: std::vec::IntoIter<(Block<K>, Ktime)>,
    /// Sorted, the next one last.
    ready: Vec<Event>,
    /// The largest time that a ring's event has had so far.
    latest: Ktime,
}

/// The merge of all streams.
pub struct Merge<B: Blocks> {
    source: B,
    chains: Vec<Chain<B::Key>>,
    heads: BinaryHeap<Reverse<(Ktime, u8, usize)>>,
    largest_inversion: u64,
    /// Events as far apart as this count as of equal time.
    tolerance: u64,
}

impl<B: Blocks> Merge<B> {
    /// Of streams that are each a chain of blocks.
    pub fn new(source: B, streams: Vec<Vec<Block<B::Key>>>) -> Merge<B> {
        let chains = streams
            .into_iter()
            .map(|blocks| {
                // With each block the smallest time of it and all behind it.
                let mut least = Ktime(u64::MAX);
                let mut blocks: Vec<_> = blocks
                    .into_iter()
                    .rev()
                    .map(|block| {
                        least = least.min(block.min);
                        (block, least)
                    })
                    .collect();
                blocks.reverse();
                Chain {
                    blocks: blocks.into_iter(),
                    ready: Vec::new(),
                    latest: Ktime(0),
                }
            })
            .collect::<Vec<_>>();
        let count = chains.len();
        let mut merge = Merge {
            source,
            chains,
            heads: BinaryHeap::new(),
            largest_inversion: 0,
            tolerance: 0,
        };
        (0..count).for_each(|at| merge.renew(at));
        merge
    }

    /// The largest step back in time inside one ring so far, in ns. The
    /// recorder's own words, which tell of the past, are none.
    pub fn largest_inversion(&self) -> u64 {
        self.largest_inversion
    }

    /// The source, for what it has noted down.
    pub fn source(&mut self) -> &mut B {
        &mut self.source
    }

    /// The next event.
    pub fn next_event(&mut self) -> Option<Event> {
        self.next_fitting(|_| 0)
    }

    /// The next event; of several with equal times, the one for which `misfit`
    /// is least. With corrected clocks, times count as equal that are closer
    /// together than the correction is exact.
    pub fn next_fitting(&mut self, misfit: impl Fn(&Event) -> u8) -> Option<Event> {
        let Reverse(mut first) = self.heads.pop()?;
        let time = first.0;
        let tolerance = self.tolerance;
        let tied = |merge: &Merge<B>| matches!(merge.heads.peek(), Some(Reverse(head)) if head.0.since(time) <= tolerance);
        if tied(self) {
            let worth = |merge: &Merge<B>, head: (Ktime, u8, usize)| {
                let event = merge
                    .chains
                    .get(head.2)
                    .and_then(|chain| chain.ready.last());
                event.map_or(u8::MAX, &misfit)
            };
            let mut best = worth(self, first);
            let mut others = Vec::new();
            while best > 0 && tied(self) {
                let Some(Reverse(head)) = self.heads.pop() else {
                    break;
                };
                let other = worth(self, head);
                if other < best {
                    others.push(std::mem::replace(&mut first, head));
                    best = other;
                } else {
                    others.push(head);
                }
            }
            self.heads.extend(others.into_iter().map(Reverse));
        }
        let at = first.2;
        let event = self.chains.get_mut(at)?.ready.pop()?;
        self.renew(at);
        Some(event)
    }

    /// Reads blocks of a stream until its next event is certain, and enters it.
    fn renew(&mut self, at: usize) {
        let Some(chain) = self.chains.get_mut(at) else {
            return;
        };
        loop {
            let least = chain.blocks.as_slice().first().map(|(_, least)| *least);
            match (chain.ready.last(), least) {
                // Written before all that is to come, so first at equal times too.
                (Some(event), Some(least)) if event.time() <= least => break,
                (Some(_), None) => break,
                (None, None) => return,
                _ => {}
            }
            let Some((block, _)) = chain.blocks.next() else {
                return;
            };
            let mut events = Vec::new();
            self.source.read(block.key, &mut events);
            for event in events.iter().filter(|event| from_ring(event)) {
                let back = chain.latest.since(event.time());
                self.largest_inversion = self.largest_inversion.max(back);
                chain.latest = chain.latest.max(event.time());
            }
            // Stable, on the reverse of both: what was written first stays first.
            let waiting = std::mem::take(&mut chain.ready);
            let mut all: Vec<Event> = waiting.into_iter().rev().chain(events).collect();
            all.sort_by_key(Event::time);
            all.reverse();
            chain.ready = all;
        }
        if let Some(event) = chain.ready.last() {
            self.heads.push(Reverse((event.time(), rank(event), at)));
        }
    }
}

/// The blocks of a trace.
pub struct TraceBlocks<'a> {
    trace: &'a Trace,
    block: SchedBlock,
    clocks: Option<&'a Clocks>,
    /// Frames that could not be read, and why.
    pub unreadable: Vec<Error>,
}

impl Blocks for TraceBlocks<'_> {
    type Key = FrameInfo;

    fn read(&mut self, frame: FrameInfo, into: &mut Vec<Event>) {
        let before = into.len();
        let result = match frame.stream {
            Stream::Cpu(cpu) => self.trace.read_sched(&frame, &mut self.block).map(|()| {
                into.extend(self.block.iter().map(|event| Event::Sched(cpu, event)));
            }),
            Stream::Lifecycle | Stream::Recorder => {
                let mut events = Vec::new();
                let result = self.trace.read_life(&frame, &mut events);
                into.extend(events.into_iter().map(Event::Life));
                result
            }
        };
        if let Err(error) = result {
            self.unreadable.push(error);
            into.push(Event::Life(self.trace.gap_of(&frame)));
        }
        if let Some(clocks) = self.clocks {
            for event in into.iter_mut().skip(before) {
                match event {
                    Event::Sched(cpu, event) => event.time = clocks.correct(*cpu, event.time),
                    Event::Life(event) => clocks.correct_life(event),
                }
            }
        }
    }
}

/// All events of a trace in order, those that it lacks told as losses; with
/// their times corrected, if there is something to correct.
pub fn merge<'a>(trace: &'a Trace, clocks: Option<&'a Clocks>) -> Merge<TraceBlocks<'a>> {
    let mut streams: BTreeMap<Stream, Vec<Block<FrameInfo>>> = BTreeMap::new();
    for frame in trace.frames() {
        streams.entry(frame.stream).or_default().push(Block {
            min: clocks.map_or(frame.min, |clocks| clocks.earliest(frame.stream, frame.min)),
            key: *frame,
        });
    }
    let source = TraceBlocks {
        trace,
        block: SchedBlock::default(),
        clocks,
        unreadable: Vec::new(),
    };
    let mut merge = Merge::new(source, streams.into_values().collect());
    merge.tolerance = clocks.map_or(0, Clocks::tolerance);
    merge
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tr_format::event::Tid;

    use super::*;

    /// Blocks in memory; a block's key is its place.
    struct Memory(Vec<Vec<Event>>);

    impl Blocks for Memory {
        type Key = usize;

        fn read(&mut self, key: usize, into: &mut Vec<Event>) {
            into.append(&mut self.0[key]);
        }
    }

    fn waking(cpu: u16, time: u64, id: u32) -> Event {
        let kind = SchedKind::Waking {
            waker: Tid(0),
            wakee: Tid(id),
            irq: false,
            new: false,
            vfork: false,
        };
        Event::Sched(
            CpuId(cpu),
            SchedEvent {
                time: Ktime(time),
                kind,
            },
        )
    }

    proptest! {
        /// However late events are written, the merge is a stable sort.
        #[test]
        fn any_blocks_come_out_sorted(
            streams in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(0u64..50, 1..6), 0..8),
                0..5,
            )
        ) {
            let (mut blocks, mut chains, mut expected, mut id) = (Vec::new(), Vec::new(), Vec::new(), 0);
            for (cpu, stream) in streams.iter().enumerate() {
                let mut chain = Vec::new();
                for times in stream {
                    let events: Vec<Event> = times.iter().map(|t| { id += 1; waking(cpu as u16, *t, id) }).collect();
                    chain.push(Block { min: Ktime(*times.iter().min().unwrap()), key: blocks.len() });
                    expected.extend(events.iter().cloned());
                    blocks.push(events);
                }
                chains.push(chain);
            }
            // Stable: equal times keep stream order, then writing order.
            expected.sort_by_key(Event::time);
            let mut merge = Merge::new(Memory(blocks), chains);
            let merged: Vec<Event> = std::iter::from_fn(|| merge.next_event()).collect();
            prop_assert_eq!(merged, expected);
        }
    }

    #[test]
    fn blocks_are_read_no_sooner_than_needed() {
        let blocks: Vec<Vec<Event>> = (0..100).map(|n| vec![waking(0, n, n as u32)]).collect();
        let chain = (0..100)
            .map(|n| Block {
                min: Ktime(n),
                key: n as usize,
            })
            .collect();
        let mut merge = Merge::new(Memory(blocks), vec![chain]);
        for _ in 0..50 {
            merge.next_event();
        }
        let unread = merge
            .source()
            .0
            .iter()
            .filter(|block| !block.is_empty())
            .count();
        assert!(unread >= 48, "{unread}");
    }
}
