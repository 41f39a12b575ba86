//! Reads blocks in batches, in parallel, and sorts the events that no later block can precede into runs.
//!
//! The order of reading depends on the headers of the blocks alone, so the runs are the same
//! for any number of threads.

use rayon::prelude::*;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use tr_format::event::{Ktime, LifeEvent, Stream};
use tr_format::sched::{flag, SchedBlock};
use tr_format::Error;

use super::blocks::{Block, Blocks, Content, Counts, Loaded, Pool, Rest, Spare};
use super::sort::{by_time, Sorter};
use super::{nothing, Record, LIFE};

/// The approximate number of events that are read at once. So many events fill several blocks, which the threads share,
/// but they still fit into a CPU cache until the tracker has taken them.
pub const EVENTS: u64 = 1 << 17;
/// The largest number of blocks that are read as one batch, however few events they have.
const BLOCKS: usize = 1 << 12;
/// The number of blocks in a batch that is enough work for all threads, so that the batch is complete even with
/// fewer events. A guess; it changes only the speed, never the order.
const ENOUGH_BLOCKS: usize = 32;
/// A divisor: if a batch has [`ENOUGH_BLOCKS`] blocks, the batch is already complete with one eighth of [`EVENTS`]
/// events. Measured: such smaller batches stay in a cache, and builds on 64 CPUs were analyzed 12 % faster.
const BATCH_PART: u64 = 8;
/// The approximate number of sorted runs (lists of events sorted by time) into which a batch of [`EVENTS`] events is
/// cut, so that a core can sort one run in its second-level cache. A smaller batch is cut into fewer runs of the same
/// size.
const RUNS: u64 = 16;
/// The approximate number of events that are sampled for each sorted run (a list of events sorted by time). The times
/// of these events decide where a batch of events is cut into runs.
const SAMPLES: usize = 64;

/// A sorted run of events: all events after the previous run, up to a time.
#[derive(Debug, Default)]
pub struct SortedRun {
    pub(super) records: Vec<Record>,
    pub(super) lives: Vec<LifeEvent>,
    /// The sorted runs of events after this one have no events before this time, in ns; `None` for the last run.
    pub(crate) limit: Option<u64>,
}

/// The place of an event that was read, as three indices: the chain of its stream, the block in the chain, and the
/// event in the block.
type Place = (usize, usize, usize);

/// The blocks of one stream that have been read, with the events that are not yet in a sorted run (a list of events
/// sorted by time).
#[derive(Debug)]
struct Chain {
    /// The number of the stream whose blocks these are: the number of the CPU, or a higher number for another stream.
    stream: u32,
    rest: VecDeque<Rest>,
    /// The largest time in ns of the stream's events that have been read so far. Events that the recorder itself made
    /// are not counted.
    latest: u64,
}

fn place(stream: Stream) -> u32 {
    match stream {
        Stream::Cpu(cpu) => u32::from(cpu.0),
        Stream::Lifecycle => 1 << 16,
        Stream::Recorder => (1 << 16) + 1,
    }
}

/// Reads the blocks of all streams of a trace, and returns their events in sorted runs (lists of events sorted by
/// time).
#[derive(Debug)]
pub struct Batches<B: Blocks> {
    source: B,
    chains: Vec<Chain>,
    /// All blocks, sorted by time; those from the index `next` on are not read yet. Each entry has the smallest time of
    /// the block and of all later blocks of its stream, the index of the stream's chain in `chains`, and the block.
    queue: Vec<(Ktime, usize, Block<B::Key>)>,
    next: usize,
    read: u64,
    /// The number of all events in the source.
    all: u64,
    batch: u64,
    /// The largest step back in time inside one stream so far, in ns. The recorder's own events are not counted,
    /// because some of them have times in the past.
    pub(crate) largest_inversion: u64,
    /// The numbers of scheduling events that have been read, by their kind.
    pub(crate) counts: Counts,
    unreadable: BTreeMap<u64, Error>,
    /// The memory of blocks whose events have been used, which is kept for reuse.
    blocks: Spare,
    runs: Pool<SortedRun>,
}

impl<B: Blocks> Batches<B> {
    /// Prepares to read the blocks of these streams in batches of about `batch` events.
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
        // The sort is stable, so the blocks of a stream stay in their order.
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
            runs: Pool::default(),
        }
    }

    /// The errors of the file's frames that could not be read so far.
    pub fn unreadable(&self) -> impl Iterator<Item = &Error> {
        self.unreadable.values()
    }

    /// The number of events that have been read so far, and the number of all events in the source.
    pub fn progress(&self) -> (u64, u64) {
        (self.read, self.all)
    }

    /// Takes back a sorted run of events that is no longer needed, so that its memory can be used again.
    pub fn spare(&self, run: SortedRun) {
        self.runs.put(run);
    }

    /// Reads blocks of events, and returns the next sorted runs, in the order of time; `None` if all events have
    /// been returned.
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

    fn load(&mut self) {
        let rest = self.queue.get(self.next..).unwrap_or_default();
        let (mut events, mut count) = (0, 0);
        for (.., block) in rest.iter().take(BLOCKS) {
            let most = if count < ENOUGH_BLOCKS {
                self.batch
            } else {
                self.batch / BATCH_PART
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

    /// Sorts those events that were read and are before the time `limit`, and cuts them into sorted runs: lists of
    /// events that follow each other in time.
    fn cut(&mut self, limit: Option<u64>) -> Vec<SortedRun> {
        let (life, places) = self.life_before(limit);
        let pieces = self.pieces_before(limit);
        let run = usize::try_from(self.batch / RUNS).unwrap_or(usize::MAX);
        let cuts = cuts(&pieces, &life, run.max(1));
        let spans: Vec<(u64, Option<u64>)> = std::iter::once(0)
            .chain(cuts.iter().copied())
            .zip(cuts.iter().copied().map(Some).chain([limit]))
            .collect();
        let spare = &self.runs;
        let mut done: Vec<SortedRun> = spans
            .par_iter()
            .with_max_len(1)
            .map(|span| {
                let used = spare.take();
                let mut lives = used.lives;
                lives.clear();
                SortedRun {
                    records: sorted(&pieces, &life, *span, used.records),
                    lives,
                    limit: span.1,
                }
            })
            .collect();
        share(&mut done, &mut self.chains, &places);
        done.retain(|run| !run.records.is_empty());
        self.pass(limit);
        done
    }

    /// Returns the lifecycle events and the recorder's events before the time `limit` that are not yet in a run. The
    /// first list has a compact record for each of these events, sorted by time. The second list has the places of
    /// these events in the blocks.
    fn life_before(&self, limit: Option<u64>) -> (Vec<Record>, Vec<Place>) {
        let (mut life, mut places) = (Vec::new(), Vec::new());
        for (nth, chain) in self.chains.iter().enumerate() {
            for (block, rest) in chain.rest.iter().enumerate() {
                let Rest::Life(lives) = rest else { continue };
                let rest = lives.rest().iter();
                for (time, event) in rest.take_while(|(time, _)| is_before(*time, limit)) {
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
        // The sort is stable, so events of a stream with equal times stay in the order of writing.
        by_time(&mut life);
        (life, places)
    }

    /// Returns, for each block of scheduling events, its events before the time `limit` that are not yet in a sorted
    /// run (a list of events sorted by time).
    fn pieces_before(&self, limit: Option<u64>) -> Vec<Piece<'_>> {
        let rest = self.chains.iter().flat_map(|chain| &chain.rest);
        let piece = |rest| match rest {
            &Rest::Sched(ref block, start) => Some(Piece {
                block,
                start,
                end: start + count_before(block, start, limit),
            }),
            Rest::Life(_) => None,
        };
        let pieces = rest.filter_map(piece);
        pieces.filter(|piece| piece.end > piece.start).collect()
    }

    /// Drops the events before the time `limit` from the blocks that were read, because these events are now in sorted
    /// runs (lists of events sorted by time).
    fn pass(&mut self, limit: Option<u64>) {
        for chain in &mut self.chains {
            for rest in &mut chain.rest {
                match rest {
                    Rest::Sched(block, at) => *at += count_before(block, *at, limit),
                    Rest::Life(lives) => {
                        let rest = lives.rest();
                        lives.at += rest.partition_point(|(time, _)| is_before(*time, limit));
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
    }
}

fn is_before(time: u64, limit: Option<u64>) -> bool {
    limit.is_none_or(|limit| time < limit)
}

/// The number of events of a sorted block from the index `at` on whose times are before `limit`.
fn count_before(block: &SchedBlock, at: usize, limit: Option<u64>) -> usize {
    let times = block.time.get(at..).unwrap_or_default();
    times.partition_point(|time| is_before(*time, limit))
}

/// Moves lifecycle events from the blocks in which they were read to the sorted runs (lists of events sorted by time)
/// that they belong to.
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

struct Piece<'a> {
    block: &'a SchedBlock,
    start: usize,
    end: usize,
}

/// Returns the times at which a batch of events is divided into sorted runs (lists of events sorted by time), so that
/// each run has about `run` events.
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

/// Sorts the events of the span of time from `from` to `to`, in the memory of `records`.
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
    // The events of each block are already sorted, so the list has to be sorted only if it has events of several
    // blocks.
    if parts > 1 {
        SORTER.with_borrow_mut(|sorter| sorter.sort(&mut records, (least, most)));
    }
    records
}

fn append(block: &SchedBlock, start: usize, end: usize, records: &mut Vec<Record>) {
    let cpu = block.cpu.0;
    let columns = (
        block.time.get(start..end),
        block.from.get(start..end),
        block.to.get(start..end),
        block.state.get(start..end),
        block.flags.get(start..end),
        block.reason.get(start..end),
        block.timeout.get(start..end),
    );
    let (Some(time), Some(from), Some(to), Some(state), Some(flags), Some(reason), Some(timeout)) =
        columns
    else {
        return; // all columns have the same length
    };
    let rest = state.iter().zip(flags).zip(reason.iter().zip(timeout));
    let rest = from.iter().zip(to).zip(rest);
    records.extend(time.iter().zip(rest).map(
        |(time, ((from, to), ((state, flags), (reason, timeout))))| Record {
            time: *time,
            from: *from,
            to: *to,
            state: *state,
            cpu,
            // Flags that only a later version of the format defines are cleared, because one of them could be equal to
            // [`LIFE`].
            flags: *flags & flag::ALL,
            reason: *reason,
            timeout: *timeout,
        },
    ));
}

#[cfg(test)]
#[path = "tests/batches.rs"]
mod tests;
