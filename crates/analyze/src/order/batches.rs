//! Reads blocks, many at once, and sorts the events that nothing can come
//! before any more.
//!
//! Which blocks are read when depends on their headers alone, so the runs are
//! the same for any number of threads.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use tr_format::event::{Ktime, LifeEvent, Stream};
use tr_format::sched::{flag, SchedBlock};
use tr_format::Error;

use super::blocks::{Block, Blocks, Content, Counts, Loaded, Rest, Spare};
use super::sort::Sorter;
use super::{nothing, Record, LIFE};

/// About how many events a batch reads at most: several full blocks for the threads to
/// share, and no more, for they are to stay in a cache until they are gone through.
pub const EVENTS: u64 = 1 << 17;
/// Most blocks of a batch, however few events they have.
const BLOCKS: usize = 1 << 12;
/// So many blocks are enough for the threads to share: a part of a batch's events will do
/// then.
const ENOUGH: usize = 32;
/// That part: an eighth.
const PART: u64 = 8;
/// How many runs are cut of a batch of [`EVENTS`], about: one is sorted in a core's second
/// cache. Smaller batches have fewer runs, not smaller ones.
const SLICES: u64 = 16;
/// How many events of a run are looked at to find where to cut, about.
const SAMPLES: usize = 64;

/// Sorted events: all that are not in a run before, up to a time.
#[derive(Debug, Default)]
pub struct SortedRun {
    pub(super) records: Vec<Record>,
    pub(super) lives: Vec<LifeEvent>,
    /// Nothing of a later run is before this time; `None`: this is the last one.
    pub(super) limit: Option<u64>,
}

/// Where an event is: which chain, which block of that, which event.
type Place = (usize, usize, usize);

/// A stream, as far as it has been read.
#[derive(Debug)]
struct Chain {
    /// Its place among all streams.
    stream: u32,
    rest: VecDeque<Rest>,
    /// The largest time that a ring's event has had so far.
    latest: u64,
}

/// The place of a stream among all.
fn place(stream: Stream) -> u32 {
    match stream {
        Stream::Cpu(cpu) => u32::from(cpu.0),
        Stream::Lifecycle => 1 << 16,
        Stream::Recorder => (1 << 16) + 1,
    }
}

/// Brings the events of all streams, sorted.
#[derive(Debug)]
pub struct Batches<B: Blocks> {
    source: B,
    chains: Vec<Chain>,
    /// ActorRef the smallest time of each block and all behind it in its stream: that
    /// time, the stream, the block.
    queue: Vec<(Ktime, usize, Block<B::Key>)>,
    next: usize,
    /// Events read, and all.
    read: u64,
    all: u64,
    batch: u64,
    largest_inversion: u64,
    counts: Counts,
    unreadable: BTreeMap<u64, Error>,
    /// Memory for blocks and runs to come.
    blocks: Spare,
    runs: Mutex<Vec<SortedRun>>,
}

impl<B: Blocks> Batches<B> {
    /// Of streams that are each a chain of blocks; batches of about `batch` events each.
    pub fn new(source: B, streams: BTreeMap<Stream, Vec<Block<B::Key>>>, batch: u64) -> Batches<B> {
        let (mut chains, mut queue) = (Vec::new(), Vec::new());
        for (at, (stream, blocks)) in streams.into_iter().enumerate() {
            let mut least = Ktime(u64::MAX);
            let first = queue.len();
            for block in blocks.into_iter().rev() {
                least = least.min(block.min);
                queue.push((least, at, block));
            }
            if let Some(blocks) = queue.get_mut(first..) {
                blocks.reverse();
            }
            chains.push(Chain {
                stream: place(stream),
                rest: VecDeque::new(),
                latest: 0,
            });
        }
        // Stable: the blocks of a stream stay in their order.
        queue.sort_by_key(|(least, ..)| *least);
        let all = queue.iter().map(|(.., block)| block.events).sum();
        Batches {
            source,
            chains,
            queue,
            next: 0,
            read: 0,
            all,
            batch,
            largest_inversion: 0,
            counts: Counts::default(),
            unreadable: BTreeMap::new(),
            blocks: Spare::default(),
            runs: Mutex::default(),
        }
    }

    /// The largest step back in time inside one ring so far, in ns. The
    /// recorder's own words, which tell of the past, are none.
    pub fn largest_inversion(&self) -> u64 {
        self.largest_inversion
    }

    /// How many scheduling events have been read.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Which frames could not be read so far, and why.
    pub fn unreadable(&self) -> impl Iterator<Item = &Error> {
        self.unreadable.values()
    }

    /// How many events the blocks have that have been read, and how many there are.
    pub fn progress(&self) -> (u64, u64) {
        (self.read, self.all)
    }

    /// Takes a run's memory for another one.
    pub fn spare(&self, run: SortedRun) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.push(run);
    }

    /// The next runs, in order; `None` at the end.
    pub fn next_batch(&mut self) -> Option<Vec<SortedRun>> {
        loop {
            let ended = self.next >= self.queue.len();
            if ended && self.chains.iter().all(|chain| chain.rest.is_empty()) {
                return None;
            }
            self.load();
            let limit = self.queue.get(self.next).map(|(least, ..)| least.0);
            let runs = self.cut(limit);
            if !runs.is_empty() {
                return Some(runs);
            }
        }
    }

    /// Reads the next blocks.
    fn load(&mut self) {
        let rest = self.queue.get(self.next..).unwrap_or_default();
        let (mut events, mut count) = (0, 0);
        for (.., block) in rest.iter().take(BLOCKS) {
            let most = match count < ENOUGH {
                true => self.batch,
                false => self.batch / PART,
            };
            if events >= most {
                break;
            }
            (events, count) = (events + block.events, count + 1);
        }
        let now = rest.get(..count).unwrap_or_default();
        let (source, blocks) = (&self.source, &self.blocks);
        let loaded: Vec<Loaded> = now
            .par_iter()
            .with_max_len(1)
            .map(|(.., block)| Loaded::new(source.read(&block.key, blocks)))
            .collect();
        for ((_, chain, _), loaded) in now.iter().zip(loaded) {
            let Some(chain) = self.chains.get_mut(*chain) else {
                continue;
            };
            let back = loaded.back.max(chain.latest.saturating_sub(loaded.least));
            self.largest_inversion = self.largest_inversion.max(back);
            chain.latest = chain.latest.max(loaded.most);
            self.counts.add(&loaded.counts);
            self.unreadable.extend(loaded.error);
            chain.rest.push_back(loaded.events);
        }
        self.next += count;
        self.read += events;
    }

    /// Takes what is before `limit` from what has been read, sorted.
    fn cut(&mut self, limit: Option<u64>) -> Vec<SortedRun> {
        let before = |time: u64| limit.is_none_or(|limit| time < limit);
        let (mut places, mut life) = (Vec::<Place>::new(), Vec::new());
        let mut pieces = Vec::new();
        for (nth, chain) in self.chains.iter().enumerate() {
            for (block, rest) in chain.rest.iter().enumerate() {
                let Rest::Life(lives) = rest else { continue };
                let certain = lives.rest().iter().take_while(|(time, _)| before(*time));
                for (time, event) in certain {
                    life.push(Record {
                        time: *time,
                        from: u32::try_from(places.len()).unwrap_or(u32::MAX),
                        to: chain.stream,
                        flags: LIFE,
                        ..Record::default()
                    });
                    places.push((nth, block, *event));
                }
            }
        }
        // Stable: those of a stream with equal times stay in the order of their writing.
        life.sort_by_key(|record| record.time);
        for chain in &self.chains {
            for rest in &chain.rest {
                let Rest::Sched(block, at) = rest else {
                    continue;
                };
                let times = block.time.get(*at..).unwrap_or_default();
                let count = times.partition_point(|time| before(*time));
                if count > 0 {
                    pieces.push(Piece {
                        block,
                        start: *at,
                        end: at + count,
                    });
                }
            }
        }
        let run = usize::try_from(self.batch / SLICES).unwrap_or(usize::MAX);
        let cuts = cuts(&pieces, &life, run.max(1));
        let runs = &self.runs;
        let spare = || {
            let mut runs = runs.lock().unwrap_or_else(PoisonError::into_inner);
            runs.pop().unwrap_or_default()
        };
        let spans: Vec<(u64, Option<u64>)> = std::iter::once(0)
            .chain(cuts.iter().copied())
            .zip(cuts.iter().copied().map(Some).chain([limit]))
            .collect();
        let mut done: Vec<SortedRun> = spans
            .par_iter()
            .with_max_len(1)
            .map(|span| {
                let SortedRun {
                    records, mut lives, ..
                } = spare();
                lives.clear();
                SortedRun {
                    records: sorted(&pieces, &life, *span, records),
                    lives,
                    limit: span.1,
                }
            })
            .collect();
        share(&mut done, &mut self.chains, &places);
        done.retain(|run| !run.records.is_empty());
        for chain in &mut self.chains {
            for rest in &mut chain.rest {
                match rest {
                    Rest::Sched(block, at) => {
                        let times = block.time.get(*at..).unwrap_or_default();
                        *at += times.partition_point(|time| before(*time));
                    }
                    Rest::Life(lives) => {
                        lives.at += lives.rest().partition_point(|(time, _)| before(*time));
                    }
                }
            }
            while chain.rest.front().is_some_and(Rest::is_empty) {
                match chain.rest.pop_front() {
                    Some(Rest::Sched(block, _)) => self.blocks.put(Content::Sched(block)),
                    Some(Rest::Life(lives)) => self.blocks.put(Content::Life(lives.events)),
                    None => {}
                }
            }
        }
        done
    }
}

/// Gives each run its lifecycle events.
fn share(runs: &mut [SortedRun], chains: &mut [Chain], places: &[Place]) {
    if places.is_empty() {
        return;
    }
    let mut take = |record: &Record| {
        let (chain, block, event) = *places.get(record.from as usize)?;
        match chains.get_mut(chain)?.rest.get_mut(block)? {
            Rest::Life(lives) => {
                let event = lives.events.get_mut(event)?;
                Some(std::mem::replace(event, nothing()))
            }
            Rest::Sched(..) => None,
        }
    };
    for run in runs {
        for record in run.records.iter_mut().filter(|r| r.flags == LIFE) {
            let event = take(record);
            record.from = u32::try_from(run.lives.len()).unwrap_or(u32::MAX);
            run.lives.extend(event);
        }
    }
}

/// A part of a block.
struct Piece<'a> {
    block: &'a SchedBlock,
    start: usize,
    end: usize,
}

/// Times at which to cut, so that there are about `run` events in each.
fn cuts(pieces: &[Piece], life: &[Record], run: usize) -> Vec<u64> {
    let count = life.len()
        + pieces
            .iter()
            .map(|piece| piece.end - piece.start)
            .sum::<usize>();
    let parts = count / run;
    if parts < 2 {
        return Vec::new();
    }
    let step = (run / SAMPLES).max(1);
    let mut samples: Vec<u64> = Vec::new();
    for piece in pieces {
        let places = (piece.start + step / 2..piece.end).step_by(step);
        samples.extend(places.filter_map(|at| piece.block.time.get(at)));
    }
    let places = (step / 2..life.len()).step_by(step);
    samples.extend(
        places
            .filter_map(|at| life.get(at))
            .map(|record| record.time),
    );
    samples.sort_unstable();
    let at = |part: usize| samples.get(part * samples.len() / parts).copied();
    let mut cuts: Vec<u64> = (1..parts).filter_map(at).collect();
    cuts.dedup();
    cuts
}

/// The events in a span of time, sorted, in the memory of `records`.
fn sorted(
    pieces: &[Piece],
    life: &[Record],
    (from, to): (u64, Option<u64>),
    mut records: Vec<Record>,
) -> Vec<Record> {
    thread_local! {
        static SORTER: RefCell<Sorter> = RefCell::default();
    }
    let span = |times: &dyn Fn(u64) -> usize, len: usize| {
        let start = times(from).min(len);
        start..to.map_or(len, times).clamp(start, len)
    };
    records.clear();
    let (mut least, mut most, mut parts) = (u64::MAX, 0, 0);
    let mut has = |part: Option<(u64, u64)>| {
        if let Some((first, last)) = part {
            (least, most) = (least.min(first), most.max(last));
            parts += 1;
        }
    };
    for piece in pieces {
        let times = piece
            .block
            .time
            .get(piece.start..piece.end)
            .unwrap_or_default();
        let part = span(&|time| times.partition_point(|t| *t < time), times.len());
        let (start, end) = (piece.start + part.start, piece.start + part.end);
        let times = times.get(part).unwrap_or_default();
        has(times.first().copied().zip(times.last().copied()));
        append(piece.block, start, end, &mut records);
    }
    let part = span(
        &|time| life.partition_point(|record| record.time < time),
        life.len(),
    );
    let part = life.get(part).unwrap_or_default();
    has(part.first().zip(part.last()).map(|(a, b)| (a.time, b.time)));
    records.extend(part);
    // Each part is sorted.
    if parts > 1 {
        SORTER.with_borrow_mut(|sorter| sorter.sort(&mut records, (least, most)));
    }
    records
}

/// Appends events of a block.
fn append(block: &SchedBlock, start: usize, end: usize, records: &mut Vec<Record>) {
    let cpu = block.cpu.0;
    let columns = (
        block.time.get(start..end),
        block.from.get(start..end),
        block.to.get(start..end),
        block.state.get(start..end),
        block.flags.get(start..end),
    );
    let (Some(time), Some(from), Some(to), Some(state), Some(flags)) = columns else {
        return; // all columns have the same length
    };
    let rest = from.iter().zip(to).zip(state.iter().zip(flags));
    records.extend(
        time.iter()
            .zip(rest)
            .map(|(time, ((from, to), (state, flags)))| Record {
                time: *time,
                from: *from,
                to: *to,
                state: *state,
                cpu,
                // A flag of a later version must not look like ours.
                flags: *flags & flag::ALL,
            }),
    );
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tr_format::event::{CpuId, SchedEvent, SchedKind, Tid};

    use super::super::blocks::Read;
    use super::super::{Event, Merge};
    use super::*;

    /// Blocks in memory; a block's key is its place.
    struct Memory {
        blocks: Vec<SchedBlock>,
        read: Mutex<usize>,
    }

    impl Memory {
        fn new(blocks: Vec<SchedBlock>) -> Memory {
            let read = Mutex::default();
            Memory { blocks, read }
        }
    }

    impl Blocks for Memory {
        type Key = usize;

        fn read(&self, key: &usize, _: &Spare) -> Read {
            *self.read.lock().unwrap() += 1;
            Read {
                content: Content::Sched(self.blocks[*key].clone()),
                error: None,
            }
        }
    }

    fn waking(time: u64, id: u32) -> SchedEvent {
        let kind = SchedKind::Waking {
            waker: Tid(0),
            wakee: Tid(id),
            irq: false,
            new: false,
            vfork: false,
        };
        SchedEvent {
            time: Ktime(time),
            kind,
        }
    }

    fn block(cpu: u16, events: impl IntoIterator<Item = SchedEvent>) -> SchedBlock {
        let mut block = SchedBlock {
            cpu: CpuId(cpu),
            ..SchedBlock::default()
        };
        events.into_iter().for_each(|event| block.push(event));
        block
    }

    proptest! {
        /// However late events are written, and however much is read at once,
        /// the merge is a stable sort.
        #[test]
        fn any_blocks_come_out_sorted(
            streams in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(0u64..50, 1..6), 0..8),
                0..5,
            ),
            batch in 1u64..40,
        ) {
            let (mut blocks, mut chains, mut expected, mut id) = (Vec::new(), BTreeMap::new(), Vec::new(), 0);
            for (cpu, stream) in streams.iter().enumerate() {
                let mut chain = Vec::new();
                for times in stream {
                    let events: Vec<_> = times.iter().map(|t| { id += 1; waking(*t, id) }).collect();
                    chain.push(Block {
                        min: Ktime(*times.iter().min().unwrap()),
                        events: times.len() as u64,
                        key: blocks.len(),
                    });
                    expected.extend(events.iter().map(|event| (CpuId(cpu as u16), *event)));
                    blocks.push(block(cpu as u16, events));
                }
                chains.insert(Stream::Cpu(CpuId(cpu as u16)), chain);
            }
            // Stable: equal times keep stream order, then writing order.
            expected.sort_by_key(|(_, event)| event.time);
            let mut merge = Merge::new(Batches::new(Memory::new(blocks), chains, batch));
            let mut merged = Vec::new();
            while let Some(Event::Sched(cpu, event)) = merge.next_event() {
                merged.push((cpu, event));
            }
            prop_assert_eq!(merged, expected);
        }
    }

    #[test]
    fn blocks_are_read_no_sooner_than_needed() {
        let blocks = (0..100).map(|n| block(0, [waking(n, n as u32)])).collect();
        let chain = (0..100)
            .map(|n| Block {
                min: Ktime(n),
                events: 1,
                key: n as usize,
            })
            .collect();
        let streams = BTreeMap::from([(Stream::Cpu(CpuId(0)), chain)]);
        let mut merge = Merge::new(Batches::new(Memory::new(blocks), streams, 4));
        for _ in 0..50 {
            merge.next_event();
        }
        let read = *merge.batches.source.read.lock().unwrap();
        assert!((50..=58).contains(&read), "{read}");
    }
}
