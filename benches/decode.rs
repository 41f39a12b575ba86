//! Measures the decoding of traces for the analysis, with one thread. The column `open` is the time for checking the
//! whole file, divided by the number of events.
//!
//! `cargo bench -p tr-trace-format --bench decode [-- TRACE...]`
#![allow(clippy::expect_used)]

#[allow(dead_code)] // For the other benchmark.
mod traces;

use std::time::Instant;

use tr_format::event::Stream;
use tr_format::reader::Trace;
use tr_format::sched::SchedBlock;
use tr_format::source::Source;
use traces::{clock_time, cpu_time, workloads};

fn main() {
    let (all, short) = workloads();
    let clock = clock_time();
    println!(
        "{:<28} {:>9} | {:>8} {:>8} | {:>10} {:>10}",
        "scheduling events", "events", "M/s", "ns", "others, ns", "open, ns"
    );
    for workload in &all {
        let source = || Source::bytes(workload.file.clone());
        let trace = Trace::open(source()).expect("a trace");
        let mut least = vec![f64::MAX; trace.frames().len()];
        let mut open = f64::MAX;
        let (mut block, mut events) = (SchedBlock::default(), Vec::new());
        let begin = Instant::now();
        loop {
            let copy = source();
            let start = cpu_time();
            Trace::open(copy).expect("a trace");
            open = open.min(cpu_time() - start);
            for (frame, least) in trace.frames().iter().zip(&mut least) {
                let start = cpu_time();
                match frame.stream {
                    Stream::Cpu(_) => trace.read_sched(frame, &mut block).expect("a frame"),
                    _ => trace.read_life(frame, &mut events).expect("a frame"),
                }
                *least = least.min(cpu_time() - start - clock);
            }
            if short || begin.elapsed().as_secs() >= 2 {
                break;
            }
        }
        let sum = |sched: bool| {
            let of = trace.frames().iter().zip(&least);
            let of = of.filter(|(frame, _)| matches!(frame.stream, Stream::Cpu(_)) == sched);
            of.fold((0.0, 0.0), |(n, ns), (frame, least)| {
                (n + frame.events as f64, ns + least)
            })
        };
        let ((sched, sched_ns), (life, life_ns)) = (sum(true), sum(false));
        println!(
            "{:<28} {:>9} | {:>8.1} {:>8.1} | {:>10.0} {:>10.2}",
            workload.name,
            workload.events,
            sched / sched_ns * 1e3,
            sched_ns / sched,
            life_ns / life,
            open / workload.events as f64,
        );
    }
}
