//! Measures the size of traces, compared with the entropy of their content, and the time for writing them with one
//! thread.
//!
//! `cargo bench -p tr-trace-format --bench encode [-- TRACE...]`
#![allow(clippy::expect_used)]

mod traces;

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Instant;

use tr_format::event::{LifeKind, Stream};
use tr_format::mask::Masked;
use tr_format::reader::Trace;
use tr_format::sched::{flag, SchedBlock};
use tr_format::source::Source;
use tr_format::writer::Writer;
use traces::{clock_time, cpu_time, workloads, Block, Workload};

/// Counts how often each value occurs, to compute the order-0 entropy in bits.
struct Order0<T>(HashMap<T, u64>);

impl<T: Hash + Eq> Order0<T> {
    fn new() -> Order0<T> {
        Order0(HashMap::new())
    }

    fn add(&mut self, value: T) {
        *self.0.entry(value).or_default() += 1;
    }

    fn bits(&self) -> f64 {
        let all = self.0.values().sum::<u64>() as f64;
        let bits = |n: &u64| *n as f64 * (all / *n as f64).log2();
        self.0.values().map(bits).sum()
    }
}

/// The order-0 entropy of scheduling events in bytes for each event, as a bound for the compressed size. The three
/// figures are those of the times, of the task ids, and of the classes of events (flags and state). A time is the
/// difference from the previous event's time. The sign and the highest four bits of the difference count as one value.
/// All lower bits count fully, because they are nearly random.
fn entropy(workload: &Workload) -> [f64; 3] {
    let (mut times, mut tasks, mut classes) = (Order0::new(), Order0::new(), Order0::new());
    let (mut low, mut events) = (0.0, 0.0);
    for block in &workload.blocks {
        let Block::Sched(block) = block else { continue };
        let mut before = block.time.first().copied().unwrap_or(0);
        for time in &block.time {
            let step = time.wrapping_sub(before) as i64;
            let bits = 64 - step.unsigned_abs().leading_zeros();
            let below = bits.saturating_sub(4);
            times.add((step < 0, bits, step.unsigned_abs() >> below));
            low += f64::from(below);
            before = *time;
        }
        block.to.iter().for_each(|task| tasks.add(*task));
        let flags = block.flags.iter().map(|flags| flags & flag::ALL);
        flags.zip(&block.state).for_each(|class| classes.add(class));
        events += block.len() as f64;
    }
    [times.bits() + low, tasks.bits(), classes.bits()].map(|bits| bits / 8.0 / events)
}

/// The bytes per event in the scheduling frames, and the bytes per event in all other frames.
fn sizes(workload: &Workload) -> (f64, f64) {
    let trace = Trace::open(Source::bytes(workload.file.clone())).expect("a trace");
    let (mut sched, mut life) = ((0.0, 0.0), (0.0, 0.0));
    for frame in trace.frames() {
        let sum = match frame.stream {
            Stream::Cpu(_) => &mut sched,
            _ => &mut life,
        };
        sum.0 += frame.bytes as f64;
        sum.1 += frame.events as f64;
    }
    (sched.0 / sched.1, life.0 / life.1)
}

/// The time in ns that the writer takes for each scheduling event.
fn speed(workload: &Workload, short: bool) -> f64 {
    let blocks: Vec<&SchedBlock> = workload
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::Sched(block) => Some(block),
            Block::Life(..) => None,
        })
        .collect();
    let mut least = vec![f64::MAX; blocks.len()];
    // All runs use one writer, because each writer determines only once in which steps the clock of the events
    // advances.
    let mut writer =
        Writer::new(std::io::sink(), &Masked::trusted(workload.meta.clone())).expect("a writer");
    let clock = clock_time();
    let begin = Instant::now();
    loop {
        for (block, least) in blocks.iter().zip(&mut least) {
            let start = cpu_time();
            for event in block.iter() {
                writer.sched(block.cpu, event).expect("an event");
            }
            writer.flush().expect("a block");
            *least = least.min(cpu_time() - start - clock);
        }
        if short || begin.elapsed().as_secs() >= 2 {
            break;
        }
    }
    let events: usize = blocks.iter().map(|block| block.len()).sum();
    least.iter().sum::<f64>() / events as f64
}

/// The bytes for each event if the trace is written again by the present codec. The recorder flushes at intervals, and
/// each flush ends the frames; here the events of `joined` intervals share a frame.
fn again(workload: &Workload, joined: usize) -> f64 {
    let mut writer =
        Writer::new(Vec::new(), &Masked::trusted(workload.meta.clone())).expect("a writer");
    let mut flushes = 0;
    for block in &workload.blocks {
        let before = flushes;
        match block {
            Block::Sched(block) => block
                .iter()
                .for_each(|event| writer.sched(block.cpu, event).expect("an event")),
            Block::Life(stream, events) => {
                for event in events {
                    let flushed = matches!(event.kind, LifeKind::Watermark);
                    flushes += usize::from(flushed);
                    if !flushed || flushes % joined == 0 {
                        writer
                            .life(*stream, Masked::trusted(event.clone()))
                            .expect("an event");
                    }
                }
            }
        }
        if flushes / joined > before / joined {
            writer.flush().expect("a block");
        }
    }
    let (bytes, _) = writer
        .finish(&Masked::trusted(Default::default()))
        .expect("a trace");
    bytes.len() as f64 / workload.events as f64
}

fn main() {
    let (all, short) = workloads();
    println!(
        "{:<28} {:>9} | {:>6} {:>6} {:>6} {:>6} | {:>6} {:>6} {:>6} {:>6} | {:>6}",
        "bytes an event",
        "events",
        "all",
        "4 in 1",
        "sched",
        "others",
        "H0",
        "times",
        "tasks",
        "classes",
        "ns"
    );
    for workload in &all {
        let [times, tasks, classes] = entropy(workload);
        let (sched, life) = sizes(workload);
        println!(
            "{:<28} {:>9} | {:>6.2} {:>6.2} {sched:>6.2} {life:>6.2} | {:>6.2} {times:>6.2} {tasks:>6.2} {classes:>6.2} | {:>6.1}",
            workload.name,
            workload.events,
            again(workload, 1),
            again(workload, 4),
            times + tasks + classes,
            speed(workload, short),
        );
    }
}
