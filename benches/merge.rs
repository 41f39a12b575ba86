//! Measures the merging of streams whose decoded blocks are already in memory. Besides merging, the events are only
//! copied; the time for copying alone is printed, too. In the three measurements, none of the events, one in 1,000 and
//! one in 50 is written late: up to 10 ms later events of its stream come before it.
//!
//! `cargo bench -p tr-analyze --bench merge [-- EVENTS]`; by default 2 million.
#![allow(clippy::expect_used)]

use std::collections::BTreeMap;
use std::time::Instant;

use tr_analyze::order::batches::{self, Batches};
use tr_analyze::order::blocks::{Block, Blocks, Content, Read, Spare};
use tr_analyze::order::Merge;
use tr_format::event::{CpuId, Ktime, Reason, SchedEvent, SchedKind, Stream, Switch, Tid, Timeout};
use tr_format::sched::SchedBlock;

/// The number of runs of each measurement; their median is printed.
const RUNS: usize = 3;
/// The number of events in a block: on a busy machine, and on a quiet one.
const BLOCKS: [usize; 2] = [1 << 14, 1 << 8];
/// The rates of late events: none, one of 1,000 events, and one of 50. A late event has a commit delay of up to
/// [`LATEST`] ns.
const LATE: [u64; 3] = [0, 1000, 50];
const LATEST: u64 = 10_000_000;
/// The mean interval between two events of a stream, in ns.
const STEP: u64 = 20_000;

/// Reproducible pseudo-random numbers.
struct Dice(u64);

impl Dice {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (self.0 >> 33) % below
    }
}

/// The blocks of all streams, in memory. A block's index in the list is also its key.
struct Memory(Vec<SchedBlock>);

impl Blocks for &Memory {
    type Key = usize;

    fn read(&self, at: &usize, spare: &Spare) -> Read {
        let mut copy = spare.sched.take();
        if let Some(block) = self.0.get(*at) {
            copy.clone_from(block);
        }
        Read {
            content: Content::Sched(copy),
            error: None,
        }
    }
}

/// Makes streams with `events` events together, in blocks of `block` events. One in `late` events is written late (has
/// a commit delay).
fn streams(streams: u16, events: usize, block: usize, late: u64) -> Memory {
    let mut dice = Dice(u64::from(streams));
    let mut blocks = Vec::new();
    for cpu in 0..streams {
        let mut now = LATEST;
        let mut left = events / usize::from(streams);
        while left > 0 {
            let count = left.min(block);
            left -= count;
            let mut one = SchedBlock {
                cpu: CpuId(cpu),
                ..SchedBlock::default()
            };
            for _ in 0..count {
                now += 1 + dice.next(2 * STEP);
                let late = if late > 0 && dice.next(late) == 0 {
                    dice.next(LATEST)
                } else {
                    0
                };
                let kind = SchedKind::Switch(Switch {
                    prev: Tid(dice.next(1000) as u32),
                    next: Tid(dice.next(1000) as u32),
                    prev_state: 1,
                    preempt: false,
                    iowait: false,
                    reason: Reason::Unknown,
                    timeout: Timeout::UNKNOWN,
                });
                one.push(SchedEvent {
                    time: Ktime(now - late),
                    kind,
                });
            }
            blocks.push(one);
        }
    }
    Memory(blocks)
}

fn merge(memory: &Memory) -> Merge<&Memory> {
    let mut chains: BTreeMap<Stream, Vec<Block<usize>>> = BTreeMap::new();
    for (at, block) in memory.0.iter().enumerate() {
        let (min, _) = block.span().expect("a block is never empty");
        chains
            .entry(Stream::Cpu(block.cpu))
            .or_default()
            .push(Block {
                min,
                events: block.len() as u64,
                key: at,
            });
    }
    Merge::new(Batches::new(memory, chains, batches::EVENTS))
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

fn main() {
    // `cargo test --benches` passes no `--bench`, and only checks that the benchmark works.
    let real = std::env::args().any(|arg| arg == "--bench");
    let number = std::env::args().skip(1).find_map(|arg| arg.parse().ok());
    let events: usize = number.unwrap_or(if real { 2_000_000 } else { 100_000 });
    println!(
        "{:>8} {:>10} {:>10} {:>12} | {:>8} {:>8} {:>8} {:>6}",
        "streams", "a block", "events", "steps back", "copy", "merge", "2 thr.", "ratio"
    );
    println!("{:>44} | {:>8} {:>8} {:>8}", "", "M/s", "M/s", "M/s");
    for late in LATE {
        for block in BLOCKS {
            for count in [2, 8, 64, 256] {
                measure(count, block, late, events);
            }
        }
    }
}

fn measure(count: u16, block: usize, late: u64, events: usize) {
    let memory = streams(count, events, block, late);
    let pairs = memory.0.iter().flat_map(|block| block.time.windows(2));
    let back = pairs.filter(|pair| pair.first() > pair.last()).count();
    let all: usize = memory.0.iter().map(SchedBlock::len).sum();
    let least = events - usize::from(count);
    // The number of late events is about this number, but not exactly: a late event is not counted if it is the first
    // one of a block or follows another late one.
    let expected = all.checked_div(late as usize).unwrap_or(0);
    let about = expected / 2..=expected * 3 / 2;
    assert!(all > least && about.contains(&back), "{all} {back}");
    // The merge returns all events, in order.
    let (mut sorted, mut seen, mut last) = (merge(&memory), 0, Ktime(0));
    while let Some(event) = sorted.next_event() {
        assert!(event.time() >= last, "event {seen}");
        (last, seen) = (event.time(), seen + 1);
    }
    assert_eq!(seen, all);

    let merging = || {
        let (mut merge, mut count) = (merge(&memory), 0);
        while merge.next_event().is_some() {
            count += 1;
        }
        assert_eq!(count, all);
    };
    let copying = || {
        let spare = Spare::default();
        for at in 0..memory.0.len() {
            spare.put((&memory).read(&at, &spare).content);
        }
    };
    let pool = |threads| {
        let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
        builder.build().expect("threads")
    };
    let (one, two) = (pool(1), pool(2));
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..RUNS {
        let [copy, alone, both] = &mut times;
        let time = |into: &mut Vec<f64>, what: &mut (dyn FnMut() + Send)| {
            let begun = Instant::now();
            what();
            into.push(begun.elapsed().as_secs_f64());
        };
        time(copy, &mut || copying());
        time(alone, &mut || one.install(merging));
        time(both, &mut || two.install(merging));
    }
    let [copy, alone, both] = times.map(median);
    let rate = |seconds: f64| all as f64 / seconds / 1e6;
    println!(
        "{count:>8} {block:>10} {all:>10} {back:>12} | {:>8.0} {:>8.1} {:>8.1} {:>6.2}",
        rate(copy),
        rate(alone),
        rate(both),
        alone / both
    );
}
