//! Unit tests of `batches`.

use std::sync::Mutex;

use proptest::prelude::*;
use tr_format::event::{Context, CpuId, SchedEvent, SchedKind, Tid, Waking};

use super::super::blocks::Read;
use super::super::{Event, Merge};
use super::*;

/// A source of blocks in memory, in which the key of a block is its index.
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
    let kind = SchedKind::Waking(Waking {
        waker: Tid(0),
        wakee: Tid(id),
        context: Context::Task,
        new: false,
        vfork: false,
    });
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
    /// However late events are written, and however many are read at once, the merged events are in the order of a
    /// stable sort.
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
        // The sort is stable: events with equal times stay in the order of the streams, and within a stream in the
        // order of writing.
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
