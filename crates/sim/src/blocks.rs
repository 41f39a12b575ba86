//! Cuts the event rings of a simulated recording into blocks, in the order in which a trace file
//! contains them.

use std::collections::{HashMap, VecDeque};

use tr_format::event::{CpuId, LifeEvent, LifeKind, SchedEvent, Stream};

use crate::draw::Draw;
use crate::recording::{Recording, Written};

/// The events of a block of a simulated trace file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Events {
    /// Scheduling events of one simulated CPU, which form a block of the trace file.
    Sched(Vec<SchedEvent>),
    /// Events of the lifecycle stream (fork, exec, exit) or of the recorder's own stream, which
    /// form a block of the trace file.
    Life(Vec<LifeEvent>),
}

/// One block of events in a simulated trace file. All events of a block belong to one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The stream to which the block's events belong: that of a simulated CPU, the lifecycle stream
    /// or the recorder's.
    pub stream: Stream,
    /// The number of the block within its stream, from 0.
    pub seq: u32,
    /// The events of the block, in the order in which they were written.
    pub events: Events,
}

/// The order in which blocks of different streams come in a simulated trace file. The blocks of one
/// stream always keep their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Blocks come in the order in which a recorder writes them: each block when it is full, and all open blocks before
    /// each watermark (an event that says that all earlier events are in the file).
    Written,
    /// Blocks come in a random order. Only a recording with a summary may have this order. Without a summary, a reader
    /// relies on watermarks: all events before a watermark's time must be earlier in the file. A random order breaks
    /// this rule.
    Any,
    /// The blocks are ordered by stream: all blocks of one stream come before all blocks of the next stream. Only a
    /// recording with a summary may have this order, for the same reason as with [`Order::Any`].
    ByStream,
}

/// How a simulated recording is cut into blocks of a trace file: their sizes and their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The largest number of events in a block of the simulated trace file.
    pub largest: u32,
    /// The order in which blocks of different streams come in the simulated trace file.
    pub order: Order,
    /// The seed for the random sizes of blocks (1 to `largest` events) and for their random order.
    pub seed: u64,
}

/// Cuts a part of a ring of simulated events into blocks. `push` gets the true time in ns at which
/// each block is written, and its events.
fn cut_ring<E: Clone>(
    ring: &[Written<E>],
    largest: u32,
    draw: &mut Draw,
    mut push: impl FnMut(u64, Vec<E>),
) {
    let mut rest = ring;
    while !rest.is_empty() {
        let size = (1 + draw.below(largest.max(1)) as usize).min(rest.len());
        let (block, more) = rest.split_at(size);
        rest = more;
        let full = block.last().map_or(0, |last| last.at);
        push(
            full,
            block.iter().map(|written| written.event.clone()).collect(),
        );
    }
}

impl Recording {
    /// The blocks of the simulated recording, in the order in which the trace file contains them.
    pub fn blocks(&self, cut: &Cut) -> Vec<Block> {
        let mut draw = Draw::new(cut.seed);
        let mut blocks: Vec<(u64, Block)> = Vec::new();
        let mut cpus: Vec<&[Written<SchedEvent>]> = self.cpus.iter().map(Vec::as_slice).collect();
        let mut life = self.life.as_slice();
        let mut recorder = self.recorder.as_slice();
        // Each pass of the loop makes the blocks up to the next watermark (`progress`), before which a recorder writes
        // all open blocks. The last pass makes the blocks after the last watermark.
        loop {
            let progress = recorder
                .iter()
                .position(|written| written.event.kind == LifeKind::Watermark);
            let until = progress
                .and_then(|i| recorder.get(i))
                .map_or(u64::MAX, |w| w.at);
            let first = blocks.len();
            let mut push = |full, stream, events| {
                let seq = 0;
                blocks.push((
                    full,
                    Block {
                        stream,
                        seq,
                        events,
                    },
                ));
            };
            for (cpu, ring) in (0..).zip(&mut cpus) {
                let (part, rest) =
                    ring.split_at(ring.partition_point(|written| written.at < until));
                *ring = rest;
                cut_ring(part, cut.largest, &mut draw, |full, events| {
                    push(full, Stream::Cpu(CpuId(cpu)), Events::Sched(events));
                });
            }
            let (part, rest) = life.split_at(life.partition_point(|written| written.at < until));
            life = rest;
            cut_ring(part, cut.largest, &mut draw, |full, events| {
                push(full, Stream::Lifecycle, Events::Life(events));
            });
            let (part, rest) = recorder.split_at(progress.map_or(recorder.len(), |i| i + 1));
            recorder = rest;
            cut_ring(part, cut.largest, &mut draw, |_, events| {
                push(u64::MAX, Stream::Recorder, Events::Life(events));
            });
            blocks[first..].sort_by_key(|(full, _)| *full);
            if progress.is_none() {
                break;
            }
        }
        match cut.order {
            Order::Written => {}
            Order::ByStream => blocks.sort_by_key(|(_, block)| block.stream),
            Order::Any => shuffle(&mut blocks, &mut draw),
        }
        let mut seqs = HashMap::new();
        let numbered = blocks.into_iter().map(|(_, mut block)| {
            let next = seqs.entry(block.stream).or_insert(0);
            block.seq = *next;
            *next += 1;
            block
        });
        numbered.collect()
    }
}

/// Brings the blocks of different streams into a random order. The blocks of one stream keep their
/// order.
fn shuffle(blocks: &mut [(u64, Block)], draw: &mut Draw) {
    let mut streams: Vec<Stream> = blocks.iter().map(|(_, block)| block.stream).collect();
    for i in (1..streams.len()).rev() {
        streams.swap(i, draw.below(i as u32 + 1) as usize);
    }
    // `streams` is now a random sequence of streams. The k-th block of a stream goes to the place where the stream
    // occurs for the k-th time, so that the blocks of one stream keep their order.
    let mut places: HashMap<Stream, VecDeque<usize>> = HashMap::new();
    for (place, stream) in streams.iter().enumerate() {
        places.entry(*stream).or_default().push_back(place);
    }
    let mut place = |block: &Block| places.get_mut(&block.stream)?.pop_front();
    let placed = blocks.iter().map(|(_, block)| place(block).unwrap_or(0));
    let mut order: Vec<usize> = placed.collect();
    for i in 0..blocks.len() {
        while order[i] != i {
            let to = order[i];
            blocks.swap(i, to);
            order.swap(i, to);
        }
    }
}
